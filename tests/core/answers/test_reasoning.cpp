// Reasoning: which pieces of an answer are thought and which are answered, as each API tells them
// apart. The shapes are those that servers were reported to send (llama.cpp b9554, vLLM before and
// after 0.17, SGLang, Ollama, the Messages API); the words are ours.
#include "llmbench.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/figures/outcomes.hpp"
#include "core/stored/record_json.hpp"
#include "core/stored/stored.hpp"
#include "extensions/embeddings/core/inputs.hpp"

#include <string>
#include <string_view>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// Each of these a millisecond after the one before; the first at 1 ms.
record heard(api_format api, const char* type, const vector<std::string>& pieces) {
    std::size_t size = 0;
    for (const std::string& p : pieces) size += p.size();
    answer_reader reader;
    reader.reset(traits_of(api));
    reader.feed("HTTP/1.1 200 OK\r\nContent-Type: " + std::string(type) +
                    "\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n",
                500'000);
    long long now = 0;
    for (const std::string& p : pieces) reader.feed(p, now += 1'000'000);
    record r;
    reader.timeline().write_to(r);
    CAPTURE(std::string(r.error));
    CHECK(r.status == request_status::ok);
    return r;
}
record heard_events(api_format api, const vector<std::string>& data) {
    vector<std::string> events;
    for (const std::string& d : data) events.push_back("data: " + d + "\n\n");
    return heard(api, "text/event-stream", events);
}
std::string delta(const std::string& fields) {
    return R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1781492230,)"
           R"("model":"m","choices":[{"index":0,"delta":{)" +
           fields + R"(},"logprobs":null,"finish_reason":null}]})";
}
const char* const end_event =
    R"({"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})";
constexpr long long ms = 1'000'000;

}  // namespace

TEST_CASE("OpenAI: reasoning is no answer, by either of its names and on the fast path too") {
    for (const char* name : {"reasoning_content", "reasoning"}) {
        CAPTURE(name);
        const auto thought = [&](const char* words) {
            return delta("\"" + std::string(name) + "\":\"" + words + "\"");
        };
        const record r = heard_events(
            openai_chat, {delta(R"("role":"assistant","content":"")"), thought("The"),
                          thought(" user"), thought(" asks"), delta(R"("content":"\n\n")"),
                          delta(R"("content":"Yes")"), end_event, "[DONE]"});
        CHECK(r.events == 5);
        CHECK(r.first_token_ns == 2 * ms);
        CHECK(r.second_token_ns == 3 * ms);
        CHECK(r.first_answer_ns == 5 * ms);
        CHECK(r.reasoning_tokens == -1);
        CHECK(has_reasoned(r));
    }
}

TEST_CASE("OpenAI: where a delta has both, its answer has begun; null and empty say nothing") {
    const record both = heard_events(
        openai_chat, {delta(R"("reasoning_content":"So","content":null)"),
                      delta(R"("reasoning_content":".","content":"")"),
                      delta(R"("reasoning_content":" Fine","content":"Yes")"), "[DONE]"});
    CHECK(both.events == 3);
    CHECK(both.first_answer_ns == 3 * ms);
    // vLLM fills the one and has null for the other.
    const record nulls = heard_events(
        openai_chat, {delta(R"("content":null,"reasoning":"So")"),
                      delta(R"("content":"Yes","reasoning":null)"), "[DONE]"});
    CHECK(nulls.first_token_ns == 1 * ms);
    CHECK(nulls.first_answer_ns == 2 * ms);
}

TEST_CASE("absurd numbers of a server make no record that cannot be read") {
    std::string gate;
    for (const std::string usage : {"1e9", "999999999", "2147483647", "-1", "1e308"})
        for (const std::string index : {"0", "5000000", "1000000000", "-7", "1e300"}) {
            const record r = heard_events(
                openai_chat,
                {R"({"choices":[{"index":)" + index + R"(,"delta":{"content":"Yes"},"finish_reason":"stop"}]})",
                 R"({"choices":[],"usage":{"prompt_tokens":)" + usage + R"(,"completion_tokens":)" + usage +
                     R"(,"total_tokens":)" + usage + R"(,"prompt_tokens_details":{"cached_tokens":)" + usage +
                     R"(},"completion_tokens_details":{"reasoning_tokens":)" + usage + "}}}",
                 "[DONE]"});
            CHECK(r.choices <= 1000000);
            record sent = r;
            sent.scheduled_ns = sent.sent_ns = 1;
            CHECK(read_record(record_json(sent, "g"), gate).choices == r.choices);
        }
}

TEST_CASE("no sum of an answer's bytes leaves what an int holds") {
    stream_timeline stream;
    stream_event e;
    e.content = true;
    e.text_bytes = e.reasoning_bytes = 2000000000;
    for (int i = 0; i < 2; ++i) stream.on_event(e, 1 + i);
    stream_event usage;
    usage.completion_tokens = 10;
    usage.reasoning_tokens = 10;
    stream.on_event(usage, 4);
    record r;
    stream.write_to(r);
    CHECK(r.text_bytes == 2147483647);
    CHECK(r.hidden_tokens == 0);  // -1 with a sum below 0
    // A word of 3 MB is read with each of 999 others.
    request_spec asked;
    asked.prompt = std::string(3000000, 'x');
    for (int i = 0; i < 999; ++i) asked.prompt += " a";
    asked.documents = 999;
    CHECK(asked_score(asked).characters == 2147483647);
}

TEST_CASE("Ollama: thinking is no answer in what is generated, either") {
    const record generated =
        heard(ollama_generate, "application/x-ndjson",
              {R"({"model":"m","response":"","thinking":"Hm","done":false})" "\n",
               R"({"model":"m","response":"Yes","done":false})" "\n",
               R"({"model":"m","response":"","done":true,"eval_count":2})" "\n"});
    CHECK(generated.first_token_ns == 1 * ms);
    CHECK(generated.first_answer_ns == 2 * ms);
}

TEST_CASE("a record keeps when the answer began and what of it was reasoning; older ones do not") {
    record r = heard_events(openai_chat, {delta(R"("reasoning":"So")"), delta(R"("content":"Yes")"),
                                          end_event, "[DONE]"});
    r.scheduled_ns = r.sent_ns = 1;
    r.reasoning_tokens = 24;
    CHECK(r.first_answer_ns == 2 * ms);
    CHECK(r.second_token_ns == 2 * ms);
    std::string older = record_json(r, "chat"), gate;
    for (const char* field : {"second_token_ns", "first_answer_ns", "reasoning_tokens"}) {
        const std::size_t at = older.find(",\"" + std::string(field));
        REQUIRE(at != std::string::npos);
        older.erase(at, older.find_first_of(",}", at + 1) - at);
    }
    const record old = read_record(older, gate);
    CHECK(old.first_answer_ns == 0);
    CHECK(old.reasoning_tokens == -1);
    CHECK(!has_reasoned(old));
}

TEST_CASE("reasoning is counted apart, of the requests that tell it") {
    repeat_data d;
    const auto add = [&](long long answer_ns, int tokens, request_status status) {
        record r;
        r.first_token_ns = 1 * ms;
        r.second_token_ns = 2 * ms;
        r.first_answer_ns = answer_ns;
        r.output_tokens = 100;
        r.reasoning_tokens = tokens;
        r.status = status;
        d.records.push_back(r);
    };
    add(1 * ms, -1, request_status::ok);       // none
    add(5 * ms, 60, request_status::ok);
    add(7 * ms, 20, request_status::ok);
    add(5 * ms, -1, request_status::ok);       // not told
    add(5 * ms, 90, request_status::timeout);  // no answer
    const reasoning_counts c = reasoning_counts_of({d});
    CHECK(c.requests == 3);
    CHECK(c.unreported == 1);
    CHECK(c.tokens == 80);
    CHECK(c.output == 200);
}
