// bounds on what was measured where the client may have been late
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "core/base/time_interval.hpp"
#include "core/measured/client_stalls.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // any_of, max, min, none_of, nth_element, sort, upper_bound
#include <cmath>  // round
#include <cstddef>  // ptrdiff_t
#include <cstdint>  // uint32_t, uint64_t
#include <functional>  // greater
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What came while the client did not run has a stamp that may be too late, and what it was to send
/// then went out too late. `measured` takes the stamps as they are. `pessimistic` is the worst of
/// the server that they allow, which a pass must withstand. `optimistic` takes out all that may
/// have been the client's, which a fail must withstand. `buffered` gives tokens that came at once
/// all the time before them that they may have been generated in, `baseline_buffered` those of the
/// baseline alone.
enum class timing_bound : unsigned char {
    measured, pessimistic, optimistic, buffered, baseline_buffered
};

/// Of the other arm, where two are compared.
inline timing_bound opposite(timing_bound r) {
    switch (r) {
    case timing_bound::pessimistic: return timing_bound::optimistic;
    case timing_bound::optimistic: return timing_bound::pessimistic;
    case timing_bound::baseline_buffered: return timing_bound::buffered;
    default: return timing_bound::measured;
    }
}

/// A send that is this much late has missed its time.
inline constexpr long long late_send_ns = 10000000;

/// Whether the client may have had a part in what was measured.
inline bool client_had_part(const repeat_data& d) {
    return !d.stalls.empty() ||
           std::any_of(d.records.begin(), d.records.end(), [](const record& r) {
               return is_measured(r) && r.late_ns > 1000000;
           });
}

/// Finds where what the client had missed to send went out at once. Until the server has no more of
/// it than before or than usual, and all of that is answered for the first time, it may be late by
/// as much as the latest of those was: a server that got everything that much later would answer
/// everything that much later, and one that gets some of it on time is no slower. To be called when
/// records and stretches are complete.
inline void note_bunches(repeat_data& d) {
    d.bunched.clear();
    const auto matters = [](const client_stall& s) { return s.lost_ns >= late_send_ns; };
    if (std::none_of(d.stalls.begin(), d.stalls.end(), matters)) return;
    std::vector<long long> sends, ends;
    std::vector<std::pair<long long, long long>> late;  // sent, answered for the first time
    for (const record& r : d.records) {
        if (r.dispatched_ns == 0) continue;
        sends.push_back(r.dispatched_ns);
        ends.push_back(r.end_ns);
        late.emplace_back(r.dispatched_ns, r.first_token_ns > 0 ? r.first_token_ns : r.end_ns);
    }
    for (auto* times : {&sends, &ends}) std::sort(times->begin(), times->end());
    std::sort(late.begin(), late.end());
    const auto before = [](const std::vector<long long>& all, long long t) {
        return std::upper_bound(all.begin(), all.end(), t) - all.begin();
    };
    std::vector<long long> in_flight{0};
    for (const long long t : sends) in_flight.push_back(before(sends, t) - before(ends, t));
    const auto middle = in_flight.begin() + static_cast<std::ptrdiff_t>(in_flight.size() / 2);
    std::nth_element(in_flight.begin(), middle, in_flight.end());
    const long long usual = *middle;
    for (const client_stall& s : d.stalls) {
        if (!matters(s)) continue;
        if (!d.bunched.empty() && s.from_ns < d.bunched.back().to_ns) {
            // What the server had before is known of the first one alone.
            d.bunched.back().to_ns = std::max(d.bunched.back().to_ns, s.to_ns);
        } else if (before(sends, s.to_ns) - before(sends, s.from_ns + late_send_ns) < 2) {
            continue;  // one late send is no bunch
        } else {
            d.bunched.push_back({s.from_ns, s.to_ns, 0, 0});
        }
        client_stall& b = d.bunched.back();
        b.most_delay_ns = std::max(b.most_delay_ns, s.most_delay_ns);
        for (auto l = std::upper_bound(late.begin(), late.end(),
                                       std::pair{s.from_ns, 9223372036854775807ll});
             l != late.end() && l->first <= s.to_ns; ++l)
            b.to_ns = std::max(b.to_ns, l->second);
        const auto had = std::max<long long>(
            usual, before(sends, b.from_ns) - before(ends, b.from_ns));
        for (auto e = std::upper_bound(ends.begin(), ends.end(), b.to_ns);
             e != ends.end() && before(sends, b.to_ns) - before(ends, b.to_ns) > had; ++e)
            b.to_ns = *e;
    }
}

/// The times of one completed request that its metrics are made of, nanoseconds.
struct request_times {
    long long to_first = 0, to_end = 0;  // since it was to be sent
    long long sent_to_first = 0, first_to_last = 0;
    long long to_answer = 0, first_to_second = 0;  // 0 and less where there is none
};
inline request_times times_of(const repeat_data& d, const record& r,
                              timing_bound how = timing_bound::measured) {
    request_times t{r.first_token_ns - r.scheduled_ns, r.end_ns - r.scheduled_ns,
                    r.first_token_ns - r.sent_ns, r.last_token_ns - r.first_token_ns,
                    r.first_answer_ns - r.scheduled_ns, r.second_token_ns - r.first_token_ns};
    if (how == timing_bound::pessimistic) {
        // Times since it was to be sent have the client's delay in them already.
        t.first_to_last += possible_delay(d.stalls, r.first_token_ns);
        t.first_to_second += possible_delay(d.stalls, r.first_token_ns);
    } else if (how == timing_bound::buffered) {
        t.first_to_last += buffered_ns(r);
        t.first_to_second += buffered_ns(r);
    } else if (how == timing_bound::optimistic) {
        const long long first = possible_delay(d.stalls, r.first_token_ns);
        const long long bunch =
            most_delay_in(d.bunched, time_interval::between(r.dispatched_ns, r.end_ns));
        const auto until_sent = time_interval::between(r.dispatched_ns, r.sent_ns);
        const long long sending =
            std::max(r.late_ns + lost_in(d.stalls, until_sent), bunch);
        const auto without = [](long long& time, long long delay) {
            time = std::max(std::min(time, 0ll), time - delay);
        };
        without(t.to_first, sending + first);
        without(t.to_end, sending + possible_delay(d.stalls, r.end_ns));
        without(t.sent_to_first, bunch + first);
        without(t.first_to_last, bunch + possible_delay(d.stalls, r.last_token_ns));
        without(t.to_answer, sending + possible_delay(d.stalls, r.first_answer_ns));
        without(t.first_to_second, bunch + possible_delay(d.stalls, r.second_token_ns));
    }
    return t;
}

/// Gaps whose events may all have come at other times, from one event that is certain to the next:
/// together they are as long as measured.
class uncertain_gaps {
public:
    void add(std::uint32_t us, long long delay_ns) {
        together_us_ += us;
        each_us_.push_back(us + static_cast<double>(delay_ns) / 1000);
    }
    void begin_earlier(long long delay_ns) { together_us_ += static_cast<double>(delay_ns) / 1000; }
    /// `f(us)` for the longest gaps that there can have been. That many of a length need that much
    /// of the time: the k-th longest is no longer than its k-th part.
    template <class F>
    void each_pessimistic(F&& f) {
        std::sort(each_us_.begin(), each_us_.end(), std::greater<>());
        for (std::size_t k = 0; k < each_us_.size(); ++k)
            f(static_cast<std::uint32_t>(std::min(
                std::round(std::min(each_us_[k], together_us_ / static_cast<double>(k + 1))),
                4294967295.0)));
        each_us_.clear();
        together_us_ = 0;
    }

private:
    std::vector<double> each_us_{};
    double together_us_ = 0;
};

/// `f(us)` for the longest gaps that a request's tokens can have had that came at once, with others
/// or first of all.
template <class F>
void each_buffered_gap(const repeat_data& d, std::size_t i, F&& f) {
    const record& r = d.records[i];
    const long long any = 3600 * 1000000000ll;  // no gap of its own, but those before it limit it
    uncertain_gaps open;
    open.begin_earlier(buffered_ns(r));
    for (std::size_t k = 0; k < gap_count(r); ++k) {
        const std::uint32_t us = d.gaps[d.gap_offsets[i] + k];
        if (us > 0) open.each_pessimistic(f);
        open.add(us, any);
    }
    open.each_pessimistic(f);
}

/// `f(us)` for each gap of one request that has them listed.
template <class F>
void for_each_gap(const repeat_data& d, std::size_t i, timing_bound how, F&& f) {
    const record& r = d.records[i];
    const std::size_t n = gap_count(r);
    if (n == 0) return;
    const std::uint64_t from = d.gap_offsets[i];
    const auto decoding = time_interval::between(r.first_token_ns, r.last_token_ns + 1);
    const bool bunched = how == timing_bound::optimistic && is_stalled_in(d.bunched, decoding);
    if (how == timing_bound::buffered) return each_buffered_gap(d, i, f);
    const auto stamped = time_interval::between(r.first_token_ns - 1, r.last_token_ns + 1);
    if (how == timing_bound::measured || how == timing_bound::baseline_buffered ||
        (!bunched && !is_stalled_in(d.stalls, stamped))) {
        for (std::size_t k = 0; k < n; ++k) f(d.gaps[from + k]);
        return;
    }
    long long stamp = r.first_token_ns;
    uncertain_gaps open;
    long long delay = possible_delay(d.stalls, stamp);
    open.begin_earlier(delay);
    for (std::size_t k = 0; k < n; ++k) {
        const std::uint32_t us = d.gaps[from + k];
        stamp += us * 1000ll;
        const long long next = possible_delay_by_gaps(d.stalls, stamp);
        if (how == timing_bound::optimistic) {
            const auto here = time_interval::between(stamp - 1, stamp);
            const bool other = bunched && is_stalled_in(d.bunched, here);
            f(other ? 0u : us - static_cast<std::uint32_t>(std::min<long long>(us, next / 1000)));
        } else {
            open.add(us, delay);
            if (next == 0) open.each_pessimistic(f);
        }
        delay = next;
    }
    open.each_pessimistic(f);
}

/// Where gaps were counted: how many of a repeat's may be others than was measured, and by how much
/// at most.
struct moved_gaps {
    std::uint64_t count = 0;
    double most_us = 0;
};
inline moved_gaps moved_gaps_of(const repeat_data& d) {
    moved_gaps m;
    for (const record& r : d.records) {
        if (!is_pooled(r) || gap_count(r) == 0) continue;
        const double mean_ns = static_cast<double>(r.last_token_ns - r.first_token_ns) /
                               static_cast<double>(gap_count(r));
        for (auto s = first_after(d.stalls, r.first_token_ns);
             s != d.stalls.end() && s->from_ns < r.last_token_ns; ++s) {
            const double events = static_cast<double>(s->to_ns - s->from_ns) /
                                  std::max(mean_ns, 1.0);
            m.count += 2 + static_cast<std::uint64_t>(
                               std::min(events, static_cast<double>(gap_count(r))));
            m.most_us = std::max(m.most_us, static_cast<double>(s->most_delay_ns) / 1000);
        }
    }
    return m;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
