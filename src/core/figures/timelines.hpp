// timelines, and the points of drawings
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/judging/measurements.hpp"

#include <algorithm>  // min, max, sort
#include <cmath>  // floor, isfinite, log10, pow
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

struct curve_point {
    double x = 0, y = 0;
};

/// 1, 2 or 5 times a power of ten, at least `least`.
inline double round_step(double least) {
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (const double digit : {1.0, 2.0, 5.0})
        if (digit * power >= least * (1 - 1e-9)) return digit * power;
    return 10 * power;
}
/// The smallest step of at least `least` seconds that reads well on a time axis.
inline double elapsed_step(double least) {
    for (const double step : {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
                              600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0})
        if (step >= least) return step;
    return round_step(least);
}

/// The values of a server's page at each reading, NaN where the page has none.
struct server_timeline {
    vector<double> at{};  // seconds, as those of a repeat_timeline
    vector<double> running{}, waiting{}, kv_usage{}, power{}, utilisation{}, temperature{};
    vector<double> clock_ghz{};
    vector<double> queue_time{};  // the mean since the previous reading
};
/// One repeat in windows of equal length. Seconds count from the start of its measured part.
struct repeat_timeline {
    vector<double> asked{}, sent{}, failed{}, in_flight{}, tokens{};  // rates a second
    vector<double> ttft_p50{}, ttft_p90{};  // of requests planned in the window
    vector<double> good{};  // fraction of those requests
    server_timeline server{};
};
struct timeline_grid {
    double from = 0, step = 1;  // seconds
    std::size_t windows = 0;
    double middle(std::size_t i) const { return from + (static_cast<double>(i) + 0.5) * step; }
};
/// Seconds since the measured part began, or since the first planned send if it never began.
inline double seconds_into(const repeat_data& d, long long ns) {
    const bool began = d.window.from_ns() > 0 || d.records.empty();
    const long long origin = began ? d.window.from_ns() : d.records[0].scheduled_ns;
    return static_cast<double>(ns - origin) * 1e-9;
}

/// Windows that cover every repeat: 5 s, shorter for short runs, longer for long ones.
inline timeline_grid grid_of(const measurements& e) {
    double from = infinity, to = -infinity;
    for (const repeat_data& d : repeats_of(e))
        for (const record& r : d.records) {
            from = std::min(from, seconds_into(d, r.scheduled_ns));
            to = std::max({to, seconds_into(d, r.scheduled_ns), seconds_into(d, r.end_ns)});
        }
    if (!(to > from)) return {};
    timeline_grid grid;
    const double length = to - from;
    grid.step = elapsed_step(length >= 100 ? std::max(5.0, length / 150) : length / 30);
    grid.from = std::floor(from / grid.step) * grid.step;
    grid.windows = static_cast<std::size_t>((to - grid.from) / grid.step) + 1;
    return grid;
}

inline server_timeline server_timeline_of(const repeat_data& d) {
    server_timeline t;
    const page_reading* before = nullptr;
    for (const page_reading& r : d.server.readings) {
        t.at.push_back(seconds_into(d, r.at_ns));
        for (const auto& [into, q] :
             {std::pair{&t.running, server_quantity::running},
              std::pair{&t.waiting, server_quantity::waiting},
              std::pair{&t.kv_usage, server_quantity::kv_usage},
              std::pair{&t.power, server_quantity::power},
              std::pair{&t.utilisation, server_quantity::utilisation},
              std::pair{&t.temperature, server_quantity::temperature}})
            into->push_back(r.value(q));
        t.clock_ghz.push_back(r.value(server_quantity::clock) / 1e9);
        const reading_span since{before ? before : &r, &r};
        const double n = since.change_of_count(server_quantity::queue_time);
        t.queue_time.push_back(n > 0 ? since.change(server_quantity::queue_time) / n
                                     : not_a_number);
        before = &r;
    }
    return t;
}

inline repeat_timeline timeline_of(const repeat_data& d, const timeline_grid& grid,
                                   const list<predicate_step>& good) {
    repeat_timeline t;
    t.server = server_timeline_of(d);
    const std::size_t n = grid.windows;
    for (auto* counts : {&t.asked, &t.sent, &t.failed, &t.in_flight, &t.tokens})
        counts->assign(n, 0);
    vector<vector<double>> ttft(n);
    vector<double> planned(n), met(n);
    const auto window = [&](double s) {
        return std::min(static_cast<std::size_t>(std::max(0.0, (s - grid.from) / grid.step)),
                        n - 1);
    };
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const record& r = d.records[i];
        const bool ok = r.status == request_status::ok;
        const std::size_t due = window(seconds_into(d, r.scheduled_ns));
        t.asked[due] += 1 / grid.step;
        if (has_failed(r)) t.failed[due] += 1 / grid.step;
        if (is_measured(r) && !has_left(r)) {
            ++planned[due];
            met[due] += good.size() > 0 && satisfies(good, d, i);
            ttft[due].push_back(ok ? request_value(metric_id::ttft, d, i) : infinity);
        }
        if (r.sent_ns == 0) continue;
        const double sent = seconds_into(d, r.sent_ns);
        const double end = std::max(sent, seconds_into(d, r.end_ns));
        t.sent[window(sent)] += 1 / grid.step;
        for (std::size_t w = window(sent); w <= window(end); ++w) {
            const double begins = grid.from + static_cast<double>(w) * grid.step;
            t.in_flight[w] +=
                std::max(0.0, std::min(end, begins + grid.step) - std::max(sent, begins)) /
                grid.step;
        }
        if (!ok || r.events == 0) continue;
        const double weight = static_cast<double>(streamed_tokens(r)) / r.events / grid.step;
        double at = seconds_into(d, r.first_token_ns);
        t.tokens[window(at)] += weight;
        const bool listed = d.gap_offsets[i] != not_listed;
        const double even = static_cast<double>(r.last_token_ns - r.first_token_ns) /
                            std::max(1.0, static_cast<double>(r.events - 1)) / 1000;
        for (std::size_t k = 0; k < gap_count(r); ++k)  // evenly spread, where only counted
            t.tokens[window(at += (listed ? d.gaps[d.gap_offsets[i] + k] : even) * 1e-6)] += weight;
    }
    for (std::size_t w = 0; w < n; ++w) {
        std::sort(ttft[w].begin(), ttft[w].end());
        const auto quantile = [&](double q) {
            const double v = ttft[w].empty() ? not_a_number : nearest_rank(ttft[w], q);
            return std::isfinite(v) ? v : not_a_number;
        };
        t.ttft_p50.push_back(quantile(0.5));
        t.ttft_p90.push_back(quantile(0.9));
        t.good.push_back(planned[w] > 0 ? met[w] / planned[w] : not_a_number);
    }
    return t;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
