// Gates of several threads take turns.
#include "effects/gates/turn.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace llmbench::detail;

TEST_CASE("there is one gate at a time") {
    std::atomic<int> inside{0}, most{0}, turns{0};
    std::vector<std::thread> threads;
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
