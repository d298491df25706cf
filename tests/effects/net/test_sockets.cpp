// Ports that are drawn for servers.
#include "effects/net/sockets.hpp"
#include "effects/system/limits.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace llmbench::detail;

namespace {

bool within(int port, const port_range& r) { return port >= r.low && port <= r.high; }
bool same(const port_range& a, const port_range& b) { return a.low == b.low && a.high == b.high; }

}  // namespace

// A server that loads its model for minutes listens on its port after that: until then a port that
// connections are given may have become one's own end.
TEST_CASE("the port of a server is none that a connection may be given") {
    CHECK(same(ports_for_servers({32768, 60999}), {10000, 32767}));
    CHECK(same(ports_for_servers({49152, 65535}), {10000, 49151}));
    CHECK(same(ports_for_servers({10240, 65535}), {10000, 10239}));
    CHECK(same(ports_for_servers({1024, 20000}), {20001, 65535}));
    CHECK(same(ports_for_servers({1024, 4999}), {10000, 65535}));
    CHECK(same(ports_for_servers({}), {10000, 32767}));
    CHECK(ports_for_servers({1024, 65535}).size() == 0);  // the system's choice is all there is
    CHECK(ports_for_servers({10050, 65500}).size() == 0);

    const port_range outgoing = outgoing_ports(), ours = ports_for_servers(outgoing);
    std::set<int> drawn;
    for (int i = 0; i < 50; ++i) {
        const int port = free_port();
        CAPTURE(port);
        CHECK(port > 0);
        if (ours.size() == 0) continue;
        CHECK(within(port, ours));
        CHECK_FALSE(within(port, outgoing));
        CHECK(drawn.insert(port).second);
    }
}
