// What the environment asks for, as text.
#include <doctest/doctest.h>

#include "effects/system/report_directory.hpp"
#include "effects/system/settings.hpp"

#include "support/texts.hpp"
#include "support/histories.hpp"

#include <map>
#include <string>
#include <utility>

using namespace llmbench::detail;
using texts::refusal_of;

namespace {

using variables = std::map<std::string, std::string>;

variable_lookup in(const variables& set) {
    return [set](const char* name) {
        const auto at = set.find(name);
        return at == set.end() ? std::string() : at->second;
    };
}
settings read(const variables& set) { return settings_of(in(set)); }
std::string refused(const char* name, const char* value) {
    return refusal_of([&] { read({{name, value}}); });
}

}  // namespace

TEST_CASE("nothing set is what a newcomer wants") {
    const settings s = read({});
    CHECK(s.seed == 1);
    CHECK(s.inconclusive == inconclusive_means::warn);
    CHECK_FALSE(s.skip_without_server);
    CHECK(s.time_budget_s == 0);
    CHECK(s.calibrate == 0);
    CHECK(s.calibration == "");
    CHECK_FALSE(s.write_baseline);
    CHECK_FALSE(s.ends_at_first_miss);
    CHECK(s.progress == progress_mode::automatic);
}

TEST_CASE("each variable is read") {
    const settings s = read({{"LLMBENCH_SEED", "18446744073709551615"},
                             {"LLMBENCH_INCONCLUSIVE", "skip"},
                             {"LLMBENCH_SKIP_WITHOUT_SERVER", "yes"},
                             {"LLMBENCH_TIME_BUDGET", "1.5min"},
                             {"LLMBENCH_CALIBRATE", "10"},
                             {"LLMBENCH_CALIBRATION", "noise.json"},
                             {"LLMBENCH_WRITE_BASELINE", "on"},
                             {"LLMBENCH_STOP", "first_miss"},
                             {"LLMBENCH_PROGRESS", "plain"}});
    CHECK(s.seed == 18446744073709551615ull);
    CHECK(s.inconclusive == inconclusive_means::skip);
    CHECK(s.skip_without_server);
    CHECK(s.time_budget_s == 90);
    CHECK(s.calibrate == 10);
    CHECK(s.calibration == "noise.json");
    CHECK(s.write_baseline);
    CHECK(s.ends_at_first_miss);
    CHECK_FALSE(read({{"LLMBENCH_STOP", "all_decided"}}).ends_at_first_miss);
    CHECK(s.progress == progress_mode::plain);
    CHECK(read({{"LLMBENCH_TIME_BUDGET", "300"}}).time_budget_s == 300);
    CHECK(read({{"LLMBENCH_TIME_BUDGET", "0.5s"}}).time_budget_s == 0.5);
    for (const char* no : {"", "0", "false", "no", "off"}) {
        CAPTURE(no);
        CHECK_FALSE(read({{"LLMBENCH_WRITE_BASELINE", no}}).write_baseline);
    }
}

TEST_CASE("what an extension carries out is refused without it, and names its file") {
    for (const char* name : {"LLMBENCH_SHARD", "LLMBENCH_START_AT", "LLMBENCH_RANK_WAIT"})
        CHECK(refused(name, "1/2") == std::string(name) +
                                          " needs llmbench_machines.hpp: include it after "
                                          "llmbench.hpp where LLMBENCH_MAIN is");
}
TEST_CASE("a value that cannot be used is refused by its name") {
    CHECK(refused("LLMBENCH_SEED", "0") ==
          "LLMBENCH_SEED is \"0\": it must be a whole number above 0");
    CHECK(refused("LLMBENCH_SEED", "7 ") ==
          "LLMBENCH_SEED is \"7 \": it must be a whole number above 0");
    CHECK(refused("LLMBENCH_SEED", "18446744073709551616") != "");
    CHECK(refused("LLMBENCH_INCONCLUSIVE", "FAIL") ==
          "LLMBENCH_INCONCLUSIVE is \"FAIL\": it must be warn, fail or skip");
    CHECK(refused("LLMBENCH_WRITE_BASELINE", "maybe") ==
          "LLMBENCH_WRITE_BASELINE is \"maybe\": it must be 1 or 0");
    for (const char* never : {"1", "at_first_miss", "First_miss"}) {
        CAPTURE(never);
        CHECK(refused("LLMBENCH_STOP", never) ==
              "LLMBENCH_STOP is \"" + std::string(never) + "\": it must be first_miss or all_decided");
    }
    for (const char* budget : {"soon", "-1", "0", "nan", "inf", "1e9", "5 min", "10h"}) {
        CAPTURE(budget);
        CHECK(refused("LLMBENCH_TIME_BUDGET", budget).find("it must be a time above zero") !=
              std::string::npos);
    }
    for (const char* repeats : {"2", "101", "3.5", "ten"}) {
        CAPTURE(repeats);
        CHECK(refused("LLMBENCH_CALIBRATE", repeats).find("from 3 to 100") != std::string::npos);
    }
    CHECK(refused("LLMBENCH_PROGRESS", "loud") ==
          "LLMBENCH_PROGRESS is \"loud\": it must be auto, line, plain or off");
    CHECK(refused("LLMBENCH_SEED", "a\nb\x1b[2J").find('\n') == std::string::npos);
}

TEST_CASE("a rehearsal is asked for by 1 or by a file, and leaves nothing for later runs") {
    for (const char* no : {"", "0", "no", "off", "false"})
        CHECK(read({{"LLMBENCH_REHEARSE", no}}).rehearse == "");
    for (const char* yes : {"1", "yes", "on", "true"})
        CHECK(read({{"LLMBENCH_REHEARSE", yes}}).rehearse == "1");
    CHECK(read({{"LLMBENCH_REHEARSE", "result.json"}}).rehearse == "result.json");
    CHECK(refused("LLMBENCH_REHEARSE", "maybe").find("it must be 1, 0, or the result.json") !=
          std::string::npos);
    for (const char* other : {"LLMBENCH_WRITE_BASELINE=1", "LLMBENCH_CALIBRATE=3"}) {
        const std::string text = other, name = text.substr(0, text.find('='));
        const std::string why = refusal_of([&] {
            read({{"LLMBENCH_REHEARSE", "1"}, {name, text.substr(name.size() + 1)}});
        });
        CHECK(why.find("LLMBENCH_REHEARSE and " + name + " are both set") != std::string::npos);
    }
    // What was measured stays where it is.
    CHECK(report_directory_of(in({{"LLMBENCH_REHEARSE", "1"}})) == "llmbench-rehearsal");
    CHECK(report_directory_of(in({{"LLMBENCH_REHEARSE", "1"}, {"LLMBENCH_REPORT_DIR", "r"}})) == "r");
}

TEST_CASE("where a program runs decides what its console shows") {
    CHECK(report_directory_of(in({})) == "llmbench-report");
    CHECK(report_directory_of(in({{"LLMBENCH_REPORT_DIR", "/r"}})) == "/r");
    const auto terminal = [](const variables& set) {
        surroundings s = surroundings_of(in(set));
        s.console.terminal = true;
        return s;
    };
    CHECK(terminal({{"TERM", "xterm"}}).shown(progress_mode::automatic) == progress_mode::line);
    CHECK(terminal({{"TERM", "dumb"}}).shown(progress_mode::automatic) == progress_mode::plain);
    CHECK(surroundings_of(in({{"TERM", "xterm"}})).shown(progress_mode::automatic) ==
          progress_mode::plain);
    CHECK(terminal({}).shown(progress_mode::off) == progress_mode::off);
    CHECK(terminal({{"TERM", "xterm"}}).style().colour);
    CHECK_FALSE(terminal({{"TERM", "xterm"}, {"NO_COLOR", "1"}}).style().colour);
    CHECK_FALSE(terminal({}).style().verbose);
    CHECK(terminal({{"LLMBENCH_VERBOSE", "1"}}).style().verbose);
    CHECK_FALSE(surroundings_of(in({{"GITHUB_ACTIONS", "1"}})).on_github);
    CHECK(surroundings_of(in({{"GITHUB_ACTIONS", "true"}})).on_github);
}

TEST_CASE("a variable that is nearly one of ours is refused, somebody's own is not") {
    const auto refused = [](const std::string& name) {
        return refusal_of([&] { refuse_misspelt({"PATH=/bin", name + "=secret"}); });
    };
    CHECK(refused("LLMBENCH_ULR") ==
          "LLMBENCH_ULR is set and is no variable of llmbench: is LLMBENCH_URL meant? (a variable "
          "of your own needs another name)");
    const std::pair<const char*, const char*> misspelt[] = {
        {"LLMBENCH_BUDGET", "TIME_BUDGET"},       {"LLMBENCH_INCONCLUSIV", "INCONCLUSIVE"},
        {"LLMBENCH_INCONCULSIVE", "INCONCLUSIVE"}, {"LLMBENCH_SEDD", "SEED"},
        {"LLMBENCH_API_KY", "API_KEY"},           {"LLMBENCH_HISTORY_DRI", "HISTORY_DIR"},
        {"LLMBENCH_CALIB", "CALIBRATE"},          {"LLMBENCH_BASELINE", "BASELINE_URL"},
        {"LLMBENCH_REPORT", "REPORT_DIR"},        {"LLMBECH_INCONCLUSIVE", "INCONCLUSIVE"},
        {"LLM_BENCH_URL", "URL"},                 {"LLMBENCHURL", "URL"}};
    for (const auto& [name, meant] : misspelt)
        CHECK(refused(name).find("is LLMBENCH_" + std::string(meant) + " meant") !=
              std::string::npos);
    // Three letters in common are no misspelling.
    for (const char* fine : {"LLMBENCH_URL", "LLMBENCH_URL_B", "LLMBENCH_API_KEY_B",
                             "LLMBENCH_API_B", "LLMBENCH_MY_OWN_THING", "LLMBENCH_SERVER",
                             "LLMBENCH_GPU", "LLMBENCH_BASE", "LLMBENCH_BENCH", "LLMBENCH_DIR",
                             "LLMBENCH_", "LLM_URL", "URL", "", "BASH_FUNC_x%%"})
        CHECK(refused(fine) == "");
    for (const known_variable& v : known_variables) CHECK(refused(v.name) == "");
    CHECK(letters_apart("ulr", "url") == 1);
    CHECK(letters_apart("abc", "") == 3);
    CHECK(letters_apart("ca", "abc") == 3);
}

TEST_CASE("the help lists every variable that is read") {
    const auto is_gone = [](const std::string& name) {
        for (const gone_variable& v : gone_variables)
            if (name == v.name) return true;
        return false;
    };
    const std::string help = variables_help();
    vector<std::string> asked;
    const variable_lookup recorder = [&](const char* name) {
        asked.push_back(name);
        return std::string();
    };
    settings_of(recorder);
    surroundings_of(recorder);
    for (const std::string& name : asked)
        if (name.rfind("LLMBENCH_", 0) == 0 && !is_gone(name))
            CHECK(help.find(" " + name + " ") != std::string::npos);
    CHECK(help.find("LLMBENCH_URL") != std::string::npos);
}

TEST_CASE("a variable that is gone is refused with what does the same") {
    CHECK(refused("LLMBENCH_BISECT", "1").find("ci/README.md") != std::string::npos);
    CHECK(refused("LLMBENCH_BISECT_GOOD", "g").find("stored(file, 0.5_pct)") != std::string::npos);
    CHECK(refused("LLMBENCH_SHOW_AS", "vllm").find("llmbench show") != std::string::npos);
    CHECK_NOTHROW(read({{"LLMBENCH_BISECT", "0"}}));
}
TEST_CASE("a history is added to by whole gates that were judged") {
    CHECK(read({{"LLMBENCH_HISTORY", "append"}}).keeps);
    for (const char* other : {"LLMBENCH_CALIBRATE", "LLMBENCH_WRITE_BASELINE", "LLMBENCH_REHEARSE"}) {
        const variables both = {{"LLMBENCH_HISTORY", "append"},
                                {other, std::string(other) == "LLMBENCH_CALIBRATE" ? "5" : "1"}};
        CHECK(refusal_of([&] { read(both); }).find(other) != std::string::npos);
    }
}
