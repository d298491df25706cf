// gates in virtual time
#pragma once

#include "api/scenario.hpp"
#include "api/target.hpp"
#include "api/verbs.hpp"
#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "core/planning/side_tasks.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/virtual_network.hpp"
#include "effects/net/virtual_world.hpp"
#include "effects/gates/session.hpp"

#include <algorithm>  // all_of
#include <cstdint>  // uint64_t
#include <optional>
#include <random>  // what no other run has sent
#include <string_view>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline bool is_made_up(const any_target& t) {
    return t.what().get<simulated_server>() != nullptr;
}
/// All its servers are simulated, so that its time can be. Commands are of the
/// machine, and reach no server that is made up.
inline bool is_made_up(const scenario& s) {
    const bool is_profiled = s.on_fail && !(*s.on_fail).start.empty();
    return !is_profiled && !has_commands(s.beside) && is_made_up(s.target) &&
           (!s.baseline.is_live() || s.baseline.is_same_server() ||
            s.baseline.is_asked_otherwise() || is_made_up(s.baseline.live()));
}
inline bool is_made_up(const list<setting>& settings) {
    return std::all_of(settings.begin(), settings.end(),
                       [](const setting& s) { return is_made_up(s.target); });
}

/// A world for as long as this lives, from when it is entered.
class virtual_time {
public:
    virtual_time() = default;
    virtual_time(const virtual_time&) = delete;
    virtual_time& operator=(const virtual_time&) = delete;
    ~virtual_time() {
        if (world_) session::of_this_program().spend_virtual_time(world_->now_ns() - began_ns_);
    }
    void enter() {
        world_.emplace();
        inside_.emplace(&*world_);
        began_ns_ = now_ns();
    }

private:
    long long began_ns_ = 0;
    std::optional<virtual_world> world_{};
    std::optional<inside_world> inside_{};
};

/// Another one for every execution of a gate, in this program and in all others. In virtual time
/// its servers have seen at most other gates, so it is the same every time that this one runs.
inline std::uint64_t fresh_nonce(std::uint64_t seed, std::string_view gate) {
    if (current_world) {
        fnv1a hash;
        hash.add(gate.data(), gate.size());
        return mixed(seed + mixed(hash.value()));
    }
    std::random_device entropy;
    return mixed((static_cast<std::uint64_t>(entropy()) << 32 | entropy()) ^
                 mixed(static_cast<std::uint64_t>(now_ns()) + ++gates_executed));
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
