// what the environment asks for
#pragma once

#include "core/base/text.hpp"
#include "core/judging/outcome.hpp"
#include "core/others/definitions.hpp"
#include "core/traffic/share.hpp"
#include "core/reports/console_style.hpp"
#include "effects/system/ranks.hpp"

#include <algorithm>  // min
#include <cstdint>  // uint64_t
#include <cstdlib>  // getenv
#include <functional>  // where variables are looked up
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>  // isatty

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

/// What the LLMBENCH_ variables ask of a gate, beside its server. Read when the gate begins.
struct settings {
    std::uint64_t seed = 1;
    inconclusive_means inconclusive = inconclusive_means::warn;
    bool skip_without_server = false;
    double time_budget_s = 0;  // of the whole program, 0: none
    int calibrate = 0;         // repeats, 0: judge
    std::string calibration{};
    bool write_baseline = false;
    progress_mode progress = progress_mode::automatic;
    load_share shard{};     // what this program sends of the load
    double start_at_s = 0;  // of its first repeat, Unix time; shards alone
    std::vector<other_tool> show_as{};  // in whose definitions reports show our numbers, too
};

inline bool says_yes(const char* name, const std::string& v) {
    const bool no = v.empty() || v == "0" || v == "false" || v == "no" || v == "off";
    const bool yes = v == "1" || v == "true" || v == "yes" || v == "on";
    require(yes || no, std::string(name) + " is \"" + printable(v, 40) + "\": it must be 1 or 0");
    return yes;
}
/// LLMBENCH_SEED, 1 where it is not set.
inline std::uint64_t seed_of(const std::string& s) {
    if (s.empty()) return 1;
    const std::uint64_t seed = parsed_number<std::uint64_t>(s).value_or(0);
    require(seed > 0,
            "LLMBENCH_SEED is \"" + printable(s) + "\": it must be a whole number above 0");
    return seed;
}
/// LLMBENCH_CALIBRATE, 0 where it is not set.
inline int calibration_repeats_of(const std::string& s) {
    if (s.empty()) return 0;
    const int n = parsed_number<int>(s).value_or(0);
    require(n >= 3 && n <= 100,
            "LLMBENCH_CALIBRATE is \"" + printable(s, 40) +
                "\": it must be a whole number from 3 to 100");
    return n;
}
/// LLMBENCH_TIME_BUDGET in seconds ("300", "300s", "5min"), 0 where it is not set.
inline double time_budget_of(const std::string& s) {
    if (s.empty()) return 0;
    std::string_view unit = s;
    const double v = leading_number<double>(unit).value_or(0);
    const double scale = unit.empty() || unit == "s" ? 1 : unit == "min" ? 60 : 0;
    require(v > 0 && scale > 0 && v * scale <= 1e7,
            "LLMBENCH_TIME_BUDGET is \"" + printable(s, 40) +
                "\": it must be a time above zero, such as 300, 300s or 5min");
    return v * scale;
}
inline inconclusive_means inconclusive_of(const std::string& s) {
    if (s == "fail") return inconclusive_means::fail;
    if (s == "skip") return inconclusive_means::skip;
    require(s.empty() || s == "warn",
            "LLMBENCH_INCONCLUSIVE is \"" + printable(s) + "\": it must be warn, fail or skip");
    return inconclusive_means::warn;
}
inline progress_mode progress_of(const std::string& s) {
    if (s == "off") return progress_mode::off;
    if (s == "line") return progress_mode::line;
    if (s == "plain") return progress_mode::plain;
    require(s.empty() || s == "auto", "LLMBENCH_PROGRESS is \"" + printable(s, 40) +
                                          "\": it must be auto, line, plain or off");
    return progress_mode::automatic;
}

inline constexpr std::size_t most_shards = 10000;
/// LLMBENCH_SHARD, the whole where it is not set.
inline load_share shard_of(const std::string& s) {
    if (s.empty()) return {};
    const std::size_t slash = std::min(s.find('/'), s.size());
    const auto index = parsed_number<std::size_t>(s.substr(0, slash));
    const auto count = parsed_number<std::size_t>(s.substr(std::min(slash + 1, s.size())));
    require(index && count && *count > 0 && *count <= most_shards && *index < *count,
            "LLMBENCH_SHARD is \"" + printable(s, 40) +
                "\": it must be such as 2/8, the third of eight: 0/8 to 7/8, of 10000 at most");
    return {*index, *count};
}
/// LLMBENCH_START_AT, 0 where it is not set.
inline double start_at_of(const std::string& s) {
    if (s.empty()) return 0;
    const double at = parsed_number<double>(s).value_or(0);
    require(at >= 1e9 && at < 1e10, "LLMBENCH_START_AT is \"" + printable(s, 40) +
                                        "\": it must be a time in seconds since 1970, such as "
                                        "$(($(date +%s) + 60))");
    return at;
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
    s.progress = progress_of(look_up("LLMBENCH_PROGRESS"));
    s.show_as = tools_named(look_up("LLMBENCH_SHOW_AS"));
    s.shard = shard_of(look_up("LLMBENCH_SHARD"));
    s.start_at_s = start_at_of(look_up("LLMBENCH_START_AT"));
    require(s.shard.is_whole() == (s.start_at_s == 0),
            "LLMBENCH_SHARD and LLMBENCH_START_AT belong together: all shards of a load begin at "
            "one time, and only " + std::string(s.shard.is_whole() ? "the second" : "the first") +
            " is set");
    return s;
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
