// checks of scenarios for a curve and for several settings
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "core/base/text.hpp"
#include "core/traffic/arrivals.hpp"
#include "extensions/compare/api.hpp"
#include "extensions/compare/core/settings.hpp"

#include <cmath>  // floor
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
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

inline void check_names(const list<setting>& settings) {
    if (!(settings.size() >= fewest_settings && settings.size() <= max_settings))
        refuse({printed("compare() has %zu setting%s: it takes %zu to %zu", settings.size(),
                        settings.size() == 1 ? "" : "s", fewest_settings, max_settings)});
    for (std::size_t i = 0; i < settings.size(); ++i) {
        const std::string name = str(settings[i].name);
        if (trimmed(name).empty())
            refuse({printed("setting %zu has no name: reports tell it by one, as in {\"budget "
                            "512\", process{...}}", i + 1)});
        if (columns_of(name) > 60)
            refuse({"setting \"", printable(name, 80), "\" has a name of over 60 characters"});
        for (std::size_t k = 0; k < i; ++k)
            if (name == str(settings[k].name))
                refuse({printed("settings %zu and %zu are both named \"", k + 1, i + 1),
                        printable(name), "\": give each a name of its own"});
    }
}

/// Throws std::invalid_argument with a sentence for the first fault.
inline void check_comparison(const scenario& s, const list<setting>& settings) {
    check_names(settings);
    const auto is_switched = [](const setting& x) { return x.target.is_switched(); };
    if (any_of(settings, is_switched) && !all_of(settings, is_switched))
        refuse({"some settings are switched(...) and others are not, which would be awake beside "
                "them: switch all, or none"});
    if (!s.target.what().empty())
        refuse({"target is given: compare() takes one with each setting, and none beside them"});
    if (s.baseline.is_live() || s.baseline.is_stored() || s.baseline.is_of_extension())
        refuse({"baseline is given: compare() holds its settings against each other, a gate is "
                "held against a baseline"});
    const arrival_data& a = s.arrivals.data();
    if (a.is_searched)
        refuse({"arrivals is ", arrival_text(a),
                ": compare() measures one load, find_capacity() searches one"});
    for (const slo& x : s.slos)
        if (!is_absolute(x))
            refuse({"the SLO ", str(x.text()),
                    " is refused: compare() has no baseline, and shows the ratios of its settings "
                    "by itself"});
    const long long rounds = s.repeats;
    if (rounds != 0 && !(rounds >= fewest_rounds && rounds <= max_rounds))
        refuse({printed("repeats is %lld: compare() takes %d to %d rounds, or is 0 for %d", rounds,
                        fewest_rounds, max_rounds, usual_rounds)});
}

/// The scenario of each setting: one repeat a round.
inline scenario scenario_of_a_setting(scenario s) {
    if (s.repeats == 0) s.repeats = usual_rounds;
    return s;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
