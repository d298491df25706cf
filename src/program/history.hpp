// llmbench history: draws, annotates and extends a history of nightly runs
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/stored/arm_fields.hpp"
#include "core/stored/stored.hpp"
#include "core/wire/url.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "effects/system/environment.hpp"
#include "effects/targets/inquiries.hpp"
#include "extensions/history.hpp"
#include "extensions/history/folder.hpp"
#include "extensions/history/core/entry.hpp"
#include "extensions/history/core/lines.hpp"
#include "program/arguments.hpp"
#include "program/history/machines.hpp"
#include "program/history/page.hpp"
#include "program/values.hpp"

#include <algorithm>  // none_of
#include <cstddef>    // size_t
#include <iterator>   // size
#include <string>

namespace history_tool {

using namespace llmbench_program;

/// The options of annotations, in the order of annotation_kind: a gate's name, or a run's id.
inline constexpr const char* annotating[] = {"--accept", "--step", "--no-step", "--leave-out"};

/// Returns the lines of an annotation. Throws std::invalid_argument if its subject does not exist.
inline vector<history_note> notes_of(const given_options& o, annotation_kind kind,
                                     const history_lines& lines) {
    const std::string what = o[annotating[static_cast<std::size_t>(kind)]], at = o["--at"];
    annotation wanted{kind, at, o["--why"], o.has("--by") ? o["--by"] : environment("USER")};
    if (wanted.why.empty()) refuse({"an annotation needs its reason: --why \"...\""});
    vector<history_note> notes;
    if (kind == annotation_kind::leave_out) {
        for (const history_run& r : lines.runs)  // a run, or all of a file
            if (r.id == what || r.id.substr(0, r.id.rfind('.')) == what) {
                wanted.at = r.id;
                notes.push_back({"", r.gate, r.run_series, wanted});
            }
        if (notes.empty()) refuse({"--leave-out is \"", what, "\": the history has no such run"});
        return notes;
    }
    std::string run_series = o["--series"];
    for (const history_run& r : lines.runs)  // the newest run by default
        if (!o.has("--series") && r.gate == what && is_valid_run(r)) run_series = r.run_series;
    const vector<const history_run*> runs = runs_of(lines, what, run_series);
    if (runs.empty() && !o.has("--series"))
        refuse({no_valid_run_of(lines, what, "\"" + what + "\"")});
    if (runs.empty())
        refuse({"the history has no valid run of \"", what, "\" in the series ", run_series});
    if (!is_utc_date(at))
        refuse({"--at is \"", at, "\": it must be the date of a run, such as ",
                runs.back()->at.substr(0, 10)});
    const auto is_of = [&](const history_run* r) { return is_about(wanted, *r); };
    if (std::none_of(runs.begin(), runs.end(), is_of))
        refuse({"--at is ", at, ": \"", what, "\" has no run of that date, the newest is of ",
                runs.back()->at.substr(0, 10)});
    return {{"", what, run_series, wanted}};
}

/// Writes them to a new file, and returns its name.
inline std::string add_notes(const std::string& folder, vector<history_note> notes) {
    return add_lines(folder, utc_text(machine_unix_s()), "", notes.size(),
                     [&](std::size_t i, const std::string& id) {
                         notes[i].id = id;
                         return history_line(notes[i]);
                     });
}

/// Compares loads only: a result.json does not have the machine.
inline bool has_load_of(const run_series& a, const run_series& b) {
    const bool has_values = !a.load.empty() && !b.load.empty();
    for (const auto& [name, fact] : series_facts) {
        if (fact == &run_series::server) break;  // what follows is of the machine
        if (!(has_values && describes_load(fact)) && a.*fact != b.*fact) return false;
    }
    return !has_values || a.load == b.load;
}
/// Returns why a run is not of the machine of a series, "" if nothing tells that.
inline std::string why_elsewhere(const stored_gate& g, const std::string& cpu,
                                 const run_series& c) {
    if (c.cpu.empty()) return {};
    const bool is_here = is_this_host(parsed_url(g.target.url, "target.url"));
    const std::string at = is_here ? printable(cpu, 60) : g.target.url;
    return at == c.cpu ? "" : "it was measured on " + at + ", and its series on " + c.cpu;
}
/// Returns the series for a stored run: the named one, else the only one of its load and machine,
/// else a new one on LLMBENCH_MACHINE.
inline run_series series_for(const stored_gate& g, const std::string& cpu,
                             const history_store& all, const std::string& named,
                             const std::string& machine, const std::string& file) {
    const run_series reported = series_of_load(g.name, g.definitions, g.target, g.load, machine);
    vector<run_series> of_load;
    std::string why;
    for (const auto& [id, c] : all.all_series) {
        const bool is_other = !named.empty()         ? named != id
                              : c.machine.empty() ? c.cpu.empty() && !machine.empty()
                                                  : c.machine != machine;
        if (!has_load_of(c, reported) || is_other) continue;
        if (const std::string elsewhere = why_elsewhere(g, cpu, c); !elsewhere.empty())
            why = elsewhere;
        else of_load.push_back(c);
    }
    if (of_load.size() == 1) return of_load.front();
    if (of_load.size() > 1)
        refuse({file, printed(": %zu series have the load of \"", of_load.size()), g.name,
                "\": name one by --series"});
    if (!named.empty())
        refuse({file, ": \"", g.name, "\": ",
                why.empty() ? "its load is not that of the series " + named : why});
    if (machine.empty())
        refuse({file, ": \"", g.name, "\": ",
                why.empty() ? "nothing tells its machine, and the history has no series of its load"
                            : why,
                ": set LLMBENCH_MACHINE, or append a run first"});
    return reported;
}

/// The facts of a stored run that an append would have of it.
inline run_facts facts_of(const stored_gate& g, const stored_object& reported) {
    run_facts f{reported.has("capacity"), g.seen.stopped, g.seen.candidate.size(),
                static_cast<std::size_t>(g.judged_by.rule.most), {}};
    if (!g.load.shard.is_whole()) f.stopped = shard_text(g.load.shard);
    if (!g.seen.baseline.empty()) f.stopped = "its baseline is a server, and main runs alone";
    for (const repeat_data& d : g.seen.candidate)
        if (d.interrupted) f.stopped = "it was interrupted";
    for (const stored_object& s : reported.each("slos")) {
        slo_verdict& v = f.verdicts.emplace_back();
        read_fields(s, v);
        v.objective.at_most = s.text("side") != "at_least";
        std::string text = s.text("slo");
        if (text.starts_with("advisory(")) text.erase(0, 9);
        const std::string name =
            text.substr(0, text.rfind(v.objective.at_most ? " <= " : " >= "));
        v.objective.statistic.name = name;
        if (const metric_facts* const m = metric_of_statistic(name))
            v.objective.statistic.metric = m->id;
    }
    return f;
}

/// Returns the name of the machine that a stored run was measured from, "" in older files.
inline std::string name_in(const stored_object& environment) {
    return environment.has("machine") ? environment.at("machine").text("name") : "";
}
/// Adds the result.json of a run as one file. Returns its name, and which gates are not added.
inline std::string imported(const std::string& file, const history_store& all,
                            const std::string& named, const std::string& machine) {
    const std::string json = file_content(file, "--import");
    json_reader reader;
    const stored_object root = result_document(reader, json, file);
    const stored_object environment = root.at("environment");
    const std::string at = environment.text("started_at");
    if (!is_utc_time(at)) refuse({file, " does not say when it began"});
    check_is_past(file, at, clock_of_machine());
    vector<history_entry> gates;
    std::string left_out;
    const auto leave_out = [&](const std::string& gate, const std::string& why) {
        left_out += "not added: \"" + gate + "\": " + why + "\n";
    };
    for (const stored_object& reported : root.each("gates")) {
        const std::string name = reported.text("name");
        const bool is_rehearsal = reported.has("rehearsal");
        if (is_rehearsal || !reported.text("refusal").empty()) {
            leave_out(name, is_rehearsal ? "it was a rehearsal" : "it was refused or skipped");
            continue;
        }
        const stored_gate g = read_stored_gate(json, file, name);
        history_entry e = history_entry_of(g.name, facts_of(g, reported), g.statistics);
        if (!e.why_not.empty()) {
            leave_out(name, e.why_not);
            continue;
        }
        e.in = series_for(g, environment.text("cpu"), all, named, machine, file);
        e.run.run_series = id_of(e.in);
        const bool is_here = is_this_host(parsed_url(g.target.url, "target.url"));
        e.run.machine = machine.empty() && is_here ? name_in(environment) : machine;
        for (const history_run& r : all.lines.runs)
            if (r.gate == e.run.gate && r.run_series == e.run.run_series && r.at == at)
                refuse(
                    {file, " is in the history already: \"", g.name, "\" of ", at, " is ", r.id});
        gates.push_back(std::move(e));
    }
    if (gates.empty()) refuse({file, " has no gate that could be a run\n", left_out});
    return left_out + append_history(all.folder, gates, at, environment.text("commit"));
}

/// Adds the limits and values of a run to the statistics that the page has.
inline void add_result(vector<drawn_gate>& gates, const std::string& file) {
    const llmbench::past_result run = read_past_result(file_content(file, "--result"), file);
    for (drawn_gate& g : gates)
        for (const llmbench::past_gate& reported : run.gates) {
            if (str(reported.name) != g.gate) continue;
            for (const llmbench::past_slo& s : reported.slos) {
                const std::string slo = str(s.slo), statistic = slo.substr(0, slo.find(' '));
                double level = 0;  // a ratio is multiplied by the drawn level, a difference added
                for (std::size_t i = 0; i < g.series.size(); ++i)
                    if (g.series[i].statistic == statistic) level = g.levels[i].newest;
                const auto drawn = [&](double x) {
                    return s.relative ? x * level : s.difference ? x + level : x;
                };
                g.now[statistic] = {slo,
                                    drawn(s.limit),
                                    drawn(s.estimate.value),
                                    drawn(s.estimate.low),
                                    drawn(s.estimate.high),
                                    to_string(s.outcome)};
            }
        }
}

inline int run(const given_options& o) {
    std::size_t asked = 0;
    for (const char* option : {"--page", "--bisect", "--import", "--machines"})
        asked += o.has(option);
    for (const char* option : annotating) asked += o.has(option);
    if (asked != 1)
        refuse(
            {"one of --page, --accept, --step, --no-step, --leave-out, --bisect, --machines "
             "and --import is needed: `llmbench history --help` says what each does"});
    if (o.has("--commits") && o["--commits"].compare(0, 4, "http") != 0)
        refuse({"--commits is \"", o["--commits"], "\": it must be a URL"});
    set_variable("LLMBENCH_HISTORY_DIR", o[o.has("--machines") ? "--machines" : "--folder"]);
    const history_settings set = history_settings_of(environment);
    const std::string folder = set.folder_or(llmbench::history().folder);
    const history_clock clock = clock_of_machine();
    for (const std::string& file : o.all("--import")) {
        history_store all{.folder = folder};
        if (std::filesystem::is_directory(folder)) all = read_history(folder, clock);
        say(imported(file, all, o["--series"], set.machine) + "\n");
    }
    if (o.has("--import")) return 0;
    const history_store all = read_history(folder, clock);
    for (std::size_t k = 0; k < std::size(annotating); ++k)
        if (o.has(annotating[k])) {
            say(add_notes(folder, notes_of(o, static_cast<annotation_kind>(k), all.lines)) + "\n");
            return 0;
        }
    const history_lines then = as_of(all.lines, set.at);
    vector<drawn_gate> gates = gates_of(then, all.all_series);
    if (gates.empty())
        refuse({folder, then.runs.empty() ? " has no run yet" : " has no valid run yet"});
    if (o.has("--machines")) {
        say(machines_of_gates(gates));
        return 0;
    }
    if (o.has("--bisect")) {
        say(bisection_of(then, gates, o["--bisect"]));
        return 0;
    }
    if (o.has("--result")) add_result(gates, o["--result"]);
    write_file(o["--page"], page_of(folder, gates, o["--commits"]));
    return 0;
}

}  // namespace history_tool

namespace llmbench_program {

inline verb history_verb() {
    return {"history",
            "Draw and annotate the history of the main branch",
            {{"One of these",
              {{"--page", "FILE", "draws the runs into this HTML file"},
               {"--accept", "GATE", "accepts its level since the run --at"},
               {"--step", "GATE", "the run --at is a step"},
               {"--no-step", "GATE", "it is none"},
               {"--leave-out", "ID", "this run counts for nothing"},
               {"--bisect", "GATE", "the commits between which main became worse"},
               {"--machines", "FOLDER", "how the machines of its runs differ"},
               {"--import", "FILE", "adds runs that were kept as result.json", takes::many}}},
             {"With them",
              {{"--folder", "PATH", "default: LLMBENCH_HISTORY_DIR, else perf-history"},
               {"--result", "FILE", "today's result.json, for --page"},
               {"--commits", "URL", "what a commit is appended to for a link, for --page"},
               {"--at", "DATE", "of a run, for an annotation"},
               {"--why", "TEXT", "the reason of an annotation"},
               {"--by", "NAME", "whose annotation it is; default: USER"},
               {"--series", "ID", "of several with one load"}}}},
            "Examples:\n"
            "  llmbench history --page history.html --result llmbench-report/result.json\n"
            "  llmbench history --accept chat --at 2026-11-20 --why 'longer prompts'\n"
            "An annotation is a line of a file of its own, to be committed like the others.\n"
            "Exit codes: 0 done, 2 refused.",
            history_tool::run};
}

}  // namespace llmbench_program
