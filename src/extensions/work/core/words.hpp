// objectives on work as a gate file says them
#pragma once

#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/measured/server_metrics.hpp"
#include "extensions/work/api.hpp"
#include "extensions/work/core/objective.hpp"

#include <cstddef>  // size_t

namespace llmbench {
inline namespace v1 {

slo detail::work_objective(work_count count, const types::text& series, work_side side,
                           const work_limit& limit) {
    return slo_of({.what = series.empty() ? count_names[static_cast<std::size_t>(count)].name
                                          : "counted(\"" + str(series) + "\")",
                   .side = side,
                   .from = limit.from,
                   .number = static_cast<double>(limit.number),
                   .factor = limit.factor},
                  limit.at);
}

}  // inline namespace v1
}  // namespace llmbench
