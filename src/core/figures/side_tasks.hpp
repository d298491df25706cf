// side tasks of a variant
#pragma once

#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // max
#include <cmath>  // isinf, isnan
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

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
