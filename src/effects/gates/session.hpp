// all gates of a program, and how it ends
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/gate_report.hpp"
#include "effects/system/sharing.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/load/run_load.hpp"
#include "effects/gates/program_reports.hpp"
#include "effects/gates/record_files.hpp"

#include <algorithm>  // count, find, min
#include <atomic>
#include <cstdint>  // uint64_t
#include <cstdio>  // fflush
#include <cstdlib>  // atexit, at_quick_exit, _Exit
#include <iostream>  // cout, cerr
#include <mutex>  // lock_guard
#include <optional>
#include <stdexcept>  // logic_error
#include <string>
#include <utility>  // exchange, move
#include <vector>

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
    /// doctest enters this test case.
    void begin(const host_failure& at) {
        const std::lock_guard guard(mutex_);
        at_ = at;
        subcases_.clear();
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
    /// doctest leaves the test case; returns it.
    std::optional<host_failure> end() {
        const std::lock_guard guard(mutex_);
        return std::exchange(at_, std::nullopt);
    }
    std::string test_case() const {
        const std::lock_guard guard(mutex_);
        return at_ ? at_->test_case : std::string();
    }
    /// The name of a gate without one: its test case and subcases.
    std::string usual_name() const {
        const std::lock_guard guard(mutex_);
        std::string name = at_ ? at_->test_case : std::string();
        for (const std::string& s : subcases_) name += " / " + s;
        return name;
    }
    /// Returns a unique name: a second gate of that name gets a number.
    std::string name_of_its_own(const std::string& name) {
        const std::lock_guard guard(mutex_);
        const auto before = std::count(names_.begin(), names_.end(), name);
        names_.push_back(name);
        return before == 0 ? name : name + printed(" (%d)", static_cast<int>(before) + 1);
    }

private:
    mutable std::mutex mutex_{};
    std::optional<host_failure> at_{};
    std::vector<std::string> subcases_{};
    std::vector<std::string> names_{};  // that gates asked for
};

/// What doctest did: it ran test cases, answered a query, or found none that matches its filter.
enum class host_run : unsigned char { test_cases, query, matched_none };

/// Thread-safe: several threads may start gates, and any may end the program.
class session {
public:
    static session& of_this_program() {
        if (is_telling_users)
            throw std::logic_error("it runs a gate or asks for the exit code, which is "
                                   ".exit_code of what it is given");
        static session* const s = new session;  // outlives every static object
        return *s;
    }

    /// Adds a gate that has begun; returns its number.
    std::size_t open_gate(gate_report&& as_far_as_known) {
        const std::lock_guard guard(mutex_);
        if (phase_ == phase::ended) {
            phase_ = phase::reported;
            hear_of_the_end();
        }
        return reports_.open(std::move(as_far_as_known));
    }
    /// The gate has ended. `asserts`: it fails its test case.
    void close_gate(std::size_t number, gate_report&& g, bool asserts, bool in_test_case) {
        const std::lock_guard guard(mutex_);
        if (reports_.gates()[number].outcome != gate_outcome::unfinished) return;  // it has ended
        if (asserts) note_unreported(g.outcome, in_test_case);
        reports_.close(number, std::move(g));
    }
    /// `change` adds to a section beside the gates, and gets all of these so far.
    template <class Change>
    auto tell_sections(program_section& all, const Change& change) {
        const std::lock_guard guard(mutex_);
        reports_.add(all);
        return change(reports_.gates());
    }
    /// Adds an assertion on a gate's result and its effect on the outcome.
    void add_verdict(std::size_t number, const slo_verdict& v, gate_outcome adds,
                     const measurements& seen, bool in_test_case) {
        const std::lock_guard guard(mutex_);
        gate_report& g = reports_.gate(number);
        g.verdicts.push_back(v);
        add_objective(g.figures, seen, v.what);
        worsen_gate(number, adds, in_test_case);
    }
    void worsen(std::size_t number, gate_outcome adds, bool in_test_case) {
        const std::lock_guard guard(mutex_);
        worsen_gate(number, adds, in_test_case);
    }
    /// A test case with gates from `first_gate` on has failed: their measurements stay, but none is
    /// called a pass.
    void fail_test_case(host_failure f, std::size_t first_gate) {
        const std::lock_guard guard(mutex_);
        const std::size_t all = reports_.gates().size();
        if (f.why.empty()) {  // it failed by its gates, or by a decorator
            if (!reports_.are_green_from(first_gate)) return;
            f.why = "doctest calls it a failure";
        }
        for (std::size_t i = first_gate; i < all; ++i) {
            gate_report& g = reports_.gate(i);
            g.outcome = worse_of(g.outcome, gate_outcome::failed);
            g.beside = "its test case failed: " + f.why;
        }
        if (first_gate == all)
            reports_.note_other(f, "the test case has no gate and failed: " + f.why,
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
        return reports_.gates().size();
    }
    /// The outcome for the exit code: all is written, and the caller reports it.
    gate_outcome final_outcome() {
        const std::lock_guard guard(mutex_);
        if (is_ours()) write_all();
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
        is_rehearsal_ = true;
        reports_.note_rehearsal();
    }
    bool is_rehearsal() const { return is_rehearsal_; }
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
        const std::lock_guard guard(mutex_);
        if (reports_.cut_off("the program ended before this gate did")) cut_off_ = true;
        // exit() in a test case keeps doctest from printing its results.
        if (returns_exit_code || !reports_.gates().empty())
            if (const auto inside = host_.end()) {
                reports_.note_other(*inside, "the program ended inside this test case",
                                    gate_outcome::invalid);
                cut_off_ = true;
            }
        write_all();
        if (std::exchange(phase_, phase::reported) == phase::running) reports_.say_at_the_end();
    }
    void write_baseline(const gate_report& g, const std::string& file) {
        const std::lock_guard guard(mutex_);
        reports_.write_baseline(g, file);
    }
    std::string baseline_in(const std::string& file) const {
        const std::lock_guard guard(mutex_);
        return reports_.baseline_in(file);
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
        reports_.write(true);
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
        if (!all.is_rehearsal_ && !all.cut_off_ && all.reports_.are_whole() &&
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

    void write_all() {
        reports_.write(true);
        reports_.add_to_history();
        reports_.tell_users();
    }
    void note_unreported(gate_outcome o, bool in_test_case) {
        gate_outcome& by = in_test_case ? unreported_by_host_ : unreported_;
        by = worse_of(by, o);
    }
    void worsen_gate(std::size_t number, gate_outcome adds, bool in_test_case) {
        gate_report& g = reports_.gate(number);
        g.outcome = worse_of(g.outcome, adds);
        note_unreported(adds, in_test_case);
    }

    mutable std::mutex mutex_{};
    record_files records_;
    program_reports reports_{records_};
    host_place host_{};
    std::vector<std::string> reported_{};
    const pid_t process_ = ::getpid();
    std::atomic<std::uint64_t> gaps_kept_{0};
    std::atomic<bool> is_rehearsal_{false};
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
