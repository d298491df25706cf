// the search for a capacity
// Loads are doubled or halved until one clearly holds and one clearly misses, then the gaps beside
// these two are halved on the logarithmic scale: a grid of loads 9 % apart. All probes at a load
// are judged together, after each from the third to the fifth. The next load depends only on
// earlier probes, so a stored search can be repeated.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/measured/repeat.hpp"
#include "core/planning/load_search.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // clamp, find_if, lower_bound, max, min
#include <cmath>  // fabs, isfinite, isnan, log, round, sqrt
#include <cstddef>  // size_t
#include <optional>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One run of the scenario at one load.
struct probe {
    probe_of part = probe_of::search;
    double load = 0;     // requests/s or users
    double margin = 0;   // the worst log(statistic/limit); below 0 all objectives hold
    bool over = false;   // the load exceeded the server: a miss without a size
    bool invalid = false;  // the client did not keep up, so it shows nothing
    carried shown = carried::open;  // with all earlier probes at this load
    bool too_short = false;  // more of them show no more, only longer ones
};

/// The limits of a search.
struct search_parameters {
    double start = 1;      // the first load
    double least = 1e-3, most = 1e6;  // up_to(most)
    bool whole = false;    // users
    int max_probes = 16;
};

/// The state of a search.
struct search_state : capacity_ends {
    // With both ends:
    double estimate = not_a_number;    // the middle of them
    double elasticity = not_a_number;  // d margin / d log load between them
};

/// Whether the client affected two probes in a row. Then the search stops.
inline bool client_gave_up(const vector<probe>& probes) {
    const std::size_t n = probes.size();
    return n > 1 && probes[n - 1].invalid && probes[n - 2].invalid;
}
inline constexpr const char* client_gave_up_text = "the client could not keep up twice in a row";

// ---- the probes at each load

// Margins without a size: the statistic at 4.5 times its limit, or far below it.
inline constexpr double max_margin = 1.5, min_margin = -3;
// Nearer to its limit a statistic has to be measured too often to decide.
inline constexpr double clear_margin = 0.06;

/// All valid probes at one load.
struct probed_load {
    double load = 0, margin = 0;  // the mean margin
    int probes = 0;
    carried shown = carried::open;
    bool too_short = false;
    /// The result so far, or the one that more probes are likely to show.
    carried looks() const {
        if (shown != carried::open) return shown;
        if (too_short || probes >= last_analysis || std::fabs(margin) < clear_margin)
            return carried::open;
        return margin < 0 ? carried::holds : carried::misses;
    }
};
/// Returns the loads in rising order.
inline vector<probed_load> loads_of(const vector<probe>& probes) {
    vector<probed_load> loads;
    for (const probe& p : probes) {
        if (p.invalid) continue;
        auto at = std::lower_bound(loads.begin(), loads.end(), p.load,
                                   [](const probed_load& l, double load) { return l.load < load; });
        if (at == loads.end() || at->load != p.load) at = loads.insert(at, {p.load});
        const double margin = std::clamp(p.over ? infinity : p.margin, min_margin, max_margin);
        at->margin += (margin - at->margin) / ++at->probes;
        if (at->shown == carried::open) at->shown = p.shown;
        at->too_short = p.too_short;
    }
    return loads;
}
inline search_state state_of(const vector<probe>& probes) {
    search_state s;
    double at_low = 0, at_high = 0;
    for (const probed_load& l : loads_of(probes)) {
        if (l.shown == carried::holds) {
            s.low = l.load;
            at_low = l.margin;
        }
        if (l.shown == carried::misses && s.high == infinity) {
            s.high = l.load;
            at_high = l.margin;
        }
    }
    if (s.has_both()) {
        s.estimate = std::sqrt(s.low * s.high);
        s.elasticity = (at_high - at_low) / std::log(s.high / s.low);
    }
    return s;
}

// ---- the next load

// A load far beyond the capacity takes long to drain and may change the server.
inline constexpr double step_out = 2;
inline constexpr double narrow_gap = 1.1;  // the ratio of neighbours on the grid
// Two probes hardly know their spread, which is large at a knee.
inline constexpr int least_of_an_end = 3, spare_probes = 2;

/// Whether there is a load of the grid between these two.
inline bool is_wide(const search_parameters& t, double low, double high) {
    return high > narrow_gap * low && (!t.whole || high - low > 1);
}
inline double in_range(const search_parameters& t, double load) {
    if (t.whole) load = std::round(load);
    return std::clamp(load, t.whole ? std::max(1.0, t.least) : t.least, t.most);
}

/// Returns the next load, nothing if the search ends.
inline std::optional<double> next_load(const search_parameters& t, const vector<probe>& probes) {
    if (probes.empty()) return in_range(t, t.start);
    const int left = t.max_probes - static_cast<int>(probes.size());
    if (left <= 0 || client_gave_up(probes)) return std::nullopt;
    if (probes.back().invalid) return probes.back().load;

    // The ends: the lowest load that looks missed, and the highest below it that looks held.
    const vector<probed_load> loads = loads_of(probes);
    std::size_t high = 0;
    while (high < loads.size() && loads[high].looks() != carried::misses) ++high;
    std::size_t held = high;  // the low end is the load before it
    while (held > 0 && loads[held - 1].looks() != carried::holds) --held;
    const bool has_low = held > 0, has_high = high < loads.size();
    const double down = in_range(t, loads.front().load / step_out);
    const double up = in_range(t, loads.back().load * step_out);
    if (!has_low && down < loads.front().load) return down;
    if (!has_high && up > loads.back().load) return up;

    const probed_load low_end = has_low ? loads[held - 1] : probed_load{};
    const probed_load high_end = has_high ? loads[high] : probed_load{};
    const auto needed = [](const probed_load& end) {
        const bool is_open = end.probes > 0 && end.shown == carried::open;
        return is_open ? std::max(1, least_of_an_end - end.probes) : 0;
    };
    const int for_low = needed(low_end), for_high = needed(high_end);
    if (left > for_low + for_high + spare_probes)
        for (const std::size_t i : {held, high})
            if (i > 0 && i < loads.size() && is_wide(t, loads[i - 1].load, loads[i].load))
                return in_range(t, std::sqrt(loads[i - 1].load * loads[i].load));
    if (for_low == 0 && for_high == 0) return std::nullopt;
    // In turn, so that a server's drift does not look like a load. If probes suffice for one end
    // only, it is the one that needs fewer.
    bool low_first = low_end.probes <= high_end.probes;
    if (for_low + for_high > left) low_first = for_low <= for_high;
    if (for_high == 0 || (for_low > 0 && low_first)) return low_end.load;
    return high_end.load;
}

// ---- a server that changes

inline constexpr double false_trend = 0.01;  // of searches on a constant server
// A noisy machine's speed varies by this much between probes, which few probes cannot tell from a
// trend.
inline constexpr double noisy_wander = 0.03;
inline constexpr double wander_df = 4, steepest = 20;

/// Growth of the margins at equal loads from the first to the last probe, if it is shown. Then no
/// load in between was carried before and after, so there is no single capacity.
inline std::optional<double> trend_of(const vector<probe>& probes, const search_state& s) {
    const auto has_size = [](const probe& p) {
        return !p.invalid && !p.over && std::isfinite(p.margin);
    };
    double when2 = 0, both = 0, margin2 = 0, df = -1;
    for (std::size_t i = 0; i < probes.size(); ++i) {
        if (!has_size(probes[i])) continue;
        double n = 0, when = 0, margin = 0;  // of all at this load
        for (std::size_t k = 0; k < probes.size(); ++k) {
            if (probes[k].load != probes[i].load || !has_size(probes[k])) continue;
            ++n;
            when += static_cast<double>(k);
            margin += probes[k].margin;
        }
        const double x = static_cast<double>(i) - when / n, y = probes[i].margin - margin / n;
        when2 += x * x;
        both += x * y;
        margin2 += y * y;
        df += 1 - 1 / n;
    }
    if (df < 0.5) return std::nullopt;
    double slope = s.elasticity;
    const vector<probed_load> loads = loads_of(probes);
    const probed_load &least = loads.front(), &most = loads.back();
    if (std::isnan(slope)) slope = (most.margin - least.margin) / std::log(most.load / least.load);
    if (!(slope < steepest)) slope = steepest;  // also of one load
    const double by = both / when2, moved = noisy_wander * slope;
    const double believed = wander_df * (prior_sd * prior_sd + moved * moved);
    const double remaining = std::max(margin2 - by * both, 0.0), all_df = wander_df + df;
    const double se = std::sqrt((believed + remaining) / all_df / when2);
    if (std::fabs(by) < student_t_quantile(1 - false_trend / 2, all_df) * se) return std::nullopt;
    return by * static_cast<double>(probes.size() - 1);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
