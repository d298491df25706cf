// rehearsals: gates on a model of their server
#pragma once

#include "api/result.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/reports/gate_report.hpp"

#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Returns the note on a rehearsed gate.
inline std::string rehearsal_text(const gate_report& g) {
    return "a REHEARSAL on " + g.rehearsal.model + ", in virtual time: nothing was sent, and "
           "nothing is shown of any server; on one it takes " + time_text(g.took_s) +
           ", and what it takes to start";
}
/// Returns the same for a whole program, "" if it rehearsed nothing.
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

inline void fields_of(field_visitor& v, rehearsal_report& r, double& took_s) {
    v.text({"model"}, r.model);
    v.number({"would_take_s", "with a server, which takes time to start, too"}, took_s,
             seconds_range);
    v.list({"objectives"}, r.objectives, [&](rehearsal_report::objective& o) {
        v.text({"slo"}, o.slo);
        v.choice({"would_be"}, o.would_be, verdict::skipped);
        v.number({"shown_from", "a true value that fails in nine runs of ten"}, o.shows_from,
                 any_number);
        v.number({"inconclusive", "a fraction of the runs"}, o.inconclusive, {0, 1});
    });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
