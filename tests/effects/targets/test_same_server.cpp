// Whether a candidate and its baseline are one server by two names.
#include "effects/gates/gate_servers.hpp"
#include "effects/targets/same_server.hpp"

#include "support/scratch.hpp"
#include "support/scripted_server.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#ifdef __linux__
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#endif

using namespace llmbench;
using namespace llmbench::detail;
using texts::holds;

namespace {
load_target at(const std::string& url) {
    load_target t;
    static_cast<http_server&>(t) = server_at(parsed_url(url, "endpoint.url"));
    t.model = "m";
    t.path = t.url.path + "/v1/chat/completions";
    return t;
}
std::string reason(const load_target& a, const load_target& b) {
    return same_server_reason(a, "http://one", b, "http://other");
}
bool same(const std::string& a, const std::string& b) { return !reason(at(a), at(b)).empty(); }
}  // namespace

TEST_CASE("one address and port is one server, by whatever name") {
    CHECK(same("http://127.0.0.1:8000", "http://127.0.0.1:8000"));
    CHECK(same("http://127.0.0.1:8000", "http://127.0.0.1:8000/"));
    CHECK(same("http://127.0.0.1", "http://127.0.0.1:80"));
    CHECK(same("http://127.0.0.1:8000", "http://localhost:8000"));
    CHECK(same("http://127.0.0.1:8000", "http://[::1]:8000"));
    CHECK(same("http://127.0.0.1:8000", "http://[::ffff:127.0.0.1]:8000"));
    CHECK(same("http://10.1.2.3:8000", "http://[::ffff:10.1.2.3]:8000"));
    CHECK(same("http://[::1]:8000", "http://[0:0:0:0:0:0:0:1]:8000"));
    CHECK_FALSE(same("http://127.0.0.1:8000", "http://127.0.0.1:8001"));
    CHECK_FALSE(same("http://127.0.0.1:8000", "http://127.0.0.2:8000"));
    CHECK_FALSE(same("http://10.1.2.3:8000", "http://10.1.2.4:8000"));
    CHECK_FALSE(same("http://127.0.0.1:8000", "unix:/run/a.socket"));
    const std::string why = reason(at("http://127.0.0.1:8000"), at("http://localhost:8000"));
    for (const char* words : {"http://one", "http://other", "LLMBENCH_BASELINE_URL",
                              "otherwise{.same = true}", "model", "header"})
        CHECK(holds(why, words));
}

#ifdef __linux__
namespace {
/// A socket that listens to these addresses of this machine.
struct listening {
    explicit listening(const std::string& digits, int port = 0)
        : fd(new_socket(digits.find(':') == std::string::npos ? AF_INET : AF_INET6)) {
        const int off = 0;
        sockaddr_in6 v6{};
        sockaddr_in v4{};
        v6.sin6_family = AF_INET6;
        v4.sin_family = AF_INET;
        v6.sin6_port = v4.sin_port = htons(static_cast<std::uint16_t>(port));
        const bool is_v4 = ::inet_pton(AF_INET, digits.c_str(), &v4.sin_addr) == 1;
        if (!is_v4) {
            ::inet_pton(AF_INET6, digits.c_str(), &v6.sin6_addr);
            ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        }
        is_bound = (is_v4 ? ::bind(fd.get(), reinterpret_cast<sockaddr*>(&v4), sizeof v4)
                          : ::bind(fd.get(), reinterpret_cast<sockaddr*>(&v6), sizeof v6)) == 0 &&
                   ::listen(fd.get(), 1) == 0;
        address a;
        a.size = sizeof a.storage;
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&a.storage), &a.size);
        number = port_number_of(a);
    }
    std::string at(const std::string& host) const {
        return "http://" + host + ":" + std::to_string(number);
    }
    descriptor fd;
    bool is_bound = false;
    int number = 0;
};
}  // namespace

TEST_CASE("one listening socket is one server at every address of the machine") {
    for (const char* all : {"0.0.0.0", "::"}) {
        CAPTURE(all);
        const listening l(all);
        if (!l.is_bound && *all == ':') continue;  // a machine without IPv6
        REQUIRE(l.is_bound);
        CHECK(same(l.at("127.0.0.1"), l.at("127.0.0.2")));
        CHECK_FALSE(same(l.at("127.0.0.1"), l.at("192.0.2.1")));  // an address of others
    }
    const listening one("127.0.0.1"), other("127.0.0.2", one.number);
    REQUIRE(one.is_bound);
    if (other.is_bound) CHECK_FALSE(same(one.at("127.0.0.1"), other.at("127.0.0.2")));
    // One that is bound to all addresses, and another to one of them.
    const listening most("127.0.0.3");
    const listening rest("0.0.0.0", most.number);
    if (rest.is_bound) CHECK_FALSE(same(most.at("127.0.0.3"), most.at("127.0.0.1")));
}
#endif

TEST_CASE("a Unix-domain socket is one server through links as well") {
    const files::scratch files;
    const std::string socket = files.file("server.sock"), link = files.file("link.sock");
    std::ofstream{socket} << "";  // what is asked is only whether both names are one file
    std::filesystem::create_symlink(socket, link);
    CHECK(same("unix:" + socket, "unix:" + socket));
    CHECK(same("unix:" + socket, "unix://" + socket));
    CHECK(same("unix:" + socket, "unix:" + link));
    CHECK_FALSE(same("unix:" + socket, "unix:" + files.file("another.sock")));
}

TEST_CASE("two models, paths or routes of one gateway are compared") {
    const load_target one = at("http://127.0.0.1:8000");
    load_target other = one;
    CHECK_FALSE(reason(one, other).empty());
    other.model = "m-lora";
    CHECK(reason(one, other).empty());
    other = one;
    other.path = "/v1/completions";
    CHECK(reason(one, other).empty());
    other = one;
    other.fields = "X-Route: canary\r\n";
    CHECK(reason(one, other).empty());
    CHECK(same("http://127.0.0.1:8000/a", "http://localhost:8000/a/"));
    CHECK_FALSE(same("http://127.0.0.1:8000/a", "http://127.0.0.1:8000/b"));
}

// ---- one process behind two addresses

namespace {
/// What a process counts, whatever port it is asked at.
struct counting {
    double began = not_a_number;  // which its page tells, where it is known
    std::atomic<int> requests{40}, tokens{900};
    bool reports_counts = true;
    std::string page() const {
        std::string text = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 0\n";
        if (reports_counts)
            text += "vllm:request_success_total " + std::to_string(requests.load()) +
                    "\nvllm:generation_tokens_total " + std::to_string(tokens.load()) + "\n";
        if (!std::isnan(began))
            text += "process_start_time_seconds " + std::to_string(began) + "\n";
        return text;
    }
};
/// A port of it, that answers a token to everybody who asks.
struct port_of {
    explicit port_of(counting& process) {
        server.on_check([&process] {
            ++process.requests;
            ++process.tokens;
        });
        server.report([&process](const scripted::request&) { return process.page(); });
        to = at(server.url());
        to.api = &traits_of(openai_chat);
        pages.all.push_back({.url = server.url() + "/metrics", .at = to, .path = "/metrics"});
        pages.first_is_servers = true;
    }
    scripted::server server;
    load_target to;
    server_pages pages;
};
bool one_process(const port_of& a, const port_of& b) {
    return lead_to_one_process(a.to, a.pages, b.to, b.pages, {});
}
}  // namespace

TEST_CASE("a port that is forwarded to the other's process leads to one process") {
    for (const double began : {not_a_number, 1763829000.12}) {
        counting process;
        process.began = began;
        const port_of mine(process), forwarded(process);
        CHECK(one_process(mine, forwarded));
        CHECK(holds(one_process_text("target", "http://a", "baseline", "http://b"),
                    "target at http://a and baseline at http://b lead to one process"));
    }
}

TEST_CASE("two processes are two, however alike they are and whatever they tell") {
    counting first, second;  // started alike, and asked for as much so far
    const port_of a(first), b(second);
    CHECK_FALSE(one_process(a, b));
    CHECK(first.requests == 41);
    CHECK(second.requests == 40);
    first.requests = first.tokens = second.requests = second.tokens = 900;
    first.began = second.began = 1763829000.12;  // within the grain of that
    CHECK_FALSE(one_process(a, b));
    second.began = 1763829999;
    const int asked = first.requests;
    CHECK_FALSE(one_process(a, b));
    CHECK(first.requests == asked);  // nothing had to be asked for that
    // Whoever tells nothing of requests is believed.
    counting mute;
    mute.reports_counts = false;
    const port_of c(mute), d(mute);
    CHECK_FALSE(one_process(c, d));
}

TEST_CASE("models and routes of one process by two addresses are compared") {
    counting process;
    const port_of mine(process);
    port_of other(process);
    other.to.model = "m-lora";
    CHECK_FALSE(one_process(mine, other));
    other.to.model = mine.to.model;
    other.pages = {};
    CHECK_FALSE(one_process(mine, other));
}

TEST_CASE("a gateway before its own server is asked what it adds, in milliseconds") {
    const auto asks = [](const vector<slo>& slos) { return asks_what_is_added(slos); };
    CHECK(asks({mean(ttft) <= baseline + 1_ms}));
    CHECK(asks({mean(ttft) <= baseline + 1_ms, p90(ttft) <= 1.1 * baseline + 2_ms,
                mean(tpot) <= 30_ms}));
    // One server under two names would be green.
    CHECK_FALSE(asks({mean(ttft) <= 1.1 * baseline}));
    CHECK_FALSE(asks({mean(ttft) <= baseline + 1_ms, mean(tpot) <= 1.1 * baseline}));
    CHECK_FALSE(asks({mean(ttft) <= baseline - 1_ms}));
    CHECK_FALSE(asks({output_throughput >= baseline - 10_tps}));
    CHECK_FALSE(asks({mean(ttft) <= 30_ms}));
}
