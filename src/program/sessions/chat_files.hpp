// sessions in Bailian's and Mooncake's formats: a line a call, sessions interleaved
#pragma once

#include "core/base/json.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/prefix_tree.hpp"
#include "extensions/sessions/core/session_graph.hpp"
#include "program/sessions/block_prompts.hpp"

#include <algorithm>  // max
#include <cmath>  // floor
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <map>
#include <string>
#include <utility>  // move, pair
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

class chat_reader : public block_reader {
public:
    void read(byte_stream& in) {
        in_ = &in;
        for (in.skip_space(); in.peek() >= 0; in.skip_space()) {
            line_ = in.line();
            add_call(checked(next_json(in)));
        }
        for (const open_chat& c : chats_) add(c.steps, c.links, c.start_s, true);
        chats_.clear();
        last_.clear();
    }

protected:
    explicit chat_reader(bool is_bailian) : is_bailian_(is_bailian) {}

private:
    struct open_chat {
        std::vector<recorded_step> steps{};
        std::vector<step_links> links{};
        double start_s = 0;
    };
    struct call_place {
        std::size_t chat = 0;
        int step = no_parent;
    };
    void add_call(const checked_object& o) {
        const double unit = is_bailian_ ? 1 : 1e-3;
        if (!o.has("timestamp")) o.refuse("timestamp", "a time is needed");
        if (is_bailian_ && !o.has("chat_id")) o.refuse("chat_id", "an id is needed");
        const double stamp = o.number("timestamp", 0, latest_stamp_s / unit, 0);
        if (!is_bailian_ && stamp != std::floor(stamp))
            o.refuse("timestamp", "whole milliseconds are allowed; is it in seconds?");
        const double at = stamp * unit;
        recorded_step s;
        s.at_s = s.end_s = at;
        s.label = label(o.text("type"));
        s.prompt = prompt_of(o, is_bailian_ ? 16 : 512, tokens(o, "input_length", 1), blocks_);
        s.output_tokens = std::max(1, tokens(o, "output_length", 0));
        const std::string behind = text_of(o, is_bailian_ ? "parent_chat_id" : "session_id"),
                          own = text_of(o, is_bailian_ ? "chat_id" : "session_id");
        call_place place{chats_.size(), no_parent};
        if (const auto last = last_.find(behind); last != last_.end()) place = last->second;
        if (place.chat == chats_.size()) chats_.push_back({.start_s = at});
        open_chat& chat = chats_[place.chat];
        count_step(chat.steps.size());
        step_links l;
        l.goes_on_from = place.step;
        if (place.step != no_parent) l.after = {static_cast<std::uint32_t>(place.step)};
        if (o.has("delay")) l.wait_s = o.number("delay", 0, 1e10, 0) / 1e3;
        else l.at_s = std::max(0.0, at - chat.start_s);
        place.step = static_cast<int>(chat.steps.size());
        chat.steps.push_back(s);
        chat.links.push_back(std::move(l));
        if (!own.empty()) last_[own] = place;
    }
    static std::string text_of(const checked_object& o, const char* member) {
        const picojson::value* v = o.present(member);
        return v ? v->to_str() : "";
    }

    const bool is_bailian_;
    block_index blocks_{};
    std::vector<open_chat> chats_{};
    std::map<std::string, call_place> last_{};  // calls that others continue
};

struct bailian_reader final : chat_reader {
    bailian_reader() : chat_reader(true) {}
};
struct mooncake_reader final : chat_reader {
    mooncake_reader() : chat_reader(false) {}
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
