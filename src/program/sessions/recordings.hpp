// recordings of sessions in other tools' formats
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/dates.hpp"
#include "core/files/prefix_tree.hpp"
#include "extensions/sessions/core/session_graph.hpp"
#include "program/sessions/derived_graph.hpp"
#include "program/sessions/genai_spans.hpp"

#include <algorithm>  // max, sort
#include <cmath>  // floor
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t, uint32_t
#include <functional>  // who opens a file
#include <map>
#include <string>
#include <utility>  // move, pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

class block_reader : public corpus_reader {
protected:
    /// Returns the prompt that begins with these blocks.
    tree_prompt prompt_of(const checked_object& o, int block_tokens, int all, block_index& index) {
        vector<std::uint64_t> ids;
        for (const picojson::value& id : array_member(o.value(), "hash_ids"))
            ids.push_back(static_cast<std::uint64_t>(o.whole_of<long long>(
                id, "hash_ids", -max_count, max_count)));
        tree_prompt p;
        if (!index.add(corpus_.prompts, ids, block_tokens, all, p))
            fail("the prompts have over 20000000 blocks: cut the file first");
        return p;
    }
};

template <bool is_bailian>
class chat_reader final : public block_reader {
public:
    void read(byte_stream& in) {
        in_ = &in;
        for (in.skip_space(); in.peek() >= 0; in.skip_space()) {
            line_ = in.line();
            add_call(checked(next_json(in)));
        }
        for (open_chat& c : chats_) add(c.steps, c.start_s, true);
        chats_.clear();
        last_.clear();
    }

private:
    struct open_chat {
        vector<recorded_step> steps{};
        double start_s = 0;
    };
    struct call_place {
        std::size_t chat = 0;
        int step = no_parent;
    };
    void add_call(const checked_object& o) {
        const double unit = is_bailian ? 1 : 1e-3;
        if (!o.has("timestamp")) o.refuse("timestamp", "a time is needed");
        if (is_bailian && !o.has("chat_id")) o.refuse("chat_id", "an id is needed");
        const double stamp = o.number("timestamp", 0, latest_stamp_s / unit, 0);
        if (!is_bailian && stamp != std::floor(stamp))
            o.refuse("timestamp", "whole milliseconds are allowed; is it in seconds?");
        const double at = stamp * unit;
        recorded_step s;
        s.at_s = s.end_s = at;
        s.label = label(o.text("type"));
        s.prompt = prompt_of(o, is_bailian ? 16 : 512, tokens(o, "input_length", 1), blocks_);
        s.output_tokens = std::max(1, tokens(o, "output_length", 0));
        const std::string behind = text_of(o, is_bailian ? "parent_chat_id" : "session_id"),
                          own = text_of(o, is_bailian ? "chat_id" : "session_id");
        call_place place{chats_.size(), no_parent};
        if (const auto last = last_.find(behind); last != last_.end()) place = last->second;
        if (place.chat == chats_.size()) chats_.push_back({.start_s = at});
        open_chat& chat = chats_[place.chat];
        count_step(chat.steps.size());
        s.goes_on_from = place.step;
        if (place.step != no_parent) s.after = {static_cast<std::uint32_t>(place.step)};
        if (o.has("delay")) s.wait_s = o.number("delay", 0, 1e10, 0) / 1e3;
        else s.not_before_s = std::max(0.0, at - chat.start_s);
        place.step = static_cast<int>(chat.steps.size());
        chat.steps.push_back(std::move(s));
        if (!own.empty()) last_[own] = place;
    }
    static std::string text_of(const checked_object& o, const char* member) {
        const picojson::value* v = o.present(member);
        return v ? v->to_str() : "";
    }

    block_index blocks_{};
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
        for (in.skip_space(); in.peek() >= 0; in.skip_space()) read_session();
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
        s.prompt = prompt_of(o, block_tokens_, tokens(o, "in", 1),
                             is_shared_ ? shared_blocks_ : own_blocks_);
        s.output_tokens = std::max(1, tokens(o, "out", 0));
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
        add(sorted, -1, is_shared_);
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
session_corpus corpus_by(const vector<std::string>& files, const file_opener& open,
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
    session_corpus (*read)(const vector<std::string>&, const file_opener&,
                           const std::string&);
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
