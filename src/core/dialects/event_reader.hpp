// the events of many streams
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/dialects/output.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // min, mismatch
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <cstring>  // memcmp
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// What stands between events: nothing, or the lines of chunks, of which each event has its own.
enum class between : unsigned char { none, chunk_lines };

/// Reads the events of the streams of a thread, one after the other. Most differ from the one
/// before in a text and some numbers. If the API's function looked at these only to take a text or
/// a count, or not at all, they are all that is read of the next one.
class event_reader {
public:
    using read_t = void (*)(const json_view&, stream_event&, stream_memory&);

    /// The event lives until the next call. `block`: the bytes of the stream that end with the
    /// event, with its line ends, where they are known and hold `data`.
    const stream_event& read(std::string_view type, std::string_view data, read_t by,
                             stream_memory& memory, std::string_view block = {}) {
        const bool tells_block = !block.empty() && !ends_block_;
        if (by == read_ && !tells_block && type == type_ && is_like(data) && is_taken_alike_)
            return take_again(memory);
        last_ = read_json_event(type, data, parsed(data, block), by, memory);
        const bool is_usual =
            last_.is_content_alone && !last_.is_like_no_other && !last_.is_mixed;
        if (is_usual && takes_each_once()) read_ = by;
        type_ = type;
        return last_;
    }
    /// Takes events off the start of a stream's bytes, at most so many, while each is like the last
    /// one. Returns the last of them, which tells of those before it; null if there is none.
    const stream_event* read_next(std::string_view& bytes, read_t by, stream_memory& memory,
                                  std::size_t most = 1, between events = between::none) {
        if (by != read_) return nullptr;
        sizes_.clear();
        const bool in_chunks = events == between::chunk_lines;
        int reasoning_bytes = 0;
        bool is_plain = ends_block_ && all_of(varying_, [](const json_view* v) {
            return v->is_string() && v->used != use::read && v->used != use::count;
        });
        while (sizes_.size() < most) {
            const std::string_view next = next_of(bytes, events);
            std::size_t n = is_plain ? length_of_plain(next) : 0;
            is_plain = n > 0;
            if (!is_plain) n = length_of_next(next);
            if (n == 0 || !is_taken_alike_ || (in_chunks && n < next.size())) break;
            bytes.remove_prefix(static_cast<std::size_t>(next.data() - bytes.data()) + n);
            sizes_.push_back(static_cast<std::uint32_t>(take_again(memory).own_bytes));
            reasoning_bytes += last_.reasoning_bytes;
        }
        if (sizes_.empty()) return nullptr;
        last_.before = {sizes_.data(), sizes_.size() - 1};
        last_.reasoning_before = reasoning_bytes - last_.reasoning_bytes;
        return &last_;
    }
    /// For APIs of users. Null if it is not JSON.
    const json_view* document(std::string_view data, std::string_view block = {}) {
        const bool tells_block = !block.empty() && !ends_block_;
        if (read_ || tells_block || !is_like(data)) return parsed(data, block);
        return json_.values().data();
    }
    /// Takes a document off the start of a stream's bytes, if it is like the last one, and returns
    /// its text, else "".
    std::string_view next_document(std::string_view& bytes, const json_view*& v, between events) {
        const std::string_view next = next_of(bytes, events);
        const std::size_t n = read_ ? 0 : length_of_next(next);
        if (n == 0 || (events == between::chunk_lines && n < next.size())) return {};
        v = json_.values().data();
        bytes.remove_prefix(static_cast<std::size_t>(next.data() - bytes.data()) + n);
        return {next.data() + begins_at_, n - begins_at_ - (like_.size() - ends_at_)};
    }
    /// The value at this path of the last document, null if none. It is at the same place in each
    /// one alike.
    const json_view* value_at(std::string_view way) {
        for (const known_way& w : ways_)
            if (w.way == way) return w.to;
        ways_.push_back({std::string(way), detail::value_at(json_.values()[0], way)});
        return ways_.back().to;
    }

private:
    using use = json_view::use;
    struct known_way {
        std::string way{};
        const json_view* to = nullptr;
    };
    static constexpr std::size_t most_bytes = stream_event::most_alike / 2;

    const json_view* parsed(std::string_view data, std::string_view block = {}) {
        read_ = nullptr;
        varying_.clear();
        ways_.clear();
        like_.clear();
        ends_block_ = !block.empty();
        if (!ends_block_) block = data;
        if (block.size() > most_bytes) return json_.read(data);
        like_ = block;
        begins_at_ = static_cast<std::size_t>(data.data() - block.data());
        ends_at_ = begins_at_ + data.size();
        const json_view* const v = json_.read({like_.data() + begins_at_, data.size()});
        if (!v) like_.clear();
        return v;
    }
    static std::string_view next_of(std::string_view bytes, between events) {
        return events == between::none ? bytes : response_parser::next_data(bytes);
    }
    bool is_like(std::string_view data) {
        return !like_.empty() && !data.empty() && data.size() <= stream_event::most_alike &&
               length_of_like(data, begins_at_, ends_at_) == data.size();
    }
    std::size_t length_of_next(std::string_view bytes) {
        const std::string_view first = bytes.substr(0, stream_event::most_alike);
        return ends_block_ ? length_of_like(first, 0, like_.size()) : 0;
    }
    /// The same if only strings differ, without escapes, as in most events: in fewer steps.
    std::size_t length_of_plain(std::string_view bytes) {
        is_taken_alike_ = true;
        const char* at = bytes.data();
        const char* const end = at + std::min(bytes.size(), stream_event::most_alike);
        const char *like = like_.data(), *const data = like + begins_at_;
        for (json_view* const v : varying_) {
            const auto n = static_cast<std::size_t>(data + v->from + 1 - like);
            if (static_cast<std::size_t>(end - at) < n || std::memcmp(at, like, n) != 0) return 0;
            const char* const from = at + n;
            at = plain_end(from, end);
            if (at == end || *at != '"' || (at == from && v->used != use::none)) return 0;
            v->text = {from, static_cast<std::size_t>(at - from)};
            like = data + v->to - 1;
        }
        const auto n = static_cast<std::size_t>(like_.data() + like_.size() - like);
        if (static_cast<std::size_t>(end - at) < n || std::memcmp(at, like, n) != 0) return 0;
        return static_cast<std::size_t>(at - bytes.data()) + n;
    }
    /// Returns the length of what differs from a part of that event, or of its block, only in its
    /// strings and numbers, which then have these texts; 0 if nothing does.
    std::size_t length_of_like(std::string_view bytes, std::size_t k, std::size_t to) {
        is_taken_alike_ = true;
        piece_.begin(bytes);
        const char *at = bytes.data(), *const end = at + bytes.size();
        for (std::size_t i = 0;;) {
            const bool varies = i < varying_.size();
            const std::size_t n =
                (varies ? begins_at_ + varying_[i]->from + varying_[i]->is_string() : to) - k;
            const auto left = static_cast<std::size_t>(end - at);
            if (left < n || std::memcmp(at, like_.data() + k, n) != 0) {
                if (!varies_at(i, k, at, std::min(left, n))) return 0;
                continue;
            }
            at += n;
            if (!varies) return static_cast<std::size_t>(at - bytes.data());
            json_view& v = *varying_[i++];
            at = v.is_string() ? piece_.string_at(at, v.text) : piece_.number_at(at, v.text);
            if (!at) return 0;
            k = begins_at_ + v.to;
            if (!may_become(v)) is_taken_alike_ = false;
        }
    }
    /// Adds a string or number to those that vary, before the one at `i`: that in which bytes
    /// differ from the event at `k` on for the first time. False if they differ otherwise.
    bool varies_at(std::size_t i, std::size_t k, const char* bytes, std::size_t n) {
        const char* const like = like_.data() + k;
        const auto same =
            static_cast<std::size_t>(std::mismatch(bytes, bytes + n, like).first - bytes);
        if (same == n || k + same < begins_at_) return false;
        const std::size_t at = k + same - begins_at_;
        json_view* v = i > 0 ? varying_[i - 1] + 1 : json_.values().begin();
        while (v != json_.values().end() &&
               (v->to + v->is_number() <= at || !(v->is_string() || v->is_number())))
            ++v;
        if (v == json_.values().end() || v->from + v->is_string() > at) return false;
        varying_.insert(varying_.begin() + i, v);
        return true;
    }
    /// Whether the last event's text or count may become this one: neither begins nor ends.
    bool may_become(const json_view& v) const {
        if (v.used == use::count) return last_.*all_counts[v.which] > 0 && count_of(v) > 0;
        return v.used == use::none || (v.used != use::read && !v.text.empty());
    }
    /// Whether the generated text and the reasoning stand in one place each.
    bool takes_each_once() {
        int bytes = 0, texts[2] = {};
        taken_.clear();
        for (const json_view& v : json_.values()) {
            if (v.used == use::none || v.used == use::read) continue;
            taken_.push_back(&v);
            if (v.used == use::count) continue;
            bytes += static_cast<int>(v.text.size());
            if (++texts[v.used == use::thought] > 1) return false;
        }
        return !like_.empty() && bytes == last_.text_bytes && bytes == last_.own_bytes;
    }
    const stream_event& take_again(stream_memory& memory) {
        last_.before = {};
        last_.text_bytes = last_.reasoning_bytes = last_.reasoning_before = 0;
        for (const json_view* v : taken_) {
            if (v->used == use::count) {
                last_.*all_counts[v->which] = count_of(*v);
                continue;
            }
            const auto bytes = static_cast<int>(v->text.size());
            last_.text_bytes += bytes;
            if (v->used == use::thought) last_.reasoning_bytes = bytes;
            memory.keep(v->text, v->used);
        }
        last_.own_bytes = last_.text_bytes;
        if (last_.counts_usage) last_.first_tokens = last_.completion_tokens;
        return last_;
    }

    stream_event last_{};
    read_t read_ = nullptr;  // that takes no event but the last one alike: null
    bool is_taken_alike_ = false, ends_block_ = false;
    std::string type_{}, like_{};  // the event that others are like, or its block
    std::size_t begins_at_ = 0, ends_at_ = 0;  // the event in it
    vector<json_view*> varying_{};     // its strings and numbers that others differ in, in order
    vector<const json_view*> taken_{};
    vector<known_way> ways_{};
    vector<std::uint32_t> sizes_{};  // of the texts of events that were taken together
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
