// servers, and the programs that send a load, over all repeats
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/measured/server_values.hpp"
#include "core/judging/cross_check.hpp"
#include "core/judging/measurements.hpp"
#include "core/described/described.hpp"

#include <algorithm>  // find, find_if, max, min
#include <cmath>  // fabs, isnan
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
        const cross_check c = cross_check_of(d);
        a.checked += c.is_made;
        if (a.differences.empty()) a.differences = difference_text(c);
    }
    if (a.is_read) a.values = reported_values(variant);
    return a;
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

/// Of each program the worst repeat and all requests, in order of rank.
inline vector<rank_part> rank_figures_of(const repeat_list& variant) {
    vector<rank_part> all;
    for (const repeat_data& d : variant)
        for (const rank_part& r : d.ranks) {
            const auto at = std::find_if(all.begin(), all.end(),
                                         [&](const rank_part& x) { return x.index == r.index; });
            if (at == all.end()) {
                all.push_back(r);
                continue;
            }
            if (std::fabs(r.off_s) > std::fabs(at->off_s)) at->off_s = r.off_s;
            if (!(r.error_s <= at->error_s)) at->error_s = r.error_s;
            at->synchronised = at->synchronised && r.synchronised;
            at->cpu_utilization = std::max(at->cpu_utilization, r.cpu_utilization);
            at->memory_bytes = std::max(at->memory_bytes, r.memory_bytes);
            at->lateness_p99 = std::max(at->lateness_p99, r.lateness_p99);
            at->requests += r.requests;
            at->failed += r.failed;
        }
    return all;
}

inline std::string memory_text(double bytes) { return printed("%.0f MiB", bytes / 1048576); }

/// From the smallest to the largest value.
template <class Text>
std::string range_text(const vector<rank_part>& all, double rank_part::*of, const Text& text) {
    double least = infinity, most = -infinity;
    for (const rank_part& r : all) {
        least = std::min(least, r.*of);
        most = std::max(most, r.*of);
    }
    const std::string a = text(least), b = text(most);
    return a == b ? a : a + " to " + b;
}

/// "4 programs on 2 machines sent the load: ...", "" for one program.
inline std::string ranks_text(const vector<rank_part>& all) {
    if (all.size() < 2) return {};
    vector<std::string> hosts;
    std::size_t unsynchronised = 0;
    double off = 0;
    for (const rank_part& r : all) {
        if (std::find(hosts.begin(), hosts.end(), r.host) == hosts.end()) hosts.push_back(r.host);
        unsynchronised += !r.synchronised && std::isnan(r.error_s);
        off = std::max(off, std::fabs(r.off_s));
    }
    const auto fraction = [](double x) { return printed("%.1f %%", 100 * x); };
    return filled("{programs} programs on {machines} machine{machines:s} sent the load; they "
                  "began within {off:t}, sent late by p99 {lateness}, used {cpu} of a core and "
                  "{memory}[{may_differ?}; the clocks of {unsynchronised} of them are not known "
                  "to be synchronised]",
                  {{"programs", all.size()}, {"machines", hosts.size()}, {"off", off},
                   {"lateness", range_text(all, &rank_part::lateness_p99, time_text)},
                   {"cpu", range_text(all, &rank_part::cpu_utilization, fraction)},
                   {"memory", range_text(all, &rank_part::memory_bytes, memory_text)},
                   {"may_differ", hosts.size() > 1 && unsynchronised > 0},
                   {"unsynchronised", unsynchronised}});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
