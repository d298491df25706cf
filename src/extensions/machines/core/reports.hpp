// the programs that sent a load, in reports
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/measured/ranks.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/page/sections.hpp"

#include <algorithm>  // find, find_if, max, min
#include <cmath>  // fabs, isnan
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Of each program the worst repeat and all requests, in order of rank.
inline vector<rank_part> over_repeats(const vector<rank_part>& of_all_repeats) {
    vector<rank_part> all;
    for (const rank_part& r : of_all_repeats) {
        const auto at = std::find_if(all.begin(), all.end(),
                                     [&](const rank_part& x) { return x.index == r.index; });
        if (at == all.end()) {
            all.push_back(r);
            continue;
        }
        if (std::fabs(r.off_s) > std::fabs(at->off_s)) at->off_s = r.off_s;
        if (!(r.error_s <= at->error_s)) at->error_s = r.error_s;
        at->synchronised = at->synchronised && r.synchronised;
        at->cpu_utilization = std::max(at->cpu_utilization, r.cpu_utilization);
        at->memory_bytes = std::max(at->memory_bytes, r.memory_bytes);
        at->lateness_p99 = std::max(at->lateness_p99, r.lateness_p99);
        at->requests += r.requests;
        at->failed += r.failed;
    }
    return all;
}

inline std::string memory_text(double bytes) { return printed("%.0f MiB", bytes / 1048576); }

/// From the smallest to the largest value.
template <class Text>
std::string range_text(const vector<rank_part>& all, double rank_part::*of, const Text& text) {
    double least = infinity, most = -infinity;
    for (const rank_part& r : all) {
        least = std::min(least, r.*of);
        most = std::max(most, r.*of);
    }
    const std::string a = text(least), b = text(most);
    return a == b ? a : a + " to " + b;
}

/// "4 programs on 2 machines sent the load: ...", "" for one program.
inline std::string programs_text(const vector<rank_part>& of_all_repeats) {
    const vector<rank_part> all = over_repeats(of_all_repeats);
    if (all.size() < 2) return {};
    vector<std::string> hosts;
    std::size_t unsynchronised = 0;
    double off = 0;
    for (const rank_part& r : all) {
        if (std::find(hosts.begin(), hosts.end(), r.host) == hosts.end())
            hosts.push_back(r.host);
        unsynchronised += !r.synchronised && std::isnan(r.error_s);
        off = std::max(off, std::fabs(r.off_s));
    }
    const auto fraction = [](double x) { return printed("%.1f %%", 100 * x); };
    return filled("{programs} programs on {machines} machine{machines:s} sent the load; they "
                  "began within {off:t}, sent late by p99 {lateness}, used {cpu} of a core and "
                  "{memory}[{may_differ?}; the clocks of {unsynchronised} of them are not "
                  "known to be synchronised]",
                  {{"programs", all.size()}, {"machines", hosts.size()}, {"off", off},
                   {"lateness", range_text(all, &rank_part::lateness_p99, time_text)},
                   {"cpu", range_text(all, &rank_part::cpu_utilization, fraction)},
                   {"memory", range_text(all, &rank_part::memory_bytes, memory_text)},
                   {"may_differ", hosts.size() > 1 && unsynchronised > 0},
                   {"unsynchronised", unsynchronised}});
}
inline vector<rank_part> ranks_of(const gate_report& g) {
    vector<rank_part> all;
    for (const repeat_figures& r : g.figures.candidate.repeats)
        all.insert(all.end(), r.ranks.begin(), r.ranks.end());
    return all;
}
inline void show_programs(const gate_report& g, report_parts& into) {
    const vector<rank_part> all = over_repeats(ranks_of(g));
    if (all.size() < 2) return;
    into.notes.push_back(programs_text(all));
    report_table t{{"rank", "machine", "requests", "failed", "began late by", "known to",
                    "sends late by p99", "busiest thread", "memory"}, 2};
    for (const rank_part& r : all)
        t.add({r.index, r.host, r.requests, r.failed, time_text(r.off_s),
               std::isnan(r.error_s) ? "?" : time_text(r.error_s), time_text(r.lateness_p99),
               filled("{cpu:.1f%} %", {{"cpu", r.cpu_utilization}}),
               memory_text(r.memory_bytes)});
    into.details +=
        folded("Programs that sent the load", plural(all.size(), "rank"), fold::closed,
               page_table(filled("Ranks of {name}", {{"name", g.what.name}}), t));
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
