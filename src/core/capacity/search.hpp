// the search for a capacity
// Bracket, refine, show. Which load is tried next follows from the probes so far and nothing else,
// so a stored search can be done again. Only probes of the last part are evidence, each for the
// load that it was run at: those that led there were chosen by what they measured.
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

/// What is shown of a load by all the evidence at it.
enum class carried : unsigned char { open, holds, misses };

/// One run of the scenario at one load.
struct probe {
    probe_of part = probe_of::bracket;
    double load = 0;     // requests/s or users
    double margin = 0;   // the worst log(statistic/limit) of its objectives: below 0 it holds them
    bool over = false;   // the load outgrew the server: a miss without a size
    bool invalid = false;  // the client did not keep up: it says nothing
    carried shown = carried::open;  // of this load, with the probes of the same part before it
};

/// What is searched, and how far one goes for it.
struct search_terms {
    double start = 1;      // the first load
    double least = 1e-3, most = 1e6;  // up_to(most)
    bool whole = false;    // users
    double believed_sd = prior_sd;  // of a margin, from probe to probe
    int most_probes = 16;
};

/// Where a search stands.
struct search_state {
    double low = 0;           // the highest load shown to hold its objectives, 0: none
    double high = infinity;   // the lowest shown to miss one
    std::optional<double> capacity{};    // the estimate by all the probes; no evidence
    std::optional<double> elasticity{};  // d margin / d log load there
    bool monotone() const { return low < high; }
};

/// The next load to try, or why there is none.
struct search_step {
    probe_of part = probe_of::bracket;
    double load = 0;
    std::string done{};
};

// ---- what probes say without being evidence

inline bool looks_missed(const probe& p) { return p.over || p.margin >= 0; }
inline bool is_evidence(const probe& p) {
    return p.part == probe_of::low || p.part == probe_of::high;
}
inline bool has_size(const probe& p) {
    return !p.invalid && !p.over && std::isfinite(p.margin);
}
/// The client had too great a part in two probes in a row: there are no more.
inline bool client_gave_up(const std::vector<probe>& probes) {
    const std::size_t n = probes.size();
    return n > 1 && probes[n - 1].invalid && probes[n - 2].invalid;
}
inline constexpr const char* client_gave_up_text = "the client could not keep up twice in a row";
inline std::vector<probe> without_evidence(const std::vector<probe>& probes) {
    std::vector<probe> out;
    for (const probe& p : probes)
        if (!is_evidence(p) && !p.invalid) out.push_back(p);
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

/// What margins look like over the log of the load: means of the probes at a load, pooled with
/// neighbours that noise has put in the wrong order (Ayer and others 1955), joined by straight
/// lines. One line through all would be far off: the curve of a knee is flat, then steep.
struct margin_curve {
    struct knot {
        double x = 0, y = 0, n = 0;
    };
    std::vector<knot> knots{};
    /// The log load where it crosses y, not far beyond its ends.
    double crosses(double y) const {
        if (knots.size() == 1) return knots[0].x;
        std::size_t i = 1;
        while (i + 1 < knots.size() && knots[i].y < y) ++i;
        const knot &a = knots[i - 1], &b = knots[i];
        return std::clamp(a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x), knots.front().x - 0.5,
                          knots.back().x + 0.5);
    }
};
// What stands for a margin without a size: the statistic at 4.5 times its limit, or far below.
inline constexpr double margin_of_an_over = 1.5, margin_of_nothing = -3;

inline margin_curve curve_of(const std::vector<probe>& probes) {
    std::vector<probe> sorted;
    for (const probe& p : probes)
        if (!p.invalid) sorted.push_back(p);
    // Those of one load in any order: their mean is taken.
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

/// What the evidence shows, of whichever part it is, and what all probes make likely.
inline search_state state_of(const std::vector<probe>& probes) {
    search_state s;
    for (const probe& p : probes) {
        if (p.shown == carried::holds) s.low = std::max(s.low, p.load);
        if (p.shown == carried::misses) s.high = std::min(s.high, p.load);
    }
    const std::vector<probe> before = without_evidence(probes);
    if (!bracket_of(before).is_closed()) return s;
    const margin_curve c = curve_of(probes);
    s.capacity = std::exp(c.crosses(0));
    if (c.knots.size() > 1) s.elasticity = 0.2 / (c.crosses(0.1) - c.crosses(-0.1));
    return s;
}

inline double in_range(const search_terms& t, probe_of part, double load) {
    if (t.whole) load = part == probe_of::high ? rounded_up(load) : rounded_down(load);
    return std::clamp(load, t.whole ? std::max(1.0, t.least) : t.least, t.most);
}
/// The same, and another load than the last where users are counted.
inline double moved_from(double last, const search_terms& t, probe_of part, double load) {
    const double next = in_range(t, part, load);
    return t.whole && next == last ? in_range(t, part, last + (load < last ? -1 : 1)) : next;
}

// ---- bracket and refine

// No step up is larger: a load far beyond the capacity takes long to drain, and may leave a server
// other than it found it.
inline constexpr double step_up = 2, largest_step_down = 4;

/// Outwards of what was tried, until a load holds and one misses. A line through the last two
/// margins lies above a curve that bends upwards, so that its root is a bound of the capacity.
inline double outwards_of(const search_terms& t, const std::vector<probe>& before,
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

inline constexpr int least_refined = 1, most_refined = 3;
inline constexpr double narrow_bracket = 1.25;

/// Whether the ends of a bracket are near enough for evidence.
inline bool is_refined(const search_terms& t, const bracket& b, int refined) {
    if (t.whole && b.misses->load - b.holds->load <= 1) return true;
    return refined >= most_refined || (refined >= least_refined && b.ratio() <= narrow_bracket);
}
/// Inside a bracket: where its margins put the root, but never nearer to the load that holds, for
/// the root of a curve that bends upwards is above that of its chord.
inline double interpolated(const bracket& b) {
    double fraction = 0.5;
    if (has_size(*b.misses) && has_size(*b.holds))
        fraction = -b.holds->margin / (b.misses->margin - b.holds->margin);
    return b.holds->load * std::pow(b.ratio(), std::clamp(fraction, 0.5, 0.85));
}

// ---- show

/// One end of the interval, as its evidence is judged: the scores of rule_of_a_load, the first look
/// that can show it.
struct end_facts {
    double outwards, z;
    int first;
    double spare;  // standard errors of a mean that its distance has to spare
};
// Beyond a knee a chord overstates the margin, so the upper end has more to spare.
inline constexpr end_facts low_end{-1, 2.413, first_analysis, 1};
inline constexpr end_facts high_end{1, 2.675, first_fail, 2.25};
inline const end_facts& facts_of(probe_of part) {
    return part == probe_of::low ? low_end : high_end;
}

// A machine whose speed differs from probe to probe by this much moves the whole curve.
inline constexpr double believed_wander = 0.0125;
inline constexpr double wander_df = 4, steepest = 20;

/// How much a margin is believed to differ from probe to probe where the curve has this slope,
/// moderated by what the evidence of this end spread by around the means of its loads.
inline double spread_near(const search_terms& t, const std::vector<probe>& probes, probe_of part,
                          double slope) {
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

/// How far from 0 the mean of n margins that spread by sd must be for the rule to show it.
inline double reach_of(const search_terms& t, double n, double sd, double z) {
    const interim_analysis l = moderated_analysis(0, (n - 1) * sd * sd, n - 1, t.believed_sd);
    return student_t_quantile(normal_cdf(z), l.df) * l.sd / std::sqrt(n);
}

/// Loads that an end was tried at, in order, and what came of the last of them.
struct tried_end {
    std::vector<double> loads{};
    std::vector<double> margins{};  // those that have a size
    int times = 0, all = 0;         // at the last of the loads, and at all
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

/// An end at a distance at which a number of probes will mostly show it.
struct end_place {
    double load = 0, slope = 0, sd = 0, reach = 0;
};
inline constexpr double wanted_ratio = 1.094;  // of the ends: no probes are spent on a narrower one
inline constexpr double least_step = 0.015, largest_step = 0.5;  // of log load
inline constexpr double spare_of_a_step = 2;  // more standard errors with each load that was tried
inline constexpr int spare_probes = 3;

/// By the fewest probes that show it as near as is wanted, or else by as many as it can be given.
inline end_place end_place_of(const search_terms& t, const std::vector<probe>& probes,
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
        for (int i = 0; i < 4; ++i) {  // the spread depends on the slope, the slope on the place
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

/// How likely an end is to be shown where it was last tried.
inline double chance_of(const search_terms& t, const tried_end& mine, const end_place& place,
                        probe_of part, int left) {
    const end_facts& f = facts_of(part);
    if (mine.shown != carried::open || mine.times >= last_analysis || mine.times + left < f.first)
        return 0;
    if (mine.margins.size() < static_cast<std::size_t>(mine.times))
        return part == probe_of::high;  // the load outgrew the server
    const double n = mine.times, most = std::min<double>(last_analysis, n + left);
    const double short_of = reach_of(t, most, place.sd, f.z) - f.outwards * mean_of(mine.margins);
    return normal_cdf(-short_of / (place.sd * std::sqrt(1 / n - 1 / most)));
}
inline constexpr double hopeless_at_first = 0.1, hopeless = 0.35, hopeless_at_last = 0.7;
inline constexpr double hopeless_inside = 0.5;

/// The load at which an end that is not shown is tried next; nothing where it cannot be.
inline std::optional<double> next_of_end(const search_terms& t, const std::vector<probe>& probes,
                                         const search_state& s, probe_of part, int left) {
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
        // Further out, and beyond what shows that it was on the wrong side of the capacity.
        const double from = is_low ? std::min(last, s.high) : std::max(last, s.low);
        double step = f.outwards * std::log(place.load / from);
        if (from == last && !mine.margins.empty())
            step = std::max(step, (place.reach - f.outwards * mean_of(mine.margins)) / place.slope);
        step = std::clamp(step, least_step, largest_step);
        next = moved_from(last, t, part, from * std::exp(f.outwards * step));
        if (*next == last) return std::nullopt;  // there is no load beyond it
    }
    if (left < f.first) return std::nullopt;
    return next;
}

inline constexpr double least_gain = 0.03;  // of log load

/// The load at which an end that is shown is tried further in, while probes are left. What is shown
/// stays so, and the level is not divided: to be wrong further in takes a false verdict there, to
/// which one comes only by way of ends that are right.
inline std::optional<double> further_in(const search_terms& t, const std::vector<probe>& probes,
                                        const search_state& s, probe_of part, int left) {
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

/// Evidence where both ends were found likely.
inline search_step next_evidence(const search_terms& t, const std::vector<probe>& probes,
                                 const search_state& s, int left) {
    const tried_end low = tried(probes, probe_of::low), high = tried(probes, probe_of::high);
    const auto next_low = next_of_end(t, probes, s, probe_of::low, left);
    const auto next_high = next_of_end(t, probes, s, probe_of::high, left);
    if (next_low && next_high) {
        // In turns, so that a drift of the server does not look like a load; where probes are left
        // for one end alone, for the one that needs fewer.
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
        return {{}, 0, printed("an end could not be shown with %d probes", t.most_probes)};
    const bool high_is_wider = s.high / *s.capacity > *s.capacity / s.low;
    for (const bool is_high : {high_is_wider, !high_is_wider}) {
        const probe_of part = is_high ? probe_of::high : probe_of::low;
        if (const auto next = further_in(t, probes, s, part, left)) return {part, *next, {}};
    }
    return {{}, 0, "both ends are shown"};
}

/// What to try next.
inline search_step next_step(const search_terms& t, const std::vector<probe>& probes) {
    const search_state s = state_of(probes);
    const int left = t.most_probes - static_cast<int>(probes.size());
    if (left <= 0)
        return {{}, 0, s.low > 0 && s.high < infinity
                           ? "both ends are shown"
                           : printed("%d probes are spent", t.most_probes)};
    if (client_gave_up(probes)) return {{}, 0, client_gave_up_text};
    if (!probes.empty() && probes.back().invalid)
        return {probes.back().part, probes.back().load, {}};
    const std::vector<probe> before = without_evidence(probes);
    if (before.empty()) return {probe_of::bracket, in_range(t, probe_of::bracket, t.start), {}};
    const bracket b = bracket_of(before);
    if (b.is_closed()) {
        int refined = 0;
        for (const probe& p : before) refined += p.part == probe_of::refine;
        const double next = in_range(t, probe_of::refine, interpolated(b));
        if (!is_refined(t, b, refined) && next > b.holds->load && next < b.misses->load)
            return {probe_of::refine, next, {}};
        return next_evidence(t, probes, s, left);
    }
    const double next = outwards_of(t, before, b);
    if (next != (b.holds ? b.holds : b.misses)->load) return {probe_of::bracket, next, {}};
    // All loads that may be tried look alike: only one end can be shown.
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
