// Events in a stream, which are mostly alike: each says what it says alone.
#include "core/answers/timeline.hpp"
#include "core/base/json_reader.hpp"
#include "core/dialects/event_reader.hpp"
#include "core/dialects/table.hpp"
#include "support/effort.hpp"
#include "support/json_views.hpp"

#include <cstdio>
#include <string>
#include <tuple>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

auto all_of(const stream_event& e) {
    return std::tuple(e.content, e.answer, e.tokenless, e.done, e.first_tokens, e.counted, e.hides_thought, e.has_media, e.text_bytes,
                      e.reasoning_bytes, e.own_bytes, e.choices, e.finished, e.finish_reason, e.finish_choice, e.error, e.malformed,
                      e.prompt_tokens, e.completion_tokens, e.total_tokens, e.cached_tokens, e.reasoning_tokens);
}
auto numbers_of(const record& r) {
    return std::tuple(r.status, r.events, r.prompt_tokens, r.output_tokens, r.reasoning_tokens, r.cached_tokens, r.text_bytes, r.choices,
                      r.hidden_tokens, r.first_event_tokens, r.first_answer_ns, r.last_token_ns, str(r.error), str(r.finish_reason));
}
/// Two events of each API, and what they may be followed by.
const std::pair<const char*, const char*> events[] = {
    {"openai_chat", R"({"id":"a1","created":17,"choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]})"},
    {"openai_chat", R"({"choices":[{"index":0,"delta":{"reasoning":"Hm","reasoning_content":"Hm"},"finish_reason":null}]})"},
    {"openai_chat", R"({"choices":[{"index":1,"delta":{"content":"a"}}],"usage":{"prompt_tokens":8,"completion_tokens":3,"total_tokens":11}})"},
    {"openai_chat", R"({"choices":[{"index":0,"delta":{"content":"a","thinking":"b"}}],"usage":{"output_tokens":3,"completion_tokens":3}})"},
    {"openai_chat", R"({"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]})"},
    {"openai_chat", R"({"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]})"},
    {"openai_chat", R"({"choices":[{"index":0,"delta":{"content":"a","reasoning_signature":"none"}}]})"},
    {"openai_completions", R"({"choices":[{"index":0,"text":" word","logprobs":{"content":[1,2]}}]})"},
    {"openai_chat", R"({"id": "1", "created": 1, "choices": [{"index": 0, "delta": {"content": " word"}, "finish_reason": null}], "error": null})"},
    {"openai_chat", R"({"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"id":"c","timings":{"prompt_n":9,"prompt_ms":51.25,"cache":[1,2,[]]}})"},
    {"openai_chat", R"({"choices":[{"index":0,"delta":{"content":""}},{"index":1,"delta":{"content":"b"},"finish_reason":"stop"}]})"},
    {"tgi", R"({"index":3,"token":{"id":7,"text":" a","logprob":-0.5,"special":false},"generated_text":null,"details":null})"},
    {"triton", R"({"model_name":"m","text_output":" word","num_input_tokens":8,"num_output_tokens":1})"},
    {"ollama", R"({"created_at":"2026","message":{"role":"assistant","content":" word","thinking":"Hm"},"done":false})"},
    {"llama_cpp", R"({"content":" word","tokens":[17],"stop":false,"tokens_predicted":4,"tokens_evaluated":8})"},
    {"sglang", R"({"text":" word","output_ids":[1,2],"meta_info":{"completion_tokens":2,"prompt_tokens":8}})"},
    {"anthropic", R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}})"},
    {"anthropic", R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}})"},
    {"anthropic", R"({"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{"}})"},
    {"openai_responses", R"({"type":"response.output_text.delta","delta":" word","sequence_number":4,"obfuscation":"xy"})"},
    {"openai_responses", R"({"type":"response.refusal.delta","delta":"No","sequence_number":4})"},
    {"openai_responses", R"({"type":"response.created","response":{"id":"r1","status":"in_progress"}})"},
};
const char* const parts[] = {"\"\"", "\"none\"", "\"x\"", "\"a longer text\"", "\"\\n\"", "\"\\u00e9\\ud83d\"", "0", "1", "12", "-3", "2.5", "1e9",
                             "1e999", "12345678901", "null", "\"text\"", "\"error\"", "\"stop\""};

}  // namespace

TEST_CASE("an event of any API says in a stream what it says alone") {
    for (const auto& [api, event] : events) {
        CAPTURE(event);
        const api_traits& a = *api_named(api);
        event_reader together, in_blocks;
        stream_memory in_stream{.asked = {.is_kept = true}}, alone = in_stream, in_block = in_stream;
        stream_timeline by_block, by_event;
        long long now = 1;
        const auto must_agree = [&](const std::string& data) {
            CAPTURE(data);
            const stream_event& e = together.read("", data, a.read, in_stream);
            json_reader json;
            const stream_event by_itself = read_json_event("", data, json.read(data), a.read, alone);
            CHECK(all_of(e) == all_of(by_itself));
            CHECK(in_stream.said.joined() == alone.said.joined());
            const std::string stream = "id: 1\nevent: x\ndata: " + data + "\n\ndata: {";
            std::string_view rest = stream;
            const stream_event* next = in_blocks.read_next(rest, a.read, in_block);
            if (next) CHECK(rest == "data: {");
            else next = &in_blocks.read("x", rest.substr(21, data.size()), a.read, in_block, rest.substr(0, data.size() + 23));
            CHECK(all_of(*next) == all_of(by_itself));
            CHECK(in_block.said.joined() == alone.said.joined());
            by_block.on_event(*next, ++now);
            by_event.on_event(by_itself, now);
            record a_record, another;
            by_block.write_to(a_record);
            by_event.write_to(another);
            CHECK(numbers_of(a_record) == numbers_of(another));
            if (by_event.ended()) by_block.reset(), by_event.reset();
        };
        json_reader json;
        REQUIRE(json.read(event));
        for (const json_view& v : vector<json_view>(json.values())) {
            if (!v.is_string() && !v.is_number()) continue;
            for (const char* part : parts) {
                std::string changed = event;
                changed.replace(v.from, v.to - v.from, part);
                must_agree(event);
                must_agree(changed);
                must_agree(changed);
                must_agree(event);
            }
        }
        for (std::size_t i = 0; i < 400; ++i) must_agree(json_views::with_another_part(event, i * 7));
    }
}

TEST_CASE("events that are alike are taken off together, as far as they are whole and say something") {
    const api_traits& a = *api_named("openai_chat");
    const auto event = [](const std::string& text) {
        return R"(data: {"id":"a1","choices":[{"index":0,"delta":{"content":")" + text + R"("},"finish_reason":null}]})" "\n\n";
    };
    for (const bool in_chunks : {false, true}) {
        CAPTURE(in_chunks);
        const auto stream = [&](const vector<std::string>& texts) {
            std::string all;
            for (const std::string& text : texts) {
                char lines[16] = "";
                if (in_chunks) std::snprintf(lines, sizeof lines, "\r\n%zx\r\n", event(text).size());
                all += lines + event(text);
            }
            return all;
        };
        event_reader reader;
        stream_memory memory{.asked = {.is_kept = true}};
        const auto next = [&](std::string_view& rest, std::size_t most) {
            return reader.read_next(rest, a.read, memory, most, in_chunks ? between::chunk_lines : between::none);
        };
        const std::string first = event("one"), more = stream({"", "g"}), all = stream({"a", "bcd", "\\n", "ef"}) + more;
        std::string_view rest = all, none;
        CHECK(next(rest, 8) == nullptr);  // like nothing before
        reader.read("", std::string_view(first).substr(6, first.size() - 8), a.read, memory, first);
        CHECK(next(none, 8) == nullptr);
        CHECK(next(rest, 0) == nullptr);
        const stream_event* e = next(rest, 3);
        REQUIRE(e);
        CHECK(e->own_bytes == 1);
        REQUIRE(e->before.size() == 2);
        CHECK(e->before[0] == 1);
        CHECK(e->before[1] == 3);
        CHECK(e->reasoning_before == 0);
        e = next(rest, 8);
        REQUIRE(e);
        CHECK(e->own_bytes == 2);
        CHECK(e->before.empty());
        CHECK(rest == more);
        CHECK(next(rest, 8) == nullptr);  // an empty text says something else
        CHECK(rest == more);
        CHECK(memory.said.answer == "oneabcd\nef");
        const std::string two = stream({"h", "i"});
        for (std::size_t n = 0; n < two.size(); ++n) {  // the last one is not whole
            CAPTURE(n);
            rest = std::string_view(two).substr(0, n);
            const std::size_t whole = n < two.size() / 2 ? 0 : two.size() / 2;
            CHECK((next(rest, 8) != nullptr) == (whole > 0));
            CHECK(rest.size() == n - whole);
        }
        rest = two;
        e = next(rest, 8);
        REQUIRE(e);
        CHECK(e->before.size() == 1);
        e = &reader.read("", std::string_view(first).substr(6, first.size() - 8), a.read, memory);
        CHECK(e->before.empty());
        if (!in_chunks) continue;
        for (const std::string& other : {"\r\n9\r\n" + event("a"), stream({"a"}).replace(2, 2, "ff"), stream({"a"}).substr(2),
                                         "\r\n" + stream({"a"}), stream({"a"}).insert(4, ";x")}) {
            CAPTURE(other);
            rest = other;
            CHECK(next(rest, 8) == nullptr);
            CHECK(rest == other);
        }
    }
}

TEST_CASE("what one stream has said is no part of the next one's answer") {
    const std::string event = R"({"type":"response.created","response":{"id":"r1"}})";
    event_reader reader;
    for (int i = 0; i < 2; ++i) {
        stream_memory memory{.asked = {.is_kept = true}};
        reader.read("", event, api_named("openai_responses")->read, memory);
        CHECK(memory.said.id == "r1");
    }
}

TEST_CASE("a document that is like the one before has its own texts") {
    event_reader reader;
    for (const char* text : {"a", "longer", "\\n", "", "a\\u00e9"}) {
        const std::string data = std::string(R"({"n":1,"text":")") + text + R"(","m":[2]})";
        json_reader alone;
        const json_view *v = reader.document(data), *expected = alone.read(data);
        REQUIRE(v);
        CHECK(string_member(*v, "text") == string_member(*expected, "text"));
        CHECK(count_at(*v, "m.0") == 2);
    }
    CHECK(reader.document(R"({"n":1,"text":"a","m":[2)") == nullptr);
    CHECK(reader.document("") == nullptr);
}
