// What must hold of verdicts on repeats that were drawn: what is red or green is so by the server,
// and what is invalid names what went wrong.
#pragma once

#include "simulated/drawn.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace virtual_world {
using llmbench::detail::vector;

inline measurements evidence_of(const vector<repeat>& all) {
    measurements seen;
    static_cast<load_conditions&>(seen) = load_conditions_of(all[0].what);
    for (const repeat& r : all) {
        repeat_data d = r.seen;
        d.index = static_cast<int>(seen.candidate.size());
        seen.candidate.push_back(std::move(d));
    }
    return seen;
}
inline judging_parameters parameters_of(const repeat& r, vector<slo> slos) {
    judging_parameters t;
    t.rule = r.what.judged->rule;
    t.slos = std::move(slos);
    return t;
}

/// What the server itself took, over the requests that were answered; 0 where none was.
struct true_means {
    double tpot_s = 0, wait_s = 0;
};
inline true_means truth_of(const repeat& r) {
    true_means sum;
    double n = 0;
    for (const record& x : r.seen.records) {
        const auto* const e = r.served_as(str(x.id));
        const int tokens = x.output_tokens - x.first_event_tokens;
        if (x.status != request_status::ok || tokens <= 0 || !e) continue;
        sum.tpot_s += static_cast<double>(e->last_write_ns - e->first_write_ns) * 1e-9 / tokens;
        sum.wait_s += static_cast<double>(e->first_write_ns - e->received_ns) * 1e-9;
        n += 1;
    }
    return n > 0 ? true_means{sum.tpot_s / n, sum.wait_s / n} : true_means{};
}

/// On whose account nothing can be said.
enum class party : unsigned char { none, client, server, way, plan };
inline constexpr std::size_t parties = 5;
inline const char* name_of(party p) {
    constexpr std::array<const char*, parties> names{"none", "client", "server", "way", "plan"};
    return names[static_cast<std::size_t>(p)];
}
inline party to_blame(const decision& d) {
    if (d.outcome != verdict::invalid || d.why.empty()) return party::none;
    switch (d.why[0].of) {
    case whose::client: return party::client;
    case whose::server: return party::server;
    case whose::plan: return party::plan;
    default: break;
    }
    switch (d.why[0].what) {
    case because::in_a_burst:
    case because::in_large_events:
    case because::comes_in_bursts: return party::way;
    case because::too_few_values:
    case because::small_sample: return party::plan;
    default: return party::none;
    }
}

/// What happened, of what was drawn.
struct happened {
    bool client = false;  // it did not run for a while, or lacked something
    bool server = false;  // requests failed, or waited, by the server or the network
    bool way = false;     // bytes may have come together that were written one after the other
};
inline happened happened_in(const drawn& d, const vector<repeat>& all) {
    happened h;
    h.server = !d.server_is_well() || d.of.dead_addresses > 0;
    h.way = d.of.stalls > 0 || d.of.jitter_s > 0 || d.of.bytes_a_second > 0;
    for (const repeat& r : all) {
        const hardships_met& m = r.met;
        // Where the kernel does not account for it, a client cannot know that it did run.
        h.client = h.client || m.pauses + m.no_descriptor > 0 ||
                   (d.of.stamps && !d.of.pauses_are_reported);
        h.server = h.server || m.refused + m.lost + m.queue_full + m.reset + m.half_closed +
                                       m.closed_idle + m.stalls + m.restarts > 0;
    }
    return h;
}

/// How often nothing could be said on whose account, over all seeds.
using party_counts = std::array<long long, parties>;

/// A verdict that is none names somebody who had something to do with it.
inline void check_cause(const decision& d, const happened& h, party_counts& counts, checked& c) {
    if (d.outcome != verdict::invalid) return;
    const party by = to_blame(d);
    ++counts[static_cast<std::size_t>(by)];
    const bool may_be = by == party::client   ? h.client
                        : by == party::server ? h.server
                        : by == party::way    ? h.way
                                              : by == party::plan;
    c.must(may_be, std::string("nothing happened to the ") + name_of(by) +
                       ", and it is named: " + str(described(d).line()));
}

/// What is judged of a seed goes into its digest.
struct judged_seed {
    vector<slo_verdict> verdicts{};
    party_counts invalid{};
};

inline void check_verdicts(const drawn& d, const vector<repeat>& all, judged_seed& j,
                           checked& c) {
    const measurements seen = evidence_of(all);
    const happened h = happened_in(d, all);
    double least = infinity, tpot_s = 0, wait_s = 0, way_s = 0;
    for (const repeat& r : all) {
        const true_means t = truth_of(r);
        least = std::min(least, t.tpot_s);
        tpot_s = std::max(tpot_s, t.tpot_s);
        wait_s = std::max(wait_s, t.wait_s);
        way_s = std::max(way_s, static_cast<double>(r.met.longest_way_ns) * 1e-9);
    }
    const validity_checks g = validity_checks_of(seen);
    const auto at = [&](const auto& what, double limit_s) {
        const judging_parameters t = parameters_of(all[0], {what <= time_span::from_seconds(limit_s)});
        const slo& s = t.slos[0];
        const decision one = decision_on(seen, t, g, s);
        check_cause(one, h, j.invalid, c);
        j.verdicts.push_back(described(one));
        return j.verdicts.back();
    };
    if (!(least > 0)) {
        at(mean(ttft), 1);
        return;
    }
    const slo_verdict over = at(mean(tpot), least / 2);
    c.must(over.outcome != verdict::pass,
           "a server twice over its limit passes: " + str(over.line()));
    for (const slo_verdict& within : {at(mean(tpot), 3 * tpot_s + way_s),
                                      at(mean(ttft_from_send), 3 * wait_s + 2 * way_s)})
        c.must(!d.server_is_well() || within.outcome != verdict::fail,
               "a server well within its limit fails: " + str(within.line()));
    for (const double factor : {0.9, 1.1}) {
        at(mean(tpot), factor * tpot_s);
        at(mean(itl), factor * tpot_s + way_s);
        at(mean(ttft), factor * wait_s + 2 * way_s);
    }
}

}  // namespace virtual_world
