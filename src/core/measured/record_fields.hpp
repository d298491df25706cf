// the fields of a record
#pragma once

#include "api/result.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"

#include <charconv>  // from_chars
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Returns the value of sixteen hex digits, else 0.
inline unsigned long long hash_in(const std::string& digits) {
    unsigned long long hash = 0;
    const char* const end = digits.data() + digits.size();
    const bool is_hash = digits.size() == 16 &&
                         std::from_chars(digits.data(), end, hash, 16).ptr == end;
    return is_hash ? hash : 0;
}

/// A line of records.jsonl and its gate.
inline void fields_of(field_visitor& v, record& r, std::string& gate) {
    constexpr whole_range reported{0, max_reported_tokens},
        may_be_reported{0, max_reported_tokens, -1},
        events{0, max_events}, few{0, most_of_few}, bytes{0, max_text_bytes};
    v.text({"id", "sent as X-Request-Id"}, r.id);
    v.text({"gate"}, gate);
    v.choice({"arm"}, r.variant, run_arm::baseline);
    v.whole({"repeat"}, r.repeat, few);
    v.choice({"phase"}, r.phase, run_phase::measure);
    v.time({"scheduled_ns"}, r.scheduled_ns);
    v.time({"dispatched_ns"}, r.dispatched_ns);
    v.time({"connected_ns"}, r.connected_ns);
    v.time({"sent_ns"}, r.sent_ns);
    v.time({"first_token_ns"}, r.first_token_ns);
    v.time({"second_token_ns", "of the second content event", at_times}, r.second_token_ns);
    v.time({"first_answer_ns", "of the first one that is no reasoning", at_times},
           r.first_answer_ns);
    v.time({"last_token_ns"}, r.last_token_ns);
    v.time({"end_ns"}, r.end_ns);
    v.whole({"prompt_tokens"}, r.prompt_tokens, reported);
    v.whole({"output_tokens"}, r.output_tokens, reported);
    v.choice({"token_source"}, r.token_source, token_origin::no_usage);
    v.whole({"events"}, r.events, events);
    v.whole({"first_event_tokens"}, r.first_event_tokens, reported);
    v.choice({"status"}, r.status, request_status::left);
    v.whole({"http_status"}, r.http_status, {0, 999, 0});
    v.quoted({"finish_reason"}, r.finish_reason, true);
    v.quoted({"error"}, r.error, true);
    v.whole({"late_ns", "the client's own lateness"}, r.late_ns, {-max_count, max_count});
    v.whole({"cached_tokens", "of the prompt", at_times}, r.cached_tokens, may_be_reported);
    v.whole({"reasoning_tokens", "of the output", at_times}, r.reasoning_tokens, may_be_reported);
    v.whole({"hidden_tokens", "of the output, never streamed", at_times}, r.hidden_tokens,
            may_be_reported);
    v.exact({"conversation", "its number in the trace", at_times}, r.conversation, false);
    v.whole({"turn", "of the conversation", at_times}, r.turn, few);
    if (v.has("depth", r.depth != 0))
        v.whole({"depth", "in its session, 0 is the main line", at_times}, r.depth, few);
    if (v.has("part", r.part != 0))
        v.whole({"part", "of the workload: its place among the repeat's labels", at_times}, r.part);
    v.whole({"reads", "that brought content events", at_times}, r.reads, events);
    v.whole({"first_read_events", "", at_times}, r.first_read_events, events);
    if (v.has("unknown_gaps", r.unknown_gaps != 0))
        v.whole({"unknown_gaps", "between events that a late client read together: only the last "
                                 "of them has a time of its own", at_times},
                r.unknown_gaps, events);
    if (v.has("first_early_ns", r.first_early_ns != 0))
        v.whole({"first_early_ns", "the first token was one of these, and came earlier by this at "
                                   "most", at_times},
                r.first_early_ns, {0, max_count});
    v.whole({"text_bytes", "of generated text", at_times}, r.text_bytes, bytes);
    v.whole({"most_prompt_tokens", "that what was sent can be", at_times}, r.most_prompt_tokens,
            bytes);
    v.whole({"most_output_tokens", "that were asked for", at_times}, r.most_output_tokens,
            reported);
    v.whole({"choices", "answers that share the stream", at_times}, r.choices, few);
    bool right = r.right && *r.right;
    if (v.has("right", static_cast<bool>(r.right))) {
        v.flag({"right", "the answer to a question", at_times}, right);
        if (v.assigns()) r.right = right;
    }
    if (v.has("graded", !r.graded.empty()))
        v.quoted({"graded", "what was read in it", at_times}, r.graded, true);
    std::string hash = printed("%016llx", r.answer_hash);
    if (v.has("answer_hash", r.answer_hash != 0)) {
        v.text({"answer_hash", "of all that was generated", at_times}, hash);
        if (v.assigns()) r.answer_hash = hash_in(hash);
    }
    v.whole({"resends", "times it was sent again", at_times}, r.resends, few);
    if (v.has("idle_ns", r.idle_ns != 0))
        v.whole({"idle_ns", "that its lost connection had not been used", at_times}, r.idle_ns);
}

inline void move_clock(record& r, long long by_ns) {
    clock_mover mover(by_ns);
    std::string gate;
    fields_of(mover, r, gate);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
