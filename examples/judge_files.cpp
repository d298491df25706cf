// Judges result files of vLLM bench serve, SGLang bench_serving, guidellm or AIPerf, as a command:
//   ./judge_files --slo 'p90(ttft) <= 300 ms' run1.json run2.json run3.json
// Each file is one repeat of the same load. Ends as any program with gates does: 0 passed, 1 an
// objective is shown to be missed, 2 refused, 3 invalid, 77 skipped. Reports go to
// LLMBENCH_REPORT_DIR.
#define LLMBENCH_IMPLEMENT
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"

#include <cstdio>
#include <exception>
#include <string>

using namespace llmbench;

int main(int argc, char** argv) {
    types::list<types::text> files;
    slo_list slos;
    try {
        for (int i = 1; i < argc; ++i) {
            const std::string word = argv[i];
            if (word == "--slo" && i + 1 < argc) slos.push_back(parse_slo(argv[++i]));
            else files.push_back(argv[i]);
        }
        if (files.empty() || slos.empty()) {
            std::fprintf(stderr, "usage: %s --slo 'p90(ttft) <= 300 ms' [--slo ...] FILE...\n",
                         argv[0]);
            return 2;
        }
        judge_files(files, slos, "result files");
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return exit_code() != 0 ? exit_code() : 2;
    }
    return exit_code();
}
