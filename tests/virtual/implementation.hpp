// The inside of virtual/execution_environment.hpp, for a file that carries llmbench's implementation.
#pragma once

#include "virtual/execution_environment.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace virtual_world {
using namespace llmbench::detail;

/// Its addresses are ports of 127.0.0.1, and one that nobody has refuses.
class small_world final : public virtual_environment {
public:
    llmbench::detail::vector<address> resolved(const http_url& u) const override {
        if (u.host != "127.0.0.1" && u.host != "localhost") return virtual_environment::resolved(u);
        sockaddr_in in{};
        in.sin_family = AF_INET;
        in.sin_port = htons(static_cast<std::uint16_t>(std::stoi(u.port)));
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address a;
        std::memcpy(&a.storage, &in, sizeof in);
        a.size = sizeof in;
        return {a};
    }
    virtual_listener* listener_at(const address& a) override {
        sockaddr_in in{};
        std::memcpy(&in, &a.storage, sizeof in);
        virtual_listener* const l =
            in.sin_port == 0 ? nullptr : virtual_environment::listener_at(a);
        return !l ? &nobody_ : ignoring_.contains(l) ? nullptr : l;
    }
    /// The port at which it listens.
    int port_of(virtual_listener& l) { return port_at(listen(l)); }
    static int port_at(const std::string& url) { return std::stoi(url.substr(url.rfind('-') + 1)); }
    void ignore(virtual_listener& l) { ignoring_.insert(&l); }
    /// Stays as long as this world: what happens in it may still speak of it.
    void keep(std::shared_ptr<void> what) { kept_.push_back(std::move(what)); }

    static small_world& around() { return dynamic_cast<small_world&>(*current_environment); }

private:
    struct nobody final : virtual_listener {
        std::shared_ptr<virtual_peer> accepted(const shared_link&) override { return nullptr; }
        void restart(double) override {}
    };
    long long arrival_ns(long long last_ns, std::size_t) override {
        return std::max(virtual_environment::now_ns() + way_ns, last_ns);
    }

    nobody nobody_{};
    std::set<const virtual_listener*> ignoring_{};
    std::vector<std::shared_ptr<void>> kept_{};
};

struct execution_environment::inside {
    small_world of{};
    inside_environment here{&of};
};
execution_environment::execution_environment() : inside_(std::make_unique<inside>()) {}
execution_environment::~execution_environment() = default;

long long now_ns() { return llmbench::detail::now_ns(); }
double unix_s() { return llmbench::detail::unix_s(); }
void after(long long ns, std::function<void()> what) {
    small_world::around().at(now_ns() + ns, std::move(what));
}
void pass(double seconds) { sleep_s(seconds); }

/// The end of a connection that was accepted.
class accepted_end final : public end,
                           public virtual_peer,
                           public std::enable_shared_from_this<accepted_end> {
public:
    explicit accepted_end(const shared_link& l) : link_(l) {}
    std::shared_ptr<talk> whose{};

    void send(std::string_view bytes) override {
        if (closes_ || is_over_) return;
        unsent_ += bytes;
        on_room();
    }
    void close() override {
        closes_ = true;
        on_room();
    }
    void reset() override { finish(ECONNRESET); }

    void on_bytes(std::string_view bytes) override {
        const auto keeps_this = shared_from_this();
        if (!closes_ && !is_over_) whose->on_bytes(bytes);
    }
    void on_end() override {
        if (!std::exchange(is_over_, true)) whose->on_end();
    }
    void on_room() override {
        const shared_link l = link_.lock();
        while (l && !is_over_ && !unsent_.empty()) {
            const long long n = small_world::around().send_to_client(l, unsent_);
            if (n == 0) return;
            if (n < 0) return finish(0);
            unsent_.erase(0, static_cast<std::size_t>(n));
        }
        if (closes_) finish(0);
    }
    bool is_kept_idle() const override { return false; }

private:
    void finish(int error) {
        if (std::exchange(is_over_, true)) return;
        if (const shared_link l = link_.lock()) small_world::around().end_from_server(l, error);
    }

    const std::weak_ptr<virtual_link> link_;
    std::string unsent_{};
    bool closes_ = false, is_over_ = false;
};

/// The end of one that was asked for.
class asking_end final : public end, public std::enable_shared_from_this<asking_end> {
public:
    explicit asking_end(std::shared_ptr<talk> whose) : whose_(std::move(whose)) {}
    void connect(int port) {
        link_->on_change = [known = weak_from_this()] {
            if (const auto still = known.lock()) still->take();
        };
        http_url u;
        u.host = "127.0.0.1";
        u.port = std::to_string(port);
        small_world& w = small_world::around();
        virtual_listener* const server = w.listener_at(w.resolved(u).front());
        if (!server) return;
        w.after_all(link_->to_server, 0, [l = link_, server, &w] {
            if (!l->is_let_go) l->server = server->accepted(l);
            if (!l->server) w.end_from_server(l, ECONNREFUSED);
        });
    }
    ~asking_end() override { close(); }
    void send(std::string_view bytes) override {
        if (!link_->is_let_go) small_world::around().send_to_server(link_, bytes);
    }
    void close() override {
        if (!link_->is_let_go && current_environment) small_world::around().end_from_client(link_);
    }
    void reset() override { close(); }

private:
    void take() {
        const auto keeps_this = shared_from_this();
        const std::string bytes = std::exchange(link_->inbox, {});
        if (!bytes.empty()) {
            const bool was_full = link_->to_client.under_way >= virtual_link::window;
            link_->to_client.under_way -= bytes.size();
            if (was_full)
                small_world::around().after_all(link_->to_server, 0, [l = link_] {
                    if (l->server) l->server->on_room();
                });
            whose_->on_bytes(bytes);
        }
        if (link_->has_ended && !std::exchange(is_told_, true)) whose_->on_end();
    }

    const shared_link link_ = std::make_shared<virtual_link>();
    const std::shared_ptr<talk> whose_;
    bool is_told_ = false;
};
std::shared_ptr<end> connected_to(int port, std::shared_ptr<talk> by) {
    const auto e = std::make_shared<asking_end>(std::move(by));
    e->connect(port);
    return e;
}

struct port::inside final : virtual_listener {
    talks with{};
    int number = 0;
    std::vector<std::weak_ptr<accepted_end>> ends{};

    std::shared_ptr<virtual_peer> accepted(const shared_link& l) override {
        if (!with) return nullptr;
        const auto e = std::make_shared<accepted_end>(l);
        e->whose = with(e);
        ends.push_back(e);
        return e;
    }
    void restart(double) override {}
};
port::port(talks with) : inside_(std::make_shared<inside>()) {
    inside_->with = std::move(with);
    inside_->number = small_world::around().port_of(*inside_);
    small_world::around().keep(inside_);
}
port::~port() {
    refuse();
    for (const auto& known : inside_->ends)
        if (const auto e = known.lock()) e->close();
}
int port::number() const { return inside_->number; }
void port::refuse() { inside_->with = nullptr; }
void port::ignore() { small_world::around().ignore(*inside_); }

}  // namespace virtual_world
