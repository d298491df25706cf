// gates take turns
#pragma once

#include "core/base/text.hpp"

#include <mutex>  // unique_lock

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::mutex one_gate_at_a_time;
inline thread_local bool has_a_gate = false;

/// Two gates at once would disturb each other. Gates of other threads wait; one inside a gate of
/// its own thread, as in a doctest listener, would wait for ever.
class gate_turn {
public:
    gate_turn() : turn_(one_gate_at_a_time, std::defer_lock) {
        if (has_a_gate)
            refuse({"a gate within a gate of the same thread: it would wait for itself"});
        turn_.lock();
        has_a_gate = true;
    }
    ~gate_turn() { has_a_gate = false; }
    gate_turn(const gate_turn&) = delete;
    gate_turn& operator=(const gate_turn&) = delete;

private:
    std::unique_lock<std::mutex> turn_;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
