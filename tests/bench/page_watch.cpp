// What reading a server's page of metrics beside a load costs: the same load with and without, in
// turns (ABBA), sends and stamps of both side by side, and the processor time that the client took
// more. The page is served by a process of its own, once as large as a vLLM server's, once of 5 MB.
//   page_watch [ROUNDS [SECONDS]]     default 6 rounds of 10 s; exits 1 where reading beside
//                                     the load takes over 2 % of a core (1 % is its own limit)
#include "llmbench.hpp"
#include "core/base/text.hpp"
#include "effects/targets/server_pages.hpp"

#include "flood_server.hpp"
#include "support/one_repeat.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llmbench;
using namespace llmbench::detail;

/// A page of so many bytes, whatever is asked, until this process ends.
class page_server {
public:
    explicit page_server(std::size_t bytes) {
        const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof a;
        if (listener < 0 || ::bind(listener, reinterpret_cast<sockaddr*>(&a), size) != 0 ||
            ::listen(listener, 16) != 0 ||
            ::getsockname(listener, reinterpret_cast<sockaddr*>(&a), &size) != 0)
            std::exit(9);
        port_ = ntohs(a.sin_port);
        child_ = ::fork();
        if (child_ != 0) {
            ::close(listener);
            return;
        }
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::string page = "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 1\n";
        for (int i = 0; page.size() < bytes; ++i)
            page += "vllm:request_queue_time_seconds_bucket{engine=\"0\",le=\"" + std::to_string(i) +
                    "\",model_name=\"m\"} " + std::to_string(i) + ".0\n";
        const std::string answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
                                   "Content-Length: " + std::to_string(page.size()) + "\r\n\r\n" +
                                   page;
        for (;;) {
            const int fd = ::accept(listener, nullptr, nullptr);
            char head[4096];
            if (fd < 0 || ::recv(fd, head, sizeof head, 0) <= 0) continue;
            for (std::size_t at = 0; at < answer.size();) {
                const ssize_t n = ::send(fd, answer.data() + at, answer.size() - at, MSG_NOSIGNAL);
                if (n <= 0) break;
                at += static_cast<std::size_t>(n);
            }
            ::close(fd);
        }
    }
    ~page_server() {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }
    page_server(const page_server&) = delete;
    page_server& operator=(const page_server&) = delete;
    server_pages pages() const {
        page_address p;
        p.url = "http://127.0.0.1:" + std::to_string(port_) + "/metrics";
        p.at = server_at(parsed_url(p.url, "page"));
        p.path = "/metrics";
        server_pages all;
        all.all = {p};
        all.first_is_servers = true;
        return all;
    }

private:
    int port_ = 0;
    pid_t child_ = 0;
};

struct figures {
    vector<double> late_us{};
    double stamp_p99_us = 0, cpu_s = 0, seconds = 0;
    std::size_t rounds = 0, readings = 0;
    double late(double q) {
        std::sort(late_us.begin(), late_us.end());
        return late_us[static_cast<std::size_t>(q * static_cast<double>(late_us.size() - 1))];
    }
};
static double cpu_seconds() {
    rusage u{};
    ::getrusage(RUSAGE_SELF, &u);
    return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}
static void measure(figures& f, const scenario& s, const server_pages* pages) {
    const double cpu = cpu_seconds();
    const long long began = now_ns();
    std::optional<page_watch> watch;
    if (pages) watch.emplace(*pages, vector<std::string>{});
    const repeat_data d = bench::one_repeat(s);
    if (watch) f.readings += watch->metrics(0).readings.size();
    f.cpu_s += cpu_seconds() - cpu;
    f.seconds += static_cast<double>(now_ns() - began) * 1e-9;
    f.stamp_p99_us += d.stamp_lag.quantile(0.99) * 1e6;
    ++f.rounds;
    for (const record& r : d.records)
        if (r.phase == run_phase::measure)
            f.late_us.push_back(static_cast<double>(r.dispatched_ns - r.scheduled_ns) * 1e-3);
}

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 6;
    const double seconds = argc > 2 ? std::atof(argv[2]) : 10;
    const bench::flood_server server;
    bool good = true;
    for (const std::size_t bytes : {std::size_t{40} << 10, std::size_t{5} << 20}) {
        const page_server page(bytes);
        const server_pages pages = page.pages();
        const scenario s{.target = endpoint{.url = server.url()},
                         .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(64)},
                         .arrivals = poisson(200_rps),
                         .warmup = 20,
                         .duration = time_span::from_seconds(seconds),
                         .repeats = 1};
        figures without, with;
        for (int i = 0; i < rounds; ++i)
            for (const bool watched : {i % 2 == 1, i % 2 == 0})
                measure(watched ? with : without, s, watched ? &pages : nullptr);
        std::printf("a page of %zu KiB, %d rounds of %g s, 200 requests/s of 64 tokens\n",
                    bytes >> 10, rounds, seconds);
        for (auto* f : {&without, &with})
            std::printf("  %-8s sends late by p50 %6.1f us, p99 %7.1f us, max %8.1f us; reads "
                        "stamped within p99 %6.1f us; %5.2f %% of a core; %zu readings\n",
                        f == &with ? "read" : "not read", f->late(0.5), f->late(0.99), f->late(1),
                        f->stamp_p99_us / static_cast<double>(f->rounds),
                        100 * f->cpu_s / f->seconds, f->readings);
        const double more = with.cpu_s - without.cpu_s * with.seconds / without.seconds;
        const auto n = static_cast<double>(with.readings);
        const double beside = n - 2 * static_cast<double>(with.rounds);  // not before or after it
        const double fraction = more * beside / n / with.seconds;
        std::printf("  ratios: p50 %.2f, p99 %.2f; a reading took %.1f ms of a core, those beside "
                    "the load %.2f %%\n",
                    with.late(0.5) / without.late(0.5), with.late(0.99) / without.late(0.99),
                    1e3 * more / n, 100 * fraction);
        good = good && fraction < 0.02;
    }
    return good ? 0 : 1;
}
