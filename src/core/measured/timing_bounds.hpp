// times of requests and sessions, and the bounds of those
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // find_if, max, min, partition_point, sort
#include <cmath>  // round
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <limits>
#include <map>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// `measured`: times as they are. A late client leaves little open: the first token may have come
/// before others of its read, and late sends have late answers. A pass must hold with `pessimistic`
/// times, the server's worst, a miss with `optimistic` ones. `buffered` adds to coalesced tokens
/// all the time in which they may have been generated, `baseline_buffered` only to the baseline's.
/// `since_send` and `briefest` are strict: of an answer whose tokens came together these may have
/// been generated at any time since the send, and its last read may be late by a usual pause.
/// `text_alone` leaves out the time after the last text where it may have brought no token.
/// `missing_worst` gives requests for which a user's function has no value the worst one,
/// `missing_best` the best; requests that were cut off with their run it leaves out.
enum class timing_bound : unsigned char {
    measured, pessimistic, optimistic, buffered, baseline_buffered, since_send, briefest,
    text_alone, baseline_text_alone, missing_worst, missing_best
};

/// Returns the bound for the other variant of a comparison.
inline timing_bound opposite(timing_bound r) {
    switch (r) {
    case timing_bound::pessimistic: return timing_bound::optimistic;
    case timing_bound::optimistic: return timing_bound::pessimistic;
    case timing_bound::baseline_buffered: return timing_bound::buffered;
    case timing_bound::since_send: return timing_bound::briefest;
    case timing_bound::briefest: return timing_bound::since_send;
    case timing_bound::baseline_text_alone: return timing_bound::text_alone;
    case timing_bound::missing_worst: return timing_bound::missing_best;
    default: return timing_bound::measured;
    }
}

/// With more late sends the load was not as planned.
inline constexpr double most_late_fraction = 0.01;
/// When a send is late without a limit on ttft.
inline constexpr long long late_send_ns = 5'000'000;

/// The sends of the measured part: a request of the warm-up that was due before it and was sent so
/// late that it came into it changes its load, too.
class measured_sends {
public:
    explicit measured_sends(const repeat_data& d) {
        const auto first = std::find_if(d.records.begin(), d.records.end(), is_measured);
        if (first != d.records.end()) from_ns_ = first->scheduled_ns;
    }
    bool has(const record& r) const {
        return r.dispatched_ns != 0 && (is_measured(r) || reaches_in(r));
    }

private:
    bool reaches_in(const record& r) const {
        return r.phase == run_phase::warmup && r.late_ns > 0 && r.scheduled_ns < from_ns_ &&
               r.scheduled_ns + r.late_ns >= from_ns_;
    }
    long long from_ns_ = std::numeric_limits<long long>::max();
};
inline double late_fraction_of(const repeat_data& d, double after_s) {
    const measured_sends measured(d);
    double sends = 0, late = 0;
    for (const record& r : d.records) {
        if (!measured.has(r)) continue;
        ++sends;
        late += static_cast<double>(r.late_ns) > after_s * 1e9;
    }
    return sends > 0 ? late / sends : 0;
}
/// Whether the client ended it, so that nobody knows how long the server went on.
inline bool was_given_up(const record& r) {
    return r.status == request_status::timeout || r.status == request_status::protocol ||
           r.status == request_status::cancelled || has_left(r);
}
/// A server answers by as much later as the latest request, and no slower if some are on time: a
/// queue hands the delay of its first one on to all others. That ends where the server is idle,
/// which nobody knows after a request that was given up. Sends that wait for answers have the delay
/// in their plan, so it goes on. `twin`: the other variant, which may share the server.
inline vector<late_stretch> late_stretches_of(const repeat_data& d, const repeat_data* twin) {
    bool goes_on = false;
    vector<const record*> sent;
    const measured_sends measured(d), measured_of_twin(twin ? *twin : d);
    for (const repeat_data* of : {&d, twin}) {
        goes_on = goes_on || (of && !(of->asked_rate > 0));
        for (std::size_t i = 0; of && i < of->records.size(); ++i) {
            const record& r = of->records[i];
            goes_on = goes_on || r.turn > 0 || r.depth > 0;
            if (r.dispatched_ns > 0) sent.push_back(&r);
        }
    }
    std::sort(sent.begin(), sent.end(), [](const record* a, const record* b) {
        return a->scheduled_ns < b->scheduled_ns;
    });
    vector<late_stretch> all;
    long long busy_until_ns = 0;
    for (const record* r : sent) {
        const bool is_idle = r->scheduled_ns > busy_until_ns && !goes_on;
        if (all.empty() || is_idle) all.push_back({r->scheduled_ns, 0});
        busy_until_ns = std::max({busy_until_ns, r->scheduled_ns, r->end_ns});
        goes_on = goes_on || was_given_up(*r);
        if (measured.has(*r) || measured_of_twin.has(*r))
            all.back().latest_ns = std::max(all.back().latest_ns, r->late_ns);
    }
    return all;
}
/// Sets how late the sends were that may have delayed each request, if many were late. Also sets
/// the client's part of the requests' times: waiting users ask for less. Call it when records and
/// the rate are complete. A twin that has been noted has the stretches of both.
inline void note_lateness(repeat_data& d, const repeat_data* twin = nullptr) {
    double late = 0, all = 0;
    for (const record& r : d.records) {
        if (!is_measured(r) || r.dispatched_ns == 0) continue;
        late += static_cast<double>(std::max(r.late_ns, 0ll));
        all += static_cast<double>(r.end_ns - r.scheduled_ns);
    }
    d.late_part = all > late ? late / all : 0;
    const auto many = [](const repeat_data& of) {
        return late_fraction_of(of, late_send_ns * 1e-9) > most_late_fraction;
    };
    d.late_stretches = {};
    if (twin && !twin->late_stretches.empty()) d.late_stretches = twin->late_stretches;
    else if (many(d) || (twin && many(*twin))) d.late_stretches = late_stretches_of(d, twin);
}
/// The delay of the latest send that may have delayed this request, besides its own.
inline long long latest_send_of(const repeat_data& d, const record& r) {
    const auto after = std::partition_point(
        d.late_stretches.begin(), d.late_stretches.end(),
        [&](const late_stretch& s) { return s.from_ns <= r.scheduled_ns; });
    return after == d.late_stretches.begin() ? 0 : (after - 1)->latest_ns;
}

/// The times behind the metrics of one completed request, in nanoseconds.
struct request_times {
    long long to_first = 0, to_end = 0;  // since the planned send
    long long sent_to_first = 0, first_to_last = 0;
    long long to_answer = 0, first_to_second = 0;  // 0 or less without a value
};
/// How much earlier than its stamp the first token may have been generated.
inline long long early_ns_of(const record& r, timing_bound how) {
    switch (how) {
    case timing_bound::pessimistic: return r.first_early_ns;
    case timing_bound::buffered: return buffered_ns(r);
    case timing_bound::since_send:
        return may_be_buffered(r) ? std::max(r.first_token_ns - r.sent_ns, 0ll) : 0;
    default: return 0;
    }
}
/// Tokens of the first event but for its first one may have come in the time of the worst case.
inline int paced_tokens(const record& r, timing_bound how) {
    const bool is_worst = how == timing_bound::since_send && may_be_buffered(r);
    return is_worst ? streamed_tokens(r) - 1 : paced_tokens(r);
}
/// The time after the last text in which tokens came.
inline long long textless_ns_of(const record& r, timing_bound how) {
    return how == timing_bound::text_alone && is_untold_end(r) ? 0 : r.textless_ns;
}
inline request_times times_of(const repeat_data& d, const record& r,
                              timing_bound how = timing_bound::measured) {
    request_times t{r.first_token_ns - r.scheduled_ns, r.end_ns - r.scheduled_ns,
                    r.first_token_ns - r.sent_ns, r.last_token_ns - r.first_token_ns,
                    r.first_answer_ns - r.scheduled_ns, r.second_token_ns - r.first_token_ns};
    t.first_to_last += textless_ns_of(r, how);
    // Times since the planned send include the client's delay.
    const long long earlier = early_ns_of(r, how);
    t.first_to_last += earlier;
    t.first_to_second += earlier;
    if (how == timing_bound::briefest && may_be_buffered(r)) {
        const long long reads = std::max(r.reads > 0 ? r.reads : r.events, 2);
        t.first_to_last -= (r.last_token_ns - r.first_token_ns) / (reads - 1);
    } else if (how == timing_bound::optimistic) {
        const long long sending = std::max(r.late_ns, latest_send_of(d, r));
        const auto without = [](long long& time, long long delay) {
            time = std::max(std::min(time, 0ll), time - delay);
        };
        without(t.to_first, sending + r.first_early_ns);
        without(t.to_end, sending);
        without(t.sent_to_first, r.first_early_ns);
        without(t.to_answer, sending + r.first_early_ns);
    }
    return t;
}

/// Calls `f(us)` for each listed gap of one request; for a buffered one, for the longest gaps that
/// coalesced tokens may have had: the k-th longest is at most the k-th part of their sum. In the
/// strict case no gap of such an answer is known. None of a repeat that keeps no gaps of single
/// requests.
template <class F>
void for_each_gap(const repeat_data& d, std::size_t i, timing_bound how, F&& f) {
    const record& r = d.records[i];
    if (i >= d.gap_offsets.size() || d.gap_offsets[i] + gap_count(r) > d.gaps.size()) return;
    const bool is_unknown = how == timing_bound::since_send && may_be_buffered(r);
    const bool is_buffered = how == timing_bound::buffered || how == timing_bound::since_send;
    double together_us = is_buffered ? static_cast<double>(early_ns_of(r, how)) / 1000 : 0;
    std::size_t open = 0;  // gaps of unknown times, whose sum that is
    const auto end_them = [&] {
        for (std::size_t k = 1; k <= open; ++k)
            f(static_cast<std::uint32_t>(
                std::min(std::round(together_us / static_cast<double>(k)), 3.6e9)));
        open = 0;
        together_us = 0;
    };
    for (std::size_t k = 0, n = gap_count(r); k < n; ++k) {
        const std::uint32_t us = d.gaps[d.gap_offsets[i] + k];
        if (!is_buffered) { f(us); continue; }
        if (us > 0 && !is_unknown) end_them();
        together_us += us;
        ++open;
    }
    end_them();
}

/// Indices of a session's records in order of planned sends.
using session_steps = vector<std::size_t>;

/// The measured sessions of a repeat that were played to their ends, in order of their starts.
/// Sessions that began in the warm-up are not measured.
inline vector<session_steps> measured_sessions(const selection& which, const repeat_data& d,
                                               const time_interval* when = nullptr) {
    if (!d.plays_out) return {};
    const selects selected(which, d);
    vector<long long> scheduled;
    for (const record& r : d.records) scheduled.push_back(r.scheduled_ns);
    std::map<long long, std::size_t> by_number;
    vector<session_steps> all;
    for (const std::size_t i : order_of(scheduled)) {
        const auto at = by_number.emplace(d.records[i].conversation, all.size());
        if (at.second) all.emplace_back();
        all[at.first->second].push_back(i);
    }
    erase_if(all, [&](const session_steps& steps) {
        if (when && !when->holds(d.records[steps[0]].scheduled_ns)) return true;
        return any_of(steps, [&](std::size_t i) {
            return !is_measured(d.records[i]) || !selected.has(d.records[i]);
        });
    });
    return all;
}

/// Seconds in which steps of each session were due or in flight: the union of their times from
/// planned send to end. Infinite if one failed.
inline vector<double> session_times(const statistic_data& what, const repeat_data& d,
                                    timing_bound how = timing_bound::measured,
                                    const time_interval* when = nullptr) {
    vector<double> seconds;
    for (const session_steps& steps : measured_sessions(what.which, d, when)) {
        long long covered_to = 0, took = 0;
        bool any_failed = false;
        for (const std::size_t i : steps) {
            const record& r = d.records[i];
            any_failed = any_failed || (has_failed(r) && !(how == timing_bound::missing_best &&
                                                           is_cut_off(d, r)));
            const long long from = std::max(r.scheduled_ns, covered_to);
            covered_to = std::max(covered_to, r.scheduled_ns + times_of(d, r, how).to_end);
            took += std::max(0ll, covered_to - from);
        }
        seconds.push_back(any_failed ? infinity : static_cast<double>(took) / 1e9);
    }
    return seconds;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
