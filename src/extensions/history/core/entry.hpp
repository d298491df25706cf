// a server and its machine, a series, and a gate as its line of a history
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/target.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/field_json.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/metric/table.hpp"
#include "core/planning/target_facts.hpp"
#include "core/stored/gate_fields.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/wire/series.hpp"
#include "extensions/history/core/lines.hpp"

#include <algorithm>  // find, find_if, sort, unique
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>  // exchange, move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Unknown properties are "".
struct fingerprint {
    std::string server{}, version{};  // "vLLM", "0.33.0"
    std::string arguments{};          // a hash
    std::string accelerators{};       // "8 x NVIDIA H100 80GB HBM3"
    std::string cards{};              // a hash of the cards' ids
    std::string driver{}, power{}, kernel{};
    std::string cpu{}, cores{};
    std::string machine{};  // the name of this one
    bool is_hardware_known() const { return !cpu.empty() || !accelerators.empty(); }
};

inline std::string short_hash(std::string_view s) {
    return hash_of(s).text().substr(8);
}

// ---- its software

/// Where a server reports its version, and the fields that identify it.
struct version_page {
    const char *server, *path, *version, *more;  // "": no more fields
};
inline constexpr version_page version_pages[] = {
    {"vLLM", "/version", "version", ""},        {"TensorRT-LLM", "/version", "version", ""},
    {"SGLang", "/server_info", "version", ""},  {"SGLang", "/get_server_info", "version", ""},
    {"llama.cpp", "/props", "build_info", ""},  {"Ollama", "/api/version", "version", ""},
    {"TGI", "/info", "version", "sha"},         {"TEI", "/info", "version", "sha"},
    {"Triton", "/v2", "version", ""}};

/// The pages to ask, in turn: those of a known server, else all paths, each once.
inline vector<version_page> version_pages_of(const std::string& server) {
    vector<version_page> pages;
    for (const version_page& p : version_pages)
        if (server == p.server) pages.push_back(p);
    if (!server.empty()) return pages;
    for (const version_page& p : version_pages) {
        const auto same = [&](const version_page& x) { return std::string_view(x.path) == p.path; };
        if (std::find_if(pages.begin(), pages.end(), same) == pages.end()) pages.push_back(p);
    }
    return pages;
}
/// Returns "0.33.0", "3.1.0 (4d5e6f70)"; "" if the answer is another server's.
inline std::string reported_version(const version_page& p, const std::string& body) {
    json_reader reader;
    const json_view* const v = reader.read(body);
    if (!v) return {};
    const std::string version = printable(string_member(*v, p.version), 60);
    const std::string more = *p.more ? printable(string_member(*v, p.more), 12) : "";
    return version.empty() || more.empty() ? version : version + " (" + more + ")";
}
/// The name of a server whose metrics page does not say it: by its API, or by the path that it
/// answers, which two servers may share.
inline std::string server_behind(const std::string& path) {
    std::string names;
    for (const version_page& p : version_pages)
        if (path == p.path) names += (names.empty() ? "" : " or ") + std::string(p.server);
    return names;
}

/// Hashes the parts of a command that matter: not addresses, file locations, keys and seeds.
inline std::string hash_of_arguments(std::string_view command) {
    constexpr std::string_view idle[] = {"host", "port", "path", "dir",  "file",
                                         "root", "seed", "key",  "token"};
    const auto ends_with = [](std::string_view s, std::string_view end) {
        return s.size() >= end.size() && s.substr(s.size() - end.size()) == end;
    };
    std::string kept;
    bool passes_value = false;
    while (!command.empty()) {
        const std::string_view word = taken_part(command, " \t\n");
        if (word.empty()) continue;
        const bool is_option = word.front() == '-';
        const bool is_value = std::exchange(passes_value, false) && !is_option;
        const std::size_t sign = word.find('=');
        const std::string_view name = word.substr(0, sign);
        bool is_idle = is_value || (!is_option && name.find('/') != std::string_view::npos);
        for (const std::string_view end : idle)
            if (is_option && ends_with(name, end)) {
                is_idle = true;
                passes_value = sign == std::string_view::npos;
            }
        if (!is_idle) kept.append(word).append(" ");
    }
    return kept.empty() ? "" : short_hash(kept);
}

// ---- its accelerators

/// "2 x NVIDIA L4, NVIDIA T4": the names of all, counted.
inline std::string counted_names(vector<std::string> names) {
    std::sort(names.begin(), names.end());
    std::string words;
    for (std::size_t i = 0, n = 0; i < names.size(); i += n) {
        for (n = 1; i + n < names.size() && names[i + n] == names[i];) ++n;
        words += (words.empty() ? "" : ", ") + printed("%zu x ", n) + names[i];
    }
    return words;
}
/// Each card once, in any order.
inline std::string hash_of_cards(vector<std::string> ids) {
    std::sort(ids.begin(), ids.end());
    std::string all;
    for (const std::string& id : ids) all += id + "\n";
    return ids.empty() ? "" : short_hash(all);
}

/// Adds cards on a dcgm-exporter page to those of other pages.
struct reported_cards {
    vector<std::string> ids{}, names{}, drivers{};
};
inline void read_cards(const metrics_page& page, reported_cards& to) {
    for (const page_sample& s : page.samples) {
        const std::string id = printable(label_of(page, s, "UUID"), 60);
        const std::string name = printable(label_of(page, s, "modelName"), 60);
        if (id.empty() || name.empty()) continue;
        if (std::find(to.ids.begin(), to.ids.end(), id) != to.ids.end()) continue;
        to.ids.push_back(id);
        to.names.push_back(name);
        const std::string_view driver = label_of(page, s, "DCGM_FI_DRIVER_VERSION");
        if (!driver.empty()) to.drivers.push_back(printable(driver, 30));
    }
}
/// Reads `nvidia-smi --query-gpu=name,uuid,driver_version,memory.total,power.limit
/// --format=csv,noheader`: a line for each card; no cards in other text.
inline void read_nvidia_smi(std::string_view csv, fingerprint& to) {
    vector<std::string> names, cards, powers;
    while (!csv.empty()) {
        std::string_view line = taken_part(csv, "\n");
        vector<std::string> cells;
        while (!line.empty()) cells.push_back(printable(trimmed(taken_part(line, ",")), 60));
        if (cells.size() != 5 || cells[1].compare(0, 4, "GPU-") != 0) continue;
        names.push_back(cells[0]);
        cards.push_back(cells[1] + " " + cells[3]);
        powers.push_back(cells[4]);
        to.driver = cells[2];
    }
    if (names.empty()) return;
    to.accelerators = counted_names(names);
    to.cards = hash_of_cards(cards);
    std::sort(powers.begin(), powers.end());
    powers.erase(std::unique(powers.begin(), powers.end()), powers.end());
    to.power = powers.size() == 1 ? powers[0] : "";
}

/// Properties that are watched, and named if they change at a step.
inline vector<named_text> watched_facts(const fingerprint& f) {
    vector<named_text> all;
    const auto add = [&](const char* name, const std::string& value) {
        if (!value.empty()) all.emplace_back(name, value);
    };
    add("arguments", f.arguments);
    add("card", f.cards);
    add("driver", f.driver);
    add("kernel", f.kernel);
    add("power", f.power);
    add("server", f.version.empty() ? "" : f.server + " " + f.version);
    return all;
}

inline constexpr const char* series_schema = "llmbench/cohort/1";

/// Properties equal in all runs of a series, as text; "": unknown or none. The text of the load is
/// for readers; `load` identifies it, and older files lack that.
struct run_series {
    std::string gate{}, definitions{}, model{}, api{};
    std::string arrivals{}, workload{}, extent{}, options{}, seed{}, trace_hash{};
    std::string server{};        // its kind, "vLLM", or a simulated one's settings
    std::string accelerators{};  // "8 x NVIDIA H100 80GB HBM3"
    std::string cpu{}, cores{};  // of the server's machine; cores it may use
    std::string machine{};       // LLMBENCH_MACHINE, if nothing else tells the hardware
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
    for (const auto& [name, fact] : series_facts) v.quoted({name}, c.*fact);
    v.quoted({"load", "a hash of its values", if_any}, c.load);
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

/// Whether `older` is what an older version wrote for `c`: all texts are equal, but for the load's
/// hash and the name of a machine whose hardware is known.
inline bool is_older_form_of(run_series older, const run_series& c) {
    const bool is_known = !c.cpu.empty() || !c.accelerators.empty();
    const bool lacks_load = older.load.empty() && !c.load.empty();
    const bool has_name = is_known && !older.machine.empty() && c.machine.empty();
    if (!lacks_load && !has_name) return false;
    if (lacks_load) older.load = c.load;
    if (has_name) older.machine.clear();
    return older == c;
}
/// Gives runs and annotations of older series their present ids, if the series is known.
inline void join_older_series(history_lines& lines, std::map<std::string, run_series>& known) {
    std::map<std::string, std::string> ids, machines;
    for (const auto& [id, older] : known)
        for (const auto& [other, c] : known)
            if (is_older_form_of(older, c)) {
                ids[id] = other;
                machines[id] = older.machine;
            }
    for (const auto& [older, id] : ids) known.erase(older);
    const auto rename = [&](std::string& id) {
        if (const auto at = ids.find(id); at != ids.end()) id = at->second;
    };
    for (history_run& r : lines.runs) {
        if (r.machine.empty() && ids.count(r.run_series)) r.machine = machines[r.run_series];
        rename(r.run_series);
    }
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
    json_reader reader;
    run_series c;
    read_fields(stored_document(reader, json, file, " is no series of a history", series_schema),
                c);
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
            .api = target.api + (target.transport.empty() ? "" : " over " + target.transport),
            .arrivals = load.arrivals,
            .workload = load.sent.workload_text,
            .extent = load.extent,
            .options = load.options,
            .seed = load.seed,
            .trace_hash = load.trace_hash,
            .machine = machine,
            .load = load.values};
}
/// The series of a gate: the properties that a stored baseline must share, and the hardware.
/// Machines with the same hardware share a series.
inline run_series series_of_run(const plan& p, const target_facts& target,
                                const fingerprint& print) {
    run_series s = series_of_load(p.name, definitions_version, target, load_facts_of(p),
                                  print.is_hardware_known() ? "" : print.machine);
    s.server = print.server;
    s.accelerators = print.accelerators;
    s.cpu = print.cpu;
    s.cores = print.cores;
    return s;
}

struct history_entry {
    run_series in{};
    history_run run{};  // the program sets its id and time
    std::string why_not{};
};

/// The statistics that a history keeps of every gate, beside those of its objectives.
inline constexpr std::string_view usual_statistics[] = {"mean(tpot)", "p50(ttft)", "p90(ttft)",
                                                        "p50(e2e)", "output_throughput"};
/// Whether every repeat has a value, of at least that.
inline bool are_kept(const vector<double>& repeats, double least) {
    const auto is_one = [&](double v) { return std::isfinite(v) && v >= least; };
    return !repeats.empty() && all_of(repeats, is_one);
}
/// A statistic's repeats by its name.
using all_repeats = std::map<std::string, vector<double>>;
/// The statistics of objectives, and the usual ones, that have a value in every repeat.
inline vector<named_repeats> values_of_a_run(const vector<slo_verdict>& verdicts, all_repeats of) {
    vector<named_repeats> values;
    constexpr double above_0 = std::numeric_limits<double>::denorm_min();
    const auto add = [&](const std::string& name, double least) {
        vector<double> repeats = std::exchange(of[name], {});
        for (double& v : repeats) v = in_six_digits(v);
        if (are_kept(repeats, least)) values.push_back({name, std::move(repeats)});
    };
    for (const slo_verdict& v : verdicts)
        if (is_difference(v.objective)) add(str(v.objective.statistic.name), 0);
    for (const slo_verdict& v : verdicts)
        if (may_be_relative(v.objective.statistic.metric))
            add(str(v.objective.statistic.name), above_0);
    for (const std::string_view usual : usual_statistics) add(std::string(usual), above_0);
    return values;
}
inline std::string outcome_of_a_run(const vector<slo_verdict>& verdicts) {
    const auto any = [&](verdict v) {
        return any_of(verdicts, [&](const slo_verdict& x) {
            return !x.objective.is_advisory && x.outcome == v;
        });
    };
    return any(verdict::invalid)        ? "invalid"
           : any(verdict::fail)         ? "failed"
           : any(verdict::inconclusive) ? "inconclusive"
                                        : "passed";
}

/// A measured gate as a history takes it, also from a result.json.
struct run_facts {
    bool is_searched = false;
    std::string stopped{};  // why its repeats ended early, "" if they did not
    std::size_t repeats = 0, planned = 0;
    vector<slo_verdict> verdicts{};
};
/// Returns why it is no baseline run, "" if it is one. The verdict does not matter, because slow
/// runs must not be left out. Runs that ended at a clear verdict would bias the level.
inline std::string why_no_run(const run_facts& f) {
    if (f.is_searched) return "a capacity was searched, by another load in each run";
    if (!f.stopped.empty()) return f.stopped;
    for (const slo_verdict& v : f.verdicts) {
        if (v.objective.is_advisory) continue;
        if (v.outcome == verdict::invalid) return "it is invalid: " + str(v.reason);
        const bool is_open = v.outcome == verdict::inconclusive;
        if (is_open && any_of(v.causes, [](const verdict_cause& c) { return c.whose == "client"; }))
            return "it is open: " + str(v.reason);
        if (v.objective.statistic.metric == metric_id::error_rate && !is_difference(v.objective) &&
            v.estimate.value > v.limit)
            return printed("%.3g %% of its requests failed, where %.3g %% may",
                           v.estimate.value * 100, v.limit * 100);
    }
    if (f.repeats < f.planned) return printed("it has %zu of %zu repeats", f.repeats, f.planned);
    return {};
}

inline history_entry history_entry_of(const std::string& gate, const run_facts& facts,
                                      const all_repeats& repeats) {
    history_entry e;
    e.why_not = why_no_run(facts);
    if (!e.why_not.empty()) return e;
    e.run.gate = gate;
    e.run.outcome = outcome_of_a_run(facts.verdicts);
    e.run.values = values_of_a_run(facts.verdicts, repeats);
    for (const slo_verdict& v : facts.verdicts)
        if (!v.objective.at_most && !is_better_if_more(str(v.objective.statistic.name)))
            e.run.more_is_better.push_back(str(v.objective.statistic.name));
    for (const slo_verdict& v : facts.verdicts) {
        const std::string name = str(v.objective.statistic.name);
        const auto is_it = [&](const auto& of) { return of.name == name; };
        const auto is_there = [&](const std::string& of) { return of == name; };
        if (any_of(e.run.values, is_it) && !any_of(e.run.objectives, is_there))
            e.run.objectives.push_back(name);
    }
    if (e.run.values.empty()) e.why_not = "no repeat has a value above 0";
    return e;
}
/// `stopped`: why its repeats ended early, "" if they did not.
inline history_entry history_entry_of(const plan& p, run_series in, const fingerprint& print,
                                      const gate_figures& g,
                                      const vector<slo_verdict>& verdicts,
                                      const std::string& stopped) {
    all_repeats repeats;
    for (const repeat_figures& r : g.candidate.repeats)
        for (std::size_t i = 0; i < g.kept.size(); ++i)
            repeats[str(g.kept[i].name)].push_back(r.statistics[i]);
    history_entry e = history_entry_of(p.name, {p.searches(), stopped, g.candidate.repeats.size(),
                                                static_cast<std::size_t>(p.judged->max_repeats),
                                                verdicts}, repeats);
    e.in = std::move(in);
    e.run.run_series = id_of(e.in);
    e.run.machine = print.machine;
    e.run.watched = watched_facts(print);
    return e;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
