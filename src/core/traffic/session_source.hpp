// recorded sessions as traffic
// A source of traffic; what a source can do stands in traffic_source.hpp.
#pragma once

#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/files/session_graph.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/places.hpp"

#include <algorithm>  // any_of, max, min
#include <cmath>  // llround
#include <cstdint>  // uint32_t, uint64_t
#include <memory>  // shared_ptr, make_shared
#include <string>
#include <utility>  // move, swap
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The sessions of a corpus, in the order of the seed and again from its start. A step's prompt is
/// one message of the user: recordings are not fed the server's answers.
struct recorded_sessions {
    std::size_t most_turns = 1;
    std::size_t begin = 0;  // stages of fresh traffic begin elsewhere, and a replay's warm-up
    double most_wait_s = 0;
    std::shared_ptr<const std::vector<std::uint32_t>> order{};  // of those that are played
    std::vector<std::string> models{};                          // by the corpus's ones
    std::string name{};          // of the file
    std::string left_out_by{};   // a server's model, and how many
    long long left_out = 0;      // of those that would be played, by that

    const session_entry& at(std::size_t conversation, const trace_terms& t) const {
        return t.files.sessions.sessions[(*order)[(begin + conversation) % order->size()]];
    }
    std::size_t turns(std::size_t conversation, const trace_terms& t) const {
        return at(conversation, t).steps;
    }
    const session_step& recorded(const trace_place& place, const trace_terms& t) const {
        return t.files.sessions.steps[at(place.conversation, t).first + place.turn];
    }
    graph_step step(const trace_place& place, const trace_terms& t) const {
        const session_step& s = recorded(place, t);
        const auto after = t.files.sessions.after.begin() + s.first_after;
        const auto next = t.files.sessions.next.begin() + s.first_next;
        return {.after = {after, after + s.after},
                .next = {next, next + s.next},
                .wait_s = std::min<double>(s.wait_s, most_wait_s),
                .at_s = s.at_s,
                .turn = s.turn,
                .depth = s.depth,
                .line = s.line,
                .label = s.label};
    }
    trace_item item(const trace_place& place, const trace_terms& t) const {
        const session_step& s = recorded(place, t);
        return {s.prompt.tokens, s.output_tokens};
    }
    /// Played again, a session has other words, but for those that it shares with others.
    void fill(request_spec& r, const trace_place& place, const trace_terms& t,
              const prompt_terms& w) const {
        const session_step& s = recorded(place, t);
        const std::uint64_t play = place.conversation / order->size();
        const bool is_new = play > 0 && !at(place.conversation, t).shares;
        const prompt_terms words{is_new ? mixed(w.salt ^ mixed(play)) : w.salt, w.fit, w.answers};
        r.max_tokens = s.output_tokens;
        append_prompt(r.prompt, t.files.sessions.prompts, s.prompt, 1,
                      w.fit.words_of_prompt(s.prompt.tokens), words);
        if (w.fit.as_ids) r.token_ids = id_list(r.prompt);
        if (!models[s.model].empty()) r.model = models[s.model];
        r.extra_fields += t.files.sessions.bodies[s.body];
    }
    /// Words at the end of a prompt that no other one has.
    int fresh_words(const trace_place& place, const trace_terms& t, const token_fit& fit) const {
        const session_step& s = recorded(place, t);
        const bool is_again = place.conversation >= order->size();
        if (is_again && at(place.conversation, t).shares) return 0;
        return std::max(0, fit.words_of_prompt(s.prompt.tokens) - fit.words_in(s.prompt.kept));
    }
    void hash_all(fnv1a& h, const trace_terms& t) const {
        const session_corpus& c = t.files.sessions;
        h.add(std::llround(most_wait_s * 1e6));
        for (const std::uint32_t i : *order) {
            h.add(i);
            for (std::uint32_t s = 0; s < c.sessions[i].steps; ++s) {
                const session_step& x = c.steps[c.sessions[i].first + s];
                for (const long long n : {0ll + x.prompt.tokens, 0ll + x.prompt.kept,
                                          0ll + x.output_tokens, std::llround(x.wait_s * 1e6),
                                          std::llround(x.at_s * 1e6)})
                    h.add(n);
                for (std::uint32_t a = 0; a < x.after; ++a) h.add(c.after[x.first_after + a]);
                add_text(h, models[x.model]);
                add_text(h, c.bodies[x.body]);
            }
        }
    }
    void hash_conversation(fnv1a&, std::size_t, const trace_terms&) const {}
    /// How many, and how large they are.
    std::string text(const session_corpus& c) const {
        double steps = 0;
        int longest = 0;
        for (const std::uint32_t i : *order) {
            const session_entry& s = c.sessions[i];
            steps += s.steps;
            for (std::uint32_t k = 0; k < s.steps; ++k)
                longest = std::max(longest, c.steps[s.first + k].prompt.tokens);
        }
        const auto n = static_cast<double>(order->size());
        return printed("%.0f sessions of ", n) + name + " (" + c.format + ")" +
               (c.left_out > 0 ? printed(", %lld left out by max_context", c.left_out) : "") +
               (left_out > 0 ? printed(", %lld left out by ", left_out) + left_out_by : "") +
               printed(", %.1f steps each, prompts of up to %d tokens, waits of up to %.9g s",
                       steps / n, longest, most_wait_s);
    }
    /// Leaves out whole the sessions with a step that a model has no room for. `room`: of the
    /// models of the recording, tokens of a prompt and its answer; 0 where nobody knows.
    void leave_out(const session_corpus& c, const std::vector<int>& room) {
        std::vector<std::uint32_t> fits;
        for (const std::uint32_t i : *order) {
            const auto first = c.steps.begin() + c.sessions[i].first;
            const bool is_out = std::any_of(first, first + c.sessions[i].steps,
                                            [&](const session_step& s) {
                const int most = room[s.model];
                return most > 0 && s.prompt.tokens + s.output_tokens > most;
            });
            if (!is_out) fits.push_back(i);
        }
        left_out = static_cast<long long>(order->size() - fits.size());
        order = std::make_shared<const std::vector<std::uint32_t>>(std::move(fits));
    }
};

/// The sessions that are played, in the order of the seed.
inline std::shared_ptr<const std::vector<std::uint32_t>> drawn_order(std::size_t sessions,
                                                                     std::size_t most,
                                                                     std::uint64_t seed) {
    std::vector<std::uint32_t> order(sessions);
    for (std::size_t i = 0; i < sessions; ++i) order[i] = static_cast<std::uint32_t>(i);
    generator random(seed, streams::turns);
    for (std::size_t i = sessions; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    if (most > 0 && most < sessions) order.resize(most);
    return std::make_shared<const std::vector<std::uint32_t>>(std::move(order));
}

/// The same in the order in which they began.
inline std::shared_ptr<const std::vector<std::uint32_t>> recorded_order(const session_corpus& c,
                                                                        std::size_t most) {
    std::vector<std::uint32_t> order = order_of_starts(c);
    if (most > 0 && most < order.size()) order.resize(most);
    return std::make_shared<const std::vector<std::uint32_t>>(std::move(order));
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
