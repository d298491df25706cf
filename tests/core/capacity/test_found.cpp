// What probes show of a capacity, and verdicts on it: from the evidence alone.
#include "llmbench.hpp"
#include "core/traffic/requests.hpp"
#include "extensions/capacity/api.hpp"
#include "extensions/capacity/core/found.hpp"
#include "extensions/capacity/core/searched.hpp"
#include "core/planning/planning.hpp"
#include "core/described/described.hpp"

#include "support/sample_measurements.hpp"
#include "support/synthetic_gates.hpp"
#include "support/texts.hpp"
#include "support/timelines.hpp"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// A search on a made-up server, probe by probe.
struct reported {
    plan p;
    sample_measurements::open_evidence seen{};
    judging_parameters judged_by{};
    explicit reported(const slo_list& slos, scenario_use use = scenario_use::gate)
        : p(planned({.workload = synthetic{.output_tokens = fixed(8)},
                     .arrivals = poisson(up_to(64_rps)),
                     .requests = 100,
                     .duration = 5_s,
                     .slos = slos},
                    1, {}, use)) {
        static_cast<load_conditions&>(seen) = load_conditions_of(p);
        judged_by.slos = p.judged->slos;
        judged_by.objectives_held = p.judged->search.objectives_held;
        judged_by.rule = p.judged->rule;
    }
    reported& probe(double load, double ttft_ms, double failed = 0,
                    probe_of part = probe_of::search) {
        synthetic_gates::server s;
        s.ttft_s = ttft_ms / 1000;
        s.failed = failed;
        seen.candidate.push_back(synthetic_gates::repeat_of(
            at_load(p, load, 0), s, run_variant::candidate, static_cast<int>(seen.candidate.size())));
        seen.candidate.back().load = load;
        seen.candidate.back().part = part;
        return *this;
    }
    reported& asked(double load, double ttft_ms, double failed = 0) {
        return probe(load, ttft_ms, failed, probe_of::asked);
    }
    found_capacity found() const { return capacity_of(seen, judged_by); }
    slo_verdict verdict_of(const slo& s) const { return described(judged_also_of_loads(seen, judged_by, s)); }
    slo_verdict first() const { return described(analyse_gate(seen, judged_by).verdicts[0]); }
};
const slo_list twelve = {p50(ttft) <= 100_ms, mean(tpot) <= 1_s, capacity >= 12_rps};

bool says(const slo_verdict& v, const std::string& words) {
    return texts::holds(v.reason, words) || texts::holds(v.line(), words);
}

}  // namespace

TEST_CASE("a load is carried where each objective is shown to be kept at it") {
    reported t(twelve);
    CHECK(t.asked(12, 60).first().outcome == verdict::inconclusive);  // one probe shows nothing
    const slo_verdict v = t.asked(12, 60).first();
    CHECK(v.outcome == verdict::pass);
    CHECK(v.repeats == 2);
    CHECK(v.requests == 200);
    CHECK(v.estimate.low == 12);
    INFO(v.line());
    CHECK(says(v, "2 probes at the limit x 100 requests; carries at least 12 req/s; p50(ttft) <= "
                  "100 ms pass: measured "));
    CHECK(t.verdict_of(capacity >= 10_rps).outcome == verdict::pass);
    CHECK(t.verdict_of(capacity >= 20_rps).outcome == verdict::inconclusive);
}

TEST_CASE("a load is too much where one objective is shown to be missed, or requests fail") {
    reported slow(twelve);
    slow.asked(12, 150).asked(12, 150);
    CHECK(slow.first().outcome == verdict::inconclusive);  // two probes are too few to fail
    slow.asked(12, 150);
    CHECK(slow.first().outcome == verdict::fail);
    INFO(slow.first().line());
    CHECK(says(slow.first(), "carries less than 12 req/s; p50(ttft) <= 100 ms fail: measured "));
    CHECK(slow.verdict_of(capacity >= 20_rps).outcome == verdict::fail);
    CHECK(slow.found().limiting_objective == "p50(ttft)");

    reported failing(twelve);
    failing.asked(12, 60, 0.2).asked(12, 60, 0.2).asked(12, 60, 0.2);
    CHECK(failing.first().outcome == verdict::fail);
    CHECK(failing.found().limiting_objective == "error_rate");

    reported dead(twelve);
    dead.asked(8, 60).asked(12, 60, 1).asked(12, 60, 1);
    CHECK(dead.first().outcome == verdict::fail);
    CHECK(dead.found().limiting_objective == "the server's throughput");
}

TEST_CASE("a server that answers nothing at any load has no capacity, and no verdict") {
    reported t(twelve);
    t.asked(12, 60, 1).asked(12, 60, 1);
    CHECK(t.first().outcome == verdict::invalid);
    CHECK(says(t.first(), "requests succeeded"));
}

TEST_CASE("three probes of a search at one load show a result") {
    reported t({p50(ttft) <= 100_ms}, scenario_use::find_capacity);
    t.probe(5, 50).probe(10, 60);
    t.probe(20, 500).probe(10, 60);
    CHECK(t.found().state.low == 0);
    t.probe(10, 60);
    CHECK(t.found().state.low == 10);
    CHECK(capacity_line(metric_id::capacity_in_rate, t.found()) ==
          "capacity at least 10 req/s, no load is shown to be too much, limited by p50(ttft), 5 "
          "probes");
    t.probe(14, 170).probe(14, 170).probe(14, 170);
    CHECK(capacity_line(metric_id::capacity_in_rate, t.found()) ==
          "capacity in [10, 14] req/s, limited by p50(ttft), 8 probes");
    CHECK(t.verdict_of(capacity >= 12_rps).outcome == verdict::inconclusive);
    CHECK(t.verdict_of(capacity >= 14_rps).outcome == verdict::fail);
    CHECK(says(t.verdict_of(p50(ttft) <= 100_ms), "several loads"));
}

TEST_CASE("a load shown to be carried above one shown to be too much is no capacity") {
    reported t({p50(ttft) <= 100_ms, capacity >= 8_rps, advisory(capacity >= 16_rps)});
    for (int i = 0; i < 3; ++i) t.asked(8, 150);
    for (int i = 0; i < 2; ++i) t.asked(16, 60);
    CHECK(t.first().outcome == verdict::invalid);
    CHECK(says(t.first(), "not monotone: 16 req/s is shown to be carried, and 8 req/s to be too "
                          "much"));
    CHECK(texts::holds(fault_of_search(t.seen, t.judged_by, t.found()), "not monotone"));
}

TEST_CASE("a probe that the client had a part in shows nothing") {
    reported t(twelve);
    t.asked(12, 60).asked(12, 60);
    CHECK(t.found().state.low == 12);
    t.seen.candidate[0].disturbed = "client: it was late";
    CHECK(t.found().state.low == 0);
    CHECK(t.found().probes[0].invalid);
    t.asked(12, 60);
    CHECK(t.found().state.low == 12);
    CHECK(t.first().repeats == 2);
    reported late({p50(ttft) <= 100_ms}, scenario_use::find_capacity);
    late.probe(10, 60);
    CHECK(!late.found().probes[0].invalid);
    for (record& r : late.seen.candidate[0].records) r.late_ns = 200000000;
    CHECK(late.found().probes[0].invalid);
    late.probe(10, 60);
    for (record& r : late.seen.candidate[1].records) r.late_ns = 200000000;
    CHECK(texts::holds(fault_of_search(late.seen, late.judged_by, late.found()), "twice in a row"));
}

TEST_CASE("a search says by how much the capacity of another trace may differ") {
    CHECK(std::fabs(luck_of_traces(1, 0, 400) - 0.103) < 0.001);
    CHECK(std::fabs(luck_of_traces(1, 3, 400) - 0.217) < 0.001);
    reported t({p50(ttft) <= 100_ms}, scenario_use::find_capacity);
    t.probe(10, 60);
    auto& records = t.seen.candidate[0].records;
    for (std::size_t i = 0; i < records.size(); ++i) records[i].conversation = static_cast<int>(i);
    const double luck = t.found().luck;
    CHECK(luck > 0.1);
    CHECK(luck < 0.4);
    CHECK(texts::holds(capacity_explained(metric_id::capacity_in_rate, t.found()),
                       "of this trace: another one of its length may carry "));
    for (record& r : records) r.output_tokens *= r.conversation % 2 == 0 ? 99 : 1;
    CHECK(t.found().luck > 1.1 * luck);
    t.seen.arrival_cv2 = not_a_number;  // users
    CHECK(t.found().luck == 0);
    reported gate(twelve);
    CHECK(gate.asked(12, 60).found().luck == 0);
}

TEST_CASE("a search is none whose server became slower meanwhile, and its line says so") {
    const auto searched = [](double slower) {
        reported t({p50(ttft) <= 100_ms}, scenario_use::find_capacity);
        double factor = 1;
        const auto probe = [&](double load, double ms) {
            t.probe(load, ms * factor);
            factor *= slower;
        };
        probe(8, 50);
        probe(16, 170);
        probe(12, 100);
        for (int i = 0; i < 3; ++i) {
            probe(10, 75);
            probe(14, 135);
        }
        return t;
    };
    const reported steady = searched(1);
    CHECK(!steady.found().trend);
    CHECK(steady.found().state.low == 10);
    CHECK(steady.found().state.high == 14);
    CHECK(fault_of_search(steady.seen, steady.judged_by, steady.found()) == "");
    const reported slower = searched(1.06);
    REQUIRE(slower.found().trend);
    CHECK(*slower.found().trend == doctest::Approx(8 * std::log(1.06)).epsilon(0.25));
    CHECK(slower.found().state.low == 0);
    CHECK(slower.found().state.high == infinity);
    CHECK(texts::holds(fault_of_search(slower.seen, slower.judged_by, slower.found()),
                       "the server became slower while it was searched: at equal loads what its "
                       "objectives limit worsened by "));
    CHECK(slower.verdict_of(capacity >= 5_rps).outcome == verdict::invalid);
    CHECK(says(slower.verdict_of(capacity >= 5_rps), "the server became slower"));
    found_capacity faster;
    CHECK(trend_text(faster) == "");
    faster.trend = std::log(0.5);
    CHECK(texts::holds(trend_text(faster), "the server became faster while it was searched: at equal "
                                           "loads what its objectives limit improved by 50 %"));
}

TEST_CASE("what was too much for the client in one probe is no fault of a search that shows something") {
    reported t({p50(ttft) <= 100_ms, capacity >= 12_rps});
    t.asked(12, 60).asked(12, 60).asked(12, 60);
    const auto checked = [&] { return analyse_gate(t.seen, t.judged_by).on.self_check; };
    CHECK(checked().ok);
    t.seen.candidate[2].achieved_rate = t.seen.candidate[2].asked_rate / 2;
    t.seen.candidate[2].cpu_utilization = 0.99;
    CHECK(t.found().probes[2].invalid);
    CHECK(t.first().outcome == verdict::pass);
    CHECK(checked().ok);
    CHECK(checked().asked_rate == 0);
    for (repeat_data& d : t.seen.candidate) d.cpu_utilization = 0.99;
    CHECK(!checked().ok);
    CHECK(described(checked().why).find("99 % of a core") != std::string::npos);
}

TEST_CASE("an objective that hardly depends on the load says how badly it locates a capacity") {
    found_capacity f;
    f.limiting_objective = "mean(tpot)";
    CHECK(flatness_text(f).empty());
    f.state.elasticity = 5;
    CHECK(flatness_text(f).empty());
    f.state.elasticity = 0.2;
    CHECK(texts::holds(flatness_text(f), "1 % more load moves mean(tpot) by 0.2 %"));
}

TEST_CASE("answers that are no answers make no capacity, whatever their speed") {
    reported t(twelve);
    t.asked(12, 60).asked(12, 60);
    for (repeat_data& d : t.seen.candidate) timelines::force_lengths(d, d.records.size(), 64);
    CHECK(t.first().outcome == verdict::invalid);
    CHECK(says(t.first(), "server: "));
    CHECK(!fault_of_search(t.seen, t.judged_by, t.found()).empty());
}
