// A load in virtual time, and what a made-up network does to it.
#include "core/base/random.hpp"
#include "core/planning/planning.hpp"
#include "core/stored/record_json.hpp"
#include "core/reports/result_json.hpp"
#include "extensions/simulated/virtual_environment.hpp"
#include "extensions/simulated/target.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/slot.hpp"

#include "simulated/virtual_world.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace virtual_world;

namespace {

long long with_status(const repeat& r, request_status s) {
    return std::count_if(r.seen.records.begin(), r.seen.records.end(),
                         [s](const record& x) { return x.status == s; });
}
/// How far what the client stamped may be from what the server did, in seconds.
double furthest(const repeat& r) {
    long long most = 0;
    for (const record& x : r.seen.records) {
        const auto* const e = r.served_as(str(x.id));
        REQUIRE(e);
        most = std::max({most, x.first_token_ns - e->first_write_ns,
                         x.last_token_ns - e->last_write_ns});
        CHECK(x.first_token_ns >= e->first_write_ns);
        CHECK(x.last_token_ns >= e->last_write_ns);
        CHECK(e->received_ns >= x.sent_ns);
    }
    return static_cast<double>(most) * 1e-9;
}

}  // namespace

TEST_CASE("every hand-over is an own one of another seed") {
    hardships h{.latency_s = 0.001, .jitter_s = 0.001};
    const repeat a = repeat_of(some(), {}, h);
    ++h.seed;
    CHECK(a.records() != repeat_of(some(), {}, h).records());
}

TEST_CASE("a network takes the time that it was told to, and no more") {
    CHECK(furthest(repeat_of(some(), {}, {.latency_s = 0.005})) == doctest::Approx(0.005));
    const double with_jitter =
        furthest(repeat_of(some(), {}, {.latency_s = 0.005, .jitter_s = 0.01}));
    CHECK(with_jitter > 0.005);
    CHECK(with_jitter < 0.2);
}

TEST_CASE("a full queue is asked again, and dead addresses are passed by") {
    const repeat full = repeat_of(some(), {}, {.queue_full = 0.5});
    CHECK(full.met.queue_full > 0);
    CHECK(with_status(full, request_status::ok) == 20);

    CHECK(with_status(repeat_of(some(), {}, {.dead_addresses = 2}), request_status::ok) == 20);
}
