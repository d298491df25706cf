// records judged again
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/verbs.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/judge.hpp"
#include "core/traffic/shard.hpp"
#include "core/described/described.hpp"
#include "core/capacity/found.hpp"
#include "core/capacity/searched.hpp"
#include "core/planning/check_slo.hpp"
#include "core/stored/stored.hpp"
#include "effects/system/clock.hpp"
#include "effects/gates/stored_run.hpp"

#include <algorithm>  // all_of, any_of
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// In a search, the other objectives say what a load must meet.
inline void divide_by_loads(stored_gate& g) {
    const repeat_list& probes = g.seen.candidate;
    const auto is_a_probe = [](const repeat_data& d) { return d.load > 0; };
    const bool searched = std::any_of(probes.begin(), probes.end(), is_a_probe);
    const bool has_capacity =
        std::any_of(g.judged_by.slos.begin(), g.judged_by.slos.end(), is_of_capacity);
    if (!searched && has_capacity)
        refuse({"slos: \"", g.name, "\" was measured at one load, which shows no capacity"});
    if (!searched) return;
    const bool one_load = std::all_of(probes.begin(), probes.end(), [&](const repeat_data& d) {
        return d.load == probes.front().load;
    });
    if (!has_capacity && !one_load)
        refuse({"slos: \"", g.name, "\" was measured at several loads: ask for its capacity, "
                                    "beside what a load must keep"});
    if (!has_capacity) return;
    std::vector<slo> capacities;
    for (const slo& s : g.judged_by.slos)
        (is_of_capacity(s) ? capacities : g.judged_by.objectives_held).push_back(s);
    g.judged_by.slos = std::move(capacities);
    if (g.judged_by.objectives_held.empty())
        refuse({"slos: they must say what a load has to hold"});
}
}  // namespace detail

#ifndef LLMBENCH_NO_BODIES
types::list<slo_verdict> judge(const types::text& records_file, const slo_list& asked,
                               const types::text& gate) {
    using namespace detail;
    const slo_list slos = on_day(asked, utc_day());
    stored_run run = read_stored_run(str(records_file), str(gate));
    stored_gate& g = run.gate;
    if (!g.load.shard.is_whole())
        refuse({str(records_file), ": of \"", g.name, "\" ", shard_text(g.load.shard)});
    const std::string& problem = run.problem_of_events;
    for (const slo& s : slos) g.judged_by.slos.push_back(s);
    g.context.slos = g.judged_by.slos;
    divide_by_loads(g);
    for (const slo& s : slos) {
        check_slo(s, g.context);
        if (!problem.empty() && concerns(s.what, &metric_facts::needs_event_times))
            refuse({"the SLO ", str(s.text()), " needs the time of every event: ", problem});
    }
    return described(analyse_loads(g.seen, g.judged_by).verdicts);
}
#endif

}  // inline namespace v0
}  // namespace llmbench
