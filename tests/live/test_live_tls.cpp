// https:// over sockets: handshakes, sessions that are gone on with, and long messages.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/scripted_server.hpp"

using namespace llmbench;
using namespace live;

#ifndef LLMBENCH_WITH_TLS
TEST_CASE("TLS over sockets is left out where the program was built without OpenSSL") {
    MESSAGE("skipped: this program was built without OpenSSL");
}
#else
#include "support/certificates.hpp"
#include "support/tls_server.hpp"

TEST_CASE("a server behind TLS 1.2 or 1.3 is measured like any other") {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        const scripted::server server({scripted::healthy(4, scripted::framing::chunked)});
        const tls::front front(server.port(), {{.who = &known().good, .version = version}});
        const result r = run(asking(trusted(front.url()), 5));
        for (const record& x : all_ok(r)) {
            CHECK(x.events == 4);
            CHECK(x.sent_ns >= x.connected_ns);
        }
        CHECK(front.server_name() == "localhost");
        CHECK(front.protocol() == "\x08http/1.1");
        REQUIRE(server.log().size() == 5);
        CHECK(server.log()[0].header("Host") == front.url().substr(8));
        CHECK(r.self_check().connections_opened == 1);
        CHECK(r.self_check().handshakes_full.count == 1);
        CHECK(r.self_check().handshakes_resumed.count == 0);
#if defined(__linux__) && !defined(LLMBENCH_WAIT_BY_ASIO)
        CHECK(r.self_check().stamped_fraction > 0.9);  // the socket below has them
        CHECK(holds(content_of(report_file("result.json")), "\"stamps\": \"kernel\""));
#endif
    }
}

TEST_CASE("connections after the first go on with its session, counted and timed apart") {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        const scripted::server server({scripted::closing()});
        const tls::front front(server.port(), {{.who = &known().good, .version = version}});
        scenario s = asking(trusted(front.url()), 5);
        s.repeats = 2;
        const result r = run(s);
        all_ok(r);
        const self_check_t& c = r.self_check();
        // Each repeat starts afresh, or the first would differ from the others.
        CHECK(c.handshakes_full.count >= 2);
        CHECK(c.handshakes_resumed.count >= 6);
        CHECK(c.handshakes_full.count + c.handshakes_resumed.count == c.connections_opened);
        for (const handshakes_t& h : {c.handshakes_full, c.handshakes_resumed}) {
            CHECK(h.mean > 0);
            CHECK(h.max >= h.mean);
        }
        const std::string json = content_of(report_file("result.json"));
        CHECK(holds(json, "\"handshakes_resumed\""));
    }
}

// The last one, for every later test would write its long prompt into the reports again.
TEST_CASE("long requests and long answers pass through TLS whole") {
    const scripted::server server({scripted::healthy(2000)});
    const tls::front front(server.port(), {{.who = &known().good}});
    scenario s = asking(trusted(front.url()), 2);
    const std::string prompt(150000, 'a');
    s.workload = prompts({prompt});
    for (const record& r : all_ok(run(s))) CHECK(r.events == 2000);
    REQUIRE(server.log().size() == 2);
    CHECK(holds(server.log()[1].body, prompt));
}
#endif
