// Verdicts against runs of main: what holds them back, what is said of them, and that they are
// the same again without the folder.
#include "llmbench.hpp"
#include "core/base/json.hpp"
#include "extensions/history/core/learned.hpp"
#include "core/judging/judge.hpp"
#include "extensions/history/core/history_judge.hpp"
#include "core/described/described.hpp"
#include "core/stored/record_json.hpp"
#include "support/texts.hpp"
#include "support/verdicts.hpp"
#include "extensions/answers/api.hpp"

#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace verdicts;

namespace {
const slo within_5 = mean(ttft) <= 1.05 * baseline;
const run_series here{.gate = "chat", .cpu = "AMD EPYC 7763", .cores = "4"};

std::string date_of(std::size_t i) {
    char at[32];
    std::snprintf(at, sizeof at, "2026-%02d-%02dT02:15:04Z", static_cast<int>(i / 28) + 1,
                  static_cast<int>(i % 28) + 1);
    return at;
}
/// Runs of mean(ttft) around 100 ms times a factor, in turns 1 % above and below.
history_lines runs_at(std::size_t count, const std::function<double(std::size_t)>& factor,
                      const run_series& in = here) {
    history_lines lines;
    for (std::size_t i = 0; i < count; ++i) {
        history_run r;
        r.id = std::to_string(i);
        r.at = date_of(i);
        r.gate = "chat";
        r.run_series = id_of(in);
        r.commit = "4c1d22e0aa" + std::to_string(i);
        r.outcome = "passed";
        r.watched = {{"card", "9c2e"}, {"server", i < 21 ? "vLLM 0.32" : "vLLM 0.33"}};
        const double x = 0.1 * factor(i) * (i % 2 == 0 ? 1.01 : 0.99);
        r.values = {{"mean(ttft)", {x, x * 1.005, x * 0.995}}};
        lines.runs.push_back(r);
    }
    return lines;
}
double always(std::size_t) { return 1; }

history_parameters parameters_of(const history_lines& lines, const history_question& asked = {.folder = "h"},
                       const vector<slo>& slos = {within_5}) {
    return history_parameters_of(lines, here, {{id_of(here), here}}, slos, asked);
}
measurement run_of(const vector<double>& ms, const history_parameters& h,
                   const slo& s = within_5) {
    measurement m = measured(repeats_with_ttft(ms), {s});
    m.past = std::make_shared<history_judge>(history_parameters(h));
    return m;
}
slo_verdict verdict_against(const vector<double>& ms, const history_parameters& h) {
    return judged(run_of(ms, h), within_5);
}
}  // namespace

TEST_CASE("a run that does what main does passes, one that is slower fails") {
    const history_parameters h = parameters_of(runs_at(30, always));
    const slo_verdict same = verdict_against({100, 100.5, 99.5}, h);
    CHECK(same.outcome == verdict::pass);
    CHECK(str(same.method) == "against 30 runs, predictive t");
    CHECK(same.estimate.value == doctest::Approx(1.0).epsilon(0.01));
    CHECK(same.estimate.low < 1);
    CHECK(same.estimate.high > 1);
    CHECK(same.decided_by == verdict_method::predictive_t);
    const slo_verdict slower = verdict_against({120, 120.5, 119.5}, h);
    CHECK(slower.outcome == verdict::fail);
    CHECK(slower.estimate.value == doctest::Approx(1.2).epsilon(0.01));
    CHECK(verdict_against({120, 120.5}, h).outcome == verdict::inconclusive);  // yet
    CHECK(verdict_against({105, 105.5, 104.5}, h).outcome == verdict::inconclusive);
}

TEST_CASE("a share of right answers is held against those of runs") {
    const slo no_worse = accuracy >= 0.97 * baseline;
    history_lines lines = runs_at(30, always);
    for (std::size_t i = 0; i < lines.runs.size(); ++i) {
        const double x = i % 2 == 0 ? 0.932 : 0.928;
        lines.runs[i].values = {{"accuracy", {x, x + 0.002, x - 0.002}}};
    }
    const history_parameters h = parameters_of(lines, {.folder = "h"}, {no_worse});
    const auto verdict_at = [&](int right) {
        vector<repeat_data> repeats;
        for (int k = 0; k < 3; ++k) {
            repeat_data d = steady_repeat(50, 1000);
            for (std::size_t i = 0; i < d.records.size(); ++i)
                d.records[i].right = static_cast<int>(i) < right + k;
            repeats.push_back(d);
        }
        measurement m = measured(repeats, {no_worse});
        m.past = std::make_shared<history_judge>(history_parameters(h));
        return judged(m, no_worse);
    };
    CHECK(verdict_at(930).outcome == verdict::pass);
    CHECK(verdict_at(930).estimate.value == doctest::Approx(1).epsilon(0.01));
    CHECK(verdict_at(880).outcome == verdict::fail);
    CHECK(verdict_at(903).outcome == verdict::inconclusive);
}

TEST_CASE("what can be zero is held against runs with the offset that it is judged with") {
    const slo no_less = cached_share >= 0.9 * baseline;
    history_lines lines = runs_at(30, always);
    for (std::size_t i = 0; i < lines.runs.size(); ++i) {
        const double x = i % 2 == 0 ? 0.0202 : 0.0198;
        lines.runs[i].values = {{"cached_share", {x, x * 1.005, x * 0.995}}};
    }
    const history_parameters h = parameters_of(lines, {.folder = "h"}, {no_less});
    const auto verdict_at = [&](int cached) {
        repeat_data d = steady_repeat(50, 100);
        for (record& r : d.records) {
            r.prompt_tokens = 1000;
            r.cached_tokens = cached;
        }
        measurement m = measured({d, d, d}, {no_less});
        m.past = std::make_shared<history_judge>(history_parameters(h));
        return judged(m, no_less);
    };
    CHECK(verdict_at(20).outcome == verdict::pass);
    CHECK(verdict_at(20).estimate.value == doctest::Approx(1).epsilon(0.01));
    CHECK(verdict_at(10).outcome == verdict::fail);
    CHECK(verdict_at(10).estimate.value == doctest::Approx(2.0 / 3).epsilon(0.01));
}

TEST_CASE("a run may be slower by a time: the spread of runs is in the unit") {
    const slo added = mean(ttft) <= baseline + 6_ms;
    const history_parameters h = parameters_of(runs_at(30, always), {.folder = "h"}, {added, within_5});
    const auto verdict_at = [&](double ms) {
        return judged(run_of({ms, ms + 0.5, ms - 0.5}, h, added), added);
    };
    const slo_verdict same = verdict_at(100);
    CHECK(same.outcome == verdict::pass);
    CHECK(same.estimate.value == doctest::Approx(0).epsilon(0.001));
    CHECK(same.estimate.high > 0.001);
    CHECK(same.estimate.high < 0.006);
    CHECK(same.denominator == doctest::Approx(0.1).epsilon(0.001));
    CHECK(str(same.line()).find("mean(ttft) <= baseline + 6 ms  measured") != std::string::npos);
    CHECK(verdict_at(106).outcome == verdict::inconclusive);
    CHECK(verdict_at(112).outcome == verdict::fail);
    CHECK(verdict_at(112).measured == about(0.012));
    // The ratio beside it has its own levels.
    CHECK(judged(run_of({100, 100.5, 99.5}, h), within_5).outcome == verdict::pass);
    // A proportion and a floor.
    const slo both = mean(ttft) <= 1.10 * baseline + 6_ms;
    const history_parameters sum = parameters_of(runs_at(30, always), {.folder = "h"}, {both});
    CHECK(judged(run_of({108, 108.5, 107.5}, sum, both), both).outcome == verdict::pass);
    CHECK(judged(run_of({125, 125.5, 124.5}, sum, both), both).outcome == verdict::fail);
}

TEST_CASE("a client that is late by as much as the limit cannot tell it from earlier runs") {
    const slo added = mean(ttft) <= baseline + 300_us;
    history_lines lines = runs_at(30, always);
    for (history_run& r : lines.runs) r.values = {{"mean(ttft)", {0.1, 0.10001, 0.09999}}};
    const history_parameters h = parameters_of(lines, {.folder = "h"}, {added});
    measurement m = run_of({90, 90, 90}, h, added);
    CHECK(judged(m, added).outcome == verdict::pass);
    for (repeat_data& d : m.candidate) send_late(d, {0.0002});
    CHECK(judged(m, added).outcome == verdict::inconclusive);
    CHECK(mentions(judged(m, added).reason, "the client can tell differences from 400 us on"));
}

TEST_CASE("an error rate is held against those of runs, of which most have none") {
    const slo few = error_rate <= baseline + 2_pct;
    history_lines lines = runs_at(30, always);
    for (std::size_t i = 0; i < lines.runs.size(); ++i)
        lines.runs[i].values = {{"error_rate", {0, 0, i % 3 == 0 ? 0.002 : 0}}};
    const history_parameters h = parameters_of(lines, {.folder = "h"}, {few});
    const auto verdict_at = [&](int n, int failures) {
        measurement m = measured(vector<repeat_data>(3, repeat_with_failures(n, failures)), {few});
        m.past = std::make_shared<history_judge>(history_parameters(h));
        return judged(m, few);
    };
    CHECK(verdict_at(500, 0).outcome == verdict::pass);
    CHECK(verdict_at(500, 2).outcome == verdict::pass);
    CHECK(verdict_at(40, 0).outcome == verdict::inconclusive);  // too few to show it
    CHECK(verdict_at(500, 10).outcome == verdict::inconclusive);
    CHECK(verdict_at(500, 30).outcome == verdict::fail);
    CHECK(verdict_at(500, 30).measured == about(0.06 - 0.0002222).epsilon(0.01));
}

TEST_CASE("more repeats are waited for where they would decide, only") {
    const history_parameters h = parameters_of(runs_at(30, always));
    const auto at_its_end = [&](const vector<double>& ms) {
        const measurement m = run_of(ms, h);
        const objective_columns columns = columns_of(m, within_5);
        return decision_by_method(columns, m, within_5, sought::first).is_at_its_end;
    };
    CHECK_FALSE(at_its_end({105, 105.5}));
    CHECK(at_its_end({105, 105.5, 104.5}));
    CHECK_FALSE(at_its_end({105, 120, 95}));  // noisier than the runs: two more
    CHECK(at_its_end({105, 120, 95, 105, 106}));
    CHECK(judged(run_of({105}, h), within_5).reason == "a verdict against runs takes two repeats");
}

TEST_CASE("too few runs, none, and none of this machine are told") {
    CHECK(verdict_against({100, 100}, parameters_of(runs_at(2, always))).reason ==
          "2 runs of main; 3 make a baseline, 10 a good one");
    CHECK(parameters_of({}).none == "the history has no run of this gate");
    history_lines invalid = runs_at(20, always);
    for (history_run& r : invalid.runs) r.outcome = "invalid";
    CHECK(parameters_of(invalid).none == "the history has 20 runs of this gate, and none is valid");
    run_series other = here;
    other.cpu = "AMD EPYC 9V74";
    const auto lines = runs_at(34, always, other);
    const history_parameters none =
        history_parameters_of(lines, here, {{id_of(other), other}}, {within_5}, {.folder = "h"});
    const slo_verdict v = verdict_against({100, 100, 100}, none);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.reason == "34 runs of AMD EPYC 9V74, 4 cores, none of AMD EPYC 7763, 4 cores");

    const slo lacking = mean(e2e) <= 1.05 * baseline;
    const auto h = parameters_of(runs_at(30, always), {.folder = "h"}, {lacking});
    CHECK(judged(run_of({100, 100, 100}, h, lacking), lacking).reason ==
          "no run of the history has mean(e2e)");
    CHECK(parameters_of(runs_at(30, always), {.folder = "h", .oldest = "2026-06-01T00:00:00Z"})
              .none == "the newest run is of 2026-02-02, over 30 days ago");
}

TEST_CASE("the age of a history is that of its runs with the statistic") {
    // The objective was dropped for 45 days, in which the gate ran on.
    history_lines lines = runs_at(90, always);
    for (std::size_t i = 30; i < 90; ++i) lines.runs[i].values[0].name = "p50(ttft)";
    const std::string oldest = lines.runs[60].at;
    const slo kept = p50(ttft) <= 1.05 * baseline, absolute = mean(ttft) <= 100_ms;
    const auto h = parameters_of(lines, {.folder = "h", .oldest = oldest}, {within_5, kept, absolute});
    const slo_verdict v = verdict_against({130, 130.5, 129.5}, h);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.reason == "the newest run with mean(ttft) is of 2026-02-02, over 30 days ago");
    CHECK(judged(run_of({130, 130, 130}, h, kept), kept).outcome == verdict::fail);
    // Nor is the noise of the repeats believed.
    const auto as_of_then = parameters_of(lines, {.folder = "h"}, {within_5, absolute});
    CHECK(!inputs(judged(run_of({97, 103}, as_of_then, absolute), absolute), "history_sd").empty());
    CHECK(inputs(judged(run_of({97, 103}, h, absolute), absolute), "history_sd").empty());
    CHECK(verdict_against({130, 130.5, 129.5}, as_of_then).outcome == verdict::fail);
}

TEST_CASE("runs that say nothing of their repeats, or of other runs, are told with the reason") {
    history_lines lines = runs_at(15, always);
    for (history_run& r : lines.runs) r.values[0].repeats.resize(1);
    CHECK(verdict_against({100, 100}, parameters_of(lines)).reason ==
          "15 runs of main with one repeat each do not say what repeats differ by: runs of two "
          "or more are needed, three are the default");
}
TEST_CASE(
    "where a history begins nothing is decided, whatever the client did, and the run counts") {
    history_parameters begins;
    begins.folder = "h";
    begins.appends = true;
    begins.none = "the history begins with this run";
    measurement m = run_of({100, 100.5, 99.5}, begins);
    for (const repeat_data& d : m.candidate) CHECK(!d.records.empty());
    m.candidate[0].lost_fraction = 0.5;
    const slo_verdict v = judged(m, within_5);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.reason == "the history begins with this run");
    // An absolute objective of the same run is decided, and may be biased.
    m.slos = {mean(ttft) <= 100.2_ms};
    CHECK(judged(m, m.slos[0]).outcome == verdict::invalid);
}
TEST_CASE("a fail on a card that no run was measured on is held") {
    const auto lines = runs_at(30, always);
    const auto h = parameters_of(lines, {.folder = "h", .card = "aaaa"});
    const slo_verdict v = verdict_against({130, 130, 130}, h);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.reason == "no run was measured on this card");
    CHECK(verdict_against({100, 100, 100}, h).outcome == verdict::pass);
    CHECK(verdict_against({130, 130, 130}, parameters_of(lines, {.folder = "h", .card = "9c2e"}))
              .outcome == verdict::fail);
}

TEST_CASE("what main did last run, and trouble runs, are told with their numbers") {
    const auto moved = [](std::size_t i) { return i == 28 ? 1.15 : 1; };
    const slo_verdict v = verdict_against({115, 115, 115}, parameters_of(runs_at(29, moved)));
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.reason == "main itself was 16.2 % slower in its last run (4c1d22e0)");
    const auto trouble = [](std::size_t i) { return i == 7 || i == 13 ? 1.2 : 1; };
    CHECK(verdict_against({120, 120, 120}, parameters_of(runs_at(30, trouble))).reason ==
          "2 of 30 runs were as far off without a change: leave them out if that is mended, or "
          "compare live");
}

TEST_CASE("the step that a level began with is told with what changed") {
    const auto h = parameters_of(runs_at(40, [](std::size_t i) { return i < 21 ? 1 : 0.9; }));
    REQUIRE(h.objectives.size() == 1);
    const objective_history& o = h.objectives[0];
    CHECK(o.step == doctest::Approx(-0.1).epsilon(0.02));
    CHECK(o.step_at == "2026-01-22");
    CHECK(o.step_text == "4c1d22e0, vLLM 0.32 -> vLLM 0.33");
    CHECK_FALSE(o.is_open_step);
    CHECK(o.learned.runs == 30);
}

TEST_CASE("a regression of main is red on main and no fault of a branch") {
    const auto lines = runs_at(40, [](std::size_t i) { return i < 30 ? 1 : 1.2; });
    const auto branch = parameters_of(lines), main = parameters_of(lines, {.folder = "h", .appends = true});
    CHECK(branch.objectives[0].is_open_step);
    CHECK(verdict_against({120, 120.5, 119.5}, branch).outcome == verdict::pass);
    CHECK(verdict_against({120, 120.5, 119.5}, main).outcome == verdict::fail);
}
TEST_CASE("a run that joins the history is analysed once, with all of its repeats") {
    const auto lines = runs_at(30, always);
    const vector<double> same = {100, 100.5, 99.5, 100, 100.5};
    CHECK(verdict_against(same, parameters_of(lines)).repeats == 2);
    CHECK(verdict_against(same, parameters_of(lines, {.folder = "h", .appends = true})).repeats == 5);
}

TEST_CASE("an absolute objective believes the noise of the runs, and a calibration before it") {
    const slo absolute = mean(ttft) <= 110_ms;
    const auto h = parameters_of(runs_at(30, always), {.folder = "h"}, {absolute});
    const measurement m = run_of({97, 103}, h, absolute);  // 4 %: two repeats leave that open alone
    measurement alone = m;
    alone.past = nullptr;
    const slo_verdict known = judged(m, absolute), unknown = judged(alone, absolute);
    CHECK(input(known, "history_sd") == about(0.04));
    CHECK(known.estimate.high < unknown.estimate.high);
    measurement calibrated = m;
    calibrated.noise = {{"mean(ttft)", 0.04}};
    CHECK(inputs(judged(calibrated, absolute), "history_sd").empty());
    const slo_verdict noisy = judged(run_of({80, 110, 95}, h, absolute), absolute);
    CHECK(inputs(noisy, "history_sd").empty());  // today's is another noise
}

TEST_CASE("failures that reach a percentile are counted, against the level of the runs") {
    history_lines lines = runs_at(30, always);
    for (history_run& r : lines.runs) r.values[0].name = "p50(ttft)";
    const slo s = p50(ttft) <= 1.05 * baseline;
    const auto h = parameters_of(lines, {.folder = "h"}, {s});
    measurement m = run_of({100, 100, 100}, h, s);
    for (repeat_data& d : m.candidate)
        for (std::size_t i = 0; i < d.records.size(); ++i)
            if (i % 4 != 0) d.records[i].status = request_status::http;
    CHECK(judged(m, s).outcome == verdict::fail);
}

TEST_CASE("what a result keeps of its runs gives the same verdict, bit for bit") {
    const auto moved = [](std::size_t i) { return i == 28 ? 1.10 : i == 9 ? 1.25 : 1; };
    const slo added = mean(ttft) <= 1.01 * baseline + 5_ms;
    const history_parameters h =
        parameters_of(runs_at(29, moved), {.folder = "h", .card = "9c2e"}, {within_5, added});
    json_writer j;
    j.open('{');
    write_fields(j, const_cast<history_parameters&>(h));
    const std::string text = j.close().text();
    json_reader json;
    const json_view* const reported = json.read(text);
    REQUIRE(reported);
    history_parameters again;
    read_fields(*reported, again);
    for (const auto& ms : {vector<double>{100, 101, 99}, {110, 111, 109}, {130, 129, 131}})
        for (const slo& s : {within_5, added}) {
            const slo_verdict a = judged(run_of(ms, h, s), s), b = judged(run_of(ms, again, s), s);
            CHECK(a.outcome == b.outcome);
            CHECK(a.estimate.low == b.estimate.low);
            CHECK(a.estimate.high == b.estimate.high);
            CHECK(str(a.reason) == str(b.reason));
            CHECK(str(a.explain()) == str(b.explain()));
        }
}

TEST_CASE("other error levels move the bounds") {
    judging_rule strict;
    strict.pass_level = 0.01;
    strict.pass_z = 2.8;
    const history_bounds b = history_bounds_of(strict);
    CHECK(b.pass == doctest::Approx(2.326).epsilon(0.001));
    CHECK(b.late_pass == 2.8);
    CHECK(history_bounds_of({}).pass == 1.645);
}
