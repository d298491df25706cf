// A load that is searched: what is refused, the plan of one probe, and which load is next.
#include "llmbench.hpp"
#include "core/traffic/requests.hpp"
#include "extensions/capacity/api.hpp"
#include "extensions/capacity/core/searched.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/planning.hpp"
#include "program/slo_text.hpp"

#include "support/texts.hpp"

#include <cmath>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

scenario searched(const slo_list& slos) {
    return {.workload = synthetic{}, .arrivals = poisson(up_to(64_rps)), .slos = slos};
}
scenario of_users(const slo_list& slos) {
    scenario s = searched(slos);
    s.arrivals = closed_loop(up_to(256)).think(2_s);
    return s;
}
std::string refused(const scenario& s, scenario_use use = scenario_use::gate) {
    return texts::refusal_of([&] { planned(s, 1, {}, use); });
}
plan gate_plan(const scenario& s) { return planned(s, 1, {}, scenario_use::gate); }
plan search_plan(const scenario& s) { return planned(s, 1, {}, scenario_use::find_capacity); }

repeat_data answered_after(double seconds, int requests) {
    repeat_data d;
    for (int i = 0; i < requests; ++i) {
        record r;
        r.scheduled_ns = 1000000000ll * (i + 1);
        r.end_ns = r.scheduled_ns + static_cast<long long>(seconds * 1e9);
        r.status = i == 0 ? request_status::timeout : request_status::ok;
        d.records.push_back(r);
    }
    return d;
}

}  // namespace

TEST_CASE("what a load must hold and the capacity are kept apart") {
    const plan p =
        gate_plan(searched({p90(ttft) <= 500_ms, capacity >= 12_rps, advisory(mean(tpot) <= 40_ms),
                            advisory(capacity >= 20_rps)}));
    REQUIRE(p.judged->slos.size() == 2);
    REQUIRE(p.judged->search.objectives_held.size() == 2);
    CHECK(p.searches());
    CHECK(!p.judged->search.to_the_interval);
    CHECK(p.judged->search.asked == vector<double>{12, 20});
    CHECK(repeats_text(p) == "2 to 5 probes at 12 req/s and at 20 req/s");
    CHECK(arrival_text(p.sent->arrivals) == "poisson(up to 64 req/s)");
    CHECK(p.judged->slos[0].text().c_str() == std::string("capacity >= 12 req/s"));
}

TEST_CASE("loads of objectives that count are decided first") {
    const plan p = gate_plan(
        searched({advisory(capacity >= 20_rps), capacity >= 12_rps, p90(ttft) <= 500_ms}));
    CHECK(p.judged->search.asked == vector<double>{12, 20});
}

TEST_CASE("a false fail is shared among what one load can miss") {
    const plan one = gate_plan(searched({p90(ttft) <= 500_ms, capacity >= 12_rps}));
    const plan two =
        gate_plan(searched({p90(ttft) <= 500_ms, mean(tpot) <= 40_ms, capacity >= 12_rps}));
    // The guard on errors is the other.
    CHECK(one.judged->rule.fail_level == doctest::Approx(0.01 / 2));
    CHECK(two.judged->rule.fail_level == doctest::Approx(0.01 / 3));
    CHECK(two.judged->rule.pass_level == 0.05);
    const plan found = search_plan(searched({p90(ttft) <= 500_ms}));
    CHECK(found.judged->rule.pass_level == 0.025);
    CHECK(found.judged->rule.fail_level == doctest::Approx(0.025 / 2));
    CHECK(found.judged->max_repeats == 16);
    CHECK(repeats_text(found) == "at most 16 probes");
}

TEST_CASE("nonsense is refused in a sentence") {
    const std::pair<scenario, const char*> cases[] = {
        {searched({capacity >= 12_rps}),
         "arrivals is poisson(up to 64 req/s): the objectives must say what a load has to keep, as "
         "in {p90(ttft) <= 500_ms, capacity >= 12_rps}"},
        {searched({p90(ttft) <= 500_ms}),
         "arrivals is poisson(up to 64 req/s): a gate needs an objective that decides it, capacity "
         ">= 12_rps for one; find_capacity() only measures"},
        {searched({p90(ttft) <= 500_ms, capacity >= 12_users}),
         "the SLO capacity >= 12 users is refused: arrivals is poisson(up to 64 req/s), whose "
         "capacity is a rate: write 12_rps"},
        {of_users({p90(ttft) <= 500_ms, capacity >= 12_rps}),
         "the SLO capacity >= 12 req/s is refused: arrivals is closed_loop(up to 256 users, think "
         "2 s), whose capacity is a number of users: write 12_users"},
        {of_users({p90(ttft) <= 500_ms, capacity >= user_count(12.5)}),
         "the SLO capacity >= 12.5 users is refused: users are whole"},
        {searched({p90(ttft) <= 500_ms, capacity >= 65_rps}),
         "the SLO capacity >= 65 req/s is refused: arrivals is poisson(up to 64 req/s): more than "
         "that is not tried"},
        {searched({p90(ttft) <= 500_ms, capacity >= 0_rps}),
         "the SLO capacity >= 0 req/s is refused: the limit must be above zero"},
        {searched({p90(ttft) <= 500_ms, parse_slo("capacity >= 0.95 * baseline")}),
         "the SLO capacity >= 0.95 * baseline is refused: a capacity is held against a load, as in "
         "capacity >= 12_rps: write the one that find_capacity() finds of the baseline"},
        {searched({p90(ttft) <= 1.1 * baseline, capacity >= 12_rps}),
         "the SLO p90(ttft) <= 1.1 * baseline is refused: what a load must hold has limits of its "
         "own"},
        {of_users({output_throughput >= 400_tps, capacity >= 12_users}),
         "the SLO output_throughput >= 400 tok/s is refused: a throughput rises with the load, and "
         "cannot be what the load must hold"},
        {searched({startup_time <= 30_s, capacity >= 12_rps}),
         "the SLO startup_time <= 30 s is refused: a start has nothing to do with the load"},
        {searched({advisory(p90(ttft) <= 500_ms), capacity >= 12_rps}),
         "arrivals is poisson(up to 64 req/s): the objectives must say what a load has to keep, as "
         "in {p90(ttft) <= 500_ms, capacity >= 12_rps}"},
    };
    for (const auto& [s, sentence] : cases) CHECK(refused(s) == sentence);

    scenario plain = searched({p90(ttft) <= 500_ms, capacity >= 12_rps});
    plain.arrivals = poisson(8_rps);
    plain.requests = 100;
    CHECK(refused(plain) ==
          "the SLO capacity >= 12 req/s is refused: arrivals is poisson(8 req/s), one load: a "
          "capacity is that of a load of up_to(...): poisson(up_to(64_rps)), for one");
    plain.slos = {p90(ttft) <= 500_ms};
    CHECK(refused(plain, scenario_use::find_capacity) ==
          "arrivals is poisson(8 req/s), one load: find_capacity searches a load of up_to(...): "
          "poisson(up_to(64_rps)), for one");

    scenario s = searched({p90(ttft) <= 500_ms, capacity >= 12_rps});
    CHECK(refused(s, scenario_use::measure) ==
          "arrivals is poisson(up to 64 req/s): run() measures one load, use find_capacity() or a "
          "gate()");
    s.repeats = 3;
    CHECK(refused(s).empty());
    s.repeats = 9;
    CHECK(gate_plan(s).judged->rule.analyses == 8);
    CHECK(refused(s, scenario_use::find_capacity) ==
          "arrivals is poisson(up to 64 req/s): repeats is 9: a search takes as many probes as it "
          "needs");
    s.repeats = 0;
    s.baseline = stored("x.json");
    CHECK(refused(s) == "arrivals is poisson(up to 64 req/s): the scenario has a baseline, and a "
                        "capacity is held against none");
    s = searched({p90(ttft) <= 500_ms, capacity >= 12_rps});
    s.arrivals = poisson(up_to(64_rps)).max_in_flight(4);
    CHECK(refused(s) ==
          "arrivals is poisson(up to 64 req/s), at most 4 in flight: with so many in flight at "
          "most, a load above that never reaches the server: leave max_in_flight out");
    s.arrivals = poisson(up_to(0_rps));
    CHECK(refused(s) == "arrivals is poisson(up to 0 req/s): the rate must be above 0 and at most "
                        "1000000 requests/s");
    s.arrivals = closed_loop(up_to(0));
    CHECK(refused(s) == "arrivals is closed_loop(up to 0 users): users is 0: it runs from 1 to 100000");
}

TEST_CASE("a probe is as long as answers need") {
    plan p = gate_plan(searched({p90(ttft) <= 500_ms, capacity >= 12_rps}));
    CHECK(probe_seconds(p, 10, 0) == 20);          // the default
    CHECK(probe_seconds(p, 10, 8) == 32);          // four answers
    CHECK(probe_seconds(p, 2, 0) == 50);           // 100 requests
    CHECK(probe_seconds(p, 0.5, 0) == 200);        // below one request/s as well
    p = gate_plan(of_users({p90(ttft) <= 500_ms, capacity >= 12_users}));
    CHECK(probe_seconds(p, 12, 1) == 25);          // 100 requests of 12 users, one each 3 s
    CHECK(probe_seconds(p, 12, 10) == 100);
    scenario s = searched({p99(ttft) <= 500_ms, capacity >= 12_rps});
    s.requests = 60;
    CHECK(planned(s, 1, {}, scenario_use::gate).sent->requests == 300);  // a p99 needs so many
}

TEST_CASE("a probe of a gate has as many requests as the variation of their lengths asks") {
    scenario s = searched({p90(ttft) <= 500_ms, capacity >= 12_rps});
    const auto requests = [&](length_distribution prompt, length_distribution output) {
        s.workload = synthetic{.prompt_tokens = prompt, .output_tokens = output};
        return gate_plan(s).sent->requests;
    };
    CHECK(requests(fixed(512), fixed(64)) == 100);
    CHECK(requests(fixed(16), uniform(32, 96)) == 100);  // 9 % is enough
    const double cv2 = std::exp(1.0) - 1;                // of the lengths
    CHECK(static_cast<double>(requests(fixed(1), lognormal(64, 1))) ==
          doctest::Approx(cv2 / (0.03 * 0.03)).epsilon(0.15));
    CHECK(requests(lognormal(512, 1), fixed(1)) > 1000);  // answers of a token: the prompt is the work
    CHECK(requests(lognormal(512, 0.6), fixed(512)) == 100);
    // What the gate says itself is kept, and the verdict may be open; a search does not ask it.
    s.workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = lognormal(64, 1)};
    CHECK(search_plan(searched({p90(ttft) <= 500_ms})).sent->requests == 100);
    s.requests = 200;
    CHECK(gate_plan(s).sent->requests == 200);
    s.requests = 0;
    s.duration = 60_s;
    CHECK(gate_plan(s).sent->requests == 30);
}

TEST_CASE("the plan of a probe is the scenario at one load, which is on before it is measured") {
    scenario s = searched({p90(ttft) <= 500_ms, capacity >= 12_rps});
    s.duration = 10_s;
    s.requests = 40;
    const plan p = gate_plan(s);
    const plan at = at_load(p, 12, 0);
    CHECK(!at.searches());
    CHECK(at.sent->arrivals.rate == 12);
    CHECK(at.sent->requests == 120);
    CHECK(at.sent->duration_s == 0);
    CHECK(at.sent->warmup_requests == 0);
    CHECK(at.sent->warmup_s == 2.5);
    // The 20 requests that warm up where nothing is said.
    CHECK(at_load(p, 5, 0).sent->warmup_s == 4);
    // An answer, so that the server is full of the load.
    CHECK(at_load(p, 12, 4).sent->warmup_s == 4);
    CHECK(at_load(p, 12, 4).sent->requests == 192);
    const scenario many = of_users({p90(ttft) <= 500_ms, capacity >= 12_users});
    const plan users = at_load(gate_plan(many), 7, 1);
    CHECK(users.sent->arrivals.users == 7);
    CHECK(users.sent->requests == 0);
    CHECK(users.sent->duration_s == doctest::Approx(3 * 100.0 / 7));
}

TEST_CASE("a probe whose users come one after the other begins when the last one has its answer") {
    scenario s = of_users({p90(ttft) <= 500_ms, capacity >= 12_users});
    s.arrivals = closed_loop(up_to(64)).ramp(30_s);
    const plan p = gate_plan(s), at = at_load(p, 12, 7);
    CHECK(at.sent->arrivals.users_ramp_s == 30);
    CHECK(at.sent->warmup_s == 37);
    CHECK(expected_seconds(at) == 37 + at.sent->duration_s);
    CHECK(at_load(p, 12, 0).sent->warmup_s == 35);  // the least that leads up to a probe
}

TEST_CASE("gaps between sends are those of one trace, stretched") {
    scenario s = searched({p90(ttft) <= 500_ms, capacity >= 12_rps});
    s.requests = 100;
    const plan p = gate_plan(s);
    const schedule slow = schedule_of(at_load(p, 5, 0)), fast = schedule_of(at_load(p, 50, 0));
    const auto gap = [](const schedule& x, std::size_t i, double rate) {
        return (x.at[x.warmup + i + 1] - x.at[x.warmup + i]) * rate;
    };
    // What they are scaled by, so that their number takes its time exactly, is of the number.
    const double scale = gap(fast, 0, 50) / gap(slow, 0, 5);
    CHECK(scale == doctest::Approx(1).epsilon(0.2));
    for (std::size_t i = 1; i < 90; ++i)
        CHECK(gap(fast, i, 50) == doctest::Approx(scale * gap(slow, i, 5)).epsilon(1e-6));
}

TEST_CASE("a gate probes at the loads that it names, until they are decided") {
    const plan p = gate_plan(
        searched({p90(ttft) <= 500_ms, capacity >= 12_rps, advisory(capacity >= 20_rps)}));
    vector<probe> probes;
    CHECK(*next_load(p, probes) == 12);
    const auto add = [&](double load, carried shown, bool invalid = false) {
        probes.push_back({.load = load, .invalid = invalid, .shown = shown});
    };
    add(12, carried::open);
    CHECK(*next_load(p, probes) == 12);
    add(12, carried::holds);
    CHECK(*next_load(p, probes) == 20);
    for (int i = 0; i < 4; ++i) add(20, carried::open);
    CHECK(*next_load(p, probes) == 20);
    add(20, carried::open, true);
    CHECK(*next_load(p, probes) == 20);  // what the client spoiled is no probe
    add(20, carried::open);
    CHECK(!next_load(p, probes));
    add(20, carried::open, true);
    add(20, carried::open, true);
    CHECK(!next_load(p, probes));
    CHECK(client_gave_up(probes));
}

TEST_CASE("a search begins far below the most load that it may try") {
    CHECK(*next_load(search_plan(searched({p90(ttft) <= 500_ms})), {}) == 4);
    CHECK(*next_load(search_plan(of_users({p90(ttft) <= 500_ms})), {}) == 16);
    scenario few = of_users({p90(ttft) <= 500_ms});
    few.arrivals = closed_loop(up_to(3_users));
    CHECK(*next_load(search_plan(few), {}) == 1);
    scenario named = searched({p90(ttft) <= 500_ms, capacity >= 12_rps});
    CHECK(*next_load(search_plan(named), {}) == 12);
}

TEST_CASE("the usual answer is that of requests that were answered") {
    CHECK(usual_answer_s(answered_after(2, 9)) == 2);
    CHECK(usual_answer_s(answered_after(2, 1)) == 0);  // the only one failed
}

TEST_CASE("a search sees when conversations outgrow the server") {
    scenario s = searched({mean(tpot) <= 40_ms, capacity >= 12_rps});
    s.workload = conversations{.turns = fixed(4)};
    CHECK(load_conditions_of(gate_plan(s)).arrival_cv2 == 5);
    s.workload = synthetic{};
    CHECK(load_conditions_of(gate_plan(s)).arrival_cv2 == 1);
}
