// errors of a baseline
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/terms.hpp"

#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How one of the failed requests of an arm ended: "http: HTTP 500".
inline std::string failure_example(const std::vector<repeat_data>& arm) {
    for (const repeat_data& d : arm)
        for (const record& r : d.records)
            if (is_measured(r) && r.status != request_status::ok)
                return std::string(to_string(r.status)) +
                       (r.error.empty() ? "" : ": " + printable(str(r.error), 200));
    return {};
}

/// What the errors of a live baseline leave of a comparison with it.
struct baseline_errors {
    verdict outcome = verdict::pass;  // inconclusive: over the limit, and not shown to be
    std::string why{};
};
/// A server that sheds load is fast, and one that fails makes anything look good: a baseline's
/// errors are held against the limit of the candidate's.
inline baseline_errors baseline_errors_of(const evidence& e, const terms& t, const slo& limit) {
    baseline_errors b;
    std::vector<std::vector<bool>> misses;
    for (const repeat_data& d : e.baseline) misses.push_back(misses_of(limit, d));
    const miss_counts c = counted_misses(e, t, limit, misses);
    if (c.n == 0 || c.k <= c.allowed * c.n) return b;
    const count_levels at = count_levels_of(limit, t.rule);
    const bool shown = c.lower(at.fail) > c.allowed || c.product >= at.product;
    b.outcome = shown ? verdict::invalid : verdict::inconclusive;
    b.why = printed("baseline server: %.0f of %.0f requests failed (%s), where %.3g %% %s", c.k,
                    c.n, failure_example(e.baseline).c_str(), c.allowed * 100,
                    shown ? "may" : "may, which so few do not show");
    return b;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
