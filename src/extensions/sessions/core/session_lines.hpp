// recorded sessions, one JSON line per step
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/dates.hpp"
#include "core/files/dialogues.hpp"
#include "core/traffic/prefix_tree.hpp"
#include "extensions/sessions/core/session_graph.hpp"

#include <algorithm>  // find, min
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <functional>  // greater
#include <initializer_list>  // names of fields
#include <map>
#include <queue>  // steps that nothing holds back
#include <string>
#include <string_view>
#include <utility>  // move, pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

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

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
