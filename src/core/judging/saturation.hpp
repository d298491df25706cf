// servers that cannot keep up
#pragma once

#include "api/result.hpp"
#include "core/base/statistics.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/evidence.hpp"

#include <algorithm>  // sort, upper_bound, max
#include <cmath>  // sqrt, pow, isnan
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Slope of the means of ten batches in order, and its t value (8 degrees of freedom).
struct trend {
    double per_batch = 0, t = 0;
};
inline trend trend_of(const std::vector<double>& values) {
    constexpr std::size_t batches = 10;
    std::vector<double> means;
    for (std::size_t b = 0; b < batches; ++b)
        means.push_back(mean_of({values.begin() + static_cast<long>(b * values.size() / batches),
                                 values.begin() +
                                     static_cast<long>((b + 1) * values.size() / batches)}));
    const double center = mean_of(means), middle = (batches - 1) / 2.0;
    double xy = 0, xx = 0, residual = 0;
    for (std::size_t b = 0; b < batches; ++b) {
        xy += (static_cast<double>(b) - middle) * (means[b] - center);
        xx += (static_cast<double>(b) - middle) * (static_cast<double>(b) - middle);
    }
    trend r;
    r.per_batch = xy / xx;
    for (std::size_t b = 0; b < batches; ++b) {
        const double fitted = center + r.per_batch * (static_cast<double>(b) - middle);
        residual += (means[b] - fitted) * (means[b] - fitted);
    }
    const double error = std::sqrt(residual / (batches - 2) / xx);
    r.t = error > 0 ? r.per_batch / error : r.per_batch > 0 ? infinity : 0;
    return r;
}

/// How the load outgrew the server in one repeat, nothing where that is not shown. Requests in
/// flight must have grown by a tenth of the arrivals, and by more than the random walk does that a
/// server at exactly its capacity makes of this traffic (level 0.1 %); ttft must have grown with
/// them. The time that the first answers took is left out: until then every load fills up.
inline cause oversaturation_of(const repeat_data& d, double arrival_cv2) {
    std::vector<long long> ends;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        ends.push_back(d.records[i].end_ns);
        order.push_back(i);
    }
    std::sort(ends.begin(), ends.end());
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const long long at = d.records[a].scheduled_ns, other = d.records[b].scheduled_ns;
        return at != other ? at < other : a < b;
    });
    std::vector<double> early;
    for (std::size_t k = 0; k < order.size() / 4; ++k)
        if (const record& r = d.records[order[k]]; r.status == request_status::ok)
            early.push_back(static_cast<double>(r.end_ns - r.scheduled_ns));
    if (early.empty()) return {};
    std::sort(early.begin(), early.end());
    const long long filled = d.records[order[0]].scheduled_ns +
                             static_cast<long long>(nearest_rank(early, 0.5));
    std::vector<double> in_flight, ttft_s, tokens;
    for (std::size_t k = 0; k < order.size(); ++k) {
        const record& r = d.records[order[k]];
        if (!is_measured(r) || r.scheduled_ns < filled) continue;
        const auto ended = std::upper_bound(ends.begin(), ends.end(), r.scheduled_ns);
        in_flight.push_back(static_cast<double>(k + 1) -
                            static_cast<double>(ended - ends.begin()));
        if (r.status != request_status::ok) continue;
        ttft_s.push_back(static_cast<double>(r.first_token_ns - r.scheduled_ns) * 1e-9);
        tokens.push_back(r.output_tokens);
    }
    const double n = static_cast<double>(in_flight.size());
    if (n < 40 || ttft_s.size() < 20) return {};
    const double work_cv2 = sample_variance(tokens) / std::pow(std::max(1.0, mean_of(tokens)), 2);
    // The slope over a random walk has a variance of 6/5 n; arrivals that start and end on time, as
    // planned ones do, 1/5 n.
    const double wandering = std::sqrt(n * (0.2 * arrival_cv2 + 1.2 * work_cv2));
    const trend grown = trend_of(in_flight), slower = trend_of(ttft_s);
    const double growth = 10 * grown.per_batch;
    const double t_limit = 4.501;  // Student t, 8 degrees of freedom, 0.1 %
    if (growth <= std::max(0.1 * n, 3.09 * wandering) || grown.t < t_limit || slower.t < t_limit)
        return {};
    return {because::over_saturated, {0, growth, n, 10 * slower.per_batch}};
}

/// Why the load was more than the server can take, nothing where that is not shown in most repeats.
inline cause over_saturation_of(const evidence& e, const arm_list& arms) {
    if (std::isnan(e.arrival_cv2)) return {};
    for (const auto* arm : arms) {
        std::size_t shown = 0;
        cause example;
        for (const repeat_data& d : *arm)
            if (cause why = oversaturation_of(d, e.arrival_cv2)) {
                ++shown;
                example = std::move(why);
            }
        if (2 * shown <= arm->size()) continue;
        example.numbers[0] = arm == &e.baseline;
        return example;
    }
    return {};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
