// Questions whose answers are known: right, wrong, unreadable, cut off and failed ones, alone and
// under load, against a baseline, in the reports and judged again from the records.
#include "virtual/sums.hpp"
#include "llmbench_embeddings.hpp"
#include "llmbench_history.hpp"

#include <map>
#include <set>
#include <string>

using namespace llmbench;
using namespace live;

TEST_CASE("a server that answers rightly passes, with each question asked once a repeat") {
    const sums file(60);
    const scenario s = asking(file, knowing(), "right answers");
    const heard_run heard = heard_of(s);
    const result& r = heard.result;
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    CHECK(r.measured(accuracy) == 1);
    for (const int repeat : repeats_of(r)) {
        std::set<long long> asked;
        for (const record& q : measured_of(r, repeat)) {
            REQUIRE((q.right && *q.right));
            REQUIRE_FALSE(q.graded.empty());
            asked.insert(q.conversation % 60);
        }
        CHECK(asked.size() == 60);
        CHECK(measured_of(r, repeat).size() == 60);
    }
    CHECK(holds(line_of(r), "0 wrong"));
    CHECK(holds(heard.said, "60 questions of sums.jsonl (gsm8k, graded by last_number)"));
    for (const char* file_name : {"result.json", "summary.md", "report.html", "junit.xml"})
        CHECK(holds(content_of(report_file(file_name)), "accuracy"));
    check_rejudged(r, s.slos);
}

TEST_CASE("a server that answers a third wrongly fails, from the third repeat on") {
    const sums file(60);
    const scenario s = asking(file, knowing(33_pct), "wrong answers");
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::fail);
    CHECK(repeats_of(r).size() == 3);
    CHECK(holds(line_of(r), " wrong"));
    CHECK(holds(std::string(r.verdicts()[0].explain()), "questions_flipping = 0\n"));
    check_rejudged(r, s.slos);
}

TEST_CASE("answers that are wrong for another reason than their number are told apart") {
    struct way {
        const char *name, *question;
        fraction reasoning;
        int max_tokens;
        const char* told;  // "" for a pass
    };
    const char* const sum = "What is %d + %d ?";
    for (const way& w : {way{"unreadable", "How much are %d and %d together?", 0_pct, 400,
                             "120 wrong: 120 unreadable"},
                         way{"cut off", sum, 0_pct, 8, "120 wrong: 120 cut off"},
                         way{"only thinks", sum, 100_pct, 0, "120 unreadable"},
                         way{"thinks first", sum, 50_pct, 0, ""}}) {
        CAPTURE(w.name);
        const sums file(40, w.question);
        engine e = knowing();
        e.reasoning = w.reasoning;
        scenario s = asking(file, e, w.name);
        if (w.max_tokens > 0) s.options.max_tokens = w.max_tokens;
        const result r = run(s);
        CHECK(r.verdicts()[0].outcome == (*w.told ? verdict::fail : verdict::pass));
        CHECK(holds(line_of(r), w.told));
        check_rejudged(r, s.slos);
    }
}

TEST_CASE("a failed request is a wrong answer") {
    const sums file(60);
    engine e = knowing();
    e.faults.error_rate = 40_pct;
    scenario s = asking(file, e, "failed");
    s.slos = {accuracy >= 90_pct, error_rate <= 80_pct};
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::fail);
    int failed = 0;
    for (const record& q : r.requests())
        if (q.phase == run_phase::measure && q.status != request_status::ok) {
            ++failed;
            REQUIRE((q.right && !*q.right));
        }
    CHECK(failed > 0);
    CHECK(holds(line_of(r), " failed"));
    check_rejudged(r, s.slos);
}

TEST_CASE("a server that answers rightly alone and wrongly under load passes alone") {
    const sums file(60);
    engine e = knowing();
    e.faults.wrong_in_batch = 50_pct;
    scenario s = asking(file, e, "alone");
    s.arrivals = closed_loop(1);
    CHECK(run(s).verdicts()[0].outcome == verdict::pass);
    s.name = "in a batch";
    s.arrivals = closed_loop(8);
    CHECK(run(s).verdicts()[0].outcome == verdict::fail);
}

TEST_CASE("answers are compared in pairs, in turns and at once, and again from the files") {
    const sums file(240);
    for (const bool is_at_once : {false, true}) {
        CAPTURE(is_at_once);
        scenario s = asking(file, knowing(10_pct), is_at_once ? "pairs at once" : "pairs in turns");
        s.baseline = simulated(knowing(10_pct));
        s.slos = {accuracy >= baseline - 3_pct};
        if (is_at_once) {
            s.pairs = at_once;
            s.arrivals = constant(3_rps);
        }
        const result same = run(s);
        CHECK(same.verdicts()[0].outcome == verdict::pass);  // all of them differ in no question
        CHECK(holds(line_of(same), "measured 0 % (9"));
        check_rejudged(same, s.slos);
        s.target = simulated(knowing(25_pct));
        CHECK(run(s).verdicts()[0].outcome == verdict::fail);
    }
}

TEST_CASE("the same questions many times in a load are no larger sample than once") {
    const sums few(20);
    for (const bool is_at_once : {false, true}) {
        CAPTURE(is_at_once);
        for (const bool is_mix : {false, true}) {
            CAPTURE(is_mix);
            const std::string name = std::string(is_at_once ? "twenty questions at once"
                                                            : "twenty questions in turns") +
                                     (is_mix ? ", in a mix" : "");
            scenario s = asking(few, knowing(), name.c_str());
            s.baseline = simulated(knowing());
            s.slos = {accuracy >= baseline - 1_pct};
            s.arrivals = constant(10_rps);
            s.duration = 40_s;
            if (is_at_once) s.pairs = at_once;
            if (is_mix)
                s.workload = mix({{.name = "load", .workload = synthetic{.prompt_tokens = fixed(20),
                                                                         .output_tokens = fixed(4)}},
                                  {.name = "sums", .weight = 3,
                                   .workload = questions{.path = few.path, .format = gsm8k}}});
            const result r = run(s);
            const slo_verdict v = r.verdicts()[0];
            INFO(line_of(r));
            CHECK(v.outcome == verdict::inconclusive);
            CHECK(v.measured == 0);
            CHECK(v.estimate.low < -0.04);
            std::set<long long> asked;
            for (const record& q : measured_of(r, 0))
                if (q.right) asked.insert(q.question);
                else CHECK(q.question == -1);
            CHECK(asked.size() == 20);
            check_rejudged(r, s.slos);
        }
    }
}

TEST_CASE("questions of two parts of a mix are not each other's") {
    const sums few(20), other(20, "How many are %d + %d ?");
    scenario s = asking(few, knowing(), "two files of questions");
    s.workload = mix({{.name = "first", .workload = questions{.path = few.path, .format = gsm8k}},
                      {.name = "second", .workload = questions{.path = other.path, .format = gsm8k}}});
    s.requests = 120;
    const result r = run(s);
    std::map<long long, std::set<int>> parts;
    for (const record& q : measured_of(r, 0)) parts[q.question].insert(q.part);
    CHECK(parts.size() == 40);
    for (const auto& [question, of] : parts) CHECK(of.size() == 1);
}

TEST_CASE("a part of a mix asks its questions in turn, and only their answers are graded") {
    const sums file(20);
    scenario s = asking(file, knowing(), "questions beside a load");
    s.workload = mix({{.name = "load", .workload = synthetic{.prompt_tokens = fixed(20),
                                                             .output_tokens = fixed(4)}},
                      {.name = "sums", .weight = 3,
                       .workload = questions{.path = file.path, .format = gsm8k}}});
    s.requests = 80;
    s.slos = {accuracy >= 80_pct, of(accuracy, "sums") >= 80_pct};
    const heard_run heard = heard_of(s);
    const result& r = heard.result;
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    CHECK(r.verdicts()[1].outcome == verdict::pass);
    std::map<std::string, int> asked;
    for (const record& q : measured_of(r, 0)) {
        REQUIRE(static_cast<bool>(q.right) == (q.part == 1));
        if (q.right) ++asked[std::string(q.graded)];
    }
    CHECK(asked.size() == 20);
    for (const auto& [sum, times] : asked) CHECK(times == 3);
    CHECK(holds(texts::unwrapped(heard.said),
                "\"sums\" (3 in 4): 20 questions of sums.jsonl (gsm8k, graded by last_number)"));
    check_rejudged(r, s.slos);
    s.name = "wrong answers beside a load";
    s.target = simulated(knowing(50_pct));
    CHECK(run(s).verdicts()[0].outcome == verdict::fail);
}

TEST_CASE("what a gate with questions cannot be is refused before its load") {
    const sums file(40);
    const scenario good = asking(file, knowing(), "refused");
    const auto refused = [&](const char* sentence, auto&& change) {
        scenario s = good;
        change(s);
        const std::string why = refusal_of(s);
        INFO(why);
        CHECK(holds(why, sentence));
    };
    refused("workload is not questions{...}", [](scenario& s) {
        s.workload = synthetic{};
        s.requests = 40;
    });
    refused("options.ignore_eos is set, and workload is questions",
            [](scenario& s) { s.options.ignore_eos = true; });
    refused("asks for several choices (n)",
            [](scenario& s) { s.options.extra_body = "{\"n\": 2}"; });
    refused("openai_embeddings generates nothing to answer them", [](scenario& s) {
        s.target = endpoint{.url = "http://127.0.0.1:9", .model = "m", .api = openai_embeddings};
    });
    refused("requests is 41 and there are 40 questions", [](scenario& s) { s.requests = 41; });
    refused("workload.path is empty", [](scenario& s) { s.workload = questions{}; });
    refused("workload.max_items is 0",
            [&](scenario& s) { s.workload = questions{.path = file.path, .max_items = 0}; });
    refused("accuracy needs at least 60 measured requests a repeat so that three may be wrong, and the "
            "scenario has 40", [](scenario& s) { s.slos = {accuracy >= 95_pct}; });
    refused("has no baseline", [](scenario& s) { s.slos = {accuracy >= 0.98 * baseline}; });
    const questions asked{.path = file.path, .format = gsm8k};
    const any_workload beside = mix({{.name = "load"}, {.name = "sums", .workload = asked}});
    refused("part \"sums\" of the mix: workload is questions, and openai_embeddings generates",
            [&](scenario& s) {
                s.workload = beside;
                s.requests = 40;
                s.target = endpoint{.url = "http://127.0.0.1:9", .model = "m", .api = openai_embeddings};
            });
    refused("workload is not questions{...}", [](scenario& s) {
        s.workload = mix({{.name = "a"}, {.name = "b"}});
        s.requests = 40;
    });
    write(file.path, "{\"question\": \"a\"}\n");
    refused("sums.jsonl:1: answer is missing or empty", [](scenario&) {});
}

TEST_CASE("accuracy is held against an earlier run's, which is another day's") {
    const sums file(100);
    const std::string kept = file.directory.file("kept.json");
    scenario s = asking(file, knowing(5_pct), "an earlier run");
    s.baseline = stored(kept.c_str());
    s.slos = {accuracy >= 0.95 * baseline};
    {
        const variable writing("LLMBENCH_WRITE_BASELINE", "1");
        run(s);
    }
    const result same = run(s);
    CHECK(same.verdicts()[0].outcome == verdict::pass);
    check_rejudged(same, s.slos);
    s.target = simulated(knowing(30_pct));
    const result worse = run(s);
    CHECK(worse.verdicts()[0].outcome == verdict::fail);
    CHECK(holds(line_of(worse), " wrong"));
}

TEST_CASE("runs of main keep what was right, and a run is held against them") {
    const sums file(60);
    const std::string folder = file.directory.file("nights");
    const variable where("LLMBENCH_HISTORY_DIR", folder);
    const variable machine("LLMBENCH_MACHINE", "bench");
    scenario s = asking(file, knowing(5_pct), "sums of a night");
    s.baseline = history();
    s.slos = {accuracy >= 0.9 * baseline};
    {
        const variable appends("LLMBENCH_HISTORY", "append");
        gate(s);
    }
    exit_code();  // has the run written
    CHECK(holds(contents_under(folder), "\"accuracy\":["));
    s.name = "sums of a morning";
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::inconclusive);  // one run is no baseline
}
