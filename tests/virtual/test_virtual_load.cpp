// Load generator: when requests go out, against the simulated server, with an engine that answers within
// milliseconds. What is due when is test_agenda's.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/short_loads.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

using namespace llmbench;
using namespace live;
using texts::parsed;

namespace {

template <class F> long long most(const records& all, F of) {
    long long x = of(all.at(0));
    for (const record& r : all) x = std::max(x, of(r));
    return x;
}
template <class F> long long least(const records& all, F of) {
    return -most(all, [&](const record& r) { return -of(r); });
}
long long scheduled(const record& r) { return r.scheduled_ns; }
long long dispatched(const record& r) { return r.dispatched_ns; }
long long ended(const record& r) { return r.end_ns; }

template <class F> long long median(const records& all, F of) {
    std::vector<long long> x;
    for (const record& r : all) x.push_back(of(r));
    std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
    return x.at(x.size() / 2);
}

/// The load goes out as planned, to the nanosecond.
void check_punctual(const records& all, const std::vector<double>& due) {
    check_follows(all, due);
    for (const record& r : all) CHECK(r.dispatched_ns == r.scheduled_ns);
}

}  // namespace

// ---- open loops

TEST_CASE("requests of every open loop leave when they are due") {
    const std::pair<open_loop, int> loops[] = {{poisson(50_rps), 120},
                                               {constant(100_rps), 100},
                                               {gamma(100_rps, 0.25), 100},
                                               {ramp(50_rps, 150_rps, 1_s), 60},
                                               {steps({{100_rps, 300_ms}, {50_rps, 400_ms}}), 0}};
    for (const auto& [loop, requests] : loops) {
        CAPTURE(static_cast<int>(loop.data().kind));
        scenario s = short_requests(loop);
        s.requests = requests;
        for (const bool spins : {false, true}) {
            s.client = {.spin = spins};
            check_punctual(all_ok(run(s)), open_loop_times(loop, requests));
        }
    }
}

TEST_CASE("all_at_once sends everything at the start, after the warm-up was answered") {
    scenario s = short_requests(all_at_once());
    s.warmup = 5;
    const records all = all_ok(run(s));
    const records warm = phase_of(all, run_phase::warmup),
                  measured = phase_of(all, run_phase::measure);
    REQUIRE(warm.size() == 5);
    REQUIRE(measured.size() == 40);
    CHECK(most(warm, ended) < least(measured, dispatched));
    CHECK(most(warm, ended) < least(measured, scheduled));
    CHECK(most(measured, scheduled) == least(measured, scheduled));
    CHECK(most_in_flight(measured) == 40);
}

// ---- a cap on requests in flight

TEST_CASE("max_in_flight holds, and the waiting counts as latency") {
    // Two at a time, at least 6 ms each: 60 requests take 180 ms, and are all due within 60 ms.
    scenario s = short_requests(constant(1000_rps).max_in_flight(2));
    s.requests = 60;
    const result r = run(s);
    const records all = all_ok(r);
    REQUIRE(all.size() == 60);
    CHECK(most_in_flight(all) == 2);
    const auto waiting = [](const record& x) { return x.dispatched_ns - x.scheduled_ns; };
    CHECK(seconds(waiting(all.back())) > 0.05);
    CHECK(seconds(median(all, waiting)) > 0.02);
    for (std::size_t i = 1; i < all.size(); ++i)
        CHECK(all[i].dispatched_ns >= all[i - 1].dispatched_ns);
    const auto waited = [](const record& x) { return x.first_token_ns - x.scheduled_ns; };
    CHECK(r.estimate(p50(ttft)).value >= 0.9 * seconds(median(all, waiting)));
    CHECK(r.estimate(max(ttft)).value == doctest::Approx(seconds(most(all, waited))));
    // Deliberate waiting is not the client's lateness.
    CHECK(r.self_check().lateness_p50 < seconds(median(all, waiting)));
}

// ---- connections

TEST_CASE("no more connections are opened than are needed at a time, and one ahead") {
    for (const arrival_pattern& a : {arrival_pattern(closed_loop(4)), arrival_pattern(all_at_once()),
                                     arrival_pattern(constant(50_rps))}) {
        CAPTURE(static_cast<int>(a.data().kind));
        scenario s = short_requests(a);
        s.requests = 12;
        const result r = run(s);
        const records all = all_ok(r);
        // One for each user or request at a time, and one ahead.
        const bool users = a.data().kind == detail::arrival_kind::closed_loop;
        CHECK(r.self_check().connections_opened <= (users ? 4 : 12) + 1);
        CHECK(least(all, [](const record& x) { return x.connected_ns - x.dispatched_ns; }) >= 0);
    }
}

// ---- what a run leaves

TEST_CASE("the report of a run is that of all runs of the program so far") {
    const auto gates = [] {
        const picojson::value all = parsed(content_of(report_file("result.json")));
        return all.get("gates").get<picojson::array>().size();
    };
    scenario s = short_requests(closed_loop(4));
    s.requests = 4;
    run(s);
    const std::size_t before = gates();
    run(s);
    CHECK(gates() == before + 1);
}
