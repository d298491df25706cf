// the reports of all gates of a program, and its files
#pragma once

#include "api/doctest.hpp"
#include "api/verbs.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/result_json.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/text.hpp"
#include "core/reports/page/page.hpp"
#include "core/stored/stored.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "effects/system/known_secrets.hpp"
#include "effects/system/machine.hpp"
#include "effects/system/report_directory.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/sharing.hpp"
#include "effects/gates/record_files.hpp"

#include <algorithm>  // any_of, max
#include <atomic>
#include <cstddef>  // size_t
#include <filesystem>  // error_code
#include <fstream>  // ofstream, ios
#include <functional>
#include <iostream>  // cerr
#include <map>
#include <mutex>  // unique_lock
#include <stdexcept>  // exception, logic_error, runtime_error
#include <string>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Whether an outcome needs an exit code other than 0.
inline bool is_red(gate_outcome o) {
    return o != gate_outcome::passed && o != gate_outcome::skipped;
}

/// A doctest case, and why it failed if not by a gate.
struct host_failure : gate_identity {
    std::string why{};
    std::size_t first_gate = 0;
};

/// The report of a gate without measurements.
inline gate_report report_without(const gate_identity& who, gate_outcome outcome,
                                  const std::string& why) {
    gate_report g;
    static_cast<gate_identity&>(g.what) = who;
    g.outcome = outcome;
    g.refusal = why;
    return g;
}

/// Functions of users that get the files' content.
using user_report = void (*)(const report_view&);
inline vector<user_report>& user_reports() {
    static vector<user_report>& all = *new vector<user_report>;  // outlives every static object
    return all;
}

/// While they run: a gate in one of them would be told of by all of them, again and again.
inline std::atomic<bool> is_telling_users{false};

/// doctest's assertions in a user's report, where mostly no test case runs: one that does not hold
/// makes the report fail.
class assertions_in_report {
#if !defined(LLMBENCH_NO_DOCTEST) && !defined(DOCTEST_CONFIG_DISABLE)
public:
    assertions_in_report() {
        if (doctest::getContextOptions()) return;  // of a test case, or a main() that has its own
        context_.setAssertHandler([](const doctest::AssertData& a) {
            throw std::runtime_error(printed("%s:%d: %s( %s ) does not hold",
                                             file_name(a.m_file).c_str(), a.m_line,
                                             doctest::assertString(a.m_at), a.m_expr));
        });
        context_.setAsDefaultForAssertsOutOfTestCases();
    }

private:
    doctest::Context context_{};
#endif
};

/// What the files tell of the program.
enum class program_is : unsigned char { running, over };

/// Writes the reports of all gates. Not thread-safe: the session locks.
class program_reports {
public:
    explicit program_reports(record_files& records) : records_(records) {}

    vector<gate_report> gates{};
    all_sections beside{};     // of verbs over several gates
    bool has_changed = false;  // since the last writing
    bool is_rehearsal = false;

    /// Each file holds all gates: writing them after every gate takes hours if there are many.
    void write_now_and_then() {
        if (gates.size() < next_writing_) return;
        next_writing_ = std::max(gates.size() + 1, gates.size() * 5 / 4);
        write(program_is::running);
    }
    /// A file must not tell of an end while a gate runs.
    void write_unended() {
        if (written_as_over_) write(program_is::running);
    }
    /// Notes failures outside gates.
    void note_other(const host_failure& at, const std::string& why, gate_outcome outcome) {
        others_.push_back(report_without(at, outcome, why));
        has_changed = true;
    }
    /// Marks gates that have not ended as cut off; returns whether there were any.
    bool cut_off(const std::string& why) {
        bool any = false;
        for (gate_report& g : gates)
            if (g.outcome == gate_outcome::unfinished) {
                g.outcome = gate_outcome::invalid;
                g.refusal = why;
                has_changed = any = true;
            }
        return any;
    }

    /// The worst outcome of all gates and files: a green run with incomplete files is not green.
    gate_outcome worst() const {
        const auto reported = [&](gate_outcome o) {
            const bool is_verdict = o == gate_outcome::passed || o == gate_outcome::failed;
            return is_rehearsal && is_verdict ? gate_outcome::skipped : o;
        };
        gate_outcome all = reported(are_whole() ? gate_outcome::passed : gate_outcome::invalid);
        for (const auto* reports : {&gates, &others_})
            for (const gate_report& g : *reports) all = worse_of(all, reported(g.outcome));
        return all;
    }
    bool are_whole() const { return whole_ && records_.are_whole(); }

    void write(program_is now) {
        const bool is_over = now == program_is::over;
        if (gates.empty() || !records_.are_open()) return;
        if (!has_changed && is_over == written_as_over_) return;
        has_changed = false;
        written_as_over_ = is_over;
        const gate_outcome so_far = is_over ? worst() : worse_of(worst(), gate_outcome::invalid);
        const std::string directory = report_directory();
        const std::filesystem::path dir = directory;
        // Where one cannot be written, the others are written again, and say so.
        try {
            environment_.call = call_without_secrets();
            drafted_files drafts;
            const auto add = [&](const std::string& name, const std::string& content) {
                drafts.add(dir / name, content);
            };
            add("result.json", result_json(gates, environment_, records_.index(),
                                           exit_code_of(so_far), beside, others_));
            add("metrics.txt", open_metrics(gates));
            if (const std::string lines = answers_jsonl(gates); !lines.empty())
                add("answers.jsonl", lines);
            const auto is_calibrated = [](const gate_report& g) { return !g.calibration.empty(); };
            if (std::any_of(gates.begin(), gates.end(), is_calibrated))
                add("calibration.json", calibration_json(gates));
            for (const program_section* b : beside)
                for (const auto& [name, content] : b->files(gates)) add(name, content);
            with_all_reported(now, [&] {
                add("junit.xml", junit_xml(gates));
                add("summary.md", summary_md(gates, beside));
                add("report.html", report_html(gates, environment_, beside));
            });
            drafts.publish();
        } catch (const std::exception& e) {
            whole_ = false;
            if (std::exchange(has_failed_, true)) return;
            report_not_whole(directory, std::string("the reports: ") + reason_in(e));
            has_changed = true;
            write(now);
        }
    }
    /// Calls users' reports after the last writing, without `lock`: their threads may ask us. The
    /// files report those that fail.
    void tell_users(std::unique_lock<std::mutex>& lock) {
        const std::string file = report_directory() + "/result.json";
        if (user_reports().empty() || gates.empty() || !whole_ || gates.size() == told_) return;
        told_ = gates.size();
        bool all_told = true;
        const auto contain = [&](const auto& call) {
            try {
                call();
            } catch (const std::exception& e) {
                all_told = false;
                std::cerr << "llmbench: " << e.what() << ": no result of this program is a pass"
                          << std::endl;
            }
        };
        contain([&] {
            const std::string json = file_content(file, "on_report");
            const report_view view{read_past_result(json, file), json, report_directory(),
                                   exit_code_of(worst())};
            lock.unlock();
            is_telling_users = true;
            [[maybe_unused]] const assertions_in_report asserted;
            for (const user_report tell : vector<user_report>(user_reports()))
                contain([&] {
                    if (!tell) throw std::runtime_error("on_report was given a null function");
                    call_of_user({"a function that on_report was given"}, [&] { tell(view); });
                });
            is_telling_users = false;
            lock.lock();
        });
        whole_ = whole_ && all_told;
        has_changed = has_changed || !all_told;
        write(program_is::over);
    }
    void write_baseline(gate_report& g, const std::string& file) {
        const std::filesystem::path path = file;
        if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
        vector<gate_report> alone;  // a report is moved, never copied
        alone.push_back(std::move(g));
        const std::string text =
            result_json(alone, environment_, {}, exit_code_of(alone[0].outcome));
        g = std::move(alone[0]);
        write_file(path, text);
        baselines_[std::filesystem::weakly_canonical(path).string()] = g.what.name;
    }
    /// The gate of this program that wrote its baseline to this file, "" if none.
    std::string baseline_in(const std::string& file) const {
        std::error_code ignored;
        const auto at = baselines_.find(std::filesystem::weakly_canonical(file, ignored).string());
        return at == baselines_.end() ? std::string() : at->second;
    }
    /// Adds new measurements to the history, after the reports, which show it without them.
    void add_to_history() {
        each(&extension::write_kept, environment_.started_at, environment_.commit,
             [this](const std::string& where, const std::exception& e) {
                 whole_ = false;
                 has_changed = true;
                 report_not_whole(where, std::string("the history: ") + reason_in(e));
                 write(program_is::over);
             });
    }
    /// Prints on the console, and for GitHub Actions, at the program's end.
    void say_at_the_end() {
        if (gates.empty()) return;
        with_all_reported(program_is::over, [this] {
            const surroundings& around = surroundings_of_program();
            say(closing_text(gates, around.style()));
            if (around.on_github) say(github_annotations(gates, around.github_workspace));
            if (rank_of_program() == 0 && records_.are_open())
                say(last_line(gates, report_directory(), environment_));
            if (around.step_summary.empty()) return;
            std::error_code none;
            const auto taken = std::filesystem::file_size(around.step_summary, none);
            // Above 1 MiB GitHub shows no summary of the step at all.
            if (none || taken + summary_limit <= 1048576)
                std::ofstream(around.step_summary, std::ios::app)
                    << known_secrets::of_this_program().masked(summary_md(gates, beside));
        });
    }

private:
    /// Calls `tell` with a complete `gates`. Until the program has ended it has one more entry, so
    /// that the files of a killed program are not green; incomplete files add one, too.
    void with_all_reported(program_is now, const std::function<void()>& tell) {
        const std::size_t own = gates.size();
        struct restored {
            vector<gate_report>&all, &others;
            const std::size_t own;
            ~restored() {
                while (all.size() > own + others.size()) all.pop_back();
                for (std::size_t i = others.size(); i-- > 0; all.pop_back())
                    others[i] = std::move(all.back());
            }
        };
        gates.reserve(own + others_.size());
        for (gate_report& g : others_) gates.push_back(std::move(g));
        const restored at_its_end{gates, others_, own};
        const auto add = [&](const char* name, const char* why) {
            const plan& last = gates[own - 1].what;
            gates.push_back(
                report_without({name, "", last.file, last.line}, gate_outcome::invalid, why));
        };
        if (!are_whole())
            add("the files of the program",
                "not all of them could be written whole, so it has not passed: "
                "its console says why");
        if (now == program_is::running)
            add("the rest of the program",
                "the program had not ended when this was written, so it has not passed");
        tell();
    }
    /// The command line that this program was called by, for a shell.
    static std::string call_without_secrets() {
        std::string call;
        for (const std::string& word : words_of_the_call())
            call += (call.empty() ? "" : " ") +
                    shell_quoted(known_secrets::of_this_program().without(word));
        return call;
    }
    record_files& records_;
    vector<gate_report> others_{};
    std::map<std::string, std::string> baselines_{};  // by file: the gate that wrote it
    environment_facts environment_ = environment_now();
    std::size_t told_ = 0;          // number of gates, for users' reports
    std::size_t next_writing_ = 1;  // number of gates at the next writing
    bool written_as_over_ = false, whole_ = true, has_failed_ = false;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
