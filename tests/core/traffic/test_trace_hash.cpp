// The hash that tells one traffic from another.
#include "llmbench.hpp"
#include "core/base/bytes.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/planning.hpp"
#include "support/scenarios.hpp"

#include <set>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;

TEST_CASE("the hash is FNV-1a") {
    // The test vectors of its authors (Fowler, Noll, Vo; draft-eastlake-fnv, 64 bit).
    const auto hash = [](const std::string& s) {
        fnv1a h;
        h.add(s.data(), s.size());
        return h.text();
    };
    CHECK(hash("") == "cbf29ce484222325");
    CHECK(hash("a") == "af63dc4c8601ec8c");
    CHECK(hash("foobar") == "85944171f73967e8");
    fnv1a number;
    number.add(0x0102030405060708ll);  // eight bytes, lowest first
    CHECK(number.text() == hash("\x08\x07\x06\x05\x04\x03\x02\x01"));
}

TEST_CASE("the hash of a trace is the same on every platform") {
    CHECK(trace_hash(planned({.arrivals = poisson(8_rps), .requests = 300}, 1)) ==
          "c57cddd41f33bfdd");
    CHECK(trace_hash(planned({.arrivals = gamma(8_rps, 0.5), .duration = 60_s}, 42)) ==
          "9ecaee5c7a292709");
    CHECK(trace_hash(planned({.arrivals = closed_loop(16), .duration = 30_s}, 1)) ==
          "e326c371dd3294cd");
    CHECK(trace_hash(planned({.workload = synthetic{.prompt_tokens = uniform(10, 500),
                                                    .output_tokens = normal(100, 20)},
                              .arrivals = all_at_once(),
                              .requests = 500},
                             7)) == "9439f626017cfef5");
}

TEST_CASE("the hash of a trace changes with everything that changes the traffic") {
    const scenario base = {.workload = synthetic{}, .arrivals = poisson(8_rps), .requests = 300};
    const auto hash = [&](auto&& change) {
        scenario s = base;
        change(s);
        return trace_hash(planned(s, 1));
    };
    const std::string unchanged = hash([](scenario&) {});
    std::set<std::string> seen = {unchanged};
    const auto is_new = [&](const std::string& h) { return seen.insert(h).second; };
    CHECK(is_new(hash([](scenario& s) { s.seed = 2; })));
    CHECK(is_new(hash([](scenario& s) { s.requests = 301; })));
    CHECK(is_new(hash([](scenario& s) { s.warmup = 21; })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = poisson(9_rps); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = constant(8_rps); })));
    CHECK(is_new(
        hash([](scenario& s) { s.workload = synthetic{.prompt_tokens = lognormal(512, 0.5)}; })));
    CHECK(is_new(hash([](scenario& s) { s.workload = synthetic{.output_tokens = fixed(129)}; })));
    CHECK(is_new(hash([](scenario& s) { s.workload = synthetic{.shared_prefix = fixed(64)}; })));
    CHECK(is_new(hash([](scenario& s) { s.workload = prompts({"one", "two"}); })));
    CHECK(is_new(hash([](scenario& s) { s.workload = prompts({"onet", "wo"}); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = closed_loop(16); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = closed_loop(17); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = closed_loop(16).think(1_s); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = closed_loop(16).ramp(1_s); })));
    CHECK(is_new(hash([](scenario& s) { s.arrivals = all_at_once(); })));
}

TEST_CASE("the hash of a trace does not change with what leaves the traffic alone") {
    scenario s = sound();
    const std::string before = trace_hash(planned(s, 1));
    s.slos = {p90(ttft) <= 1_s};
    s.limits.total = 10_s;
    s.name = "another name";
    s.repeats = 5;
    CHECK(trace_hash(planned(s, 1)) == before);
}

TEST_CASE("the hash of a load changes with what its trace does not tell, and with no word of it") {
    const auto hash = [](auto&& change, const arrival_pattern& arrivals) {
        scenario s = {.workload = synthetic{}, .arrivals = arrivals, .requests = 300};
        change(s);
        return load_hash(*planned(s, 1).sent);
    };
    for (const arrival_pattern& arrivals : {arrival_pattern(poisson(8_rps)), arrival_pattern(closed_loop(4))}) {
        std::set<std::string> seen = {hash([](scenario&) {}, arrivals)};
        const auto is_new = [&](auto&& change) { return seen.insert(hash(change, arrivals)).second; };
        CHECK_FALSE(is_new([](scenario& s) { s.name = "another"; }));
        CHECK_FALSE(is_new([](scenario& s) { s.slos = {p90(ttft) <= 1_s}; }));
        CHECK(is_new([](scenario& s) { s.requests = 301; }));
        CHECK(is_new([](scenario& s) { s.warmup = 5_s; }));
        CHECK(is_new([](scenario& s) { s.options.temperature = 0.5; }));
        CHECK(is_new([](scenario& s) { s.workload = prompts({"one"}); }));
        CHECK(is_new([](scenario& s) { s.workload = prompts({"one"}); s.options.max_tokens = 7; }));
        CHECK(is_new([](scenario& s) { s.options.system_prompt = "be brief"; }));
        CHECK(is_new([](scenario& s) { s.options.extra_body = R"({"top_k":1})"; }));
        CHECK(is_new([](scenario& s) { s.workload = synthetic{.force_output = false}; }));
        CHECK(is_new([](scenario& s) { s.workload = synthetic{.output_tokens = fixed(9)}; }));
        CHECK(is_new([](scenario& s) { s.arrivals = closed_loop(5); }));
        CHECK(is_new([](scenario& s) { s.arrivals = poisson(8_rps).max_in_flight(3); }));
    }
    CHECK(hash([](scenario& s) { s.warmup = until_stable(5_s); }, closed_loop(4)) !=
          hash([](scenario& s) { s.warmup = 5_s; }, closed_loop(4)));
}
