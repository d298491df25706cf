// TLS in memory and over a made-up network: messages that come in parts, and the client's certificate.
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

bool mentions(const std::string& words, const std::string& what) {
    return words.find(what) != std::string::npos;
}

}  // namespace

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
#endif
