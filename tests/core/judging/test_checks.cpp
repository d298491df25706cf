// Each check of the list: the cause that it finds where nothing else is wrong, and of two neighbours
// that find one at once, the one that is told. tests/structure/checks.py holds the cases at the list.
#include "llmbench.hpp"
#include "core/judging/checks.hpp"
#include "core/judging/judge.hpp"
#include "extensions/answers/api.hpp"
#include "support/server_pages.hpp"
#include "support/verdicts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

using namespace sample_pages;
using namespace timelines;
using namespace verdicts;

namespace {

// No value where the answer took over a second.
const metric silent_at_times = of_request("silent_at_times", in_seconds, [](const request_view& r) {
    if (r[e2e] > 1) throw r[e2e];
    return r[e2e];
});

/// Three repeats, or four pairs, of 20 requests on which no check says anything: a ttft of 80 ms, then
/// ten tokens, one each 10 ms.
measurement sound(bool in_pairs) {
    measurement m;
    for (int i = 0; i < (in_pairs ? 4 : 3); ++i) {
        repeat_data d = steady_repeat(80);
        d.index = i;
        d.window = time_interval::between(at_ms(0), at_ms(2200));
        m.candidate.push_back(d);
        if (!in_pairs) continue;
        d.variant = run_variant::baseline;
        m.baseline.push_back(d);
    }
    return m;
}
/// The i-th request of each repeat: `change(r, i)`.
template <class Change>
void each_request(vector<repeat_data>& of, Change&& change) {
    for (repeat_data& d : of)
        for (std::size_t i = 0; i < d.records.size(); ++i) change(d.records[i], i);
}
/// The last four requests are two sessions of two turns, whose history the server keeps.
void go_on(measurement& m) {
    each_request(m.candidate, [](record& r, std::size_t i) {
        if (i < 16) return;
        r.conversation = static_cast<long long>(i / 2);
        r.turn = static_cast<int>(i % 2);
        if (r.turn == 1) r.most_prompt_tokens = -2000;
    });
}
void answer_rightly(measurement& m) {
    each_request(m.candidate, [](record& r, std::size_t i) {
        r.conversation = static_cast<long long>(i);
        r.right = true;
    });
}
void recover_in(measurement& m, const vector<double>& seconds) {
    for (std::size_t i = 0; i < m.candidate.size(); ++i)
        m.candidate[i].side_tasks = {
            {.name = "kill", .recovery_s = seconds[i], .steps = {{.what = "kill"}}}};
}
void end_in_mid_answer(measurement& m) {
    m.candidate = vector<repeat_data>(3, repeat_that_ends_in_mid_answer());
}

decision decided_on(measurement m, const slo& s, bool* again = nullptr) {
    m.slos = {s};
    const measurements e = m;
    const validity_checks g = validity_checks_of(e);
    std::optional<client_error> error;
    const decision v = decision_on(e, m, g, s, &error);
    if (again) *again = error.has_value();
    return v;
}
/// The first cause of this kind in a verdict, nothing where it has none.
cause cause_in(const decision& v, because what) {
    for (const cause& c : v.why)
        if (c.what == what) return c;
    return {};
}
/// How many causes stand before this one; all of them where it is none of them.
std::size_t place_in(const decision& v, const cause& c) {
    const auto at = std::find_if(v.why.begin(), v.why.end(), [&](const cause& x) {
        return x.what == c.what && (std::isnan(c["metric"]) || x["metric"] == c["metric"]);
    });
    return static_cast<std::size_t>(at - v.why.begin());
}

/// What one check finds, and what the verdict is by it.
struct row_case {
    const char* row;
    because what;
    verdict outcome;
    slo s;
    void (*harm)(measurement&) = nullptr;  // null: the objective alone makes the cause
    bool in_pairs = false;
    bool again = false;  // the client's repeat is to be measured again
};
vector<row_case> all_rows() {
    using enum verdict;
    const slo usual = mean(ttft) <= 100_ms, at_its_limit = mean(ttft) <= 80_ms,
              missed = mean(ttft) <= 30_ms, compared = mean(ttft) <= 1.1 * baseline,
              of_tokens = mean(tpot) <= 20_ms, closer = mean(tpot) <= 12_ms,
              of_gaps = p50(itl) <= 20_ms, of_prompts = mean(ttft_per_prompt_token) <= 100_ms;
    return {
        {"stopped_before", because::stopped, inconclusive, usual, [](measurement& m) {
             m.candidate.clear();
             m.stopped = "the time is spent";
         }},
        {"unsupported_files", because::unsupported, invalid, usual,
         [](measurement& m) { m.unsupported.push_back({"files of another kind", {}}); }},
        {"client_without", because::client_without, invalid, usual, [](measurement& m) {
             for (const std::size_t i : {3u, 11u}) {
                 m.candidate[0].records[i].status = request_status::connect;
                 m.candidate[0].records[i].error = "client: no file descriptor is left";
             }
         }},
        {"start_skew", because::reported, invalid, usual, [](measurement& m) {
             rank_part late;
             late.off_s = 0.02;
             m.max_skew_s = 0.005;
             m.candidate[0].ranks = {late};
         }},
        {"interrupted", because::interrupted, invalid, usual,
         [](measurement& m) { m.candidate[1].interrupted = true; }},
        {"server_gone", because::server_gone, invalid, usual,
         [](measurement& m) { m.candidate[1].target_gone = "its process exited with code 1"; }},
        {"side_task", because::task_failed, invalid, usual, [](measurement& m) {
             side_task_seen task;
             task.name = "reload";
             task.steps = {{"POST /reload", at_ms(500), at_ms(500), at_ms(510), "HTTP 500"}};
             m.candidate[1].side_tasks = {task};
         }},
        {"restarted", because::restarted, invalid, usual, [](measurement& m) {
             for (const std::size_t i : {0u, 1u}) {
                 read_at_each_second(m.candidate[i], 6);
                 for (page_reading& r : m.candidate[i].server.readings) r.began = i == 0 ? 100 : 200;
             }
         }},
        {"served_others", because::served_others, invalid, usual, [](measurement& m) {
             report(m.candidate[1], server_quantity::requests_done, {100, 100, 100, 100, 100, 145});
         }},
        {"no_success", because::none_succeeded, invalid, usual, [](measurement& m) {
             each_request(m.candidate,
                          [](record& r, std::size_t) { r.status = request_status::http; });
         }},
        {"unsupported", because::unsupported, invalid, usual,
         [](measurement& m) { m.unsupported.push_back({"no times", {metric_id::ttft}}); }},
        {"label_failed", because::label_failed, invalid, p50(ttft).of("lost") <= 1_s,
         [](measurement& m) {
             for (repeat_data& d : m.candidate) d.labels = {"fine", "lost"};
             each_request(m.candidate, [](record& r, std::size_t i) {
                 r.part = i % 2;
                 if (r.part == 1) r.status = request_status::http;
             });
         }},
        {"no_baseline", because::no_baseline, invalid, compared},
        {"other_tokens", because::other_tokens, invalid, output_throughput >= 0.1 * baseline,
         [](measurement& m) {
             m.other_workload = true;
             each_request(m.baseline, [](record& r, std::size_t) { r.output_tokens = 22; });
         }, true},
        {"not_played_out", because::not_played_out, invalid, max(session_time) <= 10_s},
        {"read_together", because::read_together, invalid, of_gaps, [](measurement& m) {
             for (repeat_data& d : m.candidate) {
                 d.coalesced_events = 44;  // of 220, by a client that is busy, but not too busy
                 d.cpu_utilization = std::max(d.cpu_utilization, 0.85);
             }
         }},
        {"client_conduct", because::client_is_busy, invalid, usual, [](measurement& m) {
             for (repeat_data& d : m.candidate) d.cpu_utilization = 0.95;
         }},
        {"server_metrics", because::metrics_reported, invalid, max(queued_requests) <= 8},
        {"cached_on_page", because::cached_on_page, invalid, cached_share >= 10_pct,
         [](measurement& m) {
             for (repeat_data& d : m.candidate) {
                 share_tokens(d, 1000);
                 read_at_each_second(d, 4);
                 report(d, server_quantity::requests_done, {0, 0, 0, 20});
                 report(d, server_quantity::prefix_hits, {0, 0, 0, 80});
             }
             each_request(m.candidate, [](record& r, std::size_t) {
                 r.prompt_tokens = 10;
                 r.cached_tokens = 8;
             });
         }},
        {"gaps_of_all", because::gaps_of_all, invalid, p50(itl).of("a") <= 20_ms,
         [](measurement& m) {
             for (repeat_data& d : m.candidate) {
                 d.labels = {"a"};
                 d.gaps_counted = true;
             }
         }},
        // Half of the answers begin with six of their eleven tokens: 80 ms of waiting may be theirs.
        {"in_a_burst", because::in_a_burst, invalid, closer, [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t i) {
                 if (i < 10) r.reads = r.first_read_events = 6;
             });
         }},
        // The same of the other half, and a client that may have read them so.
        {"starts_read_together", because::starts_read_together, invalid, closer,
         [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t i) {
                 if (i < 10) return;
                 r.reads = r.first_read_events = 6;
                 r.first_early_ns = 60'000'000;
             });
         }},
        // Three events a read, each 30 ms: gaps of 0, which may have been of 15.
        {"comes_in_bursts", because::comes_in_bursts, invalid, p50(itl) <= 12_ms,
         [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t) { r.reads = 4; });
             for (repeat_data& d : m.candidate) {
                 gap_list gaps;
                 for (std::uint64_t k = 0; k < d.gaps.size(); ++k)
                     gaps.push_back(k % 3 == 0 ? 30'000 : 0);
                 d.gaps = std::move(gaps);
             }
         }},
        // 21 tokens after the first one in ten gaps, and a finish 30 ms behind the last text.
        {"untold_end", because::untold_end, invalid, mean(tpot) <= 5.5_ms, [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t) {
                 r.output_tokens = 22;
                 r.textless_ns = 30'000'000;
             });
         }},
        {"none_selected", because::none_selected, invalid, p50(ttft).of(turns(3)) <= 1_s},
        {"share_machine", because::share_machine, invalid, compared, [](measurement& m) {
             m.candidate[0].speed_at_once = 0.75;  // beside one that is three times faster
             m.baseline[0].speed_at_once = 0.25;
             m.candidate[0].speed_error = m.baseline[0].speed_error = 0.05;
         }, true},
        {"alike_alone", because::alike_alone, invalid, compared, [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t) { r.opening_hash = 7; });
         }, true},
        {"several_models", because::several_models, invalid, usual, [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t i) {
                 if (i % 5 > 2) r.model = "small";
             });
         }},
        {"from_cache", because::from_cache, invalid, usual, [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t i) { r.from_cache = i % 5 > 0; });
         }},
        {"other_length", because::stops_early, invalid, usual,
         [](measurement& m) { force_lengths(m.candidate[0], 20, 64); }},
        {"filtered", because::filtered, invalid, usual, [](measurement& m) {
             each_request(m.candidate,
                          [](record& r, std::size_t) { r.finish_reason = "content_filter"; });
         }},
        {"short_prompts", because::short_prompts, invalid, usual,
         [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t) {
                 r.prompt_tokens = 100;
                 r.asked_prompt_tokens = 200;
             });
         }},
        {"no_history", because::no_history, invalid, usual, go_on},
        {"known_prompts", because::known_prompts, invalid, usual, [](measurement& m) {
             for (repeat_data& d : m.candidate) share_tokens(d, 0);
             each_request(m.candidate, [](record& r, std::size_t) {
                 r.prompt_tokens = 1000;
                 r.cached_tokens = 830;
             });
         }},
        {"no_usage", because::no_usage, invalid, of_tokens, [](measurement& m) {
             each_request(m.candidate,
                          [](record& r, std::size_t) { r.token_source = token_origin::no_usage; });
         }},
        {"wrong_usage", because::wrong_usage, invalid, of_tokens, [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t) { r.most_output_tokens = 5; });
         }},
        {"usage_may_hide", because::usage_may_hide, invalid, of_tokens, [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t) { r.hidden_tokens = -1; });
         }},
        {"usage_over_prompt", because::usage_over_prompt, invalid, of_prompts, [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t) { r.most_prompt_tokens = 5; });
         }},
        {"lacks_values", because::lacks_values, invalid, of_prompts, [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t i) {
                 if (i % 4 == 0) r.prompt_tokens = 0;
             });
         }},
        {"own_values", because::lacks_values, invalid, max(silent_at_times) <= 1_s,
         [](measurement& m) {
             m.candidate.assign(3, steady_repeat(80, 100));
             m.candidate[1].records[7].end_ns += 2'000'000'000;  // one in 300
         }},
        {"small_sample", because::small_sample, invalid, usual, [](measurement& m) {
             for (repeat_data& d : m.candidate) d.records.resize(9);  // ten are enough
         }},
        {"window_ends", because::window_ends, invalid, request_throughput >= 0.001_rps,
         end_in_mid_answer},
        {"over_saturated", because::probe_too_short, invalid, usual, [](measurement& m) {
             m.arrival_cv2 = 1;
             each_request(m.candidate, [](record& r, std::size_t) {
                 r.end_ns = r.scheduled_ns + 1'000'000'000;  // in 2 s of load
             });
         }},
        {"baseline_fails", because::baseline_fails, invalid, compared, [](measurement& m) {
             each_request(m.baseline, [](record& r, std::size_t i) {
                 if (i < 8) r.status = request_status::http;
             });
         }, true},
        {"baseline_may_fail", because::baseline_may_fail, inconclusive, compared,
         [](measurement& m) { m.baseline[1].records[3].status = request_status::http; }, true},
        {"failed_too_often", because::failed_too_often, invalid, error_rate <= 1_pct,
         [](measurement& m) {
             m.candidate = {m.candidate[0]};
             m.rule.most = 1;
             for (const std::size_t i : {7u, 8u}) m.candidate[0].records[i].status = request_status::http;
         }},
        {"stopped", because::stopped, inconclusive, at_its_limit,
         [](measurement& m) { m.stopped = "the time is spent"; }},
        {"undisturbed", because::undisturbed, inconclusive, recovery_time <= 15_s,
         [](measurement& m) { recover_in(m, {8, 0, 8.2}); }},
        {"too_close", because::too_close, inconclusive, at_its_limit},
        {"holds_anyway", because::holds_anyway, pass, of_tokens, [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t) {
                 r.reads = r.first_read_events = 6;
             });
         }},
        {"cached", because::cached, pass, usual, [](measurement& m) {
             each_request(m.candidate, [](record& r, std::size_t) { r.cached_tokens = 4; });
         }},
        {"a_few_answers", because::several_models, pass, usual,
         [](measurement& m) { m.candidate[1].records[7].model = "small"; }},
        {"cut_off", because::cut_off, invalid, max(ttft) <= 1_s, [](measurement& m) {
             for (repeat_data& d : m.candidate) {
                 d.ends_open = true;
                 d.records[3].status = request_status::cancelled;
             }
         }},
        {"read_late", because::read_together, invalid, of_gaps, [](measurement& m) {
             for (repeat_data& d : m.candidate) {
                 d.reads = d.stamped_reads = 1000;
                 d.unknown_gaps = 44;  // of 200
             }
         }, false, true},
        {"client_lost", because::client_lost, invalid, usual,
         [](measurement& m) { m.candidate[1].lost_fraction = 0.5; }, false, true},
        {"client_late", because::sent_late, invalid, mean(ttft) <= 65_ms, [](measurement& m) {
             for (repeat_data& d : m.candidate) {
                 send_late(d, {0.021, 0, 0, 0});
                 note_lateness(d);
             }
         }, false, true},
        {"open_and_late", because::sent_late, inconclusive, mean(ttft) <= 80_ms, [](measurement& m) {
             for (repeat_data& d : m.candidate) {
                 send_late(d, {0.021, 0, 0, 0});
                 note_lateness(d);
             }
         }, false, true},
        {"which_answers", because::wrong_answers, pass, accuracy >= 80_pct, answer_rightly},
        {"server_state", because::queue_stood, fail, missed, [](measurement& m) {
             for (repeat_data& d : m.candidate)
                 report(d, server_quantity::waiting, {0, 0, 0, 3, 37, 12, 9, 0});
         }},
    };
}
row_case case_of(std::string_view row) {
    for (const row_case& c : all_rows())
        if (row == c.row) return c;
    return {};
}

/// Neighbours of the list that may find a cause at once. Why others cannot, or why nobody sees which
/// is first, stands in tests/structure/mutations.py.
struct order_case {
    const char* first;
    const char* second;
    slo s;
    void (*also)(measurement&) = nullptr;  // so that the objective has a verdict
};
vector<order_case> all_orders() {
    const slo usual = mean(ttft) <= 100_ms, missed = mean(ttft) <= 30_ms,
              of_tokens = mean(tpot) <= 20_ms, closer = mean(tpot) <= 12_ms,
              of_prompts = mean(ttft_per_prompt_token) <= 100_ms;
    return {
        {"unsupported_files", "client_without", usual},
        {"client_without", "start_skew", usual},
        {"start_skew", "interrupted", usual},
        {"server_gone", "side_task", usual},
        {"side_task", "restarted", usual},
        {"read_together", "client_conduct", p50(itl) <= 20_ms},
        {"client_conduct", "server_metrics", max(queued_requests) <= 8},
        {"in_a_burst", "starts_read_together", closer},
        {"starts_read_together", "comes_in_bursts",
         goodput(tpot <= 12_ms && itl <= 1_s) >= 90_pct},
        {"share_machine", "alike_alone", mean(ttft) <= 1.25 * baseline},
        {"alike_alone", "other_tokens", output_throughput >= 0.1 * baseline},
        {"comes_in_bursts", "untold_end", goodput(tpot <= 5.5_ms && itl <= 1_s) >= 90_pct},
        {"several_models", "from_cache", usual},
        {"from_cache", "other_length", usual},
        {"other_length", "filtered", usual},
        {"filtered", "short_prompts", usual},
        {"short_prompts", "no_history", usual},
        {"no_history", "known_prompts", usual},
        {"known_prompts", "no_usage", of_tokens},
        {"no_usage", "wrong_usage", of_tokens},
        {"wrong_usage", "usage_may_hide", of_tokens},
        {"usage_over_prompt", "lacks_values", of_prompts},
        {"lacks_values", "own_values",
         goodput(silent_at_times <= 1_s && ttft_per_prompt_token <= 1_s) >= 98.4_pct},
        {"small_sample", "window_ends", request_throughput >= 0.001_rps},
        {"failed_too_often", "stopped", error_rate <= 1_pct,
         [](measurement& m) { m.candidate = {m.candidate[0]}; }},
        {"stopped", "undisturbed", recovery_time <= 15_s,
         [](measurement& m) { recover_in(m, {8, 30, 8.2}); }},
        {"holds_anyway", "cached", goodput(ttft <= 1_s && tpot <= 20_ms) >= 60_pct},
        {"cached", "a_few_answers", usual},
        {"client_lost", "client_late", mean(ttft) <= 65_ms},
        {"which_answers", "server_state", accuracy >= 99.9_pct, answer_rightly},
    };
}

/// Of 20 answers in each of four repeats so many begin with one text.
verdict verdict_on_openings(std::size_t mine, std::size_t other) {
    measurement m = sound(true);
    each_request(m.candidate, [&](record& r, std::size_t i) { r.opening_hash = i < mine ? 7 : 0; });
    each_request(m.baseline, [&](record& r, std::size_t i) { r.opening_hash = i < other ? 7 : 0; });
    return decided_on(m, mean(ttft) <= 1.5 * baseline).outcome;
}

}  // namespace

TEST_CASE("one build on two servers is compared, though half of its answers begin alike") {
    CHECK(verdict_on_openings(11, 10) == verdict::pass);
    CHECK(verdict_on_openings(13, 7) == verdict::pass);  // as chance may have it
    CHECK(verdict_on_openings(20, 20) == verdict::pass);
    CHECK(verdict_on_openings(10, 0) == verdict::pass);
    CHECK(verdict_on_openings(20, 8) == verdict::invalid);
    CHECK(verdict_on_openings(12, 0) == verdict::invalid);
}

TEST_CASE("each check finds its cause where nothing else is wrong") {
    const vector<row_case> rows = all_rows();
    for (const check& row : checks) {
        const std::string_view name = row.name;
        CAPTURE(std::string(name));
        CHECK(std::count_if(rows.begin(), rows.end(),
                            [&](const row_case& c) { return name == c.row; }) == 1);
    }
    CHECK(rows.size() == checks.size());
    for (const row_case& c : rows) {
        CAPTURE(std::string(c.row));
        measurement m = sound(c.in_pairs);
        if (c.harm) {
            CHECK_FALSE(cause_in(decided_on(m, c.s), c.what));
            c.harm(m);
        }
        bool again = false;
        const decision v = decided_on(m, c.s, &again);
        CHECK(cause_in(v, c.what));
        CHECK(v.outcome == c.outcome);
        CHECK(again == c.again);
    }
}

TEST_CASE("of two checks that find a cause at once the first of the list is told, or told first") {
    for (const order_case& o : all_orders()) {
        const row_case first = case_of(o.first), second = case_of(o.second);
        CAPTURE(std::string(o.first));
        CAPTURE(std::string(o.second));
        const auto with = [&](bool has_first, bool has_second) {
            measurement m = sound(first.in_pairs || second.in_pairs);
            if (o.also) o.also(m);
            if (has_second && second.harm) second.harm(m);
            if (has_first && first.harm) first.harm(m);
            return decided_on(m, o.s);
        };
        // Each is there alone, but behind what the objective itself makes.
        const cause one = cause_in(with(true, false), first.what),
                    other = cause_in(with(false, true), second.what);
        CHECK(one);
        CHECK(other);
        const decision both = with(true, true);
        CHECK(place_in(both, one) < both.why.size());
        CHECK(place_in(both, one) < place_in(both, other));
    }
}

TEST_CASE("a few failed requests of a baseline open a fail that they may explain, and no other") {
    const slo of_mean = mean(ttft) <= 1.1 * baseline, of_p50 = p50(ttft) <= 1.1 * baseline,
              by_time = mean(ttft) <= baseline + 8_ms;
    const auto against = [&](double ms, std::size_t failed, const slo& s) {
        measurement m = sound(true);
        for (repeat_data& d : m.candidate) d.records = steady_repeat(ms).records;
        for (std::size_t i = 0; i < failed; ++i) m.baseline[i].records[3].status = request_status::http;
        return decided_on(m, s);
    };
    for (const slo& s : {of_mean, of_p50, by_time}) {
        CHECK(against(96, 0, s).outcome == verdict::fail);
        CHECK(against(200, 1, s).outcome == verdict::fail);
    }
    // Ten times as slow, one of 80 makes the baseline's mean 11 % longer.
    CHECK(cause_in(against(96, 1, of_mean), because::baseline_may_fail));
    CHECK(cause_in(against(96, 1, by_time), because::baseline_may_fail));
    CHECK(against(96, 1, of_mean).outcome == verdict::inconclusive);
    CHECK(against(96, 1, of_p50).outcome == verdict::fail);  // it is among the slow half already
    // Of gaps a request without an answer is one of thousands.
    const auto slow_gaps = [](std::size_t failed) {
        measurement m = sound(true);
        for (repeat_data& d : m.candidate) {
            const repeat_data slower = steady_repeat(80, 20, 15);
            d.records = slower.records;
            d.gaps = slower.gaps;
            d.gap_offsets = slower.gap_offsets;
        }
        for (std::size_t i = 0; i < failed; ++i) m.baseline[i].records[3].status = request_status::http;
        return decided_on(m, p50(itl) <= 1.1 * baseline);
    };
    CHECK(slow_gaps(0).outcome == verdict::fail);
    CHECK(cause_in(slow_gaps(1), because::baseline_may_fail));
    CHECK(against(60, 1, of_p50).outcome == verdict::inconclusive);
}

TEST_CASE("files without a metric leave its objectives without numbers, others leave the numbers") {
    measurement m = sound(false);
    m.unsupported.push_back({"its log has no first tokens", {metric_id::ttft}});
    const decision without = decided_on(m, goodput(ttft <= 1_s) >= 50_pct);
    REQUIRE(without.why.size() == 1);
    CHECK(without.why[0].text == "its log has no first tokens");
    CHECK(without.outcome == verdict::invalid);
    CHECK(std::isnan(without.estimate.value));
    CHECK(decided_on(m, mean(tpot) <= 20_ms).outcome == verdict::pass);
    // What holds for all of them is a cause of the gate, whose numbers are those of its metrics.
    m.unsupported.clear();
    m.unsupported.push_back({"it was written by another tool", {}});
    const decision all = decided_on(m, mean(tpot) <= 20_ms);
    REQUIRE(all.why.size() == 1);
    CHECK(all.why[0].text == "it was written by another tool");
    CHECK(all.outcome == verdict::invalid);
    CHECK(all.estimate.value == about(0.010));
}

TEST_CASE("a side task that fails or does nothing makes another load, unless it may fail") {
    const slo s = mean(ttft) <= 100_ms;
    measurement m = sound(false);
    side_task_seen task;
    task.name = "reload";
    m.candidate[1].side_tasks = {task};
    CHECK(mentions(judged(m, s).reason, "server: its load was another one, as the side task "
                                        "\"reload\" did nothing in repeat 2"));
    task.steps = {{"POST /reload", at_ms(500), at_ms(500), at_ms(510), "HTTP 500"}};
    m.candidate[1].side_tasks = {task};
    CHECK(mentions(judged(m, s).reason, "as a side task failed in repeat 2: \"reload\", POST /reload "
                                        "HTTP 500"));
    m.candidate[1].side_tasks[0].may_fail = true;
    CHECK(judged(m, s).outcome == verdict::pass);
}
