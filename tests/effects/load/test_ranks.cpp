// Ranks that share a load of both variants at once: what each of them sends, and when it is judged.
#include "llmbench.hpp"
#include "core/judging/rule.hpp"
#include "core/planning/planning.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/load/agenda.hpp"
#include "effects/load/order.hpp"
#include "effects/load/run_load.hpp"
#include "extensions/machines/shards.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <map>

using namespace llmbench;
using namespace llmbench::detail;
using texts::refusal_of;

namespace {

constexpr long long begins_ns = 1000000000000, answer_ns = 3000000;

/// When requests are due, by their places in the trace.
using due_times = std::map<std::size_t, long long>;
struct sent_at_once {
    due_times candidate{}, baseline{};
};

due_times due_in(const load_order& order, load_state& state) {
    state.start_ns = begins_ns;
    begin_places(order, state);
    agenda a(order, state, 0, 1);
    a.begin();
    due_times all;
    while (!a.nothing_left()) {
        const long long now = std::max(a.next_due(), begins_ns);
        const auto ended = [&](const due_request& r) {
            a.on_dispatched(r.what, now);
            CHECK(all.emplace(r.what.index, r.what.scheduled_ns).second);
            a.on_ended(r.what, request_status::ok, now + answer_ns, "an answer");
        };
        while (const auto next = a.take_due(now)) ended(*next);
        while (const auto next = a.take_promised(now)) ended(*next);
    }
    return all;
}
/// What one of several programs sends of both variants.
sent_at_once sent_by(plan p, const load_shard& rank, bool parts_twins) {
    p.shard = rank;
    load_order orders[2];
    load_state states[2];
    repeat_data seen[2];
    request_log logs[2];
    orders[1].variant = run_variant::baseline;
    vector<load_of_variant> loads;
    for (std::size_t i = 0; i < 2; ++i) {
        orders[i].what = &p;
        orders[i].parts_twins = parts_twins;
        loads.push_back({&orders[i], &states[i], &seen[i], &logs[i]});
    }
    order_on_schedule(p, loads);
    return {due_in(orders[0], states[0]), due_in(orders[1], states[1])};
}

}  // namespace

TEST_CASE("both requests of a pair go to one rank, at the times that one program would send them") {
    const plan p = planned({.workload = synthetic{}, .arrivals = poisson(50_rps), .warmup = 7,
                            .requests = 90}, 1);
    for (const bool parts_twins : {false, true}) {
        const sent_at_once whole = sent_by(p, {}, parts_twins);
        REQUIRE(whole.candidate.size() == 97);
        REQUIRE(whole.baseline.size() == 97);
        CHECK((whole.candidate != whole.baseline) == parts_twins);
        for (const std::size_t count : {2u, 3u, 8u}) {
            std::size_t pairs = 0;
            for (std::size_t i = 0; i < count; ++i) {
                const sent_at_once own = sent_by(p, {i, count}, parts_twins);
                pairs += own.candidate.size();
                REQUIRE(own.candidate.size() == own.baseline.size());
                for (const auto& [index, due_ns] : own.candidate) {
                    CHECK(index % count == i);
                    CHECK(due_ns == whole.candidate.at(index));
                    REQUIRE(own.baseline.count(index) == 1);
                    CHECK(own.baseline.at(index) == whole.baseline.at(index));
                }
            }
            CHECK(pairs == 97);
        }
    }
}

static scenario pairs_at_once_of_ranks() {
    return {.baseline = otherwise{.same = true},
            .pairs = at_once,
            .workload = synthetic{},
            .arrivals = poisson(8_rps),
            .duration = 2_min,
            .slos = {mean(tpot) <= 1.05 * baseline}};
}

TEST_CASE("ranks take a load of both variants, and judge it at its end only") {
    scenario s = pairs_at_once_of_ranks();
    const plan p = planned(s, 1);
    REQUIRE(p.judged->is_at_once);
    REQUIRE(p.judged->rule.looks_early);
    const load_shard second{1, 4};
    CHECK_NOTHROW(check_shard(*p.sent, second));
    const auto of_rank = [&] {
        return planned(s, 1, {}, {scenario_use::measure, second}).judged->rule;
    };
    const judging_rule of_ranks = of_rank();
    s.repeats = 1;  // the whole time
    for (const judging_rule& whole : {planned(s, 1).judged->rule, of_rank()}) {
        CHECK_FALSE(whole.looks_early);
        CHECK_FALSE(of_ranks.looks_early);
        CHECK(of_ranks.analyses == whole.analyses);
        CHECK(of_ranks.most == whole.most);
        CHECK(of_ranks.pass_z == whole.pass_z);
        CHECK(of_ranks.alone_z == whole.alone_z);
        CHECK(of_ranks.fail_z == whole.fail_z);
        CHECK(of_ranks.half_fail_z == whole.half_fail_z);
    }
    CHECK(of_ranks.pass_z < p.judged->rule.pass_z);  // one look has the whole level
}

TEST_CASE("shards take a load of both variants at once, and no baseline in turns") {
    scenario s = pairs_at_once_of_ranks();
    settings asked;
    CHECK_NOTHROW(check_shard(planned(s, 1), {1, 4}, asked));
    s.pairs = in_turns;
    CHECK(refusal_of([&] { check_shard(planned(s, 1), {1, 4}, asked); }) ==
          "LLMBENCH_SHARD is 1/4: a baseline needs programs that communicate, unless pairs is "
          "at_once: use MPI, or run the gate in one");
}
