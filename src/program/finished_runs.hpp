// finished runs, llmbench's own and those of other tools, read from their files
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/judging/judge.hpp"
#include "core/metric/table.hpp"
#include "core/planning/check_slo.hpp"
#include "core/stored/stored.hpp"
#include "core/traffic/plan.hpp"
#include "effects/gates/gate_repeats.hpp"
#include "effects/gates/measure.hpp"
#include "effects/gates/stored_run.hpp"
#include "effects/system/files.hpp"
#include "program/others/imported_run.hpp"
#include "program/others/runs_together.hpp"
#include "program/slo_text.hpp"

#include <cstddef>  // size_t
#include <cstdint>  // uintmax_t
#include <filesystem>
#include <fstream>  // ifstream, ios
#include <optional>
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench_program {

using namespace llmbench;
using namespace llmbench::detail;

/// The files of one run: a report directory, or its result.json or records.jsonl.
struct own_run {
    std::string directory{};
    std::string result() const { return (std::filesystem::path(directory) / "result.json").string(); }
    std::string records() const { return (std::filesystem::path(directory) / "records.jsonl").string(); }
    bool has_records() const {
        std::error_code ignored;
        return std::filesystem::file_size(records(), ignored) > 0 && !ignored;
    }
    past_result past() const { return read_past_result(file_content(result(), "the run"), result()); }
};

/// Whether a path is a run of llmbench, and not another tool's file.
inline bool is_own_run(const std::string& path) {
    std::error_code ignored;
    const std::filesystem::path p(path);
    if (std::filesystem::is_directory(p, ignored) || p.filename() == "records.jsonl") return true;
    std::ifstream in(p, std::ios::binary);
    std::string begin(400, '\0');
    in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    return begin.find("\"llmbench/result/") != std::string::npos;
}
inline own_run run_at(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) return {path};
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return {folder.empty() ? "." : folder};
}

/// Whether a file's last objective is the guard on errors, which no user wrote. An equal objective
/// of a user is judged alike, unless it is inconclusive.
inline bool is_guard(const past_slo& s) {
    return str(s.slo) == str(error_guard().text()) && !s.advisory &&
           s.outcome != verdict::inconclusive;
}
/// Returns the objectives of a gate.
inline slo_list objectives_of(const past_gate& g) {
    slo_list all;
    for (const past_slo& s : g.slos) {
        if (&s + 1 == g.slos.end() && is_guard(s)) break;
        slo one = parse_slo(str(s.slo));
        one.is_advisory = s.advisory;
        all.push_back(one);
    }
    return all;
}

/// Returns the measured gates of a run, or only the named one.
inline std::vector<past_gate> gates_in(const own_run& run, const std::string& name) {
    std::vector<past_gate> all;
    std::vector<std::string> names;
    for (const past_gate& g : run.past().gates) {
        names.push_back("\"" + printable(str(g.name), 80) + "\"");
        if (name.empty() || str(g.name) == name) all.push_back(g);
    }
    if (all.empty())
        refuse({run.result(), name.empty() ? std::string(" has no gate") : " has no gate \"" + name +
                    "\": it has " + (names.empty() ? "none" : enumerated(names))});
    return all;
}

/// Returns a gate of a run, to be judged by these objectives under its old conditions.
inline read_gate gate_of_own(const plan& who, const own_run& of, const std::string& name,
                             const slo_list& slos) {
    stored_run run = read_stored_run(of.records(), name);
    stored_gate& g = run.gate;
    if (!g.load.shard.is_whole())
        refuse({of.directory, ": of \"", g.name, "\" ", shard_text(g.load.shard),
                ": `llmbench merge` puts the parts together"});
    for (const repeat_data& d : g.seen.candidate)
        if (d.load > 0)
            refuse({of.directory, ": \"", g.name, "\" searched a load: judge(\"records.jsonl\", ...) "
                                                  "in C++ judges its capacity again"});
    read_gate r{named_as(who, with_judging(g.described, [&](planned_judging& j) {
        j.rule = g.judged_by.rule;
        j.first_repeats = j.max_repeats = static_cast<int>(g.seen.candidate.size());
        j.has_baseline = !g.seen.baseline.empty();
        j.has_stored_baseline = !g.judged_by.stored.file.empty();
        j.slos = {slos.begin(), slos.end()};
    })), {}};
    g.context.slos = r.what.judged->slos;
    for (const slo& s : slos) {
        check_slo(s, g.context);
        if (!run.problem_of_events.empty() && concerns(s.what, &metric_facts::needs_event_times))
            refuse({"the SLO ", str(s.text()), " needs the time of every event: ",
                    run.problem_of_events});
    }
    r.seen.target = g.target;
    r.seen.judged_by = std::move(g.judged_by);
    r.seen.judged_by.slos = r.what.judged->slos;
    r.seen.seen = std::move(g.seen);
    return r;
}

inline constexpr std::uintmax_t max_file_bytes = 1024 * 1024 * 1024;

/// Returns the bytes of a regular file; nothing if there is none.
inline std::optional<std::string> bytes_of_file(const std::string& path) {
    std::error_code problem;
    if (!std::filesystem::is_regular_file(path, problem)) return {};
    const std::uintmax_t size = std::filesystem::file_size(path, problem);
    if (problem || size > max_file_bytes)
        refuse({printable(path),
                printed(": it has %.0f bytes, up to 1 GiB is allowed", static_cast<double>(size))});
    std::ifstream in(path, std::ios::binary);
    if (!in) return {};
    std::string bytes(static_cast<std::size_t>(size), '\0');
    in.read(bytes.data(), static_cast<std::streamsize>(size));
    bytes.resize(static_cast<std::size_t>(in.gcount()));
    return bytes;
}
inline std::vector<imported_run> imported_runs_of(const std::string& path) {
    const std::optional<std::string> bytes = bytes_of_file(path);
    if (!bytes.has_value()) refuse({"files: ", printable(path), " cannot be read as a file"});
    return read_imported_runs(*bytes, path, bytes_of_file);
}

/// Refuses objectives that files of finished runs cannot answer.
inline void check_slos_of_files(const plan& p) {
    slo_context c = slo_context_of(p);
    c.requests = 0;  // with too few an objective is invalid, not refused
    c.has_turns = true;
    for (const slo& s : p.judged->slos) {
        const std::string given = "the SLO " + str(s.text()) + " is refused: ";
        if (is_capacity(s.what.metric))
            refuse({given, "the files are of one load, which shows no capacity"});
        if (is_of_start(s.what.metric) || is_of_server(s.what.metric) || !is_all(s.what.which))
            refuse({given, "files of other tools tell nothing of it"});
        check_slo(s, c);
    }
}

/// Each run in the files is a repeat of one load. `who` has the name of the gate.
inline read_gate gate_of_files(const plan& who, const std::vector<std::string>& files,
                               const slo_list& slos) {
    std::vector<imported_run> runs;
    for (const std::string& path : files)
        for (imported_run& run : imported_runs_of(path)) runs.push_back(std::move(run));
    imported_gate reported = gate_of_runs(std::move(runs), slos);
    read_gate g{named_as(who, std::move(reported.what)), {}};
    check_slos_of_files(g.what);
    g.seen.target = reported.target;
    g.seen.judged_by = parameters_of_files(g.what);
    g.seen.seen = std::move(reported.seen);
    return g;
}

}  // namespace llmbench_program
