// Marks and imported runs: what the tool adds to a folder.
#pragma once

#include "core/history/cohort.hpp"
#include "core/history/line.hpp"
#include "core/history/series.hpp"
#include "core/stored/history.hpp"
#include "core/stored/stored.hpp"
#include "effects/history/append.hpp"
#include "effects/history/folder.hpp"
#include "effects/system/files.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace history_tool {

using namespace llmbench::detail;

/// What a person asks: a mark on a gate's date, or on a run by its id.
struct wanted_mark {
    history_mark_kind kind{};
    std::string what{};  // the gate, or the id of a run
    std::string at{}, why{}, by{}, cohort{};
};

/// The lines that a mark becomes. Throws std::invalid_argument where it is about nothing.
inline std::vector<history_note> notes_of(const wanted_mark& w, const history_lines& lines) {
    if (w.why.empty()) refuse({"a mark needs its reason: --why \"...\""});
    std::vector<history_note> notes;
    if (w.kind == history_mark_kind::leave_out) {
        for (const history_run& r : lines.runs)  // a line, or all of a file
            if (r.id == w.what || r.id.substr(0, r.id.rfind('.')) == w.what)
                notes.push_back({"", r.gate, r.cohort, {w.kind, r.id, w.why, w.by}});
        if (notes.empty()) refuse({"--leave-out is \"", w.what, "\": the history has no such run"});
        return notes;
    }
    std::string cohort = w.cohort;
    for (const history_run& r : lines.runs)  // of the newest run, where none is named
        if (w.cohort.empty() && r.gate == w.what && is_valid_run(r)) cohort = r.cohort;
    const std::vector<const history_run*> nights = nights_of(lines, w.what, cohort);
    if (nights.empty())
        refuse({"the history has no night of \"", w.what, "\"",
                cohort.empty() ? "" : " in the cohort " + cohort});
    if (!is_utc_date(w.at))
        refuse({"--at is \"", w.at, "\": it must be the date of a night, such as ",
                nights.back()->at.substr(0, 10)});
    const history_mark mark{w.kind, w.at, w.why, w.by};
    const auto is_of = [&](const history_run* r) { return is_about(mark, *r); };
    if (std::none_of(nights.begin(), nights.end(), is_of))
        refuse({"--at is ", w.at, ": \"", w.what, "\" has no night of that date, the newest is of ",
                nights.back()->at.substr(0, 10)});
    return {{"", w.what, cohort, mark}};
}

/// Writes them as a file of their own; its name.
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

/// Equal in their load: a result.json does not tell the machine.
inline bool has_load_of(const cohort& a, const cohort& b) {
    return a.gate == b.gate && a.definitions == b.definitions && a.model == b.model &&
           a.api == b.api && a.arrivals == b.arrivals && a.workload == b.workload &&
           a.extent == b.extent && a.options == b.options && a.seed == b.seed &&
           a.trace_hash == b.trace_hash;
}
inline cohort reported_cohort(const stored_gate& g, const std::string& machine) {
    const load_facts& l = g.load;
    return {.gate = g.name, .definitions = g.definitions, .model = g.target.model,
            .api = g.target.api, .arrivals = l.arrivals, .workload = l.workload,
            .extent = l.extent, .options = l.options, .seed = l.seed, .trace_hash = l.trace_hash,
            .machine = machine};
}
/// The cohort that a stored run goes to: the one that is named, else the only one of its load, else
/// a new one on LLMBENCH_MACHINE.
inline cohort cohort_for(const stored_gate& g, const history_store& all, const std::string& named,
                         const std::string& machine, const std::string& file) {
    const cohort reported = reported_cohort(g, machine);
    std::vector<cohort> of_load;
    for (const auto& [id, c] : all.cohorts)
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

/// One file of one program, from its result.json.
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
        if (!g.fault.empty() || g.carried > 0 || !g.load.shard.is_whole()) continue;
        history_entry e;
        e.in = cohort_for(g, all, named, machine, file);
        e.run.gate = g.name;
        e.run.cohort = id_of(e.in);
        for (const history_run& r : all.lines.runs)
            if (r.gate == e.run.gate && r.cohort == e.run.cohort && r.at == at)
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
