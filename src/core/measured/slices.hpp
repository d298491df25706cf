// the values of two variants that were loaded at once, by slices of their common time
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/time_interval.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/timing_bounds.hpp"

#include <algorithm>  // clamp, max, min, sort
#include <cmath>  // floor, isnan
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr double least_slice_s = 5, answers_of_slice = 3;
inline constexpr std::size_t least_slices_at_once = 8, most_slices_at_once = 24;  // of a repeat

/// Seconds of the shortest slice: several typical answers, since those that span slices make
/// neighbours alike.
inline double shortest_slice_s(const repeat_data& a, const repeat_data& b) {
    vector<double> seconds;
    for (const repeat_data* d : {&a, &b})
        for (const record& r : d->records)
            if (is_pooled(r)) seconds.push_back(static_cast<double>(r.end_ns - r.sent_ns) * 1e-9);
    std::sort(seconds.begin(), seconds.end());
    const double typical = seconds.empty() ? 0 : nearest_rank(seconds, 0.5);
    return std::max(least_slice_s, answers_of_slice * typical);
}

/// Values of one variant and their slices. A mean of requests or gaps, or a fraction of requests,
/// has one value for each; a rate has one for each slice.
struct sliced_values {
    vector<double> values{};
    vector<std::size_t> slices{};  // of each value
    vector<long long> questions{};  // of each answer
    void add(double value, std::size_t slice) {
        values.push_back(value);
        slices.push_back(slice);
    }
    void add(const sliced_values& o, std::size_t first) {
        for (std::size_t i = 0; i < o.values.size(); ++i) add(o.values[i], first + o.slices[i]);
        questions.insert(questions.end(), o.questions.begin(), o.questions.end());
    }
    double mean() const { return mean_of(values); }
    double count() const { return static_cast<double>(values.size()); }
};

/// Both variants' values of a repeat, or of several.
struct values_at_once {
    sliced_values mine{}, other{};
    std::size_t slices = 0;
    bool is_fraction = false;
    double window_s = 0, needed_s = 0;  // of a repeat
    /// Adds the slices of another repeat.
    void add(const values_at_once& o) {
        mine.add(o.mine, slices);
        other.add(o.other, slices);
        slices += o.slices;
    }
};
inline void add_variant(sliced_values& to, const statistic_data& what, const repeat_data& d,
                        timing_bound how, const time_interval& window, std::size_t slices) {
    const metric_id m = what.metric;
    const auto edge = [&](std::size_t i) {
        return window.from_ns() + static_cast<long long>(window.length_ns() *
                                                         static_cast<double>(i) /
                                                         static_cast<double>(slices));
    };
    if (is_throughput(m)) {
        for (std::size_t i = 0; i < slices; ++i)
            to.add(rate_in(m, d, time_interval::between(edge(i), edge(i + 1)), how, what.which), i);
        return;
    }
    const selects selected(what, d);
    const bool is_mean = what.kind == statistic_kind::mean;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const record& r = d.records[i];
        if (!selected(r)) continue;
        const double at = static_cast<double>(r.scheduled_ns - window.from_ns()) /
                          window.length_ns() * static_cast<double>(slices);
        const auto slice =
            static_cast<std::size_t>(std::clamp(at, 0.0, static_cast<double>(slices - 1)));
        const bool ok = r.status == request_status::ok;
        if (is_request_fraction(m)) {
            if (!counts_in(m, d, r)) continue;
            to.add(is_miss(what, d, i, how) == (m == metric_id::error_rate), slice);
            if (is_of_answers(m)) to.questions.push_back(question_of(r));
        } else if (!ok) {
            if (!is_mean) to.add(is_speed(m) ? 0 : infinity, slice);
        } else if (pools_gaps(m)) {
            for_each_gap(d, i, how, [&](std::uint32_t us) { to.add(us / 1e6, slice); });
        } else if (const double v = request_value(m, d, i, how); !std::isnan(v)) {
            to.add(v, slice);
        }
    }
}

/// `how`: of the candidate `mine`. Too few slices for a verdict have no values.
inline values_at_once slices_at_once_of(const statistic_data& what, const repeat_data& mine,
                                        const repeat_data& other, timing_bound how) {
    // A throughput is compared while both have their load: whoever has sent all requests has none,
    // which says nothing of its server.
    const auto window =
        is_throughput(what.metric)
            ? mine.window.shared_with(other.window)
            : time_interval::between(std::min(mine.window.from_ns(), other.window.from_ns()),
                                     std::max(mine.window.to_ns(), other.window.to_ns()));
    const double shortest = shortest_slice_s(mine, other);
    values_at_once v;
    v.window_s = window.seconds();
    v.needed_s = shortest * static_cast<double>(least_slices_at_once);
    v.is_fraction = is_request_fraction(what.metric);
    const double fit = std::floor(v.window_s / shortest + 0.5);
    if (fit < static_cast<double>(least_slices_at_once)) return v;
    v.slices = std::min(static_cast<std::size_t>(fit), most_slices_at_once);
    add_variant(v.mine, what, mine, how, window, v.slices);
    add_variant(v.other, what, other, opposite(how), window, v.slices);
    return v;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
