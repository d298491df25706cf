// Looks at a load before its end: which requests they have, when they are, and what they end.
#include "effects/gates/early_looks.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

constexpr long long second = 1'000'000'000, start = 1000 * second;

/// Requests a second apart, planned so long after the start, of both variants in turns.
delivered_requests planned_in(int from_s, int to_s) {
    delivered_requests d;
    for (int s = from_s; s < to_s; ++s) {
        record r;
        r.variant = s % 2 ? run_variant::baseline : run_variant::candidate;
        r.id = request_id("g0-", static_cast<std::size_t>(s));
        r.status = request_status::ok;
        r.scheduled_ns = start + s * second;
        r.end_ns = r.scheduled_ns + second;
        r.events = r.output_tokens = 3;
        d.records.push_back(r);
        for (int gap = 0; gap < 2; ++gap) d.gaps.push_back(static_cast<std::uint32_t>(10 * s + gap));
    }
    return d;
}
/// A load of 100 s after a warm-up of 10 s, with two workers.
struct load {
    std::vector<int> looks{};
    std::size_t candidates = 0, baselines = 0;
    int decided_after = 4;
    early_looks early{[this](load_so_far&& so_far) {
        looks.push_back(so_far.quarters);
        candidates = so_far.candidate.records.size();
        baselines = so_far.baseline.records.size();
        for (const repeat_data* d : {&so_far.candidate, &so_far.baseline})
            for (std::size_t i = 0; i < d->records.size(); ++i) {
                const auto s = (d->records[i].scheduled_ns - start) / second;
                CHECK(d->gaps[d->gap_offsets[i]] == static_cast<std::uint32_t>(10 * s));
            }
        CHECK(so_far.candidate.window.from_ns() == start + 10 * second);
        return so_far.quarters >= decided_after;
    }};
    decided_end& end = *early.end();
    std::atomic<long long>&one = end.add_worker(), &other = end.add_worker();
    load() {
        end.expect(10 * second, 100 * second);
        end.begin(start);
    }
    load(const load&) = delete;
    load& operator=(const load&) = delete;
    void settle(int s) { one = other = start + s * second; }
};

}  // namespace

TEST_CASE("a look has all requests planned until then, and none that was planned later") {
    load l;
    l.early.take(planned_in(0, 58));
    l.settle(61);
    CHECK(l.looks.empty());  // what is on its way may be missing
    l.early.take(planned_in(58, 66));
    CHECK(l.looks.empty());
    l.early.take({});
    CHECK(l.looks == std::vector<int>{2});
    CHECK(l.candidates + l.baselines == 60);
    CHECK(l.end.ends_ns() == 0);
}

TEST_CASE("no look before the slowest answer of either variant has ended") {
    load l;
    l.one = start + 100 * second;
    l.other = start + 59 * second;
    l.early.take(planned_in(0, 100));
    l.early.take({});
    l.early.take({});
    CHECK(l.looks.empty());
    l.other = start + 90 * second;
    l.early.take({});
    l.early.take({});
    CHECK(l.looks == std::vector<int>{2, 3});
    CHECK(l.candidates + l.baselines == 85);
}

TEST_CASE("a look that decides ends the load there, and is the last one") {
    load l;
    l.decided_after = 2;
    l.settle(95);
    l.early.take(planned_in(0, 95));
    l.early.take({});
    l.early.take({});
    CHECK(l.looks == std::vector<int>{2});
    CHECK(l.end.ends_ns() == start + 60 * second);
    CHECK(l.end.close() == start + 60 * second);
    CHECK(l.end.part() == 0.5);
}

TEST_CASE("what a closed loop began with is known when its workers are gone") {
    llmbench::detail::decided_end end;
    {
        const std::atomic<long long> first_ns{start};
        end.expect_from(first_ns, 120 * second);
        CHECK(end.after_quarters(2) == start + 60 * second);
        CHECK(end.close() == 0);
    }
    CHECK(end.after_quarters(2) == start + 60 * second);
}

TEST_CASE("a load that is over is not ended afterwards") {
    load l;
    l.decided_after = 2;
    l.settle(70);
    l.early.take(planned_in(0, 70));
    CHECK(l.end.close() == 0);
    l.early.take({});
    CHECK(l.looks.empty());
    l.end.end_after(2);
    CHECK(l.end.ends_ns() == 0);
    CHECK(l.end.part() == 1);
}
