// What a client that does not run all the time does to verdicts: the same gates again and again, on a
// simulated server in a process of its own, with the client beside busy neighbours, stopped once for
// two seconds, and starved, running 10 ms of every 100. A healthy gate is at about half its limits
// and should pass, or say that it cannot; it must never fail. A sick one is far over them and must
// never pass.
//   busy_client [--runs N] [--neighbours N]        default 20 runs, 2 neighbours a core
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
#include "effects/net/sockets.hpp"
#include "effects/system/clock.hpp"

#include "support/scratch.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace llmbench;

enum class harm { none, neighbours, stopped, starved };

static void pause_for(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// A process of its own that does this; it has no threads yet.
template <class F>
static pid_t in_child(F&& f) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (!std::freopen("/dev/null", "w", stdout)) ::_exit(9);
    int code = 9;
    try {
        code = f();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
    }
    ::_exit(code);
}
static int busy_loop() {
    for (volatile unsigned turns = 1; turns != 0;) turns = turns | 1;
    return 0;
}
static void end(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
}

/// 0 passed, 1 failed, 2 inconclusive, 3 invalid.
static int gate_outcome_of(const std::string& url, double times) {
    const auto ms = [&](double x) { return time_span::from_seconds(x * times / 1000); };
    const result r = run({
        .target = endpoint{.url = url.c_str()},
        .workload = synthetic{.prompt_tokens = lognormal(64, 0.5), .output_tokens = fixed(32)},
        .arrivals = poisson(40_rps),
        .requests = 120,
        .slos = {mean(tpot) <= ms(34), p90(ttft) <= ms(140), p90(itl) <= ms(70),
                 p90(e2e) <= ms(1200)},
    });
    bool failed = false, undecided = false, invalid = false;
    for (const slo_verdict& v : r.verdicts()) {
        failed |= v.outcome == verdict::fail;
        undecided |= v.outcome == verdict::inconclusive;
        invalid |= v.outcome == verdict::invalid;
        if (v.outcome == verdict::fail || v.outcome == verdict::invalid)
            std::fprintf(stderr, "%s\n", v.line().c_str());
    }
    return failed ? 1 : invalid ? 3 : undecided ? 2 : 0;
}

static int outcome_under(harm what, const std::string& url, double times) {
    const pid_t client = in_child([&] { return gate_outcome_of(url, times); });
    int status = 0;
    if (what == harm::stopped) {
        pause_for(2000);
        ::kill(client, SIGSTOP);
        pause_for(2000);
        ::kill(client, SIGCONT);
    }
    while (what == harm::starved && ::waitpid(client, &status, WNOHANG) == 0) {
        ::kill(client, SIGSTOP);
        pause_for(90);
        ::kill(client, SIGCONT);
        pause_for(10);
    }
    if (what != harm::starved) ::waitpid(client, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
}

int main(int argc, char** argv) {
    int runs = 20;
    int neighbours = 2 * static_cast<int>(std::thread::hardware_concurrency());
    for (int i = 1; i < argc; i += 2) {
        const int n = i + 1 < argc ? std::atoi(argv[i + 1]) : 0;
        if (n > 0 && std::strcmp(argv[i], "--runs") == 0) runs = n;
        else if (n > 0 && std::strcmp(argv[i], "--neighbours") == 0) neighbours = n;
        else {
            std::fprintf(stderr, "usage: %s [--runs 1..] [--neighbours 1..]\n", argv[0]);
            return 2;
        }
    }
    const files::scratch reports;
    ::setenv("LLMBENCH_REPORT_DIR", reports.file("").c_str(), 1);
    ::setenv("LLMBENCH_PROGRESS", "off", 1);
    const int port = detail::free_port();
    const pid_t server = in_child([&] { return serve_simulated(engine{}, port); });
    pause_for(500);
    const std::string url = "http://127.0.0.1:" + std::to_string(port);
    std::printf("| the client | the gate | passed | failed | inconclusive | invalid | s a run |\n"
                "| --- | --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (const double times : {1.0, 0.2})
        for (const auto& [what, name] :
             {std::pair{harm::none, "left alone"}, std::pair{harm::neighbours, "busy neighbours"},
              std::pair{harm::stopped, "stopped for 2 s"},
              std::pair{harm::starved, "10 ms of 100"}}) {
            std::vector<pid_t> others;
            for (int i = 0; what == harm::neighbours && i < neighbours; ++i)
                others.push_back(in_child(busy_loop));
            int outcomes[10] = {};
            const long long began = detail::now_ns();
            for (int i = 0; i < runs; ++i) ++outcomes[outcome_under(what, url, times)];
            const double each = static_cast<double>(detail::now_ns() - began) * 1e-9 / runs;
            for (const pid_t other : others) end(other);
            std::printf("| %s | %s | %d | %d | %d | %d | %.1f |\n", name,
                        times == 1 ? "healthy" : "sick", outcomes[0], outcomes[1], outcomes[2],
                        outcomes[3], each);
            std::fflush(stdout);
        }
    end(server);
    return 0;
}
