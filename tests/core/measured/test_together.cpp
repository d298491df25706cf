// The parts of a repeat that several programs sent, put together.
#include "llmbench.hpp"
#include "core/judging/checks.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/rule.hpp"
#include "core/described/causes.hpp"
#include "core/measured/ranks.hpp"
#include "core/wire/http.hpp"
#include "extensions/machines/core/reports.hpp"
#include "extensions/machines/core/together.hpp"
#include "support/sample_measurements.hpp"
#include "support/texts.hpp"
#include "support/timelines.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using sample_measurements::measurement;
using texts::holds;

namespace {

constexpr long long ms = 1000000;

/// Requests of a trace with this many starts, of which each program has every count-th.
vector<request> answers(std::size_t first, std::size_t step, std::size_t all = 12) {
    vector<request> mine;
    for (std::size_t i = first; i < all; i += step) {
        const double at = 10.0 * static_cast<double>(i);
        request q(at);
        if (i % 5 != 4)
            for (std::size_t k = 0; k <= i; ++k)
                q.content(at + 20 + 7 * static_cast<double>(k));
        if (i % 5 == 4) mine.push_back(timelines::failed(at));
        else mine.push_back(q.finish(at + 200).usage(at + 200, 20, static_cast<int>(i) + 1)
                                .done(at + 200));
    }
    return mine;
}
/// One program's part, on a clock that is ahead of the first one's by so much.
repeat_data measured_part(const vector<request>& mine, run_variant variant, std::size_t index,
                          std::size_t count, double window_ms, long long clock_ns) {
    repeat_data d = repeat_of(mine);
    d.variant = variant;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        d.records[i].variant = variant;
        d.records[i].id = request_id(id_prefix(1, variant, 0), index + i * count);
    }
    d.window = time_interval::between(at_ms(0), at_ms(window_ms));
    rank_part r;
    r.index = static_cast<int>(index);
    r.count = static_cast<int>(count);
    r.host = printed("host-%zu", index);
    r.start_ns = at_ms(0);
    d.ranks = {r};
    move_clock(d, clock_ns);
    return d;
}
repeat_data one_part(std::size_t index, std::size_t count, long long clock_ns = 0) {
    repeat_data d = measured_part(answers(index, count), run_variant::candidate, index, count, 110,
                                  clock_ns);
    d.asked_rate = 25;
    d.achieved_rate = 24;
    d.cpu_utilization = 0.1 * static_cast<double>(index + 1);
    d.connections_opened = 3;
    return d;
}
/// One program's part of one of two variants that are loaded at once: of 600 requests in 120 s.
/// The candidate's answers begin 1 ms later.
repeat_data part_at_once(run_variant variant, std::size_t index, std::size_t count) {
    vector<request> mine;
    for (std::size_t i = index; i < 600; i += count)
        mine.push_back(answered(200.0 * static_cast<double>(i),
                                (variant == run_variant::baseline ? 20.0 : 21.0) +
                                    static_cast<double>(i % 7)));
    return measured_part(mine, variant, index, count, 120000,
                         1000000 * ms * static_cast<long long>(index));
}
measurement at_once_of(const repeat_data& mine, const repeat_data& other) {
    measurement m;
    m.is_at_once = m.by_slices = true;
    m.rule = rule_of({}, 1, 1, 0, 1);
    m.candidate.push_back(mine);
    m.baseline.push_back(other);
    return m;
}
vector<repeat_data> parts(std::size_t count) {
    vector<repeat_data> all;
    for (std::size_t i = 0; i < count; ++i)
        all.push_back(one_part(i, count, 1000000 * ms * static_cast<long long>(i)));
    return all;
}
void check_same_requests(const repeat_data& a, const repeat_data& b) {
    REQUIRE(a.records.size() == b.records.size());
    for (std::size_t i = 0; i < a.records.size(); ++i) {
        const record &x = a.records[i], &y = b.records[i];
        CHECK(x.scheduled_ns == y.scheduled_ns);
        CHECK(x.first_token_ns == y.first_token_ns);
        CHECK(x.end_ns == y.end_ns);
        CHECK(x.status == y.status);
        REQUIRE(x.events == y.events);
        for (std::size_t k = 0; k < gap_count(x); ++k)
            CHECK(a.gaps[a.gap_offsets[i] + k] == b.gaps[b.gap_offsets[i] + k]);
    }
}

}  // namespace

TEST_CASE("parts on clocks of their own become the repeat that one program would have seen") {
    const repeat_data whole = one_part(0, 1);
    for (const std::size_t count : {2u, 3u, 4u}) {
        const repeat_data all = together(parts(count), false);
        check_same_requests(all, whole);
        CHECK(all.window.from_ns() == whole.window.from_ns());
        CHECK(all.window.to_ns() == whole.window.to_ns());
        CHECK(all.asked_rate == 25.0 * static_cast<double>(count));
        CHECK(all.achieved_rate == 24.0 * static_cast<double>(count));
        CHECK(all.cpu_utilization == doctest::Approx(0.1 * static_cast<double>(count)));
        CHECK(all.connections_opened == 3 * static_cast<long long>(count));
        REQUIRE(all.ranks.size() == count);
        for (std::size_t i = 0; i < count; ++i) {
            CHECK(all.ranks[i].index == static_cast<int>(i));
            CHECK(all.ranks[i].start_ns == at_ms(0));
        }
    }
}

TEST_CASE("what a rank packs of both variants is each variant's again") {
    for (const run_variant variant : {run_variant::candidate, run_variant::baseline}) {
        const repeat_data sent = part_at_once(variant, 1, 2);
        const repeat_data again = unpacked(packed(sent), variant);
        CHECK(again.variant == variant);
        CHECK(again.window.from_ns() == sent.window.from_ns());
        CHECK(again.window.to_ns() == sent.window.to_ns());
        check_same_requests(again, sent);
        for (const record& r : again.records) CHECK(r.variant == variant);
        REQUIRE(again.ranks.size() == 1);
        CHECK(again.ranks[0].index == 1);
        CHECK(again.ranks[0].start_ns == sent.ranks[0].start_ns);
    }
}

TEST_CASE("ranks that load both variants at once see what one program would, slice by slice") {
    const auto gathered_from = [](run_variant variant, std::size_t count) {
        vector<repeat_data> all;
        all.push_back(part_at_once(variant, 0, count));
        for (std::size_t i = 1; i < count; ++i)
            all.push_back(unpacked(packed(part_at_once(variant, i, count)), variant));
        return together(std::move(all), false);
    };
    const repeat_data own = part_at_once(run_variant::candidate, 0, 1);
    const repeat_data twin = part_at_once(run_variant::baseline, 0, 1);
    const measurement whole = at_once_of(own, twin);
    for (const std::size_t count : {2u, 3u}) {
        const repeat_data mine = gathered_from(run_variant::candidate, count);
        const repeat_data other = gathered_from(run_variant::baseline, count);
        check_same_requests(mine, own);
        check_same_requests(other, twin);
        const measurement m = at_once_of(mine, other);
        for (const slo& s : {mean(ttft) <= 1.1 * baseline, p90(ttft) <= 1.2 * baseline,
                             mean(itl) <= 1.1 * baseline, output_throughput >= 0.9 * baseline,
                             error_rate <= baseline + 1_pct}) {
            CAPTURE(str(s.text()));
            const objective_columns a = columns_of(whole, s), b = columns_of(m, s);
            REQUIRE(a.at_once.size() == 1);
            REQUIRE(b.at_once.size() == 1);
            const values_at_once &of_one = a.at_once[0], &of_all = b.at_once[0];
            CHECK(of_all.slices == 24);
            CHECK(of_one.slices == 24);
            CHECK(of_all.mine.values.size() >= 24);
            CHECK(of_all.mine.values == of_one.mine.values);
            CHECK(of_all.mine.slices == of_one.mine.slices);
            CHECK(of_all.other.values == of_one.other.values);
            CHECK(of_all.other.slices == of_one.other.slices);
            CHECK(b.mine.values() == a.mine.values());
            CHECK(b.other.values() == a.other.values());
        }
        // 23.99 ms against 22.99 ms, with the same noise in both.
        const auto judged = [](measurement e) {
            e.slos = {mean(ttft) <= 1.1 * baseline};
            return sample_measurements::judged(e, e.slos[0]);
        };
        const slo_verdict v = judged(m);
        CHECK(v.outcome == verdict::pass);
        CHECK(v.estimate.value == doctest::Approx(1.0435).epsilon(0.0001));
        CHECK(str(v.line()) == str(judged(whole).line()));
    }
}

TEST_CASE("users of several programs have the window that all of them have") {
    vector<repeat_data> all = parts(3);
    const time_interval second = all[1].window, third = all[2].window;
    all[1].window = time_interval::between(second.from_ns() + 20 * ms, second.to_ns());
    all[2].window = time_interval::between(third.from_ns(), third.to_ns() - 30 * ms);
    const repeat_data d = together(std::move(all), true);
    CHECK(d.window.from_ns() == at_ms(20));
    CHECK(d.window.to_ns() == at_ms(80));
}

TEST_CASE("gaps that lie in another order than the plan's are counted as they are") {
    // Answers end in the order of a queue, and give their blocks back from the front.
    repeat_data d;
    request_log log;
    for (std::size_t i = 0; i < 6; ++i) {
        record r;
        r.id = printed("llmbench-1c-0-%zu", 5 - i);
        r.status = request_status::ok;
        r.events = 2001;
        r.scheduled_ns = r.sent_ns = r.first_token_ns = at_ms(1);
        r.last_token_ns = r.end_ns = at_ms(900);
        gap_list gaps;
        for (std::size_t k = 0; k < 2000; ++k)
            gaps.push_back(static_cast<std::uint32_t>(1000 * (6 - i)));
        log.add(5 - i, std::move(r), gaps);
    }
    log.move_into(d);
    d.window = time_interval::between(at_ms(0), at_ms(1000));
    request_log again = request_log::again(d);
    again.count_all(d.window);
    again.move_into(d);
    REQUIRE(d.longest_gaps.size() == 6);
    for (std::size_t i = 0; i < 6; ++i) CHECK(d.longest_gaps[i] == 1000 * (i + 1));
}

TEST_CASE("gaps that one program has counted are counted together with the others'") {
    vector<repeat_data> all = parts(2);
    request_log log = request_log::again(all[1]);
    log.count_all(all[1].window);
    log.move_into(all[1]);
    REQUIRE(all[1].gaps_counted);
    const repeat_data whole = one_part(0, 1);
    std::uint64_t gaps = 0, sum_us = 0;
    for (std::size_t i = 0; i < whole.records.size(); ++i)
        for (std::size_t k = 0; is_pooled(whole.records[i]) && k < gap_count(whole.records[i]); ++k) {
            ++gaps;
            sum_us += whole.gaps[whole.gap_offsets[i] + k];
        }
    const repeat_data d = together(std::move(all), false);
    CHECK(d.gaps_counted);
    CHECK(d.pooled_gaps.size() == gaps);
    CHECK(d.pooled_gaps.sum() == sum_us);
    CHECK(d.longest_gaps.size() == whole.records.size());
}

TEST_CASE("what went wrong in one part went wrong") {
    vector<repeat_data> all = parts(3);
    all[1].interrupted = true;
    all[2].target_gone = "it went away";
    all[1].lost_fraction = 0.01;
    all[2].lost_fraction = 0.25;
    all[0].disturbed_requests = all[2].disturbed_requests = 2;
    const repeat_data d = together(std::move(all), false);
    CHECK(d.interrupted);
    CHECK(d.target_gone == "it went away");
    CHECK(d.lost_fraction == 0.25);
    CHECK(d.disturbed_requests == 4);
}

TEST_CASE("what a part's client could not send is no failure in the whole, either") {
    vector<repeat_data> all = parts(2);
    record& unsent = all[1].records[0];
    unsent.status = request_status::connect;
    unsent.error = "client: no free port";
    const repeat_data d = together(std::move(all), false);
    int exempt = 0;
    for (const record& r : d.records) exempt += r.exempt;
    CHECK(exempt == 1);
}

TEST_CASE("a part that begins too far from the others makes a gate invalid, and is named") {
    measurements e;
    e.max_skew_s = 0.005;
    vector<repeat_data> all = parts(4);
    all[2].ranks[0].off_s = 0.0045;
    all[2].ranks[0].error_s = 0.0001;
    e.candidate = {together(all, false)};
    CHECK(described(fault_of_gate(e)) == "");
    all[2].ranks[0].off_s = 0.020;
    e.candidate = {together(all, false)};
    CHECK(described(fault_of_gate(e)) == "client: rank 2 of 4 on host-2 began 20 ms late (known to within "
                                    "100 us), up to 5 ms is allowed");
    all[2].ranks[0].off_s = -0.0049;  // and what nobody can exclude
    all[2].ranks[0].error_s = 0.001;
    e.candidate = {together(all, false)};
    CHECK(holds(described(fault_of_gate(e)), "rank 2 of 4 on host-2 began 4.9 ms early"));
}

TEST_CASE("reports say of each program the worst of all repeats") {
    vector<rank_part> seen;
    for (const repeat_data& d : parts(2)) seen.push_back(d.ranks[0]);
    seen.push_back(seen[1]);  // of the second repeat
    seen[2].off_s = -0.003;
    seen[2].memory_bytes = 3 << 20;
    seen[2].synchronised = false;
    CHECK(programs_text(seen) ==
          "2 programs on 2 machines sent the load; they began within 3 ms, sent late by p99 0 ms, "
          "used 0.0 % of a core and 0 MiB to 3 MiB; the clocks of 1 of them are not known to be "
          "synchronised");
    CHECK(programs_text({seen[0]}) == "");
}

TEST_CASE("how often requests were sent again is a question to the whole and to no part of it") {
    const auto part_of = [](int requests, int resent) {
        repeat_data d = steady_repeat(80, requests);
        for (int i = 0; i < resent; ++i) d.records[static_cast<std::size_t>(i)].resends = 1;
        d.ranks = {rank_part{}};
        d.ranks[0].start_ns = at_ms(0);
        return d;
    };
    const auto failed = [&](int resent_here, int resent_there) {
        const repeat_data all =
            together({part_of(100, resent_here), part_of(200, resent_there)}, false);
        int n = 0;
        for (const record& r : all.records) n += r.status != request_status::ok;
        CHECK(n == static_cast<int>(all.ranks[0].failed + all.ranks[1].failed));
        return n;
    };
    CHECK(failed(1, 0) == 0);
    CHECK(failed(3, 0) == 0);  // 3 % of the part, 1 % of the whole
    CHECK(failed(2, 2) == 4);  // as many as none of them would be failed for
    CHECK(failed(0, 4) == 4);
}
