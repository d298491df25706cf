// Each API from the scenario to the verdict, on the simulated server, which speaks all of them: are
// requests understood, lengths forced where that can be, tokens and times those of its own log?
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "virtual/scripted_server.hpp"
#include "virtual/execution_environment.hpp"

#include <map>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

const std::vector<spoken_api> all_apis = spoken_apis();

endpoint at(const std::string& url, api_format api) {
    endpoint e;
    e.url = url;
    e.api = api;
    if (api == triton) e.model = "simulated";
    return e;
}
engine short_steps() {
    engine e = quick_engine();
    e.decode_step = 2_ms;
    e.step_per_sequence = 0.05_ms;
    return e;
}
scenario few(const any_target& target) {
    scenario s;
    s.target = target;
    s.workload = synthetic{.prompt_tokens = fixed(20), .output_tokens = fixed(8)};
    s.arrivals = closed_loop(16);
    s.warmup = 0;
    s.requests = 16;
    s.repeats = 2;
    return s;
}

/// Every record beside what the server wrote to it.
void check_against_log(const result& r, const logging_server& server, const spoken_api& x,
                       bool streamed) {
    std::map<std::string, server_log_entry> written;
    for (const server_log_entry& e : server.log()) written[e.request_id] = e;
    for (const record& q : r.requests()) {
        CAPTURE(std::string(q.error));
        REQUIRE(q.status == request_status::ok);
        REQUIRE(written.count(q.id) == 1);
        const server_log_entry& e = written[q.id];
        CHECK(q.output_tokens == e.output_tokens);
        CHECK(q.output_tokens == 8);
        CHECK(q.token_source == (x.reports_usage || !streamed ? token_origin::usage
                                                            : token_origin::events));
        if (x.reports_usage) CHECK(q.prompt_tokens == e.prompt_tokens);
        CHECK(q.events == (streamed ? 8 : 1));
        CHECK(q.first_event_tokens == (streamed ? 1 : 8));
        CHECK(q.first_token_ns ==
              (streamed ? e.first_write_ns : e.last_write_ns) + virtual_world::way_ns);
        CHECK(q.last_token_ns == e.last_write_ns + virtual_world::way_ns);
        CHECK(q.end_ns == q.last_token_ns);
    }
}

}  // namespace

TEST_CASE("a gate on every API passes, with the tokens and times of the server's own log") {
    for (const spoken_api& x : all_apis) {
        CAPTURE(x.name);
        const logging_server server(short_steps());
        scenario s = few(at(server.url(), x.api));
        s.slos = {p50(ttft) <= 5_s, mean(tpot) <= 2_s, p50(e2e) <= 10_s};
        const result r = run(s);
        CHECK(r.requests().size() == 32);
        check_against_log(r, server, x, true);
        check_passes(r);
    }
}

TEST_CASE("answers in one piece are measured from end to end on every API that tells their tokens") {
    for (const spoken_api& x : all_apis) {
        if (x.only_streams) continue;
        CAPTURE(x.name);
        const logging_server server(short_steps());
        scenario s = few(at(server.url(), x.api));
        s.requests = 48;  // the last answers of all come as the window ends
        s.options.stream = false;
        if (x.api == triton) s.options.extra_body = R"({"return_num_output_tokens":true})";
        s.slos = {p50(e2e) <= 10_s, output_throughput >= 1_tps, p50(normalized_latency) <= 5_s};
        const result r = run(s);
        CHECK(r.requests().size() == 96);
        check_against_log(r, server, x, false);
        check_passes(r);
    }
}

TEST_CASE("longer answers are forced where the API can, else they end where the model ends them") {
    for (const spoken_api& x : all_apis) {
        CAPTURE(x.name);
        const logging_server server(short_steps());
        scenario s = few(at(server.url(), x.api));
        s.workload = synthetic{.prompt_tokens = fixed(20), .output_tokens = fixed(200)};
        s.repeats = 1;
        const heard out;
        const result r = run(s);
        CHECK(holds(out.text(), "answers end where the model ends them") == !x.forces);
        bool some_shorter = false;  // seven of ten end by themselves
        for (const record& q : all_ok(r)) {
            some_shorter = some_shorter || q.output_tokens < 200;
            if (q.output_tokens < 200 && x.tells_reason) CHECK(std::string(q.finish_reason) == "stop");
        }
        CHECK(some_shorter == !x.forces);
    }
}

TEST_CASE("LLMBENCH_API names any of them, and a wrong name is refused with all of them") {
    const variable model("LLMBENCH_MODEL", "m");
    for (std::size_t i = 0; i < std::size(all_apis); ++i) {
        CAPTURE(all_apis[i].name);
        const variable api("LLMBENCH_API", all_apis[i].name);
        scripted::server server({{scripted::send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")}});
        run(asking(endpoint{.url = server.url()}));
        CHECK(name_of(all_apis[i].api) == all_apis[i].name);
        CHECK(server.log().back().path == path_asked_for(all_apis[i].api, "m"));
    }
    const variable api("LLMBENCH_API", "openai");
    const std::string said = refusal_to_bring_up(endpoint{.url = "http://127.0.0.1:9"});
    CHECK(holds(said, "LLMBENCH_API is \"openai\": it is one of openai_chat, openai_completions"));
    for (const spoken_api& x : all_apis) CHECK(holds(said, x.name));
}

// ---- offline -----------------------------------------------------------------------------------

TEST_CASE("all at once: prefill and decode throughput are what the engine can, and judged again") {
    engine e = short_steps();
    e.jitter = 0;
    e.prefix_cache = true;
    scenario s = few(simulated(e));
    s.name = "offline";
    s.workload = prompts({"one prompt of a few words that everybody sends"});
    s.arrivals = all_at_once();
    s.options.max_tokens = 60;
    s.options.ignore_eos = true;
    s.slos = {prefill_throughput >= 10_tps, decode_throughput >= 100_tps, p50(e2e) <= 20_s};
    const result r = run(s);
    check_passes(r);
    // Sixteen sequences, a token each in every step of 2 ms + 16 x 0.05 ms: no server is faster.
    const double decode = r.estimate(decode_throughput).value;
    CHECK(decode <= 16 / 0.0028 * 1.001);
    CHECK(decode <= r.estimate(output_throughput).value);
    // Every prompt of 9 tokens and the 59 tokens after each first one are in the window, but for the
    // last ones of all where they are read together with the end.
    const double ratio = decode / r.estimate(prefill_throughput).value;
    CHECK(ratio <= 59 / 9.0 * 1.001);
    CHECK(ratio >= 56 / 9.0);
    const slo_list slos = s.slos;
    const auto again = judge(report_file("records.jsonl"), slos, "offline");
    REQUIRE(again.size() == r.verdicts().size());
    for (std::size_t i = 0; i < slos.size(); ++i) {
        CHECK(again[i].outcome == r.verdicts()[i].outcome);
        CHECK(again[i].estimate.value == r.verdicts()[i].estimate.value);
        CHECK(again[i].estimate.low == r.verdicts()[i].estimate.low);
    }
}

TEST_CASE("images are sent where the API has a form for them, and refused elsewhere") {
    const logging_server server(short_steps());
    for (const spoken_api& x : all_apis) {
        CAPTURE(x.name);
        scenario s = few(at(server.url(), x.api));
        s.workload = dataset{.path = "data/captions.json", .format = coco_captions,
                             .images = "data/images"};
        if (!x.takes_images) {
            CHECK(refusal_of(s) == std::string("workload has images, and ") + x.name +
                                       " takes none: use openai_chat");
            continue;
        }
        for (const record& r : run(s).requests()) {
            CHECK(r.status == request_status::ok);
            CHECK(r.prompt_tokens > 8);  // the salt and the question
        }
    }
}
