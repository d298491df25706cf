// How often a gate that should be green is not: the same healthy gate again and again, on the
// simulated server in real time. What is counted is the method and this machine's noise together.
//   healthy_gate [--runs N]        default 20
#include "llmbench.hpp"
#include "extensions/simulated/target.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <string>

using namespace llmbench;

struct tally {
    int pass = 0, fail = 0, inconclusive = 0, invalid = 0;
    double repeats = 0, logs = 0;
    void add(const slo_verdict& v) {
        pass += v.outcome == verdict::pass;
        fail += v.outcome == verdict::fail;
        inconclusive += v.outcome == verdict::inconclusive;
        invalid += v.outcome == verdict::invalid;
        repeats += v.repeats;
        logs += std::log(v.estimate.value / v.limit);
    }
    int runs() const { return pass + fail + inconclusive + invalid; }
};

int main(int argc, char** argv) {
    int runs = 20;
    if (argc == 3 && std::strcmp(argv[1], "--runs") == 0) runs = std::atoi(argv[2]);
    if (argc == 2 || argc > 3 || runs < 1) {
        std::fprintf(stderr, "usage: %s [--runs 1..]\n", argv[0]);
        return 2;
    }
    std::cout.rdbuf(nullptr);  // the table is all that is to be said
    std::map<std::string, tally> objectives;
    int green = 0, red = 0, inconclusive = 0, invalid = 0;
    double repeats = 0;
    for (int n = 0; n < runs; ++n) {
        const detail::simulated_host server(engine{.seed = n + 1});
        const result r = run({
            .name = std::to_string(n + 1).c_str(),
            .target = endpoint{.url = server.url()},
            .workload = synthetic{.prompt_tokens = lognormal(64, 0.5), .output_tokens = fixed(32)},
            .arrivals = poisson(40_rps),
            .requests = 120,
            .slos = {mean(tpot) <= 20_ms, p90(ttft_from_send) <= 80_ms, p90(ttft) <= 2_s,
                     goodput(ttft <= 3_s && tpot <= 25_ms) >= 90_pct},
        });
        bool any_red = false, any_inconclusive = false, any_invalid = false;
        int most = 0;
        for (const slo_verdict& v : r.verdicts()) {
            objectives[v.objective.text().c_str()].add(v);
            any_red |= v.outcome == verdict::fail;
            any_inconclusive |= v.outcome == verdict::inconclusive;
            any_invalid |= v.outcome == verdict::invalid;
            if (v.outcome == verdict::invalid) std::fprintf(stderr, "%s\n", v.line().c_str());
        }
        for (const record& x : r.requests())
            if (x.repeat + 1 > most) most = x.repeat + 1;
        repeats += most;
        if (any_red) ++red;
        else if (any_invalid) ++invalid;
        else if (any_inconclusive) ++inconclusive;
        else ++green;
    }
    std::printf(
        "| objective | of the limit | passed | failed | inconclusive | invalid | repeats |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (const auto& [what, t] : objectives)
        std::printf("| `%s` | %.0f %% | %d | %d | %d | %d | %.1f |\n", what.c_str(),
                    100 * std::exp(t.logs / t.runs()), t.pass, t.fail, t.inconclusive, t.invalid,
                    t.repeats / t.runs());
    std::printf("| the whole gate | | %d | %d | %d | %d | %.1f |\n", green, red, inconclusive,
                invalid, repeats / runs);
    return 0;
}
