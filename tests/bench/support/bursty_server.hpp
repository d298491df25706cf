// A server of another kind than the simulated one, in virtual time: it takes prompts whole, one at
// a time and before any decoding, and its users come in bursts. Nothing of it is the engine model's.
#pragma once

#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

namespace bursty_server {

using namespace llmbench;
using namespace llmbench::detail;

inline constexpr std::size_t warmup_requests = 20, measured_requests = 300;

/// How fast it is: one of some 450 tokens/s when it is full.
struct speed {
    std::size_t slots = 24;
    double prefill_s = 0.00025, decode_s = 0.018, sequence_s = 0.0006;  // a token, a step, a user
};
/// And one of some 3500.
inline constexpr speed fast = {80, 0.00001, 0.0105, 0.0001};

struct arrival {
    double at_s = 0;
    int prompt = 0, output = 0;
};

/// Bursts of one to nine requests within half a second, so many of them a second.
inline vector<arrival> bursts(double bursts_a_second, std::uint64_t seed) {
    generator random(seed);
    vector<arrival> all;
    double now = 0;
    while (all.size() < warmup_requests + measured_requests) {
        now += random.exponential() / bursts_a_second;
        const std::size_t size = 1 + static_cast<std::size_t>(random.uniform() * 9);
        for (std::size_t i = 0; i < size; ++i) {
            arrival a;
            a.at_s = now + 0.5 * random.uniform();
            a.prompt = static_cast<int>(300 * std::exp(0.8 * random.normal())) + 8;
            a.output = static_cast<int>(80 * std::exp(0.6 * random.normal())) + 2;
            all.push_back(a);
        }
    }
    all.resize(warmup_requests + measured_requests);
    std::sort(all.begin(), all.end(),
              [](const arrival& a, const arrival& b) { return a.at_s < b.at_s; });
    return all;
}

/// As many requests as it takes to keep it full, all there from the beginning.
inline vector<arrival> backlog(std::size_t requests, std::uint64_t seed) {
    vector<arrival> all = bursts(1, seed);
    generator random(seed ^ 1);
    while (all.size() < requests) {
        arrival a;
        a.prompt = static_cast<int>(300 * std::exp(0.8 * random.normal())) + 8;
        a.output = static_cast<int>(80 * std::exp(0.6 * random.normal())) + 2;
        all.push_back(a);
    }
    for (arrival& a : all) a.at_s = 0;
    return all;
}

/// One run of it, `slowness` times as slow as usual, times what `slower` says of a time in seconds;
/// each of its steps jitters besides.
inline repeat_data run_of(const vector<arrival>& arrivals, double slowness,
                          std::uint64_t seed,
                          const std::function<double(double)>& slower = {},
                          const speed& server = {}) {
    generator random(seed);
    const auto ns = [](double s) { return 1'000'000'000'000 + std::llround(s * 1e9); };
    repeat_data d;
    d.records.resize(arrivals.size());
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
        record& r = d.records[i];
        r.phase = i < warmup_requests ? run_phase::warmup : run_phase::measure;
        r.scheduled_ns = r.dispatched_ns = r.connected_ns = r.sent_ns = ns(arrivals[i].at_s);
        r.prompt_tokens = arrivals[i].prompt;
        r.token_source = token_origin::usage;
        r.first_event_tokens = 1;
        r.status = request_status::ok;
    }
    d.window = time_interval::between(ns(arrivals[warmup_requests].at_s), ns(arrivals.back().at_s));
    std::deque<std::size_t> waiting;
    vector<std::size_t> decoding;
    vector<vector<std::uint32_t>> gaps(arrivals.size());
    std::size_t came = 0, done = 0;
    double now = 0;
    const auto emit = [&](std::size_t i) {
        record& r = d.records[i];
        if (r.events++ == 0) r.first_token_ns = ns(now);
        else gaps[i].push_back(static_cast<std::uint32_t>((ns(now) - r.last_token_ns) / 1000));
        ++r.output_tokens;
        r.last_token_ns = r.end_ns = ns(now);
        return r.output_tokens >= arrivals[i].output;
    };
    while (done < arrivals.size()) {
        if (waiting.empty() && decoding.empty()) now = std::max(now, arrivals[came].at_s);
        while (came < arrivals.size() && arrivals[came].at_s <= now) waiting.push_back(came++);
        const double pace =
            slowness * (slower ? slower(now) : 1) * std::exp(0.02 * random.normal());
        if (!waiting.empty() && decoding.size() < server.slots) {
            const std::size_t i = waiting.front();
            waiting.pop_front();
            now += pace * (16 * server.prefill_s + server.prefill_s * arrivals[i].prompt);
            if (emit(i)) ++done;
            else decoding.push_back(i);
            continue;
        }
        now += pace * (server.decode_s + server.sequence_s * static_cast<double>(decoding.size()));
        erase_if(decoding, [&](std::size_t i) {
            const bool ended = emit(i);
            done += ended;
            return ended;
        });
    }
    for (const vector<std::uint32_t>& of_one : gaps) {
        d.gap_offsets.push_back(d.gaps.size());
        for (const std::uint32_t us : of_one) d.gaps.push_back(us);
    }
    return d;
}

}  // namespace bursty_server
