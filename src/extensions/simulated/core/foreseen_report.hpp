// the report of a rehearsed gate
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/reports/gate_report.hpp"
#include "extensions/simulated/core/foreseen.hpp"

#include <map>
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// "a rehearsal: pass on the model; inconclusive in 3 % of the runs; ...".
inline std::string rehearsed_text(const slo_verdict& v, const foreseen& f) {
    std::string t = std::string("a rehearsal: ") + to_string(v.outcome) + " on the model";
    if (!v.reason.empty()) t += ", " + str(v.reason);
    const std::string more = foreseen_text(v, f);
    return more.empty() ? t : t + "; " + more;
}
/// Replaces verdicts on a model by texts: the verdict it would have been, and the prediction for
/// other runs. An interrupted gate stays invalid.
inline void mark_rehearsed(gate_report& g, const measurements& seen, const std::string& model,
                           const std::map<std::string, double>& noise, double machine_noise) {
    g.rehearsal.model = model;
    for (const repeat_list* variant : {&seen.candidate, &seen.baseline})
        for (const repeat_data& d : *variant)
            if (d.interrupted) return;
    for (slo_verdict& v : g.verdicts) {
        const auto at = noise.find(noise_name(v.what));
        const foreseen f = foreseen_of(v, g.judged_by.rule,
                                       at == noise.end() ? foreseen_noise{machine_noise}
                                                         : foreseen_noise{at->second, true});
        g.rehearsal.objectives.push_back(
            {str(v.what.text()), v.outcome, f.shows_from, f.inconclusive});
        v.reason = rehearsed_text(v, f);
        if (f.is_known()) v.detectable = 0;  // the prediction says it for later runs
        v.outcome = verdict::skipped;
    }
    g.outcome = gate_outcome::skipped;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
