// annotations and imported runs that are added to a history
#pragma once

#include "extensions/history/core/run_series.hpp"
#include "extensions/history/core/line.hpp"
#include "extensions/history/core/series.hpp"
#include "extensions/history/core/entry.hpp"
#include "core/stored/stored.hpp"
#include "extensions/history/append.hpp"
#include "extensions/history/folder.hpp"
#include "effects/system/files.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace history_tool {

using namespace llmbench::detail;

/// A wanted annotation, for a gate's date or for a run's id.
struct wanted_mark {
    annotation_kind kind{};
    std::string what{};  // a gate, or the id of a run
    std::string at{}, why{}, by{}, run_series{};
};

/// Returns the lines of an annotation. Throws std::invalid_argument if its subject does not exist.
inline std::vector<history_note> notes_of(const wanted_mark& w, const history_lines& lines) {
    if (w.why.empty()) refuse({"a mark needs its reason: --why \"...\""});
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
    const std::vector<const history_run*> nights = nights_of(lines, w.what, run_series);
    if (nights.empty())
        refuse({"the history has no night of \"", w.what, "\"",
                run_series.empty() ? "" : " in the cohort " + run_series});
    if (!is_utc_date(w.at))
        refuse({"--at is \"", w.at, "\": it must be the date of a night, such as ",
                nights.back()->at.substr(0, 10)});
    const annotation mark{w.kind, w.at, w.why, w.by};
    const auto is_of = [&](const history_run* r) { return is_about(mark, *r); };
    if (std::none_of(nights.begin(), nights.end(), is_of))
        refuse({"--at is ", w.at, ": \"", w.what, "\" has no night of that date, the newest is of ",
                nights.back()->at.substr(0, 10)});
    return {{"", w.what, run_series, mark}};
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
    const bool same_words = a.arrivals == b.arrivals && a.workload == b.workload &&
                            a.extent == b.extent && a.options == b.options;
    return a.gate == b.gate && a.definitions == b.definitions && a.model == b.model &&
           a.api == b.api && a.seed == b.seed && a.trace_hash == b.trace_hash &&
           (has_values ? a.load == b.load : same_words);
}
inline run_series reported_series(const stored_gate& g, const std::string& machine) {
    const load_facts& l = g.load;
    return {.gate = g.name, .definitions = g.definitions, .model = g.target.model,
            .api = g.target.api, .arrivals = l.arrivals, .workload = l.workload,
            .extent = l.extent, .options = l.options, .seed = l.seed, .trace_hash = l.trace_hash,
            .machine = machine, .load = l.values};
}
/// Returns the series for a stored run: the named one, else the only one of its load, else a new
/// one on LLMBENCH_MACHINE.
inline run_series series_for(const stored_gate& g, const history_store& all,
                             const std::string& named, const std::string& machine,
                             const std::string& file) {
    const run_series reported = reported_series(g, machine);
    std::vector<run_series> of_load;
    for (const auto& [id, c] : all.all_series)
        if (has_load_of(c, reported) && (named.empty() || named == id)) of_load.push_back(c);
    if (of_load.size() == 1) return of_load.front();
    if (of_load.size() > 1)
        refuse({file, printed(": %zu cohorts have the load of \"", of_load.size()), g.name,
                "\": name one by --cohort"});
    if (!named.empty())
        refuse({file, ": the load of \"", g.name, "\" is not that of the cohort ", named});
    if (machine.empty())
        refuse({file, " does not tell the machine of \"", g.name, "\", and the history has no "
                "cohort of its load: set LLMBENCH_MACHINE, or append a run first"});
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
            const auto is_one = [](double v) { return std::isfinite(v) && v > 0; };
            const bool is_kept = name == "mean(tpot)" || name == "p50(ttft)" ||
                                 name == "p90(ttft)" || name == "p50(e2e)" ||
                                 name == "output_throughput";
            bool is_objective = false;
            for (const checked_object& s : reported.each("slos"))
                is_objective |= s.text("slo").compare(0, name.size() + 1, name + " ") == 0;
            if ((is_kept || is_objective) && !n.repeats.empty() &&
                std::all_of(n.repeats.begin(), n.repeats.end(), is_one))
                e.run.values.push_back(n);
        }
        if (!e.run.values.empty()) gates.push_back(std::move(e));
    }
    if (gates.empty()) refuse({file, " has no gate that could be a night"});
    return append_history(all.folder, gates, at, root.at("environment").text("commit"));
}

}  // namespace history_tool
