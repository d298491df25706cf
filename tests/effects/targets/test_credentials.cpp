// Header lines, the line with the key, and what of them is a secret.
#include "effects/targets/credentials.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
using words = vector<std::string>;
const std::string agent = "User-Agent: llmbench\r\nContent-Type: application/json\r\n";

credentials openai(const endpoint& e, const std::string& key = "") {
    return credentials_of(e, traits_of(openai_chat), key);
}
std::string refusal(const endpoint& e, const std::string& key = "") {
    try {
        openai(e, key);
    } catch (const std::invalid_argument& why) { return why.what(); }
    return "";
}
}  // namespace

TEST_CASE("without a key and headers of its own a gate says who it is, and keeps no secrets") {
    CHECK(openai({}).fields == agent);
    CHECK(openai({}).secrets.empty());
    CHECK(credentials_of({}, traits_of(anthropic), "").fields ==
          agent + "anthropic-version: 2023-06-01\r\n");
}

TEST_CASE("the key stands where its API looks for it, behind all other lines") {
    CHECK(openai({.headers = {{"X-A", "b"}}}, "sk-1").fields ==
          agent + "X-A: b\r\nAuthorization: Bearer sk-1\r\n");
    CHECK(credentials_of({}, traits_of(anthropic), "sk-1").fields ==
          agent + "anthropic-version: 2023-06-01\r\nx-api-key: sk-1\r\n");
}

TEST_CASE("a user and a password in the URL are a header, and secrets") {
    const auto fields = [](const std::string& url, const std::string& key = "") {
        return openai({.url = text(url)}, key).fields;
    };
    const std::string aladdin = "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";  // RFC 7617, 2
    CHECK(fields("http://Aladdin:open%20sesame@h:8000/v1") == agent + aladdin);
    CHECK(fields("https://Aladdin:open%20sesame@h", "sk-1") == agent + aladdin);  // the URL is closer
    CHECK(fields("http://h/me:x@y") == agent);
    CHECK(fields("http://token-1@h") == agent + "Authorization: Basic dG9rZW4tMTo=\r\n");
    CHECK(credentials_of({.url = "http://Aladdin:open%20sesame@h"}, traits_of(anthropic), "sk-1").fields ==
          agent + "anthropic-version: 2023-06-01\r\n" + aladdin + "x-api-key: sk-1\r\n");
    const auto secrets = openai({.url = "http://Aladdin:open%20sesame@h"}).secrets;
    for (const char* said : {"open sesame", "open%20sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}) {
        CAPTURE(said);
        CHECK(without_secrets(std::string("got ") + said, secrets) == "got ***");
    }
    CHECK(refusal({.url = "http://a:bcdefgh@h", .headers = {{"authorization", "x"}}}) ==
          "endpoint.url has a user and a password, and endpoint.headers sets Authorization: give one of them");
    CHECK(refusal({.url = "http://a:bcdefgh@h", .api_key_env = "PATH"}, "k") ==
          "endpoint.url has a user and a password, and endpoint.api_key_env names a key: give one of them");
    CHECK(shown_url("http://a:b@c@h/v1?key=secret") == "http://***@h/v1?key=***");
    CHECK(parsed_url("http://a:b@c@h:81/v1", "url").authority() == "h:81");
}

TEST_CASE("a header that the gate sets takes the place of llmbench's own") {
    CHECK(openai({.headers = {{"user-agent", "x/1"}}}).fields ==
          "Content-Type: application/json\r\nuser-agent: x/1\r\n");
    CHECK(credentials_of({.headers = {{"Anthropic-Version", "2024"}}}, traits_of(anthropic), "").fields ==
          agent + "Anthropic-Version: 2024\r\n");
}

TEST_CASE("keys are secrets, and so are values of headers of eight characters or more") {
    const endpoint e{.headers = {{"Accept-Encoding", "gzip"}, {"X-Gateway", "Token abcd-1"}}};
    for (const char* s : {"Token abcd-1", "abcd-1", "sk-77"})
        CHECK(any_of(openai(e, "sk-77").secrets, [&](const std::string& x) { return x == s; }));
    CHECK(openai({}, "abc").secrets.empty());  // too short to be one
}

TEST_CASE("the key is looked up in the variable that the gate names, else in llmbench's own") {
    CHECK(key_variable({}) == "LLMBENCH_API_KEY");
    CHECK(key_variable({.api_key_env = "MY_KEY"}) == "MY_KEY");
    CHECK(key_variable({}, "LLMBENCH_BASELINE_API_KEY") == "LLMBENCH_BASELINE_API_KEY");
    CHECK(key_variable({.api_key_env = "MY_KEY"}, "LLMBENCH_BASELINE_API_KEY") == "MY_KEY");
}

TEST_CASE("a variable that the gate names must be set, and is repeated only if it is a name") {
    CHECK(refusal({.api_key_env = "MY_KEY_2"}) ==
          "endpoint.api_key_env is \"MY_KEY_2\": that variable is not set");
    CHECK(refusal({.api_key_env = "sk-5e3a"}) ==
          "endpoint.api_key_env names a variable that is not set; it is not repeated here, for it "
          "looks like a key and not like a name");
    CHECK(refusal({.api_key_env = "MY_KEY"}, "sk-1") == "");
}

TEST_CASE("a header of the key's kind takes the place of a key that the gate does not name") {
    const endpoint e{.headers = {{"authorization", "Basic abcd"}}};
    CHECK(openai(e, "sk-for-others").fields == agent + "authorization: Basic abcd\r\n");
    CHECK(credentials_of(e, traits_of(anthropic), "sk-1").fields ==
          agent + "anthropic-version: 2023-06-01\r\nauthorization: Basic abcd\r\n"
                  "x-api-key: sk-1\r\n");
    endpoint both = e;
    both.api_key_env = "MY_KEY";
    CHECK(refusal(both, "sk-1") == "endpoint.headers sets authorization and endpoint.api_key_env "
                                   "names a key: give one of them");
}

TEST_CASE("nothing that a gate writes becomes a header line of its own") {
    for (const std::string name : {"", "X A", "X:A", "X\r\nY"})
        CHECK(refusal({.headers = {{name, "v"}}}).find("one word without a colon") !=
              std::string::npos);
    for (const std::string value : {"a\rb", "a\nb", "a\x7F"})
        CHECK(refusal({.headers = {{"X-A", value}}}) ==
              "endpoint.headers: the value of X-A holds a line break or another control character");
    CHECK(refusal({}, "sk-1\r\nX-Admin: yes") ==
          "the API key in LLMBENCH_API_KEY holds a line break or another control character");
    CHECK(refusal({.headers = {{"content-LENGTH", "1"}}}) ==
          "endpoint.headers sets content-LENGTH: that header belongs to llmbench");
}
