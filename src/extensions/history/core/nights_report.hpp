// reports of the history that a gate was judged by
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/reports/gate_report.hpp"
#include "extensions/history/core/against.hpp"
#include "extensions/history/core/history_parameters.hpp"
#include "extensions/history/core/judged_by_nights.hpp"

#include <algorithm>  // clamp
#include <cmath>  // floor, log, sqrt
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr double wide_nights_sd = 0.03;  // above this a live comparison sees far more

inline int of_hundred(double fraction) {
    return static_cast<int>(std::floor(100 * std::clamp(fraction, 0.0, 1.0)));
}
/// The text for one objective relative to the history.
inline std::string nights_text(const history_parameters& h, const objective_history& o,
                               const slo& s, const judging_rule& rule) {
    const learned_history& l = o.learned;
    std::string words = plural(l.nights, "night") + (h.machine.empty() ? "" : " on " + h.machine);
    if (!o.step_at.empty())
        words += printed(", the level is of the step of %+.1f %% on %s", o.step * 100,
                         o.step_at.c_str()) +
                 (o.step_text.empty() ? "" : " (" + o.step_text + ")");
    if (o.is_open_step) words += ", which made main worse and which nobody accepted";
    if (!l.is_enough()) return words;
    const history_bounds bounds = history_bounds_of(rule);
    const double line = (s.at_most ? 1 : -1) * std::log(s.factor);
    words += printed("; nights differ by %.2g %%%s, repeats by %.2g %%; unchanged code passes in "
                     "%d of 100, 10 %% beyond the limit is found in %d",
                     l.spread.sd * 100, l.given_sd > 0 ? " (as given)" : "",
                     std::sqrt(l.repeats.variance) * 100,
                     of_hundred(chance_to_pass(l, line, bounds)),
                     of_hundred(chance_to_find(l, std::log(1.10), bounds)));
    if (o.drift != 0)
        words += printed("; main has drifted by %+.1f %% [%+.1f %%, %+.1f %%] since %s, in %zu "
                         "steps", o.drift * 100, o.drift_low * 100, o.drift_high * 100,
                         o.drift_since.c_str(), o.drift_steps);
    if (l.spread.sd >= wide_nights_sd)
        words += "; with such nights, compare with a live baseline";
    return words;
}
/// A line for each objective, "history: 27 nights on ...".
inline std::vector<std::string> nights_lines(const history_parameters& h, const gate_report& g) {
    std::vector<std::string> lines;
    if (!h.none.empty()) return {"history: " + h.none};
    std::vector<const slo*> relative;
    for (const slo& s : g.judged_by.slos)
        if (s.factor > 0 && h.of(s)) relative.push_back(&s);
    for (const slo* s : relative)
        lines.push_back((relative.size() > 1 ? "history of " + str((*s).what.name) : "history") +
                        ": " + nights_text(h, *h.of(*s), *s, g.judged_by.rule));
    return lines;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
