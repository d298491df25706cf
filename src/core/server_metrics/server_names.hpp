// names of servers' metrics
// One row per name with the same meaning on every server, with its factor to SI. Names with similar
// meanings are only in comments.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/wire/series.hpp"
#include "core/server_metrics/quantities.hpp"

#include <algorithm>  // max, min, replace
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// How to recognise the page of a server, and its names in the table below.
struct server_traits {
    const char* name;
    const char* prefix;          // of its names
    bool has_own_prefix = true;  // else only the names below identify it
    const char* more = "";       // how to get more metrics
};
inline constexpr server_traits known_servers[] = {
    {"vLLM", "vllm:"},
    {"SGLang", "sglang:"},
    {"TGI", "tgi_"},
    {"TEI", "te_"},
    {"TensorRT-LLM", "trtllm_", true,
     "with enable_iter_perf_stats: true in its options it reports running and waiting requests and "
     "the KV cache"},
    {"Triton", "nv_"},
    {"llama.cpp", "llamacpp:"},
    {"LMDeploy", "lmdeploy:"},
    {"Dynamo", "dynamo_frontend_"},
    {"dcgm-exporter", "DCGM_FI_"},
    {"AMD Device Metrics Exporter", "gpu_", false},
};

/// How gauges of several label sets are combined: requests are summed over engines, the fullest
/// cache counts, and so do the slowest and the idlest accelerator.
enum class joined_by : unsigned char { sum, largest, smallest };
inline constexpr joined_by gauges_of(server_quantity q) {
    switch (q) {
    case server_quantity::kv_usage:
    case server_quantity::block_tokens:
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

/// `in_label`: the value is that of a label, as of a series that describes the server.
enum class series_kind : unsigned char { counter, gauge, histogram, in_label };

/// One name. The value times `to_si` is in seconds, joules, watts, hertz, degrees Celsius, or a
/// fraction; counts have no unit.
struct server_name {
    server_quantity of;
    series_kind kind;
    const char* name;
    double to_si = 1;
    const char* label = "";      // required, with its value
    const char* label_value = "";
    bool adds = false;           // to the previous row; else rows are other versions
    bool is_of_stages = false;   // each stage counts all requests, so the largest counts
    bool may_lack = false;       // a part of a sum that not all versions and modes have
    bool is_of(const server_traits& s, server_quantity q) const {
        return of == q && std::string_view(name).starts_with(s.prefix);
    }
};

namespace server_table {

using q = server_quantity;
inline constexpr series_kind counter = series_kind::counter, gauge = series_kind::gauge,
                             histogram = series_kind::histogram, in_label = series_kind::in_label;

/// Prompt tokens that were not computed: the row before counts these, too.
constexpr server_name without(series_kind kind, const char* cached) {
    return {.of = q::computed_tokens, .kind = kind, .name = cached, .to_si = -1, .adds = true,
            .may_lack = true};
}

/// A queue beside the first one, of servers that prefill or decode for others or wait for grammars.
constexpr server_name queue_of_sglang(const char* name) {
    return {.of = q::waiting, .kind = gauge, .name = name, .label = "priority", .adds = true,
            .may_lack = true};
}

// Names of vLLM 0.26, SGLang 016d860 and 0.5.23, TGI 3.3.7, TEI 1.9.3, TensorRT-LLM 050f80d, Triton
// 2.51 with the TensorRT-LLM backend, llama.cpp 00dc805 and build 11434, LMDeploy 0168eed and
// 0.18.0, Dynamo 1.4.2, dcgm-exporter d5e5f51, and of AIPerf's collector 57aef7c for AMD.

/// Rows of a server and quantity are adjacent, newest first.
inline constexpr server_name rows[] = {
    {q::running, gauge, "vllm:num_requests_running"},
    {q::waiting, gauge, "vllm:num_requests_waiting"},
    {q::kv_usage, gauge, "vllm:kv_cache_usage_perc"},   // 0..1 despite its name
    {q::kv_usage, gauge, "vllm:gpu_cache_usage_perc"},  // before 0.26
    {q::queue_time, histogram, "vllm:request_queue_time_seconds"},
    {q::prefill_time, histogram, "vllm:request_prefill_time_seconds"},
    {q::decode_time, histogram, "vllm:request_decode_time_seconds"},
    {q::prompt_tokens, counter, "vllm:prompt_tokens_total"},
    {q::generation_tokens, counter, "vllm:generation_tokens_total"},
    {q::prefix_queries, counter, "vllm:prefix_cache_queries_total"},
    {q::prefix_hits, counter, "vllm:prefix_cache_hits_total"},
    {q::preemptions, counter, "vllm:num_preemptions_total"},
    {q::drafts, counter, "vllm:spec_decode_num_drafts_total"},
    {q::draft_tokens, counter, "vllm:spec_decode_num_draft_tokens_total"},
    {q::accepted_tokens, counter, "vllm:spec_decode_num_accepted_tokens_total"},
    {q::requests_done, counter, "vllm:request_success_total"},
    {q::computed_tokens, counter, "vllm:prompt_tokens_by_source_total", 1, "source",
     "local_compute"},
    {q::computed_tokens, histogram, "vllm:request_prefill_kv_computed_tokens"},
    {q::steps, histogram, "vllm:iteration_tokens_total"},  // those with tokens
    {q::block_tokens, in_label, "vllm:cache_config_info", 1, "block_size"},

    // sglang:cache_hit_rate and sglang:spec_accept_rate have an unknown window. With priorities
    // there are series of each, and the total with "".
    {q::running, gauge, "sglang:num_running_reqs", 1, "priority", ""},
    // A request waits in one of these queues at a time. The transfer queue includes
    // num_decode_host_receive_queue_reqs.
    {q::waiting, gauge, "sglang:num_queue_reqs", 1, "priority", ""},
    queue_of_sglang("sglang:num_grammar_queue_reqs"),
    queue_of_sglang("sglang:num_prefill_bootstrap_queue_reqs"),
    queue_of_sglang("sglang:num_prefill_prealloc_queue_reqs"),  // before 0.5.23
    queue_of_sglang("sglang:num_prefill_inflight_queue_reqs"),
    queue_of_sglang("sglang:num_decode_prealloc_queue_reqs"),
    queue_of_sglang("sglang:num_decode_transfer_queue_reqs"),
    {q::kv_usage, gauge, "sglang:token_usage"},
    {q::queue_time, histogram, "sglang:queue_time_seconds"},
    {q::prompt_tokens, counter, "sglang:prompt_tokens_total"},
    {q::generation_tokens, counter, "sglang:generation_tokens_total"},
    {q::preemptions, counter, "sglang:num_retracted_requests_total"},
    // Of the prompts above; absent before a first hit.
    {q::prefix_queries, counter, "sglang:prompt_tokens_total"},
    {q::prefix_hits, counter, "sglang:cached_tokens_total"},
    {q::requests_done, counter, "sglang:num_requests_total"},
    {q::computed_tokens, counter, "sglang:prompt_tokens_total"},
    without(counter, "sglang:cached_tokens_total"),
    {q::steps, counter, "sglang:cuda_graph_passes_total"},
    {q::block_tokens, gauge, "sglang:page_size"},

    {q::running, gauge, "tgi_batch_current_size"},
    {q::waiting, gauge, "tgi_queue_size"},
    {q::queue_time, histogram, "tgi_request_queue_duration"},
    // tgi_batch_forward_duration is per batch, not per request. tgi_request_input_length counts
    // each attempt of a request.
    {q::generation_tokens, histogram, "tgi_request_generated_tokens"},
    {q::accepted_tokens, histogram, "tgi_request_skipped_tokens"},
    {q::requests_done, counter, "tgi_request_success"},
    {q::steps, counter, "tgi_batch_inference_count"},

    // A request of several inputs is one, with their mean time.
    {q::waiting, gauge, "te_queue_size"},
    {q::queue_time, histogram, "te_request_queue_duration"},
    {q::requests_done, counter, "te_request_success"},

    // trtllm_num_paused_requests is a gauge, not a count of pauses.
    {q::running, gauge, "trtllm_num_requests_running"},
    {q::waiting, gauge, "trtllm_num_requests_waiting"},
    {q::kv_usage, gauge, "trtllm_kv_cache_utilization"},
    {q::queue_time, histogram, "trtllm_request_queue_time_seconds"},
    {q::prefill_time, histogram, "trtllm_request_prefill_time_seconds"},
    {q::decode_time, histogram, "trtllm_request_decode_time_seconds"},
    {q::prompt_tokens, counter, "trtllm_prompt_tokens_total"},
    {q::generation_tokens, counter, "trtllm_generation_tokens_total"},
    // Of finished requests. trtllm_kv_cache_reused_blocks_total is in blocks, and absent without
    // enable_iter_perf_stats.
    {q::prefix_queries, counter, "trtllm_prompt_tokens_total"},
    {q::prefix_hits, counter, "trtllm_prompt_cached_tokens_total"},
    {q::draft_tokens, counter, "trtllm_spec_decode_num_draft_tokens_total"},
    {q::accepted_tokens, counter, "trtllm_spec_decode_num_accepted_tokens_total"},
    {q::requests_done, counter, "trtllm_request_success_total"},
    {q::computed_tokens, counter, "trtllm_prompt_tokens_total"},
    without(counter, "trtllm_prompt_cached_tokens_total"),

    {q::running, gauge, "nv_trt_llm_request_metrics", 1, "request_type", "scheduled"},
    {q::waiting, gauge, "nv_trt_llm_request_metrics", 1, "request_type", "waiting"},
    {q::waiting, gauge, "nv_inference_pending_request_count"},
    {q::kv_usage, gauge, "nv_trt_llm_kv_cache_block_metrics", 1, "kv_cache_block_type", "fraction"},
    // Each model of an ensemble counts and waits.
    {q::queue_time, counter, "nv_inference_queue_duration_us", 1e-6},
    {.of = q::requests_done, .kind = counter,
     .name = "nv_inference_request_success", .is_of_stages = true},
    {q::energy, counter, "nv_energy_consumption"},  // unverified
    {q::power, gauge, "nv_gpu_power_usage"},        // unverified
    {q::utilisation, gauge, "nv_gpu_utilization"},  // unverified

    // llamacpp:n_decode_total counts calls of llama_decode, not requests.
    {q::running, gauge, "llamacpp:requests_processing"},
    {q::waiting, gauge, "llamacpp:requests_deferred"},
    {q::prefill_time, counter, "llamacpp:prompt_seconds_total"},
    {q::decode_time, counter, "llamacpp:tokens_predicted_seconds_total"},
    // llamacpp:prompt_tokens_total omits cached tokens. Newer versions count those apart, older
    // ones do not.
    {q::prompt_tokens, counter, "llamacpp:prompt_tokens_cached_total"},
    {.of = q::prompt_tokens, .kind = counter, .name = "llamacpp:prompt_tokens_total", .adds = true},
    {q::prompt_tokens, counter, "llamacpp:prompt_tokens_total"},
    {q::prefix_queries, counter, "llamacpp:prompt_tokens_cached_total"},
    {.of = q::prefix_queries, .kind = counter,
     .name = "llamacpp:prompt_tokens_total", .adds = true},
    {q::prefix_hits, counter, "llamacpp:prompt_tokens_cached_total"},
    {q::generation_tokens, counter, "llamacpp:tokens_predicted_total"},
    {q::drafts, counter, "llamacpp:spec_decode_num_drafts_total"},
    {q::draft_tokens, counter, "llamacpp:spec_decode_num_draft_tokens_total"},
    {q::accepted_tokens, counter, "llamacpp:spec_decode_num_accepted_tokens_total"},
    {q::computed_tokens, counter, "llamacpp:prompt_tokens_total"},
    {q::steps, counter, "llamacpp:n_decode_total"},

    {q::running, gauge, "lmdeploy:num_requests_running"},
    {q::waiting, gauge, "lmdeploy:num_requests_waiting"},
    {q::kv_usage, gauge, "lmdeploy:gpu_cache_usage_perc"},
    {q::queue_time, histogram, "lmdeploy:request_queue_time_seconds"},
    {q::prefill_time, histogram, "lmdeploy:request_prefill_time_seconds"},
    {q::decode_time, histogram, "lmdeploy:request_decode_time_seconds"},
    {q::prompt_tokens, counter, "lmdeploy:prompt_tokens_total"},
    // Commit 0168eed counts each token twice, 0.18.0 once.
    {q::generation_tokens, counter, "lmdeploy:generation_tokens_total"},
    {q::prefix_queries, counter, "lmdeploy:prompt_tokens_total"},
    {q::prefix_hits, counter, "lmdeploy:cached_tokens_total"},
    {q::drafts, counter, "lmdeploy:spec_decode_num_drafts_total"},
    {q::draft_tokens, counter, "lmdeploy:spec_decode_num_draft_tokens_total"},
    {q::accepted_tokens, counter, "lmdeploy:spec_decode_num_accepted_tokens_total"},
    {q::requests_done, counter, "lmdeploy:request_success_total"},
    {q::computed_tokens, counter, "lmdeploy:prompt_tokens_total"},
    without(counter, "lmdeploy:cached_tokens_total"),
    {q::steps, histogram, "lmdeploy:iteration_tokens_total"},

    // Of its front end. dynamo_frontend_queued_requests includes requests in prefill, and
    // dynamo_frontend_inflight_requests includes all. dynamo_frontend_cached_tokens needs an engine
    // that reports it.
    {q::prefix_queries, histogram, "dynamo_frontend_input_sequence_tokens"},
    {q::prefix_hits, histogram, "dynamo_frontend_cached_tokens"},
    {q::computed_tokens, histogram, "dynamo_frontend_input_sequence_tokens"},
    without(histogram, "dynamo_frontend_cached_tokens"),
    {q::prompt_tokens, histogram, "dynamo_frontend_input_sequence_tokens"},
    {q::generation_tokens, counter, "dynamo_frontend_output_tokens_total"},
    {q::requests_done, counter, "dynamo_frontend_requests_total", 1, "status", "success"},

    {q::energy, counter, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1e-3},
    {q::power, gauge, "DCGM_FI_DEV_POWER_USAGE"},
    {q::utilisation, gauge, "DCGM_FI_DEV_GPU_UTIL", 0.01},
    {q::temperature, gauge, "DCGM_FI_DEV_GPU_TEMP"},
    {q::clock, gauge, "DCGM_FI_DEV_SM_CLOCK", 1e6},

    // gpu_clock is of many clocks, and the clock_type of the cores is unknown.
    {q::energy, counter, "gpu_energy_consumed", 1e-6},
    {q::power, gauge, "gpu_package_power"},
    {q::power, gauge, "gpu_power_usage"},
    {q::utilisation, gauge, "gpu_gfx_activity", 0.01},
    {q::temperature, gauge, "gpu_junction_temperature"},
};

}  // namespace server_table

/// The names under which a page may have a row. The suffix of counters is optional in some servers
/// and versions, and required by OpenMetrics; collectors write _ for the colon.
inline vector<std::string> names_of(const server_name& row) {
    constexpr std::string_view suffix = "_total";
    vector<std::string> names = {row.name};
    if (row.kind == series_kind::counter) {
        const std::string_view name = row.name;
        names.push_back(name.ends_with(suffix)
                            ? std::string(name.substr(0, name.size() - suffix.size()))
                            : std::string(name) + "_total");
    }
    const std::size_t n = names.size();
    for (std::size_t i = 0; i < n; ++i)
        if (std::string name = names[i]; name.find(':') != std::string::npos) {
            std::replace(name.begin(), name.end(), ':', '_');
            names.push_back(std::move(name));
        }
    return names;
}
inline vector<const page_sample*> samples_of(const metrics_page& page, const server_name& row) {
    page_labels wanted;
    if (*row.label) wanted.push_back({row.label, row.label_value});
    for (const std::string& name : names_of(row))
        if (auto found = samples_of(page, name, wanted); !found.empty()) return found;
    return {};
}

/// A quantity on a page, in SI.
struct server_value {
    const server_name* row = nullptr;
    double value = 0;                // of a histogram, the sum
    std::optional<double> count{};   // of a histogram, the count
    std::size_t series = 0;          // behind a gauge
    std::map<std::string, double> places{};  // parts of a counter, by stage, engine or worker
};

/// Whether a label separates ranks of one replica that share all its requests, such as tp_rank and
/// moe_ep_rank. Those of a dp_rank, an engine or an instance are separate.
inline bool is_of_sharing_ranks(std::string_view label) {
    if (!label.ends_with("_rank")) return false;
    bool shares = false;
    while (!label.empty()) {
        const std::string_view word = taken_part(label, "_");
        if (word == "dp" || word == "data") return false;
        shares = shares || is_one_of(word, {"tp", "pp", "ep", "cp", "sp", "dcp", "pcp", "tensor",
                                            "pipeline", "expert", "context", "sequence"});
    }
    return shares;
}
/// The labels of a series without those of its ranks and processes.
inline std::string replica_of(const metrics_page& page, const page_sample& s) {
    std::string all, without_ranks;
    bool has_ranks = false;
    for (const page_label& l : labels_of(page, s)) {
        const std::string text = std::string(l.name) + "=" + printable(l.value) + ",";
        const bool is_rank = is_of_sharing_ranks(l.name);
        has_ranks = has_ranks || is_rank;
        all += text;
        if (!is_rank && l.name != "pid") without_ranks += text;
    }
    return has_ranks ? without_ranks : all;
}

/// The stage, engine or worker of a series, "" if its labels name none.
inline std::string place_of(const metrics_page& page, const page_sample& s) {
    std::string place;
    for (const page_label& l : labels_of(page, s)) {
        std::string_view label = l.name;
        bool is_place = false;
        if (is_of_sharing_ranks(label)) continue;
        while (!label.empty())
            is_place = is_one_of(taken_part(label, "_"), {"stage", "engine", "worker", "instance",
                                                          "role", "replica", "pod"}) ||
                       is_place;
        if (is_place) place += printable(l.value) + ",";
    }
    return place;
}

/// NaN means that the server does not know the value, so the combination is unknown, too. Sums are
/// over replicas.
inline std::optional<double> combined(const metrics_page& page,
                                      const vector<const page_sample*>& samples,
                                      joined_by how) {
    std::map<std::string, double> of_replicas;
    for (const page_sample* s : samples) {
        if (std::isnan(s->value)) return std::nullopt;
        const std::string name = how == joined_by::sum ? replica_of(page, *s) : "";
        const auto [at, is_new] = of_replicas.try_emplace(name, s->value);
        if (!is_new)
            at->second = joined(how == joined_by::sum ? joined_by::largest : how, at->second,
                                s->value);
    }
    std::optional<double> all;
    for (const auto& [name, value] : of_replicas) all = all.value_or(0) + value;
    return all;
}

/// A counter by stage, engine or worker; none if the labels name fewer than two.
inline std::map<std::string, double> values_of_places(const metrics_page& page,
                                                      const vector<const page_sample*>& samples,
                                                      double to_si) {
    std::map<std::string, vector<const page_sample*>> of_places;
    for (const page_sample* s : samples) of_places[place_of(page, *s)].push_back(s);
    std::map<std::string, double> values;
    if (of_places.size() < 2) return values;
    for (const auto& [place, own] : of_places)
        if (const auto value = combined(page, own, joined_by::sum)) values[place] = *value * to_si;
    return values;
}

inline std::optional<server_value> value_of(const metrics_page& page, const server_name& row) {
    if (row.kind == series_kind::in_label) {
        const auto samples = samples_named(page, row.name);
        const auto value = parsed_number<double>(
            samples.empty() ? "" : label_of(page, samples.front(), row.label));
        return value ? std::optional(server_value{&row, *value, std::nullopt, 0}) : std::nullopt;
    }
    if (row.kind == series_kind::histogram) {
        page_labels wanted;
        if (*row.label) wanted.push_back({row.label, row.label_value});
        std::optional<histogram_totals> totals;
        for (const std::string& name : names_of(row))
            if (!totals) totals = totals_of(page, name, wanted);
        if (!totals || std::isnan(totals->sum) || std::isnan(totals->count)) return std::nullopt;
        return server_value{&row, totals->sum * row.to_si, totals->count, 0};
    }
    const bool is_gauge = row.kind == series_kind::gauge;
    const auto samples = samples_of(page, row);
    const auto value = combined(page, samples, is_gauge           ? gauges_of(row.of)
                                               : row.is_of_stages ? joined_by::largest
                                                                  : joined_by::sum);
    if (!value) return std::nullopt;
    server_value v{&row, *value * row.to_si, std::nullopt, is_gauge ? samples.size() : 0};
    if (!is_gauge && !row.is_of_stages) v.places = values_of_places(page, samples, row.to_si);
    return v;
}

/// By the newest name on the page. A sum needs all its parts.
inline std::optional<server_value> value_on(const metrics_page& page, const server_traits& server,
                                            server_quantity quantity) {
    std::optional<server_value> found;
    for (const server_name& row : server_table::rows) {
        if (!row.is_of(server, quantity)) continue;
        if (found && !row.adds) break;
        if (!found && row.adds) continue;
        const auto value = value_of(page, row);
        if (!row.adds) {
            found = value;
        } else if (value) {
            found->value += value->value;
            found->series += value->series;
            for (const auto& [place, more] : value->places) found->places[place] += more;
        } else if (!row.may_lack) {
            found.reset();
        }
    }
    return found;
}

/// Whether a name is in the table for a server, maybe with _ for the colon.
inline bool is_name_of(std::string_view name, const server_traits& server) {
    return any_of(server_table::rows, [&](const server_name& row) {
        return row.is_of(server, row.of) &&
               any_of(names_of(row), [&](const std::string& known) { return known == name; });
    });
}
/// The server of a page, by the first name that only one server has; nullptr if unknown. Metrics of
/// the runtime (python_info, process_cpu_seconds_total) identify none.
inline const server_traits* found_in(const metrics_page& page) {
    for (const std::string_view name : page.names)
        for (const server_traits& s : known_servers)
            if (name.starts_with(s.prefix) && (s.has_own_prefix || is_name_of(name, s))) return &s;
    for (const std::string_view name : page.names)
        for (const server_traits& s : known_servers) {
            std::string prefix = s.prefix;
            std::replace(prefix.begin(), prefix.end(), ':', '_');
            if (prefix != s.prefix && name.starts_with(prefix) && is_name_of(name, s)) return &s;
        }
    return nullptr;
}

/// "" if unknown.
inline const char* name_found_in(const metrics_page& page) {
    const server_traits* const s = found_in(page);
    return s ? s->name : "";
}

/// For servers without a page.
inline constexpr const char how_to_switch_on[] =
    "servers that have no page of metrics by default have one with --enable-metrics (SGLang), "
    "--metrics (llama-server) or return_perf_metrics: true (trtllm-serve)";

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
