// Stored results: what a run leaves, read back.
#include "llmbench.hpp"
#include "core/base/field_json.hpp"
#include "core/stored/calibration.hpp"
#include "core/stored/record_json.hpp"
#include "core/stored/stored.hpp"
#include "core/stored/arm_fields.hpp"
#include "core/reports/result_json.hpp"
#include "support/full_record.hpp"
#include "support/sample_gates.hpp"
#include "support/texts.hpp"
#include "support/timelines.hpp"

#include <map>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;
using namespace texts;
using namespace timelines;

namespace {

using full_records::full_record;
using full_records::over_double;

scenario chat() {
    return {.workload = synthetic{.prompt_tokens = fixed(10), .output_tokens = fixed(11)},
            .arrivals = poisson(8_rps),
            .requests = 20,
            .slos = {mean(ttft) <= 100_ms, p75(ttft) <= 90_ms, error_rate <= 5_pct},
            .seed = 7};
}

/// A gate of repeats with these values of ttft, its records numbered as a run numbers them.
test_gate sampled_gate(const scenario& s, const std::string& name,
                          const vector<double>& ms) {
    test_gate g;
    g.what = planned(s, 1);
    g.what.name = name;
    g.target = tiny_model();
    for (const double v : ms) {
        repeat_data d = repeat_of_ttft(v, static_cast<int>(g.measured.candidate.size()));
        for (record& r : d.records) {
            r.repeat = d.index;
            r.id = printed("llmbench-1c-%d-%d", d.index, static_cast<int>(&r - &d.records[0]));
        }
        g.measured.candidate.push_back(d);
    }
    g.measured.slos = g.what.judged->slos;
    g.measured.rule = g.what.judged->rule;
    g.measured.arrival_cv2 = 1;
    judge(g);
    return g;
}
test_gate chat_gate(const std::string& name = "chat") {
    return sampled_gate(chat(), name, {80, 82});
}
std::string file_of(const test_gates& gates) { return result_json(gates, {}, {}, 0); }
struct read_gate : stored_gate {
    measurement measured{};
};
read_gate read_back(const test_gate& g) {
    read_gate r{read_stored_gate(file_of({g}), "r.json", "")};
    static_cast<sample_measurements::open_evidence&>(r.measured) = r.seen;
    static_cast<judging_parameters&>(r.measured) = r.judged_by;
    return r;
}

}  // namespace

// ---- result.json --------------------------------------------------------------------------------

TEST_CASE("a stored gate has one value a repeat of every statistic that may be compared") {
    const test_gate g = chat_gate();
    const read_gate s = read_back(g);
    for (const statistic_data& what : kept_statistics(g.what, g.measured.slos)) {
        const std::string name = str(what.name);
        CAPTURE(name);
        REQUIRE(s.statistics.contains(name));
        REQUIRE(s.statistics.at(name).size() == 2);
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
            CHECK(s.statistics.at(name)[i] == evaluate(what, g.measured.candidate[i]));
    }
    CHECK(s.statistics.at("mean(ttft)")[1] == about(0.082));
    CHECK(s.statistics.contains("p75(ttft)"));
    CHECK_FALSE(s.statistics.contains("error_rate"));  // a share is no baseline
}

TEST_CASE("a gate alone in its file is found whichever number told it from others of its name") {
    CHECK(unnumbered("chat (2)") == "chat");
    for (const std::string own : {"chat", "chat (two)", "chat(2)", "chat (2) more", "", "()"})
        CHECK(unnumbered(own) == own);
    const test_gate g = chat_gate("chat (2)");
    CHECK(read_stored_gate(file_of({g}), "r.json", "chat").name == "chat (2)");
    CHECK(read_stored_gate(file_of({g}), "r.json", "chat (3)").name == "chat (2)");
    CHECK(holds(refusal_of([&] { read_stored_gate(file_of({g, chat_gate("x")}), "r.json", "chat"); }),
                "no measured gate \"chat\""));
}

TEST_CASE("a gate is found among others by its name, and each window belongs to its repeat") {
    test_gate first = chat_gate("first"), second = chat_gate("second");
    first.what = with_judging(first.what, [&](planned_judging& j) { j.has_baseline = true; });
    first.measured.baseline = first.measured.candidate;
    int n = 0;
    for (test_gate* g : {&first, &second})
        for (auto* variant : {&g->measured.candidate, &g->measured.baseline})
            for (repeat_data& d : *variant) {
                const long long from = over_double + 10 * n++;
                d.window = time_interval::between(from, from + 5);
            }
    test_gate refused;
    refused.what.name = "refused";
    refused.refusal = "the rate must be above 0";
    const std::string json = file_of({first, refused, second});
    const stored_gate a = read_stored_gate(json, "r.json", "first"),
                      b = read_stored_gate(json, "r.json", "second");
    CHECK(a.name == "first");
    CHECK(a.described.judged->has_baseline);
    REQUIRE(a.seen.baseline.size() == 2);
    CHECK(a.seen.baseline[1].variant == run_variant::baseline);
    CHECK(a.seen.candidate[1].window.from_ns() == over_double + 10);
    CHECK(a.seen.baseline[0].window.from_ns() == over_double + 20);
    CHECK(a.seen.baseline[1].window.to_ns() == over_double + 35);
    CHECK_FALSE(b.described.judged->has_baseline);
    CHECK(b.seen.candidate[0].window.from_ns() == over_double + 40);
    CHECK(b.seen.candidate[1].window.to_ns() == over_double + 55);
    CHECK(a.statistics.at("mean(ttft)").size() == 2);  // the candidate's alone

    CHECK(holds(refusal_of([&] { read_stored_gate(json, "r.json", "refused"); }),
                "no measured gate \"refused\""));
    const std::string none = refusal_of([&] { read_stored_gate(json, "r.json", "third"); });
    CHECK(holds(none, "r.json has no measured gate \"third\""));
    CHECK(holds(none, "\"first\", \"second\""));
    CHECK(holds(refusal_of([&] { read_stored_gate(json, "r.json", ""); }), "no measured gate"));
    CHECK(holds(refusal_of([&] {
                    read_stored_gate(file_of({first, second, first}), "r.json", "first");
                }),
                "more than one measured gate \"first\""));
}

TEST_CASE("what a text says is no number of the file") {
    test_gate g = chat_gate("\"window_from_ns\": 1, \\\"window_to_ns\":2");
    g.measured.candidate[0].target_gone = "\"window_from_ns\":3,\"window_to_ns\": 4";
    g.measured.candidate[0].window = time_interval::between(over_double, over_double + 1);
    const read_gate s = read_back(g);
    CHECK(s.name == g.what.name);
    CHECK(s.measured.candidate[0].window.from_ns() == over_double);
    CHECK(s.measured.candidate[1].window.from_ns() == at_ms(0));
    CHECK(s.measured.candidate[1].window.to_ns() == at_ms(2200));
}

TEST_CASE("what is not a result of this schema is refused with its name") {
    const std::string json = file_of({chat_gate()});
    for (const std::string& bad : {std::string(), std::string("hello"), std::string("[]"),
                                   std::string("{}"), json.substr(0, json.size() / 2),
                                   replaced(json, "llmbench/result/2", "llmbench/result/1"),
                                   replaced(json, "llmbench/result/2", "llmbench/result/3")}) {
        const std::string said = refusal_of([&] { read_stored_gate(bad, "dir/r.json", "chat"); });
        CHECK(holds(said, "dir/r.json is not a result of this schema (llmbench/result/2)"));
    }
    CHECK(holds(refusal_of([&] { read_stored_gate(file_of({}), "r.json", "chat"); }),
                "no measured gate \"chat\": it has none"));
}

TEST_CASE("verdicts on what was read back are those of the run, bit for bit") {
    test_gate g = sampled_gate(chat(), "chat", {80, 97, 88});
    measurement& m = g.measured;
    m.slos = {mean(ttft) <= 100_ms,
              p50(itl) <= 11_ms,
              p75(ttft) <= 90_ms,
              error_rate <= 5_pct,
              goodput(ttft <= 1_s && itl <= 20_ms) >= 50_pct,
              mean(decode_speed) >= 90_tps};
    m.slos.push_back(output_throughput >= 90_tps);
    m.rule = rule_of({.false_fail = 0.3_pct}, 2, 3);
    m.noise = {{"mean(ttft)", 0.0712345678901234}};
    force_lengths(m.candidate[1], 1, 64);
    read_gate s = read_back(g);
    s.measured.slos = m.slos;
    for (std::size_t i = 0; i < m.candidate.size(); ++i) {
        const repeat_data& d = m.candidate[i];
        for (const record& r : d.records) {
            std::string gate;
            s.measured.candidate[i].records.push_back(
                read_record(record_json(r, "chat"), gate));
            CHECK(gate == "chat");
        }
        s.measured.candidate[i].gaps = d.gaps;
        s.measured.candidate[i].gap_offsets = d.gap_offsets;
    }
    const vector<slo_verdict> before = judge_all(m), after = judge_all(s.measured);
    REQUIRE(before.size() == after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
        const auto bytes_of = [](const slo_verdict& v) {
            json_writer j;
            j.open('{');
            write_fields(j, v);
            return j.close().text();
        };
        CHECK(bytes_of(before[i]) == bytes_of(after[i]));
    }
}

// ---- whether two runs compare -------------------------------------------------------------------

namespace {
template <class Change> std::string refused_after(Change&& change) {
    const read_gate old = read_back(chat_gate());
    scenario s = chat();
    target_facts target = tiny_model();
    change(s, target);
    const plan p = planned(s, 1);
    return refusal_of([&] { check_comparable(old, "old.json", p, target); });
}
std::string does_not_compare(const std::string& field, const std::string& was,
                             const std::string& is) {
    return "baseline is stored(\"old.json\") and does not compare: its " + field + " is \"" + was +
           "\" and this gate's is \"" + is + "\"";
}
}  // namespace

TEST_CASE("a run of the same traffic on the same model compares, whatever else is asked") {
    CHECK(refused_after([](scenario&, target_facts&) {}) == "");
    CHECK(refused_after([](scenario& s, target_facts& t) {
              s.slos = {p99(tpot) <= 1_s};
              s.requests = 20;
              s.slos = {mean(tpot) <= 50_ms, error_rate <= 1_pct};
              s.repeats = 4;
              s.judging.false_fail = 0.1_pct;
              t.url = "http://another:80";
              t.kind = target_kind::process;
          }) == "");
}

TEST_CASE("a run of another kind is refused with what differs") {
    CHECK(refused_after([](scenario&, target_facts& t) { t.model = "large"; }) ==
          does_not_compare("model", "tiny", "large"));
    CHECK(refused_after([](scenario&, target_facts& t) { t.api = "openai_completions"; }) ==
          does_not_compare("api", "openai_chat", "openai_completions"));
    CHECK(refused_after([](scenario& s, target_facts&) { s.arrivals = poisson(9_rps); }) ==
          does_not_compare("arrivals", "poisson(8 req/s)", "poisson(9 req/s)"));
    CHECK(refused_after([](scenario& s, target_facts&) {
              s.workload = synthetic{.prompt_tokens = fixed(12), .output_tokens = fixed(11)};
          }) == does_not_compare("workload", "synthetic, prompt 10 tokens, output 11 tokens",
                                 "synthetic, prompt 12 tokens, output 11 tokens"));
    CHECK(holds(refused_after([](scenario& s, target_facts&) { s.requests = 30; }),
                "its extent is \"20 requests"));
    CHECK(holds(refused_after([](scenario& s, target_facts&) { s.warmup = 5; }), "its extent is"));
    CHECK(
        holds(refused_after([](scenario& s, target_facts&) { s.options.temperature = 0.5; }),
              "its options is \"ignore_eos\" and this gate's is \"ignore_eos, temperature 0.5\""));
    CHECK(holds(
        refused_after([](scenario& s, target_facts&) { s.options.system_prompt = "be brief"; }),
        "be brief"));
    CHECK(refused_after([](scenario& s, target_facts&) { s.seed = 8; }) ==
          does_not_compare("seed", "7", "8"));
}

TEST_CASE("a load is compared by its values, and by its words where a file has no more") {
    read_gate old = read_back(chat_gate());
    const plan p = planned(chat(), 1);
    const auto refused = [&] {
        return refusal_of([&] { check_comparable(old, "old.json", p, tiny_model()); });
    };
    CHECK(old.load.values == load_hash(*p.sent));
    old.load.sent.workload_text = "other words of the same load";
    old.load.options = "";
    CHECK(refused() == "");
    old.load.values = "0123456789abcdef";
    CHECK(holds(refused(), "its workload is \"other words of the same load\""));
    old = read_back(chat_gate());
    old.load.values = "0123456789abcdef";
    CHECK(holds(refused(), "its load hash is \"0123456789abcdef\""));
    old.load.values = "";
    CHECK(refused() == "");
    old.load.extent = "more";
    CHECK(holds(refused(), "its extent is \"more\""));
}

TEST_CASE("definitions and traces of another version are refused") {
    read_gate old = read_back(chat_gate());
    const plan p = planned(chat(), 1);
    old.load.trace_hash = "0123456789abcdef";
    CHECK(refusal_of([&] { check_comparable(old, "old.json", p, tiny_model()); }) ==
          does_not_compare("trace hash", "0123456789abcdef", trace_hash(p)));
    old = read_back(chat_gate());
    old.definitions = "metrics/0";
    CHECK(refusal_of([&] { check_comparable(old, "old.json", p, tiny_model()); }) ==
          does_not_compare("definitions version", "metrics/0", "metrics/1"));
}

TEST_CASE("prompts of the same number but other words are other traffic") {
    const auto given = [](const char* second) {
        scenario s = chat();
        s.workload = prompts({"one", second});
        return s;
    };
    const read_gate old = read_back(sampled_gate(given("two"), "chat", {80, 82}));
    const auto refused = [&](const char* second) {
        const plan p = planned(given(second), 1);
        return refusal_of([&] { check_comparable(old, "old.json", p, tiny_model()); });
    };
    CHECK(refused("two") == "");
    CHECK(holds(refused("2"), "its trace hash is"));
}

TEST_CASE("a statistic that the stored run does not have in every repeat is named") {
    const auto refused = [](const slo& s, const vector<double>& ms,
                            const repeat_data* bad = nullptr, std::size_t at = 1) {
        test_gate g = sampled_gate(chat(), "chat", ms);
        if (bad) g.measured.candidate[at] = *bad;
        scenario x = chat();
        x.baseline = stored("old.json");
        x.slos = {s};
        const plan p = planned(x, 1);
        return refusal_of([&] { check_comparable(read_back(g), "old.json", p, tiny_model()); });
    };
    CHECK(refused(mean(ttft) <= 1.1 * baseline, {80, 82}) == "");
    CHECK(refused(percentile(ttft, 0.6) <= 100_ms, {80, 82}) == "");  // compared with nothing
    const std::string missing = refused(percentile(ttft, 0.6) <= 1.1 * baseline, {80, 82});
    CHECK(holds(missing, "baseline is stored(\"old.json\"): it has no value of"));
    CHECK(holds(missing, "in every repeat, write it again"));
    CHECK(holds(refused(mean(ttft) <= 1.1 * baseline, {}), "that run was invalid"));
    const repeat_data dead = repeat_of({failed(0), failed(100), failed(200)});
    CHECK(holds(refused(mean(ttft) <= 1.1 * baseline, {80, 82}, &dead), "no value of mean(ttft)"));
    CHECK(holds(refused(p75(ttft) <= 1.1 * baseline, {80, 82}, &dead), "no value of p75(ttft)"));
    CHECK(holds(refused(p75(ttft) <= 1.1 * baseline, {80, 82}, &dead, 0), "no value of p75(ttft)"));
}

TEST_CASE("of a fraction whose difference is limited a file keeps the counts of each repeat") {
    test_gate g = chat_gate();
    const slo errors = error_rate <= baseline + 1_pct,
              good = goodput(ttft <= 81_ms) >= baseline - 5_pct;
    for (const slo& s : {errors, good}) g.measured.slos.push_back(s);
    // Five of 200 fail in a row: bursts are counted by their squares, 25 of 5 misses.
    vector<request> requests;
    for (int i = 0; i < 200; ++i)
        requests.push_back(i / 5 == 10 ? failed(10.0 * i) : answered(10.0 * i, 82));
    repeat_data burst = repeat_of(requests);
    burst.index = 1;
    burst.window = g.measured.candidate[1].window;
    g.measured.candidate[1] = burst;
    const read_gate old = read_back(g);
    const vector<kept_counts> of_errors = counts_kept(old.statistics, errors.statistic),
                              of_good = counts_kept(old.statistics, good.statistic);
    REQUIRE(of_errors.size() == 2);
    CHECK(of_errors[0].misses == 0);
    CHECK(of_errors[0].requests == 20);
    CHECK(of_errors[0].effect == 1);
    CHECK(of_errors[1].misses == 5);
    CHECK(of_errors[1].requests == 200);
    CHECK(of_errors[1].effect == about(5));
    REQUIRE(of_good.size() == 2);
    CHECK(of_good[0].misses == 0);
    CHECK(of_good[1].misses == 200);
    CHECK(old.statistics.at("error_rate")[1] == about(0.025));

    scenario x = chat();
    x.baseline = stored("old.json");
    x.slos = {errors, good};
    const plan p = planned(x, 1);
    const auto refused = [&](const stored_gate& of) {
        return refusal_of([&] { check_comparable(of, "old.json", p, tiny_model()); });
    };
    CHECK(refused(old) == "");
    // A difference that was judged is no rate of its own.
    slo_verdict v;
    v.objective = errors;
    v.outcome = verdict::fail;
    v.limit = 0.01;
    for (const double more : {-0.002, 0.03}) {
        v.estimate = {more, more, more};
        g.verdicts = {v};
        CHECK(refused(read_back(g)) == "");
    }
    read_gate spoiled = old;
    spoiled.statistics["requests(error_rate)"][1] = 4;
    CHECK(holds(refused(spoiled), "no counts of error_rate in every repeat, write it again"));
    // Files of earlier versions keep none.
    CHECK(refused(read_back(chat_gate())) ==
          "baseline is stored(\"old.json\"): it has no counts of error_rate in every repeat, write it "
          "again");
}

TEST_CASE("a stored run that was itself no evidence is no baseline") {
    const auto refused = [](const std::string& json) {
        const stored_gate old = read_stored_gate(json, "old.json", "chat");
        const plan p = planned(chat(), 1);
        return refusal_of([&] { check_comparable(old, "old.json", p, tiny_model()); });
    };
    test_gate g = chat_gate();
    g.verdicts = judge_all(g.measured);
    REQUIRE(g.verdicts.size() == 3);
    CHECK(refused(file_of({g})) == "");
    // Invalid, by the client or the server.
    g.verdicts[0].outcome = verdict::invalid;
    g.verdicts[0].reason = "client: it was busy";
    g.outcome = gate_outcome::invalid;
    CHECK(refused(file_of({g})) == "baseline is stored(\"old.json\"): that run was invalid: client: "
                                   "it was busy; write it again");
    g.outcome = gate_outcome::passed;  // what only an advisory objective lacked is no fault
    CHECK(refused(file_of({g})) == "");
    // A server that sheds load looks fast.
    g.verdicts[2].estimate.value = 0.4;
    g.outcome = gate_outcome::failed;
    CHECK(refused(file_of({g})) == "baseline is stored(\"old.json\"): that run had 40 % of its "
                                   "requests fail, where 5 % may; write it again");
    // An objective of its own that it missed is its own affair.
    g.verdicts[2].estimate.value = 0;
    g.verdicts[1].outcome = verdict::fail;
    CHECK(refused(file_of({g})) == "");
    CHECK(holds(refusal_of([&] {
                    refused(replaced(file_of({g}), "\"replayed\"", "\"fresh\""));
                }),
                "\"replayed\" is allowed"));
}

// ---- calibration.json ---------------------------------------------------------------------------

TEST_CASE("a calibration is read back for its gate and statistic") {
    test_gate g = sampled_gate(chat(), "chat", {80, 84, 88}),
                other = sampled_gate(chat(), "other", {80, 80.8, 81});
    for (test_gate* x : {&g, &other}) x->calibration = calibration_of(x->measured);
    const std::string json = calibration_json({g, chat_gate("not calibrated"), other});
    const gate_calibration read = read_calibration(json, "c.json", "chat");
    const std::map<std::string, double>& noise = read.noise;
    CHECK(read.why_none == "");
    REQUIRE(noise.size() == 2);  // the error rate has none
    CHECK(noise.at("mean(ttft)") == g.calibration[0].sd);
    CHECK(noise.at("p75(ttft)") == g.calibration[1].sd);
    CHECK(read_calibration(json, "c.json", "other").noise.at("mean(ttft)") == other.calibration[0].sd);
    CHECK(read_calibration(json, "c.json", "unknown").noise.empty());
    CHECK(read_calibration(json, "c.json", "unknown").why_none ==
          "LLMBENCH_CALIBRATION: c.json has nothing of this gate, which is judged as without it; it "
          "has \"chat\", \"other\"");
}

TEST_CASE("the noise of a ratio is not that of the statistic itself") {
    test_gate g = sampled_gate(chat(), "chat", {80, 100, 80});
    g.measured.baseline = g.measured.candidate;
    g.measured.slos = {mean(ttft) <= 1.1 * baseline, mean(ttft) <= 100_ms};
    g.calibration = calibration_of(g.measured);
    const auto noise = read_calibration(calibration_json({g}), "c.json", "chat").noise;
    REQUIRE(noise.size() == 2);
    measurement m = g.measured;
    m.noise = noise;
    CHECK(prior_sd_of(m, g.measured.slos[0]) == 0.04 * std::sqrt(2.0));  // two runs' noise
    CHECK(prior_sd_of(m, g.measured.slos[1]) == g.calibration[1].sd);
    CHECK(g.calibration[1].sd > 0.1);
}

TEST_CASE("what is no calibration is refused with its name, and so is noise that can be none") {
    for (const char* bad : {"", "x", "[]", "{}", "{\"schema\":\"llmbench/result/1\"}"})
        CHECK(refusal_of([&] { read_calibration(bad, "c.json", "chat"); }) ==
              "LLMBENCH_CALIBRATION: c.json is not a calibration (llmbench/calibration/1)");
    const auto with_sd = [](const std::string& sd) {
        return read_calibration(
            "{\"schema\":\"llmbench/calibration/1\",\"gates\":[{\"name\":\"g\","
            "\"slos\":[{\"statistic\":\"mean(ttft)\",\"sd\":" +
                sd + "}]}]}",
            "c.json", "g");
    };
    CHECK(with_sd("0.07").noise.at("mean(ttft)") == 0.07);
    CHECK(with_sd("0.30").noise.at("mean(ttft)") == 0.30);
    CHECK(with_sd("0").noise.at("mean(ttft)") == 0);
    CHECK(with_sd("null").noise.empty());  // of shares, and of what had no value
    CHECK(refusal_of([&] { with_sd("0.301"); }) ==
          "LLMBENCH_CALIBRATION: c.json: gates[0].slos[0].sd is 0.301, a number from 0 to 0.3 is "
          "allowed");
    for (const char* sd : {"\"0.07\"", "-0.1", "1e9", "true", "\"NaN\"", "[0.07]"}) {
        CAPTURE(sd);
        CHECK(holds(refusal_of([&] { with_sd(sd); }), "c.json: gates[0].slos[0].sd is "));
    }
}

// ---- records.jsonl ------------------------------------------------------------------------------

TEST_CASE("a record of an older version says nothing of turns and caches") {
    std::string line = record_json(full_record(), "chat"), gate;
    line = line.substr(0, line.find(",\"cached_tokens\"")) + "}";
    const record r = read_record(line, gate);
    CHECK(r.cached_tokens == -1);
    CHECK(r.conversation == 0);
    CHECK(r.turn == 0);
    CHECK((r.hidden_tokens == 0 && r.most_prompt_tokens == 0));
    CHECK((r.reads == 0 && r.text_bytes == 0 && r.choices == 0 && r.resends == 0));
    CHECK(r.late_ns == full_record().late_ns);
}

TEST_CASE("a line is the same record however it is written") {
    const std::string good = record_json(full_record(), "chat");
    const auto again = [](const std::string& line) {
        std::string gate;
        const record r = read_record(line, gate);
        return record_json(r, gate);
    };
    CHECK(again(good) == good);
    const std::string bare = good.substr(0, good.size() - 2);  // without "}\n"
    for (const std::string& line :
         {replaced(bare, "\"gate\":\"chat\",", "") + ",\"gate\":\"chat\"}",
          replaced(good, "\"events\":4,", " \"events\" : 4 ,\t"), bare + ",\"unknown\":[1]}",
          replaced(good, "\"events\":4,", "\"events\":7,\"events\":4,"),
          replaced(good, "\"events\":4,", "\"events\":4.0,"),
          replaced(good, "\"finish_reason\":\"stop\"", "\"finish_reason\":\"st\\u006fp\"")})
        CHECK(again(line) == good);
}

TEST_CASE("a line that is not a record is refused in one clear sentence") {
    const std::string good = record_json(full_record(), "chat");
    const auto said = [](const std::string& line) {
        std::string gate;
        return refusal_of([&] { read_record(line, gate); });
    };
    CHECK(said(good) == "");
    for (const std::string& line :
         {std::string(), std::string("hello"), std::string("[1,2]"), std::string("7"),
          good.substr(0, good.size() / 2), good.substr(0, good.size() - 2)})
        CHECK(said(line) == "it is not a JSON object");
    for (const char* field :
         {"scheduled_ns", "dispatched_ns", "connected_ns", "sent_ns", "first_token_ns",
          "last_token_ns", "end_ns", "late_ns", "repeat", "prompt_tokens", "output_tokens",
          "events", "first_event_tokens", "http_status"})
        CHECK(said(replaced(good, printed("\"%s\":", field), "\"other\":")) ==
              printed("it has no field %s", field));
    CHECK(said(replaced(good, "\"arm\":\"candidate\"", "\"arm\":\"left\"")) ==
          "arm is \"left\", one of candidate, baseline is allowed");
    CHECK(said(replaced(good, "\"phase\":\"measure\"", "\"phase\":\"\"")) ==
          "phase is \"\", one of warmup, measure, after is allowed");
    CHECK(holds(said(replaced(good, "\"status\":\"ok\"", "\"status\":\"fine\"")),
                "status is \"fine\", one of ok, connect, "));
    CHECK(said(replaced(good, "\"token_source\":\"events\"", "\"token_source\":7")) ==
          "token_source is 7, one of usage, events, no_usage is allowed");
    CHECK(said(replaced(good, "\"finish_reason\":\"stop\"", "\"finish_reason\":7")) ==
          "finish_reason is 7, a text is allowed");
}

TEST_CASE("a number that is none, or that fits nowhere, is refused and not taken for zero") {
    const std::string good = record_json(full_record(), "chat");
    const auto said = [&](const std::string& part, const std::string& by) {
        std::string gate;
        return refusal_of([&] { read_record(replaced(good, part, by), gate); });
    };
    CHECK(holds(said(printed("\"scheduled_ns\":%lld", over_double), "\"scheduled_ns\":\"soon\""),
                "scheduled_ns"));
    CHECK(holds(said("\"events\":4", "\"events\":true"), "events"));
    CHECK(holds(said("\"repeat\":3", "\"repeat\":99999999999"), "repeat"));
    CHECK(holds(said("\"end_ns\":", "\"end_ns\":99999999999"), "end_ns"));
    CHECK(holds(said("\"gate\":\"chat\",", ""), "gate"));
}

TEST_CASE("an answer whose times cannot have been is refused by the field") {
    const auto said = [](auto&& spoil) {
        record r = full_record();
        spoil(r);
        return refusal_of([&] {
            std::string gate;
            read_record(record_json(r, "chat"), gate);
        });
    };
    CHECK(said([](record&) {}) == "");
    CHECK(said([](record& r) { r.first_token_ns = 1000; }) ==
          "first_token_ns is 1000, before its sent_ns, which is 9007199254740999");
    CHECK(holds(said([](record& r) { r.sent_ns = r.scheduled_ns - 1; }),
                "before its scheduled_ns"));
    CHECK(holds(said([](record& r) { r.last_token_ns = r.first_token_ns - 1; }),
                "last_token_ns is"));
    CHECK(holds(said([](record& r) { r.end_ns = r.first_token_ns; }), "end_ns is"));
    CHECK(holds(said([](record& r) { r.second_token_ns = 5; }), "second_token_ns is 5"));
    CHECK(holds(said([](record& r) { r.first_answer_ns = r.end_ns + 1; }), "first_answer_ns is"));
    CHECK(said([](record& r) { r.scheduled_ns = -9004012000000000; }) ==
          "scheduled_ns is -9.004012e+15, a whole number from 0 to 1e+18 is allowed");
    // What a failed request says of its times is counted nowhere.
    CHECK(said([](record& r) {
              r.status = request_status::timeout;
              r.first_token_ns = 1000;
          }) == "");
}

TEST_CASE("numbers of a result that can be none are refused by file and field") {
    const std::string json = file_of({chat_gate()});
    const auto said = [&](const std::string& from, const std::string& to) {
        return refusal_of([&] { read_stored_gate(replaced(json, from, to), "r.json", "chat"); });
    };
    CHECK(holds(said("\"window_from_ns\": ", "\"window_from_ns\": 1e308, \"x\": "),
                "r.json: gates[0].candidate.repeats[0].window_from_ns is 1e+308, a whole number "
                "from 0 to 1e+18 is allowed"));
    CHECK(holds(said("\"cpu_utilization\": ", "\"cpu_utilization\": -1, \"x\": "), "cpu_utilization is -1"));
    CHECK(holds(said("\"expected_requests\": ", "\"expected_requests\": 1.5, \"x\": "),
                "r.json: gates[0].judging.expected_requests is 1.5, a whole number is allowed"));
    CHECK(holds(said("\"window_to_ns\": ", "\"window_to_ns\": 1, \"x\": "),
                "window_to_ns is 1, a window ends after it began"));
    CHECK(holds(said("\"most\": ", "\"most\": 1000000, \"x\": "),
                "judging.most is 1e+06, a whole number from 0 to 1000 is allowed"));
    CHECK(holds(said("\"holm\": ", "\"calibration_repeats\": 3000000000, \"holm\": "),
                "calibration_repeats is 3e+09, a whole number from 0 to 1000 is allowed"));
}

TEST_CASE("no number of a file says how much memory reading it takes") {
    test_gate g = chat_gate();
    server_metrics& page = g.measured.candidate[0].server;
    page.is_read = true;
    page.missed_ns = {g.measured.candidate[0].window.from_ns() + 1};
    const std::string json = file_of({g});
    const auto said = [&](const std::string& from, const std::string& to) {
        return refusal_of([&] { read_stored_gate(replaced(json, from, to), "r.json", "chat"); });
    };
    CHECK(said("\"missed\"", "\"missed\"").empty());
    CHECK(holds(said("\"missed\": 1,", "\"missed\": 1000000,"),
                "server.missed is 1e+06, as many as there are times in missed_at_ns are allowed"));
    CHECK(holds(said("\"missed_at_ns\"", "\"missed_then_ns\""),
                "server.missed is 1, as many as there are times in missed_at_ns are allowed"));
    std::string names = "{";
    for (int i = 0; i <= 1000; ++i) names += printed("%s\"series_%d\": []", i > 0 ? ", " : "", i);
    CHECK(said("\"named\": {}", "\"named\": " + names + "}") ==
          "r.json: gates[0].candidate.repeats[0].server.named.series_1000 is a list, up to 1000 "
          "series are allowed");
}

TEST_CASE("an objective that a stored load cannot have is refused by what that load was") {
    const stored_gate s = read_back(chat_gate());
    CHECK(s.described.sent->described.requests == 20);
    const slo_context context(s.described);
    CHECK(refusal_of([&] { check_slo(p50(ttft) <= 100_ms, context); }) == "");
    CHECK(holds(refusal_of([&] { check_slo(output_throughput >= 5_tps, context); }),
                "the arrival rate of poisson(8 req/s)"));
    CHECK(holds(refusal_of([&] { check_slo(p99(ttft) <= 100_ms, context); }),
                "and the scenario has 20"));
    CHECK(holds(refusal_of([&] { check_slo(p50(ttft) <= 1.1 * baseline, context); }),
                "no baseline"));
}
