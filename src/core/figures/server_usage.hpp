// servers over all repeats
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/measured/server_values.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/cross_check.hpp"
#include "core/judging/measurements.hpp"
#include "core/described/described.hpp"

#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

struct reported_value {
    statistic_data what{};
    double value = not_a_number;
};
struct server_usage {
    bool is_read = false;
    std::string of{}, problem{};
    std::size_t readings = 0;
    std::size_t missed = 0;
    vector<reported_value> values{};
    std::size_t checked = 0, repeats = 0;  // repeats that were cross-checked, of all
    std::string differences{};  // of the cross-check, without an explanation
};

/// The statistic that reports show by default: mean of times, max of gauges.
inline statistic_data usual_statistic(metric_id m) {
    const bool is_time = facts_of(m).unit == metric_unit::time;
    return make_statistic(is_of_gauge(m) ? statistic_kind::max
                          : is_time      ? statistic_kind::mean
                                         : statistic_kind::value,
                          m, 0);
}
inline vector<reported_value> reported_values(const repeat_list& variant) {
    vector<reported_value> reported;
    for (const metric_facts& f : metric_table) {
        const bool is_any = f.id == metric_id::server_metric;  // a series that an objective names
        if (!is_of_server(f.id) || is_any) continue;
        const statistic_data what = usual_statistic(f.id);
        const double v = pooled_value(what, variant);
        if (!std::isnan(v)) reported.push_back({what, v});
    }
    return reported;
}
inline vector<statistic_data> reported_statistics(const measurements& e) {
    vector<statistic_data> all;
    for (const reported_value& t : reported_values(e.candidate)) all.push_back(t.what);
    return all;
}

/// Without cross-checks.
inline server_usage server_usage_of(const repeat_list& variant) {
    server_usage a;
    a.repeats = variant.size();
    for (const repeat_data& d : variant) {
        const server_metrics& w = d.server;
        a.is_read = a.is_read || w.is_read;
        if (!w.of.empty()) a.of = w.of;
        a.readings += w.readings.size();
        a.missed += w.missed_ns.size();
        if (!w.problem.empty()) a.problem = w.problem;
    }
    if (a.is_read) a.values = reported_values(variant);
    return a;
}
inline void add_check(server_usage& a, const cross_check& c) {
    a.checked += c.is_made;
    if (a.differences.empty()) a.differences = difference_text(c);
}

/// "vLLM's page, 62 readings: mean(queue_time) 12 ms, ...".
inline std::string server_usage_text(const server_usage& a) {
    std::string values;
    for (const reported_value& v : a.values)
        fill(values, "{,}{name} {value}",
             {{"name", v.what.name}, {"value", {v.what.metric, v.value}}});
    return filled("{of}{is_known?'s|its} page, {readings} reading{readings:s}[ ({missed} failed: "
                  "{problem})][: {values}]",
                  {{"of", a.of}, {"is_known", !a.of.empty()}, {"readings", a.readings},
                   {"missed", a.missed}, {"problem", printable(a.problem, 200)},
                   {"values", values}});
}
/// The result of the cross-check, "" where there was none.
inline std::string cross_check_text(const server_usage& a) {
    if (a.checked == 0) return {};
    return filled("cross-check: the server's counters {differences?differ from|match} our "
                  "requests[: {differences}]", {{"differences", a.differences}});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
