// A server that caches a prompt when its answer ends, as SGLang does: what several users compute of
// what they share depends on time, unless prime() has sent it before.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "virtual/execution_environment.hpp"
#include "virtual/scripted_server.hpp"

#include "llmbench_work.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

/// A token is a word, a page of the cache one token. How long an answer takes is drawn.
struct cache_of_ended {
    std::map<std::string, int> words{};
    std::vector<std::pair<long long, std::vector<int>>> kept{};  // from then on
    unsigned drawn = 1;
    int slow_ms = 0;  // until it tells the tokens of a prompt, once
    long long requests = 0, prompts = 0, cached = 0;
    std::vector<long long> at_reset{};  // cached so far
    scripted::server server{[this](const scripted::request& r) { return answer_to(r); }};

    cache_of_ended() {
        server.report([this](const scripted::request&) {
            const auto line = [](const char* name, long long n) {
                return std::string("sglang:") + name + " " + std::to_string(n) + "\n";
            };
            return line("num_running_reqs", 0) + line("num_queue_reqs", 0) + line("page_size", 1) +
                   line("num_requests_total", requests) + line("prompt_tokens_total", prompts) +
                   line("cached_tokens_total", cached) +
                   line("generation_tokens_total", 3 * requests);
        });
    }
    /// The words of all messages.
    std::vector<int> ids_in(const std::string& body) {
        std::vector<int> ids;
        const std::string before = body.find("\"prompt\":") == std::string::npos ? "\"content\":\""
                                                                                 : "\"prompt\":\"";
        for (std::size_t at = 0; (at = body.find(before, at)) != std::string::npos;) {
            at += before.size();
            std::istringstream said(body.substr(at, body.find('"', at) - at));
            for (std::string word; said >> word;)
                ids.push_back(words.try_emplace(word, static_cast<int>(words.size())).first->second);
        }
        return ids;
    }
    scripted::answer answer_to(const scripted::request& r) {
        if (r.path == "/flush_cache") {
            kept.clear();
            at_reset.push_back(cached);
            return {scripted::send(scripted::json("200 OK", "{}"))};
        }
        const std::vector<int> ids = ids_in(r.body);
        if (r.path == "/tokenize") {
            std::string list;
            for (const int id : ids) list += (list.empty() ? "" : ",") + std::to_string(id);
            return {scripted::wait(std::chrono::milliseconds(std::exchange(slow_ms, 0))),
                    scripted::send(scripted::json("200 OK", "{\"count\":" + std::to_string(ids.size()) +
                                                                ",\"tokens\":[" + list + "]}"))};
        }
        std::size_t found = 0;
        for (const auto& [from_ns, sequence] : kept) {
            if (from_ns > r.received_ns) continue;
            const auto end = std::mismatch(ids.begin(), ids.end() - 1, sequence.begin(),
                                           sequence.end());
            found = std::max(found, static_cast<std::size_t>(end.first - ids.begin()));
        }
        drawn = drawn * 1103515245u + 12345u;
        const long long took_ms = 1 + (drawn >> 16) % 50;
        kept.emplace_back(r.received_ns + took_ms * 1'000'000, ids);
        ++requests;
        prompts += static_cast<long long>(ids.size());
        cached += static_cast<long long>(found);
        return {scripted::wait(std::chrono::milliseconds(took_ms)),
                scripted::send(scripted::sized_stream(
                    scripted::healthy_events(3, static_cast<int>(ids.size()))))};
    }
    /// Cached in each of two repeats; the first reset follows what was asked before.
    std::vector<long long> of_repeats() const {
        const std::size_t n = at_reset.size();
        return {at_reset[n - 1] - at_reset[n - 2], cached - at_reset[n - 1]};
    }
};

/// 24 prompts of 12 words: all share four, a third of them eight, a sixth ten.
scenario users_of(const scripted::server& server, const char* name) {
    std::vector<std::string> all;
    for (int i = 0; i < 24; ++i) {
        const std::string third = " t" + std::to_string(i % 3), sixth = " s" + std::to_string(i % 6);
        all.push_back("we all begin alike" + third + third + third + third + sixth + sixth +
                      " " + static_cast<char>('a' + i) + "-own end");
    }
    return {.name = name,
            .target = endpoint{.url = server.url(), .model = "m"},
            .workload = prompts(all),
            .arrivals = closed_loop(4),
            .requests = 24,
            .slos = {cached_tokens == expected, prefilled_tokens == expected,
                     server_requests == expected},
            .prepare = {post("/flush_cache"), prime()}};
}

}  // namespace

TEST_CASE("several users of a cache of ended requests cost the same each time once it is primed") {
    cache_of_ended on;
    scenario s = users_of(on.server, "primed");
    const result r = run(s);
    for (const char* slo : {"cached_tokens == expected", "prefilled_tokens == expected",
                            "server_requests == expected"}) {
        CAPTURE(slo);
        CAPTURE(reason_of(r, slo));
        CHECK(outcome_of(r, slo) == verdict::pass);
    }
    CHECK(verdict_of(r, "cached_tokens == expected").measured == 24 * 10);
    s.name = "not primed";
    s.prepare = {post("/flush_cache")};
    s.slos = {cached_tokens <= 1'000};
    run(s);
    CHECK(on.of_repeats()[0] != on.of_repeats()[1]);
}

TEST_CASE("a server that is slow to tell its tokens gets the same prompts, or none") {
    std::vector<std::vector<std::string>> sent;
    const auto send_to = [&](int slow_ms) {
        cache_of_ended on;
        on.slow_ms = slow_ms;
        scenario s = users_of(on.server, "slow");
        s.workload = conversations{.turns = fixed(1), .user_tokens = fixed(12),
                                   .output_tokens = fixed(3)};
        s.slos = {server_requests == expected};
        s.repeats = 1;
        std::string why;
        refusal_by([&] {
            try {
                const result r = run(s);
                why = reason_of(r, "server_requests == expected");
            } catch (const std::runtime_error& e) { why = e.what(); }
        });
        std::vector<std::string>& bodies = sent.emplace_back();
        for (const scripted::request& r : on.server.log())
            if (r.path != "/tokenize" && r.body.find("\"max_tokens\":3,") != std::string::npos)
                bodies.push_back(r.body);
        std::sort(bodies.begin(), bodies.end());
        return why;
    };
    CHECK(send_to(0) == "");
    CHECK(send_to(20'000) == "");
    CHECK(sent[0].size() == 24);
    CHECK(sent[0] == sent[1]);
    CHECK(send_to(70'000).find("did not say within 60 s how many tokens words have") !=
          std::string::npos);
    CHECK(sent[2].empty());
}

TEST_CASE("each shared start is sent once, one after the other, for one token") {
    cache_of_ended on;
    scenario s = users_of(on.server, "sent");
    s.repeats = 1;
    run(s);
    std::vector<std::string> primers;
    bool is_reset = false;
    for (const scripted::request& r : on.server.log()) {
        if (r.path == "/flush_cache") is_reset = true;
        if (is_reset && r.path == "/v1/chat/completions" &&
            r.body.find("\"max_tokens\":1,") != std::string::npos)
            primers.push_back(r.body);
    }
    REQUIRE(primers.size() == 6);
    for (const std::string& body : primers) {
        CAPTURE(body);
        CHECK(on.ids_in(body).size() == 10);
    }
}

TEST_CASE("what depends on time is refused without prime()") {
    const cache_of_ended on;
    scenario s = users_of(on.server, "refused");
    s.prepare = {post("/flush_cache")};
    const std::string why =
        " is refused: SGLang caches a prompt once it is computed, so how many of several users "
        "compute what they share depends on time: end .prepare with prime(), or send one after the "
        "other, closed_loop(1)";
    for (const slo& x : {cached_tokens == expected, cached_tokens == 240, cached_tokens >= expected}) {
        s.slos = {x};
        CHECK(refusal_of(s).ends_with("the SLO " + std::string(x.text().c_str()) + why));
    }
    for (const slo& x : {cached_tokens >= 1, server_requests == expected}) {
        s.slos = {x};
        CHECK(refusal_of(s).empty());
    }
    s.slos = {cached_tokens == expected};
    s.arrivals = closed_loop(1);
    CHECK(refusal_of(s).empty());
}

TEST_CASE("prime() on the simulated server: one word of a chat, ids, conversations, a mix") {
    engine e = quick_engine();
    e.kv.block_tokens = 1;
    scenario s{.name = "primed simulation",
               .target = simulated(e),
               .workload = conversations{.turns = fixed(2),
                                         .user_tokens = uniform(20, 40),
                                         .output_tokens = uniform(10, 30),
                                         .system_tokens = fixed(20)},
               .arrivals = closed_loop(4),
               .requests = 24,
               .slos = {cached_tokens == expected, prefilled_tokens == expected},
               .prepare = {post("/reset_prefix_cache"), prime()}};
    const auto passes = [&] {
        const result r = run(s);
        CAPTURE(s.name.c_str());
        CAPTURE(reason_of(r, "cached_tokens == expected"));
        CHECK(outcome_of(r, "cached_tokens == expected") == verdict::pass);
        CHECK(outcome_of(r, "prefilled_tokens == expected") == verdict::pass);
    };
    passes();
    s.name = "shared prefix";
    s.workload = synthetic{.prompt_tokens = fixed(100), .output_tokens = fixed(8),
                           .shared_prefix = fixed(40), .prefix_groups = 3};
    passes();
    s.name = "primed mix";
    s.workload = mix({part{.name = "a", .workload = synthetic{.prompt_tokens = fixed(64)}},
                      part{.name = "b", .workload = synthetic{.prompt_tokens = fixed(32)}}});
    passes();
}
