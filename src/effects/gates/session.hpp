// all gates of a program and their reports
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/comparison_report.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/result_json.hpp"
#include "core/reports/page/page.hpp"
#include "effects/system/files.hpp"
#include "effects/system/machine.hpp"
#include "effects/system/ranks.hpp"
#include "effects/system/settings.hpp"
#include "effects/history/append.hpp"
#include "effects/load/run_load.hpp"
#include "effects/gates/record_files.hpp"

#include <algorithm>  // any_of, none_of, max, min
#include <atomic>
#include <cstddef>  // ptrdiff_t
#include <cstdint>  // uint64_t
#include <cstdio>  // fflush
#include <cstdlib>  // atexit, at_quick_exit, _Exit
#include <filesystem>  // error_code
#include <fstream>  // ofstream, ios
#include <iostream>  // cout, cerr
#include <map>
#include <memory>  // unique_ptr
#include <mutex>  // lock_guard
#include <optional>
#include <set>
#include <stdexcept>  // exception
#include <string>
#include <utility>  // exchange, move
#include <vector>

#include <sys/types.h>  // pid_t
#include <unistd.h>  // getpid

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A test case of doctest's, and why it failed where that is no gate's fault.
struct host_failure {
    std::string test_case{}, file{};
    int line = 0;
    std::string why{};
};

/// A reason to end with something else than 0.
inline bool is_red(gate_outcome o) {
    return o != gate_outcome::passed && o != gate_outcome::skipped;
}

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
        gates_.push_back(std::move(as_far_as_known));
        gates_.back().refusal = "it had not ended when this was written";
        changed_ = true;
        if (written_as_over_) write_files(false);
        return gates_.size() - 1;
    }
    /// It has ended. `asserts`: it fails what it stands in.
    void close_gate(std::size_t number, gate_report&& g, bool asserts, bool in_test_case) {
        const std::lock_guard guard(mutex_);
        if (gates_[number].outcome != gate_outcome::unfinished) return;  // the program ends
        if (asserts) note_unheard(g.outcome, in_test_case);
        gates_[number] = std::move(g);
        changed_ = true;
        // Each file holds all gates: to write them again after each one of many takes hours.
        if (gates_.size() < next_writing_) return;
        next_writing_ = std::max(gates_.size() + 1, gates_.size() * 5 / 4);
        write_files(false);
    }
    /// Several settings beside each other, whose gates are told of as well.
    void add_comparison(const comparison_report& c) {
        const std::lock_guard guard(mutex_);
        comparisons_.push_back(c);
        changed_ = true;
    }
    /// An assertion on its result, with what that adds to the outcome.
    void add_verdict(std::size_t number, const slo_verdict& v, gate_outcome adds,
                     const evidence& seen, bool in_test_case) {
        const std::lock_guard guard(mutex_);
        gate_report& g = gates_[number];
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
        changed_ = true;
        const std::string words = "its test case failed: " + f.why;
        for (std::size_t i = first_gate; i < gates_.size(); ++i) {
            gates_[i].outcome = worse_of(gates_[i].outcome, gate_outcome::failed);
            gates_[i].beside = words;
        }
        if (first_gate == gates_.size())
            note_other(f, "the test case has no gate and failed: " + f.why, gate_outcome::failed);
    }
    /// doctest is in this test case now.
    void host_begins(const host_failure& at) {
        const std::lock_guard guard(mutex_);
        host_is_at_ = at;
        subcases_.clear();
    }
    /// Deeper in it, and out again.
    void host_enters(const std::string& subcase) {
        const std::lock_guard guard(mutex_);
        subcases_.push_back(subcase);
    }
    void host_leaves() {
        const std::lock_guard guard(mutex_);
        if (!subcases_.empty()) subcases_.pop_back();
    }
    /// Of a gate that is given none: the test case and the subcases that it stands in.
    std::string usual_name() const {
        const std::lock_guard guard(mutex_);
        std::string name = host_is_at_ ? host_is_at_->test_case : std::string();
        for (const std::string& s : subcases_) name += " / " + s;
        return name;
    }
    /// A name that no gate had yet: a second one is told from the first by its number.
    std::string name_of_its_own(const std::string& name) {
        const std::lock_guard guard(mutex_);
        const int times = ++names_[name];
        return times == 1 ? name : name + printed(" (%d)", times);
    }
    std::string test_case() const {
        const std::lock_guard guard(mutex_);
        return host_is_at_ ? host_is_at_->test_case : std::string();
    }
    /// doctest's run has come to its end: it knows what its test cases did.
    void host_has_ended() {
        const std::lock_guard guard(mutex_);
        host_is_at_.reset();
        unheard_by_host_ = gate_outcome::passed;
    }

    /// From this gate on, none is a reason to end with something else than 0.
    bool is_green_from(std::size_t first_gate) const {
        const std::lock_guard guard(mutex_);
        return std::none_of(gates_.begin() + static_cast<std::ptrdiff_t>(first_gate), gates_.end(),
                            [](const gate_report& g) { return is_red(g.outcome); });
    }
    std::size_t number_of_gates() const {
        const std::lock_guard guard(mutex_);
        return gates_.size();
    }
    /// Over all gates and their files: a green run whose files are not whole is not green.
    gate_outcome outcome() const {
        const std::lock_guard guard(mutex_);
        return worst();
    }
    /// For whoever makes it the exit code: everything is written, and nobody else need say it.
    gate_outcome final_outcome() {
        const std::lock_guard guard(mutex_);
        if (is_ours()) {
            write_files(true);
            add_to_history();
        }
        unheard_ = unheard_by_host_ = gate_outcome::passed;
        return worst();
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
    void note_rehearsal() { is_rehearsal_ = true; }
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
        for (gate_report& g : gates_)
            if (g.outcome == gate_outcome::unfinished) {
                g.outcome = gate_outcome::invalid;
                g.refusal = "the program ended before this gate did";
                changed_ = cut_off_ = true;
            }
        // Whoever calls exit() in a test case keeps doctest from telling what it has seen so far.
        if (host_is_at_ && (returns_exit_code || !gates_.empty())) {
            note_other(*host_is_at_, "the program ended inside this test case",
                       gate_outcome::invalid);
            host_is_at_.reset();
            cut_off_ = true;
        }
        write_files(true);
        add_to_history();
        if (!std::exchange(finished_, true) && !gates_.empty())
            with_all_reported(true, [&] { say_at_the_end(); });
    }
    /// One gate's result as a file of its own, to be a baseline.
    void write_baseline(const gate_report& g, const std::string& file) {
        const std::filesystem::path path = file;
        if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
        write_file(path, result_json({g}, environment_, {}, exit_code_of(g.outcome)));
        const std::lock_guard guard(mutex_);
        baselines_[std::filesystem::weakly_canonical(path).string()] = g.what.name;
    }
    /// The gate of this program that has written its baseline there, "" where none has.
    std::string baseline_in(const std::string& file) const {
        const std::lock_guard guard(mutex_);
        std::error_code ignored;
        const auto at =
            baselines_.find(std::filesystem::weakly_canonical(file, ignored).string());
        return at == baselines_.end() ? std::string() : at->second;
    }

    std::atomic<bool> returns_exit_code{false};  // main() is ours
    std::atomic<bool> only_asked{false};       // doctest was asked a question and ran nothing

private:
    session() : environment_(environment_now()), records_(report_directory()) {
        hear_of_the_end();
#ifdef LLMBENCH_WITH_MPI
        rank_group::of_this_program().when_lost([this](const std::string& why) { lose(why); });
#endif
    }
    /// Other ranks do not come any more, and this thread is not the one that waits for them: what
    /// there is is written, and no gate of it is a pass.
    void lose(const std::string& why) {
        const std::lock_guard guard(mutex_);
        for (gate_report& g : gates_)
            if (g.outcome == gate_outcome::unfinished) {
                g.outcome = gate_outcome::invalid;
                g.refusal = why;
            }
        changed_ = true;
        write_files(true);
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
        if (!all.is_rehearsal_ && !all.cut_off_ && all.is_whole() && !is_red(unheard)) return;
        const int code = all.code_of(all.worst());
        if (is_red(unheard))
            std::cerr << "llmbench: a gate is " << to_string(unheard) << " and the program ends "
                      << "without having asked for that: it ends with " << code << std::endl;
        std::cout.flush();
        std::fflush(nullptr);
        std::_Exit(code);
    }

    gate_outcome worst() const {
        const auto reported = [&](gate_outcome o) {
            const bool is_verdict = o == gate_outcome::passed || o == gate_outcome::failed;
            return is_rehearsal_ && is_verdict ? gate_outcome::skipped : o;
        };
        gate_outcome all = reported(is_whole() ? gate_outcome::passed : gate_outcome::invalid);
        for (const auto* reports : {&gates_, &others_})
            for (const gate_report& g : *reports) all = worse_of(all, reported(g.outcome));
        return all;
    }
    void note_other(const host_failure& at, const std::string& why, gate_outcome outcome) {
        gate_report g;
        g.what.name = g.what.test_case = at.test_case;
        g.what.file = at.file;
        g.what.line = at.line;
        g.refusal = why;
        g.outcome = outcome;
        others_.push_back(std::move(g));
        changed_ = true;
    }
    void note_unheard(gate_outcome o, bool in_test_case) {
        gate_outcome& by = in_test_case ? unheard_by_host_ : unheard_;
        by = worse_of(by, o);
    }
    void worsen_gate(std::size_t number, gate_outcome adds, bool in_test_case) {
        gates_[number].outcome = worse_of(gates_[number].outcome, adds);
        note_unheard(adds, in_test_case);
        changed_ = true;
    }
    /// Calls `tell` while `gates_` is all that reports tell of. Until the program has ended that is
    /// one thing more: should it be killed, its files are not green. Nor are they if some are not
    /// whole.
    template <class Tell>
    void with_all_reported(bool is_over, const Tell& tell) {
        const std::size_t own = gates_.size();
        const auto without_more = [&](std::vector<gate_report>* all) {
            all->erase(all->begin() + static_cast<std::ptrdiff_t>(own), all->end());
        };
        const std::unique_ptr<std::vector<gate_report>, decltype(without_more)> restored(
            &gates_, without_more);
        gates_.insert(gates_.end(), others_.begin(), others_.end());
        const auto add = [&](const char* name, const char* why) {
            gate_report more;
            more.what.name = name;
            more.what.file = gates_[own - 1].what.file;
            more.what.line = gates_[own - 1].what.line;
            more.refusal = why;
            more.outcome = gate_outcome::invalid;
            gates_.push_back(std::move(more));
        };
        if (!is_whole())
            add("the files of the program",
                "not all of them could be written whole, so it has not passed: "
                "its console says why");
        if (!is_over)
            add("the rest of the program",
                "the program had not ended when this was written, so it has not passed");
        tell();
    }
    /// The files of the program, with all gates so far.
    void write_files(bool is_over) {
        if (gates_.empty() || !records_.are_open()) return;
        if (!changed_ && is_over == written_as_over_) return;
        changed_ = false;
        written_as_over_ = is_over;
        const gate_outcome so_far = is_over ? worst() : worse_of(worst(), gate_outcome::invalid);
        const std::filesystem::path dir = report_directory();
        // Together or not at all: what was written before says of itself that it is no pass.
        try {
            drafted_files files;
            files.add(dir / "result.json", result_json(gates_, environment_, records_.index(),
                                                       exit_code_of(so_far), comparisons_));
            files.add(dir / "metrics.txt", open_metrics(gates_));
            const auto is_calibrated = [](const gate_report& g) { return !g.calibration.empty(); };
            if (std::any_of(gates_.begin(), gates_.end(), is_calibrated))
                files.add(dir / "calibration.json", calibration_json(gates_));
            with_all_reported(is_over, [&] {
                files.add(dir / "junit.xml", junit_xml(gates_));
                files.add(dir / "summary.md", summary_md(gates_, comparisons_));
                files.add(dir / "report.html", report_html(gates_, environment_, comparisons_));
            });
            files.publish();
        } catch (const std::exception& e) {
            reports_whole_ = false;
            report_not_whole(report_directory(), std::string("the reports: ") + e.what());
        }
    }
    /// What gates measured since the last time, a file for each folder. After the reports: what is
    /// added to was told.
    void add_to_history() {
        std::map<std::string, std::vector<history_entry>> nights;
        for (; seen_for_history_ < gates_.size(); ++seen_for_history_) {
            const gate_report& g = gates_[seen_for_history_];
            if (g.outcome == gate_outcome::unfinished) break;
            if (g.night && (*g.night).why_not.empty())
                nights[(*g.night).folder].push_back(*g.night);
        }
        for (const auto& [folder, gates] : nights) try {
                const std::string file = append_history(folder, gates, environment_.started_at,
                                                        environment_.commit);
                std::cout << history_text(file, gates.size()) << std::flush;
            } catch (const std::exception& e) {
                reports_whole_ = false;
                changed_ = true;
                report_not_whole(folder, std::string("the history: ") + e.what());
                write_files(true);
            }
    }
    void say_at_the_end() const {
        const surroundings& around = surroundings_of_program();
        std::cout << closing_text(gates_, around.style()) << std::flush;
        if (around.on_github)
            std::cout << github_annotations(gates_, around.github_workspace) << std::flush;
        if (around.step_summary.empty()) return;
        std::error_code none;
        const auto taken = std::filesystem::file_size(around.step_summary, none);
        // Above 1 MiB GitHub shows nothing of a step's summary, of others' neither.
        if (none || taken + summary_limit <= 1048576)
            std::ofstream(around.step_summary, std::ios::app)
                << summary_md(gates_, comparisons_);
    }
    bool is_whole() const { return reports_whole_ && records_.are_whole(); }

    mutable std::mutex mutex_{};
    std::vector<gate_report> gates_{};
    std::vector<comparison_report> comparisons_{};
    std::vector<gate_report> others_{};  // what failed beside them
    std::set<std::string> reported_{};
    std::map<std::string, std::string> baselines_{};  // files, and the gates that wrote them
    std::map<std::string, int> names_{};  // how many gates would have each
    std::vector<std::string> subcases_{};  // that doctest is in
    std::optional<host_failure> host_is_at_{};
    environment_facts environment_;
    record_files records_;
    const pid_t process_ = ::getpid();
    std::atomic<std::uint64_t> gaps_kept_{0};
    std::atomic<bool> is_rehearsal_{false}, is_bisection_{false};
    std::atomic<int> running_{0};
    std::atomic<long long> virtual_ns_{0};
    std::size_t next_writing_ = 1;  // with so many gates
    std::size_t seen_for_history_ = 0;
    // The worst that nobody has come to hear of yet: outside test cases, and inside.
    gate_outcome unheard_ = gate_outcome::passed, unheard_by_host_ = gate_outcome::passed;
    bool changed_ = false, written_as_over_ = false, finished_ = false, ended_ = false;
    bool cut_off_ = false, reports_whole_ = true;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
