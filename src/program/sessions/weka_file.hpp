// sessions in Weka's format: an object a session, with a derived graph
#pragma once

#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/prefix_tree.hpp"
#include "extensions/sessions/core/session_graph.hpp"
#include "program/sessions/block_prompts.hpp"
#include "program/sessions/derived_graph.hpp"

#include <algorithm>  // max, min, sort
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <string>
#include <utility>  // move, pair
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

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
        std::vector<std::pair<double, std::size_t>> order;
        for (std::size_t i = 0; i < steps_.size(); ++i) order.emplace_back(steps_[i].at_s, i);
        std::sort(order.begin(), order.end());
        std::vector<recorded_step> sorted;
        for (const auto& [at, i] : order) sorted.push_back(steps_[i]);
        derived_graph graph(sorted, corpus_.prompts);
        add(sorted, graph.links(), -1, is_shared_);
    }

    std::vector<recorded_step> steps_{};  // of the current session
    block_index own_blocks_{}, shared_blocks_{};
    int block_tokens_ = 64, shared_block_tokens_ = 0;  // 0 until known
    bool is_shared_ = false;
    std::uint32_t agents_ = 0;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
