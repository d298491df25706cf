// What may come over the wire, by name, and what a request comes to with it. test_wire_cases reads
// every case in every way of cutting it, test_live_wire over sockets.
#pragma once
#include "script.hpp"

#include <string>
#include <vector>

namespace wire {

using namespace std::chrono_literals;
using scripted::chat_choice;
using scripted::chat_chunk;
using scripted::chunk;
using scripted::chunked_head;
using scripted::done;
using scripted::finish;
using scripted::head;
using scripted::role;
using scripted::sized;
using scripted::sized_stream;
using scripted::sse_event;
using scripted::usage;

struct expectation {
    std::string status{};  // of the record
    int http = 0;
    std::string error{};   // a part of the record's error, "" for none at all
    int events = 0, tokens = 0;
    std::string finish{};
    bool kept = false;     // the next request may follow on the same connection
};
struct wire_case {
    std::string name{};
    scripted::answer script{};
    expectation expected{};
};

class table {
public:
    /// An answer that is read as a good one.
    void ok(const char* name, scripted::answer script, int events, int tokens,
            const char* reason = "stop", bool kept = true) {
        cases_.push_back({name, std::move(script), {"ok", 200, "", events, tokens, reason, kept}});
    }
    void ok(const char* name, const std::string& bytes, int events, int tokens,
            const char* reason = "stop", bool kept = true) {
        ok(name, scripted::answer{scripted::send(bytes)}, events, tokens, reason, kept);
    }
    /// A good answer whose connection has to go.
    void last(const char* name, const std::string& bytes, int events, int tokens) {
        ok(name, bytes, events, tokens, "stop", false);
    }
    /// An answer that fails. Its connection is kept where the answer itself is whole.
    expectation& fails(const char* status, int http, const char* name, scripted::answer script,
                       const char* error) {
        cases_.push_back({name, std::move(script), {status, http, error, 0, 0, "", false}});
        return cases_.back().expected;
    }
    expectation& fails(const char* status, int http, const char* name, const std::string& bytes,
                       const char* error) {
        return fails(status, http, name, scripted::answer{scripted::send(bytes)}, error);
    }
    /// The same, where the server closes the connection behind it.
    expectation& cut(const char* status, int http, const char* name, const std::string& bytes,
                     const char* error) {
        return fails(status, http, name, {scripted::send(bytes), scripted::close()}, error);
    }
    std::vector<wire_case>& cases() { return cases_; }

private:
    std::vector<wire_case> cases_{};
};

// ---- what answers are made of

inline const std::string one = chat_chunk("a"), two = one + chat_chunk("b");
inline const std::string end = finish() + done();
inline const std::string good = role() + two + end;  // 2 events, "stop"

inline std::string status_line(const std::string& line) {
    return line + "\r\nContent-Type: text/event-stream\r\nContent-Length: " +
           std::to_string(good.size()) + "\r\n\r\n" + good;
}
/// A good stream with these further header lines.
inline std::string with_fields(const std::string& fields) { return sized_stream(good, fields); }
/// A good stream in a head with these lines about its length.
inline std::string with_length(const std::string& fields) {
    return scripted::until_close_head(fields) + good;
}
inline std::string chunked(const std::string& body) { return chunked_head() + body; }
inline std::string chunks_of(const std::string& s, std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < s.size(); i += n) out += chunk(s.substr(i, n));
    return out;
}
inline std::string chunk_with(const std::string& size_and_extension, const std::string& data) {
    return size_and_extension + "\r\n" + data + "\r\n";
}
inline std::string hex(std::size_t n) {
    char s[20];
    std::snprintf(s, sizeof s, "%zx", n);
    return s;
}
inline std::string message_event(const std::string& message) {
    return sse_event(R"({"error":{"message":")" + message + R"("}})");
}
inline std::string choice(int index, const std::string& delta, const std::string& reason = "") {
    return R"({"index":)" + std::to_string(index) + R"(,"delta":)" + delta + R"(,"finish_reason":)" +
           (reason.empty() ? "null" : "\"" + reason + "\"") + "}";
}
inline std::string choices(const std::string& list) {
    return sse_event(R"({"object":"chat.completion.chunk","choices":[)" + list + "]}");
}

// ---- HTTP/1.1 (RFC 9112, RFC 9110)

inline void framing_cases(table& t) {
    const std::string whole = chunk(good) + scripted::last_chunk();
    t.ok("a content length", sized_stream(good), 2, 2);
    t.ok("one chunk", chunked(whole), 2, 2);
    t.ok("a chunk an event",
         chunked(chunk(role()) + chunk(one) + chunk(chat_chunk("b")) + chunk(finish()) +
                 chunk(done()) + scripted::last_chunk()),
         2, 2);
    t.ok("chunks of one byte", chunked(chunks_of(good, 1) + scripted::last_chunk()), 2, 2);
    t.ok("chunks of seven bytes", chunked(chunks_of(good, 7) + scripted::last_chunk()), 2, 2);
    const std::string n = hex(good.size());
    const auto extended = [&](const std::string& extension) {
        return chunked(chunk_with(n + extension, good) + scripted::last_chunk());
    };
    t.ok("a chunk extension without a value", extended(";last"), 2, 2);
    t.ok("a chunk extension with a value", extended(";ieof=1"), 2, 2);
    t.ok("a chunk extension in quotes", extended(R"(;a="b; c=d\"e, 0")"), 2, 2);
    t.ok("blanks around a chunk extension", extended(" ; a = b ;\tc"), 2, 2);
    t.ok("blanks behind a chunk size", extended("  "), 2, 2);
    t.ok("a chunk size in capitals",
         chunked(chunk_with("A", std::string(10, '\n')) + whole), 2, 2);
    t.ok("a chunk size with leading zeros", chunked(chunk_with("00000000" + n, good) +
                                                    "000\r\n\r\n"), 2, 2);
    t.ok("an extension of the last chunk", chunked(chunk(good) + "0;a=b\r\n\r\n"), 2, 2);
    t.ok("trailers", chunked(chunk(good) + "0\r\nX-Took: 5\r\nX-Hash: a:b\r\n\r\n"), 2, 2);
    t.ok("trailers that would change the head mean nothing",
         chunked(chunk(good) + "0\r\nContent-Length: 5\r\nConnection: close\r\n"
                               "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n\r\n"),
         2, 2);
    t.ok("a body that ends with the connection",
         {scripted::send(scripted::until_close_head() + good), scripted::close()}, 2, 2, "stop",
         false);
    t.ok("a body that ends with the connection, and Connection: close",
         {scripted::send(scripted::until_close_head("Connection: close\r\n") + good),
          scripted::close()},
         2, 2, "stop", false);
    t.last("HTTP/1.0 with a length", status_line("HTTP/1.0 200 OK"), 2, 2);
    t.ok("HTTP/1.0 that keeps the connection",
         status_line("HTTP/1.0 200 OK\r\nConnection: keep-alive"), 2, 2);
    t.ok("HTTP/1.0 until the connection closes",
         {scripted::send("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + good),
          scripted::close()},
         2, 2, "stop", false);
    t.last("chunks under HTTP/1.0 end their connection",
           "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Type: text/event-stream\r\n"
           "Transfer-Encoding: chunked\r\n\r\n" + whole, 2, 2);
    t.ok("an interim answer", "HTTP/1.1 100 Continue\r\n\r\n" + sized_stream(good), 2, 2);
    t.ok("several interim answers with headers",
         "HTTP/1.1 102 Processing\r\nContent-Length: 7\r\n\r\nHTTP/1.1 103 Early Hints\r\n"
         "Link: </a>\r\nTransfer-Encoding: chunked\r\n\r\n" + sized_stream(good), 2, 2);
    t.ok("a status without a reason", status_line("HTTP/1.1 200"), 2, 2);
    t.ok("a status with an empty reason", status_line("HTTP/1.1 200 "), 2, 2);
    t.ok("a reason of any bytes", status_line("HTTP/1.1 200 \xC3\xA4 \xFF !"), 2, 2);
    t.ok("a head whose lines end with LF alone",
         "HTTP/1.1 200 OK\nContent-Type: text/event-stream\nContent-Length: " +
             std::to_string(good.size()) + "\n\n" + good, 2, 2);
    t.ok("header names in small and capital letters",
         "HTTP/1.1 200 OK\r\nCONTENT-TYPE: TEXT/Event-Stream; Charset=UTF-8\r\n"
         "transfer-encoding: Chunked\r\n\r\n" + whole, 2, 2);
    t.ok("a content type with parameters behind blanks",
         "HTTP/1.1 200 OK\r\nContent-Type:\t text/event-stream ;charset=utf-8 \t\r\n"
         "Transfer-Encoding:chunked\r\n\r\n" + whole, 2, 2);
    t.ok("odd but proper headers",
         with_fields("X-Empty:\r\n!#$%&'*+-.^_`|~09aZ: x\r\nX-Colons: a:b::c\r\nX-Latin: \xE9\r\n"),
         2, 2);
    t.ok("256 header lines", with_fields([] {
             std::string s;
             for (int i = 0; i < 254; ++i) s += "X: 1\r\n";
             return s;
         }()), 2, 2);
    t.ok("the same length twice",
         with_fields("Content-Length: " + std::to_string(good.size()) + "\r\n"), 2, 2);
    t.last("Connection: close", with_fields("Connection: close\r\n"), 2, 2);
    t.last("close in a list", with_fields("Connection: x-a , Close\r\n"), 2, 2);
    t.last("close wins over keep-alive", with_fields("Connection: keep-alive, close\r\n"), 2, 2);
    t.last("close wins over a later keep-alive",
           with_fields("Connection: close\r\nConnection: keep-alive\r\n"), 2, 2);
    t.ok("an unknown connection option", with_fields("Connection: closed, x\r\n"), 2, 2);
    t.ok("a content coding that is none", with_fields("Content-Encoding: identity\r\n"), 2, 2);
    t.ok("an empty content coding", with_fields("Content-Encoding: \r\n"), 2, 2);
    t.ok("a status of success other than 200", status_line("HTTP/1.1 201 Created"), 2, 2);
    t.cases().back().expected.http = 201;
    t.last("an empty line behind the answer", sized_stream(good) + "\r\n", 2, 2);
    t.last("a second answer behind the first", sized_stream(good) + sized_stream(good), 2, 2);
    t.last("a second answer behind the last chunk", chunked(whole) + sized_stream(good), 2, 2);
}

inline void refused_http_cases(table& t) {
    const auto no_answer = [&](const char* name, const std::string& bytes) {
        t.fails("protocol", 0, name, bytes + "\r\n\r\n", "not an HTTP/1.x answer");
    };
    no_answer("a mail server", "220 mail.example ESMTP");
    no_answer("a TLS alert", std::string("\x15\x03\x01\x00\x02\x02\x46", 7));
    t.fails("protocol", 0, "settings of HTTP/2", std::string("\x00\x00\x12\x04\x00\x00\x00\x00\x00\r\n", 11),
            "the server speaks HTTP/2 only");
    no_answer("HTTP/2 in the status line", "HTTP/2 200 OK");
    no_answer("a later version", "HTTP/1.2 200 OK");
    no_answer("small letters in the version", "http/1.1 200 OK");
    no_answer("another protocol's status", "ICY 200 OK");
    no_answer("a status of two digits", "HTTP/1.1 20 OK");
    no_answer("a status of four digits", "HTTP/1.1 2000 OK");
    no_answer("a status below 100", "HTTP/1.1 099 Low");
    no_answer("a status above 599", "HTTP/1.1 600 High");
    no_answer("a status that is no number", "HTTP/1.1 2O0 OK");
    no_answer("a status with a sign", "HTTP/1.1 +20 OK");
    no_answer("two blanks before the status", "HTTP/1.1  200 OK");
    no_answer("an empty line first", "\r\nHTTP/1.1 200 OK");
    no_answer("JSON without a head", R"({"error":"no"})");
    no_answer("a page without a head", "<html></html>");
    t.fails("protocol", 0, "a switch of protocols",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
            "the server switched protocols unasked");

    const auto bad_field = [&](const char* name, const std::string& fields, const char* error) {
        t.fails("protocol", 0, name, with_fields(fields), error);
    };
    bad_field("a folded header", "X: 1\r\n folded\r\n", "a folded header line");
    bad_field("a header folded by a tab", "X: 1\r\n\tfolded\r\n", "a folded header line");
    t.fails("protocol", 0, "a blank before the first header",
            "HTTP/1.1 200 OK\r\n Content-Length: 0\r\n\r\n", "a folded header line");
    bad_field("a header without a colon", "Hello\r\n", "a header line without a name");
    bad_field("a header without a name", ": x\r\n", "a header line without a name");
    bad_field("a blank before the colon", "Content-Length : 5\r\n", "a space in a header name");
    bad_field("a header name that is no token", "X(1): x\r\n", "\"X(1)\" is no name");
    bad_field("a header name with a control character", "X\x01: x\r\n", "is no name of a header");
    bad_field("a header name with a letter that is not ASCII", "\xC3\xA9: x\r\n", "is no name");
    bad_field("a CR inside a header", "X: a\rb\r\n", "a bare CR");
    bad_field("a CR too many", "X: a\r\r\n", "a bare CR");
    t.fails("protocol", 0, "a CR inside the status line", "HTTP/1.1 200 O\rK\r\n\r\n", "a bare CR");
    bad_field("a zero byte in a header", std::string("X: a\0b\r\n", 8), "a zero byte");
    bad_field("a header line over 16 KiB", "X: " + std::string(16 * 1024, 'a') + "\r\n",
              "over 16 KiB");
    bad_field("257 header lines", [] {
        std::string s;
        for (int i = 0; i < 257; ++i) s += "X: 1\r\n";
        return s;
    }(), "more than 256 header lines");

    const auto bad_length = [&](const char* name, const std::string& fields, const char* error) {
        t.fails("protocol", 200, name, with_length(fields), error);
    };
    for (const auto& [name, length] : {std::pair{"a negative length", "-1"},
                                       std::pair{"a length with a sign", "+5"},
                                       std::pair{"a length in hexadecimal", "0x5"},
                                       std::pair{"a length with a letter behind", "5a"},
                                       std::pair{"a fractional length", "5.0"},
                                       std::pair{"an empty length", ""},
                                       std::pair{"a list of lengths", "5, 5"},
                                       std::pair{"a list of two lengths", "5,6"},
                                       std::pair{"a length over 64 bits", "18446744073709551617"}})
        bad_length(name, "Content-Length: " + std::string(length) + "\r\n", "is not a number");
    bad_length("two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n", "two different");
    bad_length("a length and chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
               "both a content length and a chunked body");
    bad_length("chunks and a length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
               "both a content length and a chunked body");
    for (const auto& [name, coding] :
         {std::pair{"a compressed transfer", "gzip, chunked"},
          std::pair{"a transfer coding of old", "identity"},
          std::pair{"a transfer coding that looks like chunks", "xchunked"},
          std::pair{"a transfer coding with a tail", "chunked;q=1"}})
        bad_length(name, "Transfer-Encoding: " + std::string(coding) + "\r\n", "is not supported");
    bad_length("chunked said twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
               "may stand there once");
    bad_length("chunks of chunks", "Transfer-Encoding: chunked, chunked\r\n", "may stand there once");
    bad_length("gzip that nobody asked for", "Content-Encoding: gzip\r\n",
               "content coding \"gzip\" came unasked");
    bad_length("br that nobody asked for", "Content-Encoding: br\r\nContent-Length: 5\r\n",
               "content coding \"br\" came unasked");

    const auto bad_chunk = [&](const char* name, const std::string& body, const char* error) {
        t.fails("protocol", 200, name, chunked(chunk(one) + body), error) = {
            "protocol", 200, error, 1, 1, "", false};
    };
    for (const auto& [name, size] : {std::pair{"an empty chunk size", ""},
                                     std::pair{"a chunk size that is no number", "xyz"},
                                     std::pair{"a negative chunk size", "-1"},
                                     std::pair{"a chunk size with a sign", "+1"},
                                     std::pair{"a blank before a chunk size", " 1"},
                                     std::pair{"a chunk size with 0x", "0x1"},
                                     std::pair{"two chunk sizes", "1 2"},
                                     std::pair{"a list of chunk sizes", "1,2"},
                                     std::pair{"a chunk size over 64 bits", "10000000000000001"}})
        bad_chunk(name, std::string(size) + "\r\nx\r\n", "is not a hexadecimal number");
    bad_chunk("a chunk over a gigabyte", "40000001\r\n", "a chunk is over 1 GiB");
    bad_chunk("a chunk size that ends with LF alone", "1\nx\r\n", "does not end with CR LF");
    bad_chunk("a chunk that ends with LF alone", "1\r\n\n\n" + scripted::last_chunk(),
              "does not end with CR LF");
    bad_chunk("a chunk longer than its size", "1\r\n\nxx\r\n", "chunk data is longer");
    bad_chunk("a chunk shorter than its size", "3\r\n\n\r\n0\r\n\r\n", "chunk data is longer");
    bad_chunk("a CR in a chunk extension", "1;a\rb\r\n\n\r\n", "a bare CR");
    bad_chunk("a zero byte in a chunk extension", std::string("1;\0\r\n\n\r\n", 8), "a zero byte");
    bad_chunk("a chunk extension over 16 KiB", "1;" + std::string(16 * 1024, 'e') + "\r\n",
              "over 16 KiB");
    bad_chunk("a folded trailer", "0\r\nX: 1\r\n y\r\n\r\n", "a folded header line");
    bad_chunk("a trailer without a colon", "0\r\nhello\r\n\r\n", "a header line without a name");
    bad_chunk("a trailer that ends with LF alone", "0\r\nX: 1\n\r\n", "does not end with CR LF");
}

inline void cut_cases(table& t) {
    const char* const before = "the connection was lost before an answer";
    const char* const inside = "the connection was closed inside the answer";
    const char* const silent = "the answer ended before any content";
    const char* const open = "the answer ended without a finish reason or [DONE]";
    t.fails("truncated", 0, "closed before the answer", {scripted::close()}, before);
    t.fails("truncated", 0, "reset before the answer", {scripted::reset()}, before);
    t.cut("protocol", 0, "closed inside the status line", "HTTP/1.1 2", inside);
    t.cut("protocol", 0, "closed inside the headers", "HTTP/1.1 200 OK\r\nContent-Le", inside);
    t.cut("protocol", 0, "closed behind an interim answer", "HTTP/1.1 100 Continue\r\n\r\n",
          inside);
    t.cut("truncated", 200, "closed behind the head", chunked_head(), silent);
    t.cut("truncated", 200, "closed behind the role", chunked(chunk(role())), silent);
    const auto begun = [&](const char* name, const std::string& rest) {
        t.cut("truncated", 200, name, chunked(chunk(one)) + rest, open) = {
            "truncated", 200, open, 1, 1, "", false};
    };
    begun("closed between two chunks", "");
    begun("closed inside a chunk size", "1");
    begun("closed inside a chunk", "ff\r\ndata: {\"cho");
    begun("closed behind the data of a chunk", "1\r\n\n");
    begun("closed behind the last chunk's size", "0\r\n");
    begun("closed inside a trailer", "0\r\nX: 1");
    begun("closed before the blank line of an event", chunk("data: [DONE]\n"));
    t.cut("truncated", 200, "closed inside a sized body",
          sized("200 OK", "text/event-stream", one + one).substr(0, 200), open) = {
        "truncated", 200, open, 1, 1, "", false};
    t.fails("truncated", 200, "reset inside the answer",
            {scripted::send(chunked(chunk(one))), scripted::wait(250ms), scripted::reset()},
            open) = {"truncated", 200, open, 1, 1, "", false};
    t.fails("truncated", 200, "reset behind the head",
            {scripted::send(chunked_head()), scripted::wait(250ms), scripted::reset()}, silent);
    t.fails("protocol", 200, "an answer that is no stream and is reset",
            {scripted::send(head("200 OK", "Content-Length: 9\r\nContent-Type: text/plain\r\n")),
             scripted::wait(250ms), scripted::reset()},
            "the connection was lost: ");
    t.ok("closed behind [DONE] without the last chunk",
         {scripted::send(chunked(chunk(good))), scripted::close()}, 2, 2, "stop", false);
    t.ok("reset behind [DONE]",
         {scripted::send(chunked(chunk(good))), scripted::wait(250ms), scripted::reset()}, 2, 2,
         "stop", false);
    t.ok("closed behind a finish reason",
         {scripted::send(chunked(chunk(two + finish()))), scripted::close()}, 2, 2, "stop", false);
    t.ok("reset behind a finish reason",
         {scripted::send(scripted::until_close_head() + two + finish()), scripted::wait(250ms),
          scripted::reset()},
         2, 2, "stop", false);
    t.ok("nothing but silence behind [DONE]",
         {scripted::send(chunked(chunk(good))), scripted::stall()}, 2, 2, "stop", false);
}

inline void status_cases(table& t) {
    const auto json = [&](int code, const char* name, const std::string& body, const char* error) {
        t.fails("http", code, name, scripted::json(std::to_string(code) + " Some Reason", body),
                error)
            .kept = true;
    };
    json(400, "an OpenAI error",
         R"({"error":{"message":"too long","type":"invalid_request_error","param":null,"code":400}})",
         "HTTP 400: too long");
    json(401, "an error as a string", R"({"error":"no key"})", "HTTP 401: no key");
    json(404, "an old vLLM error",
         R"({"object":"error","message":"no such model","type":"NotFoundError","code":404})",
         "HTTP 404: no such model");
    json(413, "a request that is too large", R"({"message":"too large"})",
         "HTTP 413: too large");
    t.fails("http", 413, "a request that is too large for a proxy",
            sized("413 Request Entity Too Large", "text/html", "<html><h1>413</h1></html>"),
            "HTTP 413: the request is larger than the server, or a proxy before it, accepts").kept = true;
    json(422, "what FastAPI says",
         R"({"detail":[{"loc":["body","model"],"msg":"field required"}]})", "field required");
    json(500, "an error that is not JSON", "{\"error\":", "HTTP 500: {\"error\":");
    json(501, "an error with half a surrogate pair", R"({"error":{"message":"a\ud83d"}})",
         "HTTP 501: a\xEF\xBF\xBD");
    json(529, "overloaded", R"({"type":"error","error":{"type":"o","message":"Overloaded"}})",
         "HTTP 529: Overloaded");
    const auto other = [&](int code, const char* name, const std::string& bytes,
                           const char* error) {
        t.fails("http", code, name, bytes, error).kept = true;
    };
    other(429, "Retry-After in seconds",
          sized("429 Too Many Requests", "application/json", R"({"error":"slow down"})",
                "Retry-After: 30\r\n"),
          "HTTP 429: slow down (Retry-After: 30)");
    other(429, "Retry-After as a date",
          head("429 Too Many Requests",
               "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\nContent-Length: 0\r\n"),
          "HTTP 429 (Retry-After: Wed, 21 Oct 2026 07:28:00 GMT)");
    other(503, "Retry-After of a busy server",
          sized("503 Service Unavailable", "text/plain", "loading", "retry-after:1\r\n"),
          "HTTP 503: loading (Retry-After: 1)");
    other(502, "a page of a gateway",
          sized("502 Bad Gateway", "text/html", "<html>\r\n<h1>502 Bad Gateway</h1>\r\n</html>"),
          "HTTP 502: <html>\\r\\n<h1>502 Bad Gateway</h1>\\r\\n</html>");
    other(503, "an error without a body", head("503 Busy", "Content-Length: 0\r\n"), "HTTP 503");
    other(500, "an error in chunks",
          head("500 Oops", "Transfer-Encoding: chunked\r\n") + chunk("out of ") + chunk("memory") +
              scripted::last_chunk(),
          "HTTP 500: out of memory");
    other(500, "an error that is called a stream", sized("500 Oops", "text/event-stream", good),
          "HTTP 500: data:");
    t.cut("http", 504, "an error that ends with the connection",
          head("504 Gateway Timeout", "") + "upstream", "HTTP 504: upstream");
    t.cut("http", 500, "an error whose body is cut",
          head("500 Oops", "Content-Length: 100\r\n") + "out of mem", "HTTP 500: out of mem");
    t.fails("http", 502, "an error that is compressed",
            sized("502 Bad Gateway", "text/html", "\x1f\x8b\x08", "Content-Encoding: gzip\r\n"),
            "HTTP 502");
    t.fails("http", 503, "an error with both lengths",
            head("503 Busy", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), "HTTP 503");
    for (const auto& [name, code] : {std::pair{"a redirect for good", 301},
                                     std::pair{"a redirect for now", 302},
                                     std::pair{"a redirect that keeps the method", 307},
                                     std::pair{"a redirect for good that keeps it", 308}})
        other(code, name,
              head(std::to_string(code) + " Moved",
                   "Location: https://elsewhere.example/v1\r\nContent-Length: 0\r\n"),
              "a redirect to \"https://elsewhere.example/v1\"");
    other(300, "a choice without a place", head("300 Choices", "Content-Length: 0\r\n"),
          "HTTP 300");
    other(304, "not modified, which has no body",
          head("304 Not Modified", "Content-Length: 10\r\n"), "HTTP 304");
    const auto success = [&](const char* status, int code, const char* name,
                             const std::string& bytes, const char* error) {
        t.fails(status, code, name, bytes, error).kept = true;
    };
    success("protocol", 204, "no content", head("204 No Content", ""), "not an event stream");
    success("protocol", 200, "an answer all at once",
            scripted::json("200 OK", R"({"choices":[{"message":{"content":"all"}}]})"),
            "the answer is \"application/json\" and not an event stream");
    success("protocol", 200, "a page instead of a stream",
            sized("200 OK", "text/html", "<html>sign in</html>"), "\"text/html\"");
    success("protocol", 200, "a page of no type", head("200 OK", "Content-Length: 6\r\n") + "<html>",
            "the answer is \"\" and not an event stream");
    success("protocol", 200, "a page whose type only begins like a stream's",
            sized("200 OK", "text/event-streams", "<html>"), "not an event stream");
    success("server", 200, "an error instead of a stream",
            scripted::json("200 OK", R"({"error":{"message":"no such model"}})"), "no such model");
    success("server", 200, "a detail instead of a stream",
            scripted::json("200 OK", R"({"detail":"Not Found"})"), "Not Found");
    success("server", 200, "an error object instead of a stream",
            scripted::json("200 OK", R"({"object":"error","message":"boom"})"), "boom");
    success("server", 200, "an error of Ollama instead of a stream",
            scripted::json("200 OK", R"({"error":"model \"m\" not found"})"), "not found");
}

// ---- server-sent events; lines and fields of them: core/wire/test_event_stream

inline void event_stream_cases(table& t) {
    const auto good_stream = [&](const char* name, const std::string& events) {
        t.ok(name, sized_stream(events), 2, 2);
    };
    good_stream("comments that keep the connection alive",
                ": ping\n\n" + one + ":\n\n:\n" + chat_chunk("b") + ": 2026-01-01\n\n" + end);
    good_stream("events that are null", "data: null\n\n" + one + "data:null\n\ndata:  null \n\n" +
                                            chat_chunk("b") + end + "data: null\n\n");
    good_stream("an error that is an empty object", sse_event(R"({"error":{}})") + two + end);
    good_stream("blanks around [DONE]", two + finish() + "data:   [DONE] \n\n");
    t.ok("a last event without its blank line is none",
         sized_stream(two + finish() + "data: [DONE]\n"), 2, 2);
    t.fails("truncated", 200, "a finish reason without its blank line is none",
            sized_stream(one + finish().substr(0, finish().size() - 1)),
            "without a finish reason or [DONE]") = {
        "truncated", 200, "without a finish reason or [DONE]", 1, 1, "", true};
    const auto broken = [&](const char* status, const char* name, const std::string& events,
                            const char* error) {
        t.fails(status, 200, name, sized_stream(one + events), error) = {status, 200, error, 1, 1,
                                                                         "", true};
    };
    broken("protocol", "a zero byte in an event", std::string("data: {}\0\n\n", 11),
           "not a JSON object");
    broken("server", "an event of type error", "event: error\ndata: {\"why\":\"it died\"}\n\n",
           "it died");
    broken("server", "a type given twice", "event: x\nevent: error\ndata: {\"a\":\"boom\"}\n\n",
           "boom");
    broken("truncated", "nothing but comments behind the first event", ": ping\n\n: ping\n\n",
           "without a finish reason");
    t.fails("truncated", 200, "nothing but comments", sized_stream(": ping\n\n: ping\n\n"),
            "before any content")
        .kept = true;
    t.fails("truncated", 200, "an empty stream", sized_stream(""), "before any content").kept =
        true;
}

// ---- what the stream says; what each field is read as: data/fields.tsv

inline void semantics_cases(table& t) {
    const auto says = [&](const char* name, const std::string& events, int n, int tokens,
                          const char* reason = "stop") {
        t.ok(name, sized_stream(events), n, tokens, reason);
    };
    says("a role alone is no content", role() + one + end, 1, 1);
    says("a role with the first text in it",
         chat_choice(R"({"role":"assistant","content":"Hi"})") + one + end, 2, 2);
    says("a role with null", chat_choice(R"({"role":"assistant","content":null})") + one + end, 1,
         1);
    says("empty first texts",
         chat_chunk("") + chat_chunk("") + chat_choice("{}") + chat_choice("null") + one + end, 1,
         1);
    says("filter results of the prompt (Azure)",
         sse_event(R"({"id":"","object":"","model":"","choices":[],"prompt_filter_results":)"
                   R"([{"prompt_index":0,"content_filter_results":{}}]})") + two + end, 2, 2);
    says("tool calls",
         chat_choice(R"({"tool_calls":[{"index":0,"id":"t","function":{"name":"f"}}]})") +
             chat_choice(R"({"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]})") +
             finish("tool_calls") + done(), 2, 2, "tool_calls");
    says("usage with empty choices", two + finish() + usage(5, 9) + done(), 2, 9);
    says("usage in the event that finishes",
         two + sse_event(R"({"choices":[{"index":0,"delta":{},"finish_reason":"length"}],)"
                         R"("usage":{"prompt_tokens":5,"completion_tokens":7}})") + done(),
         2, 7, "length");
    says("usage that grows with every event",
         sse_event(R"({"choices":[{"delta":{"content":"a"}}],"usage":{"completion_tokens":1}})") +
             sse_event(R"({"choices":[{"delta":{"content":"b"}}],"usage":{"completion_tokens":3}})") +
             end, 2, 3);
    says("usage that is nonsense",
         two + finish() + sse_event(R"({"choices":[],"usage":{"completion_tokens":-3}})") +
             sse_event(R"({"choices":[],"usage":{"completion_tokens":"9"}})") +
             sse_event(R"({"choices":[],"usage":[]})") + done(), 2, 2);
    says("usage that counts nothing", two + finish() + usage(5, 0) + done(), 2, 2);
    says("usage below the events", two + one + finish() + usage(5, 2) + done(), 3, 2);
    says("usage above the events", one + finish() + usage(5, 40) + done(), 1, 40);
    says("usage elsewhere does not count",
         two + finish() + sse_event(R"({"choices":[],"meta":{"usage":{"completion_tokens":9}}})") +
             done(), 2, 2);
    says("what llama.cpp says when it is verbose",
         two + sse_event(R"({"choices":[{"finish_reason":"stop","index":0,"delta":{}}],)"
                         R"("__verbose":{"content":"ab","stop":true,"error":"none"}})") + done(),
         2, 2);
    says("several choices in turn",
         choices(choice(0, R"({"content":"a"})")) + choices(choice(1, R"({"content":"b"})")) +
             choices(choice(1, "{}", "length")) + choices(choice(0, "{}", "stop")) + done(), 2, 2);
    says("the first choice finishes first",
         choices(choice(0, R"({"content":"a"})")) + choices(choice(1, R"({"content":"b"})")) +
             choices(choice(0, "{}", "stop")) + choices(choice(1, "{}", "length")) + done(), 2, 2);
    says("choices that finish in one event, out of order",
         choices(choice(0, R"({"content":"a"})") + "," + choice(1, R"({"content":"b"})")) +
             choices(choice(1, "{}", "length") + "," + choice(0, "{}", "stop")), 1, 1);
    says("a choice that no other one tells of",
         choices(choice(1, R"({"content":"a"})")) + choices(choice(1, "{}", "length")) + done(), 1,
         1, "length");
    says("several choices in one event",
         choices(choice(0, R"({"content":"a"})") + "," + choice(1, R"({"content":"b"})")) +
             choices(choice(0, "{}", "stop") + "," + choice(1, "{}", "stop")), 1, 1);
    says("[DONE] ends what has unfinished choices",
         choices(choice(0, R"({"content":"a"})")) + choices(choice(1, R"({"content":"b"})")) +
             choices(choice(0, "{}", "stop")) + done(), 2, 2);
    says("a finish reason with the last text",
         one + chat_choice(R"({"content":"b"})", "stop") + done(), 2, 2);
    says("a finish reason without [DONE]", two + finish(), 2, 2);
    says("[DONE] without a finish reason", two + done(), 2, 2, "");
    says("events behind [DONE]", two + end + one + message_event("late") + done(), 2, 2);
    says("nonsense behind [DONE]", two + end + "data: {{{\n\ngarbage", 2, 2);
    says("fields that are null",
         sse_event(R"({"choices":null,"usage":null,"error":null,"object":null})") + two +
             choices(R"({"index":null,"delta":null,"text":null,"finish_reason":null,)"
                     R"("logprobs":null})") +
             choices("null") +
             sse_event(R"({"choices":[],"usage":{"prompt_tokens":null,"completion_tokens":null,)"
                       R"("prompt_tokens_details":null}})") + end, 2, 2);
    says("fields in any order, with blanks and more of them",
         sse_event(R"( { "x" : [1.5e3, {"y":null}] , "choices" : [ { "finish_reason" : null , )"
                   R"("delta" : { "content" : "a" } , "index" : 0 } ] , "service_tier":"x" } )") +
             one + end, 2, 2);
    says("text of all kinds",
         chat_chunk("\\u00e9 \\n\\\"\\\\") + chat_chunk("caf\xC3\xA9 \xF0\x9F\x98\x80") + end, 2, 2);
    says("an emoji as an escaped pair", chat_chunk("\\ud83d\\ude00") + one + end, 2, 2);
    says("an emoji in two halves", chat_chunk("\\ud83d") + chat_chunk("\\uDE00") + end, 2, 2);
    says("text that is not UTF-8", chat_chunk("\xC3") + chat_chunk("\xA9\xFF\xC0\x80") + end, 2, 2);
    says("[DONE] as a text", chat_chunk("[DONE]") + one + end, 2, 2);
    says("a long text", chat_chunk(std::string(1200, 'x')) + one + end, 2, 2);
    t.ok("characters cut by chunks",
         chunked(chunks_of(chat_chunk("\xF0\x9F\x98\x80") + chat_chunk("\xC3\xA9") + end, 3) +
                 scripted::last_chunk()), 2, 2);

    const auto fails = [&](const char* status, const char* name, const std::string& events,
                           const char* error, int n, int tokens, const char* reason) {
        t.fails(status, 200, name, sized_stream(events), error) = {
            status, 200, error, n, tokens, reason, true};
    };
    fails("truncated", "a choice that does not finish",
          choices(choice(0, R"({"content":"a"})")) + choices(choice(1, R"({"content":"b"})")) +
              choices(choice(0, "{}", "stop")),
          "the answer ended after 1 of its 2 choices", 2, 2, "stop");
    fails("server", "one of two choices fails",
          choices(choice(0, R"({"content":"a"})", "error") + "," + choice(1, "{}", "stop")) +
              done(),
          "finish reason \"error\"", 1, 1, "error");
    fails("server", "a choice that fails before another stops",
          choices(choice(0, R"({"content":"a"})")) + choices(choice(0, "{}", "abort")) +
              choices(choice(1, "{}", "stop")) + done(),
          "finish reason \"abort\"", 1, 1, "abort");
    fails("server", "a choice that fails after the first has stopped",
          choices(choice(0, R"({"content":"a"})")) + choices(choice(0, "{}", "stop")) +
              choices(choice(1, "{}", "abort")) + done(),
          "finish reason \"abort\"", 1, 1, "abort");
    for (const char* reason : {"abort", "aborted_by_scheduler", "error", "cancelled", "timeout",
                               "insufficient_system_resource", "preempt"})
        fails("server", ("finish reason " + std::string(reason)).c_str(),
              two + finish(reason) + done(), "finish reason \"", 2, 2, reason);
    fails("empty", "complete without content", role() + finish() + usage(5, 0) + done(),
          "complete without any content, finish reason \"stop\"", 0, 0, "stop");
    fails("empty", "a filter that lets nothing through", role() + finish("content_filter") + done(),
          "finish reason \"content_filter\"", 0, 0, "content_filter");
    fails("empty", "[DONE] and nothing else", done(), "complete without any content", 0, 0, "");
    fails("truncated", "neither a finish reason nor [DONE]", two,
          "without a finish reason or [DONE]", 2, 2, "");
    fails("truncated", "usage and no end", two + usage(5, 2), "without a finish reason", 2, 2, "");

    const auto error = [&](const char* name, const std::string& event, const char* reported) {
        fails("server", name, role() + one + event, reported, 1, 1, "");
    };
    error("an error of vLLM",
          sse_event(R"({"error":{"object":"error","message":"engine died","type":)"
                    R"("InternalServerError","param":null,"code":500}})") + done(), "engine died");
    error("an error of vLLM of old",
          sse_event(R"({"object":"error","message":"engine died","code":500})") + done(),
          "engine died");
    error("an error of TGI",
          sse_event(R"({"error":"Request failed during generation","error_type":"generation"})"),
          "Request failed during generation");
    error("an error of FastAPI", sse_event(R"({"detail":"Internal Server Error"})"),
          "Internal Server Error");
    error("an error without words", sse_event(R"({"error":{"code":503}})"), R"({"code":503})");
    error("an error that is a type alone", "event: error\n\n" + done(), "the stream says \"error\"");
    error("an error in a field of another name", "error: {\"message\":\"no slot\"}\n\n" + done(),
          "no slot");
    error("an error before a healthy end", message_event("one worker died") + one + end,
          "one worker died");
    fails("server", "an error in the middle (OpenRouter)",
          one + sse_event(R"({"id":"1","object":"chat.completion.chunk","provider":"x","error":)"
                          R"({"code":"server_error","message":"Provider disconnected"},"choices":)"
                          R"([{"index":0,"delta":{"content":""},"finish_reason":"error"}]})"),
          "Provider disconnected", 1, 1, "error");
    fails("server", "an error at once", message_event("no slot") + done(), "no slot", 0, 0, "");
    fails("server", "an error behind a finish reason", one + finish() + message_event("late"),
          "late", 1, 1, "stop");
    const auto malformed = [&](const char* name, const std::string& data, const char* reported) {
        fails("protocol", name, one + "data: " + data + "\n\n" + one + end, reported, 1, 1, "");
    };
    malformed("an event that is no JSON", "hello", "not a JSON object: \"hello\"");
    malformed("an event that is a list", "[1,2]", "not a JSON object");
    malformed("an event that is cut", R"({"choices":[{"delta":{"cont)", "not a JSON object");
    malformed("NaN", R"({"choices":[{"delta":{"content":"a"},"logprobs":NaN}]})",
              "not a JSON object");
    malformed("a number beyond all doubles", R"({"choices":[],"x":1e999})", "not a JSON object");
    malformed("a control character in a string", "{\"choices\":\"\x01\"}", "not a JSON object");
    malformed("[DONE] with a tail", "[DONE]]", "not a JSON object");
}

/// All cases that need no time of their own.
inline std::vector<wire_case> all_cases() {
    table t;
    framing_cases(t);
    refused_http_cases(t);
    cut_cases(t);
    status_cases(t);
    event_stream_cases(t);
    semantics_cases(t);
    return t.cases();
}

}  // namespace wire
