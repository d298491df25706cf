// llmbench history: draws, annotates and extends a history of nightly runs
#pragma once

#include "core/base/text.hpp"
#include "core/stored/stored.hpp"
#include "effects/system/files.hpp"
#include "effects/system/settings.hpp"
#include "extensions/history.hpp"
#include "extensions/history/folder.hpp"
#include "extensions/history/core/entry.hpp"
#include "extensions/history/core/lines.hpp"
#include "program/arguments.hpp"
#include "program/history/page.hpp"
#include "program/values.hpp"

#include <algorithm>  // find, none_of
#include <cstddef>  // size_t
#include <cstdio>
#include <iterator>  // begin, end, size
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace history_tool {

using namespace llmbench::detail;

/// A wanted annotation, for a gate's date or for a run's id.
struct wanted_annotation {
    annotation_kind kind{};
    std::string what{};  // a gate, or the id of a run
    std::string at{}, why{}, by{}, run_series{};
};

/// Returns the lines of an annotation. Throws std::invalid_argument if its subject does not exist.
inline std::vector<history_note> notes_of(const wanted_annotation& w, const history_lines& lines) {
    if (w.why.empty()) refuse({"an annotation needs its reason: --why \"...\""});
    std::vector<history_note> notes;
    if (w.kind == annotation_kind::leave_out) {
        for (const history_run& r : lines.runs)  // a run, or all of a file
            if (r.id == w.what || r.id.substr(0, r.id.rfind('.')) == w.what)
                notes.push_back({"", r.gate, r.run_series, {w.kind, r.id, w.why, w.by}});
        if (notes.empty()) refuse({"--leave-out is \"", w.what, "\": the history has no such run"});
        return notes;
    }
    std::string run_series = w.run_series;
    for (const history_run& r : lines.runs)  // the newest run by default
        if (w.run_series.empty() && r.gate == w.what && is_valid_run(r)) run_series = r.run_series;
    const std::vector<const history_run*> runs = runs_of(lines, w.what, run_series);
    if (runs.empty())
        refuse({"the history has no run of \"", w.what, "\"",
                run_series.empty() ? "" : " in the series " + run_series});
    if (!is_utc_date(w.at))
        refuse({"--at is \"", w.at, "\": it must be the date of a run, such as ",
                runs.back()->at.substr(0, 10)});
    const annotation wanted{w.kind, w.at, w.why, w.by};
    const auto is_of = [&](const history_run* r) { return is_about(wanted, *r); };
    if (std::none_of(runs.begin(), runs.end(), is_of))
        refuse({"--at is ", w.at, ": \"", w.what, "\" has no run of that date, the newest is of ",
                runs.back()->at.substr(0, 10)});
    return {{"", w.what, run_series, wanted}};
}

/// Writes them to a new file, and returns its name.
inline std::string add_notes(const std::string& folder, std::vector<history_note> notes) {
    std::random_device random;
    const std::uint64_t own = random();
    const std::string now = utc_text(machine_unix_s());
    const std::string stem = stem_of_run(now, "", own);
    std::string lines;
    for (std::size_t i = 0; i < notes.size(); ++i) {
        notes[i].id = stem + "." + std::to_string(i + 1);
        lines += history_line(notes[i]);
    }
    const std::filesystem::path file = std::filesystem::path(folder) / now.substr(0, 4) /
                                       now.substr(5, 2) / (stem + ".jsonl");
    if (!add_file(file, lines, own)) refuse({file.string(), " is there already: try again"});
    return file.string();
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
/// Returns the series for a stored run: the named one, else the only one of its load, else a new
/// one on LLMBENCH_MACHINE.
inline run_series series_for(const stored_gate& g, const history_store& all,
                             const std::string& named, const std::string& machine,
                             const std::string& file) {
    const run_series reported = series_of_load(g.name, g.definitions, g.target, g.load, machine);
    std::vector<run_series> of_load;
    for (const auto& [id, c] : all.all_series)
        if (has_load_of(c, reported) && (named.empty() || named == id)) of_load.push_back(c);
    if (of_load.size() == 1) return of_load.front();
    if (of_load.size() > 1)
        refuse({file, printed(": %zu series have the load of \"", of_load.size()), g.name,
                "\": name one by --series"});
    if (!named.empty())
        refuse({file, ": the load of \"", g.name, "\" is not that of the series ", named});
    if (machine.empty())
        refuse({file, " does not tell the machine of \"", g.name,
                "\", and the history has no "
                "series of its load: set LLMBENCH_MACHINE, or append a run first"});
    return reported;
}

/// Adds the result.json of a run as one file.
inline std::string imported(const std::string& file, const history_store& all,
                            const std::string& named, const std::string& machine) {
    const std::string json = file_content(file, "--import");
    const picojson::value document = result_document(json, file);
    const checked_object root(document, file, "");
    const std::string at = root.at("environment").text("started_at");
    if (!is_utc_time(at)) refuse({file, " does not say when it began"});
    std::vector<history_entry> gates;
    for (const checked_object& reported : root.each("gates")) {
        if (!reported.text("refusal").empty() || reported.has("rehearsal")) continue;
        const stored_gate g = read_stored_gate(json, file, reported.text("name"));
        const bool searched = reported.has("capacity");
        if (!g.fault.empty() || searched || !g.load.shard.is_whole()) continue;
        history_entry e;
        e.in = series_for(g, all, named, machine, file);
        e.run.gate = g.name;
        e.run.run_series = id_of(e.in);
        for (const history_run& r : all.lines.runs)
            if (r.gate == e.run.gate && r.run_series == e.run.run_series && r.at == at)
                refuse({file, " is in the history already: \"", g.name, "\" of ", at, " is ", r.id});
        e.run.outcome = reported.text("outcome") == "failed" ? "failed" : "passed";
        for (const auto& [name, values] : g.statistics) {
            named_repeats n{name, {}};
            for (const double v : values) n.repeats.push_back(in_six_digits(v));
            bool is_wanted = std::find(std::begin(usual_statistics), std::end(usual_statistics),
                                       name) != std::end(usual_statistics);
            for (const checked_object& s : reported.each("slos"))
                is_wanted |= s.text("slo").compare(0, name.size() + 1, name + " ") == 0;
            if (is_wanted && are_kept(n.repeats)) e.run.values.push_back(n);
        }
        if (!e.run.values.empty()) gates.push_back(std::move(e));
    }
    if (gates.empty()) refuse({file, " has no gate that could be a run"});
    return append_history(all.folder, gates, at, root.at("environment").text("commit"));
}

struct history_options {
    std::string folder{}, page{}, result{}, commits{}, run_series{}, bisect{}, at{}, why{}, by{};
    std::string annotated[4]{};  // by the kinds of annotations: a gate, or a run
    std::vector<std::string> imports{};
    std::string& of(annotation_kind k) { return annotated[static_cast<std::size_t>(k)]; }
    std::optional<wanted_annotation> annotation() const {
        for (std::size_t i = 0; i < std::size(annotated); ++i)
            if (!annotated[i].empty())
                return wanted_annotation{
                    static_cast<annotation_kind>(i),       annotated[i], at, why,
                    by.empty() ? environment("USER") : by, run_series};
        return std::nullopt;
    }
};

inline void check(const history_options& o) {
    int asked = !o.page.empty() + !o.bisect.empty() + !o.imports.empty();
    for (const std::string& a : o.annotated) asked += !a.empty();
    if (asked != 1)
        refuse({"one of --page, --accept, --step, --no-step, --leave-out, --bisect and --import is "
                "needed: `llmbench history --help` says what each does"});
    if (!o.commits.empty() && o.commits.compare(0, 4, "http") != 0)
        refuse({"--commits is \"", o.commits, "\": it must be a URL"});
}

/// Adds the limits and values of a run to the statistics that the page has.
inline void add_result(std::vector<drawn_gate>& gates, const std::string& file) {
    const llmbench::past_result run =
        read_past_result(file_content(file, "--result"), file);
    for (drawn_gate& g : gates)
        for (const llmbench::past_gate& reported : run.gates) {
            if (str(reported.name) != g.gate) continue;
            for (const llmbench::past_slo& s : reported.slos) {
                const std::string slo = str(s.slo), statistic = slo.substr(0, slo.find(' '));
                double level = 1;  // a ratio is multiplied by the drawn level
                for (std::size_t i = 0; s.relative && i < g.series.size(); ++i)
                    if (g.series[i].statistic == statistic) level = g.levels[i].newest;
                g.now[statistic] = {slo, s.limit * level, s.estimate.value * level,
                                    s.estimate.low * level, s.estimate.high * level,
                                    to_string(s.outcome)};
            }
        }
}

inline int run(const history_options& o) {
    const history_settings asked = history_settings_of(environment);
    const std::string folder = asked.folder_or(llmbench::history().folder);
    const std::string now = utc_text(machine_unix_s() + max_clock_skew_s);
    if (!o.imports.empty()) {
        history_store all;
        all.folder = folder;
        for (const std::string& file : o.imports) {
            if (std::filesystem::is_directory(folder)) all = read_history(folder, now);
            std::printf("%s\n", imported(file, all, o.run_series, asked.machine).c_str());
        }
        return 0;
    }
    const history_store all = read_history(folder, now);
    if (const auto wanted = o.annotation()) {
        std::printf("%s\n", add_notes(folder, notes_of(*wanted, all.lines)).c_str());
        return 0;
    }
    std::vector<drawn_gate> gates = gates_of(as_of(all.lines, asked.at), all.all_series);
    if (gates.empty()) refuse({folder, " has no run yet"});
    if (!o.bisect.empty()) {
        std::printf("%s", bisection_of(gates, o.bisect).c_str());
        return 0;
    }
    if (!o.result.empty()) add_result(gates, o.result);
    write_file(o.page, page_of(folder, gates, o.commits));
    return 0;
}

}  // namespace history_tool

namespace llmbench_program {

inline verb add_history(CLI::App& app) {
    const auto o = std::make_shared<history_tool::history_options>();
    CLI::App& v =
        *app.add_subcommand("history", "Draw and annotate the history of the main branch");
    option_group(v, "One of these")
        .text("--page", o->page, "FILE", "draws the runs into this HTML file")
        .text("--accept", o->of(annotation_kind::accept), "GATE",
              "accepts its level since the run --at")
        .text("--step", o->of(annotation_kind::step), "GATE", "the run --at is a step")
        .text("--no-step", o->of(annotation_kind::no_step), "GATE", "it is none")
        .text("--leave-out", o->of(annotation_kind::leave_out), "ID", "this run counts for nothing")
        .text("--bisect", o->bisect, "GATE", "the commits between which main became worse");
    v.add_option("--import", o->imports, "adds runs that were kept as result.json")
        ->type_name("FILE")
        ->group("One of these");
    option_group(v, "With them")
        .text("--folder", o->folder, "PATH", "default: LLMBENCH_HISTORY_DIR, else perf-history")
        .text("--result", o->result, "FILE", "today's result.json, for --page")
        .text("--commits", o->commits, "URL", "what a commit is appended to for a link, for --page")
        .text("--at", o->at, "DATE", "of a run, for an annotation")
        .text("--why", o->why, "TEXT", "the reason of an annotation")
        .text("--by", o->by, "NAME", "whose annotation it is; default: USER")
        .text("--series", o->run_series, "ID", "of several with one load");
    v.footer(
        "Examples:\n"
        "  llmbench history --page history.html --result llmbench-report/result.json\n"
        "  llmbench history --accept chat --at 2026-11-20 --why 'longer prompts'\n"
        "An annotation is a line of a file of its own, to be committed like the others.\n"
        "Exit codes: 0 done, 2 refused.");
    return {&v, [o] {
                history_tool::check(*o);
                set_variable("LLMBENCH_HISTORY_DIR", o->folder);
                return history_tool::run(*o);
            }};
}

}  // namespace llmbench_program
