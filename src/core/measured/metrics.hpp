// metrics of requests and of repeats
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // max, sort, min, count
#include <cmath>  // isnan
#include <cstdint>  // uint32_t, uint64_t
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The longest gap of one request, 0 where it has none.
inline double longest_gap(const repeat_data& d, std::size_t i) {
    if (d.gaps_counted) return d.longest_gaps[i] / 1e6;
    std::uint32_t longest = 0;
    for (std::size_t k = 0; k < gap_count(d.records[i]); ++k)
        longest = std::max(longest, d.gaps[d.gap_offsets[i] + k]);
    return longest / 1e6;
}

/// A metric of one completed request in SI units, NaN where it has none.
inline double request_value(metric_id m, const repeat_data& d, std::size_t i) {
    const record& r = d.records[i];
    // Divided, as the limits are written: a time on its limit is equal to it.
    const auto seconds = [](long long ns) { return static_cast<double>(ns) / 1e9; };
    const double ttft_s = seconds(r.first_token_ns - r.scheduled_ns);
    const double e2e_s = seconds(r.end_ns - r.scheduled_ns);
    const int after_first = r.output_tokens - r.first_event_tokens;
    const double tpot_s =
        after_first > 0 ? seconds(r.last_token_ns - r.first_token_ns) / after_first : not_a_number;
    switch (m) {
    case metric_id::ttft: return ttft_s;
    case metric_id::tpot: return tpot_s;
    case metric_id::itl: return longest_gap(d, i);  // of one request: in predicates
    case metric_id::e2e: return e2e_s;
    case metric_id::normalized_latency:
        return r.output_tokens > 0 ? e2e_s / r.output_tokens : not_a_number;
    case metric_id::ttft_per_prompt_token:
        return r.prompt_tokens > 0 ? ttft_s / r.prompt_tokens : not_a_number;
    case metric_id::ttft_from_send: return seconds(r.first_token_ns - r.sent_ns);
    case metric_id::first_turn_ttft: return r.turn == 0 ? ttft_s : not_a_number;
    case metric_id::later_turn_ttft: return r.turn > 0 ? ttft_s : not_a_number;
    case metric_id::prefill_speed:
        return r.prompt_tokens > 0 && ttft_s > 0 ? r.prompt_tokens / ttft_s : not_a_number;
    case metric_id::decode_speed: return tpot_s > 0 ? 1 / tpot_s : not_a_number;
    default: return not_a_number;
    }
}

/// Whether a completed request brought what the metric needs of it.
inline bool has_value(metric_id m, const repeat_data& d, std::size_t i) {
    const metric_facts& f = facts_of(m);
    if (f.needs == value_needs::prompt_tokens) return d.records[i].prompt_tokens > 0;
    if (f.needs == value_needs::second_event) return gap_count(d.records[i]) > 0;
    return !is_of_requests(m) || !std::isnan(request_value(m, d, i));
}

/// Values of a per-request metric in one repeat. Failed requests have no value but are counted: in
/// quantiles they are the worst one.
struct metric_sample {
    std::vector<double> values{};
    std::size_t failed = 0;
    std::size_t without_value = 0;
};
inline metric_sample sample_of(metric_id m, const repeat_data& d) {
    metric_sample s;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const record& r = d.records[i];
        if (!is_part_of(m, r)) continue;
        if (r.status != request_status::ok) {
            ++s.failed;
        } else if (!facts_of(m).is_of_gaps) {  // whose values are pooled, see ranked_gaps
            const double v = request_value(m, d, i);
            if (std::isnan(v)) ++s.without_value;
            else s.values.push_back(v);
        }
    }
    return s;
}

/// Values of a metric in the order of the planned sends; failed requests have the worst one.
inline std::vector<double> values_in_order(metric_id id, const repeat_data& d) {
    std::vector<double> values;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        if (!is_part_of(id, d.records[i])) continue;
        const bool ok = d.records[i].status == request_status::ok;
        const double v = ok ? request_value(id, d, i) : is_speed(id) ? 0 : infinity;
        if (!std::isnan(v)) values.push_back(v);
    }
    return values;
}

/// Whether one measured request satisfies a predicate. Failed ones never do; a metric that the
/// request has no value for is satisfied.
inline bool satisfies(const list<predicate_step>& steps, const repeat_data& d, std::size_t i) {
    if (d.records[i].status != request_status::ok) return false;
    std::vector<bool> stack;
    for (const predicate_step& s : steps) {
        if (s.op == predicate_step::op_kind::compare) {
            const double v = request_value(s.metric, d, i);
            stack.push_back(std::isnan(v) || (s.at_most ? v <= s.bound : v >= s.bound));
            continue;
        }
        const bool b = stack.back();
        stack.pop_back();
        stack.back() =
            s.op == predicate_step::op_kind::both ? (stack.back() && b) : (stack.back() || b);
    }
    return stack.back();
}

/// Misses of a share metric, one per measured request in order.
inline std::vector<bool> misses_of(const statistic_data& what, const repeat_data& d) {
    std::vector<bool> misses;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        if (!is_measured(d.records[i])) continue;
        misses.push_back(what.metric == metric_id::goodput
                             ? !satisfies(what.where, d, i)
                             : d.records[i].status != request_status::ok);
    }
    return misses;
}

/// Tokens or requests per second inside the steady window. An event weighs its request's output
/// tokens over its events; failed requests bring nothing; warm-up requests count when their tokens
/// arrive inside. Of decoding, an event after the first one weighs those tokens over those events.
/// Prompt tokens arrive with the first token; where the server did not tell them there is no value.
inline double window_rate(metric_id m, const repeat_data& d) {
    const double seconds = static_cast<double>(d.window_to_ns - d.window_from_ns) * 1e-9;
    if (!(seconds > 0)) return not_a_number;
    const auto inside = [&](long long t) { return t >= d.window_from_ns && t < d.window_to_ns; };
    std::vector<double> parts;  // added up in order of size, whatever that of the records is
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const record& r = d.records[i];
        if (r.status != request_status::ok) continue;
        if (m == metric_id::request_throughput) {
            parts.push_back(inside(r.end_ns));
            continue;
        }
        const bool decodes = m == metric_id::decode_throughput;
        if (m == metric_id::prefill_throughput && r.prompt_tokens == 0) return not_a_number;
        if ((m == metric_id::total_throughput || m == metric_id::prefill_throughput) &&
            inside(r.first_token_ns))
            parts.push_back(r.prompt_tokens);
        if (m == metric_id::prefill_throughput || (decodes && r.events < 2)) continue;
        const double weight =
            decodes ? std::max(r.output_tokens - r.first_event_tokens, 0) / (r.events - 1.0)
                    : static_cast<double>(r.output_tokens) / r.events;
        long long offset_us = 0;
        long long arrived = !decodes && inside(r.first_token_ns);
        if (d.gap_offsets[i] == not_listed)  // all of them, or none
            arrived = inside(r.first_token_ns) ? r.events - decodes : 0;
        else
            for (std::size_t k = 0; k < gap_count(r); ++k) {
                offset_us += d.gaps[d.gap_offsets[i] + k];
                arrived += inside(r.first_token_ns + offset_us * 1000);
            }
        parts.push_back(weight * static_cast<double>(arrived));
    }
    std::sort(parts.begin(), parts.end());
    double sum = 0;
    for (const double part : parts) sum += part;
    return sum / seconds;
}

/// The pooled gaps of a repeat by rank. There may be too many for a sorted copy: how often each
/// value below a second occurs is counted, a longer one or one of few is sorted in.
class ranked_gaps {
public:
    ranked_gaps() = default;
    explicit ranked_gaps(const repeat_data& d) : counts_(d.pooled_gaps) {
        if (d.gaps_counted) return;
        std::uint32_t longest = 0;
        const auto each = [&](auto&& f) {
            for (std::size_t i = 0; i < d.records.size(); ++i)
                for (std::size_t k = 0; is_pooled(d.records[i]) && k < gap_count(d.records[i]); ++k)
                    f(d.gaps[d.gap_offsets[i] + k]);
        };
        each([&](std::uint32_t us) { ++n_; longest = std::max(longest, us); });
        short_.resize(std::min<std::uint64_t>({n_, std::uint64_t{longest} + 1, 1000000}));
        each([&](std::uint32_t us) {
            sum_us_ += us;
            if (us < short_.size()) ++short_[us];
            else long_.push_back(us);
        });
        std::sort(long_.begin(), long_.end());
    }
    std::uint64_t size() const { return n_ + counts_.size(); }
    /// Seconds.
    double at(std::uint64_t rank) const {
        if (counts_.size() > 0) return counts_.at(rank) / 1e6;
        for (std::size_t us = 0; us < short_.size(); ++us) {
            if (rank < short_[us]) return static_cast<double>(us) / 1e6;
            rank -= short_[us];
        }
        return long_[rank] / 1e6;
    }
    double mean() const {
        return size() == 0 ? not_a_number
                           : static_cast<double>(sum_us_ + counts_.sum_us()) /
                                 static_cast<double>(size()) / 1e6;
    }

private:
    gap_counts counts_{};
    std::vector<std::uint64_t> short_{};
    std::vector<std::uint32_t> long_{};
    std::uint64_t n_ = 0, sum_us_ = 0;
};

/// The values of a metric in order of size, the failed requests' infinite or zero ones among them.
struct sorted_values {
    std::vector<double> all{};
    ranked_gaps gaps{};  // of itl; then `all` has the failed ones alone, which come after them
    double mean_of_completed = not_a_number;
    std::size_t size() const { return gaps.size() + all.size(); }
    double at(std::size_t rank) const {
        return rank < gaps.size() ? gaps.at(rank) : all[rank - gaps.size()];
    }
};
inline sorted_values sorted_values_of(metric_id m, const repeat_data& d) {
    metric_sample s = sample_of(m, d);
    sorted_values v;
    if (facts_of(m).is_of_gaps) {
        v.gaps = ranked_gaps(d);
        v.mean_of_completed = v.gaps.mean();
    } else {
        std::sort(s.values.begin(), s.values.end());
        v.mean_of_completed = mean_of(s.values);  // in this order, whatever that of the records is
    }
    s.values.insert(is_speed(m) ? s.values.begin() : s.values.end(), s.failed,
                    is_speed(m) ? 0.0 : infinity);
    v.all = std::move(s.values);
    return v;
}
inline double value_among(const statistic_data& what, const sorted_values& v) {
    if (what.kind == statistic_kind::mean) return v.mean_of_completed;
    if (v.size() == 0) return not_a_number;
    if (what.kind == statistic_kind::max) return v.at(v.size() - 1);
    if (what.kind == statistic_kind::min) return v.at(0);
    return v.at(nearest_rank_of(v.size(), what.q));
}

/// The value of a statistic in one repeat, SI units; NaN where it has none.
inline double evaluate(const statistic_data& what, const repeat_data& d) {
    if (is_share(what.metric)) {
        const std::vector<bool> misses = misses_of(what, d);
        if (misses.empty()) return not_a_number;
        const double share = static_cast<double>(std::count(misses.begin(), misses.end(), true)) /
                             static_cast<double>(misses.size());
        return what.metric == metric_id::goodput ? 1 - share : share;
    }
    if (is_throughput(what.metric)) return window_rate(what.metric, d);
    if (is_of_start(what.metric)) return d.startup_s;
    return value_among(what, sorted_values_of(what.metric, d));
}

/// Several at once: neighbours of one metric share the sorting, which takes most of the time.
inline std::vector<double> evaluate(const std::vector<statistic_data>& whats,
                                    const repeat_data& d) {
    std::vector<double> values;
    sorted_values sorted;
    for (std::size_t i = 0; i < whats.size(); ++i) {
        const metric_id m = whats[i].metric;
        if (!is_of_requests(m)) { values.push_back(evaluate(whats[i], d)); continue; }
        if (i == 0 || whats[i - 1].metric != m) sorted = sorted_values_of(m, d);
        values.push_back(value_among(whats[i], sorted));
    }
    return values;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
