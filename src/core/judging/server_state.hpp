// what a server's state explains
#pragma once

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/dialects/server_names.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_values.hpp"
#include "core/judging/evidence.hpp"

#include <algorithm>  // max, max_element, min
#include <optional>
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// From when on a queue was never empty again, in the half of a window at least; with its most.
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
inline std::string queue_words(const std::vector<repeat_data>& arm) {
    std::optional<standing_queue> first;
    double most = 0;
    std::size_t n = 0;
    for (const repeat_data& d : arm)
        if (const auto q = standing_queue_of(d)) {
            ++n;
            most = std::max(most, q->most);
            if (!first) first = q;
        }
    if (!first || 2 * n < arm.size()) return {};
    return printed("the queue was never empty from %.0f s on, with up to %.0f waiting",
                   first->from_s, most);
}
inline std::string cache_words(const std::vector<repeat_data>& arm) {
    double fullest = 0, preempted = 0;
    for (const repeat_data& d : arm) {
        for (const double v : read_in_window(
                 d, [](const page_reading& r) { return r.value(server_quantity::kv_usage); })
                 .values)
            fullest = std::max(fullest, v);
        if (const auto s = span_of(d))
            if (const double n = s->change(server_quantity::preemptions); n > 0) preempted += n;
    }
    const std::string preemptions =
        preempted > 0 ? printed("%.0f preemption%s", preempted, preempted == 1 ? "" : "s") : "";
    if (fullest == 0 || (fullest < 0.95 && preempted == 0)) return preemptions;
    return printed("KV cache at %.0f %%", fullest * 100) +
           (preemptions.empty() ? "" : ", " + preemptions);
}
/// Which repeat's mean of something is by over a tenth below the highest of the others.
inline std::string clock_words(const std::vector<repeat_data>& arm) {
    std::vector<double> means;
    for (const repeat_data& d : arm) {
        const auto read = read_in_window(
            d, [](const page_reading& r) { return r.value(server_quantity::clock); }).values;
        means.push_back(read.empty() ? not_a_number : mean_of(read));
    }
    double highest = 0;
    for (const double m : means) highest = std::max(highest, m == m ? m : 0);
    for (std::size_t i = 0; i < means.size(); ++i)
        if (means[i] < 0.9 * highest)
            return printed("the accelerators' clocks were %.0f %% lower in repeat %zu",
                           100 * (1 - means[i] / highest), i + 1);
    return {};
}
/// In one sentence, "" where its state explains nothing.
inline std::string server_state_words(const evidence& e) {
    std::string t;
    for (const std::string& words :
         {queue_words(e.candidate), cache_words(e.candidate), clock_words(e.candidate)})
        if (!words.empty()) t += (t.empty() ? "" : "; ") + words;
    return t;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
