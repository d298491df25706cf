// What signals ask for, and what a program is started with.
#include "effects/system/console.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/signals.hpp"
#include "support/scratch.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llmbench::detail;

namespace {

/// The exit code of what a child does, or minus the signal that ended it.
template <class Act>
int ended_by(const Act& act) {
    const pid_t child = ::fork();
    if (child == 0) {
        for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGXFSZ, SIGPIPE})
            ::signal(s, SIG_DFL);  // doctest listens, too
        act();
        ::_exit(0);
    }
    int status = 0;
    if (::waitpid(child, &status, 0) != child) return -1000;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
int after(std::initializer_list<int> signals) {
    return ended_by([&] {
        const interrupt_guard guard;
        for (const int s : signals) ::raise(s);
        if (!stop_asked) ::_exit(1);
    });
}

}  // namespace

TEST_CASE("each signal that ends programs asks for the end of the run") {
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) CHECK(after({s}) == 0);
}

TEST_CASE("whoever asks gently and then firmly lets reports be written; who asks again does not") {
    CHECK(after({SIGINT, SIGTERM}) == 0);
    CHECK(after({SIGHUP, SIGHUP, SIGTERM}) == 0);
    CHECK(after({SIGXCPU, SIGXCPU, SIGXCPU, SIGINT}) == 0);
    CHECK(after({SIGINT, SIGINT}) == 128 + SIGINT);
    CHECK(after({SIGTERM, SIGTERM}) == 0);  // two parents send one each
    CHECK(after({SIGTERM, SIGTERM, SIGTERM}) == 128 + SIGTERM);
    CHECK(after({SIGINT, SIGTERM, SIGINT}) == 128 + SIGINT);
}

TEST_CASE("once the end was asked for, no signal ends the program before its reports are there") {
    CHECK(ended_by([] {
              { const interrupt_guard gate; ::raise(SIGINT); }
              ::raise(SIGTERM);
          }) == 0);
    CHECK(ended_by([] {
              { const interrupt_guard gate; }
              ::raise(SIGTERM);
          }) == -SIGTERM);
}

TEST_CASE("what a program was started to ignore, it goes on ignoring") {
    for (const int s : {SIGINT, SIGHUP, SIGTERM})
        CHECK(ended_by([&] {
                  ::signal(s, SIG_IGN);
                  const interrupt_guard guard;
                  ::raise(s);
                  ::_exit(stop_asked ? 1 : 0);
              }) == 0);
}

TEST_CASE("a file that may not grow, and a pipe that nobody reads, fail a write and end nobody") {
    const files::scratch folder;
    CHECK(ended_by([&] {
              const interrupt_guard guard;
              const rlimit ten{10, 10};
              ::setrlimit(RLIMIT_FSIZE, &ten);
              const int fd = ::open(folder.file("x").c_str(), O_CREAT | O_WRONLY, 0600);
              if (::write(fd, "0123456789abc", 13) != 10) ::_exit(1);
              if (::write(fd, "abc", 3) != -1 || errno != EFBIG) ::_exit(2);
              int ends[2];
              if (::pipe(ends) != 0) ::_exit(3);
              ::close(ends[0]);
              if (::write(ends[1], "abc", 3) != -1 || errno != EPIPE) ::_exit(4);
          }) == 0);
}

TEST_CASE("a file that is opened has no standard stream's number, though these were closed") {
    const files::scratch folder;
    CHECK(ended_by([&] {
              for (int fd = 0; fd < 3; ++fd) ::close(fd);
              if (!are_standard_streams_there()) ::_exit(1);
              const int fd = ::open(folder.file("x").c_str(), O_CREAT | O_WRONLY, 0600);
              if (fd < 3 || ::write(1, "verdict", 7) != 7) ::_exit(2);
          }) == 0);
    CHECK(standard_streams_are_there);
}

TEST_CASE("errors are told in words, also those that there are not") {
    CHECK(error_text(ENOENT) == "No such file or directory");
    CHECK(error_text(98765).find("98765") != std::string::npos);
}
