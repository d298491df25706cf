// from verdicts to an exit code
#pragma once

#include "api/result.hpp"

#include <algorithm>  // any_of, find_if
#include <iterator>  // begin, end

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How a gate ended. The first value is the initial one, so that an escaped exception is not a
/// pass.
enum class gate_outcome : unsigned char { unfinished, passed, failed, refused, invalid, skipped };

inline int exit_code_of(gate_outcome o) {
    switch (o) {
    case gate_outcome::passed: return 0;
    case gate_outcome::failed: return 1;
    case gate_outcome::refused: return 2;
    case gate_outcome::skipped: return 77;
    case gate_outcome::unfinished:
    case gate_outcome::invalid: break;
    }
    return 3;
}
inline const char* to_string(gate_outcome o) {
    switch (o) {
    case gate_outcome::passed: return "passed";
    case gate_outcome::failed: return "failed";
    case gate_outcome::refused: return "refused";
    case gate_outcome::skipped: return "skipped";
    case gate_outcome::unfinished:
    case gate_outcome::invalid: break;
    }
    return "invalid";
}
/// In order of importance to a reader.
inline constexpr gate_outcome worst_first[] = {
    gate_outcome::failed,  gate_outcome::refused, gate_outcome::unfinished,
    gate_outcome::invalid, gate_outcome::skipped, gate_outcome::passed};

inline gate_outcome worse_of(gate_outcome a, gate_outcome b) {
    return *std::find_if(std::begin(worst_first), std::end(worst_first),
                         [&](gate_outcome o) { return o == a || o == b; });
}

enum class inconclusive_means : unsigned char { warn, fail, skip };

/// The verdict whose colour reports use for an outcome.
inline verdict verdict_like(gate_outcome o) {
    switch (o) {
    case gate_outcome::passed: return verdict::pass;
    case gate_outcome::failed: return verdict::fail;
    case gate_outcome::skipped: return verdict::skipped;
    default: return verdict::invalid;
    }
}

/// Whether a counting objective is missed. `Verdicts`: decisions or verdicts.
template <class Verdicts>
bool shows_a_miss(const Verdicts& verdicts) {
    return std::any_of(verdicts.begin(), verdicts.end(), [](const verdict_numbers& v) {
        return !v.what.is_advisory && v.outcome == verdict::fail;
    });
}

/// The worst verdict, without advisory ones.
template <class Verdicts>
gate_outcome outcome_of(const Verdicts& verdicts, inconclusive_means policy) {
    bool fail = false, invalid = false, skip = false;
    for (const verdict_numbers& v : verdicts) {
        if (v.what.is_advisory) continue;
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
}  // inline namespace v0
}  // namespace llmbench
