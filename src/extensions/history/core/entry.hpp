// the properties of a series, and a measured gate as its line of a history
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/bytes.hpp"
#include "core/base/checked_json.hpp"
#include "core/base/field_json.hpp"
#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/metric/table.hpp"
#include "core/planning/target_facts.hpp"
#include "core/stored/gate_fields.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/trace_hash.hpp"
#include "extensions/history/core/fingerprint.hpp"
#include "extensions/history/core/lines.hpp"

#include <algorithm>  // all_of, any_of
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <string_view>
#include <utility>  // move, pair
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr const char* series_schema = "llmbench/cohort/1";

/// Properties equal in all runs of a series, as text; "": unknown or none. The text of the load is
/// for readers; `load` identifies it, and older files lack that.
struct run_series {
    std::string gate{}, definitions{}, model{}, api{};
    std::string arrivals{}, workload{}, extent{}, options{}, seed{}, trace_hash{};
    std::string server{};        // its kind, "vLLM", or a simulated one's settings
    std::string accelerators{};  // "8 x NVIDIA H100 80GB HBM3"
    std::string cpu{}, cores{};  // of the server's machine; cores it may use
    std::string machine{};       // LLMBENCH_MACHINE
    std::string load{};          // hash of its values
    bool operator==(const run_series&) const = default;
};
inline constexpr std::pair<const char*, std::string run_series::*> series_facts[] = {
    {"gate", &run_series::gate},         {"definitions", &run_series::definitions},
    {"model", &run_series::model},       {"api", &run_series::api},
    {"arrivals", &run_series::arrivals}, {"workload", &run_series::workload},
    {"extent", &run_series::extent},     {"options", &run_series::options},
    {"seed", &run_series::seed},         {"trace_hash", &run_series::trace_hash},
    {"server", &run_series::server},     {"accelerators", &run_series::accelerators},
    {"cpu", &run_series::cpu},           {"cores", &run_series::cores},
    {"machine", &run_series::machine}};
/// The text of the load, which `load` replaces.
inline bool describes_load(std::string run_series::* fact) {
    return fact == &run_series::arrivals || fact == &run_series::workload ||
           fact == &run_series::extent || fact == &run_series::options;
}

inline void fields_of(field_visitor& v, run_series& c) {
    for (const auto& [name, fact] : series_facts) v.quoted({name}, c.*fact, false);
    if (v.has("load", !c.load.empty()))
        v.quoted({"load", "a hash of its values", at_times}, c.load, false);
}

/// 16 hexadecimal digits: a hash of every property and its name. If the load's values are known its
/// text is left out, so that a corrected text does not lose all runs.
inline std::string id_of(const run_series& c) {
    fnv1a hash;
    const auto add = [&](std::string_view name, const std::string& value) {
        for (const std::string_view part : {name, std::string_view(value)}) {
            hash.add(part.data(), part.size());
            hash.add("", 1);  // so that different lists have different bytes
        }
    };
    for (const auto& [name, fact] : series_facts)
        if (c.load.empty() || !describes_load(fact)) add(name, c.*fact);
    if (!c.load.empty()) add("load", c.load);
    return hash.text();
}

/// Whether `older` is what an older version wrote for `c`: all texts are equal.
inline bool is_older_form_of(run_series older, const run_series& c) {
    if (!older.load.empty() || c.load.empty()) return false;
    older.load = c.load;
    return older == c;
}
/// Gives runs and annotations of older series their present ids, if the series is known.
inline void join_older_series(history_lines& lines, std::map<std::string, run_series>& known) {
    std::map<std::string, std::string> ids;
    for (const auto& [id, older] : known)
        for (const auto& [other, c] : known)
            if (is_older_form_of(older, c)) ids[id] = other;
    for (const auto& [older, id] : ids) known.erase(older);
    const auto rename = [&](std::string& id) {
        if (const auto at = ids.find(id); at != ids.end()) id = at->second;
    };
    for (history_run& r : lines.runs) rename(r.run_series);
    for (history_note& n : lines.notes) rename(n.run_series);
}

/// Names a machine: "2 x NVIDIA L4", "AMD EPYC 7763, 4 cores", "bench-7".
inline std::string machine_text(const run_series& c) {
    std::string words = c.accelerators;
    if (words.empty() && !c.cpu.empty())
        words = c.cpu + (c.cores.empty() ? "" : ", " + c.cores + " cores");
    if (words.empty() && c.cpu.empty()) words = c.machine.empty() ? c.server : "";
    if (c.machine.empty()) return words;
    return words.empty() ? c.machine : c.machine + " (" + words + ")";
}

/// The first difference of two series, "cpu \"AMD EPYC 7763\", there \"AMD EPYC 9V74\"", "" if
/// none.
inline std::string first_difference(const run_series& is, const run_series& there) {
    for (const auto& [name, fact] : series_facts)
        if (is.*fact != there.*fact)
            return joined({name, " \"", printable(is.*fact, 100), "\", there \"",
                           printable(there.*fact, 100), "\""});
    return {};
}

/// cohorts/<id>.json.
inline std::string series_json(const run_series& c) {
    json_writer j;
    j.open('{').key("schema").value(std::string_view(series_schema));
    write_fields(j, c);
    return j.close().text() + "\n";
}
/// Throws std::invalid_argument if the text is not valid.
inline run_series read_series(const std::string& json, const std::string& file) {
    picojson::value root;
    if (!parse_json(json, root) || string_member(root, "schema") != series_schema)
        refuse({file, " is no series of a history (", series_schema, ")"});
    run_series c;
    document_digits digits(json);
    read_fields(checked_object(root, file, ""), digits, c);
    return c;
}

/// The default number of repeats of a baseline run: two show no spread of their own.
inline constexpr int repeats_of_a_run = 3;

/// The series of a load on a machine, whose server and hardware are not known yet.
inline run_series series_of_load(const std::string& gate, const std::string& definitions,
                                 const target_facts& target, const load_facts& load,
                                 const std::string& machine) {
    return {.gate = gate,
            .definitions = definitions,
            .model = target.model,
            .api = target.api,
            .arrivals = load.arrivals,
            .workload = load.workload,
            .extent = load.extent,
            .options = load.options,
            .seed = load.seed,
            .trace_hash = load.trace_hash,
            .machine = machine,
            .load = load.values};
}
/// The series of a gate: the properties that a stored baseline must share, and the machine.
inline run_series series_of_run(const plan& p, const target_facts& target, const fingerprint& print,
                                const std::string& machine) {
    run_series s = series_of_load(p.name, definitions_version, target, load_facts_of(p), machine);
    s.server = print.server;
    s.accelerators = print.accelerators;
    s.cpu = print.cpu;
    s.cores = print.cores;
    return s;
}

/// A gate to add, or the reason not to.
struct history_entry {
    run_series in{};
    history_run run{};  // the program sets its id and time
    std::string why_not{};
};

/// The statistics that a history keeps of every gate, beside those of its objectives.
inline constexpr std::string_view usual_statistics[] = {"mean(tpot)", "p50(ttft)", "p90(ttft)",
                                                        "p50(e2e)", "output_throughput"};
/// Whether every repeat has a value.
inline bool are_kept(const std::vector<double>& repeats) {
    const auto is_one = [](double v) { return std::isfinite(v) && v > 0; };
    return !repeats.empty() && std::all_of(repeats.begin(), repeats.end(), is_one);
}
inline std::vector<named_repeats> values_of_a_run(const plan& p, const gate_figures& g) {
    std::vector<named_repeats> values;
    const auto add = [&](std::string_view name) {
        for (const named_repeats& n : values)
            if (n.name == name) return;
        for (std::size_t i = 0; i < g.kept.size(); ++i) {
            if (str(g.kept[i].name) != name) continue;
            named_repeats n{std::string(name), {}};
            for (const repeat_figures& r : g.candidate.repeats)
                n.repeats.push_back(in_six_digits(r.statistics[i]));
            if (are_kept(n.repeats)) values.push_back(std::move(n));
        }
    };
    for (const slo& s : p.judged->slos)
        if (may_be_relative(s.what.metric)) add(str(s.what.name));
    for (const std::string_view usual : usual_statistics) add(usual);
    return values;
}
inline std::string outcome_of_a_run(const std::vector<slo_verdict>& verdicts) {
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
inline std::string why_no_run(const plan& p, const gate_figures& g,
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
    e.why_not = why_no_run(p, g, verdicts, stopped);
    if (!e.why_not.empty()) return e;
    e.in = std::move(in);
    e.run.gate = p.name;
    e.run.run_series = id_of(e.in);
    e.run.watched = watched_facts(print);
    e.run.outcome = outcome_of_a_run(verdicts);
    e.run.values = values_of_a_run(p, g);
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
