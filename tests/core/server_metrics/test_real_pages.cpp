// Real servers' pages of metrics (tests/data/real) by the table of their names.
#include "core/wire/metrics_page.hpp"
#include "core/server_metrics/page_readings.hpp"
#include "support/metrics_pages.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using quantity = server_quantity;
using metrics_pages::page_of;

namespace {
struct reported {
    const char* file;
    vector<quantity> quantities;
};
const vector<reported> pages = {
    {"dynamo-1.4.2/metrics.txt",
     {quantity::prompt_tokens, quantity::generation_tokens, quantity::requests_done}},
    {"llama-server-11434/metrics.txt",
     {quantity::running, quantity::waiting, quantity::prefill_time, quantity::decode_time,
      quantity::prompt_tokens, quantity::generation_tokens, quantity::prefix_queries,
      quantity::prefix_hits, quantity::drafts, quantity::draft_tokens,
      quantity::accepted_tokens}},
    {"lmdeploy-0.18.0/metrics.txt",
     {quantity::running, quantity::waiting, quantity::kv_usage, quantity::queue_time,
      quantity::prefill_time, quantity::decode_time, quantity::prompt_tokens,
      quantity::generation_tokens, quantity::prefix_queries, quantity::prefix_hits, quantity::drafts,
      quantity::draft_tokens, quantity::accepted_tokens, quantity::requests_done}},
    {"sglang-0.5.23/metrics.txt",
     {quantity::running, quantity::waiting, quantity::kv_usage, quantity::queue_time,
      quantity::prompt_tokens, quantity::generation_tokens, quantity::prefix_queries,
      quantity::prefix_hits, quantity::requests_done}},
    {"tei-1.9.3/metrics.txt",
     {quantity::waiting, quantity::queue_time, quantity::requests_done}},
    {"tgi-3.3.7/metrics.txt",
     {quantity::running, quantity::waiting, quantity::queue_time, quantity::generation_tokens,
      quantity::accepted_tokens, quantity::requests_done}},
    {"triton-2.51/metrics.txt",
     {quantity::waiting, quantity::queue_time, quantity::requests_done}},
    {"vllm-0.33.0/metrics.txt",
     {quantity::running, quantity::waiting, quantity::kv_usage, quantity::queue_time,
      quantity::prefill_time, quantity::decode_time, quantity::prompt_tokens,
      quantity::generation_tokens, quantity::prefix_queries, quantity::prefix_hits,
      quantity::preemptions, quantity::requests_done}},
};
std::string text_of(const std::string& file) {
    std::ifstream in("data/real/" + file);
    CAPTURE(file);
    REQUIRE(in.good());
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
}
}  // namespace

TEST_CASE("real pages tell what the table says that they tell") {
    for (const reported& p : pages) {
        CAPTURE(p.file);
        const page_reading r = reading_of({page_of(text_of(p.file))});
        for (const quantity q : p.quantities) {
            CAPTURE(quantity_names[static_cast<int>(q)]);
            CHECK_FALSE(std::isnan(r.value(q)));
        }
        // What was recorded came after some answers.
        const double tokens = r.value(quantity::generation_tokens);
        CHECK((std::isnan(tokens) ? r.value(quantity::requests_done) : tokens) > 0);
    }
}

TEST_CASE("real pages tell what their load cost: tokens computed, passes, the size of a block") {
    const auto is_of = [](const char* file, double computed, double steps, double block) {
        CAPTURE(file);
        const page_reading r = reading_of({page_of(text_of(std::string(file) + "/metrics.txt"))});
        const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
        CHECK(same(r.value(quantity::computed_tokens), computed));
        const double passes = r.count(quantity::steps);  // of a histogram
        CHECK(same(std::isnan(passes) ? r.value(quantity::steps) : passes, steps));
        CHECK(same(r.value(quantity::block_tokens), block));
    };
    constexpr double none = not_a_number;
    is_of("vllm-0.33.0", 44, 32, 128);
    is_of("sglang-0.5.23", 86 - 43, 9 + 56, 1);
    is_of("llama-server-11434", 27, 56, none);
    is_of("tgi-3.3.7", none, 49 + 7, none);
    is_of("lmdeploy-0.18.0", 44, 32, none);
    is_of("dynamo-1.4.2", 44, none, none);
}

TEST_CASE("a router's page is no engine's") {
    const metrics_page page = page_of(text_of("smg-1.13.0/metrics.txt"));
    CHECK(!page.names.empty());
    CHECK(!found_in(page));
}

TEST_CASE("MLC-LLM's page is in no form that Prometheus reads, and is refused whole") {
    const parsed_page p = read_metrics_page(text_of("mlc-llm-0.26.dev0/metrics.txt"), "text/plain");
    CHECK(p.problem == "line 30 of the page of metrics has a label's value without both its quotes: "
                       "\"decode_time_by_batch_size_mean{batch_size=1}\\t0.002160022193493205\"");
    CHECK(p.page.samples.empty());
}

TEST_CASE("LMDeploy counts each token of an answer once") {
    const page_reading r = reading_of({page_of(text_of("lmdeploy-0.18.0/metrics.txt"))});
    CHECK(r.value(quantity::requests_done) == 4);
    CHECK(r.value(quantity::generation_tokens) == 4 * 8);
    CHECK(r.value(quantity::prompt_tokens) == 2 * (18 + 4));
}

TEST_CASE("SGLang counts what it has answered, the request of its own start among it") {
    // Seven of ours and that one, and neither what it refused nor the tokens that tell of its health.
    const page_reading r = reading_of({page_of(text_of("sglang-0.5.23/metrics.txt"))});
    CHECK(r.value(quantity::requests_done) == 7 + 1);
    CHECK(r.value(quantity::generation_tokens) == 8 * 8);
    CHECK(r.value(quantity::prompt_tokens) == 3 * 18 + 4 * 4 + 16);
    CHECK(r.value(quantity::prefix_queries) == r.value(quantity::prompt_tokens));
    CHECK(r.value(quantity::prefix_hits) == 43);
}

TEST_CASE("TGI's queue time is in seconds of each request, and what it skips are none of its tokens") {
    const page_reading r = reading_of({page_of(text_of("tgi-3.3.7/metrics.txt"))});
    CHECK(r.value(quantity::requests_done) == 7);
    CHECK(r.value(quantity::generation_tokens) == 7 * 8);
    CHECK(r.value(quantity::accepted_tokens) == 0);  // a summary, without speculation
    CHECK(r.count(quantity::queue_time) == 7);
    CHECK(r.value(quantity::queue_time) < 7 * 0.1);  // of a server that was asked one by one
    CHECK(r.value(quantity::running) == 0);
    CHECK(r.value(quantity::waiting) == 0);
    CHECK(std::isnan(r.value(quantity::prompt_tokens)));
}

TEST_CASE("llama-server's prompt tokens are those that its cache had, and the others") {
    const std::string page = text_of("llama-server-11434/metrics.txt");
    const page_reading r = reading_of({page_of(page)});
    CHECK(r.value(quantity::prompt_tokens) == 27 + 43);
    CHECK(r.value(quantity::prefix_queries) == 27 + 43);
    CHECK(r.value(quantity::prefix_hits) == 43);

    SUBCASE("an older one does not say what its cache had, which is not 0") {
        std::string older;
        std::istringstream lines(page);
        for (std::string line; std::getline(lines, line);)
            if (line.find("prompt_tokens_cached_total") == std::string::npos) older += line + "\n";
        const page_reading o = reading_of({page_of(older)});
        CHECK(o.value(quantity::prompt_tokens) == 27);
        CHECK(std::isnan(o.value(quantity::prefix_queries)));
        CHECK(std::isnan(o.value(quantity::prefix_hits)));
    }
}
