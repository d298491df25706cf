// llmbench_sessions 1.0.0-rc.1: recorded sessions of agents as a workload. Include it after llmbench.hpp.
// Put together from src/ by ci/assemble.py: edit there, not here.
//
// Part one: declarations
//   [A] recorded sessions
// Part three: sessions as graphs of model calls, and their files
//
// SPDX-License-Identifier: MIT
//
// Copyright (c) 2026 the llmbench authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or
// substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

#ifndef LLMBENCH_HPP
#error "llmbench_sessions.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_SESSIONS_HPP
#define LLMBENCH_SESSIONS_HPP
static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_1.0.0rc.1") == 0,
              "llmbench_sessions.hpp is of 1.0.0-rc.1, but llmbench.hpp is " LLMBENCH_RELEASE_
              ": take both from one release");

// ===== [A] recorded sessions =====================================================================

namespace llmbench {
inline namespace v1 {

namespace detail {
/// Defined in this extension's implementation. If it is missing, the linker shows the name.
extern const extension* const include_llmbench_sessions_hpp_where_LLMBENCH_MAIN_is;
}  // namespace detail

/// A recorded model name, and the model used instead.
struct model_name {
    types::text recorded{};
    types::text asked{};
};
/// Recorded sessions of agents, each a graph of model calls: a step waits for others, then for a
/// tool, and its prompt continues an earlier one. Read from JSON lines of {"session", "step",
/// "after", "wait", "keeps", "prompt_tokens", "output_tokens"}; `llmbench convert` makes them from
/// other tools' recordings. Arrivals start sessions; users play one after the other, in the seed's
/// order. Prompts are synthetic and share prefixes as the recorded ones did.
struct in_llmbench_sessions_hpp::sessions {
    types::text path{};           ///< a file, or a folder of them
    time_span max_wait = time_span::from_seconds(60);  ///< longer waits are cut to this
    types::whole max_context = 0; ///< tokens; sessions with more are left out; 0: no limit
    types::list<model_name> models{};  ///< replacements for recorded names
    types::maybe<int> max_items{};     ///< number of sessions; default: all
    bool force_output = true;          ///< by ignore_eos; false: lengths are upper limits

    operator any_workload() const {
        return detail::extension_value{
            detail::box::make(*this),
            detail::include_llmbench_sessions_hpp_where_LLMBENCH_MAIN_is};
    }
};

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_SESSIONS_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_SESSIONS_IMPLEMENTED)
#define LLMBENCH_SESSIONS_IMPLEMENTED

#include <algorithm>  // find, max, min, any_of, max_element, sort
#include <cmath>  // llround
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t, uint64_t
#include <filesystem>
#include <functional>  // greater
#include <initializer_list>  // names of fields
#include <map>
#include <memory>  // shared_ptr
#include <queue>  // steps that nothing holds back
#include <string>
#include <string_view>
#include <system_error>  // error_code
#include <utility>  // move, pair, swap

#include <picojson.h>  // JSON of servers

// ===== [E] sessions as graphs of model calls, and what their readers share =======================

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

// ===== [E] recorded sessions, one JSON line per step =============================================

/// The format of another tool's recording, by the members in its first bytes, as named by `llmbench
/// convert`; "" if unknown.
inline const char* other_recording(const std::string& start) {
    using pair = std::pair<const char*, const char*>;
    if (start.find("\"step\"") != std::string::npos) return "";
    for (const auto& [name, format] :
         {pair{"\"requests\"", "weka"}, pair{"\"block_size\"", "weka"},
          pair{"\"chat_id\"", "bailian"}, pair{"\"input_length\"", "mooncake_agents"},
          pair{"\"resourceSpans\"", "otel"}, pair{"\"traceId\"", "otel"},
          pair{"\"trace_id\"", "otel"}})
        if (start.find(name) != std::string::npos) return format;
    return "";
}

/// Reads files of sessions into one corpus. Holds one session's lines at a time.
class session_reader final : public corpus_reader {
public:
    explicit session_reader(int max_context) : max_context_(max_context) {}

    void read(byte_stream& in) {
        in_ = &in;
        line_ = 1;
        if (const std::string format = other_recording(in.start()); !format.empty())
            fail("it is a recording of another format: `llmbench convert " +
                 printable(in.name(), 200) + " --from " + format +
                 " --out sessions.jsonl` makes lines of it, which sessions{} reads");
        each_json_value(in, [&](const auto&, picojson::value&& v, long long line) {
            line_ = line;
            add_line(checked(std::move(v)));
        });
        finish_session();
    }
    /// Returns the corpus; `name` is that of the files.
    session_corpus finished(const std::string& name) {
        const auto all = static_cast<long long>(corpus_.sessions.size()) + corpus_.left_out;
        if (2 * corpus_.left_out > all)
            refuse({name, printed(": %lld of %lld sessions have a prompt of over %d tokens "
                                  "(workload.max_context), and over half of them are too many to "
                                  "leave out", corpus_.left_out, all, max_context_)});
        return corpus_reader::finished(name);
    }

private:
    static constexpr std::size_t max_body_bytes = std::size_t{256} << 20;

    struct earlier_step {
        tree_prompt prompt{};
        int answer = 0;
    };
    struct named_step {
        std::string name{}, keeps{}, agent{};
        vector<std::string> after{};
        earlier_step other{};  // of another session, whose prompt it keeps
        int kept = 0, tokens = 0;
        bool has_agent = false;
        long long line = 0;
        recorded_step step{};

        bool is_after(const std::string& n) const {
            return std::find(after.begin(), after.end(), n) != after.end();
        }
    };
    using places_by_name = std::map<std::string, std::size_t>;
    using steps_by_name = std::map<std::string, earlier_step>;

    void add_line(const checked_object& o) {
        for (const char* name : {"session", "step"})
            if (o.text(name).empty()) o.refuse(name, "a text is needed");
        const std::initializer_list<std::string_view> known = {
            "session", "start", "shared", "step", "agent", "after", "wait", "at", "keeps",
            "prompt_tokens", "output_tokens", "model", "label", "body"};
        each_other_member(o.value(), known, [&](const std::string& name, const auto&) {
            o.refuse(name.c_str(),
                     "no field of a step, which are " + enumerated({known.begin(), known.end()}));
        });
        for (const char* name : {"agent", "model", "label"})
            if (o.has(name) && !o.present(name)->is<std::string>())
                o.refuse(name, "a text is allowed");
        if (o.has("after") && !o.present("after")->is<picojson::array>())
            o.refuse("after", "a list of steps' names is allowed");
        begin_session(o);
        count_step(named_.size());
        named_step s;
        s.line = line_;
        s.name = o.text("step");
        s.tokens = tokens(o, "prompt_tokens", 1);
        s.step.output_tokens = tokens(o, "output_tokens", 1);
        s.step.wait_s = o.number("wait", 0, longest_time_s, 0);
        s.step.not_before_s = o.number("at", 0, longest_time_s, 0);
        s.step.model = model(o.text("model"));
        s.step.label = label(o.text("label"));
        s.agent = o.text("agent");
        s.has_agent = o.has("agent");
        for (const picojson::value& a : array_member(o.value(), "after")) {
            if (!a.is<std::string>()) o.refuse("after", "a list of steps' names is allowed");
            s.after.push_back(a.get<std::string>());
        }
        if (s.after.size() > max_steps_before) o.refuse("after", "at most 255 steps are allowed");
        if (o.has("keeps")) add_kept(o, s);
        if (o.has("body")) s.step.body = body_of(o);
        named_.push_back(std::move(s));
    }
    /// Session data is on the first line, and no other line may differ.
    void begin_session(const checked_object& o) {
        const std::string name = o.text("session");
        const double start_s = o.number("start", 0, latest_stamp_s, -1);
        if (o.has("shared") && !o.present("shared")->is<bool>())
            o.refuse("shared", "true or false is allowed");
        const bool shares = o.is_true("shared");
        if (named_.empty() || name != session_) {
            finish_session();
            session_ = name;
            start_s_ = start_s;
            shares_ = shares;
            if (!done_.emplace(name, steps_by_name()).second)
                fail("session " + quoted(name) + " goes on behind another one: its steps must "
                     "stand together");
        }
        if (o.has("start") && start_s != start_s_)
            o.refuse("start", "what the first line of the session says is allowed");
        if (o.has("shared") && shares != shares_)
            o.refuse("shared", "what the first line of the session says is allowed");
    }
    void add_kept(const checked_object& o, named_step& s) const {
        const picojson::array& k = array_member(o.value(), "keeps");
        const bool is_other = k.size() == 3;
        if ((k.size() != 2 && !is_other) || !k[0].is<std::string>() ||
            (is_other && !k[2].is<std::string>()))
            o.refuse("keeps", "a step's name and a number of tokens are allowed, and the name of "
                              "its session if that is another one");
        const std::string& name = k[0].get<std::string>();
        s.kept = o.whole_of<int>(k[1], "keeps", 0, 1e7);
        if (s.kept > s.tokens)
            fail(printed("prompt_tokens is %d, and keeps %d of another prompt: a prompt is as "
                         "long as what it keeps at least", s.tokens, s.kept));
        if (!is_other) {
            s.keeps = name;
            return;
        }
        const std::string& session = k[2].get<std::string>();
        const earlier_step* of = shares_ ? shared_step(session, name) : nullptr;
        if (!of)
            fail("keeps names step " + quoted(name) + " of session " + quoted(session) +
                 ": both sessions must be \"shared\", and that one must stand before this one");
        s.other = *of;
    }
    const earlier_step* shared_step(const std::string& session, const std::string& step) const {
        const auto in = done_.find(session);
        if (in == done_.end()) return nullptr;
        const auto at = in->second.find(step);
        return at == in->second.end() ? nullptr : &at->second;
    }
    std::uint32_t body_of(const checked_object& o) {
        const picojson::value& body = *o.present("body");
        if (!body.is<picojson::object>()) o.refuse("body", "an object is allowed");
        for (const auto& [name, v] : body.get<picojson::object>()) {
            const std::string why = fault_of_field("body", printable(name, 60), v);
            if (!why.empty()) fail(why);
        }
        if (body.get<picojson::object>().empty()) return 0;
        std::string fields(trimmed(exact_json(body, member_text(in_->value_text(), "body"))));
        fields = fields.substr(1, fields.size() - 2);
        body_bytes_ += fields.size();
        if (body_bytes_ > max_body_bytes) fail("all bodies together have over 256 MiB");
        corpus_.bodies.push_back("," + fields);
        return static_cast<std::uint32_t>(corpus_.bodies.size() - 1);
    }
    /// Orders steps after those that they wait for and keep, else as in the file.
    void finish_session() {
        if (named_.empty()) return;
        places_by_name by_name;
        for (std::size_t i = 0; i < named_.size(); ++i)
            if (!by_name.emplace(named_[i].name, i).second)
                in_->refuse(named_[i].line, "step " + quoted(named_[i].name) +
                                                " is there twice in its session");
        vector<std::size_t> waits(named_.size());
        vector<vector<std::size_t>> next(named_.size());
        for (std::size_t i = 0; i < named_.size(); ++i) {
            const auto stands_behind = [&](const char* field, const std::string& name) {
                const auto found = by_name.find(name);
                if (found == by_name.end())
                    in_->refuse(named_[i].line, field + (" names " + quoted(name)) +
                                                    ", and the session has no such step");
                next[found->second].push_back(i);
                ++waits[i];
            };
            for (const std::string& a : named_[i].after) stands_behind("after", a);
            if (!named_[i].keeps.empty()) stands_behind("keeps", named_[i].keeps);
        }
        std::priority_queue<std::size_t, vector<std::size_t>, std::greater<>> free;
        for (std::size_t i = 0; i < named_.size(); ++i)
            if (waits[i] == 0) free.push(i);
        vector<std::uint32_t> place(named_.size());
        vector<std::size_t> order;
        vector<recorded_step> steps;
        while (!free.empty()) {
            const std::size_t i = free.top();
            free.pop();
            place[i] = static_cast<std::uint32_t>(steps.size());
            order.push_back(i);
            for (const std::size_t n : next[i])
                if (--waits[n] == 0) free.push(n);
            add_named(named_[i], by_name, place, steps);
        }
        for (std::size_t i = 0; i < named_.size(); ++i)
            if (waits[i] > 0)
                in_->refuse(named_[i].line, "step " + quoted(named_[i].name) +
                                                " waits for itself, over what it is after or keeps");
        add(steps, order);
        named_.clear();
    }
    void add_named(const named_step& n, const places_by_name& by_name,
                   const vector<std::uint32_t>& place, vector<recorded_step>& steps) {
        recorded_step s = n.step;
        for (const std::string& a : n.after) s.after.push_back(place[by_name.at(a)]);
        if (!s.after.empty()) s.goes_on_from = static_cast<int>(s.after.back());
        earlier_step from = n.other;
        if (!n.keeps.empty()) {
            const std::uint32_t behind = place[by_name.at(n.keeps)];
            from = {steps[behind].prompt, steps[behind].output_tokens};
            if (n.is_after(n.keeps)) s.goes_on_from = static_cast<int>(behind);
        }
        if (n.kept > from.prompt.tokens + from.answer)
            in_->refuse(n.line, printed("keeps %d tokens of a step that has %d and an answer of %d",
                                        n.kept, from.prompt.tokens, from.answer));
        s.prompt = corpus_.prompts.branch(from.prompt.node, std::min(n.kept, from.prompt.tokens),
                                          n.tokens);
        s.at_s = s.end_s = static_cast<double>(steps.size());
        if (shares_) done_[session_][n.name] = {s.prompt, s.output_tokens};
        steps.push_back(std::move(s));
    }
    void add(vector<recorded_step>& steps, const vector<std::size_t>& order) {
        bool is_too_long = false, has_agents = false;
        for (const recorded_step& s : steps)
            is_too_long |= max_context_ > 0 && s.prompt.tokens > max_context_;
        for (const named_step& n : named_) has_agents |= n.has_agent;
        if (is_too_long) {
            ++corpus_.left_out;
            return;
        }
        if (has_agents) place_by_agents(steps, order);
        else find_lines(steps, corpus_.prompts);
        add_session(corpus_, steps, {.start_s = start_s_, .shares = shares_});
    }
    /// An agent's steps are a line, one deeper than that of the first step that its first one is
    /// after; the agent of the very first step is the main one.
    void place_by_agents(vector<recorded_step>& steps, const vector<std::size_t>& order) const {
        std::map<std::string, step_place> next;
        for (std::size_t i = 0; i < order.size(); ++i) {
            const vector<std::uint32_t>& after = steps[i].after;
            const int above = after.empty() ? 0 : steps[after[0]].place.depth;
            const auto line = static_cast<std::uint32_t>(next.size());
            const auto at = next.emplace(named_[order[i]].agent,
                                         step_place{line, 0, i == 0 ? 0 : std::min(above + 1, 255)});
            steps[i].place = at.first->second;
            ++at.first->second.turn;
        }
    }

    const int max_context_;
    std::size_t body_bytes_ = 0;
    std::string session_{};
    double start_s_ = -1;
    bool shares_ = false;
    vector<named_step> named_{};           // of the current session
    std::map<std::string, steps_by_name> done_{};  // by session: steps of those that share
};

// ===== [E] recorded sessions as traffic ==========================================================
// A source of traffic; what a source can do stands in traffic_source.hpp.

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

// ===== [E] recorded sessions, read from their files ==============================================

/// In a folder, all files by name.
inline vector<std::string> files_at(const std::string& path, const char* field) {
    vector<std::string> files{path};
    std::error_code problem;
    if (std::filesystem::is_directory(path, problem)) {
        files.clear();
        for (const auto& entry : std::filesystem::directory_iterator(path, problem))
            if (entry.is_regular_file()) files.push_back(entry.path().string());
        std::sort(files.begin(), files.end());
        if (problem) refuse({field, ", ", path, ", cannot be read"});
    }
    return files;
}
inline session_corpus corpus_of(const sessions& w) {
    const std::string path = str(w.path);
    session_reader reader(static_cast<int>(w.max_context));
    for (const std::string& file : files_at(path, "workload.path")) {
        byte_stream in = bytes_of(file, "workload.path");
        reader.read(in);
    }
    return reader.finished(path);
}

inline void read_sessions_of_files(const box& said, const scenario&, std::uint64_t,
                                   workload_files& into) {
    const sessions& w = *said.get<sessions>();
    check_sessions(w);
    into.of_extension = new_shared<const read_sessions>(w, corpus_of(w));
}
inline constinit const extension sessions_played{
    .name = "sessions", .read = read_sessions_of_files, .plays_sessions = true};
constinit const extension* const include_llmbench_sessions_hpp_where_LLMBENCH_MAIN_is =
    &sessions_played;

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_SESSIONS_IMPLEMENTED
