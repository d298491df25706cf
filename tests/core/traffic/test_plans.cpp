// [P12] plans.
#include "llmbench.hpp"
#include "core/traffic/plan_words.hpp"
#include "core/traffic/planning.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/trace_hash.hpp"
#include "support/texts.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using doctest::Approx;
using texts::holds;

namespace {

/// A sound scenario, to be spoiled in one field.
scenario sound() {
    return {.workload = synthetic{}, .arrivals = poisson(8_rps), .requests = 300};
}

/// The sentence a scenario is refused with, "" where it is not.
std::string refusal(const scenario& s) {
    return texts::refusal_of([&] { planned(s, 1); });
}
template <class Spoil>
std::string refusal_after(Spoil&& spoil) {
    scenario s = sound();
    spoil(s);
    return refusal(s);
}
std::string refusal_of_slo(const slo& s) {
    return refusal_after([&](scenario& x) { x.slos = {s}; });
}
std::string refusal_of_saturating_slo(const slo& s) {
    return refusal({.arrivals = closed_loop(16), .requests = 300, .slos = {s}});
}
std::string refusal_of_relative_slo(const slo& s) {
    return refusal({.baseline = endpoint{.url = "http://h"},
                    .arrivals = closed_loop(16),
                    .requests = 300,
                    .slos = {s}});
}

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> words(const std::string& prompt) {
    std::istringstream in(prompt);
    std::vector<std::string> out;
    for (std::string w; in >> w;) out.push_back(w);
    return out;
}
std::size_t common_words(const std::string& a, const std::string& b) {
    const auto x = words(a), y = words(b);
    std::size_t n = 0;
    while (n < std::min(x.size(), y.size()) && x[n] == y[n]) ++n;
    return n;
}

}  // namespace

// ---- defaults -----------------------------------------------------------------------------------

TEST_CASE("a plan fills in the defaults") {
    const plan p = planned({.requests = 300}, 77);
    CHECK(p.arrivals.kind == arrival_kind::closed_loop);
    CHECK(p.arrivals.users == 1);
    CHECK_FALSE(p.is_open_loop());
    CHECK(p.warmup_requests == 20);
    CHECK(p.warmup_s == 0);
    CHECK(p.requests == 300);
    CHECK(p.duration_s == 0);
    CHECK(p.seed == 77);
    CHECK_FALSE(p.has_baseline);
    CHECK(p.slos.empty());
    const auto& made = std::get<made_up_prompts>(p.source);
    CHECK(length_text(made.prompt_tokens) == "lognormal(512, 0.6)");
    CHECK(length_text(made.output_tokens) == "128");
    CHECK(length_text(made.shared_prefix) == "0");
    CHECK(p.forces_length);
    CHECK(p.common.max_tokens == 0);
    CHECK(std::isnan(p.common.temperature));
    CHECK(p.common.system_prompt == "");
    CHECK(p.common.extra_fields == "");
    CHECK(p.limits.connect.seconds() == 5);
    CHECK(p.limits.total.seconds() == 300);
}

TEST_CASE("a plan takes over what the scenario says") {
    const plan p = planned({.arrivals = gamma(8_rps, 0.5).max_in_flight(64),
                            .warmup = 10_s,
                            .requests = 300,
                            .duration = 60_s,
                            .slos = {p90(ttft) <= 300_ms, error_rate <= 2_pct},
                            .seed = 5,
                            .limits = {.connect = 2_s},
                            .options = {.temperature = 0.7, .system_prompt = "be brief"},
                            .client = {.spin = true}},
                           77);
    CHECK(p.is_open_loop());
    CHECK(p.arrivals.max_in_flight == 64);
    CHECK(p.warmup_requests == 0);
    CHECK(p.warmup_s == 10);
    CHECK(p.duration_s == 60);
    CHECK(p.seed == 5);
    REQUIRE(p.slos.size() == 2);
    CHECK(str(p.slos[1].text()) == "error_rate <= 2 %");
    CHECK(p.limits.connect.seconds() == 2);
    CHECK(p.limits.drain.seconds() == 60);
    CHECK(p.common.temperature == 0.7);
    CHECK(p.common.system_prompt == "be brief");
    CHECK(p.client.spin);
}

TEST_CASE("repeats are as many as a verdict takes, or as many as were asked for") {
    const auto repeats = [](scenario s) {
        const plan p = planned(s, 1);
        return std::pair(p.first_repeats, p.most_repeats);
    };
    scenario s = sound();
    CHECK(repeats(s).second == 3);  // nothing to decide
    s.slos = {p90(ttft) <= 300_ms};
    CHECK(repeats(s) == std::pair(2, 5));
    s.repeats = 4;
    CHECK(repeats(s) == std::pair(2, 4));
    s.repeats = 0;
    s.baseline = endpoint{.url = "http://h"};
    CHECK(repeats(s) == std::pair(4, 8));
    s.repeats = 6;
    CHECK(repeats(s) == std::pair(4, 6));
    s = sound();
    s.repeats = 1;  // enough to look at, where nothing is judged
    CHECK(repeats(s).second == 1);
}

TEST_CASE("every kind of load can be planned") {
    for (const arrival_pattern& load :
         {arrival_pattern(constant(8_rps)), arrival_pattern(poisson(8_rps)),
          arrival_pattern(gamma(8_rps, 0.5)), arrival_pattern(ramp(1_rps, 8_rps, 60_s)),
          arrival_pattern(steps({{8_rps, 60_s}})), arrival_pattern(all_at_once()),
          arrival_pattern(closed_loop(16).think(2_s).ramp(10_s))}) {
        scenario s = sound();
        s.arrivals = load;
        CHECK(refusal(s) == "");
    }
}

// ---- refusals: the load -------------------------------------------------------------------------

namespace {
std::string refusal_of_load(const arrival_pattern& load) {
    return refusal_after([&](scenario& s) { s.arrivals = load; });
}
}  // namespace

TEST_CASE("a trace without a file, or at a speed that is none, is refused") {
    CHECK_REFUSED(refusal_of_load(replay("")), "arrivals is replay()", "it must name a file");
    for (const double speed : {0.0, -1.0, 1e7, inf, nan_value})
        CHECK_REFUSED(refusal_of_load(replay("trace.csv").speed(speed)),
                      "arrivals is replay(trace.csv", "0.000001 to 1000000");
}

TEST_CASE("a closed loop without users, with too many, or with negative times is refused") {
    CHECK_REFUSED(refusal_of_load(closed_loop(0)), "arrivals is closed_loop(0 users)",
                  "from 1 to 100000");
    CHECK_REFUSED(refusal_of_load(closed_loop(-1)), "closed_loop(-1 users)");
    CHECK_REFUSED(refusal_of_load(closed_loop(100001)), "closed_loop(100001 users)");
    CHECK(refusal_of_load(closed_loop(100000)) == "");
    CHECK_REFUSED(refusal_of_load(closed_loop(4).think(time_span::from_seconds(-1))),
                  "arrivals is closed_loop(4 users", "think time", "negative");
    CHECK_REFUSED(refusal_of_load(closed_loop(4).ramp(time_span::from_seconds(-1))),
                  "arrivals is closed_loop(4 users", "ramp", "negative");
    CHECK_REFUSED(refusal_of_load(closed_loop(4).think(time_span::from_seconds(nan_value))),
                  "think time");
}

TEST_CASE("a rate that is not above zero, or too high to be sent, is refused") {
    CHECK_REFUSED(refusal_of_load(poisson(0_rps)), "arrivals is poisson(0 req/s)", "above 0");
    CHECK_REFUSED(refusal_of_load(constant(request_rate(-2))), "arrivals is constant(-2 req/s)");
    CHECK_REFUSED(refusal_of_load(constant(1000001_rps)), "arrivals is constant(1000001 req/s)",
                  "at most 1000000");
    CHECK_REFUSED(refusal_of_load(gamma(request_rate(nan_value), 1)), "arrivals is gamma(");
    CHECK_REFUSED(refusal_of_load(poisson(request_rate(inf))), "arrivals is poisson(inf");
    CHECK(refusal_of_load(poisson(1000000_rps)) == "");
}

TEST_CASE("a burstiness out of its range is refused") {
    CHECK_REFUSED(refusal_of_load(gamma(8_rps, 0.001)),
                  "arrivals is gamma(8 req/s, burstiness 0.001)", "from 0.01 to 1000");
    CHECK_REFUSED(refusal_of_load(gamma(8_rps, 2000)), "burstiness 2000");
    CHECK_REFUSED(refusal_of_load(gamma(8_rps, nan_value)), "burstiness");
    CHECK(refusal_of_load(gamma(8_rps, 0.01)) == "");
    CHECK(refusal_of_load(gamma(8_rps, 1000)) == "");
}

TEST_CASE("a ramp needs two rates and a time") {
    CHECK_REFUSED(refusal_of_load(ramp(0_rps, 8_rps, 60_s)),
                  "arrivals is ramp(0 to 8 req/s over 60 s)");
    CHECK_REFUSED(refusal_of_load(ramp(8_rps, 0_rps, 60_s)),
                  "arrivals is ramp(8 to 0 req/s over 60 s)");
    CHECK_REFUSED(refusal_of_load(ramp(1_rps, 8_rps, 0_s)),
                  "arrivals is ramp(1 to 8 req/s over 0 s)");
}

TEST_CASE("steps need stages with a rate and a time each") {
    CHECK_REFUSED(refusal_of_load(steps({})), "arrivals is steps()", "at least one stage");
    CHECK_REFUSED(refusal_of_load(steps({{8_rps, 10_s}, {0_rps, 20_s}})), "0 req/s for 20 s",
                  "every stage");
    CHECK_REFUSED(refusal_of_load(steps({{8_rps, 10_s}, {9_rps, 0_s}})), "9 req/s for 0 s",
                  "every stage");
}

TEST_CASE("steps that would not end within a day are refused") {
    CHECK_REFUSED(refusal_of_load(steps({{8_rps, time_span::from_seconds(inf)}})),
                  "arrivals is steps(8 req/s for inf s)", "86400 s");
    CHECK_REFUSED(refusal_of_load(steps({{8_rps, 80000_s}, {8_rps, 6401_s}})), "6401 s", "86400 s");
    CHECK(refusal_of_load(steps({{8_rps, 80000_s}, {8_rps, 6400_s}})) == "");
}

TEST_CASE("a negative cap on the requests in flight is refused") {
    CHECK_REFUSED(refusal_of_load(poisson(8_rps).max_in_flight(-1)), "arrivals is poisson(8 req/s)",
                  "max_in_flight", "-1");
    CHECK_REFUSED(refusal_of_load(all_at_once().max_in_flight(-5)), "max_in_flight", "-5");
    CHECK(refusal_of_load(poisson(8_rps).max_in_flight(1)) == "");
}

// ---- refusals: lengths of the run ---------------------------------------------------------------

TEST_CASE("a warm-up out of its range is refused") {
    CHECK_REFUSED(refusal_after([](scenario& s) { s.warmup = -1; }), "warmup is -1 requests",
                  "0 to 1000000");
    CHECK_REFUSED(refusal_after([](scenario& s) { s.warmup = 1000001; }),
                  "warmup is 1000001 requests");
    CHECK_REFUSED(refusal_after([](scenario& s) { s.warmup = time_span::from_seconds(-1); }),
                  "warmup is -1 s");
    CHECK_REFUSED(refusal_after([](scenario& s) { s.warmup = 86401_s; }), "warmup is 86401 s",
                  "86400");
    CHECK(refusal_after([](scenario& s) { s.warmup = 0; }) == "");
}

TEST_CASE("requests and duration out of their range are refused") {
    CHECK_REFUSED(refusal_after([](scenario& s) { s.requests = -5; }), "requests is -5",
                  "1 to 100000000");
    CHECK_REFUSED(refusal_after([](scenario& s) { s.requests = 100000001; }),
                  "requests is 100000001");
    CHECK_REFUSED(refusal_after([](scenario& s) { s.duration = time_span::from_seconds(-1); }),
                  "duration is -1 s");
    CHECK_REFUSED(refusal_after([](scenario& s) { s.duration = 86401_s; }), "duration is 86401 s",
                  "86400");
    CHECK_REFUSED(
        refusal_after([](scenario& s) { s.duration = time_span::from_seconds(nan_value); }),
        "duration is");
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

// ---- refusals: other fields ---------------------------------------------------------------------

TEST_CASE("repeats out of their range are refused") {
    CHECK_REFUSED(refusal_after([](scenario& s) { s.repeats = -1; }), "repeats is -1", "100");
    CHECK_REFUSED(refusal_after([](scenario& s) { s.repeats = 101; }), "repeats is 101", "100");
}

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

TEST_CASE("a negative seed and too many client threads are refused") {
    CHECK_REFUSED(refusal_after([](scenario& s) { s.seed = -3; }), "seed is -3", "negative");
    CHECK_REFUSED(refusal_after([](scenario& s) { s.client.threads = -1; }), "client.threads is -1",
                  "1 to 64");
    CHECK_REFUSED(refusal_after([](scenario& s) { s.client.threads = 65; }),
                  "client.threads is 65");
    CHECK(refusal_after([](scenario& s) { s.client.threads = 64; }) == "");
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
}

TEST_CASE("request options out of their range are refused") {
    const auto with = [](const request_options& o) {
        return refusal({.workload = prompts({"one"}), .requests = 30, .options = o});
    };
    CHECK_REFUSED(with({.max_tokens = 0}), "options.max_tokens", "0", "at least 1");
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

TEST_CASE("extra fields are added as they were given") {
    scenario s = sound();
    s.options.extra_body =
        R"({"top_k": 5, "min_p": 0.25, "note": "a\"b", "nested": {"list": [1, null]}})";
    const plan p = planned(s, 1);
    picojson::value body;
    REQUIRE(parse_json("{\"first\":0" + p.common.extra_fields + "}", body));
    CHECK(body.get("top_k").get<double>() == 5);
    CHECK(body.get("min_p").get<double>() == 0.25);
    CHECK(body.get("note").get<std::string>() == "a\"b");
    CHECK(body.get("nested").serialize() == "{\"list\":[1,null]}");
}

// ---- refusals: the workload ---------------------------------------------------------------------

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
    CHECK(std::get<given_prompts>(p.source).prompts == std::vector<std::string>{"one", "two"});
    CHECK(p.common.max_tokens == 64);
    CHECK_FALSE(p.forces_length);
    CHECK(
        planned({.workload = prompts({"one"}), .requests = 30, .options = {.ignore_eos = true}}, 1)
            .forces_length);
}

// ---- refusals: SLOs -----------------------------------------------------------------------------

TEST_CASE("every refused SLO is quoted") {
    CHECK_REFUSED(refusal_of_slo(output_throughput >= 400_tps),
                  "the SLO output_throughput >= 400 tok/s is refused");
}

TEST_CASE("SLOs on what the server alone could tell are refused") {
    CHECK_REFUSED(refusal_of_slo(p90(queue_time) <= 100_ms), "p90(queue_time)",
                  "not read by this version");
    CHECK_REFUSED(refusal_of_slo(max(server_metric("waiting")) <= plain_number(5)), "waiting",
                  "not read by this version");
    CHECK_REFUSED(refusal_of_slo(goodput(queue_time <= 1_s && ttft <= 1_s) >= 90_pct),
                  "queue_time is not measured");
    CHECK_REFUSED(refusal_of_slo(goodput(ttft <= 1_s || queue_time <= 1_s) >= 90_pct),
                  "queue_time is not measured");
    CHECK(refusal_of_slo(goodput(ttft <= 1_s && tpot <= 1_s) >= 90_pct) == "");
}

TEST_CASE("a percentile at or beyond the ends is refused") {
    for (const double q : {0.0, 1.0, -0.1, 1.5, nan_value}) {
        CAPTURE(q);
        CHECK_REFUSED(refusal_of_slo(percentile(ttft, q) <= 1_s), "the SLO p", "(ttft", "<= 1 s",
                      "strictly between 0 and 1");
    }
    CHECK(refusal_of_slo(percentile(ttft, 0.42) <= 1_s) == "");
}

TEST_CASE("a limit that is not above zero, or infinite, is refused") {
    CHECK_REFUSED(refusal_of_slo(p90(ttft) <= 0_ms), "p90(ttft) <= 0 ms", "above zero");
    CHECK_REFUSED(refusal_of_slo(p90(ttft) <= time_span::from_seconds(-1)), "p90(ttft) <= -1000 ms",
                  "above zero");
    CHECK_REFUSED(refusal_of_slo(p90(ttft) <= time_span::from_seconds(inf)), "p90(ttft)",
                  "above zero");
    CHECK_REFUSED(refusal_of_slo(p90(ttft) <= time_span::from_seconds(nan_value)), "p90(ttft)",
                  "above zero");
    CHECK_REFUSED(refusal_of_slo(error_rate <= 0_pct), "error_rate <= 0 %", "above zero");
}

TEST_CASE("a share that cannot be missed, or cannot be shown, is refused") {
    CHECK_REFUSED(refusal_of_slo(error_rate <= 100_pct), "error_rate <= 100 %", "under 100 %");
    CHECK_REFUSED(refusal_of_slo(goodput(ttft <= 1_s) >= 100_pct), "goodput(ttft <= 1 s) >= 100 %",
                  "under 100 %");
    CHECK(refusal_of_slo(goodput(ttft <= 1_s) >= 99.9_pct) == "");
}

TEST_CASE("a relative limit needs a baseline and a factor above zero") {
    CHECK_REFUSED(refusal_of_slo(mean(tpot) <= 1.1 * baseline), "mean(tpot) <= 1.1 * baseline",
                  "has no baseline");
    CHECK(refusal_of_relative_slo(mean(tpot) <= 1.1 * baseline) == "");
    CHECK_REFUSED(refusal_of_relative_slo(mean(tpot) <= 0 * baseline), "mean(tpot)", "above zero");
    CHECK_REFUSED(refusal_of_relative_slo(mean(tpot) <= -1.1 * baseline), "mean(tpot)",
                  "above zero");
    CHECK_REFUSED(refusal_of_relative_slo(mean(tpot) <= inf * baseline), "mean(tpot)",
                  "above zero");
}

TEST_CASE("shares and startup times are not compared with the baseline's") {
    CHECK_REFUSED(refusal_of_relative_slo(error_rate <= 1.1 * baseline),
                  "error_rate <= 1.1 * baseline", "limit of its own");
    CHECK_REFUSED(refusal_of_relative_slo(goodput(ttft <= 1_s) >= 0.9 * baseline), "goodput",
                  "limit of its own");
    CHECK_REFUSED(refusal_of_relative_slo(startup_time <= 1.1 * baseline),
                  "startup_time <= 1.1 * baseline", "startup times");
    CHECK(refusal_of_relative_slo(output_throughput >= 0.9 * baseline) == "");
}

TEST_CASE("a throughput below saturation only measures the arrival rate and is refused") {
    for (const open_loop& load : {constant(8_rps), poisson(8_rps), gamma(8_rps, 0.5),
                                  ramp(8_rps, 16_rps, 60_s), steps({{8_rps, 60_s}})})
        for (const slo& s : {output_throughput >= 400_tps, total_throughput >= 400_tps,
                             request_throughput >= 4_rps}) {
            const std::string name = arrival_text(load.data());
            CHECK_REFUSED(refusal({.arrivals = load, .requests = 300, .slos = {s}}), str(s.text()),
                          name, "arrival rate", "closed_loop");
            CHECK(refusal({.arrivals = closed_loop(16), .requests = 300, .slos = {s}}) == "");
            CHECK(refusal({.arrivals = all_at_once(), .requests = 300, .slos = {s}}) == "");
        }
}

TEST_CASE("a percentile needs three measured requests beyond it") {
    const struct { slo s; int needed; } table[] = {
        {p50(ttft) <= 1_s, 6},
        {p75(ttft) <= 1_s, 12},
        {p90(ttft) <= 1_s, 30},
        {p95(e2e) <= 1_s, 60},
        {p99(tpot) <= 1_s, 300},
        {p999(ttft) <= 1_s, 3000},
        {p10(decode_speed) >= 1_tps, 30},
        {p5(decode_speed) >= 1_tps, 60},
        {p1(prefill_speed) >= 1_tps, 300},
        {percentile(ttft, 0.2) <= 1_s, 4},
        {percentile(decode_speed, 0.9) >= 1_tps, 4}};
    for (const auto& [s, needed] : table) {
        CAPTURE(s);
        const std::string number = std::to_string(needed), one_less = std::to_string(needed - 1);
        CHECK_REFUSED(refusal({.arrivals = poisson(8_rps), .requests = needed - 1, .slos = {s}}),
                      str(s.text()), str(s.what.name), ("at least " + number), ("has " + one_less));
        CHECK(refusal({.arrivals = poisson(8_rps), .requests = needed, .slos = {s}}) == "");
    }
}

TEST_CASE("the requests that a percentile needs may come from a duration") {
    const auto with = [](const open_loop& load, time_span duration, long long requests = 0) {
        return refusal({.arrivals = load,
                        .requests = requests,
                        .duration = duration,
                        .slos = {p90(ttft) <= 1_s}});
    };
    CHECK_REFUSED(with(poisson(2_rps), 14_s), "at least 30", "has 28");
    CHECK(with(poisson(2_rps), 15_s) == "");
    CHECK_REFUSED(with(poisson(2_rps), 15_s, 29), "has 29");
    CHECK_REFUSED(with(poisson(2_rps), 10_s, 1000), "has 20");
    CHECK_REFUSED(with(ramp(1_rps, 2_rps, 10_s), 10_s), "has 15");
    CHECK_REFUSED(with(steps({{1_rps, 10_s}, {2_rps, 5_s}}), 0_s), "has 20");
    CHECK(with(steps({{1_rps, 10_s}, {2_rps, 10_s}}), 0_s) == "");
}

TEST_CASE("where only the run can tell the number of requests a percentile is not refused") {
    CHECK(refusal({.arrivals = closed_loop(4), .duration = 10_s, .slos = {p99(ttft) <= 1_s}}) ==
          "");
    CHECK(refusal({.arrivals = poisson(8_rps), .requests = 10, .slos = {p99(itl) <= 1_s}}) ==
          "");  // many gaps each
    CHECK_REFUSED(refusal({.arrivals = closed_loop(4), .requests = 10, .slos = {p99(ttft) <= 1_s}}),
                  "has 10");
}

TEST_CASE("a mean beside a loose limit on errors is refused") {
    const auto with = [](const slo& errors) {
        return refusal_after([&](scenario& s) { s.slos = {mean(tpot) <= 25_ms, errors}; });
    };
    CHECK_REFUSED(with(error_rate <= 6_pct), "mean(tpot) <= 25 ms", "over 5 %");
    CHECK(with(error_rate <= 5_pct) == "");
    CHECK(with(advisory(error_rate <= 6_pct)) == "");
    CHECK(refusal_after([](scenario& s) {
              s.slos = {p90(tpot) <= 25_ms, error_rate <= 6_pct};
          }) == "");
}

TEST_CASE("an SLO that is only advisory is refused for the same reasons") {
    CHECK_REFUSED(refusal_of_slo(advisory(output_throughput >= 400_tps)), "arrival rate");
    CHECK(refusal_of_saturating_slo(advisory(output_throughput >= 400_tps)) == "");
}

TEST_CASE("the first SLO that is unsound is the one refused") {
    const std::string first = refusal_after([](scenario& s) {
        s.slos = {p90(ttft) <= 1_s, p999(ttft) <= 1_s, output_throughput >= 400_tps};
    });
    CHECK_REFUSED(first, "the SLO p999(ttft)");
    CHECK_FALSE(holds(first, "output_throughput"));
}

// ---- fresh traffic, stored baselines, error levels ----------------------------------------------

namespace {
std::string refusal_of_fresh(const slo& s, int requests = 1000, int stages = 0) {
    return refusal({.arrivals = poisson(8_rps),
                    .requests = requests,
                    .repeats = stages,
                    .traffic = fresh,
                    .slos = {s}});
}
}  // namespace

TEST_CASE("fresh traffic is not compared with a baseline") {
    for (const any_baseline& b :
         {any_baseline(endpoint{.url = "http://h"}), any_baseline(stored("chat.json"))}) {
        const auto with = [&](traffic_mode traffic) {
            return refusal({.baseline = b,
                            .arrivals = poisson(8_rps),
                            .requests = 300,
                            .traffic = traffic,
                            .slos = {p90(ttft) <= 1_s}});
        };
        CHECK_REFUSED(with(fresh), "traffic is fresh", "baseline", "replayed");
        CHECK(with(replayed) == "");
    }
    CHECK_REFUSED(refusal_of_fresh(mean(tpot) <= 1.1 * baseline), "mean(tpot) <= 1.1 * baseline",
                  "baseline");
}

TEST_CASE("what has no method on fresh traffic is refused") {
    const auto saturating = [](const slo& s, traffic_mode traffic) {
        return refusal(
            {.arrivals = closed_loop(16), .requests = 1000, .traffic = traffic, .slos = {s}});
    };
    for (const slo& s :
         {output_throughput >= 400_tps, total_throughput >= 400_tps, request_throughput >= 4_rps,
          p90(itl) <= 50_ms, mean(itl) <= 50_ms, max(ttft) <= 10_s, min(decode_speed) >= 1_tps}) {
        CHECK_REFUSED(saturating(s, fresh), str(s.text()), "traffic is fresh",
                      str(s.what.name) + " is judged on replayed traffic only");
        CHECK(saturating(s, replayed) == "");
    }
    for (const slo& s : {p90(ttft) <= 1_s, mean(tpot) <= 50_ms, p10(decode_speed) >= 1_tps,
                         error_rate <= 2_pct, goodput(itl <= 1_s) >= 90_pct, startup_time <= 60_s})
        CHECK(saturating(s, fresh) == "");
}

TEST_CASE("a percentile of fresh traffic needs as many requests as can show it") {
    // ln 0.05 / ln q, as Wilks (1941) found for 95 % and 99 %.
    const struct {
        slo s;
        int needed;
    } table[] = {{p50(ttft) <= 1_s, 5},
                 {p90(ttft) <= 1_s, 29},
                 {p95(e2e) <= 1_s, 59},
                 {p99(tpot) <= 1_s, 299},
                 {p999(ttft) <= 1_s, 2995},
                 {p10(decode_speed) >= 1_tps, 29},
                 {p1(prefill_speed) >= 1_tps, 299},
                 {mean(ttft) <= 1_s, 40}};
    for (const auto& [s, needed] : table) {
        CAPTURE(s);
        const std::string number = std::to_string(needed), one_less = std::to_string(needed - 1);
        CHECK_REFUSED(refusal_of_fresh(s, needed - 1), str(s.text()), "traffic is fresh",
                      str(s.what.name) + " needs at least " + number, "has " + one_less);
        CHECK(refusal_of_fresh(s, needed) == "");
    }
    // One look alone must be able to show it at its own level: ln 0.0170 / ln 0.99.
    CHECK_REFUSED(refusal_of_fresh(p99(ttft) <= 1_s, 405, 1), "at least 406");
    CHECK(refusal_of_fresh(p99(ttft) <= 1_s, 406, 1) == "");
    CHECK(refusal_of_fresh(p99(ttft) <= 1_s, 299, 2) == "");
    CHECK(refusal_of_fresh(p99(ttft) <= 1_s, 299, 3) == "");
    // A share says of itself what its counts can show.
    CHECK(refusal_of_fresh(error_rate <= 1_pct, 4) == "");
}

TEST_CASE("fresh traffic comes in one to three stages") {
    const auto repeats = [](int n) {
        return refusal_after([&](scenario& s) {
            s.traffic = fresh;
            s.repeats = n;
            s.slos = {p90(ttft) <= 1_s};
        });
    };
    CHECK_REFUSED(repeats(4), "repeats is 4", "at most 3 stages");
    for (const int n : {0, 1, 2, 3}) CHECK(repeats(n) == "");

    scenario s = sound();
    s.traffic = fresh;
    s.slos = {p90(ttft) <= 1_s};
    CHECK(planned(s, 1).first_repeats == 1);
    CHECK(planned(s, 1).most_repeats == 3);
    CHECK(planned(s, 1).rule.traffic == fresh);
    s.repeats = 2;
    CHECK(planned(s, 1).most_repeats == 2);
}

TEST_CASE("error levels out of their range are refused by name") {
    const auto levels = [](double pass, double fail) {
        return refusal_after([&](scenario& s) {
            s.judging.false_pass = share(pass);
            s.judging.false_fail = share(fail);
        });
    };
    CHECK_REFUSED(levels(0.25, 0.01), "judging.false_pass is 25 %", "0.01 % to 20 %");
    CHECK_REFUSED(levels(0.05, 0.25), "judging.false_fail is 25 %", "0.01 % to 20 %");
    CHECK_REFUSED(levels(0, 0.01), "judging.false_pass is 0 %");
    CHECK_REFUSED(levels(0.05, 0.00009), "judging.false_fail is 0.009 %");
    CHECK_REFUSED(levels(-0.05, 0.01), "judging.false_pass is -5 %");
    CHECK_REFUSED(levels(nan_value, 0.01), "judging.false_pass is");
    CHECK_REFUSED(levels(0.05, inf), "judging.false_fail is");
    CHECK(levels(0.0001, 0.2) == "");
    CHECK(levels(0.2, 0.0001) == "");
}

TEST_CASE("the plan carries the rule that its verdicts follow") {
    scenario s = sound();
    s.slos = {p90(ttft) <= 1_s};
    const judging_rule usual = planned(s, 1).rule;
    CHECK(usual.traffic == replayed);
    CHECK(usual.looks == 5);
    CHECK(usual.most == 5);
    CHECK(usual.pass_z == 2.12);
    CHECK(usual.fail_z == 2.80);
    CHECK_FALSE(usual.holm);

    s.repeats = 9;
    s.judging = {.false_pass = 2.5_pct, .false_fail = 0.5_pct, .holm = true};
    const judging_rule strict = planned(s, 1).rule;
    CHECK(strict.looks == 8);  // after 2, 3, ... 9 repeats
    CHECK(strict.most == 9);
    CHECK(strict.pass_level == Approx(0.025));
    CHECK(strict.fail_level == Approx(0.005));
    // Jennison and Turnbull (2000), table 2.1: 8 looks, two-sided 0.05 and 0.01.
    CHECK(strict.pass_z == Approx(2.512).epsilon(0.0003));
    CHECK(strict.fail_z == Approx(3.078).epsilon(0.0003));
    CHECK(strict.holm);
}

TEST_CASE("a stored baseline needs a file and a spread of days that is one") {
    const auto with = [](const stored_result& b) {
        return refusal({.baseline = b,
                        .arrivals = poisson(8_rps),
                        .requests = 300,
                        .slos = {mean(tpot) <= 1.1 * baseline}});
    };
    CHECK_REFUSED(with(stored("")), "stored(\"\")", "file");
    CHECK_REFUSED(with(stored("a.json", share(-0.01))), "day-to-day", "is -1 %", "0 to 50 %");
    CHECK_REFUSED(with(stored("a.json", 51_pct)), "day-to-day", "is 51 %");
    CHECK_REFUSED(with(stored("a.json", share(nan_value))), "day-to-day");
    CHECK(with(stored("a.json")) == "");
    CHECK(with(stored("a.json", 0_pct)) == "");
    CHECK(with(stored("a.json", 50_pct)) == "");
}

TEST_CASE("a stored baseline takes repeats and not pairs") {
    const plan p = planned({.baseline = stored("a.json", 3_pct),
                            .arrivals = poisson(8_rps),
                            .requests = 300,
                            .slos = {mean(tpot) <= 1.1 * baseline}},
                           1);
    CHECK(p.has_stored_baseline);
    CHECK_FALSE(p.has_baseline);
    CHECK(p.stored.file == text("a.json"));
    CHECK(p.stored.day_to_day.fraction == Approx(0.03));
    CHECK(p.first_repeats == 2);
    CHECK(p.most_repeats == 5);
    // What is not compared with a live baseline is not compared with a stored one.
    const auto with = [](const slo& s) {
        return refusal({.baseline = stored("a.json"),
                        .arrivals = closed_loop(4),
                        .requests = 300,
                        .slos = {s}});
    };
    CHECK_REFUSED(with(error_rate <= 1.1 * baseline), "limit of its own");
    CHECK_REFUSED(with(startup_time <= 1.1 * baseline), "startup times");
    CHECK(with(output_throughput >= 0.9 * baseline) == "");
}

// ---- what a plan expects ------------------------------------------------------------------------

TEST_CASE("a plan says how many requests it will measure, where it can") {
    const auto expected = [](const scenario& s) { return expected_requests(planned(s, 1)); };
    CHECK(expected({.arrivals = poisson(8_rps), .requests = 300}) == 300);
    CHECK(expected({.arrivals = poisson(8_rps), .duration = 30_s}) == 240);
    CHECK(expected({.arrivals = poisson(8_rps), .requests = 100, .duration = 30_s}) == 100);
    CHECK(expected({.arrivals = ramp(0.5_rps, 1.5_rps, 100_s), .duration = 100_s}) == 100);
    CHECK(expected({.arrivals = steps({{8_rps, 10_s}, {4_rps, 5_s}})}) == 100);
    CHECK(expected({.arrivals = all_at_once(), .requests = 300}) == 300);
    CHECK(expected({.arrivals = closed_loop(4), .requests = 300}) == 300);
    CHECK(expected({.arrivals = closed_loop(4), .duration = 30_s}) == 0);
    CHECK(expected({.arrivals = closed_loop(4), .requests = 300, .duration = 30_s}) == 0);
}

TEST_CASE("a plan says how long a repeat will take at least, where it can") {
    const auto seconds = [](const scenario& s) { return expected_seconds(planned(s, 1)); };
    CHECK(seconds({.arrivals = poisson(8_rps), .warmup = 20, .requests = 300}) == Approx(40));
    CHECK(seconds({.arrivals = constant(8_rps), .warmup = 5_s, .duration = 30_s}) == Approx(35));
    CHECK(seconds({.arrivals = steps({{8_rps, 10_s}}), .warmup = 0}) == Approx(10));
    CHECK(seconds({.arrivals = closed_loop(4), .duration = 30_s}) == 30);
    CHECK(seconds({.arrivals = all_at_once(), .requests = 300}) == 0);
}

TEST_CASE("a load describes itself") {
    CHECK(arrival_text(constant(8_rps).data()) == "constant(8 req/s)");
    CHECK(arrival_text(poisson(0.5_rps).max_in_flight(64).data()) ==
          "poisson(0.5 req/s), at most 64 in flight");
    CHECK(arrival_text(gamma(8_rps, 0.5).data()) == "gamma(8 req/s, burstiness 0.5)");
    CHECK(arrival_text(ramp(1_rps, 8_rps, 60_s).data()) == "ramp(1 to 8 req/s over 60 s)");
    CHECK(arrival_text(steps({{1_rps, 10_s}, {8_rps, 20_s}}).data()) ==
          "steps(1 req/s for 10 s, 8 req/s for 20 s)");
    CHECK(arrival_text(all_at_once().data()) == "all_at_once");
    CHECK(arrival_text(closed_loop(16).data()) == "closed_loop(16 users)");
    CHECK(arrival_text(closed_loop(16).think(2_s).ramp(10_s).data()) ==
          "closed_loop(16 users, think 2 s, ramp 10 s)");
}

TEST_CASE("a workload describes itself") {
    const auto described = [](const any_workload& w) {
        return planned({.workload = w, .requests = 30}, 1).workload_text;
    };
    CHECK(described({}) == "synthetic, prompt lognormal(512, 0.6) tokens, output 128 tokens");
    CHECK(described(synthetic{.prompt_tokens = uniform(10, 20),
                              .output_tokens = normal(64, 8),
                              .shared_prefix = 256}) ==
          "synthetic, prompt uniform(10, 20) tokens, output normal(64, 8) tokens, shared prefix "
          "256 tokens");
    CHECK(described(prompts({"one", "two"})) == "2 prompts");
}

// ---- the traffic --------------------------------------------------------------------------------

namespace {
plan traffic(std::uint64_t seed = 1, const synthetic& w = {.prompt_tokens = uniform(20, 60),
                                                           .output_tokens = uniform(1, 200)}) {
    return planned({.workload = w, .arrivals = poisson(8_rps), .requests = 300}, seed);
}
}  // namespace

TEST_CASE("a request asks for the lengths of its place in the trace, in every repeat and arm") {
    const plan p = traffic();
    for (std::size_t i = 0; i < 50; ++i) {
        const trace_item item = item_of(p, i);
        CHECK((item.prompt_tokens >= 20 && item.prompt_tokens <= 60));
        for (const int repeat : {0, 1, 7})
            for (const run_arm arm : {run_arm::candidate, run_arm::baseline}) {
                const request_spec r = request_of(p, arm, repeat, i);
                CHECK(words(r.prompt).size() == static_cast<std::size_t>(item.prompt_tokens));
                CHECK(r.max_tokens == item.output_tokens);
                CHECK(r.force_length);
            }
    }
}

TEST_CASE("places in the trace have lengths of their own") {
    const plan p = traffic();
    std::set<std::pair<int, int>> seen;
    for (std::size_t i = 0; i < 100; ++i)
        seen.insert({item_of(p, i).prompt_tokens, item_of(p, i).output_tokens});
    CHECK(seen.size() > 90);
}

TEST_CASE("the same request is the same text again") {
    const plan p = traffic();
    CHECK(request_of(p, run_arm::candidate, 2, 17).prompt ==
          request_of(traffic(), run_arm::candidate, 2, 17).prompt);
}

TEST_CASE("no two repeats, arms, seeds or places share the start of a prompt") {
    // Sixty-four words: two prompts agree in the first one by chance once in 64 times, and in a
    // prefix cache's block of 16 tokens never.
    const plan p = traffic(), other_seed = traffic(2);
    int pairs = 0, same_first_word = 0;
    std::size_t longest = 0;
    const auto compare = [&](const request_spec& a, const request_spec& b) {
        const std::size_t common = common_words(a.prompt, b.prompt);
        ++pairs;
        same_first_word += common > 0;
        longest = std::max(longest, common);
    };
    for (std::size_t i = 0; i < 300; ++i) {
        const request_spec base = request_of(p, run_arm::candidate, 0, i);
        compare(base, request_of(p, run_arm::candidate, 1, i));
        compare(base, request_of(p, run_arm::baseline, 0, i));
        compare(request_of(p, run_arm::baseline, 0, i), request_of(p, run_arm::candidate, 1, i));
        compare(base, request_of(other_seed, run_arm::candidate, 0, i));
        compare(base, request_of(p, run_arm::candidate, 0, i + 1));
    }
    CHECK(pairs == 1500);
    CHECK(same_first_word < pairs / 20);
    CHECK(longest <= 4);
}

namespace {
/// Tokens of a text: words of over `longest` letters are two, and the text has one more before it.
auto counting(std::size_t longest, int before) {
    return [=](const std::string& text) {
        int n = before;
        for (const std::string& w : words(text)) n += w.size() > longest ? 2 : 1;
        return n;
    };
}
int untold(const std::string&) { return -1; }
using quality = token_fit::quality;
}  // namespace

TEST_CASE("prompts are exact in tokens where the server tells which words are one token") {
    int asked = 0;
    const auto count = counting(3, 1), with_template = counting(3, 12);
    const token_fit fit = fitted_tokens([&](const std::string& t) { ++asked; return count(t); },
                                        with_template);
    CHECK(fit.lengths == quality::exact);
    CHECK(fit.words.size() >= 30);
    CHECK(fit.words.size() < std::size(prompt_words));
    CHECK(fit.overhead == 12);
    CHECK(asked < 2 * static_cast<int>(std::size(prompt_words)));
    const plan p = traffic();
    for (std::size_t i = 0; i < 300; ++i)
        for (const run_arm arm : {run_arm::candidate, run_arm::baseline})
            for (const int repeat : {0, 1, 7})
                REQUIRE(with_template(request_of(p, arm, repeat, i, {}, fit).prompt) ==
                        item_of(p, i).prompt_tokens);
    CHECK(request_of(p, run_arm::candidate, 0, 3, {}, fit).prompt !=
          request_of(p, run_arm::candidate, 1, 3, {}, fit).prompt);
    // A word at least, however long the template.
    const plan tiny = traffic(1, {.prompt_tokens = fixed(5)});
    CHECK(with_template(request_of(tiny, run_arm::candidate, 0, 0, {}, fit).prompt) == 13);
    // A shared prefix keeps its words, and the whole its length.
    const plan shared = traffic(1, {.prompt_tokens = uniform(50, 60), .shared_prefix = fixed(32)});
    const std::string first = request_of(shared, run_arm::candidate, 0, 0, {}, fit).prompt;
    for (std::size_t i = 1; i < 20; ++i) {
        const std::string s = request_of(shared, run_arm::candidate, 0, i, {}, fit).prompt;
        CHECK(with_template(s) == item_of(shared, i).prompt_tokens);
        CHECK(common_words(first, s) >= 32);
        CHECK(common_words(first, s) < 36);
    }
}

TEST_CASE("one question tells that every word is one token") {
    int asked = 0;
    const auto found = one_token_words([&](const std::string& t) {
        ++asked;
        return counting(100, 1)(t);
    });
    CHECK(found.size() == std::size(prompt_words));
    CHECK(asked == 2);
}

TEST_CASE("usage alone makes prompt lengths right on the average, or exact") {
    for (const std::size_t longest : {100u, 2u}) {
        const auto count = counting(longest, 12);
        int asked = 0;
        const token_fit exact =
            fitted_tokens(untold, [&](const std::string& t) { ++asked; return count(t); });
        CHECK(exact.lengths == quality::exact);
        CHECK(exact.overhead == 12);
        CHECK(asked <= (longest == 100 ? 2 : 130));
        for (const std::size_t i : exact.words) CHECK(std::strlen(prompt_words[i]) <= longest);
    }
    const auto count = [](const std::string& text) { return static_cast<int>(text.size()) + 12; };
    const token_fit fit = fitted_tokens(untold, count);
    CHECK(fit.lengths == quality::average);
    CHECK(fit.per_word > 3);
    CHECK(fit.overhead == doctest::Approx(12).epsilon(0.1));
    const plan p = traffic(1, {.prompt_tokens = fixed(200)});
    double sum = 0;
    for (std::size_t i = 0; i < 200; ++i)
        sum += count(request_of(p, run_arm::candidate, 0, i, {}, fit).prompt);
    CHECK(sum / 200 == doctest::Approx(200).epsilon(0.01));
}

TEST_CASE("lists of token ids are prompts where each is one token, and only there") {
    const auto count = [](const std::string& ids) {
        return 2 + static_cast<int>(std::count(ids.begin(), ids.end(), ' '));
    };
    const token_fit fit = fitted_ids(count);
    CHECK(fit.lengths == quality::exact);
    CHECK(fit.overhead == 1);
    const plan p = traffic(1, {.prompt_tokens = uniform(20, 60), .shared_prefix = fixed(16)});
    std::set<std::string> prompts;
    for (std::size_t i = 0; i < 50; ++i) {
        const request_spec r = request_of(p, run_arm::candidate, 0, i, {}, fit);
        picojson::value ids;
        REQUIRE(parse_json(r.token_ids, ids));
        REQUIRE(ids.is<picojson::array>());
        CHECK(ids.get<picojson::array>().size() + 1 ==
              static_cast<std::size_t>(item_of(p, i).prompt_tokens));
        for (const picojson::value& id : ids.get<picojson::array>()) {
            CHECK(id.get<double>() >= first_token_id);
            CHECK(id.get<double>() < first_token_id + std::size(prompt_words));
        }
        prompts.insert(r.token_ids);
        prompts.insert(request_of(p, run_arm::candidate, 1, i, {}, fit).token_ids);
    }
    CHECK(prompts.size() == 100);
    CHECK_FALSE(fitted_ids(untold).as_ids);
    CHECK_FALSE(fitted_ids(counting(100, 1)).words.empty());
    // A server that reads the list as text.
    CHECK_FALSE(fitted_ids([](const std::string& ids) { return static_cast<int>(ids.size()); }).as_ids);
}

TEST_CASE("too few words of one token are not enough for prompts") {
    const token_fit fit = fitted_tokens(counting(1, 1), counting(1, 12));
    CHECK(fit.lengths == quality::average);
    CHECK(fit.words.size() == std::size(prompt_words));
    CHECK(fit.per_word == 2);
}

TEST_CASE("counts that cannot be of the prompt are not believed") {
    const auto unknown = [](auto&& of_prompt) {
        const token_fit fit = fitted_tokens(untold, of_prompt);
        CHECK(fit.lengths == quality::unknown);
        CHECK(fit.words.empty());
        const plan p = traffic();
        CHECK(request_of(p, run_arm::candidate, 1, 5, {}, fit).prompt ==
              request_of(p, run_arm::candidate, 1, 5).prompt);
    };
    unknown(untold);
    unknown([](const std::string&) { return 5; });   // the same for every prompt
    unknown([](const std::string&) { return 0; });
    unknown([n = 70](const std::string&) mutable { return n += 30; });  // cached ones left out
    unknown([n = 0](const std::string&) mutable { return n += 5000; });
    // It stopped telling half-way.
    unknown([n = 0](const std::string&) mutable { return n++ == 0 ? 80 : -1; });
}

TEST_CASE("messages of conversations are exact in tokens, too") {
    const auto count = counting(3, 0);
    const token_fit fit = fitted_tokens(counting(3, 1), counting(3, 12));
    const plan p = planned({.workload = conversations{.user_tokens = uniform(5, 40),
                                                      .system_tokens = fixed(30)},
                            .arrivals = poisson(8_rps),
                            .requests = 20},
                           1);
    for (std::size_t i = 0; i < 2 * p.stride; ++i) {
        const request_spec r = request_of(p, run_arm::candidate, 0, i, {}, fit);
        CHECK(count(r.prompt) == item_of(p, i).prompt_tokens);
        CHECK(count(r.system_prompt) == 30);
    }
}

TEST_CASE("a shared prefix is common to one repeat of one arm and to nothing else") {
    const plan p = traffic(1, {.prompt_tokens = uniform(40, 60), .shared_prefix = fixed(32)});
    const request_spec first = request_of(p, run_arm::candidate, 0, 0);
    std::size_t longest = 0;
    for (std::size_t i = 1; i < 50; ++i) {
        const request_spec r = request_of(p, run_arm::candidate, 0, i);
        const std::size_t common = common_words(first.prompt, r.prompt);
        CHECK(common >= 32);
        longest = std::max(longest, common);
        CHECK(words(r.prompt).size() == static_cast<std::size_t>(item_of(p, i).prompt_tokens));
        CHECK(common_words(r.prompt, request_of(p, run_arm::candidate, 1, i).prompt) < 4);
        CHECK(common_words(r.prompt, request_of(p, run_arm::baseline, 0, i).prompt) < 4);
    }
    CHECK(longest < 36);
}

TEST_CASE("a shared prefix longer than a prompt is cut to the prompt") {
    const plan p = traffic(1, {.prompt_tokens = uniform(5, 10), .shared_prefix = fixed(100)});
    const std::string longest_prompt = [&] {
        std::string best;
        for (std::size_t i = 0; i < 50; ++i) {
            const std::string s = request_of(p, run_arm::candidate, 0, i).prompt;
            if (s.size() > best.size()) best = s;
        }
        return best;
    }();
    for (std::size_t i = 0; i < 50; ++i) {
        const std::string s = request_of(p, run_arm::candidate, 0, i).prompt;
        CHECK(words(s).size() == static_cast<std::size_t>(item_of(p, i).prompt_tokens));
        CHECK(longest_prompt.substr(0, s.size()) == s);
    }
}

TEST_CASE("given prompts are sent in turn and as they are") {
    scenario s = {.workload = prompts({"one", "two", "three"}),
                  .requests = 30,
                  .options = {.max_tokens = 9,
                              .temperature = 0.0,
                              .system_prompt = "be brief",
                              .ignore_eos = true,
                              .extra_body = "{\"top_k\":1}"}};
    const plan p = planned(s, 1);
    for (const int repeat : {0, 1}) {
        CHECK(request_of(p, run_arm::candidate, repeat, 0).prompt == "one");
        CHECK(request_of(p, run_arm::baseline, repeat, 1).prompt == "two");
        CHECK(request_of(p, run_arm::candidate, repeat, 5).prompt == "three");
    }
    const request_spec r = request_of(p, run_arm::candidate, 0, 0);
    CHECK(r.max_tokens == 9);
    CHECK(r.temperature == 0);
    CHECK(r.system_prompt == "be brief");
    CHECK(r.force_length);
    CHECK(r.extra_fields == ",\"top_k\":1");
}

// ---- hashes -------------------------------------------------------------------------------------

TEST_CASE("the hash is FNV-1a") {
    // The test vectors of its authors (Fowler, Noll, Vo; draft-eastlake-fnv, 64 bit).
    const auto hash = [](const std::string& s) {
        fnv1a h;
        h.add(s.data(), s.size());
        return h.text();
    };
    CHECK(hash("") == "cbf29ce484222325");
    CHECK(hash("a") == "af63dc4c8601ec8c");
    CHECK(hash("foobar") == "85944171f73967e8");
    fnv1a number;
    number.add(0x0102030405060708ll);  // eight bytes, lowest first
    CHECK(number.text() == hash("\x08\x07\x06\x05\x04\x03\x02\x01"));
}

TEST_CASE("the hash of a trace is the same on every platform") {
    CHECK(trace_hash(planned({.arrivals = poisson(8_rps), .requests = 300}, 1)) ==
          "c57cddd41f33bfdd");
    CHECK(trace_hash(planned({.arrivals = gamma(8_rps, 0.5), .duration = 60_s}, 42)) ==
          "9ecaee5c7a292709");
    CHECK(trace_hash(planned({.arrivals = closed_loop(16), .duration = 30_s}, 1)) ==
          "e326c371dd3294cd");
    CHECK(trace_hash(planned({.workload = synthetic{.prompt_tokens = uniform(10, 500),
                                                    .output_tokens = normal(100, 20)},
                              .arrivals = all_at_once(),
                              .requests = 500},
                             7)) == "9439f626017cfef5");
}

TEST_CASE("the hash of a trace changes with everything that changes the traffic") {
    const scenario base = {.workload = synthetic{}, .arrivals = poisson(8_rps), .requests = 300};
    const auto hash = [&](auto&& change) {
        scenario s = base;
        change(s);
        return trace_hash(planned(s, 1));
    };
    const std::string unchanged = hash([](scenario&) {});
    std::set<std::string> seen = {unchanged};
    const auto is_new = [&](const std::string& h) { return seen.insert(h).second; };
    CHECK(is_new(hash([](scenario& s) { s.seed = 2; })));
    CHECK(is_new(hash([](scenario& s) { s.requests = 301; })));
    CHECK(is_new(hash([](scenario& s) { s.warmup = 21; })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = poisson(9_rps); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = constant(8_rps); })));
    CHECK(is_new(
        hash([](scenario& s) { s.workload = synthetic{.prompt_tokens = lognormal(512, 0.5)}; })));
    CHECK(is_new(hash([](scenario& s) { s.workload = synthetic{.output_tokens = fixed(129)}; })));
    CHECK(is_new(hash([](scenario& s) { s.workload = synthetic{.shared_prefix = fixed(64)}; })));
    CHECK(is_new(hash([](scenario& s) { s.workload = prompts({"one", "two"}); })));
    CHECK(is_new(hash([](scenario& s) { s.workload = prompts({"onet", "wo"}); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = closed_loop(16); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = closed_loop(17); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = closed_loop(16).think(1_s); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = closed_loop(16).ramp(1_s); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = all_at_once(); })));
}

TEST_CASE("the hash of a trace does not change with what leaves the traffic alone") {
    scenario s = sound();
    const std::string before = trace_hash(planned(s, 1));
    s.slos = {p90(ttft) <= 1_s};
    s.limits.total = 10_s;
    s.name = "another name";
    s.repeats = 5;
    CHECK(trace_hash(planned(s, 1)) == before);
}

// ---- stages of fresh traffic --------------------------------------------------------------------

TEST_CASE("stages of fresh traffic hold n, n and 2n requests") {
    const plan p = traffic();
    const auto measured_in = [&](int stage) {
        const plan q = stage_of(p, stage);
        const schedule s = open_loop_schedule(q.arrivals, q.warmup_requests, q.warmup_s, q.requests,
                                              q.duration_s, q.seed);
        return s.at.size() - s.warmup;
    };
    CHECK(measured_in(0) == 300);
    CHECK(measured_in(1) == 300);
    CHECK(measured_in(2) == 600);
    for (const int stage : {0, 1, 2}) CHECK(stage_of(p, stage).warmup_requests == 20);

    scenario by_time = sound();
    by_time.requests = 0;
    by_time.duration = 40_s;
    const plan q = planned(by_time, 1);
    CHECK(stage_of(q, 1).duration_s == 40);
    CHECK(stage_of(q, 2).duration_s == 80);
    CHECK(stage_of(q, 2).requests == 0);
}

TEST_CASE("every stage is other traffic, the first one that of the plan") {
    const plan p = traffic();
    CHECK(trace_hash(stage_of(p, 0)) == trace_hash(p));
    std::set<std::uint64_t> seeds;
    for (const std::uint64_t seed : {1u, 2u, 3u, 40u})
        for (const int stage : {0, 1, 2}) seeds.insert(stage_of(traffic(seed), stage).seed);
    CHECK(seeds.size() == 12);
    std::set<int> lengths;
    for (const int stage : {0, 1, 2}) lengths.insert(item_of(stage_of(p, stage), 5).output_tokens);
    CHECK(lengths.size() == 3);
    // The same stage is the same traffic again.
    CHECK(trace_hash(stage_of(p, 2)) == trace_hash(stage_of(traffic(), 2)));
}

TEST_CASE("tokens are forced where the request says how many") {
    const plan made = traffic();
    for (const std::size_t i : {std::size_t{0}, std::size_t{7}, std::size_t{299}})
        CHECK(forced_tokens(made, i) == item_of(made, i).output_tokens);

    const auto given = [](bool ignore_eos, int max_tokens) {
        scenario s = sound();
        s.workload = prompts({"one", "two"});
        s.options.ignore_eos = ignore_eos;
        if (max_tokens > 0) s.options.max_tokens = max_tokens;
        return forced_tokens(planned(s, 1), 3);
    };
    CHECK(given(true, 64) == 64);
    CHECK(given(false, 64) == 0);  // an answer may end before its limit
    CHECK(given(true, 0) == 0);
    CHECK(given(false, 0) == 0);
}

TEST_CASE("a steady load says how unsteady its gaps are, any other one that it grows by design") {
    CHECK(arrival_cv2_of(constant(8_rps).data()) == 0);
    CHECK(arrival_cv2_of(poisson(8_rps).data()) == 1);
    CHECK(arrival_cv2_of(gamma(8_rps, 0.25).data()) == Approx(4));
    CHECK(arrival_cv2_of(gamma(8_rps, 4).data()) == Approx(0.25));
    for (const arrival_data& a :
         {ramp(8_rps, 16_rps, 60_s).data(), steps({{8_rps, 60_s}}).data(), replay("x").data()})
        CHECK(std::isnan(arrival_cv2_of(a)));
    CHECK(std::isnan(arrival_cv2_of(all_at_once().data())));
    CHECK(std::isnan(arrival_cv2_of(closed_loop(4).data())));
}

// ---- files, conversations, groups ---------------------------------------------------------------

namespace {
workload_files with_trace(std::vector<trace_row> rows) {
    workload_files f;
    f.trace.rows = std::move(rows);
    return f;
}
workload_files with_dialogues(int n) {
    workload_files f;
    for (int i = 0; i < n; ++i)
        f.dialogues.push_back({{{"system", "be kind"}},
                               {{.prompt = "first " + std::to_string(i), .output_tokens = 7},
                                {.prompt = "second " + std::to_string(i), .output_tokens = 9}}});
    return f;
}
const std::vector<trace_row> four_rows = {{0, 10, 1}, {1, 20, 2}, {4, 30, 3}, {10, 40, 4}};
plan talk(const conversations& c, long long requests = 30, long long warmup = 0) {
    return planned({.workload = c, .arrivals = closed_loop(4), .warmup = warmup,
                    .requests = requests}, 1);
}
}  // namespace

TEST_CASE("a replayed trace has its own times, lengths and end") {
    const plan p = planned({.arrivals = replay("dir/t.csv").speed(2), .warmup = 0}, 1,
                           with_trace(four_rows));
    CHECK(schedule_of(p).at == std::vector<double>{0, 0.5, 2, 5});
    CHECK(expected_requests(p) == 4);
    CHECK(expected_seconds(p) == 5);
    CHECK(arrival_text(p.arrivals) == "replay(t.csv, speed 2)");
    CHECK(p.workload_text == "synthetic, prompt of the trace tokens, output of the trace tokens");
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(item_of(p, i).prompt_tokens == four_rows[i].prompt_tokens);
        CHECK(item_of(p, i).output_tokens == four_rows[i].output_tokens);
        CHECK(words(request_of(p, run_arm::candidate, 0, i).prompt).size() ==
              static_cast<std::size_t>(four_rows[i].prompt_tokens));
    }
}

TEST_CASE("a trace ends with its requests or its duration where that comes first") {
    const auto sends = [](long long requests, time_span duration) {
        return schedule_of(planned({.arrivals = replay("t"), .warmup = 0, .requests = requests,
                                    .duration = duration}, 1, with_trace(four_rows))).at.size();
    };
    CHECK(sends(0, {}) == 4);
    CHECK(sends(3, {}) == 3);
    CHECK(sends(9, {}) == 4);
    CHECK(sends(0, 4_s) == 3);
    CHECK(sends(2, 4_s) == 2);
}

TEST_CASE("the warm-up of a trace has its mean rate, and the measured part all of it") {
    const plan p = planned({.arrivals = replay("t"), .warmup = 6}, 1, with_trace(four_rows));
    const schedule s = schedule_of(p);
    REQUIRE(s.at.size() == 10);
    CHECK(s.warmup == 6);
    CHECK(s.measured_from == Approx(15));  // 6 at 4 in 10 s
    CHECK(s.at[9] == Approx(25));
    CHECK(item_of(p, 6).prompt_tokens == 10);
    CHECK(item_of(p, 9).prompt_tokens == 40);
    CHECK(item_of(p, 5).prompt_tokens == 20);  // the warm-up begins with the first ones, too
}

TEST_CASE("lengths of a trace are mapped by a scale and a most, or not used at all") {
    const auto lengths = [](const any_workload& w) {
        const plan p = planned({.workload = w, .arrivals = replay("t"), .warmup = 0}, 1,
                               with_trace(four_rows));
        std::vector<int> out;
        for (std::size_t i = 0; i < 4; ++i) out.push_back(item_of(p, i).prompt_tokens);
        return out;
    };
    CHECK(lengths(synthetic{.prompt_tokens = from_trace()}) == std::vector<int>{10, 20, 30, 40});
    CHECK(lengths(synthetic{.prompt_tokens = from_trace(0.5, 12)}) ==
          std::vector<int>{5, 10, 12, 12});
    CHECK(lengths(synthetic{.prompt_tokens = fixed(9)}) == std::vector<int>{9, 9, 9, 9});
    CHECK_REFUSED(refusal_after([](scenario& s) {
                      s.workload = synthetic{.output_tokens = from_trace()};
                  }),
                  "workload.output_tokens is from_trace()", "must be replay");
    for (const double scale : {0.0, -1.0, inf, nan_value})
        CHECK_REFUSED(refusal_after([&](scenario& s) {
                          s.workload = synthetic{.prompt_tokens = from_trace(scale)};
                      }),
                      "workload.prompt_tokens is from_trace(");
}

TEST_CASE("a trace is not fresh traffic") {
    scenario s = {.arrivals = replay("t"), .traffic = fresh};
    CHECK_THROWS_WITH_AS(planned(s, 1, with_trace(four_rows)),
                         doctest::Contains("one recording"), std::invalid_argument);
}

TEST_CASE("fresh stages of a ramp and of steps keep their mixture of rates") {
    const plan steep = stage_of(planned({.arrivals = steps({{2_rps, 50_s}, {8_rps, 50_s}}),
                                         .traffic = fresh}, 1), 2);
    CHECK(own_length(steep.arrivals, steep.files->trace) == 200);
    CHECK(expected_requests(steep) == 1000);
    CHECK(schedule_of(steep).at.size() > 850);
    const plan climb = stage_of(planned({.arrivals = ramp(2_rps, 8_rps, 100_s), .duration = 100_s,
                                         .traffic = fresh}, 1), 2);
    CHECK(expected_requests(climb) == 1000);
    CHECK(stage_of(planned({.arrivals = steps({{2_rps, 50_s}}), .traffic = fresh}, 1), 1)
              .arrivals.stages[0].lasts.seconds() == 50);
}

TEST_CASE("turns take places of the trace, and requests count turns") {
    const plan p = talk({.turns = 3}, 10, 4);
    CHECK(p.stride == 3);
    const conversation_counts c = counted_conversations(p);
    CHECK(c.warmup == 2);      // whole ones: six requests for the four
    CHECK(c.measured == 4);    // three, three, three and one
    CHECK(c.last_turns == 1);
    CHECK(end_of_trace(p, 6) == 16);
    CHECK(end_of_trace(p, 5) == 15);
    CHECK(requests_before(p, 16) == 16);
    CHECK(expected_requests(p) == 10);
    CHECK(expected_first_turns(p) == 4);
    const plan drawn = talk({.turns = uniform(1, 4)}, 1000);
    std::map<std::size_t, int> seen;
    for (std::size_t i = 0; i < 1000; ++i) ++seen[turns_of(drawn, i)];
    CHECK(seen.size() == 4);
    for (const auto& [turns, times] : seen) CHECK(std::abs(times - 250) < 60);
    CHECK(requests_before(drawn, end_of_trace(drawn, counted_conversations(drawn).measured)) ==
          1000);
}

TEST_CASE("a turn's request says all that was said before, failed exchanges left out") {
    const plan p = talk({.turns = 3, .user_tokens = fixed(5), .system_tokens = fixed(4)});
    const request_spec first = request_of(p, run_arm::candidate, 0, 3);
    const request_spec second = request_of(p, run_arm::candidate, 0, 4, {"one"});
    const request_spec third = request_of(p, run_arm::candidate, 0, 5, {"one", "two"});
    CHECK(first.history.empty());
    CHECK(words(first.prompt).size() == 5);
    CHECK(words(first.system_prompt).size() == 4);
    REQUIRE(second.history.size() == 2);
    CHECK(second.history[0].role == "user");
    CHECK(second.history[0].content == first.prompt);
    CHECK(second.history[1].role == "assistant");
    CHECK(second.history[1].content == "one");
    REQUIRE(third.history.size() == 4);
    CHECK(third.history[2].content == second.prompt);
    CHECK(third.system_prompt == first.system_prompt);
    CHECK(request_of(p, run_arm::candidate, 0, 5, {"", "two"}).history.size() == 2);
    CHECK(request_of(p, run_arm::candidate, 0, 0).system_prompt == first.system_prompt);
    CHECK(request_of(p, run_arm::candidate, 1, 0).system_prompt != first.system_prompt);
    const plan own = talk({.turns = 3, .system_tokens = fixed(20), .shared_system_prompt = false});
    CHECK(request_of(own, run_arm::candidate, 0, 0).system_prompt ==
          request_of(own, run_arm::candidate, 0, 2).system_prompt);
    CHECK(request_of(own, run_arm::candidate, 0, 0).system_prompt !=
          request_of(own, run_arm::candidate, 0, 3).system_prompt);
}

TEST_CASE("a dataset's prompts are sent in turn, salted by repeat, with the file's lengths") {
    scenario s = {.workload = dataset{.path = "d/x.json", .max_turns = 2},
                  .arrivals = closed_loop(1), .warmup = 0, .requests = 30,
                  .options = {.system_prompt = "all of you"}};
    const plan p = planned(s, 1, with_dialogues(3));
    CHECK(p.workload_text == "3 prompts of x.json (sharegpt), about 4 tokens each, 2.0 turns each");
    const request_spec r = request_of(p, run_arm::candidate, 0, 3, {"answer"});
    CHECK(r.prompt == "second 1");
    CHECK(r.max_tokens == 9);
    CHECK(r.force_length);
    CHECK(forced_tokens(p, 3) == 9);
    REQUIRE(r.history.size() == 2);  // the file's system message joins ours
    CHECK(r.history[0].content == "first 1");
    CHECK(holds(r.system_prompt, "all of you\n"));
    CHECK(holds(r.system_prompt, "\nbe kind"));
    CHECK(r.system_prompt != request_of(p, run_arm::candidate, 1, 3, {"answer"}).system_prompt);
    CHECK(r.system_prompt != request_of(p, run_arm::baseline, 0, 3, {"answer"}).system_prompt);
    CHECK(request_of(p, run_arm::candidate, 0, 2).prompt == "first 1");
    CHECK(request_of(p, run_arm::candidate, 0, 6).prompt == "first 0");  // again from the start
    s.workload = dataset{.path = "x", .max_turns = 2, .force_output = false, .salted = false};
    const plan plain = planned(s, 1, with_dialogues(3));
    CHECK(request_of(plain, run_arm::candidate, 0, 0).system_prompt == "all of you\nbe kind");
    CHECK_FALSE(request_of(plain, run_arm::candidate, 0, 0).force_length);
    CHECK(forced_tokens(plain, 0) == 0);
}

TEST_CASE("fresh stages send other conversations of the dataset") {
    scenario s = {.workload = dataset{.path = "x"}, .arrivals = poisson(8_rps), .requests = 30,
                  .traffic = fresh};
    const plan p = planned(s, 1, with_dialogues(40));
    std::set<std::string> first;
    for (const int stage : {0, 1, 2}) {
        const plan q = stage_of(p, stage);
        const auto& source = std::get<recorded_dialogues>(q.source);
        for (std::size_t i = 0; i < (stage == 2 ? 20u : 10u); ++i)
            first.insert(source.at(i, *q.files).turns[0].prompt);
    }
    CHECK(first.size() == 40);
}

TEST_CASE("metrics of turns need conversations, and as many of the turns as others need") {
    CHECK_REFUSED(refusal_of_slo(p90(first_turn_ttft) <= 1_s), "first_turn_ttft",
                  "needs a workload of conversations");
    CHECK_REFUSED(refusal_of_slo(goodput(later_turn_ttft <= 1_s) >= 90_pct), "later_turn_ttft",
                  "needs a workload of conversations");
    const auto talking = [](const slo& x, long long requests) {
        return refusal({.workload = conversations{.turns = 5}, .arrivals = closed_loop(4),
                        .requests = requests, .slos = {x}});
    };
    CHECK(talking(p90(first_turn_ttft) <= 1_s, 150) == "");
    CHECK_REFUSED(talking(p90(first_turn_ttft) <= 1_s, 145), "at least 30", "has 29");
    CHECK(talking(p90(later_turn_ttft) <= 1_s, 40) == "");
    CHECK_REFUSED(talking(p90(later_turn_ttft) <= 1_s, 35), "at least 30", "has 28");
}

TEST_CASE("prompts of a group share their prefix, by the share that is asked for") {
    const plan p = traffic(1, {.prompt_tokens = fixed(60), .shared_prefix = fixed(32),
                               .prefix_groups = 5, .prefix_share = 60_pct});
    std::map<std::string, int> prefixes;
    int members = 0;
    for (std::size_t i = 0; i < 500; ++i) {
        const std::vector<std::string> w = words(request_of(p, run_arm::candidate, 0, i).prompt);
        REQUIRE(w.size() == 60);
        std::string prefix;
        for (std::size_t k = 0; k < 32; ++k) prefix += w[k] + " ";
        ++prefixes[prefix];
        members += std::get<made_up_prompts>(p.source).group(i, p.seed) >= 0;
    }
    int groups = 0;
    for (const auto& [prefix, times] : prefixes) {
        groups += times > 1;
        if (times > 1) CHECK(std::abs(times - 60) < 35);
    }
    CHECK(groups == 5);
    CHECK(std::abs(members - 300) < 45);
    CHECK(holds(p.workload_text, "shared prefix 32 tokens in 5 groups for 60 % of the prompts"));
    CHECK_REFUSED(refusal_after([](scenario& s) { s.workload = synthetic{.prefix_groups = 0}; }),
                  "workload.prefix_groups is 0");
    CHECK_REFUSED(refusal_after([](scenario& s) {
                      s.workload = synthetic{.prefix_share = 101_pct};
                  }),
                  "workload.prefix_share is 101 %");
}

TEST_CASE("conversations out of their range are refused, field by field") {
    const auto refused_talk = [](const conversations& c) {
        return refusal({.workload = c, .requests = 30});
    };
    CHECK_REFUSED(refused_talk({.turns = 0}), "workload.turns is 0");
    CHECK_REFUSED(refused_talk({.turns = 1001}), "workload.turns is 1001", "1 to 1000");
    CHECK_REFUSED(refused_talk({.turns = uniform(1, 2000)}), "workload.turns is uniform(1, 2000)");
    CHECK_REFUSED(refused_talk({.user_tokens = 0}), "workload.user_tokens is 0");
    CHECK_REFUSED(refused_talk({.output_tokens = 0}), "workload.output_tokens is 0");
    CHECK_REFUSED(refused_talk({.think = time_span::from_seconds(-1)}), "workload.think is -1 s");
    CHECK_REFUSED(refused_talk({.turns = empirical("x")}), "workload.turns is empirical(x)");
    CHECK_REFUSED(refused_talk({.user_tokens = from_trace()}), "workload.user_tokens");
}

TEST_CASE("the hash of files and conversations is the same on every platform, and tells them apart") {
    const auto hash = [](const scenario& s, const workload_files& f) {
        return trace_hash(planned(s, 1, f));
    };
    const scenario replayed_trace = {.arrivals = replay("t"), .warmup = 0};
    const scenario talks = {.workload = conversations{.turns = uniform(1, 6)},
                            .arrivals = closed_loop(4), .requests = 100};
    const scenario data = {.workload = dataset{.path = "x", .max_turns = 2},
                           .arrivals = closed_loop(4), .requests = 100};
    CHECK(hash(replayed_trace, with_trace(four_rows)) == "06d88c4d8d7bd0c0");
    CHECK(hash(talks, {}) == "be025376316c1980");
    CHECK(hash(data, with_dialogues(5)) == "29f02ad251448d90");
    scenario other = talks;
    other.workload = conversations{.turns = uniform(1, 6), .think = 1_s};
    CHECK(hash(other, {}) != hash(talks, {}));
    CHECK(hash(data, with_dialogues(6)) != hash(data, with_dialogues(5)));
    workload_files longer = with_dialogues(5);
    longer.dialogues[4].turns[1].output_tokens = 10;
    CHECK(hash(data, longer) != hash(data, with_dialogues(5)));
    scenario salted = data;
    salted.workload = dataset{.path = "x", .max_turns = 2, .salted = false};
    CHECK(hash(salted, with_dialogues(5)) == hash(data, with_dialogues(5)));
}
