// Gates that load both variants at the same time, in virtual time.
#include "support/environment.hpp"
#include "support/rejudged.hpp"

#include <map>

using namespace llmbench;
using namespace live;

namespace {

/// Two engines at once, whose tokens take these times.
scenario at_once_with(time_span candidate, time_span base, const char* name) {
    engine mine, other;
    mine.decode_step = candidate;
    other.decode_step = base;
    return {.name = name,
            .target = simulated(mine),
            .baseline = simulated(other),
            .pairs = at_once,
            .workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(16)},
            .arrivals = poisson(4_rps),
            .warmup = 4,
            .duration = 60_s};
}
std::size_t slices_of(const slo_verdict& v) {
    std::size_t n = 0;
    for (const named_values& x : v.inputs)
        if (x.name == types::text("slice_parts")) n = x.values.size();
    return n;
}

}  // namespace

TEST_CASE("both servers get the same load at the same time, each request has a twin") {
    scenario s = at_once_with(10_ms, 10_ms, "equal servers at once");
    s.slos = {mean(tpot) <= 1.05 * baseline, p90(ttft) <= 1.10 * baseline,
              mean(ttft) <= baseline + 1_ms, advisory(mean(tpot) <= 0.95 * baseline)};
    const heard_run heard = heard_of(s);
    const result& r = heard.result;
    REQUIRE(r.verdicts().size() == 5);
    for (std::size_t i = 0; i < 3; ++i) CHECK(r.verdicts()[i].outcome == verdict::pass);
    CHECK(r.verdicts()[3].outcome == verdict::fail);
    CHECK(r.verdicts()[0].repeats == 1);
    CHECK(r.verdicts()[0].decided_by == verdict_method::slices_at_once);
    CHECK(r.verdicts()[0].method == types::text("t of slices at once"));
    CHECK(holds(heard.said, "1 pair at once"));
    std::map<long long, std::map<run_variant, long long>> planned;
    for (const record& x : r.requests()) planned[x.conversation][x.variant] = x.scheduled_ns;
    for (const auto& [index, times] : planned) {
        REQUIRE(times.size() == 2);
        CHECK(times.at(run_variant::candidate) == times.at(run_variant::baseline));
    }
    CHECK(planned.size() > 200);
    check_rejudged(r, s.slos);
}

TEST_CASE("a slower server is shown in one minute, by ratio and by difference") {
    scenario s = at_once_with(11_ms, 10_ms, "ten percent slower at once");
    s.slos = {mean(tpot) <= 1.05 * baseline, mean(tpot) <= baseline + 500_us,
              advisory(mean(tpot) <= baseline + 2_ms), advisory(p50(tpot) <= 1.2 * baseline)};
    const result r = run(s);
    REQUIRE(r.verdicts().size() == 5);
    CHECK(r.verdicts()[0].outcome == verdict::fail);
    CHECK(r.verdicts()[1].outcome == verdict::fail);
    CHECK(r.verdicts()[1].measured == doctest::Approx(0.001).epsilon(0.1));
    CHECK(r.verdicts()[2].outcome == verdict::pass);
    CHECK(r.verdicts()[3].outcome == verdict::pass);
    check_rejudged(r, s.slos);
}

TEST_CASE("servers that are both over their capacity are not compared") {
    // Both queues grow for as long as the load lasts, whatever the engines do.
    engine mine, other;
    mine.slots = other.slots = 1;
    mine.decode_step = 18.6_ms;
    other.decode_step = 18_ms;
    scenario s = at_once_with(10_ms, 10_ms, "both saturated at once");
    s.target = simulated(mine);
    s.baseline = simulated(other);
    s.slos = {p50(ttft) <= 2 * baseline, mean(ttft) <= baseline + 100_s};
    s.duration = 120_s;
    const result r = run(s);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(r.verdicts()[i].outcome == verdict::invalid);
        CHECK(holds(r.verdicts()[i].reason, "over-saturated"));
    }
}

TEST_CASE("users of both servers begin together") {
    scenario s = at_once_with(10_ms, 10_ms, "users at once");
    s.arrivals = closed_loop(4);
    s.slos = {output_throughput >= 0.9 * baseline, mean(itl) <= 1.1 * baseline,
              error_rate <= baseline + 2_pct};
    const result r = run(s);
    REQUIRE(r.verdicts().size() == 4);
    for (std::size_t i = 0; i < 3; ++i) CHECK(r.verdicts()[i].outcome == verdict::pass);
    check_rejudged(r, s.slos);
}

TEST_CASE("a load at once ends as soon as all objectives are decided") {
    scenario s = at_once_with(10_ms, 10_ms, "decided early");
    s.duration = 2_min;
    s.slos = {mean(tpot) <= 1.05 * baseline, p90(ttft) <= 1.5 * baseline};
    const heard_run heard = heard_of(s);
    const result& r = heard.result;
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    CHECK(r.verdicts()[1].outcome == verdict::pass);
    CHECK(holds(heard.said, "the load ended after 59."));
    long long first = 0, last = 0, later = 0, from = 0;
    for (const record& x : r.requests()) {
        if (from == 0 || x.scheduled_ns < from) from = x.scheduled_ns;
        if (x.phase == run_phase::after) ++later;
        if (x.phase != run_phase::measure) continue;
        CHECK(x.status == request_status::ok);
        if (first == 0 || x.scheduled_ns < first) first = x.scheduled_ns;
        last = std::max(last, x.scheduled_ns);
    }
    CHECK(later > 0);
    CHECK(later < 20);  // of the second that the last answers and the look took
    CHECK(last - first < 60'000'000'000);
    CHECK(last - first > 55'000'000'000);
    check_rejudged(r, s.slos);

    s.name = "decided early, a miss";
    s.slos = {mean(tpot) <= 0.9 * baseline};
    const heard_run early = heard_of(s);
    const result& missed = early.result;
    CHECK(missed.verdicts()[0].outcome == verdict::fail);
    CHECK(holds(early.said, "the load ended after 59."));
    check_rejudged(missed, s.slos);
}

TEST_CASE("a load at once is whole where something is open, or where it is asked for") {
    scenario s = at_once_with(10_ms, 10_ms, "open at once");
    s.duration = 2_min;
    s.slos = {mean(tpot) <= 1.05 * baseline, mean(tpot) <= 1.0 * baseline};
    const result open = run(s);
    CHECK(open.verdicts()[0].outcome == verdict::pass);
    CHECK(open.verdicts()[1].outcome == verdict::inconclusive);
    CHECK(slices_of(open.verdicts()[0]) == 24);
    check_rejudged(open, s.slos);
    s.name = "whole at once";
    s.slos = {mean(tpot) <= 1.05 * baseline};
    s.repeats = 1;
    const result whole = run(s);
    CHECK(slices_of(whole.verdicts()[0]) == 24);
    for (const record& x : whole.requests()) CHECK(x.phase != run_phase::after);
    check_rejudged(whole, s.slos);
}

TEST_CASE("users at once: the load ends early, and no slow answer is left out") {
    scenario s = at_once_with(12_ms, 10_ms, "users decided early");
    s.arrivals = closed_loop(4);
    s.duration = 2_min;
    s.slos = {mean(tpot) <= 1.05 * baseline, output_throughput >= 0.95 * baseline};
    const heard_run heard = heard_of(s);
    const result& r = heard.result;
    CHECK(r.verdicts()[0].outcome == verdict::fail);
    CHECK(r.verdicts()[1].outcome == verdict::fail);
    CHECK(holds(heard.said, "the load ended after "));
    for (const record& x : r.requests())
        if (x.phase == run_phase::measure) CHECK(x.status == request_status::ok);
    check_rejudged(r, s.slos);
}

TEST_CASE("what cannot be loaded at once is refused") {
    scenario s = at_once_with(10_ms, 10_ms, "refused at once");
    s.slos = {mean(tpot) <= 1.05 * baseline};
    const auto refused = [&](auto&& change) {
        scenario other = s;
        change(other);
        const std::string why = refusal_of(other);
        CAPTURE(why);
        return why;
    };
    CHECK(holds(refused([](scenario& x) { x.duration = 30_s; }),
                "pairs is at_once for 30 s: its verdicts rest on 8 slices of 5 s at least, give "
                "it 40 s"));
    CHECK(holds(refused([](scenario& x) {
                    x.duration = {};
                    x.requests = 120;
                    x.arrivals = constant(4_rps);
                }),
                "give it 40 s, which is 1"));
    CHECK(holds(refused([](scenario& x) { x.baseline = {}; }), "there is no baseline"));
    CHECK(holds(refused([](scenario& x) { x.warmup = until_stable(30_s); }), "until_stable"));
    CHECK(holds(refused([](scenario& x) {
                    x.arrivals = all_at_once();
                    x.duration = {};
                    x.requests = 100;
                }),
                "a batch has no slices"));
    CHECK(holds(refused([](scenario& x) {
                    x.baseline = otherwise{.same = true};
                    x.workload = prompts({"one", "two"});
                }),
                "each would warm the cache for its twin"));
    CHECK(holds(refused([](scenario& x) { x.slos = {max(ttft) <= 2 * baseline}; }),
                "means and percentiles of requests"));
    CHECK(holds(refused([](scenario& x) { x.slos = {p90(ttft) <= 1_s}; }), "give it .repeats = 3"));
}
