// what a server says, whichever API it has
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"

#include <string>
#include <string_view>
#include <utility>  // pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What one stream event says.
struct stream_event {
    bool content = false;           // carries generated output, in any choice
    bool answer = false;            // some of it is no reasoning
    bool tokenless = false;         // it is what no tokens were generated for
    bool done = false;              // the API's terminal event
    int first_tokens = 1;           // tokens in this event, as far as it says so
    bool counted = false;           // it does
    int prompt_tokens = -1;         // usage, -1 where absent
    int completion_tokens = -1;
    int cached_tokens = -1;
    int reasoning_tokens = -1;      // of the completion's
    int text_bytes = 0;             // of the content, decoded
    int reasoning_bytes = 0;        // of these
    int choices = 1;                // of the stream, as far as it says so
    int finished = 0;               // of them, with a finish reason
    std::string finish_reason{};
    int finish_choice = 0;          // whose reason that is
    std::string error{};            // told by the server inside the stream, or why malformed
    bool malformed = false;

    /// It tells how many tokens it brings.
    void count(int tokens) {
        first_tokens = tokens;
        counted = true;
    }
    /// Generated text of this member, where there is some.
    bool take_text(const picojson::value& v, const char* name) {
        const int reasoned = reasoning_bytes;
        if (!take_reasoning(v, name)) return false;
        reasoning_bytes = reasoned;
        answer = true;
        return true;
    }
    /// The same of text that the model thinks and does not answer.
    bool take_reasoning(const picojson::value& v, const char* name) {
        if (!has_text(v, name)) return false;
        content = true;
        const auto bytes = static_cast<int>(string_member(v, name).size());
        text_bytes += bytes;
        reasoning_bytes += bytes;
        return true;
    }
    /// A fragment of a call: nothing tells of how many tokens, so it passes for many.
    void take_call() {
        content = answer = true;
        text_bytes += call_bytes;
    }
    static constexpr int call_bytes = 256;

    void finish(const std::string& reason, int choice = 0) {
        if (reason.empty()) return;
        ++finished;
        note_finish(finish_reason, finish_choice, reason, choice);
    }
    /// Of several choices the reason of the first one counts, unless another one's tells of a
    /// failure.
    static void note_finish(std::string& reason, int& of_choice, const std::string& reported,
                            int choice) {
        const bool is_first = reason.empty() || choice <= of_choice;
        if (is_failure(reason) || (!is_first && !is_failure(reported))) return;
        reason = reported;
        of_choice = choice;
    }
    /// "abort" (vLLM, SGLang), "error" (OpenRouter), "cancelled" and "timeout" (TensorRT-LLM),
    /// "insufficient_system_resource" (DeepSeek), "preempt" (MLC-LLM): the server gave up.
    static bool is_failure(std::string_view reason) {
        for (const char* part : {"abort", "error", "cancel", "timeout", "insufficient", "preempt"})
            if (reason.find(part) != std::string_view::npos) return true;
        return false;
    }
    /// "content_filter" (OpenAI), "refusal" (Anthropic), "sensitive" (Zhipu), "SAFETY" and
    /// "RECITATION" (Gemini), "guardrail_intervened" (Bedrock): the server cut the answer off.
    static bool is_at_length(std::string_view reason) { return reason == "length"; }
    static bool is_filtered(std::string_view reason) {
        std::string low(reason);
        for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
        for (const char* part :
             {"filter", "refus", "sensitive", "safety", "recitation", "guardrail", "prohibited"})
            if (low.find(part) != std::string::npos) return true;
        return false;
    }
};

/// The message of an error answer in any of the shapes in use.
inline std::string error_message(const picojson::value& v) {
    // Not null, false, 0 or "".
    if (const picojson::value* e = member(v, "error"); e && e->evaluate_as_boolean()) {
        if (e->is<std::string>()) return e->get<std::string>();
        const std::string message = string_member(*e, "message");
        return message.empty() ? e->serialize() : message;
    }
    const picojson::value* detail = member(v, "detail");
    if (string_member(v, "object") != "error" && !(detail && detail->evaluate_as_boolean()))
        return {};
    const std::string message = string_member(v, "message");
    if (message.empty() && detail && detail->is<std::string>()) return detail->get<std::string>();
    return message.empty() ? v.serialize() : message;
}

/// The same of a body with an error status, where a "message" may stand alone (mistral.rs), and all
/// of it may be a string that has the object in it (MLC-LLM).
inline std::string refusal_message(const picojson::value& v) {
    picojson::value inner;
    if (v.is<std::string>())
        return parse_json(v.get<std::string>(), inner) && inner.is<picojson::object>()
                   ? refusal_message(inner)
                   : "";
    const std::string reported = error_message(v);
    return reported.empty() ? string_member(v, "message") : reported;
}

/// All that was generated.
struct generated_text {
    std::string reasoning{}, answer{}, calls{};
    /// As one text, in which none of them passes for another.
    std::string joined() const {
        return (reasoning.empty() ? "" : reasoning + '\x1e') + answer +
               (calls.empty() ? "" : '\x1f' + calls);
    }
};

/// What the reader of one stream remembers from event to event.
struct stream_memory {
    std::string text{};      // the last event's, where a server repeats all text so far
    std::string ids{};       // and its tokens, where it lists them
    bool cumulative = true;  // until an event shows that it is not
    int tokens = 0;          // so far, where each event tells its own
    asked_answer asked{};
    bool keeps_answer = false;
    generated_text said{};   // where it is kept

    void say(const picojson::value& v, const char* name) { keep(said.answer, v, name); }
    void think(const picojson::value& v, const char* name) { keep(said.reasoning, v, name); }
    /// A call, or the next piece of one: its id is another one each time.
    void call(const picojson::value& v, const char* name = "name",
              const char* input = "arguments") {
        if (!keeps_answer) return;
        if (has_text(v, name)) said.calls += '\n';
        for (const char* field : {name, input})
            if (const picojson::value* m = member(v, field); m && m->evaluate_as_boolean())
                said.calls += m->is<std::string>() ? m->get<std::string>() : m->serialize();
    }

private:
    void keep(std::string& to, const picojson::value& v, const char* name) {
        if (keeps_answer) to += string_member(v, name);
    }
};

/// The word that OpenAI has for why an answer ended, where it has one.
inline std::string finish_reason_of(const std::string& said) {
    constexpr std::pair<std::string_view, const char*> words[] = {
        {"eos_token", "stop"},  {"stop_sequence", "stop"}, {"eos", "stop"},
        {"word", "stop"},       {"end_turn", "stop"},      {"limit", "length"},
        {"max_tokens", "length"}, {"tool_use", "tool_calls"}, {"none", ""}, {"None", ""}};
    for (const auto& [theirs, ours] : words)
        if (said == theirs) return ours;
    return said;
}
inline void note_output_tokens(stream_event& e, int n) {
    e.completion_tokens = n;
    if (n > 0) e.count(n);  // so far: it holds for the first event
}

/// One event of a stream. `read` takes what is particular to the API.
template <class Read>
stream_event read_json_event(std::string_view type, std::string_view data, Read read,
                             stream_memory& memory) {
    stream_event e;
    e.done = trimmed(data) == "[DONE]";
    const bool empty = data.find_first_not_of(" \t\r\n") == std::string_view::npos;
    if (e.done || empty) return e;  // an empty one keeps the connection alive
    picojson::value v;
    const bool is_json = parse_json(data, v);
    if (is_json && v.is<picojson::null>() && type != "error") return e;  // the same
    if (!is_json || !v.is<picojson::object>()) {
        e.malformed = true;
        e.error = "an event is not a JSON object: \"" + printable(data, 60) + "\"";
        return e;
    }
    e.error = error_message(v);
    if (e.error.empty() && type == "error") e.error = printable(data);
    read(v, e, memory);
    return e;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
