// the requests of a plan
#pragma once

#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/random.hpp"
#include "core/dialects/request_body.hpp"
#include "core/files/datasets.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/tokens.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // round
#include <cstdint>  // uint64_t, uint32_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Whether all that is sent is made up, with lengths that were asked for.
inline bool makes_up_prompts(const plan& p) {
    return p.prompts.empty() && p.files->dialogues.empty();
}

/// The row of a recorded trace that a conversation stands for; the warm-up has the first ones too.
inline std::size_t trace_row_of(const plan& p, std::size_t conversation) {
    const std::size_t n = p.files->trace.rows.size();
    const std::size_t warmup =
        warmup_sends(p.arrivals, counted_conversations(p).warmup, p.warmup_s);
    return conversation < warmup ? conversation % n : (conversation - warmup) % n;
}

/// Lengths that request `index` of the trace asks for: the same in every repeat and arm.
struct trace_item {
    int prompt_tokens = 0;  // of the new message; what was said before comes on top of it
    int output_tokens = 0;
};
inline trace_item item_of(const plan& p, std::size_t index) {
    const trace_place at = place_of(p, index);
    if (!p.files->dialogues.empty()) {
        const dialogue& d = dialogue_of(p, at.conversation);
        return {at.turn == 0 ? estimated_prompt_tokens(d)
                             : estimated_tokens(d.turns[at.turn].prompt),
                d.turns[at.turn].output_tokens};
    }
    generator random(p.seed, 1000 + index);
    const auto length = [&](const length_distribution& d, int trace_row::*recorded,
                            const std::vector<double>& values) {
        if (d.kind != length_distribution::shape::trace) return drawn_length(d, random, 1, values);
        const double n = p.files->trace.rows[trace_row_of(p, at.conversation)].*recorded;
        return static_cast<int>(std::clamp(std::round(n * d.a), 1.0, d.b));
    };
    const int prompt = length(p.prompt_tokens, &trace_row::prompt_tokens, p.files->prompt_values);
    return {prompt, length(p.output_tokens, &trace_row::output_tokens, p.files->output_values)};
}

/// Tokens that a request is made to bring, 0 where nothing forces it.
inline int forced_tokens(const plan& p, std::size_t index) {
    if (!p.forces_length) return 0;
    const int own = p.prompts.empty() ? item_of(p, index).output_tokens : 0;
    return own > 0 ? own : p.common.max_tokens;
}

/// Words that differ from repeat to repeat, from arm to arm and from one execution of a gate to the
/// next, so that no prefix cache has seen them.
inline std::uint64_t salt_of(const plan& p, run_arm arm, int repeat) {
    return mixed(p.seed ^ p.nonce ^
                 mixed(static_cast<std::uint64_t>(repeat) * 2 + (arm == run_arm::baseline)));
}

/// The group whose prefix a prompt starts with, -1 for none.
inline long long prefix_group_of(const plan& p, std::size_t index) {
    if (p.prefix_groups == 1 && p.prefix_share == 1) return 0;
    generator random(p.seed, (1ull << 42) + index);
    if (random.uniform() >= p.prefix_share) return -1;
    return static_cast<long long>(random.below(static_cast<std::uint64_t>(p.prefix_groups)));
}

/// A made-up prompt of so many words.
inline std::string made_up_prompt(const plan& p, std::uint64_t salt, std::size_t index, int count,
                                  const token_fit& fit) {
    std::string prompt;
    generator own(salt, 1000 + index);
    if (p.prompt_tokens.kind == length_distribution::shape::trace &&
        !p.files->trace.blocks.empty()) {
        // What two recorded prompts had in common, these have in common, too.
        const int block_words =
            std::max(1, fit.words_in(trace_block_tokens * p.prompt_tokens.a));
        for (const std::uint32_t id : p.files->trace.blocks[trace_row_of(p, index)]) {
            generator block(salt, (1ull << 43) + id);
            const int n = std::min(block_words, count);
            append_words(prompt, n, block, fit);
            count -= n;
        }
    } else if (const long long group = prefix_group_of(p, index); group >= 0) {
        generator shared(salt, 1 + (static_cast<std::uint64_t>(group) << 44)), prefix(p.seed, 3);
        const int common =
            std::min(fit.words_in(drawn_length(p.shared_prefix, prefix, 0)), count);
        append_words(prompt, common, shared, fit);
        count -= common;
    }
    append_words(prompt, count, own, fit);
    return prompt;
}

/// The request itself. `answers` are those to the earlier turns of its conversation; an exchange
/// that failed left none, and is not spoken of again.
inline request_spec request_of(const plan& p, run_arm arm, int repeat, std::size_t index,
                               const std::vector<std::string>& answers = {},
                               const token_fit& fit = {}) {
    request_spec r = p.common;
    r.force_length = p.forces_length;
    if (!p.prompts.empty()) {
        r.prompt = p.prompts[index % p.prompts.size()];
        return r;
    }
    const trace_place at = place_of(p, index);
    const std::size_t first = index - at.turn;
    const std::uint64_t salt = salt_of(p, arm, repeat);
    const trace_item item = item_of(p, index);
    if (item.output_tokens > 0) r.max_tokens = item.output_tokens;
    const auto add_turns = [&](auto&& prompt_of) {
        for (std::size_t turn = 0; turn < at.turn; ++turn) {
            if (turn >= answers.size() || answers[turn].empty()) continue;
            r.history.push_back({"user", prompt_of(turn)});
            r.history.push_back({"assistant", answers[turn]});
        }
        r.prompt = prompt_of(at.turn);
    };
    if (!p.files->dialogues.empty()) {
        const dialogue& d = dialogue_of(p, at.conversation);
        r.force_length = p.forces_length && r.max_tokens > 0;
        r.history = d.before;
        add_turns([&](std::size_t turn) { return d.turns[turn].prompt; });
        if (p.salted) {
            std::string words;
            generator own(salt, 1000 + first);
            append_words(words, 5, own);
            std::string& start = r.history.empty() ? r.prompt : r.history.front().content;
            start = words + "\n" + start;
        }
        if (!r.history.empty() && r.history.front().role == "system") {
            r.system_prompt += (r.system_prompt.empty() ? "" : "\n") + r.history.front().content;
            r.history.erase(r.history.begin());
        }
        r.image = d.turns[at.turn].image;
        return r;
    }
    if (p.stride == 1) {
        const int count = fit.words_of_prompt(item.prompt_tokens);
        r.prompt = made_up_prompt(p, salt, index, count, fit);
        if (fit.as_ids) r.token_ids = id_list(r.prompt);
        return r;
    }
    generator length(p.seed, 3);
    const int system_tokens = drawn_length(p.shared_prefix, length, 0);
    generator system(salt, p.shared_system_prompt ? 1 : (1ull << 41) + at.conversation);
    append_words(r.system_prompt, fit.words_in(system_tokens), system, fit);
    add_turns([&](std::size_t turn) {
        std::string words;
        generator own(salt, 1000 + first + turn);
        append_words(words, std::max(1, fit.words_in(item_of(p, first + turn).prompt_tokens)), own,
                     fit);
        return words;
    });
    return r;
}

/// Whether a prompt is more than text, which only some APIs can say.
inline bool asks_about_images(const plan& p) {
    for (const dialogue& d : p.files->dialogues)
        for (const dialogue_turn& t : d.turns)
            if (!t.image.empty()) return true;
    return false;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
