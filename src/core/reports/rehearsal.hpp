// rehearsals: gates on a model of their server
#pragma once

#include "api/result.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/judging/evidence.hpp"
#include "core/figures/foreseen.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/terms.hpp"
#include "core/reports/gate_report.hpp"

#include <cstddef>  // size_t
#include <map>
#include <string>
#include <vector>

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
/// What a gate found on a model is no verdict: each says what it would have been, and what other
/// runs would find. A gate that was interrupted has rehearsed nothing, and remains invalid.
inline void mark_rehearsed(gate_report& g, const evidence& seen, const std::string& model,
                           const std::map<std::string, double>& noise) {
    g.rehearsal.model = model;
    for (const repeat_list* arm : {&seen.candidate, &seen.baseline})
        for (const repeat_data& d : *arm)
            if (d.interrupted) return;
    for (slo_verdict& v : g.verdicts) {
        const auto at = noise.find(noise_name(v.what));
        const foreseen f =
            foreseen_of(v, g.judged_by.rule, at == noise.end() ? usual_noise : at->second);
        g.rehearsal.objectives.push_back({str(v.what.text()), v.outcome, f});
        v.reason = rehearsed_text(v, f);
        v.outcome = verdict::skipped;
    }
    g.outcome = gate_outcome::skipped;
}

/// What every report says of a gate that was rehearsed.
inline std::string rehearsal_text(const gate_report& g) {
    return "a REHEARSAL on " + g.rehearsal.model + ", in virtual time: nothing was sent, and "
           "nothing is shown of any server; on one it takes " + time_text(g.took_s) +
           ", and what it takes to start";
}
/// The same of a whole program, "" of one that rehearsed nothing.
inline std::string rehearsal_of_all(const std::vector<gate_report>& gates) {
    std::size_t n = 0;
    double took_s = 0;
    for (const gate_report& g : gates) {
        if (g.rehearsal.model.empty()) continue;
        ++n;
        if (g.refusal.empty()) took_s += g.took_s;
    }
    return n == 0 ? std::string()
                  : "REHEARSAL of " + plural(n, "gate") + " on a model: nothing was sent, and "
                        "nothing is shown of any server; on servers it takes " +
                        time_text(took_s) + ", and what they take to start";
}

/// What a rehearsal would have found, and what other runs would.
inline void fields_of(field_visitor& v, rehearsal_report& r, double& took_s) {
    v.text({"model"}, r.model);
    v.number({"would_take_s", "with a server, which takes time to start, too"}, took_s,
             seconds_range);
    v.list({"objectives"}, r.objectives, [&](rehearsal_report::objective& o) {
        v.text({"slo"}, o.slo);
        v.choice({"would_be"}, o.would_be, verdict::skipped);
        v.number({"shown_from", "a true value that fails in nine runs of ten"}, o.runs.shows_from,
                 any_number);
        v.number({"inconclusive", "a fraction of the runs"}, o.runs.inconclusive, {0, 1});
    });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
