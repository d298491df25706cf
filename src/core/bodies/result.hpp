// functions of results
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/verbs.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/judge.hpp"
#include "core/described/described.hpp"
#include "core/described/verdict_text.hpp"
#include "core/planning/load_search.hpp"
#include "core/planning/check_slo.hpp"
#include "core/bodies/result_data.hpp"

#include <cmath>  // isfinite
#include <string>

#ifndef LLMBENCH_NO_BODIES
namespace llmbench {
inline namespace v1 {
namespace detail {

estimate_t estimate(const box& data, const statistic_data& what) {
    const auto g = result_access::gate_in(data);
    if (!g || g->seen.candidate.empty() || !unsupported_reason(g->seen, what).empty())
        return {not_a_number, not_a_number, not_a_number};
    slo s;
    s.statistic = what;
    s.at_most = facts_of(what.metric).side != bound_side::at_least;
    // Any limit will do after the load has ended: estimate and interval do not depend on it. Only
    // the dependence of counted misses is read at the limit, so it is the estimate there.
    s.bound = 0.5;
    return with_load_of_tables(g->seen, g->judged_by, [&](const measurements& seen) {
        const objective_columns c = columns_of(seen, s);
        const decision v = estimated(decision_by_numbers(c, g->judged_by, s, sought::last), c);
        const estimate_t e = v.estimate;
        const bool counted = v.decided_by == verdict_method::counted_misses;
        if (!counted || what.kind != statistic_kind::percentile || !std::isfinite(e.value))
            return e;
        s.bound = e.value;
        return estimated(decision_by_numbers(c, g->judged_by, s, sought::last), c).estimate;
    });
}
double measured(const box& data, const statistic_data& what) {
    const auto g = result_access::gate_in(data);
    if (!g || !unsupported_reason(g->seen, what).empty()) return not_a_number;
    return with_load_of_tables(g->seen, g->judged_by, [&](const measurements& seen) {
        return pooled_value(what, seen.candidate);
    });
}
}  // namespace detail

const char* to_string(request_status s) {
    return detail::name_at({"ok", "connect", "tls", "timeout", "http", "protocol", "server",
                            "truncated", "empty", "cancelled", "unsent", "left"}, s);
}
const char* to_string(token_origin o) {
    return detail::name_at({"usage", "events", "no_usage"}, o);
}
const char* to_string(run_phase p) {
    return detail::name_at({"warmup", "measure", "after"}, p);
}
const char* to_string(run_variant a) {
    return a == run_variant::baseline ? "baseline" : "candidate";
}
const char* to_string(verdict_method m) {
    return detail::name_at({"none", "counts", "counted_misses", "moderated_t", "noisy_t", "t",
                            "slices", "loads", "predictive_t", "slices_at_once",
                            "equal_counts"}, m);
}
const char* to_string(verdict_unit u) {
    return detail::name_at({"none", "repeat", "pair", "probe"}, u);
}
const char* to_string(verdict v) {
    return detail::name_at({"pass", "fail", "inconclusive", "invalid", "skipped"}, v);
}

types::text slo_verdict::line() const { return detail::verdict_line(*this); }
types::text slo_verdict::explain() const {
    return detail::verdict_line(*this) + "\n  method: " + detail::str(method) + "\n  " +
           detail::inputs_text(*this, "\n  ");
}

slo_verdict judge(const result& r, const slo& of) {
    slo s = of;
    const auto g = detail::result_access::gate_of(r);
    if (!g || !g->refusal.empty()) {
        const bool skip = g && g->outcome == detail::gate_outcome::skipped;
        return detail::said_of(s, skip ? verdict::skipped : verdict::invalid,
                               g ? g->refusal : "the result is empty");
    }
    if (g->is_rehearsal) return detail::said_of(s, verdict::skipped, "a rehearsal judges nothing");
    if (g->is_shard) return detail::said_of(s, verdict::skipped, detail::shard_text(g->what.shard));
    detail::check_slo(s, detail::slo_context(g->what));
    return detail::described(detail::judged_also_of_loads(g->seen, g->judged_by, s));
}

const types::list<record>& result::requests() const& {
    static const types::list<record> none;
    const auto g = detail::result_access::gate_of(*this);
    return g && g->requests ? g->requests() : none;
}

}  // inline namespace v1
}  // namespace llmbench
#endif
