// metrics that a server reports
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/metric/table.hpp"
#include "core/server_metrics/quantities.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_metrics.hpp"

#include <algorithm>  // count_if, find, max_element, min, sort
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <map>
#include <optional>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A value of one repeat and its weight in a mean.
struct weighed_value {
    double value = not_a_number;
    double weight = 1;
};

inline std::optional<reading_span> span_of(const repeat_facts& d) {
    return span_over(d.server, d.window);
}

/// The fraction of readings beyond a percentile, on its narrower side.
inline double beyond_of(const statistic_data& what) {
    return what.kind == statistic_kind::percentile ? std::min(what.q, 1 - what.q) : 1;
}
/// The least readings of a gauge in the steady window; a percentile needs as many beyond it.
inline constexpr std::size_t least_readings = 3;
inline std::size_t least_readings_of(const statistic_data& what) {
    return static_cast<std::size_t>(rounded_up(least_readings / beyond_of(what)));
}

/// A gauge's values in the steady window, and missing ones.
struct gauge_readings {
    vector<double> values{};
    std::size_t unreported = 0;  // missing on a page
    std::size_t failed = 0;  // pages that were not read
    std::size_t unknown() const { return unreported + failed; }
    std::size_t tried() const { return values.size() + unknown(); }
};
template <class Value>
gauge_readings read_in_window(const repeat_facts& d, Value&& value) {
    gauge_readings g;
    const auto is_inside = [&](long long at_ns) {
        return at_ns >= d.window.from_ns() && at_ns <= d.window.to_ns();
    };
    for (const page_reading& r : d.server.readings) {
        if (!is_inside(r.at_ns)) continue;
        const double v = value(r);
        if (!std::isnan(v)) g.values.push_back(v);
        else ++g.unreported;
    }
    for (const long long at_ns : d.server.missed_ns) g.failed += is_inside(at_ns);
    return g;
}
inline gauge_readings read_in_window(const repeat_facts& d, server_quantity q) {
    return read_in_window(d, [q](const page_reading& r) { return r.value(q); });
}
inline gauge_readings read_in_window(const repeat_facts& d, const statistic_data& what) {
    if (const auto q = quantity_of(what.metric)) return read_in_window(d, *q);
    const auto& all = d.server.selectors;
    const auto i = static_cast<std::size_t>(
        std::find(all.begin(), all.end(), str(what.gauge)) - all.begin());
    return read_in_window(d, [&](const page_reading& r) {
        return i < r.named.size() ? r.named[i] : not_a_number;
    });
}

/// The mean time of requests finished between two readings. The divisor is a histogram's count,
/// else the server's finished requests, else ours.
inline weighed_value mean_time(const repeat_data& d, const reading_span& s, server_quantity q) {
    double n = s.change_of_count(q);
    if (std::isnan(n)) n = s.change(server_quantity::requests_done);
    if (std::isnan(n))
        n = static_cast<double>(std::count_if(
            d.records.begin(), d.records.end(), [&](const record& r) {
                return r.status == request_status::ok && r.end_ns >= s.from->at_ns &&
                       r.end_ns < s.to->at_ns;
            }));
    if (!(n > 0)) return {};
    return {s.change(q) / n, n};
}

/// Joules between two readings. Without a counter, the power is integrated by the trapezoid rule.
inline double energy_between(const repeat_facts& d, const reading_span& s) {
    if (const double j = s.change(server_quantity::energy); !std::isnan(j)) return j;
    double sum = 0;
    for (const page_reading* r = s.from; r != s.to; ++r)
        sum += (r[0].value(server_quantity::power) + r[1].value(server_quantity::power)) / 2 *
               static_cast<double>(r[1].at_ns - r[0].at_ns) * 1e-9;
    return d.server.readings.empty() ? not_a_number : sum;
}
/// Counts new values of an exporter in a span; some measure only every half minute.
template <class Of>
std::size_t new_values(const reading_span& s, const Of& of) {
    std::size_t n = 0;
    for (const page_reading* r = s.from; r != s.to; ++r) n += of(r[1]) != of(r[0]);
    return n;
}
/// Why the energy of a span is unknown, "" where it is known. Each accelerator is checked, since a
/// counter that stops, restarts or vanishes still leaves a sum.
inline std::string why_no_energy(const repeat_facts& d, const reading_span& s) {
    std::map<std::string, std::size_t> reported;  // number of readings
    for (const page_reading* r = s.from; r <= s.to; ++r)
        for (const auto& [name, joules] : r->joules) ++reported[name];
    const auto readings = static_cast<std::size_t>(s.to - s.from) + 1;
    const auto too_few = [&](const std::string& of, std::size_t n) {
        return n >= least_readings
                   ? ""
                   : "the exporter reported " + printed("%zu new values of ", n) + of +
                         printed(" in %.0f s, %zu are needed: have it measure every second "
                                 "(dcgm-exporter -c 1000)", s.seconds(), least_readings);
    };
    for (const auto& [name, n] : reported) {
        const std::string counter = "the energy counter of " + name;
        if (n < readings)
            return counter + printed(" is in %zu of %zu readings: ", n, readings) +
                   "what it was without it nobody knows";
        const auto of = [&, &card = name](const page_reading& r) { return r.joules.at(card); };
        for (const page_reading* r = s.from; r != s.to; ++r)
            if (of(r[1]) < of(r[0]))
                return counter + printed(" fell from %.6g J to %.6g J: it began anew", of(r[0]),
                                         of(r[1]));
        const std::string of_one = reported.size() > 1 ? "the energy of " + name : "its energy";
        if (std::string why = too_few(of_one, new_values(s, of)); !why.empty()) return why;
    }
    if (!reported.empty()) return {};
    if (std::isnan(energy_between(d, s)))
        return "no metrics page reports the energy or the power of its accelerators";
    const auto q = std::isnan(s.change(server_quantity::energy)) ? server_quantity::power
                                                                  : server_quantity::energy;
    return too_few("its energy", new_values(s, [&](const page_reading& r) { return r.value(q); }));
}
inline weighed_value energy_per_token_of(const repeat_data& d, const reading_span& s) {
    if (!why_no_energy(d, s).empty()) return {};  // cheaper than every gap
    const double joules = energy_between(d, s);
    const double tokens =
        rate_in(metric_id::output_throughput, d,
                time_interval::between(s.from->at_ns, s.to->at_ns)) * s.seconds();
    return tokens > 0 ? weighed_value{joules / tokens, tokens} : weighed_value{};
}

/// A counter on the last page less the same on the first; a server may begin to report it with its
/// first event. NaN: unknown, or it fell.
inline double counted_between(double first, double last) {
    const double by = last - (std::isnan(first) ? 0 : first);
    return by >= 0 ? by : not_a_number;
}
/// A count of work in a repeat, from its first page to its last one; NaN: unknown.
inline double work_of(const statistic_data& what, const repeat_facts& d) {
    const auto s = whole_span(d.server);
    if (!s) return not_a_number;
    if (const auto q = quantity_counted(what)) {
        // Passes are the observations of a histogram.
        const bool by_count = *q == server_quantity::steps && !std::isnan(s->to->count(*q));
        const double by = by_count ? counted_between(s->from->count(*q), s->to->count(*q))
                                   : counted_between(s->from->value(*q), s->to->value(*q));
        // SGLang has no counter of hits before the first one.
        const bool is_unused = *q == server_quantity::prefix_hits &&
                               !std::isnan(s->to->value(server_quantity::prefix_queries)) &&
                               std::isnan(s->from->value(*q)) && std::isnan(s->to->value(*q));
        return is_unused ? 0 : by;
    }
    const auto& all = d.server.selectors;
    const auto i = static_cast<std::size_t>(
        std::find(all.begin(), all.end(), series_in(what)) - all.begin());
    return i < s->to->named.size() ? counted_between(s->from->named[i], s->to->named[i])
                                   : not_a_number;
}

/// A server metric in one repeat in SI units, NaN if not on its pages.
inline weighed_value value_by_server(const statistic_data& what, const repeat_data& d) {
    if (is_of_gauge(what.metric)) {
        vector<double> read = read_in_window(d, what).values;
        const auto n = static_cast<double>(read.size());
        if (read.size() < least_readings_of(what)) return {};
        if (what.kind == statistic_kind::percentile) {
            std::sort(read.begin(), read.end());
            return {nearest_rank(read, what.q), n};
        }
        if (what.kind == statistic_kind::max)
            return {*std::max_element(read.begin(), read.end()), n};
        return {mean_of(read), n};
    }
    const auto s = span_of(d);
    if (!s) return {};
    switch (what.metric) {
    case metric_id::preemptions: return {s->change(server_quantity::preemptions), 1};
    case metric_id::prefix_cache_hits: {
        const double asked = s->change(server_quantity::prefix_queries);
        const double hits = s->change(server_quantity::prefix_hits);
        return asked > 0 && !(hits > asked) ? weighed_value{hits / asked, asked} : weighed_value{};
    }
    case metric_id::acceptance_length: {
        const double drafts = s->change(server_quantity::drafts);
        return drafts > 0
                   ? weighed_value{1 + s->change(server_quantity::accepted_tokens) / drafts, drafts}
                   : weighed_value{};
    }
    case metric_id::energy_per_token: return energy_per_token_of(d, *s);
    default: break;
    }
    const auto q = quantity_of(what.metric);
    return q ? mean_time(d, *s, *q) : weighed_value{};
}

/// Over all repeats: the maximum for maxima and counts, which no repeat may hide, else the mean.
inline bool is_largest_of_repeats(const statistic_data& what) {
    return what.kind == statistic_kind::max || what.metric == metric_id::preemptions;
}

/// Tells that a gauge was not always read in the steady window, "" where it was. Missing readings
/// matter for its maximum: a server is busiest when it is too busy to answer.
inline std::string what_is_unknown(const statistic_data& what, const repeat_data& d) {
    if (!is_of_gauge(what.metric)) return {};
    const gauge_readings g = read_in_window(d, what);
    if (g.unknown() == 0) return {};
    const std::string& why = d.server.problem;
    return printed("%zu of %zu readings of its page in the steady window ", g.unknown(),
                   g.tried()) +
           (g.failed == 0       ? "do not report "
            : g.unreported == 0 ? "failed"
                                : "failed or do not report ") +
           (g.unreported > 0 ? str(what.name) : "") +
           (g.failed > 0 && !why.empty() ? " (" + why + ")" : "") +
           ", and what it was then nobody knows";
}

/// Why a repeat has no value of a gauge, or none to judge. `said`: what was wrong with a reading.
inline std::string why_no_reading(const statistic_data& what, const repeat_data& d,
                                  const std::string& said) {
    const gauge_readings g = read_in_window(d, what);
    const std::size_t n = g.values.size();
    const std::size_t needed = least_readings_of(what);
    // Up to a tenth of a percentile's tail, or of all for a mean, may be unknown.
    const bool is_too_much = static_cast<double>(10 * g.unknown()) >
                             beyond_of(what) * static_cast<double>(g.tried());
    if (g.unknown() > 0 &&
        (n < least_readings || (what.kind != statistic_kind::max && is_too_much)))
        return what_is_unknown(what, d);
    return n >= needed ? ""
                       : printed("%s was read %zu time%s in the steady window, %zu are needed",
                                 what.name.c_str(), n, n == 1 ? "" : "s", needed) +
                             (needed > least_readings ? ", so that three lie beyond it" : "") +
                             said + ": let it run longer";
}
/// The same for a metric of what happened between the first and the last reading.
inline std::string why_no_change(const statistic_data& what, const repeat_data& d,
                                 const reading_span& s) {
    if (what.metric == metric_id::energy_per_token)
        if (std::string why = why_no_energy(d, s); !why.empty()) return why;
    if (const auto q = quantity_of(what.metric)) {
        if (std::isnan(s.from->value(*q)) || std::isnan(s.to->value(*q)))
            return "its page does not report " + std::string(metric_name(what.metric));
        if (std::isnan(s.change(*q)))
            return "its counter of " + std::string(metric_name(what.metric)) +
                   printed(" fell from %.6g to %.6g: it began anew, or a part of it is gone",
                           s.from->value(*q), s.to->value(*q));
    }
    if (!std::isnan(value_by_server(what, d).value)) return {};
    if (what.metric == metric_id::prefix_cache_hits)
        if (const double asked = s.change(server_quantity::prefix_queries),
            hits = s.change(server_quantity::prefix_hits);
            asked > 0 && hits > asked)
            return printed("its page counts %.0f tokens found in its prefix cache and %.0f looked "
                           "for, which cannot be", hits, asked);
    return printed("nothing that %s is of happened between the readings", what.name.c_str());
}
/// Why a repeat has no such value, or none to judge; "" where it has one.
inline std::string why_no_server_value(const statistic_data& what, const repeat_data& d) {
    const server_metrics& w = d.server;
    const std::string said = w.problem.empty() ? "" : " (" + w.problem + ")";
    if (!w.is_read || w.readings.empty()) return "no page of its metrics was read" + said;
    if (history_of(w) == page_history::several_servers)
        return "its page is of several servers in turns, and none of them can be followed";
    if (is_of_gauge(what.metric)) return why_no_reading(what, d, said);
    const auto s = span_of(d);
    return s ? why_no_change(what, d, *s) : "its page was read once, which makes no span" + said;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
