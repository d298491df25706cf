// prompts without conversations
// Two sources of traffic; their interface is in traffic_source.hpp.
#pragma once

#include "api/traffic.hpp"
#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "core/dialects/request_body.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/tokens.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // llround, round
#include <cstdint>  // uint64_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

struct given_prompts {
    std::vector<std::string> prompts{};

    source_facts facts() const { return {.repeats_prompts = true}; }
    void fill(request_spec& r, const trace_place& at, const trace_parameters&,
              const prompt_parameters&) const {
        r.prompt = prompts[at.conversation % prompts.size()];
    }
    void hash_conversation(fnv1a& h, std::size_t conversation, const trace_parameters&) const {
        add_text(h, prompts[conversation % prompts.size()]);
    }
};

/// Synthetic prompts of drawn lengths, or of the lengths of a recorded trace.
struct synthetic_prompts {
    length_distribution prompt_tokens{}, output_tokens{}, shared_prefix{};
    long long prefix_groups = 1;
    double prefix_fraction = 1;  // of the prompts that start with a prefix
    std::size_t warmup = 0;   // prompts that warm up; a trace begins after them

    source_facts facts() const {
        return {.makes_up_prompts = true, .expects_short_outputs = is_fixed_to_one(output_tokens)};
    }
    trace_item item(const trace_place& at, const trace_parameters& t) const {
        generator random(t.seed, streams::places + at.index());
        const auto length = [&](const length_distribution& d, int trace_row::*recorded,
                                const std::vector<double>& values) {
            if (d.kind != length_distribution::shape::trace)
                return drawn_length(d, random, 1, values);
            const double n = t.files.trace.rows[row(at.index(), t)].*recorded;
            return static_cast<int>(std::clamp(std::round(n * d.a), 1.0, d.b));
        };
        const int prompt = length(prompt_tokens, &trace_row::prompt_tokens, t.files.prompt_values);
        return {prompt,
                length(output_tokens, &trace_row::output_tokens, t.files.output_values)};
    }
    void fill(request_spec& r, const trace_place& at, const trace_parameters& t,
              const prompt_parameters& w) const {
        const trace_item asked = item(at, t);
        r.max_tokens = asked.output_tokens;
        r.prompt = prompt(at.index(), w.fit.words_of_prompt(asked.prompt_tokens), t, w);
        if (w.fit.as_ids) r.token_ids = id_list(r.prompt);
    }
    void hash_all(fnv1a& h, const trace_parameters& t) const {
        if (const int common = shared_length(shared_prefix, t.seed); common > 0) h.add(common);
        if (prefix_groups == 1 && prefix_fraction == 1) return;
        h.add(prefix_groups);
        h.add(std::llround(prefix_fraction * 1e9));
    }
    void hash_conversation(fnv1a& h, std::size_t index, const trace_parameters& t) const {
        if (has_blocks(t)) {
            const tree_prompt& recorded = t.files.trace.prompts[row(index, t)];
            h.add(recorded.node);
            h.add(recorded.kept);
        }
        const trace_item asked = item({index, 0, index}, t);
        h.add(asked.prompt_tokens);
        h.add(asked.output_tokens);
    }

    double fresh_tokens(const trace_place& at, const trace_parameters& t,
                        const token_fit& fit) const {
        if (has_blocks(t)) return 0;
        const int all = fit.words_of_prompt(item(at, t).prompt_tokens);
        const int shared = group(at.index(), t.seed) < 0
                               ? 0 : fit.words_in(shared_length(shared_prefix, t.seed));
        return (all - std::min(shared, all)) * fit.per_word;
    }
    /// Returns the group whose prefix a prompt starts with, -1 for none.
    long long group(std::size_t index, std::uint64_t seed) const {
        if (prefix_groups == 1 && prefix_fraction == 1) return 0;
        generator random(seed, streams::groups + index);
        if (random.uniform() >= prefix_fraction) return -1;
        return static_cast<long long>(random.below(static_cast<std::uint64_t>(prefix_groups)));
    }

private:
    /// Returns the row of a recorded trace for a prompt; the warm-up uses the first rows, too.
    std::size_t row(std::size_t index, const trace_parameters& t) const {
        return (index < warmup ? index : index - warmup) % t.files.trace.rows.size();
    }
    /// Whether the recording has the shared parts of its prompts.
    bool has_blocks(const trace_parameters& t) const {
        return prompt_tokens.kind == length_distribution::shape::trace &&
               !t.files.trace.prompts.empty();
    }
    /// Returns a prompt of `count` words.
    std::string prompt(std::size_t index, int count, const trace_parameters& t,
                       const prompt_parameters& w) const {
        std::string words;
        if (has_blocks(t)) {
            // These prompts share the parts that the recorded ones share.
            count -= append_prompt(words, t.files.trace.tree, t.files.trace.prompts[row(index, t)],
                                   prompt_tokens.a, count, w);
        } else if (const long long g = group(index, t.seed); g >= 0) {
            generator shared(w.salt, streams::shared_words +
                                         static_cast<std::uint64_t>(g) * streams::group_words);
            const int n = std::min(w.fit.words_in(shared_length(shared_prefix, t.seed)), count);
            append_words(words, n, shared, w.fit);
            count -= n;
        }
        generator own(w.salt, streams::places + index);
        append_words(words, count, own, w.fit);
        return words;
    }
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
