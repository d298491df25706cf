// one thread's access to its target
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/measured/alertness.hpp"
#include "core/measured/client_counts.hpp"
#include "core/measured/histograms.hpp"
#include "effects/net/exchange.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"
#include "effects/net/tls.hpp"
#include "effects/load/load_target.hpp"

#include <algorithm>  // max
#include <utility>  // exchange

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Shared by the connections of one thread: the access to the target, and their counters.
struct client_io : client_counts {
    client_io(const load_target& t, const llmbench::limits& l, bool is_streamed,
              const list<text>& local, network& all)
        : target(t),
          limits(l),
          streamed(is_streamed),
          from(local_addresses(local)),
          addresses(reached_from(from, t.addresses.in_order())),
          sockets(&all) {
        connection_resets = t.resets_before();  // before this load
    }

    const load_target& target;
    const llmbench::limits& limits;
    const bool streamed;  // of the answers; otherwise only limits.total applies
    const vector<address> from;  // used in turn; none: the system chooses
    const vector<address> addresses;  // of the target, at the start of this load
    std::size_t next_from = 0;
    network* const sockets;  // of the thread
    read_room room{vector<char>(256 * 1024)};
    tls_session session{};
    std::size_t good_address = 0;  // the first to try: the last that connected
    long long woke_ns = 0, seen_ns = 0;  // end of the last wait, and the last read since
    alertness alert{};

    lag_counts stamp_lag{};

    // The queue of a Unix-domain socket is full, and no event reports its end: ask again soon,
    // because the delay counts as the server's.
    bool asks_again = false;
    static constexpr long long between_asks_ns = 1'000'000;

    bool keeps_connections() const { return connection_resets < resets_by_policy; }
    /// Local address of the next connection to `to`; null: any.
    const address* from_for(const address& to) {
        for (std::size_t i = 0; i < from.size(); ++i) {
            const address& a = from[next_from++ % from.size()];
            if (a.storage.ss_family == to.storage.ss_family) return &a;
        }
        return nullptr;
    }
    /// Whether the kernel stamps arrivals, as far as reads show.
    bool is_stamped() const { return is_mostly_stamped(stamped_reads, reads); }
    /// Called after a wait, which was to end at `until_ns` at the latest.
    void on_wake(long long now, long long slept_ns, long long until_ns) {
        was_busy_ns_ = slept_ns - woke_ns;
        empty_ns_ = saw_all_ ? slept_before_ns_ : 0;
        saw_all_ = sockets->full_turns(1) == 0;
        slept_before_ns_ = slept_ns;
        woke_ns = seen_ns = now;
        is_late_ = sockets->was_interrupted() ||
                   now - std::max(until_ns, slept_ns) > alertness::noticed_ns;
    }
    void on_read(const arrival& a) {
        if (a.what == arrival::kind::bytes) {
            ++reads;
            stamped_reads += a.is_stamped;
        }
        stamp_lag.add(a.read_ns - (a.is_stamped ? a.at_ns : woke_ns));
        seen_ns = a.read_ns;
        alert.on_step(a.read_ns);
        is_late_ = is_late_ || (a.is_stamped && woke_ns - a.at_ns > alertness::noticed_ns);
    }
    /// If the bytes of a read had waited, its events may have come at different times: returns the
    /// time from which on; 0: they came together. `since_ns`: they came after this in any case.
    long long apart_since(const arrival& a, long long since_ns) {
        since_ns = std::max(since_ns, empty_ns_);
        const bool may_be_apart = a.is_stamped && a.at_ns - since_ns > alertness::noticed_ns;
        return may_be_apart && came_late_to(a) ? since_ns : 0;
    }
    const run_queue_wait* waits = nullptr;  // of the thread

private:
    /// Whether the thread was late or waited long for a core since the last call.
    bool came_late_to(const arrival& a) {
        is_late_ = is_late_ || a.read_ns - woke_ns + was_busy_ns_ > alertness::noticed_ns;
        if (is_late_ || asked_ns_ == woke_ns) return is_late_;
        asked_ns_ = woke_ns;
        const long long before = std::exchange(waited_ns_, waits ? waits->so_far_ns() : -1);
        return is_late_ = waited_ns_ < 0 || waited_ns_ - before > alertness::noticed_ns;
    }

    long long was_busy_ns_ = 0, slept_before_ns_ = 0, empty_ns_ = 0;
    long long asked_ns_ = 0, waited_ns_ = 0;
    bool is_late_ = false, saw_all_ = false;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
