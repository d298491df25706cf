// What the live tests share: scenarios that take a second or two, and what came of a run.
#pragma once

#include <doctest/doctest.h>

#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace live {
using namespace llmbench;

// ---- what is run

/// Where it is on sockets, times are an order of magnitude over a busy machine's hiccups.
inline engine quick_engine() {
    engine e;
    e.decode_step = 10_ms;
    e.step_per_sequence = 0.1_ms;
    e.prefill_per_token = 0.02_ms;
    return e;
}
inline scenario quick_scenario(const any_target& target = simulated(quick_engine())) {
    scenario s;
    s.target = target;
    s.workload = synthetic{.prompt_tokens = uniform(32, 96), .output_tokens = fixed(12)};
    s.arrivals = poisson(80_rps);
    s.requests = 120;
    return s;
}
/// Requests one after the other. A server that hangs ends a test after seconds, not minutes.
inline scenario asking(const any_target& target, int requests = 1) {
    return {.target = target,
            .workload = prompts({"hi"}),
            .arrivals = closed_loop(1),
            .warmup = 0,
            .requests = requests,
            .repeats = 1,
            .limits = {.connect = 10_s,
                       .first_event = 10_s,
                       .between_events = 10_s,
                       .total = 20_s,
                       .drain = 10_s}};
}

// ---- what came of it

inline std::string status(const record& r) { return to_string(r.status); }
inline std::string error(const record& r) { return r.error; }
inline double seconds(long long ns) { return static_cast<double>(ns) * 1e-9; }

inline std::vector<record> records_of(const scenario& s) {
    const result r = run(s);
    return {r.requests().begin(), r.requests().end()};
}
inline record only_record(const scenario& s) {
    const std::vector<record> records = records_of(s);
    REQUIRE(records.size() == 1);
    return records[0];
}
/// The records of a run that has some, all of which ended in this way.
inline std::vector<record> all_are(request_status expected, const result& r) {
    const std::vector<record> all(r.requests().begin(), r.requests().end());
    CHECK_FALSE(all.empty());
    for (const record& x : all) {
        CAPTURE(x.id);
        CAPTURE(x.error);
        CHECK(x.status == expected);
    }
    return all;
}
inline std::vector<record> all_ok(const result& r) { return all_are(request_status::ok, r); }

/// The most requests that were dispatched and not yet answered at one time.
inline int most_in_flight(const std::vector<record>& all) {
    std::vector<std::pair<long long, int>> changes;
    for (const record& r : all) {
        changes.emplace_back(r.dispatched_ns, 1);
        changes.emplace_back(r.end_ns, -1);
    }
    std::sort(changes.begin(), changes.end());  // at the same time an end comes first
    int now = 0, highest = 0;
    for (const auto& [at, change] : changes) highest = std::max(highest, now += change);
    return highest;
}

inline slo_verdict verdict_of(const result& r, const std::string& slo) {
    for (const slo_verdict& v : r.verdicts())
        if (std::string(v.objective.text()) == slo) return v;
    FAIL("no verdict on ", slo);
    return {};
}
/// Every objective is shown to be met.
inline void check_passes(const result& r) {
    CHECK_FALSE(r.verdicts().empty());
    for (const slo_verdict& v : r.verdicts()) {
        CAPTURE(v.line());
        CHECK(v.outcome == verdict::pass);
    }
}
inline verdict outcome_of(const result& r, const std::string& slo) {
    return verdict_of(r, slo).outcome;
}
inline std::string reason_of(const result& r, const std::string& slo) {
    return verdict_of(r, slo).reason;
}

}  // namespace live
