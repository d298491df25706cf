// finished shards, judged as a gate
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/planning/check_slo.hpp"
#include "effects/system/settings.hpp"
#include "effects/gates/measure.hpp"
#include "effects/gates/stored_run.hpp"
#include "effects/verbs.hpp"
#include "extensions/machines/api.hpp"
#include "extensions/machines/core/stored_shards.hpp"

#include <filesystem>
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

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

result judge_shards(const types::list<types::text>& directories, const slo_list& slos,
                    const types::text& gate, const char* file, int line) {
    return detail::asserted(detail::judged_shards(directories, slos, gate, file, line), file, line);
}

}  // inline namespace v0
}  // namespace llmbench
