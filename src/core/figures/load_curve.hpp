// the curve of a search: objectives over the load
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/value_text.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/traffic/plan.hpp"
#include "core/capacity/found.hpp"
#include "core/capacity/search.hpp"
#include "core/capacity/searched.hpp"

#include <algorithm>  // count_if
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One probe as reports show it.
struct load_point {
    run_arm variant = run_arm::candidate;
    probe what{};
    long long requests = 0;        // measured ones
    std::vector<double> values{};  // of the objectives that the load must hold
    std::string disturbed{};  // why the probe shows nothing
};
/// The result of a search, empty where the gate has one load.
struct load_curve {
    metric_id unit = metric_id::capacity_in_rate;
    std::vector<slo> objectives_held{};
    std::vector<load_point> points{};
    search_state state{};
    std::string limiting_objective{}, line{};
    std::string flat{};  // why the capacity cannot be located better
    std::string fault{};  // why the search is invalid
    double of_tables = 0;  // the load that the tables are about
    bool empty() const { return objectives_held.empty(); }
    /// "at 12 req/s", "" where the gate has one load.
    std::string tables_at() const {
        return of_tables > 0 ? "at " + value_text(unit, of_tables) : "";
    }
};
inline load_curve load_curve_of(const plan& p, const measurements& e, const judging_parameters& t) {
    load_curve c;
    if (!p.searches()) return c;
    const found_capacity found = capacity_of(e, t);
    c.unit = load_metric(p);
    c.objectives_held = t.objectives_held;
    c.state = found.state;
    c.limiting_objective = found.limiting_objective;
    c.line = capacity_line(c.unit, found);
    c.flat = flatness_text(found);
    c.fault = fault_of_search(e, t, found);
    for_each_repeat(e, [&](const repeat_data& d) {
        const std::size_t i = c.points.size();
        load_point at{d.variant,
                      i < found.probes.size() ? found.probes[i] : probe_of_repeat(e, t, d),
                      std::count_if(d.records.begin(), d.records.end(), is_measured),
                      {},
                      d.disturbed};
        for (const slo& s : t.objectives_held) at.values.push_back(evaluate(s.what, d));
        c.points.push_back(at);
    });
    return c;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
