// What holds of every verdict: of slower and failing copies, other orders, its own inputs.
// Reference values of the t and beta distributions were computed with 30 digits.
#include "llmbench.hpp"
#include "core/base/field_json.hpp"
#include "core/base/random.hpp"
#include "core/base/statistics.hpp"
#include "core/described/verdict_text.hpp"
#include "core/stored/arm_fields.hpp"
#include "support/verdicts.hpp"

#include <cmath>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {

/// Requests with random latencies, about 2 % of them failed.
repeat_data random_repeat(std::uint64_t seed, double typical_ttft_ms) {
    generator random(seed);
    vector<request> requests;
    for (int i = 0; i < 30; ++i) {
        const double first = typical_ttft_ms * std::exp(0.3 * random.normal()),
                     gap = 10 * std::exp(0.1 * random.normal());
        const bool fails = random.uniform() < 0.02;
        requests.push_back(fails ? failed(100.0 * i) : answered(100.0 * i, first, gap));
    }
    return repeat_of(requests);
}
measurement random_measurement(std::uint64_t seed) {
    generator random(seed, 1);
    const double typical = 100 * std::exp(0.15 * random.normal());
    const std::uint64_t repeats = 2 + random.below(4);
    measurement m;
    for (std::uint64_t i = 0; i < repeats; ++i)
        m.candidate.push_back(
            random_repeat(seed * 100 + i, typical * std::exp(0.03 * random.normal())));
    return m;
}
/// All that a verdict says, to the last digit.
std::string bytes_of(const slo_verdict& v) {
    json_writer j;
    j.open('{');
    write_fields(j, v);
    return j.close().text() + str(v.explain());
}
std::string bytes_of(const vector<slo_verdict>& all) {
    std::string out;
    for (const slo_verdict& v : all) out += bytes_of(v) + "\n";
    return out;
}
/// The requests in another order, each with its own gaps.
repeat_data permuted(const repeat_data& d, generator& random) {
    vector<std::size_t> order(d.records.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    repeat_data p = d;
    p.records.clear();
    p.gaps.clear();
    p.gap_offsets.clear();
    for (const std::size_t i : order) {
        p.records.push_back(d.records[i]);
        p.gap_offsets.push_back(p.gaps.size());
        for (std::size_t k = 0; k < gap_count(d.records[i]); ++k)
            p.gaps.push_back(d.gaps[d.gap_offsets[i] + k]);
    }
    return p;
}
/// Every time of a request `f` times as far from its planned send.
repeat_data slowed(const repeat_data& d, double f) {
    repeat_data s = d;
    for (record& r : s.records)
        for (long long* t : {&r.first_token_ns, &r.last_token_ns, &r.end_ns})
            if (*t != 0)
                *t = r.scheduled_ns + std::llround(f * static_cast<double>(*t - r.scheduled_ns));
    s.gaps.clear();
    for (const std::uint32_t gap : listed(d.gaps))
        s.gaps.push_back(static_cast<std::uint32_t>(std::lround(f * static_cast<double>(gap))));
    return s;
}
/// The same with more requests failed, each with this probability.
repeat_data with_more_failures(const repeat_data& d, double fraction, generator& random) {
    repeat_data f = d;
    for (record& r : f.records)
        if (random.uniform() < fraction) {
            r.status = request_status::timeout;
            r.first_token_ns = r.last_token_ns = r.end_ns = 0;
            r.events = r.output_tokens = 0;
        }
    return f;
}
template <class Change> measurement changed(const measurement& m, Change&& change) {
    measurement c = m;
    for (auto* variant : {&c.candidate, &c.baseline})
        for (repeat_data& d : *variant) d = change(d);
    return c;
}
const slo all_slos[] = {mean(ttft) <= 110_ms,
                        p50(ttft) <= 105_ms,
                        p90(ttft) <= 160_ms,
                        mean(tpot) <= 11_ms,
                        p90(itl) <= 12_ms,
                        mean(itl) <= 11_ms,
                        p50(e2e) <= 220_ms,
                        max(e2e) <= 500_ms,
                        p50(decode_speed) >= 95_tps,
                        mean(decode_speed) >= 95_tps,
                        p10(prefill_speed) >= 60_tps,
                        mean(normalized_latency) <= 20_ms,
                        p90(ttft_per_prompt_token) <= 16_ms};
/// The outcome of a t verdict, from its inputs and the normal scores of its levels alone. By the
/// repeats' own spread, 2.17 is the score to pass.
verdict redone_from_values(const slo_verdict& v, double pass_z, double fail_z) {
    const double sign = v.objective.at_most ? 1 : -1, limit = input(v, "limit");
    const bool relative = !inputs(v, "ratios").empty();
    vector<double> x;
    for (const double value : inputs(v, relative ? "ratios" : "values"))
        x.push_back(sign * std::log(value / limit));
    const double n = static_cast<double>(x.size());
    double center = 0, squares = 0, own_df = n - 1;
    for (const double d : x) center += d / n;
    for (const double d : x) squares += (d - center) * (d - center);
    const vector<double> stored_values = inputs(v, "stored_values");
    double fractions = 1 / n, days = 0;
    if (!stored_values.empty()) {
        const double m = static_cast<double>(stored_values.size());
        double middle = 0;
        for (const double s : stored_values) middle += std::log(s) / m;
        for (const double s : stored_values) squares += std::pow(std::log(s) - middle, 2);
        own_df += m - 1;
        fractions += 1 / m;
        days = input(v, "day_to_day_sd");
    }
    const double prior = input(v, "prior_df"), s0 = input(v, "prior_sd");
    const double sd = std::sqrt((prior * s0 * s0 + squares) / (prior + own_df));
    const double se = std::sqrt(sd * sd * fractions + days * days);
    const double reported = prior > 0 ? 1 : se * se / (sd * sd * fractions);
    const double df = (prior + own_df) * reported * reported;
    const bool is_quiet = !inputs(v, "pass_margin").empty();
    if (is_quiet || (prior == 0 && !mentions(v.method, "paired"))) pass_z = 2.17;
    const double pass_margin = is_quiet ? 0.02 * (1 - std::pow(0.05, 1 / n)) : 0,
                 fail_margin = is_quiet ? 0.02 * (1 - std::pow(0.01, 1 / n)) : 0;
    CHECK(input(v, "mean") == about(center).epsilon(1e-6));
    CHECK(input(v, "df") == about(df));
    CHECK(input(v, "sd") == about(sd).epsilon(1e-6).scale(1e-9));
    CHECK(input(v, "standard_error") == about(se).epsilon(1e-6).scale(1e-9));
    const double to_pass = student_t_quantile(normal_cdf(pass_z), df),
                 to_fail = student_t_quantile(normal_cdf(fail_z), df);
    CHECK(v.estimate.value == about(limit * std::exp(sign * center)).epsilon(1e-6));
    const double pass_bound = center + to_pass * se + pass_margin,
                 fail_bound = center - to_fail * se - fail_margin;
    const bool is_early_pass = pass_bound < 0 && v.counted_in == verdict_unit::repeat && n < 3;
    const double fail_end = is_early_pass ? 2 * center - pass_bound : fail_bound;
    CHECK(v.estimate.high == about(limit * std::exp(sign * (sign > 0 ? pass_bound : fail_end))).epsilon(1e-6));
    CHECK(v.estimate.low == about(limit * std::exp(sign * (sign > 0 ? fail_end : pass_bound))).epsilon(1e-6));
    return pass_bound < 0   ? verdict::pass
           : fail_bound > 0 ? verdict::fail
                                       : verdict::inconclusive;
}
verdict redone_from_counts(const slo_verdict& v) {
    const double effect = input(v, "design_effect");
    const double k = input(v, "misses") / effect, n = input(v, "trials") / effect;
    const double upper = clopper_pearson_upper(k, n, input(v, "pass_level")),
                 lower = clopper_pearson_lower(k, n, input(v, "fail_level"));
    CHECK(input(v, "upper_bound") == about(upper));
    CHECK(input(v, "lower_bound") == about(lower).scale(1e-12));
    const double allowed = input(v, "allowed");
    return upper <= allowed  ? verdict::pass
           : lower > allowed ? verdict::fail
                             : verdict::inconclusive;
}

}  // namespace

// ---- properties --------------------------------------------------------------------------------

TEST_CASE("the order of requests inside a repeat changes no bit of a verdict on replayed traffic") {
    // Shares are left out on purpose, and percentiles of which failures decide: their design effect
    // is computed in arrival order, and must be.
    generator random(17);
    int decided = 0;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        const measurement m = random_measurement(seed);
        const measurement other =
            changed(m, [&](const repeat_data& d) { return permuted(d, random); });
        for (const slo& s : all_slos) {
            CAPTURE(seed);
            CAPTURE(str(s.text()));
            const slo_verdict v = judged(m, s);
            if (mentions(v.reason, "failed")) continue;
            CHECK(bytes_of(v) == bytes_of(judged(other, s)));
            decided += v.outcome == verdict::pass || v.outcome == verdict::fail;
        }
        measurement pairs = m, other_pairs = other;
        pairs.baseline = changed(m, [](const repeat_data& d) { return slowed(d, 0.93); }).candidate;
        other_pairs.baseline = pairs.baseline;
        CHECK(bytes_of(judged(pairs, mean(ttft) <= 1.1 * baseline)) ==
              bytes_of(judged(other_pairs, mean(ttft) <= 1.1 * baseline)));
    }
    CHECK(decided > 100);
}

TEST_CASE("slower records never turn a fail into a pass, whatever the method") {
    // Where misses are counted there is no proof, since more of them may be less clustered: that it
    // does not happen is what these say.
    const slo fractions[] = {goodput(ttft <= 130_ms) >= 60_pct,
                             goodput(ttft <= 150_ms && itl <= 20_ms) >= 80_pct};
    int failed_before = 0, passed_after = 0, changes = 0;
    const auto check = [&](const measurement& m, const measurement& slow, const slo& s) {
        const verdict before = judged(m, s).outcome, after = judged(slow, s).outcome;
        CAPTURE(str(s.text()));
        CHECK_FALSE((before == verdict::fail && after == verdict::pass));
        failed_before += before == verdict::fail;
        passed_after += after == verdict::pass;
        changes += before != after;
    };
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        CAPTURE(seed);
        const double f = 1 + 0.01 * static_cast<double>(seed % 12 + 1);
        const auto slower = [&](const repeat_data& d) { return slowed(d, f); };
        const measurement m = random_measurement(seed), slow = changed(m, slower);
        for (const slo& s : all_slos) check(m, slow, s);
        for (const slo& s : fractions) check(m, slow, s);

        // Only the candidate is slower than its baseline, or than a stored run.
        measurement pairs, stored_run = m;
        for (std::uint64_t i = 0; i < 8; ++i) {
            pairs.candidate.push_back(random_repeat(seed * 50 + i, 104));
            pairs.baseline.push_back(random_repeat(seed * 50 + i + 7000, 100));
        }
        measurement slow_pairs = pairs;
        for (repeat_data& d : slow_pairs.candidate) d = slowed(d, f);
        check(pairs, slow_pairs, mean(ttft) <= 1.05 * baseline);
        check(pairs, slow_pairs, p50(decode_speed) >= 0.98 * baseline);
        stored_run.stored = {"b.json", 0.02, {{"mean(ttft)", {0.1, 0.1, 0.1, 0.1}}}};
        check(
            stored_run,
            [&] {
                measurement x = stored_run;
                for (repeat_data& d : x.candidate) d = slowed(d, f);
                return x;
            }(),
            mean(ttft) <= 1.05 * baseline);
    }
    CHECK(failed_before > 40);
    CHECK(passed_after > 100);
    CHECK(changes > 50);
}

TEST_CASE("more failures never turn a fail into a pass") {
    // Of all but means, which are over completed requests and have the guard on errors beside them.
    generator random(23);
    const slo counted_slos[] = {error_rate <= 4_pct,         goodput(ttft <= 130_ms) >= 60_pct,
                                p50(ttft) <= 105_ms,         p90(ttft) <= 160_ms,
                                p90(e2e) <= 260_ms,          p10(prefill_speed) >= 60_tps,
                                p50(decode_speed) >= 95_tps, max(e2e) <= 500_ms};
    int failed_before = 0, passed_before = 0, changes = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const double fraction = 0.02 * static_cast<double>(seed % 10 + 1);
        const auto worse = [&](const repeat_data& d) {
            return with_more_failures(d, fraction, random);
        };
        const measurement m = random_measurement(seed), failing = changed(m, worse);
        for (const slo& s : counted_slos) {
            const verdict before = judged(m, s).outcome, after = judged(failing, s).outcome;
            CAPTURE(seed);
            CAPTURE(str(s.text()));
            CHECK_FALSE((before == verdict::fail && after == verdict::pass));
            failed_before += before == verdict::fail;
            passed_before += before == verdict::pass;
            changes += before != after;
        }
    }
    CHECK(failed_before > 30);
    CHECK(passed_before > 30);
    CHECK(changes > 30);
}

TEST_CASE("every method gives the same bytes for the same measurement") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const auto twice = [](measurement m, const vector<slo>& slos) {
            m.slos = slos;
            const measurement copy = m;
            CHECK(bytes_of(judge_all(m)) == bytes_of(judge_all(copy)));
            CHECK(bytes_of(judge_all(m)) == bytes_of(judge_all(m)));
        };
        const vector<slo> replay(std::begin(all_slos), std::end(all_slos));
        measurement m = random_measurement(seed);
        twice(m, replay);
        m.rule.holm = true;
        twice(m, replay);
        m.baseline = m.candidate;
        m.stored = {"b.json", 0.05, {{"mean(ttft)", {0.1, 0.11}}}};
        twice(m, {mean(ttft) <= 1.1 * baseline, p50(decode_speed) >= 0.9 * baseline});
        m.baseline.clear();
        twice(m, {mean(ttft) <= 1.1 * baseline});
    }
}

// ---- verdicts done again from their inputs -----------------------------------------------------

TEST_CASE("a verdict can be done again from its inputs alone") {
    for (const double ms : {80.0, 96.0, 99.0, 104.0, 125.0}) {
        CAPTURE(ms);
        const slo_verdict quiet = verdict_on({ms, 1.02 * ms, 0.99 * ms, ms, 1.01 * ms});
        CHECK(mentions(quiet.method, "t"));
        CHECK(redone_from_values(quiet, 2.12, 2.80) == quiet.outcome);
        const slo_verdict noisy = verdict_on({ms, 1.5 * ms, 0.8 * ms, ms, 1.3 * ms});
        CHECK(str(noisy.method) == "t");
        CHECK(redone_from_values(noisy, 2.12, 2.80) == noisy.outcome);
        const slo_verdict alike = verdict_on({ms, 1.001 * ms, ms, 0.999 * ms, ms});
        CHECK(str(alike.method) == (alike.repeats > 2 ? "t" : "moderated t"));
        CHECK(redone_from_values(alike, 2.12, 2.80) == alike.outcome);
        measurement known = measured(repeats_with_ttft({ms, 1.5 * ms, 0.8 * ms, ms, 1.3 * ms}));
        known.noise = {{"mean(ttft)", 0.05}};
        known.rule.trusts_prior = true;
        const slo_verdict noisier = judged(known, mean(ttft) <= 100_ms);
        CHECK(mentions(noisier.method, "noisy"));
        CHECK(redone_from_values(noisier, 2.12, 2.80) == noisier.outcome);
        vector<double> ratios;
        for (const double wobble : {1.0, 1.002, 0.999, 1.001, 1.0, 0.998, 1.003, 0.997})
            ratios.push_back(ms / 91 * wobble);
        const slo_verdict pairs = verdict_on_pairs(ratios);
        CHECK(mentions(pairs.method, "paired"));
        CHECK(redone_from_values(pairs, 2.12, 2.80) == pairs.outcome);
        measurement m = against_stored({ms, 1.02 * ms, ms, ms, ms}, {0.100, 0.104, 0.096}, 0.02);
        const slo_verdict old = judged(m, mean(ttft) <= 1.1 * baseline);
        CHECK(redone_from_values(old, 2.12, 2.80) == old.outcome);
        m.noise = {{"mean(ttft)", 0.10}};
        const slo_verdict calibrated_one = judged(m, mean(ttft) <= 100_ms);
        CHECK(input(calibrated_one, "prior_sd") == 0.10);
        CHECK(redone_from_values(calibrated_one, 2.12, 2.80) == calibrated_one.outcome);
    }
    for (const int failures : {0, 4, 20, 60}) {
        const slo_verdict errors = verdict_on_failures(600, failures, error_rate <= 2_pct);
        CHECK(redone_from_counts(errors) == errors.outcome);
        const slo_verdict good = verdict_on_failures(600, failures, goodput(ttft <= 1_s) >= 97_pct);
        CHECK(redone_from_counts(good) == good.outcome);
    }
}

TEST_CASE("what a verdict was computed from is told in words, too") {
    const auto reports = [](const slo_verdict& v) {
        const std::string words = str(v.explain());
        CHECK(words.find(str(v.line())) == 0);
        for (const named_values& n : v.inputs)
            for (const double x : n.values) {
                CAPTURE(words);
                CAPTURE(str(n.name));
                CAPTURE(x);
                CHECK(words.find(" " + json_number(x)) != std::string::npos);
            }
    };
    reports(verdict_on({80, 81}));
    reports(verdict_on({70, 130, 70, 130, 70}));
    reports(verdict_on_pairs({1.01, 1, 1, 1.02}));
    // Numbers that stand nowhere by chance.
    measurement m = against_stored({80, 84}, {0.1003, 0.1042, 0.0967}, 0.0317);
    m.noise = {{"mean(ttft)", 0.0723}, {"mean(ttft) / baseline", 0.0619}};
    reports(judged(m, mean(ttft) <= 1.1 * baseline));
    reports(judged(m, mean(ttft) <= 103_ms));
    reports(verdict_on_failures(400, 12, error_rate <= 1_pct));
}
