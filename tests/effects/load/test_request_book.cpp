// What a client thread keeps of its requests, and passes on.
#include "effects/load/request_book.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

struct load {
    load_plan what{};
    load_target target{};
    load_order order{};
    load_state shared{};
    outbox out{};
    load() {
        order.what = &what;
        order.target = &target;
        order.id_prefix = id_prefix(7, run_variant::baseline, 3);
        order.variant = run_variant::baseline;
        order.number = 3;
        order.warmup = 1;
        order.max_gaps = 1000000;
    }
    load(const load&) = delete;
    load& operator=(const load&) = delete;
};
/// A completed request of so many events, a millisecond apart.
record answered(int events, long long first_ns) {
    record r;
    r.status = request_status::ok;
    r.scheduled_ns = first_ns - 1000000;
    r.first_token_ns = first_ns;
    r.last_token_ns = r.end_ns = first_ns + (events - 1) * 1000000ll;
    r.events = r.output_tokens = events;
    r.first_event_tokens = 1;
    return r;
}
gap_list gaps_of(int events) {
    gap_list g;
    for (int i = 1; i < events; ++i) g.push_back(1000);
    return g;
}
void add(request_book& b, std::size_t index, int events, long long first_ns) {
    b.add({index, first_ns - 1000000, -1}, answered(events, first_ns), gaps_of(events));
}

}  // namespace

TEST_CASE("a record is told whose it is") {
    load l;
    l.what = with_traffic(l.what, [&](planned_traffic& t) { t.stride = 4; });
    request_book book(l.order, l.shared);
    add(book, 0, 3, 1000000000);
    add(book, 6, 3, 1000000000);
    const auto& kept = book.finished().requests();
    REQUIRE(kept.size() == 2);
    CHECK(kept[0].what.phase == run_phase::warmup);
    CHECK(kept[1].index == 6);
    const record& r = kept[1].what;
    CHECK(str(r.id) == "11bbec40-0007-8b03-8000-000000000006");
    CHECK(r.variant == run_variant::baseline);
    CHECK(r.repeat == 3);
    CHECK(r.phase == run_phase::measure);
    CHECK(r.conversation == 1);
    CHECK(r.turn == 2);
}

TEST_CASE("whoever watches the load is told of each request") {
    load l;
    request_book book(l.order, l.shared);
    add(book, 0, 3, 1000000000);
    record lost;
    lost.status = request_status::unsent;
    book.add({1, 0, -1}, std::move(lost), {});
    CHECK(l.shared.done == 2);
    CHECK(l.shared.failed == 1);
    CHECK(l.shared.gaps == 2);
}

TEST_CASE("records and their gaps go to the disk in the order in which they ended") {
    load l;
    l.order.out = &l.out;
    request_book book(l.order, l.shared);
    request_book other(l.order, l.shared);  // of another thread, or of the other load
    book.try_hand_over();                   // of nothing
    add(book, 5, 3, 1000000000);
    add(other, 2, 2, 1000000000);
    add(book, 3, 2, 1000000000);
    delivered_requests written;
    l.out.take(written);
    REQUIRE(written.records.size() == 3);
    CHECK(str(written.records[0].id) == "11bbec40-0007-8b03-8000-000000000005");
    CHECK(str(written.records[1].id) == "11bbec40-0007-8b03-8000-000000000002");
    CHECK(str(written.records[2].id) == "11bbec40-0007-8b03-8000-000000000003");
    CHECK(written.gaps.size() == 4);
    CHECK_FALSE(book.has_unwritten());

    add(book, 7, 2, 1000000000);
    book.hand_over();
    delivered_requests rest;
    l.out.take(rest);
    CHECK(rest.records.size() == 1);
    CHECK(book.finished().requests().size() == 3);  // and all of them are kept
}

TEST_CASE("without anybody who writes, nothing waits to be written") {
    load l;
    request_book book(l.order, l.shared);
    add(book, 0, 2, 1000000000);
    book.try_hand_over();
    book.hand_over();
    CHECK(book.finished().requests().size() == 1);
}

TEST_CASE("gaps that become too many are counted, those of the oldest requests first") {
    load l;
    l.order.max_gaps = 10;
    request_book book(l.order, l.shared);
    const long long long_ago = now_ns() - 60000000000;
    for (std::size_t i = 0; i < 5; ++i) add(book, i, 6, long_ago);
    const auto& kept = book.finished().requests();
    CHECK(kept.front().counted);
    add(book, 5, 6, now_ns());  // has only just ended, and may yet belong to the window's end
    CHECK_FALSE(kept.back().counted);
    CHECK(kept[4].counted);
}
