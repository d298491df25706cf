// Two equal servers under one load at the same time, or in turns: the values of their requests, with
// noise that both share and noise of their own.
#pragma once

#include "core/base/random.hpp"
#include "core/base/vector.hpp"
#include "core/judging/at_once.hpp"
#include "core/judging/rule.hpp"
#include "core/measured/slices.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace twins {

using llmbench::detail::generator;
using llmbench::detail::vector;

/// What a machine does to the logarithm of a server's speed.
struct noise {
    const char* name;
    double shared_sd = 0, shared_s = 3;  // that lasts so long, of both servers
    double own_sd = 0.01, own_s = 3;     // of each
    double burst_every_s = 0, burst_s = 1, burst = 1;  // slower by so much, on the average
    bool bursts_are_shared = false;
    double drift = 0;         // of both, from the begin to the end
    bool is_promised = true;  // the levels are to hold
};
/// What is asked: a time between tokens, averaged over an answer of 2.5 s, or a time to the first
/// token, whose requests differ far more.
struct requests {
    double rate = 8, answer_s = 2.5;
    double same_sd = 0.05;  // by what both twins have: lengths
    double own_sd = 0.10;   // of each request
    double rare = 0, times = 1;  // so many requests take so many times as long, of each server
};

/// The level of a server in time, as a running integral.
class level {
public:
    explicit level(const vector<double>& logs) : sums_(logs.size() + 1, 0.0) {
        for (std::size_t i = 0; i < logs.size(); ++i)
            sums_[i + 1] = sums_[i] + std::exp(logs[i]) * step_s;
    }
    double over(double from_s, double to_s) const {
        return (until(to_s) - until(from_s)) / (to_s - from_s);
    }
    static constexpr double step_s = 0.1;

private:
    double until(double s) const {
        const double at = s / step_s;
        const std::size_t i = std::min(static_cast<std::size_t>(at), sums_.size() - 2);
        return sums_[i] + (sums_[i + 1] - sums_[i]) * (at - static_cast<double>(i));
    }
    vector<double> sums_;
};

/// A stationary process of this spread, whose correlation falls by e in `lasts_s`.
inline vector<double> wander(double sd, double lasts_s, std::size_t n, generator& random) {
    vector<double> x(n);
    const double keeps = std::exp(-level::step_s / lasts_s);
    double now = sd * random.normal();
    for (double& at : x) {
        at = now;
        now = keeps * now + sd * std::sqrt(1 - keeps * keeps) * random.normal();
    }
    return x;
}
inline void add_bursts(vector<double>& logs, const noise& m, generator& random) {
    const double ends = static_cast<double>(logs.size()) * level::step_s;
    for (double t = m.burst_every_s * random.exponential(); t < ends;) {
        const double lasts = m.burst_s * random.exponential();
        const double slower = std::log1p(m.burst * random.exponential());
        for (auto i = static_cast<std::size_t>(t / level::step_s);
             i < logs.size() && static_cast<double>(i) * level::step_s < t + lasts; ++i)
            logs[i] += slower;
        t += lasts + m.burst_every_s * random.exponential();
    }
}

/// Both servers over some seconds.
struct machine {
    level mine, other;
};
inline machine machine_of(const noise& m, double seconds, generator& random) {
    const auto n = static_cast<std::size_t>((seconds + 60) / level::step_s);
    vector<double> shared = wander(m.shared_sd, m.shared_s, n, random);
    vector<double> own[2] = {wander(m.own_sd, m.own_s, n, random),
                             wander(m.own_sd, m.own_s, n, random)};
    if (m.burst_every_s > 0 && m.bursts_are_shared) add_bursts(shared, m, random);
    for (auto& logs : own) {
        if (m.burst_every_s > 0 && !m.bursts_are_shared) add_bursts(logs, m, random);
        for (std::size_t i = 0; i < n; ++i)
            logs[i] += shared[i] + m.drift * (static_cast<double>(i) * level::step_s / seconds - 0.5);
    }
    return {level(own[0]), level(own[1])};
}

/// One request: its planned time, and the values of both twins.
struct twin {
    double at_s = 0, mine = 0, other = 0;
};
inline vector<twin> load_of(const machine& on, const requests& r, double seconds,
                            generator& random) {
    vector<twin> all;
    for (double t = random.exponential() / r.rate; t < seconds; t += random.exponential() / r.rate) {
        const double lasts =
            std::min(r.answer_s * std::exp(0.4 * random.normal() - 0.08), 50.0);
        const double same = std::exp(r.same_sd * random.normal());
        const auto value = [&](const level& of) {
            const double usual = of.over(t, t + lasts) * same *
                                 std::exp(r.own_sd * random.normal() - r.own_sd * r.own_sd / 2);
            return r.rare > 0 && random.uniform() < r.rare ? usual * r.times : usual;
        };
        const double mine = value(on.mine);
        all.push_back({t, mine, value(on.other)});
    }
    return all;
}

// ---- the verdict of a gate ----------------------------------------------------------------------

/// The slices of the first seconds of a load.
inline llmbench::detail::values_at_once sliced(const vector<twin>& load, double seconds) {
    using namespace llmbench::detail;
    values_at_once v;
    v.slices = std::min(static_cast<std::size_t>(seconds / least_slice_s), most_slices_at_once);
    for (const twin& t : load) {
        if (t.at_s >= seconds) continue;
        const auto slice =
            static_cast<std::size_t>(t.at_s / seconds * static_cast<double>(v.slices));
        v.mine.add(t.mine, slice);
        v.other.add(t.other, slice);
    }
    return v;
}
/// The rule at a look, or of a load that is too short for any.
inline const llmbench::detail::judging_rule& rule_at(int quarter, bool looks) {
    using namespace llmbench::detail;
    static const judging_rule plain = rule_of({}, 1, 1, 0, 1), early = looking_early(plain),
                              at[] = {early.at_part(0.5), early.at_part(0.75), early};
    return looks ? at[quarter - 2] : plain;
}
/// A load with its looks, of which each has enough slices.
class looked_at {
public:
    looked_at(const vector<twin>& load, double seconds) : seconds_(seconds) {
        using namespace llmbench::detail;
        const double least = least_slice_s * static_cast<double>(least_slices_at_once);
        looks_early_ = seconds >= 2 * least;
        for (int quarter = first_quarter; quarter <= 4; ++quarter)
            if (const double until = seconds * quarter / 4;
                quarter == 4 || (looks_early_ && until >= least))
                looks_.push_back({quarter, sliced(load, until)});
    }
    struct judged {
        llmbench::verdict outcome{};
        double seconds = 0, measured = 0;
    };
    /// With the limit at this ratio or difference.
    judged at(llmbench::slo s, double limit) const {
        (llmbench::detail::is_difference(s) ? s.offset : s.factor) = limit;
        judged d;
        for (const look& l : looks_) {
            const llmbench::detail::analyses_at_once analyses(s, l.values,
                                                              rule_at(l.quarter, looks_early_));
            d = {analyses.at(limit).outcome, seconds_ * l.quarter / 4, analyses.measured()};
            if (d.outcome != llmbench::verdict::inconclusive) break;
        }
        return d;
    }

private:
    struct look {
        int quarter;
        llmbench::detail::values_at_once values;
    };
    double seconds_;
    bool looks_early_ = false;
    vector<look> looks_{};
};

}  // namespace twins
