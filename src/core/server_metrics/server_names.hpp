// servers' names for what they tell of themselves
// One row for each name on a page of metrics that means the same on every server, with what makes
// SI of its value. A name that means nearly the same has none, and stands in a comment.
#pragma once

#include "core/base/text.hpp"
#include "core/wire/series.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

enum class server_kind : unsigned char {
    vllm,
    sglang,
    tgi,
    tei,
    tensorrt_llm,
    triton,
    llama_cpp,
    lmdeploy,
    dynamo,
    dcgm_exporter,
    amd_exporter
};

/// Of a server, how to tell its page from the others'.
struct server_traits {
    server_kind kind;
    const char* name;
    const char* prefix;     // of its families
    bool has_own_prefix;    // else only the names in the table below tell
    const char* more = "";  // what has its page report more
};
/// In the order of the enumerators.
inline constexpr server_traits known_servers[] = {
    {server_kind::vllm, "vLLM", "vllm:", true},
    {server_kind::sglang, "SGLang", "sglang:", true},
    {server_kind::tgi, "TGI", "tgi_", true},
    {server_kind::tei, "TEI", "te_", true},
    {server_kind::tensorrt_llm, "TensorRT-LLM", "trtllm_", true,
     "with enable_iter_perf_stats: true in its options it reports running and waiting requests and "
     "the KV cache"},
    {server_kind::triton, "Triton", "nv_", true},
    {server_kind::llama_cpp, "llama.cpp", "llamacpp:", true},
    {server_kind::lmdeploy, "LMDeploy", "lmdeploy:", true},
    {server_kind::dynamo, "Dynamo", "dynamo_frontend_", true},
    {server_kind::dcgm_exporter, "dcgm-exporter", "DCGM_FI_", true},
    {server_kind::amd_exporter, "AMD Device Metrics Exporter", "gpu_", false},
};
inline const server_traits& traits_of(server_kind s) {
    return known_servers[static_cast<std::size_t>(s)];
}

enum class server_quantity : unsigned char {
    running,
    waiting,
    kv_usage,
    queue_time,
    prefill_time,
    decode_time,
    prompt_tokens,
    generation_tokens,
    prefix_queries,
    prefix_hits,
    preemptions,
    drafts,
    draft_tokens,
    accepted_tokens,
    requests_done,
    energy,
    power,
    utilisation,
    temperature,
    clock
};

/// As files name them.
inline constexpr const char* quantity_names[] = {
    "running", "waiting", "kv_usage", "queue_time", "prefill_time", "decode_time", "prompt_tokens",
    "generation_tokens", "prefix_queries", "prefix_hits", "preemptions", "drafts", "draft_tokens",
    "accepted_tokens", "requests_done", "energy", "power", "utilisation", "temperature", "clock"};

/// How gauges of several label sets are joined: engines have requests in sum, and the fullest
/// cache is the one that hurts; accelerators are as slow as the slowest, and as busy as the idlest.
enum class joined_by : unsigned char { sum, largest, smallest };
inline constexpr joined_by gauges_of(server_quantity q) {
    switch (q) {
    case server_quantity::kv_usage:
    case server_quantity::temperature: return joined_by::largest;
    case server_quantity::clock:
    case server_quantity::utilisation: return joined_by::smallest;
    default: return joined_by::sum;
    }
}

inline double joined(joined_by how, double a, double b) {
    switch (how) {
    case joined_by::largest: return std::max(a, b);
    case joined_by::smallest: return std::min(a, b);
    case joined_by::sum: break;
    }
    return a + b;
}

/// One name. The value times `to_si` is in seconds, joules, watts, hertz, degrees Celsius, or a
/// share of 1; counts are counts.
struct server_name {
    server_kind server;
    server_quantity of;
    series_kind kind;
    const char* name;
    const char* seen;            // the version or commit that the name was seen in
    double to_si = 1;
    const char* label = "";      // required, with its value
    const char* label_value = "";
    bool adds = false;           // to the row before it; else rows are names of other versions
    bool is_of_stages = false;   // each stage of a server counts all requests: the largest is it
};

namespace server_table {

using q = server_quantity;
using s = server_kind;
inline constexpr series_kind counter = series_kind::counter, gauge = series_kind::gauge,
                             histogram = series_kind::histogram;

// Versions, and where nothing else is known commits of the sources.
inline constexpr const char vllm[] = "0.26", vllm_old[] = "before 0.26", sglang[] = "016d860",
                            tgi[] = "3.3.7", tei[] = "1.9.3", trtllm[] = "050f80d",
                            llama[] = "00dc805",
                            llama_new[] = "0.6.0-dev, build 11434",
                            sglang_new[] = "0.5.23", lmdeploy[] = "0168eed",
                            lmdeploy_new[] = "0.18.0", dynamo[] = "1.4.2", dcgm[] = "d5e5f51",
                            unknown[] = "",
                            triton[] = "TensorRT-LLM backend", triton_core[] = "2.51",
                            amd[] = "AIPerf's collector, 57aef7c";

/// Rows of one server and quantity are next to each other, the newest name first.
inline constexpr server_name rows[] = {
    {s::vllm, q::running, gauge, "vllm:num_requests_running", vllm},
    {s::vllm, q::waiting, gauge, "vllm:num_requests_waiting", vllm},
    {s::vllm, q::kv_usage, gauge, "vllm:kv_cache_usage_perc", vllm},  // 0..1, whatever it is called
    {s::vllm, q::kv_usage, gauge, "vllm:gpu_cache_usage_perc", vllm_old},
    {s::vllm, q::queue_time, histogram, "vllm:request_queue_time_seconds", vllm},
    {s::vllm, q::prefill_time, histogram, "vllm:request_prefill_time_seconds", vllm},
    {s::vllm, q::decode_time, histogram, "vllm:request_decode_time_seconds", vllm},
    {s::vllm, q::prompt_tokens, counter, "vllm:prompt_tokens_total", vllm},
    {s::vllm, q::generation_tokens, counter, "vllm:generation_tokens_total", vllm},
    {s::vllm, q::prefix_queries, counter, "vllm:prefix_cache_queries_total", vllm},
    {s::vllm, q::prefix_hits, counter, "vllm:prefix_cache_hits_total", vllm},
    {s::vllm, q::preemptions, counter, "vllm:num_preemptions_total", vllm},
    {s::vllm, q::drafts, counter, "vllm:spec_decode_num_drafts_total", vllm},
    {s::vllm, q::draft_tokens, counter, "vllm:spec_decode_num_draft_tokens_total", vllm},
    {s::vllm, q::accepted_tokens, counter, "vllm:spec_decode_num_accepted_tokens_total", vllm},
    {s::vllm, q::requests_done, counter, "vllm:request_success_total", vllm},

    // sglang:cache_hit_rate and sglang:spec_accept_rate are shares of no known window.
    // Where it schedules by priority, those of each one stand beside all of them, which have "".
    {s::sglang, q::running, gauge, "sglang:num_running_reqs", sglang, 1, "priority", ""},
    // Without the grammar queue.
    {s::sglang, q::waiting, gauge, "sglang:num_queue_reqs", sglang, 1, "priority", ""},
    {s::sglang, q::kv_usage, gauge, "sglang:token_usage", sglang},
    {s::sglang, q::queue_time, histogram, "sglang:queue_time_seconds", sglang},
    {s::sglang, q::prompt_tokens, counter, "sglang:prompt_tokens_total", sglang},
    {s::sglang, q::generation_tokens, counter, "sglang:generation_tokens_total", sglang},
    {s::sglang, q::preemptions, counter, "sglang:num_retracted_requests_total", sglang},
    // Of the prompts above, and not there before a first hit.
    {s::sglang, q::prefix_queries, counter, "sglang:prompt_tokens_total", sglang_new},
    {s::sglang, q::prefix_hits, counter, "sglang:cached_tokens_total", sglang_new},
    {s::sglang, q::requests_done, counter, "sglang:num_requests_total", sglang_new},

    {s::tgi, q::running, gauge, "tgi_batch_current_size", tgi},
    {s::tgi, q::waiting, gauge, "tgi_queue_size", tgi},
    {s::tgi, q::queue_time, histogram, "tgi_request_queue_duration", tgi},
    // tgi_batch_forward_duration is of each batch, not of each request, and
    // tgi_request_input_length of each time that one is taken up, whatever comes of it.
    {s::tgi, q::generation_tokens, histogram, "tgi_request_generated_tokens", tgi},
    {s::tgi, q::accepted_tokens, histogram, "tgi_request_skipped_tokens", tgi},
    {s::tgi, q::requests_done, counter, "tgi_request_success", tgi},

    // A request of several inputs is one here, with the mean of their times.
    {s::tei, q::waiting, gauge, "te_queue_size", tei},
    {s::tei, q::queue_time, histogram, "te_request_queue_duration", tei},
    {s::tei, q::requests_done, counter, "te_request_success", tei},

    // trtllm_num_paused_requests is how many are paused now, not how often that was done.
    {s::tensorrt_llm, q::running, gauge, "trtllm_num_requests_running", trtllm},
    {s::tensorrt_llm, q::waiting, gauge, "trtllm_num_requests_waiting", trtllm},
    {s::tensorrt_llm, q::kv_usage, gauge, "trtllm_kv_cache_utilization", trtllm},
    {s::tensorrt_llm, q::queue_time, histogram, "trtllm_request_queue_time_seconds", trtllm},
    {s::tensorrt_llm, q::prefill_time, histogram, "trtllm_request_prefill_time_seconds", trtllm},
    {s::tensorrt_llm, q::decode_time, histogram, "trtllm_request_decode_time_seconds", trtllm},
    {s::tensorrt_llm, q::prompt_tokens, counter, "trtllm_prompt_tokens_total", trtllm},
    {s::tensorrt_llm, q::generation_tokens, counter, "trtllm_generation_tokens_total", trtllm},
    // Of requests that have finished. trtllm_kv_cache_reused_blocks_total is in blocks, and not
    // there without enable_iter_perf_stats.
    {s::tensorrt_llm, q::prefix_queries, counter, "trtllm_prompt_tokens_total", trtllm},
    {s::tensorrt_llm, q::prefix_hits, counter, "trtllm_prompt_cached_tokens_total", trtllm},
    {s::tensorrt_llm, q::draft_tokens, counter, "trtllm_spec_decode_num_draft_tokens_total",
     trtllm},
    {s::tensorrt_llm, q::accepted_tokens, counter, "trtllm_spec_decode_num_accepted_tokens_total",
     trtllm},
    {s::tensorrt_llm, q::requests_done, counter, "trtllm_request_success_total", trtllm},

    {s::triton, q::running, gauge, "nv_trt_llm_request_metrics", triton, 1, "request_type",
     "scheduled"},
    {s::triton, q::waiting, gauge, "nv_trt_llm_request_metrics", triton, 1, "request_type",
     "waiting"},
    {s::triton, q::waiting, gauge, "nv_inference_pending_request_count", triton_core},
    {s::triton, q::kv_usage, gauge, "nv_trt_llm_kv_cache_block_metrics", triton, 1,
     "kv_cache_block_type", "fraction"},
    // Of an ensemble each model counts, and each waits.
    {s::triton, q::queue_time, counter, "nv_inference_queue_duration_us", triton, 1e-6},
    {.server = s::triton, .of = q::requests_done, .kind = counter,
     .name = "nv_inference_request_success", .seen = triton, .is_of_stages = true},
    {s::triton, q::energy, counter, "nv_energy_consumption", unknown},  // from memory
    {s::triton, q::power, gauge, "nv_gpu_power_usage", unknown},        // from memory
    {s::triton, q::utilisation, gauge, "nv_gpu_utilization", unknown},  // from memory

    // llamacpp:n_decode_total is how often llama_decode was called, and no count of requests.
    {s::llama_cpp, q::running, gauge, "llamacpp:requests_processing", llama},
    {s::llama_cpp, q::waiting, gauge, "llamacpp:requests_deferred", llama},
    {s::llama_cpp, q::prefill_time, counter, "llamacpp:prompt_seconds_total", llama},
    {s::llama_cpp, q::decode_time, counter, "llamacpp:tokens_predicted_seconds_total", llama},
    // llamacpp:prompt_tokens_total leaves out what the cache had. Newer versions count that apart;
    // older ones do not say it, and with it not how much of the prompts they looked for.
    {s::llama_cpp, q::prompt_tokens, counter, "llamacpp:prompt_tokens_cached_total", llama_new},
    {.server = s::llama_cpp, .of = q::prompt_tokens, .kind = counter,
     .name = "llamacpp:prompt_tokens_total", .seen = llama_new, .adds = true},
    {s::llama_cpp, q::prompt_tokens, counter, "llamacpp:prompt_tokens_total", llama},
    {s::llama_cpp, q::prefix_queries, counter, "llamacpp:prompt_tokens_cached_total", llama_new},
    {.server = s::llama_cpp, .of = q::prefix_queries, .kind = counter,
     .name = "llamacpp:prompt_tokens_total", .seen = llama_new, .adds = true},
    {s::llama_cpp, q::prefix_hits, counter, "llamacpp:prompt_tokens_cached_total", llama_new},
    {s::llama_cpp, q::generation_tokens, counter, "llamacpp:tokens_predicted_total", llama},
    {s::llama_cpp, q::drafts, counter, "llamacpp:spec_decode_num_drafts_total", llama},
    {s::llama_cpp, q::draft_tokens, counter, "llamacpp:spec_decode_num_draft_tokens_total", llama},
    {s::llama_cpp, q::accepted_tokens, counter, "llamacpp:spec_decode_num_accepted_tokens_total",
     llama},

    {s::lmdeploy, q::running, gauge, "lmdeploy:num_requests_running", lmdeploy},
    {s::lmdeploy, q::waiting, gauge, "lmdeploy:num_requests_waiting", lmdeploy},
    {s::lmdeploy, q::kv_usage, gauge, "lmdeploy:gpu_cache_usage_perc", lmdeploy},
    {s::lmdeploy, q::queue_time, histogram, "lmdeploy:request_queue_time_seconds", lmdeploy},
    {s::lmdeploy, q::prefill_time, histogram, "lmdeploy:request_prefill_time_seconds", lmdeploy},
    {s::lmdeploy, q::decode_time, histogram, "lmdeploy:request_decode_time_seconds", lmdeploy},
    {s::lmdeploy, q::prompt_tokens, counter, "lmdeploy:prompt_tokens_total", lmdeploy},
    // Commit 0168eed counts each token twice, 0.18.0 once.
    {s::lmdeploy, q::generation_tokens, counter, "lmdeploy:generation_tokens_total", lmdeploy},
    {s::lmdeploy, q::prefix_queries, counter, "lmdeploy:prompt_tokens_total", lmdeploy_new},
    {s::lmdeploy, q::prefix_hits, counter, "lmdeploy:cached_tokens_total", lmdeploy_new},
    {s::lmdeploy, q::drafts, counter, "lmdeploy:spec_decode_num_drafts_total", lmdeploy_new},
    {s::lmdeploy, q::draft_tokens, counter, "lmdeploy:spec_decode_num_draft_tokens_total",
     lmdeploy_new},
    {s::lmdeploy, q::accepted_tokens, counter, "lmdeploy:spec_decode_num_accepted_tokens_total",
     lmdeploy_new},
    {s::lmdeploy, q::requests_done, counter, "lmdeploy:request_success_total", lmdeploy_new},

    // Of its front end. dynamo_frontend_queued_requests has all without a first token, those that
    // are being read too, and dynamo_frontend_inflight_requests has these and the others.
    // dynamo_frontend_cached_tokens is observed only where an engine tells it.
    {s::dynamo, q::prompt_tokens, histogram, "dynamo_frontend_input_sequence_tokens", dynamo},
    {s::dynamo, q::generation_tokens, counter, "dynamo_frontend_output_tokens_total", dynamo},
    {s::dynamo, q::requests_done, counter, "dynamo_frontend_requests_total", dynamo, 1, "status",
     "success"},

    {s::dcgm_exporter, q::energy, counter, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", dcgm, 1e-3},
    {s::dcgm_exporter, q::power, gauge, "DCGM_FI_DEV_POWER_USAGE", dcgm},
    {s::dcgm_exporter, q::utilisation, gauge, "DCGM_FI_DEV_GPU_UTIL", dcgm, 0.01},
    {s::dcgm_exporter, q::temperature, gauge, "DCGM_FI_DEV_GPU_TEMP", dcgm},
    {s::dcgm_exporter, q::clock, gauge, "DCGM_FI_DEV_SM_CLOCK", dcgm, 1e6},

    // gpu_clock is of many clocks, and the value of clock_type that is the cores' is not known.
    {s::amd_exporter, q::energy, counter, "gpu_energy_consumed", amd, 1e-6},
    {s::amd_exporter, q::power, gauge, "gpu_package_power", amd},
    {s::amd_exporter, q::power, gauge, "gpu_power_usage", amd},
    {s::amd_exporter, q::utilisation, gauge, "gpu_gfx_activity", amd, 0.01},
    {s::amd_exporter, q::temperature, gauge, "gpu_junction_temperature", amd},
};

}  // namespace server_table

/// Counters have a suffix that some servers and versions leave out, and OpenMetrics requires.
inline std::vector<const page_sample*> samples_of(const metrics_page& page,
                                                  const server_name& row) {
    page_labels wanted;
    if (*row.label) wanted.push_back({row.label, row.label_value});
    auto found = samples_of(page, row.name, wanted);
    if (row.kind != series_kind::counter || !found.empty()) return found;
    constexpr std::string_view suffix = "_total";
    std::string_view name = row.name;
    if (!name.ends_with(suffix)) return samples_of(page, std::string(name) + "_total", wanted);
    name.remove_suffix(suffix.size());
    return samples_of(page, name, wanted);
}

/// What a page says of a quantity, in SI.
struct server_value {
    const server_name* row = nullptr;
    double value = 0;                // of a histogram, the sum of what was observed
    std::optional<double> count{};   // of a histogram, how often something was
    std::size_t series = 0;          // of a gauge, that the value is of
};

/// A value that is not a number is one that the server does not know, and what it is a part of is
/// not known then.
inline std::optional<double> combined(const std::vector<const page_sample*>& samples,
                                      joined_by how) {
    std::optional<double> all;
    for (const page_sample* s : samples) {
        if (std::isnan(s->value)) return std::nullopt;
        all = all ? joined(how, *all, s->value) : s->value;
    }
    return all;
}

inline std::optional<server_value> value_of(const metrics_page& page, const server_name& row) {
    if (row.kind == series_kind::histogram) {
        page_labels wanted;
        if (*row.label) wanted.push_back({row.label, row.label_value});
        const auto totals = totals_of(page, row.name, wanted);
        if (!totals || std::isnan(totals->sum) || std::isnan(totals->count)) return std::nullopt;
        return server_value{&row, totals->sum * row.to_si, totals->count, 0};
    }
    const bool is_gauge = row.kind == series_kind::gauge;
    const auto samples = samples_of(page, row);
    const auto value = combined(samples, is_gauge           ? gauges_of(row.of)
                                         : row.is_of_stages ? joined_by::largest
                                                            : joined_by::sum);
    if (!value) return std::nullopt;
    return server_value{&row, *value * row.to_si, std::nullopt, is_gauge ? samples.size() : 0};
}

/// By the newest name that the page has. A sum is one where all its parts are there.
inline std::optional<server_value> value_on(const metrics_page& page, server_kind server,
                                            server_quantity quantity) {
    std::optional<server_value> found;
    for (const server_name& row : server_table::rows) {
        if (row.server != server || row.of != quantity) continue;
        if (found && !row.adds) break;
        if (!found && row.adds) continue;
        const auto value = value_of(page, row);
        if (!row.adds) found = value;
        else if (value) found->value += value->value;
        else found.reset();
    }
    return found;
}

/// Whose page it is: the first of its families that only one server has says so. What runs around
/// an engine (python_info, process_cpu_seconds_total) says nothing.
inline std::optional<server_kind> found_in(const metrics_page& page) {
    for (const page_family& f : page.families)
        for (const server_traits& s : known_servers) {
            if (!f.name.starts_with(s.prefix)) continue;
            if (s.has_own_prefix) return s.kind;
            for (const server_name& row : server_table::rows)
                if (row.server == s.kind && f.name == row.name) return s.kind;
        }
    return std::nullopt;
}

/// Its name, "" for nobody's.
inline const char* name_found_in(const metrics_page& page) {
    const auto kind = found_in(page);
    return kind ? traits_of(*kind).name : "";
}

/// What to do where a server has no page.
inline constexpr const char how_to_switch_on[] =
    "servers that have no page of metrics by default have one with --enable-metrics (SGLang), "
    "--metrics (llama-server) or return_perf_metrics: true (trtllm-serve)";

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
