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
inline namespace v0 {

/// Measures. With `.slos` their verdicts are part of the result, but nothing fails: in a doctest
/// case reports mark them as advisory, elsewhere exit_code() counts them. Throws
/// std::invalid_argument for an unsound scenario, std::runtime_error where the target cannot be
/// brought up; inside a doctest case both become a failed assertion at the caller's line.
result run(const scenario& s, const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// Measures and asserts every SLO: the test case fails where one is missed or cannot be judged.
result gate(const scenario& s, const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// How much load the server carries under the scenario's objectives, whose arrivals are
/// `up_to(...)`: an interval, each end of which is wrong in 2.5 % of the searches at most, from 16
/// probes at most. Objectives on the capacity have their verdicts, and nothing fails; otherwise as
/// run().
capacity_result find_capacity(const scenario& s, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE());

/// Measures two to eight settings of a server on one trace, in turns: each once a round, in four
/// rounds or `.repeats` of them (2 to 12). A process runs for its own turns alone. Every setting
/// is judged by the scenario's objectives, and all are held against each other; nothing fails, as
/// with run(). A setting that cannot be started is invalid, and the others go on. The scenario has
/// no target and no baseline of its own. Throws as run() does.
comparison_result compare(const scenario& s, const types::list<setting>& settings,
                          const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// Measures two to sixteen loads of a server, the lightest first, each as a gate of its own: rates
/// on one trace, stretched, or users of a closed loop. `.arrivals` says of which kind they are, its
/// own load is none of them; rates are Poisson where it says nothing. Nothing fails, as with run().
/// Each load is judged by the objectives, and the capacity lies between those that hold them and
/// those that miss one. With a live baseline there are two curves. Throws as run() does.
///     curve({.workload = synthetic{}, .requests = 200, .slos = {p90(ttft) <= 500_ms}},
///           {2_rps, 4_rps, 8_rps, 16_rps});
curve_result curve(const scenario& s, const types::list<offered_load>& loads,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// The verdict of one SLO on a result.
slo_verdict judge(const result& r, const slo& s);

/// The verdicts on a run that is over, from the records.jsonl that it left and the result.json and
/// events.bin beside it: the same as the run's own, bit for bit. `gate` names one of several. The
/// guard on errors is last. Throws std::invalid_argument where a file or an SLO cannot be used.
types::list<slo_verdict> judge(const types::text& records_file, const slo_list& slos,
                               const types::text& gate = {});

/// Judges result files of other tools, each of which is one repeat of the same load: of vLLM bench
/// serve (JSON, --save-result --save-detailed), SGLang bench_serving (JSONL, --output-details),
/// guidellm 0.8 (benchmarks.json) and AIPerf (profile_export.jsonl with profile_export_aiperf.json
/// beside it, either of which is named). Which tool wrote one is seen from its content. Where a
/// tool defines a metric as we do, its requests' times are ours; what its files do not support is
/// said in a sentence, and the objectives that need it are invalid. Files that are no repeats of
/// each other (the same one twice, parts of one run, other settings, requests left out) make all
/// objectives invalid. Reported and asserted as by gate(), under `name` (default: the test case).
/// Throws std::invalid_argument where a file or an SLO cannot be used: a file of over 1 GiB, one
/// that is cut off, a value that is no time; inside a doctest case that is a failed assertion.
///     judge_files({"run1.json", "run2.json", "run3.json"}, {p90(ttft) <= 300_ms});
result judge_files(const types::list<types::text>& files, const slo_list& slos,
                   const types::text& name = {}, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE());

/// Judges a load that several programs sent, each knows by LLMBENCH_SHARD (such as 2/8, counted
/// from 0) which part is its own and by LLMBENCH_START_AT (seconds since 1970) when all
/// begin: puts the records in their report directories together and judges once. `gate` names one
/// of several. A missing shard, one that is there twice, and one of another run, trace, version,
/// model or time limit is refused by name; a shard that began more than 50 ms late makes all
/// objectives invalid. The guard on errors is last. Reported and asserted as by gate().
///     judge_shards({"shard-0", "shard-1"}, {p90(ttft) <= 300_ms});
result judge_shards(const types::list<types::text>& directories, const slo_list& slos,
                    const types::text& gate = {}, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE());

/// Reads a result.json, to compare runs with each other. Throws
/// std::invalid_argument where the file is none.
past_result read_result(const types::text& file);

/// Exit code for a main of one's own, over all gates so far: 0 passed, 1 missed, 2 refused,
/// 3 invalid, 77 skipped.
int exit_code();

/// Serves the simulated engine alone on 127.0.0.1 until SIGINT or SIGTERM; port 0 takes a free one.
/// Says its URL on standard output. 0 at the end, 1 where the port cannot be had.
int serve_simulated(const engine& e, int port);

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

}  // inline namespace v0
}  // namespace llmbench
