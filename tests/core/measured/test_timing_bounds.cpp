// One repeat read in several ways: as measured, with what the client was late with counted against the
// server, and without it.
#include "llmbench.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/timing_bounds.hpp"
#include "support/timelines.hpp"


using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;

namespace {

struct readings {
    double best = 0, measured = 0, worst = 0;
};
readings read(const statistic_data& s, const repeat_data& d) {
    return {evaluate(s, d, timing_bound::optimistic), evaluate(s, d),
            evaluate(s, d, timing_bound::pessimistic)};
}
template <class S> readings read(const S& s, const repeat_data& d) { return read(s.data, d); }
template <class M> statistic_data value_of_run(M m) { return make(statistic_kind::value, m).data; }

/// 20 answers, so many of them sent late by this.
repeat_data sent_late(int how_many, double late_ms) {
    repeat_data d = steady_repeat(80);
    for (std::size_t i = 0; i < static_cast<std::size_t>(how_many); ++i)
        d.records[i].late_ns = static_cast<long long>(late_ms * 1e6);
    note_lateness(d);
    return d;
}

}  // namespace

TEST_CASE("where nothing was late every reading is as measured") {
    repeat_data d = sent_late(0, 0);
    d.window = time_interval::between(at_ms(100), at_ms(1100));
    for (const auto& s : {mean(ttft).data, p99(itl).data, mean(tpot).data, p50(e2e).data,
                          value_of_run(output_throughput)}) {
        CAPTURE(str(s.name));
        const readings r = read(s, d);
        CHECK(r.best == r.measured);
        CHECK(r.worst == r.measured);
    }
}

TEST_CASE("a first token that was read with later ones may have come earlier") {
    repeat_data d = repeat_of({answered(0, 80), answered(100, 80)});
    d.records[0].first_early_ns = 20'000'000;
    const readings first = read(max(ttft), d), pace = read(max(tpot), d), end = read(max(e2e), d);
    CHECK(read(min(prefill_speed), d).worst == read(min(prefill_speed), d).measured);
    CHECK(evaluate(mean(ttft).data, d, timing_bound::optimistic) == about(0.070));
    CHECK(first.measured == about(0.080));
    CHECK(first.worst == about(0.080));
    CHECK(pace.best == pace.measured);
    CHECK(pace.worst == about(pace.measured + 0.020 / 10));
    CHECK(end.best == end.worst);
}

TEST_CASE("what was sent late is not the server's at best") {
    // One of 20 is late: its own answer may have been that much earlier.
    repeat_data one = sent_late(1, 4);
    CHECK(one.late_stretches.empty());
    CHECK(read(mean(ttft), one).best == about(0.080 - 0.004 / 20));
    CHECK(read(mean(ttft), one).worst == about(0.080));
    CHECK(read(p50(ttft), one).best == about(0.080));
    // By over 5 ms, and over 1 % of all: any may have hindered any other.
    const repeat_data many = sent_late(1, 6);
    CHECK(many.late_stretches.size() == 1);
    CHECK(read(p50(ttft), many).best == about(0.074));
    CHECK(read(p50(e2e), many).best == about(read(p50(e2e), many).measured - 0.006));
    // Nothing of it is in what counts from the send, or from the first token.
    for (const auto& s : {mean(tpot).data, p50(itl).data, p50(ttft_from_send).data})
        CHECK(read(s, many).best == read(s, many).measured);
}

TEST_CASE("no time is less than none, however late its send was") {
    repeat_data d = sent_late(20, 500);
    CHECK(read(max(ttft), d).best == 0);
    CHECK(read(max(e2e), d).best == 0);
}

TEST_CASE("users who waited for a late client would have asked for more") {
    repeat_data d = sent_late(20, 18);  // of the 180 ms that each request takes
    d.window = time_interval::between(at_ms(0), at_ms(2000));
    CHECK(d.late_part == about(0.1));
    for (const auto& s : {value_of_run(output_throughput), value_of_run(request_throughput)}) {
        const readings r = read(s, d);
        CHECK(r.best == about(r.measured / 0.9));
        CHECK(r.worst == r.measured);
    }
}

TEST_CASE("a late send is one by a limit, and early ones are none") {
    repeat_data d = sent_late(4, 3);
    for (std::size_t i = 4; i < 20; ++i) d.records[i].late_ns = -1000;
    CHECK(late_fraction_of(d, 0.002) == about(0.2));
    CHECK(late_fraction_of(d, 0.003) == 0);
    d.records[0].dispatched_ns = 0;  // never sent
    CHECK(late_fraction_of(d, 0.002) == about(3.0 / 19));
    CHECK(late_fraction_of(repeat_data(), 0.002) == 0);
}

// ---- whom a late send may have delayed

namespace {

/// 20 answers of an open loop, each of 180 ms with a ttft of 80 ms, planned so many ms after another.
repeat_data planned_every(double ms) {
    vector<request> requests;
    for (int i = 0; i < 20; ++i) requests.push_back(answered(ms * i, 80));
    repeat_data d = repeat_of(requests);
    d.asked_rate = 1000 / ms;
    return d;
}
void send_late_by(repeat_data& d, std::size_t i, double ms) {
    d.records[i].late_ns = static_cast<long long>(ms * 1e6);
}
/// The best mean ttft in ms.
double best_mean(repeat_data d, const repeat_data* twin = nullptr) {
    note_lateness(d, twin);
    return 1000 * read(mean(ttft), d).best;
}

}  // namespace

TEST_CASE("a late send delays nobody who came when the server was idle") {
    // 9 are late by 1 ms, one by 50: at best 10 took 80 ms, 9 took 79, and one 30.
    repeat_data d = planned_every(300);
    for (std::size_t i = 0; i < 9; ++i) send_late_by(d, i, 1);
    send_late_by(d, 14, 50);
    CHECK(best_mean(d) == about((10 * 80 + 9 * 79 + 30) / 20.0));
    note_lateness(d);
    CHECK(d.late_stretches.size() == 20);
    CHECK(1000 * read(p90(ttft), d).best == about(80));  // the 18th of 20
    CHECK(1000 * read(p90(e2e), d).best == about(180));
    // Without one over 5 ms each counts for itself.
    d.records[14].late_ns = 0;
    CHECK(best_mean(d) == about((11 * 80 + 9 * 79) / 20.0));
}

TEST_CASE("a late send may delay all who come until the server is idle, however punctual they are") {
    // The server always has a request: a queue hands on the delay of the first one.
    repeat_data d = planned_every(100);
    send_late_by(d, 0, 50);
    for (std::size_t i = 1; i < 10; ++i) send_late_by(d, i, 1);
    CHECK(best_mean(d) == about(30));
    note_lateness(d);
    CHECK(1000 * read(p90(ttft), d).best == about(30));
    // Four in a row, and 16 alone that are late by 1 ms.
    vector<request> requests;
    for (int i = 0; i < 20; ++i) requests.push_back(answered(i < 4 ? 100 * i : 300 * i, 80));
    repeat_data some = repeat_of(requests);
    some.asked_rate = 4;
    send_late_by(some, 0, 50);
    for (std::size_t i = 4; i < 20; ++i) send_late_by(some, i, 1);
    CHECK(best_mean(some) == about((4 * 30 + 16 * 79) / 20.0));
    note_lateness(some);
    CHECK(1000 * read(p90(ttft), some).best == about(79));
}

TEST_CASE("where a server is not known to be idle any late send may have delayed any request") {
    repeat_data d = planned_every(300);
    send_late_by(d, 14, 50);
    CHECK(best_mean(d) == about((19 * 80 + 30) / 20.0));
    repeat_data users = d;  // who send once they have their answers
    users.asked_rate = 0;
    CHECK(best_mean(users) == about(30));
    repeat_data turns = d;  // which wait for those before
    turns.records[3].turn = 1;
    CHECK(best_mean(turns) == about(30));
    repeat_data branches = d;
    branches.records[3].depth = 1;
    CHECK(best_mean(branches) == about(30));
    // The sixth was given up, and the server may go on with it: of 19 answers, 14 came after it.
    for (const request_status status : {request_status::timeout, request_status::protocol,
                                        request_status::cancelled, request_status::left}) {
        repeat_data given_up = d;
        given_up.records[5].status = status;
        CHECK(best_mean(given_up) == about((5 * 80 + 14 * 30) / 19.0));
    }
    repeat_data refused = d;  // by the server, which has ended it
    refused.records[5].status = request_status::http;
    CHECK(best_mean(refused) == about((18 * 80 + 30) / 19.0));
}

TEST_CASE("a late send to one of two servers at once may delay what the other is asked") {
    repeat_data d = planned_every(300), other = repeat_of({answered(150, 80)});
    send_late_by(d, 0, 50);
    CHECK(best_mean(d) == about((30 + 19 * 80) / 20.0));
    // It ends at 330 ms, when the second one has been sent.
    other.asked_rate = d.asked_rate;
    CHECK(best_mean(d, &other) == about((2 * 30 + 18 * 80) / 20.0));
    send_late_by(d, 0, 0);
    CHECK(best_mean(d, &other) == about(80));
    send_late_by(other, 0, 50);
    CHECK(best_mean(d, &other) == about((2 * 30 + 18 * 80) / 20.0));
}

TEST_CASE("gaps of tokens that came at once have all the time before them, longest first") {
    repeat_data d = repeat_of({request(0).content(100).content(130).content(130).content(130)
                                   .finish(130).usage(130, 10, 4).done(130)});
    vector<std::uint32_t> us;
    for_each_gap(d, 0, timing_bound::buffered, [&](std::uint32_t one) { us.push_back(one); });
    CHECK(us == vector<std::uint32_t>{30000, 15000, 10000});
    us.clear();
    for_each_gap(d, 0, timing_bound::pessimistic, [&](std::uint32_t one) { us.push_back(one); });
    CHECK(us == vector<std::uint32_t>{30000, 0, 0});
}

TEST_CASE("of a pair the baseline is read the other way") {
    CHECK(opposite(timing_bound::pessimistic) == timing_bound::optimistic);
    CHECK(opposite(timing_bound::optimistic) == timing_bound::pessimistic);
    CHECK(opposite(timing_bound::baseline_buffered) == timing_bound::buffered);
    CHECK(opposite(timing_bound::buffered) == timing_bound::measured);
}
