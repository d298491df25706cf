// What the simulated server says, read back by the client's own reader.
#include "extensions/simulated/core/answers.hpp"
#include "extensions/simulated/core/replies.hpp"

#include "core/answers/answer_reader.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

answer_facts facts_of(api_format api, bool streamed, int tokens) {
    answer_facts f;
    f.asked.api = api;
    f.asked.streamed = streamed;
    f.asked.wants_usage = true;
    f.asked.prompt_tokens = 20;
    f.asked.output_tokens = tokens;
    f.number = 1234567890123;
    return f;
}
/// As the engine gives them: one token with the prompt, then some a step.
vector<engine_model::emission> emissions(int tokens, int a_step) {
    vector<engine_model::emission> all{{5, 1, tokens == 1, 16}};
    for (int n = 1; n < tokens; n += a_step)
        all.push_back({5, std::min(a_step, tokens - n), n + a_step >= tokens, 16});
    return all;
}
struct given {
    std::string bytes{}, words{};
    vector<std::string> parts{};  // of a stream, as they are written
};
/// The answer as the host writes it.
given answer_of(answer_facts f, int a_step = 1) {
    given a;
    const auto write = [&](const std::string& part) {
        a.bytes += part;
        a.parts.push_back(part);
    };
    for (const engine_model::emission& e : emissions(f.asked.output_tokens, a_step)) {
        const std::string words = next_words(f, e);
        a.words += words;
        add_words(f, words, e);
        if (!f.asked.streamed) continue;
        if (a.parts.empty()) {
            write(stream_head(f.asked.api));
            if (const std::string first = answer_opening(f); !first.empty()) write(chunk_of(first));
        }
        write(chunk_of(answer_piece(f, words, e)));
    }
    if (!f.asked.streamed) {
        write(reply_bytes({200, "application/json", whole_answer(f)}));
        return a;
    }
    if (const std::string last = answer_ending(f); !last.empty()) write(chunk_of(last));
    write(last_chunk);
    return a;
}
struct heard_answer {
    record r{};
    std::string words{};
    bool whole = false;
};
heard_answer heard(const answer_facts& f, const given& a) {
    answer_reader reader;
    reader.reset(traits_of(f.asked.api), {.is_streamed = f.asked.streamed, .is_kept = true});
    long long now = 0;
    for (const std::string& part : a.parts) reader.feed(part, now += 1'000'000);
    heard_answer h;
    reader.timeline().write_to(h.r);
    h.words = reader.words();
    h.whole = reader.finished() && reader.use() == socket_use::kept;
    return h;
}
template <class F>
void for_each_api(F&& f) {
    for (std::size_t i = 0; i < std::size(apis); ++i) {
        CAPTURE(apis[i].name);
        f(static_cast<api_format>(i), apis[i]);
    }
}
template <class F>
void for_each_generating_api(F&& f) {
    for_each_api([&](api_format api, const api_traits& traits) {
        if (traits.generates) f(api);
    });
}
void check_answer(const answer_facts& f, const given& a, int events, bool reports_usage) {
    const heard_answer h = heard(f, a);
    CAPTURE(a.bytes);
    CAPTURE(std::string(h.r.error));
    CHECK(h.whole);
    CHECK(h.r.status == request_status::ok);
    CHECK(h.r.events == events);
    CHECK(h.words == a.words);
    CHECK(h.r.token_source == (reports_usage ? token_origin::usage : token_origin::events));
    CHECK(h.r.output_tokens == (reports_usage ? f.asked.output_tokens : events));
    CHECK(h.r.prompt_tokens == (reports_usage ? f.asked.prompt_tokens : 0));
    const bool tells_reason = !traits_of(f.asked.api).ends_with_body;
    CHECK(std::string(h.r.finish_reason) ==
          (tells_reason ? f.asked.stops ? "stop" : "length" : ""));
}

}  // namespace

TEST_CASE("a stream of every API gives its words, its tokens and its end back") {
    for_each_generating_api([](api_format api) {
        for (const int tokens : {1, 2, 8})
            for (const bool stops : {false, true}) {
                answer_facts f = facts_of(api, true, tokens);
                f.asked.stops = stops;
                check_answer(f, answer_of(f), tokens, api != plain_text);
            }
    });
}

TEST_CASE("several tokens a step are one event, in TGI's one each") {
    for_each_generating_api([](api_format api) {
        answer_facts f = facts_of(api, true, 8);
        check_answer(f, answer_of(f, 3), api == tgi ? 8 : 4, api != plain_text);
    });
}

TEST_CASE("an answer in one piece gives the same back") {
    for_each_generating_api([](api_format api) {
        if (api == plain_text) return;  // has only streams
        for (const bool stops : {false, true}) {
            answer_facts f = facts_of(api, false, 8);
            f.asked.stops = stops;
            check_answer(f, answer_of(f), 1, true);
        }
    });
}

TEST_CASE("OpenAI's and Triton's streams tell usage only where it was asked for") {
    for_each_generating_api([](api_format api) {
        answer_facts f = facts_of(api, true, 4);
        f.asked.wants_usage = false;
        const bool asked = api == openai_chat || api == openai_completions || api == triton;
        check_answer(f, answer_of(f), 4, !asked && api != plain_text);
    });
}

TEST_CASE("what scores answers in one piece, with no tokens") {
    for (const api_format api : {api_format::openai_embeddings, api_format::rerank, api_format::score,
                                 api_format::sglang_score}) {
        answer_facts f = facts_of(api, false, 1);
        f.asked.documents = 3;
        const heard_answer h = heard(f, answer_of(f));
        CHECK(h.r.status == request_status::ok);
        CHECK(h.r.events == 1);
        CHECK(h.r.output_tokens == 0);
        CHECK(h.r.token_source == token_origin::usage);
        CHECK(h.r.prompt_tokens == 20);
    }
}

TEST_CASE("the first tokens of a reasoning model are thought, where the API tells them apart") {
    for_each_generating_api([](api_format api) {
        answer_facts f = facts_of(api, true, 8);
        f.asked.reasoning_tokens = 3;
        const heard_answer h = heard(f, answer_of(f));
        CHECK(h.r.status == request_status::ok);
        CHECK(h.r.events == 8);
        const bool significant =
            api == openai_chat || api == ollama || api == ollama_generate || api == anthropic ||
            api == openai_responses;
        // A millisecond a part, and the fourth token answers.
        CHECK(h.r.first_answer_ns - h.r.first_token_ns == (significant ? 3'000'000 : 0));
        CHECK(h.r.reasoning_tokens ==
              (api == openai_chat || api == openai_completions || api == openai_responses ? 3
                                                                                          : -1));
    });
}

TEST_CASE("cached tokens are told where OpenAI tells them") {
    for (const api_format api : {openai_completions, openai_responses})
        for (const bool streamed : {true, false}) {
            const answer_facts f = facts_of(api, streamed, 3);
            CHECK(heard(f, answer_of(f)).r.cached_tokens == 16);
        }
}

TEST_CASE("words follow from the request's id and the tokens before") {
    answer_facts f;
    CHECK(next_words(f, {0, 3, false, 0}) == " the of and");
    CHECK(next_words(f, {1, 2, false, 0}) == " on that");
    f.output_tokens = 63;
    CHECK(next_words(f, {0, 2, false, 0}) == " his the");
}

TEST_CASE("an answer byte by byte") {
    answer_facts f = facts_of(openai_completions, true, 1);
    const std::string same =
        "data: {\"id\":\"cmpl-1234567890123\",\"object\":\"text_completion\","
        "\"created\":1700000000,\"model\":\"simulated\",\"choices\":[";
    CHECK(answer_of(f).parts ==
          vector<std::string>{
              "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
              "Transfer-Encoding: chunked\r\n\r\n",
              "a3\r\n" + same +
                  "{\"index\":0,\"text\":\" page\",\"finish_reason\":null}]}\n\n\r\n",
              "196\r\n" + same +
                  "{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n" + same +
                  "],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":1,\"total_tokens\":21,"
                  "\"prompt_tokens_details\":{\"cached_tokens\":16}}}\n\ndata: [DONE]\n\n\r\n",
              "0\r\n\r\n"});
    f = facts_of(ollama, false, 2);
    CHECK(answer_of(f).bytes ==
          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 182\r\n\r\n"
          "{\"model\":\"simulated\",\"created_at\":\"2024-01-01T00:00:00Z\","
          "\"message\":{\"role\":\"assistant\",\"content\":\" page my\"},\"done\":true,"
          "\"done_reason\":\"length\",\"prompt_eval_count\":20,\"eval_count\":2}");
}

TEST_CASE("an error is told in each API's own shape") {
    for_each_api([](api_format api, const api_traits& traits) {
        const reply r = refusal(api, 429, "the queue is full", "rate_limit");
        CHECK(reply_bytes(r).find("\r\nRetry-After: 1\r\n\r\n") != std::string::npos);
        answer_reader reader;
        reader.reset(traits);
        reader.feed(reply_bytes(r), 1);
        CHECK(reader.finished());
        record heard;
        reader.timeline().write_to(heard);
        CHECK(heard.status == request_status::http);
        CHECK(std::string(heard.error) == "HTTP 429: the queue is full (Retry-After: 1)");
    });
    CHECK(refusal(plain_text, 400, "why", "code").body == "why");
    CHECK(refusal(tgi, 400, "why", "code").body == R"({"error":"why"})");
    CHECK(refusal(anthropic, 400, "why", "code").body ==
          R"({"type":"error","error":{"message":"why","type":"code","code":"code"}})");
}

TEST_CASE("an answer fills the blocks that the next turn's prompt begins with") {
    const auto asked = [](const std::string& prompt) {
        picojson::value body;
        REQUIRE(parse_json(R"({"temperature":0,"prompt":")" + prompt + R"("})", body));
        return question_of(openai_completions, "", body);
    };
    const std::string prompt = "one two three four five";
    for (const int a_step : {1, 3}) {
        answer_facts f;
        f.asked = asked(prompt);
        f.asked.output_tokens = 11;
        std::string said = prompt;
        vector<std::uint64_t> filled;
        for (const engine_model::emission& e : emissions(11, a_step)) {
            const std::string words = next_words(f, e);
            for (const std::uint64_t block : filled_blocks(f, words, 4)) filled.push_back(block);
            add_words(f, words, e);
            said += words;
        }
        // Five tokens and eleven: the fourth block ends with the last token, which is not computed.
        const vector<std::uint64_t> all = blocks_of(asked(said).hashes, 4);
        REQUIRE(all.size() == 4);
        CHECK(filled == vector<std::uint64_t>{all[1], all[2]});
    }
}

TEST_CASE("the server tells about itself") {
    const engine_model m(engine{});
    for_each_api([&](api_format, const api_traits& traits) {
        CHECK(about_server(traits.ready, m, tallies()).body == "{}");
        if (*traits.models == '\0') return;
        const reply r = about_server(traits.models, m, tallies());
        CHECK(r.status == 200);
        CHECK(r.body.find("\"simulated\"") != std::string::npos);
        CHECK(r.body.find(traits.models_in) != std::string::npos);
        CHECK(r.body.find(traits.model_as) != std::string::npos);
    });
    CHECK(about_server("/metrics", m, tallies()).body == vllm_page(m, tallies()));
    CHECK(about_server("/other", m, tallies()).status == 404);
    picojson::value body;
    REQUIRE(parse_json(R"({"prompt":"a b c"})", body));
    CHECK(counted_tokens(body, 4096).body.starts_with(R"({"count":3,"max_model_len":4096,"tokens":[)"));
    CHECK(reply_bytes(error_reply(400, "no")) ==
          "HTTP/1.1 400 Error\r\nContent-Type: application/json\r\nContent-Length: 26\r\n\r\n"
          R"({"error":{"message":"no"}})");
}

TEST_CASE("one profile at a time is taken") {
    simulated_profiler p;
    CHECK_FALSE(is_of_profiler("/profile"));
    CHECK(profiler_reply("/stop_profile", p).status == 400);
    CHECK(profiler_reply("/start_profile", p).body == "{}");
    CHECK(profiler_reply("/start_profile", p).status == 400);
    CHECK(profiler_reply("/stop_profile", p).status == 200);
    CHECK(profiler_reply("/start_profile", p).status == 200);
}
