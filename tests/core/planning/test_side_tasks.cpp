// Side tasks that are refused before anything is sent, each in a sentence.
#include "llmbench.hpp"
#include "core/planning/planning.hpp"
#include "core/traffic/trace_hash.hpp"
#include "support/scenarios.hpp"
#include "support/texts.hpp"

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
