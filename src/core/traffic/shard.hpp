// the part of a load that one of several programs sends
#pragma once

#include "core/base/text.hpp"

#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr std::size_t most_shards = 10000;

/// Of `count` programs that carry out one plan, the one with this number, counted from 0. Each
/// takes every count-th start of the trace, a user or a conversation as a whole, at the time that
/// the plan has for it: together they send the trace, and nothing of it twice.
struct load_shard {
    std::size_t index = 0, count = 1;
    bool is_whole() const { return count == 1; }
    /// How many of these are its own.
    std::size_t of(std::size_t all) const { return all / count + (index < all % count); }
};

/// Why a shard's own requests are no gate's.
inline std::string shard_text(const load_shard& s) {
    return printed("shard %zu of %zu is measured: judge_shards judges all of them", s.index,
                   s.count);
}

/// The share of one thread of so many in every program.
inline load_shard shard_of_thread(const load_shard& s, std::size_t thread, std::size_t threads) {
    return {s.index + s.count * thread, s.count * threads};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
