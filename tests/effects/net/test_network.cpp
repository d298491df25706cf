// Waiting for sockets, and what ends a wait.
#include "effects/net/machine_network.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"
#include "effects/system/clock.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace llmbench::detail;

namespace {

struct reported final : socket_user {
    int readable = 0;
    void on_readable() override { ++readable; }
    void on_writable() override {}
};
std::atomic<int> other_end{-1};
/// What comes in at the very moment at which a signal ends a wait.
void write_a_byte(int) {
    [[maybe_unused]] const ssize_t n = ::write(other_end, "x", 1);
}

}  // namespace

// A client that was stopped and continued is told so in the same way: its wait ends, and what came
// in meanwhile must be told of in that turn, or its stamps would be those of a client that ran.
TEST_CASE("a wait that a signal ends tells of what has come in") {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    for (const int end : ends) REQUIRE(::fcntl(end, F_SETFL, O_NONBLOCK) == 0);
    other_end = ends[1];
    struct sigaction act = {}, before = {};
    act.sa_handler = write_a_byte;
    REQUIRE(::sigaction(SIGUSR1, &act, &before) == 0);
    {
        machine_network net;
        reported user;
        const auto socket = net.watch(descriptor(ends[0]), AF_UNIX, user);
        REQUIRE(socket);
        net.wait(now_ns() + 20000000);  // tells that it can be written to
        net.each();
        user.readable = 0;
        const pthread_t waits = ::pthread_self();
        std::atomic<bool> over{false};
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            if (!over) ::pthread_kill(waits, SIGUSR1);
        });
        const long long until = now_ns() + 20000000000;
        net.wait(until);
        over = true;
        net.each();
        other.join();
        CHECK(user.readable == 1);
        CHECK(now_ns() < until);
        net.close(socket);
    }
    ::sigaction(SIGUSR1, &before, nullptr);
    ::close(ends[1]);
}
