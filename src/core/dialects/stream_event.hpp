// stream events of any API
#pragma once

#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/text.hpp"
#include "core/wire/event_stream.hpp"
#include "core/dialects/output.hpp"
#include "core/dialects/request_body.hpp"

#include <cstdint>  // uint32_t
#include <span>
#include <string>
#include <string_view>
#include <utility>  // pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::string in_lower_case(std::string_view s) {
    std::string low(s);
    for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return low;
}
/// Returns OpenAI's name of a finish reason, "" for a word for nothing.
inline std::string finish_reason_of(std::string_view said) {
    constexpr std::pair<std::string_view, const char*> words[] = {
        {"stop", "stop"},       {"eos_token", "stop"},         {"stop_sequence", "stop"},
        {"eos", "stop"},        {"word", "stop"},              {"end_turn", "stop"},
        {"complete", "stop"},   {"length", "length"},          {"limit", "length"},
        {"max_tokens", "length"}, {"max_output_tokens", "length"}, {"model_length", "length"},
        {"tool_use", "tool_calls"}};
    const std::string low = in_lower_case(said);
    for (const auto& [theirs, ours] : words)
        if (low == theirs) return ours;
    return is_nothing(said) ? "" : std::string(said);
}

/// Generated text is taken as text of the answer or as thought.
using taken_as = json_view::use;

/// One event of a stream, with its usage.
struct stream_event : usage_counts {
    bool content = false;           // has output in any choice
    bool answer = false;            // has output other than reasoning
    bool tokenless = false;         // has output without tokens
    bool done = false;              // the API's last event, or
    bool is_body_end = false;       // instead of one
    int first_tokens = 1;           // its tokens, if reported
    bool counted = false;           // tokens were reported
    bool hides_thought = false;     // has encrypted or redacted reasoning
    bool has_media = false;         // has sound or images
    int text_bytes = 0;             // of the content, decoded; the most that a call can have
    int reasoning_bytes = 0;        // part of text_bytes
    int own_bytes = 0;              // the same, as they came
    int choices = 1;                // of the stream, as far as known
    int finished = 0;               // choices with a finish reason
    std::string finish_reason{};
    int finish_choice = 0;          // the choice of the finish reason
    std::string error{};            // from the server, or why malformed
    bool malformed = false;
    bool is_like_no_other = false;  // depends on more than its own texts and counts
    bool counts_usage = false;      // its tokens are those of the usage
    bool is_content_alone = false;  // the only choice's, with counts or without
    bool reports_counts = true;     // any of a usage
    // Those of events like this one that came together with it, before it: own_bytes of each, none
    // of over most_alike, and all reasoning_bytes.
    std::span<const std::uint32_t> before{};
    int reasoning_before = 0;
    static constexpr std::size_t most_alike = 8192;

    /// Sets the reported number of tokens.
    void count(int tokens) {
        first_tokens = tokens;
        counted = true;
        counts_usage = false;
    }
    /// The same by a running usage, which is only valid for the first event. False without one.
    bool count_usage() {
        if (completion_tokens > 0) count(completion_tokens);
        return counts_usage = completion_tokens > 0;
    }
    /// Counts generated text, if any.
    void take(std::string_view text, taken_as as = taken_as::text) {
        if (text.empty()) return;
        const auto bytes = static_cast<int>(text.size());
        content = true;
        answer = answer || as == taken_as::text;
        text_bytes += bytes;
        own_bytes += bytes;
        reasoning_bytes += as == taken_as::thought ? bytes : 0;
    }
    /// A fragment of a call, with its length. Its tokens are unknown, so it counts as many.
    void take_call(std::size_t bytes = 0) {
        content = answer = is_like_no_other = true;
        text_bytes += call_bytes;
        own_bytes += static_cast<int>(bytes) + (bytes == 0);
    }
    static constexpr int call_bytes = 256;
    /// Notes what is no output, by its name.
    void note_opaque(std::string_view name, taken_as as = taken_as::text) {
        const bool reasons =
            as == taken_as::thought || has_any_of(name, {"think", "thought", "reason"});
        hides_thought = hides_thought || (reasons && is_opaque(name));
        has_media = has_media || has_any_of(name, {"audio", "image"});
    }

    void note_if_alone() {
        is_content_alone = content && error.empty() && !malformed && !done && !tokenless &&
                           !hides_thought && !has_media && finish_reason.empty() && choices == 1;
        reports_counts = cache_is_apart ||
                         any_of(all_counts, [&](auto count) { return this->*count >= 0; });
    }

    /// Takes a finish reason in a server's words.
    void finish(std::string_view said, int choice = 0) {
        const std::string reason = said.empty() ? "" : finish_reason_of(said);
        if (reason.empty()) return;
        ++finished;
        note_finish(finish_reason, finish_choice, reason, choice);
    }
    /// With several choices the first one's reason counts, unless another one failed.
    static void note_finish(std::string& reason, int& of_choice, const std::string& reported,
                            int choice) {
        const bool is_first = reason.empty() || choice <= of_choice;
        if (is_failure(reason) || (!is_first && !is_failure(reported))) return;
        reason = reported;
        of_choice = choice;
    }
    /// The server gave up: "abort" (vLLM, SGLang), "error" (OpenRouter), "cancelled" and "timeout"
    /// (TensorRT-LLM), "insufficient_system_resource" (DeepSeek), "preempt" (MLC-LLM),
    /// "MALFORMED_FUNCTION_CALL" (Gemini), "engine_overloaded".
    static bool is_failure(std::string_view reason) {
        return has_any_of(in_lower_case(reason), {"abort", "error", "cancel", "timeout",
                                                  "insufficient", "preempt", "malformed",
                                                  "overload"});
    }
    /// A word of a server's own that comes with content again is a state, as "in_progress".
    static bool is_state(std::string_view reason, std::string_view before) {
        return !reason.empty() && reason == before && reason != "stop" && !is_at_length(reason) &&
               reason != "tool_calls" && !is_filtered(reason) && !is_failure(reason);
    }
    static bool is_at_length(std::string_view reason) { return reason == "length"; }
    /// The server cut off the answer: "content_filter" (OpenAI), "refusal" (Anthropic), "sensitive"
    /// (Zhipu), "SAFETY" and "RECITATION" (Gemini), "guardrail_intervened" (Bedrock).
    static bool is_filtered(std::string_view reason) {
        return has_any_of(in_lower_case(reason), {"filter", "refus", "sensitive", "safety",
                                                  "recitation", "guardrail", "prohibited"});
    }
};

/// Whether a value is something in JavaScript: no null, false, 0 or empty text.
inline bool is_truthy(const json_view& v) {
    if (v.is_number()) return number_in(v) != 0;
    if (v.is_string()) return !v.text.empty();
    return v.is_object() || is_list(v) || is_true(v);
}
/// False for null, false, 0, words for nothing, and objects or lists of only these.
inline bool says_something(const json_view& v) {
    if (v.is_object())
        return any_of(members_of(v), [](const auto& m) { return says_something(*m.second); });
    if (is_list(v)) return any_of(items_of(v), says_something);
    return v.is_string() ? !is_nothing(v.text) : is_truthy(v);
}
/// The JSON of a value, in its shortest form and with its members in order.
inline std::string serialized(const json_view& v) { return tree_of(v).serialize(); }

/// The message of an error in any known shape.
inline std::string error_message(const json_view& v) {
    if (const json_view* e = member(v, "error"); e && says_something(*e)) {
        if (e->is_string()) return std::string(e->text);
        const std::string message = word_member(*e, "message");
        return message.empty() ? serialized(*e) : message;
    }
    const json_view* detail = member(v, "detail");
    if (string_member(v, "object") != "error" && !(detail && says_something(*detail))) return {};
    const std::string message = word_member(v, "message");
    if (message.empty() && detail && detail->is_string()) return std::string(detail->text);
    return message.empty() ? serialized(v) : message;
}

/// The message of a body with an error status. A "message" may be the only member (mistral.rs), and
/// a string may contain the object (MLC-LLM).
inline std::string refusal_message(const json_view& v) {
    if (v.is_string()) {
        json_reader reader;
        const json_view* inner = reader.read(v.text);
        return inner && inner->is_object() ? refusal_message(*inner) : "";
    }
    const std::string reported = error_message(v);
    return reported.empty() ? word_member(v, "message") : reported;
}

/// All generated text.
struct generated_text {
    std::string reasoning{}, answer{}, calls{};
    std::string id{};  // by which a server that stores it knows it
    /// One text that keeps the parts distinct.
    std::string joined() const {
        return (reasoning.empty() ? "" : reasoning + '\x1e') + answer +
               (calls.empty() ? "" : '\x1f' + calls);
    }
};

/// The state of a stream's reader between events.
struct stream_memory {
    std::string text{};      // of the last event, if events repeat all text
    std::string ids{};       // likewise, if tokens are listed
    bool cumulative = true;  // until an event disproves it
    int tokens = 0;          // so far, if each event reports its own
    asked_answer asked{};
    generated_text said{};   // if kept
    unsigned long long opening = 14695981039346656037ull;  // FNV-1a of the first bytes of text
    int opening_bytes = 0;
    static constexpr int whole_opening = 128;
    std::string model{};     // as its first events name it
    int looked_for_model = 0;

    /// Takes the text of a member: the event counts it, the memory keeps it.
    void take(stream_event& e, const json_view& v, const char* name,
              taken_as as = taken_as::text) {
        if (const json_view* m = member(v, name); m && m->is_string()) take(e, *m, as);
    }
    void take(stream_event& e, const json_view& piece, taken_as as) {
        e.take(piece.text, as);
        keep(piece.text, as);
        // One that is as good as none may have come to more than its text.
        if (!is_nothing(piece.text)) piece.used = as;
    }
    void keep(std::string_view piece, taken_as as = taken_as::text) {
        if (opening_bytes < whole_opening) add_to_opening(piece);
        if (asked.is_kept) (as == taken_as::thought ? said.reasoning : said.answer) += piece;
    }
    void add_to_opening(std::string_view piece) {
        const auto left = static_cast<std::size_t>(whole_opening - opening_bytes);
        for (const char c : piece.substr(0, left)) {
            opening = (opening ^ static_cast<unsigned char>(c)) * 1099511628211ull;
            ++opening_bytes;
        }
    }
    /// Looks in the first events alone: all others have the same, or none.
    void note_model(const json_view& v) {
        if (!model.empty() || looked_for_model++ >= 4) return;
        for (const char* way : {"model", "model_name", "message.model", "response.model"})
            if (const json_view* m = value_at(v, way); m && m->is_string() && model.empty())
                model = printable(m->text, 100);
    }
    void keep_id(stream_event& e, const json_view& v) {
        e.is_like_no_other = true;
        if (asked.is_kept && said.id.empty()) said.id = string_member(v, "id");
    }
    /// A call or a part of one, without its id, which varies. Returns its length.
    std::size_t call(stream_event& e, const json_view& v, const char* name = "name",
                     const char* input = "arguments") {
        std::string call = has_text(v, name) ? "\n" : "";
        for (const char* field : {name, input})
            if (const json_view* m = member(v, field); m && is_truthy(*m))
                call += m->is_string() ? std::string(m->text) : serialized(*m);
        if (asked.is_kept) said.calls += call;
        e.is_like_no_other = e.is_like_no_other || !call.empty();
        return call.size();
    }
};

inline void note_output_tokens(stream_event& e, int n) {
    e.completion_tokens = n;
    e.count_usage();
}

/// Reads one event of a stream, whose JSON is `v`, null if it is none. `read` handles the API's own
/// fields.
template <class Read>
stream_event read_json_event(std::string_view type, std::string_view data, const json_view* v,
                             Read read, stream_memory& memory) {
    stream_event e;
    const bool is_error = speaks_of_error(type);
    e.done = !is_error && trimmed(data) == "[DONE]";
    const bool empty = data.find_first_not_of(" \t\r\n") == std::string_view::npos;
    if (empty && is_error) e.error = "the stream says \"" + printable(type, 40) + "\", and no more";
    if (e.done || empty) return e;  // an empty event is a keep-alive
    if (v && v->text == "null" && !v->is_string() && !is_error) return e;  // likewise
    if (is_error && !(v && v->is_object())) {
        e.error = printable(data);
        return e;
    }
    if (!v || !v->is_object()) {
        e.malformed = true;
        e.error = "an event is not a JSON object: \"" + printable(data, 60) + "\"";
        return e;
    }
    e.error = is_error ? refusal_message(*v) : error_message(*v);
    if (is_of_tool(type) || is_of_tool(string_member(*v, "type"))) e.error.clear();
    memory.note_model(*v);
    read(*v, e, memory);
    if (e.error.empty() && is_error) e.error = printable(data);
    e.note_if_alone();
    return e;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
