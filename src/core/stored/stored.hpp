// stored results
// A result.json is compared with, records are judged again.
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/field_json.hpp"
#include "core/base/json.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_fields.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/rule.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/expected.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/shard.hpp"
#include "core/traffic/tokens.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/check_slo.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/stored/gate_fields.hpp"

#include <cmath>  // isfinite, isnan
#include <cstdint>  // uint64_t
#include <map>
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One gate of a result.json; its repeats have no records yet.
struct stored_gate {
    std::string name{}, definitions{}, version{};
    std::string fault{};  // why its numbers cannot be used, "" if they can
    target_facts target{}, baseline{};
    load_facts load{};
    measurements seen{};
    judging_parameters judged_by{};
    std::map<std::string, vector<double>> statistics{};  // of the candidate, one a repeat
    plan described{};    // as far as the file has it, without its objectives
};

inline planned_baseline described_baseline(const stored_gate& g, const expected_load& expected) {
    planned_baseline b{g.seen};
    b.has_baseline = expected.has_baseline;
    b.has_stored_baseline = !g.judged_by.stored.file.empty() || g.judged_by.past;
    return b;
}
inline planned_traffic described_traffic(const stored_gate& g, const expected_load& expected) {
    const load_facts& l = g.load;
    planned_traffic t = l.sent;
    t.described = {true, expected.requests, expected.has_turns,
                   expected.has_turns ? expected.first_turns : expected.requests,
                   static_cast<int>(most_of_few),  // no file has it: its requests do
                   l.extent, l.options, l.limits};
    t.arrivals.described = l.arrivals;
    t.seed = parsed_number<std::uint64_t>(l.seed).value_or(0);
    t.hash = l.trace_hash;
    if (g.seen.candidate.empty()) return t;
    const repeat_data& first = g.seen.candidate.front();
    t.labels = first.labels;
    for (const side_task_seen& of : first.side_tasks) t.beside.push_back({.name = of.name});
    return t;
}
/// Returns the plan from which reports describe the load of a stored gate, and which decides the
/// objectives that it can have.
inline plan described_plan(const stored_gate& g, const expected_load& expected) {
    planned_judging j{{}, described_baseline(g, expected)};
    if (!g.seen.candidate.empty()) j.usd_per_hour = g.seen.candidate.front().usd_per_hour;
    plan p;
    p.name = g.name;
    p.nonce = parsed_number<std::uint64_t>(g.load.nonce, 16).value_or(0);
    p.sent = new_shared<const planned_traffic>(described_traffic(g, expected));
    p.judged = new_shared<const planned_judging>(std::move(j));
    return p;
}

/// A repeat without records, and its statistics.
struct stored_repeat {
    repeat_data what{};
    vector<named_number> statistics{};
};
inline stored_repeat read_repeat(const stored_object& described, run_variant variant) {
    stored_repeat r;
    r.what.variant = variant;
    r.what.index = -1;
    odd_counts odd;
    cross_check checked;
    read_fields(described, r.what, odd, checked, r.statistics);
    return r;
}

/// Returns why the numbers of a run cannot be used: it is invalid, or its server failed.
inline std::string fault_of_stored(const stored_object& gate) {
    const bool is_invalid = gate.text("outcome") == "invalid";
    for (const stored_object& s : gate.each("slos")) {
        const bool is_advisory = s.is_true("advisory");
        if (is_invalid && !is_advisory && s.text("verdict") == "invalid")
            return "was invalid: " + s.text("reason");
        const bool is_of_it = s.text("metric") == "error_rate" && !is_advisory;
        if (!is_of_it || s.is_true("difference_to_baseline")) continue;
        const double observed = s.number("estimate", 0, 1), limit = s.number("limit", 0, 1);
        if (observed > limit)
            return printed("had %.3g %% of its requests fail, where %.3g %% may", observed * 100,
                           limit * 100);
    }
    return is_invalid ? "was invalid" : "";
}

/// Returns a gate's name without the number that follows a repeated name, as in "chat (2)".
inline std::string unnumbered(const std::string& name) {
    const std::size_t open = name.rfind(" (");
    const bool is_numbered = open != std::string::npos && name.back() == ')' &&
                             name.find_first_not_of("0123456789", open + 2) == name.size() - 1;
    return is_numbered ? name.substr(0, open) : name;
}
/// Returns the document of a run, or refuses the file.
inline stored_object result_document(json_reader& reader, std::string_view json,
                                     const std::string& file) {
    return stored_document(reader, json, file, " is not a result of this schema",
                           "llmbench/result/2");
}
inline stored_object gate_named(const stored_object& root, const std::string& file,
                                const std::string& name) {
    vector<stored_object> found;
    std::string names;
    const vector<stored_object> gates = root.each("gates");
    for (const stored_object& g : gates) {
        const bool measured = g.text("refusal").empty();
        const std::string other = g.text("name");
        if (measured) names += (names.empty() ? "\"" : ", \"") + other + "\"";
        const bool is_alone =
            gates.size() == 1 && (name.empty() || unnumbered(other) == unnumbered(name));
        if (measured && (other == name || is_alone)) found.push_back(g);
    }
    if (found.size() > 1)
        refuse({file, " has more than one measured gate \"", name,
                "\": only gates with names of their own can be read again"});
    if (found.empty())
        refuse({file, " has no measured gate \"", name, "\": it has ",
                names.empty() ? "none" : names});
    if (found[0].has("rehearsal"))
        refuse({file, ": \"", printable(found[0].text("name"), 200),
                "\" was a rehearsal, which is evidence of no server"});
    return found[0];
}

/// Throws std::invalid_argument if the text does not have the gate.
inline stored_gate read_stored_gate(const std::string& json, const std::string& file,
                                    const std::string& name) {
    json_reader reader;
    const stored_object root = result_document(reader, json, file);
    const stored_object gate = gate_named(root, file, name);
    if (!gate.has("judging")) refuse({file, " does not say how it was judged"});

    stored_gate g;
    g.name = gate.text("name");
    g.definitions = root.text("definitions");
    g.version = root.text("version");
    g.fault = fault_of_stored(gate);
    expected_load expected;
    read_fields(gate.at("target"), g.target);
    if (gate.has("baseline_target")) read_fields(gate.at("baseline_target"), g.baseline);
    read_fields(gate.at("scenario"), g.load);
    read_fields(gate.at("judging"), g.judged_by, static_cast<load_conditions&>(g.seen), expected);
    g.judged_by.rule.half_fail_z = half_fail_z_of(g.judged_by.rule);
    for (const run_variant variant : {run_variant::candidate, run_variant::baseline}) {
        repeat_list& repeats = g.seen.variant(variant);
        const vector<stored_object> described = gate.at(to_string(variant)).each("repeats");
        if (as_number(described.size()) > max_repeats_of_a_gate)
            refuse({file, printed(" has %zu repeats of \"", described.size()), g.name,
                    printed("\", up to %.0f are allowed", max_repeats_of_a_gate)});
        for (const stored_object& one : described) {
            stored_repeat r = read_repeat(one, variant);
            repeats.push_back(std::move(r.what));
            if (variant == run_variant::baseline) continue;
            for (const named_number& n : r.statistics) g.statistics[n.name].push_back(n.value);
        }
    }
    g.described = described_plan(g, expected);
    return g;
}

inline void fields_of(field_visitor& v, past_slo& s) {
    std::string side;
    v.text({"slo"}, s.slo);
    v.text({"metric"}, s.metric);
    v.text({"of"}, s.of);
    v.choice({"verdict"}, s.outcome, verdict::skipped);
    v.flag({"advisory"}, s.advisory);
    v.text({"side"}, side);
    s.at_most = side != "at_least";
    v.flag({"relative_to_baseline"}, s.relative);
    if (v.has("difference_to_baseline", s.difference))
        v.flag({"difference_to_baseline"}, s.difference);
    v.number({"measured"}, s.measured, any_number);
    v.number({"estimate"}, s.estimate.value, any_number);
    s.estimate.low = s.estimate.high = not_a_number;
    v.interval({"interval"}, s.estimate.low, s.estimate.high);
    v.number({"limit"}, s.limit, any_number);
    v.text({"reason"}, s.reason);
}
/// Returns a run for later readers. Throws std::invalid_argument if the text is none.
inline past_result read_past_result(const std::string& json, const std::string& file) {
    json_reader reader;
    const stored_object root = result_document(reader, json, file), by = root.at("environment");
    past_result run{by.text("started_at"), by.text("commit"), by.text("cpu"), {}};
    for (const stored_object& g : root.each("gates")) {
        if (g.has("rehearsal")) continue;  // it measured nothing
        past_gate gate{g.text("name"), g.text("outcome"), g.at("target").text("model"),
                       g.at("scenario").text("arrivals"), {}};
        for (const stored_object& s : g.each("slos")) {
            past_slo slo;
            read_fields(s, slo);
            gate.slos.push_back(slo);
        }
        run.gates.push_back(gate);
    }
    return run;
}

inline void check_is_whole(const stored_gate& g, const std::string& file) {
    if (!g.load.shard.is_whole())
        refuse({file, ": of \"", g.name, "\" ", shard_text(g.load.shard)});
}
inline void check_same(const std::string& of, const char* field, const std::string& was,
                       const std::string& is) {
    if (was != is)
        refuse({of, " and does not compare: its ", field, " is \"", printable(was),
                "\" and this gate's is \"", is, "\""});
}
inline void check_same_target(const std::string& of, const target_facts& was,
                              const target_facts& is) {
    check_same(of, "model", was.model, is.model);
    check_same(of, "api", was.api, is.api);
    check_same(of, "transport", was.transport, is.transport);
}
inline void check_same_load(const std::string& of, const load_facts& was, const load_facts& is) {
    // The description of a load may change, its values may not. Older files have no values.
    if (was.values.empty() || was.values != is.values) {
        check_same(of, "arrivals", was.arrivals, is.arrivals);
        check_same(of, "workload", was.sent.workload_text, is.sent.workload_text);
        check_same(of, "extent", was.extent, is.extent);
        check_same(of, "options", was.options, is.options);
    }
    check_same(of, "seed", was.seed, is.seed);
    check_same(of, "trace hash", was.trace_hash, is.trace_hash);
    if (!was.values.empty()) check_same(of, "load hash", was.values, is.values);
}
inline void check_is_usable(const std::string& of, const stored_gate& old) {
    if (!old.fault.empty()) refuse({of, ": that run ", old.fault, "; write it again"});
    if (!old.load.shard.is_whole()) refuse({of, ": of that run ", shard_text(old.load.shard)});
}
inline void check_has_values(const std::string& of, const stored_gate& old,
                             const vector<slo>& slos) {
    for (const slo& s : slos) {
        if (is_absolute(s)) continue;
        const auto at = old.statistics.find(str(s.statistic.name));
        const bool is_counted = !may_be_relative(s.statistic.metric);
        bool usable = at != old.statistics.end() && !at->second.empty();
        if (usable)
            for (const double v : at->second)
                usable = usable && std::isfinite(v) && (v > 0 || is_difference(s));
        if (is_counted) usable = usable && !counts_kept(old.statistics, s.statistic).empty();
        if (!usable)
            refuse({of, ": it has no ", is_counted ? "counts" : "value", " of ",
                    str(s.statistic.name), " in every repeat, write it again"});
    }
}
/// Throws std::invalid_argument if the stored run was of another kind than `what` on `target`.
inline void check_comparable(const stored_gate& old, const std::string& file, const plan& what,
                             const target_facts& target) {
    const std::string of = "baseline is stored(\"" + file + "\")";
    check_is_usable(of, old);
    check_same(of, "definitions version", old.definitions, definitions_version);
    check_same_target(of, old.target, target);
    check_same_load(of, old.load, load_facts_of(what));
    check_has_values(of, old, what.judged->slos);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
