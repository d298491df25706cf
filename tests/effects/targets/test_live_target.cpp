// A target that is brought up: whether it is waited for, whose key it gets, what is masked.
#include "core/planning/planning.hpp"
#include "effects/gates/gate_servers.hpp"

#include "support/environment.hpp"
#include "support/relay.hpp"
#include "support/scratch.hpp"
#include "support/script.hpp"
#include "support/sockets.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

using namespace llmbench;
using namespace llmbench::detail;
using live::variable;
using texts::holds;

namespace {

/// Gives these answers, the last one again and again; "" is none.
class listing {
public:
    explicit listing(vector<std::string> answers) : answers_(std::move(answers)) {}
    std::string url() const { return "http://127.0.0.1:" + std::to_string(relay::port_of(at_)); }
    vector<std::string> asked() {
        const std::lock_guard lock(mutex_);
        return asked_;
    }

private:
    void answer(int fd) {
        char taken[4096];
        const auto n = ::recv(fd, taken, sizeof taken, 0);
        std::string next;
        {
            const std::lock_guard lock(mutex_);
            asked_.emplace_back(taken, n > 0 ? static_cast<std::size_t>(n) : 0);
            next = answers_[std::min(asked_.size(), answers_.size()) - 1];
        }
        if (next.empty()) sleep_s(2);
        else ::send(fd, next.data(), next.size(), sockets::no_signal);
    }
    std::mutex mutex_{};
    vector<std::string> answers_, asked_{};
    const int at_ = relay::ipv4_listener();
    relay::acceptor accepting_{at_, [this](int fd, int) { answer(fd); }};
};
std::string says(const char* status, const std::string& body) {
    return scripted::sized(status, "application/json", body);
}
const std::string lists_one = says("200 OK", R"({"data":[{"id":"m"}]})"),
                  loading = says("503 Service Unavailable",
                                 R"({"error":{"message":"Loading model"}})");
bool has_line(const std::string& request, const std::string& line) {
    return holds(request, line + "\r\n");
}
std::string why_not_up(live_target& target) {
    try {
        target.bring_up();
    } catch (const std::exception& e) { return e.what(); }
    return "";
}

}  // namespace

TEST_CASE("an endpoint whose model still loads is waited for, as long as the gate says") {
    listing server({loading, loading, says("200 OK", "{}"), loading, lists_one});
    live_target target(endpoint{.url = server.url(), .ready_within = 20_s}, run_variant::candidate);
    CHECK(why_not_up(target) == "");
    CHECK(target.load().model == "m");
    const auto asked = server.asked();
    REQUIRE(asked.size() >= 6);
    for (std::size_t i = 0; i < 6; ++i)
        CHECK(has_line(asked[i], i < 3 ? "GET /health HTTP/1.1" : "GET /v1/models HTTP/1.1"));
}

TEST_CASE("an endpoint that is never ready is told with its last answer, and how to wait for one") {
    listing server({loading});
    live_target waited(endpoint{.url = server.url(), .ready_within = 0.3_s}, run_variant::candidate);
    CHECK(why_not_up(waited) == server.url() + " was not ready within 300 ms: GET /health answered "
                                               "HTTP 503: Loading model");
    live_target at_once(endpoint{.url = server.url()}, run_variant::candidate);
    CHECK(holds(why_not_up(at_once),
                "endpoint.ready_within waits for one whose model still loads"));
    live_target never(endpoint{.url = "http://127.0.0.1:1", .ready_within = 0.3_s},
                      run_variant::candidate);
    CHECK(holds(why_not_up(never), "was not ready within 300 ms: cannot connect"));
    CHECK_THROWS_AS(live_target(endpoint{.url = "http://h", .ready_within = time_span::from_seconds(-1)},
                                run_variant::candidate),
                    std::invalid_argument);
}

TEST_CASE("an endpoint without a path for readiness is ready") {
    listing server({says("404 Not Found", "{}"), lists_one});
    live_target target(endpoint{.url = server.url(), .ready_within = 20_s}, run_variant::candidate);
    CHECK(why_not_up(target) == "");
}

TEST_CASE("a server that somebody has just started is waited for at the path that says so") {
    listing server({loading, says("404 Not Found", "{}"), says("200 OK", "{}"), lists_one});
    const variable url("LLMBENCH_URL", server.url() + "/v1");
    live_target target(endpoint{}, run_variant::candidate);
    target.await_start(20, "/status/up");
    REQUIRE(server.asked().size() == 3);
    CHECK(has_line(server.asked()[2], "GET /status/up HTTP/1.1"));
    CHECK(why_not_up(target) == "");
    live_target by_url(endpoint{}, run_variant::candidate);
    listing other({loading, says("200 OK", "{}")});
    by_url.await_start(20, other.url() + "/v2/ready?x=1");
    CHECK(has_line(other.asked().back(), "GET /v2/ready?x=1 HTTP/1.1"));
    live_target elsewhere(endpoint{.url = "http://127.0.0.1:1"}, run_variant::candidate);
    elsewhere.await_start(20, "");  // nobody has started that one
    listing never({loading});
    CHECK_THROWS_AS(by_url.await_start(0.2, never.url() + "/ready"), no_server);
}

TEST_CASE("a key that only a later gate sends is masked in the log of a server that already runs") {
    const files::scratch folder;
    const std::string url = "http://127.0.0.1:" + std::to_string(free_port());
    const std::string go = folder.file("go");
    live_target first(endpoint{.url = url, .model = "m"}, run_variant::candidate);
    CHECK(why_not_up(first) != "");
    program_server& server = program_server::of("LLMBENCH_SERVER");
    server.start("until [ -e " + go + " ]; do sleep 0.02; done; echo asked with later-0123",
                 first.load());
    live_target later(endpoint{.url = url, .model = "m", .headers = {{"X-Tenant", "later-0123"}}},
                      run_variant::candidate);
    CHECK(why_not_up(later) != "");
    std::ofstream(go).put('1');
    for (int i = 0; i < 1000 && server.how_it_went().empty(); ++i) sleep_s(0.02);
    CHECK(holds(server.last_words(), "| asked with ***"));
    program_server::end_all();
}

TEST_CASE("an interruption ends the wait for a server, and is told as one") {
    listing server({""});
    // Not before the wait has begun, however slow the machine is.
    const auto interrupts_request = [&](std::size_t number) {
        return std::thread([&server, number] {
            for (int i = 0; i < 3000 && server.asked().size() < number; ++i) sleep_s(0.02);
            stop_asked = true;
        });
    };
    live_target target(endpoint{.url = server.url(), .model = "m", .ready_within = 600_s},
                       run_variant::candidate);
    const long long began = now_ns();
    std::thread ctrl_c = interrupts_request(1);
    const std::string why = why_not_up(target);
    ctrl_c.join();
    CHECK(now_ns() - began < ns_of(120));
    CHECK_FALSE(holds(why, "no answer within 600 s"));
    stop_asked = false;
    std::thread again = interrupts_request(server.asked().size() + 1);
    CHECK(blocking_get(server_at(parsed_url(server.url(), "x")), "/", "", 60).error ==
          "the run was interrupted before it answered");
    again.join();
    stop_asked = false;
}

TEST_CASE("the target's key goes to a baseline on its own host that has none, and to no other") {
    const variable key("LLMBENCH_API_KEY", "sk-of-the-target");
    listing server({lists_one});
    const auto sent = [&](const std::string& target_url, const endpoint& baseline) {
        live_target target(endpoint{.url = target_url, .model = "m"}, run_variant::candidate);
        why_not_up(target);
        const std::size_t before = server.asked().size();
        live_target other(baseline, run_variant::baseline);
        other.is_compared_with(target);
        why_not_up(other);
        REQUIRE(server.asked().size() > before);
        const std::string asked = server.asked()[before], name = "Authorization: ";
        const std::size_t at = asked.find(name);
        return at == std::string::npos ? std::string()
                                       : asked.substr(at + name.size(),
                                                      asked.find("\r\n", at) - at - name.size());
    };
    const endpoint here{.url = server.url()};
    CHECK(sent("http://127.0.0.1:1", here) == "Bearer sk-of-the-target");
    CHECK(sent("http://localhost:1", here) == "Bearer sk-of-the-target");
    CHECK(sent("http://no-such-host.invalid", here) == "");
    const variable its("LLMBENCH_BASELINE_API_KEY", "sk-of-the-baseline");
    CHECK(sent("http://no-such-host.invalid", here) == "Bearer sk-of-the-baseline");
    CHECK(sent("http://127.0.0.1:1", here) == "Bearer sk-of-the-baseline");
    endpoint named = here;
    named.api_key_env = "LLMBENCH_API_KEY";
    CHECK(sent("http://no-such-host.invalid", named) == "Bearer sk-of-the-target");
}

TEST_CASE("LLMBENCH_API_KEY goes to those settings that are on the host that it is for") {
    const variable key("LLMBENCH_API_KEY", "sk-of-the-target");
    listing server({lists_one});
    const auto sent = [&](const std::string& key_is_for, const endpoint& setting,
                          const std::string& line) {
        live_target target(setting, run_variant::candidate);
        target.takes_key_of(key_is_for);
        CHECK(why_not_up(target) == "");
        const bool was_sent = has_line(server.asked().back(), "Authorization: Bearer " + line);
        CHECK(was_sent == holds(server.asked().back(), "Authorization"));
        return was_sent ? std::string("sent")
               : target.facts().notes.empty() ? std::string("not sent")
                                              : target.facts().notes[0];
    };
    const endpoint here{.url = server.url(), .model = "m"};
    CHECK(sent("", here, "sk-of-the-target") == "sent");
    CHECK(sent("http://localhost:1", here, "sk-of-the-target") == "sent");
    CHECK(sent("http://no-such-host.invalid", here, "sk-of-the-target") ==
          "LLMBENCH_API_KEY is not sent to 127.0.0.1, as it belongs to another host: name the key "
          "of this one by endpoint.api_key_env");
    const variable own("KEY_OF_THE_SETTING", "sk-of-the-setting");
    endpoint named = here;
    named.api_key_env = "KEY_OF_THE_SETTING";
    CHECK(sent("http://no-such-host.invalid", named, "sk-of-the-setting") == "sent");
    const variable of_baseline("LLMBENCH_BASELINE_API_KEY", "sk-of-the-baseline");
    CHECK(sent("http://no-such-host.invalid", here, "sk-of-the-baseline") != "sent");
}

TEST_CASE("what the program was told for nobody else, by names that say so, is masked") {
    const variable token("SOME_HF_TOKEN", "hf_0123456789"), plain("SOME_OTHER", "0123456789ab");
    listing server({lists_one});
    live_target target(endpoint{.url = server.url()}, run_variant::candidate);
    CHECK(why_not_up(target) == "");
    const auto& secrets = target.load().secrets;
    CHECK(std::count(secrets.begin(), secrets.end(), "hf_0123456789") == 1);
    CHECK(std::count(secrets.begin(), secrets.end(), "0123456789ab") == 0);
    credentials c;
    started_process({.command = "true {port}",
                     .env = {{"A_TOKEN", "0123456789"}, {"LEVEL", "abcdefgh"},
                             secret("DB_URL", "postgres://me:pw@h"), {"B_KEY", "short"}}},
                    run_variant::candidate)
        .keep_secrets(c);
    for (const char* s : {"postgres://me:pw@h", "0123456789"})
        CHECK(std::count(c.secrets.begin(), c.secrets.end(), s) == 1);
    for (const char* s : {"abcdefgh", "short"})
        CHECK(std::count(c.secrets.begin(), c.secrets.end(), s) == 0);
    // A command's own words may be secrets, and it is quoted where it does not start.
    started_process lost({.command = "HF_TOKEN=hf_abcdefgh true --api-key=sk-abcdefgh {port}"},
                         run_variant::candidate);
    lost.keep_secrets(c);
    std::string why;
    try {
        lost.start(traits_of(openai_chat), c.secrets, 5);
    } catch (const no_server& e) { why = e.what(); }
    CHECK(holds(why, "process \"HF_TOKEN=*** true --api-key=*** {port}\" exited with status 0"));
}

TEST_CASE("pairs are fresh if the gate starts servers for each of them, or one for both variants") {
    const process lasts{.command = "serve {port}"};
    process restarts = lasts;
    restarts.restart_between_repeats = true;
    const auto is_fresh = [](const any_target& target, const any_baseline& b) {
        const scenario s{.target = target,
                         .baseline = b,
                         .requests = 100,
                         .slos = {mean(ttft) <= 1.1 * baseline}};
        return gate_servers(s, settings{}, nullptr).pairs_are_fresh();
    };
    const endpoint other{.url = "http://127.0.0.1:1"};
    CHECK(is_fresh(restarts, restarts));
    CHECK_FALSE(is_fresh(restarts, lasts));
    CHECK_FALSE(is_fresh(lasts, lasts));
    CHECK_FALSE(is_fresh(restarts, other));
    CHECK(is_fresh(lasts, otherwise{.same = true}));
    CHECK_FALSE(is_fresh(other, otherwise{.same = true}));  // may be a router with several servers
}
