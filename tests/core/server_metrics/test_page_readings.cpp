// Readings of several pages at one time, and the series that objectives name.
#include "core/wire/metrics_page.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/server_metrics/page_readings.hpp"
#include "support/metrics_pages.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using quantity = server_quantity;
using metrics_pages::page_of;

namespace {
const std::string vllm_page = "process_start_time_seconds 1700000000.5\n"
                              "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 3\n"
                              "vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 4\n"
                              "vllm:num_preemptions_total{engine=\"0\"} 2\n";
const std::string dcgm_page = "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 300\n"
                              "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\"} 1000\n";
std::string why_none(const std::string& selector) {
    const series_selector wanted = selector_of(selector);
    return why_no_series(page_of(vllm_page), wanted);
}
}  // namespace

TEST_CASE("a server's page and its exporters' make one reading") {
    const page_reading r =
        reading_of({page_of(vllm_page), page_of(dcgm_page), page_of(dcgm_page)});
    CHECK(r.value(quantity::waiting) == 7);
    CHECK(r.value(quantity::preemptions) == 2);
    CHECK(r.value(quantity::power) == 600);
    CHECK(r.value(quantity::energy) == doctest::Approx(2));
    CHECK(r.began == 1700000000.5);
    CHECK(r.value(quantity::running) != r.value(quantity::running));
}

TEST_CASE("stages and workers that each count each request are told apart from replicas") {
    // So many requests of two places, each with its tokens; the second reading after 50 more.
    const auto readings_of = [](const std::string& label, const char* a, const char* b, int grown_a,
                                int grown_b) {
        vector<page_reading> readings;
        for (const int k : {0, 1}) {
            const auto line = [&](const char* name, const char* value, int n) {
                return printed("vllm:%s{%s=\"%s\",finished_reason=\"stop\"} %d\n", name,
                               label.c_str(), value, n);
            };
            readings.push_back(reading_of({page_of(
                line("request_success_total", a, 10 + k * grown_a) +
                line("request_success_total", b, 20 + k * grown_b) +
                line("generation_tokens_total", a, 10 + k * grown_a) +
                line("generation_tokens_total", b, 100 + 10 * k * grown_b))}));
        }
        return readings;
    };
    const auto requests_of = [](vector<page_reading> readings, double finished) {
        count_stages_once(readings, finished);
        return readings[1].value(quantity::requests_done) - readings[0].value(quantity::requests_done);
    };
    for (const char* label : {"stage", "stage_id", "engine", "worker", "worker_id", "engine_type"}) {
        CAPTURE(label);
        CHECK(requests_of(readings_of(label, "0", "1", 50, 50), 50) == 50);
        CHECK(requests_of(readings_of(label, "0", "1", 50, 49), 50) == 50);  // one is not counted yet
        CHECK(requests_of(readings_of(label, "0", "1", 25, 25), 50) == 50);  // replicas
        CHECK(requests_of(readings_of(label, "0", "1", 70, 30), 50) == 100);  // somebody else's, too
        CHECK(requests_of(readings_of(label, "0", "1", 50, 0), 50) == 50);
    }
    CHECK(requests_of(readings_of("model_name", "a", "b", 50, 50), 50) == 100);

    // Tokens are those of the stage that generates them.
    vector<page_reading> readings = readings_of("stage", "0", "1", 50, 50);
    count_stages_once(readings, 50);
    CHECK(readings[1].value(quantity::generation_tokens) -
              readings[0].value(quantity::generation_tokens) == 500);
}

TEST_CASE("an accelerator is one by its UUID, however often its exporters tell of it") {
    const auto dcgm = [](const char* more, double gpu_1) {
        const auto one = [&](int gpu, double joules) {
            return printed("{gpu=\"%d\",UUID=\"GPU-%d\"%s} ", gpu, gpu, more) +
                   printed("%.0f\n", joules * 1000);
        };
        return "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" + one(0, 10) +
               "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" + one(1, gpu_1) +
               "DCGM_FI_DEV_POWER_USAGE" + one(0, 0.1) + "DCGM_FI_DEV_POWER_USAGE" + one(1, 0.2);
    };
    const page_reading twice =
        reading_of({page_of(dcgm("", 20)), page_of(dcgm(",hostname=\"b\"", 20.001))}, {}, 0);
    CHECK(twice.value(quantity::energy) == doctest::Approx(30.001));
    CHECK(twice.value(quantity::power) == doctest::Approx(300));
    CHECK(twice.series[static_cast<std::size_t>(quantity::power)] == 2);
    CHECK(twice.joules.size() == 2);
    CHECK(twice.joules.at("GPU-0") == doctest::Approx(10));
    // Of parts of one card each tells the energy of all of it.
    CHECK(reading_of({page_of("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{UUID=\"a\",GPU_I_ID=\"1\"} 1000\n"
                              "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{UUID=\"a\",GPU_I_ID=\"2\"} 1000\n")},
                     {}, 0).value(quantity::energy) == doctest::Approx(1));
}

TEST_CASE("what each rank of a replica repeats is added up over replicas alone") {
    const auto running = [](const std::string& labels, int n) {
        return "sglang:num_running_reqs{model_name=\"m\"," + labels + printed("} %d\n", n);
    };
    const auto total = [](const std::string& page) {
        return reading_of({page_of(page)}).value(quantity::running);
    };
    std::string tensor_parallel, both, contexts;
    for (int rank = 0; rank < 8; ++rank) {
        tensor_parallel += running(printed("tp_rank=\"%d\",pp_rank=\"0\",moe_ep_rank=\"%d\","
                                           "pid=\"%d\"", rank, rank, 100 + rank), 2);
        both += running(printed("tp_rank=\"%d\",dp_rank=\"%d\"", rank, rank / 4), 2 + rank / 4);
        contexts += running(printed("attn_cp_rank=\"%d\"", rank), rank == 3 ? 1 : 2);
    }
    CHECK(total(tensor_parallel) == 2);
    CHECK(total(both) == 5);
    CHECK(total(contexts) == 2);  // that one is a moment behind
    CHECK(total(running("attn_dp_rank=\"0\"", 2) + running("attn_dp_rank=\"1\"", 3)) == 5);
    CHECK(total(running("engine=\"0\",pid=\"1\"", 2) + running("engine=\"0\",pid=\"2\"", 3)) == 5);
    CHECK(reading_of({page_of("sglang:num_retracted_requests_total{tp_rank=\"0\"} 3\n"
                              "sglang:num_retracted_requests_total{tp_rank=\"1\"} 3\n")}).value(quantity::preemptions) == 3);
}

TEST_CASE("a server tells of accelerators only where no exporter does") {
    const std::string triton = "nv_gpu_power_usage{gpu_uuid=\"a\"} 40\n"
                               "nv_inference_request_success{model=\"m\"} 5\n";
    CHECK(reading_of({page_of(triton)}).value(quantity::power) == 40);
    const page_reading both = reading_of({page_of(triton), page_of(dcgm_page)});
    CHECK(both.value(quantity::power) == 300);
    CHECK(both.value(quantity::requests_done) == 5);
    // An exporter's word on anything else is not asked for.
    CHECK(reading_of({page_of(triton)}, {}, 0).value(quantity::requests_done) != 5);
}

TEST_CASE("each stage of an ensemble counts a request, which is one all the same") {
    const page_reading r = reading_of({page_of("nv_inference_request_success{model=\"tok\"} 7\n"
                                               "nv_inference_request_success{model=\"llm\"} 7\n"
                                               "nv_inference_request_success{model=\"all\"} 6\n")});
    CHECK(r.value(quantity::requests_done) == 7);
}

TEST_CASE("counters began when their process did, else when the first of them did") {
    CHECK(beginning_of(page_of("process_start_time_seconds 5\nvllm:a_total 1\nvllm:a_created 3\n")) == 5);
    CHECK(beginning_of(page_of("# TYPE vllm:a_total counter\nvllm:a_total 1\n"
                               "vllm:a_created 30\nvllm:b_created 20\nvllm:b_count 2\n"
                               "vllm:b_sum 2\nc 1\nc_created 25\njobs_created 10\n")) == 20);
    // Of several processes on one page, when the last of them did.
    CHECK(beginning_of(page_of("process_start_time_seconds{pid=\"1\"} 5\n"
                               "process_start_time_seconds{pid=\"2\"} 7\n"
                               "process_start_time_seconds{pid=\"3\"} NaN\n")) == 7);
    for (const char* page : {"vllm:a 1\n", "process_start_time_seconds +Inf\n",
                             "jobs_created 3\n"}) {
        const double none = beginning_of(page_of(page));
        CHECK(std::isnan(none));
    }
}

TEST_CASE("infinity is a value of a gauge, what is no number is not told, nor infinite counts") {
    const page_reading r = reading_of({page_of("vllm:num_requests_waiting +Inf\n"
                                               "vllm:num_requests_running NaN\n"
                                               "vllm:num_preemptions_total +Inf\n"
                                               "x -Inf\ny NaN\n")},
                                      {"vllm:num_requests_waiting", "x", "y", "gone"});
    CHECK(r.value(quantity::waiting) == infinity);
    CHECK(r.value(quantity::running) != r.value(quantity::running));
    CHECK(r.value(quantity::preemptions) != r.value(quantity::preemptions));
    CHECK(r.named[0] == infinity);
    CHECK(r.named[1] == -infinity);
    CHECK(std::isnan(r.named[2]));
    CHECK(std::isnan(r.named[3]));
}

TEST_CASE("a gauge has as many series as its sum or its largest is of") {
    const auto series = [](const char* page) {
        const page_reading r = reading_of({page_of(page)});
        return r.series[static_cast<std::size_t>(quantity::waiting)];
    };
    CHECK(series("vllm:num_requests_waiting{e=\"0\"} 1\nvllm:num_requests_waiting{e=\"1\"} 2\n") ==
          2);
    CHECK(series("vllm:num_requests_waiting 1\n") == 1);
    CHECK(series("vllm:num_requests_running 1\n") == 0);
}

TEST_CASE("a series is named by as many labels as tell it from the others") {
    CHECK(why_none("vllm:num_preemptions_total") == "");
    CHECK(why_none("vllm:num_requests_waiting{engine=\"1\"}") == "");
    CHECK(why_none("vllm:num_requests_waiting{ engine = \"1\", }") == "");
    CHECK(why_none("vllm:num_requests_waiting").find("names 2 series") != std::string::npos);
    CHECK(why_none("vllm:num_requests_waiting").find("{engine=\"0\",model_name=\"m\"}") !=
          std::string::npos);
    CHECK(why_none("vllm:num_requests_waiting{engine=\"7\"}").find("with other labels") !=
          std::string::npos);
    CHECK(why_none("vllm:waiting").find("it has vllm:num_requests_waiting, ") != std::string::npos);
    CHECK(why_none("nothing_like_it").find("the page has no such name; it has ") == 0);
    const page_reading r = reading_of({page_of(vllm_page)}, {"vllm:num_requests_waiting{engine=\"1\"}",
                                       "vllm:num_requests_waiting"});
    CHECK(r.named[0] == 4);
    CHECK(std::isnan(r.named[1]));  // sums are not made up
}

TEST_CASE("what names no series is refused in one sentence") {
    for (const char* text : {"", " ", "two words", "a{", "a{b}", "a{b=\"c\"} 4", "a\nb", "# TYPE a"})
        CHECK_THROWS_AS(selector_of(text), std::invalid_argument);
    CHECK_NOTHROW(selector_of("a:b{c=\"}\"}"));
}
