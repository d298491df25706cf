// loads that are searched: an extension does it
#pragma once

#include "api/metrics.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/extension.hpp"
#include "core/base/fields.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/measurements.hpp"
#include "core/described/verdict_text.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"

#include <memory>  // shared_ptr
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The result at a load.
enum class carried : unsigned char { open, holds, misses };
inline const char* to_string(carried c) {
    return c == carried::holds ? "carried" : c == carried::misses ? "too much" : "nothing";
}

/// Where a capacity lies.
struct capacity_ends {
    double low = 0;          // the highest load shown to hold its objectives, 0: none
    double high = infinity;  // the lowest shown to miss one
    bool monotone() const { return low < high; }
    bool has_both() const { return low > 0 && high < infinity && monotone(); }
};
/// "capacity in [11.4, 12.6] req/s, limited by p90(ttft)".
inline std::string capacity_text(metric_id unit, const capacity_ends& s,
                                 const std::string& limiting_objective) {
    const std::string low = value_text(unit, s.low), high = value_text(unit, s.high);
    const std::string found =
        !s.monotone() ? "no capacity: " + low + " is shown to be carried and " + high + " is not"
        : s.low > 0 && s.high < infinity ? "capacity in " + load_interval_text(unit, s.low, s.high)
        : s.low > 0 ? "capacity at least " + low + ", no load is shown to be too much"
        : s.high < infinity ? "capacity less than " + high + ", no load is shown to be carried"
                            : "no capacity is shown";
    return found + (limiting_objective.empty() ? "" : ", limited by " + limiting_objective);
}

struct gate_report;

/// The result of a search as reports show it.
class search_figures {
public:
    virtual ~search_figures() = default;
    virtual std::string console() const = 0;  // its probes, a line each
    virtual std::string page(const gate_report& g) const = 0;
    virtual void fields(field_visitor& v) = 0;

    std::string line{};
    std::string flat{};       // why the capacity cannot be located better
    std::string fault{};      // why the search is invalid
    std::string tables_at{};  // "at 12 req/s"
    capacity_ends ends{};
};

inline const extension& the_search() {
    return the_one_with(&extension::searched,
                        "a load that is searched, and objectives on a capacity, need #include "
                        "\"llmbench_capacity.hpp\" where LLMBENCH_MAIN is");
}

inline bool is_of_capacity(const slo& s) { return is_capacity(s.statistic.metric); }

/// Analyses a gate of one load or a search.
inline analysis analyse_gate(const measurements& seen, const judging_parameters& t) {
    const measurements e = with_known_results(seen);
    e.known->keep({&e.candidate, &e.baseline});
    return t.objectives_held.empty() ? analyse(e, t) : the_search().analyse_search(e, t);
}
/// The verdict on one more SLO, as if the gate had it, too.
inline decision judged_also_of_loads(const measurements& e, const judging_parameters& t,
                                     const slo& s) {
    if (t.objectives_held.empty()) return decision_on_another(e, t, s);
    judging_parameters also = t;
    also.slos = {s};
    return analyse_gate(e, also).verdicts[0];
}
/// Calls `f` with the repeats of tables and pooled numbers. For a gate of one load these are all
/// repeats.
template <class F>
auto with_load_of_tables(const measurements& e, const judging_parameters& t, F&& f) {
    if (t.objectives_held.empty() || e.candidate.empty()) return f(e);
    const measurements at = the_search().at_load_of_tables(e, t);
    return f(at);
}
/// Least seconds of a repeat, or of a search's first probe; 0 if unknown before the run.
inline double seconds_of_one(const plan& p) {
    if (!p.searches()) return expected_seconds(p);
    return expected_seconds(the_search().at_load(p, p.judged->search.first_load, 0));
}
inline void fields_of(field_visitor& v, std::shared_ptr<search_figures>& s) {
    auto named = s;
    if (!named) each(&extension::add_search, plan(), measurements(), judging_parameters(), named);
    if (named) named->fields(v);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
