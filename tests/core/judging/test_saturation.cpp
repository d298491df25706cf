// A load over the server's capacity: how it is known, and what it makes of verdicts.
#include "llmbench.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/load.hpp"
#include "core/planning/planning.hpp"
#include "core/described/causes.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "support/verdicts.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {
std::string over_saturation_reason(const measurements& e) {
    return described(over_saturation_of(e, variants_of(e), e.arrival_cv2));
}

/// A server that answers one request after another, each in `load` times the 100 ms in which they
/// come: over 1 the queue grows. `failing`: every so many-th request fails at once.
repeat_data queueing_repeat(double load, int n = 200, int failing = 0) {
    vector<request> requests;
    double free_at = 0;
    for (int i = 0; i < n; ++i) {
        const double at = 100.0 * i;
        if (failing > 0 && i % failing == failing - 1) {
            requests.push_back(failed(at).sent(at));
            continue;
        }
        const double start = std::max(at, free_at);
        free_at = start + 100 * load;
        requests.push_back(answered(at, start - at + 100 * load - 50, 5));
    }
    repeat_data d = repeat_of(requests);
    for (record& r : d.records)
        if (r.end_ns == 0) r.end_ns = r.scheduled_ns;
    return d;
}
measurement queueing(double load, int failing = 0) {
    measurement m = measured(vector<repeat_data>(3, queueing_repeat(load, 200, failing)));
    m.arrival_cv2 = 0;
    return m;
}
struct virtual_load {
    length_distribution prompts = lognormal(400, 0.6), outputs = lognormal(120, 0.7);
    engine server{};
};
/// Answers of the engine model to requests at these times, the first `warmup` of them warming up.
repeat_data answers_to(const virtual_load& load, const vector<double>& at, std::size_t warmup,
                       std::uint64_t seed) {
    generator lengths(seed, 3);
    engine e = load.server;
    e.seed = static_cast<long long>(seed);
    engine_model model(e);
    repeat_data d;
    for (std::size_t i = 0; i < at.size(); ++i) {
        record r;
        r.phase = i < warmup ? run_phase::warmup : run_phase::measure;
        r.status = request_status::ok;
        r.scheduled_ns = r.dispatched_ns = r.sent_ns = at_ms(at[i] * 1000);
        r.prompt_tokens = drawn_length(load.prompts, lengths, 1);
        r.output_tokens = drawn_length(load.outputs, lengths, 2);
        r.events = r.first_event_tokens = 1;
        d.records.push_back(r);
        d.gap_offsets.push_back(0);
    }
    std::size_t next = 0;
    while (next < at.size() || model.step_end() < infinity) {
        if (next < at.size() && at[next] <= model.step_end()) {
            const record& r = d.records[next];
            model.submit(at[next], {next, r.prompt_tokens, r.output_tokens, {}});
            ++next;
            continue;
        }
        const long long now = at_ms(model.step_end() * 1000);
        for (const engine_model::emission& out : model.finish_step()) {
            record& r = d.records[out.id];
            if (r.first_token_ns == 0) r.first_token_ns = now;
            r.last_token_ns = now;
            if (out.finished) r.end_ns = now;
        }
    }
    return d;
}
/// Requests per second that the engine answers when it is never idle.
double capacity_of(const virtual_load& load) {
    constexpr std::size_t n = 500;
    const repeat_data d = answers_to(load, vector<double>(n, 0.0), 0, 99);
    long long last = 0;
    for (const record& r : d.records) last = std::max(last, r.end_ns);
    return static_cast<double>(n) / (static_cast<double>(last - start_ns) * 1e-9);
}
/// Whether two repeats of the same traffic are called over-saturated.
bool is_flagged(const virtual_load& load, const arrival_data& arrivals, long long n,
                std::uint64_t seed, double cv2) {
    const schedule s = open_loop_schedule(arrivals, 20, 0, n, 0, seed);
    const repeat_data d = answers_to(load, s.at, s.warmup, seed);
    measurement m = measured({d, d});
    m.arrival_cv2 = cv2;
    return !over_saturation_reason(m).empty();
}
int flagged_of(int seeds, const virtual_load& load, double fraction_of_capacity, long long n = 300,
               double burstiness = 1) {
    const double rate = fraction_of_capacity * capacity_of(load);
    const arrival_data arrivals = gamma(request_rate(rate), burstiness).data();
    int flagged = 0;
    for (int seed = 1; seed <= seeds; ++seed)
        flagged += is_flagged(load, arrivals, n, static_cast<std::uint64_t>(seed), 1 / burstiness);
    return flagged;
}

}  // namespace

// ---- whose fault it is, and what comes before what ---------------------------------------------

TEST_CASE("a queue that grows by 8 % of the arrivals is over the server's capacity") {
    // In flight grows by 1 - 1 / load for each arrival.
    CHECK(over_saturation_reason(queueing(0.9)) == "");
    CHECK(over_saturation_reason(queueing(1.0)) == "");
    CHECK(over_saturation_reason(queueing(1.08)) == "");
    CHECK(over_saturation_reason(queueing(1.25)) != "");
    CHECK(over_saturation_reason(queueing(2)) != "");
    const std::string why = over_saturation_reason(queueing(2));
    CHECK(why.find("over-saturated: requests in flight grew by ") == 0);
    CHECK(why.find("and ttft by ") != std::string::npos);
    CHECK(why.find("over the server's capacity") != std::string::npos);
}

TEST_CASE("a load that grows, bursts or waits by design is not over-saturated") {
    measurement m = queueing(1.5);
    for (const double none : {not_a_number, infinity}) {
        m.arrival_cv2 = none;
        CHECK(over_saturation_reason(m) == "");
        CHECK(judged(m, mean(tpot) <= 20_ms).outcome == verdict::pass);
    }
}

TEST_CASE("until the first answers have ended every load fills up, and that is no growth") {
    // Answers take 10 s whatever the load: in flight grows to 100, and ttft a little with it.
    vector<request> requests;
    for (int i = 0; i < 150; ++i)
        requests.push_back(answered(100.0 * i, 50 + std::min(i, 100), 990));
    CHECK_FALSE(over_saturated_repeat(repeat_of(requests), 0));
    // The same growth, but answers that take longer and longer.
    requests.clear();
    for (int i = 0; i < 150; ++i)
        requests.push_back(answered(100.0 * i, 50 + 4.0 * i, 20 + 8.0 * i));
    CHECK(over_saturated_repeat(repeat_of(requests), 0));
    // Longer answers that begin as fast as ever are no queue.
    requests.clear();
    for (int i = 0; i < 150; ++i) requests.push_back(answered(100.0 * i, 50, 20 + 8.0 * i));
    CHECK_FALSE(over_saturated_repeat(repeat_of(requests), 0));
}

TEST_CASE("bursts of arrivals and of work let a queue wander further before it is called growth") {
    // 186 requests after the first answers, growing by a third of them. Planned arrivals end on
    // time: gaps of cv2 16 make a server at exactly its capacity wander by over
    // 3.09 x sqrt(0.2 x 186 x 16) = 75 requests once in a thousand runs. They ask for half as much
    // again as the server delivers, 93 requests; gaps of cv2 90 reach 1.645 x sqrt(0.2 x 186 x 90) = 95.
    measurement m = queueing(1.5);
    CHECK(over_saturation_reason(m) != "");
    m.arrival_cv2 = 16;
    CHECK(over_saturation_reason(m) != "");
    m.arrival_cv2 = 90;
    CHECK(over_saturation_reason(m) == "");
    // So does work: one answer in twenty of 200 tokens beside 5 has cv2 8.3, sqrt(1.2 x 8.3) more.
    m.arrival_cv2 = 0;
    for (repeat_data& d : m.candidate)
        for (std::size_t i = 0; i < d.records.size(); ++i)
            d.records[i].output_tokens = i % 20 == 0 ? 200 : 5;
    CHECK(over_saturation_reason(m) == "");
}

TEST_CASE("a load asks for more than the server delivers at its fastest, or it keeps up") {
    const auto excess = [](double load) {
        const repeat_data d = queueing_repeat(load);
        return excess_of(d, 200 * work_of(d.records[0]), d.records[0].scheduled_ns,
                         d.records[199].scheduled_ns);
    };
    for (const double load : {1.2, 1.5, 2.0}) CHECK(std::fabs(excess(load) - (load - 1)) < 0.03);
    for (const double load : {0.5, 0.9, 1.0}) CHECK(std::fabs(excess(load)) < 0.03);
    CHECK(excess_of(repeat_data(), 1, 0, 1) == infinity);
}

// 30 % of the answers are longer than the load. Each waits a little for the steps of those in flight.
TEST_CASE("answers that end after the load are asked for by none of it") {
    int flagged = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        generator draws(seed, 7);
        vector<request> requests;
        int running = 0;
        for (int i = 0; i < 240; ++i) {
            const bool is_long = draws.uniform() < 0.3;
            running += is_long;
            const double at = 250.0 * i, waits = 50 + running;
            requests.push_back(is_long ? answered(at, waits, 100, 600) : answered(at, waits, 20, 11));
        }
        measurement m = measured({repeat_of(requests), repeat_of(requests)});
        m.arrival_cv2 = 1;
        flagged += !over_saturation_reason(m).empty();
    }
    CHECK(flagged <= 3);  // all of them by the growth of what is in flight
}

TEST_CASE("over-saturation must be shown in most repeats of an arm") {
    measurement m = queueing(2);
    m.candidate = {queueing_repeat(2), queueing_repeat(0.5)};
    CHECK(over_saturation_reason(m) == "");
    m.candidate.push_back(queueing_repeat(2));
    CHECK(over_saturation_reason(m) != "");
    // Each arm is counted by itself, and the baseline is named.
    measurement pairs;
    pairs.arrival_cv2 = 0;
    for (int i = 0; i < 4; ++i) {
        pairs.candidate.push_back(queueing_repeat(0.5));
        pairs.baseline.push_back(queueing_repeat(2));
    }
    CHECK(over_saturation_reason(pairs).find("baseline over-saturated: ") == 0);
    const slo_verdict v = judged(pairs, mean(ttft) <= 1.1 * baseline);
    CHECK(v.outcome == verdict::invalid);
    CHECK(str(v.reason).find("baseline over-saturated: ") == 0);
}

TEST_CASE("over-saturated: a pass and an open question are invalid, a shown miss stays one") {
    const measurement m = queueing(2);
    const std::string why = over_saturation_reason(m);
    for (const slo& s : {mean(tpot) <= 20_ms,  // would pass
                         mean(ttft) <= 100_s, goodput(ttft <= 100_s) >= 90_pct,
                         p50(decode_speed) >= 199_tps,  // would be open
                         goodput(ttft <= 100_s) >= 99.9_pct}) {
        CAPTURE(str(s.text()));
        measurement calm = m;
        calm.arrival_cv2 = not_a_number;
        REQUIRE(judged(calm, s).outcome != verdict::fail);
        const slo_verdict v = judged(m, s);
        CHECK(v.outcome == verdict::invalid);
        CHECK(str(v.reason) == why);
        CHECK(v.advice.empty());
        CHECK_FALSE(std::isnan(v.estimate.value));
    }
    for (const slo& s : {mean(ttft) <= 100_ms, p90(e2e) <= 1_s, goodput(ttft <= 1_s) >= 90_pct}) {
        CAPTURE(str(s.text()));
        CHECK(judged(m, s).outcome == verdict::fail);
        CHECK(str(judged(m, s).reason) == why);
    }
}

TEST_CASE("over-saturated or not, errors keep a verdict of their own") {
    CHECK(judged(queueing(2), error_rate <= 2_pct).outcome == verdict::pass);
    CHECK(judged(queueing(2), error_guard(), true).outcome == verdict::pass);
    const measurement failing = queueing(2, 20);
    REQUIRE(over_saturation_reason(failing) != "");
    for (const bool guard : {false, true}) {
        const slo_verdict v = judged(failing, error_guard(), guard);
        CHECK(v.outcome == verdict::fail);
        CHECK_FALSE(mentions(v.reason, "over-saturated"));
    }
    measurement started = queueing(2);
    started.candidate[0].startup_s = 10;
    CHECK(judged(started, startup_time <= 20_s).outcome == verdict::pass);
}

TEST_CASE("the client's fault comes before the load's, and both before the server's errors") {
    // Over-saturated, with 5 % of errors, and all sends late.
    measurement m = queueing(2, 20);
    m.slos = {mean(ttft) <= 100_ms};
    const slo missed = mean(ttft) <= 100_ms, met = mean(tpot) <= 20_ms;
    CHECK(judged(m, missed).outcome == verdict::fail);
    CHECK(mentions(judged(m, missed).reason, "over-saturated"));
    for (repeat_data& d : m.candidate) {
        d.asked_rate = d.achieved_rate = 20;
        send_late(d, {60});
    }
    CHECK(judged(m, missed).outcome == verdict::invalid);
    CHECK(mentions(judged(m, missed).reason, " of the requests of a repeat were sent over 1 ms late"));
    // Immune to late sends, but not to the load.
    CHECK(judged(m, met).outcome == verdict::invalid);
    CHECK(mentions(judged(m, met).reason, "over-saturated"));
    CHECK(judged(m, error_rate <= 1_pct).outcome == verdict::fail);
    // Without a server nothing else is told of anything.
    m.candidate[1].target_gone = "its process exited with code 1";
    for (const slo_verdict& v : judge_all(m)) {
        CHECK(v.outcome == verdict::invalid);
        CHECK(str(v.reason) == "server: its process exited with code 1");
    }
}

// ---- a load over the engine's capacity, in virtual time ----------------------------------------

TEST_CASE("the model server of these tests answers about 9.5 requests per second") {
    const double capacity = capacity_of({});
    CHECK(capacity > 8.5);
    CHECK(capacity < 10.5);
}

TEST_CASE("a load that the engine can take is never called over-saturated") {
    CHECK(flagged_of(8, {}, 0.60) == 0);
    CHECK(flagged_of(8, {}, 0.85) == 0);
    CHECK(flagged_of(8, {}, 0.60, 300, 0.25) == 0);  // bursts
    CHECK(flagged_of(8, {}, 0.85, 100) == 0);
    CHECK(flagged_of(2, {}, 0.85, 1500) == 0);
}

TEST_CASE("a load at exactly the engine's capacity wanders and is hardly ever called over it") {
    CHECK(flagged_of(15, {}, 1.0) <= 1);
}

TEST_CASE("a load far over the engine's capacity is called over-saturated") {
    CHECK(flagged_of(8, {}, 1.5) >= 7);
    CHECK(flagged_of(8, {}, 2.0) == 8);
    CHECK(flagged_of(3, {}, 1.3, 1500) == 3);  // a longer run shows less
}

TEST_CASE("a pipe that fills with long answers at the start is not called over-saturated") {
    // An answer takes about 12 s, so that in flight grows from 0 to 19 in the first of them.
    virtual_load load;
    load.outputs = fixed(800);
    load.server.kv.memory_bytes = 1e12;
    CHECK(flagged_of(4, load, 0.6, 60) == 0);
    CHECK(flagged_of(4, load, 0.6, 100) == 0);
    CHECK(flagged_of(4, load, 0.6, 300) == 0);
    CHECK(flagged_of(4, load, 0.85, 100) == 0);
    CHECK(flagged_of(4, load, 2.0, 300) == 4);
}

TEST_CASE("a ramp over the capacity is not called over-saturated, since it grows by design") {
    const double capacity = capacity_of({});
    const arrival_data up =
        ramp(request_rate(0.5 * capacity), request_rate(2.5 * capacity), 20_s).data();
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
        CHECK_FALSE(is_flagged({}, up, 300, seed, arrival_cv2_of(up)));
        CHECK(is_flagged({}, up, 300, seed, 1));  // as it would be, were it not known
    }
}

// ---- a load that ends before its answers do ----------------------------------------------------

namespace {
/// Answers of 128 tokens at most 256 at a time: about 21 requests a second.
measurement sent_at(double rate, long long n) {
    virtual_load load;
    load.outputs = fixed(128);
    load.server.slots = 256;
    load.server.kv.memory_bytes = 1e12;
    const schedule s = open_loop_schedule(poisson(request_rate(rate)).data(), 0, 0, n, 0, 3);
    const repeat_data d = answers_to(load, s.at, s.warmup, 3);
    measurement m = measured({d, d, d});
    m.arrival_cv2 = 1;
    return m;
}
/// So many requests a second for so long, each answered after `answer_s`.
measurement steady(double rate, int n, double answer_s) {
    vector<request> requests;
    for (int i = 0; i < n; ++i) requests.push_back(answered(1000 * i / rate, 50, 100 * answer_s - 5));
    measurement m = measured({repeat_of(requests), repeat_of(requests), repeat_of(requests)});
    m.arrival_cv2 = 1;
    return m;
}
}  // namespace

TEST_CASE("the more a load exceeds the server, the less it can pass, however short it is") {
    for (const long long n : {60ll, 200ll, 1000ll})
        for (const double rate : {32.0, 48.0, 64.0, 128.0, 256.0, 1000.0, 30000.0}) {
            CAPTURE(n);
            CAPTURE(rate);
            const measurement m = sent_at(rate, n);
            CHECK(over_saturation_reason(m) != "");
            CHECK(judged(m, p90(ttft) <= 1000_s).outcome == verdict::invalid);
        }
    // A run as long as the advice asks for tells that the server does not keep up.
    measurement m = sent_at(140, 200);
    const slo_verdict short_one = judged(m, p90(ttft) <= 6_s);
    CHECK(short_one.outcome == verdict::invalid);
    CHECK(mentions(short_one.reason, "the plan: an answer took "));
    CHECK(mentions(short_one.reason, " of load were too short for that"));
    CHECK(mentions(short_one.advice, "let the load last "));
    const cause why = too_short_repeat(m.candidate[0]);
    m = sent_at(140, static_cast<long long>(why["starts"]));
    CHECK(mentions(judged(m, p90(ttft) <= 6_s).reason, "over-saturated: "));
}

TEST_CASE("a load of four answers is long enough, and what has no rate has no length") {
    CHECK(over_saturation_reason(steady(8, 300, 3)) == "");
    CHECK(over_saturation_reason(steady(6, 60, 3)) == "");
    CHECK(over_saturation_reason(steady(40, 300, 5)) ==
          "the plan: an answer took 5 s, and 7.5 s of load were too short for that");
    const slo_verdict v = judged(steady(40, 300, 5), p90(ttft) <= 6_s);
    CHECK(str(v.advice) == "let the load last 20 s at least, with 800 requests at its rate, so that "
                           "it can show whether the server keeps up");
    measurement m = steady(40, 300, 5);
    m.arrival_cv2 = infinity;  // a ramp, stages, a trace
    CHECK(over_saturation_reason(m) != "");
    m.arrival_cv2 = not_a_number;  // users, all at once
    CHECK(over_saturation_reason(m) == "");
    m = steady(40, 300, 5);
    for (repeat_data& d : m.candidate) d.load = 40;  // a probe, which the search makes longer
    CHECK(over_saturation_reason(m) == "");
    // Answers that the client did not wait for count up to its leaving.
    m = steady(40, 300, 5);
    for (repeat_data& d : m.candidate)
        for (record& r : d.records) r.status = request_status::left;
    CHECK(over_saturation_reason(m) != "");
}

TEST_CASE("a load that is too short shows no pass and no rate, and a miss only if more is worse") {
    const measurement m = steady(40, 300, 5);
    for (const slo& s : {p90(ttft) <= 6_s, mean(tpot) <= 1000_s, goodput(ttft <= 6_s) >= 90_pct,
                         request_throughput >= 1_rps, request_throughput >= 1000_rps}) {
        CAPTURE(str(s.text()));
        CHECK(judged(m, s).outcome == verdict::invalid);
    }
    for (const slo& s : {p90(ttft) <= 10_ms, p50(e2e) <= 1_s, goodput(e2e <= 1_s) >= 90_pct}) {
        CAPTURE(str(s.text()));
        CHECK(judged(m, s).outcome == verdict::fail);
    }
    CHECK(judged(m, error_rate <= 5_pct).outcome == verdict::pass);
    // A candidate that became slower is slower, unless the baseline's load was too short, too.
    measurement pairs = m;
    pairs.candidate.push_back(m.candidate[0]);
    for (std::size_t i = 0; i < pairs.candidate.size(); ++i)
        pairs.baseline.push_back(steady(40, 300, 0.5).candidate[0]);
    CHECK(judged(pairs, mean(e2e) <= 1.1 * baseline).outcome == verdict::fail);
    CHECK(judged(pairs, mean(ttft) <= 1.1 * baseline).outcome == verdict::invalid);
    std::swap(pairs.candidate, pairs.baseline);
    CHECK(judged(pairs, mean(e2e) <= 1.1 * baseline).outcome == verdict::invalid);
    CHECK(mentions(judged(pairs, mean(e2e) <= 1.1 * baseline).reason, "baseline: an answer took"));
    CHECK(judged(pairs, p90(e2e) <= 1_s).outcome == verdict::pass);
}

// ---- sessions, whose turns follow turns --------------------------------------------------------

namespace {

/// Sessions of 3 to 8 turns that begin at a rate, with 1 s of thinking on the average before each
/// later turn, on the engine model.
repeat_data sessions_at(double per_second, int sessions, std::uint64_t seed) {
    struct turn_due {
        double at = 0;
        int session = 0, turn = 0;
        bool operator>(const turn_due& o) const { return at > o.at; }
    };
    const virtual_load load;
    engine e = load.server;
    e.seed = static_cast<long long>(seed);
    engine_model model(e);
    generator random(seed, 5);
    std::priority_queue<turn_due, vector<turn_due>, std::greater<>> due;
    vector<int> turns;
    const arrival_data arrivals = poisson(request_rate(per_second)).data();
    for (const double at : open_loop_schedule(arrivals, 0, 0, sessions, 0, seed).at) {
        due.push({at, static_cast<int>(turns.size()), 0});
        turns.push_back(3 + static_cast<int>(random.below(6)));
    }
    repeat_data d;
    while (!due.empty() || model.step_end() < infinity) {
        if (!due.empty() && due.top().at <= model.step_end()) {
            const turn_due t = due.top();
            due.pop();
            record r;
            r.phase = run_phase::measure;
            r.status = request_status::ok;
            r.scheduled_ns = r.dispatched_ns = r.sent_ns = at_ms(t.at * 1000);
            r.conversation = t.session;
            r.turn = t.turn;
            r.prompt_tokens = drawn_length(load.prompts, random, 1);
            r.output_tokens = drawn_length(load.outputs, random, 2);
            r.events = r.first_event_tokens = 1;
            model.submit(t.at, {d.records.size(), r.prompt_tokens, r.output_tokens, {}});
            d.records.push_back(r);
            d.gap_offsets.push_back(0);
            continue;
        }
        const double now = model.step_end();
        for (const engine_model::emission& out : model.finish_step()) {
            record& r = d.records[out.id];
            if (r.first_token_ns == 0) r.first_token_ns = at_ms(now * 1000);
            r.last_token_ns = at_ms(now * 1000);
            if (!out.finished) continue;
            r.end_ns = r.last_token_ns;
            const auto s = static_cast<std::size_t>(r.conversation);
            if (r.turn + 1 < turns[s])
                due.push({now + random.exponential(), static_cast<int>(s), r.turn + 1});
        }
    }
    return d;
}
/// Of so many seeds. A session has 5.5 turns on the average.
int sessions_flagged_of(int seeds, double fraction_of_capacity, int sessions) {
    const double rate = fraction_of_capacity * capacity_of({}) / 5.5;
    int flagged = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
        const repeat_data d = sessions_at(rate, sessions, static_cast<std::uint64_t>(seed));
        measurement m = measured({d, d});
        m.arrival_cv2 = 1;
        const std::string why = over_saturation_reason(m);
        if (!why.empty()) CHECK(why.find("over-saturated: sessions in flight grew by ") == 0);
        flagged += !why.empty();
    }
    return flagged;
}

}  // namespace

TEST_CASE("sessions that the engine can take are never called over-saturated, though they fill up") {
    CHECK(sessions_flagged_of(6, 0.60, 250) == 0);
    CHECK(sessions_flagged_of(6, 0.85, 250) == 0);
    CHECK(sessions_flagged_of(2, 0.85, 800) == 0);
    CHECK(sessions_flagged_of(6, 0.95, 400) <= 1);
}

TEST_CASE("sessions over the engine's capacity are called over-saturated") {
    CHECK(sessions_flagged_of(3, 1.2, 800) >= 2);
    CHECK(sessions_flagged_of(6, 1.5, 400) >= 5);
    CHECK(sessions_flagged_of(6, 2.0, 400) >= 5);
}

TEST_CASE("sessions of a search count request by request, and one session alone shows nothing") {
    repeat_data d = sessions_at(1.5 * capacity_of({}) / 5.5, 400, 1);
    CHECK(over_saturated_repeat(d, 1)["of_sessions"] == 1);
    d.load = 4;
    CHECK(over_saturated_repeat(d, 1)["of_sessions"] != 1);
    d.load = 0;
    for (record& r : d.records) r.conversation = 0;
    CHECK_FALSE(over_saturated_repeat(d, 1));
}
