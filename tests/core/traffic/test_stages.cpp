// Forced tokens, and how unsteady a load is.
#include "llmbench.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/planning.hpp"
#include "support/scenarios.hpp"

#include <cmath>
#include <set>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;
using doctest::Approx;

TEST_CASE("tokens are forced where the request says how many") {
    const plan made = traffic();
    for (const std::size_t i : {std::size_t{0}, std::size_t{7}, std::size_t{299}})
        CHECK(forced_tokens(made, i) == item_of(made, i).output_tokens);

    const auto given = [](bool ignore_eos, int max_tokens) {
        scenario s = sound();
        s.workload = prompts({"one", "two"});
        s.options.ignore_eos = ignore_eos;
        if (max_tokens > 0) s.options.max_tokens = max_tokens;
        return forced_tokens(planned(s, 1), 3);
    };
    CHECK(given(true, 64) == 64);
    CHECK(given(false, 64) == 0);  // an answer may end before its limit
    CHECK(given(true, 0) == 0);
    CHECK(given(false, 0) == 0);
}

TEST_CASE("a steady load says how unsteady its gaps are, any other one that it grows by design or has no rate") {
    CHECK(arrival_cv2_of(constant(8_rps).data()) == 0);
    CHECK(arrival_cv2_of(poisson(8_rps).data()) == 1);
    CHECK(arrival_cv2_of(gamma(8_rps, 0.25).data()) == Approx(4));
    CHECK(arrival_cv2_of(gamma(8_rps, 4).data()) == Approx(0.25));
    for (const arrival_data& a :
         {ramp(8_rps, 16_rps, 60_s).data(), steps({{8_rps, 60_s}}).data(), replay("x").data()})
        CHECK(std::isinf(arrival_cv2_of(a)));
    CHECK(std::isnan(arrival_cv2_of(all_at_once().data())));
    CHECK(std::isnan(arrival_cv2_of(closed_loop(4).data())));
    // What waits in the client for others to end waits as well.
    scenario s = {.workload = synthetic{}, .arrivals = poisson(8_rps).max_in_flight(1000)};
    s.requests = 300;
    CHECK(load_conditions_of(planned(s, 1)).arrival_cv2 == 1);
}
