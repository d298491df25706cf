// An advisory objective that main's newest runs met asks to block again.
#include "llmbench.hpp"
#include "extensions/history/core/waivers.hpp"

#include <doctest/doctest.h>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// Runs with these values of p90(ttft), oldest first; 0: the run has none.
vector<history_run> runs_of(const vector<double>& values) {
    vector<history_run> all;
    for (const double v : values) {
        history_run r;
        r.values.push_back({"mean(tpot)", {0.02, 0.02}});
        if (v > 0) r.values.push_back({"p90(ttft)", {v * 0.9, v, v / 0.9}});
        all.push_back(r);
    }
    return all;
}
vector<met_waiver> met(const vector<double>& values, const vector<slo>& slos) {
    const vector<history_run> runs = runs_of(values);
    vector<const history_run*> all;
    for (const history_run& r : runs) all.push_back(&r);
    return met_waivers(all, slos);
}

}  // namespace

TEST_CASE("ten runs that met an advisory objective ask for it to block again") {
    const slo waived = advisory(p90(ttft) <= 300_ms);
    const vector<double> ten(10, 0.25);
    const vector<met_waiver> found = met(ten, {waived});
    REQUIRE(found.size() == 1);
    CHECK(waiver_text(found[0]) ==
          "advisory(p90(ttft) <= 300 ms): met in 10 of 10 runs: it can block again");
    CHECK(met(vector<double>(9, 0.25), {waived}).empty());
    CHECK(met(ten, {p90(ttft) <= 300_ms}).empty());             // it blocks already
    CHECK(met(ten, {advisory(p90(ttft) <= 1.1 * baseline)}).empty());
    CHECK(met(ten, {advisory(p90(ttft) <= 249_ms)}).empty());
}

TEST_CASE("only the newest ten runs with a value count") {
    const vector<slo> waived = {advisory(p90(ttft) <= 300_ms)};
    vector<double> values(10, 0.25);
    values.insert(values.begin(), 0.5);  // before them
    CHECK(met(values, waived).size() == 1);
    values.insert(values.end(), 0.0);  // has none
    CHECK(met(values, waived).size() == 1);
    values.insert(values.end(), 0.31);  // the newest missed it
    CHECK(met(values, waived).empty());
    const vector<slo> floor = {advisory(mean(tpot) <= 20_ms), advisory(mean(tpot) <= 19_ms)};
    CHECK(met(values, floor).size() == 1);
}
