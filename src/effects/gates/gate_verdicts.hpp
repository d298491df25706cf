// what the repeats so far decide
#pragma once

#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/values.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/load_search.hpp"
#include "core/bodies/result_data.hpp"
#include "effects/gates/early_looks.hpp"
#include "effects/gates/run_mode.hpp"

#include <algorithm>  // max
#include <functional>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The verdicts of a gate while it is measured: when they are found, and when they are enough.
class gate_verdicts : not_copied {
public:
    /// Both must outlive this. The plan's judging does not change.
    gate_verdicts(measured_gate& all, const run_mode& mode)
        : all_(all), judged_(*all.what.judged), mode_(mode) {}

    /// Those of all repeats so far.
    const analysis& so_far() {
        if (!is_known_) all_.found = analyse_gate(all_.seen, all_.judged_by);
        is_known_ = true;
        return all_.found;
    }
    /// The repeats have changed, or the reason of undecided verdicts.
    void forget() { is_known_ = false; }

    int most_repeats() const { return most_repeats_; }
    /// Beyond the usual repeats or pairs there is one analysis, after the last additional one.
    bool are_due(int repeats) const {
        return mode_.judges() && repeats >= judged_.first_repeats &&
               (repeats <= judged_.max_repeats || repeats == most_repeats_);
    }
    /// Whether no more repeats are needed; more than the usual ones are, if noise leaves one open.
    bool are_enough(int repeats) {
        const analysis& found = so_far();
        // A miss shown under saturation is reported as such; most take a third repeat.
        if (repeats < first_fail && found.on.saturated && !shows_a_miss(found.verdicts))
            return false;
        if (!mode_.appends() && !found.by_client &&  // all baseline runs have the same number
            is_enough(found.verdicts, {.advisory = judged_.repeats_are_asked}))
            return true;
        if (repeats == judged_.max_repeats && any_of(found.verdicts, [&](const decision& v) {
                return is_waited_for(v, {.advisory = judged_.repeats_are_asked}) &&
                       asks_for_more(all_.seen, all_.judged_by, v);
            }))
            most_repeats_ = std::max(most_repeats_, judged_.max_if_noisy);
        return false;
    }
    /// Says whether the load of a repeat may end before its time; none if it never does.
    std::function<bool(load_so_far&&)> within_repeat(int number) const {
        if (mode_.kind != run_kind::judge) return {};
        return [this, number](load_so_far&& s) { return are_decided_by(std::move(s), number); };
    }

private:
    /// Whether all that is waited for is decided, or one is missed and that ends the gate.
    bool is_enough(const vector<decision>& verdicts, awaited which) const {
        const bool ends = judged_.ends_at_first_miss || mode_.ends_at_first_miss;
        return (ends && shows_a_miss(verdicts)) || all_decided(verdicts, which);
    }
    /// The verdicts are found again when the load has ended, with all that is known of client and
    /// servers by then.
    bool are_decided_by(load_so_far&& so_far, int number) const {
        measurements e = all_.seen;
        e.known.reset();
        e.decided_after = so_far.quarters / 4.0;
        for (repeat_data* d : {&so_far.candidate, &so_far.baseline}) {
            d->index = number;
            d->labels = all_.what.sent->labels;
            e.variant(d->variant).push_back(std::move(*d));
        }
        const analysis found = analyse_gate(e, all_.judged_by);
        const bool only_advises = all_of(judged_.slos, [](const slo& s) { return s.is_advisory; });
        return !found.on.invalid &&
               is_enough(found.verdicts, {.advisory = only_advises, .invalid = true});
    }

    measured_gate& all_;
    const planned_judging& judged_;
    const run_mode& mode_;
    int most_repeats_ = judged_.max_repeats;
    bool is_known_ = false;  // they are those of the repeats so far
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
