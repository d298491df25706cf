// Load generator: one request from its plan to its record, against a server that does exactly as told.
// What becomes of an answer is test_wire_cases', of a connection test_connection's, of a body test_apis'.
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/texts.hpp"
#include "virtual/scripted_server.hpp"
#include "virtual/execution_environment.hpp"

#include <set>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;
using namespace std::chrono_literals;
using scripted::chat_chunk;
using scripted::chunk;
using scripted::done;
using scripted::finish;

namespace {

scenario asked_of(const scripted::server& s, int requests = 1) {
    return asking(endpoint{.url = s.url()}, requests);
}
/// As many records as that.
std::vector<record> records_from(const scripted::server& s, int requests) {
    const std::vector<record> records = records_of(asked_of(s, requests));
    REQUIRE(records.size() == static_cast<std::size_t>(requests));
    return records;
}

}  // namespace

TEST_CASE("the times of a request come in the order in which things happen") {
    const scripted::server server(
        {{scripted::wait(30ms), scripted::send(scripted::chunked_head() + chunk(chat_chunk("a"))),
          scripted::wait(30ms), scripted::send(chunk(chat_chunk("b"))), scripted::wait(30ms),
          scripted::send(chunk(finish() + done()))}});
    const record r = only_record(asked_of(server));
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

TEST_CASE("limits.connect and limits.total end what the limits of an answer do not") {
    const scripted::server away({}, scripted::afterwards::ignore);
    scenario s = asked_of(away);
    s.limits.connect = 200_ms;
    const record lost = only_record(s);
    CHECK(status(lost) == "connect");
    CHECK(holds(error(lost), "limits.connect"));
    CHECK(lost.sent_ns == 0);
    CHECK(virtual_world::after_limit(200ms, lost.dispatched_ns, lost.end_ns));

    scripted::answer drip = {scripted::send(scripted::chunked_head())};
    for (int i = 0; i < 500; ++i) {
        drip.push_back(scripted::send(chunk(chat_chunk("a"))));
        drip.push_back(scripted::wait(20ms));
    }
    const scripted::server dripping({drip});
    s = asked_of(dripping);
    s.limits.total = 300_ms;
    const record endless = only_record(s);
    CHECK(status(endless) == "timeout");
    CHECK(holds(error(endless), "limits.total"));
    CHECK(endless.events == 16);
    CHECK(virtual_world::after_limit(300ms, endless.dispatched_ns, endless.end_ns));
}

TEST_CASE("limits.drain cancels what is unanswered so long after the last send") {
    const scripted::server server({scripted::healthy(), {scripted::stall()}});
    scenario s = asked_of(server, 2);
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

TEST_CASE("a request that finds its connection closed is the same request on another one, once") {
    const scripted::step close = scripted::close(), reset = scripted::reset();
    for (const scripted::step& end : {close, reset}) {
        CAPTURE(static_cast<int>(end.what));
        const scripted::server server({scripted::healthy(), {end}, scripted::healthy()});
        const std::vector<record> r = records_from(server, 100);  // a hundredth is forgiven
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

TEST_CASE("a request says where it goes, what it wants and who it is") {
    const scripted::server server;
    const variable key("LLMBENCH_API_KEY", "sk-default");
    scenario s = asking(endpoint{.url = server.url(), .headers = {{"X-Team", "search: a"}}}, 4);
    s.workload = prompts({"one", "two"});
    s.options.extra_body = R"({"top_k": 3})";
    const std::vector<record> r = records_of(s);
    const std::vector<scripted::request> log = server.log();
    REQUIRE(log.size() == 4);
    std::set<std::string> ids, names;
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(log[i].method == "POST");
        CHECK(log[i].path == "/v1/chat/completions");
        CHECK(log[i].header("Host") == server.authority());
        CHECK(log[i].header("Content-Type") == "application/json");
        CHECK(log[i].header("Accept") == "text/event-stream");
        CHECK(log[i].header("Authorization") == "Bearer sk-default");
        CHECK(log[i].header("X-Team") == "search: a");
        CHECK(log[i].header("X-Request-Id") == std::string(r[i].id));
        CHECK(ids.insert(r[i].id).second);
        CHECK(log[i].connection == log[0].connection);
        const picojson::value body = texts::parsed(log[i].body);
        CHECK(body.get("model").to_str() == "scripted");
        CHECK(body.get("top_k").get<double>() == 3);
        CHECK(body.get("messages").get(0).get("content").to_str() == (i % 2 == 0 ? "one" : "two"));
    }
    for (const auto& [name, value] : log[0].headers) CHECK(names.insert(name).second);
    CHECK(server.model_lists().at(0).header("Authorization") == "Bearer sk-default");
    CHECK(server.model_lists().at(0).header("X-Team") == "search: a");
}

TEST_CASE("a path of the endpoint's own is asked as it is, and must be one") {
    const scripted::server server;
    only_record(asking(endpoint{.url = server.url() + "/a", .path = "/invocations?x=1"}));
    CHECK(server.log().at(0).path == "/invocations?x=1");
    CHECK(server.model_lists().at(0).path == "/a/v1/models");
    CHECK(holds(refusal_of(asking(endpoint{.url = "http://h", .path = "v3"})),
                "endpoint.path is \"v3\": it must begin with a slash"));
    CHECK(holds(refusal_of(asking(endpoint{.url = "http://h", .path = "/v 3"})),
                "endpoint.path is \"/v 3\": a URL holds no spaces"));
}
