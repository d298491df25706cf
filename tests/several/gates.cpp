// Gates whose load several programs send: shards, and ranks of MPI.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_capacity.hpp"
#include "llmbench_simulated.hpp"
#include "llmbench_machines.hpp"

#include <cstdlib>
#include <sstream>
#include <string>

using namespace llmbench;

namespace {

scenario load() {
    return {.workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(12)},
            .arrivals = poisson(80_rps),
            .warmup = 10,
            .requests = 120,
            .slos = {p90(ttft) <= 20_s, mean(tpot) <= 5_s},
            .limits = {.drain = 2_s}};
}
scenario load_of(const arrival_pattern& arrivals) {
    scenario s = load();
    s.arrivals = arrivals;
    return s;
}
std::string reported(const char* variable) {
    const char* said = std::getenv(variable);
    return said ? said : "";
}
#ifdef LLMBENCH_WITH_MPI
int rank() { return detail::rank_group::of_this_program().index(); }
#endif

}  // namespace

TEST_CASE("passes") { gate(load()); }
TEST_CASE("fails") {
    scenario s = load();
    s.slos = {mean(tpot) <= 1_ms};
    gate(s);
}
TEST_CASE("users") {
    scenario s = load_of(closed_loop(8));
    s.duration = 2_s;
    gate(s);
}
TEST_CASE("both at once") {
    scenario s{.baseline = otherwise{.same = true},
               .pairs = at_once,
               .workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(12)},
               .arrivals = poisson(8_rps),
               .warmup = 10,
               .duration = 45_s,
               .slos = {mean(tpot) <= 5 * baseline},
               .limits = {.drain = 2_s}};
    gate(s);
}
TEST_CASE("batch") { gate(load_of(all_at_once())); }
TEST_CASE("conversations") {
    scenario s = load();
    s.workload = conversations{.turns = fixed(3), .user_tokens = fixed(8),
                               .output_tokens = fixed(4)};
    gate(s);
}
TEST_CASE("serves") {
    engine e;
    e.slots = 64;
    serve_simulated(e, std::atoi(reported("PORT").c_str()));
}
TEST_CASE("together") {
    std::istringstream named(reported("SHARDS"));
    types::list<types::text> directories;
    for (std::string d; named >> d;) directories.push_back(d);
    judge_shards(directories, {p90(ttft) <= 20_s, mean(tpot) <= 5_s, p50(itl) <= 5_s},
                 reported("GATE"));
}
TEST_CASE("both together") {
    std::istringstream named(reported("SHARDS"));
    types::list<types::text> directories;
    for (std::string d; named >> d;) directories.push_back(d);
    judge_shards(directories, {mean(tpot) <= 5 * baseline}, reported("GATE"));
}
TEST_CASE("turns together") {
    std::istringstream named(reported("SHARDS"));
    types::list<types::text> directories;
    for (std::string d; named >> d;) directories.push_back(d);
    judge_shards(directories, {p50(first_turn_ttft) <= 20_s, p50(later_turn_ttft) <= 20_s},
                 reported("GATE"));
}
TEST_CASE("one alone") {
    judge((reported("SHARDS") + "/records.jsonl").c_str(), {mean(tpot) <= 5_s}, reported("GATE"));
}

// ---- what cannot be shared

TEST_CASE("two users") {
    scenario s = load_of(closed_loop(2));
    s.duration = 1_s;
    gate(s);
}
TEST_CASE("users without end") { gate(load_of(closed_loop(8))); }
TEST_CASE("simulated") {
    scenario s = load();
    s.target = simulated();
    gate(s);
}
TEST_CASE("a search") {
    scenario s = load_of(poisson(up_to(60_rps)));
    s.duration = 2_s;
    s.slos = {p90(ttft) <= 20_s, capacity >= 20_rps};
    gate(s);
}

// ---- what goes wrong between ranks

#ifdef LLMBENCH_WITH_MPI
void gate_with_a_late_rank(bool machine_has_one_clock) {
    scenario s = load();
    s.slos = {mean(tpot) <= 5_s};  // without a limit on ttft they may begin 5 ms apart
    auto& ranks = detail::rank_group::of_this_program();
    ranks.set_starts({machine_has_one_clock, rank() == 2 ? 20000000 : 0});
    gate(s);
    ranks.set_starts({});
}
TEST_CASE("rank 2 is late") { gate_with_a_late_rank(true); }
TEST_CASE("clocks are measured") { gate_with_a_late_rank(false); }
TEST_CASE("rank 1 has another plan") {
    scenario s = load();
    if (rank() == 1) s.requests = 121;
    gate(s);
}
TEST_CASE("rank 1 is elsewhere") {
    if (rank() != 1) gate(load());
}
TEST_CASE("rank 3 has no server") {
    scenario s = load();
    if (rank() == 3) s.target = endpoint{.url = "http://127.0.0.1:1"};
    gate(s);
}
TEST_CASE("rank 3 has no address") {
    scenario s = load();
    if (rank() == 3) s.client.from = {"192.0.2.1"};
    gate(s);
}
#endif
