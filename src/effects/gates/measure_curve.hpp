// one load of a server after the other, from a scenario to its curve
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/traffic.hpp"
#include "core/base/text.hpp"
#include "core/metric/value_text.hpp"
#include "core/bodies/result_data.hpp"
#include "core/planning/check_curve.hpp"
#include "core/reports/curve_report.hpp"
#include "effects/system/console.hpp"
#include "effects/gates/measure.hpp"
#include "effects/gates/session.hpp"

#include <stdexcept>  // invalid_argument
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What stands for all loads, and says why there is no curve of them.
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
        result_access::add_load(c, 0, executed(refused_curve(s, loads, file, line), file, line,
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
        result_access::end_curve(c, ends_of(r), curve_line(r));
        say(all.add_curve(r));
    };
    try {
        for (const offered_load& load : loads) {
            scenario at = s;
            at.name = r.name + " / " + value_text(r.unit, load.value);
            at.arrivals = arrivals_at(s.arrivals.data(), load);
            const result one = measured_result(at, file, line, "curve");
            r.loads.push_back(judged_load_of(load.value, str(one.name()), one.verdicts()));
            result_access::add_load(c, load.value, one);
            // What is unsound at the lightest load is so at all of them.
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
