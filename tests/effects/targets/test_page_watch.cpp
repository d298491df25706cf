// Pages read beside a load: readings that the client itself cannot make, and several processes that
// answer in turns.
#include "effects/targets/server_pages.hpp"

#include "support/descriptors.hpp"
#include "support/scripted_server.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

using namespace llmbench;
using namespace llmbench::detail;
using texts::holds;

namespace {

/// The pages of a server at this address, as a target finds them.
server_pages pages_at(const std::string& url) {
    server_pages p;
    p.all.push_back({.url = url + "/metrics", .at = server_at(parsed_url(url, "url")), .path = "/metrics"});
    p.first_is_servers = true;
    return p;
}
/// Takes all descriptors that are left, for as long as it lives.
class no_descriptors {
public:
    no_descriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const int next = ::dup(0);
        ::close(next);
        rlimit none = before_;
        none.rlim_cur = static_cast<rlim_t>(next);
        ::setrlimit(RLIMIT_NOFILE, &none);
    }
    ~no_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};
const char* const quiet_page = "# TYPE vllm:num_requests_waiting gauge\n"
                               "vllm:num_requests_waiting 0\n";

}  // namespace

TEST_CASE("a client without a descriptor left misses a reading, and goes on") {
    if (a_sanitizer_needs_descriptors) return;
    scripted::server server;
    server.report([](const scripted::request&) { return std::string(quiet_page); });
    const server_pages pages = pages_at(server.url());
    page_watch watch(pages, {});
    server_metrics reported;
    {
        const no_descriptors lack;
        CHECK(holds(read_page(pages.all[0]).problem, "the client cannot start: "));
        reported = watch.metrics(0);
    }
    CHECK(reported.readings.size() >= 1);
    CHECK(reported.missed_ns.size() >= 1);
    CHECK_FALSE(reported.has_both_ends);
    CHECK(holds(reported.problem, "/metrics: the client cannot start: "));
}

TEST_CASE("a page that had nothing on it when it was found is its server's all the same") {
    std::atomic<int> looks{0};
    scripted::server server;
    server.report(
        [&](const scripted::request&) { return looks++ == 0 ? "" : std::string(quiet_page); });
    const server_pages pages = pages_at(server.url());
    page_watch watch(pages, {});
    CHECK(watch.metrics(0).of == "vLLM");
}

// ---- several processes behind one address, each connection another one

namespace {
/// Processes that take turns, as a proxy's or a cluster's do.
struct taking_turns {
    std::array<int, 2> done{20, 1000};
    std::array<double, 2> began{not_a_number, not_a_number};
    std::atomic<std::size_t> next{0};
    std::string page() {
        const std::size_t i = next++ % 2;
        std::string text = "vllm:num_requests_waiting 0\nvllm:request_success_total " +
                           std::to_string(done[i]) + "\n";
        if (!std::isnan(began[i]))
            text += "process_start_time_seconds " + std::to_string(began[i]) + "\n";
        return text;
    }
};
/// One reading before a load and one after it, in which each process served its half of this many.
server_metrics watched(taking_turns& all, int requests) {
    scripted::server server;
    server.report([&](const scripted::request&) { return all.page(); });
    const server_pages pages = pages_at(server.url());
    page_watch watch(pages, {});
    for (int& n : all.done) n += requests / 2;
    return watch.metrics(0);
}
}  // namespace

TEST_CASE("processes in turns are several by two readings, whether or not they tell a beginning") {
    for (const std::size_t first : {0u, 1u}) {
        taking_turns unreported;
        unreported.next = first;
        const server_metrics w = watched(unreported, 50);
        CHECK(w.is_of_several);
        CHECK(history_of(w) == page_history::several_servers);
        taking_turns reported;
        reported.next = first;
        reported.began = {1700000000, 1700000900};
        CHECK(history_of(watched(reported, 50)) == page_history::several_servers);
    }
}

TEST_CASE("one process is one, though others ask it for more while it is looked at") {
    std::atomic<int> done{20};
    scripted::server server;
    server.report([&](const scripted::request&) {
        return "vllm:request_success_total " + std::to_string(done++) + "\n";
    });
    const server_pages pages = pages_at(server.url());
    page_watch watch(pages, {});
    const server_metrics w = watch.metrics(0);
    CHECK_FALSE(w.is_of_several);
    CHECK(history_of(w) == page_history::one_process);
    CHECK(w.from_s > 1.7e9);  // by our own clock, where the server's is not told
}

TEST_CASE("a process that began again between two readings has restarted, and is no second one") {
    for (const bool reports : {true, false}) {
        std::atomic<bool> again{false};
        const double later = unix_s() + 1;
        scripted::server server;
        server.report([&](const scripted::request&) {
            return "vllm:request_success_total " + std::to_string(again ? 3 : 1000) + "\n" +
                   (reports ? "process_start_time_seconds " +
                                std::to_string(again ? later : 1700000000) + "\n"
                          : "");
        });
        const server_pages pages = pages_at(server.url());
        page_watch watch(pages, {});
        again = true;
        const server_metrics w = watch.metrics(0);
        CHECK(history_of(w) == page_history::restarted);
    }
}

TEST_CASE("a request that goes through two stages is one of ours, and no other client's") {
    std::atomic<int> done{100};
    scripted::server server;
    server.report([&](const scripted::request&) {
        const int n = done.load();
        return "vllm:num_requests_waiting 0\n" +
               printed("vllm:request_success_total{stage=\"0\"} %d\n", n) +
               printed("vllm:request_success_total{stage=\"1\"} %d\n", n + 7);
    });
    const server_pages pages = pages_at(server.url());
    page_watch watch(pages, {});
    done += 50;
    const server_metrics reported = watch.metrics(50);
    REQUIRE(reported.readings.size() >= 2);
    CHECK(whole_span(reported)->change(server_quantity::requests_done) == 50);
}
