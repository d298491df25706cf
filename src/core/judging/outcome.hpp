// from verdicts to an exit code
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // find_if
#include <iterator>  // begin, end

namespace llmbench {
inline namespace v1 {
namespace detail {

/// How a gate ended. The first value is the initial one, so that an escaped exception is not a
/// pass.
enum class gate_outcome : unsigned char { unfinished, passed, failed, refused, invalid, skipped };

/// An outcome's exit code and name, and the verdict whose colour reports use for it.
struct outcome_facts {
    gate_outcome is;
    int exit_code;
    const char* name;
    verdict like;
};
/// In order of importance to a reader.
inline constexpr outcome_facts worst_first[] = {
    {gate_outcome::failed, 1, "failed", verdict::fail},
    {gate_outcome::refused, 2, "refused", verdict::invalid},
    {gate_outcome::unfinished, 3, "invalid", verdict::invalid},
    {gate_outcome::invalid, 3, "invalid", verdict::invalid},
    {gate_outcome::skipped, 77, "skipped", verdict::skipped},
    {gate_outcome::passed, 0, "passed", verdict::pass}};

inline const outcome_facts& worse_facts_of(gate_outcome a, gate_outcome b) {
    return *std::find_if(std::begin(worst_first), std::end(worst_first),
                         [&](const outcome_facts& o) { return o.is == a || o.is == b; });
}
inline gate_outcome worse_of(gate_outcome a, gate_outcome b) { return worse_facts_of(a, b).is; }
inline int exit_code_of(gate_outcome o) { return worse_facts_of(o, o).exit_code; }
inline const char* to_string(gate_outcome o) { return worse_facts_of(o, o).name; }
inline verdict verdict_like(gate_outcome o) { return worse_facts_of(o, o).like; }

enum class inconclusive_means : unsigned char { warn, fail, skip };

/// Whether a counting objective is missed. `Verdicts`: decisions or verdicts.
template <class Verdicts>
bool shows_a_miss(const Verdicts& verdicts) {
    return any_of(verdicts, [](const verdict_numbers& v) {
        return !v.objective.is_advisory && v.outcome == verdict::fail;
    });
}

/// The worst verdict, without advisory ones.
template <class Verdicts>
gate_outcome outcome_of(const Verdicts& verdicts, inconclusive_means policy) {
    bool fail = false, invalid = false, skip = false;
    for (const verdict_numbers& v : verdicts) {
        if (v.objective.is_advisory) continue;
        fail |= v.outcome == verdict::fail ||
                (v.outcome == verdict::inconclusive && policy == inconclusive_means::fail);
        invalid |= v.outcome == verdict::invalid;
        skip |= v.outcome == verdict::skipped ||
                (v.outcome == verdict::inconclusive && policy == inconclusive_means::skip);
    }
    return fail      ? gate_outcome::failed
           : invalid ? gate_outcome::invalid
           : skip    ? gate_outcome::skipped
                     : gate_outcome::passed;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
