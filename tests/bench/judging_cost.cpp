// What it costs to judge a run of many requests: of a stored one, and of one just over, its reports
// included. The stored run is a small one many times over. Every measurement is a child's.
//   judging_cost [REQUESTS]           default 1,000,000; the live gate has a twentieth of them
//   judging_cost --quick              20,000 requests, once
//   judging_cost --vs OTHER_BINARY    this build and another one side by side, in turns, on the
//                                     same files. Exits 1 where their verdicts differ
// The two are this file with the llmbench.hpp of two directories DIR, by the same flags:
//   g++ -std=c++20 -O2 -DASIO_STANDALONE -DLLMBENCH_IMPLEMENT -I DIR tests/bench/judging_cost.cpp
//       -pthread -o BINARY
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

#include "../support/scratch.hpp"
#include "flood_server.hpp"
#include "support/child_process.hpp"
#include "support/stored_copies.hpp"

#include <atomic>
#include <cstring>

using namespace llmbench;
namespace fs = std::filesystem;

static slo_list objectives() {
    return {p99(ttft) <= 2_s, mean(tpot) <= 100_ms, p99(itl) <= 500_ms,
            goodput(ttft <= 2_s && tpot <= 100_ms) >= 95_pct};
}

/// What is multiplied.
static int run_small_gate() {
    run({.name = "stored",
         .target = simulated({.decode_step = 1_ms, .step_per_sequence = 0_ms}),
         .workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(16)},
         .arrivals = closed_loop(16),
         .warmup = 0,
         .requests = bench::small_repeat,
         .repeats = bench::small_repeats,
         .slos = objectives()});
    return 0;
}

// ---- what the children measure ---------------------------------------------------------------

constexpr char measured[] = "measured: ";  // begins a line for the parent

/// Says the verdicts, which are to be the same of every build.
static int judge_stored(const std::string& records) {
    bool valid = true;
    for (const slo_verdict& v : judge(records, objectives())) {
        std::printf("%s\n", v.explain().c_str());
        valid = valid && v.outcome != verdict::invalid;
    }
    return valid ? 0 : 1;
}

/// The time and this process's CPU time, a few hundred times a second for as long as it lives.
class cpu_meter {
public:
    cpu_meter() : thread_([this] {
        for (; !over_; std::this_thread::sleep_for(std::chrono::milliseconds(3)))
            seen_.emplace_back(bench::now_ns(), bench::cpu_seconds(CLOCK_PROCESS_CPUTIME_ID));
    }) {}
    ~cpu_meter() { stop(); }
    /// CPU seconds by then.
    double at(long long ns) {
        stop();
        const auto later = std::lower_bound(seen_.begin(), seen_.end(), std::pair(ns, 0.0));
        return later == seen_.end() ? 0 : later->second;
    }

private:
    void stop() {
        over_ = true;
        if (thread_.joinable()) thread_.join();
    }
    std::atomic<bool> over_{false};
    std::vector<std::pair<long long, double>> seen_{};
    std::thread thread_;
};

/// Says what the gate took between the last answer and its end, and when this function ended: what
/// follows is the end of the program, and what lies between is not the gate's.
static int run_live_gate(long long requests, const std::string& url) {
    cpu_meter meter;
    const result r = run({.name = "live",
                          .target = endpoint{.url = url},
                          .workload = prompts({"Hello"}),
                          .arrivals = closed_loop(64),
                          .warmup = 0,
                          .requests = requests / 2,
                          .repeats = 2,
                          .slos = objectives(),
                          .options = {.max_tokens = 16}});
    const double over_s = bench::clock_seconds();
    const double over_cpu_s = bench::cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    long long last_ns = 0;
    for (const record& x : r.requests()) last_ns = std::max(last_ns, x.end_ns);
    const double judged_s = over_s - static_cast<double>(last_ns) * 1e-9;
    const double judged_cpu_s = over_cpu_s - meter.at(last_ns);
    std::printf("\n%s%.9f %.9f %.9f %.9f\n", measured, judged_s, judged_cpu_s,
                bench::clock_seconds(), bench::cpu_seconds(CLOCK_PROCESS_CPUTIME_ID));
    return 0;
}

// ---- what the parent makes of it -------------------------------------------------------------

struct figures {
    double cpu_s = 0, wall_s = 0, peak_mib = 0;
    double after_cpu_s = 0, after_wall_s = 0;  // from the last answer to the end of the process
};
static figures figures_of(const bench::child_cost& c) {
    figures f{c.cpu_s, c.wall_s, c.peak_mib};
    const std::size_t at = c.output.rfind(measured);
    double judged_s = 0, judged_cpu_s = 0, ended_s = 0, ended_cpu_s = 0;
    if (at == std::string::npos ||
        std::sscanf(c.output.c_str() + at + std::strlen(measured), "%lf %lf %lf %lf", &judged_s,
                    &judged_cpu_s, &ended_s, &ended_cpu_s) != 4)
        return f;
    f.after_cpu_s = judged_cpu_s + c.cpu_s - ended_cpu_s;
    f.after_wall_s = judged_s + c.ended_s - ended_s;
    return f;
}

static int compare(const bench::comparison& asked) {
    const long long wanted = asked.number > 0 ? asked.number : asked.quick ? 20000 : 1000000;
    const long long copies = std::max(1ll, wanted / bench::small_run);
    const long long stored = copies * bench::small_run, live = std::max(1000ll, stored / 20);
    bench::pin(0);
    const files::scratch scratch;
    const fs::path small = scratch.file("small"), large = scratch.file("large");
    const fs::path reports = scratch.file("reports");
    bench::cost_of(asked.programs[0], {"--small"}, small);
    bench::cost_of(asked.programs[0], {"--copies", small, large, std::to_string(copies)}, reports);

    const bench::flood_server server({.events_per_write = 1});
    const std::vector<std::string> judging = {"--judge", large / "records.jsonl"};
    const std::vector<std::string> living = {"--live", std::to_string(live), server.url()};
    std::vector<std::vector<figures>> judged(asked.programs.size()), lived = judged;
    std::string verdicts;
    bool same = true;
    for (int round = 0; round < (asked.quick ? 1 : 3); ++round)
        for (std::size_t p = 0; p < asked.programs.size(); ++p) {
            const bench::child_cost c = bench::cost_of(asked.programs[p], judging, reports);
            judged[p].push_back(figures_of(c));
            same = same && (verdicts.empty() || verdicts == c.output);
            verdicts = c.output;
            lived[p].push_back(figures_of(bench::cost_of(asked.programs[p], living, reports)));
        }

    std::printf("| what | requests | build | CPU s | wall s | peak MiB | after the last answer: "
                "CPU s | wall s |\n| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n");
    const auto row = [](const char* what, long long requests, std::size_t p,
                        const std::vector<figures>& f) {
        std::printf("| %s | %lld | %s | %.2f | %.2f | %.0f |", what, requests,
                    bench::comparison::name(p), bench::median(f, &figures::cpu_s),
                    bench::median(f, &figures::wall_s), bench::median(f, &figures::peak_mib));
        if (bench::median(f, &figures::after_wall_s) == 0) std::printf(" | |\n");
        else
            std::printf(" %.2f | %.2f |\n", bench::median(f, &figures::after_cpu_s),
                        bench::median(f, &figures::after_wall_s));
    };
    for (std::size_t p = 0; p < judged.size(); ++p) row("judge(file)", stored, p, judged[p]);
    for (std::size_t p = 0; p < lived.size(); ++p) row("live gate", live, p, lived[p]);
    if (asked.programs.size() < 2) return 0;

    const auto ratio = [](const std::vector<std::vector<figures>>& f, double figures::*field) {
        return bench::median(f[0], field) / bench::median(f[1], field);
    };
    std::printf("\nthis / other: judge(file) CPU %.3f, peak %.3f; live gate CPU %.3f, peak %.3f, "
                "after the last answer CPU %.3f, wall %.3f\nverdicts on the stored run: %s\n",
                ratio(judged, &figures::cpu_s), ratio(judged, &figures::peak_mib),
                ratio(lived, &figures::cpu_s), ratio(lived, &figures::peak_mib),
                ratio(lived, &figures::after_cpu_s), ratio(lived, &figures::after_wall_s),
                same ? "the same" : "DIFFERENT");
    return same ? 0 : 1;
}

int main(int argc, char** argv) {
    const auto is = [&](const char* what, int n) {
        return argc == n && std::strcmp(argv[1], what) == 0;
    };
    try {
        if (is("--small", 2)) return run_small_gate();
        if (is("--copies", 5)) return bench::write_copies(argv[2], argv[3], std::atoll(argv[4]));
        if (is("--judge", 3)) return judge_stored(argv[2]);
        if (is("--live", 4)) return run_live_gate(std::atoll(argv[2]), argv[3]);
        return compare(bench::comparison_asked(argc, argv));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 2;
    }
}
