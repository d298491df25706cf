// what a server told of itself, over all repeats
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/metric/value_text.hpp"
#include "core/measured/pooled.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/measured/server_values.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/cross_check.hpp"
#include "core/described/described.hpp"

#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

struct reported_value {
    statistic_data what{};
    double value = not_a_number;
};
/// One arm's.
struct server_account {
    bool is_read = false;
    std::string of{}, problem{};
    std::size_t readings = 0;
    std::size_t missed = 0;
    std::vector<reported_value> values{};
    std::size_t checked = 0, repeats = 0;  // whose requests were held against the server's counts
    std::string differences{};             // that this showed, and nobody is to blame for
};

/// What is shown unasked: the mean of times, the largest value of gauges, else the only one.
inline statistic_data usual_statistic(metric_id m) {
    const bool is_time = facts_of(m).unit == metric_unit::time;
    return make_statistic(is_of_gauge(m) ? statistic_kind::max
                          : is_time      ? statistic_kind::mean
                                         : statistic_kind::value,
                          m, 0);
}
inline std::vector<reported_value> reported_values(const repeat_list& arm) {
    std::vector<reported_value> reported;
    for (const metric_facts& f : metric_table) {
        const bool is_any = f.id == metric_id::server_metric;  // whose series objectives name
        if (!is_of_server(f.id) || is_any) continue;
        const statistic_data what = usual_statistic(f.id);
        const double v = pooled_value(what, arm);
        if (!std::isnan(v)) reported.push_back({what, v});
    }
    return reported;
}
inline std::vector<statistic_data> reported_statistics(const evidence& e) {
    std::vector<statistic_data> all;
    for (const reported_value& t : reported_values(e.candidate)) all.push_back(t.what);
    return all;
}

inline server_account server_account_of(const repeat_list& arm) {
    server_account a;
    a.repeats = arm.size();
    for (const repeat_data& d : arm) {
        const server_metrics& w = d.server;
        a.is_read = a.is_read || w.is_read;
        if (!w.of.empty()) a.of = w.of;
        a.readings += w.readings.size();
        a.missed += w.missed_ns.size();
        if (!w.problem.empty()) a.problem = w.problem;
        const cross_check c = cross_check_of(d);
        a.checked += c.is_made;
        if (a.differences.empty()) a.differences = difference_text(c);
    }
    if (a.is_read) a.values = reported_values(arm);
    return a;
}

/// "vLLM's page, 62 readings: mean(queue_time) 12 ms, ...".
inline std::string account_text(const server_account& a) {
    std::string t = (a.of.empty() ? "its page" : a.of + "'s page") + ", " +
                    plural(a.readings, "reading");
    if (a.missed > 0)
        t += printed(" (%zu failed: ", a.missed) + printable(a.problem, 200) + ")";
    std::string values;
    for (const reported_value& v : a.values)
        values += (values.empty() ? ": " : ", ") + str(v.what.name) + " " +
                  value_text(v.what.metric, v.value);
    return t + values;
}
/// What came of the cross-check of our numbers with the server's, "" where that was not possible.
inline std::string cross_check_text(const server_account& a) {
    if (a.checked == 0) return {};
    if (!a.differences.empty()) return "the server's counts differ from ours: " + a.differences;
    return "the server counts what we do";
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
