// errors of a baseline
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/judging_parameters.hpp"

#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Returns how one failed request of a variant ended: "http: HTTP 500".
inline std::string failure_example(const repeat_list& variant) {
    for (const repeat_data& d : variant)
        for (const record& r : d.records)
            if (is_measured(r) && has_failed(r))
                return std::string(to_string(r.status)) +
                       (r.error.empty() ? "" : ": " + printable(str(r.error), 200));
    return {};
}

/// Why errors of a live baseline rule out a comparison, or do so yet. A server that sheds load is
/// fast, and one that fails makes any candidate look good, so the candidate's limit on errors holds
/// for the baseline.
inline cause errors_of_baseline(const measurements& e, const judging_parameters& t,
                                const slo& limit) {
    std::vector<std::vector<bool>> misses;
    for (const repeat_data& r : e.baseline) misses.push_back(misses_of(limit, r));
    const miss_counts c = counted_misses(e, limit, misses);
    if (c.n == 0 || c.k <= c.allowed * c.n) return {};
    const analysis_of_misses seen{c, count_levels_of(limit, t.rule)};
    return {seen.outcome() == verdict::fail ? because::baseline_fails : because::baseline_may_fail,
            {c.k, c.n, c.allowed}, whose::baseline_server, failure_example(e.baseline)};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
