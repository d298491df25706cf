// Tokens without text, as the special ones that a model goes on with where its end is ignored: what
// of their times a stream tells, and what is made of the rest.
#include "llmbench.hpp"
#include "core/answers/timeline.hpp"
#include "core/judging/checks.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/stored/record_json.hpp"
#include "support/timelines.hpp"
#include "support/verdicts.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {

/// How a server shows a token that has no text.
enum class textless { nothing, empty_text, empty_delta };
/// 100 tokens, 10 ms each, from 100 ms on: the first `with_text` of them have text. The finish comes
/// with the last token.
struct silent_script {
    int with_text = 50;
    textless shows = textless::nothing;
    bool counts = false;         // running usage
    const char* text = " word";  // of a token
    int per_event = 1;
    double finish_after_ms = 0;  // behind the last token
};
constexpr int tokens = 100;

std::string usage_text(int n) {
    return R"({"prompt_tokens":10,"completion_tokens":)" + std::to_string(n) + "}";
}
std::string chunk_of(const std::string& delta, const char* reason, const std::string& usage) {
    return R"({"choices":[{"index":0,"delta":)" + delta + R"(,"finish_reason":)" + reason + "}]" +
           (usage.empty() ? "" : R"(,"usage":)" + usage) + "}";
}
request answer_of(const silent_script& s, double at = 0) {
    request q(at);
    q.says(at + 5, role_event);
    for (int i = s.per_event - 1; i < tokens; i += s.per_event) {
        const double ms = at + 100 + 10 * i;
        const std::string usage = s.counts ? usage_text(i + 1) : "";
        std::string text;
        for (int k = 0; k < s.per_event; ++k) text += s.text;
        if (i < s.with_text) q.says(ms, chunk_of(R"({"content":")" + text + "\"}", "null", usage));
        else if (s.shows == textless::empty_text)
            q.says(ms, chunk_of(R"({"content":""})", "null", usage));
        else if (s.shows == textless::empty_delta) q.says(ms, chunk_of("{}", "null", usage));
    }
    const double end = at + 100 + 10 * (tokens - 1) + s.finish_after_ms;
    q.says(end, chunk_of("{}", "\"length\"", s.counts ? usage_text(tokens) : ""));
    q.says(end, R"({"choices":[],"usage":)" + usage_text(tokens) + "}");
    return q.done(end);
}
repeat_data repeat_with(const silent_script& s, int n = 20) {
    vector<request> all;
    for (int i = 0; i < n; ++i) all.push_back(answer_of(s, 100.0 * i));
    return repeat_of(all);
}
measurement measured_with(const silent_script& s) {
    return measured({repeat_with(s), repeat_with(s), repeat_with(s)});
}

}  // namespace

TEST_CASE("tokens without text take their time, however the stream shows them") {
    for (const int with_text : {90, 50, 34})
        for (const textless shows :
             {textless::nothing, textless::empty_text, textless::empty_delta})
            for (const bool counts : {false, true}) {
                if (counts && shows == textless::nothing) continue;
                CAPTURE(with_text);
                CAPTURE(static_cast<int>(shows));
                CAPTURE(counts);
                const measurement m = measured_with({with_text, shows, counts});
                const record& r = m.candidate[0].records[0];
                CHECK(r.output_tokens == tokens);
                CHECK(r.events == (counts ? tokens : with_text));
                CHECK(value_of(mean(tpot), m.candidate[0]) == about(0.010));
                CHECK(value_of(mean(itl), m.candidate[0]) == about(0.010));
                CHECK(judged(m, mean(tpot) <= 7_ms).outcome == verdict::fail);
                CHECK(judged(m, mean(tpot) <= 11_ms).outcome == verdict::pass);
                CHECK(judged(m, p50(decode_speed) >= 140_tps).outcome == verdict::fail);
                CHECK(judged(m, mean(itl) <= 11_ms).outcome == verdict::pass);
            }
}

TEST_CASE("tokens without text need none: short words are no tokens that were never sent") {
    for (const bool counts : {false, true}) {
        const textless shows = counts ? textless::empty_text : textless::nothing;
        const measurement m = measured_with({50, shows, counts, "a"});
        CHECK(m.candidate[0].records[0].hidden_tokens == 0);
        CHECK(judged(m, mean(tpot) <= 11_ms).outcome == verdict::pass);
    }
}

TEST_CASE("one token more than the text, as the end of a turn, moves nothing") {
    const record r = answer_of({99}).record();
    CHECK(r.textless_ns == 0);
    CHECK(r.last_token_ns == at_ms(1080));
    // A finish that is late has no tokens where each one had its text.
    const record all = answer_of({.with_text = tokens, .finish_after_ms = 500}).record();
    CHECK(all.textless_ns == 0);
}

TEST_CASE("a finish that is late by more or less than tokens without text take is not told") {
    // Two tokens an event, and 400 ms behind the last of 100: those may all have come, or some not.
    const silent_script late{.with_text = tokens, .per_event = 2, .finish_after_ms = 400};
    const measurement m = measured_with(late);
    CHECK(is_untold_end(m.candidate[0].records[0]));
    CHECK(value_of(mean(tpot), m.candidate[0]) == about(1.380 / 99));
    CHECK(judged(m, mean(tpot) <= 15_ms).outcome == verdict::pass);
    CHECK(judged(m, mean(tpot) <= 9_ms).outcome == verdict::fail);
    const slo_verdict v = judged(m, mean(tpot) <= 12_ms);
    CHECK(v.outcome == verdict::invalid);
    CHECK(mentions(v.reason, "60 of 60 completed requests end long after their last text"));
    CHECK(mentions(v.reason, "options.continuous_usage"));
    // Against a baseline either may be the slower one.
    const auto pairs_with = [](const silent_script& mine, const silent_script& other) {
        measurement p;
        for (int i = 0; i < 4; ++i) {
            p.candidate.push_back(repeat_with(mine));
            p.baseline.push_back(repeat_with(other));
        }
        return judged(p, mean(tpot) <= 1.2 * baseline);
    };
    const silent_script usual{.with_text = tokens, .per_event = 2};
    CHECK(pairs_with(late, usual).outcome == verdict::invalid);
    CHECK(pairs_with(late, late).outcome == verdict::invalid);
    CHECK(pairs_with(usual, usual).outcome == verdict::pass);
    CHECK(pairs_with({.with_text = 50}, {.with_text = 50}).outcome == verdict::pass);
}

TEST_CASE("a record keeps for how long tokens went on without text, and no longer than its answer") {
    record r = answer_of({50}).record();
    CHECK(r.textless_ns == 500'000'000);
    std::string gate;
    record again = read_record(record_json(r, "chat"), gate);
    CHECK(again.textless_ns == r.textless_ns);
    r.textless_ns = r.end_ns - r.last_token_ns + 1;
    CHECK_THROWS_AS(read_record(record_json(r, "chat"), gate), std::invalid_argument);
}
