// Repeats that end early: when they may, what they count as, and that none is red by it alone.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/judging/early_end.hpp"
#include "core/judging/judge.hpp"
#include "support/verdicts.hpp"

#include <cmath>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {

/// As a load does: requests end in this order until the repeat may end; failed ones are infinite.
repeat_data ended_by(const vector<slo>& slos, const vector<double>& ms) {
    misses_so_far misses(slos, {});
    misses.begin(ms.size());
    const repeat_data whole = stage_of_ttft(ms);
    repeat_data d = whole;
    d.records.clear();
    for (const record& r : whole.records) {
        d.records.push_back(r);
        d.ended_early = misses.add(r);
        if (!d.ended_early.by.empty()) break;
    }
    d.gap_offsets.clear();
    d.gaps = {};
    d.gaps_counted = true;  // none of these objectives reads them
    return d;
}
vector<double> of_300(int slow, double other) {
    vector<double> ms(static_cast<std::size_t>(slow), other);
    ms.resize(300, 50);
    return ms;
}

}  // namespace

TEST_CASE("a repeat ends once more requests than a percentile leaves out are at twice its limit") {
    const vector<slo> p90s = {p90(ttft) <= 100_ms};
    CHECK(ended_by(p90s, of_300(30, 500)).ended_early.by.empty());  // the 31st decides
    const repeat_data d = ended_by(p90s, of_300(31, 500));
    CHECK(d.ended_early.by == "p90(ttft)");
    CHECK(d.ended_early.planned == 300);
    CHECK(d.ended_early.least == about(0.2));
    CHECK(d.records.size() == 31);
    CHECK(ended_by(p90s, of_300(300, 199)).ended_early.by.empty());
    CHECK(ended_by(p90s, of_300(31, 201)).records.size() == 31);
    // Failures are misses, too; but so many leave a percentile without a size.
    vector<double> some = of_300(31, 500);
    some[0] = some[7] = infinity;
    CHECK(ended_by(p90s, some).records.size() == 31);
    CHECK(ended_by(p90s, of_300(300, infinity)).ended_early.by.empty());
    // Three requests beyond a p99, and too few of them to have one.
    CHECK(ended_by({p99(ttft) <= 100_ms}, of_300(4, 500)).records.size() == 4);
    CHECK(ended_by({p99(ttft) <= 100_ms}, vector<double>(200, 500)).ended_early.by.empty());
}

TEST_CASE("a repeat ends once a fraction is so far off that two such repeats fail") {
    // 1 % may fail, and two repeats with sqrt(200) times as much are shown to exceed that.
    const vector<slo> errors = {error_rate <= 1_pct};
    CHECK(ended_by(errors, of_300(42, infinity)).ended_early.by.empty());
    const repeat_data d = ended_by(errors, of_300(43, infinity));
    CHECK(d.ended_early.by == "error_rate");
    CHECK(d.records.size() == 43);
    CHECK(ended_by({goodput(ttft <= 100_ms) >= 99_pct}, of_300(43, 101)).records.size() == 43);
    CHECK(ended_by({goodput(ttft <= 100_ms) >= 90_pct}, of_300(300, 999)).ended_early.by.empty());
    CHECK(ended_by({error_rate <= 0_pct}, of_300(300, infinity)).ended_early.by.empty());
}

TEST_CASE("which objectives may end a repeat") {
    const auto names_of = [](const measurement& m) {
        std::string names;
        for (const slo& s : slos_that_may_end(m, m)) names += str(s.statistic.name) + ";";
        return names;
    };
    measurement m = measured({}, {p90(ttft) <= 100_ms, mean(ttft) <= 1_ms, advisory(p50(ttft) <= 1_ms),
                                  p99(itl) <= 1_ms, max(ttft) <= 1_ms, output_throughput >= 1_tps,
                                  p90(ttft).of(label("a")) <= 1_ms, p90(ttft) <= 1.1 * baseline,
                                  p10(decode_speed) >= 5_tps});
    CHECK(names_of(m) == "p90(ttft);p10(decode_speed);error_rate;");
    // A second repeat, if the first is as bad.
    m.candidate = {ended_by({m.slos[0]}, of_300(300, 500))};
    CHECK(names_of(m) == "p90(ttft);");
    m.candidate = {stage_of_ttft(of_300(300, 500))};
    CHECK(names_of(m) == "p90(ttft);");
    m.candidate = {stage_of_ttft(of_300(300, 199))};
    CHECK(names_of(m).empty());
    // A third is whole.
    m.candidate = {stage_of_ttft(of_300(300, 500)), stage_of_ttft(of_300(300, 500))};
    CHECK(names_of(m).empty());
    m.candidate.clear();
    m.rule.revision = 1;
    CHECK(names_of(m).empty());
}

TEST_CASE("two repeats that ended early fail by what they showed at least") {
    const slo s = p90(ttft) <= 100_ms;
    const measurement m = measured({ended_by({s}, of_300(300, 500)), ended_by({s}, of_300(300, 900))},
                                   {s, p50(ttft) <= 10_s});
    const vector<slo_verdict> all = judge_all(m);
    CHECK(all[0].outcome == verdict::fail);
    CHECK(all[0].repeats == 2);
    CHECK(all[0].requests == 600);
    CHECK(mentions(all[0].reason, "2 repeats ended early, the last one after 31 of 300 requests: "
                                  "p90(ttft) could not come back under 200 ms"));
    // Others are not judged by such repeats, and neither are failures.
    CHECK(all[1].outcome == verdict::inconclusive);
    CHECK(mentions(all[1].reason, "all repeats ended early, by another objective"));
    CHECK(all[2].outcome == verdict::inconclusive);
    const slo errors = error_rate <= 1_pct;
    const vector<double> some_fail = spread(300, 100, 50, infinity);
    const repeat_data failing = ended_by({errors}, some_fail);
    CHECK(failing.ended_early.by == "error_rate");
    CHECK(judge_all(measured({failing, failing}, {errors}))[0].outcome == verdict::fail);
}

TEST_CASE("a repeat that ended early is never part of a pass, and others judge without it") {
    const slo s = p90(ttft) <= 100_ms;
    vector<repeat_data> repeats = {ended_by({s}, of_300(300, 500))};
    for (int i = 0; i < 7; ++i) repeats.push_back(stage_of_ttft(of_300(300, 1)));
    const vector<slo_verdict> all = judge_all(measured(repeats, {s, p50(ttft) <= 10_ms}));
    CHECK(all[0].outcome == verdict::inconclusive);
    CHECK(all[1].outcome == verdict::pass);
    CHECK(all[1].repeats == 2);
    CHECK(all[2].outcome == verdict::pass);  // failed requests
}

TEST_CASE("a repeat that ended early counts as no worse than the whole one would") {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        CAPTURE(seed);
        generator random(seed, 1);
        vector<double> ms;
        const double slow = static_cast<double>(seed) / 200;
        for (int i = 0; i < 300; ++i)
            ms.push_back(100 * std::exp(0.5 * random.normal() + slow));
        for (const slo& s : {p90(ttft) <= 100_ms, p50(ttft) <= 100_ms, p99(ttft) <= 300_ms}) {
            const repeat_data d = ended_by({s}, ms);
            if (d.ended_early.by.empty()) continue;
            const measurement part = measured({d}, {s}), whole = measured({stage_of_ttft(ms)}, {s});
            const double bound = columns_of(part, s).mine.each[0]->value;
            CHECK(is_blatant(s, bound));
            CHECK(bound <= columns_of(whole, s).mine.each[0]->value);
        }
    }
}
