// the table of APIs
#pragma once

#include "api/target.hpp"
#include "core/base/text.hpp"
#include "core/dialects/openai.hpp"
#include "core/dialects/inputs.hpp"
#include "core/dialects/others.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/responses.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // max, min
#include <cctype>  // isalnum
#include <string>
#include <string_view>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How an answer is cut into events.
enum class framing : unsigned char {
    events,   // server-sent events
    lines,    // a JSON object a line
    pieces,   // bare text: every piece of body is one
    document  // one JSON object, the whole answer
};

/// What an API needs, at one glance.
struct api_traits {
    const char* name = "";
    const char* path = "";          // "{model}" in it becomes the model's name
    const char* whole_path = path;  // of answers that are not streamed
    const char* other_end = "";     // of a URL that names the whole path itself, "" for none
    framing framed = framing::events;
    bool ends_with_body = false;    // a stream has no event that ends it
    bool forces_lengths = false;    // else an answer ends where the model ends it
    bool generates = true;          // else an answer in one piece has no tokens
    bool reports_usage = true;      // else each event counts as one token
    bool takes_images = false;
    bool takes_token_ids = false;   // as a prompt
    int documents = 1;              // that a prompt is cut into, where nothing else is said
    const char* needs_field = "";   // of options.extra_body, "" for none
    asked_answer (*asks)(const request_spec&) = nullptr;  // where it does not generate
    void (*write)(body_writer&, const std::string& model, const request_spec&) = nullptr;
    void (*read)(const picojson::value&, stream_event&, stream_memory&) = nullptr;
    void (*read_whole)(const picojson::value&, stream_event&, stream_memory&) = read;
    const char* models = "/v1/models";  // path of the list of models, "" where there is none
    const char* models_in = "data";     // that answer's list, "" where it is of one model itself
    const char* model_as = "id";        // the name's field there
    bool needs_model = true;
    const char* ready = "/health";
    const char* metrics = "/metrics";   // the server's page of them, ":8002" a port; "" for none
    const char* key_before = "Authorization: Bearer ";
    const char* fields = "";            // header lines of every request
};

/// In the order of the enumerators.
inline constexpr api_traits apis[] = {
    {.name = "openai_chat", .path = "/v1/chat/completions", .forces_lengths = true,
     .takes_images = true,
     .write = write_openai_chat, .read = read_openai, .read_whole = read_openai_whole},
    {.name = "openai_completions", .path = "/v1/completions", .forces_lengths = true,
     .takes_token_ids = true,
     .write = write_openai_completions, .read = read_openai, .read_whole = read_openai_whole},
    {.name = "tgi", .path = "/generate_stream", .whole_path = "/generate", .takes_images = true,
     .write = write_tgi, .read = read_tgi, .read_whole = read_tgi_whole,
     .models = "/info", .models_in = "", .model_as = "model_id", .needs_model = false},
    {.name = "triton", .path = "/v2/models/{model}/generate_stream",
     .whole_path = "/v2/models/{model}/generate",
     .ends_with_body = true, .forces_lengths = true, .reports_usage = false,
     .write = write_triton, .read = read_triton, .models = "", .ready = "/v2/health/ready",
     .metrics = ":8002"},
    {.name = "ollama", .path = "/api/chat", .framed = framing::lines, .takes_images = true,
     .write = write_ollama, .read = read_ollama,
     .models = "/api/tags", .models_in = "models", .model_as = "name", .ready = "/api/version",
     .metrics = ""},
    {.name = "ollama_generate", .path = "/api/generate", .framed = framing::lines,
     .takes_images = true,
     .write = write_ollama_generate, .read = read_ollama,
     .models = "/api/tags", .models_in = "models", .model_as = "name", .ready = "/api/version",
     .metrics = ""},
    {.name = "llama_cpp", .path = "/completion", .forces_lengths = true,
     .write = write_llama_cpp, .read = read_llama_cpp, .needs_model = false},
    {.name = "sglang", .path = "/generate", .forces_lengths = true,
     .write = write_sglang, .read = read_sglang, .needs_model = false},
    {.name = "plain_text", .path = "/generate", .framed = framing::pieces,
     .ends_with_body = true, .reports_usage = false,
     .write = write_plain_text, .models = "", .needs_model = false, .ready = "/readyz"},
    {.name = "anthropic", .path = "/v1/messages", .takes_images = true,
     .write = write_anthropic, .read = read_anthropic, .read_whole = read_anthropic_whole,
     .metrics = "", .key_before = "x-api-key: ", .fields = "anthropic-version: 2023-06-01\r\n"},
    {.name = "openai_embeddings", .path = "/v1/embeddings", .framed = framing::document,
     .generates = false, .takes_token_ids = true, .asks = asked_embeddings,
     .write = write_embeddings, .read = read_embeddings},
    {.name = "rerank", .path = "/v1/rerank", .other_end = "/rerank", .framed = framing::document,
     .generates = false, .documents = 8, .asks = asked_rerank, .write = write_rerank,
     .read = read_rerank},
    {.name = "score", .path = "/v1/score", .framed = framing::document, .generates = false,
     .documents = 8, .asks = asked_score, .write = write_score, .read = read_score},
    {.name = "sglang_score", .path = "/v1/score", .framed = framing::document, .generates = false,
     .documents = 8, .needs_field = "label_token_ids", .asks = asked_score,
     .write = write_sglang_score, .read = read_sglang_score},
    {.name = "openai_responses", .path = "/v1/responses", .forces_lengths = true,
     .takes_images = true, .write = write_responses, .read = read_responses,
     .read_whole = read_responses_whole},
};
inline const api_traits& traits_of(api_format api) { return apis[static_cast<std::size_t>(api)]; }
inline std::string api_names() {
    std::string names;
    for (const api_traits& a : apis) names += (names.empty() ? "" : ", ") + std::string(a.name);
    return names;
}
/// Null where no API has this name.
inline const api_traits* api_named(std::string_view name) {
    for (const api_traits& a : apis)
        if (name == a.name) return &a;
    return nullptr;
}

/// Below the URL's own path, which may name the version already; of plain text that path says all.
inline std::string request_path(const api_traits& a, const char* path, std::string base,
                                std::string_view model) {
    if (a.framed == framing::pieces && !base.empty()) return base;
    if (const std::string_view end = a.other_end; !end.empty() && base.ends_with(end)) {
        if (path == std::string_view(a.path) || path == std::string_view(a.whole_path)) return base;
        base.resize(base.size() - end.size());
        if (base.ends_with("/v2")) base.resize(base.size() - 3);
    }
    if (base.ends_with("/v1")) base.resize(base.size() - 3);
    std::string whole = base + path;
    const std::size_t at = whole.find("{model}");
    if (at == std::string::npos) return whole;
    std::string encoded;
    for (const char c : model) {
        const bool plain = std::isalnum(static_cast<unsigned char>(c)) ||
                           std::string_view("-._~").find(c) != std::string_view::npos;
        encoded += plain ? std::string(1, c) : printed("%%%02X", static_cast<unsigned char>(c));
    }
    return whole.replace(at, 7, encoded);
}
/// Tokens that a prompt has beside its own text, at most: of a template, and of what a gateway puts
/// before it; and of an image, whose bytes say nothing of them.
inline constexpr std::size_t template_tokens = 1024, image_tokens = 32768;

/// What can come of a request whose body is as long as this: a token is a byte of it at least. A
/// reranker reads the query with each document.
inline asked_answer asked_by(const api_traits& a, const request_spec& r, std::size_t body_bytes) {
    asked_answer asked = a.asks ? a.asks(r) : asked_answer{};
    const auto texts = static_cast<std::size_t>(std::max({asked.documents, asked.results, 1}));
    const std::size_t most = body_bytes * (asked.documents > 0 ? 2 : 1) + texts * template_tokens +
                             (r.image.empty() ? 0 : image_tokens);
    asked.most_prompt_tokens = static_cast<int>(std::min<std::size_t>(most, 2000000000));
    return asked;
}
inline std::string request_body(const api_traits& a, const std::string& model,
                                const request_spec& r) {
    body_writer b(r);
    a.write(b, r.model.empty() ? model : r.model, r);
    return b.finished();
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
