// result.json and records.jsonl
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/version.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/blind.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/calibrated.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/words.hpp"
#include "core/capacity/search.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/plan_words.hpp"
#include "core/traffic/target_facts.hpp"
#include "core/traffic/tokens.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/others/definitions.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/comparison_json.hpp"
#include "core/reports/comparison_report.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/profile.hpp"
#include "core/reports/ranks_json.hpp"
#include "core/reports/server_word_json.hpp"
#include "core/reports/words.hpp"

#include <cmath>  // isfinite
#include <string>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// calibration.json: what LLMBENCH_CALIBRATION reads.
inline std::string calibration_json(const std::vector<gate_report>& gates) {
    json_writer j;
    j.open('{').field("schema", "llmbench/calibration/1").key("gates").open('[');
    for (const gate_report& g : gates) {
        if (g.calibration.empty()) continue;
        j.open('{').field("name", g.what.name).field("repeats", g.figures.candidate.repeats.size());
        j.key("slos").open('[');
        for (const calibrated& c : g.calibration) {
            j.open('{').field("slo", c.what.text().c_str());
            j.field("statistic", noise_name(c.what)).field("estimate", c.estimate);
            j.field("sd", c.sd).field("headroom_sd", c.headroom_sd);
            j.field("suggestion", c.suggestion).close();
        }
        j.close().close();
    }
    return j.close().close().text() + "\n";
}

/// Nothing without TLS.
inline void write_handshakes(json_writer& j, const handshakes_t& full,
                             const handshakes_t& resumed) {
    if (full.count + resumed.count == 0) return;
    for (const auto& [name, h] :
         {std::pair{"handshakes_full", full}, std::pair{"handshakes_resumed", resumed}})
        j.key(name)
            .open('{')
            .field("count", h.count)
            .field("mean_s", h.mean)
            .field("max_s", h.max)
            .close();
}

/// Of a repeat, or of the client over all of them.
template <class Conduct>
void write_lags(json_writer& j, const Conduct& of) {
    j.field("loop_lag_p99", of.loop_lag_p99)
        .field("loop_lag_max", of.loop_lag_max)
        .field("stamp_lag_p99", of.stamp_lag_p99)
        .field("stamp_lag_max", of.stamp_lag_max);
}

inline void write_target(json_writer& j, const char* name, const target_facts& t) {
    j.key(name)
        .open('{')
        .field("kind", to_string(t.kind))
        .field("url", t.url)
        .field("model", t.model)
        .field("api", t.api);
    if (t.tls != tls_trust::no_tls) j.field("tls", to_string(t.tls));
    if (!t.options.empty()) j.field("options", t.options);
    if (!t.measured_by.empty()) j.field("measured_by", t.measured_by);
    j.close();
}

inline void write_verdict(json_writer& j, const slo_verdict& v) {
    j.open('{')
        .field("slo", v.what.text().c_str())
        .field("verdict", to_string(v.outcome))
        .field("advisory", v.what.is_advisory);
    j.field("metric", metric_name(v.what.what.metric))
        .field("measured", v.measured)
        .field("estimate", v.estimate.value);
    j.key("interval").open('[').value(v.estimate.low).value(v.estimate.high).close();
    j.field("limit", v.limit)
        .field("relative_to_baseline", v.what.factor > 0)
        .field("headroom", headroom(v));
    j.field("detectable", v.detectable).field("repeats", v.repeats).field("requests", v.requests);
    j.field("method", v.method.c_str())
        .field("reason", v.reason.c_str())
        .field("advice", v.advice.c_str())
        .field("arithmetic", v.arithmetic.c_str());
    j.key("inputs").open('{');
    for (const named_values& n : v.inputs) {
        j.key(n.name.c_str()).open('[');
        for (const double x : n.values) j.value(x);
        j.close();
    }
    j.close();
    j.field("file", v.what.at.file).field("line", v.what.at.line).close();
}

/// How long made-up prompts were to be, how long the server says they were, and how that was aimed.
inline void write_prompt_lengths(json_writer& j, const prompt_lengths& lengths,
                                 const token_fit& fit) {
    if (!lengths.known) return;
    j.key("prompt_lengths").open('{').field("calibration", to_string(fit.lengths));
    j.field("token_ids", fit.as_ids);
    for (const auto& [name, f] :
         {std::pair{"asked", &lengths.asked}, std::pair{"counted", &lengths.counted}})
        j.key(name)
            .open('{')
            .field("mean", f->mean)
            .field("p50", f->p50)
            .field("p90", f->p90)
            .close();
    j.close();
}

/// Four numbers a stretch on one line, they are for programs: from and to, in ns since the window
/// began, the longest delay of a stamp in it, and what of it may have been lost, in ns.
inline std::string blind_text(const repeat_facts& d) {
    std::string all;
    for (const blind_stretch& s : d.blind)
        all += (all.empty() ? "" : ",") + printed("%lld,%lld,%lld,%lld",
                                                  s.from_ns - d.window.from_ns(),
                                                  s.to_ns - d.window.from_ns(), s.most_delay_ns,
                                                  s.lost_ns);
    return "[" + all + "]";
}

inline void write_repeat(json_writer& j, const repeat_figures& d,
                         const std::vector<statistic_data>& kept) {
    j.open('{').field("index", d.index);
    if (d.load > 0)
        j.field("load", d.load).field("part", to_string(d.part)).field("disturbed", d.disturbed);
    j.field("window_from_ns", d.window.from_ns())
        .field("window_to_ns", d.window.to_ns());
    j.field("asked_rate", d.asked_rate)
        .field("achieved_rate", d.achieved_rate)
        .field("connections_opened", d.connections_opened);
    write_handshakes(j, d.handshakes_full, d.handshakes_resumed);
    write_lags(j, d);
    j.key("thread_cpu_shares").open('[');
    for (const double share : d.thread_cpu_shares) j.value(share);
    j.close();
    j.field("content_events", d.content_events)
        .field("coalesced_events", d.coalesced_events)
        .field("cpu_share", d.cpu_share);
    j.key("blind").raw(blind_text(d)).field("startup_s", d.startup_s)
        .field("target_gone", d.target_gone)
        .field("interrupted", d.interrupted)
        .field("short_outputs", d.short_outputs)
        .field("long_outputs", d.long_outputs)
        .field("resends", d.resends)
        .field("hang_ups", d.hang_ups)
        .field("used_once", d.used_once)
        .field("shared_tokens", d.shared_tokens)
        .field("gaps_counted", d.gaps_counted)
        .field("itl_relative_error", d.gaps_counted ? gap_counts::relative_error : 0.0);
    if (d.server.is_read) write_server_word(j, d.server, d.checked, d.window.from_ns());
    write_ranks(j, d);
    j.key("statistics").open('{');
    for (std::size_t i = 0; i < kept.size(); ++i) j.field(kept[i].name.c_str(), d.statistics[i]);
    j.close().close();
}

inline void write_arm(json_writer& j, const gate_report& g, run_arm which) {
    const bool is_baseline = which == run_arm::baseline;
    const arm_figures& arm = is_baseline ? g.figures.baseline : g.figures.candidate;
    j.key(is_baseline ? "baseline" : "candidate").open('{');
    write_prompt_lengths(j, arm.prompts, (is_baseline ? g.baseline : g.target).tokens);
    for (std::size_t i = 0; i < g.figures.table_rows; ++i) {
        const metric_row& r = arm.distributions[i].row;
        j.key(metric_name(r.metric))
            .open('{')
            .field("mean", r.mean)
            .field("p50", r.p50)
            .field("p90", r.p90)
            .field("p99", r.p99)
            .field("max", r.max)
            .close();
    }
    for (const auto& [metric, value] : arm.run_values) j.field(metric_name(metric), value);
    if (arm.prefix_cache.prompt > 0)
        j.key("prefix_cache")
            .open('{')
            .field("cached_tokens", arm.prefix_cache.cached)
            .field("prompt_tokens", arm.prefix_cache.prompt)
            .close();
    if (arm.reasoning.requests > 0)
        j.key("reasoning")
            .open('{')
            .field("requests", arm.reasoning.requests)
            .field("reasoning_tokens", arm.reasoning.tokens)
            .field("output_tokens", arm.reasoning.output)
            .field("untold", arm.reasoning.untold)
            .field("hidden_tokens", arm.reasoning.hidden)
            .close();
    j.key("statuses").open('{');
    for (const status_count& c : arm.statuses) j.field(to_string(c.status), c.count);
    j.close().key("finish_reasons").open('[');
    for (const auto& [reason, count] : arm.finish_reasons)
        j.open('{').field("reason", reason).field("count", count).close();
    j.close().field("usage_below_events", arm.usage_below_events);
    j.field("usage_over_content", arm.answers.over_content)
        .field("may_hide", arm.answers.may_hide)
        .field("usage_over_prompt", arm.answers.over_prompt)
        .field("in_one_piece", arm.answers.in_one_piece)
        .field("in_a_lump", arm.answers.in_a_lump);
    j.key("repeats").open('[');
    for (const repeat_figures& d : arm.repeats) write_repeat(j, d, g.figures.kept);
    j.close().close();
}

/// All that the verdicts depend on and the records do not tell.
inline void write_judging(json_writer& j, const gate_report& g) {
    const judging_rule& rule = g.held.rule;
    const stored_baseline& stored = g.held.stored;
    j.key("judging")
        .open('{')
        .field("traffic", rule.traffic == fresh ? "fresh" : "replayed")
        .field("looks", rule.looks)
        .field("most", rule.most)
        .field("false_pass", rule.pass_level)
        .field("false_fail", rule.fail_level)
        .field("pass_z", rule.pass_z)
        .field("alone_z", rule.alone_z)
        .field("trusts_belief", rule.trusts_belief)
        .field("fail_z", rule.fail_z)
        .field("holm", rule.holm)
        .field("paired", g.what.has_baseline)
        .field("arrival_cv2", g.under.arrival_cv2)
        .field("short_outputs_expected", g.under.short_outputs_expected)
        .field("spin", g.under.spins)
        .field("expected_requests", expected_requests(g.what))
        .field("stopped", g.under.stopped);
    if (has_turns(g.what)) j.field("expected_first_turns", expected_first_turns(g.what));
    if (std::isfinite(g.under.most_skew_s)) j.field("most_skew_s", g.under.most_skew_s);
    j.key("set_aside").open('[');
    for (const set_aside_repeat& r : g.under.set_aside)
        j.open('{').field("arm", to_string(r.arm)).field("index", r.index).field("why", r.why)
            .close();
    j.close();
    if (!g.under.untold.empty()) {
        j.key("untold").open('[');
        for (const untold_metrics& u : g.under.untold) {
            j.open('{').key("metrics").open('[');
            for (const metric_id m : u.of) j.value(std::string_view(metric_name(m)));
            j.close().field("why", u.why).close();
        }
        j.close();
    }
    j.field("calibration", g.held.noise_file).key("calibrated_sd").open('{');
    for (const auto& [name, sd] : g.held.noise) j.field(name, sd);
    j.close();
    j.key("stored_baseline").open('{').field("file", stored.file);
    j.field("day_to_day_sd", stored.day_sd);
    if (stored.carried > 0) j.field("carried", stored.carried);
    j.key("statistics").open('{');
    for (const auto& [name, values] : stored.values) {
        j.key(name).open('[');
        for (const double v : values) j.value(v);
        j.close();
    }
    j.close().close().close();
}

/// The load as it was asked for.
inline void write_scenario(json_writer& j, const plan& p) {
    j.key("scenario")
        .open('{')
        .field("arrivals", arrival_text(p.arrivals))
        .field("arrival_kind", arrival_name(p.arrivals.kind))
        .field("offered_rate", p.arrivals.rate);
    j.field("users",
            p.arrivals.kind == arrival_kind::closed_loop ? p.arrivals.users : 0)
        .field("max_in_flight", p.arrivals.max_in_flight);
    j.field("workload", p.workload_text)
        .field("sent_as_given", p.sent_as_given)
        .field("warmup_requests", p.warmup_requests)
        .field("warmup_s", p.warmup_s);
    j.field("extent", extent_text(p)).field("options", options_text(p))
        .field("stream", p.common.stream);
    if (!p.scores.empty()) j.field("scores", p.scores);
    j.field("requests", p.requests)
        .field("duration_s", p.duration_s)
        .field("repeats_planned", repeats_text(p));
    j.field("seed", static_cast<long long>(p.seed))
        .field("seed_text", std::to_string(p.seed))
        .field("trace_hash", trace_hash(p))
        .field("nonce", printed("%016llx", static_cast<unsigned long long>(p.nonce)))
        .field("limits", limits_text(p));
    if (!p.share.is_whole())
        j.key("shard")
            .open('{')
            .field("index", p.share.index)
            .field("count", p.share.count)
            .close();
    j.close();
}

/// What a search found, and from which probes.
inline void write_search(json_writer& j, const load_curve& c) {
    j.key("capacity")
        .open('{')
        .field("unit", c.unit == metric_id::capacity_in_users ? "users" : "requests/s")
        .field("low", c.state.low)
        .field("high", c.state.high)
        .field("estimate", c.state.capacity.value_or(not_a_number))
        .field("elasticity", c.state.elasticity.value_or(not_a_number));
    j.field("binding", c.binding).field("line", c.line).field("fault", c.fault);
    j.key("keeps").open('[');
    for (const slo& s : c.keeps) j.value(str(s.text()));
    j.close().key("probes").open('[');
    for (const load_point& p : c.points) {
        j.open('{')
            .field("arm", to_string(p.arm))
            .field("load", p.what.load)
            .field("part", to_string(p.what.part))
            .field("margin", p.what.margin)
            .field("over_saturated", p.what.over)
            .field("invalid", p.what.invalid)
            .field("shows", to_string(p.what.shown))
            .field("requests", p.requests);
        j.key("values").open('[');
        for (const double v : p.values) j.value(v);
        j.close().close();
    }
    j.close().close();
}

inline void write_self_check(json_writer& j, const self_check_t& c) {
    j.key("self_check")
        .open('{')
        .field("ok", c.ok)
        .field("reason", c.reason.c_str())
        .field("lateness_p50", c.lateness_p50);
    j.field("lateness_p99", c.lateness_p99)
        .field("lateness_max", c.lateness_max)
        .field("late_share", c.late_share);
    j.field("asked_rate", c.asked_rate)
        .field("achieved_rate", c.achieved_rate)
        .field("coalesced_share", c.coalesced_share);
    write_lags(j, c);
    j.field("held_up", c.held_up).field("held_up_max", c.held_up_max);
    j.field("cpu_share", c.cpu_share)
        .field("connections_opened", c.connections_opened);
    write_handshakes(j, c.handshakes_full, c.handshakes_resumed);
    j.close();
}

/// In other tools' definitions, seconds.
inline void write_others(json_writer& j, const std::vector<other_view>& others) {
    if (others.empty()) return;
    j.key("shown_as").open('[');
    for (const other_view& v : others) {
        j.open('{').field("tool", v.tool).key("metrics").open('[');
        for (const other_row& r : v.rows)
            j.open('{').field("name", r.name).field("mean", r.mean).field("p50", r.p50)
                .field("p90", r.p90).field("p99", r.p99).close();
        j.close().key("notes").open('[');
        for (const std::string& note : v.notes) j.value(std::string_view(note));
        j.close().close();
    }
    j.close();
}

inline std::string result_json(const std::vector<gate_report>& gates, const environment_facts& env,
                               const event_index& events, int exit_code,
                               const std::vector<comparison_report>& comparisons = {}) {
    json_writer j;
    j.open('{').field("schema", "llmbench/result/1");
    j.field("version", printed("%d.%d.%d", LLMBENCH_VERSION_MAJOR, LLMBENCH_VERSION_MINOR,
                               LLMBENCH_VERSION_PATCH));
    j.field("definitions", definitions_version).field("exit_code", exit_code);
    j.key("environment")
        .open('{')
        .field("started_at", env.started_at)
        .field("commit", env.commit)
        .field("os", env.os)
        .field("cpu", env.cpu)
        .field("cores", env.cores)
        .field("compiler", env.compiler)
        .close();
    j.key("gates").open('[');
    for (const gate_report& g : gates) {
        j.open('{')
            .field("name", g.what.name)
            .field("outcome", to_string(g.outcome))
            .field("refusal", g.refusal);
        j.field("file", g.what.file).field("line", g.what.line);
        if (!g.beside.empty()) j.field("failed_beside", g.beside);
        if (!g.refusal.empty()) { j.close(); continue; }
        write_target(j, "target", g.target);
        if (g.what.has_baseline) write_target(j, "baseline_target", g.baseline);
        write_scenario(j, g.what);
        j.key("slos").open('[');
        for (const slo_verdict& v : g.verdicts) write_verdict(j, v);
        j.close();
        if (!g.figures.search.empty()) write_search(j, g.figures.search);
        write_judging(j, g);
        write_arm(j, g, run_arm::candidate);
        if (g.what.has_baseline) write_arm(j, g, run_arm::baseline);
        write_self_check(j, g.self_check);
        write_profile(j, g.profile);
        write_others(j, g.figures.others);
        j.close();
    }
    j.close();
    write_comparisons(j, comparisons);
    // One long line: the offsets are for programs.
    std::string offsets = "[";
    for (const long long o : events.offsets)
        offsets += (offsets.size() > 1 ? "," : "") + std::to_string(o);
    j.key("events")
        .open('{')
        .field("file", "events.bin")
        .field("unit", "microseconds, uint32 little-endian");
    j.field("bytes", events.bytes).field("fnv1a_64", events.hash);
    j.key("offsets").raw(offsets + "]").close().close();
    return j.text() + "\n";
}

/// One line of records.jsonl.
inline std::string record_json(const record& r, const std::string& gate) {
    const auto when = [](long long ns) { return ns ? std::to_string(ns) : std::string("null"); };
    std::string s = "{\"id\":" + json_quoted(str(r.id)) + ",\"gate\":" + json_quoted(gate);
    s += printed(",\"arm\":\"%s\",\"repeat\":%d,\"phase\":\"%s\"", to_string(r.arm), r.repeat,
                 to_string(r.phase));
    s += ",\"scheduled_ns\":" + when(r.scheduled_ns) +
         ",\"dispatched_ns\":" + when(r.dispatched_ns) +
         ",\"connected_ns\":" + when(r.connected_ns) + ",\"sent_ns\":" + when(r.sent_ns) +
         ",\"first_token_ns\":" + when(r.first_token_ns) +
         ",\"second_token_ns\":" + when(r.second_token_ns) +
         ",\"first_answer_ns\":" + when(r.first_answer_ns) +
         ",\"last_token_ns\":" + when(r.last_token_ns) + ",\"end_ns\":" + when(r.end_ns);
    s += printed(
        ",\"prompt_tokens\":%d,\"output_tokens\":%d,\"token_source\":\"%s\",\"events\":%d,\"first_"
        "event_tokens\":%d",
        r.prompt_tokens, r.output_tokens, to_string(r.token_source), r.events,
        r.first_event_tokens);
    s += printed(",\"status\":\"%s\",\"http_status\":", to_string(r.status)) +
         (r.http_status ? std::to_string(r.http_status) : "null");
    const auto words = [](const text& t) {
        return t.empty() ? std::string("null") : json_quoted(str(t));
    };
    const auto told = [](int n) { return n < 0 ? std::string("null") : std::to_string(n); };
    return s + ",\"finish_reason\":" + words(r.finish_reason) + ",\"error\":" + words(r.error) +
           printed(",\"late_ns\":%lld", r.late_ns) +
           ",\"cached_tokens\":" + told(r.cached_tokens) +
           ",\"reasoning_tokens\":" + told(r.reasoning_tokens) +
           ",\"hidden_tokens\":" + told(r.hidden_tokens) +
           printed(",\"conversation\":%lld,\"turn\":%d", r.conversation, r.turn) +
           printed(",\"reads\":%d,\"first_read_events\":%d,\"text_bytes\":%d,"
                   "\"most_prompt_tokens\":%d,\"choices\":%d,\"resends\":%d}\n",
                   r.reads, r.first_read_events, r.text_bytes, r.most_prompt_tokens, r.choices,
                   r.resends);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
