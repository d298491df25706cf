#define LLMBENCH_IMPLEMENT
#include "one_repeat.hpp"

using namespace llmbench;

detail::repeat_data bench::one_repeat(const scenario& s, std::uint64_t most_gaps) {
    const detail::plan p = detail::planned(s, 1);
    detail::live_target target(s.target, run_arm::candidate);
    target.bring_up();
    detail::repeat_terms terms;
    if (most_gaps > 0) terms.most_gaps = most_gaps;
    return detail::run_repeat(p, target, run_arm::candidate, 0, 1, terms);
}
