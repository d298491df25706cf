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
#include "effects/targets/extension_server.hpp"
#include "effects/gates/rehearsed.hpp"
#include "effects/gates/session.hpp"

#include <cstdint>  // uint64_t
#include <memory>  // unique_ptr
#include <optional>
#include <random>  // what no other run has sent
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Null if the target has no extension.
inline const target_extension* extension_of(const any_target& t) {
    const auto* e = t.what().get<extension_target>();
    return e ? e->by : nullptr;
}
/// Returns a virtual environment if all servers belong to an extension that has one, else null.
/// Commands run on the real machine and cannot reach a simulated server.
inline std::unique_ptr<execution_environment> new_environment_for(const scenario& s) {
    const target_extension* const by = extension_of(s.target);
    const bool is_profiled = s.on_fail && !(*s.on_fail).start.empty();
    const bool is_one = !s.baseline.is_live() || s.baseline.is_same_server() ||
                        s.baseline.is_asked_otherwise() || extension_of(s.baseline.live()) == by;
    return by && is_one && !is_profiled && !has_commands(s.beside) ? by->new_environment()
                                                                   : nullptr;
}
inline std::unique_ptr<execution_environment> new_environment_for(const rehearsal& r) {
    return extension_of(r.stand_in(0))->new_environment();
}

/// A virtual environment from its entry until the end of this object.
class virtual_time {
public:
    virtual_time() = default;
    virtual_time(const virtual_time&) = delete;
    virtual_time& operator=(const virtual_time&) = delete;
    ~virtual_time() {
        if (environment_)
            session::of_this_program().spend_virtual_time(environment_->now_ns() - began_ns_);
    }
    void enter(std::unique_ptr<execution_environment> w) {
        environment_ = std::move(w);
        inside_.emplace(environment_.get());
        began_ns_ = now_ns();
    }

private:
    long long began_ns_ = 0;
    std::unique_ptr<execution_environment> environment_{};
    std::optional<inside_environment> inside_{};
};

/// Differs for every execution of a gate, in this program and in others. In virtual time it is the
/// same for every run of the program, because its servers see only this program's gates.
inline std::uint64_t fresh_nonce(std::uint64_t seed, std::string_view gate) {
    if (current_environment) {
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
