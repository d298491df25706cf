// sources of prompts and conversations
#pragma once

#include "api/traffic.hpp"
#include "api/workload.hpp"
#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/traffic/prefix_tree.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/tokens.hpp"
#include "core/traffic/traffic_source.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // isnan, llround, round
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t, uint64_t
#include <exception>
#include <string>
#include <utility>  // as_const, move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

struct given_prompts final : prompt_source {
    vector<std::string> prompts{};
    explicit given_prompts(vector<std::string> given) : prompts(std::move(given)) {}

    source_facts facts() const override { return {.repeats_prompts = true}; }
    std::size_t question(std::size_t conversation, const trace_parameters&) const override {
        return conversation % prompts.size();
    }
    void fill(request_spec& r, const trace_position& at, const trace_parameters&,
              const prompt_parameters&) const override {
        r.prompt = prompts[at.conversation % prompts.size()];
    }
    void hash_conversation(fnv1a& h, std::size_t conversation,
                           const trace_parameters&) const override {
        add_text(h, prompts[conversation % prompts.size()]);
    }
};

/// Synthetic prompts of drawn lengths, or of the lengths of a recorded trace.
struct synthetic_prompts final : prompt_source {
    synthetic said;
    std::size_t warmup;  // prompts that warm up; a trace begins after them
    explicit synthetic_prompts(const synthetic& w = {.prompt_tokens = {}, .output_tokens = {}},
                               std::size_t before = 0)
        : said(w), warmup(before) {}

    source_facts facts() const override {
        return {.makes_up_prompts = true,
                .expects_short_outputs = is_fixed_to_one(said.output_tokens)};
    }
    trace_item item(const trace_position& at, const trace_parameters& t) const override {
        generator random(t.seed, streams::places + at.index());
        const auto length = [&](const length_distribution& d, int trace_row::*recorded,
                                const vector<double>& values) {
            if (d.kind != length_distribution::shape::trace)
                return drawn_length(d, random, 1, values);
            const double n = t.files.trace.rows[row(at.index(), t)].*recorded;
            return static_cast<int>(std::clamp(std::round(n * d.a), 1.0, d.b));
        };
        const int n = length(said.prompt_tokens, &trace_row::prompt_tokens, t.files.prompt_values);
        return {n, length(said.output_tokens, &trace_row::output_tokens, t.files.output_values)};
    }
    void fill(request_spec& r, const trace_position& at, const trace_parameters& t,
              const prompt_parameters& w) const override {
        const trace_item asked = item(at, t);
        r.max_tokens = asked.output_tokens;
        r.prompt = prompt(at.index(), w.fit.words_of_prompt(asked.prompt_tokens), t, w);
        if (w.fit.as_ids) r.token_ids = id_list(r.prompt);
    }
    void hash_all(fnv1a& h, const trace_parameters& t) const override {
        if (const int common = shared_length(said.shared_prefix, t.seed); common > 0) h.add(common);
        if (!has_groups()) return;
        h.add(said.prefix_groups);
        h.add(std::llround(said.prefix_fraction.value * 1e9));
    }
    void hash_conversation(fnv1a& h, std::size_t index, const trace_parameters& t) const override {
        if (has_blocks(t)) {
            const tree_prompt& recorded = t.files.trace.prompts[row(index, t)];
            h.add(recorded.node);
            h.add(recorded.kept);
        }
        const trace_item asked = item({index, 0, index}, t);
        h.add(asked.prompt_tokens);
        h.add(asked.output_tokens);
    }

    double fresh_tokens(const trace_position& at, const trace_parameters& t,
                        const token_fit& fit) const override {
        if (has_blocks(t)) return 0;
        const int all = fit.words_of_prompt(item(at, t).prompt_tokens);
        const int shared = group(at.index(), t.seed) < 0
                               ? 0 : fit.words_in(shared_length(said.shared_prefix, t.seed));
        return (all - std::min(shared, all)) * fit.per_word;
    }
    /// Returns the group whose prefix a prompt starts with, -1 for none.
    long long group(std::size_t index, std::uint64_t seed) const {
        if (!has_groups()) return 0;
        generator random(seed, streams::groups + index);
        if (random.uniform() >= said.prefix_fraction.value) return -1;
        const long long n = said.prefix_groups;
        return static_cast<long long>(random.below(static_cast<std::uint64_t>(n)));
    }

private:
    bool has_groups() const { return said.prefix_groups != 1 || said.prefix_fraction.value != 1; }
    /// Returns the row of a recorded trace for a prompt; the warm-up uses the first rows, too.
    std::size_t row(std::size_t index, const trace_parameters& t) const {
        return (index < warmup ? index : index - warmup) % t.files.trace.rows.size();
    }
    /// Whether the recording has the shared parts of its prompts.
    bool has_blocks(const trace_parameters& t) const {
        return said.prompt_tokens.kind == length_distribution::shape::trace &&
               !t.files.trace.prompts.empty();
    }
    std::string prompt(std::size_t index, int count, const trace_parameters& t,
                       const prompt_parameters& w) const {
        std::string words;
        if (has_blocks(t)) {
            // These prompts share the parts that the recorded ones share.
            count -= append_prompt(words, t.files.trace.tree, t.files.trace.prompts[row(index, t)],
                                   said.prompt_tokens.a, count, w);
        } else if (const long long g = group(index, t.seed); g >= 0) {
            generator shared(w.salt, streams::shared_words +
                                         static_cast<std::uint64_t>(g) * streams::group_words);
            const int prefix = shared_length(said.shared_prefix, t.seed);
            const int n = std::min(w.fit.words_in(prefix), count);
            append_words(words, n, shared, w.fit);
            count -= n;
        }
        generator own(w.salt, streams::places + index);
        append_words(words, count, own, w.fit);
        return words;
    }
};

/// Begins a prompt with a line of new words, so that no cache has it.
inline void add_salt(std::string& text, const trace_position& place, const prompt_parameters& w) {
    std::string words;
    generator own(w.salt, streams::places + place.first);
    append_words(words, 5, own);
    text = words + "\n" + text;
}

/// The sample of a dataset in its order, over and over.
struct recorded_dialogues final : prompt_source {
    std::size_t most_turns = 1;
    bool salted = false;    // prompts begin with a line of new words

    const dialogue& at(std::size_t conversation, const workload_files& files) const {
        return files.dialogues[conversation % files.dialogues.size()];
    }
    source_facts facts() const override {
        return {.most_turns = most_turns, .repeats_prompts = !salted};
    }
    std::size_t turns(std::size_t conversation, const trace_parameters& t) const override {
        return at(conversation, t.files).turns.size();
    }
    const wanted_answer* wanted(std::size_t conversation,
                                const trace_parameters& t) const override {
        return at(conversation, t.files).wanted.get();
    }
    std::size_t question(std::size_t conversation, const trace_parameters& t) const override {
        return conversation % t.files.dialogues.size();
    }
    trace_item item(const trace_position& place, const trace_parameters& t) const override {
        const dialogue& d = at(place.conversation, t.files);
        const dialogue_turn& turn = d.turns[place.turn];
        return {place.turn == 0 ? estimated_prompt_tokens(d) : estimated_tokens(turn.prompt),
                turn.output_tokens};
    }
    void fill(request_spec& r, const trace_position& place, const trace_parameters& t,
              const prompt_parameters& w) const override {
        const dialogue& d = at(place.conversation, t.files);
        if (const int recorded = d.turns[place.turn].output_tokens; recorded > 0)
            r.max_tokens = recorded;
        r.force_length = r.force_length && r.max_tokens > 0;
        r.history = d.before;
        if (salted && !d.before.empty()) add_salt(r.history.front().content, place, w);
        if (!r.history.empty() && r.history.front().role == "system") {
            r.system_prompt += (r.system_prompt.empty() ? "" : "\n") + r.history.front().content;
            r.history.erase(r.history.begin());
        }
        add_turns(r, line_to(place.turn), w.answers,
                  [&](std::size_t turn) -> const std::string& { return d.turns[turn].prompt; });
        if (salted && d.before.empty() && r.previous_response.empty())
            add_salt(r.history.empty() ? r.prompt : r.history.front().content, place, w);
        r.image = d.turns[place.turn].image;
        if (std::isnan(r.temperature)) r.temperature = d.temperature;
        r.extra_fields += d.fields;
    }
    /// Only a first turn is salted: a later one follows the text of its conversation. Few tokens of
    /// text have over eight bytes.
    double fresh_tokens(const trace_position& place, const trace_parameters& t,
                        const token_fit&) const override {
        if (!salted || place.turn > 0) return 0;
        const dialogue& d = at(place.conversation, t.files);
        std::size_t bytes = d.turns[0].prompt.size();
        for (const chat_message& m : d.before) bytes += m.content.size();
        return static_cast<double>(bytes) / 8;
    }
    void hash_conversation(fnv1a& h, std::size_t conversation,
                           const trace_parameters& t) const override {
        const dialogue& d = at(conversation, t.files);
        for (const chat_message& m : d.before) add_text(h, m.role + m.content + m.fields);
        if (!d.fields.empty()) add_text(h, d.fields);
        if (!std::isnan(d.temperature)) add_text(h, json_number(d.temperature));
        for (const dialogue_turn& turn : d.turns) {
            add_text(h, turn.prompt);
            add_text(h, turn.image);
            h.add(turn.output_tokens);
        }
    }
};

/// Conversations of drawn lengths, with the server's answers fed back. The turns of subagents stand
/// between a turn and the one that follows.
struct synthetic_conversations final : prompt_source {
    conversations said{};
    std::size_t most_turns = 1;
    std::size_t max_own_turns = 1000;  // without those of subagents
    explicit synthetic_conversations(const conversations& c) : said(c) {}

    source_facts facts() const override {
        return {.most_turns = most_turns,
                .makes_up_prompts = true,
                .shares_system_prompt = said.shared_system_prompt,
                .is_graph = said.subagents.value > 0,
                .deepest = said.subagents.value > 0,
                .expects_short_outputs = is_fixed_to_one(said.output_tokens)};
    }
    std::size_t turns(std::size_t conversation, const trace_parameters& t) const override {
        std::size_t all = 0;
        if (said.subagents.value > 0) {
            for_each_turn(conversation, t, [&](const own_turn& turn) { all = turn.end(); });
            return all;
        }
        return std::min(own_turns(conversation, t), most_turns);
    }
    graph_step step(const trace_position& at, const trace_parameters& t) const override {
        if (said.subagents.value <= 0) return step_of_line(at.turn, turns(at.conversation, t));
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
    trace_item item(const trace_position& at, const trace_parameters& t) const override {
        generator random(t.seed, streams::places + at.index());
        const int user = drawn_length(said.user_tokens, random, 1, t.files.prompt_values);
        return {user, drawn_length(said.output_tokens, random, 1, t.files.output_values)};
    }
    void fill(request_spec& r, const trace_position& at, const trace_parameters& t,
              const prompt_parameters& w) const override {
        r.max_tokens = item(at, t).output_tokens;
        generator system(w.salt, said.shared_system_prompt
                                     ? streams::shared_words
                                     : streams::system_prompts + at.conversation);
        append_words(r.system_prompt, w.fit.words_in(shared_length(said.system_tokens, t.seed)),
                     system, w.fit);
        add_turns(r, line_of(at, t), w.answers, [&](std::size_t turn) {
            const trace_position asked{at.conversation, turn, at.first};
            std::string words;
            generator own(w.salt, streams::places + asked.index());
            append_words(words, std::max(1, w.fit.words_in(item(asked, t).prompt_tokens)), own,
                         w.fit);
            return words;
        });
    }
    double fresh_tokens(const trace_position& at, const trace_parameters& t,
                        const token_fit& fit) const override {
        double words = std::max(1, fit.words_in(item(at, t).prompt_tokens));
        if (!said.shared_system_prompt && at.turn == 0)
            words += fit.words_in(shared_length(said.system_tokens, t.seed));
        return words * fit.per_word;
    }
    void hash_all(fnv1a& h, const trace_parameters& t) const override {
        if (const int common = shared_length(said.system_tokens, t.seed); common > 0) h.add(common);
    }
    void hash_conversation(fnv1a& h, std::size_t conversation,
                           const trace_parameters& t) const override {
        for (std::size_t turn = 0; turn < turns(conversation, t); ++turn) {
            const trace_item asked = item({conversation, turn, conversation * most_turns}, t);
            h.add(asked.prompt_tokens);
            h.add(asked.output_tokens);
            if (said.subagents.value > 0) h.add(step({conversation, turn, 0}, t).depth);
        }
    }

private:
    /// A turn of the conversation itself; the indices of its subagents' turns follow its own.
    struct own_turn {
        std::size_t place = 0;
        int number = 0;
        bool is_last = false;
        vector<std::pair<std::size_t, std::size_t>> helpers{};  // first index, turns
        std::size_t end() const {
            return helpers.empty() ? place + 1 : helpers.back().first + helpers.back().second;
        }
        /// Returns the steps for which the next turn waits.
        vector<std::uint32_t> last() const {
            vector<std::uint32_t> all{as_step(place)};
            for (const auto& [first, n] : helpers) all.push_back(as_step(first + n - 1));
            return all;
        }
    };
    static std::uint32_t as_step(std::size_t place) { return static_cast<std::uint32_t>(place); }
    std::size_t own_turns(std::size_t conversation, const trace_parameters& t) const {
        generator random(t.seed, streams::turns + conversation);
        return std::min(static_cast<std::size_t>(drawn_length(said.turns, random, 1)),
                        max_own_turns);
    }
    template <class F>
    void for_each_turn(std::size_t conversation, const trace_parameters& t, F&& f) const {
        const auto own = static_cast<int>(own_turns(conversation, t));
        generator random(t.seed, streams::helpers + conversation);
        own_turn turn;
        for (; turn.number < own; ++turn.number) {
            turn.is_last = turn.number + 1 == own;
            turn.helpers.clear();
            std::size_t next = turn.place + 1;
            const bool is_helped = random.uniform() < said.subagents.value && !turn.is_last;
            const int some = is_helped ? drawn_length(said.helpers, random, 1) : 0;
            for (int i = 0; i < some; ++i) {
                const auto n = static_cast<std::size_t>(drawn_length(said.helper_turns, random, 1));
                turn.helpers.emplace_back(next, n);
                next += n;
            }
            f(std::as_const(turn));
            turn.place = next;
        }
    }
    vector<std::size_t> line_of(const trace_position& at, const trace_parameters& t) const {
        if (said.subagents.value <= 0) return line_to(at.turn);
        vector<std::size_t> line, own;
        for_each_turn(at.conversation, t, [&](const own_turn& turn) {
            if (turn.place <= at.turn) own.push_back(turn.place);
            for (const auto& [first, n] : turn.helpers)
                for (std::size_t i = first; i <= at.turn && at.turn < first + n; ++i)
                    line.push_back(i);
        });
        return line.empty() ? own : line;
    }
};

struct user_prompts final : prompt_source {
    prompt (*own)(request_index, draw&);
    bool salted;
    explicit user_prompts(const generated_prompts& g) : own(g.of), salted(g.salted) {}

    /// Throws std::invalid_argument if the function returns a prompt that cannot be sent.
    prompt at(std::size_t conversation, std::uint64_t seed) const {
        const auto i = static_cast<request_index>(conversation);
        const std::string given =
            printed("workload is generated: for request %lld its function ", i);
        generator random(seed, streams::places + conversation);
        draw drawn(random);
        prompt p;
        std::string why;
        try {
            p = own(i, drawn);
        } catch (const std::exception& e) {
            why = "throws: " + printable(e.what(), 200);
        } catch (...) {
            why = "throws";
        }
        if (why.empty() && p.text.empty()) why = "gives an empty prompt";
        if (why.empty() && !(p.output_tokens >= 0 && p.output_tokens <= 10000000))
            why = printed("asks for %lld output tokens: they run from 0 to 10000000",
                          static_cast<long long>(p.output_tokens));
        if (!why.empty()) refuse({given, why});
        return p;
    }
    source_facts facts() const override { return {.repeats_prompts = !salted}; }
    trace_item item(const trace_position& place, const trace_parameters& t) const override {
        const prompt p = at(place.conversation, t.seed);
        return {estimated_tokens(str(p.text)),
                static_cast<int>(static_cast<long long>(p.output_tokens))};
    }
    void fill(request_spec& r, const trace_position& place, const trace_parameters& t,
              const prompt_parameters& w) const override {
        const prompt p = at(place.conversation, t.seed);
        if (p.output_tokens > 0) r.max_tokens = static_cast<int>(p.output_tokens);
        r.force_length = r.force_length && r.max_tokens > 0;
        r.prompt = str(p.text);
        if (salted) add_salt(r.prompt, place, w);
    }
    double fresh_tokens(const trace_position& place, const trace_parameters& t,
                        const token_fit&) const override {
        return salted ? static_cast<double>(at(place.conversation, t.seed).text.size()) / 8 : 0;
    }
    void hash_conversation(fnv1a& h, std::size_t conversation,
                           const trace_parameters& t) const override {
        const prompt p = at(conversation, t.seed);
        add_text(h, str(p.text));
        h.add(p.output_tokens);
    }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
