// OpenAI's answers
#pragma once

#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // clamp, max
#include <cstddef>  // size_t
#include <string>
#include <string_view>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Calls `take(text, reasons)` for each text of an output field: a text, or a list of parts, where
/// a part may have its own list (Mistral's API, some gateways). What is opaque is left out. False
/// for an unknown form.
template <class Take>
bool each_text(const picojson::value& v, bool reasons, stream_event& e, Take&& take) {
    if (v.is<std::string>()) return take(v.get<std::string>(), reasons), true;
    if (v.is<picojson::array>())
        return all_of(v.get<picojson::array>(), [&](const picojson::value& part) {
            return each_text(part, reasons, e, take);
        });
    const std::string type = string_member(v, "type");
    reasons = reasons || is_marked_as_thought(v);
    if (is_opaque(type) || has_any_of(type, {"status", "progress"}))
        return e.note_opaque(type, reasons), true;
    if (names_call(type)) return e.take_call(v.serialize().size()), true;
    for (const char* name :
         {"text", "thinking", "reasoning", "summary", "refusal", "content", "delta"})
        if (const picojson::value* m = member(v, name); m && m->evaluate_as_boolean())
            return each_text(*m, reasons || names_thoughts(name), e, take);
    if (v.is<picojson::object>())
        for (const auto& [name, said] : v.get<picojson::object>()) e.note_opaque(name, reasons);
    return !type.empty() || !says_something(v);
}

/// Takes the output of one choice of an OpenAI event, chat or completions, with its text in
/// `memory` unless null. False without output. A second field of one kind repeats the first.
inline bool take_output(const picojson::value& choice, const char* output, stream_event& e,
                        stream_memory* memory) {
    const int before = e.text_bytes;
    bool texts = false, thoughts = false;
    const auto take = [&](const picojson::value& said, bool reasons) {
        const bool repeats_text = texts, repeats_thought = thoughts;
        return each_text(said, reasons, e, [&](const std::string& text, bool thinks) {
            if (text.empty() || (thinks ? repeats_thought : repeats_text)) return;
            (thinks ? thoughts : texts) = true;
            e.take(text, thinks);
            if (memory) memory->keep(text, thinks);
        });
    };
    const picojson::value* delta = member(choice, output);
    const bool marked = delta && is_marked_as_thought(*delta);
    const auto take_known = [&](const picojson::value& from, const char* name, bool reasons) {
        const picojson::value* said = member(from, name);
        if (!said || take(*said, reasons)) return;
        e.malformed = true;
        e.error = printed("\"%s\" is in a form that is not known: ", name) +
                  printable(said->serialize(), 60);
    };
    take_known(choice, "text", false);
    if (!delta || !delta->is<picojson::object>()) return e.text_bytes > before;
    for (const char* name : {"content", "refusal"}) take_known(*delta, name, marked);
    for (const char* name : {"reasoning_content", "reasoning"}) take_known(*delta, name, true);
    for (const auto& [name, said] : delta->get<picojson::object>()) {
        const bool is_thought = names_thoughts(name);
        if (is_thought || name == "content_blocks" || name == "parts") take(said, is_thought);
        if (says_something(said)) e.note_opaque(name, false);
    }
    if (const picojson::value* words = value_at(*delta, "audio.transcript")) take(*words, false);
    if (value_at(*delta, "extra_content.google.thought_signature")) e.hides_thought = true;
    const auto call = [&](const picojson::value& called) {
        stream_memory none;
        // Without a name and arguments it is announced only.
        if (const std::size_t bytes = (memory ? *memory : none).call(called)) e.take_call(bytes);
    };
    for (const picojson::value& tool : array_member(*delta, "tool_calls")) {
        const picojson::value* function = member(tool, "function");
        call(function ? *function : tool);
    }
    const picojson::value* function = member(*delta, "function_call");
    if (function && function->is<picojson::object>() && !function->get<picojson::object>().empty())
        call(*function);
    return e.text_bytes > before;
}

/// Returns the tokens that a choice lists (logprobs, token ids), 0 without a list.
inline int listed_tokens(const picojson::value& choice) {
    const picojson::value* listed = value_at(choice, "logprobs.content");
    if (!listed) listed = member(choice, "token_ids");
    return listed && listed->is<picojson::array>()
               ? static_cast<int>(listed->get<picojson::array>().size())
               : 0;
}

inline constexpr int most_choices = static_cast<int>(most_of_few);
/// Usage and choices of an OpenAI answer. Output is in `delta`, for a whole answer in `message`.
inline void read_openai_choices(const picojson::value& v, stream_event& e, stream_memory& memory,
                                const char* output) {
    for (const char* way : {"usage", "x_groq.usage"})
        if (const picojson::value* usage = value_at(v, way)) read_usage(*usage, e);
    for (const picojson::value& choice : array_member(v, "choices")) {
        const int index = std::clamp(count_member(choice, "index"), 0, most_choices - 1);
        e.choices = std::max(e.choices, 1 + index);
        e.finish(word_member(choice, "finish_reason"), index);
        if (const picojson::value* usage = member(choice, "usage")) read_usage(*usage, e);  // Kimi
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

/// Reads the events of a stream. A JSON tree of each would cost more than everything else. Most
/// differ from the previous one only in one string: if all other bytes are equal, they are not
/// parsed again.
class event_reader {
public:
    const stream_event& read(std::string_view type, std::string_view data) {
        const bool is_error = speaks_of_error(type);
        if (!is_error && repeats(data)) {
            like_event_.text_bytes = like_event_.own_bytes =
                static_cast<int>(data.size() - before_ - after_);
            if (like_event_.reasoning_bytes > 0)
                like_event_.reasoning_bytes = like_event_.text_bytes;
            return like_event_;
        }
        stream_memory texts{.keeps_answer = true};
        last_ = read_json_event(type, data, read_openai, texts);
        if (!is_error && last_.error.empty()) keep_shape(data, texts);
        return last_;
    }

private:
    /// Keeps an event whose only generated text stands in it once, without escapes.
    void keep_shape(std::string_view data, const stream_memory& texts) {
        if (texts.pieces != 1 || data.find('\\') != data.npos) return;
        const std::string quoted = '"' + texts.said.answer + texts.said.reasoning + '"';
        const std::size_t bytes = quoted.size() - 2, at = data.find(quoted);
        if (bytes == 0 || bytes != static_cast<std::size_t>(last_.text_bytes) ||
            at == data.npos || data.find(quoted, at + 1) != data.npos)
            return;
        like_event_ = last_;
        like_ = data;
        before_ = at + 1;
        after_ = data.size() - before_ - bytes;
    }
    bool repeats(std::string_view data) const {
        if (like_.empty() || data.size() <= before_ + after_) return false;
        const std::string_view like = like_;
        const std::string_view text = data.substr(before_, data.size() - before_ - after_);
        return data.starts_with(like.substr(0, before_)) &&
               data.ends_with(like.substr(like.size() - after_)) &&
               all_of(text, [](char c) {
                   return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 32;
               });
    }

    stream_event last_{}, like_event_{};
    std::string like_{};  // the last event of that shape, or empty
    std::size_t before_ = 0, after_ = 0;  // bytes around that text
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
