#include "llmbench.hpp"
#include "extensions/history/folder.hpp"
#include "effects/system/files.hpp"
#include "support/scratch.hpp"

#include <filesystem>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

const std::string at = "2026-11-20T02:15:04Z";

vector<history_entry> two_gates() {
    vector<history_entry> gates(2);
    for (std::size_t i = 0; i < 2; ++i) {
        gates[i].in.gate = gates[i].run.gate = i == 0 ? "chat" : "long";
        gates[i].run.run_series = id_of(gates[i].in);
        gates[i].run.outcome = "passed";
        gates[i].run.values = {{"mean(tpot)", {0.01, 0.02, 0.03}}};
    }
    return gates;
}
history_store read(const std::string& folder) { return read_history(folder, {.latest = "2099"}); }

}  // namespace

TEST_CASE("a program is one file, by its time and its commit, with its series in words") {
    const files::scratch dir;
    const std::string file = append_history(dir.file("h"), two_gates(), at, "e2bbe02a91f3c0ffee");
    CHECK(file.find(dir.file("h") + "/2026/11/20261120T021504Z-e2bbe02a-") == 0);
    const history_store all = read(dir.file("h"));
    REQUIRE(all.lines.runs.size() == 2);
    CHECK(all.lines.runs[0].commit == "e2bbe02a91f3");
    CHECK(all.lines.runs[0].id + ".jsonl" ==
          std::filesystem::path(file).stem().string() + ".1.jsonl");
    CHECK(all.all_series.at(all.lines.runs[1].run_series).gate == "long");
    append_history(dir.file("h"), two_gates(), at, "");
    CHECK(read(dir.file("h")).lines.runs.size() == 4);
    CHECK(files_of_history(dir.file("h")).all_series.size() == 2);
}
TEST_CASE("fifty programs add at once, and nothing is lost") {
    const files::scratch dir;
    vector<pid_t> all;
    for (int i = 0; i < 50; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            try {
                append_history(dir.file("h"), two_gates(), at, "e2bbe02a91f3");
                ::_exit(0);
            } catch (...) {
                ::_exit(1);
            }
        }
        all.push_back(child);
    }
    for (const pid_t child : all) {
        int status = 1;
        ::waitpid(child, &status, 0);
        CHECK(status == 0);
    }
    CHECK(read(dir.file("h")).lines.runs.size() == 100);
    for (const auto& e : std::filesystem::recursive_directory_iterator(dir.file("h")))
        CHECK(e.path().filename().string().front() != '.');
}
TEST_CASE("a program that is killed while it writes leaves nothing that is read") {
    for (int i = 0; i < 20; ++i) {
        const files::scratch dir;
        append_history(dir.file("h"), two_gates(), at, "");
        const pid_t child = ::fork();
        if (child == 0)
            for (;;) append_history(dir.file("h"), two_gates(), at, "");
        ::usleep(static_cast<useconds_t>(500 * i));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        CHECK(read(dir.file("h")).lines.runs.size() % 2 == 0);
    }
}
TEST_CASE("a file that is there is never written over, nor written through a link") {
    const files::scratch dir;
    CHECK(add_file(dir.file("a.jsonl"), "one\n", 1));
    CHECK_FALSE(add_file(dir.file("a.jsonl"), "two\n", 2));
    CHECK(file_content(dir.file("a.jsonl"), "test") == "one\n");
    std::filesystem::create_symlink(dir.file("elsewhere"), dir.file("b.jsonl"));
    CHECK_FALSE(add_file(dir.file("b.jsonl"), "three\n", 3));
    CHECK_FALSE(std::filesystem::exists(dir.file("elsewhere")));
}
TEST_CASE("a folder with a day that has not come takes nothing") {
    const files::scratch dir;
    std::filesystem::create_directories(dir.file("h"));
    write_file(dir.file("h/20990101T000000Z-00000000-00000000.jsonl"), "");
    CHECK_THROWS_WITH_AS(append_history(dir.file("h"), two_gates(), at, ""),
                         doctest::Contains("of a day that this machine says has not come"),
                         std::runtime_error);
    CHECK_THROWS_WITH_AS(append_history("/proc/none", two_gates(), at, ""),
                         doctest::Contains("cannot write /proc/none"), std::runtime_error);
}
