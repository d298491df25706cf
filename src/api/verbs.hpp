// verbs and assertions
#pragma once

#include "api/doctest.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"

namespace llmbench {
inline namespace v1 {

/// Measures. With `.slos` the result has their verdicts, but nothing fails: in a doctest case
/// reports mark them as advisory, elsewhere exit_code() counts them. Throws std::invalid_argument
/// for an unsound scenario, std::runtime_error if the target cannot be started; in a doctest case
/// both become a failed assertion at the caller's line.
// A compiler that cannot convert the braces shows the line below, and not the field.
result run(const scenario& s,   // `const scenario s{...}; run(s);` names the field that is wrong
           const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// Measures and asserts every SLO: the test case fails if one is missed or cannot be judged.
result gate(const scenario& s,  // `const scenario s{...}; gate(s);` names the field that is wrong
            const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// Of llmbench_capacity.hpp.
template <class S = scenario>
result find_capacity(const S&) {
    static_assert(detail::is_none_of_ours<S>, "find_capacity is of llmbench_capacity.hpp");
    return {};
}
// Without their extension a compiler finds no matching function and shows these lines.
struct llmbench_compare_hpp_is_not_included;
void compare(const llmbench_compare_hpp_is_not_included&);
void curve(const llmbench_compare_hpp_is_not_included&);
struct llmbench_machines_hpp_is_not_included;
void judge_shards(const llmbench_machines_hpp_is_not_included&);

/// The verdict of one SLO on a result.
slo_verdict judge(const result& r, const slo& s);

/// Judges a finished run again from its records.jsonl, with result.json and events.bin beside it:
/// the same verdicts, bit for bit. `gate` names one of several, and `against` the gate of another
/// setting of a compare(), which is then the baseline. The error guard is last. Throws
/// std::invalid_argument if a file or an SLO cannot be used.
types::list<slo_verdict> judge(const types::text& records_file, const slo_list& slos,
                               const types::text& gate = {}, const types::text& against = {});

/// Reads a result.json, to compare runs. Throws std::invalid_argument if the file is none.
past_result read_result(const types::text& file);

/// The files of a program when it ends.
struct report_view {
    past_result result{};     ///< the gates with their verdicts
    types::text json{};       ///< result.json
    types::text directory{};  ///< of the files
    int exit_code = 0;
};
/// Calls your function when the program's files are written, for the last time at its end: `const
/// bool is_set = on_report([](const report_view& r) { ... });` above the gates. If it throws, the
/// program is invalid, as with a file that cannot be written, or with an assertion of doctest that
/// does not hold. Returns true.
bool on_report(void (*function)(const report_view&));

/// Returns the exit code for your own main, over all gates so far: 0 passed, 1 missed, 2 refused, 3
/// invalid, 77 skipped.
int exit_code();

#if !defined(LLMBENCH_NO_DOCTEST)
#ifndef DOCTEST_CONFIG_DISABLE
namespace detail {
void assert_slo(doctest::assertType::Enum severity, const char* file, int line,
                const char* expression, const result& r, const slo& s);
}  // namespace detail
#define LLMBENCH_ASSERT_SLO_(severity, r, ...)                                                     \
    ::llmbench::detail::assert_slo(::doctest::assertType::severity, __FILE__, __LINE__,            \
                                   #r ", " #__VA_ARGS__, (r), (__VA_ARGS__))
#else
#define LLMBENCH_ASSERT_SLO_(severity, r, ...) static_cast<void>(0)
#endif
/// As doctest's CHECK, REQUIRE and WARN, about an SLO: `CHECK_SLO(result, p99(ttft) <= 300_ms)`.
#define LLMBENCH_CHECK_SLO(r, ...) LLMBENCH_ASSERT_SLO_(DT_CHECK, r, __VA_ARGS__)
#define LLMBENCH_REQUIRE_SLO(r, ...) LLMBENCH_ASSERT_SLO_(DT_REQUIRE, r, __VA_ARGS__)
#define LLMBENCH_WARN_SLO(r, ...) LLMBENCH_ASSERT_SLO_(DT_WARN, r, __VA_ARGS__)
#ifndef DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#define CHECK_SLO(r, ...) LLMBENCH_CHECK_SLO(r, __VA_ARGS__)
#define REQUIRE_SLO(r, ...) LLMBENCH_REQUIRE_SLO(r, __VA_ARGS__)
#define WARN_SLO(r, ...) LLMBENCH_WARN_SLO(r, __VA_ARGS__)
#endif
#endif

}  // inline namespace v1
}  // namespace llmbench
