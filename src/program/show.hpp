// llmbench show: finished runs as tables, or two of them on one page
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/judging/judge.hpp"
#include "core/metric/table.hpp"
#include "core/reports/console.hpp"
#include "effects/gates/gate_result.hpp"
#include "effects/gates/stored_run.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "effects/system/settings.hpp"
#include "program/arguments.hpp"
#include "program/definitions.hpp"
#include "program/judge.hpp"
#include "program/remade.hpp"
#include "program/side_by_side.hpp"
#include "program/values.hpp"

#include <algorithm>  // all_of, max
#include <cmath>  // isnan
#include <filesystem>
#include <string>
#include <utility>  // move

namespace llmbench_program {

/// Returns a gate as the console shows it, and by other tools' definitions.
inline std::string shown(measured_gate g, const std::string& name,
                         const vector<other_tool>& tools) {
    g.what.name = name;
    g.found = analyse(g.seen, g.judged_by);
    std::string out = console_text(report_of(g, {}), surroundings_of_program().style());
    if (!g.what.sent->is_read)
        out += others_text(tools, g.seen.candidate, g.what.sent->common);
    return out;
}

/// Returns a result.json without its requests, which are missing.
inline std::string shown_without_records(const past_gate& g) {
    std::string out = "\n" + str(g.name) + ": " + outcome_word(g) + "\n";
    std::size_t width = 9;
    for (const past_slo& s : g.slos) width = std::max(width, s.slo.size());
    for (const past_slo& s : g.slos) {
        // null in the file is none, or infinite where failures reach it: the reason says which.
        out += printed("  %-12s %-*s", to_string(s.outcome), static_cast<int>(width),
                       str(s.slo).c_str());
        if (!std::isnan(s.measured))
            out += " " + value_words(s, s.measured) + ", interval " +
                   value_words(s, s.estimate.low) + " to " + value_words(s, s.estimate.high);
        fill(out, "[; {reason}]\n", {{"reason", s.reason}});
    }
    return out;
}

/// Adds the distributions of a run's requests to its gates.
inline void add_curves(run_side& run, const own_run& of) {
    for (gate_side& g : run.gates) {
        if (!g.no_curves.empty()) continue;
        if (!of.has_records()) {
            g.no_curves = of.records() + " is not there";
            continue;
        }
        const stored_run stored = read_stored_run(of.records(), str(g.judged.name));
        const repeat_list& repeats = stored.gate.seen.candidate;
        for (const repeat_data& d : repeats)
            if (d.load > 0) g.no_curves = "it searched a load";
        if (!g.no_curves.empty()) continue;
        g.ttft = distribution_of(metric_id::ttft, repeats);
        g.tpot = distribution_of(metric_id::tpot, repeats);
    }
}
/// Two runs of llmbench, with the distributions of their requests.
inline vector<run_side> two_runs(const given_options& o) {
    vector<run_side> runs;
    for (const std::string& f : o.all("FILE")) {
        const own_run run = run_at(f);
        runs.push_back(
            run_side_of(file_content(run.result(), "the run"), run.result(), o["--gate"]));
        runs.back().folder = run.directory;
        add_curves(runs.back(), run);
    }
    return runs;
}
inline int show_side_by_side(const given_options& o) {
    const vector<std::string>& files = o.all("FILE");
    if (files.size() != 2)
        refuse({"--page is of one run or of two side by side, as `llmbench show before after "
                "--page diff.html`: ", std::to_string(files.size()), " are named"});
    if (o.has("--as"))
        refuse({"--as and --page are both given: the page has our definitions only"});
    const std::filesystem::path page = std::filesystem::absolute(o["--page"]);
    for (const std::string& f : files) {
        if (!is_own_run(f))
            refuse({"--page needs two runs of llmbench: ", printable(f), " is none"});
        check_outside("--page", o["--page"], run_at(f));
    }
    const vector<run_side> runs = two_runs(o);
    write_file(page, side_by_side_html(runs[0], runs[1]));
    say(o["--page"] + "\n");
    return 0;
}

inline int show_runs(const given_options& o) {
    if (makes_again(o)) {
        const vector<std::string>& runs = o.all("FILE");
        if (runs.size() != 1 && !has_only_page(o))
            refuse({"--summary, --junit and --metrics are of one run: ",
                    std::to_string(runs.size()), " are named"});
        if (runs.size() != 1) return show_side_by_side(o);
        if (!is_own_run(runs[0]))
            refuse({"reports are made again of a run of llmbench: ", printable(runs[0]),
                    " is none"});
        if (o.has("--as") || o.has("--gate"))
            refuse({o.has("--as") ? "--as" : "--gate",
                    " and a report's file are both given: reports have all gates, in our "
                    "definitions"});
        return make_again(run_at(runs[0]), o);
    }
    const vector<other_tool> tools = tools_named(o["--as"]);
    const vector<std::string>& files = o.all("FILE");
    const bool are_own = std::all_of(files.begin(), files.end(), is_own_run);
    if (files.size() == 2 && are_own && tools.empty()) {
        const vector<run_side> runs = two_runs(o);
        say(side_by_side_text(runs[0], runs[1]));
        return 0;
    }
    vector<std::string> others;
    for (const std::string& f : files_in(o, "FILE", "no file is named: give a report directory, as "
                                                    "`llmbench show llmbench-report`, or result "
                                                    "files of another tool")) {
        if (!is_own_run(f)) {
            others.push_back(f);
            continue;
        }
        const own_run run = run_at(f);
        for (const past_gate& g : gates_in(run, o["--gate"])) {
            std::string left_out;
            if (run.has_records()) {
                const slo_list slos = objectives_of(g, &left_out);
                say(shown(gate_of_own(run, str(g.name), slos, true), str(g.name), tools) +
                    left_out);
            }
            else if (tools.empty()) say(shown_without_records(g));
            else
                refuse({"--as needs the times of the requests: ", printable(run.records()),
                        " is not there"});
        }
    }
    if (others.empty()) return 0;
    if (!tools.empty())
        refuse({"--as is of llmbench's own runs: ", printable(others[0]), " has another tool's"});
    say(shown(gate_of_files(others, {}), enumerated(others), {}));
    return 0;
}

inline verb show_verb() {
    return {"show",
            "Show a run as tables, or two runs side by side",
            {{"Files",
              {{"FILE", "", "a report directory, a result.json, or another tool's files",
                takes::many}}},
             {"Options",
              {{"--as", "TOOLS", "vllm,sglang,guidellm,aiperf: in their definitions, too"},
               {"--page", "FILE", "writes the run's report.html again; of two runs, one page that "
                                  "has them side by side"},
               {"--summary", "FILE", "writes its summary.md again"},
               {"--junit", "FILE", "writes its junit.xml again"},
               {"--metrics", "FILE", "writes its metrics.txt again"},
               {"--gate", "NAME", "one of several in the run"}}}},
            "Examples:\n"
            "  llmbench show llmbench-report\n"
            "  llmbench show llmbench-report --as vllm,guidellm\n"
            "  llmbench show llmbench-report --page report.html --summary summary.md\n"
            "  llmbench show before after\n"
            "  llmbench show before after --page diff.html\n"
            "Nothing is judged: it ends with 0 where the files can be read, else with 2.",
            show_runs};
}

}  // namespace llmbench_program
