// Evidence and the terms that it is held against, in one piece: how tests write down what a gate
// saw and what it asks for, and hold the one against the other.
#pragma once

#include "llmbench.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/measured/repeat.hpp"

#include <string>

namespace sample_measurements {
using llmbench::detail::vector;

namespace lb = llmbench::detail;

/// Evidence whose repeats can still be changed.
struct open_evidence : lb::load_conditions {
    vector<lb::repeat_data> candidate{}, baseline{};
    open_evidence() = default;
    open_evidence(const lb::measurements& e)
        : lb::load_conditions(e),
          candidate(e.candidate.begin(), e.candidate.end()),
          baseline(e.baseline.begin(), e.baseline.end()) {}
    operator lb::measurements() const {
        lb::measurements e;
        static_cast<lb::load_conditions&>(e) = *this;
        e.candidate = candidate;
        e.baseline = baseline;
        return e;
    }
};
struct measurement : open_evidence, lb::judging_parameters {};

// What core/judging/ returns, compiled once for all tests.
llmbench::slo_verdict judge_measurements(const measurement& m, const llmbench::slo& s,
                                     bool to_the_end = false);
llmbench::slo_verdict judge_values(const measurement& m, const llmbench::slo& s,
                                   bool to_the_end = false);
llmbench::slo_verdict judge_counts(const measurement& m, const llmbench::slo& s,
                                   bool to_the_end = false);
llmbench::slo_verdict judged(const measurement& m, const llmbench::slo& s, bool guard = false);
vector<llmbench::slo_verdict> judge_all(const measurement& m);
llmbench::self_check_t self_check_of(const measurement& m);
std::string slo_invalid_reason(const measurement& m, const llmbench::slo& s);
double prior_sd_of(const measurement& m, const llmbench::slo& s);
vector<lb::calibrated> calibration_of(const measurement& m);

}  // namespace measurements
