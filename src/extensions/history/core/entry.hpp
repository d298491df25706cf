// from a measured gate to its line of a history
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/stored/gate_fields.hpp"
#include "extensions/history/core/run_series.hpp"
#include "extensions/history/core/fingerprint.hpp"
#include "extensions/history/core/line.hpp"

#include <algorithm>  // all_of, any_of, find
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The default number of repeats of a baseline run: two show no spread of their own.
inline constexpr int repeats_of_a_night = 3;

/// The series of a gate, before its load: the properties that a stored baseline must share, and the
/// machine.
inline run_series series_of_run(const plan& p, const target_facts& target, const fingerprint& print,
                        const std::string& machine) {
    const load_facts load = load_facts_of(p);
    return {.gate = p.name,
            .definitions = definitions_version,
            .model = target.model,
            .api = target.api,
            .arrivals = load.arrivals,
            .workload = load.workload,
            .extent = load.extent,
            .options = load.options,
            .seed = load.seed,
            .trace_hash = load.trace_hash,
            .server = print.server,
            .accelerators = print.accelerators,
            .cpu = print.cpu,
            .cores = print.cores,
            .machine = machine,
            .load = load.values};
}

/// A gate to add, or the reason not to.
struct history_entry {
    run_series in{};
    history_run run{};  // the program sets its id and time
    std::string why_not{};
};

/// The statistics of the gate's objectives, and the usual ones of histories.
inline std::vector<std::string> statistics_of_a_night(const plan& p) {
    std::vector<std::string> names;
    const auto add = [&](const std::string& name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    for (const slo& s : p.judged->slos)
        if (may_be_relative(s.what.metric)) add(str(s.what.name));
    for (const char* usual :
         {"mean(tpot)", "p50(ttft)", "p90(ttft)", "p50(e2e)", "output_throughput"})
        add(usual);
    return names;
}
/// The values by repeat, if every repeat has one.
inline std::vector<named_repeats> values_of_a_night(const plan& p, const gate_figures& g) {
    std::vector<named_repeats> values;
    for (const std::string& name : statistics_of_a_night(p))
        for (std::size_t i = 0; i < g.kept.size(); ++i) {
            if (str(g.kept[i].name) != name) continue;
            named_repeats n{name, {}};
            for (const repeat_figures& r : g.candidate.repeats)
                n.repeats.push_back(in_six_digits(r.statistics[i]));
            const auto is_one = [](double v) { return std::isfinite(v) && v > 0; };
            if (!n.repeats.empty() && std::all_of(n.repeats.begin(), n.repeats.end(), is_one))
                values.push_back(std::move(n));
        }
    return values;
}
inline std::string outcome_of_a_night(const std::vector<slo_verdict>& verdicts) {
    const auto any = [&](verdict v) {
        return std::any_of(verdicts.begin(), verdicts.end(), [&](const slo_verdict& x) {
            return !x.what.is_advisory && x.outcome == v;
        });
    };
    return any(verdict::invalid)        ? "invalid"
           : any(verdict::fail)         ? "failed"
           : any(verdict::inconclusive) ? "inconclusive"
                                        : "passed";
}

/// Returns why a measured gate is no baseline run, "" if it is one. The verdict does not matter,
/// because slow runs must not be left out.
inline std::string why_no_night(const plan& p, const gate_figures& g,
                                const std::vector<slo_verdict>& verdicts,
                                const std::string& stopped) {
    if (p.searches()) return "a capacity was searched, by another load in each run";
    if (!stopped.empty()) return stopped;
    for (const slo_verdict& v : verdicts) {
        if (v.what.is_advisory) continue;
        if (v.outcome == verdict::invalid) return "it is invalid: " + str(v.reason);
        if (v.what.what.metric == metric_id::error_rate && v.estimate.value > v.limit)
            return printed("%.3g %% of its requests failed, where %.3g %% may",
                           v.estimate.value * 100, v.limit * 100);
    }
    const std::size_t repeats = g.candidate.repeats.size();
    const auto wanted = static_cast<std::size_t>(p.judged->max_repeats);
    if (repeats < wanted) return printed("it has %zu of %zu repeats", repeats, wanted);
    return {};
}

/// `stopped`: why its repeats ended early, "" if they did not.
inline history_entry history_entry_of(const plan& p, run_series in, const fingerprint& print,
                                      const gate_figures& g,
                                      const std::vector<slo_verdict>& verdicts,
                                      const std::string& stopped) {
    history_entry e;
    e.why_not = why_no_night(p, g, verdicts, stopped);
    if (!e.why_not.empty()) return e;
    e.in = std::move(in);
    e.run.gate = p.name;
    e.run.run_series = id_of(e.in);
    e.run.watched = watched_facts(print);
    e.run.outcome = outcome_of_a_night(verdicts);
    e.run.values = values_of_a_night(p, g);
    if (e.run.values.empty()) e.why_not = "no repeat has a value above 0";
    return e;
}

/// The note on gates added to a file.
inline std::string history_text(const std::string& file, std::size_t gates) {
    return "history: " + plural(gates, "gate") + " added, " + file + "\n";
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
