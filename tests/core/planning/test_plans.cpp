// Plans: what a scenario leaves out, and what a plan expects of a run.
#include "llmbench.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/planning.hpp"
#include "support/scenarios.hpp"

#include <cmath>
#include <utility>
#include <variant>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;
using doctest::Approx;

// ---- defaults ----------------------------------------------------------------------------------

TEST_CASE("a plan fills in the defaults") {
    const plan p = planned({.requests = 300}, 77);
    CHECK(p.sent->arrivals.kind == arrival_kind::closed_loop);
    CHECK(p.sent->arrivals.users == 1);
    CHECK_FALSE(p.sent->is_open_loop());
    CHECK(p.sent->warmup_requests == 20);
    CHECK(p.sent->warmup_s == 0);
    CHECK(p.sent->requests == 300);
    CHECK(p.sent->duration_s == 0);
    CHECK(p.sent->seed == 77);
    CHECK_FALSE(p.judged->has_baseline);
    CHECK(p.judged->slos.empty());
    const synthetic& made = dynamic_cast<const synthetic_prompts&>(*p.sent->source).said;
    CHECK(length_text(made.prompt_tokens) == "lognormal(512, 0.6)");
    CHECK(length_text(made.output_tokens) == "128");
    CHECK(length_text(made.shared_prefix) == "0");
    CHECK(p.sent->forces_length);
    CHECK(p.sent->common.max_tokens == 0);
    CHECK(std::isnan(p.sent->common.temperature));
    CHECK(p.sent->common.system_prompt == "");
    CHECK(p.sent->common.extra_fields == "");
    CHECK(p.sent->limits.connect.seconds() == 5);
    CHECK(p.sent->limits.total.seconds() == 300);
}

TEST_CASE("a plan takes over what the scenario says") {
    const plan p = planned({.arrivals = gamma(8_rps, 0.5).max_in_flight(64),
                            .warmup = 10_s,
                            .requests = 300,
                            .duration = 60_s,
                            .slos = {p90(ttft) <= 300_ms, error_rate <= 2_pct},
                            .seed = 5,
                            .limits = {.connect = 2_s},
                            .options = {.temperature = 0.7, .system_prompt = "be brief"},
                            .client = {.spin = true}},
                           77);
    CHECK(p.sent->is_open_loop());
    CHECK(p.sent->arrivals.max_in_flight == 64);
    CHECK(p.sent->warmup_requests == 0);
    CHECK(p.sent->warmup_s == 10);
    CHECK(p.sent->duration_s == 60);
    CHECK(p.sent->seed == 5);
    REQUIRE(p.judged->slos.size() == 2);
    CHECK(str(p.judged->slos[1].text()) == "error_rate <= 2 %");
    CHECK(p.sent->limits.connect.seconds() == 2);
    CHECK(drain_s(*p.sent) == 60);
    CHECK(p.sent->common.temperature == 0.7);
    CHECK(p.sent->common.system_prompt == "be brief");
    CHECK(p.sent->client.spin);
}

TEST_CASE("repeats are as many as a verdict takes, or as many as were asked for") {
    const auto repeats = [](scenario s) {
        const plan p = planned(s, 1);
        return std::pair(p.judged->first_repeats, p.judged->max_repeats);
    };
    scenario s = sound();
    CHECK(repeats(s).second == 3);  // nothing to decide
    s.slos = {p90(ttft) <= 300_ms};
    CHECK(repeats(s) == std::pair(2, 5));
    s.repeats = 4;
    CHECK(repeats(s) == std::pair(2, 4));
    s.repeats = 0;
    s.baseline = endpoint{.url = "http://h"};
    CHECK(repeats(s) == std::pair(4, 8));
    s.repeats = 6;
    CHECK(repeats(s) == std::pair(4, 6));
    s = sound();
    s.repeats = 1;  // enough to look at, where nothing is judged
    CHECK(repeats(s).second == 1);
}

// ---- what a plan expects -----------------------------------------------------------------------

TEST_CASE("a plan says how many requests it will measure, where it can") {
    const auto expected = [](const scenario& s) { return expected_requests(planned(s, 1)); };
    CHECK(expected({.arrivals = poisson(8_rps), .requests = 300}) == 300);
    CHECK(expected({.arrivals = poisson(8_rps), .duration = 30_s}) == 240);
    CHECK(expected({.arrivals = poisson(8_rps), .requests = 100, .duration = 30_s}) == 100);
    CHECK(expected({.arrivals = ramp(0.5_rps, 1.5_rps, 100_s), .duration = 100_s}) == 100);
    CHECK(expected({.arrivals = steps({{8_rps, 10_s}, {4_rps, 5_s}})}) == 100);
    CHECK(expected({.arrivals = all_at_once(), .requests = 300}) == 300);
    CHECK(expected({.arrivals = closed_loop(4), .requests = 300}) == 300);
    CHECK(expected({.arrivals = closed_loop(4), .duration = 30_s}) == 0);
    CHECK(expected({.arrivals = closed_loop(4), .requests = 300, .duration = 30_s}) == 0);
}

TEST_CASE("a plan says how long a repeat will take at least, where it can") {
    const auto seconds = [](const scenario& s) { return expected_seconds(planned(s, 1)); };
    CHECK(seconds({.arrivals = poisson(8_rps), .warmup = 20, .requests = 300}) == Approx(40));
    CHECK(seconds({.arrivals = constant(8_rps), .warmup = 5_s, .duration = 30_s}) == Approx(35));
    CHECK(seconds({.arrivals = steps({{8_rps, 10_s}}), .warmup = 0}) == Approx(10));
    CHECK(seconds({.arrivals = closed_loop(4), .duration = 30_s}) == 30);
    CHECK(seconds({.arrivals = closed_loop(4), .warmup = 10_s, .duration = 30_s}) == 40);
    CHECK(seconds({.arrivals = closed_loop(4).ramp(60_s), .duration = 30_s}) == 90);
    CHECK(seconds({.arrivals = closed_loop(4).ramp(60_s), .warmup = 70_s, .duration = 9_s}) == 79);
    CHECK(seconds({.arrivals = closed_loop(4).ramp(60_s), .requests = 300}) == 0);
    CHECK(seconds({.arrivals = all_at_once(), .requests = 300}) == 0);
}

TEST_CASE("a load describes itself") {
    CHECK(arrival_text(constant(8_rps).data()) == "constant(8 req/s)");
    CHECK(arrival_text(poisson(0.5_rps).max_in_flight(64).data()) ==
          "poisson(0.5 req/s), at most 64 in flight");
    CHECK(arrival_text(gamma(8_rps, 0.5).data()) == "gamma(8 req/s, burstiness 0.5)");
    CHECK(arrival_text(ramp(1_rps, 8_rps, 60_s).data()) == "ramp(1 to 8 req/s over 60 s)");
    CHECK(arrival_text(steps({{1_rps, 10_s}, {8_rps, 20_s}}).data()) ==
          "steps(1 req/s for 10 s, 8 req/s for 20 s)");
    CHECK(arrival_text(all_at_once().data()) == "all_at_once");
    CHECK(arrival_text(closed_loop(16).data()) == "closed_loop(16 users)");
    CHECK(arrival_text(closed_loop(16).think(2_s).ramp(10_s).data()) ==
          "closed_loop(16 users, think 2 s, ramp 10 s)");
}

TEST_CASE("a workload describes itself") {
    const auto described = [](const any_workload& w) {
        return planned({.workload = w, .requests = 30}, 1).sent->workload_text;
    };
    CHECK(described({}) == "synthetic, prompt lognormal(512, 0.6) tokens, output 128 tokens");
    CHECK(described(synthetic{.prompt_tokens = uniform(10, 20),
                              .output_tokens = normal(64, 8),
                              .shared_prefix = 256}) ==
          "synthetic, prompt uniform(10, 20) tokens, output normal(64, 8) tokens, shared prefix "
          "256 tokens");
    CHECK(described(prompts({"one", "two"})) == "2 prompts");
}

TEST_CASE("lengths of answers that are not forced are the most that is asked for") {
    const auto forced = [](const any_workload& w, bool ignore_eos = false) {
        const plan p = planned(
            {.workload = w, .requests = 30, .options = {.ignore_eos = ignore_eos}}, 1);
        const bool says_most = p.sent->workload_text.find(" at most 24") != std::string::npos;
        const request_spec r = request_of(p, run_variant::candidate, 0, 0);
        CHECK(r.max_tokens == 24);
        CHECK(r.force_length == p.sent->forces_length);
        CHECK(says_most == !p.sent->forces_length);
        CHECK((forced_tokens(p, 0) == 24) == p.sent->forces_length);
        return p.sent->forces_length;
    };
    CHECK(forced(synthetic{.output_tokens = fixed(24)}));
    CHECK_FALSE(forced(synthetic{.output_tokens = fixed(24), .force_output = false}));
    CHECK(forced(synthetic{.output_tokens = fixed(24), .force_output = false}, true));
    CHECK(forced(conversations{.output_tokens = fixed(24)}));
    CHECK_FALSE(forced(conversations{.output_tokens = fixed(24), .force_output = false}));
}

TEST_CASE("a time budget that no repeat fits into is not spent") {
    CHECK(budget_text(5, 4.9, 15, 0, 5, "repeat") ==
          "LLMBENCH_TIME_BUDGET of 5 s has 4.9 s left, and a repeat takes 15 s or more: none of 5 "
          "was measured");
    CHECK(budget_text(5, -1, 15, 0, 5, "repeat") ==
          "LLMBENCH_TIME_BUDGET of 5 s is spent after 0 of 5 repeats");
    CHECK(budget_text(5, 0.5, 2, 2, 5, "repeat") ==
          "LLMBENCH_TIME_BUDGET of 5 s is spent after 2 of 5 repeats");
}
