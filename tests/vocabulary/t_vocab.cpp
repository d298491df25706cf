// Every public name, in a file that has included and opened everything a user may have.
#include <bits/stdc++.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include <signal.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_faults.hpp"
#include "llmbench_answers.hpp"
#include "llmbench_capacity.hpp"
#include "llmbench_compare.hpp"
#include "llmbench_embeddings.hpp"
#include "llmbench_history.hpp"
#include "llmbench_machines.hpp"
#include "llmbench_simulated.hpp"
#include "llmbench_switched.hpp"
#include "llmbench_websocket.hpp"
#include "llmbench_work.hpp"
using namespace llmbench;
using namespace std;
using namespace std::chrono;
using namespace std::chrono_literals;

static scenario base = {
    .target = simulated(engine{.slots = 32}),
    .workload = prompts({"one", "two"}),
    .arrivals = poisson(8_rps).max_in_flight(64),
    .warmup = 10_s,
    .requests = 300,
};
static const slo_list chat = {p99(ttft) <= 300_ms, mean(tpot) <= 25_ms};

TEST_CASE("all fields in order") {
    gate({
        .name = "everything",
        .target = process{.command = "server --port {port}",
                          .ready = "/health",
                          .env = {{"A", "1"}, {"B", "2"}},
                          .working_directory = "/srv",
                          .restart_between_repeats = true},
        .baseline = stored("main.json"),
        .workload = dataset{.path = "x.jsonl", .format = openai_jsonl},
        .arrivals = gamma(8_rps, 0.5),
        .warmup = 20,
        .requests = 300,
        .duration = 30_s,
        .repeats = 3,
        .stop = at_first_miss,
        .slos = chat,
        .seed = 42,
        .limits = {.connect = 2_s,
                   .first_event = 30_s,
                   .between_events = 10s,
                   .total = 300_s,
                   .drain = 60_s},
        .options = {.max_tokens = 256,
                    .temperature = 0.7,
                    .system_prompt = "be brief",
                    .ignore_eos = true,
                    .stream = true,
                    .extra_body = R"({"top_k": 1})"},
        .client = {.threads = 2, .spin = true},
        .judging = {.false_pass = 5_pct, .false_fail = 1_pct, .holm = true},
        .on_fail = profile{.start = "nsys start", .stop = "nsys stop", .duration = 3_s},
        .cost = usd_per_hour(2.5),
    });
}
TEST_CASE("targets") {
    CHECK(process{.env = {{"A", "1"}}}.env.size() == 1);
    CHECK(prompts({"a", "b"}).items.size() == 2);
    int n = 5;
    (void)scenario{.seed = n};
    scenario s = base;
    s.target = endpoint{.url = "http://h",
                        .model = "m",
                        .api = openai_completions,
                        .api_key_env = "KEY",
                        .headers = {{"X-A", "1"}, {"X-B", "2"}},
                        .metrics_url = "http://h/metrics",
                        .tls = {.verify = false}};
    for (auto a : {openai_chat, openai_completions, openai_responses, tgi, triton, ollama,
                   ollama_generate, llama_cpp, sglang, plain_text, anthropic})
        s.target = endpoint{.url = "u", .api = a};
    for (auto a : {openai_embeddings, rerank, score, sglang_score})
        s.target = endpoint{.url = "u", .api = a};
    s.target = endpoint{.telemetry = {"http://h:94/metrics"}, .cold = "./to_zero", .ready_within = 1min};
    s.target = process{.command = "x", .env = {secret("B", "2")}};
    s.target = endpoint{.api = openai_responses, .transport = websocket()};
    s.target = switched(endpoint{.url = "u"}, vllm_sleep(1));
    s.baseline = switched(process{.command = "x"}, vllm_sleep(2), {.restart_every = 4});
    s.baseline = switched(endpoint{.url = "v"}, sglang_release(), {.is_asleep = true});
    s.baseline = switched(endpoint{.url = "v"}, post("/sleep"), post("/wake_up"));
    s.baseline = switched(endpoint{.url = "v"}, sleep_requests{.state = "/is_sleeping"}, switch_options{});
    s.prepare = {post("/reset_prefix_cache")};
    s.warmup = until_stable(60s);
    s.options = {.stream = true, .events_are_tokens = true, .include_usage = true,
                 .continuous_usage = true,
                 .server_history = true, .max_tokens_field = "max_completion_tokens", .documents = 4, .cancel_after = 500ms};
    s.baseline = history();
    s.baseline = simulated(engine{});
    s.target = simulated();
    s.target = simulated({.slots = 8,
                          .decode_step = 10_ms,
                          .prefill_per_token = 50us,
                          .keeps_responses = 100,
                          .jitter = 0.1,
                          .faults = {.error_rate = 1_pct,
                                     .wrong_answers = 1_pct,
                                     .wrong_in_batch = 1_pct,
                                     .stop_after = 100,
                                     .restart_after = 50,
                                     .metrics_hang = true,
                                     .forgets = 1_pct,
                                     .ignores_history = true}});
    s.on_fail = profile{};
    s.pairs = at_once;
    s.pairs = in_turns;
    const pairing both = pairing::at_once;
    (void)both;
    s.baseline = process{.command = "x"};
    s.baseline = s.target;
    s.baseline = otherwise{.options = request_options{.max_tokens = 16}};
    s.baseline = otherwise{.options = request_options{.extra_body = "{}"}, .model = "adapter"};
    s.baseline = otherwise{.options = request_options{}};
    gate({.target = endpoint{.url = "u"},
          .baseline = simulated(engine{.slots = 3}),
          .slos = {mean(tpot) <= 1.05 * baseline, mean(tpot) <= baseline,
                   mean(tpot) <= 105_pct * baseline, output_throughput >= 0.95 * baseline,
                   mean(ttft) <= baseline + 1_ms, p99(itl) <= baseline + 200_us,
                   p90(ttft) <= 1.05 * baseline + 1ms, decode_throughput >= baseline - 10_tps,
                   mean(running_requests) <= baseline + 2}});
    string url = "http://x";
    string_view sv = "m";
    s.target = endpoint{.url = url, .model = std::string(sv)};
}
TEST_CASE("what fields are made of has names, and leaves list to std") {
    types::text name = base.name + types::text("!");
    const types::list<types::text> names = {name, "two"};
    types::maybe<int> max_items = dataset{}.max_items;
    const types::whole requests = base.requests;
    const list<types::text> same(names.begin(), names.end());
    const vector<string> words(same.begin(), same.end());
    CHECK(words.size() + (max_items ? 1 : 0) == static_cast<size_t>(requests));
}
TEST_CASE("lengths and loads") {
    auto heavy = base;
    heavy.arrivals = poisson(16_rps);
    for (auto d : {fixed(128), uniform(1, 5), normal(512, 100), lognormal(512, 0.6),
                   empirical("lengths.txt")})
        heavy.workload = synthetic{.prompt_tokens = d, .output_tokens = 128};
    heavy.workload = synthetic{.prompt_tokens = 512_tokens, .output_tokens = fixed(size_t{3})};
    heavy.arrivals = constant(0.5_rps);
    heavy.arrivals = gamma(2_rps, 0.25).max_in_flight(8);
    heavy.arrivals = ramp(1_rps, 32_rps, 2_min);
    heavy.arrivals = ramp(1_rps, 32_rps, 2min);
    heavy.arrivals = steps({{4_rps, 30_s}, {.rate = 8_rps, .lasts = 30s}}).max_in_flight(8);
    heavy.arrivals = replay("trace.csv");
    heavy.arrivals = all_at_once();
    heavy.arrivals = all_at_once().held(post("/pause?mode=keep"), post("/resume"));
    heavy.arrivals = closed_loop(16).think(2_s).ramp(10s);
    heavy.requests = vector<int>(5).size();
    heavy.duration = 1500ms;
    heavy.duration = 1.5s;
    heavy.duration = 1h;
    heavy.warmup = 5s;
    heavy.workload = synthetic{.prompt_tokens = from_trace(0.5, 4096), .output_tokens = from_trace()};
    heavy.workload = generated([](request_index i, draw& random) -> prompt {
        return {.text = i > 3 ? "one" : "two", .output_tokens = random.below(9)};
    });
    for (auto w : {sharegpt, dolly, openai_jsonl, coco_captions, text_lines})
        heavy.workload = dataset{.path = "p", .format = w};
    for (auto w : {gsm8k, qa_jsonl}) heavy.workload = questions{.path = "p", .format = w};
    for (auto w : {exact, last_number, choice})
        heavy.workload = questions{.path = "p", .grade = w, .before = "Q: ", .after = "A:", .max_items = 9};
    vector<string> v{"a", "b"};
    heavy.workload = prompts(v);
    heavy.workload = prompts({"a", string("b")});
    heavy.workload = mix({{.name = "base", .weight = 70}, {.name = "sql", .weight = 30, .model = "sql-lora"}});
    gate(heavy);
}
TEST_CASE("side tasks") {
    auto heavy = base;
    const side_task one = {.name = "flush", .every = 1s, .steps = {post("/flush_cache")}, .may_fail = true};
    heavy.beside = {one, {.name = "kill", .steps = {command("kill -9 $(cat pid)"), command(string("sleep 1"))}, .first = 5_s}};
    heavy.baseline = otherwise{.alone = true};
    heavy.slos = {p99(itl).of(during("flush")) <= 200_ms, p50(ttft) <= 1.1 * baseline};
    gate(heavy);
    gate({.arrivals = closed_loop(2), .duration = 5_s, .slos = {p50(ttft) <= 1_s},
          .beside = {{.name = "adapters", .every = 1_s, .steps = {post("/a", R"({"b": 1})"), post("/c")}}}});
}
TEST_CASE("slos") {
    const slo_list all = {
        p50(ttft) <= 300_ms,
        p75(tpot) <= 300ms,
        p90(itl) <= 0.5_s,
        p95(e2e) <= 20_s,
        p99(normalized_latency) <= 50_ms,
        p999(ttft_from_send) <= 1500us,
        startup_time <= 2_min,
        p5(decode_speed) >= 15_tps,
        min(decode_speed) >= 1_tps,
        percentile(ttft_per_prompt_token, 0.42) <= 1_ms,
        max(itl) <= 2_s,
        mean(queue_time) <= 1_min,
        mean(server_prefill_time) <= 300ms,
        mean(server_decode_time) <= 2_s,
        mean(queue_time) <= 1.1 * baseline,
        max(queued_requests) <= 8,
        mean(running_requests) >= 2,
        max(kv_cache_usage) <= 95_pct,
        preemptions <= 0,
        prefix_cache_hits >= 60_pct,
        acceptance_length >= 2.2,
        energy_per_token <= 0.6_J, cost_per_million_tokens <= 0.4_usd,
        p50(prefill_speed) >= 1000_tps,
        p50(decode_speed) >= 20.5_tps,
        p90(time_to_first_answer) <= 5_s,
        p95(second_token_gap) <= 80_ms,
        mean(tokens_per_event) >= 1.8,
        output_throughput >= 400_tps,
        total_throughput >= 400_tps,
        prefill_throughput >= 400_tps,
        decode_throughput >= 400_tps,
        request_throughput >= 7.5_rps,
        error_rate <= 0.5_pct,
        error_rate <= 99.5_pct,
        accuracy >= 93_pct,
        accuracy >= 0.98 * baseline,
        same_answers >= 60_pct,
        goodput(ttft <= 300_ms && tpot <= 30ms && decode_speed >= 20_tps) >= 95_pct,
        max(server_metric("vllm:num_requests_waiting")) <= 10,
        mean(server_metric("x")) <= 0.5,
        advisory(p99(ttft) <= 450_ms),
        p10(decode_speed) >= 15_tps,
        p1(decode_speed) >= 15_tps,
        p90(first_turn_ttft) <= 1s,
        p90(later_turn_ttft) <= 1s,
        p50(session_time) <= 4min,
        input_throughput >= 400_tps,
        first_answer_time <= 90s,
        recovery_time <= 30s,
        cached_share >= 50_pct,
        of(cached_share, turns(2)) >= 85_pct,
        of(error_rate, label("chat") && depth(1)) <= 1_pct,
        drift(output_throughput) >= 95_pct,
        p95(of_request("gap", in_seconds, [](const request_view& q) { return q.gap(0); })) <= 200ms,
        p5(of_request("rate", in_tokens_per_second, [](const request_view& q) { return q.turn(); })) >= 2_tps,
        mean(of_request("cost", less_is_better, [](const request_view& q) { return q.events(); })) <= 2,
        mean(of_request("gain", more_is_better, [](const request_view& q) { return q.turn(); })) >= 2,
        p99(ttft) <= 1.1 * baseline,
        p99(ttft) <= 300_ms,
    };
    gate({.slos = all});
    const auto r = run(base);
    for (const auto& s : all) {
        CHECK_SLO(r, s);
        cout << s << '\n';
    }
    WARN_SLO(r, goodput(ttft <= 300_ms && tpot <= 30_ms) >= 95_pct);
    REQUIRE_SLO(run({.requests = 3, .duration = 3_s}), p99(ttft) <= 1_s);
    CHECK_SLO(r, advisory(error_rate <= 1_pct));
    CHECK(max(3, 4) == 4);
    CHECK(fixed(3).a > 0);
    CHECK(min(3, 4) == 3);
    cout << std::fixed << 1.0 << '\n';
    CHECK(::gamma(3.0) > 0);
    (void)time(nullptr);
    (void)y0(1.0);
    duration<double> dd{1.0};
    scenario z{.duration = dd};
    (void)z;
    (void)r.estimate(p99(ttft));
    (void)r.estimate(error_rate);
    (void)r.verdicts();
    (void)r.self_check();
    const slo_verdict v = judge(r, all[0]);
    cout << v.line() << v.explain() << v.estimate.value << to_string(v.outcome) << exit_code()
         << '\n';
    CHECK(v.outcome != verdict::invalid);
    for (const record& q : r.requests())
        if (q.phase == run_phase::measure && q.status == request_status::ok) cout << q.id;
    const curve_result by_load = curve(base, {2_rps, 4.5_rps});
    const vector<offered_load> users = {8_users, 16_users};
    cout << by_load << by_load[2_rps].name() << curve(base, users).low() << money(0.4_usd).usd;
    on_report([](const report_view& view) { cout << view.json << view.exit_code; });
    cout << read_result("result.json").gates.size();
    INFO("as text: ", all[0]);
    std::ostringstream os;
    os << all[0];
    CHECK(os.str() == "p50(ttft) <= 300 ms");
    auto baseline = 3;
    auto ttft = 4;
    auto limits = 5;
    auto endpoint = 6;
    (void)baseline;
    (void)ttft;
    (void)limits;
    (void)endpoint;  // user's own names
}
TEST_CASE("counts of work") {
    gate({.workload = conversations{.turns = fixed(3)},
          .arrivals = closed_loop(4),
          .requests = 24,
          .slos = {cached_tokens == expected, cached_tokens >= 0.98 * expected,
                   prefilled_tokens <= 2'200, generated_tokens <= 1.05 * baseline,
                   server_requests == 24, preemptions == 0, engine_steps <= 900,
                   drafted_tokens >= 1, accepted_tokens >= 1, advisory(counted("x_total") == 0)},
          .prepare = {post("/reset_prefix_cache")}});
    const slo_list more = {cached_tokens >= 98_pct * expected, prefilled_tokens == baseline};
    CHECK(more.size() == 2);
}
TEST_CASE("searches, comparisons and shards") {
    gate({.arrivals = constant(up_to(64_rps)), .slos = {p90(ttft) <= 500_ms, capacity >= 2.5_rps}});
    const capacity_result c =
        find_capacity({.workload = conversations{},
                       .arrivals = closed_loop(up_to(256)).think(2_s),
                       .slos = {p95(ttft) <= 2_s, p5(decode_speed) >= 20_tps}});
    CHECK_SLO(c, capacity >= 32_users);
    INFO(c);
    CHECK(c.low() <= c.high());
    CHECK(c.probes() <= 16);
    MESSAGE(c.line().c_str(), c.explain().c_str(), c.limiting_objective().c_str());

    types::list<setting> settings = {{"a", simulated({.prefill_budget = 512})}, {"b", endpoint{}}, {"c", {}}};
    settings.push_back({"d", process{.command = "vllm serve m --port {port}"}});
    const comparison_result d = compare(base, settings);
    CHECK_SLO(d["a"], p99(itl) <= 60_ms);
    CHECK_SLO(d.at(1), p99(itl) <= 60_ms);
    CHECK(d.best(p99(itl)) == "a");
    CHECK(d.ratio("b", "a", p50(ttft)).high < 1);
    CHECK(d.difference("b", "a", p50(ttft)) <= 1_ms);
    CHECK_SLO(d.difference("b", "a"), p50(ttft) <= baseline + 1_ms);
    for (const types::text& name : d.settings()) MESSAGE(name);
    MESSAGE(d, d.line().c_str(), d.explain().c_str());

    const result r = judge_shards({"shard-0", "shard-1"}, {p90(ttft) <= 300_ms}, "nightly");
    CHECK_SLO(r, p50(ttft) <= 300_ms);
}
