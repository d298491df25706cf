// which repeat is measured next, and which ones count
#pragma once

#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/judging/measurements.hpp"

#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Positions of repeats, pairs or rounds of a comparison; a probe has none (-1). A repeat that is
/// set aside is measured again in its position, because order and requests depend on it.
class repeat_positions {
public:
    /// At most `most` replacements for repeats that are set aside.
    explicit repeat_positions(int most) : most_(most) {}

    /// The next position after `count` repeats that count.
    int next(int count) const { return is_again() ? again_ : count; }
    bool is_again() const { return again_ >= 0; }
    /// Returns the number of a repeat that begins, among all measured, those set aside included.
    int begin() { return measured_++; }
    bool has_another(int count) const { return measured_ - count < most_; }
    /// A repeat has ended: it gets its position, or is dropped if not `whole`.
    void end(const std::vector<measurements*>& all, int slot, int number, bool whole) {
        for (measurements* seen : all)
            for (repeat_list* variant : {&seen->candidate, &seen->baseline}) {
                if (variant->empty() || variant->back().index != number) continue;
                if (!whole) variant->pop_back();
                else if (slot >= 0) variant->move_last_to(static_cast<std::size_t>(slot));
            }
        again_ = -1;
    }
    /// Sets the repeats of this position aside in all lists: they are compared with each other.
    void set_aside(const std::vector<measurements*>& all, std::size_t slot,
                   const std::string& why) {
        for (measurements* seen : all)
            for (repeat_list* variant : {&seen->candidate, &seen->baseline}) {
                if (slot >= variant->size()) continue;
                seen->set_aside.push_back({(*variant)[slot].variant, (*variant)[slot].index, why});
                variant->erase(slot);
            }
        again_ = static_cast<int>(slot);
    }
    /// The next position follows from the repeats that are left.
    void leave_empty() { again_ = -1; }

private:
    const int most_;
    int measured_ = 0;
    int again_ = -1;  // the position to measure again
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
