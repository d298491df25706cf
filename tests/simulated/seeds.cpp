// Loads on made-up networks, servers and clients, each drawn from a seed, and what must hold of all
// of them, whatever was drawn:
//   every planned request has one record, and what a repeat counts is what its records say;
//   a stamp is late by what the network was told to add and the client knows of itself, at most;
//   nothing waits for longer than the plan's own limits;
//   a server well within a limit never fails on it, and one twice over it never passes;
//   the same seed gives the same to the byte;
//   an interruption at any moment leaves a record of each request.
//     seeds [--seeds N]       1000 of them; says which fail, and exits with 1
//     seeds --seed K          this one alone, and what was drawn
#include "made_up.hpp"

#include "core/base/bytes.hpp"
#include "core/judging/judge.hpp"
#include "core/traffic/load_conditions.hpp"
#include "effects/load/alertness.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <set>
#include <string>
#include <vector>

using namespace made_up;

namespace {

/// All that a seed decides.
struct drawn {
    hardships of{};
    engine served_by{};
    scenario what{};
    double interrupted_after_s = 0;  // 0: it is not
    bool server_is_well = true;      // nothing was drawn that a server could be blamed for
};

void draw_hardships(generator& g, hardships& h) {
    const auto now_and_then = [&](double share, double most) {
        return g.uniform() < share ? most * g.uniform() : 0.0;
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
    h.pauses_are_told = g.uniform() < 0.5;
}
void draw_engine(generator& g, engine& e) {
    const auto now_and_then = [&](double most) {
        return share(g.uniform() < 0.05 ? most * g.uniform() : 0.0);
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
drawn draw(std::uint64_t seed) {
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
    const engine_faults& f = d.served_by.faults;
    d.server_is_well = d.of.stalls + d.of.restarts + f.error_rate.fraction + f.reset_rate.fraction +
                           f.stall_rate.fraction + f.garbage_rate.fraction == 0;
    return d;
}

/// The first thing that does not hold, "" where all does.
struct checked {
    std::string why{};
    void must(bool holds, const std::string& what) {
        if (!holds && why.empty()) why = what;
    }
};
std::string ms(long long ns) { return printed("%.3f ms", static_cast<double>(ns) * 1e-6); }

void check_records(const drawn& d, const repeat& r, checked& c) {
    std::set<std::string> ids;
    for (const record& x : r.seen.records) ids.insert(str(x.id));
    const auto planned = static_cast<std::size_t>(static_cast<long long>(d.what.requests));
    c.must(ids.size() == r.seen.records.size(), "two records have one id");
    // Users who are interrupted have asked for no more; an open loop knows what it did not send.
    const bool has_all = d.interrupted_after_s == 0;
    c.must(has_all ? ids.size() == planned : ids.size() <= planned,
           printed("%zu of %zu requests have a record", ids.size(), planned));
    long long resends = 0;
    for (const record& x : r.seen.records) {
        const bool is_ok = x.status == request_status::ok;
        const std::string id = str(x.id);
        resends += x.resends;
        c.must(!is_ok || (x.http_status == 200 && x.output_tokens > 0), id + " is ok, and empty");
        c.must(is_ok || !x.error.empty(), id + " failed and does not say why");
        c.must(!is_ok || (x.scheduled_ns <= x.sent_ns && x.sent_ns <= x.first_token_ns &&
                          x.first_token_ns <= x.last_token_ns && x.last_token_ns <= x.end_ns),
               id + ": its times are out of order");
    }
    c.must(resends == r.seen.resends, "a repeat's resends are not those of its records");
}
/// What a client that did not run may not know of: what is every machine's, and, where the kernel
/// does not tell, a sleep that lasted as long as it might have.
long long unseen_ns(const drawn& d) {
    if (d.of.pauses == 0) return 0;
    return alertness::noticed_ns + (d.of.pauses_are_told ? 0 : alertness::tick_ns);
}
void check_stamps(const drawn& d, const repeat& r, checked& c) {
    for (const record& x : r.seen.records) {
        if (x.status != request_status::ok) continue;
        const std::string id = str(x.id);
        const auto* const e = r.served_as(id);
        c.must(e, id + " was answered, and the server does not know of it");
        if (!e) continue;
        const auto within = [&](const char* what, long long stamp, long long truth) {
            const long long most = r.met.longest_way_ns + unseen_ns(d) +
                                   possible_delay(r.seen.blind, stamp);
            c.must(stamp >= truth && stamp - truth <= most,
                   id + ": its " + what + " was stamped " + ms(stamp - truth) +
                       " after it was written, and may be late by " + ms(most));
        };
        within("first token", x.first_token_ns, e->first_write_ns);
        within("last token", x.last_token_ns, e->last_write_ns);
        within("end", x.end_ns, e->done_ns);
        c.must(x.output_tokens == e->output_tokens, id + ": its tokens are not the server's");
    }
}
/// Limits hold for the time in which the client ran.
void check_time(const drawn& d, const repeat& r, checked& c) {
    const double n = static_cast<double>(static_cast<long long>(d.what.requests));
    const double total_s = d.what.limits.total.seconds();
    const double sends_s =
        r.what.is_open_loop() ? 10 + 3 * n / r.what.arrivals.rate : n * (total_s + 1);
    const double most_s = sends_s + d.what.limits.drain.seconds() + total_s +
                          static_cast<double>(r.met.paused_ns) * 1e-9;
    c.must(r.took_s <= most_s, printed("it took %g s of %g s", r.took_s, most_s));
}

/// What the server itself took for a token of the mean request, 0 where none was answered.
double true_tpot(const repeat& r) {
    double sum = 0, n = 0;
    for (const record& x : r.seen.records) {
        const auto* const e = r.served_as(str(x.id));
        const int tokens = x.output_tokens - x.first_event_tokens;
        if (x.status != request_status::ok || tokens <= 0 || !e) continue;
        sum += static_cast<double>(e->last_write_ns - e->first_write_ns) * 1e-9 / tokens;
        n += 1;
    }
    return n > 0 ? sum / n : 0;
}
void check_verdicts(const drawn& d, const std::vector<repeat>& all, checked& c) {
    evidence seen;
    static_cast<load_conditions&>(seen) = load_conditions_of(all[0].what);
    double least = infinity, most = 0, way_s = 0;
    for (const repeat& r : all) {
        seen.candidate.push_back(r.seen);
        seen.candidate.back().index = static_cast<int>(seen.candidate.size()) - 1;
        least = std::min(least, true_tpot(r));
        most = std::max(most, true_tpot(r));
        way_s = std::max(way_s, static_cast<double>(r.met.longest_way_ns) * 1e-9);
    }
    if (!(least > 0)) return;
    const auto at = [&](double limit_s) {
        terms t;
        t.rule = all[0].what.rule;
        t.slos = {mean(tpot) <= time_span::from_seconds(limit_s)};
        return assess(seen, t).verdicts[0];
    };
    const slo_verdict over = at(least / 2), within = at(3 * most + way_s);
    c.must(over.outcome != verdict::pass,
           "a server twice over its limit passes: " + str(over.line()));
    c.must(!d.server_is_well || within.outcome != verdict::fail,
           "a server well within its limit fails: " + str(within.line()));
}

std::vector<repeat> repeats_of(const drawn& d, int n) {
    std::vector<repeat> all;
    for (int i = 0; i < n; ++i) {
        hardships h = d.of;
        h.seed = mixed(h.seed + static_cast<std::uint64_t>(i));
        all.push_back(repeat_of(d.what, d.served_by, h, d.interrupted_after_s));
    }
    return all;
}
/// What does not hold of this seed; its records go into `hash`.
std::string fault_of(std::uint64_t seed, fnv1a& hash) {
    const drawn d = draw(seed);
    checked c;
    try {
        const std::vector<repeat> all = repeats_of(d, 2);
        for (const repeat& r : all) {
            check_records(d, r, c);
            check_stamps(d, r, c);
            check_time(d, r, c);
            hash.add(r.records().data(), r.records().size());
        }
        if (d.interrupted_after_s == 0) check_verdicts(d, all, c);
        const bool again = seed % 8 == 0;
        c.must(!again || repeats_of(d, 1)[0].records() == all[0].records(), "it is not the same");
    } catch (const std::exception& e) {
        c.must(false, std::string("it ends with: ") + e.what());
    }
    return c.why;
}

void tell(std::uint64_t seed) {
    const drawn d = draw(seed);
    const hardships& h = d.of;
    std::printf("latency %g s, jitter %g s, %g bytes/s, cut %g, bytewise %g\n", h.latency_s,
                h.jitter_s, h.bytes_a_second, h.cut, h.bytewise);
    std::printf("refused %g, lost %g, queue full %g, no descriptor %g, %d dead addresses\n",
                h.refused, h.lost, h.queue_full, h.no_descriptor, h.dead_addresses);
    std::printf("reset %g, half closed %g, closed idle %g, stalls %g, restarts %g\n", h.reset,
                h.half_closed, h.closed_idle, h.stalls, h.restarts);
    std::printf("pauses %g of %g s, %s; interrupted after %g s (0: not)\n", h.pauses, h.pause_s,
                h.pauses_are_told ? "told" : "not told", d.interrupted_after_s);
    for (const repeat& r : repeats_of(d, 2)) {
        std::printf("%sit took %g s\n", r.records().c_str(), r.took_s);
        for (const blind_stretch& b : r.seen.blind)
            std::printf("blind from %lld to %lld, by %lld\n", b.from_ns, b.to_ns, b.most_delay_ns);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t from = 1, to = 1000;
    const bool one = argc == 3 && std::strcmp(argv[1], "--seed") == 0;
    const bool many = argc == 3 && std::strcmp(argv[1], "--seeds") == 0;
    char* end = nullptr;
    if (one || many) to = std::strtoull(argv[2], &end, 10);
    if ((argc != 1 && !one && !many) || (end && *end) || to == 0) {
        std::fprintf(stderr, "usage: %s [--seeds N | --seed K]\n", argv[0]);
        return 2;
    }
    if (one) tell(from = to);
    int failed = 0;
    fnv1a hash;
    for (std::uint64_t seed = from; seed <= to; ++seed) {
        const std::string why = fault_of(seed, hash);
        if (why.empty()) continue;
        ++failed;
        const auto k = static_cast<unsigned long long>(seed);
        std::printf("seed %llu: %s\n  again: tests/simulated/run --seed %llu\n", k, why.c_str(), k);
    }
    std::printf("%llu seeds, %d failed; all records: %s\n",
                static_cast<unsigned long long>(to - from + 1), failed, hash.text().c_str());
    return failed == 0 ? 0 : 1;
}
