// Repeats that end before all is sent, as their gate ends at its first miss and they miss by far.
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/scripted_server.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

std::size_t measured_in(const result& r, int repeat) {
    return static_cast<std::size_t>(
        std::count_if(r.requests().begin(), r.requests().end(), [&](const record& x) {
            return x.repeat == repeat && x.variant == run_variant::candidate &&
                   x.phase == run_phase::measure;
        }));
}
/// A gate on a server whose time per token is this.
scenario gate_on(time_span per_token, const char* name) {
    scenario s = brief(simulated(engine_of(per_token)), name);
    s.arrivals = constant(20_rps);
    s.requests = 100;
    s.stop = at_first_miss;
    return s;
}

}  // namespace

TEST_CASE("a gate that ends at its first miss sends no more than a hopeless repeat needs") {
    scenario s = gate_on(15_ms, "hopeless");
    s.slos = {p90(tpot) <= 5_ms, p50(e2e) <= 10_s};
    const result r = run(s);
    const slo_verdict v = r.verdicts()[0];
    CHECK(v.outcome == verdict::fail);
    CHECK(v.repeats == 2);
    CHECK(repeats_of(r).size() == 2);
    for (const int repeat : {0, 1}) {
        CHECK(measured_in(r, repeat) >= 11);
        CHECK(measured_in(r, repeat) < 25);  // those in flight are answered
    }
    all_ok(r);
    CHECK(holds(v.reason, "2 repeats ended early, the last one after "));
    CHECK(holds(v.reason, " of 100 requests: p90(tpot) could not come back under 10 ms"));
    CHECK(r.verdicts()[1].outcome == verdict::inconclusive);
    CHECK(r.verdicts()[2].outcome == verdict::inconclusive);  // failed requests
    check_rejudged(r, s.slos);
    // All of it is sent where a gate goes on, and the verdict is the same.
    s.stop = stop_when::all_decided;
    const result whole = run(s);
    CHECK(whole.verdicts()[0].outcome == verdict::fail);
    CHECK(measured_in(whole, 0) == 100);
    CHECK(whole.verdicts()[1].outcome == verdict::pass);
}

TEST_CASE("a repeat is whole under twice the limit, and where its objective blocks nothing or compares") {
    scenario s = gate_on(15_ms, "whole");
    const auto sends_all = [&] {
        const result r = run(s);
        check_rejudged(r, s.slos);
        return measured_in(r, 0) == 100;
    };
    s.slos = {p90(tpot) <= 10_ms};
    CHECK(sends_all());
    s.slos = {advisory(p90(tpot) <= 5_ms)};
    CHECK(sends_all());
    s.slos = {mean(tpot) <= 5_ms};
    CHECK(sends_all());
    s.slos = {p90(tpot) <= 5_ms};
    s.baseline = simulated(engine_of(15_ms));
    CHECK(sends_all());
}

TEST_CASE("users send no more once a repeat has ended, and failures end one as well") {
    scenario s = gate_on(15_ms, "users");
    s.arrivals = closed_loop(4);
    s.slos = {goodput(tpot <= 5_ms) >= 99_pct};
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::fail);
    CHECK(measured_in(r, 0) >= 15);
    CHECK(measured_in(r, 0) < 25);
    CHECK(measured_in(r, 1) < 25);
    check_rejudged(r, s.slos);

    int asked = 0;
    const scripted::server failing([&](const scripted::request&) {
        scripted::answer a = {scripted::wait(scripted::milliseconds(100))};
        const scripted::answer busy = {scripted::send(scripted::json("503 Busy", "{}"))};
        for (const scripted::step& step : ++asked % 2 == 0 ? scripted::healthy() : busy)
            a.push_back(step);
        return a;
    });
    s.target = endpoint{.url = failing.url()};
    s.slos = {p50(ttft) <= 10_s};
    const result errors = run(s);
    CHECK(outcome_of(errors, "error_rate <= 1 %") == verdict::fail);
    CHECK(holds(reason_of(errors, "error_rate <= 1 %"), "error_rate could not come back under 14.14 %"));
    CHECK(repeats_of(errors).size() == 2);
    CHECK(measured_in(errors, 0) < 40);
    check_rejudged(errors, s.slos);
}

TEST_CASE("one bad repeat that ended early is no miss and no pass, and other objectives judge without it") {
    int asked = 0;
    const scripted::server server([&](const scripted::request&) {
        scripted::answer a = {scripted::wait(scripted::milliseconds(asked++ < 15 ? 300 : 20))};
        for (const scripted::step& s : scripted::healthy()) a.push_back(s);
        return a;
    });
    scenario s = asking(endpoint{.url = server.url()}, 100);
    s.repeats = 0;
    s.stop = at_first_miss;
    s.slos = {p90(ttft) <= 100_ms, p50(e2e) <= 10_s};
    const result r = run(s);
    CHECK(measured_in(r, 0) < 15);
    CHECK(measured_in(r, 1) == 100);
    CHECK(repeats_of(r).size() >= 5);
    CHECK(r.verdicts()[0].outcome == verdict::inconclusive);
    CHECK(holds(r.verdicts()[0].reason, "1 repeat ended early, the last one after "));
    CHECK(holds(r.verdicts()[0].reason, "could not come back under 200 ms, which rules out a pass"));
    CHECK(r.verdicts()[1].outcome == verdict::pass);
    CHECK(r.verdicts()[1].repeats == 2);
    CHECK(r.verdicts()[2].outcome == verdict::pass);
    check_rejudged(r, s.slos);
}
