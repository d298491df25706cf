// Judges a run that is over, without a server:
//   ./judge_again DIRECTORY [GATE]     what LLMBENCH_REPORT_DIR was, and which of its gates
#define LLMBENCH_IMPLEMENT
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"

#include <cstdio>
#include <exception>
#include <string>

using namespace llmbench;

int main(int argc, char** argv) {
    const std::string directory = argc > 1 ? argv[1] : "llmbench-report";
    const slo_list slos = {mean(tpot) <= 25_ms, p90(ttft) <= 2_s};
    try {
        for (const slo_verdict& v :
             judge(directory + "/records.jsonl", slos, argc > 2 ? argv[2] : ""))
            std::printf("%s\n", v.explain().c_str());
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 2;
    }
    return 0;
}
