// Gates against another server, and against what an earlier run left: stored baselines and
// calibrated noise.
#include "support/environment.hpp"
#include "support/rejudged.hpp"

#include <algorithm>
#include <vector>

using namespace llmbench;
using namespace live;
using texts::replaced;

// ---- live baselines

TEST_CASE("a server is not compared with itself, by whatever two names") {
    const logging_server host(engine_of(2_ms));
    const std::string url = host.url(), port = url.substr(url.rfind(':'));
    scenario s = brief(endpoint{.url = url}, "compared with itself");
    s.slos = {mean(tpot) <= 1.5 * baseline};
    const auto refused = [&](const any_baseline& b) {
        s.baseline = b;
        const std::string why = refusal_of(s);
        INFO(why);
        CHECK(holds(why, "one server and would be compared with itself"));
        CHECK(holds(why, url));
        CHECK(holds(why, "otherwise{.same = true}"));
    };
    refused(endpoint{.url = "http://localhost" + port});
    {
        const variable named("LLMBENCH_BASELINE_URL", url);
        refused(endpoint{});
    }
    s.baseline = endpoint{};
    CHECK(holds(refusal_of(s), "set LLMBENCH_BASELINE_URL"));
    CHECK(host.log().empty());  // nothing was measured
}

TEST_CASE("an A/A run is one that is said to be meant, and is called one") {
    const logging_server host(engine_of(10_ms));
    scenario s = brief(endpoint{.url = host.url()}, "against itself");
    s.baseline = otherwise{.same = true};
    s.slos = {p50(tpot) <= 1.5 * baseline};
    const heard_run heard = heard_of(s);
    const result& r = heard.result;
    const std::string& said = heard.said;
    check_passes(r);
    CHECK(holds(said, "A/A: the same server twice"));
    CHECK(reported_gate("against itself").get("baseline_target").get("kind").to_str() ==
          "same server");
    CHECK(holds(content_of(report_file("report.html")), "A/A: the same server twice"));
    check_rejudged(r, s.slos);
    // One that the gate starts is the same one, too, and not a second.
    s.name = "a simulated one against itself";
    s.target = simulated(engine_of(10_ms));
    check_passes(run(s));
}

TEST_CASE("a baseline that names no URL is at LLMBENCH_BASELINE_URL") {
    const logging_server head(engine_of(10_ms)), base(engine_of(10_ms));
    const variable target("LLMBENCH_URL", head.url()), other("LLMBENCH_BASELINE_URL", base.url());
    scenario s = brief(any_target(), "base by the environment");
    s.baseline = endpoint{};
    s.slos = {p50(tpot) <= 1.5 * baseline};
    check_passes(run(s));
    CHECK_FALSE(head.log().empty());
    CHECK_FALSE(base.log().empty());
}

TEST_CASE("once the candidate's server is gone, the rest of the pair is not sent") {
    int not_sent = 0;
    for (const int seed : {1, 2})
        for (const int lives : {14, 36}) {  // until it is in the first pair, or in the second
            scenario s = brief(simulated(engine_of(10_ms)), "one that ends");
            engine dying = engine_of(10_ms);
            dying.faults.stop_after = lives;
            s.baseline = s.target;
            s.target = simulated(dying);
            s.slos = {p50(tpot) <= 1.5 * baseline, p50(e2e) <= 1_min};
            s.seed = seed;
            const result r = run(s);
            CAPTURE(seed);
            CAPTURE(lives);
            const int last = lives < 20 ? 0 : 1;
            long long lost_ns = 0, other_ns = 0;  // when the last pair's requests were sent
            int pairs = 0;
            for (const record& x : r.requests()) {
                pairs = std::max(pairs, x.repeat);
                if (x.repeat != last) continue;
                (x.variant == run_variant::baseline ? other_ns : lost_ns) = x.scheduled_ns;
            }
            CHECK(pairs == last);
            CHECK(lost_ns > 0);
            CHECK(other_ns < lost_ns);
            not_sent += other_ns == 0;
            for (const slo_verdict& v : {r.verdicts()[0], r.verdicts()[1]}) {
                CHECK(v.outcome == verdict::invalid);
                CHECK(holds(v.reason.c_str(), "server: it went away"));
            }
            check_rejudged(r, s.slos);
        }
    CHECK(not_sent == 2);
}

// ---- stored baselines

namespace {
result run_to_write(const scenario& s) {
    const variable writing("LLMBENCH_WRITE_BASELINE", "1");
    return run(s);
}
}  // namespace

TEST_CASE("a baseline is written when asked for, and later runs are compared with it") {
    const scratch files;
    const std::string file = files.file("baselines/chat.json");
    scenario s = brief(simulated(engine_of(10_ms)), "writes a baseline");
    s.baseline = stored(file.c_str());
    s.slos = {p50(tpot) <= 1.5 * baseline, p50(ttft_from_send) <= 1.5 * baseline,
              p50(e2e) <= 1_min};
    const auto relative = {"p50(tpot) <= 1.5 * baseline", "p50(ttft_from_send) <= 1.5 * baseline"};
    {
        const result r = run_to_write(s);
        CHECK(repeats_of(r).size() == 5);
        for (const char* slo : relative) {
            CHECK(outcome_of(r, slo) == verdict::skipped);
            CHECK(holds(reason_of(r, slo), "written to " + file));
        }
        CHECK(outcome_of(r, "p50(e2e) <= 60 s") == verdict::pass);
    }
    // Gates are told apart by their names, in a baseline and where records are judged again.
    const auto rename = [&](const std::string& from, const std::string& to) {
        write(file, replaced(content_of(file), quoted(from), quoted(to)));
        s.name = to.c_str();
    };
    rename("writes a baseline", "compares with a baseline");
    const std::string written = content_of(file);
    const result same = run(s);
    for (const char* slo : relative) CHECK(outcome_of(same, slo) == verdict::pass);
    CHECK(same.verdicts()[0].estimate.value == doctest::Approx(1).epsilon(0.01));
    check_rejudged(same, s.slos);
    CHECK(content_of(file) == written);  // no run writes it by itself

    rename("compares with a baseline", "slower than its baseline");
    s.target = simulated(engine_of(30_ms));
    const result slower = run(s);
    for (const char* slo : relative) CHECK(outcome_of(slower, slo) == verdict::fail);
    CHECK(outcome_of(slower, "p50(e2e) <= 60 s") == verdict::pass);
    check_rejudged(slower, s.slos);
}

TEST_CASE("a gate does not write its baseline over another gate's") {
    const scratch files;
    const std::string file = files.file("both.json");
    scenario s = brief(simulated(engine_of(10_ms)), "first of the file");
    s.baseline = stored(file.c_str());
    s.slos = {p50(tpot) <= 1.5 * baseline};
    run_to_write(s);
    const std::string written = content_of(file);
    REQUIRE(holds(written, "first of the file"));
    const variable writing("LLMBENCH_WRITE_BASELINE", "1");
    s.name = "second of the file";
    CHECK(holds(refusal_of(s), "holds the gate \"first of the file"));
    CHECK(holds(refusal_of(s), "each gate writes a file of its own, give \"second of the file"));
    CHECK(content_of(file) == written);
}

TEST_CASE("a baseline that is not there is refused with how to write it") {
    scenario s = brief(simulated(engine_of(2_ms)), "no baseline yet");
    const scratch files;
    const std::string file = files.file("chat.json");
    s.baseline = stored(file.c_str());
    s.slos = {mean(tpot) <= 1.5 * baseline};
    CHECK(holds(refusal_of(s), file));
    CHECK(holds(refusal_of(s), "LLMBENCH_WRITE_BASELINE=1"));
    CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a baseline that could not be written is refused before the load") {
    const scratch files;
    write(files.file("a file"), "");
    const logging_server host(engine_of(2_ms));
    scenario s = brief(endpoint{.url = host.url()}, "nowhere to write");
    s.slos = {mean(tpot) <= 1.5 * baseline};
    const variable writing("LLMBENCH_WRITE_BASELINE", "1");
    for (const std::string& file : {files.file("a file/b.json"), files.file("")}) {
        s.baseline = stored(file.c_str());
        CHECK(holds(refusal_of(s), "stored(" + quoted(file) + ")"));
    }
    CHECK(host.log().empty());
}

TEST_CASE("a baseline of another gate or model is refused with what differs, before the first request") {
    const scratch files;
    const std::string file = files.file("b.json");
    const logging_server host(engine_of(2_ms));
    scenario s = brief(endpoint{.url = host.url()}, "refused baseline");
    s.arrivals = poisson(200_rps);
    s.baseline = stored(file.c_str());
    s.slos = {mean(tpot) <= 1.5 * baseline, p50(e2e) <= 1_min};
    s.repeats = 2;
    run_to_write(s);
    const std::size_t requests_before = host.log().size();
    const auto refused_for = [&](const char* field, auto&& change) {
        scenario other = s;
        change(other);
        const std::string why = refusal_of(other);
        INFO(why);
        CHECK(holds(why, file));
        CHECK(holds(why, field));
    };
    refused_for("model is \"simulated\" and this gate's is \"another\"", [&](scenario& o) {
        o.target = endpoint{.url = host.url(), .model = "another"};
    });
    refused_for("\"refused baseline\"", [](scenario& o) { o.name = "a new name"; });
    write(file, "");
    refused_for("is not a result", [](scenario&) {});
    CHECK(host.log().size() == requests_before);
}

// ---- calibration

TEST_CASE("LLMBENCH_CALIBRATE runs as often as asked, prints and writes a table, judges nothing") {
    scenario s = brief(simulated(engine_of(10_ms)), "calibrated");
    s.slos = {mean(tpot) <= 12_ms, output_throughput >= 1_tps, goodput(e2e <= 20_s) >= 20_pct};
    std::string said;
    {
        const variable three("LLMBENCH_CALIBRATE", "3");
        const heard console;
        const result r = run(s);
        said = console.text();
        CHECK(repeats_of(r).size() == 3);
        for (const slo_verdict& v : r.verdicts()) {
            CHECK(v.outcome == verdict::skipped);
            CHECK(holds(v.reason, "calibration"));
            CHECK(v.repeats == 3);  // its numbers are of all, as the table's
        }
    }
    CHECK(holds(said, "calibration over 3 repeats"));
    for (const char* words : {"noise sd", "headroom / sd", "judged on counts"})
        CHECK(holds(said, words));
    const std::string file = report_file("calibration.json");
    for (const char* words : {"llmbench/calibration/1", "calibrated", "mean(tpot)", "headroom_sd"})
        CHECK(holds(content_of(file), quoted(words)));
    CHECK(holds(content_of(file), "\"suggestion\": \"<= "));

    {
        const variable read("LLMBENCH_CALIBRATION", file);
        const result r = run(s);
        CHECK(outcome_of(r, "output_throughput >= 1 tok/s") == verdict::pass);
        check_rejudged(r, s.slos);  // the report keeps the noise
    }
    const variable three("LLMBENCH_CALIBRATE", "3"), writing("LLMBENCH_WRITE_BASELINE", "1");
    s.baseline = stored("b.json");
    CHECK(holds(refusal_of(s), "LLMBENCH_CALIBRATE and LLMBENCH_WRITE_BASELINE are both set"));
}

TEST_CASE("a server that fails requests is not calibrated") {
    const variable three("LLMBENCH_CALIBRATE", "3");
    engine failing = engine_of(10_ms);
    failing.faults.error_rate = 25_pct;
    scenario s = brief(simulated(failing), "failing");
    s.requests = 60;
    s.slos = {mean(tpot) <= 12_ms};
    const result r = run(s);
    CHECK(outcome_of(r, "mean(tpot) <= 12 ms") == verdict::skipped);
    CHECK(holds(r.verdicts()[0].reason, "no calibration of a server that fails: "));
    CHECK(outcome_of(r, "error_rate <= 1 %") == verdict::fail);
    CHECK_FALSE(holds(content_of(report_file("calibration.json")), quoted("failing")));
}
