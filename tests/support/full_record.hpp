// A record that has all of its fields.
#pragma once

#include "api/result.hpp"

namespace full_records {

inline constexpr long long over_double = 9007199254740993;  // 2^53 + 1: no double is this

inline llmbench::record full_record() {
    llmbench::record r;
    r.id = "llmbench-1c-0-17";
    r.repeat = 3;
    r.scheduled_ns = over_double;
    r.dispatched_ns = over_double + 2;
    r.connected_ns = over_double + 4;
    r.sent_ns = over_double + 6;
    r.first_token_ns = over_double + 8;
    r.last_token_ns = over_double + 10;
    r.end_ns = over_double + 12;
    r.second_token_ns = over_double + 9;
    r.first_answer_ns = over_double + 11;
    r.reasoning_tokens = 6;
    r.hidden_tokens = 4;
    r.late_ns = 1'000'003;
    r.prompt_tokens = 17;
    r.output_tokens = 9;
    r.events = 4;
    r.first_event_tokens = 2;
    r.http_status = 200;
    r.status = llmbench::request_status::ok;
    r.finish_reason = "stop";
    r.cached_tokens = 16;
    r.conversation = over_double;
    r.turn = 2;
    r.reads = 3;
    r.first_read_events = 2;
    r.text_bytes = 40;
    r.most_prompt_tokens = 90;
    r.most_output_tokens = 64;
    r.length_forced = true;
    r.asked_prompt_tokens = 15;
    r.shared_tokens = 8;
    r.opening_hash = 255;
    r.choices = 5;
    r.resends = 1;
    return r;
}

}  // namespace full_records
