// Several programs that share a load send its trace: every request, once, when it is due.
#include "llmbench.hpp"
#include "core/base/bytes.hpp"
#include "core/wire/url.hpp"
#include "core/planning/planning.hpp"
#include "effects/system/workload_files.hpp"
#include "effects/load/agenda.hpp"
#include "effects/load/run_load.hpp"
#include "effects/load/worker.hpp"
#include "extensions/sessions/api.hpp"
#include "support/memory.hpp"
#include "support/scenarios.hpp"
#include "support/scratch.hpp"
#include "one_thread.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;

namespace {

constexpr long long ms = 1000000, start = 1000 * 1000 * ms;

struct sent_request {
    long long at_ns = 0;
    std::string bytes{};
};
using sent_requests = std::map<std::size_t, sent_request>;  // by their place in the trace

load_order order_of(const plan& p, const load_target& target) {
    load_order o;
    o.what = &p;
    o.target = &target;
    o.id_prefix = id_prefix(1, run_variant::candidate, 0);
    if (p.sent->is_open_loop()) {
        const schedule s = schedule_of(p);
        o.last = end_of_trace(p, s.at.size());
        for (const double t : s.at) o.send_at.push_back(ns_of(t));
    } else {
        const conversation_counts c = counted_conversations(p);
        o.last = end_of_trace(p, c.warmup + c.measured);
    }
    return o;
}

/// What one program sends with so many threads, if every answer takes 3 ms. No request twice.
void send_shard(const plan& p, std::size_t threads, sent_requests& all) {
    load_target target;
    target.url = parsed_url("http://127.0.0.1:8000", "endpoint.url");
    const load_order order = order_of(p, target);
    load_state shared;
    shared.start_ns = start;
    begin_places(order, shared);
    std::vector<agenda> agendas;  // its queues may throw as they move
    for (std::size_t t = 0; t < threads; ++t) agendas.emplace_back(order, shared, t, threads);
    for (agenda& a : agendas) a.begin();
    for (bool more = true; more;) {
        more = false;
        for (agenda& a : agendas) {
            if (a.nothing_left()) continue;
            more = true;
            const long long due = std::max(a.next_due(), start);
            const auto ended = [&](const due_request& r) {
                a.on_dispatched(r.what, due);
                const std::string bytes = built(order, a, r.what.index).bytes;
                const bool is_new = all.insert({r.what.index, {r.what.scheduled_ns, bytes}}).second;
                CHECK(is_new);
                a.on_ended(r.what, request_status::ok, due + 3 * ms, "an answer");
            };
            while (const auto next = a.take_due(due)) ended(*next);
            while (const auto next = a.take_promised(due)) ended(*next);
        }
    }
}

/// The hash of what `count` programs send of the plan. Times are part of it where they are planned.
std::string hash_of_all(plan p, std::size_t count, std::size_t threads) {
    sent_requests all;
    for (std::size_t i = 0; i < count; ++i) {
        p.shard = {i, count};
        send_shard(p, threads, all);
    }
    fnv1a h;
    for (const auto& [index, r] : all) {
        h.add(static_cast<long long>(index));
        if (p.sent->is_open_loop() && p.sent->stride == 1) h.add(r.at_ns);
        h.add(r.bytes.data(), r.bytes.size());
    }
    return h.text() + printed(", %zu requests", all.size());
}

plan plan_of_load(scenario s) { return planned(s, 7, read_workload_files(s, 7)); }

}  // namespace

TEST_CASE("what several programs send is the trace, whatever its arrivals") {
    const auto lengths = synthetic{.prompt_tokens = lognormal(64, 0.6), .output_tokens = fixed(8)};
    const auto of = [&](const arrival_pattern& a) {
        scenario s{.workload = lengths, .arrivals = a, .warmup = 7, .requests = 90};
        return s;
    };
    const vector<scenario> loads = {
        of(constant(50_rps)),
        of(poisson(50_rps)),
        of(gamma(50_rps, 0.3)),
        of(poisson(50_rps).max_in_flight(16)),
        of(ramp(5_rps, 80_rps, 3_s)),
        of(steps({{20_rps, 1_s}, {60_rps, 1_s}})),
        of(replay("data/azure.csv").speed(20)),
        of(all_at_once()),
        of(closed_loop(16)),
        of(closed_loop(16).think(1_s).ramp(2_s)),
    };
    for (const scenario& s : loads) {
        const plan p = plan_of_load(s);
        CAPTURE(arrival_text(p.sent->arrivals));
        const std::string whole = hash_of_all(p, 1, 1);
        CHECK(hash_of_all(p, 1, 3) == whole);
        for (const std::size_t count : {2u, 3u, 8u})
            for (const std::size_t threads : {1u, 2u})
                CHECK(hash_of_all(p, count, threads) == whole);
    }
}

TEST_CASE("conversations stay with one program") {
    for (const arrival_pattern& a :
         {arrival_pattern(poisson(20_rps)), arrival_pattern(closed_loop(9))}) {
        scenario s{.workload = conversations{.turns = uniform(2, 5), .user_tokens = fixed(8)},
                   .arrivals = a, .warmup = 4, .requests = 60};
        plan p = plan_of_load(s);
        const std::string whole = hash_of_all(p, 1, 1);
        CHECK(hash_of_all(p, 4, 1) == whole);
        CHECK(hash_of_all(p, 3, 2) == whole);
    }
}

TEST_CASE("sessions stay with one program, with their helpers, and the shards together are the trace") {
    const files::scratch here;
    const std::string file = here.file("sessions.jsonl");
    std::ofstream corpus(file);
    for (int s = 0; s < 40; ++s) {
        const std::string begin = R"({"session":"s)" + std::to_string(s) + R"(","output_tokens":4,"step":)";
        corpus << begin << R"("a","prompt_tokens":)" << 20 + s << "}\n"
               << begin << R"("b","after":["a"],"prompt_tokens":9})" "\n"
               << begin << R"("c","after":["a"],"wait":0.2,"prompt_tokens":9})" "\n";
        if (s % 2)
            corpus << begin << R"("d","after":["b","c"],"keeps":["b",9],"prompt_tokens":60})" "\n";
    }
    corpus.close();
    const conversations subagents{.turns = uniform(2, 5), .user_tokens = fixed(8), .think = uniform(1_s, 2_s),
                               .subagents = 50_pct, .helpers = uniform(1, 3), .helper_turns = uniform(1, 2)};
    for (const any_workload& w : {any_workload(sessions{.path = file}), any_workload(subagents)})
        for (const arrival_pattern& a : {arrival_pattern(poisson(20_rps)), arrival_pattern(closed_loop(9))}) {
            scenario s{.workload = w, .arrivals = a, .warmup = 4, .requests = 120};
            plan p = plan_of_load(s);
            CAPTURE(p.sent->workload_text);
            const std::string whole = hash_of_all(p, 1, 1);
            CHECK(hash_of_all(p, 4, 1) == whole);
            CHECK(hash_of_all(p, 3, 2) == whole);
            CHECK(whole.find(" requests") != std::string::npos);
        }
}

TEST_CASE("10,000 live sessions hold what is announced") {
    const std::string answer(5 * 180, 'x');
    const plan p = plan_of_load({.workload = conversations{.turns = 10, .user_tokens = fixed(8), .output_tokens = fixed(180)},
                                 .arrivals = closed_loop(10000), .warmup = 0, .requests = 100000});
    const double announced = 10000 * bytes_held_by_a_user(*p.sent);
    load_target target;
    target.url = parsed_url("http://127.0.0.1:8000", "endpoint.url");
    const load_order order = order_of(p, target);
    load_state shared;
    shared.start_ns = start;
    agenda a(order, shared, 0, 1);
    a.begin();
    const std::size_t before = memory::held();
    for (int turn = 0; turn < 9; ++turn) {  // the last one takes all answers along
        vector<due_request> due;
        const long long now = start + turn * ms;
        while (const auto next = a.take_due(now)) {
            a.on_dispatched(next->what, now);
            due.push_back(*next);
        }
        REQUIRE(due.size() == 10000);
        for (const due_request& r : due) a.on_ended(r.what, request_status::ok, now + ms, answer);
    }
    const auto measured = static_cast<double>(memory::held() - before);
    MESSAGE(printed("measured %.1f MB, announced %.1f MB", measured / 1e6, announced / 1e6));
    CHECK(measured < 1.15 * announced);
    if (memory::is_counted()) CHECK(measured > 0.7 * announced);
    const plan vast = plan_of_load({.workload = conversations{.turns = 1000, .output_tokens = fixed(10000000)},
                                    .arrivals = closed_loop(100000), .requests = 10});
    load_order too_much = order_of(vast, target);
    try {
        make_room_for(too_much);
        FAIL("refused nothing");
    } catch (const std::invalid_argument& e) {
        CHECK(std::string(e.what()).find("over half of this machine's") != std::string::npos);
    }
}

TEST_CASE("what goes out at once is built before it is due, as far as there is memory for it") {
    load_target target;
    target.url = parsed_url("http://127.0.0.1:8000", "endpoint.url");
    const auto ready_of = [&](const arrival_pattern& a, int prompt_tokens) {
        const plan p = plan_of_load({.workload = synthetic{.prompt_tokens = fixed(prompt_tokens)},
                                     .arrivals = a, .warmup = 0, .requests = 200});
        const load_order order = order_of(p, target);
        load_state shared;
        load_thread thread;
        load_worker& worker = thread.add(order, shared, 0, 1);
        worker.prepare_first();
        return worker.ready();
    };
    CHECK(ready_of(all_at_once(), 64) == 200);
    CHECK(ready_of(closed_loop(16), 64) == 16);
    CHECK(ready_of(poisson(50_rps), 64) == 1);
    const std::size_t some = ready_of(all_at_once(), 100000);  // of half a megabyte each
    CHECK(some >= 64);
    CHECK(some < 200);
}

TEST_CASE("clients that give up leave a server that does not answer, and the load goes on to its end") {
    one_thread::peer silent;
    const load_target target = one_thread::target_at({silent.port()});
    plan p = plan_of_load({.workload = synthetic{.prompt_tokens = fixed(8)},
                           .arrivals = closed_loop(2), .warmup = 0, .requests = 4});
    planned_traffic sent = *p.sent;
    sent.common.cancel_after_s = 0.05;
    p.sent = std::make_shared<const planned_traffic>(std::move(sent));
    const load_order order = order_of(p, target);
    load_state shared;
    shared.start_ns = now_ns();
    load_thread thread;
    load_worker& worker = thread.add(order, shared, 0, 1);
    thread.run();
    repeat_data d;
    worker.finished().move_into(d);
    REQUIRE(d.records.size() == 4);
    for (const record& r : d.records) {
        CHECK(r.status == request_status::left);
        CHECK(r.end_ns - r.dispatched_ns >= 50 * ms);
    }
    CHECK(shared.failed == 0);
    CHECK(shared.done == 4);
}

TEST_CASE("what a load needs at a time is divided, too") {
    const plan whole = plan_of_load({.arrivals = closed_loop(10), .requests = 100});
    plan p = whole;
    load_order o;
    o.what = &p;
    o.last = 120;
    std::size_t connections = 0, at_first = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        p.shard = {i, 4};
        connections += connections_needed(o);
        for (std::size_t t = 0; t < 2; ++t) at_first += connections_at_first(o, t, 2);
    }
    CHECK(connections == 10);
    CHECK(at_first == 10);
}
