// when a thread of the client did not run, as it knows itself
// No clock: whoever has it says what time it is, with readings that are taken anyway.
#pragma once

#include "core/base/time_interval.hpp"
#include "core/measured/client_stalls.hpp"

#include <algorithm>  // max, min

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Told of the steps of one thread, finds the stretches in which it stalled. A thread that sleeps
/// and is woken by its sockets does not stall; one that comes later from its sleep than it asked
/// for did, since an unknown time before that: it may have slept through whatever came in. So it
/// sleeps no longer than for a tick.
class alertness {
public:
    static constexpr long long tick_ns = 5000000;
    static constexpr long long noticed_ns = 1000000;  // shorter ones are every machine's
    static constexpr long long busy_ns = 10000000;    // a turn so long is no use to its sockets

    void begin(long long now) { last_ns_ = slept_ns_ = woke_ns_ = ticked_ns_ = now; }
    /// The turn is over: it will sleep.
    void on_sleep(long long now) {
        on_step(now);
        if (now - woke_ns_ > busy_ns) hold_up({woke_ns_, now, now - woke_ns_, 0}, 1);
        if (turn_ >= clear_in_turn_ + turns_for_all_) close(now);
        slept_ns_ = now;
    }
    /// It was to sleep until `due_ns`, if nothing happened. Each socket that something came in at
    /// has its turn within `turns_for_all`; 0: it is told of all of them now.
    void on_wake(long long now, long long due_ns, long long turns_for_all) {
        ++turn_;
        turns_for_all_ = turns_for_all;
        woke_ns_ = last_ns_ = now;
        if (now - std::max(due_ns, slept_ns_) > noticed_ns)
            hold_up({slept_ns_, now, now - slept_ns_, now - slept_ns_}, 0);
    }
    /// It is doing something, one thing after the other.
    void on_step(long long now) {
        if (last_ns_ == 0) return;  // the load has not begun
        const long long took = now - last_ns_;
        if (took > noticed_ns) hold_up({last_ns_, now, took, took}, 1);
        last_ns_ = now;
    }
    /// At every tick. `waited_ns`: how long it has waited for a core so far, as the system counts
    /// it; below 0: not known. What it waited for is the sum of what may be many short waits.
    void on_tick(long long now, long long waited_ns) {
        const long long waited = waited_ns - waited_ns_;
        const bool known = waited_ns >= 0 && waited_ns_ >= 0;
        // Most of it may have been seen already, as a step or a sleep that took too long.
        if (known && waited - recent_lost_ns_ - open_.lost_ns > noticed_ns)
            found_.add({ticked_ns_, now, std::min(waited, now - ticked_ns_),
                        std::min(waited, now - ticked_ns_)});
        waited_ns_ = waited_ns;
        ticked_ns_ = now;
        recent_lost_ns_ = 0;
    }
    /// The load is over.
    void end(long long now) {
        on_sleep(now);
        close(now);
    }

    /// What came in while it stalled is not all read yet.
    bool is_behind() const { return open_.to_ns != 0; }
    /// How long it may not have run since then, at most.
    long long lost_since(long long time_ns) const {
        const long long now_lost =
            is_behind() ? std::min(open_.lost_ns, open_.to_ns - std::max(open_.from_ns, time_ns))
                        : 0;
        return lost_in(found_.all(), time_interval::between(time_ns, last_ns_)) +
               std::max(now_lost, 0ll);
    }
    const client_stalls& found() const { return found_.all(); }

private:
    /// `turns`: so many of them later, what it was told of had come in afterwards.
    void hold_up(const client_stall& s, long long turns) {
        if (!is_behind()) open_ = s;
        else {
            open_.to_ns = s.to_ns;
            open_.lost_ns += s.lost_ns;
        }
        clear_in_turn_ = turn_ + turns;
    }

    void close(long long now) {
        if (!is_behind()) return;
        open_.to_ns = now;
        open_.most_delay_ns = std::max(open_.most_delay_ns, now - open_.from_ns);
        found_.add(open_);
        recent_lost_ns_ += open_.lost_ns;
        open_ = {};
    }

    stall_log found_{};
    client_stall open_{};   // to_ns is 0 where there is none
    long long turn_ = 0, clear_in_turn_ = 0, turns_for_all_ = 0;
    long long last_ns_ = 0, slept_ns_ = 0, woke_ns_ = 0, ticked_ns_ = 0;
    long long waited_ns_ = -1;
    long long recent_lost_ns_ = 0;  // of what was found since the last tick
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
