// other replies of the simulated server
#pragma once

#include "api/target.hpp"
#include "core/base/text.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/simulated/core/vllm_page.hpp"
#include "extensions/simulated/core/questions.hpp"

#include <set>  // adapters by name
#include <string>
#include <string_view>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A body of known length.
struct reply {
    int status = 200;
    const char* type = "application/json";
    std::string body{};
};
inline std::string reply_bytes(const reply& r) {
    return printed("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n", r.status,
                   r.status == 200 ? "OK" : "Error", r.type, r.body.size(),
                   r.status == 429 ? "Retry-After: 1\r\n" : "") +
           r.body;
}
inline std::string chunk_of(const std::string& data) {
    return printed("%zx\r\n", data.size()) + data + "\r\n";
}
inline constexpr const char* last_chunk = "0\r\n\r\n";

inline reply error_reply(int status, const char* why) {
    return {status, "application/json", printed(R"({"error":{"message":"%s"}})", why)};
}
/// Each API has its own format of errors.
inline reply refusal(api_format api, int status, const char* why, const char* code) {
    switch (api) {
    case plain_text: return {status, "text/plain", why};
    case tgi: case triton: case ollama: case ollama_generate:
        return {status, "application/json", printed(R"({"error":"%s"})", why)};
    default:
        return {status, "application/json",
                printed(R"({"type":"error","error":{"message":"%s","type":"%s","code":"%s"}})",
                        why, code, code)};
    }
}

/// The reply to a GET.
inline reply about_server(std::string_view path, const engine_model& m, const tallies& t) {
    const auto json = [](const char* body) { return reply{200, "application/json", body}; };
    for (const char* ready : {"/health", "/api/version", "/v2/health/ready", "/readyz"})
        if (path == ready) return json("{}");
    if (path == "/v1/models")
        return {200, "application/json",
                printed(R"({"object":"list","data":[{"id":"simulated","object":"model",)"
                        R"("max_model_len":%lld}]})",
                        static_cast<long long>(m.settings().max_model_len))};
    if (path == "/api/tags") return json(R"({"models":[{"name":"simulated"}]})");
    if (path == "/info") return json(R"({"model_id":"simulated"})");
    if (path == "/metrics")
        return {200, "text/plain; version=0.0.4; charset=utf-8", vllm_page(m, t)};
    return error_reply(404, "no such path");
}
/// Whether a profile is being taken.
struct simulated_profiler {
    bool runs = false;
};
inline bool is_of_profiler(std::string_view path) {
    return path == "/start_profile" || path == "/stop_profile";
}
/// The reply to a POST that starts or stops a profile.
inline reply profiler_reply(std::string_view path, simulated_profiler& p) {
    const bool starts = path == "/start_profile";
    if (starts == p.runs)
        return error_reply(400, starts ? "a profile is being taken" : "no profile is being taken");
    p.runs = starts;
    return {200, "application/json", "{}"};
}
/// LoRA adapters: /v1/load_lora_adapter of vLLM; SGLang has no /v1.
inline bool is_of_adapters(std::string_view path) {
    return path.ends_with("/load_lora_adapter") || path.ends_with("/unload_lora_adapter");
}
inline reply adapter_reply(std::string_view path, const picojson::value& body,
                           std::set<std::string>& loaded) {
    const bool loads = path.ends_with("/load_lora_adapter");
    const picojson::value name = body.get("lora_name");
    if (!name.is<std::string>()) return error_reply(400, "lora_name is missing");
    if (loads && !loaded.insert(name.to_str()).second)
        return error_reply(400, "the adapter is loaded already");
    if (!loads && loaded.erase(name.to_str()) == 0)
        return error_reply(404, "the adapter is not loaded");
    return {200, "application/json", "{}"};
}
inline reply counted_tokens(const picojson::value& body, long long max_model_len) {
    return {200, "application/json",
            printed(R"({"count":%zu,"max_model_len":%lld})", words_of(prompt_of(body)).size(),
                    max_model_len)};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
