// Limits that have become too easy.
#include "llmbench.hpp"
#include "core/judging/ratchet.hpp"
#include "support/verdicts.hpp"

#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {
struct held_verdicts {
    terms held{};
    std::vector<slo_verdict> verdicts{};
};
held_verdicts gate_on(const std::vector<double>& ms, const slo& s, double noise) {
    measurement m = measured(repeats_with_ttft(ms), {s});
    if (noise > 0) m.noise = {{"mean(ttft)", noise}};
    held_verdicts g;
    g.held = m;
    g.verdicts = {judged(m, s)};
    return g;
}
}  // namespace

namespace {
std::string ratchet_text(const held_verdicts& g) { return ratchet_text(g.held, g.verdicts); }
}  // namespace

TEST_CASE("a limit that a regression of a quarter would pass is named, with one that is closer") {
    // 4 % of noise over five repeats: 4.3 % are kept for it. 100 ms are 60 % under 160.
    const std::string said = ratchet_text(gate_on({100, 100}, mean(ttft) <= 160_ms, 0.04));
    CHECK(said.find("Limits with room: mean(ttft) <= 160 ms would pass a regression of 5") == 0);
    CHECK(said.find("would seldom be inconclusive") != std::string::npos);
    CHECK(said.find("<= 108 ms would") != std::string::npos);
    CHECK(ratchet_text(gate_on({100, 100}, mean(ttft) <= 120_ms, 0.04)).empty());
    // More noise leaves less of the room.
    CHECK(ratchet_text(gate_on({100, 100}, mean(ttft) <= 150_ms, 0.20)).empty());
}

TEST_CASE("where nothing knows the noise, or nothing passes, no limit is called easy") {
    CHECK(ratchet_text(gate_on({100, 100}, mean(ttft) <= 300_ms, 0)).empty());
    CHECK(ratchet_text(gate_on({100, 100, 100}, mean(ttft) <= 50_ms, 0.04)).empty());
}

TEST_CASE("a stored run of three repeats knows its noise as well") {
    const slo s = mean(ttft) <= 1.8 * baseline;
    measurement m = against_stored({100, 101, 100}, {0.100, 0.101, 0.099}, 0.02);
    held_verdicts g;
    g.held = m;
    g.verdicts = {judged(m, s)};
    REQUIRE(g.verdicts[0].outcome == verdict::pass);
    CHECK(ratchet_text(g).find("* baseline would seldom be") != std::string::npos);
    g.held.stored.values["mean(ttft)"] = {0.100, 0.101};
    CHECK(ratchet_text(g).empty());
}
