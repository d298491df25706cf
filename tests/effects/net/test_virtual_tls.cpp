// TLS over a made-up network, in memory: what it does over sockets it does here, wherever the
// stream of bytes is cut.
#ifdef LLMBENCH_WITH_TLS
#include "core/base/random.hpp"
#include "core/planning/planning.hpp"
#include "core/stored/record_json.hpp"
#include "core/reports/result_json.hpp"
#include "extensions/simulated/virtual_environment.hpp"
#include "extensions/simulated/target.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/slot.hpp"

#include "simulated/tls.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>

using namespace virtual_world;

namespace {

long long with_status(const repeat& r, request_status s) {
    return std::count_if(r.seen.records.begin(), r.seen.records.end(),
                         [s](const record& x) { return x.status == s; });
}
/// Why a server with this certificate is refused, for the URL's host and these authorities.
std::string refusal_of(const tls::identity& who, const tls::identity& authority) {
    const files::scratch folder;
    tls::write_pem(authority, folder.file("authority.pem"));
    virtual_environment execution_environment;
    const inside_environment here(&execution_environment);
    virtual_tls_server server(execution_environment, {}, tls_of_server(who));
    endpoint at = tls_endpoint(server);
    at.tls.ca_file = text(folder.file("authority.pem"));
    live_target target(at, run_variant::candidate);
    try {
        target.bring_up();
    } catch (const std::exception& e) {
        return e.what();
    }
    return {};
}
bool mentions(const std::string& words, const std::string& what) {
    return words.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("over TLS every answer and every stamp is what it is without") {
    const repeat plain = repeat_of(some(), {});
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        const repeat r = tls_repeat_of(some(), {}, {}, version);
        REQUIRE(r.seen.records.size() == 20);
        CHECK(with_status(r, request_status::ok) == 20);
        for (std::size_t i = 0; i < 20; ++i) {
            const record& x = r.seen.records[i];
            const auto* const e = r.served_as(str(x.id));
            REQUIRE(e);
            CHECK(x.first_token_ns == e->first_write_ns);
            CHECK(x.last_token_ns == e->last_write_ns);
            CHECK(x.output_tokens == plain.seen.records[i].output_tokens);
        }
    }
}

TEST_CASE("TLS that comes in pieces, byte by byte or late is the same answer") {
    for (const hardships& h :
         {hardships{.cut = 0.7}, hardships{.latency_s = 0.002, .jitter_s = 1e-4, .bytewise = 0.99},
          hardships{.bytes_a_second = 5e5, .cut = 0.3}}) {
        const repeat r = tls_repeat_of(some(), {}, h);
        CHECK(with_status(r, request_status::ok) == 20);
    }
}

TEST_CASE("a part of a TLS message is held, and told: it came behind what is read") {
    const identities& all = identities::of_the_tests();
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        const tls_client trusts({.verify = false}, {.host = "simulated-1"});
        tls_channel client(trusts, nullptr);
        tls::judging_parameters terms({{.who = &all.server, .version = version}});
        tls::channel server(terms);
        std::string to_server, to_client, heard;
        vector<char> room;
        const auto turn = [&] {
            to_server = std::string(client.outgoing());
            client.sent(to_server.size());
            if (!to_server.empty()) server.take(to_server, heard);
            server.flush([&](std::string_view bytes) { return to_client.append(bytes), true; });
        };
        client.received({}, room);
        for (int i = 0; i < 5; ++i) {
            turn();
            client.received(std::exchange(to_client, {}), room);
        }
        REQUIRE(client.open());
        CHECK_FALSE(client.holds_part());
        const auto said = [&](const char* words) {
            server.say(words);
            turn();
            return std::exchange(to_client, {});
        };
        const std::string first = said("first"), second = said("second");
        CHECK(client.received(first, room) == "first");
        CHECK_FALSE(client.holds_part());
        std::size_t part = 1;
        std::string next = second;
        for (; part < next.size(); next = said("next"), ++part) {
            CHECK(client.received(next.substr(0, part), room) == "");
            CHECK(client.holds_part());
            CHECK(client.received(next.substr(part), room) == (part == 1 ? "second" : "next"));
            CHECK_FALSE(client.holds_part());
        }
        CHECK(part > 20);
        CHECK(client.received(next, room) == "next");
        const std::string one = said("one"), two = said("two");
        CHECK(client.received(one + two.substr(0, 3), room) == "one");
        CHECK(client.holds_part());
    }
}

TEST_CASE("a connection that ends with the server's first words fails its request and says so") {
    // These are its handshake. A reset overtakes it; what is closed after it ends without a word.
    const repeat reset = tls_repeat_of(some(), {}, {.reset = 1});
    CHECK(with_status(reset, request_status::tls) == 20);
    CHECK(reset.seen.records.size() == 20);
    const repeat closed = tls_repeat_of(some(), {}, {.half_closed = 1}, TLS1_3_VERSION);
    REQUIRE(closed.seen.records.size() == 20);
    CHECK(with_status(closed, request_status::ok) == 0);
    for (const record& x : closed.seen.records) CHECK(mentions(str(x.error), tls_was_cut));
}

TEST_CASE("an answer that is cut is no answer, over TLS either") {
    const repeat r = tls_repeat_of(some(100), {}, {.half_closed = 0.02});
    REQUIRE(r.met.half_closed > 0);
    CHECK(r.seen.records.size() == 100);
    CHECK(with_status(r, request_status::truncated) > 0);
    CHECK(with_status(r, request_status::ok) > 0);
}

TEST_CASE("a server that asks for a certificate gets the one that the gate names") {
    const identities& all = identities::of_the_tests();
    const tls::identity mine = tls::made("client", {}, &all.authority);
    const tls::identity stranger = tls::made("stranger");
    const files::scratch folder;
    tls::write_pem_with_key(mine, folder.file("mine.pem"));
    tls::write_pem(mine, folder.file("certificate.pem"));
    tls::write_pem_with_key(stranger, folder.file("stranger.pem"));
    const auto fault = [&](int version, const std::string& certificate, const std::string& key) {
        virtual_environment execution_environment;
        const inside_environment here(&execution_environment);
        const auto asks = tls_of_server(all.server, version);
        X509_STORE_add_cert(SSL_CTX_get_cert_store(asks.get()), all.authority.certificate.get());
        SSL_CTX_set_verify(asks.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
        virtual_tls_server server(execution_environment, {}, asks);
        endpoint at = tls_endpoint(server);
        at.tls.ca_file = text(all.authority_file);
        if (!certificate.empty()) at.tls.cert_file = text(folder.file(certificate));
        if (!key.empty()) at.tls.key_file = text(folder.file(key));
        live_target target(at, run_variant::candidate);
        try {
            target.bring_up();
        } catch (const std::exception& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        CHECK(fault(version, "mine.pem", "") == "");
        CHECK(fault(version, "certificate.pem", "mine.pem") == "");
        CHECK(mentions(fault(version, "", ""), "ask"));
        CHECK(mentions(fault(version, "", ""), "for a certificate of the client"));
        CHECK(mentions(fault(version, "stranger.pem", ""), "does not accept the client's certificate"));
    }
    CHECK(mentions(fault(0, "certificate.pem", ""), "it holds no key in PEM format"));
    CHECK(mentions(fault(0, "certificate.pem", "stranger.pem"), "its key is not that of the certificate"));
    CHECK(mentions(fault(0, "", "mine.pem"), "endpoint.tls.cert_file is empty"));
    CHECK(mentions(fault(0, "none.pem", ""), "endpoint.tls.cert_file"));
}

TEST_CASE("a certificate that is not to be trusted is refused before any load, with why") {
    const identities& all = identities::of_the_tests();
    const tls::identity stranger = tls::authority("another authority");
    const auto made = [&](const tls::certificate_options& o) {
        return tls::made("server", o, &all.authority);
    };
    CHECK(refusal_of(all.server, all.authority) == "");
    CHECK(mentions(refusal_of(all.server, stranger), "signed by an authority that is not trusted"));
    CHECK(mentions(refusal_of(made({.names = "DNS:simulated-2"}), all.authority),
                   "is not for \"simulated-1\""));
    CHECK(mentions(refusal_of(made({.names = "DNS:simulated-1", .from_days = -9, .to_days = -1}),
                              all.authority),
                   "has expired"));
}
#endif
