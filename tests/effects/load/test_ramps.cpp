// Users who come one after the other: what of their load is evidence. No clock and no sockets.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/base/time_interval.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/server_values.hpp"
#include "extensions/machines/core/together.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/outcome.hpp"
#include "core/planning/planning.hpp"
#include "effects/system/workload_files.hpp"
#include "effects/load/agenda.hpp"
#include "effects/gates/repeat.hpp"
#include "support/scenarios.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;

namespace {

constexpr long long ms = 1000000, second = 1000 * ms, start = 1000 * second, never = 1LL << 62;

/// The load of one repeat on a server that takes 20 ms longer for each request that it has: 48
/// users wait 960 ms, however they came. Some 50 requests a second. `cut_at_ns`: when it is
/// interrupted.
struct virtual_load {
    const plan& p;
    std::size_t threads = 1;
    long long cut_at_ns = never;
    load_order order{};
    load_state state{};
    request_log all{};
    repeat_data d{};
    std::deque<agenda> agendas{};
    struct under_way { std::size_t thread; planned_request what; long long sent_ns; };
    std::multimap<long long, under_way> ends{};

    repeat_data run() {
        order.what = &p;
        order.id_prefix = id_prefix(1, run_variant::candidate, 0);
        d.variant = run_variant::candidate;
        const vector<load_of_variant> one{{&order, &state, &d, &all}};
        order_by_users(p, one);
        gather();
        d.window = window_of(*p.sent, one[0]);
        d.warmup = state.settling.seen();
        all.move_into(d);
        d.interrupted = cut_at_ns < never;
        return std::move(d);
    }

private:
    void gather() {
        state.start_ns = start;
        begin_places(order, state);
        for (std::size_t t = 0; t < threads; ++t) agendas.emplace_back(order, state, t, threads);
        for (agenda& a : agendas) a.begin();
        for (long long now = next_event(); now < cut_at_ns; now = next_event()) {
            for (; !ends.empty() && ends.begin()->first <= now; ends.erase(ends.begin()))
                end(ends.begin()->first, ends.begin()->second, request_status::ok);
            for (std::size_t t = 0; t < threads; ++t)
                while (const auto next = agendas[t].take_due(now)) {
                    agendas[t].on_dispatched(next->what, now);
                    const auto n = static_cast<long long>(ends.size()) + 1;
                    ends.emplace(now + 20 * ms * n, under_way{t, next->what, now});
                }
        }
        for (agenda& a : agendas) a.stop();
        for (const auto& [at, u] : ends) end(cut_at_ns, u, request_status::cancelled);
    }
    long long next_event() const {
        long long next = ends.empty() ? never : ends.begin()->first;
        for (const agenda& a : agendas)
            if (const long long due = a.next_due(); due != 0) next = std::min(next, due);
        return next;
    }
    void end(long long at_ns, const under_way& u, request_status status) {
        record r;
        r.id = request_id(order.id_prefix, u.what.index);
        r.scheduled_ns = u.what.scheduled_ns;
        r.dispatched_ns = r.connected_ns = r.sent_ns = u.sent_ns;
        r.end_ns = at_ns;
        r.status = status;
        r.phase = phase_of(order, state, u.what);
        if (status == request_status::ok) {
            r.first_token_ns = r.last_token_ns = at_ns;
            r.events = r.output_tokens = r.first_event_tokens = 1;
            if (state.settling.is_on() && r.phase == run_phase::warmup)
                state.settling.on_ended(u.what.index, r, state.start_ns);
        }
        all.add(u.what.index, std::move(r), {});
        agendas[u.thread].on_ended(u.what, status, at_ns, "an answer");
    }
};

plan plan_of_load(const scenario& s) { return planned(s, 7, read_workload_files(s, 7)); }
repeat_data measured_of(const plan& p, std::size_t threads = 1) {
    return virtual_load{p, threads}.run();
}
vector<double> e2e_of(const repeat_data& d) {
    vector<double> all;
    for (const record& r : d.records)
        if (is_measured(r)) all.push_back(static_cast<double>(r.end_ns - r.scheduled_ns) * 1e-9);
    return all;
}

/// Whatever can stand beside a ramp of users; `change` takes the plain one.
struct side_condition {
    const char* name;
    void (*change)(scenario&);
};
const side_condition side_conditions[] = {
    {"requests that would have run out before its end", [](scenario& s) { s.requests = 300; }},
    {"fewer requests than users", [](scenario& s) { s.requests = 10; }},
    {"requests that would have run out about its end", [](scenario& s) { s.requests = 3000; }},
    {"requests for longer than it", [](scenario& s) { s.requests = 5000; }},
    {"a shorter duration", [](scenario& s) { s.duration = 10_s; }},
    {"a longer duration", [](scenario& s) { s.duration = 90_s; }},
    {"requests within a duration", [](scenario& s) { s.requests = 100; s.duration = 10_s; }},
    {"a duration before its requests", [](scenario& s) { s.requests = 4000; s.duration = 10_s; }},
    {"no warm-up", [](scenario& s) { s.warmup = 0; s.requests = 300; }},
    {"a warm-up of requests beyond it", [](scenario& s) { s.warmup = 4000; s.requests = 300; }},
    {"a shorter warm-up", [](scenario& s) { s.warmup = 10_s; s.requests = 300; }},
    {"a longer warm-up", [](scenario& s) { s.warmup = 90_s; s.duration = 10_s; }},
    {"until stable", [](scenario& s) { s.warmup = until_stable(180_s); s.requests = 300; }},
    {"until stable, for a time", [](scenario& s) { s.warmup = until_stable(180_s);
                                                   s.duration = 10_s; }},
    {"think times", [](scenario& s) { s.arrivals = closed_loop(48).ramp(60_s).think(2_s);
                                      s.requests = 300; }},
    {"think times beyond it", [](scenario& s) { s.arrivals = closed_loop(48).ramp(5_s).think(30_s);
                                                s.duration = 10_s; }},
    {"conversations", [](scenario& s) { s.workload = conversations{.turns = uniform(2, 5),
                                                                   .user_tokens = fixed(8)};
                                        s.requests = 300; }},
    {"conversations for a time", [](scenario& s) { s.workload = conversations{
                                                       .turns = fixed(4), .user_tokens = fixed(8)};
                                                   s.duration = 10_s; }},
};
scenario with(const side_condition& c) {
    scenario s{.workload = prompts({"hi"}), .arrivals = closed_loop(48).ramp(60_s)};
    c.change(s);
    return s;
}

}  // namespace

TEST_CASE("nothing that was sent before all users were there is evidence, whatever is beside it") {
    for (const side_condition& c : side_conditions) {
        CAPTURE(c.name);
        const scenario s = with(c);
        plan p = plan_of_load(s);
        const long long ramp_ends = start + ns_of(p.sent->arrivals.users_ramp_s);
        const bool alone = p.sent->warmup_until_stable;  // several programs cannot settle together
        for (const std::size_t programs : {1u, 3u})
            for (const std::size_t threads : {1u, 2u}) {
                if (alone && programs > 1) continue;
                CAPTURE(programs);
                CAPTURE(threads);
                long long measured = 0;
                time_interval window = time_interval::between(0, never);
                for (std::size_t i = 0; i < programs; ++i) {
                    p.shard = {i, programs};
                    const repeat_data d = measured_of(p, threads);
                    std::size_t before = 0;
                    for (const record& r : d.records) {
                        const bool early = r.scheduled_ns < ramp_ends;
                        before += early;
                        CHECK_FALSE((early && is_measured(r)));
                        measured += is_measured(r);
                    }
                    CHECK(before >= 48 / programs);
                    CHECK(d.window.from_ns() >= ramp_ends);
                    CHECK_FALSE(d.window.is_empty());
                    if (p.sent->requests == 0) CHECK(d.window.seconds() == p.sent->duration_s);
                    window = window.shared_with(d.window);
                }
                CHECK_FALSE(window.is_empty());
                if (p.sent->duration_s == 0) CHECK(measured == p.sent->requests);
            }
    }
}

TEST_CASE("users who came one after the other are measured as those who came together") {
    const auto median = [](const arrival_pattern& a, const auto& until) {
        scenario s{.workload = prompts({"hi"}), .arrivals = a};
        until(s);
        vector<double> all = e2e_of(measured_of(plan_of_load(s)));
        std::sort(all.begin(), all.end());
        return nearest_rank(all, 0.5);
    };
    const auto by_count = [](scenario& s) { s.requests = 300; };
    const auto by_time = [](scenario& s) { s.duration = 10_s; };
    for (const double ramp_s : {1.0, 10.0, 60.0}) {
        const auto a = closed_loop(48).ramp(time_span::from_seconds(ramp_s));
        CHECK(median(a, by_count) == doctest::Approx(0.96).epsilon(0.03));
        CHECK(median(a, by_time) == doctest::Approx(0.96).epsilon(0.03));
    }
}

TEST_CASE("a load is not stable before all of its users are there") {
    scenario s{.workload = prompts({"hi"}), .arrivals = closed_loop(48).ramp(60_s),
               .warmup = until_stable(180_s), .requests = 100};
    const repeat_data d = measured_of(plan_of_load(s));
    CHECK(d.warmup.stable);
    CHECK(d.warmup.seconds > 60);
    CHECK(d.warmup.seconds < 90);

    s.warmup = until_stable(60_s);
    CHECK_REFUSED(refusal(s), "until_stable(60 s)", "ramp 60 s", "more time");
}

TEST_CASE("whenever a load is cut off, what is left of it can be asked for every metric") {
    generator random(11);
    for (const side_condition& c : side_conditions) {
        CAPTURE(c.name);
        const plan p = plan_of_load(with(c));
        for (int i = 0; i < 12; ++i) {
            const long long cut = start + ns_of(200 * random.uniform() * random.uniform());
            CAPTURE(cut - start);
            repeat_data d = virtual_load{p, 1, cut}.run();
            CHECK(d.window.to_ns() >= d.window.from_ns());
            // A page of the server that tells all there is, read until the interruption.
            d.server.is_read = d.server.has_both_ends = true;
            for (long long at = start; at <= cut; at += second) {
                page_reading r;
                r.at_ns = at;
                r.values.fill(static_cast<double>(at - start) * 1e-9);
                r.counts = r.values;
                r.values[static_cast<std::size_t>(server_quantity::energy)] = not_a_number;
                d.server.readings.push_back(r);
            }
            for (const metric_facts& f : metric_table) {
                // These need a predicate, and two statistics.
                if (f.id == metric_id::goodput || is_ratio(f.id)) continue;
                const statistic_data what{.kind = statistic_kind::mean, .metric = f.id};
                for (const timing_bound how :
                     {timing_bound::measured, timing_bound::pessimistic, timing_bound::optimistic}) {
                    const double v = is_of_server(f.id) ? value_by_server(what, d).value
                                                        : evaluate(what, d, how);
                    if (d.window.is_empty() && is_throughput(f.id)) CHECK(std::isnan(v));
                }
                if (is_of_server(f.id)) why_no_server_value(what, d);
            }
        }
    }
}
