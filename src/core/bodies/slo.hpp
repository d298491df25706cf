// functions of SLO expressions
#pragma once

#include "api/metrics.hpp"
#include "api/own_metrics.hpp"
#include "api/presets.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/metric/own_metrics.hpp"
#include "core/metric/table.hpp"
#include "core/metric/value_text.hpp"

#include <algorithm>  // max, min
#include <cmath>  // fabs, round
#include <string>

#ifndef LLMBENCH_NO_BODIES
namespace llmbench {
inline namespace v0 {

double request_view::prompt_tokens() const {
    const int n = of_.told(detail::counted::prompt).prompt_tokens;
    return n > 0 ? n : detail::not_a_number;
}
double request_view::cached_tokens() const {
    const int n = of_.told(detail::counted::cached).cached_tokens;
    return n >= 0 ? n : detail::not_a_number;
}
double request_view::output_tokens() const {
    return of_.told(detail::counted::output).output_tokens;
}
double request_view::events() const { return of_.told(detail::counted::nothing).events; }
double request_view::content_bytes() const {
    return of_.told(detail::counted::nothing).text_bytes;
}
double request_view::turn() const { return of_.told(detail::counted::nothing).turn + 1; }
const char* request_view::finish_reason() const {
    return of_.told(detail::counted::nothing).finish_reason.c_str();
}

selection label(const types::text& name) { return {name, {}, 1, 0, -1}; }
selection during(const types::text& side_task) { return {{}, side_task, 1, 0, -1}; }
/// No request has two names, or two depths: such a selection is empty.
selection operator&&(const selection& a, const selection& b) {
    const auto both = [](const types::text& x, const types::text& y) {
        return x.empty() || x == y ? y : y.empty() ? x : x + "\" && \"" + y;
    };
    const bool ends_in_a = b.last_turn == 0 || (a.last_turn != 0 && a.last_turn < b.last_turn);
    return {both(a.label, b.label), both(a.during, b.during),
            std::min(a.first_turn, b.first_turn) < 1 ? 0 : std::max(a.first_turn, b.first_turn),
            ends_in_a ? a.last_turn : b.last_turn,
            a.depth == -1 || a.depth == b.depth ? b.depth : b.depth == -1 ? a.depth : -2};
}

namespace detail {

/// Returns "p90(ttft)" for "ttft".
inline std::string statistic_name(statistic_kind kind, const std::string& of, double q) {
    const double percent = q * 100;
    switch (kind) {
    case statistic_kind::value: break;
    case statistic_kind::mean: return "mean(" + of + ")";
    case statistic_kind::max: return "max(" + of + ")";
    case statistic_kind::min: return "min(" + of + ")";
    case statistic_kind::percentile:
        if (q == 0.999) return "p999(" + of + ")";
        if (std::fabs(percent - std::round(percent)) < 1e-9 && percent >= 1 && percent <= 99)
            return printed("p%.0f(%s)", percent, of.c_str());
        return printed("percentile(%s, %g)", of.c_str(), q);
    }
    return of;
}
metric_id own_metric(const char* name, bool is_time, bool is_number, bool at_most,
                     double (*value)(const request_view&)) {
    const metric_unit unit = is_time     ? metric_unit::time
                             : is_number ? metric_unit::none
                                         : metric_unit::tokens_per_s;
    return own_id(own_metrics.add(own_metric_row_of(
        name, unit, at_most ? bound_side::at_most : bound_side::at_least, value)));
}
statistic_data make_statistic(statistic_kind kind, metric_id metric, double q) {
    statistic_data s;
    s.kind = kind;
    s.metric = metric;
    s.q = q;
    s.which = own_turns(metric);
    s.name = statistic_name(kind, metric_name(metric), q);
    return s;
}
statistic_data make_goodput(const list<predicate_step>& where, const text& predicate) {
    statistic_data s;
    s.metric = metric_id::goodput;
    s.where = where;
    s.name = "goodput(" + str(predicate) + ")";
    return s;
}
statistic_data make_drift(const statistic_data& of) {
    statistic_data s = of;
    s.metric = metric_id::drift;
    s.of = of.metric;
    s.name = "drift(" + str(of.name) + ")";
    return s;
}
statistic_data of_some(const statistic_data& what, const selection& which) {
    statistic_data s = what;
    s.which = what.which && which;
    std::string name = str(what.name);
    const std::string was = " of " + selection_text(what.which);
    if (name.size() > was.size() && name.substr(name.size() - was.size()) == was)
        name.resize(name.size() - was.size());
    const std::string text = selection_text(s.which);
    s.name = text.empty() ? name : name + " of " + text;
    return s;
}
statistic_data make_ratio(const statistic_data& of, const statistic_data& to) {
    statistic_data s;
    s.metric = metric_id::ratio;
    s.parts = {of, to};
    s.name = of.name + " / " + to.name;
    return s;
}
statistic_data make_gauge(statistic_kind kind, const text& gauge, double q) {
    statistic_data s = make_statistic(kind, metric_id::server_metric, q);
    s.gauge = gauge;
    s.name = statistic_name(kind, "server_metric(\"" + str(gauge) + "\")", q);
    return s;
}
list<predicate_step> one_step(metric_id metric, bool at_most, double bound) {
    list<predicate_step> steps;
    steps.push_back({predicate_step::op_kind::compare, metric, at_most, bound});
    return steps;
}
list<predicate_step> combine(const list<predicate_step>& a, const list<predicate_step>& b,
                             bool both) {
    list<predicate_step> steps = a;
    for (const predicate_step& s : b) steps.push_back(s);
    predicate_step op;
    op.op = both ? predicate_step::op_kind::both : predicate_step::op_kind::either;
    steps.push_back(op);
    return steps;
}
text comparison_text(metric_id metric, bool at_most, double bound) {
    return std::string(metric_name(metric)) + (at_most ? " <= " : " >= ") +
           limit_text(metric, bound);
}
}  // namespace detail

slo slo::until(const types::text& date) const {
    slo copy = *this;
    copy.is_advisory = true;
    copy.advisory_until = date.empty() ? types::text("no date") : date;
    return copy;
}
types::text slo::text() const {
    const std::string side = at_most ? " <= " : " >= ";
    const bool is_ratio = what.parts.size() == 2;
    const std::string right =
        is_ratio      ? detail::printed("%g * ", bound) + detail::str(what.parts[1].name)
        : factor != 0 ? detail::printed("%g * baseline", factor)
                      : detail::limit_text(what.metric, bound);
    const std::string whole =
        detail::str(is_ratio ? what.parts[0].name : what.name) + side + right;
    return is_advisory ? "advisory(" + whole + ")" : whole;
}
slo operator>=(capacity_metric, const capacity_limit& l) {
    const auto id = l.in_users ? detail::metric_id::capacity_in_users
                               : detail::metric_id::capacity_in_rate;
    return {detail::make_statistic(detail::statistic_kind::value, id, 0), false, l.bound, 0, false,
            l.at};
}
slo advisory(const slo& s) {
    slo copy = s;
    copy.is_advisory = true;
    return copy;
}

types::text latency_limits::text() const {
    std::string t = std::string(name) + ":";
    for (const slo& s : slos()) t += (t.back() == ':' ? " " : ", ") + detail::str(s.text());
    return *source ? t + " (" + source + ")" : t;
}

}  // inline namespace v0
}  // namespace llmbench
#endif
