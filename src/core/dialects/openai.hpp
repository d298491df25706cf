// OpenAI's answers
#pragma once

#include "core/base/json.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // max
#include <bit>  // endian, countr_zero
#include <charconv>  // from_chars
#include <cstdint>  // uint64_t
#include <cstring>  // memcpy, strchr, memcmp
#include <string>
#include <string_view>
#include <utility>  // exchange

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Takes the generated output of one choice of an OpenAI event, chat or completions. False where
/// there is none.
inline bool take_output(const picojson::value& choice, const char* output, stream_event& e) {
    bool some = e.take_text(choice, "text");
    const picojson::value* delta = member(choice, output);
    if (!delta) return some;
    for (const char* name : {"content", "refusal"}) some = e.take_text(*delta, name) || some;
    for (const char* name : {"reasoning_content", "reasoning"})  // one of them, or the same twice
        some = e.take_reasoning(*delta, name) || some;
    const picojson::value* tools = member(*delta, "tool_calls");
    const picojson::value* function = member(*delta, "function_call");
    const bool calls =
        (tools && tools->is<picojson::array>() && !tools->get<picojson::array>().empty()) ||
        (function && function->is<picojson::object>() &&
         !function->get<picojson::object>().empty());
    if (calls) e.take_call();
    return some || calls;
}

/// The words of it, where they are kept.
inline void keep_output(const picojson::value& said, stream_memory& memory) {
    for (const char* name : {"content", "refusal"}) memory.say(said, name);
    memory.think(said, has_text(said, "reasoning_content") ? "reasoning_content" : "reasoning");
    for (const picojson::value& tool : array_member(said, "tool_calls"))
        if (const picojson::value* function = member(tool, "function")) memory.call(*function);
    if (const picojson::value* function = member(said, "function_call")) memory.call(*function);
}

/// Tokens that a choice lists one by one (logprobs, token ids), 0 where it lists none.
inline int listed_tokens(const picojson::value& choice) {
    const picojson::value* logprobs = member(choice, "logprobs");
    const picojson::value* listed = logprobs ? member(*logprobs, "content") : nullptr;
    if (!listed) listed = member(choice, "token_ids");
    return listed && listed->is<picojson::array>()
               ? static_cast<int>(listed->get<picojson::array>().size())
               : 0;
}

/// Usage and choices of an OpenAI answer; the output is in `delta`, of a whole answer in `message`.
inline void read_openai_choices(const picojson::value& v, stream_event& e, stream_memory& memory,
                                const char* output) {
    if (const picojson::value* usage = member(v, "usage"); usage && usage->is<picojson::object>()) {
        e.prompt_tokens = count_member(*usage, "prompt_tokens");
        e.completion_tokens = count_member(*usage, "completion_tokens");
        if (const picojson::value* details = member(*usage, "prompt_tokens_details"))
            e.cached_tokens = count_member(*details, "cached_tokens");
        e.reasoning_tokens = count_member(*usage, "reasoning_tokens");  // as SGLang tells them
        if (const picojson::value* details = member(*usage, "completion_tokens_details"))
            e.reasoning_tokens = count_member(*details, "reasoning_tokens");
    }
    const picojson::value* choices = member(v, "choices");
    if (!choices || !choices->is<picojson::array>()) return;
    for (const picojson::value& choice : choices->get<picojson::array>()) {
        const int index = std::max(0, count_member(choice, "index"));
        e.choices = std::max(e.choices, 1 + index);
        e.finish(string_member(choice, "finish_reason"), index);
        if (!take_output(choice, output, e)) continue;
        if (index == 0) {  // the conversation goes on from the first one
            memory.say(choice, "text");
            if (const picojson::value* said = member(choice, output)) keep_output(*said, memory);
        }
        if (e.completion_tokens > 0) e.count(e.completion_tokens);  // running usage
        else if (const int n = listed_tokens(choice); n > 0) e.count(n);
    }
}
inline void read_openai(const picojson::value& v, stream_event& e, stream_memory& memory) {
    read_openai_choices(v, e, memory, "delta");
}
inline void read_openai_whole(const picojson::value& v, stream_event& e, stream_memory& memory) {
    read_openai_choices(v, e, memory, "message");
}

/// One `data:` of an OpenAI stream.
inline stream_event read_openai_event(std::string_view type, std::string_view data) {
    stream_memory none;
    return read_json_event(type, data, read_openai, none);
}

// The fast path. A server sends thousands of events of one shape, and a tree of each costs more
// than all else that is done with it. This cursor reads that shape in one pass. Its functions
// return false for whatever is unusual: malformed, rare, or with an escape where one matters. Then
// read_openai_event, which is the definition, reads the event again. So nothing here has to be
// complete, but what is accepted must be right: what is skipped is checked as picojson would, and
// where a field that counts is given twice (the last one would win) nothing is accepted.

/// The next byte that no string holds as it is: a quote, a backslash or a control character.
inline const char* after_plain_bytes(const char* at, const char* end) {
    constexpr std::uint64_t ones = ~0ull / 255, high = ones * 128;
    const auto zero_in = [](std::uint64_t v) { return (v - ones) & ~v & high; };
    for (; end - at >= 8; at += 8) {
        std::uint64_t v = 0;
        std::memcpy(&v, at, 8);
        const std::uint64_t control = (v - ones * 32) & ~v & high;
        const std::uint64_t stops =
            zero_in(v ^ (ones * '"')) | zero_in(v ^ (ones * '\\')) | control;
        if (stops == 0) continue;
        // The lowest bit found is right; those above may be what it borrowed.
        if constexpr (std::endian::native != std::endian::little) break;
        return at + std::countr_zero(stops) / 8;
    }
    while (at != end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 32) ++at;
    return at;
}

class event_scanner {
public:
    event_scanner(std::string_view data, stream_event& e)
        : at_(data.data()), end_(at_ + data.size()), event_(e) {}

    bool scan() {
        const bool read = object([this](std::string_view key) {
            if (key == "choices") return once(seen_choices) && choices();
            if (key == "usage" || key == "error") return null();
            if (key == "object") return plain_string() && text_ != "error";
            return key != "detail" && skip(8);
        });
        space();
        return read && at_ == end_;
    }
    /// The one generated text of the event, as it stands there; empty where there are more.
    std::string_view sole_output() const { return outputs_ == 1 ? output_ : std::string_view(); }

private:
    enum field : unsigned {
        seen_choices = 1, seen_finish_reason = 2, seen_text = 4, seen_delta = 8, seen_content = 16,
        seen_reasoning_content = 32, seen_reasoning = 64, seen_refusal = 128, seen_tool_calls = 256
    };
    bool once(field f) { return (std::exchange(seen_, seen_ | f) & f) == 0; }

    /// None, or exactly one, the first.
    bool choices() {
        if (!take('[')) return false;
        if (take(']')) return true;
        return object([this](std::string_view key) {
            if (key == "delta") return once(seen_delta) && (null() || delta());
            if (key == "text") return output(seen_text);
            if (key == "finish_reason") return finish_reason();
            if (key == "index") return take('0') && (next() == ',' || next() == '}');
            if (key == "logprobs" || key == "token_ids") return null();
            return skip(8);
        }) && take(']');
    }
    bool delta() {
        return object([this](std::string_view key) {
            if (key == "content") return output(seen_content);
            if (key == "reasoning_content") return output(seen_reasoning_content);
            if (key == "reasoning") return output(seen_reasoning);
            if (key == "refusal") return output(seen_refusal);
            if (key == "tool_calls") return once(seen_tool_calls) && (null() || tool_calls());
            return key != "function_call" ? skip(8) : null();
        });
    }
    /// Generated text. An escape stands for one character or more, so empty text looks empty.
    bool output(field f) {
        if (!once(f)) return false;
        if (null()) return true;
        if (!string()) return false;
        if (text_.empty()) return true;
        event_.content = true;
        const bool reasons = f == seen_reasoning_content || f == seen_reasoning;
        const int bytes = static_cast<int>(text_.size()) - escaped_by_;
        event_.answer = event_.answer || !reasons;
        event_.text_bytes += bytes;
        event_.reasoning_bytes += reasons ? bytes : 0;
        output_ = text_;
        ++outputs_;
        return true;
    }
    bool tool_calls() {
        const char* const from = at_;
        if (take('[') && take(']')) return true;
        at_ = from;
        event_.take_call();
        return next() == '[' && skip(8);
    }
    bool finish_reason() {
        if (!once(seen_finish_reason)) return false;
        if (null()) return true;
        if (!plain_string()) return false;
        event_.finish(std::string(text_));
        return true;
    }

    // ---- JSON

    void space() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
    }
    char next() {
        space();
        return at_ == end_ ? '\0' : *at_;
    }
    bool take(char c) {
        if (next() != c) return false;
        ++at_;
        return true;
    }
    bool word(std::string_view w) {
        if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, w.size()) != w)
            return false;
        at_ += w.size();
        return true;
    }
    bool null() { return next() == 'n' && word("null"); }
    bool escape() {
        if (end_ - at_ < 2) return false;
        if (at_[1] != 'u') {
            at_ += 2;
            ++escaped_by_;
            return at_[-1] != '\0' && std::strchr("\"\\/bfnrt", at_[-1]);
        }
        if (end_ - at_ < 6) return false;
        unsigned code = 0;
        const char* const digits = at_ + 2;
        at_ += 6;
        if (std::from_chars(digits, at_, code, 16).ptr != at_) return false;
        escaped_by_ += 6 - (code < 0x80 ? 1 : code < 0x800 ? 2 : 3);
        return code < 0xD800 || code > 0xDFFF;  // pairs are left to the slow path
    }
    bool string() {
        if (!take('"')) return false;
        const char* const from = at_;
        escaped_ = false;
        escaped_by_ = 0;
        while ((at_ = after_plain_bytes(at_, end_)) != end_ && *at_ == '\\') {
            escaped_ = true;
            if (!escape()) return false;
        }
        if (at_ == end_ || *at_ != '"') return false;
        text_ = std::string_view(from, static_cast<std::size_t>(at_++ - from));
        return true;
    }
    bool plain_string() { return string() && !escaped_; }
    /// Digits that any double holds; what else strtod would take is left to the slow path.
    bool number() {
        const char* const from = at_;
        const auto digits = [this] {
            const char* const first = at_;
            while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
            return at_ != first;
        };
        if (*at_ == '-') ++at_;
        if (!digits()) return false;
        if (at_ != end_ && *at_ == '.' && (++at_, !digits())) return false;
        // Behind it must come a comma or a bracket: not one more piece of a number.
        return at_ != end_ && (*at_ > '9' || *at_ == ',' || *at_ <= ' ') && *at_ != 'e' &&
               *at_ != 'E' && at_ - from < 100;
    }
    /// `on_member(key)` reads the value.
    template <class OnMember>
    bool object(OnMember&& on_member) {
        if (!take('{')) return false;
        if (take('}')) return true;
        do {
            if (!plain_string() || !take(':') || !on_member(text_)) return false;
        } while (take(','));
        return take('}');
    }
    bool skip(int depth) {
        switch (next()) {
        case '"': return string();
        case 'n': return word("null");
        case 't': return word("true");
        case 'f': return word("false");
        case '{':
            return depth > 0 && object([this, depth](std::string_view) { return skip(depth - 1); });
        case '[':
            ++at_;
            if (take(']')) return true;
            do {
                if (depth == 0 || !skip(depth - 1)) return false;
            } while (take(','));
            return take(']');
        default: return at_ != end_ && (*at_ == '-' || (*at_ >= '0' && *at_ <= '9')) && number();
        }
    }

    const char* at_;
    const char* end_;
    stream_event& event_;
    std::string_view text_{};  // of the last string, escapes and all
    std::string_view output_{};
    int outputs_ = 0;
    unsigned seen_ = 0;
    bool escaped_ = false;
    int escaped_by_ = 0;  // bytes that it is longer than what it stands for
};

/// Reads the events of one stream. Most differ from the one before in the text of one string alone:
/// all else being the same, byte for byte, it says the same, and is not read again.
class event_reader {
public:
    const stream_event& read(std::string_view type, std::string_view data) {
        if (type != "error" && repeats(data)) {
            last_.text_bytes = static_cast<int>(data.size() - before_ - after_);
            if (last_.reasoning_bytes > 0) last_.reasoning_bytes = last_.text_bytes;
            return last_;
        }
        last_ = stream_event();
        like_.clear();
        event_scanner scanner(data, last_);
        if (type == "error" || !scanner.scan()) {
            last_ = read_openai_event(type, data);
        } else if (const std::string_view text = scanner.sole_output(); !text.empty()) {
            like_ = data;
            before_ = static_cast<std::size_t>(text.data() - data.data());
            after_ = data.size() - before_ - text.size();
        }
        return last_;
    }

private:
    bool repeats(std::string_view data) const {
        if (like_.empty() || data.size() <= before_ + after_) return false;
        const char* const text = data.data() + before_;
        const char* const end = data.data() + data.size() - after_;
        return std::memcmp(data.data(), like_.data(), before_) == 0 &&
               std::memcmp(end, like_.data() + like_.size() - after_, after_) == 0 &&
               after_plain_bytes(text, end) == end;
    }

    stream_event last_{};
    std::string like_{};  // the last event with one generated text, empty: none
    std::size_t before_ = 0, after_ = 0;  // bytes around that text
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
