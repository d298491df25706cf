// the shards of a load, judged as a gate
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/traffic/check_slo.hpp"
#include "core/reports/stored_shards.hpp"
#include "effects/system/settings.hpp"
#include "effects/gates/gate_run.hpp"
#include "effects/gates/measure.hpp"
#include "effects/gates/stored_run.hpp"

#include <filesystem>
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline stored_shard read_shard(const std::string& directory, const std::string& gate) {
    require(directory != report_directory(),
            "directories: " + directory + " is where this program's own report goes: set "
            "LLMBENCH_REPORT_DIR to another one");
    stored_run run =
        read_stored_run(std::filesystem::path(directory) / "records.jsonl", gate);
    require(run.problem_of_events.empty(), directory + ": " + run.problem_of_events);
    return {directory, std::move(run.gate)};
}

/// The shards of one gate, from their directories to its report.
class shards_execution : public reading_execution {
public:
    shards_execution(const types::list<types::text>& directories, const scenario& as,
                     const char* file, int line)
        : reading_execution(as, file, line, "judge_shards"), directories_(directories) {}
    result measured() {
        begin_reading();
        require(directories_.size() > 0, "directories: none is named, one for each shard is "
                                         "needed");
        std::vector<stored_shard> shards;
        for (const text& d : directories_) shards.push_back(read_shard(str(d), str(as_.name)));
        gathered_shards all = gathered(std::move(shards), as_.slos);
        const plan p = named(std::move(all.what));
        const slo_context context = slo_context_of(p);
        for (const slo& s : p.slos) check_slo(s, context);
        measured_gate m;
        m.target = all.target;
        m.seen = std::move(all.seen);
        m.held = std::move(all.held);
        return judged(p, std::move(m));
    }

private:
    const types::list<types::text>& directories_;
};

inline result judged_shards(const types::list<types::text>& directories, const slo_list& slos,
                            const types::text& gate, const char* file, int line) {
    scenario as;
    as.name = gate;
    as.slos = slos;
    return executed(shards_execution(directories, as, file, line), file, line, "judge_shards");
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
