// the requests of a load
#pragma once

#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/tokens.hpp"
#include "core/traffic/traffic_source.hpp"

#include <algorithm>  // clamp, max, min
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Whether all prompts are synthetic, with given lengths.
inline bool makes_up_prompts(const planned_traffic& p) {
    return !any_part(p, [](const plan_part& part) {
        return !part.source->facts().makes_up_prompts;
    });
}

/// Whether nothing stands around a prompt, so that it may be a list of token ids.
inline bool may_be_ids(const planned_traffic& p) {
    return p.stride == 1 && p.common.system_prompt.empty() && p.parts.empty();
}
/// A request like those of each part, without its prompt.
inline vector<request_spec> requests_like(const planned_traffic& p) {
    vector<request_spec> all;
    for_each_part(p, [&](const plan_part& part) {
        all.push_back(part.common);
        all.back().force_length = part.forces_length;
    });
    return all;
}

inline trace_item item_of(const planned_traffic& p, std::size_t index) {
    const own_place of = own_place_of(p, index);
    return of.part.source->item(of.at, parameters_of(p, of.part));
}

/// Returns the length of the shortest of the first prompts; 0 for other workloads.
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

/// Returns the most bytes that one user holds of conversations with answers fed back, on the
/// average of the first ones: about five a token, and the counter of each turn.
inline double bytes_held_by_a_user(const planned_traffic& p) {
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

/// Returns the tokens that a request forces, 0 if nothing forces them.
inline int forced_tokens(const planned_traffic& p, std::size_t index) {
    const plan_part& part = own_place_of(p, index).part;
    if (!part.forces_length) return 0;
    const int own = item_of(p, index).output_tokens;
    return own > 0 ? own : part.common.max_tokens;
}
/// Whether answers of one token are expected: given, or forced to lengths that are not drawn.
inline bool expects_short_outputs(const planned_traffic& p) {
    return any_part(p, [](const plan_part& part) {
        return part.forces_length && part.source->facts().expects_short_outputs;
    });
}

/// The salt differs between repeats, variants and executions of a gate, so that no prefix cache has
/// the words. Work is counted of the same bytes each time.
inline std::uint64_t salt_of(const load_plan& p, run_variant variant, int repeat) {
    if (p.sent->counts_work) return mixed(p.sent->seed);
    return mixed(
        p.sent->seed ^ p.nonce ^
        mixed(static_cast<std::uint64_t>(repeat) * 2 + (variant == run_variant::baseline)));
}

/// Returns the request. `answers` are those to the earlier turns of its conversation.
inline request_spec request_of(const load_plan& p, run_variant variant, int repeat,
                               std::size_t index, const vector<std::string>& answers = {},
                               const token_fit& fit = {}) {
    const own_place of = own_place_of(p, index);
    request_spec r = of.part.common;
    r.force_length = of.part.forces_length;
    // Each part has its own words: a prefix cache must not have those of another part.
    const std::uint64_t salt = salt_of(p, variant, repeat);
    const prompt_parameters words{of.which > 0 ? mixed(salt ^ mixed(of.which)) : salt, fit,
                                  answers};
    of.part.source->fill(r, of.at, parameters_of(p, of.part), words);
    return r;
}

/// Whether a prompt has images, which only some APIs take.
inline bool asks_about_images(const planned_traffic& p) {
    return any_part(p, [](const plan_part& part) { return have_images(part.files->dialogues); });
}

/// Returns the tokens of a prompt, of the server's count, that others may have sent before.
inline long long shared_tokens(const planned_traffic& p, std::size_t index, const token_fit& fit,
                               int prompt_tokens) {
    const own_place of = own_place_of(p, index);
    const double fresh = of.part.source->fresh_tokens(of.at, parameters_of(p, of.part), fit);
    return std::clamp(prompt_tokens - static_cast<long long>(fresh), 0ll,
                      static_cast<long long>(prompt_tokens));
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
