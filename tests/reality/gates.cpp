// What is checked on every real server, written the way a user would write it. run.sh starts the
// server, says in the environment what it can do, and chooses the test cases:
//   SERVER_URL      of the server that runs (for "process:" and "killed:" its command, SERVER_START;
//                   that of "killed:" ends once there is a file SERVER_KILL)
//   SERVER_API, SERVER_MODEL, SERVER_READY, SERVER_EXTRA_BODY
//   SERVER_LENGTHS  forced, capped, or refused where it does not take ignore_eos; "characters" where
//                   what it tells of a prompt are those, and no tokens
//   SERVER_CONTEXT  tokens of prompt and answer together, where it refuses more
//   SERVER_CACHE    slots where each of them has a prefix cache of its own
//   SERVER_PAGE     its page of metrics, a path or a URL; SERVER_TTFT, SERVER_TPOT: its own sums on it;
//                   SERVER_GAUGES is "queued" where it does not tell how many requests run, "none"
//                   where nor how many wait
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_faults.hpp"
#include "llmbench_embeddings.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

using namespace llmbench;

namespace {

std::string reported(const char* variable) {
    const char* value = std::getenv(variable);
    return value ? value : "";
}
bool is_elsewhere(const std::string& page) { return page.rfind("http", 0) == 0; }
api_format server_api() {
    constexpr std::pair<const char*, api_format> all[] = {
        {"openai_chat", openai_chat}, {"openai_completions", openai_completions}, {"tgi", tgi},
        {"triton", triton}, {"ollama", ollama}, {"ollama_generate", ollama_generate},
        {"llama_cpp", llama_cpp}, {"sglang", sglang}, {"plain_text", plain_text},
        {"anthropic", anthropic}, {"openai_embeddings", api_format::openai_embeddings},
        {"rerank", api_format::rerank}};
    const std::string wanted = reported("SERVER_API");
    for (const auto& [name, api] : all)
        if (wanted == name) return api;
    std::fprintf(stderr, "SERVER_API names no API: '%s'\n", wanted.c_str());
    std::exit(2);
}
endpoint server() {
    const std::string page = reported("SERVER_PAGE");
    return {.url = reported("SERVER_URL"), .model = reported("SERVER_MODEL"), .api = server_api(),
            .metrics_url = is_elsewhere(page) ? page : ""};
}
process started() {
    return {.command = reported("SERVER_START"), .ready = reported("SERVER_READY"), .ready_within = 900_s,
            .api = server_api(), .model = reported("SERVER_MODEL")};
}
request_options options(request_options o = {}) {
    if (const std::string more = reported("SERVER_EXTRA_BODY"); !more.empty()) o.extra_body = more;
    o.events_are_tokens = server_api() != api_format::openai_embeddings && server_api() != api_format::rerank;
    return o;
}
/// A few requests, two at a time.
scenario few(const any_workload& workload) {
    return {.target = server(),
            .workload = workload,
            .arrivals = closed_loop(2),
            .warmup = 0,
            .requests = 8,
            .repeats = 1,
            .options = options()};
}
/// Embeddings and scores have no length of their own.
bool generates() { return server_api() != api_format::openai_embeddings && server_api() != api_format::rerank; }
auto first_part() { return generates() ? ttft : e2e; }
/// The same with a prompt of few words, and an answer of as few: some models never stop.
scenario one_phrase() {
    scenario s = few(prompts({"the way home"}));
    if (generates()) s.options.max_tokens = 8;
    return s;
}
bool is_forced() { return reported("SERVER_LENGTHS") == "forced"; }
/// A workload that does not ask for more than the server takes.
template <class Workload>
Workload taken(Workload w) {
    w.force_output = reported("SERVER_LENGTHS") != "refused";
    return w;
}

void all_ok(const result& r) {
    REQUIRE(r.requests().size() > 0);
    for (const record& x : r.requests()) {
        CAPTURE(x.id);
        CAPTURE(x.error);
        CHECK(x.status == request_status::ok);
        CHECK(x.first_token_ns >= x.sent_ns);
        CHECK((x.output_tokens > 0) == generates());
    }
}
/// A line of what was met: run.sh collects them.
void met(const char* what, const std::string& value) {
    std::printf("MET %s: %s\n", what, value.c_str());
}
std::string ms(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f ms", seconds * 1e3);
    return text;
}
/// The sum of a series on the server's page over all label sets.
double on_page(const std::string& name) {
    const std::string page_path = reported("SERVER_PAGE");
    const std::string command =
        "curl -sf '" + (is_elsewhere(page_path) ? "" : reported("SERVER_URL")) + page_path + "'";
    std::FILE* page = popen(command.c_str(), "r");
    REQUIRE(page != nullptr);
    double sum = 0;
    bool is_there = false;
    char line[4096];
    while (std::fgets(line, sizeof line, page)) {
        const std::string text = line;
        if (text.rfind(name + "{", 0) != 0 && text.rfind(name + " ", 0) != 0) continue;
        sum += std::atof(text.c_str() + text.rfind(' '));
        is_there = true;
    }
    pclose(page);
    INFO(name << " is not on the page");
    REQUIRE(is_there);
    return sum;
}

}  // namespace

// ---- started and ended by the gate itself

TEST_CASE("process: it is started, gated and ended") {
    // Limits with room for a busy machine: what is shown is that the gate passes.
    gate({.target = started(),
          .workload = taken(synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(16)}),
          .arrivals = closed_loop(2),
          .warmup = 8,
          .requests = 40,
          .slos = {p90(first_part()) <= 20_s, mean(e2e) <= 60_s, error_rate <= 5_pct,
                   startup_time <= 890_s},
          .options = options()});
}

TEST_CASE("killed: a server that is gone in mid-run is no pass") {
    const result r = run({.target = started(),
                          .workload = taken(synthetic{.prompt_tokens = fixed(32),
                                                      .output_tokens = fixed(64)}),
                          .arrivals = closed_loop(2),
                          .warmup = 0,
                          .duration = 60_s,
                          .slos = {p90(first_part()) <= 60_s, error_rate <= 5_pct},
                          .limits = {.first_event = 20_s, .between_events = 20_s},
                          .options = options(),
                          .beside = {{.name = "kill",
                                      .steps = {command("touch '" + reported("SERVER_KILL") + "'")},
                                      .first = 10_s}}});
    long long ok = 0;
    for (const record& x : r.requests()) ok += x.status == request_status::ok;
    CHECK(ok > 0);
    for (const slo_verdict& v : r.verdicts()) {
        CAPTURE(v.line());
        CHECK(v.outcome != verdict::pass);
    }
    met("killed", std::to_string(ok) + " were ok until then; " + r.verdicts()[0].line().c_str());
}

// ---- a server that runs

TEST_CASE("running: the health gate passes") {
    gate({.target = server(),
          .workload = taken(synthetic{.prompt_tokens = lognormal(40, 0.4),
                                      .output_tokens = fixed(16)}),
          .arrivals = closed_loop(2),
          .warmup = 8,
          .requests = 40,
          .slos = {p90(ttft) <= 20_s, mean(e2e) <= 60_s, error_rate <= 5_pct},
          .options = options()});
}

TEST_CASE("running: prompts are as long as asked for, answers as long as forced") {
    const result r =
        run(few(taken(synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(24)})));
    all_ok(r);
    for (const record& x : r.requests()) {
        CAPTURE(x.id);
        if (x.prompt_tokens > 0) CHECK(x.prompt_tokens == 64);
        if (is_forced()) CHECK(x.output_tokens == 24);
        else CHECK(x.output_tokens <= 24);
        // Half a letter makes no event, and an end token neither.
        CHECK(x.events <= x.output_tokens);
    }
    const record& first = r.requests()[0];
    met("lengths", "prompt " + std::to_string(first.prompt_tokens) + " of 64, answer " +
                       std::to_string(first.output_tokens) + " of 24 in " +
                       std::to_string(first.events) + " events, by " +
                       to_string(first.token_source));
}

TEST_CASE("scores: the health gate passes") {
    gate({.target = server(),
          .workload = synthetic{.prompt_tokens = lognormal(40, 0.4)},
          .arrivals = closed_loop(2),
          .warmup = 8,
          .requests = 40,
          .slos = {p90(e2e) <= 20_s, error_rate <= 5_pct},
          .options = options()});
}

TEST_CASE("scores: inputs are as long as asked for, where the server counts tokens") {
    scenario s = few(synthetic{.prompt_tokens = fixed(64)});
    s.requests = 40;
    const result r = run(s);
    all_ok(r);
    const bool counts = reported("SERVER_LENGTHS") != "characters";
    int least = r.requests()[0].prompt_tokens, most = least;
    double all = 0;
    for (const record& x : r.requests()) {
        least = std::min(least, x.prompt_tokens);
        most = std::max(most, x.prompt_tokens);
        all += x.prompt_tokens;
    }
    if (counts && server_api() == api_format::openai_embeddings) {
        CHECK(least >= 60);
        CHECK(most <= 68);
    }
    // Of a reranker on the average: a text's first word has no space before it, so that it may be more
    // tokens than elsewhere.
    if (counts) CHECK(all / 64 == doctest::Approx(r.requests().size()).epsilon(0.1));
    if (!counts) CHECK(most == 0);
    CHECK(std::isfinite(r.measured(input_throughput)) == counts);
    met("inputs", counts ? "of 64 tokens counted as " + std::to_string(least) + " to " +
                               std::to_string(most)
                         : "its usage counts characters, which are no tokens of ours");
}

TEST_CASE("whole: an answer in one piece tells its tokens") {
    scenario s = few(taken(synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(16)}));
    s.options.stream = false;
    const result r = run(s);
    for (const record& x : r.requests()) {
        CAPTURE(x.error);
        CHECK(x.status == request_status::ok);
        if (is_forced()) CHECK(x.output_tokens == 16);
        CHECK(x.token_source == token_origin::usage);
    }
}

TEST_CASE("conversations: turns build on the answers before") {
    scenario s = few(taken(conversations{
        .turns = fixed(3), .user_tokens = fixed(16), .output_tokens = fixed(16)}));
    s.arrivals = closed_loop(1);
    s.requests = 6;
    const result r = run(s);
    all_ok(r);
    int longer = 0, later = 0;
    for (const record& x : r.requests()) {
        if (x.turn == 0) continue;
        ++later;
        for (const record& before : r.requests())
            longer += before.conversation == x.conversation && before.turn + 1 == x.turn &&
                      x.prompt_tokens > before.prompt_tokens;
    }
    CHECK(later > 0);
    if (r.requests()[0].prompt_tokens > 0) CHECK(longer == later);
}

TEST_CASE("cache: cached tokens of a shared start are counted") {
    scenario s = few(taken(synthetic{.prompt_tokens = fixed(256), .output_tokens = fixed(4),
                                     .shared_prefix = fixed(192), .prefix_groups = 1,
                                     .prefix_fraction = 100_pct}));
    s.arrivals = closed_loop(1);
    const result r = run(s);
    all_ok(r);
    int cached = 0;
    double all_cached = 0, all = 0;
    for (const record& x : r.requests()) {
        cached = std::max(cached, x.cached_tokens);
        all_cached += x.cached_tokens;
        all += x.prompt_tokens;
    }
    CHECK(cached > 64);
    if (!reported("SERVER_PAGE").empty()) {
        const double by_page = r.measured(prefix_cache_hits);
        CHECK(by_page == doctest::Approx(all_cached / all).epsilon(0.05));
        met("by its page", std::to_string(by_page * 100) + " % of the prompt tokens, by its "
                           "answers " + std::to_string(all_cached / all * 100) + " %");
    }
    met("cache", std::to_string(cached) + " of 256 prompt tokens cached");
}

/// Of a step's prompt what the graph says was sent before, at least and at most: what went before
/// the step in its own line, and the system prompt. A cache may round down to its blocks, and a
/// template adds words of its own.
struct shared_part {
    int least = 0, most = 0;
};
constexpr int system_part = 384, said_part = 128, answer_part = 8, block = 128, around = 24;
shared_part shared_of(const record& x) {
    const int before = x.turn * (said_part + answer_part);
    // Two conversations start at once: neither need find the other's system prompt.
    const bool is_first = x.depth == 0 && x.turn == 0;
    return {is_first ? 0 : system_part + before - answer_part * (x.turn > 0) - block + 1,
            system_part + before + around * (x.turn + 1)};
}

TEST_CASE("cache: helped turns find what their line said before, and no step comes too early") {
    scenario s = few(taken(conversations{.turns = fixed(3),
                                         .user_tokens = fixed(said_part),
                                         .output_tokens = fixed(answer_part),
                                         .system_tokens = fixed(system_part),
                                         .subagents = 100_pct,
                                         .helpers = 2,
                                         .helper_turns = 2}));
    s.requests = 22;  // two conversations of 3 turns, two of which have 2 helpers of 2 turns
    const result r = run(s);
    all_ok(r);
    double all_cached = 0, least = 0, most = 0, all = 0;
    std::map<long long, std::vector<record>> steps_of;
    for (const record& x : r.requests()) {
        CAPTURE(x.turn);
        CAPTURE(x.depth);
        steps_of[x.conversation].push_back(x);
        const shared_part part = shared_of(x);
        CHECK(x.cached_tokens <= part.most);
        // Where each slot has a cache of its own, another's prompt may have taken its place.
        if (reported("SERVER_CACHE") != "slots") CHECK(x.cached_tokens >= part.least);
        all_cached += x.cached_tokens;
        least += part.least > 0 ? part.least + block - 1 : 0;
        most += part.most;
        all += x.prompt_tokens;
    }
    CHECK(steps_of.size() == 2);
    for (auto& [number, steps] : steps_of) {
        CHECK(steps.size() == 11);
        std::map<int, record> own;  // by turn
        for (const record& x : steps)
            if (x.depth == 0) own[x.turn] = x;
        REQUIRE(own.size() == 3);
        for (const record& x : steps) {
            CAPTURE(x.turn);
            CAPTURE(x.depth);
            if (x.depth == 0 && x.turn > 0) CHECK(x.scheduled_ns >= own[x.turn - 1].end_ns);
            if (x.depth == 0) continue;
            // Between the turn that started it and the one that waited for it.
            const int behind = x.scheduled_ns >= own[1].end_ns ? 1 : 0;
            CHECK(x.scheduled_ns >= own[behind].end_ns);
            CHECK(x.end_ns <= own[behind + 1].scheduled_ns);
        }
    }
    const double share = r.measured(of(cached_share, turns(1)));
    CHECK(share == doctest::Approx(all_cached / all).epsilon(0.001));
    if (!reported("SERVER_PAGE").empty()) {
        const double by_page = r.measured(prefix_cache_hits);
        CHECK(by_page == doctest::Approx(all_cached / all).epsilon(0.05));
        met("fan-outs by its page", std::to_string(by_page * 100) + " %");
    }
    met("fan-outs", std::to_string(share * 100) + " % of the prompt tokens cached; shared are " +
                        std::to_string(least / all * 100) + " % without the template's, " +
                        std::to_string(most / all * 100) + " % at most");
}

TEST_CASE("batched: where tokens come in lumps no objective on the time between them passes") {
    scenario s = few(taken(synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(64)}));
    s.requests = 40;
    s.repeats = 2;
    s.slos = {p90(tpot) <= 20_s, p90(itl) <= 20_s};
    const result r = run(s);
    all_ok(r);
    REQUIRE(r.verdicts().size() >= 2);
    for (const std::size_t i : {0, 1}) {
        CAPTURE(r.verdicts()[i].line());
        CHECK(r.verdicts()[i].outcome == verdict::invalid);
    }
    met("batched", r.verdicts()[0].reason.c_str());
}

TEST_CASE("model: a wrong name is told in the server's words") {
    scenario s = one_phrase();
    s.target = endpoint{.url = reported("SERVER_URL"), .model = "no-such-model", .api = server_api()};
    const result r = run(s);
    if (r.requests().size() == 0) return;  // refused before the load, which run.sh looks at
    for (const record& x : r.requests()) {
        CHECK(x.status == request_status::http);
        CHECK(x.http_status >= 400);
        CHECK(!x.error.empty());
    }
    met("wrong model", std::to_string(r.requests()[0].http_status) + " " +
                           r.requests()[0].error.c_str());
}

TEST_CASE("overflow: a prompt that is too long is told in the server's words") {
    const int most = std::atoi(reported("SERVER_CONTEXT").c_str());
    scenario s = few(
        taken(synthetic{.prompt_tokens = fixed(most + 500), .output_tokens = fixed(4)}));
    const result r = run(s);
    for (const record& x : r.requests()) {
        CHECK(x.status != request_status::ok);
        CHECK(!x.error.empty());
    }
    met("overflow", std::to_string(r.requests()[0].http_status) + " " +
                        r.requests()[0].error.c_str());
}

TEST_CASE("key: the right one is taken") {
    all_ok(run(one_phrase()));
}

TEST_CASE("wrong key: it is refused, and told") {
    const result r = run(one_phrase());
    if (r.requests().size() == 0) return;  // refused before the load, which run.sh looks at
    for (const record& x : r.requests()) {
        CHECK(x.status == request_status::http);
        CHECK(x.http_status == std::atoi(reported("SERVER_KEY_REFUSED").c_str()));
        CHECK(!x.error.empty());
    }
    met("wrong key", std::to_string(r.requests()[0].http_status) + " " +
                         r.requests()[0].error.c_str());
}

TEST_CASE("ends: a model that may stop is counted token by token") {
    scenario s = few(prompts({"the way home", "what is new", "search for it", "one more time",
                              "all of us", "no other page", "my news", "how do you do"}));
    s.requests = 16;
    s.options = options({.max_tokens = 48, .temperature = 0.0});
    const result r = run(s);
    int stopped = 0;
    for (const record& x : r.requests()) {
        CAPTURE(x.id);
        CAPTURE(x.error);
        CHECK(x.status == request_status::ok);
        CHECK(x.output_tokens <= 48);
        CHECK(x.events <= x.output_tokens);
        stopped += x.finish_reason == "stop" || x.finish_reason == "eos" ||
                   x.finish_reason == "end_turn";
    }
    CHECK(stopped > 0);
    met("ends", std::to_string(stopped) + " of " + std::to_string(r.requests().size()) +
                    " stopped by themselves");
}

TEST_CASE("reasoning: it is told from the answer that comes after it") {
    scenario s = few(taken(synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(24)}));
    s.repeats = 2;
    s.slos = {p50(time_to_first_answer) <= 60_s, p50(second_token_gap) <= 20_s};
    const result r = run(s);
    all_ok(r);
    int apart = 0;
    for (const record& x : r.requests()) {
        CAPTURE(x.id);
        CHECK(x.first_token_ns <= x.second_token_ns);
        CHECK(x.second_token_ns <= x.first_answer_ns);
        CHECK(x.first_answer_ns <= x.last_token_ns);
        apart += x.first_token_ns < x.second_token_ns && x.second_token_ns < x.first_answer_ns &&
                 x.first_answer_ns < x.last_token_ns;
        if (x.reasoning_tokens >= 0) CHECK(x.reasoning_tokens < x.output_tokens);
    }
    // On the server's own machine some answers are read in one piece.
    CHECK(2 * apart > static_cast<int>(r.requests().size()));
    met("reasoning", "its first token after " + ms(r.measured(mean(ttft))) + ", its answer after " +
                         ms(r.measured(mean(time_to_first_answer))));
}

// ---- its page of metrics

TEST_CASE("page: what it tells can be gated, and agrees with what we sent") {
    const std::string gauges = reported("SERVER_GAUGES");
    // The median, as a busy machine answers few requests in this time.
    gate({.target = server(),
          .workload = generates() ? taken(synthetic{.prompt_tokens = fixed(32),
                                                    .output_tokens = fixed(64)})
                                  : synthetic{.prompt_tokens = fixed(32)},
          .arrivals = closed_loop(2),
          .warmup = 4,
          .duration = 10_s,  // its gauges are read once a second
          .repeats = 2,
          .slos = gauges == "none"     ? slo_list{p50(first_part()) <= 20_s}
                  : gauges == "queued" ? slo_list{p50(first_part()) <= 20_s,
                                                  max(queued_requests) <= 4}
                                       : slo_list{p50(first_part()) <= 20_s,
                                                  max(running_requests) <= 4,
                                                  max(queued_requests) <= 4},
          .options = options()});
}

TEST_CASE("its own times: TTFT and TPOT beside its own") {
    const std::string ttft_sum = reported("SERVER_TTFT"), tpot_sum = reported("SERVER_TPOT"),
                      tpot_count = reported("SERVER_TPOT_COUNT");
    const std::string_view sum = "_sum";
    const std::string ttft_count =
        ttft_sum.ends_with(sum) ? ttft_sum.substr(0, ttft_sum.size() - sum.size()) + "_count" : "";
    const double first_count = ttft_count.empty() ? 0 : on_page(ttft_count);
    const double first = on_page(ttft_sum), each = on_page(tpot_sum), count = on_page(tpot_count);
    scenario s = few(taken(synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(32)}));
    s.arrivals = closed_loop(1);
    s.requests = 40;
    const result r = run(s);
    all_ok(r);
    // By the server's own count where it has one: it may have been asked how it counts tokens.
    const double sent = ttft_count.empty() ? static_cast<double>(r.requests().size())
                                           : on_page(ttft_count) - first_count;
    const double own_ttft = (on_page(ttft_sum) - first) / sent,
                 own_tpot = (on_page(tpot_sum) - each) / (on_page(tpot_count) - count);
    const double ours = r.measured(mean(ttft_from_send)), ours_each = r.measured(mean(tpot));
    met("ttft", ms(ours) + ", its own " + ms(own_ttft));
    met("tpot", ms(ours_each) + ", its own " + ms(own_tpot));
    // Sockets and the server's own threads lie between the two: ours is more, and not by much.
    CHECK(ours >= 0.9 * own_ttft);
    CHECK(ours <= 2 * own_ttft + 0.1);
    CHECK(ours_each >= 0.8 * own_tpot);
    CHECK(ours_each <= 2 * own_tpot + 0.01);
}
