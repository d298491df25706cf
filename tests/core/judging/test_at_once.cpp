// Verdicts on two variants that were loaded at once.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/described/described.hpp"
#include "core/judging/at_once.hpp"
#include "core/judging/judge.hpp"
#include "extensions/answers/api.hpp"
#include "support/verdicts.hpp"

#include <cmath>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {

/// `n` requests in 120 s whose ttft in ms is `f(i)`; infinite: the request failed.
template <class F> repeat_data load_of(int n, F&& f) {
    vector<request> requests;
    for (int i = 0; i < n; ++i) {
        const double at = 120000.0 * i / n, ms = f(i);
        requests.push_back(std::isinf(ms) ? failed(at) : answered(at, ms));
    }
    repeat_data d = repeat_of(requests);
    d.window = time_interval::between(d.records.front().scheduled_ns,
                                      d.records.front().scheduled_ns + 120'000'000'000);
    return d;
}
template <class F, class G> measurement at_once_of(int n, F&& mine, G&& other) {
    measurement m;
    m.is_at_once = m.by_slices = true;
    m.rule = rule_of({}, 1, 1, 0, 1);
    m.candidate.push_back(load_of(n, mine));
    m.baseline.push_back(load_of(n, other));
    m.baseline.back().variant = run_variant::baseline;
    return m;
}
/// Noise that both servers share, by the time of a request.
double shared_noise(int i) { return 1 + 0.3 * std::sin(i / 7.0) + 0.1 * std::sin(i / 37.0); }
slo_verdict judged_as(measurement m, const slo& s) {
    m.slos = {s};
    return judged(m, s);
}

}  // namespace

TEST_CASE("noise that both servers share cancels") {
    generator random(1, 1);
    vector<double> own(960), twin(960);
    for (double& x : own) x = std::exp(0.05 * random.normal());
    for (double& x : twin) x = std::exp(0.05 * random.normal());
    const auto at = [&](const vector<double>& noise, double factor) {
        return [&noise, factor](int i) {
            return 20 * factor * shared_noise(i) * noise[static_cast<std::size_t>(i)];
        };
    };
    const measurement same = at_once_of(960, at(own, 1), at(twin, 1));
    const slo_verdict v = judged_as(same, mean(ttft) <= 1.05 * baseline);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.repeats == 1);
    CHECK(v.decided_by == verdict_method::slices_at_once);
    CHECK(v.estimate.low > 0.98);
    CHECK(v.estimate.high < 1.02);
    CHECK(inputs(v, "slice_parts").size() == 24);
    CHECK(judged_as(at_once_of(960, at(own, 1.1), at(twin, 1)), mean(ttft) <= 1.05 * baseline)
              .outcome == verdict::fail);
    CHECK(judged_as(at_once_of(960, at(own, 1.05), at(twin, 1)), mean(ttft) <= 1.05 * baseline)
              .outcome == verdict::inconclusive);
    for (const slo& s : {p90(ttft) <= 1.1 * baseline, p50(ttft) <= baseline + 3_ms,
                         mean(ttft) <= baseline + 1_ms}) {
        CAPTURE(str(s.text()));
        CHECK(judged_as(same, s).outcome == verdict::pass);
    }
    const measurement slow = at_once_of(960, at(own, 1.3), at(twin, 1));
    for (const slo& s : {p90(ttft) <= 1.1 * baseline, p50(ttft) <= baseline + 2_ms,
                         mean(ttft) <= baseline + 1_ms}) {
        const slo_verdict missed = judged_as(slow, s);
        CAPTURE(str(missed.line()));
        CHECK(missed.outcome == verdict::fail);
    }
}

TEST_CASE("noise that lasts for several slices widens the interval") {
    vector<double> parts(24, 0.0);
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = std::sin(static_cast<double>(i) / 4);
    const error_at_once blocks = error_by_blocks(parts), neighbours = error_by_neighbours(parts);
    double squares = 0;
    for (const double x : parts) squares += x * x;
    const double independent = std::sqrt(squares);
    CHECK(neighbours.se > 2 * independent);
    CHECK(neighbours.df < 6);
    CHECK(blocks.se > independent);
    CHECK(blocks.df == 5);
}

TEST_CASE("a run that has too few slices says which length would do") {
    measurement m = at_once_of(200, [](int) { return 20; }, [](int) { return 20; });
    for (auto* variant : {&m.candidate, &m.baseline})
        variant->front().window = time_interval::between(
            variant->front().window.from_ns(),
            variant->front().window.from_ns() + 30'000'000'000);
    const slo_verdict v = judged_as(m, mean(ttft) <= 1.05 * baseline);
    CHECK(v.outcome == verdict::invalid);
    CHECK(mentions(v.reason, "both servers were measured at once for 30 s: with answers of this "
                             "length their slices need 40 s"));
}

TEST_CASE("percentiles of servers whose times are exact are told apart, whatever drifts") {
    // Both drift by 0.1 ms, and once both stall for a slice.
    const auto at = [](double ms) {
        return [ms](int i) { return i / 200 == 3 ? 500 : ms + 0.1 * std::sin(i / 150.0); };
    };
    const measurement slower = at_once_of(2400, at(52.5), at(50));
    const auto is_finite = [](const slo_verdict& v) {
        return std::isfinite(v.estimate.low) && std::isfinite(v.estimate.high);
    };
    for (const slo& s : {p90(ttft) <= baseline + 1_ms, p50(ttft) <= baseline + 1_ms,
                         p90(ttft) <= 1.02 * baseline}) {
        const slo_verdict v = judged_as(slower, s);
        CAPTURE(str(v.line()));
        CHECK(v.outcome == verdict::fail);
        CHECK(is_finite(v));
        CHECK(v.estimate.low <= v.estimate.value);
        CHECK(v.estimate.value <= v.estimate.high);
        CHECK(inputs(v, "slice_parts").size() >= 8);
    }
    // Also where a slice has too few requests for its own percentile.
    const auto without_stalls = [](double ms) {
        return [ms](int i) { return ms + 0.1 * std::sin(i / 150.0); };
    };
    const measurement few = at_once_of(1200, without_stalls(52.5), without_stalls(50));
    const slo_verdict fail = judged_as(few, p99(ttft) <= baseline + 1_ms);
    CAPTURE(str(fail.line()));
    CHECK(fail.outcome == verdict::fail);
    CHECK(is_finite(fail));
    for (const slo& s : {p99(ttft) <= baseline + 4_ms, p90(ttft) <= baseline + 4_ms,
                         p90(ttft) <= 1.10 * baseline}) {
        const slo_verdict pass = judged_as(few, s);
        CAPTURE(str(pass.line()));
        CHECK(pass.outcome == verdict::pass);
        CHECK(is_finite(pass));
    }
    CHECK(judged_as(few, p90(ttft) <= baseline + 2500_us).outcome == verdict::inconclusive);
    // Of speeds, the other way round.
    CHECK(judged_as(few, p10(prefill_speed) >= 0.97 * baseline).outcome != verdict::pass);
}

TEST_CASE("stalls of one server are no pass, though the typical slice has none") {
    // In two of 24 slices a server is ten times slower: 8 % of its requests are seen, so that 10 %
    // may be the truth.
    const auto steady = [](int i) { return 50 + 0.1 * std::sin(i / 150.0); };
    const auto stalls = [&](int i) { return (i / 100) % 12 == 3 ? 500 : steady(i); };
    const measurement m = at_once_of(2400, stalls, steady);
    for (const slo& s : {p90(ttft) <= 2.5 * baseline, p90(ttft) <= baseline + 90_ms}) {
        const slo_verdict v = judged_as(m, s);
        CAPTURE(str(v.line()));
        CHECK(v.outcome == verdict::inconclusive);
        CHECK(v.estimate.high > s.factor * 50e-3 + s.offset);
    }
}

TEST_CASE("few values that are far too large fail no equal server") {
    // One request in 500 takes 500 times as long, by luck more of one server.
    const auto at = [](int every) {
        return [every](int i) { return (i % every == 7 ? 500 : 1) * (20 + i % 3); };
    };
    const slo_verdict v =
        judged_as(at_once_of(960, at(190), at(960)), mean(ttft) <= 1.05 * baseline);
    CAPTURE(str(v.line()));
    CHECK(v.outcome == verdict::inconclusive);
}

TEST_CASE("a calibration at once proposes what the slices of its loads show") {
    generator random(9, 1);
    const auto calibrated_with = [&](double sd, const slo& s) {
        measurement m;
        for (int i = 0; i < 3; ++i) {
            const auto noisy = [&](int k) {
                return 20 * shared_noise(k) * std::exp(sd * random.normal());
            };
            const measurement one = at_once_of(960, noisy, noisy);
            m.is_at_once = m.by_slices = true;
            m.rule = one.rule;
            m.candidate.push_back(one.candidate[0]);
            m.baseline.push_back(one.baseline[0]);
        }
        m.slos = {s};
        return calibration_of(m)[0];
    };
    for (const slo& s : {mean(ttft) <= 1.3 * baseline, p90(ttft) <= 1.3 * baseline}) {
        const calibrated quiet = calibrated_with(0.001, s);
        CAPTURE(suggestion_of(quiet));
        CHECK(quiet.sd < 0.001);
        CHECK(suggestion_of(quiet) == "<= 1.02 * baseline");
        const calibrated noisy = calibrated_with(0.3, s);
        CAPTURE(suggestion_of(noisy));
        CHECK(noisy.to_write > 1.025);
        CHECK(noisy.to_write < 1.2);
    }
}

TEST_CASE("failed requests are beyond every percentile") {
    const auto quick = [](int i) { return 20.0 + i % 7; };
    const auto failing = [&](int i) { return i % 5 == 0 ? infinity : quick(i); };
    CHECK(judged_as(at_once_of(960, failing, quick), p90(ttft) <= 2 * baseline).outcome ==
          verdict::fail);
    CHECK(judged_as(at_once_of(960, failing, failing), p90(ttft) <= 2 * baseline).outcome !=
          verdict::pass);
    CHECK(judged_as(at_once_of(960, failing, quick), error_rate <= baseline + 5_pct).outcome ==
          verdict::fail);
    CHECK(judged_as(at_once_of(960, quick, quick), error_rate <= baseline + 1_pct).outcome ==
          verdict::pass);
    // No failure in so few requests shows little.
    CHECK(judged_as(at_once_of(96, quick, quick), error_rate <= baseline + 1_pct).outcome ==
          verdict::inconclusive);
}

TEST_CASE("objectives on the candidate alone are judged by the loads that there are") {
    const auto quick = [](int) { return 20.0; };
    const auto with_answers = [&](int loads, auto&& is_right) {
        measurement m = at_once_of(240, quick, quick);
        for (std::size_t i = 0; i < m.candidate[0].records.size(); ++i) {
            record& r = m.candidate[0].records[i];
            r.conversation = static_cast<long long>(i);
            r.right = is_right(i);
            r.graded = "7";
        }
        for (int i = 1; i < loads; ++i) {
            m.candidate.push_back(m.candidate[0]);
            m.baseline.push_back(m.baseline[0]);
        }
        m.rule = rule_of({}, 1, loads, 0, 1);
        return m;
    };
    const auto half = [](std::size_t i) { return i % 2 == 0; };
    for (const int loads : {1, 2, 3, 4}) {
        CAPTURE(loads);
        const measurement m = with_answers(loads, half);
        CHECK(judged_as(m, accuracy >= 90_pct).outcome == verdict::fail);
        CHECK(judged_as(m, accuracy >= 30_pct).outcome == verdict::pass);
        CHECK(judged_as(m, goodput(ttft <= 10_ms) >= 90_pct).outcome == verdict::fail);
        CHECK(judged_as(m, goodput(ttft <= 30_ms) >= 90_pct).outcome == verdict::pass);
        CHECK(judged_as(m, mean(ttft) <= 1_ms).outcome ==
              (loads > 1 ? verdict::fail : verdict::inconclusive));
        CHECK(judged_as(m, mean(ttft) <= 40_ms).outcome ==
              (loads > 1 ? verdict::pass : verdict::inconclusive));
    }
}

TEST_CASE("a difference of errors has the error that it has at its limit, by bursts") {
    // One row of five in 2400 requests: 4.8 rows would be one in a hundred.
    const auto quick = [](int) { return 20.0; };
    const auto rows = [](int every) {
        return [every](int i) { return i % every < 5 ? infinity : 20.0; };
    };
    const slo s = error_rate <= baseline + 1_pct;
    CHECK(judged_as(at_once_of(2400, quick, quick), s).outcome == verdict::pass);
    CHECK(judged_as(at_once_of(2400, rows(800), quick), s).outcome == verdict::inconclusive);
    CHECK(judged_as(at_once_of(2400, rows(500), quick), s).outcome == verdict::inconclusive);
    CHECK(judged_as(at_once_of(2400, rows(20), quick), s).outcome == verdict::fail);
}

TEST_CASE("bursts of different sizes show less of their size than equal ones") {
    const auto with_rows = [](const vector<std::size_t>& rows) {
        vector<bool> misses(600);
        std::size_t at = 10;
        for (const std::size_t row : rows) {
            for (std::size_t i = 0; i < row; ++i) misses[at + i] = true;
            at += 40;
        }
        return burst_estimate_of({misses}, 0.01);
    };
    CHECK(with_rows({5, 5, 5}).size == about(5));
    CHECK(with_rows({5, 5, 5}).error == 0);
    CHECK(with_rows({9}).error == 0);
    // By hand: (1 + 81) / 10, and the root of 2 * (7.2^2 + 7.2^2), over 10.
    CHECK(with_rows({1, 9}).size == about(8.2));
    CHECK(with_rows({1, 9}).error == about(1.44));
    CHECK(with_rows({}).size == 1);
}

TEST_CASE("gaps that were too many to keep have no slices, and the verdict says so") {
    const auto quick = [](int) { return 20.0; };
    measurement m = at_once_of(240, quick, quick);
    for (auto* variant : {&m.candidate, &m.baseline}) {
        repeat_data& d = variant->front();
        d.gaps_counted = true;
        d.gap_offsets.clear();
    }
    const slo_verdict v = judged_as(m, mean(itl) <= 1.05 * baseline);
    CHECK(v.outcome == verdict::invalid);
    CHECK(mentions(v.reason, "the gaps between events were too many to keep each one"));
}
