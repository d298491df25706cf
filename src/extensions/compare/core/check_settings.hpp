// checks of a scenario for several settings
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/traffic/arrivals.hpp"
#include "extensions/compare/api.hpp"
#include "extensions/compare/core/setting_ratios.hpp"

#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

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
        if (x.factor != 0)
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
}  // inline namespace v0
}  // namespace llmbench
