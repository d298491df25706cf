// what the simulated server says besides answers
#pragma once

#include "api/target.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/simulated/engine_model.hpp"
#include "core/simulated/questions.hpp"

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
/// Each API tells errors in its own shape.
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

/// Prometheus text with vLLM's names, so that dashboards made for it work.
inline std::string metrics_text(const engine_model& m) {
    const engine_model::counters& t = m.totals();
    const auto line = [](const char* name, const char* kind, double v) {
        return printed("# TYPE vllm:%s %s\nvllm:%s{model_name=\"simulated\"} %s\n", name, kind,
                       name, json_number(v).c_str());
    };
    return line("num_requests_running", "gauge", static_cast<double>(m.running())) +
           line("num_requests_waiting", "gauge", static_cast<double>(m.waiting())) +
           line("kv_cache_usage_perc", "gauge", m.cache_usage()) +
           line("prompt_tokens_total", "counter", t.prompt_tokens) +
           line("generation_tokens_total", "counter", t.generated_tokens) +
           line("request_success_total", "counter", t.finished) +
           line("prefix_cache_queries_total", "counter", t.cache_queries) +
           line("prefix_cache_hits_total", "counter", t.cache_hits);
}
/// What a GET is answered with.
inline reply about_server(std::string_view path, const engine_model& m) {
    const auto json = [](const char* body) { return reply{200, "application/json", body}; };
    for (const char* ready : {"/health", "/api/version", "/v2/health/ready", "/readyz"})
        if (path == ready) return json("{}");
    if (path == "/v1/models")
        return json(R"({"object":"list","data":[{"id":"simulated","object":"model"}]})");
    if (path == "/api/tags") return json(R"({"models":[{"name":"simulated"}]})");
    if (path == "/info") return json(R"({"model_id":"simulated"})");
    if (path == "/metrics") return {200, "text/plain; version=0.0.4", metrics_text(m)};
    return error_reply(404, "no such path");
}
inline reply counted_tokens(const picojson::value& body, long long max_model_len) {
    return {200, "application/json",
            printed(R"({"count":%zu,"max_model_len":%lld})", words_of(prompt_of(body)).size(),
                    max_model_len)};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
