// Recordings of Weka, Bailian and Mooncake as sessions: how a graph is derived, and what is refused.
#include "support/recordings.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace recordings;

namespace {

/// A request of Weka that runs from `t` to `end` and has these blocks of ten tokens.
std::string call(double t, double end, const std::string& blocks, const std::string& more = "") {
    std::size_t n = blocks.empty() ? 0 : 1;
    for (const char c : blocks) n += c == ',';
    return R"({"t":)" + std::to_string(t) + R"(,"type":"s","model":"big","in":)" +
           std::to_string(10 * n) + R"(,"out":4,"hash_ids":[)" + blocks + R"(],"api_time":)" +
           std::to_string(end - t) + more + "}";
}
std::string weka(const std::string& requests, const std::string& scope = "local") {
    return R"({"id":"t","block_size":10,"hash_id_scope":")" + scope + R"(","requests":[)" +
           requests + "]}\n";
}

converted_corpus read_weka(const std::string& text) { return read("weka", {text}); }
std::string refusal(const std::string& format, const std::string& text) {
    return texts::refusal_of([&] { read(format, {text}); });
}

}  // namespace

TEST_CASE("steps of a line wait for the one before and for the tool between them") {
    const session_corpus c =
        read_weka(weka(call(0, 2, "1,2") + "," + call(3, 5, "1,2,3") + "," + call(5, 6, "1,2,3,4")));
    CHECK(after(c, 0) == step_list{});
    CHECK(after(c, 1) == step_list{0});
    CHECK(after(c, 2) == step_list{1});
    CHECK(next(c, 0) == step_list{1});
    CHECK(step(c, 1).wait_s == 1);
    CHECK(step(c, 2).wait_s == 0);
    CHECK(step(c, 2).turn == 2);
    CHECK(step(c, 2).line == 0);
    CHECK(step(c, 2).prompt.kept == 30);
    CHECK(c.models[step(c, 0).model] == "big");
}

TEST_CASE("a fan-out is waited for by who joins it, and never by each other") {
    // 0 spawns two helpers, 1 and 2, that overlap; 3 goes on from 0 behind both; 4 from 3.
    const session_corpus c = read_weka(weka(call(0, 2, "1,2") + "," + call(2.5, 6, "50,51") + "," +
                                       call(3, 5, "60,61") + "," + call(7, 8, "1,2,3") + "," +
                                       call(9, 10, "1,2,3,4")));
    CHECK(after(c, 1) == step_list{0});
    CHECK(after(c, 2) == step_list{0});
    CHECK(after(c, 3) == step_list{0, 1, 2});
    CHECK(after(c, 4) == step_list{3});  // 3 has waited for them
    CHECK(step(c, 1).wait_s == 0.5);
    CHECK(step(c, 3).wait_s == 1);  // behind 1, which ended last: the server's time is not in it
    CHECK(step(c, 3).line == 0);
    CHECK(step(c, 3).turn == 1);
    CHECK(step(c, 1).depth == 1);
    CHECK(step(c, 2).depth == 1);
    CHECK(step(c, 1).line != step(c, 2).line);
}

TEST_CASE("a late helper is waited for by the first step that began when all of it had ended") {
    // The helper 1 goes on with 3 while the main line is at 2.
    const session_corpus c = read_weka(weka(call(0, 1, "1,2") + "," + call(1, 4, "50,51") + "," +
                                       call(2, 5, "1,2,3") + "," + call(4, 6, "50,51,52") + "," +
                                       call(5.5, 7, "1,2,3,4") + "," + call(8, 9, "1,2,3,4,5")));
    CHECK(after(c, 2) == step_list{0});
    CHECK(after(c, 3) == step_list{1});
    CHECK(after(c, 4) == step_list{2});  // one of the helper's calls had ended, and not the helper
    CHECK(after(c, 5) == step_list{4, 3});
    CHECK(step(c, 3).line == step(c, 1).line);
    CHECK(step(c, 3).turn == 1);
    CHECK(step(c, 5).line == 0);
}

TEST_CASE("a compaction goes on from what it has in common, behind all that was said, on its line") {
    const session_corpus c =
        read_weka(weka(call(0, 1, "1,2,3,4") + "," + call(1, 2, "1,2,3,4,5,6") + "," +
                  call(2, 3, "1,2,3,4,5,6,7,8") + "," + call(4, 5, "1,90")));
    CHECK(after(c, 3) == step_list{0, 2});
    CHECK(step(c, 3).prompt.kept == 10);
    CHECK(step(c, 3).wait_s == 1);
    CHECK(step(c, 3).line == 0);
    CHECK(step(c, 3).turn == 3);
}

TEST_CASE("of steps that ended with the same text the earliest is gone on from, of one model") {
    const std::string other = R"({"t":2,"type":"s","model":"small","in":20,"out":1,)"
                              R"("hash_ids":[1,2],"api_time":0.5})";
    const session_corpus c = read_weka(weka(call(0, 1, "1,2") + "," + call(0.5, 1.5, "1,2") + "," +
                                       other + "," + call(4, 5, "1,2,3")));
    CHECK(after(c, 1) == step_list{});
    CHECK(step(c, 1).wait_s == 0.5);
    CHECK(after(c, 2) == step_list{1});  // nothing of its model: behind the one that ended last
    CHECK(after(c, 3)[0] == 0);
}

TEST_CASE("without durations a step is sent at its offset, or when what it waits for has ended") {
    const std::string a = R"({"t":5,"type":"n","in":20,"out":1,"hash_ids":[1,2]})",
                      b = R"({"t":9,"type":"n","in":30,"out":1,"hash_ids":[1,2,3]})";
    const session_corpus c = read_weka(weka(a + "," + b));
    CHECK(after(c, 1) == step_list{0});
    CHECK(step(c, 0).at_s == 0);
    CHECK(step(c, 1).at_s == 4);
    CHECK(step(c, 1).wait_s == 0);
}

TEST_CASE("a step that took no time is not behind itself, nor behind who began with it") {
    const session_corpus c = read_weka(weka(call(0, 10, "1,2") + "," + call(1, 1, "1,2,3") + "," +
                                       call(1, 1, "1,2,3,4") + "," + call(2, 3, "1,2,3,4,5")));
    CHECK(after(c, 1) == step_list{});
    CHECK(after(c, 2) == step_list{1});
    CHECK(after(c, 3) == step_list{2});
}

TEST_CASE("a sub-agent has its own line and label, with times of the session or of its spawn") {
    for (const double from : {0.0, 3.0}) {  // relative to the spawn at 3 s, and absolute
        const session_corpus c = read_weka(weka(
            call(0, 2, "1,2") + R"(,{"t":3,"type":"subagent","agent_id":"a","subagent_type":)" +
            R"("Explore","requests":[)" + call(from, from + 1, "50") + "," +
            call(from + 2, from + 3, "50,51") + "]}," + call(8, 9, "1,2,3")));
        REQUIRE(c.steps.size() == 4);
        CHECK(step(c, 1).wait_s == 1);
        CHECK(c.labels[step(c, 1).label] == "Explore");
        CHECK(step(c, 1).depth == 1);
        CHECK(step(c, 2).turn == 1);
        CHECK(step(c, 2).line == step(c, 1).line);
        CHECK(after(c, 3) == step_list{0, 2});
        CHECK(step(c, 3).wait_s == 2);
    }
}

TEST_CASE("what blocks have in common ends with their session, where the scope is local") {
    const std::string two = call(0, 1, "1,2");
    const session_corpus local = read_weka(weka(two) + weka(two)), shared =
        read_weka(weka(two, "global") + weka(two, "global"));
    CHECK(step(local, 0, 1).prompt.kept == 0);
    CHECK(step(shared, 0, 1).prompt.kept == 20);
    CHECK(shared.sessions[1].shares);
    CHECK(!local.sessions[1].shares);
}

TEST_CASE("chats of Bailian's go on from their parents, at their offsets") {
    const session_corpus c = read("bailian", {
        R"({"chat_id":7,"parent_chat_id":-1,"timestamp":61.5,"input_length":33,"output_length":9,"type":"text","turn":1,"hash_ids":[10,11,12]})"
        "\n"
        R"({"chat_id":8,"parent_chat_id":-1,"timestamp":62,"input_length":16,"output_length":0,"type":"search","turn":1,"hash_ids":[10]})"
        "\n"
        R"({"chat_id":9,"parent_chat_id":7,"timestamp":70,"input_length":64,"output_length":9,"type":"text","turn":2,"hash_ids":[10,11,13,14]})"
        "\n"});
    REQUIRE(c.sessions.size() == 2);
    CHECK(c.sessions[0].start_s == 61.5);
    CHECK(after(c, 1) == step_list{0});
    CHECK(step(c, 1).at_s == 8.5);
    CHECK(step(c, 1).prompt.kept == 32);
    CHECK(step(c, 0, 1).prompt.kept == 16);
    CHECK(step(c, 0, 1).output_tokens == 1);
    CHECK(c.labels[step(c, 0, 1).label] == "search");
}

TEST_CASE("requests of Mooncake's are sessions by their session_id, with delays between them") {
    const session_corpus c = read("mooncake_agents", {
        R"({"timestamp":1200,"input_length":900,"output_length":40,"hash_ids":[5,6],"session_id":"u"})"
        "\n"
        R"({"timestamp":1300,"input_length":900,"output_length":40,"hash_ids":[5,7]})"
        "\n"
        R"({"timestamp":1400,"delay":250,"input_length":1400,"output_length":40,"hash_ids":[5,6,8],"session_id":"u"})"
        "\n"});
    REQUIRE(c.sessions.size() == 2);
    CHECK(c.sessions[0].steps == 2);
    CHECK(step(c, 1).wait_s == 0.25);
    CHECK(step(c, 0, 1).prompt.kept == 512);
    CHECK(c.sessions[1].start_s == 1.3);
}

TEST_CASE("AIPerf's turns have a time in the first line, and then the lengths of what is new") {
    // Its document's own sessions, in one file with another one between their lines.
    const session_corpus c = read("mooncake_agents", {
        R"({"session_id":"a","timestamp":500,"input_length":1024,"output_length":40,"hash_ids":[1,2]})"
        "\n"
        R"({"session_id":"b","timestamp":100,"input_length":200,"output_length":60})"
        "\n"
        R"({"session_id":"a","delay":500,"input_length":4096,"output_length":8,"hash_ids":[7,8,9,10,11,12,13,14]})"
        "\n"
        R"({"session_id":"a","delay":250,"input_length":1000,"output_length":35})"
        "\n"});
    REQUIRE(c.sessions.size() == 2);
    const std::size_t a = c.sessions[0].steps == 3 ? 0 : 1;
    const session_step* steps = c.steps.data() + c.sessions[a].first;
    CHECK(c.sessions[a].start_s == 0.5);
    CHECK(c.sessions[1 - a].start_s == 0.1);
    CHECK(steps[0].prompt.tokens == 1024);
    CHECK(steps[1].prompt.tokens == 1024 + 40 + 4096);
    CHECK(steps[1].prompt.kept == 1024);
    CHECK(steps[1].wait_s == 0.5);
    CHECK(steps[1].at_s == 0);
    CHECK(steps[2].prompt.tokens == 1024 + 40 + 4096 + 8 + 1000);
    CHECK(steps[2].prompt.kept == 1024 + 40 + 4096);
    CHECK(steps[2].wait_s == 0.25);
    CHECK(steps[2].output_tokens == 35);
    // Without any time they start as the load says, and an array of all messages is all of a prompt.
    const session_corpus untimed = read("mooncake_agents", {
        R"({"session_id":"a","input_length":300,"output_length":40,"context_mode":"message_array_with_responses"})"
        "\n"
        R"({"session_id":"a","delay":2,"input_length":450,"output_length":20,"context_mode":"message_array_with_responses"})"
        "\n"});
    CHECK(untimed.sessions[0].start_s < 0);
    CHECK(step(untimed, 1).prompt.tokens == 450);
}

TEST_CASE("a collector's file has metrics and logs beside its spans") {
    const std::string spans = texts::content_of("data/sessions/otel.jsonl");
    const converted_corpus alone = read("otel", {spans});
    const converted_corpus c = read("otel", {R"({"resourceMetrics":[{"scopeMetrics":[]}]})"
                                             "\n" + spans +
                                             R"({"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}]})"
                                             "\n"});
    CHECK(c.sessions.size() == alone.sessions.size());
    CHECK(c.steps.size() == alone.steps.size());
    CHECK(c.told.text().find("metrics (1 row)") != std::string::npos);
    CHECK(c.told.text().find("logs (1 row)") != std::string::npos);
    CHECK(refusal("otel", R"({"resourceMetrics":[{}]})").find("it holds no sessions; left out: metrics") !=
          std::string::npos);
}

TEST_CASE("blocks have the size that all prompts fit, and what Weka says must be so") {
    const auto row = [](int ms, int tokens, const std::string& blocks) {
        return printed("{\"timestamp\":%d,\"input_length\":%d,\"output_length\":4,\"session_id\":\"u\",\"hash_ids\":[", ms, tokens) +
               blocks + "]}\n";
    };
    // Of 33 tokens in blocks of 16 two prompts share 16, not all.
    const session_corpus c = read("mooncake_agents", {row(1, 33, "1,2,3") + row(9, 40, "1,5,6")});
    CHECK(step(c, 1).prompt.kept == 16);
    CHECK_REFUSED(refusal("mooncake_agents", row(1, 33, "1,2,3") + row(9, 1400, "1,5,6")), "x.json:2: ",
                  "input_length is 1400 and hash_ids has 3 blocks");
    CHECK_REFUSED(refusal("bailian", R"({"chat_id":1,"timestamp":1,"input_length":9,"output_length":4,"hash_ids":[)"
                                     "1,2,3,4,5,6,7,8,9,10]}"), "x.json:1: ", "10 blocks");
    const auto of_weka = [](int in, const std::string& size) {
        return R"({"block_size":)" + size + printed(R"(,"requests":[{"t":0,"in":%d,"out":1,"hash_ids":[1,2,3]}]})", in);
    };
    for (const int sound : {129, 192, 193, 255}) CHECK(refusal("weka", of_weka(sound, "64")) == "");
    for (const int odd : {48, 128, 256})
        CHECK_REFUSED(refusal("weka", of_weka(odd, "64")), "x.json:1: in is ", "hash_ids has 3 blocks, and block_size is 64",
                      "192 tokens");
    CHECK(refusal("weka", of_weka(48, "16")) == "");
}

TEST_CASE("calls of a recording may stand in any order, and a list is read as lines are") {
    const auto row = [](int chat, int parent, double at, int turn, const std::string& more = "") {
        return printed("{\"chat_id\":%d,\"parent_chat_id\":%d,\"timestamp\":%g,\"turn\":%d,\"input_length\":16,"
                       "\"output_length\":4,\"hash_ids\":[1]", chat, parent, at, turn) + more + "}";
    };
    const std::string first = row(7, -1, 60, 1), second = row(9, 7, 70, 2), third = row(11, 9, 70, 3),
                      late = row(12, 404, 80, 2, R"(,"user":"x")");
    for (const std::string& text : {first + "\n" + second + "\n" + third + "\n" + late,
                                    late + "\n" + third + "\n" + second + "\n" + first,
                                    "[" + third + "," + first + "," + late + "," + second + "]"}) {
        const converted_corpus c = read("bailian", {text});
        REQUIRE(c.sessions.size() == 2);
        CHECK(c.sessions[0].steps == 3);
        CHECK(after(c, 2) == step_list{1});
        CHECK(step(c, 1).at_s == 10);
        CHECK(c.told.text() == "left out: parents that no earlier call of the file is (1 row), user (1 row)");
    }
    // A clock that went back: the parent came later than its child.
    CHECK(read("bailian", {row(9, 7, 50, 2) + first}).told.text() ==
          "left out: parents that no earlier call of the file is (1 row)");
    // Ids are those of one file.
    CHECK(read("bailian", {first, second}).sessions.size() == 2);
}

TEST_CASE("what a recording says and nobody reads is counted, and so are empty answers") {
    CHECK(read_weka(weka(call(0, 1, "1", R"(,"stop":"end_turn","ttft":null)") + R"(,{"t":2,"in":9,"out":0})")).told.text() ==
          "left out: empty answers, which become one token (1 row), stop (1 row)");
}

TEST_CASE("what no recording can say is refused by its line") {
    CHECK(refusal("weka", weka(R"({"t":-1,"in":10,"out":1})")).find("x.json:1: requests[].t is -1") == 0);
    CHECK(refusal("weka", weka(R"({"t":0,"type":"x","in":10,"out":1})")) ==
          "x.json:1: requests[].type is \"x\", n, s or subagent is allowed");
    CHECK(refusal("weka", weka(R"({"t":0,"in":10,"out":1,"block_size":20})")) ==
          "x.json:1: requests[].block_size is 20, the session's is 10: one block has one size");
    CHECK(refusal("weka", weka(call(0, 1, "1"), "global") +
                              R"({"block_size":20,"hash_id_scope":"global","requests":[{"t":0,"in":1,"out":1}]})") ==
          "x.json:2: block_size is 20 and was 10: blocks of one scope have one size");
    CHECK(refusal("weka", R"({"requests":[{"t":0,"in":9,"out":1}],"block_size":16})") ==
          "x.json:1: block_size stands behind requests: it must come before them");
    CHECK(refusal("weka", weka(call(0, 1, "1")) + R"({"a":1})") ==
          "x.json:2: a session of Weka's has a list of requests");
    CHECK(refusal("weka", "") == "x.json: it holds no sessions");
    CHECK(refusal("weka", "7") == "x.json:1: '{' is expected here");
    CHECK(refusal("bailian", R"({"input_length":9,"output_length":4})") == "x.json:1: timestamp is null, a time is needed");
    CHECK(refusal("bailian", R"({"timestamp":1,"input_length":9,"output_length":4})") ==
          "x.json:1: chat_id is null, an id is needed");
    CHECK(refusal("mooncake_agents", R"({"timestamp":1.5,"input_length":9,"output_length":4})") ==
          "x.json:1: timestamp is 1.5, whole milliseconds are allowed; is it in seconds?");
    CHECK(refusal("mooncake_agents", R"({"timestamp":1,"output_length":4})") ==
          "x.json:1: input_length is null, a whole number of tokens is needed");
}

TEST_CASE("a session that never ends is refused before it is held") {
    const std::string begin = R"({"requests":[{"t":0,"in":1,"out":1})", again = R"(,{"t":0,"in":1,"out":1})";
    std::size_t at = 0;
    byte_stream in(
        [&](char* room, std::size_t size) {
            for (std::size_t i = 0; i < size; ++i, ++at)
                room[i] = at < begin.size() ? begin[at] : again[(at - begin.size()) % again.size()];
            return size;
        },
        "endless");
    CHECK(texts::refusal_of([&] { weka_reader().read(in); }) == "endless:1: the session has over 10000 steps");
}

TEST_CASE("a session of 10,000 steps is derived in time, whatever its shape") {
    std::string line, fan;
    for (int i = 0; i < 10000; ++i) {
        const std::string comma = i ? "," : "";
        line += comma + R"({"t":)" + std::to_string(i) + R"(,"in":)" + std::to_string(10 + i / 1000) +
                R"(,"out":1,"api_time":0.5,"hash_ids":[1]})";
        fan += comma + R"({"t":)" + std::to_string(i < 5000 ? i : 20000 + i) +
               R"(,"in":10,"out":1,"api_time":9000,"hash_ids":[)" + std::to_string(i) + "]}";
    }
    CHECK(read_weka(weka(line)).steps.size() == 10000);
    // Each goes on from the one before with a block of its own: prompts of up to 4,000 pieces.
    vector<recorded_step> deep;
    prefix_tree tree;
    tree_prompt p;
    for (int i = 0; i < 4000; ++i) {
        p = tree.branch(p.node, p.tokens, p.tokens + 10);
        recorded_step s;
        s.at_s = i;
        s.end_s = i + 0.5;
        s.prompt = p;
        deep.push_back(s);
    }
    derived_graph(deep, tree);
    CHECK(deep[3999].after == vector<std::uint32_t>{3998});
    const session_corpus c = read_weka(weka(fan));
    CHECK(after(c, 9999).size() <= max_steps_before);
}
