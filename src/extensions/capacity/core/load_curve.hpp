// the result of a search for reports
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/measurements.hpp"
#include "core/planning/load_search.hpp"
#include "core/planning/plan.hpp"
#include "extensions/capacity/core/found.hpp"
#include "extensions/capacity/core/search.hpp"
#include "extensions/capacity/core/searched.hpp"

#include <algorithm>  // count_if
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One probe as reports show it.
struct load_point {
    probe what{};
    long long requests = 0;        // measured ones
    vector<double> values{};  // of the objectives that the load must hold
    std::string disturbed{};  // why the probe shows nothing
};
/// The result of a search.
struct load_curve final : search_figures {
    metric_id unit = metric_id::capacity_in_rate;
    vector<slo> objectives_held{};
    vector<load_point> points{};
    search_state state{};
    std::string limiting_objective{};

    std::string console() const override {
        std::string out;
        for (std::size_t i = 0; i < points.size(); ++i)
            fill(out, "    {number}. {probe}\n", {{"number", printed("%2zu", i + 1)},
                                                {"probe", probe_text(unit, points[i].what)}});
        return out;
    }
    std::string page(const gate_report& g) const override;
    void fields(field_visitor& v) override;
};
inline load_curve load_curve_of(const plan& p, const measurements& e, const judging_parameters& t) {
    load_curve c;
    const found_capacity found = capacity_of(e, t);
    c.unit = load_metric(p);
    c.objectives_held = t.objectives_held;
    c.ends = c.state = found.state;
    c.limiting_objective = found.limiting_objective;
    c.line = capacity_line(c.unit, found);
    c.flat = flatness_text(found);
    c.fault = fault_of_search(e, t, found);
    for (const repeat_data& d : e.candidate) {
        load_point at{found.probes[c.points.size()],
                      std::count_if(d.records.begin(), d.records.end(), is_measured),
                      {},
                      d.disturbed};
        for (const slo& s : t.objectives_held) at.values.push_back(evaluate(s.statistic, d));
        c.points.push_back(at);
    }
    const measurements of_tables = measurements_of_tables(e, t);
    if (!of_tables.candidate.empty())
        c.tables_at = "at " + value_text(c.unit, of_tables.candidate.front().load);
    return c;
}


inline void fields_of(field_visitor& v, load_point& p) {
    v.number({"load"}, p.what.load, rate_range);
    v.choice({"part"}, p.what.part, probe_of::asked);
    v.number({"margin", "the worst ln(statistic/limit), of fractions the difference of logits; "
                        "above 0 is a miss"}, p.what.margin, any_number);
    v.flag({"over_saturated"}, p.what.over);
    v.flag({"invalid", "the client had too great a part in it"}, p.what.invalid);
    v.choice({"shows", "with those before it at the same load"}, p.what.shown, carried::misses);
    v.whole({"requests"}, p.requests);
    v.numbers({"values", "of `objectives_held`"}, p.values, any_number);
}
/// The result of a search, and its probes.
inline void fields_of(field_visitor& v, load_curve& c) {
    std::string unit = c.unit == metric_id::capacity_in_users ? "users" : "requests/s";
    v.text({"unit", "requests/s or users"}, unit);
    v.number({"low", "the highest load that was shown to hold all objectives, 0: none"},
             c.state.low, rate_range);
    v.number({"high", "the lowest load that was shown to miss one, null: none"}, c.state.high,
             {0, max_rate, infinity});
    v.number({"estimate", "the middle of both ends, null: an end is missing"}, c.state.estimate,
             any_number);
    v.number({"elasticity", "by how many percent 1 % more load moves what bounds it, null: an "
                            "end is missing"},
             c.state.elasticity, any_number);
    v.text({"limiting_objective"}, c.limiting_objective);
    v.text({"line"}, c.line);
    v.text({"fault", "why the search says nothing"}, c.fault);
    vector<std::string> objectives_held;
    for (const slo& s : c.objectives_held) objectives_held.push_back(str(s.text()));
    v.texts({"objectives_held", "the objectives that a load must hold"}, objectives_held);
    v.list({"probes"}, c.points, [&](load_point& p) { fields_of(v, p); });
}
inline void load_curve::fields(field_visitor& v) { fields_of(v, *this); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
