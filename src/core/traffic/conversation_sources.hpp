// conversations, recorded and made up
// Two sources of traffic; what a source can do stands in traffic_source.hpp.
#pragma once

#include "api/traffic.hpp"
#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "core/dialects/request_body.hpp"
#include "core/files/datasets.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/tokens.hpp"

#include <algorithm>  // max, min
#include <cstdint>  // uint32_t
#include <string>
#include <utility>  // as_const, pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The sample of a dataset, in its order and again from its start.
struct recorded_dialogues {
    std::size_t most_turns = 1;
    std::size_t begin = 0;  // of the sample; stages of fresh traffic begin elsewhere
    bool salted = false;    // a line of fresh words comes first

    const dialogue& at(std::size_t conversation, const workload_files& files) const {
        return files.dialogues[(begin + conversation) % files.dialogues.size()];
    }
    std::size_t turns(std::size_t conversation, const trace_terms& t) const {
        return at(conversation, t.files).turns.size();
    }
    trace_item item(const trace_place& place, const trace_terms& t) const {
        const dialogue& d = at(place.conversation, t.files);
        const dialogue_turn& turn = d.turns[place.turn];
        return {place.turn == 0 ? estimated_prompt_tokens(d) : estimated_tokens(turn.prompt),
                turn.output_tokens};
    }
    void fill(request_spec& r, const trace_place& place, const trace_terms& t,
              const prompt_terms& w) const {
        const dialogue& d = at(place.conversation, t.files);
        if (const int recorded = d.turns[place.turn].output_tokens; recorded > 0)
            r.max_tokens = recorded;
        r.force_length = r.force_length && r.max_tokens > 0;
        r.history = d.before;
        add_turns(r, line_to(place.turn), w.answers,
                  [&](std::size_t turn) -> const std::string& { return d.turns[turn].prompt; });
        if (salted) add_salt(r.history.empty() ? r.prompt : r.history.front().content, place, w);
        if (!r.history.empty() && r.history.front().role == "system") {
            r.system_prompt += (r.system_prompt.empty() ? "" : "\n") + r.history.front().content;
            r.history.erase(r.history.begin());
        }
        r.image = d.turns[place.turn].image;
    }
    void hash_all(fnv1a&, const trace_terms&) const {}
    void hash_conversation(fnv1a& h, std::size_t conversation, const trace_terms& t) const {
        const dialogue& d = at(conversation, t.files);
        for (const chat_message& m : d.before) add_text(h, m.role + m.content);
        for (const dialogue_turn& turn : d.turns) {
            add_text(h, turn.prompt);
            add_text(h, turn.image);
            h.add(turn.output_tokens);
        }
    }

private:
    static void add_salt(std::string& text, const trace_place& place, const prompt_terms& w) {
        std::string words;
        generator own(w.salt, streams::places + place.first);
        append_words(words, 5, own);
        text = words + "\n" + text;
    }
};

/// Conversations of drawn lengths, with the server's answers fed back. Where some turns are helped,
/// the helpers' turns stand between such a turn and the next one.
struct made_up_conversations {
    std::size_t most_turns = 1;
    length_distribution turns_each{}, user_tokens{}, output_tokens{}, system_tokens{};
    bool shared_system_prompt = true;
    double helped = 0;  // of the turns that another follows
    length_distribution helpers{}, helper_turns{};
    std::size_t most_own_turns = 1000;  // that are no helper's

    std::size_t turns(std::size_t conversation, const trace_terms& t) const {
        std::size_t all = 0;
        if (helped > 0) {
            for_each_turn(conversation, t, [&](const own_turn& turn) { all = turn.end(); });
            return all;
        }
        return std::min(own_turns(conversation, t), most_turns);
    }
    graph_step step(const trace_place& at, const trace_terms& t) const {
        if (helped <= 0) return step_of_line(at.turn, turns(at.conversation, t));
        graph_step s;
        own_turn before;
        for_each_turn(at.conversation, t, [&](const own_turn& turn) {
            if (at.turn == turn.place) {
                s.turn = turn.number;
                if (turn.number > 0) s.after = before.last();
                for (const auto& [first, n] : turn.helpers) s.next.push_back(as_step(first));
                if (!turn.is_last) s.next.push_back(as_step(turn.end()));
            }
            for (const auto& [first, n] : turn.helpers) {
                if (at.turn < first || at.turn >= first + n) continue;
                s.turn = static_cast<int>(at.turn - first);
                s.depth = 1;
                s.line = as_step(first);
                s.after = {as_step(at.turn == first ? turn.place : at.turn - 1)};
                s.next = {as_step(at.turn + 1 < first + n ? at.turn + 1 : turn.end())};
            }
            before = turn;
        });
        return s;
    }
    trace_item item(const trace_place& at, const trace_terms& t) const {
        generator random(t.seed, streams::places + at.index());
        const int user = drawn_length(user_tokens, random, 1, t.files.prompt_values);
        return {user, drawn_length(output_tokens, random, 1, t.files.output_values)};
    }
    void fill(request_spec& r, const trace_place& at, const trace_terms& t,
              const prompt_terms& w) const {
        r.max_tokens = item(at, t).output_tokens;
        generator system(w.salt, shared_system_prompt
                                     ? streams::shared_words
                                     : streams::system_prompts + at.conversation);
        append_words(r.system_prompt, w.fit.words_in(shared_length(system_tokens, t.seed)), system,
                     w.fit);
        add_turns(r, line_of(at, t), w.answers, [&](std::size_t turn) {
            const trace_place said{at.conversation, turn, at.first};
            std::string words;
            generator own(w.salt, streams::places + said.index());
            append_words(words, std::max(1, w.fit.words_in(item(said, t).prompt_tokens)), own,
                         w.fit);
            return words;
        });
    }
    void hash_all(fnv1a& h, const trace_terms& t) const {
        if (const int common = shared_length(system_tokens, t.seed); common > 0) h.add(common);
    }
    void hash_conversation(fnv1a& h, std::size_t conversation, const trace_terms& t) const {
        for (std::size_t turn = 0; turn < turns(conversation, t); ++turn) {
            const trace_item asked = item({conversation, turn, conversation * most_turns}, t);
            h.add(asked.prompt_tokens);
            h.add(asked.output_tokens);
            if (helped > 0) h.add(step({conversation, turn, 0}, t).depth);
        }
    }

private:
    /// A turn of the conversation itself: the places of its helpers come behind its own.
    struct own_turn {
        std::size_t place = 0;
        int number = 0;
        bool is_last = false;
        std::vector<std::pair<std::size_t, std::size_t>> helpers{};  // first place, turns
        std::size_t end() const {
            return helpers.empty() ? place + 1 : helpers.back().first + helpers.back().second;
        }
        /// What the next turn waits for.
        std::vector<std::uint32_t> last() const {
            std::vector<std::uint32_t> all{as_step(place)};
            for (const auto& [first, n] : helpers) all.push_back(as_step(first + n - 1));
            return all;
        }
    };
    static std::uint32_t as_step(std::size_t place) { return static_cast<std::uint32_t>(place); }
    std::size_t own_turns(std::size_t conversation, const trace_terms& t) const {
        generator random(t.seed, streams::turns + conversation);
        return std::min(static_cast<std::size_t>(drawn_length(turns_each, random, 1)),
                        most_own_turns);
    }
    template <class F>
    void for_each_turn(std::size_t conversation, const trace_terms& t, F&& f) const {
        const auto own = static_cast<int>(own_turns(conversation, t));
        generator random(t.seed, streams::helpers + conversation);
        own_turn turn;
        for (; turn.number < own; ++turn.number) {
            turn.is_last = turn.number + 1 == own;
            turn.helpers.clear();
            std::size_t next = turn.place + 1;
            const bool is_helped = random.uniform() < helped && !turn.is_last;
            const int some = is_helped ? drawn_length(helpers, random, 1) : 0;
            for (int i = 0; i < some; ++i) {
                const auto n = static_cast<std::size_t>(drawn_length(helper_turns, random, 1));
                turn.helpers.emplace_back(next, n);
                next += n;
            }
            f(std::as_const(turn));
            turn.place = next;
        }
    }
    /// The places of a line, up to this one.
    std::vector<std::size_t> line_of(const trace_place& at, const trace_terms& t) const {
        if (helped <= 0) return line_to(at.turn);
        std::vector<std::size_t> line, own;
        for_each_turn(at.conversation, t, [&](const own_turn& turn) {
            if (turn.place <= at.turn) own.push_back(turn.place);
            for (const auto& [first, n] : turn.helpers)
                for (std::size_t i = first; i <= at.turn && at.turn < first + n; ++i)
                    line.push_back(i);
        });
        return line.empty() ? own : line;
    }
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
