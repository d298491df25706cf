// the report and the result of a measured gate
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/extension.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/calibration.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/outcome.hpp"
#include "core/described/described.hpp"
#include "core/described/verdict_text.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/shard.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/gate_report.hpp"
#include "core/bodies/result_data.hpp"
#include "effects/system/settings.hpp"
#include "effects/gates/session.hpp"

#include <cstddef>  // size_t
#include <functional>
#include <mutex>  // call_once
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// More errors than an absolute objective allows, "" if there are not: the times of the other
/// requests are not those of a server that works.
inline std::string too_many_errors(const vector<decision>& verdicts) {
    for (const decision& v : verdicts) {
        const bool is_judged = is_absolute(v.objective) && !v.objective.is_advisory;
        if (is_judged && v.objective.statistic.metric == metric_id::error_rate &&
            v.estimate.value > v.limit)
            return flat_line(described(v));
    }
    return {};
}
/// Returns why measurements cannot be a baseline, "" if they can.
inline std::string baseline_fault(const measured_gate& m) {
    const auto& on = m.found.on;
    if (on.invalid) return described(on.invalid);
    if (on.self_check.why) return described(on.self_check.why);
    if (m.found.by_client) return described(m.found.by_client->why);
    if (!m.seen.stopped.empty()) return m.seen.stopped;
    if (on.saturated) return described(on.saturated);
    for (const decision& v : m.found.verdicts) {
        const bool is_judged = is_absolute(v.objective) && !v.objective.is_advisory;
        if (is_judged && v.outcome == verdict::invalid) return described(v.why, v);
    }
    return too_many_errors(m.found.verdicts);
}

/// A calibration judges nothing but whether the server works: limits by a failing one are none.
inline void calibrate(gate_report& g, const measured_gate& m) {
    const std::string fault = too_many_errors(m.found.verdicts);
    const bool is_client_late = m.found.by_client.has_value();
    if (fault.empty() && !is_client_late) g.calibration = calibration_of(m.seen, m.judged_by);
    for (slo_verdict& v : g.verdicts) {
        const bool is_fault =
            !fault.empty() && v.objective.statistic.metric == metric_id::error_rate;
        const bool is_open = is_client_late && v.outcome == verdict::inconclusive;
        if (v.outcome == verdict::invalid || is_fault || is_open) continue;
        v = without_advice(v, verdict::skipped,
                           fault.empty() ? "a calibration run judges nothing"
                                         : "no calibration of a server that fails: " + fault);
    }
}

/// A run that is for something else than verdicts has none.
inline void apply_purpose(gate_report& g, const measured_gate& m, const purpose_of_run& asked) {
    if (asked.calibrate > 0) calibrate(g, m);
    if (asked.is_shard && !m.found.on.invalid)  // a shard alone has no verdict
        for (slo_verdict& v : g.verdicts)
            v = without_advice(v, verdict::skipped, shard_text(m.what.shard));
}
/// Returns the gate as reports show it, with all figures.
inline gate_report report_of(const measured_gate& m, const settings& asked) {
    const plan& p = m.what;
    gate_report g;
    static_cast<gate_facts&>(g) = m;
    g.under = m.seen;
    g.notes = notes_before(g, g.under);
    g.self_check = described(m.found.on.self_check);
    g.verdicts = described(m.found.verdicts);
    apply_purpose(g, m, asked);
    g.figures = p.searches() ? figures_of_search(p, m.seen, m.judged_by)
                             : figures_of(p, m.seen, p.judged->slos);
    each(&extension::add_to_report, m.seen, asked.answers, g);
    g.undecided_fails = asked.inconclusive == inconclusive_means::fail;
    g.outcome = outcome_of(g.verdicts, asked.inconclusive);
    if (!g.figures.fault().empty()) g.outcome = worse_of(g.outcome, gate_outcome::invalid);
    // Missing data is never green.
    if (m.seen.candidate.empty() && g.outcome == gate_outcome::passed)
        g.outcome = gate_outcome::skipped;
    return g;
}

/// Writes a gate's result to its stored baseline, and says so in its verdicts.
inline void write_as_baseline(gate_report& g, const measured_gate& m, const settings& asked) {
    const std::string file = str(g.what.judged->stored.file), fault = baseline_fault(m);
    for (slo_verdict& v : g.verdicts) {
        if (is_absolute(v.objective)) continue;
        if (!fault.empty()) v.reason = file + " was not written: " + fault;
        else v = without_advice(v, verdict::skipped,
                                "written to " + file + " as a baseline, not compared");
    }
    if (!fault.empty()) return;
    g.outcome = outcome_of(g.verdicts, asked.inconclusive);
    session::of_this_program().with_reports([&](program_reports& r) { r.write_baseline(g, file); });
}

/// The report of a gate that never ran, or ended by an unexpected error; it has every SLO.
inline gate_report unmeasured(const gate_identity& who, const scenario& s, gate_outcome outcome,
                              const std::string& why) {
    // without a text it would count as measured
    gate_report g = report_without(who, outcome, why.empty() ? "no reason was given" : why);
    for (const slo& x : s.slos) g.verdicts.push_back(said_of(x, verdict_like(outcome), g.refusal));
    return g;
}

/// A run() in a test case fails nothing by its SLOs, and reports of a green build must not be red.
/// The error guard (the last verdict) counts, because assertions on a run rest on its requests.
inline void only_note(gate_report& g, inconclusive_means policy) {
    for (std::size_t i = 0; i < g.what.judged->slos.size(); ++i)
        g.verdicts[i].objective.is_advisory = true;
    if (g.outcome != gate_outcome::skipped) g.outcome = outcome_of(g.verdicts, policy);
    if (!g.figures.fault().empty()) g.outcome = worse_of(g.outcome, gate_outcome::invalid);
}

/// Returns a list of all requests, which is made when it is first asked for.
inline std::function<const types::list<record>&()> listed_once(const measurements& seen) {
    struct listed {
        std::once_flag once{};
        types::list<record> all{};
    };
    return [&seen, it = new_shared<listed>()]() -> const types::list<record>& {
        std::call_once(it->once, [&] {
            for (const repeat_data& d : repeats_of(seen))
                for (const record& r : d.records) it->all.push_back(r);
        });
        return it->all;
    };
}

/// Returns the result of a gate.
inline result result_of(const gate_report& g, measured_gate&& m, std::size_t number,
                        const settings& asked) {
    auto held = new_shared<result_data>();
    held->number = number;
    held->outcome = g.outcome;
    held->refusal = g.refusal;
    held->undecided_is = asked.inconclusive;
    held->is_shard = asked.is_shard;
    held->is_rehearsal = !asked.rehearse.empty();
    held->what = g.what;
    held->seen = std::move(m.seen);
    held->judged_by = std::move(m.judged_by);
    held->requests = listed_once(held->seen);
    return result_access::make(std::move(held), g.verdicts, g.self_check);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
