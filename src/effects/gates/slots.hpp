// which slots follow one another, and which of them count
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/random.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/measurements.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan_text.hpp"
#include "effects/gates/slot.hpp"

#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Positions of repeats, pairs or rounds of a comparison; a probe has none. A repeat that is set
/// aside is measured again in its position, because order and requests depend on it.
class repeat_positions {
public:
    explicit repeat_positions(int max_replacements) : max_replacements_(max_replacements) {}

    /// The next position after `count` repeats that count.
    int next(int count) const { return is_again() ? again_ : count; }
    bool is_again() const { return again_ >= 0; }
    /// Returns the number of a repeat that begins, among all measured, those set aside included.
    int begin() { return measured_++; }
    bool has_another(int count) const { return measured_ - count < max_replacements_; }
    static constexpr int of_probe = -1, dropped = -2;
    /// A repeat has ended: it gets its position.
    void end(const vector<measurements*>& all, int position, int number) {
        for (measurements* seen : all)
            for (repeat_list* variant : {&seen->candidate, &seen->baseline}) {
                if (variant->empty() || variant->back().index != number) continue;
                if (position == dropped) variant->pop_back();
                else if (position >= 0) variant->move_last_to(static_cast<std::size_t>(position));
            }
        again_ = -1;
    }
    /// Sets the repeats of this position aside in all lists: they are compared with each other.
    void set_aside(const vector<measurements*>& all, std::size_t position,
                   const std::string& why) {
        for (measurements* seen : all)
            for (repeat_list* variant : {&seen->candidate, &seen->baseline}) {
                if (position >= variant->size()) continue;
                const repeat_data& d = (*variant)[position];
                seen->set_aside.push_back({d.variant, d.index, why});
                variant->erase(position);
            }
        again_ = static_cast<int>(position);
    }
    /// The next position follows from the repeats that are left.
    void leave_empty() { again_ = -1; }

private:
    const int max_replacements_;
    int measured_ = 0;
    int again_ = -1;  // the position to measure again
};

/// Blocks of two pairs, ABBA or BAAB by the seed: a drift of the machine then affects both variants
/// alike.
inline bool baseline_goes_first(std::uint64_t seed, int pair) {
    const bool flipped = mixed(seed + 7919 * static_cast<std::uint64_t>(pair / 2)) & 1;
    return flipped != (pair % 2 == 1);
}
/// The slots of a repeat or a pair: of both variants at once, or in turns by the seed. `each`: what
/// they have in common.
inline vector<slot> slots_of(const plan& p, bool is_pair, const slot& each) {
    const auto of = [&](vector<run_variant> variants) {
        slot s = each;
        s.name = stage_text(p, each.position, variants[0]) + each.name;
        s.variants = std::move(variants);
        return s;
    };
    constexpr run_variant mine = run_variant::candidate, its = run_variant::baseline;
    if (!is_pair) return {of({mine})};
    if (p.judged->is_at_once) return {of({mine, its})};
    if (baseline_goes_first(p.sent->seed, each.position)) return {of({its}), of({mine})};
    return {of({mine}), of({its})};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
