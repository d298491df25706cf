// Verdicts on counts: shares, and the guard on errors.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/outcome.hpp"
#include "core/described/verdict_text.hpp"
#include "support/verdicts.hpp"
#include "extensions/answers/api.hpp"

#include <algorithm>
#include <cmath>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

// ---- shares ------------------------------------------------------------------------------------

TEST_CASE("without an error a limit of 0.9 % is shown by 456 requests and not by 422") {
    CHECK(verdict_on_failures(456, 0, error_rate <= 0.9_pct).outcome == verdict::pass);
    CHECK(verdict_on_failures(422, 0, error_rate <= 0.9_pct).outcome == verdict::inconclusive);
    CHECK(verdict_on_failures(816, 0, error_rate <= 0.5_pct).outcome == verdict::pass);
    CHECK(verdict_on_failures(780, 0, error_rate <= 0.5_pct).outcome == verdict::inconclusive);
}

TEST_CASE("errors are shown to exceed their limit by an exact test") {
    // 12 of 400: lower 1 % bound 1.143 %; 11 of 400: 0.994 %.
    const slo_verdict v = verdict_on_failures(400, 12, error_rate <= 1_pct);
    CHECK(v.outcome == verdict::fail);
    CHECK(v.estimate.value == about(0.03));
    CHECK(v.estimate.low == about(0.0106098968824));  // at the level of a fail
    CHECK(v.estimate.high == about(0.053740188).epsilon(1e-7));
    CHECK(v.repeats == 2);
    CHECK(v.requests == 400);
    CHECK(verdict_on_failures(400, 11, error_rate <= 1_pct).outcome == verdict::inconclusive);
}

TEST_CASE("goodput is judged on its misses") {
    // 2 misses of 200: the upper bound is 3.81 % misses. By its two repeats 1 % / sqrt(200) fails.
    const slo_verdict v = verdict_on_failures(200, 2, goodput(ttft <= 1_s) >= 95_pct);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.estimate.value == about(0.99));
    CHECK(v.estimate.low == about(1 - 0.03808653534));
    CHECK(v.estimate.high == about(1 - 0.000707106781));
    CHECK(verdict_on_failures(200, 2, goodput(ttft <= 1_s) >= 97_pct).outcome ==
          verdict::inconclusive);
    CHECK(verdict_on_failures(200, 20, goodput(ttft <= 1_s) >= 97_pct).outcome == verdict::fail);
    CHECK(verdict_on_failures(200, 0, goodput(ttft <= 49_ms) >= 50_pct).outcome == verdict::fail);
}

TEST_CASE("counts are pooled over repeats") {
    // Each repeat alone would be undecided.
    const slo_verdict v = verdict_on_failures(500, 0, error_rate <= 1_pct, 5);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.repeats == 5);
    CHECK(v.requests == 500);
    CHECK(verdict_on_failures(1000, 0, goodput(ttft <= 1_s) >= 99_pct, 5).repeats == 3);
    // Errors are judged on all there is.
    CHECK(verdict_on_failures(1000, 0, error_rate <= 1_pct, 5).repeats == 5);
}

TEST_CASE("one repeat passes no share") {
    const slo_verdict v = verdict_on_failures(1000, 0, error_rate <= 1_pct, 1);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.repeats == 1);
    CHECK(v.estimate.value == 0);
}

TEST_CASE("one repeat shows that far too many requests fail, in whichever order") {
    const auto outcome_of = [](auto&& fails, const slo& s) {
        vector<request> requests;
        for (int i = 0; i < 240; ++i)
            requests.push_back(fails(i) ? failed(100.0 * i) : answered(100.0 * i, 50));
        return judged(measured({repeat_of(requests)}, {s}), s).outcome;
    };
    for (const slo& s : {error_rate <= 1_pct, goodput(ttft <= 1_s) >= 90_pct}) {
        CAPTURE(str(s.text()));
        CHECK(outcome_of([](int i) { return i % 2 == 0; }, s) == verdict::fail);
        CHECK(outcome_of([](int i) { return i >= 120; }, s) == verdict::fail);
        CHECK(outcome_of([](int i) { return i >= 120 && i % 2 == 0; }, s) == verdict::fail);
        CHECK(outcome_of([](int i) { return i % 20 < 10; }, s) == verdict::fail);
        CHECK(outcome_of([](int i) { return i % 48 == 0; }, s) == verdict::inconclusive);
    }
    // A burst within a slice is one, wherever the slices begin.
    for (int at = 0; at < 240; at += 7) {
        const slo s = error_rate <= 0.5_pct;
        CHECK(outcome_of([&](int i) { return i >= at && i < at + 10; }, s) ==
              verdict::inconclusive);
    }
}

TEST_CASE("failures in one burst say less than the same number spread out") {
    vector<request> requests;
    for (int i = 0; i < 200; ++i)
        requests.push_back(i >= 100 && i < 106 ? failed(100.0 * i) : answered(100.0 * i, 50));
    const repeat_data burst = repeat_of(requests);
    const slo s = error_rate <= 1_pct;
    const slo_verdict bursty = judged(measured({burst, burst}, {s}), s),
                      spread = verdict_on_failures(400, 12, s);
    CHECK(spread.outcome == verdict::fail);
    CHECK(bursty.outcome == verdict::inconclusive);
    CHECK(bursty.estimate.value == spread.estimate.value);
    CHECK(bursty.estimate.high > spread.estimate.high);
}

// ---- answers to the same questions --------------------------------------------------------------

namespace {

/// Repeats of 200 questions: `wrong` of them always, `flip` more in every second repeat in turns.
vector<repeat_data> answered_repeats(int repeats, int wrong, int flip) {
    vector<repeat_data> all;
    for (int r = 0; r < repeats; ++r) {
        vector<request> requests;
        for (int i = 0; i < 200; ++i) requests.push_back(answered(100.0 * i, 50));
        repeat_data d = repeat_of(requests);
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            const int k = static_cast<int>(i) * 7 % 200;  // anywhere
            d.records[i].conversation = static_cast<long long>(i);
            d.records[i].right = k >= wrong && (k >= wrong + flip || (k + r) % 2 == 0);
            d.records[i].graded = "7";
        }
        all.push_back(d);
    }
    return all;
}
slo_verdict accuracy_of(int repeats, int wrong, int flip, fraction limit) {
    const slo s = accuracy >= limit;
    return judge_all(measured(answered_repeats(repeats, wrong, flip), {s})).front();
}

}  // namespace

TEST_CASE("questions that are always alike tell more than as many independent trials") {
    // 26 of 200 wrong, 13 %, with 15 % allowed: independent trials would show nothing in 400.
    const slo_verdict v = accuracy_of(2, 26, 0, 85_pct);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.estimate.value == about(0.87));
    CHECK(str(v.reason) == "52 wrong");
    CHECK(input(v, "questions_flipping") == 0);
    CHECK(input(v, "questions_flipping_at_most") == doctest::Approx(4.6).epsilon(0.01));
    CHECK(accuracy_of(2, 30, 0, 85_pct).outcome == verdict::inconclusive);  // the limit itself
    CHECK(accuracy_of(5, 30, 0, 85_pct).outcome == verdict::inconclusive);
}

TEST_CASE("the more questions flip, the less their repeats show") {
    const slo_verdict few = accuracy_of(3, 24, 4, 85_pct), many = accuracy_of(3, 6, 40, 85_pct);
    CHECK(few.estimate.value == about(0.87).epsilon(0.01));
    CHECK(few.outcome == verdict::pass);
    CHECK(many.outcome == verdict::inconclusive);
    CHECK(few.estimate.low > many.estimate.low);
}

TEST_CASE("runs that move as a whole, and stretches that go wrong, show less than flips do") {
    const slo s = accuracy >= 85_pct;
    const auto with = [&](auto&& change) {
        vector<repeat_data> all = answered_repeats(3, 22, 0);
        change(all);
        return judged(measured(all, {s}), s);
    };
    const slo_verdict calm = with([](auto&) {});
    const auto spoil = [](repeat_data& d, std::size_t from, std::size_t step) {
        for (std::size_t k = 0; k < 12; ++k) d.records[from + k * step].right = false;
    };
    const slo_verdict moved = with([&](auto& all) { spoil(all[1], 3, 16); });
    const slo_verdict spread = with([&](auto& all) {
        for (std::size_t r = 0; r < 3; ++r) spoil(all[r], 3 + r, 16);
    });
    const slo_verdict burst = with([&](auto& all) {
        for (std::size_t r = 0; r < 3; ++r) spoil(all[r], 40 + 50 * r, 1);
    });
    CHECK(calm.outcome == verdict::pass);
    CHECK(moved.estimate.low < calm.estimate.low);
    CHECK(moved.outcome == verdict::inconclusive);
    CHECK(burst.estimate.low < spread.estimate.low);
}

TEST_CASE("what was wrong with wrong answers is told apart") {
    vector<repeat_data> all = answered_repeats(3, 60, 0);
    for (repeat_data& d : all) {
        int k = 0;
        for (record& r : d.records) {
            if (*r.right || ++k > 17) continue;
            if (k <= 9) r.finish_reason = "length";
            else if (k <= 15) r.graded = "";
            else r.status = request_status::http;
        }
    }
    const slo s = accuracy >= 85_pct;
    CHECK(str(judge_all(measured(all, {s})).front().reason) ==
          "180 wrong: 27 cut off, 18 unreadable, 6 failed");
}

// ---- the guard on errors -----------------------------------------------------------------------

namespace {

/// 300 requests, of which so many in a row failed from the k-th on.
repeat_data repeat_with_row(int length, int from = 100) {
    vector<request> requests;
    for (int i = 0; i < 300; ++i)
        requests.push_back(i >= from && i < from + length ? failed(100.0 * i)
                                                          : answered(100.0 * i, 50));
    return repeat_of(requests);
}
/// The verdict of the guard on these repeats.
slo_verdict guard_of(const vector<repeat_data>& data) {
    return judge_all(measured(data, {mean(ttft) <= 100_ms})).back();
}
slo_verdict guard_on(int n, int failures) {
    return guard_of({repeat_with_failures(n / 2, failures / 2),
                     repeat_with_failures(n / 2, failures - failures / 2)});
}

}  // namespace

TEST_CASE("the guard passes at or under its limit as observed and says so") {
    for (const int failures : {0, 1, 4}) {
        CAPTURE(failures);
        const slo_verdict v = guard_on(400, failures);
        CHECK(v.outcome == verdict::pass);
    }
    CHECK(str(guard_on(400, 4).reason) ==
          "4 of 400 failed, limit 1 %: within it as observed, not shown");
    CHECK(guard_on(1000, 0).reason.empty());  // shown to be met
}

TEST_CASE("the guard's limit, or a looser one, asks for no more where a gate writes it") {
    for (const fraction limit : {1_pct, 3_pct})
        for (const int failures : {0, 1, 2}) {
            CAPTURE(failures);
            const slo_verdict v = verdict_on_failures(200, failures, error_rate <= limit);
            CHECK(v.outcome == verdict::pass);
            CHECK(is_only_observed(v) == (v.estimate.high > limit.value));
            CHECK(is_only_observed(v) == mentions(v.reason, "within it as observed, not shown"));
        }
    // Closer than the guard, or not within the guard's: it is to be shown.
    CHECK(verdict_on_failures(200, 0, error_rate <= 0.9_pct).outcome == verdict::inconclusive);
    CHECK(verdict_on_failures(200, 4, error_rate <= 3_pct).outcome == verdict::inconclusive);
    CHECK(verdict_on_failures(200, 9, error_rate <= 1_pct).outcome == verdict::fail);
}

TEST_CASE("a guard over its limit as observed is inconclusive until a miss is shown") {
    for (const int failures : {5, 8, 11}) {
        CAPTURE(failures);
        CHECK(guard_on(400, failures).outcome == verdict::inconclusive);
    }
    const slo_verdict v = guard_on(600, 9);
    CHECK(str(v.reason) ==
          "9 of 600 failed, over the limit of 1 %, not shown to be more than chance");
    CHECK(v.advice.empty());  // nobody wrote its limit
    CHECK(guard_on(400, 12).outcome == verdict::fail);
    CHECK(str(guard_on(400, 12).reason) == "12 of 400 failed, limit 1 %");
}

TEST_CASE("a burst in one repeat is no pass, however many good repeats follow") {
    const repeat_data good = repeat_with_failures(300, 0), burst = repeat_with_row(15);
    vector<repeat_data> data = {burst, good};
    const slo_verdict two = guard_of(data);
    CHECK(two.outcome == verdict::inconclusive);
    CHECK(str(two.reason) ==
          "15 of 600 failed, over the limit of 1 %, not shown to be more than one burst");
    data.insert(data.end(), {good, good, good});
    const slo_verdict five = guard_of(data);  // 1 % of all
    CHECK(five.outcome == verdict::inconclusive);
    CHECK(str(five.reason) == "15 of 1500 failed, within the limit of 1 %, but 15 of 300 failed in "
                              "repeat 1: more than chance");
    // The same number, spread evenly.
    CHECK(guard_of(vector<repeat_data>(5, repeat_with_failures(300, 3))).outcome ==
          verdict::pass);
}

TEST_CASE("a burst that comes again in each repeat is a miss") {
    // Each is one event, and a design effect of 15 says so; that none was spared is what shows it.
    vector<repeat_data> data;
    for (const int from : {10, 210, 95}) data.push_back(repeat_with_row(15, from));
    CHECK(guard_of(data).outcome == verdict::inconclusive);
    data.push_back(repeat_with_row(15, 160));
    const slo_verdict v = guard_of(data);
    CHECK(v.outcome == verdict::fail);
    CHECK(str(v.reason) == "60 of 1200 failed, limit 1 %");
    CHECK(input(v, "product_of_fractions") == about(625));
    CHECK(input(v, "product_that_fails") == about(200));
    // A stated limit is missed by the same evidence.
    const slo s = error_rate <= 1_pct;
    CHECK(judged(measured(data, {s}), s).outcome == verdict::fail);
}

TEST_CASE("failures of later repeats are not forgotten") {
    const slo s = error_rate <= 1_pct;
    vector<repeat_data> data(2, repeat_with_failures(300, 0));
    CHECK(judged(measured(data, {s}), s).outcome == verdict::pass);
    data.push_back(repeat_with_row(15));
    CHECK(guard_of(data).outcome == verdict::inconclusive);
    CHECK(judged(measured(data, {s}), s).outcome == verdict::inconclusive);
    data.push_back(repeat_with_failures(300, 60));
    CHECK(guard_of(data).outcome == verdict::fail);
}

TEST_CASE("a gate that states its error rate has no guard") {
    const vector<repeat_data> data = {repeat_with_failures(200, 6),
                                      repeat_with_failures(200, 6)};
    CHECK(judge_all(measured(data, {})).size() == 1);
    CHECK(judge_all(measured(data, {})).back().limit == 0.01);
    CHECK(judge_all(measured(data, {mean(ttft) <= 100_ms})).size() == 2);
    const vector<slo_verdict> own = judge_all(measured(data, {error_rate <= 10_pct}));
    CHECK(own.size() == 1);
    CHECK(own[0].outcome == verdict::pass);
    // What is only noted guards nothing.
    CHECK(judge_all(measured(data, {advisory(error_rate <= 10_pct)})).size() == 2);
}

TEST_CASE("what is only advised costs no repeats unless a number of them is asked for") {
    const auto decisions_on = [](const vector<double>& ttft_ms, const vector<slo>& slos) {
        const measurement m = measured(repeats_with_ttft(ttft_ms), slos);
        return analyse(m, m).verdicts;
    };
    CHECK(all_decided(decisions_on({80, 80, 80}, {mean(ttft) <= 50_ms, p50(ttft) <= 100_ms}), {}));
    CHECK_FALSE(all_decided(decisions_on({99, 99}, {mean(ttft) <= 100_ms}), {}));
    const auto v =
        decisions_on({99, 99}, {mean(ttft) <= 200_ms, advisory(p50(ttft) <= 100_ms)});
    REQUIRE(v[1].outcome == verdict::inconclusive);
    CHECK(all_decided(v, {}));
    CHECK_FALSE(all_decided(v, {.advisory = true}));
}

TEST_CASE("more repeats are not waited for by an invalid verdict, the rest of a load is") {
    const measurement m = measured(
        repeats_with_ttft({80, 80, 80}),
        {mean(ttft) <= 200_ms, p999(ttft) <= 200_ms, advisory(p999(ttft) <= 100_ms)});
    const vector<decision> v = analyse(m, m).verdicts;
    REQUIRE(v[1].outcome == verdict::invalid);
    REQUIRE(v[2].outcome == verdict::invalid);
    CHECK(all_decided(v, {}));
    CHECK(all_decided(v, {.advisory = true}));
    CHECK_FALSE(all_decided(v, {.invalid = true}));
    CHECK(all_decided({v[0], v[2], v[3]}, {.invalid = true}));
    CHECK_FALSE(all_decided({v[0], v[2], v[3]}, {.advisory = true, .invalid = true}));
}

TEST_CASE("a guard is called observed where its reason says that nothing is shown, and only there") {
    for (const int repeats : {1, 2, 3})
        for (const int n : {30, 200, 800, 3000})
            for (const int failures : {0, 1, 5}) {
                CAPTURE(repeats);
                CAPTURE(n);
                CAPTURE(failures);
                const slo_verdict v =
                    judged(measured(vector<repeat_data>(static_cast<std::size_t>(repeats),
                                                        repeat_with_failures(n, failures))),
                           error_rate <= 1_pct, true);
                if (v.outcome != verdict::pass) continue;
                CHECK(is_only_observed(v) == mentions(v.reason, "not shown"));
                CHECK((std::string(verdict_text(v)) == "observed") == (v.estimate.high > v.limit));
            }
    const slo_verdict shown = judged(measured({repeat_with_failures(3000, 0)}), error_rate <= 1_pct, true);
    CHECK(shown.outcome == verdict::pass);
    CHECK(shown.reason.empty());
}

// ---- the interval that is shown -----------------------------------------------------------------

namespace {

/// A repeat of which a part failed, in one row or anywhere, a part was slow, and a part of the
/// answers was wrong or another one than the baseline's.
repeat_data drawn_repeat(generator& random, int n, double bad, bool in_a_row = false) {
    vector<request> requests;
    const double row = in_a_row ? bad * n * random.uniform() : 0;
    const double from = random.uniform() * (n - row);
    for (int i = 0; i < n; ++i) {
        const double due = 100.0 * i, slower = random.uniform() < bad / 3 ? 6 : 1;
        const bool fails = in_a_row ? i >= from && i < from + row : random.uniform() < bad;
        requests.push_back(fails ? failed(due)
                                 : answered(due, slower * 50 * std::exp(0.3 * random.normal()),
                                            slower * 10 * std::exp(0.1 * random.normal())));
    }
    repeat_data d = repeat_of(requests);
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        d.records[i].conversation = static_cast<long long>(i);
        d.records[i].right = i % 50 > 2 && random.uniform() >= bad;
        d.records[i].graded = "7";
        if (!has_failed(d.records[i])) d.records[i].same = random.uniform() >= bad;
    }
    return d;
}

}  // namespace

TEST_CASE("the interval of counts is on one side of the limit where the verdict is decided") {
    // Other causes are left out: a limit on errors is closer than the guard's, repeats end at the
    // first verdict, the first ones decide too little, and counts never show that a percentile of
    // a baseline is met.
    const slo kinds[] = {error_rate <= 0.9_pct,          goodput(ttft <= 150_ms) >= 99_pct,
                         goodput(ttft <= 150_ms) >= 85_pct, accuracy >= 93_pct,
                         same_answers >= 97_pct,         p95(ttft) <= 200_ms,
                         p90(e2e) <= 400_ms,             p1(decode_speed) >= 50_tps,
                         p10(decode_speed) >= 70_tps,    p95(ttft) <= 1.5 * baseline};
    generator random(77);
    int failed_by_repeats[] = {0, 0};
    for (const slo& s : kinds) {
        CAPTURE(str(s.text()));
        int seen[] = {0, 0, 0};
        const auto lacks_one = [&] {
            return (s.factor <= 0 && seen[0] == 0) || seen[1] == 0 || seen[2] == 0;
        };
        for (int trial = 0; trial < 60 || (trial < 250 && lacks_one()); ++trial) {
            CAPTURE(trial);
            const double typical = 0.001 * std::exp(5.5 * random.uniform());
            const int n = 60 + static_cast<int>(random.below(500));
            const bool in_a_row = random.below(3) == 0;
            measurement m;
            m.slos = {s};
            for (int repeats = 1; repeats <= 6; ++repeats) {
                const double times = random.below(4) == 0 ? std::exp(3 * random.uniform()) : 1;
                m.candidate.push_back(
                    drawn_repeat(random, n, std::min(0.9, typical * times), in_a_row));
                if (needs_baseline(s)) {
                    m.baseline.push_back(drawn_repeat(random, n, 0.001));
                    m.baseline.back().variant = run_variant::baseline;
                }
                const int first = needs_baseline(s) ? 4 : 3;
                const slo_verdict v = judge_measurements(m, s);
                if (is_counted(v) && repeats >= first) {
                    CAPTURE(str(v.explain()));
                    const auto &[value, low, high] = v.estimate;
                    const bool is_good = s.at_most ? high <= v.limit : low >= v.limit;
                    const bool is_bad = s.at_most ? low > v.limit : high < v.limit;
                    CHECK((v.outcome == verdict::fail) == is_bad);
                    if (s.factor <= 0) CHECK((v.outcome == verdict::pass) == is_good);
                    else CHECK(v.outcome != verdict::pass);
                    CHECK(low <= high);
                    ++seen[v.outcome == verdict::pass ? 0 : v.outcome == verdict::fail ? 1 : 2];
                    failed_by_repeats[is_request_fraction(s.statistic.metric)] +=
                        v.outcome == verdict::fail &&
                        input(v, "lower_bound") <= input(v, "allowed");
                }
                if (v.outcome == verdict::pass || v.outcome == verdict::fail) break;
            }
        }
        CAPTURE(seen[0]);
        CAPTURE(seen[1]);
        CAPTURE(seen[2]);
        if (s.factor <= 0) CHECK(seen[0] > 0);
        CHECK(seen[1] > 0);
        CHECK(seen[2] > 0);
    }
    CHECK(failed_by_repeats[0] > 0);
    CHECK(failed_by_repeats[1] > 0);
}
