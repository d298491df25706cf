// Profiles that commands and processes take, in real time.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/failing_gates.hpp"
#include "llmbench_faults.hpp"

#include <string>

using namespace live;

TEST_CASE("commands of one's own are told the server, and their last words are told") {
    const logging_server server(quick_engine());
    const scratch dir;
    const std::string file = dir.file("order");
    scenario s = failing_at(server.url(), "own commands");
    s.on_fail = profile{.start = "echo begun {url} > " + file + "; echo recording",
                        .stop = "echo ended $LLMBENCH_URL >> " + file + "; echo one; echo two",
                        .duration = 0.3_s};
    const heard console;
    const result r = run(s);
    CHECK(holds(said_of(r, console), "exited with status 0: two"));
    CHECK(content_of(file) == "begun " + server.url() + "\nended " + server.url() + "\n");
    CHECK(server.profiler_log().empty());
    CHECK(reported_profile("own commands").get("start").get("said").to_str() == "recording");
}

TEST_CASE("a process that was told where to write its profiles says where they are") {
    scenario s = failing_at("", "profiled process");
    process p = served();
    p.env = {{"VLLM_TORCH_PROFILER_DIR", "/tmp/profiles-of-a-test"}, {"KEY", "hidden-from-all"}};
    s.target = p;
    run(s);
    const picojson::value reported = reported_profile("profiled process");
    CHECK(reported.get("taken").get<bool>());
    CHECK(reported.get("files").to_str() ==
          "it is in /tmp/profiles-of-a-test, as VLLM_TORCH_PROFILER_DIR says");
}
