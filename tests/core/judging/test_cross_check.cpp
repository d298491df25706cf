// The server's counts against ours: who else was there, and what is counted differently.
#include "core/judging/judge.hpp"
#include "core/judging/cross_check.hpp"
#include "core/described/causes.hpp"
#include "core/described/described.hpp"
#include "support/server_pages.hpp"
#include "support/verdicts.hpp"

#include <string>

using namespace sample_pages;
using namespace verdicts;
using quantity = server_quantity;

namespace {
/// Of so many requests of ours, ten tokens each, what the server says that it did.
repeat_data repeat_reported(int ours, double requests, double tokens) {
    vector<timelines::request> all;
    for (int i = 0; i < ours; ++i) {
        timelines::request r(1000 + 10.0 * i);
        for (int k = 0; k < 10; ++k) r.content(1050 + 10.0 * i + 5 * k);
        all.push_back(r.finish(1100 + 10.0 * i).usage(1100 + 10.0 * i, 20, 10).done(1100 + 10.0 * i));
    }
    repeat_data d = timelines::repeat_of(all);
    read_at_each_second(d, 6);
    report(d, quantity::requests_done, {100, 100, 100, 100, 100, 100 + requests});
    report(d, quantity::generation_tokens, {50, 50, 50, 50, 50, 50 + tokens});
    return d;
}
cause cross_check_fault(const measurements& e, const repeat_data& d) {
    cause why = restarted(e, d);
    return why ? why : served_others(unfinished_requests(e), d);
}
std::string fault_of(const repeat_data& d) {
    measurement m = measured({d});
    return described(cross_check_fault(m, m.candidate[0]));
}
}  // namespace

TEST_CASE("a server that counts what we do says nothing") {
    const repeat_data d = repeat_reported(50, 50, 500);
    CHECK(fault_of(d) == "");
    CHECK(difference_text(cross_check_of(d)) == "");
    CHECK(cross_check_of(d).is_made);
}

TEST_CASE("cached tokens of usage are held against those of the page") {
    const auto with = [](int cached, double reported) {
        measurement m;
        for (int i = 0; i < 3; ++i) {
            repeat_data d = repeat_reported(50, 50, 500);  // 20 prompt tokens each
            d.index = i;
            timelines::share_tokens(d, 1000);
            for (record& r : d.records) r.cached_tokens = cached;
            if (reported >= 0) report(d, quantity::prefix_hits, {7, 7, 7, 7, 7, 7 + reported});
            m.candidate.push_back(d);
        }
        return judged(m, cached_share >= 30_pct);
    };
    CHECK(with(16, 800).outcome == verdict::pass);
    CHECK(with(16, 760).outcome == verdict::pass);  // 4 % of the prompts
    CHECK(with(16, -1).outcome == verdict::pass);   // no page tells
    CHECK(with(16, 400).outcome == verdict::invalid);
    CHECK(str(with(16, 400).reason) ==
          "server: its usage has 800 cached tokens, its page 400 found in its prefix cache (repeat 1): "
          "several workers count them, or another cache has a part");
    CHECK(with(8, 800).outcome == verdict::invalid);
}

TEST_CASE("at once a server may have the requests of both variants") {
    const auto at_once = [](double requests, double tokens, int failed) {
        measurement m = measured({repeat_reported(50, requests, tokens)});
        m.is_at_once = true;
        m.baseline.push_back(m.candidate[0]);
        repeat_data& d = m.baseline[0];
        d.variant = run_variant::baseline;
        d.server = {};
        for (record& r : d.records)
            if (failed-- > 0) r.status = request_status::http;
        return m;
    };
    const auto fault = [](const measurement& m) {
        return described(cross_check_fault(m, m.candidate[0]));
    };
    const auto differences = [](const measurement& m) {
        return difference_text(cross_check_of(m.candidate[0], &m.baseline[0]));
    };
    for (const auto& [requests, tokens, failed] :
         {std::array{50, 500, 0}, std::array{100, 1000, 0}, std::array{90, 900, 10},
          std::array{101, 1001, 0}}) {  // and a health probe
        CAPTURE(requests);
        CHECK(fault(at_once(requests, tokens, failed)) == "");
    }
    CHECK(differences(at_once(50, 500, 0)) == "");
    CHECK(differences(at_once(100, 1000, 0)) == "");
    CHECK(difference_text(cross_check_of(repeat_reported(50, 100, 1000))) != "");
    CHECK(fault(at_once(130, 1300, 0)) ==
          "it served others too: in repeat 1 its page counts 130 finished requests, ours were 100");
    CHECK(fault(at_once(70, 700, 0)) != "");
    // A page of the other variant with its own load alone: somebody else has the second one.
    measurement apart = at_once(100, 1000, 0);
    apart.baseline[0].server = repeat_reported(50, 50, 500).server;
    CHECK(fault(apart) ==
          "it served others too: in repeat 1 its page counts 100 finished requests, ours were 50");
    measurement in_turns = at_once(100, 1000, 0);
    in_turns.is_at_once = false;
    CHECK(fault(in_turns) != "");
}

TEST_CASE("more requests than ours were somebody else's") {
    const repeat_data d = repeat_reported(50, 70, 700);
    CHECK(fault_of(d) ==
          "it served others too: in repeat 1 its page counts 70 finished requests, ours were 50");
    const measurement m = measured({d, d}, {mean(ttft) <= 100_ms});
    for (const slo_verdict& v : judge_all(m)) {
        CHECK(v.outcome == verdict::invalid);
        CHECK(mentions(v.reason, "server: it served others too"));
    }
    // One long one is enough, one short one is not.
    CHECK(fault_of(repeat_reported(50, 51, 2500)) != "");
    CHECK(fault_of(repeat_reported(50, 51, 501)) == "");
    CHECK(difference_text(cross_check_of(repeat_reported(50, 51, 501))) ==
          "1 request of somebody else");
}

TEST_CASE("what an earlier repeat gave up, the server may have finished since") {
    vector<timelines::request> lost;
    for (int i = 0; i < 20; ++i) lost.push_back(timelines::failed(100.0 * i));
    lost.push_back(timelines::answered(0, 50));
    measurement m = measured({timelines::repeat_of(lost), repeat_reported(50, 70, 700)});
    m.candidate[1].index = 1;
    CHECK(unfinished_requests(m).before(m.candidate[1]) == 20);
    CHECK(unfinished_requests(m).before(m.candidate[0]) == 0);
    CHECK(!cross_check_fault(m, m.candidate[1]));
}

TEST_CASE("what a side task excuses is excused in its time alone") {
    const auto excused = [](repeat_data d, double at_s, double for_s) {
        side_task_seen t;
        t.name = "kill";
        t.excuses_s = for_s;
        t.steps = {{"POST /kill", timelines::at_ms(1000 * at_s), timelines::at_ms(1000 * at_s),
                    timelines::at_ms(1000 * at_s)}};
        d.side_tasks = {t};
        return d;
    };
    const auto at_s = [](const repeat_data& d, std::size_t i) {
        return static_cast<double>(d.server.readings[i].at_ns - timelines::at_ms(0)) * 1e-9;
    };
    // Twenty requests of somebody else, read by the last reading.
    const repeat_data others = repeat_reported(50, 70, 700);
    CHECK(fault_of(excused(others, at_s(others, 5), 1)) == "");
    CHECK(fault_of(excused(others, at_s(others, 1), 1)) != "");
    // A restart that the last reading tells of.
    repeat_data anew = repeat_reported(50, 50, 500);
    for (page_reading& r : anew.server.readings) r.began = 100;
    anew.server.from_s = 200;
    anew.server.readings.back().began = 250;
    REQUIRE(fault_of(anew).find("it restarted in repeat 1") == 0);
    CHECK(fault_of(excused(anew, at_s(anew, 4) + 0.5, 1)) == "");
    CHECK(fault_of(excused(anew, at_s(anew, 0), 1)).find("it restarted in repeat 1") == 0);
    // A server that went away: in the time of a task, or after it had answered again.
    repeat_data gone = repeat_reported(50, 50, 500);
    gone.target_gone = "its process exited with code 1";
    const auto lost = [](const repeat_data& d) {
        return judged(measured({d, d}), mean(ttft) <= 100_s).reason;
    };
    CHECK(mentions(lost(excused(gone, -2, 0.5)), "exited with code 1"));
    CHECK_FALSE(mentions(lost(excused(gone, 0.5, 60)), "exited with code 1"));
}

TEST_CASE("a server that counts each request in every process is nobody's other load") {
    const repeat_data d = repeat_reported(50, 200, 500);
    CHECK(fault_of(d) == "");
    CHECK(difference_text(cross_check_of(d)) == "it counts each request 4 times");
    CHECK(fault_of(repeat_reported(50, 199, 500)) != "");
    // Somebody else with as many requests has tokens of his own; nobody knows where none are told.
    CHECK(fault_of(repeat_reported(50, 100, 1000)) != "");
    CHECK(difference_text(cross_check_of(repeat_reported(50, 100, 1000))).find("each request") ==
          std::string::npos);
    repeat_data untold = repeat_reported(50, 100, 500);
    for (record& r : untold.records) r.token_source = token_origin::events;
    CHECK(fault_of(untold) != "");
}

TEST_CASE("a server that counts each text of an embedding or a score is nobody's other load") {
    // Of 50 requests with 20 prompt tokens each, as vLLM counts rerankings: by the document.
    repeat_data d = repeat_reported(50, 317, 0);
    for (record& r : d.records) r.output_tokens = 0;
    CHECK(fault_of(d) != "");  // of prompts its page says nothing
    report(d, quantity::prompt_tokens, {7, 7, 7, 7, 7, 7 + 1000});
    CHECK(fault_of(d) == "");
    CHECK(difference_text(cross_check_of(d)) == "");
    d.records[0].prompt_tokens = 0;  // not told
    report(d, quantity::prompt_tokens, {7, 7, 7, 7, 7, 7 + 995});
    CHECK(fault_of(d) == "");
    report(d, quantity::prompt_tokens, {7, 7, 7, 7, 7, 7 + 1100});
    CHECK(fault_of(d) != "");
    report(d, quantity::prompt_tokens, {7, 7, 7, 7, 7, 7 + 1000});
    report(d, quantity::generation_tokens, {50, 50, 50, 50, 50, 51});
    CHECK(fault_of(d) != "");
}

TEST_CASE("tokens that are counted differently are said") {
    CHECK(difference_text(cross_check_of(repeat_reported(50, 50, 1000))) ==
          "it counts 1000 generated tokens, the usage in its answers 500");
    CHECK(fault_of(repeat_reported(50, 50, 1000)) == "");
    CHECK(difference_text(cross_check_of(repeat_reported(50, 50, 509))) == "");
    // A server that counts before it has all of them is no other's.
    CHECK(difference_text(cross_check_of(repeat_reported(50, 40, 400))).find("400") !=
          std::string::npos);
}

TEST_CASE("a restart in mid-run makes a gate invalid, several servers behind an address do not") {
    repeat_data d = repeat_reported(50, 50, 500);
    for (std::size_t i = 0; i < 6; ++i) d.server.readings[i].began = i < 3 ? 100 : 200;
    CHECK(fault_of(d).find("it restarted in repeat 1, or another one answers") == 0);
    for (std::size_t i = 0; i < 6; ++i) d.server.readings[i].began = i % 2 ? 100 : 200;
    CHECK(fault_of(d) == "");
    CHECK(!cross_check_of(d).is_made);
}

TEST_CASE("a start time that moves by 2 s at most is one") {
    for (const double step : {0.01, 1.0, 2.0}) {
        CAPTURE(step);
        repeat_data d = repeat_reported(50, 50, 500);
        for (std::size_t i = 0; i < 6; ++i) d.server.readings[i].began = 100 + (i % 2 ? step : 0);
        CHECK(history_of(d.server) == page_history::one_process);
        CHECK(cross_check_of(d).is_made);
    }
    // It may drift by more over a load, and between two.
    measurement m = measured({repeat_reported(50, 50, 500), repeat_reported(50, 50, 500)});
    m.candidate[1].index = 1;
    for (std::size_t i = 0; i < 6; ++i) {
        m.candidate[0].server.readings[i].began = 100 + static_cast<double>(i);
        m.candidate[1].server.readings[i].began = 106 + static_cast<double>(i);
    }
    CHECK(history_of(m.candidate[0].server) == page_history::one_process);
    CHECK(!cross_check_fault(m, m.candidate[1]));

    // Two processes that started together have counters that fall.
    repeat_data two = repeat_reported(50, 50, 500);
    two.server.from_s = 1000;
    report(two, quantity::requests_done, {100, 40, 110, 50, 120, 60});
    for (std::size_t i = 0; i < 6; ++i) two.server.readings[i].began = i % 2 ? 101 : 100;
    CHECK(history_of(two.server) == page_history::several_servers);
}

TEST_CASE("a page with fewer requests than are in flight says where the others may be") {
    // Of 12 requests in flight 4 run, and none waits in the queue that the page tells of.
    vector<timelines::request> all;
    for (int i = 0; i < 60; ++i) {
        timelines::request r(1000 + 100.0 * i);
        for (int k = 0; k < 10; ++k) r.content(1100 + 100.0 * i + 100 * k);
        const double end = 2200 + 100.0 * i;
        all.push_back(r.finish(end).usage(end, 20, 10).done(end));
    }
    const auto with = [&](double running, double waiting) {
        repeat_data d = timelines::repeat_of(all);
        read_at_each_second(d, 8);
        report(d, quantity::requests_done, {100, 100, 110, 120, 130, 140, 150, 160});
        report(d, quantity::running, vector<double>(8, running));
        report(d, quantity::waiting, vector<double>(8, waiting));
        return difference_text(cross_check_of(d));
    };
    CHECK(with(4, 0) == "it tells of 4 requests that run or wait, of ours 12 were in flight: the "
                        "others wait where it does not say");
    CHECK(with(4, 8) == "");
    CHECK(with(10, 0) == "");
    CHECK(with(4, not_a_number) == "");  // without a queue it cannot be all
}

TEST_CASE("a restart between repeats is one, unless it was asked for") {
    measurement m = measured({repeat_reported(50, 50, 500), repeat_reported(50, 50, 500)});
    m.candidate[1].index = 1;
    for (page_reading& r : m.candidate[0].server.readings) r.began = 100;
    for (page_reading& r : m.candidate[1].server.readings) r.began = 200;
    CHECK(!cross_check_fault(m, m.candidate[0]));
    CHECK(described(cross_check_fault(m, m.candidate[1])).find("it restarted before repeat 2") == 0);
    m.candidate[1].startup_s = 3;
    CHECK(!cross_check_fault(m, m.candidate[1]));
}

TEST_CASE("two servers behind an address that were there before restart in no repeat") {
    // A new connection each reading, and so now one of them and now the other, by chance.
    const vector<vector<double>> drawn[] = {
        {{100, 100}, {100, 200}, {200, 200}}, {{200, 100}, {100, 100}, {200, 200}},
        {{100, 200}, {200, 100}, {100, 100}}, {{100, 100}, {200, 200}, {100, 100}}};
    for (const auto& beginnings : drawn) {
        measurement m;
        for (std::size_t i = 0; i < 3; ++i) {
            m.candidate.push_back(repeat_reported(50, 25, 250));
            repeat_data& d = m.candidate.back();
            d.index = static_cast<int>(i);
            d.server.readings = {d.server.readings.front(), d.server.readings.back()};
            d.server.from_s = 1000 + 60.0 * static_cast<double>(i);
            for (std::size_t k = 0; k < 2; ++k) d.server.readings[k].began = beginnings[i][k];
        }
        for (const repeat_data& d : m.candidate) CHECK(!cross_check_fault(m, d));
        // One that began since the repeat before is another matter.
        for (page_reading& r : m.candidate[0].server.readings) r.began = 100;
        for (page_reading& r : m.candidate[1].server.readings) r.began = 1030;
        CHECK(described(cross_check_fault(m, m.candidate[1])).find("it restarted before repeat 2") == 0);
    }
}

TEST_CASE("several processes without a beginning each are nobody's other load") {
    // The first reading is of the one that did little, the last of the one that did much.
    repeat_data d = repeat_reported(50, 4987, 49870);
    CHECK(fault_of(d) != "");
    d.server.is_of_several = true;
    CHECK(fault_of(d) == "");
    CHECK(!cross_check_of(d).is_made);
}

TEST_CASE("the page of another server, or of one of several, is no word of this one") {
    const auto reason = [](double requests, double tokens) {
        repeat_data d = repeat_reported(50, requests, tokens);
        report(d, quantity::waiting, {0, 0, 0, 0, 0, 0});
        const slo_verdict v = judged(measured({d, d}), max(queued_requests) <= 8);
        return v.outcome == verdict::invalid ? str(v.reason) : std::string();
    };
    CHECK(reason(50, 500) == "");
    CHECK(reason(48, 480) == "");
    CHECK(reason(0, 0).find("server: its page counts 0 finished requests, ours were 50") == 0);
    CHECK(reason(25, 250).find("or that of one of several") != std::string::npos);
    CHECK(reason(not_a_number, 100).find("its page counts 100 generated tokens") !=
          std::string::npos);
    CHECK(reason(not_a_number, not_a_number) == "");
}

TEST_CASE("without a reading before and one after, nothing is held against anybody") {
    repeat_data d = repeat_reported(50, 70, 700);
    d.server.has_both_ends = false;
    CHECK(fault_of(d) == "");
    CHECK(!cross_check_of(d).is_made);
}

// ---- objectives of the server's own ------------------------------------------------------------

TEST_CASE("what may be zero is judged with its offset added") {
    const auto outcome = [](const vector<double>& most, const slo& s) {
        vector<repeat_data> repeats;
        for (const double v : most) {
            repeats.push_back(repeat_reported(50, 50, 500));
            report(repeats.back(), quantity::waiting, {0, 0, v, 0, 0, 0});
            report(repeats.back(), quantity::preemptions, {0, 0, 0, v, v, v});
        }
        return judged(measured(repeats, {s}), s);
    };
    CHECK(outcome({0, 0}, max(queued_requests) <= 8).outcome == verdict::pass);
    CHECK(outcome({0, 1, 0}, max(queued_requests) <= 8).outcome == verdict::pass);
    CHECK(outcome({7, 8, 9}, max(queued_requests) <= 8).outcome == verdict::inconclusive);
    CHECK(outcome({20, 22, 21}, max(queued_requests) <= 8).outcome == verdict::fail);
    CHECK(outcome({4, 4, 4}, p50(queued_requests) <= 8).outcome == verdict::invalid);  // 4 readings
    CHECK(outcome({0, 0}, preemptions <= 0).outcome == verdict::pass);
    CHECK(outcome({0, 0}, max(queued_requests) <= 0).outcome == verdict::pass);
    // One repeat with a preemption is never a pass, and one preemption in each shows the miss.
    CHECK(outcome({0, 0, 0, 0, 1}, preemptions <= 0).outcome != verdict::pass);
    CHECK(outcome({0, 1, 0, 0, 0}, preemptions <= 0).outcome == verdict::inconclusive);
    CHECK(outcome({1, 1, 1}, preemptions <= 0).outcome == verdict::fail);
    // The noise that is believed is a fraction of the value, not of a limit far below it.
    const slo_verdict far = outcome({400, 400, 400}, max(queued_requests) <= 8);
    CHECK(far.outcome == verdict::fail);
    CHECK(far.estimate.value == about(400));
    CHECK(far.estimate.high > 1.04 * far.estimate.value);
    const slo_verdict v = outcome({0, 0}, max(queued_requests) <= 8);
    CHECK(v.measured == 0);
    CHECK(v.limit == 8);
    CHECK(v.estimate.low == 0);
    CHECK(v.estimate.high < 8);
}

TEST_CASE("no extreme reading of any gauge is left out of what is judged") {
    // A reading in the middle of the window says that, and all others what is well within a limit.
    const auto outcome = [](const slo& s, double extreme, bool all_of_them = false) {
        vector<repeat_data> repeats;
        for (int i = 0; i < 3; ++i) {
            repeats.push_back(repeat_reported(50, 50, 500));
            repeat_data& d = repeats.back();
            d.server.selectors = {"x"};
            const bool at_most = s.at_most;
            for (std::size_t k = 0; k < d.server.readings.size(); ++k) {
                page_reading& r = d.server.readings[k];
                const double v = k == 2 || all_of_them ? extreme : at_most ? 0 : 6;
                for (const quantity q : {quantity::waiting, quantity::running, quantity::kv_usage})
                    r.values[static_cast<std::size_t>(q)] = v;
                r.named = {v};
            }
        }
        return judged(measured(repeats, {s}), s);
    };
    for (const slo& s : {max(queued_requests) <= 5, max(running_requests) <= 5,
                         max(kv_cache_usage) <= 90_pct, max(server_metric("x")) <= 5}) {
        CAPTURE(str(s.text()));
        CHECK(outcome(s, 0).outcome == verdict::pass);
        for (const double v : {infinity, largest_number, 1e300, 1e20}) {
            CAPTURE(v);
            CHECK(outcome(s, v).outcome == verdict::fail);
            // All of the time it cannot be true of requests, of which ten of ours were in flight.
            const bool is_of_requests = s.statistic.metric == metric_id::queued_requests ||
                                        s.statistic.metric == metric_id::running_requests;
            CHECK(outcome(s, v, true).outcome ==
                  (is_of_requests ? verdict::invalid : verdict::fail));
        }
        for (const double v : {-infinity, -largest_number}) {
            CHECK(outcome(s, v).outcome == verdict::pass);
            CHECK(outcome(s, v, true).outcome == verdict::pass);
        }
        const slo_verdict none = outcome(s, not_a_number);
        CHECK(none.outcome == verdict::invalid);
        CHECK(mentions(none.reason, "server: 1 of 4 readings of its page in the steady window do "
                                    "not report max("));
        CHECK(outcome(s, not_a_number, true).outcome == verdict::invalid);
    }
    for (const slo& s : {mean(queued_requests) <= 5, mean(server_metric("x")) <= 5}) {
        CHECK(outcome(s, infinity).outcome == verdict::fail);
        CHECK(outcome(s, largest_number, true).outcome != verdict::pass);
        CHECK(outcome(s, not_a_number).outcome == verdict::invalid);  // a quarter of what was read
    }
    CHECK(outcome(mean(server_metric("x")) >= 5, 9).outcome == verdict::pass);
    for (const double v : {-infinity, -largest_number})
        CHECK(outcome(mean(server_metric("x")) >= 5, v).outcome == verdict::fail);
    for (const double v : {infinity, largest_number})
        CHECK(outcome(mean(server_metric("x")) >= 5, v).outcome == verdict::pass);
    CHECK(outcome(max(running_requests) >= 5, not_a_number).outcome == verdict::pass);
}

TEST_CASE("a miss is shown by what was read, whatever was not") {
    vector<repeat_data> repeats;
    for (int i = 0; i < 3; ++i) {
        repeats.push_back(repeat_reported(50, 50, 500));
        report(repeats.back(), quantity::waiting,
               {0, 90, not_a_number, 90, 90, 0});
    }
    const auto outcome = [&](const slo& s) { return judged(measured(repeats, {s}), s).outcome; };
    CHECK(outcome(max(queued_requests) <= 8) == verdict::fail);
    CHECK(outcome(max(queued_requests) <= 500) == verdict::invalid);
    CHECK(outcome(mean(queued_requests) <= 8) == verdict::invalid);  // a quarter is too much
    for (repeat_data& d : repeats) {
        for (const quantity q : {quantity::waiting, quantity::running})
            report(d, q, {0, 90, 90, 90, 90, 0});
        d.window = time_interval::between(
            d.window.from_ns(), d.window.to_ns() + timelines::at_ms(8000) - timelines::at_ms(0));
        for (int k = 0; k < 8; ++k) {
            d.server.readings.push_back(d.server.readings[5]);
            d.server.readings.back().at_ns = timelines::at_ms(5000 + 800.0 * k);
        }
        d.server.missed_ns = {timelines::at_ms(4500)};
    }
    CHECK(outcome(max(queued_requests) <= 8) == verdict::fail);
    CHECK(outcome(max(queued_requests) <= 500) == verdict::invalid);
    CHECK(outcome(max(running_requests) >= 8) == verdict::pass);
    CHECK(outcome(max(running_requests) >= 500) == verdict::invalid);
}

TEST_CASE("server metrics are compared with a baseline by ratios that offsets cannot decide") {
    const auto pairs = [](double mine, double other) {
        measurement m;
        for (int i = 0; i < 4; ++i) {
            m.candidate.push_back(repeat_reported(50, 50, 500));
            m.baseline.push_back(repeat_reported(50, 50, 500));
            m.baseline.back().variant = run_variant::baseline;
            for (const auto& [d, s] : {std::pair{&m.candidate.back(), mine},
                                       std::pair{&m.baseline.back(), other}}) {
                report(*d, quantity::queue_time, {0, 0, 0, 0, 100 * s, 100 * s});
                count(*d, quantity::queue_time, {0, 0, 0, 0, 100, 100});
            }
        }
        return judged(m, mean(queue_time) <= 1.10 * baseline).outcome;
    };
    CHECK(pairs(0.100, 0.100) == verdict::pass);
    CHECK(pairs(0.200, 0.100) == verdict::fail);
    // 20 microseconds against 10: twice as much, and nothing.
    CHECK(pairs(0.00002, 0.00001) == verdict::pass);
    CHECK(pairs(0, 0) == verdict::pass);
}

TEST_CASE("an objective that the page does not report is invalid, with the reason") {
    const measurement m = measured({repeat_reported(50, 50, 500), repeat_reported(50, 50, 500)});
    const slo_verdict v = judged(m, mean(queue_time) <= 50_ms);
    CHECK(v.outcome == verdict::invalid);
    CHECK(str(v.reason) == "server: its page does not report queue_time (repeat 1)");
    CHECK(judged(m, max(queued_requests) <= 5).outcome == verdict::invalid);
    CHECK(judged(measured(repeats_with_ttft({80, 80})), preemptions <= 0).outcome ==
          verdict::invalid);
}

// ---- the baseline's faults -----------------------------------------------------------------------

TEST_CASE("what becomes of a baseline is nothing to the candidate's own objectives") {
    // Four pairs, of which the candidate's are clearly over its own limit.
    const auto pairs = [] {
        measurement m;
        for (int i = 0; i < 4; ++i) {
            for (auto* variant : {&m.candidate, &m.baseline}) {
                variant->push_back(repeats_with_ttft({300})[0]);
                variant->back().index = i;
                variant->back().asked_rate = variant->back().achieved_rate = 10;
            }
            m.baseline.back().variant = run_variant::baseline;
        }
        return m;
    };
    const slo own = mean(ttft) <= 100_ms, compared = mean(ttft) <= 2 * baseline;
    const auto outcomes = [&](measurement m) {
        m.slos = {own, compared};
        const auto all = judge_all(m);
        return std::pair{all[0].outcome, all[1].outcome};
    };
    CHECK(outcomes(pairs()) == std::pair{verdict::fail, verdict::pass});
    const auto harmed = [&](auto&& harm) {
        measurement m = pairs();
        harm(m.baseline[2]);
        return outcomes(m);
    };
    const std::pair only_compared{verdict::fail, verdict::invalid};
    CHECK(harmed([](repeat_data& d) { d.target_gone = "it is gone"; }) == only_compared);
    CHECK(harmed([](repeat_data& d) {
              read_at_each_second(d, 6);
              for (std::size_t i = 0; i < 6; ++i) d.server.readings[i].began = i < 3 ? 100 : 200;
          }) == only_compared);
    CHECK(harmed([](repeat_data& d) {
              for (record& r : d.records) {
                  r.status = request_status::connect;
                  r.error = "client: no file descriptor is left";
              }
          }) == only_compared);
    // Sent late, all of it.
    const auto [mine, relative] = harmed([](repeat_data& d) { send_late(d, {0.5}); });
    CHECK(mine == verdict::fail);
    CHECK(relative != verdict::fail);
    measurement slow = pairs();
    for (repeat_data& d : slow.baseline) d.achieved_rate = 5;
    CHECK(outcomes(slow).first == verdict::fail);
    measurement interrupted = pairs();
    interrupted.baseline[3].interrupted = true;
    CHECK(outcomes(interrupted) == std::pair{verdict::invalid, verdict::invalid});
}

// ---- what its state explains -------------------------------------------------------------------

TEST_CASE("what is failed or open tells what the server's state says to it") {
    const auto repeats = [](double ms) {
        vector<repeat_data> all = repeats_with_ttft({ms, ms, ms});
        for (repeat_data& d : all) {
            report(d, quantity::waiting, {0, 0, 0, 3, 37, 12, 9, 0});
            report(d, quantity::kv_usage, {0, 0.5, 0.99, 1, 1, 1, 1, 0});
            report(d, quantity::preemptions, {0, 0, 1, 9, 12, 12, 12, 12});
        }
        return all;
    };
    const std::string state = "server: the queue was never empty from 2 s on, with up to 37 "
                              "waiting; KV cache at 100 %, 36 preemptions";
    const auto reason = [&](double ms) {
        return judge_all(measured(repeats(ms), {mean(ttft) <= 100_ms}))[0].reason;
    };
    CHECK(mentions(reason(300), state.c_str()));
    CHECK(!mentions(reason(30), "queue"));
}

TEST_CASE("a queue that empties, a cache with room and even clocks explain nothing") {
    vector<repeat_data> all = repeats_with_ttft({300, 300});
    for (repeat_data& d : all) {
        report(d, quantity::waiting, {0, 2, 3, 0, 1, 0, 0, 0});
        report(d, quantity::kv_usage, {0, 0.5, 0.6, 0.7, 0.7, 0.7, 0.7, 0});
        report(d, quantity::clock, {2e9, 2e9, 2e9, 1.9e9, 2e9, 2e9, 2e9, 2e9});
    }
    CHECK(described(server_state_of(measured(all)), {}) == "");
    report(all[1], quantity::clock, {2e9, 1.7e9, 1.7e9, 1.7e9, 1.7e9, 1.7e9, 1.7e9, 2e9});
    CHECK(described(server_state_of(measured(all)), {}) ==
          "server: the accelerators' clocks were 14 % lower in repeat 2");
}

TEST_CASE("a page with more requests at once than were in flight contradicts itself, and is no evidence of them") {
    // Ten of ours overlap at most.
    repeat_data d = repeat_reported(400, 400, 4000);
    report(d, quantity::running, {0, 10, 11, 10, 10, 0});
    CHECK(difference_text(cross_check_of(d)) == "");
    const slo limit = max(running_requests) <= 500, other = mean(ttft) <= 100_ms;
    CHECK(judge_all(measured({d, d}, {limit, other}))[0].outcome == verdict::pass);
    report(d, quantity::running, {0, 80, 80, 80, 80, 0});
    CHECK(difference_text(cross_check_of(d)) ==
          "it tells of 80 requests at once, of ours at most 10 were in flight");
    const auto v = judge_all(measured({d, d}, {limit, other}));
    CHECK(v[0].outcome == verdict::invalid);
    CHECK(mentions(v[0].reason, "server: its page tells of 80 requests at once, of ours at most 10 "
                                "were in flight: it counts some several times, or serves others"));
    CHECK(v[1].outcome == verdict::pass);
    // One reading above is none: what was just answered may still be told of.
    report(d, quantity::running, {0, 10, 80, 10, 10, 0});
    CHECK(difference_text(cross_check_of(d)) == "");
    // Nor is anything said of what has no tokens, which may be a request for each of its texts.
    for (record& r : d.records) r.output_tokens = 0;
    report(d, quantity::running, {0, 80, 80, 80, 80, 0});
    CHECK(difference_text(cross_check_of(d)).find("at once") == std::string::npos);
}
