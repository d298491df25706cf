// reads the folder of a history
#pragma once

#include "core/base/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "extensions/history/core/run_series.hpp"
#include "extensions/history/core/line.hpp"
#include "extensions/history/core/night.hpp"
#include "extensions/history/core/series.hpp"

#include <algorithm>  // max, sort
#include <cstddef>  // size_t
#include <filesystem>
#include <fstream>  // ifstream, ios
#include <map>
#include <string>
#include <system_error>  // error_code
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr std::size_t max_history_files = 10000;
inline constexpr std::size_t max_history_bytes = std::size_t{256} << 20;  // of all files

/// The content of a folder.
struct history_store {
    std::string folder{};
    history_lines lines{};
    std::map<std::string, run_series> all_series{};  // by their ids, if described
};

/// The maximum difference between clocks of writing and reading machines.
inline constexpr double max_clock_skew_s = 600;

/// *.jsonl below a folder and cohorts/*.json, by name. No hidden files (a worktree's .git, drafts),
/// no symbolic links.
struct history_files {
    std::vector<std::filesystem::path> lines{}, all_series{};
};
inline history_files files_of_history(const std::filesystem::path& folder) {
    namespace fs = std::filesystem;
    history_files found;
    std::error_code problem;
    fs::recursive_directory_iterator at(folder, problem);
    for (const fs::recursive_directory_iterator end; !problem && at != end; at.increment(problem)) {
        const fs::path& path = at->path();
        std::error_code none;
        const fs::file_status is = at->symlink_status(none);
        if (path.filename().string().front() == '.') {
            if (fs::is_directory(is)) at.disable_recursion_pending();
            continue;
        }
        if (!fs::is_regular_file(is)) continue;
        const bool is_series =
            path.extension() == ".json" && path.parent_path().filename() == "cohorts";
        if (is_series) found.all_series.push_back(path);
        if (path.extension() == ".jsonl") found.lines.push_back(path);
        if (std::max(found.lines.size(), found.all_series.size()) > max_history_files)
            refuse({folder.string(), printed(" has more than %zu files", max_history_files),
                    ": put those of a year together, such as by cat 2026/*/*.jsonl > 2026.jsonl, "
                    "and remove them"});
    }
    if (problem) refuse({folder.string(), " cannot be read: ", problem.message()});
    std::sort(found.lines.begin(), found.lines.end());
    std::sort(found.all_series.begin(), found.all_series.end());
    return found;
}

/// The bytes of a file; `room` limits all files together.
inline std::string bounded_content(const std::filesystem::path& path, std::size_t& room) {
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : -1;
    if (size < 0) refuse({path.string(), " cannot be read"});
    const auto n = static_cast<std::size_t>(size);
    if (n > room)
        refuse({path.string(), printed(": a history may have %zu MiB, and with this file it has "
                                       "more", max_history_bytes >> 20)});
    room -= n;
    std::string bytes(n, '\0');
    in.seekg(0);
    in.read(bytes.data(), size);
    bytes.resize(static_cast<std::size_t>(in.gcount()));
    return bytes;
}

/// Reads one gate, or all for "". Throws std::invalid_argument with one sentence if the folder is
/// missing, or a file is invalid, of a later version, or later than `now`.
inline history_store read_history(const std::string& folder, const std::string& now,
                                  const std::string& gate = "") {
    std::error_code none;
    if (!std::filesystem::is_directory(folder, none))
        refuse({"there is no history at ", folder, ": LLMBENCH_HISTORY=append on main makes it"});
    history_store all;
    all.folder = folder;
    const history_files files = files_of_history(folder);
    std::size_t room = max_history_bytes;
    for (const std::filesystem::path& path : files.lines)
        read_history_file(bounded_content(path, room), path.string(), now, all.lines, gate);
    for (const std::filesystem::path& path : files.all_series)
        all.all_series[path.stem().string()] =
            read_series(bounded_content(path, room), path.string());
    join_older_cohorts(all.lines, all.all_series);
    all.lines = in_order(std::move(all.lines));
    return all;
}

/// The history of a gate: all its lines in the folder, as of LLMBENCH_HISTORY_AT, for series_of().
/// Times are the machine's, also in virtual time.
inline history_store history_of_gate(const std::string& folder, const std::string& gate,
                                     const std::string& at) {
    history_store all = read_history(folder, utc_text(machine_unix_s() + max_clock_skew_s), gate);
    all.lines = as_of(std::move(all.lines), at);
    std::erase_if(all.lines.runs, [&](const history_run& r) { return r.gate != gate; });
    std::erase_if(all.lines.notes, [&](const history_note& n) { return n.gate != gate; });
    return all;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
