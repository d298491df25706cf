// client stalls: when the client did not run
#pragma once

#include "core/base/time_interval.hpp"

#include <algorithm>  // lower_bound, max, min, nth_element, sort
#include <cstddef>  // size_t, ptrdiff_t
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A client stall: time in which a thread could not read its sockets: it was stopped, waited for a
/// core, or was busy with others for long. It ends when all that had come in meanwhile was read.
/// What is stamped at t inside came in at most min(t - from_ns, most_delay_ns) before that.
struct client_stall {
    long long from_ns = 0, to_ns = 0;
    long long most_delay_ns = 0;
    long long lost_ns = 0;  // of it, the time that the thread may not have run at all
};
/// In order of time, and none reaches into the next one.
using client_stalls = std::vector<client_stall>;

/// The first one that ends after a time.
inline client_stalls::const_iterator first_after(const client_stalls& all, long long time_ns) {
    return std::lower_bound(all.begin(), all.end(), time_ns,
                            [](const client_stall& s, long long t) { return s.to_ns <= t; });
}
/// How much too late something may have been stamped, at most.
inline long long possible_delay(const client_stalls& all, long long stamp_ns) {
    const auto at = first_after(all, stamp_ns - 1);  // its end is of it: clocks have ticks
    if (at == all.end() || at->from_ns >= stamp_ns) return 0;
    return std::min(stamp_ns - at->from_ns, at->most_delay_ns);
}
/// The same of an event whose stamp is known by gaps, and so to half a microsecond: it may have
/// been the last one of a stretch.
inline long long possible_delay_by_gaps(const client_stalls& all, long long stamp_ns) {
    return possible_delay(all, stamp_ns - 500);
}
/// How long the client may not have run in some time, at most.
inline long long lost_in(const client_stalls& all, const time_interval& t) {
    long long lost = 0;
    for (auto s = first_after(all, t.from_ns()); s != all.end() && s->from_ns < t.to_ns(); ++s)
        lost += std::min(s->lost_ns,
                         std::min(s->to_ns, t.to_ns()) - std::max(s->from_ns, t.from_ns()));
    return lost;
}
inline bool is_stalled_in(const client_stalls& all, const time_interval& t) {
    const auto at = first_after(all, t.from_ns());
    return at != all.end() && at->from_ns < t.to_ns();
}
/// The longest delay of anything stamped in that time, at most.
inline long long most_delay_in(const client_stalls& all, const time_interval& t) {
    long long most = 0;
    for (auto s = first_after(all, t.from_ns()); s != all.end() && s->from_ns < t.to_ns(); ++s)
        most = std::max(most, s->most_delay_ns);
    return most;
}

/// The stretches of one thread, in the memory of a few hundred: where there are more, the nearest
/// neighbours become one, which says less and nothing wrong.
class stall_log {
public:
    static constexpr std::size_t most = 512;

    /// One that reaches into those before it becomes one with them: both may have stalled the same
    /// bytes.
    void add(client_stall s) {
        while (!all_.empty() && s.from_ns < all_.back().to_ns) {
            const client_stall& o = all_.back();
            s = {std::min(s.from_ns, o.from_ns), std::max(s.to_ns, o.to_ns),
                 s.most_delay_ns + o.most_delay_ns, s.lost_ns + o.lost_ns};
            all_.pop_back();
        }
        all_.push_back(s);
        if (all_.size() > most) join_neighbours(all_);
    }
    const client_stalls& all() const { return all_; }

    /// What threads beside one another saw, as if all of them had seen it.
    static client_stalls together(const client_stalls& a, const client_stalls& b) {
        client_stalls both = a, out;
        both.insert(both.end(), b.begin(), b.end());
        std::sort(both.begin(), both.end(), [](const auto& x, const auto& y) {
            return x.from_ns != y.from_ns ? x.from_ns < y.from_ns : x.to_ns < y.to_ns;
        });
        for (const client_stall& s : both) {
            if (out.empty() || s.from_ns >= out.back().to_ns) { out.push_back(s); continue; }
            client_stall& o = out.back();   // they lost the same time, each for itself
            o.to_ns = std::max(o.to_ns, s.to_ns);
            o.most_delay_ns = std::max(o.most_delay_ns, s.most_delay_ns);
            o.lost_ns = std::max(o.lost_ns, s.lost_ns);
        }
        while (out.size() > most) join_neighbours(out);
        return out;
    }

private:
    static void join_neighbours(client_stalls& all) {
        std::vector<long long> between;
        for (std::size_t i = 1; i < all.size(); ++i)
            between.push_back(all[i].from_ns - all[i - 1].to_ns);
        const auto middle = between.begin() + static_cast<std::ptrdiff_t>(between.size() / 2);
        std::nth_element(between.begin(), middle, between.end());
        client_stalls joined;
        for (const client_stall& s : all) {
            if (joined.empty() || s.from_ns - joined.back().to_ns > *middle) {
                joined.push_back(s);
                continue;
            }
            client_stall& o = joined.back();
            o.to_ns = s.to_ns;
            o.most_delay_ns = std::max(o.most_delay_ns, s.most_delay_ns);
            o.lost_ns += s.lost_ns;
        }
        all = std::move(joined);
    }

    client_stalls all_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
