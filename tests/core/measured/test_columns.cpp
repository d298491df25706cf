// Statistics of several repeats together, held against one repeat that has all their requests; of a
// part of a repeat, against one that has its requests alone.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/slices.hpp"
#include "support/timelines.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;

namespace {

vector<request> drawn_answers(generator& draw, int n) {
    vector<request> all;
    for (int i = 0; i < n; ++i) {
        const double at = 100.0 * i;
        if (draw.uniform() < 0.03) { all.push_back(timelines::failed(at)); continue; }
        request q(at);
        double now = at + 100 * std::exp(0.5 * draw.normal());
        for (int k = 0; k < 12; ++k)  // some gaps are over a second
            q.content(now += draw.uniform() < 0.02 ? 1500 * draw.uniform() : 1 + 30 * draw.uniform());
        all.push_back(q.finish(now).usage(now, 20, 15).done(now));
    }
    return all;
}
/// The gaps in classes, as where they are too many.
repeat_data in_classes(repeat_data d) {
    d.gaps_counted = true;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        d.longest_gaps.push_back(0);
        for (std::size_t k = 0; is_pooled(d.records[i]) && k < gap_count(d.records[i]); ++k)
            d.pooled_gaps.add(d.gaps[d.gap_offsets[i] + k]);
    }
    return d;
}

}  // namespace

TEST_CASE("repeats together are what one repeat of all their requests is") {
    generator draw(5);
    for (const vector<int>& sizes : {vector<int>{1}, {40, 40}, {3, 1, 97}, {80, 200, 5}}) {
        vector<repeat_data> variant;
        vector<request> all;
        for (const int n : sizes) {
            const vector<request> some = drawn_answers(draw, n);
            variant.push_back(repeat_of(some));
            all.insert(all.end(), some.begin(), some.end());
        }
        const repeat_data whole = repeat_of(all);
        vector<repeat_data> mixed = variant;
        mixed[0] = in_classes(mixed[0]);
        for (const metric_id m : {metric_id::ttft, metric_id::tpot, metric_id::itl, metric_id::e2e,
                                  metric_id::decode_speed}) {
            vector<statistic_data> statistics = {
                make_statistic(statistic_kind::mean, m, 0), make_statistic(statistic_kind::max, m, 0),
                make_statistic(statistic_kind::min, m, 0)};
            for (const double q : {0.01, 0.07, 0.5, 0.9, 0.95, 0.99, 0.999})
                statistics.push_back(make_statistic(statistic_kind::percentile, m, q));
            for (const statistic_data& s : statistics) {
                CAPTURE(str(s.name));
                const variant_columns v = columns_of(s, variant);
                const double together = evaluate(s, whole);
                if (s.kind == statistic_kind::mean) CHECK(v.together == about(together));
                else CHECK(v.together == together);
                REQUIRE(v.each.size() == variant.size());
                double least = infinity, most = 0;
                for (std::size_t i = 0; i < variant.size(); ++i) {
                    CHECK(v.each[i]->value == evaluate(s, variant[i]));
                    least = std::min(least, v.each[i]->value);
                    most = std::max(most, v.each[i]->value);
                }
                CHECK(v.together >= least * (1 - 1e-12));
                CHECK(v.together <= most * (1 + 1e-12));
                // Some gaps are in classes: within 1/512.
                const double reported = pooled_value(s, mixed);
                if (std::isfinite(together) && together > 0) CHECK(reported == about(together).epsilon(1.0 / 512));
                else CHECK(reported == together);
            }
        }
        for (const statistic_data& s :
             {goodput(ttft <= 100_ms).data, make_statistic(statistic_kind::value,
                                                           metric_id::error_rate, 0)})
            CHECK(pooled_value(s, variant) == evaluate(s, whole));
    }
}

TEST_CASE("a throughput of several repeats is tokens over seconds, not a mean of rates") {
    vector<repeat_data> variant = {steady_repeat(50), steady_repeat(50)};
    variant[0].window = time_interval::between(at_ms(0), at_ms(2200));   // 220 tokens in 2.2 s
    variant[1].window = time_interval::between(at_ms(0), at_ms(22000));  // and in 22 s
    const statistic_data s = make_statistic(statistic_kind::value, metric_id::output_throughput, 0);
    CHECK(pooled_value(s, variant) == about(440 / 24.2));
    variant[1].window = {};  // never began
    CHECK(pooled_value(s, variant) == about(100));
    CHECK(std::isnan(pooled_value(s, {variant[1]})));
    CHECK(std::isnan(pooled_value(s, {})));
}

TEST_CASE("a time to start is the mean of the starts there were") {
    vector<repeat_data> variant = {steady_repeat(50), steady_repeat(50), steady_repeat(50)};
    const statistic_data s = make_statistic(statistic_kind::value, metric_id::startup_time, 0);
    CHECK(std::isnan(pooled_value(s, variant)));
    variant[0].startup_s = 4;
    variant[2].startup_s = 6;
    CHECK(pooled_value(s, variant) == about(5));
}

TEST_CASE("a part of a repeat's time has the requests planned in it alone") {
    generator draw(7);
    const repeat_data whole = repeat_of(drawn_answers(draw, 60));
    const time_interval part = time_interval::between(at_ms(1000), at_ms(4000));
    repeat_data alone = whole;
    std::size_t planned = 0;
    for (record& r : alone.records)
        if (part.holds(r.scheduled_ns)) ++planned;
        else r.phase = run_phase::warmup;
    REQUIRE(planned == 30);
    for (const statistic_data& s :
         {mean(ttft).data, p90(tpot).data, p50(itl).data, mean(itl).data, max(e2e).data,
          goodput(ttft <= 100_ms).data, make_statistic(statistic_kind::value, metric_id::error_rate, 0)}) {
        CAPTURE(str(s.name));
        for (const timing_bound how : {timing_bound::measured, timing_bound::pessimistic}) {
            const column of = column_of(s, whole, how, &part), same = column_of(s, alone, how);
            CHECK(of.value == same.value);
            CHECK(of.requests == planned);
            CHECK(of.failed == same.failed);
            CHECK(of.misses == same.misses);
            CHECK(column_of(s, whole, how).requests == 60);
        }
    }
}

TEST_CASE("what is known of a repeat is computed once, and again for the repeat in its place") {
    repeat_list all = vector<repeat_data>{steady_repeat(50), steady_repeat(20)};
    known_results known;
    int computed = 0;
    const auto records = [&](const repeat_data& d, const char* name) {
        return *known.get(d, name, [&] { return ++computed, d.records.size(); });
    };
    CHECK(records(all[0], "n") == all[0].records.size());
    CHECK(records(all[0], "n") == all[0].records.size());
    CHECK(computed == 2);  // not kept
    known.keep({&all});
    for (int look = 0; look < 3; ++look)
        for (const repeat_data& d : all) CHECK(records(d, "n") == d.records.size());
    CHECK(computed == 4);
    CHECK(records(all[0], "m") == all[0].records.size());
    CHECK(computed == 5);
    all.change(1, [](repeat_data& d) { d.records.pop_back(); });
    known.keep({&all});
    CHECK(records(all[1], "n") == all[1].records.size());
    CHECK(records(all[0], "n") == all[0].records.size());
    CHECK(computed == 6);
}

TEST_CASE("answers are those of a question, however often it is asked within a load") {
    repeat_data d;
    for (int i = 0; i < 600; ++i) {
        record r;
        r.phase = run_phase::measure;
        r.scheduled_ns = r.sent_ns = 1'000'000'000ll * (i + 1);
        r.end_ns = r.sent_ns + 100'000'000;
        r.status = i % 7 == 0 ? request_status::http : request_status::ok;  // and where it failed
        r.conversation = i;
        r.question = i % 20;
        r.right = i % 20 != 3;
        d.records.push_back(r);
    }
    d.window = time_interval::between(1'000'000'000, 601'000'000'000);
    statistic_data what;
    what.metric = metric_id::accuracy;
    const auto number_of = [](vector<long long> questions) {
        std::sort(questions.begin(), questions.end());
        return std::unique(questions.begin(), questions.end()) - questions.begin();
    };
    const column c = column_of(what, d, timing_bound::measured);
    CHECK(c.misses.size() == 600);
    CHECK(c.questions.size() == 600);
    CHECK(number_of(c.questions) == 20);
    const values_at_once v = slices_at_once_of(what, d, d, timing_bound::measured);
    CHECK(v.slices == 24);
    CHECK(v.mine.questions.size() == 600);
    CHECK(number_of(v.mine.questions) == 20);

    for (record& r : d.records) r.question = -1;  // of a file of an earlier version: its place
    CHECK(number_of(column_of(what, d, timing_bound::measured).questions) == 600);
}

TEST_CASE("throughputs at once are compared while both have their load, however long the slower one goes on") {
    const auto sending = [](int requests, double apart_s) {
        repeat_data d;
        for (int i = 0; i < requests; ++i) {
            record r;
            r.phase = run_phase::measure;
            r.status = request_status::ok;
            r.scheduled_ns = r.sent_ns = static_cast<long long>(i * apart_s * 1e9);
            r.end_ns = r.sent_ns + 100'000'000;
            d.records.push_back(r);
        }
        d.window = time_interval::between(0, static_cast<long long>(requests * apart_s * 1e9));
        return d;
    };
    const repeat_data quick = sending(600, 0.1), slow = sending(600, 0.2);
    statistic_data what;
    what.kind = statistic_kind::value;
    what.metric = metric_id::request_throughput;
    for (const bool is_slower : {false, true}) {
        const values_at_once v = slices_at_once_of(what, is_slower ? slow : quick,
                                                   is_slower ? quick : slow, timing_bound::measured);
        CHECK(v.window_s == about(60));
        for (std::size_t i = 0; i < v.slices; ++i)
            CHECK(v.mine.values[i] / v.other.values[i] == doctest::Approx(is_slower ? 0.5 : 2).epsilon(0.1));
    }
    what.kind = statistic_kind::mean;
    what.metric = metric_id::e2e;
    CHECK(slices_at_once_of(what, quick, slow, timing_bound::measured).window_s == about(120));
}
