// A client that something else stops: what it measured then is told as its own, and nobody's miss.
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
pid_t stopper_after(int ms, int times, int gap_ms = 200) {
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

enum outcome { passed, failed, undecided, invalid, wordless };
/// A gate on p90(itl) and mean(tpot), at half its limits. Red without the client's name is wordless.
outcome gate_at(const std::string& url) {
    const result r = run({.target = endpoint{.url = url.c_str()},
                          .workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(40)},
                          .arrivals = closed_loop(4),
                          .warmup = 0,
                          .requests = 40,
                          .slos = {max(itl) <= 600_ms, mean(tpot) <= 40_ms}});
    outcome worst = passed;
    for (const slo_verdict& v : r.verdicts()) {
        if (v.outcome == verdict::fail) return failed;
        if (v.outcome == verdict::inconclusive) worst = undecided;
        if (v.outcome != verdict::invalid) continue;
        if (std::string(v.reason.c_str()).rfind("client: ", 0) != 0 || r.self_check().ok)
            return wordless;
        worst = invalid;
    }
    // Told of what is left, or of a repeat that was set aside for it.
    std::set<int> left;
    for (const record& x : r.requests()) left.insert(x.repeat);
    const bool was_set_aside = *left.rbegin() >= static_cast<int>(left.size());
    const self_check_t c = r.self_check();
    return c.lost_fraction > 0 || c.stamp_lag_max > 0.1 || was_set_aside ? worst : wordless;
}

}  // namespace

TEST_CASE("a client that is stopped for a second knows it, and fails no server") {
    const int port = unused_port();
    const pid_t server = server_at(port);
    const pid_t stopper = stopper_after(1500, 3);
    const outcome ended = gate_at("http://127.0.0.1:" + std::to_string(port));
    ::waitpid(stopper, nullptr, 0);
    ::kill(server, SIGKILL);
    ::waitpid(server, nullptr, 0);
    CHECK(ended != failed);
    CHECK(ended != wordless);
}

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
