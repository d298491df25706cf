// Sessions as graphs: their rules, how a graph is derived, and the formats that they are read from.
#include "core/files/session_files.hpp"

#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

session_corpus read(const std::string& text, int max_context = 0) {
    std::size_t at = 0;
    byte_stream in(
        [&](char* room, std::size_t size) {
            const std::size_t n = std::min(size, text.size() - at);
            std::memcpy(room, text.data() + at, n);
            at += n;
            return n;
        },
        "x.json");
    session_reader reader(max_context);
    reader.read(in);
    return reader.finished("x.json");
}
std::string refusal(const std::string& text, int max_context = 0) {
    try {
        read(text, max_context);
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "";
}

const session_step& step(const session_corpus& c, std::size_t i, std::size_t session = 0) {
    return c.steps[c.sessions[session].first + i];
}
std::vector<unsigned> after(const session_corpus& c, std::size_t i, std::size_t session = 0) {
    const session_step& s = step(c, i, session);
    return {c.after.begin() + s.first_after, c.after.begin() + s.first_after + s.after};
}
std::vector<unsigned> next(const session_corpus& c, std::size_t i) {
    const session_step& s = step(c, i);
    return {c.next.begin() + s.first_next, c.next.begin() + s.first_next + s.next};
}
using steps = std::vector<unsigned>;

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

}  // namespace

// ---- prompts in common ---------------------------------------------------------------------------

TEST_CASE("a prompt is a node behind the longest earlier one that it begins with") {
    prefix_tree tree;
    block_index index;
    const auto add = [&](std::vector<std::uint64_t> ids, int tokens) {
        tree_prompt p;
        REQUIRE(index.add(tree, ids, 10, tokens, p));
        return p;
    };
    const tree_prompt a = add({1, 2, 3}, 32), b = add({1, 2, 4, 5}, 40), c = add({1, 2, 4}, 30),
                      d = add({2, 1}, 20), e = add({1, 2, 3, 9}, 45);
    CHECK(a.kept == 0);
    CHECK(b.kept == 20);
    CHECK(c.kept == 30);  // all of it is the beginning of b
    CHECK(d.kept == 0);   // the same blocks in another order are another text
    CHECK(e.kept == 30);  // two tokens of a are in no block
    CHECK(tree.nodes.size() == 4);
    CHECK(tree.common(a, b) == 20);
    CHECK(tree.common(b, c) == 30);
    CHECK(tree.common(e, b) == 20);
    CHECK(tree.common(d, a) == 0);
    CHECK(tree.common(a, a) == 32);
    CHECK(tree.branch(b.node, 15, 50).kept == 15);
    CHECK(tree.nodes.back().parent == a.node);  // token 15 is a's, which b has
}

TEST_CASE("blocks behind a prompt's end are none of it, and a last one that is not full is short") {
    prefix_tree tree;
    block_index index;
    tree_prompt a, b, c;
    REQUIRE(index.add(tree, {1, 2, 3}, 10, 15, a));
    REQUIRE(index.add(tree, {1, 2, 3}, 10, 30, b));
    REQUIRE(index.add(tree, {1, 7}, 10, 10, c));
    CHECK(b.kept == 15);
    CHECK(c.kept == 10);
    CHECK(tree.nodes.size() == 2);
}

// ---- the graph that is derived -------------------------------------------------------------------

TEST_CASE("steps of a line wait for the one before and for the tool between them") {
    const session_corpus c =
        read(weka(call(0, 2, "1,2") + "," + call(3, 5, "1,2,3") + "," + call(5, 6, "1,2,3,4")));
    CHECK(c.format == "Weka");
    CHECK(after(c, 0) == steps{});
    CHECK(after(c, 1) == steps{0});
    CHECK(after(c, 2) == steps{1});
    CHECK(next(c, 0) == steps{1});
    CHECK(step(c, 1).wait_s == 1);
    CHECK(step(c, 2).wait_s == 0);
    CHECK(step(c, 2).turn == 2);
    CHECK(step(c, 2).line == 0);
    CHECK(step(c, 2).prompt.kept == 30);
    CHECK(c.models[step(c, 0).model] == "big");
}

TEST_CASE("a fan-out is waited for by who joins it, and never by each other") {
    // 0 spawns two helpers, 1 and 2, that overlap; 3 goes on from 0 behind both; 4 from 3.
    const session_corpus c = read(weka(call(0, 2, "1,2") + "," + call(2.5, 6, "50,51") + "," +
                                       call(3, 5, "60,61") + "," + call(7, 8, "1,2,3") + "," +
                                       call(9, 10, "1,2,3,4")));
    CHECK(after(c, 1) == steps{0});
    CHECK(after(c, 2) == steps{0});
    CHECK(after(c, 3) == steps{0, 1, 2});
    CHECK(after(c, 4) == steps{3});  // 3 has waited for them
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
    const session_corpus c = read(weka(call(0, 1, "1,2") + "," + call(1, 4, "50,51") + "," +
                                       call(2, 5, "1,2,3") + "," + call(4, 6, "50,51,52") + "," +
                                       call(5.5, 7, "1,2,3,4") + "," + call(8, 9, "1,2,3,4,5")));
    CHECK(after(c, 2) == steps{0});
    CHECK(after(c, 3) == steps{1});
    CHECK(after(c, 4) == steps{2});  // one of the helper's calls had ended, and not the helper
    CHECK(after(c, 5) == steps{4, 3});
    CHECK(step(c, 3).line == step(c, 1).line);
    CHECK(step(c, 3).turn == 1);
    CHECK(step(c, 5).line == 0);
}

TEST_CASE("a compaction goes on from what it has in common, behind all that was said, on its line") {
    const session_corpus c =
        read(weka(call(0, 1, "1,2,3,4") + "," + call(1, 2, "1,2,3,4,5,6") + "," +
                  call(2, 3, "1,2,3,4,5,6,7,8") + "," + call(4, 5, "1,90")));
    CHECK(after(c, 3) == steps{0, 2});
    CHECK(step(c, 3).prompt.kept == 10);
    CHECK(step(c, 3).wait_s == 1);
    CHECK(step(c, 3).line == 0);
    CHECK(step(c, 3).turn == 3);
}

TEST_CASE("of steps that ended with the same text the earliest is gone on from, of one model") {
    const std::string other = R"({"t":2,"type":"s","model":"small","in":20,"out":1,)"
                              R"("hash_ids":[1,2],"api_time":0.5})";
    const session_corpus c = read(weka(call(0, 1, "1,2") + "," + call(0.5, 1.5, "1,2") + "," +
                                       other + "," + call(4, 5, "1,2,3")));
    CHECK(after(c, 1) == steps{});
    CHECK(step(c, 1).wait_s == 0.5);
    CHECK(after(c, 2) == steps{1});  // nothing of its model: behind the one that ended last
    CHECK(after(c, 3)[0] == 0);
}

TEST_CASE("without durations a step is sent at its offset, or when what it waits for has ended") {
    const std::string a = R"({"t":5,"type":"n","in":20,"out":1,"hash_ids":[1,2]})",
                      b = R"({"t":9,"type":"n","in":30,"out":1,"hash_ids":[1,2,3]})";
    const session_corpus c = read(weka(a + "," + b));
    CHECK(after(c, 1) == steps{0});
    CHECK(step(c, 0).at_s == 0);
    CHECK(step(c, 1).at_s == 4);
    CHECK(step(c, 1).wait_s == 0);
}

TEST_CASE("a step that took no time is not behind itself, nor behind who began with it") {
    const session_corpus c = read(weka(call(0, 10, "1,2") + "," + call(1, 1, "1,2,3") + "," +
                                       call(1, 1, "1,2,3,4") + "," + call(2, 3, "1,2,3,4,5")));
    CHECK(after(c, 1) == steps{});
    CHECK(after(c, 2) == steps{1});
    CHECK(after(c, 3) == steps{2});
}

TEST_CASE("a sub-agent has its own line and label, with times of the session or of its spawn") {
    for (const double from : {0.0, 3.0}) {  // relative to the spawn at 3 s, and absolute
        const session_corpus c = read(weka(
            call(0, 2, "1,2") + R"(,{"t":3,"type":"subagent","agent_id":"a","subagent_type":)" +
            R"("Explore","requests":[)" + call(from, from + 1, "50") + "," +
            call(from + 2, from + 3, "50,51") + "]}," + call(8, 9, "1,2,3")));
        REQUIRE(c.steps.size() == 4);
        CHECK(step(c, 1).wait_s == 1);
        CHECK(c.labels[step(c, 1).label] == "Explore");
        CHECK(step(c, 1).depth == 1);
        CHECK(step(c, 2).turn == 1);
        CHECK(step(c, 2).line == step(c, 1).line);
        CHECK(after(c, 3) == steps{0, 2});
        CHECK(step(c, 3).wait_s == 2);
    }
}

TEST_CASE("what blocks have in common ends with their session, where the scope is local") {
    const std::string two = call(0, 1, "1,2");
    const session_corpus local = read(weka(two) + weka(two)), shared =
        read(weka(two, "global") + weka(two, "global"));
    CHECK(step(local, 0, 1).prompt.kept == 0);
    CHECK(step(shared, 0, 1).prompt.kept == 20);
    CHECK(shared.sessions[1].shares);
    CHECK(!local.sessions[1].shares);
}

// ---- ours ----------------------------------------------------------------------------------------

TEST_CASE("our lines say what a step waits for, and what it keeps of a prompt") {
    const session_corpus c = read(
        R"({"session":"s","step":"c","after":["a","b"],"wait":1.5,"keeps":["a",80],"prompt_tokens":90,"output_tokens":3})"
        "\n"
        R"({"session":"s","step":"a","prompt_tokens":100,"output_tokens":5,"model":"m"})"
        "\n"
        R"({"session":"s","step":"b","after":["a"],"prompt_tokens":30,"output_tokens":5,"label":"edit","body":{"k":1}})"
        "\n"
        R"({"session":"t","step":"a","prompt_tokens":10,"output_tokens":5})"
        "\n");
    REQUIRE(c.sessions.size() == 2);
    CHECK(c.most_steps == 3);
    // Behind what they wait for: a, b, c.
    CHECK(step(c, 0).prompt.tokens == 100);
    CHECK(after(c, 2) == steps{0, 1});
    CHECK(next(c, 0) == steps{1, 2});
    CHECK(step(c, 2).wait_s == 1.5);
    CHECK(step(c, 2).prompt.kept == 80);
    CHECK(step(c, 2).line == 0);
    CHECK(step(c, 1).depth == 1);
    CHECK(c.labels[step(c, 1).label] == "edit");
    CHECK(c.models[step(c, 0).model] == "m");
    CHECK(c.bodies[step(c, 1).body] == R"(,"k":1)");
}

TEST_CASE("what no session can be is refused in one sentence") {
    const auto line = [](const std::string& step, const std::string& more = "") {
        return R"({"session":"s","step":")" + step + R"(","prompt_tokens":9,"output_tokens":1)" +
               (more.empty() ? "" : "," + more) + "}\n";
    };
    const std::string a = line("a");
    CHECK(refusal(line("a", R"("after":["b"])") + line("b", R"("after":["a"])")) ==
          "x.json:1: step \"a\" waits for itself, over what it is after");
    CHECK(refusal(line("a", R"("after":["x"])")) ==
          "x.json:1: after names \"x\", and the session has no such step");
    CHECK(refusal(line("a", R"("wait":-1)")) ==
          "x.json:1: wait is -1, a number from 0 to 86400 is allowed");
    CHECK(refusal(a + line("b", R"("after":["a"],"keeps":["a",10])")) ==
          "x.json:2: prompt_tokens is 9, and keeps 10 of another prompt: a prompt is as long as what "
          "it keeps at least");
    CHECK(refusal(a + line("b", R"("keeps":["a",3])")).find("one of the steps of after") !=
          std::string::npos);
    CHECK(refusal(a + a) == "x.json:2: step \"a\" is there twice in its session");
    CHECK(refusal(R"({"session":"s","step":"a","output_tokens":1})").find("prompt_tokens is null") !=
          std::string::npos);
    CHECK(refusal(a + R"({"session":"t","step":"a","prompt_tokens":9,"output_tokens":1})" "\n" + a)
              .find("goes on behind another one") != std::string::npos);
    CHECK(refusal(R"({"a":1})").find("no known session begins so") != std::string::npos);
    CHECK(refusal("") == "x.json: it holds no sessions");
    CHECK(refusal(weka(R"({"t":-1,"in":10,"out":1})")).find("requests[].t is -1") !=
          std::string::npos);
    CHECK(refusal(weka(R"({"t":0,"type":"x","in":10,"out":1})"))
              .find("n, s or subagent is allowed") != std::string::npos);
    CHECK(refusal(weka(R"({"t":0,"in":10,"out":1,"block_size":20})"))
              .find("one block has one size") != std::string::npos);
    CHECK(refusal(weka(call(0, 1, "1"), "global") +
                  R"({"block_size":20,"hash_id_scope":"global","requests":[{"t":0,"in":1,"out":1}]})")
              .find("blocks of one scope have one size") != std::string::npos);
    CHECK(refusal(R"({"requests":[{"t":0,"in":9,"out":1}],"block_size":16})")
              .find("block_size stands behind requests") != std::string::npos);
}

TEST_CASE("a session with a prompt over max_context is left out whole, and half of them at most") {
    const std::string small = weka(call(0, 1, "1,2")),
                      large = weka(call(0, 1, "1") + "," + call(2, 3, "1,2,3"));
    const session_corpus c = read(small + large + small, 20);
    CHECK(c.sessions.size() == 2);
    CHECK(c.left_out == 1);
    CHECK(refusal(small + large + large, 20) ==
          "x.json: 2 of 3 sessions have a prompt of over 20 tokens (workload.max_context), and over "
          "half of them are too many to leave out");
}

// ---- others' -------------------------------------------------------------------------------------

TEST_CASE("chats of Bailian's go on from their parents, at their offsets") {
    const session_corpus c = read(
        R"({"chat_id":7,"parent_chat_id":-1,"timestamp":61.5,"input_length":33,"output_length":9,"type":"text","turn":1,"hash_ids":[10,11,12]})"
        "\n"
        R"({"chat_id":8,"parent_chat_id":-1,"timestamp":62,"input_length":16,"output_length":0,"type":"search","turn":1,"hash_ids":[10]})"
        "\n"
        R"({"chat_id":9,"parent_chat_id":7,"timestamp":70,"input_length":64,"output_length":9,"type":"text","turn":2,"hash_ids":[10,11,13,14]})"
        "\n");
    CHECK(c.format == "Bailian");
    REQUIRE(c.sessions.size() == 2);
    CHECK(c.sessions[0].start_s == 61.5);
    CHECK(after(c, 1) == steps{0});
    CHECK(step(c, 1).at_s == 8.5);
    CHECK(step(c, 1).prompt.kept == 32);
    CHECK(step(c, 0, 1).prompt.kept == 16);
    CHECK(step(c, 0, 1).output_tokens == 1);
    CHECK(c.labels[step(c, 0, 1).label] == "search");
}

TEST_CASE("requests of Mooncake's are sessions by their session_id, with delays between them") {
    const session_corpus c = read(
        R"({"timestamp":1200,"input_length":900,"output_length":40,"hash_ids":[5,6],"session_id":"u"})"
        "\n"
        R"({"timestamp":1300,"input_length":900,"output_length":40,"hash_ids":[5,7]})"
        "\n"
        R"({"timestamp":1400,"delay":250,"input_length":1400,"output_length":40,"hash_ids":[5,6,8],"session_id":"u"})"
        "\n");
    CHECK(c.format == "Mooncake");
    REQUIRE(c.sessions.size() == 2);
    CHECK(c.sessions[0].steps == 2);
    CHECK(step(c, 1).wait_s == 0.25);
    CHECK(step(c, 0, 1).prompt.kept == 512);
    CHECK(c.sessions[1].start_s == 1.3);
}

TEST_CASE("the lines that examples/sessions/*.jq make of others' recordings are sessions") {
    const auto converted = [](const std::string& name) {
        return read(texts::content_of("data/sessions/" + name + ".ours.jsonl"));
    };
    const session_corpus rounds = converted("tracelab");
    REQUIRE(rounds.sessions.size() == 2);
    CHECK(step(rounds, 1).wait_s == 1.5);
    CHECK(step(rounds, 1).prompt.kept == 900);
    const session_corpus streams = converted("tpu_inference");
    REQUIRE(streams.sessions.size() == 2);
    CHECK(step(streams, 2).prompt.tokens == 7570 + 399 + 65 + 23 + 942);
    CHECK(step(streams, 2).prompt.kept == 7570 + 399 + 23);
    CHECK(step(streams, 2).wait_s == 0.25);
    // A turn spawns two children, of which one is joined by the next turn and one by the turn after it; the last turn
    // forks.
    const session_corpus tree = converted("dag_jsonl");
    REQUIRE(tree.sessions.size() == 1);
    REQUIRE(tree.steps.size() == 7);
    CHECK(after(tree, 4) == steps{0, 2});
    CHECK(step(tree, 4).wait_s == 1.5);
    CHECK(after(tree, 5) == steps{4, 3});
    CHECK(step(tree, 6).prompt.kept == step(tree, 5).prompt.tokens);
    CHECK(step(tree, 1).prompt.kept == 0);
    CHECK(tree.deepest == 1);
}

// ---- size ----------------------------------------------------------------------------------------

TEST_CASE("of 472 sessions and 113,254 requests the index is small") {
    // What a prompt has of its own is a node; its thousands of blocks are gone when it is read.
    session_corpus c;
    for (int s = 0; s < 472; ++s) {
        const int n = 239 + (s < 446);
        std::vector<recorded_step> all;
        std::vector<step_links> links(static_cast<std::size_t>(n));
        tree_prompt p;
        for (int i = 0; i < n; ++i) {
            p = c.prompts.branch(p.node, p.tokens, p.tokens + 900);
            recorded_step r;
            r.at_s = r.end_s = i;
            r.prompt = p;
            r.output_tokens = 100;
            all.push_back(r);
            if (i > 0) links[static_cast<std::size_t>(i)].after = {static_cast<unsigned>(i - 1)};
            if (i > 0) links[static_cast<std::size_t>(i)].goes_on_from = i - 1;
        }
        add_session(c, all, links, -1, false);
    }
    CHECK(c.steps.size() == 113254);
    CHECK(c.bytes() < 10000000);
    MESSAGE(c.bytes() << " bytes");
}

TEST_CASE("a hostile corpus ends within bounds") {
    // A session of ten million steps, and a line of a gigabyte, neither of which is ever held.
    const auto endless = [](const std::string& begin, const std::string& again) {
        std::size_t at = 0;
        byte_stream in(
            [=](char* room, std::size_t size) mutable {
                for (std::size_t i = 0; i < size; ++i, ++at)
                    room[i] = at < begin.size() ? begin[at]
                                                : again[(at - begin.size()) % again.size()];
                return size;
            },
            "endless");
        try {
            session_reader(0).read(in);
        } catch (const std::invalid_argument& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(endless(R"({"requests":[{"t":0,"in":1,"out":1})", R"(,{"t":0,"in":1,"out":1})") ==
          "endless:1: the session has over 10000 steps");
    CHECK(endless(R"({"session":")", "x") == "endless:1: the value is over 64 MiB");
    CHECK(endless(R"({"after":["a")", R"(,"a")") ==
          "endless:1: after is a list of over 1000000");
}

TEST_CASE("a session of 10,000 steps is derived in time, whatever its shape") {
    std::string line, fan;
    for (int i = 0; i < 10000; ++i) {
        const std::string comma = i ? "," : "";
        line += comma + R"({"t":)" + std::to_string(i) + R"(,"in":)" + std::to_string(10 + i / 10) +
                R"(,"out":1,"api_time":0.5,"hash_ids":[1]})";
        fan += comma + R"({"t":)" + std::to_string(i < 5000 ? i : 20000 + i) +
               R"(,"in":10,"out":1,"api_time":9000,"hash_ids":[)" + std::to_string(i) + "]}";
    }
    CHECK(read(weka(line)).steps.size() == 10000);
    // Each goes on from the one before with a block of its own: prompts of up to 4,000 pieces.
    std::vector<recorded_step> deep;
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
    derived_graph derived(deep, tree);
    CHECK(derived.links()[3999].after == std::vector<std::uint32_t>{3998});
    const session_corpus c = read(weka(fan));
    CHECK(after(c, 9999).size() <= most_steps_before);
}
