#include "llmbench.hpp"
#include "extensions/history/core/lines.hpp"
#include "extensions/history/folder.hpp"
#include "effects/system/files.hpp"
#include "support/scratch.hpp"

#include <filesystem>
#include <map>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

const history_clock clock_of_test{.latest = "2026-11-24T00:00:00Z"};

std::string line(const std::string& id, const std::string& gate = "chat") {
    const history_run r{.id = id, .at = "2026-11-20T00:00:00Z", .gate = gate, .run_series = "c",
                        .commit = "", .outcome = "passed", .values = {{"mean(tpot)", {1}}}};
    return history_line(r);
}
void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    write_file(file, text);
}
history_settings asked(std::map<std::string, std::string> variables) {
    return history_settings_of([=](const char* name) {
        const auto at = variables.find(name);
        return at == variables.end() ? std::string() : at->second;
    });
}

}  // namespace

TEST_CASE("every file below a folder is read, but for hidden ones and links") {
    const files::scratch dir;
    put(dir.file("2026/11/a.jsonl"), line("a") + line("b"));
    put(dir.file("2025.jsonl"), line("b") + line("c", "other"));
    put(dir.file("2026/.b.jsonl.tmp"), "half");
    put(dir.file(".git/c.jsonl"), "half");
    put(dir.file("README.md"), "words");
    put(dir.file("cohorts/c.json"), series_json({.gate = "chat"}));
    std::filesystem::create_symlink("/dev/zero", dir.file("zero.jsonl"));
    const history_store all = read_history(dir.file(""), clock_of_test);
    CHECK(all.lines.runs.size() == 3);
    CHECK(all.all_series.at("c").gate == "chat");
    const history_store of = history_of_gate(dir.file(""), "chat", "");
    CHECK(of.lines.runs.size() == 2);
    CHECK(history_of_gate(dir.file(""), "other", "").lines.runs.size() == 1);
    CHECK(asked({{"LLMBENCH_HISTORY_DIR", "there"}}).folder_or("own") == "there");
    CHECK(asked({}).folder_or("own") == "own");
    CHECK_THROWS_WITH_AS(history_of_gate(dir.file(""), "chat", "2020-01"),
                         doctest::Contains("LLMBENCH_HISTORY_AT"), std::invalid_argument);
    put(dir.file("half.jsonl"), line("d").substr(0, 50));
    CHECK_THROWS_WITH_AS(read_history(dir.file(""), clock_of_test),
                         doctest::Contains("half.jsonl:1 is no line of a history"),
                         std::invalid_argument);
}
TEST_CASE("a gate's lines are those whose JSON names it, however it is written") {
    const files::scratch dir;
    const std::string name = "Gespr\u00e4ch \"a\" <b>";
    const auto with_name = [&](const std::string& as) {
        static int n = 0;
        std::string one = line(std::to_string(n++), "NAME");
        return one.replace(one.find("\"NAME\""), 6, as);
    };
    put(dir.file("a.jsonl"), line("x", name) + with_name("\"Gespr\\u00e4ch \\\"a\\\" <b>\"") +
                                 with_name("\"Gespr\u00e4ch \\u0022a\\u0022 \\u003cb\\u003e\"") +
                                 with_name("\"Gespr\\u00c4ch \\\"a\\\" <b>\"") + line("y", "chat") +
                                 line("z", name + "2"));
    CHECK(history_of_gate(dir.file(""), name, "").lines.runs.size() == 3);
    CHECK(history_of_gate(dir.file(""), "chat", "").lines.runs.size() == 1);
    // A fact of that name is not the gate's.
    std::string moved = line("m", "chat");
    moved.replace(moved.find("\"id\":"), 5, "\"watched\":{\"gate\":\"other\"},\"id\":");
    moved.erase(moved.find("\"watched\":{},"), 13);
    put(dir.file("b.jsonl"), moved);
    CHECK(history_of_gate(dir.file(""), "chat", "").lines.runs.size() == 2);
}
TEST_CASE("a folder that is not there, and one of too many files, are refused") {
    const files::scratch dir;
    CHECK_THROWS_WITH(read_history(dir.file("none"), clock_of_test),
                      ("there is no history at " + dir.file("none") +
                       ": LLMBENCH_HISTORY=append on main makes it").c_str());
    for (std::size_t i = 0; i < max_history_files; ++i)
        write_file(dir.file(std::to_string(i) + ".jsonl"), "");
    CHECK(read_history(dir.file(""), clock_of_test).lines.runs.empty());
    write_file(dir.file("more.jsonl"), "");
    CHECK_THROWS_WITH_AS(read_history(dir.file(""), clock_of_test),
                         doctest::Contains("more than 10000 files"), std::invalid_argument);
}
TEST_CASE("a line of the future is held against the real time, and ten minutes more") {
    const double before_s = machine_unix_s();
    const history_clock clock = clock_of_machine();
    CHECK(clock.now >= utc_text(before_s));
    CHECK(clock.now <= utc_text(machine_unix_s()));
    CHECK(clock.latest >= utc_text(before_s + max_clock_skew_s));
}
TEST_CASE("the variables of a history") {
    CHECK(asked({}).use == history_use::read);
    CHECK(asked({{"LLMBENCH_HISTORY", "append"}}).use == history_use::append);
    CHECK(asked({{"LLMBENCH_HISTORY", "off"}}).use == history_use::off);
    CHECK_THROWS_WITH_AS(asked({{"LLMBENCH_HISTORY", "yes"}}),
                         doctest::Contains("it must be append or off"), std::invalid_argument);
    CHECK_THROWS_AS(asked({{"LLMBENCH_HISTORY", "append"}, {"LLMBENCH_HISTORY_AT", "2026-11-20"}}),
                    std::invalid_argument);
    CHECK(asked({{"LLMBENCH_MACHINE", " bench-7\n"}}).machine == "bench-7\\n");
}
