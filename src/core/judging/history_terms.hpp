// the history that a gate is held against
#pragma once

#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/history/learned.hpp"
#include "core/history/noise.hpp"

#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Of one statistic in one direction: what the rule needs, and what reports say of it.
struct objective_history {
    std::string statistic{};
    bool at_most = true;
    learned_history learned{};
    std::string newest{};       // the newest night's commit, or its date
    double step = 0;            // with which the level began, as a share; 0 where none did
    std::string step_at{};      // its date
    std::string step_text{};    // commit, and what of the facts changed
    bool is_open_step = false;  // main became worse, and nobody accepted it
    double drift = 0, drift_low = 0, drift_high = 0;  // as shares; 0: none is shown
    std::string drift_since{};
    std::size_t drift_steps = 0;
};

/// The nights of main, as far as a gate's objectives go.
struct history_terms {
    std::string folder{};
    std::string machine{};     // of the nights, in words
    std::string none{};        // why there is nothing to be held against, in words
    bool appends = false;      // the run becomes one of them
    bool knows_card = true;    // whether any night was measured on today's
    std::vector<objective_history> objectives{};

    bool is_there() const { return !folder.empty(); }
    const objective_history* of(const slo& s) const {
        for (const objective_history& o : objectives)
            if (o.statistic == str(s.what.name) && o.at_most == s.at_most) return &o;
        return nullptr;
    }
};
/// What the nights say of the noise of repeats, for a limit that is no baseline's.
inline history_noise noise_by(const history_terms& h, const slo& s) {
    const objective_history* const o = s.factor > 0 || !h.none.empty() ? nullptr : h.of(s);
    if (!o) return {};
    return {believed_sd(o->learned.repeats), o->learned.repeats.df};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
