// A server whose truth is known: it streams answers of fixed words at a fixed pace and logs, for
// every request, when it had read it and when it handed each token to the socket. What a client
// says can be held against that. One thread, one epoll; answers are built before they are sent.
//   truth_server --log FILE [--bind 127.0.0.1] [--first-ms 40] [--interval-ms 20] [--early-role 1]
//                [--refuse N] [--cut N] [--break N]     every Nth request: 503; closed half-way;
//                                                       an error event half-way
//                [--example 1]      each answer is the one that "What the numbers mean" works out
//                [--events reasoning|usage]      of chat: text as `reasoning` and `reasoning_content`, as vLLM
//                                                has sent both; or each event counts the tokens so far
// An interval of 0 is a flood: all that the socket takes. It prints its address, serves until
// it gets SIGTERM, and then writes the log, a request a line:
//   number outcome asked received_ns end_ns tokens first_ns last_ns [us after the first token ...]
// on the monotonic clock; -1 where there is no such time. The outcome is ok, whole (not streamed),
// refused, cut, broken, left (by the client) or open.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using std::size_t;
using std::string;
using std::string_view;

long long now_ns() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

struct options {
    long long first_ns = 40'000'000, interval_ns = 20'000'000;
    bool early_role = false, example = false, reasoning = false, running_usage = false;
    long long refuse = 0, cut = 0, broken = 0;
    const char* log = nullptr;
    const char* bind = "127.0.0.1";  // the address to listen at
};

// ---- answers

/// Words that the tokenizer of the random model has as one token each.
constexpr const char* words[] = {" the",  " people", " walk",  " along", " a",   " quiet",
                                 " road", " and",    " listen", " to",    " music", " while",
                                 " the",  " warm",   " wind",  " sleep"};

/// An answer's bytes, and where each of its tokens ends; the last end has all that follows.
struct answer {
    string bytes{};
    std::vector<size_t> ends{};
    size_t opening = 0;  // the head, and a role that comes early
    std::vector<int> at_ms{};  // of each token after the request; empty: as the options say
};

string chunk(const string& data) {
    char size[24];
    std::snprintf(size, sizeof size, "%zx\r\n", data.size());
    return size + data + "\r\n";
}
string event(bool chat, const string& choices, const string& more = "") {
    return chunk(string("data: {\"id\":\"") + (chat ? "chatcmpl" : "cmpl") +
                 "-7f3a9c52d1e84b06a7c5\",\"object\":\"" +
                 (chat ? "chat.completion.chunk" : "text_completion") +
                 "\",\"created\":1700000000,\"model\":\"tiny\",\"choices\":[" + choices + "]" +
                 more + "}\n\n");
}
string choice_of(const string& text, const char* finish) {
    return "{\"index\":0," + text + ",\"logprobs\":null,\"finish_reason\":" +
           (finish ? finish : "null") + "}";
}
string choice(bool chat, const string& text, const char* finish) {
    return choice_of(chat ? "\"delta\":" + (finish ? "{}" : "{\"content\":\"" + text + "\"}")
                          : "\"text\":\"" + text + "\"",
                     finish);
}
string reasoning_choice(const string& text) {
    return choice_of("\"delta\":{\"reasoning\":\"" + text + "\",\"reasoning_content\":\"" + text +
                         "\"}",
                     nullptr);
}
constexpr const char* role = R"({"index":0,"delta":{"role":"assistant","content":""},)"
                             R"("logprobs":null,"finish_reason":null})";
string usage_of(int prompt, int tokens) {
    return "{\"prompt_tokens\":" + std::to_string(prompt) +
           ",\"completion_tokens\":" + std::to_string(tokens) +
           ",\"total_tokens\":" + std::to_string(prompt + tokens) + "}";
}
answer stream_answer(bool chat, bool usage, int tokens, int prompt, const options& how) {
    const string opening = chat ? event(true, role) : "";
    answer a;
    a.bytes = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
              "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
    if (how.early_role) a.opening = (a.bytes += opening).size();
    else a.bytes += opening;
    for (int i = 0; i < tokens; ++i) {
        const char* const word = words[static_cast<size_t>(i) % std::size(words)];
        const string said =
            chat && how.reasoning ? reasoning_choice(word) : choice(chat, word, nullptr);
        const string counted =
            how.running_usage ? ",\"usage\":" + usage_of(prompt, i + 1) : string();
        a.ends.push_back((a.bytes += event(chat, said, counted)).size());
    }
    a.bytes += event(chat, choice(chat, "", "\"length\""));
    if (usage) a.bytes += event(chat, "", ",\"usage\":" + usage_of(prompt, tokens));
    a.bytes += chunk("data: [DONE]\n\n") + "0\r\n\r\n";
    if (!a.ends.empty()) a.ends.back() = a.bytes.size();
    return a;
}
constexpr const char* models = R"({"object":"list","data":[{"id":"tiny","object":"model",)"
                               R"("owned_by":"truth","max_model_len":32768}]})";
/// Role at 5 ms, 33 events of three tokens from 200 ms on every 30 ms, an empty end at 1190, usage
/// of 100 tokens at 1191, [DONE] at 1192.
answer example_answer(bool chat) {
    answer a;
    a.bytes = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
              "Transfer-Encoding: chunked\r\n\r\n";
    const auto add = [&](int ms, const string& bytes) {
        a.ends.push_back((a.bytes += bytes).size());
        a.at_ms.push_back(ms);
    };
    add(5, chat ? event(true, role) : event(false, choice(false, "", "null")));
    for (int i = 0; i < 33; ++i)
        add(200 + 30 * i, event(chat, choice(chat, " the warm wind", nullptr)));
    add(1190, event(chat, choice(chat, "", "\"stop\"")));
    add(1191, event(chat, "", ",\"usage\":" + usage_of(8, 100)));
    add(1192, chunk("data: [DONE]\n\n") + "0\r\n\r\n");
    return a;
}
string reply(int status, const string& body) {
    return "HTTP/1.1 " + std::to_string(status) + (status == 200 ? " OK" : " Error") +
           "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}
string whole_answer(bool chat, int tokens, int prompt) {
    string text;
    for (int i = 0; i < tokens; ++i) text += words[static_cast<size_t>(i) % std::size(words)];
    const string said = chat ? "\"message\":{\"role\":\"assistant\",\"content\":\"" + text + "\"}"
                             : "\"text\":\"" + text + "\"";
    return reply(200, string("{\"id\":\"cmpl-1\",\"object\":\"") +
                          (chat ? "chat.completion" : "text_completion") +
                          "\",\"created\":1700000000,\"model\":\"tiny\",\"choices\":[{" +
                          "\"index\":0," + said + ",\"finish_reason\":\"length\"}],\"usage\":" +
                          usage_of(prompt, tokens) + "}");
}

// ---- questions

/// The value after a field's name, without the space before it; empty where it is not there.
string_view value_of(string_view body, string_view field) {
    size_t at = body.find(field);
    if (at == string_view::npos) return {};
    at = body.find_first_not_of(" :", at + field.size());
    return at == string_view::npos ? string_view{} : body.substr(at, 16);
}
int number_of(string_view body, string_view field) {
    const string_view v = value_of(body, field);
    return v.empty() ? 0 : std::atoi(string(v).c_str());
}
bool is_true(string_view body, string_view field) {
    return value_of(body, field).starts_with("true");
}
string lower(string_view s) {
    string out(s);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    return out;
}

struct question {
    string method{}, path{}, body{};
    bool close = false;
};
/// Takes one question off the front of what was read; false where it is not whole.
bool take_question(string& in, question& q) {
    const size_t head = in.find("\r\n\r\n");
    if (head == string::npos) return false;
    const string fields = lower(string_view(in).substr(0, head));
    const size_t blank = in.find(' '), after = in.find(' ', blank + 1);
    if (fields.find("transfer-encoding: chunked") != string::npos) {
        q.body.clear();
        for (size_t at = head + 4;;) {
            const size_t line = in.find("\r\n", at);
            if (line == string::npos) return false;
            const size_t n = std::strtoul(in.c_str() + at, nullptr, 16);
            if (in.size() < line + 2 + n + 2) return false;
            q.body.append(in, line + 2, n);
            at = line + 2 + n + 2;
            if (n == 0) {
                q.method = in.substr(0, blank);
                q.path = in.substr(blank + 1, after - blank - 1);
                in.erase(0, at);
                break;
            }
        }
    } else {
        const size_t at = fields.find("content-length:");
        const size_t n =
            at == string::npos ? 0 : std::strtoul(fields.c_str() + at + 15, nullptr, 10);
        if (in.size() < head + 4 + n) return false;
        q.method = in.substr(0, blank);
        q.path = in.substr(blank + 1, after - blank - 1);
        q.body = in.substr(head + 4, n);
        in.erase(0, head + 4 + n);
    }
    q.close = fields.find("connection: close") != string::npos;
    return true;
}

// ---- the server

enum class outcome : unsigned char { open, ok, whole, refused, cut, broken, left };
constexpr const char* outcome_names[] = {"open", "ok", "whole", "refused", "cut", "broken", "left"};

struct record {
    outcome how = outcome::open;
    int asked = 0, tokens = 0;
    long long received_ns = 0, end_ns = -1, first_ns = -1, last_ns = -1;
    std::vector<int> after_us{};
};

struct connection {
    int fd = -1;
    unsigned long long born = 0;
    string in{}, tail{};          // what is left of a reply that did not fit
    const answer* out = nullptr;  // null: waits for a question
    size_t sent = 0, event = 0, number = 0, until = 0;
    long long asked_ns = 0, due_ns = 0;
    outcome fate = outcome::ok;
    bool close = false, waits_for_room = false;
};
struct due {
    long long at_ns;
    int fd;
    unsigned long long born;
    bool operator>(const due& o) const { return at_ns > o.at_ns; }
};

volatile sig_atomic_t ended = 0;

class server {
public:
    explicit server(const options& o) : how_(o) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        ::inet_pton(AF_INET, o.bind, &a.sin_addr);
        socklen_t size = sizeof a;
        auto* const address = reinterpret_cast<sockaddr*>(&a);
        if (::bind(listener_, address, size) != 0 || ::listen(listener_, 4096) != 0 ||
            ::getsockname(listener_, address, &size) != 0) {
            std::perror("truth_server");
            std::exit(2);
        }
        std::printf("http://%s:%d\n", o.bind, ntohs(a.sin_port));
        std::fflush(stdout);
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        watch(listener_, EPOLLIN, EPOLL_CTL_ADD);
    }
    void serve() {
        epoll_event events[256];
        while (!ended) {
            const long long next = due_.empty() ? now_ns() + 100'000'000 : due_.top().at_ns;
            const long long left = std::clamp(next - now_ns(), 0ll, 100'000'000ll);
            const timespec wait{0, left};
            const int n = ::epoll_pwait2(epoll_, events, 256, &wait, nullptr);
            for (int i = 0; i < n; ++i) {
                const int fd = events[i].data.fd;
                if (fd == listener_) {
                    accept_all();
                    continue;
                }
                const auto found = connections_.find(fd);
                if (found == connections_.end()) continue;
                connection& c = found->second;
                if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
                    if (!read_all(c)) continue;
                }
                if (events[i].events & EPOLLOUT) write_more(c);
            }
            for (int i = 0; i < 64 && !due_.empty() && due_.top().at_ns <= now_ns(); ++i) {
                const due d = due_.top();
                due_.pop();
                const auto found = connections_.find(d.fd);
                if (found == connections_.end() || found->second.born != d.born) continue;
                write_more(found->second);
            }
        }
    }
    void write_log() const {
        std::FILE* const f = std::fopen(how_.log, "w");
        if (!f) return;
        for (size_t i = 0; i < records_.size(); ++i) {
            const record& r = records_[i];
            std::fprintf(f, "%zu %s %d %lld %lld %d %lld %lld", i,
                         outcome_names[static_cast<size_t>(r.how)], r.asked, r.received_ns,
                         r.end_ns, r.tokens, r.first_ns, r.last_ns);
            for (const int us : r.after_us) std::fprintf(f, " %d", us);
            std::fputc('\n', f);
        }
        std::fclose(f);
    }

private:
    void watch(int fd, unsigned events, int operation) {
        epoll_event e{};
        e.events = events;
        e.data.fd = fd;
        ::epoll_ctl(epoll_, operation, fd, &e);
    }
    void accept_all() {
        for (;;) {
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0) return;
            const int on = 1;
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            connection& c = connections_[fd];
            c = {};
            c.fd = fd;
            c.born = ++born_;
            watch(fd, EPOLLIN, EPOLL_CTL_ADD);
        }
    }
    void drop(connection& c, outcome how) {
        if (c.out) {
            records_[c.number].how = how;
            records_[c.number].end_ns = now_ns();
        }
        const int fd = c.fd;
        ::close(fd);
        connections_.erase(fd);
    }
    /// False where the connection is no more.
    bool read_all(connection& c) {
        char buffer[65536];
        for (;;) {
            const ssize_t n = ::recv(c.fd, buffer, sizeof buffer, 0);
            if (n < 0 && errno == EAGAIN) break;
            if (n <= 0) {
                drop(c, outcome::left);
                return false;
            }
            c.in.append(buffer, static_cast<size_t>(n));
        }
        if (c.out || !c.tail.empty()) return true;
        question q;
        return !take_question(c.in, q) || on_question(c, q);
    }
    bool on_question(connection& c, const question& q) {
        c.close = q.close;
        const bool chat = q.path.ends_with("/chat/completions");
        if (q.method != "POST" || (!chat && !q.path.ends_with("/completions")))
            return say(c, reply(200, q.path.ends_with("/models") ? models : "{}"));
        const int asked = std::max(number_of(q.body, "\"max_tokens\""),
                                   number_of(q.body, "\"max_completion_tokens\""));
        const int tokens = asked > 0 ? asked : 128;
        const int prompt =
            1 + static_cast<int>(std::count(q.body.begin(), q.body.end(), ' '));
        c.number = records_.size();
        record& r = records_.emplace_back();
        r.received_ns = now_ns();
        r.asked = tokens;
        // Faults fall on requests that are told apart, wherever all three are asked for.
        const auto is_due = [&](long long every, long long at) {
            return every > 0 && static_cast<long long>(c.number) % every == at % every;
        };
        if (is_due(how_.refuse, 7)) {
            r.how = outcome::refused;
            r.end_ns = r.received_ns;
            return say(c, reply(503, R"({"error":{"message":"overloaded","type":)"
                                     R"("server_error","code":503}})"));
        }
        if (!is_true(q.body, "\"stream\"")) {
            r.how = outcome::whole;
            r.tokens = tokens;
            r.end_ns = r.received_ns;
            return say(c, whole_answer(chat, tokens, prompt));
        }
        c.fate = is_due(how_.cut, 13)      ? outcome::cut
                 : is_due(how_.broken, 17) ? outcome::broken
                                           : outcome::ok;
        const bool usage = is_true(q.body, "\"include_usage\"");
        if (how_.example && examples_[chat].bytes.empty()) examples_[chat] = example_answer(chat);
        c.out = how_.example ? &examples_[chat] : &answer_of(chat, usage, tokens, prompt);
        const size_t all = c.out->ends.size();
        c.until = c.fate == outcome::ok ? all : std::max<size_t>(1, all / 2);
        c.sent = c.event = 0;
        if (c.out->opening > 0 && !write_to(c, c.out->opening)) return alive(c);
        // Streams are out of step, as those of users are.
        const auto step = static_cast<std::uint64_t>(std::max(how_.interval_ns, 1ll));
        c.due_ns = r.received_ns + how_.first_ns + static_cast<long long>(random_() % step);
        c.asked_ns = r.received_ns;
        if (how_.example) c.due_ns = c.asked_ns + c.out->at_ms[0] * 1'000'000ll;
        if (how_.interval_ns == 0 && how_.first_ns == 0) {
            const int fd = c.fd;
            write_more(c);
            return connections_.count(fd) > 0;
        }
        due_.push({c.due_ns, c.fd, c.born});
        return true;
    }
    const answer& answer_of(bool chat, bool usage, int tokens, int prompt) {
        answer& a = answers_[{chat, usage, tokens, prompt}];
        if (a.bytes.empty()) a = stream_answer(chat, usage, tokens, prompt, how_);
        return a;
    }
    bool alive(const connection& c) const { return connections_.count(c.fd) > 0; }
    /// A reply of known length.
    bool say(connection& c, const string& bytes) {
        c.tail = bytes;
        return flush(c);
    }
    bool flush(connection& c) {
        while (!c.tail.empty()) {
            const ssize_t n = ::send(c.fd, c.tail.data(), c.tail.size(), MSG_NOSIGNAL);
            if (n > 0) {
                c.tail.erase(0, static_cast<size_t>(n));
            } else if (errno == EAGAIN) {
                wait_for_room(c);
                return true;
            } else {
                drop(c, outcome::left);
                return false;
            }
        }
        return close_or_go_on(c);
    }
    void wait_for_room(connection& c) {
        if (!std::exchange(c.waits_for_room, true)) watch(c.fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
    }
    bool close_or_go_on(connection& c) {
        if (c.close) {
            drop(c, outcome::ok);
            return false;
        }
        if (std::exchange(c.waits_for_room, false)) watch(c.fd, EPOLLIN, EPOLL_CTL_MOD);
        question q;
        return !take_question(c.in, q) || on_question(c, q);
    }
    /// False where the socket takes no more now, or the connection is no more.
    bool write_to(connection& c, size_t end) {
        while (c.sent < end) {
            const ssize_t n =
                ::send(c.fd, c.out->bytes.data() + c.sent, end - c.sent, MSG_NOSIGNAL);
            if (n > 0) {
                c.sent += static_cast<size_t>(n);
            } else if (errno == EAGAIN) {
                wait_for_room(c);
                return false;
            } else {
                drop(c, outcome::left);
                return false;
            }
        }
        return true;
    }
    void stamp(connection& c, size_t events) {
        record& r = records_[c.number];
        const long long now = now_ns();
        if (r.first_ns < 0) r.first_ns = now;
        r.last_ns = now;
        r.tokens = static_cast<int>(events);
        if (how_.interval_ns > 0)
            r.after_us.push_back(static_cast<int>((now - r.first_ns) / 1000));
    }
    /// All tokens that are due, and of a flood 64 KiB; then the others have their turn.
    void write_more(connection& c) {
        if (!c.tail.empty()) {
            flush(c);
            return;
        }
        if (!c.out) return;
        const auto& ends = c.out->ends;
        const size_t from = c.sent;
        while (c.event < c.until) {
            if (how_.interval_ns > 0 && now_ns() < c.due_ns) {
                due_.push({c.due_ns, c.fd, c.born});
                return;
            }
            size_t to = c.event;
            if (how_.interval_ns == 0)
                while (to + 1 < c.until && ends[to + 1] - from < 65536) ++to;
            if (how_.interval_ns == 0 && c.sent - from > 65536) {
                wait_for_room(c);
                return;
            }
            if (c.sent == (c.event == 0 ? c.out->opening : ends[c.event - 1])) stamp(c, to + 1);
            if (!write_to(c, ends[to])) return;
            c.event = to + 1;
            c.due_ns += how_.interval_ns;
            if (how_.example && c.event < c.until)
                c.due_ns = c.asked_ns + c.out->at_ms[c.event] * 1'000'000ll;
        }
        finish(c);
    }
    void finish(connection& c) {
        record& r = records_[c.number];
        r.how = c.fate;
        r.end_ns = now_ns();
        c.out = nullptr;
        if (c.fate == outcome::cut) {
            drop(c, outcome::cut);
            return;
        }
        if (c.fate == outcome::broken)
            say(c, chunk("data: {\"error\":{\"message\":\"the engine stopped\",\"type\":"
                         "\"server_error\",\"code\":500}}\n\n") +
                       "0\r\n\r\n");
        else close_or_go_on(c);
    }

    options how_;
    int listener_ = -1, epoll_ = -1;
    unsigned long long born_ = 0;
    std::map<std::tuple<bool, bool, int, int>, answer> answers_{};
    answer examples_[2] = {};  // completions, chat
    std::unordered_map<int, connection> connections_{};
    std::priority_queue<due, std::vector<due>, std::greater<>> due_{};
    std::vector<record> records_{};
    std::mt19937_64 random_{1};
};

}  // namespace

int main(int argc, char** argv) {
    options o;
    for (int i = 1; i + 1 < argc; i += 2) {
        const string name = argv[i];
        const double value = std::atof(argv[i + 1]);
        if (name == "--log") o.log = argv[i + 1];
        else if (name == "--bind") o.bind = argv[i + 1];
        else if (name == "--first-ms") o.first_ns = static_cast<long long>(value * 1e6);
        else if (name == "--interval-ms") o.interval_ns = static_cast<long long>(value * 1e6);
        else if (name == "--early-role") o.early_role = value > 0;
        else if (name == "--example") o.example = value > 0;
        else if (name == "--events" && string_view(argv[i + 1]) == "reasoning") o.reasoning = true;
        else if (name == "--events" && string_view(argv[i + 1]) == "usage") o.running_usage = true;
        else if (name == "--refuse") o.refuse = static_cast<long long>(value);
        else if (name == "--cut") o.cut = static_cast<long long>(value);
        else if (name == "--break") o.broken = static_cast<long long>(value);
        else argc = 0;
    }
    if (!o.log) {
        std::fprintf(stderr, "usage: see the head of truth_server.cpp\n");
        return 2;
    }
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    struct sigaction end {};
    end.sa_handler = [](int) { ended = 1; };
    ::sigaction(SIGTERM, &end, nullptr);
    ::sigaction(SIGINT, &end, nullptr);
    server s(o);
    s.serve();
    s.write_log();
    return 0;
}
