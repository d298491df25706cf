// the list of checks, in order
// A verdict is what its numbers say, and then what the first check says that finds a cause. The
// names stand in guides/what_can_fool_a_gate.md as well, each with the real case that it catches.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/metric/table.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/client.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/comparability.hpp"
#include "core/judging/cross_check.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/load.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/samples.hpp"
#include "core/judging/server.hpp"
#include "core/judging/validity.hpp"

#include <array>  // to_array
#include <cstddef>  // size_t
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Checks of the gate, of each repeat and variant are made once for the variants that an objective
/// needs. Those of the answers are made for each variant behind each part of an objective.
enum class check_of : unsigned char { gate, repeat, variant, objective, label, answers };
/// What the cause does to the verdict. Only `adds` lets later checks of the same verdict speak.
enum class check_does : unsigned char {
    invalidates, opens, keeps_a_fail,  // which other verdicts under such a load are not
    leads, adds,                       // a word before or after the others
    advises                            // adds a word and a way out
};
/// The column on which the cause decides: a verdict that is the same there stands. `none`: the
/// numbers are not even shown.
enum class check_reads : unsigned char {
    none, measured, buffered, text_alone, missing_worst, late
};

struct check {
    const char* name;
    check_of of;
    check_does does = check_does::invalidates;
    check_reads reads = check_reads::measured;
    // One of three:
    cause (*in_gate)(const gate_in_check&) = nullptr;
    cause (*in_answers)(const answer_counts&) = nullptr;
    cause (*finds)(objective_in_check&) = nullptr;
    bool metric_facts::*only = nullptr;  // metrics that answers matter to; null: all
    constexpr check(const char* n, check_of o, cause (*f)(const gate_in_check&))
        : name(n), of(o), in_gate(f) {}
    constexpr check(const char* n, check_of o, cause (*f)(const answer_counts&),
                    bool metric_facts::*m = nullptr, check_reads r = check_reads::measured)
        : name(n), of(o), reads(r), in_answers(f), only(m) {}
    constexpr check(const char* n, check_of o, cause (*f)(objective_in_check&),
                    check_does d = check_does::invalidates,
                    check_reads r = check_reads::measured)
        : name(n), of(o), does(d), reads(r), finds(f) {}
    cause found_in(objective_in_check& o) const {
        if (finds) return finds(o);
        return !only || concerns(*o.part, only) ? in_answers(*o.answers) : cause{};
    }
};

/// The words on the server's state where a service is missed or left open.
inline cause server_state(objective_in_check& o) {
    const bool open = o.is_in(verdict::fail) || o.is_in(verdict::inconclusive);
    const vector<cause>& state = o.g.state;
    if (!open || !o.is_of(is_of_service) || o.v.repeats == 0 || state.empty()) return {};
    o.v.why.insert(o.v.why.end(), state.begin(), state.end() - 1);
    return state.back();
}
/// Which answers were wrong, or differ, behind a verdict on that.
inline cause which_answers(objective_in_check& o) {
    const auto repeats = static_cast<std::size_t>(o.v.repeats);
    if (repeats == 0) return {};
    switch (o.s.statistic.metric) {
    case metric_id::same_answers: return answers_differ(o.e, o.s.statistic, repeats);
    case metric_id::accuracy: return wrong_answers(o.e, o.s.statistic, repeats);
    default: return {};
    }
}
/// What is told of a few answers of the candidate beside a pass.
inline cause told_of_a_pass(objective_in_check& o) {
    const bool matters = o.is_in(verdict::pass) && o.is_of(is_of_service);
    return matters ? of_a_few_answers(o.g.candidate) : cause{};
}

inline constexpr auto checks = [] {
    using enum check_of;
    using enum check_does;
    using enum check_reads;
    using g = const gate_in_check&;
    using o = objective_in_check&;
    using c = answer_counts;
    constexpr auto decoding = &metric_facts::is_of_decoding, gaps = &metric_facts::is_of_gaps,
                   output = &metric_facts::counts_output;
    return std::to_array<check>({
        // Ctrl-C, SIGTERM or the end of the time before the first repeat.
        {"stopped_before", objective,
         [](o in) { return in.e.candidate.empty() ? in.stopped() : cause{}; }, opens, none},

        // ---- once for all objectives of the same variants
        // Runs of three settings of max_num_seqs, given to `judge` as three repeats.
        {"unsupported_files", gate, unsupported_files},
        // No descriptors or ports left in a container. False alarm: a single one, so over 1 %.
        {"client_without", gate, [](g in) { return missing_on_client(in.variants); }},
        // A rank of MPI that a busy node starts late.
        {"start_skew", gate, start_skew},
        // Ctrl-C in a load.
        {"interrupted", gate, was_interrupted},
        // A server that runs out of memory. False alarm: a side task that ends it.
        {"server_gone", repeat, server_went},
        // An adapter that does not load. False alarm: a step that may fail, which says so.
        {"side_task", repeat, fault_of_tasks},
        // A crash loop under a supervisor. False alarm: a start time that moves by a second, and
        // replicas behind one address.
        {"restarted", repeat, [](g in) { return restarted(in.e, *in.repeat); }},
        // A colleague's load on the same GPU. False alarm: pages of stages or workers that each
        // count each request.
        {"served_others", repeat,
         [](g in) {
             return in.e.counts_work ? cause{} : served_others(in.unfinished, *in.repeat);
         }},
        // A wrong key, a model that is not there.
        {"no_success", variant, no_success},

        // ---- without the numbers, which are of something else
        // Files of tools that define ttft otherwise, such as vLLM's bench of chats before 0.33.
        {"unsupported", objective,
         [](o in) {
             return with_text(because::unsupported, unsupported_reason(in.e, in.s.statistic));
         }, invalidates, none},
        // A model of a mix that the server lacks.
        {"label_failed", label,
         [](o in) { return label_without_success(in, in.s.statistic); }, invalidates, none},

        // ---- the requests as reported
        // A comparison of files that have one arm.
        {"no_baseline", objective, no_baseline},
        // Two servers on one GPU, where one three times slower reads as 1.00 x (measured). False
        // alarm: loads of few requests, so the loss must be shown.
        {"share_machine", objective, share_machine},
        // A model that says one token over and over, 0.39 x as slow by its drafts. False alarm:
        // prompts whose answers begin alike on the baseline, too.
        {"alike_alone", objective, alike_alone},
        // Lengths that are not forced: a candidate that ends its answers early.
        {"other_tokens", objective, other_tokens},
        // session_time asked of a result whose sessions were cut.
        {"not_played_out", objective, not_played_out},
        // A client on two busy cores (measured). False alarm: it is measured again first.
        {"read_together", objective, read_together},
        // A client thread at 100 % of its core (measured). False alarm: one that spins by request.
        {"client_conduct", objective, client_conduct},
        // A page that is another server's, is cut off or lacks the metric.
        {"server_metrics", objective,
         [](o in) { return in.is_of(is_of_server) ? server_metrics_fault(in.e, in.v) : cause{}; }},
        // A prefill and a decode worker that both count cached tokens: 80 % for 40 %.
        {"cached_on_page", objective,
         [](o in) {
             return in.s.statistic.metric == metric_id::cached_share
                        ? cached_on_page(in.e, in.s)
                        : cause{};
         }},
        // Gaps beyond the 33 million that are kept, of which a label's are not known apart.
        {"gaps_of_all", objective, gaps_of_all},
        // A proxy that buffers, such as nginx. False alarm: vLLM on two busy cores, a diffusion
        // model and stream_interval, so a verdict that stands in the worst case stands.
        {"in_a_burst", answers, in_a_burst, decoding, buffered},
        // The same by a late client, which is measured again.
        {"starts_read_together", answers, starts_read_together, decoding, buffered},
        // A proxy that sends several tokens at once. False alarm: as of in_a_burst.
        {"comes_in_bursts", answers, comes_in_bursts, gaps, buffered},
        // Special tokens behind an ignored end: 4.95 ms a token for 10 ms.
        {"untold_end", answers, too_much<because::untold_end, &c::untold_ends>, decoding,
         text_alone},
        // A label or a turn that the traffic does not have.
        {"none_selected", answers, none_selected},
        // A gateway that falls back to another model for 40 %. False alarm: an alias of all.
        {"several_models", answers, several_models},
        // A semantic cache that answers 70 % of new prompts, with X-Cache-Status: Hit.
        {"from_cache", answers, too_much<because::from_cache, &c::from_cache>},
        // A cap at 16 of 64 tokens, an ignored ignore_eos, an ignored length.
        {"other_length", answers, other_length},
        // Azure's content filter. False alarm: a few, so over 5 %.
        {"filtered", answers, too_much<because::filtered, &c::filtered>},
        // Ollama reads 2,048 of 6,000 prompt tokens. False alarm: other templates, so under 80 %.
        {"short_prompts", answers, short_prompts},
        // A server that ignores previous_response_id, or cuts the history.
        {"no_history", answers, no_history},
        // Prompts of an earlier run in the prefix cache. False alarm: equal first words and
        // templates, so 5 % and a block are allowed.
        {"known_prompts", answers, known_prompts},
        // Chunks of ten tokens without usage, each of which would count as one.
        {"no_usage", answers, too_much<because::no_usage, &c::without_usage>, output},
        // Usage with ten times the tokens, or without the streamed reasoning. False alarm: a router
        // that cuts the text anew.
        {"wrong_usage", answers, too_much<because::wrong_usage, &c::wrong_usage>, output},
        // Reasoning that is counted and not streamed, as of hosted models.
        {"usage_may_hide", answers, too_much<because::usage_may_hide, &c::may_hide>, output},
        // More cached than prompt tokens, or a thousand times the prompt. False alarm: templates,
        // images.
        {"usage_over_prompt", answers, usage_over_prompt},
        // Two first tokens in one read, no answer after the reasoning.
        {"lacks_values", answers, lacks_values},
        // A user's function that throws for slow requests. False alarm: a pass that holds with
        // these as the worst.
        {"own_values", answers, own_values_missing, invalidates, missing_worst},
        // A p99 of 100 requests (rates: three beyond a percentile).
        {"small_sample", objective,
         [](o in) { return sample_fault(in.columns, in.v); }},
        // Answers as long as the window, most of which end behind it.
        {"window_ends", objective, [](o in) { return window_fault(in.columns, in.v); }},
        // A load over the capacity, whose mean depends on its length. False alarm: noise in the
        // requests in flight (rates).
        {"over_saturated", variant, over_saturated, keeps_a_fail},
        // A baseline that fails its slow requests.
        {"baseline_fails", objective,
         [](o in) { return baseline_errors(in, because::baseline_fails); }},
        // The same, of too few requests to show it.
        {"baseline_may_fail", objective,
         [](o in) { return baseline_errors(in, because::baseline_may_fail); }, opens},
        // One of two replicas is down for the second half of a load: exit code 0.
        {"failed_too_often", objective, failed_too_often},
        // Ctrl-C, SIGTERM or the end of the time, with verdicts still open.
        {"stopped", objective,
         [](o in) { return in.is_in(verdict::inconclusive) ? in.stopped() : cause{}; }, leads},
        // A side task that disturbs nothing: recovery_time 0 s.
        {"undisturbed", objective, undisturbed, opens},
        // ---- words
        {"too_close", objective, too_close, advises},
        {"holds_anyway", objective, [](o in) { return in.in_the_worst; }, adds},
        {"cached", objective, part_of_cache, adds},
        {"a_few_answers", objective, told_of_a_pass, adds},

        // ---- of every verdict by then
        // guidellm ends with --max-seconds, in which the slowest were under way.
        {"cut_off", objective, cut_off},
        {"read_late", objective, read_late},
        // A client without kernel stamps that is paused.
        {"client_lost", objective, lost_time},
        // A stopped or starved client (rates: busy_client). False alarm: a miss that holds without.
        {"client_late", objective, late_client, invalidates, late},
        // The same client, where a healthy server's verdict stays open (rates: late).
        {"open_and_late", objective, open_and_late, opens},
        {"which_answers", objective, which_answers, adds},
        {"server_state", objective, server_state, adds},
    });
}();
constexpr std::size_t place_of_check(std::string_view name) {
    std::size_t i = 0;
    while (checks[i].name != name) ++i;  // of none: does not compile
    return i;
}
inline constexpr std::size_t first_of_every_verdict = place_of_check("cut_off");
/// Counts of work have no times and no answers to be checked.
inline std::size_t end_of_checks(const slo& s) {
    return is_of_work(s.statistic.metric) ? place_of_check("share_machine") : checks.size();
}

// ---- the walk

/// Whether a cause does not matter: the same decision on its column is the same.
inline bool stands(check_reads reads, objective_in_check& o) {
    switch (reads) {
    case check_reads::buffered: return stands_though_buffered(o);
    case check_reads::text_alone:
        return o.is_in(o.as(timing_bound::text_alone)) &&
               o.is_in(o.as(timing_bound::baseline_text_alone));
    case check_reads::missing_worst:
        return !o.is_in(verdict::pass) || o.as(timing_bound::missing_worst) == verdict::pass;
    case check_reads::late: return !may_be_the_clients(o);
    default: return false;
    }
}
inline cause found_by(const check& by, objective_in_check& o) {
    if (by.in_gate) return o.on().by == &by ? o.on().invalid : cause{};
    if (by.reads != check_reads::none) o.decide_by_numbers();
    cause why = by.found_in(o);
    if (!why || !stands(by.reads, o)) return why;
    o.by_client.reset();
    return {};
}
/// The first cause among checks of answers, of each variant behind each part of the objective.
inline cause found_in_answers(std::size_t first, std::size_t end, objective_in_check& o) {
    if (!o.is_of(is_of_service) || o.is_of(is_of_server)) return {};
    list<statistic_data> parts = o.s.statistic.parts;
    if (parts.empty()) parts.push_back(o.s.statistic);
    for (const statistic_data& part : parts)
        for (const repeat_list* variant : {&o.e.candidate, &o.e.baseline}) {
            const bool is_baseline = variant == &o.e.baseline;
            if (is_baseline && (is_absolute(o.s) || variant->empty())) continue;
            const bool is_shared = is_of_all(part) && !concerns_a_metric(part, is_own);
            const answer_counts own = is_shared ? answer_counts()
                                                : answer_counts_of(*variant, part.which, part);
            o.part = &part;
            o.answers = !is_shared ? &own : is_baseline ? &o.g.baseline : &o.g.candidate;
            for (std::size_t i = first; i < end; ++i) {
                cause why = found_by(checks[i], o);
                if (!why) continue;
                if (checks[i].reads != check_reads::buffered) why.of = server_of(o.e, variant);
                else if (is_baseline && why.of == whose::nobody) why.of = whose::baseline;
                return why;
            }
        }
    return {};
}
/// What a cause does to the verdict.
inline void apply(const check& by, cause why, objective_in_check& o) {
    if (by.reads == check_reads::none) o.has_numbers = true;  // none are shown
    else o.decide_by_numbers();
    switch (by.does) {
    case check_does::invalidates:
        o.v = decided(std::move(o.v), verdict::invalid, std::move(why));
        break;
    case check_does::opens:
        o.v = decided(std::move(o.v), verdict::inconclusive, std::move(why));
        break;
    case check_does::keeps_a_fail: o.v = with_the_load(std::move(o.v), o.e, why); break;
    case check_does::leads:
        o.v.advice = {};
        o.v.why.insert(o.v.why.begin(), std::move(why));
        break;
    case check_does::advises:
        if (o.v.why.empty()) o.v.why = {std::move(why)};
        advise(o);
        break;
    case check_does::adds: o.v.why.push_back(std::move(why)); break;
    }
}
/// Returns the first cause from one check to another, which is left out, and makes `i` its place.
inline cause next_cause(std::size_t& i, std::size_t end, objective_in_check& o) {
    for (; i < end; ++i) {
        std::size_t last = i;
        while (checks[i].of == check_of::answers && last + 1 < end &&
               checks[last + 1].of == check_of::answers)
            ++last;
        cause why = checks[i].of == check_of::answers ? found_in_answers(i, last + 1, o)
                                                      : found_by(checks[i], o);
        if (why) return why;
        i = last;
    }
    return {};
}
/// Makes the checks from one to another, which is left out. A cause among those of the requests as
/// reported ends these.
inline void make_checks(std::size_t i, std::size_t end, objective_in_check& o) {
    for (; i < end; ++i) {
        cause why = next_cause(i, end, o);
        if (!why) break;
        apply(checks[i], std::move(why), o);
        const check_does does = checks[i].does;
        const bool goes_on = does == check_does::adds || does == check_does::advises;
        if (!goes_on && i < first_of_every_verdict) i = first_of_every_verdict - 1;
    }
}
/// The verdict on one SLO by the checks up to this one, which is left out.
inline decision verdict_before(std::size_t end, objective_in_check o) {
    make_checks(0, end, o);
    return std::move(o.v);
}
/// Why a verdict by the numbers is invalid, by its baseline, the client and the answers.
inline cause fault_of_verdict(const measurements& e, const judging_parameters& t,
                              const validity_checks& g, const decision& v) {
    objective_in_check o{e, t, g, v.objective};
    o.columns = columns_of(e, v.objective);
    o.v = v;
    o.has_numbers = true;
    std::size_t i = place_of_check("no_baseline");
    return next_cause(i, place_of_check("small_sample"), o);
}

// ---- once for all objectives of the same variants

/// Sets the first cause that invalidates all, where anything was measured.
inline void find_fault(variant_checks& c, gate_in_check g) {
    if (g.e.candidate.empty() && !g.e.stopped.empty()) return;
    const auto is_found = [&](check_of of) {
        for (const check& by : checks) {
            if (!by.in_gate || by.of != of || !(c.invalid = by.in_gate(g))) continue;
            if (of == check_of::repeat) c.invalid.of = server_of(g.e, g.variant);
            c.by = &by;
            return true;
        }
        return false;
    };
    if (is_found(check_of::gate)) return;
    for (const repeat_list* variant : g.variants) {
        g.variant = variant;
        for (const repeat_data& d : *variant) {
            g.repeat = &d;
            if (is_found(check_of::repeat)) return;
        }
        if (is_found(check_of::variant)) return;
    }
}
/// Why the whole gate is invalid.
inline cause fault_of_gate(const measurements& e) {
    const variant_list all = variants_of(e);
    variant_checks c;
    find_fault(c, {e, all});
    return c.invalid;
}
inline variant_checks variant_checks_of(const measurements& e, const variant_list& variants) {
    variant_checks c;
    c.self_check = self_check_of(e, repeats_of(variants));
    c.saturated = over_saturation_of(e, variants, e.arrival_cv2);
    find_fault(c, {e, variants});
    return c;
}
inline validity_checks validity_checks_of(const measurements& e) {
    const variant_checks all = variant_checks_of(e, variants_of(e));
    return {all, e.baseline.empty() ? all : variant_checks_of(e, {&e.candidate}),
            answer_counts_of(e.candidate), answer_counts_of(e.baseline),
            prefix_hits_of(e.candidate), prefix_hits_of(e.baseline), server_state_of(e)};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
