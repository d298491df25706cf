// What is done to a server beside its load: when, at what cost, and what becomes of a gate whose
// side task fails.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/scripted_server.hpp"
#include "llmbench_faults.hpp"

#include <string>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {
side_task adapters(time_span every) {
    return {.name = "adapters",
            .every = every,
            .steps = {post("/load_lora_adapter", R"({"lora_name": "x"})"),
                      post("/unload_lora_adapter", R"({"lora_name": "x"})")}};
}
scenario beside(const side_task& task, const char* name, const engine& e = engine_of(4_ms)) {
    scenario s = quick_scenario(simulated(e));
    s.name = name;
    s.workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(8)};
    s.arrivals = poisson(20_rps);
    s.warmup = 10;
    s.requests = 200;
    s.slos = {p50(ttft) <= 1_s};
    s.beside = {task};
    return s;
}
picojson::array repeats_of_arm(const picojson::value& gate, const char* variant) {
    return gate.get(variant).get("repeats").get<picojson::array>();
}
/// Seconds after the window began, of each step of the first task of a repeat.
std::vector<double> step_times(const picojson::value& repeat) {
    std::vector<double> at;
    for (const picojson::value& s : repeat.get("beside").get(0).get("steps").get<picojson::array>())
        at.push_back(s.get("from_ns").get<double>() * 1e-9);
    return at;
}
scripted::server answering_posts(std::vector<std::string>& bodies, int wait_ms, const char* status) {
    return scripted::server([&bodies, wait_ms, status](const scripted::request& r) {
        if (r.path != "/reload") return scripted::healthy();
        bodies.push_back(r.body + " " + r.header("Authorization"));
        return scripted::answer{scripted::wait(scripted::milliseconds(wait_ms)),
                                scripted::send(scripted::json(status, R"({"who": "sk-1234-key"})"))};
    });
}
}  // namespace

TEST_CASE("adapters that come and go cost what the same load without them does not") {
    engine e = engine_of(4_ms);
    e.adapter_load = 200_ms;
    scenario s = beside(adapters(0.5_s), "adapters", e);
    s.baseline = otherwise{.alone = true};
    s.slos = {p50(ttft) <= 3 * baseline, p50(ttft).of(during("adapters")) <= 1_s,
              advisory(p50(ttft).of(during("adapters")) <= 20_ms)};
    const heard_run heard = heard_of(s);
    const std::string said = texts::unwrapped(heard.said);
    CAPTURE(said);
    const result& r = heard.result;
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    CHECK(r.verdicts()[1].outcome == verdict::pass);
    CHECK(r.verdicts()[2].outcome == verdict::fail);  // they wait for the loading
    CHECK(r.measured(p99(ttft)) > 0.1);
    CHECK(holds(said, "beside the load: \"adapters\": "));
    CHECK(holds(said, "nothing done beside the load"));
    const picojson::value gate = reported_gate("adapters");
    for (const picojson::value& repeat : repeats_of_arm(gate, "baseline"))
        CHECK(!repeat.contains("beside"));
    const picojson::array repeats = repeats_of_arm(gate, "candidate");
    REQUIRE(repeats.size() >= 4);
    const std::vector<double> first = step_times(repeats[0]);
    REQUIRE(first.size() >= 18);
    for (std::size_t i = 0; i < first.size(); ++i) {
        const bool is_left_over = i + 1 == first.size();  // the unloading of the last one
        if (!is_left_over) CHECK(first[i] == doctest::Approx(0.5 * static_cast<double>(i + 1)).epsilon(0.1));
    }
    CHECK(first.size() % 2 == 0);
    for (const picojson::value& repeat : repeats) CHECK(step_times(repeat).size() == first.size());
    CHECK(holds(content_of(report_file("report.html")), "POST /unload_lora_adapter"));
    check_rejudged(r, s.slos);
}

TEST_CASE("a step that fails makes the gate invalid, and where it may it is told") {
    side_task t{.name = "unload", .every = 1_s,
                .steps = {post("/unload_lora_adapter", R"({"lora_name": "x{n}"})")}};
    scenario s = beside(t, "failing step");
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::invalid);
    CHECK(holds(std::string(r.verdicts()[0].reason), "a side task failed in repeat 1: \"unload\", POST "
                "/unload_lora_adapter was answered with HTTP 404"));
    check_rejudged(r, s.slos);
    t.may_fail = true;
    s.beside = {t};
    const heard_run heard = heard_of(s);
    CHECK(heard.result.verdicts()[0].outcome == verdict::pass);
    CHECK(holds(texts::unwrapped(heard.said), "failed (POST /unload_lora_adapter was answered with"));
}

TEST_CASE("a step under way delays the next one, and neither the load nor the clock waits for it") {
    std::vector<std::string> bodies;
    const variable set("SIDE_KEY", "sk-1234-key");
    const scripted::server server = answering_posts(bodies, 1500, "200 OK");
    scenario s = beside({.name = "slow", .every = 1_s, .steps = {post("/reload", "round {n}")}}, "slow step");
    s.target = endpoint{.url = server.url(), .model = "m", .api_key_env = "SIDE_KEY"};
    s.workload = prompts({"one"});
    const heard_run heard = heard_of(s);
    CHECK(heard.result.verdicts()[0].outcome == verdict::pass);
    CHECK(holds(texts::unwrapped(heard.said), "began late, by up to"));
    CHECK(heard.result.measured(max(ttft)) < 0.01);
    REQUIRE(bodies.size() >= 10);
    CHECK(bodies[0] == "round 1 Bearer sk-1234-key");
    CHECK(bodies[1] == "round 2 Bearer sk-1234-key");
    const picojson::array repeats = repeats_of_arm(reported_gate("slow step"), "candidate");
    const std::vector<double> at = step_times(repeats[0]);
    for (std::size_t i = 1; i < at.size(); ++i)
        CHECK(at[i] - at[i - 1] == doctest::Approx(1.5).epsilon(0.02));
}

TEST_CASE("steps that a slow one held up are left out, and do not follow at once") {
    int asked = 0;
    const scripted::server server([&](const scripted::request& r) {
        if (r.path != "/reload") return scripted::healthy();
        const int ms = ++asked == 2 ? 4500 : 1;
        return scripted::answer{scripted::wait(scripted::milliseconds(ms)),
                                scripted::send(scripted::json("200 OK", "{}"))};
    });
    scenario s = beside({.name = "held", .every = 1_s, .steps = {post("/reload")}}, "held steps");
    s.target = endpoint{.url = server.url(), .model = "m"};
    s.workload = prompts({"one"});
    heard_of(s);
    const std::vector<double> at = step_times(repeats_of_arm(reported_gate("held steps"), "candidate")[0]);
    REQUIRE(at.size() >= 5);
    for (std::size_t i = 0; i < 5; ++i)  // 3 to 5 s are left out
        CHECK(at[i] == doctest::Approx(std::vector<double>{1, 2, 6.5, 7, 8}[i]).epsilon(0.01));
}

TEST_CASE("posts that are requests to the model are none of somebody else") {
    scenario s = beside({.name = "asks", .every = 0.1_s,
                         .steps = {post("/v1/completions", R"({"model": "simulated", "prompt": "a", "max_tokens": 1})")}},
                        "own posts");
    CHECK(run(s).verdicts()[0].outcome == verdict::pass);
}

namespace {
/// A server that a kill takes away for so long.
class killed_server {
public:
    explicit killed_server(double away_s) : away_ns_(static_cast<long long>(away_s * 1e9)) {}
    std::string url() const { return server_.url(); }

private:
    scripted::answer answer_to(const scripted::request& r) {
        if (r.path == "/kill") killed_ns_ = virtual_world::now_ns();
        const bool is_away = killed_ns_ > 0 && virtual_world::now_ns() < killed_ns_ + away_ns_;
        if (r.path == "/kill") return {scripted::send(scripted::json("200 OK", "{}"))};
        return is_away ? scripted::answer{scripted::reset()} : scripted::healthy();
    }
    const long long away_ns_;
    long long killed_ns_ = 0;
    scripted::server server_{[this](const scripted::request& r) { return answer_to(r); }};
};
scenario killing(const killed_server& server, const char* name) {
    scenario s = beside({.name = "kill", .steps = {post("/kill")}, .first = 6_s, .excuses = 12_s}, name);
    s.target = endpoint{.url = server.url(), .model = "m"};
    s.workload = prompts({"one"});
    s.requests = 0;
    s.duration = 30_s;
    s.slos = {advisory(p90(ttft) <= 500_ms), recovery_time <= 15_s, advisory(recovery_time <= 4_s)};
    s.repeats = 3;
    return s;
}
}  // namespace

TEST_CASE("a recovery is from the kill until the load is answered in time for 5 s on end") {
    const killed_server server(8);
    scenario s = killing(server, "killed");
    const heard_run heard = heard_of(s);
    const result& r = heard.result;
    const std::string said = texts::unwrapped(heard.said);
    CAPTURE(said);
    CHECK(r.verdicts()[1].outcome == verdict::pass);
    CHECK(r.verdicts()[2].outcome == verdict::fail);
    CHECK(r.measured(recovery_time) > 7.9);
    CHECK(r.measured(recovery_time) < 8.5);
    CHECK(r.measured(error_rate) == 0);
    CHECK(r.verdicts()[0].outcome == verdict::pass);  // of those that are not counted apart
    CHECK(holds(said, "requests failed while a side task excused it"));
    CHECK(holds(said, "recovered after 8"));
    check_rejudged(r, s.slos);
}

TEST_CASE("what fails when nothing excuses it, or no more, is a failure") {
    const killed_server server(8);
    scenario s = killing(server, "unexcused");
    s.beside = {side_task{.name = "kill", .steps = {post("/kill")}, .first = 6_s, .excuses = 2_s}};
    const result r = run(s);
    CHECK(r.measured(error_rate) > 0.1);
    CHECK(outcome_of(r, "error_rate <= 1 %") == verdict::fail);
    s.beside = {side_task{.name = "kill", .steps = {post("/kill")}, .first = 6_s}};
    CHECK(run(s).measured(error_rate) > r.measured(error_rate));
}

TEST_CASE("a server that does not come back is shown to miss its recovery") {
    const killed_server server(10000);
    const result r = run(killing(server, "gone for good"));
    CHECK(r.verdicts()[1].outcome == verdict::fail);
    CHECK(holds(std::string(r.verdicts()[1].line()), "recovery_time <= 15 s"));
}

TEST_CASE("a server that leaks what its users leave is slower at the end, and one that does not is as quick") {
    for (const bool leaks : {true, false}) {
        CAPTURE(leaks);
        engine e = engine_of(4_ms);
        e.step_per_sequence = 0.5_ms;
        e.slots = 256;
        e.faults.leaks_slots = leaks;
        scenario s = quick_scenario(simulated(e));
        s.name = leaks ? "leaking" : "sound";
        const synthetic answers{.prompt_tokens = fixed(16), .output_tokens = fixed(32)};
        s.workload = mix({{.name = "stay", .weight = 4, .workload = answers},
                          {.name = "leave", .workload = answers, .options = request_options{.cancel_after = 60_ms}}});
        s.arrivals = poisson(10_rps);
        s.warmup = 10;
        s.requests = 400;
        s.slos = {drift(mean(tpot).of("stay")) <= 120_pct, drift(p90(ttft).of("stay")) <= 130_pct};
        const result r = run(s);
        CHECK((r.verdicts()[0].outcome == verdict::pass) == !leaks);
        CHECK((r.verdicts()[0].measured > 1.3) == leaks);
    }
}

TEST_CASE("side tasks once, several of them, and the end of a load that comes first") {
    scenario s = beside(adapters(0_s), "once");
    s.beside = {side_task{.name = "once", .steps = adapters(0_s).steps, .first = 2_s},
                side_task{.name = "open", .every = 4_s, .steps = {post("/load_lora_adapter", R"({"lora_name": "y{n}"})"),
                                                                  post("/unload_lora_adapter", R"({"lora_name": "y{n}"})")}}};
    s.slos = {p50(ttft) <= 1_s, p50(e2e) <= 1.5 * p50(e2e).of(during("once"))};
    run(s);
    for (const picojson::value& repeat : repeats_of_arm(reported_gate("once"), "candidate")) {
        const std::vector<double> once = step_times(repeat);
        REQUIRE(once.size() == 2);
        CHECK(once[0] == doctest::Approx(2).epsilon(0.1));
        const picojson::value& open = repeat.get("beside").get(1).get("steps");
        CHECK(open.get<picojson::array>().size() == 2);
        CHECK(open.get(1).get("failed").to_str() == "");
    }
}
