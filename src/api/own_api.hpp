// APIs, ours and your own
#pragma once

#include "api/text.hpp"

namespace llmbench {
inline namespace v1 {

/// How requests are written and answers read. LLMBENCH_API takes the same names.
enum class api_format : unsigned char {
    openai_chat,         ///< /v1/chat/completions: vLLM, SGLang, llama.cpp, LMDeploy, LiteLLM ...
    openai_completions,  ///< /v1/completions
    tgi,                 ///< /generate_stream of Hugging Face's Text Generation Inference
    triton,              ///< /v2/models/MODEL/generate_stream (vLLM, TensorRT-LLM); name the model
    ollama,              ///< /api/chat
    ollama_generate,     ///< /api/generate
    llama_cpp,           ///< /completion of llama-server
    sglang,              ///< /generate of SGLang
    plain_text,          ///< `prompt` in, a stream of bare text out, at the URL's path or /generate
    anthropic,           ///< /v1/messages; without max_tokens at most 1024 tokens are asked for
    openai_responses,    ///< /v1/responses: vLLM, SGLang, OpenAI
    // Those of llmbench_embeddings.hpp generate nothing: the answer comes in one piece and has no
    // output length.
    openai_embeddings,   ///< /v1/embeddings: the prompt is options.documents inputs, one by default
    /// /v1/rerank, or the URL itself if it ends in /rerank (vLLM, llama.cpp, Jina, Cohere): a
    /// prompt is cut into a query and options.documents documents of about as many words each.
    rerank,
    score,               ///< /v1/score of vLLM, cut in the same way
    sglang_score         ///< the same of SGLang; options.extra_body has its label_token_ids
};
using api_format::openai_chat, api_format::openai_completions, api_format::tgi, api_format::triton,
    api_format::ollama, api_format::ollama_generate, api_format::llama_cpp, api_format::sglang,
    api_format::plain_text, api_format::anthropic, api_format::openai_responses;

namespace detail {
struct own_request;
struct own_event;
template <class A>
struct include_llmbench_embeddings_hpp;  // which defines it
}  // namespace detail
/// Those of llmbench_embeddings.hpp by their short names.
enum class input_api : unsigned char {
    openai_embeddings = 11,  // as there
    rerank,
    score,
    sglang_score
};
using enum input_api;

/// A request whose body, a JSON object, your API writes.
class api_request {
public:
    explicit api_request(detail::own_request& of) : of_(of) {}
    types::text model() const;  ///< its name for the server
    /// Returns the prompt with the system prompt and the earlier turns.
    types::text prompt() const;
    /// Returns the number of tokens to generate; 0: not given.
    types::whole max_tokens() const;
    bool streams() const;  ///< whether the answer is to come in parts
    // Adds a field. Fields keep the order of the calls; those of options.extra_body follow them.
    api_request& text(const char* field, const types::text& value);
    api_request& number(const char* field, double value);
    api_request& flag(const char* field, bool value);
    /// Adds an object or a list as it is.
    api_request& json(const char* field, const types::text& value);

private:
    detail::own_request& of_;
};

/// A part of an answer: your API reads it and reports its content.
class api_event {
public:
    explicit api_event(detail::own_event& of) : of_(of) {}
    /// Bytes of the part: the data of a server-sent event, a line, bytes as read, or the whole
    /// answer.
    const char* data() const;
    types::whole size() const;
    // Values of its JSON by path, "choices.0.delta.text". If there is none: "", NaN, false.
    types::text text(const char* way) const;
    double number(const char* way) const;
    bool flag(const char* way) const;
    /// Reports generated text.
    void content(const types::text& bytes);
    // Report tokens so far. NaN and negative numbers are ignored.
    void prompt_tokens(double n);
    void output_tokens(double n);
    /// Reports why the answer ends: "stop", "length".
    void finish(const types::text& reason);
    /// Reports that the answer is complete.
    void end();
    /// Reports that the request failed; "" is ignored.
    void error(const types::text& why);

private:
    detail::own_event& of_;
};

/// How an answer is cut into parts: server-sent events ("[DONE]" ends it), lines, bytes as they
/// come, or one document. An answer that is not streamed is a document.
enum class answer_parts : unsigned char { events, lines, pieces, document };

/// An API of your own: `endpoint{.api = acme}` with an `api acme{.name = "acme", ...}`.
struct api {
    const char* name = "";
    const char* path = "";  ///< of the requests, "/v1/speak"; "{model}" becomes the model
    answer_parts framed = answer_parts::events;
    void (*write)(api_request&) = nullptr;
    void (*read)(api_event&) = nullptr;  ///< default, for bytes as they come: all is content
    bool ends_with_body = false;  ///< the end of the body ends the answer, as for bytes
    bool tells_usage = false;     ///< false: each event counts as a token
    bool forces_lengths = false;  ///< answers are exactly max_tokens long
    const char* models = "";      ///< path of a list of models in OpenAI's format; "": none
    const char* ready = "/health";
    const char* metrics = "";     ///< path of the server's page of metrics
    const char* key_before = "Authorization: Bearer ";  ///< text before the key in the request head
};
namespace detail {
using framing = answer_parts;
box own_api(const api& a);
}  // namespace detail

/// One of the APIs above, or your own.
class any_api {
public:
    any_api(api_format a = openai_chat) : ours_(a) {}
    template <class A>
        requires(__is_same(A, input_api))
    any_api(A a) : ours_(detail::include_llmbench_embeddings_hpp<A>::format_of(a)) {}
    any_api(const api& a) : own_(detail::own_api(a)) {}
    api_format ours() const { return ours_; }
    const detail::box& own() const { return own_; }

private:
    api_format ours_ = openai_chat;
    detail::box own_{};
};

}  // inline namespace v1
}  // namespace llmbench
