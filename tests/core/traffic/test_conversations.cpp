// Traffic from files: traces, datasets, conversations, groups.
#include "llmbench.hpp"
#include "extensions/answers/core/questions.hpp"
#include "extensions/sessions/core/session_lines.hpp"
#include "extensions/sessions/core/session_source.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/planning.hpp"
#include "support/scenarios.hpp"
#include "support/texts.hpp"

#include <cmath>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;
using doctest::Approx;
using texts::holds;

namespace {

workload_files with_trace(vector<trace_row> rows) {
    workload_files f;
    f.trace.rows = std::move(rows);
    return f;
}
workload_files with_dialogues(int n) {
    workload_files f;
    for (int i = 0; i < n; ++i)
        f.dialogues.push_back({{{"system", "be kind"}},
                               {{.prompt = "first " + std::to_string(i), .output_tokens = 7},
                                {.prompt = "second " + std::to_string(i), .output_tokens = 9}}});
    return f;
}
const vector<trace_row> four_rows = {{0, 10, 1}, {1, 20, 2}, {4, 30, 3}, {10, 40, 4}};
plan talk(const conversations& c, long long requests = 30, long long warmup = 0) {
    return planned({.workload = c, .arrivals = closed_loop(4), .warmup = warmup,
                    .requests = requests}, 1);
}

}  // namespace

TEST_CASE("a replayed trace has its own times, lengths and end") {
    const plan p = planned({.arrivals = replay("dir/t.csv").speed(2), .warmup = 0}, 1,
                           with_trace(four_rows));
    CHECK(schedule_of(p).at == vector<double>{0, 0.5, 2, 5});
    CHECK(expected_requests(p) == 4);
    CHECK(expected_seconds(p) == 5);
    CHECK(arrival_text(p.sent->arrivals) == "replay(t.csv, speed 2)");
    CHECK(arrival_text(replay("t.csv").unit(1_s).data()) == "replay(t.csv, unit 1 s)");
    CHECK(load_notes(*p.sent) == vector<std::string>{"t.csv: 4 starts over 5 s, 0.8/s"});
    workload_files told = with_trace(four_rows);
    told.trace.block_tokens = 16;
    told.trace.left_out = 2;
    told.trace.fields.leave_out("NumImages", 3);
    CHECK(load_notes(*planned({.arrivals = replay("t.csv"), .warmup = 0}, 1, told).sent) ==
          vector<std::string>{"t.csv: 4 starts over 10 s, 0.4/s, prefixes in blocks of 16 tokens; "
                              "left out: 2 rows without an answer",
                              "left out: NumImages (1 row)"});
    CHECK(p.sent->workload_text ==
          "synthetic, prompt of the trace tokens, output of the trace tokens");
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(item_of(p, i).prompt_tokens == four_rows[i].prompt_tokens);
        CHECK(item_of(p, i).output_tokens == four_rows[i].output_tokens);
        CHECK(words(request_of(p, run_variant::candidate, 0, i).prompt).size() ==
              static_cast<std::size_t>(four_rows[i].prompt_tokens));
    }
}

TEST_CASE("a row's own fields are in its request, and what is not or comes again is told") {
    workload_files f = with_dialogues(10);
    for (dialogue& d : f.dialogues) d.turns.pop_back();
    f.dialogues[0].temperature = 0.5;
    f.dialogues[0].fields = R"(,"tools":[{"a":1}])";
    f.fields.leave_out("model", 1);
    scenario s = {.workload = dataset{.path = "d.jsonl", .format = openai_jsonl, .salted = false},
                  .warmup = 0, .requests = 40};
    const auto body = [&](std::size_t i) {
        const request_spec r = request_of(planned(s, 1, f), run_variant::candidate, 0, i);
        return std::pair{r.temperature, r.extra_fields};
    };
    CHECK(body(0) == std::pair{0.5, std::string(R"(,"tools":[{"a":1}])")});
    CHECK(std::isnan(body(1).first));
    CHECK(body(1).second == "");
    CHECK(load_notes(*planned(s, 1, f).sent) ==
          vector<std::string>{
              "left out: model (1 row)",
              "40 starts and 10 prompts: each comes 4 times, and a prefix cache may have it"});
    s.requests = 10;
    CHECK(load_notes(*planned(s, 1, f).sent).size() == 1);
    s.options.temperature = 0.1;
    CHECK(body(0).first == 0.1);
    const std::string hash = trace_hash(*planned(s, 1, f).sent);
    f.dialogues[0].fields = R"(,"tools":[{"a":2}])";
    CHECK(trace_hash(*planned(s, 1, f).sent) != hash);
}

TEST_CASE("a field that a step's body and the options of all requests set is refused") {
    std::string line = R"({"session":"s","step":"a","prompt_tokens":9,"output_tokens":1,)"
                       R"("body":{"top_p":0.5,"k":1}})";
    byte_stream in(
        [&](char* room, std::size_t size) {
            const std::size_t n = line.copy(room, size);
            line.erase(0, n);
            return n;
        },
        "s.jsonl");
    session_reader reader(0);
    reader.read(in);
    workload_files f;
    const sessions said{.path = "s.jsonl"};
    f.of_extension = std::make_shared<const read_sessions>(said, reader.finished("s.jsonl"));
    scenario s = {.workload = said, .warmup = 0, .requests = 4};
    CHECK(texts::refusal_of([&] { planned(s, 1, f); }) == "");
    s.options.extra_body = R"({"top_k": 2})";
    CHECK(texts::refusal_of([&] { planned(s, 1, f); }) == "");
    s.options.extra_body = R"({"top_p": 1})";
    CHECK(texts::refusal_of([&] { planned(s, 1, f); }) ==
          "a step's body sets \"top_p\" and so does options.extra_body: a field must not stand "
          "twice");
}

TEST_CASE("a trace ends with its requests or its duration where that comes first") {
    const auto sends = [](long long requests, time_span duration) {
        return schedule_of(planned({.arrivals = replay("t"), .warmup = 0, .requests = requests,
                                    .duration = duration}, 1, with_trace(four_rows))).at.size();
    };
    CHECK(sends(0, {}) == 4);
    CHECK(sends(3, {}) == 3);
    CHECK(sends(9, {}) == 4);
    CHECK(sends(0, 4_s) == 3);
    CHECK(sends(2, 4_s) == 2);
}

TEST_CASE("the warm-up of a trace has its mean rate, and the measured part all of it") {
    const plan p = planned({.arrivals = replay("t"), .warmup = 6}, 1, with_trace(four_rows));
    const schedule s = schedule_of(p);
    REQUIRE(s.at.size() == 10);
    CHECK(s.warmup == 6);
    CHECK(s.measured_from == Approx(15));  // 6 at 4 in 10 s
    CHECK(s.at[9] == Approx(25));
    CHECK(item_of(p, 6).prompt_tokens == 10);
    CHECK(item_of(p, 9).prompt_tokens == 40);
    CHECK(item_of(p, 5).prompt_tokens == 20);  // the warm-up begins with the first ones, too
}

TEST_CASE("lengths of a trace are mapped by a scale and a most, or not used at all") {
    const auto lengths = [](const any_workload& w) {
        const plan p = planned({.workload = w, .arrivals = replay("t"), .warmup = 0}, 1,
                               with_trace(four_rows));
        vector<int> out;
        for (std::size_t i = 0; i < 4; ++i) out.push_back(item_of(p, i).prompt_tokens);
        return out;
    };
    CHECK(lengths(synthetic{.prompt_tokens = from_trace()}) == vector<int>{10, 20, 30, 40});
    CHECK(lengths(synthetic{.prompt_tokens = from_trace(0.5, 12)}) ==
          vector<int>{5, 10, 12, 12});
    CHECK(lengths(synthetic{.prompt_tokens = fixed(9)}) == vector<int>{9, 9, 9, 9});
    CHECK_REFUSED(refusal_after([](scenario& s) {
                      s.workload = synthetic{.output_tokens = from_trace()};
                  }),
                  "workload.output_tokens is from_trace()", "must be replay");
    for (const double scale : {0.0, -1.0, inf, nan_value})
        CHECK_REFUSED(refusal_after([&](scenario& s) {
                          s.workload = synthetic{.prompt_tokens = from_trace(scale)};
                      }),
                      "workload.prompt_tokens is from_trace(");
}

TEST_CASE("turns take places of the trace, and requests count turns") {
    const plan p = talk({.turns = 3}, 10, 4);
    CHECK(p.sent->stride == 3);
    const conversation_counts c = counted_conversations(p);
    CHECK(c.warmup == 2);      // whole ones: six requests for the four
    CHECK(c.measured == 4);    // three, three, three and one
    CHECK(c.last_turns == 1);
    CHECK(end_of_trace(p, 6) == 16);
    CHECK(end_of_trace(p, 5) == 15);
    CHECK(requests_before(p, 16) == 16);
    CHECK(expected_requests(p) == 10);
    CHECK(expected_first_turns(p) == 4);
    const plan drawn = talk({.turns = uniform(1, 4)}, 1000);
    std::map<std::size_t, int> seen;
    for (std::size_t i = 0; i < 1000; ++i) ++seen[turns_of(drawn, i)];
    CHECK(seen.size() == 4);
    for (const auto& [turns, times] : seen) CHECK(std::abs(times - 250) < 60);
    CHECK(requests_before(drawn, end_of_trace(drawn, counted_conversations(drawn).measured)) ==
          1000);
}

TEST_CASE("a turn's request says all that was said before, failed exchanges left out") {
    const plan p = talk({.turns = 3, .user_tokens = fixed(5), .system_tokens = fixed(4)});
    const request_spec first = request_of(p, run_variant::candidate, 0, 3);
    const request_spec second = request_of(p, run_variant::candidate, 0, 4, {"one"});
    const request_spec third = request_of(p, run_variant::candidate, 0, 5, {"one", "two"});
    CHECK(first.history.empty());
    CHECK(words(first.prompt).size() == 5);
    CHECK(words(first.system_prompt).size() == 4);
    REQUIRE(second.history.size() == 2);
    CHECK(second.history[0].role == "user");
    CHECK(second.history[0].content == first.prompt);
    CHECK(second.history[1].role == "assistant");
    CHECK(second.history[1].content == "one");
    REQUIRE(third.history.size() == 4);
    CHECK(third.history[2].content == second.prompt);
    CHECK(third.system_prompt == first.system_prompt);
    CHECK(request_of(p, run_variant::candidate, 0, 5, {"", "two"}).history.size() == 2);
    CHECK(request_of(p, run_variant::candidate, 0, 0).system_prompt == first.system_prompt);
    CHECK(request_of(p, run_variant::candidate, 1, 0).system_prompt != first.system_prompt);
    const plan own = talk({.turns = 3, .system_tokens = fixed(20), .shared_system_prompt = false});
    CHECK(request_of(own, run_variant::candidate, 0, 0).system_prompt ==
          request_of(own, run_variant::candidate, 0, 2).system_prompt);
    CHECK(request_of(own, run_variant::candidate, 0, 0).system_prompt !=
          request_of(own, run_variant::candidate, 0, 3).system_prompt);
}

TEST_CASE("where the server keeps the history a turn names the last answer, and sends only what is new") {
    workload_files f = with_dialogues(4);
    const api_traits& api = traits_of(openai_responses);
    scenario s = {.workload = dataset{.path = "d.json", .format = sharegpt, .max_turns = 2},
                  .warmup = 0, .requests = 8, .options = {.server_history = true}};
    const plan p = planned(s, 1, f, scenario_use::measure, api);
    const auto at = [&](std::size_t i, const vector<std::string>& ids) {
        return request_of(p, run_variant::candidate, 0, i, ids);
    };
    const request_spec first = at(0, {}), later = at(1, {"resp_1"}), alone = at(1, {""});
    CHECK(first.previous_response == "");
    CHECK(first.prompt.starts_with("first "));
    CHECK(later.previous_response == "resp_1");
    CHECK(later.history.empty());
    CHECK(later.prompt.starts_with("second "));
    // The server does not keep the instructions, in which the salt of this conversation is.
    CHECK(later.system_prompt == first.system_prompt);
    CHECK(first.system_prompt.ends_with("be kind"));
    CHECK(first.system_prompt != "be kind");
    CHECK(alone.previous_response == "");
    CHECK(holds(options_text(p, run_variant::candidate), "the server keeps the history"));
    for (dialogue& d : f.dialogues) d.before.clear();
    const plan without = planned(s, 1, f, scenario_use::measure, api);
    CHECK_FALSE(request_of(without, run_variant::candidate, 0, 0).prompt.starts_with("first "));
    CHECK(request_of(without, run_variant::candidate, 0, 1, {"resp_1"}).prompt.starts_with("second "));
    s.workload = synthetic{};
    CHECK(texts::refusal_of([&] { planned(s, 1, f, scenario_use::measure, api); }) ==
          "options.server_history is true, and workload is of single requests: there is no history "
          "that the server could keep");
}

TEST_CASE("a dataset's prompts are sent in turn, salted by repeat, with the file's lengths") {
    scenario s = {.workload = dataset{.path = "d/x.json", .max_turns = 2},
                  .arrivals = closed_loop(1), .warmup = 0, .requests = 30,
                  .options = {.system_prompt = "all of you"}};
    const plan p = planned(s, 1, with_dialogues(3));
    CHECK(p.sent->workload_text ==
          "3 prompts of x.json (sharegpt), about 4 tokens each, 2.0 turns each");
    const request_spec r = request_of(p, run_variant::candidate, 0, 3, {"answer"});
    CHECK(r.prompt == "second 1");
    CHECK(r.max_tokens == 9);
    CHECK(r.force_length);
    CHECK(forced_tokens(p, 3) == 9);
    REQUIRE(r.history.size() == 2);  // the file's system message joins ours
    CHECK(r.history[0].content == "first 1");
    CHECK(holds(r.system_prompt, "all of you\n"));
    CHECK(holds(r.system_prompt, "\nbe kind"));
    CHECK(r.system_prompt != request_of(p, run_variant::candidate, 1, 3, {"answer"}).system_prompt);
    CHECK(r.system_prompt != request_of(p, run_variant::baseline, 0, 3, {"answer"}).system_prompt);
    CHECK(request_of(p, run_variant::candidate, 0, 2).prompt == "first 1");
    CHECK(request_of(p, run_variant::candidate, 0, 6).prompt == "first 0");  // again from the start
    s.workload = dataset{.path = "x", .max_turns = 2, .force_output = false, .salted = false};
    const plan plain = planned(s, 1, with_dialogues(3));
    CHECK(request_of(plain, run_variant::candidate, 0, 0).system_prompt == "all of you\nbe kind");
    CHECK_FALSE(request_of(plain, run_variant::candidate, 0, 0).force_length);
    CHECK(forced_tokens(plain, 0) == 0);
}

TEST_CASE("metrics of turns need conversations, and as many of the turns as others need") {
    CHECK_REFUSED(refusal_of_slo(p90(first_turn_ttft) <= 1_s), "first_turn_ttft",
                  "needs a workload of conversations");
    CHECK_REFUSED(refusal_of_slo(goodput(later_turn_ttft <= 1_s) >= 90_pct), "later_turn_ttft",
                  "needs a workload of conversations");
    const auto talking = [](const slo& x, long long requests) {
        return refusal({.workload = conversations{.turns = 5}, .arrivals = closed_loop(4),
                        .requests = requests, .slos = {x}});
    };
    CHECK(talking(p90(first_turn_ttft) <= 1_s, 150) == "");
    CHECK_REFUSED(talking(p90(first_turn_ttft) <= 1_s, 145), "at least 30", "has 29");
    CHECK(talking(p90(later_turn_ttft) <= 1_s, 40) == "");
    CHECK_REFUSED(talking(p90(later_turn_ttft) <= 1_s, 35), "at least 30", "has 28");
    CHECK(talking(p90(ttft).of(turns(4)) <= 1_s, 75) == "");
    CHECK_REFUSED(talking(p90(ttft).of(turns(4)) <= 1_s, 70), "at least 30", "has 28");
    CHECK_REFUSED(talking(p90(ttft).of(turns(2, 2)) <= 1_s, 145), "at least 30", "has 29");
    CHECK(talking(of(cached_share, turns(2)) >= 80_pct, 40) == "");
}

TEST_CASE("a selection is of requests that the scenario has") {
    CHECK_REFUSED(refusal_of_slo(p90(ttft).of("sql") <= 1_s), "no label \"sql\"");
    CHECK_REFUSED(refusal_of_slo(of(error_rate, "sql") <= 1_pct), "no label \"sql\"");
    CHECK_REFUSED(refusal_of_slo(p90(ttft).of(label("a") && label("b")) <= 1_s),
                  "no label \"a\" && \"b\"");
    CHECK_REFUSED(refusal_of_slo(p90(ttft).of(during("reload")) <= 1_s),
                  "no side task \"reload\"");
    CHECK_REFUSED(refusal_of_slo(p90(ttft).of(turns(2)) <= 1_s),
                  "turns(2) needs a workload of conversations");
    CHECK_REFUSED(refusal_of_slo(p90(ttft).of(turns(3, 2)) <= 1_s), "turns are counted from 1");
    CHECK_REFUSED(refusal_of_slo(p90(ttft).of(turns(0)) <= 1_s), "turns are counted from 1");
    CHECK_REFUSED(refusal_of_slo(p90(ttft).of(depth(1)) <= 1_s), "a depth from 0 to 0 is allowed");
    CHECK_REFUSED(refusal_of_slo(p90(ttft).of(depth(0) && depth(1)) <= 1_s), "a depth from 0");
    CHECK_REFUSED(refusal_of_slo(max(queued_requests).of(depth(0)) <= 8),
                  "what a server tells of itself is of all that it does");
    CHECK_REFUSED(refusal_of_slo(of(startup_time, depth(0)) <= 30_s), "what a server tells");
    CHECK(refusal_of_slo(p90(ttft).of(depth(0)) <= 1_s) == "");
    CHECK(refusal_of_slo(p90(ttft).of(turns(1)) <= 1_s) == "");
}

TEST_CASE("prompts of a group share their prefix, by the fraction that is asked for") {
    const plan p = traffic(1, {.prompt_tokens = fixed(60), .shared_prefix = fixed(32),
                               .prefix_groups = 5, .prefix_fraction = 60_pct});
    std::map<std::string, int> prefixes;
    int members = 0;
    const auto& made = dynamic_cast<const synthetic_prompts&>(*p.sent->source);
    for (std::size_t i = 0; i < 500; ++i) {
        const vector<std::string> w = words(request_of(p, run_variant::candidate, 0, i).prompt);
        REQUIRE(w.size() == 60);
        std::string prefix;
        for (std::size_t k = 0; k < 32; ++k) prefix += w[k] + " ";
        ++prefixes[prefix];
        members += made.group(i, p.sent->seed) >= 0;
    }
    int groups = 0;
    for (const auto& [prefix, times] : prefixes) {
        groups += times > 1;
        if (times > 1) CHECK(std::abs(times - 60) < 35);
    }
    CHECK(groups == 5);
    CHECK(std::abs(members - 300) < 45);
    CHECK(holds(p.sent->workload_text,
                "shared prefix 32 tokens in 5 groups for 60 % of the prompts"));
    CHECK_REFUSED(refusal_after([](scenario& s) { s.workload = synthetic{.prefix_groups = 0}; }),
                  "workload.prefix_groups is 0");
    CHECK_REFUSED(refusal_after([](scenario& s) {
                      s.workload = synthetic{.prefix_fraction = 101_pct};
                  }),
                  "workload.prefix_fraction is 101 %");
}

TEST_CASE("conversations out of their range are refused, field by field") {
    const auto refused_talk = [](const conversations& c) {
        return refusal({.workload = c, .requests = 30});
    };
    CHECK_REFUSED(refused_talk({.turns = 0}), "workload.turns is 0");
    CHECK_REFUSED(refused_talk({.turns = 1001}), "workload.turns is 1001", "1 to 1000");
    CHECK_REFUSED(refused_talk({.turns = uniform(1, 2000)}), "workload.turns is uniform(1, 2000)");
    CHECK_REFUSED(refused_talk({.user_tokens = 0}), "workload.user_tokens is 0");
    CHECK_REFUSED(refused_talk({.output_tokens = 0}), "workload.output_tokens is 0");
    CHECK_REFUSED(refused_talk({.think = time_span::from_seconds(-1)}), "workload.think is -1 s");
    CHECK_REFUSED(refused_talk({.think = uniform(2_s, 1_s)}), "workload.think is uniform(2 s, 1 s)");
    CHECK_REFUSED(refused_talk({.think = lognormal(2_s, 6)}), "workload.think is lognormal(2 s, 6)");
    CHECK_REFUSED(refused_talk({.turns = empirical("x")}), "workload.turns is empirical(x)");
    CHECK_REFUSED(refused_talk({.user_tokens = from_trace()}), "workload.user_tokens");
}

TEST_CASE("helpers of conversations that cannot be are refused, field by field") {
    const auto refused_talk = [](const conversations& c) {
        return refusal({.workload = c, .requests = 30});
    };
    CHECK_REFUSED(refused_talk({.subagents = 101_pct}), "workload.subagents is 101 %");
    CHECK_REFUSED(refused_talk({.subagents = 10_pct}), "workload.helpers is not given");
    CHECK_REFUSED(refused_talk({.helpers = 2}), "workload.helpers is given, and subagents is 0 %");
    CHECK_REFUSED(refused_talk({.subagents = 10_pct, .helpers = 65, .helper_turns = 1}), "workload.helpers is 65");
    CHECK_REFUSED(refused_talk({.subagents = 10_pct, .helpers = 2, .helper_turns = normal(2, 1)}),
                  "workload.helper_turns is normal(2, 1)");
    CHECK_REFUSED(refused_talk({.turns = 1, .subagents = 10_pct, .helpers = 2, .helper_turns = 1}),
                  "conversations have one turn");
    CHECK_REFUSED(refused_talk({.turns = 1000, .subagents = 10_pct, .helpers = 2, .helper_turns = 5}),
                  "may have 10990 steps", "at most 10000");
}

TEST_CASE("helpers and drawn times to think change the hash, and no conversation without them") {
    const auto hash = [](const conversations& c) {
        return trace_hash(planned({.workload = c, .arrivals = closed_loop(4), .requests = 100}, 1));
    };
    CHECK(hash({.turns = uniform(1, 6), .think = fixed(1_s)}) == hash({.turns = uniform(1, 6), .think = 1_s}));
    CHECK(hash({.think = uniform(1_s, 2_s)}) != hash({.think = 1_s}));
    CHECK(hash({.think = uniform(1_s, 2_s)}) != hash({.think = uniform(1_s, 3_s)}));
    CHECK(hash({.subagents = 20_pct, .helpers = 2, .helper_turns = 1}) != hash({}));
    CHECK(hash({.subagents = 20_pct, .helpers = 2, .helper_turns = 1}) !=
          hash({.subagents = 20_pct, .helpers = 2, .helper_turns = 2}));
}

TEST_CASE("the hash of files and conversations is the same on every platform, and tells them apart") {
    const auto hash = [](const scenario& s, const workload_files& f) {
        return trace_hash(planned(s, 1, f));
    };
    const scenario replayed_trace = {.arrivals = replay("t"), .warmup = 0};
    const scenario talks = {.workload = conversations{.turns = uniform(1, 6)},
                            .arrivals = closed_loop(4), .requests = 100};
    const scenario data = {.workload = dataset{.path = "x", .max_turns = 2},
                           .arrivals = closed_loop(4), .requests = 100};
    CHECK(hash(replayed_trace, with_trace(four_rows)) == "06d88c4d8d7bd0c0");
    CHECK(hash(talks, {}) == "be025376316c1980");
    CHECK(hash(data, with_dialogues(5)) == "29f02ad251448d90");
    scenario other = talks;
    other.workload = conversations{.turns = uniform(1, 6), .think = 1_s};
    CHECK(hash(other, {}) != hash(talks, {}));
    CHECK(hash(data, with_dialogues(6)) != hash(data, with_dialogues(5)));
    workload_files longer = with_dialogues(5);
    longer.dialogues[4].turns[1].output_tokens = 10;
    CHECK(hash(data, longer) != hash(data, with_dialogues(5)));
    scenario salted = data;
    salted.workload = dataset{.path = "x", .max_turns = 2, .salted = false};
    CHECK(hash(salted, with_dialogues(5)) == hash(data, with_dialogues(5)));
}

TEST_CASE("what grades the questions of a file is named with as many as it grades") {
    const auto text = [](std::initializer_list<answer_grade> grades) {
        vector<dialogue> asked;
        for (const answer_grade by : grades) {
            asked.push_back({.turns = {{.prompt = "?"}}});
            asked.back().wanted = std::make_shared<const keyed_answer>(answer_key{.by = by, .key = "1"});
        }
        return asked_questions({.path = "q.jsonl"}, asked).planned({}, {}, 1).workload_text;
    };
    CHECK(text({choice, choice}) == "2 questions of q.jsonl (qa_jsonl, graded by choice)");
    CHECK(text({choice, exact, choice}) ==
          "3 questions of q.jsonl (qa_jsonl, graded by exact (1), choice (2))");
}
