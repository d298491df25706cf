// What the reports of a program with many gates cost. The gates are about the cheapest there can
// be: six answers of one token, from a server in another process. Each number of gates runs in a
// child of its own, and the numbers take turns; CPU time of the children counts.
//   report_cost                       three rounds of 20, 200 and 400 gates. Exits 1 where 400 cost
//                                     more than 2.2 times what 200 do
//   report_cost --quick               one round
//   report_cost --vs OTHER_BINARY     this build and another one side by side, in turns
// The two are this file with the llmbench.hpp of two directories DIR, by the same flags:
//   g++ -std=c++20 -O2 -DASIO_STANDALONE -DLLMBENCH_IMPLEMENT -I DIR tests/bench/report_cost.cpp
//       -pthread -o BINARY
#include "llmbench.hpp"

#include "../support/scratch.hpp"
#include "flood_server.hpp"
#include "support/child_process.hpp"

#include <cstring>
#include <map>

using namespace llmbench;

constexpr int requests_of_a_gate = 6;  // the fewest that a median is judged on

/// What a child does.
static int run_gates(int gates, const std::string& url) {
    for (int i = 0; i < gates; ++i)
        run({
            .name = "gate " + std::to_string(i + 1),
            .target = endpoint{.url = url},
            .workload = prompts({"Hello"}),
            .arrivals = all_at_once(),
            .warmup = 0,
            .requests = requests_of_a_gate,
            .repeats = 1,
            .options = {.max_tokens = 1},
        });
    return 0;
}

struct run_cost {
    double cpu_s = 0, wall_s = 0, peak_mib = 0, files_mib = 0;
};
static run_cost cost_of_gates(const std::string& program, int gates, const std::string& url) {
    const files::scratch scratch;
    const std::filesystem::path reports = scratch.file("reports");
    const bench::child_cost c =
        bench::cost_of(program, {"--gates", std::to_string(gates), url}, reports);
    const std::string records = bench::content_of(reports / "records.jsonl");
    if (std::count(records.begin(), records.end(), '\n') != gates * requests_of_a_gate)
        throw std::runtime_error(program + ": not every request left its record");
    double bytes = 0;
    for (const auto& f : std::filesystem::directory_iterator(reports))
        bytes += static_cast<double>(f.file_size());
    return {c.cpu_s, c.wall_s, c.peak_mib, bytes / 1048576};
}

static int compare(const bench::comparison& asked) {
    bench::pin(0);
    const bench::flood_server server;
    using key = std::pair<int, std::size_t>;  // gates, program
    std::map<key, std::vector<run_cost>> runs;
    for (int round = 0; round < (asked.quick ? 1 : 3); ++round)
        for (const int gates : {20, 200, 400})
            for (std::size_t p = 0; p < asked.programs.size(); ++p)
                runs[{gates, p}].push_back(cost_of_gates(asked.programs[p], gates, server.url()));

    const auto middle = [&](int gates, std::size_t p, double run_cost::*field) {
        return bench::median(runs[{gates, p}], field);
    };
    std::printf("| gates | build | CPU s | CPU ms a gate | wall s | peak MiB | files MiB |\n"
                "| ---: | --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (const int gates : {20, 200, 400})
        for (std::size_t p = 0; p < asked.programs.size(); ++p)
            std::printf("| %d | %s | %.2f | %.1f | %.2f | %.0f | %.1f |\n", gates,
                        bench::comparison::name(p), middle(gates, p, &run_cost::cpu_s),
                        1000 * middle(gates, p, &run_cost::cpu_s) / gates,
                        middle(gates, p, &run_cost::wall_s), middle(gates, p, &run_cost::peak_mib),
                        middle(gates, p, &run_cost::files_mib));
    std::printf("\n");
    if (asked.programs.size() > 1)
        for (const int gates : {20, 200, 400})
            std::printf("%d gates, this / other: CPU %.3f, wall %.3f\n", gates,
                        middle(gates, 0, &run_cost::cpu_s) / middle(gates, 1, &run_cost::cpu_s),
                        middle(gates, 0, &run_cost::wall_s) / middle(gates, 1, &run_cost::wall_s));
    bool met = true;
    for (std::size_t p = asked.programs.size(); p-- > 0;) {
        const double growth =
            middle(400, p, &run_cost::cpu_s) / middle(200, p, &run_cost::cpu_s);
        met = growth <= 2.2;  // of this one, which comes last
        std::printf("%s: 400 gates cost %.2f times what 200 do, must <= 2.2: %s\n",
                    bench::comparison::name(p), growth, met ? "met" : "NOT MET");
    }
    return met ? 0 : 1;
}

int main(int argc, char** argv) {
    if (argc == 4 && std::strcmp(argv[1], "--gates") == 0)
        return run_gates(std::atoi(argv[2]), argv[3]);
    try {
        return compare(bench::comparison_asked(argc, argv));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 2;
    }
}
