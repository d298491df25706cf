// Repeats or pairs that are judged as a gate judges them: a few, and all where it is asked for more.
#pragma once

#include "core/judging/judge.hpp"

#include "../../support/sample_measurements.hpp"

namespace rates {

using namespace llmbench::detail;
using llmbench::slo;
using llmbench::slo_verdict;
using sample_measurements::measurement;

/// The rule of a gate's repeats, or of its pairs. Its bounds take longer than a verdict.
inline const judging_rule& rule_of_gate(bool in_pairs) {
    static const judging_rule of[] = {rule_of({}, first_analysis, last_analysis, 1),
                                      rule_of({}, first_pair_analysis, last_pair_analysis, 1)};
    return of[in_pairs];
}

class gate_repeats {
public:
    /// `few`: with the calibration of the gate, and without repeats.
    explicit gate_repeats(measurement few, bool in_pairs = false)
        : few_(std::move(few)), last_(static_cast<std::size_t>(in_pairs ? last_pair_analysis : last_analysis)) {
        few_.rule = rule_of_gate(in_pairs);
        all_ = few_;
    }

    void add(const repeat_data& candidate) { add_to(&measurement::candidate, candidate); }
    void add(const repeat_data& baseline, const repeat_data& candidate) {
        add_to(&measurement::baseline, baseline);
        add(candidate);
    }

    template <class Judge> slo_verdict judged_by(Judge&& judge, const slo& s) const {
        const slo_verdict v = judge(few_, s, false);
        return asks_for_more(few_, few_, v) ? judge(all_, s, false) : v;
    }
    const measurement& few() const { return few_; }
    const measurement& all() const { return all_; }

private:
    void add_to(vector<repeat_data> measurement::*side, const repeat_data& d) {
        if ((few_.*side).size() < last_) (few_.*side).push_back(d);
        (all_.*side).push_back(d);
    }

    measurement few_, all_{};
    std::size_t last_;
};

}  // namespace rates
