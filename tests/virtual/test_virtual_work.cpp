// Counts of work: what a load should cost the simulated server, to the token, and what becomes of a
// gate where it costs more.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/execution_environment.hpp"
#include "virtual/scripted_server.hpp"

#include "llmbench_work.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

const task_step reset = post("/reset_prefix_cache");

/// Conversations of three turns, whose system prompt is shared.
scenario talks_on(const any_target& target, const char* name, int users = 4) {
    return {.name = name,
            .target = target,
            .workload = conversations{.turns = fixed(3),
                                      .user_tokens = uniform(20, 40),
                                      .output_tokens = uniform(10, 30),
                                      .system_tokens = fixed(70)},
            .arrivals = closed_loop(users),
            .requests = 24,
            .slos = {cached_tokens == expected, prefilled_tokens == expected,
                     generated_tokens == expected, server_requests == expected, preemptions == 0},
            .prepare = {reset}};
}
const char* const objectives[] = {"cached_tokens == expected", "prefilled_tokens == expected",
                                  "generated_tokens == expected", "server_requests == expected",
                                  "preemptions == 0"};
endpoint at(const std::string& url) { return {.url = url, .model = "simulated"}; }

/// A gateway that reads whole requests. `change` returns what is sent on.
class meddler {
public:
    using change = std::function<std::vector<std::string>(const std::string&)>;
    meddler(int port_behind, change how)
        : port_([=](const std::shared_ptr<virtual_world::end>& client) {
              return std::make_shared<way_in>(port_behind, how, client);
          }) {}
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_.number()); }

private:
    struct deaf final : virtual_world::talk {
        void on_bytes(std::string_view) override {}
        void on_end() override {}
    };
    struct way_out final : virtual_world::talk {
        explicit way_out(const std::shared_ptr<virtual_world::end>& to) : client(to) {}
        void on_bytes(std::string_view bytes) override {
            if (const auto to = client.lock()) to->send(bytes);
        }
        void on_end() override {
            if (const auto to = client.lock()) to->close();
        }
        const std::weak_ptr<virtual_world::end> client;
    };
    struct way_in final : virtual_world::talk {
        way_in(int port, change c, const std::shared_ptr<virtual_world::end>& client)
            : behind(port), how(std::move(c)),
              server(virtual_world::connected_to(port, std::make_shared<way_out>(client))) {}
        void on_bytes(std::string_view bytes) override {
            held += bytes;
            const std::size_t head = held.find("\r\n\r\n");
            if (head == std::string::npos) return;
            const std::size_t length = held.find("Content-Length: ");
            const std::size_t body = length < head ? std::stoul(held.substr(length + 16)) : 0;
            if (held.size() < head + 4 + body) return;
            const std::vector<std::string> all = how(held);
            held.clear();
            server->send(all.front());
            for (std::size_t i = 1; i < all.size(); ++i) {
                others.push_back(virtual_world::connected_to(behind, std::make_shared<deaf>()));
                others.back()->send(all[i]);
            }
        }
        void on_end() override { server->close(); }
        const int behind;
        const change how;
        const std::shared_ptr<virtual_world::end> server;
        std::vector<std::shared_ptr<virtual_world::end>> others{};
        std::string held{};
    };
    virtual_world::port port_;
};
bool is_of_load(const std::string& request) {
    return request.starts_with("POST /v1/chat/completions ") &&
           request.find("\"max_tokens\":1,") == std::string::npos;
}
/// The request with a word before its system prompt.
std::string with_word(std::string request, const std::string& word) {
    const std::size_t head = request.find("\r\n\r\n"), at = request.find("\"content\":\"", head);
    request.insert(at + 11, word + " ");
    const std::string field = "Content-Length: ";
    const std::size_t length = request.find(field) + field.size();
    const std::size_t end = request.find('\r', length);
    request.replace(length, end - length,
                    std::to_string(request.size() - request.find("\r\n\r\n") - 4));
    return request;
}

}  // namespace

TEST_CASE("a healthy server costs what is expected, to the token") {
    for (const int users : {1, 4, 8}) {
        CAPTURE(users);
        const result r = run(talks_on(simulated(quick_engine()), "healthy", users));
        for (const char* slo : objectives) {
            CAPTURE(slo);
            CAPTURE(reason_of(r, slo));
            CHECK(outcome_of(r, slo) == verdict::pass);
        }
        CHECK(verdict_of(r, "server_requests == expected").measured == 24);
        CHECK(verdict_of(r, "cached_tokens == expected").measured > 500);
        CHECK(verdict_of(r, "cached_tokens == expected").repeats == 2);
    }
}

TEST_CASE("warm-ups and subagents cost what is expected, too") {
    scenario s = talks_on(simulated(quick_engine()), "warm-up");
    s.warmup = 6;
    check_passes(run(s));
    s = talks_on(simulated(quick_engine()), "subagents");
    s.workload = conversations{.turns = fixed(4),
                               .user_tokens = uniform(20, 40),
                               .output_tokens = uniform(20, 40),
                               .system_tokens = fixed(70),
                               .subagents = 60_pct,
                               .helpers = fixed(2),
                               .helper_turns = fixed(2)};
    const result r = run(s);
    CAPTURE(reason_of(r, "cached_tokens == expected"));
    check_passes(r);
}

TEST_CASE("numbers, parts of what is expected, and limits on both sides") {
    scenario s = talks_on(simulated(quick_engine()), "numbers");
    s.slos = {cached_tokens >= 0.98 * expected, cached_tokens <= expected, prefilled_tokens >= 1,
              prefilled_tokens <= 100, server_requests == 24, server_requests <= 23,
              counted("vllm:request_success_total{finished_reason=\"abort\"}") == 0,
              counted("vllm:request_success_total{finished_reason=\"length\"}") == 24};
    const result r = run(s);
    for (const char* slo :
         {"cached_tokens >= 0.98 * expected", "cached_tokens <= expected", "prefilled_tokens >= 1",
          "server_requests == 24",
          "counted(\"vllm:request_success_total{finished_reason=\"abort\"}\") == 0",
          "counted(\"vllm:request_success_total{finished_reason=\"length\"}\") == 24"}) {
        CAPTURE(slo);
        CAPTURE(reason_of(r, slo));
        CHECK(outcome_of(r, slo) == verdict::pass);
    }
    CHECK(outcome_of(r, "prefilled_tokens <= 100") == verdict::fail);
    CHECK(outcome_of(r, "server_requests <= 23") == verdict::fail);
    CHECK(reason_of(r, "server_requests <= 23") == "24 <= 23: 1 more");
}

TEST_CASE("a load sends the same bytes each time, in this run and in the next one") {
    std::vector<double> counts;
    for (int run_of = 0; run_of < 2; ++run_of) {
        const logging_server server(quick_engine());
        scenario s = talks_on(at(server.url()), run_of == 0 ? "one" : "two");
        s.slos = {prefilled_tokens >= 1, generated_tokens >= 1};
        const result r = run(s);
        counts.push_back(verdict_of(r, "prefilled_tokens >= 1").measured);
        const auto log = server.log();
        REQUIRE(log.size() == 48);
        for (std::size_t i = 0; i < 24; ++i)
            CHECK(log[i].prompt_tokens == log[i + 24].prompt_tokens);
    }
    CHECK(counts[0] == counts[1]);
}

TEST_CASE("without a prefix cache each prompt is computed") {
    engine e = quick_engine();
    e.prefix_cache = false;
    const result r = run(talks_on(simulated(e), "no cache", 1));
    CHECK(outcome_of(r, "cached_tokens == expected") == verdict::fail);
    CHECK(outcome_of(r, "prefilled_tokens == expected") == verdict::fail);
    CHECK(outcome_of(r, "server_requests == expected") == verdict::pass);
    const std::string why = reason_of(r, "cached_tokens == expected");
    CAPTURE(why);
    CHECK(why.starts_with("0 == "));
    CHECK(why.find(" fewer than expected, ") != std::string::npos);
    CHECK(why.find(" blocks of 16; request 2 (turn 2) had 0 of ") != std::string::npos);
}

TEST_CASE("another size of blocks is another number") {
    scenario s = talks_on(simulated(quick_engine()), "blocks of 16");
    const double usual = verdict_of(run(s), "cached_tokens == expected").measured;
    engine e = quick_engine();
    e.kv.block_tokens = 32;
    s = talks_on(simulated(e), "blocks of 32");
    s.slos = {cached_tokens == expected, cached_tokens == static_cast<long long>(usual)};
    const result r = run(s);
    CHECK(outcome_of(r, "cached_tokens == expected") == verdict::pass);
    CHECK(r.verdicts()[1].outcome == verdict::fail);
}

TEST_CASE("a clock in the system prompt, and one token at its head") {
    const logging_server server(quick_engine());
    int clock = 0;
    const meddler told(server.port(), [&](const std::string& request) {
        return std::vector<std::string>{
            is_of_load(request) ? with_word(request, "time-" + std::to_string(clock++)) : request};
    });
    scenario s = talks_on(at(told.url()), "a clock", 1);
    s.slos = {cached_tokens == expected, server_requests == expected};
    const result r = run(s);
    CAPTURE(reason_of(r, "cached_tokens == expected"));
    // Its usage has one token more than /tokenize finds, which says that something is in between.
    CHECK(outcome_of(r, "cached_tokens == expected") != verdict::pass);
    s.name = "a clock, by numbers";
    s.slos = {cached_tokens >= 500, server_requests == expected};
    const result numbers = run(s);
    CHECK(outcome_of(numbers, "cached_tokens >= 500") == verdict::fail);
    CHECK(outcome_of(numbers, "server_requests == expected") == verdict::pass);
}

TEST_CASE("a request that is sent twice") {
    const logging_server server(quick_engine());
    int seen = 0;
    const meddler twice(server.port(), [&](const std::string& request) {
        std::vector<std::string> all{request};
        if (is_of_load(request) && ++seen % 24 == 10) all.push_back(request);
        return all;
    });
    const result r = run(talks_on(at(twice.url()), "twice"));
    CHECK(outcome_of(r, "server_requests == expected") == verdict::fail);
    CHECK(reason_of(r, "server_requests == expected") == "25 == 24: 1 more than expected");
    CHECK(outcome_of(r, "cached_tokens == expected") == verdict::invalid);
    CHECK(reason_of(r, "cached_tokens == expected") ==
          "server: repeat 1: its page counts 25 finished requests, and 24 were sent: somebody else "
          "uses it, or something sends requests twice");
}

TEST_CASE("a load whose repeats differ is inconclusive, unless all are on one side") {
    const logging_server server(quick_engine());
    int seen = 0;
    const meddler sometimes(server.port(), [&](const std::string& request) {
        if (!is_of_load(request)) return std::vector<std::string>{request};
        return std::vector<std::string>{++seen > 24 && seen % 24 == 0
                                            ? with_word(request, "more")
                                            : request};
    });
    scenario s = talks_on(at(sometimes.url()), "different", 1);
    s.slos = {prefilled_tokens == 10, prefilled_tokens == 100'000, prefilled_tokens <= 100'000,
              prefilled_tokens <= 10};
    const result r = run(s);
    CHECK(outcome_of(r, "prefilled_tokens == 10") == verdict::fail);
    CHECK(outcome_of(r, "prefilled_tokens == 100000") == verdict::fail);
    CHECK(outcome_of(r, "prefilled_tokens <= 100000") == verdict::pass);
    CHECK(outcome_of(r, "prefilled_tokens <= 10") == verdict::fail);

    const auto most = static_cast<long long>(verdict_of(r, "prefilled_tokens <= 10").measured);
    seen = 0;
    s.slos = {prefilled_tokens == most, prefilled_tokens >= most, prefilled_tokens <= most,
              prefilled_tokens <= most - 1};
    const result between = run(s);
    const auto at = [&](std::size_t i) { return between.verdicts()[i]; };
    CAPTURE(at(0).reason);
    CHECK(at(0).outcome == verdict::inconclusive);
    CHECK(std::string(at(0).reason.c_str()).starts_with("repeats differ, "));
    CHECK(at(1).outcome == verdict::inconclusive);
    CHECK(at(2).outcome == verdict::pass);
    CHECK(at(3).outcome == verdict::inconclusive);
}

TEST_CASE("repeats that differ as a post was answered and emptied nothing say so") {
    const logging_server server(quick_engine());
    const meddler lies(server.port(), [](const std::string& request) {
        const bool is_reset = request.starts_with("POST /reset_prefix_cache");
        return std::vector<std::string>{is_reset ? "GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
                                                 : request};
    });
    scenario s = talks_on(at(lies.url()), "not emptied", 1);
    s.slos = {prefilled_tokens == expected, cached_tokens == expected};
    const result r = run(s);
    for (const char* objective : {"prefilled_tokens == expected", "cached_tokens == expected"}) {
        CHECK(outcome_of(r, objective) == verdict::inconclusive);
        const std::string reason = reason_of(r, objective);
        CAPTURE(reason);
        CHECK(reason.starts_with("repeats differ, "));
        CHECK(reason.find(": the last repeat found in the cache what the first one had computed: "
                          "nothing emptied it before") != std::string::npos);
    }
}

TEST_CASE("failed requests, others' requests, and a restart make counts invalid") {
    engine e = quick_engine();
    e.faults.error_rate = 10_pct;
    const result failed = run(talks_on(simulated(e), "failed"));
    CHECK(outcome_of(failed, "cached_tokens == expected") == verdict::invalid);
    CHECK(reason_of(failed, "cached_tokens == expected").find("did not end well") !=
          std::string::npos);
    engine restarts = quick_engine();
    restarts.faults.restart_after = 10;
    const result again = run(talks_on(simulated(restarts), "restarted"));
    CHECK(outcome_of(again, "cached_tokens == expected") == verdict::invalid);
}

namespace {
/// Three requests to a server whose page says what the test says; each answer has three tokens.
scenario three_on(const scripted::server& server, const char* name) {
    return {.name = name,
            .target = at(server.url()),
            .workload = prompts({"one"}),
            .arrivals = closed_loop(1),
            .requests = 3,
            .slos = {server_requests == expected, generated_tokens == 9}};
}
std::string page_of(int requests, int tokens, int running = 0) {
    return "vllm:num_requests_running " + std::to_string(running) +
           "\nvllm:num_requests_waiting 0\nvllm:request_success_total " +
           std::to_string(requests) + "\nvllm:generation_tokens_total " + std::to_string(tokens) +
           "\n";
}
const char* const nine = "generated_tokens == 9";
}  // namespace

TEST_CASE("a page that is never idle, lags, is another server's, or falls, counts nothing") {
    const scripted::server server;
    const auto counts = [&] { return static_cast<int>(server.log().size()); };
    server.report([&](const scripted::request&) { return page_of(counts(), 3 * counts()); });
    const result honest = run(three_on(server, "honest"));
    CAPTURE(reason_of(honest, nine));
    CHECK(outcome_of(honest, nine) == verdict::pass);
    CHECK(outcome_of(honest, "server_requests == expected") == verdict::pass);

    const auto invalid_by = [&](const char* name, const std::string& why) {
        const result r = run(three_on(server, name));
        CAPTURE(reason_of(r, nine));
        CHECK(outcome_of(r, nine) == verdict::invalid);
        CHECK(reason_of(r, nine).find(why) != std::string::npos);
    };
    server.report([&](const scripted::request&) { return page_of(counts(), 3 * counts(), 1); });
    invalid_by("busy", "its page was not read when it was idle, before the load and after it (the "
                       "server was not idle within 10 s)");
    server.report([](const scripted::request&) { return page_of(0, 0); });
    invalid_by("of another server", "its page counts 0 finished requests of the 3 sent");
    server.report([&](const scripted::request&) { return page_of(2 * counts(), 3 * counts()); });
    invalid_by("others", "its page counts 6 finished requests, and 3 were sent");
    server.report([&](const scripted::request&) {
        return page_of(counts(), 1000 - 3 * counts());
    });
    invalid_by("falls", "it restarted in repeat 1, or another one answers at its address");
}

TEST_CASE("a page that lags is waited for, and counts nothing while it is behind") {
    const scripted::server server;
    long long lag_ns = 0;
    server.report([&](const scripted::request&) {
        const auto log = server.log();
        const auto shown = static_cast<int>(
            std::count_if(log.begin(), log.end(), [&](const scripted::request& r) {
                return r.received_ns + lag_ns <= virtual_world::now_ns();
            }));
        return page_of(shown, 3 * shown);
    });
    lag_ns = 800'000'000;
    const result late = run(three_on(server, "late"));
    CAPTURE(reason_of(late, nine));
    CHECK(outcome_of(late, nine) == verdict::pass);
    lag_ns = 30'000'000'000;
    const result behind = run(three_on(server, "behind"));
    CHECK(outcome_of(behind, nine) == verdict::invalid);
    for (const char* slo : {nine, "server_requests == expected"}) {
        CAPTURE(reason_of(behind, slo));
        CHECK(outcome_of(behind, slo) == verdict::invalid);
        CHECK(reason_of(behind, slo).find("of the 3 sent: it is behind, or is the page of another "
                                          "server or model") != std::string::npos);
    }
}

TEST_CASE("a counter of cached tokens that leaves the page, or is missing where answers have some, is not zero") {
    const scripted::server server([](const scripted::request&) {
        std::string events = scripted::healthy_events(3);
        const std::string sum = "\"completion_tokens\":";
        events.insert(events.find(sum), R"("prompt_tokens_details":{"cached_tokens":4},)");
        return scripted::answer{scripted::send(scripted::sized_stream(events))};
    });
    const auto shown = [&](int until) {
        server.report([&, until](const scripted::request&) {
            const auto n = static_cast<int>(server.log().size());
            return page_of(n, 3 * n) + "vllm:prefix_cache_queries_total " + std::to_string(9 * n) +
                   (n < until ? "\nvllm:prefix_cache_hits_total " + std::to_string(4 * n) : "") + "\n";
        });
    };
    const auto verdict_of = [&](int until, const char* name, const std::string& why) {
        shown(until);
        scenario s = three_on(server, name);
        s.slos = {cached_tokens == 12};
        s.prepare = {reset};
        const result r = run(s);
        CAPTURE(reason_of(r, "cached_tokens == 12"));
        CHECK(reason_of(r, "cached_tokens == 12").find(why) != std::string::npos);
        return outcome_of(r, "cached_tokens == 12");
    };
    CHECK(verdict_of(1000, "reported", "") == verdict::pass);
    const auto sent = static_cast<int>(server.log().size());
    CHECK(verdict_of(sent + 3, "leaves", "does not report cached_tokens, or the counter fell") ==
          verdict::invalid);
    CHECK(verdict_of(0, "missing", "does not report cached_tokens, and the usage of its answers "
                                   "says 12") == verdict::invalid);
}

TEST_CASE("requests for another model on the same page are somebody else's") {
    const scripted::server server;
    server.report([&](const scripted::request&) {
        const std::string n = std::to_string(server.log().size());
        return "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
               "vllm:request_success_total{model_name=\"ours\"} " + n + "\n"
               "vllm:request_success_total{model_name=\"other\"} " + n + "\n"
               "vllm:generation_tokens_total{model_name=\"ours\"} " +
               std::to_string(3 * server.log().size()) + "\n";
    });
    const result r = run(three_on(server, "two models"));
    CHECK(outcome_of(r, nine) == verdict::invalid);
    CHECK(reason_of(r, nine).find("its page counts 6 finished requests, and 3 were sent: somebody "
                                  "else uses it") != std::string::npos);
    CHECK(outcome_of(r, "server_requests == expected") == verdict::fail);
}

TEST_CASE("an answer that is cut off costs nobody knows what") {
    int asked = 0;
    const scripted::server server([&](const scripted::request&) {
        if (++asked % 3 != 2) return scripted::healthy();
        return scripted::answer{scripted::send(scripted::until_close_head() + scripted::role() +
                                               scripted::chat_chunk(" word")),
                                scripted::close()};
    });
    server.report([&](const scripted::request&) { return page_of(asked, 3 * asked); });
    const result r = run(three_on(server, "cut off"));
    for (const char* slo : {nine, "server_requests == expected"}) {
        CAPTURE(reason_of(r, slo));
        CHECK(outcome_of(r, slo) == verdict::invalid);
        CHECK(reason_of(r, slo).find("1 of 3 requests did not end well, and nobody knows what "
                                     "they cost") != std::string::npos);
    }
}

TEST_CASE("several engines, and drafts, are not one cache whose hits are known") {
    const scripted::server server;
    std::string more;
    server.report([&](const scripted::request&) {
        return page_of(0, 0) + "vllm:prefix_cache_queries_total 9\nvllm:prefix_cache_hits_total 0\n"
               "vllm:cache_config_info{block_size=\"16\"} 1\n" + more;
    });
    scenario s = three_on(server, "not one cache");
    s.slos = {cached_tokens == expected};
    s.prepare = {reset};
    more = "vllm:prompt_tokens_total{engine=\"0\"} 5\nvllm:prompt_tokens_total{engine=\"1\"} 5\n";
    CHECK(refusal_of(s).find("the server has 2 engines, each with a prefix cache of its own") !=
          std::string::npos);
    more = "vllm:spec_decode_num_drafts_total 0\n";
    CHECK(refusal_of(s).find("the server drafts tokens, and then some (EAGLE, MTP)") !=
          std::string::npos);
}

TEST_CASE("a server that does not count requests is checked by its tokens") {
    const scripted::server server;
    int more = 0, from = 0;  // tokens of somebody else, after so many requests
    server.report([&](const scripted::request&) {
        const int n = static_cast<int>(server.log().size());
        return "llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n"
               "llamacpp:tokens_predicted_total " + std::to_string(3 * n + (n > from ? more : 0)) +
               "\n";
    });
    scenario s = three_on(server, "llama");
    s.slos = {generated_tokens == 9};
    CHECK(outcome_of(run(s), nine) == verdict::pass);
    more = 5;
    from = static_cast<int>(server.log().size()) + 2;
    s.name = "llama with others";
    const result r = run(s);
    CHECK(outcome_of(r, nine) == verdict::invalid);
    CHECK(reason_of(r, nine).find("its page counts 14 generated tokens, and the usage of the "
                                  "answers 9") != std::string::npos);
    s.slos = {server_requests == expected};
    CHECK(refusal_of(s).find("the page of llama.cpp does not report it") != std::string::npos);
    s.slos = {generated_tokens == 9, cached_tokens == expected};
    s.prepare = {reset};
    CHECK(refusal_of(s).find("the page of llama.cpp does not report it") != std::string::npos);
}

TEST_CASE("which slot of llama-server takes a request of several users depends on time") {
    const scripted::server server;
    server.report([](const scripted::request&) {
        return "llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n"
               "llamacpp:tokens_predicted_total 0\nllamacpp:prompt_tokens_total 0\n"
               "llamacpp:prompt_tokens_cached_total 0\n";
    });
    scenario s = three_on(server, "slots");
    s.prepare = {reset};
    s.arrivals = closed_loop(2);
    s.slos = {cached_tokens == 24};
    CHECK(refusal_of(s).find("llama-server has a cache for each of its slots, and which slot takes "
                             "a request of several users depends on time: send one after the "
                             "other, closed_loop(1)") != std::string::npos);
    s.slos = {cached_tokens >= 0};
    CHECK(refusal_of(s).empty());
    s.slos = {cached_tokens == 24};
    s.arrivals = closed_loop(1);
    CHECK(refusal_of(s).empty());
}

TEST_CASE("llama-server with one slot tokenizes the text that its template makes of a chat") {
    int chats = 0;
    const scripted::server server([&](const scripted::request& r) {
        const auto says = [](const std::string& json) {
            return scripted::answer{scripted::send(scripted::json("200 OK", json))};
        };
        if (r.path == "/apply-template") return says("{\"prompt\":\"<user>one\"}");
        if (r.path == "/tokenize" && r.body.find("<user>one") == std::string::npos)
            return says("{\"tokens\":[]}");
        if (r.path == "/tokenize") return says("{\"tokens\":[1,2,3,4,5]}");
        if (r.path == "/v1/chat/completions") ++chats;
        return scripted::healthy();
    });
    server.tell("/props", "{\"total_slots\":1}");
    int lost = 0;  // of the tokens that are cached in a repeat
    server.report([&](const scripted::request&) {
        // The first prompt of each repeat is computed, of the others the last token alone.
        const int cached = chats / 3 * (8 - lost) + (chats % 3 == 2 ? 4 : 0);
        return "llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n"
               "llamacpp:tokens_predicted_total " + std::to_string(3 * chats) +
               "\nllamacpp:prompt_tokens_total " + std::to_string(5 * chats - cached) +
               "\nllamacpp:prompt_tokens_cached_total " + std::to_string(cached) +
               "\nllamacpp:spec_decode_num_drafts_total 0\n";
    });
    scenario s = three_on(server, "chats of llama-server");
    s.prepare = {reset};
    s.slos = {cached_tokens == expected, prefilled_tokens == 7};
    const result r = run(s);
    CAPTURE(reason_of(r, "cached_tokens == expected"));
    CHECK(outcome_of(r, "cached_tokens == expected") == verdict::pass);
    CHECK(verdict_of(r, "cached_tokens == expected").measured == 8);
    CHECK(outcome_of(r, "prefilled_tokens == 7") == verdict::pass);
    lost = 3;
    const result less = run(s);
    CHECK(outcome_of(less, "cached_tokens == expected") == verdict::fail);
    CHECK(reason_of(less, "cached_tokens == expected") == "5 == 8: 3 fewer than expected");
    server.tell("/props", "{\"total_slots\":4}");
    CHECK(refusal_of(s).find("llama-server has a prefix cache for each of its slots, and its "
                             "/props does not say that it has one") != std::string::npos);
}

TEST_CASE("counts are held against another build, and against a run that was kept") {
    engine smaller = quick_engine();
    smaller.kv.block_tokens = 64;
    scenario s = talks_on(simulated(quick_engine()), "builds");
    s.baseline = simulated(smaller);
    s.slos = {cached_tokens >= baseline, prefilled_tokens <= 0.9 * baseline,
              generated_tokens == baseline, cached_tokens <= baseline};
    const result pair = run(s);
    for (const char* slo : {"cached_tokens >= baseline", "prefilled_tokens <= 0.9 * baseline",
                            "generated_tokens == baseline"}) {
        CAPTURE(reason_of(pair, slo));
        CHECK(outcome_of(pair, slo) == verdict::pass);
    }
    CHECK(outcome_of(pair, "cached_tokens <= baseline") == verdict::fail);
    CHECK(reason_of(pair, "cached_tokens <= baseline").find(" more than the baseline") !=
          std::string::npos);

    const scratch files;
    const std::string file = files.file("work.json");
    s = talks_on(simulated(quick_engine()), "kept");
    s.baseline = stored(file.c_str());
    s.slos = {cached_tokens == baseline, prefilled_tokens <= baseline};
    {
        const variable writing("LLMBENCH_WRITE_BASELINE", "1");
        run(s);
    }
    const result again = run(s);
    CAPTURE(reason_of(again, "cached_tokens == baseline"));
    CHECK(outcome_of(again, "cached_tokens == baseline") == verdict::pass);
    CHECK(outcome_of(again, "prefilled_tokens <= baseline") == verdict::pass);
    engine none = quick_engine();
    none.prefix_cache = false;
    s.target = simulated(none);
    CHECK(outcome_of(run(s), "cached_tokens == baseline") == verdict::fail);
}

TEST_CASE("a rehearsal counts on its model, whose cache is empty before each repeat") {
    virtual_world::has_rehearsed = true;
    const variable rehearsing("LLMBENCH_REHEARSE", "1");
    const result r = run(talks_on(at("http://127.0.0.1:1"), "rehearsed"));
    for (const char* slo : objectives) {
        CAPTURE(reason_of(r, slo));
        CHECK(outcome_of(r, slo) == verdict::skipped);
        CHECK(reason_of(r, slo) == "a rehearsal: pass on the model");
    }
}

TEST_CASE("the page has a table of all counts, with what is expected of prompts") {
    run(talks_on(simulated(quick_engine()), "shown"));
    const std::string page = content_of(report_file("report.html"));
    CHECK(page.find("Work of the server <span>from one idle page to another</span>") !=
          std::string::npos);
    for (const char* count : {"server_<wbr>requests", "prefilled_<wbr>tokens", "engine_<wbr>steps"})
        CHECK(page.find(std::string("<th scope=\"row\">") + count + "</th>") !=
              std::string::npos);
}

namespace {

const arrival_pattern held = all_at_once().held(post("/pause?mode=keep"), post("/resume"));

/// Two batches of 12: one step for the prompts and the first tokens, and 7 more for 8 tokens.
scenario burst_on(const any_target& target, const char* name) {
    return {.name = name,
            .target = target,
            .workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(8)},
            .arrivals = held,
            .requests = 24,
            .slos = {engine_steps == 16, server_requests == expected},
            .prepare = {reset}};
}
engine engine_with(int slots) {
    engine e = quick_engine();
    e.slots = slots;
    return e;
}
const char* const sixteen = "engine_steps == 16";

/// A server without a page, whose answers to posts are told; what came in turn: P and R of the two
/// posts, one dot for all requests between them.
struct held_server {
    std::string hold, release;
    int requests = 0;
    std::function<void()> on_request = [] {}, on_release = [] {};
    scripted::server server{[this](const scripted::request& r) {
        if (r.path.starts_with("/pause")) return answer_to_post(hold);
        if (r.path.starts_with("/resume")) {
            const scripted::answer a = answer_to_post(release);
            on_release();
            return a;
        }
        ++requests;
        on_request();
        return scripted::healthy();
    }};
    static scripted::answer answer_to_post(const std::string& status) {
        if (status.empty()) return {scripted::stall()};
        return {scripted::send(scripted::json(status, "{}"))};
    }
    std::string turns() const {
        std::string turns;
        for (const scripted::request& r : server.log()) {
            const char what = r.path.starts_with("/pause")    ? 'P'
                              : r.path.starts_with("/resume") ? 'R' : '.';
            if (what != '.' || !turns.ends_with('.')) turns += what;
        }
        return turns;
    }
    scenario burst(const char* name) const {
        scenario s{.name = name,
                   .target = endpoint{.url = server.url(), .model = "m"},
                   .workload = prompts({"one"}),
                   .arrivals = held,
                   .warmup = 0,
                   .requests = 8,
                   .repeats = 2};
        return s;
    }
};
const char* const ok = "200 OK";

}  // namespace

TEST_CASE("a burst that is held until all is there has the same steps each time") {
    scenario s = burst_on(simulated(engine_with(12)), "held");
    s.repeats = 5;
    const result r = run(s);
    CAPTURE(reason_of(r, sixteen));
    CHECK(outcome_of(r, sixteen) == verdict::pass);
    CHECK(verdict_of(r, sixteen).repeats == 5);
    CHECK(outcome_of(r, "server_requests == expected") == verdict::pass);
    check_rejudged(r, s.slos);
    const result half = run(burst_on(simulated(engine_with(6)), "half of the slots"));
    CHECK(outcome_of(half, sixteen) == verdict::fail);
    CHECK(reason_of(half, sixteen) == "32 == 16: 16 more");
    s.arrivals = all_at_once();
    CHECK(refusal_of(s).find("hold a burst, all_at_once().held(") != std::string::npos);
}

TEST_CASE("a rehearsal holds its model by a path that it knows") {
    virtual_world::has_rehearsed = true;
    const variable rehearsing("LLMBENCH_REHEARSE", "1");
    scenario s = burst_on(at("http://127.0.0.1:1"), "held rehearsal");
    s.arrivals = all_at_once().held(post("/own/hold"), post("/own/release"));
    s.slos = {server_requests == expected, engine_steps == 8};
    const result r = run(s);
    for (const char* slo : {"server_requests == expected", "engine_steps == 8"}) {
        CAPTURE(slo);
        CHECK(reason_of(r, slo) == "a rehearsal: pass on the model");
    }
}

TEST_CASE("each repeat is held before its first request and released after its last, not its warm-up") {
    held_server on{ok, ok};
    scenario s = on.burst("in turn");
    run(s);
    CHECK(on.turns() == "P.RP.R");
    CHECK(on.requests == 16);
    held_server warmed{ok, ok};
    s = warmed.burst("after a warm-up");
    s.warmup = 3;
    run(s);
    CHECK(warmed.turns() == ".P.R.P.R");
    CHECK(warmed.requests == 22);
}

TEST_CASE("a server is released once its page shows all requests, or 2 s after the last was sent") {
    for (const bool has_page : {true, false}) {
        CAPTURE(has_page);
        const scripted::server slow([](const scripted::request& r) {
            if (r.path.starts_with("/pause") || r.path.starts_with("/resume"))
                return held_server::answer_to_post(ok);
            scripted::answer late{scripted::wait(std::chrono::milliseconds(4000))};
            for (const scripted::step& s : scripted::healthy()) late.push_back(s);
            return late;
        });
        if (has_page)
            slow.report([&](const scripted::request&) {
                const auto log = slow.log();
                const auto waiting = std::count_if(log.begin(), log.end(), [](const auto& r) {
                    return r.path.starts_with("/v1/");
                });
                return "vllm:num_requests_running 0\nvllm:num_requests_waiting " +
                       std::to_string(waiting) + "\n";
            });
        scenario s = held_server{ok, ok}.burst(has_page ? "shown" : "not shown");
        s.target = endpoint{.url = slow.url(), .model = "m"};
        s.repeats = 1;
        run(s);
        const auto log = slow.log();
        REQUIRE(log.size() == 10);
        REQUIRE(log.back().path == "/resume");
        const double after_s =
            static_cast<double>(log[9].received_ns - log[8].received_ns) * 1e-9;
        CAPTURE(after_s);
        CHECK((has_page ? after_s < 0.2 : after_s >= 2 && after_s < 2.2));
    }
}

TEST_CASE("a server that does not hold, or does not go on, is measured no further, and is released") {
    held_server refuses{"404 Not Found", ok};
    CHECK(why_no_result(refuses.burst("not held")) ==
          "arrivals, held in repeat 1 on " + refuses.server.url() +
              ": POST /pause?mode=keep was answered with HTTP 404: {}");
    CHECK(refuses.turns() == "PR");
    CHECK(reported_gate("not held").get("outcome").to_str() == "invalid");

    held_server silent{"", ok};
    CHECK(why_no_result(silent.burst("never held")).ends_with(
        "POST /pause?mode=keep failed: no answer within 30 s"));
    CHECK(silent.turns() == "PR");

    held_server late{ok, "500 Internal Server Error"};
    late.on_release = [&] { late.release = ok; };
    const long long from_ns = virtual_world::now_ns();
    CHECK(why_no_result(late.burst("released at the second try"))
              .ends_with("POST /resume was answered with HTTP 500: {}"));
    CHECK(late.turns() == "P.RR");
    CHECK(seconds(virtual_world::now_ns() - from_ns) < 5);

    interruption stop;
    held_server interrupted{ok, ""};
    interrupted.on_release = [&] {
        interrupted.release = ok;
        virtual_world::after(100'000'000, [&] { stop.come(); });
    };
    CHECK(why_no_result(interrupted.burst("interrupted in the release"))
              .ends_with("the run was interrupted before it answered"));
    CHECK(interrupted.turns() == "P.RR");
}

TEST_CASE("a server that does not go on at the second try is said to hold its requests still") {
    held_server stays{ok, "500 Internal Server Error"};
    CHECK(why_no_result(stays.burst("not released")) ==
          "arrivals, held in repeat 1 on " + stays.server.url() +
              ": POST /resume was answered with HTTP 500: {}; the server may hold its requests "
              "still");
    CHECK(stays.turns() == "P.RR");
}
