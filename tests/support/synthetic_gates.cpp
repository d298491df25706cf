#include "support/synthetic_gates.hpp"

#include "core/base/random.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/planning.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

namespace synthetic_gates {

lb::repeat_data repeat_of(const lb::plan& p, const server& s, llmbench::run_variant variant, int index) {
    lb::repeat_data d;
    d.variant = variant;
    d.index = index;
    const bool paced = p.sent->arrivals.rate > 0;
    const double rate = paced ? p.sent->arrivals.rate : 10;
    lb::generator traffic(p.sent->seed, 1),
        machine(p.sent->seed + 77,
                100 + static_cast<std::uint64_t>(index) * 2 + (variant == llmbench::run_variant::baseline));
    const double pace = std::exp(s.repeat_noise * machine.normal());
    const long long start_ns = 5'000'000'000'000 + index * 100'000'000'000'000;
    const auto ns = [&](double t) { return start_ns + std::llround(t * 1e9); };
    const long long n = p.sent->warmup_requests + p.sent->requests;
    const auto lengths =
        dynamic_cast<const lb::synthetic_prompts&>(*p.sent->source).said.output_tokens;
    double at = 0, from = 0;
    for (long long i = 0; i < n; ++i) {
        at += traffic.exponential() / rate;
        if (i == p.sent->warmup_requests) from = at;
        const int tokens = std::max(2, lb::drawn_length(lengths, traffic, 1));
        llmbench::record r;
        r.id = lb::printed("synthetic-%d-%lld", index, i);
        r.variant = variant;
        r.repeat = index;
        r.phase =
            i < p.sent->warmup_requests ? llmbench::run_phase::warmup
                                        : llmbench::run_phase::measure;
        r.scheduled_ns = ns(at);
        r.dispatched_ns = r.connected_ns = r.sent_ns = ns(at + 0.00002);
        r.late_ns = 20000;
        r.http_status = 200;
        d.gap_offsets.push_back(d.gaps.size());
        if (machine.uniform() < s.failed) {
            r.status = llmbench::request_status::http;
            r.http_status = 503;
            r.error = s.error;
            r.end_ns = ns(at + 0.004);
            d.records.push_back(r);
            continue;
        }
        const double ttft = s.ttft_s * pace * std::exp(0.5 * machine.normal());
        const long long first = ns(at + ttft);
        long long total_us = 0;
        for (int k = 1; k < tokens; ++k) {
            const double gap = s.gap_s * pace * (0.7 + 0.6 * machine.uniform());
            const auto us = static_cast<std::uint32_t>(std::lround(gap * 1e6));
            d.gaps.push_back(us);
            total_us += us;
        }
        r.first_token_ns = first;
        r.last_token_ns = r.end_ns = first + total_us * 1000;
        r.prompt_tokens = 200;
        r.output_tokens = r.events = tokens;
        r.first_event_tokens = 1;
        r.token_source = llmbench::token_origin::usage;
        r.status = llmbench::request_status::ok;
        r.finish_reason = "length";
        d.content_events += tokens;
        d.records.push_back(r);
    }
    d.window = llmbench::detail::time_interval::between(ns(from), ns(at));
    if (paced) d.asked_rate = d.achieved_rate = rate;
    d.connections_opened = 12;
    d.cpu_utilization = 0.08;
    d.thread_cpu_utilization = {0.08};
    return d;
}
sample_gates::test_gate gate_of(const std::string& name, const llmbench::scenario& s, const server& candidate, int repeats, const server* baseline) {
    sample_gates::test_gate g;
    g.what = lb::planned(s, 1);
    g.what.name = g.what.test_case = name;
    g.what.file = "gates.cpp";
    g.what.line = 12;
    g.target = sample_gates::tiny_model();
    if (baseline)
        g.baseline = {lb::target_kind::endpoint, "http://127.0.0.1:8001", "tiny", "openai_chat"};
    for (int i = 0; i < repeats; ++i) {
        g.measured.candidate.push_back(
            repeat_of(g.what, candidate, llmbench::run_variant::candidate, i));
        if (baseline)
            g.measured.baseline.push_back(
                repeat_of(g.what, *baseline, llmbench::run_variant::baseline, i));
    }
    g.measured.slos = g.what.judged->slos;
    g.measured.rule = g.what.judged->rule;
    sample_gates::judge(g);
    return g;
}

}  // namespace synthetic_gates
