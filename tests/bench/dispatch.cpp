// How punctual the client is: the time between a planned send and the moment the client acted on it,
// and the rate that came of it. Answers are one token long, so nothing but the clock is in the way.
//   dispatch [SECONDS]             of each measurement, default 10
#define LLMBENCH_NO_DOCTEST
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"

#include "flood_server.hpp"

using namespace llmbench;

static void measure(const flood_server& server, const char* name, const open_loop& arrivals, double rate, double seconds, bool spin) {
    const result r = run({
        .target = endpoint{.url = server.url()},
        .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(1)},
        .arrivals = arrivals,
        .warmup = 20,
        .requests = static_cast<long long>(rate * seconds),
        .repeats = 1,
        .client = {.spin = spin},
    });
    std::vector<double> late;
    for (const record& x : r.requests())
        if (x.phase == run_phase::measure) late.push_back(static_cast<double>(x.dispatched_ns - x.scheduled_ns) * 1e-3);
    std::sort(late.begin(), late.end());
    const auto at = [&](double q) { return late[static_cast<std::size_t>(q * static_cast<double>(late.size() - 1))]; };
    const self_check_t check = r.self_check();
    std::printf("| %-8s | %4.0f | %-3s | %5zu | %7.1f | %7.1f | %7.1f | %8.2f | %+.2f %% | %4.1f %% |\n", name, rate, spin ? "yes" : "no",
                late.size(), at(0.5), at(0.99), late.back(), check.achieved_rate, 100 * (check.achieved_rate / rate - 1), 100 * check.cpu_share);
    std::fflush(stdout);
}

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
    std::cout.rdbuf(nullptr);  // the table is all that is to be said
    std::printf("| arrivals | asked/s | spin | requests | late p50, us | p99, us | max, us | achieved/s | off | client CPU |\n"
                "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    const flood_server server;
    for (const bool spin : {false, true})
        for (const double rate : {10.0, 100.0, 1000.0}) {
            measure(server, "constant", constant(request_rate(rate)), rate, seconds, spin);
            measure(server, "poisson", poisson(request_rate(rate)), rate, seconds, spin);
        }
}
