// a rehearsal: the pace of a measured server, and the predicted results
#pragma once

#include "api/result.hpp"
#include "api/target.hpp"
#include "api/units.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/field_json.hpp"
#include "core/base/random.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/described/limits.hpp"
#include "core/described/verdict_text.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/rule.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_fields.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/reports/gate_report.hpp"
#include "core/stored/stored.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/core/engine_model.hpp"

#include <algorithm>  // clamp, max, min, sort
#include <cmath>  // fabs, floor, isfinite, isnan, log, log1p, sqrt, ceil
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The results of an objective over many runs of the full gate, predicted from one run.
struct foreseen {
    double shows_from = not_a_number;    // a true value that fails in nine of ten runs
    double inconclusive = not_a_number;  // share of the runs
    bool is_known() const { return !std::isnan(inconclusive); }
};
inline constexpr double nine_in_ten = 1.2816;  // normal quantile of 90 %

/// The noise of each statistic by name, from its values by repeat: the standard deviation of the
/// logarithm.
inline std::map<std::string, double> noise_of_repeats(
    const std::map<std::string, vector<double>>& all) {
    std::map<std::string, double> noise;
    for (const auto& [name, values] : all) {
        vector<double> logs;
        for (const double v : values)
            if (std::isfinite(v) && v > 0) logs.push_back(std::log(v));
        if (logs.size() >= 2) noise[name] = std::sqrt(sample_variance(logs));
    }
    return noise;
}

/// A verdict's input by name; null if it has none.
inline const list<double>* input_of(const slo_verdict& v, std::string_view name) {
    for (const named_values& n : v.inputs)
        if (name == n.name.c_str()) return &n.values;
    return nullptr;
}
inline double number_of(const slo_verdict& v, std::string_view name, double otherwise) {
    const list<double>* const all = input_of(v, name);
    return all && all->size() == 1 ? (*all)[0] : otherwise;
}

/// The distances from the limit at which repeats with known noise have a verdict, in one run.
struct reaches {
    double fails_from = infinity, passes_to = -infinity;
};
/// `draws`: of a standard normal, one a repeat. An analysis of repeats far on one side has the same
/// reach anywhere on that side, because their spread does not depend on it.
inline reaches reaches_of_run(const slo_verdict& v, const vector<double>& draws, double noise,
                              double s0, const judging_rule& rule, const stored_side& other) {
    const bool in_pairs = v.counted_in == verdict_unit::pair;
    reaches all;
    const auto analysis_at = [&](std::size_t n, double at) {
        vector<double> distances;
        for (std::size_t i = 0; i < n; ++i) distances.push_back(at + noise * draws[i]);
        return in_pairs ? analysis_of_pairs(distances, s0, rule)
                        : analysis_of_repeats(distances, s0, rule, other);
    };
    const fewest_repeats fewest = fewest_repeats_of(
        v.objective, in_pairs ? repeats_are::in_turns : repeats_are::alone, rule.most);
    for (auto n = static_cast<std::size_t>(fewest.pass); n <= draws.size(); ++n) {
        const interim_analysis far_in = analysis_at(n, -100), far_out = analysis_at(n, 100);
        all.passes_to = std::max(all.passes_to, -100 - far_in.pass_bound);
        if (n >= static_cast<std::size_t>(fewest.fail))
            all.fails_from = std::min(all.fails_from, 100 - far_out.fail_bound);
    }
    return all;
}

/// The noise of repeats in later runs. Machines add noise that no server model has; measured noise
/// is complete.
struct foreseen_noise {
    double sd = 0.02;
    bool is_all = false;  // false: added to the spread of this run's repeats
};

/// For a statistic by repeats: draws 100 runs.
inline foreseen foreseen_of_repeats(const slo_verdict& v, judging_rule rule,
                                    const foreseen_noise& noise) {
    const list<double>* seen = input_of(v, "log_distances");
    if (!seen) seen = input_of(v, "distances");
    const double mean = number_of(v, "mean", not_a_number);
    if (!seen || std::isnan(mean)) return {};
    vector<double> own(seen->begin(), seen->end());
    const double of_run = noise.is_all || own.size() < 2 ? 0 : sample_variance(own);
    const double sd = std::sqrt(of_run + noise.sd * noise.sd);
    stored_side other;
    if (is_difference(v.objective) && input_of(v, "stored_values")) return {};
    if (const list<double>* const stored = input_of(v, "stored_values")) {
        vector<double> logs;
        for (const double x : *stored) logs.push_back(std::log(x));
        other = {static_cast<double>(logs.size()), sample_variance(logs),
                 number_of(v, "day_to_day_sd", 0)};
    }
    const bool is_calibrated = number_of(v, "prior_df", 0) > prior_df;
    rule.trusts_prior = rule.trusts_prior || is_calibrated;
    const double s0 = number_of(v, "prior_sd", prior_sd);
    constexpr int runs = 100;
    generator random(1, 1);
    vector<double> fails_from;
    int open = 0;
    for (int i = 0; i < runs; ++i) {
        vector<double> draws(static_cast<std::size_t>(std::max(1, rule.most)));
        for (double& z : draws) z = random.normal();
        const reaches r = reaches_of_run(v, draws, sd, s0, rule, other);
        fails_from.push_back(r.fails_from);
        open += mean >= r.passes_to && mean <= r.fails_from;
    }
    std::sort(fails_from.begin(), fails_from.end());
    double from = nearest_rank(fails_from, 0.9);
    if (other.repeats > 0) from = std::max(from, std::log1p(2 * other.day_sd));
    if (!std::isfinite(from)) return {not_a_number, static_cast<double>(open) / runs};
    return {at_distance(v.objective, from, v.limit, number_of(v, "scale", 1)),
            static_cast<double>(open) / runs};
}
/// The quantiles of Student's t at the levels of a pass and of a fail.
struct quantiles_of_t {
    double pass = 0, fail = 0;
    quantiles_of_t(const slo_verdict& v, const judging_rule& rule) {
        const double df = number_of(v, "df", 1);
        pass = student_t_quantile(normal_cdf(rule.pass_z), df);
        fail = student_t_quantile(normal_cdf(rule.fail_z), df);
    }
    /// How often neither is shown. `over`: how far the value is beyond the limit.
    double open(double over, double pass_se, double fail_se) const {
        const double decided = normal_cdf(-over / pass_se - pass) + normal_cdf(over / fail_se - fail);
        return std::clamp(1 - decided, 0.0, 1.0);
    }
};
/// For a load at once: by the interval of the estimate, as the analysis of slices counts in units of
/// its own.
inline foreseen foreseen_at_once(const slo_verdict& v, const judging_rule& rule) {
    const double sign = v.objective.at_most ? 1 : -1;
    const estimate_t& e = v.estimate;
    const quantiles_of_t t(v, rule);
    const double pass_se = std::fabs((v.objective.at_most ? e.high : e.low) - e.value) / t.pass;
    const double fail_se = std::fabs(e.value - (v.objective.at_most ? e.low : e.high)) / t.fail;
    if (!(pass_se > 0) || !(fail_se > 0) || !std::isfinite(pass_se) || !std::isfinite(fail_se))
        return {};
    return {v.limit + sign * (t.fail + nine_in_ten) * fail_se,
            t.open(sign * (e.value - v.limit), pass_se, fail_se)};
}
/// For a statistic judged within a run: by its own error.
inline foreseen foreseen_within_a_run(const slo_verdict& v, const judging_rule& rule) {
    const double mean = number_of(v, "mean", not_a_number);
    const double se = number_of(v, "standard_error", not_a_number);
    if (!(se > 0) || std::isnan(mean)) return {};
    const quantiles_of_t t(v, rule);
    return {at_distance(v.objective, (t.fail + nine_in_ten) * se, v.limit), t.open(mean, se, se)};
}

/// For a share of requests: by binomial counts of the independent ones. The error guard passes by
/// its observed value.
inline foreseen foreseen_of_counts(const slo_verdict& v, const judging_rule& rule) {
    const double effect = std::max(1.0, number_of(v, "design_effect", 1));
    const double trials = number_of(v, "trials", 0), misses = number_of(v, "misses", 0);
    const double allowed = number_of(v, "allowed", 0), repeats = std::max(1, v.repeats);
    const double n = std::floor(trials / effect * std::max(rule.most / repeats, 1.0));
    if (n < 1 || !is_request_fraction(v.objective.statistic.metric)) return {};
    const double pass_level = number_of(v, "pass_level", 0);
    const double fail_level = number_of(v, "fail_level", 0);
    // The smallest number of misses whose bound is beyond the allowed value.
    const auto fewest = [&](auto&& is_beyond) {
        return 1 + miss_counts::last_below(-1, n + 1, [&](double k) { return !is_beyond(k); });
    };
    const double observed = is_as_loose_as_guard(v.objective) ? error_guard().bound : -1;
    const double open = fewest([&](double k) {
        return k / n > observed && clopper_pearson_upper(k, n, pass_level) > allowed;
    });
    const double fails = fewest([&](double k) {
        return clopper_pearson_lower(k, n, fail_level) > allowed;
    });
    const auto at_least = [&](double k, double p) {
        return k <= 0 ? 1 : k > n || p <= 0 ? 0 : incomplete_beta(k, n - k + 1, p);
    };
    const double high =
        bisect(0, 1, 0.9, [&](double fraction) { return at_least(fails, fraction); });
    const double p = misses / trials, shown = fails > n ? not_a_number : high;
    return {v.objective.at_most ? shown : 1 - shown,
            std::clamp(at_least(open, p) - at_least(fails, p), 0.0, 1.0)};
}

/// Unknown for values that are missing or judged in another way.
inline foreseen foreseen_of(const slo_verdict& v, const judging_rule& rule,
                            const foreseen_noise& noise = {}) {
    if (input_of(v, "trials")) return foreseen_of_counts(v, rule);
    if (input_of(v, "slice_parts")) return foreseen_at_once(v, rule);
    const bool is_of_repeats = input_of(v, values_name(kind_of(v.objective))) != nullptr;
    return is_of_repeats ? foreseen_of_repeats(v, rule, noise) : foreseen_within_a_run(v, rule);
}

/// "inconclusive in 3 % of the runs; a miss is shown in nine of ten from 27.1 ms on".
inline std::string foreseen_text(const slo_verdict& v, const foreseen& f) {
    if (!f.is_known()) return {};
    std::string t = printed("inconclusive in %.0f %% of the runs", f.inconclusive * 100);
    if (std::isnan(f.shows_from)) return t + ", and too few requests to show any miss";
    return filled("{t}; a miss is shown in nine of ten from {value} on[, {distance} the limit]",
                  {{"t", t}, {"value", verdict_value_text(v, f.shows_from)},
                   {"distance", distance_text(v, f.shows_from)}});
}

/// "a rehearsal: pass on the model; inconclusive in 3 % of the runs; ...".
inline std::string rehearsed_text(const slo_verdict& v, const foreseen& f) {
    std::string t = filled("{rehearsal_word}: {outcome} on the model",
                           {{"rehearsal_word", rehearsal_word}, {"outcome", to_string(v.outcome)}});
    if (!v.reason.empty()) t += ", " + str(v.reason);
    const std::string more = foreseen_text(v, f);
    return more.empty() ? t : t + "; " + more;
}
/// Replaces verdicts on a model by texts: the verdict it would have been, and the prediction for
/// other runs. An interrupted gate stays invalid.
inline void mark_rehearsed(gate_report& g, const measurements& seen, const std::string& model,
                           const std::map<std::string, double>& noise, double machine_noise) {
    g.rehearsal.model = model;
    for (const repeat_list* variant : {&seen.candidate, &seen.baseline})
        for (const repeat_data& d : *variant)
            if (d.interrupted) return;
    judging_rule rule = g.judged_by.rule;
    rule.pairs_are_fresh = seen.pairs_are_fresh;
    for (slo_verdict& v : g.verdicts) {
        const auto at = noise.find(noise_name(v.objective));
        const foreseen f = foreseen_of(v, rule,
                                       at == noise.end() ? foreseen_noise{machine_noise}
                                                         : foreseen_noise{at->second, true});
        g.rehearsal.objectives.push_back(
            {str(v.objective.text()), v.outcome, f.shows_from, f.inconclusive});
        v.reason = rehearsed_text(v, f);
        if (f.is_known()) v.detectable = 0;  // the prediction says it for later runs
        v.outcome = verdict::skipped;
    }
    g.outcome = gate_outcome::skipped;
}

/// A server's mean pace under a load: seconds, tokens of a request, requests a second.
struct measured_pace {
    double ttft = 0, tpot = 0, e2e = 0;
    double queue_time = -1;  // from the server's metrics; below 0: unknown
    double itl_spread = 0;   // p90 over p50, less 1
    double prompt_tokens = 0, output_tokens = 0, requests_a_second = 0;
    double users = 0;  // of a closed loop
};

/// An engine that is about as fast under that load. The cost of each running sequence is the same
/// share as in the default engine, because one load does not show it. First-token time that prompts
/// cannot explain, because they would fill most steps, delays every answer.
inline engine engine_at_pace(const measured_pace& m) {
    constexpr double max_prefill = 0.6, little_prefill = 0.05;  // of all steps
    constexpr double max_running = 1e5;  // a file may have any value
    engine e;
    const double sequence_fraction = e.step_per_sequence.seconds() / e.decode_step.seconds();
    const double waited_s = std::max(0.0, m.queue_time);
    const double running =
        std::clamp(m.requests_a_second * std::max(0.0, m.e2e - waited_s), 1.0, max_running);
    // A request is read in one step. An unknown wait is half of another step, if one was running.
    const double unreported = m.queue_time < 0 ? 0.5 * std::min(1.0, running - 1) : 0;
    const double prompt_s = std::max(0.0, m.ttft - waited_s - m.tpot * (1 + unreported));
    const double rate = std::max(m.requests_a_second, 1e-9);
    const double computed_s = std::min(prompt_s, max_prefill / rate);
    const double prefill_fraction = computed_s * rate;
    const double step_s = m.tpot * (1 - prefill_fraction) / (1 + sequence_fraction * running);
    e.decode_step = time_span::from_seconds(step_s);
    e.step_per_sequence = time_span::from_seconds(step_s * sequence_fraction);
    e.prefill_per_token = time_span::from_seconds(computed_s / std::max(1.0, m.prompt_tokens));
    e.faults.delay = time_span::from_seconds(prompt_s - computed_s);
    // With few prompts in between, gaps vary as steps do.
    if (prefill_fraction < little_prefill) e.jitter = std::min(0.5, m.itl_spread / 1.2816);
    e.slots = std::max<long long>(e.slots, static_cast<long long>(std::ceil(4 * running)));
    const double bytes_a_token = e.kv.memory_bytes / kv_capacity_tokens(e.kv);
    const double tokens = 4 * running * (m.prompt_tokens + m.output_tokens);
    e.kv.memory_bytes = std::max(e.kv.memory_bytes, bytes_a_token * tokens);
    e.max_model_len = 1 << 20;  // the measured server accepted the requests
    return e;
}

/// Mean times of an engine under a load, in seconds.
struct modelled_pace {
    double ttft = not_a_number, tpot = not_a_number;
};
/// Of requests of the mean lengths, at the measured rate or from as many users.
inline modelled_pace pace_at_means(const engine& e, const measured_pace& m) {
    engine_model server(e);
    generator random(7, 1);
    const int prompt = std::max(1, static_cast<int>(m.prompt_tokens));
    const int output = std::max(2, static_cast<int>(m.output_tokens));
    const double users = std::min(m.users, 1e4), wanted = std::max(400.0, 4 * users);
    double ttft = 0, tpot = 0, done = 0;
    const auto send = [&](double now) {
        server.submit(now, {.prompt_tokens = prompt, .output_tokens = output});
    };
    const auto finish_step = [&] {
        for (const engine_model::emission& x : server.finish_step()) {
            if (!x.finished) continue;
            ++done;
            ttft += x.when.first_token - x.when.arrived + e.faults.delay.seconds();
            tpot += (x.when.last_token - x.when.first_token) / (output - 1);
            if (users > 0) send(x.when.last_token);
        }
    };
    for (double i = 0; i < users; ++i) send(0);
    for (double at = 0, i = 0; users == 0 && i < wanted; ++i) {
        at += random.exponential() / std::max(m.requests_a_second, 1e-3);
        while (server.step_end() <= at) finish_step();
        send(at);
    }
    while (done < wanted && server.step_end() < infinity) finish_step();
    return {ttft / done, tpot / done};
}

/// How near a fitted engine comes to the times that it is fitted to.
struct fit_of_engine {
    engine like{};
    modelled_pace is{};
    double error = infinity;  // the larger one of both, as a share
    bool is_at_means = true;  // of the run's load: its rate or users, and its mean lengths
    bool is_close() const { return error <= 0.1; }
};
/// Corrects an engine until it has these times: its steps by the time per token, and the first
/// token by the delay before it, or by faster prompts where there is none. `pace_of`: the times of
/// an engine under the load.
template <class PaceOf>
fit_of_engine fitted_engine(const measured_pace& to, engine e, const PaceOf& pace_of) {
    const auto times = [](time_span& t, double by) { t = time_span::from_seconds(t.seconds() * by); };
    fit_of_engine best;
    best.like = e;
    for (int tries = 0; tries < 16 && best.error > 0.02; ++tries) {
        const modelled_pace is = pace_of(e);
        if (!(is.ttft > 0 && is.tpot > 0)) break;
        const double first = to.ttft / is.ttft, each = to.tpot / is.tpot;
        const double error = std::max(std::fabs(1 / first - 1), std::fabs(1 / each - 1));
        if (error < best.error) best = {e, is, error};
        times(e.decode_step, std::clamp(each, 0.5, 2.0));
        times(e.step_per_sequence, std::clamp(each, 0.5, 2.0));
        const double delay_s = e.faults.delay.seconds() + to.ttft - is.ttft;
        e.faults.delay = time_span::from_seconds(std::max(0.0, delay_s));
        if (delay_s < 0) times(e.prefill_per_token, std::clamp(first, 0.5, 1.0));
    }
    return best;
}
inline std::string fit_text(const fit_of_engine& f, const measured_pace& to,
                            const std::string& file) {
    const auto of = [](double ttft, double tpot) {
        return filled("mean(ttft) {ttft:t}, mean(tpot) {tpot:t}", {{"ttft", ttft}, {"tpot", tpot}});
    };
    const std::string there = of(to.ttft, to.tpot);
    if (!f.is_close())
        return filled("an engine that CANNOT be fitted to {file} ({there}): it has {means}; "
                      "repeats differ as there",
                      {{"file", file}, {"there", there}, {"means", of(f.is.ttft, f.is.tpot)}});
    return filled("an engine fitted to {file} ({there}, within {error:.1f%} "
                  "%{is_at_means? at mean lengths}; repeats that differ as there)",
                  {{"file", file}, {"there", there}, {"error", f.error},
                   {"is_at_means", f.is_at_means}});
}

struct reported_pace {
    measured_pace pace{};
    std::string load_hash{};
    std::map<std::string, double> noise{};  // of the logarithm of a repeat's statistic, by name
};

/// p90 over p50, less 1; 0 if the file has none.
inline double spread_of_row(const stored_object& row) {
    const double p50 = row.seconds("p50", 0), p90 = row.seconds("p90", 0);
    return p50 > 0 && p90 > p50 ? p90 / p50 - 1 : 0;
}
/// Throws std::invalid_argument with the reason if the text has no such gate or no pace.
inline reported_pace read_pace(const std::string& json, const std::string& file,
                               const std::string& gate_name) {
    json_reader reader;
    const stored_object root = result_document(reader, json, file);
    const stored_object gate = gate_named(root, file, gate_name);
    const std::string of = file + ": \"" + printable(gate.text("name"), 200) + "\" ";
    const std::string fault = fault_of_stored(gate);
    if (!fault.empty()) refuse({of, fault, ", so its times are none of a server to be modelled"});
    const stored_object variant = gate.at("candidate");
    reported_pace t;
    measured_pace& p = t.pace;
    p.ttft = variant.at("ttft").seconds("mean", 0);
    p.tpot = variant.at("tpot").seconds("mean", 0);
    if (!(p.ttft > 0 && p.tpot > 0))
        refuse({of,
                "reports no ttft and no tpot, which an engine is fitted to: its answers were not "
                    "streamed, or had a token each"});
    const stored_object load = gate.at("scenario");
    t.load_hash = load.text("load_hash");
    p.users = load.number("users", 0, max_count, 0);
    p.itl_spread = spread_of_row(variant.at("itl"));
    p.e2e = variant.at("e2e").seconds("mean", p.ttft + p.tpot);
    p.requests_a_second = variant.number("request_throughput", 0, max_rate, 0);
    const double output = variant.number("output_throughput", 0, max_rate, 0);
    const double input = variant.number("input_throughput", 0, max_rate, 0);
    const double each = std::max(p.requests_a_second, 1e-9);
    p.output_tokens = std::clamp(output / each, 1.0, most_tokens);
    p.prompt_tokens = std::clamp(input / each, 1.0, most_tokens);
    std::map<std::string, vector<double>> values;
    for (const stored_object& r : variant.each("repeats")) {
        vector<named_number> statistics;
        field_reader from(r);
        named_fields(from, {"statistics"}, statistics, any_number);
        for (const named_number& n : statistics) values[n.name].push_back(n.value);
    }
    t.noise = noise_of_repeats(values);
    const vector<double>& waits = values["mean(queue_time)"];
    if (!waits.empty() && mean_of(waits) >= 0) p.queue_time = mean_of(waits);
    return t;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
