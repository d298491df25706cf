// advisory objectives that main meets again
#pragma once

#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "extensions/history/core/lines.hpp"

#include <cmath>  // exp, log
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// An advisory objective, and the newest runs, all of which met it.
struct met_waiver {
    std::string objective{};
    std::size_t runs = 0;
};
inline void fields_of(field_visitor& v, met_waiver& w) {
    v.text({"objective"}, w.objective);
    v.whole({"runs", "the newest ones, which all met it"}, w.runs, {1, 10000});
}
inline std::string waiver_text(const met_waiver& w) {
    return filled("{objective}: met in {runs} of {runs} runs: it can block again",
                  {{"objective", w.objective}, {"runs", w.runs}});
}
/// Returns the advisory objectives with a limit of their own that the ten newest runs with a value
/// met, each by the geometric mean of its repeats. `runs`: oldest first.
inline vector<met_waiver> met_waivers(const vector<const history_run*>& runs,
                                      const vector<slo>& slos) {
    const std::size_t needed = 10;
    vector<met_waiver> all;
    for (const slo& s : slos) {
        if (!s.is_advisory || !is_absolute(s)) continue;
        std::size_t met = 0;
        bool missed = false;
        for (std::size_t i = runs.size(); i-- > 0 && met < needed && !missed;)
            for (const named_repeats& n : runs[i]->values) {
                if (n.name != str(s.statistic.name)) continue;
                double logs = 0;
                for (const double x : n.repeats) logs += std::log(x);
                const double value = std::exp(logs / static_cast<double>(n.repeats.size()));
                missed = s.at_most ? value > s.bound : value < s.bound;
                met += !missed;
            }
        if (met == needed && !missed) all.push_back({str(s.text()), met});
    }
    return all;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
