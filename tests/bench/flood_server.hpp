// A server that costs next to nothing and a client that does the least one can do, as measures for
// ours. The server is a process of its own: answers are built before, one thread, one epoll, chat
// completions and /v1/models, nothing else. The raw reader only calls recv on the same answers, so
// what it takes is the kernel's share, and how late its stamps are is the machine's.
#ifndef LLMBENCH_BENCH_FLOOD_SERVER_HPP
#define LLMBENCH_BENCH_FLOOD_SERVER_HPP
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bench {

inline long long now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline double cpu_seconds(clockid_t of = CLOCK_THREAD_CPUTIME_ID) {
    timespec t{};
    ::clock_gettime(of, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
/// Client and server apart, where there are two cores. Threads and children inherit it.
inline void pin(int core) {
    if (std::thread::hardware_concurrency() < 2) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(core), &set);
    ::sched_setaffinity(0, sizeof set, &set);
}
inline void allow_many_files() {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
}

/// An answer, and where each of its events ends.
struct answer {
    std::string bytes{};
    std::vector<std::size_t> ends{};  // the last one is that of the whole
};
inline std::string chunk(const std::string& data) {
    char size[24];
    std::snprintf(size, sizeof size, "%zx\r\n", data.size());
    return size + data + "\r\n";
}
/// What the events of an answer look like: one for a token, of about 230 bytes in chat answers.
enum class event_shape {
    plain,          // chat as common servers send it
    odd,            // the same with an escape in a field's name
    escapes,        // with an escape in every second text
    reasoning,      // in both fields, as vLLM sends it
    running_usage,  // a usage in each event
    responses, anthropic, ollama, tgi, llama_cpp
};
/// The text, id and time differ from event to event, the text in its length, too.
inline answer stream_answer(int tokens, event_shape shape) {
    using enum event_shape;
    constexpr const char* words[] = {" word", " of", " streaming", " a", " text", ",", " some", " longer words"};
    constexpr const char* escaped[] = {"\\n\\n", " \\\"of\\\"", "\\n", " a\\tb"};
    answer a;
    a.bytes = std::string("HTTP/1.1 200 OK\r\nContent-Type: ") + (shape == ollama ? "application/x-ndjson" : "text/event-stream") +
              "\r\nTransfer-Encoding: chunked\r\n\r\n";
    const auto framed = [&](const std::string& json, const std::string& type = "") {
        return chunk(shape == ollama ? json + "\n" : (type.empty() ? "" : "event: " + type + "\n") + "data: " + json + "\n\n");
    };
    const auto chat = [&](const std::string& choices, const std::string& more) {
        return framed(std::string("{\"id\":\"chatcmpl-7f3a9c52d1e84b06a7c5\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,") +
                      (shape == odd ? "\"m\\u006fdel\"" : "\"model\"") + ":\"flood\",\"system_fingerprint\":\"fp_44709d6fcb\",\"choices\":[" + choices +
                      "]" + more + "}");
    };
    const auto usage = [](int so_far) {
        return ",\"usage\":{\"prompt_tokens\":8,\"total_tokens\":" + std::to_string(8 + so_far) + ",\"completion_tokens\":" + std::to_string(so_far) + "}";
    };
    const std::string all = std::to_string(tokens);
    for (int i = 0; i < tokens; ++i) {
        const std::string text = shape == escapes && i % 2 ? escaped[i / 2 % 4] : words[i % 8], n = std::to_string(i);
        switch (shape) {
        case responses:
            a.bytes += framed("{\"type\":\"response.output_text.delta\",\"content_index\":0,\"delta\":\"" + text +
                                  "\",\"item_id\":\"msg_7f3a9c52d1e84b06a7c5\",\"logprobs\":[],\"output_index\":0,\"sequence_number\":" + n + "}",
                              "response.output_text.delta");
            break;
        case anthropic:
            a.bytes += framed("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" + text + "\"}}",
                              "content_block_delta");
            break;
        case ollama:
            a.bytes += framed("{\"model\":\"flood\",\"created_at\":\"2026-11-27T10:00:00." + std::to_string(100000000 + i) +
                              "Z\",\"message\":{\"role\":\"assistant\",\"content\":\"" + text + "\"},\"done\":false}");
            break;
        case tgi:
            a.bytes += framed("{\"index\":" + n + ",\"token\":{\"id\":" + std::to_string(1000 + i % 7 * 1111) + ",\"text\":\"" + text +
                              "\",\"logprob\":-0." + std::to_string(1234 + i) + ",\"special\":false},\"generated_text\":null,\"details\":null}");
            break;
        case llama_cpp:
            a.bytes += framed("{\"index\":0,\"content\":\"" + text + "\",\"tokens\":[" + std::to_string(1000 + i % 7 * 1111) +
                              "],\"stop\":false,\"id_slot\":-1,\"tokens_predicted\":" + std::to_string(i + 1) + ",\"tokens_evaluated\":8}");
            break;
        case reasoning:
            a.bytes += chat("{\"index\":0,\"delta\":{\"reasoning\":\"" + text + "\",\"reasoning_content\":\"" + text +
                                "\"},\"logprobs\":null,\"finish_reason\":null}", "");
            break;
        default:
            a.bytes += chat("{\"index\":0,\"delta\":{\"content\":\"" + text + "\"},\"logprobs\":null,\"finish_reason\":null}",
                            shape == running_usage ? usage(i + 1) : "");
        }
        a.ends.push_back(a.bytes.size());
    }
    switch (shape) {
    case responses:
        a.bytes += framed("{\"type\":\"response.completed\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}," +
                              ("\"usage\":{\"input_tokens\":8,\"output_tokens\":" + all) + "}}}", "response.completed");
        break;
    case anthropic:
        a.bytes += framed("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"},\"usage\":{\"input_tokens\":8,\"output_tokens\":" + all + "}}",
                          "message_delta") + framed("{\"type\":\"message_stop\"}", "message_stop");
        break;
    case ollama:
        a.bytes += framed("{\"model\":\"flood\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"length\","
                          "\"prompt_eval_count\":8,\"eval_count\":" + all + "}");
        break;
    case tgi:
        a.bytes += framed("{\"index\":" + all + ",\"token\":{\"id\":2,\"text\":\"\",\"logprob\":0,\"special\":true},\"generated_text\":\"...\","
                          "\"details\":{\"finish_reason\":\"length\",\"input_length\":8,\"generated_tokens\":" + all + "}}");
        break;
    case llama_cpp:
        a.bytes += framed("{\"index\":0,\"content\":\"\",\"stop\":true,\"stop_type\":\"limit\",\"tokens_evaluated\":8,\"tokens_predicted\":" + all + "}");
        break;
    default:
        a.bytes += chat(R"({"index":0,"delta":{},"finish_reason":"length"})", "") + chat("", usage(tokens)) + chunk("data: [DONE]\n\n");
    }
    a.bytes += "0\r\n\r\n";
    a.ends.push_back(a.bytes.size());
    return a;
}

/// When the server saw a request and wrote its first and last event, by the number its id ends with.
struct served {
    long long received_ns = 0, first_ns = 0, last_ns = 0;
};

struct flood_options {
    std::chrono::microseconds interval{0};  // of the events of a stream; zero: as fast as the client takes them
    std::size_t events_per_write = 0;       // of a flood; zero: all that the socket takes
    event_shape shape = event_shape::plain;
};

class flood_server {
public:
    static constexpr std::size_t log_size = 1 << 20;

    explicit flood_server(flood_options how = {}) : how_(how) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof a;
        void* shared = ::mmap(nullptr, log_size * sizeof(served), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED || ::bind(listener_, reinterpret_cast<sockaddr*>(&a), size) != 0 || ::listen(listener_, 4096) != 0 ||
            ::getsockname(listener_, reinterpret_cast<sockaddr*>(&a), &size) != 0)
            throw std::runtime_error("the flood server cannot listen");
        log_ = static_cast<served*>(shared);
        port_ = ntohs(a.sin_port);
        std::fflush(stdout);
        if ((child_ = ::fork()) == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            pin(1);
            serve();
        }
        ::close(listener_);
    }
    ~flood_server() {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        ::munmap(log_, log_size * sizeof(served));
    }
    flood_server(const flood_server&) = delete;
    flood_server& operator=(const flood_server&) = delete;
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    int port() const { return port_; }
    event_shape shape() const { return how_.shape; }
    const served& log(std::size_t id) const { return log_[id % log_size]; }

private:
    struct connection {
        int fd = -1;
        std::string in{};
        const answer* out = nullptr;  // null: waiting for a request
        std::size_t sent = 0, event = 0, id = 0;
        bool waits_for_room = false;
    };
    struct due {
        long long at_ns;
        int fd;
        bool operator>(const due& o) const { return at_ns > o.at_ns; }
    };

    void watch(int fd, unsigned events, int operation) {
        epoll_event e{};
        e.events = events;
        e.data.fd = fd;
        ::epoll_ctl(epoll_, operation, fd, &e);
    }
    const answer& answer_of(int tokens) {
        answer& a = answers_[tokens];
        if (a.bytes.empty()) a = stream_answer(tokens, how_.shape);
        return a;
    }
    const answer& models() {
        if (models_.bytes.empty()) {
            const std::string body = R"({"object":"list","data":[{"id":"flood","object":"model"}]})";
            models_.bytes = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
            models_.ends = {models_.bytes.size()};
        }
        return models_;
    }
    void accept_all() {
        for (int fd; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
            const int on = 1;
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            connections_[fd].fd = fd;
            watch(fd, EPOLLIN, EPOLL_CTL_ADD);
        }
    }
    void drop(int fd) {
        ::close(fd);
        connections_.erase(fd);
    }
    void on_readable(connection& c, long long now) {
        char buffer[16384];
        const ssize_t n = ::recv(c.fd, buffer, sizeof buffer, 0);
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) return drop(c.fd);
        c.in.append(buffer, static_cast<std::size_t>(n));
        const std::size_t head = c.in.find("\r\n\r\n");
        if (head == std::string::npos || c.out) return;
        const auto number_after = [&](const char* what, std::size_t otherwise) {
            const std::size_t at = c.in.find(what);
            return at == std::string::npos ? otherwise : std::strtoul(c.in.c_str() + at + std::strlen(what), nullptr, 10);
        };
        const std::size_t body = number_after("Content-Length: ", 0);
        if (c.in.size() < head + 4 + body) return;
        std::size_t asked = 0;
        for (const char* name : {"\"max_tokens\":", "\"max_output_tokens\":", "\"max_new_tokens\":", "\"num_predict\":", "\"n_predict\":"})
            asked = std::max(asked, number_after(name, 0));
        const auto tokens = static_cast<int>(asked);
        c.out = tokens == 0 ? &models() : &answer_of(tokens);
        const std::size_t id = c.in.find("X-Request-Id: ");
        const std::size_t dash = c.in.rfind('-', c.in.find('\r', id));
        c.id = (id < head ? std::strtoul(c.in.c_str() + dash + 1, nullptr, 10) : 0) % log_size;
        log_[c.id] = {now, 0, 0};
        c.in.erase(0, head + 4 + body);
        c.sent = c.event = 0;
        if (tokens == 0 || how_.interval.count() == 0) return write_more(c);
        // Streams are out of step, as those of users are.
        due_.push({now + static_cast<long long>(random_() % static_cast<std::uint64_t>(how_.interval.count())) * 1000, c.fd});
    }
    void stamp(const connection& c, long long now) {
        if (c.event == 0) log_[c.id].first_ns = now;
        if (c.event + 2 == c.out->ends.size()) log_[c.id].last_ns = now;
    }
    bool write_to(connection& c, std::size_t end) {
        while (c.sent < end) {
            const ssize_t n = ::send(c.fd, c.out->bytes.data() + c.sent, end - c.sent, MSG_NOSIGNAL);
            if (n > 0) { c.sent += static_cast<std::size_t>(n); continue; }
            if (errno == EAGAIN && !std::exchange(c.waits_for_room, true)) watch(c.fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
            if (errno != EAGAIN) drop(c.fd);
            return false;
        }
        return true;
    }
    void finish(connection& c) {
        c.out = nullptr;
        if (std::exchange(c.waits_for_room, false)) watch(c.fd, EPOLLIN, EPOLL_CTL_MOD);
    }
    /// A flood: at most 64 KiB in small writes, then the next stream has its turn.
    void write_more(connection& c) {
        const auto& ends = c.out->ends;
        const std::size_t from = c.sent;
        while (c.event < ends.size()) {
            const std::size_t to = how_.events_per_write == 0 ? ends.size() - 1 : std::min(c.event + how_.events_per_write, ends.size()) - 1;
            if (c.sent - from > 65536) {
                if (!std::exchange(c.waits_for_room, true)) watch(c.fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
                return;
            }
            if (!write_to(c, ends[to])) return;
            c.event = to + 1;
        }
        finish(c);
    }
    void write_next(connection& c, long long at_ns) {
        stamp(c, now_ns());
        const int fd = c.fd;
        if (!write_to(c, c.out->ends[c.event])) {
            if (connections_.count(fd)) due_.push({at_ns + 1000000, fd});  // its buffer is full: later
            return;
        }
        // The end follows the last content event at once.
        if (++c.event + 1 == c.out->ends.size() && write_to(c, c.out->ends[c.event])) return finish(c);
        due_.push({at_ns + how_.interval.count() * 1000, fd});
    }
    [[noreturn]] void serve() {
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        watch(listener_, EPOLLIN, EPOLL_CTL_ADD);
        epoll_event events[256];
        for (;;) {
            const long long left = due_.empty() ? 1000000000 : std::max(0ll, due_.top().at_ns - now_ns());
            const timespec wait{left / 1000000000, left % 1000000000};
            const int n = ::epoll_pwait2(epoll_, events, 256, &wait, nullptr);
            const long long now = now_ns();
            for (int i = 0; i < n; ++i) {
                const int fd = events[i].data.fd;
                if (fd == listener_) { accept_all(); continue; }
                connection& c = connections_[fd];
                if (c.out && (events[i].events & EPOLLOUT)) write_more(c);
                else if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(c, now);
            }
            for (int turn = 0; turn < 64 && !due_.empty() && due_.top().at_ns <= now_ns(); ++turn) {
                const due d = due_.top();
                due_.pop();
                const auto found = connections_.find(d.fd);
                if (found != connections_.end() && found->second.out) write_next(found->second, d.at_ns);
            }
        }
    }

    flood_options how_;
    int listener_ = -1, epoll_ = -1, port_ = 0;
    pid_t child_ = -1;
    served* log_ = nullptr;
    std::map<int, answer> answers_{};
    answer models_{};
    std::map<int, connection> connections_{};
    std::priority_queue<due, std::vector<due>, std::greater<>> due_{};
    std::mt19937_64 random_{1};
};

/// What the raw reader saw of one request.
struct raw_record {
    long long scheduled_ns = 0, first_ns = 0, last_ns = 0;
};
struct raw_figures {
    double seconds = 0, cpu = 0, requests = 0, events = 0;
    std::vector<raw_record> records{};
};

/// A level-triggered epoll, one read buffer, one stamp a read, and the length of the answer known.
class raw_reader {
public:
    raw_reader(const flood_server& server, int tokens) : port_(server.port()), tokens_(tokens), whole_(stream_answer(tokens, server.shape())) {
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    }
    ~raw_reader() {
        for (const auto& c : all_) ::close(c->fd);
        ::close(epoll_);
    }
    raw_reader(const raw_reader&) = delete;
    raw_reader& operator=(const raw_reader&) = delete;

    /// So many users for so long: the answers that began in time are read to their end.
    raw_figures closed(std::size_t streams, double seconds) {
        start();
        end_at_ns_ = start_ns_ + static_cast<long long>(seconds * 1e9);
        for (std::size_t i = 0; i < streams; ++i) send_on(*opened(), now_ns());
        while (busy_ > 0) wait_and_read(-1);
        return finish();
    }
    /// Sends at these times after the start.
    raw_figures open(const std::vector<long long>& at) {
        start();
        end_at_ns_ = start_ns_;
        for (std::size_t next = 0; next < at.size() || busy_ > 0;) {
            const long long left = next < at.size() ? start_ns_ + at[next] - now_ns() : -1;
            if (next < at.size() && left <= 0) {
                stream* s = idle_.empty() ? opened() : idle_.back();
                if (!idle_.empty()) idle_.pop_back();
                send_on(*s, start_ns_ + at[next++]);
            } else {
                wait_and_read(left);
            }
        }
        return finish();
    }

private:
    struct stream {
        int fd = -1;
        std::size_t got = 0, record = 0;
    };
    void start() {
        done_ = {};
        cpu_before_ = cpu_seconds();
        start_ns_ = now_ns();
    }
    raw_figures finish() {
        done_.seconds = static_cast<double>(now_ns() - start_ns_) * 1e-9;
        done_.cpu = cpu_seconds() - cpu_before_;
        done_.requests = static_cast<double>(done_.records.size());
        done_.events = done_.requests * tokens_;
        return std::move(done_);
    }
    stream* opened() {
        all_.push_back(std::make_unique<stream>());
        stream* s = all_.back().get();
        s->fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        a.sin_port = htons(static_cast<std::uint16_t>(port_));
        const int on = 1;
        ::setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (::connect(s->fd, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) throw std::runtime_error("the raw reader cannot connect");
        epoll_event e{};
        e.events = EPOLLIN;
        e.data.ptr = s;
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, s->fd, &e);
        return s;
    }
    void send_on(stream& s, long long scheduled_ns) {
        s.got = 0;
        s.record = done_.records.size();
        done_.records.push_back({scheduled_ns, 0, 0});
        ++busy_;
        const std::string body = "{\"model\":\"flood\",\"messages\":[],\"stream\":true,\"max_tokens\":" + std::to_string(tokens_) + "}";
        const std::string request = "POST /v1/chat/completions HTTP/1.1\r\nHost: flood\r\nX-Request-Id: raw-" + std::to_string(s.record) +
                                    "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        if (::send(s.fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
            throw std::runtime_error("the raw reader cannot send");
    }
    void wait_and_read(long long at_most_ns) {
        epoll_event events[256];
        const timespec wait{at_most_ns / 1000000000, at_most_ns % 1000000000};
        const int n = ::epoll_pwait2(epoll_, events, 256, at_most_ns < 0 ? nullptr : &wait, nullptr);
        for (int i = 0; i < n; ++i) {
            stream& s = *static_cast<stream*>(events[i].data.ptr);
            const ssize_t got = ::recv(s.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
            const long long now = now_ns();
            if (got <= 0) throw std::runtime_error("the raw reader lost a connection");
            raw_record& r = done_.records[s.record];
            if (s.got == 0) r.first_ns = now;
            s.got += static_cast<std::size_t>(got);
            if (r.last_ns == 0 && s.got >= whole_.ends[whole_.ends.size() - 2]) r.last_ns = now;
            if (s.got < whole_.bytes.size()) continue;
            --busy_;
            if (now < end_at_ns_) send_on(s, now);
            else idle_.push_back(&s);
        }
    }

    int port_, tokens_, epoll_ = -1;
    answer whole_;
    std::vector<char> buffer_ = std::vector<char>(256 * 1024);
    std::vector<std::unique_ptr<stream>> all_{};
    std::vector<stream*> idle_{};
    raw_figures done_{};
    double cpu_before_ = 0;
    long long start_ns_ = 0, end_at_ns_ = 0;
    std::size_t busy_ = 0;
};

}  // namespace bench
#endif
