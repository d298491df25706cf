// simulated() as a target
#pragma once

#include "api/target.hpp"
#include "core/base/extension.hpp"
#include "core/base/shared.hpp"
#include "effects/system/clock.hpp"
#include "effects/targets/extension_server.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/simulated/host.hpp"
#include "extensions/simulated/service.hpp"
#include "extensions/simulated/virtual_environment.hpp"

#include <functional>  // what is to be done at a time
#include <memory>  // shared_ptr, unique_ptr, weak_ptr, ...
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

class virtual_session : public simulated_session, public virtual_peer {
public:
    virtual_session(virtual_environment& w, const shared_link& l, const request_handler& handler)
        : simulated_session(handler), environment_(w), link_(l) {}

    void on_bytes(std::string_view bytes) override { take(bytes); }
    void on_end() override { gone(); }
    void on_room() override { write_more(); }
    bool is_kept_idle() const override { return is_kept(); }

protected:
    long long give(std::string_view bytes) override {
        const shared_link l = link_.lock();
        return l ? environment_.send_to_client(l, bytes) : -1;
    }
    void end(int error) override {
        if (const shared_link l = link_.lock()) environment_.end_from_server(l, error);
    }

private:
    virtual_environment& environment_;
    const std::weak_ptr<virtual_link> link_;
};

/// The simulated server at a virtual address.
class virtual_server : public virtual_listener {
public:
    /// Must stay until its environment has no more events.
    virtual_server(virtual_environment& w, const engine& e, service_observer* told = nullptr)
        : environment_(w), engine_(e), told_(told), service_(new_service()), url_(w.listen(*this)) {}
    virtual ~virtual_server() = default;

    const std::string& url() const { return url_; }
    std::shared_ptr<virtual_peer> accepted(const shared_link& l) override {
        if (is_away_) return nullptr;
        const auto s = session_on(l, service_->handler());
        service_->add(s);
        return s;
    }
    void restart(double away_s) override {
        if (is_away_) return;
        service_->go_away();
        alive_ = new_shared<int>();
        environment_.at(environment_.now_ns() + ns_of(away_s),
                        [this] { service_ = new_service(); });
    }

protected:
    virtual std::shared_ptr<virtual_session> session_on(const shared_link& l,
                                                        const request_handler& handler) {
        return new_shared<virtual_session>(environment_, l, handler);
    }

private:
    std::unique_ptr<simulated_service> new_service() {
        is_away_ = false;
        return std::make_unique<simulated_service>(
            engine_,
            service_carrier{
                [this, life = std::weak_ptr(alive_)](long long ns, std::function<void()> what) {
                    environment_.at_server(ns, [life, what = std::move(what)] {
                        if (!life.expired()) what();
                    });
                },
                [] {}, [this] { is_away_ = true; }},
            told_);
    }
    virtual_environment& environment_;
    const engine engine_;
    service_observer* const told_;
    std::shared_ptr<int> alive_ = new_shared<int>();
    bool is_away_ = false;
    std::unique_ptr<simulated_service> service_;
    const std::string url_;
};

/// In the gate's virtual environment if there is one, else in its own thread.
class simulated_engine final : public extension_server {
public:
    explicit simulated_engine(const engine& e) : settings_(e) { check_engine(e); }
    std::string start() override {
        if (auto* const w = dynamic_cast<virtual_environment*>(current_environment)) {
            sleep_s(0.1);  // no two begin at once
            server_ = std::make_unique<virtual_server>(*w, settings_);
            return server_->url();
        }
        host_ = std::make_unique<simulated_host>(settings_);
        return host_->url();
    }
    std::string description() const override { return engine_text(settings_); }

private:
    const engine settings_;
    std::unique_ptr<simulated_host> host_{};
    std::unique_ptr<virtual_server> server_{};
};

inline std::unique_ptr<extension_server> new_simulated_engine(const box& settings) {
    return std::make_unique<simulated_engine>(*settings.get<engine>());
}
inline std::unique_ptr<execution_environment> new_virtual_environment() {
    return std::make_unique<virtual_environment>();
}
inline constinit const extension simulated_servers{.name = "simulated",
                                                   .server = new_simulated_engine,
                                                   .new_environment = new_virtual_environment};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
