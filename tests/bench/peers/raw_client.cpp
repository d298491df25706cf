// The least a client can do: a level-triggered epoll, one read buffer, one stamp a read. What it
// takes is the kernel's share, and how late its stamps are is the machine's. It parses nothing: an
// answer ends with the last chunk of its body, so it knows of no failure either.
//   raw_client PORT STREAMS REQUESTS TOKENS [RATE]      a rate: sent at equal distances
// Prints a JSON object: its TTFT and TPOT by its stamps, in ms.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

long long now_ns() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}
[[noreturn]] void quit(const char* why) {
    std::perror(why);
    std::exit(1);
}

struct seen {
    long long sent_ns = 0, first_ns = 0, last_ns = 0;
};
struct stream {
    int fd = -1;
    std::size_t request = 0;
    char end[5] = {};  // the last bytes that were read
};

class raw_client {
public:
    raw_client(int port, int tokens)
        : port_(port), epoll_(::epoll_create1(EPOLL_CLOEXEC)),
          body_(R"({"model":"tiny","messages":[{"role":"user","content":"raw"}],"stream":true,)"
                R"("max_tokens":)" +
                std::to_string(tokens) + "}"),
          question_("POST /v1/chat/completions HTTP/1.1\r\nHost: truth\r\nContent-Length: " +
                    std::to_string(body_.size()) + "\r\n\r\n" + body_) {}

    const std::vector<seen>& closed(std::size_t streams, std::size_t requests) {
        for (std::size_t i = 0; i < std::min(streams, requests); ++i) ask(*opened());
        while (busy_ > 0) {
            read_some(-1);
            while (!idle_.empty() && seen_.size() < requests) ask(*taken());
        }
        return seen_;
    }
    const std::vector<seen>& open(double rate, std::size_t requests) {
        const long long start = now_ns();
        while (seen_.size() < requests || busy_ > 0) {
            const auto at = static_cast<double>(seen_.size()) / rate * 1e9;
            const long long left = seen_.size() < requests
                                       ? start + static_cast<long long>(at) - now_ns()
                                       : -1;
            if (seen_.size() < requests && left <= 0) ask(idle_.empty() ? *opened() : *taken());
            else read_some(left);
        }
        return seen_;
    }

private:
    stream* taken() {
        stream* const s = idle_.back();
        idle_.pop_back();
        return s;
    }
    stream* opened() {
        all_.push_back(std::make_unique<stream>());
        stream* const s = all_.back().get();
        s->fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        a.sin_port = htons(static_cast<std::uint16_t>(port_));
        const int on = 1;
        ::setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (::connect(s->fd, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) quit("connect");
        epoll_event e{};
        e.events = EPOLLIN;
        e.data.ptr = s;
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, s->fd, &e);
        return s;
    }
    void ask(stream& s) {
        s.request = seen_.size();
        seen_.push_back({now_ns(), 0, 0});
        ++busy_;
        if (::send(s.fd, question_.data(), question_.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(question_.size()))
            quit("send");
    }
    void read_some(long long at_most_ns) {
        epoll_event events[256];
        const timespec wait{at_most_ns / 1'000'000'000, at_most_ns % 1'000'000'000};
        const int n =
            ::epoll_pwait2(epoll_, events, 256, at_most_ns < 0 ? nullptr : &wait, nullptr);
        for (int i = 0; i < n; ++i) {
            stream& s = *static_cast<stream*>(events[i].data.ptr);
            const ssize_t got = ::recv(s.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
            const long long now = now_ns();
            if (got <= 0) quit("a connection was lost");
            seen& r = seen_[s.request];
            if (r.first_ns == 0) r.first_ns = now;
            r.last_ns = now;
            keep_end(s, static_cast<std::size_t>(got));
            if (std::memcmp(s.end, "0\r\n\r\n", sizeof s.end) != 0) continue;
            --busy_;
            idle_.push_back(&s);
        }
    }
    void keep_end(stream& s, std::size_t got) {
        const std::size_t n = std::min(got, sizeof s.end);
        std::memmove(s.end, s.end + n, sizeof s.end - n);
        std::memcpy(s.end + sizeof s.end - n, buffer_.data() + got - n, n);
    }

    int port_, epoll_;
    std::string body_, question_;
    std::vector<char> buffer_ = std::vector<char>(256 * 1024);
    std::vector<std::unique_ptr<stream>> all_{};
    std::vector<stream*> idle_{};
    std::vector<seen> seen_{};
    std::size_t busy_ = 0;
};

/// By nearest rank.
double at(std::vector<double> v, double q) {
    std::sort(v.begin(), v.end());
    const double rank = std::ceil(q * static_cast<double>(v.size()));
    return v[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) {
        std::fprintf(stderr, "usage: %s PORT STREAMS REQUESTS TOKENS [RATE]\n", argv[0]);
        return 2;
    }
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    const auto number = [&](int i) { return std::strtoul(argv[i], nullptr, 10); };
    const int tokens = static_cast<int>(number(4));
    raw_client client(static_cast<int>(number(1)), tokens);
    const std::vector<seen>& all =
        argc > 5 ? client.open(std::atof(argv[5]), number(3)) : client.closed(number(2), number(3));
    std::vector<double> ttft, tpot;
    double sum = 0;
    for (const seen& r : all) {
        ttft.push_back(static_cast<double>(r.first_ns - r.sent_ns) * 1e-6);
        sum += static_cast<double>(r.last_ns - r.first_ns) * 1e-6 / std::max(1, tokens - 1);
    }
    if (all.empty()) return 1;
    std::printf("{\"ttft_p50\":%.6f,\"ttft_p99\":%.6f,\"tpot_mean\":%.6f,\"ok\":%zu}\n",
                at(ttft, 0.5), at(ttft, 0.99), sum / static_cast<double>(all.size()), all.size());
}
