// What a mix of 64 parts costs the client, beside one part: processor time of one thread for each
// request, of building it and of all that is looked up about it while it is sent and kept. The plans
// take turns in one run, and the least of the rounds counts.
//   mix_cost [--quick] [--rounds N] [--requests N]
// Quick: fewer rounds, and exit code 1 where with 512 tokens the mix costs over twice as much.
#include "llmbench.hpp"
#include "core/dialects/table.hpp"
#include "core/planning/planning.hpp"
#include "core/traffic/requests.hpp"
#include "effects/system/clock.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

struct cost {
    double build_us = infinity, look_up_us = infinity;
};
volatile std::size_t kept = 0;  // so that no call is left out

void measure(const plan& p, std::size_t requests, cost& least) {
    const api_traits& api = apis[0];
    double began = thread_cpu_seconds();
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < requests; ++i)
        bytes += request_body(api, "model", request_of(p, run_variant::candidate, 0, i)).size();
    double ended = thread_cpu_seconds();
    least.build_us = std::min(least.build_us, (ended - began) * 1e6 / static_cast<double>(requests));
    began = thread_cpu_seconds();
    // As worker, agenda, book and repeat ask for each request.
    for (std::size_t i = 0; i < requests; ++i) {
        bytes += wanted_at(*p.sent, i) != nullptr;
        bytes += static_cast<std::size_t>(step_of(*p.sent, i).label);
        bytes += wanted_at(*p.sent, i) != nullptr;
        bytes += static_cast<std::size_t>(forced_tokens(*p.sent, i));
    }
    ended = thread_cpu_seconds();
    least.look_up_us =
        std::min(least.look_up_us, (ended - began) * 1e6 / static_cast<double>(requests));
    kept = bytes;
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t rounds = 15, requests = 4000;
    bool quick = false;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--quick") quick = true;
        else if (name == "--rounds" && i + 1 < argc) rounds = std::strtoull(argv[++i], nullptr, 10);
        else if (name == "--requests" && i + 1 < argc)
            requests = std::strtoull(argv[++i], nullptr, 10);
        else {
            std::fprintf(stderr, "mix_cost: there are --quick, --rounds N and --requests N\n");
            return 2;
        }
    }
    if (quick) rounds = 5, requests = 1000;
    bool met = true;
    std::printf("| prompt tokens | parts | build, us | look up, us | together, us | over one part |\n"
                "| ---: | --- | ---: | ---: | ---: | ---: |\n");
    for (const int tokens : {16, 512}) {
        const synthetic words{.prompt_tokens = fixed(tokens)};
        mix_of_parts shared;
        for (int i = 0; i < 64; ++i)
            shared.parts.push_back({.name = std::to_string(i), .workload = words});
        const vector<std::pair<const char*, plan>> plans = {
            {"one", planned({.workload = words, .arrivals = constant(64_rps), .duration = 60_s}, 1)},
            {"64", planned({.workload = shared, .arrivals = constant(64_rps), .duration = 60_s}, 1)}};
        vector<cost> costs(plans.size());
        for (std::size_t round = 0; round < rounds; ++round)
            for (std::size_t k = 0; k < plans.size(); ++k)
                measure(plans[k].second, requests, costs[k]);
        const double one = costs[0].build_us + costs[0].look_up_us;
        for (std::size_t k = 0; k < plans.size(); ++k) {
            const double all = costs[k].build_us + costs[k].look_up_us;
            std::printf("| %d | %s | %.2f | %.2f | %.2f | %.2f |\n", tokens, plans[k].first,
                        costs[k].build_us, costs[k].look_up_us, all, all / one);
            met = met && (tokens < 512 || all <= 2 * one);
        }
    }
    return met || !quick ? 0 : 1;
}
