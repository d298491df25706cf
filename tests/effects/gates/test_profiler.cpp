// How a server is asked for a profile, what is made of its answers, and that what was begun is
// ended.
#include "extensions/faults/api.hpp"
#include "extensions/faults/profiler.hpp"
#include "extensions/simulated/bodies.hpp"

#include "support/scratch.hpp"
#include "support/scripted_server.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using texts::content_of;
using texts::holds;

namespace {

using answers = std::vector<scripted::answer>;

scripted::answer says(const std::string& status, const std::string& body) {
    return {scripted::send(scripted::sized(status, "text/plain", body)), scripted::close()};
}
/// A profile of 50 ms from a server that gives these answers, whatever it is asked.
struct asked_server {
    explicit asked_server(const answers& script) : server(script) {
        target.bring_up();
    }
    taken_profile profile(const llmbench::profile& what = {}, double left_s = 0) {
        profiler by(what, target, 1);
        const long long deadline = left_s > 0 ? now_ns() + ns_of(left_s) : 0;
        return profile_under_load(by, 0.05, deadline, [&](long long until_ns) {
            asked_before_load = server.log().size();
            ends_in_s = static_cast<double>(until_ns - now_ns()) * 1e-9;
            during_load();
            return sends;
        });
    }

    scripted::server server;
    live_target target{endpoint{.url = server.url() + "/v1",
                                .model = "m",
                                .headers = {{"X-Gateway", "t0ken-of-a-gateway"}}},
                       run_variant::candidate};
    std::function<void()> during_load = [] {};
    std::size_t asked_before_load = 99, sends = 7;
    double ends_in_s = 99;
};
void check_none(const taken_profile& t, const std::string& why) {
    CHECK(profile_text(t) == "no profile: " + why);
}

}  // namespace

TEST_CASE("a profile is begun, there is load, and it is ended") {
    asked_server s({says("200 OK", "Start profiling.\n"), says("204 No Content", "")});
    const taken_profile t = s.profile();
    CHECK(s.asked_before_load == 1);
    CHECK(s.ends_in_s <= 0.05);
    const std::vector<scripted::request> asked = s.server.log();
    REQUIRE(asked.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(asked[i].method == "POST");
        CHECK(asked[i].path == (i == 0 ? "/start_profile" : "/stop_profile"));
        CHECK(asked[i].body == "{}");
        CHECK(asked[i].header("X-Gateway") == "t0ken-of-a-gateway");
    }
    CHECK(t.none.empty());
    CHECK(t.requests == 7);
    CHECK(holds(profile_text(t), " of the same load, 7 requests; POST /start_profile answered "
                                 "HTTP 200: Start profiling.; POST /stop_profile answered HTTP "
                                 "204; the server writes it where its VLLM_TORCH_PROFILER_DIR"));
}

TEST_CASE("a server without a profiler is sent no load for it") {
    asked_server s({says("404 Not Found", R"({"detail":"Not Found"})")});
    check_none(s.profile(),
               "POST /start_profile answered HTTP 404: vLLM has it where it was started with "
               "VLLM_TORCH_PROFILER_DIR or --profiler-config; profile{.start = ..., .stop = ...} "
               "takes commands of your own");
    CHECK(s.asked_before_load == 99);
    CHECK(s.server.log().size() == 1);
}

TEST_CASE("what a server says instead is told without secrets, on one line and not at length") {
    asked_server refuses({says("400 Bad Request", "no t0ken-of-a-gateway\n\x1b[2J")});
    check_none(refuses.profile(), "POST /start_profile answered HTTP 400: no ***\\n\\x1b[2J");
    asked_server talks({says("500 Oops", std::string(5000, 'x'))});
    CHECK(profile_text(talks.profile()).size() < 300);
    asked_server full({says("200 OK", ""), says("500 Oops", "the disk is full")});
    const taken_profile t = full.profile();
    CHECK(full.asked_before_load == 1);
    check_none(t, "POST /stop_profile answered HTTP 500: the disk is full; it may go on, and slows "
                  "down whatever this server does next");
}

TEST_CASE("a profile that could not be ended is told, and ended before the next load if it can be") {
    asked_server s({says("200 OK", ""), says("500 Oops", "busy writing"), says("500 Oops", "busy"),
                    says("200 OK", "")});
    const taken_profile t = s.profile();
    CHECK(t.goes_on);
    CHECK(holds(profile_text(t), "busy writing; it may go on, and slows down whatever this server "
                                 "does next"));
    unended_profiles().push_back({s.target.facts().url, "first", {}});
    asked_server elsewhere({says("200 OK", "")});
    CHECK(end_profiles(elsewhere.target, 2).empty());
    CHECK(elsewhere.server.log().empty());
    const std::string first = "gate \"first\" had begun a profile on this server and could not end "
                              "it: ";
    CHECK(end_profiles(s.target, 2) ==
          vector{first + "it may be slower for it still (POST /stop_profile answered HTTP "
                              "500: busy)"});
    CHECK(end_profiles(s.target, 3) ==
          vector{first + "it was ended now, before this load"});
    CHECK(end_profiles(s.target, 4).empty());
    CHECK(s.server.log().size() == 4);
}

TEST_CASE("a profile that was ended, or never begun, does not go on") {
    asked_server well({says("200 OK", "")});
    CHECK_FALSE(well.profile().goes_on);
    asked_server none({says("404 Not Found", "")});
    CHECK_FALSE(none.profile().goes_on);
}

TEST_CASE("a profile that may have begun is ended though nothing was answered") {
    // The first question is never answered, for as long as the time that is left.
    asked_server s({{scripted::stall()}, says("200 OK", "")});
    const taken_profile t = s.profile({}, 6);
    CHECK(holds(t.none, "POST /start_profile failed: no answer within 5."));
    CHECK(s.asked_before_load == 99);
    REQUIRE(s.server.log().size() == 2);
    CHECK(s.server.log()[1].path == "/stop_profile");
}

TEST_CASE("a profile is ended after a load that cannot be, and after an interruption") {
    asked_server fails({says("200 OK", "")});
    fails.during_load = [] { throw std::runtime_error("client: no threads"); };
    check_none(fails.profile(), "client: no threads");
    CHECK(fails.server.log().size() == 2);

    asked_server idle({says("200 OK", "")});
    idle.sends = 0;
    check_none(idle.profile(), "this load sends nothing in its first 50 ms, profile.duration can "
                               "be longer");
    CHECK(idle.server.log().size() == 2);

    asked_server stopped({says("200 OK", "")});
    stopped.during_load = [] { stop_asked = true; };
    const taken_profile t = stopped.profile();
    CHECK(t.none.empty());
    CHECK(stopped.server.log().size() == 2);
    check_none(stopped.profile(), "the run was interrupted");
    stop_asked = false;
    CHECK(stopped.server.log().size() == 2);
}

TEST_CASE("without time for the load and for writing nothing is asked") {
    asked_server s({says("200 OK", "")});
    check_none(s.profile({}, 4), "LLMBENCH_TIME_BUDGET leaves no time for 50 ms of load and the "
                                 "writing after it");
    CHECK(s.server.log().empty());
}

TEST_CASE("commands are told the URL, and what they leave running ends with the profile") {
    const files::scratch dir;
    const std::string file = dir.file("said");
    const std::string recorder = "(trap 'echo ended > " + file + "; exit' TERM; echo begun > " +
                                 file + "; while :; do sleep 0.02; done) & ";
    asked_server s({says("200 OK", "")});
    const std::string url = s.server.url() + "/v1";
    const profile own{.start = recorder + "echo on {url}; echo $LLMBENCH_URL",
                      .stop = "until test -s " + file + "; do sleep 0.02; done; cat " + file};
    const taken_profile t = s.profile(own);
    CHECK(t.none.empty());
    CHECK(t.start.came == "exited with status 0");
    CHECK(t.start.said == url);
    CHECK(t.stop.said == "begun");
    CHECK(holds(t.files, "profile-1-start.log"));
    const std::string log = content_of(report_directory() + "/profile-1-start.log");
    CHECK(log.starts_with("on " + url + "\n" + url + "\n"));
    CHECK(s.server.log().empty());
    CHECK(content_of(file) == "ended\n");
}

TEST_CASE("a command that fails, or does not end, makes no profile") {
    asked_server s({says("200 OK", "")});
    const taken_profile t = s.profile({.start = "echo t0ken-of-a-gateway; exit 3", .stop = "true"});
    check_none(t, "\"echo ***; exit 3\" exited with status 3: ***");
    CHECK(s.asked_before_load == 99);
    CHECK(t.stop.asked.empty());
    const profile endless{.start = "sleep 1000", .stop = "true"};
    const profile_step step = profiler(endless, s.target, 1).start(0.3);
    CHECK_FALSE(step.done);
    CHECK(holds(step_text(step), "\"sleep 1000\" had not ended after 300 ms"));
    CHECK(holds(s.profile({.start = "true", .stop = "no-such-program-here"}).none,
                "\"no-such-program-here\" exited with status 127: "));
}

TEST_CASE("where a process is told to write its profiles is no secret") {
    const process p{.command = "true {port}",
                    .env = {{"VLLM_TORCH_PROFILER_DIR", "/tmp/profiles-of-vllm"},
                            {"API_SECRET", "hidden-from-all"}}};
    const live_target target(p, run_variant::candidate);
    const profile by_http;
    CHECK(profiler(by_http, target, 1).files() ==
          "it is in /tmp/profiles-of-vllm, as VLLM_TORCH_PROFILER_DIR says");
    CHECK(profiler(by_http, live_target(simulated(), run_variant::candidate), 1).files() ==
          "the simulated server writes none");
    credentials c;
    started_process(p, run_variant::candidate).keep_secrets(c);
    CHECK(without_secrets("hidden-from-all /tmp/profiles-of-vllm", c.secrets) ==
          "*** /tmp/profiles-of-vllm");
}
