// what a load is told and delivers
#pragma once

#include "api/result.hpp"
#include "core/dialects/table.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/credible.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/tokens.hpp"
#include "effects/net/http_server.hpp"
#include "effects/load/settling_watch.hpp"

#include <algorithm>  // move
#include <array>
#include <atomic>  // memory_order_relaxed
#include <cstdint>  // uint32_t, uint64_t
#include <functional>  // when a load begins
#include <iterator>  // back_inserter
#include <mutex>  // unique_lock, lock_guard
#include <string>
#include <utility>  // move, swap
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What every request of one load has in common.
struct load_target : http_server {
    std::string path{}, whole_path{};  // of streams, and of answers in one piece
    std::string fields{};  // header lines that all requests share, authorization included
    std::string session_fields{};  // the same where "{session}" stands in one, else ""
    std::vector<std::string> secrets{};  // part of them, and of nothing that we write
    std::string model{};
    const api_traits* api = &apis[0];
    token_fit tokens{};  // of made-up prompts
    int hang_ups = 0;  // of the check before the load
};
/// Where a request is sent: a model may be part of that.
inline std::string path_of(const load_target& to, const request_spec& r) {
    if (r.model.empty()) return r.stream ? to.path : to.whole_path;
    return request_path(*to.api, r.stream ? to.api->path : to.api->whole_path, to.url.path,
                        r.model);
}
/// So often a server closes a connection right after its first answer, having said that it stays,
/// until that is its habit: what is sent to it as it closes would be lost, so none of its
/// connections is used twice from then on. Once is an accident, such as a gateway that restarts.
inline constexpr int hang_ups_of_habit = 2;

/// One stretch of load: requests `first` to `last` (not included) of the trace.
struct load_order {
    const plan* what = nullptr;
    const load_target* target = nullptr;
    run_arm arm = run_arm::candidate;
    int repeat = 0;
    std::string id_prefix{};
    std::size_t first = 0, last = 0;
    std::vector<long long> send_at{};  // of an open loop, offsets in ns; empty: closed loop
    std::vector<std::size_t> begins{};  // the conversations of those; none: one after the other
    long long measured_from_ns = 0;    // offset
    bool measured_by_time = false;     // of a closed loop: nothing is measured before that
    std::size_t warmup = 0;            // requests of the trace that warm up
    long long most_measured = 0;       // of a closed loop that is measured by time; 0: no limit
    // When to begin, ns: asked by the caller's thread once all connections are open. None: at once.
    std::function<long long()> start{};

    /// Requests of it that wait for none before them: all, or the first ones of conversations. Of
    /// several programs, this one's.
    std::size_t starts() const {
        return what->shard.of((last - first + what->sent->stride - 1) / what->sent->stride);
    }
    /// Users of a closed loop, this program's.
    std::size_t users() const { return what->shard.of(users_of(*what->sent)); }
    /// Those whose users take places of their own: the parts, where each has its arrivals.
    std::size_t lines() const { return what->sent->own_arrivals ? what->sent->parts.size() : 1; }
    /// From one place of a line to its next one that is this program's.
    std::size_t step() const { return what->shard.count * lines() * what->sent->stride; }
};

/// A request of the trace, when it is due, and the user of a closed loop whose it is.
struct planned_request {
    std::size_t index = 0;
    long long scheduled_ns = 0;
    int user = -1;  // of an open loop
    bool primes = false;  // the caches, as what was before the load
};

/// Requests that were delivered, on their way to the disk.
struct delivered_requests {
    std::vector<record> records{};
    std::vector<std::uint32_t> gaps{};  // of all of them, in their order
    void append(delivered_requests&& more) {
        std::move(more.records.begin(), more.records.end(), std::back_inserter(records));
        gaps.insert(gaps.end(), more.gaps.begin(), more.gaps.end());
        more.records.clear();
        more.gaps.clear();
    }
};
/// Between the threads of a load and the one that writes. The former never wait for it.
class outbox {
public:
    /// False, and nothing done, where it is in use.
    bool try_put(delivered_requests& d) {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock.owns_lock()) waiting_.append(std::move(d));
        return lock.owns_lock();
    }
    void put(delivered_requests& d) {
        const std::lock_guard lock(mutex_);
        waiting_.append(std::move(d));
    }
    /// What waits, in exchange for something empty.
    void take(delivered_requests& into) {
        const std::lock_guard lock(mutex_);
        std::swap(waiting_, into);
    }

private:
    std::mutex mutex_{};
    delivered_requests waiting_{};
};

/// What the threads of one load share. Nothing here is touched once per event.
struct load_state {
    // Closed loop: the next request of the trace, of each line.
    std::array<std::atomic<std::size_t>, most_parts> next{};
    std::atomic<long long> measured_from{0};       // when the first measured request was dispatched
    std::atomic<long long> measured{0};      // requests after a warm-up that is a time
    std::atomic<long long> exhausted_at{0};  // closed loop: when the first user had nothing left
    std::atomic<long long> planned{0}, sent{0}, done{0}, failed{0};  // requests; planned 0: open
    std::atomic<long long> ttft_ns{0}, answered{0}, tpot_ns{0}, paced{0};  // sums and their counts
    std::atomic<std::uint64_t> gaps{0};  // of all requests done
    std::uint64_t most_gaps = 0;         // to be kept one by one
    outbox* out = nullptr;               // where delivered requests go too
    std::atomic<std::size_t> text_bytes{0}, texts_shown{0};  // of answers that are kept
    answers_shown show = answers_shown::open;
    settling_watch settling{};           // of a warm-up that ends when the server is stable
    long long start_ns = 0;
    long long deadline_ns = 0;  // of the whole program, 0: none

    /// Once a request, for whoever watches: nothing waits for anything here.
    void note(const record& r) {
        constexpr auto relaxed = std::memory_order_relaxed;
        done.fetch_add(1, relaxed);
        failed.fetch_add(has_failed(r), relaxed);
        if (r.status != request_status::ok) return;
        ttft_ns.fetch_add(r.first_token_ns - r.scheduled_ns, relaxed);
        answered.fetch_add(1, relaxed);
        const int tokens = paced_tokens(r);
        if (tokens <= 0) return;
        tpot_ns.fetch_add((r.last_token_ns - r.first_token_ns) / tokens, relaxed);
        paced.fetch_add(1, relaxed);
    }
};

/// Where users take their first places.
inline void begin_lines(const load_order& o, load_state& shared) {
    for (std::size_t i = 0; i < o.lines(); ++i)
        shared.next[i] = o.first + (o.what->shard.index * o.lines() + i) * o.what->sent->stride;
}
/// Where the measured part of a load begins, an offset; earlier than planned where it has settled.
inline long long measured_offset(const load_order& o, const load_state& shared) {
    return shared.settling.is_on() ? shared.settling.ends_at() : o.measured_from_ns;
}
inline run_phase phase_of(const load_order& o, const load_state& shared, const planned_request& w) {
    const bool is_early = o.measured_by_time &&
                          w.scheduled_ns < shared.start_ns + measured_offset(o, shared);
    return is_early || w.primes || w.index < o.warmup ? run_phase::warmup : run_phase::measure;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
