// Sessions of agents: graphs of model calls, written as lines and played by users, at a rate and when they were recorded.
// `llmbench convert` makes such lines of the recordings of other tools.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
#include "llmbench_sessions.hpp"

#include <fstream>

using namespace llmbench;

namespace {

/// An agent that has two helpers look around, edits behind both, and runs its tests.
const char* recorded() {
    static const char path[] = "agent_sessions.jsonl";
    std::ofstream file(path);
    for (int s = 0; s < 40; ++s) {
        const std::string begin = "{\"session\":\"s" + std::to_string(s) + "\",";
        file << begin << R"("start":)" << 5 * s << R"(,"step":"plan","prompt_tokens":600,"output_tokens":40})" "\n"
             << begin << R"("step":"look","after":["plan"],"keeps":["plan",100],"prompt_tokens":200,"output_tokens":20,"label":"helper"})" "\n"
             << begin << R"("step":"read","after":["plan"],"prompt_tokens":300,"output_tokens":20,"label":"helper"})" "\n"
             << begin << R"("step":"edit","after":["plan","look","read"],"wait":0.5,"keeps":["plan",600],)"
                         R"("prompt_tokens":900,"output_tokens":60})" "\n"
             << begin << R"("step":"test","after":["edit"],"wait":1.5,"keeps":["edit",900],)"
                         R"("prompt_tokens":1100,"output_tokens":30})" "\n";
    }
    return path;
}

}  // namespace

TEST_CASE("agents wait neither for their main line nor for their helpers") {
    gate({.target = simulated(),
          .workload = sessions{.path = recorded()},
          .arrivals = closed_loop(2),
          .warmup = 10,
          .requests = 200,
          .slos = {p50(session_time) <= 4_s, p50(ttft).of(turns(2)) <= 2_s, p50(ttft).of("helper") <= 3_s}});
}

TEST_CASE("sessions that begin at a rate") {
    gate({.target = simulated(),
          .workload = sessions{.path = recorded(), .max_wait = 1_s},
          .arrivals = poisson(0.2_rps),
          .warmup = 10,
          .requests = 200,
          .slos = {p50(ttft) <= 2_s}});
}

TEST_CASE("sessions that begin when they were recorded to") {
    gate({.target = simulated(),
          .workload = sessions{.path = recorded(), .max_wait = 1_s},
          .arrivals = replay("agent_sessions.jsonl"),
          .warmup = 20_s,
          .slos = {p50(ttft) <= 2_s}});
}
