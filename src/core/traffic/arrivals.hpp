// arrivals
#pragma once

#include "api/traffic.hpp"
#include "core/base/text.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/schedule.hpp"

#include <cmath>  // isfinite
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline const char* arrival_name(arrival_kind k) {
    return name_at({"constant", "poisson", "gamma", "ramp", "steps", "replay", "all_at_once",
                    "closed_loop"}, k);
}

inline bool is_counted_in_users(const arrival_data& a) {
    return a.kind == arrival_kind::closed_loop;
}

inline std::string arrival_text(const arrival_data& a) {
    if (!a.described.empty()) return str(a.described);
    std::string t = arrival_name(a.kind);
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
    return a.max_in_flight > 0 ? t + printed(", at most %lld in flight", a.max_in_flight) : t;
}

inline void check_arrivals(const arrival_data& a) {
    const auto rate_ok = [](double r) { return std::isfinite(r) && r > 0 && r <= 1e6; };
    const std::string given = "arrivals is " + arrival_text(a) + ": ";
    if (a.kind == arrival_kind::closed_loop) {
        if (!(a.users >= 1 && a.users <= 100000)) refuse({given, "users run from 1 to 100000"});
        if (!is_sound(a.think) || !(a.users_ramp_s >= 0 && a.users_ramp_s <= 86400))
            refuse({given, "think time and ramp cannot be negative, and last at most 86400 s"});
        return;
    }
    if (a.max_in_flight < 0)
        refuse({given, printed("max_in_flight is %lld, it must be at least 1", a.max_in_flight)});
    if (a.kind == arrival_kind::all_at_once) return;
    if (a.kind == arrival_kind::replay) {
        if (a.file.empty()) refuse({given, "it must name a file"});
        if (!(a.speed >= 1e-6 && a.speed <= 1e6))
            refuse({given, printed("speed is %.9g, it runs from 0.000001 to 1000000", a.speed)});
        if (a.unit_s != 0 && !(a.unit_s >= 1e-9 && a.unit_s <= 86400))
            refuse({given, "its unit runs from 1 ns to a day"});
        return;
    }
    if (a.kind == arrival_kind::steps) {
        if (a.stages.size() == 0) refuse({given, "it needs at least one stage"});
        for (const load_step& s : a.stages)
            if (!(rate_ok(s.rate.per_second) && s.lasts.seconds() > 0))
                refuse({given, "every stage needs a rate and a time above zero"});
        if (!(planned_length(a) <= 86400))
            refuse({given, "all stages together last at most 86400 s"});
        return;
    }
    if (!rate_ok(a.rate))
        refuse({given, "the rate must be above 0 and at most 1000000 requests/s"});
    if (a.kind == arrival_kind::gamma)
        if (!(std::isfinite(a.burstiness) && a.burstiness >= 0.01 && a.burstiness <= 1000))
            refuse({given, "burstiness runs from 0.01 to 1000"});
    if (a.kind == arrival_kind::ramp)
        if (!(rate_ok(a.rate_to) && a.over_s > 0))
            refuse({given, "both rates and the time must be above zero"});
}

/// Returns the squared coefficient of variation of the gaps, NaN if load grows or bursts by design.
inline double arrival_cv2_of(const arrival_data& a) {
    switch (a.kind) {
    case arrival_kind::constant: return 0;
    case arrival_kind::poisson: return 1;
    case arrival_kind::gamma: return 1 / a.burstiness;
    default: return not_a_number;
    }
}

inline bool saturates(arrival_kind k) {
    return k == arrival_kind::all_at_once || k == arrival_kind::closed_loop;
}
inline bool saturates(const arrival_data& a) { return saturates(a.kind); }

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
