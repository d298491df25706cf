#include "llmbench.hpp"
#include "extensions/history/core/entry.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/reading.hpp"
#include "extensions/history/core/lines.hpp"
#include "support/texts.hpp"

#include <map>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

history_run run(const std::string& id, const std::string& at, double value,
                const std::string& outcome = "passed") {
    return {.id = id, .at = at, .gate = "chat", .run_series = "c", .commit = id + "0000000",
            .outcome = outcome, .values = {{"mean(tpot)", {value}}}};
}
history_note note(annotation_kind kind, const std::string& at, const std::string& run_series = "c") {
    return {"m" + at, "chat", run_series, {kind, at, "because", ""}};
}
history_series runs(const history_lines& all) {
    return series_of(all, runs_of(all, "chat", "c"), "mean(tpot)");
}
std::string ids(const history_series& s) {
    std::string all;
    for (const series_run& n : s.runs) all += n.id + (n.is_left_out ? "-" : " ");
    return all;
}

}  // namespace

TEST_CASE("a run is the last valid run of a UTC date") {
    history_lines all;
    all.runs = {run("a", "2026-11-20T00:00:00Z", 1), run("b", "2026-11-20T23:59:59Z", 2),
                run("c", "2026-11-21T00:00:00Z", 3),
                run("d", "2026-11-21T10:00:00Z", 4, "invalid")};
    CHECK(ids(runs(all)) == "b c ");
    CHECK(runs(all).runs[0].repeats == vector<double>{2});
    all.runs[2].values[0].name = "p50(ttft)";
    CHECK(ids(runs(all)) == "b ");
    all.runs[1].run_series = "other";
    CHECK(ids(runs(all)) == "a ");
    CHECK(runs_by_series(all, "chat").at("other") == 1);
}
TEST_CASE("a run is left out by its date or its id, in the series of the mark or in all") {
    history_lines all;
    all.runs = {run("a", "2026-11-20T00:00:00Z", 1), run("b", "2026-11-21T01:00:00Z", 2)};
    all.notes = {note(annotation_kind::leave_out, "b")};
    CHECK(ids(runs(all)) == "a b-");
    all.notes = {note(annotation_kind::leave_out, "2026-11-20", "")};
    CHECK(ids(runs(all)) == "a-b ");
    CHECK(runs(all).annotations.size() == 1);
    all.notes = {note(annotation_kind::leave_out, "2026-11-20", "other")};
    CHECK(ids(runs(all)) == "a b ");
    CHECK(runs(all).annotations.empty());
    all.notes = {note(annotation_kind::step, "2026-11-20")};
    CHECK(ids(runs(all)) == "a b ");
}
TEST_CASE("an annotation by a run's id is one at its time") {
    history_lines all;
    for (int day = 10; day < 20; ++day)
        all.runs.push_back(run(printed("r%d", day), printed("2026-11-%dT02:00:00Z", day),
                               day < 15 ? 1 : 1.5 + 0.001 * day));
    const auto is_accepted = [&](const std::string& at) {
        all.notes = {note(annotation_kind::accept, at)};
        return history_read_as(runs(all), run_on::main).segments.back().is_accepted;
    };
    CHECK(is_accepted("2026-11-15"));
    CHECK(is_accepted("r15"));
    CHECK_FALSE(is_accepted("r10"));
    CHECK_FALSE(is_accepted("r99"));
    all.notes = {note(annotation_kind::step, "r13")};
    CHECK(history_read_as(runs(all), run_on::main).segments[1].first == 3);
    // Of a run that a later one of its date has replaced, too.
    all.runs.push_back(run("late", "2026-11-13T23:00:00Z", 1));
    all = in_order(all);
    CHECK(history_read_as(runs(all), run_on::main).segments[1].first == 3);
}
TEST_CASE("a statistic's name tells its metric, its offset and which side is better") {
    struct known {
        const char* name;
        const char* metric;
        bool more;
        double offset;
    };
    for (const known& k : {known{"mean(tpot)", "tpot", false, 0},
                           {"p90(ttft) of \"a (b)\"", "ttft", false, 0},
                           {"output_throughput", "output_throughput", true, 0},
                           {"output_throughput of turns(2)", "output_throughput", true, 0},
                           {"p10(decode_speed) of \"a\"", "decode_speed", true, 0},
                           {"percentile(decode_speed, 0.02)", "decode_speed", true, 0},
                           {"drift(p10(decode_speed))", "drift", true, 0},
                           {"drift(output_throughput) of \"a\"", "drift", true, 0},
                           {"drift(p90(ttft))", "drift", false, 0},
                           {"mean(queue_time)", "queue_time", false, 0.001},
                           {"cached_share", "cached_share", true, 0.01},
                           {"max(server_metric(\"ttft(x)\"))", "server_metric", false, 0},
                           {"p50(ttft) of \"a\" / p50(ttft) of \"b\"", "ratio", false, 0}}) {
        CAPTURE(k.name);
        REQUIRE(metric_of_statistic(k.name));
        CHECK(std::string(metric_of_statistic(k.name)->name) == k.metric);
        CHECK(is_better_if_more(k.name) == k.more);
        CHECK(offset_of(k.name) == k.offset);
    }
    CHECK(metric_of_statistic("mean(own_metric)") == nullptr);
    CHECK(metric_of_statistic("") == nullptr);
    // Of a user's metric the runs say it.
    history_lines all;
    all.runs = {run("a", "2026-11-20T00:00:00Z", 1)};
    all.runs[0].values[0].name = "mean(own_metric)";
    const auto own = [&] { return series_of(all, runs_of(all, "chat", "c"), "mean(own_metric)"); };
    CHECK(own().at_most);
    all.runs[0].more_is_better = {"mean(own_metric)"};
    CHECK_FALSE(own().at_most);
    history_lines again;
    read_history_line(history_line(all.runs[0]), "f:1", {.latest = "2027"}, again);
    CHECK(again.runs[0].more_is_better == all.runs[0].more_is_better);
    CHECK(again.runs[0].objectives.empty());
    all.runs[0].objectives = {"mean(own_metric)"};
    read_history_line(history_line(all.runs[0]), "f:1", {.latest = "2027"}, again);
    CHECK(again.runs.back().objectives == all.runs[0].objectives);
    CHECK(!texts::holds(history_line(run("a", "2026-11-20T00:00:00Z", 1)), "more_is_better"));
}
TEST_CASE("a history is seen as of a date, a time or a commit") {
    history_lines all;
    all.runs = {run("aaaaaaa", "2026-11-20T05:00:00Z", 1),
                run("bbbbbbb", "2026-11-21T05:00:00Z", 2),
                run("ccccccc", "2026-11-22T05:00:00Z", 2)};
    all.notes = {note(annotation_kind::step, "2026-11-22"),
                 note(annotation_kind::leave_out, "ccccccc")};
    const auto then = [&](const char* when) { return as_of(all, when); };
    CHECK(ids(runs(then("2026-11-21"))) == "aaaaaaa bbbbbbb ");
    CHECK(runs(then("2026-11-21")).annotations.empty());
    CHECK(ids(runs(then("2026-11-21T04:59:59Z"))) == "aaaaaaa ");
    CHECK(ids(runs(then("bbbbbbb"))) == "aaaaaaa bbbbbbb ");
    CHECK(ids(runs(then("bbbbbbb0000000ffff"))) == "aaaaaaa bbbbbbb ");
    CHECK(runs(then("2026-11-22")).annotations.size() == 2);
    CHECK_THROWS_WITH(then("fffffff"),
                      "LLMBENCH_HISTORY_AT is \"fffffff\": the history has no run of that commit");
    CHECK_THROWS_WITH_AS(then("yesterday"), doctest::Contains("it must be a date"),
                         std::invalid_argument);
    CHECK_THROWS_AS(then("2026-13-01"), std::invalid_argument);
}
TEST_CASE("series differ in any fact, and are read as they were written") {
    run_series a;
    a.gate = "chat";
    a.cpu = "AMD EPYC 7763";
    a.cores = "4";
    CHECK(id_of(a).size() == 16);
    const run_series again = read_series(series_json(a), "cohorts/x.json");
    CHECK(id_of(again) == id_of(a));
    CHECK(machine_text(a) == "AMD EPYC 7763, 4 cores");
    run_series b = a;
    b.cpu = "AMD EPYC 9V74";
    CHECK(id_of(a) != id_of(b));
    CHECK(first_difference(a, b) == "cpu \"AMD EPYC 7763\", there \"AMD EPYC 9V74\"");
    run_series moved = a;  // the same bytes in other facts
    moved.cpu = "";
    moved.accelerators = "AMD EPYC 7763";
    CHECK(id_of(moved) != id_of(a));
    CHECK_THROWS_AS(read_series("{}", "cohorts/x.json"), std::invalid_argument);
}

TEST_CASE(
    "a series is told from others by its load's values, and a corrected word of it moves no run") {
    run_series older;
    older.gate = "chat";
    older.arrivals = "poisson(8 req/s)";
    older.workload = "synthetic, prompt 10 tokens";
    run_series now = older;
    now.load = "0123456789abcdef";
    CHECK(read_series(series_json(now), "cohorts/x.json").load == now.load);
    run_series corrected = now;
    corrected.workload = "made-up words, 10 tokens a prompt";
    CHECK(id_of(corrected) == id_of(now));
    run_series other = now;
    other.load = "fedcba9876543210";
    CHECK(id_of(other) != id_of(now));
    CHECK(id_of(older) != id_of(now));

    // What an older version wrote, which has the words alone, is found by these.
    history_lines lines;
    lines.runs.push_back({.id = "1", .at = "2026-11-20T00:00:00Z", .gate = "chat",
                          .run_series = id_of(older), .commit = "", .outcome = "passed"});
    lines.notes.push_back({"m", "chat", id_of(older), {annotation_kind::leave_out, "1", "hot", ""}});
    const auto joined_with = [&](const run_series& c) {
        history_lines joined = lines;
        std::map<std::string, run_series> known = {{id_of(older), older}, {id_of(c), c}};
        join_older_series(joined, known);
        CHECK(known.size() == (c.workload == older.workload ? 1 : 2));
        return joined;
    };
    const history_lines joined = joined_with(now);
    CHECK(runs_of(joined, "chat", id_of(now)).size() == 1);
    CHECK(joined.notes[0].run_series == id_of(now));
    CHECK(runs_of(joined_with(corrected), "chat", id_of(corrected)).empty());
}

TEST_CASE("machines of known hardware share a series, those that had one of their own too") {
    run_series now;
    now.gate = "chat";
    now.cpu = "AMD EPYC 7763";
    run_series older = now, remote = now;
    older.machine = "bench-7";
    remote.cpu = "";
    remote.machine = "bench-7";
    history_lines lines;
    for (const run_series& c : {older, remote, now})
        lines.runs.push_back({.id = id_of(c), .at = "2026-11-20T00:00:00Z", .gate = "chat",
                              .run_series = id_of(c), .commit = "", .outcome = "passed"});
    std::map<std::string, run_series> known = {
        {id_of(older), older}, {id_of(remote), remote}, {id_of(now), now}};
    join_older_series(lines, known);
    CHECK(known.size() == 2);
    CHECK(lines.runs[0].run_series == id_of(now));
    CHECK(lines.runs[0].machine == "bench-7");
    CHECK(lines.runs[1].run_series == id_of(remote));
    CHECK(lines.runs[2].machine == "");
}
