// when a thread of the client did not run, and the kernel's times on its clock
// Without a clock: the caller passes times that it reads anyway.
#pragma once

#include <algorithm>  // max, min
#include <cstdlib>  // llabs
#include <deque>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Adds up the time that a thread lost: it woke up later than asked, since an unknown time before,
/// or a step of its work took long. Where the kernel has no stamps it sleeps for at most a tick.
class alertness {
public:
    static constexpr long long tick_ns = 5000000;
    static constexpr long long noticed_ns = 1000000;  // shorter delays happen on every machine
    static constexpr long long busy_ns = 10000000;    // a turn this long delays its sockets

    void begin(long long now) { begun_ns_ = last_ns_ = slept_ns_ = woke_ns_ = now; }
    /// The turn ends, the thread will sleep.
    void on_sleep(long long now) {
        on_step(now);
        const long long busy = now - woke_ns_ - lost_in_turn_ns_;
        if (now - woke_ns_ > busy_ns && busy > 0) lose(busy, 1);
        slept_ns_ = now;
    }
    /// The thread was to sleep until `due_ns` without events. Each socket with input has its turn
    /// within `full_turns`; 0: all are reported now.
    void on_wake(long long now, long long due_ns, long long full_turns) {
        ++turn_;
        full_turns_ = full_turns;
        woke_ns_ = last_ns_ = now;
        lost_in_turn_ns_ = 0;
        if (now - std::max(due_ns, slept_ns_) > noticed_ns) lose(now - slept_ns_, 0);
        lost_in_turn_ns_ = 0;
    }
    /// A step begins; the previous one ends.
    void on_step(long long now) {
        if (last_ns_ == 0) return;  // the load has not begun
        const long long took = now - last_ns_;
        last_ns_ = now;
        if (took > noticed_ns) lose(took, 1);
    }

    /// Whether bytes that arrived during a delay are unread.
    bool is_behind() const { return turn_ <= behind_until_; }
    /// Returns the most that it lost since then.
    long long lost_since(long long time_ns) const {
        long long lost = 0;
        for (auto l = recent_.rbegin(); l != recent_.rend() && l->to_ns > time_ns; ++l)
            lost += std::min(l->lost_ns, l->to_ns - time_ns);
        return lost;
    }
    /// As a fraction of the time since it began.
    double lost_fraction() const {
        return last_ns_ > begun_ns_ ? static_cast<double>(lost_ns_) /
                                          static_cast<double>(last_ns_ - begun_ns_)
                                    : 0;
    }

private:
    /// `turns`: how many turns later all bytes read have arrived afterwards.
    void lose(long long ns, long long turns) {
        lost_ns_ += ns;
        lost_in_turn_ns_ += ns;
        behind_until_ = turn_ + turns + full_turns_;
        recent_.push_back({last_ns_, ns});
        if (recent_.size() > 512) recent_.pop_front();  // old ones no longer matter
    }

    struct loss {
        long long to_ns = 0, lost_ns = 0;
    };
    std::deque<loss> recent_{};
    long long turn_ = 0, behind_until_ = -1, full_turns_ = 0;
    long long begun_ns_ = 0, last_ns_ = 0, slept_ns_ = 0, woke_ns_ = 0;
    long long lost_ns_ = 0, lost_in_turn_ns_ = 0;
};

/// When a thread looks at its limits: at the next point of a grid, or at the one after it where the
/// next one shows nothing, because nothing passes before `due_ns`.
inline long long point_to_look_at(long long next_ns, long long step_ns, long long now_ns,
                                  long long due_ns) {
    return next_ns <= now_ns || due_ns <= next_ns ? next_ns : next_ns + step_ns;
}

/// The kernel stamps input by the time of day. Both clocks run alike, also when slewed. Only a step
/// of the time of day shifts them, and then input before and after the step looks the same.
class kernel_clock {
public:
    static constexpr long long noticed_ns = 5000;
    static constexpr long long early_ns = 1000000;  // stamps within it are as good as the reads
    static constexpr long long wrong_ns = 20000000;  // no other clock is so near by chance

    /// The time of day, with the clock read before and after it.
    void on_readings(long long before_ns, long long day_ns, long long after_ns) {
        const long long width = after_ns - before_ns;
        const long long ahead = day_ns - before_ns - width / 2;
        const bool is_narrow = width <= noticed_ns;  // else the thread was interrupted
        if (is_known_ && std::llabs(ahead - ahead_ns_) > noticed_ns + width / 2) {
            stepped_ns_ = before_ns;
            is_known_ = is_proven_ = false;
        }
        if (!is_narrow) return;
        ahead_ns_ = ahead;
        is_known_ = true;
    }
    /// The time of input read until now; 0 if unknown: the read counts. `since_ns`: it could not be
    /// read before. Input with an older stamp waited for a lost segment, or its stamp is wrong. A
    /// stamp shortly before its read proves that the kernel stamps by this clock.
    long long time_of(long long stamp_ns, long long last_read_ns, long long since_ns,
                      long long now_ns) {
        if (stamp_ns == 0 || !is_known_ || last_read_ns < stepped_ns_) return 0;
        const long long came = stamp_ns - ahead_ns_;
        if (came > now_ns + noticed_ns || came + early_ns < since_ns) return 0;
        is_proven_ = is_proven_ || now_ns - came < wrong_ns;
        return is_proven_ ? std::min(std::max(came, since_ns), now_ns) : 0;
    }

private:
    long long ahead_ns_ = 0, stepped_ns_ = 0;
    bool is_known_ = false, is_proven_ = false;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
