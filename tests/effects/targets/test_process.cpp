// Server processes, what they say, and the guard that ends them with us.
#include "effects/gates/run_mode.hpp"
#include "effects/targets/process.hpp"
#include "support/descriptors.hpp"
#include "support/scratch.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <streambuf>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

std::string content(const std::string& file) {
    std::ostringstream all;
    all << std::ifstream(file).rdbuf();
    return all.str();
}
/// It holds within 20 s.
template <class Came>
bool comes(const Came& came) {
    for (int i = 0; i < 1000 && !came(); ++i) sleep_s(0.02);
    return came();
}
/// What is said to std::cerr while it lives.
class heard_errors {
public:
    ~heard_errors() { std::cerr.rdbuf(before_); }
    std::string text() const { return said_.str(); }

private:
    std::ostringstream said_{};
    std::streambuf* before_ = std::cerr.rdbuf(said_.rdbuf());
};
/// What a command says until it ends.
std::string said(const process& p, const vector<std::string>& secrets = {}) {
    const files::scratch folder;
    const std::string file = folder.file("log");
    server_process running(p, 0, file, secrets);
    REQUIRE(comes([&] { return !running.how_it_ended().empty(); }));
    running.stop();
    return content(file);
}
/// Zombies are none.
bool runs(pid_t pid) {
    if (::kill(pid, 0) != 0) return false;
    const std::string status = content("/proc/" + std::to_string(pid) + "/stat");
    return status.empty() || status[status.rfind(')') + 2] != 'Z';
}

}  // namespace

TEST_CASE("what a program started ends with it, however it ends, also where its guard had gone") {
    for (const bool guard_is_killed : {false, true}) {
        const files::scratch folder;
        const std::string of_server = folder.file("pid");
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            ::signal(SIGPIPE, SIG_DFL);
            const process p{.command = "trap '' TERM; echo $$ > " + of_server + "; sleep 100; true"};
            group_guard& guard = group_guard::of_this_program();
            if (guard_is_killed) {
                guard.watch(::getpid());  // no group: nobody is ended
                guard.leave(::getpid());
                ::kill(guard.pid(), SIGKILL);
                siginfo_t gone{};
                ::waitid(P_PID, static_cast<id_t>(guard.pid()), &gone, WEXITED | WNOWAIT);
            }
            auto* const server = new server_process(p, 0, folder.file("log"), {});
            if (!comes([&] { return content(of_server).ends_with("\n"); })) ::_exit(1);
            if (server->how_it_ended().empty()) ::kill(::getpid(), SIGKILL);
            ::_exit(2);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status));
        const pid_t server = std::stoi(content(of_server));
        CHECK(comes([&] { return !runs(server); }));
    }
}

TEST_CASE("how a server ended is known, also where the system or others take the ends of children") {
    const auto ended = [](const process& p, bool is_taken) {
        const files::scratch folder;
        server_process running(p, 0, folder.file("log"), {});
        if (is_taken) while (::waitpid(-1, nullptr, 0) > 0 && running.how_it_ended().empty()) {}
        REQUIRE(comes([&] { return !running.how_it_ended().empty(); }));
        return running.how_it_ended();
    };
    for (const int flags : {0, SA_NOCLDWAIT}) {
        struct sigaction ignoring{}, before{};
        ignoring.sa_handler = flags ? SIG_DFL : SIG_IGN;
        ignoring.sa_flags = flags;
        REQUIRE(::sigaction(SIGCHLD, &ignoring, &before) == 0);
        CHECK(ended({.command = "kill -SEGV $$"}, false) == "was ended by signal 11");
#ifdef __linux__  // the server has the usual handling, too
        CHECK(ended({.command = "grep -q 'SigIgn:.*[02468ace]....$' /proc/self/status"}, false) ==
              "exited with status 0");
#endif
        ::sigaction(SIGCHLD, &before, nullptr);
    }
    const pid_t child = ::fork();  // its guard, too, is taken
    REQUIRE(child >= 0);
    if (child == 0) {
        const std::string how = ended({.command = "exit 3"}, true);
        ::_exit(how == "ended, and another part of this program took its status" ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

#ifdef __linux__
TEST_CASE("a program may say a megabyte that nobody reads yet") {
    const pipe_ends pipe = new_pipe();
    REQUIRE(pipe.its.get() >= 0);
    ::fcntl(pipe.its.get(), F_SETFL, O_NONBLOCK);
    const std::string line(1000, '.');
    std::size_t said = 0;
    while (::write(pipe.its.get(), line.data(), line.size()) > 0) said += line.size();
    CHECK(said >= 900000);
}
#endif

TEST_CASE("a log has its name and its words while a server speaks, and no secret at any time") {
    const files::scratch folder;
    const std::string log = folder.file("log");
    const process p{.command = "printf 'loading; the key is s3cret-of'; sleep 0.3; printf -- '-all; "
                               "and s3cret'; sleep 100"};
    server_process running(p, 0, log, {"s3cret-of-all"});
    CHECK(comes([&] { return content(log).find("; and ") != std::string::npos; }));
    CHECK(content(log) == "loading; the key is ***; and ");
    CHECK(comes([&] { return running.log_tail() == "loading; the key is ***; and s3cret"; }));
    running.stop();
    CHECK(content(log) == "loading; the key is ***; and s3cret");
}

TEST_CASE("a command that never stops speaking fills no disk, and its last words are kept") {
    const process p{.command = "yes 0123456789 | head -c 80000000; echo; echo the end"};
    const std::string all = said(p);
    CHECK(all.size() < 66u << 20);
    CHECK(all.size() > 64u << 20);
    CHECK(all.find(" bytes are left out here]\n") != std::string::npos);
    CHECK(all.ends_with("\nthe end\n"));
}

TEST_CASE("a log that the disk does not take is told, and keeps nobody from speaking") {
    const heard_errors heard;
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    rlimit low = before;
    low.rlim_cur = 4096;
    const auto was = ::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
    const std::string all = said({.command = "yes | head -c 300000; exit 0"});
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, was);
    CHECK(all.size() == 4096);
    CHECK(heard.text().find("is not whole: File too large\n") != std::string::npos);
}

TEST_CASE("what left its group, so that nobody can end it, is told") {
    const heard_errors heard;
    const files::scratch folder;
    // It holds the log open, as what a shell puts into the background does.
    said({.command = "setsid sh -c 'echo $$ > " + folder.file("pid") + "; sleep 100' & sleep 0.5"});
    CHECK(heard.text().find("has left its process group, and runs on where nothing ends it\n") !=
          std::string::npos);
    REQUIRE(comes([&] { return !content(folder.file("pid")).empty(); }));
    ::kill(-std::stoi(content(folder.file("pid"))), SIGKILL);
}

TEST_CASE("a command has its variables, its directory, the rest of ours, and an empty input") {
    ::setenv("LLMBENCH_TEST_WORD", "ours", 1);
    ::setenv("LLMBENCH_TEST_OTHER", "other", 1);
    CHECK(said({.command = "echo \"$LLMBENCH_TEST_WORD $LLMBENCH_TEST_OTHER $PWD\"; cat",
                .env = {{"LLMBENCH_TEST_WORD", "its own"}},
                .working_directory = "/"}) == "its own other /\n");
    ::unsetenv("LLMBENCH_TEST_WORD");
    ::unsetenv("LLMBENCH_TEST_OTHER");
    CHECK(said({.command = "echo", .working_directory = "/no/such/place"})
              .find("cannot enter /no/such/place\n") != std::string::npos);
}

TEST_CASE("a command with a secret in it stands in no list of processes") {
    if (!std::filesystem::exists("/proc/self/cmdline")) return;
    // While it waits for its guard, and while a shell runs it.
    const std::string all = said({.command = "echo sk-in-the-command | wc -c; "
                                             "for f in /proc/$$/cmdline /proc/$PPID/cmdline; do "
                                             "tr '\\0' ' ' < $f; echo; done; env; echo $#"});
    CHECK(all.starts_with("18\nsh -c "));
    CHECK(all.find("sk-in") == std::string::npos);
    CHECK(all.find("LLMBENCH_COMMAND_=") == std::string::npos);
    CHECK(all.ends_with("\n0\n"));
    // As /bin/sh -c ends it, whatever is wrong.
    const auto how = [](const char* command) {
        const files::scratch folder;
        server_process running({.command = command}, 0, folder.file("log"), {});
        comes([&] { return !running.how_it_ended().empty(); });
        return running.how_it_ended();
    };
    CHECK(how("(exit 7)") == "exited with status 7");
    CHECK(how("no-such-command-anywhere") == "exited with status 127");
    CHECK(how("if true; then") == "exited with status 2");
    CHECK(how("false; true") == "exited with status 0");
}

TEST_CASE("a server has as many open files as before we raised our own limit") {
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit low = before;
    low.rlim_cur = 200;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    CHECK(said({.command = "ulimit -S -n; true"}) == "200\n");
    if (before.rlim_max >= 300) {
        CHECK(raised_open_files(300) == 300);
        CHECK(said({.command = "ulimit -S -n; true"}) == "200\n");
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
    open_files_before = 0;
}

TEST_CASE("a file that is looked at before the load writes nothing where a link leads") {
    const files::scratch folder;
    std::ofstream(folder.file("precious")) << "words";
    std::filesystem::create_symlink(folder.file("precious"), folder.file("x.json.tmp"));
    check_writable(folder.file("x.json"));
    CHECK(content(folder.file("precious")) == "words");
    CHECK_THROWS_AS(check_writable(folder.file("")), std::invalid_argument);
}

TEST_CASE("a command is told without its secrets") {
    const auto told = [](const std::string& command) {
        return command_for_reports(command, {"hf_12345"});
    };
    CHECK(told("vllm serve m --port {port}") == "vllm serve m --port {port}");
    CHECK(told("serve --api-key sesame --max-len=4") == "serve --api-key *** --max-len=4");
    CHECK(told("serve --api-key=sesame  -x") == "serve --api-key=***  -x");
    CHECK(told("HF_TOKEN=abc serve --hub hf_12345") == "HF_TOKEN=*** serve --hub ***");
    CHECK(told("a\n--tokens 5") == "a\\n--tokens 5");
    CHECK(told("serve --api-key $KEY --hf-token=\"${HF}\"") ==
          "serve --api-key $KEY --hf-token=\"${HF}\"");
    for (const char* const has_one : {"${KEY:-sesame}", "$HOST-sesame", "\"$A$B\"", "$"})
        CHECK(told(std::string("serve --api-key ") + has_one) == "serve --api-key ***");
    CHECK(told("serve --api-key a=$b") == "serve --api-key ***");
    CHECK(told("") == "");
}
