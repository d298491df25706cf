// signals, and other global state
#pragma once

#include "core/base/vector.hpp"

#include <array>
#include <atomic>
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <iterator>  // size

#include <signal.h>  // sigaction, SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGXFSZ
#include <unistd.h>  // _exit

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Set by the first ending signal: the load ends, and its results are reported.
inline std::atomic<bool> stop_asked{false};
/// Number of servers started so far: each has its own log in the report directory.
inline std::atomic<int> servers_started{0};
/// Number of gate executions so far: no two send the same words.
inline std::atomic<std::uint64_t> gates_executed{0};

/// A second Ctrl-C, or a third SIGTERM, ends us at once, with all that we started. A second SIGTERM
/// may be the first from another parent: Jenkins tells every process of a job, and a script its
/// gates. A signal after another kind is the next step of a gentle end (GitHub sends SIGINT, then
/// SIGTERM); those of terminals and limits repeat by themselves.
inline void on_interrupt(int signal) {
    static std::atomic<int> interrupts{0}, terminations{0};
    const bool is_again = signal == SIGINT    ? interrupts.fetch_add(1) >= 1
                          : signal == SIGTERM ? terminations.fetch_add(1) >= 2
                                              : false;
    if (stop_asked.exchange(true) && is_again) ::_exit(128 + signal);
}
/// Does nothing, so that a write to a closed pipe or a full file fails instead of ending the
/// program: `./gates | head` still has its reports and its exit code. Started programs do not
/// inherit a handler, as they would SIG_IGN.
inline void outlive_refused_write(int) {}

inline bool is_ignored(int signal) {
    struct sigaction now{};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}
/// Signals that end the load, then those of failed writes.
inline constexpr int handled_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGPIPE, SIGXFSZ};
inline constexpr std::size_t number_of_signals = std::size(handled_signals);
inline bool ends_load(int signal) { return signal != SIGPIPE && signal != SIGXFSZ; }
/// Signals ignored at the start, as by nohup or in a script's background: read before others, such
/// as doctest, set handlers.
inline constinit std::array<bool, number_of_signals> ignored_from_the_start{};
[[gnu::constructor(101)]] static void note_ignored_signals() {
    for (std::size_t i = 0; i < number_of_signals; ++i)
        ignored_from_the_start[i] = is_ignored(handled_signals[i]);
}

/// Handles ending signals and failed writes while it lives. After a request to end it stays until
/// the program ends: a further signal must not stop the reports.
class interrupt_guard : not_copied {
public:
    interrupt_guard() {
        for (std::size_t i = 0; i < number_of_signals; ++i) {
            const int signal = handled_signals[i];
            struct sigaction action{};
            if (!ends_load(signal)) action.sa_handler = outlive_refused_write;
            else if (ignored_from_the_start[i] || is_ignored(signal)) action.sa_handler = SIG_IGN;
            else action.sa_handler = on_interrupt;
            sigemptyset(&action.sa_mask);
            ::sigaction(signal, &action, &before_[i]);
        }
    }
    ~interrupt_guard() {
        if (stop_asked.load()) return;
        for (std::size_t i = 0; i < number_of_signals; ++i)
            ::sigaction(handled_signals[i], &before_[i], nullptr);
    }

private:
    struct sigaction before_[number_of_signals] = {};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
