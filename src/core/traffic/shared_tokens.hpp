// tokens that a prefix cache may have
#pragma once

#include "core/traffic/plan.hpp"
#include "core/traffic/tokens.hpp"

#include <algorithm>  // clamp
#include <cstddef>  // size_t

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Returns the tokens of a prompt, of the server's count, that others may have sent before.
inline long long shared_tokens(const planned_traffic& p, std::size_t index, const token_fit& fit,
                               int prompt_tokens) {
    const own_place of = own_place_of(p, index);
    const double fresh = of.part.source->fresh_tokens(of.at, parameters_of(p, of.part), fit);
    return std::clamp(prompt_tokens - static_cast<long long>(fresh), 0ll,
                      static_cast<long long>(prompt_tokens));
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
