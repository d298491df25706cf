// One repeat in a virtual world.
#pragma once

#include "simulated/hard_world.hpp"

#include "support/served_log.hpp"

#include <string>
#include <vector>

namespace virtual_world {

using namespace llmbench;
using namespace llmbench::detail;

/// What the client and the server say of the same repeat, and how long it took.
struct repeat {
    plan what{};
    repeat_data seen{};
    std::vector<service_entry> served{};
    hardships_met met{};
    double took_s = 0;

    const service_entry* served_as(const std::string& id) const {
        const service_entry* last = nullptr;
        for (const auto& e : served)
            if (e.request_id == id) last = &e;
        return last;
    }
    std::string records() const {
        std::string all;
        for (const record& r : seen.records) all += record_json(r, "");
        return all;
    }
};

/// Of a server that is at this address of the world already. It is found and asked before anything
/// goes wrong.
inline repeat repeat_at(hard_world& execution_environment, const live::served_log& log, const endpoint& at,
                        scenario s, const hardships& h, double interrupted_after_s = 0) {
    s.target = at;
    repeat r;
    r.what = planned(s, h.seed);
    live_target target(s.target, run_variant::candidate);
    target.bring_up();
    if (makes_up_prompts(r.what)) target.learn_tokens(r.what.sent->common, may_be_ids(r.what), 5);
    execution_environment.suffer(h);
    const long long began = now_ns();
    if (interrupted_after_s > 0)
        execution_environment.at(began + ns_of(interrupted_after_s), [] { stop_asked = true; });
    r.seen = run_slot({.what = r.what, .candidate = target}, {.is_kept = false}).repeats[0];
    stop_asked = false;
    r.took_s = static_cast<double>(now_ns() - began) * 1e-9;
    r.met = execution_environment.met;
    r.served = log.answers();
    return r;
}
inline repeat repeat_of(const scenario& s, const engine& e, const hardships& h = {},
                        double interrupted_after_s = 0) {
    hard_world execution_environment;
    const inside_environment here(&execution_environment);
    live::served_log log;
    virtual_server server(execution_environment, e, &log);
    return repeat_at(execution_environment, log, {.url = text(server.url())}, s, h, interrupted_after_s);
}

/// Some requests, streamed, at an even rate.
inline scenario some(long long requests = 20, double rate = 10, long long tokens = 8) {
    return {.workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(tokens)},
            .arrivals = poisson(request_rate(rate)),
            .warmup = 0,
            .requests = requests,
            .slos = {}};
}

}  // namespace virtual_world
