// Load generator: what becomes of one request, and what the request itself says, against a
// server that does exactly as told.
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/texts.hpp"
#include "virtual/scripted_server.hpp"
#include "virtual/execution_environment.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;
using namespace std::chrono_literals;
using live::asking;
using scripted::chat_chunk;
using scripted::chunk;
using scripted::done;
using scripted::finish;
using scripted::sized_stream;
using texts::parsed;

namespace {

scenario asking(const scripted::server& s, int requests = 1) {
    return live::asking(endpoint{.url = s.url()}, requests);
}
/// As many records as that.
std::vector<record> records_from(const scripted::server& s, int requests) {
    const std::vector<record> records = records_of(asking(s, requests));
    REQUIRE(records.size() == static_cast<std::size_t>(requests));
    return records;
}
record answered_with(const scripted::answer& a) {
    const scripted::server server({a});
    const record r = only_record(asking(server));
    CHECK(server.log().size() == 1);
    return r;
}
/// The answer is sent in one piece, and the connection is closed.
record answered_with(const std::string& bytes) {
    return answered_with({scripted::send(bytes), scripted::close()});
}

}  // namespace

// ---- answers that are whole

TEST_CASE("a healthy answer is ok, however its length is told") {
    for (const auto how :
         {scripted::framing::chunked, scripted::framing::sized, scripted::framing::until_close}) {
        CAPTURE(static_cast<int>(how));
        const record r = answered_with(scripted::healthy(4, how));
        CHECK(status(r) == "ok");
        CHECK(error(r) == "");
        CHECK(r.http_status == 200);
        CHECK(r.finish_reason == "stop");
        CHECK(r.events == 4);
        CHECK(r.output_tokens == 4);
        CHECK(r.prompt_tokens == 5);
        CHECK(r.first_event_tokens == 1);
        CHECK(r.token_source == token_origin::usage);
    }
}

TEST_CASE("the times of a request come in the order in which things happen") {
    const scripted::server server(
        {{scripted::wait(30ms), scripted::send(scripted::chunked_head() + chunk(chat_chunk("a"))),
          scripted::wait(30ms), scripted::send(chunk(chat_chunk("b"))), scripted::wait(30ms),
          scripted::send(chunk(finish() + done()))}});
    const record r = only_record(asking(server));
    const long long received_ns = server.log().at(0).received_ns;
    CHECK(status(r) == "ok");
    CHECK(r.scheduled_ns > 0);
    CHECK(r.dispatched_ns == r.scheduled_ns);
    CHECK(r.connected_ns == r.dispatched_ns);
    CHECK(r.sent_ns == r.connected_ns);
    CHECK(received_ns == r.sent_ns + virtual_world::way_ns);
    CHECK(r.first_token_ns == received_ns + 30'000'000 + virtual_world::way_ns);
    CHECK(r.last_token_ns == received_ns + 60'000'000 + virtual_world::way_ns);
    CHECK(r.end_ns == received_ns + 90'000'000 + virtual_world::way_ns);
}

TEST_CASE("an answer that comes in tiny pieces is read as one that comes whole") {
    const scripted::answer whole = scripted::healthy(2, scripted::framing::chunked);
    for (const std::size_t n : {1u, 7u, 64u}) {
        CAPTURE(n);
        scripted::answer pieces = {scripted::cut(n, n < 64 ? 0ms : 1ms)};
        pieces.insert(pieces.end(), whole.begin(), whole.end());
        const record r = answered_with(pieces);
        CHECK(status(r) == "ok");
        CHECK(r.events == 2);
        CHECK(r.output_tokens == 2);
    }
}

TEST_CASE("an answer without [DONE] is ok where it gave a finish reason") {
    CHECK(status(answered_with(sized_stream(chat_chunk("a") + finish()))) == "ok");
    CHECK(status(answered_with(scripted::until_close_head() + chat_chunk("a") + finish())) == "ok");
    CHECK(status(answered_with(scripted::chunked_head() + chunk(chat_chunk("a") + finish()))) ==
          "ok");
}

TEST_CASE("[DONE] ends a request, whatever follows and whenever the body ends") {
    const std::string whole = chat_chunk("a") + done();
    const record early =
        answered_with({scripted::send(scripted::chunked_head() + chunk(whole)), scripted::stall()});
    CHECK(status(early) == "ok");
    CHECK(early.end_ns - early.sent_ns == 2 * virtual_world::way_ns);

    const record more = answered_with(
        sized_stream(whole + chat_chunk("b") + scripted::sse_event(R"({"error":"late"})")));
    CHECK(status(more) == "ok");
    CHECK(more.events == 1);
    CHECK(more.output_tokens == 1);

    CHECK(status(answered_with({scripted::send(scripted::chunked_head() + chunk(whole)),
                                scripted::reset()})) == "ok");
}

TEST_CASE("events that are read together share a stamp") {
    const record r = answered_with(scripted::healthy(5));
    CHECK(r.events == 5);
    CHECK(r.first_token_ns == r.last_token_ns);
    CHECK(r.end_ns == r.last_token_ns);
}

TEST_CASE("output tokens are the server's usage, else the events with content") {
    const std::string four = chat_chunk("a") + chat_chunk("b") + chat_chunk("c") + chat_chunk("d");
    const record reported =
        answered_with(sized_stream(four + finish() + scripted::usage(11, 9) + done()));
    CHECK(reported.token_source == token_origin::usage);
    CHECK(reported.output_tokens == 9);
    CHECK(reported.prompt_tokens == 11);
    CHECK(reported.events == 4);

    const record counted = answered_with(sized_stream(four + finish() + done()));
    CHECK(counted.token_source == token_origin::no_usage);
    CHECK(counted.output_tokens == 4);
    CHECK(counted.prompt_tokens == 0);

    const record growing = answered_with(
        sized_stream(four + scripted::usage(11, 2) + scripted::usage(11, 4) + finish() + done()));
    CHECK(growing.output_tokens == 4);
}

TEST_CASE("an interim answer comes before the real one") {
    const std::string interim =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    const record r = answered_with(interim + sized_stream(scripted::healthy_events(2)));
    CHECK(status(r) == "ok");
    CHECK(r.http_status == 200);
}

// ---- failures

TEST_CASE("a server that went away is a failure to connect") {
    const scripted::server server({}, scripted::afterwards::refuse);
    const record r = only_record(asking(server));
    CHECK(status(r) == "connect");
    CHECK(holds(error(r), "refused"));
    CHECK(r.http_status == 0);
    CHECK(r.connected_ns == 0);
    CHECK(r.sent_ns == 0);
    CHECK(r.first_token_ns == 0);
}

TEST_CASE("limits.connect ends the wait for a connection") {
    const scripted::server server({}, scripted::afterwards::ignore);
    scenario s = asking(server);
    s.limits.connect = 200_ms;
    const record r = only_record(s);
    CHECK(status(r) == "connect");
    CHECK(holds(error(r), "limits.connect"));
    CHECK(r.sent_ns == 0);
    CHECK(virtual_world::after_limit(200ms, r.dispatched_ns, r.end_ns));
}

TEST_CASE("limits.first_event ends the wait for content, not for headers or roles") {
    const std::string quiet =
        scripted::chunked_head() + chunk(scripted::role()) + chunk(": alive\n\n");
    for (const std::string& bytes : {std::string(), quiet}) {
        CAPTURE(bytes);
        const scripted::server server({{scripted::send(bytes), scripted::stall()}});
        scenario s = asking(server);
        s.limits.first_event = 200_ms;
        const record r = only_record(s);
        CHECK(status(r) == "timeout");
        CHECK(holds(error(r), "limits.first_event"));
        CHECK(r.first_token_ns == 0);
        CHECK(r.http_status == (bytes.empty() ? 0 : 200));
        CHECK(virtual_world::after_limit(200ms, r.sent_ns, r.end_ns));
    }
}

TEST_CASE("limits.between_events ends the wait for the next content") {
    const scripted::server server(
        {{scripted::send(scripted::chunked_head() + chunk(chat_chunk("a"))), scripted::stall()}});
    scenario s = asking(server);
    s.limits.between_events = 200_ms;
    const record r = only_record(s);
    CHECK(status(r) == "timeout");
    CHECK(holds(error(r), "limits.between_events"));
    CHECK(r.events == 1);
    CHECK(r.first_token_ns > 0);
    CHECK(virtual_world::after_limit(200ms, r.last_token_ns, r.end_ns));
}

TEST_CASE("limits.total ends an answer that never stops coming") {
    scripted::answer drip = {scripted::send(scripted::chunked_head())};
    for (int i = 0; i < 500; ++i) {
        drip.push_back(scripted::send(chunk(chat_chunk("a"))));
        drip.push_back(scripted::wait(20ms));
    }
    const scripted::server server({drip});
    scenario s = asking(server);
    s.limits.total = 300_ms;
    const record r = only_record(s);
    CHECK(status(r) == "timeout");
    CHECK(holds(error(r), "limits.total"));
    CHECK(r.events == 16);
    CHECK(virtual_world::after_limit(300ms, r.dispatched_ns, r.end_ns));
}

TEST_CASE("limits.drain cancels what is unanswered so long after the last send") {
    const scripted::server server({scripted::healthy(), {scripted::stall()}});
    scenario s = asking(server, 2);
    s.arrivals = constant(50_rps);
    s.limits.drain = 200_ms;
    const std::vector<record> r = records_of(s);
    REQUIRE(r.size() == 2);
    CHECK(status(r[0]) == "ok");
    CHECK(status(r[1]) == "cancelled");
    CHECK(holds(error(r[1]), "limits.drain"));
    CHECK(r[1].end_ns - r[1].sent_ns >= 200'000'000);
    CHECK(r[1].end_ns - r[1].sent_ns <= 250'000'000);  // two looks at limits
}

TEST_CASE("a timed out request does not stop the next one") {
    const scripted::server server({{scripted::stall()}, scripted::healthy()});
    scenario s = asking(server, 2);
    s.limits.first_event = 200_ms;
    const std::vector<record> r = records_of(s);
    REQUIRE(r.size() == 2);
    CHECK(status(r[0]) == "timeout");
    CHECK(status(r[1]) == "ok");
    CHECK(server.log()[0].connection != server.log()[1].connection);
}

TEST_CASE("an HTTP error is told with its code and the server's message") {
    const record busy = answered_with(
        scripted::json("429 Too Many Requests",
                       R"({"error":{"message":"the queue is full","type":"rate_limit"}})"));
    CHECK(status(busy) == "http");
    CHECK(busy.http_status == 429);
    CHECK(error(busy) == "HTTP 429: the queue is full");
    CHECK(busy.events == 0);
    CHECK(busy.output_tokens == 0);

    const record broken = answered_with(scripted::json(
        "500 Internal Server Error", R"({"object":"error","message":"out of memory","code":500})"));
    CHECK(status(broken) == "http");
    CHECK(broken.http_status == 500);
    CHECK(error(broken) == "HTTP 500: out of memory");

    const record lost =
        answered_with(scripted::sized("404 Not Found", "text/html", "<html>no such page</html>"));
    CHECK(status(lost) == "http");
    CHECK(lost.http_status == 404);
    CHECK(error(lost) == "HTTP 404: <html>no such page</html>");

    const record bare = answered_with("HTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n");
    CHECK(status(bare) == "http");
    CHECK(error(bare) == "HTTP 503");
}

TEST_CASE("an error status decides even where the answer is called an event stream") {
    const record r = answered_with(scripted::sized("500 Internal Server Error", "text/event-stream",
                                                   scripted::healthy_events(1)));
    CHECK(status(r) == "http");
    CHECK(r.http_status == 500);
    CHECK(r.events == 0);
}

TEST_CASE("a redirect is not followed, and says where it would lead") {
    const record r = answered_with(
        scripted::head("301 Moved Permanently",
                       "Location: https://elsewhere.example/v1\r\nContent-Length: 0\r\n"));
    CHECK(status(r) == "http");
    CHECK(r.http_status == 301);
    CHECK(holds(error(r), "redirect"));
    CHECK(holds(error(r), "https://elsewhere.example/v1"));
}

TEST_CASE("what is not HTTP is a protocol error") {
    const record r = answered_with("220 mail.example ESMTP\r\n");
    CHECK(status(r) == "protocol");
    CHECK(r.http_status == 0);
    CHECK(holds(error(r), "not an HTTP/1.x answer"));
}

TEST_CASE("a malformed chunk is a protocol error") {
    const record r =
        answered_with(scripted::chunked_head() + chunk(chat_chunk("a")) + "xyz\r\n" + done());
    CHECK(status(r) == "protocol");
    CHECK(holds(error(r), "chunk size \"xyz\""));
    CHECK(r.http_status == 200);
    CHECK(r.events == 1);
    CHECK(r.first_token_ns > 0);
}

TEST_CASE("an event that is not JSON is a protocol error") {
    const record r = answered_with(
        sized_stream(chat_chunk("a") + scripted::sse_event("hello") + chat_chunk("b") + done()));
    CHECK(status(r) == "protocol");
    CHECK(holds(error(r), "JSON"));
    CHECK(r.events == 1);
}

TEST_CASE("an answer that is no event stream is a protocol error") {
    const record r = answered_with(scripted::json(
        "200 OK", R"({"choices":[{"message":{"role":"assistant","content":"all at once"}}]})"));
    CHECK(status(r) == "protocol");
    CHECK(r.http_status == 200);
    CHECK(holds(error(r), "application/json"));
}

TEST_CASE("an error told inside a stream, or in its place, is the server's") {
    const record inside = answered_with(sized_stream(
        chat_chunk("a") + scripted::sse_event(R"({"error":{"message":"worker died"}})") + done()));
    CHECK(status(inside) == "server");
    CHECK(error(inside) == "worker died");
    CHECK(inside.http_status == 200);
    CHECK(inside.events == 1);

    const record typed = answered_with(
        sized_stream(chat_chunk("a") + "event: error\ndata: {\"reason\":\"worker died\"}\n\n"));
    CHECK(status(typed) == "server");
    CHECK(holds(error(typed), "worker died"));

    const record instead =
        answered_with(scripted::json("200 OK", R"({"error":{"message":"no such model"}})"));
    CHECK(status(instead) == "server");
    CHECK(error(instead) == "no such model");
    CHECK(instead.http_status == 200);

    const record aborted = answered_with(sized_stream(chat_chunk("a") + finish("abort") + done()));
    CHECK(status(aborted) == "server");
    CHECK(aborted.finish_reason == "abort");
    CHECK(holds(error(aborted), "abort"));
}

TEST_CASE("an answer that ends too early is truncated") {
    const std::string begun = scripted::chunked_head() + chunk(scripted::role());
    const scripted::step close = scripted::close(), reset = scripted::reset();
    for (const scripted::step& end : {close, reset}) {
        CAPTURE(static_cast<int>(end.what));
        const auto pause = end.what == scripted::step::kind::reset ? 250ms : 0ms;
        const record nothing = answered_with({end});
        CHECK(status(nothing) == "truncated");
        CHECK(nothing.http_status == 0);
        CHECK(holds(error(nothing), "before an answer"));

        const record before = answered_with({scripted::send(begun), scripted::wait(pause), end});
        CHECK(status(before) == "truncated");
        CHECK(before.http_status == 200);
        CHECK(before.events == 0);
        CHECK(holds(error(before), "before any content"));

        const record after = answered_with(
            {scripted::send(begun + chunk(chat_chunk("a"))), scripted::wait(pause), end});
        CHECK(status(after) == "truncated");
        CHECK(after.http_status == 200);
        CHECK(after.events == 1);
        CHECK(after.end_ns >= after.last_token_ns);
        CHECK(holds(error(after), "without a finish reason or [DONE]"));
    }
}

TEST_CASE("an answer is truncated too where its framing is whole and its content is not") {
    CHECK(status(answered_with(sized_stream(chat_chunk("a")))) == "truncated");
    CHECK(status(answered_with(scripted::until_close_head() + chat_chunk("a"))) == "truncated");
    CHECK(status(answered_with(scripted::chunked_head() + chunk(chat_chunk("a")) +
                               scripted::last_chunk())) == "truncated");
    // The blank line that would end the last event is missing, so the event does not count.
    const std::string cut = done().substr(0, done().size() - 1);
    CHECK(status(answered_with(sized_stream(chat_chunk("a") + cut))) == "truncated");
}

TEST_CASE("a complete answer without one generated piece is empty") {
    const record r =
        answered_with(sized_stream(scripted::role() + finish() + scripted::usage(5, 0) + done()));
    CHECK(status(r) == "empty");
    CHECK(r.http_status == 200);
    CHECK(r.finish_reason == "stop");
    CHECK(r.first_token_ns == 0);
    CHECK(status(answered_with(sized_stream(done()))) == "empty");
}

TEST_CASE("a failed request leaves no connection to the next one") {
    const scripted::server server(
        {{scripted::send("what?\r\n"), scripted::stall()}, scripted::healthy()});
    const std::vector<record> r = records_from(server, 2);
    CHECK(status(r[0]) == "protocol");
    CHECK(status(r[1]) == "ok");
    CHECK(server.log()[0].connection != server.log()[1].connection);
}

TEST_CASE("an HTTP error whose answer is whole keeps its connection") {
    const scripted::server server(
        {{scripted::send(scripted::json("503 Busy", "{}"))}, scripted::healthy()});
    const std::vector<record> r = records_from(server, 2);
    CHECK(status(r[0]) == "http");
    CHECK(status(r[1]) == "ok");
    CHECK(server.log()[0].connection == server.log()[1].connection);
}

// ---- connections

TEST_CASE("a connection is used again and again") {
    const scripted::server server;
    const result r = run(asking(server, 5));
    CHECK(r.self_check().connections_opened == 1);
    const std::vector<scripted::request> log = server.log();
    REQUIRE(log.size() == 5);
    for (std::size_t i = 0; i < log.size(); ++i) {
        CHECK(status(r.requests()[i]) == "ok");
        CHECK(log[i].connection == log[0].connection);
        CHECK(log[i].place == static_cast<int>(i));
    }
}

TEST_CASE(
    "a reused connection that was closed before the answer costs one more try, not the request") {
    const scripted::step close = scripted::close(), reset = scripted::reset();
    for (const scripted::step& end : {close, reset}) {
        CAPTURE(static_cast<int>(end.what));
        const scripted::server server({scripted::healthy(), {end}, scripted::healthy()});
        const std::vector<record> r = records_from(server, 100);  // a hundredth is forgiven
        CHECK(status(r[0]) == "ok");
        CHECK(status(r[1]) == "ok");
        CHECK(r[1].resends == 1);
        const std::vector<scripted::request> log = server.log();
        REQUIRE(log.size() == 101);
        CHECK(log[1].connection == log[0].connection);
        CHECK(log[2].connection != log[0].connection);
        CHECK(log[2].body == log[1].body);
        CHECK(log[2].header("X-Request-Id") == log[1].header("X-Request-Id"));
        // Latency counts from the intended time, the first try included; `sent` is the second's.
        CHECK(r[1].dispatched_ns < log[1].received_ns);
        CHECK(r[1].sent_ns > log[1].received_ns);
    }
}

TEST_CASE("the second try is the last one") {
    const scripted::server server({scripted::healthy(), {scripted::close()}});
    const std::vector<record> r = records_from(server, 2);
    CHECK(status(r[1]) == "truncated");
    CHECK(server.log().size() == 3);
}

TEST_CASE("a fresh connection that breaks before the answer is not tried again") {
    const scripted::server server({{scripted::close()}});
    CHECK(status(only_record(asking(server))) == "truncated");
    CHECK(server.log().size() == 1);
}

TEST_CASE("nothing is tried again once a byte of the answer came") {
    for (const char* first : {"H", "HTTP/1.1 100 Continue\r\n\r\n"}) {
        CAPTURE(first);
        const scripted::server server(
            {scripted::healthy(), {scripted::send(first), scripted::close()}});
        const std::vector<record> r = records_from(server, 2);
        CHECK(r[1].status != request_status::ok);
        CHECK(server.log().size() == 2);
    }
}

TEST_CASE("a server that closes after every answer costs no request, where it says so") {
    const std::string events = scripted::healthy_events(3);
    const scripted::server server(
        {{scripted::send(scripted::sized_stream(events, "Connection: close\r\n")),
          scripted::close()}});
    for (const record& x : records_from(server, 20)) {
        CHECK(status(x) == "ok");
        CHECK(x.resends == 0);
    }
}

TEST_CASE("a server that closes after every answer costs none where it does not say so, either") {
    scripted::answer once = scripted::healthy();
    once.push_back(scripted::close());
    scripted::server server({once});
    server.answer_check(once);
    for (const record& x : records_from(server, 20)) {
        CHECK(status(x) == "ok");
        CHECK(x.resends == 0);
    }
    for (const scripted::request& r : server.log()) CHECK(r.place == 0);
}

TEST_CASE("an answer that announces the end of its connection is the last one there") {
    const std::string events = scripted::healthy_events(2);
    const std::string old =
        "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: " +
        std::to_string(events.size()) + "\r\n\r\n" + events;
    for (const std::string& bytes : {sized_stream(events, "Connection: close\r\n"), old}) {
        CAPTURE(bytes);
        const scripted::server server({{scripted::send(bytes)}});
        const std::vector<record> r = records_from(server, 3);
        std::set<int> connections;
        for (const scripted::request& q : server.log()) connections.insert(q.connection);
        for (const record& x : r) CHECK(status(x) == "ok");
        CHECK(connections.size() == 3);
    }
}

TEST_CASE("a connection on which more came than was asked for is not used again") {
    const scripted::server server(
        {{scripted::send(sized_stream(scripted::healthy_events(1)) + "HTTP/1.1 200 OK\r\n")},
         scripted::healthy()});
    const std::vector<record> r = records_from(server, 2);
    CHECK(status(r[0]) == "ok");
    CHECK(status(r[1]) == "ok");
    CHECK(server.log()[0].connection != server.log()[1].connection);
}

// ---- the request itself

TEST_CASE("a request says where it goes, what it wants and who it is") {
    const scripted::server server;
    const record r = only_record(asking(server));
    const std::vector<scripted::request> log = server.log();
    REQUIRE(log.size() == 1);
    CHECK(log[0].method == "POST");
    CHECK(log[0].path == "/v1/chat/completions");
    CHECK(log[0].header("Host") == server.authority());
    CHECK(log[0].header("Content-Type") == "application/json");
    CHECK(log[0].header("Accept") == "text/event-stream");
    CHECK(log[0].header("Authorization") == "");
    CHECK(!r.id.empty());
    CHECK(log[0].header("X-Request-Id") == std::string(r.id));
    std::set<std::string> names;
    for (const auto& [name, value] : log[0].headers) CHECK(names.insert(name).second);
}

TEST_CASE("every request has an id of its own, which its record has too") {
    const scripted::server server;
    const std::vector<record> r = records_from(server, 4);
    const std::vector<scripted::request> log = server.log();
    REQUIRE(log.size() == 4);
    std::set<std::string> ids;
    for (std::size_t i = 0; i < r.size(); ++i) {
        CHECK(log[i].header("X-Request-Id") == std::string(r[i].id));
        CHECK(ids.insert(r[i].id).second);
    }
}

TEST_CASE("the path of the URL stands before that of the API") {
    for (const char* path : {"", "/", "/v1", "/v1/"}) {
        CAPTURE(path);
        const scripted::server server;
        CHECK(status(only_record(asking(endpoint{.url = server.url() + path}))) == "ok");
        CHECK(server.log().at(0).path == "/v1/chat/completions");
        CHECK(server.model_lists().at(0).path == "/v1/models");
    }
    const scripted::server server;
    only_record(asking(endpoint{.url = server.url() + "/team/llm"}));
    CHECK(server.log().at(0).path == "/team/llm/v1/chat/completions");
}

TEST_CASE("an API of another base, a path of its own and a query are asked as they are") {
    const std::string key = "s3cret-s3cret", query = "?api-version=7&code=" + key;
    const auto asks = [&](const endpoint& e, const std::string& path, const std::string& models) {
        CAPTURE(path);
        const scripted::server server;
        endpoint at = e;
        at.url = server.url() + e.url.c_str();
        const record r = only_record(asking(at));
        CHECK(status(r) == "ok");
        CHECK(server.log().at(0).path == path);
        CHECK(server.model_lists().at(0).path == models);
        CHECK(report_files_with(key) == "");
    };
    asks({.url = "/v3"}, "/v3/chat/completions", "/v3/models");
    asks({.url = "/v3/chat/completions"}, "/v3/chat/completions", "/v3/models");
    asks({.url = "", .path = "/v3/chat/completions"}, "/v3/chat/completions", "/v3/models");
    asks({.url = "/a", .path = "/invocations?x=1"}, "/invocations?x=1", "/a/v1/models");
    asks({.url = "/a/chat/completions" + query}, "/a/chat/completions" + query,
         "/a/v1/models" + query);
    CHECK(texts::holds(refusal_of(asking(endpoint{.url = "http://h", .path = "v3"})),
                       "endpoint.path is \"v3\": it must begin with a slash"));
    CHECK(texts::holds(refusal_of(asking(endpoint{.url = "http://h", .path = "/v 3"})),
                       "endpoint.path is \"/v 3\": a URL holds no spaces"));
}

TEST_CASE("the body of a chat request is the expected JSON") {
    const scripted::server server;
    scenario s = asking(server);
    s.workload = prompts({"say \"hi\"\nto \xC3\xA4 \\ and \x01"});
    s.options = {
        .max_tokens = 7, .temperature = 0.5, .system_prompt = "be brief", .ignore_eos = true};
    only_record(s);
    const picojson::value expected = parsed(R"({
        "model": "scripted",
        "messages": [{"role": "system", "content": "be brief"},
                     {"role": "user", "content": "say \"hi\"\nto \u00e4 \\ and \u0001"}],
        "stream": true, "stream_options": {"include_usage": true},
        "max_tokens": 7, "ignore_eos": true, "temperature": 0.5})");
    CHECK(parsed(server.log().at(0).body).serialize() == expected.serialize());
}

TEST_CASE("what an author does not say is not in the body") {
    const scripted::server server;
    only_record(asking(server));
    const picojson::value expected = parsed(R"({
        "model": "scripted", "messages": [{"role": "user", "content": "hi"}],
        "stream": true, "stream_options": {"include_usage": true}})");
    CHECK(parsed(server.log().at(0).body).serialize() == expected.serialize());
}

TEST_CASE("completions have a path, a body and answers of their own") {
    const std::string text = R"({"choices":[{"index":0,"text":" a","finish_reason":null}]})";
    const scripted::server server({{scripted::send(sized_stream(
        scripted::sse_event(text) + scripted::sse_event(text) + finish("length") + done()))}});
    scenario s = asking(endpoint{.url = server.url(), .api = openai_completions});
    s.options.max_tokens = 2;
    const record r = only_record(s);
    CHECK(status(r) == "ok");
    CHECK(r.events == 2);
    CHECK(r.finish_reason == "length");
    CHECK(server.log().at(0).path == "/v1/completions");
    const picojson::value expected = parsed(R"({
        "model": "scripted", "prompt": "hi", "max_tokens": 2,
        "stream": true, "stream_options": {"include_usage": true}})");
    CHECK(parsed(server.log().at(0).body).serialize() == expected.serialize());
}

TEST_CASE("a synthetic request forces the length of its answer") {
    const scripted::server server;
    scenario s = asking(server);
    s.workload = synthetic{.prompt_tokens = fixed(12), .output_tokens = fixed(3)};
    only_record(s);
    const picojson::value body = parsed(server.log().back().body);  // after what was asked first
    CHECK(body.get("max_tokens").get<double>() == 3);
    CHECK(body.get("ignore_eos").get<bool>());
    const std::string prompt = body.get("messages").get(0).get("content").to_str();
    CHECK(std::count(prompt.begin(), prompt.end(), ' ') == 11);
}

TEST_CASE("prompts are used in turn") {
    const scripted::server server;
    scenario s = asking(server, 5);
    s.workload = prompts({"one", "two", "three"});
    records_of(s);
    const std::vector<scripted::request> log = server.log();
    REQUIRE(log.size() == 5);
    const char* expected[] = {"one", "two", "three", "one", "two"};
    for (std::size_t i = 0; i < 5; ++i)
        CHECK(parsed(log[i].body).get("messages").get(0).get("content").to_str() == expected[i]);
}

TEST_CASE("fields of extra_body and headers of the endpoint arrive") {
    const scripted::server server;
    scenario s = asking(endpoint{
        .url = server.url(), .headers = {{"X-Team", "search: a"}, {"X-Empty", ""}}});
    s.options.extra_body = R"({"top_k": 3, "nested": {"list": [1, "\u00e4"]}, "off": false})";
    only_record(s);
    const scripted::request q = server.log().at(0);
    CHECK(q.header("X-Team") == "search: a");
    CHECK(std::count(q.headers.begin(), q.headers.end(), std::pair<std::string, std::string>(
                                                             "X-Empty", "")) == 1);
    const picojson::value body = parsed(q.body);
    CHECK(body.get("top_k").get<double>() == 3);
    CHECK(body.get("nested").serialize() == parsed("{\"list\":[1,\"\xC3\xA4\"]}").serialize());
    CHECK(body.get("off").serialize() == "false");
    CHECK(body.get("model").to_str() == "scripted");
    CHECK(server.model_lists().at(0).header("X-Team") == "search: a");
}

TEST_CASE("a field that llmbench writes itself is refused in extra_body") {
    const scripted::server server;
    for (const char* name : {"model", "messages", "prompt", "stream", "stream_options",
                             "max_tokens", "temperature", "ignore_eos"}) {
        CAPTURE(name);
        scenario s = asking(server);
        s.options = {.max_tokens = 7, .temperature = 0, .ignore_eos = true};
        s.options.extra_body = "{\"" + std::string(name) + "\": 1}";
        const std::string why = refusal_of(s);
        CHECK(holds(why, "options.extra_body"));
        CHECK(holds(why, name));
    }
    CHECK(server.log().empty());
}

TEST_CASE("a header that would smuggle in a line of its own is refused") {
    const scripted::server server;
    const auto refusal = [&](const char* name, const char* value) {
        return refusal_of(asking(endpoint{.url = server.url(), .headers = {{name, value}}}));
    };
    CHECK(holds(refusal("X-A", "b\r\nX-Admin: yes"), "line break"));
    CHECK(holds(refusal("X-A", "b\nX-Admin: yes"), "line break"));
    CHECK(holds(refusal("X-A: b\r\nX-Admin", "yes"), "endpoint.headers"));
    CHECK(holds(refusal("X A", "b"), "one word"));
    CHECK(holds(refusal("", "b"), "one word"));
    CHECK(holds(refusal("Host", "elsewhere.example"), "belongs to llmbench"));
    CHECK(holds(refusal("content-length", "3"), "belongs to llmbench"));
    CHECK(holds(refusal("Transfer-Encoding", "chunked"), "belongs to llmbench"));
    const variable key("SCRIPTED_KEY", "secret\r\nX-Admin: yes");
    const std::string why =
        refusal_of(asking(endpoint{.url = server.url(), .api_key_env = "SCRIPTED_KEY"}));
    CHECK(holds(why, "SCRIPTED_KEY"));
    CHECK(!holds(why, "secret"));
    CHECK(server.log().empty());
    CHECK(server.model_lists().empty());
}

TEST_CASE("the key is sent with every request and written nowhere") {
    const std::string secret = "sk-4f1d-not-for-files";
    const variable key("SCRIPTED_KEY", secret);
    const scripted::server server(
        {scripted::healthy(),
         {scripted::send(
             scripted::json("401 Unauthorized", R"({"error":{"message":"no access"}})"))}});
    const std::vector<record> r =
        records_of(asking(endpoint{.url = server.url(), .api_key_env = "SCRIPTED_KEY"}, 2));
    REQUIRE(r.size() == 2);
    CHECK(status(r[1]) == "http");
    for (const scripted::request& q : server.log())
        CHECK(q.header("Authorization") == "Bearer " + secret);
    CHECK(server.model_lists().at(0).header("Authorization") == "Bearer " + secret);
    CHECK(report_files_with(secret.substr(0, 8)) == "");
}

TEST_CASE("LLMBENCH_API_KEY is the key where the endpoint names no other") {
    const variable key("LLMBENCH_API_KEY", "sk-default");
    const scripted::server server;
    only_record(asking(server));
    CHECK(server.log().at(0).header("Authorization") == "Bearer sk-default");
}

TEST_CASE("a named key that is not set is refused") {
    const scripted::server server;
    const endpoint locked{.url = server.url(), .api_key_env = "SCRIPTED_KEY_THAT_IS_NOT_SET"};
    CHECK(holds(refusal_of(asking(locked)), "SCRIPTED_KEY_THAT_IS_NOT_SET"));
}

TEST_CASE("a server that repeats the key in its error does not bring it into a file") {
    const std::string secret = "sk-9a77-told-back";
    const variable key("SCRIPTED_KEY", secret);
    const auto reported = [](const std::string& words) {
        return R"({"error":{"message":")" + words + R"("}})";
    };
    const std::string message = reported("the key " + secret + " is not known");
    const std::string shortened = reported(std::string(285, 'x') + secret + secret);
    const scripted::server server(
        {{scripted::send(scripted::json("401 Unauthorized", message))},
         {scripted::send(scripted::json("401 Unauthorized", shortened))},
         {scripted::send(sized_stream(chat_chunk("a") + scripted::sse_event(message)))},
         {scripted::send(sized_stream(chat_chunk("a") + finish(secret)))},
         {scripted::send(secret + "\r\n"), scripted::close()}});
    const std::vector<record> r =
        records_of(asking(endpoint{.url = server.url(), .api_key_env = "SCRIPTED_KEY"}, 5));
    REQUIRE(r.size() == 5);
    CHECK(holds(error(r[0]), "is not known"));
    for (const record& x : r) {
        CHECK(!holds(error(x), secret.substr(0, 8)));
        CHECK(!holds(std::string(x.finish_reason), secret));
    }
    CHECK(report_files_with(secret.substr(0, 8)) == "");
}
