// What a scripted server is told to do, byte by byte, and what it was asked: no sockets.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <strings.h>

namespace scripted {

using std::chrono::milliseconds;

// ---- what an answer does

struct step {
    enum class kind { send, wait, close, reset, stall, cut };
    kind what = kind::close;
    std::string bytes{};
    milliseconds time{0};
    std::size_t size = 0;
};
using answer = std::vector<step>;

inline step send(std::string bytes) { return {step::kind::send, std::move(bytes), {}, 0}; }
/// The same again and again, over sockets alone.
inline step send_again(std::string bytes, std::size_t times) {
    return {step::kind::send, std::move(bytes), {}, times};
}
inline step wait(milliseconds t) { return {step::kind::wait, {}, t, 0}; }
/// An orderly end of the connection.
inline step close() { return {step::kind::close, {}, {}, 0}; }
/// An end by RST.
inline step reset() { return {step::kind::reset, {}, {}, 0}; }
/// Says nothing more and keeps the connection open until the server goes.
inline step stall() { return {step::kind::stall, {}, {}, 0}; }
/// What is sent after this goes out in pieces of n bytes, with a pause after each.
inline step cut(std::size_t n, milliseconds pause = milliseconds(0)) {
    return {step::kind::cut, {}, pause, n};
}

// ---- events of a chat answer

/// Whether an id is of a request that is sent before a load, to see whether the server serves it.
inline bool is_check(const std::string& id) { return id.find("-0000-8c00-8000-") == 8; }

inline std::string sse_event(const std::string& json) { return "data: " + json + "\n\n"; }
inline std::string chat_choice(const std::string& delta, const std::string& finish_reason = "") {
    const std::string reason = finish_reason.empty() ? "null" : "\"" + finish_reason + "\"";
    return sse_event(R"({"object":"chat.completion.chunk","choices":[{"index":0,"delta":)" + delta +
                     R"(,"finish_reason":)" + reason + "}]}");
}
inline std::string role() { return chat_choice(R"({"role":"assistant","content":""})"); }
/// `text` is put between quotes as it is.
inline std::string chat_chunk(const std::string& text) {
    return chat_choice(R"({"content":")" + text + R"("})");
}
inline std::string finish(const std::string& reason = "stop") { return chat_choice("{}", reason); }
inline std::string usage(int prompt_tokens, int completion_tokens) {
    return sse_event(R"({"choices":[],"usage":{"prompt_tokens":)" + std::to_string(prompt_tokens) +
                     R"(,"completion_tokens":)" + std::to_string(completion_tokens) + "}}");
}
inline std::string done() { return sse_event("[DONE]"); }

/// The events of a healthy answer of n tokens, one an event.
inline std::string healthy_events(int n, int prompt_tokens = 5) {
    std::string events = role();
    for (int i = 0; i < n; ++i) events += chat_chunk(" word");
    return events + finish() + usage(prompt_tokens, n) + done();
}

// ---- how bytes become an answer

inline std::string head(const std::string& status, const std::string& fields) {
    return "HTTP/1.1 " + status + "\r\n" + fields + "\r\n";
}
/// The head of a stream whose length is not said beforehand; `fields` are further header lines.
inline std::string chunked_head(const std::string& fields = "") {
    return head("200 OK",
                "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n" + fields);
}
inline std::string until_close_head(const std::string& fields = "") {
    return head("200 OK", "Content-Type: text/event-stream\r\n" + fields);
}
inline std::string chunk(const std::string& data) {
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", data.size());
    return size + data + "\r\n";
}
inline std::string last_chunk() { return "0\r\n\r\n"; }
/// A whole answer with a content length.
inline std::string sized(const std::string& status, const std::string& type,
                         const std::string& body, const std::string& fields = "") {
    return head(status, "Content-Type: " + type + "\r\nContent-Length: " +
                            std::to_string(body.size()) + "\r\n" + fields) +
           body;
}
inline std::string json(const std::string& status, const std::string& body) {
    return sized(status, "application/json", body);
}
inline std::string sized_stream(const std::string& events, const std::string& fields = "") {
    return sized("200 OK", "text/event-stream", events, fields);
}

/// A whole healthy answer of n tokens with usage, and how its end is told.
enum class framing { chunked, sized, until_close };
inline answer healthy(int n = 3, framing how = framing::sized) {
    const std::string events = healthy_events(n);
    switch (how) {
        case framing::chunked: return {send(chunked_head() + chunk(events) + last_chunk())};
        case framing::sized: return {send(sized_stream(events))};
        case framing::until_close: return {send(until_close_head() + events), close()};
    }
    return {};
}

/// One that announces the end of its connection, and keeps to it.
inline answer closing() {
    return {send(sized_stream(healthy_events(3), "Connection: close\r\n")), close()};
}

// ---- what is asked

struct request {
    std::string method{}, path{}, body{};
    std::vector<std::pair<std::string, std::string>> headers{};
    long long received_ns = 0;  // steady clock, when its last byte was there
    int connection = 0;         // counted from 0; asking for the models takes one of its own
    int place = 0;              // on its connection, from 0
    std::string from{};         // the address of its other side

    std::string header(const char* name) const {
        for (const auto& [n, value] : headers)
            if (strcasecmp(n.c_str(), name) == 0) return value;
        return {};
    }
};

/// Takes the next request from the bytes of a connection, once it is whole; one that is answered
/// early, once its head is.
inline std::optional<request> taken_from(std::string& held, bool early = false) {
    const std::size_t end = held.find("\r\n\r\n");
    if (end == std::string::npos) return {};
    request r;
    const std::string head = held.substr(0, end + 4);
    const std::size_t eol = head.find("\r\n");
    const std::string line = head.substr(0, eol);
    const std::size_t a = line.find(' '), b = line.rfind(' ');
    r.method = line.substr(0, a);
    r.path = a < b ? line.substr(a + 1, b - a - 1) : "";
    for (std::size_t at = eol + 2; at + 2 < head.size();) {
        const std::size_t stop = head.find("\r\n", at);
        const std::size_t colon = std::min(head.find(':', at), stop);
        const std::size_t value = std::min(head.find_first_not_of(": ", colon), stop);
        r.headers.emplace_back(head.substr(at, colon - at), head.substr(value, stop - value));
        at = stop + 2;
    }
    const std::string said = r.header("Content-Length");
    const std::size_t length = said.empty() ? 0 : std::stoul(said);
    if (!early && held.size() < head.size() + length) return {};
    r.body = held.substr(head.size(), length);
    held.erase(0, head.size() + r.body.size());
    return r;
}

/// What happens to the port when the list of models was asked for, before it is answered: a server
/// that was there when it was looked at, and is not there for the load.
enum class afterwards { listen, refuse, ignore };

/// What is answered to whom, and who asked.
class script {
public:
    /// Answers are given in the order in which requests come; the last one is used again and again.
    /// Or `choose` says what is answered.
    script(std::vector<answer> answers, std::function<answer(const request&)> choose)
        : answers_(std::move(answers)), choose_(std::move(choose)) {}

    std::vector<request> log{}, model_lists{};
    std::function<std::string(const request&)> page{};
    std::string model = "scripted";  // that it lists
    std::vector<answer> checks{healthy(1)};
    std::size_t checked = 0;
    std::function<void()> on_check{};
    std::map<std::string, std::string> told{};  // JSON that GET has at a path
    std::function<bool()> is_sleeping{};  // what GET /is_sleeping tells; without it, what a list does

    static bool is_of_page(const request& r) {
        return r.method == "GET" && r.path.ends_with("/metrics");
    }
    static answer page_answer(const std::function<std::string(const request&)>& page,
                              const request& r) {
        if (!page) return {send(json("404 Not Found", "{}")), close()};
        return {send(head("200 OK", "Content-Type: text/plain; version=0.0.4\r\n") + page(r)),
                close()};
    }
    /// To all but its page.
    answer answer_to(const request& r) {
        if (r.method == "GET" && is_sleeping && r.path == "/is_sleeping")
            return {send(json("200 OK", is_sleeping() ? R"({"is_sleeping":true})"
                                                      : R"({"is_sleeping":false})")),
                    close()};
        if (const auto json_at = told.find(r.path); r.method == "GET" && json_at != told.end())
            return {send(json("200 OK", json_at->second)), close()};
        if (r.method == "GET") {
            model_lists.push_back(r);
            return {send(json("200 OK", R"({"object":"list","data":[{"id":")" + model + "\"}]}")),
                    close()};
        }
        if (is_check(r.header("X-Request-Id"))) {
            if (on_check) on_check();
            return checks[std::min(checked++, checks.size() - 1)];
        }
        log.push_back(r);
        if (choose_) return choose_(r);
        return answers_[std::min(log.size(), answers_.size()) - 1];
    }

private:
    std::vector<answer> answers_;
    std::function<answer(const request&)> choose_;
};

}  // namespace scripted
