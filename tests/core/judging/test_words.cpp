// The lines of verdicts that people read.
#include "llmbench.hpp"
#include "core/described/verdict_text.hpp"
#include "core/reports/console.hpp"
#include "support/texts.hpp"
#include "support/verdicts.hpp"

#include <algorithm>
#include <cmath>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;
using texts::holds;

TEST_CASE("every outcome has its line") {
    CHECK(verdict_line(verdict_on({80, 80})) ==
          "PASS          mean(ttft) <= 100 ms  measured 80 ms, 20 % inside the limit "
          "(interval 74.8 to 85.5 ms; the smallest miss this run could show: 13 %), "
          "2 repeats x 20 requests, moderated t");
    CHECK(verdict_line(verdict_on({124, 125, 126})) ==
          "FAIL          mean(ttft) <= 100 ms  measured 125 ms, 25 % over the limit "
          "(interval 116 to 132 ms; the smallest miss this run could show: 9.6 %), "
          "3 repeats x 20 requests, moderated t");
    CHECK(verdict_line(verdict_on({97, 101, 99, 97, 101})) ==
          "INCONCLUSIVE  mean(ttft) <= 100 ms  measured 99 ms, 1.02 % inside the limit "
          "(interval 93.9 to 103 ms; the smallest miss this run could show: 6.8 %), "
          "5 repeats x 20 requests, moderated t; too close to call");

    // By the repeats' own spread, and by the noise of any machine.
    CHECK(verdict_line(verdict_on({125, 125, 125})) ==
          "FAIL          mean(ttft) <= 100 ms  measured 125 ms, 25 % over the limit "
          "(interval 123 to 127 ms; the smallest miss this run could show: 1.6 %), "
          "3 repeats x 20 requests, t");
    CHECK(mentions(verdict_line(verdict_on({250, 250, 250})),
                   ", 2 repeats x 20 requests, moderated t"));

    vector<repeat_data> one_token = {repeat_of({answered(0, 50, 10, 1)}),
                                     repeat_of({answered(0, 50, 10, 1)})};
    CHECK(verdict_line(judged(measured(one_token), mean(tpot) <= 25_ms)) ==
          "INVALID       mean(tpot) <= 25 ms  measured none; server: 2 of 2 completed requests have no "
          "tokens after their first event, which tpot needs");

    slo_verdict skipped;
    skipped.objective = mean(ttft) <= 100_ms;
    skipped.measured = not_a_number;
    skipped.estimate = {not_a_number, not_a_number, not_a_number};
    skipped.reason = "no server";
    CHECK(verdict_line(skipped) == "SKIPPED       mean(ttft) <= 100 ms  measured none; no server");
}

TEST_CASE("lines of fractions, speeds, pairs and misses without a size") {
    CHECK(verdict_line(verdict_on_failures(400, 12, error_rate <= 1_pct)) ==
          "FAIL          error_rate <= 1 %  measured 3 % (interval 1.061 to 5.374 %; the "
          "smallest fraction of misses this run could show: 3.7 %), 2 repeats x 200 requests, "
          "Clopper-Pearson on counts; 12 of 400 failed, limit 1 %");
    CHECK(verdict_line(verdict_on({50, 50}, p50(decode_speed) >= 80_tps)) ==
          "PASS          p50(decode_speed) >= 80 tok/s  measured 100 tok/s, 25 % inside the "
          "limit (interval 93.6 to 107 tok/s; the smallest miss this run could show: 13 %), "
          "2 repeats x 20 requests, moderated t");
    CHECK(verdict_line(verdict_on({125, 125, 125}, p50(decode_speed) >= 200_tps))
              .find("measured 100 tok/s, 50 % under the limit (") != std::string::npos);
    CHECK(verdict_line(verdict_on_pairs({1, 1.035, 0.967, 1})) ==
          "PASS          mean(ttft) <= 1.1 * baseline  measured 1.000 x baseline (100 ms against "
          "100 ms), 9.07 % inside the limit (interval 0.916 to 1.063 x baseline; the smallest miss "
          "this run could show: 12 %), 4 pairs x 20 requests, paired moderated t");
    const repeat_data bad = repeat_with_failures(20, 4);
    CHECK(verdict_line(judged(measured({bad, bad, bad}), max(ttft) <= 100_ms)) ==
          "FAIL          max(ttft) <= 100 ms  measured infinite, 2 repeats x 20 requests, counted misses; 2 "
          "of 2 repeats have so many failures that the statistic is infinite");
}

TEST_CASE("a line may be given a width for its objective") {
    CHECK(verdict_line(verdict_on({80, 80}), 24)
              .find("PASS          mean(ttft) <= 100 ms      measured 80 ms, ") == 0);
    CHECK(
        verdict_line(verdict_on({80, 80}), 3).find("PASS          mean(ttft) <= 100 ms  measured 80 ms, ") ==
        0);
}

TEST_CASE("a ratio without a value or without a size is told in words") {
    CHECK(verdict_line(verdict_on({80, 80}, mean(ttft) <= 1.10 * baseline)) ==
          "INVALID       mean(ttft) <= 1.1 * baseline  measured none; there is no baseline");
    measurement m = pairs_with_ratio({1, 1, 1, 1});
    for (repeat_data& d : m.candidate) d = repeat_with_failures(20, 4);
    CHECK(verdict_line(judged(m, max(ttft) <= 1.5 * baseline)) ==
          "FAIL          max(ttft) <= 1.5 * baseline  measured infinite, 4 pairs x 20 requests, counted misses; 4 of 4 "
          "repeats have so many "
          "failures that the statistic is infinite");
}

TEST_CASE("headroom is how far inside the limit the estimate is") {
    CHECK(headroom(verdict_on({80, 80})) == about(0.20));
    CHECK(headroom(verdict_on({125, 125})) == about(-0.25));
    CHECK(headroom(verdict_on({50, 50}, p50(decode_speed) >= 80_tps)) == about(0.25));
    const repeat_data bad = repeat_with_failures(20, 4);
    CHECK(std::isnan(headroom(judged(measured({bad, bad, bad}), max(ttft) <= 100_ms))));
}

TEST_CASE("a line that is too long is two, neither over the width of a console") {
    CHECK(verdict_lines(verdict_on({97, 101, 99, 97, 101}), 24) ==
          "INCONCLUSIVE  mean(ttft) <= 100 ms      measured 99 ms, 1.02 % inside the limit "
          "(interval 93.9\n"
          "      to 103 ms; the smallest miss this run could show: 6.8 %), 5 repeats x 20 requests,\n"
          "      moderated t; too close to call");
    CHECK(verdict_lines(verdict_on({80, 80}), 20) ==
          "PASS          mean(ttft) <= 100 ms  measured 80 ms, 20 % inside the limit "
          "(interval 74.8 to\n"
          "      85.5 ms; the smallest miss this run could show: 13 %), 2 repeats x 20 requests,\n"
          "      moderated t");
    slo_verdict skipped;
    skipped.objective = mean(ttft) <= 100_ms;
    skipped.measured = not_a_number;
    skipped.estimate = {not_a_number, not_a_number, not_a_number};
    skipped.reason = "no server";
    CHECK(verdict_lines(skipped) == verdict_line(skipped));
    slo_verdict far = verdict_on({80, 80});
    far.reason = std::string(500, 'w') + " and more words " + std::string(90, 'x') + " to the end";
    const std::string lines = verdict_lines(far);
    for (std::size_t at = 0; at < lines.size();) {
        const std::size_t end = std::min(lines.find('\n', at), lines.size());
        const std::string line = lines.substr(at, end - at);
        CHECK((line.size() <= console_columns || line.find("www") != std::string::npos));
        CHECK((at == 0 || line.rfind(std::string(6, ' '), 0) == 0));
        at = end + 1;
    }
}

TEST_CASE("a verdict that is told elsewhere is told in short") {
    CHECK(verdict_in_short(verdict_on({124, 125, 126})) ==
          "FAIL, measured 125 ms, 25 % over the limit (interval 116 to 132 ms)");
    slo_verdict invalid = verdict_on({80, 80});
    invalid.outcome = verdict::invalid;
    invalid.measured = not_a_number;
    invalid.reason = "server: it went away";
    CHECK(verdict_in_short(invalid) == "INVALID: server: it went away");
}

TEST_CASE("of a model nothing is called measured") {
    slo_verdict v = verdict_on({80, 80});
    v.outcome = verdict::skipped;
    v.reason = "a shard";
    CHECK(holds(verdict_line(v), "measured 80 ms"));
    v.reason = std::string(rehearsal_word) + ": pass on the model";
    CHECK(holds(verdict_line(v), "modelled 80 ms"));
    CHECK_FALSE(holds(verdict_line(v), "measured"));
    CHECK(measured_text(v) == "modelled 80 ms");
}

TEST_CASE("one number is enough where the typical repeat is the measured value, but for its digits") {
    slo_verdict v = verdict_on({80, 80});
    const auto says = [&](double measured, double typical) {
        v.measured = measured;
        v.estimate.value = typical;
        return measured_text(v);
    };
    CHECK(says(0.0800, 0.0801) == "measured 80 ms");
    CHECK(says(0.0800, 0.0791) == "measured 80 ms, typical repeat 79.1 ms");
    CHECK(says(0.1001, 0.0999) == "measured 100 ms, typical repeat 99.9 ms");  // the limit is between
    v.limit = 0;
    CHECK(says(0, 0) == "measured 0 ms");
}

TEST_CASE("an interval that leaves out the measured value stands with the value that it is of") {
    slo_verdict v = verdict_on({80, 80});
    v.measured = 0.0394;
    v.estimate = {0.0363, 0.0350, 0.0377};
    const auto in_short = [&] { return verdict_lines_in_short(v, {}); };
    CHECK(holds(in_short(), "measured 39.4 ms  interval 35 to 37.7 ms\n"));
    CHECK(holds(in_short(), "typical repeat 36.3 ms"));
    v.estimate = {0.0393, 0.0392, 0.03935};  // however close it is
    CHECK(holds(in_short(), "typical repeat 39.3 ms"));
    CHECK(holds(measured_text(v), "measured 39.4 ms, typical repeat 39.3 ms"));
    v.estimate = {0.0363, 0.0350, 0.0397};
    CHECK_FALSE(holds(in_short(), "typical repeat"));
}

TEST_CASE("a verdict counts what it is of: requests, or sessions") {
    slo_verdict v = verdict_on({80, 80});
    CHECK(holds(verdict_line(v), "2 repeats x "));
    CHECK(holds(verdict_line(v), " requests, "));
    v.objective = mean(session_time) <= 2_s;
    CHECK(holds(verdict_line(v), " sessions, "));
}

TEST_CASE("a ratio to nothing is infinite in words") {
    const slo s = output_throughput >= 0.9 * baseline;
    CHECK(value_text(s, infinity) == "infinite");
    CHECK(value_text(output_throughput >= baseline - 5_tps, -infinity) == "-infinite");
    CHECK(value_text(s, 1.5) == "1.500 x");
}

TEST_CASE("errors within their limit as observed are no pass in words") {
    measurement m = measured(repeats_with_ttft({80, 80}), {mean(ttft) <= 100_ms});
    const slo_verdict guard = judge_all(m).back();
    CHECK(guard.outcome == verdict::pass);
    CHECK(verdict_line(guard).find("OBSERVED      error_rate <= 1 %") == 0);
    CHECK(verdict_like(guard) == verdict::skipped);
}

TEST_CASE("a run that could show only an absurd miss says that it shows no useful one") {
    slo_verdict v = verdict_on({80, 80});
    v.detectable = 1;
    CHECK(smallest_miss_text(v) == "the smallest miss this run could show: 100 %");
    v.detectable = 4.45;
    CHECK(smallest_miss_text(v) == "this run cannot show a miss of any useful size");
    v.detectable = 0;
    CHECK(smallest_miss_text(v) == "");
}

TEST_CASE("in files the smallest miss stands where a verdict is open") {
    const char* words = "could show";
    CHECK(flat_line(verdict_on({97, 101, 99, 97, 101})).find(words) != std::string::npos);
    for (const double ttft : {80.0, 125.0}) {
        CHECK(flat_line(verdict_on({ttft, ttft, ttft})).find(words) == std::string::npos);
        CHECK(verdict_line(verdict_on({ttft, ttft, ttft})).find(words) != std::string::npos);
    }
}

TEST_CASE("the ends of an interval share a unit where they have the same") {
    slo_verdict v = verdict_on({80, 80});
    v.estimate.low = 0.0507;
    v.estimate.high = 0.0561;
    CHECK(interval_text(v) == "50.7 to 56.1 ms");
    v.estimate.high = 1.2;
    CHECK(interval_text(v) == "50.7 ms to 1.2 s");
    v.estimate.high = infinity;
    CHECK(interval_text(v) == "50.7 ms to infinite");
}
