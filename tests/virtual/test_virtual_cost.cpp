// What a server costs: dollars for a million output tokens, on every report and as an objective.
#include "support/loads.hpp"
#include "llmbench_embeddings.hpp"

#include <cstdio>
#include <string>

using namespace llmbench;
using namespace live;

namespace {

/// Eight users, whose tokens come every 20 ms: 400 tokens a second at most.
scenario priced(const char* name, double usd) {
    scenario s = load_on(engine_of(20_ms), name);
    s.duration = {};
    s.requests = 60;
    s.arrivals = closed_loop(8);
    if (usd > 0) s.cost = usd_per_hour(usd);
    return s;
}

}  // namespace

TEST_CASE("a million tokens cost what the server does while it generates them") {
    scenario s = priced("priced", 3.6);  // a tenth of a cent a second
    const result r = run(s);
    const double rate = r.measured(output_throughput);
    CHECK(rate > 200);
    CHECK(r.measured(cost_per_million_tokens) == doctest::Approx(1000 / rate));
    const estimate_t typical = r.estimate(cost_per_million_tokens);
    CHECK(typical.value == doctest::Approx(1000 / r.estimate(output_throughput).value));
    CHECK(typical.low < typical.value);
    CHECK(typical.value < typical.high);

    // Twice the price is twice the cost, and half of a limit is missed.
    const double fair = 1000 / rate * 1.1;
    s.slos = {cost_per_million_tokens <= money(fair), cost_per_million_tokens <= money(fair / 2)};
    const result judged = run(s);
    CHECK(judged.verdicts()[0].outcome == verdict::pass);
    CHECK(judged.verdicts()[1].outcome == verdict::fail);
    CHECK(judged.verdicts()[0].measured == doctest::Approx(1000 / rate).epsilon(0.05));
    check_rejudged(judged, s.slos);
}

TEST_CASE("every report has the cost, where a price was given") {
    const auto [free, said_of_it] = heard_of(priced("free", 0));
    CHECK_FALSE(holds(said_of_it, "USD"));
    CHECK_FALSE(reported_gate("free").get("candidate").contains("cost_per_million_tokens"));

    const auto [r, said] = heard_of(priced("in every report", 2.5));
    const double cost = r.measured(cost_per_million_tokens);
    char words[60];
    std::snprintf(words, sizeof words, "%.3g USD per million output tokens", cost);
    CHECK(holds(said, words));
    const std::string files = report_files_with(words);
    for (const char* file : {"summary.md", "report.html"}) CHECK(holds(files, file));
    const picojson::value variant = reported_gate("in every report").get("candidate");
    CHECK(variant.get("cost_per_million_tokens").get<double>() == doctest::Approx(cost));
    CHECK(variant.get("repeats").get(0).get("usd_per_hour").get<double>() == 2.5);
}

TEST_CASE("a result without a price has no cost, and says so where one is asked for") {
    const result r = run(priced("no price", 0));
    CHECK(std::isnan(r.measured(cost_per_million_tokens)));
    CHECK(holds(refusal_by([&] { judge(r, cost_per_million_tokens <= 1_usd); }),
                "the scenario does not say what the server costs"));
}

TEST_CASE("an answer that is no token has no cost") {
    scenario s = priced("embeddings", 2.5);
    s.target = endpoint{.url = "http://127.0.0.1:9", .api = openai_embeddings};
    CHECK(holds(refusal_of(s), "cost is told for a million output tokens, and "));
}
