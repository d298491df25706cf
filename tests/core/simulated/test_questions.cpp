// What requests ask for, in each API: those that the client writes, and some that it does not.
#include "extensions/simulated/core/questions.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

picojson::value json(const std::string& text) {
    picojson::value v;
    REQUIRE(parse_json(text, v));
    return v;
}
/// What the server makes of a request of the client's.
question asked(api_format api, const request_spec& r) {
    const api_traits& a = traits_of(api);
    const std::string path = request_path(a, r.stream ? a.path : a.whole_path, "", "m");
    const picojson::value body = json(request_body(a, "m", r));
    const maybe<api_format> at = api_at(path);
    REQUIRE(at);
    return question_of(api_of(*at, body), path, body);
}
question asked(api_format api, const std::string& body, const char* path = "") {
    return question_of(api, path, json(body));
}
std::string words(int n) {
    std::string s;
    for (int i = 0; i < n; ++i) s += (i ? " w" : "w") + std::to_string(i);
    return s;
}
request_spec spec(int prompt_words, int max_tokens) {
    request_spec r;
    r.prompt = words(prompt_words);
    r.max_tokens = max_tokens;
    return r;
}

}  // namespace

TEST_CASE("a request of every API is known as such, with its prompt and its length") {
    for (std::size_t i = 0; i < std::size(apis); ++i) {
        const auto api = static_cast<api_format>(i);
        CAPTURE(apis[i].name);
        for (const bool stream : {true, false}) {
            request_spec r = spec(20, 8);
            r.stream = stream;
            const question q = asked(api, r);
            CHECK(q.api == api);
            CHECK(q.prompt_tokens == 20);
            // What scores reads its prompt in one step, and nothing streams of that.
            CHECK(q.output_tokens == (apis[i].generates ? 8 : 1));
            CHECK_FALSE(q.stops);
            CHECK(q.streamed == ((stream && apis[i].generates) || api == plain_text));
        }
    }
}

TEST_CASE("a long answer is forced where the API can, and else ends by itself at its own place") {
    for (std::size_t i = 0; i < std::size(apis); ++i) {
        const auto api = static_cast<api_format>(i);
        if (!apis[i].generates) continue;
        CAPTURE(apis[i].name);
        request_spec r = spec(20, 4000);
        r.force_length = true;
        const question q = asked(api, r);
        CHECK((q.output_tokens == 4000) == apis[i].forces_lengths);
        CHECK(q.stops != apis[i].forces_lengths);
        r.force_length = false;
        const question free = asked(api, r);
        CHECK(free.stops);
        CHECK(free.output_tokens >= 16);
        CHECK(free.output_tokens < 16 + 256);
        CHECK(asked(api, r).output_tokens == free.output_tokens);
    }
}

TEST_CASE("all that was said counts as prompt") {
    request_spec r = spec(5, 8);
    r.system_prompt = "be brief";
    r.history = {{"user", "Hello you"}, {"assistant", "Hi"}};
    for (const api_format api : {openai_chat, ollama, anthropic, tgi, triton, llama_cpp, sglang,
                                 openai_responses})
        CHECK(asked(api, r).prompt_tokens == 10);
    CHECK(prompt_of(json(R"({"messages":[{"content":[{"type":"text","text":"a b"},
                             {"type":"image_url"},{"type":"text","text":"c"}]}]})")) ==
          "a b c ");
    CHECK(prompt_of(json(R"({"prompt":[7,8,9]})")) == "7 8 9 ");
    CHECK(prompt_of(json(R"({"prompt":{},"messages":{}})")).empty());
    CHECK(asked(openai_completions, R"({"prompt":""})").prompt_tokens == 1);
}

TEST_CASE("words stand between white space") {
    CHECK(words_of("").empty());
    CHECK(words_of(" \n").empty());
    CHECK(words_of("\ta  b\r\nc") == vector<std::string_view>{"a", "b", "c"});
}

TEST_CASE("prompts share the blocks that they begin with") {
    const auto blocks = [](const std::string& prompt) {
        return blocks_of(asked(openai_completions, R"({"prompt":")" + prompt + R"("})").hashes, 16);
    };
    CHECK(blocks(words(15)).empty());
    const auto one = blocks(words(16)), two = blocks(words(47)), three = blocks(words(48));
    REQUIRE(one.size() == 1);
    REQUIRE(two.size() == 2);
    REQUIRE(three.size() == 3);
    CHECK(one[0] == two[0]);
    CHECK(two[1] == three[1]);
    CHECK(two[0] != two[1]);
    const auto other = blocks("x " + words(47));
    REQUIRE(other.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(other[i] != three[i]);

    const auto hashes = asked(openai_completions, R"({"prompt":")" + words(48) + R"("})").hashes;
    CHECK(blocks_of(hashes, 32) == vector<std::uint64_t>{hashes[31]});
    CHECK(blocks_of(hashes, 1) == hashes);
}

TEST_CASE("without a length an answer has at most 128 tokens, and one of nothing is none") {
    CHECK(asked(llama_cpp, R"({"prompt":"a","ignore_eos":true})").output_tokens == 128);
    CHECK(asked(llama_cpp, R"({"prompt":"a","ignore_eos":true,"n_predict":0})").output_tokens ==
          128);
    CHECK(asked(openai_chat, R"({"max_completion_tokens":3})").output_tokens == 3);
    CHECK(asked(openai_chat, R"({"max_tokens":3,"max_completion_tokens":5})").output_tokens == 5);
    CHECK(asked(openai_chat, R"({"max_tokens":"3","ignore_eos":true})").output_tokens == 128);
}

TEST_CASE("streams are asked for in the body, or by the path") {
    CHECK_FALSE(asked(openai_chat, "{}").streamed);
    CHECK(asked(openai_chat, R"({"stream":true})").streamed);
    CHECK_FALSE(asked(openai_chat, R"({"stream":1})").streamed);
    CHECK(asked(ollama, "{}").streamed);
    CHECK_FALSE(asked(ollama, R"({"stream":false})").streamed);
    CHECK(asked(tgi, "{}", "/generate_stream").streamed);
    CHECK_FALSE(asked(tgi, R"({"stream":true})", "/generate").streamed);
    CHECK(asked(plain_text, R"({"stream":false})").streamed);
}

TEST_CASE("usage at the end of a stream is asked for") {
    CHECK_FALSE(asked(openai_chat, R"({"stream_options":{}})").wants_usage);
    CHECK(asked(openai_chat, R"({"stream_options":{"include_usage":true}})").wants_usage);
    CHECK_FALSE(asked(triton, R"({"stream_options":{"include_usage":true}})").wants_usage);
    CHECK(asked(triton, R"({"return_num_output_tokens":true})").wants_usage);
}

TEST_CASE("paths name their API, and three that share one are told apart by their requests") {
    CHECK_FALSE(api_at("/"));
    CHECK_FALSE(api_at("/v1/chat"));
    CHECK_FALSE(api_at("/tokenize"));
    CHECK(*api_at("/v2/models/any/generate") == triton);
    const maybe<api_format> shared = api_at("/generate");
    REQUIRE(shared);
    CHECK(api_of(*shared, json(R"({"inputs":"a"})")) == tgi);
    CHECK(api_of(*shared, json(R"({"text":"a"})")) == sglang);
    CHECK(api_of(*shared, json(R"({"prompt":"a"})")) == plain_text);
    CHECK(api_of(ollama, json(R"({"inputs":"a"})")) == ollama);
}
