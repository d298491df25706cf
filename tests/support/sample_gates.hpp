// The gate, its server and its machine that reports are made of in tests, and how a gate is judged
// without being run.
#pragma once

#include "llmbench.hpp"

#include "timelines.hpp"

#include <string>

namespace sample_gates {

namespace lb = llmbench::detail;

inline lb::target_facts tiny_model() {
    return {lb::target_kind::endpoint, "http://127.0.0.1:8000", "tiny", "openai_chat"};
}

inline lb::environment_facts quiet_machine() {
    lb::environment_facts e;
    e.os = "Linux";
    e.cpu = "a <fast> one";
    e.compiler = "g++ 12";
    e.cores = 2;
    e.started_at = "2026-01-02T03:04:05Z";
    e.commit = "0123456789abcdef0123456789abcdef01234567";
    e.program = "./gates";
    return e;
}

/// What a gate makes of what was measured, as far as its exit code.
inline void judge(lb::gate_report& g) {
    g.verdicts = lb::judge_all(g.measured);
    g.self_check = lb::self_check_of(g.measured);
    g.outcome = lb::gate_outcome::passed;
    for (const llmbench::slo_verdict& v : g.verdicts) {
        if (v.what.is_advisory) continue;
        if (v.outcome == llmbench::verdict::fail)
            g.outcome = lb::worse_of(g.outcome, lb::gate_outcome::failed);
        if (v.outcome == llmbench::verdict::invalid)
            g.outcome = lb::worse_of(g.outcome, lb::gate_outcome::invalid);
    }
}

/// A repeat of 20 requests, a token every 10 ms, 11 of them.
inline lb::repeat_data repeat_of_ttft(double ttft_ms, int index) {
    lb::repeat_data d = timelines::steady_repeat(ttft_ms);
    d.index = index;
    d.window_from_ns = timelines::at_ms(0);
    d.window_to_ns = timelines::at_ms(2200);
    return d;
}

/// A gate of two repeats with a ttft of 80 ms, not judged yet.
inline lb::gate_report measured_gate(const std::string& name, const llmbench::slo_list& slos) {
    using namespace llmbench;
    lb::gate_report g;
    g.what = lb::planned(
        {.workload = synthetic{.prompt_tokens = fixed(10), .output_tokens = fixed(11)},
         .arrivals = closed_loop(4),
         .requests = 20,
         .slos = slos,
         .seed = 7},
        1);
    g.what.name = name;
    g.what.file = "gates.cpp";
    g.what.line = 12;
    g.target = tiny_model();
    for (int i = 0; i < 2; ++i) g.measured.candidate.push_back(repeat_of_ttft(80, i));
    g.measured.slos = g.what.slos;
    g.measured.rule.most = 2;
    return g;
}

/// A gate that was refused, or skipped.
inline lb::gate_report refused_gate(const std::string& why = "the rate must be above 0",
                                    lb::gate_outcome outcome = lb::gate_outcome::refused) {
    lb::gate_report g;
    g.what.name = "refused";
    g.what.file = "gates.cpp";
    g.what.line = 40;
    g.refusal = why;
    g.outcome = outcome;
    return g;
}

}  // namespace sample_gates
