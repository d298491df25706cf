// Pages read beside a load: what becomes of readings that the client itself cannot make.
#include "effects/targets/page_watch.hpp"

#include "support/scripted_server.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

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
    p.all.push_back({.url = url + "/metrics", .at = parsed_url(url, "url"), .path = "/metrics"});
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
    scripted::server server;
    server.tell([](const scripted::request&) { return std::string(quiet_page); });
    const server_pages pages = pages_at(server.url());
    page_watch watch(pages, {});
    server_word told;
    {
        const no_descriptors lack;
        CHECK(holds(read_page(pages.all[0]).problem, "the client cannot start: "));
        told = watch.word(0);
    }
    CHECK(told.readings.size() >= 1);
    CHECK(told.missed >= 1);
    CHECK_FALSE(told.has_both_ends);
    CHECK(holds(told.problem, "/metrics: the client cannot start: "));
}
