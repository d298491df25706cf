// The sample of a dataset whose fields nobody counts.
#pragma once

#include "core/files/datasets.hpp"

#include <cstddef>
#include <cstdint>

namespace dialogues {
using llmbench::detail::vector;

inline vector<llmbench::detail::dialogue> sample_of(llmbench::detail::byte_stream& in,
                                                    const llmbench::dataset& d,
                                                    std::size_t most, std::uint64_t seed) {
    llmbench::detail::row_fields uncounted;
    return llmbench::detail::sampled_dialogues(in, d, most, seed, uncounted, {});
}

}  // namespace dialogues
