// Our requests in the definitions of other tools, as `llmbench show --as` has them.
#include "program/definitions.hpp"

#include "support/texts.hpp"
#include "support/timelines.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace llmbench::detail;
using timelines::about;
using timelines::answered;
using timelines::failed;
using timelines::repeat_of;
using timelines::request;
using timelines::worked_example;

namespace {

other_view shown(other_tool tool, const vector<request>& requests) {
    return shown_as(tool, repeat_list({repeat_of(requests)}), {});
}
const other_row& row_named(const other_view& v, const std::string& name) {
    for (const other_row& r : v.rows)
        if (r.name == name) return r;
    FAIL("no row ", name);
    return v.rows.front();
}

}  // namespace

TEST_CASE("the worked example has in each tool's definitions what the tool says of it") {
    struct expected {
        other_tool tool;
        vector<std::pair<const char*, double>> ms;
    };
    const vector<expected> all{
        {other_tool::vllm, {{"TTFT", 200}, {"TPOT", 960.0 / 99}, {"ITL", 30}, {"E2EL", 1160}}},
        {other_tool::sglang,
         {{"TTFT", 200}, {"TPOT", 992.0 / 99}, {"ITL", 30}, {"E2E Latency", 1192}}},
        {other_tool::guidellm,
         {{"TTFT", 200}, {"ITL (our tpot)", 960.0 / 99}, {"TPOT (with ttft)", 11.6},
          {"Latency", 1192}}},
        {other_tool::aiperf,
         {{"TTFT", 200}, {"ITL (our tpot)", 960.0 / 99}, {"ICL (our itl)", 30},
          {"Request Latency", 1160}}}};
    for (const expected& e : all) {
        const other_view v = shown(e.tool, {worked_example(1000, 40)});
        CAPTURE(v.title);
        CHECK(v.rows.size() == e.ms.size());
        for (const auto& [name, ms] : e.ms) {
            CAPTURE(name);
            const other_row& r = row_named(v, name);
            for (const double x : {r.mean, r.p50, r.p90, r.p99}) CHECK(x * 1e3 == about(ms));
        }
    }
}

TEST_CASE("a percentile lies between two values, but in guidellm, where it is one of them") {
    vector<request> requests;
    for (int i = 0; i < 10; ++i) requests.push_back(answered(100.0 * i, 10.0 * (i + 1)));
    CHECK(row_named(shown(other_tool::vllm, requests), "TTFT").p50 * 1e3 == about(55));
    CHECK(row_named(shown(other_tool::vllm, requests), "TTFT").p90 * 1e3 == about(91));
    CHECK(row_named(shown(other_tool::guidellm, requests), "TTFT").p50 * 1e3 == about(50));
    CHECK(row_named(shown(other_tool::guidellm, requests), "TTFT").p90 * 1e3 == about(90));
}

TEST_CASE("other tools leave failed requests out, and warm-up is nobody's") {
    const other_view v = shown(
        other_tool::aiperf, {answered(0, 900).warmup(), answered(1000, 50), failed(1100)});
    CHECK(row_named(v, "TTFT").mean * 1e3 == about(50));
    CHECK(row_named(v, "TTFT").p99 * 1e3 == about(50));
}

TEST_CASE("what was not recorded is no row, and is said") {
    const repeat_list whole({repeat_of({answered(0, 50)})});
    const other_view one_piece = shown_as(other_tool::vllm, whole, {.stream = false});
    CHECK(one_piece.rows.empty());
    CHECK(one_piece.notes.at(0) == "answers that come in one piece have no first token");

    repeat_data counted = repeat_of({answered(0, 50)});
    counted.gaps_counted = true;
    const other_view v = shown_as(other_tool::sglang, repeat_list({counted}), {});
    CHECK(v.rows.size() == 3);
    CHECK(v.notes.at(0) == "ITL: the gaps were too many to keep each one");
}

TEST_CASE("a request of one token has no time per later token") {
    const other_view v = shown(other_tool::vllm, {answered(0, 50, 10, 1)});
    CHECK(row_named(v, "TTFT").mean * 1e3 == about(50));
    CHECK(std::isnan(row_named(v, "TPOT").mean));
}

TEST_CASE("--as names tools, each once, and refuses others") {
    CHECK(tools_named(" guidellm, vllm,,guidellm") ==
          vector{other_tool::guidellm, other_tool::vllm});
    CHECK(tools_named("").empty());
    CHECK(texts::refusal_of([] { tools_named("vllm,genai-bench"); }) ==
          "--as is \"vllm,genai-bench\": \"genai-bench\" is none of vllm, sglang, "
          "guidellm, aiperf");
}
