// checks of a scenario for a curve, and the load at each point
#pragma once

#include "api/scenario.hpp"
#include "api/traffic.hpp"
#include "core/base/text.hpp"
#include "core/traffic/arrivals.hpp"
#include "extensions/compare/api.hpp"

#include <cmath>  // floor
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr std::size_t fewest_loads = 2, max_loads = 16;

/// Throws std::invalid_argument with a sentence for the first fault.
inline void check_curve(const scenario& s, const list<offered_load>& loads) {
    if (!(loads.size() >= fewest_loads && loads.size() <= max_loads))
        refuse({"curve() has ", plural(loads.size(), "load"),
                printed(": it takes %zu to %zu", fewest_loads, max_loads)});
    for (std::size_t i = 0; i < loads.size(); ++i) {
        const double load = loads[i].value;
        if (!(load > 0 && load <= 1e6))
            refuse({printed("curve() has a load of %.9g: it must be above 0 and at most 1000000",
                            load)});
        if (loads[i].in_users != loads[0].in_users)
            refuse({"curve() has rates and numbers of users: all its loads are one or the other"});
        if (i > 0 && !(load > loads[i - 1].value))
            refuse({printed("curve() has a load of %.9g after one of %.9g: they rise", load,
                            loads[i - 1].value)});
        if (loads[i].in_users && load != std::floor(load))
            refuse({printed("curve() has a load of %.9g users: users are whole", load)});
    }
    const arrival_data& a = s.arrivals.data();
    const std::string given = "arrivals is " + arrival_text(a) + ": ";
    if (a.is_searched)
        refuse({given,
                "curve() measures the loads that it is given, find_capacity() searches one"});
    const bool in_users = is_counted_in_users(a);
    const bool is_default = a.users == 1 && a.users_ramp_s == 0 && a.think.a + a.think.b == 0;
    if (loads[0].in_users ? !in_users : in_users && !is_default)
        refuse({given, loads[0].in_users ? "its loads are rates, as in {8_rps, 16_rps}"
                                         : "its loads are numbers of users, as in {8_users, "
                                           "16_users}"});
    if (a.kind == arrival_kind::ramp || a.kind == arrival_kind::steps ||
        a.kind == arrival_kind::replay || a.kind == arrival_kind::all_at_once)
        refuse({given, "a curve is of one steady load after the other: poisson, constant, gamma or "
                       "closed_loop"});
    if (s.baseline.is_stored() || s.baseline.is_of_extension())
        refuse({"baseline is given: curve() holds each load against a second server, and not "
                "against an earlier run, which had one load"});
}

/// The arrivals of a scenario at a load, which replaces the scenario's own.
inline arrival_pattern arrivals_at(arrival_data a, const offered_load& load) {
    if (load.in_users)
        return closed_loop(static_cast<long long>(load.value))
            .think(a.think)
            .ramp(time_span::from_seconds(a.users_ramp_s));
    if (is_counted_in_users(a)) a.kind = arrival_kind::poisson;
    a.rate = load.value;
    return open_loop(a);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
