// Which network library the client should stand on: the same load read by the raw reader, by our
// exchange over epoll, and by asio in three ways, in turns in one run; one thread each, a server
// process on another core. All but the raw one feed each read to an answer_reader with its stamp, so
// what differs is how they wait, read and keep time.
//   network_library [SECONDS]      of each measurement, default 3
#include "llmbench.hpp"
#include "core/base/text.hpp"
#include "core/answers/answer_reader.hpp"
#include "effects/net/exchange.hpp"
#include "effects/net/machine_network.hpp"
#include "effects/net/network.hpp"

#include "flood_server.hpp"

#include <asio/basic_stream_socket.hpp>
#include <asio/basic_waitable_timer.hpp>
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include "support/memory.hpp"

using namespace llmbench;
using llmbench::detail::vector;
using bench::now_ns;

namespace {

// Of a single executor, as the network by asio has them.
using tcp_executor = asio::io_context::executor_type;
using tcp_socket = asio::basic_stream_socket<asio::ip::tcp, tcp_executor>;
using tcp_timer = asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, tcp_executor>;

struct stamps {
    long long scheduled_ns = 0, sent_ns = 0, first_ns = 0, last_ns = 0;
};
struct figures {
    double seconds = 0, cpu = 0, events = 0;
    vector<stamps> requests{};
    double kib_a_stream = 0;
    double cpu_us() const { return 1e6 * cpu / events; }
};
std::string request_of(std::size_t id, int tokens) {
    const std::string body = "{\"model\":\"flood\",\"messages\":[],\"stream\":true,\"max_tokens\":" + std::to_string(tokens) + "}";
    return "POST /v1/chat/completions HTTP/1.1\r\nHost: flood\r\nX-Request-Id: net-" + std::to_string(id) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
/// A stream, whoever reads it.
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
    vector<long long> at{};  // open loop where there are any
};

/// All that the three have in common: whose turn it is to ask, and what came of it.
class client {
public:
    virtual ~client() = default;
    figures run(int port, const load& what) {
        what_ = &what;
        const std::size_t before = memory::held();
        for (std::size_t i = 0; i < what.streams; ++i) idle_.push_back(&open(port));
        done_.kib_a_stream = static_cast<double>(memory::held() - before) / 1024 / static_cast<double>(what.streams);
        const double cpu = bench::cpu_seconds();
        began_ns_ = now_ns();
        end_ns_ = began_ns_ + static_cast<long long>(what.seconds * 1e9);
        if (what.at.empty())
            while (!idle_.empty()) ask(began_ns_);
        go();
        done_.seconds = static_cast<double>(now_ns() - began_ns_) * 1e-9;
        done_.cpu = bench::cpu_seconds() - cpu;
        return std::move(done_);
    }

protected:
    /// A stream that is connected.
    virtual stream_state& open(int port) = 0;
    virtual void send(stream_state& s) = 0;
    /// Until nothing is left to send or to read.
    virtual void go() = 0;

    bool is_over() const { return busy_ == 0 && next_ == what_->at.size(); }
    /// When the next request of an open loop is due, 0: none is.
    long long next_due() const { return next_ < what_->at.size() ? began_ns_ + what_->at[next_] : 0; }
    void send_due() {
        for (; next_due() != 0 && next_due() <= now_ns() && !idle_.empty(); ++next_) ask(next_due());
    }
    /// Takes what a read brought; true where that was the end of the answer.
    bool take(stream_state& s, std::string_view bytes, long long at_ns) {
        s.answer.feed(bytes, at_ns);
        if (!s.answer.finished()) return false;
        record r;
        s.answer.timeline().write_to(r);
        done_.requests[s.id].first_ns = r.first_token_ns;
        done_.requests[s.id].last_ns = r.last_token_ns;
        done_.events += s.answer.timeline().events();
        --busy_;
        idle_.push_back(&s);
        if (what_->at.empty() && at_ns < end_ns_) ask(at_ns);
        return true;
    }

private:
    void ask(long long scheduled) {
        stream_state& s = *idle_.back();
        idle_.pop_back();
        ++busy_;
        s.answer.reset();
        s.id = done_.requests.size();
        s.request = request_of(s.id, what_->tokens);
        done_.requests.push_back({scheduled, now_ns(), 0, 0});
        send(s);
    }
    const load* what_ = nullptr;
    vector<stream_state*> idle_{};
    std::size_t busy_ = 0, next_ = 0;
    long long began_ns_ = 0, end_ns_ = 0;
    figures done_{};
};

/// Ours: epoll, told of as long as there are bytes, one buffer for all.
class by_epoll final : public client {
    struct stream final : stream_state, detail::socket_user {
        explicit stream(by_epoll& o) : owner(o) {}
        void on_readable() override {
            const detail::arrival a = wire.read(owner.room_);
            if (a.what == detail::arrival::kind::bytes) owner.take(*this, a.bytes, a.at_ns);
        }
        void on_writable() override { open = true; }
        by_epoll& owner;
        detail::exchange wire{};
        bool open = false;
    };
    stream_state& open(int port) override {
        streams_.push_back(std::make_unique<stream>(*this));
        stream& s = *streams_.back();
        s.wire.connect(detail::resolved(detail::parsed_url("http://127.0.0.1:" + std::to_string(port), "url"))[0], network_, s);
        while (!s.open) turn(now_ns() + 1000000000);
        return s;
    }
    void send(stream_state& s) override {
        stream& to = static_cast<stream&>(s);
        to.wire.send(s.request);
        to.wire.flush();
    }
    void go() override {
        while (!is_over()) {
            turn(next_due() != 0 ? next_due() : now_ns() + 20000000);
            send_due();
        }
    }
    void turn(long long until_ns) {
        network_.wait(until_ns);
        network_.each();
    }
    detail::machine_network network_{};
    detail::read_room room_{vector<char>(256 * 1024)};
    vector<std::unique_ptr<stream>> streams_{};
};

/// asio: its sockets, and its timer for an open loop.
class asio_client : public client {
protected:
    struct stream final : stream_state {
        stream(asio::io_context& c, std::size_t room) : socket(c), buffer(room) {}
        tcp_socket socket;
        std::vector<char> buffer;
    };
    stream& connected(int port, std::size_t room) {
        streams_.push_back(std::make_unique<stream>(context_, room));
        stream& s = *streams_.back();
        s.socket.connect({asio::ip::address_v4::loopback(), static_cast<unsigned short>(port)});
        s.socket.set_option(asio::ip::tcp::no_delay(true));
        s.socket.non_blocking(true);
        return s;
    }
    void send(stream_state& s) override {
        asio::error_code error;
        static_cast<stream&>(s).socket.write_some(asio::buffer(s.request), error);
    }
    void wait_for_next() {
        if (next_due() == 0) return;
        timer_.expires_at(detail::time_point_of(next_due()));
        timer_.async_wait([this](const asio::error_code&) {
            send_due();
            wait_for_next();
        });
    }
    asio::io_context context_{1};

private:
    tcp_timer timer_{context_};
    vector<std::unique_ptr<stream>> streams_{};
};

/// async_read_some, a buffer for each connection; its reactor is edge-triggered, and tries a read
/// before it waits.
class by_asio final : public asio_client {
public:
    explicit by_asio(std::size_t room) : room_(room) {}

private:
    stream_state& open(int port) override { return connected(port, room_); }
    void send(stream_state& s) override {
        asio_client::send(s);
        read(static_cast<stream&>(s));
    }
    void go() override {
        wait_for_next();
        context_.run();
    }
    void read(stream& s) {
        s.socket.async_read_some(asio::buffer(s.buffer), [this, &s](const asio::error_code& error, std::size_t n) {
            const long long now = now_ns();
            if (!error && !take(s, {s.buffer.data(), n}, now)) read(s);
        });
    }
    const std::size_t room_;
};

/// async_wait(wait_read), one buffer for all. What is ready is run until nothing is, so that it is
/// known when the thread goes to sleep.
class by_asio_wait final : public asio_client {
    stream_state& open(int port) override {
        stream& s = connected(port, 0);
        wait(s);
        return s;
    }
    void go() override {
        wait_for_next();
        while (!is_over() && context_.run_one())
            for (int i = 1; i < 256 && context_.poll_one(); ++i) {}
    }
    void wait(stream& s) {
        s.socket.async_wait(tcp_socket::wait_read, [this, &s](const asio::error_code& error) {
            if (error) return;
            read(s);
            wait(s);
        });
    }
    void read(stream& s) {
        asio::error_code error;
        const std::size_t n = s.socket.read_some(asio::buffer(buffer_), error);
        const long long now = now_ns();
        if (!error) take(s, {buffer_.data(), n}, now);
    }
    std::vector<char> buffer_ = std::vector<char>(256 * 1024);
};

double quantile(vector<double> v, double q) {
    if (v.empty()) return 0;
    std::sort(v.begin(), v.end());
    return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1))];
}
/// Microseconds between the server's write of the first event and our stamp of it.
vector<double> stamp_errors(const bench::flood_server& server, const figures& f) {
    vector<double> errors;
    for (std::size_t i = 0; i < f.requests.size(); ++i)
        if (f.requests[i].first_ns > 0 && server.log(i).first_ns > 0)
            errors.push_back(static_cast<double>(f.requests[i].first_ns - server.log(i).first_ns) * 1e-3);
    return errors;
}
vector<double> lateness(const figures& f) {
    vector<double> late;
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
        vector<std::size_t> streams;
    };
    const vector<setting> settings = {
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
    vector<long long> at;
    for (int i = 0; i < static_cast<int>(1000 * seconds); ++i) at.push_back(10000000 + i * 1000000ll);
    const auto reported = [&](const char* who, const bench::flood_server& server, const figures& f) {
        const auto late = lateness(f), off = stamp_errors(server, f);
        std::printf("| %s | %.1f | %.1f | %.1f | %.1f |\n", who, quantile(late, 0.5), quantile(late, 0.99), quantile(off, 0.5), quantile(off, 0.99));
        std::fflush(stdout);
    };
    for (int turn = 0; turn < 2; ++turn) {
        const load open{8, 64, seconds, at};
        { const bench::flood_server server({.interval = std::chrono::milliseconds(2)}); reported("epoll", server, by_epoll().run(server.port(), open)); }
        { const bench::flood_server server({.interval = std::chrono::milliseconds(2)}); reported("asio's waits", server, by_asio_wait().run(server.port(), open)); }
        { const bench::flood_server server({.interval = std::chrono::milliseconds(2)}); reported("asio's reads", server, by_asio(16384).run(server.port(), open)); }
    }
    return 0;
}
