// Whether an answer can have come as its numbers say, and what is sent again.
#include "core/answers/timeline.hpp"
#include "core/measured/credible.hpp"
#include "support/timelines.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;

namespace {
stream_event content_of(int bytes) {
    stream_event e;
    e.content = true;
    e.text_bytes = bytes;
    return e;
}
}  // namespace

TEST_CASE("a record tells how its content was read, and how much text it was") {
    request q(0);
    for (const double ms : {100.0, 100.0, 120.0, 140.0, 140.0, 140.0}) q.event(ms, content_of(5));
    const record r = q.finish(150).usage(150, 10, 6).done(150).record();
    CHECK(r.reads == 3);
    CHECK(r.first_read_events == 2);
    CHECK(r.events == 6);
    CHECK(r.text_bytes == 30);
    CHECK(r.choices == 1);
    CHECK(events_read_together(r) == 3);
    const record none = request(0).done(10).record();
    CHECK(none.reads == 0);
    CHECK(none.first_read_events == 0);
    CHECK(none.text_bytes == 0);
}

TEST_CASE("of a record that does not tell how it was read, the stamps alone do") {
    record r = answered(0, 900, 0).record();
    r.reads = r.first_read_events = r.text_bytes = 0;
    CHECK(is_in_one_piece(r));
    r = answered(0, 900, 10).record();
    r.reads = r.first_read_events = r.text_bytes = 0;
    CHECK_FALSE(is_in_one_piece(r));
    CHECK_FALSE(begins_in_a_burst(r));
    CHECK(events_read_together(r) == 0);
    CHECK_FALSE(usage_is_over_content(r));
    r.output_tokens = 1 + 16 * 10 + 1;
    CHECK(usage_is_over_content(r));
    r.token_source = token_origin::events;
    CHECK_FALSE(usage_is_over_content(r));
}

TEST_CASE("an answer in one piece that was asked for is none that was buffered") {
    record r = answered(0, 900, 0).record();
    r.first_event_tokens = r.output_tokens;  // a document, which tells its tokens
    CHECK_FALSE(is_in_one_piece(r));
    CHECK_FALSE(begins_in_a_burst(r));
}

TEST_CASE("what is sent again counts as failed where it is over 1 percent, and more than one") {
    const auto of = [](int n, int resent) {
        repeat_data d = steady_repeat(80, n);
        for (int i = 0; i < resent; ++i) d.records[static_cast<std::size_t>(i)].resends = 1;
        return d;
    };
    const auto failed = [](repeat_data d) {
        fail_frequent_resends(d);
        int n = 0;
        for (const record& r : d.records) n += r.status != request_status::ok;
        return n;
    };
    CHECK(failed(of(200, 0)) == 0);
    CHECK(failed(of(200, 2)) == 0);
    CHECK(failed(of(200, 3)) == 3);
    CHECK(failed(of(199, 2)) == 2);
    for (const int few : {1, 5, 99}) CHECK(failed(of(few, 1)) == 0);  // an accident
    CHECK(failed(of(5, 2)) == 2);
    // A server may tire of a connection that nobody uses at the very moment of a send.
    repeat_data tired = of(200, 90);
    for (record& r : tired.records) if (r.resends > 0) r.idle_ns = 1'000'000'000;
    CHECK(failed(tired) == 0);
    for (std::size_t i = 0; i < 3; ++i) tired.records[i].idle_ns = 999'999'999;
    CHECK(failed(tired) == 3);

    repeat_data d = of(20, 3);
    d.records[0].phase = run_phase::warmup;
    d.records[1].status = request_status::timeout;
    d.records[2].right = true;
    d.records[2].answer_hash = 7;
    fail_frequent_resends(d);
    CHECK_FALSE(*d.records[2].right);
    CHECK(d.records[2].answer_hash == 0);
    CHECK(d.records[0].status == request_status::ok);
    CHECK(d.records[1].status == request_status::timeout);
    CHECK(d.records[2].status == request_status::connect);
    CHECK(std::string(d.records[2].error) ==
          "the server closed the kept connection without an answer");
    CHECK(d.records[3].status == request_status::ok);
}

TEST_CASE("an answer without a finish reason broke off where others have one") {
    repeat_data d = steady_repeat(80, 20);
    for (record& r : d.records) r.finish_reason = "";
    const auto failed = [](repeat_data& of) {
        fail_unfinished([&](auto&& f) {
            for (record& r : of.records) f(r);
        });
        int n = 0;
        for (const record& r : of.records) n += r.status == request_status::truncated;
        return n;
    };
    CHECK(failed(d) == 0);  // a server that tells none
    for (int i = 0; i < 5; ++i) d.records[static_cast<std::size_t>(i)].part = 1;
    d.records[0].finish_reason = "stop";
    d.records[1].right = true;
    d.records[1].answer_hash = 7;
    d.records[2].status = request_status::timeout;
    CHECK(failed(d) == 3);  // of this part of the load alone
    CHECK(d.records[1].status == request_status::truncated);
    CHECK(std::string(d.records[1].error) ==
          "the answer ended without a finish reason, which others have");
    CHECK_FALSE(*d.records[1].right);
    CHECK(d.records[1].answer_hash == 0);
    CHECK(d.records[2].status == request_status::timeout);
    CHECK_FALSE(d.records[3].right);
}

TEST_CASE("a few finish reasons among many answers flip none of the others") {
    for (const int told : {1, 2, 3}) {
        CAPTURE(told);
        repeat_data d = steady_repeat(80, 40);
        for (std::size_t i = 0; i < d.records.size(); ++i)
            d.records[i].finish_reason = static_cast<int>(i) < told ? "length" : "";
        fail_unfinished([&](auto&& f) {
            for (record& r : d.records) f(r);
        });
        int failed = 0;
        for (const record& r : d.records) failed += r.status != request_status::ok;
        CHECK(failed == (told == 3 ? 37 : 0));  // over 5 %
    }
}

TEST_CASE("usage has a token for each event of a reasoned answer, and no more than were asked for") {
    record r;
    r.token_source = token_origin::usage;
    r.events = 21;
    r.output_tokens = 19;
    r.first_token_ns = r.first_answer_ns = 1000;
    CHECK_FALSE(usage_is_under_events(r));  // a router may have cut the text anew
    r.first_answer_ns = 2000;
    CHECK(usage_is_under_events(r));
    r.output_tokens = 20;
    CHECK_FALSE(usage_is_under_events(r));
    r.reasoning_tokens = 21;
    CHECK(usage_is_under_events(r));
    r.token_source = token_origin::events;
    CHECK_FALSE(usage_is_under_events(r));

    r.output_tokens = 21;
    CHECK_FALSE(is_over_length(r));  // nobody said how many
    r.most_output_tokens = 20;
    CHECK_FALSE(is_over_length(r));
    r.output_tokens = 22;
    CHECK(is_over_length(r));
    r.output_tokens = 21;
    r.token_source = token_origin::usage;
    CHECK(is_over_length(r));
    r.output_tokens = 20;
    CHECK_FALSE(is_over_length(r));
}
