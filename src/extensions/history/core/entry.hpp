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

#include <algorithm>  // all_of, any_of, find
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <string_view>
#include <utility>  // move
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
};

inline void fields_of(field_visitor& v, run_series& c) {
    v.quoted({"gate"}, c.gate, false);
    v.quoted({"definitions"}, c.definitions, false);
    v.quoted({"model"}, c.model, false);
    v.quoted({"api"}, c.api, false);
    v.quoted({"arrivals"}, c.arrivals, false);
    v.quoted({"workload"}, c.workload, false);
    v.quoted({"extent"}, c.extent, false);
    v.quoted({"options"}, c.options, false);
    v.quoted({"seed"}, c.seed, false);
    v.quoted({"trace_hash"}, c.trace_hash, false);
    v.quoted({"server"}, c.server, false);
    v.quoted({"accelerators"}, c.accelerators, false);
    v.quoted({"cpu"}, c.cpu, false);
    v.quoted({"cores"}, c.cores, false);
    v.quoted({"machine"}, c.machine, false);
    if (v.has("load", !c.load.empty()))
        v.quoted({"load", "a hash of its values", at_times}, c.load, false);
}

/// Visits texts only, in order.
class text_reader : public field_visitor {
public:
    text_reader() : field_visitor(false) {}
    std::vector<named_text> all{};

protected:
    bool visit_text(const field& f, std::string_view t, std::string&) override {
        all.emplace_back(f.name, t);
        return false;
    }
};
inline std::vector<named_text> facts_of(const run_series& c) {
    text_reader r;
    fields_of(r, const_cast<run_series&>(c));  // it is only read
    return r.all;
}

inline bool says_the_load(const std::string& fact) {
    return fact == "arrivals" || fact == "workload" || fact == "extent" || fact == "options";
}
/// 16 hexadecimal digits: a hash of every property and its name. If the load's values are known its
/// text is left out, so that a corrected text does not lose all runs.
inline std::string id_of(const run_series& c) {
    fnv1a hash;
    for (const auto& [name, value] : facts_of(c)) {
        if (!c.load.empty() && says_the_load(name)) continue;
        for (const std::string& part : {name, value}) {
            hash.add(part.data(), part.size());
            hash.add("", 1);  // so that different lists have different bytes
        }
    }
    return hash.text();
}

/// Whether `older` is what an older version wrote for `c`: all texts are equal.
inline bool is_older_form_of(run_series older, const run_series& c) {
    if (!older.load.empty() || c.load.empty()) return false;
    older.load = c.load;
    return facts_of(older) == facts_of(c);
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
    const std::vector<named_text> a = facts_of(is), b = facts_of(there);
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i].second != b[i].second)
            return joined({a[i].first, " \"", printable(a[i].second, 100), "\", there \"",
                           printable(b[i].second, 100), "\""});
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
inline std::vector<std::string> statistics_of_a_run(const plan& p) {
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
inline std::vector<named_repeats> values_of_a_run(const plan& p, const gate_figures& g) {
    std::vector<named_repeats> values;
    for (const std::string& name : statistics_of_a_run(p))
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
