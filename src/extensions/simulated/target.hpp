// simulated() as a target
#pragma once

#include "api/target.hpp"
#include "effects/system/clock.hpp"
#include "effects/targets/extension_server.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/core/check_engine.hpp"
#include "extensions/simulated/core/engine_text.hpp"
#include "extensions/simulated/virtual_network.hpp"
#include "extensions/simulated/virtual_environment.hpp"
#include "extensions/simulated/host.hpp"
#include "extensions/simulated/virtual_server.hpp"

#include <memory>  // make_unique, unique_ptr
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// In the gate's virtual environment if there is one, else in its own thread.
class simulated_engine final : public extension_server {
public:
    explicit simulated_engine(const engine& e) : settings_(e) { check_engine(e); }
    std::string start() override {
        if (auto* const execution_environment =
                dynamic_cast<virtual_environment*>(current_environment)) {
            sleep_s(0.1);  // no two begin at once
            made_up_ = std::make_unique<virtual_server>(*execution_environment, settings_);
            return made_up_->url();
        }
        host_ = std::make_unique<simulated_host>(settings_);
        return host_->url();
    }
    std::string description() const override { return engine_text(settings_); }

private:
    const engine settings_;
    std::unique_ptr<simulated_host> host_{};
    std::unique_ptr<virtual_server> made_up_{};
};

class simulated_extension final : public target_extension {
public:
    std::unique_ptr<extension_server> server(const box& settings) const override {
        return std::make_unique<simulated_engine>(*settings.get<engine>());
    }
    std::unique_ptr<execution_environment> new_environment() const override {
        return std::make_unique<virtual_environment>();
    }
};
inline constinit const simulated_extension simulated_targets{};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
