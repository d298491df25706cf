// functions of public values: text, arrivals, SLO expressions, users' own APIs
#pragma once

#include "api/linking.hpp"
#include "api/metrics.hpp"
#include "api/own_api.hpp"
#include "api/own_metrics.hpp"
#include "api/presets.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "api/workload.hpp"
#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/metric/own_metrics.hpp"
#include "core/metric/table.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/lengths.hpp"

#include <algorithm>  // max, min
#include <cmath>  // fabs, round
#include <cstring>  // strlen, memcpy
#include <initializer_list>  // .slos = {...}
#include <string>
#include <utility>  // swap

#include <picojson.h>  // JSON of servers

#ifndef LLMBENCH_NO_BODIES
namespace llmbench {
inline namespace v1 {
#ifndef LLMBENCH_ARCHIVE  // the names of all files that it serves are in another object
bool detail::implementation() { return true; }
#endif
namespace types {

text::text(const char* s) : text(s ? s : "", s ? std::strlen(s) : 0) {}
text::text(const char* s, detail::size_type n) {
    if (n == 0) return;
    data_ = new char[n + 1];
    size_ = n;
    std::memcpy(data_, s, n);
    data_[n] = 0;
}
text text::join(const text& a, const text& b) { return detail::str(a) + detail::str(b); }
bool text::same(const text& a, const text& b) { return detail::str(a) == detail::str(b); }

}  // namespace types

namespace detail {
inline open_loop open_loop_of(arrival_kind kind, request_rate rate, double burstiness = 1) {
    return open_loop({.kind = kind, .rate = rate.per_second, .burstiness = burstiness});
}
}  // namespace detail

double draw::uniform() { return random_.uniform(); }
long long draw::below(long long n) {
    return n > 0 ? static_cast<long long>(random_.below(static_cast<unsigned long long>(n))) : 0;
}
types::whole draw::length(const length_distribution& d) {
    detail::check_length(d, "the length that is drawn", 1);
    if (!d.file.empty() || d.kind == length_distribution::shape::trace)
        detail::refuse({"the length that is drawn is ", detail::length_text(d),
                        ": read files in the function itself"});
    return detail::drawn_length(d, random_, 1);
}

open_loop constant(request_rate rate) {
    return detail::open_loop_of(detail::arrival_kind::constant, rate);
}
open_loop poisson(request_rate rate) {
    return detail::open_loop_of(detail::arrival_kind::poisson, rate);
}
burst all_at_once() {
    return burst(detail::open_loop_of(detail::arrival_kind::all_at_once, {}).data());
}
open_loop gamma(request_rate rate, double burstiness) {
    return detail::open_loop_of(detail::arrival_kind::gamma, rate, burstiness);
}
open_loop ramp(request_rate from, request_rate to, time_span over) {
    return open_loop({.kind = detail::arrival_kind::ramp,
                      .rate = from.per_second,
                      .rate_to = to.per_second,
                      .over_s = over.seconds()});
}
open_loop steps(std::initializer_list<load_step> stages) {
    return open_loop({.kind = detail::arrival_kind::steps, .stages = stages});
}

double request_view::prompt_tokens() const {
    const int n = of_.read(detail::counted::prompt).prompt_tokens;
    return n > 0 ? n : detail::not_a_number;
}
double request_view::cached_tokens() const {
    const int n = of_.read(detail::counted::cached).cached_tokens;
    return n >= 0 ? n : detail::not_a_number;
}
double request_view::output_tokens() const {
    return of_.read(detail::counted::output).output_tokens;
}
double request_view::events() const { return of_.read(detail::counted::nothing).events; }
double request_view::content_bytes() const {
    return of_.read(detail::counted::nothing).text_bytes;
}
double request_view::turn() const { return of_.read(detail::counted::nothing).turn + 1; }
const char* request_view::finish_reason() const {
    return of_.read(detail::counted::nothing).finish_reason.c_str();
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
metric_id own_metric(const char* name, metric_id like, double (*value)(const request_view&)) {
    return own_id(own_metrics.add(own_metric_row_of(name, like, value)));
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
predicate condition_on(metric_id metric, bound_side side, double bound) {
    const bool at_most = side == bound_side::at_most;
    list<predicate_step> steps;
    steps.push_back({predicate_step::op_kind::compare, metric, at_most, bound});
    return {steps, metric_name(metric) + std::string(at_most ? " <= " : " >= ") +
                       limit_text(metric, bound)};
}
list<predicate_step> combine(const list<predicate_step>& a, const list<predicate_step>& b,
                             predicate_step::op_kind op) {
    list<predicate_step> steps = a;
    for (const predicate_step& s : b) steps.push_back(s);
    steps.push_back({op});
    return steps;
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
    const bool is_ratio = statistic.parts.size() == 2;
    std::string whole = detail::str(is_ratio ? statistic.parts[0].name : statistic.name) +
                        side + detail::limit_text(*this);
    if (detail::is_of_work(statistic.metric)) whole = detail::str(statistic.gauge);
    return is_advisory ? "advisory(" + whole + ")" : whole;
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

types::text api_request::model() const { return of_.model; }
types::text api_request::prompt() const { return detail::joined_prompt(of_.asked); }
types::whole api_request::max_tokens() const { return of_.asked.max_tokens; }
bool api_request::streams() const { return of_.asked.stream; }
api_request& api_request::text(const char* field, const types::text& value) {
    of_.to.string(field, detail::str(value));
    return *this;
}
api_request& api_request::number(const char* field, double value) {
    of_.to.raw(field, detail::json_number(value));
    return *this;
}
api_request& api_request::flag(const char* field, bool value) {
    of_.to.flag(field, value);
    return *this;
}
api_request& api_request::json(const char* field, const types::text& value) {
    of_.to.raw(field, detail::str(value));
    return *this;
}

const char* api_event::data() const { return of_.data.data(); }
types::whole api_event::size() const { return of_.data.size(); }
types::text api_event::text(const char* way) const {
    return std::string(detail::string_in(of_.at(way)));
}
double api_event::number(const char* way) const {
    const detail::json_view* v = of_.at(way);
    return v ? number_in(*v) : detail::not_a_number;
}
bool api_event::flag(const char* way) const {
    const detail::json_view* v = of_.at(way);
    return v && is_true(*v);
}
void api_event::content(const types::text& bytes) {
    of_.says.take(detail::str(bytes));
    of_.memory.keep(detail::str(bytes));
}
void api_event::prompt_tokens(double n) {
    if (n >= 0) of_.says.prompt_tokens = static_cast<int>(std::min(n, detail::max_reported_tokens));
}
void api_event::output_tokens(double n) {
    if (n >= 0)
        detail::note_output_tokens(of_.says,
                                   static_cast<int>(std::min(n, detail::max_reported_tokens)));
}
void api_event::finish(const types::text& reason) { of_.says.finish(detail::str(reason)); }
void api_event::end() { of_.says.done = true; }
void api_event::error(const types::text& why) { of_.says.error = detail::str(why); }

namespace detail {
/// A function for events reads whole answers, too.
box own_api(const api& a) {
    const bool of_bytes = a.framed == framing::pieces;
    const auto given = [](const char* s) { return s ? s : ""; };
    return box::make(api_traits{.name = given(a.name),
                                .path = given(a.path),
                                .framed = a.framed,
                                .ends_with_body = a.ends_with_body || of_bytes,
                                .forces_lengths = a.forces_lengths,
                                .reports_usage = a.tells_usage,
                                .models = given(a.models),
                                .needs_model = *given(a.models) != '\0',
                                .ready = given(a.ready),
                                .metrics = given(a.metrics),
                                .key_before = given(a.key_before),
                                .own_write = a.write,
                                .own_read = a.read,
                                .is_own = true});
}
}  // namespace detail

}  // inline namespace v1
}  // namespace llmbench
#endif
