// stored results
// What earlier runs left: a result.json to be compared with, records to be judged again.
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/traffic.hpp"
#include "core/base/checked_json.hpp"
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
#include "core/traffic/share.hpp"
#include "core/traffic/target_facts.hpp"
#include "core/traffic/tokens.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/ranks_json.hpp"
#include "core/reports/server_word_json.hpp"
#include "core/reports/stored_record.hpp"

#include <algorithm>  // min
#include <cmath>  // isfinite, isnan
#include <cstdint>  // uint64_t
#include <map>
#include <optional>
#include <string>
#include <string_view>
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

/// The windows of a document's repeats, digit by digit, in its order.
class stored_windows {
public:
    explicit stored_windows(std::string_view json)
        : from_(whole_numbers(json, "window_from_ns")), to_(whole_numbers(json, "window_to_ns")) {}
    std::optional<long long> from(std::size_t i) const { return at(from_, i); }
    std::optional<long long> to(std::size_t i) const { return at(to_, i); }

private:
    using all_digits = std::vector<std::optional<long long>>;
    static std::optional<long long> at(const all_digits& all, std::size_t i) {
        return i < all.size() ? all[i] : std::nullopt;
    }
    all_digits from_, to_;
};

inline constexpr std::size_t most_repeats_of_a_gate = 1000;  // probes of a search included
inline constexpr double most_rate = 1e12;      // of requests, per second
inline constexpr double most_quantile = 1000;  // of any distribution that verdicts are read off
inline constexpr double most_statistic = 1e100;  // a server may say what it likes of itself

/// The values of each statistic: one, or a list.
inline std::map<std::string, std::vector<double>> read_statistics(const checked_object& of,
                                                                  double most = most_statistic) {
    std::map<std::string, std::vector<double>> all;
    if (!of.value().is<picojson::object>()) return all;
    for (const auto& [name, told] : of.value().get<picojson::object>()) {
        std::vector<double>& values = all[name];
        const auto keep = [&](std::size_t, double v) { values.push_back(v); };
        if (told.is<picojson::array>()) of.numbers(name.c_str(), -most, most, keep);
        else keep(0, of.number(name.c_str(), -most, most));
    }
    return all;
}

/// The load of a stored gate in the form that reports tell it from.
inline plan told_plan(const checked_object& scenario, const stored_gate& g) {
    plan p;
    p.told = {true, g.context.requests, g.context.has_turns, g.context.first_turns, g.extent,
              g.options, g.limits};
    p.name = g.name;
    p.arrivals.told = g.arrivals;
    const std::string kind = scenario.text("arrival_kind");
    for (int k = 0; k <= static_cast<int>(arrival_kind::closed_loop); ++k)
        if (kind == arrival_name(static_cast<arrival_kind>(k)))
            p.arrivals.kind = static_cast<arrival_kind>(k);
    p.arrivals.rate = scenario.number("offered_rate", 0, most_rate, 0);
    p.arrivals.users = scenario.count("users");
    p.arrivals.max_in_flight = scenario.count("max_in_flight");
    p.requests = scenario.count("requests");
    p.duration_s = scenario.seconds("duration_s", 0);
    p.warmup_requests = scenario.count("warmup_requests");
    p.warmup_s = scenario.seconds("warmup_s", 0);
    p.seed = parsed_number<std::uint64_t>(g.seed).value_or(0);
    p.hash = g.trace_hash;
    p.nonce = parsed_number<std::uint64_t>(g.nonce, 16).value_or(0);
    p.workload_text = g.workload;
    p.sent_as_given = g.sent_as_given;
    p.common.stream = g.context.streams;
    p.scores = g.context.scores;
    return p;
}

inline handshakes_t read_handshakes(const checked_object& h) {
    return {h.count("count"), h.seconds("mean_s", 0), h.seconds("max_s", 0)};
}
/// Without its records and the times that a double may not hold.
inline repeat_data read_repeat(const checked_object& v, run_arm arm) {
    repeat_data d;
    d.arm = arm;
    d.index = v.whole("index", 0, most_turns, -1);
    if (v.has("load")) {
        d.load = v.number("load", 0, most_rate);
        d.disturbed = v.text("disturbed");
        const std::string part = v.text("part");
        for (int k = 0; k <= static_cast<int>(probe_of::compared); ++k)
            if (part == to_string(static_cast<probe_of>(k))) d.part = static_cast<probe_of>(k);
    }
    d.asked_rate = v.number("asked_rate", 0, most_rate, 0);
    d.achieved_rate = v.number("achieved_rate", 0, most_rate, 0);
    d.connections_opened = v.count("connections_opened");
    d.handshakes_full = read_handshakes(v.at("handshakes_full"));
    d.handshakes_resumed = read_handshakes(v.at("handshakes_resumed"));
    d.content_events = v.count("content_events");
    d.coalesced_events = v.count("coalesced_events");
    d.cpu_share = v.number("cpu_share", 0, most_turns);
    v.numbers("thread_cpu_shares", 0, most_turns,
              [&](std::size_t, double share) { d.thread_cpu_shares.push_back(share); });
    d.startup_s = v.seconds("startup_s");
    d.loop_lag_p99 = v.seconds("loop_lag_p99");
    d.loop_lag_max = v.seconds("loop_lag_max");
    d.stamp_lag_p99 = v.seconds("stamp_lag_p99");
    d.stamp_lag_max = v.seconds("stamp_lag_max");
    d.target_gone = v.text("target_gone");
    d.interrupted = v.is_true("interrupted");
    d.short_outputs = v.count("short_outputs");
    d.long_outputs = v.count("long_outputs");
    d.resends = v.count("resends");
    d.hang_ups = v.count("hang_ups");
    d.used_once = v.is_true("used_once");
    d.shared_tokens = v.whole("shared_tokens", -1, most_count, -1ll);
    d.gaps_counted = v.is_true("gaps_counted");
    return d;
}

/// Files of older versions have none. Each is four numbers.
inline blind_stretches read_blind(const checked_object& v, long long window_from_ns) {
    blind_stretches all;
    long long four[4] = {};
    v.numbers("blind", -latest_time_ns, latest_time_ns, [&](std::size_t i, double ns) {
        four[i % 4] = std::isnan(ns) ? 0 : static_cast<long long>(ns);
        if (i % 4 == 3)
            all.push_back({window_from_ns + four[0], window_from_ns + four[1], four[2], four[3]});
    });
    return all;
}
/// What is told by times of the clock; its window is the one at `place`.
inline void read_times(const checked_object& v, repeat_data& d, const stored_windows& all,
                       std::size_t place) {
    const auto from = v.exact("window_from_ns", latest_time_ns, [&] { return all.from(place); });
    const auto to = v.exact("window_to_ns", latest_time_ns, [&] { return all.to(place); });
    if (to < from) v.refuse("window_to_ns", "a window ends after it began");
    d.window = time_interval::between(from, to);
    d.blind = read_blind(v, d.window.from_ns());
    d.ranks = read_ranks(v, d.window.from_ns());
}

inline void read_stored_baseline(const checked_object& stored, stored_baseline& to) {
    to.file = stored.text("file");
    to.day_sd = stored.number("day_to_day_sd", 0, 1, to.day_sd);
    to.carried = stored.number("carried", 0, most_rate, to.carried);
    to.values = read_statistics(stored.at("statistics"));
}
inline void read_judging(const checked_object& v, stored_gate& g) {
    judging_rule& rule = g.held.rule;
    rule.traffic = v.text("traffic") == "fresh" ? fresh : replayed;
    rule.looks = v.whole("looks", 1, 100, 0);
    rule.most = v.whole("most", 1, most_turns, 0);
    rule.pass_level = v.number("false_pass", 0, 1);
    rule.fail_level = v.number("false_fail", 0, 1);
    rule.pass_z = v.number("pass_z", 0, most_quantile);
    rule.alone_z = v.number("alone_z", 0, most_quantile, rule.alone_z);
    rule.trusts_belief = v.is_true("trusts_belief");
    rule.fail_z = v.number("fail_z", 0, most_quantile);
    rule.holm = v.is_true("holm");
    g.seen.arrival_cv2 = v.number("arrival_cv2", 0, most_count);
    g.seen.short_outputs_expected = v.is_true("short_outputs_expected");
    g.seen.spins = v.is_true("spin");
    g.seen.most_skew_s = v.seconds("most_skew_s", infinity);
    g.seen.stopped = v.text("stopped");
    for (const auto& [name, sd] : read_statistics(v.at("calibrated_sd"), 1))
        if (!sd.empty() && !std::isnan(sd[0])) g.held.noise[name] = sd[0];
    g.held.noise_file = v.text("calibration");
    if (v.has("stored_baseline")) read_stored_baseline(v.at("stored_baseline"), g.held.stored);
    for (const char* name : {"looks", "most", "false_pass", "false_fail", "pass_z", "fail_z"})
        if (!(v.number(name, 0, most_quantile) > 0)) v.refuse(name, "a number above 0 is allowed");
    rule.half_fail_z = half_fail_z_of(rule.looks, rule.fail_level);
    g.context.rule = rule;
    g.context.most_repeats = rule.most;
    g.context.has_baseline = v.is_true("paired") || !g.held.stored.file.empty();
    g.context.requests = v.count("expected_requests");
    g.context.has_turns = v.has("expected_first_turns");
    g.context.first_turns =
        g.context.has_turns ? v.count("expected_first_turns") : g.context.requests;
}

/// Why the verdicts of a run say that its numbers are none, or those of a server that failed.
inline std::string fault_of_stored(const checked_object& gate) {
    const bool is_invalid = gate.text("outcome") == "invalid";
    for (const checked_object& s : gate.each("slos")) {
        const bool is_advisory = s.is_true("advisory");
        if (is_invalid && !is_advisory && s.text("verdict") == "invalid")
            return "was invalid: " + s.text("reason");
        if (s.text("metric") != "error_rate" || is_advisory) continue;
        const double observed = s.number("estimate", 0, 1), limit = s.number("limit", 0, 1);
        if (observed > limit)
            return printed("had %.3g %% of its requests fail, where %.3g %% may", observed * 100,
                           limit * 100);
    }
    return is_invalid ? "was invalid" : "";
}

inline void read_scenario(const checked_object& scenario, stored_gate& g) {
    g.workload = scenario.text("workload");
    g.arrivals = scenario.text("arrivals");
    g.extent = scenario.text("extent");
    g.options = scenario.text("options");
    g.context.streams = !scenario.has("stream") || scenario.is_true("stream");
    g.context.scores = scenario.text("scores");
    g.seed = scenario.text("seed_text");
    g.trace_hash = scenario.text("trace_hash");
    g.nonce = scenario.text("nonce");
    g.limits = scenario.text("limits");
    g.sent_as_given = scenario.text("sent_as_given");
    if (scenario.has("shard")) {
        const checked_object shard = scenario.at("shard");
        g.shards = shard.whole("count", 1, double{most_shards}, std::size_t{1});
        g.shard = shard.whole("index", 0, static_cast<double>(g.shards - 1), std::size_t{0});
    }
    g.context.arrivals = g.arrivals;
    const std::string kind = scenario.text("arrival_kind");
    g.context.in_users = kind == arrival_name(arrival_kind::closed_loop);
    for (int k = 0; k <= static_cast<int>(arrival_kind::closed_loop); ++k)
        if (kind == arrival_name(static_cast<arrival_kind>(k)))
            g.context.saturates = saturates(static_cast<arrival_kind>(k));
}

/// A gate's name without the number that tells it from another one of that name: "chat (2)".
inline std::string unnumbered(const std::string& name) {
    const std::size_t open = name.rfind(" (");
    const bool is_numbered = open != std::string::npos && name.back() == ')' &&
                             name.find_first_not_of("0123456789", open + 2) == name.size() - 1;
    return is_numbered ? name.substr(0, open) : name;
}
/// The document of a run, or the sentence that it is none.
inline picojson::value result_document(const std::string& json, const std::string& file) {
    picojson::value root;
    require(parse_json(json, root) && string_member(root, "schema") == "llmbench/result/1",
            file + " is not a result of this schema (llmbench/result/1)");
    return root;
}
/// A gate in its document, and how many repeats stand before its own.
struct found_gate {
    checked_object gate;
    std::size_t repeats_before = 0;
};
inline found_gate gate_named(const checked_object& root, const std::string& file,
                             const std::string& name) {
    std::vector<found_gate> found;
    std::size_t repeats_seen = 0;
    std::string names;
    const std::vector<checked_object> gates = root.each("gates");
    for (const checked_object& g : gates) {
        const bool measured = g.text("refusal").empty();
        const std::string other = g.text("name");
        if (measured) names += (names.empty() ? "\"" : ", \"") + other + "\"";
        const bool is_alone =
            gates.size() == 1 && (name.empty() || unnumbered(other) == unnumbered(name));
        if (measured && (other == name || is_alone)) found.push_back({g, repeats_seen});
        for (const char* arm : {"candidate", "baseline"})
            repeats_seen += array_member(g.at(arm).value(), "repeats").size();
    }
    require(found.size() < 2, file + " has more than one measured gate \"" + name +
                                  "\": only gates with names of their own can be read again");
    require(found.size() == 1, file + " has no measured gate \"" + name + "\": it has " +
                                   (names.empty() ? "none" : names));
    return found[0];
}

/// Throws std::invalid_argument with the reason where the text holds no such gate.
inline stored_gate read_stored_gate(const std::string& json, const std::string& file,
                                    const std::string& name) {
    const picojson::value document = result_document(json, file);
    const checked_object root(document, file, "");
    auto [gate, place] = gate_named(root, file, name);
    require(gate.has("judging"), file + " does not say how it was judged");

    stored_gate g;
    g.name = gate.text("name");
    g.definitions = root.text("definitions");
    g.version = root.text("version");
    g.fault = fault_of_stored(gate);
    g.model = gate.at("target").text("model");
    g.url = gate.at("target").text("url");
    g.api = gate.at("target").text("api");
    read_scenario(gate.at("scenario"), g);
    if (gate.has("capacity")) g.carried = gate.at("capacity").number("low", 0, most_rate, 0);
    read_judging(gate.at("judging"), g);
    g.told = told_plan(gate.at("scenario"), g);
    const stored_windows windows(json);
    for (const run_arm arm : {run_arm::candidate, run_arm::baseline}) {
        auto& repeats = arm == run_arm::candidate ? g.seen.candidate : g.seen.baseline;
        const std::vector<checked_object> told = gate.at(to_string(arm)).each("repeats");
        require(told.size() <= most_repeats_of_a_gate,
                file + printed(" has %zu repeats of \"%s\", up to %zu are allowed", told.size(),
                               g.name.c_str(), most_repeats_of_a_gate));
        for (const checked_object& r : told) {
            repeats.push_back(read_repeat(r, arm));
            repeat_data& d = repeats.back();
            read_times(r, d, windows, place++);
            d.server = read_server_word(r, d.window.from_ns());
            if (arm == run_arm::baseline) continue;
            for (const auto& [statistic, values] : read_statistics(r.at("statistics")))
                for (const double v : values) g.statistics[statistic].push_back(v);
        }
    }
    return g;
}

/// What a later reader sees of a whole run. Throws std::invalid_argument where the text is none.
inline past_result read_past_result(const std::string& json, const std::string& file) {
    const picojson::value document = result_document(json, file);
    const checked_object root(document, file, "");
    past_result run;
    run.started_at = root.at("environment").text("started_at");
    run.commit = root.at("environment").text("commit");
    run.cpu = root.at("environment").text("cpu");
    for (const checked_object& g : root.each("gates")) {
        past_gate gate;
        gate.name = g.text("name");
        gate.outcome = g.text("outcome");
        gate.model = g.at("target").text("model");
        gate.arrivals = g.at("scenario").text("arrivals");
        for (const checked_object& s : g.each("slos")) {
            past_slo slo;
            slo.slo = s.text("slo");
            slo.metric = s.text("metric");
            const std::string outcome = s.text("verdict");
            for (int k = 0; k <= static_cast<int>(verdict::skipped); ++k)
                if (outcome == to_string(static_cast<verdict>(k)))
                    slo.outcome = static_cast<verdict>(k);
            slo.advisory = s.is_true("advisory");
            const std::string text = str(slo.slo);  // a goodput has sides of its own in front
            const std::size_t side = std::min(text.rfind("= "), text.size());
            slo.at_most = side == text.size() || side == 0 || text[side - 1] == '<';
            slo.relative = s.is_true("relative_to_baseline");
            slo.measured = s.number("measured", -most_statistic, most_statistic);
            slo.estimate = {s.number("estimate", -most_statistic, most_statistic), not_a_number,
                            not_a_number};
            s.numbers("interval", -most_statistic, most_statistic, [&](std::size_t i, double v) {
                if (i < 2) (i == 0 ? slo.estimate.low : slo.estimate.high) = v;
            });
            slo.limit = s.number("limit", -most_statistic, most_statistic);
            slo.reason = s.text("reason");
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
    require(old.shards == 1, "baseline is stored(\"" + file + "\"): of that run " +
                                 shard_words({old.shard, old.shards}));
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

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
