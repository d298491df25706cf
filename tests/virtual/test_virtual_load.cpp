// Load generator and gates run: when requests go out, and what a run leaves on the disk.
// Against the simulated server, with an engine that answers within milliseconds.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/short_loads.hpp"
#include "virtual/scripted_server.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;
using namespace std::chrono_literals;
using texts::count;
using texts::parsed;

namespace {

records repeat_of(const records& all, int repeat) {
    records out;
    for (const record& r : all)
        if (r.repeat == repeat) out.push_back(r);
    return out;
}

template <class F> long long most(const records& all, F of) {
    long long x = of(all.at(0));
    for (const record& r : all) x = std::max(x, of(r));
    return x;
}
template <class F> long long least(const records& all, F of) {
    return -most(all, [&](const record& r) { return -of(r); });
}
long long scheduled(const record& r) { return r.scheduled_ns; }
long long dispatched(const record& r) { return r.dispatched_ns; }
long long ended(const record& r) { return r.end_ns; }

template <class F> long long median(const records& all, F of) {
    std::vector<long long> x;
    for (const record& r : all) x.push_back(of(r));
    std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
    return x.at(x.size() / 2);
}

/// The load goes out as planned, to the nanosecond.
void check_punctual(const records& all, const std::vector<double>& due) {
    check_follows(all, due);
    for (const record& r : all) CHECK(r.dispatched_ns == r.scheduled_ns);
}

}  // namespace

// ---- open loops

TEST_CASE("Poisson requests leave when they are due, at the rate asked for") {
    scenario s = short_requests(poisson(50_rps));
    s.requests = 120;
    const result r = run(s);
    const records all = all_ok(r);
    check_punctual(all, open_loop_times(poisson(50_rps), 120));
    CHECK(r.self_check().asked_rate == doctest::Approx(50));
    // 120 requests at 50 a second take 2.4 s, however they are spread.
    CHECK(seconds(all.back().scheduled_ns - all.front().scheduled_ns) < 2.4);
    CHECK(seconds(all.back().scheduled_ns - all.front().scheduled_ns) > 2.2);
}

TEST_CASE("constant and gamma requests leave when they are due") {
    for (const open_loop& o : {constant(100_rps), gamma(100_rps, 0.25)}) {
        CAPTURE(static_cast<int>(o.data().kind));
        scenario s = short_requests(o);
        s.requests = 100;
        check_punctual(all_ok(run(s)), open_loop_times(o, 100));
    }
}

TEST_CASE("a ramp and stages leave when they are due") {
    const open_loop rising = ramp(50_rps, 150_rps, 1_s);
    scenario s = short_requests(rising);
    s.requests = 60;
    check_punctual(all_ok(run(s)), open_loop_times(rising, 60));

    const open_loop staged = steps({{100_rps, 300_ms}, {50_rps, 400_ms}});
    s = short_requests(staged);
    s.requests = 0;
    check_punctual(all_ok(run(s)), open_loop_times(staged, 0));
}

TEST_CASE("sends that are spun for are not early either") {
    scenario s = short_requests(constant(100_rps));
    s.client = {.spin = true};
    for (const record& r : all_ok(run(s))) CHECK(r.dispatched_ns == r.scheduled_ns);
}

TEST_CASE("all_at_once sends everything at the start, after the warm-up was answered") {
    scenario s = short_requests(all_at_once());
    s.warmup = 5;
    const records all = all_ok(run(s));
    const records warm = phase_of(all, run_phase::warmup),
                  measured = phase_of(all, run_phase::measure);
    REQUIRE(warm.size() == 5);
    REQUIRE(measured.size() == 40);
    CHECK(most(warm, ended) < least(measured, dispatched));
    CHECK(most(warm, ended) < least(measured, scheduled));
    CHECK(most(measured, scheduled) == least(measured, scheduled));
    CHECK(most_in_flight(measured) == 40);
}

TEST_CASE("a duration ends an open loop") {
    scenario s = short_requests(constant(100_rps));
    s.requests = 0;
    s.duration = 300_ms;
    CHECK(all_ok(run(s)).size() == 30);
    s.requests = 20;  // whichever comes first
    CHECK(all_ok(run(s)).size() == 20);
    s.requests = 40;
    CHECK(all_ok(run(s)).size() == 30);
}

TEST_CASE("the warm-up of an open loop comes first and is extra") {
    scenario s = short_requests(constant(200_rps));
    s.warmup = 7;
    records all = all_ok(run(s));
    REQUIRE(all.size() == 47);
    for (std::size_t i = 0; i < all.size(); ++i)
        CHECK(all[i].phase == (i < 7 ? run_phase::warmup : run_phase::measure));

    s.warmup = 100_ms;
    all = all_ok(run(s));
    CHECK(phase_of(all, run_phase::warmup).size() == 20);
    CHECK(phase_of(all, run_phase::measure).size() == 40);
}

// ---- a cap on requests in flight

TEST_CASE("max_in_flight holds, and the waiting counts as latency") {
    // Two at a time, at least 6 ms each: 60 requests take 180 ms, and are all due within 60 ms.
    scenario s = short_requests(constant(1000_rps).max_in_flight(2));
    s.requests = 60;
    const result r = run(s);
    const records all = all_ok(r);
    REQUIRE(all.size() == 60);
    CHECK(most_in_flight(all) == 2);
    const auto waiting = [](const record& x) { return x.dispatched_ns - x.scheduled_ns; };
    CHECK(seconds(waiting(all.back())) > 0.05);
    CHECK(seconds(median(all, waiting)) > 0.02);
    for (std::size_t i = 1; i < all.size(); ++i)
        CHECK(all[i].dispatched_ns >= all[i - 1].dispatched_ns);
    const auto waited = [](const record& x) { return x.first_token_ns - x.scheduled_ns; };
    CHECK(r.estimate(p50(ttft)).value >= 0.9 * seconds(median(all, waiting)));
    CHECK(r.estimate(max(ttft)).value == doctest::Approx(seconds(most(all, waited))));
    // Deliberate waiting is not the client's lateness.
    CHECK(r.self_check().lateness_p50 < seconds(median(all, waiting)));
}

TEST_CASE("max_in_flight holds where answers and due requests come at the same moment") {
    scenario s = short_requests(constant(2000_rps).max_in_flight(3));
    s.workload = synthetic{.prompt_tokens = fixed(4), .output_tokens = fixed(1)};
    s.requests = 1500;
    const records all = all_ok(run(s));
    REQUIRE(all.size() == 1500);
    CHECK(most_in_flight(all) <= 3);
    bool in_order = true;
    for (std::size_t i = 1; i < all.size(); ++i)
        in_order &= all[i].dispatched_ns >= all[i - 1].dispatched_ns;
    CHECK(in_order);
}

// ---- users

TEST_CASE("users are never more than there are, and never fewer without a reason") {
    const records all = all_ok(run(short_requests(closed_loop(4))));
    REQUIRE(all.size() == 40);
    CHECK(most_in_flight(all) == 4);
    CHECK(indices(all) == from_0_to(40));
}

TEST_CASE("a user is ready when the answer came, or a pause later") {
    for (const double think : {0.0, 0.015}) {
        CAPTURE(think);
        scenario s = short_requests(closed_loop(1).think(time_span::from_seconds(think)));
        s.requests = 10;
        const records all = all_ok(run(s));
        REQUIRE(all.size() == 10);
        for (std::size_t i = 1; i < all.size(); ++i) {
            CHECK(all[i].scheduled_ns == all[i - 1].end_ns + ns_of(think));
            CHECK(all[i].dispatched_ns >= all[i].scheduled_ns);
        }
    }
}

TEST_CASE("users start one after the other over their ramp") {
    // Who was answered thinks so long that nobody comes twice before all are there.
    scenario s = short_requests(closed_loop(4).ramp(200_ms).think(500_ms));
    s.requests = 4;
    const records all = all_ok(run(s));
    REQUIRE(all.size() == 8);
    CHECK(phase_of(all, run_phase::warmup).size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(all[i].scheduled_ns == all[0].scheduled_ns + ns_of(0.05 * static_cast<double>(i)));
        CHECK(all[i].dispatched_ns >= all[i].scheduled_ns);
    }
}

TEST_CASE("the warm-up of users is a number of requests or a time") {
    scenario s = short_requests(closed_loop(3));
    s.warmup = 6;
    records all = all_ok(run(s));
    CHECK(phase_of(all, run_phase::warmup).size() == 6);
    CHECK(phase_of(all, run_phase::measure).size() == 40);

    s.warmup = 100_ms;
    s.requests = 0;
    s.duration = 100_ms;
    all = all_ok(run(s));
    const records warm = phase_of(all, run_phase::warmup),
                  measured = phase_of(all, run_phase::measure);
    REQUIRE(!warm.empty());
    REQUIRE(!measured.empty());
    CHECK(most(warm, scheduled) < least(measured, scheduled));
    CHECK(least(measured, scheduled) - least(warm, scheduled) >= ns_of(0.1));
}

TEST_CASE("users who warm up for a time send as many measured requests as asked for") {
    scenario s = short_requests(closed_loop(3));
    s.warmup = 50_ms;
    s.requests = 12;
    s.duration = 3_s;  // ends the test should they send more
    CHECK(phase_of(all_ok(run(s)), run_phase::measure).size() == 12);
}

TEST_CASE("a duration ends users") {
    scenario s = short_requests(closed_loop(2));
    s.requests = 0;
    s.duration = 300_ms;
    const records all = all_ok(run(s));
    REQUIRE(!all.empty());
    CHECK(most(all, scheduled) - least(all, dispatched) < ns_of(0.3));
}

// ---- connections

TEST_CASE("no more connections are opened than are needed at a time, and one ahead") {
    for (const arrival_pattern& a : {arrival_pattern(closed_loop(4)), arrival_pattern(all_at_once()),
                                     arrival_pattern(constant(50_rps))}) {
        CAPTURE(static_cast<int>(a.data().kind));
        scenario s = short_requests(a);
        s.requests = 12;
        const result r = run(s);
        const records all = all_ok(r);
        // One for each user or request at a time, and one ahead.
        const bool users = a.data().kind == detail::arrival_kind::closed_loop;
        CHECK(r.self_check().connections_opened <= (users ? 4 : 12) + 1);
        CHECK(least(all, [](const record& x) { return x.connected_ns - x.dispatched_ns; }) >= 0);
    }
}

// ---- threads and repeats

TEST_CASE("repeats send the same lengths at the same times, in other words") {
    scenario s = short_requests(poisson(100_rps));
    s.workload = synthetic{.prompt_tokens = uniform(5, 50), .output_tokens = uniform(2, 6)};
    s.repeats = 2;
    const records all = all_ok(run(s));
    const records a = repeat_of(all, 0), b = repeat_of(all, 1);
    REQUIRE(a.size() == 40);
    REQUIRE(b.size() == 40);
    std::set<int> lengths;
    for (std::size_t i = 0; i < a.size(); ++i) {
        CHECK(a[i].scheduled_ns - a[0].scheduled_ns == b[i].scheduled_ns - b[0].scheduled_ns);
        CHECK(a[i].prompt_tokens == b[i].prompt_tokens);
        CHECK(a[i].output_tokens == b[i].output_tokens);
        CHECK(a[i].prompt_tokens >= 5);
        CHECK(a[i].prompt_tokens <= 50);
        CHECK(a[i].output_tokens >= 2);
        CHECK(a[i].output_tokens <= 6);
        lengths.insert(a[i].prompt_tokens);
    }
    CHECK(lengths.size() > 10);

    const scripted::server server;
    s.target = endpoint{.url = server.url()};
    s.arrivals = closed_loop(1);
    s.requests = 10;
    run(s);
    std::vector<scripted::request> log = server.log();
    std::erase_if(log, [](const auto& q) { return q.header("X-Request-Id").empty(); });
    REQUIRE(log.size() == 20);
    for (std::size_t i = 0; i < 10; ++i) {
        CHECK(log[i].body != log[i + 10].body);
        CHECK(std::count(log[i].body.begin(), log[i].body.end(), ' ') ==
              std::count(log[i + 10].body.begin(), log[i + 10].body.end(), ' '));
    }
}

// ---- what a run leaves

namespace {

struct line_of_records {
    picojson::value what;
    std::size_t number = 0;  // in the file
};
/// In the order of result::requests(); in the file they come as they were answered.
std::vector<line_of_records> lines_of(const std::string& gate) {
    std::vector<line_of_records> out;
    std::istringstream in(content_of(report_file("records.jsonl")));
    std::string line;
    for (std::size_t n = 0; std::getline(in, line); ++n) {
        const picojson::value v = parsed(line);
        if (v.get("gate").to_str() == gate) out.push_back({v, n});
    }
    const auto place = [](const line_of_records& l) {
        const std::string id = l.what.get("id").to_str();
        return std::pair(l.what.get("repeat").get<double>(), std::stol(id.substr(id.rfind('-') + 1)));
    };
    std::sort(out.begin(), out.end(),
              [&](const auto& a, const auto& b) { return place(a) < place(b); });
    return out;
}

}  // namespace

TEST_CASE("every request of a run is a line of records.jsonl") {
    const scripted::server server({scripted::healthy(), {scripted::close()}, scripted::healthy(2)});
    scenario s = short_requests(closed_loop(1));
    s.name = "records \"on\" disk";
    s.target = endpoint{.url = server.url()};
    s.warmup = 1;
    s.requests = 4;
    s.repeats = 2;
    const result r = run(s);
    CHECK(r.name() == s.name);
    const std::vector<line_of_records> lines = lines_of("records \"on\" disk");
    REQUIRE(lines.size() == 10);
    REQUIRE(r.requests().size() == 10);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const picojson::value& line = lines[i].what;
        const record& x = r.requests()[i];
        CAPTURE(line.serialize());
        const auto same = [&](const char* field, const types::text& v) {
            if (v.empty()) return line.get(field).is<picojson::null>();
            return line.get(field).to_str() == std::string(v);
        };
        const auto is = [&](const char* field, long long v) {
            return line.get(field).get<double>() == static_cast<double>(v);
        };
        const auto when = [&](const char* field, long long v) {
            return v == 0 ? line.get(field).is<picojson::null>() : is(field, v);
        };
        CHECK(line.get<picojson::object>().size() == 36);
        CHECK(same("id", x.id));
        CHECK(same("arm", "candidate"));
        CHECK(is("repeat", x.repeat));
        CHECK(same("phase", to_string(x.phase)));
        CHECK(when("scheduled_ns", x.scheduled_ns));
        CHECK(when("dispatched_ns", x.dispatched_ns));
        CHECK(when("connected_ns", x.connected_ns));
        CHECK(when("sent_ns", x.sent_ns));
        CHECK(when("first_token_ns", x.first_token_ns));
        CHECK(when("last_token_ns", x.last_token_ns));
        CHECK(when("end_ns", x.end_ns));
        CHECK(is("prompt_tokens", x.prompt_tokens));
        CHECK(is("output_tokens", x.output_tokens));
        CHECK(same("token_source", to_string(x.token_source)));
        CHECK(is("events", x.events));
        CHECK(is("first_event_tokens", x.first_event_tokens));
        CHECK(same("status", to_string(x.status)));
        CHECK(when("http_status", x.http_status));
        CHECK(same("finish_reason", x.finish_reason));
        CHECK(same("error", x.error));
        CHECK(line.get("cached_tokens").is<picojson::null>());
        CHECK(is("conversation", x.conversation));
        CHECK(x.conversation == static_cast<long long>(i % 5));
        CHECK(is("turn", 0));
        CHECK(is("reads", x.reads));
        CHECK(is("first_read_events", x.first_read_events));
        CHECK(is("text_bytes", x.text_bytes));
        CHECK(is("hidden_tokens", 0));
        CHECK(is("most_prompt_tokens", x.most_prompt_tokens));
        CHECK(is("most_output_tokens", x.most_output_tokens));
        CHECK(x.most_output_tokens > 0);
        CHECK(is("choices", 1));
        CHECK(is("resends", 0));
    }
}

TEST_CASE("events.bin holds the gaps of every record, and result.json where they lie") {
    scenario s = short_requests(constant(100_rps));
    s.name = "gaps on disk";
    s.requests = 20;
    const records all = all_ok(run(s));
    const picojson::value result = parsed(content_of(report_file("result.json")));
    const std::string bytes = content_of(report_file("events.bin"));
    const picojson::value& index = result.get("events");
    CHECK(index.get("file").to_str() == "events.bin");
    CHECK(index.get("fnv1a_64").to_str() == fnv1a_64(bytes));
    CHECK(index.get("bytes").get<double>() == static_cast<double>(bytes.size()));

    const auto& offsets = index.get("offsets").get<picojson::array>();
    const std::string every_line = content_of(report_file("records.jsonl"));
    CHECK(offsets.size() == static_cast<std::size_t>(count(every_line, "\n")));
    std::istringstream in(every_line);
    std::string line;
    std::size_t expected = 0;
    for (std::size_t i = 0; std::getline(in, line); ++i) {
        CHECK(offsets.at(i).get<double>() == static_cast<double>(expected));
        expected += 4 * static_cast<std::size_t>(
                            std::max(0.0, parsed(line).get("events").get<double>() - 1));
    }
    CHECK(bytes.size() == expected);

    const std::vector<line_of_records> lines = lines_of("gaps on disk");
    REQUIRE(lines.size() == all.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        CHECK(all[i].events == 3);
        const auto at = static_cast<std::size_t>(offsets.at(lines[i].number).get<double>());
        long long sum_us = 0;
        for (std::size_t k = 0; k < 8; ++k)
            sum_us += static_cast<long long>(static_cast<unsigned char>(bytes.at(at + k)))
                      << (8 * (k % 4));
        const double whole_us =
            static_cast<double>(all[i].last_token_ns - all[i].first_token_ns) / 1000;
        CHECK(std::abs(static_cast<double>(sum_us) - whole_us) <= 1);
    }
}

TEST_CASE("result.json and junit.xml tell the verdicts of a run") {
    scenario s = short_requests(closed_loop(4));
    s.target = endpoint_of(quick);
    s.name = "verdicts <on> disk";
    s.requests = 60;
    s.warmup = 4;
    s.repeats = 2;
    s.seed = 7;
    s.slos = {p50(ttft) <= 60_s, mean(tpot) <= 60_s, advisory(output_throughput >= 1_tps)};
    const result r = gate(s);
    REQUIRE(r.verdicts().size() == 4);  // the guard on errors is the last one

    const picojson::value g = reported_gate("verdicts <on> disk");
    REQUIRE(g.is<picojson::object>());
    CHECK(g.get("refusal").to_str() == "");
    CHECK(g.get("target").get("kind").to_str() == "endpoint");
    CHECK(g.get("target").get("model").to_str() == "simulated");
    CHECK(g.get("scenario").get("users").get<double>() == 4);
    CHECK(g.get("scenario").get("requests").get<double>() == 60);
    CHECK(g.get("scenario").get("warmup_requests").get<double>() == 4);
    CHECK(g.get("scenario").get("seed").get<double>() == 7);
    CHECK(g.get("candidate").get("statuses").get("ok").get<double>() == 120);
    CHECK(g.get("candidate").get("repeats").get<picojson::array>().size() == 2);
    CHECK(g.get("candidate").get("ttft").get("mean").get<double>() > 0.002);
    CHECK(g.get("self_check").get("connections_opened").get<double>() ==
          static_cast<double>(r.self_check().connections_opened));
    const auto& slos = g.get("slos").get<picojson::array>();
    REQUIRE(slos.size() == 4);

    const std::string junit = content_of(report_file("junit.xml"));
    const std::size_t from = junit.find("<testsuite name=\"verdicts &lt;on&gt; disk\"");
    REQUIRE(from != std::string::npos);
    const std::string suite = junit.substr(from, junit.find("</testsuite>", from) - from);
    CHECK(suite.find("tests=\"4\"") != std::string::npos);
    CHECK(count(suite, "<testcase ") == 4);
    CHECK(count(junit, "<testsuite ") == count(junit, "</testsuite>"));
    CHECK(count(junit, "<testcase ") == count(junit, "</testcase>"));

    for (std::size_t i = 0; i < 4; ++i) {
        const slo_verdict& v = r.verdicts()[i];
        CHECK(slos[i].get("slo").to_str() == std::string(v.objective.text()));
        CHECK(slos[i].get("verdict").to_str() == to_string(v.outcome));
        CHECK(slos[i].get("advisory").get<bool>() == (i == 2));
        CHECK(slos[i].get("repeats").get<double>() == 2);
        CHECK(suite.find("name=\"" + escaped(std::string(v.objective.text())) + "\"") !=
              std::string::npos);
    }
    for (const char* name : {"summary.md", "report.html"}) {
        CAPTURE(name);
        CHECK(content_of(report_file(name)).find("verdicts ") != std::string::npos);
    }
    for (const auto& file : std::filesystem::directory_iterator(report_file("")))
        CHECK(file.path().extension() != ".tmp");
}

TEST_CASE("the report of a run is that of all runs of the program so far") {
    const auto gates = [] {
        const picojson::value all = parsed(content_of(report_file("result.json")));
        return all.get("gates").get<picojson::array>().size();
    };
    scenario s = short_requests(closed_loop(4));
    s.requests = 4;
    run(s);
    const std::size_t before = gates();
    run(s);
    CHECK(gates() == before + 1);
}
