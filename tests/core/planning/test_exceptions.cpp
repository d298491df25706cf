// Objectives that are advisory until a day: when they block, what is said before, and which days there are.
#include "llmbench.hpp"
#include "core/planning/check_slo.hpp"
#include "support/scenarios.hpp"
#include "support/texts.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;

namespace {
const slo until_new_year = advisory(p90(ttft) <= 300_ms).until("2026-12-31");
long long day(const char* date) { return *days_of_date(date); }
std::string said_on(const char* date) { return end_text(until_new_year, day(date)); }
}  // namespace

TEST_CASE("an exception is advisory to the day before its date, and blocks from that date on") {
    for (const char* date : {"1999-01-01", "2026-11-30", "2026-12-30"})
        CHECK(on_day(until_new_year, day(date)).is_advisory);
    for (const char* date : {"2026-12-31", "2027-01-01", "2127-01-01"})
        CHECK(!on_day(until_new_year, day(date)).is_advisory);
    CHECK((p90(ttft) <= 300_ms).until("2026-12-31").is_advisory);
    CHECK(on_day(advisory(p90(ttft) <= 300_ms), day("2127-01-01")).is_advisory);
    CHECK(!on_day(p90(ttft) <= 300_ms, 0).is_advisory);
    const slo again = on_day(on_day(until_new_year, day("2027-01-01")), day("2026-01-01"));
    CHECK(again.is_advisory);  // of the day alone, whatever it counted as before
}

TEST_CASE("an exception says from a week before that it ends, and from then on that it has") {
    CHECK(said_on("2026-12-23") == "");
    CHECK(said_on("2026-12-24") ==
          "p90(ttft) <= 300 ms is advisory until 2026-12-31: it blocks again in 7 days");
    CHECK(said_on("2026-12-30") ==
          "p90(ttft) <= 300 ms is advisory until 2026-12-31: it blocks again in 1 day");
    CHECK(said_on("2026-12-31") ==
          "p90(ttft) <= 300 ms was advisory until 2026-12-31: it blocks again");
    CHECK(end_text(advisory(p90(ttft) <= 300_ms), day("2026-12-31")) == "");
}

TEST_CASE("a day that is none is refused with the form that is meant") {
    for (const char* date : {"2026-02-29", "2026-13-01", "2026-00-10", "2026-04-31", "2026-12-32", "31.12.2026",
                             "2026-12-1", "2026-1-01", "+026-12-01", "2026-12-01T00:00:00Z", "tomorrow", "1969-12-31",
                             "2026-12-0a"}) {
        CAPTURE(date);
        CHECK(!days_of_date(date));
        CHECK_REFUSED(refusal_of_slo(advisory(p90(ttft) <= 300_ms).until(date)),
                      "the SLO advisory(p90(ttft) <= 300 ms) is refused: until(\"", date,
                      "names no day, which is one of UTC, such as until(\"2026-12-31\")");
    }
    CHECK_REFUSED(refusal_of_slo(advisory(p90(ttft) <= 300_ms).until("")), "until(\"no date\") names no day");
    CHECK(refusal_of_slo(until_new_year) == "");
    CHECK(days_of_date("1970-01-01") == 0);
    CHECK(days_of_date("2024-02-29") == 19782);
    CHECK(days_of_date("2026-12-31") == 20818);
}
