// one line of records.jsonl, read
#pragma once

#include "api/result.hpp"
#include "core/base/checked_json.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr double most_events = 1e7;        // of one answer
inline constexpr double most_told_tokens = 1e9;   // which a server may say of one request
inline constexpr double most_turns = 1e6;         // and of whatever else there are few
inline constexpr double most_text_bytes = 2147483647;  // of one answer

/// Refuses the times of an answer that cannot have been: what an answer took is the difference of
/// two of them, and one that is complete has them all, but for what it may lack: a second event, an
/// answer after its reasoning.
inline void check_order(const record& r) {
    if (r.status != request_status::ok) return;
    const char* before = "scheduled_ns";
    long long at_ns = r.scheduled_ns;
    const auto follows = [&](const char* name, long long ns) {
        if (ns < at_ns || ns == 0)
            throw std::invalid_argument(printed("%s is %lld, before its %s, which is %lld", name,
                                                ns, before, at_ns));
        before = name;
        at_ns = ns;
    };
    follows("sent_ns", r.sent_ns);
    follows("first_token_ns", r.first_token_ns);
    if (r.second_token_ns != 0) follows("second_token_ns", r.second_token_ns);
    follows("last_token_ns", r.last_token_ns);
    follows("end_ns", r.end_ns);
    const bool is_inside = r.first_answer_ns >= r.first_token_ns && r.first_answer_ns <= r.end_ns;
    if (r.first_answer_ns != 0 && !is_inside)
        throw std::invalid_argument(
            printed("first_answer_ns is %lld, not between its first_token_ns, %lld, and its "
                    "end_ns, %lld", r.first_answer_ns, r.first_token_ns, r.end_ns));
}

/// One line of records.jsonl, and the gate it belongs to. Throws std::invalid_argument.
inline record read_record(const std::string& line, std::string& gate) {
    picojson::value v;
    require(parse_json(line, v) && v.is<picojson::object>(), "it is not a JSON object");
    const checked_object told(v, "", "");
    const auto required = [&](const char* key) {
        if (!member(v, key))
            throw std::invalid_argument(std::string("it has no field ") + key);
    };
    const auto time = [&](const char* key) {
        return told.exact(key, latest_time_ns, [&] {
            const auto found = whole_numbers(line, key);
            return found.size() == 1 ? found[0] : std::nullopt;
        });
    };
    const auto one_of = [&](const char* key, auto last) {
        const std::string given = string_member(v, key);
        for (int k = 0; k <= static_cast<int>(last); ++k)
            if (given == to_string(static_cast<decltype(last)>(k)))
                return static_cast<decltype(last)>(k);
        throw std::invalid_argument(std::string(key) + " is \"" + printable(given, 40) + "\"");
    };
    record r;
    const picojson::value* name = member(v, "gate");
    require(name && name->is<std::string>(), "it has no field gate");
    gate = name->get<std::string>();
    r.id = string_member(v, "id");
    r.arm = one_of("arm", run_arm::baseline);
    r.phase = one_of("phase", run_phase::measure);
    r.status = one_of("status", request_status::unsent);
    r.token_source = one_of("token_source", token_origin::events);
    for (const auto& [key, into] :
         {std::pair{"scheduled_ns", &r.scheduled_ns}, std::pair{"dispatched_ns", &r.dispatched_ns},
          std::pair{"connected_ns", &r.connected_ns}, std::pair{"sent_ns", &r.sent_ns},
          std::pair{"first_token_ns", &r.first_token_ns},
          std::pair{"last_token_ns", &r.last_token_ns}, std::pair{"end_ns", &r.end_ns}}) {
        required(key);
        *into = time(key);
    }
    required("late_ns");
    r.late_ns = told.whole("late_ns", -latest_time_ns, latest_time_ns, 0ll);
    struct count { const char* key; int* into; double most; };
    for (const count& c : {count{"repeat", &r.repeat, most_turns},
                           count{"prompt_tokens", &r.prompt_tokens, most_told_tokens},
                           count{"output_tokens", &r.output_tokens, most_told_tokens},
                           count{"events", &r.events, most_events},
                           count{"first_event_tokens", &r.first_event_tokens, most_told_tokens},
                           count{"http_status", &r.http_status, 999}}) {
        required(c.key);
        *c.into = told.whole(c.key, 0, c.most, 0);
    }
    for (const auto& [key, into] :
         {std::pair{"finish_reason", &r.finish_reason}, std::pair{"error", &r.error}}) {
        const std::string words = string_member(v, key);
        *into = printable(words, 4 * words.size() + 4);
    }
    // Files of older versions end here.
    for (const count& c : {count{"cached_tokens", &r.cached_tokens, most_told_tokens},
                           count{"reasoning_tokens", &r.reasoning_tokens, most_told_tokens}})
        *c.into = told.whole(c.key, 0, c.most, -1);
    const picojson::value* hidden = member(v, "hidden_tokens");
    r.hidden_tokens = hidden && hidden->is<picojson::null>()
                          ? -1  // nobody can tell
                          : told.whole("hidden_tokens", 0, most_told_tokens, 0);
    r.second_token_ns = time("second_token_ns");
    r.first_answer_ns = time("first_answer_ns");
    r.conversation = time("conversation");
    for (const count& c : {count{"turn", &r.turn, most_turns},
                           count{"reads", &r.reads, most_events},
                           count{"first_read_events", &r.first_read_events, most_events},
                           count{"text_bytes", &r.text_bytes, most_text_bytes},
                           count{"most_prompt_tokens", &r.most_prompt_tokens, most_text_bytes},
                           count{"choices", &r.choices, most_turns},
                           count{"resends", &r.resends, most_turns}})
        *c.into = told.whole(c.key, 0, c.most, 0);
    check_order(r);
    return r;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
