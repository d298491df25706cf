// the plan of a gate: what is sent, and how it is judged
#pragma once

#include "api/result.hpp"
#include "api/side_task.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/measured/recovery.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/shard.hpp"
#include "core/traffic/requests.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"

#include <memory>  // shared_ptr
#include <optional>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

enum class scenario_use : unsigned char { measure, gate, find_capacity };

/// What a plan is for.
struct plan_use {
    scenario_use use = scenario_use::measure;
    load_shard part{};  // of this program, if verdicts are on all parts
    /// As many repeats are measured at least, whatever they show. None: until all is decided.
    std::optional<int> all_repeats{};
    plan_use(scenario_use u = scenario_use::measure, const load_shard& p = {},
             std::optional<int> all = {})
        : use(u), part(p), all_repeats(all) {}
};

/// The load that a search looks for.
struct searched_load {
    // the plan's own objectives are of the capacity
    vector<slo> objectives_held{};
    vector<double> asked{};  // loads that those name, the decisive ones first
    bool to_the_interval = false; // else until these are decided
    double first_load = 0;  // of the first probe
};

/// Repeats, or pairs if there is a baseline.
struct repeat_counts {
    int first_repeats = first_analysis;  // nothing is decided before
    int max_repeats = last_analysis;
    int max_if_noisy = 0;  // if noise leaves an objective open; 0: no more
    /// So many are measured, whatever they show.
    void measure_all(int repeats) { *this = {repeats, repeats}; }
};
/// By what one load or a search is judged.
struct load_judging : repeat_counts {
    judging_rule rule{};
    vector<slo> slos{};
    searched_load search{};
};
struct measured_load : load_judging {
    long long requests = 0;
};
/// What a gate is compared with.
struct planned_baseline : pairing {
    bool has_baseline = false;  // a live one, measured in pairs
    bool has_stored_baseline = false;
    stored_result stored{};
    extension_value past{};  // if an extension has the baseline
    verdict_unit counted_in() const {
        return has_baseline ? verdict_unit::pair : verdict_unit::repeat;
    }
    /// The loads of a pair, one after the other.
    int loads_of_pair() const { return has_baseline && !is_at_once ? 2 : 1; }
};
struct slot;
struct slot_host;
struct taken_profile;
/// The number of repeats, and the objectives and baseline that judge them.
struct planned_judging : load_judging, planned_baseline {
    bool repeats_are_asked = false;  // by the gate: then advisory objectives are waited for, too
    bool ends_at_first_miss = false;
    any_profile on_fail{};
    double usd_per_hour = 0;  // of its server, 0 if not given
    maybe<recovery_parameters> recovery{};  // if an objective is on recovery
    /// Sends the same load again, with other words, and profiles the server, if `on_fail` asks.
    std::shared_ptr<taken_profile> (*profiled)(const slot_host& of, slot again,
                                               vector<std::string>& notes) = nullptr;
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
    // Outlives statics, as reports at exit make plans, too.
    static const auto& none = *new auto(new_shared<const planned_judging>());
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
    p.judged = new_shared<const planned_judging>(std::move(j));
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
    static_cast<pairing&>(c) = *p.judged;
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
