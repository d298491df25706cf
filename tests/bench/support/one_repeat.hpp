// One repeat, for the benchmarks that measure the client.
#pragma once

#include "llmbench.hpp"
#include "core/measured/repeat.hpp"

#include <cstdint>

namespace bench {

/// One repeat of a scenario's target, without a gate's statistics and reports. `max_gaps` are kept
/// one by one, 0: as many as a gate keeps. `cpu_s`: its records are written as a gate writes them,
/// and that is what the whole process took. `keeps_texts`: of each answer, as for a comparison.
llmbench::detail::repeat_data one_repeat(const llmbench::scenario& s, std::uint64_t max_gaps = 0,
                                         double* cpu_s = nullptr, bool keeps_texts = false);

}  // namespace bench
