// validity checks of the server's answers
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/answer_counts.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"

#include <algorithm>  // min, sort
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Over 5 % of the completed answers.
template <because what, std::size_t answer_counts::*n>
cause too_much(const answer_counts& c) {
    if (!is_too_much(c.*n, c.completed)) return {};
    return cause_with<what>({{"requests", c.*n}, {"completed", c.completed}});
}

inline cause values_missing(const answer_counts& c, metric_id m) {
    const value_count& n = c.of(m);
    return cause_with<because::lacks_values>(
        {{"requests", n.missing}, {"completed", n.completed}, {"metric", m}, {"needs", m}});
}
/// Why a metric lacks values of completed requests. Answers of one token have no pace; if those
/// were requested, the others are judged, if any.
inline cause missing_values(const answer_counts& c, metric_id m, const load_conditions& under) {
    const metric_facts& f = facts_of(m);
    const value_count& n = c.of(m);
    const bool allowed =
        under.short_outputs_expected && (f.needs == value_needs::second_token ||
                                         f.needs == value_needs::second_event ||
                                         f.needs == value_needs::second_read);
    if (n.of == 0 && is_of_turns(m)) return with_text(because::none_selected, metric_name(m));
    const bool some_left = n.missing < n.completed;
    const bool is_too_many = is_own(m) ? n.missing * 100 > n.completed  // the function's own lack
                                       : is_too_much(n.missing, n.completed);
    if (n.missing == 0 || (some_left && (allowed || !is_too_many))) return {};
    return values_missing(c, m);
}

inline cause of_other_models(const answer_counts& c, bool are_few) {
    const model_names::two_models two = c.models.most_frequent();
    return cause_with<because::several_models>({{"requests", c.models.of_others()},
                                                {"completed", c.completed},
                                                {"first", two.first},
                                                {"second", two.second},
                                                {"are_few", are_few}},
                                               whose::nobody, two.names);
}
/// Answers of several models: a gateway that falls back, or routes.
inline cause several_models(const answer_counts& c) {
    if (!is_too_much(c.models.of_others(), c.completed)) return {};
    return of_other_models(c, false);
}
/// What a few answers are, or all of them, which spoils no verdict.
inline cause of_a_few_answers(const answer_counts& c) {
    if (c.models.of_others() > 0) return of_other_models(c, true);
    if (c.from_cache > 0)
        return cause_with<because::some_from_cache>(
            {{"requests", c.from_cache}, {"completed", c.completed}});
    if (c.are_alike())
        return cause_with<because::answers_alike>(
            {{"requests", c.equal_openings}, {"completed", c.completed}});
    return is_too_much(c.untold_history, c.going_on) ? cause{because::untold_history} : cause{};
}

/// Why answers are short, by their finish reasons.
inline cause too_short(const answer_counts& c) {
    if (!is_too_much(c.too_short, c.completed)) {
        if (!is_too_much(c.cut_short, c.completed)) return {};
        return cause_with<because::cut_short>({{"requests", c.cut_short},
                                               {"completed", c.completed},
                                               {"most", c.most_tokens}});
    }
    const std::size_t n = c.too_short, of = c.completed;
    const std::size_t otherwise = c.ended_by_themselves + c.ended_without_reason;
    if (c.ended_at_length > 0 && n > otherwise)
        return cause_with<because::context_full>({{"requests", n},
                                                  {"completed", of},
                                                  {"at_length", n - otherwise},
                                                  {"most", c.most_tokens}});
    return cause_with<because::stops_early>(
        {{"requests", n},
         {"completed", of},
         {"by_themselves", c.ended_by_themselves},
         {"is_untold", c.ended_by_themselves == 0 && c.ended_without_reason > 0}});
}
/// Short or long.
inline cause other_length(const answer_counts& c) {
    if (cause why = too_short(c)) return why;
    return too_much<because::too_long, &answer_counts::too_long>(c);
}
/// Prompts that are read in part, by the tokens that were asked for, or by one size of many.
inline cause short_prompts(const answer_counts& c) {
    if (cause why = too_much<because::short_prompts, &answer_counts::short_prompts>(c)) return why;
    if (2 * c.equal_prompts <= c.completed) return {};
    return cause_with<because::equal_prompts>({{"requests", c.equal_prompts},
                                               {"completed", c.completed},
                                               {"tokens", c.equal_tokens}});
}

inline cause no_history(const answer_counts& c) {
    if (!is_too_much(c.without_history, c.going_on)) return {};
    return cause_with<because::no_history>({{"turns", c.without_history}, {"of", c.going_on}});
}
inline cause more_cached_than_prompt(const cache_counts& c) {
    return cause_with<because::cached_over_prompt>({{"cached", c.cached}, {"prompt", c.prompt}});
}
/// Why prompts were known to the server. Beyond what the workload shares, 5 % of the tokens and a
/// block of 16 per request are allowed: caches also find equal first words, and templates differ.
inline cause known_prompts(const answer_counts& of) {
    const cache_counts& c = of.cache;
    if (c.shared < 0 || c.cached <= c.shared + c.prompt / 20 + 16 * c.requests) return {};
    if (c.cached > c.prompt) return more_cached_than_prompt(c);
    const auto prompt = static_cast<double>(c.prompt);
    return cause_with<because::known_prompts>({{"cached", static_cast<double>(c.cached) / prompt},
                                               {"shared", static_cast<double>(c.shared) / prompt}});
}

// Buffering by a server or by a proxy looks the same here.
/// Answers in one piece, or such that begin with several tokens. They coalesce by a proxy if
/// over 5 % do, at over 5 % of the start times and at three or more: those at one moment may have
/// one cause.
inline cause in_a_burst(const answer_counts& c) {
    if (is_too_much(c.in_one_piece, c.paced))
        return cause_with<because::in_a_burst>(
            {{"answers", c.in_one_piece}, {"of", c.paced}, {"are_whole", true}});
    const std::size_t moments = c.coalesced_at.size();
    const bool are_some = moments > 2 && is_too_much(moments, c.moments.size());
    if (!is_too_much(c.in_a_burst, c.paced) || (c.in_one_piece == 0 && !are_some)) return {};
    if (2 * c.in_large_events > c.in_a_burst)
        return cause_with<because::in_large_events>(
            {{"answers", c.in_a_burst},
             {"of", c.paced},
             {"tokens", c.event_tokens / as_number(c.in_large_events)}});
    return cause_with<because::in_a_burst>(
        {{"answers", c.in_a_burst}, {"of", c.paced}, {"are_whole", false}});
}
inline cause starts_read_together(const answer_counts& c) {
    if (c.perhaps_in_a_burst == 0 || !is_too_much(c.most_in_a_burst(), c.streamed())) return {};
    return cause_with<because::starts_read_together>(
        {{"starts", c.perhaps_in_a_burst}, {"answers", c.streamed()}}, whose::client);
}
inline cause comes_in_bursts(const answer_counts& c) {
    if (c.read_together * 20 <= c.events) return {};
    return cause_with<because::comes_in_bursts>({{"events", c.read_together / c.events}});
}

/// The answers that were wrong: cut off, unreadable or never received.
inline cause wrong_answers(const measurements& e, const statistic_data& what, std::size_t repeats) {
    double wrong = 0, cut = 0, unreadable = 0, failed = 0;
    for (std::size_t i = 0; i < std::min(repeats, e.candidate.size()); ++i)
        for_each_counted(what, e.candidate[i], nullptr, [&](const record& r, std::size_t) {
            if (*r.right) return;
            ++wrong;
            if (r.status != request_status::ok) ++failed;
            else if (stream_event::is_at_length(r.finish_reason.c_str())) ++cut;
            else if (r.graded.empty()) ++unreadable;
        });
    return cause_with<because::wrong_answers>(
        {{"wrong", wrong}, {"cut_off", cut}, {"unreadable", unreadable}, {"failed", failed}});
}
/// How many answers differ from the baseline's, where, and how often the server's own differ.
inline cause answers_differ(const measurements& e, const statistic_data& what,
                            std::size_t repeats) {
    double differ = 0, all = 0, failed = 0;
    answer_differences d;
    for (std::size_t i = 0; i < std::min(repeats, e.candidate.size()); ++i) {
        d.add(e.candidate[i].differences);
        for_each_counted(what, e.candidate[i], nullptr, [&](const record& r, std::size_t) {
            ++all;
            differ += !*r.same;
            failed += has_failed(r);
        });
    }
    std::sort(d.places.begin(), d.places.end());
    const double with_place = as_number(d.places.size());
    return cause_with<because::answers_differ>(
        {{"differ", differ},
         {"of", all},
         {"failed", failed},
         {"own", own_agreement(e.candidate, repeats, what)},
         {"with_place", with_place},
         {"place", d.places.empty() ? not_a_number : nearest_rank(d.places, 0.5)},
         {"per_1000", d.tokens > 0 ? 1000 * with_place / d.tokens : not_a_number},
         {"without_place", d.without_place}});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
