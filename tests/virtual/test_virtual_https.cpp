// https://: whom the client trusts, what it does with handshakes and records, and what it counts.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "virtual/scripted_server.hpp"

using namespace llmbench;
using namespace live;
using namespace std::chrono_literals;

#ifndef LLMBENCH_WITH_TLS
TEST_CASE("without OpenSSL https is refused with a sentence that says how to get it") {
    const std::string why = refusal_to_bring_up(endpoint{.url = "https://127.0.0.1:1"});
    CHECK(holds(why, "https://127.0.0.1:1: this program was built without TLS"));
    CHECK(holds(why, "LLMBENCH_WITH_TLS"));
    CHECK(holds(why, "-lssl -lcrypto"));
    MESSAGE("skipped: all other tests of TLS, for this program was built without OpenSSL");
}
#else
#include "support/certificates.hpp"
#include "virtual/tls_front.hpp"

namespace {

/// The record of a request whose connection is handled in this manner, and that of the model list
/// in the good one.
record asked_of(tls::manner m, const scripted::answer& a = scripted::healthy()) {
    const scripted::server server({a});
    const tls::front front(server.port(), {{.who = &known().good}, m});
    return only_record(asking(trusted(front.url())));
}

}  // namespace

TEST_CASE("older versions of TLS are not spoken") {
    const scripted::server server;
    const tls::front front(server.port(), {{.who = &known().good, .version = TLS1_1_VERSION}});
    CHECK(holds(refusal_to_bring_up(trusted(front.url())), "TLS failed: "));
}

TEST_CASE("an address is held against the addresses of the certificate") {
    const scripted::server server;
    const tls::front front(server.port(), {{.who = &known().good}});
    CHECK(status(only_record(asking(trusted(front.url("127.0.0.1"))))) == "ok");
    CHECK(front.server_name() == "");
    const tls::front other(server.port(), {{.who = &known().elsewhere}});
    CHECK(holds(refusal_to_bring_up(trusted(other.url("127.0.0.1"))),
                "the server's certificate is not for \"127.0.0.1\""));
}

TEST_CASE("a certificate that proves nothing is refused before the load, and fails within it") {
    const std::pair<const tls::identity*, std::string> wrong[] = {
        {&known().expired, "the server's certificate has expired"},
        {&known().early, "the server's certificate is not valid yet"},
        {&known().elsewhere, "the server's certificate is not for \"localhost\""},
        {&known().self_signed, "the server's certificate is self-signed"},
        {&known().unknown, "is signed by an authority that is not trusted here"}};
    for (const auto& [who, text] : wrong) {
        CAPTURE(text);
        const scripted::server server;
        const tls::front front(server.port(), {{.who = who}});
        const std::string why = refusal_of(asking(trusted(front.url())));
        CHECK(holds(why, front.url() + ": "));
        CHECK(holds(why, text));
        const record r = asked_of({.who = who});
        CHECK(status(r) == "tls");
        CHECK(holds(error(r), text));
        CHECK(r.sent_ns == 0);
        CHECK(server.model_lists().empty());
    }
}

TEST_CASE("the authorities of the system are trusted where no file is named") {
    const scripted::server server;
    const tls::front front(server.port(), {{.who = &known().good}});
    CHECK(holds(refusal_to_bring_up(endpoint{.url = front.url()}), "not trusted here"));
    const variable system("SSL_CERT_FILE", known().ca_file);
    CHECK(status(only_record(asking(endpoint{.url = front.url()}))) == "ok");
}

TEST_CASE("an unverified server is measured where that is asked for, and every report says so") {
    const scripted::server server;
    const tls::front front(server.port(), {{.who = &known().self_signed}});
    scenario s = asking(endpoint{.url = front.url(), .tls = {.verify = false}}, 30);
    s.slos = {mean(ttft) <= 20_s};
    s.repeats = 2;
    std::string console;
    {
        const heard heard;
        CHECK(run(s).verdicts().size() == 2);
        console = heard.text();
    }
    CHECK(holds(console, "NOT VERIFIED"));
    for (const char* file : {"summary.md", "junit.xml", "report.html"}) {
        CAPTURE(file);
        const std::string content = content_of(report_file(file));
        CHECK(holds(content, std::to_string(front.port())));
        CHECK(holds(content, "NOT VERIFIED"));
    }
    CHECK(holds(content_of(report_file("result.json")), "\"tls\": \"not verified\""));
}

TEST_CASE("a file of authorities that cannot be used is refused") {
    const auto refusal = [&](const tls_options& o) {
        return refusal_of(asking(endpoint{.url = "https://localhost:1", .tls = o}));
    };
    const std::string garbage = known().directory.file("garbage.pem");
    write(garbage, "not a certificate");
    CHECK(holds(refusal({.ca_file = "/none/ca.pem"}), "endpoint.tls.ca_file: /none/ca.pem cannot"));
    CHECK(holds(refusal({.ca_file = garbage}), "it holds no certificate in PEM format"));
    CHECK(holds(refusal({.verify = false, .ca_file = known().ca_file}),
                "endpoint.tls.verify is false: nothing would be verified with it"));
}

TEST_CASE("a handshake that never ends is ended by limits.connect") {
    const scripted::server server;
    const tls::front front(server.port(), {{.who = &known().good}, {.stalls = true}});
    scenario s = asking(trusted(front.url()));
    s.limits.connect = 200_ms;
    const record r = only_record(s);
    CHECK(status(r) == "connect");
    CHECK(holds(error(r), "limits.connect"));
}

TEST_CASE("all connections of a repeat but the first go on with its session") {
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
        CHECK(front.resumed() == c.connections_opened - 2);
        // The others are those of the model list, of the check before the load, and of the page of
        // metrics that is not there.
        CHECK(front.full() == 2 + 3);
    }
}

TEST_CASE("a record that was spoilt on its way is a failure of TLS") {
    const std::string event = scripted::chat_chunk(std::string(4000, 'a'));
    const scripted::answer a{
        scripted::send(scripted::chunked_head() + scripted::chunk(scripted::role())),
        scripted::wait(20ms), scripted::send(scripted::chunk(event)), scripted::stall()};
    const record r = asked_of({.who = &known().good, .spoil_byte = 4000}, a);
    CHECK(status(r) == "tls");
    CHECK(holds(error(r), "TLS failed: "));
}

#endif
