// APIs of users: what they write, what they read, and which of them are none.
#include "llmbench.hpp"
#include "core/dialects/body_reader.hpp"
#include "core/dialects/table.hpp"
#include "core/answers/timeline.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

const api words{.name = "words",
                .path = "/v1/words",
                .write = [](api_request& r) {
                    r.text("model", r.model()).text("say", r.prompt()).flag("live", r.streams());
                    r.number("n", static_cast<double>(r.max_tokens())).json("tags", "[1,{\"a\":2}]");
                },
                .read = [](api_event& e) {
                    e.content(e.text("choices.0.text"));
                    e.prompt_tokens(e.number("usage.in"));
                    e.output_tokens(e.number("usage.out"));
                    e.finish(e.text("why"));
                    if (e.flag("over")) e.end();
                    e.error(e.text("error.message"));
                },
                .tells_usage = true};

vector<stream_event> events_of(const api& a, const vector<std::string>& reads,
                               const asked_answer& asked = {}, std::string* said = nullptr) {
    const any_api held = a;
    body_reader reader;
    reader.reset(traits_of(held), asked);
    vector<stream_event> seen;
    const auto note = [&](const stream_event& e) { seen.push_back(e); };
    for (const std::string& bytes : reads) REQUIRE(reader.feed(bytes, note));
    CHECK(reader.end(note).empty());
    if (said) *said = reader.said().answer;
    return seen;
}
std::string problem_of(const api& a) {
    const any_api held = a;
    return own_api_problem(traits_of(held));
}
template <class Spoil>
std::string problem_after(Spoil&& spoil) {
    api a = words;
    spoil(a);
    return problem_of(a);
}

}  // namespace

TEST_CASE("an API of one's own writes the fields that it says, and those of extra_body") {
    request_spec r;
    r.system_prompt = "Be brief.";
    r.history = {{"user", "Hi", ""}};
    r.prompt = "Say \"a\"";
    r.max_tokens = 12;
    r.extra_fields = ",\"top_k\":1";
    const any_api held = words;
    CHECK(request_body(traits_of(held), "m", r) ==
          R"({"model":"m","say":"Be brief.\nHi\nSay \"a\"","live":true,"n":12,)"
          R"("tags":[1,{"a":2}],"top_k":1})");
    r.model = "other";
    CHECK(request_body(traits_of(held), "m", r).starts_with(R"({"model":"other")"));
}

TEST_CASE("an API of one's own reads server-sent events") {
    std::string said;
    const auto seen = events_of(
        words,
        {"data: {\"choices\":[{\"text\":\"one\"}]}\n\ndata: {\"choices\":[{\"te",
         "xt\":\" two\"}]}\n\n: still here\n\ndata: {\"choices\":[]}\n\n",
         "data: {\"why\":\"length\",\"usage\":{\"in\":5,\"out\":2},\"over\":true}\n\n"},
        {.is_kept = true}, &said);
    REQUIRE(seen.size() == 4);
    CHECK(seen[0].content);
    CHECK(seen[0].text_bytes == 3);
    CHECK(seen[1].text_bytes == 4);
    CHECK_FALSE(seen[2].content);
    CHECK(seen[2].prompt_tokens == -1);
    CHECK(seen[3].prompt_tokens == 5);
    CHECK(seen[3].completion_tokens == 2);
    CHECK(seen[3].finish_reason == "length");
    CHECK(seen[3].done);
    CHECK(said == "one two");
}

TEST_CASE("what ends and fails every stream ends and fails that of an API of one's own") {
    auto seen = events_of(words, {"data: [DONE]\n\n"});
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].done);
    seen = events_of(words, {"event: error\ndata: out of memory\n\n"});
    CHECK(seen.at(0).error == "out of memory");
    seen = events_of(words, {"data: {\"error\":{\"message\":\"no\"}}\n\n"});
    CHECK(seen.at(0).error == "no");
    // What is no JSON has no fields, and says nothing.
    seen = events_of(words, {"data: [1,\n\n"});
    CHECK_FALSE(seen.at(0).content);
    CHECK(seen.at(0).error.empty());
    api throwing = words;
    throwing.read = [](api_event&) { throw std::runtime_error("out\nof range"); };
    seen = events_of(throwing, {"data: {}\n\n"});
    CHECK(seen.at(0).malformed);
    CHECK(seen.at(0).error == "reading an event throws: out\\nof range");
}

TEST_CASE("lines, whole documents and bare bytes are read as well") {
    api a = words;
    a.framed = answer_parts::lines;
    CHECK(events_of(a, {"{\"choices\":[{\"text\":\"x\"}]}\n{\"over\":", "true}"}).size() == 2);
    const auto whole = events_of(words, {"{\"choices\":[{\"text\":\"all\"}],", "\"usage\":{\"out\":3}}"},
                                 {.is_streamed = false});
    REQUIRE(whole.size() == 1);
    CHECK(whole[0].done);
    CHECK(whole[0].completion_tokens == 3);
    CHECK(whole[0].first_tokens == 3);

    const api bytes{.name = "bytes", .path = "/b", .framed = answer_parts::pieces, .write = words.write};
    auto seen = events_of(bytes, {std::string(3, '\0'), "", "ab"});
    REQUIRE(seen.size() == 3);
    CHECK(seen[0].text_bytes == 3);
    CHECK(seen[1].content);
    CHECK(seen[2].done);  // with the body
    api counted = bytes;
    counted.read = [](api_event& e) { if (e.size() > 2) e.content(types::text(e.data(), 2)); };
    seen = events_of(counted, {"abc", "d"});
    REQUIRE(seen.size() == 3);
    CHECK(seen[0].text_bytes == 2);
    CHECK_FALSE(seen[1].content);
}

TEST_CASE("a number that is none, or too large, is no number of tokens") {
    api a = words;
    a.read = [](api_event& e) {
        e.prompt_tokens(std::nan(""));
        e.output_tokens(e.size() > 3 ? 1e300 : -5);
    };
    CHECK(events_of(a, {"data: 1\n\n"}).at(0).completion_tokens == -1);
    CHECK(events_of(a, {"data: 1234\n\n"}).at(0).completion_tokens == 1000000000);
    CHECK(events_of(a, {"data: 1234\n\n"}).at(0).prompt_tokens == -1);
}

TEST_CASE("an API of one's own is below the URL's own path, as ours are") {
    const any_api held = words;
    const api_traits& a = traits_of(held);
    CHECK(request_path(a, a.path, "", "m") == "/v1/words");
    CHECK(request_path(a, a.path, "/v1", "m") == "/v1/words");
    CHECK(request_path(a, a.path, "/v3", "m") == "/v3/words");
    CHECK(request_path(a, a.path, "/my", "m") == "/my/v1/words");
    CHECK(request_path(a, a.path, "/my/v1/words", "m") == "/my/v1/words");
    const any_api bytes = api{.name = "b", .path = "/v1/b", .framed = answer_parts::pieces};
    CHECK(request_path(traits_of(bytes), "/v1/b", "/v1", "m") == "/v1/b");
    CHECK(request_path(traits_of(plain_text), "/generate", "/mine", "m") == "/mine");
}

TEST_CASE("an API that cannot be is told in a sentence") {
    CHECK(problem_of(words).empty());
    CHECK(problem_after([](api& a) { a.name = ""; }) ==
          "an API has a name of up to 40 printable characters, .name = \"acme\"");
    CHECK(problem_after([](api& a) { a.name = nullptr; }) ==
          "an API has a name of up to 40 printable characters, .name = \"acme\"");
    CHECK(problem_after([](api& a) { a.name = "tgi"; }) ==
          "the API \"tgi\" has the name of one of llmbench's");
    CHECK(problem_after([](api& a) { a.path = "v1/words"; }) ==
          "the API \"words\" has .path = \"v1/words\": a path begins with a slash, and has no blanks");
    CHECK(problem_after([](api& a) { a.path = nullptr; }).find("has .path = \"\"") != std::string::npos);
    CHECK(problem_after([](api& a) { a.ready = "/he alth"; }).find("has .ready = ") != std::string::npos);
    CHECK(problem_after([](api& a) { a.metrics = "/m\r\nX: y"; }) ==
          "the API \"words\" has .metrics = \"/m\\r\\nX: y\": a path begins with a slash, and has no blanks");
    CHECK(problem_after([](api& a) { a.key_before = "Key: a\r\nX: "; }) ==
          "the API \"words\" has a .key_before of more than one line");
    CHECK(problem_after([](api& a) { a.write = nullptr; }) ==
          "the API \"words\" has no .write: nothing says what a request is");
    CHECK(problem_after([](api& a) { a.read = nullptr; }) ==
          "the API \"words\" has no .read: nothing says what an answer brings");
    CHECK(problem_after([](api& a) { a.write = [](api_request& r) { r.json("a", "{"); }; }) ==
          "the API \"words\" writes a request that is not JSON: {\"a\":{}");
    CHECK(problem_after([](api& a) {
              a.write = [](api_request&) { throw std::runtime_error("no"); };
          }) == ".write of the API \"words\" throws: no");
}
