// All that a seed decides: a network, a server, a client and a load.
#pragma once

#include "simulated/virtual_world.hpp"

#include <cstdint>
#include <cstdio>
#include <string>

namespace virtual_world {
using llmbench::detail::vector;

struct drawn {
    hardships of{};
    engine served_by{};
    scenario what{};
    double interrupted_after_s = 0;  // 0: it is not

    /// Nothing was drawn that a server could be blamed for.
    bool server_is_well() const {
        const engine_faults& f = served_by.faults;
        return of.stalls + of.restarts + f.error_rate.value + f.reset_rate.value +
                   f.stall_rate.value + f.garbage_rate.value ==
               0;
    }
};

inline void draw_hardships(generator& g, hardships& h) {
    const auto now_and_then = [&](double fraction, double most) {
        return g.uniform() < fraction ? most * g.uniform() : 0.0;
    };
    h.latency_s = now_and_then(0.7, 0.01);
    h.jitter_s = now_and_then(0.5, 0.002);
    h.bytes_a_second = g.uniform() < 0.1 ? 1e5 + 1e7 * g.uniform() : 0;
    h.cut = now_and_then(0.3, 1);
    h.bytewise = now_and_then(0.1, 1);
    h.refused = now_and_then(0.1, 0.3);
    h.lost = now_and_then(0.1, 0.2);
    h.queue_full = now_and_then(0.1, 0.5);
    h.no_descriptor = now_and_then(0.1, 0.2);
    h.dead_addresses = g.uniform() < 0.1 ? 1 : 0;
    h.reset = now_and_then(0.1, 0.02);
    h.half_closed = now_and_then(0.1, 0.02);
    h.closed_idle = now_and_then(0.2, 0.5);
    h.stalls = now_and_then(0.1, 1);
    h.stall_s = 0.2;
    h.restarts = now_and_then(0.1, 0.5);
    h.away_s = 0.3;
    h.pauses = now_and_then(0.3, 0.01);
    h.pause_s = 0.2 * g.uniform();
    h.pauses_are_reported = g.uniform() < 0.5;
    h.stamps = g.uniform() < 0.5;
}
inline void draw_engine(generator& g, engine& e) {
    const auto now_and_then = [&](double most) {
        return fraction(g.uniform() < 0.05 ? most * g.uniform() : 0.0);
    };
    e.slots = static_cast<long long>(4 + g.below(29));
    e.decode_step = time_span::from_seconds(0.002 + 0.02 * g.uniform());
    e.seed = static_cast<long long>(1 + g.below(1000));
    e.tokens_per_event = g.uniform() < 0.1 ? 3 : 1;
    e.faults.error_rate = now_and_then(0.1);
    e.faults.reset_rate = now_and_then(0.1);
    e.faults.stall_rate = now_and_then(0.1);
    e.faults.garbage_rate = now_and_then(0.1);
}
inline drawn draw(std::uint64_t seed) {
    generator g(seed, 7);
    drawn d;
    d.of.seed = seed;
    draw_hardships(g, d.of);
    draw_engine(g, d.served_by);
    scenario& s = d.what;
    s.workload = synthetic{.prompt_tokens = uniform(16, 128), .output_tokens = uniform(4, 24)};
    const auto users = static_cast<long long>(1 + g.below(8));
    const double rate = 2 + 20 * g.uniform();
    if (g.uniform() < 0.5) s.arrivals = closed_loop(users);
    else s.arrivals = poisson(request_rate(rate));
    s.warmup = 0;
    s.requests = static_cast<long long>(10 + g.below(30));
    s.limits.connect = time_span::from_seconds(2);
    s.limits.first_event = time_span::from_seconds(5);
    s.limits.between_events = time_span::from_seconds(3);
    s.limits.total = time_span::from_seconds(20);
    s.limits.drain = time_span::from_seconds(25);
    if (g.uniform() < 0.1) d.interrupted_after_s = 0.01 + 2 * g.uniform();
    return d;
}

inline hardships of_repeat(const drawn& d, int i) {
    hardships h = d.of;
    h.seed = mixed(h.seed + static_cast<std::uint64_t>(i));
    return h;
}
inline vector<repeat> repeats_of(const drawn& d, int n) {
    vector<repeat> all;
    for (int i = 0; i < n; ++i)
        all.push_back(repeat_of(d.what, d.served_by, of_repeat(d, i), d.interrupted_after_s));
    return all;
}

/// What was drawn, and what came of it.
inline void report(std::uint64_t seed) {
    const drawn d = draw(seed);
    const hardships& h = d.of;
    std::printf("latency %g s, jitter %g s, %g bytes/s, cut %g, bytewise %g\n", h.latency_s,
                h.jitter_s, h.bytes_a_second, h.cut, h.bytewise);
    std::printf("refused %g, lost %g, queue full %g, no descriptor %g, %d dead addresses\n",
                h.refused, h.lost, h.queue_full, h.no_descriptor, h.dead_addresses);
    std::printf("reset %g, half closed %g, closed idle %g, stalls %g, restarts %g\n", h.reset,
                h.half_closed, h.closed_idle, h.stalls, h.restarts);
    std::printf("pauses %g of %g s, %s; stamps: %s; interrupted after %g s (0: not)\n", h.pauses,
                h.pause_s, h.pauses_are_reported ? "told" : "not told",
                h.stamps ? "kernel" : "read", d.interrupted_after_s);
    for (const repeat& r : repeats_of(d, 2)) {
        std::printf("%sit took %g s\n", r.records().c_str(), r.took_s);
        std::printf("lost %g of the time, over 20 ms in that of %lld requests\n", r.seen.lost_fraction,
                    r.seen.disturbed_requests);
    }
}

/// The first thing that does not hold, "" where all does.
struct checked {
    std::string why{};
    void must(bool holds, const std::string& what) {
        if (!holds && why.empty()) why = what;
    }
};

}  // namespace virtual_world
