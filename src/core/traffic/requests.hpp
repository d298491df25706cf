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
    bool all = true;
    for_each_part(p, [&](const plan_part& part) {
        all = all && (std::holds_alternative<made_up_prompts>(part.source) ||
                      std::holds_alternative<made_up_conversations>(part.source));
    });
    return all;
}

inline trace_item item_of(const planned_traffic& p, std::size_t index) {
    const own_place of = own_place_of(p, index);
    return std::visit(
        [&](const auto& source) { return source.item(of.at, terms_of(p, of.part)); },
        of.part.source);
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

/// Bytes that one user holds at most of conversations whose answers are fed back, on the average of
/// the first ones: a token of text has about five, and each turn its counter.
inline double held_by_a_user(const planned_traffic& p) {
    if (users_of(p) == 0 || p.stride == 1 || plays_sessions(p)) return 0;
    constexpr std::size_t some = 200;
    constexpr double token_bytes = 5, session_bytes = 240;
    double bytes = 0;
    for (std::size_t c = 0; c < some; ++c)
        for (std::size_t i = 0, n = turns_of(p, c); i < n; ++i) {
            bytes += sizeof(std::string) + 1;
            if (i + 1 < n) bytes += item_of(p, c * p.stride + i).output_tokens * token_bytes;
        }
    return bytes / some + session_bytes;
}

/// Tokens that a request is made to bring, 0 where nothing forces it.
inline int forced_tokens(const planned_traffic& p, std::size_t index) {
    const plan_part& part = own_place_of(p, index).part;
    if (!part.forces_length) return 0;
    const int own = item_of(p, index).output_tokens;
    return own > 0 ? own : part.common.max_tokens;
}
/// Whether answers of one token are no surprise: they were asked for, or forced to lengths that are
/// not drawn.
inline bool expects_short_outputs(const plan_part& p) {
    const length_distribution* drawn = nullptr;
    if (const auto* made = std::get_if<made_up_prompts>(&p.source)) drawn = &made->output_tokens;
    if (const auto* talk = std::get_if<made_up_conversations>(&p.source))
        drawn = &talk->output_tokens;
    return p.forces_length &&
           (!drawn || (drawn->kind == length_distribution::shape::fixed && drawn->a <= 1));
}

inline bool expects_short_outputs(const planned_traffic& p) {
    bool any = false;
    for_each_part(p, [&](const plan_part& part) { any = any || expects_short_outputs(part); });
    return any;
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
    const own_place of = own_place_of(p, index);
    request_spec r = of.part.common;
    r.force_length = of.part.forces_length;
    // Parts have words of their own, or one would find what another has sent.
    const std::uint64_t salt = salt_of(p, arm, repeat);
    const prompt_terms words{of.which > 0 ? mixed(salt ^ mixed(of.which)) : salt, fit, answers};
    std::visit([&](const auto& source) { source.fill(r, of.at, terms_of(p, of.part), words); },
               of.part.source);
    return r;
}

/// Whether a prompt is more than text, which only some APIs can say.
inline bool asks_about_images(const planned_traffic& p) {
    bool any = false;
    for_each_part(p, [&](const plan_part& part) {
        if (!std::holds_alternative<recorded_dialogues>(part.source)) return;
        for (const dialogue& d : part.files->dialogues)
            for (const dialogue_turn& t : d.turns) any = any || !t.image.empty();
    });
    return any;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
