// objectives on the work of a server
#pragma once

#include "api/metrics.hpp"
#include "api/side_task.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v1 {

/// What a load costs its server, in whole numbers: a counter on the server's metrics page when it
/// is idle after the load, less the same when it was idle before.
enum class work_count : unsigned char {
    server_requests,   ///< finished by the engine
    prefilled_tokens,  ///< of prompts, computed
    cached_tokens,     ///< of prompts, found in the prefix cache
    generated_tokens,  ///< of answers
    engine_steps,      ///< passes of the model
    drafted_tokens,    ///< of speculative decoding
    accepted_tokens,   ///< of these, the drafts that became tokens of answers
    preemptions        ///< requests stopped to make room for others
};
// `preemptions` itself is the metric of llmbench.hpp, of which == makes an objective on work.
using work_count::server_requests;
using work_count::prefilled_tokens;
using work_count::cached_tokens;
using work_count::generated_tokens;
using work_count::engine_steps;
using work_count::drafted_tokens;
using work_count::accepted_tokens;

/// A counter that has no name above, by its name on the page and enough labels to be unique:
/// `counted("vllm:corrupted_requests_total{model_name=\"m\"}") == 0`.
struct server_counter {
    types::text series{};
};
inline server_counter counted(const types::text& series) { return {series}; }

/// What the load should cost, by a model of a prefix cache of blocks: `cached_tokens == expected`,
/// `cached_tokens >= 0.98 * expected`. It knows server_requests, prefilled_tokens, cached_tokens
/// and generated_tokens.
enum class expected_t : unsigned char { expected };
using enum expected_t;
struct part_of_expected {
    double factor = 1;
};
constexpr part_of_expected operator*(double f, expected_t) { return {f}; }
constexpr part_of_expected operator*(fraction f, expected_t) { return {f.value}; }

/// The right side of a comparison: a whole number, what is expected, or the baseline's count. The
/// constructors run in the user's line, so that their default arguments capture it.
struct work_limit {
    enum class source : unsigned char { number, model, baseline } from = source::number;
    long long number = 0;
    double factor = 1;  ///< of what is expected, or of the baseline
    source_line at{};
    template <detail::integer I>
    work_limit(I n, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : number(static_cast<long long>(n)), at{file, line} {}
    work_limit(expected_t, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : from(source::model), at{file, line} {}
    work_limit(part_of_expected p, const char* file = __builtin_FILE(),
               int line = __builtin_LINE())
        : from(source::model), factor(p.factor), at{file, line} {}
    work_limit(baseline_t, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : from(source::baseline), at{file, line} {}
    work_limit(relative_limit r, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : from(source::baseline), factor(r.factor), at{file, line} {}
};

namespace detail {
enum class work_side : unsigned char { equal, at_most, at_least };
/// Defined in this extension's implementation. If it is missing, the linker shows the name.
slo work_objective(work_count count, const types::text& series, work_side side,
                   const work_limit& limit)
    asm("include_llmbench_work_hpp_where_LLMBENCH_MAIN_is");
extern const extension* const include_llmbench_work_hpp_where_LLMBENCH_MAIN_is;
}  // namespace detail

/// The last step of .prepare, after the one that empties the cache: sends the starts that prompts
/// of the load share, one after the other, for one token each. Without it, how many users at once
/// compute a shared start depends on time on servers that cache a prompt when it ends (SGLang).
inline task_step prime() {
    return {.path = "prime()", .by = detail::include_llmbench_work_hpp_where_LLMBENCH_MAIN_is};
}

inline slo operator==(work_count c, const work_limit& l) {
    return detail::work_objective(c, {}, detail::work_side::equal, l);
}
inline slo operator<=(work_count c, const work_limit& l) {
    return detail::work_objective(c, {}, detail::work_side::at_most, l);
}
inline slo operator>=(work_count c, const work_limit& l) {
    return detail::work_objective(c, {}, detail::work_side::at_least, l);
}
inline slo operator==(const server_counter& c, const work_limit& l) {
    return detail::work_objective({}, c.series, detail::work_side::equal, l);
}
inline slo operator<=(const server_counter& c, const work_limit& l) {
    return detail::work_objective({}, c.series, detail::work_side::at_most, l);
}
inline slo operator>=(const server_counter& c, const work_limit& l) {
    return detail::work_objective({}, c.series, detail::work_side::at_least, l);
}
/// `preemptions == 0`. Its first argument alone is exact, so that it is preferred to the deleted
/// == of other metrics.
template <detail::integer I>
slo operator==(server_count, const I& n) {
    return detail::work_objective(work_count::preemptions, {}, detail::work_side::equal, n);
}

}  // inline namespace v1
}  // namespace llmbench
