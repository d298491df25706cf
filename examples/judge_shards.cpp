// Judges a load that several programs sent, each with LLMBENCH_SHARD and LLMBENCH_START_AT:
//   ./judge_shards --slo 'p90(ttft) <= 300 ms' shard-0 shard-1 shard-2 shard-3
// A directory is what one of them left. --gate names one of several gates. Ends as any program with
// gates does: 0 passed, 1 an objective is shown to be missed, 2 refused, 3 invalid, 77 skipped.
// Reports go to LLMBENCH_REPORT_DIR.
#define LLMBENCH_IMPLEMENT
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"

#include <cstdio>
#include <exception>
#include <string>

using namespace llmbench;

int main(int argc, char** argv) {
    types::list<types::text> directories;
    slo_list slos;
    types::text gate;
    try {
        for (int i = 1; i < argc; ++i) {
            const std::string word = argv[i];
            if (word == "--slo" && i + 1 < argc) slos.push_back(parse_slo(argv[++i]));
            else if (word == "--gate" && i + 1 < argc) gate = argv[++i];
            else directories.push_back(argv[i]);
        }
        if (directories.empty() || slos.empty()) {
            std::fprintf(stderr,
                         "usage: %s --slo 'p90(ttft) <= 300 ms' [--slo ...] [--gate NAME] "
                         "DIRECTORY...\n",
                         argv[0]);
            return 2;
        }
        judge_shards(directories, slos, gate);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return exit_code() != 0 ? exit_code() : 2;
    }
    return exit_code();
}
