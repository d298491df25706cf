// request and response formats of each API
#pragma once

#include "core/base/json.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // min, max
#include <string>
#include <utility>  // pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
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
    return "[{\"type\":\"text\",\"text\":" + json_quoted(r.prompt) +
           "},{\"type\":\"image_url\",\"image_url\":{\"url\":" + json_quoted(r.image) + "}}]";
}
inline std::string anthropic_content(const request_spec& r) {
    if (r.image.empty()) return json_quoted(r.prompt);
    const auto [type, data] = parts_of_data_url(r.image);
    return "[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":" +
           json_quoted(type) + ",\"data\":" + json_quoted(data) +
           "}},{\"type\":\"text\",\"text\":" + json_quoted(r.prompt) + "}]";
}
inline std::string ollama_images(const request_spec& r) {
    return "[" + json_quoted(parts_of_data_url(r.image).second) + "]";
}
/// Images have a field of their own.
inline std::string ollama_content(const request_spec& r) {
    return json_quoted(r.prompt) + (r.image.empty() ? "" : ",\"images\":" + ollama_images(r));
}

// Each API: its request, its events and, if different, its whole answer. The table below has the
// rest.

inline void write_openai(body_writer& b, const request_spec& r) {
    b.flag("stream", r.stream);
    if (r.stream) b.raw("stream_options", "{\"include_usage\":true}");
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
inline void read_tgi_details(const picojson::value& v, stream_event& e) {
    const picojson::value* details = member(v, "details");
    if (!details) return;
    e.finish_reason = finish_reason_of(string_member(*details, "finish_reason"));
    e.completion_tokens = count_member(*details, "generated_tokens");
    e.prompt_tokens = count_member(*details, "input_length");
}
/// One token per event. Special tokens, such as the end of the text, are not output.
inline void read_tgi(const picojson::value& v, stream_event& e, stream_memory& memory) {
    if (const picojson::value* token = member(v, "token")) {
        const picojson::value* special = member(*token, "special");
        const bool is_output = !(special && special->evaluate_as_boolean());
        if (is_output && e.take_text(*token, "text")) memory.say(*token, "text");
    }
    read_tgi_details(v, e);
    const picojson::value* all = member(v, "generated_text");
    e.done = all && all->is<std::string>();
}
inline void read_tgi_whole(const picojson::value& v, stream_event& e, stream_memory& memory) {
    e.take_text(v, "generated_text");
    memory.say(v, "generated_text");
    read_tgi_details(v, e);
}

/// Fields that are not inputs become parameters, so one form serves both backends: vLLM's has
/// ignore_eos, TensorRT-LLM's needs {"end_id": -1} or min_length in extra_body.
inline void write_triton(body_writer& b, const std::string&, const request_spec& r) {
    b.string("text_input", joined_prompt(r)).flag("stream", r.stream);
    b.max_tokens("max_tokens").ignore_eos().temperature();
}
/// Each event has its own token count, if return_num_output_tokens is set.
inline void read_triton(const picojson::value& v, stream_event& e, stream_memory& memory) {
    e.take_text(v, "text_output");
    memory.say(v, "text_output");
    e.finish_reason = finish_reason_of(string_member(v, "finish_reason"));
    e.prompt_tokens = count_member(v, "num_input_tokens");
    if (const int n = count_member(v, "num_output_tokens"); n >= 0)
        note_output_tokens(e, memory.tokens += n);
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
inline void write_ollama_generate(body_writer& b, const std::string& model,
                                  const request_spec& r) {
    b.string("model", model).string("prompt", joined_prompt(r, false)).system("system");
    if (!r.image.empty()) b.raw("images", ollama_images(r));
    write_ollama_options(b, r);
}
inline void read_ollama(const picojson::value& v, stream_event& e, stream_memory& memory) {
    const picojson::value* message = member(v, "message");
    for (const picojson::value* from : {&v, message}) {
        if (!from) continue;
        for (const char* name : {"content", "response"}) e.take_text(*from, name);
        e.take_reasoning(*from, "thinking");
        memory.say(*from, "content");
        memory.say(*from, "response");
        memory.think(*from, "thinking");
        for (const picojson::value& tool : array_member(*from, "tool_calls"))
            if (const picojson::value* function = member(tool, "function")) memory.call(*function);
        const picojson::value* calls = member(*from, "tool_calls");
        if (calls && calls->is<picojson::array>() && !calls->get<picojson::array>().empty())
            e.take_call();
    }
    const picojson::value* done = member(v, "done");
    e.done = done && done->evaluate_as_boolean();
    e.finish_reason = finish_reason_of(string_member(v, "done_reason"));
    e.completion_tokens = count_member(v, "eval_count");
    e.prompt_tokens = count_member(v, "prompt_eval_count");
}

inline void write_llama_cpp(body_writer& b, const std::string&, const request_spec& r) {
    b.raw("prompt", text_or_ids(r)).flag("stream", r.stream);
    b.max_tokens("n_predict").ignore_eos().temperature();
}
inline void read_llama_cpp(const picojson::value& v, stream_event& e, stream_memory& memory) {
    e.take_text(v, "content");
    memory.say(v, "content");
    note_output_tokens(e, count_member(v, "tokens_predicted"));
    e.prompt_tokens = count_member(v, "tokens_evaluated");
    if (const picojson::value* timings = member(v, "timings"))
        e.cached_tokens = count_member(*timings, "cache_n");
    e.finish_reason = finish_reason_of(string_member(v, "stop_type"));
    const auto said = [&](const char* name) {
        const picojson::value* m = member(v, name);
        return m && m->is<bool>() && m->get<bool>();
    };
    if (said("stopped_limit")) e.finish_reason = "length";  // in older versions
    if (said("stopped_eos") || said("stopped_word")) e.finish_reason = "stop";
    e.done = said("stop");
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
inline void read_sglang(const picojson::value& v, stream_event& e, stream_memory& memory) {
    const std::string text = string_member(v, "text");
    const picojson::value* listed = member(v, "output_ids");
    const std::string ids = listed && !array_member(v, "output_ids").empty() ? listed->serialize()
                                                                             : "";
    const bool is_same_piece = !text.empty() && text == memory.text && !ids.empty() &&
                               ids == memory.ids;
    if (is_same_piece || text.substr(0, memory.text.size()) != memory.text)
        memory.cumulative = false;
    memory.ids = ids;
    const std::size_t before = memory.cumulative ? memory.text.size() : 0;
    e.content = e.answer = text.size() > before;
    e.text_bytes = static_cast<int>(text.size() - before);
    std::string& said = memory.said.answer;
    if (memory.keeps_answer) said = memory.cumulative ? text : said + text;
    memory.text = text;
    const picojson::value* meta = member(v, "meta_info");
    if (!meta) return;
    note_output_tokens(e, count_member(*meta, "completion_tokens"));
    e.prompt_tokens = count_member(*meta, "prompt_tokens");
    e.cached_tokens = count_member(*meta, "cached_tokens");
    const picojson::value* reason = member(*meta, "finish_reason");
    if (!reason) return;
    e.finish_reason = reason->is<std::string>() ? reason->get<std::string>()
                                                : string_member(*reason, "type");
    if (e.finish_reason == "abort") e.error = string_member(*reason, "message");
}

inline void write_plain_text(body_writer& b, const std::string&, const request_spec& r) {
    b.string("prompt", joined_prompt(r)).max_tokens("max_tokens").temperature();
}

/// Anthropic requires max_tokens.
inline void write_anthropic(body_writer& b, const std::string& model, const request_spec& r) {
    b.string("model", model).messages(anthropic_content, false).system("system");
    b.flag("stream", r.stream);
    if (r.max_tokens > 0) b.max_tokens("max_tokens");
    else b.raw("max_tokens", "1024");
    b.temperature();
}
/// Cached prompt tokens are separate.
inline void read_anthropic_usage(const picojson::value& v, stream_event& e) {
    const picojson::value* usage = member(v, "usage");
    if (!usage) return;
    e.completion_tokens = count_member(*usage, "output_tokens");
    e.prompt_tokens = count_member(*usage, "input_tokens");
    if (e.prompt_tokens < 0) return;
    e.cached_tokens = count_member(*usage, "cache_read_input_tokens");
    const int written = count_member(*usage, "cache_creation_input_tokens");
    e.prompt_tokens += std::max(e.cached_tokens, 0) + std::max(written, 0);
}
inline void take_anthropic_piece(const picojson::value& piece, stream_event& e,
                                 stream_memory& memory) {
    for (const char* name : {"text", "partial_json"}) e.take_text(piece, name);
    e.take_reasoning(piece, "thinking");
    if (string_member(piece, "type") == "tool_use") e.take_call();
    memory.say(piece, "text");
    memory.think(piece, "thinking");
    memory.call(piece, "name", has_text(piece, "partial_json") ? "partial_json" : "input");
}
inline void read_anthropic(const picojson::value& v, stream_event& e, stream_memory& memory) {
    e.done = string_member(v, "type") == "message_stop";
    if (const picojson::value* message = member(v, "message")) read_anthropic_usage(*message, e);
    else read_anthropic_usage(v, e);
    for (const char* name : {"delta", "content_block"}) {
        const picojson::value* piece = member(v, name);
        if (!piece) continue;
        take_anthropic_piece(*piece, e, memory);
        e.finish_reason = finish_reason_of(string_member(*piece, "stop_reason"));
    }
}
inline void read_anthropic_whole(const picojson::value& v, stream_event& e,
                                 stream_memory& memory) {
    read_anthropic_usage(v, e);
    e.finish_reason = finish_reason_of(string_member(v, "stop_reason"));
    const picojson::value* blocks = member(v, "content");
    if (!blocks || !blocks->is<picojson::array>()) return;
    for (const picojson::value& block : blocks->get<picojson::array>())
        take_anthropic_piece(block, e, memory);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
