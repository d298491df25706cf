// Loads of 24 requests on real servers (tests/data/work), by their pages before and after.
#include "core/measured/server_values.hpp"
#include "core/server_metrics/page_readings.hpp"
#include "extensions/work/core/objective.hpp"
#include "support/metrics_pages.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using metrics_pages::page_of;

namespace {

repeat_facts load_of(const std::string& name) {
    repeat_facts d;
    for (const char* when : {"before", "after"})
        d.server.readings.push_back(
            reading_of({page_of(texts::content_of("data/work/" + name + "-" + when + ".txt"))}));
    d.server.is_read = d.server.has_both_ends = true;
    return d;
}
double count_in(const repeat_facts& d, const char* name) {
    return work_of(slo_of({.what = name}).statistic, d);
}

}  // namespace

TEST_CASE("a load costs the same tokens with one user and with four, in other steps") {
    const repeat_facts alone = load_of("vllm-0.33.0-1-user"), four = load_of("vllm-0.33.0-4-users");
    for (const repeat_facts& d : {alone, four}) {
        CHECK(count_in(d, "server_requests") == 24);
        CHECK(count_in(d, "prefilled_tokens") == 3122);
        CHECK(count_in(d, "cached_tokens") == 1024);
        CHECK(count_in(d, "generated_tokens") == 576);
        CHECK(count_in(d, "preemptions") == 0);
        CHECK(d.server.readings.back().value(server_quantity::block_tokens) == 128);
        CHECK(std::isnan(count_in(d, "drafted_tokens")));
    }
    CHECK(count_in(alone, "engine_steps") == 576);
    CHECK(count_in(four, "engine_steps") == 163);
}

TEST_CASE("llama-server counts no requests, and its page begins with its start") {
    const repeat_facts d = load_of("llama-server-10434-1-user");
    CHECK(std::isnan(count_in(d, "server_requests")));
    CHECK(count_in(d, "prefilled_tokens") == 1808);
    CHECK(count_in(d, "cached_tokens") == 2338);
    CHECK(count_in(d, "generated_tokens") == 576);
    CHECK(count_in(d, "engine_steps") == 576);
}
