// What is read from a server's answers before the load: its models, and how it counts tokens.
#include "effects/targets/process.hpp"
#include "effects/targets/inquiries.hpp"

#include "support/scripted_server.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
using words = vector<std::string>;

http_answer ok(const std::string& body) { return {.status = 200, .body = body}; }

words models_by(api_format api, const http_answer& a) {
    words names;
    for (const listed_model& m : listed_models(traits_of(api), a)) names.push_back(m.name);
    return names;
}

load_target target_of(api_format api, const std::string& path = "") {
    load_target to;
    to.api = &traits_of(api);
    to.url.path = path;
    to.model = "m";
    to.path = "/streams";
    to.whole_path = "/whole";
    return to;
}

std::string refusal_of_model(const load_target& to, const http_answer& a) {
    try {
        only_model(to, a, "http://h");
    } catch (const std::invalid_argument& why) { return why.what(); }
    return "";
}

/// The paths that a server was asked for, each answered by `answer(path, body)`.
struct fake_server {
    token_inquiry::post_t answer{};
    words paths{};
    http_answer operator()(const std::string& path, const std::string& body) {
        paths.push_back(path);
        return answer(path, body);
    }
};

/// Words of the text that a body has under this name.
int words_under(const char* name, const std::string& body) {
    picojson::value v;
    REQUIRE(parse_json(body, v));
    const std::string text = string_member(v, name);
    return static_cast<int>(std::count(text.begin(), text.end(), ' ')) + !text.empty();
}
}  // namespace

// ---- models

TEST_CASE("what is asked beside the requests is beside the path that they have, with their query") {
    load_target to = target_of(openai_chat);
    to.own_path = "/v3/chat/completions?a=1";
    CHECK(inquiry_path(to, "/v1/models") == "/v3/models");
    to.own_path = "/invocations";
    to.url.path = "/p/v1";
    to.url.query = "?api-version=2";
    CHECK(inquiry_path(to, "/v1/models") == "/p/v1/models?api-version=2");
    CHECK(inquiry_path(to, "/start?x=1") == "/p/start?x=1&api-version=2");
    request_spec r;
    r.model = "other";
    CHECK(path_of(to, r) == "/streams");  // as the gate names it, whatever the model
    to.own_path.clear();
    CHECK(path_of(to, r) == "/p/v1/chat/completions?api-version=2");
}

TEST_CASE("a URL in a command of the shell is a word of it, whatever its characters") {
    CHECK(with_url_of_shell("curl {url}/x") == "curl \"$LLMBENCH_URL\"/x");
    CHECK(with_url_of_shell("curl \"{url}/x\" '{url}' {url}") ==
          "curl \"$LLMBENCH_URL/x\" ''\"$LLMBENCH_URL\"'' \"$LLMBENCH_URL\"");
    CHECK(with_url_of_shell("echo \\\"{url} 'a\\' {url} it\\'s {url}") ==
          "echo \\\"\"$LLMBENCH_URL\" 'a\\' \"$LLMBENCH_URL\" it\\'s \"$LLMBENCH_URL\"");
    CHECK(with_url_of_shell("no url") == "no url");
}

TEST_CASE("models are read in the shape that each API lists them in") {
    CHECK(models_by(openai_chat, ok(R"({"data":[{"id":"a"},{"id":"b"}]})")) == words{"a", "b"});
    CHECK(models_by(ollama, ok(R"({"models":[{"name":"a:7b"}]})")) == words{"a:7b"});
    CHECK(models_by(tgi, ok(R"({"model_id":"org/a"})")) == words{"org/a"});
    CHECK(models_by(triton, ok(R"({"data":[{"id":"a"}]})")).empty());  // it has no list
}

TEST_CASE("an answer that is no list of models names none") {
    for (const std::string body : {"", "{", "[]", "{}", R"({"data":{}})", R"({"data":"a"})"})
        CHECK(models_by(openai_chat, ok(body)).empty());
    CHECK(models_by(openai_chat, {.status = 404, .body = R"({"data":[{"id":"a"}]})"}).empty());
    CHECK(models_by(tgi, ok(R"({"model_id":""})")).empty());
}

TEST_CASE("where none is named the only model is taken, and any other number is refused") {
    load_target to = target_of(openai_chat);
    CHECK(only_model(to, ok(R"({"data":[{"id":"a"}]})"), "http://h") == "a");
    CHECK(refusal_of_model(to, ok("<html>\n<title>Welcome</title>")) ==
          "no model is named and http://h lists none: GET /v1/models answered HTTP 200: "
          "<html>\\n<title>Welcome</title>; is it a server of the API openai_chat? if so, set "
          ".model or LLMBENCH_MODEL");
    add_secret(to.secrets, "t0ken");
    CHECK(refusal_of_model(to, ok(R"({"data":[{"id":"a\nb"},{"id":"t0ken"}]})")) ==
          "no model is named and http://h lists 2 (a\\nb, ***): set .model or LLMBENCH_MODEL");
}

TEST_CASE("a wrong key is told as one, without advice to name a model") {
    load_target to = target_of(openai_chat);
    to.fields = "Authorization: Bearer wrong\r\n";
    CHECK(refusal_of_model(to, {.status = 401, .body = R"({"error":{"message":"bad key"}})"}) ==
          "http://h does not serve this API: GET /v1/models answered HTTP 401: bad key; it does not "
          "take the key that was sent");
    CHECK(refusal_of_model(to, {.status = 403}) ==  // a key may be for answers alone
          "http://h does not serve this API: GET /v1/models answered HTTP 403 and nothing else; it "
          "does not take the key that was sent; or name a model by .model or LLMBENCH_MODEL");
}

TEST_CASE("a model that was named and is not listed is told of, where there is a list") {
    load_target to = target_of(openai_chat);
    CHECK(unlisted_text(to, ok(R"({"data":[{"id":"a"},{"id":"m"}]})")) == "");
    CHECK(unlisted_text(to, ok("{}")) == "");
    to.model = "b";
    CHECK(unlisted_text(to, ok(R"({"data":[{"id":"a"},{"id":"m"}]})")) ==
          "the server does not list this model; it lists a, m");
}

TEST_CASE("an API that takes no model has its name where it can be had") {
    const load_target to = target_of(llama_cpp);
    CHECK(only_model(to, ok(R"({"data":[{"id":"a"}]})"), "http://h") == "a");
    CHECK(only_model(to, ok(R"({"data":[{"id":"a"},{"id":"b"}]})"), "http://h") == "");
    CHECK(only_model(to, {.status = 404}, "http://h") == "");
}

TEST_CASE("inquiries stand below the URL's path, those to a plain text server beside it") {
    CHECK(inquiry_path(target_of(openai_chat), "/tokenize") == "/tokenize");
    CHECK(inquiry_path(target_of(openai_chat, "/proxy/v1"), "/v1/models") == "/proxy/v1/models");
    CHECK(inquiry_path(target_of(plain_text, "/my/service"), "/readyz") == "/readyz");
}

// ---- tokens

TEST_CASE("an answer of /tokenize tells a count, or lists the tokens") {
    CHECK(counted_tokens(ok(R"({"count":7,"max_model_len":100})")) == 7);
    CHECK(counted_tokens(ok(R"({"tokens":[5,6,7]})")) == 3);
    CHECK(counted_tokens(ok(R"({"count":9,"tokens":[5,6,7]})")) == 3);
    CHECK(counted_tokens(ok(R"({"tokens":[]})")) == 0);
    for (const std::string body : {"", "7", "[]", "{}", R"({"count":"7"})", R"({"tokens":"5"})"})
        CHECK(counted_tokens(ok(body)) == -1);
    CHECK(counted_tokens({.status = 404, .body = R"({"count":7})"}) == -1);
    CHECK(counted_tokens({}) == -1);
}

TEST_CASE("the usage of an answer tells the prompt's tokens, streamed or in one piece") {
    const api_traits& api = traits_of(openai_chat);
    const std::string usage = R"("usage":{"prompt_tokens":12,"completion_tokens":1})";
    const std::string content = R"({"choices":[{"index":0,"delta":{"content":"a"}}]})";
    const std::string stream = "data: " + content + "\n\ndata: {\"choices\":[]," + usage +
                               "}\n\ndata: [DONE]\n\n";
    const std::string whole = R"({"choices":[{"message":{"content":"a"}}],)" + usage + "}";
    const asked_answer in_one_piece{.is_streamed = false};
    CHECK(used_tokens(api, ok(stream), {}) == 12);
    CHECK(used_tokens(api, ok(whole), in_one_piece) == 12);
    CHECK(used_tokens(api, ok("data: " + content + "\n\ndata: [DONE]\n\n"), {}) == -1);
    CHECK(used_tokens(api, ok(""), {}) == -1);
    CHECK(used_tokens(api, ok("nothing of the kind"), in_one_piece) == -1);
    CHECK(used_tokens(api, {.status = 500, .body = whole}, in_one_piece) == -1);
}

TEST_CASE("usage that counts the input's characters tells no tokens of it") {
    // As Infinity counts where it was not told --lengths-via-tokenize: the query once for each
    // document.
    request_spec r{.prompt = "the way home is n\xc3\xa9w", .stream = false};
    const auto used = [&](api_format api, const std::string& results, int tokens) {
        r.documents = api == api_format::rerank ? 2 : 1;
        const std::string body = "{" + results + ",\"usage\":{\"prompt_tokens\":" +
                                 std::to_string(tokens) + "}}";
        return used_tokens(traits_of(api), ok(body), asked_by(traits_of(api), r, 100));
    };
    const std::string vector = R"("data":[{"embedding":[0.5]}])",
                      scores = R"("results":[{"index":0,"relevance_score":0.5},)"
                               R"({"index":1,"relevance_score":0.25}])";
    CHECK(used(api_format::openai_embeddings, vector, 19) == -1);
    CHECK(used(api_format::openai_embeddings, vector, 18) == 18);
    CHECK(used(api_format::openai_embeddings, vector, 20) == 20);  // its bytes
    // "the", beside "way home" and "is new"
    const int characters = 3 + 8 + 3 + 6;
    CHECK(used(api_format::rerank, scores, characters) == -1);
    CHECK(used(api_format::rerank, scores, characters - 1) == characters - 1);

    SUBCASE("those of a word may be its tokens") {
        r.prompt = "seven77";
        CHECK(used(api_format::openai_embeddings, vector, 7) == 7);
    }
    SUBCASE("a list of ids has no characters") {
        r.token_ids = "[1,2,3]";
        CHECK(used(api_format::openai_embeddings, vector, 19) == 19);
    }
}

TEST_CASE("a server with /tokenize is asked for nothing else") {
    fake_server server{[](const std::string&, const std::string& body) {
        // Of a request, which has nothing else with spaces in it, three are around the prompt.
        const bool is_request = body.find("\"messages\"") != std::string::npos;
        const auto of_request = std::count(body.begin(), body.end(), ' ') + 1 + 3;
        const auto n = is_request ? of_request : words_under("prompt", body);
        return ok("{\"count\":" + std::to_string(n) + "}");
    }};
    const load_target to = target_of(openai_chat, "/proxy");
    const request_spec common;
    const token_fit fit = token_inquiry(to, common, std::ref(server)).fit();
    CHECK(fit.lengths == token_fit::quality::exact);
    CHECK(fit.overhead == 3);
    CHECK(fit.words.size() == std::size(prompt_words));
    // Two texts and two requests tell all, where every word has one token.
    CHECK(server.paths == words(4, "/proxy/tokenize"));
}

TEST_CASE("a server without /tokenize is asked for it once, and then for one token at a time") {
    fake_server server{[](const std::string& path, const std::string& body) {
        if (path == "/tokenize") return http_answer{.status = 404};
        CHECK(body.find("\"max_tokens\":1") != std::string::npos);
        const int n = words_under("prompt", body) + 1;
        return ok(R"({"choices":[{"text":"a"}],"usage":{"completion_tokens":1,"prompt_tokens":)" +
                  std::to_string(n) + "}}");
    }};
    request_spec common;
    common.stream = false;
    const load_target to = target_of(openai_completions);
    const token_fit fit = token_inquiry(to, common, std::ref(server)).fit();
    CHECK(fit.lengths == token_fit::quality::exact);
    CHECK(fit.overhead == 1);
    CHECK(std::count(server.paths.begin(), server.paths.end(), "/tokenize") == 1);
    CHECK(std::count(server.paths.begin(), server.paths.end(), "/whole") ==
          static_cast<long>(server.paths.size()) - 1);
}

TEST_CASE("where words cannot be exact, lists of token ids can") {
    fake_server server{[](const std::string& path, const std::string& body) {
        if (path == "/tokenize") return http_answer{.status = 404};
        picojson::value v;
        REQUIRE(parse_json(body, v));
        const picojson::value* prompt = member(v, "prompt");
        const bool is_list = prompt && prompt->is<picojson::array>();
        const int n = is_list ? static_cast<int>(prompt->get<picojson::array>().size())
                              : 2 * words_under("prompt", body);
        return ok("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":" + std::to_string(n) +
                  "}}\n\ndata: [DONE]\n\n");
    }};
    const load_target to = target_of(openai_completions);
    const request_spec common;
    const token_fit ids = token_inquiry(to, common, std::ref(server)).fit_with_ids();
    CHECK(ids.as_ids);
    CHECK(ids.lengths == token_fit::quality::exact);
    CHECK(server.paths.back() == "/streams");
    const token_fit fit = token_inquiry(to, common, std::ref(server)).fit();
    CHECK_FALSE(fit.as_ids);
    CHECK(fit.lengths == token_fit::quality::average);
    CHECK(fit.per_word == 2);
}

TEST_CASE("where there is a tokenizer, too, the ids are those that it is seen to give") {
    fake_server server{[](const std::string& path, const std::string& body) {
        picojson::value v;
        REQUIRE(parse_json(body, v));
        if (path == "/tokenize") {  // a token a byte: no word is one
            std::string ids = "[1";
            for (const char c : string_member(v, "prompt"))
                ids += "," + std::to_string(2000 + 40 * static_cast<unsigned char>(c));
            return ok("{\"tokens\":" + ids + "]}");
        }
        const picojson::value* prompt = member(v, "prompt");
        const auto n = prompt->is<picojson::array>() ? prompt->get<picojson::array>().size()
                                                     : prompt->get<std::string>().size();
        return ok("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":" + std::to_string(n) +
                  "}}\n\ndata: [DONE]\n\n");
    }};
    const load_target to = target_of(openai_completions);
    const request_spec common;
    const token_fit ids = token_inquiry(to, common, std::ref(server)).fit_with_ids();
    CHECK(ids.as_ids);
    CHECK(ids.last_id == 2000 + 40 * 0xed);  // the lead byte of the last Hangul syllables
}

TEST_CASE("the largest id of a tokenizer's answer is told, or that there is none") {
    CHECK(largest_id(ok(R"({"tokens":[3,700,9]})")) == 700);
    for (const char* body : {R"({"tokens":[]})", R"({"count":3})", R"({"tokens":["a",null]})",
                             R"({"tokens":[1e99]})", "nothing", ""})
        CHECK(largest_id(ok(body)) == 0);
    CHECK(largest_id({.status = 500, .body = R"({"tokens":[3]})"}) == 0);
}

TEST_CASE("a server that does not answer leaves lengths unknown") {
    fake_server server{[](const std::string&, const std::string&) { return http_answer(); }};
    const load_target to = target_of(openai_chat);
    const request_spec common;
    const token_fit fit = token_inquiry(to, common, std::ref(server)).fit_with_ids();
    CHECK(fit.lengths == token_fit::quality::unknown);
    CHECK(fit.words.empty());
    CHECK(fit_text(fit) ==
          "prompt lengths in words: the server did not say in time how many tokens they have");
}

TEST_CASE("a server that stops answering leaves lengths right on the average, and reports say why") {
    int answers = 0;
    fake_server server{[&](const std::string& path, const std::string& body) {
        if (path == "/tokenize") return http_answer{.status = 404};
        if (++answers > 8) return http_answer();
        picojson::value v;
        REQUIRE(parse_json(body, v));
        const std::size_t n = member(v, "prompt")->get<std::string>().size();
        return ok("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":" + std::to_string(n) +
                  "}}\n\ndata: [DONE]\n\n");
    }};
    const load_target to = target_of(openai_completions);
    request_spec common;
    common.stream = true;
    const token_fit fit = token_inquiry(to, common, std::ref(server)).fit();
    CHECK(fit.lengths == token_fit::quality::average);
    CHECK(fit.words.size() == std::size(prompt_words));
    CHECK(fit_text(fit).find("; the server did not answer in time for more") != std::string::npos);
}

TEST_CASE("a server whose answers have no usage does not tell lengths") {
    fake_server server{[](const std::string&, const std::string&) { return ok("{}"); }};
    const load_target to = target_of(openai_chat);
    const request_spec common;
    CHECK(fit_text(token_inquiry(to, common, std::ref(server)).fit_with_ids()) ==
          "prompt lengths in words: the server does not tell how many tokens they have");
}

// ---- whether it keeps connections

TEST_CASE("a server that closed the connection after the check is asked once more") {
    const scripted::answer stays = scripted::healthy(1);
    scripted::answer closes = stays;
    closes.push_back(scripted::close());
    struct one {
        std::vector<scripted::answer> answers;
        int connection_resets;
        std::size_t asked;
    };
    for (const one& x : {one{{stays}, 0, 1}, one{{closes, stays}, 1, 2}, one{{closes}, 2, 2}}) {
        CAPTURE(x.connection_resets);
        scripted::server server;
        server.answer_checks(x.answers);
        load_target to = target_of(openai_chat);
        static_cast<http_server&>(to) =
            server_at({.host = "127.0.0.1", .port = std::to_string(server.port())});
        request_spec common;
        common.stream = true;
        const load_check found = checked_load(to, common, "http://h");
        CHECK(found.resets == x.connection_resets);
        CHECK(found.note == "");
        CHECK(server.checked() == x.asked);
    }
}

TEST_CASE("a first answer is one that brings a token, read as every other") {
    const auto why = [](bool streamed, const char* type, const std::string& body, int status = 200) {
        load_target to = target_of(openai_chat);
        to.secrets = {"s3cret"};
        request_spec r;
        r.stream = streamed;
        return why_no_answer(to, r, {.status = status, .body = body, .content_type = type});
    };
    const std::string chunk =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"length\"}]}\n\n";
    CHECK(why(true, "text/event-stream", chunk + "data: [DONE]\n\n") == "");
    CHECK(why(false, "application/json",
              R"({"choices":[{"message":{"content":"Hi"}}],"usage":{"completion_tokens":1}})") == "");
    // A token may have no text, such as a piece of a character.
    CHECK(why(true, "text/event-stream",
              R"(data: {"choices":[],"usage":{"completion_tokens":1}})" "\n\ndata: [DONE]\n\n") == "");
    CHECK(why(true, "application/json", "{}") == "\"application/json\" is not an event stream");
    CHECK(why(false, "application/json", "{}") == "complete without any content");
    CHECK(why(true, "text/event-stream", "") == "the answer ended before any content");
    CHECK(why(true, "text/event-stream", "data: {}\n\ndata: [DONE]\n\n") ==
          "complete without any content");
    CHECK(why(true, "text/event-stream", chunk + "error: {\"message\":\"s3cret is loading\"}\n\n") ==
          "*** is loading");
    CHECK(why(true, "text/event-stream", chunk, 503) == "HTTP 503");
}

TEST_CASE("what a server lacks refuses nothing once the run is interrupted") {
    const auto lacks = []() -> int { throw std::invalid_argument("its page has no preemptions"); };
    CHECK_THROWS_AS(unless_interrupted(lacks), std::invalid_argument);
    stop_asked = true;
    CHECK_THROWS_WITH_AS(unless_interrupted(lacks),
                         "the run was interrupted while servers were asked: its page has no preemptions",
                         no_server);
    stop_asked = false;
    CHECK(unless_interrupted([] { return 3; }) == 3);
}
