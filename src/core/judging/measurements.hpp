// the measurements of a gate
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

/// A repeat, or one variant of a pair, that was measured again because the client had affected it.
struct set_aside_repeat {
    run_arm variant = run_arm::candidate;
    int index = 0;
    std::string why{};
};

/// Metrics that the files do not support, and why: left out, or defined otherwise. An empty list
/// means all metrics.
struct unsupported_metrics {
    std::string why{};
    std::vector<metric_id> of{};
};

/// The conditions of the load that its validity depends on.
struct load_conditions {
    // Squared coefficient of variation of the gaps between planned sends, NaN where the load grows
    // or bursts by design.
    double arrival_cv2 = not_a_number;
    bool other_workload = false;  // the variants have different workloads
    bool short_outputs_expected = false;  // outputs of one token were requested
    bool spins = false;                   // the client was asked to busy-wait
    double max_skew_s = infinity;        // between the starts of ranks
    std::string stopped{};                // why there are fewer repeats than planned
    std::vector<set_aside_repeat> set_aside{};
    std::vector<unsupported_metrics> unsupported{};  // by the files read
    std::vector<std::string> notes{};      // on the files, a sentence each
    // Some requests, reported as cancelled, were unfinished at the end of their run.
    bool has_cut_off = false;
};

/// All that was measured on a gate's servers, without verdicts and objectives.
struct measurements : load_conditions {
    repeat_list candidate{};
    repeat_list baseline{};   // if there is one: pair i is (candidate i, baseline i)
    bool has_live_baseline() const { return !baseline.empty(); }
    repeat_list& variant(run_arm a) { return a == run_arm::baseline ? baseline : candidate; }
    const repeat_list& variant(run_arm a) const {
        return a == run_arm::baseline ? baseline : candidate;
    }
};

/// Why a metric, or one in a predicate, is unsupported; "" where it is supported.
inline std::string unsupported_reason(const load_conditions& under, const statistic_data& what) {
    for (const unsupported_metrics& u : under.unsupported) {
        const bool concerned = concerns_a_metric(what, [&](metric_id m) {
            return std::any_of(u.of.begin(), u.of.end(),
                               [&](metric_id lacks) { return is_or_reads(m, lacks); });
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

using variant_list = std::vector<const repeat_list*>;
inline variant_list variants_of(const measurements& e) { return {&e.candidate, &e.baseline}; }
/// The variants that an objective needs. An absolute one needs the candidate alone, whatever
/// happened to the baseline.
inline variant_list variants_of(const measurements& e, const slo& s) {
    return needs_baseline(s) ? variants_of(e) : variant_list{&e.candidate};
}
template <class F>
void for_each_repeat(const variant_list& variants, F&& f) {
    for (const auto* variant : variants)
        for (const repeat_data& d : *variant) f(d);
}
template <class F>
void for_each_repeat(const measurements& e, F&& f) {
    for_each_repeat(variants_of(e), f);
}
template <class F>
void for_each_repeat(const repeat_data& only, F&& f) {
    f(only);
}

/// Returns the measured requests, or sessions, of the candidate that a statistic selects.
inline long long measured_requests(const measurements& e, std::size_t repeats,
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
