// gates in reports
#pragma once

#include "api/result.hpp"
#include "api/text.hpp"
#include "core/judging/calibrated.hpp"
#include "core/judging/measurements.hpp"
#include "core/figures/shown_answers.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/profile.hpp"

#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The result of a rehearsal, a gate on a model of its server.
struct rehearsal_report {
    struct objective {
        std::string slo{};
        verdict would_be = verdict::inconclusive;
        double shows_from = not_a_number;    // a true value that fails in nine runs of ten
        double inconclusive = not_a_number;  // a share of the runs
    };
    std::string model{};  // "" if it was no rehearsal
    std::vector<objective> objectives{};  // in the order of the verdicts
};

/// One gate as every report shows it: measured, judged, all figures computed. It has no requests,
/// so that those of a gate can be freed.
struct gate_report {
    plan what{};
    target_facts target{};
    target_facts baseline{};
    judging_parameters judged_by{};
    load_conditions under{};                // the load of the measurements
    gate_figures figures{};
    std::vector<slo_verdict> verdicts{};
    self_check_t self_check{};
    std::vector<calibrated> calibration{};  // of a calibration run
    std::string refusal{};                  // why nothing was measured
    taken_profile profile{};                // of the server of a failed gate
    std::string beside{};                   // the reason for a failure that is no objective's
    gate_outcome outcome = gate_outcome::unfinished;
    std::vector<shown_answer> answers{};    // for objectives on answers that did not pass
    rehearsal_report rehearsal{};
    bool undecided_fails = false;           // LLMBENCH_INCONCLUSIVE=fail
    double took_s = 0;                      // including the start and stop of servers
    std::string not_kept{};                 // why the history does not have it
};

struct environment_facts {
    std::string os{}, cpu{}, compiler{};
    int cores = 0;
    std::string started_at{};
    std::string commit{};  // of the tested software, "" if unknown
    std::string program{};  // as it was called
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
