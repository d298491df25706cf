// what makes a measurement invalid
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/prefix_hits.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/measured/request_tokens.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/client.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/buffered.hpp"
#include "core/judging/saturation.hpp"
#include "core/judging/server.hpp"
#include "core/judging/server_state.hpp"
#include "core/judging/terms.hpp"
#include "core/judging/cross_check.hpp"

#include <algorithm>  // any_of, max, min
#include <cstddef>  // size_t
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Why what was to be done beside a load makes it another one, nothing where it was done.
inline cause fault_of_tasks(const repeat_data& d) {
    for (const side_task_seen& t : d.beside) {
        if (t.steps.empty()) return {because::task_idle, {d.index + 1.0}, whose::nobody, t.name};
        for (const side_step& s : t.steps)
            if (!s.failed.empty() && !t.may_fail)
                return {because::task_failed, {d.index + 1.0}, whose::nobody,
                        "\"" + t.name + "\", " + s.what + " " + s.failed};
    }
    return {};
}

/// Why an arm's server shows nothing, nothing where it shows something.
inline cause fault_of_arm(const evidence& e, const repeat_list& arm) {
    const bool is_baseline = &arm == &e.baseline;
    std::size_t measured = 0, succeeded = 0;
    const record* example = nullptr;
    for (const repeat_data& d : arm) {
        if (cause why = with_text(because::server_gone, d.target_gone); !is_hurt(d) && why)
            return of_server(std::move(why), is_baseline);
        if (cause why = fault_of_tasks(d)) return of_server(std::move(why), is_baseline);
        if (cause why = cross_check_fault(e, d)) return of_server(std::move(why), is_baseline);
        for (const record& r : d.records) {
            if (!is_measured(r)) continue;
            ++measured;
            succeeded += r.status == request_status::ok;
            if (!example && r.status != request_status::ok) example = &r;
        }
    }
    if (succeeded > 0 || (is_baseline && arm.empty())) return {};
    if (measured == 0) return {because::no_requests};
    return of_server({because::none_succeeded, {as_number(measured)}, whose::nobody,
                      std::string(to_string(example->status)) + ": " + str(example->error)},
                     is_baseline);
}
/// Why nothing at all can be said of these arms, nothing where something can.
inline cause fault_of_gate(const evidence& e, const arm_list& arms) {
    if (e.candidate.empty() && !e.stopped.empty()) return {};
    for (const unsupported_metrics& u : e.unsupported)
        if (u.of.empty()) return {because::unsupported, {}, whose::nobody, u.why};
    if (cause lack = client_lack(arms)) return lack;
    cause lost;
    for_each_repeat(arms, [&](const repeat_data& d) {
        if (!lost) lost = with_text(because::reported, skew_fault(d.ranks, e.most_skew_s));
    });
    for_each_repeat(e, [&](const repeat_data& d) {
        if (!lost && d.interrupted) lost = {because::interrupted};
    });
    for (const auto* arm : arms)
        if (!lost) lost = fault_of_arm(e, *arm);
    return lost;
}
inline cause fault_of_gate(const evidence& e) { return fault_of_gate(e, arms_of(e)); }

/// What objectives that are judged on some arms stand on.
struct arms_grounds {
    own_check self_check{};
    cause invalid{};    // why nothing at all can be said
    cause saturated{};  // why the load was more than the server can take, or that of a part
    std::vector<cause> saturated_parts{};  // where parts have their own arrivals, by part
};
inline arms_grounds arms_grounds_of(const evidence& e, const arm_list& arms) {
    arms_grounds g{self_check_of(e, arms), fault_of_gate(e, arms),
                   over_saturation_of(e, arms, e.arrival_cv2), over_saturated_parts(e, arms)};
    for (const cause& of_part : g.saturated_parts)
        if (!g.saturated) g.saturated = of_part;
    return g;
}
/// What an objective is on: where it is on one part alone, the load of that, whatever became of
/// another's.
inline cause over_saturation_for(const evidence& e, const arms_grounds& on,
                                 const statistic_data& what) {
    for (const statistic_data& part : what.parts)
        if (cause why = over_saturation_for(e, on, part)) return why;
    if (!what.parts.empty()) return {};
    for (std::size_t i = 0; i < on.saturated_parts.size(); ++i)
        if (str(what.which.label) == e.parts[i].label) return on.saturated_parts[i];
    return on.saturated;
}
/// What all objectives of a gate stand on, found once for an analysis of its evidence.
struct grounds : arms_grounds {
    arms_grounds own{};  // of the candidate alone
    answer_counts candidate{}, baseline{};
    prefix_hits cache{}, baseline_cache{};
    std::vector<cause> state{};  // what the server's own page says to its speed
    const arms_grounds& of(const slo& s) const { return needs_baseline(s) ? *this : own; }
};
inline grounds grounds_of(const evidence& e) {
    const arms_grounds all = arms_grounds_of(e, arms_of(e));
    return {all, e.baseline.empty() ? all : arms_grounds_of(e, {&e.candidate}),
            answer_counts_of(e.candidate), answer_counts_of(e.baseline),
            prefix_hits_of(e.candidate), prefix_hits_of(e.baseline), server_state_of(e)};
}

/// Gaps that were too many to keep are counted of all requests together.
inline bool counts_gaps_of_all(const repeat_list& arm, const statistic_data& what) {
    if (!facts_of(what.metric).is_of_gaps || is_all(what.which)) return false;
    return std::any_of(arm.begin(), arm.end(),
                       [](const repeat_data& d) { return d.gaps_counted; });
}

/// Why tokens per second of two arms are not compared: the workload of one is another, and has
/// others of them.
inline cause tokens_that_differ(const evidence& e, const slo& s) {
    const metric_id m = s.what.metric;
    const bool of_tokens = is_throughput(m) && m != metric_id::request_throughput;
    if (!e.other_workload || s.factor <= 0 || !of_tokens) return {};
    const request_tokens mine = request_tokens_of(e.candidate, s.what.which),
                         other = request_tokens_of(e.baseline, s.what.which);
    const auto differ = [](double a, double b) { return std::max(a, b) > 1.05 * std::min(a, b); };
    const bool of_prompts = m == metric_id::prefill_throughput ||
                            m == metric_id::input_throughput || m == metric_id::total_throughput;
    if (of_prompts && differ(mine.prompt, other.prompt))
        return {because::other_tokens, {mine.prompt, 1, other.prompt}};
    const bool of_outputs = !of_prompts || m == metric_id::total_throughput;
    if (of_outputs && differ(mine.output, other.output))
        return {because::other_tokens, {mine.output, 0, other.output}};
    return {};
}

/// Why a verdict on an SLO is none, nothing where it is one.
inline cause fault_of_verdict(const evidence& e, const terms& t, const grounds& g,
                              const verdict_numbers& v) {
    const slo& s = v.what;
    const bool compared =
        e.has_live_baseline() || !t.stored.file.empty() || t.history.is_there();
    if (needs_baseline(s) && !compared) return {because::no_baseline};
    if (cause why = tokens_that_differ(e, s)) return why;
    if (!is_of_service(s.what.metric)) return {};
    if (is_of_sessions(s.what.metric) && !e.candidate.empty() && !e.candidate[0].plays_out)
        return {because::not_played_out, {}, whose::plan};
    for (const statistic_data& part : s.what.parts) {
        verdict_numbers own = v;
        own.what.what = part;
        if (cause why = fault_of_verdict(e, t, g, own)) return why;
    }
    const own_check& check = g.of(s).self_check;
    if (concerns(s.what, &metric_facts::is_of_gaps) && check.coalesced_fraction > 0.05 &&
        check.cpu_utilization > 0.8)
        return {because::read_together, {check.coalesced_fraction}, whose::client};
    if (concerns(s.what, &metric_facts::is_hurt_by_lateness) ||
        client_was_saturated(e, check.cpu_utilization))
        if (check.why) return check.why;
    if (is_of_server(s.what.metric)) return server_metrics_fault(e, v);
    for (const run_arm a : {run_arm::candidate, run_arm::baseline}) {
        const bool is_baseline = a == run_arm::baseline;
        if (is_baseline && (s.factor <= 0 || !e.has_live_baseline())) continue;
        const answer_counts own =
            is_of_all(s.what) ? answer_counts() : answer_counts_of(e.arm(a), s.what.which);
        const answer_counts* const arm = !is_of_all(s.what) ? &own
                                         : is_baseline      ? &g.baseline
                                                            : &g.candidate;
        if (counts_gaps_of_all(e.arm(a), s.what)) return {because::gaps_of_all};
        cause held = fault_of_stream(*arm, s.what);
        if (is_baseline) held.of = whose::baseline;
        if (held && !stands_though_buffered(e, t, *arm, v)) return held;
        if (cause why = fault_of_answers(*arm, s.what, e.short_outputs_expected))
            return of_server(std::move(why), is_baseline);
    }
    return {};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
