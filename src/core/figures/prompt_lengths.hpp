// lengths of synthetic prompts, asked for and counted
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/statistics.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/planning.hpp"

#include <algorithm>  // sort
#include <cmath>  // fabs
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Lengths in tokens.
struct length_figures {
    double mean = not_a_number, p50 = not_a_number, p90 = not_a_number;
};
inline length_figures length_figures_of(std::vector<double> lengths) {
    std::sort(lengths.begin(), lengths.end());
    return {mean_of(lengths), nearest_rank(lengths, 0.5), nearest_rank(lengths, 0.9)};
}

/// Prompt lengths as asked for and as the server counted them. Not known where the workload sets no
/// total length, or the server counted nothing.
struct prompt_lengths {
    bool known = false;
    length_figures asked{}, counted{};
    /// The means differ by at most 2 %.
    bool are_as_asked() const {
        return !known || std::fabs(counted.mean / asked.mean - 1) <= 0.02;
    }
};
inline prompt_lengths prompt_lengths_of(const plan& p, const repeat_list& variant) {
    if (!makes_up_prompts(p) || p.sent->stride > 1 || p.sent->is_read || p.sent->described.is_there)
        return {};
    std::vector<double> asked, counted;
    for (std::size_t i = 0; i < variant.size(); ++i) {  // counts those set aside, too
        const repeat_data& d = variant[i];
        for (const record& r : d.records) {
            if (!is_measured(r) || r.status != request_status::ok || r.prompt_tokens <= 0) continue;
            const auto place = static_cast<std::size_t>(r.conversation);
            asked.push_back(item_of(p, place).prompt_tokens);
            counted.push_back(r.prompt_tokens);
        }
    }
    if (asked.empty()) return {};
    return {true, length_figures_of(std::move(asked)), length_figures_of(std::move(counted))};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
