// HTTP/1.1: URLs, the response parser of the client, the request parser of the simulated
// server.
#include "llmbench.hpp"
#include "core/wire/http.hpp"
#include "core/wire/url.hpp"
#include "extensions/simulated/core/questions.hpp"
#include "support/texts.hpp"

#include <tuple>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// Everything that a client can learn from one answer.
struct outcome {
    bool complete = false, broken = false, keep_alive = false;
    int status = 0;
    std::string body{}, error{}, type{};
    std::size_t taken = 0;
    auto all() const { return std::tie(complete, broken, keep_alive, status, body, error, type); }
};

/// Feeds the answer in pieces that end at the given places, then closes the connection.
outcome parsed(const std::string& bytes, const vector<std::size_t>& cuts = {},
               bool close = true) {
    response_parser p;
    outcome o;
    std::size_t from = 0;
    const auto feed = [&](std::size_t to) {
        const std::string piece =
            bytes.substr(from, to - from);  // a copy: the parser may not look past it
        o.taken += p.feed(piece, [&](std::string_view b) { o.body.append(b); });
        from = to;
    };
    for (const std::size_t cut : cuts) feed(cut);
    feed(bytes.size());
    if (close) p.end_of_input();
    o.complete = p.complete();
    o.broken = p.broken();
    o.keep_alive = p.complete() && p.use() == socket_use::kept;
    o.status = p.status();
    o.error = p.error();
    o.type = p.header("content-type");
    return o;
}

/// The answer as one piece, after checking that no other way of cutting it says anything else.
outcome parsed_every_way(const std::string& bytes) {
    const outcome whole = parsed(bytes);
    vector<std::size_t> every;
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        CAPTURE(cut);
        CHECK(parsed(bytes, {cut}).all() == whole.all());
        every.push_back(cut);
    }
    CHECK(parsed(bytes, every).all() == whole.all());
    return whole;
}

const std::string ok = "HTTP/1.1 200 OK\r\n";

std::string refusal(const std::string& url) {
    return texts::refusal_of([&] { parsed_url(url, "target.url"); });
}

}  // namespace

// ---- URLs --------------------------------------------------------------------------------------

TEST_CASE("a URL has a host, a port and a path") {
    const auto parts = [](const char* s) {
        const http_url u = parsed_url(s, "url");
        return u.host + "|" + u.port + "|" + u.path + "|" + u.authority();
    };
    CHECK(parts("http://localhost") == "localhost|80||localhost");
    CHECK(parts("http://localhost/") == "localhost|80||localhost");
    CHECK(parts("http://localhost:8000") == "localhost|8000||localhost:8000");
    CHECK(parts("http://localhost:8000/v1") == "localhost|8000|/v1|localhost:8000");
    CHECK(parts("http://localhost:8000/v1/") == "localhost|8000|/v1|localhost:8000");
    CHECK(parts("http://10.0.0.1:80/a/b//") == "10.0.0.1|80|/a/b|10.0.0.1");
    CHECK(parts("http://[::1]:8000/v1") == "::1|8000|/v1|[::1]:8000");
    CHECK(parts("http://[fe80::1]") == "fe80::1|80||[fe80::1]");
    CHECK(parts("http://h:65535") == "h|65535||h:65535");
    CHECK(parts("http://h/with:colon") == "h|80|/with:colon|h");
}

TEST_CASE("a URL that is refused is told with its field, its value and the reason") {
    CHECK(refusal("localhost:8000") ==
          "target.url is \"localhost:8000\": it must start with http://, https:// or unix:/");
    for (const char* url : {"ws://localhost:8000", "wss://localhost/v1"})
        CHECK(refusal(url) == std::string("target.url is \"") + url + "\": a WebSocket is asked for by "
                              "its transport, the URL begins with http:// or https://");
    CHECK(refusal("") == "target.url is \"\": it must start with http://, https:// or unix:/");
    CHECK(refusal("http://") == "target.url is \"http://\": the host is missing");
    CHECK(refusal("http://:8000") == "target.url is \"http://:8000\": the host is missing");
    CHECK(refusal("http:///v1") == "target.url is \"http:///v1\": the host is missing");
    CHECK(refusal("http://[]:80") == "target.url is \"http://[]:80\": the host is missing");
    CHECK(refusal("http://[::1") ==
          "target.url is \"http://[::1\": the IPv6 address has no closing bracket");
    CHECK(refusal("http://[::1]80") ==
          "target.url is \"http://[::1]80\": the port must follow a colon");
    CHECK(
        refusal("http://::1:8000") ==
        "target.url is \"http://::1:8000\": an IPv6 address stands in brackets, http://[::1]:8000");
    CHECK(refusal("http://h/a#b") ==
          "target.url is \"http://h/a#...\": a fragment is not allowed");
    CHECK(refusal("http://h/a?b#c") ==
          "target.url is \"http://h/a?...\": a fragment is not allowed");
    CHECK(refusal("http://me:p@ss@h:x?key=secret") ==
          "target.url is \"http://...@h:x?...\": the port must be a number from 1 to 65535");
    CHECK(refusal("http://me:pass@") == "target.url is \"http://...@\": the host is missing");
    for (const std::string port : {"0", "65536", "-1", "+1", "80x", "x", "", "4294967376"}) {
        const std::string url = "http://h:" + port;
        CHECK(refusal(url) ==
              "target.url is \"" + url + "\": the port must be a number from 1 to 65535");
    }
}

TEST_CASE("a query is kept, and what may be a key in it is not shown") {
    const http_url u = parsed_url("http://h:1/openai/chat/?api-version=2024-10-21&code=s3cret-s3", "url");
    CHECK(u.authority() == "h:1");
    CHECK(u.path == "/openai/chat");
    CHECK(u.query == "?api-version=2024-10-21&code=s3cret-s3");
    CHECK(parsed_url("http://h?a=/b", "url").host == "h");
    CHECK(parsed_url("http://h?a=/b", "url").query == "?a=/b");
    CHECK(parsed_url("http://h/?", "url").query == "");
    CHECK(without_path("http://h:1?a=/b") == "http://h:1");
    CHECK(shown_url("http://h/a?api-version=2024-10-21&code=s3cret-s3&x=&y&key=a=b") ==
          "http://h/a?api-version=2024-10-21&code=***&x=&y&key=***");
    CHECK(shown_url("http://h/a=b") == "http://h/a=b");
    CHECK(shown_url("http://h/a?api-version=1&code=1") == "http://h/a?api-version=1&code=***");
    CHECK(query_secrets("http://h/a?code=1&key=22") == vector<std::string_view>{"1", "22"});
    CHECK(query_secrets("http://h/a?").empty());
}

TEST_CASE("https has a port of its own") {
    const http_url u = parsed_url("https://[::1]/v1", "target.url");
    CHECK(u.tls);
    CHECK(u.port == "443");
    CHECK(u.authority() == "[::1]");
    CHECK(parsed_url("https://h:80", "target.url").authority() == "h:80");
    CHECK(parsed_url("http://h:443", "target.url").authority() == "h:443");
}

TEST_CASE("a Unix-domain socket is named by its full path") {
    for (const std::string url : {"unix:/run/server.sock", "unix:///run/server.sock"}) {
        const http_url u = parsed_url(url, "target.url");
        CHECK(u.socket == "/run/server.sock");
        CHECK(u.authority() == "localhost");
        CHECK(u.path == "");
        CHECK_FALSE(u.tls);
    }
    for (const std::string url : {"unix:", "unix:server.sock", "unix://run/server.sock"})
        CHECK(refusal(url) == "target.url is \"" + url +
                                  "\": a Unix-domain socket is named by its full path, "
                                  "unix:/run/server.sock");
    CHECK(parsed_url("unix:/" + std::string(106, 'a'), "target.url").socket.size() == 107);
    CHECK(refusal("unix:/" + std::string(107, 'a')).find("at most 107 bytes") !=
          std::string::npos);
}

TEST_CASE("no URL smuggles a line into a request or a terminal") {
    for (const std::string url : {"http://h\r\nX: 1", "http://h/a b", "http://h\t", " http://h",
                                  "http://h\x7f", "http://h/\x1b[1m"}) {
        CAPTURE(url);
        const std::string why = refusal(url);
        CHECK(why.find("a URL holds no spaces or control characters") != std::string::npos);
        for (const char c : why) CHECK(static_cast<unsigned char>(c) >= 0x20);
    }
}

TEST_CASE("a header is safe without line ends and zero bytes") {
    CHECK(is_header_safe("Bearer abc"));
    CHECK(is_header_safe(""));
    CHECK_FALSE(is_header_safe("a\rb"));
    CHECK_FALSE(is_header_safe("a\nb"));
    CHECK_FALSE(is_header_safe(std::string_view("a\0b", 3)));
}

// ---- answers: what test_wire_cases has is not here ------------------------------------------------

TEST_CASE("chunks may hold line ends and things that look like chunks") {
    const outcome o = parsed_every_way(
        ok + "Transfer-Encoding: chunked\r\n\r\n9\r\n\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n");
    CHECK(o.complete);
    CHECK(o.body == "\r\n0\r\n\r\n\r\n");
}

TEST_CASE("the data of the next chunk are known where it is whole, behind lines as most chunks have them") {
    const auto data = [](const char* s) { return std::string(response_parser::next_data(s)); };
    CHECK(data("\r\n5\r\nhello") == "hello");
    CHECK(data("\r\n5\r\nhello\r\n0\r\n\r\n") == "hello");
    CHECK(data("\r\na\r\n0123456789x") == "0123456789");
    CHECK(data("\r\n00000A\r\n0123456789") == "0123456789");
    for (const char* other :
         {"", "\r\n5\r\nhell", "\r\n6\r\nhello", "\r\n0\r\n\r\n12345", "5\r\nhello\r\n", "\n5\r\nhello12", "\r\n5\nhello12",
          "\r\n5;x\r\nhello", "\r\n5 \r\nhello", "\r\n-5\r\nhello", "\r\n0000005\r\nhello", "\r\n1000000\r\nhello"}) {
        CAPTURE(other);
        CHECK(data(other) == "");
    }
}

TEST_CASE("chunks that are taken off by another leave the rest of the answer as it is") {
    const std::string bytes = ok + "Transfer-Encoding: chunked\r\n\r\n"
                                   "5\r\nhello\r\n1\r\n \r\n5;x=1\r\nworld\r\n0006\r\n, you!\r\n2\r\n!!\r\n0\r\nX: y\r\n\r\n";
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        CAPTURE(cut);
        response_parser p;
        std::string body;
        std::size_t taken = 0, chunks = 0;
        const auto take = [&](std::string_view& rest) {
            const std::string_view data = response_parser::next_data(rest);
            if (data.empty()) return false;
            body += data;
            rest.remove_prefix(static_cast<std::size_t>(data.data() + data.size() - rest.data()));
            return ++chunks > 0;
        };
        for (const std::string& piece : {bytes.substr(0, cut), bytes.substr(cut)})
            taken += p.feed(piece, [&](std::string_view b) { body.append(b); }, take);
        CHECK(p.complete());
        CHECK(p.use() == socket_use::kept);
        CHECK(body == "hello world, you!!!");
        CHECK(taken == bytes.size());
        if (cut == 0) CHECK(chunks == 3);  // not the first one, and none with an extension
    }
    response_parser p;
    std::string body;
    p.feed(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n2\r\n, you!\r\n", [&](std::string_view b) { body.append(b); },
           [&](std::string_view& rest) {
               const std::string_view data = response_parser::next_data(rest);
               if (!data.empty()) rest.remove_prefix(5 + data.size());
               return !data.empty();
           });
    CHECK(p.error() == "chunk data is longer than its size");
}

TEST_CASE("what follows a complete answer is left alone") {
    const std::string answer = ok + "Content-Length: 2\r\n\r\nhi";
    const outcome o = parsed(answer + "HTTP/1.1 500 Oops\r\n\r\n");
    CHECK(o.taken == answer.size());
    CHECK(o.status == 200);
    CHECK(o.body == "hi");
    const std::string chunked = ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    CHECK(parsed(chunked + "HTTP").taken == chunked.size());
}

TEST_CASE("a parser that was reset reads the next answer as if it were new") {
    response_parser p;
    const auto ignore = [](std::string_view) {};
    p.feed("HTTP/1.0 500 Oops\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx", ignore);
    CHECK(p.complete());
    p.reset();
    CHECK(p.untouched());
    p.feed(ok + "Content-Length: 0\r\n\r\n", ignore);
    CHECK(p.complete());
    CHECK(p.status() == 200);
    CHECK(p.use() == socket_use::kept);
}

TEST_CASE("an answer is untouched until its first byte") {
    const auto ignore = [](std::string_view) {};
    response_parser p;
    CHECK(p.untouched());
    p.feed("", ignore);
    CHECK(p.untouched());
    p.feed("H", ignore);
    CHECK_FALSE(p.untouched());

    response_parser interim;
    interim.feed("HTTP/1.1 100 Continue\r\n\r\n", ignore);
    CHECK_FALSE(interim.untouched());
    CHECK_FALSE(interim.head_done());
}

TEST_CASE("the head is done before the body begins") {
    response_parser p;
    std::string body;
    const auto keep = [&](std::string_view b) { body.append(b); };
    p.feed(ok + "Content-Length: 2\r\n", keep);
    CHECK_FALSE(p.head_done());
    p.feed("\r\n", keep);
    CHECK(p.head_done());
    CHECK(body.empty());
    p.feed("h", keep);
    CHECK(body == "h");
    CHECK_FALSE(p.complete());
}

// ---- answers that are refused ------------------------------------------------------------------

TEST_CASE("a server that speaks HTTP/2 only is told as that") {
    // SETTINGS of HTTP/2: three settings, and a WINDOW_UPDATE behind them; none.
    const std::string frames[] = {std::string("\0\0\x12\4\0\0\0\0\0\0\3\0\0\0\x80\0\4\0\1\0\0\0\5\0\xFF\xFF\xFF"
                                              "\0\0\4\x08\0\0\0\0\0\x7F\xFF\0\0", 40),
                                  std::string("\0\0\0\4\0\0\0\0\0", 9)};
    for (const std::string& settings : frames)
        CHECK(parsed_every_way(settings).error ==
              "the server speaks HTTP/2 only: it answers with a SETTINGS frame, and requests are "
              "sent in HTTP/1.1");
}

TEST_CASE("heads and chunk lines have a greatest size") {
    const std::size_t longest = response_parser::max_line;
    const auto line_of = [](std::size_t n) { return "X: " + std::string(n - 5, 'a') + "\r\n"; };
    CHECK(parsed(ok + line_of(longest) + "Content-Length: 0\r\n\r\n").complete);
    CHECK(parsed(ok + line_of(longest + 1) + "Content-Length: 0\r\n\r\n").error ==
          "a header or chunk line is over 16 KiB");
    // Refused before its end is seen, so that no memory is spent on it.
    CHECK(parsed(ok + "X: " + std::string(longest, 'a'), {}, false).broken);
    CHECK(parsed(std::string(longest + 1, 'a'), {}, false).broken);

    std::string many = ok;
    while (many.size() < response_parser::max_head) many += line_of(1000);
    CHECK(parsed(many, {}, false).error == "the headers are over 64 KiB");
    std::string trailers = ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n";
    for (int i = 0; i < 66; ++i) trailers += line_of(1000);
    CHECK(parsed(trailers, {}, false).error == "the headers are over 64 KiB");
    CHECK(parsed(ok + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(longest, 'e'), {}, false)
              .error == "a header or chunk line is over 16 KiB");
    // The lines of a long stream are not held against its head.
    std::string stream = ok + "Transfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < 20000; ++i) stream += "1\r\nx\r\n";
    const outcome o = parsed(stream + "0\r\n\r\n");
    CHECK(o.complete);
    CHECK(o.body.size() == 20000);
}

TEST_CASE("a broken answer takes no more bytes") {
    response_parser p;
    const auto ignore = [](std::string_view) {};
    p.feed("nonsense\r\n", ignore);
    CHECK(p.broken());
    const std::string why = p.error();
    CHECK(p.feed(ok, ignore) == 0);
    p.end_of_input();
    CHECK(p.error() == why);
    CHECK(p.use() == socket_use::broken);
    CHECK_FALSE(p.head_done());
}

// ---- requests ----------------------------------------------------------------------------------

namespace {

const std::string a_post =
    "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nX-Request-Id:  abc "
    "\r\n\r\nbody";

bool is_refused(const std::string& bytes) {
    request_parser p;
    return !p.feed(bytes) && p.broken();
}

}  // namespace

TEST_CASE("a request has a method, a path, headers and a body") {
    request_parser p;
    REQUIRE(p.feed(a_post));
    CHECK(p.method == "POST");
    CHECK(p.path == "/v1/chat/completions");
    CHECK(p.body == "body");
    CHECK(std::string(p.header("x-request-id")) == "abc");
    CHECK(p.header("missing").empty());
    CHECK(p.keep_alive);
    CHECK_FALSE(p.broken());
}

TEST_CASE("a request may come in any pieces") {
    for (std::size_t cut = 0; cut < a_post.size(); ++cut) {
        CAPTURE(cut);
        request_parser p;
        CHECK_FALSE(p.feed(a_post.substr(0, cut)));
        REQUIRE(p.feed(a_post.substr(cut)));
        CHECK(p.body == "body");
        CHECK(p.fields.size() == 3);
    }
    request_parser p;
    for (std::size_t i = 0; i < a_post.size(); ++i)
        CHECK(p.feed(a_post.substr(i, 1)) == (i + 1 == a_post.size()));
    CHECK(p.body == "body");
}

TEST_CASE("a request in chunks may come in any pieces") {
    const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string chunked = head + "3\r\nbod\r\n0001;x=1\r\ny\r\n0\r\n\r\n";
    for (std::size_t cut = 0; cut < chunked.size(); ++cut) {
        CAPTURE(cut);
        request_parser p;
        CHECK_FALSE(p.feed(chunked.substr(0, cut)));
        REQUIRE(p.feed(chunked.substr(cut) + "GET"));
        CHECK(p.body == "body");
    }
    for (const char* size : {"zz", "", "-1", "ffffffffffffffff", "4000000"}) {
        CAPTURE(size);
        CHECK(is_refused(head + size + "\r\nbody\r\n"));
    }
}

TEST_CASE("requests that come early wait for their turn") {
    request_parser p;
    REQUIRE(p.feed(a_post + "GET /health HTTP/1.1\r\n\r\n" + "GET /v1/models HT"));
    CHECK(p.path == "/v1/chat/completions");
    p.reset();
    REQUIRE(p.feed(""));
    CHECK(p.method == "GET");
    CHECK(p.path == "/health");
    CHECK(p.body.empty());
    CHECK(p.fields.empty());
    p.reset();
    CHECK_FALSE(p.feed(""));
    REQUIRE(p.feed("TP/1.1\r\n\r\n"));
    CHECK(p.path == "/v1/models");
}

TEST_CASE("a client that wants its connection closed says so") {
    request_parser p;
    REQUIRE(p.feed("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
    CHECK_FALSE(p.keep_alive);
    request_parser old;
    REQUIRE(old.feed("GET / HTTP/1.0\r\n\r\n"));
    CHECK_FALSE(old.keep_alive);
}

TEST_CASE("what is not a request is refused") {
    CHECK(is_refused("nonsense\r\n\r\n"));
    CHECK(is_refused("GET /\r\n\r\n"));
    CHECK(is_refused("GET / HTTP/2\r\n\r\n"));
    CHECK(is_refused("\r\n\r\n"));
    CHECK(is_refused("GET / HTTP/1.1\r\nno colon\r\n\r\n"));
    CHECK(is_refused("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n"));
    CHECK(is_refused("POST / HTTP/1.1\r\nContent-Length: 67108865\r\n\r\n"));
    for (const std::string length : {"4x", "x", "-1", "", "99999999999999999999"}) {
        CAPTURE(length);
        CHECK(is_refused("POST / HTTP/1.1\r\nContent-Length: " + length + "\r\n\r\nbody"));
    }
    CHECK(is_refused(std::string(65 * 1024, 'a')));
    CHECK_FALSE(is_refused(a_post));
    CHECK_FALSE(is_refused("GET / HT"));
}
