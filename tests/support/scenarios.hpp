// Scenarios to be spoiled in one field, and what is said of them.
#pragma once

#include "llmbench.hpp"
#include "core/planning/planning.hpp"
#include "support/texts.hpp"

#include <limits>
#include <sstream>
#include <string>

namespace scenarios {

using namespace llmbench;
using namespace llmbench::detail;

/// A sound scenario, to be spoiled in one field.
inline scenario sound() {
    return {.workload = synthetic{}, .arrivals = poisson(8_rps), .requests = 300};
}
/// The sentence a scenario is refused with, "" where it is not.
inline std::string refusal(const scenario& s) {
    return texts::refusal_of([&] { planned(s, 1); });
}
template <class Spoil>
std::string refusal_after(Spoil&& spoil) {
    scenario s = sound();
    spoil(s);
    return refusal(s);
}
inline std::string refusal_of_slo(const slo& s) {
    return refusal_after([&](scenario& x) { x.slos = {s}; });
}
inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
inline vector<std::string> words(const std::string& prompt) {
    std::istringstream in(prompt);
    vector<std::string> out;
    for (std::string w; in >> w;) out.push_back(w);
    return out;
}
inline plan traffic(std::uint64_t seed = 1,
                    const synthetic& w = {.prompt_tokens = uniform(20, 60),
                                          .output_tokens = uniform(1, 200)}) {
    return planned({.workload = w, .arrivals = poisson(8_rps), .requests = 300}, seed);
}

}  // namespace scenarios
