// The simulated server's sockets, where the machine has none left.
#include "effects/net/blocking_http.hpp"
#include "extensions/simulated/host.hpp"

#include "support/descriptors.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

using namespace llmbench::detail;

TEST_CASE("a simulated server accepts those who came when it had no descriptor left") {
    if (a_sanitizer_needs_descriptors) return;
    simulated_host host{llmbench::engine{}};
    const http_server there =
        server_at({.host = "127.0.0.1", .port = std::to_string(host.port())});
    const address at = there.addresses.in_order().front();
    CHECK(blocking_get(there, "/health", "", 20).status == 200);

    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none_left = before;
    none_left.rlim_cur = 0;
    const descriptor client = descriptor(::socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(client.get() >= 0);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none_left) == 0);
    const int connected =
        ::connect(client.get(), reinterpret_cast<const sockaddr*>(&at.storage), at.size);
    // However much of this the server's thread is given: it may have tried in vain, many times.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE(connected == 0);  // the queue has taken it

    CHECK(blocking_get(there, "/health", "", 20).status == 200);
    const std::string ask = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    REQUIRE(::send(client.get(), ask.data(), ask.size(), no_signal) ==
            static_cast<ssize_t>(ask.size()));
    char first[12] = {};
    CHECK(::recv(client.get(), first, sizeof first, MSG_WAITALL) == 12);
    CHECK(std::string(first, 12) == "HTTP/1.1 200");
}

namespace {

/// A socket whose waits have a limit of 20 s.
class raw_client {
public:
    explicit raw_client(const simulated_host& host) {
        const http_server there =
            server_at({.host = "127.0.0.1", .port = std::to_string(host.port())});
        const address at = there.addresses.in_order().front();
        fd_ = descriptor(::socket(AF_INET, SOCK_STREAM, 0));
        const timeval limit{20, 0};
        const int small = 65536;
        ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        REQUIRE(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&at.storage), at.size) == 0);
    }
    /// The number of bytes that went out; fewer than all if the server has closed.
    std::size_t send(const std::string& bytes) {
        std::size_t sent = 0;
        while (sent < bytes.size()) {
            const ssize_t n = ::send(fd_.get(), bytes.data() + sent, bytes.size() - sent, no_signal);
            if (n <= 0) break;
            sent += static_cast<std::size_t>(n);
        }
        return sent;
    }
    /// Reads until these words have come, or to the end.
    std::string read_to(const std::string& words) {
        std::string all;
        char some[65536];
        while (words.empty() || all.find(words) == all.npos) {
            const ssize_t n = ::recv(fd_.get(), some, sizeof some, 0);
            if (n <= 0) break;
            all.append(some, static_cast<std::size_t>(n));
        }
        return all;
    }
    std::string rest() { return read_to(""); }

private:
    descriptor fd_{};
};
std::size_t times_in(const std::string& all, const std::string& words) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = all.find(words, at)) != all.npos; ++at) ++n;
    return n;
}
std::string post_of(const std::string& path, const std::string& body, const std::string& fields = "") {
    return "POST " + path + " HTTP/1.1\r\nHost: a\r\n" + fields +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
const std::string a_question = R"({"model":"simulated","max_tokens":2,"messages":[{"role":"user","content":"a"}]})";
const std::string and_close = "Connection: close\r\n";

class ends_of_answers : public service_observer {
public:
    void on_end(const service_entry& e) override { last = e.ended; }
    void on_profiler(const std::string&, int) override {}
    bool comes(answer_end what) const {
        for (int i = 0; i < 3000 && last != what; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return last == what;
    }
    std::atomic<answer_end> last{answer_end::open};
};

}  // namespace

TEST_CASE("a simulated server takes paths with a query, HEAD and Expect as servers do") {
    simulated_host host{llmbench::engine{}};
    for (const std::string& ask :
         {"GET /v1/models?api-version=1 HTTP/1.1\r\n" + and_close + "\r\n",
          post_of("/v1/chat/completions?api-version=1", a_question, and_close)}) {
        raw_client client(host);
        REQUIRE(client.send(ask) == ask.size());
        CHECK(client.rest().starts_with("HTTP/1.1 200"));
    }
    {
        raw_client client(host);
        client.send("HEAD /v1/models HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\n" + and_close + "\r\n");
        const std::string all = client.rest();
        CHECK(all.starts_with("HTTP/1.1 200"));
        CHECK(all.find("Content-Length: ") < all.find("\r\n\r\n"));
        CHECK(all.compare(all.find("\r\n\r\n") + 4, 12, "HTTP/1.1 200") == 0);
    }
    raw_client client(host);
    const std::string ask =
        post_of("/v1/chat/completions", a_question, and_close + "Expect: 100-continue\r\n");
    const std::size_t head = ask.find("\r\n\r\n") + 4;
    client.send(ask.substr(0, head));
    CHECK(client.read_to("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(ask.substr(head));
    const std::string answer = client.rest();
    CHECK(answer.starts_with("HTTP/1.1 200"));
    CHECK(answer.find("100 Continue") == answer.npos);
}

TEST_CASE("what is no request is refused once, and as many requests as come at once are answered") {
    simulated_host host{llmbench::engine{}};
    for (const std::string& garbage :
         {std::string(300000, 'x'), "a b\r\n\r\n" + std::string(300000, '\n'),
          "GET /health HTTP/1.1\r\n\r\nnone\r\n\r\n" + std::string(300000, '\n'),
          "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(300000, '1')}) {
        raw_client client(host);
        client.send(garbage);
        CHECK(times_in(client.rest(), "HTTP/1.1 400") <= 1);  // a reset may overtake it
    }
    raw_client client(host);
    std::string many;
    for (int i = 0; i < 2999; ++i) many += "GET /health HTTP/1.1\r\n\r\n";
    many += "GET /health HTTP/1.1\r\n" + and_close + "\r\n";
    REQUIRE(client.send(many) == many.size());
    CHECK(times_in(client.rest(), "HTTP/1.1 200") == 3000);
}

TEST_CASE("neither what is sent behind a request nor what a client does not read is kept without end") {
    using namespace llmbench::literals;
    ends_of_answers ends;
    simulated_host host(llmbench::engine{.decode_step = 100_s}, 0, &ends);
    {
        raw_client client(host);
        client.send(post_of("/v1/chat/completions", a_question));
        const std::string flood(std::size_t{64} << 20, 'x');
        CHECK(client.send(flood) < flood.size());
        CHECK(ends.comes(answer_end::left));
    }
    raw_client client(host);
    std::string many;
    for (int i = 0; i < 100000; ++i) many += "GET /metrics HTTP/1.1\r\n\r\n";
    client.send(many);
    CHECK(times_in(client.rest(), "HTTP/1.1 200") < 100000);
    CHECK(blocking_get(server_at({.host = "127.0.0.1", .port = std::to_string(host.port())}),
                       "/health", "", 20).status == 200);
}
