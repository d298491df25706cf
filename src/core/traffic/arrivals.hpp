// arrivals and their send times
#pragma once

#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/base/random.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/lengths.hpp"

#include <algorithm>  // max, min, sort, upper_bound
#include <cmath>  // isfinite, llround, sqrt
#include <cstdint>  // uint64_t
#include <string>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Send times in seconds from the start. The first `warmup` ones come before the measured part,
/// which lasts from `measured_from` to, as planned, `measured_to`.
struct schedule {
    vector<double> at{};
    std::size_t warmup = 0;
    double measured_from = 0;
    double measured_to = 0;
};

/// Returns `n` gaps of mean 1.
inline vector<double> unit_gaps(const arrival_data& a, std::size_t n, generator& random) {
    vector<double> gaps(n, 1);
    if (a.kind == arrival_kind::gamma)
        for (double& g : gaps) g = random.gamma(a.burstiness) / a.burstiness;
    else if (a.kind != arrival_kind::constant)  // ramps and steps, too, are Poisson arrivals
        for (double& g : gaps) g = random.exponential();
    return gaps;
}

/// Appends `n` arrivals that fill [from, from + n / rate) exactly. The gaps are scaled to their
/// sum, so that the rate is the given one and not one draw of it.
inline void append_stationary(vector<double>& at, const arrival_data& a, std::size_t n,
                              double from, double rate, generator& random) {
    const vector<double> gaps = unit_gaps(a, n, random);
    double sum = 0;
    for (const double g : gaps) sum += g;
    const double scale = static_cast<double>(n) / rate / (sum > 0 ? sum : 1);
    double t = from;
    for (const double g : gaps) {
        at.push_back(t);
        t += g * scale;
    }
}

inline bool has_planned_change(const arrival_data& a) {
    return a.kind == arrival_kind::ramp || a.kind == arrival_kind::steps;
}
/// Returns the expected arrivals of a ramp or of stages up to `t` seconds.
inline double expected_arrivals(const arrival_data& a, double t) {
    if (a.kind == arrival_kind::ramp) {
        const double inside = std::min(t, a.over_s);
        const double slope = a.over_s > 0 ? (a.rate_to - a.rate) / a.over_s : 0;
        return a.rate * inside + 0.5 * slope * inside * inside +
               a.rate_to * std::max(0.0, t - a.over_s);
    }
    double sum = 0, left = t;
    for (const load_step& s : a.stages) {
        const double inside = std::min(left, s.lasts.seconds());
        sum += s.rate.per_second * inside;
        left -= inside;
    }
    return sum;
}
/// Returns its inverse, infinite beyond the last stage.
inline double time_of_arrivals(const arrival_data& a, double n) {
    if (a.kind == arrival_kind::ramp) {
        const double slope = a.over_s > 0 ? (a.rate_to - a.rate) / a.over_s : 0;
        const double inside = 0.5 * (a.rate + a.rate_to) * a.over_s;
        if (n > inside) return a.over_s + (n - inside) / a.rate_to;
        return 2 * n / (a.rate + std::sqrt(std::max(0.0, a.rate * a.rate + 2 * slope * n)));
    }
    double t = 0;
    for (const load_step& s : a.stages) {
        const double inside = s.rate.per_second * s.lasts.seconds();
        if (n <= inside) return t + n / s.rate.per_second;
        n -= inside;
        t += s.lasts.seconds();
    }
    return infinity;
}
inline double planned_length(const arrival_data& a) {
    if (a.kind == arrival_kind::ramp) return a.over_s;
    double sum = 0;
    for (const load_step& s : a.stages) sum += s.lasts.seconds();
    return sum;
}

/// Returns the seconds after which arrivals end by themselves, else 0. A replay plays `trace`.
inline double own_length(const arrival_data& a, const recorded_trace& trace) {
    if (a.kind == arrival_kind::steps) return planned_length(a);
    if (a.kind != arrival_kind::replay || trace.rows.empty()) return 0;
    return std::max(trace.rows.back().at_s / a.speed, 1e-3);
}
/// Whether the rows of a trace start at about the same time: they are sent as a batch.
inline bool is_batch(const arrival_data& a, const recorded_trace& trace) {
    return a.kind == arrival_kind::replay && own_length(a, trace) < batch_s;
}
/// Returns the arrivals expected in the first seconds of the measured part, exactly for a trace.
inline double arrivals_within(const arrival_data& a, const recorded_trace& trace, double seconds) {
    if (a.kind == arrival_kind::replay) {
        const auto after = std::upper_bound(
            trace.rows.begin(), trace.rows.end(), seconds * a.speed * (1 + 1e-12),
            [](double t, const trace_row& row) { return t < row.at_s; });
        return static_cast<double>(after - trace.rows.begin());
    }
    return has_planned_change(a) ? expected_arrivals(a, seconds) : a.rate * seconds;
}

/// Returns the requests/s at the start of the measured part, and in the warm-up.
inline double starting_rate(const arrival_data& a) {
    return a.kind == arrival_kind::steps && a.stages.size() ? a.stages[0].rate.per_second : a.rate;
}
/// Returns how many sends of an open loop warm up: the given number, or as many as fit the time.
inline std::size_t warmup_sends(const arrival_data& a, std::size_t asked, double warmup_s) {
    if (warmup_s <= 0) return asked;
    return static_cast<std::size_t>(std::llround(warmup_s * starting_rate(a)));
}
/// The warm-up of an open loop that does not send all at once.
inline schedule warmup_schedule(const arrival_data& a, std::size_t asked, double warmup_s,
                                std::uint64_t seed) {
    schedule s;
    generator random(seed, 1);
    s.warmup = warmup_sends(a, asked, warmup_s);
    append_stationary(s.at, a, s.warmup, 0, starting_rate(a), random);
    s.measured_from = static_cast<double>(s.warmup) / starting_rate(a);
    return s;
}

/// Returns the send times of a replay, up to `requests` (0: no limit) or `duration_s` (0: none) of
/// the measured part or to the end of the trace, whichever comes first.
inline schedule replay_schedule(const arrival_data& a, const recorded_trace& trace,
                                std::size_t warmup_requests, double warmup_s, std::size_t requests,
                                double duration_s, std::uint64_t seed) {
    schedule s = warmup_schedule(a, warmup_requests, warmup_s, seed);
    const double length = duration_s > 0 ? duration_s : infinity;
    double last = 0;
    for (const trace_row& row : trace.rows) {
        const double t = row.at_s / a.speed;
        if (t > length * (1 + 1e-12) || (requests > 0 && s.at.size() == s.warmup + requests)) break;
        s.at.push_back(s.measured_from + t);
        last = t;
    }
    s.measured_to = s.measured_from + last;
    return s;
}

/// Returns the send times of an open loop, up to `requests` (0: no limit) or `duration_s` (0: none)
/// of the measured part, whichever comes first. The warm-up has the rate at its start.
inline schedule open_loop_schedule(const arrival_data& a, long long warmup_requests,
                                   double warmup_s, long long requests, double duration_s,
                                   std::uint64_t seed) {
    const auto warmup = static_cast<std::size_t>(warmup_requests);
    if (a.kind == arrival_kind::all_at_once)
        return {.at = vector<double>(warmup + static_cast<std::size_t>(requests), 0.0),
                .warmup = warmup};
    schedule s = warmup_schedule(a, warmup, warmup_s, seed);
    generator random(seed, 2);
    const bool stationary = a.kind == arrival_kind::constant || a.kind == arrival_kind::poisson ||
                            a.kind == arrival_kind::gamma;
    if (stationary) {
        auto n = requests > 0 ? requests : std::llround(duration_s * a.rate);
        if (duration_s > 0)
            n = std::min(n, static_cast<long long>(std::llround(duration_s * a.rate)));
        append_stationary(s.at, a, static_cast<std::size_t>(n), s.measured_from, a.rate, random);
        s.measured_to = s.measured_from + static_cast<double>(n) / a.rate;
        return s;
    }
    // A Poisson process of varying rate is one of rate 1 on the scale of expected arrivals.
    const double length = duration_s > 0                  ? duration_s
                          : a.kind == arrival_kind::steps ? planned_length(a)
                                                          : infinity;
    double expected = 0, t = 0;
    for (long long i = 0; requests == 0 || i < requests; ++i) {
        expected += random.exponential();
        t = std::min(length, time_of_arrivals(a, expected));
        if (t >= length * (1 - 1e-12)) break;
        s.at.push_back(s.measured_from + t);
    }
    s.measured_to = s.measured_from + (std::isfinite(length) && requests == 0 ? length : t);
    return s;
}

inline const char* to_string(arrival_kind k) {
    return name_at({"constant", "poisson", "gamma", "ramp", "steps", "replay", "all_at_once",
                    "closed_loop"}, k);
}

inline bool is_counted_in_users(const arrival_data& a) {
    return a.kind == arrival_kind::closed_loop;
}

inline std::string arrival_text(const arrival_data& a) {
    if (!a.described.empty()) return str(a.described);
    std::string t = to_string(a.kind);
    const char* most = a.is_searched ? "up to " : "";
    switch (a.kind) {
        case arrival_kind::constant:
        case arrival_kind::poisson: t += printed("(%s%.9g req/s)", most, a.rate); break;
        case arrival_kind::gamma:
            t += printed("(%s%.9g req/s, burstiness %.9g)", most, a.rate, a.burstiness);
            break;
        case arrival_kind::ramp:
            t += printed("(%.9g to %.9g req/s over %.9g s)", a.rate, a.rate_to, a.over_s);
            break;
        case arrival_kind::steps:
            t += "(";
            for (std::size_t i = 0; i < a.stages.size(); ++i)
                t += printed("%s%.9g req/s for %.9g s", i ? ", " : "", a.stages[i].rate.per_second,
                             a.stages[i].lasts.seconds());
            t += ")";
            break;
        case arrival_kind::replay:
            t += "(" + file_name(str(a.file)) +
                 (a.unit_s > 0 ? ", unit " + time_text(a.unit_s) : "") +
                 (a.speed != 1 ? printed(", speed %.9g", a.speed) : "") + ")";
            break;
        case arrival_kind::closed_loop:
            t += printed("(%s%lld users", most, a.users) +
                 (a.think.a + a.think.b > 0 ? ", think " + distribution_text(a.think) : "") +
                 (a.users_ramp_s > 0 ? printed(", ramp %.9g s", a.users_ramp_s) : "") + ")";
            break;
        default: break;
    }
    if (!a.held.empty())
        t += ", held from POST " + printable(str(a.held[0].path), 80) + " to POST " +
             printable(str(a.held[1].path), 80);
    return a.max_in_flight > 0 ? t + printed(", at most %lld in flight", a.max_in_flight) : t;
}

inline void check_arrivals(const arrival_data& a) {
    const auto rate_ok = [](double r) { return std::isfinite(r) && r > 0 && r <= 1e6; };
    const std::string given = "arrivals is " + arrival_text(a) + ": ";
    if (a.kind == arrival_kind::closed_loop) {
        check_numbers({{"users", static_cast<double>(a.users), 1, 100000},
                       {"ramp", a.users_ramp_s, 0, 86400, " s"}}, given);
        if (!is_sound(a.think))
            refuse({given, "think time cannot be negative, and lasts at most 86400 s"});
        return;
    }
    check_numbers({{"max_in_flight", static_cast<double>(a.max_in_flight), 0, infinity, "",
                    "must be at least 1"}}, given);
    if (a.kind == arrival_kind::all_at_once) return;
    if (a.kind == arrival_kind::replay) {
        if (a.file.empty()) refuse({given, "it must name a file"});
        check_numbers({{"speed", a.speed, 1e-6, 1e6, "", "runs from 0.000001 to 1000000"}}, given);
        if (a.unit_s != 0 && !(a.unit_s >= 1e-9 && a.unit_s <= 86400))
            refuse({given, "its unit runs from 1 ns to a day"});
        return;
    }
    if (a.kind == arrival_kind::steps) {
        if (a.stages.size() == 0) refuse({given, "it needs at least one stage"});
        for (const load_step& s : a.stages)
            if (!(rate_ok(s.rate.per_second) && s.lasts.seconds() > 0))
                refuse({given, "every stage needs a rate and a time above zero"});
        check_numbers({{"their length", planned_length(a), 0, 86400, " s"}}, given);
        return;
    }
    if (!rate_ok(a.rate))
        refuse({given, "the rate must be above 0 and at most 1000000 requests/s"});
    if (a.kind == arrival_kind::gamma)
        check_numbers({{"burstiness", a.burstiness, 0.01, 1000}}, given);
    if (a.kind == arrival_kind::ramp)
        if (!(rate_ok(a.rate_to) && a.over_s > 0))
            refuse({given, "both rates and the time must be above zero"});
}

/// Returns the squared coefficient of variation of the gaps: infinite if the load grows or bursts
/// by design, NaN if it has no rate.
inline double arrival_cv2_of(const arrival_data& a) {
    switch (a.kind) {
    case arrival_kind::constant: return 0;
    case arrival_kind::poisson: return 1;
    case arrival_kind::gamma: return 1 / a.burstiness;
    case arrival_kind::closed_loop:
    case arrival_kind::all_at_once: return not_a_number;
    default: return infinity;
    }
}

inline bool saturates(const arrival_data& a) {
    return a.kind == arrival_kind::all_at_once || a.kind == arrival_kind::closed_loop;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
