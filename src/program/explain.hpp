// llmbench explain: what the gates of a file can show, without a server
// Each gate is rehearsed on a model of its server. The exit code says whether they are accepted.
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/planning/load_search.hpp"
#include "core/described/limits.hpp"
#include "core/judging/outcome.hpp"
#include "core/metric/table.hpp"
#include "core/planning/plan_text.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/text.hpp"
#include "effects/gates/session.hpp"
#include "effects/system/console.hpp"
#include "program/arguments.hpp"
#include "program/config/blind_spots.hpp"
#include "program/config/gates_file.hpp"
#include "program/designs.hpp"
#include "program/output.hpp"
#include "program/run.hpp"
#include "program/values.hpp"

#include <cmath>  // fabs, isnan
#include <cstddef>
#include <cstdlib>  // mkdtemp, unsetenv, _Exit
#include <filesystem>
#include <iostream>  // cout
#include <string>
#include <system_error>  // error_code

namespace llmbench_program {

/// One gate, explained.
struct explained_gate {
    struct objective {
        std::string slo{};
        bool is_advisory = false;
        double shows_from = not_a_number, limit = not_a_number, inconclusive = not_a_number;
        std::string from_text{}, would_be{};
    };
    std::string name{}, refusal{}, load{}, repeats{};
    int line = 0;
    double least_s = 0, most_s = 0;
    vector<objective> objectives{};
    vector<std::string> not_modelled{};  // objectives and side tasks that a model has not
    vector<blind_spot> cannot_see{};
    double repeat_s = 0;
    vector<statistic_designs> designs{};  // of --budget
};

/// The gate as a model can have it: `left_out` gets what it cannot.
inline scenario for_a_model(const scenario& s, vector<std::string>& left_out) {
    scenario m = s;
    slo_list slos;
    for (const slo& x : s.slos)
        if (is_of_start(x.statistic.metric) || x.statistic.metric == metric_id::server_metric)
            left_out.push_back(str(x.text()));
        else slos.push_back(x);
    m.slos = slos;
    for (const side_task& t : s.beside) left_out.push_back("side task " + str(t.name));
    m.beside = {};
    m.on_fail = {};
    return m;
}

inline explained_gate explained(const gate_in_file& g, const gate_report& r,
                                vector<std::string> left_out) {
    explained_gate e{g.name, r.refusal};
    e.line = g.line;
    e.not_modelled = std::move(left_out);
    e.cannot_see = blind_spots(g.what);
    if (!r.refusal.empty()) return e;
    e.load = plan_text(r.what);
    e.repeats = repeats_text(r.what);
    const double planned_s = seconds_of_one(r.what);
    const double modelled_s = r.took_s / static_cast<double>(std::max<std::size_t>(
                                             1, r.figures.candidate.repeats.size()));
    e.repeat_s = planned_s > 0 ? planned_s : modelled_s;
    const span_of_repeats span = expected_span(r.what, e.repeat_s);
    e.least_s = r.what.searches() ? r.took_s : span.least;
    e.most_s = std::max(e.least_s, span.most);
    for (std::size_t i = 0; i < r.rehearsal.objectives.size(); ++i) {
        const rehearsal_report::objective& o = r.rehearsal.objectives[i];
        const slo_verdict& v = r.verdicts[i];
        explained_gate::objective x{o.slo, v.objective.is_advisory, o.shows_from, v.limit,
                                    o.inconclusive};
        x.would_be = to_string(o.would_be);
        if (!std::isnan(o.shows_from)) x.from_text = verdict_value_text(v, o.shows_from);
        if (std::fabs(o.shows_from / v.limit - 1) < 10)
            fill(x.from_text, "[, {distance}]", {{"distance", distance_text(v, o.shows_from)}});
        if (is_of_work(v.objective.statistic.metric))
            x.from_text = "the first number that misses it: counts have no noise";
        e.objectives.push_back(x);
    }
    return e;
}

inline std::string explained_text(const explained_gate& e, const char* file, double budget_s) {
    std::string t = printed("\n%s  (%s:%d)\n", printable(e.name, 200).c_str(), file, e.line);
    if (!e.refusal.empty()) return t + wrapped_lines("  REFUSED: " + e.refusal) + "\n";
    const auto line = [&](const char* what, const std::string& text) {
        t += wrapped_lines(printed("  %-11s %s", what, text.c_str())) + "\n";
    };
    line("sends", e.load);
    line("takes", e.repeats + ", " + span_text(e.least_s, e.most_s) + ", and the server's start");
    report_table table{{"objective", "nine runs of ten fail from"}};
    for (const auto& o : e.objectives) {
        const char* none = "no miss: too few requests, or judged in another way";
        table.add({o.slo, (o.from_text.empty() ? none : o.from_text) +
                              (o.is_advisory ? "; advisory: fails nothing" : "")});
    }
    t += console_table(table, 0);
    for (const statistic_designs& d : e.designs) t += designs_text(d, budget_s);
    for (const std::string& n : e.not_modelled) line("no model of", n);
    t += e.cannot_see.empty() ? "" : "  cannot see\n";
    for (const blind_spot& b : e.cannot_see) t += "    - " + b.text + "\n";
    return t;
}
inline std::string explained_json(const vector<explained_gate>& all, const char* file,
                                  const std::string& model) {
    json_writer j;
    j.open('{').field("schema", "llmbench/explain/1").field("version", version_text());
    j.field("file", file).field("model", model).key("gates").open('[');
    for (const explained_gate& e : all) {
        j.open('{').field("name", e.name).field("line", e.line);
        j.field("accepted", e.refusal.empty()).field("refusal", e.refusal);
        j.field("load", e.load).field("repeats", e.repeats);
        j.field("least_seconds", e.least_s).field("most_seconds", e.most_s);
        j.key("objectives").open('[');
        for (const auto& o : e.objectives) {
            j.open('{').field("slo", o.slo).field("advisory", o.is_advisory);
            j.field("limit", o.limit).field("fails_from", o.shows_from);
            j.field("inconclusive", o.inconclusive).field("on_the_model", o.would_be).close();
        }
        j.close();
        if (!e.designs.empty()) write_designs(j, e.designs);
        j.key("not_modelled").open('[');
        for (const std::string& n : e.not_modelled) j.value(std::string_view(n));
        j.close().key("cannot_see").open('[');
        for (const blind_spot& b : e.cannot_see)
            j.open('{').field("id", b.id).field("text", b.text).close();
        j.close().close();
    }
    return j.close().close().text() + "\n";
}

/// The reports of a rehearsal, in a folder that is gone afterwards, and a silent console.
class silent_rehearsal {
public:
    explicit silent_rehearsal(const std::string& model) {
        std::string folder = (std::filesystem::temp_directory_path() / "llmbench-XXXXXX").string();
        if (!::mkdtemp(folder.data())) refuse({"no folder can be made at ", folder});
        folder_ = folder;
        for (const char* of_a_run :
             {"GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "LLMBENCH_CALIBRATE", "LLMBENCH_HISTORY",
              "LLMBENCH_WRITE_BASELINE", "LLMBENCH_SHARD", "LLMBENCH_TIME_BUDGET"})
            ::unsetenv(of_a_run);
        set_variable("LLMBENCH_REHEARSE", model);
        set_variable("LLMBENCH_REPORT_DIR", folder_.string());
        console_ = std::cout.rdbuf(nullptr);
    }
    ~silent_rehearsal() {
        std::cout.rdbuf(console_);
        std::cout.clear();
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    silent_rehearsal(const silent_rehearsal&) = delete;
    silent_rehearsal& operator=(const silent_rehearsal&) = delete;

private:
    std::filesystem::path folder_{};
    std::streambuf* console_ = nullptr;
};

/// What --budget and the options about servers say; a budget of 0: not asked for.
inline design_costs costs_of(const given_options& o) {
    design_costs c;
    if (o.has("--budget")) {
        const given g = o.one("--budget");
        c.budget_s = time_of(g).seconds();
        if (!(c.budget_s > 0)) g.refuse_as("a time above 0, such as 10min");
    }
    if (o.has("--restart-time")) c.restart_s = time_of(o.one("--restart-time")).seconds();
    if (o.has("--switch-time")) c.switch_s = time_of(o.one("--switch-time")).seconds();
    if (c.budget_s > 0) return c;
    for (const char* of_it : {"--restart-time", "--switch-time", "--calibration"})
        if (o.has(of_it)) refuse({of_it, " is of --budget: name the time, as --budget 10min"});
    return c;
}
/// A calibration's text; "": none. Refuses a file that is none, before anything is rehearsed.
inline std::string calibration_text(const given_options& o) {
    if (!o.has("--calibration")) return {};
    const std::string file = o["--calibration"], text = file_content(file, "--calibration");
    read_calibration(text, file, "");
    return text;
}
inline void add_designs(const given_options& o, const std::string& calibration,
                        const gate_in_file& g, design_costs c, explained_gate& into) {
    if (g.what.arrivals.data().is_searched) return;
    gate_calibration known;
    if (!calibration.empty()) known = read_calibration(calibration, o["--calibration"], g.name);
    if (!known.why_none.empty()) into.not_modelled.push_back(known.why_none);
    c.repeat_s = into.repeat_s;
    into.designs = designs_of(g.what, c, known);
}

inline int explain_gates(const given_options& o) {
    if (o.all("FILE").size() != 1)
        refuse({"one file of gates is needed, as `llmbench explain gates.toml`"});
    const std::string like = o.has("--like") ? o["--like"] : "1";
    const design_costs costs = costs_of(o);
    const std::string calibration = calibration_text(o);
    vector<explained_gate> all;
    gate_outcome worst = gate_outcome::passed;
    const char* path = "";
    std::string model;
    {
        const silent_rehearsal silence(like);
        gates_reader file(o["FILE"]);
        const gates_in_file gates = file.read({}, o.all("--gate"));
        path = gates.path;
        ::unsetenv("LLMBENCH_API");  // the scenarios have it
        for (const gate_in_file& g : gates.gates) {
            vector<std::string> left_out;
            const scenario s = for_a_model(g.what, left_out);
            const std::size_t number = number_of_run([&] { run_one(s, path, g.line); });
            session::of_this_program().with_reports([&](program_reports& r) {
                const gate_report& of = r.gates[number];
                if (of.outcome != gate_outcome::skipped) worst = worse_of(worst, of.outcome);
                if (of.is_modelled()) model = of.rehearsal.model;
                all.push_back(explained(g, of, std::move(left_out)));
                const bool has_noise = !of.under.counts_work;
                if (costs.budget_s > 0 && of.refusal.empty() && has_noise)
                    add_designs(o, calibration, g, costs, all.back());
            });
        }
        exit_code();
    }
    std::string text;
    if (o.has("--json")) text = explained_json(all, path, model);
    else {
        double least = 0, most = 0;
        for (const explained_gate& e : all) {
            text += explained_text(e, path, costs.budget_s);
            least += e.least_s;
            most += e.most_s;
        }
        text += printed("\n%zu gate%s", all.size(), all.size() == 1 ? "" : "s");
        if (most > 0) text += ", " + span_text(least, most) + " in all";
        text += ". ";
        text += "Nothing was sent: modelled on " + model + "\n";
    }
    say(text);
    std::_Exit(code_with_output(exit_code_of(worst), false));  // else that of a rehearsal, 77
}

inline verb explain_verb() {
    return {"explain",
            "Say what the gates of a file can show, without a server",
            {{"File", {{"FILE", "", "gates.toml", takes::many}}},
             {"Options",
              {{"--gate", "NAME", "of the file, this one; may be repeated", takes::each},
               {"--like", "FILE", "result.json of a run, whose server is modelled"},
               {"--budget", "TIME", "what each design of a gate finds in that time, best first"},
               {"--calibration", "FILE", "for --budget: calibration.json with the spread of repeats"},
               {"--restart-time", "TIME", "for --budget: a server's start, default 2min"},
               {"--switch-time", "TIME", "for --budget: one sleeps, the other wakes, default 7s"},
               {"--json", "", "for machines", takes::nothing}}}},
            "Examples:\n"
            "  llmbench explain gates.toml\n"
            "  llmbench explain gates.toml --like llmbench-report/result.json --json\n"
            "  llmbench explain gates.toml --budget 10min --calibration calibration.json\n"
            "For each gate: the time that it takes, the smallest miss that fails in nine runs of\n"
            "ten, and what it cannot see. With --budget, the same for each design of a gate, from\n"
            "drawn repeats; both servers at once from the table of tests/bench/rates.md.\n"
            "Exit codes: 0 all gates are accepted, 2 one is refused, 3 one could not be modelled.",
            explain_gates};
}

}  // namespace llmbench_program
