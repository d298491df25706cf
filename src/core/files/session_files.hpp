// recorded sessions, in the formats of others and in ours
#pragma once

#include "core/base/checked_json.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/genai_spans.hpp"
#include "core/files/prefix_tree.hpp"
#include "core/files/session_graph.hpp"

#include <algorithm>  // find, max, min, sort
#include <cstdint>  // uint32_t, uint64_t
#include <map>
#include <queue>  // steps that nothing holds back
#include <string>
#include <utility>  // move, pair
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Reads files of sessions into one corpus. Of a file no more is held than one request's text.
class session_reader {
public:
    explicit session_reader(int max_context) : max_context_(max_context) {}

    void read(byte_stream& in) {
        in_ = &in;
        for (in.skip_space(); in.peek() >= 0; in.skip_space()) read_object();
        finish_ours();
        finish_chats();
    }
    /// All that was read; `name` is that of the files.
    session_corpus finished(const std::string& name) {
        finish_spans(name);
        const auto all = static_cast<long long>(corpus_.sessions.size()) + corpus_.left_out;
        if (all == 0) refuse({name, ": it holds no sessions"});
        if (2 * corpus_.left_out > all)
            refuse({name, printed(": %lld of %lld sessions have a prompt of over %d tokens "
                                  "(workload.max_context), and over half of them are too many to "
                                  "leave out", corpus_.left_out, all, max_context_)});
        return std::move(corpus_);
    }

private:
    using object = picojson::object;
    static constexpr std::size_t most_elements = 1000000, most_names = 256;
    static constexpr std::size_t most_body_bytes = std::size_t{256} << 20;

    // ---- any object: its numbers and texts are kept, its requests are read one by one

    void read_object() {
        line_ = in_->line();
        if (in_->peek() != '{') refuse_format();
        object fields;
        bool has_requests = false, has_spans = false;
        steps_.clear();
        each_json_member(
            *in_,
            [&](const std::string& key, picojson::value&& v, long long line) {
                if (key == "requests") {
                    if (!has_requests) begin_weka(fields);
                    has_requests = true;
                    line_ = line;
                    add_weka(v, 0, "", 0);
                    return;
                }
                if (key == "resourceSpans") {
                    has_spans = true;
                    line_ = line;
                    for (const picojson::value& scope : array_member(v, "scopeSpans"))
                        for (const picojson::value& s : array_member(scope, "spans")) add_span(s);
                    return;
                }
                picojson::value& list = fields[key];
                if (!list.is<picojson::array>()) list = picojson::value(picojson::array());
                picojson::array& all = list.get<picojson::array>();
                if (all.size() == most_elements) fail(key + " is a list of over 1000000");
                all.push_back(std::move(v));
            },
            [&](const std::string& key, picojson::value&& v) { fields[key] = std::move(v); });
        const checked_object o = checked(picojson::value(fields));
        if (has_requests) {
            if (number(o, "block_size", 1, 1e6, block_tokens_) != block_tokens_)
                fail("block_size stands behind requests: it must come before them");
            finish_weka();
        } else if (has_spans) {
            return;
        } else if (o.has("traceId") || o.has("trace_id") || o.at("context").has("trace_id")) {
            add_span(o.value());
        } else if (o.has("session") && o.has("step")) {
            add_ours(o);
        } else if (o.has("input_length") && o.has("timestamp")) {
            add_chat(o);
        } else {
            refuse_format();
        }
    }
    [[noreturn]] void refuse_format() const {
        fail("no known session begins so: known are Weka (requests), Bailian (chat_id, "
             "input_length), Mooncake (timestamp, input_length), OpenTelemetry (resourceSpans, "
             "traceId, context.trace_id) and lines with session and step");
    }
    static std::string quoted(const std::string& n) { return json_quoted(printable(n, 60)); }
    [[noreturn]] void fail(const std::string& why) const { in_->refuse(line_, why); }
    checked_object checked(const picojson::value& v) {
        held_ = v;
        return {held_, in_->name() + printed(":%lld", line_), ""};
    }
    static double number(const checked_object& o, const char* name, double least, double most,
                         double otherwise) {
        return o.number(name, least, most, otherwise);
    }
    int tokens(const checked_object& o, const char* name, int least) const {
        if (!o.has(name)) o.refuse(name, "a whole number of tokens is needed");
        return o.whole<int>(name, least, 1e7, 0);
    }
    void check_room() const {
        if (steps_.size() == most_session_steps) fail("the session has over 10000 steps");
        if (read_steps_ == most_corpus_steps)
            fail("the files have over 2000000 steps: cut them first");
    }
    std::uint32_t place_of_name(std::vector<std::string>& names, const std::string& n) const {
        const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), n) -
                                                 names.begin());
        if (at == names.size()) names.push_back(n);
        if (at == most_names) fail("over 255 models, or labels");
        return static_cast<std::uint32_t>(at);
    }
    std::uint32_t model(const std::string& n) { return place_of_name(corpus_.models, n); }
    std::uint32_t label(const std::string& n) { return place_of_name(corpus_.labels, n); }
    /// The prompt that so many blocks begin.
    tree_prompt prompt_of(const checked_object& o, int block_tokens, int all, block_index& index) {
        std::vector<std::uint64_t> ids;
        for (const picojson::value& id : array_member(o.value(), "hash_ids"))
            ids.push_back(static_cast<std::uint64_t>(o.whole_of<long long>(
                id, "hash_ids", -most_count, most_count)));
        tree_prompt p;
        if (!index.add(corpus_.prompts, ids, block_tokens, all, p))
            fail("the prompts have over 20000000 blocks: cut the file first");
        return p;
    }
    void add(const std::vector<recorded_step>& steps, const std::vector<step_links>& links,
             double start_s, bool shares) {
        corpus_.format += corpus_.format.empty() ? format_ : "";
        for (const recorded_step& s : steps)
            if (max_context_ > 0 && s.prompt.tokens > max_context_) {
                ++corpus_.left_out;
                return;
            }
        add_session(corpus_, steps, links, start_s, shares);
    }

    // ---- Weka: an object a session, the graph is derived

    void begin_weka(const object& fields) {
        const checked_object o = checked(picojson::value(fields));
        const int size = o.whole<int>("block_size", 1, 1e6, 64);
        is_shared_ = o.text("hash_id_scope") == "global";
        if (is_shared_ && shared_block_tokens_ != 0 && shared_block_tokens_ != size)
            fail(printed("block_size is %d and was %d: blocks of one scope have one size", size,
                         shared_block_tokens_));
        if (is_shared_) shared_block_tokens_ = size;
        block_tokens_ = size;
        if (!is_shared_) own_blocks_.clear();
        agents_ = 0;
        format_ = "Weka";
    }
    void add_weka(const picojson::value& v, std::uint32_t agent, const std::string& kind,
                  double from_s) {
        const checked_object o(v, in_->name() + printed(":%lld", line_), "requests[]");
        const std::string type = o.text("type");
        const double at = from_s + number(o, "t", 0, longest_time_s, 0);
        if (type == "subagent") return add_agent(o, at);
        if (!type.empty() && type != "s" && type != "n")
            o.refuse("type", "n, s or subagent is allowed");
        if (o.whole<int>("block_size", 1, 1e6, block_tokens_) != block_tokens_)
            o.refuse("block_size", printed("the session's is %d: one block has one size",
                                           block_tokens_));
        check_room();
        ++read_steps_;
        recorded_step s;
        s.at_s = at;
        s.end_s = o.has("api_time") ? at + o.seconds("api_time") : at - 1;
        s.agent = agent;
        s.model = model(o.text("model"));
        s.label = label(kind);
        s.prompt = prompt_of(o, block_tokens_, tokens(o, "in", 1),
                             is_shared_ ? shared_blocks_ : own_blocks_);
        s.output_tokens = std::max(1, tokens(o, "out", 0));
        steps_.push_back(s);
    }
    /// The times below a spawn are its own where they lie before it, else the session's.
    void add_agent(const checked_object& spawn, double at) {
        const std::uint32_t agent = ++agents_;
        if (number(spawn, "block_size", 1, 1e6, block_tokens_) != block_tokens_)
            spawn.refuse("block_size", printed("the session's is %d: one block has one size",
                                               block_tokens_));
        double first = infinity;
        const picojson::array& requests = array_member(spawn.value(), "requests");
        for (const picojson::value& r : requests) {
            const double t = number_member(r, "t");
            if (t < first) first = t;
        }
        for (const picojson::value& r : requests)
            add_weka(r, agent, spawn.text("subagent_type"), first < at ? at : 0);
    }
    void finish_weka() {
        if (steps_.empty()) return;
        std::vector<std::pair<double, std::size_t>> order;
        for (std::size_t i = 0; i < steps_.size(); ++i) order.emplace_back(steps_[i].at_s, i);
        std::sort(order.begin(), order.end());
        std::vector<recorded_step> sorted;
        for (const auto& [at, i] : order) sorted.push_back(steps_[i]);
        derived_graph graph(sorted, corpus_.prompts);
        add(sorted, graph.links(), -1, is_shared_);
    }

    // ---- ours: a line a step, steps of a session together

    struct named_step {
        std::string name{}, keeps{};
        std::vector<std::string> after{};
        int kept = 0, tokens = 0;
        double wait_s = 0;
        long long line = 0;
        recorded_step step{};
    };
    void add_ours(const checked_object& o) {
        format_ = "JSON lines";
        const std::string session = o.text("session");
        if (session != session_) {
            finish_ours();
            session_ = session;
            if (!done_.emplace(session, true).second)
                fail("session " + quoted(session) + " goes on behind another one: its "
                     "steps must stand together");
        }
        if (named_.size() == most_session_steps) fail("the session has over 10000 steps");
        check_room();
        ++read_steps_;
        named_step s;
        s.line = line_;
        s.name = o.text("step");
        s.tokens = tokens(o, "prompt_tokens", 1);
        s.step.output_tokens = tokens(o, "output_tokens", 1);
        s.wait_s = o.number("wait", 0, 86400, 0);
        s.step.model = model(o.text("model"));
        s.step.label = label(o.text("label"));
        for (const picojson::value& a : array_member(o.value(), "after")) {
            if (!a.is<std::string>()) o.refuse("after", "a list of steps' names is allowed");
            s.after.push_back(a.get<std::string>());
        }
        if (s.after.size() > most_steps_before) o.refuse("after", "at most 255 steps are allowed");
        if (o.has("keeps")) {
            const picojson::array& k = array_member(o.value(), "keeps");
            if (k.size() != 2 || !k[0].is<std::string>())
                o.refuse("keeps", "a step's name and a number of tokens are allowed");
            s.keeps = k[0].get<std::string>();
            s.kept = o.whole_of<int>(k[1], "keeps", 0, 1e7);
            if (s.kept > s.tokens)
                fail(printed("prompt_tokens is %d, and keeps %d of another prompt: a prompt is as "
                             "long as what it keeps at least", s.tokens, s.kept));
            if (std::find(s.after.begin(), s.after.end(), s.keeps) == s.after.end())
                o.refuse("keeps", "one of the steps of after is allowed");
        }
        if (o.has("body")) s.step.body = body_of(o);
        named_.push_back(std::move(s));
    }
    std::uint32_t body_of(const checked_object& o) {
        const picojson::value& body = *o.present("body");
        if (!body.is<object>()) o.refuse("body", "an object is allowed");
        std::string fields = body.serialize();
        fields = fields.substr(1, fields.size() - 2);
        if (fields.empty()) return 0;
        body_bytes_ += fields.size();
        if (body_bytes_ > most_body_bytes) fail("all bodies together have over 256 MiB");
        corpus_.bodies.push_back("," + fields);
        return static_cast<std::uint32_t>(corpus_.bodies.size() - 1);
    }
    /// Steps stand behind those that they wait for, else as in the file.
    void finish_ours() {
        if (named_.empty()) return;
        std::map<std::string, std::size_t> by_name;
        for (std::size_t i = 0; i < named_.size(); ++i)
            if (!by_name.emplace(named_[i].name, i).second)
                in_->refuse(named_[i].line, "step " + quoted(named_[i].name) +
                                                " is there twice in its session");
        std::vector<std::size_t> waits(named_.size());
        std::vector<std::vector<std::size_t>> next(named_.size());
        for (std::size_t i = 0; i < named_.size(); ++i)
            for (const std::string& a : named_[i].after) {
                const auto found = by_name.find(a);
                if (found == by_name.end())
                    in_->refuse(named_[i].line, "after names " + quoted(a) +
                                                    ", and the session has no such step");
                next[found->second].push_back(i);
                ++waits[i];
            }
        std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free;
        for (std::size_t i = 0; i < named_.size(); ++i)
            if (waits[i] == 0) free.push(i);
        std::vector<std::uint32_t> place(named_.size());
        std::vector<recorded_step> steps;
        std::vector<step_links> links;
        while (!free.empty()) {
            const std::size_t i = free.top();
            free.pop();
            place[i] = static_cast<std::uint32_t>(steps.size());
            for (const std::size_t n : next[i])
                if (--waits[n] == 0) free.push(n);
            add_named(named_[i], by_name, place, steps, links);
        }
        for (std::size_t i = 0; i < named_.size(); ++i)
            if (waits[i] > 0)
                in_->refuse(named_[i].line, "step " + quoted(named_[i].name) +
                                                " waits for itself, over what it is after");
        add(steps, links, -1, false);
        named_.clear();
    }
    void add_named(const named_step& n, const std::map<std::string, std::size_t>& by_name,
                   const std::vector<std::uint32_t>& place, std::vector<recorded_step>& steps,
                   std::vector<step_links>& links) {
        recorded_step s = n.step;
        step_links l;
        l.wait_s = n.wait_s;
        for (const std::string& a : n.after) l.after.push_back(place[by_name.at(a)]);
        tree_prompt from;
        if (!n.keeps.empty()) {
            const std::uint32_t behind = place[by_name.at(n.keeps)];
            l.goes_on_from = static_cast<int>(behind);
            from = steps[behind].prompt;
            if (n.kept > from.tokens + steps[behind].output_tokens)
                in_->refuse(n.line, printed("keeps %d tokens of a step that has %d and an answer "
                                            "of %d", n.kept, from.tokens,
                                            steps[behind].output_tokens));
        } else if (!l.after.empty()) {
            l.goes_on_from = static_cast<int>(l.after.back());
        }
        s.prompt = corpus_.prompts.branch(from.node, std::min(n.kept, from.tokens), n.tokens);
        s.at_s = s.end_s = static_cast<double>(steps.size());
        steps.push_back(s);
        links.push_back(std::move(l));
    }

    // ---- Bailian and Mooncake: a line a call, sessions among each other

    struct open_chat {
        std::vector<recorded_step> steps{};
        std::vector<step_links> links{};
        double start_s = 0;
    };
    void add_chat(const checked_object& o) {
        const bool is_bailian = o.has("chat_id");
        format_ = is_bailian ? "Bailian" : "Mooncake";
        const int block = is_bailian ? 16 : 512;
        if (shared_block_tokens_ != 0 && shared_block_tokens_ != block)
            fail("blocks of 16 tokens and of 512: blocks of one scope have one size");
        shared_block_tokens_ = block;
        if (read_steps_++ == most_corpus_steps)
            fail("the files have over 2000000 steps: cut them first");
        const double at = o.number("timestamp", 0, 1e14, 0) / (is_bailian ? 1 : 1e3);
        recorded_step s;
        s.at_s = s.end_s = at;
        s.label = label(o.text("type"));
        s.prompt = prompt_of(o, block, tokens(o, "input_length", 1), shared_blocks_);
        s.output_tokens = std::max(1, tokens(o, "output_length", 0));
        std::pair<std::size_t, int> behind{chats_.size(), no_parent};
        if (is_bailian) {
            const auto parent = by_chat_.find(text_of(o, "parent_chat_id"));
            if (parent != by_chat_.end()) behind = parent->second;
        } else if (o.has("session_id")) {
            const auto before = by_chat_.find(text_of(o, "session_id"));
            if (before != by_chat_.end()) behind = before->second;
        }
        if (behind.first == chats_.size()) chats_.push_back({.start_s = at});
        open_chat& chat = chats_[behind.first];
        if (chat.steps.size() == most_session_steps) fail("the session has over 10000 steps");
        step_links l;
        l.goes_on_from = behind.second;
        if (behind.second != no_parent) l.after = {static_cast<std::uint32_t>(behind.second)};
        if (o.has("delay")) l.wait_s = o.number("delay", 0, 1e10, 0) / 1e3;
        else l.at_s = std::max(0.0, at - chat.start_s);
        behind.second = static_cast<int>(chat.steps.size());
        chat.steps.push_back(s);
        chat.links.push_back(std::move(l));
        if (is_bailian) by_chat_[text_of(o, "chat_id")] = behind;
        else if (o.has("session_id")) by_chat_[text_of(o, "session_id")] = behind;
    }
    static std::string text_of(const checked_object& o, const char* member) {
        const picojson::value* v = o.present(member);
        return v ? v->to_str() : "";
    }
    void finish_chats() {
        for (const open_chat& c : chats_) add(c.steps, c.links, c.start_s, true);
        chats_.clear();
        by_chat_.clear();
    }

    // ---- OpenTelemetry: a span a call, the graph is derived; a session may be in several files

    void add_span(const picojson::value& v) {
        auto call = call_of_span(v, in_->name() + printed(":%lld", line_));
        if (!call) return;
        check_room();
        ++read_steps_;
        messages_ += call->input.size() + call->output.size();
        if (messages_ > most_prompt_blocks)
            fail("the spans have over 20000000 messages: cut the file first");
        call->step.model = model(call->model);
        call->step.agent = call->step.label = label(call->agent);
        calls_.push_back(std::move(*call));
    }
    void finish_spans(const std::string& name) {
        if (!calls_.empty()) format_ = "OpenTelemetry";
        message_index index;
        for (const std::vector<span_call>& calls : sessions_of_calls(std::move(calls_))) {
            if (calls.size() > most_session_steps)
                refuse({name, ": trace ", quoted(calls[0].trace), " has over 10000 steps"});
            const auto steps = steps_of_calls(calls, index, corpus_.prompts, name);
            derived_graph graph(steps, corpus_.prompts);
            add(steps, graph.links(), steps[0].at_s, true);
        }
    }

    const int max_context_;
    byte_stream* in_ = nullptr;
    long long line_ = 0;
    picojson::value held_{};
    session_corpus corpus_{};
    std::string format_{};
    std::vector<recorded_step> steps_{};  // of the session at hand
    block_index own_blocks_{}, shared_blocks_{};
    int block_tokens_ = 64, shared_block_tokens_ = 0;  // 0: not known yet
    bool is_shared_ = false;
    std::uint32_t agents_ = 0;
    std::size_t read_steps_ = 0, body_bytes_ = 0, messages_ = 0;
    std::string session_{};
    std::map<std::string, bool> done_{};
    std::vector<named_step> named_{};
    std::vector<open_chat> chats_{};
    std::vector<span_call> calls_{};
    std::map<std::string, std::pair<std::size_t, int>> by_chat_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
