// records.jsonl and events.bin, written while the load runs
#pragma once

#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/stored/record_json.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/files.hpp"
#include "effects/system/threads.hpp"
#include "effects/load/order.hpp"

#include <algorithm>  // reverse
#include <atomic>
#include <bit>  // endian
#include <cerrno>  // errno, EWOULDBLOCK
#include <cstdlib>  // mkstemp
#include <filesystem>  // error_code
#include <functional>
#include <iostream>  // cerr
#include <mutex>  // lock_guard
#include <string>
#include <utility>  // exchange, move, pair

#include <fcntl.h>  // open
#include <sys/file.h>  // flock
#include <unistd.h>  // close, unlink

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Prints which file is incomplete, and why.
inline void report_not_whole(const std::string& directory, const std::string& why) {
    std::cerr << "llmbench: not written whole in " << directory << ", so no result of this program "
              << "is a pass: " << why << std::endl;
}

/// Files of an earlier program in a report directory. They are removed before a gate begins, so
/// that no green file is left beside the records of a killed program. calibration.json stays,
/// because the next program may read it. result.json is last: it tells whose the others are.
inline constexpr const char* reports_of_a_program[] = {"junit.xml",   "summary.md", "metrics.txt",
                                                       "report.html", "curves.csv", "answers.jsonl",
                                                       "result.json"};
inline void remove_reports(const std::filesystem::path& directory) {
    for (const char* name : reports_of_a_program)
        for (const char* draft : {"", ".tmp"})
            ::unlink((directory / (std::string(name) + draft)).c_str());
}
/// Returns a file of one of our names that another program or a user wrote, "" if there is none. A
/// result.json of ours vouches for all; links are replaced and not followed.
inline std::string file_of_others(const std::filesystem::path& directory) {
    const auto begins = [&](const char* name) {
        std::error_code none;
        if (std::filesystem::symlink_status(directory / name, none).type() !=
            std::filesystem::file_type::regular)
            return std::string();
        std::string begin(4096, '\0');
        input_file in((directory / name).string());
        begin.resize(in.problem().empty() ? in.read(begin.data(), begin.size()) : 0);
        return begin;
    };
    const auto has = [](const std::string& s, const char* mark) {
        return s.find(mark) != std::string::npos;
    };
    if (has(begins("result.json"), "\"llmbench/result/")) return {};
    const std::string records = begins("records.jsonl");
    if (!records.empty() && !has(records, "\"dispatched_ns\":")) return "records.jsonl";
    if (records.empty() && !begins("events.bin").empty()) return "events.bin";
    for (const char* name : reports_of_a_program)
        if (const std::string s = begins(name); !s.empty() && !has(s, "llmbench")) return name;
    return {};
}

[[noreturn]] inline void refuse_report_directory(const std::string& directory, int problem) {
    refuse({"the report directory is ", directory, ": it cannot be written (", error_text(problem),
            "): name another one by LLMBENCH_REPORT_DIR or --report"});
}
inline void refuse_files_of_others(const std::string& directory) {
    if (const std::string name = file_of_others(directory); !name.empty())
        refuse({"the report directory is ", directory, ": its ", name,
                " is not one of llmbench, and would be lost: name another one by "
                "LLMBENCH_REPORT_DIR or --report"});
}
/// Refuses a directory that cannot be made or written, or has files of others. Leaves nothing
/// there.
inline void check_report_directory(const std::string& directory) {
    refuse_files_of_others(directory);
    std::error_code problem, none;
    vector<std::filesystem::path> made;
    for (std::filesystem::path p = directory; !p.empty() && !std::filesystem::exists(p, none);
         p = p.parent_path())
        made.push_back(p);
    std::filesystem::create_directories(directory, problem);
    std::string draft = directory + "/.llmbench-XXXXXX";
    if (!problem) {
        const int fd = ::mkstemp(draft.data());
        if (fd < 0) problem.assign(errno, std::generic_category());
        else ::close(fd);
        ::unlink(draft.c_str());
    }
    for (const std::filesystem::path& p : made) std::filesystem::remove(p, none);
    if (problem) refuse_report_directory(directory, problem.value());
}

/// Both files, to which gates append in turn. Thread-safe.
class record_files : not_copied {
public:
    /// `lock_file`: flock(), or one that locks less, as that of a network's file system.
    explicit record_files(std::string directory, int (*lock_file)(int, int) = ::flock)
        : directory_(std::move(directory)), lock_file_(lock_file) {}
    ~record_files() { if (lock_ >= 0) ::close(lock_); }

    /// Opens both or throws std::invalid_argument, so that no gate begins without reports.
    void open() {
        const std::lock_guard guard(mutex_);
        if (opened_) return;
        const std::filesystem::path dir = directory_;
        std::error_code problem;
        std::filesystem::create_directories(dir, problem);
        take_directory();
        refuse_files_of_others(directory_);
        if (!problem) remove_reports(dir);
        for (const auto& [file, name] :
             {std::pair{&records_, "records.jsonl"}, std::pair{&events_, "events.bin"}})
            if (!problem) problem.assign(file->open(dir / name), std::generic_category());
        if (problem) refuse_report_directory(directory_, problem.value());
        opened_ = true;
    }
    /// Refuses a file or folder that is read and whose files the reports would replace. Folders are
    /// compared as files, by whatever path they are named.
    void check_apart(const std::string& path) const {
        std::error_code none;
        const std::filesystem::path real = std::filesystem::canonical(path, none);
        for (std::filesystem::path p : {std::filesystem::path(path), real}) {
            if (!std::filesystem::is_directory(p, none)) p = p.parent_path();
            if (p.empty() && !path.empty()) p = ".";
            if (std::filesystem::equivalent(p, directory_, none))
                refuse({printable(path, 200), " is in ", directory_,
                        ", where the new report would go and replace it: name another folder by "
                        "LLMBENCH_REPORT_DIR or --report"});
        }
    }
    bool are_open() const { return opened_; }
    bool are_whole() const { return whole_; }

    /// Gaps go out before their records, and lines go out whole: however the program ends, each
    /// line has its gaps, which are in events.bin in the order of the lines.
    void write(const delivered_requests& d, const std::string& gate) {
        const std::lock_guard guard(mutex_);
        std::string lines, bytes(reinterpret_cast<const char*>(d.gaps.data()), 4 * d.gaps.size());
        if constexpr (std::endian::native == std::endian::big)  // the file is little-endian
            for (std::size_t i = 0; i < bytes.size(); i += 4)
                std::reverse(bytes.data() + i, bytes.data() + i + 4);
        for (const record& r : d.records) {
            index_.offsets.push_back(index_.bytes);
            index_.bytes += 4 * static_cast<long long>(gap_count(r));
            lines += record_json(r, gate);
        }
        hash_.add(bytes.data(), bytes.size());
        append(events_, "events.bin", bytes);
        append(records_, "records.jsonl", lines);
    }
    /// After a failed write the lines cannot be told apart: nothing more is written.
    void give_up(const std::string& why) {
        const std::lock_guard guard(mutex_);
        records_.close();
        events_.close();
        if (whole_.exchange(false)) report_not_whole(directory_, why);
    }
    /// Returns the index of events.bin for result.json.
    event_index index() const {
        const std::lock_guard guard(mutex_);
        event_index reported = index_;
        reported.hash = hash_.text();
        return reported;
    }

private:
    /// One program at a time: two would mix their files, and share the machine.
    void take_directory() {
        if (lock_ >= 0) return;
        int problem = lock(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        // NFS locks only what is open for writing, which no directory can be.
        if (problem != 0 && problem != EWOULDBLOCK && problem != ENOENT)
            problem = lock(::open((directory_ + "/.lock").c_str(),
                                  O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0666));
        if (problem == EWOULDBLOCK || problem == EACCES)
            refuse({"the report directory is ", directory_,
                    ": another program is measuring and writes there: run one after the other, or "
                    "give each one of its own by LLMBENCH_REPORT_DIR or --report"});
    }
    /// Returns 0, or an errno.
    int lock(int fd) {
        const int problem = fd >= 0 && lock_file_(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
        if (problem == 0) lock_ = fd;
        else if (fd >= 0) ::close(fd);
        return fd < 0 && problem == EACCES ? ENOENT : problem;
    }
    void append(new_file& file, const char* name, const std::string& bytes) {
        if (!file.is_open()) return;  // its failure was reported
        const int problem = file.append(bytes);
        if (problem == 0) return;
        records_.close();  // both: no line without its gaps
        events_.close();
        whole_ = false;
        report_not_whole(directory_, std::string(name) + ": " + error_text(problem));
    }
    std::string directory_;
    int (*lock_file_)(int, int);
    mutable std::mutex mutex_{};
    event_index index_{};
    fnv1a hash_{};
    new_file records_{}, events_{};
    int lock_ = -1;  // of the directory
    std::atomic<bool> opened_{false}, whole_{true};
};

/// Writes delivered requests five times a second, or every half one while there are none, at normal
/// priority: at a lower one it would fall behind on a busy machine, and the waiting requests take
/// memory.
class record_writer : not_copied {
public:
    /// `also`: gets the requests that are written, each time.
    record_writer(record_files& files, std::string gate,
                  std::function<void(delivered_requests&&)> also = {})
        : files_(files), gate_(std::move(gate)), also_(std::move(also)) {
        writing_.begin([this] { return now_ns() + (is_idle_ ? 500000000 : 200000000); },
                       [this] { write(); },
                       [this](const char* why) { files_.give_up(why); });
    }
    ~record_writer() {
        writing_.stop();
        contained([this] { write(); }, [this](const char* why) { files_.give_up(why); });
    }
    outbox& box() { return box_; }

private:
    void write() {
        const std::size_t left_out = box_.take(batch_);
        is_idle_ = batch_.records.empty();
        files_.write(batch_, gate_);
        if (left_out > 0)
            files_.give_up(printed("records.jsonl and events.bin: the disk takes less than the "
                                   "load delivers, %zu requests are left out", left_out));
        if (also_ && left_out == 0) also_(std::move(batch_));
        batch_.records.clear();
        batch_.gaps.clear();
    }
    record_files& files_;
    std::string gate_;
    std::function<void(delivered_requests&&)> also_;
    outbox box_{};
    delivered_requests batch_{};
    bool is_idle_ = false;
    repeated writing_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
