// settings from the environment
#pragma once

#include "core/base/text.hpp"
#include "core/judging/outcome.hpp"
#include "effects/system/clock.hpp"

#include <charconv>  // from_chars
#include <cstdint>  // uint64_t
#include <cstdlib>  // getenv
#include <string>

#include <unistd.h>  // isatty, STDOUT_FILENO

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string environment(const char* name) {
    const char* v = std::getenv(name);
    return v ? v : "";
}
inline bool environment_says_yes(const char* name) {
    const std::string v = environment(name);
    const bool no = v.empty() || v == "0" || v == "false" || v == "no" || v == "off";
    const bool yes = v == "1" || v == "true" || v == "yes" || v == "on";
    require(yes || no, std::string(name) + " is \"" + printable(v, 40) + "\": it must be 1 or 0");
    return yes;
}
inline std::string report_directory() {
    const std::string d = environment("LLMBENCH_REPORT_DIR");
    return d.empty() ? "llmbench-report" : d;
}
/// LLMBENCH_SEED, else 1.
inline std::uint64_t default_seed() {
    const std::string s = environment("LLMBENCH_SEED");
    if (s.empty()) return 1;
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), seed);
    require(error == std::errc{} && end == s.data() + s.size() && seed > 0,
            "LLMBENCH_SEED is \"" + printable(s) + "\": it must be a whole number above 0");
    return seed;
}

inline inconclusive_means inconclusive_policy() {
    const std::string s = environment("LLMBENCH_INCONCLUSIVE");
    if (s == "fail") return inconclusive_means::fail;
    if (s == "skip") return inconclusive_means::skip;
    require(s.empty() || s == "warn",
            "LLMBENCH_INCONCLUSIVE is \"" + printable(s) + "\": it must be warn, fail or skip");
    return inconclusive_means::warn;
}

/// A whole number from `least` to `most`, 0 where the variable is not set.
inline int environment_number(const char* name, int least, int most) {
    const std::string s = environment(name);
    if (s.empty()) return 0;
    int n = 0;
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
    require(error == std::errc{} && end == s.data() + s.size() && n >= least && n <= most,
            printed("%s is \"%s\": it must be a whole number from %d to %d", name,
                    printable(s, 40).c_str(), least, most));
    return n;
}
/// LLMBENCH_TIME_BUDGET in seconds ("300", "300s", "5min"), 0 where there is none.
inline double time_budget_s() {
    const std::string s = environment("LLMBENCH_TIME_BUDGET");
    if (s.empty()) return 0;
    double v = 0;
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    const std::string unit(end, s.data() + s.size());
    const double scale = unit.empty() || unit == "s" ? 1 : unit == "min" ? 60 : 0;
    require(error == std::errc{} && v > 0 && scale > 0 && v * scale <= 1e7,
            "LLMBENCH_TIME_BUDGET is \"" + printable(s, 40) +
                "\": it must be a time above zero, such as 300, 300s or 5min");
    return v * scale;
}
inline const long long program_began_ns = now_ns();
/// When the time budget is spent, 0 where there is none.
inline long long deadline_ns() {
    const double budget = time_budget_s();
    return budget > 0 ? program_began_ns + ns_of(budget) : 0;
}

enum class progress_mode : unsigned char { off, plain, line };
/// LLMBENCH_PROGRESS, by itself a line on a terminal and plain lines in a log.
inline progress_mode progress_wanted() {
    const std::string s = environment("LLMBENCH_PROGRESS");
    if (s == "off") return progress_mode::off;
    if (s == "line") return progress_mode::line;
    if (s == "plain") return progress_mode::plain;
    require(s.empty() || s == "auto", "LLMBENCH_PROGRESS is \"" + printable(s, 40) +
                                          "\": it must be auto, line, plain or off");
    const bool rewritable = ::isatty(STDOUT_FILENO) == 1 && environment("TERM") != "dumb";
    return rewritable ? progress_mode::line : progress_mode::plain;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
