// What surrounds a live test: variables, the report directory, standard output, being in a test.
#pragma once
#include <doctest/doctest.h>

#include "llmbench.hpp"

#include "scratch.hpp"
#include "texts.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace live {

using files::scratch;
using texts::content_of;
using texts::holds;

inline std::string this_program() {
#ifdef __APPLE__
    char path[4096];
    std::uint32_t size = sizeof path;
    return ::_NSGetExecutablePath(path, &size) == 0 ? path : "";
#else
    return std::filesystem::read_symlink("/proc/self/exe").string();
#endif
}
/// This program as a server.
inline llmbench::process served() {
    llmbench::process p;
    p.command = "\"" + this_program() + "\" --serve {port}";
    return p;
}

/// Sets a variable of the environment for as long as it lives.
class variable {
public:
    variable(const char* name, const std::string& value) : name_(name) {
        const char* before = std::getenv(name);
        was_set_ = before != nullptr;
        if (before) before_ = before;
        ::setenv(name, value.c_str(), 1);
    }
    ~variable() {
        if (was_set_) ::setenv(name_, before_.c_str(), 1);
        else ::unsetenv(name_);
    }
    variable(const variable&) = delete;
    variable& operator=(const variable&) = delete;

private:
    const char* name_;
    std::string before_{};
    bool was_set_ = false;
};

inline void write(const std::string& file, const std::string& content) {
    std::ofstream(file, std::ios::binary) << content;
}

/// A file that this program's gates left, all of those that have ended in it.
inline std::string report_file(const std::string& name) {
    llmbench::exit_code();  // asked for before the end, it has the files written
    const char* directory = std::getenv("LLMBENCH_REPORT_DIR");
    return std::string(directory && *directory ? directory : "llmbench-report") + "/" + name;
}
/// What result.json tells of the gate of this name, null where it tells nothing.
inline picojson::value reported_gate(const std::string& name) {
    const picojson::value all = texts::parsed(content_of(report_file("result.json")));
    for (const picojson::value& g : all.get("gates").get<picojson::array>())
        if (g.get("name").to_str() == name) return g;
    return {};
}
/// All files of a folder and those in it, one after the other.
inline std::string contents_under(const std::string& folder) {
    std::string all;
    for (const auto& f : std::filesystem::recursive_directory_iterator(folder))
        if (f.is_regular_file()) all += content_of(f.path());
    return all;
}
/// The name of each file of the report directory that holds this.
inline std::string report_files_with(const std::string& words) {
    std::string names;
    int files = 0;
    for (const auto& f : std::filesystem::recursive_directory_iterator(report_file(""))) {
        ++files;
        if (f.is_regular_file() && holds(content_of(f.path()), words))
            names += f.path().filename().string() + " ";
    }
    CHECK(files >= 5);
    return names;
}

/// What is said on standard output while it lives, and is said there when it goes.
class heard {
public:
    heard() : before_(std::cout.rdbuf(said_.rdbuf())) {}
    ~heard() {
        std::cout.rdbuf(before_);
        std::cout << said_.str();
    }
    heard(const heard&) = delete;
    heard& operator=(const heard&) = delete;
    std::string text() const { return said_.str(); }

private:
    std::ostringstream said_{};
    std::streambuf* before_;
};

/// A run, and what the console showed of it.
struct heard_run {
    llmbench::result result;
    std::string said;
};
inline heard_run heard_of(const llmbench::scenario& s) {
    const heard console;
    llmbench::result r = llmbench::run(s);
    return {std::move(r), console.text()};
}

/// Why something is refused, "" where it is not. Outside of test cases run() throws; inside it
/// would fail this one.
template <class F> std::string refusal_by(F&& f) {
    struct outside_of_tests {
        outside_of_tests() { doctest::is_running_in_test = false; }
        ~outside_of_tests() { doctest::is_running_in_test = true; }
    } const guard;
    return texts::refusal_of(f);
}
inline std::string refusal_of(const llmbench::scenario& s) {
    return refusal_by([&] { llmbench::run(s); });
}
/// Why a run has no result, "" where it has one. Inside of a test case it would fail that one.
inline std::string why_no_result(const llmbench::scenario& s) {
    std::string why;
    refusal_by([&] {
        try {
            llmbench::run(s);
        } catch (const std::exception& e) { why = e.what(); }
    });
    return why;
}

}  // namespace live
