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
#include "core/measured/pooled.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/words.hpp"
#include "core/capacity/found.hpp"
#include "core/capacity/relative.hpp"
#include "core/traffic/check_slo.hpp"
#include "core/traffic/searched.hpp"
#include "core/figures/held_gate.hpp"

#include <cmath>  // isfinite
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

estimate_t estimate(const box& data, const statistic_data& what) {
    const auto g = result_access::gate_in(data);
    if (!g || g->seen.candidate.empty() || !untold_reason(g->seen, what).empty())
        return {not_a_number, not_a_number, not_a_number};
    slo s;
    s.what = what;
    s.at_most = facts_of(what.metric).side != bound_side::at_least;
    // Any limit will do: to the end, neither the estimate nor its interval depends on it. Only how
    // dependent counted misses are is read off at the limit: there it is the estimate.
    s.bound = 0.5;
    return with_load_of_tables(g->seen, g->held, [&](const evidence& seen) {
        const slo_verdict v = judge_evidence(seen, g->held, s, true);
        const estimate_t e = v.estimate;
        const bool counted = g->held.rule.traffic == fresh || str(v.method) == method_misses;
        if (!counted || what.kind != statistic_kind::percentile || !std::isfinite(e.value))
            return e;
        s.bound = e.value;
        return judge_evidence(seen, g->held, s, true).estimate;
    });
}
double measured(const box& data, const statistic_data& what) {
    const auto g = result_access::gate_in(data);
    if (!g || !untold_reason(g->seen, what).empty()) return not_a_number;
    return with_load_of_tables(g->seen, g->held, [&](const evidence& seen) {
        return pooled_value(what, seen.candidate);
    });
}
}  // namespace detail

const char* to_string(request_status s) {
    switch (s) {
    case request_status::ok: return "ok";
    case request_status::connect: return "connect";
    case request_status::tls: return "tls";
    case request_status::timeout: return "timeout";
    case request_status::http: return "http";
    case request_status::protocol: return "protocol";
    case request_status::server: return "server";
    case request_status::truncated: return "truncated";
    case request_status::empty: return "empty";
    case request_status::cancelled: return "cancelled";
    case request_status::unsent: return "unsent";
    }
    return "";
}
const char* to_string(token_origin o) { return o == token_origin::usage ? "usage" : "events"; }
const char* to_string(run_phase p) { return p == run_phase::warmup ? "warmup" : "measure"; }
const char* to_string(run_arm a) { return a == run_arm::baseline ? "baseline" : "candidate"; }
const char* to_string(verdict v) {
    switch (v) {
    case verdict::pass: return "pass";
    case verdict::fail: return "fail";
    case verdict::inconclusive: return "inconclusive";
    case verdict::invalid: return "invalid";
    case verdict::skipped: return "skipped";
    }
    return "";
}

types::text slo_verdict::line() const { return detail::verdict_line(*this); }
types::text slo_verdict::explain() const {
    std::string t = detail::verdict_line(*this) + "\n  method: " + detail::str(method) + "\n  " +
                    detail::str(arithmetic);
    for (const named_values& n : inputs) {
        t += "\n  " + detail::str(n.name) + " =";
        for (const double v : n.values) t += " " + detail::json_number(v);
    }
    return t;
}

slo_verdict judge(const result& r, const slo& of) {
    slo s = of;
    const auto g = detail::result_access::gate_of(r);
    if (!g || !g->refusal.empty()) {
        slo_verdict v = detail::undecided(s);
        const bool skip = g && g->outcome == detail::gate_outcome::skipped;
        v.outcome = skip ? verdict::skipped : verdict::invalid;
        v.reason = g ? g->refusal : "the result is empty";
        return v;
    }
    if (g->is_shard) return detail::without_advice(detail::undecided(s), verdict::skipped,
                                                   detail::shard_words(g->what.share));
    if (s.factor > 0 && detail::is_capacity(s.what.metric))
        s.what.metric = detail::load_metric(g->what);
    detail::check_slo(s, detail::slo_context_of(g->what));
    return detail::judged_also_of_loads(g->seen, g->held, s);
}

const types::list<record>& result::requests() const& {
    static const types::list<record> none;
    const auto g = detail::result_access::gate_of(*this);
    return g && g->requests ? g->requests() : none;
}

}  // inline namespace v0
}  // namespace llmbench
