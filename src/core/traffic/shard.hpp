// the part of a load that one of several programs sends
#pragma once

#include "core/base/text.hpp"

#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr std::size_t max_shards = 10000;

/// One of `count` programs that send one plan together, counted from 0. It takes every count-th
/// start of the trace, user or conversation, at its planned time: nothing is sent twice.
struct load_shard {
    std::size_t index = 0, count = 1;
    bool is_whole() const { return count == 1; }
    /// Returns the size of its part of `all`.
    std::size_t of(std::size_t all) const { return all / count + (index < all % count); }
};

/// Returns why the requests of one shard are not judged.
inline std::string shard_text(const load_shard& s) {
    return printed("shard %zu of %zu is measured: judge_shards judges all of them", s.index,
                   s.count);
}

/// Returns the shard of one of `threads` threads, of which every program has as many.
inline load_shard shard_of_thread(const load_shard& s, std::size_t thread, std::size_t threads) {
    return {s.index + s.count * thread, s.count * threads};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
