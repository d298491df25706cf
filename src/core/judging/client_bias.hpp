// verdicts that the client may have decided
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/metric/table.hpp"
#include "core/measured/client_stalls.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/client.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/numbers.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/terms.hpp"
#include "core/judging/values.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isfinite, isnan, log
#include <optional>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Between the pessimistic and the optimistic bound of a statistic of one repeat or pair.
struct value_range {
    double low = not_a_number, high = not_a_number;
    /// The ratio's logarithm, of fractions the difference: how much of it the client may have made.
    double width(metric_id m) const {
        if (!(low < high)) return 0;
        if (is_request_fraction(m)) return high - low;
        return low > 0 && std::isfinite(high) ? std::log(high / low) : infinity;
    }
};

/// The repeat, or the pair, that the client has the most part in.
struct client_part {
    std::size_t repeat = 0;
    value_range values{};
    double width = 0;
};
inline client_part greatest_part(const evidence& e, terms t, const slo& s) {
    t.read = timing_bound::pessimistic;
    const comparison worst = comparison_of(e, t, s);
    t.read = timing_bound::optimistic;
    const comparison best = comparison_of(e, t, s);
    client_part most;
    const std::size_t n =
        best.paired ? std::min(e.candidate.size(), e.baseline.size()) : e.candidate.size();
    for (std::size_t i = 0; i < n; ++i) {
        const double a = best.of_repeat(i), b = worst.of_repeat(i);
        // What no time may be left of has no value, and may be anything.
        const value_range r = std::isnan(a) || std::isnan(b)
                                  ? value_range{0, infinity}
                                  : value_range{std::min(a, b), std::max(a, b)};
        if (const double width = r.width(s.what.metric); width > most.width) most = {i, r, width};
    }
    return most;
}

/// Why a verdict would be the client's and not the server's, and the repeat to measure again.
struct client_bias {
    cause why{};
    std::size_t repeat = 0;  // its place in the evidence
};

/// A load that was sent at other times than planned is another load: what counts from the planned
/// times cannot be missed by it. It can be met: later sends bring no answer forward.
inline std::optional<client_bias> bias_of_load(const evidence& e, const verdict_numbers& v) {
    if (v.outcome == verdict::pass) return {};
    if (!concerns(v.what.what, &metric_facts::is_hurt_by_lateness)) return {};
    double most = most_late_fraction;
    std::optional<client_bias> bias;
    for (const auto* arm : arms_of(e, v.what))
        for (std::size_t i = 0; i < arm->size(); ++i) {
            const double fraction = late_fraction_of((*arm)[i]);
            if (fraction <= most) continue;
            most = fraction;
            bias = {{because::sent_late, {fraction, missed_after_s((*arm)[i])}, whose::client}, i};
        }
    return bias;
}

/// Whether a verdict would be another one, had the client not been late. A pass that holds with its
/// delays counted against the server stands, and a miss that remains without them. What is
/// undecided is so by the client's doing where it may have moved a repeat by more than repeats of a
/// quiet machine differ anyway, unless it is so as the run was cut short.
inline bool may_be_the_clients(const evidence& e, const terms& t, const decision& v) {
    const auto read_as = [&](timing_bound how) {
        terms other = t;
        other.read = how;
        return decide_evidence(e, other, v.what);
    };
    const auto as_read = [&](timing_bound how) { return read_as(how).outcome; };
    // A third repeat decides, whatever the client had to do with the first two.
    if (waits_for_a_third(v) && waits_for_a_third(read_as(timing_bound::optimistic))) return false;
    switch (v.outcome) {
    case verdict::pass: return as_read(timing_bound::pessimistic) != verdict::pass;
    case verdict::fail: return as_read(timing_bound::optimistic) != verdict::fail;
    case verdict::inconclusive:
        return (!is_request_fraction(v.what.what.metric) && e.stopped.empty() &&
                greatest_part(e, t, v.what).width > prior_sd) ||
               as_read(timing_bound::optimistic) == verdict::pass ||
               as_read(timing_bound::pessimistic) == verdict::fail;
    default: return false;
    }
}

/// How the client may have moved a statistic, in its worst repeat: how often and for how long at
/// most it did not run, between which values the statistic may lie, and what it is held against.
inline client_bias bias_in_values(const evidence& e, const terms& t, const slo& s) {
    const client_part part = greatest_part(e, t, s);
    std::size_t times = 0;
    double longest = 0;
    for (const auto* arm : arms_of(e, s)) {
        if (part.repeat >= arm->size()) continue;
        const client_stalls& stalls = (*arm)[part.repeat].stalls;
        times += stall_count(stalls);
        longest = std::max(longest, longest_stall_s(stalls));
    }
    const auto metric = static_cast<double>(s.what.metric);
    return {{because::client_part,
             {as_number(times), longest, part.values.low, part.values.high, metric, s.factor,
              s.bound},
             whose::client, str(s.what.name)},
            part.repeat};
}

/// Why this verdict is the client's, if it is.
inline std::optional<client_bias> bias_of(const evidence& e, const terms& t,
                                          const decision& v) {
    const slo& s = v.what;
    const bool is_none = v.outcome == verdict::invalid || v.outcome == verdict::skipped;
    if (is_none || !is_of_service(s.what.metric)) return {};
    if (const auto bias = bias_of_load(e, v)) return bias;
    bool had_part = false;
    for (const auto* arm : arms_of(e, s))
        for (const repeat_data& d : *arm) had_part = had_part || client_had_part(d);
    if (!had_part || !may_be_the_clients(e, t, v)) return {};
    return bias_in_values(e, t, s);
}

/// Why repeats are no baseline for later runs: slowness that is the client's would make these pass.
inline std::optional<client_bias> bias_of_baseline(const evidence& e, const terms& t) {
    for (slo s : t.slos) {
        if (s.factor == 0) continue;
        s.factor = 0;  // the values themselves
        if (greatest_part(e, t, s).width <= prior_sd) continue;
        s.bound = not_a_number;  // and no limit
        return bias_in_values(e, t, s);
    }
    return {};
}

/// A verdict that the client may have decided is none. `found`: where to put the first such bias.
inline decision settled(const evidence& e, const terms& t, decision v,
                        std::optional<client_bias>* found = nullptr) {
    const std::optional<client_bias> bias = bias_of(e, t, v);
    if (!bias) return v;
    if (found && !*found && !v.what.is_advisory) *found = bias;
    return decided(std::move(v), verdict::invalid, bias->why);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
