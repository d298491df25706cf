// recordings of sessions in other tools' formats
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/dates.hpp"
#include "core/traffic/prefix_tree.hpp"
#include "core/files/traces.hpp"
#include "extensions/sessions/core/session_graph.hpp"
#include "program/sessions/derived_graph.hpp"
#include "program/sessions/genai_spans.hpp"
#include "program/sessions/recording_reader.hpp"

#include <algorithm>  // max, sort
#include <cmath>  // floor
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t, uint32_t
#include <functional>  // who opens a file
#include <map>
#include <string>
#include <tuple>  // tie
#include <utility>  // move, pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

class block_reader : public recording_reader {
protected:
    static vector<std::uint64_t> blocks_of(const checked_object& o) {
        vector<std::uint64_t> ids;
        for (const picojson::value& id : array_member(o.value(), "hash_ids"))
            ids.push_back(static_cast<std::uint64_t>(o.whole_of<long long>(
                id, "hash_ids", -max_count, max_count)));
        return ids;
    }
    /// Returns the prompt that begins with these blocks.
    tree_prompt prompt_of(const vector<std::uint64_t>& ids, int block_tokens, int all,
                          block_index& index) {
        tree_prompt p;
        if (!index.add(corpus_.prompts, ids, block_tokens, all, p))
            refuse({"the prompts have over 20000000 blocks: cut the files first"});
        return p;
    }
};

/// Reads calls that name the one, or the session, that they go on with. They may stand in any
/// order; ids are those of one file. AIPerf's turns have a timestamp in the first line of a session
/// alone, and stand in their order: each line has what is new behind the answer before it.
template <bool is_bailian>
class chat_reader final : public block_reader {
public:
    void read(byte_stream& in) {
        in_ = &in;
        each_json_value(in, [&](const auto&, picojson::value&& v, long long line) {
            line_ = line;
            read_call(checked(std::move(v)));
        });
        ++files_;
    }
    converted_corpus finished(const std::string& name) {
        const int tokens = size_.found();
        if (tokens == 0) refuse({name, unknown_block_size});
        std::sort(calls_.begin(), calls_.end(), [](const chat_call& a, const chat_call& b) {
            return std::tie(a.file, a.step.at_s, a.turn, a.place) <
                   std::tie(b.file, b.step.at_s, b.turn, b.place);
        });
        for (chat_call& c : calls_) {
            if (!c.is_turn) c.step.prompt = prompt_of(c.blocks, tokens, c.tokens, blocks_);
            c.blocks = {};
            add_call(c);
        }
        for (open_chat& c : chats_) add(c.steps, {.start_s = c.start_s, .shares = true});
        return recording_reader::finished(name);
    }

private:
    struct chat_call {
        recorded_step step{};
        std::string behind{}, own{};
        vector<std::uint64_t> blocks{};
        int tokens = 0, turn = 0;
        std::size_t file = 0, place = 0;
        bool has_delay = false;
        bool is_turn = false;  // its prompt is what is new; else all of it
    };
    struct open_chat {
        vector<recorded_step> steps{};
        double start_s = 0;
    };
    struct call_place {
        std::size_t chat = 0;
        int step = no_parent;
    };
    void read_call(const checked_object& o) {
        const double unit = is_bailian ? 1 : 1e-3;
        const std::string session = is_bailian ? "" : text_of(o, "session_id");
        if (!o.has("timestamp") && session.empty()) o.refuse("timestamp", "a time is needed");
        if (is_bailian && !o.has("chat_id")) o.refuse("chat_id", "an id is needed");
        const double stamp = o.number("timestamp", 0, latest_stamp_s / unit, 0);
        if (!is_bailian && stamp != std::floor(stamp))
            o.refuse("timestamp", "whole milliseconds are allowed; is it in seconds?");
        chat_call c;
        c.behind = text_of(o, is_bailian ? "parent_chat_id" : "session_id");
        c.own = text_of(o, is_bailian ? "chat_id" : "session_id");
        c.blocks = blocks_of(o);
        c.tokens = tokens(o, "input_length", 1);
        if (is_bailian) c.turn = o.whole<int>("turn", 0, 1e9, 0);
        c.file = files_;
        c.place = calls_.size();
        c.has_delay = o.has("delay");
        if (!session.empty()) set_turn(c, o, std::to_string(files_) + " " + session);
        if (!c.is_turn && !size_.fits(c.tokens, c.blocks.size()))
            fail(misfit_text("input_length", c.tokens, c.blocks.size()));
        block_count_ += c.blocks.size();
        if (block_count_ > max_trace_blocks)
            fail("the prompts have over 200000000 blocks: cut the files first");
        count_step(0);
        if (o.has("timestamp")) c.step.at_s = stamp * unit;
        c.step.end_s = c.step.at_s;
        c.step.label = label(o.text("type"));
        c.step.output_tokens = answer_tokens(o, "output_length");
        if (c.has_delay) c.step.wait_s = o.number("delay", 0, 1e10, 0) / 1e3;
        tell_others(o, {"timestamp", "chat_id", "parent_chat_id", "session_id", "turn", "type",
                        "hash_ids", "input_length", "output_length", "delay", "context_mode"});
        calls_.push_back(std::move(c));
    }
    /// A line without a timestamp is a turn behind the lines of its session before it.
    void set_turn(chat_call& c, const checked_object& o, const std::string& session) {
        const bool has_all = o.text("context_mode") == "message_array_with_responses";
        const auto [begun, is_first] = begun_.try_emplace(session, unknown_start);
        if (o.has("timestamp")) {
            if (is_first) begun->second = o.number("timestamp", 0, 1e16, 0) * 1e-3;
            return;
        }
        c.is_turn = !is_first && !has_all;
        c.step.at_s = begun->second;
    }
    void add_call(chat_call& c) {
        call_place place{chats_.size(), no_parent};
        const std::string in_file = std::to_string(c.file) + " ";
        if (const auto last = last_.find(in_file + c.behind); last != last_.end())
            place = last->second;
        else if (is_bailian && !c.behind.empty() && c.behind[0] != '-')
            tell("parents that no earlier call of the file is");
        if (place.chat == chats_.size()) chats_.push_back({.start_s = c.step.at_s});
        open_chat& chat = chats_[place.chat];
        if (chat.steps.size() == max_session_steps)
            refuse({"chat ", c.own, " has over 10000 steps"});
        recorded_step& s = c.step;
        if (c.is_turn) {
            const recorded_step& before = chat.steps[static_cast<std::size_t>(place.step)];
            const double all = 0.0 + before.prompt.tokens + before.output_tokens + c.tokens;
            if (all > max_asked_tokens)
                refuse({"session ", printable(c.own, 80), ": its prompts grow to over ",
                        printed("%.0f tokens", max_asked_tokens)});
            s.prompt = corpus_.prompts.branch(before.prompt.node, before.prompt.tokens,
                                              static_cast<int>(all));
        }
        s.goes_on_from = place.step;
        if (place.step != no_parent) s.after = {static_cast<std::uint32_t>(place.step)};
        if (!c.has_delay && !c.is_turn) s.not_before_s = std::max(0.0, s.at_s - chat.start_s);
        place.step = static_cast<int>(chat.steps.size());
        chat.steps.push_back(std::move(s));
        if (!c.own.empty()) last_[in_file + c.own] = place;
    }
    static std::string text_of(const checked_object& o, const char* member) {
        const picojson::value* v = o.present(member);
        return v ? v->to_str() : "";
    }

    static constexpr double unknown_start = -1;
    static constexpr double max_asked_tokens = 1e9;
    std::map<std::string, double> begun_{};  // sessions of Mooncake's, when their first line was

    block_index blocks_{};
    block_size size_{};
    std::size_t block_count_ = 0, files_ = 0;
    vector<chat_call> calls_{};
    vector<open_chat> chats_{};
    std::map<std::string, call_place> last_{};  // calls that others continue
};

using bailian_reader = chat_reader<true>;
using mooncake_reader = chat_reader<false>;

/// Holds only one request's text of a file.
class weka_reader final : public block_reader {
public:
    void read(byte_stream& in) {
        in_ = &in;
        each_json_place(in, [&] { read_session(); });
    }

private:
    void read_session() {
        const long long first_line = line_ = in_->line();
        picojson::object fields;
        bool has_requests = false;
        steps_.clear();
        each_json_member(
            *in_,
            [&](const std::string& key, picojson::value&& v, long long line) {
                if (key != "requests") return;
                if (!has_requests) begin(checked(picojson::value(fields)));
                has_requests = true;
                line_ = line;
                add_request(v, 0, "", 0);
            },
            [&](const std::string& key, picojson::value&& v) { fields[key] = std::move(v); });
        const checked_object o = checked(picojson::value(fields));
        if (!has_requests) in_->refuse(first_line, "a session of Weka's has a list of requests");
        if (o.number("block_size", 1, 1e6, block_tokens_) != block_tokens_)
            fail("block_size stands behind requests: it must come before them");
        finish();
    }
    void begin(const checked_object& o) {
        const int size = o.whole<int>("block_size", 1, 1e6, 64);
        is_shared_ = o.text("hash_id_scope") == "global";
        if (is_shared_ && shared_block_tokens_ != 0 && shared_block_tokens_ != size)
            fail(printed("block_size is %d and was %d: blocks of one scope have one size", size,
                         shared_block_tokens_));
        if (is_shared_) shared_block_tokens_ = size;
        block_tokens_ = size;
        if (!is_shared_) own_blocks_.clear();
        agents_ = 0;
    }
    void add_request(const picojson::value& v, std::uint32_t agent, const std::string& kind,
                     double from_s) {
        const checked_object o(v, in_->name() + printed(":%lld", line_), "requests[]");
        const std::string type = o.text("type");
        const double at = from_s + o.number("t", 0, longest_time_s, 0);
        if (type == "subagent") return add_agent(o, at);
        if (!type.empty() && type != "s" && type != "n")
            o.refuse("type", "n, s or subagent is allowed");
        check_block_size(o);
        count_step(steps_.size());
        recorded_step s;
        s.at_s = at;
        s.end_s = o.has("api_time") ? at + o.seconds("api_time") : at - 1;
        s.agent = agent;
        s.model = model(o.text("model"));
        s.label = label(kind);
        const vector<std::uint64_t> blocks = blocks_of(o);
        const int all = tokens(o, "in", 1);
        const auto in_blocks = static_cast<long long>(blocks.size()) * block_tokens_;
        if (!blocks.empty() && (in_blocks <= all - block_tokens_ || in_blocks >= all + block_tokens_))
            fail(printed("in is %d and hash_ids has %zu blocks, and block_size is %d: they would have "
                         "%lld tokens", all, blocks.size(), block_tokens_, in_blocks));
        s.prompt = prompt_of(blocks, block_tokens_, all, is_shared_ ? shared_blocks_ : own_blocks_);
        s.output_tokens = answer_tokens(o, "out");
        tell_others(o, {"t", "type", "model", "in", "out", "hash_ids", "api_time", "block_size"});
        steps_.push_back(s);
    }
    void check_block_size(const checked_object& o) const {
        if (o.number("block_size", 1, 1e6, block_tokens_) != block_tokens_)
            o.refuse("block_size", printed("the session's is %d: one block has one size",
                                           block_tokens_));
    }
    /// Times below a spawn count from it if they lie before it, else from the session's start.
    void add_agent(const checked_object& spawn, double at) {
        const std::uint32_t agent = ++agents_;
        check_block_size(spawn);
        double first = infinity;
        const picojson::array& requests = array_member(spawn.value(), "requests");
        for (const picojson::value& r : requests) {
            const double t = number_member(r, "t");
            if (t < first) first = t;
        }
        for (const picojson::value& r : requests)
            add_request(r, agent, spawn.text("subagent_type"), first < at ? at : 0);
    }
    void finish() {
        if (steps_.empty()) return;
        vector<std::pair<double, std::size_t>> order;
        for (std::size_t i = 0; i < steps_.size(); ++i) order.emplace_back(steps_[i].at_s, i);
        std::sort(order.begin(), order.end());
        vector<recorded_step> sorted;
        for (const auto& [at, i] : order) sorted.push_back(steps_[i]);
        derived_graph(sorted, corpus_.prompts);
        add(sorted, {.shares = is_shared_});
    }

    vector<recorded_step> steps_{};  // of the current session
    block_index own_blocks_{}, shared_blocks_{};
    int block_tokens_ = 64, shared_block_tokens_ = 0;  // 0 until known
    bool is_shared_ = false;
    std::uint32_t agents_ = 0;
};

using file_opener = std::function<byte_stream(const std::string&)>;

/// Reads the files one after the other; `name` stands for all of them.
template <class Reader>
converted_corpus corpus_by(const vector<std::string>& files, const file_opener& open,
                           const std::string& name) {
    Reader reader;
    for (const std::string& file : files) {
        byte_stream in = open(file);
        reader.read(in);
    }
    return reader.finished(name);
}
struct recording_format {
    const char* name;
    converted_corpus (*read)(const vector<std::string>&, const file_opener&, const std::string&);
};
inline constexpr recording_format recording_formats[] = {
    {"weka", corpus_by<weka_reader>},
    {"bailian", corpus_by<bailian_reader>},
    {"mooncake_agents", corpus_by<mooncake_reader>},
    {"otel", corpus_by<span_reader>},
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
