// the fields of a gate: its servers, its load, its judging parameters
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat_fields.hpp"
#include "core/judging/measurements.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/shard.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"

#include <cmath>  // isfinite, isnan
#include <cstdint>  // uint64_t
#include <map>
#include <memory>  // const_pointer_cast, shared_ptr
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline void fields_of(field_visitor& v, target_facts& t) {
    v.choice({"kind", "endpoint, process, simulated, stored, same server, other options (of the "
                      "target itself) or files"},
             t.kind, target_kind::files);
    v.text({"url", "of a stored baseline its file"}, t.url);
    v.text({"model"}, t.model);
    v.text({"api"}, t.api);
    v.text({"transport", "where it is not HTTP", if_any}, t.transport);
    v.text({"command", "that started it, without secrets", if_any}, t.command);
    v.flag({"virtual_time", "simulated, and the load was computed instead of waited for", if_any},
           t.is_virtual);
    v.choice({"tls", "whether its certificate was verified", if_any}, t.tls,
             tls_trust::not_verified);
    v.text({"options", "where the arms are one server asked in two ways: what this one's "
                       "requests say", if_any}, t.options);
    v.text({"measured_by", "of files the tool that wrote them, and its version", if_any},
           t.measured_by);
}

/// The planned load as files describe it: fields of the traffic, and texts.
struct load_facts {
    planned_traffic sent{};
    std::string arrivals{}, extent{}, options{}, repeats{}, seed{}, trace_hash{}, values{}, nonce{},
        limits{}, plan{}, baseline_workload{};
    load_shard shard{};
};
inline load_facts load_facts_of(const plan& p) {
    return {.sent = *p.sent,
            .arrivals = arrival_text(p.sent->arrivals),
            .extent = extent_text(p),
            .options = options_text(p),
            .repeats = repeats_text(p),
            .seed = std::to_string(p.sent->seed),
            .trace_hash = trace_hash(p),
            .values = load_hash(*p.sent),
            .nonce = printed("%016llx", static_cast<unsigned long long>(p.nonce)),
            .limits = limits_text(p),
            .plan = plan_text(p),
            .baseline_workload = p.sent->otherwise ? (*p.sent->otherwise).workload_text : "",
            .shard = p.shard};
}
/// Which program sent it.
inline void program_fields(field_visitor& v, load_facts& l) {
    if (!v.has("shard", !l.shard.is_whole()) ||
        !v.begin({"shard", "of a load that several programs sent: which part this is, counted from "
                           "0", at_times}))
        return;
    v.whole({"index"}, l.shard.index, {0, max_shards - 1});
    v.whole({"count"}, l.shard.count, {1, max_shards});
    if (l.shard.index >= l.shard.count) v.misfit("index", "one below the count is allowed");
    v.end();
}
inline void fields_of(field_visitor& v, load_facts& l) {
    planned_traffic& t = l.sent;
    arrival_data& a = t.arrivals;
    v.text({"arrivals"}, l.arrivals);
    if (v.assigns()) a.kind = arrival_kind::poisson;  // of an older file, which does not say it
    v.choice({"arrival_kind"}, a.kind, arrival_kind::closed_loop);
    v.number({"offered_rate", "requests/s, 0 in a closed loop"}, a.rate, rate_range);
    auto users = static_cast<long long>(users_of(t));
    v.whole({"users"}, users);
    if (v.assigns()) a.users = users;
    v.whole({"max_in_flight"}, a.max_in_flight);
    v.text({"workload"}, t.workload_text);
    v.text({"sent_as_given", "what is the same in every repeat and run: prompts, images, the "
                             "prompts of another tool; empty where nothing is", at_times},
           t.sent_as_given);
    v.whole({"warmup_requests"}, t.warmup_requests);
    v.number({"warmup_s"}, t.warmup_s, {0, longest_time_s, 0});
    v.text({"extent"}, l.extent);
    v.text({"options"}, l.options);
    if (v.has("stream", true)) v.flag({"stream"}, t.common.stream);
    v.text({"scores", "the API, where it generates nothing", if_any}, t.scores);
    v.whole({"requests"}, t.requests);
    v.number({"duration_s"}, t.duration_s, {0, longest_time_s, 0});
    v.text({"repeats_planned"}, l.repeats);
    auto seed = static_cast<long long>(parsed_number<std::uint64_t>(l.seed).value_or(0));
    v.whole({"seed", "see seed_text where it is above 2^53"}, seed, {-0x1p63, 0x1p63 - 1024});
    v.text({"seed_text"}, l.seed);
    v.text({"trace_hash", "of arrival times and lengths"}, l.trace_hash);
    v.text({"load_hash", "of arrivals, lengths, extent and options as values", if_any}, l.values);
    v.text({"nonce", "of this execution: made-up words are new in each"}, l.nonce);
    v.text({"limits", "how long is waited for what", at_times}, l.limits);
    v.text({"plan", "the load in one line", if_any}, l.plan);
    v.text({"baseline_workload", "where the baseline is the same server with another one", if_any},
           l.baseline_workload);
    program_fields(v, l);
}

inline void fields_of(field_visitor& v, set_aside_repeat& r) {
    v.choice({"arm"}, r.variant, run_variant::baseline);
    v.whole({"index", "the record's `repeat`"}, r.index, {0, most_of_few});
    v.text({"why"}, r.why);
}
inline void fields_of(field_visitor& v, unsupported_metrics& u) {
    vector<std::string> names;
    for (const metric_id m : u.of) names.push_back(metric_name(m));
    v.texts({"metrics"}, names);
    v.text({"why"}, u.why);
    if (!v.assigns()) return;
    u.of.clear();
    for (const std::string& name : names)
        for (const metric_id m : all_metrics())
            if (name == metric_name(m)) u.of.push_back(m);
}

inline void fields_of(field_visitor& v, stored_baseline& b) {
    v.text({"file"}, b.file);
    v.number({"day_to_day_sd"}, b.day_sd, {0, 1, 0});
    if (!v.begin({"statistics"})) return;
    vector<std::string> names;
    for (const auto& [name, values] : b.values) names.push_back(name);
    for (const std::string& name : v.names(names)) {
        vector<double> values;
        if (const auto at = b.values.find(name); at != b.values.end()) values = at->second;
        v.numbers({name.c_str(), "", at_times}, values, any_number);
        if (v.assigns()) b.values[name] = values;
    }
    v.end();
}

inline constexpr double max_repeats_of_a_gate = 1000;  // including probes of a search
inline constexpr whole_range repeats_range{0, max_repeats_of_a_gate};

/// The planned requests of a repeat, and the baseline.
struct expected_load {
    bool has_baseline = false, has_turns = false;
    long long requests = 0, first_turns = 0;
};
/// The fields of the rule that it needs; a number that is 0 or missing does not apply.
inline void fields_of(field_visitor& v, judging_rule& r) {
    constexpr number_range level{0, 1}, quantile{0, 1000};
    const auto positive = [&](const char* name, double n) {
        if (!(n > 0)) v.misfit(name, "a number above 0 is allowed");
    };
    std::string traffic = "replayed";
    v.text({"traffic", "replayed: the same in all repeats"}, traffic);
    if (traffic != "replayed") v.misfit("traffic", "\"replayed\" is allowed");
    v.whole({"interim_analyses"}, r.analyses, {1, 100});
    positive("interim_analyses", v.has("interim_analyses", true) ? r.analyses : 0);
    v.whole({"most"}, r.most, repeats_range);
    positive("most", v.has("most", true) ? r.most : 0);
    v.number({"false_pass"}, r.pass_level, level);
    positive("false_pass", r.pass_level);
    v.number({"false_fail"}, r.fail_level, level);
    positive("false_fail", r.fail_level);
    v.number({"pass_z"}, r.pass_z, quantile);
    positive("pass_z", r.pass_z);
    v.number({"alone_z", "to pass by the spread of the repeats alone", at_times}, r.alone_z,
             {0, 1000, judging_rule().alone_z});
    v.flag({"trusts_belief", "what is believed of the noise may narrow what the repeats' own "
                             "spread leaves open", at_times},
           r.trusts_prior);
    v.flag({"looks_once", "nothing was decided before all repeats were there", if_any},
           r.is_single_analysis);
    v.number({"fail_z"}, r.fail_z, quantile);
    v.flag({"looks_early", "a load at once was judged after 2 and 3 quarters of it as well, by "
                           "these scores over the root of that part", if_any}, r.looks_early);
    positive("fail_z", r.fail_z);
    v.flag({"holm"}, r.holm);
    // A run is judged again by the rule that it was made with.
    if (v.assigns()) r.revision = 1;
    v.whole({"revision", "of the rule; missing: 1, without quiet repeats, blatant misses, and "
                         "calibrations in place of the assumed noise", at_times},
            r.revision, {1, 2});
}
inline void fields_of(field_visitor& v, pairing& p) {
    v.flag({"at_once", "both variants were loaded at the same time", if_any}, p.is_at_once);
    v.flag({"by_slices", "and are compared by slices of it", if_any}, p.by_slices);
}
inline void fields_of(field_visitor& v, known_noise& known) {
    v.text({"calibration", "the file that calibrated_sd was read from"}, known.noise_file);
    vector<named_number> noise;
    for (const auto& [name, sd] : known.noise) noise.push_back({name, sd});
    named_fields(v, {"calibrated_sd"}, noise, {0, 1});
    if (v.assigns()) known.noise.clear();
    for (const named_number& n : noise)
        if (v.assigns() && !std::isnan(n.value)) known.noise[n.name] = n.value;
    v.whole({"calibration_repeats", "10 and more replace the assumed noise", if_any},
            known.noise_repeats, repeats_range);
}
inline void fields_of(field_visitor& v, std::shared_ptr<const past_judge>& past) {
    if (!v.has("history", past != nullptr)) return;
    constexpr const char* missing =
        "the result was held against a history, which llmbench_history.hpp judges: include it "
        "after llmbench.hpp where LLMBENCH_MAIN is";
    const auto new_judge = the_one_with(&extension::new_judge, missing).new_judge;
    // Reading makes a new judge; a visitor that only writes must not change the old one.
    const auto own = v.assigns() || !past ? new_judge()
                                          : std::const_pointer_cast<past_judge>(past);
    if (v.assigns()) past = own;
    if (!v.begin({"history", "the runs of main", at_times})) return;
    own->fields(v);
    v.end();
}
/// What earlier runs showed.
inline void earlier_fields(field_visitor& v, judging_parameters& judged_by) {
    fields_of(v, static_cast<known_noise&>(judged_by));
    v.object({"stored_baseline"}, judged_by.stored);
    fields_of(v, judged_by.past);
}
/// The load as it was sent.
inline void load_fields(field_visitor& v, load_conditions& under) {
    v.number({"arrival_cv2"}, under.arrival_cv2,
             {0, largest_number, not_a_number, true});
    v.flag({"other_workload", "the baseline's workload was another", if_any}, under.other_workload);
    v.flag({"other_requests", "the baseline is the same server, asked in another way", if_any},
           under.other_requests);
    fields_of(v, static_cast<pairing&>(under));
    v.number({"decided_after", "the part of the load after which all was decided, so that it ended",
              if_any}, under.decided_after, {0.25, 1, 1});
    v.flag({"fresh_pairs", "the servers were started again for each pair, or one was both variants",
            if_any},
           under.pairs_are_fresh);
    v.flag({"short_outputs_expected"}, under.short_outputs_expected);
    v.flag({"spin"}, under.spins);
    v.flag({"counts_work", "the objectives are on the work of the server", if_any},
           under.counts_work);
}
/// The requests that were planned, and why not all of them were sent.
inline void request_fields(field_visitor& v, load_conditions& under, expected_load& expected) {
    v.whole({"expected_requests"}, expected.requests);
    v.text({"stopped"}, under.stopped);
    if (v.has("expected_first_turns", expected.has_turns)) {
        if (v.assigns()) expected.has_turns = true;
        v.whole({"expected_first_turns", "", at_times}, expected.first_turns);
    }
}
/// What is no evidence, or of which metrics.
inline void odd_fields(field_visitor& v, load_conditions& under) {
    if (v.has("most_skew_s", std::isfinite(under.max_skew_s)))
        v.number({"most_skew_s", "by which programs that send the load may begin apart", at_times},
                 under.max_skew_s, {0, longest_time_s, infinity});
    v.list({"set_aside", "repeats in records.jsonl that are no evidence: the client had too "
                         "great a part in them, and others were measured in their place"},
           under.set_aside, [&](set_aside_repeat& r) { fields_of(v, r); });
    v.list({"unsupported", "of files of another tool: what they leave out or mean otherwise, and "
                           "of which metrics nothing is judged for it; of none where none is "
                           "named", if_any},
           under.unsupported, [&](unsupported_metrics& u) { fields_of(v, u); });
}
/// The data beside records that verdicts depend on.
inline void fields_of(field_visitor& v, judging_parameters& judged_by, load_conditions& under,
                      expected_load& expected) {
    fields_of(v, judged_by.rule);
    v.flag({"paired"}, expected.has_baseline);
    load_fields(v, under);
    request_fields(v, under, expected);
    odd_fields(v, under);
    earlier_fields(v, judged_by);
}

/// The client's self-check in seconds and fractions, which it does not have in virtual time.
inline void fields_of(field_visitor& v, self_check_t& c, const bool& has_figures) {
    constexpr number_range early_or_late{-longest_time_s, longest_time_s}, fraction{0, most_of_few};
    v.flag({"ok"}, c.ok);
    v.text({"reason"}, c.reason);
    if (!v.has("connections_opened", has_figures)) return;
    v.number({"lateness_p50", "", at_times}, c.lateness_p50, early_or_late);
    v.number({"lateness_p99", "", at_times}, c.lateness_p99, early_or_late);
    v.number({"lateness_max", "", at_times}, c.lateness_max, early_or_late);
    v.number({"late_fraction", "", at_times}, c.late_fraction, fraction);
    v.number({"asked_rate", "", at_times}, c.asked_rate, rate_range);
    v.number({"achieved_rate", "", at_times}, c.achieved_rate, rate_range);
    v.number({"coalesced_fraction", "", at_times}, c.coalesced_fraction, fraction);
    v.number({"stamped_fraction", "of reads, those with the kernel's time of arrival", at_times},
             c.stamped_fraction, {0, 1, 0});
    v.whole({"unknown_gaps", "between events that a late client read together", at_times},
            c.unknown_gaps);
    lag_fields(v, c, at_times);
    v.number({"lost_fraction", "of the time of a repeat, what the client lost where it stamps what "
                               "it reads itself", at_times}, c.lost_fraction, fraction);
    v.number({"cpu_utilization", "", at_times}, c.cpu_utilization, fraction);
    v.whole({"connections_opened", "", at_times}, c.connections_opened);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
