// Metrics of users: made of a function, and then everywhere where ours are.
#include "llmbench.hpp"
#include "core/judging/checks.hpp"
#include "core/measured/metrics.hpp"
#include "core/metric/own_metrics.hpp"
#include "program/slo_text.hpp"
#include "support/scenarios.hpp"
#include "support/texts.hpp"
#include "support/timelines.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;
using namespace timelines;

namespace {

const metric longest_wait = of_request("longest_wait", in_seconds, [](const request_view& r) {
    double longest = r[ttft];
    for (long long i = 0; i < r.gaps(); ++i)
        if (r.gap(i) > longest) longest = r.gap(i);
    return longest;
});
const metric tokens_read = of_request("tokens_read", more_is_better, [](const request_view& r) {
    return r.output_tokens();
});
const metric pace = of_request("pace", in_tokens_per_second, [](const request_view& r) {
    return r.output_tokens() / r[e2e];
});
const metric per_prompt = of_request("per_prompt", in_seconds, [](const request_view& r) {
    return r[e2e] / r.prompt_tokens();
});
const metric doubled = of_request("doubled", in_seconds, [](const request_view& r) { return 2 * r[e2e]; });

repeat_data three_waits() {
    return repeat_of({request(0).sent(0).content(200).content(900).finish(950).done(950),
                      request(1000).sent(1000).content(1500).content(1600).finish(1650).done(1650),
                      request(2000).sent(2000).content(2100).content(2200).finish(2250).done(2250)});
}
template <class Kind>
const metric_facts& facts(const metric<Kind>& m) { return facts_of(m.id()); }

}  // namespace

TEST_CASE("a metric of one's own has the values of its function") {
    const repeat_data d = three_waits();
    CHECK(value_of(max(longest_wait), d) == about(0.7));
    CHECK(value_of(p50(longest_wait), d) == about(0.5));
    CHECK(value_of(mean(longest_wait), d) == about((0.7 + 0.5 + 0.1) / 3));
    CHECK(value_of(mean(doubled), d) == about(2 * (0.95 + 0.65 + 0.25) / 3));
    CHECK(value_of(goodput(longest_wait <= 500_ms), d) == about(2.0 / 3));
    CHECK(value_of(goodput(longest_wait <= 500_ms && ttft <= 300_ms), d) == about(1.0 / 3));
}

TEST_CASE("a metric of one's own reads as it is written, and is read again") {
    for (const slo& s :
         {p95(longest_wait) <= 200_ms, goodput(longest_wait <= 200_ms && ttft <= 1_s) >= 95_pct,
          drift(p50(longest_wait)) <= 110_pct, p99(longest_wait) <= 1.1 * baseline,
          p90(longest_wait).of("sql") <= 0.5 * p90(ttft), min(pace) >= 20_tps,
          p5(tokens_read) >= 12, advisory(max(doubled) <= 2_s)})
        CHECK(str(parse_slo(s.text()).text()) == str(s.text()));
    CHECK(str((p95(longest_wait) <= 200_ms).text()) == "p95(longest_wait) <= 200 ms");
    CHECK(texts::refusal_of([] { parse_slo("p95(longest) <= 200 ms"); }).find("longest_wait") !=
          std::string::npos);
}

TEST_CASE("what a metric of one's own reads decides what its verdicts need") {
    CHECK(facts(longest_wait).needs_stream);
    CHECK(facts(longest_wait).is_of_gaps);
    CHECK(facts(longest_wait).is_of_decoding);
    CHECK(facts(longest_wait).is_of_prefill);
    CHECK(facts(longest_wait).is_affected_by_lateness);
    CHECK_FALSE(facts(longest_wait).counts_output);
    CHECK_FALSE(facts(doubled).needs_stream);
    CHECK(facts(doubled).is_affected_by_lateness);
    CHECK(facts(tokens_read).counts_output);
    CHECK_FALSE(facts(tokens_read).is_affected_by_lateness);
    CHECK(facts(per_prompt).needs == value_needs::prompt_tokens);
    CHECK(is_or_reads(longest_wait.id(), metric_id::ttft));
    CHECK_FALSE(is_or_reads(longest_wait.id(), metric_id::e2e));
    // It is of requests, one value each, whatever gaps it looks at.
    CHECK_FALSE(pools_gaps(longest_wait.id()));
    CHECK(pools_gaps(metric_id::itl));
    const std::string why = refusal_after([](scenario& x) {
        x.options.stream = false;
        x.slos = {p95(longest_wait) <= 1_s};
    });
    CHECK(why == "the SLO p95(longest_wait) <= 1 s is refused: options.stream is false, and an answer "
                 "that comes in one piece has no first token apart from its last: use e2e");
}

TEST_CASE("what a metric of one's own reads of some requests only is found when they are measured") {
    const metric choosy = of_request("choosy_reads", in_seconds, [](const request_view& r) {
        if (std::strcmp(r.label(), "agent") == 0) return r[tpot] + r.gap(0) / r.prompt_tokens();
        return r.turn() == 7 ? r[ttft] : r[e2e];
    });
    const metric_facts& before = facts(choosy);
    CHECK_FALSE(facts(choosy).is_of_decoding);
    repeat_data d = three_waits();
    d.labels = {"chat", "agent"};
    for (std::size_t i = 0; i < d.records.size(); ++i) request_value(choosy.id(), d, i);
    CHECK_FALSE(facts(choosy).is_of_decoding);
    d.records[1].part = 1;
    request_value(choosy.id(), d, 1);
    CHECK(facts(choosy).is_of_decoding);
    CHECK(facts(choosy).counts_output);
    CHECK(facts(choosy).is_of_gaps);
    CHECK(facts(choosy).needs == value_needs::prompt_tokens);
    CHECK(is_or_reads(choosy.id(), metric_id::tpot));
    CHECK_FALSE(is_or_reads(choosy.id(), metric_id::ttft));
    CHECK_FALSE(before.is_of_decoding);  // another thread may still read what was known before
    d.records[2].turn = 6;
    request_value(choosy.id(), d, 2);
    CHECK(is_or_reads(choosy.id(), metric_id::ttft));
    CHECK(std::string(metric_name(choosy.id())) == "choosy_reads");
    CHECK(mean(choosy).data.metric == choosy.id());
}

TEST_CASE("a function is told the times that there may have been, not only those measured") {
    repeat_data d = repeat_of({request(0).sent(0).content(200).content(900).finish(950).done(950)});
    d.records[0].late_ns = 50000000;
    CHECK(request_value(doubled.id(), d, 0) == about(1.9));
    CHECK(request_value(doubled.id(), d, 0, timing_bound::optimistic) == about(1.8));
}

TEST_CASE("gaps that were only counted are no request's, and a metric of them has no value") {
    repeat_data d = three_waits();
    d.gaps_counted = true;
    CHECK(std::isnan(request_value(longest_wait.id(), d, 0)));
    CHECK_FALSE(has_value(longest_wait.id(), d, 0));
    CHECK(request_value(doubled.id(), d, 0) == about(1.9));
}

TEST_CASE("a metric that cannot be is refused before the load, with its name") {
    const auto of = [](const char* name, double (*value)(const request_view&)) {
        return refusal_of_slo(mean(of_request(name, in_seconds, value)) <= 1_s);
    };
    const auto one = [](const request_view&) { return 1.0; };
    CHECK(of("Worst gap", one) ==
          "the SLO mean(Worst gap) <= 1 s is refused: Worst gap: a name has up to 40 of the characters "
          "a-z, 0-9 and _, a letter first, and is not \"baseline\"");
    CHECK(of("ttft", one) == "the SLO mean(ttft) <= 1 s is refused: ttft: a metric of llmbench has "
                             "this name");
    CHECK(of("throws", [](const request_view&) -> double { throw std::runtime_error("no\nsuch"); }) ==
          "the SLO mean(throws) <= 1 s is refused: throws: its function throws: no\\nsuch");
    CHECK(of("nothing", [](const request_view&) { return std::nan(""); }) ==
          "the SLO mean(nothing) <= 1 s is refused: nothing: its function gives NaN for a usual "
          "request, of 64 events and 128 tokens");
    CHECK(of("below", [](const request_view&) { return -1.0; }) ==
          "the SLO mean(below) <= 1 s is refused: below: its function gives -1: values run from 0 to "
          "1e+15");
    CHECK(of("huge", [](const request_view&) { return 1e308; }) ==
          "the SLO mean(huge) <= 1 s is refused: huge: its function gives 1e+308: values run from 0 to "
          "1e+15");
    CHECK(of("none", nullptr) == "the SLO mean(none) <= 1 s is refused: none: there is no function");
    CHECK(of("twice", one).empty());
    CHECK(of("twice", one).empty());
    CHECK(of("twice", [](const request_view&) { return 2.0; }) ==
          "the SLO mean(twice) <= 1 s is refused: twice: two metrics have this name; one in a header "
          "is `inline const`");
    // As a metric of another file is, before it is made.
    static metric<own_time> unmade = doubled;
    std::memset(static_cast<void*>(&unmade), 0, sizeof unmade);
    CHECK(refusal_of_slo(mean(unmade) <= 1_s).find("is not made yet") != std::string::npos);
    // In a condition, a drift and a ratio as well.
    const metric bad = of_request("bad name", in_seconds, [](const request_view&) { return 1.0; });
    CHECK(refusal_of_slo(goodput(bad <= 1_s) >= 90_pct).find("bad name: a name") !=
          std::string::npos);
    CHECK(refusal_of_slo(drift(p50(bad)) <= 110_pct).find("bad name: a name") != std::string::npos);
    CHECK(refusal_of_slo(p50(ttft) <= 2 * p50(bad)).find("bad name: a name") != std::string::npos);
}

TEST_CASE("a function that gives a value below 0 or without an end has told none of that request") {
    const metric at_odds = of_request("at_odds", in_seconds, [](const request_view& r) {
        return r.prompt_tokens() == 100 ? 1 : r.output_tokens() < 0 ? -1 : 1 / 0.0;
    });
    repeat_data d = three_waits();
    CHECK_FALSE(has_value(at_odds.id(), d, 0));
    d.records[0].output_tokens = -1;
    CHECK_FALSE(has_value(at_odds.id(), d, 0));
    d.records[0].prompt_tokens = 100;
    CHECK(has_value(at_odds.id(), d, 0));
}

TEST_CASE("a function that throws of a request has told no value of it") {
    const metric choosy = of_request("choosy", in_seconds, [](const request_view& r) {
        if (r.prompt_tokens() != 100) throw std::runtime_error("not mine");
        return 1.0;
    });
    const repeat_data d = three_waits();
    CHECK_FALSE(has_value(choosy.id(), d, 0));
}
