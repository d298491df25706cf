// Several files as the repeats of one gate, and what somebody would try who wants it green.
#include "llmbench.hpp"
#include "core/figures/outcomes.hpp"
#include "core/described/described.hpp"
#include "core/judging/judge.hpp"
#include "program/others/runs_together.hpp"
#include "support/result_files.hpp"
#include "support/timelines.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using namespace result_files;
using timelines::about;

namespace {

std::optional<std::string> fixture_beside(const std::string& path) {
    const std::string bytes = fixture(path);
    if (bytes.empty()) return {};
    return bytes;
}
measured_gate gate_of(const vector<std::string>& files, const slo_list& slos) {
    vector<imported_run> runs;
    for (std::size_t i = 0; i < files.size(); ++i)
        runs.push_back(result_files::only_run(files[i], printed("%c.json", static_cast<char>('a' + i)),
                                         [](const std::string&) { return std::optional<std::string>(); }));
    return gate_of_runs(std::move(runs), slos);
}
measured_gate gate_of_fixtures(const vector<std::string>& names, const slo_list& slos) {
    vector<imported_run> runs;
    for (const std::string& name : names)
        runs.push_back(result_files::only_run(fixture(name), name, fixture_beside));
    return gate_of_runs(std::move(runs), slos);
}
vector<slo_verdict> verdicts_of(const measured_gate& g) {
    return described(analyse(g.seen, g.judged_by).verdicts);
}
slo_verdict verdict_of(const vector<std::string>& files, const slo& s) {
    return verdicts_of(gate_of(files, {s}))[0];
}
std::string vllm_of(int n, unsigned seed, double ttft = 0.05) {
    return vllm_text(run_of(n, seed, ttft));
}
/// Files of several runs.
measured_gate gate_of_appended(const std::string& bytes, const slo_list& slos) {
    return gate_of_runs(read_imported_runs(bytes, "all.jsonl", fixture_beside), slos);
}
/// Why everything is invalid, "" where it is not.
std::string why_invalid(const vector<std::string>& files) {
    for (const slo_verdict& v : verdicts_of(gate_of(files, {p50(ttft) <= 300_ms})))
        if (v.outcome != verdict::invalid) return "";
    return str(verdict_of(files, p50(ttft) <= 300_ms).reason);
}

}  // namespace

TEST_CASE("files are judged as our own repeats are") {
    const slo_list slos = {p50(ttft) <= 300_ms, mean(tpot) <= 10_ms, p90(itl) <= 50_ms,
                           goodput(ttft <= 300_ms) >= 90_pct, output_throughput >= 1_tps};
    const measured_gate g = gate_of({vllm_of(60, 1), vllm_of(60, 2), vllm_of(60, 3)}, slos);
    const vector<slo_verdict> v = verdicts_of(g);
    REQUIRE(v.size() == 6);
    CHECK(v[0].outcome == verdict::pass);
    CHECK(v[0].estimate.value == doctest::Approx(0.05).epsilon(0.05));
    CHECK(v[1].outcome == verdict::fail);
    CHECK(v[2].outcome == verdict::pass);
    CHECK(v[3].outcome == verdict::pass);
    CHECK(v[4].outcome == verdict::pass);
    CHECK(v[5].outcome == verdict::pass);  // the guard on errors
    CHECK(g.target.measured_by == "vLLM bench serve");
    CHECK(g.what.sent->workload_text == "prompts of 32 tokens and answers of 16 on the average");
}

TEST_CASE("the genuine files of each tool are judged") {
    const slo_list slos = {p50(ttft) <= 300_ms, mean(tpot) <= 25_ms, mean(tpot) <= 10_ms};
    for (const char* tool : {"vllm-chat-ok-%d.json", "vllm-0.33-chat-ok-%d.json",
                             "guidellm-ok-%d.json", "aiperf-ok-%d/profile_export.jsonl"}) {
        vector<std::string> names;
        for (int i = 1; i <= 3; ++i) names.push_back(printed(tool, i));
        CAPTURE(tool);
        const vector<slo_verdict> v = verdicts_of(gate_of_fixtures(names, slos));
        CHECK(v[0].outcome == verdict::pass);
        CHECK(v[1].outcome == verdict::pass);
        CHECK(v[2].outcome == verdict::fail);
        CHECK(v.back().outcome == verdict::pass);
    }
}

TEST_CASE("files of one client are read alike: one that tells what its first chunk is tells for all") {
    run_file told = run_of(60, 1), untold = run_of(60, 2), role = run_of(60, 3);
    for (run_file* f : {&told, &untold, &role}) f->backend = "openai-chat";
    for (answer& a : untold.answers) a.gaps.resize(9);  // drafts, or a busy server
    for (answer& a : role.answers) a.gaps.insert(a.gaps.begin(), 0.00001);
    const auto runs_of = [](const vector<std::string>& texts) {
        vector<std::string> names;
        for (std::size_t i = 0; i < texts.size(); ++i) names.push_back(std::to_string(i));
        return read_runs_of(names, [&](const std::string& name) {
            return std::optional<std::string>(texts[*parsed_number<std::size_t>(name)]);
        });
    };
    const auto is_judged = [](const imported_run& run) {
        return !any_of(run.unsupported, [](const unsupported_metrics& u) {
            return any_of(u.of, [](metric_id m) { return m == metric_id::ttft; });
        });
    };
    vector<imported_run> both = runs_of({vllm_text(untold), vllm_text(told)});
    REQUIRE(both.size() == 2);
    CHECK(is_judged(both[0]));
    CHECK(both[0].requests[0].what.events == 10);
    CHECK_FALSE(is_judged(runs_of({vllm_text(untold)})[0]));
    const vector<slo_verdict> v = verdicts_of(
        gate_of_runs(runs_of({vllm_text(told), vllm_text(role)}), {p50(ttft) <= 300_ms}));
    CHECK(str(v[0].reason).find("the first chunk of a chat is the role in 1 and text in 0") !=
          std::string::npos);
}

TEST_CASE("the files of a client that read late are judged by what they show") {
    const vector<std::string> names = {"vllm-0.33-chat-busy-1.json", "vllm-0.33-chat-busy-2.json",
                                       "vllm-0.33-chat-busy-3.json"};
    const vector<slo_verdict> v = verdicts_of(
        gate_of_fixtures(names, {p50(ttft) <= 300_ms, mean(tpot) <= 2_ms, p50(itl) <= 1_ms}));
    CHECK(v[0].outcome != verdict::invalid);
    // Their means are 1.6 ms and the server's were over 3 ms: no pass, by the true cause.
    for (const std::size_t i : {1u, 2u}) {
        CAPTURE(i);
        CHECK(v[i].outcome == verdict::invalid);
        CHECK(str(v[i].reason).starts_with("client: it was late and read "));
    }
    CHECK(v[3].outcome != verdict::invalid);
}

TEST_CASE("a stream that always comes in one piece is its server's or a proxy's, not the client's") {
    const auto text = [](unsigned seed) {
        run_file f = run_of(60, seed);
        for (answer& a : f.answers) a.gaps.assign(15, 0.00001);
        return vllm_text(f);
    };
    const slo_verdict v = verdict_of({text(1), text(2), text(3)}, mean(tpot) <= 1_ms);
    CHECK(v.outcome == verdict::invalid);
    CHECK(str(v.reason).find("a proxy") != std::string::npos);
}

TEST_CASE("what a tool defines otherwise is invalid, with the definition, and no number of it shown") {
    const slo_verdict v = verdict_of({vllm_of(60, 1), vllm_of(60, 2)}, p50(e2e) <= 1_s);
    CHECK(v.outcome == verdict::invalid);
    CHECK(str(v.reason) == "a.json and 1 more: vLLM's bench ends a request at its last chunk with "
                           "choices; e2e ends at [DONE], which the file does not report");
    CHECK(std::isnan(v.estimate.value));
    CHECK(verdict_of({vllm_of(60, 1), vllm_of(60, 2)},
                     goodput(ttft <= 1_s && e2e <= 1_s) >= 90_pct).outcome == verdict::invalid);
}

TEST_CASE("the second token is known where gaps are, and where an answer begins is not") {
    const vector<std::string> files = {vllm_of(60, 1), vllm_of(60, 2), vllm_of(60, 3)};
    CHECK(verdict_of(files, p50(second_token_gap) <= 50_ms).outcome == verdict::pass);
    CHECK(verdict_of(files, p50(second_token_gap) <= 1_ms).outcome == verdict::fail);
    CHECK(reasoning_counts_of(gate_of(files, {p50(ttft) <= 1_s}).seen.candidate).requests == 0);
    CHECK(str(verdict_of(files, p50(time_to_first_answer) <= 1_s).reason) ==
          "a.json and 2 more: it does not separate reasoning from the answer");
    const vector<std::string> guidellm = {"guidellm-ok-1.json", "guidellm-ok-2.json"};
    for (const slo& s : {p50(second_token_gap) <= 1_s, p50(tokens_per_event) >= 0.5}) {
        const slo_verdict v = verdicts_of(gate_of_fixtures(guidellm, {s}))[0];
        CHECK(v.outcome == verdict::invalid);
        CHECK(str(v.reason).find("guidellm keeps no gaps") != std::string::npos);
    }
}

TEST_CASE("one run given several times is one run") {
    const std::string a = vllm_of(60, 1), b = vllm_of(60, 2);
    CHECK(why_invalid({a, a, a}) == "a.json and b.json are the same, byte for byte");
    CHECK(why_invalid({a, b, a}) == "a.json and c.json are the same, byte for byte");
    CHECK(why_invalid({a, a + "\n"}) == "a.json and b.json tell of the same requests");
    run_file later = run_of(60, 1);  // with another date and other starts
    later.date = "20261122-200000";
    for (answer& x : later.answers) x.start += 20000;
    CHECK(why_invalid({a, vllm_text(later)}) == "a.json and b.json tell of the same requests");
    CHECK(why_invalid({a, b}).empty());
    CHECK(str(verdicts_of(gate_of_fixtures({"guidellm-ok-1.json", "guidellm-ok-1.json"},
                                           {p50(ttft) <= 1_s}))[0].reason)
              .find("are the same, byte for byte") != std::string::npos);
    const std::string both = str(verdicts_of(
        gate_of_fixtures({"aiperf-ok-1/profile_export.jsonl",
                          "aiperf-ok-1/profile_export_aiperf.json"},
                         {p50(ttft) <= 1_s}))[0].reason);
    CHECK(both.find("are of one run, ") != std::string::npos);
}

TEST_CASE("a clock that begins with each run does not tell when it was: its date does") {
    const auto of_rust = [](unsigned seed, const std::string& date) {
        run_file f = run_of(60, seed);
        for (answer& a : f.answers) a.start -= 1000.0 * seed;
        f.date = date;
        f.duration = 24;
        return vllm_text(f);
    };
    const std::string a = of_rust(1, "2026-11-22T12:00:24Z"), b = of_rust(2, "2026-11-22T12:00:48Z");
    CHECK(why_invalid({a, b, of_rust(3, "2026-11-22T14:01:12+02:00")}) == "");
    CHECK(why_invalid({a, of_rust(2, "2026-11-22T12:00:40Z")}).find("measured at the same time") != std::string::npos);
    CHECK(why_invalid({a, vllm_of(60, 2)}).find("the tool is vLLM bench serve") != std::string::npos);
}

TEST_CASE("parts of one run, with the counts mended, are no repeats") {
    run_file whole = run_of(90, 1), first = whole, second = whole;
    first.answers.assign(whole.answers.begin(), whole.answers.begin() + 45);
    second.answers.assign(whole.answers.begin() + 45, whole.answers.end());
    second.answers[0].start = first.answers.back().start + 0.1;  // others were in flight
    CHECK(why_invalid({vllm_text(first), vllm_text(second)}) ==
          "a.json and b.json were measured at the same time: they are parts of one run, or two "
          "loads on one server");
}

TEST_CASE("files of different models, rates, tools or traffic are no repeats") {
    const std::string a = vllm_of(60, 1);
    run_file f = run_of(60, 2);
    f.model = "other";
    CHECK(why_invalid({a, vllm_text(f)}) ==
          "the model is other in b.json and m in a.json: repeats are of one tool, model and load");
    f = run_of(60, 2);
    f.rate = "4.0";
    CHECK(why_invalid({a, vllm_text(f)}) == "request_rate is 4 in b.json and inf in a.json: "
                                            "repeats are of one tool, model and load");
    f = run_of(60, 2);
    f.concurrency = "1";
    CHECK(why_invalid({a, vllm_text(f)}).find("max_concurrency is 1 in b.json") == 0);
    f = run_of(60, 2);
    f.backend = "sglang-oai";
    CHECK(why_invalid({a, sglang_text(f)}).find("the tool is SGLang bench_serving") == 0);
    f = run_of(60, 2);
    for (answer& x : f.answers) x.prompt = 8;
    CHECK(why_invalid({a, vllm_text(f)}) == "b.json has tokens in a prompt: 8, a.json 32: repeats "
                                            "are of the same traffic");
    CHECK(why_invalid({a, vllm_text(run_of(60, 2, 0.05, 0.02, 8))})
              .find("b.json has tokens in an answer: 8, a.json 16") == 0);
}

TEST_CASE("files of different settings are no repeats, and the keys that differ are named") {
    const auto vllm_with = [](unsigned seed, const std::string& more) {
        run_file f = run_of(60, seed);
        f.more = more;
        return vllm_text(f);
    };
    // A sweep writes its parameters as they are, --metadata as texts.
    CHECK(why_invalid({vllm_with(1, "\"run_number\": 0, \"max_num_seqs\": 32, "),
                       vllm_with(2, "\"run_number\": 0, \"max_num_seqs\": 64, ")}) ==
          "b.json and a.json differ in max_num_seqs (64 and 32): repeats are of one setting");
    CHECK(why_invalid({vllm_with(1, "\"tp\": \"1\", \"pp\": \"1\", "),
                       vllm_with(2, "\"tp\": \"2\", \"pp\": \"2\", ")}) ==
          "b.json and a.json differ in pp (2 and 1) and tp (2 and 1): repeats are of one setting");
    CHECK(why_invalid({vllm_with(1, "\"gpu_memory_utilization\": 0.9, "), vllm_with(2, "")}) ==
          "b.json and a.json differ in gpu_memory_utilization (none and 0.9): repeats are of one "
          "setting");
    CHECK(why_invalid({vllm_with(1, "\"enforce_eager\": true, "),
                       vllm_with(2, "\"enforce_eager\": false, ")}).find("enforce_eager") !=
          std::string::npos);

    // What each run has of its own does not matter, nor what the tool measured.
    CHECK(why_invalid({vllm_with(1, "\"tp\": \"2\", \"run\": \"1\", \"commit_date\": \"a\", "),
                       vllm_with(2, "\"tp\": \"2\", \"run\": \"2\", \"commit_date\": \"b\", ")})
              .empty());
    CHECK(why_invalid({vllm_with(1, "\"run_number\": 0, \"energy\": 12.34567, \"p95_ttft_ms\": 50, "),
                       vllm_with(2, "\"run_number\": 1, \"energy\": 12.45678, \"p95_ttft_ms\": 51, ")})
              .empty());

    const auto sglang_with = [](unsigned seed, const std::string& info) {
        run_file f = run_of(60, seed);
        f.backend = "sglang-oai";
        std::string text = sglang_text(f);
        const std::string before = "\"server_info\": {";
        return text.insert(text.find(before) + before.size(), info);
    };
    CHECK(why_invalid({sglang_with(1, "\"tp_size\": 1, \"random_seed\": 17, "),
                       sglang_with(2, "\"tp_size\": 2, \"random_seed\": 18, ")}) ==
          "b.json and a.json differ in server_info.tp_size (2 and 1): repeats are of one setting");
    CHECK(why_invalid({sglang_with(1, "\"random_seed\": 17, \"max_total_num_tokens\": 100, "),
                       sglang_with(2, "\"random_seed\": 18, \"max_total_num_tokens\": 101, ")})
              .empty());
}

TEST_CASE("a file whose requests started at half of the rate that it names shows nothing of that rate") {
    const auto at_rate = [](const char* named, double rate) {
        vector<std::string> files;
        for (const unsigned seed : {1u, 2u}) {
            run_file f = run_of(60, seed);
            f.rate = named;
            f.concurrency = "null";
            for (std::size_t i = 0; i < f.answers.size(); ++i)
                f.answers[i].start = 1000.0 * seed + static_cast<double>(i) / rate;
            files.push_back(vllm_text(f));
        }
        return why_invalid(files);
    };
    CHECK(at_rate("8.0", 8).empty());
    CHECK(at_rate("8.0", 6.5).empty());  // sixty random arrivals differ by as much
    CHECK(at_rate("8.0", 4) == "a.json: its start times show 4 requests a second, and it names 8: the "
                               "client did not send the load");
    CHECK(at_rate("\"inf\"", 4).empty());
}

TEST_CASE("files without failures that are counted, or without requests, show nothing") {
    run_file f = run_of(60, 2);
    f.leave_out = 5;
    CHECK(why_invalid({vllm_of(60, 1), vllm_text(f)}).find("requests were left out") !=
          std::string::npos);
    f = run_of(60, 2);
    for (answer& x : f.answers) {
        x.error = "refused";
        x.ttft = 0;
        x.gaps.clear();
    }
    run_file g = run_of(60, 3);
    for (std::size_t i = 0; i < g.answers.size(); ++i) g.answers[i] = f.answers[i];
    for (answer& x : g.answers) x.start += 1000;
    const std::string why = why_invalid({vllm_text(f), vllm_text(g)});
    CHECK(why.find("server: none of 120 requests succeeded (server: refused)") == 0);
    CHECK(why_invalid({vllm_text({}), vllm_text({})}) != "");
    CHECK(verdict_of({vllm_of(60, 1)}, p50(ttft) <= 1_s).outcome == verdict::inconclusive);
}

TEST_CASE("failures in a file are the worst values, and the guard counts them") {
    vector<std::string> files;
    for (unsigned seed = 1; seed <= 3; ++seed) {
        run_file f = run_of(60, seed);
        for (std::size_t i = 0; i < 12; ++i) {
            f.answers[5 * i].error = "timeout";
            f.answers[5 * i].ttft = 0;
            f.answers[5 * i].gaps.clear();
        }
        files.push_back(vllm_text(f));
    }
    const vector<slo_verdict> v = verdicts_of(gate_of(files, {p90(ttft) <= 1_s}));
    CHECK(v[0].outcome != verdict::pass);
    CHECK(v.back().outcome == verdict::fail);
}

TEST_CASE("whole answers at once are no tokens in time, and forced lengths are held") {
    vector<std::string> at_once, broken;
    for (unsigned seed = 1; seed <= 3; ++seed) {
        run_file f = run_of(60, seed);
        for (answer& x : f.answers) x.gaps.assign(x.gaps.size(), 0.000001);
        at_once.push_back(vllm_text(f));
        f = run_of(60, seed);
        for (std::size_t i = 0; i < 6; ++i) {
            f.answers[i].tokens = 4;
            f.answers[i].gaps.resize(3);
        }
        broken.push_back(vllm_text(f));
    }
    CHECK(str(verdict_of(at_once, mean(tpot) <= 1_ms).reason).find("does not stream") !=
          std::string::npos);
    // Whatever came together: the whole answer over its tokens is far under this limit.
    CHECK(verdict_of(at_once, mean(tpot) <= 25_ms).outcome == verdict::pass);
    CHECK(str(verdict_of(broken, mean(tpot) <= 25_ms).reason)
              .find("18 of 180 completed requests brought fewer tokens than forced") !=
          std::string::npos);
}

TEST_CASE("a request that was cut off with its run decides nothing") {
    // As guidellm tells it after --max-seconds: in the list of those that are incomplete.
    const auto cut = [](std::string s) {
        const std::size_t first = s.find("{\"request_id\"");
        const std::size_t second = s.find("{\"request_id\"", first + 1);
        const std::string one = s.substr(first, second - first - 2);
        s.erase(first, second - first);
        const std::string list = "\"incomplete\": [";
        s.insert(s.rfind(list) + list.size(), one);
        s.replace(s.find("\"successful\": 40"), 16, "\"successful\": 39");
        s.replace(s.find("\"incomplete\": 0"), 15, "\"incomplete\": 1");
        return s;
    };
    vector<imported_run> runs;
    for (int i = 1; i <= 3; ++i) {
        const std::string name = printed("guidellm-ok-%d.json", i);
        runs.push_back(result_files::only_run(cut(fixture(name)), name, fixture_beside));
    }
    const measured_gate g = gate_of_runs(
        std::move(runs), {p50(ttft) <= 300_ms, error_rate <= 5_pct, max(ttft) <= 10_s});
    const vector<slo_verdict> v = verdicts_of(g);
    CHECK(v[0].outcome == verdict::pass);     // whatever they would have taken
    CHECK(v[1].estimate.value == 0);
    CHECK(v[2].outcome == verdict::invalid);
    CHECK(str(v[2].reason).find("3 requests had not ended when their run did") != std::string::npos);
}

TEST_CASE("prompts that only some repeats find in the server's cache were seen before") {
    vector<std::string> files;
    for (unsigned seed = 1; seed <= 3; ++seed) {
        run_file f = run_of(60, seed);
        f.backend = "sglang-oai";
        for (answer& a : f.answers) a.prompt = 512;
        std::string cached;
        for (int i = 0; i < 60; ++i) cached += (i ? "," : "") + std::string(seed == 1 ? "0" : "480");
        f.more = "\"cached_tokens\": [" + cached + "], ";
        files.push_back(sglang_text(f));
    }
    CHECK(str(verdict_of(files, p50(ttft) <= 300_ms).reason).find("the prompts were seen before") !=
          std::string::npos);
}

TEST_CASE("all files that are named are evidence, in whatever order") {
    // Four runs meet the limit and one misses it 3.4 times: of the first three alone it passes.
    vector<std::string> files;
    for (unsigned seed = 1; seed <= 5; ++seed) files.push_back(vllm_of(60, seed, seed == 1 ? 0.34 : 0.05));
    for (const slo& s : {p50(ttft) <= 100_ms, goodput(ttft <= 100_ms) >= 75_pct, error_rate <= 5_pct}) {
        CAPTURE(str(s.text()));
        const slo_verdict first = verdict_of(files, s);
        CHECK(first.repeats == 5);
        CHECK((first.outcome == verdict::pass) == (s.statistic.metric == metric_id::error_rate));
        vector<std::string> in_order = files;
        for (std::size_t place = 1; place < files.size(); ++place) {
            std::swap(in_order[place - 1], in_order[place]);
            const slo_verdict v = verdict_of(in_order, s);
            CHECK(v.outcome == first.outcome);
            CHECK(v.repeats == 5);
            CHECK(v.estimate.value == doctest::Approx(first.estimate.value));
            CHECK(v.estimate.high == doctest::Approx(first.estimate.high));
        }
    }
    // Each differs from the one before by a little, and the last from the first by more.
    vector<std::string> growing;
    for (const int prompt : {32, 30, 34}) {
        run_file f = run_of(60, static_cast<unsigned>(prompt));
        for (answer& x : f.answers) x.prompt = prompt;
        growing.push_back(vllm_text(f));
    }
    CHECK(why_invalid(growing) ==
          "c.json has tokens in a prompt: 34, b.json 30: repeats are of the same traffic");
}

TEST_CASE("runs that a tool appended to one file are repeats, as they are in files of their own") {
    std::string all;
    vector<std::string> each;
    for (unsigned seed = 1; seed <= 5; ++seed) {
        each.push_back(vllm_of(200, seed));
        all += each.back() + "\n";
    }
    const slo_list slos = {p50(ttft) <= 300_ms, p90(ttft) <= 10_ms};
    const auto apart = verdicts_of(gate_of(each, slos));
    const auto together = verdicts_of(gate_of_appended(all, slos));
    REQUIRE(together.size() == apart.size());
    CHECK(together[0].outcome == verdict::pass);
    CHECK(together[1].outcome == verdict::fail);
    for (std::size_t i = 0; i < apart.size(); ++i) {
        CHECK(together[i].outcome == apart[i].outcome);
        CHECK(together[i].measured == apart[i].measured);
    }
    CHECK(gate_of_appended(all, slos).seen.candidate.size() == 5);
    // The same run twice is none, and what is wrong is told with the run that it is in.
    const auto twice = verdicts_of(gate_of_appended(each[0] + "\n" + each[0], slos));
    CHECK(twice[0].outcome == verdict::invalid);
    CHECK(str(twice[0].reason) ==
          "all.jsonl, run 1 and all.jsonl, run 2 are the same, byte for byte");
    std::string wrong = each[1];
    wrong.insert(wrong.find("\"ttfts\": [") + 10, "-");
    try {
        gate_of_appended(each[0] + "\n" + wrong, slos);
        FAIL("it is taken");
    } catch (const std::invalid_argument& e) {
        CHECK(std::string(e.what()).find("all.jsonl, run 2: ttfts[0] is -0.0") == 0);
    }
    std::string many;
    for (int i = 0; i < 101; ++i) many += each[0] + "\n";
    try {
        gate_of_appended(many, slos);
        FAIL("it is taken");
    } catch (const std::invalid_argument& e) {
        CHECK(std::string(e.what()) == "all.jsonl: it holds 101 runs, up to 100 are allowed");
    }
}
