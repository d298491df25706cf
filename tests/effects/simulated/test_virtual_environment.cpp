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

TEST_CASE("a minute of load is computed, the same to the byte each time, every stamp exact") {
    const long long before = now_ns();
    const repeat a = repeat_of(some(600), {}), b = repeat_of(some(600), {});
    CHECK(now_ns() - before < 30000000000);
    CHECK(a.took_s > 50);
    CHECK(a.seen.records.size() == 600);
    CHECK(with_status(a, request_status::ok) == 600);
    CHECK(furthest(a) == 0);
    CHECK(a.records() == b.records());
    CHECK(a.seen.gaps.size() == b.seen.gaps.size());
    for (const record& r : a.seen.records) {
        CHECK(r.dispatched_ns == r.scheduled_ns);
        CHECK(r.output_tokens == 8);
    }
    CHECK(a.seen.lost_fraction == 0);
}

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

TEST_CASE("what comes in pieces, byte by byte or cut anywhere is the same answer") {
    const repeat whole = repeat_of(some(), {});
    for (const hardships& h : {hardships{.cut = 0.7}, hardships{.cut = 0.3, .bytewise = 0.9},
                               hardships{.jitter_s = 1e-4, .bytewise = 0.5}}) {
        const repeat parted = repeat_of(some(), {}, h);
        CHECK(with_status(parted, request_status::ok) == 20);
        REQUIRE(parted.seen.records.size() == 20);
        for (std::size_t i = 0; i < 20; ++i) {
            CHECK(parted.seen.records[i].output_tokens == whole.seen.records[i].output_tokens);
            CHECK(parted.seen.records[i].finish_reason == whole.seen.records[i].finish_reason);
        }
    }
    CHECK(repeat_of(some(), {}, {.bytes_a_second = 2000}).seen.records.size() == 20);
}

TEST_CASE("connections that are refused, lost or reset fail requests, and each has a record") {
    const repeat refused = repeat_of(some(), {}, {.refused = 1});
    CHECK(with_status(refused, request_status::connect) == 20);
    CHECK(refused.met.refused > 0);

    scenario impatient = some();
    impatient.limits.connect = time_span::from_seconds(2);
    const repeat lost = repeat_of(impatient, {}, {.lost = 1});
    CHECK(with_status(lost, request_status::connect) == 20);
    CHECK(str(lost.seen.records[0].error) == "no connection within 2 s (limits.connect)");

    const repeat reset = repeat_of(some(), {}, {.reset = 0.1});
    CHECK(reset.met.reset > 0);
    CHECK(reset.seen.records.size() == 20);
    CHECK(with_status(reset, request_status::ok) < 20);

    const repeat half = repeat_of(some(), {}, {.half_closed = 0.1});
    CHECK(half.met.half_closed > 0);
    CHECK(with_status(half, request_status::ok) < 20);

    const repeat none_left = repeat_of(some(), {}, {.no_descriptor = 1});
    CHECK(with_status(none_left, request_status::connect) == 20);
    CHECK(str(none_left.seen.records[0].error).find("no file descriptor is left") !=
          std::string::npos);
}

TEST_CASE("a full queue is asked again, and dead addresses are passed by") {
    const repeat full = repeat_of(some(), {}, {.queue_full = 0.5});
    CHECK(full.met.queue_full > 0);
    CHECK(with_status(full, request_status::ok) == 20);

    CHECK(with_status(repeat_of(some(), {}, {.dead_addresses = 2}), request_status::ok) == 20);
}

TEST_CASE("a kept connection that closes just as a request comes is tried once afresh") {
    const repeat r = repeat_of(some(100), {}, {.latency_s = 0.001, .closed_idle = 0.2});
    CHECK(r.met.closed_idle > 0);
    CHECK(r.seen.records.size() == 100);
    CHECK(with_status(r, request_status::ok) + r.seen.resends >= 100);
}

TEST_CASE("a server that stalls is late, and one that restarts loses what it was at") {
    const repeat stalled = repeat_of(some(100), {}, {.stalls = 1, .stall_s = 0.3});
    CHECK(stalled.met.stalls > 0);
    CHECK(with_status(stalled, request_status::ok) == 100);
    CHECK(stalled.seen.lost_fraction == 0);

    const repeat restarted = repeat_of(some(100), {}, {.restarts = 0.5, .away_s = 0.5});
    CHECK(restarted.met.restarts > 0);
    CHECK(with_status(restarted, request_status::ok) < 100);
    CHECK(with_status(restarted, request_status::ok) > 0);
}

TEST_CASE("a client that did not run knows of it, whatever the kernel accounts for") {
    for (const bool reported : {true, false}) {
        const repeat r =
            repeat_of(some(100), {}, {.pauses = 0.003, .pause_s = 0.1, .pauses_are_reported = reported});
        REQUIRE(r.met.pauses > 0);
        CHECK(with_status(r, request_status::ok) == 100);
        CHECK(r.seen.lost_fraction > 0);
        CHECK(r.seen.disturbed_requests > 0);
        for (const record& x : r.seen.records) {
            const auto* const e = r.served_as(str(x.id));
            REQUIRE(e);
            const long long late = x.first_token_ns - e->first_write_ns;
            CHECK(static_cast<double>(late) * 1e-9 <= r.seen.lost_fraction * r.took_s);
        }
    }
}
