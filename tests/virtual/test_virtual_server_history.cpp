// Conversations whose history the server keeps: what each turn sends, what becomes of one that cannot
// go on, and that a server without the history is found.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/scratch.hpp"
#include "support/texts.hpp"
#include "virtual/execution_environment.hpp"
#include "virtual/scripted_server.hpp"
#include "llmbench_sessions.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <picojson.h>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;
using scripted::sse_event;
using texts::holds;

namespace {

/// Conversations of four turns, one after the other.
scenario talk(const std::string& url, int conversations = 3) {
    scenario s;
    s.target = endpoint{.url = url, .model = "m", .api = openai_responses};
    s.workload = llmbench::conversations{.turns = fixed(4),
                                         .user_tokens = fixed(20),
                                         .output_tokens = fixed(6),
                                         .system_tokens = fixed(10)};
    s.options.server_history = true;
    s.arrivals = closed_loop(1);
    s.warmup = 0;
    s.requests = 4 * conversations;
    s.repeats = 1;
    return s;
}

/// An answer of six tokens whose id is `id`, "" for none.
scripted::answer response(const std::string& id, int input_tokens = 30) {
    const std::string named = id.empty() ? "" : R"("id":")" + id + R"(",)";
    std::string events;
    for (int i = 0; i < 6; ++i)
        events += sse_event(R"({"type":"response.output_text.delta","delta":" word"})");
    events += sse_event(R"({"type":"response.completed","response":{)" + named +
                        R"("status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},)"
                        R"("usage":{"input_tokens":)" + std::to_string(input_tokens) +
                        R"(,"output_tokens":6}}})");
    return {scripted::send(scripted::sized_stream(events))};
}
scripted::answer refused() {
    return {scripted::send(scripted::json(
        "404 Not Found", R"({"error":{"message":"Previous response with id 'r' not found."}})"))};
}

struct sent_turn {
    std::string previous, first_role;
    std::size_t messages = 0;
    bool stores = false, has_instructions = false;
    explicit sent_turn(const scripted::request& q) {
        picojson::value v;
        REQUIRE(picojson::parse(v, q.body).empty());
        previous = v.contains("previous_response_id") ? v.get("previous_response_id").to_str() : "";
        const auto& input = v.get("input").get<picojson::array>();
        messages = input.size();
        first_role = input.front().get("role").to_str();
        stores = v.get("store").get<bool>();
        has_instructions = v.contains("instructions");
    }
};
/// Of the load, which ends with the log: questions before it have no history.
std::vector<sent_turn> turns_of(const scripted::server& server, std::size_t n) {
    const std::vector<scripted::request> log = server.log();
    REQUIRE(log.size() >= n);
    return {log.end() - static_cast<std::ptrdiff_t>(n), log.end()};
}

}  // namespace

TEST_CASE("each turn sends its own input, the instructions, and the id of the answer before") {
    int n = 0;
    const scripted::server server([&](const scripted::request&) {
        ++n;
        return response("r" + std::to_string(n), 20 + 30 * n);
    });
    const auto records = records_of(talk(server.url(), 2));
    REQUIRE(records.size() == 8);
    for (const record& r : records) CHECK(status(r) == "ok");
    const std::vector<sent_turn> sent = turns_of(server, 8);
    const int before = n - 8;
    for (std::size_t i = 0; i < sent.size(); ++i) {
        CAPTURE(i);
        const int last = before + static_cast<int>(i);
        CHECK(sent[i].previous == (i % 4 == 0 ? "" : "r" + std::to_string(last)));
        CHECK(sent[i].messages == 1);
        CHECK(sent[i].first_role == "user");
        CHECK(sent[i].stores);
        CHECK(sent[i].has_instructions);
    }
}

TEST_CASE("a turn behind a failed one goes on from the last answer there was") {
    int n = 0, later = 0;
    const scripted::server server([&](const scripted::request& q) {
        ++n;
        later += holds(q.body, "previous_response_id");
        return later == 1 ? refused() : response("r" + std::to_string(n), 20 + 30 * n);
    });
    const auto records = records_of(talk(server.url(), 1));
    REQUIRE(records.size() == 4);
    const std::string first = "r" + std::to_string(n - 3), third = "r" + std::to_string(n - 1);
    CHECK(status(records[0]) == "ok");
    CHECK(status(records[1]) == "http");
    CHECK(error(records[1]) == "HTTP 404: Previous response with id 'r' not found.");
    CHECK(status(records[2]) == "ok");
    const std::vector<sent_turn> sent = turns_of(server, 4);
    CHECK(sent[1].previous == first);
    CHECK(sent[2].previous == first);  // the second one was never an answer
    CHECK(sent[3].previous == third);
}

TEST_CASE("a server that lacks the history of later turns is found by their prompt tokens") {
    const auto verdict_of = [](const std::function<int(int turn)>& input_tokens) {
        int n = 0, turn = 0;
        const scripted::server server([&](const scripted::request& q) {
            turn = holds(q.body, "previous_response_id") ? turn + 1 : 0;
            return response("r" + std::to_string(++n), input_tokens(turn));
        });
        scenario s = talk(server.url(), 5);
        s.repeats = 2;
        s.slos = {mean(ttft) <= 10_s};
        const slo_verdict v = run(s).verdicts()[0];
        return std::string(to_string(v.outcome)) + ": " + std::string(v.reason);
    };
    const std::string grows = verdict_of([](int turn) { return 30 + 26 * turn; });
    CHECK(grows == "pass: ");
    // It ignores the id; forgets after the second turn; keeps the last turn only; cuts at a length.
    CHECK(verdict_of([](int) { return 30; }) ==
          "invalid: server: 30 of 30 turns that go on from a response have no more prompt tokens than "
          "the turn before: it ignores the history, loses or cuts it, or its usage leaves it out");
    CHECK(holds(verdict_of([](int turn) { return turn == 3 ? 30 : 30 + 26 * turn; }), "server: 10 of 30"));
    CHECK(holds(verdict_of([](int turn) { return turn == 0 ? 30 : 56; }), "server: 20 of 30"));
    CHECK(holds(verdict_of([](int turn) { return std::min(30 + 26 * turn, 80); }), "server: 10 of 30"));
    // It keeps a half of what was said before.
    CHECK(holds(verdict_of([](int turn) { return 30 + (turn > 0 ? 13 * turn - 7 : 0); }), "server: 10 of 40 completed"));
    CHECK(verdict_of([](int) { return 0; }) ==
          "pass: the server reports no prompt tokens, which would show whether it kept the history");
    CHECK(grows == verdict_of([](int turn) { return 30 + 900 * turn; }));  // templates, per turn
    engine e = quick_engine();
    e.faults.ignores_history = true;
    const logging_server server(e);
    scenario s = talk(server.url(), 5);
    s.repeats = 2;
    s.slos = {mean(ttft) <= 10_s, mean(ttft_per_prompt_token) <= 10_s};
    const auto verdicts = run(s).verdicts();
    CHECK(holds(std::string(verdicts[0].reason), "server: 30 of 30 turns that go on from a response"));
    CHECK(verdicts[1].outcome == verdict::invalid);
    s.options.server_history = false;
    CHECK(run(s).verdicts()[0].outcome == verdict::pass);
}

TEST_CASE("a server that reads a half of the history is found, whoever keeps it") {
    const auto verdict_of = [](bool by_server, int of_first, int of_second, int of_third) {
        const int all[] = {of_first, of_second, of_third};
        int n = 0;
        std::size_t turn = 0;
        const scripted::server server([&](const scripted::request& q) {
            const sent_turn asked(q);
            turn = by_server ? (asked.previous.empty() ? 0 : turn + 1) : asked.messages / 2;
            return response("r" + std::to_string(++n), all[std::min<std::size_t>(turn, 2)]);
        });
        scenario s = talk(server.url(), 5);
        s.workload = llmbench::conversations{.turns = fixed(3), .user_tokens = fixed(200), .output_tokens = fixed(6)};
        s.options.server_history = by_server;
        s.requests = 15;
        s.repeats = 2;
        s.slos = {mean(ttft) <= 10_s};
        const slo_verdict v = run(s).verdicts()[0];
        return std::string(to_string(v.outcome)) + ": " + std::string(v.reason);
    };
    for (const bool by_server : {true, false}) {
        CAPTURE(by_server);
        CHECK(verdict_of(by_server, 200, 406, 612) == "pass: ");
        CHECK(verdict_of(by_server, 200, 310, 365) ==
              "invalid: server: 10 of 30 completed requests report under 80 % of the prompt tokens that "
              "were asked for: it reads only a part of its prompts");
        CHECK(verdict_of(by_server, 200, 380, 560) == "pass: ");  // words are not tokens
    }
}

TEST_CASE("an answer without an id ends what could follow, and only then is an error") {
    const scripted::server server([&](const scripted::request&) { return response(""); });
    const auto records = records_of(talk(server.url(), 1));
    REQUIRE(records.size() == 4);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(status(records[i]) == "protocol");
        CHECK(error(records[i]) ==
              "the response has no id that its next turn could name (server_history)");
    }
    CHECK(status(records[3]) == "ok");  // nothing follows the last turn
    for (const sent_turn& t : turns_of(server, 4)) CHECK(t.previous == "");
}

TEST_CASE("the simulated server's history has the tokens of the whole history that is sent") {
    std::map<bool, std::vector<record>> all;
    for (const bool keeps : {true, false}) {
        const logging_server server(quick_engine());
        scenario s = talk(server.url(), 20);
        s.options.server_history = keeps;
        all[keeps] = records_of(s);
    }
    REQUIRE(all[true].size() == 80);
    REQUIRE(all[false].size() == 80);
    for (std::size_t i = 0; i < 80; ++i) {
        CAPTURE(i);
        CHECK(status(all[true][i]) == "ok");
        CHECK(all[true][i].prompt_tokens == all[false][i].prompt_tokens);
        if (all[true][i].turn > 0) CHECK(all[true][i].prompt_tokens > all[true][i - 1].prompt_tokens);
        if (all[true][i].turn > 0) CHECK(all[true][i].cached_tokens > 0);
    }
}

TEST_CASE("a server that forgets responses fails the turns behind them") {
    engine e = quick_engine();
    e.keeps_responses = 0;
    const logging_server server(e);
    int refused = 0;
    for (const record& r : records_of(talk(server.url(), 5))) {
        refused += status(r) == "http";
        if (r.turn > 0) CHECK(error(r) == "HTTP 404: the previous response is not known");
        else CHECK(status(r) == "ok");
    }
    CHECK(refused == 15);
    e.keeps_responses = 10000;
    e.faults.forgets = 100_pct;
    const logging_server forgetful(e);
    for (const record& r : records_of(talk(forgetful.url(), 5)))
        CHECK(status(r) == (r.turn > 0 ? "http" : "ok"));
}

TEST_CASE("the server's history against the whole history is an A/B of one gate") {
    engine e = quick_engine();
    e.prefix_cache = false;  // both arms compute the whole history
    const logging_server server(e);
    scenario s = talk(server.url(), 25);
    s.baseline = otherwise{.options = request_options{}};
    s.repeats = 4;
    s.slos = {mean(later_turn_ttft) <= 1.25 * baseline, error_rate <= 1_pct};
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    int candidates = 0;
    for (const record& q : r.requests()) {
        CHECK(status(q) == "ok");
        candidates += q.variant == run_variant::candidate;
    }
    CHECK(candidates == 400);
}

TEST_CASE("recorded sessions go on from the last answer of their chain, at the recorded lengths") {
    const files::scratch here;
    const std::string path = here.file("sessions.jsonl");
    {
        std::ofstream file(path);
        for (const char* name : {"s1", "s2", "s3"}) {
            const std::string of = std::string(R"({"session":")") + name + R"(","step":)";
            file << of << R"("a","prompt_tokens":64,"output_tokens":10})" "\n"
                 << of << R"("b","after":["a"],"keeps":["a",64],"prompt_tokens":100,"output_tokens":12})" "\n"
                 << of << R"("c","after":["b"],"keeps":["b",100],"prompt_tokens":150,"output_tokens":5})" "\n"
                 << of << R"("d","after":["c"],"keeps":["c",16],"prompt_tokens":30,"output_tokens":5})" "\n";
        }
    }
    constexpr int lengths[] = {64, 100, 150, 30};
    for (const bool keeps : {true, false}) {
        CAPTURE(keeps);
        const logging_server server(quick_engine());
        scenario s = talk(server.url());
        s.workload = sessions{.path = path};
        s.options.server_history = keeps;
        s.requests = 12;
        const auto records = records_of(s);
        REQUIRE(records.size() == 12);
        for (std::size_t i = 0; i < 12; ++i) {
            CAPTURE(i);
            CHECK(status(records[i]) == "ok");
            CHECK(records[i].prompt_tokens == lengths[i % 4]);
        }
    }
    int n = 0;
    const scripted::server server([&](const scripted::request&) {
        ++n;
        return response("r" + std::to_string(n), 64);
    });
    scenario s = talk(server.url());
    s.workload = sessions{.path = path, .force_output = false};
    s.requests = 4;
    records_of(s);
    const std::vector<sent_turn> sent = turns_of(server, 4);
    CHECK(sent[0].previous == "");
    CHECK(sent[1].previous == "r" + std::to_string(n - 3));
    CHECK(sent[2].previous == "r" + std::to_string(n - 2));
    CHECK(sent[3].previous == "");  // a compaction: the prompt does not go on
}
