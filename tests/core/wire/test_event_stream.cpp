// Server-sent events.
#include "llmbench.hpp"
#include "core/base/vector.hpp"
#include "core/wire/event_stream.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

using events = vector<std::string>;  // "type|data" of each

events fed(event_stream_parser& p, const vector<std::string>& pieces) {
    events seen;
    for (const std::string& piece : pieces)
        p.feed(piece, [&](std::string_view type, std::string_view data) {
            seen.push_back(std::string(type) + "|" + std::string(data));
        });
    return seen;
}

/// The events of a stream, after checking that no way of cutting it gives any others.
events events_of(const std::string& s) {
    event_stream_parser p;
    const events whole = fed(p, {s});
    CHECK(p.feed("", [](std::string_view, std::string_view) {}));
    vector<std::string> bytes;
    for (std::size_t cut = 0; cut < s.size(); ++cut) {
        CAPTURE(cut);
        event_stream_parser q;
        CHECK(fed(q, {s.substr(0, cut), s.substr(cut)}) == whole);
        bytes.push_back(s.substr(cut, 1));
    }
    event_stream_parser q;
    CHECK(fed(q, bytes) == whole);
    return whole;
}

}  // namespace

TEST_CASE("an event is what a blank line ends") {
    CHECK(events_of("data: one\n\ndata: two\n\n") == events{"|one", "|two"});
    CHECK(events_of("").empty());
    CHECK(events_of("\n\n\n").empty());
}

TEST_CASE("lines end with LF, CR or both") {
    CHECK(events_of("data: one\r\ndata: more\r\n\r\ndata: two\r\n\r\n") ==
          events{"|one\nmore", "|two"});
    CHECK(events_of("data: one\rdata: more\r\rdata: two\r\r") == events{"|one\nmore", "|two"});
    CHECK(events_of("data: one\r\n\ndata: two\n\r\ndata: three\r\r\n") ==
          events{"|one", "|two", "|three"});
}

TEST_CASE("a CR and an LF in two reads are one line end") {
    event_stream_parser p;
    CHECK(fed(p, {"data: one\r", "\ndata: more\r", "\n\r", "\n"}) == events{"|one\nmore"});
    // The blank line's CR alone ends the event; its LF, coming later, ends nothing.
    event_stream_parser q;
    CHECK(fed(q, {"data: one\r\n\r"}) == events{"|one"});
    CHECK(fed(q, {"\ndata: two\r\n\r\n"}) == events{"|two"});
}

TEST_CASE("a stream that the connection's end cuts has no last event") {
    CHECK(events_of("data: one\n\ndata: two\n") == events{"|one"});
    CHECK(events_of("data: one\n\ndata: two") == events{"|one"});
    CHECK(events_of("data: one").empty());
}

TEST_CASE("one space after the colon belongs to the format") {
    CHECK(events_of("data:one\n\n") == events{"|one"});
    CHECK(events_of("data: one\n\n") == events{"|one"});
    CHECK(events_of("data:  one \n\n") == events{"| one "});
    CHECK(events_of("data:\tone\n\n") == events{"|\tone"});
    CHECK(events_of("data: a: b\n\n") == events{"|a: b"});
}

TEST_CASE("data of several lines is joined by line feeds") {
    CHECK(events_of("data: one\ndata: two\ndata:\ndata: four\n\n") == events{"|one\ntwo\n\nfour"});
}

TEST_CASE("empty data is an event, no data is none") {
    CHECK(events_of("data\n\n") == events{"|"});
    CHECK(events_of("data:\n\n") == events{"|"});
    CHECK(events_of("data:\ndata:\n\n") == events{"|\n"});
    CHECK(events_of("event: ping\n\n").empty());
}

TEST_CASE("comments are skipped wherever they stand") {
    CHECK(events_of(": keep-alive\n\n:\n\ndata: one\n: inside\ndata: two\n\n:end\n") ==
          events{"|one\ntwo"});
}

TEST_CASE("an event may have a type, which the next one does not inherit") {
    CHECK(events_of("event: error\ndata: one\n\ndata: two\n\n") == events{"error|one", "|two"});
    CHECK(events_of("data: one\nevent:late\n\n") == events{"late|one"});
    CHECK(events_of("event: a\nevent: b\ndata: one\n\n") == events{"b|one"});
    CHECK(events_of("event: lost\n\ndata: one\n\n") == events{"|one"});
}

TEST_CASE("unknown fields say nothing") {
    CHECK(events_of(
              "id: 7\nretry: 1000\ndata: one\nDATA: two\n data: three\ndatas: four\nhello\n\n") ==
          events{"|one"});
}

TEST_CASE("an error is an event, with or without data and in whichever field") {
    CHECK(events_of("error: {\"code\":500}\n\ndata: one\n\n") == events{"error|{\"code\":500}", "|one"});
    CHECK(events_of("data: one\n\nInternal Server Error\n\n") ==
          events{"|one", "error|Internal Server Error"});
    CHECK(events_of("{\"error\": {\"message\": \"out\"}}\n") ==
          events{"error|{\"error\": {\"message\": \"out\"}}"});
    CHECK(events_of("event: error\n\ndata: one\n\n") == events{"error|", "|one"});
    CHECK(events_of("event: error\n: out of memory\n\nevent: error\n\n") ==
          events{"error|out of memory", "error|"});
    CHECK(events_of("event: error\n: why\ndata: one\ndata: two\n\n") == events{"error|one\ntwo"});
    CHECK(events_of(": error in a comment\n\ndata: one\n\n") == events{"|one"});
    CHECK(events_of("event: request_failed\n\n") == events{"request_failed|"});
}

TEST_CASE("a byte order mark is skipped once, at the start") {
    CHECK(events_of("\xEF\xBB\xBF"
                    "data: one\n\n") == events{"|one"});
    CHECK(events_of("\xEF\xBB\xBF"
                    "\ndata: one\n\n") == events{"|one"});
    CHECK(events_of("data: one\n\n\xEF\xBB\xBF"
                    "data: two\n\n") == events{"|one"});
    CHECK(events_of("data: \xEF\xBB\xBF\n\n") == events{"|\xEF\xBB\xBF"});
}

TEST_CASE("any byte may stand in the data") {
    const std::string odd = std::string(1, '\0') + "\x01\xFF\xC3\xA9 {\"a\":\"\\n\"}";
    CHECK(events_of("data: " + odd + "\n\n") == events{"|" + odd});
}

TEST_CASE("an event that is whole in one read is handed out uncopied") {
    for (const std::string end : {"\n", "\r\n"}) {
        CAPTURE(end);
        const std::string s = "event: a" + end + "data: one" + end + end + "data:two" + end + end;
        event_stream_parser p;
        int inside = 0;
        p.feed(s, [&](std::string_view, std::string_view data) {
            inside += data.data() >= s.data() && data.data() + data.size() <= s.data() + s.size();
        });
        CHECK(inside == 2);
    }
}

TEST_CASE("an event that never ends breaks the stream") {
    const std::string piece(1024 * 1024, 'x');
    const auto feeds_until_broken = [&](const std::string& before, const std::string& each) {
        event_stream_parser p;
        const auto ignore = [](std::string_view, std::string_view) {};
        p.feed(before, ignore);
        for (int i = 1; i <= 32; ++i)
            if (!p.feed(each, ignore)) return i;
        return 0;
    };
    CHECK(event_stream_parser::max_event == 16 * 1024 * 1024);
    CHECK(feeds_until_broken("data: ", piece) == 16);               // one line
    CHECK(feeds_until_broken("", "data: " + piece + "\n") == 16);   // many lines of one event
    CHECK(feeds_until_broken(": ", piece) == 16);                   // a comment
    CHECK(feeds_until_broken("", "data: " + piece + "\n\n") == 0);  // many events
}

TEST_CASE("a broken stream stays broken") {
    event_stream_parser p;
    const auto ignore = [](std::string_view, std::string_view) {};
    CHECK_FALSE(p.feed(std::string(event_stream_parser::max_event + 1, 'x'), ignore));
    CHECK(fed(p, {"\n\ndata: one\n\n"}).empty());
    CHECK_FALSE(p.feed("", ignore));
}
