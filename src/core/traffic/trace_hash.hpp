// the hash of all that a plan sends
#pragma once

#include "api/traffic.hpp"
#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "core/dialects/request_body.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/schedule.hpp"

#include <algorithm>  // max, min
#include <cmath>  // llround
#include <cstdint>  // uint32_t
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Identifies the traffic: send times to the microsecond, and what the first requests say or how
/// long they are. Answers that are fed back are the server's own and no part of it.
inline std::string trace_hash(const plan& p) {
    if (!p.hash.empty()) return p.hash;
    fnv1a h;
    const auto add_text = [&](const std::string& s) {
        h.add(static_cast<long long>(s.size()));  // "ab", "c" is not "a", "bc"
        h.add(s.data(), s.size());
    };
    std::size_t n = static_cast<std::size_t>(std::max(p.requests, 1000ll));
    if (p.is_open_loop()) {
        const schedule s = schedule_of(p);
        for (const double t : s.at) h.add(std::llround(t * 1e6));
        n = s.at.size();
    } else {
        h.add(p.arrivals.users);
        h.add(std::llround(p.arrivals.think_s * 1e6));
        if (p.arrivals.users_ramp_s > 0) h.add(std::llround(p.arrivals.users_ramp_s * 1e6));
    }
    generator prefix(p.seed, 3);
    const int common = drawn_length(p.shared_prefix, prefix, 0);  // 0 for given prompts
    if (common > 0) h.add(common);
    if (p.prefix_groups > 1 || p.prefix_share < 1) {
        h.add(p.prefix_groups);
        h.add(std::llround(p.prefix_share * 1e9));
    }
    if (p.stride > 1) {
        h.add(std::llround(p.think_s * 1e6));
        h.add(p.shared_system_prompt);
    }
    const bool is_recorded = p.prompt_tokens.kind == length_distribution::shape::trace;
    for (std::size_t c = 0; c < std::min<std::size_t>(n, 100000); ++c) {
        if (!p.prompts.empty()) {
            add_text(p.prompts[c % p.prompts.size()]);
            continue;
        }
        const bool is_dialogue = !p.files->dialogues.empty();
        if (is_dialogue)
            for (const chat_message& m : dialogue_of(p, c).before) add_text(m.role + m.content);
        if (is_recorded && !p.files->trace.blocks.empty())
            for (const std::uint32_t id : p.files->trace.blocks[trace_row_of(p, c)]) h.add(id);
        for (std::size_t turn = 0; turn < turns_of(p, c); ++turn) {
            const trace_item item = item_of(p, c * p.stride + turn);
            if (is_dialogue) add_text(dialogue_of(p, c).turns[turn].prompt);
            if (is_dialogue) add_text(dialogue_of(p, c).turns[turn].image);
            if (!is_dialogue) h.add(item.prompt_tokens);
            h.add(item.output_tokens);
        }
    }
    return h.text();
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
