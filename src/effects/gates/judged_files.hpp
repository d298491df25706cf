// what others have measured, judged as a gate
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/planning/check_slo.hpp"
#include "core/others/result_files.hpp"
#include "core/others/runs_together.hpp"
#include "core/others/imported_run.hpp"
#include "core/stored/shards.hpp"
#include "effects/system/settings.hpp"
#include "effects/gates/gate_repeats.hpp"
#include "effects/gates/measure.hpp"
#include "effects/gates/stored_run.hpp"

#include <cstddef>  // size_t
#include <cstdint>  // uintmax_t
#include <filesystem>
#include <fstream>  // ifstream, ios
#include <optional>
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr std::uintmax_t most_file_bytes = 1024 * 1024 * 1024;

/// A regular file's bytes; nothing where there is none.
inline std::optional<std::string> bytes_of_file(const std::string& path) {
    std::error_code problem;
    if (!std::filesystem::is_regular_file(path, problem)) return {};
    const std::uintmax_t size = std::filesystem::file_size(path, problem);
    if (problem || size > most_file_bytes)
        refuse({printable(path),
                printed(": it has %.0f bytes, up to 1 GiB is allowed", static_cast<double>(size))});
    std::ifstream in(path, std::ios::binary);
    if (!in) return {};
    std::string bytes(static_cast<std::size_t>(size), '\0');
    in.read(bytes.data(), static_cast<std::streamsize>(size));
    bytes.resize(static_cast<std::size_t>(in.gcount()));
    return bytes;
}
inline imported_run imported_run_of(const std::string& path) {
    const std::optional<std::string> bytes = bytes_of_file(path);
    if (!bytes.has_value()) refuse({"files: ", printable(path), " cannot be read as a file"});
    return read_imported_run(*bytes, path, bytes_of_file);
}

/// What files of a run that is over can be asked, and what nobody can tell from them.
inline void check_slos_of_files(const plan& p) {
    slo_context c = slo_context_of(p);
    c.requests = 0;  // too few make an objective invalid, not the question unsound
    c.has_turns = true;
    for (const slo& s : p.judged->slos) {
        const std::string given = "the SLO " + str(s.text()) + " is refused: ";
        if (is_capacity(s.what.metric))
            refuse({given, "the files are of one load, which shows no capacity"});
        if (is_of_start(s.what.metric) || is_of_server(s.what.metric) || !is_all(s.what.which))
            refuse({given, "files of other tools tell nothing of it"});
        check_slo(s, c);
    }
}

inline result judged_files(const types::list<types::text>& files, const slo_list& slos,
                           const types::text& name, const char* file, int line) {
    return read_result(name, slos, file, line, "judge_files", [&](const plan& who) {
        if (files.size() == 0) refuse({"files: none is named, two or more are allowed"});
        std::vector<imported_run> runs;
        for (const text& path : files) runs.push_back(imported_run_of(str(path)));
        imported_gate reported = gate_of_runs(std::move(runs), slos);
        read_gate g{named_as(who, std::move(reported.what)), {}};
        check_slos_of_files(g.what);
        g.seen.target = reported.target;
        g.seen.judged_by = terms_of_files(g.what);
        g.seen.seen = std::move(reported.seen);
        return g;
    });
}

inline stored_shard read_shard(const std::string& directory, const std::string& gate) {
    if (directory == report_directory())
        refuse({"directories: ", directory, " is where this program's own report goes: set "
                                            "LLMBENCH_REPORT_DIR to another one"});
    stored_run run =
        read_stored_run(std::filesystem::path(directory) / "records.jsonl", gate);
    if (!run.problem_of_events.empty()) refuse({directory, ": ", run.problem_of_events});
    return {directory, std::move(run.gate)};
}

inline result judged_shards(const types::list<types::text>& directories, const slo_list& slos,
                            const types::text& gate, const char* file, int line) {
    return read_result(gate, slos, file, line, "judge_shards", [&](const plan& who) {
        if (directories.size() == 0)
            refuse({"directories: none is named, one for each shard is needed"});
        std::vector<stored_shard> shards;
        for (const text& d : directories) shards.push_back(read_shard(str(d), str(gate)));
        gathered_shards all = gathered(std::move(shards), slos);
        read_gate g{named_as(who, std::move(all.what)), {}};
        const slo_context context = slo_context_of(g.what);
        for (const slo& s : g.what.judged->slos) check_slo(s, context);
        g.seen.target = all.target;
        g.seen.seen = std::move(all.seen);
        g.seen.judged_by = std::move(all.judged_by);
        return g;
    });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
