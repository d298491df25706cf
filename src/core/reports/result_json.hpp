// result.json, calibration.json and answers.jsonl
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/field_json.hpp"
#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/measurements.hpp"
#include "core/described/described.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/expected.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/tokens.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/load_search.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/stored/arm_fields.hpp"
#include "core/stored/calibration.hpp"
#include "core/stored/record_json.hpp"
#include "core/stored/gate_fields.hpp"
#include "core/reports/gate_report.hpp"

#include <cmath>  // isnan
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns the file that LLMBENCH_CALIBRATION reads.
inline std::string calibration_json(const vector<gate_report>& gates) {
    vector<calibrated_gate> all;
    for (const gate_report& g : gates) {
        if (g.calibration.empty()) continue;
        all.push_back({g.what.name, g.figures.candidate.repeats.size()});
        for (const calibrated& c : g.calibration)
            all.back().limits.push_back({str(c.objective.text()), noise_name(c.objective),
                                         c.estimate, c.sd, c.headroom_sd, suggestion_of(c)});
    }
    json_writer j;
    j.open('{');
    write_fields(j, all);
    return j.close().text() + "\n";
}

inline void fields_of(field_visitor& v, rehearsal_report& r, double& took_s) {
    v.text({"model"}, r.model);
    v.number({"would_take_s", "with a server, which takes time to start, too"}, took_s,
             seconds_range);
    v.list({"objectives"}, r.objectives, [&](rehearsal_report::objective& o) {
        v.text({"slo"}, o.slo);
        v.choice({"would_be"}, o.would_be, verdict::skipped);
        v.number({"shown_from", "a true value that fails in nine runs of ten"}, o.shows_from,
                 any_number);
        v.number({"inconclusive", "a fraction of the runs"}, o.inconclusive, {0, 1});
    });
}
inline void fields_of(field_visitor& v, environment_facts& e) {
    v.text({"started_at", "UTC, RFC 3339"}, e.started_at);
    v.text({"commit", "of what was tested, \"\" where that is unknown"}, e.commit);
    v.text({"os"}, e.os);
    v.text({"cpu"}, e.cpu);
    v.whole({"cores"}, e.cores);
    v.object({"machine", "", at_times}, e.machine);
    v.text({"compiler"}, e.compiler);
    v.text({"program", "as it was called", if_any}, e.program);
    v.text({"call", "with its arguments, for a shell and without secrets", if_any}, e.call);
}

/// What is known of each gate, also of one that measured nothing.
inline void identity_fields(field_visitor& v, gate_report& g) {
    v.text({"name"}, g.what.name);
    v.choice({"outcome"}, g.outcome, gate_outcome::skipped);
    v.text({"refusal", "where it is not empty nothing was measured, and only the first fields are "
                       "there"}, g.refusal);
    v.text({"file"}, g.what.file);
    v.whole({"line"}, g.what.line);
    v.text({"failed_beside", "why its test case failed where no objective of it did", if_any},
           g.beside);
    v.text({"test_case", "of doctest", if_any}, g.what.test_case);
    v.number({"took_s", "with the start and stop of servers", if_any}, g.took_s, seconds_range);
    v.flag({"inconclusive_fails", "LLMBENCH_INCONCLUSIVE=fail", if_any}, g.undecided_fails);
    v.texts({"notes", "on the load and the servers, known before it was sent", if_any}, g.notes);
}
/// Where its verdicts are none.
inline void purpose_fields(field_visitor& v, gate_report& g) {
    if (v.has("rehearsal", g.is_modelled()))
        v.object({"rehearsal", "LLMBENCH_REHEARSE: a model answered instead of every server, "
                               "nothing was sent, and nothing here is evidence of any", at_times},
                 g.rehearsal, g.took_s);
    bool is_calibrated = !g.calibration.empty();
    v.flag({"calibrated", "LLMBENCH_CALIBRATE: calibration.json has what came of it", if_any},
           is_calibrated);
}
inline void variant_fields(field_visitor& v, gate_report& g, run_variant variant) {
    const bool is_baseline = variant == run_variant::baseline;
    if (!v.has(to_string(variant), !is_baseline || g.what.judged->has_baseline)) return;
    v.object({to_string(variant), "what was measured on one target", at_times, "arm"},
             is_baseline ? g.figures.baseline : g.figures.candidate,
             (is_baseline ? g.baseline : g.target).tokens, g.figures.table_rows, g.figures.kept);
}
inline void server_fields(field_visitor& v, gate_report& g) {
    v.object({"target", "a server, and what it was", at_times, "target"}, g.target);
    v.list({"accelerators", "of the target, by dcgm-exporter or nvidia-smi", if_any},
           g.accelerators, [&](accelerator_facts& a) { fields_of(v, a); });
    if (v.has("baseline_target", g.what.judged->has_baseline))
        v.object({"baseline_target", "", at_times, "target"}, g.baseline);
}
inline void search_fields(field_visitor& v, gate_report& g) {
    if (v.has("capacity", g.figures.search != nullptr))
        v.object({"capacity", "what a search for the most load found", at_times}, g.figures.search);
}
inline void judging_fields(field_visitor& v, gate_report& g) {
    expected_load expected{g.what.judged->has_baseline, has_turns(g.what),
                           expected_requests(g.what),
                           expected_first_turns(g.what)};
    v.object({"judging", "what the verdicts depend on beside the records", at_times}, g.judged_by,
             g.under, expected);
}
inline void profile_fields(field_visitor& v, gate_report& g) {
    if (!v.has("profile", g.profile != nullptr)) return;
    taken_profile none;
    v.object({"profile", "what came of `on_fail`, of a gate that failed", at_times},
             g.profile ? *g.profile : none);
}
inline void fields_of(field_visitor& v, gate_report& g) {
    identity_fields(v, g);
    purpose_fields(v, g);
    const auto each = [&](slo_verdict& of) { fields_of(v, of); };
    vector<slo_verdict> judged;
    v.list({"slos_not_judged", "of a gate that measured nothing", if_any, "slo"},
           g.refusal.empty() ? judged : g.verdicts, each);
    if (!v.has("target", g.refusal.empty())) return;
    server_fields(v, g);
    load_facts load = load_facts_of(g.what);
    v.object({"scenario", "the load as it was asked for", at_times}, load);
    v.list({"slos", "", at_times, "slo"}, g.verdicts, each);
    search_fields(v, g);
    judging_fields(v, g);
    for (const run_variant of : {run_variant::candidate, run_variant::baseline})
        variant_fields(v, g, of);
    const bool has_figures = !g.target.is_virtual;
    v.object({"self_check", "what the client can say against its own numbers: seconds and "
                            "fractions, which it has none of in virtual time", at_times},
             g.self_check, has_figures);
    profile_fields(v, g);
}

struct run_report {
    vector<gate_report>& gates;
    environment_facts& environment;
    event_index& events;
    const all_sections& beside;
    vector<gate_report>& outside;  // failures that are no gate's
    int exit_code = 0;
};
inline void fields_of(field_visitor& v, run_report& r) {
    std::string schema = "llmbench/result/2", definitions = definitions_version;
    std::string version = version_text();
    v.text({"schema"}, schema);
    v.text({"version", "of the header"}, version);
    v.text({"definitions", "of the metrics: metrics/1"}, definitions);
    v.whole({"exit_code", "0, 1, 2, 3 or 77"}, r.exit_code);
    v.object({"environment"}, r.environment);
    v.list({"gates", "", presence::always, "gate"}, r.gates,
           [&](gate_report& g) { fields_of(v, g); });
    v.list({"outside", "failures that are no gate's, as of a test case", if_any}, r.outside,
           [&](gate_report& g) { identity_fields(v, g); });
    for (program_section* b : r.beside) b->fields(v);
    v.object({"events", "events.bin, the gaps between content events"}, r.events);
}

inline std::string result_json(const vector<gate_report>& gates, const environment_facts& env,
                               const event_index& events, int exit_code,
                               const all_sections& beside = {},
                               const vector<gate_report>& outside = {}) {
    json_writer j;
    j.open('{');
    // Writing changes none of these.
    write_fields(j, run_report{const_cast<vector<gate_report>&>(gates),
                               const_cast<environment_facts&>(env),
                               const_cast<event_index&>(events),
                               beside, const_cast<vector<gate_report>&>(outside),
                               exit_code});
    return j.close().text() + "\n";
}

inline void fields_of(field_visitor& v, shown_answer& a) {
    v.text({"id"}, a.id);
    v.text({"is"}, a.is);
    v.whole({"times"}, a.times);
    v.whole({"asked"}, a.asked);
    v.text({"question"}, a.question);
    v.text({"wanted"}, a.wanted);
    v.text({"read"}, a.read);
    v.text({"answer"}, a.answer);
    if (!v.has("same_characters", !std::isnan(a.same_characters))) return;
    v.text({"baseline_answer"}, a.baseline_answer);
    v.number({"same_characters"}, a.same_characters);
}
/// answers.jsonl: a line for each answer that a gate shows.
inline std::string answers_jsonl(const vector<gate_report>& gates) {
    std::string lines;
    for (const gate_report& g : gates)
        for (const shown_answer& a : g.answers) {
            json_writer j(layout::one_line);
            j.open('{').field("gate", g.what.name);
            write_fields(j, a);
            lines += j.close().text() + "\n";
        }
    return lines;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
