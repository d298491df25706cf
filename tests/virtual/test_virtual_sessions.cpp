// Recorded sessions of agents, from the file to the verdict, against the simulated server: each edge
// of their graphs, what the prefix cache has of them, and what becomes of one whose step fails.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "support/live.hpp"
#include "support/scratch.hpp"
#include "support/texts.hpp"
#include "virtual/scripted_server.hpp"
#include "llmbench_capacity.hpp"
#include "llmbench_compare.hpp"
#include "llmbench_sessions.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

engine immediate() {
    engine e = quick_engine();
    e.decode_step = 8_ms;
    e.tokens_per_event = 8;  // less to simulate
    e.step_per_sequence = 0_ms;
    return e;
}
scenario plays(const std::string& path) {
    scenario s;
    s.target = simulated(immediate());
    s.workload = sessions{.path = path};
    s.arrivals = closed_loop(16);
    s.warmup = 0;
    s.repeats = 2;
    s.slos = {mean(ttft) <= 60_s};
    return s;
}

/// A step of the corpus below: what it waits for, and with how many tokens of earlier prompts its
/// own begins.
struct expected_step {
    std::vector<int> after;
    double wait_s = 0;
    int kept = 0, turn = 0, depth = 0;
};
/// By the length of its prompt, which no other step of a session has: a step spawns two helpers that
/// overlap, the main line goes on behind both, and a compaction ends it.
const std::map<int, expected_step> graph = {
    {64, {{}, 0, 0, 0, 0}},         {33, {{64}, 0.5, 0, 0, 1}},
    {50, {{64}, 1, 0, 0, 1}},       {96, {{64, 33, 50}, 1, 64, 1, 0}},
    {130, {{96}, 0.5, 96, 2, 0}},   {85, {{64, 130}, 1, 16, 3, 0}},
};
/// 200 sessions; the number of a session is the length of its answers. With starts, each begins a
/// second after the one before, and what it waits for first is a `worker`.
void write_corpus(const std::string& path, int sessions = 200, bool has_starts = false) {
    std::ofstream file(path);
    for (int s = 1; s <= sessions; ++s)
        for (const int length : {64, 33, 50, 96, 130, 85}) {
            const expected_step& is = graph.at(length);
            file << R"({"session":")" << s << R"(","step":")" << length << R"(","model":"big","prompt_tokens":)"
                 << length << R"(,"output_tokens":)" << s;
            if (has_starts && length == 64) file << R"(,"start":)" << 1772359200 + s << R"(,"shared":true)";
            if (has_starts && is.depth == 1) file << R"(,"label":"worker")";
            std::string after;
            for (const int a : is.after) after += (after.empty() ? "\"" : ",\"") + std::to_string(a) + '"';
            if (!after.empty()) file << R"(,"after":[)" << after << R"(],"wait":)" << is.wait_s;
            if (is.kept > 0) file << R"(,"keeps":[")" << is.after[0] << R"(",)" << is.kept << "]";
            file << "}\n";
        }
}
using session_records = std::map<int, record>;  // by the lengths of their prompts
std::map<long long, session_records> by_session(const result& r, int repeat) {
    std::map<long long, session_records> all;
    for (const record& x : r.requests())
        if (x.repeat == repeat) all[x.conversation][x.prompt_tokens] = x;
    return all;
}
/// Of both repeats of the corpus.
void check_edges(const result& r) {
    for (int repeat = 0; repeat < 2; ++repeat) {
        const auto all = by_session(r, repeat);
        REQUIRE(all.size() == 200);
        std::set<int> played;
        for (const auto& [number, steps] : all) {
            REQUIRE(steps.size() == 6);
            played.insert(steps.at(64).output_tokens);
            for (const auto& [length, x] : steps) {
                CAPTURE(length);
                const expected_step& is = graph.at(length);
                CHECK(x.turn == is.turn);
                CHECK(x.depth == is.depth);
                long long ready = 0;
                for (const int a : is.after) ready = std::max(ready, steps.at(a).end_ns);
                if (ready > 0) CHECK(x.scheduled_ns == ready + std::llround(is.wait_s * 1e9));
                // What the cache has, by blocks of 16, is what the graph shares.
                CHECK(x.cached_tokens == is.kept);
            }
        }
        CHECK(played.size() == 200);  // each session once
    }
}

}  // namespace

TEST_CASE("sessions are replayed with every edge of their graphs, when they began if asked") {
    const files::scratch here;
    const std::string file = here.file("sessions.jsonl");
    write_corpus(file, 200, true);
    scenario s = plays(file);
    s.requests = 1200;
    s.slos = {mean(ttft) <= 60_s, p90(ttft).of("worker") <= 60_s, p90(ttft).of(depth(1)) <= 60_s,
              p90(ttft).of(turns(2)) <= 60_s};
    for (const arrival_pattern& how : {arrival_pattern(closed_loop(16)), arrival_pattern(replay(file).speed(4))}) {
        s.arrivals = how;
        const result r = run(s);
        check_passes(r);
        check_edges(r);
    }
}

TEST_CASE("an offset holds back a step that waits for nothing, and no step for longer than max_wait") {
    const files::scratch here;
    const std::string file = here.file("corpus.jsonl");
    {
        std::ofstream corpus(file);
        for (int session = 0; session < 4; ++session) {
            const auto step = [&](const char* name, int tokens, const std::string& more) {
                corpus << R"({"session":")" << session << R"(","step":")" << name << R"(","prompt_tokens":)" << tokens
                       << R"(,"output_tokens":1)" << more << "}\n";
            };
            step("first", 16, "");
            step("later", 17, R"(,"at":2)");
            step("held", 18, R"(,"after":["later"],"at":4)");
            step("cut", 19, R"(,"after":["held"],"at":3600,"wait":1)");
            step("alone", 20, R"(,"at":3600)");
        }
    }
    scenario s = plays(file);
    s.workload = sessions{.path = file, .max_wait = 5_s};
    s.arrivals = constant(10_rps);
    s.requests = 20;
    const result r = run(s);
    check_passes(r);
    for (const auto& [number, steps] : by_session(r, 1)) {
        const long long start = steps.at(16).scheduled_ns, second = 1000000000;
        CHECK(steps.at(17).scheduled_ns == start + 2 * second);
        CHECK(steps.at(18).scheduled_ns == start + 4 * second);
        CHECK(steps.at(19).scheduled_ns == steps.at(18).end_ns + 5 * second);
        CHECK(steps.at(20).scheduled_ns == start + 5 * second);
    }
}

TEST_CASE("a session goes on behind a step that fails") {
    const files::scratch here;
    const std::string file = here.file("ours.jsonl");
    std::ofstream(file)
        << R"({"session":"s","step":"a","prompt_tokens":20,"output_tokens":3})" "\n"
        << R"({"session":"s","step":"b","after":["a"],"keeps":["a",16],"prompt_tokens":30,"output_tokens":3})" "\n"
        << R"({"session":"s","step":"c","after":["b"],"prompt_tokens":900,"output_tokens":3})" "\n"
        << R"({"session":"s","step":"d","after":["c"],"wait":0.25,"prompt_tokens":40,"output_tokens":3})" "\n";
    scenario s = plays(file);
    engine e = immediate();
    e.max_model_len = 500;
    s.target = simulated(e);
    s.workload = sessions{.path = file, .models = {{"", "unlisted"}}};  // whose room nobody knows
    s.arrivals = closed_loop(2);
    s.requests = 40;
    s.slos = {error_rate <= 50_pct};
    const result r = run(s);
    std::map<long long, std::vector<record>> sessions_of;
    for (const record& x : r.requests())
        if (x.repeat == 0) sessions_of[x.conversation].push_back(x);
    CHECK(sessions_of.size() == 10);
    for (auto& [number, steps] : sessions_of) {
        REQUIRE(steps.size() == 4);
        std::sort(steps.begin(), steps.end(),
                  [](const record& a, const record& b) { return a.scheduled_ns < b.scheduled_ns; });
        CHECK(steps[1].status == request_status::ok);
        CHECK(steps[2].status != request_status::ok);
        CHECK(steps[3].status == request_status::ok);
        CHECK(steps[3].scheduled_ns == steps[2].end_ns + 250000000);
    }
}

TEST_CASE("users begin in the middle of a session, and what they begin with warms up") {
    const files::scratch here;
    const std::string file = here.file("corpus.jsonl");
    write_corpus(file);
    scenario s = plays(file);
    s.duration = 30_s;
    const result r = run(s);
    check_passes(r);
    std::set<std::size_t> begun_with;
    long long warm = 0;
    for (const auto& [number, steps] : by_session(r, 0)) {
        if (number < 16) begun_with.insert(steps.size());
        for (const auto& [length, x] : steps) {
            warm += x.phase == run_phase::warmup;
            if (x.phase == run_phase::warmup) CHECK(number < 16);
        }
    }
    CHECK(begun_with.size() > 1);  // not all from their first step
    CHECK(warm >= 8);
}

TEST_CASE("sessions that the server has no room for are left out whole, and counted in the reports") {
    const files::scratch here;
    const std::string file = here.file("corpus.jsonl");
    write_corpus(file);
    scenario s = plays(file);
    engine e = immediate();
    e.max_model_len = 300;  // prompts have up to 130 tokens: answers of over 170 have no room
    s.target = simulated(e);
    s.requests = 170 * 6;
    {
        const heard console;
        const result r = run(s);
        check_passes(r);
        for (const record& x : r.requests()) CHECK(x.output_tokens <= 170);
        CHECK(by_session(r, 0).size() == 170);
        CHECK(holds(texts::unwrapped(console.text()), "170 sessions of corpus.jsonl, 30 left out by the server's max_model_len of "
                                    "300, 6.0 steps each"));
    }
    e.max_model_len = 230;  // for half of them
    s.target = simulated(e);
    s.requests = 600;
    CHECK(by_session(run(s), 0).size() == 100);  // the first of them twice
    e.max_model_len = 228;
    s.target = simulated(e);
    CHECK(refusal_of(s).find("102 of 200 sessions have a step for which the server has no room (its max_model_len is "
                             "228 tokens, prompt and answer)") != std::string::npos);
    // What the plan was found sound by is asked again: there are fewer of the selected requests.
    e.max_model_len = 300;
    s.target = simulated(e);
    s.requests = 186;
    s.slos = {p90(session_time) <= 60_s};
    check_passes(run(s));
}

TEST_CASE("the same sessions are played on both arms: those that both servers have room for") {
    const files::scratch here;
    const std::string file = here.file("corpus.jsonl");
    write_corpus(file);
    scenario s = plays(file);
    engine smaller = immediate();
    smaller.max_model_len = 300;
    s.baseline = simulated(smaller);
    s.requests = 600;
    s.repeats = 4;
    s.slos = {p50(ttft) <= 2 * baseline};
    const result r = run(s);
    CHECK(r.measured(error_rate) == 0);
    for (const record& x : r.requests()) CHECK(x.output_tokens <= 170);
    s.baseline = {};
    s.target = {};
    s.slos = {};
    s.repeats = 2;
    const heard console;
    comparison_result c;
    refusal_by([&] { c = compare(s, {{"large", simulated(immediate())}, {"small", simulated(smaller)}}); });
    CHECK(holds(texts::unwrapped(console.text()), "small: its server has no room for all sessions, which are the same of all settings: 170 "
                                "sessions of"));
    CHECK(c["large"].requests().size() > 0);
    CHECK(c["small"].requests().size() == 0);
}

TEST_CASE("sessions that cannot be played are refused") {
    const files::scratch here;
    const std::string file = here.file("corpus.jsonl");
    write_corpus(file, 2);
    const auto refused = [&](const any_workload& w, const arrival_pattern& how = closed_loop(1)) {
        scenario s = plays(file);
        s.workload = w;
        s.arrivals = how;
        s.requests = 10;
        return refusal_of(s);
    };
    CHECK(refused(sessions{}).find("workload.path is empty") != std::string::npos);
    CHECK(refused(sessions{.path = file, .max_wait = 100000_s}).find("max_wait is 100000 s") != std::string::npos);
    CHECK(refused(sessions{.path = file, .max_context = -1}).find("max_context is -1") != std::string::npos);
    CHECK(refused(sessions{.path = file, .max_context = 100}).find("over half of them") != std::string::npos);
    CHECK(refused(sessions{.path = file, .max_items = 0}).find("max_items is 0") != std::string::npos);
    CHECK(refused(sessions{.path = file, .models = {{"other", "x"}}}).find("no step of the recording") !=
          std::string::npos);
    CHECK(refused(sessions{.path = file}, replay("data/mooncake.jsonl"))
              .find("arrivals is a replay of data/mooncake.jsonl: sessions begin when their own recording says") !=
          std::string::npos);
    CHECK(refused(sessions{.path = file}, replay(file)).find("corpus.jsonl: a replay starts sessions when") !=
          std::string::npos);
    CHECK(refused(mix({{.name = "agents", .workload = sessions{.path = file}}, {.name = "chat"}}))
              .find("part \"agents\" of the mix: its workload is sessions") != std::string::npos);
    scenario s = plays(file);
    s.requests = 10;
    s.slos = {p50(ttft).of(depth(2)) <= 60_s};
    CHECK(refusal_of(s).find("a depth from 0 to 1 is allowed") != std::string::npos);
    s.slos = {};
    s.repeats = 4;
    s.baseline = otherwise{.workload = conversations{}};
    CHECK(refusal_of(s).find("of sessions both arms play the same") != std::string::npos);
}

namespace {

/// Seconds in which a step of a session was due or under way, moment by moment.
double covered_seconds(const session_records& steps) {
    std::vector<std::pair<long long, int>> changes;
    for (const auto& [length, x] : steps) {
        changes.emplace_back(x.scheduled_ns, 1);
        changes.emplace_back(x.end_ns, -1);
    }
    std::sort(changes.begin(), changes.end());
    long long covered = 0;
    for (std::size_t i = 0, under_way = 0; i + 1 < changes.size(); ++i) {
        under_way += static_cast<std::size_t>(changes[i].second);
        if (under_way > 0) covered += changes[i + 1].first - changes[i].first;
    }
    return static_cast<double>(covered) / 1e9;
}
/// Sessions of a repeat that began in its measured part.
std::vector<session_records> measured_sessions_of(const result& r, int repeat) {
    std::vector<session_records> all;
    for (auto& [number, steps] : by_session(r, repeat))
        if (std::all_of(steps.begin(), steps.end(),
                        [](const auto& x) { return x.second.phase == run_phase::measure; }))
            all.push_back(steps);
    return all;
}

}  // namespace

TEST_CASE("session_time is the time in which a step was due or under way") {
    const files::scratch here;
    const std::string file = here.file("corpus.jsonl");
    write_corpus(file);
    scenario s = plays(file);
    s.duration = 60_s;
    s.slos = {p90(session_time) <= 60_s, max(session_time) <= 60_s, mean(session_time) <= 60_s};
    const result r = run(s);
    check_passes(r);
    double longest = 0;
    for (int repeat = 0; repeat < 2; ++repeat) {
        const std::vector<session_records> all = measured_sessions_of(r, repeat);
        CHECK(all.size() > 100);
        long long last = 0;
        for (const session_records& steps : all) {
            CHECK(steps.size() == 6);  // played out, however long after the window
            longest = std::max(longest, covered_seconds(steps));
            for (const auto& [length, x] : steps) last = std::max(last, x.end_ns - steps.at(64).scheduled_ns);
        }
        CHECK(static_cast<double>(last) / 1e9 > longest + 2.5);  // waits for tools are no part of it
    }
    CHECK(r.measured(max(session_time)) == doctest::Approx(longest));
    for (const slo_verdict& v : r.verdicts())
        if (v.objective.statistic.metric == detail::metric_id::session_time)
            CHECK(static_cast<std::size_t>(v.requests) ==
                  measured_sessions_of(r, 0).size() + measured_sessions_of(r, 1).size());
}

TEST_CASE("a failed step makes its session infinite, and so does what limits.drain cuts") {
    const files::scratch here;
    const std::string file = here.file("corpus.jsonl");
    write_corpus(file);
    scenario s = plays(file);
    engine e = immediate();
    e.max_model_len = 300;  // for prompts of up to 130 tokens: the sessions with longer answers fail
    s.target = simulated(e);
    s.workload = sessions{.path = file, .models = {{"big", "unlisted"}}};
    s.requests = 1200;
    s.slos = {p50(session_time) <= 60_s, p90(session_time) <= 60_s, error_rate <= 50_pct};
    const result failing = run(s);
    CHECK(std::isfinite(failing.measured(p50(session_time))));  // about 30 of 200 sessions failed
    CHECK(failing.measured(p90(session_time)) == std::numeric_limits<double>::infinity());

    s = plays(file);
    s.duration = 20_s;
    s.slos = {p50(session_time) <= 60_s, max(session_time) <= 60_s, error_rate <= 50_pct};
    CHECK(std::isfinite(run(s).measured(max(session_time))));
    s.limits.drain = 1_s;
    const result cut = run(s);
    CHECK(std::isfinite(cut.measured(p50(session_time))));
    CHECK(cut.measured(max(session_time)) == std::numeric_limits<double>::infinity());
    CHECK(cut.verdicts()[1].outcome == verdict::invalid);
    CHECK(holds(std::string(cut.verdicts()[1].reason.c_str()), "(limits.drain)"));
    CHECK(cut.verdicts()[2].estimate.value == 0);
    for (const session_records& steps : measured_sessions_of(cut, 0))
        if (steps.size() < 6)  // one in a wait is told of, too
            CHECK(std::any_of(steps.begin(), steps.end(), [](const auto& x) {
                return std::string(x.second.error.c_str()).find("limits.drain") != std::string::npos;
            }));
    s.arrivals = constant(1_rps);
    s.warmup = 5_s;
    const result open = run(s);
    CHECK(open.measured(max(session_time)) == std::numeric_limits<double>::infinity());
    CHECK(std::isfinite(open.measured(p50(session_time))));
}

TEST_CASE("a conversation has a session_time, a prompt of its own has none") {
    const files::scratch here;
    scenario s = plays(here.file(""));
    s.workload = conversations{.turns = fixed(3), .think = 2_s};
    s.requests = 91;  // 31 of them, the last one whole
    s.slos = {p90(session_time) <= 60_s, p50(e2e) <= 60_s};
    const result r = run(s);
    check_passes(r);
    CHECK(r.measured(p50(session_time)) == doctest::Approx(3 * r.measured(p50(e2e))).epsilon(0.05));
    s.requests = 60;
    CHECK(refusal_of(s).find("p90(session_time) needs at least 30 measured sessions a repeat") !=
          std::string::npos);
    s.requests = 300;
    s.slos = {p50(session_time).of(turns(2)) <= 60_s};
    CHECK(refusal_of(s).find("a session is one value, with all of its steps") != std::string::npos);
    s.slos = {p50(session_time) <= 60_s};
    s.workload = synthetic{};
    CHECK(refusal_of(s).find("session_time needs a workload of sessions or conversations") != std::string::npos);
    s.slos = {drift(p50(session_time)) <= 110_pct};
    s.workload = conversations{};
    CHECK(refusal_of(s).find("a drift is of times and speeds of requests") != std::string::npos);
}

TEST_CASE("turns are helped by lines of their own, and the next turn waits for all of them") {
    const files::scratch here;
    scenario s = plays(here.file(""));
    s.workload = conversations{.turns = uniform(3, 6), .user_tokens = fixed(32), .output_tokens = fixed(16),
                               .think = uniform(500_ms, 2_s), .system_tokens = fixed(48),
                               .subagents = 50_pct, .helpers = uniform(2, 4), .helper_turns = uniform(1, 3)};
    s.arrivals = closed_loop(8).think(3_s);
    s.requests = 1500;
    s.slos = {p90(session_time) <= 60_s, p90(ttft).of(depth(1)) <= 60_s};
    const result r = run(s);
    check_passes(r);
    std::map<long long, std::vector<record>> all, again;
    for (const record& x : r.requests()) (x.repeat == 0 ? all : again)[x.conversation].push_back(x);
    std::size_t followed = 0, subagents = 0;
    std::set<long long> pauses;
    for (auto& [number, steps] : all) {
        REQUIRE(again[number].size() == steps.size());  // the same trace in every repeat
        std::vector<record> own;
        std::set<std::size_t> sizes;
        for (const record& x : steps)
            if (x.depth == 0) own.push_back(x);
        std::sort(own.begin(), own.end(), [](const record& a, const record& b) { return a.turn < b.turn; });
        CHECK(own.size() >= 3);
        CHECK(own.size() <= 6);
        for (std::size_t i = 0; i < own.size(); ++i) {
            CHECK(own[i].turn == static_cast<int>(i));
            // What was said before, and nothing of helpers.
            if (i > 0) CHECK(own[i].prompt_tokens > own[i - 1].prompt_tokens + 32);
            const bool is_last = i + 1 == own.size();
            long long ready = own[i].end_ns;
            std::size_t started = 0;
            for (const record& x : steps) {
                const bool is_of_turn = x.depth == 1 && x.scheduled_ns >= own[i].end_ns &&
                                        (is_last || x.scheduled_ns < own[i + 1].scheduled_ns);
                if (!is_of_turn) continue;
                CHECK_FALSE(is_last);
                ready = std::max(ready, x.end_ns);
                if (x.turn > 0) continue;
                ++started;
                CHECK(x.scheduled_ns == own[i].end_ns);  // side by side, and at once
                CHECK(x.prompt_tokens == own[0].prompt_tokens);  // the system prompt, and no history
                CHECK(x.cached_tokens >= 48);
            }
            if (is_last) continue;
            ++followed;
            subagents += started > 0;
            if (started > 0) CHECK((started >= 2 && started <= 4));
            const long long wait = own[i + 1].scheduled_ns - ready;
            CHECK(wait >= 500000000);
            CHECK(wait <= 2000000000);
            pauses.insert(wait);
        }
    }
    const double share = static_cast<double>(subagents) / static_cast<double>(followed);
    CHECK(share > 0.38);
    CHECK(share < 0.62);
    CHECK(pauses.size() > followed / 2);  // drawn for each
}

TEST_CASE("an open loop that is measured for a time warms up for the waits of nine in ten sessions") {
    const files::scratch here;
    const std::string file = here.file("corpus.jsonl");
    write_corpus(file);
    scenario s = plays(file);
    s.arrivals = poisson(2_rps);
    s.duration = 30_s;
    s.warmup = 3_s;  // the longest way through the graph has waits of 1, 1, 0.5 and 1 s
    CHECK(refusal_of(s).find("nine in ten sessions take up to 3.5 s of waits alone") != std::string::npos);
    s.warmup = 10;
    CHECK(refusal_of(s).find("warmup is a number of requests, and nine in ten") != std::string::npos);
    s.warmup = time_span::from_seconds(3.6);
    check_passes(run(s));
    s.workload = conversations{.turns = fixed(4), .think = 3_s, .subagents = 50_pct, .helpers = 2, .helper_turns = 2};
    CHECK(refusal_of(s).find("nine in ten sessions take up to") != std::string::npos);
}

TEST_CASE("{session} in a header is an id of each line") {
    const scripted::server server;
    endpoint e;
    e.url = server.url();
    e.model = "m";
    e.headers = {{"X-Affinity", "a-{session}"}};
    scenario s = asking(e);
    s.workload = conversations{.turns = fixed(3), .user_tokens = fixed(4), .output_tokens = fixed(2),
                               .subagents = 100_pct, .helpers = 2, .helper_turns = 2};
    s.requests = 22;  // two conversations of 3 turns, and two helpers of 2 behind the first two
    run(s);
    std::map<std::string, int> requests;
    for (const scripted::request& q : server.log())
        if (q.method == "POST" && q.header("X-Affinity").find("-0000-8c00-") == std::string::npos) ++requests[q.header("X-Affinity")];
    std::map<int, int> lines_of;
    for (const auto& [id, n] : requests) {
        CHECK(id.find("a-11bbec40-") == 0);
        ++lines_of[n];
    }
    CHECK(lines_of[2] == 2 * 4);
    CHECK(lines_of[3] == 2);
}

// ---- starts as they were recorded ----------------------------------------------------------------

TEST_CASE("a replay starts sessions when they were recorded to begin, and its warm-up plays the last ones") {
    const files::scratch here;
    const std::string file = here.file("chats.jsonl");
    std::ofstream corpus(file);
    std::vector<double> starts;  // of chats of three turns; the length of its answers tells which it is
    for (int chat = 0; chat < 60; ++chat) starts.push_back(chat * 0.5 + (chat % 7) * 0.03);
    for (int chat = 0; chat < 60; ++chat)
        for (int turn = 0; turn < 3; ++turn) {
            const double start = 100 + starts[static_cast<std::size_t>(chat)];
            corpus << R"({"session":")" << chat << R"(","start":)" << start << R"(,"shared":true,"step":")" << turn
                   << R"(","at":)" << turn << R"(,"prompt_tokens":)" << 16 * (turn + 1) << R"(,"output_tokens":)"
                   << chat + 1;
            if (turn > 0)
                corpus << R"(,"after":[")" << turn - 1 << R"("],"keeps":[")" << turn - 1 << R"(",)" << 16 * turn << "]";
            corpus << "}\n";
        }
    corpus.close();
    scenario s = plays(file);
    s.arrivals = replay(file);
    CHECK(refusal_of(s).find("nine in ten sessions take up to 2 s of waits alone") != std::string::npos);
    s.warmup = 4_s;
    const result r = run(s);
    check_passes(r);
    std::map<int, long long> began;  // by the length of its answers, of what was measured
    std::set<int> warm;
    for (const auto& [number, steps] : by_session(r, 0)) {
        CHECK(steps.size() == 3);
        const record& first = steps.at(16);
        if (first.phase == run_phase::measure) began[first.output_tokens] = first.scheduled_ns;
        else warm.insert(first.output_tokens);
        // Not before their recorded offsets, nor before what they wait for has ended.
        CHECK(steps.at(48).scheduled_ns == std::max(first.scheduled_ns + 2000000000, steps.at(32).end_ns));
    }
    REQUIRE(began.size() == 60);
    for (const auto& [answer, at] : began)
        CHECK(std::abs(static_cast<double>(at - began.at(1)) / 1e9 -
                       (starts[static_cast<std::size_t>(answer - 1)] - starts[0])) < 1e-6);
    CHECK(warm.size() == 8);
    CHECK(*warm.begin() == 53);
    s.arrivals = replay(file).speed(2);
    CHECK(run(s).requests().size() > 2 * 3 * 60);
    s.warmup = 10;
    CHECK(refusal_of(s).find("they begin when they did, so give a time, or 0") != std::string::npos);
    s.warmup = 4_s;
    engine e = immediate();
    e.max_model_len = 80;
    s.target = simulated(e);
    CHECK(refusal_of(s).find("arrivals is a replay, and the server has no room for") != std::string::npos);
}

// ---- gates of every kind -------------------------------------------------------------------------

TEST_CASE("sessions are judged again from their records: by depth, by label, by session") {
    const files::scratch here;
    const std::string file = here.file("ours.jsonl");
    std::ofstream corpus(file);
    for (int i = 0; i < 40; ++i) {
        const std::string of = R"({"session":"s)" + std::to_string(i) + R"(",)";
        corpus << of << R"("step":"a","prompt_tokens":64,"output_tokens":4})" "\n"
               << of << R"("step":"b","after":["a"],"prompt_tokens":32,"output_tokens":4,"label":"look"})" "\n"
               << of << R"("step":"c","after":["a","b"],"wait":0.1,"keeps":["a",64],"prompt_tokens":96,"output_tokens":4})" "\n";
    }
    corpus.close();
    scenario s = plays(file);
    s.name = "agents judged again";
    s.requests = 360;
    s.repeats = 3;
    s.slos = {p50(session_time) <= 60_s, p90(ttft).of(depth(1)) <= 60_s, p90(ttft).of("look") <= 60_s,
              p50(e2e).of(turns(2)) <= 60_s, of(cached_share, turns(2)) >= 50_pct, max(session_time) <= 1_ms};
    const result r = run(s);
    CHECK(r.verdicts()[5].outcome == verdict::fail);
    for (std::size_t i = 0; i < 5; ++i) CHECK(r.verdicts()[i].outcome == verdict::pass);
    check_rejudged(r, s.slos);
}

TEST_CASE("sessions are compared with a baseline, and searched for a capacity") {
    const files::scratch here;
    const std::string file = here.file("corpus.jsonl");
    write_corpus(file, 400);
    scenario s = plays(file);
    s.name = "agents against another server";
    s.requests = 600;
    s.repeats = 4;
    engine slow = immediate();
    slow.decode_step = 16_ms;
    s.baseline = simulated(slow);
    s.slos = {p50(session_time) <= 1 * baseline, p50(tpot).of(depth(1)) <= 0.7 * baseline, p50(tpot) <= 0.4 * baseline};
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    CHECK(r.verdicts()[1].outcome == verdict::pass);
    CHECK(r.verdicts()[2].outcome == verdict::fail);

    s.name = "how many agents";
    s.baseline = {};
    s.repeats = 0;
    s.arrivals = closed_loop(up_to(64));
    s.requests = 0;
    s.slos = {p50(tpot) <= 10_ms};
    engine narrow = immediate();
    narrow.slots = 4;
    narrow.step_per_sequence = 8_ms;
    s.target = simulated(narrow);
    s.slos = {p90(ttft) <= 300_ms};
    const capacity_result c = find_capacity(s);
    CAPTURE(std::string(c.line().c_str()));
    CHECK(c.low() >= 2);
    CHECK(c.high() <= 64);
}
