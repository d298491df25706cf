// Mixes: whose part a request is, what it says, and what is refused.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/planning.hpp"
#include "extensions/sessions/api.hpp"
#include "support/scenarios.hpp"
#include "support/texts.hpp"

#include <map>
#include <set>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;
using texts::holds;

namespace {

scenario mixed_load(const mix_of_parts& m, const slo_list& slos = {}, long long requests = 300) {
    return {.workload = m, .arrivals = poisson(8_rps), .warmup = 0, .requests = requests,
            .slos = slos};
}
std::string refusal_of(const scenario& s) {
    return texts::refusal_of([&] { planned(s, 1); });
}
std::string refusal_of(const mix_of_parts& m) { return refusal_of(mixed_load(m)); }
const mix_of_parts three = mix({{.name = "base", .weight = 60},
                                {.name = "sql", .weight = 30, .model = "sql-lora"},
                                {.name = "rag", .weight = 10,
                                 .options = request_options{.extra_body = R"({"priority": 1})"}}});
std::string body_of(const plan& p, std::size_t index) {
    return request_body(traits_of(openai_chat), "m",
                        request_of(p, run_variant::candidate, 0, index));
}

}  // namespace

TEST_CASE("an order without a list is an order, and each one is as likely") {
    for (const std::uint64_t n : {1u, 2u, 3u, 7u, 64u, 1000u}) {
        std::set<std::uint64_t> places;
        for (std::uint64_t i = 0; i < n; ++i) places.insert(shuffled(77, i, n));
        CHECK(places.size() == n);
        CHECK(*places.rbegin() == n - 1);
    }
    std::map<vector<std::uint64_t>, int> orders;
    for (std::uint64_t key = 0; key < 6000; ++key)
        ++orders[{shuffled(key, 0, 3), shuffled(key, 1, 3), shuffled(key, 2, 3)}];
    CHECK(orders.size() == 6);
    for (const auto& [order, times] : orders) CHECK(std::abs(times - 1000) < 150);
}

TEST_CASE("of as many starts as the weights add up to, each part has its weight exactly") {
    const plan p = planned(mixed_load(three), 1);
    CHECK(p.sent->labels == vector<std::string>{"base", "sql", "rag"});
    std::set<vector<std::size_t>> orders;
    std::map<std::size_t, std::set<std::size_t>> own;
    for (std::size_t block = 0; block < 30; ++block) {
        vector<std::size_t> order;
        std::map<std::size_t, int> counts;
        for (std::size_t i = 0; i < 10; ++i) {
            const part_place of = part_of(p, block * 10 + i);
            order.push_back(of.which);
            ++counts[of.which];
            own[of.which].insert(of.conversation);
        }
        CHECK(counts[0] == 6);
        CHECK(counts[1] == 3);
        CHECK(counts[2] == 1);
        orders.insert(order);
    }
    CHECK(orders.size() > 20);  // no pattern that a load could fall in step with
    // Each place of a part's own trace is sent once.
    CHECK(own[0].size() == 180);
    CHECK(*own[0].rbegin() == 179);
    CHECK(own[2].size() == 30);
    const plan other = planned(mixed_load(three), 2);
    std::size_t differ = 0;
    for (std::size_t i = 0; i < 300; ++i) differ += part_of(p, i).which != part_of(other, i).which;
    CHECK(differ > 50);
    CHECK(trace_hash(p) != trace_hash(other));
    CHECK(trace_hash(p) != trace_hash(planned(mixed_load(mix({{.name = "base"}})), 1)));
}

TEST_CASE("a request of a part has its model, its options, its lengths and its own words") {
    mix_of_parts m = mix({{.name = "long", .workload = synthetic{.prompt_tokens = fixed(90)}},
                          {.name = "same", .workload = synthetic{.prompt_tokens = fixed(90)},
                           .model = "lora", .options = request_options{.temperature = 0.5}},
                          {.name = "given", .workload = prompts({"hello"}),
                           .options = request_options{.max_tokens = 9}}});
    const plan p = planned(mixed_load(m), 1);
    std::set<std::string> prompts_seen;
    for (std::size_t i = 0; i < 300; ++i) {
        const std::size_t which = part_of(p, i).which;
        const request_spec r = request_of(p, run_variant::candidate, 0, i);
        const std::string body = body_of(p, i);
        CHECK(holds(body, which == 1 ? "\"model\":\"lora\"" : "\"model\":\"m\""));
        CHECK(holds(body, "\"temperature\"") == (which == 1));
        CHECK(r.force_length == (which != 2));
        CHECK(forced_tokens(p, i) == (which == 2 ? 0 : 128));
        CHECK(r.max_tokens == (which == 2 ? 9 : 128));
        if (which == 2) CHECK(r.prompt == "hello");
        else CHECK(prompts_seen.insert(r.prompt).second);
    }
    CHECK(prompts_seen.size() == 200);
    CHECK(p.sent->sent_as_given == "prompts");
    CHECK(holds(p.sent->workload_text, "mix of \"long\" (1 in 3): synthetic, prompt 90 tokens"));
    CHECK(holds(p.sent->workload_text, "; \"same\" (1 in 3, model lora): synthetic"));
    CHECK(holds(options_text(p), "\"same\": ignore_eos, temperature 0.5; \"given\": max_tokens 9"));
}

TEST_CASE("a part of conversations stands beside prompts, and each thinks as long as it does") {
    const mix_of_parts m =
        mix({{.name = "talk", .workload = conversations{.turns = fixed(3), .think = 2_s}},
             {.name = "ask", .weight = 2}});
    const plan p = planned({.workload = m, .arrivals = closed_loop(4), .warmup = 0, .requests = 50,
                            .slos = {p50(ttft).of("talk") <= 1_s,
                                     p50(ttft).of(label("talk") && turns(2)) <= 1_s}}, 1);
    CHECK(p.sent->stride == 3);
    for (std::size_t c = 0; c < 30; ++c) {
        const part_place of = part_of(p, c);
        CHECK(turns_of(p, c) == (of.which == 0 ? 3 : 1));
        CHECK(of.part.think.a == (of.which == 0 ? 2 : 0));
    }
    const counts_by_kind kinds = expected_kinds(p);
    const auto n = [&](const selection& s) { return selected_of(kinds, p.sent->labels, s); };
    CHECK(n({}) == 50);
    CHECK(n(label("talk")) == 30);
    CHECK(n(label("ask")) == 20);
    CHECK(n(label("talk") && turns(2)) == 20);
    CHECK(n(turns(1, 1)) == 30);
}

TEST_CASE("too few requests of a label are refused with how many would do") {
    CHECK(refusal_of(mixed_load(three, {p90(ttft).of("rag") <= 1_s}, 300)) == "");
    const std::string few = refusal_of(mixed_load(three, {p90(ttft).of("rag") <= 1_s}, 200));
    CAPTURE(few);
    CHECK(holds(few, "p90(ttft) of \"rag\" needs at least 30 measured requests a repeat"));
    CHECK(holds(few, "the scenario has 20 of them; about 300 requests in all would do"));
    CHECK(refusal_of(mixed_load(three, {of(error_rate, "rag") <= 1_pct}, 100)) == "");
    CHECK(holds(refusal_of(mixed_load(three, {p50(ttft).of("rga") <= 1_s})),
                "no label \"rga\"; it has base, sql and rag"));
    CHECK(holds(refusal_of(mixed_load(three, {of(output_throughput, "rag") >= 1_tps})),
                "below saturation a throughput only measures the arrival rate"));
}

TEST_CASE("a ratio is of what the scenario has, on either side") {
    CHECK(refusal_of(mixed_load(three, {p90(ttft).of("rag") <= 1.5 * p90(ttft).of("base")})) == "");
    CHECK(holds(refusal_of(mixed_load(three, {p90(ttft).of("base") <= 1.5 * p90(ttft).of("x")})),
                "no label \"x\""));
    CHECK(holds(refusal_of(mixed_load(three, {p95(ttft).of("base") <= 1.5 * p95(ttft).of("rag")})),
                "p95(ttft) of \"rag\" needs at least 60"));
    CHECK(holds(refusal_of(mixed_load(three, {p90(ttft) <= 1.5 * p90(ttft)})), "the same statistic"));
    CHECK(holds(refusal_of(mixed_load(three, {of(error_rate, "sql") <= 2 * of(error_rate, "rag")})),
                "a ratio is of times and speeds"));
    CHECK(holds(refusal_of(mixed_load(three, {p90(ttft).of("rag") <= 0 * p90(ttft).of("base")})),
                "the limit must be above zero"));
}

TEST_CASE("what is no mix is refused") {
    CHECK(refusal_of(three) == "");
    CHECK(holds(refusal_of(mix({})), "a mix of 0 parts: 1 to 64 are allowed"));
    mix_of_parts many;
    for (int i = 0; i < 64; ++i) many.parts.push_back({.name = std::to_string(i)});
    CHECK(refusal_of(many) == "");
    many.parts.push_back({.name = "x"});
    CHECK(holds(refusal_of(many), "a mix of 65 parts"));
    CHECK(holds(refusal_of(mix({{.name = "a"}, {.name = "a"}})), "another part has this name"));
    CHECK(holds(refusal_of(mix({{.name = ""}})), "1 to 60 characters"));
    CHECK(holds(refusal_of(mix({{.name = "a\"b"}})), "no quote"));
    CHECK(holds(refusal_of(mix({{.name = "a", .weight = 0}})), "weight is 0"));
    CHECK(holds(refusal_of(mix({{.name = "a", .weight = 1001}})), "weight is 1001"));
    CHECK(holds(refusal_of(mix({{.name = "a", .workload = mix({{.name = "b"}})}})),
                "its workload is a mix"));
    CHECK(holds(refusal_of(mix({{.name = "a", .workload = sessions{.path = "x"}}})),
                "its workload is sessions"));
    CHECK(holds(refusal_of(mix({{.name = "a"},
                                {.name = "b", .options = request_options{.stream = false}}})),
                "part \"b\" of the mix: it is streamed and the first part is not"));
    CHECK(holds(refusal_of(mix({{.name = "a",
                                 .options = request_options{.extra_body = "no JSON"}}})),
                "part \"a\" of the mix: options.extra_body"));
    const request_options leaving{.cancel_after = 1_s};
    CHECK(refusal_of(mix({{.name = "a", .options = leaving}, {.name = "b"}})) == "");
    CHECK(holds(refusal_of(mix({{.name = "a", .options = leaving},
                                {.name = "b", .options = leaving}})), "nobody is left"));
    CHECK(holds(refusal_of(mix({{.name = "a",
                                 .workload = synthetic{.prompt_tokens = from_trace()}}})),
                "lengths of a recorded trace"));
}

TEST_CASE("another workload is another arm, with the scenario's times and options") {
    const scenario s{.baseline = otherwise{.workload = synthetic{.prompt_tokens = fixed(350)}},
                     .workload = synthetic{.prompt_tokens = fixed(350),
                                           .shared_prefix = fixed(260)},
                     .arrivals = closed_loop(16), .requests = 320,
                     .slos = {mean(ttft) <= 0.5 * baseline}};
    const plan p = planned(s, 1), other = plan_of_variant(p, run_variant::baseline);
    CHECK(holds(p.sent->workload_text, "shared prefix 260 tokens"));
    CHECK(!holds(other.sent->workload_text, "shared prefix"));
    CHECK(other.sent->arrivals.users == 16);
    for (std::size_t i = 0; i < 50; ++i)  // drawn from the same streams
        CHECK(item_of(p, i).output_tokens == item_of(other, i).output_tokens);
    scenario mixes = s;
    mixes.baseline = otherwise{.workload = three};
    CHECK(plan_of_variant(planned(mixes, 1), run_variant::baseline).sent->labels.size() == 3);
    scenario models = mixed_load(three, {p50(ttft) <= 1.1 * baseline});
    models.baseline = otherwise{.model = "old"};
    const plan old = plan_of_variant(planned(models, 1), run_variant::baseline);
    for (std::size_t i = 0; i < 20; ++i) CHECK(holds(body_of(old, i), "\"model\":\"old\""));
    models.baseline = otherwise{.alone = true};
    CHECK(holds(refusal_of(models), "the scenario does nothing beside its load"));
}
