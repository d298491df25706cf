#include "llmbench.hpp"
#include "llmbench_capacity.hpp"
#include "llmbench_compare.hpp"
#include "llmbench_history.hpp"
#include "llmbench_machines.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

TEST_CASE("chat stays interactive at 8 requests per second") {
    gate({
        .workload = synthetic{.prompt_tokens = lognormal(512, 0.6), .output_tokens = fixed(128)},
        .arrivals = poisson(8_rps),
        .requests = 300,
        .slos =
            {
                mean(tpot) <= 25_ms,
                p90(ttft) <= 200_ms,
                goodput(ttft <= 300_ms && tpot <= 30_ms) >= 90_pct,
                advisory(p99(ttft) <= 450_ms),
            },
    });
}

TEST_CASE("the server sustains 400 tokens per second when saturated") {
    const result r = run({.workload = dataset{.path = "sharegpt.json", .format = sharegpt},
                          .arrivals = closed_loop(16),
                          .duration = 30_s});
    CHECK_SLO(r, output_throughput >= 400_tps);
    WARN_SLO(r, p90(e2e) <= 20_s);
    CHECK(r.requests().size() > 100);  // plain doctest assertions mix freely
}

TEST_CASE("this branch is not slower than main") {
    gate({.target = endpoint{.url = "http://127.0.0.1:8001"},
          .baseline = endpoint{.url = "http://127.0.0.1:8000"},
          .workload = synthetic{},
          .arrivals = poisson(8_rps),
          .requests = 200,
          .slos = {mean(tpot) <= 1.10 * baseline, p50(ttft) <= 1.10 * baseline}});
}

TEST_CASE("one replica carries 12 requests per second") {
    gate({.workload =
              synthetic{.prompt_tokens = lognormal(512, 0.6), .output_tokens = fixed(128)},
          .arrivals = poisson(up_to(64_rps)),
          .requests = 200,
          .slos = {p90(ttft) <= 500_ms, mean(tpot) <= 40_ms, capacity >= 12_rps}});
}

TEST_CASE("how many users fit") {
    const capacity_result c =
        find_capacity({.workload = conversations{},
                       .arrivals = closed_loop(up_to(256)).think(2_s),
                       .slos = {p95(ttft) <= 2_s, p5(decode_speed) >= 20_tps}});
    CHECK_SLO(c, capacity >= 32_users);
    INFO(c);
    CHECK(c.low() <= c.high());
    CHECK(c.probes() <= 16);
    MESSAGE(c.line().c_str(), c.explain().c_str(), c.limiting_objective().c_str());
}

TEST_CASE("it carries what it has to") {
    gate({.arrivals = constant(up_to(64_rps)), .slos = {error_rate <= 5_pct, capacity >= 2.5_rps}});
}

TEST_CASE("settings beside each other") {
    const comparison_result c = compare(
        {.workload = synthetic{},
         .arrivals = poisson(8_rps),
         .slos = {p90(ttft) <= 500_ms, mean(tpot) <= 40_ms}},
        {{"budget 512",
          process{.command = "vllm serve m --max-num-batched-tokens 512 --port {port}"}},
         {"budget 2048",
          process{.command = "vllm serve m --max-num-batched-tokens 2048 --port {port}"}}});
    compare({}, {{"a", simulated({.prefill_budget = 512})},
                 {"b", endpoint{.url = "http://127.0.0.1:8000"}},
                 {"c", {}}});
    types::list<setting> settings;
    for (const int budget : {512, 2048})
        settings.push_back({"budget", simulated({.prefill_budget = budget})});
    compare({}, settings);
    CHECK_SLO(c["budget 512"], p99(itl) <= 60_ms);
    CHECK_SLO(c.at(1), p99(itl) <= 60_ms);
    CHECK(c.best(p99(itl)) == "budget 512");
    CHECK(c.best(output_throughput) == "budget 2048");
    CHECK(c.ratio("budget 2048", "budget 512", p50(ttft)).high < 1);
    CHECK(c.difference("budget 2048", "budget 512", p50(ttft)) <= 1_ms);
    CHECK_SLO(c.difference("budget 2048", "budget 512"), p50(ttft) <= baseline + 1_ms);
    for (const types::text& name : c.settings()) MESSAGE(name);
    MESSAGE(c, c.line().c_str(), c.explain().c_str());
}

TEST_CASE("shards of one load") {
    const result r = judge_shards({"shard-0", "shard-1"}, {p90(ttft) <= 300_ms}, "nightly");
    CHECK_SLO(r, p50(ttft) <= 300_ms);
}
