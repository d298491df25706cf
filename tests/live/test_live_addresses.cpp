// The ways to a server: Unix-domain sockets, names of this machine, IPv6, local addresses.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/relay.hpp"
#include "support/scripted_server.hpp"

#include <filesystem>
#include <map>
#include <set>
#include <string>

using namespace llmbench;
using namespace live;

namespace {
#if defined(__linux__) && !defined(LLMBENCH_WAIT_BY_ASIO)
constexpr double stamped_here = 1;
#else
constexpr double stamped_here = 0;
#endif
auto passing_on_to(const scripted::server& s) {
    return [port = s.port()](int fd, int going) { relay::pass_on(fd, going, port); };
}
}  // namespace

TEST_CASE("a server behind a Unix-domain socket is measured like any other") {
    const scratch directory;
    const scripted::server server;
    const std::string file = directory.file("server.sock");
    const relay::acceptor relayed(relay::unix_listener(file), passing_on_to(server));
    for (const std::string slashes : {"", "//"}) {
        const result r = run(asking(endpoint{.url = "unix:" + slashes + file}, 3));
        all_ok(r);
        CHECK(r.self_check().stamped_fraction == 0);  // no kernel stamps what comes that way
    }
    REQUIRE(server.log().size() == 6);
    CHECK(server.log()[0].header("Host") == "localhost");
    CHECK(server.log()[0].path == "/v1/chat/completions");
    CHECK(server.log()[2].connection == server.log()[0].connection);
}

TEST_CASE("LLMBENCH_URL may name a Unix-domain socket") {
    const scratch directory;
    const scripted::server server;
    const std::string file = directory.file("server.sock");
    const relay::acceptor relayed(relay::unix_listener(file), passing_on_to(server));
    const variable url("LLMBENCH_URL", "unix:" + file);
    all_ok(run(asking(endpoint{})));
    CHECK(server.log().size() == 1);
}

TEST_CASE("a Unix-domain socket whose queue is full is asked again until it has room") {
    const scratch directory;
    const scripted::server server;
    const std::string file = directory.file("server.sock");
    const relay::acceptor relayed(relay::unix_listener(file, 0), passing_on_to(server));
    scenario s = asking(endpoint{.url = "unix:" + file}, 64);
    s.arrivals = all_at_once();
    all_ok(run(s));
    CHECK(server.log().size() == 64);
}

TEST_CASE("a Unix-domain socket that is not there is told by name") {
    const scratch directory;
    const variable skip("LLMBENCH_SKIP_WITHOUT_SERVER", "0");
    const std::string file = directory.file("none.sock");
    CHECK(holds(refusal_to_bring_up(endpoint{.url = "unix:" + file}),
                "unix:" + file + ": cannot connect: No such file or directory"));
    write(file, "a file");
    CHECK(holds(refusal_to_bring_up(endpoint{.url = "unix:" + file}),
                "cannot connect: Connection refused"));
}

TEST_CASE("localhost is this machine, and so is what lies below it, whatever its resolver knows") {
    const scripted::server server;
    for (const std::string host : {"localhost", "llmbench.localhost"}) {
        CAPTURE(host);
        all_ok(run(asking(
            endpoint{.url = "http://" + host + ":" + std::to_string(server.port())}, 1)));
    }
    CHECK(holds(refusal_to_bring_up(endpoint{.url = "http://localhost.invalid:1"}),
                "the host \"localhost.invalid\" cannot be resolved"));
}

TEST_CASE("a server with an IPv6 address is measured like any other") {
    const int listener = relay::ipv6_listener();
    if (listener < 0) {
        MESSAGE("skipped: this machine has no IPv6");
        return;
    }
    const scripted::server server;
    const std::string authority = "[::1]:" + std::to_string(relay::port_of(listener));
    const relay::acceptor relayed(listener, passing_on_to(server));
    const result r = run(asking(endpoint{.url = "http://" + authority}, 2));
    all_ok(r);
    CHECK(r.self_check().stamped_fraction >= 0.9 * stamped_here);
    REQUIRE(server.log().size() == 2);
    CHECK(server.log()[0].header("Host") == authority);
}

TEST_CASE("connections come from the local addresses that the client is given, in turns") {
    const scripted::server server;
    scenario s = asking(endpoint{.url = server.url()}, 12);
    s.arrivals = closed_loop(4);
    s.client.from = {"127.0.0.2", "127.0.0.3"};
    all_ok(run(s));
    std::map<std::string, std::set<int>> connections;
    for (const scripted::request& r : server.log()) connections[r.from].insert(r.connection);
    REQUIRE(connections.size() == 2);
    CHECK(connections["127.0.0.2"].size() == 2);
    CHECK(connections["127.0.0.3"].size() == 2);
}

TEST_CASE("local addresses that cannot be used are refused by name") {
    const scripted::server server;
    scenario s = asking(endpoint{.url = server.url()}, 2);
    s.client.from = {"not-an-address"};
    CHECK(holds(refusal_of(s), "client.from is \"not-an-address\": it must be an IP address"));
    s.client.from = {"192.0.2.1"};  // of no machine (RFC 5737)
    CHECK(holds(refusal_of(s), "client.from is \"192.0.2.1\": this machine has no such address"));
    s.client.from = {"::1"};
    CHECK(holds(refusal_of(s), "client.from has"));
    CHECK(server.log().empty());
}
