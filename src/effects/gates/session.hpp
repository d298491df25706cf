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
#include "effects/gates/program_reports.hpp"
#include "effects/gates/record_files.hpp"

#include <algorithm>  // any_of, count, find, min
#include <atomic>
#include <cstddef>  // ptrdiff_t, size_t
#include <cstdint>  // uint64_t
#include <cstdio>  // fflush
#include <cstdlib>  // atexit, at_quick_exit, _Exit
#include <iostream>  // cout, cerr
#include <mutex>  // lock_guard, unique_lock
#include <optional>
#include <string>
#include <utility>  // exchange, move

#ifdef __APPLE__
#include <dlfcn.h>  // dlsym
#endif
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

/// Who fails by a red gate: nobody, the test case that asserts it, or the exit code.
enum class told_by : unsigned char { nobody, test_case, exit_code };

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
        if (phase_ == phase::ended) {
            phase_ = phase::reported;
            hear_of_the_end();
        }
        reports_.gates.push_back(report_without(who, gate_outcome::unfinished,
                                                "it had not ended when this was written"));
        reports_.has_changed = true;
        reports_.write_unended();
        return reports_.gates.size() - 1;
    }
    /// The gate has ended.
    void close_gate(std::size_t number, gate_report&& g, told_by told) {
        const std::lock_guard guard(mutex_);
        gate_report& so_far = reports_.gates[number];
        if (so_far.outcome != gate_outcome::unfinished) return;  // it has ended
        note_unreported(g.outcome, told);
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
    void worsen(std::size_t number, gate_outcome adds, told_by told) {
        with_reports([&](program_reports& r) {
            r.gates[number].outcome = worse_of(r.gates[number].outcome, adds);
            note_unreported(adds, told);
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
    /// doctest's run has ended: it knows the results of its test cases.
    void host_has_ended() {
        const std::lock_guard guard(mutex_);
        host_.end();
        unreported_by_host_ = gate_outcome::passed;
    }

    std::size_t number_of_gates() const {
        const std::lock_guard guard(mutex_);
        return reports_.gates.size();
    }
    /// The outcome for the exit code: all is written, and the caller reports it.
    gate_outcome final_outcome() {
        refuse_in_report("exit_code() cannot be called while a function of on_report runs: it is "
                         ".exit_code of what that is given");
        std::unique_lock lock(mutex_);
        if (is_ours()) write_all(lock);
        unreported_ = unreported_by_host_ = gate_outcome::passed;
        return reports_.worst();
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
    bool is_rehearsal() const {
        const std::lock_guard guard(mutex_);
        return reports_.is_rehearsal;
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
    /// False in a forked child: files, exit code and gates belong to its parent.
    bool is_ours() const { return ::getpid() == process_; }

    /// Writes the reports at the program's end, and prints for GitHub Actions.
    void finish() {
        if (!is_ours()) return;
        const interrupt_guard until_all_is_written;
        std::unique_lock lock(mutex_);
        if (reports_.cut_off("the program ended before this gate did")) cut_off_ = true;
        // exit() in a test case keeps doctest from printing its results.
        if (returns_exit_code || !reports_.gates.empty())
            if (const auto inside = host_.end()) {
                reports_.note_other(*inside, "the program ended inside this test case",
                                    gate_outcome::invalid);
                cut_off_ = true;
            }
        write_all(lock);
        if (std::exchange(phase_, phase::reported) == phase::running) reports_.say_at_the_end();
    }
    std::atomic<bool> returns_exit_code{false};  // main() is ours
    std::atomic<host_run> host_did{host_run::test_cases};

private:
    /// A gate in a static object's destructor may begin after the end.
    enum class phase : unsigned char { running, reported, ended };

    session() : records_(report_directory()) {
        hear_of_the_end();
        load_sharing_of_program->when_lost([this](const std::string& why) { lose(why); });
    }
    /// Other ranks are lost, and another thread waits for them: writes the results; no gate passes.
    void lose(const std::string& why) {
        const std::lock_guard guard(mutex_);
        reports_.cut_off(why);
        reports_.write(program_is::over);
    }
    /// exit() and quick_exit() call us; _Exit() and signals do not.
    void hear_of_the_end() {
        std::atexit(at_the_end);
#ifdef __APPLE__  // whose SDKs have not all declared it
        using hearing = int (*)(void (*)());
        if (void* const named = ::dlsym(RTLD_DEFAULT, "at_quick_exit"))
            reinterpret_cast<hearing>(named)(at_the_end);
#else
        std::at_quick_exit(at_the_end);
#endif
    }
    /// Too late for main(), whatever the exit code was: if a gate was cut off, a file cannot be
    /// written, or a gate is red and neither main() nor doctest has reported it, the code changes.
    static void at_the_end() {
        if (is_telling_users) {
            std::cerr << "llmbench: a function that on_report was given ends the program, so no "
                         "result of it is a pass"
                      << std::endl;
            std::_Exit(exit_code_of(gate_outcome::invalid));
        }
        session& all = of_this_program();
        if (!all.is_ours()) return;
        all.finish();
        const std::lock_guard guard(all.mutex_);
        all.phase_ = phase::ended;
        const gate_outcome unused_option = worse_of(all.unreported_, all.unreported_by_host_);
        // With any main(): whoever does not know 77 would take a rehearsal for a pass.
        if (!all.reports_.is_rehearsal && !all.cut_off_ && all.reports_.are_whole() &&
            !is_red(unused_option))
            return;
        const int code = exit_code_of(all.reports_.worst());
        if (is_red(unused_option))
            std::cerr << "llmbench: a gate is " << to_string(unused_option)
                      << " and the program ends "
                      << "without having asked for that: it ends with " << code << std::endl;
        std::cout.flush();
        std::fflush(nullptr);
        std::_Exit(code);
    }

    void write_all(std::unique_lock<std::mutex>& lock) {
        reports_.write(program_is::over);
        reports_.add_to_history();
        reports_.tell_users(lock);
    }
    void note_unreported(gate_outcome o, told_by told) {
        gate_outcome& by = told == told_by::test_case ? unreported_by_host_ : unreported_;
        if (told != told_by::nobody) by = worse_of(by, o);
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
    // The worst outcome that nobody has reported yet: outside test cases, and inside.
    gate_outcome unreported_ = gate_outcome::passed, unreported_by_host_ = gate_outcome::passed;
    phase phase_ = phase::running;
    bool cut_off_ = false;  // a gate, or a test case
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
