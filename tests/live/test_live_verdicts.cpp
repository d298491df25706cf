// Verdicts end to end, on servers in real time: what a gate says of a healthy, a slow, a crowded
// and a changed server, what each variable of the environment makes of it, and that its records
// give the same verdicts again.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/scripted_server.hpp"

#include <chrono>
#include <cstring>
#include <set>
#include <vector>

using namespace llmbench;
using namespace live;
using texts::replaced;

namespace {

// ---- an engine whose pace is known

/// Every token takes a step, however many run. Steps are so long that a busy machine's hiccups stay
/// small beside them, and medians do not see the few that are hit.
engine engine_of(time_span step) {
    engine e;
    e.decode_step = step;
    e.step_per_sequence = 0_ms;
    e.prefill_per_token = 0_ms;
    return e;
}
scenario chat_on(const engine& e, const char* name) {
    scenario s = quick_scenario(simulated(e));
    s.name = name;
    s.arrivals = poisson(40_rps);
    s.warmup = 10;
    s.requests = 48;
    return s;
}
/// As short as a gate can be.
scenario brief(const any_target& target, const char* name) {
    scenario s = quick_scenario(target);
    s.name = name;
    s.workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = uniform(6, 10)};
    s.arrivals = closed_loop(4);
    s.warmup = 4;
    s.requests = 16;
    return s;
}

std::set<int> repeats_of(const result& r) {
    std::set<int> repeats;
    for (const record& x : r.requests()) repeats.insert(x.repeat);
    return repeats;
}
std::vector<record> measured_of(const result& r, int repeat) {
    std::vector<record> found;
    for (const record& x : r.requests())
        if (x.repeat == repeat && x.phase == run_phase::measure) found.push_back(x);
    return found;
}

std::string quoted(const std::string& s) { return "\"" + s + "\""; }

// ---- the same verdict, bit for bit

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }
bool same_inputs(const slo_verdict& a, const slo_verdict& b) {
    bool same = a.inputs.size() == b.inputs.size();
    for (std::size_t i = 0; same && i < a.inputs.size(); ++i) {
        const auto &x = a.inputs[i].values, &y = b.inputs[i].values;
        same = std::string(a.inputs[i].name) == std::string(b.inputs[i].name) &&
               x.size() == y.size() && !x.empty() &&
               std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
    }
    return same;
}
void check_same(const slo_verdict& a, const slo_verdict& b) {
    CHECK(std::string(a.line()) == std::string(b.line()));
    CHECK(std::string(a.explain()) == std::string(b.explain()));
    CHECK(std::string(a.arithmetic) == std::string(b.arithmetic));
    CHECK(std::string(a.advice) == std::string(b.advice));
    CHECK(a.outcome == b.outcome);
    CHECK(same_bits(a.estimate.value, b.estimate.value));
    CHECK(same_bits(a.estimate.low, b.estimate.low));
    CHECK(same_bits(a.estimate.high, b.estimate.high));
    CHECK(same_bits(a.limit, b.limit));
    CHECK(same_bits(a.detectable, b.detectable));
    CHECK(a.repeats == b.repeats);
    CHECK(a.requests == b.requests);
    CHECK(same_inputs(a, b));
}
/// Judges the run again by its files, and finds what the run itself found.
void check_rejudged(const result& r, const slo_list& slos) {
    const auto again = judge(report_file("records.jsonl"), slos, r.name());
    REQUIRE(again.size() == r.verdicts().size());
    for (std::size_t i = 0; i < again.size(); ++i) check_same(again[i], r.verdicts()[i]);
}

// ---- the time budget, counted from the start of the program

const auto program_began = std::chrono::steady_clock::now();
std::string budget_from_now(double seconds) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - program_began;
    return std::to_string(elapsed.count() + seconds);
}

}  // namespace

// ---- fast, slow, at the limit, over capacity

TEST_CASE(
    "a gate with 10 percent of headroom passes in two repeats, and fails on an engine 20 "
    "percent slower") {
    scenario s = chat_on(engine_of(30_ms), "headroom of 10 percent");
    s.slos = {p50(tpot) <= 33_ms, goodput(ttft_from_send <= 5_s && tpot <= 1_s) >= 80_pct,
              p90(itl) <= 1_s};
    const result healthy = run(s);
    check_passes(healthy);
    CHECK(verdict_of(healthy, "p50(tpot) <= 33 ms").repeats == 2);
    CHECK(repeats_of(healthy).size() == 2);
    check_rejudged(healthy, s.slos);

    s.name = "20 percent slower";
    s.target = simulated(engine_of(36_ms));
    const result slower = run(s);
    CHECK(outcome_of(slower, "p50(tpot) <= 33 ms") == verdict::fail);
    CHECK(outcome_of(slower, "goodput(ttft_from_send <= 5 s && tpot <= 1 s) >= 80 %") ==
          verdict::pass);
    CHECK(slower.estimate(p50(tpot)).value > 0.035);
    check_rejudged(slower, s.slos);
}

TEST_CASE("a server right at its limit is inconclusive or decided rightly, and never invalid") {
    scenario s = brief(simulated(engine_of(15_ms)), "at the limit");
    s.repeats = 2;
    const double typical = run(s).estimate(p50(tpot)).value;
    CHECK(typical > 0.014);
    s.name = "right at the limit";
    s.repeats = 0;
    s.slos = {p50(tpot) <= time_span::from_seconds(typical)};
    const result r = run(s);
    const slo_verdict v = r.verdicts()[0];
    CHECK(v.outcome != verdict::invalid);
    if (v.outcome == verdict::pass) CHECK(v.estimate.high < typical);
    if (v.outcome == verdict::fail) CHECK(v.estimate.value > typical);
    if (v.outcome == verdict::inconclusive) {
        CHECK(v.repeats == 5);
        CHECK(v.estimate.high >= typical);
        CHECK_FALSE(v.advice.empty());
    }
    check_rejudged(r, s.slos);
}

TEST_CASE("a load of twice the capacity is told as over-saturated") {
    engine e = engine_of(10_ms);
    e.slots = 2;  // 50 requests of four tokens a second
    scenario s = quick_scenario(simulated(e));
    s.name = "twice the capacity";
    s.workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(4)};
    s.arrivals = constant(100_rps);
    s.warmup = 4;
    s.requests = 120;
    // From the send: a late client is not to blame for these.
    s.slos = {mean(ttft_from_send) <= 1_min, mean(ttft_from_send) <= 50_ms, p50(tpot) <= 1_s};
    const result r = run(s);
    CHECK(outcome_of(r, "mean(ttft_from_send) <= 60 s") == verdict::invalid);
    CHECK(outcome_of(r, "mean(ttft_from_send) <= 50 ms") == verdict::fail);
    CHECK(outcome_of(r, "p50(tpot) <= 1 s") == verdict::invalid);
    CHECK(outcome_of(r, "error_rate <= 1 %") == verdict::pass);
    for (std::size_t i = 0; i < s.slos.size(); ++i)
        CHECK(holds(r.verdicts()[i].reason, "over-saturated: requests in flight grew by"));
    check_rejudged(r, s.slos);
}

// ---- fresh traffic

TEST_CASE("stages of fresh traffic differ, the last one is twice as long, and the gate passes") {
    scenario s = quick_scenario();
    s.name = "fresh";
    s.workload = synthetic{.prompt_tokens = uniform(32, 96), .output_tokens = uniform(4, 20)};
    s.warmup = 10;
    s.requests = 60;
    s.traffic = fresh;
    // The last one is never shown by so few, so that every stage is sent.
    s.slos = {p90(ttft_from_send) <= 5_s, mean(tpot) <= 1_s,
              goodput(ttft_from_send <= 30_s) >= 80_pct, advisory(error_rate <= 0.2_pct)};
    const result r = run(s);
    CHECK(outcome_of(r, "p90(ttft_from_send) <= 5 s") == verdict::pass);
    CHECK(outcome_of(r, "mean(tpot) <= 1 s") == verdict::pass);
    CHECK(outcome_of(r, "goodput(ttft_from_send <= 30 s) >= 80 %") == verdict::pass);
    CHECK(outcome_of(r, "advisory(error_rate <= 0.2 %)") == verdict::inconclusive);
    REQUIRE(repeats_of(r).size() == 3);
    std::set<std::vector<int>> lengths;
    std::set<std::vector<long long>> gaps;
    for (const int stage : {0, 1, 2}) {
        const std::vector<record> sent = measured_of(r, stage);
        CHECK(sent.size() == (stage == 2 ? 120 : 60));
        std::vector<int> outputs;
        std::vector<long long> between;
        for (std::size_t i = 1; i < 60; ++i) {
            outputs.push_back(sent[i].output_tokens);
            between.push_back(sent[i].scheduled_ns - sent[i - 1].scheduled_ns);
        }
        lengths.insert(outputs);
        gaps.insert(between);
    }
    CHECK(lengths.size() == 3);
    CHECK(gaps.size() == 3);
    check_rejudged(r, s.slos);
}

// ---- stored baselines

TEST_CASE("a baseline is written when asked for, and later runs are compared with it") {
    const scratch files;
    const std::string file = files.file("baselines/chat.json");
    scenario s = brief(simulated(engine_of(10_ms)), "writes a baseline");
    s.baseline = stored(file.c_str());
    s.slos = {p50(tpot) <= 1.5 * baseline, p50(ttft_from_send) <= 1.5 * baseline,
              p50(e2e) <= 1_min};
    const auto relative = {"p50(tpot) <= 1.5 * baseline", "p50(ttft_from_send) <= 1.5 * baseline"};
    {
        const variable writing("LLMBENCH_WRITE_BASELINE", "1");
        const result r = run(s);
        CHECK(repeats_of(r).size() == 5);
        for (const char* slo : relative) {
            CHECK(outcome_of(r, slo) == verdict::skipped);
            CHECK(holds(reason_of(r, slo), "written to " + file));
        }
        CHECK(outcome_of(r, "p50(e2e) <= 60 s") == verdict::pass);
    }
    // Gates are told apart by their names, in a baseline and where records are judged again.
    const auto rename = [&](const std::string& from, const std::string& to) {
        write(file, replaced(content_of(file), quoted(from), quoted(to)));
        s.name = to.c_str();
    };
    rename("writes a baseline", "compares with a baseline");
    const std::string written = content_of(file);
    const result same = run(s);
    for (const char* slo : relative) CHECK(outcome_of(same, slo) == verdict::pass);
    CHECK(same.verdicts()[0].estimate.value == doctest::Approx(1).epsilon(0.2));
    check_rejudged(same, s.slos);
    CHECK(content_of(file) == written);  // no run writes it by itself

    rename("compares with a baseline", "slower than its baseline");
    s.target = simulated(engine_of(30_ms));
    const result slower = run(s);
    for (const char* slo : relative) CHECK(outcome_of(slower, slo) == verdict::fail);
    CHECK(outcome_of(slower, "p50(e2e) <= 60 s") == verdict::pass);
    check_rejudged(slower, s.slos);
}

TEST_CASE("a baseline that is not there is refused with how to write it") {
    scenario s = brief(simulated(engine_of(2_ms)), "no baseline yet");
    const scratch files;
    const std::string file = files.file("chat.json");
    s.baseline = stored(file.c_str());
    s.slos = {mean(tpot) <= 1.5 * baseline};
    CHECK(holds(refusal_of(s), file));
    CHECK(holds(refusal_of(s), "LLMBENCH_WRITE_BASELINE=1"));
    CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a baseline that could not be written is refused before the load") {
    const scratch files;
    write(files.file("a file"), "");
    const logging_server host(engine_of(2_ms));
    scenario s = brief(endpoint{.url = host.url()}, "nowhere to write");
    s.slos = {mean(tpot) <= 1.5 * baseline};
    const variable writing("LLMBENCH_WRITE_BASELINE", "1");
    for (const std::string& file : {files.file("a file/b.json"), files.file("")}) {
        s.baseline = stored(file.c_str());
        CHECK(holds(refusal_of(s), "stored(" + quoted(file) + ")"));
    }
    CHECK(host.log().empty());
}

TEST_CASE("a baseline of other traffic, another model or gate is refused with what differs") {
    const scratch files;
    const std::string file = files.file("b.json");
    const logging_server host(engine_of(2_ms));
    scenario s = brief(endpoint{.url = host.url()}, "refused baseline");
    s.arrivals = poisson(200_rps);
    s.baseline = stored(file.c_str());
    s.slos = {mean(tpot) <= 1.5 * baseline, p50(e2e) <= 1_min};
    {
        const variable writing("LLMBENCH_WRITE_BASELINE", "1");
        s.repeats = 2;
        run(s);
    }
    const std::size_t requests_before = host.log().size();
    const auto refused_for = [&](const char* field, const scenario& other) {
        const std::string why = refusal_of(other);
        INFO(why);
        CHECK(holds(why, file));
        CHECK(holds(why, field));
    };
    const std::string good = content_of(file);
    CHECK(holds(good, "llmbench/result/1"));

    const auto varied = [&](auto&& change) {
        scenario other = s;
        change(other);
        return other;
    };
    refused_for("model is \"simulated\" and this gate's is \"another\"", varied([&](scenario& o) {
                    o.target = endpoint{.url = host.url(), .model = "another"};
                }));
    refused_for("api is \"openai_chat\"", varied([&](scenario& o) {
                    o.target = endpoint{.url = host.url(), .api = openai_completions};
                }));
    refused_for("workload is", varied([](scenario& o) {
                    o.workload =
                        synthetic{.prompt_tokens = fixed(17), .output_tokens = uniform(6, 10)};
                }));
    refused_for("arrivals is", varied([](scenario& o) { o.arrivals = poisson(201_rps); }));
    refused_for("seed is \"1\" and this gate's is \"2\"", varied([](scenario& o) { o.seed = 2; }));
    refused_for("16 requests", varied([](scenario& o) { o.requests = 17; }));
    refused_for("4 to warm up", varied([](scenario& o) { o.warmup = 5; }));
    refused_for("options is", varied([](scenario& o) { o.options.system_prompt = "Be brief."; }));
    refused_for("options is", varied([](scenario& o) { o.options.temperature = 0.5; }));
    refused_for("\"refused baseline\"", varied([](scenario& o) { o.name = "a new name"; }));
    refused_for("p50(normalized_latency)",
                varied([](scenario& o) { o.slos = {p50(normalized_latency) <= 1.5 * baseline}; }));

    write(file, replaced(good, "\"metrics/1\"", "\"metrics/0\""));
    refused_for("definitions version", s);
    write(file, replaced(good, "llmbench/result/1", "llmbench/result/9"));
    refused_for("schema", s);
    write(file, good.substr(0, good.size() / 2));
    refused_for("is not a result", s);
    write(file, "");
    refused_for("is not a result", s);
    CHECK(host.log().size() == requests_before);  // all of it before the first request
}

// ---- calibration

TEST_CASE("LLMBENCH_CALIBRATE runs as often as asked, prints and writes a table, judges nothing") {
    scenario s = brief(simulated(engine_of(10_ms)), "calibrated");
    s.slos = {mean(tpot) <= 12_ms, output_throughput >= 1_tps, goodput(e2e <= 20_s) >= 20_pct};
    std::string said;
    {
        const variable three("LLMBENCH_CALIBRATE", "3");
        const heard console;
        const result r = run(s);
        said = console.text();
        CHECK(repeats_of(r).size() == 3);
        for (const slo_verdict& v : r.verdicts()) {
            CHECK(v.outcome == verdict::skipped);
            CHECK(holds(v.reason, "calibration"));
        }
    }
    CHECK(holds(said, "calibration over 3 repeats"));
    for (const char* words : {"noise sd", "headroom / sd", "judged on counts"})
        CHECK(holds(said, words));
    const std::string file = report_file("calibration.json");
    for (const char* words : {"llmbench/calibration/1", "calibrated", "mean(tpot)", "headroom_sd"})
        CHECK(holds(content_of(file), quoted(words)));
    CHECK(holds(content_of(file), "\"suggestion\": \"<= "));

    const variable read("LLMBENCH_CALIBRATION", file);
    CHECK(outcome_of(run(s), "output_throughput >= 1 tok/s") == verdict::pass);
}

TEST_CASE("LLMBENCH_CALIBRATION gives the noise of the gates that it knows") {
    const scratch files;
    const auto prior_of = [](const result& r) {
        for (const named_values& input : r.verdicts()[0].inputs)
            if (std::string(input.name) == "prior_sd") return input.values[0];
        return 0.0;
    };
    write(files.file("noise.json"),
          R"json({"schema": "llmbench/calibration/1", "gates": [{"name": "noisy", "slos": [
          {"statistic": "mean(tpot)", "sd": 0.25}, {"statistic": "p50(e2e)", "sd": null}]}]})json");
    const variable read("LLMBENCH_CALIBRATION", files.file("noise.json"));
    scenario s = brief(simulated(engine_of(2_ms)), "noisy");
    s.slos = {mean(tpot) <= 1_s};
    s.repeats = 2;
    const result r = run(s);
    CHECK(prior_of(r) == 0.25);
    check_rejudged(r, s.slos);  // the report keeps the noise
    s.name = "not in the file";
    CHECK(prior_of(run(s)) <= 0.05);  // what is believed of quiet machines, and of others
    s.name = "noisy";
    s.slos = {p50(e2e) <= 10_s};
    CHECK(prior_of(run(s)) <= 0.05);
}

// ---- values of variables

TEST_CASE("a variable that makes no sense is refused in one sentence with its name and value") {
    const scratch files;
    write(files.file("empty"), "");
    write(files.file("other.json"), R"({"schema": "llmbench/result/1", "gates": []})");
    scenario s = brief(simulated(engine_of(2_ms)), "bad values");
    const auto refuses = [&](const char* name, const std::string& value) {
        const variable bad(name, value);
        const std::string why = refusal_of(s);
        INFO(name, "=", value, ": ", why);
        CHECK(holds(why, name));
        CHECK(holds(why, value));
        CHECK(why.find('\n') == std::string::npos);
        CHECK(why.size() < 200);
    };
    for (const char* value : {"soon", "0", "-5", "5h", "1e30", "nan", "inf", "300 s", "5minutes"})
        refuses("LLMBENCH_TIME_BUDGET", value);
    for (const char* value : {"2", "101", "0", "-3", "three", "3.5", "3x", " 3", "1e1"})
        refuses("LLMBENCH_CALIBRATE", value);
    for (const char* name : {"missing", "empty", "other.json", ""})
        refuses("LLMBENCH_CALIBRATION", files.file(name));
    for (const char* value : {"0", "-1", "many", "1.5", "99999999999999999999"})
        refuses("LLMBENCH_SEED", value);
    for (const char* value : {"green", "FAIL", "1"}) refuses("LLMBENCH_INCONCLUSIVE", value);
    for (const char* name : {"LLMBENCH_WRITE_BASELINE", "LLMBENCH_SKIP_WITHOUT_SERVER"})
        for (const char* value : {"maybe", "2", "YES "}) refuses(name, value);

    const variable three("LLMBENCH_CALIBRATE", "3");
    s.traffic = fresh;
    CHECK(holds(refusal_of(s), "LLMBENCH_CALIBRATE: traffic is fresh"));
    s.traffic = replayed;
    s.baseline = stored(files.file("b.json").c_str());
    const variable writing("LLMBENCH_WRITE_BASELINE", "1");
    CHECK(holds(refusal_of(s), "LLMBENCH_CALIBRATE and LLMBENCH_WRITE_BASELINE are both set"));
}

// ---- the time budget

TEST_CASE("a gate that the time budget cuts off is inconclusive with the reason") {
    scenario s = brief(simulated(engine_of(5_ms)), "one repeat fits");
    s.arrivals = constant(10_rps);  // two seconds a repeat
    s.slos = {mean(tpot) <= 5_s, p50(ttft_from_send) <= 5_s};
    const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(3.7));
    const result r = run(s);
    CHECK(repeats_of(r) == std::set<int>{0});
    for (const char* slo : {"mean(tpot) <= 5 s", "p50(ttft_from_send) <= 5 s"}) {
        CHECK(outcome_of(r, slo) == verdict::inconclusive);
        CHECK(holds(reason_of(r, slo), "LLMBENCH_TIME_BUDGET of"));
        CHECK(holds(reason_of(r, slo), "after 1 of 5 repeats"));
        CHECK(verdict_of(r, slo).requests == 16);
        CHECK(verdict_of(r, slo).advice.empty());  // no other limit would have been decided
    }
    check_rejudged(r, s.slos);
}

TEST_CASE("a repeat that the time budget cuts in the middle is no evidence") {
    // Five quick answers, then none any more.
    std::vector<scripted::answer> script(5, scripted::healthy(3));
    script.push_back({scripted::stall()});
    const scripted::server host(script);
    scenario s;
    s.name = "cut in the second repeat";
    s.target = endpoint{.url = host.url()};
    s.workload = prompts({"hi"});
    s.warmup = 0;
    s.requests = 5;
    s.slos = {max(e2e) <= 30_s, error_rate <= 20_pct};
    const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(2));
    const result r = run(s);
    CHECK(host.log().size() == 6);
    CHECK(all_ok(r).size() == 5);
    for (const slo_verdict& v : r.verdicts()) {
        CHECK(v.outcome == verdict::inconclusive);
        CHECK(holds(v.reason, "after 1 of 5 repeats"));
    }
    CHECK(r.estimate(error_rate).value == 0);
    check_rejudged(r, s.slos);
    // The cut one is in the records all the same, for whoever wants to know.
    CHECK(holds(content_of(report_file("records.jsonl")),
                "\"gate\":\"cut in the second repeat\",\"arm\":\"candidate\",\"repeat\":1"));
}

TEST_CASE("where the time budget leaves nothing measured, nothing is said to hold") {
    scenario s = brief(simulated(engine_of(5_ms)), "nothing measured");
    s.arrivals = constant(1_rps);
    s.slos = {mean(tpot) <= 5_s, goodput(e2e <= 30_s) >= 80_pct};
    const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(1));
    const result r = run(s);
    CHECK(r.requests().empty());
    REQUIRE(r.verdicts().size() == 3);
    for (const slo_verdict& v : r.verdicts()) {
        CHECK(v.outcome == verdict::inconclusive);
        CHECK(holds(v.reason, "after 0 of 5 repeats"));
        CHECK(std::isnan(v.estimate.value));
        CHECK(v.advice.empty());
    }
    check_rejudged(r, s.slos);
}

// ---- judged again

TEST_CASE("a gate against a live baseline is judged again from its records") {
    scenario s = brief(simulated(engine_of(10_ms)), "live baseline");
    s.baseline = simulated(engine_of(10_ms));
    s.slos = {p50(tpot) <= 1.5 * baseline,
              p50(normalized_latency) <= 2 * baseline,
              mean(tpot) <= 1_s,
              p90(itl) <= 2 * baseline,
              output_throughput >= 0.5 * baseline,
              goodput(itl <= 1_s && e2e <= 20_s) >= 60_pct};
    s.requests = 32;
    const result r = run(s);
    CHECK(outcome_of(r, "p50(tpot) <= 1.5 * baseline") == verdict::pass);
    CHECK(r.verdicts()[0].repeats >= 4);
    check_rejudged(r, s.slos);
}

TEST_CASE("a saturating gate is judged again with its throughput, and after failures too") {
    engine e = engine_of(5_ms);
    e.faults.error_rate = 10_pct;
    e.faults.reset_rate = 10_pct;
    scenario s = brief(simulated(e), "saturated");
    s.requests = 60;
    s.slos = {output_throughput >= 10_tps,
              total_throughput >= 10_tps,
              request_throughput >= 1_rps,
              p50(itl) <= 1_s,
              p95(itl) <= 1_s,
              max(e2e) <= 20_s,
              p5(decode_speed) >= 1_tps,
              goodput(ttft <= 20_s) >= 50_pct,
              advisory(p90(ttft) <= 20_s)};
    const result r = run(s);
    CHECK(outcome_of(r, "output_throughput >= 10 tok/s") == verdict::pass);
    CHECK(outcome_of(r, "error_rate <= 1 %") == verdict::fail);
    CHECK(outcome_of(r, "max(e2e) <= 20 s") == verdict::fail);  // a failure is infinitely late
    check_rejudged(r, s.slos);
    // Other objectives than the run's own may be asked for, and agree with the result's.
    const slo_list others = {p50(tpot) <= 1_ms, mean(normalized_latency) <= 1_s};
    const auto again = judge(report_file("records.jsonl"), others, "saturated");
    REQUIRE(again.size() == 3);
    for (std::size_t i = 0; i < 2; ++i) check_same(again[i], judge(r, others[i]));
}

TEST_CASE("records can be judged elsewhere; what needs every event needs the right events.bin") {
    scenario s = brief(simulated(engine_of(2_ms)), "taken elsewhere");
    s.repeats = 2;
    s.slos = {p50(ttft) <= 20_s, p50(itl) <= 1_s, output_throughput >= 1_tps};
    const result r = run(s);
    const scratch files;
    for (const char* name : {"records.jsonl", "result.json", "events.bin"})
        std::filesystem::copy_file(report_file(name), files.file(name));
    const std::string records = files.file("records.jsonl");
    const auto refusal = [&](const slo& what, const char* gate = "taken elsewhere") {
        return refusal_by([&] { judge(records, {what}, gate); });
    };
    for (std::size_t i = 0; i < 3; ++i)
        check_same(judge(records, s.slos, "taken elsewhere")[i], r.verdicts()[i]);

    // Which gate
    const std::string unknown = refusal(s.slos[0], "takn elsewhere");
    CHECK(holds(unknown, "no measured gate \"takn elsewhere\""));
    CHECK(holds(unknown, "\"taken elsewhere\""));
    CHECK(holds(refusal(p50(tpot) <= 2 * baseline), "no baseline"));
    CHECK(holds(refusal(p99(ttft) <= 2_s), "at least 300"));

    // What events are needed for
    const std::string events = content_of(files.file("events.bin"));
    const auto needs_events = [&](const char* why) {
        for (const slo& what : {s.slos[1], s.slos[2], slo(goodput(itl <= 1_s) >= 50_pct)}) {
            CHECK(holds(refusal(what), "needs the time of every event"));
            CHECK(holds(refusal(what), why));
        }
        check_same(judge(records, {s.slos[0]}, "taken elsewhere")[0], r.verdicts()[0]);
    };
    std::string changed = events;
    changed[changed.size() - 1] = static_cast<char>(changed.back() ^ 1);
    write(files.file("events.bin"), changed);
    needs_events("hash");
    write(files.file("events.bin"), events.substr(0, events.size() - 4));
    needs_events("hash");
    std::filesystem::remove(files.file("events.bin"));
    needs_events("cannot be read");

    // Files that are not there, or not what they should be
    const std::string lines = content_of(records);
    write(records, lines + "{\"id\":\"x\"}\n");
    CHECK(holds(refusal(s.slos[0]), "records.jsonl:"));
    write(records, "");
    CHECK(holds(refusal(s.slos[0]), "no records of repeat 0"));
    const std::size_t last_line = lines.rfind('\n', lines.size() - 2) + 1;
    write(records, lines.substr(0, last_line));
    CHECK(holds(refusal(s.slos[0]), "whole lines, the result beside it tells of"));

    // A later gate of the same program was killed: its gaps, whole lines and half of one.
    write(records, lines + replaced(lines.substr(last_line), "taken elsewhere", "killed") +
                       lines.substr(last_line, 100));
    write(files.file("events.bin"), events + "1234abc");
    for (std::size_t i = 0; i < 3; ++i)
        check_same(judge(records, s.slos, "taken elsewhere")[i], r.verdicts()[i]);
    std::filesystem::remove(records);
    CHECK(holds(refusal(s.slos[0]), "records.jsonl cannot be read"));
    write(files.file("result.json"), "{}");
    CHECK(holds(refusal(s.slos[0]), "is not a result"));
    std::filesystem::remove(files.file("result.json"));
    CHECK(holds(refusal(s.slos[0]), "result.json cannot be read"));
}

// ---- more gaps than are kept

TEST_CASE("a gate of more gaps than are kept says so, decides the same and is judged the same") {
    const slo_list slos = {p90(itl) <= 1_s, mean(itl) <= 1_ms, output_throughput >= 1_tps,
                           goodput(itl <= 1_s) >= 50_pct};
    scenario s = brief(simulated(engine_of(2_ms)), "all gaps kept");
    s.client.threads = 2;
    s.slos = slos;
    const result exact = run(s);
    // The first repeat has 20 requests of 5 to 9 gaps: the second one is more than there is room for.
    const gaps_kept few(0);
    s.name = "few gaps kept";
    const heard said;
    const result counted = run(s);
    for (std::size_t i = 0; i < 4; ++i)
        CHECK(exact.verdicts()[i].outcome == counted.verdicts()[i].outcome);
    CHECK(outcome_of(counted, "p90(itl) <= 1 s") == verdict::pass);
    CHECK(outcome_of(counted, "mean(itl) <= 1 ms") == verdict::fail);
    CHECK(holds(said.text(), "gaps were too many to keep each one, so its percentiles are within 0.2 %"));
    CHECK(holds(content_of(report_file("summary.md")), "were too many to keep"));
    CHECK(holds(content_of(report_file("report.html")), "were too many to keep"));
    const std::string json = content_of(report_file("result.json"));
    CHECK(holds(json, "\"gaps_counted\": true"));
    CHECK(holds(json, "\"itl_relative_error\": 0.001953125"));
    check_rejudged(exact, slos);
    check_rejudged(counted, slos);
}
