// result files of other tools, judged as a gate
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/traffic/check_slo.hpp"
#include "core/others/result_files.hpp"
#include "core/others/runs_together.hpp"
#include "core/others/told_run.hpp"
#include "effects/gates/gate_run.hpp"
#include "effects/gates/measure.hpp"

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
    require(!problem && size <= most_file_bytes,
            printable(path) + printed(": it has %.0f bytes, up to 1 GiB is allowed",
                                      static_cast<double>(size)));
    std::ifstream in(path, std::ios::binary);
    if (!in) return {};
    std::string bytes(static_cast<std::size_t>(size), '\0');
    in.read(bytes.data(), static_cast<std::streamsize>(size));
    bytes.resize(static_cast<std::size_t>(in.gcount()));
    return bytes;
}
inline told_run told_run_of(const std::string& path) {
    const std::optional<std::string> bytes = bytes_of_file(path);
    require(bytes.has_value(), "files: " + printable(path) + " cannot be read as a file");
    return read_told_run(*bytes, path, bytes_of_file);
}

/// What files of a run that is over can be asked, and what nobody can tell from them.
inline void check_slos_of_files(const plan& p) {
    slo_context c = slo_context_of(p);
    c.requests = c.first_turns = 0;  // too few make an objective invalid, not the question unsound
    c.has_turns = true;
    for (const slo& s : p.slos) {
        const std::string given = "the SLO " + str(s.text()) + " is refused: ";
        require(!is_capacity(s.what.metric),
                given + "the files are of one load, which shows no capacity");
        require(!is_of_start(s.what.metric) && !is_of_server(s.what.metric) &&
                    !is_of_turns(s.what.metric),
                given + "files of other tools tell nothing of it");
        check_slo(s, c);
    }
}

/// The files of one gate, from their names to its report.
class files_execution : public reading_execution {
public:
    files_execution(const types::list<types::text>& files, const scenario& as,
                    const char* file, int line)
        : reading_execution(as, file, line, "judge_files"), files_(files) {}
    result measured() {
        begin_reading();
        require(files_.size() > 0, "files: none is named, two or more are allowed");
        std::vector<told_run> runs;
        for (const text& path : files_) runs.push_back(told_run_of(str(path)));
        told_gate told = gate_of_runs(std::move(runs), as_.slos);
        const plan p = named(std::move(told.what));
        check_slos_of_files(p);
        measured_gate m;
        m.target = told.target;
        m.held = terms_of_files(p);
        m.seen = std::move(told.seen);
        return judged(p, std::move(m));
    }

private:
    const types::list<types::text>& files_;
};

inline result judged_files(const types::list<types::text>& files, const slo_list& slos,
                           const types::text& name, const char* file, int line) {
    scenario as;
    as.name = name;
    as.slos = slos;
    return executed(files_execution(files, as, file, line), file, line, "judge_files");
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
