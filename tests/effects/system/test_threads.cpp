// Nothing is thrown out of a thread, or out of a destructor: whoever began the work hears of it.
// Gates of several threads take turns.
#include "effects/system/threads.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

using namespace llmbench::detail;

TEST_CASE("what work throws is told in its words, and work that throws nothing is not told of") {
    std::string reported;
    const auto failed = [&](const char* why) { reported += std::string(why) + ";"; };
    contained([] {}, failed);
    CHECK(reported.empty());
    contained([] { throw std::runtime_error("no descriptor"); }, failed);
    contained([] { throw std::bad_alloc(); }, failed);
    contained([] { throw 5; }, failed);
    CHECK(reported == "no descriptor;" + std::string(std::bad_alloc().what()) +
                      ";something unknown was thrown;");
}

TEST_CASE("what is thrown can be thrown again by whoever waits for it") {
    std::exception_ptr thrown;
    contained([] { throw std::invalid_argument("a dataset's line"); },
              [&](const char*) { thrown = std::current_exception(); });
    CHECK_THROWS_AS(std::rethrow_exception(thrown), std::invalid_argument);
}

TEST_CASE("a thread whose work throws ends, and the program goes on") {
    std::string reported;
    std::thread t = contained_thread([] { throw std::runtime_error("the disk is gone"); },
                                     [&](const char* why) { reported = why; });
    t.join();
    CHECK(reported == "the disk is gone");
}

// ---- turns of gates

TEST_CASE("there is one gate at a time") {
    std::atomic<int> inside{0}, most{0}, turns{0};
    vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            for (int k = 0; k < 50; ++k) {
                const gate_turn turn;
                const int now = ++inside;
                if (now > most) most = now;
                ++turns;
                std::this_thread::yield();
                --inside;
            }
        });
    for (std::thread& t : threads) t.join();
    CHECK(most == 1);
    CHECK(turns == 8 * 50);
}

TEST_CASE("a gate within a gate of its thread is refused instead of waiting for itself") {
    std::optional<gate_turn> outer;
    outer.emplace();
    CHECK_THROWS_WITH_AS(gate_turn(), "a gate within a gate of the same thread: it would wait for itself",
                         std::invalid_argument);
    CHECK_THROWS_AS(gate_turn(), std::invalid_argument);  // the first refusal took no turn away
    outer.reset();
    const gate_turn next;
}
