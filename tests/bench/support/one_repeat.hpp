// The implementation, compiled once for all benchmarks.
#pragma once

#include "llmbench.hpp"
#include "core/measured/repeat.hpp"

#include <cstdint>

namespace bench {

/// One repeat of a scenario's target, without a gate's statistics and reports. `most_gaps` are kept
/// one by one, 0: as many as a gate keeps.
llmbench::detail::repeat_data one_repeat(const llmbench::scenario& s, std::uint64_t most_gaps = 0);

}  // namespace bench
