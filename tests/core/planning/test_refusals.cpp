// Scenarios that are refused before anything is sent, each in a sentence that a person can act on.
#include "llmbench.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/planning.hpp"
#include "core/traffic/requests.hpp"
#include "support/scenarios.hpp"
#include "support/texts.hpp"

#include <string>
#include <variant>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;
using texts::holds;

namespace {

std::string refusal_of_load(const arrival_pattern& load) {
    return refusal_after([&](scenario& s) { s.arrivals = load; });
}

}  // namespace

// ---- refusals: the load ------------------------------------------------------------------------

TEST_CASE("a trace without a file, or at a speed that is none, is refused") {
    CHECK_REFUSED(refusal_of_load(replay("")), "arrivals is replay()", "it must name a file");
    for (const double speed : {0.0, -1.0, 1e7, inf, nan_value})
        CHECK_REFUSED(refusal_of_load(replay("trace.csv").speed(speed)),
                      "arrivals is replay(trace.csv", "0.000001 to 1000000");
    for (const time_span unit : {0_s, 90000_s})
        CHECK_REFUSED(refusal_of_load(replay("trace.csv").unit(unit)),
                      "arrivals is replay(trace.csv", "its unit runs from 1 ns to a day");
}

TEST_CASE("a trace whose rows start together has no rate to warm up at for a time") {
    workload_files f;
    f.trace.rows = {{0, 10, 1}, {0, 20, 2}, {0, 30, 3}};
    scenario s = sound();
    s.arrivals = replay("trace.csv");
    s.requests = 0;
    s.warmup = 60_s;
    const auto refusal = [&] { return texts::refusal_of([&] { planned(s, 1, f); }); };
    CHECK_REFUSED(refusal(), "warmup is 60 s", "replay(trace.csv)", "give a number of requests");
    s.warmup = 2;
    CHECK(refusal() == "");
    CHECK(std::isnan(load_conditions_of(planned(s, 1, f)).arrival_cv2));  // it is a batch
    s.warmup = 60_s;
    f.trace.rows.push_back({10, 10, 1});
    CHECK(refusal() == "");
    CHECK(std::isinf(load_conditions_of(planned(s, 1, f)).arrival_cv2));
}

TEST_CASE("a load that cannot be is refused with what it is and what is allowed") {
    struct row {
        arrival_pattern load;
        const char *is, *why;
    };
    const auto s = [](double seconds) { return time_span::from_seconds(seconds); };
    const row rows[] = {
        {closed_loop(0), "arrivals is closed_loop(0 users)", "from 1 to 100000"},
        {closed_loop(-1), "closed_loop(-1 users)", "from 1 to 100000"},
        {closed_loop(100001), "closed_loop(100001 users)", "from 1 to 100000"},
        {closed_loop(4).think(s(-1)), "arrivals is closed_loop(4 users", "negative"},
        {closed_loop(4).think(s(1e5)), "arrivals is closed_loop(4 users", "86400 s"},
        {closed_loop(4).think(s(inf)), "arrivals is closed_loop(4 users", "86400 s"},
        {closed_loop(4).think(s(nan_value)), "think time", "86400 s"},
        {closed_loop(4).ramp(s(-1)), "ramp is -1 s", "from 0 to 86400 s"},
        {closed_loop(4).ramp(s(1e5)), "arrivals is closed_loop(4 users", "86400 s"},
        {closed_loop(4).ramp(s(inf)), "arrivals is closed_loop(4 users", "86400 s"},
        {closed_loop(4).ramp(s(nan_value)), "arrivals is closed_loop(4 users", "86400 s"},
        {poisson(0_rps), "arrivals is poisson(0 req/s)", "above 0"},
        {constant(request_rate(-2)), "arrivals is constant(-2 req/s)", "above 0"},
        {constant(1000001_rps), "arrivals is constant(1000001 req/s)", "at most 1000000"},
        {gamma(request_rate(nan_value), 1), "arrivals is gamma(", "above 0"},
        {poisson(request_rate(inf)), "arrivals is poisson(inf", "at most 1000000"},
        {gamma(8_rps, 0.001), "arrivals is gamma(8 req/s, burstiness 0.001)", "from 0.01 to 1000"},
        {gamma(8_rps, 2000), "burstiness 2000", "from 0.01 to 1000"},
        {gamma(8_rps, nan_value), "burstiness", "from 0.01 to 1000"},
        {ramp(0_rps, 8_rps, 60_s), "arrivals is ramp(0 to 8 req/s over 60 s)", "above 0"},
        {ramp(8_rps, 0_rps, 60_s), "arrivals is ramp(8 to 0 req/s over 60 s)", "above zero"},
        {ramp(1_rps, 8_rps, 0_s), "arrivals is ramp(1 to 8 req/s over 0 s)", ""},
        {steps({}), "arrivals is steps()", "at least one stage"},
        {steps({{8_rps, 10_s}, {0_rps, 20_s}}), "0 req/s for 20 s", "every stage"},
        {steps({{8_rps, 10_s}, {9_rps, 0_s}}), "9 req/s for 0 s", "every stage"},
        {steps({{8_rps, s(inf)}}), "arrivals is steps(8 req/s for inf s)", "86400 s"},
        {steps({{8_rps, 80000_s}, {8_rps, 6401_s}}), "6401 s", "86400 s"},
        {poisson(8_rps).max_in_flight(-1), "arrivals is poisson(8 req/s)", "max_in_flight"},
        {all_at_once().max_in_flight(-5), "max_in_flight", "-5"},
    };
    for (const row& r : rows) CHECK_REFUSED(refusal_of_load(r.load), r.is, r.why);
    for (const arrival_pattern& sound :
         {arrival_pattern(closed_loop(100000)), arrival_pattern(poisson(1000000_rps)),
          arrival_pattern(gamma(8_rps, 0.01)), arrival_pattern(gamma(8_rps, 1000)),
          arrival_pattern(steps({{8_rps, 80000_s}, {8_rps, 6400_s}})),
          arrival_pattern(poisson(8_rps).max_in_flight(1))})
        CHECK(refusal_of_load(sound) == "");
}

// ---- refusals: lengths of the run, repeats, seeds ------------------------------------------------

TEST_CASE("numbers and times out of their range are refused by their field") {
    struct row {
        void (*change)(scenario&);
        const char *is, *allowed;
    };
    const row rows[] = {
        {[](scenario& s) { s.warmup = -1; }, "warmup is -1 requests", "0 to 1000000"},
        {[](scenario& s) { s.warmup = 1000001; }, "warmup is 1000001 requests", "0 to 1000000"},
        {[](scenario& s) { s.warmup = time_span::from_seconds(-1); }, "warmup is -1 s", "86400"},
        {[](scenario& s) { s.warmup = 86401_s; }, "warmup is 86401 s", "86400"},
        {[](scenario& s) { s.requests = -5; }, "requests is -5", "1 to 100000000"},
        {[](scenario& s) { s.requests = 100000001; }, "requests is 100000001", "1 to 100000000"},
        {[](scenario& s) { s.duration = time_span::from_seconds(-1); }, "duration is -1 s", "86400"},
        {[](scenario& s) { s.duration = 86401_s; }, "duration is 86401 s", "86400"},
        {[](scenario& s) { s.duration = time_span::from_seconds(nan_value); }, "duration is", "86400"},
        {[](scenario& s) { s.repeats = -1; }, "repeats is -1", "100"},
        {[](scenario& s) { s.repeats = 101; }, "repeats is 101", "100"},
        {[](scenario& s) { s.seed = -3; }, "seed is -3", "negative"},
        {[](scenario& s) { s.client.threads = -1; }, "client.threads is -1", "1 to 64"},
        {[](scenario& s) { s.client.threads = 65; }, "client.threads is 65", "1 to 64"},
    };
    for (const row& r : rows) CHECK_REFUSED(refusal_after(r.change), r.is, r.allowed);
    CHECK(refusal_after([](scenario& s) { s.warmup = 0; }) == "");
    CHECK(refusal_after([](scenario& s) { s.client.threads = 64; }) == "");
}

TEST_CASE("a scenario that would never end is refused") {
    const std::string unset = "neither requests nor duration", why = "never end";
    CHECK_REFUSED(refusal({.arrivals = poisson(8_rps)}), unset, why);
    CHECK_REFUSED(refusal({.arrivals = closed_loop(4)}), unset, why);
    CHECK_REFUSED(refusal({.arrivals = ramp(1_rps, 2_rps, 10_s)}), unset, why);
    CHECK(refusal({.arrivals = steps({{8_rps, 10_s}})}) == "");
    CHECK(refusal({.arrivals = poisson(8_rps), .duration = 10_s}) == "");
}

TEST_CASE("a scenario that would send nothing is refused") {
    CHECK_REFUSED(refusal({.arrivals = constant(1_rps), .duration = 100_ms}), "constant(1 req/s)",
                  "0.1 s");
    CHECK_REFUSED(refusal({.arrivals = steps({{1_rps, 100_ms}})}), "steps(1 req/s for 0.1 s)");
    CHECK(refusal({.arrivals = constant(1_rps), .duration = 1_s}) == "");
}

TEST_CASE("more requests than a schedule can hold are refused, however they are asked for") {
    CHECK_REFUSED(refusal({.arrivals = constant(1000000_rps), .duration = 1000_s}),
                  "constant(1000000 req/s)", "1000000000 requests", "at most 100000000");
    CHECK_REFUSED(refusal({.arrivals = steps({{1000000_rps, 101_s}})}), "101000000 requests",
                  "at most 100000000");
    CHECK_REFUSED(refusal({.arrivals = constant(1000_rps), .warmup = 1001_s, .requests = 10}),
                  "warmup is 1001 s", "1000 requests/s", "1000000");
    CHECK(refusal({.arrivals = constant(1000000_rps), .requests = 10, .duration = 1000_s}) == "");
}

TEST_CASE("all at once ends with its requests and warms up with requests") {
    CHECK_REFUSED(refusal({.arrivals = all_at_once(), .duration = 30_s}), "arrivals is all_at_once",
                  "needs requests");
    CHECK_REFUSED(refusal({.arrivals = all_at_once(), .requests = 30, .duration = 30_s}),
                  "arrivals is all_at_once", "no duration");
    CHECK_REFUSED(refusal({.arrivals = all_at_once(), .warmup = 10_s, .requests = 30}),
                  "arrivals is all_at_once", "warm-up is a number of requests");
    CHECK(refusal({.arrivals = all_at_once(), .warmup = 10, .requests = 30}) == "");
}

// ---- refusals: other fields --------------------------------------------------------------------

TEST_CASE("fewer repeats than a verdict needs are refused") {
    const auto asked = [](int repeats, const any_baseline& baseline) {
        return refusal_after([&](scenario& s) {
            s.slos = {p90(ttft) <= 300_ms};
            s.repeats = repeats;
            s.baseline = baseline;
        });
    };
    CHECK_REFUSED(asked(1, {}), "repeats is 1", "at least 2");
    CHECK(asked(2, {}) == "");
    CHECK_REFUSED(asked(3, endpoint{.url = "http://h"}), "repeats is 3", "at least 4");
    CHECK(asked(4, endpoint{.url = "http://h"}) == "");
}

TEST_CASE("what needs a stream is refused where answers come in one piece") {
    const auto refusal_of_whole = [](const slo& x) {
        return refusal({.workload = prompts({"one"}), .arrivals = closed_loop(4), .requests = 300,
                        .slos = {x}, .options = {.stream = false}});
    };
    for (const slo& x :
         {p50(ttft) <= 1_s, p50(ttft_from_send) <= 1_s, mean(ttft_per_prompt_token) <= 1_s,
          mean(tpot) <= 1_s, p99(itl) <= 1_s, p5(decode_speed) >= 1_tps,
          p5(prefill_speed) >= 1_tps, prefill_throughput >= 1_tps, decode_throughput >= 1_tps,
          goodput(e2e <= 1_s && ttft <= 1_s) >= 90_pct})
        CHECK_REFUSED(refusal_of_whole(x), "is refused: options.stream is false", "use e2e");
    for (const slo& x :
         {p99(e2e) <= 1_s, mean(normalized_latency) <= 1_s, output_throughput >= 1_tps,
          total_throughput >= 1_tps, request_throughput >= 1_rps, error_rate <= 1_pct,
          goodput(e2e <= 1_s) >= 90_pct})
        CHECK(refusal_of_whole(x) == "");
    scenario whole{.workload = prompts({"one"}), .requests = 30, .options = {.stream = false}};
    CHECK(options_text(planned(whole, 1)) == "not streamed");
}

TEST_CASE("what streams every answer is refused where answers come in one piece") {
    const new_transport some = [](const char*) -> own_transport* { return nullptr; };
    const auto refusal = [](const any_target& target, const any_baseline& baseline, bool stream) {
        return refusal_after([&](scenario& s) {
            s.target = target;
            s.baseline = baseline;
            s.options.stream = stream;
            s.slos = {};
        });
    };
    const endpoint http{.url = "http://h"}, socket{.url = "http://h", .transport = some};
    for (const any_target& t : {any_target(socket), any_target(process{.command = "x", .transport = some})}) {
        CHECK_REFUSED(refusal(t, {}, false), "options.stream is false",
                      "a WebSocket streams every answer");
        CHECK(refusal(t, {}, true) == "");
    }
    CHECK_REFUSED(refusal(http, socket, false), "a WebSocket streams every answer");
    CHECK(refusal(http, http, false) == "");
}

TEST_CASE("fields of the user's own are checked inside the objects that APIs keep theirs in, too") {
    const auto refusal_of_body = [](const char* body) {
        return refusal({.workload = prompts({"one"}), .requests = 30,
                        .options = {.extra_body = body}});
    };
    CHECK(refusal_of_body(R"({"parameters":{"top_k":5},"options":{"num_ctx":4096}})") == "");
    CHECK_REFUSED(refusal_of_body(R"({"parameters":{"max_new_tokens":5}})"), "max_new_tokens",
                  "use options.max_tokens");
    CHECK_REFUSED(refusal_of_body(R"({"options":{"temperature":1}})"), "options.temperature");
    CHECK_REFUSED(refusal_of_body(R"({"n_predict":5})"), "n_predict", "use options.max_tokens");
    CHECK_REFUSED(refusal_of_body(R"({"inputs":"x"})"), "inputs", "belongs to llmbench");
    scenario s{.workload = prompts({"one"}), .requests = 30,
               .options = {.extra_body = R"({"top_k":1,"options":{"num_ctx":4096}})"}};
    CHECK(options_text(planned(s, 1)) == "\"top_k\":1, options {\"num_ctx\":4096}");
    // A number that no double holds is sent as it is written.
    s.options.extra_body = R"({"seed":12345678901234567890,"a":"seed","options":{"id":9007199254740993,"seed":1}})";
    CHECK(options_text(planned(s, 1)) ==
          "\"a\":\"seed\",\"seed\":12345678901234567890, options {\"id\":9007199254740993,\"seed\":1}");
}

TEST_CASE("request options out of their range are refused") {
    const auto with = [](const request_options& o) {
        return refusal({.workload = prompts({"one"}), .requests = 30, .options = o});
    };
    CHECK_REFUSED(with({.max_tokens = 0}), "options.max_tokens", "0", "at least 1");
    CHECK(with({.cancel_after = 500_ms}) ==
          "options.cancel_after is 500 ms for all requests, and nobody is left whose answers could be "
          "judged: give it to a part of a mix");
    CHECK_REFUSED(with({.cancel_after = time_span::from_seconds(-1)}), "options.cancel_after is", "from 1 ms to a day");
    CHECK_REFUSED(with({.cancel_after = 0.5_ms}), "options.cancel_after is", "from 1 ms to a day");
    CHECK_REFUSED(with({.max_tokens = -7}), "options.max_tokens", "-7");
    CHECK(with({.max_tokens = 1}) == "");
    CHECK_REFUSED(with({.temperature = -0.5}), "options.temperature", "-0.5", "0 to 10");
    CHECK_REFUSED(with({.temperature = 10.5}), "options.temperature", "10.5");
    CHECK_REFUSED(with({.temperature = nan_value}), "options.temperature");
    CHECK(with({.temperature = 0.0}) == "");
}

TEST_CASE("a limit in time that is not above zero, or over a day, is refused") {
    const time_span bad[] = {0_s, time_span::from_seconds(-1), 86401_s,
                             time_span::from_seconds(nan_value)};
    for (const time_span t : bad) {
        CAPTURE(t.seconds());
        CHECK_REFUSED(refusal_after([&](scenario& s) { s.limits.connect = t; }),
                      "limits.connect is", "86400");
        CHECK_REFUSED(refusal_after([&](scenario& s) { s.limits.first_event = t; }),
                      "limits.first_event is", "86400");
        CHECK_REFUSED(refusal_after([&](scenario& s) { s.limits.between_events = t; }),
                      "limits.between_events is", "86400");
        CHECK_REFUSED(refusal_after([&](scenario& s) { s.limits.total = t; }), "limits.total is",
                      "86400");
        CHECK_REFUSED(refusal_after([&](scenario& s) { s.limits.drain = t; }), "limits.drain is",
                      "86400");
    }
    CHECK_REFUSED(refusal_after([](scenario& s) { s.limits.total = 86401_s; }),
                  "limits.total is 86401 s");
}

TEST_CASE("extra fields of a body must be a JSON object") {
    const auto with = [](const char* extra) {
        return refusal_after([&](scenario& s) { s.options.extra_body = extra; });
    };
    CHECK_REFUSED(with("top_k: 1"), "options.extra_body is \"top_k: 1\"", "JSON object");
    CHECK_REFUSED(with("[1]"), "options.extra_body is \"[1]\"");
    for (const char* name : {"n", "best_of", "num_return_sequences"}) {
        const std::string one = "{\"" + std::string(name) + "\":1}";
        const std::string four = "{\"" + std::string(name) + "\":4}";
        CHECK(with(one.c_str()).empty());
        for (const std::string& body : {four, "{\"sampling_params\":" + four + "}"})
            CHECK_REFUSED(with(body.c_str()), "options.extra_body sets", name, "to 4",
                          "several choices share one stream");
    }
    CHECK_REFUSED(with("{\"a\":1} x"), "options.extra_body is");
    CHECK(with("{\"top_k\": 1}") == "");
    CHECK(with("{}") == "");
}

TEST_CASE("extra fields of a body cannot take the place of llmbench's own") {
    const auto with = [](const std::string& name) {
        return refusal_after([&](scenario& s) { s.options.extra_body = "{\"" + name + "\":1}"; });
    };
    for (const char* name : {"model", "messages", "prompt", "stream", "stream_options"})
        CHECK_REFUSED(with(name), "options.extra_body sets", name, "belongs to llmbench");
    CHECK(with("top_k") == "");
}

TEST_CASE("extra fields of a body cannot repeat one that has an option of its own") {
    for (const char* name : {"max_tokens", "temperature", "ignore_eos"}) {
        CHECK_REFUSED(refusal_after([&](scenario& s) {
                          s.options.extra_body = std::string("{\"") + name + "\":1}";
                      }),
                      "options.extra_body sets", name);
    }
}

TEST_CASE("usage need not be asked for, and the field of the most tokens has a name") {
    const auto with = [](auto&& change, api_format api = openai_chat) {
        request_options o;
        change(o);
        return texts::refusal_of([&] { check_options_of(traits_of(api), o); });
    };
    const auto no_usage = [](request_options& o) { o.include_usage = false; };
    CHECK(with(no_usage) == "");
    CHECK_REFUSED(with(no_usage, ollama), "options.include_usage is false, and ollama sends no stream_options");
    const auto running = [](request_options& o) { o.continuous_usage = true; };
    CHECK(with(running) == "");
    CHECK_REFUSED(with(running, tgi), "options.continuous_usage is true, and tgi sends no stream_options");
    for (const bool streams : {true, false})
        CHECK_REFUSED(with([&](request_options& o) {
                          o.continuous_usage = true;
                          o.stream = streams;
                          o.include_usage = !streams;
                      }),
                      "options.continuous_usage is true, which needs include_usage and stream");
    const auto kept = [](request_options& o) { o.server_history = true; };
    CHECK(with(kept, openai_responses) == "");
    CHECK_REFUSED(with(kept), "options.server_history is true, and openai_chat has no previous_response_id: .api = openai_responses has");
    CHECK(with([](request_options& o) { o.max_tokens_field = "max_completion_tokens"; }) == "");
    for (const char* bad : {"a\"b", "A", "max tokens"})
        CHECK_REFUSED(with([&](request_options& o) { o.max_tokens_field = bad; }),
                      "options.max_tokens_field is", "lower-case letters");
    CHECK_REFUSED(with([](request_options& o) {
                      o.max_tokens_field = "limit";
                      o.extra_body = R"({"limit":1})";
                  }),
                  "options.max_tokens_field is \"limit\"");
    request_spec r{.prompt = "Hi", .max_tokens = 7, .include_usage = false, .max_tokens_field = "max_completion_tokens"};
    const std::string body = request_body(traits_of(openai_chat), "m", r);
    CHECK(body.find("stream_options") == std::string::npos);
    CHECK(body.find("\"max_tokens\"") == std::string::npos);
    CHECK(body.find("\"max_completion_tokens\":7") != std::string::npos);
    const std::string counted = request_body(traits_of(openai_chat), "m", {.prompt = "Hi", .continuous_usage = true});
    CHECK(counted.find(R"("stream_options":{"include_usage":true,"continuous_usage_stats":true})") != std::string::npos);
}

TEST_CASE("extra fields are added as they were given") {
    scenario s = sound();
    s.options.extra_body =
        R"({"top_k": 5, "min_p": 0.25, "note": "a\"b", "nested": {"list": [1, null]}})";
    const plan p = planned(s, 1);
    picojson::value body;
    REQUIRE(parse_json("{\"first\":0" + p.sent->common.extra_fields + "}", body));
    CHECK(body.get("top_k").get<double>() == 5);
    CHECK(body.get("min_p").get<double>() == 0.25);
    CHECK(body.get("note").get<std::string>() == "a\"b");
    CHECK(body.get("nested").serialize() == "{\"list\":[1,null]}");
}

// ---- refusals: the workload --------------------------------------------------------------------

TEST_CASE("no prompts at all are refused") {
    CHECK_REFUSED(refusal({.workload = prompts(list<text>{}), .requests = 30}),
                  "workload is prompts({})", "at least one");
}

TEST_CASE("a synthetic workload does not take max_tokens") {
    CHECK_REFUSED(refusal_after([](scenario& s) { s.options.max_tokens = 64; }),
                  "options.max_tokens", "64", "output_tokens");
}

TEST_CASE("lengths out of their range are refused, field by field") {
    const auto with = [](const synthetic& w) { return refusal({.workload = w, .requests = 30}); };
    CHECK_REFUSED(with({.prompt_tokens = fixed(0)}), "workload.prompt_tokens is 0",
                  "from 1 to 10000000");
    CHECK_REFUSED(with({.output_tokens = fixed(-3)}), "workload.output_tokens is -3", "from 1");
    CHECK_REFUSED(with({.shared_prefix = fixed(-1)}), "workload.shared_prefix is -1", "from 0");
    CHECK(with({.prompt_tokens = fixed(1), .output_tokens = fixed(1), .shared_prefix = fixed(0)}) ==
          "");

    CHECK_REFUSED(with({.prompt_tokens = fixed(10000001)}), "workload.prompt_tokens is 10000001");
    CHECK_REFUSED(with({.prompt_tokens = uniform(20, 10)}),
                  "workload.prompt_tokens is uniform(20, 10)", "ordered");
    CHECK_REFUSED(with({.prompt_tokens = uniform(0, 10)}),
                  "workload.prompt_tokens is uniform(0, 10)");
    CHECK_REFUSED(with({.prompt_tokens = uniform(1, 1e8)}),
                  "workload.prompt_tokens is uniform(1, 100000000)");
    CHECK_REFUSED(with({.output_tokens = normal(0, 5)}), "workload.output_tokens is normal(0, 5)");
    CHECK_REFUSED(with({.output_tokens = normal(100, -5)}),
                  "workload.output_tokens is normal(100, -5)", "not negative");
    CHECK_REFUSED(with({.output_tokens = lognormal(0.5, 1)}),
                  "workload.output_tokens is lognormal(0.5, 1)");
    CHECK_REFUSED(with({.output_tokens = lognormal(100, -1)}),
                  "workload.output_tokens is lognormal(100, -1)");
    CHECK_REFUSED(with({.output_tokens = lognormal(100, 6)}),
                  "workload.output_tokens is lognormal(100, 6)");
    CHECK_REFUSED(with({.prompt_tokens = lognormal(nan_value, 1)}),
                  "workload.prompt_tokens is lognormal(");
    CHECK_REFUSED(with({.prompt_tokens = uniform(1, inf)}),
                  "workload.prompt_tokens is uniform(1, inf)");
    CHECK(with({.prompt_tokens = uniform(10, 10), .output_tokens = lognormal(100, 0)}) == "");
}

TEST_CASE("a shared prefix cannot be drawn from a file") {
    CHECK_REFUSED(
        refusal({.workload = synthetic{.shared_prefix = empirical("lengths.txt")}, .requests = 30}),
        "workload.shared_prefix is empirical(lengths.txt)", "prompt_tokens and output_tokens only");
}

TEST_CASE("a list of prompts is planned as it stands") {
    const plan p = planned(
        {.workload = prompts({"one", "two"}), .requests = 30, .options = {.max_tokens = 64}}, 1);
    CHECK(dynamic_cast<const given_prompts&>(*p.sent->source).prompts ==
          vector<std::string>{"one", "two"});
    CHECK(p.sent->common.max_tokens == 64);
    CHECK_FALSE(p.sent->forces_length);
    CHECK(
        planned({.workload = prompts({"one"}), .requests = 30, .options = {.ignore_eos = true}}, 1)
            .sent->forces_length);
}
