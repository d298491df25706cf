// Side tasks that are refused before anything is sent, each in a sentence.
#include "llmbench.hpp"
#include "core/measured/recovery.hpp"
#include "extensions/faults/api.hpp"
#include "core/measured/recovery.hpp"
#include "extensions/faults/core/tasks.hpp"
#include "core/planning/planning.hpp"
#include "core/traffic/trace_hash.hpp"
#include "support/scenarios.hpp"
#include "support/texts.hpp"
#include "extensions/capacity/api.hpp"

#include <cmath>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;

namespace {
const side_task fine = {.name = "adapters", .every = 1_s, .steps = {post("/load"), post("/unload")}};
template <class F>
std::string refusal_of_task(F&& change) {
    side_task t = fine;
    change(t);
    return refusal_after([&](scenario& s) { s.beside = {t}; });
}
}  // namespace

TEST_CASE("a side task without a sound name, steps or times is refused") {
    CHECK(refusal_of_task([](side_task&) {}) == "");
    for (const char* name : {"", "a\"b", "a\nb"})
        CHECK_REFUSED(refusal_of_task([&](side_task& t) { t.name = name; }), "side task \"",
                      "1 to 60 characters");
    CHECK_REFUSED(refusal_of_task([](side_task& t) { t.steps = {}; }), "side task \"adapters\"",
                  "it has 0 steps: 1 to 100");
    CHECK_REFUSED(refusal_of_task([](side_task& t) { t.steps = {task_step{}}; }), "a step is empty");
    CHECK_REFUSED(refusal_of_task([](side_task& t) { t.steps = {post("load")}; }), "begins with /");
    CHECK_REFUSED(refusal_of_task([](side_task& t) { t.steps = {post("/a b")}; }), "no blanks");
    CHECK_REFUSED(refusal_of_task([](side_task& t) { t.excuses = 1_s; }), "nothing could fail any more");
    CHECK_REFUSED(refusal_of_task([](side_task& t) { t.every = 0.001_s; }), "every is 0.001 s",
                  "from 0.01 to 86400 s");
    CHECK_REFUSED(refusal_of_task([](side_task& t) { t.first = time_span::from_seconds(-1); }),
                  "first is -1 s");
    CHECK_REFUSED(refusal_of_task([](side_task& t) { t.every = time_span::from_seconds(nan_value); }),
                  "every is");
}

TEST_CASE("side tasks of one name, beside a search, or after the load are refused") {
    CHECK_REFUSED(refusal_after([](scenario& s) { s.beside = {fine, fine}; }), "another one has this name");
    scenario searched = sound();
    searched.beside = {fine};
    searched.arrivals = poisson(up_to(8_rps));
    searched.requests = 0;
    searched.slos = {p50(ttft) <= 1_s, capacity >= 2_rps};
    CHECK_REFUSED(texts::refusal_of([&] { planned(searched, 1, {}, scenario_use::gate); }),
                  "beside: arrivals is poisson(up to 8 req/s), a load that is searched");
    CHECK_REFUSED(refusal_after([](scenario& s) {
                      s.beside = {fine};
                      s.arrivals = closed_loop(2);
                      s.duration = 1_s;
                  }),
                  "it begins 1 s after the measured part, which takes 1 s");
    CHECK_REFUSED(refusal_after([](scenario& s) {
                      s.beside = {side_task{.name = "late", .steps = {post("/x")}, .first = 60_s}};
                      s.arrivals = constant(10_rps);
                      s.requests = 100;
                  }),
                  "side task \"late\": it begins 60 s after");
    CHECK_REFUSED(refusal_after([](scenario& s) { s.slos = {p50(ttft).of(during("x")) <= 1_s}; }),
                  "no side task \"x\"");
    CHECK_REFUSED(refusal_after([](scenario& s) { s.baseline = otherwise{.alone = true}; }),
                  "does nothing beside its load");
}

TEST_CASE("a recovery is of one task that is done once, of a load that lasts, and of a ttft that is kept") {
    const auto refusal_of = [](auto&& change) {
        return refusal_after([&](scenario& s) {
            s.beside = {side_task{.name = "kill", .steps = {command("kill")}, .first = 5_s}};
            s.slos = {p90(ttft) <= 1_s, recovery_time <= 10_s};
            change(s);
        });
    };
    CHECK(refusal_of([](scenario&) {}) == "");
    CHECK_REFUSED(refusal_of([](scenario& s) { s.slos = {recovery_time <= 10_s}; }), "recovery_time <= 10 s",
                  "there is none: add one");
    CHECK_REFUSED(refusal_of([](scenario& s) { s.beside = {}; }), "no side task (beside)");
    CHECK_REFUSED(refusal_of([](scenario& s) { s.beside = {fine, side_task{.name = "b", .steps = {post("/")}}}; }),
                  "recovery_time");
    CHECK_REFUSED(refusal_of([](scenario& s) { s.beside = {fine}; }), "is done every 1 s");
    CHECK_REFUSED(refusal_of([](scenario& s) {
                      s.arrivals = closed_loop(4);
                      s.requests = 100;
                  }),
                  "give it a duration");
    CHECK_REFUSED(refusal_of([](scenario& s) { s.slos = {p90(ttft) <= 1_s, recovery_time <= 60_s}; }),
                  "70 s pass");
    CHECK_REFUSED(refusal_of([](scenario& s) { s.slos = {p90(ttft) <= 1_s, of(recovery_time, turns(2)) <= 9_s}; }),
                  "from a side task");
    CHECK_REFUSED(refusal_of([](scenario& s) { s.slos = {p90(ttft) <= 1_s, of(recovery_time, during("x")) <= 9_s}; }),
                  "no side task \"x\"");
    CHECK_REFUSED(refusal_of([](scenario& s) { s.beside = {side_task{.name = "a", .steps = {post("/")}, .excuses = time_span::from_seconds(-1)}}; }),
                  "excuses is -1 s");
}

TEST_CASE("a recovery begins with the first good request of 5 s that keep the objective, as many as before") {
    repeat_data d;
    d.window = time_interval::between(0, 40'000'000'000);
    const auto at_s = [](double s) { return static_cast<long long>(s * 1e9) + 1; };
    const auto filled = [&](double bad_from, double bad_to, double none_to) {
        d.records.clear();
        for (double s = 0; s < 40; s += 0.1) {
            if (s >= bad_to && s < none_to) continue;
            record r;
            r.phase = run_phase::measure;
            r.scheduled_ns = at_s(s);
            r.status = request_status::ok;
            r.first_token_ns = at_s(s + (s >= bad_from && s < bad_to ? 2 : 0.1));
            d.records.push_back(r);
        }
    };
    const recovery_parameters open{1, 0.9, true}, closed{1, 0.9, false};
    filled(10, 17, 0);
    CHECK(recovery_of(d, at_s(10), open) == doctest::Approx(7).epsilon(0.02));
    filled(12, 17, 0);  // what hurts later than the event
    CHECK(recovery_of(d, at_s(10), open) == doctest::Approx(7).epsilon(0.02));
    filled(10, 17, 25);  // users who are not there are no recovery of a closed loop
    CHECK(recovery_of(d, at_s(10), closed) == doctest::Approx(15).epsilon(0.02));
    filled(10, 36, 0);
    CHECK(std::isinf(recovery_of(d, at_s(10), open)));
    filled(0, 0, 0);
    CHECK(recovery_of(d, at_s(10), open) == 0);
}

TEST_CASE("side tasks are part of what is compared with an earlier run") {
    scenario s = sound();
    const plan without = planned(s, 1);
    s.beside = {fine};
    const plan with = planned(s, 1);
    CHECK(trace_hash(*with.sent) != trace_hash(*without.sent));
    CHECK(texts::holds(with.sent->workload_text, "; beside it \"adapters\" every 1 s from 1 s on: POST "
                                                 "/load, POST /unload"));
    s.beside = {side_task{.name = "kill", .steps = {command("kill -9 $(cat key-4711)")}}};
    CHECK(!texts::holds(planned(s, 1).sent->workload_text, "4711"));
}

TEST_CASE("what prepares a repeat is a request to a path, and part of what is compared") {
    const auto refusal_of_preparation = [](const types::list<task_step>& steps) {
        return refusal_after([&](scenario& s) { s.prepare = steps; });
    };
    CHECK(refusal_of_preparation({post("/reset_prefix_cache"), post("/warm")}) == "");
    CHECK_REFUSED(refusal_of_preparation({post("reset")}), "prepare: post(\"reset\")", "begins with /");
    CHECK_REFUSED(refusal_of_preparation({task_step{}}), "prepare: a step is empty");
    CHECK_REFUSED(refusal_of_preparation({command("make reset")}), "prepare has a command(...)", "post(");
    types::list<task_step> many;
    for (int i = 0; i < 17; ++i) many.push_back(post("/reset"));
    CHECK_REFUSED(refusal_of_preparation(many), "prepare has 17 requests: up to 16");
    scenario s = sound();
    const plan without = planned(s, 1);
    s.prepare = {post("/reset_prefix_cache"), post("/warm", "key-4711")};
    const plan with = planned(s, 1);
    CHECK(load_hash(*with.sent) != load_hash(*without.sent));
    CHECK(with.sent->workload_text ==
          without.sent->workload_text + "; before each repeat POST /reset_prefix_cache, POST /warm");
}
