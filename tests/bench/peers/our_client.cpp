// Our own client in a row of peers: one repeat as a gate runs it, with its files and its report.
//   our_client URL STREAMS REQUESTS TOKENS REPORT_DIR [RATE]
// Prints a JSON object: what its tables say, times in ms, and how many requests had which status.
#define LLMBENCH_IMPLEMENT
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

using namespace llmbench;

int main(int argc, char** argv) {
    if (argc < 6) {
        std::fprintf(stderr, "usage: %s URL STREAMS REQUESTS TOKENS REPORT_DIR [RATE]\n", argv[0]);
        return 2;
    }
    ::setenv("LLMBENCH_REPORT_DIR", argv[5], 1);
    ::setenv("LLMBENCH_PROGRESS", "off", 1);
    std::cout.rdbuf(nullptr);
    const double rate = argc > 6 ? std::atof(argv[6]) : 0;
    const result r = run({
        .name = "beside peers",
        .target = endpoint{.url = argv[1]},
        .workload = synthetic{.prompt_tokens = fixed(16),
                              .output_tokens = fixed(std::atoi(argv[4]))},
        .arrivals = rate > 0 ? arrival_pattern(constant(request_rate(rate)))
                             : arrival_pattern(closed_loop(std::atoll(argv[2]))),
        .warmup = 0,
        .requests = std::atoll(argv[3]),
        .repeats = 1,
    });
    std::map<std::string, int> statuses;
    for (const record& one : r.requests()) ++statuses[to_string(one.status)];
    // A percentile that failures reach is infinite, which JSON has no number for.
    const auto print = [](const char* name, double v) {
        if (std::isfinite(v)) std::printf("\"%s\":%.6f,", name, v);
        else std::printf("\"%s\":null,", name);
    };
    std::printf("{");
    print("ttft_p50", 1e3 * r.measured(p50(ttft_from_send)));
    print("ttft_p99", 1e3 * r.measured(p99(ttft_from_send)));
    print("tpot_mean", 1e3 * r.measured(mean(tpot)));
    std::printf("\"achieved_rate\":%.4f", r.self_check().achieved_rate);
    for (const auto& [status, n] : statuses) std::printf(",\"%s\":%d", status.c_str(), n);
    std::printf("}\n");
}
