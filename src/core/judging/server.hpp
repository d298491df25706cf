// what a server's answers can say against its numbers
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/metric/table.hpp"
#include "core/measured/client_stalls.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/judging/decision.hpp"

#include <algorithm>  // max, min, nth_element
#include <array>
#include <cstddef>  // size_t, ptrdiff_t
#include <iterator>  // size
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// So much of anything spoils nothing: over 5 % of the completed requests does.
inline bool is_too_much(std::size_t some, std::size_t completed) { return some * 20 > completed; }

/// The requests that a metric speaks of, and the completed ones that it has no value of.
struct value_count {
    std::size_t of = 0, completed = 0, missing = 0;
};
/// Tokens of prompts that requests say were in the server's prefix cache, of how many, and how many
/// of these the workload lets others have sent before; -1 where that is not known.
struct cache_counts {
    long long requests = 0, prompt = 0, cached = 0, shared = 0;
};
/// The completed requests of one arm, counted by what makes them no evidence.
struct answer_counts {
    std::size_t requests = 0;  // with those that did not
    std::size_t completed = 0;
    std::size_t too_short = 0, too_long = 0;  // fewer tokens than forced, and more
    // How answers say that they ended: of their own accord, or at a length; and the most tokens
    // that one had together with its prompt.
    std::size_t ended_by_themselves = 0, ended_at_length = 0;
    long long most_tokens = 0;
    std::size_t of_choices = 0;               // several answers in one
    std::size_t over_content = 0;             // more tokens in usage than in the text
    std::size_t may_hide = 0;                 // how many of them were streamed nothing tells
    std::size_t over_prompt = 0;              // more prompt tokens than what was sent can be
    std::size_t filtered = 0;                 // cut off by a content filter
    // Of those whose pieces the client read as they came, with tokens after the first event:
    std::size_t paced = 0;
    std::size_t in_one_piece = 0, in_a_lump = 0;
    double events = 0, read_together = 0;
    cache_counts cache{};
    std::array<value_count, std::size(metric_table)> values{};
    const value_count& of(metric_id m) const { return values[static_cast<std::size_t>(m)]; }
    cause of_completed(because what, std::size_t n) const {
        return {what, {as_number(n), as_number(completed)}};
    }
};
/// What of an answer's pieces the client may itself have read together, as it did not run. A delay
/// explains no more than it could have hidden.
struct gathered_by_client {
    bool piece = false, lump = false;
    double events = 0;
};
inline gathered_by_client gathered_by(const client_stalls& stalls, const record& r) {
    gathered_by_client g;
    const double late = static_cast<double>(possible_delay(stalls, r.first_token_ns)) * 1e-9;
    g.piece = late > 0 && late * 10 >= wait_s(r);
    const double lost =
        static_cast<double>(lost_in(
            stalls, time_interval::between(r.first_token_ns, r.last_token_ns))) * 1e-9;
    const double lost_fraction = lost > 0 ? std::min(lost / spread_s(r), 1.0) : 0;
    // The pace that tells what was hidden is of the time in which the client ran.
    g.lump = late > 0 && late * 2 >= hidden_s(r) * (1 - lost_fraction);
    if (lost > 0) g.events = lost / spread_s(r) * (r.events - 1);
    return g;
}
/// Seconds from event to event of a server that is as fast as a client's turns: at most 1 ms in the
/// typical answer that was read in more than one piece, and those are three quarters of all. 0 of
/// any other server. Where a busy machine lets such a client read several events together, nothing
/// is hidden but that little.
inline double fast_gap_of(const repeat_list& arm) {
    std::vector<double> gaps;
    std::size_t several = 0;
    for (const repeat_data& d : arm)
        for (const record& r : d.records) {
            if (!is_pooled(r) || r.events < 2) continue;
            ++several;
            if (!is_in_one_piece(r)) gaps.push_back(spread_s(r) / (r.events - 1));
        }
    if (gaps.empty() || gaps.size() * 4 < several * 3) return 0;
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    return *middle <= 0.001 ? *middle : 0;
}
inline void add_stream(answer_counts& c, const repeat_data& d, const record& r, double fast_gap) {
    const bool hides = fast_gap == 0 || fast_gap * paced_tokens(r) > 0.010;
    const bool in_one_piece = is_in_one_piece(r) && hides;
    const gathered_by_client client = gathered_by(d.stalls, r);
    if ((in_one_piece && client.piece) || (begins_in_a_lump(r) && client.lump)) return;
    c.paced += paced_tokens(r) > 0;
    c.in_one_piece += in_one_piece;
    c.in_a_lump += in_one_piece || begins_in_a_lump(r);
    c.events += r.events;
    if (fast_gap == 0 || in_one_piece)
        c.read_together += std::max(events_read_together(r) - client.events, 0.0);
}
inline void add_completed(answer_counts& c, const repeat_data& d, const record& r,
                          double fast_gap) {
    ++c.completed;
    const bool at_length = stream_event::is_at_length(str(r.finish_reason));
    c.ended_at_length += at_length;
    c.ended_by_themselves += !at_length && !r.finish_reason.empty();
    c.most_tokens = std::max(c.most_tokens, 0ll + r.prompt_tokens + r.output_tokens);
    c.of_choices += r.choices > 1;
    c.over_content += usage_is_over_content(r);
    c.may_hide += r.hidden_tokens < 0;
    c.over_prompt += usage_is_over_prompt(r);
    c.filtered += stream_event::is_filtered(str(r.finish_reason));
    add_stream(c, d, r, fast_gap);
    if (r.cached_tokens < 0 || r.prompt_tokens <= 0) return;
    ++c.cache.requests;
    c.cache.prompt += r.prompt_tokens;
    c.cache.cached += r.cached_tokens;
}
inline answer_counts answer_counts_of(const repeat_list& arm, const selection& which = {}) {
    answer_counts c;
    const double fast_gap = fast_gap_of(arm);
    for (const repeat_data& d : arm) {
        c.too_short += static_cast<std::size_t>(d.short_outputs);
        c.too_long += static_cast<std::size_t>(d.long_outputs);
        const long long reported = c.cache.requests;
        const selects selected(which, d);
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            const record& r = d.records[i];
            const bool ok = r.status == request_status::ok;
            if (!selected(r)) continue;
            ++c.requests;
            if (ok) add_completed(c, d, r, fast_gap);
            for (const metric_facts& f : metric_table) {
                const bool may_miss = f.needs != value_needs::nothing || is_of_turns(f.id);
                if (!may_miss || !is_in_turns_of(f.id, r.turn)) continue;
                value_count& n = c.values[static_cast<std::size_t>(f.id)];
                ++n.of;
                n.completed += ok;
                n.missing += ok && !has_value(f.id, d, i);
            }
        }
        if (c.cache.requests > reported && d.shared_tokens < 0) c.cache.shared = -1;
        if (c.cache.shared >= 0 && d.shared_tokens > 0) c.cache.shared += d.shared_tokens;
    }
    return c;
}

/// Why a metric is none of the requests that completed, nothing where it is. Of answers of one
/// token, where those were asked for, there is no pace: what is judged is the others', if there are
/// any.
inline cause missing_values(const answer_counts& c, metric_id m, bool short_ones_expected) {
    const metric_facts& f = facts_of(m);
    const value_count& n = c.of(m);
    const bool allowed = short_ones_expected && (f.needs == value_needs::second_token ||
                                                 f.needs == value_needs::second_event ||
                                                 f.needs == value_needs::second_read);
    const auto id = static_cast<double>(m);
    if (n.of == 0 && is_of_turns(m)) return {because::no_such_turns, {id}};
    const bool some_left = n.missing < n.completed;
    if (n.missing == 0 || (some_left && (allowed || !is_too_much(n.missing, n.completed))))
        return {};
    return {because::lacks_values, {as_number(n.missing), as_number(n.completed), id, id}};
}

/// What keeps answers short, as far as their finish reasons tell.
inline cause why_too_short(const answer_counts& c) {
    const double n = as_number(c.too_short), of = as_number(c.completed);
    if (c.ended_at_length > 0 && c.too_short > c.ended_by_themselves)
        return {because::context_full, {n, of, as_number(c.too_short - c.ended_by_themselves),
                                        static_cast<double>(c.most_tokens)}};
    if (c.ended_by_themselves == 0) return {because::stops_early, {n, of}};
    return {because::stops_by_itself, {n, of, as_number(c.ended_by_themselves)}};
}
/// Why the answers were to another load than the one asked for, nothing where they were not.
inline cause other_load(const answer_counts& c) {
    if (is_too_much(c.too_short, c.completed)) return why_too_short(c);
    if (is_too_much(c.too_long, c.completed)) return c.of_completed(because::too_long, c.too_long);
    if (is_too_much(c.filtered, c.completed)) return c.of_completed(because::filtered, c.filtered);
    if (is_too_much(c.of_choices, c.completed))
        return c.of_completed(because::several_choices, c.of_choices);
    return {};
}

/// Why the prompts were not new to the server, nothing where they may have been. Allowed beyond
/// what the workload shares are 5 % of the tokens, and a block of 16 a request: caches that compare
/// token by token also find first words that are the same by chance, and templates differ.
inline cause known_prompts(const cache_counts& c) {
    if (c.shared < 0 || c.cached <= c.shared + c.prompt / 20 + 16 * c.requests) return {};
    const auto prompt = static_cast<double>(c.prompt);
    return {because::known_prompts,
            {static_cast<double>(c.cached) / prompt, static_cast<double>(c.shared) / prompt}};
}

/// Why the tokens that a server counts are no measure, nothing where they may be one.
inline cause usage_fault(const answer_counts& c, const statistic_data& what) {
    const bool counts_output = concerns(what, &metric_facts::counts_output);
    if (counts_output && is_too_much(c.over_content, c.completed))
        return c.of_completed(because::usage_over_content, c.over_content);
    if (counts_output && is_too_much(c.may_hide, c.completed))
        return c.of_completed(because::usage_may_hide, c.may_hide);
    const bool counts_input = concerns_a_metric(
        what, [](metric_id m) { return facts_of(m).needs == value_needs::prompt_tokens; });
    if (counts_input && is_too_much(c.over_prompt, c.completed))
        return c.of_completed(because::usage_over_prompt, c.over_prompt);
    return {};
}

/// What the answers of one arm say against an objective.
inline cause fault_of_answers(const answer_counts& c, const statistic_data& what,
                              bool short_ones_expected) {
    if (c.requests == 0 && !is_of_all(what))
        return with_text(because::none_selected, selection_text(what.which));
    if (cause why = other_load(c)) return why;
    if (cause why = known_prompts(c.cache)) return why;
    cause why = usage_fault(c, what);
    if (why) return why;
    concerns_a_metric(what, [&](metric_id m) {
        why = missing_values(c, m, short_ones_expected);
        return static_cast<bool>(why);
    });
    return why;
}

/// What the stream of one arm says against an objective. Whether a server holds its tokens back or
/// a proxy on the way does cannot be told from here, and makes no difference.
inline cause fault_of_stream(const answer_counts& c, const statistic_data& what) {
    if (!concerns(what, &metric_facts::is_of_decoding)) return {};
    if (is_too_much(c.in_one_piece, c.paced))
        return {because::in_one_piece, {as_number(c.in_one_piece), as_number(c.paced)}};
    if (is_too_much(c.in_a_lump, c.paced))
        return {because::in_a_lump, {as_number(c.in_a_lump), as_number(c.paced)}};
    if (concerns(what, &metric_facts::is_of_gaps) && c.read_together * 20 > c.events)
        return {because::comes_in_lumps, {c.read_together / c.events}};
    return {};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
