// the history that a gate is judged by
#pragma once

#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/judging/past_judge.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/noise.hpp"

#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One statistic in one direction: data for the rule and the reports.
struct objective_history {
    std::string statistic{};
    bool at_most = true;
    learned_history learned{};
    std::string newest{};       // the newest run's commit or date
    double step = 0;            // at the level's start, as a share; 0: none
    std::string step_at{};      // its date
    std::string step_text{};    // commit and changed properties
    bool is_open_step = false;  // main became worse, not accepted
    double drift = 0, drift_low = 0, drift_high = 0;  // as shares; 0: none shown
    std::string drift_since{};
    std::size_t drift_steps = 0;
};

/// The runs of main, for a gate's objectives.
struct history_parameters {
    std::string folder{};
    std::string machine{};     // of the runs, in words
    std::string none{};        // why there is no history to judge by
    bool appends = false;      // the run joins the history
    bool knows_card = true;    // whether any run was measured on today's
    std::vector<objective_history> objectives{};

    bool is_there() const { return !folder.empty(); }
    const objective_history* of(const slo& s) const {
        for (const objective_history& o : objectives)
            if (o.statistic == str(s.what.name) && o.at_most == s.at_most) return &o;
        return nullptr;
    }
};
/// The noise of repeats by the history, for a limit without a baseline.
inline history_noise noise_by(const history_parameters& h, const slo& s) {
    const objective_history* const o = s.factor > 0 || !h.none.empty() ? nullptr : h.of(s);
    if (!o) return {};
    return {believed_sd(o->learned.repeats), o->learned.repeats.df};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
