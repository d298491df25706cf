// The options of `llmbench run` as a scenario, and the sentence that each bad value gets.
#include "llmbench.hpp"
#include "program/run_options.hpp"
#include "support/histories.hpp"  // where history() is

#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace llmbench_program;

namespace {

template <class F> std::string refusal_of(F&& f) {
    try {
        f();
    } catch (const std::invalid_argument& e) { return e.what(); }
    return "";
}
given_options on_a_server() { return {{{"--url", {"http://127.0.0.1:8000"}}}}; }

}  // namespace

TEST_CASE("a command line says what a scenario says") {
    given_options o = on_a_server();
    o.texts["--users"] = {"8"};
    o.texts["--think"] = {"uniform(1s, 5s)"};
    o.texts["--ramp"] = {"20 s"};
    o.texts["--slo"] = {"p90(ttft) <= 500 ms", "advisory(mean(tpot) <= 25 ms)"};
    o.texts["--prompt-tokens"] = {"lognormal(512, 0.6)"};
    o.texts["--output-tokens"] = {"128"};
    o.texts["--prefix-tokens"] = {"fixed(64)"};
    o.texts["--prefix-share"] = {"60%"};
    o.texts["--warmup"] = {"until_stable(1min)"};
    o.texts["--temperature"] = {"0.7"};
    o.texts["--max-tokens"] = {"64"};
    o.texts["--continuous-usage"] = {""};
    o.texts["--header"] = {"X-Tenant: blue"};
    const scenario s = scenario_of(o);
    const arrival_data& d = s.arrivals.data();
    CHECK(d.kind == arrival_kind::closed_loop);
    CHECK(d.users == 8);
    CHECK(d.think.b == 5);
    CHECK(d.users_ramp_s == 20);
    CHECK(s.slos.size() == 2);
    CHECK(s.options.continuous_usage);
    CHECK((s.slos.begin() + 1)->is_advisory);
    const auto* prompts = s.workload.what().get<synthetic>();
    REQUIRE(prompts);
    CHECK(prompts->prompt_tokens.kind == length_distribution::shape::lognormal);
    CHECK(prompts->prompt_tokens.b == 0.6);
    CHECK(prompts->output_tokens.a == 128);
    CHECK(prompts->prefix_fraction.value == 0.6);
    CHECK(s.warmup.until_stable());
    CHECK(s.warmup.seconds() == 60);
    const auto* at = s.target.what().get<endpoint>();
    REQUIRE(at);
    CHECK(str(at->url) == o["--url"]);
    CHECK(str(at->headers[0].value) == "blue");
    CHECK(s.requests == 100);
}

TEST_CASE("both servers at once, for a minute unless it says how long") {
    given_options o = on_a_server();
    CHECK(scenario_of(o).pairs == in_turns);
    o.texts["--at-once"] = {""};
    CHECK_THROWS_AS(scenario_of(o), std::invalid_argument);
    o.texts["--baseline-url"] = {"http://b:1"};
    CHECK(scenario_of(o).pairs == at_once);
    CHECK(scenario_of(o).duration.seconds() == 60);
    o.texts["--duration"] = {"2min"};
    CHECK(scenario_of(o).duration.seconds() == 120);
}

TEST_CASE("a baseline's URL is one more server for the same requests") {
    given_options o = on_a_server();
    o.texts["--baseline-url"] = {"https://b:1"};
    o.texts["--model"] = {"m"};
    o.texts["--path"] = {"/v9/ask"};
    o.texts["--key-variable"] = {"SOME_KEY"};
    o.texts["--header"] = {"X-Tenant: blue", "Authorization: Basic eHh4"};
    o.texts["--metrics-url"] = {"/page"};
    o.texts["--ca-file"] = {"ca.pem"};
    o.texts["--cert"] = {"mine.pem"};
    o.texts["--key"] = {"mine.key"};
    o.texts["--insecure"] = {""};
    o.texts["--ready-within"] = {"9s"};
    const auto baseline = [&] {
        const any_baseline b = scenario_of(o).baseline;
        const auto* e = b.live().what().get<endpoint>();
        REQUIRE(e);
        return *e;
    };
    const endpoint e = baseline();
    CHECK(str(e.url) == "https://b:1");
    CHECK(str(e.tls.cert_file) == "mine.pem");
    CHECK(str(e.tls.key_file) == "mine.key");
    CHECK(str(e.model) == "m");
    CHECK(str(e.path) == "/v9/ask");
    CHECK(str(e.api_key_env) == "SOME_KEY");
    REQUIRE(e.headers.size() == 2);
    CHECK(str(e.headers[1].value) == "Basic eHh4");
    CHECK(str(e.metrics_url) == "/page");
    CHECK(str(e.tls.ca_file) == "ca.pem");
    CHECK_FALSE(e.tls.verify);
    CHECK(e.ready_within.seconds() == 9);
    // Said otherwise: a key of its own, and a page that is the target's.
    o.texts["--metrics-url"] = {"http://127.0.0.1:9000/metrics"};
    CHECK(baseline().metrics_url.empty());
    ::setenv("LLMBENCH_BASELINE_API_KEY", "sk", 1);
    CHECK(baseline().api_key_env.empty());
    ::unsetenv("LLMBENCH_BASELINE_API_KEY");
}

TEST_CASE("the server keeps the history, over a WebSocket, where the API can") {
    given_options o = on_a_server();
    o.texts["--turns"] = {"4"};
    CHECK_FALSE(scenario_of(o).options.server_history);
    CHECK((scenario_of(o).target.what().get<endpoint>()->transport == nullptr));
    for (const char* option : {"--server-history", "--websocket"}) {
        given_options other = o;
        other.texts[option] = {""};
        CHECK(refusal_of([&] { scenario_of(other); }) ==
              std::string(option) + " needs --api openai_responses");
    }
    o.texts["--api"] = {"openai_responses"};
    o.texts["--server-history"] = o.texts["--websocket"] = {""};
    o.texts["--baseline-url"] = {"http://127.0.0.1:8001"};
    const scenario s = scenario_of(o);
    CHECK(s.options.server_history);
    CHECK((s.target.what().get<endpoint>()->transport == websocket()));
    CHECK((s.baseline.live().what().get<endpoint>()->transport == websocket()));
    o.texts.erase("--url");
    o.texts.erase("--baseline-url");
    o.texts["--command"] = {"serve {port}"};
    CHECK((scenario_of(o).target.what().get<process>()->transport == websocket()));
}

TEST_CASE("where nobody says how long, a repeat has what its objectives and users need") {
    given_options o = on_a_server();
    CHECK(scenario_of(o).requests == 100);
    o.texts["--slo"] = {"p99(ttft) <= 1 s"};
    CHECK(scenario_of(o).requests == 300);
    o.texts["--users"] = {"200"};
    CHECK(scenario_of(o).requests == 800);
    o.texts["--requests"] = {"50"};
    CHECK(scenario_of(o).requests == 50);
    o.texts.erase("--requests");
    o.texts["--duration"] = {"30s"};
    CHECK(scenario_of(o).requests == 0);
    CHECK(scenario_of(o).duration.seconds() == 30);
    o.texts.erase("--duration");
    o.texts.erase("--users");
    o.texts["--arrivals"] = {"replay(trace.csv)"};
    CHECK(scenario_of(o).requests == 0);
    CHECK(scenario_of(o).workload.what().get<synthetic>() == nullptr);  // the trace's own lengths
}

TEST_CASE("arrivals are written as in C++") {
    const auto arrivals = [](const char* text) {
        given_options o = on_a_server();
        o.texts["--arrivals"] = {text};
        return scenario_of(o).arrivals.data();
    };
    CHECK(arrivals("poisson(8_rps)").rate == 8);
    CHECK(arrivals(" constant( 0.5 rps )").kind == arrival_kind::constant);
    CHECK(arrivals("gamma(8rps, 0.5)").burstiness == 0.5);
    CHECK(arrivals("ramp(1rps, 8rps, 2min)").over_s == 120);
    const arrival_data steps = arrivals("steps(2rps 30s, 8 req/s 1min)");
    REQUIRE(steps.stages.size() == 2);
    CHECK(steps.stages[1].rate.per_second == 8);
    CHECK(steps.stages[1].lasts.seconds() == 60);
    CHECK(arrivals("closed_loop(64)").users == 64);
    CHECK(arrivals("all_at_once()").kind == arrival_kind::all_at_once);
    CHECK(arrivals("closed_loop(up_to(256))").is_searched);
    CHECK(arrivals("poisson(up_to(64rps))").is_searched);
    for (const char* text :
         {"", "poisson", "poisson()", "poisson(8rps", "poisson(-8rps)", "gamma(8rps)", "steps()",
          "steps(8rps)", "ramp(1rps, 8rps)", "replay()", "burst(8rps)", "poisson(8s)"})
        if (*text) CHECK_THROWS_AS(arrivals(text), std::invalid_argument);
}

TEST_CASE("what cannot be read is refused with the option, the value and what is allowed") {
    CHECK(refusal_of([] { time_of({"--timeout", "5"}); }) ==
          "--timeout is \"5\": it must be a time with its unit, such as 500ms, 30s or 2min");
    CHECK(refusal_of([] { fraction_of({"--prefix-share", "120%"}); }) ==
          "--prefix-share is \"120%\": it must be a share from 0% to 100%, such as 60%");
    CHECK(refusal_of([] { whole_of({"--repeats", "3.5"}, 1, 100); }) ==
          "--repeats is \"3.5\": it must be a whole number from 1 to 100");
    for (const char* text : {"nan", "inf", "", "x", "1,5"})
        CHECK_THROWS_AS(number_of({"--temperature", text}), std::invalid_argument);
    for (const char* text : {"lognormal(512)", "uniform(1, 2, 3)", "-5", "512 tokens", "fixed()"})
        CHECK_THROWS_AS(lengths_of({"--prompt-tokens", text}), std::invalid_argument);
    given_options o = on_a_server();
    o.texts["--rate"] = {"8"};
    o.texts["--speed"] = {"2"};
    CHECK(refusal_of([&] { scenario_of(o); }) == "--speed needs --arrivals 'replay(FILE)'");
}

TEST_CASE("a burst that is held has the paths of two posts") {
    given_options o = on_a_server();
    o.texts["--hold"] = {"/pause?mode=keep"};
    CHECK(refusal_of([&] { scenario_of(o); }) == "--hold needs --arrivals 'all_at_once()'");
    o.texts["--arrivals"] = {"all_at_once()"};
    CHECK(refusal_of([&] { scenario_of(o); }) == "--hold needs --release");
    o.texts["--release"] = {"/resume"};
    const arrival_data d = scenario_of(o).arrivals.data();
    REQUIRE(d.held.size() == 2);
    CHECK(d.held[0].path == "/pause?mode=keep");
    CHECK(d.held[0].body == "{}");
    CHECK(d.held[1].path == "/resume");
    o.texts.erase("--hold");
    CHECK(refusal_of([&] { scenario_of(o); }) == "--release needs --hold");
}

TEST_CASE("questions, sessions, a history and a price are of a gate as well") {
    given_options o = on_a_server();
    o.texts["--questions"] = {"gsm8k.jsonl"};
    o.texts["--format"] = {"gsm8k"};
    o.texts["--grade"] = {"choice"};
    o.texts["--max-items"] = {"100"};
    o.texts["--cost"] = {"2.5"};
    o.texts["--baseline-history"] = {"perf-history"};
    o.texts["--api"] = {"sglang"};
    const scenario s = scenario_of(o);
    const auto* asked = s.workload.what().get<extension_value>();
    REQUIRE(asked);
    const auto* q = asked->what.get<questions>();
    REQUIRE(q);
    CHECK(q->format == gsm8k);
    CHECK(*q->grade.known() == choice);
    CHECK(*q->max_items == 100);
    CHECK(s.requests == 0);  // each is asked once
    CHECK((*s.cost).usd == 2.5);
    CHECK(s.baseline.is_of_extension());
    CHECK(s.target.what().get<endpoint>()->api.ours() == llmbench::sglang);
    o.texts["--format"] = {"sharegpt"};
    CHECK(refusal_of([&] { scenario_of(o); }) ==
          "--format is \"sharegpt\": it must be one of gsm8k, qa_jsonl");
    o.texts.erase("--questions");
    CHECK(refusal_of([&] { scenario_of(o); }) == "--format needs --dataset or --questions");
    o = on_a_server();
    o.texts["--sessions"] = {"traces/"};
    o.texts["--max-wait"] = {"10s"};
    o.texts["--own-length"] = {""};
    const scenario agents = scenario_of(o);
    const auto* of = agents.workload.what().get<extension_value>();
    REQUIRE(of);
    REQUIRE(of->what.get<sessions>());
    CHECK(of->what.get<sessions>()->max_wait.seconds() == 10);
    CHECK_FALSE(of->what.get<sessions>()->force_output);
    o.texts["--dataset"] = {"a.json"};
    CHECK(refusal_of([&] { scenario_of(o); }) ==
          "--dataset and --sessions are both given: give one");
}
