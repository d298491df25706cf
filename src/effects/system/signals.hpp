// signals, and what else a program has once
#pragma once

#include <atomic>
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <iterator>  // size

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
/// Does nothing, so that writing to a pipe that nobody reads fails instead of ending the program:
/// what `./gates | head` cuts off still has its reports and its exit code. Programs that are
/// started do not inherit a handler, as they would SIG_IGN.
inline void outlive_reader_of_output(int) {}

/// Handles SIGINT, SIGTERM and SIGPIPE for as long as it lives.
class interrupt_guard {
public:
    interrupt_guard() {
        for (std::size_t i = 0; i < std::size(signals); ++i) {
            struct sigaction action{};
            action.sa_handler = signals[i] == SIGPIPE ? outlive_reader_of_output : on_interrupt;
            sigemptyset(&action.sa_mask);
            ::sigaction(signals[i], &action, &before_[i]);
        }
    }
    ~interrupt_guard() {
        for (std::size_t i = 0; i < std::size(signals); ++i)
            ::sigaction(signals[i], &before_[i], nullptr);
    }
    interrupt_guard(const interrupt_guard&) = delete;
    interrupt_guard& operator=(const interrupt_guard&) = delete;

private:
    static constexpr int signals[] = {SIGINT, SIGTERM, SIGPIPE};
    struct sigaction before_[std::size(signals)] = {};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
