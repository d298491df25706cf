// A client that something else stops while it compares settings: the round is measured again.
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
#include "support/relay.hpp"
#include "support/sockets.hpp"
#include "llmbench_compare.hpp"

#include <chrono>
#include <csignal>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llmbench;

namespace {

/// A process of its own that does this and nothing after it.
template <class F> pid_t in_child(F&& f) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(f());
    return child;
}
int unused_port() {
    const int fd = sockets::made(AF_INET);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    ::bind(fd, reinterpret_cast<sockaddr*>(&a), size);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&a), &size);
    ::close(fd);
    return ntohs(a.sin_port);
}
void pause_for(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// In a process of its own, once it takes connections.
pid_t server_at(int port) {
    const pid_t server =
        in_child([port] { return serve_simulated(engine{.decode_step = 10_ms}, port); });
    for (int tries = 0, fd = -1; fd < 0 && tries < 1000; ++tries) {
        pause_for(20);
        fd = relay::connected_to(port);
        if (fd >= 0) ::close(fd);
    }
    return server;
}
/// Stops this process for a second, so many times, in a while; it runs for `gap_ms` in between.
pid_t stopper_after(int ms, int times, int gap_ms) {
    const pid_t client = ::getpid();
    return in_child([=] {
        pause_for(ms);
        for (int i = 0; i < times; ++i) {
            ::kill(client, SIGSTOP);
            pause_for(1000);
            ::kill(client, SIGCONT);
            pause_for(gap_ms);
        }
        return 0;
    });
}

}  // namespace

TEST_CASE("a round of settings in which the client was stopped goes for all of them") {
    std::vector<pid_t> servers;
    std::vector<std::string> urls;
    for (int i = 0; i < 2; ++i) {
        const int port = unused_port();
        servers.push_back(server_at(port));
        urls.push_back("http://127.0.0.1:" + std::to_string(port));
    }
    // So often that some fall into the load, however long it takes to begin.
    const pid_t stopper = stopper_after(700, 6, 1500);
    const comparison_result c = compare(
        {.name = "stopped in a round",
         .workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(40)},
         .arrivals = closed_loop(4),
         .warmup = 0,
         .requests = 16,
         .repeats = 2,
         .slos = {max(itl) <= 600_ms}},
        {{"a", endpoint{.url = urls[0]}}, {"b", endpoint{.url = urls[1]}}});
    ::waitpid(stopper, nullptr, 0);
    for (const pid_t server : servers) {
        ::kill(server, SIGKILL);
        ::waitpid(server, nullptr, 0);
    }
    INFO(c.explain());
    std::set<int> rounds[2];
    for (int i = 0; i < 2; ++i) {
        CHECK(c.at(i).verdicts()[0].outcome != verdict::fail);
        for (const record& r : c.at(i).requests()) rounds[i].insert(r.repeat);
    }
    CHECK(rounds[0] == rounds[1]);
    CHECK(rounds[0].size() == 2);
    CHECK(*rounds[0].rbegin() >= 2);  // one of the first two was measured again
}
