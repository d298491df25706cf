// the events of many streams
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/wire/event_stream.hpp"
#include "core/dialects/output.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <cstring>  // memcpy
#include <string>
#include <string_view>
#include <utility>  // exchange

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Reads the events of the streams of a thread, one after the other. Most differ from the one
/// before in a text and some numbers. If the API's function looked at these only to take a text or
/// a count, or not at all, they are all that is read of the next one.
class event_reader {
public:
    using read_t = void (*)(const json_view&, stream_event&, stream_memory&);

    /// The event lives until the next call.
    const stream_event& read(std::string_view type, std::string_view data, read_t by,
                             stream_memory& memory) {
        if (by == read_ && type == type_ && is_like(data) && is_taken_alike_) {
            take_again(memory);
            return last_;
        }
        read_alone(type, data, by, memory);
        const bool is_usual = last_.error.empty() && !last_.malformed && !last_.done &&
                              !last_.is_like_no_other && !last_.is_mixed &&
                              !last_.hides_thought && !last_.has_media && !speaks_of_error(type);
        if (is_usual && takes_each_once()) read_ = by;
        type_ = type;
        return last_;
    }
    /// For whole answers.
    const stream_event& read_alone(std::string_view type, std::string_view data, read_t by,
                                   stream_memory& memory) {
        return last_ = read_json_event(type, data, parsed(data), by, memory);
    }
    /// For APIs of users. Null if it is not JSON.
    const json_view* document(std::string_view data) {
        if (read_ || !is_like(data)) return parsed(data);
        return json_.values().data();
    }

private:
    /// A string or a number, and what it was in the event that others are like.
    struct part {
        json_view* now = nullptr;
        std::string_view text{};
    };
    static constexpr std::size_t most_bytes = 4096;

    const json_view* parsed(std::string_view data) {
        read_ = nullptr;
        parts_.clear();
        like_.clear();
        differs_at_ = 0;
        if (data.size() > most_bytes) return json_.read(data);
        like_ = data;
        const json_view* const v = json_.read(like_);
        if (!v) like_.clear();
        for (json_view& in : json_.values())
            if (in.is_string() || in.is_number()) parts_.push_back({&in, in.text});
        return v;
    }
    /// Whether an event differs from that one only in such parts, which then have its texts.
    bool is_like(std::string_view data) {
        part *next = parts_.begin(), *const end = parts_.end();
        is_taken_alike_ = true;
        piece_.begin(data);
        // Mostly the same part differs as the last time.
        const std::string_view all_like = like_;
        const std::size_t differed_at = std::exchange(differs_at_, like_.size());
        const bool may_skip = data.substr(0, differed_at) == all_like.substr(0, differed_at);
        for (std::size_t i = may_skip ? differed_at : 0, k = i;;) {  // in the event, in that one
            const std::string_view rest = data.substr(i), like = all_like.substr(k);
            const std::size_t same = rest == like ? rest.size() : equal_bytes(rest, like);
            i += same;
            k += same;
            for (; next != end && next->now->to + next->now->is_number() <= k; ++next)
                next->now->text = next->text;
            if (i == data.size() && k == like_.size()) return k > 0;
            if (next == end || next->now->from + next->now->is_string() > k) return false;
            json_view& v = *next->now;
            const char* const from = data.data() + i - (k - v.from);
            const char* const to = v.is_string() ? piece_.string_at(from + 1, v.text)
                                                 : piece_.number_at(from, v.text);
            if (!to) return false;
            differs_at_ = std::min<std::size_t>(differs_at_, v.from);
            is_taken_alike_ = is_taken_alike_ && may_become(v);
            i = static_cast<std::size_t>(to - data.data());
            k = v.to;
            ++next;
        }
    }
    static std::size_t equal_bytes(std::string_view a, std::string_view b) {
        const std::size_t most = std::min(a.size(), b.size());
        std::size_t i = 0;
        for (std::uint64_t x = 0, y = 0; i + 8 <= most; i += 8) {
            std::memcpy(&x, a.data() + i, 8);
            std::memcpy(&y, b.data() + i, 8);
            if (x != y) break;
        }
        while (i < most && a[i] == b[i]) ++i;
        return i;
    }
    /// Whether the last event's text or count may become this one: neither begins nor ends.
    bool may_become(const json_view& v) const {
        using use = json_view::use;
        if (v.used == use::count) return last_.*all_counts[v.which] > 0 && count_of(v) > 0;
        return v.used == use::none || (v.used != use::read && !v.text.empty());
    }
    static bool is_text(const json_view& v) {
        return v.used == json_view::use::text || v.used == json_view::use::thought;
    }
    /// Whether the generated text and the reasoning stand in one place each.
    bool takes_each_once() const {
        int bytes = 0, texts[2] = {};
        for (const part& p : parts_) {
            if (!is_text(*p.now)) continue;
            bytes += static_cast<int>(p.text.size());
            if (++texts[p.now->used == json_view::use::thought] > 1) return false;
        }
        return !like_.empty() && bytes == last_.text_bytes && bytes == last_.own_bytes;
    }
    void take_again(stream_memory& memory) {
        last_.text_bytes = last_.reasoning_bytes = 0;
        for (const part& p : parts_) {
            const json_view& v = *p.now;
            const bool reasons = v.used == json_view::use::thought;
            const int bytes = is_text(v) ? static_cast<int>(v.text.size()) : 0;
            last_.text_bytes += bytes;
            if (reasons) last_.reasoning_bytes = bytes;
            if (bytes > 0) memory.keep(v.text, reasons);
            if (v.used == json_view::use::count) last_.*all_counts[v.which] = count_of(v);
        }
        last_.own_bytes = last_.text_bytes;
        if (last_.counts_usage) last_.first_tokens = last_.completion_tokens;
    }

    stream_event last_{};
    read_t read_ = nullptr;  // that takes no event but the last one alike: null
    bool is_taken_alike_ = false;
    std::size_t differs_at_ = 0;
    std::string type_{}, like_{};
    vector<part> parts_{};
    json_reader json_{}, piece_{};
};
/// Shared by all streams of a thread: those of one server look alike.
inline event_reader& events_of_thread() {
    static thread_local event_reader reader;
    return reader;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
