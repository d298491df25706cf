// llmbench_history: the nights of the main branch, drawn, marked and added to.
//   llmbench_history --page history.html [--result result.json] [--commits URL]
//   llmbench_history --accept GATE --at DATE --why WORDS [--by NAME] [--cohort ID]
//   llmbench_history --step GATE ... | --no-step GATE ...     the same: a step that is one, or none
//   llmbench_history --leave-out ID --why WORDS [--by NAME]   a night that counts for nothing
//   llmbench_history --import result.json... [--cohort ID]    runs that were kept as result.json
//   llmbench_history --bisect GATE                            which commits to look between for what
//                                                             made main worse, as ci/bisect.sh asks
// The folder is LLMBENCH_HISTORY_DIR, default perf-history. LLMBENCH_HISTORY_AT: the page of then.
// --result   the run of today: its limits and its values are drawn beside the nights
// --commits  what a commit's hash is appended to for a link, "https://github.com/me/it/commit/"
// Exits with 2 and a sentence on standard error where something is wrong.
#include "marks.hpp"
#include "page.hpp"

#include "core/bodies/result.hpp"
#include "core/bodies/slo.hpp"
#include "core/bodies/text.hpp"
#include "core/bodies/traffic.hpp"
#include "effects/system/settings.hpp"

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace history_tool;

struct options {
    std::string page{}, result{}, commits{}, cohort{}, bisect{};
    bool marks = false;
    wanted_mark mark{};
    std::vector<std::string> imports{};
};

options options_of(const std::vector<std::string>& args) {
    options o;
    o.mark.by = environment("USER");
    bool takes_files = false;
    for (std::size_t i = 0; i < args.size(); ++i) {
        const std::string& a = args[i];
        const auto value = [&]() -> const std::string& {
            if (i + 1 == args.size()) refuse({a, " needs a value"});
            return args[++i];
        };
        const auto marks = [&](history_mark_kind kind) {
            if (o.marks) refuse({a, ": one mark at a time"});
            o.marks = true;
            o.mark.kind = kind;
            o.mark.what = value();
        };
        if (takes_files && a.compare(0, 2, "--") != 0) o.imports.push_back(a);
        else if (a == "--page") o.page = value();
        else if (a == "--result") o.result = value();
        else if (a == "--commits") o.commits = value();
        else if (a == "--cohort") o.cohort = o.mark.cohort = value();
        else if (a == "--at") o.mark.at = value();
        else if (a == "--why") o.mark.why = value();
        else if (a == "--by") o.mark.by = value();
        else if (a == "--accept") marks(history_mark_kind::accept);
        else if (a == "--step") marks(history_mark_kind::step);
        else if (a == "--no-step") marks(history_mark_kind::no_step);
        else if (a == "--leave-out") marks(history_mark_kind::leave_out);
        else if (a == "--bisect") o.bisect = value();
        else if (a == "--import") takes_files = true;
        else refuse({a, " is no option; they stand at the top of ci/history/history.cpp"});
    }
    const int asked = !o.page.empty() + !o.bisect.empty() + o.marks + !o.imports.empty();
    if (asked != 1)
        refuse({"usage: llmbench_history --page FILE | --accept GATE --at DATE --why WORDS | "
                "--step ... | --no-step ... | --leave-out ID --why WORDS | --bisect GATE | "
                "--import FILE..."});
    if (!o.commits.empty() && o.commits.compare(0, 4, "http") != 0)
        refuse({"--commits is \"", o.commits, "\": it must be a URL"});
    return o;
}

/// The limits of a run and what it found, where the page has the statistic.
void add_result(std::vector<drawn_gate>& gates, const std::string& file) {
    const llmbench::past_result run =
        read_past_result(file_content(file, "--result"), file);
    for (drawn_gate& g : gates)
        for (const llmbench::past_gate& reported : run.gates) {
            if (str(reported.name) != g.gate) continue;
            for (const llmbench::past_slo& s : reported.slos) {
                const std::string slo = str(s.slo), statistic = slo.substr(0, slo.find(' '));
                double level = 1;  // a ratio is one to the level that is drawn
                for (std::size_t i = 0; s.relative && i < g.series.size(); ++i)
                    if (g.series[i].statistic == statistic) level = g.levels[i].newest;
                g.now[statistic] = {slo, s.limit * level, s.estimate.value * level,
                                    s.estimate.low * level, s.estimate.high * level,
                                    to_string(s.outcome)};
            }
        }
}

int run(const options& o) {
    const history_settings asked = history_settings_of(environment);
    const std::string folder = asked.folder_or(llmbench::history().folder);
    const std::string now = utc_text(machine_unix_s() + most_clock_skew_s);
    if (!o.imports.empty()) {
        history_store all;
        all.folder = folder;
        for (const std::string& file : o.imports) {
            if (std::filesystem::is_directory(folder)) all = read_history(folder, now);
            std::printf("%s\n", imported(file, all, o.cohort, asked.machine).c_str());
        }
        return 0;
    }
    const history_store all = read_history(folder, now);
    if (o.marks) {
        std::printf("%s\n", add_notes(folder, notes_of(o.mark, all.lines)).c_str());
        return 0;
    }
    std::vector<drawn_gate> gates = gates_of(as_of(all.lines, asked.at), all.cohorts);
    if (gates.empty()) refuse({folder, " has no night yet"});
    if (!o.bisect.empty()) {
        std::printf("%s", bisection_of(gates, o.bisect).c_str());
        return 0;
    }
    if (!o.result.empty()) add_result(gates, o.result);
    write_file(o.page, page_of(folder, gates, o.commits));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(options_of({argv + 1, argv + argc}));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "llmbench_history: %s\n", e.what());
        return 2;
    }
}
