// the numbers of a gate that reports show, computed once
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_fields.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/cross_check.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/server.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/load_search.hpp"
#include "core/planning/load_faults.hpp"
#include "core/figures/outcomes.hpp"
#include "core/figures/rows.hpp"
#include "core/figures/server_usage.hpp"
#include "core/figures/slowest.hpp"
#include "core/figures/timelines.hpp"

#include <algorithm>  // count, count_if, find
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <memory>  // shared_ptr
#include <string>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One repeat as reports show it.
struct repeat_figures : repeat_facts {
    std::size_t requests = 0, failed = 0;  // measured ones
    double output_throughput = 0, request_throughput = 0;
    odd_counts odd{};
    cross_check checked{};  // against the server's counters
    double window_s = 0;  // length of the measured part
    vector<double> statistics{};  // in the order of gate_figures::kept
    vector<named_number> counts{};  // of the fractions among them
};

/// One variant over its repeats.
struct variant_figures {
    vector<variant_distribution> distributions{};  // in the order of gate_figures::metrics
    vector<std::pair<metric_id, double>> run_values{};
    vector<status_count> statuses{};
    vector<failure_kind> failures{};
    vector<std::pair<std::string, std::size_t>> finish_reasons{};
    std::size_t usage_below_events = 0;
    answer_counts answers{};
    prefix_hits prefix_cache{};
    reasoning_counts reasoning{};
    prompt_lengths prompts{};
    vector<label_figures> labels{};
    request_tokens tokens{};  // where the variants have different workloads
    server_usage server{};
    std::size_t exempt = 0;  // failed requests that are exempt because of a side task
    vector<repeat_figures> repeats{};
    vector<repeat_timeline> timelines{};
    vector<slow_request> slowest{};
    vector<curve_point> ttft_by_prompt{};
    bool empty() const { return repeats.empty(); }
    double run_value(metric_id id) const {
        for (const auto& [metric, value] : run_values)
            if (metric == id) return value;
        return not_a_number;
    }
    /// Without values where it has none of the metric.
    metric_row row(metric_id id) const {
        for (const variant_distribution& d : distributions)
            if (d.row.metric == id) return d.row;
        return {id};
    }
};

/// What was measured on one server, and how a line of text says whose it is.
struct measured_figures {
    const variant_figures& seen;
    const char* whose;  // "baseline: ", or ""
};
/// The numbers that reports show and never compute.
struct gate_figures {
    vector<metric_id> metrics{};  // those of the latency table, then those of objectives
    std::size_t table_rows = 0;  // how many of the metrics are in the latency table
    vector<statistic_data> kept{};
    timeline_grid grid{};
    bool has_goodput = false;
    std::uint64_t counted_gaps = 0;  // gaps kept as histograms because there were too many
    variant_figures candidate{}, baseline{};
    std::shared_ptr<search_figures> search{};  // null where the gate has one load
    std::string tables_at() const { return search ? search->tables_at : ""; }
    std::string fault() const { return search ? search->fault : ""; }  // why it is invalid
    /// Returns the figures of each server, the candidate's first.
    vector<measured_figures> measured() const {
        vector<measured_figures> all{{candidate, ""}};
        if (!baseline.empty()) all.push_back({baseline, "baseline: "});
        return all;
    }
};

/// The statistics of each repeat that result.json keeps for comparisons with later runs.
inline vector<statistic_data> kept_statistics(const plan& p, const vector<slo>& slos,
                                              const vector<statistic_data>& more = {}) {
    vector<statistic_data> kept;
    const auto keep = [&](const statistic_data& s) {
        for (const statistic_data& k : kept)
            if (str(k.name) == str(s.name)) return;
        kept.push_back(s);
    };
    for (const metric_id id : table_metrics(p)) {
        keep(make_statistic(statistic_kind::mean, id, 0));
        for (const double q : {0.5, 0.75, 0.9, 0.95, 0.99})
            keep(make_statistic(statistic_kind::percentile, id, q));
        keep(make_statistic(statistic_kind::max, id, 0));
    }
    for (const metric_facts& m : metric_table)
        if (is_throughput(m.id) && !is_cost(m.id))
            keep(make_statistic(statistic_kind::value, m.id, 0));
    for (const statistic_data& s : more) keep(s);
    for (const slo& s : slos)
        if (may_be_relative(s.statistic.metric) || is_difference(s)) keep(s.statistic);
    return kept;
}

inline repeat_figures repeat_figures_of(const measurements& e, const repeat_data& d,
                                        const vector<statistic_data>& kept) {
    repeat_figures r{static_cast<const repeat_facts&>(d)};
    for (const record& x : d.records) {
        if (!is_measured(x)) continue;
        ++r.requests;
        r.failed += has_failed(x);
    }
    r.output_throughput = rate_in(metric_id::output_throughput, d, d.window);
    r.request_throughput = rate_in(metric_id::request_throughput, d, d.window);
    r.window_s = seconds_into(d, d.window.to_ns());
    r.odd = odd_counts_of(d);
    r.checked = cross_check_in(e, d);
    r.statistics = evaluate(kept, d);
    for (const statistic_data& s : kept) {
        if (may_be_relative(s.metric)) continue;
        const kept_counts c = counts_to_keep(column_of(s, d, timing_bound::measured));
        for (const count_field& f : count_fields) r.counts.push_back({f.of(s), c.*f.count});
    }
    return r;
}
/// What result.json keeps of a repeat, by name.
inline vector<named_number> named_statistics(const vector<statistic_data>& kept,
                                             const repeat_figures& r) {
    vector<named_number> all;
    for (std::size_t i = 0; i < kept.size(); ++i)
        all.push_back({str(kept[i].name), r.statistics[i]});
    all.append(r.counts.begin(), r.counts.end());
    return all;
}

inline vector<std::pair<metric_id, double>> run_values_of(const repeat_list& variant) {
    vector<std::pair<metric_id, double>> all;
    const auto add = [&](metric_id id) { all.emplace_back(id, run_value(id, variant)); };
    const auto add_known = [&](metric_id id) {
        if (!std::isnan(run_value(id, variant))) add(id);
    };
    for (const metric_facts& m : metric_table)
        if (is_cost(m.id)) add_known(m.id);
        else if (is_throughput(m.id)) add(m.id);
    add(metric_id::error_rate);
    add_known(metric_id::accuracy);
    add_known(metric_id::same_answers);
    add(metric_id::startup_time);
    add_known(metric_id::first_answer_time);
    return all;
}
inline variant_figures variant_figures_of(const plan& p, const gate_figures& g,
                                          const measurements& e, const repeat_list& variant) {
    variant_figures a;
    for (const metric_id id : g.metrics) a.distributions.push_back(distribution_of(id, variant));
    a.run_values = run_values_of(variant);
    a.statuses = status_counts(variant);
    a.failures = failure_kinds(variant);
    if (p.sent->scores.empty()) a.finish_reasons = finish_reasons(variant);
    a.usage_below_events = usage_below_events(variant);
    a.answers = answer_counts_of(variant);
    a.prefix_cache = prefix_hits_of(variant);
    a.reasoning = reasoning_counts_of(variant);
    a.prompts = prompt_lengths_of(p, variant);
    a.labels = label_figures_of(table_metrics(p), variant);
    if (p.sent->otherwise) a.tokens = request_tokens_of(variant);
    a.server = server_usage_of(variant);
    a.slowest = slowest_of(variant);
    if (std::count(g.metrics.begin(), g.metrics.end(), metric_id::ttft) > 0)
        a.ttft_by_prompt = ttft_by_prompt_of(variant);
    for (const repeat_data& d : variant) {
        for (const record& r : d.records) a.exempt += is_measured(r) && r.exempt;
        a.repeats.push_back(repeat_figures_of(e, d, g.kept));
        add_check(a.server, a.repeats.back().checked);
    }
    return a;
}

inline void add_timelines(gate_figures& g, const measurements& e,
                          const list<predicate_step>& good) {
    if (g.grid.windows == 0) return;
    for (auto* variant : {&g.candidate, &g.baseline}) {
        variant->timelines.clear();
        for (const repeat_data& d : variant == &g.candidate ? e.candidate : e.baseline)
            variant->timelines.push_back(timeline_of(d, g.grid, good));
    }
}

/// Adds the figures that one more objective needs.
inline void add_objective(gate_figures& g, const measurements& e, const slo& s) {
    const metric_id id = s.statistic.metric;
    const bool known = std::count(g.metrics.begin(), g.metrics.end(), id) > 0;
    if (is_of_requests(id) && !known && !is_unsupported(e, id)) {
        g.metrics.push_back(id);
        g.candidate.distributions.push_back(distribution_of(id, e.candidate));
        g.baseline.distributions.push_back(distribution_of(id, e.baseline));
    }
    if (id == metric_id::goodput && !g.has_goodput) {
        g.has_goodput = true;
        add_timelines(g, e, s.statistic.where);
    }
}

/// Removes the figures that the files of a stored run do not support.
inline void drop_unsupported(gate_figures& g, const measurements& e) {
    erase_if(g.metrics, [&](metric_id m) { return is_unsupported(e, m); });
    g.table_rows = g.metrics.size();
    erase_if(g.kept,
                  [&](const statistic_data& s) { return !unsupported_reason(e, s).empty(); });
    const bool knows_times = !is_unsupported(e, metric_id::ttft) &&
                             !is_unsupported(e, metric_id::request_throughput);
    if (!knows_times) g.grid = {};
}
inline gate_figures figures_of(const plan& p, const measurements& e, const vector<slo>& slos) {
    gate_figures g;
    g.metrics = table_metrics(p);
    // Without reasoning the time to the first answer equals ttft.
    if (reasoning_counts_of(e.candidate).requests + reasoning_counts_of(e.baseline).requests > 0)
        g.metrics.insert(g.metrics.begin() + 1, metric_id::time_to_first_answer);
    g.table_rows = g.metrics.size();
    g.kept = kept_statistics(p, slos, reported_statistics(e));
    g.grid = grid_of(e);
    drop_unsupported(g, e);
    g.candidate = variant_figures_of(p, g, e, e.candidate);
    g.baseline = variant_figures_of(p, g, e, e.baseline);
    for (auto& [metric, value] : g.candidate.run_values)
        if (is_unsupported(e, metric)) value = not_a_number;
    for (repeat_figures& r : g.candidate.repeats) {
        if (is_unsupported(e, metric_id::output_throughput)) r.output_throughput = not_a_number;
        if (is_unsupported(e, metric_id::request_throughput)) r.request_throughput = not_a_number;
    }
    for (const repeat_data& d : repeats_of(e)) g.counted_gaps += d.pooled_gaps.size();
    for (const slo& s : slos) add_objective(g, e, s);
    if (!g.has_goodput) add_timelines(g, e, {});
    return g;
}

/// The figures of a search are those of one load: its repeats are all probes.
inline gate_figures figures_of_search(const plan& p, const measurements& e,
                                      const judging_parameters& t) {
    gate_figures g = with_load_of_tables(e, t, [&](const measurements& at) {
        return figures_of(p, at, t.objectives_held);
    });
    for (auto* variant : {&g.candidate, &g.baseline}) {
        variant->repeats.clear();
        for (const repeat_data& d : variant == &g.candidate ? e.candidate : e.baseline)
            variant->repeats.push_back(repeat_figures_of(e, d, g.kept));
    }
    each(&extension::add_search, p, e, t, g.search);
    return g;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
