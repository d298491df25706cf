// Which network library the client should stand on: the same load read by the raw reader, by our
// exchange over epoll, and by asio in three ways, in turns in one run; one thread each, a server
// process on another core. All but the raw one feed each read to an answer_reader with its stamp, so
// what differs is how they wait, read and keep time.
//   network_library [SECONDS]      of each measurement, default 3
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"
#include "core/base/text.hpp"
#include "core/answers/answer_reader.hpp"
#include "effects/net/exchange.hpp"
#include "effects/net/network.hpp"
#include "effects/net/socket_user.hpp"
#include "effects/simulated/asio.hpp"

#include "flood_server.hpp"

#include <asio/buffer.hpp>
#include <asio/write.hpp>

#include "support/memory.hpp"

using namespace llmbench;
using bench::now_ns;

namespace {

struct stamps {
    long long scheduled_ns = 0, sent_ns = 0, first_ns = 0, last_ns = 0;
};
struct figures {
    double seconds = 0, cpu = 0, events = 0;
    std::vector<stamps> requests{};
    double kib_a_stream = 0;
    double cpu_us() const { return 1e6 * cpu / events; }
};
std::string request_of(std::size_t id, int tokens) {
    const std::string body = "{\"model\":\"flood\",\"messages\":[],\"stream\":true,\"max_tokens\":" + std::to_string(tokens) + "}";
    return "POST /v1/chat/completions HTTP/1.1\r\nHost: flood\r\nX-Request-Id: net-" + std::to_string(id) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
/// What both clients do with a stream, whoever reads it.
struct stream_state {
    detail::answer_reader answer{};
    std::string request{};
    std::size_t id = 0;
};

/// Closed loop: each stream asks again until the time is over. Open loop: sends at the given times.
struct load {
    int tokens = 0;
    std::size_t streams = 0;
    double seconds = 0;
    std::vector<long long> at{};  // open loop where there are any
};

/// Ours: epoll, told of as long as there are bytes, one buffer for all.
class by_epoll {
public:
    figures run(int port, const load& what) {
        what_ = &what;
        const auto to = detail::resolved(detail::parsed_url("http://127.0.0.1:" + std::to_string(port), "url"));
        const std::size_t before = memory::held();
        for (std::size_t i = 0; i < what.streams; ++i) {
            streams_.push_back(std::make_unique<stream>(*this));
            stream& s = *streams_.back();
            s.wire.connect(to[0], network_, s);
            while (!s.open) turn(now_ns() + 1000000000);
            idle_.push_back(&s);
        }
        done_.kib_a_stream = static_cast<double>(memory::held() - before) / 1024 / static_cast<double>(what.streams);
        const double cpu = bench::cpu_seconds();
        const long long began = now_ns();
        end_ns_ = began + static_cast<long long>(what.seconds * 1e9);
        if (what.at.empty())
            while (!idle_.empty()) send(began);
        std::size_t next = 0;
        while (busy_ > 0 || next < what.at.size()) {
            turn(next < what.at.size() ? began + what.at[next] : now_ns() + 20000000);
            for (; next < what.at.size() && began + what.at[next] <= now_ns() && !idle_.empty(); ++next) send(began + what.at[next]);
        }
        done_.seconds = static_cast<double>(now_ns() - began) * 1e-9;
        done_.cpu = bench::cpu_seconds() - cpu;
        return std::move(done_);
    }

private:
    struct stream final : stream_state, detail::socket_user {
        explicit stream(by_epoll& o) : owner(o) {}
        void on_readable() override { owner.read(*this); }
        void on_writable() override { open = true; }
        by_epoll& owner;
        detail::exchange wire{};
        bool open = false;
    };
    void turn(long long until_ns) {
        network_.wait(until_ns);
        network_.each();
    }
    void send(long long scheduled) {
        stream& s = *idle_.back();
        idle_.pop_back();
        ++busy_;
        s.answer.reset();
        s.id = done_.requests.size();
        s.request = request_of(s.id, what_->tokens);
        done_.requests.push_back({scheduled, now_ns(), 0, 0});
        s.wire.send(s.request);
        s.wire.flush();
    }
    void read(stream& s) {
        const detail::arrival a = s.wire.read(buffer_);
        if (a.what != detail::arrival::kind::bytes) return;
        s.answer.feed(a.bytes, a.at_ns);
        if (!s.answer.finished()) return;
        const auto& t = s.answer.timeline();
        record r;
        s.answer.timeline().write_to(r);
        done_.requests[s.id].first_ns = r.first_token_ns;
        done_.requests[s.id].last_ns = r.last_token_ns;
        done_.events += t.events();
        --busy_;
        idle_.push_back(&s);
        if (what_->at.empty() && a.at_ns < end_ns_) send(a.at_ns);
    }
    const load* what_ = nullptr;
    detail::network network_{};
    std::vector<char> buffer_ = std::vector<char>(256 * 1024);
    std::vector<std::unique_ptr<stream>> streams_{};
    std::vector<stream*> idle_{};
    std::size_t busy_ = 0;
    long long end_ns_ = 0;
    figures done_{};
};

/// asio: async_read_some, a buffer for each connection; its reactor is edge-triggered, and tries a
/// read before it waits.
class by_asio {
public:
    explicit by_asio(std::size_t room) : room_(room) {}
    figures run(int port, const load& what) {
        what_ = &what;
        const std::size_t before = memory::held();
        for (std::size_t i = 0; i < what.streams; ++i) {
            streams_.push_back(std::make_unique<stream>(context_, room_));
            stream& s = *streams_.back();
            s.socket.connect({asio::ip::address_v4::loopback(), static_cast<unsigned short>(port)});
            s.socket.set_option(asio::ip::tcp::no_delay(true));
            s.socket.non_blocking(true);
            idle_.push_back(&s);
        }
        done_.kib_a_stream = static_cast<double>(memory::held() - before) / 1024 / static_cast<double>(what.streams);
        const double cpu = bench::cpu_seconds();
        began_ns_ = now_ns();
        end_ns_ = began_ns_ + static_cast<long long>(what.seconds * 1e9);
        if (what.at.empty())
            while (!idle_.empty()) send(began_ns_);
        else wait_for_next();
        context_.run();
        done_.seconds = static_cast<double>(now_ns() - began_ns_) * 1e-9;
        done_.cpu = bench::cpu_seconds() - cpu;
        return std::move(done_);
    }

private:
    struct stream : stream_state {
        stream(asio::io_context& c, std::size_t room) : socket(c), buffer(room) {}
        detail::tcp_socket socket;
        std::vector<char> buffer;
    };
    void wait_for_next() {
        if (next_ == what_->at.size()) return;
        using clock = std::chrono::steady_clock;
        timer_.expires_at(clock::time_point(std::chrono::nanoseconds(began_ns_ + what_->at[next_])));
        timer_.async_wait([this](const asio::error_code&) {
            for (; next_ < what_->at.size() && began_ns_ + what_->at[next_] <= now_ns() && !idle_.empty(); ++next_) send(began_ns_ + what_->at[next_]);
            wait_for_next();
        });
    }
    void send(long long scheduled) {
        stream& s = *idle_.back();
        idle_.pop_back();
        s.answer.reset();
        s.id = done_.requests.size();
        s.request = request_of(s.id, what_->tokens);
        done_.requests.push_back({scheduled, now_ns(), 0, 0});
        asio::error_code error;
        s.socket.write_some(asio::buffer(s.request), error);
        read(s);
    }
    void read(stream& s) {
        s.socket.async_read_some(asio::buffer(s.buffer), [this, &s](const asio::error_code& error, std::size_t n) {
            const long long now = now_ns();
            if (error) return;
            s.answer.feed({s.buffer.data(), n}, now);
            if (!s.answer.finished()) return read(s);
            record r;
            s.answer.timeline().write_to(r);
            done_.requests[s.id].first_ns = r.first_token_ns;
            done_.requests[s.id].last_ns = r.last_token_ns;
            done_.events += s.answer.timeline().events();
            idle_.push_back(&s);
            if (what_->at.empty() && now < end_ns_) send(now);
        });
    }
    const std::size_t room_;
    const load* what_ = nullptr;
    asio::io_context context_{1};
    detail::io_timer timer_{context_};
    std::vector<std::unique_ptr<stream>> streams_{};
    std::vector<stream*> idle_{};
    std::size_t next_ = 0;
    long long began_ns_ = 0, end_ns_ = 0;
    figures done_{};
};

/// asio as a wait alone: async_wait(wait_read), one buffer for all. What is ready is run until nothing
/// is, so that it is known when the thread goes to sleep.
class by_asio_wait {
public:
    figures run(int port, const load& what) {
        what_ = &what;
        const std::size_t before = memory::held();
        for (std::size_t i = 0; i < what.streams; ++i) {
            streams_.push_back(std::make_unique<stream>(context_));
            stream& s = *streams_.back();
            s.socket.connect({asio::ip::address_v4::loopback(), static_cast<unsigned short>(port)});
            s.socket.set_option(asio::ip::tcp::no_delay(true));
            s.socket.non_blocking(true);
            wait(s);
            idle_.push_back(&s);
        }
        done_.kib_a_stream = static_cast<double>(memory::held() - before) / 1024 / static_cast<double>(what.streams);
        const double cpu = bench::cpu_seconds();
        began_ns_ = now_ns();
        end_ns_ = began_ns_ + static_cast<long long>(what.seconds * 1e9);
        if (what.at.empty())
            while (!idle_.empty()) send(began_ns_);
        else wait_for_next();
        while (busy_ > 0 || next_ < what.at.size()) {
            if (!context_.run_one()) break;
            for (int i = 1; i < 256 && context_.poll_one(); ++i) {}
        }
        done_.seconds = static_cast<double>(now_ns() - began_ns_) * 1e-9;
        done_.cpu = bench::cpu_seconds() - cpu;
        return std::move(done_);
    }

private:
    struct stream : stream_state {
        explicit stream(asio::io_context& c) : socket(c) {}
        detail::tcp_socket socket;
    };
    void wait_for_next() {
        if (next_ == what_->at.size()) return;
        using clock = std::chrono::steady_clock;
        timer_.expires_at(clock::time_point(std::chrono::nanoseconds(began_ns_ + what_->at[next_])));
        timer_.async_wait([this](const asio::error_code&) {
            for (; next_ < what_->at.size() && began_ns_ + what_->at[next_] <= now_ns() && !idle_.empty(); ++next_) send(began_ns_ + what_->at[next_]);
            wait_for_next();
        });
    }
    void send(long long scheduled) {
        stream& s = *idle_.back();
        idle_.pop_back();
        ++busy_;
        s.answer.reset();
        s.id = done_.requests.size();
        s.request = request_of(s.id, what_->tokens);
        done_.requests.push_back({scheduled, now_ns(), 0, 0});
        asio::error_code error;
        s.socket.write_some(asio::buffer(s.request), error);
    }
    void wait(stream& s) {
        s.socket.async_wait(detail::tcp_socket::wait_read, [this, &s](const asio::error_code& error) {
            if (error) return;
            read(s);
            wait(s);
        });
    }
    void read(stream& s) {
        asio::error_code error;
        const std::size_t n = s.socket.read_some(asio::buffer(buffer_), error);
        const long long now = now_ns();
        if (error) return;
        s.answer.feed({buffer_.data(), n}, now);
        if (!s.answer.finished()) return;
        record r;
        s.answer.timeline().write_to(r);
        done_.requests[s.id].first_ns = r.first_token_ns;
        done_.requests[s.id].last_ns = r.last_token_ns;
        done_.events += s.answer.timeline().events();
        --busy_;
        idle_.push_back(&s);
        if (what_->at.empty() && now < end_ns_) send(now);
    }
    const load* what_ = nullptr;
    asio::io_context context_{1};
    detail::io_timer timer_{context_};
    std::vector<char> buffer_ = std::vector<char>(256 * 1024);
    std::vector<std::unique_ptr<stream>> streams_{};
    std::vector<stream*> idle_{};
    std::size_t busy_ = 0, next_ = 0;
    long long began_ns_ = 0, end_ns_ = 0;
    figures done_{};
};

double quantile(std::vector<double> v, double q) {
    if (v.empty()) return 0;
    std::sort(v.begin(), v.end());
    return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1))];
}
/// Microseconds between the server's write of the first event and our stamp of it.
std::vector<double> stamp_errors(const bench::flood_server& server, const figures& f) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < f.requests.size(); ++i)
        if (f.requests[i].first_ns > 0 && server.log(i).first_ns > 0)
            errors.push_back(static_cast<double>(f.requests[i].first_ns - server.log(i).first_ns) * 1e-3);
    return errors;
}
std::vector<double> lateness(const figures& f) {
    std::vector<double> late;
    for (const stamps& s : f.requests) late.push_back(static_cast<double>(s.sent_ns - s.scheduled_ns) * 1e-3);
    return late;
}

}  // namespace

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
    bench::allow_many_files();
    bench::pin(0);
    struct setting {
        const char* name;
        bench::flood_options server;
        int tokens;
        std::vector<std::size_t> streams;
    };
    const std::vector<setting> settings = {
        {"flood", {}, 2000, {1, 64, 1000}},
        {"flood, 1 a write", {.events_per_write = 1}, 2000, {1, 64, 1000}},
        {"paced, 20 ms", {.interval = std::chrono::milliseconds(20)}, 100, {1, 128, 1000}},
    };
    std::printf("CPU time an event, times the raw reader's\n\n"
                "| server | streams | raw us/event | epoll | asio's waits | asio's reads, 4 KiB | 16 KiB | 64 KiB |\n"
                "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    double held[5] = {};
    for (const setting& s : settings)
        for (const std::size_t n : s.streams) {
            const bench::flood_server server(s.server);
            const load what{s.tokens, n, seconds, {}};
            double raw_cpu = 0, raw_events = 0;
            const auto raw = [&] {
                const bench::raw_figures r = bench::raw_reader(server, s.tokens).closed(n, what.seconds);
                raw_cpu += r.cpu;
                raw_events += r.events;
            };
            raw();
            const figures all[] = {by_epoll().run(server.port(), what), by_asio_wait().run(server.port(), what),
                                   by_asio(4096).run(server.port(), what), by_asio(16384).run(server.port(), what),
                                   by_asio(65536).run(server.port(), what)};
            raw();
            const double floor = 1e6 * raw_cpu / raw_events;
            std::printf("| %-16s | %4zu | %7.3f |", s.name, n, floor);
            for (std::size_t i = 0; i < 5; ++i) {
                std::printf(" %5.2f |", all[i].cpu_us() / floor);
                if (n == 1000) held[i] = all[i].kib_a_stream;
            }
            std::printf("\n");
            std::fflush(stdout);
        }
    std::printf("| KiB of heap a stream | 1000 | |");
    for (const double kib : held) std::printf(" %.1f |", kib);
    std::printf("\n");

    std::printf("\n| 1000 requests/s, answers of 8 events | late p50, us | p99 | stamp of the first event after its write p50, us | p99 |\n"
                "| --- | ---: | ---: | ---: | ---: |\n");
    std::vector<long long> at;
    for (int i = 0; i < static_cast<int>(1000 * seconds); ++i) at.push_back(10000000 + i * 1000000ll);
    const auto told = [&](const char* who, const bench::flood_server& server, const figures& f) {
        const auto late = lateness(f), off = stamp_errors(server, f);
        std::printf("| %s | %.1f | %.1f | %.1f | %.1f |\n", who, quantile(late, 0.5), quantile(late, 0.99), quantile(off, 0.5), quantile(off, 0.99));
        std::fflush(stdout);
    };
    for (int turn = 0; turn < 2; ++turn) {
        const load open{8, 64, seconds, at};
        { const bench::flood_server server({.interval = std::chrono::milliseconds(2)}); told("epoll", server, by_epoll().run(server.port(), open)); }
        { const bench::flood_server server({.interval = std::chrono::milliseconds(2)}); told("asio's waits", server, by_asio_wait().run(server.port(), open)); }
        { const bench::flood_server server({.interval = std::chrono::milliseconds(2)}); told("asio's reads", server, by_asio(16384).run(server.port(), open)); }
    }
}
