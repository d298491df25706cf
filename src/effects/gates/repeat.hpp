// one repeat
#pragma once

#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/wire/http.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/recovery.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/request_log.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/tokens.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/sharing.hpp"
#include "effects/system/signals.hpp"
#include "effects/load/load_target.hpp"
#include "effects/load/order.hpp"
#include "effects/load/run_load.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/server_pages.hpp"
#include "effects/gates/posts.hpp"
#include "effects/gates/progress_meter.hpp"

#include <algorithm>  // max, min, minmax_element
#include <cmath>  // exp, log, sqrt
#include <cstddef>  // size_t
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>  // move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns "" unless the last measured requests all failed to connect.
inline std::string gone_reason(const vector<record>& records) {
    vector<const record*> measured;
    for (const record& r : records)
        if (is_measured(r)) measured.push_back(&r);
    sort_by(measured, [](const record* r) { return r->scheduled_ns; });
    if (!measured.empty() && failed_by_client(*measured.back())) return {};
    std::size_t trailing = 0;
    while (trailing < measured.size() &&
           measured[measured.size() - 1 - trailing]->status == request_status::connect)
        ++trailing;
    if (trailing < least_lost(measured.size()) || trailing == measured.size()) return {};
    return printed("it went away: the last %zu of %zu requests could not connect (%s)", trailing,
                   measured.size(), measured.back()->error.c_str());
}

/// When the requests of a repeat were planned and sent, in seconds into its window.
struct planned_and_sent {
    vector<double> planned{}, sent{};
    /// Returns the achieved rate by the slope of the sends over their plan, so that neither one
    /// late send nor a delay that was caught up lowers it.
    double achieved(double asked_rate) const {
        const double planned_mean = mean_of(planned), sent_mean = mean_of(sent);
        double both = 0, squares = 0;
        for (std::size_t i = 0; i < sent.size(); ++i) {
            both += (planned[i] - planned_mean) * (sent[i] - sent_mean);
            squares += (planned[i] - planned_mean) * (planned[i] - planned_mean);
        }
        return both > 0 ? asked_rate * squares / both : 0;
    }
};
inline planned_and_sent planned_and_sent_of(const repeat_data& d) {
    planned_and_sent at;
    vector<double> late;
    for (const record& r : d.records)
        if (is_measured(r) && r.dispatched_ns > 0) {
            at.planned.push_back(static_cast<double>(r.scheduled_ns - d.window.from_ns()) * 1e-9);
            at.sent.push_back(static_cast<double>(r.dispatched_ns - d.window.from_ns()) * 1e-9);
            late.push_back(static_cast<double>(r.late_ns) * 1e-9);
        }
    double behind = infinity;
    for (std::size_t i = late.size(); i-- > 0;) {
        behind = std::min(behind, late[i]);
        at.sent[i] -= late[i] - behind;
    }
    return at;
}
inline void note_rates(const plan& p, repeat_data& d) {
    const planned_traffic& t = *p.sent;
    const planned_and_sent at = planned_and_sent_of(d);
    if (!t.is_open_loop() || t.arrivals.kind == arrival_kind::all_at_once ||
        t.arrivals.max_in_flight > 0 || at.sent.size() < 2)
        return;
    const auto [first, last] = std::minmax_element(at.planned.begin(), at.planned.end());
    if (t.arrivals.kind == arrival_kind::replay && *last - *first < batch_s) return;
    const bool stationary = t.arrivals.rate > 0 && t.arrivals.kind != arrival_kind::ramp &&
                            t.arrivals.kind != arrival_kind::replay && t.stride == 1;
    const double n = static_cast<double>(at.sent.size());
    const double own_rate = t.arrivals.rate / static_cast<double>(p.shard.count);
    d.asked_rate = stationary ? own_rate : n / std::max(*last - *first, 1e-9);
    d.achieved_rate = at.achieved(d.asked_rate);
}

/// Notes whether the server ended. Closed connections are not an end; a shard cannot know how
/// frequent they are.
inline void note_end(const plan& p, live_target& target, repeat_data& d) {
    d.target_gone = target.how_it_went();
    if (d.target_gone.empty()) d.target_gone = gone_reason(d.records);
    if (p.shard.is_whole()) fail_frequent_resends(d);
    note_exempt(d);
}
inline void note_recovery(const plan& p, repeat_data& d) {
    if (!p.judged->recovery) return;
    for (side_task_seen& t : d.side_tasks)
        if (!t.steps.empty())
            t.recovery_s = recovery_of(d, t.steps[0].from_ns, *p.judged->recovery);
}

inline long long planned_here(const plan& p, std::size_t last) {
    return static_cast<long long>(
        p.shard.of(static_cast<std::size_t>(requests_before(p, last))));
}
inline void settle_first(const planned_traffic& t, const load_order& order, load_state& state) {
    if (t.warmup_until_stable)
        state.settling.begin(order.measured_from_ns, ns_of(t.arrivals.users_ramp_s));
}
// These fill the orders with the plan's times and counts, the same for all variants.

/// The warm-up is answered before the measured part starts.
inline void order_batch(const plan& p, const vector<load_of_variant>& loads) {
    const conversation_counts counts = counted_conversations(p);
    const std::size_t last = end_of_trace(p, counts.warmup + counts.measured);
    for (const auto& [order, state, d, all] : loads) {
        state->planned = planned_here(p, last);
        order->warmup = order->last = counts.warmup * p.sent->stride;
        order->send_at.assign(counts.warmup, 0);
    }
    if (counts.warmup > 0) run_load(loads);
    for (const load_of_variant& l : loads) {
        l.order->first = l.order->last;
        l.order->last = last;
        l.order->send_at.assign(counts.measured, 0);
    }
}
inline void order_on_schedule(const plan& p, const vector<load_of_variant>& loads) {
    const schedule s = schedule_of(p);
    for (const auto& [order, state, d, all] : loads) {
        order->last = end_of_trace(p, s.at.size());
        state->planned = planned_here(p, order->last);
        order->warmup = s.warmup * p.sent->stride;
        order->measured_from_ns = ns_of(s.measured_from);
        vector<double> times = s.at;
        if (order->parts_twins) part_twins(times, p.sent->seed, order->variant);
        for (const double at : times) order->send_at.push_back(ns_of(at));
        settle_first(*p.sent, *order, *state);
        if (order->decided && !s.at.empty())
            order->decided->expect(order->measured_from_ns,
                                   order->send_at.back() - order->measured_from_ns);
    }
}
inline void order_by_users(const plan& p, const vector<load_of_variant>& loads) {
    const planned_traffic& t = *p.sent;
    const conversation_counts counts = counted_conversations(p);
    for (const auto& [order, state, d, all] : loads) {
        order->measured_by_time = lead_seconds(p) > 0;
        order->measured_from_ns = ns_of(lead_seconds(p));
        order->warmup = counts.warmup * t.stride;
        const bool counted = t.requests > 0 && !order->measured_by_time;
        order->last = counted ? end_of_trace(p, counts.warmup + counts.measured)
                              : static_cast<std::size_t>(-1) / 2;
        if (counted) state->planned = planned_here(p, order->last);
        if (order->measured_by_time && t.requests > 0)
            order->max_measured = static_cast<long long>(
                std::max<std::size_t>(1, p.shard.of(static_cast<std::size_t>(t.requests))));
        settle_first(t, *order, *state);
        if (order->decided)
            order->decided->expect_from(loads[0].state->measured_from, ns_of(t.duration_s));
    }
}
/// The measured part of a load that is over.
inline time_interval window_of(const planned_traffic& t, const load_of_variant& l) {
    if (!t.is_open_loop())
        return time_interval::between(l.state->measured_from.load(),
                                      l.state->exhausted_at.load());
    if (t.arrivals.kind == arrival_kind::all_at_once) {
        long long last_end = 0;
        for (const finished_request& f : l.log->requests())
            last_end = std::max(last_end, f.what.end_ns);
        return time_interval::between(l.state->start_ns, last_end + 1);
    }
    const long long start_ns = l.state->start_ns - l.state->settling.earlier_by();
    long long end_ns = l.order->send_at.empty() ? 0 : start_ns + l.order->send_at.back();
    if (const long long earlier = l.state->exhausted_at) end_ns = std::min(end_ns, earlier);
    return time_interval::between(start_ns + l.order->measured_from_ns, end_ns);
}

/// What became of the requests of a load before the time ended.
struct requests_before_cut {
    std::size_t succeeded = 0, failed = 0, cancelled = 0;
    std::string first{};  // why one failed
};
inline requests_before_cut before_cut(const repeat_data& d) {
    requests_before_cut all;
    for (const record& r : d.records) {
        if (!is_measured(r) || has_left(r) || r.status == request_status::unsent) continue;
        const bool is_ok = r.status == request_status::ok;
        const bool is_cancelled = r.status == request_status::cancelled;
        all.succeeded += is_ok;
        all.cancelled += is_cancelled;
        if (!is_ok && !is_cancelled && all.failed++ == 0)
            all.first = std::string(to_string(r.status)) + ": " + str(r.error);
    }
    return all;
}
/// What has failed all the time would not have done better. Early failures say nothing of requests
/// that were still answered.
inline bool has_failed_throughout(const repeat_data& d) {
    const requests_before_cut all = before_cut(d);
    return all.succeeded == 0 && all.failed > all.cancelled;
}

/// The repeat of one variant, from its order to its measurements.
struct variant_repeat : not_copied {
    /// `on` must outlive it.
    variant_repeat(plan p, live_target& on, repeat_order how)
        : what(std::move(p)), target(on), asked{std::move(how)} {
        seen.variant = asked.variant;
        seen.index = asked.number;
        seen.labels = what.sent->labels;
        seen.plays_out = what.sent->plays_out;
        seen.usd_per_hour = what.judged->usd_per_hour;
        asked.what = &what;
        asked.is_only_compared = all_of(what.judged->slos, needs_baseline);
        asked.target = &target.load();
        asked.tokens = target.facts().tokens;
        asked.id_prefix = id_prefix(asked.gate, asked.variant, asked.number, run_in_ids());
    }

    const plan what;
    live_target& target;
    load_order asked;
    load_state state{};
    repeat_data seen{};
    request_log log{};
    vector<std::unique_ptr<task_at_work>> tasks{};  // beside the load

    void begin_beside() {
        for (std::size_t i = 0; i < what.sent->beside.size(); ++i)
            tasks.push_back(
                what.sent->beside[i].begun(what, i, target, state, asked.gate));
    }
    void end_beside() {
        for (const auto& t : tasks) seen.side_tasks.push_back(t->finished());
    }
    /// `ends_ns`: the end of a load that was decided early, 0 if it was not.
    void finish(long long ends_ns) {
        if (ends_ns != 0) {
            seen.window = time_interval::between(seen.window.from_ns(), ends_ns);
            seen.decided_early = true;
        }
        seen.warmup = state.settling.seen();
        fail_unfinished([&](auto&& f) {
            for (finished_request& r : log.requests()) f(r.what);
        });
        for (const finished_request& f : log.requests()) seen.resends += f.what.resends;
        if (state.gaps > asked.max_gaps) log.count_all(seen.window);
        log.move_into(seen);
        leave_out_later(seen);
        note_unknown_gaps(seen);
        note_rates(what, seen);
        note_end(what, target, seen);
        note_recovery(what, seen);
        seen.loop_lag_p99 = seen.loop_lag.quantile(0.99);
        seen.loop_lag_max = seen.loop_lag.max();
        seen.stamp_lag_p99 = seen.stamp_lag.quantile(0.99);
        seen.stamp_lag_max = seen.stamp_lag.max();
        seen.interrupted = stop_asked.load();
        seen.cut_short = state.is_cut_by_time && !has_failed_throughout(seen);
    }
};

/// Runs the measured load. A burst that its servers hold is held from here on: its warm-up is not.
inline void run_measured(variant_repeats& variants, const vector<load_of_variant>& loads) {
    const plan& p = variants[0].what;
    std::deque<held_burst> bursts;
    if (!p.sent->arrivals.held.empty() && p.shard.index == 0)  // one program does
        for (variant_repeat& v : variants)
            bursts.emplace_back(v.asked, v.state, v.target).begin();
    run_load(loads);
    for (held_burst& b : bursts) b.end();
}
/// Sends what the plan says.
inline void send_all(variant_repeats& variants, const vector<load_of_variant>& loads) {
    const variant_repeat& first = variants[0];
    const planned_traffic& sent = *first.what.sent;
    if (sent.arrivals.kind == arrival_kind::all_at_once) order_batch(first.what, loads);
    else if (sent.is_open_loop()) order_on_schedule(first.what, loads);
    else order_by_users(first.what, loads);
    if (!sent.is_open_loop() || !first.asked.send_at.empty()) run_measured(variants, loads);
    for (const load_of_variant& l : loads) l.into->window = window_of(sent, l);
}
/// Runs one repeat: all variants by one schedule, each request with a twin.
inline void run_repeat(variant_repeats& variants) {
    vector<load_of_variant> loads;
    for (variant_repeat& v : variants) {
        v.seen.startup_s = v.target.take_startup_s();
        v.seen.first_answer_s = v.target.take_first_answer_s();
        loads.push_back({&v.asked, &v.state, &v.seen, &v.log});
    }
    variant_repeat& first = variants[0];
    {
        const progress_watch watched(first.asked.meter, first.state);
        for (variant_repeat& v : variants) v.begin_beside();
        send_all(variants, loads);
        for (variant_repeat& v : variants) v.end_beside();
    }
    const long long ends_ns = first.asked.decided ? first.asked.decided->close() : 0;
    for (variant_repeat& v : variants) v.finish(ends_ns);
    const bool are_two = variants.size() > 1;
    note_lateness(variants.front().seen, are_two ? &variants.back().seen : nullptr);
    if (are_two) note_lateness(variants.back().seen, &variants.front().seen);
}
/// What users of a server waited for their requests, by the place in the trace.
using seconds_by_place = std::map<std::tuple<long long, int, int>, double>;
template <class Requests, class Record>
seconds_by_place seconds_waited(const Requests& all, const Record& record_of, long long until_ns) {
    seconds_by_place seconds;
    for (const auto& each : all)
        if (const record& r = record_of(each);
            r.status == request_status::ok && r.dispatched_ns <= until_ns)
            seconds[{r.conversation, r.turn, r.depth}] =
                static_cast<double>(r.end_ns - r.dispatched_ns) * 1e-9;
    return seconds;
}
/// The same of users who have the server to themselves for a while, with prompts of their own.
/// Those count that began in its first half: most of them end while all users are there.
inline seconds_by_place seconds_alone(const variant_repeat& v) {
    constexpr int other_words = 1 << 20;
    repeat_order how = v.asked;
    how.number += other_words;
    how.out = nullptr;
    how.decided = nullptr;
    variant_repeat alone(v.what, v.target, how);
    alone.asked.ends_after = 2 * static_cast<long long>(alone.asked.users());
    const vector<load_of_variant> one{{&alone.asked, &alone.state, &alone.seen, &alone.log}};
    order_by_users(alone.what, one);
    run_load(one);
    rest(v.target.pages());
    const long long from = alone.state.start_ns, to = alone.state.exhausted_at;
    const auto record_of = [](const finished_request& f) -> const record& { return f.what; };
    return seconds_waited(alone.log.requests(), record_of, from + (to - from) / 2);
}
inline void note_speed_at_once(const seconds_by_place& alone, repeat_data& d) {
    const auto record_of = [](const record& r) -> const record& { return r; };
    const seconds_by_place at_once =
        seconds_waited(d.records, record_of, std::numeric_limits<long long>::max());
    vector<double> logs;
    for (const auto& [place, seconds] : alone)
        if (const auto beside = at_once.find(place); beside != at_once.end())
            logs.push_back(std::log(seconds / beside->second));
    if (logs.size() < 2) return;
    d.speed_at_once = std::exp(mean_of(logs));
    d.speed_error = std::sqrt(sample_variance(logs) / static_cast<double>(logs.size()));
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
