// recorded sessions as traffic
// A source of traffic; what a source can do stands in traffic_source.hpp.
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/files/dialogues.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/traffic_source.hpp"
#include "core/planning/workload.hpp"
#include "extensions/sessions/api.hpp"
#include "extensions/sessions/core/session_graph.hpp"

#include <algorithm>  // any_of, max, max_element, min, find
#include <cmath>  // llround
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t, uint64_t
#include <memory>  // shared_ptr
#include <string>
#include <utility>  // move, swap

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The last words of a text, as they stand.
inline std::string last_words(const std::string& text, int words) {
    std::size_t from = text.size();
    for (int n = 0; n < words && from > 0 && from != text.npos; ++n)
        from = text.find_last_of(' ', from - 1);
    return from == text.npos ? text : text.substr(std::min(from + 1, text.size()));
}

/// The sessions of a corpus in the order of the seed, repeated if needed. A step's prompt is one
/// user message: recordings do not use the server's answers.
struct recorded_sessions final : prompt_source {
    std::shared_ptr<const session_corpus> corpus{};
    std::size_t begin = 0;  // a replay's warm-up begins elsewhere
    double max_wait_s = 0;
    std::shared_ptr<const vector<std::uint32_t>> order{};  // of the sessions played
    vector<std::string> models{};                          // by model index of the corpus
    std::string name{};          // of the file
    std::string left_out_by{};   // a server's model, and its number
    long long left_out = 0;      // because of that model

    source_facts facts() const override {
        return {.most_turns = corpus->max_steps,
                .is_graph = true,
                .plays_sessions = true,
                .deepest = corpus->deepest,
                .labels = corpus->labels.size() > 1 ? &corpus->labels : nullptr};
    }
    const session_entry& at(std::size_t conversation) const {
        return corpus->sessions[(*order)[(begin + conversation) % order->size()]];
    }
    std::size_t turns(std::size_t conversation, const trace_parameters&) const override {
        return at(conversation).steps;
    }
    const session_step& recorded(const trace_position& place) const {
        return corpus->steps[at(place.conversation).first + place.turn];
    }
    graph_step step(const trace_position& place, const trace_parameters&) const override {
        const session_step& s = recorded(place);
        const auto after = corpus->after.begin() + s.first_after;
        const auto next = corpus->next.begin() + s.first_next;
        return {.after = {after, after + s.after},
                .next = {next, next + s.next},
                .wait_s = std::min<double>(s.wait_s, max_wait_s),
                .at_s = s.at_s,
                .max_wait_s = max_wait_s,
                .turn = s.turn,
                .depth = s.depth,
                .line = s.line,
                .label = s.label};
    }
    trace_item item(const trace_position& place, const trace_parameters&) const override {
        const session_step& s = recorded(place);
        return {s.prompt.tokens, s.output_tokens};
    }
    /// A repeated session has other words, except for those shared with other sessions.
    void fill(request_spec& r, const trace_position& place, const trace_parameters&,
              const prompt_parameters& w) const override {
        const session_step& s = recorded(place);
        const std::uint64_t play = place.conversation / order->size();
        const bool is_new = play > 0 && !at(place.conversation).shares;
        const prompt_parameters words{is_new ? mixed(w.salt ^ mixed(play)) : w.salt, w.fit,
                                      w.answers};
        r.max_tokens = s.output_tokens;
        append_prompt(r.prompt, corpus->prompts, s.prompt, 1,
                      w.fit.words_of_prompt(s.prompt.tokens), words);
        if (r.server_history) go_on(r, place, w);
        if (w.fit.as_ids) r.token_ids = id_list(r.prompt);
        if (!models[s.model].empty()) r.model = models[s.model];
        r.extra_fields += corpus->bodies[s.body];
    }
    /// Goes on from the answer to the step before in its chain, which stands for the recorded one: if
    /// the prompt keeps what that step was asked, only what is behind its answer is sent.
    void go_on(request_spec& r, const trace_position& place, const prompt_parameters& w) const {
        const session_step& s = recorded(place);
        for (std::size_t i = std::min(place.turn, w.answers.size()); i-- > 0;) {
            const session_step& before = recorded({place.conversation, i, place.first});
            if (before.line != s.line) continue;
            const bool keeps = corpus->prompts.common(s.prompt, before.prompt) * 10 >=
                               before.prompt.tokens * 9;
            if (!keeps || w.answers[i].empty()) return;
            const int known = before.prompt.tokens + before.output_tokens;
            r.previous_response = w.answers[i];
            r.prompt = last_words(r.prompt, std::max(1, w.fit.words_in(s.prompt.tokens - known)));
            return;
        }
    }
    double fresh_tokens(const trace_position& place, const trace_parameters&,
                        const token_fit& fit) const override {
        const session_step& s = recorded(place);
        const bool is_again = place.conversation >= order->size();
        if (is_again && at(place.conversation).shares) return 0;
        return std::max(0, fit.words_of_prompt(s.prompt.tokens) - fit.words_in(s.prompt.kept)) *
               fit.per_word;
    }
    void hash_all(fnv1a& h, const trace_parameters&) const override {
        const session_corpus& c = *corpus;
        h.add(std::llround(max_wait_s * 1e6));
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
    void hash_conversation(fnv1a&, std::size_t, const trace_parameters&) const override {}
    std::string text(bool is_forced) const {
        const session_corpus& c = *corpus;
        double steps = 0;
        int longest = 0;
        for (const std::uint32_t i : *order) {
            const session_entry& s = c.sessions[i];
            steps += s.steps;
            for (std::uint32_t k = 0; k < s.steps; ++k)
                longest = std::max(longest, c.steps[s.first + k].prompt.tokens);
        }
        const auto n = static_cast<double>(order->size());
        return printed("%.0f sessions of ", n) + name +
               (c.left_out > 0 ? printed(", %lld left out by max_context", c.left_out) : "") +
               (left_out > 0 ? printed(", %lld left out by ", left_out) + left_out_by : "") +
               printed(", %.1f steps each, prompts of up to %d tokens, waits of up to %.9g s",
                       steps / n, longest, max_wait_s) +
               (is_forced ? "" : ", answers as long as they get") +
               "; answers of the server are not fed back, so none of their tokens is found cached";
    }
    /// Leaves out whole sessions with a step too long for a model.
    std::shared_ptr<const shorter_source> without_long(const room_of_models& room_of,
                                                       bool is_forced) const override {
        vector<int> room;
        for (const std::string& asked : models) room.push_back(room_of(asked));
        vector<std::uint32_t> fits;
        for (const std::uint32_t i : *order) {
            const auto first = corpus->steps.begin() + corpus->sessions[i].first;
            const bool is_out = std::any_of(first, first + corpus->sessions[i].steps,
                                            [&](const session_step& s) {
                const int most = room[s.model];
                return most > 0 && s.prompt.tokens + s.output_tokens > most;
            });
            if (!is_out) fits.push_back(i);
        }
        const auto all = static_cast<long long>(order->size());
        const auto shorter = new_shared<recorded_sessions>(*this);
        shorter->left_out = all - static_cast<long long>(fits.size());
        if (shorter->left_out == 0) return nullptr;
        const int largest = *std::max_element(room.begin(), room.end());
        shorter->left_out_by = printed("the server's max_model_len of %d", largest);
        if (2 * (shorter->left_out + corpus->left_out) > all + corpus->left_out)
            refuse({"workload.path, ", name,
                    printed(": %lld of %lld sessions have a step for which the server has no room "
                            "(its max_model_len is %d tokens, prompt and answer), and over half of "
                            "them are too many to leave out", shorter->left_out,
                            all + corpus->left_out, largest)});
        shorter->order = new_shared<const vector<std::uint32_t>>(std::move(fits));
        return new_shared<const shorter_source>(
            shorter_source{shorter, shorter->text(is_forced), shorter->left_out});
    }
};

/// The sessions in the order of the seed.
inline vector<std::uint32_t> order_of_seed(std::size_t sessions, std::uint64_t seed) {
    vector<std::uint32_t> order(sessions);
    for (std::size_t i = 0; i < sessions; ++i) order[i] = static_cast<std::uint32_t>(i);
    generator random(seed, streams::turns);
    for (std::size_t i = sessions; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    return order;
}
inline vector<std::uint32_t> order_of_starts(const session_corpus& c) {
    vector<std::uint32_t> order(c.sessions.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        const double at = c.sessions[a].start_s, other = c.sessions[b].start_s;
        return at != other ? at < other : a < b;
    });
    return order;
}
/// The starts of the first `most` sessions, as a trace of session starts.
inline recorded_trace trace_of_starts(const session_corpus& c, std::size_t most,
                                      const std::string& name) {
    recorded_trace t{.format = "sessions"};
    for (const std::uint32_t i : order_of_starts(c)) {
        const double start_s = c.sessions[i].start_s;
        if (start_s < 0)
            refuse({name, ": a replay starts sessions when they were recorded to begin, which "
                    "their lines say as \"start\", and these do not"});
        if (t.rows.size() < most) t.rows.push_back({.at_s = start_s});
    }
    for (std::size_t i = t.rows.size(); i-- > 0;) t.rows[i].at_s -= t.rows[0].at_s;
    return t;
}

/// Checks that do not need the files.
inline void check_sessions(const sessions& w) {
    if (w.path.empty()) refuse({"workload.path is empty: sessions must name a file or a folder"});
    check_numbers({{"workload.max_wait", w.max_wait.seconds(), 0, 86400, " s"},
                   {"workload.max_context", static_cast<double>(w.max_context), 0, 1e7, "",
                    "runs from 1 to 10000000, or is 0 for no limit"},
                   {"workload.max_items", w.max_items ? *w.max_items : 1.0, 1, 1e6}});
}
class read_sessions final : public read_workload {
public:
    read_sessions(sessions said, session_corpus corpus)
        : w_(std::move(said)),
          corpus_(new_shared<const session_corpus>(std::move(corpus))) {}
    maybe<recorded_trace> starts(const arrival_data& a) const override {
        if (!(a.file == w_.path))
            refuse({"workload is sessions of ", str(w_.path), " and arrivals is a replay of ",
                    str(a.file), ": sessions begin when their own recording says"});
        if (a.unit_s != 0)
            refuse({"arrivals is ", arrival_text(a), " and workload is sessions: the unit of "
                    "their times is that of their format"});
        const std::size_t most =
            w_.max_items ? static_cast<std::size_t>(*w_.max_items) : max_corpus_steps;
        return trace_of_starts(*corpus_, most, str(a.file));
    }
    plan_part planned(const scenario& s, const arrival_data& a, std::uint64_t seed) const override {
        check_no_max_tokens(s.options);
        const auto most = static_cast<std::size_t>(w_.max_items ? *w_.max_items : 0);
        const bool as_recorded = a.kind == arrival_kind::replay;
        vector<std::uint32_t> order = as_recorded
                                               ? order_of_starts(*corpus_)
                                               : order_of_seed(corpus_->sessions.size(), seed);
        if (most > 0 && most < order.size()) order.resize(most);
        const auto source = new_shared<recorded_sessions>();
        source->corpus = corpus_;
        source->max_wait_s = w_.max_wait.seconds();
        source->order = new_shared<const vector<std::uint32_t>>(std::move(order));
        source->models.resize(corpus_->models.size());
        source->name = file_name(str(w_.path));
        for (const model_name& m : w_.models) {
            const vector<std::string>& all = corpus_->models;
            const auto at = std::find(all.begin(), all.end(), str(m.recorded));
            if (at == all.end())
                refuse({"workload.models names ", str(m.recorded), ", and no step of the recording "
                        "is of such a model"});
            source->models[static_cast<std::size_t>(at - all.begin())] = str(m.asked);
        }
        if (const field_names given = given_fields(s.options); !given.empty())
            for (const std::string& body : corpus_->bodies) {
                picojson::value own;
                if (body.empty() || !parse_json("{" + body.substr(1) + "}", own)) continue;
                for (const auto& [name, v] : own.get<picojson::object>())
                    if (given.count(name) > 0)
                        refuse({"a step's body sets \"", printable(name, 60), "\" and so does "
                                "options.extra_body: a field must not stand twice"});
            }
        // The last ones warm up, so that all others keep their starts.
        if (as_recorded) {
            if (s.warmup.requests() > 0)
                refuse({printed("workload is sessions and arrivals is a replay of them, with a "
                                "warm-up of %lld requests: they begin when they did, so give a "
                                "time, or 0",
                                static_cast<long long>(s.warmup.requests()))});
            const std::size_t n = source->order->size();
            source->begin = (n - warmup_sends(a, 0, s.warmup.seconds()) % n) % n;
        }
        return {.workload_text = source->text(w_.force_output),
                .source = source,
                .forces_length = w_.force_output || s.options.ignore_eos};
    }

private:
    const sessions w_;
    const std::shared_ptr<const session_corpus> corpus_;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
