// the slowest requests, and ttft by prompt length
#pragma once

#include "api/metrics.hpp"
#include "core/base/vector.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/figures/timelines.hpp"

#include <algorithm>  // max, min, rotate
#include <cmath>  // isnan
#include <cstddef>  // ptrdiff_t, size_t
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One measured request as reports show it.
struct slow_request {
    std::string id{};  // its X-Request-Id
    int repeat = 0;
    request_status status = request_status::ok;
    int prompt_tokens = -1, output_tokens = -1;  // below 0: unknown
    double ttft = not_a_number, tpot = not_a_number, e2e = not_a_number;  // seconds
    double waited = 0;  // until the first token, else until its end
};
inline slow_request slow_request_of(const repeat_data& d, std::size_t i) {
    const record& r = d.records[i];
    const auto value = [&](metric_id m) {
        const bool is_there = r.status == request_status::ok && has_value(m, d, i);
        return is_there ? request_value(m, d, i) : not_a_number;
    };
    slow_request s{str(r.id), d.index + 1, r.status, r.prompt_tokens, r.output_tokens,
                   value(metric_id::ttft), value(metric_id::tpot), value(metric_id::e2e), 0};
    const double took = static_cast<double>(r.end_ns - r.scheduled_ns) * 1e-9;
    s.waited = !std::isnan(s.ttft) ? s.ttft : !std::isnan(s.e2e) ? s.e2e : took;
    return s;
}
/// Returns the ten that waited longest for their first token, also of those that failed.
inline vector<slow_request> slowest_of(const repeat_list& variant) {
    constexpr std::size_t most = 10;
    vector<slow_request> all;
    for (const repeat_data& d : variant)
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            const record& r = d.records[i];
            if (!is_measured(r) || r.status == request_status::unsent) continue;
            slow_request s = slow_request_of(d, i);
            std::size_t at = all.size();
            while (at > 0 && all[at - 1].waited < s.waited) --at;
            if (at == most) continue;
            if (all.size() == most) all.pop_back();
            all.push_back(std::move(s));
            std::rotate(all.begin() + static_cast<std::ptrdiff_t>(at), all.end() - 1, all.end());
        }
    return all;
}

/// Points of prompt tokens and ttft, evenly left out where there are too many to see. Empty if the
/// prompts have about one length.
inline vector<curve_point> ttft_by_prompt_of(const repeat_list& variant) {
    constexpr std::size_t most = 400;
    vector<curve_point> all, shown;
    double shortest = infinity, longest = 0;
    for (const repeat_data& d : variant)
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            const record& r = d.records[i];
            const bool has_both = r.prompt_tokens > 0 && has_value(metric_id::ttft, d, i);
            if (!is_pooled(r) || !has_both) continue;
            all.push_back({static_cast<double>(r.prompt_tokens),
                           request_value(metric_id::ttft, d, i)});
            shortest = std::min(shortest, all.back().x);
            longest = std::max(longest, all.back().x);
        }
    if (longest < 1.2 * shortest) return {};
    const std::size_t step = all.size() / most + 1;
    for (std::size_t i = 0; i < all.size(); i += step) shown.push_back(all[i]);
    return shown;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
