// Load generator: the answers of test_wire_cases through the whole client, and those that take time.
#include "support/live.hpp"
#include "support/wire_server.hpp"
#include "virtual/scripted_server.hpp"
#include "virtual/execution_environment.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace llmbench;
using namespace std::chrono_literals;
using live::seconds;
using scripted::chunk;
using wire::one;

namespace {

using cases_server = wire::cases_server<scripted::server>;

/// Answers that run into a limit, all asked for at once.
std::vector<record> timed_out(const cases_server& server, const limits& l) {
    scenario s = server.asking();
    s.arrivals = all_at_once();
    s.limits = l;
    const std::vector<record> records = live::records_of(s);
    REQUIRE(records.size() == server.cases().size());
    for (std::size_t i = 0; i < records.size(); ++i) {
        CAPTURE(server.cases()[i].name);
        wire::check(records[i], server.cases()[i].expected);
    }
    return records;
}

/// Goes on sending this every 10 ms, for longer than any limit here.
scripted::answer dripping(const std::string& first, const std::string& again) {
    scripted::answer a = {scripted::send(first)};
    for (int i = 0; i < 1500; ++i) {
        a.push_back(scripted::send(again));
        a.push_back(scripted::wait(10ms));
    }
    return a;
}

}  // namespace

TEST_CASE("whatever comes over a socket comes to what it should") {
    const cases_server server(wire::all_cases());
    scenario s = server.asking();
    s.arrivals = closed_loop(1);
    const result r = run(s);
    REQUIRE(r.requests().size() == server.cases().size());
    std::vector<int> first(server.cases().size(), -1), last = first;  // connection of each
    for (const scripted::request& q : server.log()) {
        const std::size_t place = cases_server::place_of(q);
        if (first[place] < 0) first[place] = q.connection;
        last[place] = q.connection;
    }
    int kept = 0;
    for (std::size_t i = 0; i < server.cases().size(); ++i) {
        const wire::wire_case& c = server.cases()[i];
        CAPTURE(c.name);
        wire::check(r.requests()[i], c.expected);
        REQUIRE(first[i] >= 0);
        if (i + 1 == server.cases().size() || c.script.size() > 1) continue;
        CHECK((first[i + 1] == last[i]) == c.expected.kept);
        kept += c.expected.kept;
    }
    MESSAGE(server.cases().size() << " cases, " << kept << " keep their connection");
}

TEST_CASE("an answer without content ends with limits.first_event, whatever else comes") {
    wire::table t;
    const auto late = [&](int http, const char* name, scripted::answer script) {
        script.push_back(scripted::stall());
        t.fails("timeout", http, name, std::move(script), "no content within 300 ms (limits.first_event)");
    };
    late(0, "not a byte", {});
    late(0, "half a status line", {scripted::send("HTTP/1.1 2")});
    late(0, "headers that never end", dripping("HTTP/1.1 200 OK\r\n", "X: 1\r\n"));
    late(0, "a header line that never ends", dripping("HTTP/1.1 200 OK\r\nX: ", "x"));
    late(0, "interim answers for ever", dripping("", "HTTP/1.1 102 Processing\r\n\r\n"));
    late(200, "a head alone", {scripted::send(scripted::chunked_head())});
    late(200, "a role alone", {scripted::send(scripted::chunked_head() + chunk(scripted::role()))});
    late(200, "comments for ever", dripping(scripted::chunked_head(), chunk(": ping\n\n")));
    late(200, "empty events for ever", dripping(scripted::chunked_head(), chunk("data:\n\n")));
    late(200, "empty texts for ever",
         dripping(scripted::chunked_head(), chunk(scripted::chat_chunk(""))));
    late(200, "an event that never ends", dripping(scripted::chunked_head(), chunk("data: x")));
    late(200, "a chunk size that never ends", dripping(scripted::chunked_head() + "1;", "x"));
    late(200, "JSON that never ends",
         dripping("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{", " "));
    late(503, "an error that never ends", dripping(scripted::head("503 Busy", ""), "busy "));
    const cases_server server(t.cases());
    for (const record& r : timed_out(server, {.connect = 20_s, .first_event = 300_ms,
                                              .between_events = 20_s, .total = 40_s}))
        CHECK(virtual_world::after_limit(300ms, r.sent_ns, r.end_ns));
}

TEST_CASE("an answer that stops ends with limits.between_events, whatever else comes") {
    wire::table t;
    const auto stops = [&](const char* name, scripted::answer script, const char* reason = "") {
        script.push_back(scripted::stall());
        const char* const reported = "no further content within 300 ms (limits.between_events)";
        t.fails("timeout", 200, name, std::move(script), reported) = {"timeout", 200, reported, 1, 1,
                                                                      reason, false};
    };
    const std::string begun = scripted::chunked_head() + chunk(one);
    stops("silence", {scripted::send(begun)});
    stops("half an event", {scripted::send(begun + "ff\r\ndata: {\"cho")});
    stops("comments", dripping(begun, chunk(": ping\n\n")));
    stops("roles", dripping(begun, chunk(scripted::role())));
    stops("a finish reason and no end", {scripted::send(begun + chunk(scripted::finish()))},
          "stop");
    const cases_server server(t.cases());
    for (const record& r : timed_out(server, {.connect = 20_s, .first_event = 20_s,
                                              .between_events = 300_ms, .total = 40_s}))
        CHECK(virtual_world::after_limit(300ms, r.last_token_ns, r.end_ns));
}

TEST_CASE("slow answers that keep within their limits are good ones") {
    wire::table t;
    const auto slowly = [&](const char* name, const std::string& bytes, std::size_t n) {
        t.ok(name, {scripted::cut(n, 5ms), scripted::send(bytes)}, 2, 2);
    };
    slowly("a sized answer in pieces", scripted::sized_stream(wire::good), 29);
    slowly("a chunked answer in pieces", wire::chunked(chunk(wire::good) + scripted::last_chunk()),
           31);
    t.ok("comments before the first event",
         {scripted::send(scripted::chunked_head()), scripted::wait(50ms),
          scripted::send(chunk(": OPENROUTER PROCESSING\n\n")), scripted::wait(50ms),
          scripted::send(chunk(wire::good) + scripted::last_chunk())},
         2, 2);
    t.ok("an interim answer early",
         {scripted::send("HTTP/1.1 102 Processing\r\n\r\n"), scripted::wait(50ms),
          scripted::send(scripted::sized_stream(wire::good))},
         2, 2);
    t.ok("a server that closes its half and goes on reading",
         {scripted::send(scripted::sized_stream(wire::good)), scripted::wait(30ms),
          scripted::close()},
         2, 2);
    const cases_server server(t.cases());
    timed_out(server, {.connect = 20_s, .first_event = 20_s, .between_events = 20_s,
                       .total = 40_s});
}
