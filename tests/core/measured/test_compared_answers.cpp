// Answers held against each other: hashes, first differences, excerpts, and a server against itself.
#include "llmbench.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/judging/judge.hpp"
#include "core/described/described.hpp"
#include "core/measured/answers.hpp"
#include "core/stored/record_json.hpp"
#include "support/texts.hpp"
#include "support/timelines.hpp"
#include "extensions/answers/api.hpp"
#include "extensions/answers/core/compared.hpp"

#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using texts::holds;

namespace {

/// A repeat whose requests were answered with these texts; "" failed.
repeat_data answered_with(const vector<std::string>& texts, run_variant variant = run_variant::candidate) {
    vector<timelines::request> requests;
    for (std::size_t i = 0; i < texts.size(); ++i)
        requests.push_back(texts[i].empty() ? timelines::failed(100.0 * static_cast<double>(i))
                                            : timelines::answered(100.0 * static_cast<double>(i), 50));
    repeat_data d = timelines::repeat_of(requests);
    d.variant = variant;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        record& r = d.records[i];
        r.id = request_id(id_prefix(1, variant, 0), i);
        r.conversation = static_cast<long long>(i);
        r.answer_hash = texts[i].empty() ? 0 : answer_hash(texts[i]);
    }
    return d;
}
vector<kept_text> kept(const vector<std::string>& texts) {
    vector<kept_text> all;
    for (std::size_t i = 0; i < texts.size(); ++i) all.push_back({i, texts[i]});
    return all;
}
repeat_data compared(const vector<std::string>& mine, const vector<std::string>& its,
                     const vector<kept_text>& said, const vector<kept_text>& expected) {
    repeat_data d = answered_with(mine);
    compare_answers(d, answered_with(its, run_variant::baseline), said, expected, 50,
                    [](std::string s) { return s; });
    return d;
}
repeat_data compared(const vector<std::string>& mine, const vector<std::string>& its) {
    return compared(mine, its, kept(mine), kept(its));
}
const statistic_data same = make_statistic(statistic_kind::value, metric_id::same_answers, 0);

}  // namespace

TEST_CASE("an answer is the same byte for byte, and one that failed in either arm is not") {
    const repeat_data d =
        compared({"one", "two ", "", "four", "five"}, {"one", "two", "three", "", "five"});
    vector<bool> found;
    for (const record& r : d.records) found.push_back(*r.same);
    CHECK(found == vector<bool>{true, false, false, false, true});
    CHECK(evaluate(same, d) == doctest::Approx(0.4));
}

TEST_CASE("who left says nothing, and what was sent in one arm alone is not compared") {
    repeat_data mine = answered_with({"one", "two", "three"});
    repeat_data its = answered_with({"one", "two"}, run_variant::baseline);
    mine.records[0].status = request_status::left;
    mark_same_answers(mine, its);
    CHECK_FALSE(mine.records[0].same);
    CHECK(*mine.records[1].same);
    CHECK_FALSE(mine.records[2].same);
}

TEST_CASE("where no answer has a hash, none is compared") {
    repeat_data mine = timelines::steady_repeat(50), its = mine;
    mark_same_answers(mine, its);
    for (const record& r : mine.records) CHECK_FALSE(r.same);
}

TEST_CASE("a first difference is counted in characters, and tokens up to it") {
    // Answers of 11 tokens each; the second differs after 2 of 4 characters, 4 of its 6 bytes.
    const repeat_data d = compared({"same", "\xC3\xA4\xC3\xB6xy"}, {"same", "\xC3\xA4\xC3\xB6zy"});
    CHECK(d.differences.places == vector<double>{2});
    CHECK(d.differences.tokens == doctest::Approx(11 + 11 * 4.0 / 6));
    REQUIRE(d.shown.size() == 1);
    CHECK(d.shown[0].index == 1);
    CHECK(d.shown[0].same_characters == 2);
    // A character is not cut, and one text may be the beginning of the other.
    CHECK(parting_of("a\xC3\xA4", "a\xC3\xB6").characters == 1);
    CHECK(parting_of("abc", "abcd").characters == 3);
    CHECK(parting_of("abc", "abcd").fraction == 1);
    CHECK(parting_of("", "a").characters == 0);
}

TEST_CASE("of answers whose texts were too many to keep the place of a difference is not known") {
    const repeat_data d = compared({"a", "b", "c"}, {"a", "x", "y"}, kept({"a", "b"}), kept({"a", "x"}));
    CHECK(d.differences.places == vector<double>{0});
    CHECK(d.differences.without_place == 1);
    measurements e;
    e.candidate = {d, d};
    verdict_numbers v;
    v.objective.statistic = same;
    v.outcome = verdict::fail;
    v.limit = 0.9;
    const std::string words = described(answers_differ(e, same, 2), v);
    CAPTURE(words);
    CHECK(holds(words, "4 of 6 answers differ, the first difference after 0 characters (median)"));
    CHECK(holds(words, "of 2 the place is not known: their texts were too many to keep"));
}

TEST_CASE("a server agrees with itself as often as two of its repeats do") {
    const auto repeat = [](const vector<std::string>& texts) {
        return compared(texts, vector<std::string>(texts.size(), "x"));
    };
    const repeat_list variant{repeat({"a", "b", "c", "d"}), repeat({"a", "b", "y", ""}),
                          repeat({"a", "z", "c", ""})};
    // Of three pairs of repeats: 3, 1, 1 and none, for what failed agrees with nothing.
    CHECK(own_agreement(variant, 3, same) == doctest::Approx(5.0 / 12));
    CHECK(own_agreement(variant, 2, same) == doctest::Approx(2.0 / 4));
    CHECK(std::isnan(own_agreement(variant, 1, same)));
    measurements e;
    e.candidate = variant;
    verdict_numbers v;
    v.objective.statistic = same;
    v.outcome = verdict::inconclusive;
    v.limit = 0.9;
    CHECK(holds(described(answers_differ(e, same, 3), v),
                "the server's own repeats agree on 41.7 %, and no limit above that can be met"));
    v.limit = 0.3;
    CHECK_FALSE(holds(described(answers_differ(e, same, 3), v), "no limit"));
}

TEST_CASE("all that was generated is kept, whichever API brings it, without the ids of calls") {
    const auto said = [](api_format api, const std::string& body, bool streamed = true) {
        body_reader r;
        r.reset(traits_of(api), {.is_streamed = streamed, .is_kept = true});
        r.feed(body, [](const stream_event&) {});
        if (!streamed) r.end([](const stream_event&) {});
        return r.said().joined();
    };
    const auto event = [](const std::string& json) { return "data: " + json + "\n\n"; };
    const auto delta = [&](const std::string& d) {
        return event(R"({"choices":[{"index":0,"delta":)" + d + R"(,"finish_reason":null}]})");
    };
    const std::string all = "so\x1E" "Hi\x1F\nlook{\"a\":1}";
    CHECK(said(openai_chat, delta(R"({"reasoning_content":"so","reasoning":"so"})") +
                                delta(R"({"content":"Hi"})") +
                                delta(R"({"tool_calls":[{"index":0,"id":"t1","type":"function",)"
                                      R"("function":{"name":"look","arguments":""}}]})") +
                                delta(R"({"tool_calls":[{"index":0,"function":{"arguments":)"
                                      R"("{\"a\":1}"}}]})")) == all);
    CHECK(said(openai_chat, R"({"choices":[{"index":0,"message":{"content":"Hi","reasoning":"so",)"
                            R"("tool_calls":[{"id":"t2","function":{"name":"look",)"
                            R"("arguments":"{\"a\":1}"}}]}}],"usage":{"completion_tokens":3}})",
               false) == all);
    CHECK(said(openai_chat, delta(R"({"content":null,"refusal":"No."})")) == "No.");
    CHECK(said(anthropic,
               event(R"({"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"so"}})") +
                   event(R"({"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}})") +
                   event(R"({"type":"content_block_start","content_block":{"type":"tool_use","id":"t",)"
                         R"("name":"look","input":{}}})") +
                   event(R"({"type":"content_block_delta","delta":{"type":"input_json_delta",)"
                         R"("partial_json":"{\"a\":1}"}})")) == "so\x1EHi\x1F\nlook{}{\"a\":1}");
    CHECK(said(openai_responses,
               event(R"({"type":"response.reasoning_text.delta","delta":"so"})") +
                   event(R"({"type":"response.output_text.delta","delta":"Hi"})") +
                   event(R"({"type":"response.output_item.added","item":{"id":"f1","call_id":"c1",)"
                         R"("type":"function_call","name":"look","arguments":""}})") +
                   event(R"({"type":"response.function_call_arguments.delta","item_id":"f1",)"
                         R"("delta":"{\"a\":1}"})")) == all);
    CHECK(said(ollama, R"({"message":{"thinking":"so","content":"Hi","tool_calls":[{"function":)"
                       R"({"name":"look","arguments":{"a":1}}}]}})" "\n") == all);
}

TEST_CASE("an excerpt has whole characters, and says where it was cut") {
    CHECK(excerpt("short", 10) == "short");
    CHECK(excerpt("0123456789abcdef", 4) == "0123...");
    CHECK(excerpt("0123456789abcdef", 4, 8) == "...6789...");
    CHECK(excerpt("0123456789abcdef", 4, 16) == "...cdef");
    CHECK(excerpt("\xC3\xA4\xC3\xA4\xC3\xA4", 3) == "\xC3\xA4...");
    CHECK(excerpt("\x80\x80\x80\x80", 2, 4).size() <= 10);
    CHECK(excerpt("thought\x1Esaid\x1F\nlook{}", 100) == "thought\n\n[answer] said\n\n[calls] \nlook{}");
}

TEST_CASE("a hash survives its line, and no other text passes for one") {
    record r = timelines::answered(0, 50).record();
    r.id = "11bbec40-0000-8c00-8000-000000000001";
    r.answer_hash = 0xFEDCBA9876543210ull;
    std::string gate = "g";
    CHECK(read_record(record_json(r, gate), gate).answer_hash == r.answer_hash);
    r.answer_hash = 0;
    CHECK_FALSE(holds(record_json(r, gate), "answer_hash"));
    for (const char* digits : {"", "12", "zedcba9876543210", "0123456789abcdef0"})
        CHECK(hash_in(digits) == 0);
    CHECK(answer_hash("") != 0);
    CHECK(answer_hash("a") != answer_hash("b"));
}
