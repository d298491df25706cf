// the orders and results of a load
#pragma once

#include "api/result.hpp"
#include "api/target.hpp"
#include "core/base/bytes.hpp"
#include "core/base/vector.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/settling.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/tokens.hpp"
#include "effects/system/clock.hpp"
#include "effects/load/load_target.hpp"

#include <algorithm>  // lower_bound, min, move
#include <atomic>
#include <cstddef>  // ptrdiff_t, size_t
#include <cstdint>  // uint32_t, uint64_t
#include <deque>
#include <functional>  // when a load begins
#include <iterator>  // back_inserter
#include <mutex>  // lock_guard, unique_lock
#include <set>
#include <span>
#include <string>
#include <utility>  // exchange, move, pair, swap

namespace llmbench {
inline namespace v1 {
namespace detail {

class progress_meter;

/// Shared by all threads of one load. Unused after the measured part has begun.
class settling_watch {
public:
    /// `latest_ns`: offset at which the measured part begins at the latest; `whole_from_ns`: from
    /// here on the load is complete and should be stable.
    void begin(long long latest_ns, long long whole_from_ns) {
        whole_from_ns_ = whole_from_ns;
        latest_ns_ = latest_ns;
        ends_at_ = latest_ns;
    }
    bool is_on() const { return latest_ns_ > 0; }
    /// The offset of the measured part, as far as is known.
    long long ends_at() const { return ends_at_.load(); }
    /// The time by which requests after the warm-up are sent earlier than planned.
    long long earlier_by() const { return latest_ns_ - ends_at_.load(); }

    void on_sent(std::size_t index, long long scheduled_ns) {
        const std::lock_guard lock(mutex_);
        const auto at = place_of({scheduled_ns, index});
        keys_.insert(keys_.begin() + at, {scheduled_ns, index});
        sent_.insert(sent_.begin() + at, warming_request{});
    }
    /// Clock times; the measured part begins a little after the end that shows stability.
    void on_ended(std::size_t index, const record& r, long long start_ns) {
        const std::lock_guard lock(mutex_);
        const key sought{r.scheduled_ns, index};
        const auto at = static_cast<std::size_t>(place_of(sought));
        if (at == keys_.size() || keys_[at] != sought) return;
        const auto seconds = [](long long ns) { return static_cast<double>(ns) * 1e-9; };
        sent_[at] = {true, r.status == request_status::ok, seconds(r.end_ns - start_ns),
                      seconds(r.first_token_ns - r.scheduled_ns),
                      static_cast<double>(r.output_tokens)};
        // A look goes over all requests while senders wait: the more there are, the rarer the
        // looks.
        ++ended_;
        if (stable_ || r.end_ns < next_look_ns_ || ended_ < next_look_at_) return;
        next_look_ns_ = r.end_ns + between_looks_ns;
        next_look_at_ = ended_ + ended_ / 50;
        const long long cut = r.end_ns - start_ns + notice_ns;
        if (cut >= latest_ns_ || !is_settled(sent_from(start_ns + whole_from_ns_))) return;
        stable_ = true;
        ends_at_ = cut;
    }
    warmup_seen seen() const {
        const std::lock_guard lock(mutex_);
        return {is_on(), stable_, static_cast<double>(ends_at_.load()) * 1e-9, sent_.size(),
                ttft_from(sent_.begin(), sent_.end()), ttft_from(sent_.rbegin(), sent_.rend())};
    }

private:
    static constexpr long long between_looks_ns = 100'000'000;
    static constexpr long long notice_ns = 100'000'000;  // every thread wakes within it

    using key = std::pair<long long, std::size_t>;
    std::ptrdiff_t place_of(const key& k) const {
        return std::lower_bound(keys_.begin(), keys_.end(), k) - keys_.begin();
    }
    std::span<const warming_request> sent_from(long long from_ns) const {
        return std::span(sent_).subspan(static_cast<std::size_t>(place_of({from_ns, 0})));
    }

    mutable std::mutex mutex_{};
    vector<key> keys_{};  // in order of the planned sends
    vector<warming_request> sent_{};
    std::size_t ended_ = 0, next_look_at_ = 0;
    bool stable_ = false;
    long long latest_ns_ = 0, whole_from_ns_ = 0, next_look_ns_ = 0;
    std::atomic<long long> ends_at_{0};
};

/// Shared by all threads of one load: the ids of responses that turns go on from.
class response_ids {
public:
    /// Returns false if it has been there.
    bool add(const std::string& id) {
        fnv1a hash;
        add_text(hash, id);
        const std::lock_guard lock(mutex_);
        return known_.insert(hash.value()).second;
    }

private:
    std::mutex mutex_{};
    std::set<std::uint64_t> known_{};  // hashes
};

/// The end of a load before its planned time, once all is decided. Threads that send tell until
/// when all planned requests have ended; another thread looks at those, and may end the load.
/// Shared by the loads of both variants. Times are steady-clock ns.
class decided_end {
public:
    /// Called for each worker before its thread starts.
    std::atomic<long long>& add_worker() { return settled_.emplace_back(0); }
    /// The measured part of an open loop, after the start.
    void expect(long long offset_ns, long long length_ns) {
        offset_ns_ = offset_ns;
        length_ns_ = length_ns;
    }
    /// That of a closed loop, from its first measured request on. `first_ns` lives until close().
    void expect_from(const std::atomic<long long>& first_ns, long long length_ns) {
        first_ns_ = &first_ns;
        length_ns_ = length_ns;
    }
    void begin(long long start_ns) { start_ns_ = start_ns; }
    /// Until then all planned requests have ended and are handed over; 0: unknown.
    long long settled_ns() const {
        long long least = settled_.empty() ? 0 : settled_.front().load();
        for (const auto& of_worker : settled_) least = std::min(least, of_worker.load());
        return least;
    }
    /// The time after so many quarters of the measured part, 0 before that has begun.
    long long after_quarters(int n) const {
        const std::lock_guard lock(mutex_);
        return time_after(n);
    }
    /// Ends the load, unless it is over. Requests planned after so many quarters do not count.
    void end_after(int quarters) {
        const std::lock_guard lock(mutex_);
        if (is_over_) return;
        quarters_ = quarters;
        ends_ns_ = time_after(quarters);
    }
    /// 0: it was not ended.
    long long ends_ns() const { return ends_ns_.load(); }
    /// The part of the planned time after which it was ended, else 1.
    double part() const { return quarters_ / 4.0; }
    bool is_over() const { return is_over_; }
    /// The load is over: nothing ends it afterwards. Returns ends_ns().
    long long close() {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
        if (const auto* first = std::exchange(first_ns_, nullptr)) start_ns_ = first->load();
        return ends_ns_.load();
    }

private:
    long long time_after(int n) const {
        const long long from = first_ns_ ? first_ns_->load() : start_ns_.load();
        return from == 0 ? 0 : from + offset_ns_ + length_ns_ / 4 * n;
    }

    mutable std::mutex mutex_{};
    std::atomic<bool> is_over_{false};
    std::deque<std::atomic<long long>> settled_{};  // of the workers
    std::atomic<long long> start_ns_{0}, ends_ns_{0};
    const std::atomic<long long>* first_ns_ = nullptr;
    long long offset_ns_ = 0, length_ns_ = 0;
    int quarters_ = 4;
};

/// Finished requests on their way to the disk.
struct delivered_requests {
    vector<record> records{};
    vector<std::uint32_t> gaps{};  // of all requests, in their order
    void append(delivered_requests&& more) {
        std::move(more.records.begin(), more.records.end(), std::back_inserter(records));
        gaps.insert(gaps.end(), more.gaps.begin(), more.gaps.end());
        more.records.clear();
        more.gaps.clear();
    }
};
/// Passes requests from load threads to the writer. Load threads never wait: requests that the
/// writer cannot keep up with are left out.
class outbox {
public:
    static constexpr std::size_t max_waiting = 1u << 18, max_gaps_waiting = 1u << 25;

    /// Does nothing and returns false if it is in use.
    bool try_put(delivered_requests& d) {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock.owns_lock()) add(d);
        return lock.owns_lock();
    }
    void put(delivered_requests& d) {
        const std::lock_guard lock(mutex_);
        add(d);
    }
    /// Takes all that waits; returns the number of requests left out so far.
    std::size_t take(delivered_requests& into) {
        const std::lock_guard lock(mutex_);
        std::swap(waiting_, into);
        return left_out_;
    }

private:
    void add(delivered_requests& d) {
        if (left_out_ > 0 || waiting_.records.size() > max_waiting ||
            waiting_.gaps.size() > max_gaps_waiting) {
            left_out_ += std::exchange(d, {}).records.size();
            return;
        }
        waiting_.append(std::move(d));
    }
    std::size_t left_out_ = 0;
    std::mutex mutex_{};
    delivered_requests waiting_{};
};

/// Gaps of the whole program kept one by one, 128 MiB. All other memory is per request, not per
/// event.
inline constexpr std::uint64_t max_gaps_kept = 32ull << 20;

/// What is asked of one repeat on one server.
struct repeat_order {
    run_variant variant = run_variant::candidate;
    int number = 0;  // among all that were measured, those set aside included
    int gate = 1;
    bool parts_twins = false;                // so that they do not meet at one server
    long long deadline_ns = 0;               // of the whole program, 0: none
    std::uint64_t max_gaps = max_gaps_kept;  // maximum number of single gaps kept
    outbox* out = nullptr;                   // takes the records while the load runs
    progress_meter* meter = nullptr;
    // Returns the start in ns; called by the main thread once all connections are open. None: at
    // once.
    std::function<long long()> start{};
    answers_shown show = answers_shown::open;
    bool is_only_compared = false;  // without the baseline no objective is left
    decided_end* decided = nullptr;  // of a load that may end once all is decided
};
/// One stretch of load: requests `first` to `last` (not included) of the trace.
struct load_order : repeat_order {
    const load_plan* what = nullptr;
    const load_target* target = nullptr;
    token_fit tokens{};      // of its synthetic prompts
    long long ends_after = 0;  // requests, of a load to try a server; 0: as the plan says
    std::string id_prefix{};
    std::size_t first = 0, last = 0;
    vector<long long> send_at{};  // of an open loop, ns offsets; empty: closed loop
    long long measured_from_ns = 0;    // offset
    bool measured_by_time = false;     // closed loop: nothing is measured before
    std::size_t warmup = 0;            // number of requests
    long long max_measured = 0;       // of a closed loop measured by time; 0: no limit

    /// The requests of this program that wait for none: all, or the first of conversations.
    std::size_t starts() const {
        return what->shard.of((last - first + what->sent->stride - 1) / what->sent->stride);
    }
    /// This program's users of a closed loop.
    std::size_t users() const { return what->shard.of(users_of(*what->sent)); }
    /// The distance of this program's requests in the trace.
    std::size_t step() const { return what->shard.count * what->sent->stride; }
};

/// Notices a server that takes no connection any more, for so many measured requests in a row and
/// so long.
class lost_server {
public:
    void note(const record& r) {
        if (!is_measured(r)) return;
        ++measured_;
        const bool is_refused = r.status == request_status::connect && !failed_by_client(r);
        if (is_refused && in_a_row_ == 0) since_ns_ = r.end_ns;
        in_a_row_ = is_refused ? in_a_row_ + 1 : 0;
    }
    bool is_lost(long long now_ns) const {
        return in_a_row_ >= least_lost(measured_) && now_ns - since_ns_ >= 10'000'000'000;
    }

private:
    std::atomic<std::size_t> measured_{0}, in_a_row_{0};
    std::atomic<long long> since_ns_{0};
};

/// Shared by the threads of one load. Nothing here is touched once per event.
struct load_state {
    std::atomic<std::size_t> next{0};  // closed loop: the next request of the trace
    std::atomic<long long> measured_from{0};       // dispatch of the first measured request
    std::atomic<long long> measured{0};      // requests after a warm-up given as a time
    std::atomic<long long> exhausted_at{0};  // when a user had no next one, or sends ended early
    std::atomic<bool> is_cut_by_time{false};  // the time budget ended before the load did
    std::atomic<long long> planned{0}, sent{0}, done{0}, failed{0};  // requests; planned 0: open
    std::atomic<long long> ttft_ns{0}, answered{0}, tpot_ns{0}, paced{0};  // sums and their counts
    std::atomic<std::uint64_t> gaps{0};  // of all requests done
    std::atomic<bool> is_called_off{false};  // its server will not answer
    std::atomic<std::size_t> text_bytes{0}, texts_shown{0};  // of the answers kept
    settling_watch settling{};           // of a warm-up until the server is stable
    lost_server server{};
    const load_state* twin = nullptr;    // of the other variant's load at once
    response_ids ids{};
    long long start_ns = 0;

    /// Called once per request for observers.
    void note(const record& r) {
        constexpr auto relaxed = std::memory_order_relaxed;
        done.fetch_add(1, relaxed);
        failed.fetch_add(has_failed(r), relaxed);
        server.note(r);
        if (r.status != request_status::ok) return;
        ttft_ns.fetch_add(r.first_token_ns - r.scheduled_ns, relaxed);
        answered.fetch_add(1, relaxed);
        const int tokens = paced_tokens(r);
        if (tokens <= 0) return;
        tpot_ns.fetch_add((r.last_token_ns - r.first_token_ns) / tokens, relaxed);
        paced.fetch_add(1, relaxed);
    }
};

/// Sets where users take their first requests.
inline void begin_places(const load_order& o, load_state& shared) {
    shared.next = o.first + o.what->shard.index * o.what->sent->stride;
}
/// Whether nothing more is to be sent before the plan's end. At once a lost server ends both loads:
/// without the candidate no objective is left, without the baseline those of the candidate alone.
inline bool ends_early(const load_order& o, const load_state& s, long long now_ns) {
    if (o.ends_after > 0) {
        const long long lasts_ns = now_ns - s.start_ns;
        return lasts_ns >= 60'000'000'000 || (s.done >= o.ends_after && lasts_ns >= 5'000'000'000);
    }
    if (!s.twin || !o.what->sent->beside.empty()) return false;  // a side task may bring it back
    if (s.server.is_lost(now_ns)) return true;
    return s.twin->server.is_lost(now_ns) &&
           (o.variant == run_variant::baseline ||
            o.is_only_compared);
}
/// Returns the offset of the measured part; earlier than planned if the load is stable.
inline long long measured_offset(const load_order& o, const load_state& shared) {
    return shared.settling.is_on() ? shared.settling.ends_at() : o.measured_from_ns;
}
inline run_phase phase_of(const load_order& o, const load_state& shared, const planned_request& w) {
    const bool is_early = o.measured_by_time &&
                          w.scheduled_ns < shared.start_ns + measured_offset(o, shared);
    return is_early || w.warms_caches || w.index < o.warmup ? run_phase::warmup
                                                            : run_phase::measure;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
