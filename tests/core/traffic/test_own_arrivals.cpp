// Mixes whose parts each have arrivals of their own: when they are sent, and what is refused.
#include "llmbench.hpp"
#include "core/planning/planning.hpp"
#include "core/planning/plan_text.hpp"
#include "core/traffic/expected.hpp"
#include "core/traffic/load_conditions.hpp"
#include "core/traffic/trace_hash.hpp"
#include "support/texts.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using texts::holds;

namespace {

const mix_of_parts both = mix({{.name = "chat", .arrivals = poisson(4_rps)},
                               {.name = "batch", .arrivals = closed_loop(32)}});
scenario load_of(const mix_of_parts& m, const slo_list& slos = {}) {
    return {.workload = m, .duration = 120_s, .slos = slos};
}
std::string refusal_of(const scenario& s) {
    return texts::refusal_of([&] { planned(s, 1); });
}
std::string refusal_of(const part& p) {
    return refusal_of(load_of(mix({p, {.name = "other", .arrivals = closed_loop(1)}})));
}
std::vector<double> starts_of(const schedule& s, std::size_t which, std::size_t of) {
    std::vector<double> at;
    for (std::size_t i = 0; i < s.at.size(); ++i)
        if (s.begins[i] % of == which) at.push_back(s.at[i]);
    return at;
}

}  // namespace

TEST_CASE("an open part is sent by its plan beside the users of another, and both begin together") {
    const plan p = planned(load_of(both), 1);
    CHECK(users_of(*p.sent) == 32);
    CHECK(lead_seconds(*p.sent) == 5);  // 20 requests of the open part
    CHECK(expected_seconds(*p.sent) == 125);
    const schedule s = schedule_of(*p.sent);
    CHECK(s.measured_from == 5);
    CHECK(std::is_sorted(s.at.begin(), s.at.end()));
    REQUIRE(s.at.size() == 500);
    for (std::size_t i = 0; i < s.at.size(); ++i) CHECK(s.begins[i] == 2 * i);
    CHECK(std::count_if(s.at.begin(), s.at.end(), [](double t) { return t >= 5; }) == 480);
    CHECK(s.at.back() < 125);
    CHECK(part_of(*p.sent, 7).which == 1);
    CHECK(part_of(*p.sent, 7).conversation == 3);
    CHECK(user_of(*p.sent, 5).which == 1);
    // How much users send is up to the server.
    CHECK(expected_requests(*p.sent) == 0);
    const auto kinds = expected_kinds(*p.sent);
    CHECK(selected_of(kinds, p.sent->labels, label("chat")) == 480);
    CHECK(selected_of(kinds, p.sent->labels, label("batch")) == 0);
    CHECK(holds(plan_text(p), "of each part: poisson(4 req/s), closed_loop(32 users), 120 s after "
                              "5 s of warm-up, mix of \"chat\" (poisson(4 req/s)): synthetic"));
    const load_conditions under = load_conditions_of(p);
    REQUIRE(under.parts.size() == 2);
    CHECK(under.parts[0].arrival_cv2 == 1);
    CHECK(std::isnan(under.parts[1].arrival_cv2));
    CHECK(under.parts[1].saturates);
}

TEST_CASE("open parts go beside each other, each with its own gaps, its own warm-up and its rate") {
    const auto of = [](double rate) {
        return planned(load_of(mix({{.name = "even", .arrivals = constant(request_rate(rate))},
                                    {.name = "random", .arrivals = poisson(2_rps)},
                                    {.name = "again", .workload = conversations{.turns = fixed(3)},
                                     .arrivals = poisson(2_rps)}})), 1);
    };
    const plan p = of(1);
    const schedule s = schedule_of(*p.sent);
    CHECK(s.measured_from == 4);  // 20 requests at 5 a second
    const std::vector<double> even = starts_of(s, 0, 3), random = starts_of(s, 1, 3),
                              again = starts_of(s, 2, 3);
    REQUIRE(even.size() == 124);
    for (std::size_t i = 0; i < even.size(); ++i)
        CHECK(even[i] == doctest::Approx(static_cast<double>(i)));
    CHECK(random.size() == 248);
    CHECK(random != again);
    CHECK(expected_requests(*p.sent) == 120 + 240 + 3 * 240);
    CHECK(selected_of(expected_kinds(*p.sent), p.sent->labels, label("again") && turns(2)) == 480);
    // A part's requests stay what they are, whatever another's rate is.
    const plan faster = of(3);
    CHECK(starts_of(schedule_of(*faster.sent), 1, 3).size() > 240);
    CHECK(trace_hash(*p.sent) != trace_hash(*faster.sent));
    CHECK(trace_hash(*p.sent) != trace_hash(*planned(load_of(both), 1).sent));
}

TEST_CASE("users of several parts warm up by a number of requests, or by a time") {
    const mix_of_parts users = mix({{.name = "a", .arrivals = closed_loop(3).ramp(2_s)},
                                    {.name = "b", .arrivals = closed_loop(2)}});
    scenario s = load_of(users);
    const plan counted = planned(s, 1);
    CHECK_FALSE(counted.sent->is_open_loop());
    CHECK(counted.sent->warmup_requests == 20);
    CHECK(users_of(*counted.sent) == 5);
    CHECK(lead_seconds(*counted.sent) == 2);  // nothing is measured before all users are there
    CHECK(user_of(*counted.sent, 2).begins_s() == doctest::Approx(4.0 / 3));
    CHECK(user_of(*counted.sent, 4).which == 1);
    CHECK(user_of(*counted.sent, 4).begins_s() == 0);
    s.warmup = 6_s;
    CHECK(lead_seconds(*planned(s, 1).sent) == 6);
    CHECK(refusal_of(load_of(users, {output_throughput >= 1_tps})) == "");
}

TEST_CASE("throughputs are of the parts that saturate, and latencies of those with enough") {
    const auto of = [](const slo& s) { return refusal_of(load_of(both, {s})); };
    CHECK(of(p99(itl).of("chat") <= 80_ms) == "");
    CHECK(of(llmbench::of(output_throughput, "batch") >= 900_tps) == "");
    CHECK(holds(of(output_throughput >= 900_tps), "or the throughput of batch"));
    CHECK(holds(of(llmbench::of(output_throughput, "chat") >= 9_tps), "or the throughput of batch"));
    CHECK(of(p99(ttft).of("chat") <= 1_s) == "");
    CHECK(of(p99(ttft) <= 1_s) == "");
    CHECK(holds(of(p999(ttft).of("chat") <= 1_s),
                "needs at least 3000 measured requests a repeat so that three lie beyond it, and "
                "the scenario has 480; about 750 s would do"));
}

TEST_CASE("arrivals of parts that do not go together are refused") {
    CHECK(refusal_of(load_of(both)) == "");
    scenario s = load_of(both);
    s.duration = 0_s;
    CHECK(holds(refusal_of(s), "set .duration, and no .requests"));
    s = load_of(both);
    s.requests = 100;
    CHECK(holds(refusal_of(s), "set .duration, and no .requests"));
    s = load_of(both);
    s.arrivals = closed_loop(1);
    CHECK(holds(refusal_of(s), "arrivals is closed_loop(1 users), and the parts of the mix have"));
    s = load_of(both);
    s.warmup = until_stable(60_s);
    CHECK(holds(refusal_of(s), "warmup is until_stable, and the parts of the mix have arrivals"));
    CHECK(holds(refusal_of(part{.name = "x"}),
                "part \"other\" of the mix: it has arrivals of its own and the first part has none"));
    CHECK(holds(refusal_of(part{.name = "x", .weight = 2, .arrivals = poisson(1_rps)}),
                "part \"x\" of the mix: weight is 2, and it has arrivals of its own"));
    CHECK(holds(refusal_of(part{.name = "x", .arrivals = poisson(up_to(8_rps))}),
                "part \"x\" of the mix: arrivals is poisson(up to 8 req/s): a load is searched as a "
                "whole"));
    CHECK(holds(refusal_of(part{.name = "x", .arrivals = all_at_once()}), "a batch is a number of"));
    CHECK(holds(refusal_of(part{.name = "x", .arrivals = poisson(1_rps).max_in_flight(3)}),
                "max_in_flight is of a load as a whole"));
    CHECK(holds(refusal_of(part{.name = "x", .arrivals = poisson(0_rps)}),
                "part \"x\" of the mix: arrivals is poisson(0 req/s): the rate must be"));
    CHECK(holds(refusal_of(part{.name = "x", .arrivals = closed_loop(100000)}),
                "100001 users together: 100000 are allowed"));
}

TEST_CASE("another workload as the baseline's is sent at the same times, part by part") {
    scenario s = load_of(both, {p50(ttft).of("chat") <= 1.1 * baseline});
    s.baseline = otherwise{.workload = mix({{.name = "chat", .arrivals = poisson(4_rps)},
                                            {.name = "rest", .arrivals = closed_loop(32)}})};
    CHECK(refusal_of(s) == "");
    s.baseline = otherwise{.workload = mix({{.name = "chat", .arrivals = poisson(4_rps)},
                                            {.name = "rest", .arrivals = closed_loop(8)}})};
    CHECK(holds(refusal_of(s), "both arms are sent at the same times"));
    s.baseline = otherwise{.workload = synthetic{.prompt_tokens = fixed(9)}};
    CHECK(holds(refusal_of(s), "both arms are sent at the same times"));
    s.baseline = otherwise{.model = "old"};
    CHECK(refusal_of(s) == "");
}
