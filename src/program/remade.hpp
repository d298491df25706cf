// llmbench show: the reports of a run, made again from its files
// result.json has what the reports say of a gate, and records.jsonl what they draw and count.
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/field_json.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/page/page.hpp"
#include "core/reports/result_json.hpp"
#include "core/stored/arm_fields.hpp"
#include "core/stored/gate_fields.hpp"
#include "effects/gates/stored_run.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "program/arguments.hpp"
#include "program/judge.hpp"

#include <deque>
#include <filesystem>
#include <memory>  // make_shared
#include <sstream>  // istringstream
#include <string>
#include <utility>  // move


namespace llmbench_program {

/// The gates of a run as its reports show them.
struct remade_run {
    vector<gate_report> gates{};
    environment_facts environment{};
    std::deque<std::string> files{};  // in which its objectives stand
};

/// Refuses what result.json and records.jsonl do not have of a gate's reports.
inline void check_remade(const stored_object& gate, const own_run& run) {
    const auto refuse_for = [&](const char* why) {
        refuse({run.result(), ": \"", printable(gate.text("name"), 200), "\" ", why});
    };
    if (gate.has("rehearsal")) refuse_for("was a rehearsal, of which no file has the figures");
    if (gate.has("calibrated")) refuse_for("was calibrated, and calibration.json has it in short");
    if (gate.has("capacity")) refuse_for("searched a load, of which result.json has no drawings");
    if (gate.text("refusal").empty() && !gate.at("scenario").has("plan"))
        refuse_for("is of an older version, which left out some of its texts");
}
/// Reads the verdicts on objectives, each of which its text says in full.
inline vector<slo_verdict> verdicts_of(const stored_object& gate, remade_run& to) {
    vector<slo_verdict> all;
    for (const stored_object& s : gate.each(gate.has("slos") ? "slos" : "slos_not_judged")) {
        slo_verdict v;
        v.objective = s.text("slo") == str(error_guard().text()) ? error_guard()
                                                                 : parse_slo(s.text("slo"));
        v.objective.is_advisory = s.is_true("advisory");
        read_fields(s, v);
        v.objective.at.file = to.files.emplace_back(s.text("file")).c_str();
        all.push_back(v);
    }
    return all;
}
inline gate_report remade_gate(const stored_object& gate, const own_run& run, remade_run& to) {
    check_remade(gate, run);
    gate_report g;
    field_reader identity(gate);
    identity_fields(identity, g);
    g.verdicts = verdicts_of(gate, to);
    if (!g.refusal.empty()) return g;
    stored_run stored = read_stored_run(run.records(), g.what.name);
    const stored_gate& of = stored.gate;
    vector<slo> slos;
    for (const slo_verdict& v : g.verdicts)
        if (&v + 1 != g.verdicts.end() || is_own_objective(v)) slos.push_back(v.objective);
    plan p = with_traffic(of.described, [&](planned_traffic& t) {
        t.described.plan = of.load.plan;
        t.described.repeats = of.load.repeats;
        if (of.load.baseline_workload.empty()) return;
        planned_workloads other;
        other.workload_text = of.load.baseline_workload;
        t.otherwise = std::move(other);
    });
    p = with_judging(std::move(p), [&](planned_judging& j) {
        j.rule = of.judged_by.rule;
        j.slos = slos;
    });
    static_cast<gate_identity&>(p) = g.what;
    g.what = std::move(p);
    g.target = of.target;
    if (gate.has("accelerators"))
        for (const stored_object& a : gate.each("accelerators"))
            read_fields(a, g.accelerators.emplace_back());
    if (g.what.judged->has_baseline) read_fields(gate.at("baseline_target"), g.baseline);
    g.judged_by = of.judged_by;
    g.under = of.seen;
    g.figures = figures_of(g.what, of.seen, slos);
    for (const run_variant variant : {run_variant::candidate, run_variant::baseline}) {
        const bool is_baseline = variant == run_variant::baseline;
        field_reader from(gate.at(to_string(variant)));
        prompt_fields(from, (is_baseline ? g.figures.baseline : g.figures.candidate).prompts,
                      (is_baseline ? g.baseline : g.target).tokens);
    }
    const bool has_figures = !g.target.is_virtual;
    read_fields(gate.at("self_check"), g.self_check, has_figures);
    if (gate.has("profile")) {
        g.profile = std::make_shared<taken_profile>();
        read_fields(gate.at("profile"), *g.profile);
    }
    return g;
}
/// Adds the answers that gates show.
inline void read_answers(const own_run& run, vector<gate_report>& gates) {
    const std::string file = (std::filesystem::path(run.directory) / "answers.jsonl").string();
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) return;
    std::istringstream lines(file_content(file, "the answers of the run"));
    std::string line;
    json_reader reader;
    for (int number = 1; std::getline(lines, line); ++number) {
        const json_view* const answer = reader.read(line);
        if (!answer) refuse({file, printed(":%d is no JSON", number)});
        const stored_object of(*answer, file);
        for (gate_report& g : gates)
            if (g.what.name == of.text("gate")) read_fields(of, g.answers.emplace_back());
    }
}
inline remade_run remade(const own_run& run) {
    remade_run to;
    const std::string json = file_content(run.result(), "the run");
    json_reader reader;
    const stored_object root = result_document(reader, json, run.result());
    for (const char* section : {"comparisons", "curves"})
        if (root.has(section))
            refuse({run.result(), " has ", section, ", whose part of the reports only the program "
                                                    "that measured them writes"});
    read_fields(root.at("environment"), to.environment);
    for (const stored_object& gate : root.each("gates"))
        to.gates.push_back(remade_gate(gate, run, to));
    read_answers(run, to.gates);
    for (const stored_object& gate : root.each("outside")) {
        gate_report g;
        field_reader identity(gate);
        identity_fields(identity, g);
        to.gates.push_back(std::move(g));
    }
    return to;
}

/// Refuses to write among the files of a run.
inline void check_outside(const char* option, const std::string& file, const own_run& run) {
    std::error_code ignored;
    const std::filesystem::path path = std::filesystem::absolute(file);
    if (std::filesystem::equivalent(path.parent_path(), run.directory, ignored))
        refuse({option, " is ", printable(file), ": it must be outside ", printable(run.directory),
                ", whose files are read"});
}
/// The options that name a report to make again.
inline constexpr const char* reports_made_again[] = {"--page", "--summary", "--junit", "--metrics"};
inline bool makes_again(const given_options& o) {
    return detail::any_of(reports_made_again, [&](const char* option) { return o.has(option); });
}
inline bool has_only_page(const given_options& o) {
    return !o.has("--summary") && !o.has("--junit") && !o.has("--metrics");
}
inline int make_again(const own_run& run, const given_options& o) {
    const remade_run of = remade(run);
    for (const char* option : reports_made_again) {
        if (!o.has(option)) continue;
        const std::string name = option;
        check_outside(option, o[option], run);
        write_file(std::filesystem::absolute(o[option]),
                   name == "--page"      ? report_html(of.gates, of.environment)
                   : name == "--summary" ? summary_md(of.gates)
                   : name == "--junit"   ? junit_xml(of.gates)
                                         : open_metrics(of.gates));
        say(o[option] + "\n");
    }
    return 0;
}

}  // namespace llmbench_program
