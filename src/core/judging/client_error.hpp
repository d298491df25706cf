// verdicts that the client may have affected
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/metric/table.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/client.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/numbers.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/judging/values.hpp"

#include <algorithm>  // count_if, max
#include <cmath>  // fabs, log
#include <cstdint>  // uint64_t
#include <optional>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Why the client affects a verdict, and the repeat to measure again.
struct client_error {
    cause why{};
    std::size_t repeat = 0;  // its position in the measurements
};

/// Returns the repeat with the greatest `part_of(repeat)` over the limit `over`.
template <class PartOf, class Why>
std::optional<client_error> greatest_part(const variant_list& variants, double over,
                                          PartOf&& part_of, Why&& why) {
    std::optional<client_error> bias;
    for (const auto* variant : variants)
        for (std::size_t i = 0; i < variant->size(); ++i) {
            const double part = part_of((*variant)[i]);
            if (!(part > over)) continue;
            over = part;
            bias = {why((*variant)[i], part), i};
        }
    return bias;
}
/// Late sends change the load.
inline std::optional<client_error> error_of_load(const variant_list& variants, double late_after) {
    return greatest_part(
        variants, most_late_fraction,
        [&](const repeat_data& d) { return late_fraction_of(d, late_after); },
        [&](const repeat_data&, double part) {
            return cause{because::sent_late, {part, late_after}, whose::client};
        });
}
/// First tokens that may have arrived before others of the same read.
inline std::optional<client_error> error_of_first_tokens(const variant_list& variants) {
    return greatest_part(
        variants, 0,
        [](const repeat_data& d) {
            return static_cast<double>(
                std::count_if(d.records.begin(), d.records.end(), [](const record& r) {
                    return is_measured(r) && r.first_early_ns > 0;
                }));
        },
        [](const repeat_data& d, double) {
            const auto gaps = static_cast<double>(std::max<std::uint64_t>(pooled_gap_count(d), 1));
            return cause{because::read_together,
                         {static_cast<double>(d.unknown_gaps) / gaps}, whose::client};
        });
}
/// Time that the client lost where the kernel has no stamps.
inline std::optional<client_error> error_of_lost_time(const variant_list& variants) {
    return greatest_part(
        variants, 0, [](const repeat_data& d) {
            return client_lost_much(d) ? 1e-9 + d.lost_fraction : 0;
        },
        [](const repeat_data& d, double) {
            return cause{because::client_lost,
                         {d.lost_fraction, static_cast<double>(d.disturbed_requests),
                          static_cast<double>(d.records.size())}, whose::client};
        });
}

/// Whether the verdict may change without the client's delays. A pass must hold with the delays
/// counted against the server, a miss without them. An open verdict is affected if it is decided
/// without them.
inline bool may_be_the_clients(const measurements& e, const judging_parameters& t,
                               const decision& v) {
    const auto as_read = [&](timing_bound how) {
        judging_parameters other = t;
        other.read = how;
        return decide_measurements(e, other, v.what).outcome;
    };
    switch (v.outcome) {
    case verdict::pass: return as_read(timing_bound::pessimistic) != verdict::pass;
    case verdict::fail: return as_read(timing_bound::optimistic) != verdict::fail;
    case verdict::inconclusive:
        return as_read(timing_bound::optimistic) == verdict::pass ||
               as_read(timing_bound::pessimistic) == verdict::fail;
    default: return false;
    }
}

/// Returns the repeat in which a late client read most events together.
inline std::optional<client_error> error_in_gaps(const variant_list& variants, const cause& why) {
    return greatest_part(
        variants, 0, [](const repeat_data& d) { return static_cast<double>(d.unknown_gaps); },
        [&](const repeat_data&, double) { return why; });
}

/// Whether a client's delay can be part of a metric.
inline bool is_of_times(metric_id m) {
    return is_of_service(m) && !is_of_server(m) && !is_of_answers(m);
}

/// Why the client affects this verdict, if it does.
inline std::optional<client_error> client_error_of(const measurements& e,
                                                   const judging_parameters& t, const decision& v) {
    const slo& s = v.what;
    const variant_list variants = variants_of(e, s);
    const because first = v.why.empty() ? because::nothing : v.why[0].what;
    if (v.outcome == verdict::invalid && first == because::read_together)
        return error_in_gaps(variants, v.why[0]);
    if (v.outcome == verdict::invalid &&  // the client may have merged them
        (first == because::in_one_piece || first == because::in_a_burst ||
         first == because::comes_in_bursts))
        return error_of_lost_time(variants);
    const bool is_none = v.outcome == verdict::invalid || v.outcome == verdict::skipped;
    // Without a comparison, as in the first run of a history, nothing can be affected.
    const bool is_undecided =
        v.outcome == verdict::inconclusive && v.decided_by == verdict_method::none;
    if (is_none || is_undecided || !is_of_times(s.what.metric)) return {};
    if (const auto bias = error_of_lost_time(variants)) return bias;
    auto bias = error_of_load(variants, late_after_s(t));
    if (!bias) bias = error_of_first_tokens(variants);
    if (bias && !may_be_the_clients(e, t, v)) bias.reset();
    return bias;
}

/// Why repeats are no baseline: a slow client would let later runs pass.
inline std::optional<client_error> error_of_baseline(const measurements& e,
                                                     const judging_parameters& t) {
    const variant_list variants{&e.candidate};
    std::optional<client_error> bias = error_of_lost_time(variants);
    for (const slo& s : t.slos) {
        if (s.factor == 0 || !is_of_times(s.what.metric)) continue;
        if (bias) return bias;
        const auto late = error_of_load(variants, late_after_s(t));
        if (!late) continue;
        const repeat_data& d = e.candidate[late->repeat];
        const double as_is = evaluate(s.what, d);
        const double moved = evaluate(s.what, d, timing_bound::optimistic);
        if (std::fabs(std::log(as_is / moved)) > prior_sd) return late;
    }
    return {};
}

/// Makes a verdict invalid if the client may have affected it. `found`: receives the first error.
inline decision with_client_error(const measurements& e, const judging_parameters& t, decision v,
                                  std::optional<client_error>* found = nullptr) {
    const std::optional<client_error> bias = client_error_of(e, t, v);
    if (!bias) return v;
    if (found && !*found && !v.what.is_advisory) *found = bias;
    return decided(std::move(v), verdict::invalid, bias->why);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
