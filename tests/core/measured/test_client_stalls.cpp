// When the client did not run, and how late what it stamped may be.
#include "llmbench.hpp"
#include "core/measured/client_stalls.hpp"

using namespace llmbench::detail;

namespace {

const client_stalls two{{100, 200, 60, 50}, {300, 400, 100, 100}};

}  // namespace

TEST_CASE("a stamp is late by the time since the stretch began, and by its longest delay") {
    CHECK(possible_delay({}, 150) == 0);
    CHECK(possible_delay(two, 100) == 0);
    CHECK(possible_delay(two, 130) == 30);
    CHECK(possible_delay(two, 199) == 60);
    CHECK(possible_delay(two, 200) == 60);  // stamped as it ended, it was stalled by it
    CHECK(possible_delay(two, 201) == 0);
    CHECK(possible_delay(two, 250) == 0);
    CHECK(possible_delay(two, 399) == 99);
    CHECK(possible_delay(two, 500) == 0);
}

TEST_CASE("what was lost between two times is no more than they lie apart, nor than was lost") {
    CHECK(lost_in(two, time_interval::between(0, 1000)) == 150);
    CHECK(lost_in(two, time_interval::between(0, 100)) == 0);
    CHECK(lost_in(two, time_interval::between(150, 350)) == 100);
    CHECK(lost_in(two, time_interval::between(190, 310)) == 20);
    CHECK(lost_in(two, time_interval::between(200, 300)) == 0);
    CHECK(is_stalled_in(two, time_interval::between(150, 160)));
    CHECK_FALSE(is_stalled_in(two, time_interval::between(200, 300)));
    CHECK(most_delay_in(two, time_interval::between(0, 250)) == 60);
    CHECK(most_delay_in(two, time_interval::between(0, 301)) == 100);
    CHECK(most_delay_in(two, time_interval::between(200, 300)) == 0);
}

TEST_CASE("stretches that reach into one another are one, and neighbours are not") {
    stall_log log;
    log.add({100, 200, 10, 10});
    log.add({200, 300, 20, 20});
    CHECK(log.all().size() == 2);
    log.add({150, 400, 30, 30});  // as the system tells afterwards
    REQUIRE(log.all().size() == 1);
    CHECK(log.all()[0].from_ns == 100);
    CHECK(log.all()[0].to_ns == 400);
    CHECK(log.all()[0].most_delay_ns == 60);
    CHECK(log.all()[0].lost_ns == 60);
}

TEST_CASE("too many stretches take no more memory, and no delay is forgotten") {
    stall_log log;
    long long lost = 0;
    for (long long i = 0; i < 100'000; ++i) {
        const long long from = i * 1000 + (i * 7919) % 400, delay = 100 + i % 300;
        log.add({from, from + 500, delay, delay});
        lost += delay;
        CHECK_MESSAGE(log.all().size() <= stall_log::most, i);
        if (i % 1000 != 0) continue;
        CHECK(possible_delay(log.all(), from + 450) >= std::min(450ll, delay));
        CHECK(lost_in(log.all(), time_interval::between(0, from + 500)) == lost);
    }
    CHECK(log.all().size() > 100);
    for (std::size_t i = 1; i < log.all().size(); ++i)
        CHECK(log.all()[i - 1].to_ns <= log.all()[i].from_ns);
}

TEST_CASE("what one thread missed may have been any thread's to stamp, and nothing is lost twice") {
    const client_stalls other{{150, 320, 170, 170}, {500, 600, 5, 5}};
    const client_stalls both = stall_log::together(two, other);
    REQUIRE(both.size() == 2);
    CHECK(both[0].from_ns == 100);
    CHECK(both[0].to_ns == 400);
    CHECK(both[0].most_delay_ns == 170);
    CHECK(both[0].lost_ns == 170);
    CHECK(both[1].from_ns == 500);
    CHECK(stall_log::together(two, {}).size() == 2);
}
