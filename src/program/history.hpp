// llmbench history: draws, annotates and extends a history of nightly runs
#pragma once

#include "core/base/text.hpp"
#include "core/stored/stored.hpp"
#include "effects/system/settings.hpp"
#include "extensions/history.hpp"
#include "program/arguments.hpp"
#include "program/history/marks.hpp"
#include "program/history/page.hpp"
#include "program/variables.hpp"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace history_tool {

struct history_options {
    std::string folder{}, page{}, result{}, commits{}, run_series{}, bisect{};
    std::string accept{}, step{}, no_step{}, leave_out{}, at{}, why{}, by{};
    std::vector<std::string> imports{};
    int number_of_marks() const {
        return !accept.empty() + !step.empty() + !no_step.empty() + !leave_out.empty();
    }
    bool marks() const { return number_of_marks() > 0; }
    wanted_mark mark() const {
        const std::string& what = !accept.empty()  ? accept
                                  : !step.empty()  ? step
                                  : !no_step.empty() ? no_step
                                                     : leave_out;
        const auto kind = !accept.empty()    ? annotation_kind::accept
                          : !step.empty()    ? annotation_kind::step
                          : !no_step.empty() ? annotation_kind::no_step
                                             : annotation_kind::leave_out;
        return {kind, what, at, why, by.empty() ? environment("USER") : by, run_series};
    }
};

inline void check(const history_options& o) {
    const int asked = !o.page.empty() + !o.bisect.empty() + o.number_of_marks() + !o.imports.empty();
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
    if (o.marks()) {
        std::printf("%s\n", add_notes(folder, notes_of(o.mark(), all.lines)).c_str());
        return 0;
    }
    std::vector<drawn_gate> gates = gates_of(as_of(all.lines, asked.at), all.all_series);
    if (gates.empty()) refuse({folder, " has no night yet"});
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
    CLI::App& v = *app.add_subcommand("history", "Draw and mark the history of the main branch");
    option_group(v, "One of these")
        .text("--page", o->page, "FILE", "draws the nights into this HTML file")
        .text("--accept", o->accept, "GATE", "accepts its level since the night --at")
        .text("--step", o->step, "GATE", "the night --at is a step")
        .text("--no-step", o->no_step, "GATE", "it is none")
        .text("--leave-out", o->leave_out, "ID", "this night counts for nothing")
        .text("--bisect", o->bisect, "GATE", "the commits between which main became worse");
    v.add_option("--import", o->imports, "adds runs that were kept as result.json")
        ->type_name("FILE")
        ->group("One of these");
    option_group(v, "With them")
        .text("--folder", o->folder, "PATH", "default: LLMBENCH_HISTORY_DIR, else perf-history")
        .text("--result", o->result, "FILE", "today's result.json, for --page")
        .text("--commits", o->commits, "URL", "what a commit is appended to for a link, for --page")
        .text("--at", o->at, "DATE", "of a night, for a mark")
        .text("--why", o->why, "TEXT", "the reason of a mark")
        .text("--by", o->by, "NAME", "whose mark it is; default: USER")
        .text("--cohort", o->run_series, "ID", "of several with one load");
    v.footer("Examples:\n"
             "  llmbench history --page history.html --result llmbench-report/result.json\n"
             "  llmbench history --accept chat --at 2026-11-20 --why 'longer prompts'\n"
             "A mark is a line of a file of its own, to be committed like the others.\n"
             "Exit codes: 0 done, 2 refused.");
    return {&v, [o] {
                history_tool::check(*o);
                set_variable("LLMBENCH_HISTORY_DIR", o->folder);
                return history_tool::run(*o);
            }};
}

}  // namespace llmbench_program
