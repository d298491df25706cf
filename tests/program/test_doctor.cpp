// What `llmbench doctor` says that a gate finds, against gates that are drawn.
#include "llmbench.hpp"
#include "program/doctor.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

using namespace llmbench_program;

namespace {

/// Of repeats of 20 s, and a gate of 5 minutes.
noise_row reach_of(double sd, double answer_s = 1) {
    noise_row row{.sd = sd};
    set_reach(row, 10, 20, 300, answer_s);
    return row;
}
/// Whether a gate of 5 minutes at once, in slices of 12.5 s, calls so much slower a miss.
bool is_found(double slower, double sd, generator& random) {
    const slo s = mean(ttft) <= 1.0 * baseline;
    const double sd_of_slice = sd * std::sqrt(20 / 12.5);
    values_at_once v{.slices = most_slices_at_once};
    for (std::size_t i = 0; i < v.slices; ++i) {
        v.mine.add((1 + slower) * std::exp(sd_of_slice * random.normal()), i);
        v.other.add(std::exp(sd_of_slice * random.normal()), i);
    }
    static const judging_rule rule = looking_early(rule_of({}, 1, 1, 0, 1));
    return analyses_at_once(s, v, rule).at(1).outcome == verdict::fail;
}

}  // namespace

TEST_CASE("what a gate at once finds is found in about four of five runs") {
    for (const double sd : {0.002, 0.01, 0.05}) {
        CAPTURE(sd);
        generator random(7, 1);
        const double found = reach_of(sd).at_once;
        int times = 0;
        for (int i = 0; i < 500; ++i) times += is_found(found, sd, random);
        CHECK(times >= 375);
        CHECK(times <= 475);
    }
}

TEST_CASE("at once less is found than in turns, if answers are short enough for slices") {
    for (const double sd : {0.0005, 0.003, 0.02, 0.1}) {
        CAPTURE(sd);
        const noise_row row = reach_of(sd);
        CHECK(row.at_once > 0);
        CHECK(row.at_once < row.in_turns);
    }
    CHECK(reach_of(0.01, 12).at_once > 0);
    CHECK(std::isnan(reach_of(0.01, 13).at_once));  // 8 slices of 39 s
}

TEST_CASE("what is right beyond a wrong number of streams is not counted") {
    const auto right = [](long long streams, long long threads) {
        return own_error{.streams = streams, .threads = threads, .ttft_p99_s = 0, .tpot_p99_s = 0};
    };
    const auto wrong = [](long long streams, long long threads) {
        return own_error{.streams = streams, .threads = threads, .ttft_p99_s = 1, .tpot_p99_s = 0};
    };
    CHECK(right_streams({}) == 0);
    CHECK(right_streams({wrong(1, 1)}) == 0);
    CHECK(right_streams({wrong(1, 1), right(32, 1)}) == 0);
    CHECK(right_streams({right(1, 1), wrong(32, 1), right(1000, 1)}) == 1);
    CHECK(right_streams({right(1, 1), right(32, 1), wrong(1000, 1), right(1000, 2)}) == 1000);
    CHECK(right_streams({right(1, 1), right(32, 1), wrong(1000, 1), wrong(1000, 2)}) == 32);
}

TEST_CASE("streams that were not tried are not called wrong") {
    const own_error right{.streams = 32, .threads = 1, .ttft_p99_s = 0, .tpot_p99_s = 0};
    machine_findings f{.errors = {right}, .streams = 32};
    CHECK(sentence_of(f).find("more are not known") == std::string::npos);
    f.files = 300;
    CHECK(sentence_of(f).find("up to 32 streams; more are not known, as this process may open 300 files") !=
          std::string::npos);
}

TEST_CASE("only files of others may be of another run than the log") {
    const auto sent_at = [](const char* id, long long ns) {
        timed_request r{.order_ns = ns};
        r.what.id = id;
        r.what.status = request_status::ok;
        return r;
    };
    const vector<timed_request> measured{sent_at("a", 1), sent_at("b", 2)};
    true_requests truth;
    truth.requests = {sent_at("a", 1), sent_at("b", 63'000'000'000)};
    CHECK(matched_by_id(measured, truth).pairs.size() == 2);
    CHECK_THROWS_WITH_AS(matched(measured, truth, "", 0), doctest::Contains("the log of another run?"),
                         std::invalid_argument);
}

TEST_CASE("a load that the time budget has cut off says nothing of the client") {
    CHECK_FALSE(measured_error(2, 1, now_ns() - 1).has_value());
}
