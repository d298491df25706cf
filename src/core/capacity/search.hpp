// the search for a capacity
// Bracket, refine, show. The next load depends only on earlier probes, so a stored search can be
// repeated. Only probes of the last part are judged, at their own load: the others were chosen by
// earlier results.
#pragma once

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // clamp, find, max, min, sort
#include <cmath>  // exp, isfinite, log, pow, sqrt
#include <cstddef>  // size_t
#include <optional>
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The result at a load.
enum class carried : unsigned char { open, holds, misses };

/// One run of the scenario at one load.
struct probe {
    probe_of part = probe_of::bracket;
    double load = 0;     // requests/s or users
    double margin = 0;   // the worst log(statistic/limit); below 0 all objectives hold
    bool over = false;   // the load exceeded the server: a miss without a size
    bool invalid = false;  // the client did not keep up, so it shows nothing
    carried shown = carried::open;  // with all earlier probes of the same part at this load
};

/// The limits of a search.
struct search_parameters {
    double start = 1;      // the first load
    double least = 1e-3, most = 1e6;  // up_to(most)
    bool whole = false;    // users
    double believed_sd = prior_sd;  // prior sd of a margin between probes
    int max_probes = 16;
};

/// The state of a search.
struct search_state {
    double low = 0;           // the highest load shown to hold its objectives, 0: none
    double high = infinity;   // the lowest shown to miss one
    std::optional<double> capacity{};    // estimate by all probes, not judged
    std::optional<double> elasticity{};  // d margin / d log load there
    bool monotone() const { return low < high; }
};

/// The next load, or why there is none.
struct search_step {
    probe_of part = probe_of::bracket;
    double load = 0;
    std::string done{};
};

// ---- probes that are not judged

inline bool looks_missed(const probe& p) { return p.over || p.margin >= 0; }
inline bool is_measurement(const probe& p) {
    return p.part == probe_of::low || p.part == probe_of::high;
}
inline bool has_size(const probe& p) {
    return !p.invalid && !p.over && std::isfinite(p.margin);
}
/// Whether the client affected two probes in a row. Then the search stops.
inline bool client_gave_up(const std::vector<probe>& probes) {
    const std::size_t n = probes.size();
    return n > 1 && probes[n - 1].invalid && probes[n - 2].invalid;
}
inline constexpr const char* client_gave_up_text = "the client could not keep up twice in a row";
inline std::vector<probe> without_measurements(const std::vector<probe>& probes) {
    std::vector<probe> out;
    for (const probe& p : probes)
        if (!is_measurement(p) && !p.invalid) out.push_back(p);
    return out;
}

struct bracket {
    const probe* holds = nullptr;   // the highest load below the lowest miss
    const probe* misses = nullptr;  // the lowest load that looks missed
    bool is_closed() const { return holds && misses; }
    double ratio() const { return misses->load / holds->load; }
};
inline bracket bracket_of(const std::vector<probe>& probes) {
    bracket b;
    for (const probe& p : probes)
        if (!p.invalid && looks_missed(p) && (!b.misses || p.load < b.misses->load)) b.misses = &p;
    for (const probe& p : probes)
        if (!p.invalid && !looks_missed(p) && (!b.misses || p.load < b.misses->load) &&
            (!b.holds || p.load > b.holds->load))
            b.holds = &p;
    return b;
}

/// Margins over the log of the load: means per load, pooled with neighbours in the wrong order
/// (Ayer and others 1955), joined by lines. One line for all would fit badly: at a knee the curve
/// is flat, then steep.
struct margin_curve {
    struct knot {
        double x = 0, y = 0, n = 0;
    };
    std::vector<knot> knots{};
    /// The log load where the curve crosses y, close to its ends.
    double crosses(double y) const {
        if (knots.size() == 1) return knots[0].x;
        std::size_t i = 1;
        while (i + 1 < knots.size() && knots[i].y < y) ++i;
        const knot &a = knots[i - 1], &b = knots[i];
        return std::clamp(a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x), knots.front().x - 0.5,
                          knots.back().x + 0.5);
    }
};
// Margins without a size: the statistic at 4.5 times its limit, or far below it.
inline constexpr double margin_of_an_over = 1.5, margin_of_nothing = -3;

inline margin_curve curve_of(const std::vector<probe>& probes) {
    std::vector<probe> sorted;
    for (const probe& p : probes)
        if (!p.invalid) sorted.push_back(p);
    // Any order within a load will do, since their mean is taken.
    std::sort(sorted.begin(), sorted.end(), [](const probe& a, const probe& b) {
        return a.load != b.load ? a.load < b.load : a.margin < b.margin;
    });
    using knot = margin_curve::knot;
    const auto pooled = [](const knot& a, const knot& b) {
        const double n = a.n + b.n;
        return knot{(a.x * a.n + b.x * b.n) / n, (a.y * a.n + b.y * b.n) / n, n};
    };
    std::vector<knot> loads, up;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        const probe& p = sorted[i];
        const knot k{std::log(p.load),
                     has_size(p)       ? p.margin
                     : looks_missed(p) ? margin_of_an_over
                                       : margin_of_nothing,
                     1};
        if (i > 0 && p.load == sorted[i - 1].load) loads.back() = pooled(loads.back(), k);
        else loads.push_back(k);
    }
    for (knot k : loads) {
        for (; !up.empty() && up.back().y >= k.y; up.pop_back()) k = pooled(up.back(), k);
        up.push_back(k);
    }
    return {up};
}

/// Results shown by any part, and estimates by all probes.
inline search_state state_of(const std::vector<probe>& probes) {
    search_state s;
    for (const probe& p : probes) {
        if (p.shown == carried::holds) s.low = std::max(s.low, p.load);
        if (p.shown == carried::misses) s.high = std::min(s.high, p.load);
    }
    const std::vector<probe> before = without_measurements(probes);
    if (!bracket_of(before).is_closed()) return s;
    const margin_curve c = curve_of(probes);
    s.capacity = std::exp(c.crosses(0));
    if (c.knots.size() > 1) s.elasticity = 0.2 / (c.crosses(0.1) - c.crosses(-0.1));
    return s;
}

inline double in_range(const search_parameters& t, probe_of part, double load) {
    if (t.whole) load = part == probe_of::high ? rounded_up(load) : rounded_down(load);
    return std::clamp(load, t.whole ? std::max(1.0, t.least) : t.least, t.most);
}
/// The load within range; a number of users differs from the last one.
inline double moved_from(double last, const search_parameters& t, probe_of part, double load) {
    const double next = in_range(t, part, load);
    return t.whole && next == last ? in_range(t, part, last + (load < last ? -1 : 1)) : next;
}

// ---- bracket and refine

// A load far beyond the capacity takes long to drain and may change the server.
inline constexpr double step_up = 2, largest_step_down = 4;

/// The next load outwards, until a load holds and one misses. The line through the last two margins
/// is above a curve that bends upwards, so its root is a bound.
inline double outwards_of(const search_parameters& t, const std::vector<probe>& before,
                          const bracket& b) {
    if (!b.holds) {
        const double step = 1 + 0.5 * static_cast<double>(before.size());
        return moved_from(b.misses->load, t, probe_of::bracket,
                          b.misses->load / std::min(step, largest_step_down));
    }
    double next = b.holds->load * step_up;
    const margin_curve c = curve_of(before);
    if (c.knots.size() > 1)
        next = std::min(next, std::max(1.1 * std::exp(c.crosses(0)), 1.2 * b.holds->load));
    return moved_from(b.holds->load, t, probe_of::bracket, next);
}

inline constexpr int least_refined = 1, max_refined = 3;
inline constexpr double narrow_bracket = 1.25;

/// Whether a bracket is narrow enough to measure its ends.
inline bool is_refined(const search_parameters& t, const bracket& b, int refined) {
    if (t.whole && b.misses->load - b.holds->load <= 1) return true;
    return refined >= max_refined || (refined >= least_refined && b.ratio() <= narrow_bracket);
}
/// The load inside a bracket at the root of its margins, at least the middle: the root of a curve
/// that bends upwards is above that of its chord.
inline double interpolated(const bracket& b) {
    double fraction = 0.5;
    if (has_size(*b.misses) && has_size(*b.holds))
        fraction = -b.holds->margin / (b.misses->margin - b.holds->margin);
    return b.holds->load * std::pow(b.ratio(), std::clamp(fraction, 0.5, 0.85));
}

// ---- show

/// One end of the interval: the scores of rule_of_a_load, and the first analysis that can show it.
struct end_facts {
    double outwards, z;
    int first;
    double spare;  // spare distance in standard errors of a mean
};
// Beyond a knee a chord overstates the margin, so the upper end has more to spare.
inline constexpr end_facts low_end{-1, 2.413, first_analysis, 1};
inline constexpr end_facts high_end{1, 2.675, first_fail, 2.25};
inline const end_facts& facts_of(probe_of part) {
    return part == probe_of::low ? low_end : high_end;
}

// Speed differences between probes shift the whole curve.
inline constexpr double believed_wander = 0.0125;
inline constexpr double wander_df = 4, steepest = 20;

/// The prior sd of a margin at this slope, moderated by the spread of this end's probes.
inline double spread_near(const search_parameters& t, const std::vector<probe>& probes,
                          probe_of part, double slope) {
    const double moved = believed_wander * std::min(slope, steepest);
    double df = wander_df, squares = df * (t.believed_sd * t.believed_sd + moved * moved);
    std::vector<double> here;
    const auto add = [&] {
        if (here.size() > 1) {
            df += static_cast<double>(here.size() - 1);
            squares += static_cast<double>(here.size() - 1) * sample_variance(here);
        }
        here.clear();
    };
    double load = 0;
    for (const probe& p : probes) {
        if (p.part != part || !has_size(p)) continue;
        if (p.load != load) add();
        load = p.load;
        here.push_back(p.margin);
    }
    add();
    return std::sqrt(squares / df);
}

/// How far from 0 the mean of n margins must be for the rule to show it.
inline double reach_of(const search_parameters& t, double n, double sd, double z) {
    const interim_analysis l = moderated_analysis(0, (n - 1) * sd * sd, n - 1, t.believed_sd);
    return student_t_quantile(normal_cdf(z), l.df) * l.sd / std::sqrt(n);
}

/// Loads that were tried for an end, in order, and the last result.
struct tried_end {
    std::vector<double> loads{};
    std::vector<double> margins{};  // of probes with a size
    int times = 0, all = 0;         // at the last load, at all loads
    carried shown = carried::open;
};
inline tried_end tried(const std::vector<probe>& probes, probe_of part) {
    tried_end e;
    for (const probe& p : probes) {
        if (p.part != part || p.invalid) continue;
        if (e.loads.empty() || e.loads.back() != p.load) {
            e.loads.push_back(p.load);
            e.margins.clear();
            e.times = 0;
        }
        ++e.times;
        ++e.all;
        if (has_size(p)) e.margins.push_back(p.margin);
        e.shown = p.shown;
    }
    return e;
}

/// An end at a distance where some number of probes will mostly show it.
struct end_place {
    double load = 0, slope = 0, sd = 0, reach = 0;
};
inline constexpr double wanted_ratio = 1.094;  // of the ends; narrower ones cost no probes
inline constexpr double least_step = 0.015, largest_step = 0.5;  // of log load
inline constexpr double spare_of_a_step = 2;  // extra standard errors per tried load
inline constexpr int spare_probes = 3;

/// The place that the fewest probes show at the wanted distance, else with as many as are left.
inline end_place end_place_of(const search_parameters& t, const std::vector<probe>& probes,
                              probe_of part, int left, std::size_t steps = 0) {
    const end_facts& f = facts_of(part);
    const margin_curve c = curve_of(probes);
    const double root = c.crosses(0);
    const int most = std::clamp((left - spare_probes) / 2, f.first, last_analysis);
    const double spare = f.spare + spare_of_a_step * static_cast<double>(steps);
    end_place e;
    for (int n = f.first;; ++n) {
        e.sd = t.believed_sd;
        double d = 0;
        for (int i = 0; i < 4; ++i) {  // spread and place depend on each other
            e.reach = reach_of(t, n, e.sd, f.z) + spare * e.sd / std::sqrt(n);
            d = std::clamp(f.outwards * (c.crosses(f.outwards * e.reach) - root), 0.005,
                           largest_step);
            e.slope = e.reach / d;
            e.sd = spread_near(t, probes, part, e.slope);
        }
        e.load = std::exp(root + f.outwards * std::max(d, least_step));
        if (2 * d <= std::log(wanted_ratio) || n >= most) return e;
    }
}

/// The chance that an end is shown where it was last tried.
inline double chance_of(const search_parameters& t, const tried_end& mine, const end_place& place,
                        probe_of part, int left) {
    const end_facts& f = facts_of(part);
    if (mine.shown != carried::open || mine.times >= last_analysis || mine.times + left < f.first)
        return 0;
    if (mine.margins.size() < static_cast<std::size_t>(mine.times))
        return part == probe_of::high;  // the load exceeded the server
    const double n = mine.times, most = std::min<double>(last_analysis, n + left);
    const double short_of = reach_of(t, most, place.sd, f.z) - f.outwards * mean_of(mine.margins);
    return normal_cdf(-short_of / (place.sd * std::sqrt(1 / n - 1 / most)));
}
inline constexpr double hopeless_at_first = 0.1, hopeless = 0.35, hopeless_at_last = 0.7;
inline constexpr double hopeless_inside = 0.5;

/// The next load for an end that is not shown, nothing if there is none.
inline std::optional<double> next_of_end(const search_parameters& t,
                                         const std::vector<probe>& probes, const search_state& s,
                                         probe_of part, int left) {
    const end_facts& f = facts_of(part);
    const bool is_low = part == probe_of::low;
    if (is_low ? s.low > 0 : s.high < infinity) return std::nullopt;
    const tried_end mine = tried(probes, part);
    const end_place place = end_place_of(t, probes, part, left, mine.loads.size());
    std::optional<double> next;
    if (mine.loads.empty()) {
        next = in_range(t, part, place.load);
    } else {
        const double last = mine.loads.back();
        const bool last_chance = left == f.first;  // to show another load
        const double enough = mine.times < first_analysis ? hopeless_at_first
                              : last_chance           ? hopeless_at_last
                                                      : hopeless;
        if (chance_of(t, mine, place, part, left) > enough) return last;
        // Further out, and beyond loads on the wrong side of the capacity.
        const double from = is_low ? std::min(last, s.high) : std::max(last, s.low);
        double step = f.outwards * std::log(place.load / from);
        if (from == last && !mine.margins.empty())
            step = std::max(step, (place.reach - f.outwards * mean_of(mine.margins)) / place.slope);
        step = std::clamp(step, least_step, largest_step);
        next = moved_from(last, t, part, from * std::exp(f.outwards * step));
        if (*next == last) return std::nullopt;  // no load beyond it
    }
    if (left < f.first) return std::nullopt;
    return next;
}

inline constexpr double least_gain = 0.03;  // of log load

/// The next load further in for an end that is shown, while probes are left. The earlier result
/// stays, and the level is not divided: an error further in needs a false verdict there, after
/// correct ones.
inline std::optional<double> further_in(const search_parameters& t,
                                        const std::vector<probe>& probes, const search_state& s,
                                        probe_of part, int left) {
    const end_facts& f = facts_of(part);
    if (!s.monotone() || s.high <= wanted_ratio * s.low) return std::nullopt;
    const double end = part == probe_of::low ? s.low : s.high;
    const tried_end mine = tried(probes, part);
    const end_place place = end_place_of(t, probes, part, 2 * left + spare_probes);
    const bool is_inside = f.outwards * std::log(mine.loads.back() / end) < 0;
    if (is_inside) {
        if (chance_of(t, mine, place, part, left) <= hopeless_inside) return std::nullopt;
        return mine.loads.back();
    }
    const double next = in_range(t, part, place.load);
    const bool is_new = std::find(mine.loads.begin(), mine.loads.end(), next) == mine.loads.end();
    if (left < f.first || !is_new || -f.outwards * std::log(next / end) < least_gain)
        return std::nullopt;
    return next;
}

/// Measures the ends where they are likely.
inline search_step next_measurement(const search_parameters& t, const std::vector<probe>& probes,
                                 const search_state& s, int left) {
    const tried_end low = tried(probes, probe_of::low), high = tried(probes, probe_of::high);
    const auto next_low = next_of_end(t, probes, s, probe_of::low, left);
    const auto next_high = next_of_end(t, probes, s, probe_of::high, left);
    if (next_low && next_high) {
        // Alternates, so that a server's drift does not look like a load. If probes suffice for one
        // end only, it is the one that needs fewer.
        const auto needed = [](const tried_end& e, double load, probe_of part) {
            const bool goes_on = !e.loads.empty() && e.loads.back() == load;
            return std::max(1, facts_of(part).first - (goes_on ? e.times : 0));
        };
        const int for_low = needed(low, *next_low, probe_of::low),
                  for_high = needed(high, *next_high, probe_of::high);
        const bool low_first = for_low + for_high > left ? for_low <= for_high
                                                         : low.all <= high.all;
        if (low_first) return {probe_of::low, *next_low, {}};
        return {probe_of::high, *next_high, {}};
    }
    if (next_low) return {probe_of::low, *next_low, {}};
    if (next_high) return {probe_of::high, *next_high, {}};
    if (s.low == 0 || s.high == infinity)
        return {{}, 0, printed("an end could not be shown with %d probes", t.max_probes)};
    const bool high_is_wider = s.high / *s.capacity > *s.capacity / s.low;
    for (const bool is_high : {high_is_wider, !high_is_wider}) {
        const probe_of part = is_high ? probe_of::high : probe_of::low;
        if (const auto next = further_in(t, probes, s, part, left)) return {part, *next, {}};
    }
    return {{}, 0, "both ends are shown"};
}

/// Returns the next step.
inline search_step next_step(const search_parameters& t, const std::vector<probe>& probes) {
    const search_state s = state_of(probes);
    const int left = t.max_probes - static_cast<int>(probes.size());
    if (left <= 0)
        return {{}, 0, s.low > 0 && s.high < infinity
                           ? "both ends are shown"
                           : printed("%d probes are spent", t.max_probes)};
    if (client_gave_up(probes)) return {{}, 0, client_gave_up_text};
    if (!probes.empty() && probes.back().invalid)
        return {probes.back().part, probes.back().load, {}};
    const std::vector<probe> before = without_measurements(probes);
    if (before.empty()) return {probe_of::bracket, in_range(t, probe_of::bracket, t.start), {}};
    const bracket b = bracket_of(before);
    if (b.is_closed()) {
        int refined = 0;
        for (const probe& p : before) refined += p.part == probe_of::refine;
        const double next = in_range(t, probe_of::refine, interpolated(b));
        if (!is_refined(t, b, refined) && next > b.holds->load && next < b.misses->load)
            return {probe_of::refine, next, {}};
        return next_measurement(t, probes, s, left);
    }
    const double next = outwards_of(t, before, b);
    if (next != (b.holds ? b.holds : b.misses)->load) return {probe_of::bracket, next, {}};
    // All allowed loads look alike, so only one end can be shown.
    const probe_of part = b.holds ? probe_of::low : probe_of::high;
    const tried_end mine = tried(probes, part);
    if (mine.shown == (b.holds ? carried::holds : carried::misses))
        return {{}, 0, b.holds ? "the highest load that was allowed holds its objectives"
                               : "the lowest load that was allowed misses its objectives"};
    if (mine.shown != carried::open || mine.times >= last_analysis)
        return {{}, 0, b.holds ? "the highest load that was allowed could not be shown to hold its "
                                 "objectives"
                               : "the lowest load that was allowed could not be shown to miss its "
                                 "objectives"};
    return {part, b.holds ? in_range(t, part, t.most) : in_range(t, part, t.least), {}};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
