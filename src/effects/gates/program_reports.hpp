// the reports of all gates of a program, and its files
#pragma once

#include "core/judging/outcome.hpp"
#include "core/reports/answers.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/comparison_report.hpp"
#include "core/reports/console.hpp"
#include "core/reports/curve_report.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/result_json.hpp"
#include "core/reports/page/page.hpp"
#include "effects/system/files.hpp"
#include "effects/system/machine.hpp"
#include "effects/system/settings.hpp"
#include "effects/history/append.hpp"
#include "effects/gates/host_place.hpp"
#include "effects/gates/record_files.hpp"

#include <algorithm>  // any_of, max, none_of
#include <cstddef>  // ptrdiff_t
#include <filesystem>  // error_code
#include <fstream>  // ofstream, ios
#include <iostream>  // cout
#include <map>
#include <memory>  // unique_ptr
#include <stdexcept>  // exception
#include <string>
#include <utility>  // exchange, move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A reason to end with something else than 0.
inline bool is_red(gate_outcome o) {
    return o != gate_outcome::passed && o != gate_outcome::skipped;
}

/// One thread at a time may call: the session sees to it.
class program_reports {
public:
    explicit program_reports(record_files& records) : records_(records) {}

    /// A gate that has begun; its number.
    std::size_t open(gate_report&& as_far_as_known) {
        gates_.push_back(std::move(as_far_as_known));
        gates_.back().refusal = "it had not ended when this was written";
        changed_ = true;
        if (written_as_over_) write(false);
        return gates_.size() - 1;
    }
    void close(std::size_t number, gate_report&& g) {
        gates_[number] = std::move(g);
        changed_ = true;
        // Each file holds all gates: to write them again after each one of many takes hours.
        if (gates_.size() < next_writing_) return;
        next_writing_ = std::max(gates_.size() + 1, gates_.size() * 5 / 4);
        write(false);
    }
    const std::vector<gate_report>& gates() const { return gates_; }
    /// To be changed: the files are written again.
    gate_report& gate(std::size_t number) {
        changed_ = true;
        return gates_[number];
    }
    /// Several settings beside each other, whose gates are reported as well.
    void add(const comparison_report& c) {
        comparisons_.push_back(c);
        changed_ = true;
    }
    /// One load after the other, the same; how the console tells it.
    std::string add(const curve_report& c) {
        curves_.push_back(c);
        changed_ = true;
        return curve_text(c, gates_);
    }
    /// What failed beside the gates.
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
    /// Gates that have not ended never will; whether there were any.
    bool cut_off(const std::string& why) {
        bool any = false;
        for (gate_report& g : gates_)
            if (g.outcome == gate_outcome::unfinished) {
                g.outcome = gate_outcome::invalid;
                g.refusal = why;
                changed_ = any = true;
            }
        return any;
    }
    void note_rehearsal() { is_rehearsal_ = true; }

    /// From this gate on, none is a reason to end with something else than 0.
    bool are_green_from(std::size_t first_gate) const {
        return std::none_of(gates_.begin() + static_cast<std::ptrdiff_t>(first_gate), gates_.end(),
                            [](const gate_report& g) { return is_red(g.outcome); });
    }
    /// Over all gates and their files: a green run whose files are not whole is not green.
    gate_outcome worst() const {
        const auto reported = [&](gate_outcome o) {
            const bool is_verdict = o == gate_outcome::passed || o == gate_outcome::failed;
            return is_rehearsal_ && is_verdict ? gate_outcome::skipped : o;
        };
        gate_outcome all = reported(are_whole() ? gate_outcome::passed : gate_outcome::invalid);
        for (const auto* reports : {&gates_, &others_})
            for (const gate_report& g : *reports) all = worse_of(all, reported(g.outcome));
        return all;
    }
    bool are_whole() const { return whole_ && records_.are_whole(); }

    /// The files of the program, with all gates so far.
    void write(bool is_over) {
        if (gates_.empty() || !records_.are_open()) return;
        if (!changed_ && is_over == written_as_over_) return;
        changed_ = false;
        written_as_over_ = is_over;
        const gate_outcome so_far = is_over ? worst() : worse_of(worst(), gate_outcome::invalid);
        const std::string directory = report_directory();
        const std::filesystem::path dir = directory;
        // Together or not at all: what was written before says of itself that it is no pass.
        try {
            drafted_files files;
            files.add(dir / "result.json",
                      result_json(gates_, environment_, records_.index(), exit_code_of(so_far),
                                  comparisons_, curves_));
            files.add(dir / "metrics.txt", open_metrics(gates_));
            if (const std::string lines = answers_jsonl(gates_); !lines.empty())
                files.add(dir / "answers.jsonl", lines);
            const auto is_calibrated = [](const gate_report& g) { return !g.calibration.empty(); };
            if (std::any_of(gates_.begin(), gates_.end(), is_calibrated))
                files.add(dir / "calibration.json", calibration_json(gates_));
            if (!curves_.empty()) files.add(dir / "curves.csv", curves_csv(curves_, gates_));
            with_all_reported(is_over, [&] {
                files.add(dir / "junit.xml", junit_xml(gates_));
                files.add(dir / "summary.md", summary_md(gates_, comparisons_, curves_));
                files.add(dir / "report.html",
                          report_html(gates_, environment_, comparisons_, curves_));
            });
            files.publish();
        } catch (const std::exception& e) {
            whole_ = false;
            report_not_whole(directory, std::string("the reports: ") + e.what());
        }
    }
    /// One gate's result as a file of its own, to be a baseline.
    void write_baseline(const gate_report& g, const std::string& file) {
        const std::filesystem::path path = file;
        if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
        write_file(path, result_json({g}, environment_, {}, exit_code_of(g.outcome)));
        baselines_[std::filesystem::weakly_canonical(path).string()] = g.what.name;
    }
    /// The gate of this program that has written its baseline there, "" where none has.
    std::string baseline_in(const std::string& file) const {
        std::error_code ignored;
        const auto at =
            baselines_.find(std::filesystem::weakly_canonical(file, ignored).string());
        return at == baselines_.end() ? std::string() : at->second;
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
                whole_ = false;
                changed_ = true;
                report_not_whole(folder, std::string("the history: ") + e.what());
                write(true);
            }
    }
    /// What the console and GitHub Actions are to show when the program has ended.
    void say_at_the_end() {
        if (!gates_.empty()) with_all_reported(true, [this] { say_all(); });
    }

private:
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
        if (!are_whole())
            add("the files of the program",
                "not all of them could be written whole, so it has not passed: "
                "its console says why");
        if (!is_over)
            add("the rest of the program",
                "the program had not ended when this was written, so it has not passed");
        tell();
    }
    void say_all() const {
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
                << summary_md(gates_, comparisons_, curves_);
    }
    record_files& records_;
    std::vector<gate_report> gates_{};
    std::vector<comparison_report> comparisons_{};
    std::vector<curve_report> curves_{};
    std::vector<gate_report> others_{};
    std::map<std::string, std::string> baselines_{};  // files, and the gates that wrote them
    environment_facts environment_ = environment_now();
    std::size_t next_writing_ = 1;  // with so many gates
    std::size_t seen_for_history_ = 0;
    bool changed_ = false, written_as_over_ = false, whole_ = true, is_rehearsal_ = false;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
