// llmbench judge and merge: finished runs
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/planning/check_slo.hpp"
#include "core/stored/stored.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "effects/gates/execution.hpp"
#include "effects/gates/stored_run.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/files.hpp"
#include "effects/system/settings.hpp"
#include "effects/verbs.hpp"
#include "extensions/machines.hpp"
#include "program/arguments.hpp"
#include "program/others/imported_run.hpp"
#include "program/others/runs_together.hpp"
#include "program/run_options.hpp"
#include "program/slo_text.hpp"
#include "program/values.hpp"

#include <algorithm>  // none_of
#include <cstddef>  // size_t
#include <cstdint>  // uintmax_t
#include <filesystem>
#include <fstream>  // ifstream, ios
#include <optional>
#include <string>
#include <system_error>  // error_code
#include <utility>  // move

namespace llmbench_program {

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
    if (!std::filesystem::is_regular_file(p, ignored)) return false;
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
/// `left_out` gets the sentences on those that cannot be read, as of a user's metric; without it
/// they are refused.
inline slo_list objectives_of(const past_gate& g, std::string* left_out = nullptr) {
    slo_list all;
    for (const past_slo& s : g.slos) try {
            if (&s + 1 == g.slos.end() && is_guard(s)) break;
            slo one = parse_slo(str(s.slo));
            one.is_advisory = s.advisory;
            all.push_back(one);
        } catch (const std::invalid_argument& e) {
            if (!left_out) throw;
            *left_out += "  not shown: " + printable(e.what()) + "\n";
        }
    return all;
}

/// Returns the measured gates of a run, or only the named one.
inline vector<past_gate> gates_in(const own_run& run, const std::string& name) {
    vector<past_gate> all;
    vector<std::string> names;
    for (const past_gate& g : run.past().gates) {
        names.push_back("\"" + printable(str(g.name), 80) + "\"");
        if (name.empty() || str(g.name) == name) all.push_back(g);
    }
    if (all.empty())
        refuse({run.result(), name.empty() ? std::string(" has no gate") : " has no gate \"" + name +
                    "\": it has " + (names.empty() ? "none" : enumerated(names))});
    return all;
}

/// Whether it was on another setting of a comparison, which is another gate.
inline bool is_of_another_gate(const slo& s, const stored_gate& g) {
    return !is_absolute(s) && !slo_context(g.described).has_baseline();
}
/// Returns a gate of a run, to be judged by these objectives under its old conditions; `are_own`:
/// they are those of the file. `against`: the gate of another setting, as the baseline.
inline measured_gate gate_of_own(const own_run& of, const std::string& name, slo_list slos,
                                 bool are_own, const std::string& against = {}) {
    stored_run run = read_stored_pairs(of.records(), name, against);
    stored_gate& g = run.gate;
    if (!g.load.shard.is_whole())
        refuse({of.directory, ": of \"", g.name, "\" ", shard_text(g.load.shard),
                ": `llmbench merge` puts the parts together"});
    for (const repeat_data& d : g.seen.candidate)
        if (d.load > 0)
            refuse({of.directory, ": \"", g.name, "\" searched a load: judge(\"records.jsonl\", ...) "
                                                  "in C++ judges its capacity again"});
    slo_list those;
    for (const slo& s : slos)
        if (!are_own || !is_of_another_gate(s, g)) those.push_back(s);
        else say("  not judged again: " + str(s.text()) + ", on another setting: name both by "
                 "--gate and --against\n");
    slos = those;
    measured_gate r;
    r.what = with_judging(g.described, [&](planned_judging& j) {
        j.rule = g.judged_by.rule;
        j.first_repeats = j.max_repeats = static_cast<int>(g.seen.candidate.size());
        j.slos = {slos.begin(), slos.end()};
    });
    check_stored_objectives(run, r.what, slos);
    r.target = g.target;
    r.judged_by = std::move(g.judged_by);
    r.judged_by.slos = r.what.judged->slos;
    r.seen = std::move(g.seen);
    return r;
}

/// Returns the bytes of a regular file; nothing if there is none.
inline std::optional<std::string> bytes_of_file(const std::string& path) {
    constexpr std::uintmax_t max_bytes = 1024 * 1024 * 1024;
    std::error_code problem;
    if (!std::filesystem::is_regular_file(path, problem)) return {};
    if (std::filesystem::file_size(path, problem) > max_bytes)
        refuse({printable(path), ": it has over 1 GiB, which no file of a run has"});
    return file_content(path, "files");
}

/// Refuses a path at which nothing is.
inline void check_exist(const vector<std::string>& files) {
    std::error_code none;
    for (const std::string& f : files)
        if (!std::filesystem::exists(f, none))
            refuse({printable(f), ": there is no such file or directory"});
}

/// Refuses objectives that files of finished runs cannot answer.
inline void check_slos_of_files(const plan& p) {
    slo_context c(p);
    c.requests = 0;  // with too few an objective is invalid, not refused
    c.has_turns = true;
    for (const slo& s : p.judged->slos) {
        const std::string given = "the SLO " + str(s.text()) + " is refused: ";
        if (is_capacity(s.statistic.metric))
            refuse({given, "the files are of one load, which shows no capacity"});
        if (is_of_start(s.statistic.metric) || is_of_server(s.statistic.metric) ||
            !is_all(s.statistic.which))
            refuse({given, "files of other tools tell nothing of it"});
        check_slo(s, c);
    }
}

/// Each run in the files is a repeat of one load.
inline measured_gate gate_of_files(const vector<std::string>& files, const slo_list& slos) {
    measured_gate g = gate_of_runs(read_runs_of(files, bytes_of_file), slos);
    check_slos_of_files(g.what);
    return g;
}

/// New reports must not overwrite the files that are read.
inline void set_judging_variables(const given_options& o) {
    set_variables(o);
    if (environment("LLMBENCH_REPORT_DIR").empty())
        set_variable("LLMBENCH_REPORT_DIR", "llmbench-judged");
}

/// Judges what `read` returns of these files, as a gate of this name.
inline void judge_as(const std::string& name, const slo_list& slos, gate_reader read,
                     const vector<std::string>& files) {
    scenario as;
    as.name = name;
    as.slos = slos;
    executed(gate_execution(as, "", 0, "judge", std::move(read), files));
}

/// Calls `each` for the gates. Each is then in the reports, also one that `each` never began.
template <class F>
int over_gates(const vector<past_gate>& gates, const vector<std::string>& files, F&& each) {
    const auto known = [] { return detail::session::of_this_program().number_of_gates(); };
    for (const past_gate& g : gates) {
        const std::size_t before = known();
        try {
            try {
                each(g);
            } catch (const std::exception& e) {
                if (known() > before) continue;
                const std::string why = reason_in(e);
                judge_as(str(g.name), {}, [&]() -> measured_gate { refuse({why}); }, files);
            }
        } catch (const std::exception&) {
            // It is refused in the reports.
        }
    }
    return exit_code();
}

inline int judge_again(const given_options& o) {
    const slo_list wanted = slos_of(o.all("--slo"));
    const vector<std::string>& files = files_in(
        o, "FILE", "no file is named: give the report directory of a run, as `llmbench judge "
                   "llmbench-report`, or result files of another tool");
    set_judging_variables(o);
    if (std::none_of(files.begin(), files.end(), is_own_run)) {
        if (wanted.empty()) check_exist(files);
        if (o.has("--gate") || o.has("--against"))
            refuse({"--gate and --against are of llmbench's own runs: files of other tools have no "
                    "gates"});
        if (wanted.empty())
            refuse({"--slo is needed: files of other tools have no objectives of their own"});
        return over_gates({past_gate{}}, files, [&](const past_gate&) {
            judge_as(o.has("--name") ? o["--name"] : "result files", wanted,
                     [&] { return gate_of_files(files, wanted); }, files);
        });
    }
    if (files.size() > 1)
        refuse({"one run of llmbench is judged at a time: ", printable(files[0]), " and ",
                printable(files[1]), " are named; parts of one load are put together by `llmbench "
                                     "merge`"});
    if (o.has("--against") && !o.has("--gate"))
        refuse({"--against needs --gate: both name settings of one comparison"});
    const own_run run = run_at(files[0]);
    return over_gates(gates_in(run, o["--gate"]), files, [&](const past_gate& g) {
        const slo_list slos = wanted.empty() ? objectives_of(g) : wanted;
        judge_as(o.has("--name") ? o["--name"] : str(g.name), slos,
                 [&] {
                     return gate_of_own(run, str(g.name), slos, wanted.empty(), o["--against"]);
                 },
                 files);
    });
}

inline int merge_shards(const given_options& o) {
    const slo_list wanted = slos_of(o.all("--slo"));
    const vector<std::string>& parts = files_in(
        o, "DIRECTORY", "no directory is named: give one for each part of the load, as `llmbench "
                        "merge shard-0 shard-1`");
    set_judging_variables(o);
    types::list<types::text> directories;
    vector<past_gate> gates;  // of all parts: a gate that one of them lacks is refused by name
    for (const std::string& f : parts) {
        directories.push_back(run_at(f).directory);
        for (const past_gate& g : gates_in(run_at(f), o["--gate"]))
            if (!detail::any_of(gates, [&](const past_gate& x) { return x.name == g.name; }))
                gates.push_back(g);
    }
    return over_gates(gates, parts, [&](const past_gate& g) {
        judge_shards(directories, wanted.empty() ? objectives_of(g) : wanted, g.name, "", 0);
    });
}

inline constexpr option_row judged_report_row{
    "--report", "PATH", "where reports go; default: llmbench-judged"};
inline verb judge_verb() {
    return {
        "judge",
        "Judge a run that is over, or other tools' files",
        {{"Files",
          {{"FILE", "", "a report directory, or result files of another tool", takes::many}}},
         {"Options",
          {{"--slo", "TEXT", "an objective; may be repeated; default: the run's own", takes::each},
           {"--gate", "NAME", "one of several in the run"},
           {"--against", "NAME", "of a compare(): the gate of another setting, as the baseline"},
           {"--name", "TEXT", "of the gate in the new reports"},
           inconclusive_row,
           judged_report_row}}},
        std::string(
            "Examples:\n"
            "  llmbench judge llmbench-report --slo 'p90(ttft) <= 400 ms'\n"
            "  llmbench judge run1.json run2.json run3.json --slo 'mean(tpot) <= 25 ms'\n"
            "Result files are those of vLLM bench serve (--save-result --save-detailed), SGLang\n"
            "bench_serving (--output-details), guidellm (benchmarks.json) and AIPerf\n"
            "(profile_export.jsonl). Each run in them is a repeat of one load.\n") +
            exit_codes_of_gates,
        judge_again};
}
inline verb merge_verb() {
    return {
        "merge",
        "Judge a load that several machines sent",
        {{"Files",
          {{"DIRECTORY", "", "the report directory of each part (LLMBENCH_SHARD)", takes::many}}},
         {"Options",
          {{"--slo", "TEXT", "an objective; may be repeated; default: the gate's own", takes::each},
           {"--gate", "NAME", "one of several"},
           inconclusive_row,
           judged_report_row}}},
        std::string("Example:\n"
                    "  llmbench merge shard-0 shard-1 --slo 'p90(ttft) <= 300 ms'\n"
                    "A part that is missing or of another run is refused by name.\n") +
            exit_codes_of_gates,
        merge_shards};
}
}  // namespace llmbench_program
