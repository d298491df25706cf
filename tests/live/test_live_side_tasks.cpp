// Side tasks over sockets: posts and commands of the machine beside a load in real time.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "llmbench_faults.hpp"

#include <string>

#include <signal.h>

using namespace llmbench;
using namespace live;

namespace {
scenario beside(const types::list<side_task>& tasks, const char* name) {
    scenario s = brief(simulated(quick_engine()), name);
    s.arrivals = constant(40_rps);
    s.requests = 40;
    s.repeats = 2;
    s.slos = {p50(e2e) <= 5_s};
    s.beside = tasks;
    return s;
}
}  // namespace

TEST_CASE("commands and posts are carried out beside a load over sockets, to the end of their round") {
    const scratch dir;
    const std::string file = dir.file("order"), pid = dir.file("pid");
    scenario s = beside({{.name = "words", .every = 0.3_s, .steps = {command("echo {n} {url} $LLMBENCH_URL >> " + file),
                                                                     command("sleep 100 & echo $! > " + pid)}},
                         {.name = "adapters", .every = 0.3_s, .steps = {post("/v1/load_lora_adapter", R"({"lora_name": "x"})"),
                                                                        post("/v1/unload_lora_adapter", R"({"lora_name": "x"})")}}},
                        "commands beside");
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    const std::string first = content_of(file).substr(0, content_of(file).find('\n'));
    const std::string url = first.substr(2, first.rfind(' ') - 2);
    CHECK(first == "1 " + url + " " + url);
    CHECK(holds(url, "http://127.0.0.1:"));
    const picojson::value beside = reported_gate("commands beside").get("candidate").get("repeats").get(0).get("beside");
    for (int task : {0, 1}) {
        const auto& steps = beside.get(static_cast<std::size_t>(task)).get("steps").get<picojson::array>();
        CHECK(steps.size() >= 2);
        CHECK(steps.size() % 2 == 0);
        for (const picojson::value& step : steps) CHECK(step.get("failed").to_str() == "");
    }
    CHECK(::kill(std::stoi(content_of(pid)), 0) != 0);  // what was left running is ended with the gate
    check_rejudged(r, s.slos);
}

TEST_CASE("a command that exits with another status, or does not end, is told with its last words") {
    scenario s = beside({{.name = "fails", .steps = {command("echo one; echo two; exit 3")}, .first = 0.1_s}}, "failing command");
    CHECK(holds(std::string(run(s).verdicts()[0].reason), "\"fails\", \"echo one; echo two; exit 3\" exited with status 3: two"));
    s = beside({{.name = "hangs", .steps = {command("sleep 100")}, .first = 0.1_s}}, "hanging command");
    s.limits.total = 1_s;
    CHECK(holds(std::string(run(s).verdicts()[0].reason), "had not ended after 1 s"));
}
