// APIs: the shapes in which servers answer, and the requests they are asked with.
#include "llmbench.hpp"
#include "core/dialects/body_reader.hpp"
#include "core/dialects/table.hpp"
#include "core/planning/planning.hpp"
#include "support/openai_events.hpp"
#include "support/texts.hpp"

#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using texts::parsed;

namespace {

stream_event read(const std::string& data, const char* type = "") {
    return openai_events::read_event(type, data);
}
std::string openai_body(api_format api, const std::string& model, const request_spec& r) {
    return request_body(traits_of(api), model, r);
}
/// The words that one event brings into a conversation.
std::string answer_text(const std::string& data) {
    body_reader r;
    r.reset(traits_of(openai_chat), {.is_kept = true});
    r.feed("data: " + data + "\n\n", [](const stream_event&) {});
    return r.said().answer;
}
std::string message(const picojson::value& body, std::size_t i, const char* field) {
    return body.get("messages").get(i).get(field).get<std::string>();
}

}  // namespace

// ---- tokens ------------------------------------------------------------------------------------

TEST_CASE("an event says how many tokens it carries by running usage or by a list of them") {
    CHECK(
        read(
            R"({"choices":[{"delta":{"content":"a b c"}}],"usage":{"prompt_tokens":5,"completion_tokens":3}})")
            .first_tokens == 3);
    CHECK(
        read(
            R"({"choices":[{"delta":{"content":"a b"},"logprobs":{"content":[{"token":"a"},{"token":" b"}]}}]})")
            .first_tokens == 2);
    CHECK(read(R"({"choices":[{"text":"a b c d","token_ids":[1,2,3,4]}]})").first_tokens == 4);
    CHECK(
        read(R"({"choices":[{"delta":{"content":"a"},"logprobs":{"content":[]}}]})").first_tokens ==
        1);
    CHECK(read(R"({"choices":[{"delta":{"content":"a"},"logprobs":null}]})").first_tokens == 1);
    // A role alone carries none.
    const stream_event role = read(
        R"({"choices":[{"delta":{"role":"assistant"}}],"usage":{"prompt_tokens":5,"completion_tokens":0}})");
    CHECK_FALSE(role.content);
    CHECK(role.completion_tokens == 0);
}

// ---- hostile JSON ------------------------------------------------------------------------------

TEST_CASE("deep nesting is refused before it can exhaust the stack") {
    const auto nested = [](int depth) {
        return "{\"a\":" + std::string(static_cast<std::size_t>(depth - 1), '[') +
               std::string(static_cast<std::size_t>(depth - 1), ']') + "}";
    };
    CHECK_FALSE(read(nested(100)).malformed);
    CHECK(read(nested(101)).malformed);
    CHECK(read("{\"a\":" + std::string(1000000, '[')).malformed);
    std::string objects;
    for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
    CHECK(read(objects).malformed);
    // Brackets inside strings nest nothing.
    CHECK_FALSE(read(R"({"a":"\"[)" + std::string(500, '[') + "\"}").malformed);
    std::string beside;
    for (int i = 0; i < 200; ++i) beside += "[],";
    CHECK_FALSE(read("{\"a\":[" + beside + "0]}").malformed);
}

TEST_CASE("huge numbers do no harm") {
    for (const std::string number : {"1e308", "123456789012345678901234567890", "-1e308", "1e-400",
                                     "0.000000000000000000000001"}) {
        CAPTURE(number);
        const stream_event e =
            read(R"({"choices":[],"usage":{"completion_tokens":)" + number + "}}");
        CHECK_FALSE(e.malformed);
        CHECK(e.completion_tokens <= 0);
    }
    CHECK(read(R"({"choices":[],"usage":{"completion_tokens":1000000000}})").completion_tokens ==
          1000000000);
    CHECK(read(R"({"choices":[],"usage":{"completion_tokens":1000000001}})").completion_tokens ==
          -1);
}

TEST_CASE("what is no number of JSON is malformed, for the fast reader and the slow one") {
    for (const std::string number : {"007", "00", "1.", "-01", "+1", ".5", "1e", "0x1"})
        for (const std::string& event :
             {R"({"choices":[],"usage":{"completion_tokens":)" + number + "}}",
              R"({"created":)" + number + R"(,"choices":[{"index":0,"delta":{"content":"a"}}]})",
              R"({"choices":[{"index":0,"delta":{"content":"a"}}],"a":[1,)" + number + "]}"}) {
            CAPTURE(event);
            openai_events::stream_reader fast;
            CHECK(fast.read("", event).malformed);
            CHECK(openai_events::read_event("", event).malformed);
        }
    CHECK_FALSE(openai_events::stream_reader().read("", R"({"created":-0,"choices":[]})").malformed);
}

// ---- requests ----------------------------------------------------------------------------------

TEST_CASE("a chat request has its messages and asks for a stream with usage") {
    request_spec r;
    r.prompt = "Hello";
    r.max_tokens = 128;
    r.force_length = true;
    r.temperature = 0.7;
    const picojson::value b = parsed(openai_body(openai_chat, "my/model", r));
    CHECK(b.get("model").get<std::string>() == "my/model");
    REQUIRE(b.get("messages").get<picojson::array>().size() == 1);
    CHECK(message(b, 0, "role") == "user");
    CHECK(message(b, 0, "content") == "Hello");
    CHECK(b.get("stream").get<bool>());
    CHECK(b.get("stream_options").get("include_usage").get<bool>());
    CHECK(b.get("max_tokens").get<double>() == 128);
    CHECK(b.get("ignore_eos").get<bool>());
    CHECK(b.get("temperature").get<double>() == 0.7);
    CHECK_FALSE(b.contains("prompt"));
}

TEST_CASE("what was not asked for is not in the request") {
    request_spec r;
    r.prompt = "Hello";
    const picojson::value b = parsed(openai_body(openai_chat, "m", r));
    for (const std::string field : {"max_tokens", "ignore_eos", "temperature"}) {
        CAPTURE(field);
        CHECK_FALSE(b.contains(field));
    }
    CHECK(b.get<picojson::object>().size() == 4);
    r.temperature = 0;
    CHECK(parsed(openai_body(openai_chat, "m", r)).get("temperature").get<double>() == 0);
}

TEST_CASE("a system prompt is a message of its own, or the start of the prompt") {
    request_spec r;
    r.prompt = "Hello";
    r.system_prompt = "Be brief";
    const picojson::value chat = parsed(openai_body(openai_chat, "m", r));
    REQUIRE(chat.get("messages").get<picojson::array>().size() == 2);
    CHECK(message(chat, 0, "role") == "system");
    CHECK(message(chat, 0, "content") == "Be brief");
    CHECK(message(chat, 1, "role") == "user");
    const picojson::value completions = parsed(openai_body(openai_completions, "m", r));
    CHECK(completions.get("prompt").get<std::string>() == "Be brief\nHello");
    CHECK_FALSE(completions.contains("messages"));
    r.system_prompt.clear();
    CHECK(parsed(openai_body(openai_completions, "m", r)).get("prompt").get<std::string>() ==
          "Hello");
}

TEST_CASE("earlier messages stand between the system prompt and the prompt") {
    request_spec r;
    r.prompt = "And now?";
    r.system_prompt = "Be brief";
    r.history = {{"user", "Hello \"you\""}, {"assistant", "Hi\nthere"}};
    const picojson::value chat = parsed(openai_body(openai_chat, "m", r));
    REQUIRE(chat.get("messages").get<picojson::array>().size() == 4);
    CHECK(message(chat, 1, "role") == "user");
    CHECK(message(chat, 1, "content") == "Hello \"you\"");
    CHECK(message(chat, 2, "role") == "assistant");
    CHECK(message(chat, 2, "content") == "Hi\nthere");
    CHECK(message(chat, 3, "content") == "And now?");
    CHECK(parsed(openai_body(openai_completions, "m", r)).get("prompt").get<std::string>() ==
          "Be brief\nHello \"you\"\nHi\nthere\nAnd now?");
}

TEST_CASE("an image stands beside the question where each API looks for it") {
    request_spec r;
    r.prompt = "What \"is\" this?";
    r.image = "data:image/png;base64,AA==";
    const auto sent = [&](api_format api, const char* field) {
        return parsed(request_body(traits_of(api), "m", r)).get(field);
    };
    CHECK(sent(openai_chat, "messages").get(0).get("content").serialize() ==
          R"([{"text":"What \"is\" this?","type":"text"},)"
          R"({"image_url":{"url":"data:image\/png;base64,AA=="},"type":"image_url"}])");
    CHECK(sent(anthropic, "messages").get(0).get("content").serialize() ==
          R"([{"source":{"data":"AA==","media_type":"image\/png","type":"base64"},"type":"image"},)"
          R"({"text":"What \"is\" this?","type":"text"}])");
    CHECK(sent(openai_responses, "input").get(0).get("content").serialize() ==
          R"([{"text":"What \"is\" this?","type":"input_text"},)"
          R"({"image_url":"data:image\/png;base64,AA==","type":"input_image"}])");
    CHECK(sent(ollama, "messages").get(0).serialize() ==
          R"({"content":"What \"is\" this?","images":["AA=="],"role":"user"})");
    CHECK(sent(ollama_generate, "images").serialize() == R"(["AA=="])");
    CHECK(sent(ollama_generate, "prompt").get<std::string>() == r.prompt);
    r.image.clear();
    for (const api_format api : {openai_chat, anthropic, ollama})
        CHECK(sent(api, "messages").get(0).serialize() ==
              R"({"content":"What \"is\" this?","role":"user"})");
    CHECK(sent(ollama_generate, "images").is<picojson::null>());
}

TEST_CASE("the words of an answer are its first choice's content, without the reasoning") {
    CHECK(answer_text(R"({"choices":[{"index":0,"delta":{"content":"a \"b\"\u00e9"}}]})") ==
          "a \"b\"\xC3\xA9");
    CHECK(answer_text(R"({"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]})") == "a");
    CHECK(answer_text(R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})") == "");
    CHECK(answer_text(R"({"choices":[{"index":0,"text":"word"}]})") == "word");
    for (const char* none : {"[DONE]", "{}", "[]", R"({"choices":[]})", R"({"choices":null})"})
        CHECK(answer_text(none) == "");
}

TEST_CASE("any text arrives as it was written") {
    std::string all;
    for (int c = 1; c < 128; ++c) all += static_cast<char>(c);
    for (const std::string& text :
         {std::string("line\none\r\n\ttabbed"), std::string(R"(a "quoted" \ backslash \n \u0041)"),
          all, std::string("caf\xC3\xA9 \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80"),
          std::string("\",\"stream\":false,\"x\":\"")}) {
        CAPTURE(text);
        request_spec r;
        r.prompt = text;
        r.system_prompt = text;
        const picojson::value chat = parsed(openai_body(openai_chat, text, r));
        CHECK(chat.get("model").get<std::string>() == text);
        CHECK(message(chat, 0, "content") == text);
        CHECK(message(chat, 1, "content") == text);
        CHECK(chat.get("stream").get<bool>());
        CHECK(parsed(openai_body(openai_completions, "m", r)).get("prompt").get<std::string>() ==
              text + "\n" + text);
    }
}

TEST_CASE("extra fields are added to every request") {
    request_spec r;
    r.prompt = "Hello";
    request_options o;
    o.extra_body = R"({"top_k": 1, "stop": ["\n", "</s>"], "nested": {"a": [true, null]}})";
    add_extra_body(r, o);
    const picojson::value b = parsed(openai_body(openai_chat, "m", r));
    CHECK(b.get("top_k").get<double>() == 1);
    CHECK(b.get("stop").get(0).get<std::string>() == "\n");
    CHECK(b.get("stop").get(1).get<std::string>() == "</s>");
    CHECK(b.get("nested").get("a").get(1).is<picojson::null>());
    CHECK(message(b, 0, "content") == "Hello");
}

TEST_CASE("each API has its path below the URL's own") {
    const auto path = [](api_format api, const char* base, const char* model = "m") {
        return request_path(traits_of(api), traits_of(api).path, base, model);
    };
    CHECK(path(openai_chat, "") == "/v1/chat/completions");
    CHECK(path(openai_chat, "/v1") == "/v1/chat/completions");
    CHECK(path(openai_completions, "/proxy/v1") == "/proxy/v1/completions");
    CHECK(path(tgi, "") == "/generate_stream");
    CHECK(path(tgi, "/v1") == "/generate_stream");
    CHECK(path(triton, "", "my_model") == "/v2/models/my_model/generate_stream");
    CHECK(path(triton, "", "a/b c") == "/v2/models/a%2Fb%20c/generate_stream");
    CHECK(path(triton, "", "\xE9") == "/v2/models/%E9/generate_stream");
    CHECK(path(ollama, "/sub") == "/sub/api/chat");
    CHECK(path(plain_text, "") == "/generate");
    CHECK(path(plain_text, "/my/service") == "/my/service");
    CHECK(request_path(traits_of(triton), traits_of(triton).whole_path, "", "m") ==
          "/v2/models/m/generate");
}

TEST_CASE("a URL that names the whole path is taken as it is, whatever its base") {
    const auto path = [](api_format api, const char* asked, const char* base) {
        return request_path(traits_of(api), asked, base, "m");
    };
    const auto own = [&](api_format api, const char* base) {
        return path(api, traits_of(api).path, base);
    };
    for (const char* whole : {"/v1/chat/completions", "/v3/chat/completions",
                              "/openai/deployments/a/chat/completions"})
        CHECK(own(openai_chat, whole) == whole);
    CHECK(own(openai_completions, "/v3/completions") == "/v3/completions");
    CHECK(own(api_format::rerank, "/v2/rerank") == "/v2/rerank");
    CHECK(own(anthropic, "/anthropic/v1/messages") == "/anthropic/v1/messages");
    CHECK(own(ollama, "/sub/api/chat") == "/sub/api/chat");
    CHECK(own(tgi, "/a/generate_stream") == "/a/generate_stream");
    CHECK(path(tgi, "/generate", "/a/generate_stream") == "/a/generate");  // not streamed
    CHECK(path(tgi, "/generate_stream", "/a/generate") == "/a/generate_stream");
    // The end of another API's path is none of this one's: most often the wrong URL was pasted.
    CHECK(own(openai_completions, "/v1/chat/completions") == "/v1/chat/completions/v1/completions");
    // A version takes the place of ours.
    CHECK(own(openai_chat, "/v3") == "/v3/chat/completions");
    CHECK(own(openai_chat, "/api/paas/v4") == "/api/paas/v4/chat/completions");
    CHECK(own(openai_chat, "/vllm") == "/vllm/v1/chat/completions");
    CHECK(own(triton, "/v2") == "/v2/models/m/generate_stream");
    // What is asked beside the requests is where they are.
    CHECK(path(openai_chat, "/v1/models", "/v3/chat/completions") == "/v3/models");
    CHECK(path(openai_chat, "/health", "/a/v3/chat/completions") == "/a/health");
    CHECK(path(openai_chat, "/v1/models", "/openai/chat/completions") == "/openai/v1/models");
    CHECK(path(api_format::rerank, "/v1/models", "/v2/rerank") == "/v1/models");
    CHECK(path(ollama, "/api/tags", "/sub/api/chat") == "/sub/api/tags");
}

TEST_CASE("an API of an extension that is not compiled in is refused with the name of its file") {
    const std::size_t all = std::exchange(apis.known, static_cast<std::size_t>(api_format::openai_embeddings));
    const std::string why = texts::refusal_of([] { traits_of(api_format::rerank); });
    CHECK(api_named("rerank") == nullptr);
    apis.known = all;
    CHECK(why == "endpoint.api is no API: it is one of openai_chat, openai_completions, tgi, triton, ollama, "
                 "ollama_generate, llama_cpp, sglang, plain_text, anthropic, openai_responses; or "
                 "openai_embeddings, rerank, score, sglang_score, after #include "
                 "\"llmbench_embeddings.hpp\" where LLMBENCH_MAIN is");
    CHECK(texts::refusal_of([] { traits_of(api_format::rerank); }) == "");
    CHECK(api_named("rerank") == &traits_of(api_format::rerank));
    CHECK(api_names().find("after") == std::string::npos);
}
