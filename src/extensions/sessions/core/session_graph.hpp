// sessions as graphs of model calls, and what their readers share
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/traffic/prefix_tree.hpp"
#include "core/traffic/places.hpp"

#include <algorithm>  // find, max, min
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <string>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr std::size_t max_steps_before = 255;  // maximum that one step waits for
inline constexpr std::size_t max_corpus_steps = 2000000;
inline constexpr int no_parent = -1;

/// The agent of a step, for reports only.
struct step_place {
    std::uint32_t line = 0, turn = 0;
    int depth = 0;
};

/// One model call of a session, as recorded, and its place in the session's graph.
struct recorded_step {
    double at_s = 0, end_s = 0;  // since the session's zero; end < at: unknown
    std::uint32_t agent = 0;     // 0: the main one
    std::uint32_t model = 0, label = 0, body = 0;  // indices in the corpus
    tree_prompt prompt{};
    int output_tokens = 0;
    int quotes = no_parent;  // an earlier step whose answer the prompt contains, if known
    vector<std::uint32_t> after{};  // the steps that it waits for
    int goes_on_from = no_parent;        // the step with the shared start of its prompt
    double wait_s = 0;
    double not_before_s = 0;  // since its session's start
    step_place place{};
    bool has_ended() const { return end_s >= at_s; }
};

/// A step of a corpus. The steps it waits for are in `corpus.after`.
struct session_step {
    tree_prompt prompt{};
    int output_tokens = 0;
    float wait_s = 0, at_s = 0;
    std::uint32_t first_after = 0, first_next = 0;
    std::uint8_t after = 0, depth = 0;  // number of them; nesting of its line
    std::uint16_t next = 0, line = 0, turn = 0;
    std::uint8_t model = 0, label = 0;
    std::uint32_t body = 0;
};
struct session_entry {
    std::uint32_t first = 0, steps = 0;
    double start_s = -1;  // in the recording; below 0: unknown
    bool shares = false;  // its text is shared with other sessions
};

/// All sessions of a recording. Steps follow those that they wait for.
struct session_corpus {
    prefix_tree prompts{};
    vector<session_step> steps{};
    vector<std::uint32_t> after{}, next{};  // steps of the same session
    vector<session_entry> sessions{};
    vector<std::string> models{""}, labels{""}, bodies{""};
    long long left_out = 0;  // sessions with too long prompts
    std::size_t max_steps = 1;
    int deepest = 0;

    std::size_t bytes() const {
        return prompts.nodes.size() * sizeof(prefix_node) + steps.size() * sizeof(session_step) +
               (after.size() + next.size()) * sizeof(std::uint32_t) +
               sessions.size() * sizeof(session_entry);
    }
};

/// Finds the lines of a graph whose steps follow those they wait for. A step that keeps most of an
/// earlier one stays on its line (of several, the one whose branch ends last), as does a step that
/// waits for the end of a line that nobody continues: a compaction.
inline void find_lines(vector<recorded_step>& steps, const prefix_tree& tree) {
    const std::size_t n = steps.size();
    const auto behind = [&](std::size_t i) {
        return static_cast<std::size_t>(steps[i].goes_on_from);
    };
    const auto is_first = [&](std::size_t i) { return steps[i].goes_on_from == no_parent; };
    vector<double> ends(n);  // of the branch begun by a step
    for (std::size_t i = n; i-- > 0;) {
        ends[i] = std::max({ends[i], steps[i].end_s, steps[i].at_s});
        if (!is_first(i)) ends[behind(i)] = std::max(ends[behind(i)], ends[i]);
    }
    vector<std::size_t> heir(n, n);
    vector<int> most(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
        if (is_first(i)) continue;
        const std::size_t p = behind(i);
        const int has = tree.common(steps[i].prompt, steps[p].prompt);
        if (steps[i].agent != steps[p].agent || 2 * has < steps[p].prompt.tokens) continue;
        if (heir[p] == n || has > most[p] || (has == most[p] && ends[i] > ends[heir[p]])) {
            heir[p] = i;
            most[p] = has;
        }
    }
    vector<std::size_t> last{0};  // of each line
    for (std::size_t i = 1; i < n; ++i) {
        const step_place from = is_first(i) ? step_place{} : steps[behind(i)].place;
        const std::size_t tip = last[from.line];
        const vector<std::uint32_t>& after = steps[i].after;
        const bool ends_there = heir[tip] == n && steps[tip].agent == steps[i].agent &&
                                std::find(after.begin(), after.end(), tip) != after.end();
        if (!is_first(i) && (heir[behind(i)] == i || ends_there)) {
            steps[i].place = {from.line, steps[tip].place.turn + 1, from.depth};
            last[from.line] = i;
        } else {
            steps[i].place = {static_cast<std::uint32_t>(last.size()), 0,
                              std::min(from.depth + 1, 255)};
            last.push_back(i);
        }
    }
}

/// Adds a session with a valid graph: steps follow those that they wait for. Sets its steps.
inline void add_session(session_corpus& c, const vector<recorded_step>& steps, session_entry e) {
    const auto first = e.first = static_cast<std::uint32_t>(c.steps.size());
    e.steps = static_cast<std::uint32_t>(steps.size());
    vector<vector<std::uint32_t>> next(steps.size());
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
        const recorded_step& of = steps[i];
        for (const std::uint32_t a : of.after) next[a].push_back(i);
        session_step s;
        s.prompt = of.prompt;
        s.output_tokens = of.output_tokens;
        s.wait_s = static_cast<float>(of.wait_s);
        s.at_s = static_cast<float>(of.not_before_s);
        s.first_after = static_cast<std::uint32_t>(c.after.size());
        s.after = static_cast<std::uint8_t>(of.after.size());
        s.depth = static_cast<std::uint8_t>(of.place.depth);
        c.deepest = std::max(c.deepest, of.place.depth);
        s.line = static_cast<std::uint16_t>(of.place.line);
        s.turn = static_cast<std::uint16_t>(of.place.turn);
        s.model = static_cast<std::uint8_t>(of.model);
        s.label = static_cast<std::uint8_t>(of.label);
        s.body = of.body;
        c.after.insert(c.after.end(), of.after.begin(), of.after.end());
        c.steps.push_back(s);
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
        session_step& s = c.steps[first + i];
        s.first_next = static_cast<std::uint32_t>(c.next.size());
        s.next = static_cast<std::uint16_t>(next[i].size());
        c.next.insert(c.next.end(), next[i].begin(), next[i].end());
    }
    c.max_steps = std::max(c.max_steps, steps.size());
    c.sessions.push_back(e);
}

/// A reader's position in its file, and the corpus that it fills.
class corpus_reader {
public:
    /// Returns the corpus; `name` is that of the files.
    session_corpus finished(const std::string& name) {
        if (corpus_.sessions.empty() && corpus_.left_out == 0)
            refuse({name, ": it holds no sessions"});
        return std::move(corpus_);
    }

protected:
    corpus_reader() = default;
    ~corpus_reader() = default;

    static std::string quoted(const std::string& n) { return json_quoted(printable(n, 60)); }
    [[noreturn]] void fail(const std::string& why) const { in_->refuse(line_, why); }
    /// A value of the current line.
    checked_object checked(picojson::value v) {
        held_ = std::move(v);
        return {held_, in_->name() + printed(":%lld", line_), ""};
    }
    static int tokens(const checked_object& o, const char* name, int least) {
        if (!o.has(name)) o.refuse(name, "a whole number of tokens is needed");
        return o.whole<int>(name, least, 1e7, 0);
    }
    /// Counts a step of a session with so many.
    void count_step(std::size_t steps) {
        if (steps == max_session_steps) fail("the session has over 10000 steps");
        if (read_steps_++ == max_corpus_steps)
            fail("the files have over 2000000 steps: cut them first");
    }
    /// Adds a session without line numbers.
    void add(vector<recorded_step>& steps, const session_entry& of) {
        find_lines(steps, corpus_.prompts);
        add_session(corpus_, steps, of);
    }
    std::uint32_t model(const std::string& n) { return place_of_name(corpus_.models, n); }
    std::uint32_t label(const std::string& n) { return place_of_name(corpus_.labels, n); }

    byte_stream* in_ = nullptr;
    long long line_ = 0;
    session_corpus corpus_{};

private:
    std::uint32_t place_of_name(vector<std::string>& names, const std::string& n) const {
        const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), n) -
                                                 names.begin());
        if (at == names.size()) names.push_back(n);
        if (at == max_names) fail("over 255 models, or labels");
        return static_cast<std::uint32_t>(at);
    }
    static constexpr std::size_t max_names = 256;
    picojson::value held_{};
    std::size_t read_steps_ = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
