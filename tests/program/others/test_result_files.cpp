// What other tools' files tell of each request, and what they do not.
#include "llmbench.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/columns.hpp"
#include "program/others/runs_together.hpp"
#include "support/result_files.hpp"
#include "support/timelines.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using namespace result_files;
using timelines::about;

namespace {

std::optional<std::string> nothing_beside(const std::string&) { return {}; }
imported_run read(const std::string& bytes, const std::string& name = "run.json") {
    return result_files::only_run(bytes, name, nothing_beside);
}
std::optional<std::string> fixture_beside(const std::string& path) {
    const std::string bytes = fixture(path);
    if (bytes.empty()) return {};
    return bytes;
}
/// The sentence that refuses the bytes.
std::string refusal(const std::string& bytes) {
    try {
        read(bytes);
    } catch (const std::invalid_argument& e) { return e.what(); }
    return "";
}
bool lacks(const imported_run& run, metric_id m) {
    for (const unsupported_metrics& u : run.unsupported)
        for (const metric_id id : u.of)
            if (id == m) return true;
    return false;
}
bool lacks_everything(const imported_run& run) {
    for (const unsupported_metrics& u : run.unsupported)
        if (u.of.empty()) return true;
    return false;
}
/// The value of a metric of the only request of a run.
double value_of(imported_run run, metric_id m) {
    const repeat_data d = repeat_of(run, 0);
    return request_value(m, d, 0);
}
std::string replaced(std::string s, const std::string& what, const std::string& by) {
    const std::size_t at = s.find(what);
    REQUIRE(at != std::string::npos);
    return s.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("files that the tools wrote are read as they are") {
    for (const char* name : {"vllm-chat-ok-1.json", "vllm-0.33-chat-ok-1.json",
                             "sglang-chat-ok-1.jsonl", "guidellm-ok-1.json",
                             "aiperf-ok-1/profile_export.jsonl"}) {
        CAPTURE(name);
        imported_run run = result_files::only_run(fixture(name), name, fixture_beside);
        CHECK_FALSE(lacks_everything(run));
        CHECK(run.requests.size() == 40);
        CHECK(run.model == (run.tool == "SGLang bench_serving" ? "" : "tiny"));  // it tells none
        CHECK(run.arrivals.kind == arrival_kind::closed_loop);
        CHECK(run.arrivals.users == 4);
        const repeat_data d = repeat_of(run, 0);
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            CHECK(d.records[i].status == request_status::ok);
            CHECK(d.records[i].output_tokens == 16);
            CHECK(d.records[i].events == 16);
            CHECK(request_value(metric_id::tpot, d, i) > 0.015);
            CHECK(request_value(metric_id::tpot, d, i) < 0.025);
            CHECK(request_value(metric_id::ttft, d, i) > 0.03);
        }
    }
    CHECK(read(fixture("guidellm-ok-1.json")).tool_and_version() == "guidellm 0.8.1");
    const imported_run aiperf = result_files::only_run(fixture("aiperf-ok-1/profile_export_aiperf.json"),
                                                  "aiperf-ok-1/profile_export_aiperf.json", fixture_beside);
    CHECK(aiperf.tool_and_version() == "AIPerf 0.13.0");
    CHECK(aiperf.requests.size() == 40);
    CHECK(read(fixture("vllm-chat-ok-1.json")).tool_and_version() == "vLLM bench serve");
}

TEST_CASE("the tools' own means come out of their requests, where they mean the same") {
    imported_run run = read(fixture("vllm-chat-ok-1.json"));
    CHECK(lacks(run, metric_id::e2e));
    CHECK_FALSE(lacks(run, metric_id::ttft));  // the role came together with the first token
    const repeat_data d = repeat_of(run, 0);
    const auto mean_of_metric = [&](metric_id m) {
        return evaluate(make_statistic(statistic_kind::mean, m, 0), d);
    };
    // It says 58.78 ms; the role came some microseconds earlier.
    CHECK(mean_of_metric(metric_id::ttft) == doctest::Approx(0.05880).epsilon(0.001));
    CHECK(mean_of_metric(metric_id::tpot) == doctest::Approx(0.02007).epsilon(0.001));
    imported_run other = read(fixture("guidellm-ok-1.json"));
    CHECK(lacks(other, metric_id::itl));
    CHECK_FALSE(lacks(other, metric_id::e2e));
    CHECK(value_of(read(fixture("guidellm-ok-1.json")), metric_id::tpot) ==
          doctest::Approx(0.01958767573).epsilon(1e-6));  // its inter_token_latency_ms of the first request
    imported_run aiperf = result_files::only_run(fixture("aiperf-ok-1/profile_export.jsonl"),
                                            "aiperf-ok-1/profile_export.jsonl", fixture_beside);
    CHECK_FALSE(lacks(aiperf, metric_id::itl));
    CHECK_FALSE(lacks(aiperf, metric_id::tpot));  // by usage, not by AIPerf's tokenizer
    CHECK(lacks(aiperf, metric_id::e2e));
}

TEST_CASE("the prompts that SGLang's bench lists are those that it counted") {
    const std::string sound = fixture("sglang-chat-ok-1.jsonl");
    CHECK_FALSE(lacks_everything(read(sound)));
    CHECK_FALSE(lacks_everything(read(fixture("sglang-chat-bad-1.jsonl"))));
    const imported_run run = read(replaced(sound, "\"total_input_tokens\": 640",
                                           "\"total_input_tokens\": 656"));
    REQUIRE(lacks_everything(run));
    CHECK(run.unsupported[0].why.find("says total_input_tokens 656, its lists of requests add up to 640") !=
          std::string::npos);
}

TEST_CASE("a warm-up that guidellm was asked for, and no time that tells of it, is refused") {
    const auto with = [](const std::string& phase, const std::string& name) {
        picojson::value v;
        REQUIRE(parse_json(fixture("guidellm-ok-1.json"), v));
        picojson::object& b = v.get<picojson::object>()["benchmarks"]
                                  .get<picojson::array>()[0].get<picojson::object>();
        picojson::object value;
        value["value"] = picojson::value(0.1);
        b["config"].get<picojson::object>()[phase] = picojson::value(value);
        b["scheduler_metrics"].get<picojson::object>().erase(name);
        return refusal(v.serialize());
    };
    CHECK(with("x", "y") == "");
    CHECK(with("warmup", "measure_start_time") ==
          "run.json: benchmarks[0].scheduler_metrics.measure_start_time is missing, it says which "
          "requests are its warmup");
    CHECK(with("cooldown", "measure_end_time").find("measure_end_time is missing") !=
          std::string::npos);
}

TEST_CASE("failures are failures") {
    imported_run run = read(fixture("vllm-chat-bad-1.json"));
    repeat_data d = repeat_of(run, 0);
    int failed = 0;
    for (const record& r : d.records) failed += r.status != request_status::ok;
    CHECK(failed == 4);
    CHECK(answer_counts_of({d}).too_short == 2);  // told inside of the stream: vLLM's bench counts them as successes
    imported_run sglang_run = read(fixture("sglang-chat-bad-1.jsonl"));
    CHECK(lacks(sglang_run, metric_id::tpot));  // by the length asked for, which two did not bring
    d = repeat_of(sglang_run, 0);
    failed = 0;
    for (const record& r : d.records) failed += r.status == request_status::server;
    CHECK(failed == 4);
    imported_run other = read(fixture("guidellm-bad-1.json"));
    d = repeat_of(other, 0);
    failed = 0;
    for (const record& r : d.records) failed += r.status == request_status::server;
    CHECK(failed == 6);
}

TEST_CASE("a role-only chunk is no token, and where it cannot be told nothing is judged on it") {
    // The stream of the README: role at 5 ms, 33 chunks of 3 tokens from 200 ms on, a finish chunk.
    run_file f;
    f.backend = "openai-chat";
    answer a;
    a.ttft = 0.005;
    a.gaps.assign(34, 0.030);
    a.gaps[0] = 0.195;
    a.tokens = 100;
    f.answers = {a};
    CHECK(lacks(read(vllm_text(f)), metric_id::ttft));
    CHECK(lacks(read(vllm_text(f)), metric_id::tpot));
    CHECK(lacks(read(vllm_text(f)), metric_id::output_throughput));
    CHECK_FALSE(lacks(read(vllm_text(f)), metric_id::error_rate));

    // The same over /v1/completions.
    f.backend = "openai";
    f.answers[0].ttft = 0.200;
    f.answers[0].gaps.assign(32, 0.030);
    CHECK_FALSE(lacks(read(vllm_text(f)), metric_id::ttft));
    CHECK(value_of(read(vllm_text(f)), metric_id::ttft) == about(0.200));
    CHECK(value_of(read(vllm_text(f)), metric_id::tpot) == about(0.960 / 99));
    CHECK(lacks(read(vllm_text(f)), metric_id::e2e));

    // One more chunk than tokens, long after the others.
    f.answers[0].tokens = 33;
    f.answers[0].gaps.push_back(0.030);
    CHECK(lacks(read(vllm_text(f)), metric_id::tpot));
    f.answers[0].gaps.back() = 0.00001;  // at once behind the last token: why the answer ended
    CHECK_FALSE(lacks(read(vllm_text(f)), metric_id::tpot));
    CHECK(value_of(read(vllm_text(f)), metric_id::tpot) == about(0.030));
    f.backend = "openai-audio";
    CHECK(lacks(read(vllm_text(f)), metric_id::ttft));
}

TEST_CASE("a chat whose first chunk is its first token is read so, as vLLM 0.33 writes it") {
    run_file f = run_of(40, 1);
    f.backend = "openai-chat";
    const imported_run run = read(vllm_text(f));
    CHECK_FALSE(lacks(run, metric_id::ttft));
    CHECK_FALSE(lacks(run, metric_id::tpot));
    CHECK(run.requests[0].what.events == 16);
    CHECK(value_of(run, metric_id::ttft) == doctest::Approx(f.answers[0].ttft));
    CHECK(run.notes[0].find("as vLLM 0.33 writes them") != std::string::npos);
    CHECK_FALSE(lacks(read(fixture("vllm-0.33-chat-ok-1.json")), metric_id::itl));
    CHECK(read(fixture("vllm-chat-ok-1.json")).notes.size() == 1);

    SUBCASE("also if its client read the first two tokens together") {
        for (answer& a : f.answers) a.gaps[0] = 0.00001;
        const imported_run late = read(vllm_text(f));
        CHECK(late.requests[0].what.events == 16);
        CHECK(late.requests[0].what.first_read_events == 2);
    }
    SUBCASE("also if the second token takes longer than the others") {
        for (answer& a : f.answers) a.gaps[0] = 0.050;
        const imported_run slow = read(vllm_text(f));
        CHECK_FALSE(lacks(slow, metric_id::ttft));
        CHECK(value_of(slow, metric_id::ttft) == doctest::Approx(f.answers[0].ttft));
    }
    SUBCASE("also where some answers have tokens that came in one chunk") {
        for (std::size_t i = 0; i < 19; ++i) f.answers[i].gaps.resize(9);
        CHECK_FALSE(lacks(read(vllm_text(f)), metric_id::ttft));
    }
    SUBCASE("also where the token that ends the answer has no text") {
        for (answer& a : f.answers) a.gaps.pop_back();
        CHECK_FALSE(lacks(read(vllm_text(f)), metric_id::ttft));
    }
    SUBCASE("a role that comes a gap before the first token, where each event is a token, is not") {
        for (answer& a : f.answers) a.gaps.push_back(0.020);
        CHECK(lacks(read(vllm_text(f)), metric_id::ttft));
    }
    SUBCASE("and where most answers have far fewer chunks than tokens, it is not told") {
        for (std::size_t i = 0; i < 21; ++i) f.answers[i].gaps.resize(9);
        const imported_run untold = read(vllm_text(f));
        CHECK(lacks(untold, metric_id::ttft));
        CHECK(untold.has_untold_chunks);
    }
}

TEST_CASE("a client that read late is told by what it wrote, and not as another version") {
    for (int i = 1; i <= 3; ++i) {
        const std::string name = printed("vllm-0.33-chat-busy-%d.json", i);
        CAPTURE(name);
        const imported_run run = read(fixture(name));
        CHECK(run.requests.size() == 60);
        CHECK_FALSE(lacks(run, metric_id::ttft));
        CHECK_FALSE(lacks(run, metric_id::tpot));
        for (const std::string& note : run.notes)
            CHECK(note.find("before 0.33") == std::string::npos);
        // 54, 55 and 49 % of its gaps are of one read.
        CHECK(any_of(run.notes, [](const std::string& note) {
            return note.find("its client was late") != std::string::npos;
        }));
    }
    CHECK_FALSE(any_of(read(fixture("vllm-chat-ok-1.json")).notes, [](const std::string& note) {
        return note.find("late") != std::string::npos;
    }));
}

TEST_CASE("vLLM's client in Rust takes chunks for tokens where a server reports no usage") {
    run_file f = run_of(40, 1);
    f.date = "2026-11-22T12:00:00Z";
    f.answers[3].error = "refused";
    for (const char* backend : {"openai", "openai-chat"}) {
        f.backend = backend;
        f.bytes_of_token = 4;
        imported_run run = read(vllm_text(f));
        CHECK(run.tool == "vLLM bench serve (Rust)");
        CHECK(run.requests[0].what.token_source == token_origin::events);
        CHECK(run.requests[0].what.output_tokens == 16);
        CHECK_FALSE(lacks(run, metric_id::tpot));
        CHECK_FALSE(run.clock.is_reported());  // it begins with each run
        CHECK(run.calendar.is_reported());
        CHECK(std::any_of(run.notes.begin(), run.notes.end(), [](const std::string& note) {
            return note.find("a token is a chunk there") != std::string::npos;
        }));
        f.bytes_of_token = 40;  // ten tokens a chunk
        run = read(vllm_text(f));
        for (const metric_id m : {metric_id::tpot, metric_id::output_throughput}) CHECK(lacks(run, m));
        CHECK_FALSE(lacks(run, metric_id::ttft));
        f.answers[5].tokens = 160;  // of usage, so all lengths are
        run = read(vllm_text(f));
        CHECK_FALSE(lacks(run, metric_id::tpot));
        CHECK(run.requests[0].what.token_source == token_origin::usage);
        f.answers[5].tokens = 16;
    }
    f.date = "20261122-120000";  // the one in Python counts them with a tokenizer
    CHECK(read(vllm_text(f)).requests[0].what.token_source == token_origin::usage);
}

TEST_CASE("an error is a failure whatever its shape, or is refused by its name") {
    run_file f = run_of(3, 1);
    f.answers[1].error = "PLACE";
    const auto with = [&](const std::string& error) { return replaced(vllm_text(f), "\"PLACE\"", error); };
    for (const auto& [shape, words] : {std::pair{R"({"code":500,"message":"out of memory"})", "out of memory"},
                                       std::pair{R"({"code":500})", R"({"code":500})"}, std::pair{R"("late")", "late"}}) {
        const imported_run run = read(with(shape));
        CHECK(run.requests[1].what.status == request_status::server);
        CHECK(run.requests[1].what.error == words);
    }
    CHECK(refusal(with("7")) == "run.json: errors[1] is 7, a text, or an object with a message, is allowed");
    CHECK(refusal(with("[]")) == "run.json: errors[1] is a list, a text, or an object with a message, is allowed");
    CHECK(lacks_everything(read(with("null"))));  // then it is no failure, and one is counted
}

TEST_CASE("what vLLM perf-eval makes from several runs is none of them") {
    run_file f = run_of(20, 1);
    f.more = "\"aggregation_method\": \"median\", \"aggregated_repetitions\": 3, "
             "\"individual_result_files\": [\"bench-a-run-1.json\"], ";
    CHECK(lacks_everything(read(vllm_text(f))));
    CHECK(read(vllm_text(f)).unsupported[0].why ==
          "it is made from several runs, and is none: judge the files that its "
          "individual_result_files names");
}

TEST_CASE("waiting for a place counts where sends were planned, and where nobody tells it") {
    run_file f = run_of(3, 1);
    f.answers[1].waited = 0.5;
    f.rate = "8.0";
    imported_run run = read(vllm_text(f));
    CHECK(run.arrivals.max_in_flight == 4);
    const repeat_data d = repeat_of(run, 0);
    double longest = 0;
    for (std::size_t i = 0; i < 3; ++i)
        longest = std::max(longest, request_value(metric_id::ttft, d, i));
    CHECK(longest > 0.5);
    f.with_queues = false;
    CHECK(lacks(read(vllm_text(f)), metric_id::ttft));
    CHECK_FALSE(lacks(read(vllm_text(f)), metric_id::ttft_from_send));
    f.concurrency = "null";
    CHECK_FALSE(lacks(read(vllm_text(f)), metric_id::ttft));
    f.rate = "\"inf\"";
    CHECK(read(vllm_text(f)).arrivals.kind == arrival_kind::all_at_once);
}

TEST_CASE("what SGLang's bench leaves out is judged by nobody") {
    run_file f = run_of(20, 1);
    f.backend = "sglang-oai-chat";
    f.rate = "Infinity";
    const imported_run run = read(sglang_text(f), "run.jsonl");
    CHECK(run.tool_and_version() == "SGLang bench_serving (server 0.5.23)");
    CHECK(lacks(run, metric_id::e2e));
    CHECK(lacks(run, metric_id::output_throughput));
    CHECK_FALSE(lacks(run, metric_id::ttft));
    CHECK_FALSE(lacks(run, metric_id::itl));
    CHECK_FALSE(lacks(run, metric_id::tpot));
    for (answer& a : f.answers) a.tokens = 128;  // asked for, where the server tells none
    CHECK(lacks(read(sglang_text(f)), metric_id::tpot));
    CHECK_FALSE(lacks(read(sglang_text(f)), metric_id::ttft));
    f = run_of(20, 1);
    f.backend = "sglang";
    CHECK(lacks(read(sglang_text(f)), metric_id::itl));
    CHECK_FALSE(lacks(read(sglang_text(f)), metric_id::tpot));
    f.rate = "4.0";
    CHECK(lacks(read(sglang_text(f)), metric_id::ttft));
    f.answers[0].error = "Internal Server Error: out of memory";
    f.answers[1].ttft = 0;  // no text at all is a success there
    f.answers[1].gaps.clear();
    imported_run some = read(sglang_text(f));
    CHECK_FALSE(lacks_everything(some));
    const repeat_data d = repeat_of(some, 0);
    CHECK(d.records[0].status == request_status::server);
    CHECK(str(d.records[0].error) == "Internal Server Error: out of memory");
    CHECK(d.records[1].status == request_status::empty);
}

TEST_CASE("aggregates alone, and lists that are not what is counted, support nothing") {
    run_file f = run_of(20, 1);
    f.with_details = f.with_queues = false;
    CHECK(lacks_everything(read(vllm_text(f))));
    CHECK(read(vllm_text(f)).unsupported[0].why == "it holds aggregates alone, and a verdict needs every "
                                         "request: --save-result --save-detailed writes them");
    CHECK(lacks_everything(read(sglang_text(f))));
    f = run_of(20, 1);
    f.leave_out = 3;
    CHECK(read(vllm_text(f)).unsupported[0].why == "it says completed 20, its lists of requests add up to "
                                         "17: requests were left out, or changed");
    CHECK(lacks_everything(read(sglang_text(f))));
    f = run_of(20, 1);
    CHECK(lacks_everything(read(replaced(vllm_text(f), "\"total_output_tokens\": 320",
                                         "\"total_output_tokens\": 640"))));
    std::string some = fixture("guidellm-ok-1.json");
    CHECK(lacks_everything(read(replaced(some, "\"successful\": 40", "\"successful\": 41"))));
    const std::string lines = fixture("aiperf-ok-1/profile_export.jsonl");
    CHECK(lacks_everything(read(lines, "profile_export.jsonl")));  // no summary beside it
    const std::string fewer = lines.substr(lines.find('\n') + 1);
    CHECK(lacks_everything(
        result_files::only_run(fewer, "aiperf-ok-1/profile_export.jsonl", fixture_beside)));
    CHECK(lacks_everything(read(fixture("aiperf-ok-1/profile_export_aiperf.json"))));
}

TEST_CASE("files that are none of one run of generated text say what they are") {
    run_file f = run_of(20, 1);
    f.backend = "openai-embeddings";
    std::string text = vllm_text(f);
    for (const char* list : {"\"ttfts\": ", "\"itls\": ", "\"output_lens\": "})
        text = replaced(text, list, "\"no " + std::string(list).substr(1));
    CHECK(read(text).unsupported[0].why ==
          "its backend, openai-embeddings, generates nothing, so its requests have no times of "
          "tokens: `llmbench run --api openai_embeddings` (rerank, score) measures such servers");

    // A sweep's summary.json is a list of its runs.
    const auto nothing = [](const std::string&) { return std::optional<std::string>(); };
    const std::string list = "[" + vllm_text(run_of(20, 1)) + ", " + vllm_text(run_of(20, 2)) + "]";
    const vector<imported_run> runs = read_imported_runs(list, "summary.json", nothing);
    REQUIRE(runs.size() == 2);
    CHECK(runs[1].file == "summary.json, run 2");
    CHECK(runs[1].requests.size() == 20);

    const std::string of_several = "it holds aggregates of several runs of AIPerf, and a verdict "
                                   "needs every request: name the profile_export.jsonl of each run";
    const std::string one = fixture("aiperf-ok-1/profile_export_aiperf.json");
    CHECK(refusal("[" + one + ", " + one + "]") == "run.json: " + of_several);
    CHECK(refusal(R"({"schema_version": "1.0.0", "combined": {}, "per_run": []})") ==
          "run.json: " + of_several);
    CHECK(refusal(R"({"schema_version": "1.0", "metadata": {"aggregation_type": "confidence"}})") ==
          "run.json: " + of_several);
}

TEST_CASE("what AIPerf says against its own run is told, and prompts over the context are failures") {
    const std::string name = "aiperf-ok-1/profile_export.jsonl";
    const auto with = [&](const std::string& more) {
        return [=](const std::string& path) {
            std::string bytes = fixture(path);
            return std::optional(bytes.replace(bytes.find('{'), 1, "{" + more));
        };
    };
    const auto failures = [](const imported_run& run) {
        std::size_t n = 0;
        for (const imported_request& r : run.requests) n += r.what.status == request_status::server;
        return n;
    };
    const std::string invalid = "\"submission_valid\": false, \"context_overflow_count\": 6, "
                                "\"runtime_submission_invalid_reasons\": "
                                "[\"context_overflow_rate_exceeded\"],";
    const imported_run run = only_run(fixture(name), name, with(invalid));
    CHECK_FALSE(lacks_everything(run));
    CHECK(run.requests.size() == 46);
    CHECK(failures(run) == 6);
    CHECK(str(run.requests.back().what.error).find("longer than its context") != std::string::npos);
    CHECK(any_of(run.notes, [](const std::string& note) {
        return note.find("not valid for a submission: context_overflow_rate_exceeded") !=
               std::string::npos;
    }));

    // As a metric, and as records of their own.
    const auto block = with("\"context_overflow_count\": {\"unit\": \"requests\", \"avg\": 6.0},");
    CHECK(failures(only_run(fixture(name), name, block)) == 6);
    const std::string record = replaced(fixture(name), "\"context_overflow_skip\": false",
                                        "\"context_overflow_skip\": true");
    CHECK(failures(only_run(record, name, with("\"context_overflow_count\": 6,"))) == 6);
    CHECK(failures(only_run(fixture(name), name, with("\"submission_valid\": true,"))) == 0);
    CHECK_THROWS_WITH(only_run(fixture(name), name, with("\"context_overflow_count\": 1e12,")),
                      doctest::Contains("context_overflow_count"));
}

TEST_CASE("what is no result file, or no time, is refused in one sentence") {
    const std::string good = vllm_text(run_of(2, 1));
    CHECK(refusal("") == "run.json: it is empty");
    CHECK(refusal("[1]") == "run.json: it is a list, the result file of a tool is a JSON object");
    CHECK(refusal(good.substr(0, good.size() / 2)) ==
          "run.json: it ends inside of its JSON value 1: the file is cut off");
    CHECK(refusal("{\"a\": 1}").find("no tool that is known wrote it") != std::string::npos);
    CHECK(refusal("{\"schema\": \"llmbench/result/1\"}").find("judge() reads") !=
          std::string::npos);
    CHECK(refusal(good + "\n{\"a\": 1}").find("run.json, run 2: no tool that is known wrote it") == 0);
    CHECK(refusal(good + "\n[]").find("run.json: it is a list") == 0);
    CHECK(refusal("\x89PNG\r\n") == "run.json: it is not JSON: \xEF\xBF\xBDPNG\\r\\n");
    CHECK(refusal(std::string(300, '[')) == "run.json: its JSON nests deeper than 100 levels");
    const auto with_ttft = [&](const std::string& value) {
        std::string s = good;
        const std::size_t at = s.find("\"ttfts\": [") + 10;
        return s.replace(at, s.find(',', at) - at, value);
    };
    const std::string allowed = ", a time in seconds from 0 to 10000000 is allowed";
    CHECK(refusal(with_ttft("NaN")) == "run.json: ttfts[0] is \"NaN\"" + allowed);
    CHECK(refusal(with_ttft("-0.5")) == "run.json: ttfts[0] is -0.5" + allowed);
    CHECK(refusal(with_ttft("-Infinity")) == "run.json: ttfts[0] is \"-Infinity\"" + allowed);
    CHECK(refusal(with_ttft("1e300")) == "run.json: ttfts[0] is 1e+300" + allowed);
    CHECK(refusal(with_ttft("null")) == "run.json: ttfts[0] is null" + allowed);
    CHECK(refusal(with_ttft("1e999")) == "run.json: it has a number that no double holds");
    CHECK(refusal(with_ttft("0.1, 0.1")) ==
          "run.json: input_lens holds 2 values and ttfts 3, one for each request is allowed");
    CHECK(refusal(replaced(good, "\"output_lens\": [16", "\"output_lens\": [1.5")) ==
          "run.json: output_lens[0] is 1.5, a whole number is allowed");
    CHECK(refusal(replaced(good, "\"itls\": [[", "\"itls\": [[-1, ")) ==
          "run.json: itls[0][0] is -1" + allowed);
    CHECK(refusal(replaced(good, "\"errors\"", "\"other\"")) ==
          "run.json: errors is missing, a list with one value for each request beside ttfts");
    const std::string guide = fixture("guidellm-ok-1.json");
    CHECK(refusal(replaced(guide, "\"version\": 2", "\"version\": 1")) ==
          "run.json: metadata.version is 1, 2 is allowed (guidellm 0.8): run a newer guidellm");
    const std::size_t at = guide.find("\"request_end\": ") + 15;
    std::string early = guide;
    early.replace(at, 5, "10000");
    CHECK(refusal(early) == "run.json: benchmarks[0].requests.successful[0].request_end lies before "
                            "request_start, times of a request are in order");
}

TEST_CASE("others' words stay words") {
    run_file f = run_of(3, 1);
    f.answers[0].error = "Traceback:\n  File \"x.py\"\nValueError: \x1b[31m::error::no\n";
    imported_run run = read(vllm_text(f));
    CHECK(str(run.requests[0].what.error) == "ValueError: \\x1b[31m::error::no");
    f.model = "\\ud800m\\ud83d\\ude00";
    CHECK(read(vllm_text(f)).model == "\xEF\xBF\xBDm\xF0\x9F\x98\x80");
}
