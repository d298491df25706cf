// settings from the environment
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/measured/answers.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/console.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/server_variables.hpp"
#include "effects/system/sharing.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>  // exchange, pair

#include <unistd.h>  // isatty

namespace llmbench {
inline namespace v1 {
namespace detail {

enum class progress_mode : unsigned char { automatic, off, plain, line };

/// What a run is for, if not for verdicts.
struct purpose_of_run {
    int calibrate = 0;       // repeats, 0: judge
    bool is_shard = false;   // of a load sent by several programs: no verdicts
    std::string rehearse{};  // "": measure; "1", or the result.json that a model is fitted to
};
class gate_past;
struct gate_report;
/// Gates that are kept, for a history.
struct kept_runs {
    /// Changes a gate before it is planned.
    scenario (*as_kept)(const scenario& s);
    /// Keeps a judged gate until the reports are written. Returns why it does not, "" if it does.
    /// `stopped`: why its repeats ended early, "" if they did not.
    std::string (*keep)(const gate_report& g, const gate_past* of, const std::string& stopped);
};
/// The LLMBENCH_ variables of a gate. Read when the gate begins.
struct settings : purpose_of_run {
    server_variables candidate{}, baseline{};
    std::uint64_t seed = 1;
    inconclusive_means inconclusive = inconclusive_means::warn;
    bool skip_without_server = false;
    double time_budget_s = 0;  // of the whole program, 0: none
    double ready_within_s = 0;  // how long servers at the variables' URLs may take to start
    std::string ready_path{};   // what answers 200 then, "": the API's
    bool ends_at_first_miss = false;
    std::string calibration{};
    bool write_baseline = false;
    progress_mode progress = progress_mode::automatic;
    answers_shown answers = answers_shown::open;
    const kept_runs* keeps = nullptr;  // by an extension: gates are added to a history
};

inline bool read_flag(const std::string& v, bool& into) {
    into = is_yes(v);
    return into || means_off(v);
}
template <class T>
bool read_word(const std::string& v, T& into,
               std::initializer_list<std::pair<const char*, T>> words) {
    for (const auto& [word, meaning] : words)
        if (v == word) {
            into = meaning;
            return true;
        }
    return false;
}
/// A time in seconds: "300", "300s", "5min".
inline bool read_time(std::string_view v, double& into) {
    into = leading_number<double>(v).value_or(0);
    const double scale = v.empty() || v == "s" ? 1 : v == "min" ? 60 : 0;
    into *= scale;
    return into > 0 && into <= 1e7;
}

/// A variable, and how it is read: `read` returns false if the value is not what it must be. Others
/// than the settings of a gate have none.
struct known_variable {
    const char *name, *meaning;
    const char* must_be = "";
    bool (*read)(settings& s, const std::string& v) = nullptr;
};
/// In the order of `--help`.
inline constexpr known_variable known_variables[] = {
    {"LLMBENCH_URL", "the server, http://host:port"},
    {"LLMBENCH_MODEL", "its model; default: the only one that it lists"},
    {"LLMBENCH_API", "its API; default: openai_chat"},
    {"LLMBENCH_API_KEY", "sent to it as a bearer token"},
    {"LLMBENCH_BASELINE_URL", "the server of a baseline that names no URL"},
    {"LLMBENCH_BASELINE_API_KEY", "the key of the baseline; without it one on the target's host "
                                  "has the target's"},
    {"LLMBENCH_SERVER", "a command that starts the server at LLMBENCH_URL, for the whole program"},
    {"LLMBENCH_BASELINE_SERVER", "the same at LLMBENCH_BASELINE_URL, once the first one answers"},
    {"LLMBENCH_READY_WITHIN", "waits so long for those two servers to start: 600, 600s, 10min",
     "a time above zero, such as 600, 600s or 10min",
     [](settings& s, const std::string& v) { return read_time(v, s.ready_within_s); }},
    {"LLMBENCH_READY_PATH", "what answers 200 once they are ready; default: the API's",
     "a path, /health, or a URL",
     [](settings& s, const std::string& v) {
         s.ready_path = v;
         return v.front() == '/' || v.find("://") != std::string::npos;
     }},
    {"LLMBENCH_REPORT_DIR", "where reports go; default: llmbench-report"},
    {"LLMBENCH_SEED", "of the traffic; default: 1", "a whole number above 0",
     [](settings& s, const std::string& v) {
         s.seed = parsed_number<std::uint64_t>(v).value_or(0);
         return s.seed > 0;
     }},
    {"LLMBENCH_INCONCLUSIVE", "warn (exit code 0, the default), fail (1) or skip (77)",
     "warn, fail or skip",
     [](settings& s, const std::string& v) {
         using means = inconclusive_means;
         return read_word<means>(
             v, s.inconclusive,
             {{"warn", means::warn}, {"fail", means::fail}, {"skip", means::skip}});
     }},
    {"LLMBENCH_SKIP_WITHOUT_SERVER", "1: without a server skipped (77), not invalid (3)", "1 or 0",
     [](settings& s, const std::string& v) { return read_flag(v, s.skip_without_server); }},
    {"LLMBENCH_SHARD", "2/8: the part of a load that this program sends, counted from 0"},
    {"LLMBENCH_START_AT", "when all shards begin, in seconds since 1970"},
    {"LLMBENCH_RANK_WAIT", "seconds that a rank of MPI waits for the others, 60"},
    {"LLMBENCH_TIME_BUDGET", "of the whole program: 300, 300s, 5min",
     "a time above zero, such as 300, 300s or 5min",
     [](settings& s, const std::string& v) { return read_time(v, s.time_budget_s); }},
    {"LLMBENCH_PROGRESS", "auto, line, plain or off", "auto, line, plain or off",
     [](settings& s, const std::string& v) {
         using mode = progress_mode;
         return read_word<mode>(v, s.progress, {{"auto", mode::automatic},
                                                {"line", mode::line},
                                                {"plain", mode::plain},
                                                {"off", mode::off}});
     }},
    {"LLMBENCH_VERBOSE", "1: also the lines that no verdict depends on", "1 or 0",
     [](settings&, const std::string& v) { return is_yes(v) || means_off(v); }},
    {"LLMBENCH_REHEARSE", "1: gates on a model, for nothing (77); or the result.json to fit it to",
     "1, 0, or the result.json of a run that was measured",
     [](settings& s, const std::string& v) {
         if (!means_off(v)) s.rehearse = is_yes(v) ? "1" : v;
         // An unknown word is not taken for a file.
         return means_off(v) || is_yes(v) || v.find_first_of("./") != std::string::npos;
     }},
    {"LLMBENCH_STOP", "first_miss: a gate ends once it failed; default: once all is decided",
     "first_miss or all_decided",
     [](settings& s, const std::string& v) {
         return read_word<bool>(v, s.ends_at_first_miss,
                                {{"first_miss", true}, {"all_decided", false}});
     }},
    {"LLMBENCH_CALIBRATE", "repeats of a calibration run, 3 to 100",
     "a whole number from 3 to 100",
     [](settings& s, const std::string& v) {
         s.calibrate = parsed_number<int>(v).value_or(0);
         return s.calibrate >= 3 && s.calibrate <= 100;
     }},
    {"LLMBENCH_CALIBRATION", "the calibration.json that one wrote", "",
     [](settings& s, const std::string& v) { return !(s.calibration = v).empty(); }},
    {"LLMBENCH_WRITE_BASELINE", "1: write stored baselines instead of comparing with them",
     "1 or 0",
     [](settings& s, const std::string& v) { return read_flag(v, s.write_baseline); }},
    {"LLMBENCH_HISTORY", "append: add what gates measure to the history of main"},
    {"LLMBENCH_HISTORY_DIR", "the folder of that history; default: perf-history"},
    {"LLMBENCH_HISTORY_AT", "that history as of a date, a time or a commit"},
    {"LLMBENCH_MACHINE", "a name for the server's machine, for histories"},
    {"LLMBENCH_ANSWERS", "all or none: whose texts are written; default: of what does not pass",
     "all or none, or not be set, for those that keep an objective from passing",
     [](settings& s, const std::string& v) {
         return read_word<answers_shown>(
             v, s.answers, {{"all", answers_shown::all}, {"none", answers_shown::none}});
     }}};

/// Variables that an extension of this name reads.
struct variable_of_extension {
    const char *variable, *extension;
};
inline constexpr variable_of_extension variables_of_extensions[] = {
    {"LLMBENCH_HISTORY", "history"},
    {"LLMBENCH_SHARD", "machines"},
    {"LLMBENCH_START_AT", "machines"},
    {"LLMBENCH_RANK_WAIT", "machines"}};
/// Throws std::invalid_argument if a variable is set, or the macro of MPI, and its extension is
/// not there.
inline void refuse_absent(const variable_lookup& look_up) {
    const auto need = [](const variable_of_extension& v) {
        const auto is_it = [&](const extension* e) { return v.extension == std::string(e->name); };
        if (!any_of(extensions(), is_it))
            refuse({v.variable, " needs llmbench_", v.extension,
                    ".hpp: include it after llmbench.hpp where LLMBENCH_MAIN is"});
    };
    for (const variable_of_extension& v : variables_of_extensions)
        if (!look_up(v.variable).empty()) need(v);
#ifdef LLMBENCH_WITH_MPI
    need({"LLMBENCH_WITH_MPI", "machines"});
#endif
}

/// A variable of earlier versions, and its replacement.
struct gone_variable {
    const char *name, *instead;
};
inline constexpr gone_variable gone_variables[] = {
    {"LLMBENCH_BISECT", "git bisect run goes by a gate's exit codes, see ci/README.md"},
    {"LLMBENCH_BISECT_GOOD", "name the good commit's file by .baseline = stored(file, 0.5_pct)"},
    {"LLMBENCH_SHOW_AS", "`llmbench show llmbench-report --as vllm` shows what it did"}};

/// What a run is asked for in place of verdicts, or beside them: `alone` says why nothing before it
/// in the table may be asked for as well.
struct asked_purpose {
    const char* name;
    bool (*is_asked)(const settings& s);
    const char* alone = nullptr;
};
inline constexpr asked_purpose asked_purposes[] = {
    {"LLMBENCH_CALIBRATE", [](const settings& s) { return s.calibrate > 0; }},
    {"LLMBENCH_WRITE_BASELINE", [](const settings& s) { return s.write_baseline; }},
    {"LLMBENCH_SHARD", [](const settings& s) { return s.is_shard; }},
    {"LLMBENCH_HISTORY=append", [](const settings& s) { return s.keeps != nullptr; },
     "what is added is a whole gate that was judged"},
    {"LLMBENCH_REHEARSE", [](const settings& s) { return !s.rehearse.empty(); },
     "a rehearsal is of whole gates on a model, and leaves nothing for later runs"}};
inline void check_together(const settings& s) {
    const asked_purpose* before = nullptr;
    for (const asked_purpose& p : asked_purposes) {
        if (!p.is_asked(s)) continue;
        if (before && p.alone) refuse({p.name, " and ", before->name, " are both set: ", p.alone});
        before = &p;
    }
}
/// Throws std::invalid_argument with one sentence for the first variable that is not valid.
inline settings settings_of(const variable_lookup& look_up) {
    for (const gone_variable& v : gone_variables)
        if (!means_off(look_up(v.name))) refuse({v.name, " is no variable any more: ", v.instead});
    settings s;
    for (const known_variable& v : known_variables) {
        const std::string value = v.read ? look_up(v.name) : std::string();
        if (!value.empty() && !v.read(s, value))
            refuse({v.name, " is \"", printable(value, 200), "\": it must be ", v.must_be});
    }
    s.candidate = variables_of_server(run_variant::candidate, look_up);
    s.baseline = variables_of_server(run_variant::baseline, look_up);
    refuse_absent(look_up);
    each(&extension::read_settings, look_up, s);
    check_together(s);
    return s;
}

inline std::string variables_help() {
    std::string out = "[llmbench] variables of the environment:\n";
    for (const known_variable& v : known_variables)
        out += printed(" %-29s %s\n", v.name, v.meaning);
    return out;
}
/// The number of letters to add, remove, change or swap between two words.
inline std::size_t letters_apart(std::string_view a, std::string_view b) {
    vector<std::size_t> before, last, row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < a.size(); ++i) {
        before = std::exchange(last, row);
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            row[j + 1] = std::min({last[j] + (a[i] != b[j]), last[j + 1] + 1, row[j] + 1});
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
                row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
        }
    }
    return row[b.size()];
}
/// Returns the variable of ours that a name means, "" for none: it is a letter away (two of a long
/// name), or at least half of the name. A longer name such as LLMBENCH_API_KEY_B is the user's own.
inline std::string meant_by(const std::string& name) {
    constexpr std::string_view prefix = "LLMBENCH_";
    const known_variable* nearest = &known_variables[0];
    for (const known_variable& v : known_variables) {
        if (name == v.name) return {};
        if (letters_apart(name, v.name) < letters_apart(name, nearest->name)) nearest = &v;
    }
    const std::string ours = nearest->name;
    if (letters_apart(name, ours) <= (ours.size() < prefix.size() + 6 ? 1u : 2u))
        return name.rfind(ours + "_", 0) == 0 ? "" : ours;
    if (name.rfind(prefix, 0) != 0) return {};
    const std::string_view rest = std::string_view(name).substr(prefix.size());
    for (const known_variable& v : known_variables) {
        const std::string_view whole = std::string_view(v.name).substr(prefix.size());
        if (2 * rest.size() >= whole.size() && whole.find(rest) != whole.npos) return v.name;
    }
    return {};
}
/// Throws std::invalid_argument with one sentence for the first variable ("NAME=value") that is not
/// ours but looks like ours: a gate that ignored it would be green without doing what it asks.
inline void refuse_misspelt(const vector<std::string>& environment) {
    for (const std::string& variable : environment) {
        const std::string name = variable.substr(0, variable.find('='));
        if (const std::string meant = meant_by(name); !meant.empty())
            refuse({printable(name, 60), " is set and is no variable of llmbench: is ", meant,
                    " meant? (a variable of your own needs another name)"});
    }
}

/// Where a program runs; read once, at the start.
struct surroundings {
    console_facts console{};
    bool verbose = false;
    bool on_github = false;
    std::string github_workspace{};
    std::string step_summary{};  // file of GitHub's summary, "" for none
    console_style style() const {
        console_style s = style_of(console);
        s.verbose = verbose;
        return s;
    }
    /// A rewritten line on a terminal, plain lines in a log.
    progress_mode shown(progress_mode wanted) const {
        if (wanted != progress_mode::automatic) return wanted;
        return console.terminal && console.term != "dumb" ? progress_mode::line
                                                          : progress_mode::plain;
    }
};
inline surroundings surroundings_of(const variable_lookup& look_up) {
    surroundings s;
    s.console = {false, look_up("NO_COLOR"), look_up("CLICOLOR_FORCE"), look_up("TERM"),
                 look_up("LC_ALL"), look_up("LC_CTYPE"), look_up("LANG")};
    s.verbose = is_yes(look_up("LLMBENCH_VERBOSE"));
    s.on_github = look_up("GITHUB_ACTIONS") == "true";
    s.github_workspace = look_up("GITHUB_WORKSPACE");
    s.step_summary = look_up("GITHUB_STEP_SUMMARY");
    return s;
}
inline const surroundings& surroundings_of_program() {
    // Never destroyed: reports may be written after static objects are gone.
    static const surroundings* const s = [] {
        auto* const found = new surroundings(surroundings_of(environment));
        found->console.terminal = ::isatty(STDOUT_FILENO) == 1;
        if (rank_of_program() > 0) found->step_summary.clear();  // reports belong to rank 0
        return found;
    }();
    return *s;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
