// Events that come together and are alike are taken together: what an answer comes to is what it comes to byte by byte, where
// none of them is whole in a read.
#include "llmbench.hpp"
#include "core/base/vector.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/answers/timeline.hpp"
#include "core/dialects/stream_event.hpp"
#include "core/dialects/table.hpp"
#include "core/stored/record_json.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

constexpr long long ms = 1'000'000;

/// All that an answer comes to.
struct heard {
    std::string record{}, said{};
    vector<std::uint32_t> gaps{};
    int events = 0;
    request_status status = request_status::unsent;
    bool operator==(const heard&) const = default;
};
heard heard_by(const answer_reader& reader) {
    heard h;
    record r;
    reader.timeline().write_to(r);
    h.record = record_json(r, "");
    h.said = reader.said().joined();
    h.events = r.events;
    h.status = r.status;
    reader.timeline().gaps_us().for_each_block([&](const vector<std::uint32_t>& b) { h.gaps.append(b.begin(), b.end()); });
    return h;
}
/// The answer up to `cut`, and 7 ms later the rest; at most so many bytes in a read.
heard read_in(const api_traits& api, const std::string& bytes, std::size_t cut, std::size_t most) {
    answer_reader reader;
    reader.reset(api, {.expects_usage = true, .is_kept = true});
    constexpr long long now = 1000 * ms;
    for (std::size_t from = 0; from < bytes.size() && !reader.finished();) {
        const std::size_t to = std::min(from + most, from < cut ? cut : bytes.size());
        const vector<char> piece(bytes.data() + from, bytes.data() + to);  // reading past it is seen
        reader.feed({piece.data(), piece.size()}, now + (from < cut ? 0 : 7 * ms));
        from = to;
    }
    if (!reader.finished()) reader.end_of_input(now + 9 * ms);
    return heard_by(reader);
}

/// An event of an API, where @ is a text and # a number that grows, and what ends the answer.
struct shape {
    const char* api;
    std::string event, end;
};
const std::string chat_end = R"(data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":20}})"
                             "\n\ndata: [DONE]\n\n";
std::string chat(const std::string& delta, const std::string& more = "", const std::string& line_end = "\n") {
    return R"(data: {"id":"c1","created":17,"choices":[{"index":0,"delta":{)" + delta + R"(},"finish_reason":null}])" + more + "}" +
           line_end + line_end;
}
const shape shapes[] = {
    {"openai_chat", chat(R"("content":"@")"), chat_end},
    {"openai_chat", chat(R"("content":"@")", "", "\r\n"), chat_end},
    {"openai_chat", ": hello\n\n" + chat(R"("content":"@")"), chat_end},
    {"openai_chat", chat(R"("content":"@")", R"(,"obfuscation":"@@")"), chat_end},
    {"openai_chat", chat(R"("reasoning":"@","reasoning_content":"@")"), chat_end},
    {"openai_chat", chat(R"("reasoning":"@","content":"@")"), chat_end},
    {"openai_chat", chat(R"("content":"@")", R"(,"usage":{"prompt_tokens":8,"completion_tokens":#,"total_tokens":1#})"), chat_end},
    {"openai_chat", chat(R"("content":"@","tool_calls":[{"function":{"name":"f","arguments":"@"}}])"), chat_end},
    {"openai_completions", "data: {\"choices\":[{\"index\":0,\"text\":\"@\",\"logprobs\":{\"content\":[#]}}]}\n\n", chat_end},
    {"anthropic",
     "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"@\"}}\n\n",
     "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":20}}\n\n"
     "data: {\"type\":\"message_stop\"}\n\n"},
    {"openai_responses",
     "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"@\",\"sequence_number\":#}\n\n",
     "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":8,\"output_tokens\":20}}}\n\n"},
    {"ollama", "{\"created_at\":\"#\",\"message\":{\"role\":\"assistant\",\"content\":\"@\"},\"done\":false}\n",
     "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":20,\"prompt_eval_count\":8}\n"},
    {"llama_cpp", "data: {\"content\":\"@\",\"tokens\":[#],\"stop\":false,\"tokens_predicted\":#}\n\n",
     "data: {\"content\":\"\",\"stop\":true,\"stop_type\":\"eos\",\"tokens_predicted\":20,\"tokens_evaluated\":8}\n\n"},
};

/// The events of an answer. Every `other`th one has a blank more than the rest, which makes it another frame.
vector<std::string> events_of(const shape& s, std::size_t other) {
    const char* const texts[] = {"a", " word", "\\n", "\xC3\xA9", "", "none", "x\\\"y", "longer words"};
    vector<std::string> all;
    int number = 7;
    for (const char* text : texts) {
        std::string event;
        for (const char c : s.event)
            if (c == '@') event += text;
            else if (c == '#') event += std::to_string(++number);
            else event += c;
        if (other > 0 && all.size() % other == 1) event.insert(event.find('{') + 1, " ");
        all.push_back(event);
    }
    all.push_back(s.end);
    return all;
}
std::string chunk(const std::string& data, const char* zeros = "", const char* extension = "") {
    char size[20];
    std::snprintf(size, sizeof size, *zeros ? "%zX" : "%zx", data.size());
    return zeros + std::string(size) + extension + "\r\n" + data + "\r\n";
}
const std::string chunked_head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The answer in each framing that servers and proxies give it.
vector<std::string> answers_of(const vector<std::string>& events, const char* type) {
    std::string body, single, upper, extended, threes, three, of_seven;
    for (std::size_t i = 0; i < events.size(); ++i) {
        body += events[i];
        three += events[i];
        single += chunk(events[i]);
        upper += chunk(events[i], "00");
        extended += chunk(events[i], "", i % 3 == 0 ? ";n=1" : "");
        if (i % 3 < 2 && i + 1 < events.size()) continue;
        threes += chunk(three);
        three.clear();
    }
    for (std::size_t i = 0; i < body.size(); i += 71) of_seven += chunk(body.substr(i, 71));
    const std::string begin = std::string("HTTP/1.1 200 OK\r\nContent-Type: ") + type + "\r\n", last = "0\r\n\r\n";
    const std::string head = begin + "Transfer-Encoding: chunked\r\n\r\n";
    return {head + single + last,
            head + upper + "0\r\nX-Trailer: 1\r\n\r\n",
            head + extended + last,
            head + threes + last,
            head + of_seven + last,
            head + chunk(body) + last,
            head + single,  // cut
            begin + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body,
            begin + "Connection: close\r\n\r\n" + body};
}

}  // namespace

TEST_CASE("an answer comes to the same in one read, in two, and byte by byte") {
    for (const shape& s : shapes) {
        const api_traits& api = *api_named(s.api);
        for (const std::size_t other : {0u, 2u}) {
            const vector<std::string> all =
                answers_of(events_of(s, other), api.framed == framing::lines ? "application/x-ndjson" : "text/event-stream");
            for (std::size_t i = 0; i < all.size(); ++i) {
                const std::string& bytes = all[i];
                CAPTURE(s.event);
                CAPTURE(i);
                CAPTURE(other);
                const heard whole = read_in(api, bytes, 0, bytes.size()), slow = read_in(api, bytes, 0, 1);
                CHECK(whole.record == slow.record);
                CHECK(whole == slow);
                CHECK(whole.events >= 7);
                const std::size_t step = other > 0 ? 29 : i == 0 ? 1 : i == 7 ? 5 : 29;
                for (std::size_t cut = 1; cut < bytes.size(); cut += step) {
                    const heard two = read_in(api, bytes, cut, bytes.size());
                    if (two.said != slow.said || two.events != slow.events) FAIL_CHECK("cut at " << cut);
                    if (cut % 131 == 1 && two != read_in(api, bytes, cut, 1)) FAIL_CHECK("cut at " << cut << ", with their times");
                }
            }
        }
    }
}

TEST_CASE("what is wrong in the middle of events that are alike is found where it is") {
    const api_traits& api = *api_named("openai_chat");
    const std::string good = chat(R"("content":"a")");
    const auto answer = [&](const std::string& bad) {
        return chunked_head + chunk(good) + chunk(good) + chunk(good) + bad + chunk(good) + chunk(chat_end) + "0\r\n\r\n";
    };
    const struct {
        std::string bad;
        request_status status;
        int events;
    } all[] = {{chunk(chat("\"content\":\"a\x01\"")), request_status::protocol, 3},
               {chunk(chat(R"("content":"a\x")")), request_status::protocol, 3},
               {chunk(chat(R"("content":"a)")), request_status::protocol, 3},
               {chunk(R"(data: {"error":{"message":"out of memory"}})" "\n\n"), request_status::server, 3},
               {chunk("error: out of memory\n\n"), request_status::server, 3},
               {chunk(good) + "x", request_status::protocol, 4},      // no end of a chunk
               {"0\r\n\r\n", request_status::truncated, 3},           // the end of the answer
               {chunk(chat_end), request_status::ok, 3},
               {chunk(good.substr(0, good.size() - 1)), request_status::protocol, 3},  // no blank line: two data are one
               {"", request_status::ok, 4}};
    for (const auto& one : all) {
        const std::string bytes = answer(one.bad);
        CAPTURE(bytes);
        const heard slow = read_in(api, bytes, 0, 1);
        const heard whole = read_in(api, bytes, 0, bytes.size());
        CHECK(whole.record == slow.record);
        CHECK(whole == slow);
        CHECK(whole.status == one.status);
        CHECK(whole.events == one.events);
    }
}

TEST_CASE("an answer without end is cut off at the same event, however it comes") {
    const std::string head = chunked_head + chunk(chat(R"("content":"a")"));
    const std::string event = chunk(chat("\"content\":\"" + std::string(8000, 'x') + "\""));
    std::string many;
    for (int i = 0; i < 32; ++i) many += event;
    const auto heard_of = [&](std::size_t most) {
        answer_reader reader;
        reader.feed(head, ms);
        for (int i = 0; i < 300 && !reader.timeline().ended(); ++i)
            for (std::size_t from = 0; from < many.size(); from += most) reader.feed(many.substr(from, most), 2 * ms + i);
        return heard_by(reader);
    };
    const heard whole = heard_of(many.size()), slow = heard_of(5000);  // less than one event
    CHECK(whole.events == 8390);  // 1 + 8389 * 8000 bytes are over 64 MiB, 8000 less are not
    CHECK(whole.record == slow.record);
    CHECK(whole == slow);
}

TEST_CASE("a timeline has room for as many events as cannot end it") {
    stream_timeline t;
    CHECK(t.room() == 1);  // the first one says more than others
    stream_event e;
    e.take("five!");
    e.note_if_alone();
    t.on_event(e, 1);
    CHECK(t.room() == (64 << 20) / stream_event::most_alike - 1);
    stream_event most;
    most.take(std::string((64 << 20) - 5 - 3 * stream_event::most_alike, 'x'));
    t.on_event(most, 2);
    CHECK(t.room() == 3);
    stream_event two;
    two.take(std::string(2 * stream_event::most_alike + 1, 'x'));
    t.on_event(two, 3);
    CHECK(t.room() == 1);
    t.fail(request_status::timeout, "late");
    CHECK(t.room() == 0);
}

TEST_CASE("events that came together count as one after the other at that time") {
    for (const bool reasons : {false, true}) {
        const auto event = [&](std::size_t bytes) {
            stream_event e;
            e.take(std::string(bytes, 'x'), reasons ? taken_as::thought : taken_as::text);
            e.note_if_alone();
            return e;
        };
        stream_timeline together, alone;
        long long now = 5 * ms;
        for (const std::size_t before : {0u, 1u, 2u, 1021u, 1022u, 1023u, 1024u, 3000u, 0u}) {
            const vector<std::uint32_t> sizes(before, 7);
            now += 3 * ms + 1;
            stream_event e = event(5);
            if (together.events() > 0) {
                e.before = {sizes.data(), sizes.size()};
                e.reasoning_before = reasons ? 7 * static_cast<int>(before) : 0;
                for (std::size_t i = 0; i < before; ++i) alone.on_event(event(7), now);
            }
            together.on_event(e, now);
            alone.on_event(event(5), now);
            record a, b;
            together.write_to(a);
            alone.write_to(b);
            CHECK(record_json(a, "") == record_json(b, ""));
            REQUIRE(together.gaps_us().size() == alone.gaps_us().size());
            for (std::uint64_t i = 0; i < alone.gaps_us().size(); ++i)
                if (together.gaps_us()[i] != alone.gaps_us()[i]) FAIL_CHECK("gap " << i);
        }
        CHECK(together.events() == 9 + 1 + 2 + 1021 + 1022 + 1023 + 1024 + 3000);
    }
}
