// which repeat is measured next, and which are evidence
#pragma once

#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/judging/evidence.hpp"

#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The slots of repeats, of pairs, or of a comparison's rounds; a probe has none (-1). What is set
/// aside in one is measured again in the same: who goes first, and what is sent, hang on it.
class repeat_slots {
public:
    /// There are `most` others at most for those that are set aside.
    explicit repeat_slots(int most) : most_(most) {}

    /// Where so many are evidence.
    int next(int count) const { return is_again() ? again_ : count; }
    bool is_again() const { return again_ >= 0; }
    /// The number of one that begins: of all that are measured, those set aside included.
    int begin() { return measured_++; }
    bool has_another(int count) const { return measured_ - count < most_; }
    /// That one has ended, and stands last in what was seen: it goes to its slot, or is no evidence
    /// where it is not `whole`.
    void end(const std::vector<evidence*>& all, int slot, int number, bool whole) {
        for (evidence* seen : all)
            for (repeat_list* arm : {&seen->candidate, &seen->baseline}) {
                if (arm->empty() || arm->back().index != number) continue;
                if (!whole) arm->pop_back();
                else if (slot >= 0) arm->move_last_to(static_cast<std::size_t>(slot));
            }
        again_ = -1;
    }
    /// Another is measured in this slot, on all of these: they are held against each other.
    void set_aside(const std::vector<evidence*>& all, std::size_t slot, const std::string& why) {
        for (evidence* seen : all)
            for (repeat_list* arm : {&seen->candidate, &seen->baseline}) {
                if (slot >= arm->size()) continue;
                seen->set_aside.push_back({(*arm)[slot].arm, (*arm)[slot].index, why});
                arm->erase(slot);
            }
        again_ = static_cast<int>(slot);
    }
    /// What comes next follows from those that are left.
    void leave_empty() { again_ = -1; }

private:
    const int most_;
    int measured_ = 0;
    int again_ = -1;  // the slot of the one to measure again
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
