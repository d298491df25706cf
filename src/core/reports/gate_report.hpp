// what reports are made of
#pragma once

#include "api/result.hpp"
#include "api/text.hpp"
#include "core/judging/calibrated.hpp"
#include "core/judging/evidence.hpp"
#include "core/figures/foreseen.hpp"
#include "core/figures/shown_answers.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/terms.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/stored/history.hpp"
#include "core/reports/profile.hpp"

#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What came of a gate on a model of its server.
struct rehearsal_report {
    struct objective {
        std::string slo{};
        verdict would_be = verdict::inconclusive;
        foreseen runs{};
    };
    std::string model{};  // "": it was no rehearsal
    std::vector<objective> objectives{};  // in the order of the verdicts
};

/// One gate as every report shows it: measured, judged, and all figures computed. It has no
/// requests, so that those of a gate can go when nobody asks for them any more.
struct gate_report {
    plan what{};
    target_facts target{};
    target_facts baseline{};
    terms judged_by{};                      // what the evidence was held against
    load_conditions under{};                // and under which load it was found
    gate_figures figures{};
    std::vector<slo_verdict> verdicts{};
    self_check_t self_check{};
    std::vector<calibrated> calibration{};  // of a calibration run
    std::string refusal{};                  // why nothing was measured
    taken_profile profile{};                // of its server, where it failed
    std::string beside{};                   // why it failed by what is no objective of its own
    gate_outcome outcome = gate_outcome::unfinished;
    std::vector<shown_answer> answers{};    // of objectives on answers that did not pass
    rehearsal_report rehearsal{};
    bool undecided_fails = false;           // LLMBENCH_INCONCLUSIVE=fail
    double took_s = 0;                      // servers brought up and down included
    maybe<history_entry> night{};           // where it is to be added to a history
};

struct environment_facts {
    std::string os{}, cpu{}, compiler{};
    int cores = 0;
    std::string started_at{};
    std::string commit{};  // of what is tested, "" where nothing tells
    std::string program{};  // as it was called
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
