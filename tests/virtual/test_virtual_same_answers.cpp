// Answers held against a live baseline's, byte for byte; and the texts that reports show of answers.
#include "virtual/scripted_server.hpp"
#include "virtual/sums.hpp"
#include "llmbench_history.hpp"
#include "llmbench_answers.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

scenario comparing(const sums& s, const engine& mine, const engine& its, const char* name) {
    scenario x = asking(s, mine, name);
    x.baseline = simulated(its);
    x.slos = {same_answers >= 90_pct};
    return x;
}
/// The lines of answers.jsonl about a gate; none where there is no such file.
std::vector<picojson::value> shown_of(const std::string& gate) {
    std::vector<picojson::value> lines;
    const std::string file = report_file("answers.jsonl");
    std::string all = std::filesystem::exists(file) ? content_of(file) : "";
    for (std::size_t end; (end = all.find('\n')) != std::string::npos; all.erase(0, end + 1)) {
        lines.push_back(texts::parsed(all.substr(0, end)));
        if (lines.back().get("gate").to_str() != gate) lines.pop_back();
    }
    return lines;
}
std::string in(const picojson::value& v, const char* field) { return v.get(field).to_str(); }

/// Answers each prompt with these words, as a chat stream.
scripted::answer saying(const std::string& words) {
    return {scripted::send(scripted::sized_stream(
        scripted::role() + scripted::chat_choice("{\"content\":\"" + words + "\"}") +
        scripted::finish() + scripted::usage(5, 2) + scripted::done()))};
}

}  // namespace

TEST_CASE("a server that says what the baseline says passes, and agrees with itself") {
    const sums file(100);
    const scenario s = comparing(file, knowing(), knowing(), "the same answers");
    const result r = run(s);
    CAPTURE(line_of(r));
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    CHECK(r.measured(same_answers) == 1);
    CHECK(holds(line_of(r), "0 of 400 answers differ; the server's own repeats agree on 100 %"));
    for (const record& q : measured_of(r, 0)) {
        if (q.variant == run_variant::baseline) continue;
        REQUIRE((q.same && *q.same));
        CHECK(q.answer_hash != 0);
    }
    CHECK(holds(content_of(report_file("records.jsonl")), "\"answer_hash\":\""));
    CHECK(reported_gate("the same answers").get("candidate").get("same_answers").get<double>() == 1);
    CHECK(shown_of("the same answers").empty());
    check_rejudged(r, s.slos);
}

TEST_CASE("answers that differ fail, with where they do") {
    const sums file(100);
    const scenario s = comparing(file, knowing(30_pct), knowing(), "other answers");
    const result r = run(s);
    CAPTURE(line_of(r));
    CHECK(r.verdicts()[0].outcome == verdict::fail);
    const std::vector<picojson::value> shown = shown_of("other answers");
    std::size_t differ = 0;
    for (const record& q : measured_of(r, 0)) differ += q.same && !*q.same;
    CHECK(shown.size() == differ);
    REQUIRE(differ > 10);
    std::vector<double> places;
    for (const picojson::value& a : shown) {
        const std::string mine = in(a, "answer"), its = in(a, "baseline_answer");
        const auto place = static_cast<std::size_t>(a.get("same_characters").get<double>());
        CHECK(mine != its);
        CHECK(mine.substr(0, place) == its.substr(0, place));
        CHECK(mine[place] != its[place]);
        CHECK(in(a, "is") == "different");
        CHECK(in(a, "times") == in(a, "asked"));
        places.push_back(a.get("same_characters").get<double>());
    }
    std::sort(places.begin(), places.end());
    CHECK(holds(line_of(r), std::to_string(std::lround(places[(places.size() + 1) / 2 - 1])) +
                                " characters (median)"));
    CHECK(holds(line_of(r), " differences per 1000 tokens"));
    CHECK(holds(content_of(report_file("report.html")), "<dt>baseline's answer</dt>"));
    check_rejudged(r, s.slos);
}

TEST_CASE("where all answers have to be equal one that differs fails, and none passes") {
    const sums file(100);
    scenario s = comparing(file, knowing(), knowing(), "all the same");
    s.slos = {same_answers >= 100_pct};
    const result same = run(s);
    CAPTURE(line_of(same));
    CHECK(same.verdicts()[0].outcome == verdict::pass);
    CHECK(same.verdicts()[0].estimate.low < 1);
    CHECK(holds(std::string(same.verdicts()[0].explain()), "allowed = 0\n"));
    check_rejudged(same, s.slos);
    s.name = "all but a few";
    s.target = simulated(knowing(2_pct));
    const result other = run(s);
    CAPTURE(line_of(other));
    CHECK(other.measured(same_answers) < 1);
    CHECK(other.measured(same_answers) > 0.95);
    CHECK(other.verdicts()[0].outcome == verdict::fail);
    check_rejudged(other, s.slos);
}

TEST_CASE("prompts that are sent as they are have answers to compare, at temperature 0") {
    scenario s = quick_scenario(simulated(knowing()));
    s.name = "prompts compared";
    s.workload = prompts({"one", "two", "three"});
    s.arrivals = closed_loop(4);
    s.warmup = 4;
    s.requests = 60;
    s.baseline = simulated(knowing());
    s.slos = {same_answers >= 90_pct};
    s.options.temperature = 0.0;
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    check_rejudged(r, s.slos);
}

TEST_CASE("answers that cannot be compared are refused before the load") {
    const sums file(40);
    const scenario good = comparing(file, knowing(), knowing(), "refused");
    const auto refused = [&](const char* sentence, auto&& change) {
        scenario s = good;
        change(s);
        const std::string why = refusal_of(s);
        INFO(why);
        CHECK(holds(why, sentence));
    };
    refused("it needs a live baseline", [](scenario& s) { s.baseline = {}; });
    refused("it needs a live baseline", [](scenario& s) { s.baseline = stored("old.json"); });
    refused("it needs a live baseline", [](scenario& s) { s.baseline = history("nights"); });
    refused("options.temperature is 0.7", [](scenario& s) { s.options.temperature = 0.7; });
    refused("options.temperature is 1:", [](scenario& s) {
        s.baseline = otherwise{.options = request_options{.temperature = 1.0}};
    });
    refused("options.temperature is not set", [](scenario& s) {
        s.workload = prompts({"one", "two"});
        s.requests = 40;
    });
    refused("prompts differ from repeat to repeat", [](scenario& s) {
        s.workload = synthetic{};
        s.requests = 40;
    });
    refused("prompts differ from repeat to repeat", [](scenario& s) {
        s.workload = conversations{};
        s.requests = 40;
    });
    refused("the limit must be 100 % at most",
            [](scenario& s) { s.slos = {same_answers >= 101_pct}; });
    refused("a fraction is judged against a limit of its own",
            [](scenario& s) { s.slos = {same_answers >= 0.9 * baseline}; });
    refused("the baseline is asked something else", [](scenario& s) {
        s.baseline = otherwise{.options = request_options{.temperature = 0.0},
                               .workload = prompts({"one", "two"})};
    });
}

// ---- texts that are kept -----------------------------------------------------------------------

TEST_CASE("the wrong answers of an objective that failed are shown, each question once") {
    const sums file(60);
    const scenario s = asking(file, knowing(33_pct), "wrong answers shown");
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::fail);
    std::size_t wrong = 0;
    for (const record& q : measured_of(r, 0)) wrong += !*q.right;
    const std::vector<picojson::value> shown = shown_of("wrong answers shown");
    CHECK(shown.size() == wrong);
    for (const picojson::value& a : shown) {
        CHECK(in(a, "is") == "wrong");
        CHECK(in(a, "times") == "3");
        CHECK(in(a, "asked") == "3");
        CHECK(holds(in(a, "question"), "What is"));
        CHECK(std::stoi(in(a, "read")) == std::stoi(in(a, "wanted")) + 1);
        CHECK(holds(in(a, "answer"), "#### " + in(a, "read")));
    }
    const std::string page = content_of(report_file("report.html"));
    CHECK(holds(page, "<h3>Answers</h3>"));
    CHECK(holds(page, "wrong in 3 of 3: "));
}

TEST_CASE("an answer that is right is written by nobody who did not ask for it") {
    const sums file(60);
    CHECK(run(asking(file, knowing(2_pct), "passes")).verdicts()[0].outcome == verdict::pass);
    CHECK(shown_of("passes").empty());
    {
        const variable all("LLMBENCH_ANSWERS", "all");
        CHECK(run(asking(file, knowing(), "shows all")).verdicts()[0].outcome == verdict::pass);
        const std::vector<picojson::value> shown = shown_of("shows all");
        CHECK(shown.size() == 60);
        for (const picojson::value& a : shown) CHECK(in(a, "is") == "right");
    }
    const variable none("LLMBENCH_ANSWERS", "none");
    CHECK(run(asking(file, knowing(33_pct), "shows none")).verdicts()[0].outcome == verdict::fail);
    CHECK(shown_of("shows none").empty());
    const variable odd("LLMBENCH_ANSWERS", "some");
    CHECK(holds(refusal_of(asking(file, knowing(), "odd")),
                "LLMBENCH_ANSWERS is \"some\": it must be all or none"));
}

TEST_CASE("an answer that repeats a secret is shown without it") {
    const sums file(40);
    const variable key("LLMBENCH_API_KEY", "sesame-open-up");
    const scripted::server server({saying("your key is sesame-open-up #### 1")});
    scenario s = asking(file, knowing(), "a secret repeated");
    s.target = endpoint{.url = server.url(), .model = "m"};
    s.workload = questions{.path = file.path, .format = gsm8k, .grade = exact};
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::fail);
    REQUIRE(!shown_of("a secret repeated").empty());
    CHECK(holds(in(shown_of("a secret repeated")[0], "answer"), "your key is *** #### 1"));
    CHECK(report_files_with("sesame-open-up").empty());
}
