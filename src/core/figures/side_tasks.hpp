// side tasks, and the programs that sent the load
#pragma once

#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat_list.hpp"

#include <algorithm>  // find, find_if, max, min
#include <cmath>  // fabs, isinf, isnan
#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One task over all repeats.
struct task_figures {
    std::string name{};
    std::size_t repeats = 0, steps = 0, failed = 0, late = 0;
    double mean_s = 0, max_s = 0, latest_s = 0;
    std::string example{};  // of a step that failed
    std::string recovered{};  // recovery time of each repeat
    void add(const side_step& s) {
        constexpr double unnoticed_s = 0.1;
        const double took_s = static_cast<double>(s.to_ns - s.from_ns) * 1e-9;
        const double late_s = static_cast<double>(s.from_ns - s.due_ns) * 1e-9;
        mean_s += (took_s - mean_s) / static_cast<double>(++steps);
        max_s = std::max(max_s, took_s);
        latest_s = std::max(latest_s, late_s);
        late += late_s > unnoticed_s;
        if (!s.failed.empty() && failed++ == 0) example = s.what + " " + s.failed;
    }
};
template <class Repeats>
std::vector<task_figures> task_figures_of(const Repeats& variant) {
    std::vector<task_figures> all;
    for (const repeat_facts& d : variant)
        for (std::size_t i = 0; i < d.beside.size(); ++i) {
            if (all.size() <= i) all.push_back({.name = d.beside[i].name});
            ++all[i].repeats;
            if (const double s = d.beside[i].recovery_s; !std::isnan(s))
                all[i].recovered += (all[i].recovered.empty() ? "" : ", ") +
                                    (std::isinf(s) ? std::string("never")
                                     : s == 0      ? std::string("nothing (none was disturbed)")
                                                   : time_text(s));
            for (const side_step& s : d.beside[i].steps) all[i].add(s);
        }
    return all;
}
/// "adapters": 58 steps in 2 repeats, 12 ms each on the average, 40 ms at most
inline std::string task_figures_text(const task_figures& t) {
    std::string all = "\"" + t.name + "\": " + plural(t.steps, "step") + " in " +
                      plural(t.repeats, "repeat") + ", " + time_text(t.mean_s) +
                      " each on the average, " + time_text(t.max_s) + " at most";
    if (t.late > 0)
        all += printed("; %zu began late, by up to ", t.late) + time_text(t.latest_s) +
               ", as those before were under way";
    if (!t.recovered.empty()) all += "; recovered after " + t.recovered;
    if (t.failed > 0) all += printed("; %zu failed (", t.failed) + t.example + ")";
    return all;
}

/// Of each program the worst repeat and all requests, in order of rank.
inline std::vector<rank_part> rank_figures_of(const repeat_list& variant) {
    std::vector<rank_part> all;
    for (const repeat_data& d : variant)
        for (const rank_part& r : d.ranks) {
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
template <class F, class Text>
std::string range_text(const std::vector<rank_part>& all, const F& of, const Text& text) {
    double least = infinity, most = -infinity;
    for (const rank_part& r : all) {
        least = std::min(least, of(r));
        most = std::max(most, of(r));
    }
    const std::string a = text(least), b = text(most);
    return a == b ? a : a + " to " + b;
}

/// "4 programs on 2 machines sent the load: ...", "" for one program.
inline std::string ranks_text(const std::vector<rank_part>& all) {
    if (all.size() < 2) return {};
    std::vector<std::string> hosts;
    std::size_t unsynchronised = 0;
    double off = 0;
    for (const rank_part& r : all) {
        if (std::find(hosts.begin(), hosts.end(), r.host) == hosts.end()) hosts.push_back(r.host);
        unsynchronised += !r.synchronised && std::isnan(r.error_s);
        off = std::max(off, std::fabs(r.off_s));
    }
    const auto fraction = [](double x) { return printed("%.1f %%", 100 * x); };
    std::string t = printed("%zu programs on %zu machine%s sent the load; they began within ",
                            all.size(), hosts.size(), hosts.size() == 1 ? "" : "s");
    t += time_text(off) + ", sent late by p99 " +
         range_text(all, [](const rank_part& r) { return r.lateness_p99; }, time_text) + ", used " +
         range_text(all, [](const rank_part& r) { return r.cpu_utilization; }, fraction) +
         " of a core and " +
         range_text(all, [](const rank_part& r) { return r.memory_bytes; }, memory_text);
    if (hosts.size() > 1 && unsynchronised > 0)
        t += printed("; the clocks of %zu of them are not known to be synchronised",
                     unsynchronised);
    return t;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
