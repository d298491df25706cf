// validity checks of the load
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"

#include <algorithm>  // clamp, max, min, nth_element, sort, upper_bound
#include <cmath>  // isnan, pow, sqrt
#include <cstddef>  // ptrdiff_t, size_t
#include <map>
#include <optional>
#include <utility>  // move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Slope of the means of ten batches, and its t value (8 degrees of freedom).
struct trend {
    double per_batch = 0, t = 0;
};
inline trend trend_of(const vector<double>& values) {
    constexpr std::size_t batches = 10;
    vector<double> means;
    for (std::size_t b = 0; b < batches; ++b)
        means.push_back(mean_of({values.begin() + static_cast<long>(b * values.size() / batches),
                                 values.begin() +
                                     static_cast<long>((b + 1) * values.size() / batches)}));
    const double center = mean_of(means), middle = (batches - 1) / 2.0;
    double xy = 0, xx = 0, residual = 0;
    for (std::size_t b = 0; b < batches; ++b) {
        xy += (static_cast<double>(b) - middle) * (means[b] - center);
        xx += (static_cast<double>(b) - middle) * (static_cast<double>(b) - middle);
    }
    trend r;
    r.per_batch = xy / xx;
    for (std::size_t b = 0; b < batches; ++b) {
        const double fitted = center + r.per_batch * (static_cast<double>(b) - middle);
        residual += (means[b] - fitted) * (means[b] - fitted);
    }
    const double error = std::sqrt(residual / (batches - 2) / xx);
    r.t = error > 0 ? r.per_batch / error : r.per_batch > 0 ? infinity : 0;
    return r;
}

/// A request's tokens; an answer without a count is one piece of work.
inline double work_of(const record& r) {
    return std::max(1.0, static_cast<double>(r.output_tokens));
}
/// A request, or a session of several steps.
struct load_unit {
    long long scheduled_ns = 0, end_ns = 0;
    double waited_ns = 0;  // for first tokens of its steps, beyond the usual wait
    double tokens = 0;
    bool is_measured = true, all_ok = true;
};
/// Whether a load consists of sessions. The probes of a search have few sessions, so that its
/// requests count.
inline bool starts_sessions(const repeat_data& d) {
    return d.load == 0 && any_of(d.records, [](const record& r) {
        return r.conversation >= 0 && (r.turn > 0 || r.depth > 0);
    });
}
/// The 90th percentile of the wait for first tokens among the first tenth of the requests.
inline double usual_wait_ns(const repeat_data& d) {
    vector<std::pair<long long, double>> waits;
    for (const record& r : d.records)
        if (r.status == request_status::ok)
            waits.emplace_back(r.scheduled_ns,
                               static_cast<double>(r.first_token_ns - r.scheduled_ns));
    std::sort(waits.begin(), waits.end());
    vector<double> early;
    for (std::size_t i = 0; i < (waits.size() + 9) / 10; ++i) early.push_back(waits[i].second);
    std::sort(early.begin(), early.end());
    return early.empty() ? 0 : nearest_rank(early, 0.9);
}
inline vector<load_unit> started_in(const repeat_data& d) {
    const bool sessions = starts_sessions(d);
    vector<load_unit> units;
    const double usual_ns = sessions ? usual_wait_ns(d) : infinity;
    std::map<long long, std::size_t> of_session;
    for (const record& r : d.records) {
        std::size_t at = units.size();
        if (sessions && r.conversation >= 0)
            at = of_session.emplace(r.conversation, at).first->second;
        if (at == units.size()) units.push_back({r.scheduled_ns, r.end_ns});
        load_unit& u = units[at];
        u.scheduled_ns = std::min(u.scheduled_ns, r.scheduled_ns);
        u.end_ns = std::max(u.end_ns, r.end_ns);
        u.tokens += work_of(r);
        if (r.status == request_status::ok)
            u.waited_ns += std::max(
                0.0, static_cast<double>(r.first_token_ns - r.scheduled_ns) - usual_ns);
        u.is_measured = u.is_measured && is_measured(r);
        u.all_ok = u.all_ok && r.status == request_status::ok;
    }
    sort_by(units, [](const load_unit& u) { return u.scheduled_ns; });
    return units;
}

/// The typical time of an answer, 0 without answers.
inline double usual_answer_s(const repeat_data& d) {
    vector<double> took;
    for (const record& r : d.records)
        if (is_measured(r) && !has_failed(r))
            took.push_back(static_cast<double>(r.end_ns - r.scheduled_ns) * 1e-9);
    if (took.empty()) return 0;
    const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
    std::nth_element(took.begin(), middle, took.end());
    return *middle;
}
/// A load that lasts for less than four answers is mostly its own start: too few of its requests
/// meet the others that its rate adds up to.
inline double least_load_s(double answer_s) { return 4 * answer_s; }
inline bool is_too_short(double load_s, double needed_s) { return needed_s > 1.25 * load_s; }
/// Why a load with a rate ended too early to show whether the server keeps up with it. It lasts as
/// long as requests or sessions start, warm-up included. A search makes its probes long enough.
inline cause too_short_repeat(const repeat_data& d) {
    if (d.load != 0) return {};
    long long first = 0, last = 0;
    double starts = 0, sessions = 0;
    for (const record& r : d.records) {
        sessions += r.turn > 0 || r.depth > 0;
        if (r.turn > 0 || r.depth > 0) continue;
        first = starts++ == 0 ? r.scheduled_ns : std::min(first, r.scheduled_ns);
        last = std::max(last, r.scheduled_ns);
    }
    if (starts < 2) return {};
    const double load_s = static_cast<double>(last - first) * 1e-9 * starts / (starts - 1);
    const double answer_s = usual_answer_s(d), needed_s = least_load_s(answer_s);
    if (!is_too_short(load_s, needed_s)) return {};
    return cause_with<because::probe_too_short>(
        {{"answer", answer_s},
         {"load", load_s},
         {"needed", needed_s},
         {"starts", rounded_up(starts * needed_s / load_s)},
         {"of_sessions", sessions}},
        whose::plan);
}

/// What a load is counted in. Sessions differ more than requests do.
struct unit_kind {
    bool are_sessions = false;
    std::size_t most_early = 50;  // of the first ones, which say how long one takes
    double typical = 0.5;         // the quantile of these after which the load has filled up
    double fewest = 40;           // that show anything
};
inline unit_kind kind_of_units(const repeat_data& d) {
    return starts_sessions(d) ? unit_kind{true, ~std::size_t{0}, 0.9, 100} : unit_kind{};
}
/// When a load has filled up, which every load does first. Nothing: none of its first units ended
/// well. Of a load far over the capacity a quarter waits for longer than the load lasts.
inline std::optional<long long> filled_ns(const vector<load_unit>& units, const unit_kind& kind) {
    vector<double> early;
    for (std::size_t i = 0; i < std::min(units.size() / 4, kind.most_early); ++i) {
        const load_unit& u = units[i];
        if (u.all_ok)
            early.push_back(static_cast<double>(u.end_ns - u.scheduled_ns) - u.waited_ns);
    }
    if (early.empty()) return {};
    std::sort(early.begin(), early.end());
    return units[0].scheduled_ns + static_cast<long long>(nearest_rank(early, kind.typical));
}
/// The ttft of the requests planned from one time to another, in their order.
inline vector<double> ttft_between(const repeat_data& d, long long from_ns, long long to_ns) {
    vector<std::pair<long long, double>> first_tokens;
    for (const record& r : d.records)
        if (is_pooled(r) && r.scheduled_ns >= from_ns && r.scheduled_ns <= to_ns)
            first_tokens.emplace_back(
                r.scheduled_ns, static_cast<double>(r.first_token_ns - r.scheduled_ns) * 1e-9);
    std::sort(first_tokens.begin(), first_tokens.end());
    vector<double> ttft_s;
    for (const auto& [at, seconds] : first_tokens) ttft_s.push_back(seconds);
    return ttft_s;
}

/// By which fraction a load asks for more than the server delivers in its fastest third of a time,
/// in tokens: an answer's come evenly from its first to its last one. A server that keeps up with
/// its load delivers as much as is asked for, and more after a burst.
inline double excess_of(const repeat_data& d, double asked, long long from_ns, long long to_ns) {
    constexpr std::size_t parts = 24, third = parts / 3;
    vector<double> delivered(parts + 1, 0.0);
    for (const record& r : d.records) {
        if (r.status != request_status::ok) continue;
        const double first = static_cast<double>(r.first_token_ns - from_ns);
        const double lasts = std::max(1.0, static_cast<double>(r.last_token_ns - r.first_token_ns));
        for (std::size_t i = 0; i <= parts; ++i) {
            const double until = static_cast<double>(to_ns - from_ns) * as_number(i) / parts;
            delivered[i] += work_of(r) * std::clamp((until - first) / lasts, 0.0, 1.0);
        }
    }
    double most = 0;
    for (std::size_t i = third; i <= parts; ++i)
        most = std::max(most, delivered[i] - delivered[i - third]);
    return most > 0 ? asked * third / parts / most - 1 : infinity;
}

/// Of the tokens of units: their variance over their squared mean.
inline double squared_variation_of(const vector<const load_unit*>& units) {
    vector<double> tokens;
    for (const load_unit* u : units) tokens.push_back(u->tokens);
    return sample_variance(tokens) / std::pow(std::max(1.0, mean_of(tokens)), 2);
}
/// The tokens that a load asks for in a time. What a server owes after it is asked for in no third
/// of it.
inline double asked_within(const vector<const load_unit*>& asking, long long ns) {
    const double due_ns = static_cast<double>(ns) * 2 / 3;
    double asked = 0;
    for (const load_unit* u : asking) {
        const double lasts_ns = static_cast<double>(u->end_ns - u->scheduled_ns) - u->waited_ns;
        asked += u->tokens * std::min(1.0, due_ns / std::max(1.0, lasts_ns));
    }
    return asked;
}

/// How the load exceeded the server in one repeat, nothing where that is not shown. Requests or
/// sessions in flight must grow by 8 % of the arrivals, and ttft with them (level 0.5 % each). They
/// must also grow by more than the random walk of this traffic at exactly the server's capacity
/// (level 0.1 %), or the load must ask for so much more than the server delivers at its fastest
/// (5 %): a lucky trace lets a queue grow for a while, but asks for no more. The time of the first
/// answers is left out. Sessions are held to it without the growth of waits for first tokens, which
/// is the server's.
inline cause over_saturated_repeat(const repeat_data& d, double arrival_cv2) {
    const unit_kind kind = kind_of_units(d);
    const vector<load_unit> units = started_in(d);
    const std::optional<long long> filled = filled_ns(units, kind);
    if (!filled) return {};
    vector<long long> ends;
    for (const load_unit& u : units) ends.push_back(u.end_ns);
    std::sort(ends.begin(), ends.end());
    vector<double> in_flight;
    vector<const load_unit*> asking;
    long long from_ns = 0;
    for (std::size_t k = 0; k < units.size(); ++k) {
        const load_unit& u = units[k];
        if (!u.is_measured || u.scheduled_ns < *filled) continue;
        if (in_flight.empty()) from_ns = u.scheduled_ns;
        const auto ended = std::upper_bound(ends.begin(), ends.end(), u.scheduled_ns);
        in_flight.push_back(static_cast<double>(k + 1) -
                            static_cast<double>(ended - ends.begin()));
        if (u.all_ok) asking.push_back(&u);
    }
    const long long to_ns = units.back().scheduled_ns;
    const vector<double> ttft_s = ttft_between(d, *filled, to_ns);
    const double n = static_cast<double>(in_flight.size());
    if (n < kind.fewest || ttft_s.size() < 20 || asking.size() < 20) return {};
    const double work_cv2 = squared_variation_of(asking);
    // The slope over a random walk has a variance of 6/5 n, over planned arrivals and ends 1/5 n.
    const double wandering = std::sqrt(n * (0.2 * arrival_cv2 + 1.2 * work_cv2));
    const trend grown = trend_of(in_flight), slower = trend_of(ttft_s);
    const double growth = 10 * grown.per_batch;
    const double t_limit = 3.355;  // Student t, 8 degrees of freedom, 0.5 %
    if (growth <= 0.08 * n || grown.t < t_limit || slower.t < t_limit) return {};
    const double more = n * excess_of(d, asked_within(asking, to_ns - from_ns), from_ns, to_ns);
    if (growth <= 3.09 * wandering && more <= 1.645 * wandering) return {};
    return cause_with<because::over_saturated>({{"is_baseline", false},
                                                {"grown", growth},
                                                {"sent", n},
                                                {"slower", 10 * slower.per_batch},
                                                {"of_sessions", kind.are_sessions}});
}

/// Why the load exceeds the server, or is too short to show that it does not; nothing unless most
/// repeats of a variant show it. NaN: the load has no rate.
inline cause over_saturation_of(const measurements& e, const variant_list& variants,
                                double arrival_cv2) {
    if (std::isnan(arrival_cv2)) return {};
    const auto in_most = [](const repeat_list& variant, auto&& shown_in) {
        std::size_t shown = 0;
        cause example;
        for (const repeat_data& d : variant) {
            if (cause why = shown_in(d)) {
                ++shown;
                example = std::move(why);
            }
        }
        return 2 * shown > variant.size() ? example : cause{};
    };
    for (const auto* variant : variants) {
        cause over = in_most(*variant, [&](const repeat_data& d) {
            return *known_in(e, d, "over-saturated",
                             [&] { return over_saturated_repeat(d, arrival_cv2); });
        });
        if (over) over.set("is_baseline", variant == &e.baseline);
        else over = in_most(*variant, [&](const repeat_data& d) {
            return *known_in(e, d, "too-short", [&] { return too_short_repeat(d); });
        });
        if (over.of == whose::plan && variant == &e.baseline) over.of = whose::baseline;
        if (over) return over;
    }
    return {};
}

/// Whether a longer load at the same rate can only make a value worse.
inline bool only_worsens(metric_id m) {
    const metric_facts& f = facts_of(m);
    return is_of_requests(m) || is_of_sessions(m) || m == metric_id::goodput ||
           (is_of_server(m) && f.side == bound_side::at_most && !f.needs_event_times);
}
/// A verdict under such a load: a miss stays unless a longer load could be better.
inline decision with_the_load(decision v, const measurements& e, const cause& over) {
    const bool is_short = over.what == because::probe_too_short;
    const bool stays = !is_short || (only_worsens(v.objective.statistic.metric) &&
                                     (is_absolute(v.objective) ||
                                      !over_saturation_of(e, {&e.baseline}, e.arrival_cv2)));
    const bool fails = v.outcome == verdict::fail && stays;
    v = decided(std::move(v), fails ? verdict::fail : verdict::invalid, over);
    if (is_short)
        v.advice = cause_with<because::longer_load>({{"seconds", over["needed"]},
                                                     {"starts", over["starts"]},
                                                     {"of_sessions", over["of_sessions"]}});
    return v;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
