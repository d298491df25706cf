// records.jsonl and events.bin beside each other.
#include "effects/gates/record_files.hpp"
#include "extensions/simulated/virtual_environment.hpp"
#include "support/scratch.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/file.h>

using namespace llmbench;
using namespace llmbench::detail;

TEST_CASE("no line is written without its gaps, however long the disk was full") {
    for (const long long full_at : {1, 2, 3, 4}) {
        const files::scratch folder;
        virtual_environment execution_environment;
        const inside_environment here(&execution_environment);
        record_files both(folder.file("reports"));
        both.open();
        long long writes = 0;
        execution_environment.disk = [&](std::size_t&) { return ++writes == full_at ? ENOSPC : 0; };
        for (int i = 0; i < 3; ++i) {
            record r;
            r.events = 3;
            both.write({{r}, {1000, 2000}}, "gate");
        }
        CHECK_FALSE(both.are_whole());
        const std::string lines = file_content(folder.file("reports/records.jsonl"), "records");
        const std::string gaps = file_content(folder.file("reports/events.bin"), "events");
        const auto written = std::count(lines.begin(), lines.end(), '\n');
        CHECK(written == (full_at - 1) / 2);
        CHECK(static_cast<long long>(gaps.size()) == 8 * (full_at / 2));
    }
}

TEST_CASE("gaps are four bytes each, the lowest first, on every machine") {
    const files::scratch folder;
    record_files both(folder.file("reports"));
    both.open();
    record r;
    r.events = 4;
    both.write({{r}, {1000, 0x01020304, 0xFFFFFFFF}}, "gate");
    both.write({{record()}, {}}, "gate");
    both.write({}, "gate");
    CHECK(both.are_whole());
    CHECK(file_content(folder.file("reports/events.bin"), "events") ==
          std::string("\xE8\x03\0\0\x04\x03\x02\x01\xFF\xFF\xFF\xFF", 12));
    const gap_list again = gaps_in(file_content(folder.file("reports/events.bin"), "events"));
    REQUIRE(again.size() == 3);
    CHECK(again[1] == 0x01020304);
    CHECK(both.index().bytes == 12);
    CHECK(both.index().offsets.size() == 2);
}

TEST_CASE("what a disk cannot keep up with is left out, and counted, before it takes all memory") {
    outbox box;
    delivered_requests many, one, taken;
    many.records.resize(outbox::max_waiting + 1);
    box.put(many);
    one.records.resize(1);
    box.put(one);
    CHECK(one.records.empty());
    one.records.resize(2);
    CHECK(box.try_put(one));
    CHECK(box.take(taken) == 3);
    CHECK(taken.records.size() == outbox::max_waiting + 1);
}

namespace {
std::string refusal_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const std::invalid_argument& e) { return e.what(); }
    return "";
}
}  // namespace

TEST_CASE("a file of one of our names that is not ours is refused, and stays") {
    for (const char* name : {"result.json", "junit.xml", "summary.md", "metrics.txt",
                             "report.html", "curves.csv", "answers.jsonl", "records.jsonl",
                             "events.bin"}) {
        CAPTURE(name);
        const files::scratch folder;
        write_file(folder.file(name), "somebody's own");
        record_files both(folder.file("."));
        const std::string why = refusal_of([&] { both.open(); });
        CHECK(why.find(std::string(name) + " is not one of llmbench") != std::string::npos);
        CHECK(file_content(folder.file(name), "it") == "somebody's own");
        write_file(folder.file("result.json"), R"({"schema": "llmbench/result/1"})");
        const bool vouches = std::string(name) != "result.json";
        if (!vouches) continue;
        both.open();  // the result beside it says whose it is
        CHECK(file_content(folder.file("records.jsonl"), "it") == "");
    }
}

TEST_CASE("what a killed program left is ours: records without a result") {
    const files::scratch folder;
    write_file(folder.file("records.jsonl"), record_json(record{}, "a gate"));
    write_file(folder.file("events.bin"), "1234");
    record_files both(folder.file("."));
    both.open();
    CHECK(file_content(folder.file("records.jsonl"), "it") == "");
}

TEST_CASE("a folder is the same by every path that leads to it") {
    const files::scratch folder;
    std::filesystem::create_directories(folder.file("reports/below"));
    std::filesystem::create_directory_symlink(folder.file("reports"), folder.file("link"));
    write_file(folder.file("reports/result.json"), "x");
    write_file(folder.file("elsewhere.json"), "x");
    std::filesystem::create_symlink(folder.file("reports/result.json"), folder.file("by-link"));
    const record_files both(folder.file("reports"));
    for (const char* path : {"reports", "reports/", "reports/.", "link", "link/result.json",
                             "reports/below/../result.json", "by-link", "reports/none.json"}) {
        CAPTURE(path);
        CHECK(refusal_of([&] { both.check_apart(folder.file(path)); }) != "");
    }
    for (const char* path : {".", "elsewhere.json", "reports/below", "none", "none/x.json"}) {
        CAPTURE(path);
        CHECK(refusal_of([&] { both.check_apart(folder.file(path)); }) == "");
    }
}

TEST_CASE("a folder that cannot be locked itself, as on NFS, is locked by a file in it") {
    const files::scratch folder;
    const auto of_nfs = [](int fd, int how) {
        if ((::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR) return ::flock(fd, how);
        errno = EBADF;
        return -1;
    };
    for (int again = 0; again < 2; ++again) {  // what the first one left is no obstacle
        record_files first(folder.file("reports"), of_nfs), second(folder.file("reports"), of_nfs);
        first.open();
        CHECK(refusal_of([&] { second.open(); }).find("another program is measuring") !=
              std::string::npos);
    }
}
