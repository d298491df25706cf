// Limits that have become too easy.
#include "llmbench.hpp"
#include "core/described/described.hpp"
#include "support/verdicts.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {
std::string line_on(const std::vector<double>& ms, const slo& s, double noise) {
    measurement m = measured(repeats_with_ttft(ms), {s});
    if (noise > 0) m.noise = {{"mean(ttft)", noise}};
    return ratchet_text(m, std::vector{judged(m, s)});
}
}  // namespace

TEST_CASE("a limit that a regression of a quarter would pass is named, with one that is closer") {
    // 4 % of noise over five repeats: 4.3 % are kept for it. 100 ms are 60 % under 160.
    const std::string said = line_on({100, 100}, mean(ttft) <= 160_ms, 0.04);
    CHECK(said.find("Limits with room: mean(ttft) <= 160 ms would pass a regression of 5") == 0);
    CHECK(said.find("would seldom be inconclusive") != std::string::npos);
    CHECK(said.find("<= 108 ms would") != std::string::npos);
    CHECK(line_on({100, 100}, mean(ttft) <= 120_ms, 0.04).empty());
    // More noise leaves less of the room.
    CHECK(line_on({100, 100}, mean(ttft) <= 150_ms, 0.20).empty());
}

TEST_CASE("where nothing knows the noise, or nothing passes, no limit is called easy") {
    CHECK(line_on({100, 100}, mean(ttft) <= 300_ms, 0).empty());
    CHECK(line_on({100, 100, 100}, mean(ttft) <= 50_ms, 0.04).empty());
}

TEST_CASE("a stored run of three repeats knows its noise as well") {
    const slo s = mean(ttft) <= 1.8 * baseline;
    measurement m = against_stored({100, 101, 100}, {0.100, 0.101, 0.099}, 0.02);
    const std::vector<slo_verdict> verdicts = {judged(m, s)};
    REQUIRE(verdicts[0].outcome == verdict::pass);
    CHECK(ratchet_text(m, verdicts).find("* baseline would seldom be") != std::string::npos);
    m.stored.values["mean(ttft)"] = {0.100, 0.101};
    CHECK(ratchet_text(m, verdicts).empty());
}
