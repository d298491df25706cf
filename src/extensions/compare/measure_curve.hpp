// a server at several loads: from a scenario to its curve
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/traffic.hpp"
#include "core/base/text.hpp"
#include "core/metric/value_text.hpp"
#include "core/bodies/result_data.hpp"
#include "effects/system/console.hpp"
#include "effects/gates/measure.hpp"
#include "effects/gates/session.hpp"
#include "extensions/compare/core/check_curve.hpp"
#include "extensions/compare/core/comparisons_and_curves.hpp"
#include "extensions/compare/core/curve_report.hpp"

#include <stdexcept>  // invalid_argument
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Represents all loads, and says why there is no curve.
class refused_curve : public execution {
public:
    refused_curve(const scenario& s, const list<offered_load>& loads, const char* file, int line)
        : execution(s, file, line, "curve", false), loads_(loads) {}
    result measured() {
        begin();
        check_curve(scenario_, loads_);
        return {};
    }

private:
    const list<offered_load>& loads_;
};

inline curve_result measured_curve(const scenario& s, const list<offered_load>& loads,
                                   const char* file, int line) {
    try {
        check_curve(s, loads);
    } catch (const std::invalid_argument&) {
        curve_result c;
        curve_access::add_load(c, 0, executed(refused_curve(s, loads, file, line), file, line,
                                               "curve"));
        return c;
    }
    session& all = session::of_this_program();
    curve_report r{opened_gate(s, file, line, "curve").what.name, file, line,
                   loads[0].in_users ? metric_id::capacity_in_users : metric_id::capacity_in_rate,
                   {}};
    curve_result c;
    const auto ended = [&] {
        if (r.loads.empty()) return;
        curve_access::end_curve(c, ends_of(r), curve_line(r));
        comparisons_and_curves& told = comparisons_and_curves::of_this_program();
        say(all.tell_sections(told, [&](const std::vector<gate_report>& gates) {
            told.curves.push_back(r);
            return curve_text(r, gates);
        }));
    };
    try {
        for (const offered_load& load : loads) {
            scenario at = s;
            at.name = r.name + " / " + value_text(r.unit, load.value);
            at.arrivals = arrivals_at(s.arrivals.data(), load);
            const result one = measured_result(at, file, line, "curve");
            r.loads.push_back(judged_load_of(load.value, str(one.name()), one.verdicts()));
            curve_access::add_load(c, load.value, one);
            // An unsound scenario is so at every load.
            if (result_access::gate_of(one)->outcome == gate_outcome::refused) break;
        }
    } catch (...) {
        ended();
        throw;
    }
    ended();
    return c;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
