// APIs: answers as each server sends them, byte by byte through the whole reader, and the
// requests that ask for them.
#include "llmbench.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/planning/planning.hpp"
#include "extensions/embeddings/core/inputs.hpp"
#include "support/openai_events.hpp"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

struct heard_answer {
    record r{};
    std::string words{};
};

/// The answer fed in pieces of n bytes, a millisecond apart; it begins at 1 ms.
heard_answer read_bytes(api_format api, const std::string& bytes, std::size_t n, bool streamed,
                        bool closes, const std::string& error = "") {
    answer_reader reader;
    reader.reset(traits_of(api), {.is_streamed = streamed, .is_kept = true});
    long long now = 0;
    for (std::size_t at = 0; at < bytes.size() && !reader.finished(); at += n)
        reader.feed(std::string_view(bytes).substr(at, n), now += 1'000'000);
    if (closes && !reader.finished()) reader.end_of_input(now += 1'000'000, error);
    heard_answer a;
    reader.timeline().write_to(a.r);
    a.words = reader.words();
    return a;
}
/// However it is cut, an answer says the same.
heard_answer heard(api_format api, const std::string& type, const std::string& body,
                   bool streamed = true, int status = 200) {
    const std::string bytes = "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: " + type +
                              "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                              body;
    const heard_answer whole = read_bytes(api, bytes, bytes.size(), streamed, false);
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{61}}) {
        const heard_answer cut = read_bytes(api, bytes, n, streamed, false);
        CAPTURE(n);
        CHECK(cut.r.status == whole.r.status);
        CHECK(cut.r.output_tokens == whole.r.output_tokens);
        if (traits_of(api).framed != framing::pieces) CHECK(cut.r.events == whole.r.events);
        CHECK(std::string(cut.r.error) == std::string(whole.r.error));
        CHECK(cut.words == whole.words);
    }
    return whole;
}
heard_answer heard_events(api_format api, const std::string& body) {
    return heard(api, "text/event-stream; charset=utf-8", body);
}
heard_answer heard_lines(api_format api, const std::string& body) {
    return heard(api, "application/x-ndjson", body);
}
heard_answer heard_document(api_format api, const std::string& body) {
    return heard(api, "application/json", body, false);
}

/// An event of each of these data.
heard_answer heard_data(api_format api, const std::vector<std::string>& all) {
    std::string body;
    for (const std::string& data : all) body += "data: " + data + "\n\n";
    return heard_events(api, body);
}

struct expected {
    int events, tokens, first, prompt;
    const char* finish;
    const char* words;
};
void check_ok(const heard_answer& a, const expected& x) {
    CAPTURE(std::string(a.r.error));
    CHECK(a.r.status == request_status::ok);
    CHECK(a.r.events == x.events);
    CHECK(a.r.output_tokens == x.tokens);
    CHECK(a.r.first_event_tokens == x.first);
    CHECK(a.r.prompt_tokens == x.prompt);
    CHECK(std::string(a.r.finish_reason) == x.finish);
    CHECK(a.words == x.words);
}
void check_failed(const heard_answer& a, request_status status, const char* why) {
    CHECK(a.r.status == status);
    CAPTURE(std::string(a.r.error));
    CHECK(std::string(a.r.error).find(why) != std::string::npos);
}

picojson::value body_of(api_format api, const request_spec& r) {
    picojson::value v;
    const std::string body = request_body(traits_of(api), "the/model", r);
    CAPTURE(body);
    REQUIRE(parse_json(body, v));
    return v;
}
request_spec asked() {
    request_spec r;
    r.prompt = "How far?";
    r.system_prompt = "Be brief";
    r.history = {{"user", "Hello"}, {"assistant", "Hi"}};
    r.max_tokens = 64;
    r.force_length = true;
    r.temperature = 0.5;
    return r;
}
std::string at(const picojson::value& v, std::initializer_list<const char*> path) {
    const picojson::value* p = &v;
    for (const char* name : path)
        if (p) p = member(*p, name);
    return p ? p->serialize() : "none";
}
const char* const all_turns = "\"Be brief\\nHello\\nHi\\nHow far?\"";

}  // namespace

TEST_CASE("an answer names its model, in any API that does, and a cache its hits") {
    const auto heard_with = [](api_format api, const std::string& fields, const std::string& body) {
        answer_reader reader;
        reader.reset(traits_of(api), {});
        const bool lines = traits_of(api).framed == framing::lines;
        reader.feed("HTTP/1.1 200 OK\r\nContent-Type: " +
                        std::string(lines ? "application/x-ndjson" : "text/event-stream") + "\r\n" +
                        fields + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body,
                    1'000'000);
        return std::pair(reader.model(), reader.is_from_cache());
    };
    const auto event = [](const std::string& json) { return "data: " + json + "\n\n"; };
    const std::string chat =
        R"({"model":"big","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]})";
    CHECK(heard_with(openai_chat, "", event(chat)).first == "big");
    // Another answer's events may be like these but for the model; its end is not.
    CHECK(heard_with(openai_completions, "",
                     event(R"({"model":"a","choices":[{"text":"Hi","finish_reason":null}]})")).first == "a");
    CHECK(heard_with(openai_completions, "",
                     event(R"({"model":"b","choices":[{"text":"Ho","finish_reason":null}]})") +
                         event(R"({"model":"b","choices":[{"text":"","finish_reason":"stop"}]})"))
              .first == "b");
    CHECK(heard_with(anthropic, "", event(R"({"type":"message_start","message":{"model":"c"}})")).first == "c");
    CHECK(heard_with(openai_responses, "", event(R"({"type":"response.created","response":{"model":"d"}})"))
              .first == "d");
    CHECK(heard_with(ollama, "", R"({"model":"e","message":{"content":"Hi"},"done":false})" "\n").first == "e");
    CHECK(heard_with(triton, "", event(R"({"model_name":"f","text_output":"Hi"})")).first == "f");
    CHECK(heard_with(openai_chat, "", event(R"({"choices":[]})")).first == "");
    for (const char* hit : {"X-Cache-Status: Hit", "x-portkey-cache-status: SEMANTIC HIT",
                            "cf-aig-cache-status: HIT", "x-litellm-cache-key: 5f1c", "Helicone-Cache: HIT",
                            "X-Cache: Hit from cloudfront", "X-Cache-Status: STALE"}) {
        CAPTURE(std::string(hit));
        CHECK(heard_with(openai_chat, std::string(hit) + "\r\n", event(chat)).second);
    }
    for (const char* none : {"X-Cache-Status: Miss", "x-portkey-cache-status: SEMANTIC MISS",
                             "cf-aig-cache-status: MISS", "x-litellm-cache-key: None", "X-Cache-Status: Bypass",
                             "X-Request-Id: hit", "x-portkey-cache-status: DISABLED"}) {
        CAPTURE(std::string(none));
        CHECK_FALSE(heard_with(openai_chat, std::string(none) + "\r\n", event(chat)).second);
    }
}

// What real servers sent is in tests/virtual/test_virtual_real.cpp: here is what they did not send then.

// ---- Text Generation Inference -----------------------------------------------------------------

namespace {
std::string tgi_token(const std::string& text, const std::string& details = "null", bool is_special = false) {
    return R"({"token":{"id":1,"text":")" + text + R"(","logprob":-0.4,"special":)" +
           (is_special ? "true" : "false") + R"(},"generated_text":null,"details":)" + details + "}";
}
}  // namespace

TEST_CASE("TGI: a token an event, the last one tells of all, special tokens are no output") {
    check_ok(heard_data(tgi, {tgi_token(" To"), tgi_token(" the"), tgi_token(" moon"),
                              tgi_token("</s>", R"({"finish_reason":"eos_token","generated_tokens":4,"input_length":9})",
                                        true)}),
             {3, 4, 1, 9, "stop", " To the moon"});
    // An older one has keep-alives, and no length of the input.
    check_ok(heard_events(tgi, ":\n\ndata:" + tgi_token("One") + "\n\ndata:" + tgi_token("") + "\n\ndata:" +
                                   tgi_token(" two", R"({"finish_reason":"length","generated_tokens":3})") + "\n\n"),
             {2, 3, 1, 0, "length", "One two"});
    check_failed(heard_data(tgi, {tgi_token("One")}), request_status::truncated, "");
    check_failed(heard_data(tgi, {tgi_token("One"), R"({"error":"CUDA out of memory","error_type":"generation"})"}),
                 request_status::server, "CUDA out of memory");
}

TEST_CASE("TGI: an answer in one piece") {
    check_ok(heard_document(tgi, R"({"generated_text":" To the moon","details":{"finish_reason":)"
                                 R"("length","generated_tokens":3,"seed":null,"prefill":[],)"
                                 R"("tokens":[{"id":311,"text":" To","logprob":-0.4,"special":false}]}})"),
             {1, 3, 3, 0, "length", " To the moon"});
    check_failed(heard_document(tgi, R"({"generated_text":" To the moon"})"),
                 request_status::protocol, "number of tokens");
}

TEST_CASE("TGI: its request") {
    const picojson::value b = body_of(tgi, asked());
    CHECK(at(b, {"inputs"}) == all_turns);
    CHECK(at(b, {"parameters", "max_new_tokens"}) == "64");
    CHECK(at(b, {"parameters", "details"}) == "true");
    CHECK(at(b, {"parameters", "temperature"}) == "0.5");
    CHECK(at(b, {"ignore_eos"}) == "none");
    request_spec greedy;
    greedy.temperature = 0;  // which it would refuse
    CHECK(at(body_of(tgi, greedy), {"parameters"}) == R"({"details":true,"do_sample":false})");
}

TEST_CASE("TGI: an image stands before the question, as Markdown has it") {
    request_spec r;
    r.prompt = "What is this?";
    r.image = "data:image/png;base64,AAAA";
    CHECK(at(body_of(tgi, r), {"inputs"}) ==
          R"("![](data:image\/png;base64,AAAA)What is this?")");
}

// ---- Triton ------------------------------------------------------------------------------------

TEST_CASE("Triton: vLLM's backend, without counts and with them") {
    const auto piece = [](const std::string& text, const std::string& counts = "") {
        return R"({"model_name":"m","model_version":"1",)" + counts + R"("text_output":")" + text + "\"}";
    };
    check_ok(heard_data(triton, {piece(" Far"), piece(" away"), piece("")}), {2, 2, 1, 0, "", " Far away"});
    const std::string input = R"("num_input_tokens":11,"num_output_tokens":)";
    check_ok(heard_data(triton, {piece(" Far", R"("finish_reason":"None",)" + input + "2,"),
                                 piece(" away", R"("finish_reason":"None",)" + input + "1,"),
                                 piece("", R"("finish_reason":"length",)" + input + "1,")}),
             {3, 4, 2, 11, "length", " Far away"});
}

TEST_CASE("Triton: an error inside the stream, and an answer that is cut") {
    check_failed(heard_events(triton,
R"(data: {"model_name":"m","model_version":"1","text_output":" Far"}

data: {"error":"Error generating stream: engine is dead"}

)"), request_status::server, "engine is dead");
    const std::string chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                "Transfer-Encoding: chunked\r\n\r\n1e\r\n"
                                "data: {\"text_output\":\" Far\"}\n\n\r\n";
    CHECK(read_bytes(triton, chunked, 9, true, true).r.status == request_status::truncated);
    CHECK(read_bytes(triton, chunked + "0\r\n\r\n", 9, true, true).r.status == request_status::ok);
    const std::string begun = "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                              "data: {\"text_output\":\" Far\"}\n\n";
    CHECK(read_bytes(triton, begun, 9, true, true).r.status == request_status::ok);
    CHECK(read_bytes(triton, begun, 9, true, true, "Connection reset by peer").r.status ==
          request_status::truncated);
    check_failed(heard(triton, "application/json",
                       R"({"error":"failed to find model 'x'"})", true, 400),
                 request_status::http, "failed to find model");
}

TEST_CASE("Triton: its request, and an answer in one piece") {
    const picojson::value b = body_of(triton, asked());
    CHECK(at(b, {"text_input"}) == all_turns);
    CHECK(at(b, {"stream"}) == "true");
    CHECK(at(b, {"max_tokens"}) == "64");
    CHECK(at(b, {"ignore_eos"}) == "true");
    check_ok(heard_document(triton, R"({"model_name":"m","model_version":"1","num_input_tokens":4,)"
                                    R"("num_output_tokens":9,"text_output":"It is"})"),
             {1, 9, 9, 4, "", "It is"});
}

// ---- Ollama ------------------------------------------------------------------------------------

TEST_CASE("Ollama: thinking and tool calls are output, and only words go on into the next turn") {
    check_ok(heard_lines(ollama,
R"({"model":"m","message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}
{"model":"m","message":{"role":"assistant","content":"Yes"},"done":false}
{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}
{"model":"m","message":{"role":"assistant","content":"","tool_calls":[]},"done":false}
{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"length","eval_count":7,"prompt_eval_count":5})"),
             {3, 7, 1, 5, "length", "Yes"});
}

TEST_CASE("Ollama: what is generated, without its prompt's count, which was cached") {
    check_ok(heard_lines(ollama_generate, R"({"model":"m","response":"The","done":false})" "\n"
                                          R"({"model":"m","response":" sky","done":false})" "\n"
                                          R"({"response":"","done":true,"done_reason":"stop","eval_count":2})" "\n"),
             {2, 2, 1, 0, "stop", "The sky"});
}

TEST_CASE("Ollama: errors, an answer that ends early, and a page that is none") {
    check_failed(heard_lines(ollama,
R"({"model":"m","message":{"role":"assistant","content":"It"},"done":false}
{"error":"an error was encountered while running the model: unexpected EOF"}
)"), request_status::server, "unexpected EOF");
    check_failed(heard_lines(ollama, R"({"model":"m","message":{"content":"It"},"done":false})"
                                     "\n"), request_status::truncated, "");
    check_failed(heard(ollama, "application/json; charset=utf-8",
                       R"({"error":"model 'x' not found"})", true, 404),
                 request_status::http, "model 'x' not found");
    check_failed(heard(ollama, "text/html", "<html>Sign in</html>"), request_status::protocol,
                 "not a stream of JSON lines");
    check_failed(heard_lines(ollama, "{\"done\":false}\nnothing\n"), request_status::protocol,
                 "not a JSON object");
}

TEST_CASE("Ollama: an answer in one piece, and the requests") {
    check_ok(heard_document(ollama, R"({"model":"m","message":{"role":"assistant","content":"It is"},)"
                                    R"("done":true,"done_reason":"stop","prompt_eval_count":26,"eval_count":3})"),
             {1, 3, 3, 26, "stop", "It is"});
    const picojson::value chat = body_of(ollama, asked());
    CHECK(at(chat, {"model"}) == "\"the\\/model\"");
    CHECK(chat.get("messages").get<picojson::array>().size() == 4);
    CHECK(at(chat, {"options"}) == R"({"num_predict":64,"temperature":0.5})");
    const picojson::value generate = body_of(ollama_generate, asked());
    CHECK(at(generate, {"prompt"}) == "\"Hello\\nHi\\nHow far?\"");
    CHECK(at(generate, {"system"}) == "\"Be brief\"");
    CHECK(at(generate, {"stream"}) == "true");
}

// ---- llama.cpp ---------------------------------------------------------------------------------

TEST_CASE("llama.cpp: running counts, and the last event stops, with a token without text") {
    check_ok(heard_data(llama_cpp,
                        {R"({"content":"It","tokens":[1102],"stop":false,"tokens_predicted":2,"tokens_evaluated":7})",
                         R"({"content":" is","tokens":[374],"stop":false,"tokens_predicted":3,"tokens_evaluated":7})",
                         R"({"content":"","tokens":[],"stop":true,"tokens_predicted":4,"tokens_evaluated":7,"prompt":"?",)"
                         R"("stop_type":"limit","timings":{"cache_n":3,"predicted_n":4}})"}),
             {3, 4, 2, 7, "length", "It is"});
    // An older server's words for the same.
    check_ok(heard_data(llama_cpp, {R"({"content":"It","slot_id":0,"stop":false})",
                                    R"({"content":"","stop":true,"stopped_eos":true,"stopped_limit":false,)"
                                    R"("tokens_evaluated":7,"tokens_predicted":2})"}),
             {1, 2, 1, 7, "stop", "It"});
}

TEST_CASE("llama.cpp: an error, an answer in one piece, its request") {
    check_failed(heard_events(llama_cpp,
R"(data: {"error":{"code":500,"message":"context shift is disabled","type":"server_error"}}

)"), request_status::server, "context shift is disabled");
    check_ok(heard_document(llama_cpp, R"({"content":"It is","stop":true,"stop_type":"eos",)"
                                       R"("tokens_predicted":3,"tokens_evaluated":7})"),
             {1, 3, 3, 7, "stop", "It is"});
    const picojson::value b = body_of(llama_cpp, asked());
    CHECK(at(b, {"prompt"}) == all_turns);
    CHECK(at(b, {"n_predict"}) == "64");
    CHECK(at(b, {"ignore_eos"}) == "true");
    CHECK(at(b, {"model"}) == "none");
}

// ---- SGLang ------------------------------------------------------------------------------------

TEST_CASE("SGLang: incremental output, also where a word repeats") {
    check_ok(heard_events(sglang,
R"(data: {"text":" ho","meta_info":{"id":"a1","finish_reason":null,"prompt_tokens":5,"completion_tokens":1}}

data: {"text":" so","meta_info":{"id":"a1","finish_reason":null,"prompt_tokens":5,"completion_tokens":2}}

data: {"text":" so","meta_info":{"id":"a1","finish_reason":{"type":"stop","matched":2},"prompt_tokens":5,"completion_tokens":3}}

data: [DONE]

)"), {3, 3, 1, 5, "stop", " ho so so"});
}

TEST_CASE("SGLang: incremental output whose first pieces are equal") {
    const auto event = [](const char* text, const char* ids, int tokens) {
        return std::string("data: {\"text\":\"") + text + "\",\"output_ids\":" + ids +
               ",\"meta_info\":{\"finish_reason\":" +
               (tokens == 4 ? R"({"type":"length","length":4})" : "null") +
               ",\"prompt_tokens\":5,\"completion_tokens\":" + std::to_string(tokens) + "}}\n\n";
    };
    const std::string end = "data: [DONE]\n\n";
    check_ok(heard_events(sglang, event(" ha", "[7]", 1) + event(" ha", "[7]", 2) +
                                      event(" ha", "[7]", 3) + event("!", "[9]", 4) + end),
             {4, 4, 1, 5, "length", " ha ha ha!"});
    // All text so far: a token without text, whose list is longer or, as older ones have it, other.
    check_ok(heard_events(sglang, event(" ha", "[7]", 1) + event(" ha", "[7,2]", 2) +
                                      event(" ha", "[7,2,2]", 3) + event(" ha!", "[7,2,2,9]", 4) +
                                      end),
             {4, 4, 1, 5, "length", " ha!"});
    check_ok(heard_events(sglang, event(" ha", "[7]", 1) + event(" ha", "[2]", 2) +
                                      event(" ha ho", "[8]", 3) + event(" ha ho!", "[9]", 4) + end),
             {4, 4, 1, 5, "length", " ha ho!"});
}

TEST_CASE("SGLang: an abort inside the stream") {
    check_failed(heard_data(sglang, {R"({"text":" It","meta_info":{"finish_reason":null,"completion_tokens":1}})",
                                     R"({"text":" It","meta_info":{"finish_reason":{"type":"abort",)"
                                     R"("message":"out of KV cache","status_code":503},"completion_tokens":1}})"}),
                 request_status::server, "out of KV cache");
}

TEST_CASE("SGLang: an answer in one piece, and its request with fields of the user's own") {
    check_ok(heard_document(sglang, R"({"text":" It is","meta_info":{"id":"a","finish_reason":)"
                                    R"({"type":"length","length":4},"prompt_tokens":5,"completion_tokens":4}})"),
             {1, 4, 4, 5, "length", " It is"});
    request_options o;
    o.extra_body = R"({"sampling_params":{"top_p":0.25,"json_schema":"{}"},"return_logprob":false,)"
                   R"("options":{"a":1}})";
    request_spec r = asked();
    add_extra_body(r, o);
    const picojson::value b = body_of(sglang, r);
    CHECK(at(b, {"text"}) == all_turns);
    CHECK(at(b, {"sampling_params"}) ==
          R"({"ignore_eos":true,"json_schema":"{}","max_new_tokens":64,"temperature":0.5,"top_p":0.25})");
    CHECK(at(b, {"return_logprob"}) == "false");
    CHECK(at(b, {"options"}) == R"({"a":1})");
    // An object that only holds the user's fields, and one that is empty.
    request_spec bare;
    bare.extra_objects = {{"sampling_params", ",\"top_p\":1"}, {"parameters", ""}};
    CHECK(at(body_of(sglang, bare), {"sampling_params"}) == R"({"top_p":1})");
    CHECK(at(body_of(sglang, bare), {"parameters"}) == "{}");
}

TEST_CASE("counts that no answer has do not overflow") {
    const std::string billion = "1000000000";
    const heard_answer chat = heard_events(openai_chat,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n"
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":" + billion +
        "}}\n\ndata: [DONE]\n\n");
    CHECK(chat.r.output_tokens == 1000000000);
    CHECK(usage_is_over_content(chat.r));
    CHECK_FALSE(usage_is_under_events(chat.r));
    std::string three;
    for (int i = 0; i < 3; ++i)
        three += "data: {\"text_output\":\"a\",\"num_output_tokens\":" + billion + "}\n\n";
    CHECK(heard_events(triton, three).r.output_tokens == 1000000000);
    const heard_answer message = heard_document(anthropic,
        "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"stop_reason\":\"end_turn\","
        "\"usage\":{\"input_tokens\":" + billion + ",\"output_tokens\":1,\"cache_read_input_tokens\":" +
        billion + ",\"cache_creation_input_tokens\":" + billion + "}}");
    CHECK(message.r.prompt_tokens == 1000000000);
}

TEST_CASE("an event of a read without the kernel's time is not after the next one") {
    answer_reader reader;
    reader.reset(traits_of(plain_text), {.is_kept = true});
    reader.feed("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nOne", 5'000'000);
    reader.feed(" two", 3'000'000);
    reader.feed(" three", 9'000'000);
    reader.end_of_input(8'000'000);
    record r;
    reader.timeline().write_to(r);
    CHECK(r.first_token_ns == 5'000'000);
    CHECK(r.second_token_ns == 5'000'000);
    CHECK(r.last_token_ns == 9'000'000);
    CHECK(r.end_ns == 9'000'000);
}

// ---- plain text --------------------------------------------------------------------------------

TEST_CASE("plain text: every piece of the body is an event, and its end is the end") {
    const std::string chunks = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n"
                               "3\r\nOne\r\n4\r\n two\r\n6\r\n three\r\n";
    const heard_answer a = read_bytes(plain_text, chunks + "0\r\n\r\n", 4096, true, false);
    check_ok(a, {3, 3, 1, 0, "", "One two three"});
    CHECK(a.r.token_source == token_origin::events);
    CHECK(read_bytes(plain_text, chunks, 4096, true, true).r.status == request_status::truncated);
    // Without a length a reset is all that tells a cut from the end.
    const std::string begun = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nOne two";
    CHECK(read_bytes(plain_text, begun, 4096, true, true).r.status == request_status::ok);
    CHECK(read_bytes(plain_text, begun, 4096, true, true, "Connection reset by peer").r.status ==
          request_status::truncated);
    CHECK(heard(plain_text, "text/plain", "").r.status == request_status::empty);
    check_failed(heard(plain_text, "text/plain", "no", true, 500), request_status::http,
                 "HTTP 500: no");
    const picojson::value b = body_of(plain_text, asked());
    CHECK(b.get<picojson::object>().size() == 3);
    CHECK(at(b, {"prompt"}) == all_turns);
    CHECK(at(b, {"max_tokens"}) == "64");
    CHECK(at(b, {"temperature"}) == "0.5");
}

// ---- Anthropic ---------------------------------------------------------------------------------

TEST_CASE("Anthropic: thinking and a tool's input are output, a signature and a ping are none") {
    const auto block = [](const std::string& delta) {
        return R"({"type":"content_block_delta","index":0,"delta":)" + delta + "}";
    };
    check_ok(heard_data(anthropic,
                        {R"({"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":0}}})",
                         R"({"type":"content_block_start","content_block":{"type":"thinking","thinking":""}})",
                         R"({"type": "ping"})", block(R"({"type":"thinking_delta","thinking":"Hm"})"),
                         block(R"({"type":"signature_delta","signature":"EqQ"})"),
                         block(R"({"type":"text_delta","text":"It"})"),
                         R"({"type":"content_block_start","content_block":{"type":"tool_use","name":"f","input":{}}})",
                         block(R"({"type":"input_json_delta","partial_json":""})"),
                         block(R"({"type":"input_json_delta","partial_json":"{\"to\":"})"),
                         R"({"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":30}})",
                         R"({"type":"message_stop"})"}),
             {4, 30, 1, 25, "tool_calls", "It"});
}

TEST_CASE("Anthropic: an error inside the stream, and one instead of it") {
    check_failed(heard_events(anthropic, "event: error\ndata: "
                                         R"({"type":"error","error":{"message":"Overloaded"}})" "\n\n"),
                 request_status::server, "Overloaded");
    check_failed(heard(anthropic, "application/json",
                       R"({"type":"error","error":{"message":"max_tokens: too large"}})", true, 400),
                 request_status::http, "HTTP 400: max_tokens: too large");
}

TEST_CASE("Anthropic: an answer in one piece, and its request") {
    check_ok(heard_document(anthropic,
                            R"({"id":"msg_1","type":"message","role":"assistant","model":"m","content":[)"
                            R"({"type":"thinking","thinking":"Hm"},{"type":"text","text":"It is"}],)"
                            R"("stop_reason":"max_tokens","usage":{"input_tokens":12,"output_tokens":64}})"),
             {1, 64, 64, 12, "length", "It is"});
    const picojson::value b = body_of(anthropic, asked());
    CHECK(at(b, {"system"}) == "\"Be brief\"");
    CHECK(b.get("messages").get<picojson::array>().size() == 3);
    CHECK(at(b, {"max_tokens"}) == "64");
    CHECK(at(b, {"ignore_eos"}) == "none");
    CHECK(at(body_of(anthropic, request_spec{.prompt = "Hi"}), {"max_tokens"}) == "1024");
}

// ---- OpenAI's responses ------------------------------------------------------------------------

namespace {
std::string event(const std::string& type, const std::string& more = "") {
    return "event: response." + type + "\ndata: {\"type\":\"response." + type +
           "\",\"sequence_number\":1" + more + "}\n\n";
}
std::string delta(const std::string& type, const std::string& text) {
    return event(type, ",\"item_id\":\"i\",\"output_index\":0,\"delta\":" + json_quoted(text));
}
std::string response_of(const std::string& status, const std::string& more = "") {
    return ",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"error\":null,\"status\":\"" +
           status + "\"" + more + "}";
}
const std::string responses_usage =
    R"(,"usage":{"input_tokens":30,"input_tokens_details":{"cached_tokens":16},)"
    R"("output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":39})";
const std::string responses_begin =
    event("created", response_of("in_progress", ",\"usage\":null")) +
    event("in_progress", response_of("in_progress"));
}  // namespace

TEST_CASE("responses: only the deltas are content, and what repeats them adds nothing") {
    const heard_answer a = heard_events(openai_responses,
        responses_begin +
        event("output_item.added", R"(,"item":{"type":"reasoning","content":[],"summary":[]})") +
        event("reasoning_part.added", R"(,"part":{"type":"reasoning_text","text":""})") +
        delta("reasoning_text.delta", "Let me") + delta("reasoning_summary_text.delta", " see") +
        event("reasoning_text.done", R"(,"text":"Let me")") +
        event("reasoning_summary_text.done", R"(,"text":" see")") +
        event("reasoning_part.done", R"(,"part":{"type":"reasoning_text","text":"Let me"})") +
        event("output_item.done",
              R"(,"item":{"type":"reasoning","content":[{"type":"reasoning_text","text":"Let me"}]})") +
        event("content_part.added", R"(,"part":{"type":"output_text","text":""})") +
        delta("output_text.delta", "It") + delta("output_text.delta", "") +
        delta("output_text.delta", " is") + event("output_text.done", R"(,"text":"It is")") +
        event("content_part.done", R"(,"part":{"type":"output_text","text":"It is"})") +
        event("output_item.done",
              R"(,"item":{"type":"message","content":[{"type":"output_text","text":"It is"}]})") +
        event("completed", response_of("completed", responses_usage)));
    check_ok(a, {4, 9, 1, 30, "stop", "It is"});
    CHECK(a.r.cached_tokens == 16);
    CHECK(a.r.reasoning_tokens == 4);
    CHECK(a.r.first_answer_ns >= a.r.first_token_ns);
}

TEST_CASE("responses: a refusal and the arguments of a call are content") {
    check_ok(heard_events(openai_responses,
                          responses_begin + delta("refusal.delta", "I cannot") +
                              event("refusal.done", R"(,"refusal":"I cannot")") +
                              event("completed", response_of("completed", responses_usage))),
             {1, 9, 1, 30, "stop", ""});
    check_ok(heard_events(openai_responses,
                          responses_begin +
                              event("output_item.added", R"(,"item":{"type":"function_call"})") +
                              delta("function_call_arguments.delta", "{\"city\":") +
                              delta("function_call_arguments.delta", "\"Bonn\"}") +
                              event("function_call_arguments.done", R"(,"arguments":"{}")") +
                              event("completed", response_of("completed", responses_usage))),
             {2, 9, 1, 30, "stop", ""});
}

TEST_CASE("responses: the status says why an answer ended, whatever the last event is called") {
    const auto ended = [](const std::string& type, const std::string& status,
                          const std::string& reason) {
        return heard_events(openai_responses,
                            delta("output_text.delta", "It") +
                                event(type, response_of(status, ",\"incomplete_details\":" + reason +
                                                                    responses_usage)));
    };
    const std::string cut = R"({"reason":"max_output_tokens"})";
    check_ok(ended("completed", "completed", "null"), {1, 9, 1, 30, "stop", "It"});
    check_ok(ended("completed", "incomplete", cut), {1, 9, 1, 30, "length", "It"});  // vLLM
    check_ok(ended("incomplete", "incomplete", cut), {1, 9, 1, 30, "length", "It"});
    check_ok(ended("incomplete", "incomplete", R"({"reason":"content_filter"})"),
             {1, 9, 1, 30, "content_filter", "It"});
    check_failed(ended("completed", "cancelled", "null"), request_status::server, "cancelled");
}

TEST_CASE("responses: an error is one wherever it stands, and a stream without its end is cut") {
    const std::string text = delta("output_text.delta", "It");
    check_failed(heard_events(openai_responses,
                              text + event("failed", R"(,"response":{"status":"failed","error":)"
                                                     R"({"code":"server_error","message":"no GPU"}})")),
                 request_status::server, "no GPU");
    check_failed(heard_events(openai_responses,
                              text + event("failed", R"(,"response":{"status":"failed"})")),
                 request_status::server, "the response failed");
    for (const char* named : {"event: error\n", ""})
        check_failed(heard_events(openai_responses,
                                  text + named + "data: " +
                                      R"({"type":"error","code":"x","message":"engine is dead"})" +
                                      "\n\n"),
                     request_status::server, "engine is dead");
    check_failed(heard_events(openai_responses,
                              text + R"(data: {"error":{"message":"boom","code":500}})" "\n\n"),
                 request_status::server, "boom");
    check_failed(heard_events(openai_responses, text), request_status::truncated, "");
    check_failed(heard_events(openai_responses, responses_begin + text +
                                                    event("output_text.done", R"(,"text":"It")")),
                 request_status::truncated, "");
    CHECK(heard_events(openai_responses, responses_begin + event("completed",
                       response_of("completed", responses_usage))).r.status ==
          request_status::empty);
    check_failed(heard(openai_responses, "application/json",
                       R"({"error":{"message":"no such model","type":"NotFoundError"}})", true, 404),
                 request_status::http, "HTTP 404: no such model");
}

TEST_CASE("responses: a tool's failure is not the answer's") {
    for (const char* failed : {"mcp_call.failed", "mcp_list_tools.failed"}) {
        const std::string named = event(failed, R"(,"item_id":"m","error":"timeout")");
        check_ok(heard_events(openai_responses, responses_begin + named + delta("output_text.delta", "It") +
                                                    event("completed", response_of("completed", responses_usage))),
                 {1, 9, 1, 30, "stop", "It"});
    }
}

TEST_CASE("responses: an answer in one piece") {
    const auto whole = [](const std::string& output, const std::string& more) {
        return heard_document(openai_responses,
                              R"({"id":"resp_1","object":"response","error":null,"output":[)" +
                                  output + "]," + more + responses_usage + "}");
    };
    const std::string thought = R"({"type":"reasoning","summary":[{"type":"summary_text","text":"S"}],)"
                                R"("content":[{"type":"reasoning_text","text":"Let me"}]},)";
    const std::string said =
        R"({"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is"}]})";
    check_ok(whole(thought + said, R"("status":"completed","incomplete_details":null)"),
             {1, 9, 9, 30, "stop", "It is"});
    // Of reasoning that usage tells and the answer does not have, nothing came.
    check_ok(whole(said, R"("status":"incomplete","incomplete_details":{"reason":"max_output_tokens"})"),
             {1, 9, 5, 30, "length", "It is"});
    check_ok(whole(R"({"type":"function_call","name":"f","arguments":"{}"})", R"("status":"completed")"),
             {1, 9, 5, 30, "stop", ""});
    check_ok(whole(R"({"type":"message","content":[{"type":"refusal","refusal":"No"}]})",
                   R"("status":"completed")"),
             {1, 9, 5, 30, "stop", ""});
    check_failed(heard_document(openai_responses,
                                R"({"status":"failed","error":{"message":"no GPU"},"output":[]})"),
                 request_status::server, "no GPU");
}

TEST_CASE("responses: its request sends the history, and the server keeps nothing") {
    const picojson::value b = body_of(openai_responses, asked());
    CHECK(at(b, {"input"}) == R"([{"content":"Hello","role":"user"},)"
                              R"({"content":"Hi","role":"assistant"},)"
                              R"({"content":"How far?","role":"user"}])");
    CHECK(at(b, {"instructions"}) == R"("Be brief")");
    CHECK(at(b, {"max_output_tokens"}) == "64");
    CHECK(at(b, {"ignore_eos"}) == "true");
    CHECK(at(b, {"temperature"}) == "0.5");
    CHECK(at(b, {"store"}) == "false");
    CHECK(at(b, {"stream"}) == "true");
    CHECK(at(b, {"previous_response_id"}) == "none");
    CHECK(at(body_of(openai_responses, request_spec{.prompt = "Hi"}), {"instructions"}) == "none");
}

// ---- streams that break, and forms that differ --------------------------------------------------

namespace {

std::string chat_chunk(const std::string& delta, const std::string& more = "") {
    return "data: {\"choices\":[{\"index\":0,\"delta\":{" + delta + "}" + more + "}]}\n\n";
}
const std::string chat_end = chat_chunk("", R"(,"finish_reason":"stop")") +
                             R"(data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}})"
                             "\n\ndata: [DONE]\n\n";

}  // namespace

TEST_CASE("a stream that tells an error is broken, whichever way it tells it") {
    const std::string begun = chat_chunk(R"("content":"To")");
    for (const auto& [told, why] : {
             std::pair{"error: {\"code\":500,\"message\":\"slot is lost\",\"type\":\"server_error\"}\n\n",
                       "slot is lost"},
             {"error: out of memory\n\n", "out of memory"},
             {"event: error\n: upstream reset\n\n", "upstream reset"},
             {"event: error\n\n", "the stream says \"error\", and no more"},
             {"event: error\ndata:\n\n", "the stream says \"error\", and no more"},
             {"event: error\ndata: [DONE]\n\n", "[DONE]"},
             {"event: stream_error\ndata: {\"message\":\"gone\"}\n\n", "gone"},
             {"{\"error\":{\"message\":\"bare\"}}\n\n", "bare"},
             {"Internal Server Error\n\n", "Internal Server Error"},
         }) {
        CAPTURE(told);
        for (const api_format api : {openai_chat, openai_completions, sglang})
            check_failed(heard_events(api, begun + told + "data: [DONE]\n\n"),
                         request_status::server, why);
    }
}

TEST_CASE("an empty error is none") {
    for (const char* none : {"{}", "[]", "null", "\"\"", "false", "0", "{\"message\":\"\",\"code\":null}"}) {
        CAPTURE(none);
        const std::string with = std::string("data: {\"error\":") + none + ",\"detail\":" + none +
                                 R"(,"choices":[{"index":0,"delta":{"content":"To"}}]})" "\n\n";
        check_ok(heard_events(openai_chat, with + with + chat_end), {2, 2, 1, 9, "stop", "ToTo"});
    }
    check_failed(heard_events(openai_chat, R"(data: {"error":{"code":500}})" "\n\n" + chat_end),
                 request_status::server, R"({"code":500})");
}

// What each field of a delta is read as: data/fields.tsv, by core/dialects/test_fields.

TEST_CASE("content in parts is text, wherever it is in the list, and in no form that is not known") {
    const heard_answer a = heard_events(openai_chat,
        chat_chunk(R"("content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}],"closed":false}])") +
        chat_chunk(R"("content":[{"type":"thinking","thinking":[]}])") + chat_chunk(R"("content":["To"])") +
        chat_chunk(R"("content":[{"type":"text","text":" it"},{"type":"text","text":" is"}])") + chat_end);
    check_ok(a, {3, 2, 1, 9, "stop", "To it is"});
    CHECK(a.r.text_bytes == 10);
    CHECK(a.r.first_answer_ns >= a.r.first_token_ns);
    CHECK(heard_document(openai_chat,
                         R"({"choices":[{"index":0,"message":{"content":[{"type":"thinking","thinking":[{"type":"text",)"
                         R"("text":"Hm"}]},{"type":"text","text":"To"}]},"finish_reason":"stop"}],)"
                         R"("usage":{"prompt_tokens":9,"completion_tokens":2}})").words == "To");
    for (const char* unknown : {"7", "[7]", "[{\"value\":\"To\"}]", "true"})
        check_failed(heard_events(openai_chat, chat_chunk(std::string("\"content\":") + unknown) + chat_end),
                     request_status::protocol, "\"content\" is in a form that is not known: ");
}

TEST_CASE("a setting is no thought, a mark of one is, and what is only announced is no event") {
    const auto of = [](const std::string& delta) {
        return heard_events(openai_chat, chat_chunk(delta) + chat_chunk(R"("content":"To")") + chat_end).r;
    };
    for (const char* setting : {"reasoning_level", "thinking_budget", "thinking_enabled", "stop_reason"})
        CHECK(of(R"("content":"Hi",")" + std::string(setting) + R"(":"high")").text_bytes == 4);
    for (const char* mark : {R"("is_thinking":true)", R"("type":"thinking")", R"("provider_specific_fields":{"thought":true})"})
        CHECK(heard_events(openai_chat, chat_chunk(R"("content":"Hm",)" + std::string(mark)) + chat_end).r.first_answer_ns == 0);
    for (const char* announced : {R"("content":[{"type":"status","text":"searching"}])",
                                  R"("tool_calls":[{"index":0,"id":"c","function":{"name":"","arguments":""}}])"})
        CHECK(of(announced).events == 1);
    check_failed(heard_events(openai_chat, chat_chunk(R"("audio":{"id":"a","data":"UklGR"})") + chat_end),
                 request_status::empty, "complete with sound or images only");
}

TEST_CASE("words for nothing are no finish reason, no error and no number") {
    for (const char* nothing : {"null", "None", "undefined", "", "nil"}) {
        CAPTURE(nothing);
        const std::string with = R"(,"finish_reason":")" + std::string(nothing) + "\"";
        const std::string chunks = chat_chunk(R"("content":"To")", with) + chat_chunk(R"("content":" it")", with);
        check_ok(heard_events(openai_chat, chunks + chat_end), {2, 2, 1, 9, "stop", "To it"});
        // Cut off, also with [DONE], it has no reason.
        check_failed(heard_events(openai_chat, chunks), request_status::truncated, "without a finish reason");
        check_ok(heard_events(openai_chat, chunks + "data: [DONE]\n\n"), {2, 2, 1, 0, "", "To it"});
        const std::string odd = R"(data: {"error":")" + std::string(nothing) + R"(","choices":[],"usage":{"completion_tokens":")" +
                                nothing + "\"}}\n\n";
        check_ok(heard_events(openai_chat, chunks + odd + chat_end), {2, 2, 1, 9, "stop", "To it"});
    }
    // A server's own word that comes with more content is a state.
    for (const char* state : {"in_progress", "running", "N/A", "-"}) {
        CAPTURE(state);
        const std::string with = R"(,"finish_reason":")" + std::string(state) + "\"";
        const std::string chunks = chat_chunk(R"("content":"To")", with) + chat_chunk(R"("content":" it")", with);
        check_ok(heard_events(openai_chat, chunks + chat_end), {2, 2, 1, 9, "stop", "To it"});
        check_failed(heard_events(openai_chat, chunks + chat_chunk(R"("content":".")", with)),
                     request_status::truncated, "without a finish reason");
    }
    const std::string stops = R"(,"finish_reason":"stop")";  // Gemini's, in every chunk
    check_ok(heard_events(openai_chat, chat_chunk(R"("content":"To")", stops) + chat_chunk(R"("content":" it")", stops)),
             {2, 2, 1, 0, "stop", "To it"});
    // A model may say them.
    check_ok(heard_events(openai_chat, chat_chunk(R"("content":"null")") + chat_end), {1, 2, 1, 9, "stop", "null"});
}

TEST_CASE("an answer without a reason ended in order where usage counts it and the stream says it is done") {
    const auto ended = [](const char* usage) {
        return std::string(heard_events(openai_chat, chat_chunk(R"("content":"To")") + chat_chunk(R"("content":" it")") +
                                            "data: {\"choices\":[],\"usage\":" + usage + "}\n\ndata: [DONE]\n\n")
                               .r.finish_reason);
    };
    CHECK(ended(R"({"prompt_tokens":9,"completion_tokens":2})") == "done");
    CHECK(ended("null") == "");
    CHECK(ended(R"({"prompt_tokens":9,"completion_tokens":0})") == "");
    CHECK(ended(R"({"prompt_tokens":9,"completion_tokens":64})") == "");  // more than came
    check_failed(heard_events(openai_chat, chat_chunk(R"("content":"To")") +
                                               R"(data: {"choices":[],"usage":{"completion_tokens":1}})" "\n\n"),
                 request_status::truncated, "");
}

TEST_CASE("the bytes of an answer tell what it is, where its content type does not") {
    const std::string events = chat_chunk(R"("content":"To")") + chat_end;
    for (const char* type : {"application/json", "text/plain", "application/octet-stream", ""})
        for (const char* before : {"", "\n", ": hello\n\n", "event: message\n"}) {
            CAPTURE(before);
            check_ok(heard(openai_chat, type, before + events), {1, 2, 1, 9, "stop", "To"});
        }
    const std::string lines = R"({"message":{"content":"Hi"},"done":true,"done_reason":"stop","eval_count":1})";
    check_ok(heard(ollama, "text/plain", lines), {1, 1, 1, 0, "stop", "Hi"});
    check_failed(heard(openai_chat, "application/json", R"({"error":"busy"})"), request_status::server, "busy");
    for (const char* other : {"<html>", "dat", "database", "{}", ""})
        check_failed(heard(openai_chat, "application/json", other), request_status::protocol, "not an event stream");
}

TEST_CASE("an answer without end is none") {
    stream_timeline timeline;
    stream_event e;
    e.take(std::string(1 << 20, 'a'));
    for (int i = 0; i < 64; ++i) timeline.on_event(e, i);
    CHECK_FALSE(timeline.ended());
    timeline.on_event(e, 64);
    CHECK(timeline.ended());
    record r;
    timeline.write_to(r);
    CHECK(r.status == request_status::protocol);
    CHECK(std::string(r.error) == "the answer does not end: it has over 64 MiB, or 10 million events");
    timeline.reset();
    stream_event call;
    call.take_call();
    int i = 0;
    while (i < 9'999'997) timeline.on_event(call, i++);
    CHECK(timeline.room() == 2);
    while (i < 10'000'001 && !timeline.ended()) timeline.on_event(call, i++);
    CHECK(timeline.ended());
    CHECK(timeline.gaps_us().size() < 10'000'001);
}

TEST_CASE("Anthropic: counts of the first event are not replaced by zeros, or by what leaves out the cache") {
    const auto told = [](const char* first, const char* last) {
        return heard_events(anthropic, "data: {\"type\":\"message_start\",\"message\":{\"usage\":" + std::string(first) +
                            "}}\n\n" R"(data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"It"}})"
                            "\n\n" R"(data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":)" + last +
                            "}\n\n" R"(data: {"type":"message_stop"})" "\n\n").r;
    };
    for (const char* last :
         {R"({"output_tokens":3})", R"({"input_tokens":0,"output_tokens":3,"cache_read_input_tokens":0})",
          R"({"input_tokens":25,"output_tokens":3})",
          R"({"input_tokens":25,"output_tokens":3,"cache_read_input_tokens":100,"cache_creation_input_tokens":10})"}) {
        CAPTURE(last);
        const record r = told(R"({"input_tokens":25,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1})", last);
        CHECK(r.prompt_tokens == 135);
        CHECK(r.cached_tokens == 100);
        CHECK(r.output_tokens == 3);
    }
    // Gateways know it at the end alone.
    const record r = told(R"({"input_tokens":0,"output_tokens":0})",
                          R"({"input_tokens":25,"output_tokens":3,"cache_read_input_tokens":100})");
    CHECK(r.prompt_tokens == 125);
    CHECK(r.cached_tokens == 100);
}

TEST_CASE("of an API that tells usage events are tokens only where somebody says so") {
    const auto source = [](api_format api, bool events_are_tokens, const std::string& body) {
        request_spec r;
        r.events_are_tokens = events_are_tokens;
        answer_reader reader;
        reader.reset(traits_of(api), asked_by(traits_of(api), r, 100));
        reader.feed("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: " +
                        std::to_string(body.size()) + "\r\n\r\n" + body, 1'000'000);
        record x;
        reader.timeline().write_to(x);
        CHECK(x.status == request_status::ok);
        return std::string(to_string(x.token_source));
    };
    const std::string chunk = chat_chunk(R"("content":"To")");
    CHECK(source(openai_chat, false, chunk + "data: [DONE]\n\n") == "no_usage");
    CHECK(source(openai_chat, true, chunk + "data: [DONE]\n\n") == "events");
    CHECK(source(openai_chat, true, chunk + chat_end) == "usage");
    CHECK(source(openai_chat, false, chunk + chat_end) == "usage");
    CHECK(source(triton, false, "data: {\"text_output\":\"To\"}\n\n") == "events");
    CHECK(source(anthropic, false,
                 "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"To\"}}\n\n"
                 "data: {\"type\":\"message_stop\"}\n\n") == "no_usage");
}

// ---- OpenAI in one piece -----------------------------------------------------------------------

TEST_CASE("OpenAI: what in one piece is no answer") {
    check_failed(heard_document(openai_chat, R"({"choices":[{"message":{"content":"It"}}]})"),
                 request_status::protocol, "number of tokens");
    check_failed(heard_document(openai_chat, R"({"choices":[],"usage":{"completion_tokens":0}})"),
                 request_status::empty, "");
    check_failed(heard_document(openai_chat, "[1]"), request_status::protocol, "JSON object");
    check_failed(heard_document(openai_chat, R"({"error":{"message":"busy"}})"),
                 request_status::server, "busy");
    check_failed(heard(openai_chat, "text/event-stream", "data: [DONE]\n\n", false),
                 request_status::protocol, "not a JSON document");
    CHECK(heard_document(api_format::openai_embeddings, R"({"object":"list","data":[],"usage":{}})").r.status ==
          request_status::empty);
    request_spec r;
    r.prompt = "Hi";
    r.stream = false;
    CHECK(at(body_of(openai_chat, r), {"stream"}) == "false");
    CHECK(at(body_of(openai_chat, r), {"stream_options"}) == "none");
}

TEST_CASE("embeddings: an answer of no tokens, in numbers that are no list") {
    const heard_answer a = heard_document(
        api_format::openai_embeddings,
        R"({"data":[{"index":0,"embedding":"AAAAPw=="}],"usage":{"prompt_tokens":9,"total_tokens":9}})");
    check_ok(a, {1, 0, 1, 9, "stop", ""});
    CHECK(a.r.token_source == token_origin::usage);
}

TEST_CASE("rerank: scores, with the tokens of the input as each server tells them") {
    const auto scored = [](const std::string& more) {
        return heard_document(api_format::rerank, R"({"id":"rerank-1","results":[{"index":1,"relevance_score":)"
                                      R"(0.99},{"index":0,"relevance_score":0.01}],)" + more + "}");
    };
    // vLLM and Jina, llama.cpp, Cohere with and without its counts.
    check_ok(scored(R"("model":"m","usage":{"total_tokens":56})"), {1, 0, 1, 56, "stop", ""});
    check_ok(scored(R"("object":"list","usage":{"prompt_tokens":74,"total_tokens":74})"),
             {1, 0, 1, 74, "stop", ""});
    check_ok(scored(R"("meta":{"tokens":{"input_tokens":38},"billed_units":{"search_units":1}})"),
             {1, 0, 1, 38, "stop", ""});
    check_ok(scored(R"("meta":{"billed_units":{"search_units":1}})"), {1, 0, 1, 0, "stop", ""});
    CHECK(heard_document(api_format::rerank, R"({"results":[]})").r.status == request_status::empty);
}

TEST_CASE("embeddings and rerank: their requests") {
    request_spec r;
    r.prompt = "one two three\nfour five six  seven";
    r.documents = 3;
    r.stream = false;
    CHECK(at(body_of(api_format::openai_embeddings, r), {"input"}) ==
          R"(["one two","three\nfour","five six  seven"])");
    r.documents = 1;
    CHECK(at(body_of(api_format::openai_embeddings, r), {"input"}) ==
          R"("one two three\nfour five six  seven")");
    r.documents = 3;
    CHECK(at(body_of(api_format::score, r), {"text_1"}) == R"("one")");
    CHECK(at(body_of(api_format::score, r), {"text_2"}) == R"(["two three","four five","six  seven"])");
    CHECK(at(body_of(api_format::score, r), {"model"}) == R"("the\/model")");
    r.extra_fields = R"(,"label_token_ids":[7,8])";
    CHECK(at(body_of(api_format::sglang_score, r), {"query"}) == R"("one")");
    CHECK(at(body_of(api_format::sglang_score, r), {"items"}) ==
          R"(["two three","four five","six  seven"])");
    CHECK(at(body_of(api_format::sglang_score, r), {"label_token_ids"}) == "[7,8]");
    r.extra_fields.clear();
    CHECK(at(body_of(api_format::openai_embeddings, r), {"stream"}) == "none");
    const picojson::value ranked = body_of(api_format::rerank, r);
    CHECK(at(ranked, {"model"}) == R"("the\/model")");
    CHECK(at(ranked, {"query"}) == R"("one")");
    CHECK(at(ranked, {"documents"}) == R"(["two three","four five","six  seven"])");
    r.documents = 50;  // more than there are words
    CHECK(at(body_of(api_format::rerank, r), {"documents"}) ==
          R"(["two","three","four","five","six","seven"])");
    r.prompt = "alone";
    CHECK(at(body_of(api_format::rerank, r), {"query"}) == R"("alone")");
    CHECK(at(body_of(api_format::rerank, r), {"documents"}) == R"(["alone"])");
    r.token_ids = "[2000,2001]";
    r.documents = 1;
    CHECK(at(body_of(api_format::openai_embeddings, r), {"input"}) == "[2000,2001]");
    r.token_ids = "[2000,2001,2002,2003,2004]";
    r.documents = 2;
    CHECK(at(body_of(api_format::openai_embeddings, r), {"input"}) == "[[2000,2001],[2002,2003,2004]]");
    CHECK(asked_embeddings(r).results == 2);
    r.documents = 9;  // more than there are
    CHECK(at(body_of(api_format::openai_embeddings, r), {"input"}) ==
          "[[2000],[2001],[2002],[2003],[2004]]");
    CHECK(asked_embeddings(r).results == 5);
}

TEST_CASE("a prompt of token ids is sent as such by each API that takes one") {
    request_spec r;
    r.prompt = "never sent";
    r.token_ids = "[2000,2001]";
    for (const auto& [api, name] : {std::pair(openai_completions, "prompt"), std::pair(llama_cpp, "prompt"),
                                    std::pair(sglang, "input_ids"), std::pair(api_format::openai_embeddings, "input")}) {
        CAPTURE(traits_of(api).name);
        CHECK(traits_of(api).takes_token_ids);
        CHECK(at(body_of(api, r), {name}) == "[2000,2001]");
        CHECK(body_of(api, r).serialize().find("never sent") == std::string::npos);
    }
    int others = 0;
    for (const api_traits& a : apis) others += !a.takes_token_ids;
    CHECK(others == static_cast<int>(std::size(apis)) - 4);
}

TEST_CASE("rerank: a URL may name the whole path") {
    const api_traits& a = traits_of(api_format::rerank);
    CHECK(request_path(a, a.path, "", "m") == "/v1/rerank");
    CHECK(request_path(a, a.path, "/v1", "m") == "/v1/rerank");
    CHECK(request_path(a, a.path, "/rerank", "m") == "/rerank");
    CHECK(request_path(a, a.path, "/gateway/v2/rerank", "m") == "/gateway/v2/rerank");
    CHECK(request_path(a, a.models, "/gateway/v2/rerank", "m") == "/gateway/v1/models");
    CHECK(request_path(a, a.models, "/rerank", "m") == "/v1/models");
}

TEST_CASE("every API stands in the table at its enumerator's place, with all that it needs") {
    CHECK(std::size(apis) == static_cast<std::size_t>(api_format::sglang_score) + 1);
    for (const api_traits& a : apis) {
        CAPTURE(std::string(a.name));
        CHECK(api_named(a.name) == &a);
        CHECK(a.path[0] == '/');
        CHECK(a.whole_path[0] == '/');
        CHECK(bool(a.write));
        CHECK(bool(a.read) == (a.framed != framing::pieces));
        CHECK(bool(a.read_whole) == bool(a.read));
    }
    CHECK(api_named("openai") == nullptr);
    for (const auto& [api, name] : {std::pair(tgi, "tgi"), std::pair(plain_text, "plain_text"),
                                    std::pair(anthropic, "anthropic"), std::pair(openai_responses, "openai_responses"),
                                    std::pair(api_format::sglang_score, "sglang_score")})
        CHECK(std::string(traits_of(api).name) == name);
}
