// gates as steps of a bisection
// All steps are of one day and one machine, so each is held against what the good commit measured
// there today: by limits half way to those of the gate, and by what is known of such a day.
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/judging/terms.hpp"
#include "core/traffic/plan.hpp"
#include "core/stored/stored.hpp"
#include "effects/system/files.hpp"
#include "effects/system/settings.hpp"
#include "effects/gates/run_mode.hpp"

#include <algorithm>  // max
#include <cmath>  // exp, log, sqrt
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr int repeats_of_good = 8, most_repeats_of_a_step = 8;
inline constexpr double bisect_z = 2.33;         // at each look, either way
inline constexpr double between_restarts = 0.005;  // of one server on one machine within hours
inline constexpr double least_noise_of_a_step = 0.01;

inline stored_gate good_of(const bisect_settings& asked, const std::string& gate) {
    return read_stored_gate(file_content(asked.good, "LLMBENCH_BISECT_GOOD"), asked.good, gate);
}
inline std::vector<double> logs_of_good(const stored_gate& good, const slo& s) {
    std::vector<double> logs;
    const auto at = good.statistics.find(str(s.what.name));
    if (at == good.statistics.end()) return logs;
    for (const double v : at->second) logs.push_back(std::log(v));
    return logs;
}

/// Half way from the good commit to the objective's limit, in logarithms.
inline slo half_way(slo s, const stored_gate& good) {
    const std::vector<double> logs = logs_of_good(good, s);
    const double level = logs.empty() ? not_a_number : std::exp(mean_of(logs));
    const double factor = s.factor > 0 ? s.factor : s.bound / level;
    if (!(s.at_most ? factor > 1 : factor < 1 && factor > 0))
        refuse({"LLMBENCH_BISECT: the good commit does not meet \"", str(s.text()), "\" itself, "
                "it has ", printed("%.4g", level), ": choose an objective that only bad commits "
                "miss"});
    s.factor = std::sqrt(factor);
    s.bound = 0;
    return s;
}

inline void check_has_no_server(const scenario& s) {
    if (s.baseline.is_live())
        refuse({"LLMBENCH_BISECT_GOOD is set, and the baseline of this gate is a server: bisect by "
                "a gate that is not held against one"});
}
/// The scenario of a good commit, which is measured to be held against, where a file for it is
/// named.
inline scenario as_good(scenario s, const bisect_settings& asked) {
    if (asked.good.empty() || asked.judges()) return s;
    check_has_no_server(s);
    s.baseline = stored(asked.good, fraction(between_restarts));
    s.repeats = repeats_of_good;
    return s;
}
/// The scenario of a step. Throws std::invalid_argument where it has no objective to go by.
inline scenario as_step(scenario s, const bisect_settings& asked, const stored_gate& good) {
    check_has_no_server(s);
    if (s.arrivals.data().is_searched)
        refuse({"LLMBENCH_BISECT: this gate searches a capacity; bisect by a gate at one load"});
    bool any = false;
    slo_list slos;
    for (slo x : s.slos) {
        if (!is_request_fraction(x.what.metric)) x = half_way(x, good);
        if (asked.what != "1" && str(x.what.name) != asked.what) x.is_advisory = true;
        any = any || !x.is_advisory;
        slos.push_back(x);
    }
    if (!any)
        refuse({"LLMBENCH_BISECT is \"", printable(asked.what, 60), "\": it must be 1, or the "
                "statistic of an objective of the gate, such as mean(tpot)"});
    s.slos = slos;
    s.baseline = stored(asked.good, fraction(between_restarts));
    s.repeats = most_repeats_of_a_step;
    return s;
}
/// The same of its plan: every analysis from the second repeat on may decide, and the noise is
/// believed to be what the good commit's repeats differed by.
inline plan planned_step(plan p, const stored_gate& good, run_mode& mode) {
    mode.noise_file = str(p.judged->stored.file);
    for (const slo& s : p.judged->slos)
        if (s.factor > 0)
            mode.noise[noise_name(s)] = std::max(least_noise_of_a_step,
                                                 std::sqrt(sample_variance(logs_of_good(good, s))));
    return with_judging(std::move(p), [](planned_judging& j) {
        j.repeats_are_asked = false;
        j.most_if_noisy = 0;
        j.rule.pass_z = j.rule.fail_z = j.rule.alone_z = bisect_z;
        j.rule.knows_noise = true;
    });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
