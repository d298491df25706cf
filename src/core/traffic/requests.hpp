// the requests of a plan
#pragma once

#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/random.hpp"
#include "core/dialects/request_body.hpp"
#include "core/files/datasets.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/tokens.hpp"
#include "core/traffic/traffic_source.hpp"

#include <cstdint>  // uint64_t
#include <string>
#include <variant>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Whether all that is sent is made up, with lengths that were asked for.
inline bool makes_up_prompts(const planned_traffic& p) {
    return std::holds_alternative<made_up_prompts>(p.source) ||
           std::holds_alternative<made_up_conversations>(p.source);
}

inline trace_item item_of(const planned_traffic& p, std::size_t index) {
    return std::visit(
        [&](const auto& source) { return source.item(place_of(p, index), terms_of(p)); },
        p.source);
}

/// The shortest whole prompt that is asked for, of the first that will be; 0 of other workloads.
inline double shortest_prompt(const planned_traffic& p) {
    if (!makes_up_prompts(p) || p.stride > 1) return 0;
    constexpr std::size_t enough = 10000;
    double shortest = 0;
    for (std::size_t i = 0; i < enough; ++i) {
        const double n = item_of(p, i).prompt_tokens;
        if (i == 0 || n < shortest) shortest = n;
        if (p.requests > 0 && static_cast<long long>(i) >= p.requests) break;
    }
    return shortest;
}

/// Tokens that a request is made to bring, 0 where nothing forces it.
inline int forced_tokens(const planned_traffic& p, std::size_t index) {
    if (!p.forces_length) return 0;
    const int own = item_of(p, index).output_tokens;
    return own > 0 ? own : p.common.max_tokens;
}
/// Whether answers of one token are no surprise: they were asked for, or forced to lengths that are
/// not drawn.
inline bool expects_short_outputs(const planned_traffic& p) {
    const length_distribution* drawn = nullptr;
    if (const auto* made = std::get_if<made_up_prompts>(&p.source)) drawn = &made->output_tokens;
    if (const auto* talk = std::get_if<made_up_conversations>(&p.source))
        drawn = &talk->output_tokens;
    return p.forces_length &&
           (!drawn || (drawn->kind == length_distribution::shape::fixed && drawn->a <= 1));
}

/// Words that differ from repeat to repeat, from arm to arm and from one execution of a gate to the
/// next, so that no prefix cache has seen them.
inline std::uint64_t salt_of(const plan& p, run_arm arm, int repeat) {
    return mixed(p.sent->seed ^ p.nonce ^
                 mixed(static_cast<std::uint64_t>(repeat) * 2 + (arm == run_arm::baseline)));
}

/// The request itself. `answers` are those to the earlier turns of its conversation.
inline request_spec request_of(const plan& p, run_arm arm, int repeat, std::size_t index,
                               const std::vector<std::string>& answers = {},
                               const token_fit& fit = {}) {
    request_spec r = p.sent->common;
    r.force_length = p.sent->forces_length;
    const prompt_terms words{salt_of(p, arm, repeat), fit, answers};
    std::visit([&](const auto& source) { source.fill(r, place_of(p, index), terms_of(p), words); },
               p.sent->source);
    return r;
}

/// Whether a prompt is more than text, which only some APIs can say.
inline bool asks_about_images(const planned_traffic& p) {
    if (!std::holds_alternative<recorded_dialogues>(p.source)) return false;
    for (const dialogue& d : p.files->dialogues)
        for (const dialogue_turn& t : d.turns)
            if (!t.image.empty()) return true;
    return false;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
