// signals, and what else a program has once
#pragma once

#include <atomic>
#include <cstdint>  // uint64_t

#include <signal.h>  // SIGKILL, sigaction, SIGINT, SIGTERM
#include <sys/types.h>  // pid_t
#include <unistd.h>  // _exit

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Set by the first SIGINT or SIGTERM of a run: the load ends, what is there is reported.
inline std::atomic<bool> stop_asked{false};
/// Process groups to end when a second signal ends us at once.
inline std::atomic<pid_t> groups_to_end[16];
inline void add_group_to_end(pid_t group) {
    for (auto& slot : groups_to_end) {
        pid_t none = 0;
        if (slot.compare_exchange_strong(none, group)) break;
    }
}
inline void remove_group_to_end(pid_t group) {
    for (auto& slot : groups_to_end) {
        pid_t ours = group;
        slot.compare_exchange_strong(ours, 0);
    }
}
/// Servers that were started so far: each has a log of its own in the report directory.
inline std::atomic<int> servers_started{0};
/// Executions of gates that began so far: no two of them send the same words.
inline std::atomic<std::uint64_t> gates_executed{0};

inline void on_interrupt(int signal) {
    if (stop_asked.exchange(true)) {
        for (auto& g : groups_to_end)
            if (const pid_t pid = g.load(); pid > 0) ::kill(-pid, SIGKILL);
        ::_exit(128 + signal);
    }
}
/// Handles SIGINT and SIGTERM for as long as it lives.
class interrupt_guard {
public:
    interrupt_guard() {
        struct sigaction action{};
        action.sa_handler = on_interrupt;
        sigemptyset(&action.sa_mask);
        ::sigaction(SIGINT, &action, &old_int_);
        ::sigaction(SIGTERM, &action, &old_term_);
    }
    ~interrupt_guard() {
        ::sigaction(SIGINT, &old_int_, nullptr);
        ::sigaction(SIGTERM, &old_term_, nullptr);
    }
    interrupt_guard(const interrupt_guard&) = delete;
    interrupt_guard& operator=(const interrupt_guard&) = delete;

private:
    struct sigaction old_int_{}, old_term_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
