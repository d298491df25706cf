// What a server is asked before each repeat: when, of whom, and what becomes of a gate whose server
// does not do it.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/scripted_server.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {
/// Answers what prepares it as it is told to, and all else as a healthy server.
scripted::server prepared_server(const scripted::answer& a) {
    return scripted::server([a](const scripted::request& r) {
        return r.path.starts_with("/reset") || r.path == "/warm" ? a : scripted::healthy();
    });
}
const scripted::answer done = {scripted::send(scripted::json("200 OK", "{}"))};

scenario prepared_on(const std::string& url, const char* name) {
    scenario s = brief(endpoint{.url = url, .model = "m"}, name);
    s.workload = prompts({"one"});
    s.slos = {p50(ttft) <= 1_s};
    s.repeats = 3;
    s.prepare = {post("/reset_prefix_cache"), post("/warm", "repeat {n}")};
    return s;
}
/// What was asked in turn: R and W of the two posts, and one dot for each load.
std::string turns_of(const scripted::server& server) {
    std::string turns;
    for (const scripted::request& r : server.log()) {
        const char what = r.path == "/reset_prefix_cache" ? 'R' : r.path == "/warm" ? 'W' : '.';
        if (what != '.' || !turns.ends_with('.')) turns += what;
    }
    return turns;
}
}  // namespace

TEST_CASE("each repeat is prepared before its first request, with the key of the server") {
    const variable set("OWN_KEY", "sk-1234-key");
    const scripted::server server = prepared_server(done);
    scenario s = prepared_on(server.url(), "prepared");
    s.target = endpoint{.url = server.url(), .model = "m", .api_key_env = "OWN_KEY"};
    const heard_run heard = heard_of(s);
    CHECK(heard.result.verdicts()[0].outcome == verdict::pass);
    std::string expected;
    for (std::size_t i = 0; i < repeats_of(heard.result).size(); ++i) expected += "RW.";
    CHECK(expected.size() >= 6);
    CHECK(turns_of(server) == expected);
    std::vector<std::string> bodies;
    for (const scripted::request& r : server.log())
        if (r.path == "/warm") bodies.push_back(r.body + ", " + r.header("Authorization"));
    CHECK(bodies[0] == "repeat 1, Bearer sk-1234-key");
    CHECK(bodies[1] == "repeat 2, Bearer sk-1234-key");
    CHECK(holds(texts::unwrapped(heard.said), "; before each repeat POST /reset_prefix_cache, POST /warm"));
    check_rejudged(heard.result, s.slos);
}

TEST_CASE("the baseline's server is prepared for its own repeats") {
    const scripted::server one = prepared_server(done), other = prepared_server(done);
    scenario s = prepared_on(one.url(), "prepared pair");
    s.baseline = endpoint{.url = other.url(), .model = "m"};
    s.slos = {p50(ttft) <= 2 * baseline};
    s.repeats = 4;
    run(s);
    CHECK(turns_of(one) == "RW.RW.RW.RW.");
    CHECK(turns_of(other) == "RW.RW.RW.RW.");
}

TEST_CASE("a server that cannot be prepared is measured no further, and the sentence says by what") {
    const scripted::server refuses =
        prepared_server({scripted::send(scripted::json("404 Not Found", R"({"detail":"Not Found"})"))});
    scenario s = prepared_on(refuses.url(), "not prepared");
    CHECK(why_no_result(s) == "prepare, before repeat 1 on " + refuses.url() +
                           ": POST /reset_prefix_cache was answered with HTTP 404: {\"detail\":\"Not Found\"}");
    CHECK(turns_of(refuses) == "R");
    CHECK(reported_gate("not prepared").get("outcome").to_str() == "invalid");

    const scripted::server silent = prepared_server({scripted::stall()});
    s = prepared_on(silent.url(), "never prepared");
    s.limits = {.first_event = 1_s, .between_events = 1_s, .total = 2_s};
    const std::string why = why_no_result(s);
    CHECK(holds(why, "POST /reset_prefix_cache failed: "));
    CHECK(holds(why, "within 2 s"));
    CHECK(turns_of(silent) == "R");
}

TEST_CASE("no repeat finds prompts of the one before in a cache that was emptied") {
    types::list<types::text> lines;  // another one for each request of a repeat
    for (int i = 0; i < 40; ++i) {
        std::string line;
        for (int word = 0; word < 64; ++word) line += "w" + std::to_string(100 * i + word) + " ";
        lines.push_back(line);
    }
    const auto cached_in_second = [&](bool empties) {
        scenario s = brief(simulated(engine_of(4_ms)), "emptied");
        s.workload = prompts(lines);
        s.options.max_tokens = 4;
        s.slos = {p50(ttft) <= 1_s};
        s.repeats = 2;
        if (empties) s.prepare = {post("/reset_prefix_cache")};
        long long cached = 0;
        for (const record& x : run(s).requests())
            if (x.repeat == 1) cached += std::max(0, x.cached_tokens);
        return cached;
    };
    CHECK(cached_in_second(false) > 0);
    CHECK(cached_in_second(true) == 0);
}
