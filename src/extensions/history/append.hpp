// a run added to the folder of a history
#pragma once

#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/files.hpp"
#include "extensions/history/core/run_series.hpp"
#include "extensions/history/core/entry.hpp"
#include "extensions/history/core/line.hpp"
#include "extensions/history/folder.hpp"

#include <cerrno>  // errno, EEXIST
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <filesystem>
#include <random>  // random_device
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>  // open, O_DIRECTORY
#include <unistd.h>  // fsync, link, unlink, close

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Makes a file, completely or not at all, even if this program is killed. Returns false if the
/// name exists. Throws std::runtime_error.
inline bool add_file(const std::filesystem::path& path, std::string_view content,
                     std::uint64_t own) {
    const auto check = [&](int problem) {
        if (problem != 0)
            throw std::runtime_error("cannot write " + path.string() + ": " + error_text(problem));
    };
    std::error_code none;
    std::filesystem::create_directories(path.parent_path(), none);
    if (std::filesystem::exists(std::filesystem::symlink_status(path, none))) return false;
    const std::filesystem::path draft =
        path.parent_path() / ("." + path.filename().string() +
                              printed(".%08llx.tmp", static_cast<unsigned long long>(own)));
    struct removed {
        const std::filesystem::path& file;
        ~removed() { ::unlink(file.c_str()); }
    } const at_end{draft};
    new_file out;
    int problem = out.open(draft);
    if (problem == 0) problem = out.append(content);
    if (problem == 0 && ::fsync(out.fd()) != 0) problem = errno;
    if (const int at_close = out.close(); problem == 0) problem = at_close;
    check(problem);
    // A link replaces no file, unlike a rename.
    if (::link(draft.c_str(), path.c_str()) != 0) {
        if (errno == EEXIST) return false;
        check(errno);
    }
    const int folder = ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        ::fsync(folder);  // for the name; other file systems keep it anyway
        ::close(folder);
    }
    return true;
}

/// "20261123T021504Z-e2bbe02a-7c1e9f40": time, commit, unique part.
inline std::string stem_of_run(const std::string& at, const std::string& commit,
                               std::uint64_t own) {
    std::string stem;
    for (const char c : at)
        if (c != '-' && c != ':') stem += c;
    const bool is_hash = commit.size() >= 8 &&
                         commit.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    return stem + "-" + (is_hash ? commit.substr(0, 8) : "00000000") +
           printed("-%08llx", static_cast<unsigned long long>(own & 0xFFFFFFFF));
}

/// A clock that is behind would put the run among much older ones. `latest`: the latest valid day,
/// "20261124".
inline void check_clock(const std::filesystem::path& folder, const std::string& latest) {
    std::error_code none;
    if (!std::filesystem::is_directory(folder, none)) return;
    for (const std::filesystem::path& file : files_of_history(folder).lines) {
        const std::string name = file.filename().string();
        const bool is_dated = name.size() > 8 && name[8] == 'T' &&
                              name.find_first_not_of("0123456789") == 8;
        if (is_dated && name.compare(0, 8, latest) > 0)
            throw std::runtime_error(file.string() + " is of a day that this machine says has not "
                                     "come: one of the two clocks is wrong");
    }
}

/// Adds the gates of one program as a file with a line for each; returns its name. Describes series
/// that are new in the folder. Throws std::runtime_error.
inline std::string append_history(const std::filesystem::path& folder,
                                  const std::vector<history_entry>& gates, const std::string& at,
                                  const std::string& commit) {
    std::random_device random;
    const auto drawn = [&] { return static_cast<std::uint64_t>(random()); };
    const std::string tomorrow = utc_text(machine_unix_s() + 86400);
    check_clock(folder, stem_of_run(tomorrow, "", 0).substr(0, 8));
    for (const history_entry& e : gates)
        add_file(folder / "cohorts" / (e.run.run_series + ".json"), series_json(e.in), drawn());
    for (int tries = 0; tries < 5; ++tries) {
        const std::uint64_t own = drawn();
        const std::string stem = stem_of_run(at, commit, own);
        std::string lines;
        for (std::size_t i = 0; i < gates.size(); ++i) {
            history_run run = gates[i].run;
            run.id = stem + "." + std::to_string(i + 1);
            run.at = at;
            run.commit = commit.substr(0, 12);
            lines += history_line(run);
        }
        const std::filesystem::path file =
            folder / at.substr(0, 4) / at.substr(5, 2) / (stem + ".jsonl");
        if (add_file(file, lines, own)) return file.string();
    }
    throw std::runtime_error("cannot write into " + folder.string() +
                             ": five names are taken already");
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
