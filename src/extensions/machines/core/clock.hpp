// measurements on another machine's clock
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_fields.hpp"

#include <algorithm>  // max, min
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// An answer between these two times had this Date.
inline void note_date(clock_ahead& c, double asked_s, double answered_s, double reported_s) {
    c.low_s = std::max(c.low_s, asked_s - reported_s - 2);
    c.high_s = std::min(c.high_s, answered_s - reported_s);
}
/// The least difference between two machines' clocks. Several servers with clocks of their own
/// leave it unknown.
inline double least_between(const clock_ahead& a, const clock_ahead& b) {
    if (!a.is_reported() || !b.is_reported()) return 0;
    return std::max({0.0, a.low_s - b.high_s, b.low_s - a.high_s});
}

/// Moves all times from their clock to another one.
class clock_mover : public field_visitor {
public:
    explicit clock_mover(long long by_ns) : by_ns_(by_ns) {}
    void time(const field&, long long& ns, const whole_range&) override {
        if (ns != 0) ns += by_ns_;
    }
    void time_after(const field& f, long long& ns, long long) override { time(f, ns, time_range); }
    void times_after(const field&, vector<long long>& ns, long long,
                     const time_groups& g) override {
        for (std::size_t i = 0; i < ns.size(); ++i)
            if (i % g.size < g.times) ns[i] += by_ns_;
    }

private:
    const long long by_ns_;
};

inline void move_clock(record& r, long long by_ns) {
    clock_mover mover(by_ns);
    std::string gate;
    fields_of(mover, r, gate);
}
/// Moves all times of a repeat.
inline void move_clock(repeat_data& d, long long by_ns) {
    for (record& r : d.records) move_clock(r, by_ns);
    clock_mover mover(by_ns);
    odd_counts odd;
    cross_check checked;
    vector<named_number> statistics;
    fields_of(mover, d, odd, checked, statistics);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
