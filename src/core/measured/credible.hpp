// whether an answer can have come as its numbers say
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // max, min
#include <cstddef>  // size_t
#include <span>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Output tokens that events brought: what users waited for, one after the other. Others have no
/// part in any time or speed.
inline int streamed_tokens(const record& r) {
    return r.output_tokens - std::max(r.hidden_tokens, 0);
}
/// Those whose time lies between the first event's stamp and the last one's.
inline int paced_tokens(const record& r) { return streamed_tokens(r) - r.first_event_tokens; }

/// Seconds from the send to the first content, and from there to the last.
inline double wait_s(const record& r) {
    return static_cast<double>(r.first_token_ns - r.sent_ns) * 1e-9;
}
inline double spread_s(const record& r) {
    return static_cast<double>(r.last_token_ns - r.first_token_ns) * 1e-9;
}

/// Whether all tokens came at once: one read brought them, or after a wait a few reads of several
/// events each, within a tenth of that wait, as a proxy's whole answer comes. A server that decodes
/// within the client's own turns has few events a read, or lets nobody wait ten times as long; in
/// under 10 ms no more can be told.
inline bool is_in_one_piece(const record& r) {
    if (paced_tokens(r) <= 0) return false;
    if (r.last_token_ns == r.first_token_ns) return true;
    return wait_s(r) >= 0.010 && r.reads > 0 && r.events >= 4 * r.reads &&
           spread_s(r) * 10 <= wait_s(r);
}

/// Seconds that the first read's tokens took before its stamp, as the pace of those after it tells,
/// where they are over 5 % of what came: a tpot knows nothing of that time. Infinite where events
/// bring so many tokens that nothing tells.
inline double hidden_s(const record& r) {
    if (paced_tokens(r) <= 0 || r.events < 2) return 0;
    if (paced_tokens(r) > most_event_tokens * (r.events - 1)) return infinity;
    const int early = r.first_read_events - 1, later = r.events - r.first_read_events;
    if (early <= 0 || later <= 0 || early * 20 <= r.events - 1) return 0;
    return spread_s(r) / later * early;
}
/// Up to 10 ms it was the client that came a little late to a fast server.
inline bool begins_in_a_lump(const record& r) { return hidden_s(r) > 0.010; }

/// How long before its first stamp an answer's tokens may have been generated: never before it was
/// asked for.
inline long long buffered_ns(const record& r) {
    const double waited = wait_s(r);
    const double hidden = is_in_one_piece(r) ? waited : std::min(hidden_s(r), waited);
    return static_cast<long long>(hidden * 1e9);
}

/// Content events that say nothing of when they were generated, as they came in one read with an
/// earlier one. Where reads follow each other within 2 ms, events do come that fast.
inline int events_read_together(const record& r) {
    if (r.reads == 0 || r.events < 2) return 0;
    const bool fast = r.reads > 1 && spread_s(r) < 0.002 * (r.reads - 1);
    return fast && !is_in_one_piece(r) ? 0 : r.events - r.reads;
}

/// Whether usage reports more tokens than the text can be: each has a byte at least, but for a few
/// special ones. Where nothing is known of the text, the number of events says how many it can be.
inline bool usage_is_over_content(const record& r) {
    if (r.token_source != token_origin::usage) return false;
    if (r.text_bytes > 0) return streamed_tokens(r) > r.text_bytes + most_event_tokens;
    return paced_tokens(r) > most_event_tokens * std::max(r.events - 1, 0);
}
/// The same of the prompt.
inline bool usage_is_over_prompt(const record& r) {
    return r.most_prompt_tokens > 0 && r.prompt_tokens > r.most_prompt_tokens;
}

/// Requests of a repeat that were sent again, where those are over 1 % of the measured ones, failed
/// each: what a server does to one in a hundred of its users is no accident of the moment. One is
/// nobody's failure, however few requests there are. `parts`: the whole repeat, which several
/// programs may have sent. Requests of the warm-up are left as they are.
inline void fail_frequent_resends(std::span<repeat_data> parts) {
    std::size_t measured = 0, resent = 0;
    for (const repeat_data& d : parts)
        for (const record& r : d.records) {
            measured += is_measured(r);
            resent += is_measured(r) && r.resends > 0;
        }
    if (resent <= std::max<std::size_t>(1, measured / 100)) return;
    for (repeat_data& d : parts)
        for (record& r : d.records) {
            if (!is_measured(r) || r.resends == 0 || r.status != request_status::ok) continue;
            r.status = request_status::connect;
            r.error = "the server closed the kept connection without an answer";
            if (d.ranks.size() == 1) ++d.ranks[0].failed;
        }
}
inline void fail_frequent_resends(repeat_data& whole) { fail_frequent_resends({&whole, 1}); }

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
