// Shards of a load as their files tell them: which are one run, and which are refused by name.
#include "llmbench.hpp"
#include "core/judging/columns.hpp"
#include "core/stored/stored.hpp"
#include "extensions/machines/core/together.hpp"
#include "core/reports/result_json.hpp"
#include "core/wire/http.hpp"
#include "extensions/simulated/service.hpp"
#include "support/sample_gates.hpp"
#include "support/texts.hpp"
#include "support/timelines.hpp"

#include <cstddef>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;
using namespace texts;
using namespace timelines;
using sample_measurements::measurement;

namespace {

scenario chat() {
    return {.workload = synthetic{.prompt_tokens = fixed(10), .output_tokens = fixed(11)},
            .arrivals = poisson(8_rps),
            .requests = 20,
            .repeats = 3,
            .slos = {mean(ttft) <= 100_ms},
            .seed = 7};
}

/// One of `count` shards, as its files tell it: every answer took so long to begin.
stored_shard shard(std::size_t index, std::size_t count, const scenario& s = chat(),
                   std::uint64_t nonce = 42) {
    test_gate g;
    g.what = planned(s, 1);
    g.what.name = "chat";
    g.what.shard = {index, count};
    g.what.nonce = nonce;
    g.what.max_skew_s = 0.05;
    g.target = tiny_model();
    for (int k = 0; k < 3; ++k) {
        repeat_data d = repeat_of_ttft(80 + static_cast<double>(index), k);
        rank_part r;
        r.index = static_cast<int>(index);
        r.count = static_cast<int>(count);
        r.start_ns = d.window.from_ns() - 3000000;
        d.ranks = {r};
        g.measured.candidate.push_back(d);
    }
    g.measured.max_skew_s = 0.05;
    g.measured.slos = g.what.judged->slos;
    g.measured.rule = g.what.judged->rule;
    judge(g);
    stored_shard out{printed("shard-%zu", index),
                     read_stored_gate(result_json({g}, {}, {}, 0), "r.json", "chat")};
    for (std::size_t k = 0; k < 3; ++k) {  // what records.jsonl has
        const repeat_data& from = g.measured.candidate[k];
        out.gate.seen.candidate.change(k, [&](repeat_data& to) {
            to.records = from.records;
            to.gaps = from.gaps;
            to.gap_offsets = from.gap_offsets;
            for (std::size_t i = 0; i < to.records.size(); ++i)
                to.records[i].id = printed("llmbench-1c-%zu-%zu", k, index + i * count);
        });
    }
    return out;
}
std::string refusal_of_shards(vector<stored_shard> all) {
    return refusal_of([&] { gathered(std::move(all), {mean(ttft) <= 100_ms}); });
}

scenario at_once_chat() {
    return {.baseline = endpoint{.url = "http://base:8000"},
            .pairs = at_once,
            .workload = synthetic{.prompt_tokens = fixed(10), .output_tokens = fixed(1)},
            .arrivals = poisson(5_rps),
            .duration = 2_min,
            .repeats = 1,
            .slos = {mean(ttft) <= 1.1 * baseline, p90(ttft) <= 1.2 * baseline},
            .seed = 7};
}
/// What one of `count` programs measured of a variant, on a clock of its own: the candidate's
/// answers begin 1 ms later.
repeat_data part_at_once(run_variant variant, std::size_t index, std::size_t count) {
    vector<request> mine;
    for (std::size_t i = index; i < 600; i += count)
        mine.push_back(answered(200.0 * static_cast<double>(i),
                                (variant == run_variant::baseline ? 20.0 : 21.0) +
                                    static_cast<double>(i % 7)));
    repeat_data d = repeat_of(mine);
    d.variant = variant;
    d.index = 0;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        d.records[i].variant = variant;
        d.records[i].id = request_id(id_prefix(1, variant, 0), index + i * count);
        // The last program is late with the baseline's.
        if (variant == run_variant::baseline && (index + i * count) % 6 == 5)
            d.records[i].late_ns = 30000000;
    }
    d.window = time_interval::between(at_ms(0), at_ms(120000));
    d.ranks = {rank_part{}};
    d.ranks[0].index = static_cast<int>(index);
    d.ranks[0].count = static_cast<int>(count);
    d.ranks[0].start_ns = at_ms(0);
    move_clock(d, 1000000000000 * static_cast<long long>(index));
    return d;
}
measurement at_once_of(const repeat_data& mine, const repeat_data& other) {
    measurement m;
    m.is_at_once = m.by_slices = true;
    m.candidate = {mine};
    m.baseline = {other};
    const plan p = planned(at_once_chat(), 1);
    m.slos = p.judged->slos;
    m.rule = p.judged->rule;
    return m;
}
stored_shard shard_at_once(std::size_t index, std::size_t count) {
    test_gate g;
    g.what = planned(at_once_chat(), 1);
    g.what.name = "chat";
    g.what.shard = {index, count};
    g.target = g.baseline = tiny_model();
    g.baseline.url = "http://base:8000";
    g.measured = at_once_of(part_at_once(run_variant::candidate, index, count),
                            part_at_once(run_variant::baseline, index, count));
    judge(g);
    stored_shard out{printed("shard-%zu", index),
                     read_stored_gate(result_json({g}, {}, {}, 0), "r.json", "chat")};
    for (const run_variant v : {run_variant::candidate, run_variant::baseline})
        out.gate.seen.variant(v).change(0, [&](repeat_data& to) {
            const repeat_data from = part_at_once(v, index, count);
            to.records = from.records;
            to.gaps = from.gaps;
            to.gap_offsets = from.gap_offsets;
        });
    return out;
}

}  // namespace

TEST_CASE("shards are one gate again, with its load in its own words") {
    const vector<stored_shard> all = {shard(1, 3), shard(0, 3), shard(2, 3)};
    const std::size_t each = all[0].gate.seen.candidate[0].records.size();
    const measured_gate g = gathered(all, {mean(ttft) <= 100_ms});
    REQUIRE(g.seen.candidate.size() == 3);
    for (const repeat_data& d : g.seen.candidate) {
        CHECK(d.records.size() == 3 * each);
        REQUIRE(d.ranks.size() == 3);
        for (int i = 0; i < 3; ++i) CHECK(d.ranks[static_cast<std::size_t>(i)].index == i);
        CHECK(d.window.from_ns() - d.ranks[0].start_ns == 3000000);
    }
    CHECK(g.seen.max_skew_s == 0.05);
    const plan whole = planned(chat(), 1);
    CHECK(arrival_text(g.what.sent->arrivals) == arrival_text(whole.sent->arrivals));
    CHECK(extent_text(g.what) == extent_text(whole));
    CHECK(options_text(g.what) == options_text(whole));
    CHECK(limits_text(g.what) == limits_text(whole));
    CHECK(g.what.sent->workload_text == whole.sent->workload_text);
    CHECK(trace_hash(g.what) == trace_hash(whole));
    CHECK(expected_requests(g.what) == 20);
    CHECK(g.what.sent->seed == 7);
    CHECK(g.what.nonce == 42);
    CHECK(g.target.url == tiny_model().url);
}

TEST_CASE("shards of both variants at once have the columns and the verdicts of one program") {
    measurement whole = at_once_of(part_at_once(run_variant::candidate, 0, 1),
                                   part_at_once(run_variant::baseline, 0, 1));
    repeat_data &mine = whole.candidate[0], &other = whole.baseline[0];
    note_lateness(mine, &other);
    note_lateness(other, &mine);
    REQUIRE(mine.late_stretches.size() > 0);
    for (const std::size_t count : {2u, 3u}) {
        vector<stored_shard> all;
        for (std::size_t i = count; i-- > 0;) all.push_back(shard_at_once(i, count));
        const measured_gate g = gathered(std::move(all), at_once_chat().slos);
        CHECK(g.baseline.url == "http://base:8000");
        CHECK(g.what.judged->has_baseline);
        CHECK(g.what.judged->by_slices);
        REQUIRE(g.seen.candidate.size() == 1);
        REQUIRE(g.seen.baseline.size() == 1);
        CHECK(g.seen.candidate[0].late_stretches.size() == mine.late_stretches.size());
        CHECK(g.seen.baseline[0].late_stretches.size() == other.late_stretches.size());
        measurement m;
        static_cast<sample_measurements::open_evidence&>(m) = g.seen;
        static_cast<judging_parameters&>(m) = g.judged_by;
        REQUIRE(m.slos.size() == 2);
        for (const slo& s : m.slos) {
            const objective_columns a = columns_of(whole, s), b = columns_of(m, s);
            REQUIRE(a.at_once.size() == 1);
            REQUIRE(b.at_once.size() == 1);
            CHECK(b.at_once[0].slices == 24);
            CHECK(b.at_once[0].mine.values == a.at_once[0].mine.values);
            CHECK(b.at_once[0].mine.slices == a.at_once[0].mine.slices);
            CHECK(b.at_once[0].other.values == a.at_once[0].other.values);
            CHECK(b.at_once[0].other.slices == a.at_once[0].other.slices);
            CHECK(str(sample_measurements::judged(m, s).line()) ==
                  str(sample_measurements::judged(whole, s).line()));
        }
    }
}

TEST_CASE("shards of other baselines, or whose variants were sent otherwise, are refused") {
    const auto spoiled = [](auto&& spoil) {
        stored_shard s = shard_at_once(1, 2);
        spoil(s.gate);
        return refusal_of_shards({shard_at_once(0, 2), s});
    };
    const auto spoiled_baseline = [&](auto&& spoil) {
        return spoiled([&](stored_gate& g) { g.seen.baseline.change(0, spoil); });
    };
    CHECK(spoiled([](stored_gate&) {}) == "");
    CHECK(spoiled([](stored_gate& g) { g.baseline.url = "http://other:8000"; }) ==
          "shard-1 belongs to another load: baseline \"http://other:8000\", in shard-0 "
          "\"http://base:8000\"");
    CHECK(holds(spoiled([](stored_gate& g) { g.baseline.model = "m2"; }), "model of the baseline"));
    CHECK(holds(spoiled([](stored_gate& g) { g.baseline.options = "x"; }),
                "options of the baseline"));
    CHECK(holds(spoiled([](stored_gate& g) { g.seen.baseline.pop_back(); }), "pairs \"\""));
    CHECK(holds(spoiled_baseline([](repeat_data& d) {
                    d.window = time_interval::between(d.window.from_ns(), d.window.to_ns() + 1);
                }),
                "pairs \"1, twins apart\", in shard-0 \"1, at once\""));
    const std::string apart = "shard-1: in repeat 0 both variants did not begin together";
    CHECK(spoiled_baseline([](repeat_data& d) { ++d.ranks[0].start_ns; }) == apart);
    CHECK(spoiled_baseline([](repeat_data& d) { d.ranks.clear(); }) == apart);
    CHECK(spoiled_baseline([](repeat_data& d) { d.index = 1; }) == apart);
}

TEST_CASE("shards that are missing or there twice are refused by number and name") {
    CHECK(refusal_of_shards({shard(0, 5), shard(3, 5), shard(1, 5)}) ==
          "of 5 shards these are missing: 2, 4");
    stored_shard again = shard(1, 2);
    again.directory = "copy";
    CHECK(refusal_of_shards({shard(0, 2), shard(1, 2), again}) ==
          "shard 1 is there twice: shard-1 and copy");
    CHECK(refusal_of_shards({shard(0, 2), shard(1, 3)}) ==
          "shard-1 is one of 3 shards, shard-0 one of 2");
    stored_shard whole = shard(0, 1);
    CHECK(holds(refusal_of_shards({whole}), "shard-0 is no shard of a load"));
}

TEST_CASE("shards of another run, trace, version, model or limit are refused with both values") {
    CHECK(holds(refusal_of_shards({shard(0, 2), shard(1, 2, chat(), 43)}),
                "shard-1 belongs to another load: run \"000000000000002b\", in shard-0 "
                "\"000000000000002a\""));
    scenario other = chat();
    other.arrivals = poisson(9_rps);
    CHECK(holds(refusal_of_shards({shard(0, 2), shard(1, 2, other)}), "trace hash \""));
    other = chat();
    other.limits.total = 10_s;
    CHECK(holds(refusal_of_shards({shard(0, 2), shard(1, 2, other)}), "limits \""));
    const auto spoiled = [](auto&& spoil) {
        stored_shard s = shard(1, 2);
        spoil(s.gate);
        return refusal_of_shards({shard(0, 2), s});
    };
    CHECK(holds(spoiled([](stored_gate& g) { g.version = "0.0.9"; }), "version \"0.0.9\""));
    CHECK(holds(spoiled([](stored_gate& g) { g.definitions = "metrics/0"; }),
                "definitions version \"metrics/0\""));
    CHECK(holds(spoiled([](stored_gate& g) { g.target.model = "m2"; }), "model \"m2\""));
    CHECK(holds(spoiled([](stored_gate& g) { g.target.url = "http://other:8000"; }),
                "shard-1 belongs to another load: server \"http://other:8000\""));
    CHECK(holds(spoiled([](stored_gate& g) { g.seen.candidate.pop_back(); }),
                "number of repeats \"2\""));
    CHECK(holds(spoiled([](stored_gate& g) {
                    g.seen.candidate.change(1, [](repeat_data& d) { d.ranks.clear(); });
                }),
                "shard-1: repeat 1 does not say when it began"));
}

TEST_CASE("shards whose machines were not at one time are refused, whatever their own clocks say") {
    const auto with_leads = [](const clock_ahead& a, const clock_ahead& b) {
        stored_shard first = shard(0, 2), second = shard(1, 2);
        for (std::size_t i = 0; i < first.gate.seen.candidate.size(); ++i)
            first.gate.seen.candidate.change(i, [&](repeat_data& d) { d.ranks[0].lead = a; });
        second.gate.seen.candidate.change(2, [&](repeat_data& d) { d.ranks[0].lead = b; });
        return refusal_of_shards({first, second});
    };
    // Seconds of a Date, and a round trip, are no difference.
    CHECK(with_leads({-1.5, 0.5}, {-0.2, 1.1}) == "");
    CHECK(with_leads({-1.5, 0.5}, {0.53, 2.4}) == "");
    CHECK(with_leads({-1.5, 0.5}, {}) == "");
    CHECK(with_leads({-1.5, 0.5}, {14, 12}) == "");  // several clocks behind one address
    CHECK(with_leads({-1.5, 0.5}, {10.5, 12.5}) ==
          "in repeat 2 the clocks of shard-1 and shard-0 were at least 10 s apart, by the Date of the "
          "server's answers: they sent no load together; up to 50 ms is allowed");
    CHECK(holds(with_leads({10.5, 12.5}, {-1.5, 0.5}), "of shard-0 and shard-1 were at least 10 s"));
}

TEST_CASE("a shard sees the server's clock in the Date of its answers") {
    for (const long long at : {0ll, 784111777ll, 951782400ll, 951868799ll, 1795381483ll})
        CHECK(seconds_of_http_date(http_date_of(at)) == static_cast<double>(at));
    CHECK(http_date_of(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT");
    clock_ahead lead;
    CHECK_FALSE(lead.is_reported());
    const double reported = *seconds_of_http_date("Sun, 06 Nov 1994 08:49:37 GMT");
    CHECK(reported == 784111777);
    note_date(lead, reported + 12, reported + 12.25, reported);
    note_date(lead, reported + 73.5, reported + 73.75, reported + 61);
    CHECK(lead.low_s == 10.5);
    CHECK(lead.high_s == 12.25);
    for (const char* none : {"", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nuv 1994 08:49:37 GMT",
                             "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
                             "Sunday, 06-Nov-94 08:49:37 GMT", "784111777"})
        CHECK_FALSE(seconds_of_http_date(none));
}

TEST_CASE("conversations in shards are conversations again, with as many first turns") {
    scenario s = chat();
    s.workload = conversations{};
    s.arrivals = closed_loop(4);
    s.requests = 40;
    s.slos = {mean(first_turn_ttft) <= 100_ms};
    const plan whole = planned(s, 1);
    const measured_gate g = gathered({shard(0, 2, s), shard(1, 2, s)}, s.slos);
    const slo_context is(g.what), was(whole);
    CHECK(is.has_turns);
    CHECK(is.requests == was.requests);
    CHECK(selected_of(is.kinds, {}, turns(1, 1)) == selected_of(was.kinds, {}, turns(1, 1)));
    CHECK(selected_of(was.kinds, {}, turns(1, 1)) < was.requests);
    for (const slo& x : s.slos) CHECK_NOTHROW(check_slo(x, is));
}

TEST_CASE("a shard is no baseline") {
    const stored_gate old = shard(1, 2).gate;
    const plan p = planned(chat(), 1);
    CHECK(refusal_of([&] { check_comparable(old, "old.json", p, tiny_model()); }) ==
          "baseline is stored(\"old.json\"): of that run shard 1 of 2 is measured: judge_shards "
          "judges all of them");
}
