// A run that is over, read from its three files, whatever stands in them.
#include "effects/gates/stored_run.hpp"
#include "core/stored/record_json.hpp"
#include "core/reports/result_json.hpp"
#include "support/sample_gates.hpp"
#include "support/scratch.hpp"
#include "support/texts.hpp"
#include "support/timelines.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;
using namespace texts;
using namespace timelines;

namespace {

/// The files of a gate of two repeats.
struct stored_files {
    std::string result{}, records{}, events{};
};
stored_files files_of_a_run() {
    test_gate g;
    g.what = planned({.workload = synthetic{.prompt_tokens = fixed(10), .output_tokens = fixed(11)},
                      .arrivals = poisson(8_rps),
                      .requests = 20,
                      .slos = {mean(ttft) <= 100_ms}},
                     1);
    g.what.name = "chat";
    g.target = tiny_model();
    stored_files f;
    event_index index;
    for (int k = 0; k < 2; ++k) {
        repeat_data d = repeat_of_ttft(80 + k, k);
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            d.records[i].repeat = k;
            index.offsets.push_back(static_cast<long long>(f.events.size()));
            for (std::size_t n = 0; n < gap_count(d.records[i]); ++n) {
                const std::uint32_t gap = d.gaps[d.gap_offsets[i] + n];
                for (int b = 0; b < 4; ++b) f.events += static_cast<char>(gap >> (8 * b));
            }
            f.records += record_json(d.records[i], "chat");
        }
        g.measured.candidate.push_back(d);
    }
    g.measured.slos = g.what.judged->slos;
    g.measured.rule = g.what.judged->rule;
    judge(g);
    fnv1a hash;
    hash.add(f.events.data(), f.events.size());
    index.bytes = static_cast<long long>(f.events.size());
    index.hash = hash.text();
    f.result = result_json({g}, {}, index, 0);
    return f;
}
stored_run read(const stored_files& f, const files::scratch& at) {
    std::ofstream(at.file("result.json")) << f.result;
    std::ofstream(at.file("records.jsonl")) << f.records;
    std::ofstream(at.file("events.bin"), std::ios::binary) << f.events;
    return read_stored_run(at.file("records.jsonl"), "chat");
}
std::string refused(const stored_files& f) {
    const files::scratch at;
    return refusal_of([&] { read(f, at); });
}
std::string without_first_events(const std::string& records, const std::string& by) {
    const std::size_t from = records.find("\"events\":"), to = records.find(',', from);
    return records.substr(0, from) + "\"events\":" + by + records.substr(to);
}

}  // namespace

TEST_CASE("a run is read with its gaps, and without events.bin with its times") {
    stored_files f = files_of_a_run();
    const files::scratch at;
    const stored_run whole = read(f, at);
    CHECK(whole.problem_of_events.empty());
    REQUIRE(whole.gate.seen.candidate.size() == 2);
    CHECK(whole.gate.seen.candidate[0].gaps[0] > 0);
    f.events[0] ^= 1;
    const stored_run other = read(f, at);
    CHECK(holds(other.problem_of_events, "its hash differs"));
    CHECK(other.gate.seen.candidate[0].records.size() ==
          whole.gate.seen.candidate[0].records.size());
}

TEST_CASE("a record that tells of more events than there are is refused by its line") {
    stored_files f = files_of_a_run();
    const std::string sound = f.records;
    for (const char* events : {"2000000000", "1e308", "10000001", "-1", "1.5"}) {
        f.records = without_first_events(sound, events);
        CAPTURE(events);
        CHECK(holds(refused(f), "records.jsonl:1: events is "));
    }
    f.records = without_first_events(sound, "9000000");
    CHECK(holds(refused(f), "records.jsonl:1: events is 9000000: events.bin does not hold so many "
                            "gaps"));
    f.records = without_first_events(sound, "1");
    CHECK(holds(refused(f), "records.jsonl:2: events is "));
    CHECK(holds(refused(f), "its gaps are elsewhere in events.bin than result.json says"));
}

TEST_CASE("without events.bin no more room is made for gaps than a run ever takes") {
    const described_events none{};
    line_gaps gaps(none, nullptr, 25000);
    record r;
    r.events = 10001;
    repeat_data to;
    CHECK(gaps.of(r, 0, &to).size() == 10000);
    CHECK(gaps.of(r, 1, nullptr).size() == 0);  // another gate's
    CHECK(gaps.of(r, 2, &to).size() == 10000);
    CHECK(holds(refusal_of([&] { gaps.of(r, 3, &to); }), "more gaps than are ever kept"));
    to.gaps_counted = true;  // what is counted is not kept
    CHECK(gaps.of(r, 4, &to).size() == 10000);
}
