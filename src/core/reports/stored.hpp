// stored results
// What earlier runs left: a result.json to be compared with, records to be judged again.
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/traffic.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/measured/blind.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/rule.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/check_slo.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/plan_words.hpp"
#include "core/traffic/target_facts.hpp"
#include "core/traffic/tokens.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/ranks_json.hpp"
#include "core/reports/server_word_json.hpp"

#include <algorithm>  // min, max
#include <cmath>  // fabs, floor, isfinite
#include <cstdint>  // uint64_t
#include <map>
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // pair
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One gate of a result.json; the repeats have no records yet.
struct stored_gate {
    std::string name{}, model{}, api{}, workload{}, arrivals{}, extent{}, options{}, seed{};
    std::string trace_hash{}, definitions{};
    std::string fault{};  // why it says nothing of its server, "" where it does
    slo_context context{};  // its own objectives are not read again
    evidence seen{};
    terms held{};
    std::map<std::string, std::vector<double>> statistics{};  // of the candidate, one a repeat
    double carried = 0;  // the highest load that a search showed, 0: none
    // Of a shard, what the other ones must have, too.
    std::size_t shard = 0, shards = 1;
    std::string nonce{}, limits{}, version{}, url{}, sent_as_given{};
    plan told{};  // the load, as far as the file tells it
};

/// The load of a stored gate in the form that reports tell it from.
inline plan told_plan(const picojson::value& scenario, const stored_gate& g) {
    plan p;
    p.told = {true, g.context.requests, g.extent, g.options, g.limits};
    p.name = g.name;
    p.arrivals.told = g.arrivals;
    const std::string kind = string_member(scenario, "arrival_kind");
    for (int k = 0; k <= static_cast<int>(arrival_kind::closed_loop); ++k)
        if (kind == arrival_name(static_cast<arrival_kind>(k)))
            p.arrivals.kind = static_cast<arrival_kind>(k);
    p.arrivals.rate = number_member(scenario, "offered_rate");
    p.arrivals.users = large_count(scenario, "users");
    p.arrivals.max_in_flight = large_count(scenario, "max_in_flight");
    p.requests = large_count(scenario, "requests");
    p.duration_s = number_member(scenario, "duration_s");
    p.warmup_requests = large_count(scenario, "warmup_requests");
    p.warmup_s = number_member(scenario, "warmup_s");
    p.seed = parsed_number<std::uint64_t>(g.seed).value_or(0);
    p.hash = g.trace_hash;
    p.nonce = parsed_number<std::uint64_t>(g.nonce, 16).value_or(0);
    p.workload_text = g.workload;
    p.sent_as_given = g.sent_as_given;
    p.common.stream = g.context.streams;
    return p;
}

inline repeat_data read_repeat(const picojson::value& v, run_arm arm) {
    repeat_data d;
    d.arm = arm;
    d.index = count_member(v, "index");
    if (member(v, "load")) {
        d.load = number_member(v, "load");
        d.disturbed = string_member(v, "disturbed");
        const std::string part = string_member(v, "part");
        for (int k = 0; k <= static_cast<int>(probe_of::compared); ++k)
            if (part == to_string(static_cast<probe_of>(k))) d.part = static_cast<probe_of>(k);
    }
    d.asked_rate = number_member(v, "asked_rate");
    d.achieved_rate = number_member(v, "achieved_rate");
    d.connections_opened = count_member(v, "connections_opened");
    for (const auto& [name, into] : {std::pair{"handshakes_full", &d.handshakes_full},
                                     std::pair{"handshakes_resumed", &d.handshakes_resumed}})
        if (const picojson::value* h = member(v, name))
            *into = {large_count(*h, "count"), number_member(*h, "mean_s"),
                     number_member(*h, "max_s")};
    d.content_events = large_count(v, "content_events");
    d.coalesced_events = large_count(v, "coalesced_events");
    d.cpu_share = number_member(v, "cpu_share");
    d.startup_s = number_member(v, "startup_s");
    d.loop_lag_p99 = number_member(v, "loop_lag_p99");
    d.loop_lag_max = number_member(v, "loop_lag_max");
    d.stamp_lag_p99 = number_member(v, "stamp_lag_p99");
    d.stamp_lag_max = number_member(v, "stamp_lag_max");
    d.target_gone = string_member(v, "target_gone");
    d.interrupted = true_member(v, "interrupted");
    d.short_outputs = large_count(v, "short_outputs");
    d.long_outputs = large_count(v, "long_outputs");
    d.resends = large_count(v, "resends");
    d.hang_ups = large_count(v, "hang_ups");
    d.used_once = true_member(v, "used_once");
    if (number_member(v, "shared_tokens") >= 0)  // else nothing is known of them
        d.shared_tokens = large_count(v, "shared_tokens");
    d.gaps_counted = true_member(v, "gaps_counted");
    return d;
}

/// Files of older versions have none.
inline blind_stretches read_blind(const picojson::value& v, long long window_from_ns) {
    blind_stretches all;
    const picojson::array& numbers = array_member(v, "blind");
    const auto whole = [&](std::size_t i) {
        const double x = number_in(numbers[i]);
        return std::fabs(x) < 9e15 ? static_cast<long long>(x) : 0;
    };
    for (std::size_t i = 0; i + 3 < numbers.size(); i += 4)
        all.push_back({window_from_ns + whole(i), window_from_ns + whole(i + 1), whole(i + 2),
                       whole(i + 3)});
    return all;
}

inline void read_judging(const picojson::value& v, stored_gate& g) {
    judging_rule& rule = g.held.rule;
    rule.traffic = string_member(v, "traffic") == "fresh" ? fresh : replayed;
    rule.looks = count_member(v, "looks");
    rule.most = count_member(v, "most");
    rule.pass_level = number_member(v, "false_pass");
    rule.fail_level = number_member(v, "false_fail");
    rule.pass_z = number_member(v, "pass_z");
    if (member(v, "alone_z")) rule.alone_z = number_member(v, "alone_z");
    rule.trusts_belief = true_member(v, "trusts_belief");
    rule.fail_z = number_member(v, "fail_z");
    rule.holm = true_member(v, "holm");
    g.seen.arrival_cv2 = number_member(v, "arrival_cv2");
    g.seen.short_outputs_expected = true_member(v, "short_outputs_expected");
    g.seen.spins = true_member(v, "spin");
    if (member(v, "most_skew_s")) g.seen.most_skew_s = number_member(v, "most_skew_s");
    if (std::isnan(g.seen.most_skew_s)) g.seen.most_skew_s = infinity;
    g.seen.stopped = string_member(v, "stopped");
    if (const picojson::value* noise = member(v, "calibrated_sd");
        noise && noise->is<picojson::object>())
        for (const auto& [name, sd] : noise->get<picojson::object>())
            if (sd.is<double>()) g.held.noise[name] = sd.get<double>();
    g.held.noise_file = string_member(v, "calibration");
    if (const picojson::value* stored = member(v, "stored_baseline")) {
        g.held.stored.file = string_member(*stored, "file");
        g.held.stored.day_sd = number_member(*stored, "day_to_day_sd");
        if (member(*stored, "carried")) g.held.stored.carried = number_member(*stored, "carried");
        g.held.stored.values = lists_of(member(*stored, "statistics"));
    }
    require(rule.looks > 0 && rule.looks <= 100 && rule.most > 0 && rule.pass_z > 0 &&
                rule.fail_z > 0 && rule.pass_level > 0 && rule.fail_level > 0,
            "the result does not say how \"" + g.name + "\" was judged");
    rule.half_fail_z = half_fail_z_of(rule.looks, rule.fail_level);
    g.context.rule = rule;
    g.context.most_repeats = rule.most;
    g.context.has_baseline = true_member(v, "paired") || !g.held.stored.file.empty();
    g.context.requests = std::max(0, count_member(v, "expected_requests"));
    g.context.first_turns = g.context.requests;
}

/// Why the verdicts of a run say that its numbers are none, or those of a server that failed.
inline std::string fault_of_stored(const picojson::value& gate) {
    const bool is_invalid = string_member(gate, "outcome") == "invalid";
    for (const picojson::value& s : array_member(gate, "slos")) {
        const std::string outcome = string_member(s, "verdict");
        const std::string reason = string_member(s, "reason");
        const bool is_advisory = true_member(s, "advisory");
        if (is_invalid && !is_advisory && outcome == "invalid") return "was invalid: " + reason;
        const double observed = number_member(s, "estimate"), limit = number_member(s, "limit");
        if (string_member(s, "metric") == "error_rate" && !is_advisory && observed > limit)
            return printed("had %.3g %% of its requests fail, where %.3g %% may", observed * 100,
                           limit * 100);
    }
    return is_invalid ? "was invalid" : "";
}

inline void read_scenario(const picojson::value& scenario, stored_gate& g) {
    g.workload = string_member(scenario, "workload");
    g.arrivals = string_member(scenario, "arrivals");
    g.extent = string_member(scenario, "extent");
    g.options = string_member(scenario, "options");
    const picojson::value* stream = member(scenario, "stream");
    g.context.streams = !stream || stream->evaluate_as_boolean();
    g.seed = string_member(scenario, "seed_text");
    g.trace_hash = string_member(scenario, "trace_hash");
    g.nonce = string_member(scenario, "nonce");
    g.limits = string_member(scenario, "limits");
    g.sent_as_given = string_member(scenario, "sent_as_given");
    if (const picojson::value* shard = member(scenario, "shard")) {
        g.shard = static_cast<std::size_t>(large_count(*shard, "index"));
        g.shards = static_cast<std::size_t>(large_count(*shard, "count"));
    }
    g.context.arrivals = g.arrivals;
    const std::string kind = string_member(scenario, "arrival_kind");
    g.context.in_users = kind == arrival_name(arrival_kind::closed_loop);
    for (int k = 0; k <= static_cast<int>(arrival_kind::closed_loop); ++k)
        if (kind == arrival_name(static_cast<arrival_kind>(k)))
            g.context.saturates = saturates(static_cast<arrival_kind>(k));
}

/// Throws std::invalid_argument with the reason where the text holds no such gate.
/// A gate's name without the number that tells it from another one of that name: "chat (2)".
inline std::string unnumbered(const std::string& name) {
    const std::size_t open = name.rfind(" (");
    const bool is_numbered = open != std::string::npos && name.back() == ')' &&
                             name.find_first_not_of("0123456789", open + 2) == name.size() - 1;
    return is_numbered ? name.substr(0, open) : name;
}
inline stored_gate read_stored_gate(const std::string& json, const std::string& file,
                                    const std::string& name) {
    picojson::value root;
    require(parse_json(json, root) && string_member(root, "schema") == "llmbench/result/1",
            file + " is not a result of this schema (llmbench/result/1)");
    const std::vector<long long> from = whole_numbers(json, "window_from_ns");
    const std::vector<long long> to = whole_numbers(json, "window_to_ns");
    const picojson::value* found = nullptr;
    std::size_t repeats_before = 0, repeats_seen = 0, matches = 0;
    std::string names;
    const picojson::array& gates = array_member(root, "gates");
    for (const picojson::value& g : gates) {
        const bool measured = string_member(g, "refusal").empty();
        if (measured) names += (names.empty() ? "\"" : ", \"") + string_member(g, "name") + "\"";
        const std::string other = string_member(g, "name");
        const bool is_alone =
            gates.size() == 1 && (name.empty() || unnumbered(other) == unnumbered(name));
        if (measured && (other == name || is_alone)) {
            ++matches;
            found = &g;
            repeats_before = repeats_seen;
        }
        for (const char* arm : {"candidate", "baseline"})
            if (const picojson::value* a = member(g, arm))
                repeats_seen += array_member(*a, "repeats").size();
    }
    require(matches < 2, file + " has more than one measured gate \"" + name +
                             "\": only gates with names of their own can be read again");
    require(matches == 1, file + " has no measured gate \"" + name + "\": it has " +
                              (names.empty() ? "none" : names));
    require(member(*found, "judging") != nullptr, file + " does not say how it was judged");

    stored_gate g;
    g.name = string_member(*found, "name");
    g.definitions = string_member(root, "definitions");
    g.version = string_member(root, "version");
    g.fault = fault_of_stored(*found);
    if (const picojson::value* t = member(*found, "target")) {
        g.model = string_member(*t, "model");
        g.url = string_member(*t, "url");
        g.api = string_member(*t, "api");
    }
    if (const picojson::value* s = member(*found, "scenario")) read_scenario(*s, g);
    if (const picojson::value* c = member(*found, "capacity"))
        g.carried = number_member(*c, "low");
    read_judging(*member(*found, "judging"), g);
    if (const picojson::value* s = member(*found, "scenario")) g.told = told_plan(*s, g);
    for (const run_arm arm : {run_arm::candidate, run_arm::baseline}) {
        const picojson::value* a = member(*found, to_string(arm));
        if (!a) continue;
        auto& repeats = arm == run_arm::candidate ? g.seen.candidate : g.seen.baseline;
        for (const picojson::value& r : array_member(*a, "repeats")) {
            repeats.push_back(read_repeat(r, arm));
            require(repeats_before < from.size() && repeats_before < to.size(),
                    file + ": a repeat has no window");
            repeats.back().window =
                time_interval::between(from[repeats_before], to[repeats_before]);
            ++repeats_before;
            repeats.back().blind = read_blind(r, repeats.back().window.from_ns());
            repeats.back().server = read_server_word(r, repeats.back().window.from_ns());
            repeats.back().ranks = read_ranks(r, repeats.back().window.from_ns());
            const picojson::value* values = member(r, "statistics");
            if (arm == run_arm::baseline || !values || !values->is<picojson::object>()) continue;
            for (const auto& [statistic, v] : values->get<picojson::object>())
                g.statistics[statistic].push_back(number_in(v));
        }
    }
    return g;
}

/// What a later reader sees of a whole run. Throws std::invalid_argument where the text is none.
inline past_result read_past_result(const std::string& json, const std::string& file) {
    picojson::value root;
    require(parse_json(json, root) && string_member(root, "schema") == "llmbench/result/1",
            file + " is not a result of this schema (llmbench/result/1)");
    past_result run;
    if (const picojson::value* e = member(root, "environment")) {
        run.started_at = string_member(*e, "started_at");
        run.commit = string_member(*e, "commit");
        run.cpu = string_member(*e, "cpu");
    }
    for (const picojson::value& g : array_member(root, "gates")) {
        past_gate gate;
        gate.name = string_member(g, "name");
        gate.outcome = string_member(g, "outcome");
        if (const picojson::value* t = member(g, "target")) gate.model = string_member(*t, "model");
        if (const picojson::value* s = member(g, "scenario"))
            gate.arrivals = string_member(*s, "arrivals");
        for (const picojson::value& s : array_member(g, "slos")) {
            past_slo slo;
            slo.slo = string_member(s, "slo");
            slo.metric = string_member(s, "metric");
            const std::string outcome = string_member(s, "verdict");
            for (int k = 0; k <= static_cast<int>(verdict::skipped); ++k)
                if (outcome == to_string(static_cast<verdict>(k)))
                    slo.outcome = static_cast<verdict>(k);
            slo.advisory = true_member(s, "advisory");
            const std::string text = str(slo.slo);  // a goodput has sides of its own in front
            const std::size_t side = std::min(text.rfind("= "), text.size());
            slo.at_most = side == text.size() || side == 0 || text[side - 1] == '<';
            slo.relative = true_member(s, "relative_to_baseline");
            slo.measured = number_member(s, "measured");
            slo.estimate = {number_member(s, "estimate"), not_a_number, not_a_number};
            const picojson::array& interval = array_member(s, "interval");
            const auto end_of = [&](std::size_t i) {
                const bool known = i < interval.size() && interval[i].is<double>();
                return known ? interval[i].get<double>() : not_a_number;
            };
            slo.estimate.low = end_of(0);
            slo.estimate.high = end_of(1);
            slo.limit = number_member(s, "limit");
            slo.reason = string_member(s, "reason");
            gate.slos.push_back(slo);
        }
        run.gates.push_back(gate);
    }
    return run;
}

/// Throws std::invalid_argument where the stored run was of another kind. `what` is planned,
/// `target` answers.
inline void check_comparable(const stored_gate& old, const std::string& file, const plan& what,
                             const target_facts& target) {
    const auto same = [&](const char* field, const std::string& was, const std::string& is) {
        require(was == is, "baseline is stored(\"" + file + "\") and does not compare: its " +
                               field + " is \"" + printable(was) +
                               "\" and this gate's is \"" + is + "\"");
    };
    require(old.fault.empty(), "baseline is stored(\"" + file + "\"): that run " + old.fault +
                                   "; write it again");
    same("traffic", old.held.rule.traffic == fresh ? "fresh" : "replayed", "replayed");
    same("definitions version", old.definitions, definitions_version);
    same("model", old.model, target.model);
    same("api", old.api, target.api);
    same("arrivals", old.arrivals, arrival_text(what.arrivals));
    same("workload", old.workload, what.workload_text);
    same("extent", old.extent, extent_text(what));
    same("options", old.options, options_text(what));
    same("seed", old.seed, std::to_string(what.seed));
    same("trace hash", old.trace_hash, trace_hash(what));
    for (const slo& s : what.slos) {
        if (s.factor == 0) continue;
        if (is_capacity(s.what.metric)) {
            require(old.carried > 0, "baseline is stored(\"" + file + "\"): it shows no load to be "
                                     "carried, write it again");
            continue;
        }
        const auto at = old.statistics.find(str(s.what.name));
        bool usable = at != old.statistics.end() && !at->second.empty();
        if (usable)
            for (const double v : at->second) usable = usable && std::isfinite(v) && v > 0;
        require(usable, "baseline is stored(\"" + file + "\"): it has no value of " +
                            str(s.what.name) + " in every repeat, write it again");
    }
}

/// More than this between repeats of one server is no noise that limits could be held under.
inline constexpr double most_calibrated_sd = 0.30;

/// The noise of a gate's statistics from a calibration.json, empty where it does not have the gate.
/// Throws std::invalid_argument for what can be none.
inline std::map<std::string, double> read_calibration(const std::string& json,
                                                      const std::string& file,
                                                      const std::string& gate) {
    picojson::value root;
    require(parse_json(json, root) && string_member(root, "schema") == "llmbench/calibration/1",
            "LLMBENCH_CALIBRATION: " + file + " is not a calibration (llmbench/calibration/1)");
    std::map<std::string, double> noise;
    for (const picojson::value& g : array_member(root, "gates"))
        if (string_member(g, "name") == gate)
            for (const picojson::value& s : array_member(g, "slos")) {
                const picojson::value* told = member(s, "sd");
                if (!told || told->is<picojson::null>()) continue;  // shares have none
                const double sd = number_member(s, "sd");
                const std::string statistic = string_member(s, "statistic");
                require(sd >= 0 && sd <= most_calibrated_sd,
                        "LLMBENCH_CALIBRATION: " + file + " has for " + printable(statistic, 200) +
                            " of \"" + gate + "\" a noise of " +
                            (std::isnan(sd) ? printable(told->to_str(), 40)
                                            : printed("%.3g %%", sd * 100)) +
                            printed(": it runs from 0 to %g %%, calibrate again on a quieter "
                                    "machine",
                                    most_calibrated_sd * 100));
                noise[statistic] = sd;
            }
    return noise;
}

/// One line of records.jsonl, and the gate it belongs to. Throws std::invalid_argument.
inline record read_record(const std::string& line, std::string& gate) {
    picojson::value v;
    require(parse_json(line, v) && v.is<picojson::object>(), "it is not a JSON object");
    const auto whole_of = [&](const char* key, double most) {
        const picojson::value* m = member(v, key);
        const double told = m && m->is<double>() ? m->get<double>() : not_a_number;
        if (std::fabs(told) <= std::min(most, 9e15) && std::floor(told) == told)
            return static_cast<long long>(told);  // which a double holds as it is
        const std::vector<long long> found = whole_numbers(line, key);
        const bool is_null = m && m->is<picojson::null>();
        const bool is_whole = found.size() == 1 && std::fabs(told) <= most;
        require(m != nullptr, std::string("it has no field ") + key);
        require(is_null || is_whole, std::string(key) + " is no whole number that fits");
        return is_null ? 0 : found[0];
    };
    const auto one_of = [&](const char* key, auto last) {
        const std::string given = string_member(v, key);
        for (int k = 0; k <= static_cast<int>(last); ++k)
            if (given == to_string(static_cast<decltype(last)>(k)))
                return static_cast<decltype(last)>(k);
        throw std::invalid_argument(std::string(key) + " is \"" + printable(given, 40) + "\"");
    };
    record r;
    const picojson::value* name = member(v, "gate");
    require(name && name->is<std::string>(), "it has no field gate");
    gate = name->get<std::string>();
    r.id = string_member(v, "id");
    r.arm = one_of("arm", run_arm::baseline);
    r.phase = one_of("phase", run_phase::measure);
    r.status = one_of("status", request_status::unsent);
    r.token_source = one_of("token_source", token_origin::events);
    for (const auto& [key, into] :
         {std::pair{"scheduled_ns", &r.scheduled_ns}, std::pair{"dispatched_ns", &r.dispatched_ns},
          std::pair{"connected_ns", &r.connected_ns}, std::pair{"sent_ns", &r.sent_ns},
          std::pair{"first_token_ns", &r.first_token_ns},
          std::pair{"last_token_ns", &r.last_token_ns}, std::pair{"end_ns", &r.end_ns},
          std::pair{"late_ns", &r.late_ns}})
        *into = whole_of(key, 9e18);
    for (const auto& [key, into] :
         {std::pair{"repeat", &r.repeat}, std::pair{"prompt_tokens", &r.prompt_tokens},
          std::pair{"output_tokens", &r.output_tokens}, std::pair{"events", &r.events},
          std::pair{"first_event_tokens", &r.first_event_tokens},
          std::pair{"http_status", &r.http_status}})
        *into = static_cast<int>(whole_of(key, 2e9));
    for (const auto& [key, into] :
         {std::pair{"finish_reason", &r.finish_reason}, std::pair{"error", &r.error}}) {
        const std::string words = string_member(v, key);
        *into = printable(words, 4 * words.size() + 4);
    }
    // Files of older versions end here.
    for (const auto& [key, into] : {std::pair{"cached_tokens", &r.cached_tokens},
                                    std::pair{"reasoning_tokens", &r.reasoning_tokens}}) {
        const picojson::value* told = member(v, key);
        if (told && !told->is<picojson::null>()) *into = static_cast<int>(whole_of(key, 2e9));
    }
    if (const picojson::value* hidden = member(v, "hidden_tokens"))
        r.hidden_tokens = hidden->is<picojson::null>()
                              ? -1
                              : static_cast<int>(whole_of("hidden_tokens", 2e9));
    for (const auto& [key, into] : {std::pair{"second_token_ns", &r.second_token_ns},
                                    std::pair{"first_answer_ns", &r.first_answer_ns}})
        if (member(v, key)) *into = whole_of(key, 9e18);
    if (member(v, "conversation")) r.conversation = whole_of("conversation", 9e18);
    for (const auto& [key, into] :
         {std::pair{"turn", &r.turn}, std::pair{"reads", &r.reads},
          std::pair{"first_read_events", &r.first_read_events},
          std::pair{"text_bytes", &r.text_bytes},
          std::pair{"most_prompt_tokens", &r.most_prompt_tokens}, std::pair{"choices", &r.choices},
          std::pair{"resends", &r.resends}})
        if (member(v, key)) *into = static_cast<int>(whole_of(key, 2e9));
    return r;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
