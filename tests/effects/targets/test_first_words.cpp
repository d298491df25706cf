// What is made of a server's words before the load: refusals, and what they may come from.
#include "effects/targets/inquiries.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
load_target target_at(const std::string& path, api_format api = openai_chat) {
    load_target to;
    to.api = &traits_of(api);
    to.url.path = path;
    return to;
}
std::string why(const load_target& to, int status, const std::string& body,
                const std::string& url = "http://h") {
    return why_not_served(to, "POST", "/x", {.status = status, .body = body}, url);
}
std::string proxy_for(const std::string& url, std::map<std::string, std::string> set) {
    return ignored_proxy(parsed_url(url, "url"), [&](const char* name) { return set[name]; });
}
}  // namespace

TEST_CASE("a name with several addresses of a kind is told, as one of them is measured") {
    vector<address> all;
    const auto told = [&](const char* digits) {
        all.push_back(look_up(digits, "80", AI_NUMERICHOST).found.at(0));
        return one_of_addresses(parsed_url("http://replicas:80", "url"), all);
    };
    CHECK(told("127.0.0.1") == "");
    CHECK(told("::1") == "");  // of localhost
    CHECK(told("127.0.0.3") ==
          "replicas has 2 addresses, and every request goes to one of them, 127.0.0.1: if they are "
          "replicas, one is measured; name a load balancer to measure all");
}

TEST_CASE("an answer is quoted, its message where it has one, and no secret") {
    load_target to = target_at("");
    CHECK(quoted_answer(to, "GET", "/v1/models", {.status = 404}) ==
          "GET /v1/models answered HTTP 404 and nothing else");
    CHECK(quoted_answer(to, "GET", "/a", {.status = 500, .body = " <h1>\nno "}) ==
          "GET /a answered HTTP 500: <h1>\\nno");
    add_secret(to.secrets, "sk-123456");
    CHECK(quoted_answer(to, "GET", "/a",
                        {.status = 401, .body = R"({"error":{"message":"no key sk-123456"}})"}) ==
          "GET /a answered HTTP 401: no key ***");
}

TEST_CASE("a refused key is told as one, with or without a key that was sent") {
    load_target to = target_at("");
    to.fields = "User-Agent: llmbench\r\n";
    CHECK(why(to, 401, "denied") ==
          "http://h does not serve this API: POST /x answered HTTP 401: denied; no key was sent: set "
          "LLMBENCH_API_KEY (of a baseline on another host LLMBENCH_BASELINE_API_KEY), or name "
          "its variable in endpoint.api_key_env");
    for (const char* sent : {"Authorization: Bearer k\r\n", "authorization: Basic k\r\n"}) {
        to.fields = std::string("User-Agent: llmbench\r\n") + sent;
        CHECK(why(to, 403, "denied") ==
              "http://h does not serve this API: POST /x answered HTTP 403: denied; it does not take "
              "the key that was sent");
    }
}

TEST_CASE("a pasted path is named as one, any other is asked about") {
    CHECK(why(target_at(""), 404, "no") ==
          "http://h does not serve this API: POST /x answered HTTP 404: no");
    for (const char* own : {"/v1/completions", "/v1/models", "/api/chat", "/generate_stream"})
        CHECK(path_hint(target_at(std::string("/p") + own), std::string("http://h/p") + own) ==
              std::string("the URL ends with ") + own + ", which is added to it: write http://h/p");
    CHECK(path_hint(target_at("/openai/v1"), "http://h/openai/v1") ==
          "the URL's own path is /openai/v1: is that where this server has its API? If it "
          "has a path of its own, name it by endpoint.path");
    CHECK(path_hint(target_at("/p/v1/chat/completions"), "http://h/p/v1/chat/completions") ==
          "the URL names the whole path, /p/v1/chat/completions: does this server have its API "
          "there?");
    // Of bare text the path is all there is.
    CHECK(path_hint(target_at("/generate", plain_text), "http://h/generate") == "");
}

TEST_CASE("only answers that hold for every request refuse a load") {
    for (const int status : {401, 403, 404, 405, 422, 501})
        CHECK(why(target_at(""), status, "no") != "");
    for (const int status : {0, 200, 400, 429, 500, 503})
        CHECK(why(target_at(""), status, "no") == "");
    // Of a field that we send.
    CHECK(why(target_at(""), 422, "no") == "http://h refuses such requests: POST /x answered HTTP 422: no");
    CHECK(why(target_at(""), 422, R"({"detail":"stream_options: extra fields not permitted"})") ==
          "http://h refuses such requests: POST /x answered HTTP 422: stream_options: extra fields not permitted; "
          "options.include_usage = false leaves it out");
    CHECK(why(target_at(""), 400, R"({"error":{"message":"Use 'max_completion_tokens' instead."}})")
              .ends_with("options.max_tokens_field = \"max_completion_tokens\" sends it"));
    CHECK(why(target_at(""), 422, "Unexpected fields: {'ignore_eos'}")
              .ends_with(".force_output = false of the workload leaves it out"));
}

TEST_CASE("a proxy that the environment names is told of where it would have been used") {
    CHECK(proxy_for("http://h:8000", {{"http_proxy", "http://p:1"}}) ==
          "http_proxy is set and not used: h:8000 is asked directly, through no proxy");
    CHECK(proxy_for("https://h", {{"HTTPS_PROXY", "http://p:1"}}).find("HTTPS_PROXY is") == 0);
    CHECK(proxy_for("https://h", {{"http_proxy", "http://p:1"}}) == "");
    CHECK(proxy_for("http://h", {{"ALL_PROXY", "socks5://p:1"}}).find("ALL_PROXY is") == 0);
    CHECK(proxy_for("http://h", {}) == "");
    for (const char* near : {"http://127.0.0.1:8000", "http://localhost", "http://[::1]:1",
                             "unix:/run/s"})
        CHECK(proxy_for(near, {{"http_proxy", "http://p:1"}, {"all_proxy", "http://p:1"}}) == "");
    for (const char* none : {"*", "a.h.corp", "b, .corp", "h.corp", "*.corp"})
        CHECK(proxy_for("http://a.h.corp", {{"http_proxy", "p"}, {"no_proxy", none}}) == "");
    CHECK(proxy_for("http://a.h.corp", {{"http_proxy", "p"}, {"NO_PROXY", "orp,xa.h.corp"}}) != "");
}
