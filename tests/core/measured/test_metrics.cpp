// Metrics: every definition on timelines whose numbers can be worked out on paper.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/request_log.hpp"
#include "support/timelines.hpp"

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;

namespace {

predicate is_fast() { return ttft <= 300_ms && tpot <= 30_ms; }

}  // namespace

TEST_CASE("a stream of three tokens an event has the numbers worked out by hand") {
    const repeat_data d = repeat_of({worked_example(0)});
    const record& r = d.records[0];
    CHECK(r.status == request_status::ok);
    CHECK(r.events == 33);
    CHECK(r.output_tokens == 100);
    CHECK(r.prompt_tokens == 50);
    CHECK(r.token_source == token_origin::usage);
    CHECK(str(r.finish_reason) == "stop");
    CHECK(r.first_token_ns == at_ms(200));
    CHECK(r.last_token_ns == at_ms(1160));
    CHECK(r.end_ns == at_ms(1192));

    CHECK(value_of(mean(ttft), d) == about(0.200));
    CHECK(value_of(mean(tpot), d) == about(0.960 / 99));  // 9.697 ms
    CHECK(value_of(p50(itl), d) == about(0.030));
    CHECK(value_of(p99(itl), d) == about(0.030));
    CHECK(value_of(mean(itl), d) == about(0.030));
    CHECK(value_of(mean(e2e), d) == about(1.192));
    CHECK(value_of(mean(normalized_latency), d) == about(1.192 / 100));
    CHECK(value_of(mean(ttft_per_prompt_token), d) == about(0.200 / 50));
    CHECK(value_of(mean(prefill_speed), d) == about(50 / 0.200));
    CHECK(value_of(mean(decode_speed), d) == about(99 / 0.960));
}

TEST_CASE("latency counts from the planned time, not from the send") {
    // The client could not send for 150 ms; its user waited all the same.
    const repeat_data d = repeat_of({request(0).sent(150).content(200).finish(260).done(260)});
    CHECK(value_of(mean(ttft), d) == about(0.200));
    CHECK(value_of(mean(ttft_from_send), d) == about(0.050));
    CHECK(value_of(mean(e2e), d) == about(0.260));
}

TEST_CASE("failed requests are the worst value of every quantile") {
    vector<request> requests;
    for (int i = 1; i <= 8; ++i) requests.push_back(answered(i, 10.0 * i, i));
    requests.push_back(failed(9));
    requests.push_back(failed(10, request_status::http));
    const repeat_data d = repeat_of(requests);
    CHECK(value_of(p50(ttft), d) == about(0.050));
    CHECK(value_of(percentile(ttft, 0.8), d) == about(0.080));
    CHECK(value_of(percentile(ttft, 0.81), d) == infinity);
    CHECK(value_of(p99(tpot), d) == infinity);
    CHECK(value_of(p90(e2e), d) == infinity);
    CHECK(value_of(max(ttft), d) == infinity);
    // Of speeds the worst is 0: two failed, then 1000 / 8 tokens a second.
    CHECK(value_of(min(decode_speed), d) == 0);
    CHECK(value_of(percentile(decode_speed, 0.2), d) == 0);
    CHECK(value_of(percentile(decode_speed, 0.3), d) == about(125));
    CHECK(value_of(p1(prefill_speed), d) == 0);
}

TEST_CASE("every status is a failure but that of who was answered, or left") {
    for (const request_status s :
         {request_status::connect, request_status::tls, request_status::timeout,
          request_status::http, request_status::protocol, request_status::server,
          request_status::truncated, request_status::empty, request_status::cancelled,
          request_status::unsent}) {
        CAPTURE(to_string(s));
        const repeat_data d = repeat_of({answered(0, 100), failed(1, s)});
        CHECK(value_of(error_rate, d) == about(0.5));
        CHECK(value_of(max(ttft), d) == infinity);
        CHECK(value_of(goodput(ttft <= 1_s), d) == about(0.5));
    }
}

TEST_CASE("means are over completed requests") {
    const repeat_data d = repeat_of({answered(0, 100, 10), answered(1, 300, 20), failed(2)});
    CHECK(value_of(mean(ttft), d) == about(0.200));
    CHECK(value_of(mean(tpot), d) == about(0.015));
    CHECK(value_of(mean(decode_speed), d) == about((100 + 50) / 2.0));
    CHECK(std::isnan(value_of(mean(ttft), repeat_of({failed(0)}))));
}

TEST_CASE("gaps are pooled over completed requests, with one infinite gap for each failed one") {
    const repeat_data d = repeat_of({
        answered(0, 100, 10, 4),  // 10 10 10
        answered(1, 100, 20, 3),  // 20 20
        request(2).content(50).content(51).content(52).fails(
            request_status::timeout),  // one infinite
    });
    CHECK(value_of(percentile(itl, 0.5), d) == about(0.010));   // rank 3 of 6
    CHECK(value_of(percentile(itl, 0.51), d) == about(0.020));  // rank 4
    CHECK(value_of(percentile(itl, 0.83), d) == about(0.020));  // rank 5
    CHECK(value_of(percentile(itl, 0.84), d) == infinity);      // rank 6
    CHECK(value_of(mean(itl), d) == about(0.014));
    const auto beyond = [&](double bound) {
        return lb::fraction_of_gaps_beyond(bound, lb::request_values_of(mean(itl).data, d).sorted);
    };
    CHECK(beyond(0.009) == 1);
    CHECK(beyond(0.010) == about(0.5));
    CHECK(beyond(0.020) == about(1.0 / 6));
    CHECK(beyond(1e9) == about(1.0 / 6));
}

TEST_CASE("an answer of one token has no time per output token and is skipped") {
    const repeat_data d = repeat_of({answered(0, 100, 10, 1), answered(1, 100, 20, 5)});
    CHECK(std::isnan(request_value(metric_id::tpot, d, 0)));
    CHECK(value_of(mean(tpot), d) == about(0.020));
    CHECK(value_of(min(decode_speed), d) == about(50));
    CHECK(request_values_of(mean(tpot).data, d).in_order.size() == 1);
    CHECK(request_values_of(mean(ttft).data, d).in_order.size() == 2);
    CHECK(std::isnan(value_of(p50(tpot), repeat_of({answered(0, 100, 10, 1)}))));
}

TEST_CASE("the tokens of the first event are not counted as made after it") {
    // Running usage says that the first event carries 4 of the 10 tokens: 60 ms for the other 6.
    request q(0);
    for (int i = 0; i < 4; ++i)
        q.says(
            100 + 20 * i,
            printed(R"({"choices":[{"delta":{"content":"x"}}],"usage":{"completion_tokens":%d}})",
                    4 + 2 * i));
    const repeat_data d = repeat_of({q.says(170, finish_event).says(171, "[DONE]")});
    CHECK(d.records[0].first_event_tokens == 4);
    CHECK(d.records[0].output_tokens == 10);
    CHECK(value_of(mean(tpot), d) == about(0.010));
    // All of them in the first event: nothing was made after it.
    const repeat_data whole =
        repeat_of({request(0).content(100, 7).usage(101, 5, 7).finish(101).done(102)});
    CHECK(std::isnan(request_value(metric_id::tpot, whole, 0)));
}

TEST_CASE("a predicate holds for a metric that the request has no value for") {
    const repeat_data d = repeat_of({answered(0, 100, 10, 1), answered(1, 400, 10, 1)});
    CHECK(satisfies((tpot <= 1_ms).steps, d, 0));
    CHECK(satisfies((decode_speed >= 1000_tps).steps, d, 0));
    CHECK(satisfies(is_fast().steps, d, 0));
    CHECK_FALSE(satisfies(is_fast().steps, d, 1));
}

TEST_CASE("predicates combine and include their limits") {
    // ttft 200 ms, tpot 20 ms, longest gap 20 ms, e2e 400 ms, 50 tokens/s
    const repeat_data d = repeat_of({answered(0, 200, 20, 11)});
    const auto holds = [&](const predicate& p) { return satisfies(p.steps, d, 0); };
    CHECK(holds(ttft <= 200_ms));
    CHECK_FALSE(holds(ttft <= 199_ms));
    CHECK(holds(e2e <= 400_ms));
    CHECK(holds(itl <= 20_ms));
    CHECK_FALSE(holds(itl <= 19_ms));
    CHECK(holds(decode_speed >= 49.9_tps));
    CHECK_FALSE(holds(decode_speed >= 50.1_tps));
    CHECK(holds(ttft <= 200_ms && tpot <= 21_ms));
    CHECK_FALSE(holds(ttft <= 200_ms && tpot <= 19_ms));
    CHECK_FALSE(holds(ttft <= 199_ms && tpot <= 21_ms));
    CHECK(holds(ttft <= 199_ms || tpot <= 21_ms));
    CHECK_FALSE(holds(ttft <= 199_ms || tpot <= 19_ms));
    CHECK(holds((ttft <= 199_ms || tpot <= 21_ms) && e2e <= 400_ms));
    CHECK_FALSE(holds((ttft <= 199_ms && tpot <= 21_ms) || e2e <= 399_ms));
}

TEST_CASE("one long gap breaks a predicate on itl even where the mean is small") {
    const repeat_data d = repeat_of(
        {request(0).content(10).content(20).content(130).content(140).finish(140).done(140)});
    CHECK(satisfies((itl <= 110_ms).steps, d, 0));
    CHECK_FALSE(satisfies((itl <= 109_ms).steps, d, 0));
}

TEST_CASE("goodput is the share of all measured requests, failed ones included") {
    const repeat_data d = repeat_of({
        answered(0, 100).warmup(),  // not counted
        answered(1, 100),           // good
        answered(2, 299, 29),       // good
        answered(3, 301),           // slow to start
        answered(4, 100, 31),       // slow to go on
        failed(5),
    });
    CHECK(value_of(goodput(is_fast()), d) == about(2 / 5.0));
    CHECK(value_of(error_rate, d) == about(1 / 5.0));
    CHECK(misses_of(goodput(is_fast()).data, d) ==
          vector<bool>{false, false, true, true, true});
    CHECK(std::isnan(value_of(error_rate, repeat_of({answered(0, 100).warmup()}))));
}

TEST_CASE("who left is no failure, in no latency and in no goodput, and its tokens are the server's work") {
    const vector<request> all = {answered(0, 100), answered(10, 100), answered(20, 100)};
    const auto in_window = [](repeat_data x) {
        x.window = time_interval::between(at_ms(0), at_ms(5000));
        return x;
    };
    const repeat_data whole = in_window(repeat_of(all));
    repeat_data d = whole;
    record& r = d.records[1];
    r.status = request_status::left;
    r.finish_reason = "";
    const repeat_data two = repeat_of({all[0], all[2]});
    for (const slo& s : {p50(ttft) <= 1_s, mean(e2e) <= 1_s, max(itl) <= 1_s, mean(tpot) <= 1_s}) {
        CAPTURE(std::string(s.text()));
        CHECK(evaluate(s.statistic, d) == about(evaluate(s.statistic, two)));
    }
    CHECK(value_of(error_rate, d) == 0);
    CHECK(misses_of((error_rate <= 1_pct).statistic, d).size() ==
          2);  // nor does it dilute failures
    CHECK(misses_of(goodput(is_fast()).data, d).size() == 2);
    CHECK(value_of(output_throughput, d) == about(value_of(output_throughput, whole)));
    CHECK(value_of(request_throughput, d) ==
          about(value_of(request_throughput, whole) * 2 / 3));
    r.events = r.output_tokens = 0;  // before its first token
    r.first_token_ns = r.last_token_ns = 0;
    CHECK(value_of(output_throughput, d) ==
          about(value_of(output_throughput, whole) * 2 / 3));
    r.status = request_status::timeout;
    CHECK(value_of(error_rate, d) == about(1 / 3.0));
}

TEST_CASE("a goodput without a condition has no value, wherever it is asked for") {
    const repeat_data d = repeat_of({answered(1, 100)});
    for (const predicate& p : {predicate{}, predicate{} && is_fast(), is_fast() || predicate{}})
        CHECK_THROWS_WITH_AS(value_of(goodput(p), d),
                             doctest::Contains("a predicate is empty: goodput, && and ||"),
                             std::invalid_argument);
}

TEST_CASE("throughput counts what arrives inside the window, whoever asked for it") {
    repeat_data d = repeat_of({
        answered(0, 900, 100, 11).warmup(),  // tokens at 900, 1000, ... 1900
        answered(1500, 500, 250, 5),         // tokens at 2000, 2250, ... 3000
        request(1600)
            .content(1700)
            .content(1800)
            .usage(1800, 10, 50)
            .fails(request_status::timeout),
    });
    d.window = time_interval::between(at_ms(1000), at_ms(3000));
    // Of the warm-up request all but the first, of the other all but the last: the window's start
    // is inside and its end is not. What failed brings nothing.
    CHECK(value_of(output_throughput, d) == about((10 + 4) / 2.0));
    // Prompts count with the first token: the warm-up's came before the window.
    CHECK(value_of(total_throughput, d) == about((10 + 4 + 10) / 2.0));
    // The two phases: the second prompt, and what came after each first event.
    CHECK(value_of(prefill_throughput, d) == about(10 / 2.0));
    CHECK(value_of(decode_throughput, d) == about((10 + 3) / 2.0));
    // One request ended inside (1900), the other at its very end.
    CHECK(value_of(request_throughput, d) == about(1 / 2.0));
    d.window = time_interval::between(d.window.from_ns(), 0);
    CHECK(std::isnan(value_of(output_throughput, d)));
    CHECK(std::isnan(value_of(prefill_throughput, d)));
}

TEST_CASE("prefill has no throughput where the server does not tell the prompts' tokens") {
    repeat_data d = repeat_of({answered(0, 100), request(200).content(300).finish(400).done(400)});
    d.window = time_interval::between(at_ms(0), at_ms(1000));
    CHECK(value_of(prefill_throughput, d) == about(10));  // of the one that does
    CHECK(value_of(decode_throughput, d) == about(10));  // an answer of one event decodes nothing
    d.records[1].prompt_tokens = 5;
    CHECK(value_of(prefill_throughput, d) == about(15));
    for (record& r : d.records) r.prompt_tokens = 0;
    CHECK(std::isnan(value_of(prefill_throughput, d)));
}

TEST_CASE("an event weighs its share of the request's tokens") {
    repeat_data d = repeat_of({worked_example(0)});
    // Events at 200, 230, ... 470: 10 of 33.
    d.window = time_interval::between(at_ms(0), at_ms(500));
    CHECK(value_of(output_throughput, d) == about(100 * 10 / 33.0 / 0.5));
    CHECK(value_of(decode_throughput, d) == about(99 * 9 / 32.0 / 0.5));
}

TEST_CASE("tokens are the server's usage where it says so, else content events") {
    const record said =
        repeat_of({request(0).content(1).content(2).usage(3, 7, 9).finish(3).done(3)}).records[0];
    CHECK(said.token_source == token_origin::usage);
    CHECK(said.output_tokens == 9);
    CHECK(said.prompt_tokens == 7);
    const record counted =
        repeat_of({request(0).content(1).content(2).finish(3).done(3)}).records[0];
    CHECK(counted.status == request_status::ok);
    CHECK(counted.token_source == token_origin::events);
    CHECK(counted.output_tokens == 2);
    CHECK(counted.prompt_tokens == 0);
}

TEST_CASE("without usage a metric by prompt length has no value") {
    const repeat_data d = repeat_of({request(0).content(100).content(110).finish(110).done(110)});
    CHECK(std::isnan(value_of(mean(ttft_per_prompt_token), d)));
    CHECK(std::isnan(value_of(p50(prefill_speed), d)));
    CHECK(value_of(mean(tpot), d) == about(0.010));
}

TEST_CASE("what follows the terminal event does not count") {
    const repeat_data d = repeat_of(
        {request(0).content(1).finish(2).done(3).content(50).usage(60, 1, 99).body_end(70)});
    CHECK(d.records[0].end_ns == at_ms(3));
    CHECK(d.records[0].events == 1);
    CHECK(d.records[0].output_tokens == 1);
    CHECK(d.records[0].status == request_status::ok);
}

TEST_CASE("the end of the body ends a request that said why it finished") {
    const record r = repeat_of({request(0).content(1).finish(2, "length").body_end(9)}).records[0];
    CHECK(r.status == request_status::ok);
    CHECK(r.end_ns == at_ms(9));
    CHECK(str(r.finish_reason) == "length");
}

TEST_CASE("the first failure is the one that is told") {
    const record r = repeat_of({request(0)
                                    .content(1)
                                    .fails(request_status::timeout, "slow")
                                    .fails(request_status::connect, "gone")
                                    .done(3)})
                         .records[0];
    CHECK(r.status == request_status::timeout);
    CHECK(str(r.error) == "slow");
}

TEST_CASE("a request that never ended is unsent") {
    CHECK(repeat_of({request(0)}).records[0].status == request_status::unsent);
}

TEST_CASE("rounding gaps to microseconds never drifts") {
    // Each gap is 1.4 us and would be rounded down alone; 10,000 of them are 14,000 us.
    stream_timeline t;
    stream_event e;
    e.content = true;
    for (int i = 0; i <= 10000; ++i) t.on_event(e, start_ns + 1400 * i);
    long long sum = 0, longest = 0;
    for (const std::uint32_t g : listed(t.gaps_us())) {
        sum += g;
        longest = std::max<long long>(longest, g);
    }
    CHECK(t.gaps_us().size() == 10000);
    CHECK(sum == 14000);
    CHECK(longest == 2);
}

// ---- lags --------------------------------------------------------------------------------------

TEST_CASE("counted lags have quantiles that are at most a sixteenth too high") {
    lag_counts none;
    CHECK(none.count() == 0);
    CHECK(none.quantile(0.99) == 0);
    lag_counts a, b;
    for (long long i = 1; i <= 1000; ++i) (i % 2 ? a : b).add(i * i * i);
    a.add(b);
    CHECK(a.count() == 1000);
    CHECK(a.max() == doctest::Approx(1.0));
    for (const double q : {0.001, 0.01, 0.5, 0.9, 0.99, 1.0}) {
        CAPTURE(q);
        const double exact = std::pow(q * 1000, 3) * 1e-9;
        CHECK(a.quantile(q) >= exact * (1 - 1e-9));
        CHECK(a.quantile(q) <= exact * (1 + 1.0 / 16) + 1e-9);
    }
    lag_counts extreme;
    extreme.add(-5);
    extreme.add(9223372036854775807ll);
    CHECK(extreme.quantile(0.5) <= 1e-9);
    CHECK(extreme.quantile(1) == doctest::Approx(9.223372036854775807e9));
}

// ---- many gaps ----------------------------------------------------------------------------------

TEST_CASE("a list of gaps keeps its places over blocks, joining and giving back") {
    gap_list a, b, c;
    for (std::uint32_t i = 0; i < 3000; ++i) a.push_back(i);
    for (std::uint32_t i = 0; i < 5000; ++i) b.push_back(10000 + i);
    for (std::uint32_t i = 0; i < 10; ++i) c.push_back(i);
    CHECK(c.append(a) == 10);
    CHECK(c.size() == 3010);
    CHECK(c[10 + 2999] == 2999);
    const std::uint64_t at = a.take(std::move(b));
    CHECK(at >= 3000);
    CHECK(a[2999] == 2999);
    CHECK(a[at] == 10000);
    CHECK(a[at + 4999] == 14999);
    const std::uint64_t next = a.size();
    a.push_back(7);
    CHECK(a[next] == 7);
    a.release_before(at + 2000);
    CHECK(a[at + 2000] == 12000);
    CHECK(a[next] == 7);
    const gap_list copy = a;
    CHECK(copy[at + 2000] == 12000);
    a.clear();
    CHECK(a.empty());
    for (std::uint32_t i = 0; i < 2000; ++i) a.push_back(i);
    CHECK(a[1999] == 1999);
    CHECK(copy[next] == 7);
}

TEST_CASE("counted gaps are told within 1/512 at every rank, mean and extremes exactly") {
    generator random(3);
    for (const double decades : {0.5, 3.0, 9.6}) {
        gap_counts counts, half;
        vector<double> all;
        double sum = 0;
        for (int i = 0; i < 20000; ++i) {
            const auto us = static_cast<std::uint32_t>(std::pow(10, decades * random.uniform()));
            (i % 2 ? counts : half).add(us);
            all.push_back(us);
            sum += us;
        }
        counts.add(half);
        std::sort(all.begin(), all.end());
        REQUIRE(counts.size() == all.size());
        CHECK(static_cast<double>(counts.sum()) == sum);
        vector<double> told;
        counts.for_each([&](double us, std::uint64_t n) { told.resize(told.size() + n, us); });
        REQUIRE(told.size() == all.size());
        CHECK(std::is_sorted(told.begin(), told.end()));
        CHECK(told.back() == all.back());
        CHECK(told.front() == all.front());
        double worst = 0;
        for (std::size_t rank = 0; rank < all.size(); ++rank)
            worst = std::max(worst, std::fabs(told[rank] / all[rank] - 1));
        CAPTURE(decades);
        CHECK(worst <= gap_error);
        if (decades > 3) CHECK(worst > gap_error / 4);
    }
}

namespace {
/// 200 answers of 100 events each, in the order of their sends, over a minute; a few fail.
vector<request> a_minute_of_answers() {
    generator random(11);
    vector<request> all;
    for (int i = 0; i < 200; ++i) {
        const double scheduled = 300.0 * i;
        request q(scheduled);
        if (i < 20) q.warmup();
        double now = scheduled + 50 + 100 * random.uniform();
        for (int k = 0; k < 100; ++k) q.content(now += 3 + 30 * random.exponential());
        all.push_back(i % 40 == 7 ? q.fails(request_status::truncated, "cut")
                                  : q.finish(now).usage(now, 20, 120).done(now));
    }
    return all;
}
/// The same as a client keeps it, every gap or counts of them. They end in another order.
repeat_data kept(const vector<request>& requests, bool counted, double from_ms, double to_ms) {
    request_log logs[2];
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const std::size_t k = i ^ 1;
        logs[k % 2].add(k, requests[k].record(), requests[k].gaps_us());
        // While the load runs, in small steps, when the end of the window is not known yet.
        if (counted)
            logs[k % 2].count(150, at_ms(300.0 * static_cast<double>(i) - 3000),
                              {at_ms(from_ms), 0, 0});
    }
    request_log all;
    for (request_log& l : logs) all.take(std::move(l));
    if (counted) all.count_all(time_interval::between(at_ms(from_ms), at_ms(to_ms)));
    repeat_data d;
    d.window = time_interval::between(at_ms(from_ms), at_ms(to_ms));
    all.move_into(d);
    return d;
}
}  // namespace

TEST_CASE("gaps that are counted give the numbers of those that are kept") {
    const vector<request> requests = a_minute_of_answers();
    repeat_data plain = repeat_of(requests);
    // Both ends of the window lie within many answers.
    plain.window = time_interval::between(at_ms(6000), at_ms(58000));
    const repeat_data listed_ones = kept(requests, false, 6000, 58000);
    const repeat_data counted = kept(requests, true, 6000, 58000);
    CHECK_FALSE(listed_ones.gaps_counted);
    REQUIRE(counted.gaps_counted);
    CHECK(counted.pooled_gaps.size() == (180 - 4) * 99);
    CHECK(counted.gaps.size() < 40 * 99);  // of those at the ends of the window
    CHECK(counted.gaps.size() > 10 * 99);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        CHECK(counted.records[i].scheduled_ns == plain.records[i].scheduled_ns);
        CHECK(longest_gap(counted, i) == longest_gap(plain, i));
        CHECK(longest_gap(listed_ones, i) == longest_gap(plain, i));
    }
    for (const repeat_data* d : {&listed_ones, &counted}) {
        CHECK(value_of(output_throughput, *d) == value_of(output_throughput, plain));
        CHECK(value_of(total_throughput, *d) == value_of(total_throughput, plain));
        CHECK(value_of(request_throughput, *d) == value_of(request_throughput, plain));
        CHECK(value_of(decode_throughput, *d) == value_of(decode_throughput, plain));
        CHECK(value_of(mean(itl), *d) == value_of(mean(itl), plain));
        CHECK(value_of(goodput(itl <= 150_ms), *d) == value_of(goodput(itl <= 150_ms), plain));
        CHECK(value_of(p99(ttft), *d) == value_of(p99(ttft), plain));
        CHECK(value_of(max(itl), *d) == infinity);  // the failed ones
        for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999}) {
            CAPTURE(q);
            const double exact = value_of(percentile(itl, q), plain);
            CHECK(std::fabs(value_of(percentile(itl, q), *d) / exact - 1) <= 1.0 / 512);
        }
    }
    CHECK(value_of(p50(itl), listed_ones) == value_of(p50(itl), plain));
    for (const double bound : {0.001, 0.02, 0.05, 0.15, 10.0}) {
        CAPTURE(bound);
        const auto beyond = [&](double than, const repeat_data& d) {
            return lb::fraction_of_gaps_beyond(than, lb::request_values_of(mean(itl).data, d).sorted);
        };
        CHECK(beyond(bound, listed_ones) == beyond(bound, plain));
        CHECK(beyond(bound, counted) >= beyond(bound * (1 + 1.0 / 512), plain));
        CHECK(beyond(bound, counted) <= beyond(bound * (1 - 1.0 / 512), plain));
    }
    // A window that lies elsewhere than was thought while the gaps were counted, but for its end.
    const repeat_data late = kept(requests, true, 6000, 100000);
    repeat_data whole = plain;
    whole.window = time_interval::between(whole.window.from_ns(), at_ms(100000));
    CHECK(value_of(output_throughput, late) == value_of(output_throughput, whole));
}

TEST_CASE("a part of the window has its tokens although their gaps were counted") {
    // Sixteen answers of 20 s at any time: the throughput is the same in each part of the run.
    vector<request> requests;
    for (int i = 0; i < 80; ++i) {
        request q(1250.0 * i);
        double now = 1250.0 * i + 50;
        for (int k = 0; k < 200; ++k) q.content(now += 100);
        requests.push_back(q.finish(now).usage(now, 20, 200).done(now));
    }
    const repeat_data plain = kept(requests, false, 20000, 80000);
    const repeat_data counted = kept(requests, true, 20000, 80000);
    REQUIRE(counted.gaps_counted);
    for (const statistic_data& s :
         {drift(output_throughput).data, drift(decode_throughput).data, drift(total_throughput).data}) {
        CAPTURE(str(s.name));
        CHECK(evaluate(s, plain) == about(1).epsilon(0.01));
        CHECK(evaluate(s, counted) == about(evaluate(s, plain)).epsilon(0.005));
        for (std::size_t k = 0; k < 15; ++k)
            CHECK(value_of_part(s, counted, k, 15) == about(value_of_part(s, plain, k, 15)).epsilon(0.02));
    }
}

TEST_CASE("pooled gaps have the same ranks whether few or many, short or long") {
    generator random(5);
    for (const double longest_ms : {0.4, 40.0, 9000.0}) {
        vector<double> ms;
        vector<request> requests;
        for (int i = 0; i < 30; ++i) {
            request q(i);
            double now = 50;
            q.content(now);
            for (int k = 0; k < 200; ++k) {
                ms.push_back(std::round(1000 * longest_ms * random.uniform()) / 1000);
                q.content(now += ms.back());
            }
            requests.push_back(q.finish(now).done(now));
        }
        const repeat_data d = repeat_of(requests);
        std::sort(ms.begin(), ms.end());
        for (const double q : {0.01, 0.5, 0.9, 0.999})
            CHECK(value_of(percentile(itl, q), d) ==
                  doctest::Approx(nearest_rank(ms, q) / 1000).epsilon(1e-6));
        CHECK(value_of(max(itl), d) == doctest::Approx(ms.back() / 1000).epsilon(1e-6));
        CHECK(value_of(mean(itl), d) == doctest::Approx(mean_of(ms) / 1000).epsilon(1e-6));
    }
}

TEST_CASE("the first answer is the first content that is no reasoning; ttft is the first of either") {
    // Thought at 100 and 130 ms, answered from 400 ms on.
    const repeat_data d = repeat_of({
        request(0).reasoning(100).reasoning(130).content(400).content(430).done(440),
        request(1000).content(1050).content(1080).done(1090),              // nothing to think about
        request(2000).reasoning(2100).reasoning(2130).done(2140)});        // and never an answer
    CHECK(value_of(mean(ttft), d) == about((0.100 + 0.050 + 0.100) / 3));
    CHECK(request_value(metric_id::time_to_first_answer, d, 0) == about(0.400));
    CHECK(request_value(metric_id::time_to_first_answer, d, 1) == about(0.050));
    CHECK(std::isnan(request_value(metric_id::time_to_first_answer, d, 2)));
    CHECK(value_of(mean(time_to_first_answer), d) == about(0.225));
    CHECK(request_values_of(mean(time_to_first_answer).data, d).in_order.size() == 2);
    CHECK(!has_value(metric_id::time_to_first_answer, d, 2));
}

TEST_CASE("the second token's gap is that of the first two reads with content") {
    const repeat_data d = repeat_of({
        request(0).content(100).content(180).content(200).done(210),
        request(1000).content(1100).content(1100).content(1120).done(1130),  // in one read
        request(2000).content(2100).done(2110)});                            // one event
    CHECK(request_value(metric_id::second_token_gap, d, 0) == about(0.080));
    CHECK(std::isnan(request_value(metric_id::second_token_gap, d, 1)));
    CHECK(std::isnan(request_value(metric_id::second_token_gap, d, 2)));
}

TEST_CASE("tokens per event are the usage's over the events, where the usage tells them") {
    const repeat_data d = repeat_of({
        request(0).content(100).content(130).content(160).usage(165, 9, 7).done(170),
        request(1000).content(1100).content(1130).done(1140),
        request(2000).content(2100).fails(request_status::timeout)});
    CHECK(request_value(metric_id::tokens_per_event, d, 0) == about(7.0 / 3));
    CHECK(std::isnan(request_value(metric_id::tokens_per_event, d, 1)));
    // A failed request has the worst value, which is 0 here.
    CHECK(value_of(min(tokens_per_event), d) == 0);
}

TEST_CASE("input throughput counts the prompts of requests that end in the window") {
    repeat_data d = repeat_of({request(0).content(100).usage(150, 40, 1).done(190),
                               request(0).content(900).usage(950, 60, 1).done(1090),   // too late
                               request(0).content(500).usage(510, 80, 1).done(600),
                               request(0).content(500).fails(request_status::timeout)});
    d.window = time_interval::between(at_ms(0), at_ms(1000));
    CHECK(evaluate(statistic_data(detail::make(statistic_kind::value, input_throughput).data), d) ==
          about(120));
    for (record& r : d.records) r.prompt_tokens = 0;
    CHECK(std::isnan(
        evaluate(statistic_data(detail::make(statistic_kind::value, input_throughput).data), d)));
}

TEST_CASE("a metric of requests has a value exactly where it is a number, with gaps, without, and where none are kept") {
    repeat_data with = repeat_of({request(0).sent(0).content(200).content(900).finish(950).done(950),
                                  request(1000).sent(1000).content(1500).finish(1650).done(1650),
                                  request(2000).sent(2000).content(2000).content(2000).finish(2000).done(2000)});
    with.records[0].prompt_tokens = with.records[2].prompt_tokens = 100;
    with.records[0].cached_tokens = 7;
    repeat_data counted = with, lost = with;
    counted.gaps_counted = true;
    counted.gap_offsets.clear();
    counted.longest_gaps = {700000, 0, 0};
    lost.gap_offsets.clear();
    for (const repeat_data* d : {&with, &counted, &lost})
        for (const metric_id m : all_metrics())
            for (std::size_t i = 0; i < d->records.size(); ++i) {
                CAPTURE(metric_name(m));
                CAPTURE(i);
                const bool has = has_value(m, *d, i);  // asked of every metric
                if (is_of_requests(m) && is_in_turns_of(m, d->records[i].turn))
                    CHECK(has == !std::isnan(request_value(m, *d, i)));
                for (const timing_bound how : {timing_bound::buffered, timing_bound::optimistic})
                    request_value(m, *d, i, how);
            }
}
