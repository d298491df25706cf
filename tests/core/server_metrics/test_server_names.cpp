// What servers tell of themselves: small pages as each of them writes them.
#include "core/wire/metrics_page.hpp"
#include "core/server_metrics/server_names.hpp"
#include "support/metrics_pages.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

using namespace llmbench::detail;
using quantity = server_quantity;
using metrics_pages::page_of;

namespace {

std::string server_on(const metrics_page& page) { return name_found_in(page); }
/// The value, -1 where there is none.
double value(const metrics_page& page, quantity q) {
    const auto server = found_in(page);
    REQUIRE(server);
    const auto found = value_on(page, *server, q);
    return found ? found->value : -1;
}
/// How often a histogram was told something, -1 where it is none.
double count(const metrics_page& page, quantity q) {
    const auto server = found_in(page);
    REQUIRE(server);
    const auto found = value_on(page, *server, q);
    return found ? found->count.value_or(-1) : -1;
}
std::string counter(const std::string& name, const std::string& samples) {
    return "# HELP " + name + " x\n# TYPE " + name + " counter\n" + samples;
}
std::string gauge(const std::string& name, const std::string& samples) {
    return "# HELP " + name + " x\n# TYPE " + name + " gauge\n" + samples;
}
std::string histogram(const std::string& name, const std::string& labels, const char* sum,
                      const char* n) {
    const std::string more = labels.empty() ? "" : "," + labels;
    const std::string braces = labels.empty() ? "" : "{" + labels + "}";
    return "# HELP " + name + " x\n# TYPE " + name + " histogram\n" + name + "_sum" + braces + " " +
           sum + "\n" + name + "_bucket{le=\"0.3\"" + more + "} 1.0\n" + name +
           "_bucket{le=\"+Inf\"" + more + "} " + n + "\n" + name + "_count" + braces + " " + n +
           "\n";
}

}  // namespace

TEST_CASE("vLLM, of two engines") {
    const std::string l0 = "{engine=\"0\",model_name=\"m\"} ";
    const std::string l1 = "{engine=\"1\",model_name=\"m\"} ";
    const auto both = [&](const std::string& name, const char* a, const char* b) {
        return name + l0 + a + "\n" + name + l1 + b + "\n";
    };
    const std::string queue = "vllm:request_queue_time_seconds";
    const metrics_page page = page_of(
        "# HELP python_info Python platform information\n# TYPE python_info gauge\n"
        "python_info{implementation=\"CPython\",major=\"3\"} 1.0\n" +
        gauge("vllm:num_requests_running", both("vllm:num_requests_running", "3.0", "4.0")) +
        gauge("vllm:num_requests_waiting", both("vllm:num_requests_waiting", "0.0", "2.0")) +
        gauge("vllm:kv_cache_usage_perc", both("vllm:kv_cache_usage_perc", "0.25", "0.75")) +
        counter("vllm:prompt_tokens_total", both("vllm:prompt_tokens_total", "1e+06", "5")) +
        gauge("vllm:prompt_tokens_created", both("vllm:prompt_tokens_created", "1.7e9", "1.7e9")) +
        counter("vllm:num_preemptions_total", both("vllm:num_preemptions_total", "0.0", "1.0")) +
        counter("vllm:prefix_cache_queries_total",
                both("vllm:prefix_cache_queries_total", "100.0", "100.0")) +
        counter("vllm:prefix_cache_hits_total",
                both("vllm:prefix_cache_hits_total", "30.0", "20.0")) +
        counter("vllm:request_success_total",
                "vllm:request_success_total{engine=\"0\",finished_reason=\"stop\"} 5.0\n"
                "vllm:request_success_total{engine=\"0\",finished_reason=\"length\"} 6.0\n") +
        "# TYPE " + queue + " histogram\n" + both(queue + "_sum", "0.5", "1.5") +
        both(queue + "_count", "10.0", "30.0"));
    REQUIRE(server_on(page) == "vLLM");
    CHECK(value(page, quantity::running) == 7);
    CHECK(value(page, quantity::waiting) == 2);
    CHECK(value(page, quantity::kv_usage) == 0.75);  // the fullest
    CHECK(value(page, quantity::prompt_tokens) == 1000005);
    CHECK(value(page, quantity::preemptions) == 1);
    CHECK(value(page, quantity::prefix_queries) == 200);
    CHECK(value(page, quantity::prefix_hits) == 50);
    CHECK(value(page, quantity::requests_done) == 11);
    CHECK(value(page, quantity::queue_time) == 2);
    CHECK(count(page, quantity::queue_time) == 40);
    CHECK(value(page, quantity::drafts) == -1);
}

TEST_CASE("vLLM before its KV cache was named so, and the newer name where both are there") {
    const std::string old = gauge("vllm:gpu_cache_usage_perc", "vllm:gpu_cache_usage_perc 0.5\n");
    CHECK(value(page_of(old), quantity::kv_usage) == 0.5);
    const auto both = value_on(page_of(old + "vllm:kv_cache_usage_perc 0.6\n"), known_servers[0],
                               quantity::kv_usage);
    REQUIRE(both);
    CHECK(both->value == 0.6);
    CHECK(std::string(both->row->name) == "vllm:kv_cache_usage_perc");
}

TEST_CASE("counters are found with and without their suffix") {
    CHECK(value(page_of("vllm:request_success 4\n"), quantity::requests_done) == 4);
    CHECK(value(page_of("# TYPE tgi_request_success counter\ntgi_request_success_total 5\n"),
                quantity::requests_done) == 5);
    const parsed_page open = read_metrics_page(
        "# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total 6\n# EOF\n", "");
    CHECK(value(open.page, quantity::prompt_tokens) == 6);
    // Gauges have none.
    CHECK(value(page_of("vllm:num_requests_running_total 4\n"), quantity::running) == -1);
}

TEST_CASE("names are found with _ for their colon, as collectors write them") {
    const metrics_page page = page_of(
        gauge("vllm_num_requests_waiting", "vllm_num_requests_waiting{engine=\"0\"} 3\n") +
        counter("vllm_prompt_tokens", "vllm_prompt_tokens_total{engine=\"0\"} 40\n") +
        histogram("vllm_request_queue_time_seconds", "", "2.5", "20.0"));
    REQUIRE(server_on(page) == "vLLM");
    CHECK(value(page, quantity::waiting) == 3);
    CHECK(value(page, quantity::prompt_tokens) == 40);
    CHECK(value(page, quantity::queue_time) == 2.5);
    CHECK(count(page, quantity::queue_time) == 20);
    // Names of others that begin so are theirs.
    CHECK(server_on(page_of("vllm_router_requests_total 3\nvllm_mine 4\n")) == "");
}

TEST_CASE("all queues of a page are its queue") {
    const auto queue = [](const std::string& name, int n) {
        return gauge("sglang:" + name, printed("sglang:%s{tp_rank=\"0\"} %d\n", name.c_str(), n));
    };
    const std::string first = queue("num_queue_reqs", 1);
    CHECK(value(page_of(first), quantity::waiting) == 1);
    // A worker that decodes has requests in two more queues, and a part of one is told again.
    const metrics_page decoding = page_of(first + queue("num_decode_prealloc_queue_reqs", 5) +
                                          queue("num_decode_transfer_queue_reqs", 3) +
                                          queue("num_decode_host_receive_queue_reqs", 2));
    CHECK(value(decoding, quantity::waiting) == 9);
    CHECK(value_on(decoding, *found_in(decoding), quantity::waiting)->series == 3);
    CHECK(value(page_of(first + queue("num_prefill_bootstrap_queue_reqs", 4) +
                        queue("num_prefill_inflight_queue_reqs", 2) +
                        queue("num_grammar_queue_reqs", 1)),
                quantity::waiting) == 8);
}

TEST_CASE("a name of each server's page is one quantity of it") {
    const std::string done = "lmdeploy:request_success_total{finished_reason=\"ResponseType.";
    const struct { std::string lines; const char* server; quantity of; double value, count = -1; } rows[] = {
        {"sglang:num_running_reqs{tp_rank=\"0\"} 2\n", "SGLang", quantity::running, 2},
        // All of them, and of these those of each priority.
        {"sglang:num_running_reqs{priority=\"\"} 5\nsglang:num_running_reqs{priority=\"0\"} 4\n"
         "sglang:num_running_reqs{priority=\"7\"} 1\n", "SGLang", quantity::running, 5},
        {"sglang:token_usage{tp_rank=\"0\"} 0.28\n", "SGLang", quantity::kv_usage, 0.28},
        {histogram("sglang:queue_time_seconds", "model_name=\"m\"", "2.5", "20.0"), "SGLang",
         quantity::queue_time, 2.5, 20},
        {"sglang:prompt_tokens_total 8.128902e+06\n", "SGLang", quantity::prompt_tokens, 8128902},
        {"sglang:prompt_tokens_total 8.128902e+06\n", "SGLang", quantity::prefix_queries, 8128902},
        {"sglang:cached_tokens_total{cache_source=\"device\"} 500\n"
         "sglang:cached_tokens_total{cache_source=\"host\"} 30\n", "SGLang", quantity::prefix_hits, 530},
        {"sglang:num_retracted_requests_total 1\n", "SGLang", quantity::preemptions, 1},
        {"sglang:num_requests_total{is_streaming=\"true\"} 18\n"
         "sglang:num_requests_total{is_streaming=\"false\"} 2\n", "SGLang", quantity::requests_done, 20},
        {"tgi_batch_current_size 5\n", "TGI", quantity::running, 5},
        {"tgi_queue_size 6\n", "TGI", quantity::waiting, 6},
        {histogram("tgi_request_queue_duration", "", "0.25", "4"), "TGI", quantity::queue_time, 0.25, 4},
        {histogram("tgi_batch_forward_duration", "method=\"prefill\"", "1.5", "4"), "TGI",
         quantity::prefill_time, -1},  // a batch is no request
        {histogram("tgi_request_generated_tokens", "", "512", "4"), "TGI", quantity::generation_tokens, 512, 4},
        {"tgi_request_success 4\n", "TGI", quantity::requests_done, 4},
        {"te_queue_size 3\n", "TEI", quantity::waiting, 3},
        // A request of several inputs is one, and has inputs under other names.
        {histogram("te_request_queue_duration", "", "0.25", "4") +
         histogram("te_embed_queue_duration", "", "0.75", "12"), "TEI", quantity::queue_time, 0.25, 4},
        {"te_embed_success 12\nte_request_success{method=\"single\"} 3\n"
         "te_request_success{method=\"batch\"} 1\n", "TEI", quantity::requests_done, 4},
        {"llamacpp:requests_processing 2\n", "llama.cpp", quantity::running, 2},
        {"llamacpp:requests_deferred 1\n", "llama.cpp", quantity::waiting, 1},
        {"llamacpp:tokens_predicted_total 256\n", "llama.cpp", quantity::generation_tokens, 256},
        {"llamacpp:prompt_seconds_total 0.5\n", "llama.cpp", quantity::prefill_time, 0.5},
        {"llamacpp:tokens_predicted_seconds_total 4.5\n", "llama.cpp", quantity::decode_time, 4.5},
        {"llamacpp:spec_decode_num_drafts_total 9\n", "llama.cpp", quantity::drafts, 9},
        {"llamacpp:n_decode_total 260\n", "llama.cpp", quantity::requests_done, -1},
        {"lmdeploy:num_requests_running{engine=\"0\",model_name=\"m\"} 2.0\n", "LMDeploy", quantity::running, 2},
        {"lmdeploy:num_requests_waiting 1\n", "LMDeploy", quantity::waiting, 1},
        {"lmdeploy:gpu_cache_usage_perc 0.5\n", "LMDeploy", quantity::kv_usage, 0.5},
        {histogram("lmdeploy:request_decode_time_seconds", "engine=\"0\"", "3", "2"), "LMDeploy",
         quantity::decode_time, 3, 2},
        // An older one does not say what its cache had.
        {"lmdeploy:prompt_tokens_total 900.0\n", "LMDeploy", quantity::prefix_hits, -1},
        {"lmdeploy:prompt_tokens_total 900.0\nlmdeploy:cached_tokens_total 300.0\n", "LMDeploy",
         quantity::prefix_hits, 300},
        {"lmdeploy:spec_decode_num_draft_tokens_total 27\n", "LMDeploy", quantity::draft_tokens, 27},
        {"lmdeploy:spec_decode_num_accepted_tokens_total 12\n"
         "lmdeploy:spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 8\n", "LMDeploy",
         quantity::accepted_tokens, 12},
        {done + "FINISH\"} 6.0\n" + done + "CANCEL\"} 0.0\n", "LMDeploy", quantity::requests_done, 6},
        // What it calls queued has what is being read, and no row.
        {"dynamo_frontend_queued_requests 2\n", "Dynamo", quantity::waiting, -1},
        {"dynamo_frontend_inflight_requests 3\n", "Dynamo", quantity::running, -1},
        {histogram("dynamo_frontend_input_sequence_tokens", "model=\"m\"", "676", "5"), "Dynamo",
         quantity::prompt_tokens, 676, 5},
        {"dynamo_frontend_requests_total{status=\"success\"} 5\ndynamo_frontend_requests_total{status=\"error\"} 1\n",
         "Dynamo", quantity::requests_done, 5},
        {"gpu_energy_consumed{gpu_id=\"0\"} 2.5e+09\n", "AMD Device Metrics Exporter", quantity::energy, 2500},
        {"gpu_power_usage{gpu_id=\"0\"} 450\n", "AMD Device Metrics Exporter", quantity::power, 450},
        {"gpu_gfx_activity{gpu_id=\"0\"} 80\n", "AMD Device Metrics Exporter", quantity::utilisation, 0.8},
        {"gpu_junction_temperature{gpu_id=\"0\"} 70\n", "AMD Device Metrics Exporter", quantity::temperature, 70}};
    for (const auto& row : rows) {
        CAPTURE(row.lines);
        const metrics_page page = page_of(row.lines);
        REQUIRE(server_on(page) == row.server);
        CHECK(value(page, row.of) == doctest::Approx(row.value));
        CHECK(count(page, row.of) == row.count);
    }
    // Anybody may begin a name so.
    CHECK(!found_in(page_of("gpu_clock_mhz 1\ngpu_temperature_celsius 2\n")));
}

TEST_CASE("trtllm-serve, whose blocks of the cache are not mixed with tokens of prompts") {
    const std::string of = "{engine_type=\"pytorch\",model_name=\"m\",pid=\"7\"} ";  // gauges, of processes
    const std::string blocks = "trtllm_kv_cache_reused_blocks_total 30\n"
                               "trtllm_kv_cache_missed_blocks_total 70\n";
    const std::string prompts = "trtllm_prompt_tokens_total 640\n";
    const metrics_page page = page_of(
        gauge("trtllm_num_requests_running", "trtllm_num_requests_running" + of + "1\n") +
        gauge("trtllm_kv_cache_utilization", "trtllm_kv_cache_utilization" + of + "0.5\n") + blocks +
        prompts + "trtllm_prompt_cached_tokens_total 160\n" +
        histogram("trtllm_request_prefill_time_seconds", "", "2", "8") +
        "trtllm_spec_decode_num_draft_tokens_total 40\n"
        "trtllm_spec_decode_num_accepted_tokens_total 25\ntrtllm_request_success_total 8\n");
    REQUIRE(server_on(page) == "TensorRT-LLM");
    CHECK(value(page, quantity::running) == 1);
    CHECK(value(page, quantity::kv_usage) == 0.5);
    CHECK(value(page, quantity::prompt_tokens) == 640);
    CHECK(value(page, quantity::prefix_queries) == 640);
    CHECK(value(page, quantity::prefix_hits) == 160);
    CHECK(count(page, quantity::prefill_time) == 8);
    CHECK(value(page, quantity::draft_tokens) == 40);
    CHECK(value(page, quantity::accepted_tokens) == 25);
    CHECK(value(page, quantity::requests_done) == 8);
    CHECK(value(page_of(blocks + prompts), quantity::prefix_hits) == -1);
}

TEST_CASE("Triton tells with labels what others tell with names, and microseconds") {
    const metrics_page page = page_of(
        counter("nv_inference_request_success",
                "nv_inference_request_success{model=\"ensemble\",version=\"1\"} 7\n") +
        counter("nv_inference_queue_duration_us",
                "nv_inference_queue_duration_us{model=\"ensemble\",version=\"1\"} 2500000\n") +
        gauge("nv_trt_llm_request_metrics",
              "nv_trt_llm_request_metrics{model=\"t\",request_type=\"waiting\",version=\"1\"} 1\n"
              "nv_trt_llm_request_metrics{model=\"t\",request_type=\"active\",version=\"1\"} 4\n"
              "nv_trt_llm_request_metrics{model=\"t\",request_type=\"scheduled\",version=\"1\"} 3\n"
              "nv_trt_llm_request_metrics{model=\"t\",request_type=\"max\",version=\"1\"} 64\n") +
        gauge("nv_trt_llm_kv_cache_block_metrics",
              "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"max\"} 640\n"
              "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\"} 0.125\n") +
        gauge("nv_gpu_utilization", "nv_gpu_utilization{gpu_uuid=\"a\"} 0.5\n"
                                    "nv_gpu_utilization{gpu_uuid=\"b\"} 1\n"));
    REQUIRE(server_on(page) == "Triton");
    CHECK(value(page, quantity::running) == 3);
    CHECK(value(page, quantity::waiting) == 1);
    CHECK(value(page, quantity::kv_usage) == 0.125);
    CHECK(value(page, quantity::queue_time) == doctest::Approx(2.5));
    CHECK(count(page, quantity::queue_time) == -1);
    CHECK(value(page, quantity::requests_done) == 7);
    CHECK(value(page, quantity::utilisation) == 0.5);
}

TEST_CASE("dcgm-exporter, of two accelerators: millijoules, percent and megahertz") {
    const auto both = [](const std::string& name, const char* type, const char* a, const char* b) {
        const std::string labels = ",device=\"nvidia0\",modelName=\"H200\",hostname=\"h\"} ";
        return "# TYPE " + name + " " + type + "\n" + name + "{gpu=\"0\",UUID=\"GPU-1\"" + labels +
               a + "\n" + name + "{gpu=\"1\",UUID=\"GPU-2\"" + labels + b + "\n";
    };
    const metrics_page page =
        page_of(both("DCGM_FI_DEV_SM_CLOCK", "gauge", "1980", "1500") +
                both("DCGM_FI_DEV_GPU_TEMP", "gauge", "40", "62") +
                both("DCGM_FI_DEV_POWER_USAGE", "gauge", "300.5", "99.5") +
                both("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "1000000", "500000") +
                both("DCGM_FI_DEV_GPU_UTIL", "gauge", "100", "50"));
    REQUIRE(server_on(page) == "dcgm-exporter");
    CHECK(value(page, quantity::energy) == doctest::Approx(1500));
    CHECK(value(page, quantity::power) == 400);
    CHECK(value(page, quantity::utilisation) == doctest::Approx(0.5));
    CHECK(value(page, quantity::temperature) == 62);
    CHECK(value(page, quantity::clock) == 1.5e9);
}

TEST_CASE("whose page it is, the first family of a server tells") {
    CHECK(!found_in(page_of("python_info 1\nprocess_cpu_seconds_total 2\n")));
    CHECK(!found_in(metrics_page{}));
    CHECK(server_on(page_of("x 1\nvllm:b 1\nnv_a 1\n")) == "vLLM");
    CHECK(server_on(page_of("nv_a 1\nvllm:b 1\n")) == "Triton");
    CHECK(server_on(page_of("# TYPE sglang:x gauge\n")) == "SGLang");  // nothing yet
}

TEST_CASE("what is not a number is not known") {
    CHECK(value(page_of("vllm:num_requests_running{e=\"0\"} NaN\n"
                        "vllm:num_requests_running{e=\"1\"} 2\n"),
                quantity::running) == -1);  // nor a sum that it is a part of
    CHECK(value(page_of("vllm:num_requests_running NaN\n"), quantity::running) == -1);
    CHECK(value(page_of(histogram("vllm:request_queue_time_seconds", "", "NaN", "4")),
                quantity::queue_time) == -1);
}

TEST_CASE("the table is in order") {
    std::set<std::tuple<quantity, std::string, std::string, bool>> names;
    std::set<std::pair<const server_traits*, quantity>> ended;
    const server_traits* server = nullptr;
    const server_name* before = nullptr;
    for (const server_name& row : server_table::rows) {
        CAPTURE(row.name);
        const server_traits* of = nullptr;
        for (const server_traits& s : known_servers)
            if (row.is_of(s, row.of)) {
                CHECK(!of);  // of one server alone
                of = &s;
            }
        REQUIRE(of);
        // A name may be a part of a newer version's sum, and an older one's whole.
        CHECK(names.emplace(row.of, row.name, row.label_value, row.adds).second);
        CHECK((row.to_si > 0 || row.adds));  // a part of a sum may be taken away
        CHECK((*row.label || !*row.label_value));
        const bool goes_on = before && server == of && before->of == row.of;
        if (row.adds) CHECK(goes_on);
        if (!goes_on) CHECK(ended.emplace(of, row.of).second);
        before = &row;
        server = of;
    }
}
