// the fields of a variant's measurements, and of a verdict
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_fields.hpp"
#include "core/judging/decision.hpp"
#include "core/traffic/tokens.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/figures/outcomes.hpp"
#include "core/figures/rows.hpp"

#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <optional>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline void fields_of(field_visitor& v, length_figures& f) {
    v.number({"mean"}, f.mean);
    v.number({"p50"}, f.p50);
    v.number({"p90"}, f.p90);
}
/// The lengths of synthetic prompts: planned, counted by the server, and how they were fitted.
inline void prompt_fields(field_visitor& v, prompt_lengths& p, token_fit& fit) {
    if (!v.has("prompt_lengths", p.known) ||
        !v.begin({"prompt_lengths", "tokens of made-up prompts in answered requests; missing for "
                                    "other workloads", at_times}))
        return;
    if (v.assigns()) p.known = true;
    v.choice({"calibration", "how lengths were aimed at; unknown: a word for a token"},
             fit.lengths, token_fit::quality::exact);
    v.flag({"token_ids", "whether prompts were sent as lists of token ids instead of words",
            at_times}, fit.as_ids);
    v.object({"asked", "", presence::always, "lengths"}, p.asked);
    v.object({"counted", "by the server", presence::always, "lengths"}, p.counted);
    v.end();
}
inline void fields_of(field_visitor& v, metric_row& r) {
    if (!v.begin({metric_name(r.metric), "seconds, of the requests of all repeats together; null "
                                         "where no request has a value or failures reach it",
                  at_times, "latency"}))
        return;
    for (const row_statistic& s : row_statistics) v.number({s.name}, r.*s.value, any_number);
    v.end();
}
inline void fields_of(field_visitor& v, answer_counts& a) {
    v.whole({"without_usage", "answered requests that tell no usage, though their API does",
             at_times}, a.without_usage);
    v.whole({"usage_over_content", "answered requests whose usage reports more tokens than their "
                                   "text can be: it cannot be right", at_times},
            a.over_content);
    v.whole({"may_hide", "answered requests that may have tokens in usage that were never "
                         "streamed, how many is unknown", at_times},
            a.may_hide);
    v.whole({"usage_over_prompt", "answered requests whose usage reports more prompt tokens than "
                                  "what was sent can be", at_times},
            a.over_prompt);
    v.whole({"in_one_piece", "answered requests whose tokens all came at once, after a wait",
             at_times}, a.in_one_piece);
    v.whole({"in_a_lump", "these, and those that began with over 5 % of their tokens at once",
             at_times}, a.in_a_burst);
}
inline void fields_of(field_visitor& v, reasoning_counts& r) {
    v.whole({"requests"}, r.requests);
    v.whole({"reasoning_tokens", "of the requests whose usage says"}, r.tokens);
    v.whole({"output_tokens", "of the same requests"}, r.output);
    v.whole({"unreported", "of the requests, those whose usage does not say"}, r.unreported);
    v.whole({"hidden_tokens", "output tokens that were never streamed", at_times}, r.hidden);
}

inline void fields_of(field_visitor& v, request_tokens& t) {
    v.number({"prompt"}, t.prompt);
    v.number({"output"}, t.output);
}
inline void fields_of(field_visitor& v, label_figures& f) {
    v.text({"label"}, f.label);
    v.whole({"requests", "measured ones"}, f.requests);
    v.whole({"failed"}, f.failed);
    v.object({"tokens_per_request"}, f.tokens);
    for (const metric_id id : {metric_id::ttft, metric_id::tpot, metric_id::itl, metric_id::e2e,
                               metric_id::ttft_from_send}) {
        const metric_row* known = f.row_of(id);
        metric_row row = known ? *known : metric_row{id};
        if (v.has(metric_name(id), known != nullptr)) fields_of(v, row);
    }
    v.number({"output_throughput", "tok/s"}, f.output_throughput, any_number);
    v.number({"request_throughput", "req/s"}, f.request_throughput, any_number);
}

inline void part_fields(field_visitor& v, variant_figures& a) {
    v.list({"labels", "of the parts of a mix, or the steps of sessions", if_any}, a.labels,
           [&](label_figures& f) { fields_of(v, f); });
}

inline std::string about_unit(metric_unit unit) {
    if (unit == metric_unit::time) return "seconds, null where there are none";
    const written_unit* u = unit == metric_unit::fraction ? nullptr : first_unit_of(unit);
    return u ? std::string(u->name) : "";
}

/// Its first `rows` are those of tables, and `kept` are the statistics of its repeats.
inline void fields_of(field_visitor& v, variant_figures& a, token_fit& fit, std::size_t rows,
                      const vector<statistic_data>& kept) {
    prompt_fields(v, a.prompts, fit);
    for (std::size_t i = 0; i < rows; ++i) fields_of(v, a.distributions[i].row);
    for (auto& [metric, value] : a.run_values) {
        const std::string about = about_unit(facts_of(metric).unit);
        const bool of_some =
            metric == metric_id::input_throughput || is_of_answers(metric) || is_cost(metric);
        v.number({metric_name(metric), about.c_str(), of_some ? at_times : presence::always},
                 value, any_number);
    }
    if (v.has("tokens_per_request", !std::isnan(a.tokens.output)))
        v.object({"tokens_per_request", "of completed requests, on the average: where the arms are "
                                        "one server asked in two ways", at_times}, a.tokens);
    part_fields(v, a);
    if (v.has("prefix_cache", a.prefix_cache.prompt > 0) &&
        v.begin({"prefix_cache", "what the server's prefix cache had of the prompts; missing where "
                                 "the server does not say", at_times})) {
        v.number({"cached_tokens"}, a.prefix_cache.cached);
        v.number({"prompt_tokens"}, a.prefix_cache.prompt);
        v.end();
    }
    if (v.has("reasoning", a.reasoning.requests > 0))
        v.object({"reasoning", "requests that reasoned; missing where none did", at_times},
                 a.reasoning);
    if (v.begin({"statuses", "measured requests by outcome"})) {
        for (status_count& c : a.statuses)
            v.whole({to_string(c.status), "", presence::at_times}, c.count);
        v.end();
    }
    v.list({"finish_reasons", "how answered requests ended, most frequent first; empty of scores",
            at_times},
           a.finish_reasons, [&](auto& counted) {
               v.text({"reason", "as the server wrote it, empty: none"}, counted.first);
               v.whole({"count"}, counted.second);
           });
    v.whole({"usage_below_events", "answered requests whose usage reports fewer tokens than "
                                   "events with content came: it cannot be right", at_times},
            a.usage_below_events);
    fields_of(v, a.answers);
    v.list({"repeats", "", presence::always, "repeat"}, a.repeats, [&](repeat_figures& r) {
        vector<named_number> statistics = named_statistics(kept, r);
        fields_of(v, r, r.odd, r.checked, statistics);
    });
}

/// The side of the limit on which values meet it.
enum class good_side : unsigned char { at_most, at_least };
inline const char* to_string(good_side s) {
    return name_at({"at_most", "at_least"}, s);
}

inline void number_list(field_visitor& v, const field& f, types::list<double>& all) {
    vector<double> numbers(all.begin(), all.end());
    v.numbers(f, numbers, any_number);
    if (v.assigns()) all = types::list<double>(numbers);
}
inline void fields_of(field_visitor& v, verdict_cause& c) {
    v.text({"name", "one of core/metric/causes.hpp; it does not change"}, c.name);
    v.text({"whose", "fault it is: client, plan, server, baseline_server or baseline; empty of "
                     "nobody's"}, c.whose);
    number_list(v, {"numbers"}, c.numbers);
}
/// Why a verdict is as it is, in words and in numbers.
inline void reason_fields(field_visitor& v, slo_verdict& of) {
    vector<verdict_cause> causes(of.causes.begin(), of.causes.end());
    v.list({"causes", "of the reason, in its order"}, causes,
           [&](verdict_cause& c) { fields_of(v, c); });
    if (v.assigns()) {
        of.causes = types::list<verdict_cause>(causes);
        of.unit = of.counted_in == verdict_unit::none ? "" : to_string(of.counted_in);
    }
    v.text({"method"}, of.method);
    v.text({"reason"}, of.reason);
    v.text({"advice"}, of.advice);
    v.text({"against_limit", "what was measured beside the limit, in words", if_any},
           of.against_limit);
    v.text({"distance", "of what is judged from the limit, in words", if_any}, of.distance);
    v.begin({"inputs", "every number of the verdict's arithmetic"});
    vector<named_values> inputs(of.inputs.begin(), of.inputs.end());
    vector<std::string> names;
    for (const named_values& n : inputs) names.push_back(str(n.name));
    names = v.names(names);
    inputs.resize(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (v.assigns()) inputs[i].name = names[i];
        number_list(v, {names[i].c_str(), "", at_times}, inputs[i].values);
    }
    if (v.assigns()) of.inputs = types::list<named_values>(inputs);
    v.end();
}
inline void objective_fields(field_visitor& v, slo_verdict& of) {
    std::string text = str(of.objective.text()),
                metric = metric_name(of.objective.statistic.metric);
    std::string which =
        is_of_all(of.objective.statistic) ? "" : selection_text(of.objective.statistic.which);
    std::string until = str(of.objective.advisory_until);
    v.text({"slo", "as its author wrote it"}, text);
    v.choice({"verdict"}, of.outcome, verdict::skipped);
    v.flag({"advisory", "never fails the gate"}, of.objective.is_advisory);
    v.text({"advisory_until", "the day of UTC from which it fails the gate again", if_any}, until);
    v.text({"metric"}, metric);
    v.text({"of", "the requests that it is of, where those are not all", if_any}, which);
}
inline void value_fields(field_visitor& v, slo_verdict& of) {
    v.number({"measured", "of the requests of all repeats together, in seconds, per second, as a "
                          "fraction; of a relative SLO the ratio", at_times},
             of.measured, any_number);
    v.number({"estimate", "what the verdict rests on: the typical repeat, the geometric mean of "
                          "the repeats; of fractions the requests counted"},
             of.estimate.value, any_number);
    v.interval({"interval", "of the estimate, as the verdict used it"}, of.estimate.low,
               of.estimate.high);
    if (v.has("numerator", of.denominator > 0)) {
        v.number({"numerator", "of a ratio, in its unit: what was measured", at_times},
                 of.numerator, any_number);
        v.number({"denominator", "and what that is compared with", at_times}, of.denominator,
                 any_number);
    }
}
inline void limit_fields(field_visitor& v, slo_verdict& of) {
    bool relative = kind_of(of.objective) == limit_kind::ratio;
    bool difference = is_difference(of.objective);
    double distance = headroom(of);
    v.number({"limit"}, of.limit, any_number);
    v.flag({"relative_to_baseline"}, relative);
    if (v.has("difference_to_baseline", difference)) {
        v.flag({"difference_to_baseline", "measured, estimate and limit are differences from "
                "`factor` times the baseline, in the metric's unit", at_times}, difference);
        v.number({"factor", "of the baseline, before the difference", at_times},
                 of.objective.factor, any_number);
    }
    v.number({"headroom", "distance to the limit as a fraction of it, negative outside"}, distance,
             any_number);
    v.number({"detectable", "what this sample shows four times in five"}, of.detectable,
             any_number);
}
/// Reading keeps the objective, which is more than its text.
inline void fields_of(field_visitor& v, slo_verdict& of) {
    objective_fields(v, of);
    value_fields(v, of);
    limit_fields(v, of);
    good_side side = of.objective.at_most ? good_side::at_most : good_side::at_least;
    std::string file = of.objective.at.file;
    v.whole({"repeats"}, of.repeats);
    v.whole({"requests"}, of.requests);
    v.choice({"side", "which side of the limit is the good one"}, side, good_side::at_least);
    v.choice({"decided_by"}, of.decided_by, verdict_method::equal_counts);
    v.choice({"unit", "what repeats counts"}, of.counted_in, verdict_unit::probe);
    reason_fields(v, of);
    v.text({"file"}, file);
    v.whole({"line"}, of.objective.at.line);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
