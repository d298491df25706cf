// What counts as output, what a usage may hold, and when output came as a lump.
#include "core/answers/answer_reader.hpp"
#include "core/judging/server.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/request_log.hpp"
#include "support/timelines.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;

namespace {

usage_counts usage(const char* json) {
    json_reader reader;
    const json_view* v = reader.read(json);
    REQUIRE(v);
    usage_counts u;
    read_usage(*v, u);
    return u;
}
/// So many events of one word each, of which some are reasoning.
streamed_content streamed(int events, int reasoning = 0, int bytes_each = 5) {
    return {.events = events, .reasoning_events = reasoning, .bytes = events * bytes_each,
            .reasoning_bytes = reasoning * bytes_each, .first_tokens = 1, .first_bytes = bytes_each};
}
struct split {
    int prompt, output, hidden;
    bool operator==(const split&) const = default;
};
split split_of(const char* json, const streamed_content& s) {
    const token_counts t = tokens_of(usage(json), s);
    return {t.prompt, t.output, t.hidden};
}

}  // namespace

TEST_CASE("a total is the sum of prompt, completion and what is apart; only output that came counts") {
    const streamed_content thinks = streamed(40, 20), plain = streamed(40);
    // What the page of fields does not have (test_fields). Cached and written tokens apart: the prompt is longer.
    CHECK(split_of(R"({"prompt_tokens":12,"completion_tokens":40,"total_tokens":182,"cache_read_input_tokens":100,)"
                   R"("cache_creation_input_tokens":30})", thinks) == split{142, 40, 0});
    // Sound and a rejected prediction apart.
    for (const char* apart : {R"("completion_tokens_details":{"audio_tokens":120})",
                              R"("completion_tokens_details":{"rejected_prediction_tokens":120})"}) {
        CAPTURE(apart);
        const std::string json =
            R"({"prompt_tokens":12,"completion_tokens":40,"total_tokens":172,)" + std::string(apart) + "}";
        CHECK(split_of(json.c_str(), thinks) == split{12, 40, 0});
    }
    // Reasoning apart counts if it was streamed, and the text bears it.
    const char* xai = R"({"prompt_tokens":12,"completion_tokens":20,"total_tokens":52,)"
                      R"("completion_tokens_details":{"reasoning_tokens":20}})";
    CHECK(split_of(xai, plain) == split{12, 20, 0});
    const char* much = R"({"prompt_tokens":12,"completion_tokens":20,"total_tokens":632,)"
                       R"("completion_tokens_details":{"reasoning_tokens":600}})";
    CHECK(split_of(much, thinks) == split{12, 20, -1});
    CHECK(split_of(much, streamed(20)) == split{12, 20, 0});
    // Of Gemini, whose total alone has the thoughts.
    const char* gemini = R"({"prompt_tokens":12,"completion_tokens":20,"total_tokens":52})";
    CHECK(split_of(gemini, thinks) == split{12, 40, 0});
    CHECK(split_of(gemini, plain) == split{12, 20, 0});
    // What may be either is not counted.
    CHECK(split_of(R"({"prompt_tokens":12,"completion_tokens":20,"total_tokens":52,"reasoning_tokens":20,)"
                   R"("cached_tokens":20})", thinks) == split{32, 20, 0});
}

TEST_CASE("parts of the completion that never come as text are hidden") {
    const char* prediction = R"({"prompt_tokens":9,"completion_tokens":100,"total_tokens":109,)"
                             R"("completion_tokens_details":{"accepted_prediction_tokens":5,)"
                             R"("rejected_prediction_tokens":60,"audio_tokens":0,"reasoning_tokens":0}})";
    CHECK(split_of(prediction, streamed(40)) == split{9, 100, 60});
    CHECK(split_of(R"({"prompt_tokens":9,"completion_tokens":100,"completion_tokens_details":)"
                   R"({"audio_tokens":50,"image_tokens":10}})", streamed(40)) == split{9, 100, 60});
    CHECK(split_of(R"({"prompt_tokens":9,"completion_tokens":100,"prompt_tokens_details":)"
                   R"({"audio_tokens":7,"image_tokens":3}})", streamed(100)) == split{9, 100, 0});
    CHECK(split_of(R"({"prompt_tokens":9,"completion_tokens":100,"completion_tokens_details":)"
                   R"({"reasoning_tokens":30,"rejected_prediction_tokens":30}})", streamed(40)) ==
          split{9, 100, 60});
    for (const char* part : {"rejected_draft_tokens", "video_tokens"}) {
        CAPTURE(part);
        const std::string json = R"({"prompt_tokens":9,"completion_tokens":100,"completion_tokens_details":{")" +
                                 std::string(part) + R"(":60}})";
        CHECK(split_of(json.c_str(), streamed(40)) == split{9, 100, 60});
    }
    // What is neither text nor reasoning.
    CHECK(split_of(R"({"completion_tokens":100,"completion_tokens_details":{"text_tokens":40}})", streamed(40)).hidden == 60);
    CHECK(split_of(R"({"completion_tokens":100,"completion_tokens_details":{"text_tokens":40,"reasoning_tokens":60}})",
                   streamed(100, 60)).hidden == 0);
    CHECK(split_of(R"({"completion_tokens":100,"completion_tokens_details":{"text_tokens":40}})",
                   streamed(100, 60)).hidden == 0);
    CHECK(split_of(R"({"completion_tokens":100,"completion_tokens_details":{"text_tokens":0}})", streamed(100)).hidden == 0);
    // In more events than tokens: split anew, or apart, which a total would tell.
    CHECK(split_of(prediction, streamed(80)).hidden == -1);
    CHECK(split_of(R"({"prompt_tokens":9,"completion_tokens":100,"total_tokens":109,"reasoning_tokens":60})",
                   streamed(80)).hidden == -1);
    CHECK(split_of(R"({"prompt_tokens":9,"completion_tokens":40,"reasoning_tokens":30})", streamed(40)) ==
          split{9, 40, 0});
    CHECK(split_of(R"({"prompt_tokens":9,"completion_tokens":30,"total_tokens":99,"completion_tokens_details":)"
                   R"({"rejected_prediction_tokens":60}})", streamed(40)) == split{9, 30, 0});
    // A zero is no proof that nothing is hidden: the text must bear the tokens.
    CHECK(split_of(R"({"completion_tokens":140,"completion_tokens_details":{"reasoning_tokens":0}})",
                   streamed(40)).hidden == -1);
    CHECK(split_of(R"({"completion_tokens":95,"completion_tokens_details":{"reasoning_tokens":0}})",
                   streamed(40)).hidden == 0);
    // Encrypted thought of unknown length.
    streamed_content encrypted = streamed(40);
    encrypted.hides_thought = true;
    CHECK(split_of(R"({"completion_tokens":95})", encrypted).hidden == -1);
    CHECK(split_of(R"({"completion_tokens":42})", encrypted).hidden == 0);
    CHECK(split_of(R"({"completion_tokens":95,"reasoning_tokens":55})", encrypted).hidden == 55);
    // A summary, of which two bytes are no token.
    streamed_content summary = streamed(60, 20);
    summary.reasoning_events = 4;
    CHECK(split_of(R"({"completion_tokens":260,"reasoning_tokens":220})", summary).hidden == -1);
    summary.is_counted = true;
    CHECK(split_of(R"({"completion_tokens":260,"reasoning_tokens":220})", summary).hidden == 0);
}

TEST_CASE("a zero replaces no count, and what is no number is none") {
    usage_counts so_far = usage(R"({"prompt_tokens":25,"completion_tokens":1,"cached_tokens":20})");
    note_usage(so_far, usage(R"({"prompt_tokens":0,"completion_tokens":15,"cached_tokens":0})"));
    CHECK(so_far.prompt_tokens == 25);
    CHECK(so_far.completion_tokens == 15);
    CHECK(so_far.cached_tokens == 20);
    CHECK(usage(R"({"prompt_tokens":0,"cached_tokens":0})").cached_tokens == 0);
    for (const char* none : {"[]", "null", "7", "{}", R"({"prompt_tokens":"null","completion_tokens":"None"})",
                             R"({"prompt_tokens":-3,"x":{"prompt_tokens":9}})",
                             R"({"prompt_tokens_details":{"prompt_tokens":9}})"})
        CHECK(usage(none).prompt_tokens == -1);
}

TEST_CASE("a lump is what came before it can have been generated, by its bytes") {
    const auto at_once = [](vector<std::uint32_t> bytes, const vector<std::uint32_t>& gaps_ms, int tokens,
                            int first = 1) {
        vector<std::uint32_t> us;
        for (const std::uint32_t ms : gaps_ms) us.push_back(ms * 1000);
        return tokens_at_once(bytes, us, tokens, first);
    };
    const vector<std::uint32_t> steady(40, 10);
    vector<std::uint32_t> lump(41, 5);
    CHECK(at_once(lump, steady, 41) == 0);
    lump[0] = 1000;
    CHECK(at_once(lump, steady, 240) == 199);
    CHECK(at_once(lump, steady, 240, 200) == 0);  // as the server says
    // In the second event, as fast as any other.
    vector<std::uint32_t> second(42, 5), steadily(41, 10);
    second[1] = 1000;
    CHECK(at_once(second, steadily, 241) > 190);
    // After a pause that was long enough for it.
    steadily[0] = 2000;
    CHECK(at_once(second, steadily, 241) == 0);
    // A long token, and a server that stops for 9 s, slows down, or sends several tokens each time.
    lump[0] = 30;
    CHECK(at_once(lump, steady, 46) == 0);
    lump[0] = 5;
    vector<std::uint32_t> stops = steady, slower = steady;
    stops[30] = 9000;
    for (std::size_t i = 20; i < 40; ++i) slower[i] = 30;
    CHECK(at_once(lump, stops, 41) == 0);
    CHECK(at_once(lump, slower, 41) == 0);
    CHECK(at_once(vector<std::uint32_t>(41, 200), steady, 41 * 40) == 0);
    vector<std::uint32_t> drafts(41, 5);
    for (std::size_t i = 1; i < 41; i += 3) drafts[i] = 40;
    CHECK(at_once(drafts, steady, 139) == 0);
    // A flush in many events, of which the first read has few.
    vector<std::uint32_t> flushed(199, 0);
    flushed.insert(flushed.end(), steady.begin(), steady.end());
    CHECK(at_once(vector<std::uint32_t>(240, 5), flushed, 240) == 199);
    flushed[7] = 1;
    CHECK(at_once(vector<std::uint32_t>(240, 5), flushed, 240) > 190);
    // Bursts all along are a pace.
    vector<std::uint32_t> bursts;
    for (int i = 0; i < 39; ++i) bursts.push_back(i % 5 == 4 ? 50 : 0);
    CHECK(at_once(vector<std::uint32_t>(40, 5), bursts, 40) == 0);
    CHECK(at_once({}, {}, 5) == 0);
    CHECK(at_once({0, 0}, {10}, 5) == 0);
    CHECK(at_once({5, 5}, {0}, 5) == 0);
}

TEST_CASE("an answer that begins with a lump begins in a burst, though in one event") {
    request q(0);
    const auto text = [](int bytes) {
        stream_event e;
        e.take(std::string(static_cast<std::size_t>(bytes), 'a'));
        return e;
    };
    q.event(2000, text(1000));
    for (int i = 1; i <= 40; ++i) q.event(2000 + 10 * i, text(5));
    const record r = q.finish(2400).usage(2400, 10, 240).done(2400).record();
    CHECK(r.tokens_at_once == 199);
    CHECK(begins_in_a_burst(r));
    CHECK(hidden_s(r) == doctest::Approx(1.99).epsilon(0.02));
    CHECK_FALSE(begins_in_a_burst(answered(0, 900, 20).record()));
}

TEST_CASE("words for nothing are nothing, but a model may say them") {
    for (const char* nothing : {"", "null", "None", "none", "NIL", "undefined", " ", "NaN"}) {
        CAPTURE(nothing);
        CHECK(is_nothing(nothing));
        CHECK(finish_reason_of(nothing) == "");
        const std::string said = "{\"error\":\"" + std::string(nothing) + "\",\"detail\":\"" + nothing + "\"}";
        json_reader reader;
        const json_view* v = reader.read(said);
        REQUIRE(v);
        CHECK(error_message(*v) == "");
    }
    for (const char* something : {"stop", "nullable", "0", "no"}) CHECK_FALSE(is_nothing(something));
    CHECK(finish_reason_of("SAFETY") == "SAFETY");
}
