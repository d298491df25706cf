// Gates and the history of main: what becomes a run of it, and 60 days of a server's life.
#include "support/environment.hpp"
#include "support/golden.hpp"
#include "support/rejudged.hpp"
#include "support/scratch.hpp"
#include "llmbench_compare.hpp"
#include "llmbench_history.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace llmbench;
using namespace live;

TEST_CASE("what has no verdict of its own is not added, and says so") {
    const variable appends("LLMBENCH_HISTORY", "append");
    scenario s = brief(simulated(engine_of(15_ms)), "a run and no gate");
    CHECK(holds(heard_of(s).said,
                "not added to the history: run() has no verdict of its own, and "
                "a history is of gates"));
    s.name = "compared and no gate";
    s.target = {};
    const heard console;
    compare(s, {{"one", simulated(engine_of(15_ms))}, {"other", simulated(engine_of(20_ms))}});
    CHECK(holds(console.text(), "not added to the history: compare() has no verdict of its own"));
}

TEST_CASE("a history without a folder, or of runs that differ by more than 50 %, is refused") {
    scenario s = brief(simulated(engine_of(15_ms)), "held against nothing");
    s.baseline = history("");
    CHECK(holds(refusal_of(s), "baseline is history(\"\"): it must name a folder"));
    s.baseline = history("perf-history", 60_pct);
    CHECK(holds(refusal_of(s), "the standard deviation between runs is 60 %"));
}

// ---- 60 days of a server

namespace {

struct day {
    int number;
    bool is_new_machine() const { return number >= 48; }
    double slower() const {  // than at first, as a factor
        double by = 1;
        if (number >= 20) by *= 0.94;  // the server's new version
        if (number >= 32) by *= 1.08;  // somebody's change
        if (is_new_machine()) by *= 0.70;
        return by;
    }
    double trouble() const { return number == 14 || number == 27 ? 1.15 : 1; }
    /// What a day does to a machine, within 1.5 % either way.
    double weather() const { return 1 + 0.015 * std::sin(7.0 * number * number); }
    std::string commit() const {
        char hash[20];
        std::snprintf(hash, sizeof hash, "%012x", 0xe2bbe02au + 77777u * static_cast<unsigned>(number));
        return hash;
    }
};
/// UTC, so many days before.
std::string date_before(std::time_t now, int days) {
    const std::time_t then = now - 86400 * static_cast<std::time_t>(days);
    char date[20];
    std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&then));
    return date;
}
std::string replaced(std::string s, const std::string& what, const std::string& by) {
    for (std::size_t at = 0; (at = s.find(what, at)) != std::string::npos; at += by.size())
        s.replace(at, what.size(), by);
    return s;
}

/// Of a report the verdict and what it says of the history, each with the lines that go on with it.
std::string told(const std::string& of, const std::string& report) {
    std::istringstream lines(report);
    std::string out, line;
    for (bool keeps = false; std::getline(lines, line);) {
        if (line.find("baseline  measured ") != line.npos || line.rfind("  history: ", 0) == 0) {
            keeps = true;
            line = line.substr(line.find_first_of("PFIh"));  // without a sign that some terminals lack
        } else {
            keeps = keeps && line.rfind("      ", 0) == 0;
        }
        if (!keeps) continue;
        out += (out.empty() ? of + "  " : "    ") + line.substr(line.find_first_not_of(' ')) + "\n";
    }
    return out;
}

/// The same in a few words, as most days are alike.
std::string brief_of(const std::string& said) {
    const std::size_t value = said.find("measured ") + 9;
    return said.substr(0, said.find(' ', said.find("  ") + 2)) + "  " +
           said.substr(value, std::min(said.find(" (", value), said.find(',', value)) - value);
}

/// The history's folder as a day finds it: the program's own lines, each of its own date.
class life {
public:
    void add_mark(const char* kind, int about, const char* why) {
        marks_.push_back({about, std::string(R"({"schema":"llmbench/history/1","id":")") + why +
                                     R"(","mark":")" + kind + R"(","gate":"chat","at":"DATE","why":")" +
                                     why + "\"}"});
    }
    void begin(int number) {
        std::filesystem::create_directories(folder_);
        today_ = number;
        now_ = std::time(nullptr);
        std::string lines;
        for (const auto& [about, line] : runs_) lines += of_its_date(about, line);
        for (const auto& [about, line] : marks_) lines += of_its_date(about, line);
        write(folder_ + "/runs.jsonl", lines);
        for (const auto& f : std::filesystem::directory_iterator(folder_))
            if (f.is_directory() && f.path().filename() != "cohorts")
                std::filesystem::remove_all(f.path());
    }
    /// What a program says of today's server, `seconds` a step.
    std::string said(const day& n, double seconds, bool appends) {
        const variable mode("LLMBENCH_HISTORY", appends ? "append" : "");
        const variable folder("LLMBENCH_HISTORY_DIR", folder_);
        const variable machine("LLMBENCH_MACHINE", n.is_new_machine() ? "bench-2" : "bench-1");
        const variable summary("GITHUB_STEP_SUMMARY", "");
        const variable verbose("LLMBENCH_VERBOSE", "1");
        const variable commit("GITHUB_SHA", n.commit());
        const variable step("DAY_STEP", std::to_string(seconds));
        const variable seed("DAY_SEED", std::to_string(2 * n.number + appends));
        const variable reports("LLMBENCH_REPORT_DIR", files_.file("report"));
        std::string words;
        std::FILE* const out = ::popen(
            ("'" + this_program() + "' --no-skip --test-case='one day of a server' 2>&1").c_str(),
            "r");
        REQUIRE(out);
        char some[4096];
        for (std::size_t got = 0; (got = std::fread(some, 1, sizeof some, out)) > 0;)
            words.append(some, got);
        ::pclose(out);
        return words;
    }
    /// Keeps what the program has added today.
    void end() {
        for (const auto& f : std::filesystem::recursive_directory_iterator(folder_)) {
            if (f.path().extension() != ".jsonl" || f.path().filename() == "runs.jsonl") continue;
            std::string line = content_of(f.path());
            const std::size_t at = line.find("\"at\":\"") + 6;
            runs_.emplace_back(today_, line.replace(at, 20, "DATET02:15:04Z"));
        }
    }
    std::size_t runs() const { return runs_.size(); }
    /// Days by their numbers, for their dates are of today.
    std::string by_number(std::string words) const {
        for (int i = 0; i <= today_; ++i)
            words = replaced(words, date_before(now_, today_ - i), "day " + std::to_string(i));
        return words;
    }

private:
    std::string of_its_date(int about, const std::string& line) const {
        const std::string dated = replaced(line, "DATE", date_before(now_, today_ - about));
        return dated.back() == '\n' ? dated : dated + "\n";
    }
    scratch files_{};
    const std::string folder_ = files_.file("h");
    int today_ = 0;
    std::time_t now_ = 0;  // as the day's files were written
    std::vector<std::pair<int, std::string>> runs_{}, marks_{};
};

}  // namespace

TEST_CASE("one day of a server" * doctest::skip()) {
    if (!std::getenv("DAY_STEP")) return;
    engine e = engine_of(time_span::from_seconds(std::stod(std::getenv("DAY_STEP"))));
    e.jitter = 0.02;
    e.seed = std::stoull(std::getenv("DAY_SEED"));
    scenario s = brief(endpoint_of(e), "chat");
    s.baseline = history();
    s.slos = {mean(tpot) <= 1.05 * baseline};
    gate(s);
}

/// Where something happens, and seldom besides.
bool is_told_whole(int number) {
    for (const int whole : {0, 1, 14, 21, 27, 32, 33, 40, 49, 59})
        if (number == whole) return true;
    return false;
}

TEST_CASE("60 days of a server whose runs are added by its gates") {
    life of;
    std::string out;
    for (int i = 0; i < 60; ++i) {
        const day n{i};
        if (i == 31) of.add_mark("leave_out", 27, "the room was hot");
        if (i == 39) of.add_mark("accept", 32, "longer system prompt");
        of.begin(i);
        const double usual = 0.010 * n.slower();
        const std::string main = of.said(n, usual * n.trouble() * n.weather(), true);
        const std::string branch = of.said(n, usual * day{i + 100}.weather(), false);
        of.end();
        REQUIRE(of.runs() == static_cast<std::size_t>(i) + 1);
        const std::string of_main = told("main", main), of_branch = told("branch", branch);
        out += "day " + std::to_string(i);
        out += is_told_whole(i) ? "\n" + of.by_number(of_main + of_branch)
                                : "  " + brief_of(of_main) + "  " + brief_of(of_branch) + "\n";
    }
    golden::check("days.txt", out);
}
