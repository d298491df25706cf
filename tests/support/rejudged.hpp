// Engines whose pace is known, gates on them that take a second, and whether their records give the
// same verdicts again, bit for bit.
#pragma once

#include "support/effects.hpp"
#include "support/live.hpp"

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace live {

// ---- an engine whose pace is known

/// Every token takes a step, however many run.
inline engine engine_of(time_span step) {
    engine e;
    e.decode_step = step;
    e.step_per_sequence = 0_ms;
    e.prefill_per_token = 0_ms;
    return e;
}
inline scenario chat_on(const engine& e, const char* name) {
    scenario s = quick_scenario(simulated(e));
    s.name = name;
    s.arrivals = poisson(40_rps);
    s.warmup = 10;
    s.requests = 48;
    return s;
}
/// As short as a gate can be.
inline scenario brief(const any_target& target, const char* name) {
    scenario s = quick_scenario(target);
    s.name = name;
    s.workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = uniform(6, 10)};
    s.arrivals = closed_loop(4);
    s.warmup = 4;
    s.requests = 16;
    return s;
}

inline std::set<int> repeats_of(const result& r) {
    std::set<int> repeats;
    for (const record& x : r.requests()) repeats.insert(x.repeat);
    return repeats;
}
inline std::vector<record> measured_of(const result& r, int repeat) {
    std::vector<record> found;
    for (const record& x : r.requests())
        if (x.repeat == repeat && x.phase == run_phase::measure) found.push_back(x);
    return found;
}

inline std::string quoted(const std::string& s) { return "\"" + s + "\""; }

// ---- the same verdict, bit for bit

inline bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }
inline bool same_inputs(const slo_verdict& a, const slo_verdict& b) {
    bool same = a.inputs.size() == b.inputs.size();
    for (std::size_t i = 0; same && i < a.inputs.size(); ++i) {
        const auto &x = a.inputs[i].values, &y = b.inputs[i].values;
        same = std::string(a.inputs[i].name) == std::string(b.inputs[i].name) &&
               x.size() == y.size() && !x.empty() &&
               std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
    }
    return same;
}
inline void check_same(const slo_verdict& a, const slo_verdict& b) {
    CHECK(std::string(a.line()) == std::string(b.line()));
    CHECK(std::string(a.explain()) == std::string(b.explain()));
    CHECK(std::string(a.advice) == std::string(b.advice));
    CHECK(a.outcome == b.outcome);
    CHECK(same_bits(a.estimate.value, b.estimate.value));
    CHECK(same_bits(a.estimate.low, b.estimate.low));
    CHECK(same_bits(a.estimate.high, b.estimate.high));
    CHECK(same_bits(a.limit, b.limit));
    CHECK(same_bits(a.detectable, b.detectable));
    CHECK(a.repeats == b.repeats);
    CHECK(a.requests == b.requests);
    CHECK(same_inputs(a, b));
}
/// Judges the run again by its files, and finds what the run itself found.
inline void check_rejudged(const result& r, const slo_list& slos) {
    const auto again = judge(report_file("records.jsonl"), slos, r.name());
    REQUIRE(again.size() == r.verdicts().size());
    for (std::size_t i = 0; i < again.size(); ++i) check_same(again[i], r.verdicts()[i]);
}

}  // namespace live
