// What one client thread has to send and when, told the time by the tests: no clock, no sockets.
#include "effects/load/agenda.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <memory>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

constexpr long long ms = 1000000, second = 1000 * ms;
constexpr long long start = 1000 * second;  // of every load here

/// A load and what the threads of it share.
struct load {
    load_plan what{};
    load_order order{};
    load_state shared{};
    load() {
        order.what = &what;
        shared.start_ns = start;
    }
    load(const load&) = delete;
    load& operator=(const load&) = delete;

    agenda shard(std::size_t index = 0, std::size_t count = 1) {
        agenda a(order, shared, index, count);
        a.begin();
        return a;
    }
    /// Where the first turn of conversation n is, if all are sent.
    std::size_t place(std::size_t conversation) const { return conversation * what.sent->stride; }
};
/// Sends at these times after the start.
struct open_load : load {
    explicit open_load(vector<long long> send_at, long long most_in_flight = 0) {
        what = with_traffic(what, [&](planned_traffic& t) {
            t.arrivals.kind = arrival_kind::poisson;
            t.arrivals.max_in_flight = most_in_flight;
        });
        order.send_at = std::move(send_at);
        order.last = order.send_at.size();
    }
};
/// Users who take turns with so many requests.
struct closed_load : load {
    explicit closed_load(long long users, std::size_t requests = 1000) {
        what = with_traffic(what, [&](planned_traffic& t) { t.arrivals.users = users; });
        order.last = requests;
    }
};
/// Conversations of so many turns each.
template <class Load>
void converse(Load& l, std::size_t turns, std::size_t conversations, double think_s = 0) {
    synthetic_conversations source({.turns = static_cast<int>(turns),
                                    .user_tokens = 1,
                                    .output_tokens = 1});
    source.most_turns = turns;
    l.what = with_traffic(l.what, [&](planned_traffic& t) {
        t.source = std::make_shared<synthetic_conversations>(source);
        t.stride = turns;
        t.think = time_span::from_seconds(think_s);
    });
    l.order.last = turns * conversations;
}

/// Sends all that is due. What it was, in the order of sending.
vector<planned_request> sent_at(agenda& a, long long now_ns) {
    vector<planned_request> sent;
    while (const auto next = a.take_due(now_ns)) {
        a.on_dispatched(next->what, now_ns);
        sent.push_back(next->what);
    }
    return sent;
}
vector<std::size_t> places(const vector<planned_request>& requests) {
    vector<std::size_t> out;
    for (const planned_request& w : requests) out.push_back(w.index);
    return out;
}
vector<std::size_t> places_at(agenda& a, long long now_ns) {
    return places(sent_at(a, now_ns));
}
/// Sends the one that is due, and nothing else is.
planned_request only_one_at(agenda& a, long long now_ns) {
    const vector<planned_request> sent = sent_at(a, now_ns);
    REQUIRE(sent.size() == 1);
    return sent.front();
}
void end(agenda& a, const planned_request& w, long long at_ns, const std::string& words = "") {
    a.on_ended(w, request_status::ok, at_ns, words);
}
void fail(agenda& a, const planned_request& w, long long at_ns) {
    a.on_ended(w, request_status::http, at_ns, "");
}
using list_of_places = vector<std::size_t>;

}  // namespace

// ---- open loops

TEST_CASE("a planned send is due at its time and not before") {
    open_load l({0, 10 * ms, 25 * ms});
    agenda a = l.shard();
    CHECK(a.next_due() == start);
    CHECK_FALSE(a.is_due(start - 1));
    CHECK_FALSE(a.take_due(start - 1));
    CHECK(a.is_due(start));
    const planned_request first = only_one_at(a, start);
    CHECK(first.index == 0);
    CHECK(first.scheduled_ns == start);
    CHECK(first.user == -1);
    CHECK(a.next_due() == start + 10 * ms);
    CHECK(places_at(a, start + 10 * ms - 1).empty());
    CHECK(places_at(a, start + 10 * ms) == list_of_places{1});
    CHECK(places_at(a, start + 30 * ms) == list_of_places{2});
    CHECK(a.next_due() == 0);
    CHECK_FALSE(a.is_due(start + second));
}

TEST_CASE("sends that were missed come at once, each with the time that it was planned for") {
    open_load l({0, 10 * ms, 25 * ms});
    agenda a = l.shard();
    for (const long long planned : {0ll, 10 * ms, 25 * ms}) {
        const auto next = a.take_due(start + second);
        REQUIRE(next);
        CHECK(next->what.scheduled_ns == start + planned);
        CHECK(next->possible_ns == start + planned);  // all of the delay is ours
    }
    CHECK_FALSE(a.take_due(start + second));
}

TEST_CASE("threads share planned sends in turns") {
    open_load l({0, 1 * ms, 2 * ms, 3 * ms, 4 * ms});
    agenda first = l.shard(0, 2), second_one = l.shard(1, 2);
    CHECK(places_at(first, start + second) == list_of_places{0, 2, 4});
    CHECK(places_at(second_one, start + second) == list_of_places{1, 3});
    agenda third = l.shard(7, 8);
    CHECK(third.next_due() == 0);
    CHECK(third.nothing_left());
}

TEST_CASE("a stretch of the trace begins where the order says") {
    open_load l({0, 1 * ms});
    l.order.first = 40;
    l.order.last = 42;
    agenda a = l.shard();
    CHECK(a.place_ahead(0) == 40);
    CHECK(places_at(a, start + second) == list_of_places{40, 41});
    CHECK(a.place_ahead(0) == 42);
}

TEST_CASE("the next place is known before it is due, so that its request can be built") {
    open_load l({0, 10 * ms});
    agenda a = l.shard();
    CHECK(a.place_ahead(0) == 0);
    sent_at(a, start);
    CHECK(a.place_ahead(0) == 1);
    sent_at(a, start + 10 * ms);
    CHECK(a.place_ahead(0) == l.order.last);

    CHECK(a.due_together() == 1);
}

TEST_CASE("what may be due at once is known before it is, and is of one thread alone") {
    open_load batch({0, 0, 0, 0, 0});
    batch.what = with_traffic(batch.what, [&](planned_traffic& t) {
        t.arrivals.kind = arrival_kind::all_at_once;
    });
    agenda of_batch = batch.shard(1, 2);
    CHECK(of_batch.due_together() == 2);
    CHECK(of_batch.place_ahead(0) == 1);
    CHECK(of_batch.place_ahead(1) == 3);
    CHECK(of_batch.place_ahead(2) == batch.order.last);

    closed_load users(4, 1000);
    agenda a = users.shard(0, 2), b = users.shard(1, 2);
    CHECK(a.due_together() == 2);
    CHECK(a.place_ahead(1) == 1);
    CHECK(b.place_ahead(0) == 2);
    CHECK(places_at(a, start) == list_of_places{0, 1});
    CHECK(places_at(b, start) == list_of_places{2, 3});
    CHECK(a.place_ahead(0) == 4);

    closed_load few(4, 7);  // the last of a trace go to whoever comes for them
    agenda c = few.shard(0, 2);
    CHECK(c.place_ahead(0) == few.order.last);
    CHECK(places_at(c, start) == list_of_places{0, 1});
}

// ---- a cap on requests in flight

TEST_CASE("a send above the cap waits for another request to end") {
    open_load l({0, 1 * ms, 2 * ms, 3 * ms}, 2);
    agenda a = l.shard();
    const auto sent = sent_at(a, start + 5 * ms);
    CHECK(places(sent) == list_of_places{0, 1});
    CHECK(a.next_due() == 0);
    CHECK_FALSE(a.nothing_left());
    CHECK_FALSE(a.take_promised(start + 6 * ms));

    end(a, sent[0], start + 50 * ms);
    const auto next = a.take_promised(start + 51 * ms);
    REQUIRE(next);
    CHECK(next->what.index == 2);
    CHECK(next->what.scheduled_ns == start + 2 * ms);
    CHECK(next->possible_ns == start + 51 * ms);  // until then the cap kept it, not this client
    a.on_dispatched(next->what, start + 51 * ms);
    CHECK_FALSE(a.take_promised(start + 51 * ms));
}

TEST_CASE("a place that is promised to one that waits is not given to one that is due") {
    open_load l({0, 1 * ms, 10 * ms}, 1);
    agenda a = l.shard();
    const auto sent = sent_at(a, start + 2 * ms);
    CHECK(places(sent) == list_of_places{0});
    end(a, sent[0], start + 10 * ms);
    CHECK(places_at(a, start + 10 * ms).empty());
    const auto next = a.take_promised(start + 10 * ms);
    REQUIRE(next);
    CHECK(next->what.index == 1);
    a.on_dispatched(next->what, start + 10 * ms);
    end(a, next->what, start + 20 * ms);
    const auto last = a.take_promised(start + 20 * ms);
    REQUIRE(last);
    CHECK(last->what.index == 2);
    CHECK(last->what.scheduled_ns == start + 10 * ms);
}

TEST_CASE("an end promises one place, and none where nobody waits") {
    open_load l({0, 1 * ms, 2 * ms, second}, 2);
    agenda a = l.shard();
    const auto sent = sent_at(a, start + 2 * ms);
    REQUIRE(sent.size() == 2);
    end(a, sent[0], start + 3 * ms);
    end(a, sent[1], start + 3 * ms);
    CHECK(a.take_promised(start + 4 * ms));
    CHECK_FALSE(a.take_promised(start + 4 * ms));
}

TEST_CASE("threads divide the cap, and each may have one in flight") {
    const auto sent_of = [](std::size_t index, std::size_t count, long long cap) {
        open_load l(vector<long long>(60, 0), cap);
        agenda a = l.shard(index, count);
        return sent_at(a, start).size();
    };
    CHECK(sent_of(0, 2, 5) == 3);
    CHECK(sent_of(1, 2, 5) == 2);
    CHECK(sent_of(0, 3, 6) == 2);
    CHECK(sent_of(2, 3, 2) == 1);
    CHECK(sent_of(0, 2, 0) == 30);  // no cap at all
}

TEST_CASE("a further send is expected where one is planned and the cap allows it") {
    open_load l({0, second}, 1);
    agenda a = l.shard();
    CHECK(a.expects_to_send());
    const planned_request first = only_one_at(a, start);
    CHECK_FALSE(a.expects_to_send());
    end(a, first, start + ms);
    CHECK(a.expects_to_send());
    const planned_request last = only_one_at(a, start + second);
    end(a, last, start + second + ms);
    CHECK_FALSE(a.expects_to_send());
}

// ---- closed loops

TEST_CASE("users begin together, or one after the other along the ramp") {
    closed_load together(3);
    agenda a = together.shard();
    CHECK(places_at(a, start - 1).empty());
    const auto sent = sent_at(a, start);
    CHECK(places(sent) == list_of_places{0, 1, 2});
    for (std::size_t u = 0; u < sent.size(); ++u) CHECK(sent[u].user == static_cast<int>(u));

    closed_load ramp(4);
    ramp.what = with_traffic(ramp.what, [&](planned_traffic& t) { t.arrivals.users_ramp_s = 2; });
    agenda b = ramp.shard();
    for (const long long at : {0ll, 500 * ms, 1000 * ms, 1500 * ms}) {
        CHECK(places_at(b, start + at - 1).empty());
        CHECK(only_one_at(b, start + at).scheduled_ns == start + at);
    }
}

TEST_CASE("threads share users, and take requests from one trace") {
    closed_load l(3);
    agenda first = l.shard(0, 2), second_one = l.shard(1, 2);
    const auto a = sent_at(first, start), b = sent_at(second_one, start);
    REQUIRE(a.size() == 2);
    REQUIRE(b.size() == 1);
    CHECK(a[0].user == 0);
    CHECK(a[1].user == 2);
    CHECK(b[0].user == 1);
    CHECK(places(a) == list_of_places{0, 1});
    CHECK(places(b) == list_of_places{2});
}

TEST_CASE("a user sends again when the answer has ended and the pause is over") {
    closed_load l(1);
    l.what = with_traffic(l.what, [&](planned_traffic& t) { t.arrivals.think = 250_ms; });
    agenda a = l.shard();
    const planned_request first = only_one_at(a, start);
    CHECK(a.next_due() == 0);
    end(a, first, start + 40 * ms);
    CHECK(a.next_due() == start + 290 * ms);
    CHECK(places_at(a, start + 290 * ms - 1).empty());
    const planned_request next = only_one_at(a, start + 300 * ms);
    CHECK(next.index == 1);
    CHECK(next.scheduled_ns == start + 290 * ms);
    CHECK(next.user == 0);
}

TEST_CASE("after a failed answer a user waits 10 ms at least") {
    for (const double think_s : {0.0, 0.004, 0.5}) {
        CAPTURE(think_s);
        closed_load l(1);
        l.what = with_traffic(l.what, [&](planned_traffic& t) { t.arrivals.think = time_span::from_seconds(think_s); });
        agenda a = l.shard();
        fail(a, only_one_at(a, start), start + ms);
        CHECK(a.next_due() == start + ms + (think_s > 0.01 ? 500 * ms : 10 * ms));
    }
}

TEST_CASE("a user who finds the trace at its end is done, and says when that was") {
    closed_load l(2, 3);
    agenda a = l.shard();
    auto sent = sent_at(a, start);
    REQUIRE(sent.size() == 2);
    CHECK_FALSE(a.sending_is_over(0));
    end(a, sent[0], start + 10 * ms);
    sent.push_back(only_one_at(a, start + 10 * ms));
    CHECK(sent[2].index == 2);
    CHECK(l.shared.exhausted_at == 0);
    end(a, sent[1], start + 20 * ms);
    CHECK(places_at(a, start + 21 * ms).empty());
    CHECK(l.shared.exhausted_at == start + 21 * ms);
    CHECK(a.sending_is_over(0));
    CHECK_FALSE(a.nothing_left());
    end(a, sent[2], start + 30 * ms);
    CHECK(places_at(a, start + 31 * ms).empty());
    CHECK(l.shared.exhausted_at == start + 21 * ms);  // the first one counts
    CHECK(a.nothing_left());
}

TEST_CASE("a duration ends the sends so long after the first measured one was sent") {
    closed_load l(1);
    l.what = with_traffic(l.what, [&](planned_traffic& t) { t.duration_s = 1; });
    l.order.warmup = 1;
    agenda a = l.shard();
    const planned_request warmup = only_one_at(a, start);
    CHECK(l.shared.measured_from == 0);
    end(a, warmup, start + 5 * second);  // the warm-up may take longer than that
    const planned_request first = only_one_at(a, start + 5 * second + ms);
    CHECK(l.shared.measured_from == start + 5 * second + ms);
    end(a, first, start + 6 * second);
    const planned_request next = only_one_at(a, start + 6 * second);
    CHECK(l.shared.measured_from == start + 5 * second + ms);
    end(a, next, start + 6 * second + ms);
    CHECK(places_at(a, start + 7 * second).empty());
    CHECK(l.shared.exhausted_at == start + 6 * second + ms);  // the planned end, not the time seen
    CHECK(a.nothing_left());
}

TEST_CASE("after a warm-up that is a time only so many requests are measured") {
    closed_load l(1);
    l.order.measured_by_time = true;
    l.order.measured_from_ns = 100 * ms;
    l.order.max_measured = 2;
    agenda a = l.shard();
    long long now = start;
    for (int i = 0; i < 5; ++i, now += 40 * ms) {  // at 0, 40, 80, 120 and 160 ms
        CHECK((l.shared.measured_from == 0) == (i <= 3));
        end(a, only_one_at(a, now), now + 40 * ms);
    }
    CHECK(l.shared.measured_from == start + 120 * ms);
    CHECK(places_at(a, now).empty());
    CHECK(l.shared.exhausted_at == now);
}

TEST_CASE("a request is measured from its number on, or from its time on") {
    load l;
    l.order.warmup = 2;
    CHECK(phase_of(l.order, l.shared, {1, start, -1}) == run_phase::warmup);
    CHECK(phase_of(l.order, l.shared, {2, start, -1}) == run_phase::measure);
    l.order.measured_by_time = true;
    l.order.measured_from_ns = second;
    CHECK(phase_of(l.order, l.shared, {9, start + second - 1, -1}) == run_phase::warmup);
    CHECK(phase_of(l.order, l.shared, {1, start + second, -1}) == run_phase::warmup);  // both count
    CHECK(phase_of(l.order, l.shared, {2, start + second, -1}) == run_phase::measure);
}

// ---- conversations

TEST_CASE("in an open loop a later turn follows its answer, and takes the answers along") {
    open_load l({0, 100 * ms});
    converse(l, 3, 2, 0.05);
    agenda a = l.shard();
    const planned_request first = only_one_at(a, start);
    CHECK(first.index == 0);
    CHECK(a.goes_on(0));
    CHECK(a.answers_before(0).empty());
    end(a, first, start + 10 * ms, "one");
    CHECK(a.next_due() == start + 60 * ms);
    const planned_request turn = only_one_at(a, start + 60 * ms);
    CHECK(turn.index == 1);
    CHECK(turn.user == -1);
    CHECK(a.answers_before(1) == vector<std::string>{"one"});

    // The other conversation begins when it is planned, and knows nothing of this one.
    const planned_request other = only_one_at(a, start + 100 * ms);
    CHECK(other.index == l.place(1));
    CHECK(a.answers_before(other.index).empty());

    end(a, turn, start + 120 * ms, "two");
    CHECK(a.answers_before(2) == vector<std::string>{"one", "two"});
    const planned_request last = only_one_at(a, start + 170 * ms);
    CHECK(last.index == 2);
    CHECK_FALSE(a.goes_on(2));
    end(a, last, start + 180 * ms, "");
    CHECK(a.answers_before(2).empty());  // nobody will ask for them again
    CHECK(a.next_due() == 0);
}

TEST_CASE("a failed answer leaves a gap, and its conversation goes on") {
    open_load l({0});
    converse(l, 3, 1);
    agenda a = l.shard();
    fail(a, only_one_at(a, start), start + 10 * ms);
    const planned_request turn = only_one_at(a, start + 10 * ms);
    CHECK(turn.index == 1);
    CHECK(a.answers_before(1) == vector<std::string>{""});
    end(a, turn, start + 20 * ms, "two");
    CHECK(a.answers_before(2) == vector<std::string>{"", "two"});
}

TEST_CASE("subagents keep their own history, whichever of them answers first") {
    open_load l({0});
    synthetic_conversations source({.turns = 2,
                                    .user_tokens = 1,
                                    .output_tokens = 1,
                                    .subagents = 100_pct,
                                    .helpers = 2,
                                    .helper_turns = 2});
    source.most_turns = 6;  // a turn, twice two of its subagents, a turn
    l.what = with_traffic(l.what, [&](planned_traffic& t) {
        t.source = std::make_shared<synthetic_conversations>(source);
        t.stride = 6;
    });
    // Where the trace is cut, the last step of all need not end last.
    for (const std::size_t sent : {6u, 5u}) {
        CAPTURE(sent);
        l.order.last = sent;
        agenda a = l.shard();
        end(a, only_one_at(a, start), start + 1 * ms, "start");
        const vector<planned_request> both = sent_at(a, start + 1 * ms);
        REQUIRE(places(both) == list_of_places{1, 3});
        end(a, both[1], start + 2 * ms, "b1");
        const planned_request b2 = only_one_at(a, start + 2 * ms);
        CHECK(a.answers_before(b2.index) == vector<std::string>{"start", "", "", "b1"});
        end(a, b2, start + 3 * ms, "b2");
        end(a, both[0], start + 4 * ms, "a1");
        const planned_request a2 = only_one_at(a, start + 4 * ms);
        CHECK(a2.index == 2);
        vector<std::string> known = a.answers_before(2);
        REQUIRE(known.size() >= 4);
        CHECK(known[1] == "a1");
        CHECK(known[3] == "b1");
        end(a, a2, start + 5 * ms, "a2");
        if (sent == 5) continue;
        CHECK(a.answers_before(5) == vector<std::string>{"start", "a1", "a2", "b1", "b2"});
        end(a, only_one_at(a, start + 5 * ms), start + 6 * ms, "end");
        CHECK(a.answers_before(5).empty());
    }
}

TEST_CASE("a later turn counts against the cap like any other send") {
    open_load l({0, 1 * ms, 2 * ms}, 2);
    converse(l, 2, 3);
    agenda a = l.shard();
    const auto sent = sent_at(a, start + 2 * ms);
    CHECK(places(sent) == list_of_places{0, 2});
    end(a, sent[0], start + 5 * ms, "one");
    // Its next turn waits behind the conversation that waited before it.
    CHECK(places_at(a, start + 5 * ms).empty());
    const auto waited = a.take_promised(start + 6 * ms);
    REQUIRE(waited);
    CHECK(waited->what.index == l.place(2));
    a.on_dispatched(waited->what, start + 6 * ms);
    end(a, sent[1], start + 7 * ms, "");
    const auto turn = a.take_promised(start + 7 * ms);
    REQUIRE(turn);
    CHECK(turn->what.index == 1);
    CHECK(turn->what.scheduled_ns == start + 5 * ms);
}

TEST_CASE("in a closed loop a user ends a conversation before beginning another") {
    closed_load l(1);
    converse(l, 2, 2, 0.1);
    l.what = with_traffic(l.what, [&](planned_traffic& t) { t.arrivals.think = 500_ms; });
    agenda a = l.shard();
    const planned_request first = only_one_at(a, start);
    end(a, first, start + 10 * ms, "one");
    CHECK(a.next_due() == start + 110 * ms);  // the pause before a later turn
    const planned_request turn = only_one_at(a, start + 110 * ms);
    CHECK(turn.index == 1);
    CHECK(turn.user == 0);
    CHECK(a.answers_before(1) == vector<std::string>{"one"});
    end(a, turn, start + 120 * ms, "");
    CHECK(a.next_due() == start + 620 * ms);  // the pause between conversations
    CHECK(only_one_at(a, start + 620 * ms).index == l.place(1));
}

TEST_CASE("the end of the trace cuts a conversation") {
    open_load l({0});
    converse(l, 3, 1);
    l.order.last = 2;
    agenda a = l.shard();
    end(a, only_one_at(a, start), start + ms, "one");
    const planned_request turn = only_one_at(a, start + ms);
    CHECK_FALSE(a.goes_on(turn.index));
    end(a, turn, start + 2 * ms, "");
    CHECK(a.nothing_left());
}

// ---- the end

TEST_CASE("sending is not over as long as something waits") {
    open_load l({0, 0}, 1);
    agenda a = l.shard();
    const planned_request first = only_one_at(a, start);
    CHECK_FALSE(a.sending_is_over(0));
    end(a, first, start + ms);
    CHECK_FALSE(a.nothing_left());
    const auto waited = a.take_promised(start + ms);
    REQUIRE(waited);
    a.on_dispatched(waited->what, start + ms);
    CHECK(a.sending_is_over(0));
}

TEST_CASE("a load that is cut off hands back what waits, and sends nothing more") {
    open_load l({0, 1 * ms, 2 * ms, second}, 1);
    agenda a = l.shard();
    const planned_request first = only_one_at(a, start + 5 * ms);
    const auto waiting = a.stop();
    CHECK(a.stopped());
    REQUIRE(waiting.size() == 2);
    CHECK(waiting[0].index == 1);
    CHECK(waiting[0].scheduled_ns == start + ms);
    CHECK(waiting[1].index == 2);
    fail(a, first, start + 6 * ms);
    CHECK_FALSE(a.is_due(start + 2 * second));
    CHECK_FALSE(a.take_due(start + 2 * second));
    CHECK_FALSE(a.take_promised(start + 2 * second));
}

TEST_CASE("users of a load that is cut off do not come back") {
    closed_load l(1);
    agenda a = l.shard();
    const planned_request first = only_one_at(a, start);
    CHECK(a.stop().empty());
    fail(a, first, start + ms);
    CHECK(a.next_due() == 0);
    CHECK(a.nothing_left());
}

// ---- ends before the plan's

TEST_CASE("once no more is to be sent, nothing that waits or is planned is due, and no user returns") {
    open_load open({0, second, 2 * second}, 1);
    closed_load closed(2);
    for (load* const l : {static_cast<load*>(&open), static_cast<load*>(&closed)}) {
        agenda a = l->shard();
        const auto first = a.take_due(start);
        REQUIRE(first);
        a.on_dispatched(first->what, start);
        a.take_due(start + second);  // waits for it, or is the other user's
        CHECK_FALSE(a.nothing_left());
        a.send_no_more(start + second);
        CHECK_FALSE(a.is_due(start + 10 * second));
        CHECK_FALSE(a.nothing_left());
        a.on_ended(first->what, request_status::ok, start + 2 * second, "");
        CHECK_FALSE(a.take_promised(start + 2 * second));
        CHECK_FALSE(a.is_due(start + 10 * second));
        CHECK(a.nothing_left());
        CHECK(a.stop().empty());
        CHECK(l->shared.exhausted_at == start + second);
    }
}

TEST_CASE("a server is lost after three refused requests in a row, and 2 %, over ten seconds") {
    const auto ended = [](request_status status, long long at_ns, const char* error = "") {
        record r;
        r.phase = run_phase::measure;
        r.status = status;
        r.end_ns = at_ns;
        r.error = error;
        return r;
    };
    const auto refused = request_status::connect;
    lost_server s;
    for (int i = 0; i < 3; ++i) s.note(ended(refused, start + i * second));
    CHECK_FALSE(s.is_lost(start + 9 * second));
    CHECK(s.is_lost(start + 10 * second));
    s.note(ended(request_status::ok, start + 11 * second));  // it is back
    CHECK_FALSE(s.is_lost(start + 60 * second));
    for (int i = 0; i < 9; ++i)
        s.note(ended(refused, start + 12 * second, "client: it has no more ports"));
    CHECK_FALSE(s.is_lost(start + 60 * second));
    for (int i = 0; i < 2; ++i) s.note(ended(refused, start + 13 * second));
    CHECK_FALSE(s.is_lost(start + 60 * second));
    s.note(ended(refused, start + 14 * second));
    CHECK(s.is_lost(start + 23 * second));
    for (int i = 0; i < 400; ++i) s.note(ended(request_status::ok, start + 30 * second));
    for (int i = 0; i < 7; ++i) s.note(ended(refused, start + 31 * second));
    CHECK_FALSE(s.is_lost(start + 60 * second));  // under 2 %
    for (int i = 0; i < 2; ++i) s.note(ended(refused, start + 32 * second));
    CHECK(s.is_lost(start + 60 * second));
    record warming = ended(refused, start);
    warming.phase = run_phase::warmup;
    lost_server cold;
    for (int i = 0; i < 9; ++i) cold.note(warming);
    CHECK_FALSE(cold.is_lost(start + 60 * second));
}
