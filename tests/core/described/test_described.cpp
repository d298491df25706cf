// Decisions in sentences.
#include "core/described/described.hpp"
#include "support/verdicts.hpp"

#include <set>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace verdicts;

TEST_CASE("every cause has a name of its own, and a sentence in which each number has its place") {
    std::set<std::string> names;
    for (const cause_row& s : cause_table) {
        CAPTURE(s.name);
        CHECK(names.insert(s.name).second);
        cause c{because::nothing, whose::server, "words"};
        c.what = s.id;
        c.numbers = {1, 2, 3, 4, 5, 6, 7, 8};
        decision d = undecided(mean(ttft) <= 100_ms);
        d.limit = 0.1;
        const std::string said = described(c, d);
        CHECK(said.find("server: ") == 0);
        CHECK(said.find_first_of("{}|") == std::string::npos);
        CHECK((s.id == because::nothing) == (said == "server: "));
    }
}

TEST_CASE("a place has the number of its name, in the form that it is told in") {
    decision d = undecided(p99(ttft) <= 300_ms);
    // In any order.
    CHECK(described(cause_with<because::failed_in_tail>(
                        {{"allowed", 0.01}, {"most", 0.0234}, {"of", 600}, {"failed", 9}},
                        whose::nobody, "p99(ttft)"),
                    d) == "9 of 600 failed, up to 2.3 % may, and p99(ttft) leaves 1 % beyond it");
    CHECK(described(cause_with<because::sent_late>({{"late", 0.254}, {"after", 0.0105}},
                                                   whose::client)) ==
          "client: 25.4 % of the requests of a repeat were sent over 10.5 ms late, so its load was "
          "not the one asked for");
    const auto cache = [](double usage, int preemptions) {
        return described(cause_with<because::cache_full>({{"usage", usage},
                                                          {"preemptions", preemptions}}));
    };
    CHECK(cache(0, 1) == "1 preemption");
    CHECK(cache(0.98, 0) == "KV cache at 98 %");
    CHECK(cache(0.98, 20) == "KV cache at 98 %, 20 preemptions");
    CHECK(described(cause_with<because::lacks_values>({{"requests", 3},
                                                       {"completed", 40},
                                                       {"metric", metric_id::tpot},
                                                       {"needs", metric_id::tpot}})) ==
          "3 of 40 completed requests have no tokens after their first event, which tpot needs");
    CHECK(described(cause_with<because::limit_that_passes>({{"better", 0.312}, {"longer", 0}}), d) ==
          "<= 320 ms would pass");
    CHECK(described(cause_with<because::limit_that_passes>({{"better", 0.312}, {"longer", 3}}), d) ==
          "a run 3 times as long would mostly decide, and <= 320 ms would mostly pass as it is");
    CHECK(described(vector<cause>{{because::too_close},
                                  cause_with<because::cached>(
                                      {{"cached", 0.5}, {"compares", 0}, {"baseline", 0}})}, d) ==
          "too close to call; 50 % of the prompt tokens came from the server's prefix cache");
}

TEST_CASE("a drift is of a run, or of runs") {
    const auto said = [](int repeats) {
        return described(cause_with<because::thirds>(
            {{"first", 0.1}, {"last", 0.2}, {"repeats", repeats}, {"seconds", 600}}));
    };
    CHECK(said(1).find("(a run of ") != std::string::npos);
    CHECK(said(3).find("(runs of ") != std::string::npos);
}

TEST_CASE("a verdict has its method, unit and causes as names that no sentence changes") {
    const slo_verdict two = verdict_on({125, 125});
    CHECK(two.decided_by == verdict_method::moderated_t);
    CHECK(two.counted_in == verdict_unit::repeat);
    REQUIRE(two.causes.size() == 1);
    CHECK(str(two.causes[0].name) == "too_few_to_fail");
    CHECK(two.causes[0].whose.empty());
    CHECK(verdict_on({80, 80}).causes.empty());
    const slo_verdict failed = verdict_on_failures(400, 12, error_rate <= 1_pct);
    CHECK(failed.decided_by == verdict_method::counts);
    REQUIRE(failed.causes.size() == 1);
    CHECK(str(failed.causes[0].name) == "failed");
    REQUIRE(failed.causes[0].numbers.size() == 3);
    CHECK(failed.causes[0].numbers[0] == 12);
    CHECK(failed.causes[0].numbers[1] == 400);
    const slo_verdict pairs = verdict_on_pairs({1, 1, 1, 1}, mean(ttft) <= 1.1 * baseline);
    CHECK(pairs.counted_in == verdict_unit::pair);
    CHECK(str(pairs.unit) == "pair");
}
