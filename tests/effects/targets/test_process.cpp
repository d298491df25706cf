// Server processes, and the guard that ends them with us.
#include "effects/targets/process.hpp"

#include <doctest/doctest.h>

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

using namespace llmbench::detail;

TEST_CASE("a guard that is gone first ends nobody who tells it to go") {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::signal(SIGPIPE, SIG_DFL);
        group_guard guard;
        guard.watch(::getpid());  // no group: nobody would be ended
        ::kill(guard.pid(), SIGKILL);
        siginfo_t gone{};
        ::waitid(P_PID, static_cast<id_t>(guard.pid()), &gone, WEXITED | WNOWAIT);
        guard.dismiss();
        ::_exit(guard.pid() == -1 ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK_FALSE(WIFSIGNALED(status));
    CHECK(WEXITSTATUS(status) == 0);
}
