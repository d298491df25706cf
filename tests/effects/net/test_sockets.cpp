// Ports that are drawn for servers, and what may block for long.
#include "effects/net/sockets.hpp"
#include "effects/system/limits.hpp"
#include "support/descriptors.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>

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

TEST_CASE("what does not answer in time is left behind, and an interrupt is heard while it is waited for") {
    using llmbench::detail::answered_within;
    const auto release = std::make_shared<std::promise<void>>();
    const std::shared_future<void> released = release->get_future().share();
    const std::function<int()> never = [released] { return released.wait(), 7; };
    CHECK(answered_within<int>([] { return 7; }, 60).value_or(0) == 7);
    CHECK(!answered_within<int>(never, 0.03));
    std::atomic<bool> is_reported_by_host{false};
    std::thread interrupter([&] {  // again and again: one that comes before the wait is not its own
        for (; !is_reported_by_host; sleep_s(0.01)) stop_asked = !stop_asked;
    });
    CHECK(!answered_within<int>(never, 3600));  // else this test would not end
    is_reported_by_host = true;
    interrupter.join();
    stop_asked = true;
    CHECK(answered_within<int>([] { return 7; }, 60).value_or(0) == 7);  // as what ends a gate asks
    llmbench::detail::stop_asked = false;
    release->set_value();
}

TEST_CASE("a port that cannot be looked for without a descriptor says what to raise") {
    if (a_sanitizer_needs_descriptors) return;
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none = before;
    none.rlim_cur = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    std::string why;
    try {
        free_port();
    } catch (const std::runtime_error& e) { why = e.what(); }
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(why == "no free port can be looked for: no file descriptor is left (EMFILE): raise its "
                 "limit, ulimit -n");
}
