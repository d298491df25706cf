// metrics of requests and of repeats
#pragma once

#include "api/metrics.hpp"
#include "api/own_metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/metric/own_metrics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // count, max, merge, min, sort
#include <cmath>  // isnan
#include <cstddef>  // ptrdiff_t
#include <cstdint>  // uint32_t, uint64_t
#include <utility>  // move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The longest gap of one request, 0 without known gaps.
inline double longest_gap(const repeat_data& d, std::size_t i,
                          timing_bound how = timing_bound::measured) {
    const record& r = d.records[i];
    if (d.gaps_counted) {
        if (i >= d.longest_gaps.size()) return 0;
        const bool is_buffered =
            how == timing_bound::buffered || how == timing_bound::since_send;
        const double hidden =
            is_buffered ? static_cast<double>(early_ns_of(r, how)) / 1e9 : 0;
        return std::max(d.longest_gaps[i] / 1e6, hidden);
    }
    std::uint32_t longest = 0;
    for_each_gap(d, i, how, [&](std::uint32_t us) { longest = std::max(longest, us); });
    return longest / 1e6;
}

inline double value_by_user(metric_id m, const repeat_data& d, std::size_t i, timing_bound how);
/// A metric of one completed request in SI units, NaN without a value.
inline double request_value(metric_id m, const repeat_data& d, std::size_t i,
                            timing_bound how = timing_bound::measured) {
    const record& r = d.records[i];
    const request_times t = times_of(d, r, how);
    // Division matches how limits are written: a time on its limit equals it.
    const auto seconds = [](long long ns) { return static_cast<double>(ns) / 1e9; };
    const double ttft_s = seconds(t.to_first);
    const double e2e_s = seconds(t.to_end);
    const int after_first = paced_tokens(r, how);
    const double tpot_s = after_first > 0 ? seconds(t.first_to_last) / after_first : not_a_number;
    // Without time there is no speed, unless the client may have caused that.
    const auto speed = [&](double n, double s) {
        return s > 0 ? n / s : s == 0 && how == timing_bound::optimistic ? infinity : not_a_number;
    };
    switch (m) {
    case metric_id::ttft: return ttft_s;
    case metric_id::tpot: return tpot_s;
    case metric_id::itl:  // of one request: for predicates
        return gap_count(r) > 0 ? longest_gap(d, i, how) : not_a_number;
    case metric_id::e2e: return e2e_s;
    case metric_id::normalized_latency:
        return streamed_tokens(r) > 0 ? e2e_s / streamed_tokens(r) : not_a_number;
    case metric_id::ttft_per_prompt_token:
        return r.prompt_tokens > 0 ? ttft_s / r.prompt_tokens : not_a_number;
    case metric_id::ttft_from_send: return seconds(t.sent_to_first);
    case metric_id::first_turn_ttft:
    case metric_id::later_turn_ttft: return is_in_turns_of(m, r.turn) ? ttft_s : not_a_number;
    case metric_id::time_to_first_answer:
        return r.first_answer_ns > 0 ? seconds(t.to_answer) : not_a_number;
    case metric_id::second_token_gap:  // unknown for events of one read
        return r.second_token_ns > r.first_token_ns ? seconds(t.first_to_second) : not_a_number;
    case metric_id::prefill_speed:
        return r.prompt_tokens > 0 ? speed(r.prompt_tokens, ttft_s) : not_a_number;
    case metric_id::decode_speed: return speed(1, tpot_s);
    case metric_id::tokens_per_event:
        return r.events > 0 && r.token_source == token_origin::usage
                   ? static_cast<double>(streamed_tokens(r)) / r.events
                   : not_a_number;
    default: return is_own(m) ? value_by_user(m, d, i, how) : not_a_number;
    }
}

/// A request as a user's function sees it.
struct measured_request final : request_source {
    metric_id own;
    const repeat_data& d;
    std::size_t i;
    timing_bound how;
    vector<double> gaps_s{};
    bool is_known = true;
    measured_request(metric_id m, const repeat_data& of, std::size_t at, timing_bound b)
        : own(m), d(of), i(at), how(b) {}
    /// Its function reads more than it did for other requests.
    void learn(auto what) {
        if (is_read(own_row(own), what)) return;
        own_metrics.change(own_row(own), [&](own_metric_row& row) { add_read(row, what); });
    }
    double value(metric_id m) override {
        learn(m);
        return request_value(m, d, i, how);
    }
    /// Histograms do not know which gaps are this request's; neither does a repeat that kept none.
    long long gaps() override {
        learn(metric_id::itl);
        is_known = is_known && !d.gaps_counted && i < d.gap_offsets.size() &&
                   d.gap_offsets[i] + gap_count(d.records[i]) <= d.gaps.size();
        if (gaps_s.empty() && is_known)
            for_each_gap(d, i, how, [&](std::uint32_t us) { gaps_s.push_back(us / 1e6); });
        return static_cast<long long>(gaps_s.size());
    }
    double gap(long long k) override {
        return k >= 0 && k < gaps() ? gaps_s[static_cast<std::size_t>(k)] : not_a_number;
    }
    const record& read(counted what) override {
        learn(what);
        return d.records[i];
    }
    const char* label() override {
        const std::size_t part = d.records[i].part;
        return part < d.labels.size() ? d.labels[part].c_str() : "";
    }
};
/// A function that throws gives no value.
inline double value_by_user(metric_id m, const repeat_data& d, std::size_t i, timing_bound how) {
    measured_request seen(m, d, i, how);
    if (!own_row(m).value) return not_a_number;
    try {
        const double v = own_row(m).value(request_view(seen));
        return seen.is_known && is_value_of_user(v) ? v : not_a_number;
    } catch (...) {
        return not_a_number;
    }
}

/// Whether a completed request has what the metric needs.
inline bool has_value(metric_id m, const repeat_data& d, std::size_t i) {
    const metric_facts& f = facts_of(m);
    if (f.needs == value_needs::prompt_tokens && !is_of_requests(m))
        return d.records[i].prompt_tokens > 0;
    if (f.needs == value_needs::second_event) return gap_count(d.records[i]) > 0;
    if (f.needs == value_needs::cached_tokens) return tells_cached_tokens(d.records[i]);
    return f.needs == value_needs::nothing || !std::isnan(request_value(m, d, i));
}

/// Whether one measured request satisfies a predicate. Failed requests never do; a missing value
/// always does, unless it counts as the worst one.
inline bool satisfies(const list<predicate_step>& steps, const repeat_data& d, std::size_t i,
                      timing_bound how = timing_bound::measured) {
    if (d.records[i].status != request_status::ok)
        return how == timing_bound::missing_best && is_cut_off(d, d.records[i]);
    vector<bool> stack;
    for (const predicate_step& s : steps) {
        if (s.op == predicate_step::op_kind::compare) {
            const double v = request_value(s.metric, d, i, how);
            stack.push_back(std::isnan(v) ? how != timing_bound::missing_worst || !is_own(s.metric)
                            : s.at_most   ? v <= s.bound
                                          : v >= s.bound);
            continue;
        }
        const bool b = stack.back();
        stack.pop_back();
        stack.back() =
            s.op == predicate_step::op_kind::both ? (stack.back() && b) : (stack.back() || b);
    }
    return stack.back();
}

/// Whether an answer is right, or the same as the baseline's, if known.
inline const maybe<bool>& is_good_answer(metric_id m, const record& r) {
    return m == metric_id::same_answers ? r.same : r.right;
}
/// Whether a measured request counts in a fraction. Fractions of answers have only those that were
/// graded or compared.
inline bool counts_in(metric_id m, const repeat_data& d, const record& r) {
    return is_measured(r) && (!is_of_answers(m) || is_good_answer(m, r)) &&
           (m != metric_id::error_rate || !is_cut_off(d, r));
}
/// Whether such a request misses: a condition, a right answer, or any answer.
inline bool is_miss(const statistic_data& what, const repeat_data& d, std::size_t i,
                    timing_bound how = timing_bound::measured) {
    const record& r = d.records[i];
    return what.metric == metric_id::goodput ? !satisfies(what.where, d, i, how)
           : is_of_answers(what.metric)      ? !*is_good_answer(what.metric, r)
                                             : has_failed(r);
}
/// Calls `f(record, index)` for each request of a statistic that counts in its fraction.
template <class F>
void for_each_counted(const statistic_data& what, const repeat_data& d,
                      const time_interval* when, F&& f) {
    const selects selected(what, d, when);
    for (std::size_t i = 0; i < d.records.size(); ++i)
        if (selected(d.records[i]) && counts_in(what.metric, d, d.records[i])) f(d.records[i], i);
}
/// Misses of a fraction, one per counted request, in order. Throws std::invalid_argument for
/// goodput without a condition, which no plan has checked if a user asks a result for it.
inline vector<bool> misses_of(const statistic_data& what, const repeat_data& d,
                              timing_bound how = timing_bound::measured,
                              const time_interval* when = nullptr) {
    if (what.metric == metric_id::goodput && !is_condition(what.where))
        refuse({str(what.name), ": ", no_condition_text});
    vector<bool> misses;
    for_each_counted(what, d, when, [&](const record&, std::size_t i) {
        misses.push_back(is_miss(what, d, i, how));
    });
    return misses;
}

/// The pooled gaps of repeats by rank: each length and its number.
class ranked_gaps {
public:
    ranked_gaps() = default;
    explicit ranked_gaps(const repeat_data& d, timing_bound how = timing_bound::measured,
                         const selection& which = {}, const time_interval* when = nullptr) {
        if (d.gaps_counted) {
            n_ = d.pooled_gaps.size();
            sum_us_ = d.pooled_gaps.sum();
            d.pooled_gaps.for_each([this](double us, auto n) { sorted_.push_back({us, n}); });
            return;
        }
        const selects selected(which, d, when);
        std::uint32_t longest = 0;
        const auto each = [&](auto&& f) {
            for (std::size_t i = 0; i < d.records.size(); ++i)
                if (selected.completed(d.records[i])) for_each_gap(d, i, how, f);
        };
        each([&](std::uint32_t us) { ++n_; longest = std::max(longest, us); });
        // There may be too many to sort, but most are below a second.
        vector<std::uint64_t> below(
            std::min<std::uint64_t>({n_, std::uint64_t{longest} + 1, 1000000}));
        vector<std::uint32_t> others;
        each([&](std::uint32_t us) {
            sum_us_ += us;
            if (us < below.size()) ++below[us];
            else others.push_back(us);
        });
        std::sort(others.begin(), others.end());
        for (std::size_t us = 0; us < below.size(); ++us)
            if (below[us] > 0) sorted_.push_back({static_cast<double>(us), below[us]});
        for (const std::uint32_t us : others) sorted_.push_back({static_cast<double>(us), 1});
    }
    /// Adds another repeat.
    void add(const ranked_gaps& o) {
        vector<equal_gaps> both(sorted_.size() + o.sorted_.size());
        std::merge(sorted_.begin(), sorted_.end(), o.sorted_.begin(), o.sorted_.end(), both.begin(),
                   [](const equal_gaps& a, const equal_gaps& b) { return a.us < b.us; });
        sorted_ = std::move(both);
        n_ += o.n_;
        sum_us_ += o.sum_us_;
    }
    std::uint64_t size() const { return n_; }
    /// In seconds.
    double at(std::uint64_t rank) const {
        auto g = sorted_.begin();
        while (rank >= g->n) rank -= (g++)->n;
        return g->us / 1e6;
    }
    std::uint64_t count_beyond(double seconds) const {
        std::uint64_t beyond = 0;
        for (const equal_gaps& g : sorted_) beyond += g.us / 1e6 > seconds ? g.n : 0;
        return beyond;
    }
    double mean() const {
        return n_ == 0 ? not_a_number
                       : static_cast<double>(sum_us_) / static_cast<double>(n_) / 1e6;
    }

private:
    struct equal_gaps {
        double us;
        std::uint64_t n;
    };
    vector<equal_gaps> sorted_{};
    std::uint64_t n_ = 0, sum_us_ = 0;
};

/// The sorted values of a metric. Failed requests are infinite or zero.
struct sorted_values {
    vector<double> all{};
    ranked_gaps gaps{};  // of itl; `all` then has only failed requests, which follow
    double mean_of_completed = not_a_number;
    std::size_t completed = 0;  // values behind the mean, except gaps
    /// Adds another repeat.
    void add(const sorted_values& o) {
        vector<double> both(all.size() + o.all.size());
        std::merge(all.begin(), all.end(), o.all.begin(), o.all.end(), both.begin());
        all = std::move(both);
        gaps.add(o.gaps);
        const auto of_both = {std::pair(mean_of_completed, static_cast<double>(completed)),
                              std::pair(o.mean_of_completed, static_cast<double>(o.completed))};
        mean_of_completed = gaps.size() > 0 ? gaps.mean() : weighted_mean(of_both);
        completed += o.completed;
    }
    std::size_t size() const { return gaps.size() + all.size(); }
    double at(std::size_t rank) const {
        return rank < gaps.size() ? gaps.at(rank) : all[rank - gaps.size()];
    }
};
/// The mean gap where first events may have come earlier. Later events do not change it.
inline double moved_mean_gap(const repeat_data& d, timing_bound how, const selects& selected) {
    double seconds = 0, n = 0;
    for (const record& r : d.records) {
        if (!selected.completed(r) || gap_count(r) == 0) continue;
        const long long ns = times_of(d, r, how).first_to_last - textless_ns_of(r, how);
        seconds += static_cast<double>(ns) / 1e9;
        n += static_cast<double>(gap_count(r));
    }
    return n > 0 ? seconds / n : not_a_number;
}
/// The values of a metric in one repeat, in order of planned sends, and sorted. Failed requests
/// have the worst value, as have sessions; completed ones without a value are left out.
struct request_values {
    vector<double> in_order{};  // without gaps
    sorted_values sorted{};
};
/// Adds the values of single requests, and returns how many failed.
inline std::size_t add_values(vector<double>& into, metric_id m, bool fills, const repeat_data& d,
                              timing_bound how, const selects& selected) {
    std::size_t failed = 0;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        if (!selected(d.records[i])) continue;
        const bool ok = d.records[i].status == request_status::ok;
        if (how == timing_bound::missing_best && is_cut_off(d, d.records[i])) continue;
        failed += !ok;
        if (pools_gaps(m)) continue;
        double value = ok ? request_value(m, d, i, how) : is_speed(m) ? 0 : infinity;
        if (std::isnan(value) && fills)
            value = (how == timing_bound::missing_worst) == is_speed(m) ? 0 : infinity;
        if (!std::isnan(value)) into.push_back(value);
    }
    return failed;
}
/// `when`: if given, only requests planned in it.
inline request_values request_values_of(const statistic_data& what, const repeat_data& d,
                                        timing_bound how = timing_bound::measured,
                                        const time_interval* when = nullptr) {
    const metric_id m = what.metric;
    const selects selected(what, d, when);
    request_values values;
    sorted_values& v = values.sorted;
    // Whether a request of which a user's function has no value counts as the worst or best one.
    const bool fills = is_own(m) && what.kind != statistic_kind::mean &&
                       (how == timing_bound::missing_worst || how == timing_bound::missing_best);
    if (is_of_sessions(m)) values.in_order = session_times(what, d, how, when);
    const std::size_t failed =
        is_of_sessions(m) ? static_cast<std::size_t>(std::count(
                                values.in_order.begin(), values.in_order.end(), infinity))
                          : add_values(values.in_order, m, fills, d, how, selected);
    if (pools_gaps(m)) {
        v.all.assign(failed, infinity);
        v.gaps = ranked_gaps(d, how, what.which, when);
        v.mean_of_completed =
            how == timing_bound::measured ? v.gaps.mean() : moved_mean_gap(d, how, selected);
        return values;
    }
    v.all = values.in_order;
    std::sort(v.all.begin(), v.all.end());
    v.completed = v.all.size() - failed;
    // In this order, as that of the records varies. Failed ones come first or last.
    const auto first =
        v.all.begin() + static_cast<std::ptrdiff_t>(is_speed(m) ? failed : 0);
    v.mean_of_completed = mean_of({first, first + static_cast<std::ptrdiff_t>(v.completed)});
    return values;
}
/// The fraction of gaps over a bound in seconds. A failed request has one.
inline double fraction_of_gaps_beyond(double bound, const sorted_values& v) {
    const std::uint64_t over = v.gaps.count_beyond(bound) + v.all.size();
    return v.size() == 0 ? 0 : static_cast<double>(over) / static_cast<double>(v.size());
}
/// A mean, a percentile or an extreme.
inline double statistic_among(const statistic_data& what, const sorted_values& v) {
    if (what.kind == statistic_kind::mean) return v.mean_of_completed;
    if (v.size() == 0) return not_a_number;
    return v.at(what.kind == statistic_kind::max   ? v.size() - 1
                : what.kind == statistic_kind::min ? 0
                                                   : nearest_rank_of(v.size(), what.q));
}

/// The misses of a fraction, and all its requests.
struct fraction_counts {
    double misses = 0, all = 0;
    void add(const vector<bool>& more) {
        misses += static_cast<double>(std::count(more.begin(), more.end(), true));
        all += static_cast<double>(more.size());
    }
    void add(const fraction_counts& o) {
        misses += o.misses;
        all += o.all;
    }
    double value(metric_id m) const {
        if (all == 0) return not_a_number;
        return m == metric_id::error_rate ? misses / all : 1 - misses / all;
    }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
