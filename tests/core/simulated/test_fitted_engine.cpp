// An engine with the pace of one that was measured: held against what the first one did.
#include "core/base/random.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/simulated/core/foreseen.hpp"

#include <doctest/doctest.h>

#include <map>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

struct load {
    double rate = 0;
    int prompt = 0, output = 0;
};
/// 1,000 requests in random order of arrival, as a client sees them.
measured_pace pace_of(const engine& e, const load& l, bool reports_queue = true) {
    engine_model m(e);
    generator random(7, 1);
    measured_pace p;
    double at = 0, queue = 0;
    int done = 0;
    const auto step = [&] {
        for (const engine_model::emission& x : m.finish_step()) {
            if (!x.finished) continue;
            ++done;
            p.ttft += x.when.first_token - x.when.arrived + e.faults.delay.seconds();
            p.tpot += (x.when.last_token - x.when.first_token) / (l.output - 1);
            p.e2e += x.when.last_token - x.when.arrived;
            queue += x.when.admitted - x.when.arrived;
        }
    };
    for (std::uint64_t i = 0; i < 1000; ++i) {
        at += random.exponential() / l.rate;
        while (m.step_end() <= at) step();
        m.submit(at, {.id = i, .prompt_tokens = l.prompt, .output_tokens = l.output});
    }
    while (m.step_end() < infinity) step();
    for (double* sum : {&p.ttft, &p.tpot, &p.e2e, &queue}) *sum /= done;
    if (reports_queue) p.queue_time = queue;
    p.prompt_tokens = l.prompt;
    p.output_tokens = l.output;
    p.requests_a_second = l.rate;
    return p;
}
engine server_of(double decode_ms, double prefill_us) {
    engine e;
    e.decode_step = time_span::from_seconds(decode_ms / 1e3);
    e.step_per_sequence = time_span::from_seconds(decode_ms / 120e3);
    e.prefill_per_token = time_span::from_seconds(prefill_us / 1e6);
    return e;
}

}  // namespace

TEST_CASE("a fitted engine answers the load that it was fitted to as fast as the server did") {
    for (const engine& server : {server_of(12, 60), server_of(30, 20), server_of(6, 150)})
        for (const load& l : {load{0.2, 300, 60}, load{2, 300, 60}, load{6, 200, 60}}) {
            CAPTURE(server.decode_step.seconds());
            CAPTURE(l.rate);
            const measured_pace was = pace_of(server, l), is = pace_of(engine_at_pace(was), l);
            CHECK(is.tpot == doctest::Approx(was.tpot).epsilon(0.1));
            CHECK(is.ttft == doctest::Approx(was.ttft).epsilon(0.2));
        }
}

TEST_CASE("without the server's word on its queue the time to a first token is near all the same") {
    const engine server = server_of(12, 60);
    for (const load& l : {load{0.2, 300, 60}, load{4, 300, 60}}) {
        CAPTURE(l.rate);
        const measured_pace was = pace_of(server, l, false);
        const measured_pace is = pace_of(engine_at_pace(was), l);
        CHECK(is.tpot == doctest::Approx(was.tpot).epsilon(0.1));
        CHECK(is.ttft == doctest::Approx(was.ttft).epsilon(0.35));
    }
}

TEST_CASE("what no prompt can have taken delays every answer") {
    // 10 requests a second of one token each wait for half a second: no prefill is that slow.
    measured_pace p{.ttft = 0.5, .tpot = 0.01, .e2e = 1, .queue_time = 0,
                    .prompt_tokens = 1, .output_tokens = 50, .requests_a_second = 10};
    const engine e = engine_at_pace(p);
    CHECK(e.prefill_per_token.seconds() == doctest::Approx(0.06));
    CHECK(e.faults.delay.seconds() == doctest::Approx(0.5 - 0.01 - 0.06));
    CHECK(e.decode_step.seconds() > 0);
}

TEST_CASE("gaps make an engine uneven only where prompts do not come between them") {
    measured_pace p{.ttft = 0.011, .tpot = 0.01, .e2e = 0.5, .queue_time = 0, .itl_spread = 0.25,
                    .prompt_tokens = 10, .output_tokens = 50, .requests_a_second = 1};
    CHECK(engine_at_pace(p).jitter == doctest::Approx(0.195).epsilon(0.01));
    p.ttft = 0.3;
    CHECK(engine_at_pace(p).jitter == engine{}.jitter);
}

TEST_CASE("a fitted engine has room for what the server took") {
    measured_pace p{.ttft = 1, .tpot = 0.03, .e2e = 20, .queue_time = 0.5,
                    .prompt_tokens = 8000, .output_tokens = 500, .requests_a_second = 10};
    const engine e = engine_at_pace(p);
    CHECK(e.slots >= 4 * 195);
    CHECK(kv_capacity_tokens(e.kv) >= 4 * 195 * 8500.0);
    engine_model m(e);
    CHECK(m.submit(0, {.id = 1, .prompt_tokens = 200000, .output_tokens = 10}) ==
          engine_model::admission::accepted);
}

TEST_CASE("a fit is corrected until the engine gives the measured times back, or says that it cannot") {
    const auto fitted = [](const measured_pace& p) {
        return fitted_engine(p, engine_at_pace(p), [&](const engine& e) { return pace_at_means(e, p); });
    };
    // Servers that wait a fixed time before a first token, with prompts that could explain it.
    for (const double rate : {1.0, 4.0, 8.0, 12.0}) {
        CAPTURE(rate);
        engine server = server_of(8, 10);
        server.faults.delay = 100_ms;
        const load l{rate, 300, 60};
        const measured_pace was = pace_of(server, l, false);
        const measured_pace before = pace_of(engine_at_pace(was), l, false);
        if (rate > 6) CHECK(before.ttft > 1.5 * was.ttft);  // the closed form alone
        const fit_of_engine f = fitted(was);
        CHECK(f.is_close());
        const measured_pace is = pace_of(f.like, l, false);
        CHECK(is.ttft == doctest::Approx(was.ttft).epsilon(0.1));
        CHECK(is.tpot == doctest::Approx(was.tpot).epsilon(0.1));
        CHECK(fit_text(f, was, "r.json").find("an engine fitted to r.json (mean(ttft) ") == 0);
    }
    // Of users, too.
    measured_pace users{.ttft = 0.2, .tpot = 0.02, .e2e = 1.4, .prompt_tokens = 500, .output_tokens = 60,
                        .requests_a_second = 11, .users = 16};
    CHECK(fitted(users).is_close());
    // A first token that comes sooner than a step ends: no engine of steps is that fast.
    const measured_pace none{.ttft = 0.001, .tpot = 0.05, .e2e = 3, .prompt_tokens = 300,
                             .output_tokens = 60, .requests_a_second = 4};
    const fit_of_engine f = fitted(none);
    CHECK_FALSE(f.is_close());
    CHECK(fit_text(f, none, "r.json").find("an engine that CANNOT be fitted to r.json (mean(ttft) 1 ms, "
                                           "mean(tpot) 50 ms): it has mean(ttft) ") == 0);
}
