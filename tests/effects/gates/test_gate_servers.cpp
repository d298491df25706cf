// The servers of a gate.
#include "llmbench.hpp"
#include "core/base/vector.hpp"
#include "effects/gates/gate_servers.hpp"

#include <doctest/doctest.h>

using namespace llmbench;
using namespace llmbench::detail;

TEST_CASE("a gateway before its own server is asked what it adds, in milliseconds") {
    const auto asks = [](const vector<slo>& slos) {
        return gate_servers::asks_what_is_added(slos);
    };
    CHECK(asks({mean(ttft) <= baseline + 1_ms}));
    CHECK(asks({mean(ttft) <= baseline + 1_ms, p90(ttft) <= 1.1 * baseline + 2_ms,
                mean(tpot) <= 30_ms}));
    // One server under two names would be green.
    CHECK_FALSE(asks({mean(ttft) <= 1.1 * baseline}));
    CHECK_FALSE(asks({mean(ttft) <= baseline + 1_ms, mean(tpot) <= 1.1 * baseline}));
    CHECK_FALSE(asks({mean(ttft) <= baseline - 1_ms}));
    CHECK_FALSE(asks({output_throughput >= baseline - 10_tps}));
    CHECK_FALSE(asks({mean(ttft) <= 30_ms}));
}
