// Spans of OpenTelemetry's GenAI conventions as sessions: what a call goes on from, waits for and shares.
#include "support/recordings.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace recordings;

namespace {

/// Of files that are read one after the other.
converted_corpus read(const vector<std::string>& files) { return recordings::read("otel", files); }
std::string refusal(const std::string& text) {
    return texts::refusal_of([&] { read({text}); });
}

std::string replaced(std::string s, const std::string& what, const std::string& with) {
    for (std::size_t at = 0; (at = s.find(what, at)) != std::string::npos; at += with.size())
        s.replace(at, what.size(), with);
    return s;
}
/// Messages by names: "u1" is a user's, "a1" an assistant's, of 100 letters.
std::string messages(const std::string& names, const std::string& more = "") {
    std::string all;
    for (std::size_t at = 0; at < names.size(); at += 3)
        all += (all.empty() ? "" : ",") + std::string(R"({"role":")") +
               (names[at] == 'a' ? "assistant" : "user") +
               R"(","parts":[{"type":"text","content":")" + names.substr(at, 2) +
               std::string(98, '.') + "\"}]" + more + "}";
    return "[" + all + "]";
}
std::string as_text(const std::string& json) {
    return '"' + replaced(json, "\"", "\\\"") + '"';
}
/// A span as a console exporter prints it, from second `at` to `end` of a minute.
std::string span(double at, double end, const std::string& input, const std::string& output,
                 int tokens, const std::string& more = "", const std::string& trace = "t1") {
    static int id = 0;
    const auto time = [](double s) { return printed("\"2026-03-01T10:00:%09.6fZ\"", s); };
    return R"({"name":"chat m","context":{"trace_id":")" + trace + R"(","span_id":")" +
           std::to_string(++id) + R"("},"parent_id":null,"start_time":)" + time(at) +
           R"(,"end_time":)" + time(end) + R"(,"attributes":{"gen_ai.operation.name":"chat",)" +
           R"("gen_ai.request.model":"m","gen_ai.usage.input_tokens":)" + std::to_string(tokens) +
           R"(,"gen_ai.usage.output_tokens":7,"gen_ai.input.messages":)" +
           as_text(messages(input)) + R"(,"gen_ai.output.messages":)" +
           as_text(messages(output, R"(,"finish_reason":"stop")")) + more + "}}\n";
}
/// Nanoseconds since 1970 of so many after 2026-03-01T10:00:00Z.
std::string since_1970(const std::string& ns) {
    return std::to_string(1772359200000000000 + std::stoll(ns));
}
/// The same in OTLP's JSON, from nanosecond to nanosecond.
std::string otlp(const std::string& from_ns, const std::string& to_ns, const std::string& input,
                 const std::string& output, const std::string& id, const std::string& parent = "",
                 const std::string& does = "chat") {
    return R"({"traceId":"t1","spanId":")" + id + R"(","parentSpanId":")" + parent +
           R"(","startTimeUnixNano":")" + since_1970(from_ns) + R"(","endTimeUnixNano":)" + since_1970(to_ns) +
           R"(,"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":")" + does +
           R"("}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":"40"}},)" +
           R"({"key":"gen_ai.input.messages","value":{"stringValue":)" + as_text(messages(input)) +
           R"(}},{"key":"gen_ai.output.messages","value":{"stringValue":)" +
           as_text(messages(output)) + "}}]}";
}

}  // namespace

TEST_CASE("spans: a fan-out is joined by who quotes the answer before it") {
    // The first call spawns two helpers that overlap, and is gone on with behind both.
    const session_corpus c =
        read({span(7, 8, "u1 a1 u4", "a4", 90) + span(2.5, 6, "u2", "a2", 40) +
              span(3, 5, "u3", "a3", 50) + span(0, 2, "u1", "a1", 30)});
    REQUIRE(c.steps.size() == 4);
    CHECK(c.models[step(c, 0).model] == "m");
    CHECK(after(c, 1) == step_list{0});
    CHECK(after(c, 2) == step_list{0});
    CHECK(after(c, 3) == step_list{0, 1, 2});
    CHECK(step(c, 1).wait_s == doctest::Approx(0.5));
    CHECK(step(c, 3).wait_s == doctest::Approx(1));  // the server's time is not in it
    CHECK(step(c, 3).prompt.kept == 30);
    CHECK(step(c, 3).prompt.tokens == 90);
    CHECK(step(c, 3).output_tokens == 7);
    CHECK(step(c, 3).turn == 1);
    CHECK(step(c, 1).depth == 1);
}

TEST_CASE("spans: of a call and its retry the one is gone on from whose answer is quoted") {
    const auto two = [](const std::string& quoted) {
        return read({span(0, 1, "u1", "a1", 30) + span(2, 4, "u1", "a2", 30) +
                     span(6, 7, "u1 " + quoted + " u2", "a3", 90)});
    };
    CHECK(after(two("a2"), 1) == step_list{0});
    CHECK(step(two("a2"), 1).wait_s == doctest::Approx(1));
    CHECK(step(two("a2"), 1).prompt.kept == 30);
    CHECK(after(two("a2"), 2) == step_list{1});
    CHECK(after(two("a1"), 2) == step_list{0, 1});  // goes on from the first, and the retry had ended
    CHECK(after(two("a9"), 2)[0] == 0);         // quotes none: of the longest in common the earliest
}

TEST_CASE("spans: a history that was cut is known by the answer that it quotes, and shares nothing") {
    const session_corpus c =
        read({span(0, 1, "u1", "a1", 30) + span(2, 3, "u1 a1 u2", "a2", 90) +
              span(4, 5, "u7", "a7", 20) + span(6, 7, "u9 a2 u3", "a3", 80)});
    CHECK(after(c, 3)[0] == 1);
    CHECK(step(c, 3).prompt.kept == 0);
}

TEST_CASE("spans: who goes on while a call is under way does not wait for it") {
    const session_corpus c =
        read({span(0, 9, "u1", "a1", 30) + span(1, 2, "u1 a1 u2", "a2", 90)});
    CHECK(after(c, 1) == step_list{});
    CHECK(step(c, 1).wait_s == doctest::Approx(1));
    CHECK(step(c, 1).prompt.kept == 30);
}

TEST_CASE("spans: traces are sessions with starts, share what they begin with, and meet in a conversation") {
    const std::string talk = R"(,"gen_ai.conversation.id":"k")";
    const std::string first = span(5, 6, "u1 u2", "a1", 60, "", "t1"),
                      second = span(9, 10, "u1 u3", "a2", 70, "", "t2");
    const session_corpus two = read({first, second});
    REQUIRE(two.sessions.size() == 2);
    CHECK(two.sessions[1].start_s - two.sessions[0].start_s == doctest::Approx(4));
    CHECK(two.sessions[0].start_s == doctest::Approx(1772359205));  // 2026-03-01T10:00:05Z
    CHECK(step(two, 0, 1).prompt.kept == 30);  // one message of two alike
    CHECK(two.sessions[1].shares);
    const session_corpus one = read({span(5, 6, "u1 u2", "a1", 60, talk, "t1"),
                                     span(9, 10, "u1 u2 a1 u3", "a2", 120, talk, "t2") +
                                         span(9.5, 10, "u8", "a8", 10, "", "t2")});
    REQUIRE(one.sessions.size() == 1);
    CHECK(after(one, 1) == step_list{0});
    CHECK(step(one, 1).wait_s == doctest::Approx(3));
    CHECK(one.sessions[0].steps == 3);
}

TEST_CASE("spans in OTLP's JSON: a call that came twice, the span around it, and those of tools") {
    const std::string first = otlp("1000000000", "2000000000", "u1", "a1", "s1"),
                      around = otlp("900000000", "2100000000", "u1", "a1", "s0"),
                      inside = replaced(first, R"("parentSpanId":"")", R"("parentSpanId":"s0")"),
                      next = otlp("2500000000", "3000000000", "u1 a1 u2", "a2", "s2"),
                      tool = otlp("2100000000", "2400000000", "u1", "a1", "s3", "", "execute_tool");
    const auto file = [](const std::string& spans) {
        return R"({"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":[)" + spans + "]}]}]}\n";
    };
    for (const std::string& text : {file(next + "," + tool + "," + around + "," + inside + "," + inside),
                                    file(next) + file(first), first + "\n" + next}) {
        const session_corpus c = read({text});
        REQUIRE(c.steps.size() == 2);
        CHECK(after(c, 1) == step_list{0});
        CHECK(step(c, 1).wait_s == doctest::Approx(0.5));
        CHECK(step(c, 1).prompt.tokens == 40);
        // No span says how long the answers are: they are as long as as much text of the prompts.
        CHECK(step(c, 1).output_tokens == 20);
    }
}

TEST_CASE("spans: calls within a call are calls, and of one call told twice one is") {
    const auto within = [](const std::string& outer_input, const std::string& output, const std::string& usage) {
        return read({otlp("0", "9000000000", outer_input, output, "s0") + "\n" +
                     replaced(otlp("1000000000", "2000000000", "u1", "a1", "s1", "s0"), R"("40")", usage) + "\n" +
                     replaced(otlp("3000000000", "4000000000", "u2", "a2", "s2", "s0"), R"("40")", usage)});
    };
    CHECK(within("u7", "a7", R"("90")").steps.size() == 3);
    CHECK(within("u7", "a7", R"("90")").told.text().find("around") == std::string::npos);
    // The same messages, or the same tokens under other words.
    CHECK(within("u1", "a1", R"("90")").steps.size() == 2);
    CHECK(within("u7", "a7", R"("40")").steps.size() == 2);
    CHECK(within("u7", "a7", R"("40")").told.text().find("spans around one of the same call (1 row)") != std::string::npos);
}

TEST_CASE("spans: ids of zeros are none, and spans that no call is are counted by their kind") {
    std::string zeros;
    for (int i = 0; i < 4; ++i)
        zeros += replaced(otlp(std::to_string(i) + "000000000", std::to_string(i) + "500000000", "u1", "a1", "0000000000000000"),
                          R"("parentSpanId":"")", R"("parentSpanId":"0000000000000000")") + "\n";
    CHECK(read({zeros}).steps.size() == 4);
    const std::string good = span(0, 1, "u1", "a1", 30), failed = span(2, 2.5, "u1", "a1", 30);
    const auto without_answer = [&](const std::string& field, const std::string& value) {
        const std::string silent = replaced(failed, R"(,"gen_ai.usage.output_tokens":7)", "");
        return field == "status" ? replaced(silent, R"("parent_id":null)", R"("parent_id":null,"status":)" + value)
                                 : replaced(silent, R"("gen_ai.request.model":"m")", '"' + field + "\":" + value);
    };
    for (const std::string& refused :
         {without_answer("error.type", R"("429")"), without_answer("http.response.status_code", "429"),
          without_answer("status", R"({"status_code":"ERROR"})"), without_answer("status", R"({"code":2})"),
          without_answer("status", R"({"code":"STATUS_CODE_ERROR"})")}) {
        const converted_corpus c = read({good + refused});
        CHECK(c.steps.size() == 1);
        CHECK(c.told.text() == "left out: failed calls (1 row)");
    }
    CHECK(read({good + replaced(failed, R"("parent_id":null)", R"("status":{"code":2})")}).steps.size() == 2);  // it answered
    std::string others;
    for (const char* does : {"execute_tool", "execute_tool", "invoke_agent", "embeddings"})
        others += replaced(failed, R"(:"chat")", R"(:")" + std::string(does) + '"');
    for (const char* does : {"responses", "completion", "messages"})
        others += replaced(span(4, 5, "u1", "a1", 30), R"(:"chat")", R"(:")" + std::string(does) + '"');
    others += R"({"traceId":"t1","spanId":"9","name":"GET","attributes":[]})";
    CHECK(read({good + others}).steps.size() == 4);
    CHECK(read({good + others}).told.text() == "left out: spans of embeddings (1 row), spans of execute_tool (2 rows), "
                                               "spans of invoke_agent (1 row), spans without an operation (1 row)");
}

TEST_CASE("spans: exports of other shapes, units and zones are read alike") {
    const std::string one = otlp("0", "1000000000", "u1", "a1", "s1"), two = otlp("11000000000", "12000000000", "u1 a1 u2", "a2", "s2");
    const auto file = [&](const char* resource, const char* scope) {
        return std::string("{\"") + resource + "\":[{\"" + scope + "\":[{\"spans\":[" + one + "," + two + "]}]}]}";
    };
    vector<std::string> all = {file("resourceSpans", "scopeSpans"), file("resourceSpans", "instrumentationLibrarySpans"),
                               file("batches", "scopeSpans"), file("resource_spans", "scope_spans"), "[" + one + "," + two + "]"};
    for (const char* unit : {"", "000", "000000", "000000000"}) {  // s, ms, us, ns
        const auto number = [&](const char* s) { return s + std::string(unit); };
        std::string in_unit = span(0, 1, "u1", "a1", 40) + span(11, 12, "u1 a1 u2", "a2", 40);
        for (const char* s : {"00", "01", "11", "12"})
            in_unit = replaced(in_unit, "\"2026-03-01T10:00:" + std::string(s) + ".000000Z\"",
                               number(std::to_string(1772359200 + std::stoi(s)).c_str()));
        all.push_back(in_unit);
    }
    all.push_back(replaced(span(0, 1, "u1", "a1", 40), "T10:00:0", "T12:00:0") + span(11, 12, "u1 a1 u2", "a2", 40));
    all.back() = replaced(replaced(all.back(), "T12:00:00.000000Z", "T12:00:00+02:00"), "T12:00:01.000000Z", "T04:30:01-0530");
    for (const std::string& text : all) {
        const session_corpus c = read({text});
        REQUIRE(c.steps.size() == 2);
        CHECK(c.sessions[0].start_s == doctest::Approx(1772359200));
        CHECK(step(c, 1).wait_s == doctest::Approx(10));
        CHECK(after(c, 1) == step_list{0});
    }
}

TEST_CASE("spans: cached tokens are input, and missing numbers are told") {
    const auto tokens = [](const std::string& more) { return step(read({span(0, 1, "u1", "a1", 30, more)}), 0).prompt.tokens; };
    CHECK(tokens("") == 30);
    CHECK(tokens(R"(,"gen_ai.usage.cache_read.input_tokens":20)") == 30);     // as the convention says
    CHECK(tokens(R"(,"gen_ai.usage.cache_read_input_tokens":500)") == 530);  // they cannot be of them
    CHECK(tokens(R"(,"gen_ai.usage.cache_read_input_tokens":500,"gen_ai.usage.cache_creation_input_tokens":70)") == 600);
    CHECK(tokens(R"(,"gen_ai.usage.cache_read_input_tokens":20,"llm.usage.total_tokens":57)") == 50);
    CHECK(read({span(0, 1, "u1", "a1", 30) + replaced(span(2, 3, "u1", "a1", 0), R"("gen_ai.usage.output_tokens":7)", R"("x":0)")})
              .told.text() == "left out: missing numbers of tokens, which are estimated from texts (2 rows)");
}

TEST_CASE("spans: structured messages, and those that older conventions keep in events, are the same") {
    const std::string later = span(3, 4, "u1 a1 u2", "a2", 90);
    const std::string text = as_text(messages("u1 "));
    const std::string events =
        R"({"trace_id":"t1","start_time":"2026-03-01 10:00:00","end_time":"2026-03-01 10:00:01","attributes":{"gen_ai.usage.prompt_tokens":30,"gen_ai.usage.completion_tokens":5},)"
        R"("events":[{"name":"gen_ai.content.prompt","attributes":{"gen_ai.prompt":)" + text +
        R"(}},{"name":"gen_ai.content.completion","attributes":{"gen_ai.completion":)" +
        as_text(messages("a1 ")) + "}}]}\n";
    const std::string structured = replaced(span(0, 1, "u1", "a1", 30), text, messages("u1 "));
    const std::string otlp_list = replaced(
        otlp("0", "1000000000", "u1", "a1", "s1"),
        R"({"stringValue":)" + text + "}",
        R"({"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"user"}},{"key":"parts","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"type","value":{"stringValue":"text"}},{"key":"content","value":{"stringValue":"u1)" +
            std::string(98, '.') + R"("}}]}}]}}}]}}]}})");
    REQUIRE(structured.find(text) == std::string::npos);
    REQUIRE(otlp_list.find(text) == std::string::npos);
    for (const std::string& first : {events, structured, otlp_list}) {
        const session_corpus c = read({first + later});
        REQUIRE(c.steps.size() == 2);
        CHECK(after(c, 1) == step_list{0});
        CHECK(step(c, 1).wait_s == doctest::Approx(2));
        CHECK(step(c, 1).prompt.kept == step(c, 0).prompt.tokens);
    }
}

TEST_CASE("spans that are no calls of a session are refused by file, line and field") {
    const std::string good = span(0, 1, "u1", "a1", 30);
    CHECK(refusal(good + replaced(good, "gen_ai.input.messages", "x")) ==
          "x.json:2: gen_ai.input.messages is null, the messages are needed: record them, which "
          "instrumentations do if asked");
    CHECK(refusal(good + replaced(good, "2026-03-01T10:00:00", "yesterday")) ==
          "x.json:2: start_time is \"yesterday.000000Z\", an ISO time, or seconds, ms, us or ns since 1970, from the "
          "years 2020 to 2039, are allowed");
    for (const char* of_1970 : {"1970-01-01T00:00:09Z", "900000000", "12", "5000000000", "3600000000000"})
        CHECK_REFUSED(refusal(replaced(good, "2026-03-01T10:00:00.000000Z", of_1970)), "x.json:1: start_time is ",
                      "from the years 2020 to 2039");
    CHECK(refusal(replaced(good, "end_time", "x")) == "x.json:1: endTimeUnixNano is null, a time is needed");
    CHECK(refusal(span(3, 1, "u1", "a1", 30)) == "x.json:1: the span ends 2 s before it starts");
    CHECK(refusal(replaced(good, R"("gen_ai.usage.input_tokens":30)", R"("gen_ai.usage.input_tokens":-1)")) ==
          "x.json:1: gen_ai.usage.input_tokens is -1, a whole number from 0 to 10000000 is allowed");
    const std::string in_otlp = otlp("1000", "2000", "u1", "a1", "1");
    for (const char* none : {"NaN", "nan", "inf", "-inf", "Infinity", "1e400", ""})
        CHECK(refusal(replaced(in_otlp, R"("intValue":"40")",
                               R"("intValue":")" + std::string(none) + '"')) ==
              "x.json:1: gen_ai.usage.input_tokens is \"" + std::string(none) +
                  "\", a whole number from 0 to 10000000 is allowed");
    for (const char* none : {"NaN", "inf"})
        CHECK(refusal(replaced(in_otlp, R"("startTimeUnixNano":"1772359200000001000")",
                               R"("startTimeUnixNano":")" + std::string(none) + '"')) ==
              "x.json:1: startTimeUnixNano is \"" + std::string(none) +
                  "\", an ISO time, or seconds, ms, us or ns since 1970, from the years 2020 to 2039, are allowed");
    CHECK(refusal(replaced(good, "gen_ai.usage.input_tokens", "x")) ==
          "x.json: no span of trace \"t1\" says gen_ai.usage.input_tokens");
    CHECK(refusal(replaced(good, R"(:"chat")", R"(:"execute_tool")")) ==
          "x.json: it holds no sessions; left out: spans of execute_tool (1 row)");
    CHECK(refusal(good + R"({"resourceSpans":7})") ==
          "x.json:2: no span of OpenTelemetry is so: it has traceId, trace_id or context.trace_id, and a file of OTLP "
          "resourceSpans");
}

TEST_CASE("spans: a session of 3,000 equal calls, and one of a deep history, are derived in time") {
    std::string equal, deep, history = "u0";
    for (int i = 0; i < 3000; ++i)
        equal += otlp(std::to_string(i) + "0000000", std::to_string(i) + "5000000", "u1 a1 u1", "a1",
                      "e" + std::to_string(i)) + "\n";
    CHECK(read({equal}).steps.size() == 3000);
    for (int i = 0; i < 300; ++i) {
        deep += otlp(std::to_string(i) + "0000000", std::to_string(i) + "5000000", history, "a1",
                     "d" + std::to_string(i)) + "\n";
        history += " a1 u" + std::to_string(i % 10);
    }
    const session_corpus c = read({deep});
    REQUIRE(c.steps.size() == 300);
    CHECK(after(c, 299)[0] == 298);
}
