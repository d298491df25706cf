// the columns of a verdict: a statistic of one repeat, and over several
// As tables and files show them: the maximum of all repeats, a percentile or mean of all requests.
// Never outside the range of the single repeats.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/metric/table.hpp"
#include "core/measured/drift.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/recovery.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_values.hpp"

#include <algorithm>  // max_element, min
#include <cstddef>  // size_t
#include <memory>  // shared_ptr
#include <string>
#include <utility>  // move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Answers that a rate counts at their ends, by the ends of the steady window.
struct ends_of_window {
    double ended = 0, begun_before = 0, ended_after = 0;
};
/// One statistic of one repeat, or of a part of its time, read in one way: all that a verdict needs
/// of its requests.
struct column {
    double value = not_a_number;  // in SI units, NaN without one
    double weight = 1;            // in a mean over columns
    std::size_t requests = 0, failed = 0;  // those that it selects
    std::size_t behind = 0;                // values behind it
    std::shared_ptr<const request_values> values{};  // of requests, sessions and gaps, else null
    fraction_counts counts{};                        // of a fraction
    // In order of planned sends: the misses of a fraction, else a percentile's failures.
    vector<bool> misses{};
    vector<long long> questions{};  // of the misses of answers
    ends_of_window ends{};          // of a throughput
    double first_third = not_a_number, last_third = not_a_number;  // of a drift
    double window_s = 0;
    /// Requests, or sessions.
    std::size_t trials(metric_id m) const {
        return is_of_sessions(m) ? values->in_order.size() : requests;
    }
};
using shared_column = std::shared_ptr<const column>;

/// Tells apart columns with different values, whatever the names of their statistics.
inline std::string key_of(const statistic_data& s, timing_bound how) {
    const selection& w = s.which;
    std::string key = printed(" %d %d %d %a %d; %d %d %d ", static_cast<int>(how),
                              static_cast<int>(s.kind), static_cast<int>(s.metric), s.q,
                              static_cast<int>(s.of), w.first_turn, w.last_turn, w.depth);
    for (const text* t : {&w.label, &w.during, &s.gauge})
        key += printed("%zu ", str(*t).size()) + str(*t);
    for (const predicate_step& step : s.where)
        key += printed("%d %d %d %a ", static_cast<int>(step.op), static_cast<int>(step.metric),
                       step.at_most, step.bound);
    for (const statistic_data& part : s.parts) key += "of" + key_of(part, how);
    return key;
}
inline ends_of_window ends_of_window_of(metric_id m, const repeat_data& d) {
    const bool at_end = m == metric_id::request_throughput || m == metric_id::input_throughput;
    ends_of_window all;
    for (const record& r : d.records) {
        if (r.status != request_status::ok || (!at_end && r.events >= 2)) continue;
        all.ended += d.window.holds(r.end_ns);
        all.begun_before += d.window.holds(r.end_ns) && r.sent_ns < d.window.from_ns();
        all.ended_after += r.end_ns >= d.window.to_ns() && d.window.holds(r.sent_ns);
    }
    return all;
}
/// What a column is of.
struct column_asked {
    const statistic_data& what;
    const repeat_data& d;
    timing_bound how;
    const time_interval* when = nullptr;  // null: all of the repeat
};
inline void set_drift(column& c, const column_asked& of) {
    c.behind = c.requests;
    if (of.d.window.is_empty()) return;
    c.first_third = value_of_part(of.what, of.d, 0, 3, of.how);
    c.last_third = value_of_part(of.what, of.d, 2, 3, of.how);
    c.value = quotient(c.last_third, c.first_third);
}
inline void set_rate(column& c, const column_asked& of) {
    const time_interval& in = of.when ? *of.when : of.d.window;
    c.value = rate_in(of.what.metric, of.d, in, of.how, of.what.which);
    c.weight = in.seconds();
    c.ends = ends_of_window_of(of.what.metric, of.d);
}
inline void set_cached(column& c, const column_asked& of) {
    const prefix_hits hits = prefix_hits_of(of.d, of.what.which, of.when);
    c.value = hits.share();
    c.weight = hits.prompt;
}
inline void set_start(column& c, const column_asked& of) {
    const bool is_cold = of.what.metric == metric_id::first_answer_time;
    c.value = is_cold ? of.d.first_answer_s : of.d.startup_s;
}
inline void set_recovery(column& c, const column_asked& of) {
    c.value = recovery_value(str(of.what.which.during), of.d);
}
inline void set_read(column& c, const column_asked& of) {
    const weighed_value read = value_by_server(of.what, of.d);
    c.behind = 0;
    c.value = read.value;
    c.weight = read.weight;
}
inline void set_work(column& c, const column_asked& of) { c.value = work_of(of.what, of.d); }
struct column_setter {
    metric_of of;
    void (*set)(column& c, const column_asked& of);
};
/// Of what single requests, sessions or gaps have no values of.
inline constexpr column_setter column_setters[] = {
    {metric_of::thirds, set_drift},     {metric_of::window, set_rate},
    {metric_of::prompts, set_cached},   {metric_of::start, set_start},
    {metric_of::recovery, set_recovery}, {metric_of::server, set_read},
    {metric_of::work, set_work}};
inline void set_misses(column& c, const statistic_data& what, const repeat_data& d,
                       timing_bound how, const time_interval* when) {
    c.misses = misses_of(what, d, how, when);
    c.counts.add(c.misses);
    c.value = c.counts.value(what.metric);
    if (!is_of_answers(what.metric)) return;
    for_each_counted(what, d, when, [&](const record& r, std::size_t) {
        c.questions.push_back(question_of(r));
    });
}
/// Whether so many sessions fail that the mean of the others says nothing of them. A session fails
/// with any of its requests, of which the guard on errors lets 1 % fail.
inline bool fails_too_many(const vector<bool>& sessions) {
    fraction_counts of;
    of.add(sessions);
    return of.misses > 0.05 * of.all;
}
/// Sets the values of single requests, sessions or gaps.
inline void set_values(column& c, const column_asked& of,
                       std::shared_ptr<const request_values> known) {
    const statistic_data& what = of.what;
    const bool of_gaps = pools_gaps(what.metric), is_mean = what.kind == statistic_kind::mean;
    c.values = known ? std::move(known)
                     : new_shared<const request_values>(
                           request_values_of(what, of.d, of.how, of.when));
    const sorted_values& sorted = c.values->sorted;
    c.value = statistic_among(what, sorted);
    c.weight = static_cast<double>(of_gaps ? sorted.gaps.size() : sorted.completed);
    c.behind = (of_gaps ? pooled_gap_count(of.d, what.which) : sorted.completed) +
               (is_mean ? 0 : sorted.all.size() - sorted.completed);
    if (!is_of_sessions(what.metric)) return;
    c.misses.clear();
    for (const double v : c.values->in_order) c.misses.push_back(v == infinity);
    if (is_mean && fails_too_many(c.misses)) c.value = infinity;
}
/// Without the value of a ratio, which is of two columns. `when`: of the requests planned in it;
/// metrics of a server and its start are the repeat's. `known`: the metric's values.
inline column column_of(const statistic_data& what, const repeat_data& d, timing_bound how,
                        const time_interval* when = nullptr,
                        std::shared_ptr<const request_values> known = nullptr) {
    const metric_id m = what.metric;
    const selects selected(what, d, when);
    column c;
    c.window_s = d.window.seconds();
    for (const record& r : d.records) {
        if (!selected(r)) continue;
        ++c.requests;
        c.failed += has_failed(r);
        if (what.kind == statistic_kind::percentile) c.misses.push_back(has_failed(r));
    }
    if (is_request_fraction(m)) {
        set_misses(c, what, d, how, when);
    } else if (is_of_requests(m) || is_of_sessions(m)) {
        set_values(c, {what, d, how, when}, std::move(known));
    } else if (!is_ratio(m)) {
        c.behind = c.requests - c.failed;
        for (const column_setter& s : column_setters)
            if (s.of == facts_of(m).of) s.set(c, {what, d, how, when});
    }
    return c;
}
inline double evaluate(const statistic_data& what, const repeat_data& d,
                       timing_bound how = timing_bound::measured) {
    if (is_ratio(what.metric))
        return quotient(evaluate(what.parts[0], d, how),
                        evaluate(what.parts[1], d, opposite(how)));
    return column_of(what, d, how).value;
}
/// Several at once: neighbours of one metric share the expensive sorting.
inline vector<double> evaluate(const vector<statistic_data>& whats,
                               const repeat_data& d) {
    vector<double> values;
    sorted_values sorted;
    for (std::size_t i = 0; i < whats.size(); ++i) {
        const metric_id m = whats[i].metric;
        if (!is_of_requests(m)) { values.push_back(evaluate(whats[i], d)); continue; }
        if (i == 0 || whats[i - 1].metric != m ||
            selection_text(whats[i - 1].which) != selection_text(whats[i].which))
            sorted = request_values_of(whats[i], d).sorted;
        values.push_back(statistic_among(whats[i], sorted));
    }
    return values;
}

/// The columns of a variant's repeats, and the statistic over all of them.
struct variant_columns {
    vector<shared_column> each{};
    double together = not_a_number;
    vector<double> values() const {
        vector<double> all;
        for (const shared_column& c : each) all.push_back(c->value);
        return all;
    }
};
/// The statistic over several columns, of repeats or of parts of their time. A percentile of
/// requests, sessions or gaps is selected among the values of all. Throughput is over all windows,
/// a fraction over all requests or prompt tokens, a time to start the mean of the starts.
inline double together(const statistic_data& what, const vector<shared_column>& all,
                       timing_bound how) {
    const metric_id m = what.metric;
    const bool is_ranked = (is_of_requests(m) || is_of_sessions(m)) &&
                           (what.kind != statistic_kind::mean ||
                            (pools_gaps(m) && how == timing_bound::measured));
    fraction_counts counts;
    sorted_values sorted;
    vector<std::pair<double, double>> weighted;
    for (const shared_column& c : all) {
        counts.add(c->counts);
        if (is_ranked) sorted.add(c->values->sorted);
        weighted.emplace_back(c->value, c->weight);
    }
    if (is_request_fraction(m)) return counts.value(m);
    if (is_ranked) return statistic_among(what, sorted);
    if (is_of_server(m) && is_largest_of_repeats(what) && !weighted.empty())
        return std::max_element(weighted.begin(), weighted.end(), [](const auto& a, const auto& b) {
                   return a.first < b.first;
               })->first;
    return weighted_mean(weighted);
}
/// `column_in(what, repeat, how)` returns a shared_column, computed or known.
template <class ColumnIn>
variant_columns columns_of(const statistic_data& what, const repeat_list& variant,
                           timing_bound how, ColumnIn&& column_in) {
    const auto part = [&](const statistic_data& of, timing_bound as) {
        return columns_of(of, variant, as, column_in);
    };
    variant_columns all;
    for (const repeat_data& d : variant) all.each.push_back(column_in(what, d, how));
    if (is_ratio(what.metric)) {
        const variant_columns of = part(what.parts[0], how),
                              to = part(what.parts[1], opposite(how));
        for (std::size_t i = 0; i < all.each.size(); ++i) {
            column c = *all.each[i];
            c.value = quotient(of.each[i]->value, to.each[i]->value);
            c.behind = std::min(of.each[i]->behind, to.each[i]->behind);
            all.each[i] = new_shared<const column>(std::move(c));
        }
        all.together = quotient(of.together, to.together);
    } else if (is_cost(what.metric)) {
        statistic_data tokens = what;
        tokens.metric = metric_id::output_throughput;
        const double price = variant.empty() ? 0 : variant[0].usd_per_hour;
        all.together = cost_of_tokens(price, part(tokens, how).together);
    } else {
        all.together = together(what, all.each, how);
    }
    return all;
}
inline variant_columns columns_of(const statistic_data& what, const repeat_list& variant,
                                  timing_bound how = timing_bound::measured) {
    return columns_of(what, variant, how,
                      [](const statistic_data& of, const repeat_data& d, timing_bound as) {
                          return new_shared<const column>(column_of(of, d, as));
                      });
}
inline double pooled_value(const statistic_data& what, const repeat_list& variant) {
    return columns_of(what, variant).together;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
