// Loads of more than single requests at once on both variants: conversations, sessions, labels; a
// gateway before its own server; and what is left when a server ends in their middle.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/execution_environment.hpp"
#include "virtual/gateway.hpp"
#include "llmbench_sessions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

engine with_step(time_span step) {
    engine e;
    e.decode_step = step;
    e.tokens_per_event = 2;  // less to simulate
    return e;
}
/// Two engines at once, whose tokens take these times.
scenario at_once_with(time_span candidate, time_span base, const char* name) {
    scenario s;
    s.name = name;
    s.target = simulated(with_step(candidate));
    s.baseline = simulated(with_step(base));
    s.pairs = at_once;
    s.arrivals = poisson(2_rps);
    s.warmup = 5_s;
    s.duration = 60_s;
    return s;
}
/// Repeat, conversation, turn, depth, prompt tokens.
using place = std::tuple<int, long long, int, int, int>;
/// Nearly every request has a twin of its lengths, and begins at its time unless it waits for another.
void check_twins(const result& r) {
    std::map<place, std::map<run_variant, record>> all;
    for (const record& x : r.requests())
        all[{x.repeat, x.conversation, x.turn, x.depth, x.prompt_tokens}][x.variant] = x;
    std::size_t twins = 0;
    for (const auto& [at, both] : all) {
        if (both.size() != 2) continue;
        ++twins;
        const record &mine = both.at(run_variant::candidate), &other = both.at(run_variant::baseline);
        CHECK(mine.output_tokens == other.output_tokens);
        CHECK(mine.part == other.part);
        if (mine.turn == 0 && mine.depth == 0) CHECK(mine.scheduled_ns == other.scheduled_ns);
    }
    CHECK(twins >= 150);
    CHECK(twins * 50 >= all.size() * 49);  // the end of a load cuts a conversation in two places
}
/// Runs it, and finds the same by its files.
std::vector<verdict> verdicts_of(const scenario& s) {
    const result r = run(s);
    check_twins(r);
    check_rejudged(r, s.slos);
    std::vector<verdict> all;
    for (const slo_verdict& v : r.verdicts()) {
        INFO(std::string(v.line().c_str()));
        if (all.size() < s.slos.size()) CHECK(v.decided_by == verdict_method::slices_at_once);
        all.push_back(v.outcome);
    }
    all.resize(s.slos.size());  // without the guard on errors
    return all;
}
constexpr verdict green = verdict::pass, red = verdict::fail;

}  // namespace

TEST_CASE("conversations at once: each turn has a twin, and is compared by its place") {
    const auto talk = [](time_span step, const char* name) {
        scenario s = at_once_with(step, 10_ms, name);
        s.workload = conversations{.turns = uniform(2, 4), .user_tokens = fixed(30),
                                   .output_tokens = fixed(12)};
        s.slos = {mean(tpot) <= 1.1 * baseline, mean(later_turn_ttft) <= 1.25 * baseline,
                  mean(ttft).of(turns(2)) <= baseline + 3_ms};
        return s;
    };
    CHECK(verdicts_of(talk(10_ms, "conversations at once")) == std::vector{green, green, green});
    const std::vector<verdict> slower = verdicts_of(talk(13_ms, "slower conversations at once"));
    CHECK(slower[0] == red);
    CHECK(slower[1] != green);
    CHECK(slower[2] != green);
}

TEST_CASE("sessions at once: every step has a twin, and each label its verdict") {
    const files::scratch here;
    const std::string path = here.file("sessions.jsonl");
    std::ofstream corpus(path);
    for (int i = 1; i <= 300; ++i) {
        const auto step = [&](const char* name, int prompt, int output, const char* label,
                              const char* more) {
            corpus << R"({"session":")" << i << R"(","step":")" << name << R"(","prompt_tokens":)"
                   << prompt << R"(,"output_tokens":)" << output << R"(,"label":")" << label << '"'
                   << more << "}\n";
        };
        step("a", 64, 8, "lead", "");
        step("b", 33, 12, "worker", R"(,"after":["a"],"wait":0.3)");
        step("c", 50, 16, "worker", R"(,"after":["a"],"wait":0.5)");
        step("d", 96, 10, "lead", R"(,"after":["a","b","c"],"wait":0.4,"keeps":["a",64])");
    }
    corpus.close();
    const auto play = [&](time_span step, const char* name) {
        scenario s = at_once_with(step, 10_ms, name);
        s.workload = sessions{.path = path};
        s.slos = {mean(tpot) <= 1.1 * baseline, mean(tpot).of("lead") <= 1.1 * baseline,
                  mean(tpot).of("worker") <= 1.1 * baseline, mean(ttft) <= baseline + 10_ms};
        return s;
    };
    CHECK(verdicts_of(play(10_ms, "sessions at once")) == std::vector{green, green, green, green});
    CHECK(verdicts_of(play(13_ms, "slower sessions at once")) ==
          std::vector{red, red, red, green});
}

TEST_CASE("a mix at once: each label has a verdict of its own") {
    const auto mixed = [](time_span prefill, const char* name) {
        scenario s = at_once_with(10_ms, 10_ms, name);
        engine mine = with_step(10_ms), other = mine;
        mine.prefill_per_token = prefill;
        other.prefill_per_token = 100_us;
        s.target = simulated(mine);
        s.baseline = simulated(other);
        s.workload = mix(
            {{.name = "short", .weight = 3,
              .workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(8)}},
             {.name = "long", .weight = 2,
              .workload = conversations{.turns = fixed(2), .user_tokens = fixed(400),
                                        .output_tokens = fixed(12)}}});
        s.slos = {mean(tpot).of("short") <= 1.15 * baseline, mean(ttft).of("long") <= 1.15 * baseline,
                  p90(ttft).of("long") <= 1.15 * baseline};
        return s;
    };
    CHECK(verdicts_of(mixed(100_us, "a mix at once")) == std::vector{green, green, green});
    CHECK(verdicts_of(mixed(160_us, "a mix at once, slow at long prompts")) ==
          std::vector{green, red, red});
}

TEST_CASE("one server at once: no request finds words of its twin in the cache") {
    scenario s = at_once_with(10_ms, 10_ms, "one cache, two twins");
    s.baseline = otherwise{.same = true};
    s.workload =
        mix({{.name = "single", .weight = 1,
              .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(8)}},
             {.name = "talk", .weight = 1,
              .workload = conversations{.turns = fixed(2), .user_tokens = fixed(64),
                                        .output_tokens = fixed(12)}}});
    s.slos = {mean(ttft) <= 1.25 * baseline};
    const result r = run(s);
    INFO(std::string(r.verdicts()[0].line().c_str()));
    CHECK(r.verdicts()[0].outcome == green);
    for (const record& x : r.requests()) CHECK((x.cached_tokens > 0) == (x.turn > 0));
    check_rejudged(r, s.slos);
}

namespace {
/// A gateway that adds so much, and the server behind it, at once.
scenario gateway_gate(const virtual_world::gateway& front, const logging_server& behind,
                      const char* name) {
    scenario s = at_once_with(10_ms, 10_ms, name);
    s.target = endpoint{.url = front.url()};
    s.baseline = endpoint{.url = behind.url()};
    s.workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(16)};
    s.arrivals = poisson(10_rps);
    s.slos = {mean(ttft) <= baseline + 4_ms};
    return s;
}
}  // namespace

TEST_CASE("a gateway before its own server: twins do not wait for each other in one order") {
    // Requests of one time would wait for a step of their twins: 8 ms that are not the gateway's.
    for (const time_span step : {5_ms, 10_ms})
        for (const double added_ms : {0.0, 2.0}) {
            const logging_server server(with_step(step));
            const virtual_world::gateway front(server.port(), std::llround(added_ms * 1e6));
            const scenario s = gateway_gate(front, server, "a gateway at once");
            const result r = run(s);
            INFO(std::string(r.verdicts()[0].line().c_str()));
            CHECK(r.verdicts()[0].outcome == green);
            CHECK(std::abs(r.verdicts()[0].measured - added_ms / 1000) < 0.001);
            std::map<long long, std::map<run_variant, long long>> planned;
            for (const record& x : r.requests()) planned[x.conversation][x.variant] = x.scheduled_ns;
            int mine = 0, all = 0;
            for (const auto& [index, times] : planned) {
                if (times.size() != 2) continue;
                const long long apart = times.at(run_variant::candidate) - times.at(run_variant::baseline);
                CHECK(std::abs(apart) < 110'000'000);  // a mean gap
                mine += apart < 0;
                ++all;
            }
            CHECK(mine > all / 3);
            CHECK(mine < all * 2 / 3);
        }
}

TEST_CASE("a gateway that hides its server's page, compared by a ratio: twins are sent apart, too") {
    const logging_server server(with_step(10_ms));
    const virtual_world::gateway front(server.port(), 100'000, true);
    scenario s = gateway_gate(front, server, "a ratio of a gateway");
    s.slos = {mean(ttft) <= 1.25 * baseline};
    const result r = run(s);
    INFO(std::string(r.verdicts()[0].line().c_str()));
    CHECK(r.verdicts()[0].outcome == green);
    CHECK(r.verdicts()[0].measured < 1.1);
}

TEST_CASE("users of a gateway and of its server at once are refused") {
    const logging_server server(with_step(10_ms));
    const virtual_world::gateway front(server.port(), 0);
    scenario s = gateway_gate(front, server, "users of a gateway");
    s.arrivals = closed_loop(4);
    CHECK(holds(refusal_of(s), "users of both fall into step there"));
}

namespace {
/// The candidate or the baseline serves so many requests, and then takes no connection any more.
scenario with_end(bool is_candidate, int served, const char* name) {
    scenario s = at_once_with(10_ms, 10_ms, name);
    engine dying = with_step(10_ms);
    dying.faults.stop_after = served;
    if (is_candidate) s.target = simulated(dying);
    else s.baseline = simulated(dying);
    s.workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(8)};
    s.slos = {mean(tpot) <= 1.1 * baseline, mean(ttft) <= baseline + 5_ms};
    return s;
}
/// The seconds from the last answer of the server that ends until the last request to each.
std::map<run_variant, double> sent_after_end(const result& r, run_variant dead) {
    long long last_answer_ns = 0;
    for (const record& x : r.requests())
        if (x.variant == dead && x.status == request_status::ok)
            last_answer_ns = std::max(last_answer_ns, x.end_ns);
    std::map<run_variant, double> after;
    for (const record& x : r.requests()) {
        CHECK(x.status != request_status::cancelled);
        double& its = after[x.variant];
        its = std::max(its, static_cast<double>(x.scheduled_ns - last_answer_ns) * 1e-9);
    }
    return after;
}
constexpr run_variant mine = run_variant::candidate, theirs = run_variant::baseline;
}  // namespace

TEST_CASE("a server that ends in the middle of a load at once: the load of both ends soon after") {
    for (const bool is_candidate : {true, false})
        for (const bool by_users : {false, true}) {
            CAPTURE(is_candidate);
            CAPTURE(by_users);
            scenario s = with_end(is_candidate, by_users ? 400 : 40,
                                  is_candidate ? "the candidate ends" : "the baseline ends");
            if (by_users) s.arrivals = closed_loop(2);
            const result r = run(s);
            const run_variant dead = is_candidate ? mine : theirs, other = is_candidate ? theirs : mine;
            std::map<run_variant, int> answered, lost;
            for (const record& x : r.requests())
                ++(x.status == request_status::ok ? answered : lost)[x.variant];
            CHECK(answered[dead] > 30);
            CHECK(lost[dead] >= 3);
            CHECK(answered[other] > answered[dead] + 10);
            CHECK(lost[other] == 0);
            std::map<run_variant, double> after = sent_after_end(r, dead);
            for (const run_variant each : {mine, theirs}) {
                CHECK(after[each] > 8);
                CHECK(after[each] < 13);  // of 40 s
            }
            for (std::size_t i = 0; i < 2; ++i) {
                INFO(std::string(r.verdicts()[i].reason.c_str()));
                CHECK(r.verdicts()[i].outcome == verdict::invalid);
                CHECK(holds(r.verdicts()[i].reason.c_str(), "it went away"));
            }
            check_rejudged(r, s.slos);
        }
}

TEST_CASE("a baseline that ends in a load at once: an objective of the candidate alone is measured") {
    scenario s = with_end(false, 40, "the baseline ends, the candidate has its own limit");
    s.slos.push_back(goodput(ttft <= 1_s) >= 90_pct);
    const result r = run(s);
    std::map<run_variant, double> after = sent_after_end(r, theirs);
    CHECK(after[theirs] < 13);
    CHECK(after[mine] > 35);
    CHECK(r.verdicts()[0].outcome == verdict::invalid);
    CHECK(r.verdicts()[2].outcome == verdict::pass);
    check_rejudged(r, s.slos);
}

TEST_CASE("users at once who send so many requests: the slower server has a lower throughput, the same one has not") {
    for (const bool is_slower : {true, false}) {
        scenario s = at_once_with(is_slower ? 24_ms : 12_ms, 12_ms,
                                  is_slower ? "users of half the speed" : "users of one speed");
        s.workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = uniform(20, 60)};
        s.arrivals = closed_loop(8);
        s.requests = 1000;
        s.duration = 0_s;
        s.slos = {output_throughput >= 0.9 * baseline};
        const result r = run(s);
        INFO(std::string(r.verdicts()[0].line().c_str()));
        CHECK(r.verdicts()[0].outcome == (is_slower ? verdict::fail : verdict::pass));
        check_rejudged(r, s.slos);
    }
}
