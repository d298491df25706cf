// what of its prompts a workload lets a prefix cache have
#pragma once

#include "core/dialects/request_body.hpp"
#include "core/files/datasets.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/tokens.hpp"
#include "core/traffic/traffic_source.hpp"

#include <algorithm>  // clamp
#include <string>
#include <variant>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Tokens at the end of a prompt that nobody has sent before: all behind its first fresh word. At
/// least so many; 0 where that is not known, or where prompts are sent again as they are.
class fresh_tokens {
public:
    fresh_tokens(const planned_traffic& p, std::size_t index, const token_fit& fit)
        : plan_(p), of_(own_place_of(p, index)), place_(of_.at), fit_(fit) {}

    double operator()(const given_prompts&) const { return 0; }
    double operator()(const made_up_prompts& s) const {
        return s.fresh_words(place_, terms_of(plan_, of_.part), fit_) * fit_.per_word;
    }
    double operator()(const recorded_sessions& s) const {
        return s.fresh_words(place_, terms_of(plan_, of_.part), fit_) * fit_.per_word;
    }
    /// The first turn's fresh words come first of all that is its own; a later one follows what its
    /// conversation has said.
    double operator()(const recorded_dialogues& s) const {
        if (!s.salted || place_.turn > 0) return 0;
        return least_tokens(s.at(place_.conversation, *of_.part.files));
    }
    double operator()(const made_up_conversations& s) const {
        const trace_terms t = terms_of(plan_, of_.part);
        double words = std::max(1, fit_.words_in(s.item(place_, t).prompt_tokens));
        if (!s.shared_system_prompt && place_.turn == 0)
            words += fit_.words_in(shared_length(s.system_tokens, plan_.seed));
        return words * fit_.per_word;
    }

private:
    /// A token of text has seldom over eight bytes.
    static double least_tokens(const dialogue& d) {
        std::size_t bytes = d.turns[0].prompt.size();
        for (const chat_message& m : d.before) bytes += m.content.size();
        return static_cast<double>(bytes) / 8;
    }

    const planned_traffic& plan_;
    const own_place of_;
    const trace_place place_;
    const token_fit& fit_;
};

/// Tokens of a prompt, of `prompt_tokens` as the server counted, that others may have sent before.
inline long long shared_tokens(const planned_traffic& p, std::size_t index, const token_fit& fit,
                               int prompt_tokens) {
    const double fresh =
        std::visit(fresh_tokens(p, index, fit), own_place_of(p, index).part.source);
    return std::clamp(prompt_tokens - static_cast<long long>(fresh), 0ll,
                      static_cast<long long>(prompt_tokens));
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
