// A made-up world in which what may go wrong does, as often as it was told to.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

namespace virtual_world {

using namespace llmbench;
using namespace llmbench::detail;
using llmbench::detail::vector;

/// What a made-up network, server and client are in for. Rates are of the occasions that there are;
/// as it stands nothing takes any time and nothing goes wrong.
struct hardships {
    std::uint64_t seed = 1;
    // of each direction
    double latency_s = 0, jitter_s = 0;
    double bytes_a_second = 0;  // 0: as many as come
    double cut = 0;             // a write is parted somewhere
    double bytewise = 0;        // a write comes byte by byte
    // of connecting
    double refused = 0, lost = 0, queue_full = 0, no_descriptor = 0;
    int dead_addresses = 0;  // of a server's name, before the one that answers
    // of what is open: at each write of the server, and of a request on a kept connection
    double reset = 0, half_closed = 0, closed_idle = 0;
    // of the server, a second: it does nothing for so long, or begins anew after it
    double stalls = 0, stall_s = 0, restarts = 0, away_s = 0;
    // of the client, each time it is woken and each time it reads
    double pauses = 0, pause_s = 0;
    bool pauses_are_reported = true;  // by the kernel's account
    bool stamps = false;              // the kernel says when bytes come
};
/// What came of them.
struct hardships_met {
    long long refused = 0, lost = 0, queue_full = 0, no_descriptor = 0;
    long long reset = 0, half_closed = 0, closed_idle = 0, stalls = 0, restarts = 0, pauses = 0;
    long long longest_way_ns = 0;  // of bytes, from one end to the other
    long long paused_ns = 0;       // in which the client did not run
};

class hard_world final : public virtual_environment {
public:
    /// From now on.
    void suffer(const hardships& h) {
        in_for_ = h;
        chance_ = generator(h.seed, 1);
        pauses_ = generator(h.seed, 2);
        after_a_while(h.stalls, [this] {
            ++met.stalls;
            stalled_until_ns_ = now_ns() + ns_of(in_for_.stall_s * chance_.exponential());
        });
        after_a_while(h.restarts, [this] {
            for (auto* const server : servers()) server->restart(in_for_.away_s);
            met.restarts += static_cast<long long>(servers().size());
        });
    }
    hardships_met met{};

    long long waited_ns() const override { return in_for_.pauses_are_reported ? met.paused_ns : -1; }
    bool stamps_arrivals() const override { return in_for_.stamps; }
    void client_runs() override {
        if (in_for_.pauses <= 0 || pauses_.uniform() >= in_for_.pauses) return;
        const long long lost = ns_of(in_for_.pause_s * pauses_.exponential());
        ++met.pauses;
        met.paused_ns += lost;
        sleep_until(now_ns() + lost);
    }

    // ---- addresses

    /// The last of a server's is its own, at which it answers.
    vector<address> resolved(const http_url& u) const override {
        vector<address> all;
        for (const address& own : virtual_environment::resolved(u))
            for (int i = in_for_.dead_addresses; i >= 0; --i) all.push_back(beside(own, i));
        return all;
    }
    virtual_listener* listener_at(const address& a) override {
        if (ip_of(a).sin_addr.s_addr != htonl(INADDR_LOOPBACK)) return nullptr;
        virtual_listener* const server = virtual_environment::listener_at(a);
        return server && comes(in_for_.lost, met.lost) ? nullptr : server;
    }
    int error_of_connecting() override {
        return comes(in_for_.no_descriptor, met.no_descriptor) ? EMFILE
               : comes(in_for_.queue_full, met.queue_full)     ? EAGAIN
                                                               : 0;
    }
    bool refuses() override { return comes(in_for_.refused, met.refused); }

    // ---- bytes

    /// Afterwards, where the server is stalled then.
    void at_server(long long ns, std::function<void()> what) override {
        if (in_for_.stalls <= 0) return at(ns, std::move(what));
        at(ns, [this, what = std::move(what)]() mutable {
            if (now_ns() < stalled_until_ns_) at(stalled_until_ns_, std::move(what));
            else what();
        });
    }
    long long send_to_client(const shared_link& l, std::string_view bytes) override {
        if (l->is_let_go || l->is_broken) return -1;
        if (comes(in_for_.reset, met.reset)) {
            end_from_server(l, ECONNRESET);
            return -1;
        }
        const long long sent = virtual_environment::send_to_client(l, bytes);
        if (comes(in_for_.half_closed, met.half_closed)) end_from_server(l, 0);
        return sent;
    }

private:
    std::size_t piece_of(std::size_t bytes) override {
        if (bytes > 1 && happens(in_for_.bytewise)) return 1;
        return bytes > 1 && happens(in_for_.cut) ? 1 + chance_.below(bytes - 1) : bytes;
    }
    long long arrival_ns(long long last_ns, std::size_t bytes) override {
        const double jitter = in_for_.jitter_s > 0 ? in_for_.jitter_s * chance_.exponential() : 0;
        const double sending_s =
            in_for_.bytes_a_second > 0 ? static_cast<double>(bytes) / in_for_.bytes_a_second : 0;
        const long long at_ns =
            std::max(now_ns() + ns_of(in_for_.latency_s + jitter), last_ns) + ns_of(sending_s);
        met.longest_way_ns = std::max(met.longest_way_ns, at_ns - now_ns());
        return at_ns;
    }
    bool is_closed_instead(const shared_link& l) override {
        if (!l->server->is_kept_idle() || !comes(in_for_.closed_idle, met.closed_idle))
            return false;
        end_from_server(l, happens(0.5) ? ECONNRESET : 0);
        return true;
    }

    bool happens(double rate) { return rate > 0 && chance_.uniform() < rate; }
    bool comes(double rate, long long& times) {
        const bool does = happens(rate);
        times += does;
        return does;
    }
    /// So many times a second, now and then.
    void after_a_while(double rate, std::function<void()> what) {
        if (rate <= 0) return;
        at(now_ns() + ns_of(chance_.exponential() / rate), [this, rate, what = std::move(what)] {
            what();
            after_a_while(rate, what);
        });
    }
    static sockaddr_in ip_of(const address& a) {
        sockaddr_in in{};
        std::memcpy(&in, &a.storage, sizeof in);
        return in;
    }
    static address beside(address a, int place) {
        sockaddr_in in = ip_of(a);
        in.sin_addr.s_addr = htonl(ntohl(in.sin_addr.s_addr) + static_cast<std::uint32_t>(place));
        std::memcpy(&a.storage, &in, sizeof in);
        return a;
    }

    hardships in_for_{};
    long long stalled_until_ns_ = 0;
    generator chance_{1, 1}, pauses_{1, 2};
};

}  // namespace virtual_world
