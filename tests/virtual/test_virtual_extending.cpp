// What a user hangs in: metrics of their own in gates, baselines, reports and records judged again.
#include "llmbench_answers.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/scripted_server.hpp"

#include <fstream>
#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace live;

// ---- metrics

namespace {
const metric longest_gap = of_request("longest_gap", in_seconds, [](const request_view& r) {
    double longest = 0;
    for (long long i = 0; i < r.gaps(); ++i) longest = r.gap(i) > longest ? r.gap(i) : longest;
    return longest;
});
const metric seconds_a_token = of_request("seconds_a_token", in_seconds, [](const request_view& r) {
    return (r[e2e] - r[ttft]) / r.output_tokens();
});
int asked = 0;
const metric counts_itself = of_request("counts_itself", in_seconds, [](const request_view& r) {
    ++asked;
    return r[ttft];
});
}  // namespace

TEST_CASE("a metric of one's own is asked by gates that name it, and by no other") {
    scenario s = brief(simulated(engine_of(10_ms)), "without a metric of one's own");
    s.slos = {p50(ttft) <= 5_s};
    const int before = asked;
    run(s);
    CHECK(asked == before);
    s.slos = {goodput(counts_itself <= 5_s) >= 50_pct};
    run(s);
    CHECK(asked > before);
}

TEST_CASE("a metric of one's own is judged, reported, and judged again from the records") {
    scenario s = brief(simulated(engine_of(10_ms)), "a metric of one's own");
    s.requests = 60;
    s.slos = {p95(longest_gap) <= 40_ms, p50(longest_gap) <= 2_ms, mean(seconds_a_token) <= 1_s,
              goodput(longest_gap <= 40_ms && ttft <= 5_s) >= 90_pct};
    const result r = run(s);
    CHECK(outcome_of(r, "p95(longest_gap) <= 40 ms") == verdict::pass);
    CHECK(outcome_of(r, "p50(longest_gap) <= 2 ms") == verdict::fail);
    CHECK(outcome_of(r, "mean(seconds_a_token) <= 1 s") == verdict::pass);
    CHECK(outcome_of(r, "goodput(longest_gap <= 40 ms && ttft <= 5 s) >= 90 %") == verdict::pass);
    // As ours of the same: the longest gap of a request is what itl is in a condition.
    CHECK(r.measured(goodput(longest_gap <= 10_ms)) == r.measured(goodput(itl <= 10_ms)));
    CHECK(r.measured(max(longest_gap)) == r.measured(max(itl)));
    for (const char* file : {"result.json", "report.html", "metrics.txt"})
        CHECK_MESSAGE(holds(content_of(report_file(file)), "longest_gap"), std::string(file));
    check_rejudged(r, s.slos);
}

TEST_CASE("a metric of one's own is held against what an earlier run had of it") {
    const scratch files;
    const std::string file = files.file("own.json");
    scenario s = brief(simulated(engine_of(10_ms)), "a stored metric of one's own");
    s.baseline = stored(file.c_str());
    s.slos = {mean(longest_gap) <= 1.5 * baseline};
    {
        const variable writing("LLMBENCH_WRITE_BASELINE", "1");
        run(s);
    }
    CHECK(outcome_of(run(s), "mean(longest_gap) <= 1.5 * baseline") == verdict::pass);
    s.target = simulated(engine_of(40_ms));
    CHECK(outcome_of(run(s), "mean(longest_gap) <= 1.5 * baseline") == verdict::fail);
    // A live one, too.
    s.baseline = simulated(engine_of(10_ms));
    CHECK(outcome_of(run(s), "mean(longest_gap) <= 1.5 * baseline") == verdict::fail);
}

// ---- APIs

namespace {
const api acme{.name = "acme",
               .path = "/v1/speak",
               .write = [](api_request& r) { r.text("say", r.prompt()); },
               .read =
                   [](api_event& e) {
                       e.content(e.text("text"));
                       e.prompt_tokens(e.number("asked"));
                       e.output_tokens(e.number("said"));
                       e.finish(e.text("why"));
                       if (e.flag("bye")) e.end();
                   },
               .tells_usage = true};
const api sound{.name = "sound",
                .path = "/v1/audio/speech",
                .framed = answer_parts::pieces,
                .write = [](api_request& r) { r.text("input", r.prompt()); }};
const metric real_time_factor =
    of_request("real_time_factor", less_is_better,
               [](const request_view& r) { return r[e2e] / (r.content_bytes() / 48000); });

std::string acme_answer() {
    std::string events = scripted::sse_event(R"({"hello":true})");
    for (int i = 0; i < 4; ++i) events += scripted::sse_event(R"({"text":" word"})");
    return scripted::sized_stream(
        events + scripted::sse_event(R"({"asked":3,"said":4,"why":"stop","bye":true})"));
}
scenario speaking(const scripted::server& host, const api& by, const char* name) {
    scenario s = brief(endpoint{.url = host.url(), .model = "m", .api = by}, name);
    s.workload = prompts({"Name a city."});
    return s;
}
}  // namespace

TEST_CASE("a server of one's own API is measured as any other, and reports name the API") {
    const scripted::server host([](const scripted::request&) {
        return scripted::answer{scripted::wait(std::chrono::milliseconds(20)),
                                scripted::send(acme_answer())};
    });
    scenario s = speaking(host, acme, "acme");
    s.slos = {mean(ttft) <= 100_ms, mean(e2e) <= 100_ms};
    const result r = run(s);
    CHECK(outcome_of(r, "mean(ttft) <= 100 ms") == verdict::pass);
    CHECK(r.measured(mean(ttft)) >= 0.020);
    CHECK(r.measured(error_rate) == 0);
    for (const record& x : measured_of(r, 0)) {
        CHECK(x.output_tokens == 4);
        CHECK(x.prompt_tokens == 3);
        CHECK(x.events == 4);
        CHECK(std::string(x.finish_reason) == "stop");
        CHECK(x.token_source == token_origin::usage);
    }
    REQUIRE_FALSE(host.log().empty());
    CHECK(host.log().back().path == "/v1/speak");
    CHECK(holds(host.log().back().body, R"({"say":"Name a city."})"));
    CHECK(reported_gate("acme").get("target").get("api").to_str() == "acme");
    CHECK(holds(content_of(report_file("report.html")), "acme"));
    check_rejudged(r, s.slos);
}

TEST_CASE("audio has a first piece and a real-time factor, by an API and a metric of one's own") {
    const scripted::server host([](const scripted::request&) {
        scripted::answer a{scripted::send(
            scripted::head("200 OK", "Content-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\n"))};
        for (int i = 0; i < 5; ++i) {
            a.push_back(scripted::wait(std::chrono::milliseconds(30)));
            a.push_back(scripted::send(scripted::chunk(std::string(4800, '\0'))));  // 100 ms of it
        }
        a.push_back(scripted::send(scripted::last_chunk()));
        return a;
    });
    scenario s = speaking(host, sound, "speech");
    s.slos = {p50(ttft) <= 100_ms, mean(real_time_factor) <= 0.5, mean(real_time_factor) <= 0.1,
              goodput(real_time_factor <= 1) >= 50_pct};
    const result r = run(s);
    CHECK(outcome_of(r, "p50(ttft) <= 100 ms") == verdict::pass);
    CHECK(outcome_of(r, "mean(real_time_factor) <= 0.5") == verdict::pass);
    CHECK(outcome_of(r, "mean(real_time_factor) <= 0.1") == verdict::fail);
    CHECK(r.measured(mean(real_time_factor)) == doctest::Approx(0.3).epsilon(0.02));
    for (const record& x : measured_of(r, 0)) CHECK(x.text_bytes == 24000);
    check_rejudged(r, s.slos);
}

TEST_CASE("an API of one's own that cannot be is refused before the load, and so is its rehearsal") {
    const scripted::server host;
    api none = acme;
    none.write = nullptr;
    CHECK(holds(refusal_of(speaking(host, none, "no writer")),
                "endpoint.api is refused: the API \"acme\" has no .write"));
    virtual_world::has_rehearsed = true;
    const variable rehearsing("LLMBENCH_REHEARSE", "1");
    CHECK(holds(refusal_of(speaking(host, acme, "rehearsed")),
                "the API \"acme\" is your own, and the model that answers in a rehearsal"));
    CHECK(host.log().empty());
}

TEST_CASE("a function of the user's that throws while the load is sent ends the gate in a sentence") {
    const scripted::server host([](const scripted::request&) {
        return scripted::answer{scripted::send(acme_answer())};
    });
    api fickle = acme;
    fickle.write = [](api_request& r) {
        if (std::string(r.prompt()).find("city") != std::string::npos) throw 42;
        r.text("say", r.prompt());
    };
    CHECK(holds(why_no_result(speaking(host, fickle, "fickle")), ".write of the API \"acme\" throws"));
    fickle.write = [](api_request& r) {
        if (std::string(r.prompt()).find("city") != std::string::npos)
            throw std::invalid_argument("stoi");
    };
    CHECK(holds(why_no_result(speaking(host, fickle, "fickle")), ".write of the API \"acme\" throws: stoi"));

    const scratch files;
    const std::string file = files.file("qa.jsonl");
    std::ofstream lines(file);
    for (int i = 0; i < 20; ++i)
        lines << "{\"question\": \"Name city " << i << ".\", \"answer\": \"Rome\"}\n";
    lines.close();
    scenario s = brief(simulated(engine_of(10_ms)), "graded");
    s.workload = questions{.path = file.c_str(),
                           .grade = [](const std::string&, const std::string& key) {
                               return std::stoi(key) == 1;
                           }};
    s.slos = {accuracy >= 10_pct};
    CHECK(holds(why_no_result(s), "the grader of the questions throws: stoi"));
    s.workload = generated([](request_index i, draw&) -> prompt {
        if (i >= 100) throw std::runtime_error("row 100 is broken");
        return {.text = "Name a city.", .output_tokens = 4};
    });
    s.slos = {p50(e2e) <= 1_min};
    s.requests = 200;
    CHECK(holds(why_no_result(s), "for request 100 its function throws: row 100 is broken"));
}

// ---- reports

namespace {
std::string told;
int times_told = 0;
void note_report(const report_view& r) {
    ++times_told;
    told.clear();
    for (const past_gate& g : r.result.gates)
        for (const past_slo& s : g.slos)
            told += std::string(g.name) + ": " + std::string(s.slo) + " " + to_string(s.outcome) + "\n";
    if (content_of(std::string(r.directory) + "/result.json") != std::string(r.json)) told = "other";
}
}  // namespace

TEST_CASE("a report of one's own is told what the files hold, once for all gates so far") {
    CHECK(on_report(note_report));
    CHECK(on_report(note_report));
    scenario s = brief(simulated(engine_of(10_ms)), "told");
    s.slos = {p50(e2e) <= 1_min};
    run(s);
    CHECK(times_told == 0);
    exit_code();
    CHECK(times_told == 1);
    exit_code();
    CHECK(times_told == 1);
    INFO(told);
    CHECK(holds(told, "told: advisory(p50(e2e) <= 60 s) pass"));
    s.name = "told as well";
    run(s);
    exit_code();
    CHECK(times_told == 2);
    CHECK(holds(told, "told as well: advisory(p50(e2e) <= 60 s) pass"));
}
