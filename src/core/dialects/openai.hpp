// OpenAI's answers
#pragma once

#include "core/base/json.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // all_of, max
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

/// Calls `take(text, reasons)` for each text of an output field: a text, or a list of parts, where
/// a reasoning part may have its own list (Mistral's API, some gateways). Output without text
/// (null) is of another kind, such as a reference. False for an unknown form.
template <class Take>
bool each_text(const picojson::value& v, bool reasons, Take&& take) {
    if (!says_something(v)) return true;
    if (v.is<std::string>()) return take(&v.get<std::string>(), reasons), true;
    if (v.is<picojson::array>()) {
        const picojson::array& parts = v.get<picojson::array>();
        return std::all_of(parts.begin(), parts.end(), [&](const picojson::value& part) {
            return each_text(part, reasons, take);
        });
    }
    const std::string type = string_member(v, "type");
    reasons = reasons || type.starts_with("think") || type.starts_with("reason");
    for (const char* name : {"text", "thinking", "reasoning", "summary", "refusal", "content"})
        if (const picojson::value* m = member(v, name)) return each_text(*m, reasons, take);
    if (!type.empty()) take(nullptr, reasons);
    return !type.empty();
}

/// Gateways' names for reasoning: "thinking", "reasoning_text", "reasoning_details".
inline bool names_thoughts(std::string_view name) {
    return (name.find("think") != name.npos || name.find("reason") != name.npos) &&
           !name.ends_with("_reason");
}

/// Takes the output of one choice of an OpenAI event, chat or completions, with its text in
/// `memory` unless null. False without output.
inline bool take_output(const picojson::value& choice, const char* output, stream_event& e,
                        stream_memory* memory) {
    bool some = false, thought = false;
    const auto take_text = [&](const picojson::value& said, bool reasons, bool keeps) {
        return each_text(said, reasons, [&](const std::string* text, bool thinks) {
            some = true;
            thought = thought || thinks;
            if (!text) return e.take_call(thinks);
            e.take(*text, thinks);
            if (memory && keeps) memory->keep(*text, thinks);
        });
    };
    const auto take = [&](const picojson::value& from, const char* name, bool reasons, bool keeps) {
        const picojson::value* said = member(from, name);
        if (!said || take_text(*said, reasons, keeps)) return;
        e.malformed = true;
        e.error = printed("\"%s\" is in a form that is not known: ", name) +
                  printable(said->serialize(), 60);
    };
    take(choice, "text", false, true);
    const picojson::value* delta = member(choice, output);
    if (!delta) return some;
    for (const char* name : {"content", "refusal"}) take(*delta, name, false, true);
    // Only one of them, or both with the same text.
    take(*delta, "reasoning_content", true, true);
    take(*delta, "reasoning", true, !has_text(*delta, "reasoning_content"));
    if (delta->is<picojson::object>())
        for (const auto& [name, said] : delta->get<picojson::object>())
            if (!thought && names_thoughts(name)) take_text(said, true, true);
    const picojson::array& tools = array_member(*delta, "tool_calls");
    const picojson::value* function = member(*delta, "function_call");
    const bool calls_one = function && function->is<picojson::object>() &&
                           !function->get<picojson::object>().empty();
    if (!tools.empty() || calls_one) e.take_call();
    if (memory)
        for (const picojson::value& tool : tools)
            if (const picojson::value* called = member(tool, "function")) memory->call(*called);
    if (memory && calls_one) memory->call(*function);
    return some || !tools.empty() || calls_one;
}

/// Returns the tokens that a choice lists (logprobs, token ids), 0 without a list.
inline int listed_tokens(const picojson::value& choice) {
    const picojson::value* logprobs = member(choice, "logprobs");
    const picojson::value* listed = logprobs ? member(*logprobs, "content") : nullptr;
    if (!listed) listed = member(choice, "token_ids");
    return listed && listed->is<picojson::array>()
               ? static_cast<int>(listed->get<picojson::array>().size())
               : 0;
}

/// Usage and choices of an OpenAI answer. Output is in `delta`, for a whole answer in `message`.
inline void read_openai_choices(const picojson::value& v, stream_event& e, stream_memory& memory,
                                const char* output) {
    if (const picojson::value* usage = member(v, "usage"); usage && usage->is<picojson::object>()) {
        e.prompt_tokens = count_member(*usage, "prompt_tokens");
        e.completion_tokens = count_member(*usage, "completion_tokens");
        e.total_tokens = count_member(*usage, "total_tokens");
        if (const picojson::value* details = member(*usage, "prompt_tokens_details"))
            e.cached_tokens = count_member(*details, "cached_tokens");
        e.reasoning_tokens = count_member(*usage, "reasoning_tokens");  // of SGLang
        if (const picojson::value* details = member(*usage, "completion_tokens_details"))
            e.reasoning_tokens = count_member(*details, "reasoning_tokens");
    }
    const picojson::value* choices = member(v, "choices");
    if (!choices || !choices->is<picojson::array>()) return;
    for (const picojson::value& choice : choices->get<picojson::array>()) {
        const int index = std::max(0, count_member(choice, "index"));
        e.choices = std::max(e.choices, 1 + index);
        e.finish(string_member(choice, "finish_reason"), index);
        // The first choice continues the conversation.
        if (!take_output(choice, output, e, index == 0 ? &memory : nullptr)) continue;
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

inline stream_event read_openai_event(std::string_view type, std::string_view data) {
    stream_memory none;
    return read_json_event(type, data, read_openai, none);
}

// The fast path. A server sends thousands of events of one shape, and a JSON tree of each costs
// more than everything else. This cursor reads that shape in one pass. It returns false for
// anything unusual: malformed, rare, or with an escape where it matters. Then read_openai_event,
// the definition, reads the event again. So it need not be complete, but must be right: skipped
// values are checked as picojson would, and duplicates of fields that count are refused, since the
// last one would win.

/// Finds the next byte that a string must escape: a quote, a backslash or a control character.
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
        // The lowest bit found is right; higher ones may come from a borrow.
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
    /// The only generated text of the event, with escapes; empty for several texts.
    std::string_view sole_output() const { return outputs_ == 1 ? output_ : std::string_view(); }

private:
    enum field : unsigned {
        seen_choices = 1, seen_finish_reason = 2, seen_text = 4, seen_delta = 8, seen_content = 16,
        seen_reasoning_content = 32, seen_reasoning = 64, seen_refusal = 128, seen_tool_calls = 256
    };
    bool once(field f) { return (std::exchange(seen_, seen_ | f) & f) == 0; }

    /// At most one choice, with index 0.
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
            return key != "function_call" && !names_thoughts(key) ? skip(8) : null();
        });
    }
    /// Generated text. An escape is at least one character, so only empty text is empty.
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
        return code < 0xD800 || code > 0xDFFF;  // the slow path handles pairs
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
    /// Digits that any double holds; the slow path handles other forms.
    bool number() {
        const char* const from = at_;
        const auto digits = [this] {
            const char* const first = at_;
            while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
            return at_ != first;
        };
        if (*at_ == '-') ++at_;
        const char* const whole = at_;
        if (!digits() || (*whole == '0' && at_ - whole > 1)) return false;
        if (at_ != end_ && *at_ == '.' && (++at_, !digits())) return false;
        // A comma or a bracket must follow, not another part of a number.
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
    std::string_view text_{};  // the last string, with escapes
    std::string_view output_{};
    int outputs_ = 0;
    unsigned seen_ = 0;
    bool escaped_ = false;
    int escaped_by_ = 0;  // bytes added by escapes
};

/// Reads the events of a stream. Most differ from the previous one only in one string. If all other
/// bytes are equal, they are not parsed again.
class event_reader {
public:
    const stream_event& read(std::string_view type, std::string_view data) {
        const bool is_error = speaks_of_error(type);
        if (!is_error && repeats(data)) {
            last_.text_bytes = static_cast<int>(data.size() - before_ - after_);
            if (last_.reasoning_bytes > 0) last_.reasoning_bytes = last_.text_bytes;
            return last_;
        }
        last_ = stream_event();
        like_.clear();
        event_scanner scanner(data, last_);
        if (is_error || !scanner.scan()) {
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
    std::string like_{};  // the last event with one generated text, or empty
    std::size_t before_ = 0, after_ = 0;  // bytes around that text
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
