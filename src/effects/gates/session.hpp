// all gates of a program and their reports
#pragma once

#include "api/result.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/result_json.hpp"
#include "core/reports/page/page.hpp"
#include "effects/system/files.hpp"
#include "effects/system/machine.hpp"
#include "effects/system/settings.hpp"
#include "effects/load/run_load.hpp"
#include "effects/gates/record_files.hpp"

#include <algorithm>  // any_of, max, min
#include <cstdint>  // uint64_t
#include <cstdio>  // fflush
#include <cstdlib>  // atexit
#include <filesystem>  // error_code
#include <fstream>  // ofstream, ios
#include <iostream>  // cout
#include <stdexcept>  // exception
#include <string>
#include <utility>  // exchange, move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

class session {
public:
    static session& of_this_program() {
        static session* const s = [] {
            std::atexit([] {
                of_this_program().finish();
                // Too late to tell main(): a gate was cut off, or a file cannot be written.
                if (of_this_program().is_cut_off()) {
                    std::cout.flush();
                    std::fflush(nullptr);
                    std::_Exit(exit_code_of(of_this_program().outcome()));
                }
            });
            return new session;  // outlives every static object
        }();
        return *s;
    }

    /// A gate that has begun; its number.
    std::size_t open_gate(gate_report&& as_far_as_known) {
        gates_.push_back(std::move(as_far_as_known));
        changed_ = true;
        return gates_.size() - 1;
    }
    /// It has ended.
    void close_gate(std::size_t number, gate_report&& g) {
        gates_[number] = std::move(g);
        changed_ = true;
        // Each file holds all gates: to write them again after each one of many takes hours.
        if (gates_.size() < next_writing_) return;
        next_writing_ = std::max(gates_.size() + 1, gates_.size() * 5 / 4);
        write_reports();
    }
    /// An assertion on its result, with what that adds to the outcome.
    void add_verdict(std::size_t number, const slo_verdict& v, gate_outcome adds,
                     const evidence& seen) {
        gate_report& g = gates_[number];
        g.verdicts.push_back(v);
        g.figures = with_objective(std::move(g.figures), seen, v.what);
        worsen(number, adds);
    }
    void worsen(std::size_t number, gate_outcome adds) {
        gates_[number].outcome = worse_of(gates_[number].outcome, adds);
        changed_ = true;
    }

    std::size_t number_of_gates() const { return gates_.size(); }
    /// Over all gates and their files: a green run whose files are not whole is not green.
    gate_outcome outcome() const {
        gate_outcome all = is_whole() ? gate_outcome::passed : gate_outcome::invalid;
        for (const gate_report& g : gates_) all = worse_of(all, g.outcome);
        return all;
    }

    record_files& records() { return records_; }
    void note_gaps(std::uint64_t kept) { gaps_kept_ += kept; }
    /// How many more gaps may be kept one by one.
    std::uint64_t room_for_gaps() const {
        return most_gaps_kept - std::min(most_gaps_kept, gaps_kept_);
    }

    /// The files of the program, with all gates so far.
    void write_reports() {
        if (!changed_ || gates_.empty() || !records_.are_open()) return;
        changed_ = false;
        try {
            const std::filesystem::path dir = report_directory();
            write_file(dir / "result.json", result_json(gates_, environment_, records_.index(),
                                                        exit_code_of(outcome())));
            write_file(dir / "junit.xml", junit_xml(gates_));
            write_file(dir / "summary.md", summary_md(gates_));
            write_file(dir / "metrics.txt", open_metrics(gates_));
            write_file(dir / "report.html", report_html(gates_, environment_));
            const auto is_calibrated = [](const gate_report& g) { return !g.calibration.empty(); };
            if (std::any_of(gates_.begin(), gates_.end(), is_calibrated))
                write_file(dir / "calibration.json", calibration_json(gates_));
        } catch (const std::exception& e) {
            reports_whole_ = false;
            tell_not_whole(report_directory(), std::string("the reports: ") + e.what());
        }
    }
    /// At the end of the program: the reports, and what GitHub Actions is to show.
    void finish() {
        for (gate_report& g : gates_)
            if (g.outcome == gate_outcome::unfinished) {
                g.outcome = gate_outcome::invalid;
                g.refusal = "the program ended before this gate did";
                changed_ = cut_off_ = true;
            }
        write_reports();
        if (std::exchange(finished_, true) || gates_.empty()) return;
        const surroundings& around = surroundings_of_program();
        std::cout << closing_text(gates_, around.style()) << std::flush;
        if (around.on_github)
            std::cout << github_annotations(gates_, around.github_workspace) << std::flush;
        if (around.step_summary.empty()) return;
        std::error_code none;
        const auto taken = std::filesystem::file_size(around.step_summary, none);
        // Above 1 MiB GitHub shows nothing of a step's summary, of others' neither.
        if (none || taken + summary_limit <= 1048576)
            std::ofstream(around.step_summary, std::ios::app) << summary_md(gates_);
    }
    /// One gate's result as a file of its own, to be a baseline.
    void write_baseline(const gate_report& g, const std::string& file) const {
        const std::filesystem::path path = file;
        if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
        write_file(path, result_json({g}, environment_, {}, exit_code_of(g.outcome)));
    }

    bool tells_exit_code = false;  // main() is ours
    bool only_asked = false;       // doctest was asked a question and ran nothing

private:
    session() : environment_(environment_now()), records_(report_directory()) {}
    bool is_whole() const { return reports_whole_ && records_.are_whole(); }
    bool is_cut_off() const { return cut_off_ || !is_whole(); }

    std::vector<gate_report> gates_{};
    environment_facts environment_;
    record_files records_;
    std::uint64_t gaps_kept_ = 0;
    std::size_t next_writing_ = 1;  // with so many gates
    bool changed_ = false, finished_ = false, cut_off_ = false, reports_whole_ = true;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
