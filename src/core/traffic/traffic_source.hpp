// where prompts come from
#pragma once

#include "core/traffic/conversation_sources.hpp"
#include "core/traffic/prompt_sources.hpp"
#include "core/traffic/session_source.hpp"

#include <cstddef>  // size_t
#include <variant>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a workload became. Each source has
///     most_turns                     places that each of its conversations takes
///     turns(conversation, terms)     of one conversation; 1 where prompts stand alone
///     step(place, terms)             of a graph: what it waits for; else turns follow each other
///     item(place, terms)             the lengths that a place asks for
///     fill(request, place, terms, words)
///                                    puts into a request what is its own: prompt, history, lengths
///     hash_all(hash, terms), hash_conversation(hash, conversation, terms)
///                                    add what tells its traffic from any other
/// Nothing of it changes, and all of it follows from the arguments.
using traffic_source =
    std::variant<made_up_prompts, given_prompts, recorded_dialogues, made_up_conversations,
                 recorded_sessions>;

inline std::size_t most_turns_of(const traffic_source& s) {
    return std::visit([](const auto& source) -> std::size_t { return source.most_turns; }, s);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
