// Files that appear whole or not at all, on a disk that takes no more.
#include "extensions/simulated/virtual_environment.hpp"
#include "effects/system/workload_files.hpp"
#include "support/scratch.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>

#include <sys/stat.h>

using namespace llmbench::detail;

namespace {

std::size_t files_in(const std::string& folder) {
    const auto all = std::filesystem::directory_iterator(folder);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}
std::string what_is_thrown_by(drafted_files& d, const std::string& file, const char* content) {
    try {
        d.add(file, content);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return {};
}

}  // namespace

TEST_CASE("files appear together, or none of them does") {
    const files::scratch folder;
    write_file(folder.file("a"), "before");
    {
        drafted_files both;
        both.add(folder.file("a"), "after");
        both.add(folder.file("b"), "new");
        CHECK(file_content(folder.file("a"), "a") == "before");
    }
    CHECK(files_in(folder.file("")) == 1);  // no draft is left, either
    drafted_files both;
    both.add(folder.file("a"), "after");
    both.add(folder.file("b"), "new");
    both.publish();
    CHECK(file_content(folder.file("a"), "a") == "after");
    CHECK(file_content(folder.file("b"), "b") == "new");
    CHECK(files_in(folder.file("")) == 2);
}

TEST_CASE("every reader says that a file is packed, by its first bytes and not by its name") {
    const files::scratch folder;
    const std::string file = folder.file("lengths.txt");
    write_file(file, std::string("\x1F\x8B\x08\0\0\0\n12\n", 10));
    for (const auto& read : {+[](const std::string& f) { file_content(f, "files"); },
                             +[](const std::string& f) { read_numbers(f, "workload.prompt_tokens"); },
                             +[](const std::string& f) { bytes_of(f, "workload.path"); }})
        CHECK_REFUSED(texts::refusal_of([&] { read(file); }), "lengths.txt", "this is gzip", "unpack");
}

TEST_CASE("where one file cannot have its name, all others have theirs") {
    const files::scratch folder;
    write_file(folder.file("a"), "before");
    std::filesystem::create_directories(folder.file("b/taken"));
    {
        drafted_files all;
        for (const char* name : {"a", "b", "c"}) all.add(folder.file(name), "after");
        CHECK_THROWS_WITH_AS(all.publish(),
                             ("cannot write " + folder.file("b") + ": Is a directory").c_str(),
                             std::runtime_error);
    }
    CHECK(files_in(folder.file("")) == 3);  // the directory, too; no draft is left
    for (const char* name : {"a", "c"})
        CHECK(file_content(folder.file(name), name) == "after");
    CHECK(std::filesystem::is_directory(folder.file("b/taken")));
}

TEST_CASE("a disk that is full, and one that opens no file, leave what was there before") {
    const files::scratch folder;
    write_file(folder.file("a"), "before");
    virtual_environment execution_environment;
    const inside_environment here(&execution_environment);
    for (const int problem : {ENOSPC, EMFILE}) {
        std::size_t room = 3;
        execution_environment.disk = [&](std::size_t& bytes) {
            if (problem == EMFILE) return problem;
            const bool is_full = bytes > 0 && room == 0;
            room -= bytes = std::min(bytes, room);
            return is_full ? problem : 0;
        };
        drafted_files one;
        CHECK(what_is_thrown_by(one, folder.file("a"), "after") ==
              "cannot write " + folder.file("a") + ": " + error_text(problem));
    }
    execution_environment.disk = {};
    CHECK(file_content(folder.file("a"), "a") == "before");
    CHECK(files_in(folder.file("")) == 1);
}

TEST_CASE("a report that is sent to a device or a pipe is refused, and does not take its place") {
    const files::scratch folder;
    const std::string pipe = folder.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_THROWS_WITH_AS(write_file(pipe, "text"), ("cannot write " + pipe + ": it is no regular file").c_str(),
                         std::runtime_error);
    CHECK(std::filesystem::is_fifo(pipe));
}

TEST_CASE("no file that is written has a secret that the program was told, in any of its forms") {
    const files::scratch folder;
    vector<std::string> secrets;
    add_secret(secrets, "sk-of-files/1+2");
    add_secret(secrets, "infinite");  // a word of ours, which every file may have
    known_secrets::of_this_program().add(secrets);
    write_file(folder.file("doctor.json"),
               R"({"url":"http://h?key=sk-of-files%2F1%2B2","says":"sk-of-files\/1+2, infinite"})");
    CHECK(file_content(folder.file("doctor.json"), "a file") ==
          R"({"url":"http://h?key=***","says":"***, infinite"})");
}
