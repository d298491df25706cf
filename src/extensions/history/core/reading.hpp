// a series as the rule reads it
#pragma once

#include "core/base/vector.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/levels.hpp"
#include "extensions/history/core/machines.hpp"

#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A series: its runs without the effects of their machines, its segments and the data for the
/// rule.
struct history_read {
    vector<run_level> runs{};
    vector<history_segment> segments{};
    series_machines machines{};
    learned_history learned{};
};
inline history_read history_read_as(const history_series& s, run_on who, double given_sd = 0) {
    history_read r;
    r.runs = levels_of(s);
    r.machines = effects_in(s, r.runs);
    r.runs = without_machines(std::move(r.runs), r.machines);
    r.segments = with_accepted(segments_of(s, r.runs), s, r.runs);
    r.learned = learned_from(r.runs, r.segments, who, given_sd);
    return r;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
