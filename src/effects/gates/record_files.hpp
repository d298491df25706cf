// records.jsonl and events.bin, written while the load runs
#pragma once

#include "core/base/bytes.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/result_json.hpp"
#include "effects/load/order.hpp"

#include <cerrno>  // errno
#include <chrono>
#include <condition_variable>
#include <cstdint>  // uint32_t
#include <cstring>  // strerror
#include <filesystem>  // error_code
#include <fstream>  // ofstream, ios
#include <iostream>  // cerr
#include <mutex>  // unique_lock, lock_guard
#include <string>
#include <thread>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Says on the console which file is not whole, and why.
inline void tell_not_whole(const std::string& directory, const std::string& why) {
    std::cerr << "llmbench: not written whole in " << directory << ", so no result of this program "
              << "is a pass: " << why << std::endl;
}

/// Both files, appended to by one gate after the other.
class record_files {
public:
    explicit record_files(std::string directory) : directory_(std::move(directory)) {}

    /// Both are open, or it throws std::invalid_argument: what cannot be reported is not begun.
    void open() {
        if (are_open()) return;
        const std::filesystem::path dir = directory_;
        std::error_code problem;
        std::filesystem::create_directories(dir, problem);
        const auto open_one = [&](std::ofstream& file, const char* name) {
            if (problem) return;
            errno = 0;
            file.open(dir / name, std::ios::binary | std::ios::trunc);
            if (!file) problem.assign(errno, std::generic_category());
        };
        open_one(records_, "records.jsonl");
        open_one(events_, "events.bin");
        require(!problem, "LLMBENCH_REPORT_DIR is " + directory_ + ": it cannot be written (" +
                              problem.message() + ")");
    }
    bool are_open() const { return records_.is_open() && events_.is_open(); }
    bool are_whole() const { return whole_; }

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
    /// What result.json tells of events.bin.
    const event_index& index() {
        index_.hash = hash_.text();
        return index_;
    }

private:
    void append(std::ofstream& file, const char* name, const std::string& bytes) {
        if (!file) return;  // it was told of when it broke
        errno = 0;
        file << bytes << std::flush;
        if (file) return;
        whole_ = false;
        tell_not_whole(directory_, printed("%s: %s", name, std::strerror(errno)));
    }
    std::string directory_;
    event_index index_{};
    fnv1a hash_{};
    std::ofstream records_{}, events_{};
    bool whole_ = true;
};

/// Writes what a load delivers, five times a second. A thread like the others: one that gave way to
/// them would fall behind on a busy machine, and what waits for it takes memory.
class record_writer {
public:
    record_writer(record_files& files, std::string gate) : files_(files), gate_(std::move(gate)) {
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
        files_.write(batch_, gate_);
        batch_.records.clear();
        batch_.gaps.clear();
    }
    record_files& files_;
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
