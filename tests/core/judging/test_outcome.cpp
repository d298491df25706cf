// What verdicts make of a gate.
#include "core/base/vector.hpp"
#include "core/judging/outcome.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
slo_verdict verdict_that(verdict v, bool is_advisory = false) {
    slo_verdict x;
    x.outcome = v;
    x.objective.is_advisory = is_advisory;
    return x;
}
}  // namespace

TEST_CASE("a miss is one that is shown, of an objective that counts") {
    CHECK_FALSE(shows_a_miss(vector<slo_verdict>()));
    for (const verdict v : {verdict::pass, verdict::inconclusive, verdict::invalid,
                            verdict::skipped})
        CHECK_FALSE(shows_a_miss(std::vector{verdict_that(v), verdict_that(verdict::fail, true)}));
    CHECK(shows_a_miss(std::vector{verdict_that(verdict::invalid), verdict_that(verdict::fail)}));
}

TEST_CASE("the worst verdict that counts is the gate's, and what is undecided as it is asked for") {
    const auto of = [](vector<slo_verdict> all, inconclusive_means m) {
        return outcome_of(all, m);
    };
    const vector<slo_verdict> undecided{verdict_that(verdict::pass),
                                        verdict_that(verdict::inconclusive)};
    CHECK(of(undecided, inconclusive_means::warn) == gate_outcome::passed);
    CHECK(of(undecided, inconclusive_means::fail) == gate_outcome::failed);
    CHECK(of(undecided, inconclusive_means::skip) == gate_outcome::skipped);
    CHECK_FALSE(shows_a_miss(undecided));
    CHECK(of({verdict_that(verdict::invalid), verdict_that(verdict::fail)},
             inconclusive_means::warn) == gate_outcome::failed);
    CHECK(of({verdict_that(verdict::fail, true)}, inconclusive_means::warn) ==
          gate_outcome::passed);
}
