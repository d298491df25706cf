// llmbench's own runs, read from their files
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/judging/judge.hpp"
#include "core/metric/table.hpp"
#include "core/planning/check_slo.hpp"
#include "core/stored/stored.hpp"
#include "core/traffic/plan.hpp"
#include "effects/gates/measure.hpp"
#include "effects/gates/stored_run.hpp"
#include "effects/system/files.hpp"
#include "program/slo_text.hpp"

#include <filesystem>
#include <fstream>
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

}  // namespace llmbench_program
