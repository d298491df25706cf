// Objectives on work and their text, from which their terms are read back.
#include "core/measured/server_metrics.hpp"
#include "core/metric/table.hpp"
#include "extensions/work/api.hpp"
#include "extensions/work/core/objective.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
std::string text_of(const slo& s) { return str(s.text()); }
}  // namespace

TEST_CASE("an objective on work has the text that it was written as") {
    CHECK(text_of(cached_tokens == expected) == "cached_tokens == expected");
    CHECK(text_of(cached_tokens >= 0.98 * expected) == "cached_tokens >= 0.98 * expected");
    CHECK(text_of(cached_tokens >= 98_pct * expected) == "cached_tokens >= 0.98 * expected");
    CHECK(text_of(prefilled_tokens <= 2'200) == "prefilled_tokens <= 2200");
    CHECK(text_of(generated_tokens <= baseline) == "generated_tokens <= baseline");
    CHECK(text_of(generated_tokens <= 1.05 * baseline) == "generated_tokens <= 1.05 * baseline");
    CHECK(text_of(server_requests == 48u) == "server_requests == 48");
    CHECK(text_of(engine_steps <= 12) == "engine_steps <= 12");
    CHECK(text_of(drafted_tokens == 0) == "drafted_tokens == 0");
    CHECK(text_of(accepted_tokens >= 10) == "accepted_tokens >= 10");
    CHECK(text_of(preemptions == 0) == "preemptions == 0");
    CHECK(text_of(advisory(llmbench::counted("x:y_total{m=\"a <= b\"}") == 0)) ==
          "advisory(counted(\"x:y_total{m=\"a <= b\"}\") == 0)");
    // the metric of llmbench.hpp, as before
    CHECK((preemptions <= 3).statistic.metric == metric_id::preemptions);
}
TEST_CASE("the text has all terms") {
    for (const slo& s : {cached_tokens == expected, cached_tokens >= 0.98 * expected,
                         prefilled_tokens <= 2'200, generated_tokens <= 1.05 * baseline,
                         generated_tokens == baseline, preemptions == 0,
                         llmbench::counted("x:y_total{m=\"a <= b\"}") == 12'345'678'901}) {
        CAPTURE(text_of(s));
        const slo again = slo_of(terms_of(s));
        CHECK(text_of(again) == text_of(s));
        CHECK(again.bound == s.bound);
        CHECK(again.factor == s.factor);
        CHECK(again.at_most == s.at_most);
    }
    const work_terms t = terms_of(cached_tokens >= 0.98 * expected);
    CHECK(t.what == "cached_tokens");
    CHECK(t.side == work_side::at_least);
    CHECK(t.from == work_limit::source::model);
    CHECK(t.factor == 0.98);
    CHECK(is_absolute(cached_tokens == expected));
    CHECK(kind_of(cached_tokens <= 1.05 * baseline) == limit_kind::ratio);
    CHECK((cached_tokens == expected).at.line > 0);
}
TEST_CASE("a text of a file that has no terms is refused") {
    slo s = cached_tokens == expected;
    for (const char* text : {"", "cached_tokens", "cached_tokens ==", "cached_tokens == ",
                             "cached_tokens = 3", "cached_tokens == 3 tokens",
                             "cached_tokens == expected * 2", "prefilled_tokens == 3"}) {
        CAPTURE(text);
        s.statistic.gauge = text;
        CHECK_THROWS_AS(terms_of(s), std::invalid_argument);
    }
}
TEST_CASE("names stand in the order of their numbers") {
    const auto name_of = [](work_count c) {
        return std::string(count_names[static_cast<std::size_t>(c)].name);
    };
    CHECK(name_of(server_requests) == "server_requests");
    CHECK(name_of(accepted_tokens) == "accepted_tokens");
    CHECK(name_of(work_count::preemptions) == "preemptions");
    CHECK(std::size(count_names) == 1 + static_cast<std::size_t>(work_count::preemptions));
}
