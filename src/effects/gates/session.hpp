// all gates of a program and their files
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/bytes.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/result_json.hpp"
#include "core/reports/page/page.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "effects/system/machine.hpp"
#include "effects/system/settings.hpp"
#include "effects/load/order.hpp"
#include "effects/load/run_load.hpp"

#include <algorithm>  // any_of, min
#include <atomic>
#include <cerrno>  // errno
#include <chrono>
#include <condition_variable>
#include <cstdint>  // uint64_t, uint32_t
#include <cstdlib>  // atexit
#include <cstring>  // strerror
#include <filesystem>  // error_code
#include <fstream>  // ofstream, ios
#include <iostream>  // cout, cerr
#include <memory>  // shared_ptr, make_shared
#include <mutex>  // unique_lock, lock_guard
#include <stdexcept>  // exception
#include <string>
#include <thread>
#include <utility>  // exchange, move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// All gates of this program, and the files they leave.
class session {
public:
    static session& of_this_program() {
        static session* const s = [] {
            std::atexit([] {
                of_this_program().finish();
                // Too late to tell main(): a gate was cut off, or a file cannot be written.
                if (of_this_program().is_cut_off()) {
                    std::cout.flush();
                    std::_Exit(exit_code_of(of_this_program().outcome()));
                }
            });
            return new session;  // outlives every static object
        }();
        return *s;
    }
    std::shared_ptr<gate_report> open_gate() {
        gates_.push_back(std::make_shared<gate_report>());
        changed_ = true;
        return gates_.back();
    }
    int number_of_gates() const { return static_cast<int>(gates_.size()); }
    /// Over all gates and their files: a green run whose files are not whole is not green.
    gate_outcome outcome() const {
        gate_outcome all = incomplete_ ? gate_outcome::invalid : gate_outcome::passed;
        for (const auto& g : gates_) all = worse_of(all, g->outcome);
        return all;
    }
    bool is_cut_off() const {
        return incomplete_ || std::any_of(gates_.begin(), gates_.end(), [](const auto& g) {
                   return g->outcome == gate_outcome::unfinished;
               });
    }
    void note_change() { changed_ = true; }
    /// How many more gaps may be kept one by one.
    std::uint64_t room_for_gaps() const {
        std::uint64_t kept = 0;
        for (const auto& g : gates_)
            for (const auto* arm : {&g->measured.candidate, &g->measured.baseline})
                for (const repeat_data& d : *arm) kept += d.gaps.size();
        return most_gaps_kept - std::min(most_gaps_kept, kept);
    }

    /// Both files are open, or it throws std::invalid_argument: what cannot be reported is not
    /// begun.
    void open_files() {
        if (records_.is_open() && events_.is_open()) return;
        const std::filesystem::path dir = report_directory();
        std::error_code problem;
        std::filesystem::create_directories(dir, problem);
        const auto open = [&](std::ofstream& file, const char* name) {
            if (problem) return;
            errno = 0;
            file.open(dir / name, std::ios::binary | std::ios::trunc);
            if (!file) problem.assign(errno, std::generic_category());
        };
        open(records_, "records.jsonl");
        open(events_, "events.bin");
        require(!problem, "LLMBENCH_REPORT_DIR is " + dir.string() + ": it cannot be written (" +
                              problem.message() + ")");
    }
    /// Records follow their gaps, and whole lines go out at once: however this program ends, each
    /// line has its gaps, which lie in events.bin one after another in the order of the lines.
    void write(const delivered_requests& d, const std::string& gate) {
        std::string bytes, lines;
        for (const std::uint32_t gap : d.gaps)
            for (int b = 0; b < 4; ++b) bytes += static_cast<char>(gap >> (8 * b));
        for (const record& r : d.records) {
            index_.offsets.push_back(index_.bytes);
            index_.bytes += 4 * static_cast<long long>(gap_count(r));
            lines += record_json(r, gate);
        }
        hash_.add(bytes.data(), bytes.size());
        append(events_, "events.bin", bytes);
        append(records_, "records.jsonl", lines);
    }
    void write_reports() {
        if (!changed_ || gates_.empty() || !can_report()) return;
        changed_ = false;
        try {
            const std::filesystem::path dir = report_directory();
            const lent_gates lent(gates_);
            const std::vector<gate_report>& gates = lent.all;
            index_.hash = hash_.text();
            write_file(dir / "result.json", result_json(gates, environment_, index_,
                                                        exit_code_of(outcome())));
            write_file(dir / "junit.xml", junit_xml(gates));
            write_file(dir / "summary.md", summary_md(gates));
            write_file(dir / "metrics.txt", open_metrics(gates));
            write_file(dir / "report.html", report_html(gates, environment_));
            for (const gate_report& g : gates) {
                if (g.calibration.empty()) continue;
                write_file(dir / "calibration.json", calibration_json(gates));
                break;
            }
        } catch (const std::exception& e) {
            note_incomplete(std::string("the reports: ") + e.what());
        }
    }
    /// At the end of the program: the reports, and what GitHub Actions is to show.
    void finish() {
        for (const auto& g : gates_)
            if (g->outcome == gate_outcome::unfinished) {
                g->refusal = "the program ended before this gate did";
                changed_ = true;
            }
        write_reports();
        if (std::exchange(finished_, true) || gates_.empty()) return;
        const lent_gates lent(gates_);
        const std::vector<gate_report>& gates = lent.all;
        std::cout << closing_text(gates, style_of_console()) << std::flush;
        if (environment("GITHUB_ACTIONS") == "true")
            std::cout << github_annotations(gates, environment("GITHUB_WORKSPACE")) << std::flush;
        if (const std::string file = environment("GITHUB_STEP_SUMMARY"); !file.empty()) {
            std::error_code none;
            const auto taken = std::filesystem::file_size(file, none);
            // Above 1 MiB GitHub shows nothing of a step's summary, of others' neither.
            if (none || taken + summary_limit <= 1048576)
                std::ofstream(file, std::ios::app) << summary_md(gates);
        }
    }
    /// One gate's result as a file of its own, to be a baseline.
    void write_baseline(const gate_report& g, const std::string& file) {
        const std::filesystem::path path = file;
        if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
        std::vector<gate_report> one;
        one.push_back(g);
        write_file(path, result_json(one, environment_, {}, exit_code_of(g.outcome)));
    }
    bool can_report() const { return records_.is_open() && events_.is_open(); }
    bool tells_exit_code = false;  // main() is ours
    bool only_asked = false;       // doctest was asked a question and ran nothing

private:
    using gate_list = std::vector<std::shared_ptr<gate_report>>;
    /// All gates as the reports want them: moved and not copied, there may be gigabytes.
    struct lent_gates {
        explicit lent_gates(const gate_list& from) : owners(from) {
            for (const auto& g : owners) all.push_back(std::move(*g));
        }
        ~lent_gates() {
            for (std::size_t i = 0; i < all.size(); ++i) *owners[i] = std::move(all[i]);
        }
        lent_gates(const lent_gates&) = delete;
        lent_gates& operator=(const lent_gates&) = delete;
        const gate_list& owners;
        std::vector<gate_report> all{};
    };
    session() : environment_(environment_now()) {}
    void append(std::ofstream& file, const char* name, const std::string& bytes) {
        if (!file) return;  // it was told of when it broke
        errno = 0;
        file << bytes << std::flush;
        if (!file) note_incomplete(printed("%s: %s", name, std::strerror(errno)));
    }
    void note_incomplete(const std::string& why) {
        incomplete_ = true;
        std::cerr << "llmbench: not written whole in " << report_directory() << ", so no result of "
                  << "this program is a pass: " << why << std::endl;
    }
    gate_list gates_{};
    environment_facts environment_;
    event_index index_{};
    fnv1a hash_{};
    std::ofstream records_{}, events_{};
    bool changed_ = false, finished_ = false;
    std::atomic<bool> incomplete_{false};  // files are written by a thread of their own, too
};

/// Writes what a load delivers, five times a second. A thread like the others: one that gave way to
/// them would fall behind on a busy machine, and what waits for it takes memory.
class record_writer {
public:
    record_writer(session& s, std::string gate) : session_(s), gate_(std::move(gate)) {
        s.open_files();
        thread_ = std::thread([this] {
            std::unique_lock lock(mutex_);
            while (!over_.wait_for(lock, std::chrono::milliseconds(200), [&] { return done_; }))
                write();
        });
    }
    ~record_writer() {
        {
            const std::lock_guard lock(mutex_);
            done_ = true;
        }
        over_.notify_one();
        thread_.join();
        write();
    }
    record_writer(const record_writer&) = delete;
    record_writer& operator=(const record_writer&) = delete;
    outbox& box() { return box_; }

private:
    void write() {
        box_.take(batch_);
        session_.write(batch_, gate_);
        batch_.records.clear();
        batch_.gaps.clear();
    }
    session& session_;
    std::string gate_;
    outbox box_{};
    delivered_requests batch_{};
    std::mutex mutex_{};
    std::condition_variable over_{};
    bool done_ = false;
    std::thread thread_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
