// Every reader of files, with every number of a sound file made extreme: it refuses the file in a
// sentence that names it, or what it makes of it is sound.
#include "llmbench.hpp"
#include "core/files/datasets.hpp"
#include "core/files/traces.hpp"
#include "extensions/history/core/lines.hpp"
#include "program/others/runs_together.hpp"
#include "core/stored/calibration.hpp"
#include "extensions/machines/core/together.hpp"
#include "core/stored/record_json.hpp"
#include "core/stored/stored.hpp"
#include "core/reports/ci_files.hpp"
#include "extensions/simulated/core/foreseen.hpp"
#include "core/reports/result_json.hpp"
#include "support/dialogues.hpp"
#include "support/hostile_numbers.hpp"
#include "support/recordings.hpp"
#include "support/result_files.hpp"
#include "support/sample_gates.hpp"
#include "support/server_pages.hpp"
#include "support/texts.hpp"
#include "support/timelines.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;
using namespace texts;
using namespace timelines;

namespace {

/// One line that names the file, and no longer than anybody reads.
void check_sentence(const std::string& said, const std::string& file) {
    CAPTURE(said);
    CHECK(holds(said, file));
    CHECK_FALSE(holds(said, "\n"));
    CHECK(said.size() < 600);
}
/// A text in the place of a number is refused by whoever looks at that number, as numbers are that
/// are too large for what it is; what is no number of JSON is refused by everybody.
template <class Read>
void check_words(const std::string& sound, Read&& read, std::size_t one_in) {
    const bool is_json = sound.front() == '{' || sound.front() == '[';
    std::size_t turn = 0;
    for (const hostile::place& p : hostile::numbers_in(sound)) {
        if (++turn % one_in != 0) continue;
        CAPTURE(p.path);
        const auto refused = [&](const char* by) {
            std::string spoiled = sound;
            spoiled.replace(p.from, p.to - p.from, by);
            return !refusal_of([&] { read(spoiled); }).empty();
        };
        CHECK(refused("-0") == refused("0"));
        for (const char* by : {"007", "1.", "1e400"}) {
            CAPTURE(by);
            if (is_json) CHECK(refused(by));
        }
        if (!refused("-1e308") && !refused("1e308")) continue;
        const bool may_be_inf = p.path == ".request_rate" || p.path == ".burstiness";
        for (const char* by : {"\"x\"", "\"NaN\"", "\"nan\"", "\"inf\"", "\"-Infinity\"", "\"1e400\""})
            if (const std::string s = by; s != "\"inf\"" || !may_be_inf) {
                CAPTURE(s);
                CHECK(refused(by));
            }
    }
}
/// What `read` makes of each spoiled text, which it may refuse.
template <class Read>
void check_reader(const std::string& sound, const std::string& file, Read&& read,
                  std::size_t one_in = 1) {
    std::size_t refused = 0;
    const auto check = [&](const std::string& s, const std::string& how) {
        CAPTURE(how);
        try {
            read(s);
        } catch (const std::invalid_argument& e) {
            check_sentence(e.what(), file);
            ++refused;
        }
    };
    const std::size_t n = hostile::each_spoiled(sound, check, one_in);
    CHECK(n > 0);
    CHECK(refused > 0);  // it was looked at
    check_words(sound, read, one_in);
}

test_gate gate_with_everything() {
    test_gate g;
    g.what = planned({.workload = synthetic{.prompt_tokens = fixed(10), .output_tokens = fixed(11)},
                      .arrivals = poisson(8_rps),
                      .requests = 20,
                      .slos = {mean(ttft) <= 100_ms, p75(ttft) <= 90_ms, error_rate <= 5_pct}},
                     1);
    g.what.name = "chat";
    g.what.shard = {1, 2};
    g.target = tiny_model();
    for (int k = 0; k < 2; ++k) {
        repeat_data d = repeat_of_ttft(80 + k, k);
        for (record& r : d.records) r.repeat = k;
        rank_part r;
        r.index = 1;
        r.count = 2;
        r.start_ns = d.window.from_ns() - 3000000;
        r.lead = {-1, 1};
        d.ranks = {r};
        d.lost_fraction = 0.5;
        d.disturbed_requests = 3;
        d.thread_cpu_utilization = {0.1, 0.2};
        const time_interval window = d.window;
        sample_pages::report(d, server_quantity::queue_time, {0, 0.1, 0.2, 0.3});
        d.window = window;
        g.measured.candidate.push_back(d);
    }
    g.measured.max_skew_s = 0.05;
    g.measured.slos = g.what.judged->slos;
    g.measured.rule = g.what.judged->rule;
    g.measured.noise = {{"mean(ttft)", 0.1}};
    g.measured.stored = {"old.json", 0.03, {{"mean(ttft)", {0.1, 0.2}}}};
    judge(g);
    return g;
}

/// A result.json has some 200 numbers, and takes long to read 20 times each.
constexpr std::size_t of_long_files = 5;

/// No time and no speed lies below 0.
void check_worth(const measurements& e) {
    for (const repeat_data& d : e.candidate) {
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            if (d.records[i].status != request_status::ok) continue;
            for (const metric_id m : {metric_id::ttft, metric_id::tpot, metric_id::e2e,
                                      metric_id::decode_speed})
                CHECK_FALSE(request_value(m, d, i) < 0);
        }
        for (const metric_id m : {metric_id::request_throughput, metric_id::output_throughput})
            CHECK_FALSE(evaluate(make_statistic(statistic_kind::value, m, 0), d) < 0);
    }
}

}  // namespace

TEST_CASE("a result.json is refused by its field, or judged, whatever its numbers say") {
    const test_gate g = gate_with_everything();
    const std::string json = result_json({g}, {}, {}, 0);
    check_reader(json, "r.json", [&](const std::string& s) {
        stored_gate read = read_stored_gate(s, "r.json", "chat");
        for (std::size_t i = 0; i < std::min<std::size_t>(2, read.seen.candidate.size()); ++i) {
            const repeat_data& from = g.measured.candidate[i];
            read.seen.candidate.change(i, [&](repeat_data& to) {
                to.records = from.records;
                to.gaps = from.gaps;
                to.gap_offsets = from.gap_offsets;
            });
            if (read.seen.candidate[i].gaps_counted) return;
        }
        for (const slo& x : g.measured.slos) read.judged_by.slos.push_back(x);
        analyse(read.seen, read.judged_by);
        check_worth(read.seen);
        stored_shard first{"shard-0", read}, second{"shard-1", std::move(read)};
        first.gate.load.shard.index = 0;
        try {
            const measured_gate all = gathered({first, second}, {mean(ttft) <= 100_ms});
            analyse(all.seen, all.judged_by);
        } catch (const std::invalid_argument& e) { check_sentence(e.what(), "shard"); }
    }, of_long_files);
}

TEST_CASE("a result.json is refused by its field, or shown, whatever its numbers say") {
    test_gate g = gate_with_everything();
    g.verdicts = judge_all(g.measured);
    const std::string json = result_json({g}, {}, {}, 0);
    std::size_t n = 0;
    hostile::each_spoiled(json, [&](const std::string& s, const std::string& how) {
        CAPTURE(how);
        n += refusal_of([&] { read_past_result(s, "r.json"); }).empty();
    }, of_long_files);
    CHECK(n > 0);
}

TEST_CASE("a result.json is refused by its field, or fits a sound engine, whatever its numbers say") {
    const std::string json = result_json({gate_with_everything()}, {}, {}, 0);
    check_reader(json, "r.json", [&](const std::string& s) {
        const reported_pace t = read_pace(s, "r.json", "chat");
        const engine e = engine_at_pace(t.pace);
        CHECK(e.decode_step.seconds() > 0);
        CHECK(e.prefill_per_token.seconds() >= 0);
        CHECK(e.faults.delay.seconds() >= 0);
        CHECK((e.jitter >= 0 && e.jitter <= 0.5));
        CHECK((e.slots >= 32 && e.slots <= 400000));
        CHECK(kv_capacity_tokens(e.kv) > 1e5);
        for (const auto& [name, sd] : t.noise) CHECK(sd >= 0);
    }, of_long_files);
}

TEST_CASE("a calibration is refused by its statistic, or taken, whatever its numbers say") {
    test_gate g = gate_with_everything();
    g.calibration = calibration_of(g.measured);
    hostile::each_spoiled(calibration_json({g}), [&](const std::string& s, const std::string& how) {
        CAPTURE(how);
        const std::string said = refusal_of([&] {
            for (const auto& [name, sd] : read_calibration(s, "c.json", "chat").noise)
                CHECK((sd >= 0 && sd <= 0.3));
        });
        if (!said.empty()) check_sentence(said, "c.json");
    });
}

TEST_CASE("a record is refused by its field, or worth what it says") {
    const repeat_data d = repeat_of_ttft(80, 0);
    const std::string line = record_json(d.records[0], "chat");
    hostile::each_spoiled(line, [&](const std::string& s, const std::string& how) {
        CAPTURE(how);
        const std::string said = refusal_of([&] {
            std::string gate;
            record r = read_record(s, gate);
            repeat_data one;
            one.window = d.window;
            request_log log;
            gap_list gaps;
            for (std::size_t i = 0; i < gap_count(r); ++i) gaps.push_back(1000);
            log.add(0, std::move(r), gaps);
            log.move_into(one);
            measurements e;
            e.candidate.push_back(std::move(one));
            check_worth(e);
        });
        CHECK_FALSE(holds(said, "\n"));
    });
}

TEST_CASE("a part of a repeat is refused, or a repeat, whatever its numbers say") {
    const std::string bytes = packed(gate_with_everything().measured.candidate[0]);
    const std::size_t end = bytes.find("\n\n");
    REQUIRE(end != std::string::npos);
    const std::string lines = bytes.substr(0, bytes.find('\n', bytes.find('\n') + 1));
    const std::string rest = bytes.substr(lines.size());
    hostile::each_spoiled(lines, [&](const std::string& s, const std::string& how) {
        CAPTURE(how);
        try {
            measurements e;
            e.candidate.push_back(unpacked(s + rest, run_variant::candidate));
            check_worth(e);
        } catch (const std::invalid_argument& e) {
            CHECK_FALSE(holds(e.what(), "\n"));
        } catch (const std::runtime_error& e) { CHECK(holds(e.what(), "a part of a repeat")); }
    });
}

namespace {
void check_tool(const std::string& sound, const std::string& name, const file_beside& beside) {
    check_reader(sound, name, [&](const std::string& s) {
        vector<imported_run> runs;
        runs.push_back(result_files::only_run(s, name, beside));
        measured_gate g = gate_of_runs(std::move(runs), {mean(ttft) <= 1_s, p50(e2e) <= 1_s});
        check_worth(g.seen);
        analyse(g.seen, g.judged_by);
    }, of_long_files);
}
std::optional<std::string> nothing(const std::string&) { return {}; }
/// So many lines of a text.
std::string lines_of(const std::string& text, int n) {
    std::size_t at = 0;
    for (int i = 0; i < n && at != std::string::npos; ++i) at = text.find('\n', at + 1);
    return text.substr(0, at);
}
}  // namespace

TEST_CASE("a tool's result file is refused by its field, or judged, whatever its numbers say") {
    result_files::run_file f = result_files::run_of(3, 1);
    f.rate = "8.0";
    check_tool(result_files::vllm_text(f), "vllm.json", nothing);
    check_tool(result_files::sglang_text(f), "sglang.json", nothing);
    const std::string lines =
        lines_of(result_files::fixture("aiperf-ok-1/profile_export.jsonl"), 2);
    const std::string summary = result_files::fixture("aiperf-ok-1/profile_export_aiperf.json");
    check_tool(lines, "profile_export.jsonl", nothing);
    check_tool(summary, "profile_export_aiperf.json", [&](const std::string&) { return lines; });
    // Of guidellm's file two requests are enough.
    picojson::value v = parsed(result_files::fixture("guidellm-ok-1.json"));
    picojson::value& b = v.get<picojson::object>()["benchmarks"].get<picojson::array>()[0];
    picojson::object& members = b.get<picojson::object>();
    members["requests"].get<picojson::object>()["successful"].get<picojson::array>().resize(2);
    members["config"].get<picojson::object>()["warmup"] = parsed("{\"value\": 0.1}");
    check_tool(v.serialize(), "guidellm.json", nothing);
}

namespace {
byte_stream stream(const std::string& text, const std::string& name) {
    auto at = std::make_shared<std::size_t>(0);
    return {[text, at](char* room, std::size_t n) {
                n = std::min(n, text.size() - *at);
                std::memcpy(room, text.data() + *at, n);
                *at += n;
                return n;
            },
            name};
}
}  // namespace

TEST_CASE("a trace or a data set is refused by its line, or sent, whatever its numbers say") {
    for (const char* name : {"azure.csv", "burstgpt.csv", "mooncake.jsonl"})
        check_reader(content_of(std::string("data/") + name), name, [&](const std::string& s) {
            byte_stream in = stream(s, name);
            const recorded_trace t = read_trace(in);
            CHECK(t.rows.front().at_s == 0);
            CHECK(t.rows.back().at_s <= longest_trace_s);
            arrival_data a;
            a.kind = arrival_kind::replay;
            a.rate = static_cast<double>(t.rows.size()) / own_length(a, t);
            CHECK(std::isfinite(a.rate));
            replay_schedule(a, t, 2, 0, 0, 0, 1);
        });
    for (const auto& [name, format] :
         {std::pair{"openai.jsonl", openai_jsonl}, std::pair{"captions.json", coco_captions}})
        hostile::each_spoiled(content_of(std::string("data/") + name),
                              [&, file = name, as = format](const std::string& s,
                                                            const std::string& how) {
                                  CAPTURE(how);
                                  byte_stream in = stream(s, file);
                                  dataset d;
                                  d.format = as;
                                  const std::string said =
                                      refusal_of([&] { dialogues::sample_of(in, d, 5, 1); });
                                  if (!said.empty()) check_sentence(said, file);
                              });
}

TEST_CASE("recorded sessions are refused by their line, or sent, whatever their numbers say") {
    const std::string weka =
        R"({"id":"t","block_size":10,"hash_id_scope":"local","requests":[{"t":1,"type":"s",)"
        R"("model":"m","in":20,"out":4,"hash_ids":[5,6],"api_time":1},{"t":3,"type":"subagent",)"
        R"("block_size":10,"requests":[{"t":4,"type":"n","in":20,"out":4,"hash_ids":[5,6]}]}]})";
    const std::string bailian =
        R"({"chat_id":7,"parent_chat_id":-1,"timestamp":61.5,"input_length":33,)"
        R"("output_length":9,"turn":1,"hash_ids":[10,11,12]})";
    const std::string mooncake =
        R"({"timestamp":1200,"input_length":900,"output_length":40,"hash_ids":[5,6],)"
        R"("session_id":"u"})" "\n"
        R"({"timestamp":1400,"delay":250,"input_length":1400,"output_length":40,)"
        R"("hash_ids":[5,6,8],"session_id":"u"})";
    const std::string spans =
        R"({"traceId":"t","spanId":"s","startTimeUnixNano":1772359200e9,"endTimeUnixNano":"1772359201000000000",)"
        R"("attributes":[{"key":"gen_ai.usage.input_tokens","value":{"intValue":40}},)"
        R"({"key":"gen_ai.usage.output_tokens","value":{"doubleValue":40}},)"
        R"({"key":"gen_ai.input.messages","value":{"stringValue":"[]"}}]})";
    const auto check_corpus = [](const session_corpus& c) {
        for (const session_step& x : c.steps)
            CHECK((x.wait_s >= 0 && x.at_s >= 0 && x.output_tokens > 0 && x.prompt.tokens >= 0));
    };
    for (const auto& [format, sound] : {std::pair{"weka", weka}, std::pair{"bailian", bailian},
                                        std::pair{"mooncake_agents", mooncake},
                                        std::pair{"otel", spans}})
        check_reader(sound, "x.json", [&, name = format](const std::string& s) {
            const session_corpus c = recordings::read(name, {s});
            check_corpus(c);
            CHECK(recordings::lost_in_lines(c) == "");
        });
    for (const char* name : {"dag_jsonl", "tracelab", "bailian"})
        check_reader(content_of("data/sessions/" + std::string(name) + ".ours.jsonl"), "x.json",
                     [&](const std::string& s) { check_corpus(recordings::read_lines(s)); });
}

TEST_CASE("a line of a history is refused by its file, or a run, whatever its numbers say") {
    const history_run r{.id = "20261123T021504Z-e2bbe02a-7c1e9f40.1",
                        .at = "2026-11-23T02:15:04Z",
                        .gate = "chat",
                        .run_series = "3fa9c1d2e4b7a605",
                        .outcome = "passed",
                        .values = {{"mean(tpot)", {0.0123117, 0.0122745}}}};
    check_reader(history_line(r), "h.jsonl:1", [&](const std::string& s) {
        history_lines all;
        read_history_line(s.substr(0, s.size() - 1), "h.jsonl:1", {.latest = "2027"}, all);
        for (const auto& v : all.runs.at(0).values)
            for (const double x : v.repeats) CHECK(std::isfinite(x));
    });
}
