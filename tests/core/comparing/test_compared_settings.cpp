// Settings beside each other: from evidence to what is said of them.
#include "llmbench.hpp"
#include "extensions/compare/core/settings.hpp"
#include "extensions/compare/core/text.hpp"
#include "support/server_pages.hpp"
#include "support/verdicts.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <string>

using namespace verdicts;

namespace {

/// Settings under the objectives of a test.
class suite {
public:
    explicit suite(vector<slo> objectives) : objectives_(std::move(objectives)) {}
    suite& with(const std::string& name, vector<repeat_data> rounds,
                const std::string& lost = {}) {
        const measurement m = verdicts::measured(std::move(rounds), objectives_);
        seen_.push_back(m);
        held_.push_back(m);
        found_.push_back(analyse(seen_.back(), held_.back()));
        all_.push_back({name, seen_.back(), held_.back(), found_.back(), lost});
        return *this;
    }
    suite& with(const std::string& name, const vector<double>& ttft_ms) {
        return with(name, repeats_with_ttft(ttft_ms));
    }
    settings_comparison compared() const {
        return comparison_of_settings(all_, objectives_, {}, 4);
    }

private:
    vector<slo> objectives_;
    std::deque<measurements> seen_{};
    std::deque<judging_parameters> held_{};
    std::deque<analysis> found_{};
    vector<measured_setting> all_{};
};

const compared_statistic& shown_by(const settings_comparison& c, const std::string& name) {
    for (const compared_statistic& s : c.statistics)
        if (str(s.what.name) == name) return s;
    FAIL("there is no " << name);
    return c.statistics[0];
}
std::string said(const settings_comparison& c, const std::string& name) {
    return sentence_of(c, shown_by(c, name));
}
const vector<double> fast = {100, 101, 99, 100}, slow = {150, 149, 151, 150};

}  // namespace

TEST_CASE("statistics of objectives come first, and each once") {
    const settings_comparison c =
        suite({p90(ttft) <= 500_ms, mean(ttft) <= 1_s}).with("a", fast).with("b", slow).compared();
    CHECK(c.asked == 2);
    CHECK(str(c.statistics[0].what.name) == "p90(ttft)");
    int means = 0;
    for (const compared_statistic& s : c.statistics) means += str(s.what.name) == "mean(ttft)";
    CHECK(means == 1);
    CHECK(c.rounds == 4);
}

TEST_CASE("each setting has its own verdicts, and the better one is named") {
    const settings_comparison c =
        suite({mean(ttft) <= 120_ms}).with("a", fast).with("b", slow).compared();
    CHECK(c.settings[0].verdicts.at(0) == verdict::pass);
    CHECK(c.settings[1].verdicts.at(0) == verdict::fail);
    CHECK(said(c, "mean(ttft)") == "mean(ttft): a is best, then b");
    CHECK(shown_by(c, "mean(ttft)").pairs.at(0).ratio == doctest::Approx(1.5).epsilon(0.01));
    CHECK(comparison_line(c) ==
          "2 settings in turns, 4 rounds: mean(ttft): a is best, then b");
    CHECK(comparison_explained(c).find("b / a: 1.50 [1.") != std::string::npos);
}

TEST_CASE("what does not differ significantly is said with the names") {
    const vector<double> close = {152, 150, 149, 151};
    const settings_comparison c =
        suite({mean(ttft) <= 1_s}).with("a", fast).with("b", slow).with("c", close).compared();
    CHECK(said(c, "mean(ttft)") == "mean(ttft): a is best; b and c do not differ significantly");
    const settings_comparison same = suite({mean(ttft) <= 1_s})
                                         .with("a", slow)
                                         .with("b", close)
                                         .with("c", slow)
                                         .compared();
    CHECK(said(same, "mean(ttft)") == "mean(ttft): no two settings differ significantly");
    const settings_comparison chain = suite({mean(ttft) <= 1_s})
                                          .with("a", {100, 101, 99, 100})
                                          .with("b", {105, 106, 104, 105})
                                          .with("c", {111, 112, 110, 111})
                                          .compared();
    CHECK(said(chain, "mean(ttft)") ==
          "mean(ttft): a is better than c; no significant difference between a and b, b and c");
}

TEST_CASE("a setting that was lost is excluded by its reason, and the others are compared") {
    const settings_comparison c = suite({mean(ttft) <= 1_s})
                                      .with("a", fast)
                                      .with("b", {}, "it was not ready within 5 s")
                                      .with("c", slow)
                                      .compared();
    CHECK(c.settings[1].excluded == "it was not ready within 5 s");
    CHECK(said(c, "mean(ttft)") == "mean(ttft): a is best, then c");
    REQUIRE(notes_on(c).size() == 1);
    CHECK(notes_on(c)[0] == "b is not compared: it was not ready within 5 s");
}

TEST_CASE("a setting that fails requests is compared on nothing, however fast it is") {
    vector<repeat_data> failing;
    for (int i = 0; i < 4; ++i) failing.push_back(repeat_with_failures(50, 5));
    vector<repeat_data> whole;
    for (int i = 0; i < 4; ++i) whole.push_back(repeat_with_failures(50, 0));
    const settings_comparison c =
        suite({mean(ttft) <= 1_s}).with("a", whole).with("sheds", failing).compared();
    CHECK(c.settings[1].excluded.find("10 % of its requests failed (") == 0);
    CHECK(c.settings[0].excluded.empty());
    CHECK(shown_by(c, "mean(ttft)").pairs.empty());
}

TEST_CASE("a percentile that failures reach has no ratio, and the mean beside it has") {
    // One of 150 requests of a round may fail, and p99 of so many is the second largest.
    vector<repeat_data> some, whole;
    for (int i = 0; i < 4; ++i) {
        some.push_back(repeat_with_failures(300, i == 1 ? 4 : 0));
        whole.push_back(repeat_with_failures(300, 0));
    }
    const settings_comparison c =
        suite({p99(ttft) <= 1_s}).with("a", whole).with("b", some).compared();
    CHECK(c.settings[1].excluded.empty());
    CHECK(said(c, "p99(ttft)") ==
          "p99(ttft): b is not compared: failed requests reach it in 1 of 4 rounds");
    CHECK(shown_by(c, "mean(ttft)").pairs.size() == 1);
}

TEST_CASE("shares are shown and not compared") {
    const settings_comparison c = suite({goodput(ttft <= 120_ms) >= 90_pct})
                                      .with("a", fast)
                                      .with("b", slow)
                                      .compared();
    const compared_statistic& s = c.statistics.at(0);
    CHECK(s.pairs.empty());
    CHECK(s.settings[0].typical == doctest::Approx(1));
    CHECK(s.settings[1].typical == doctest::Approx(0));
    CHECK(said(c, str(s.what.name)).find(": a fraction is shown and not compared") !=
          std::string::npos);
}

TEST_CASE("settings that beat the same ones are named together") {
    const settings_comparison c = suite({mean(ttft) <= 1_s})
                                      .with("a", slow)
                                      .with("b", fast)
                                      .with("c", {102, 100, 101, 99})
                                      .compared();
    CHECK(said(c, "mean(ttft)") ==
          "mean(ttft): b and c are better than a; b and c do not differ significantly");
}

TEST_CASE("what too few requests are behind is told where somebody asked for it") {
    const settings_comparison c =
        suite({p99(ttft) <= 1_s}).with("a", fast).with("b", slow).compared();
    // Twenty requests a round: nothing lies beyond a p99.
    CHECK(said(c, "p99(ttft)").find("p99(ttft): a and b are not compared: the plan: repeat 1 "
                                    "measured 20 requests, p99(ttft) needs 300") == 0);
    for (const compared_statistic& s : c.statistics) CHECK(str(s.what.name) != "p99(e2e)");
}

TEST_CASE("statistics that show the same share a sentence") {
    const settings_comparison c =
        suite({mean(ttft) <= 1_s, p50(ttft) <= 1_s}).with("a", fast).with("b", slow).compared();
    CHECK(comparison_line(c) ==
          "2 settings in turns, 4 rounds: mean(ttft), p50(ttft): a is best, then b");
}

TEST_CASE("server metrics are compared with their offset, as they may be zero") {
    const auto reported = [](const vector<double>& most) {
        vector<repeat_data> rounds = repeats_with_ttft(fast);
        for (std::size_t i = 0; i < rounds.size(); ++i)
            sample_pages::report(rounds[i], server_quantity::waiting,
                                 {0, 0, most[i], 0, 0, 0});
        return rounds;
    };
    const settings_comparison c = suite({max(queued_requests) <= 50})
                                      .with("idle", reported({0, 0, 0, 0}))
                                      .with("also idle", reported({0, 0, 0, 0}))
                                      .with("full", reported({30, 31, 29, 30}))
                                      .compared();
    const compared_statistic& s = shown_by(c, "max(queued_requests)");
    CHECK(s.settings[0].fault == "");
    CHECK(s.settings[0].typical >= 0);
    CHECK(s.settings[0].typical < 1e-9);
    CHECK(s.settings[2].typical > 29);
    CHECK(s.settings[2].typical < 31);
    CHECK(!s.is_better(0, 1));
    CHECK(s.is_better(0, 2));
    CHECK(s.is_better(1, 2));
    // A series that may be below zero has no ratios.
    const auto named = [](double v) {
        vector<repeat_data> rounds = repeats_with_ttft(fast);
        for (repeat_data& d : rounds) {
            sample_pages::read_at_each_second(d, 6);
            d.server.selectors = {"x"};
            for (page_reading& r : d.server.readings) r.named = {v};
        }
        return rounds;
    };
    const settings_comparison of_any = suite({max(server_metric("x")) <= 3})
                                           .with("below", named(-1))
                                           .with("above", named(1))
                                           .compared();
    CHECK(shown_by(of_any, "max(server_metric(\"x\"))").settings[0].fault ==
          "it is not above zero in 4 of 4 rounds");
}
