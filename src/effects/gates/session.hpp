// all gates of a program, and how it ends
#pragma once

#include "api/result.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/comparison_report.hpp"
#include "core/reports/curve_report.hpp"
#include "core/reports/gate_report.hpp"
#include "effects/system/ranks.hpp"
#include "effects/system/settings.hpp"
#include "effects/load/run_load.hpp"
#include "effects/gates/host_place.hpp"
#include "effects/gates/program_reports.hpp"
#include "effects/gates/record_files.hpp"

#include <algorithm>  // min
#include <atomic>
#include <cstdint>  // uint64_t
#include <cstdio>  // fflush
#include <cstdlib>  // atexit, at_quick_exit, _Exit
#include <iostream>  // cout, cerr
#include <mutex>  // lock_guard
#include <set>
#include <string>
#include <utility>  // exchange, move
#include <vector>

#include <sys/types.h>  // pid_t
#include <unistd.h>  // getpid

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Any thread may call: gates may be started by several, and any of them may end the program.
class session {
public:
    static session& of_this_program() {
        static session* const s = new session;  // outlives every static object
        return *s;
    }

    /// A gate that has begun; its number.
    std::size_t open_gate(gate_report&& as_far_as_known) {
        const std::lock_guard guard(mutex_);
        if (std::exchange(ended_, false)) hear_of_the_end();
        return reports_.open(std::move(as_far_as_known));
    }
    /// It has ended. `asserts`: it fails what it stands in.
    void close_gate(std::size_t number, gate_report&& g, bool asserts, bool in_test_case) {
        const std::lock_guard guard(mutex_);
        if (reports_.gates()[number].outcome != gate_outcome::unfinished) return;  // it ends
        if (asserts) note_unheard(g.outcome, in_test_case);
        reports_.close(number, std::move(g));
    }
    void add_comparison(const comparison_report& c) {
        const std::lock_guard guard(mutex_);
        reports_.add(c);
    }
    /// How the console tells it.
    std::string add_curve(const curve_report& c) {
        const std::lock_guard guard(mutex_);
        return reports_.add(c);
    }
    /// An assertion on its result, with what that adds to the outcome.
    void add_verdict(std::size_t number, const slo_verdict& v, gate_outcome adds,
                     const evidence& seen, bool in_test_case) {
        const std::lock_guard guard(mutex_);
        gate_report& g = reports_.gate(number);
        g.verdicts.push_back(v);
        g.figures = with_objective(std::move(g.figures), seen, v.what);
        worsen_gate(number, adds, in_test_case);
    }
    void worsen(std::size_t number, gate_outcome adds, bool in_test_case) {
        const std::lock_guard guard(mutex_);
        worsen_gate(number, adds, in_test_case);
    }
    /// A test case failed by something else than its gates, of which `first_gate` was the first:
    /// what they measured stays, and nothing of it is called a pass.
    void fail_test_case(const host_failure& f, std::size_t first_gate) {
        const std::lock_guard guard(mutex_);
        const std::size_t all = reports_.gates().size();
        for (std::size_t i = first_gate; i < all; ++i) {
            gate_report& g = reports_.gate(i);
            g.outcome = worse_of(g.outcome, gate_outcome::failed);
            g.beside = "its test case failed: " + f.why;
        }
        if (first_gate == all)
            reports_.note_other(f, "the test case has no gate and failed: " + f.why,
                                gate_outcome::failed);
    }
    /// Where doctest is.
    host_place& host() { return host_; }
    /// doctest's run has come to its end: it knows what its test cases did.
    void host_has_ended() {
        const std::lock_guard guard(mutex_);
        host_.end();
        unheard_by_host_ = gate_outcome::passed;
    }

    bool is_green_from(std::size_t first_gate) const {
        const std::lock_guard guard(mutex_);
        return reports_.are_green_from(first_gate);
    }
    std::size_t number_of_gates() const {
        const std::lock_guard guard(mutex_);
        return reports_.gates().size();
    }
    gate_outcome outcome() const {
        const std::lock_guard guard(mutex_);
        return reports_.worst();
    }
    /// For whoever makes it the exit code: everything is written, and nobody else need say it.
    gate_outcome final_outcome() {
        const std::lock_guard guard(mutex_);
        if (is_ours()) write_all();
        unheard_ = unheard_by_host_ = gate_outcome::passed;
        return reports_.worst();
    }

    /// Whether a note is told for the first time: one that holds for the program is told once.
    bool is_news(const std::string& note) {
        const std::lock_guard guard(mutex_);
        return reported_.insert(note).second;
    }

    /// Whose turn it is, counted from 1; others may have begun to wait for theirs.
    void give_turn(std::size_t number) { running_ = static_cast<int>(number) + 1; }
    int running_gate() const { return running_; }

    /// From now on the program passes and fails nothing.
    void note_rehearsal() {
        const std::lock_guard guard(mutex_);
        is_rehearsal_ = true;
        reports_.note_rehearsal();
    }
    bool is_rehearsal() const { return is_rehearsal_; }
    /// From now on the program's exit code is for `git bisect run`.
    void note_bisection() { is_bisection_ = true; }
    int code_of(gate_outcome o) const {
        return is_bisection_ ? bisect_code_of(o) : exit_code_of(o);
    }
    /// Of the gates so far that were computed, one after the other: whoever has its turn.
    void spend_virtual_time(long long ns) { virtual_ns_ += ns; }
    long long virtual_time_spent() const { return virtual_ns_; }

    record_files& records() { return records_; }
    void note_gaps(std::uint64_t kept) { gaps_kept_ += kept; }
    /// How many more gaps may be kept one by one.
    std::uint64_t room_for_gaps() const {
        return most_gaps_kept - std::min(most_gaps_kept, gaps_kept_.load());
    }
    /// False in a forked child: files, exit code and gates are its parent's.
    bool is_ours() const { return ::getpid() == process_; }

    /// At the end of the program: the reports, and what GitHub Actions is to show.
    void finish() {
        if (!is_ours()) return;
        const std::lock_guard guard(mutex_);
        if (reports_.cut_off("the program ended before this gate did")) cut_off_ = true;
        // Whoever calls exit() in a test case keeps doctest from telling what it has seen so far.
        if (returns_exit_code || !reports_.gates().empty())
            if (const auto inside = host_.end()) {
                reports_.note_other(*inside, "the program ended inside this test case",
                                    gate_outcome::invalid);
                cut_off_ = true;
            }
        write_all();
        if (!std::exchange(finished_, true)) reports_.say_at_the_end();
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
    std::atomic<bool> only_asked{false};       // doctest was asked a question and ran nothing

private:
    session() : records_(report_directory()) {
        hear_of_the_end();
#ifdef LLMBENCH_WITH_MPI
        rank_group::of_this_program().when_lost([this](const std::string& why) { lose(why); });
#endif
    }
    /// Other ranks do not come any more, and this thread is not the one that waits for them: what
    /// there is is written, and no gate of it is a pass.
    void lose(const std::string& why) {
        const std::lock_guard guard(mutex_);
        reports_.cut_off(why);
        reports_.write(true);
    }
    /// exit() and quick_exit() are heard of, _Exit() and signals are not. A gate in a destructor of
    /// a static object may begin when the end has been heard of already.
    void hear_of_the_end() {
        std::atexit(at_the_end);
        std::at_quick_exit(at_the_end);
    }
    /// Too late to tell main(), and with whatever code it was called: a gate was cut off, a file
    /// cannot be written, or a gate is red and neither main() nor doctest has come to hear of it.
    static void at_the_end() {
        session& all = of_this_program();
        if (!all.is_ours()) return;
        all.finish();
        const std::lock_guard guard(all.mutex_);
        all.ended_ = true;
        const gate_outcome unheard = worse_of(all.unheard_, all.unheard_by_host_);
        // Whoever's main() it is: what knows no 77 would call a rehearsal a pass.
        if (!all.is_rehearsal_ && !all.cut_off_ && all.reports_.are_whole() && !is_red(unheard))
            return;
        const int code = all.code_of(all.reports_.worst());
        if (is_red(unheard))
            std::cerr << "llmbench: a gate is " << to_string(unheard) << " and the program ends "
                      << "without having asked for that: it ends with " << code << std::endl;
        std::cout.flush();
        std::fflush(nullptr);
        std::_Exit(code);
    }

    void write_all() {
        reports_.write(true);
        reports_.add_to_history();
    }
    void note_unheard(gate_outcome o, bool in_test_case) {
        gate_outcome& by = in_test_case ? unheard_by_host_ : unheard_;
        by = worse_of(by, o);
    }
    void worsen_gate(std::size_t number, gate_outcome adds, bool in_test_case) {
        gate_report& g = reports_.gate(number);
        g.outcome = worse_of(g.outcome, adds);
        note_unheard(adds, in_test_case);
    }

    mutable std::mutex mutex_{};
    record_files records_;
    program_reports reports_{records_};
    host_place host_{};
    std::set<std::string> reported_{};
    const pid_t process_ = ::getpid();
    std::atomic<std::uint64_t> gaps_kept_{0};
    std::atomic<bool> is_rehearsal_{false}, is_bisection_{false};
    std::atomic<int> running_{0};
    std::atomic<long long> virtual_ns_{0};
    // The worst that nobody has come to hear of yet: outside test cases, and inside.
    gate_outcome unheard_ = gate_outcome::passed, unheard_by_host_ = gate_outcome::passed;
    bool finished_ = false, ended_ = false, cut_off_ = false;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
