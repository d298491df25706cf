// what a server's answers can say against its numbers
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/metric/words.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"

#include <array>
#include <cstddef>  // size_t
#include <iterator>  // size
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// So much of anything spoils nothing: over 5 % of the completed requests does.
inline bool is_too_much(std::size_t some, std::size_t completed) { return some * 20 > completed; }

/// The requests that a metric speaks of, and the completed ones that it has no value of.
struct value_count {
    std::size_t of = 0, completed = 0, missing = 0;
};
/// The completed requests of one arm, counted by what makes them no evidence.
struct answer_counts {
    std::size_t completed = 0;
    std::size_t too_short = 0;  // fewer tokens than forced
    std::array<value_count, std::size(metric_table)> values{};
    const value_count& of(metric_id m) const { return values[static_cast<std::size_t>(m)]; }
};
inline answer_counts answer_counts_of(const std::vector<repeat_data>& arm) {
    answer_counts c;
    for (const repeat_data& d : arm) {
        c.too_short += static_cast<std::size_t>(d.short_outputs);
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            const record& r = d.records[i];
            const bool ok = r.status == request_status::ok;
            c.completed += ok && is_measured(r);
            for (const metric_facts& f : metric_table) {
                if (f.is_unmeasured || !is_part_of(f.id, r)) continue;
                value_count& n = c.values[static_cast<std::size_t>(f.id)];
                ++n.of;
                n.completed += ok;
                n.missing += ok && !has_value(f.id, d, i);
            }
        }
    }
    return c;
}

/// Why a metric is none of the requests that completed, "" where it is. Of answers of one token,
/// where those were asked for, there is no pace: what is judged is the others', if there are any.
inline std::string missing_values(const answer_counts& c, metric_id m, bool short_ones_expected) {
    const metric_facts& f = facts_of(m);
    const value_count& n = c.of(m);
    const bool allowed = short_ones_expected && (f.needs == value_needs::second_token ||
                                                 f.needs == value_needs::second_event);
    if (n.of == 0 && is_of_turns(m)) return printed("no request was one that %s is of", f.name);
    const bool some_left = n.missing < n.completed;
    if (n.missing == 0 || (some_left && (allowed || !is_too_much(n.missing, n.completed))))
        return {};
    return printed("%zu of %zu completed requests have no %s, which %s needs", n.missing, n.completed,
                   needs_text(f.needs), f.name);
}

/// What the answers of one arm say against an objective, "" where nothing.
inline std::string answers_invalid_reason(const answer_counts& c, const statistic_data& what,
                                          bool short_ones_expected) {
    if (is_too_much(c.too_short, c.completed))
        return printed("%zu of %zu completed requests brought fewer tokens than forced: it does "
                       "not heed ignore_eos, or stops by itself",
                       c.too_short, c.completed);
    std::string why;
    concerns_a_metric(what, [&](metric_id m) {
        why = missing_values(c, m, short_ones_expected);
        return !why.empty();
    });
    return why;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
