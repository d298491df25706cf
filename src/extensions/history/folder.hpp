// the folder of a history: settings, reading, adding a run
#pragma once

#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/files.hpp"
#include "effects/system/environment.hpp"
#include "extensions/history/core/entry.hpp"
#include "extensions/history/core/lines.hpp"

#include <algorithm>  // max, sort
#include <cerrno>  // errno, EEXIST
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <filesystem>
#include <fstream>  // ifstream, ios
#include <map>
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <system_error>  // error_code
#include <utility>  // move

#include <fcntl.h>  // open, O_DIRECTORY
#include <unistd.h>  // fsync, link, unlink, close

namespace llmbench {
inline namespace v1 {
namespace detail {

enum class history_use : unsigned char { read, append, off };

struct history_settings {
    history_use use = history_use::read;
    std::string folder{};   // replaces the gate's own
    std::string at{};       // as of then
    std::string machine{};  // LLMBENCH_MACHINE
    bool appends() const { return use == history_use::append; }
    std::string folder_or(const types::text& own) const {
        return folder.empty() ? str(own) : folder;
    }
};

/// Throws std::invalid_argument with one sentence for the first invalid variable.
inline history_settings history_settings_of(const variable_lookup& look_up) {
    history_settings s;
    const std::string use = look_up("LLMBENCH_HISTORY");
    if (use == "append") s.use = history_use::append;
    else if (use == "off") s.use = history_use::off;
    else if (!use.empty())
        refuse({"LLMBENCH_HISTORY is \"", printable(use, 40), "\": it must be append or off, or "
                "not be set, to read"});
    s.folder = look_up("LLMBENCH_HISTORY_DIR");
    s.at = look_up("LLMBENCH_HISTORY_AT");
    s.machine = printable(trimmed(look_up("LLMBENCH_MACHINE")), 100);
    if (s.use == history_use::append && !s.at.empty())
        refuse({"LLMBENCH_HISTORY=append and LLMBENCH_HISTORY_AT are both set: nothing is added to "
                "the past"});
    return s;
}

inline constexpr std::size_t max_history_files = 10000;
inline constexpr std::size_t max_history_bytes = std::size_t{256} << 20;  // of all files

struct history_store {
    std::string folder{};
    history_lines lines{};
    std::map<std::string, run_series> all_series{};  // by their ids, if described
};

/// The maximum difference between clocks of writing and reading machines.
inline constexpr double max_clock_skew_s = 600;
/// The machine's clock, also in virtual time.
inline history_clock clock_of_machine() {
    const double now_s = machine_unix_s();
    return {utc_text(now_s), utc_text(now_s + max_clock_skew_s)};
}

/// *.jsonl below a folder and cohorts/*.json, by name. No hidden files (a worktree's .git, drafts),
/// no symbolic links.
struct history_files {
    vector<std::filesystem::path> lines{}, all_series{};
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
/// missing, or a file is invalid, of a later version, or of the future.
inline history_store read_history(const std::string& folder, const history_clock& clock,
                                  const std::string& gate = "") {
    std::error_code none;
    if (!std::filesystem::is_directory(folder, none))
        refuse({"there is no history at ", folder, ": LLMBENCH_HISTORY=append on main makes it"});
    history_store all;
    all.folder = folder;
    const history_files files = files_of_history(folder);
    std::size_t room = max_history_bytes;
    for (const std::filesystem::path& path : files.lines)
        read_history_file(bounded_content(path, room), path.string(), clock, all.lines, gate);
    for (const std::filesystem::path& path : files.all_series)
        all.all_series[path.stem().string()] =
            read_series(bounded_content(path, room), path.string());
    join_older_series(all.lines, all.all_series);
    all.lines = in_order(std::move(all.lines));
    return all;
}

/// The history of a gate: all its lines in the folder, as of LLMBENCH_HISTORY_AT, for series_of().
inline history_store history_of_gate(const std::string& folder, const std::string& gate,
                                     const std::string& at) {
    history_store all = read_history(folder, clock_of_machine(), gate);
    all.lines = as_of(std::move(all.lines), at);
    erase_if(all.lines.runs, [&](const history_run& r) { return r.gate != gate; });
    erase_if(all.lines.notes, [&](const history_note& n) { return n.gate != gate; });
    return all;
}

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
    if (problem == 0)
        problem = out.append(known_secrets::of_this_program().masked(content));
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

/// Adds a file with `count` lines, which `line(i, id)` makes, and returns its name. Throws
/// std::runtime_error.
template <class Line>
std::string add_lines(const std::filesystem::path& folder, const std::string& at,
                      const std::string& commit, std::size_t count, Line&& line) {
    for (int tries = 0; tries < 5; ++tries) {
        const std::uint64_t own = entropy() >> 32;
        const std::string stem = stem_of_run(at, commit, own);
        std::string lines;
        for (std::size_t i = 0; i < count; ++i)
            lines += line(i, stem + "." + std::to_string(i + 1));
        const std::filesystem::path file =
            folder / at.substr(0, 4) / at.substr(5, 2) / (stem + ".jsonl");
        if (add_file(file, lines, own)) return file.string();
    }
    throw std::runtime_error("cannot write into " + folder.string() +
                             ": five names are taken already");
}

/// Adds the gates of one program as a file with a line for each; returns its name. Describes series
/// that are new in the folder. Throws std::runtime_error.
inline std::string append_history(const std::filesystem::path& folder,
                                  const vector<history_entry>& gates, const std::string& at,
                                  const std::string& commit) {
    const std::string tomorrow = utc_text(machine_unix_s() + 86400);
    check_clock(folder, stem_of_run(tomorrow, "", 0).substr(0, 8));
    for (const history_entry& e : gates)
        add_file(folder / "cohorts" / (e.run.run_series + ".json"), series_json(e.in),
                 entropy() >> 32);
    return add_lines(folder, at, commit, gates.size(), [&](std::size_t i, const std::string& id) {
        history_run run = gates[i].run;
        run.id = id;
        run.at = at;
        run.commit = commit.substr(0, 12);
        return history_line(run);
    });
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
