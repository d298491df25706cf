// Datasets, recorded traces and conversations, from the file to the verdict, against the simulated
// server. Numbers of tokens are words there.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/scratch.hpp"
#include "virtual/scripted_server.hpp"
#include "support/texts.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

/// Answers in milliseconds; the limits are seconds away.
engine immediate() {
    engine e = quick_engine();
    e.decode_step = 1_ms;
    e.step_per_sequence = 0_ms;
    return e;
}
scenario short_gate(const any_workload& workload, long long requests = 12) {
    scenario s;
    s.target = simulated(immediate());
    s.workload = workload;
    s.arrivals = constant(100_rps);
    s.warmup = 2;
    s.requests = requests;
    s.repeats = 2;
    s.slos = {mean(ttft) <= 5_s};
    return s;
}
std::vector<record> of_repeat(const result& r, int repeat) {
    std::vector<record> out;
    for (const record& x : r.requests())
        if (x.repeat == repeat) out.push_back(x);
    return out;
}
/// All is answered, and every objective shown to be met.
result passes(const scenario& s) {
    result r = run(s);
    check_passes(r);
    all_ok(r);
    return r;
}

}  // namespace

TEST_CASE("every dataset format gates a server, from its file to the verdict") {
    const dataset files[] = {
        {.path = "data/sharegpt.json", .format = sharegpt},
        {.path = "data/dolly.jsonl", .format = dolly},
        {.path = "data/openai.jsonl", .format = openai_jsonl},
        {.path = "data/captions.json", .format = coco_captions, .images = "data/images"},
        {.path = "data/image_questions.jsonl", .format = coco_captions, .images = "data/images"},
        {.path = "data/prompts.txt", .format = text_lines},
    };
    for (const dataset& file : files) {
        CAPTURE(std::string(file.path));
        scenario s = short_gate(file);
        if (file.format == text_lines) s.options.max_tokens = 5;
        const result r = passes(s);
        const std::vector<record> first = of_repeat(r, 0), second = of_repeat(r, 1);
        REQUIRE(first.size() == 14);
        REQUIRE(second.size() == 14);
        for (std::size_t i = 0; i < first.size(); ++i) {
            CHECK(first[i].prompt_tokens == second[i].prompt_tokens);
            CHECK(first[i].output_tokens == second[i].output_tokens);
            CHECK(first[i].prompt_tokens > 5);  // the salt alone has five words
            if (file.format == text_lines) CHECK(first[i].output_tokens == 5);
        }
    }
}

TEST_CASE("answers are as long as those of the dataset, where it has some") {
    scenario s = short_gate(dataset{.path = "data/dolly.jsonl", .format = dolly});
    s.repeats = 1;
    s.slos = {};
    std::set<int> lengths;
    for (const record& x : run(s).requests()) lengths.insert(x.output_tokens);
    // Those of the file have 93, 127, 65, 48, 51 and 24 bytes: a token for four.
    CHECK(lengths == std::set<int>{24, 32, 17, 12, 13, 6});
}

TEST_CASE("salted prompts are new to a prefix cache in every repeat, others are not") {
    const auto cached_in_second = [](bool salted) {
        scenario s = short_gate(prompts({"x"}));
        s.workload = dataset{.path = "data/long_prompt.txt", .format = text_lines, .salted = salted};
        s.arrivals = closed_loop(1);
        s.options.max_tokens = 2;
        long long cached = 0;
        for (const record& x : of_repeat(run(s), 1)) cached += std::max(0, x.cached_tokens);
        return cached;
    };
    CHECK(cached_in_second(true) == 0);
    CHECK(cached_in_second(false) > 0);
}

TEST_CASE("recorded traces are replayed at their times, with their lengths") {
    for (const std::string file : {"azure.csv", "burstgpt.csv", "mooncake.jsonl"}) {
        CAPTURE(file);
        scenario s;
        s.target = simulated(immediate());
        s.arrivals = replay("data/" + file).speed(file == "burstgpt.csv" ? 100 : 10);
        s.warmup = 3;
        s.repeats = 2;
        s.slos = {mean(ttft) <= 5_s};
        const result r = passes(s);
        std::vector<record> measured;
        for (const record& x : of_repeat(r, 1))
            if (x.phase == run_phase::measure) measured.push_back(x);
        REQUIRE(measured.size() == 10);
        const double times[] = {0, 0.13, 0.31, 0.36, 0.80, 1.02, 1.10, 1.55, 1.71, 1.90};
        const int outputs[] = {6, 12, 7, 3, 3, 10, 16, 10, 3, 17};
        for (std::size_t i = 0; i < 10; ++i) {
            const double at =
                static_cast<double>(measured[i].scheduled_ns - measured[0].scheduled_ns) * 1e-9;
            CHECK(at == doctest::Approx(times[i] / 10).epsilon(1e-4));
            CHECK(measured[i].output_tokens == outputs[i]);
        }
        if (file == "azure.csv") CHECK(measured[6].prompt_tokens == 167);
    }
}

TEST_CASE("a trace of one time is sent at once, and no rate is asked of it") {
    const files::scratch at;
    const std::string file = at.file("burst.csv");
    {
        std::ofstream trace(file);
        trace << "Timestamp,Request tokens,Response tokens\n";
        for (int i = 0; i < 60; ++i) trace << "7,8,4\n";
    }
    scenario s;
    s.target = simulated(immediate());
    s.arrivals = replay(file);
    s.warmup = 0;
    s.slos = {p50(e2e) <= 20_s};
    const result r = passes(s);
    CHECK(r.self_check().asked_rate == 0);
    CHECK(of_repeat(r, 0).size() == 60);
}

TEST_CASE("what prompts of a recorded trace have in common is common again") {
    scenario s;
    s.target = simulated(immediate());
    s.arrivals = replay("data/mooncake.jsonl").speed(10).max_in_flight(1);  // so that nothing runs beside it
    s.warmup = 0;
    s.repeats = 1;
    const std::vector<record> all = of_repeat(run(s), 0);
    REQUIRE(all.size() == 10);
    // Even requests share two blocks of 512 tokens, odd ones one block; the first of each is cold.
    CHECK(all[0].cached_tokens == 0);
    CHECK(all[1].cached_tokens == 0);
    for (std::size_t i = 2; i < 10; ++i) {
        CAPTURE(i);
        CHECK(all[i].cached_tokens >= (i % 2 == 0 ? 1024 : 512));
        CHECK(all[i].cached_tokens < (i % 2 == 0 ? 1024 : 512) + 16);
    }
}

// ---- conversations ------------------------------------------------------------------------------

TEST_CASE("users play conversations whose prompts grow by the answers") {
    scenario s = short_gate(conversations{.turns = 3,
                                          .user_tokens = fixed(20),
                                          .output_tokens = fixed(8),
                                          .system_tokens = fixed(32)},
                            30);
    s.arrivals = closed_loop(2);
    s.warmup = 3;
    s.slos = {mean(first_turn_ttft) <= 5_s, mean(later_turn_ttft) <= 5_s};
    const result r = passes(s);
    const std::vector<record> all = of_repeat(r, 1);
    REQUIRE(all.size() == 33);
    std::map<long long, std::vector<record>> by_conversation;
    for (const record& x : all) by_conversation[x.conversation].push_back(x);
    CHECK(by_conversation.size() == 11);
    for (const auto& [number, turns] : by_conversation) {
        REQUIRE(turns.size() == 3);
        for (std::size_t t = 0; t < 3; ++t) {
            CHECK(turns[t].turn == static_cast<int>(t));
            CHECK(turns[t].output_tokens == 8);
            // The system prompt, and of each turn before the message and the answer.
            CHECK(turns[t].prompt_tokens == 32 + 20 + static_cast<int>(t) * (20 + 8));
            if (t > 0) CHECK(turns[t].scheduled_ns >= turns[t - 1].end_ns);
            // What was said before is in the server's prefix cache, by blocks of 16 tokens.
            if (t > 0) CHECK(turns[t].cached_tokens >= 32 + 16);
        }
    }
    CHECK(r.estimate(mean(first_turn_ttft)).value > 0);
    CHECK(r.estimate(mean(later_turn_ttft)).value > 0);
}

TEST_CASE("a system prompt is shared by all conversations or by none") {
    const auto first_turns_cached = [](bool shared) {
        scenario s = short_gate(conversations{.turns = 2,
                                              .user_tokens = fixed(8),
                                              .output_tokens = fixed(4),
                                              .system_tokens = fixed(64),
                                              .shared_system_prompt = shared});
        s.arrivals = closed_loop(1);
        s.repeats = 1;
        s.slos = {};
        int cached = 0;
        for (const record& x : run(s).requests())
            if (x.turn == 0 && x.phase == run_phase::measure)
                cached = std::max(cached, x.cached_tokens);
        return cached;
    };
    CHECK(first_turns_cached(true) >= 64);
    CHECK(first_turns_cached(false) == 0);
}

TEST_CASE("arrivals start conversations, and a user thinks before going on") {
    scenario s = short_gate(conversations{.turns = 2,
                                          .user_tokens = fixed(8),
                                          .output_tokens = fixed(4),
                                          .think = 150_ms},
                            11);
    s.warmup = 4;
    const result r = passes(s);
    const std::vector<record> all = of_repeat(r, 0);
    REQUIRE(all.size() == 15);  // the last conversation is cut, so that the number is kept
    CHECK(all.back().turn == 0);
    long long start = 0;
    for (const record& x : all)
        if (x.conversation == 0 && x.turn == 0) start = x.scheduled_ns;
    for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK((all[i].phase == run_phase::warmup) == (all[i].conversation < 2));
        if (all[i].turn == 0)
            CHECK(all[i].scheduled_ns == start + all[i].conversation * 10000000);
        else
            CHECK(all[i].scheduled_ns == all[i - 1].end_ns + 150000000);
    }
}

TEST_CASE("a dataset's conversations are played with the server's own answers") {
    scenario s = short_gate(dataset{.path = "data/sharegpt.json", .max_turns = 10}, 13);
    s.arrivals = closed_loop(2);
    s.slos = {p50(first_turn_ttft) <= 5_s, p50(later_turn_ttft) <= 5_s};
    const result r = passes(s);
    std::map<long long, int> last_prompt;
    for (const record& x : of_repeat(r, 0)) {
        // What was said and answered before comes on top.
        if (x.turn > 0) CHECK(x.prompt_tokens > last_prompt[x.conversation]);
        last_prompt[x.conversation] = x.prompt_tokens + x.output_tokens;
    }
    const auto lengths = [&](int repeat) {
        std::vector<int> out;
        for (const record& x : of_repeat(r, repeat)) out.push_back(x.prompt_tokens);
        return out;
    };
    CHECK(lengths(0) == lengths(1));
}

TEST_CASE("after a failed turn the conversation goes on without it") {
    engine failing = immediate();
    failing.faults.error_rate = 30_pct;
    scenario s = short_gate(
        conversations{.turns = 6, .user_tokens = fixed(10), .output_tokens = fixed(5)}, 60);
    s.target = simulated(failing);
    s.arrivals = closed_loop(2);
    s.repeats = 1;
    s.warmup = 0;
    s.slos = {};
    std::map<long long, int> said;  // turns of the conversation that were answered
    int failed = 0, all = 0;
    for (const record& x : run(s).requests()) {
        ++all;
        if (x.status == request_status::ok) {
            CHECK(x.prompt_tokens == 10 + said[x.conversation] * 15);
            ++said[x.conversation];
        } else {
            ++failed;
        }
    }
    CHECK(all == 60);
    CHECK(failed > 5);
    CHECK(failed < 40);
}

TEST_CASE("max_in_flight holds for later turns, too, and nobody waits forever") {
    scenario s = short_gate(
        conversations{.turns = 3, .user_tokens = fixed(8), .output_tokens = fixed(6)}, 60);
    s.arrivals = constant(400_rps).max_in_flight(3);
    s.repeats = 1;
    s.slos = {};
    const std::vector<record> all = all_ok(run(s));
    CHECK(all.size() >= 60);
    const int most = most_in_flight(all);
    CHECK(most <= 3);
    CHECK(most >= 2);
}

TEST_CASE("all at once and conversations until a time go together with everything else") {
    const conversations talk = {.turns = 2, .user_tokens = fixed(8), .output_tokens = fixed(4)};
    scenario s = short_gate(talk, 20);
    s.arrivals = all_at_once();
    s.slos = {};
    s.repeats = 1;
    CHECK(run(s).requests().size() == 22);
    s.arrivals = closed_loop(3);
    s.requests = 0;
    s.duration = 400_ms;
    const result r = run(s);
    CHECK(all_ok(r).size() > 10);
}

// ---- groups of prompts --------------------------------------------------------------------------

TEST_CASE("prefixes are shared within their groups, by the share that is asked for") {
    scenario s = short_gate(synthetic{.prompt_tokens = fixed(80),
                                      .output_tokens = fixed(2),
                                      .shared_prefix = fixed(64),
                                      .prefix_groups = 4,
                                      .prefix_fraction = 50_pct},
                            100);
    s.arrivals = closed_loop(1);
    s.warmup = 0;
    s.repeats = 1;
    s.slos = {};
    int cached = 0;
    for (const record& x : run(s).requests()) {
        CHECK((x.cached_tokens == 0 || x.cached_tokens == 64));
        cached += x.cached_tokens > 0;
    }
    // Half of 100 but the first one of each group; standard deviation 5.
    CHECK(std::abs(cached - 46) < 20);
}

// ---- files that cannot be used ------------------------------------------------------------------

TEST_CASE("a file that is not there or wrong is refused before the load, with its name") {
    const auto refusal = [](const dataset& d) { return refusal_to_plan(short_gate(d)); };
    CHECK_REFUSED(refusal({.path = "data/none.json"}), "data/none.json");
    CHECK_REFUSED(refusal({.path = "data"}), "cannot be read");
    CHECK_REFUSED(refusal({}), "workload.path is empty");
    CHECK_REFUSED(refusal({.path = "data/dolly.jsonl"}), "data/dolly.jsonl:1: ");
    CHECK_REFUSED(refusal({.path = "data/captions.json", .format = coco_captions}),
                  ".png cannot be read");
    CHECK_REFUSED(refusal({.path = "data/sharegpt.json", .max_items = 0}), "max_items is 0");
    CHECK_REFUSED(refusal({.path = "x", .min_prompt_tokens = 9, .max_prompt_tokens = 8}),
                  "min_prompt_tokens is 9 and max_prompt_tokens is 8");
    CHECK_REFUSED(refusal({.path = "x", .max_turns = 0}), "max_turns is 0");
    scenario s = short_gate({});
    s.arrivals = replay("data/none.csv");
    CHECK_REFUSED(refusal_to_plan(s), "data/none.csv");
    s.arrivals = replay("data/dolly.jsonl");
    CHECK_REFUSED(refusal_to_plan(s), "data/dolly.jsonl:1: ");
}

namespace {
/// Words of over three letters are two tokens, and nine are around a chat's prompt.
int tokens_in(const std::string& text) {
    int n = 0;
    std::istringstream in(text);
    for (std::string w; in >> w;) n += w.size() > 3 ? 2 : 1;
    return n;
}
std::string text_in(const std::string& body, const char* name) {
    const std::size_t at = body.find(std::string("\"") + name + "\":\"");
    if (at == std::string::npos) return {};
    const std::size_t from = body.find(":\"", at) + 2;
    return body.substr(from, body.find('"', from) - from);
}
enum class reports { vllm, llama_cpp, usage, nothing, silence };
auto answering(reports how) {
    return [how](const scripted::request& r) -> scripted::answer {
        if (r.path == "/tokenize" && how == reports::silence) return {scripted::stall()};
        const std::string text =
            text_in(r.body, how == reports::llama_cpp ? "content" : "prompt");
        const int n = tokens_in(text) + 1;
        std::string list = "[1";
        for (int i = 1; i < n; ++i) list += ",7";
        if (r.path == "/tokenize" && how == reports::vllm && !text.empty())
            return {scripted::send(scripted::json(
                "200 OK", "{\"count\":" + std::to_string(n) + ",\"tokens\":" + list + "]}"))};
        // It answers a body without "content", too.
        if (r.path == "/tokenize" && how == reports::llama_cpp)
            return {scripted::send(scripted::json(
                "200 OK", "{\"tokens\":" +
                              (r.body.find("messages") == std::string::npos ? list : "[") + "]}"))};
        if (r.path == "/tokenize")
            return {scripted::send(scripted::json("404 Not Found", "{}"))};
        const bool says = how != reports::nothing && how != reports::silence;
        const int prompt = tokens_in(text_in(r.body, "content")) + 9;
        return {scripted::send(scripted::sized_stream(
            scripted::role() + scripted::chat_chunk(" a") + scripted::finish("length") +
            (says ? scripted::usage(prompt, 1) : "") + scripted::done()))};
    };
}
result lengths_on(reports how, int requests = 20) {
    const scripted::server server(answering(how));
    return run({.target = endpoint{.url = server.url()},
                .workload = synthetic{.prompt_tokens = fixed(50), .output_tokens = fixed(1)},
                .arrivals = closed_loop(1),
                .warmup = 0,
                .requests = requests,
                .repeats = 2});
}
std::set<int> lengths_of(const result& r) {
    std::set<int> lengths;
    for (const record& x : r.requests()) lengths.insert(x.prompt_tokens);
    return lengths;
}
}  // namespace

TEST_CASE("prompts are as many tokens as asked for, as the server counts them") {
    CHECK(lengths_of(lengths_on(reports::vllm)) == std::set<int>{50});
    CHECK(lengths_of(lengths_on(reports::llama_cpp)) == std::set<int>{50});
    CHECK(lengths_of(lengths_on(reports::usage)) == std::set<int>{50});
    CHECK(lengths_of(lengths_on(reports::nothing)) == std::set<int>{0});
}

TEST_CASE("completions get lists of token ids where words are more than a token each") {
    for (const bool takes_ids : {true, false}) {
        CAPTURE(takes_ids);
        const scripted::server server([=](const scripted::request& r) -> scripted::answer {
            const std::size_t list = r.body.find("\"prompt\":[");
            const bool is_list = list != std::string::npos;
            if (r.path == "/tokenize" || (is_list && !takes_ids))
                return {scripted::send(scripted::json("400 Bad Request", "{}"))};
            const std::string ids = is_list ? r.body.substr(list, r.body.find(']') - list) : "";
            const auto n = is_list ? 1 + std::count(ids.begin(), ids.end(), ',')
                                   : static_cast<long>(text_in(r.body, "prompt").size());
            return {scripted::send(scripted::sized_stream(
                scripted::sse_event(R"({"choices":[{"text":" a"}]})") +
                scripted::usage(static_cast<int>(n), 1) + scripted::done()))};
        });
        const result r =
            run({.target = endpoint{.url = server.url(), .api = openai_completions},
                 .workload = synthetic{.prompt_tokens = fixed(50), .output_tokens = fixed(1)},
                 .arrivals = closed_loop(1),
                 .warmup = 0,
                 .requests = 20,
                 .repeats = 2});
        const std::set<int> lengths = lengths_of(r);
        if (takes_ids) CHECK(lengths == std::set<int>{50});
        else CHECK(lengths.size() > 1);
        CHECK(*lengths.begin() > 30);
        CHECK(*lengths.rbegin() < 70);
    }
}

TEST_CASE("a server that is silent about tokens holds up a gate for seconds, no longer") {
    const result r = lengths_on(reports::silence, 2);
    CHECK(all_ok(r).size() == 4);
}
