// Files of sums that the simulated server can work out, and gates that ask them.
#pragma once

#include "support/environment.hpp"
#include "support/rejudged.hpp"

#include "llmbench_answers.hpp"

#include <cstdio>
#include <string>

namespace live {

/// So many sums that the simulated server can work out, in a file of their own.
class sums {
public:
    explicit sums(int n, const std::string& asked = "What is %d + %d ?") {
        std::string lines;
        for (int i = 0; i < n; ++i) {
            char question[200], line[400];
            std::snprintf(question, sizeof question, asked.c_str(), 100 + 3 * i, 7 + i);
            std::snprintf(line, sizeof line, "{\"question\": \"%d: %s\", \"answer\": \"#### %d\"}\n", i,
                          question, 107 + 4 * i);
            lines += line;
        }
        write(path, lines);
    }
    scratch directory{};
    std::string path = directory.file("sums.jsonl");
};

inline engine knowing(fraction wrong = 0_pct) {
    engine e = engine_of(2_ms);
    e.faults.wrong_answers = wrong;
    return e;
}
inline scenario asking(const sums& s, const engine& e, const char* name) {
    scenario x = quick_scenario(simulated(e));
    x.name = name;
    x.workload = questions{.path = s.path, .format = gsm8k};
    x.arrivals = closed_loop(8);
    x.warmup = 4;
    x.requests = 0;
    x.slos = {accuracy >= 90_pct};
    return x;
}
inline std::string line_of(const result& r) { return std::string(r.verdicts()[0].line()); }


}  // namespace live
