// what verdicts are given on
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/measured/session_times.hpp"

#include <algorithm>  // min, find
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A repeat, or an arm of a pair, that is no evidence: another was measured in its place, because
/// the client had had too great a part in it.
struct set_aside_repeat {
    run_arm arm = run_arm::candidate;
    int index = 0;
    std::string why{};
};

/// What is no evidence of some metrics, as whoever measured left it out or means another thing by
/// the name: why, in a sentence, and of which. Of all where none is named.
struct unsupported_metrics {
    std::string why{};
    std::vector<metric_id> of{};
};

/// Of a part with arrivals of its own, as `arrival_cv2` of a whole load.
struct part_conditions {
    std::string label{};
    double arrival_cv2 = not_a_number;
    bool saturates = false;  // its users do: there are throughputs of it
};

/// Under which load evidence was found, as far as its validity depends on it.
struct load_conditions {
    // Squared coefficient of variation of the gaps between planned sends, NaN where the load grows
    // or bursts by design.
    double arrival_cv2 = not_a_number;
    std::vector<part_conditions> parts{};  // where each has arrivals of its own
    bool other_workload = false;  // the baseline's is another
    bool short_outputs_expected = false;  // outputs of one token were asked for
    bool spins = false;                   // the client was asked to burn its core
    double most_skew_s = infinity;        // by which the parts of a shared load may begin apart
    std::string stopped{};                // why there are fewer repeats than planned
    std::vector<set_aside_repeat> set_aside{};
    std::vector<unsupported_metrics> unsupported{};  // by the files that it was read from
    std::vector<std::string> notes{};      // on these, a sentence each
    // Among its requests are some, reported as cancelled, that had not ended when their run did.
    bool has_cut_off = false;
};

/// All that was seen of a gate's servers. Nothing in it is judged, and nothing that it is held
/// against is part of it.
struct evidence : load_conditions {
    repeat_list candidate{};  // of fresh traffic: stages of n, n and 2n requests
    repeat_list baseline{};   // as many, where there is one: pair i is (candidate i, baseline i)
    bool has_live_baseline() const { return !baseline.empty(); }
    repeat_list& arm(run_arm a) { return a == run_arm::baseline ? baseline : candidate; }
    const repeat_list& arm(run_arm a) const {
        return a == run_arm::baseline ? baseline : candidate;
    }
};

/// Why nothing can be said of a metric, or of one that a predicate compares; "" where it can.
inline std::string unsupported_reason(const load_conditions& under, const statistic_data& what) {
    for (const unsupported_metrics& u : under.unsupported) {
        const bool concerned = concerns_a_metric(what, [&](metric_id m) {
            return std::find(u.of.begin(), u.of.end(), m) != u.of.end();
        });
        if (u.of.empty() || concerned) return u.why;
    }
    return {};
}
inline bool is_unsupported(const load_conditions& under, metric_id m) {
    statistic_data what;
    what.metric = m;
    return !unsupported_reason(under, what).empty();
}

using arm_list = std::vector<const repeat_list*>;
inline arm_list arms_of(const evidence& e) { return {&e.candidate, &e.baseline}; }
/// Those that an objective is judged on: an absolute one on the candidate's alone, whatever became
/// of what others compare it with.
inline arm_list arms_of(const evidence& e, const slo& s) {
    return needs_baseline(s) ? arms_of(e) : arm_list{&e.candidate};
}
template <class F>
void for_each_repeat(const arm_list& arms, F&& f) {
    for (const auto* arm : arms)
        for (const repeat_data& d : *arm) f(d);
}
template <class F>
void for_each_repeat(const evidence& e, F&& f) {
    for_each_repeat(arms_of(e), f);
}
/// Of one repeat alone.
template <class F>
void for_each_repeat(const repeat_data& only, F&& f) {
    f(only);
}

/// Measured requests of the candidate that a statistic is of, or sessions.
inline long long measured_requests(const evidence& e, std::size_t repeats,
                                   const statistic_data& what = {}) {
    long long n = 0;
    for (std::size_t i = 0; i < std::min(repeats, e.candidate.size()); ++i)
        n += is_of_sessions(what.metric)
                 ? static_cast<long long>(measured_sessions(what.which, e.candidate[i]).size())
                 : selected_requests(what, e.candidate[i]);
    return n;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
