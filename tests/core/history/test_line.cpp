#include "llmbench.hpp"
#include "extensions/history/core/lines.hpp"
#include "support/texts.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

const history_clock clock_of_test{"2026-11-24T00:00:00Z", "2026-11-24T00:10:00Z"};

history_run a_run() {
    return {.id = "20261123T021504Z-e2bbe02a-7c1e9f40.1",
            .at = "2026-11-23T02:15:04Z",
            .gate = "chat \"a\"\n",
            .run_series = "3fa9c1d2e4b7a605",
            .commit = "e2bbe02a91f3",
            .watched = {{"card", "9c2e"}, {"driver", "570.86"}, {"server", "vllm 0.33.0"}},
            .outcome = "passed",
            .values = {{"mean(tpot)", {0.0123117, 0.0122745, 0.0124012}}, {"p90(ttft)", {0.2}}}};
}
history_lines read(const std::string& text) {
    history_lines all;
    read_history_file(text, "h/a.jsonl", clock_of_test, all);
    return all;
}
std::string refusal(const std::string& text) {
    try {
        read(text);
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "";
}
std::string changed(std::string line, const std::string& from, const std::string& to) {
    const std::size_t at = line.find(from);
    REQUIRE(at != std::string::npos);
    return line.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a run is read as it was written, and written the same again") {
    const std::string line = history_line(a_run());
    CHECK(line.substr(0, 39) == R"({"schema":"llmbench/history/1","id":"20)");
    const history_lines all = read(line);
    REQUIRE(all.runs.size() == 1);
    CHECK(all.notes.empty());
    CHECK(history_line(all.runs[0]) == line);
    CHECK(all.runs[0].values[0].repeats == a_run().values[0].repeats);
    CHECK(all.runs[0].watched == a_run().watched);
}
TEST_CASE("a mark is read as it was written, and says why") {
    const history_note n{
        "m1", "chat", "3fa9", {annotation_kind::no_step, "2026-11-01", "hot", "me"}};
    const std::string line = history_line(n);
    const history_lines all = read(line);
    REQUIRE(all.notes.size() == 1);
    CHECK(history_line(all.notes[0]) == line);
    CHECK(all.notes[0].what.kind == annotation_kind::no_step);
    CHECK(refusal(changed(line, R"("hot")", R"("")")) ==
          "h/a.jsonl:1: why is \"\", a text that is not empty is allowed");
    CHECK(refusal(changed(line, R"("no_step")", R"("no")")) ==
          "h/a.jsonl:1: mark is \"no\", one of accept, step, no_step, leave_out is allowed");
}
TEST_CASE("a line of six statistics has 700 bytes at most") {
    history_run r = a_run();
    r.gate = "chat";
    r.machine = "f10cs05";
    r.watched = {{"server", "vllm 0.33.0"}, {"driver", "570.86.10"}, {"card", "9c2e"}};
    r.values.clear();
    for (const char* name : {"mean(tpot)", "p50(ttft)", "p90(ttft)", "p99(ttft)", "p50(e2e)",
                             "output_throughput"})
        r.values.push_back({name, {in_six_digits(0.0123456789), in_six_digits(1234.56789),
                                   in_six_digits(0.3333333)}});
    CHECK(history_line(r).size() <= 700);
}
TEST_CASE("what is no line of a history is refused with its file and number") {
    const std::string line = history_line(a_run());
    CHECK(refusal(line + "\n" + "<<<<<<< HEAD\n") ==
          "h/a.jsonl:3 is no line of a history: <<<<<<< HEAD");
    CHECK(refusal(line.substr(0, line.size() / 2)).find("h/a.jsonl:1 is no line of a history: {") ==
          0);
    CHECK(refusal("[1]\n") == "h/a.jsonl:1 is no line of a history: [1]");
    CHECK(refusal(line + "{\"schema\":\"llmbench/result/2\"}\n").find("h/a.jsonl:2 is no line") ==
          0);
    CHECK(refusal(changed(line, "history/1", "history/2")) ==
          "h/a.jsonl:1 has the schema llmbench/history/2, which a later llmbench wrote; this one "
          "reads llmbench/history/1");
    CHECK(refusal(changed(line, "2026-11-23T02", "2027-11-23T02")) ==
          "h/a.jsonl:1 is of 2027-11-23T02:15:04Z, and now it is 2026-11-24T00:00:00Z: one of the "
          "two clocks is wrong");
    CHECK(refusal(changed(line, "0.0122745", "-1")).find("h/a.jsonl:1: ") == 0);
    CHECK(refusal(changed(line, "0.0122745", "null")).find("mean(tpot)") != std::string::npos);
    CHECK(refusal(changed(line, R"("outcome":"passed",)", "")) ==
          "h/a.jsonl:1: it has no field outcome");
    CHECK(refusal(changed(line, "02:15:04Z", "02:75:04Z")).find("h/a.jsonl:1: at is") == 0);
}
TEST_CASE("a clock that is a little ahead writes lines that are read") {
    history_run r = a_run();
    r.at = "2026-11-24T00:10:00Z";
    CHECK(read(history_line(r)).runs.size() == 1);
    r.at = "2026-11-24T00:10:01Z";
    CHECK(refusal(history_line(r)) ==
          "h/a.jsonl:1 is of 2026-11-24T00:10:01Z, and now it is 2026-11-24T00:00:00Z: one of the "
          "two clocks is wrong");
}
TEST_CASE("a line that is too long is refused by its length") {
    history_run r = a_run();
    r.commit = std::string(longest_history_line, 'c');
    const std::string line = history_line(r);
    CHECK(refusal(line) == "h/a.jsonl:1 has " + std::to_string(line.size() - 1) +
                               " bytes: a line of a history has 65536 at most");
}
TEST_CASE("a byte order mark begins any file, also one of those that were put together") {
    history_run second = a_run();
    second.id = "b";
    const std::string mark = "\xEF\xBB\xBF";
    CHECK(read(mark + history_line(a_run()) + mark + history_line(second)).runs.size() == 2);
    CHECK(read(mark + "\n").runs.empty());
}
TEST_CASE("lines are in the order of their times, and equal ids count once") {
    history_run second = a_run();
    second.id = "b";
    second.at = "2026-11-23T03:00:00Z";
    const std::string twice = history_line(second) + history_line(a_run()) + history_line(second);
    const history_lines all = in_order(read(twice));
    REQUIRE(all.runs.size() == 2);
    CHECK(all.runs[0].id == a_run().id);
    CHECK(all.runs[1].id == "b");
}
TEST_CASE("equal ids count once whatever times they are of: the oldest") {
    history_run later = a_run();
    later.at = "2026-11-23T23:15:04Z";
    const history_lines all = in_order(read(history_line(later) + history_line(a_run())));
    REQUIRE(all.runs.size() == 1);
    CHECK(all.runs[0].at == a_run().at);
}
