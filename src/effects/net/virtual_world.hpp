// a made-up machine: its time and its network
// Everything in it happens in one thread, in the order of its times, and all that is left to chance
// is drawn from one seed: the same world is the same to the byte every time.
#pragma once

#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/wire/url.hpp"
#include "effects/system/clock.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"

#include <algorithm>  // max, push_heap, pop_heap
#include <cerrno>  // ECONNRESET
#include <cstdint>  // uint64_t
#include <cstring>  // memcpy
#include <functional>  // what happens
#include <memory>  // shared_ptr, unique_ptr
#include <stdexcept>  // logic_error, runtime_error
#include <string>
#include <string_view>
#include <utility>  // exchange, forward, move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

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
    bool pauses_are_told = true;  // by the kernel's account
};
/// What came of them.
struct hardships_met {
    long long refused = 0, lost = 0, queue_full = 0, no_descriptor = 0;
    long long reset = 0, half_closed = 0, closed_idle = 0, stalls = 0, restarts = 0, pauses = 0;
    long long longest_way_ns = 0;  // of bytes, from one end to the other
    long long paused_ns = 0;       // in which the client did not run
};

class virtual_world;

/// The server's end of a connection.
class virtual_peer {
public:
    virtual void on_bytes(std::string_view bytes) = 0;
    virtual void on_end() = 0;
    /// It takes bytes again.
    virtual void on_room() = 0;
    /// A request on it has been answered, and none is being answered now.
    virtual bool is_kept_idle() const = 0;
    virtual ~virtual_peer() = default;
};

/// A connection between a client and a server of the same world: two streams of bytes in order.
struct virtual_link {
    struct direction {
        long long last_ns = 0;      // when the last of what is on its way arrives
        std::size_t under_way = 0;  // bytes, those included that nobody has read
    };
    direction to_server{}, to_client{};
    std::shared_ptr<virtual_peer> server{};  // null: not accepted yet, or gone
    // the client's end
    std::string inbox{};
    bool has_ended = false, is_let_go = false;
    int error = 0;  // of the end, or of connecting
    bool is_writable = false, is_broken = false;
    std::function<void()> on_change{};  // there is something to tell of

    static constexpr std::size_t window = 1 << 18;
};
using shared_link = std::shared_ptr<virtual_link>;

/// What stands at an address.
class virtual_listener {
public:
    /// Null: it takes none now.
    virtual std::shared_ptr<virtual_peer> accepted(const shared_link& l) = 0;
    /// It goes away, and is back after a while, knowing nothing.
    virtual void restart(double away_s) = 0;

protected:
    ~virtual_listener() = default;
};

class virtual_world final : public world {
public:
    virtual_world() = default;
    virtual_world(const virtual_world&) = delete;
    virtual_world& operator=(const virtual_world&) = delete;

    /// From now on.
    void suffer(const hardships& h) {
        in_for_ = h;
        chance_ = generator(h.seed, 1);
        pauses_ = generator(h.seed, 2);
        after_a_while(h.stalls, [this] {
            ++met.stalls;
            stalled_until_ns_ = now_ns_ + ns_of(in_for_.stall_s * chance_.exponential());
        });
        after_a_while(h.restarts, [this] {
            for (auto* const server : servers_) server->restart(in_for_.away_s);
            met.restarts += static_cast<long long>(servers_.size());
        });
    }
    const hardships& in_for() const { return in_for_; }

    // ---- time

    long long now_ns() const override { return now_ns_; }
    double unix_s() const override { return static_cast<double>(now_ns_) * 1e-9 + 1e9; }
    long long waited_ns() const override { return in_for_.pauses_are_told ? met.paused_ns : -1; }
    void sleep_until(long long at_ns) override { pass(at_ns, [] { return false; }); }
    void at(long long ns, std::function<void()> what) override {
        to_come_.push_back({std::max(ns, now_ns_), ++number_, std::move(what)});
        std::push_heap(to_come_.begin(), to_come_.end(), later);
    }
    /// Lets happen what happens until then, or until the end of the moment in which it is enough.
    template <class Enough>
    void pass(long long until_ns, Enough&& enough) {
        bool ends = false;
        while (!to_come_.empty() && to_come_.front().at_ns <= (ends ? now_ns_ : until_ns)) {
            std::pop_heap(to_come_.begin(), to_come_.end(), later);
            const event next = std::move(to_come_.back());
            to_come_.pop_back();
            move_to(next.at_ns);
            next.what();
            ends = ends || enough();
        }
        if (!ends) move_to(until_ns);
    }
    /// Whoever turns without an end while no time passes would do so for ever.
    void note_turn() {
        if (++turns_ > most_turns_at_a_time)
            throw std::logic_error("a million turns in one moment of virtual time");
    }
    /// The client may not run for a while, with all else going on.
    void client_runs() {
        if (in_for_.pauses <= 0 || pauses_.uniform() >= in_for_.pauses) return;
        const long long lost = ns_of(in_for_.pause_s * pauses_.exponential());
        ++met.pauses;
        met.paused_ns += lost;
        sleep_until(now_ns_ + lost);
    }

    // ---- addresses

    /// Takes connections from now on; returns the URL.
    std::string listen(virtual_listener& server) {
        servers_.push_back(&server);
        return prefix + std::to_string(servers_.size());
    }
    std::vector<address> resolved(const http_url& u) const override {
        std::vector<address> all;
        for (std::size_t n = 1; n <= servers_.size(); ++n)
            if ("http://" + u.host == prefix + std::to_string(n))
                for (int i = in_for_.dead_addresses; i >= 0; --i)
                    all.push_back(address_of(n, i));
        if (all.empty())
            throw std::runtime_error("the host \"" + printable(u.host) +
                                     "\" is not in this virtual world");
        return all;
    }
    std::unique_ptr<network> new_network() override;
    /// Null where nobody ever answers.
    virtual_listener* listener_at(const address& a) const {
        sockaddr_in in{};
        std::memcpy(&in, &a.storage, sizeof in);
        const std::size_t number = ntohs(in.sin_port);
        const bool is_dead = ntohl(in.sin_addr.s_addr) != first_address;
        return is_dead || number > servers_.size() ? nullptr : servers_[number - 1];
    }

    // ---- bytes

    bool happens(double rate) { return rate > 0 && chance_.uniform() < rate; }
    double uniform() { return chance_.uniform(); }
    long long way_ns() {
        const double jitter = in_for_.jitter_s > 0 ? in_for_.jitter_s * chance_.exponential() : 0;
        return ns_of(in_for_.latency_s + jitter);
    }
    /// What the server does at a time, unless it is stalled then: afterwards.
    void at_server(long long ns, std::function<void()> what) {
        if (in_for_.stalls <= 0) return at(ns, std::move(what));
        at(ns, [this, what = std::move(what)]() mutable {
            if (now_ns_ < stalled_until_ns_) at(stalled_until_ns_, std::move(what));
            else what();
        });
    }
    /// `arrive` gets the bytes, parted as it happens.
    template <class Arrive>
    void carry(virtual_link::direction& d, std::string_view bytes, const Arrive& arrive) {
        d.under_way += bytes.size();
        while (!bytes.empty()) {
            std::size_t n = bytes.size();
            if (n > 1 && happens(in_for_.bytewise)) n = 1;
            else if (n > 1 && happens(in_for_.cut)) n = 1 + chance_.below(n - 1);
            after_all(d, n, [piece = std::string(bytes.substr(0, n)), arrive] { arrive(piece); });
            bytes.remove_prefix(n);
        }
    }
    /// Behind everything that is on its way.
    template <class What>
    void after_all(virtual_link::direction& d, std::size_t bytes, What&& what) {
        const double sending_s =
            in_for_.bytes_a_second > 0 ? static_cast<double>(bytes) / in_for_.bytes_a_second : 0;
        d.last_ns = std::max(now_ns_ + way_ns(), d.last_ns) + ns_of(sending_s);
        met.longest_way_ns = std::max(met.longest_way_ns, d.last_ns - now_ns_);
        at(d.last_ns, std::forward<What>(what));
    }
    /// The server's side: the bytes that are taken now, below 0 where nobody will.
    long long send_to_client(const shared_link& l, std::string_view bytes) {
        if (l->is_let_go || l->is_broken) return -1;
        if (happens(in_for_.reset)) {
            ++met.reset;
            end_from_server(l, ECONNRESET);
            return -1;
        }
        const std::size_t room =
            virtual_link::window - std::min(virtual_link::window, l->to_client.under_way);
        bytes = bytes.substr(0, room);
        carry(l->to_client, bytes, [l](const std::string& piece) {
            if (l->is_let_go || l->has_ended) return;
            l->inbox += piece;
            l->on_change();
        });
        if (happens(in_for_.half_closed)) {
            ++met.half_closed;
            end_from_server(l, 0);
        }
        return static_cast<long long>(bytes.size());
    }
    /// `error`: 0 or that of a reset.
    void end_from_server(const shared_link& l, int error) {
        if (l->is_broken) return;
        l->is_broken = true;
        after_all(l->to_client, 0, [l, error] {
            if (l->is_let_go || l->has_ended) return;
            l->has_ended = true;
            l->error = error;
            l->on_change();
        });
        at(now_ns_, [l] { l->server.reset(); });  // not while it is what calls
    }
    void send_to_server(const shared_link& l, std::string_view bytes) {
        carry(l->to_server, bytes, [this, l](const std::string& piece) {
            at_server(now_ns_, [this, l, piece] {
                l->to_server.under_way -= piece.size();
                if (!l->server) return;
                if (l->server->is_kept_idle() && happens(in_for_.closed_idle)) {
                    ++met.closed_idle;
                    return end_from_server(l, happens(0.5) ? ECONNRESET : 0);
                }
                l->server->on_bytes(piece);
                if (!l->is_let_go) l->on_change();
            });
        });
    }
    void end_from_client(const shared_link& l) {
        l->is_let_go = true;
        after_all(l->to_server, 0, [l] {
            if (const auto peer = std::exchange(l->server, nullptr)) peer->on_end();
        });
    }
    hardships_met met{};

private:
    static constexpr long long most_turns_at_a_time = 1000000;
    static constexpr std::uint32_t first_address = 0x0A000001;
    static constexpr const char* prefix = "http://simulated-";

    struct event {
        long long at_ns = 0, number = 0;
        std::function<void()> what{};
    };
    static bool later(const event& a, const event& b) {
        return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.number > b.number;
    }
    /// So many times a second, now and then.
    void after_a_while(double rate, std::function<void()> what) {
        if (rate <= 0) return;
        at(now_ns_ + ns_of(chance_.exponential() / rate), [this, rate, what = std::move(what)] {
            what();
            after_a_while(rate, what);
        });
    }
    void move_to(long long ns) {
        if (ns <= now_ns_) return;
        now_ns_ = ns;
        turns_ = 0;
    }
    /// The `which`-th of a server's; the last of them, 0, answers.
    static address address_of(std::size_t server, int which) {
        sockaddr_in in{};
        in.sin_family = AF_INET;
        in.sin_port = htons(static_cast<std::uint16_t>(server));
        in.sin_addr.s_addr = htonl(first_address + static_cast<std::uint32_t>(which));
        address a;
        std::memcpy(&a.storage, &in, sizeof in);
        a.size = sizeof in;
        return a;
    }

    long long now_ns_ = 1000000000000, number_ = 0, turns_ = 0;
    long long stalled_until_ns_ = 0;
    std::vector<event> to_come_{};  // a heap
    hardships in_for_{};
    std::vector<virtual_listener*> servers_{};
    generator chance_{1, 1}, pauses_{1, 2};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
