// llmbench: performance gates for LLM inference servers, written like unit tests.
//
// A gate sends a load to a server that streams tokens over HTTP, and measures the time to the first
// token (TTFT), the time per output token (TPOT), throughput and errors. It repeats the load until
// the data show for each objective that it is met or missed: then it passes or fails, at stated
// error levels. If they show neither, it is inconclusive. The exit code of the program is the
// verdict, so a build fails when a server gets slower. README.md has the rest.
//
// #include "llmbench.hpp"                    // gates.cpp
//
// using namespace llmbench;
//
// TEST_CASE("chat stays interactive at 8 requests per second") {
//     gate({
//         .workload = synthetic{.prompt_tokens = lognormal(512, 0.6), .output_tokens = fixed(128)},
//         .arrivals = poisson(8_rps),
//         .requests = 300,
//         .slos = {
//             mean(tpot) <= 25_ms,
//             p90(ttft) <= 300_ms,
//             goodput(ttft <= 500_ms && tpot <= 30_ms) >= 90_pct,
//             advisory(p99(ttft) <= 800_ms),
//         },
//     });
// }
//
// `g++ -std=c++20 gates.cpp $(llmbench flags) -o gates` compiles it with a wheel or a release's
// archive. With this file alone: `#define LLMBENCH_MAIN` in the first line, and -pthread.
//
// What a gate may say is in part one, in these sections: "workloads" (.workload), "lengths and
// arrivals" (.arrivals), "metrics" and "SLO expressions" (.slos), "targets" (.target), "the
// scenario" (all options with their defaults), "results", "verbs and assertions". A file that
// includes the header pays for that part alone.
//
// The implementation begins in line BEGINS of llmbench.hpp. Part two is the pure core: parsing,
// statistics, schedules, verdicts and reports as functions from values to values, which do no I/O
// and know no clock. Part three holds the effects: clocks, sockets, processes, files. Both are
// compiled in the one file that defines LLMBENCH_IMPLEMENT (or LLMBENCH_MAIN, which adds doctest's
// implementation and main). Inside a part every section uses only what stands above it.
//
// Part one: declarations
// Part two: the pure core
// Part three: effects
//
// Macros, all optional, each in exactly one file:
//   LLMBENCH_MAIN              implementation, doctest's implementation and a main() in this file
//   LLMBENCH_IMPLEMENT         the implementation only (bring your own main)
//   LLMBENCH_IMPLEMENT_EXTENSIONS  that of the extensions alone that a second file includes, which
//                              compiles beside the first
//   LLMBENCH_NO_DOCTEST        no doctest anywhere: use run() and judge() from another framework
//   LLMBENCH_WITH_TLS          https:// through OpenSSL: link -lssl -lcrypto
//   LLMBENCH_PREBUILT          the implementation is in libllmbench.a, and the macros above compile
//                              nothing: `llmbench flags` prints it
//
// SPDX-License-Identifier: MIT

// Before anything that would fail for the same reason in other words. The include that there is not
// ends the compilation with that one sentence.
#if defined(_WIN32)
#error "llmbench runs on Linux and macOS: on Windows compile and run it inside WSL"
#include <llmbench stops here>
#elif __cplusplus < 202002L
#error "llmbench needs C++20: compile with -std=c++20 or newer"
#include <llmbench stops here>
#elif !defined(__cpp_exceptions)
#error "llmbench needs exceptions, by which gates are refused: compile without -fno-exceptions"
#include <llmbench stops here>
#elif defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ == 1)
#error "llmbench needs infinity and NaN, which failed requests count as: compile without -Ofast, \
-ffast-math and -ffinite-math-only, or with -fno-finite-math-only after them"
#include <llmbench stops here>
#endif
#ifdef LLMBENCH_PREBUILT
#undef LLMBENCH_MAIN
#undef LLMBENCH_IMPLEMENT
#undef LLMBENCH_IMPLEMENT_EXTENSIONS
#endif
// Apart, as compilers that list what a file reads list what it asks for, too.
#ifndef LLMBENCH_NO_DOCTEST
#if !__has_include(<doctest/doctest.h>)
#error "llmbench needs doctest (apt-get install doctest-dev, brew install doctest), or the option \
-I with the folder that has doctest/doctest.h"
#include <llmbench stops here>
#endif
#endif
#if defined(LLMBENCH_IMPLEMENT) || defined(LLMBENCH_MAIN) || defined(LLMBENCH_IMPLEMENT_EXTENSIONS)
#if !__has_include(<picojson.h>)
#error "llmbench's implementation needs picojson (apt-get install picojson-dev), or the option -I \
with the folder that has picojson.h"
#include <llmbench stops here>
#endif
#if !defined(__linux__)
#if !__has_include(<asio.hpp>)
#error "llmbench's implementation needs asio without Boost (brew install asio), or the option -I \
with the folder that has asio.hpp"
#include <llmbench stops here>
#endif
#endif
#endif

// Outside the include guard, so that a later #define still works in a file that was given the
// header before.
#ifdef LLMBENCH_MAIN
#ifndef LLMBENCH_IMPLEMENT
#define LLMBENCH_IMPLEMENT
#endif
#ifndef DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_IMPLEMENT
#endif
#endif
// Parts two and three are inline, but for the bodies of what part one declares.
#ifndef LLMBENCH_IMPLEMENT
#ifdef LLMBENCH_IMPLEMENT_EXTENSIONS
#define LLMBENCH_NO_BODIES
#endif
#elif !defined(LLMBENCH_IMPLEMENT_EXTENSIONS)
#define LLMBENCH_IMPLEMENT_EXTENSIONS
#endif

#ifndef LLMBENCH_HPP
#define LLMBENCH_HPP
#include "api/version.hpp"
#include "api/doctest.hpp"
#include "api/linking.hpp"
#include "api/text.hpp"
#include "api/units.hpp"
#include "api/metrics.hpp"
#include "api/own_metrics.hpp"
#include "api/slo.hpp"
#include "api/presets.hpp"
#include "api/traffic.hpp"
#include "api/own_api.hpp"
#include "api/target.hpp"
#include "api/workload.hpp"
#include "api/scenario.hpp"
#include "api/result.hpp"
#include "api/verbs.hpp"
#endif  // LLMBENCH_HPP

// ===== the implementation: LINES lines, compiled where LLMBENCH_MAIN is =====

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_CORE)
#define LLMBENCH_CORE
#include "core/wire/url.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/measured/request_log.hpp"
#include "core/judging/judge.hpp"
#include "core/planning/planning.hpp"
#include "core/stored/stored.hpp"
#include "core/reports/console.hpp"
#include "core/reports/result_json.hpp"
#include "core/reports/page/page.hpp"
#endif  // LLMBENCH_CORE

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_IMPLEMENTED)
#define LLMBENCH_IMPLEMENTED
#include "core/bodies/values.hpp"
#include "core/bodies/result.hpp"
#include "effects/verbs.hpp"
#include "effects/main.hpp"
#endif  // LLMBENCH_IMPLEMENTED

#if defined(LLMBENCH_MAIN) && !defined(LLMBENCH_MAIN_DEFINED)
#define LLMBENCH_MAIN_DEFINED
#include <doctest/doctest.h>  // again, outside our guard: a late LLMBENCH_MAIN works
namespace llmbench {
inline namespace v1 {
namespace detail {
int doctest_main(int argc, char** argv);
}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
int main(int argc, char** argv) { return llmbench::detail::doctest_main(argc, argv); }
#endif  // LLMBENCH_MAIN
