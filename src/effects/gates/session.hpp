// all gates of a program, and how it ends
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/gate_report.hpp"
#include "effects/system/sharing.hpp"
#include "effects/system/report_directory.hpp"
#include "effects/system/signals.hpp"
#include "effects/load/order.hpp"
#include "effects/targets/program_server.hpp"
#include "effects/gates/program_reports.hpp"
#include "effects/gates/record_files.hpp"

#include <algorithm>  // any_of, count, find, min
#include <atomic>
#include <cstddef>  // ptrdiff_t, size_t
#include <cstdint>  // uint64_t
#include <cstdio>  // fflush
#include <cstdlib>  // atexit, _Exit
#include <iostream>  // cout, cerr
#include <mutex>  // lock_guard, unique_lock
#include <optional>
#include <string>
#include <utility>  // exchange, move

#include <sys/types.h>  // pid_t
#include <unistd.h>  // getpid

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The current doctest case, and the names of gates. Any thread may call.
class host_place {
public:
    /// doctest enters this test case. `first_gate`: the number of the next gate.
    void begin(const gate_identity& at, std::size_t first_gate) {
        const std::lock_guard guard(mutex_);
        at_ = host_failure{at, "", first_gate};
        subcases_.clear();
    }
    /// The test case has failed. Keeps the first reason only.
    void note(const std::string& why) {
        const std::lock_guard guard(mutex_);
        if (at_ && at_->why.empty()) at_->why = why;
    }
    /// doctest enters a subcase, or leaves it.
    void enter(const std::string& subcase) {
        const std::lock_guard guard(mutex_);
        subcases_.push_back(subcase);
    }
    void leave() {
        const std::lock_guard guard(mutex_);
        if (!subcases_.empty()) subcases_.pop_back();
    }
    std::optional<host_failure> at() const {
        const std::lock_guard guard(mutex_);
        return at_;
    }
    /// doctest leaves the test case; returns it.
    std::optional<host_failure> end() {
        const std::lock_guard guard(mutex_);
        return std::exchange(at_, std::nullopt);
    }
    /// Returns the identity of a new gate. Its name is the asked one, else its test case and
    /// subcases, else its place; a second gate of that name gets a number.
    gate_identity gate_at(std::string name, const char* file, int line, const char* verb) {
        const std::lock_guard guard(mutex_);
        const std::string test_case = at_ ? at_->test_case : std::string();
        if (name.empty()) {
            name = test_case;
            for (const std::string& s : subcases_) name += " / " + s;
        }
        if (name.empty()) name = printed("%s at %s:%d", verb, file, line);
        const auto before = std::count(names_.begin(), names_.end(), name);
        names_.push_back(name);
        if (before > 0) name += printed(" (%d)", static_cast<int>(before) + 1);
        return {name, test_case, file, line};
    }

private:
    mutable std::mutex mutex_{};
    std::optional<host_failure> at_{};
    vector<std::string> subcases_{};
    vector<std::string> names_{};  // that gates asked for
};

/// What doctest did: it ran test cases, answered a query, or found none that matches its filter.
enum class host_run : unsigned char { test_cases, query, matched_none };

/// Thread-safe: several threads may start gates, and any may end the program.
class session {
public:
    static session& of_this_program() {
        static session* const s = new session;  // outlives every static object
        return *s;
    }

    /// Adds a gate that has begun; returns its number.
    std::size_t open_gate(const gate_identity& who) {
        const std::lock_guard guard(mutex_);
        reports_.gates.push_back(report_without(who, gate_outcome::unfinished,
                                                "it had not ended when this was written"));
        reports_.has_changed = true;
        reports_.write_unended();
        return reports_.gates.size() - 1;
    }
    /// The gate has ended. `asserts`: its outcome is the program's; a run's is for its caller.
    void close_gate(std::size_t number, gate_report&& g, bool asserts) {
        const std::lock_guard guard(mutex_);
        gate_report& so_far = reports_.gates[number];
        if (so_far.outcome != gate_outcome::unfinished) return;  // it has ended
        if (asserts) unheard_ = worse_of(unheard_, g.outcome);
        so_far = std::move(g);
        reports_.has_changed = true;
        reports_.write_now_and_then();
    }
    /// `change` may change the reports of all gates so far, which are written again.
    template <class Change>
    auto with_reports(const Change& change) {
        const std::lock_guard guard(mutex_);
        reports_.has_changed = true;
        return change(reports_);
    }
    /// The gate's outcome is this one, if that is worse.
    void worsen(std::size_t number, gate_outcome adds) {
        with_reports([&](program_reports& r) {
            r.gates[number].outcome = worse_of(r.gates[number].outcome, adds);
            unheard_ = worse_of(unheard_, adds);
        });
    }
    /// The test case has failed: the measurements of its gates stay, but none is called a pass.
    void fail_test_case() {
        std::optional<host_failure> f = host_.at();
        if (!f) return;
        const std::lock_guard guard(mutex_);
        const auto begin = reports_.gates.begin() + static_cast<std::ptrdiff_t>(f->first_gate);
        const auto end = reports_.gates.end();
        if (f->why.empty()) {  // it failed by its gates, or by a decorator
            if (std::any_of(begin, end, [](const gate_report& g) { return is_red(g.outcome); }))
                return;
            f->why = "doctest calls it a failure";
        }
        for (auto g = begin; g != end; ++g) {
            g->outcome = worse_of(g->outcome, gate_outcome::failed);
            g->beside = "its test case failed: " + f->why;
        }
        reports_.has_changed = true;
        if (begin == end)
            reports_.note_other(*f, "the test case has no gate and failed: " + f->why,
                                gate_outcome::failed);
    }
    host_place& host() { return host_; }

    std::size_t number_of_gates() const {
        const std::lock_guard guard(mutex_);
        return reports_.gates.size();
    }
    /// Returns the worse of the gates' outcome and the result of their host, 0 if it passed, as the
    /// exit code: all is written, and the caller reports it. Of several programs the first does.
    int exit_code(int of_host = 0) {
        std::unique_lock lock(mutex_);
        write_all(lock);
        unheard_ = gate_outcome::passed;
        if (rank_of_program() > 0) return 0;
        const gate_outcome worst = reports_.worst();
        const bool is_green = worst == gate_outcome::passed || worst == gate_outcome::skipped;
        const bool is_hosts = of_host != 0 && is_green && !reports_.is_rehearsal;
        return is_hosts ? 1 : exit_code_of(worst);
    }

    /// Whether a note is new: notes on the program are printed once.
    bool is_news(const std::string& note) {
        const std::lock_guard guard(mutex_);
        if (std::find(reported_.begin(), reported_.end(), note) != reported_.end()) return false;
        reported_.push_back(note);
        return true;
    }

    /// `number` has its turn, from 1; later ones may be waiting.
    void give_turn(std::size_t number) { running_ = static_cast<int>(number) + 1; }
    int running_gate() const { return running_; }

    /// From now on nothing passes or fails.
    void note_rehearsal() {
        const std::lock_guard guard(mutex_);
        reports_.is_rehearsal = true;
    }
    /// Adds the virtual time of gates, one after the other; called by the gate that has its turn.
    void spend_virtual_time(long long ns) { virtual_ns_ += ns; }
    long long virtual_time_spent() const { return virtual_ns_; }

    record_files& records() { return records_; }
    void note_gaps(std::uint64_t kept) { gaps_kept_ += kept; }
    /// The number of gaps that may still be kept one by one.
    std::uint64_t room_for_gaps() const {
        return max_gaps_kept - std::min(max_gaps_kept, gaps_kept_.load());
    }
    /// Writes the reports at the program's end, and prints for GitHub Actions.
    void finish() {
        const interrupt_guard until_all_is_written;
        std::unique_lock lock(mutex_);
        bool is_cut_off = reports_.cut_off("the program ended before this gate did");
        // exit() in a test case keeps doctest from printing its results.
        if (returns_exit_code || !reports_.gates.empty())
            if (const auto inside = host_.end()) {
                reports_.note_other(*inside, "the program ended inside this test case",
                                    gate_outcome::invalid);
                is_cut_off = true;
            }
        if (is_cut_off) unheard_ = worse_of(unheard_, gate_outcome::invalid);
        write_all(lock);
        if (!std::exchange(has_said_, true)) reports_.say_at_the_end();
        lock.unlock();
        program_server::end_all();
    }
    std::atomic<bool> returns_exit_code{false};  // main() is ours
    std::atomic<host_run> host_did{host_run::test_cases};

private:
    session() : records_(report_directory()) {
        std::atexit(at_the_end);  // not called by _Exit(), quick_exit() and signals
        the_sharing().when_lost([this](const std::string& why) { lose(why); });
    }
    /// Other ranks are lost, and another thread waits for them: writes the results; no gate passes.
    void lose(const std::string& why) {
        const std::lock_guard guard(mutex_);
        reports_.cut_off(why);
        reports_.write(program_is::over);
    }
    /// Too late for main(), whatever the exit code was: if a gate is red and nobody has asked for
    /// that, or a file cannot be written, the code changes.
    static void at_the_end() {
        session& all = of_this_program();
        if (::getpid() != all.process_) return;  // a forked child
        all.finish();
        const std::lock_guard guard(all.mutex_);
        const gate_outcome worst = all.reports_.worst();
        // With any main(): whoever does not know 77 would take a rehearsal for a pass.
        if (!is_red(all.unheard_) && all.reports_.are_whole() && !all.reports_.is_rehearsal) return;
        const int code = exit_code_of(worst);
        if (is_red(all.unheard_))
            std::cerr << "llmbench: the program ends with " << code << ", as a gate is "
                      << to_string(worst) << std::endl;
        std::cout.flush();
        std::fflush(nullptr);
        std::_Exit(code);
    }

    void write_all(std::unique_lock<std::mutex>& lock) {
        reports_.write(program_is::over);
        reports_.add_to_history();
        reports_.tell_users(lock);
    }

    mutable std::mutex mutex_{};
    record_files records_;
    program_reports reports_{records_};
    host_place host_{};
    vector<std::string> reported_{};
    const pid_t process_ = ::getpid();
    std::atomic<std::uint64_t> gaps_kept_{0};
    std::atomic<int> running_{0};
    std::atomic<long long> virtual_ns_{0};
    gate_outcome unheard_ = gate_outcome::passed;  // the worst one that nobody has asked for
    bool has_said_ = false;                        // the last lines
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
