// What does a gateway add? A proxy that adds 700 us to each request stands before a simulated server,
// and both are loaded at the same time for a minute. Put your gateway in its place.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <thread>

using namespace llmbench;

constexpr int server_port = 18080, gateway_port = 18081;
constexpr auto added = std::chrono::microseconds(700);

static sockaddr_in local(int port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(static_cast<in_port_t>(port));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}
static int open_socket() {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0), on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return fd;
}
/// Passes bytes on in both directions; those of the client wait.
static void relay(int client) {
    const sockaddr_in to = local(server_port);
    const int server = open_socket();
    bool open = ::connect(server, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    pollfd both[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    char bytes[65536];
    while (open && ::poll(both, 2, -1) > 0)
        for (const pollfd& from : both) {
            if (from.revents == 0) continue;
            const auto n = ::recv(from.fd, bytes, sizeof bytes, 0);
            if (n > 0 && from.fd == client) std::this_thread::sleep_for(added);
            open = open && n > 0 &&
                   ::send(from.fd == client ? server : client, bytes, static_cast<std::size_t>(n),
                          MSG_NOSIGNAL) == n;
        }
    ::close(client);
    ::close(server);
}
static void serve_gateway() {
    const sockaddr_in at = local(gateway_port);
    const int listening = open_socket();
    if (::bind(listening, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) return;
    ::listen(listening, 128);
    for (int on = 1;;) {
        const int client = ::accept(listening, nullptr, nullptr);
        ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        std::thread(relay, client).detach();
    }
}
/// A process of its own, as a gateway is.
template <class F> pid_t started(F&& serve) {
    std::cout.flush();
    const pid_t child = ::fork();
    if (child != 0) return child;
    serve();
    ::_exit(1);
}

TEST_CASE("the gateway adds less than a millisecond") {
    const pid_t server = started([] { serve_simulated(engine{.decode_step = 5_ms}, server_port); });
    const pid_t gateway = started(serve_gateway);
    const std::string url = "http://127.0.0.1:";
    gate({
        .target = endpoint{.url = url + std::to_string(gateway_port), .ready_within = 10_s},
        .baseline = endpoint{.url = url + std::to_string(server_port), .ready_within = 10_s},
        .pairs = at_once,
        .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(8)},
        .arrivals = poisson(50_rps),
        .duration = 60_s,
        .slos = {mean(ttft) <= baseline + 1_ms, advisory(p90(ttft) <= baseline + 1_ms),
                 advisory(mean(tpot) <= baseline + 100_us)},
    });
    for (const pid_t child : {gateway, server}) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }
}
