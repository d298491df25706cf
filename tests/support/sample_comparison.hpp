// A comparison of three settings as reports have one: a row of each kind.
#pragma once

#include "llmbench.hpp"
#include "extensions/compare/core/settings.hpp"
#include "extensions/compare/core/text.hpp"

#include <string>
#include <utility>

namespace sample_gates {

/// Four rounds that spread a little around each value.
inline llmbench::detail::vector<llmbench::detail::values_in_rounds> rounds_of(
    const llmbench::detail::vector<double>& values) {
    llmbench::detail::vector<llmbench::detail::values_in_rounds> all;
    for (std::size_t i = 0; i < values.size(); ++i) {
        all.emplace_back();
        for (const double x : {1.0, 1.02, 0.99, 1.01})
            all.back().measured.push_back(values[i] * (i % 2 == 0 ? x : 1 / x));
    }
    return all;
}
/// `last`: what the third setting is called.
inline llmbench::detail::comparison_report sample_comparison(
    const std::string& last = "budget 4096") {
    using namespace llmbench;
    using namespace llmbench::detail;
    settings_comparison c;
    c.objectives = {p99(itl) <= 60_ms, goodput(ttft <= 500_ms) >= 90_pct};
    c.settings = {{"budget 256", "", {verdict::pass, verdict::inconclusive}},
                  {"budget 1024", "", {verdict::fail, verdict::pass}},
                  {last, "", {verdict::fail, verdict::pass}}};
    c.rounds = c.planned_rounds = 4;
    c.asked = 2;
    const auto add = [&](const statistic_data& what, vector<values_in_rounds> values) {
        c.statistics.push_back(detail::compared(what, std::move(values), prior_sd));
    };
    add(p99(itl).data, rounds_of({0.025, 0.061, 0.066}));
    vector<values_in_rounds> fractions(3);
    for (std::size_t i = 0; i < 3; ++i) {
        fractions[i].measured = {0.9 + 0.03 * static_cast<double>(i)};
        fractions[i].fault = "a fraction";
    }
    add(goodput(ttft <= 500_ms).data, fractions);
    add(mean(ttft).data, rounds_of({0.21, 0.15, 0.1}));
    add(mean(e2e).data, rounds_of({1.05, 1.04, 1.06}));
    vector<values_in_rounds> reached = rounds_of({2, 1.9, 2.1});
    reached[2].measured[1] = infinity;
    reached[2].fault = "failed requests reach it in 1 of 4 rounds";
    add(p99(e2e).data, reached);
    add(make_statistic(statistic_kind::value, metric_id::output_throughput, 0),
        rounds_of({700, 900, 930}));
    return {"chunked prefill", "gates.cpp", 30, c};
}
/// One setting is lost and the time was short.
inline llmbench::detail::comparison_report cut_comparison() {
    llmbench::detail::comparison_report r = sample_comparison();
    r.name = "cut short";
    llmbench::detail::settings_comparison& c = r.found;
    c.rounds = 3;
    c.stopped = "LLMBENCH_TIME_BUDGET of 60 s is spent after 3 of 4 rounds";
    c.settings.resize(2);
    c.settings[1].excluded = "process \"vllm serve\" exited with status 1 before it was ready";
    c.settings[1].verdicts.clear();
    c.statistics.clear();
    llmbench::detail::vector<llmbench::detail::values_in_rounds> values = rounds_of({0.02, 0.02});
    values[1] = {.measured = {}, .pessimistic = {}, .optimistic = {}, .fault = c.settings[1].excluded};
    c.statistics.push_back(llmbench::detail::compared(llmbench::p99(llmbench::itl).data, values,
                                                      llmbench::detail::prior_sd));
    c.asked = 1;
    return r;
}

}  // namespace sample_gates
