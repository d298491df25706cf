#include "llmbench.hpp"
#include "core/history/cohort.hpp"
#include "core/history/series.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

history_run run(const std::string& id, const std::string& at, double value,
                const std::string& outcome = "passed") {
    return {.id = id, .at = at, .gate = "chat", .cohort = "c", .commit = id + "0000000",
            .outcome = outcome, .values = {{"mean(tpot)", {value}}}};
}
history_note note(history_mark_kind kind, const std::string& at, const std::string& cohort = "c") {
    return {"m" + at, "chat", cohort, {kind, at, "because", ""}};
}
history_series nights(const history_lines& all) {
    return series_of(all, nights_of(all, "chat", "c"), "mean(tpot)");
}
std::string ids(const history_series& s) {
    std::string all;
    for (const history_night& n : s.nights) all += n.id + (n.is_left_out ? "-" : " ");
    return all;
}

}  // namespace

TEST_CASE("a night is the last valid run of a UTC date") {
    history_lines all;
    all.runs = {run("a", "2026-11-20T00:00:00Z", 1), run("b", "2026-11-20T23:59:59Z", 2),
                run("c", "2026-11-21T00:00:00Z", 3),
                run("d", "2026-11-21T10:00:00Z", 4, "invalid")};
    CHECK(ids(nights(all)) == "b c ");
    CHECK(nights(all).nights[0].repeats == std::vector<double>{2});
    all.runs[2].values[0].name = "p50(ttft)";
    CHECK(ids(nights(all)) == "b ");
    all.runs[1].cohort = "other";
    CHECK(ids(nights(all)) == "a ");
    CHECK(nights_by_cohort(all, "chat").at("other") == 1);
}
TEST_CASE("a night is left out by its date or its id, in the cohort of the mark or in all") {
    history_lines all;
    all.runs = {run("a", "2026-11-20T00:00:00Z", 1), run("b", "2026-11-21T01:00:00Z", 2)};
    all.notes = {note(history_mark_kind::leave_out, "b")};
    CHECK(ids(nights(all)) == "a b-");
    all.notes = {note(history_mark_kind::leave_out, "2026-11-20", "")};
    CHECK(ids(nights(all)) == "a-b ");
    CHECK(nights(all).marks.size() == 1);
    all.notes = {note(history_mark_kind::leave_out, "2026-11-20", "other")};
    CHECK(ids(nights(all)) == "a b ");
    CHECK(nights(all).marks.empty());
    all.notes = {note(history_mark_kind::step, "2026-11-20")};
    CHECK(ids(nights(all)) == "a b ");
}
TEST_CASE("a history is seen as of a date, a time or a commit") {
    history_lines all;
    all.runs = {run("aaaaaaa", "2026-11-20T05:00:00Z", 1),
                run("bbbbbbb", "2026-11-21T05:00:00Z", 2),
                run("ccccccc", "2026-11-22T05:00:00Z", 2)};
    all.notes = {note(history_mark_kind::step, "2026-11-22"),
                 note(history_mark_kind::leave_out, "ccccccc")};
    const auto then = [&](const char* when) { return as_of(all, when); };
    CHECK(ids(nights(then("2026-11-21"))) == "aaaaaaa bbbbbbb ");
    CHECK(nights(then("2026-11-21")).marks.empty());
    CHECK(ids(nights(then("2026-11-21T04:59:59Z"))) == "aaaaaaa ");
    CHECK(ids(nights(then("bbbbbbb"))) == "aaaaaaa bbbbbbb ");
    CHECK(ids(nights(then("bbbbbbb0000000ffff"))) == "aaaaaaa bbbbbbb ");
    CHECK(nights(then("2026-11-22")).marks.size() == 2);
    CHECK_THROWS_WITH(then("fffffff"),
                      "LLMBENCH_HISTORY_AT is \"fffffff\": the history has no run of that commit");
    CHECK_THROWS_WITH_AS(then("yesterday"), doctest::Contains("it must be a date"),
                         std::invalid_argument);
    CHECK_THROWS_AS(then("2026-13-01"), std::invalid_argument);
}
TEST_CASE("cohorts differ in any fact, and are read as they were written") {
    cohort a;
    a.gate = "chat";
    a.cpu = "AMD EPYC 7763";
    a.cores = "4";
    CHECK(id_of(a).size() == 16);
    const cohort again = read_cohort(cohort_json(a), "cohorts/x.json");
    CHECK(id_of(again) == id_of(a));
    CHECK(machine_text(a) == "AMD EPYC 7763, 4 cores");
    cohort b = a;
    b.cpu = "AMD EPYC 9V74";
    CHECK(id_of(a) != id_of(b));
    CHECK(first_difference(a, b) == "cpu \"AMD EPYC 7763\", there \"AMD EPYC 9V74\"");
    cohort moved = a;  // the same bytes in other facts
    moved.cpu = "";
    moved.accelerators = "AMD EPYC 7763";
    CHECK(id_of(moved) != id_of(a));
    CHECK_THROWS_AS(read_cohort("{}", "cohorts/x.json"), std::invalid_argument);
}
