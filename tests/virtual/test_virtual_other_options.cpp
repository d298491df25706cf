// One server asked in two ways, in turns: what the candidate's options cost, as a ratio.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {
/// Prompts of which each is answered with as many tokens as options say, 16 at most.
scenario asked_two_ways(const engine& e, const char* name) {
    scenario s = brief(simulated(e), name);
    s.workload = prompts({"one", "two", "three"});
    return s;
}
}  // namespace

TEST_CASE("twice the tokens take twice the time, as a ratio of one server to itself") {
    scenario s = asked_two_ways(engine_of(15_ms), "twice the tokens");
    s.options.max_tokens = 16;
    s.baseline = otherwise{.options = request_options{.max_tokens = 8}};
    s.slos = {mean(e2e) <= 3 * baseline, advisory(mean(e2e) <= 1.2 * baseline),
              p50(tpot) <= 1.5 * baseline};
    const heard_run heard = heard_of(s);
    const result& r = heard.result;
    const std::string said = texts::unwrapped(heard.said);
    CAPTURE(said);
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    CHECK(r.verdicts()[1].outcome == verdict::fail);
    CHECK(r.verdicts()[2].outcome == verdict::pass);
    CHECK(r.verdicts()[0].estimate.value > 1.5);
    CHECK(r.verdicts()[0].estimate.value < 2.7);
    CHECK(r.verdicts()[0].repeats >= 4);
    for (const record& q : r.requests())
        CHECK(q.output_tokens == (q.variant == run_variant::baseline ? 8 : 16));
    CHECK(holds(said, "options max_tokens 16"));
    CHECK(holds(said, "candidate: options max_tokens 16, model simulated; baseline: the same server"));
    CHECK(holds(said, "baseline the same server with other requests: options max_tokens 8, model "
                      "simulated"));
    const picojson::value gate = reported_gate("twice the tokens");
    CHECK(gate.get("target").get("options").to_str() == "max_tokens 16");
    CHECK(gate.get("baseline_target").get("kind").to_str() == "other options");
    CHECK(gate.get("baseline_target").get("options").to_str() == "max_tokens 8");
    CHECK(holds(content_of(report_file("report.html")), "the same server with other requests"));
    CHECK(holds(content_of(report_file("summary.md")), "the same server with other requests"));
    check_rejudged(r, s.slos);
    // The server rests before each load, also between the two of the first pair.
    std::map<std::pair<int, run_variant>, std::pair<long long, long long>> loads;
    for (const record& q : r.requests()) {
        auto& [from, to] = loads.try_emplace({q.repeat, q.variant}, q.scheduled_ns, 0).first->second;
        from = std::min(from, q.scheduled_ns);
        to = std::max(to, q.end_ns);
    }
    std::vector<std::pair<long long, long long>> in_order;
    for (const auto& load : loads) in_order.push_back(load.second);
    std::sort(in_order.begin(), in_order.end());
    REQUIRE(in_order.size() >= 8);
    for (std::size_t i = 1; i < in_order.size(); ++i)
        CHECK(in_order[i].first - in_order[i - 1].second >= 200'000'000);
}

TEST_CASE("another model of the server is another arm, whose requests name it") {
    const logging_server host(engine_of(6_ms));
    scenario s = brief(endpoint{.url = host.url(), .model = "tiny"}, "adapter");
    s.baseline = otherwise{.model = "tiny-lora"};
    s.slos = {p50(tpot) <= 1.5 * baseline};
    const result r = run(s);
    check_passes(r);
    const picojson::value gate = reported_gate("adapter");
    CHECK(gate.get("target").get("model").to_str() == "tiny");
    CHECK(gate.get("baseline_target").get("model").to_str() == "tiny-lora");
}

TEST_CASE("arms whose requests do not differ are refused before the load") {
    const logging_server host(engine_of(2_ms));
    scenario s = brief(endpoint{.url = host.url(), .model = "tiny"}, "no difference");
    s.slos = {p50(tpot) <= 1.5 * baseline};
    const auto refused = [&](const any_baseline& b) {
        s.baseline = b;
        const std::string why = refusal_of(s);
        INFO(why);
        CHECK(holds(why, "its requests are the target's, byte for byte"));
        CHECK(holds(why, "otherwise{.same = true}"));
    };
    refused(otherwise{.options = request_options{}});
    refused(otherwise{.model = "tiny"});
    // A field that says nothing new: made-up prompts force their lengths anyway.
    refused(otherwise{.options = request_options{.ignore_eos = true}});
    CHECK(host.log().empty());
}
