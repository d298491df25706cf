// Sessions as lines: nothing that recordings say is lost in them.
#include "support/recordings.hpp"
#include "support/texts.hpp"

#include "core/base/random.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace recordings;

TEST_CASE("of each format, a file and the lines that convert makes of it are the same sessions") {
    for (const char* format : {"weka", "bailian", "mooncake_agents", "otel"}) {
        CAPTURE(format);
        const std::string file = texts::content_of("data/sessions/" + std::string(format) + ".jsonl");
        const session_corpus c = read(format, {file});
        CHECK(c.sessions.size() >= 3);
        CHECK(c.max_steps >= 3);
        CHECK(lost_in_lines(c) == "");
    }
}

TEST_CASE("lines of ours are written as what they were read as") {
    for (const char* name : {"dag_jsonl", "tracelab", "tpu_inference"})
        CHECK(lost_in_lines(read_lines(texts::content_of("data/sessions/" + std::string(name) + ".ours.jsonl"))) == "");
    CHECK(lost_in_lines(read_lines(R"({"session":"s","step":"a","prompt_tokens":9,"output_tokens":1,"model":"\"m\"",)"
                                   R"("label":"\u00e9","body":{"stop":["\n"],"top_k":1},"wait":0.1,"at":1234567.8})")) ==
          "");
}

TEST_CASE("a wait that is longer than a line may have is cut in lines") {
    session_corpus c = read_lines(R"({"session":"s","step":"a","prompt_tokens":9,"output_tokens":1})" "\n"
                                  R"({"session":"s","step":"b","after":["a"],"wait":1,"prompt_tokens":9,"output_tokens":1})");
    c.steps[1].wait_s = 3e8f;  // of spans that are years apart
    CHECK(read_lines(session_lines(c)).steps[1].wait_s == 1e7f);
}

TEST_CASE("a recording's lines say what it says") {
    CHECK(session_lines(read("weka", {texts::content_of("data/sessions/weka.jsonl")})) ==
          texts::content_of("data/sessions/weka.ours.jsonl"));
    CHECK(session_lines(read("bailian", {texts::content_of("data/sessions/bailian.jsonl")})) ==
          texts::content_of("data/sessions/bailian.ours.jsonl"));
}

TEST_CASE("recordings of any shape lose nothing in lines") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        generator random(seed, 0);
        const auto below = [&](int n) { return static_cast<int>(random.below(static_cast<std::uint64_t>(n))); };
        // Prompts begin with blocks of few kinds, so that they have much in common.
        const auto blocks = [&](int n) {
            std::string ids;
            for (int i = 0; i < n; ++i) ids += (i > 0 ? "," : "") + std::to_string(10 * i + below(2));
            return ids;
        };
        const auto request = [&](int least_t) {
            const int n = 1 + below(6);
            return printed(R"({"t":%g,"type":"s","model":"m%d","in":%d,"out":%d,)", least_t + below(40) / 4.0,
                           below(3), 10 * n - below(10), below(9)) +
                   (below(4) > 0 ? printed(R"("api_time":%g,)", below(20) / 4.0) : "") + R"("hash_ids":[)" + blocks(n) +
                   "]}";
        };
        std::string weka, chats, calls;
        for (int s = 0; s < 4; ++s) {
            weka += printed(R"({"block_size":10,"hash_id_scope":"%s","requests":[)", below(2) > 0 ? "global" : "local");
            for (int n = 1 + below(12), i = 0; i < n; ++i) {
                weka += (i > 0 ? "," : "") + request(0);
                if (below(3) > 0) continue;
                weka += printed(R"(,{"t":%d,"type":"subagent","subagent_type":"k%d","requests":[)", below(9), below(2));
                for (int m = 1 + below(4), k = 0; k < m; ++k) weka += (k > 0 ? "," : "") + request(below(9));
                weka += "]}";
            }
            weka += "]}\n";
        }
        for (int i = 0; i < 25; ++i) {
            const auto rest = [&](int block) {
                const int n = 1 + below(6);
                return printed(R"("input_length":%d,"output_length":%d,"hash_ids":[)", block * n - below(block),
                               below(9)) + blocks(n) + "]}\n";
            };
            chats += printed(R"({"chat_id":%d,"parent_chat_id":%d,"timestamp":%g,"type":"k%d",)", i, below(40) - 15,
                             i / 3.0, below(3)) + rest(16);
            calls += printed(R"({"timestamp":%d,"session_id":"%d",)", 100 * i, below(6)) +
                     (below(2) > 0 ? printed(R"("delay":%g,)", below(9) / 8.0) : "") + rest(512);
        }
        CAPTURE(seed);
        CHECK(lost_in_lines(read("weka", {weka})) == "");
        CHECK(lost_in_lines(read("bailian", {chats})) == "");
        CHECK(lost_in_lines(read("mooncake_agents", {calls})) == "");
    }
}
