// Runs of the engine model in virtual time, as a gate would have measured them.
#pragma once

#include "llmbench.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/planning/planning.hpp"
#include "extensions/simulated/core/engine_model.hpp"

#include <memory>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

namespace virtual_engine {

using namespace llmbench;
using namespace llmbench::detail;

inline constexpr long long warmup_requests = 20, requests_a_run = 300;
inline constexpr double sigma = 0.7;  // of both lengths

inline plan traffic(double rate, std::uint64_t seed, long long requests = requests_a_run) {
    return with_traffic(plan{}, [&](planned_traffic& t) {
        t.arrivals = poisson(request_rate(rate)).data();
        t.warmup_requests = warmup_requests;
        t.requests = requests;
        t.source = std::make_shared<const synthetic_prompts>(synthetic{
            .prompt_tokens = lognormal(400, sigma), .output_tokens = lognormal(120, sigma)});
        t.seed = seed;
    });
}

/// The default engine on a machine that is `slowness` times as slow.
inline engine machine(double slowness, std::uint64_t seed) {
    engine e;
    for (time_span* t : {&e.decode_step, &e.step_per_sequence, &e.prefill_per_token})
        *t = time_span::from_seconds(t->seconds() * slowness);
    e.prefix_cache = false;  // the prompts have nothing in common
    e.seed = seed >> 1;
    return e;
}

/// `sent_at`: when the client sends what is due at a time, in the same order; nothing: then.
inline repeat_data simulated_run(const planned_traffic& p, const engine& e,
                                 const std::function<double(double)>& sent_at = {}) {
    const schedule s = open_loop_schedule(p.arrivals, p.warmup_requests, p.warmup_s, p.requests,
                                          p.duration_s, p.seed);
    // 0 stands for "none" in a record.
    const auto ns = [](double t) { return 1'000'000'000'000 + std::llround(t * 1e9); };
    vector<double> sends;
    for (const double at : s.at) sends.push_back(sent_at ? sent_at(at) : at);
    repeat_data d;
    d.records.resize(s.at.size());
    d.window = time_interval::between(ns(s.measured_from), ns(s.measured_to));
    d.asked_rate = d.achieved_rate = p.arrivals.rate;
    engine_model model(e);
    std::size_t sent = 0, finished = 0;
    while (finished < s.at.size()) {
        if (sent < s.at.size() && sends[sent] <= model.step_end()) {
            const trace_item item = item_of(p, sent);
            record& r = d.records[sent];
            r.phase = sent < s.warmup ? run_phase::warmup : run_phase::measure;
            r.scheduled_ns = ns(s.at[sent]);
            r.dispatched_ns = r.connected_ns = r.sent_ns = ns(sends[sent]);
            r.late_ns = r.sent_ns - r.scheduled_ns;
            r.prompt_tokens = item.prompt_tokens;
            r.token_source = token_origin::usage;
            r.first_event_tokens = 1;
            r.status = request_status::ok;
            const auto taken =
                model.submit(sends[sent], {sent, item.prompt_tokens, item.output_tokens, {}});
            if (taken != engine_model::admission::accepted) {  // one of 30,000 may be too long
                r.status = request_status::http;
                r.end_ns = r.sent_ns;
                ++finished;
            }
            ++sent;
            continue;
        }
        const long long now = ns(model.step_end());
        for (const engine_model::emission& part : model.finish_step()) {
            record& r = d.records[part.id];
            if (r.events++ == 0) r.first_token_ns = now;
            r.output_tokens += part.tokens;
            r.last_token_ns = now;
            if (!part.finished) continue;
            r.end_ns = now;
            ++finished;
        }
    }
    return d;
}

/// Requests a second that the engine completes while its batch is always full.
inline double measured_capacity(std::uint64_t seed) {
    const plan p = with_traffic(traffic(1, seed, 20000), [](planned_traffic& t) {
        t.arrivals = all_at_once().data();
        t.warmup_requests = 0;
    });
    vector<double> ends;
    for (const record& r : simulated_run(p, machine(1, seed)).records)
        ends.push_back(static_cast<double>(r.end_ns) * 1e-9);
    std::sort(ends.begin(), ends.end());
    const std::size_t from = ends.size() / 10, to = ends.size() * 9 / 10;  // neither fill nor drain
    return static_cast<double>(to - from) / (ends[to] - ends[from]);
}

}  // namespace virtual_engine
