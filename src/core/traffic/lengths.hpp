// lengths
#pragma once

#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // clamp
#include <cmath>  // exp, round, isfinite
#include <cstdint>  // uint64_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Draws whole tokens, at least `least`. `values` are those of an empirical file.
inline int drawn_length(const length_distribution& d, generator& random, int least,
                        const vector<double>& values = {}) {
    using shape = length_distribution::shape;
    double x = d.a;
    if (d.kind == shape::uniform)
        x = d.a + static_cast<double>(random.below(static_cast<std::uint64_t>(d.b - d.a) + 1));
    if (d.kind == shape::normal) x = d.a + d.b * random.normal();
    if (d.kind == shape::lognormal) x = d.a * std::exp(d.b * random.normal());
    if (d.kind == shape::empirical) x = values.empty() ? 1 : values[random.below(values.size())];
    return static_cast<int>(std::clamp(std::round(x), static_cast<double>(least), 1e7));
}

inline bool is_fixed_to_one(const length_distribution& d) {
    return d.kind == length_distribution::shape::fixed && d.a <= 1;
}

/// Draws seconds, the same for a seed and a stream. None is over a day.
inline double drawn_seconds(const time_distribution& d, std::uint64_t seed, std::uint64_t stream) {
    using shape = time_distribution::shape;
    if (d.kind == shape::fixed) return d.a;
    generator random(seed, stream);
    if (d.kind == shape::uniform) return d.a + (d.b - d.a) * random.uniform();
    return std::min(d.a * std::exp(d.b * random.normal()), 86400.0);
}
inline std::string distribution_text(const time_distribution& d) {
    using shape = time_distribution::shape;
    return d.kind == shape::fixed     ? printed("%.9g s", d.a)
           : d.kind == shape::uniform ? printed("uniform(%.9g s, %.9g s)", d.a, d.b)
                                      : printed("lognormal(%.9g s, %.9g)", d.a, d.b);
}
/// Whether all times lie between 0 and a day.
inline bool is_sound(const time_distribution& d) {
    using shape = time_distribution::shape;
    const bool is_time = d.a >= 0 && d.a <= 86400;
    return d.kind == shape::uniform     ? is_time && d.b >= d.a && d.b <= 86400
           : d.kind == shape::lognormal ? is_time && d.a > 0 && d.b >= 0 && d.b <= 5
                                        : is_time;
}

inline std::string length_text(const length_distribution& d) {
    using shape = length_distribution::shape;
    switch (d.kind) {
    case shape::fixed: return printed("%.9g", d.a);
    case shape::uniform: return printed("uniform(%.9g, %.9g)", d.a, d.b);
    case shape::normal: return printed("normal(%.9g, %.9g)", d.a, d.b);
    case shape::lognormal: return printed("lognormal(%.9g, %.9g)", d.a, d.b);
    case shape::empirical: return "empirical(" + str(d.file) + ")";
    case shape::trace:
        return d.a == 1 && d.b >= 1e7 ? "of the trace"
               : d.b >= 1e7           ? printed("%.9g times the trace's", d.a)
                                      : printed("%.9g times the trace's up to %.9g", d.a, d.b);
    }
    return "";
}

inline void check_length(const length_distribution& d, const char* field, double least) {
    using shape = length_distribution::shape;
    const bool finite = std::isfinite(d.a) && std::isfinite(d.b);
    bool sound = finite;
    if (d.kind == shape::fixed) sound = finite && d.a >= least && d.a <= 1e7;
    if (d.kind == shape::uniform) sound = finite && d.a >= least && d.b >= d.a && d.b <= 1e7;
    if (d.kind == shape::normal) sound = finite && d.a >= 1 && d.a <= 1e7 && d.b >= 0;
    if (d.kind == shape::lognormal)
        sound = finite && d.a >= 1 && d.a <= 1e7 && d.b >= 0 && d.b <= 5;
    if (d.kind == shape::trace) {
        if (!(finite && d.a > 0 && d.a <= 1000 && d.b >= 1 && d.b <= 1e7))
            refuse({printed("%s is from_trace(%.9g, %.9g): the scale is above 0 and at most 1000, "
                            "the most tokens run from 1 to 10000000", field, d.a, d.b)});
        return;
    }
    if (!sound)
        refuse({printed("%s is %s: lengths run from %g to 10000000 tokens, with an ordered range "
                        "and a spread that is not negative",
                        field, length_text(d).c_str(), least)});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
