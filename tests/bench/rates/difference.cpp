// How often a verdict on two servers that were loaded at once is wrong, and what it finds: two equal
// servers, whose limit moves instead of the truth, under noise that both share, noise of each, a
// drift, and bursts. Percentiles of values that hardly differ within a slice, and means with rare
// large values, too. The shipped functions judge the slices, at the looks of a gate. And differences of
// fractions in turns and from a stored run: errors, right answers.
#include "core/judging/at_once.hpp"
#include "core/judging/fraction_pairs.hpp"
#include "core/judging/fractions.hpp"
#include "core/judging/numbers.hpp"
#include "extensions/answers/api.hpp"

#include "../support/twin_loads.hpp"
#include "rates.hpp"

using namespace llmbench;
using namespace rates;
using twins::noise;

namespace {

constexpr noise machines[] = {
    {.name = "quiet"},
    {.name = "10 % shared, for 5 s", .shared_sd = 0.10, .shared_s = 5},
    {.name = "3 % of each and 3 % shared, for 3 s", .shared_sd = 0.03, .own_sd = 0.03},
    {.name = "6 % of each, for 2 s", .own_sd = 0.06, .own_s = 2},
    {.name = "6 % of each, for 5 s", .own_sd = 0.06, .own_s = 5},
    {.name = "a drift of 20 %", .own_sd = 0.02, .drift = 0.2},
    {.name = "the same, 2 % of each for 10 s", .own_sd = 0.02, .own_s = 10, .drift = 0.2,
     .is_promised = false},
    {.name = "each twice as slow for 1 s in 10 s", .burst_every_s = 10},
    {.name = "each four times as slow for 2 s in 20 s", .burst_every_s = 20, .burst_s = 2,
     .burst = 3},
    {.name = "both four times as slow for 2 s in 20 s", .burst_every_s = 20, .burst_s = 2,
     .burst = 3, .bursts_are_shared = true},
    {.name = "10 % shared, 7 % of each, bursts", .shared_sd = 0.10, .shared_s = 5, .own_sd = 0.07,
     .burst_every_s = 20},
};

/// An objective whose limit is relative, the length of the load, and its requests.
struct question {
    const char* name;
    slo objective;
    double seconds = 120;
    twins::requests of{};
    double within = 0.05;  // the limit for what is found, as a ratio
};
vector<question> questions() {
    const twins::requests first{.answer_s = 0.2, .same_sd = 0.3, .own_sd = 0.3};
    return {{"mean(tpot) <= 1.05 * baseline, 2 min", mean(tpot) <= 1.05 * baseline},
            {"the same, 1 min", mean(tpot) <= 1.05 * baseline, 60},
            {"the same, 5 min", mean(tpot) <= 1.05 * baseline, 300},
            {"p90(ttft) <= 1.10 * baseline, 2 min", p90(ttft) <= 1.10 * baseline, 120, first, 0.10},
            {"p99(ttft) <= 1.25 * baseline, 5 min", p99(ttft) <= 1.25 * baseline, 300, first,
             0.25}};
}

/// Percentiles of servers that answer alike within a slice, as a quiet one behind a gateway.
vector<question> narrow_questions() {
    const twins::requests many{.rate = 40, .answer_s = 0.2, .same_sd = 0.001, .own_sd = 0.001};
    const twins::requests few{.answer_s = 0.2, .same_sd = 0.02, .own_sd = 0.02};
    return {{"p90(ttft) <= 1.05 * baseline, 0.1 %, 40 a second, 1 min", p90(ttft) <= 1.05 * baseline,
             60, many},
            {"the same, 2 %, 8 a second, 2 min", p90(ttft) <= 1.05 * baseline, 120, few},
            {"p99(ttft) <= 1.05 * baseline, 2 %, 8 a second, 5 min",
             p99(ttft) <= 1.05 * baseline, 300, few}};
}

enum place : std::size_t { at_limit, same, over, places };

/// The limit of equal servers at which a candidate would be at, under or over it.
double limit_of(place at, const question& q) {
    return at == at_limit ? 1 : at == same ? 1 + q.within : (1 + q.within) / (1 + 2 * q.within);
}

/// At each place, by slices.
sums rates_of(const noise& m, const question& q, const study_run& by, std::uint64_t stream) {
    return by.over([&](sums& sum, std::uint64_t trial) {
        generator random = by.random(trial, stream);
        const twins::machine on = twins::machine_of(m, q.seconds, random);
        const twins::looked_at load(twins::load_of(on, q.of, q.seconds, random), q.seconds);
        for (const place at : {at_limit, same, over}) {
            const auto d = load.at(q.objective, limit_of(at, q));
            sum.at(at).add(d.outcome, std::llround(d.seconds));
        }
    });
}

void rates_of_ratios(study_run& by, const vector<question>& asked, std::uint64_t stream) {
    for (const question& q : asked) {
        by.table(q.name, {"at the limit", "same build", printed("%.0f %% slower", q.within * 200)});
        for (const noise& m : machines) {
            ++stream;
            by.row(m.name, [&] {
                sums r = rates_of(m, q, by, stream);
                const std::string name = std::string(q.name) + ", " + m.name;
                by.must.valid(name, r.at(at_limit));
                // Noise that lasts as long as a slice is hardly seen in one minute.
                const bool is_short = q.seconds < 120;
                if (m.is_promised)
                    by.must.at_limit(name, r.at(at_limit), is_short ? 0.06 : 0.05, is_short ? 0.02 : 0.01);

                return fractions_of(r, 0, places, ", %.0f s");
            });
        }
    }
}
void rates_of_wide_ratios(study_run& by) { rates_of_ratios(by, questions(), 300); }
void rates_of_narrow_ratios(study_run& by) { rates_of_ratios(by, narrow_questions(), 400); }

/// Two equal servers of which some requests take far longer, more of one by luck.
void rates_of_rare_values(study_run& by) {
    by.table("mean(ttft), rare requests take longer",
             {"<= baseline", "<= baseline + 0 ms", "<= 1.05 * baseline", "<= 1.5 * baseline"});
    std::uint64_t stream = 519;
    for (const double seconds : {120.0, 60.0, 300.0})
        for (const auto& [share, times] :
             {std::pair(0.002, 500.0), std::pair(0.003, 200.0), std::pair(0.01, 20.0), std::pair(0.03, 200.0)}) {
            twins::requests of{.answer_s = 0.2, .same_sd = 0.1};
            of.rare = share;
            of.times = times;
            ++stream;
            const std::string name =
                printed("%.0f min, %.1f %% of them %.0f times as long", seconds / 60, share * 100, times);
            by.row(name, [&] {
                sums r = by.over([&](sums& sum, std::uint64_t trial) {
                    generator random = by.random(trial, stream);
                    const twins::machine on = twins::machine_of({.name = ""}, seconds, random);
                    const twins::looked_at load(twins::load_of(on, of, seconds, random), seconds);
                    const slo ratio = mean(ttft) <= 1.05 * baseline;
                    sum.at(0).add(load.at(ratio, 1).outcome, 1);
                    sum.at(1).add(load.at(mean(ttft) <= baseline + 1_ms, 1e-12).outcome, 1);
                    sum.at(2).add(load.at(ratio, 1.05).outcome, 1);
                    sum.at(3).add(load.at(ratio, 1.5).outcome, 1);
                });
                for (const std::size_t i : {0u, 1u}) by.must.at_limit(name, r.at(i));
                for (const std::size_t i : {2u, 3u}) by.must.at_most(name + ", fails", r.at(i).failed(), 0.01);
                return fractions_of(r, 0, 4);
            });
        }
}

/// A candidate that stalls for 2 s at a time, ten times slower, as often as its p90 allows: in
/// 10.5 % of the time, so that its true p90 is ten times the baseline's; and half as often.
void rates_of_stalls(study_run& by) {
    by.table("p90(ttft) <= L * baseline, stalls of the candidate", {"L = 1.1", "L = 2.5"});
    for (const double share : {0.105, 0.05}) {
        const std::string name = printed("in %.1f %% of the time", share * 100);
        by.row(name, [&] {
            sums r = by.over([&](sums& sum, std::uint64_t trial) {
                generator random = by.random(trial, 530);
                const twins::machine on = twins::machine_of({.name = ""}, 120, random);
                vector<twins::twin> load =
                    twins::load_of(on, {.answer_s = 0.2, .same_sd = 0.02, .own_sd = 0.02}, 120, random);
                double begins = 0, ends = -200;  // long before the load
                for (twins::twin& t : load) {
                    while (ends < t.at_s) {
                        begins = ends + 2 * (1 / share - 1) * random.exponential();
                        ends = begins + 2 * random.exponential();
                    }
                    if (t.at_s > begins) t.mine *= 10;
                }
                const twins::looked_at looks(load, 120);
                std::size_t i = 0;
                for (const double limit : {1.1, 2.5})
                    sum.at(i++).add(looks.at(p90(ttft) <= 1.1 * baseline, limit).outcome, 1);
            });
            // A few stalls in two minutes hardly tell how many there are: no level is promised.
            if (share < 0.1)
                for (const tally& t : r.tallies) by.must.at_most(name + ", fails", t.failed(), 0.01);
            return fractions_of(r, 0, 2);
        });
    }
}

/// What a proxy adds: `mean(ttft) <= baseline + 1_ms`, 50 requests a second for a minute, a ttft of
/// 15 ms whose requests spread by 20 %.
void rates_of_a_proxy(study_run& by) {
    const twins::requests first{.rate = 50, .answer_s = 0.015, .same_sd = 0.2, .own_sd = 0.1};
    const slo s = mean(ttft) <= baseline + 1_ms;
    by.table("mean(ttft) <= baseline + 1 ms, 1 min, a proxy adds", {"0.5 ms", "1 ms", "1.5 ms"});
    for (const noise& m : machines)
        by.row(m.name, [&] {
            sums r = by.over([&](sums& sum, std::uint64_t trial) {
                generator random = by.random(trial, 500);
                const twins::machine on = twins::machine_of(m, 60, random);
                vector<twins::twin> load = twins::load_of(on, first, 60, random);
                for (twins::twin& t : load) {
                    t.mine *= 0.015;
                    t.other *= 0.015;
                }
                const twins::looked_at looks(load, 60);
                // The proxy adds nothing, and the limit moves.
                for (std::size_t i = 0; i < 3; ++i)
                    sum.at(i).add(looks.at(s, i == 1 ? 1e-12 : i == 0 ? 0.0005 : -0.0005).outcome, 1);
            });
            if (m.is_promised) by.must.at_limit(std::string("a proxy, ") + m.name, r.at(1), 0.06, 0.02);
            return fractions_of(r, 0, 3);
        });
}

// ---- fractions, in turns: four to eight pairs

/// How requests of a repeat miss: alone, so many in a row, or in some repeats more.
struct misses_of_server {
    double rate = 0;
    int burst = 1;
    double between = 0;  // variance of a repeat's rate over its square

    misses_of_server with(double more) const { return {rate + more, burst, between}; }
};
column missed(const misses_of_server& m, int n, generator& random) {
    column c;
    double rate = m.rate / m.burst;
    if (m.between > 0) rate *= random.gamma(1 / m.between) * m.between;
    int left = 0;
    for (int i = 0; i < n; ++i) {
        if (left == 0 && random.uniform() < rate) left = m.burst;
        c.misses.push_back(left > 0);
        left -= left > 0;
    }
    c.counts.add(c.misses);
    c.value = c.counts.value(metric_id::error_rate);
    c.requests = static_cast<std::size_t>(n);
    return c;
}
/// Questions drawn for a gate: of each, whether both variants are right, one, or none; some flip.
struct drawn_questions {
    vector<double> mine{}, other{};  // chance to be right
};
drawn_questions questions_of(int n, double apart, double difference, double flips,
                             generator& random) {
    drawn_questions q;
    for (int i = 0; i < n; ++i) {
        const double u = random.uniform(), only_mine = (apart + difference) / 2;
        const double right = random.uniform() < 0.85 ? 1 : 0;
        const bool is_mine = u < only_mine, is_other = !is_mine && u < apart;
        const double both = random.uniform() < flips ? 0.5 : right;
        q.mine.push_back(is_mine ? 1 : is_other ? 0 : both);
        q.other.push_back(is_mine ? 0 : is_other ? 1 : both);
    }
    return q;
}
column answered_by(const vector<double>& chances, generator& random) {
    column c;
    for (std::size_t i = 0; i < chances.size(); ++i) {
        c.misses.push_back(!(random.uniform() < chances[i]));
        c.questions.push_back(static_cast<long long>(i));
    }
    c.counts.add(c.misses);
    c.value = c.counts.value(metric_id::accuracy);
    c.requests = chances.size();
    return c;
}
/// `next`: adds the columns of a pair.
template <class Next>
verdict judged_by_pairs(const slo& s, Next&& next) {
    static const judging_rule rule = rule_of({}, first_pair_analysis, last_pair_analysis, 1);
    judging_parameters by;
    by.slos = {s};
    by.rule = rule;
    objective_columns of;
    of.how = repeats_are::in_turns;
    return judged_in_turn(
        first_pair_analysis, last_pair_analysis,
        [&] {
            const auto [mine, other] = next();
            for (const auto& [to, c] : {std::pair(&of.mine, &mine), std::pair(&of.other, &other)}) {
                to->each.push_back(std::make_shared<const column>(*c));
                fraction_counts all;
                for (const shared_column& each : to->each) all.add(each->counts);
                to->together = all.value(s.statistic.metric);
            }
        },
        [&] { return walked(by_fraction_pairs(of, by, s)); }).outcome;
}

/// A row of candidates that are the same, worse by the limit, and worse by four of it: what
/// judge(random, worse by) says. Each has random numbers of its own.
template <class Judge>
void row_at_levels(study_run& by, const std::string& name, std::uint64_t stream, bool is_promised, Judge&& judge) {
    by.row(name, [&] {
        sums r = by.over([&](sums& sum, std::uint64_t trial) {
            for (std::size_t i = 0; i < 3; ++i) {
                generator random = by.random(trial, stream + i);
                sum.at(i).add(judge(random, i == 0 ? 0 : i == 1 ? 0.01 : 0.04), 1);
            }
        });
        if (is_promised) by.must.at_limit(name, r.at(1));
        return fractions_of(r, 0, 3);
    });
}

void rates_of_fractions(study_run& by) {
    by.table("error_rate <= baseline + 1 pct, 4 to 8 pairs", {"the same", "1 % more", "4 % more"});
    const struct {
        const char* name;
        misses_of_server of;
        bool is_promised = true;
    } kinds[] = {{"none fails", {}},
                 {"0.2 %", {0.002}},
                 {"2 %", {0.02}},
                 {"0.2 %, five in a row", {0.002, 5}},
                 {"2 %, five in a row", {0.02, 5}},
                 {"2 %, repeats differ by half", {0.02, 1, 0.25}},
                 {"2 %, repeats differ by twice", {0.02, 1, 4}, false}};
    for (const int n : {100, 500})
        for (const auto& k : kinds) {
            // A burst that no repeat has is not seen.
            const bool is_promised = k.is_promised && (k.of.burst == 1 || n >= 500);
            row_at_levels(by, printed("%d requests, %s", n, k.name), 600, is_promised, [&](generator& random, double more) {
                return judged_by_pairs(error_rate <= baseline + 1_pct, [&] {
                    column mine = missed(k.of.with(more), n, random);
                    return std::pair(std::move(mine), missed(k.of, n, random));
                });
            });
        }

    by.table("accuracy >= baseline - 1 pct, 4 to 8 pairs", {"the same", "1 % less", "4 % less"});
    for (const int n : {200, 1000})
        for (const double apart : {0.0, 0.02, 0.1})
            for (const double flips : {0.0, 0.2})
                row_at_levels(by, printed("%d questions, %.0f %% differ, %.0f %% flip", n, apart * 100, flips * 100), 700,
                              true, [&](generator& random, double less) {
                    const drawn_questions q = questions_of(n, std::max(apart, less), -less, flips, random);
                    return judged_by_pairs(accuracy >= baseline - 1_pct, [&] {
                        column mine = answered_by(q.mine, random);
                        return std::pair(std::move(mine), answered_by(q.other, random));
                    });
                });
}

/// A stored run of five repeats, and a later one. `stored`, `mine`: draw the column of a repeat.
template <class Stored, class Mine>
verdict judged_by_stored(const slo& s, double day_sd, Stored&& stored, Mine&& mine) {
    judging_parameters by;
    by.slos = {s};
    by.rule = rule_of({}, first_analysis, last_analysis, 1);
    by.stored.file = "b.json";
    by.stored.day_sd = day_sd;
    for (int i = 0; i < last_analysis; ++i) {
        const column c = stored();
        const kept_counts kept = counts_to_keep(c);
        by.stored.values[str(s.statistic.name)].push_back(c.value);
        for (const count_field& f : count_fields)
            by.stored.values[f.of(s.statistic)].push_back(kept.*f.count);
    }
    objective_columns of;
    fraction_counts all;
    return judged_in_turn(
        first_analysis, last_analysis,
        [&] {
            of.mine.each.push_back(std::make_shared<const column>(mine()));
            all.add(of.mine.each.back()->counts);
            of.mine.together = all.value(s.statistic.metric);
        },
        [&] { return decision_by_method(of, by, s, sought::first); }).outcome;
}
/// The chances of questions to be answered rightly: the first ones flip, the last ones are right.
vector<double> chances_of(int n, double right, double flips) {
    const double always = (right - flips / 2) * n;
    vector<double> chances;
    for (int i = 0; i < n; ++i)
        chances.push_back(i < flips * n ? 0.5 : std::clamp(always - (n - 1 - i), 0.0, 1.0));
    return chances;
}

void rates_of_stored_fractions(study_run& by) {
    by.table("error_rate <= baseline + 1 pct, stored, 2 to 5 repeats", {"the same", "1 % more", "4 % more"});
    const struct {
        const char* name;
        misses_of_server of;
        double day_sd = 0.05;
        bool is_promised = true;
    } kinds[] = {{"none fails", {}},
                 {"0.2 %", {0.002}},
                 {"2 %", {0.02}},
                 {"2 %, days differ by 30 %", {0.02}, 0.3},
                 {"2 %, five in a row", {0.02, 5}},
                 {"2 %, repeats differ by half", {0.02, 1, 0.25}, 0.05, false}};
    for (const int n : {100, 500})
        for (const auto& k : kinds) {
            const bool is_promised = k.is_promised && (k.of.burst == 1 || n >= 500);
            row_at_levels(by, printed("%d requests, %s", n, k.name), 900, is_promised, [&](generator& random, double more) {
                misses_of_server today = k.of;
                today.rate = k.of.rate * std::exp(k.day_sd * random.normal()) + more;
                return judged_by_stored(
                    error_rate <= baseline + 1_pct, k.day_sd, [&] { return missed(k.of, n, random); },
                    [&] { return missed(today, n, random); });
            });
        }

    by.table("accuracy >= baseline - 1 pct, stored, 2 to 5 repeats", {"the same", "1 % less", "4 % less"});
    for (const int n : {200, 1000})
        for (const double wrong : {0.02, 0.15})
            for (const double flips : {0.0, wrong}) {
                row_at_levels(by, printed("%d questions, %.0f %% wrong, %.0f %% flip", n, wrong * 100, flips * 100), 920,
                              true, [&](generator& random, double less) {
                    constexpr double day_sd = 0.05;
                    const double more = wrong * std::expm1(day_sd * random.normal());
                    const vector<double> then = chances_of(n, 1 - wrong, flips),
                                         now = chances_of(n, 1 - wrong - less - more, flips);
                    return judged_by_stored(accuracy >= baseline - 1_pct, day_sd,
                                            [&] { return answered_by(then, random); },
                                            [&] { return answered_by(now, random); });
                });
            }
}

/// Questions are judged at the end of a load, which no look ends.
verdict judged_at_the_end(const values_at_once& v, slo s, double limit) {
    s.offset = limit;
    return analyses_at_once(s, v, twins::rule_at(4, false)).at(limit).outcome;
}
/// Paired answers of one load at once, by slices and by their counts.
void rates_of_answers_at_once(study_run& by) {
    by.table("accuracy >= baseline - 1 pct, at once", {"the same", "1 % less", "4 % less"});
    for (const int n : {480, 2000})
        for (const double apart : {0.0, 0.02, 0.1})
            row_at_levels(by, printed("%d questions, %.0f %% differ, 5 %% flip", n, apart * 100), 800, true,
                          [&](generator& random, double less) {
                const drawn_questions q = questions_of(n, std::max(apart, less), -less, 0.05, random);
                values_at_once v;
                v.slices = most_slices_at_once;
                v.is_fraction = true;
                for (std::size_t k = 0; k < q.mine.size(); ++k) {
                    const std::size_t slice = k * v.slices / q.mine.size();
                    v.mine.add(random.uniform() < q.mine[k], slice);
                    v.other.add(random.uniform() < q.other[k], slice);
                    v.mine.questions.push_back(static_cast<long long>(k));
                    v.other.questions.push_back(static_cast<long long>(k));
                }
                return judged_at_the_end(v, accuracy >= baseline - 1_pct, -0.01);
            });
}

// ---- errors at once: one load, whole or with its looks

/// How the errors of a load come: so many requests in a row, always or on average, rows of a share
/// of the load, every second request, or those of one half alone.
struct order_of_errors {
    const char* name;
    std::size_t row = 1;
    double part = 0;  // of the load, as a row
    bool in_turns = false, in_half = false;
    bool is_promised = true;
    bool varies = false;
    /// The row of a request that is in one.
    double mean_row() const { return as_number(varies ? 2 * row - 1 : row); }
};
constexpr order_of_errors orders[] = {
    {"at random"},
    {"every second", 1, 0, true},
    {"in rows of 2", 2},
    {"in rows of 5", 5},
    {"in rows of 10", 10},
    {"in rows of 5 on average", 5, 0, false, false, true, true},
    {"in rows of a tenth of the load", 1, 0.1, false, false, false},
    {"in the second half, at random", 1, 0, false, true}};
/// The misses of a load with this rate, expected over all loads.
vector<bool> misses_of(const order_of_errors& o, double rate, std::size_t n, generator& random) {
    vector<bool> all(n);
    const std::size_t row = o.part > 0 ? static_cast<std::size_t>(o.part * as_number(n)) : o.row;
    // Every second request of a stretch that lasts as long as that takes.
    const std::size_t begin = o.in_turns
                                  ? static_cast<std::size_t>(random.uniform() * as_number(n))
                                  : 0;
    const double stretch = std::min(1.0, 2 * rate) * as_number(n);
    const double begins = rate / (as_number(row) * (1 - rate) + rate);
    std::size_t left = 0;
    const auto next_row = [&] {
        if (!o.varies) return row;
        const double ends = 1 / as_number(row);  // after each request
        return 1 + static_cast<std::size_t>(random.exponential() / -std::log1p(-ends));
    };
    if (row > 1 && random.uniform() < rate)
        left = o.varies ? next_row() : 1 + static_cast<std::size_t>(random.uniform() * as_number(row));
    for (std::size_t i = 0; i < n; ++i) {
        if (o.in_turns) {
            all[i] = i % 2 == 0 && as_number((i + n - begin) % n) < stretch;
        } else if (row > 1) {
            if (left == 0 && random.uniform() < begins) left = next_row();
            all[i] = left > 0;
            left -= left > 0;
        } else {
            const bool may = !o.in_half || i >= n / 2;
            all[i] = may && random.uniform() < (o.in_half ? std::min(1.0, 2 * rate) : rate);
        }
    }
    return all;
}
/// A verdict on the misses in the first quarters of one load.
verdict judged_alone_at_once(const slo& s, sought which, const judging_rule& rule, const vector<bool>& misses,
                             std::size_t quarters) {
    judging_parameters by;
    by.slos = {s};
    by.rule = rule;
    column c;
    for (std::size_t i = 0; i < misses.size() * quarters / 4; ++i) {
        c.misses.push_back(misses[i]);
        if (is_of_answers(s.statistic.metric)) c.questions.push_back(static_cast<long long>(i));
    }
    c.counts.add(c.misses);
    c.requests = c.misses.size();
    c.value = c.counts.value(s.statistic.metric);
    objective_columns of;
    of.how = repeats_are::at_once;
    of.mine.together = c.value;
    of.mine.each.push_back(std::make_shared<const column>(std::move(c)));
    return walked(by_counts(of, by, s), which).outcome;
}
/// The values of both variants in the first quarters of a load.
values_at_once sliced_misses(const slo& s, const vector<bool>& mine, const vector<bool>& other,
                             std::size_t quarters) {
    const std::size_t until = mine.size() * quarters / 4;
    const bool counts_misses = s.statistic.metric == metric_id::error_rate;
    values_at_once v;
    v.is_fraction = true;
    v.slices = most_slices_at_once * quarters / 4;
    for (const auto& [to, misses] : {std::pair(&v.mine, &mine), std::pair(&v.other, &other)})
        for (std::size_t i = 0; i < until; ++i) {
            to->add((*misses)[i] == counts_misses, i * v.slices / until);
            if (is_of_answers(s.statistic.metric)) to->questions.push_back(static_cast<long long>(i));
        }
    return v;
}

/// An objective, how many requests miss at its limit and of a baseline, and those of its columns.
struct errors_at_once {
    const char* name;
    slo objective;
    sought which;
    bool looks;
    double limit, base;
    vector<double> rates;
};
/// A verdict on the misses of one load, or of both variants: after all of it, or at looks as well.
verdict judged_at_once(const errors_at_once& k, const vector<bool>& mine, const vector<bool>& other) {
    for (const std::size_t quarters : {2u, 3u, 4u}) {
        if (!k.looks && quarters < 4) continue;
        const judging_rule& rule = twins::rule_at(static_cast<int>(quarters), k.looks);
        const slo& s = k.objective;
        const verdict outcome =
            is_absolute(s) ? judged_alone_at_once(s, k.which, rule, mine, quarters)
                           : analyses_at_once(s, sliced_misses(s, mine, other, quarters), rule).at(s.offset).outcome;
        if (outcome != verdict::inconclusive) return outcome;
    }
    return verdict::inconclusive;
}
columns errors_of(study_run& by, const errors_at_once& k, std::size_t n, const order_of_errors& order,
                  const std::string& name) {
    sums r = by.over([&](sums& sum, std::uint64_t trial) {
        for (std::size_t i = 0; i < k.rates.size(); ++i) {
            generator random = by.random(trial, 1000 + i);
            const vector<bool> mine = misses_of(order, k.rates[i], n, random),
                               other = misses_of(order, k.base, n, random);
            sum.at(i).add(judged_at_once(k, mine, other), 1);
        }
    });
    for (std::size_t i = 0; i < k.rates.size(); ++i) {
        // A load that ends early never sends what would fail.
        const bool ends_before = k.looks && (order.in_half || order.in_turns);
        if (k.rates[i] == 0.5 && order.part == 0 && !ends_before)
            by.must.at_least(name + ", 50 %", r.at(i).failed(), 0.95);
        // A burst that no load shows is not seen.
        const bool has_bursts = k.limit * as_number(n) >= 3 * order.mean_row();
        const bool is_looked_at = !k.looks || is_absolute(k.objective);
        if (k.rates[i] != k.limit || !order.is_promised || !has_bursts || !is_looked_at) continue;
        by.must.at_limit(name, r.at(i), k.which == sought::first ? 0.05 : 1);
    }
    return fractions_of(r, 0, k.rates.size());
}

void rates_of_errors_at_once(study_run& by) {
    constexpr sought first = sought::first, guard = sought::guards_first;
    const vector<double> few{0, 0.009, 0.02, 0.10, 0.5}, many{0.05, 0.1, 0.15, 0.3, 0.5},
        more{0.002, 0.012, 0.022, 0.052, 0.5}, far{0.05, 0.1, 0.15, 0.3, 0.5};
    const errors_at_once kinds[] = {
        {"the guard, error_rate <= 1 %", error_guard(), guard, false, 0.01, 0, {0.005, 0.01, 0.02, 0.10, 0.5}},
        {"the same, with looks", error_guard(), guard, true, 0.01, 0, {0.005, 0.01, 0.02, 0.10, 0.5}},
        {"error_rate <= 0.9 %", error_rate <= 0.9_pct, first, false, 0.009, 0, few},
        {"goodput >= 90 %", goodput(ttft <= 1_s) >= 90_pct, first, false, 0.1, 0, many},
        {"accuracy >= 90 %", accuracy >= 90_pct, first, false, 0.1, 0, many},
        {"error_rate <= baseline + 1 %, 0.2 %", error_rate <= baseline + 1_pct, first, false, 0.012, 0.002, more},
        {"the same, with looks that no gate takes", error_rate <= baseline + 1_pct, first, true, 0.012, 0.002, more},
        {"goodput >= baseline - 5 %, 5 %", goodput(ttft <= 1_s) >= baseline - 5_pct, first, false, 0.1, 0.05, far},
        {"accuracy >= baseline - 5 %, 5 %", accuracy >= baseline - 5_pct, first, false, 0.1, 0.05, far}};
    for (const errors_at_once& k : kinds) {
        by.table(k.name, percents(k.rates));
        for (const std::size_t n : {240u, 960u, 2400u, 4800u})
            for (const order_of_errors& order : orders) {
                const std::string name = printed("%zu requests, %s", n, order.name);
                by.row(name, [&] { return errors_of(by, k, n, order, std::string(k.name) + ", " + name); });
            }
    }
}

void begin(study_run& by) {
    std::printf("Pass/fail/inconclusive in %%; %lld loads.\n", by.trials);
}
const registered differences({"difference",
                              2000,
                              100,
                              {{"ratios", rates_of_wide_ratios},
                               {"narrow", rates_of_narrow_ratios},
                               {"rare", rates_of_rare_values},
                               {"stalls", rates_of_stalls},
                               {"proxy", rates_of_a_proxy},
                               {"fractions", rates_of_fractions},
                               {"stored", rates_of_stored_fractions},
                               {"answers", rates_of_answers_at_once},
                               {"errors", rates_of_errors_at_once}},
                              begin});

}  // namespace
