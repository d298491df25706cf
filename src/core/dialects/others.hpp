// request and response formats of each API
#pragma once

#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // max, min
#include <string>
#include <string_view>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// "image/png" and "AA==" of "data:image/png;base64,AA==".
inline std::pair<std::string, std::string> parts_of_data_url(const std::string& url) {
    const std::size_t type = std::min(url.find(':') + 1, url.size());
    const std::size_t end = std::min(url.find(';', type), url.size());
    return {url.substr(type, end - type), url.substr(std::min(url.find(',') + 1, url.size()))};
}

// A user's message in APIs with images, as the value of "content".

inline std::string openai_content(const request_spec& r) {
    if (r.image.empty()) return json_quoted(r.prompt);
    return joined({"[{\"type\":\"text\",\"text\":", json_quoted(r.prompt),
                   "},{\"type\":\"image_url\",\"image_url\":{\"url\":", json_quoted(r.image),
                   "}}]"});
}
inline std::string anthropic_content(const request_spec& r) {
    if (r.image.empty()) return json_quoted(r.prompt);
    const auto [type, data] = parts_of_data_url(r.image);
    return joined({"[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":",
                   json_quoted(type), ",\"data\":", json_quoted(data),
                   "}},{\"type\":\"text\",\"text\":", json_quoted(r.prompt), "}]"});
}
inline std::string ollama_images(const request_spec& r) {
    return "[" + json_quoted(parts_of_data_url(r.image).second) + "]";
}
/// Images have a field of their own.
inline std::string ollama_content(const request_spec& r) {
    return json_quoted(r.prompt) + (r.image.empty() ? "" : ",\"images\":" + ollama_images(r));
}

// Each API: its request, its events and, if different, its whole answer. The rest is in table.hpp.

inline void write_openai(body_writer& b, const request_spec& r) {
    b.flag("stream", r.stream);
    if (r.stream && r.include_usage)
        b.raw("stream_options", r.continuous_usage
                                    ? "{\"include_usage\":true,\"continuous_usage_stats\":true}"
                                    : "{\"include_usage\":true}");
    b.max_tokens("max_tokens").ignore_eos().temperature();
}
inline void write_openai_chat(body_writer& b, const std::string& model, const request_spec& r) {
    b.string("model", model).messages(openai_content);
    write_openai(b, r);
}
inline std::string text_or_ids(const request_spec& r) {
    return r.token_ids.empty() ? json_quoted(joined_prompt(r)) : r.token_ids;
}
inline void write_openai_completions(body_writer& b, const std::string& model,
                                     const request_spec& r) {
    b.string("model", model);
    b.raw("prompt", text_or_ids(r));
    write_openai(b, r);
}

/// Images are Markdown in the text. TGI samples only at temperatures above 0.
inline void write_tgi(body_writer& b, const std::string&, const request_spec& r) {
    const std::string image = r.image.empty() ? "" : "![](" + r.image + ")";
    b.string("inputs", image + joined_prompt(r)).object("parameters", [&](body_writer& p) {
        p.flag("details", true).max_tokens("max_new_tokens");
        if (r.temperature == 0) p.flag("do_sample", false);
        else p.temperature();
    });
}
inline void read_tgi_details(const json_view& v, stream_event& e) {
    e.finish(string_at(v, "details.finish_reason"));
    e.completion_tokens = count_at(v, "details.generated_tokens");
    e.prompt_tokens = count_at(v, "details.input_length");
}
/// One token per event. Special tokens, such as the end of the text, are not output.
inline void read_tgi(const json_view& v, stream_event& e, stream_memory& memory) {
    const json_view* special = value_at(v, "token.special");
    if (const json_view* token = member(v, "token"))
        if (!(special && is_truthy(*special))) memory.take(e, *token, "text");
    read_tgi_details(v, e);
    const json_view* all = member(v, "generated_text");
    e.done = all && all->is_string();
}
inline void read_tgi_whole(const json_view& v, stream_event& e, stream_memory& memory) {
    memory.take(e, v, "generated_text");
    read_tgi_details(v, e);
}

/// Fields that are not inputs become parameters, so one form serves both backends: vLLM's has
/// ignore_eos, TensorRT-LLM's needs {"end_id": -1} or min_length in extra_body.
inline void write_triton(body_writer& b, const std::string&, const request_spec& r) {
    b.string("text_input", joined_prompt(r)).flag("stream", r.stream);
    b.max_tokens("max_tokens").ignore_eos().temperature();
}
/// Each event has its own token count, if return_num_output_tokens is set.
inline void read_triton(const json_view& v, stream_event& e, stream_memory& memory) {
    memory.take(e, v, "text_output");
    e.finish(string_member(v, "finish_reason"));
    e.prompt_tokens = count_member(v, "num_input_tokens");
    const int n = count_member(v, "num_output_tokens");
    if (n < 0) return;
    e.is_like_no_other = true;  // its tokens are those of all so far
    note_output_tokens(e, memory.tokens = sum_of_counts(memory.tokens, n));
}

inline void write_ollama_options(body_writer& b, const request_spec& r) {
    b.flag("stream", r.stream).object("options", [](body_writer& o) {
        o.max_tokens("num_predict").temperature();
    });
}
inline void write_ollama(body_writer& b, const std::string& model, const request_spec& r) {
    b.string("model", model).messages(ollama_content);
    write_ollama_options(b, r);
}
inline void write_ollama_generate(body_writer& b, const std::string& model, const request_spec& r) {
    b.string("model", model).string("prompt", joined_turns(r)).system("system");
    if (!r.image.empty()) b.raw("images", ollama_images(r));
    write_ollama_options(b, r);
}
inline void read_ollama(const json_view& v, stream_event& e, stream_memory& memory) {
    const json_view* message = member(v, "message");
    for (const json_view* from : {&v, message}) {
        if (!from) continue;
        for (const char* name : {"content", "response"}) memory.take(e, *from, name);
        memory.take(e, *from, "thinking", taken_as::thought);
        for (const json_view& tool : array_member(*from, "tool_calls"))
            if (const json_view* function = member(tool, "function"))
                e.take_call(memory.call(e, *function));
    }
    const json_view* done = member(v, "done");
    e.done = done && is_truthy(*done);
    e.finish(string_member(v, "done_reason"));
    e.completion_tokens = count_member(v, "eval_count");
    e.prompt_tokens = count_member(v, "prompt_eval_count");
}

inline void write_llama_cpp(body_writer& b, const std::string&, const request_spec& r) {
    b.raw("prompt", text_or_ids(r)).flag("stream", r.stream);
    b.max_tokens("n_predict").ignore_eos().temperature();
}
inline void read_llama_cpp(const json_view& v, stream_event& e, stream_memory& memory) {
    memory.take(e, v, "content");
    if (const json_view* n = member(v, "tokens_predicted"))
        take_count(*n, e, &usage_counts::completion_tokens);
    e.count_usage();
    e.prompt_tokens = count_member(v, "tokens_evaluated");
    e.cached_tokens = count_at(v, "timings.cache_n");
    e.finish(string_member(v, "stop_type"));
    if (true_member(v, "stopped_limit")) e.finish("length");  // in older versions
    if (true_member(v, "stopped_eos") || true_member(v, "stopped_word")) e.finish("stop");
    e.done = true_member(v, "stop");
}

inline void write_sglang(body_writer& b, const std::string&, const request_spec& r) {
    b.raw(r.token_ids.empty() ? "text" : "input_ids", text_or_ids(r)).flag("stream", r.stream);
    b.object("sampling_params", [](body_writer& p) {
        p.max_tokens("max_new_tokens").ignore_eos().temperature();
    });
}
/// Every event repeats all text so far, unless the server streams increments. Then a text does not
/// begin with the previous one. If both are equal, so are their tokens: repeated text would have
/// more of them, and a token without text is a different one.
inline void read_sglang(const json_view& v, stream_event& e, stream_memory& memory) {
    const std::string_view text = string_member(v, "text");
    const json_view* listed = member(v, "output_ids");
    const bool lists_some = listed && is_list(*listed) && listed->values > 1;
    const std::string_view ids = lists_some ? listed->text : std::string_view();
    e.is_like_no_other = true;
    const bool is_same_piece = !text.empty() && text == memory.text && !ids.empty() &&
                               ids == memory.ids;
    if (is_same_piece || !text.starts_with(memory.text)) memory.cumulative = false;
    memory.ids = ids;
    const std::string_view more = text.substr(memory.cumulative ? memory.text.size() : 0);
    e.take(more);
    if (memory.opening_bytes < stream_memory::whole_opening) memory.add_to_opening(more);
    std::string& said = memory.said.answer;
    if (memory.asked.is_kept && memory.cumulative) said = text;
    else if (memory.asked.is_kept) said += text;
    memory.text = text;
    note_output_tokens(e, count_at(v, "meta_info.completion_tokens"));
    e.prompt_tokens = count_at(v, "meta_info.prompt_tokens");
    e.cached_tokens = count_at(v, "meta_info.cached_tokens");
    const json_view* reason = value_at(v, "meta_info.finish_reason");
    if (!reason) return;
    e.finish(reason->is_string() ? reason->text : string_member(*reason, "type"));
    if (e.finish_reason == "abort") e.error = string_member(*reason, "message");
}

inline void write_plain_text(body_writer& b, const std::string&, const request_spec& r) {
    b.string("prompt", joined_prompt(r)).max_tokens("max_tokens").temperature();
}

/// Anthropic requires max_tokens.
inline void write_anthropic(body_writer& b, const std::string& model, const request_spec& r) {
    b.string("model", model).turns(anthropic_content, "messages").system("system");
    b.flag("stream", r.stream);
    if (r.max_tokens > 0) b.max_tokens("max_tokens");
    else b.raw("max_tokens", "1024");
    b.temperature();
}
inline void read_anthropic_usage(const json_view& v, stream_event& e) {
    e.cache_is_apart = true;
    if (const json_view* usage = member(v, "usage")) read_usage(*usage, e);
}
inline void take_anthropic_piece(const json_view& piece, stream_event& e, stream_memory& memory) {
    const std::string_view type = string_member(piece, "type");
    e.note_opaque(type);
    memory.take(e, piece, "text");
    memory.take(e, piece, "thinking", taken_as::thought);
    e.take(string_member(piece, "partial_json"));
    const std::size_t called =
        memory.call(e, piece, "name", has_text(piece, "partial_json") ? "partial_json" : "input");
    if (names_call(type)) e.take_call(called);
}
inline void read_anthropic(const json_view& v, stream_event& e, stream_memory& memory) {
    e.done = string_member(v, "type") == "message_stop";
    if (const json_view* message = member(v, "message")) read_anthropic_usage(*message, e);
    else read_anthropic_usage(v, e);
    for (const char* name : {"delta", "content_block"}) {
        const json_view* piece = member(v, name);
        if (!piece) continue;
        take_anthropic_piece(*piece, e, memory);
        e.finish(string_member(*piece, "stop_reason"));
    }
}
inline void read_anthropic_whole(const json_view& v, stream_event& e, stream_memory& memory) {
    read_anthropic_usage(v, e);
    e.finish(string_member(v, "stop_reason"));
    for (const json_view& block : array_member(v, "content"))
        take_anthropic_piece(block, e, memory);
}

inline std::string responses_content(const request_spec& r) {
    if (r.image.empty()) return json_quoted(r.prompt);
    return joined({"[{\"type\":\"input_text\",\"text\":", json_quoted(r.prompt),
                   "},{\"type\":\"input_image\",\"image_url\":", json_quoted(r.image), "}]"});
}
/// Unless it keeps the history, the server stores nothing. It never keeps the instructions.
/// https://platform.openai.com/docs/guides/conversation-state (2026-11).
inline void write_responses(body_writer& b, const std::string& model, const request_spec& r) {
    b.string("model", model).turns(responses_content, "input").system("instructions");
    if (!r.previous_response.empty()) b.string("previous_response_id", r.previous_response);
    b.flag("stream", r.stream).flag("store", r.server_history);
    b.max_tokens("max_output_tokens").ignore_eos().temperature();
}

/// The final event. vLLM calls an answer completed that was cut off at its length, so the status
/// decides, not the event name.
inline void read_response_end(const json_view& v, stream_event& e) {
    if (const json_view* usage = member(v, "usage")) read_usage(*usage, e);
    const std::string status = word_member(v, "status");
    const std::string why = word_of(value_at(v, "incomplete_details.reason"));
    e.finish(status == "completed"           ? "stop"
             : why == "max_output_tokens"    ? "length"
             : status == "incomplete"        ? (why.empty() ? status : why)
                                             : status);
    if (e.error.empty()) e.error = error_message(v);
    if (e.error.empty() && status == "failed") e.error = "the response failed";
}
/// Text comes in events that end in "delta", and again in full in later ones.
inline void read_responses(const json_view& v, stream_event& e, stream_memory& memory) {
    const std::string_view type = string_member(v, "type");
    if (type.ends_with(".delta") && has_text(v, "delta")) {
        const bool reasons = names_thoughts(type);
        if (reasons || has_any_of(type, {"output_text", "transcript"}))
            memory.take(e, v, "delta", reasons ? taken_as::thought : taken_as::text);
        else if (type == "response.refusal.delta") e.take(string_member(v, "delta"));
        else if (names_call(type)) e.take_call(string_member(v, "delta").size());
        else e.note_opaque(type);
        if (names_call(type) || type == "response.refusal.delta")
            memory.call(e, v, "name", "delta");
    }
    if (const json_view* item = member(v, "item")) {
        if (type.ends_with("item.added")) memory.call(e, *item);
        if (has_text(*item, "encrypted_content")) e.hides_thought = true;
    }
    for (const char* end : {"response.completed", "response.incomplete", "response.failed"})
        if (type == end) e.done = true;
    if (type == "error") {
        e.done = true;
        if (has_text(v, "message")) e.error = string_member(v, "message");
    }
    const json_view* response = member(v, "response");
    if (response) memory.keep_id(e, *response);
    if (e.done && response) read_response_end(*response, e);
}
inline void read_responses_whole(const json_view& v, stream_event& e, stream_memory& memory) {
    for (const json_view& item : array_member(v, "output")) {
        const std::string_view type = string_member(item, "type");
        if (names_call(type)) e.take_call(memory.call(e, item));
        if (has_text(item, "encrypted_content")) e.hides_thought = true;
        for (const char* list : {"summary", "content"})
            for (const json_view& piece : array_member(item, list)) {
                memory.take(e, piece, "text",
                            type == "reasoning" ? taken_as::thought : taken_as::text);
                e.take(string_member(piece, "refusal"));
            }
    }
    memory.keep_id(e, v);
    read_response_end(v, e);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
