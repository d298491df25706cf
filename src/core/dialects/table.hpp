// the table of APIs, ours and users'
#pragma once

#include "api/own_api.hpp"
#include "api/target.hpp"
#include "core/base/text.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/dialects/event_reader.hpp"
#include "core/dialects/openai.hpp"
#include "core/dialects/others.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // max, min
#include <cstddef>  // size_t
#include <exception>
#include <iterator>  // size
#include <string>
#include <string_view>
#include <utility>  // exchange, move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

struct own_request {
    body_writer& to;
    const std::string& model;
    const request_spec& asked;
};
struct own_event {
    std::string_view data, block;
    stream_event& says;
    stream_memory& memory;
    const json_view* json = nullptr;
    bool is_parsed = json != nullptr;

    const json_view* at(std::string_view way) {
        if (!std::exchange(is_parsed, true)) json = events_of_thread().document(data, block);
        return json ? events_of_thread().value_at(way) : nullptr;
    }
};

inline void write_own(const char* api, void (*write)(api_request&), body_writer& to,
                      const std::string& model, const request_spec& asked) {
    own_request r{to, model, asked};
    api_request seen(r);
    call_of_user({".write of the API \"", api, "\""}, [&] { write(seen); });
}
/// An unreadable event is the server's error. `block`: as in event_reader; `json`: if it is known.
inline stream_event read_own(void (*read)(api_event&), std::string_view type,
                             std::string_view data, stream_memory& memory,
                             std::string_view block = {}, const json_view* json = nullptr) {
    stream_event e;
    const std::string_view said = trimmed(data);
    if (said.empty()) return e;  // a keep-alive
    if (speaks_of_error(type)) e.error = printable(data);
    e.done = said == "[DONE]";
    if (e.done || !e.error.empty()) return e;
    own_event seen{data, block, e, memory, json};
    api_event shown(seen);
    try {
        call_of_user({"reading an event"}, [&] { read(shown); });
    } catch (const std::exception& x) {
        e.error = x.what();
        e.malformed = true;
    }
    e.note_if_alone();
    return e;
}

/// The properties of an API.
struct api_traits {
    const char* name = "";
    const char* path = "";          // with "{model}" for the model's name
    const char* whole_path = path;  // for answers without a stream
    framing framed = framing::events;
    bool ends_with_body = false;    // the stream has no final event
    bool forces_lengths = false;    // else the model decides the length
    bool generates = true;          // else an answer in one piece has no tokens
    bool reports_usage = true;      // else each event counts as one token
    bool takes_images = false;
    bool takes_token_ids = false;   // as a prompt
    int documents = 1;              // default number of parts of a prompt
    const char* needs_field = "";   // of options.extra_body, "" for none
    asked_answer (*asks)(const request_spec&) = nullptr;  // if it does not generate
    void (*write)(body_writer&, const std::string& model, const request_spec&) = nullptr;
    event_reader::read_t read = nullptr;
    event_reader::read_t read_whole = read;
    const char* models = "/v1/models";  // of the list of models, "" if none
    const char* models_in = "data";     // its list, "" for an object of one model
    const char* model_as = "id";        // the field of its name
    bool needs_model = true;
    const char* ready = "/health";
    const char* metrics = "/metrics";   // the metrics page, ":8002" for a port, "" if none
    const char* key_before = "Authorization: Bearer ";
    const char* fields = "";            // headers of every request
    void (*own_write)(api_request&) = nullptr;  // user-defined, instead of the above
    void (*own_read)(api_event&) = nullptr;
    bool is_own = false;
};

/// In the order of the enumerators. An extension adds its own when the program starts.
struct api_table {
    api_traits rows[static_cast<std::size_t>(api_format::sglang_score) + 1];
    std::size_t known;

    const api_traits* begin() const { return rows; }
    const api_traits* end() const { return rows + known; }
    std::size_t size() const { return known; }
    const api_traits& operator[](std::size_t i) const { return rows[i]; }
};
inline constinit api_table apis = {{
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
     .write = write_triton, .read = read_triton, .models = "",
     .ready = "/v2/health/ready", .metrics = ":8002"},
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
     .takes_token_ids = true, .write = write_llama_cpp, .read = read_llama_cpp,
     .needs_model = false},
    {.name = "sglang", .path = "/generate", .forces_lengths = true,
     .takes_token_ids = true, .write = write_sglang, .read = read_sglang, .needs_model = false},
    {.name = "plain_text", .path = "/generate", .framed = framing::pieces,
     .ends_with_body = true, .reports_usage = false, .write = write_plain_text,
     .models = "", .needs_model = false, .ready = "/readyz"},
    {.name = "anthropic", .path = "/v1/messages", .takes_images = true,
     .write = write_anthropic, .read = read_anthropic, .read_whole = read_anthropic_whole,
     .metrics = "", .key_before = "x-api-key: ", .fields = "anthropic-version: 2023-06-01\r\n"},
    {.name = "openai_responses", .path = "/v1/responses", .forces_lengths = true,
     .takes_images = true, .write = write_responses, .read = read_responses,
     .read_whole = read_responses_whole},
}, static_cast<std::size_t>(api_format::openai_embeddings)};
inline std::string api_names() {
    std::string names;
    for (const api_traits& a : apis) names += (names.empty() ? "" : ", ") + std::string(a.name);
    if (apis.size() == std::size(apis.rows)) return names;
    return names + "; or openai_embeddings, rerank, score, sglang_score, after #include "
                   "\"llmbench_embeddings.hpp\" where LLMBENCH_MAIN is";
}
/// Throws std::invalid_argument if it is not compiled in.
inline const api_traits& traits_of(api_format api) {
    const auto i = static_cast<std::size_t>(api);
    if (i >= apis.size()) refuse({"endpoint.api is no API: it is one of ", api_names()});
    return apis[i];
}
/// The reference lives as long as `api`.
inline const api_traits& traits_of(const any_api& api) {
    const auto* own = api.own().get<api_traits>();
    return own ? *own : traits_of(api.ours());
}
/// Null for an unknown name.
inline const api_traits* api_named(std::string_view name) {
    for (const api_traits& a : apis)
        if (name == a.name) return &a;
    return nullptr;
}

/// The path without its version.
inline std::string_view unversioned(std::string_view path) {
    return path.starts_with("/v1/") ? path.substr(3) : path;
}
/// Whether a URL ends with the path of this API's requests and no other's, such as
/// "/v3/chat/completions" or "/my/rerank".
inline bool names_whole_path(const api_traits& a, std::string_view path) {
    const auto longest_of = [&](const api_traits& x) {
        std::size_t longest = 0;
        for (const std::string_view end : {unversioned(x.path), unversioned(x.whole_path)})
            if (path.ends_with(end)) longest = std::max(longest, end.size());
        return longest;
    };
    const std::size_t own = longest_of(a);
    return own > 0 && all_of(apis, [&](const api_traits& x) { return longest_of(x) <= own; });
}
/// The version at the end of a path, such as "/v3", else "".
inline std::string_view ending_version(std::string_view path) {
    const std::size_t at = std::min(path.rfind("/v"), path.size());
    const std::string_view digits = path.substr(std::min(at + 2, path.size()));
    const bool is_version = !digits.empty() && digits.size() < 3 &&
                            digits.find_first_not_of("0123456789") == std::string_view::npos;
    return is_version ? path.substr(at) : std::string_view();
}

/// Plain text has no path of its own.
inline bool is_at_whole_url(const api_traits& a) {
    return a.framed == framing::pieces && !a.is_own;
}
/// Appends the API's path to the URL's, which may already be the whole path, or end in a version
/// that replaces the API's. For plain text the URL's path is all.
inline std::string request_path(const api_traits& a, const char* path, std::string base,
                                std::string_view model) {
    if (is_at_whole_url(a) && !base.empty()) return base;
    if (names_whole_path(a, base)) {
        for (const std::string_view own : {unversioned(a.path), unversioned(a.whole_path)}) {
            if (!base.ends_with(own)) continue;
            if (unversioned(path) == own) return base;
            base.resize(base.size() - own.size());
            break;
        }
        // Cohere's API has version 2 only for its reranker.
        if (unversioned(a.path) == "/rerank" && base.ends_with("/v2")) base.resize(base.size() - 3);
    }
    if (const std::string_view version = ending_version(base); !version.empty()) {
        if (path != unversioned(path)) path += 3;
        else base.resize(base.size() - version.size());
    }
    std::string whole = base + path;
    const std::size_t at = whole.find("{model}");
    if (at == std::string::npos) return whole;
    std::string encoded;
    for (const char c : model) {
        const bool plain = is_letter_or_digit(c) ||
                           std::string_view("-._~").find(c) != std::string_view::npos;
        encoded += plain ? std::string(1, c) : printed("%%%02X", static_cast<unsigned char>(c));
    }
    return whole.replace(at, 7, encoded);
}
/// The most prompt tokens beyond the text: of a template and a gateway's additions, and of an
/// image.
inline constexpr std::size_t template_tokens = 1024, image_tokens = 32768;

/// Bounds on the answer to a body of this length: a token has at least a byte. A reranker reads the
/// query with each document.
inline asked_answer asked_by(const api_traits& a, const request_spec& r, std::size_t body_bytes) {
    asked_answer asked = a.asks ? a.asks(r) : asked_answer{};
    const auto texts = static_cast<std::size_t>(std::max({asked.documents, asked.results, 1}));
    const std::size_t most = body_bytes * (asked.documents > 0 ? 2 : 1) + texts * template_tokens +
                             (r.image.empty() ? 0 : image_tokens);
    asked.most_prompt_tokens = static_cast<int>(std::min<std::size_t>(most, 2000000000));
    if (!r.previous_response.empty()) asked.most_prompt_tokens *= -1;
    asked.most_output_tokens = r.max_tokens;
    asked.expects_usage = a.reports_usage && !r.events_are_tokens;
    asked.is_streamed = r.stream;
    return asked;
}
inline std::string request_body(const api_traits& a, const std::string& model,
                                const request_spec& r) {
    body_writer b(r);
    const std::string& asked = r.model.empty() ? model : r.model;
    if (a.is_own) write_own(a.name, a.own_write, b, asked, r);
    else a.write(b, asked, r);
    return b.finished();
}
/// Whether a text is a valid path in a request line.
inline bool is_path(std::string_view s) {
    return s.starts_with('/') &&
           all_of(s, [](char c) { return c > ' ' && c < 127; });
}
/// Why a user-defined API is invalid, "" if valid.
inline std::string own_api_problem(const api_traits& a) {
    const std::string name = a.name, given = "the API \"" + printable(name, 40) + "\" ";
    if (name.empty() || name.size() > 40 || printable(name) != name)
        return "an API has a name of up to 40 printable characters, .name = \"acme\"";
    if (api_named(name)) return given + "has the name of one of llmbench's";
    const struct { const char* name; std::string_view value; bool may_be_empty; } paths[] = {
        {"path", a.path, false}, {"models", a.models, true},
        {"ready", a.ready, true}, {"metrics", a.metrics, true}};
    for (const auto& p : paths)
        if (!(p.may_be_empty && p.value.empty()) && !is_path(p.value))
            return joined({given, "has .", p.name, " = \"", printable(p.value, 80),
                           "\": a path begins with a slash, and has no blanks"});
    if (printable(a.key_before) != a.key_before)
        return given + "has a .key_before of more than one line";
    if (!a.own_write) return given + "has no .write: nothing says what a request is";
    if (!a.own_read && a.framed != framing::pieces)
        return given + "has no .read: nothing says what an answer brings";
    request_spec one;
    one.prompt = "Hello";
    one.max_tokens = 1;
    picojson::value body;
    try {
        if (!parse_json(request_body(a, "model", one), body))
            return given + "writes a request that is not JSON: " +
                   printable(request_body(a, "model", one), 200);
    } catch (const std::exception& e) {
        return e.what();
    }
    return {};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
