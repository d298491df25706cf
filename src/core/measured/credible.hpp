// whether the times of an answer are plausible
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/answers/timeline.hpp"
#include "core/dialects/output.hpp"
#include "core/dialects/stream_event.hpp"
#include "core/measured/client_counts.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // max, min
#include <array>
#include <cstddef>  // size_t
#include <span>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Output tokens that events brought. Hidden tokens have no times.
inline int streamed_tokens(const record& r) {
    return r.output_tokens - std::max(r.hidden_tokens, 0);
}
/// Tokens between the first event's stamp and the last one's.
inline int paced_tokens(const record& r) { return streamed_tokens(r) - r.first_event_tokens; }

/// Seconds from the send to the first content, then to the last.
inline double wait_s(const record& r) {
    return static_cast<double>(r.first_token_ns - r.sent_ns) * 1e-9;
}
inline double spread_s(const record& r) {
    return static_cast<double>(r.last_token_ns - r.first_token_ns) * 1e-9;
}

/// The end of an answer that went on without text; all 0 for others.
inline textless_tail tail_of(const record& r) {
    if (r.textless_ns == 0) return {};
    return {r.events - 1, paced_tokens(r), spread_s(r), static_cast<double>(r.textless_ns) * 1e-9};
}
/// Tokens that came without text after the last one, where that is told.
inline int textless_tokens(const record& r) {
    const textless_tail end = tail_of(r);
    return end.is_told() ? end.without_event() : 0;
}
/// Whether the finish was late, with tokens or without.
inline bool is_untold_end(const record& r) {
    return r.textless_ns > 0 && !tail_of(r).is_told();
}

/// Whether all tokens came at once: in one read, or after a wait in a few reads of several events
/// each within a tenth of that wait, as from a proxy. A server that decodes within the client's
/// turns has few events per read, or shorter waits. Under 10 ms they cannot be told apart.
inline bool is_in_one_piece(const record& r) {
    if (paced_tokens(r) <= 0) return false;
    if (r.last_token_ns == r.first_token_ns) return true;
    return wait_s(r) >= 0.010 && r.reads > 0 && r.events >= 4 * r.reads &&
           spread_s(r) * 10 <= wait_s(r);
}

/// Whether events have so many tokens that the first ones of the stream may have waited for more.
inline bool comes_in_large_events(const record& r) {
    return r.events >= 2 && paced_tokens(r) > max_event_tokens * (r.events - 1);
}

/// Seconds that the tokens of the first read, or of a lump, took before its stamp, by the pace of
/// the others, if over 5 % of the tokens. Tpot omits that time. Infinite where events have too many
/// tokens to tell.
inline double hidden_s(const record& r) {
    if (paced_tokens(r) <= 0 || r.events < 2) return 0;
    if (comes_in_large_events(r)) return infinity;
    const auto hidden_by = [&](long long early, int all) {
        return early * 20 > all ? spread_s(r) * static_cast<double>(early) /
                                      static_cast<double>(std::max(all - early, 1ll))
                                : 0;
    };
    const int early = r.first_read_events - 1, later = r.events - r.first_read_events;
    return std::max(early > 0 && later > 0 ? hidden_by(early, r.events - 1) : 0,
                    hidden_by(r.tokens_at_once, paced_tokens(r)));
}
/// Up to 10 ms the client may have read a fast server late.
inline bool begins_in_a_burst(const record& r) { return hidden_s(r) > 0.010; }

/// On a shared machine the client pauses now and then, and sends due meanwhile leave together.
inline constexpr long long moment_ns = 50'000'000;
/// How long before its first stamp an answer's tokens may have been generated, at most since its
/// send.
inline long long buffered_ns(const record& r) {
    const double waited = wait_s(r);
    const double hidden = is_in_one_piece(r) ? waited : std::min(hidden_s(r), waited);
    return static_cast<long long>(hidden * 1e9);
}

/// Counts content events read together with an earlier one, so without times of their own. Events
/// may come that fast where reads are within 2 ms.
inline int events_read_together(const record& r) {
    if (r.reads == 0 || r.events < 2) return 0;
    const bool fast = r.reads > 1 && spread_s(r) < 0.002 * (r.reads - 1);
    return fast && !is_in_one_piece(r) ? 0 : r.events - r.reads;
}

/// Whether some tokens came together, so that nobody knows when they were generated.
inline bool may_be_buffered(const record& r) {
    return is_in_one_piece(r) || hidden_s(r) > 0 || events_read_together(r) > 0;
}

/// Whether usage has more tokens than the text can have: each has at least a byte, but for a few
/// special ones. Without text the number of events is the bound.
inline bool usage_is_over_content(const record& r) {
    if (r.token_source != token_origin::usage) return false;
    const int in_events = streamed_tokens(r) - textless_tokens(r);
    if (r.text_bytes > 0) return in_events > r.text_bytes + max_event_tokens;
    return paced_tokens(r) > max_event_tokens * std::max(r.events - 1, 0);
}
/// Likewise for the prompt.
inline bool usage_is_over_prompt(const record& r) {
    return r.most_prompt_tokens > 0 && r.prompt_tokens > r.most_prompt_tokens;
}

/// Whether some of the output was reasoning.
inline bool has_reasoned(const record& r) {
    return r.reasoning_tokens > 0 || r.hidden_tokens > 0 ||
           (r.first_answer_ns != r.first_token_ns && r.second_token_ns + r.first_answer_ns > 0);
}
/// Whether usage omits reasoning: there are more events than tokens, by over 5 % and one. Without
/// reasoning a router has split the text again.
inline bool usage_is_under_events(const record& r) {
    if (r.token_source != token_origin::usage || !has_reasoned(r)) return false;
    return r.reasoning_tokens > r.output_tokens || (r.events - 1) * 20ll > r.output_tokens * 21ll;
}
/// Whether an answer has more tokens than the maximum asked for. A server that splits a few events
/// that count as tokens is tolerated.
inline bool is_over_length(const record& r) {
    const bool by_usage = r.token_source == token_origin::usage;
    return r.most_output_tokens > 0 &&
           r.output_tokens > r.most_output_tokens * (by_usage ? 1 : 1.05);
}

/// Whether an answer has fewer or more tokens than forced. If events were counted, a server that
/// merges or splits a few is not told of.
inline double leeway_of_forced(const record& r) {
    return r.token_source == token_origin::usage ? 0 : 0.05 * r.most_output_tokens;
}
inline bool is_under_forced(const record& r) {
    return r.length_forced && r.output_tokens < r.most_output_tokens - leeway_of_forced(r);
}
inline bool is_over_forced(const record& r) {
    return r.length_forced && r.output_tokens > r.most_output_tokens + leeway_of_forced(r);
}
/// Whether an answer says that it ended at its length, and has fewer tokens than were asked for.
inline bool is_cut_short(const record& r) {
    return stream_event::is_at_length(str(r.finish_reason)) &&
           r.token_source == token_origin::usage && r.output_tokens < r.most_output_tokens;
}

/// A failed answer is not right, and equals none.
inline void fail_answer(record& r, request_status status, const char* why) {
    r.status = status;
    r.error = why;
    if (r.right) r.right = false;
    r.answer_hash = 0;
}

/// Fails answers without a finish reason where others to the same part of the workload, over 5 % of
/// them, have one: a server that ends a stream after an error sends nothing else. `for_each(f)`
/// calls f(record) for each request.
template <class ForEach>
void fail_unfinished(ForEach&& for_each) {
    std::array<std::size_t, 256> tell{}, all{};
    for_each([&](const record& r) {
        if (r.status != request_status::ok) return;
        ++all[r.part];
        tell[r.part] += !r.finish_reason.empty();
    });
    for_each([&](record& r) {
        if (r.status != request_status::ok || !r.finish_reason.empty()) return;
        if (tell[r.part] * 20 <= all[r.part]) return;
        fail_answer(r, request_status::truncated,
                    "the answer ended without a finish reason, which others have");
    });
}

/// Fails the resent requests of a repeat if they are over 1 % of the measured ones and more than
/// one. A server that does this regularly is at fault. Idle connections and the warm-up are exempt.
/// `parts`: the whole repeat, sent by several programs.
inline void fail_frequent_resends(std::span<repeat_data> parts) {
    const auto is_lost = [](const record& r) {
        return is_measured(r) && r.resends > 0 && r.idle_ns < tires_after_ns;
    };
    std::size_t measured = 0, resent = 0;
    for (const repeat_data& d : parts)
        for (const record& r : d.records) {
            measured += is_measured(r);
            resent += is_lost(r);
        }
    if (resent <= std::max<std::size_t>(1, measured / 100)) return;
    for (repeat_data& d : parts)
        for (record& r : d.records) {
            if (!is_lost(r) || r.status != request_status::ok) continue;
            fail_answer(r, request_status::connect,
                        "the server closed the kept connection without an answer");
            if (d.ranks.size() == 1) ++d.ranks[0].failed;
        }
}
inline void fail_frequent_resends(repeat_data& whole) { fail_frequent_resends({&whole, 1}); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
