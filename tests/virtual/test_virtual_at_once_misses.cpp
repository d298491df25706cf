// Objectives on the candidate alone beside a baseline that is loaded at once: errors and times, at one
// load and at several.
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/scripted_server.hpp"

#include <functional>
#include <string>

using namespace llmbench;
using namespace live;

namespace {

constexpr int requests_of_load = 240;  // in 60 s

/// Whether request i of a load fails, from 0.
using failing = std::function<bool(int i)>;

scripted::server server_that(failing fails, std::chrono::milliseconds takes = {}) {
    return scripted::server([=, i = 0](const scripted::request&) mutable -> scripted::answer {
        const bool fails_now = fails(i++ % requests_of_load);
        if (fails_now) return {scripted::send(scripted::json("500 Oh", "{}"))};
        scripted::answer all{scripted::wait(takes)};
        for (const scripted::step& s : scripted::healthy(8)) all.push_back(s);
        return all;
    });
}
failing none() {
    return [](int) { return false; };
}
/// Two servers at once, and so many loads; 0: as many as a gate takes by itself, one.
scenario at_once_on(const scripted::server& mine, const scripted::server& other, int loads,
                    const std::string& name) {
    scenario s = asking(endpoint{.url = mine.url()});
    s.name = name;
    s.baseline = endpoint{.url = other.url()};
    s.pairs = at_once;
    s.arrivals = constant(4_rps);
    s.requests = requests_of_load;
    s.repeats = loads;
    return s;
}
std::string outcome_of_gate(const std::string& name) {
    return reported_gate(name).get("outcome").to_str();
}

}  // namespace

// Errors in every order after one load, and what is slow after any number: core/judging/test_counts, test_at_once.
TEST_CASE("errors fail a gate whose servers are loaded at once, after any number of loads") {
    for (const int loads : {0, 2, 3, 4}) {
        const std::string name = "errors, " + std::to_string(loads);
        CAPTURE(name);
        const scripted::server mine = server_that([](int i) { return i % 2 == 0; }), other = server_that(none());
        scenario s = at_once_on(mine, other, loads, name);
        s.slos = {mean(e2e) <= baseline + 1_s, goodput(e2e <= 1_s) >= 90_pct};
        const result r = run(s);
        CHECK(outcome_of(r, "goodput(e2e <= 1 s) >= 90 %") == verdict::fail);
        CHECK(outcome_of(r, "error_rate <= 1 %") == verdict::fail);  // the guard
        CHECK(outcome_of_gate(name) == "failed");
    }
}

TEST_CASE("times of the candidate alone are judged after as many loads at once as repeats of one server") {
    const scripted::server mine = server_that(none(), std::chrono::milliseconds(25)),
                           other = server_that(none());
    for (const int loads : {2, 3, 4}) {
        const std::string name = "times at once, " + std::to_string(loads);
        CAPTURE(name);
        scenario s = at_once_on(mine, other, loads, name);
        s.slos = {p90(ttft) <= 1_ms, mean(e2e) <= 0.1_ms, mean(e2e) <= 1_s, mean(ttft) <= 22_ms};
        const result r = run(s);
        CHECK(outcome_of(r, "p90(ttft) <= 1 ms") == verdict::fail);
        CHECK(outcome_of(r, "mean(e2e) <= 0.1 ms") == verdict::fail);
        CHECK(outcome_of(r, "mean(e2e) <= 1 s") == verdict::pass);
        if (loads > 2) CHECK(outcome_of(r, "mean(ttft) <= 22 ms") == verdict::fail);
        check_rejudged(r, s.slos);
    }
}
