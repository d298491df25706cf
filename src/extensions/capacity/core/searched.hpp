// capacity searches as scenarios
#pragma once

#include "api/metrics.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/samples.hpp"
#include "core/planning/load_search.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/requests.hpp"
#include "extensions/capacity/core/found.hpp"
#include "extensions/capacity/core/margins.hpp"
#include "extensions/capacity/core/search.hpp"

#include <algorithm>  // find, find_if, max, min
#include <cmath>  // exp, isfinite, llround
#include <optional>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

// ---- what is refused

/// Refuses capacity objectives without a search.
inline void refuse_without_search(const scenario& s, const arrival_data& a, scenario_use use) {
    const std::string given = "arrivals is " + arrival_text(a) + ", one load: ";
    const char* cure = is_counted_in_users(a) ? "closed_loop(up_to(256)), for one"
                                              : "poisson(up_to(64_rps)), for one";
    if (use == scenario_use::find_capacity)
        refuse({given, "find_capacity searches a load of up_to(...): ", cure});
    for (const slo& x : s.slos)
        if (is_of_capacity(x))
            refuse({"the SLO ", str(x.text()), " is refused: ", given,
                    "a capacity is that of a load of up_to(...): ", cure});
}

inline double max_load(const arrival_data& a) {
    return is_counted_in_users(a) ? static_cast<double>(a.users) : a.rate;
}

/// Refuses scenarios that cannot be searched.
inline void check_search(const scenario& s, scenario_use use) {
    const arrival_data& a = s.arrivals.data();
    const std::string given = "arrivals is " + arrival_text(a) + ": ";
    if (use == scenario_use::measure)
        refuse({given, "run() measures one load, use find_capacity() or a gate()"});
    if (a.max_in_flight != 0)
        refuse({given, "with so many in flight at most, a load above that never reaches the "
                       "server: leave max_in_flight out"});
    int capacities = 0;
    bool has_other = false;
    for (const slo& x : s.slos) {
        const std::string why = "the SLO " + str(x.text()) + " is refused: ";
        if (!is_of_capacity(x)) {
            has_other = has_other || !x.is_advisory;
            if (!is_absolute(x))
                refuse({why, "what a load must hold has limits of its own"});
            if (is_throughput(x.statistic.metric))
                refuse(
                    {why,
                     is_cost(x.statistic.metric) ? "a cost per token falls" : "a throughput rises",
                     " with the load, and cannot be what the load must hold"});
            if (is_of_server(x.statistic.metric))
                refuse({why, "what a load must hold is what its users see; server metrics are "
                             "judged at one load"});
            if (is_of_start(x.statistic.metric))
                refuse({why, "a start has nothing to do with the load"});
            continue;
        }
        ++capacities;
        if (!(x.bound <= max_load(a))) refuse({why, given, "more than that is not tried"});
    }
    if (!has_other)
        refuse({given, "the objectives must say what a load has to keep, as in {p90(ttft) <= "
                       "500_ms, capacity >= 12_rps}"});
    if (capacities == 0 && use != scenario_use::find_capacity)
        refuse({given, "a gate needs an objective that decides it, capacity >= 12_rps for one; "
                       "find_capacity() only measures"});
    if (use != scenario_use::gate && s.repeats != 0)
        refuse({given, printed("repeats is %lld: a search takes as many probes as it needs",
                               static_cast<long long>(s.repeats))});
    if (s.baseline.is_live() || s.baseline.is_stored() || s.baseline.is_of_extension())
        refuse({given, "the scenario has a baseline, and a capacity is held against none"});
}

// ---- from a plan to a search

/// The metric with the unit of the load.
inline metric_id load_metric(const planned_traffic& p) {
    return is_counted_in_users(p.arrivals) ? metric_id::capacity_in_users
                                           : metric_id::capacity_in_rate;
}

inline constexpr int max_probes_of_a_search = 16;
inline constexpr long long requests_of_a_probe = 100;
inline constexpr double seconds_of_a_probe = 20, lead_of_a_probe = 5;

/// The loads of objectives, without duplicates.
inline vector<double> asked_loads(const vector<slo>& slos) {
    vector<double> asked;
    for (const slo& s : slos)
        if (std::find(asked.begin(), asked.end(), s.bound) == asked.end()) asked.push_back(s.bound);
    return asked;
}

/// Loads of counting objectives are decided first. A probe has as many requests as its objectives
/// need.
inline measured_load judged_search(const scenario& s, const repeat_counts& repeats,
                                 scenario_use use) {
    measured_load all;
    all.requests = s.requests == 0 && s.duration.seconds() == 0
                       ? requests_of_a_probe
                       : static_cast<long long>(s.requests);
    for (const bool advisory : {false, true})
        for (const slo& x : s.slos) {
            if (x.is_advisory != advisory) continue;
            (is_of_capacity(x) ? all.slos : all.search.objectives_held).push_back(x);
            if (!is_of_capacity(x))
                all.requests = std::max(all.requests, least_values_of(x.statistic));
        }
    all.search.asked = asked_loads(all.slos);
    all.search.to_the_interval = use == scenario_use::find_capacity;
    if (all.search.to_the_interval) {
        all.measure_all(max_probes_of_a_search);
        all.rule = rule_of_a_load(options_of_an_end(), all.search.objectives_held);
    } else {
        all.first_repeats = repeats.first_repeats;
        all.max_repeats = repeats.max_repeats;
        all.rule = rule_of_a_load(s.judging, all.search.objectives_held, all.max_repeats);
    }
    return all;
}

/// In a search, the other objectives say what a load must meet.
inline void divide_by_loads(const std::string& gate, const measurements& e, judging_parameters& t) {
    const repeat_list& probes = e.candidate;
    const auto is_a_probe = [](const repeat_data& d) { return d.load > 0; };
    const bool searched = any_of(probes, is_a_probe);
    const bool has_capacity = any_of(t.slos, is_of_capacity);
    if (!searched && has_capacity)
        refuse({"slos: \"", gate, "\" was measured at one load, which shows no capacity"});
    if (!searched) return;
    const bool one_load = all_of(probes, [&](const repeat_data& d) {
        return d.load == probes.front().load;
    });
    if (!has_capacity && !one_load)
        refuse({"slos: \"", gate, "\" was measured at several loads: ask for its capacity, "
                                    "beside what a load must keep"});
    if (!has_capacity) return;
    vector<slo> capacities;
    for (const slo& s : t.slos)
        (is_of_capacity(s) ? capacities : t.objectives_held).push_back(s);
    t.slos = std::move(capacities);
    if (t.objectives_held.empty())
        refuse({"slos: they must say what a load has to hold"});
}

// ---- the next load

inline search_parameters search_parameters_of(const arrival_data& a, const planned_judging& j) {
    search_parameters t;
    t.whole = is_counted_in_users(a);
    t.most = max_load(a);
    t.least = t.whole ? 1 : t.most / 1000;
    // Starts low, since overload takes long to drain.
    t.start = j.search.asked.empty() ? std::max(t.least, t.most / 16) : j.search.asked[0];
    t.max_probes = j.max_repeats;
    return t;
}
/// Returns the load of the next probe, nothing if the search ends. For objectives it is each of
/// their loads until that is decided.
inline std::optional<double> next_load(const plan& p, const vector<probe>& probes) {
    const planned_judging& j = *p.judged;
    if (j.search.to_the_interval)
        return next_load(search_parameters_of(p.sent->arrivals, j), probes);
    if (client_gave_up(probes)) return std::nullopt;
    const vector<probed_load> tried = loads_of(probes);
    for (const double load : j.search.asked) {
        const auto at = std::find_if(tried.begin(), tried.end(),
                                     [&](const probed_load& l) { return l.load == load; });
        if (at == tried.end() || (at->shown == carried::open && !at->too_short &&
                                  at->probes < j.max_repeats))
            return load;
    }
    return std::nullopt;
}

/// The most probes of a search.
inline int max_probes(const planned_judging& j) {
    if (j.search.to_the_interval) return j.max_repeats;
    return j.max_repeats * static_cast<int>(std::max<std::size_t>(1, j.search.asked.size()));
}

// ---- the work of a trace

/// The work of requests as planned.
struct planned_work {
    double mean = 0, cv2 = 0;  // of a conversation; 0: no lengths are known
    double turns = 1;
};
inline planned_work usual_work(const planned_traffic& p) {
    constexpr double enough = 20000;
    vector<double> each;
    double turns = 0;
    for (std::size_t c = 0; turns < enough; ++c) {
        const std::size_t n = turns_of(p, c);
        double work = 0;
        for (std::size_t turn = 0; turn < n; ++turn) {
            const trace_item item = item_of(p, c * p.stride + turn);
            work += work_of(item.prompt_tokens, item.output_tokens);
        }
        each.push_back(work);
        turns += std::max(1.0, as_number(n));
    }
    planned_work w;
    w.mean = mean_of(each);
    if (each.size() < 2 || !(w.mean > 0)) return {};
    w.cv2 = sample_variance(each) / (w.mean * w.mean);
    w.turns = turns / as_number(each.size());
    return w;
}

/// The work of a probe is a matter of luck by no more than this: all probes replay one trace, so
/// that more of them do not average it.
inline constexpr double luck_of_a_probe = 0.03;
inline long long requests_for_work(const planned_traffic& p) {
    const planned_work w = usual_work(p);
    const double exact = w.cv2 / (luck_of_a_probe * luck_of_a_probe) * w.turns;
    return static_cast<long long>(rounded_to_two_digits(exact));
}

// ---- the plan of one probe

inline double mean_seconds(const time_distribution& d) {
    using shape = time_distribution::shape;
    return d.kind == shape::fixed     ? d.a
           : d.kind == shape::uniform ? (d.a + d.b) / 2
                                      : d.a * std::exp(d.b * d.b / 2);
}
inline double between_requests_s(const planned_traffic& p, double load, double answer_s) {
    return (is_counted_in_users(p.arrivals) ? answer_s + mean_seconds(p.arrivals.think) : 1) / load;
}
/// Seconds of a probe's measured part.
inline double probe_seconds(const planned_traffic& p, double load, double answer_s) {
    return std::max({p.duration_s > 0 ? p.duration_s : seconds_of_a_probe,
                     least_load_s(answer_s),
                     static_cast<double>(p.requests) * between_requests_s(p, load, answer_s)});
}
/// The load of a probe. Its warm-up has the same load, for the time asked for and until the server
/// is full.
inline planned_traffic traffic_at(planned_traffic t, double load, double answer_s) {
    const double seconds = probe_seconds(t, load, answer_s);
    const double warmup_s =
        static_cast<double>(t.warmup_requests) * between_requests_s(t, load, answer_s);
    t.hash.clear();
    t.described = {};
    t.arrivals.is_searched = false;
    t.warmup_requests = 0;
    const double filling_s = std::max(std::min(lead_of_a_probe, seconds / 4), answer_s);
    t.warmup_s = std::max({t.warmup_s, warmup_s, t.arrivals.users_ramp_s + filling_s});
    t.requests = 0;
    t.duration_s = seconds;
    if (is_counted_in_users(t.arrivals)) t.arrivals.users = std::llround(load);
    else t.arrivals.rate = load;
    if (!is_counted_in_users(t.arrivals) && t.stride == 1) {
        t.requests = static_cast<long long>(rounded_up(load * seconds));
        t.duration_s = 0;
    }
    return t;
}
/// The scenario at one load.
inline plan at_load(const plan& p, double load, double answer_s) {
    plan at = with_traffic(p, [&](planned_traffic& t) { t = traffic_at(t, load, answer_s); });
    return with_judging(std::move(at), [](planned_judging& j) {
        j.slos = std::move(j.search.objectives_held);
        j.search = {};
    });
}

// ---- as text

/// The least length of one probe.
inline std::string extent_of_a_probe(const planned_traffic& p) {
    return printed("probes of %g s and %lld requests at least, longer where answers are slow",
                   p.duration_s > 0 ? p.duration_s : seconds_of_a_probe, p.requests);
}
inline std::string probe_name(const plan& p, std::size_t before) {
    return printed("probe %zu of at most %d", before + 1, max_probes(*p.judged));
}
inline std::string planned_probes_text(const planned_traffic& sent, const planned_judging& j) {
    if (j.search.to_the_interval) return printed("at most %d probes", j.max_repeats);
    std::string loads;
    for (const double load : j.search.asked)
        loads += (loads.empty() ? "" : " and at ") + value_text(load_metric(sent), load);
    return printed("%d to %d probes at ", j.first_repeats, j.max_repeats) + loads;
}

/// What a plan says of its probes.
inline void plan_probes(const scenario& s, planned_traffic& sent, planned_judging& j) {
    if (!sent.searches()) return;
    const bool is_given = s.requests != 0 || s.duration.seconds() != 0;
    if (!j.search.to_the_interval && !is_given)
        sent.requests = std::max(sent.requests, requests_for_work(sent));
    j.search.first_load = search_parameters_of(sent.arrivals, j).start;
    sent.described.extent = extent_of_a_probe(sent);
    sent.described.repeats = planned_probes_text(sent, j);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
