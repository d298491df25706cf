// A baseline that is the target asked otherwise: what its requests say, and what is refused.
#include "llmbench.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/planning.hpp"
#include "support/texts.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using texts::holds;

namespace {
const char* const schema =
    R"({"response_format": {"type": "json_schema", "json_schema": {"name": "city"}}})";
const char* const tools = R"({"tools": [{"type": "function", "function": {"name": "f"}}]})";

scenario asking(const request_options& mine, const any_baseline& theirs) {
    return {.baseline = theirs, .workload = prompts({"one", "two"}),
            .arrivals = closed_loop(2), .requests = 40,
            .slos = {mean(e2e) <= 1.5 * baseline}, .options = mine};
}
std::string body_of(const plan& p, run_variant variant) {
    return request_body(traits_of(openai_chat), "m",
                        request_of(plan_of_variant(p, variant), variant, 0, 0));
}
std::string refusal_of(const scenario& s) {
    return texts::refusal_of([&] { planned(s, 1); });
}
}  // namespace

TEST_CASE("each arm has its own options, in place of the other's, and the same prompts") {
    const plan p = planned(asking({.max_tokens = 16, .extra_body = schema},
                                  otherwise{.options = request_options{.max_tokens = 16, .extra_body = tools}}), 1);
    CHECK(p.judged->has_baseline);
    const std::string mine = body_of(p, run_variant::candidate);
    const std::string theirs = body_of(p, run_variant::baseline);
    CHECK(holds(mine, "\"response_format\""));
    CHECK(!holds(mine, "\"tools\""));
    CHECK(holds(theirs, "\"tools\""));
    CHECK(!holds(theirs, "\"response_format\""));
    CHECK(holds(theirs, "\"content\":\"one\""));
    CHECK(holds(options_text(p, run_variant::candidate), "response_format"));
    CHECK(holds(options_text(p, run_variant::baseline), "tools"));
    // Pairs, as with any live baseline.
    CHECK(p.judged->first_repeats == first_pair_analysis);
}

TEST_CASE("no options at all are none; lengths that options force are forced in that arm alone") {
    const plan p = planned(asking({.max_tokens = 16, .ignore_eos = true}, otherwise{.options = request_options{}}), 1);
    CHECK(options_text(p, run_variant::baseline) == "none");
    CHECK(holds(body_of(p, run_variant::candidate), "\"ignore_eos\":true"));
    CHECK(!holds(body_of(p, run_variant::baseline), "ignore_eos"));
    CHECK(forced_tokens(p, 0) == 16);
    CHECK(forced_tokens(plan_of_variant(p, run_variant::baseline), 0) == 0);
}

TEST_CASE("a plan without other options is one for both arms") {
    const plan p = planned(asking({.max_tokens = 16}, otherwise{.same = true}), 1);
    CHECK(!p.sent->otherwise);
    CHECK(body_of(p, run_variant::baseline) == body_of(p, run_variant::candidate));
}

TEST_CASE("the baseline's options are refused as the target's are, and say whose they are") {
    const auto refused = [](const request_options& theirs) {
        return refusal_of(asking({.max_tokens = 16}, otherwise{.options = theirs}));
    };
    const std::string whose = "baseline is otherwise{...}: ";
    CHECK(holds(refused({.extra_body = R"({"n": 2})"}), whose + "options.extra_body sets \"n\""));
    CHECK(holds(refused({.max_tokens = 0}), whose + "options.max_tokens is 0"));
    CHECK(holds(refused({.extra_body = "[]"}), "must be a JSON object"));
    CHECK(holds(refused({.stream = false}), "one arm is streamed and the other is not"));
    scenario is_synthetic = asking({}, otherwise{.options = request_options{.max_tokens = 8}});
    is_synthetic.workload = synthetic{};
    CHECK(holds(refusal_of(is_synthetic), whose + "options.max_tokens is 8: a synthetic workload"));
}

TEST_CASE("an A/A run says nothing else") {
    const auto refused = [](otherwise o) {
        o.same = true;
        return refusal_of(asking({.max_tokens = 16}, o));
    };
    CHECK(refused({}) == "");
    for (const otherwise& o : {otherwise{.options = request_options{}}, otherwise{.model = "m"},
                               otherwise{.workload = prompts({"a"})}, otherwise{.alone = true}})
        CHECK(holds(refused(o), "an A/A run has nothing but .same"));
}
