// other replies of the simulated server, and its metrics page
// vLLM's metrics under their names, in the text format of Python's Prometheus client (0.0.4).
#pragma once

#include "api/target.hpp"
#include "core/base/bytes.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/simulated/core/questions.hpp"

#include <array>
#include <charconv>  // to_chars
#include <cmath>  // abs, isinf
#include <cstddef>  // size_t
#include <iterator>  // size
#include <set>  // adapters by name
#include <span>
#include <string>
#include <string_view>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Why a sequence ended; `abort`: its client left.
enum class end_reason : unsigned char { stop, length, abort, error };
inline constexpr const char* end_reason_names[] = {"stop", "length", "abort", "error"};

inline constexpr double first_token_limits[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                                0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                                20,    40,    80,   160,  640,  2560};
inline constexpr double gap_limits[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                        0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
inline constexpr double latency_limits[] = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                            30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};

class bucket_counts {
public:
    /// `upper_limits` ascend and must outlive it; larger values have their own class.
    explicit bucket_counts(std::span<const double> upper_limits)
        : limits_(upper_limits), counts_(upper_limits.size() + 1) {}
    void add(double v) {
        std::size_t at = 0;
        while (at < limits_.size() && v > limits_[at]) ++at;
        ++counts_[at];
        sum_ += v;
    }
    std::span<const double> limits() const { return limits_; }
    /// By class, not cumulative.
    const vector<long long>& counts() const { return counts_; }
    double sum() const { return sum_; }

private:
    std::span<const double> limits_;
    vector<long long> counts_;
    double sum_ = 0;
};

/// A server's counters since its start; the engine's counters continue over a restart.
struct tallies {
    explicit tallies(double now_unix_s = 0, const engine_model::counters& so_far = {})
        : began_unix_s(now_unix_s), before(so_far) {}

    void count(const engine_model::emission& e) {
        if (e.first) first_token.add(e.when.last_token - e.when.arrived);
        else gap.add(e.gap);
        if (!e.finished) return;
        e2e.add(e.when.last_token - e.when.arrived);
        queue.add(e.when.admitted - e.when.arrived);
        prefill.add(e.when.first_token - e.when.admitted);
        decode.add(e.when.last_token - e.when.first_token);
    }
    void count(end_reason why) { ++ended[static_cast<std::size_t>(why)]; }

    double began_unix_s;
    engine_model::counters before;  // of the engine, before this server
    std::array<long long, std::size(end_reason_names)> ended{};
    bucket_counts first_token{first_token_limits}, gap{gap_limits}, e2e{latency_limits},
        queue{latency_limits}, prefill{latency_limits}, decode{latency_limits};
};

/// Formats a float as Python and its Prometheus client do from 1e6 on: "1.0", "1.5e+06".
inline std::string python_number(double v) {
    if (std::isinf(v)) return v > 0 ? "+Inf" : "-Inf";
    const bool plain = v == 0 || (std::abs(v) >= 1e-4 && std::abs(v) < 1e6);
    char digits[64];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, v,
                      plain ? std::chars_format::fixed : std::chars_format::scientific);
    const std::string s(digits, end.ptr);
    return plain && s.find('.') == std::string::npos ? s + ".0" : s;
}

/// Writes metrics one by one; those of the engine have its labels.
class metrics_writer {
    static std::string labels(const std::string& own = "") {
        return "{engine=\"0\"," + own + "model_name=\"simulated\"}";
    }

public:
    explicit metrics_writer(double began_unix_s) : began_unix_s_(began_unix_s) {}

    void gauge(const std::string& name, const char* help, double v,
               const std::string& of = labels()) {
        head(name, help, "gauge");
        sample(name, of, v);
    }
    void counter(const std::string& name, const char* help, double v) {
        head(name + "_total", help, "counter");
        sample(name + "_total", labels(), v);
        created(name, help, {labels()});
    }
    struct part {
        const char* value;  // of the label
        double v;
    };
    void counter(const std::string& name, const char* help, const char* label,
                 const vector<part>& parts) {
        head(name + "_total", help, "counter");
        vector<std::string> each;
        for (const part& p : parts) {
            each.push_back(labels(printed("%s=\"%s\",", label, p.value)));
            sample(name + "_total", each.back(), p.v);
        }
        created(name, help, each);
    }
    /// Only the sum and the count: its single bucket has all values.
    void histogram(const std::string& name, const char* help, double count, double sum) {
        head(name, help, "histogram");
        sample(name + "_bucket", labels("le=\"+Inf\","), count);
        sample(name + "_count", labels(), count);
        sample(name + "_sum", labels(), sum);
        created(name, help, {labels()});
    }
    void histogram(const std::string& name, const char* help, const bucket_counts& h) {
        head(name, help, "histogram");
        long long up_to = 0;
        for (std::size_t i = 0; i < h.counts().size(); ++i) {
            const double limit = i < h.limits().size() ? h.limits()[i] : infinity;
            up_to += h.counts()[i];
            sample(name + "_bucket", labels("le=\"" + python_number(limit) + "\","),
                   static_cast<double>(up_to));
        }
        sample(name + "_count", labels(), static_cast<double>(up_to));
        sample(name + "_sum", labels(), h.sum());
        created(name, help, {labels()});
    }
    const std::string& page() const { return page_; }

private:
    void head(const std::string& name, const char* help, const char* kind) {
        page_ += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n";
    }
    void sample(const std::string& name, const std::string& labels, double v) {
        page_ += name + labels + " " + python_number(v) + "\n";
    }
    void created(const std::string& name, const char* help, const vector<std::string>& each) {
        head(name + "_created", help, "gauge");
        for (const std::string& labels : each) sample(name + "_created", labels, began_unix_s_);
    }

    double began_unix_s_;
    std::string page_{};
};

/// What the pages about a server show of its engine.
struct engine_state {
    std::size_t running = 0, waiting = 0;
    double cache_usage = 0;
    engine_model::counters totals{};
    long long max_model_len = 0;
    bool has_steps = true;
    bool has_prefix_cache = true;
    long long block_tokens = 16, blocks = 0;  // of its cache
    engine_state() = default;
    engine_state(const engine_model& m)
        : running(m.running()), waiting(m.waiting()), cache_usage(m.cache_usage()),
          totals(m.totals()), max_model_len(static_cast<long long>(m.settings().max_model_len)),
          has_prefix_cache(m.settings().prefix_cache),
          block_tokens(static_cast<long long>(m.settings().kv.block_tokens)),
          blocks(static_cast<long long>(kv_capacity_tokens(m.settings().kv)) / block_tokens) {}
};

inline std::string vllm_page(const engine_state& m, const tallies& t) {
    const auto since = [&](double engine_model::counters::*what) {
        return m.totals.*what - t.before.*what;
    };
    using counters = engine_model::counters;
    metrics_writer w(t.began_unix_s);
    w.gauge("process_start_time_seconds", "When the server was started, in seconds since 1970.",
            t.began_unix_s, "");
    w.gauge("vllm:num_requests_running", "Requests in the engine's batch.",
            static_cast<double>(m.running));
    w.gauge("vllm:num_requests_waiting", "Requests that wait to be in the batch.",
            static_cast<double>(m.waiting));
    w.gauge("vllm:kv_cache_usage_perc", "KV cache in use, 1 is all of it.", m.cache_usage);
    w.counter("vllm:prefix_cache_queries", "Prompt tokens that were looked up in the cache.",
              since(&counters::cache_queries));
    w.counter("vllm:prefix_cache_hits", "Prompt tokens that were found in the cache.",
              since(&counters::cache_hits));
    // A running sequence has its memory until its end.
    w.counter("vllm:num_preemptions", "Requests that were put out of the batch.", 0.0);
    const double cached = since(&counters::cached_tokens);
    w.counter("vllm:prompt_tokens", "Prompt tokens processed.", since(&counters::prompt_tokens));
    w.counter("vllm:prompt_tokens_by_source", "Prompt tokens, by where they came from.", "source",
              {{"local_compute", since(&counters::prompt_tokens) - cached},
               {"local_cache_hit", cached},
               {"external_kv_transfer", 0}});
    w.counter("vllm:prompt_tokens_cached", "Prompt tokens from a cache.", cached);
    w.counter("vllm:generation_tokens", "Tokens generated.", since(&counters::generated_tokens));
    vector<metrics_writer::part> ended;
    for (std::size_t i = 0; i < t.ended.size(); ++i)
        ended.push_back({end_reason_names[i], static_cast<double>(t.ended[i])});
    w.counter("vllm:request_success", "Requests that ended, by why they did.", "finished_reason",
              ended);
    if (m.has_steps)
        w.histogram("vllm:iteration_tokens_total", "Tokens of a step, its finished prompts' too.",
                    since(&counters::token_steps), since(&counters::step_tokens));
    w.histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.",
                t.first_token);
    w.histogram("vllm:inter_token_latency_seconds", "From tokens to the next ones.", t.gap);
    w.histogram("vllm:e2e_request_latency_seconds", "From arrival to the last token.", t.e2e);
    w.histogram("vllm:request_queue_time_seconds", "From arrival to the batch.", t.queue);
    w.histogram("vllm:request_prefill_time_seconds", "From the batch to the first token.",
                t.prefill);
    w.histogram("vllm:request_decode_time_seconds", "From the first token to the last one.",
                t.decode);
    w.gauge("vllm:cache_config_info", "The KV cache.", 1,
            printed("{block_size=\"%lld\",enable_prefix_caching=\"%s\",engine=\"0\","
                    "num_gpu_blocks=\"%lld\"}",
                    m.block_tokens, m.has_prefix_cache ? "True" : "False", m.blocks));
    return w.page();
}

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

inline reply about_server(std::string_view path, const engine_state& m, const tallies& t) {
    const auto json = [](const char* body) { return reply{200, "application/json", body}; };
    for (const char* ready : {"/health", "/api/version", "/v2/health/ready", "/readyz"})
        if (path == ready) return json("{}");
    if (path == "/v1/models")
        return {200, "application/json",
                printed(R"({"object":"list","data":[{"id":"simulated","object":"model",)"
                        R"("max_model_len":%lld}]})",
                        m.max_model_len)};
    if (path == "/api/tags") return json(R"({"models":[{"name":"simulated"}]})");
    if (path == "/info") return json(R"({"model_id":"simulated"})");
    if (path == "/metrics")
        return {200, "text/plain; version=0.0.4; charset=utf-8", vllm_page(m, t)};
    return error_reply(404, "no such path");
}
/// What an engine is told beside its requests, by vLLM's paths and SGLang's.
enum class engine_order : unsigned char { forget_blocks, pause, resume };
inline maybe<engine_order> order_at(std::string_view path) {
    using enum engine_order;
    if (path == "/reset_prefix_cache" || path == "/flush_cache") return forget_blocks;
    if (path == "/pause" || path == "/pause_generation") return pause;  // as with mode=keep
    if (path == "/resume" || path == "/continue_generation") return resume;
    return {};
}
inline reply reply_to_order(engine_order what, engine_model& on, double now) {
    switch (what) {
    case engine_order::forget_blocks: on.forget_blocks(); break;
    case engine_order::pause: on.pause(); break;
    case engine_order::resume: on.resume(now); break;
    }
    return {200, "application/json", "{}"};
}

struct simulated_profiler {
    bool runs = false;
};
inline bool is_of_profiler(std::string_view path) {
    return path == "/start_profile" || path == "/stop_profile";
}
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
/// A word is one token, whose id follows from it.
inline reply counted_tokens(const picojson::value& body, long long max_model_len) {
    const std::string prompt = prompt_of(body);
    const vector<std::string_view> words = words_of(prompt);
    std::string ids;
    for (const std::string_view word : words)
        ids += (ids.empty() ? "" : ",") + std::to_string(hash_of(word).value() & 0xffffff);
    return {200, "application/json",
            printed(R"({"count":%zu,"max_model_len":%lld,"tokens":[)", words.size(),
                    max_model_len) + ids + "]}"};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
