// what the environment asks for
#pragma once

#include "core/base/text.hpp"
#include "core/measured/answers.hpp"
#include "core/judging/outcome.hpp"
#include "core/traffic/shard.hpp"
#include "core/figures/definitions.hpp"
#include "core/reports/console_style.hpp"
#include "effects/system/ranks.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <cstdlib>  // getenv
#include <functional>  // where variables are looked up
#include <string>
#include <string_view>
#include <utility>  // exchange
#include <vector>

#include <unistd.h>  // isatty

extern "C" char** environ;  // not every system's headers declare it

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The text of a variable, "" where it is not set.
using variable_lookup = std::function<std::string(const char* name)>;

inline std::string environment(const char* name) {
    const char* v = std::getenv(name);
    return v ? v : "";
}

enum class progress_mode : unsigned char { automatic, off, plain, line };

enum class history_use : unsigned char { read, append, off };

/// What the LLMBENCH_HISTORY variables ask.
struct history_settings {
    history_use use = history_use::read;
    std::string folder{};   // instead of the gate's own
    std::string at{};       // as of then
    std::string machine{};  // LLMBENCH_MACHINE
    bool appends() const { return use == history_use::append; }
    std::string folder_or(const types::text& own) const {
        return folder.empty() ? str(own) : folder;
    }
};

/// What the LLMBENCH_BISECT variables ask.
struct bisect_settings {
    std::string what{};  // a statistic, "1" for all, "" for none
    std::string good{};  // the file of the good commit
    bool judges() const { return !what.empty(); }
};

/// What the LLMBENCH_ variables ask of a gate, beside its server. Read when the gate begins.
struct settings {
    std::uint64_t seed = 1;
    inconclusive_means inconclusive = inconclusive_means::warn;
    bool skip_without_server = false;
    double time_budget_s = 0;  // of the whole program, 0: none
    int calibrate = 0;         // repeats, 0: judge
    std::string calibration{};
    bool write_baseline = false;
    std::string rehearse{};  // "": measure; "1", or the result.json that a model is fitted to
    progress_mode progress = progress_mode::automatic;
    load_shard shard{};     // what this program sends of the load
    double start_at_s = 0;  // of its first repeat, Unix time; shards alone
    answers_shown answers = answers_shown::open;
    std::vector<other_tool> show_as{};  // in whose definitions reports show our numbers, too
    history_settings history{};
    bisect_settings bisect{};
};

inline bool is_no(const std::string& v) {
    return v.empty() || v == "0" || v == "false" || v == "no" || v == "off";
}
inline bool is_yes(const std::string& v) {
    return v == "1" || v == "true" || v == "yes" || v == "on";
}
inline bool says_yes(const char* name, const std::string& v) {
    const bool no = is_no(v), yes = is_yes(v);
    if (!yes && !no)
        refuse({name, " is \"", printable(v, 40), "\": it must be 1 or 0"});
    return yes;
}
/// LLMBENCH_SEED, 1 where it is not set.
inline std::uint64_t seed_of(const std::string& s) {
    if (s.empty()) return 1;
    const std::uint64_t seed = parsed_number<std::uint64_t>(s).value_or(0);
    if (seed <= 0)
        refuse({"LLMBENCH_SEED is \"", printable(s), "\": it must be a whole number above 0"});
    return seed;
}
/// LLMBENCH_CALIBRATE, 0 where it is not set.
inline int calibration_repeats_of(const std::string& s) {
    if (s.empty()) return 0;
    const int n = parsed_number<int>(s).value_or(0);
    if (!(n >= 3 && n <= 100))
        refuse({"LLMBENCH_CALIBRATE is \"", printable(s, 40),
                "\": it must be a whole number from 3 to 100"});
    return n;
}
/// LLMBENCH_TIME_BUDGET in seconds ("300", "300s", "5min"), 0 where it is not set.
inline double time_budget_of(const std::string& s) {
    if (s.empty()) return 0;
    std::string_view unit = s;
    const double v = leading_number<double>(unit).value_or(0);
    const double scale = unit.empty() || unit == "s" ? 1 : unit == "min" ? 60 : 0;
    if (!(v > 0 && scale > 0 && v * scale <= 1e7))
        refuse({"LLMBENCH_TIME_BUDGET is \"", printable(s, 40),
                "\": it must be a time above zero, such as 300, 300s or 5min"});
    return v * scale;
}
inline inconclusive_means inconclusive_of(const std::string& s) {
    if (s == "fail") return inconclusive_means::fail;
    if (s == "skip") return inconclusive_means::skip;
    if (!s.empty() && s != "warn")
        refuse({"LLMBENCH_INCONCLUSIVE is \"", printable(s), "\": it must be warn, fail or skip"});
    return inconclusive_means::warn;
}
inline answers_shown answers_shown_of(const std::string& s) {
    if (s == "all") return answers_shown::all;
    if (s == "none") return answers_shown::none;
    if (!s.empty())
        refuse({"LLMBENCH_ANSWERS is \"", printable(s, 40), "\": it must be all or none, or not be "
                "set, for those that keep an objective from passing"});
    return answers_shown::open;
}
inline progress_mode progress_of(const std::string& s) {
    if (s == "off") return progress_mode::off;
    if (s == "line") return progress_mode::line;
    if (s == "plain") return progress_mode::plain;
    if (!s.empty() && s != "auto")
        refuse({"LLMBENCH_PROGRESS is \"", printable(s, 40),
                "\": it must be auto, line, plain or off"});
    return progress_mode::automatic;
}

/// LLMBENCH_REHEARSE: whoever names a file means it, and a wish that nobody understands is no file.
inline std::string rehearsal_of(const std::string& s) {
    if (is_no(s)) return {};
    if (is_yes(s)) return "1";
    if (s.find_first_of("./") == std::string::npos)
        refuse({"LLMBENCH_REHEARSE is \"", printable(s, 200),
                "\": it must be 1, 0, or the result.json of a run that was measured"});
    return s;
}

/// LLMBENCH_SHARD, the whole where it is not set.
inline load_shard shard_of(const std::string& s) {
    if (s.empty()) return {};
    const std::size_t slash = std::min(s.find('/'), s.size());
    const auto index = parsed_number<std::size_t>(s.substr(0, slash));
    const auto count = parsed_number<std::size_t>(s.substr(std::min(slash + 1, s.size())));
    if (!(index && count && *count > 0 && *count <= most_shards && *index < *count))
        refuse({"LLMBENCH_SHARD is \"", printable(s, 40),
                "\": it must be such as 2/8, the third of eight: 0/8 to 7/8, of 10000 at most"});
    return {*index, *count};
}
/// LLMBENCH_START_AT, 0 where it is not set.
inline double start_at_of(const std::string& s) {
    if (s.empty()) return 0;
    const double at = parsed_number<double>(s).value_or(0);
    if (!(at >= 1e9 && at < 1e10))
        refuse({"LLMBENCH_START_AT is \"", printable(s, 40),
                "\": it must be a time in seconds since 1970, such as $(($(date +%s) + 60))"});
    return at;
}

/// Throws std::invalid_argument with one sentence for what is none of what a variable may be.
inline history_settings history_settings_of(const variable_lookup& look_up) {
    history_settings s;
    const std::string use = look_up("LLMBENCH_HISTORY");
    if (use == "append") s.use = history_use::append;
    else if (use == "off") s.use = history_use::off;
    else if (!use.empty())
        refuse({"LLMBENCH_HISTORY is \"", printable(use, 40), "\": it must be append or off, or "
                "not be set, to read"});
    s.folder = look_up("LLMBENCH_HISTORY_DIR");
    s.at = look_up("LLMBENCH_HISTORY_AT");
    s.machine = printable(trimmed(look_up("LLMBENCH_MACHINE")), 100);
    if (s.use == history_use::append && !s.at.empty())
        refuse({"LLMBENCH_HISTORY=append and LLMBENCH_HISTORY_AT are both set: nothing is added to "
                "the past"});
    return s;
}

/// Throws std::invalid_argument with one sentence for what does not go together.
inline bisect_settings bisect_settings_of(const variable_lookup& look_up, bool writes) {
    bisect_settings b{look_up("LLMBENCH_BISECT"), look_up("LLMBENCH_BISECT_GOOD")};
    if (is_no(b.what)) b.what.clear();
    if (is_yes(b.what)) b.what = "1";
    if (b.judges() && writes)
        refuse({"LLMBENCH_BISECT and LLMBENCH_WRITE_BASELINE are both set: the second one writes "
                "LLMBENCH_BISECT_GOOD, before the bisection"});
    if (b.judges() && b.good.empty())
        refuse({"LLMBENCH_BISECT is set and LLMBENCH_BISECT_GOOD is not: it names the file that "
                "LLMBENCH_WRITE_BASELINE=1 wrote on the good commit"});
    if (!b.good.empty() && !b.judges() && !writes)
        refuse({"LLMBENCH_BISECT_GOOD is set: LLMBENCH_WRITE_BASELINE=1 writes that file, and "
                "LLMBENCH_BISECT=1 reads it; neither is set"});
    return b;
}

/// Throws std::invalid_argument with one sentence for the first variable that cannot be used.
inline settings settings_of(const variable_lookup& look_up) {
    settings s;
    s.seed = seed_of(look_up("LLMBENCH_SEED"));
    s.inconclusive = inconclusive_of(look_up("LLMBENCH_INCONCLUSIVE"));
    s.skip_without_server =
        says_yes("LLMBENCH_SKIP_WITHOUT_SERVER", look_up("LLMBENCH_SKIP_WITHOUT_SERVER"));
    s.time_budget_s = time_budget_of(look_up("LLMBENCH_TIME_BUDGET"));
    s.calibrate = calibration_repeats_of(look_up("LLMBENCH_CALIBRATE"));
    s.calibration = look_up("LLMBENCH_CALIBRATION");
    s.write_baseline = says_yes("LLMBENCH_WRITE_BASELINE", look_up("LLMBENCH_WRITE_BASELINE"));
    s.bisect = bisect_settings_of(look_up, s.write_baseline);
    s.rehearse = rehearsal_of(look_up("LLMBENCH_REHEARSE"));
    s.progress = progress_of(look_up("LLMBENCH_PROGRESS"));
    s.answers = answers_shown_of(look_up("LLMBENCH_ANSWERS"));
    s.show_as = tools_named(look_up("LLMBENCH_SHOW_AS"));
    s.history = history_settings_of(look_up);
    s.shard = shard_of(look_up("LLMBENCH_SHARD"));
    s.start_at_s = start_at_of(look_up("LLMBENCH_START_AT"));
    if (s.shard.is_whole() != (s.start_at_s == 0))
        refuse({"LLMBENCH_SHARD and LLMBENCH_START_AT belong together: all shards of a load begin "
                "at one time, and only ", s.shard.is_whole() ? "the second" : "the first",
                " is set"});
    const char* const other = s.calibrate > 0          ? "LLMBENCH_CALIBRATE"
                              : s.write_baseline       ? "LLMBENCH_WRITE_BASELINE"
                              : !s.shard.is_whole()    ? "LLMBENCH_SHARD"
                                                       : nullptr;
    if (s.bisect.judges()) {
        const char* const beside = other                ? other
                                   : s.history.appends() ? "LLMBENCH_HISTORY=append"
                                   : !s.rehearse.empty() ? "LLMBENCH_REHEARSE"
                                                         : nullptr;
        if (beside)
            refuse({"LLMBENCH_BISECT and ", beside, " are both set: a step of a bisection is a "
                    "whole gate that is judged, and nothing else"});
        s.inconclusive = inconclusive_means::skip;
    }
    if (s.history.appends() && other)
        refuse({"LLMBENCH_HISTORY=append and ", other, " are both set: what is added is a whole "
                "gate that was judged"});
    if (!s.rehearse.empty() && s.history.appends())
        refuse({"LLMBENCH_REHEARSE and LLMBENCH_HISTORY=append are both set: a model has no "
                "nights"});
    if (!s.rehearse.empty() && other)
        refuse({"LLMBENCH_REHEARSE and ", other, " are both set: a rehearsal is of whole gates on "
                "a model, and leaves nothing for later runs"});
    return s;
}

/// A variable that is looked up, and what it says.
struct known_variable {
    const char *name, *meaning;
};
/// As `--help` lists them.
inline constexpr known_variable known_variables[] = {
    {"LLMBENCH_URL", "the server, http://host:port"},
    {"LLMBENCH_MODEL", "its model; default: the only one that it lists"},
    {"LLMBENCH_API", "its API; default: openai_chat"},
    {"LLMBENCH_API_KEY", "sent to it as a bearer token"},
    {"LLMBENCH_BASELINE_URL", "the server of a baseline that names no URL"},
    {"LLMBENCH_REPORT_DIR", "where reports go; default: llmbench-report"},
    {"LLMBENCH_SEED", "of the traffic; default: 1"},
    {"LLMBENCH_INCONCLUSIVE", "warn (exit code 0, the default), fail (1) or skip (77)"},
    {"LLMBENCH_SKIP_WITHOUT_SERVER", "1: without a server skipped (77), not invalid (3)"},
    {"LLMBENCH_SHARD", "2/8: the part of a load that this program sends, counted from 0"},
    {"LLMBENCH_START_AT", "when all shards begin, in seconds since 1970"},
    {"LLMBENCH_RANK_WAIT", "seconds that a rank of MPI waits for the others, 60"},
    {"LLMBENCH_TIME_BUDGET", "of the whole program: 300, 300s, 5min"},
    {"LLMBENCH_PROGRESS", "auto, line, plain or off"},
    {"LLMBENCH_REHEARSE", "1: gates on a model, for nothing (77); or the result.json to fit it to"},
    {"LLMBENCH_CALIBRATE", "repeats of a calibration run, 3 to 100"},
    {"LLMBENCH_CALIBRATION", "the calibration.json that one wrote"},
    {"LLMBENCH_WRITE_BASELINE", "1: write stored baselines instead of comparing with them"},
    {"LLMBENCH_HISTORY", "append: add what gates measure to the history of main"},
    {"LLMBENCH_HISTORY_DIR", "the folder of that history; default: perf-history"},
    {"LLMBENCH_HISTORY_AT", "that history as of a date, a time or a commit"},
    {"LLMBENCH_MACHINE", "a name for the server's machine, for histories"},
    {"LLMBENCH_BISECT", "1, or a statistic: exit codes of git bisect run"},
    {"LLMBENCH_BISECT_GOOD", "the good commit's file; LLMBENCH_WRITE_BASELINE=1 writes it"},
    {"LLMBENCH_ANSWERS", "all or none: whose texts are written; default: of what does not pass"},
    {"LLMBENCH_SHOW_AS", "vllm, sglang, guidellm, aiperf: our numbers in their definitions, too"}};

inline std::string variables_help() {
    std::string out = "[llmbench] variables of the environment:\n";
    for (const known_variable& v : known_variables)
        out += printed(" %-29s %s\n", v.name, v.meaning);
    return out;
}
/// Letters to be added, left out or changed to make one word of the other (Levenshtein).
inline std::size_t letters_apart(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t before = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = before + (a[i] != b[j]);
            before = row[j + 1];
            row[j + 1] = std::min({changed, before + 1, row[j] + 1});
        }
    }
    return row[b.size()];
}
/// Which of ours a name may be meant for, "" for none: a part of it, or a few letters from it. One
/// that goes on where ours ends (LLMBENCH_API_KEY_B) is somebody's own, and so is any other.
inline std::string meant_by(const std::string& name) {
    constexpr std::string_view prefix = "LLMBENCH_";
    if (name.rfind(prefix, 0) != 0) return {};
    const std::string rest = name.substr(prefix.size());
    const known_variable* nearest = &known_variables[0];
    for (const known_variable& v : known_variables) {
        if (name == v.name || name.rfind(std::string(v.name) + "_", 0) == 0) return {};
        if (letters_apart(name, v.name) < letters_apart(name, nearest->name)) nearest = &v;
    }
    if (letters_apart(name, nearest->name) <= 2) return nearest->name;
    for (const known_variable& v : known_variables)
        if (rest.size() >= 3 && std::string_view(v.name).find(rest) != std::string_view::npos)
            return v.name;
    return {};
}
/// What is to be said of variables ("NAME=value" each) that are none of ours and look like them, a
/// sentence for each one.
inline std::vector<std::string> misspelt_variables(const std::vector<std::string>& environment) {
    std::vector<std::string> notes;
    for (const std::string& variable : environment) {
        const std::string name = variable.substr(0, variable.find('='));
        if (const std::string meant = meant_by(name); !meant.empty())
            notes.push_back(printable(name, 60) + " is set and is no variable of llmbench; is " +
                            meant + " meant?");
    }
    return notes;
}
inline std::vector<std::string> whole_environment() {
    std::vector<std::string> all;
    for (char** v = ::environ; v && *v; ++v) all.push_back(*v);
    return all;
}

/// Where a program runs and what is to become of its reports; read once, when it begins.
struct surroundings {
    std::string report_directory = "llmbench-report";
    console_facts console{};
    bool on_github = false;
    std::string github_workspace{};
    std::string step_summary{};  // the file that GitHub shows, "" for none
    console_style style() const { return style_of(console); }
    /// A line that is written over on a terminal, plain lines in a log.
    progress_mode shown(progress_mode wanted) const {
        if (wanted != progress_mode::automatic) return wanted;
        return console.terminal && console.term != "dumb" ? progress_mode::line
                                                          : progress_mode::plain;
    }
};
inline surroundings surroundings_of(const variable_lookup& look_up, bool is_terminal) {
    surroundings s;
    // Beside the reports of a run that was measured, which it may be fitted to.
    if (!is_no(look_up("LLMBENCH_REHEARSE"))) s.report_directory = "llmbench-rehearsal";
    if (const std::string d = look_up("LLMBENCH_REPORT_DIR"); !d.empty()) s.report_directory = d;
    s.console = {is_terminal, look_up("NO_COLOR"), look_up("CLICOLOR_FORCE"), look_up("TERM"),
                 look_up("LC_ALL"), look_up("LC_CTYPE"), look_up("LANG")};
    s.on_github = look_up("GITHUB_ACTIONS") == "true";
    s.github_workspace = look_up("GITHUB_WORKSPACE");
    s.step_summary = look_up("GITHUB_STEP_SUMMARY");
    return s;
}
inline const surroundings& surroundings_of_program() {
    // Reports may be written when static objects are gone.
    static const surroundings* const s = [] {
        const rank_group& ranks = rank_group::of_this_program();
        auto* const found =
            new surroundings(surroundings_of(environment, ::isatty(STDOUT_FILENO) == 1));
        if (!ranks.is_first())  // whose reports are rank 0's, and whose records are its own
            found->report_directory += "/rank-" + std::to_string(ranks.index());
        return found;
    }();
    return *s;
}
/// Where reports go, and the logs of servers that a gate starts.
inline const std::string& report_directory() { return surroundings_of_program().report_directory; }

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
