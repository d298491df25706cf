// The gate, its server and its machine that reports are made of in tests, and how a gate is judged
// without being run.
#pragma once

#include "llmbench.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/outcome.hpp"
#include "core/planning/plan.hpp"
#include "core/reports/gate_report.hpp"
#include "support/sample_measurements.hpp"
#include "support/timelines.hpp"

#include <initializer_list>
#include <string>

namespace sample_gates {
using llmbench::detail::vector;

namespace lb = llmbench::detail;
using sample_measurements::measurement;

/// A gate whose measurement can still be changed. Reports get it with its figures.
struct test_gate {
    lb::plan what{};
    lb::target_facts target{}, baseline{};
    measurement measured{};
    vector<llmbench::slo_verdict> verdicts{};
    llmbench::self_check_t self_check{};
    vector<lb::calibrated> calibration{};
    std::string refusal{};
    lb::gate_outcome outcome = lb::gate_outcome::passed;
    bool undecided_fails = false;
    std::shared_ptr<lb::taken_profile> profile{};
    double took_s = 0;

    operator lb::gate_report() const;
};
struct test_gates : vector<test_gate> {
    using vector<test_gate>::vector;
    operator vector<lb::gate_report>() const { return {begin(), end()}; }
};

/// What reports say of these alone.
std::string status_text(std::initializer_list<lb::repeat_data> variant);
std::string prefix_cache_text(const measurement& m);

lb::target_facts tiny_model();

lb::environment_facts quiet_machine();

/// What a gate makes of what was measured, as far as its exit code.
void judge(test_gate& g);

/// A repeat of 20 requests, a token every 10 ms, 11 of them.
lb::repeat_data repeat_of_ttft(double ttft_ms, int index);

/// A gate of two repeats with a ttft of 80 ms, not judged yet.
test_gate sampled_gate(const std::string& name, const llmbench::slo_list& slos);

/// A gate that was refused, or skipped.
test_gate refused_gate(const std::string& why = "the rate must be above 0",
                       lb::gate_outcome outcome = lb::gate_outcome::refused);

}  // namespace sample_gates
