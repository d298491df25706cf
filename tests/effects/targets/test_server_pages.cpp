// A server's pages: where they are asked for, and by which way.
#include "effects/targets/same_server.hpp"
#include "effects/targets/server_pages.hpp"

#include "support/scripted_server.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench::detail;

namespace {
address address_of(int port) {
    return resolved({.host = "127.0.0.1", .port = std::to_string(port)}).front();
}
page_address page(const std::string& named, const load_target& server) {
    return page_at(named, server, "http://server.test:8000", {}, "endpoint.metrics_url");
}
}  // namespace

TEST_CASE("a page of the server itself is asked for by the addresses that its load goes to") {
    scripted::server silent;
    silent.stop_accepting();
    const scripted::server server;
    int asked = 0;
    load_target target;
    target.url = {.host = "server.test", .port = "8000"};
    target.addresses = known_addresses([&] {
        ++asked;
        return vector<address>{address_of(silent.port()), address_of(server.port())};
    });
    for (const char* named : {"/metrics", "http://server.test:8000/metrics"})
        for (int reading = 0; reading < 3; ++reading) read_page(page(named, target));
    CHECK(asked == 1);
    // What the first reading has learned, which waited for an address that never answers.
    const vector<address> now = target.addresses.in_order();
    CHECK(is_same_address(now[0], address_of(server.port())));
}

TEST_CASE("a page of somebody else is looked for by itself") {
    load_target target;
    target.url = {.host = "server.test", .port = "8000"};
    target.addresses = known_addresses({address_of(1)});
    const page_address other = page("http://127.0.0.1:9400/metrics", target);
    CHECK(other.at.url.port == "9400");
    const vector<address> found = other.at.addresses.in_order();
    REQUIRE(found.size() == 1);
    CHECK(is_same_address(found[0], address_of(9400)));
}
