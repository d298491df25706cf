// OpenAI's answers
#pragma once

#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // clamp, max
#include <cstddef>  // size_t
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Calls `take(text, as)` for each text of an output field: a text, or a list of parts, where
/// a part may have its own list (Mistral's API, some gateways). What is opaque is left out. False
/// for an unknown form.
template <class Take>
bool each_text(const json_view& v, taken_as as, stream_event& e, Take&& take) {
    if (v.is_string()) return take(v, as), true;
    if (is_list(v))
        return all_of(items_of(v), [&](const json_view& part) {
            return each_text(part, as, e, take);
        });
    const std::string_view type = string_member(v, "type");
    if (is_marked_as_thought(v)) as = taken_as::thought;
    if (is_opaque(type) || has_any_of(type, {"status", "progress"}))
        return e.note_opaque(type, as), true;
    if (names_call(type)) return e.take_call(serialized(v).size()), true;
    for (const char* name :
         {"text", "thinking", "reasoning", "summary", "refusal", "content", "delta"})
        if (const json_view* m = member(v, name); m && is_truthy(*m))
            return each_text(*m, names_thoughts(name) ? taken_as::thought : as, e, take);
    for (const auto& [name, said] : members_of(v)) e.note_opaque(name, as);
    return !type.empty() || !says_something(v);
}

/// Takes the output of one choice of an OpenAI event, chat or completions, with its text in
/// `memory` unless null. False without output. A second field of one kind repeats the first.
inline bool take_output(const json_view& choice, const char* output, stream_event& e,
                        stream_memory* memory) {
    const int before = e.text_bytes;
    bool texts = false, thoughts = false;
    const auto take = [&](const json_view& said, taken_as of_all) {
        const bool repeats_text = texts, repeats_thought = thoughts;
        return each_text(said, of_all, e, [&](const json_view& text, taken_as as) {
            if (text.text.empty()) return;
            const bool thinks = as == taken_as::thought;
            const bool repeats = thinks ? repeats_thought : repeats_text;
            if (repeats && !is_nothing(text.text)) text.ignore();
            if (repeats) return;
            (thinks ? thoughts : texts) = true;
            if (memory) memory->take(e, text, as);
            else e.take(text.text, as);
        });
    };
    const json_view* delta = member(choice, output);
    const taken_as marked =
        delta && is_marked_as_thought(*delta) ? taken_as::thought : taken_as::text;
    const auto take_known = [&](const json_view& from, const char* name, taken_as as) {
        const json_view* said = member(from, name);
        if (!said || take(*said, as)) return;
        e.malformed = true;
        e.error = printed("\"%s\" is in a form that is not known: ", name) +
                  printable(serialized(*said), 60);
    };
    take_known(choice, "text", taken_as::text);
    if (!delta || !delta->is_object()) return e.text_bytes > before;
    for (const char* name : {"content", "refusal"}) take_known(*delta, name, marked);
    for (const char* name : {"reasoning_content", "reasoning"})
        take_known(*delta, name, taken_as::thought);
    for (const auto& [name, said] : members_of(*delta)) {
        if (names_thoughts(name)) take(*said, taken_as::thought);
        else if (name == "content_blocks" || name == "parts") take(*said, taken_as::text);
        if (says_something(*said)) e.note_opaque(name);
    }
    if (const json_view* words = value_at(*delta, "audio.transcript")) take(*words, taken_as::text);
    if (value_at(*delta, "extra_content.google.thought_signature")) e.hides_thought = true;
    const auto call = [&](const json_view& called) {
        stream_memory none;
        // Without a name and arguments it is announced only.
        if (const std::size_t bytes = (memory ? *memory : none).call(e, called)) e.take_call(bytes);
    };
    for (const json_view& tool : array_member(*delta, "tool_calls")) {
        const json_view* function = member(tool, "function");
        call(function ? *function : tool);
    }
    const json_view* function = member(*delta, "function_call");
    if (function && function->is_object() && function->values > 1) call(*function);
    return e.text_bytes > before;
}

/// Returns the tokens that a choice lists (logprobs, token ids), 0 without a list.
inline int listed_tokens(const json_view& choice) {
    const json_view* listed = value_at(choice, "logprobs.content");
    if (!listed) listed = member(choice, "token_ids");
    return listed && is_list(*listed) ? items_of(*listed).size() : 0;
}

inline constexpr int most_choices = static_cast<int>(most_of_few);
/// Usage and choices of an OpenAI answer. Output is in `delta`, for a whole answer in `message`.
inline void read_openai_choices(const json_view& v, stream_event& e, stream_memory& memory,
                                const char* output) {
    for (const char* way : {"usage", "x_groq.usage"})
        if (const json_view* usage = value_at(v, way)) read_usage(*usage, e);
    for (const json_view& choice : array_member(v, "choices")) {
        const int index = std::clamp(count_member(choice, "index"), 0, most_choices - 1);
        e.choices = std::max(e.choices, 1 + index);
        e.finish(word_member(choice, "finish_reason"), index);
        if (const json_view* usage = member(choice, "usage")) read_usage(*usage, e);  // Kimi
        // The first choice continues the conversation.
        if (!take_output(choice, output, e, index == 0 ? &memory : nullptr)) continue;
        if (e.count_usage()) continue;
        if (const int n = listed_tokens(choice); n > 0) e.count(n);
    }
}
inline void read_openai(const json_view& v, stream_event& e, stream_memory& memory) {
    read_openai_choices(v, e, memory, "delta");
}
inline void read_openai_whole(const json_view& v, stream_event& e, stream_memory& memory) {
    read_openai_choices(v, e, memory, "message");
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
