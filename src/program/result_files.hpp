// other tools' result files, judged as a gate
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/planning/check_slo.hpp"
#include "effects/gates/gate_repeats.hpp"
#include "effects/gates/measure.hpp"
#include "program/others/imported_run.hpp"
#include "program/others/result_files.hpp"
#include "program/others/runs_together.hpp"

#include <cstddef>  // size_t
#include <cstdint>  // uintmax_t
#include <filesystem>
#include <fstream>  // ifstream, ios
#include <optional>
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench_program {

using namespace llmbench;
using namespace llmbench::detail;

inline constexpr std::uintmax_t max_file_bytes = 1024 * 1024 * 1024;

/// Returns the bytes of a regular file; nothing if there is none.
inline std::optional<std::string> bytes_of_file(const std::string& path) {
    std::error_code problem;
    if (!std::filesystem::is_regular_file(path, problem)) return {};
    const std::uintmax_t size = std::filesystem::file_size(path, problem);
    if (problem || size > max_file_bytes)
        refuse({printable(path),
                printed(": it has %.0f bytes, up to 1 GiB is allowed", static_cast<double>(size))});
    std::ifstream in(path, std::ios::binary);
    if (!in) return {};
    std::string bytes(static_cast<std::size_t>(size), '\0');
    in.read(bytes.data(), static_cast<std::streamsize>(size));
    bytes.resize(static_cast<std::size_t>(in.gcount()));
    return bytes;
}
inline std::vector<imported_run> imported_runs_of(const std::string& path) {
    const std::optional<std::string> bytes = bytes_of_file(path);
    if (!bytes.has_value()) refuse({"files: ", printable(path), " cannot be read as a file"});
    return read_imported_runs(*bytes, path, bytes_of_file);
}

/// Refuses objectives that files of finished runs cannot answer.
inline void check_slos_of_files(const plan& p) {
    slo_context c = slo_context_of(p);
    c.requests = 0;  // with too few an objective is invalid, not refused
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

/// Each run in the files is a repeat of one load. `who` has the name of the gate.
inline read_gate gate_of_files(const plan& who, const std::vector<std::string>& files,
                               const slo_list& slos) {
    std::vector<imported_run> runs;
    for (const std::string& path : files)
        for (imported_run& run : imported_runs_of(path)) runs.push_back(std::move(run));
    imported_gate reported = gate_of_runs(std::move(runs), slos);
    read_gate g{named_as(who, std::move(reported.what)), {}};
    check_slos_of_files(g.what);
    g.seen.target = reported.target;
    g.seen.judged_by = parameters_of_files(g.what);
    g.seen.seen = std::move(reported.seen);
    return g;
}

}  // namespace llmbench_program
