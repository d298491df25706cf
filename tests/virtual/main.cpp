// doctest, and the main of the tests in virtual time: every test case lives in a made-up world of its
// own, in which nothing takes time but what the test's servers and bytes on their way do.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cfloat>  // doctest 2.4.9 leaves it to libstdc++

#include <doctest/doctest.h>

#include "llmbench.hpp"

#include "support/listener.hpp"
#include "virtual/execution_environment.hpp"

#include <cstdlib>
#include <iostream>
#include <optional>

namespace {

/// A case begins anew for each of its subcases, in a world that knows nothing of the one before.
class worlds final : public live::listener {
public:
    explicit worlds(const doctest::ContextOptions&) {}
    void test_case_start(const doctest::TestCaseData&) override { environment_.emplace(); }
    void test_case_reenter(const doctest::TestCaseData&) override {
        environment_.reset();
        environment_.emplace();
    }
    void test_case_end(const doctest::CurrentTestCaseStats&) override { environment_.reset(); }

private:
    std::optional<virtual_world::execution_environment> environment_{};
};

}  // namespace

DOCTEST_REGISTER_LISTENER("worlds", 1, worlds);

int main(int argc, char** argv) {
    const int failed = doctest::Context(argc, argv).run();
    if (virtual_world::has_rehearsed) {  // the end of a program of which a gate was rehearsed would be 77
        std::cout.flush();
        std::_Exit(failed);
    }
    return failed;
}
