// Segments of a history: which runs are of one level, and which level was accepted.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/reading.hpp"
#include "extensions/history/core/levels.hpp"

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
std::string date_of(std::size_t i) {
    char at[32];
    std::snprintf(at, sizeof at, "2026-%02d-%02dT02:15:04Z", static_cast<int>(i / 28) + 1,
                  static_cast<int>(i % 28) + 1);
    return at;
}
/// Runs of 1 % between them and 0.5 % between repeats around a level, as logarithms.
history_series drawn(std::size_t count, const std::function<double(std::size_t)>& level,
                     std::uint64_t seed = 1) {
    generator g(seed);
    history_series s;
    for (std::size_t i = 0; i < count; ++i) {
        series_run n;
        n.at = date_of(i);
        const double run = 0.01 * g.normal();
        for (int k = 0; k < 3; ++k)
            n.repeats.push_back(0.012 * std::exp(level(i) + run + 0.005 * g.normal()));
        s.runs.push_back(n);
    }
    return s;
}
vector<history_segment> segments(const history_series& s) {
    const auto runs = levels_of(s);
    return with_accepted(segments_of(s, runs), s, runs);
}
double step_at_20(std::size_t i) { return i < 20 ? 0 : 0.10; }
}  // namespace

TEST_CASE("a level without a step is one segment") {
    const auto all = segments(drawn(60, [](std::size_t) { return 0.0; }));
    REQUIRE(all.size() == 1);
    CHECK(all[0].first == 0);
    CHECK(all[0].end == 60);
    CHECK(all[0].is_accepted);
}

TEST_CASE("a step is found after two runs, where it began, and stays as it was found") {
    for (std::size_t n = 22; n < 50; ++n) {
        const auto all = segments(drawn(n, step_at_20));
        REQUIRE(all.size() == 2);
        CHECK(all[1].first == 20);
        CHECK(all[1].found == 21);
        CHECK(all[1].end == n);
    }
    CHECK(segments(drawn(21, step_at_20)).size() == 1);  // one run is none
}

TEST_CASE("a single run that is far off is no step") {
    const auto trouble = [](std::size_t i) { return i == 20 ? 0.15 : 0; };
    CHECK(segments(drawn(40, trouble)).size() == 1);
}

TEST_CASE("values that do not differ at all show no step, and a tiny one is none") {
    history_series s;
    for (std::size_t i = 0; i < 30; ++i)
        s.runs.push_back({"", date_of(i), "", vector<double>(3, i < 20 ? 1 : 1.0001), {}});
    CHECK(segments(s).size() == 1);
    for (series_run& n : s.runs) n.repeats = {2, 2, 2};
    CHECK(segments(s).size() == 1);
}

TEST_CASE("the two-sample t of a split is the textbook's") {
    // 1 2 3 | 7 9: means 2 and 8, pooled variance (2 + 2) / 3.
    const split_found best = best_split({1, 2, 3, 7, 9});
    CHECK(best.at == 3);
    CHECK(best.t == doctest::Approx(6 / std::sqrt(4.0 / 3 * (1.0 / 3 + 1.0 / 2))));
    CHECK(best_split({1, 2, 3, 4}).at == 0);  // three before it and two after
}

TEST_CASE("a run that a mark leaves out is no part of anything") {
    history_series s = drawn(40, step_at_20);
    for (std::size_t i = 20; i < 40; ++i) s.runs[i].is_left_out = true;
    const auto all = segments(s);
    REQUIRE(all.size() == 1);
    CHECK(all[0].end == 20);
}

TEST_CASE("annotations say where a step is, and where there is none") {
    history_series s = drawn(40, [](std::size_t) { return 0.0; });
    s.annotations.push_back({annotation_kind::step, date_of(12), "a new driver", "me"});
    auto all = segments(s);
    REQUIRE(all.size() == 2);
    CHECK(all[1].first == 12);

    s = drawn(40, step_at_20);
    s.annotations.push_back({annotation_kind::no_step, date_of(20), "the room was hot", "me"});
    CHECK(segments(s).size() == 1);
}

TEST_CASE("an improvement is accepted by itself, a regression by a mark") {
    auto all = segments(drawn(40, [](std::size_t i) { return i < 20 ? 0 : -0.06; }));
    REQUIRE(all.size() == 2);
    CHECK(all[1].is_accepted);

    history_series s = drawn(40, step_at_20);
    all = segments(s);
    REQUIRE(all.size() == 2);
    CHECK_FALSE(all[1].is_accepted);
    CHECK(segment_for(all, run_on::main).first == 0);    // main is held against what was accepted
    CHECK(segment_for(all, run_on::branch).first == 20);  // a branch did not break main

    for (const std::size_t at : {18u, 20u, 25u, 39u}) {
        s.annotations = {{annotation_kind::accept, date_of(at), "a larger model", "me"}};
        CHECK(segments(s)[1].is_accepted);
    }
    s.annotations = {{annotation_kind::accept, date_of(10), "another one", "me"}};
    CHECK_FALSE(segments(s)[1].is_accepted);
}

TEST_CASE("a regression that was mended is accepted again, half of it is not") {
    const auto mended = [](double left) {
        return segments(drawn(60, [=](std::size_t i) {
            return i < 20 ? 0 : i < 40 ? 0.12 : left;
        }));
    };
    auto all = mended(0);
    REQUIRE(all.size() == 3);
    CHECK_FALSE(all[1].is_accepted);
    CHECK(all[2].is_accepted);
    all = mended(0.06);
    REQUIRE(all.size() == 3);
    CHECK_FALSE(all[2].is_accepted);
    CHECK(segment_for(all, run_on::main).first == 0);
}

TEST_CASE("a lower limit turns the signs: less throughput is a regression") {
    history_series s = drawn(40, [](std::size_t i) { return i < 20 ? 0 : -0.06; });
    s.at_most = false;
    const auto runs = levels_of(s);
    const auto all = with_accepted(segments_of(s, runs), s, runs);
    REQUIRE(all.size() == 2);
    CHECK_FALSE(all[1].is_accepted);
}

TEST_CASE("a drift that no step shows is told with its interval") {
    const auto slowly = [](std::size_t i) { return 0.001 * static_cast<double>(i); };
    const history_series s = drawn(60, slowly);
    const history_read r = history_read_as(s, run_on::main);
    const auto d = drift_of_level(r.runs, r.segments, r.learned.spread);
    REQUIRE(d);
    CHECK(d->by == doctest::Approx(0.05).epsilon(0.2));
    CHECK(d->low < 0.05);
    CHECK(d->high > 0.05);
    CHECK(d->low > 0.01);

    const history_read still = history_read_as(drawn(60, [](std::size_t) { return 0.0; }),
                                               run_on::main);
    CHECK_FALSE(drift_of_level(still.runs, still.segments, still.learned.spread));
    CHECK_FALSE(drift_of_level({}, {}, {}));
}

TEST_CASE("no runs and few runs are no segment and one") {
    CHECK(segments({}).empty());
    CHECK(segments(drawn(1, step_at_20)).size() == 1);
    CHECK(segments(drawn(5, [](std::size_t i) { return i < 3 ? 0 : 1.0; })).size() == 1);
}

TEST_CASE("a step is found however quiet the runs are") {
    for (const double sd : {0.0, 1e-9, 1e-6, 1e-4, 1e-3}) {
        CAPTURE(sd);
        vector<double> levels;
        for (std::size_t i = 0; i < 21; ++i)
            levels.push_back((i < 14 ? 0.0 : 0.05) + sd * static_cast<double>(i * 7 % 5));
        CHECK(step_in(levels) == 14);
    }
}
