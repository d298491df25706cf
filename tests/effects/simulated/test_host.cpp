// The simulated server's sockets, where the machine has none left.
#include "effects/net/blocking_http.hpp"
#include "extensions/simulated/host.hpp"

#include "support/descriptors.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include <sys/resource.h>
#include <sys/socket.h>

using namespace llmbench::detail;

TEST_CASE("a simulated server accepts those who came when it had no descriptor left") {
    if (a_sanitizer_needs_descriptors) return;
    simulated_host host{llmbench::engine{}};
    const http_server there =
        server_at({.host = "127.0.0.1", .port = std::to_string(host.port())});
    const address at = there.addresses.in_order().front();
    CHECK(blocking_get(there, "/health", "", 20).status == 200);

    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none_left = before;
    none_left.rlim_cur = 0;
    const descriptor client = descriptor(::socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(client.get() >= 0);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none_left) == 0);
    const int connected =
        ::connect(client.get(), reinterpret_cast<const sockaddr*>(&at.storage), at.size);
    // However much of this the server's thread is given: it may have tried in vain, many times.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE(connected == 0);  // the queue has taken it

    CHECK(blocking_get(there, "/health", "", 20).status == 200);
    const std::string ask = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    REQUIRE(::send(client.get(), ask.data(), ask.size(), no_signal) ==
            static_cast<ssize_t>(ask.size()));
    char first[12] = {};
    CHECK(::recv(client.get(), first, sizeof first, MSG_WAITALL) == 12);
    CHECK(std::string(first, 12) == "HTTP/1.1 200");
}
