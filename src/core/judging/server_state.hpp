// explanations from the server's state
#pragma once

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/server_metrics/server_names.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/measured/server_values.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"

#include <algorithm>  // max, max_element, min
#include <cmath>  // isnan
#include <optional>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The time from which a queue was never empty, for at least half of a window; its largest length.
struct standing_queue {
    double from_s = 0, most = 0;
};
inline std::optional<standing_queue> standing_queue_of(const repeat_facts& d) {
    std::optional<standing_queue> q;
    for (const page_reading& r : d.server.readings) {
        if (r.at_ns < d.window.from_ns() || r.at_ns > d.window.to_ns()) continue;
        const double waiting = r.value(server_quantity::waiting);
        if (!(waiting > 0)) q.reset();
        else if (!q) q = {static_cast<double>(r.at_ns - d.window.from_ns()) * 1e-9, waiting};
        else q->most = std::max(q->most, waiting);
    }
    const double window_s = d.window.seconds();
    if (!q || q->from_s > window_s / 2) return {};
    return q;
}
inline cause state_of_queue(const repeat_list& variant) {
    std::optional<standing_queue> first;
    double most = 0;
    std::size_t n = 0;
    for (const repeat_data& d : variant)
        if (const auto q = standing_queue_of(d)) {
            ++n;
            most = std::max(most, q->most);
            if (!first) first = q;
        }
    if (!first || 2 * n < variant.size()) return {};
    return {because::queue_stood, {first->from_s, most}};
}
inline cause state_of_cache(const repeat_list& variant) {
    double fullest = 0, preempted = 0;
    for (const repeat_data& d : variant) {
        for (const double v : read_in_window(
                 d, [](const page_reading& r) { return r.value(server_quantity::kv_usage); })
                 .values)
            if (v <= 1) fullest = std::max(fullest, v);
        if (const auto s = span_of(d))
            if (const double n = s->change(server_quantity::preemptions); n > 0) preempted += n;
    }
    if (preempted == 0 && fullest < 0.95) return {};
    if (fullest == 0) return {because::preempted, {preempted}};
    if (preempted == 0) return {because::cache_full, {fullest}};
    return {because::cache_preempts, {fullest, preempted}};
}
/// The repeat whose mean clock is over a tenth below the highest.
inline cause state_of_clocks(const repeat_list& variant) {
    std::vector<double> means;
    for (const repeat_data& d : variant) {
        const auto read = read_in_window(
            d, [](const page_reading& r) { return r.value(server_quantity::clock); }).values;
        means.push_back(read.empty() ? not_a_number : mean_of(read));
    }
    double highest = 0;
    for (const double m : means) highest = std::max(highest, std::isnan(m) ? 0 : m);
    for (std::size_t i = 0; i < means.size(); ++i)
        if (means[i] < 0.9 * highest)
            return {because::clocks_lower, {1 - means[i] / highest, as_number(i + 1)}};
    return {};
}
/// How the server's state explains its speed.
inline std::vector<cause> server_state_of(const measurements& e) {
    std::vector<cause> all;
    for (cause (*state)(const repeat_list&) :
         {state_of_queue, state_of_cache, state_of_clocks})
        if (cause c = state(e.candidate)) {
            if (all.empty()) c.of = whose::server;
            all.push_back(std::move(c));
        }
    return all;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
