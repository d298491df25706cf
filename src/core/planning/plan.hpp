// the plan of a gate: what is sent, and how it is judged
#pragma once

#include "api/result.hpp"
#include "api/side_task.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/measured/recovery.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"

#include <memory>  // make_shared, shared_ptr
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

enum class scenario_use : unsigned char { measure, gate, find_capacity };

/// The load that a search looks for.
struct searched_load {
    // the plan's own objectives are of the capacity
    vector<slo> objectives_held{};
    vector<double> asked{};  // loads that those name, the decisive ones first
    bool to_the_interval = false; // else until these are decided
    double first_load = 0;  // of the first probe
};

/// Repeats, or pairs. Nothing is decided before the first analysis.
struct repeat_counts {
    int first = first_analysis, most = last_analysis;
    int max_if_noisy = 0;  // if an objective is still open; 0: no more
};
/// What is measured of one load or of a search, and by what it is judged.
struct measured_load {
    long long requests = 0;
    repeat_counts repeats{};
    judging_rule rule{};
    vector<slo> slos{};
    searched_load search{};
};
/// The number of repeats, and the objectives and baseline that judge them.
struct planned_judging {
    int first_repeats = first_analysis;  // nothing is decided before
    int max_repeats = last_analysis;  // repeats, or pairs if there is a baseline
    bool repeats_are_asked = false;  // by the gate: then advisory objectives are waited for, too
    int max_if_noisy = 0;           // if noise leaves an objective open; 0: no more
    bool ends_at_first_miss = false;
    bool has_baseline = false;       // a live one, measured in pairs
    verdict_unit counted_in() const {
        return has_baseline ? verdict_unit::pair : verdict_unit::repeat;
    }
    bool is_at_once = false;         // the pairs, and
    bool by_slices = false;          // compared by slices of their time
    bool has_stored_baseline = false;
    stored_result stored{};
    extension_value past{};  // if an extension has the baseline
    judging_rule rule{};
    vector<slo> slos{};
    searched_load search{};
    maybe<recovery_parameters> recovery{};  // if an objective is on recovery
    any_profile on_fail{};
    /// The loads of a pair, one after the other.
    int loads_of_pair() const { return has_baseline && !is_at_once ? 2 : 1; }
    double usd_per_hour = 0;  // of its server, 0 if not given
};

/// The name of a gate, and its place in the source.
struct gate_identity {
    std::string name{};
    std::string test_case{};  // "" outside of one
    std::string file{};
    int line = 0;
};

/// Returns the judging of a plan that has none yet, made once.
inline std::shared_ptr<const planned_judging> no_judging() {
    static const auto none = std::make_shared<const planned_judging>();
    return none;
}
/// A checked scenario with all defaults filled in. Copies share traffic and judging.
struct plan : gate_identity, load_plan {
    std::shared_ptr<const planned_judging> judged = no_judging();
    double max_skew_s = infinity;  // between the starts of the programs that share a load
};

template <class F>
plan with_judging(plan p, F&& change) {
    planned_judging j = *p.judged;
    change(j);
    p.judged = std::make_shared<const planned_judging>(std::move(j));
    return p;
}

/// Returns the plan of one variant: the baseline may have another workload.
inline plan plan_of_variant(const plan& p, run_variant variant) {
    if (variant != run_variant::baseline || !p.sent->otherwise) return p;
    return with_traffic(p, [](planned_traffic& t) {
        static_cast<planned_workloads&>(t) = planned_workloads(*t.otherwise);
    });
}

inline load_conditions load_conditions_of(const plan& p) {
    const planned_traffic& t = *p.sent;
    load_conditions c;
    c.arrival_cv2 =
        is_batch(t.arrivals, t.files->trace) ? not_a_number : arrival_cv2_of(t.arrivals);
    // A search counts each request, and turns arrive in batches of one conversation at most.
    if (p.searches() && t.stride > 1)
        c.arrival_cv2 = arrival_cv2_of(t.arrivals) + static_cast<double>(t.stride);
    c.is_at_once = p.judged->is_at_once;
    c.by_slices = p.judged->by_slices;
    c.other_workload = t.otherwise && (*t.otherwise).has_other_prompts;
    c.other_requests = static_cast<bool>(t.otherwise);
    c.short_outputs_expected = expects_short_outputs(p);
    c.spins = t.client.spin;
    c.counts_work = t.counts_work;
    c.max_skew_s = p.max_skew_s;
    return c;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
