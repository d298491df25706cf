// What a server's readings make of its metrics: deltas over the steady window, gauges as read.
#include "core/measured/server_values.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/columns.hpp"
#include "support/server_pages.hpp"
#include "support/timelines.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

using namespace sample_pages;
using timelines::about;
using quantity = server_quantity;

namespace {
double value(const repeat_data& d, const slo& s) { return evaluate(s.statistic, d); }
std::string why_none(const repeat_data& d, const slo& s) {
    return why_no_server_value(s.statistic, d);
}
bool is_none(double v) { return std::isnan(v); }
const slo waits = mean(queue_time) <= 1_s;
}  // namespace

TEST_CASE("a mean time is what was added over how often, between the readings at the window's ends") {
    repeat_data d;
    // Ten seconds waited in the warm-up, and in the drain: neither is in it.
    report(d, quantity::queue_time, {0, 10, 11, 12, 13, 23});
    count(d, quantity::queue_time, {0, 1, 11, 21, 31, 32});
    CHECK(value(d, waits) == about(3.0 / 30));
    CHECK(why_none(d, waits) == "");
    count(d, quantity::queue_time, {0, 1, 1, 1, 1, 1});
    CHECK(is_none(value(d, waits)));
    CHECK(why_none(d, waits).find("nothing that mean(queue_time) is of happened") == 0);
}

TEST_CASE("a counter of seconds is divided by the requests that were finished") {
    repeat_data d = timelines::repeat_of({timelines::answered(1500, 50), timelines::answered(2500, 50),
                                          timelines::answered(4500, 50)});
    read_at_each_second(d, 6);
    report(d, quantity::prefill_time, {0, 1, 2, 3, 4, 5});
    // Two of ours ended from second 1 to second 4.
    CHECK(value(d, mean(server_prefill_time) <= 1_s) == about(1.5));
    report(d, quantity::requests_done, {0, 10, 20, 30, 40, 50});
    CHECK(value(d, mean(server_prefill_time) <= 1_s) == about(0.1));
}

TEST_CASE("gauges are judged on what was read inside of the window, three times at least") {
    repeat_data d;
    report(d, quantity::waiting, {90, 1, 5, 2, 0, 90});
    CHECK(value(d, max(queued_requests) <= 1) == 5);
    CHECK(value(d, mean(queued_requests) <= 1) == about(2));
    d.window = time_interval::between(d.window.from_ns(), timelines::at_ms(2500));
    CHECK(is_none(value(d, max(queued_requests) <= 1)));
    CHECK(why_none(d, max(queued_requests) <= 1).find("was read 2 times in the steady window") !=
          std::string::npos);
    CHECK(why_none(d, max(kv_cache_usage) <= 90_pct) ==
          "2 of 2 readings of its page in the steady window do not report max(kv_cache_usage), and "
          "what it was then nobody knows");
}

TEST_CASE("a percentile of a gauge is one of its readings, and three lie beyond it") {
    repeat_data d;
    vector<double> read{90};
    for (int i = 1; i <= 30; ++i) read.push_back(31 - i);
    read.push_back(90);
    report(d, quantity::waiting, read);
    CHECK(value(d, p90(queued_requests) <= 1) == 27);
    CHECK(value(d, p50(queued_requests) <= 1) == 15);
    CHECK(value(d, percentile(queued_requests, 0.1) <= 1) == 3);
    CHECK(is_none(value(d, p95(queued_requests) <= 1)));
    CHECK(why_none(d, p95(queued_requests) <= 1) ==
          "p95(queued_requests) was read 30 times in the steady window, 60 are needed, so that three "
          "lie beyond it: let it run longer");
    CHECK(why_none(d, p90(queued_requests) <= 1) == "");
    d.server.missed_ns = {timelines::at_ms(5500)};  // a third of what lies beyond it
    CHECK(why_none(d, p90(queued_requests) <= 1).find("1 of 31 readings of its page") == 0);
    CHECK(why_none(d, p50(queued_requests) <= 1) == "");
}

TEST_CASE("readings that failed may have been those of the peak") {
    repeat_data d;
    report(d, quantity::waiting, vector<double>(13));  // 11 of them in the window
    const statistic_data most = (max(queued_requests) <= 8).statistic;
    CHECK(what_is_unknown(most, d) == "");
    d.server.problem = "no answer within 1 s";
    // Before the window and after it nothing is judged.
    d.server.missed_ns = {timelines::at_ms(500), timelines::at_ms(11500)};
    CHECK(what_is_unknown(most, d) == "");
    d.server.missed_ns = {timelines::at_ms(5500)};
    const std::string one = "1 of 12 readings of its page in the steady window failed (no answer "
                            "within 1 s), and what it was then nobody knows";
    CHECK(what_is_unknown(most, d) == one);
    CHECK(why_none(d, mean(queued_requests) <= 8) == "");  // a mean is not one reading's
    d.server.missed_ns.push_back(timelines::at_ms(6500));
    CHECK(why_none(d, mean(queued_requests) <= 8).find("2 of 13 readings") == 0);
    CHECK(what_is_unknown((preemptions <= 0).statistic, d) == "");  // a counter forgets nothing
}

TEST_CASE("what the page does not report may have been the peak as well") {
    repeat_data d;
    vector<double> read(13);
    read[6] = not_a_number;
    report(d, quantity::waiting, read);
    CHECK(what_is_unknown((max(queued_requests) <= 8).statistic, d) ==
          "1 of 11 readings of its page in the steady window do not report max(queued_requests), and "
          "what it was then nobody knows");
    CHECK(why_none(d, mean(queued_requests) <= 8) == "");
    d.server.missed_ns = {timelines::at_ms(5500)};
    CHECK(why_none(d, mean(queued_requests) <= 8).find("2 of 12 readings of its page in the steady "
                                                       "window failed or do not report ") == 0);
}

TEST_CASE("a gauge of which one series has vanished is not that of the others") {
    repeat_data d;
    report(d, quantity::waiting, {2, 2, 2, 1, 1, 2});
    const std::size_t series[] = {1, 2, 2, 1, 1, 2};  // the second one came, and was away
    for (std::size_t i = 0; i < 6; ++i)
        d.server.readings[i].series[static_cast<std::size_t>(quantity::waiting)] = series[i];
    drop_partial_gauges(d.server.readings);
    for (std::size_t i = 0; i < 6; ++i)
        CHECK(is_none(d.server.readings[i].value(quantity::waiting)) == (i == 3 || i == 4));
}

TEST_CASE("a named series is a gauge, whatever it is called") {
    repeat_data d;
    read_at_each_second(d, 6);
    d.server.selectors = {"a", "b"};
    for (std::size_t i = 0; i < 6; ++i) d.server.readings[i].named = {1.0 * static_cast<double>(i), -7};
    CHECK(value(d, max(server_metric("a")) <= 1) == 4);
    CHECK(value(d, mean(server_metric("b")) <= 1) == -7);
    CHECK(is_none(value(d, max(server_metric("c")) <= 1)));
}

TEST_CASE("counters are their change over the window") {
    repeat_data d;
    report(d, quantity::preemptions, {5, 7, 7, 8, 9, 20});
    CHECK(value(d, preemptions <= 0) == 2);
    report(d, quantity::prefix_queries, {0, 100, 200, 300, 400, 500});
    report(d, quantity::prefix_hits, {0, 10, 40, 70, 100, 500});
    CHECK(value(d, prefix_cache_hits >= 1_pct) == about(0.3));
    report(d, quantity::drafts, {0, 10, 20, 30, 40, 50});
    report(d, quantity::accepted_tokens, {0, 20, 50, 60, 80, 900});
    CHECK(value(d, acceptance_length >= 1) == about(3));
}

TEST_CASE("energy is a counter's change over our tokens, or power over time") {
    // Of forty tokens from 1050 to 3000 ms, one each 50 ms.
    repeat_data d = timelines::repeat_of({timelines::answered(1000, 50, 50, 40)});
    read_at_each_second(d, 6);
    report(d, quantity::energy, {0, 100, 200, 300, 400, 500});
    const double tokens = 40;
    CHECK(value(d, energy_per_token <= 1_J) == about(300 / tokens));
    repeat_data by_power = d;
    for (page_reading& r : by_power.server.readings)
        r.values[static_cast<std::size_t>(quantity::energy)] = not_a_number;
    report(by_power, quantity::power, {0, 100, 120, 140, 100, 0});
    CHECK(value(by_power, energy_per_token <= 1_J) == about((110 + 130 + 120) / tokens));
    repeat_data seldom = d;
    report(seldom, quantity::energy, {0, 0, 0, 300, 300, 300});
    CHECK(why_none(seldom, energy_per_token <= 1_J).find("reported 1 new values") != std::string::npos);
    CHECK(why_none(d, energy_per_token <= 1_J) == "");
    repeat_data none;
    report(none, quantity::running, {1, 1, 1, 1, 1, 1});
    CHECK(why_none(none, energy_per_token <= 1_J).find("no metrics page reports the energy") == 0);
}

TEST_CASE("energy is known where each accelerator's counter can be followed") {
    const auto with = [](const vector<double>& first, const vector<double>& second) {
        repeat_data d = timelines::repeat_of({timelines::answered(1000, 50, 50, 40)});
        read_at_each_second(d, 6);
        for (std::size_t i = 0; i < 6; ++i) {
            page_reading& r = d.server.readings[i];
            r.joules["GPU-a"] = first[i];
            if (second[i] >= 0) r.joules["GPU-b"] = second[i];
            r.values[static_cast<std::size_t>(quantity::energy)] = first[i] + std::max(second[i], 0.0);
        }
        return d;
    };
    const vector<double> good = {0, 100, 200, 300, 400, 500};
    const slo limit = energy_per_token <= 1_J;
    CHECK(value(with(good, good), limit) == about(600.0 / 40));
    CHECK(why_none(with(good, good), limit) == "");
    const struct {
        vector<double> second;
        const char* why;
    } cases[] = {
        {{50, 50, 50, 50, 50, 50}, "reported 0 new values of the energy of GPU-b in 3 s"},
        {{50, 60, 60, 60, 60, 90}, "reported 0 new values of the energy of GPU-b in 3 s"},
        {{9000, 9100, -1, 9300, 9400, 9500}, "the energy counter of GPU-b is in 3 of 4 readings"},
        {{9000, 9100, 9200, -1, -1, -1}, "the energy counter of GPU-b is in 2 of 4 readings"},
        {{9000, 9100, 9200, 10, 20, 30}, "the energy counter of GPU-b fell from 9200 J to 10 J"},
    };
    for (const auto& c : cases) {
        CAPTURE(std::string(c.why));
        const repeat_data d = with(good, c.second);
        CAPTURE(why_none(d, limit));
        CHECK(why_none(d, limit).find(c.why) != std::string::npos);
        CHECK(is_none(value(d, limit)));
    }
}

TEST_CASE("a counter that fell is no count") {
    repeat_data d;
    report(d, quantity::preemptions, {0, 9, 9, 2, 2, 2});
    CHECK(is_none(value(d, preemptions <= 0)));
    CHECK(why_none(d, preemptions <= 0) ==
          "its counter of preemptions fell from 9 to 2: it began anew, or a part of it is gone");
}

TEST_CASE("together the repeats have their largest maximum and count, and the mean of the rest") {
    repeat_data a, b;
    report(a, quantity::waiting, {0, 1, 5, 2, 0, 0});
    report(b, quantity::waiting, {0, 1, 2, 2, 0, 0});
    report(a, quantity::queue_time, {0, 0, 0, 0, 3, 3});
    count(a, quantity::queue_time, {0, 0, 0, 0, 30, 30});
    report(b, quantity::queue_time, {0, 0, 0, 0, 5, 5});
    count(b, quantity::queue_time, {0, 0, 0, 0, 10, 10});
    report(a, quantity::preemptions, {0, 0, 0, 0, 0, 0});
    report(b, quantity::preemptions, {0, 0, 0, 1, 1, 1});
    const vector<repeat_data> variant{a, b};
    CHECK(pooled_value((max(queued_requests) <= 1).statistic, variant) == 5);
    CHECK(pooled_value((preemptions <= 0).statistic, variant) == 1);
    CHECK(pooled_value(waits.statistic, variant) == about(8.0 / 40));
}

TEST_CASE("without a page, or with one of several servers, there is no value") {
    CHECK(why_none({}, waits) == "no page of its metrics was read");
    repeat_data d;
    d.server.problem = "http://h/metrics: HTTP 404";
    CHECK(why_none(d, waits) == "no page of its metrics was read (http://h/metrics: HTTP 404)");
    repeat_data turns;
    report(turns, quantity::queue_time, rising(0, 5, 6));
    count(turns, quantity::queue_time, rising(0, 50, 6));
    CHECK(why_none(turns, waits) == "");
    for (std::size_t i = 0; i < 6; ++i) turns.server.readings[i].began = i % 2 ? 200 : 100;
    CHECK(why_none(turns, waits).find("of several servers in turns") != std::string::npos);
    repeat_data other;
    report(other, quantity::running, {1, 1, 1, 1, 1, 1});
    CHECK(why_none(other, waits) == "its page does not report queue_time");
}

TEST_CASE("a process is one, restarted, or several in turns") {
    const auto history = [](const vector<double>& beginnings, const vector<double>& done,
                            double from_s = not_a_number, bool is_of_several = false) {
        repeat_data d;
        report(d, quantity::requests_done, done);
        d.server.from_s = from_s;
        d.server.is_of_several = is_of_several;
        for (std::size_t i = 0; i < beginnings.size(); ++i)
            d.server.readings[i].began = beginnings[i];
        return history_of(d.server);
    };
    CHECK(history({}, {0, 1, 2, 3}) == page_history::one_process);
    CHECK(history({}, {0, 5, 2, 3}) == page_history::restarted);
    CHECK(history({}, {9, 5, 9, 5}) == page_history::several_servers);
    CHECK(history({1, 1, 1, 1}, {0, 1, 2, 3}) == page_history::one_process);
    CHECK(history({1, 1, 9, 9}, {5, 6, 7, 8}) == page_history::restarted);
    CHECK(history({1, 9, 1, 9}, {5, 6, 7, 8}) == page_history::several_servers);
    // Starts within 2 s are one, unless counters fall.
    CHECK(history({1, 2, 1, 3}, {5, 6, 7, 8}) == page_history::one_process);
    CHECK(history({1, 2, 1, 2}, {5, 60, 6, 61}) == page_history::several_servers);
    CHECK(history({100, 101}, {60, 5}, 1000) == page_history::several_servers);
    CHECK(history({1000, 1001}, {60, 0}, 1000) == page_history::restarted);
    // One that says that it did not begin anew is believed.
    CHECK(history({1, 1, 1, 1}, {5, 6, 2, 3}) == page_history::one_process);
    // Whoever was there before the first reading has not begun since, however few readings there
    // are. Starts and dates are told in seconds.
    CHECK(history({100, 200}, {5, 60}, 1000) == page_history::several_servers);
    CHECK(history({200, 100}, {5, 60}, 1000) == page_history::several_servers);
    CHECK(history({100, 200, 300}, {5, 60, 7}, 1000) == page_history::several_servers);
    CHECK(history({100, 1005}, {5, 60}, 1000) == page_history::restarted);
    CHECK(history({100, 999}, {5, 0}, 1000) == page_history::restarted);
    CHECK(history({100, 1005, 1007, 1009}, {5, 0, 0, 0}, 1000) == page_history::restarted);
    // The old one is there still.
    CHECK(history({100, 1005, 100}, {5, 0, 6}, 1000) == page_history::several_servers);
    CHECK(history({100, 100}, {5, 60}, 1000) == page_history::one_process);
    // Where no page tells a beginning, several were seen when nothing was asked of them.
    CHECK(history({}, {5, 2}, 1000) == page_history::restarted);
    CHECK(history({}, {5, 2}, 1000, true) == page_history::several_servers);
    CHECK(history({}, {5, 60}, 1000, true) == page_history::several_servers);
}
