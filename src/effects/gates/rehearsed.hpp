// the models that stand in for servers in a rehearsal
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/reports/measured_pace.hpp"
#include "effects/system/files.hpp"
#include "effects/system/settings.hpp"

#include <cstddef>  // size_t
#include <filesystem>  // where reports go
#include <map>
#include <string>
#include <system_error>  // error_code
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// An engine for each server of a gate, alike in all but luck.
struct rehearsal_model {
    engine like{};
    std::string words{};  // what it is
    std::map<std::string, double> noise{};  // of repeats, where it is of a run that was measured

    engine of(std::size_t server) const {
        engine e = like;
        e.seed = static_cast<long long>(like.seed) + 1000 * static_cast<long long>(server);
        return e;
    }
    engine of(run_arm a) const { return of(a == run_arm::baseline ? std::size_t{1} : 0); }
};

/// `gate`: its name, as in the file that the model is fitted to.
inline rehearsal_model model_for(const settings& asked, const std::string& gate) {
    if (asked.rehearse == "1")
        return {engine{}, "the default engine, repeats taken to differ by 2 %", {}};
    const std::string file = printable(asked.rehearse, 200);
    reported_pace t = read_pace(file_content(asked.rehearse, "LLMBENCH_REHEARSE"), file, gate);
    return {engine_at_pace(t.pace),
            "an engine fitted to " + file + " (mean(ttft) " + time_text(t.pace.ttft) +
                ", mean(tpot) " + time_text(t.pace.tpot) + ", repeats that differ as there)",
            std::move(t.noise)};
}

/// A result that the rehearsal's own reports would take the place of is refused while it is there.
inline void check_stays(const std::string& rehearse) {
    const std::filesystem::path file = rehearse;
    std::error_code none;
    const auto folder = [&](const std::filesystem::path& p) {
        return std::filesystem::weakly_canonical(std::filesystem::absolute(p, none), none);
    };
    if (std::filesystem::is_regular_file(file, none) &&
        folder(file).parent_path() == folder(report_directory()))
        refuse({"LLMBENCH_REHEARSE is ", printable(rehearse, 200), ", which the rehearsal's own "
                "reports would be written over: name another LLMBENCH_REPORT_DIR"});
}

/// Throws where a model can tell nothing of what is asked.
inline void check_rehearsal(const scenario& what) {
    if (!what.beside.empty())
        refuse({"LLMBENCH_REHEARSE: beside has side tasks, and a model is no server that they "
                "could be done to: rehearse the load without them"});
    for (const slo& s : what.slos)
        if (is_of_start(s.what.metric))
            refuse({"LLMBENCH_REHEARSE: ", str(s.text()),
                    " is of a process, and a rehearsal starts none"});
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
