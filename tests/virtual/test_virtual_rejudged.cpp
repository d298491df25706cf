// The records of a run give its verdicts again, here and elsewhere, whole and in part.
#include "support/environment.hpp"
#include "support/rejudged.hpp"

#include <vector>

using namespace llmbench;
using namespace live;
using texts::replaced;

TEST_CASE("a saturating gate is judged again with its throughput, and after failures too") {
    engine e = engine_of(5_ms);
    e.faults.error_rate = 10_pct;
    e.faults.reset_rate = 10_pct;
    scenario s = brief(simulated(e), "saturated");
    s.requests = 60;
    s.slos = {output_throughput >= 10_tps,
              total_throughput >= 10_tps,
              request_throughput >= 1_rps,
              p50(itl) <= 1_s,
              p95(itl) <= 1_s,
              max(e2e) <= 20_s,
              p5(decode_speed) >= 1_tps,
              goodput(ttft <= 20_s) >= 50_pct,
              advisory(p90(ttft) <= 20_s)};
    const result r = run(s);
    CHECK(outcome_of(r, "output_throughput >= 10 tok/s") == verdict::pass);
    CHECK(outcome_of(r, "error_rate <= 1 %") == verdict::fail);
    CHECK(outcome_of(r, "max(e2e) <= 20 s") == verdict::fail);  // a failure is infinitely late
    check_rejudged(r, s.slos);
    // Other objectives than the run's own may be asked for, and agree with the result's.
    const slo_list others = {p50(tpot) <= 1_ms, mean(normalized_latency) <= 1_s, p50(e2e) <= 20_s};
    const auto again = judge(report_file("records.jsonl"), others, "saturated");
    REQUIRE(again.size() == 4);
    for (std::size_t i = 0; i < 3; ++i) check_same(again[i], judge(r, others[i]));
}

TEST_CASE("records can be judged elsewhere; what needs every event needs the right events.bin") {
    scenario s = brief(simulated(engine_of(2_ms)), "taken elsewhere");
    s.repeats = 2;
    s.slos = {p50(ttft) <= 20_s, p50(itl) <= 1_s, output_throughput >= 1_tps};
    const result r = run(s);
    const scratch files;
    for (const char* name : {"records.jsonl", "result.json", "events.bin"})
        std::filesystem::copy_file(report_file(name), files.file(name));
    const std::string records = files.file("records.jsonl");
    const auto refusal = [&](const slo& what, const char* gate = "taken elsewhere") {
        return refusal_by([&] { judge(records, {what}, gate); });
    };
    for (std::size_t i = 0; i < 3; ++i)
        check_same(judge(records, s.slos, "taken elsewhere")[i], r.verdicts()[i]);

    // Which gate
    const std::string unknown = refusal(s.slos[0], "takn elsewhere");
    CHECK(holds(unknown, "no measured gate \"takn elsewhere\""));
    CHECK(holds(unknown, "\"taken elsewhere\""));
    CHECK(holds(refusal(p50(tpot) <= 2 * baseline), "no baseline"));
    CHECK(holds(refusal(p99(ttft) <= 2_s), "at least 300"));

    // What events are needed for
    const std::string events = content_of(files.file("events.bin"));
    const auto needs_events = [&](const char* why) {
        for (const slo& what : {s.slos[1], s.slos[2], slo(goodput(itl <= 1_s) >= 50_pct)}) {
            CHECK(holds(refusal(what), "needs the time of every event"));
            CHECK(holds(refusal(what), why));
        }
        check_same(judge(records, {s.slos[0]}, "taken elsewhere")[0], r.verdicts()[0]);
    };
    std::string changed = events;
    changed[changed.size() - 1] = static_cast<char>(changed.back() ^ 1);
    write(files.file("events.bin"), changed);
    needs_events("hash");
    write(files.file("events.bin"), events.substr(0, events.size() - 4));
    needs_events("hash");
    std::filesystem::remove(files.file("events.bin"));
    needs_events("cannot be read");

    // Files that are not there, or not what they should be
    const std::string lines = content_of(records);
    write(records, lines + "{\"id\":\"x\"}\n");
    CHECK(holds(refusal(s.slos[0]), "records.jsonl:"));
    write(records, "");
    CHECK(holds(refusal(s.slos[0]), "no records of repeat "));
    const std::size_t last_line = lines.rfind('\n', lines.size() - 2) + 1;
    write(records, lines.substr(0, last_line));
    CHECK(holds(refusal(s.slos[0]), "whole lines, the result beside it reports"));

    // A later gate of the same program was killed: its gaps, whole lines and half of one.
    write(records, lines + replaced(lines.substr(last_line), "taken elsewhere", "killed") +
                       lines.substr(last_line, 100));
    write(files.file("events.bin"), events + "1234abc");
    for (std::size_t i = 0; i < 3; ++i)
        check_same(judge(records, s.slos, "taken elsewhere")[i], r.verdicts()[i]);
    std::filesystem::remove(records);
    CHECK(holds(refusal(s.slos[0]), "records.jsonl cannot be read"));
    write(files.file("result.json"), "{}");
    CHECK(holds(refusal(s.slos[0]), "is not a result"));
    std::filesystem::remove(files.file("result.json"));
    CHECK(holds(refusal(s.slos[0]), "result.json cannot be read"));
}

// ---- more gaps than are kept

TEST_CASE("a gate of more gaps than are kept says so, decides the same and is judged the same") {
    const slo_list slos = {p90(itl) <= 1_s, mean(itl) <= 1_ms, output_throughput >= 1_tps,
                           goodput(itl <= 1_s) >= 50_pct};
    scenario s = brief(simulated(engine_of(20_ms)), "all gaps kept");
    s.client.threads = 2;
    s.slos = slos;
    const result exact = run(s);
    // The first repeat has 20 requests of 5 to 9 gaps: the second one is more than there is room for.
    const gaps_used_up none_left;
    s.name = "few gaps kept";
    const heard said;
    const result counted = run(s);
    for (std::size_t i = 0; i < 4; ++i)
        CHECK(exact.verdicts()[i].outcome == counted.verdicts()[i].outcome);
    CHECK(outcome_of(counted, "p90(itl) <= 1 s") == verdict::pass);
    CHECK(outcome_of(counted, "mean(itl) <= 1 ms") == verdict::fail);
    CHECK(holds(said.text(), "gaps were too many to keep each one, so its percentiles are within 0.2 %"));
    CHECK(holds(content_of(report_file("summary.md")), "were too many to keep"));
    CHECK(holds(content_of(report_file("report.html")), "were too many to keep"));
    const std::string json = content_of(report_file("result.json"));
    CHECK(holds(json, "\"gaps_counted\": true"));
    CHECK(holds(json, "\"itl_relative_error\": 0.001953125"));
    check_rejudged(exact, slos);
    check_rejudged(counted, slos);
}

TEST_CASE("conversations are judged again, by their first turns and their later ones") {
    scenario s = brief(simulated(engine_of(10_ms)), "conversations judged again");
    s.workload = conversations{.turns = fixed(3), .user_tokens = fixed(40),
                               .output_tokens = fixed(6)};
    s.requests = 36;
    s.slos = {p50(first_turn_ttft) <= 20_s, p50(later_turn_ttft) <= 20_s, mean(tpot) <= 1_s,
              p50(ttft).of(turns(2)) <= 20_s, p50(itl).of(turns(3)) <= 20_s,
              of(cached_share, turns(2)) >= 30_pct, of(error_rate, turns(1, 1)) <= 30_pct,
              goodput(e2e <= 20_s).of(turns(2, 2)) >= 50_pct};
    const result r = run(s);
    check_rejudged(r, s.slos);
    CHECK(outcome_of(r, "cached_share of turns(2) >= 30 %") == verdict::pass);
    CHECK(outcome_of(r, "error_rate <= 1 %") == verdict::pass);  // the guard is on all
    CHECK(r.verdicts()[3].requests == 2 * r.verdicts()[0].requests);
    CHECK(r.measured(p50(ttft).of(turns(2))) == r.measured(p50(later_turn_ttft)));
    CHECK(r.measured(p50(ttft).of(turns(1, 1))) == r.measured(p50(first_turn_ttft)));
    CHECK(holds(content_of(report_file("result.json")), "\"of\": \"turns(2, 2)\""));
    CHECK(holds(content_of(report_file("summary.md")), "p50(itl) of turns(3)"));
    const past_gate past = read_result(report_file("result.json")).gates.back();
    CHECK(past.slos[0].of.empty());
    CHECK(past.slos[3].of == types::text("turns(2)"));
}
