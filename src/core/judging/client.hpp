// validity checks of the client
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // count_if, max, merge, min, sort, upper_bound
#include <cmath>  // fabs, log
#include <cstdint>  // uint64_t
#include <optional>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Seconds after which a send is late: 1 % of the limit on ttft, if there is one.
inline double late_after_s(const judging_parameters& t) {
    double least = infinity;
    const auto see = [&](metric_id m, const auto& of) {
        const bool is_ttft = m == metric_id::ttft || is_of_turns(m);
        if (is_ttft && of.at_most && of.bound > 0) least = std::min(least, of.bound / 100);
    };
    for (const auto* slos : {&t.slos, &t.objectives_held})
        for (const slo& s : *slos) {
            if (is_absolute(s)) see(s.statistic.metric, s);
            for (const predicate_step& step : s.statistic.where)
                if (step.op == predicate_step::op_kind::compare) see(step.metric, step);
        }
    return least < infinity ? least : late_send_ns * 1e-9;
}
/// Without kernel stamps the client's lost time is part of all times. The limit is 1 % of a repeat,
/// or a loss of over 20 ms for 1 % of the requests.
inline bool client_lost_much(const repeat_data& d) {
    return d.lost_fraction > 0.01 ||
           d.disturbed_requests * 100 > static_cast<long long>(d.records.size());
}

inline vector<double> lateness_in(const repeat_data& d) {
    vector<double> late;
    for (const record& r : d.records)
        if (is_measured(r) && r.dispatched_ns > 0)
            late.push_back(static_cast<double>(r.late_ns) * 1e-9);
    std::sort(late.begin(), late.end());
    return late;
}
inline vector<double> pooled_lateness(const load_conditions& under, const repeat_list& repeats) {
    vector<double> late;
    for (const repeat_data& d : repeats) {
        const auto more = known_in(under, d, "lateness", [&] { return lateness_in(d); });
        vector<double> both(late.size() + more->size());
        std::merge(late.begin(), late.end(), more->begin(), more->end(), both.begin());
        late = std::move(both);
    }
    return late;
}

inline bool client_was_saturated(const load_conditions& under, double cpu_utilization) {
    return cpu_utilization > 0.9 && !under.spins;
}

/// The client's conduct over all these repeats. `late`: pooled_lateness.
inline self_check_t client_conduct(const repeat_list& repeats, const vector<double>& late) {
    self_check_t c;
    if (!late.empty()) {
        c.lateness_p50 = nearest_rank(late, 0.5);
        c.lateness_p99 = nearest_rank(late, 0.99);
        c.lateness_max = late.back();
        c.late_fraction =
            static_cast<double>(late.end() - std::upper_bound(late.begin(), late.end(), 0.010)) /
            static_cast<double>(late.size());
    }
    double content = 0, coalesced = 0, reads = 0, stamped = 0;
    for (const repeat_data& d : repeats) {
        c.connections_opened += d.connections_opened;
        content += static_cast<double>(d.content_events);
        coalesced += static_cast<double>(d.coalesced_events);
        reads += static_cast<double>(d.reads);
        stamped += static_cast<double>(d.stamped_reads);
        c.unknown_gaps += d.unknown_gaps;
        c.cpu_utilization = std::max(c.cpu_utilization, d.cpu_utilization);
        c.loop_lag_p99 = std::max(c.loop_lag_p99, d.loop_lag_p99);
        c.loop_lag_max = std::max(c.loop_lag_max, d.loop_lag_max);
        c.stamp_lag_p99 = std::max(c.stamp_lag_p99, d.stamp_lag_p99);
        c.stamp_lag_max = std::max(c.stamp_lag_max, d.stamp_lag_max);
        c.lost_fraction = std::max(c.lost_fraction, d.lost_fraction);
        c.asked_rate += d.asked_rate;
        c.achieved_rate += d.achieved_rate;
    }
    c.asked_rate /= as_number(std::max<std::size_t>(repeats.size(), 1));
    c.achieved_rate /= as_number(std::max<std::size_t>(repeats.size(), 1));
    if (content > 0) c.coalesced_fraction = coalesced / content;
    if (reads > 0) c.stamped_fraction = stamped / reads;
    return c;
}

/// Why the client could not send, where it lacked a resource for more than one request and over 1 %
/// of them. Fewer are exempt.
inline cause missing_on_client(const variant_list& variants) {
    std::size_t lacking = 0, measured = 0;
    const record* example = nullptr;
    for (const repeat_data& d : repeats_of(variants))
        for (const record& r : d.records) {
            measured += is_measured(r);
            if (!is_measured(r) || !failed_by_client(r)) continue;
            ++lacking;
            example = &r;
        }
    const bool few = lacking <= std::max<std::size_t>(1, measured / 100) && lacking < measured;
    if (!example || few) return {};
    return cause_with<because::client_without>({{"lacking", lacking}, {"requests", measured}},
                                               whose::client,
                                               str(example->error).substr(client_lacks.size()));
}

/// The client's conduct, and why it is unfit to measure any server.
struct own_check : self_check_t {
    cause why{};
    double unread_fraction = 0;  // of the gaps, those whose events were read together
};
/// Kernel stamps are lost only where the client read late. Without stamps a busy client loses them.
inline double unread_fraction_of(const self_check_t& c, const repeat_list& repeats) {
    if (!(c.stamped_fraction > 0.5)) return c.cpu_utilization > 0.8 ? c.coalesced_fraction : 0;
    if (c.unknown_gaps == 0) return 0;
    double gaps = 0;
    for (const repeat_data& d : repeats) gaps += static_cast<double>(pooled_gap_count(d));
    return gaps > 0 ? static_cast<double>(c.unknown_gaps) / gaps : 0;
}
inline own_check self_check_of(const load_conditions& under, const repeat_list& repeats) {
    const vector<double> late = pooled_lateness(under, repeats);
    own_check c{client_conduct(repeats, late), {}};
    c.unread_fraction = unread_fraction_of(c, repeats);
    if (client_was_saturated(under, c.cpu_utilization))
        c.why = cause_with<because::client_is_busy>({{"cpu", c.cpu_utilization}}, whose::client);
    else if (c.asked_rate > 0 && late.size() >= 50 &&
             std::fabs(c.achieved_rate / c.asked_rate - 1) > 0.02)
        c.why = cause_with<because::client_off_rate>(
            {{"sent", c.achieved_rate}, {"asked", c.asked_rate}}, whose::client);
    c.ok = !c.why;
    return c;
}

/// Why the client affects a verdict, and the repeat to measure again.
struct client_error {
    cause why{};
    std::size_t repeat = 0;  // its position in the measurements
};

/// Returns the repeat with the greatest `part_of(repeat)` over the limit `over`.
template <class PartOf, class Why>
std::optional<client_error> greatest_part(const variant_list& variants, double over,
                                          PartOf&& part_of, Why&& why) {
    std::optional<client_error> error;
    for (const auto* variant : variants)
        for (std::size_t i = 0; i < variant->size(); ++i) {
            const double part = part_of((*variant)[i]);
            if (!(part > over)) continue;
            over = part;
            error = {why((*variant)[i], part), i};
        }
    return error;
}
/// Late sends change the load.
inline std::optional<client_error> error_of_load(const variant_list& variants, double late_after) {
    return greatest_part(
        variants, most_late_fraction,
        [&](const repeat_data& d) { return late_fraction_of(d, late_after); },
        [&](const repeat_data&, double part) {
            return cause_with<because::sent_late>({{"late", part}, {"after", late_after}},
                                                  whose::client);
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
            return cause_with<because::read_together>(
                {{"events", static_cast<double>(d.unknown_gaps) / gaps}}, whose::client);
        });
}
/// Time that the client lost where the kernel has no stamps.
inline std::optional<client_error> error_of_lost_time(const variant_list& variants) {
    return greatest_part(
        variants, 0, [](const repeat_data& d) {
            return client_lost_much(d) ? 1e-9 + d.lost_fraction : 0;
        },
        [](const repeat_data& d, double) {
            return cause_with<because::client_lost>({{"lost", d.lost_fraction},
                                                     {"disturbed", d.disturbed_requests},
                                                     {"requests", d.records.size()}},
                                                    whose::client);
        });
}

/// Whether a client's delay can be part of a metric.
inline bool is_of_times(metric_id m) {
    return is_of_service(m) && !is_of_server(m) && !is_of_answers(m);
}

/// Why repeats are no baseline: a slow client would let later runs pass.
inline std::optional<client_error> error_of_baseline(const measurements& e,
                                                     const judging_parameters& t) {
    const variant_list variants{&e.candidate};
    std::optional<client_error> error = error_of_lost_time(variants);
    for (const slo& s : t.slos) {
        if (is_absolute(s) || !is_of_times(s.statistic.metric)) continue;
        if (error) return error;
        const auto late = error_of_load(variants, late_after_s(t));
        if (!late) continue;
        const repeat_data& d = e.candidate[late->repeat];
        const double as_is = column_in(e, s.statistic, d, timing_bound::measured)->value;
        const double moved = column_in(e, s.statistic, d, timing_bound::optimistic)->value;
        if (std::fabs(std::log(as_is / moved)) > prior_sd) return late;
    }
    return {};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
