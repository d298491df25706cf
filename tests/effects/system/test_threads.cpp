// Nothing is thrown out of a thread, or out of a destructor: whoever began the work hears of it.
#include "effects/system/threads.hpp"

#include <doctest/doctest.h>

#include <exception>
#include <new>
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
