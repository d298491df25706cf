// Every struct that files hold, with every value that its list of fields allows: what is read is
// what was written, and is written the same again.
#include "llmbench.hpp"
#include "core/base/field_json.hpp"
#include "core/base/random.hpp"
#include "core/measured/repeat_fields.hpp"
#include "extensions/machines/core/together.hpp"
#include "core/stored/arm_fields.hpp"
#include "core/stored/calibration.hpp"
#include "core/stored/record_json.hpp"
#include "core/stored/gate_fields.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/profile.hpp"
#include "core/reports/result_json.hpp"
#include "support/drawn_fields.hpp"
#include "support/histories.hpp"  // the judge of a history, which a result may have
#include "support/texts.hpp"
#include "extensions/capacity/core/load_curve.hpp"

#include <string>
#include <tuple>

using namespace llmbench;
using namespace llmbench::detail;
using texts::parsed;

namespace {

template <class... T>
std::string written(bool on_one_line, const T&... of) {
    json_writer j(on_one_line ? layout::one_line : layout::lines);
    j.open('{');
    write_fields(j, of...);
    return j.close().text();
}

/// `empty` is what reading begins with.
template <class... T>
void check_round_trips(const char* what, const T&... empty) {
    CAPTURE(what);
    generator random(17);
    for (int i = 0; i < 500; ++i) {
        std::tuple<T...> from(empty...), to(empty...);
        drawn_fields::drawer draws(random);
        std::apply([&](T&... x) { fields_of(draws, x...); }, from);
        if (!draws.is_sound()) continue;
        const auto json = [&](std::tuple<T...>& x) {
            return std::apply([&](T&... y) { return written(i % 2 == 0, y...); }, x);
        };
        const std::string text = json(from);
        json_reader reader;
        const json_view* const document = reader.read(text);
        REQUIRE(document);
        const stored_object object(*document, "file");
        std::apply([&](T&... x) { read_fields(object, x...); }, to);
        const std::string again = json(to);
        REQUIRE(again == text);
    }
}

/// Numbers outside of their ranges too, as a server may report them: whatever is written is read.
template <class... T>
void check_is_read(const char* what, const T&... empty) {
    CAPTURE(what);
    generator random(18);
    for (int i = 0; i < 500; ++i) {
        std::tuple<T...> from(empty...), to(empty...);
        drawn_fields::drawer draws(random, true);
        std::apply([&](T&... x) { fields_of(draws, x...); }, from);
        if (!draws.is_sound()) continue;
        const std::string text = std::apply([](T&... x) { return written(true, x...); }, from);
        json_reader reader;
        const json_view* const document = reader.read(text);
        REQUIRE(document);
        const stored_object object(*document, "file");
        CHECK_NOTHROW(std::apply([&](T&... x) { read_fields(object, x...); }, to));
    }
}

/// With a row and a count of each kind: which there are is nothing that a list draws.
variant_figures arm_with_rows() {
    variant_figures a;
    a.distributions.resize(2);
    a.distributions[0].row = {metric_id::ttft, 0, 0, 0, 0, 0};
    a.distributions[1].row = {metric_id::e2e, 0, 0, 0, 0, 0};
    a.run_values = {{metric_id::output_throughput, 0}, {metric_id::error_rate, 0}};
    a.statuses = {{request_status::ok, 0, ""}, {request_status::timeout, 0, ""}};
    return a;
}

}  // namespace

TEST_CASE("whatever a struct holds is read back as it was written, byte by byte") {
    check_round_trips("record", record(), std::string());
    check_round_trips("repeat", repeat_facts(), odd_counts(), cross_check(), vector<named_number>());
    check_round_trips("target", target_facts());
    check_round_trips("scenario", load_facts());
    check_round_trips("judging", judging_parameters(), load_conditions(), expected_load());
    check_round_trips("arm", arm_with_rows(), token_fit(), std::size_t{2},
                      vector<statistic_data>());
    check_round_trips("capacity", load_curve());
    check_round_trips("self check", self_check_t(), true);
    check_round_trips("profile", taken_profile());
    check_round_trips("rehearsal", rehearsal_report(), 0.0);
    check_round_trips("environment", environment_facts());
    check_round_trips("accelerator", accelerator_facts());
    check_round_trips("events", event_index());
    check_round_trips("calibration", vector<calibrated_gate>());
}

TEST_CASE("a profile that is read says what it said, for pages that are made again") {
    const taken_profile taken{.start = {"POST /start_profile", "answered HTTP 200", "", true, true},
                              .stop = {"POST /stop_profile", "answered HTTP 200", "", true, true},
                              .load_s = 5,
                              .requests = 41,
                              .files = "it is in /tmp"};
    const std::string text = written(true, taken);
    json_reader reader;
    taken_profile again;
    read_fields(stored_object(*reader.read(text), "file"), again);
    CHECK(profile_text(again) == profile_text(taken));
    CHECK(texts::holds(profile_text(again), "profile: 5 s of the same load, 41 requests"));
}

TEST_CASE("no number of a server makes a file that cannot be read") {
    check_is_read("record", record(), std::string());
    check_is_read("repeat", repeat_facts(), odd_counts(), cross_check(), vector<named_number>());
    check_is_read("arm", arm_with_rows(), token_fit(), std::size_t{2}, vector<statistic_data>());
}

TEST_CASE("a record's list has all that a record has") {
    record r;
    // One more member, and this does not compile: it is a field as well, but for `same` and `exempt`,
    // which follow from other records and from side tasks.
    auto& [id, variant, phase, repeat, scheduled, dispatched, connected, sent, first, last, end, second,
           answer, late, prompt, output, source, events, first_tokens, status, http, finish, error,
           cached, reasoning, hidden, at_once, conversation, turn, depth, workload_part, reads, first_read,
           unknown_gaps, first_early, textless, bytes, most_prompt, most_output, asked, shared, choices, question, right, graded,
           hash, same, exempt, model, opening, forced, from_cache, resends, idle] = r;
    id = "x";
    right = true;  // written where there was a question
    question = 7;
    graded = "7";
    hash = opening = 7;
    asked = 1;  // written of what is made up, forced and reported
    shared = 1;
    forced = true;
    idle = 7;  // written where the connection was lost
    depth = workload_part = 1;  // written where they are not 0
    unknown_gaps = at_once = 1;
    first_early = textless = 1;
    last = 1, end = 3;
    model = "small";
    from_cache = true;
    CHECK(parsed(written(true, r, std::string())).get<picojson::object>().size() == 52 + 1);
}

TEST_CASE("a clock that moves moves every time, and nothing else") {
    generator random(5);
    for (int i = 0; i < 500; ++i) {
        repeat_data d;
        odd_counts odd;
        cross_check checked;
        vector<named_number> statistics;
        record r;
        std::string gate;
        drawn_fields::drawer draws(random);
        fields_of(draws, d, odd, checked, statistics);
        fields_of(draws, r, gate);
        const long long from = d.window.from_ns(), to = d.window.to_ns(), by_ns = 1000003;
        if (!draws.is_sound() || from == 0) continue;
        // Files have other times after the window began: of them alone its ends are others.
        const auto ends = [](long long a, long long b) {
            return printed("\"window_from_ns\":%lld,\"window_to_ns\":%lld,", a, b);
        };
        const std::string was = written(true, d, odd, checked, statistics);
        move_clock(d, by_ns);
        CHECK(written(true, d, odd, checked, statistics) ==
              texts::replaced(was, ends(from, to), ends(from + by_ns, to + by_ns)));
        record later = r;
        move_clock(later, by_ns);
        for (long long record::*time :
             {&record::scheduled_ns, &record::dispatched_ns, &record::connected_ns,
              &record::sent_ns, &record::first_token_ns, &record::second_token_ns,
              &record::first_answer_ns, &record::last_token_ns, &record::end_ns}) {
            CHECK(later.*time == (r.*time == 0 ? 0 : r.*time + by_ns));
            later.*time = r.*time;
        }
        CHECK(written(true, later, gate) == written(true, r, gate));
    }
}
