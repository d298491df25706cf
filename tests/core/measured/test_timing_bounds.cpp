// One repeat read in three ways: as measured, with the client's delays counted against the server,
// and without them.
#include "llmbench.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/request_log.hpp"
#include "support/timelines.hpp"

#include <cmath>
#include <utility>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;

namespace {

client_stall stall_ms(double from, double to) {
    const long long a = at_ms(from), b = at_ms(to);
    return {a, b, b - a, b - a};
}
struct readings {
    double best = 0, measured = 0, worst = 0;
};
template <class S> readings read(const S& s, const repeat_data& d) {
    return {evaluate(s.data, d, timing_bound::optimistic), evaluate(s.data, d),
            evaluate(s.data, d, timing_bound::pessimistic)};
}
readings read(const statistic_data& s, const repeat_data& d) {
    return {evaluate(s, d, timing_bound::optimistic), evaluate(s, d), evaluate(s, d, timing_bound::pessimistic)};
}
template <class M> statistic_data of_run(M m) { return make(statistic_kind::value, m).data; }

/// 11 tokens from 100 to 200 ms, the client away from 95 to 125: those of 100, 110 and 120 were
/// stamped at 124.
repeat_data first_tokens_late() {
    request r(0);
    for (const double at : {124, 124, 124, 130, 140, 150, 160, 170, 180, 190, 200}) r.content(at);
    r.finish(200).usage(200, 10, 11).done(200);
    repeat_data d = repeat_of({r});
    d.stalls = {stall_ms(95, 125)};
    return d;
}

}  // namespace

TEST_CASE("without a stretch every reading is as measured") {
    repeat_data d = steady_repeat(80);
    d.window = time_interval::between(at_ms(100), at_ms(1100));
    for (const auto& s : {mean(ttft).data, p99(itl).data, mean(tpot).data, p50(e2e).data,
                          of_run(output_throughput)}) {
        CAPTURE(str(s.name));
        const readings r = read(s, d);
        CHECK(r.best == r.measured);
        CHECK(r.worst == r.measured);
    }
    // A stretch elsewhere changes nothing, either.
    d.stalls = {stall_ms(-500, -400)};
    CHECK(read(p99(itl), d).worst == read(p99(itl), d).best);
    CHECK_FALSE(client_had_part(steady_repeat(80)));
    CHECK(client_had_part(d));
}

TEST_CASE("a first token may have come as much earlier as the client was away before its stamp") {
    const repeat_data d = first_tokens_late();
    const readings first = read(p50(ttft), d);
    CHECK(first.measured == about(0.124));
    CHECK(first.worst == first.measured);  // counted from when it was to be sent
    CHECK(first.best == about(0.095));
    const readings pace = read(mean(tpot), d);
    CHECK(pace.measured == about(0.0076));
    CHECK(pace.worst == about(0.0105));  // the truth, 10 ms, lies between
    CHECK(pace.best == about(0.0076));
    CHECK(read(p50(decode_speed), d).worst == about(1 / 0.0105));
    CHECK(read(p50(ttft_from_send), d).best == about(0.095));
}

TEST_CASE("what ends a stretch is as uncertain as the rest of it, though gaps are microseconds") {
    request r(0);
    for (const double at : {100.0, 110.0, 150.0006}) r.content(at);
    r.finish(151).usage(151, 10, 3).done(151);
    repeat_data d = repeat_of({r});
    d.window = time_interval::between(at_ms(90), at_ms(150));
    d.stalls = {stall_ms(112, 150.0006)};
    CHECK(d.gaps[d.gap_offsets[0] + 1] == 40001);  // its gaps put it after the end
    CHECK(read(max(itl), d).measured == about(0.040001));
    CHECK(read(max(itl), d).best == about(0.010));
    CHECK(read(of_run(output_throughput), d).best > read(of_run(output_throughput), d).measured);
}

TEST_CASE("a last token may have come earlier, and then the pace was better") {
    request r(0);
    for (const double at : {100, 110, 120, 130, 140, 150, 160, 170, 219, 219, 219}) r.content(at);
    r.finish(219).usage(219, 10, 11).done(219);
    repeat_data d = repeat_of({r});
    d.stalls = {stall_ms(175, 220)};
    const readings pace = read(mean(tpot), d);
    CHECK(pace.measured == about(0.0119));
    CHECK(pace.best == about(0.0075));
    CHECK(pace.worst == pace.measured);
    CHECK(read(p50(e2e), d).best == about(0.175));
    CHECK(read(mean(itl), d).best == about(0.0075));
}

TEST_CASE("gaps that a stretch ends are shorter at best, those that it begins longer at worst") {
    const repeat_data d = first_tokens_late();
    // Measured: 0, 0, 6, then 10 each.
    const readings longest = read(max(itl), d);
    CHECK(longest.measured == about(0.010));
    CHECK(longest.best == about(0.010));
    // All three may have come at 95 ms, and the fourth at 130.
    CHECK(longest.worst == about(0.035));
    // Half of them is no more than half of the time that three gaps had together.
    CHECK(evaluate(percentile(itl, 0.9).data, d, timing_bound::pessimistic) == about(0.0175));
    CHECK(read(p50(itl), d).worst == about(0.010));
    CHECK(evaluate(goodput(itl <= 20_ms).data, d, timing_bound::pessimistic) == 0);
    CHECK(evaluate(goodput(itl <= 20_ms).data, d) == 1);
}

TEST_CASE("a client that reads everything at once proves no median gap") {
    // The server says something every 30 ms; the client comes every 300 ms and finds ten of them.
    request r(0);
    repeat_data d;
    for (int burst = 1; burst <= 10; ++burst)
        for (int k = 0; k < 10; ++k) r.content(300.0 * burst);
    r.finish(3000).usage(3000, 10, 100).done(3000);
    d = repeat_of({r});
    for (int burst = 1; burst <= 10; ++burst)
        d.stalls.push_back(stall_ms(300.0 * burst - 298, 300.0 * burst + 1));
    const readings middle = read(p50(itl), d);
    CHECK(middle.measured == 0);
    CHECK(middle.worst >= 0.030);
    CHECK(middle.worst < 0.070);
    CHECK(middle.best == 0);
    CHECK(read(p99(itl), d).worst >= 0.3);
    CHECK(read(mean(itl), d).worst == about((3.0 - 0.3 + 0.298) / 99));
}

TEST_CASE("counted gaps are read as if any of those in question were the longest or the shortest") {
    std::vector<request> requests;
    for (int i = 0; i < 20; ++i) requests.push_back(answered(100.0 * i, 80, 10, 11));
    const repeat_data plain = repeat_of(requests);
    repeat_data counted = plain;
    counted.gaps_counted = true;
    for (std::size_t i = 0; i < counted.records.size(); ++i) {
        counted.longest_gaps.push_back(count_gaps(counted.records[i], counted.gaps,
                                                  counted.gap_offsets[i], counted.pooled_gaps));
        counted.gap_offsets[i] = not_listed;
    }
    CHECK(read(p99(itl), counted).worst == read(p99(itl), counted).best);
    counted.stalls = {stall_ms(95, 125)};
    CHECK(evaluate(p99(itl).data, counted, timing_bound::pessimistic) >= 0.040);
    CHECK(evaluate(p50(itl).data, counted, timing_bound::pessimistic) == about(0.010).epsilon(0.01));
    CHECK(evaluate(p50(itl).data, counted, timing_bound::optimistic) == about(0.010).epsilon(0.01));
    CHECK(evaluate(percentile(itl, 0.01).data, counted, timing_bound::optimistic) == 0);
    CHECK(request_value(metric_id::itl, counted, 0, timing_bound::pessimistic) == about(0.040));
    CHECK(request_value(metric_id::itl, counted, 0, timing_bound::optimistic) == 0);
    CHECK(request_value(metric_id::itl, counted, 10, timing_bound::optimistic) == about(0.010));
}

TEST_CASE("what was sent late is not the server's at best") {
    repeat_data d = steady_repeat(80);
    for (record& r : d.records) {
        r.late_ns = 20'000'000;
        r.dispatched_ns += 20'000'000;
        r.sent_ns += 25'000'000;
    }
    CHECK(read(mean(ttft), d).best == about(0.060));
    CHECK(read(mean(ttft), d).worst == about(0.080));
    CHECK(read(mean(tpot), d).best == read(mean(tpot), d).measured);
    CHECK(client_had_part(d));
    // Nor is what the client slept through between acting on it and sending it.
    d.stalls = {stall_ms(21, 24)};
    CHECK(request_value(metric_id::ttft, d, 0, timing_bound::optimistic) == about(0.057));
    CHECK(request_value(metric_id::ttft, d, 1, timing_bound::optimistic) == about(0.060));
    CHECK(evaluate(goodput(ttft <= 70_ms).data, d, timing_bound::optimistic) == 1);
    CHECK(evaluate(goodput(ttft <= 70_ms).data, d) == 0);
}

TEST_CASE("a window's rate leaves out what may have come before it, and the time that was lost") {
    repeat_data d = steady_repeat(80);  // 11 tokens each
    d.window = time_interval::between(at_ms(100), at_ms(1100));
    const double measured = evaluate(of_run(output_throughput), d);
    d.stalls = {stall_ms(90, 121)};  // tokens stamped at 100, 110, 120
    CHECK(evaluate(of_run(output_throughput), d) == measured);
    CHECK(evaluate(of_run(output_throughput), d, timing_bound::pessimistic) == about(measured - 3));
    CHECK(evaluate(of_run(output_throughput), d, timing_bound::optimistic) == about(measured / 0.979));
    d.stalls = {stall_ms(1090, 1121)};
    CHECK(evaluate(of_run(output_throughput), d, timing_bound::pessimistic) == measured);
    CHECK(evaluate(of_run(output_throughput), d, timing_bound::optimistic) > measured / 0.99);
    d.stalls = {stall_ms(0, 2000)};
    CHECK(evaluate(of_run(output_throughput), d, timing_bound::optimistic) == infinity);
}

TEST_CASE("until the server has worked off what the client had missed to send, it is not judged") {
    // Every 100 ms one, each takes 180 ms; from 450 to 1050 nothing is sent, then seven at once.
    std::vector<request> requests;
    for (int i = 0; i < 30; ++i) {
        const bool missed = i >= 5 && i <= 10;
        const double sent = missed ? 1050 : 100.0 * i;
        request r = answered(100.0 * i, sent - 100.0 * i + (missed ? 400 : 80), 10, 11);
        requests.push_back(r.sent(sent));
    }
    repeat_data d = repeat_of(requests);
    for (record& r : d.records) r.late_ns = r.dispatched_ns - r.scheduled_ns;
    note_bunches(d);
    CHECK(d.bunched.empty());  // nothing says that the client did not run
    d.stalls = {stall_ms(450, 1060)};
    note_bunches(d);
    REQUIRE(d.bunched.size() == 1);
    CHECK(d.bunched[0].from_ns == at_ms(450));
    CHECK(d.bunched[0].to_ns >= at_ms(1450));
    CHECK(d.bunched[0].to_ns <= at_ms(1700));
    CHECK(d.bunched[0].most_delay_ns == 610'000'000);
    // What it had then, and until all of that is done, may be late by as much as the latest of it.
    CHECK(request_value(metric_id::ttft, d, 4, timing_bound::optimistic) == 0);  // it was still answered
    CHECK(request_value(metric_id::ttft, d, 5, timing_bound::optimistic) == about(0.340));
    CHECK(request_value(metric_id::ttft, d, 7, timing_bound::optimistic) == about(0.140));
    CHECK(request_value(metric_id::e2e, d, 12, timing_bound::optimistic) == 0);  // among them
    CHECK(request_value(metric_id::ttft, d, 2, timing_bound::optimistic) == about(0.080));
    CHECK(request_value(metric_id::ttft, d, 25, timing_bound::optimistic) == about(0.080));
    CHECK(request_value(metric_id::ttft, d, 12, timing_bound::pessimistic) == about(0.080));
    CHECK(request_value(metric_id::decode_speed, d, 12, timing_bound::optimistic) == infinity);
    // A single one is no bunch.
    d.stalls = {stall_ms(385, 401)};
    note_bunches(d);
    CHECK(d.bunched.empty());
}

TEST_CASE("users who all begin late are a bunch until each of them has an answer") {
    // Four users, one request after the other of each; the client was stalled as they began.
    std::vector<request> requests;
    for (int i = 0; i < 10; ++i)
        for (int user = 0; user < 4; ++user)
            requests.push_back(answered(30 + 100.0 * i, 50, 10, 5));  // over after 90 ms
    repeat_data d = repeat_of(requests);
    d.stalls = {stall_ms(0, 31)};
    note_bunches(d);
    REQUIRE(d.bunched.size() == 1);
    CHECK(d.bunched[0].to_ns >= at_ms(80));
    CHECK(d.bunched[0].to_ns < at_ms(130));
    CHECK(evaluate(mean(tpot).data, d, timing_bound::optimistic) > 0.8 * evaluate(mean(tpot).data, d));
}
