// One load of a server after the other: each judged, all of them a curve with the capacity on it.
#include "support/loads.hpp"
#include "llmbench_compare.hpp"

#include <csignal>
#include <sstream>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

/// Four slots, each 200 ms an answer: 20 requests a second, or four users who do not wait.
scenario four_slots(const char* name) {
    scenario s = load_on(engine_with(4), name);
    s.arrivals = {};
    s.duration = {};
    s.requests = 60;
    s.slos = {p50(ttft) <= 60_ms};
    return s;
}
curve_result curve_of(const scenario& s, const types::list<offered_load>& loads) {
    curve_result c;
    CHECK(refusal_by([&] { c = curve(s, loads); }) == "");
    return c;
}
std::string refusal_of_curve(const scenario& s, const types::list<offered_load>& loads) {
    return refusal_by([&] { curve(s, loads); });
}
picojson::value reported_curve(const std::string& name) {
    const picojson::value all = texts::parsed(content_of(report_file("result.json")));
    for (const picojson::value& c : all.get("curves").get<picojson::array>())
        if (c.get("name").to_str() == name) return c;
    return {};
}
/// Lines of curves.csv about a curve, in cells.
std::vector<std::vector<std::string>> lines_of(const std::string& name) {
    std::vector<std::vector<std::string>> lines;
    std::istringstream csv(content_of(report_file("curves.csv")));
    for (std::string line; std::getline(csv, line);) {
        if (line.rfind("\"" + name + "\",", 0) != 0) continue;
        lines.emplace_back();
        std::istringstream cells(line);
        for (std::string cell; std::getline(cells, cell, ',');) lines.back().push_back(cell);
    }
    return lines;
}

}  // namespace

TEST_CASE("a curve of users has every load judged, and the capacity between two of them") {
    const curve_result c =
        curve_of(four_slots("users"), {1_users, 2_users, 4_users, 8_users, 16_users});
    INFO(c);
    REQUIRE(c.size() == 5);
    CHECK(c.low() == 4);
    CHECK(c.high() == 8);
    CHECK(holds(c.line(), "capacity in [4, 8] users, limited by p50(ttft), 5 loads"));
    for (int i = 0; i < 3; ++i) CHECK(c.at(i).verdicts()[0].outcome == verdict::pass);
    for (int i = 3; i < 5; ++i) CHECK(c.at(i).verdicts()[0].outcome == verdict::fail);
    // Each load is a result of its own, with the same requests.
    CHECK(c[8_users].name() == types::text("users / 8 users"));
    CHECK_SLO(c[4_users], mean(tpot) <= 25_ms);
    CHECK(c[1_users].measured(output_throughput) * 3.5 < c[4_users].measured(output_throughput));
    CHECK(c[8_users].measured(output_throughput) < c[4_users].measured(output_throughput) * 1.2);
    CHECK(holds(refusal_by([&] { c[3_users]; }), "there is no load of 3 in the curve: it has 1"));
    CHECK(holds(refusal_by([&] { c.at(5); }), "there is no load at 5 in the curve, which has 5"));
    check_rejudged(c[8_users], four_slots("").slos);
}

TEST_CASE("every report has the curve, and the CSV has what its gates do") {
    scenario s = four_slots("reported");
    s.cost = usd_per_hour(3.6);
    std::string said;
    curve_result c;
    {
        const heard console;
        c = curve_of(s, {2_users, 8_users});
        said = console.text();
    }
    CHECK(holds(said, "reported: capacity in [2, 8] users, limited by p50(ttft), 2 loads"));
    CHECK(holds(said, "a million tokens"));
    const std::string files = report_files_with(" users, limited by p50(ttft), 2 loads");
    for (const char* file : {"result.json", "summary.md", "report.html"})
        CHECK(holds(files, file));
    const picojson::value reported = reported_curve("reported");
    CHECK(reported.get("unit").to_str() == "users");
    CHECK(reported.get("low").get<double>() == 2);
    CHECK(reported.get("loads").get(1).get("gate").to_str() == "reported / 8 users");
    CHECK(reported.get("loads").get(1).get("shows").to_str() == "too much");

    const auto lines = lines_of("reported");
    REQUIRE(lines.size() == 2);
    CHECK(lines[1][1] == "8");
    CHECK(lines[1][2] == "users");
    CHECK(lines[1][3] == "candidate");
    CHECK(lines[1][5] == "too much");
    CHECK(std::stod(lines[1][6]) == doctest::Approx(c[8_users].measured(output_throughput)));
    CHECK(std::stod(lines[1][10]) == doctest::Approx(c[8_users].measured(cost_per_million_tokens)));
    CHECK(std::stod(lines[1][13]) == doctest::Approx(c[8_users].measured(p90(ttft))));
}

TEST_CASE("against a baseline there are two curves") {
    scenario s = four_slots("two curves");
    s.baseline = simulated(engine_with(2));
    const curve_result c = curve_of(s, {2_users, 8_users});
    INFO(c);
    CHECK(c.low() == 2);
    const auto lines = lines_of("two curves");
    REQUIRE(lines.size() == 4);
    CHECK(lines[2][3] == "candidate");
    CHECK(lines[3][3] == "baseline");
    CHECK(std::stod(lines[3][6]) < 0.6 * std::stod(lines[2][6]));
}

TEST_CASE("a load of a curve that ends before its answers do is not carried") {
    scenario s = four_slots("over before its answers");
    s.slos = {p50(ttft) <= 1_min};
    const curve_result c = curve_of(s, {10_rps, 400_rps, 4000_rps});
    INFO(c);
    CHECK(c.low() == 10);
    CHECK(holds(c.at(2).verdicts()[0].reason, "of load were too short for that"));
}

TEST_CASE("loads that make no curve are refused in a sentence, before anything is sent") {
    const scenario s = four_slots("nonsense");
    CHECK(holds(refusal_of_curve(s, {8_users}), "curve() has 1 load: it takes 2 to 16"));
    CHECK(holds(refusal_of_curve(s, {8_users, 8_rps}), "all its loads are one or the other"));
    CHECK(holds(refusal_of_curve(s, {8_users, 4_users}), "a load of 4 after one of 8: they rise"));
    CHECK(holds(refusal_of_curve(s, {user_count(1.5), 4_users}), "users are whole"));
    CHECK(holds(refusal_of_curve(s, {0_rps, 4_rps}), "it must be above 0 and at most 1000000"));
    const auto with = [](const arrival_pattern& a) {
        scenario x = four_slots("nonsense");
        x.arrivals = a;
        return x;
    };
    CHECK(holds(refusal_of_curve(with(closed_loop(64)), {4_rps, 8_rps}),
                "arrivals is closed_loop(64 users): its loads are numbers of users"));
    CHECK(holds(refusal_of_curve(with(poisson(4_rps)), {4_users, 8_users}), "its loads are rates"));
    CHECK(holds(refusal_of_curve(with(poisson(up_to(4_rps))), {4_rps, 8_rps}),
                "find_capacity() searches one"));
    CHECK(holds(refusal_of_curve(with(ramp(1_rps, 4_rps, 10_s)), {4_rps, 8_rps}),
                "one steady load after the other"));
    scenario past = s;
    past.baseline = stored("main.json");
    CHECK(holds(refusal_of_curve(past, {4_users, 8_users}), "against a second server"));
    scenario unsound = s;
    unsound.slos = {output_throughput >= 100_tps};
    CHECK(holds(refusal_of_curve(unsound, {4_rps, 8_rps}), "below saturation a throughput"));
    scenario capacity_of = s;
    capacity_of.slos = {capacity >= 4_users};
    CHECK(holds(refusal_of_curve(capacity_of, {4_users, 8_users}), "a load of up_to(...)"));
}

TEST_CASE("a curve that a budget or a signal ends keeps the loads that it has") {
    scenario s = four_slots("cut");
    {
        // Of virtual time, which other tests of this program have spent some of.
        const variable budget("LLMBENCH_TIME_BUDGET", "1s");
        const curve_result c = curve_of(s, {1_users, 2_users});
        CHECK(c.size() == 2);
        CHECK(c.low() == 0);
    }
    engine mortal = engine_with(4);
    mortal.faults.stop_after = 100;
    s.name = "dies";
    s.target = simulated(mortal);
    const curve_result c = curve_of(s, {1_users, 2_users});
    CHECK(c.at(0).verdicts()[0].outcome == verdict::invalid);
    CHECK(lines_of("dies").size() == 2);
}
