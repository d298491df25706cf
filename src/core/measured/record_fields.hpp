// the fields of a record
#pragma once

#include "api/result.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"

#include <charconv>  // from_chars
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns the value of sixteen hex digits, else 0.
inline unsigned long long hash_in(const std::string& digits) {
    unsigned long long hash = 0;
    const char* const end = digits.data() + digits.size();
    const bool is_hash = digits.size() == 16 &&
                         std::from_chars(digits.data(), end, hash, 16).ptr == end;
    return is_hash ? hash : 0;
}

inline constexpr whole_range reported_range{0, max_reported_tokens},
    maybe_reported_range{0, max_reported_tokens, -1}, events_range{0, max_events},
    few_range{0, most_of_few}, text_range{0, max_text_bytes};
inline void size_fields(field_visitor& v, record& r) {
    v.whole({"text_bytes", "of generated text", at_times}, r.text_bytes, text_range);
    v.whole({"most_prompt_tokens", "that what was sent can be; negative where the server adds the "
                                   "history that it keeps", at_times},
            r.most_prompt_tokens, {-max_text_bytes, max_text_bytes});
    v.whole({"most_output_tokens", "that were asked for", at_times}, r.most_output_tokens,
            reported_range);
    v.whole({"choices", "answers that share the stream", at_times}, r.choices, few_range);
}
/// What the workload asked for.
inline void asked_fields(field_visitor& v, record& r) {
    if (v.has("length_forced", r.length_forced))
        v.flag({"length_forced", "to most_output_tokens", at_times}, r.length_forced);
    v.whole({"asked_prompt_tokens", "of a made-up prompt, without earlier turns", if_any},
            r.asked_prompt_tokens, reported_range);
    if (v.has("shared_tokens", r.shared_tokens >= 0))
        v.whole({"shared_tokens", "of the prompt, that the workload lets a prefix cache have",
                 at_times},
                r.shared_tokens, maybe_reported_range);
}
/// Sixteen hex digits, where it is not 0.
inline void hash_field(field_visitor& v, const field& f, unsigned long long& of) {
    std::string hash = printed("%016llx", of);
    if (!v.has(f.name, of != 0)) return;
    v.text(f, hash);
    if (v.assigns()) of = hash_in(hash);
}
/// What was asked for and read in the answer.
inline void answer_fields(field_visitor& v, record& r) {
    bool right = r.right && *r.right;
    if (v.has("right", static_cast<bool>(r.right))) {
        v.flag({"right", "the answer to a question", at_times}, right);
        if (v.assigns()) r.right = right;
    }
    v.quoted_or_null({"graded", "what was read in it", if_any}, r.graded);
    if (v.has("question", r.question >= 0))
        v.whole({"question", "its number in the workload, the same each time it is asked",
                 at_times}, r.question);
    hash_field(v, {"answer_hash", "of all that was generated", at_times}, r.answer_hash);
    hash_field(v, {"opening_hash", "of its first 128 bytes, of a made-up prompt", at_times},
               r.opening_hash);
}
/// Its place in the traffic.
inline void place_fields(field_visitor& v, record& r) {
    v.exact({"conversation", "its number in the trace", at_times}, r.conversation);
    v.whole({"turn", "of the conversation", at_times}, r.turn, few_range);
    v.whole({"depth", "in its session, 0 is the main line", if_any}, r.depth, few_range);
    v.whole({"part", "of the workload: its place among the repeat's labels", if_any}, r.part);
}
/// Which request it is, and of which load.
inline void identity_fields(field_visitor& v, record& r, std::string& gate) {
    v.text({"id", "sent as X-Request-Id"}, r.id);
    v.text({"gate"}, gate);
    v.choice({"arm"}, r.variant, run_variant::baseline);
    v.whole({"repeat"}, r.repeat, few_range);
    v.choice({"phase"}, r.phase, run_phase::after);
}
inline void time_fields(field_visitor& v, record& r) {
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
}
inline void token_fields(field_visitor& v, record& r) {
    v.whole({"prompt_tokens"}, r.prompt_tokens, reported_range);
    v.whole({"output_tokens"}, r.output_tokens, reported_range);
    v.choice({"token_source"}, r.token_source, token_origin::no_usage);
    v.whole({"events"}, r.events, events_range);
    v.whole({"first_event_tokens"}, r.first_event_tokens, reported_range);
}
/// How it ended.
inline void end_fields(field_visitor& v, record& r) {
    v.choice({"status"}, r.status, request_status::left);
    v.whole({"http_status"}, r.http_status, {0, 999, 0});
    v.quoted_or_null({"finish_reason"}, r.finish_reason);
    v.quoted_or_null({"error"}, r.error);
    v.whole({"late_ns", "the client's own lateness"}, r.late_ns, {-max_count, max_count});
}
/// The tokens that are not like the others.
inline void token_kind_fields(field_visitor& v, record& r) {
    v.whole({"cached_tokens", "of the prompt", at_times}, r.cached_tokens, maybe_reported_range);
    v.whole({"reasoning_tokens", "of the output", at_times}, r.reasoning_tokens,
            maybe_reported_range);
    v.whole({"hidden_tokens", "of the output, never streamed", at_times}, r.hidden_tokens,
            maybe_reported_range);
    v.whole({"tokens_at_once", "of the output, as a lump, faster than they were generated", if_any},
            r.tokens_at_once, reported_range);
}
/// How its events were read.
inline void read_fields(field_visitor& v, record& r) {
    v.whole({"reads", "that brought content events", at_times}, r.reads, events_range);
    v.whole({"first_read_events", "", at_times}, r.first_read_events, events_range);
    v.whole({"unknown_gaps", "between events that a late client read together: only the last "
                             "of them has a time of its own", if_any},
            r.unknown_gaps, events_range);
    v.whole({"first_early_ns", "the first token was one of these, and came earlier by this at "
                               "most", if_any},
            r.first_early_ns, {0, max_count});
    v.whole({"textless_ns", "after the last token with text, until the finish: tokens without "
                            "text came meanwhile", if_any},
            r.textless_ns, {0, max_count});
}
/// What answered it, and over which connection.
inline void way_fields(field_visitor& v, record& r) {
    if (v.has("model", !r.model.empty()))
        v.text({"model", "that the answer names, if it is another than the one asked for",
                at_times}, r.model);
    if (v.has("from_cache", r.from_cache))
        v.flag({"from_cache", "a gateway's cache gave the answer, by its headers", at_times},
               r.from_cache);
    v.whole({"resends", "times it was sent again", at_times}, r.resends, few_range);
    v.whole({"idle_ns", "that its lost connection had not been used", if_any}, r.idle_ns);
}
/// A line of records.jsonl and its gate.
inline void fields_of(field_visitor& v, record& r, std::string& gate) {
    identity_fields(v, r, gate);
    time_fields(v, r);
    token_fields(v, r);
    end_fields(v, r);
    token_kind_fields(v, r);
    place_fields(v, r);
    read_fields(v, r);
    size_fields(v, r);
    asked_fields(v, r);
    answer_fields(v, r);
    way_fields(v, r);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
