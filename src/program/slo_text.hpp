// SLOs parsed from text
// As slo::text() prints them, and as in C++: "p90(ttft) <= 300 ms", "300_ms", "300ms".
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/metric/table.hpp"
#include "effects/system/settings.hpp"
#include "extensions/capacity/api.hpp"
#include "extensions/work/core/objective.hpp"
#include "program/other_words.hpp"

#include <algorithm>  // max
#include <cmath>  // floor
#include <cstddef>  // size_t
#include <iterator>  // size
#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The shape that the type of a metric has.
inline metric_shape shape_of(metric_id m) {
    if (is_of_requests(m)) return metric_shape::of_requests;
    if (is_of_sessions(m)) return metric_shape::of_sessions;
    if (is_of_gauge(m)) return metric_shape::of_gauges;
    const bool is_time = facts_of(m).unit == metric_unit::time;
    return is_of_server(m) && is_time ? metric_shape::of_server_times : metric_shape::of_run;
}

class slo_reader {
public:
    explicit slo_reader(std::string_view text) : whole_(text), rest_(text) {
        if (text.size() > most_) refuse(printed("a text of up to %zu characters", most_));
    }
    slo read() {
        slo s = take("advisory(") ? advisory_one() : objective();
        skip_blanks();
        if (!rest_.empty()) refuse("the end");
        return s;
    }

private:
    static constexpr std::size_t most_ = 4000;
    static constexpr int deepest_ = 50;

    /// `meant`: what may be meant instead, "" for nothing.
    [[noreturn]] void refuse(const std::string& expected, std::string meant = "") const {
        const std::size_t at = whole_.size() - rest_.size();
        const std::string known = llmbench_program::words_for(rest_);
        if (!known.empty()) meant = known;
        throw std::invalid_argument(
            "the SLO \"" + printable(whole_, 200) +
            printed("\" cannot be read from character %zu on (\"", at + 1) + printable(rest_, 40) +
            "\"): " + expected + " is expected there" +
            (meant.empty() ? "" : "; is " + meant + " meant?"));
    }
    void skip_blanks() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
    }
    bool take(std::string_view what) {
        skip_blanks();
        if (rest_.substr(0, what.size()) != what) return false;
        rest_.remove_prefix(what.size());
        return true;
    }
    void expect(std::string_view what) {
        if (!take(what)) refuse("\"" + std::string(what) + "\"");
    }
    std::string_view word() {
        skip_blanks();
        std::size_t n = 0;
        const auto is_part = [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
        };
        while (n < rest_.size() && is_part(rest_[n])) ++n;
        return rest_.substr(0, n);
    }
    double number() {
        skip_blanks();
        if (const auto v = leading_number<double>(rest_)) return *v;
        refuse("a number");
    }

    slo advisory_one() {
        slo s = objective();
        expect(")");
        s.is_advisory = true;
        if (!take(".until(")) return s;
        const std::string_view all = rest_.substr(0, rest_.find(')'));
        const bool is_quoted = all.size() > 1 && all.front() == '"' && all.back() == '"';
        const std::string_view date = is_quoted ? all.substr(1, all.size() - 2) : all;
        if (!days_of_date(date)) refuse("a day of UTC such as 2026-12-31");
        rest_.remove_prefix(all.size());
        expect(")");
        return s.until(std::string(date));
    }
    slo objective() {
        if (const std::optional<slo> of_work = objective_on_work()) return *of_work;
        slo s;
        s.statistic = selected();
        s.at_most = side(facts_of(drifting(s.statistic).metric).side);
        limit(s);
        return s;
    }
    /// "cached_tokens == expected", "counted("name{label="value"}") == 0". Of the metric of that
    /// name preemptions has other sides.
    std::optional<slo> objective_on_work() {
        const std::string_view before = rest_;
        work_terms t{.what = std::string(word())};
        const bool is_series = take("counted(\"");
        if (!is_series && !quantity_counted(slo_of(t).statistic)) return {};
        if (is_series)
            t.what = "counted(\"" + up_to("\")", "the end of a name, \"\\\")\",") + "\")";
        else
            take(t.what);
        if (t.what == "preemptions" && !rest_at("==")) {
            rest_ = before;
            return {};
        }
        t.side = take("<=") ? work_side::at_most : take(">=") ? work_side::at_least
                                                              : work_side::equal;
        if (t.side == work_side::equal && !take("==")) refuse("\"==\", \"<=\" or \">=\"");
        if (count_of_work_from(t)) return slo_of(t);
        t.number = number();
        if (!take("*")) return slo_of(t);
        t.factor = t.number;
        if (!count_of_work_from(t)) refuse("\"expected\" or \"baseline\"");
        return slo_of(t);
    }
    bool count_of_work_from(work_terms& t) {
        if (take("expected")) t.from = work_limit::source::model;
        else if (take("baseline")) t.from = work_limit::source::baseline;
        else return false;
        return true;
    }
    bool side(bound_side allowed) {
        const bool at_most = rest_at("<="), at_least = rest_at(">=");
        if (allowed == bound_side::at_most && !at_most) refuse("\"<=\"");
        if (allowed == bound_side::at_least && !at_least) refuse("\">=\"");
        if (!at_most && !at_least) refuse("\"<=\" or \">=\"");
        rest_.remove_prefix(2);
        return at_most;
    }
    bool rest_at(std::string_view what) {
        skip_blanks();
        return rest_.substr(0, what.size()) == what;
    }
    /// "1.05 * baseline + 1 ms" from the factor on.
    void of_baseline(slo& s, double factor) {
        s.factor = factor;
        const bool is_more = take("+");
        if (is_more || take("-"))
            s.offset = (is_more ? 1 : -1) * in_unit(s.statistic.metric, number());
    }
    /// "300 ms", "1.1 * baseline", "baseline + 1 ms", "110 % * baseline", "1.25 * p90(ttft) of
    /// "base"".
    void limit(slo& s) {
        metric_id& m = s.statistic.metric;
        if (take("baseline")) return of_baseline(s, 1);
        const double v = number();
        if (take("*")) {
            if (take("baseline")) return of_baseline(s, v);
            const std::string_view before = rest_, name = word();
            const vector<metric_id> all = all_metrics();
            const bool is_metric =
                any_of(all, [&](metric_id id) { return name == metric_name(id); });
            if (!is_metric && rest_.substr(name.size(), 1) != "(")
                refuse("\"baseline\", or a statistic of the same unit,");
            const statistic_data other = selected();
            if (facts_of(other.metric).unit != facts_of(m).unit) {
                rest_ = before;
                refuse("baseline, or a statistic of the same unit,");
            }
            s.statistic = make_ratio(s.statistic, other);
            s.bound = v;
            return;
        }
        if (is_capacity(m) && unit_of(metric_unit::users)) {
            m = metric_id::capacity_in_users;
            s.statistic = make_statistic(statistic_kind::value, m, 0);
            s.bound = v;
            return;
        }
        s.bound = in_unit(m, v);
    }
    const written_unit* unit_of(metric_unit of) {
        const std::string_view before = rest_;
        take("_");
        for (const written_unit& u : written_units) {
            if (u.of != of || !rest_at(u.name)) continue;
            const std::string_view after = rest_.substr(u.name.size());
            const bool goes_on = !after.empty() && ((after[0] >= 'a' && after[0] <= 'z') ||
                                                    (after[0] >= 'A' && after[0] <= 'Z'));
            if (goes_on) continue;
            rest_ = after;
            return &u;
        }
        rest_ = before;
        return nullptr;
    }
    double in_unit(metric_id m, double v) {
        const metric_unit unit = facts_of(m).unit;
        if (unit == metric_unit::none) return v;
        if (const written_unit* u = unit_of(unit)) return v / u->si;
        std::string names;
        for (const written_unit& u : written_units)
            if (u.of == unit || (is_capacity(m) && u.of == metric_unit::users))
                names += (names.empty() ? "" : ", ") + std::string(u.name);
        refuse("the unit of " + std::string(metric_name(m)) + ", which is one of " + names + ",");
    }

    /// "p90(ttft) of "sql"", "p90(ttft).of("sql")", "of(error_rate, "sql")".
    statistic_data selected() {
        if (word() == "of" && take("of(")) {
            const statistic_data s = value_of_run();
            expect(",");
            return of_some(s, closed(all_of_some()));
        }
        const statistic_data s = statistic();
        if (take(".of(")) return of_some(s, closed(all_of_some()));
        return take("of ") ? of_some(s, all_of_some()) : s;
    }
    selection all_of_some() {
        selection which = some();
        while (take("&&")) which = which && some();
        return which;
    }
    selection some() {
        if (rest_at("\"")) return label(quoted());
        if (take("label(")) return closed(label(quoted()));
        if (take("during(")) return closed(during(quoted()));
        if (take("depth(")) return closed(depth(counted()));
        if (!take("turns("))
            refuse("a label in quotes, turns(first, last), depth(n) or during(\"task\")");
        const int first = counted();
        return closed(turns(first, take(",") ? counted() : 0));
    }
    selection closed(const selection& s) {
        expect(")");
        return s;
    }
    int counted() {
        const double n = number();
        if (!(n >= 0 && n <= 1e9 && std::floor(n) == n)) refuse("(after a whole number)");
        return static_cast<int>(n);
    }
    std::string quoted() {
        expect("\"");
        return up_to("\"", "a closing quote");
    }
    /// Takes the text before `end`, and `end`.
    std::string up_to(std::string_view end, const char* missing) {
        const std::size_t at = rest_.find(end);
        if (at == std::string_view::npos) refuse(missing);
        const std::string text(rest_.substr(0, at));
        rest_.remove_prefix(at + end.size());
        return text;
    }

    statistic_data statistic() {
        using enum statistic_kind;
        const std::string_view name = word();
        const bool is_statistic = quantile_of(name) || name == "mean" || name == "max" || name == "min";
        if (rest_.substr(name.size(), 1) != "(" && !is_statistic) return value_of_run();
        rest_.remove_prefix(name.size());
        if (!take("(")) refuse_without_bracket(name);
        if (name == "goodput") return goodput_of();
        if (name == "drift") {
            if (rest_at("drift")) refuse("a statistic that drifts");
            const statistic_data s = make_drift(selected());
            expect(")");
            return s;
        }
        const bool names_quantile = name == "percentile";
        const statistic_kind kind = name == "mean"  ? mean
                                    : name == "max" ? max
                                    : name == "min" ? min
                                                    : percentile;
        double q = kind == percentile && !names_quantile ? quantile_in(name) : 0;
        // The labels of a series have quotes of their own.
        const bool is_gauge = kind != min && take("server_metric(\"");
        const std::string gauge = is_gauge ? up_to("\")", "the end of a name, \"\\\")\",") : "";
        const metric_id m = is_gauge ? metric_id::server_metric : metric_with(kind, name);
        if (names_quantile) {
            expect(",");
            q = number();
            if (!(q > 0 && q < 1)) refuse("(after a percentile strictly between 0 and 1) \")\"");
        }
        expect(")");
        return is_gauge ? make_gauge(kind, gauge, q) : make_statistic(kind, m, q);
    }
    /// "p90 ttft".
    [[noreturn]] void refuse_without_bracket(std::string_view statistic) {
        const std::string_view before = rest_, name = word();
        const bool is_metric = any_of(all_metrics(), [&](metric_id m) {
            return is_of_requests(m) && name == metric_name(m);
        });
        const std::string meant = std::string(statistic) + "(" + std::string(is_metric ? name : "ttft") + ")";
        rest_ = before;
        refuse("\"(\"", is_metric || name.empty() ? meant : "");
    }
    /// "p90", "p999" as 0.999, as in slo::text().
    static std::optional<double> quantile_of(std::string_view name) {
        if (name == "p999") return 0.999;
        const auto percent = parsed_number<int>(name.substr(name.empty() ? 0 : 1));
        const bool is_one = name.substr(0, 1) == "p" && percent && *percent >= 1 && *percent <= 99;
        return is_one ? std::optional(*percent / 100.0) : std::nullopt;
    }
    double quantile_in(std::string_view name) {
        if (const auto q = quantile_of(name)) return *q;
        rest_ = whole_.substr(whole_.size() - rest_.size() - name.size() - 1);
        refuse("mean, max, min, p1 to p99, p999, percentile, goodput or drift");
    }
    metric_id metric_with(statistic_kind kind, std::string_view name) {
        const bool is_percentile = kind == statistic_kind::percentile;
        return metric(
            [&](metric_id m, metric_shape shape) {
                const bool is_of_many = shape == metric_shape::of_gauges ||
                                        shape == metric_shape::of_sessions ||
                                        shape == metric_shape::of_requests;
                if (kind == statistic_kind::mean) return shape != metric_shape::of_run;
                if (kind == statistic_kind::min) return is_speed(m);
                return is_of_many && (is_percentile || !is_speed(m));
            },
            is_percentile ? std::string("a metric of each request")
                          : "a metric that has a " + std::string(name));
    }
    metric_id any_metric_named() {
        const std::string_view name = word();
        std::string names, nearest;
        std::size_t least = std::max<std::size_t>(2, name.size() / 4 + 1);
        for (const metric_id m : all_metrics()) {
            if (m == metric_id::drift || m == metric_id::ratio || m == metric_id::work ||
                m == metric_id::server_metric)
                continue;
            if (name == metric_name(m) && m != metric_id::goodput) {
                rest_.remove_prefix(name.size());
                return m;
            }
            if (const std::size_t apart = letters_apart(std::string(name), metric_name(m));
                apart < least) {
                least = apart;
                nearest = metric_name(m);
            }
            if (m != metric_id::capacity_in_users)
                names += (names.empty() ? "" : ", ") + std::string(metric_name(m));
        }
        refuse(nearest.empty() ? "a metric (" + names + ")" : "a metric", nearest);
    }
    template <class Fits>
    metric_id metric(Fits&& fits, const std::string& expected) {
        const std::string_view before = rest_;
        const metric_id m = any_metric_named();
        if (fits(m, shape_of(m))) return m;
        rest_ = before;
        refuse(expected);
    }
    statistic_data value_of_run() {
        const std::string_view before = rest_;
        const metric_id m = any_metric_named();
        const metric_shape shape = shape_of(m);
        if (shape == metric_shape::of_run) return make_statistic(statistic_kind::value, m, 0);
        rest_ = before;
        const char* statistic = shape == metric_shape::of_server_times ? "mean("
                                : is_speed(m)                          ? "p10("
                                                                       : "p90(";
        refuse("a metric of the whole run", std::string(statistic) + metric_name(m) + ")");
    }
    statistic_data goodput_of() {
        const predicate p = either(0);
        expect(")");
        return make_goodput(p.steps, p.text);
    }
    predicate either(int depth) {
        predicate p = both(depth);
        while (take("||")) p = p || both(depth);
        return p;
    }
    predicate both(int depth) {
        predicate p = condition(depth);
        while (take("&&")) p = p && condition(depth);
        return p;
    }
    predicate condition(int depth) {
        if (depth > deepest_)
            refuse(printed("at most %d brackets in each other: no more", deepest_));
        if (take("(")) {
            predicate p = either(depth + 1);
            expect(")");
            return p;
        }
        const metric_id m = metric([](metric_id id, metric_shape) { return is_of_requests(id); },
                                   "a metric of each request");
        const bound_side allowed = facts_of(m).side;
        side(allowed);
        return condition_on(m, allowed, in_unit(m, number()));
    }

    std::string_view whole_, rest_;
};

}  // namespace detail

/// Parses an SLO as text() prints it or as in C++: "p90(ttft) <= 300 ms", "p50(e2e) <= 1.1 *
/// baseline", "goodput(ttft <= 300_ms && tpot <= 30_ms) >= 90_pct". Throws std::invalid_argument
/// with the position, and what is expected there. A gate refuses unsuitable SLOs later.
inline slo parse_slo(const types::text& text) {
    const std::string s = detail::str(text);
    return detail::slo_reader(s).read();
}

}  // inline namespace v1
}  // namespace llmbench
