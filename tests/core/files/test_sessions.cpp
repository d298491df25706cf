// Sessions as graphs: their rules, and the lines that they are read from.
#include "support/recordings.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <span>
#include <string>

using namespace recordings;

namespace {

session_corpus read(const std::string& text) { return read_lines(text); }
std::string refusal(const std::string& text, int max_context = 0) {
    return texts::refusal_of([&] { read_lines(text, max_context); });
}
/// A step of session `s` that has a prompt of nine tokens.
std::string line(const std::string& step, const std::string& more = "", const std::string& session = "s") {
    return R"({"session":")" + session + R"(","step":")" + step + R"(","prompt_tokens":9,"output_tokens":1)" +
           (more.empty() ? "" : "," + more) + "}\n";
}

}  // namespace

// ---- prompts in common ---------------------------------------------------------------------------

TEST_CASE("a prompt is a node behind the longest earlier one that it begins with") {
    prefix_tree tree;
    block_index index;
    const auto add = [&](vector<std::uint64_t> ids, int tokens) {
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

// ---- lines --------------------------------------------------------------------------------------

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
    CHECK(c.max_steps == 3);
    // Behind what they wait for: a, b, c.
    CHECK(step(c, 0).prompt.tokens == 100);
    CHECK(after(c, 2) == step_list{0, 1});
    CHECK(next(c, 0) == step_list{1, 2});
    CHECK(step(c, 2).wait_s == 1.5);
    CHECK(step(c, 2).prompt.kept == 80);
    CHECK(step(c, 2).line == 0);
    CHECK(step(c, 1).depth == 1);
    CHECK(c.labels[step(c, 1).label] == "edit");
    CHECK(c.models[step(c, 0).model] == "m");
    CHECK(c.bodies[step(c, 1).body] == R"(,"k":1)");
}

TEST_CASE("a step keeps of one that it does not wait for, and of one of another session that shares") {
    const auto lines = [](const std::string& shared) {
        return line("a", R"("start":3.5,"shared":)" + shared) + line("b", R"("keeps":["a",4],"at":2.5)") +
               line("a", R"("shared":)" + shared + R"(,"keeps":["b",6,"s"])", "t") +
               line("c", R"("keeps":["a",9],"after":["b"])", "t") + line("b", "", "t");
    };
    const session_corpus c = read(lines("true"));
    CHECK(c.sessions[0].start_s == 3.5);
    CHECK(c.sessions[0].shares);
    CHECK(c.sessions[1].start_s == -1);
    CHECK(after(c, 1) == step_list{});
    CHECK(step(c, 1).prompt.kept == 4);
    CHECK(step(c, 1).at_s == 2.5);
    CHECK(step(c, 0, 1).prompt.kept == 6);
    CHECK(c.prompts.common(step(c, 0, 1).prompt, step(c, 0).prompt) == 4);
    CHECK(c.prompts.common(step(c, 0, 1).prompt, step(c, 1).prompt) == 6);
    CHECK(after(c, 2, 1) == step_list{1});  // as in the file, but for c, which is after b
    CHECK(step(c, 2, 1).prompt.kept == 9);
    CHECK(refusal(lines("false")) ==
          "x.json:3: keeps names step \"b\" of session \"s\": both sessions must be \"shared\", and that one must "
          "stand before this one");
    const std::string a = line("a", R"("shared":true)");
    CHECK(refusal(a + line("b", R"("shared":true,"keeps":["x",6,"s"])", "t"))
              .find(R"(keeps names step "x" of session "s")") != std::string::npos);
    CHECK(refusal(a + line("b", R"("shared":true,"keeps":["a",6,"t"])", "t")).find(R"(of session "t")") !=
          std::string::npos);
    CHECK(refusal(line("a", R"("keeps":["b",4])")) ==
          "x.json:1: keeps names \"b\", and the session has no such step");
    CHECK(refusal(line("a", R"("keeps":["a",4])")).find("step \"a\" waits for itself") != std::string::npos);
    const std::string allowed = "x.json:2: keeps is a list, a step's name and a number of tokens are allowed, and the "
                                "name of its session if that is another one";
    for (const char* keeps : {R"(["a"])", R"([4,"a"])", R"(["a",4,5])", R"(["a",4,"s","t"])"})
        CHECK(refusal(line("a") + line("b", R"("keeps":)" + std::string(keeps))) == allowed);
    CHECK(refusal(a + R"({"session":"t","shared":true,"step":"b","keeps":["a",11,"s"],"prompt_tokens":20,)"
                      R"("output_tokens":1})") ==
          "x.json:2: keeps 11 tokens of a step that has 9 and an answer of 1");
}

TEST_CASE("what a line says of its session is said by the first one, and by no other differently") {
    const std::string a = line("a", R"("start":3,"shared":true)");
    CHECK(refusal(a + line("b") + line("c", R"("start":3,"shared":true)")) == "");
    CHECK(refusal(a + line("b", R"("start":4)")) ==
          "x.json:2: start is 4, what the first line of the session says is allowed");
    CHECK(refusal(line("a") + line("b", R"("start":0)")).find("x.json:2: start is 0") == 0);
    CHECK(refusal(a + line("b", R"("shared":false)")) ==
          "x.json:2: shared is false, what the first line of the session says is allowed");
    CHECK(refusal(line("a", R"("shared":"yes")")) == "x.json:1: shared is \"yes\", true or false is allowed");
    CHECK(refusal(line("a", R"("start":-1)")) == "x.json:1: start is -1, a number from 0 to 1e+11 is allowed");
}

TEST_CASE("agents are lines, deeper than whom they are after, where the steps name them") {
    const session_corpus c =
        read(line("a", R"("agent":"main")") + line("b", R"("agent":"x","after":["a"],"keeps":["a",9])") +
             line("c", R"("agent":"y","after":["b","a"])") + line("d", R"("agent":"main","after":["a","c"])") +
             line("e", R"("agent":"x","after":["d"])") + line("f", R"("after":["d"])") + line("g"));
    vector<vector<int>> places;
    for (std::size_t i = 0; i < c.steps.size(); ++i)
        places.push_back({step(c, i).line, step(c, i).turn, step(c, i).depth});
    // g comes with those that wait for nothing, behind all that it stands behind in the file.
    CHECK(places == vector<vector<int>>{
                        {0, 0, 0}, {1, 0, 1}, {2, 0, 2}, {0, 1, 0}, {1, 1, 1}, {3, 0, 1}, {3, 1, 1}});
    CHECK(c.deepest == 2);
}

TEST_CASE("what no session can be is refused in one sentence") {
    const std::string a = line("a");
    CHECK(refusal(line("a", R"("after":["b"])") + line("b", R"("after":["a"])")) ==
          "x.json:1: step \"a\" waits for itself, over what it is after or keeps");
    CHECK(refusal(line("a", R"("after":["x"])")) ==
          "x.json:1: after names \"x\", and the session has no such step");
    CHECK(refusal(line("a", R"("wait":-1)")) ==
          "x.json:1: wait is -1, a number from 0 to 10000000 is allowed");
    CHECK(refusal(a + line("b", R"("after":["a"],"keeps":["a",10])")) ==
          "x.json:2: prompt_tokens is 9, and keeps 10 of another prompt: a prompt is as long as what "
          "it keeps at least");
    // What the body of a step sets may not be what is set for it, or would be there twice.
    for (const char* ours : {"model", "messages", "stream"})
        CHECK(refusal(a + line("b", R"("body":{")" + std::string(ours) + R"(":1})")) ==
              "x.json:2: body sets \"" + std::string(ours) + "\": that field belongs to llmbench");
    CHECK(refusal(line("a", R"("body":{"max_completion_tokens":9})")) ==
          "x.json:1: body sets \"max_completion_tokens\": use options.max_tokens, a field must not stand twice");
    CHECK(refusal(line("a", R"("body":{"max_tokens":9})")) ==
          "x.json:1: body sets \"max_tokens\": use options.max_tokens, a field must not stand twice");
    CHECK(refusal(line("a", R"("body":{"n":4})")).find("x.json:1: body sets \"n\" to 4: several") == 0);
    CHECK(refusal(line("a", R"("body":{"n":1,"tools":[]})")) == "");
    CHECK(refusal(a + a) == "x.json:2: step \"a\" is there twice in its session");
    CHECK(refusal(R"({"session":"s","step":"a","output_tokens":1})").find("prompt_tokens is null") !=
          std::string::npos);
    CHECK(refusal(a + R"({"session":"t","step":"a","prompt_tokens":9,"output_tokens":1})" "\n" + a)
              .find("goes on behind another one") != std::string::npos);
    CHECK(refusal(R"({"session":null})") == "x.json:1: session is null, a text is needed");
    CHECK(refusal("3") == "x.json:1: session is null, a text is needed");
    for (const char* misspelt : {"After", "waits", "keep", "prompt_len"})
        CHECK_REFUSED(refusal(a + line("b", '"' + std::string(misspelt) + R"(":["a"])")), "x.json:2: ",
                      std::string(misspelt) + " is a list, no field of a step, which are session, start,");
    CHECK(refusal(line("b", R"("note":null)")) == "");
    CHECK(refusal(a + line("b", R"("after":"a")")) == "x.json:2: after is \"a\", a list of steps' names is allowed");
    for (const char* text : {"agent", "model", "label"})
        CHECK_REFUSED(refusal(line("a", '"' + std::string(text) + R"(":7)")), "x.json:1: ", text, "is 7, a text is allowed");
    CHECK_REFUSED(refusal(line("a", R"("at":1e8)")), "at is 1e+08, a number from 0 to 10000000 is allowed");
    CHECK(refusal(R"({"session":"s","step":2})") == "x.json:1: step is 2, a text is needed");
    CHECK(refusal("") == "x.json: it holds no sessions");
}

TEST_CASE("steps stand in a list as well as on lines, and a number of a body keeps its digits") {
    const std::string a = line("a", R"("body":{"seed": 12345678901234567890, "stop":["x"]})"), b = line("b");
    for (const std::string& text : {a + b, "[" + a + "," + b + "]"}) {
        const session_corpus c = read(text);
        REQUIRE(c.steps.size() == 2);
        CHECK(c.bodies[step(c, 0).body] == R"(,"seed": 12345678901234567890, "stop":["x"])");
    }
}

TEST_CASE("a recording of another format is refused with the command that makes lines of it") {
    for (const char* format : {"weka", "bailian", "mooncake_agents", "otel"})
        CHECK(refusal(texts::content_of("data/sessions/" + std::string(format) + ".jsonl")) ==
              "x.json:1: it is a recording of another format: `llmbench convert x.json --from " +
                  std::string(format) + " --out sessions.jsonl` makes lines of it, which sessions{} reads");
    CHECK(refusal(R"({"resourceSpans":[]})").find("--from otel") != std::string::npos);
    CHECK(refusal(line("a", R"("body":{"requests":[],"traceId":""})")) == "");
}

TEST_CASE("a session with a prompt over max_context is left out whole, and half of them at most") {
    const auto session = [](const std::string& name, int tokens) {
        return line("a", "", name) + R"({"session":")" + name + R"(","step":"b","prompt_tokens":)" +
               std::to_string(tokens) + R"(,"output_tokens":1})" "\n";
    };
    const std::string small = session("s", 20), large = session("l", 21);
    const session_corpus c = read_lines(small + large + session("t", 9), 20);
    CHECK(c.sessions.size() == 2);
    CHECK(c.left_out == 1);
    CHECK(refusal(small + large + session("t", 30), 20) ==
          "x.json: 2 of 3 sessions have a prompt of over 20 tokens (workload.max_context), and over "
          "half of them are too many to leave out");
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
    REQUIRE(tree.sessions.size() == 6);
    REQUIRE(tree.sessions[0].steps == 7);
    CHECK(after(tree, 4) == step_list{0, 2});
    CHECK(step(tree, 4).wait_s == 1.5);
    CHECK(after(tree, 5) == step_list{4, 3});
    CHECK(step(tree, 6).prompt.kept == step(tree, 5).prompt.tokens);
    CHECK(step(tree, 1).prompt.kept == 0);
    // Prompts have the answers before them: of 100 tokens a turn, with answers of 500.
    const auto steps_of = [&](std::size_t session) {
        return std::span(tree.steps).subspan(tree.sessions[session].first, tree.sessions[session].steps);
    };
    CHECK(steps_of(1)[0].prompt.tokens == 100);
    CHECK(steps_of(1)[1].prompt.tokens == 700);
    CHECK(steps_of(1)[2].prompt.tokens == 1300);
    // An orchestrator asks nothing itself: its rounds wait for each other, and think before each.
    CHECK(steps_of(2).size() == 4);
    CHECK(steps_of(2)[0].at_s == 12);
    CHECK(steps_of(2)[3].after == 2);
    CHECK(steps_of(2)[3].wait_s == 31);
    CHECK(steps_of(3).size() == 2);
    // One that is spawned before the first turn, and a fork in the background, which nothing waits for.
    CHECK(steps_of(4).size() == 4);
    CHECK(steps_of(4)[2].prompt.tokens == 2 + 10 + 1);
    CHECK(steps_of(4)[3].after == 1);
    // The document's own example: two branches go on from the answer of the root.
    REQUIRE(steps_of(5).size() == 5);
    CHECK(steps_of(5)[1].prompt.tokens == 17 + 128 + 18);
    CHECK(steps_of(5)[1].prompt.kept == 17);
}

// ---- size ----------------------------------------------------------------------------------------

TEST_CASE("of 472 sessions and 113,254 requests the index is small") {
    // What a prompt has of its own is a node; its thousands of blocks are gone when it is read.
    session_corpus c;
    for (int s = 0; s < 472; ++s) {
        const int n = 239 + (s < 446);
        vector<recorded_step> all;
        tree_prompt p;
        for (int i = 0; i < n; ++i) {
            p = c.prompts.branch(p.node, p.tokens, p.tokens + 900);
            recorded_step r;
            r.at_s = r.end_s = i;
            r.prompt = p;
            r.output_tokens = 100;
            if (i > 0) r.after = {static_cast<unsigned>(i - 1)};
            r.goes_on_from = i - 1;
            all.push_back(r);
        }
        find_lines(all, c.prompts);
        add_session(c, all, {});
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
    CHECK(endless("", R"({"session":"s","step":"a","prompt_tokens":1,"output_tokens":1})") ==
          "endless:1: the session has over 10000 steps");
    CHECK(endless(R"({"session":")", "x") == "endless:1: the value is over 64 MiB");
    CHECK(endless(R"({"after":["a")", R"(,"a")") == "endless:1: the value is over 64 MiB");
}
