// functions of users' own APIs
#pragma once

#include "api/own_api.hpp"
#include "core/base/text.hpp"
#include "core/dialects/own_api.hpp"
#include "core/dialects/table.hpp"

#include <algorithm>  // min
#include <cmath>  // floor
#include <string>

#include <picojson.h>  // JSON of servers

#ifndef LLMBENCH_NO_BODIES
namespace llmbench {
inline namespace v0 {

types::text api_request::model() const { return of_.model; }
types::text api_request::prompt() const { return detail::joined_prompt(of_.asked); }
types::whole api_request::max_tokens() const { return of_.asked.max_tokens; }
bool api_request::streams() const { return of_.asked.stream; }
api_request& api_request::text(const char* field, const types::text& value) {
    of_.to.string(field, detail::str(value));
    return *this;
}
api_request& api_request::number(const char* field, double value) {
    of_.to.raw(field, detail::json_number(value));
    return *this;
}
api_request& api_request::flag(const char* field, bool value) {
    of_.to.flag(field, value);
    return *this;
}
api_request& api_request::json(const char* field, const types::text& value) {
    of_.to.raw(field, detail::str(value));
    return *this;
}

const char* api_event::data() const { return of_.data.data(); }
types::whole api_event::size() const { return of_.data.size(); }
types::text api_event::text(const char* way) const {
    const picojson::value* v = of_.at(way);
    return v && v->is<std::string>() ? v->get<std::string>() : std::string();
}
double api_event::number(const char* way) const {
    const picojson::value* v = of_.at(way);
    return v && v->is<double>() ? v->get<double>() : detail::not_a_number;
}
bool api_event::flag(const char* way) const {
    const picojson::value* v = of_.at(way);
    return v && v->is<bool>() && v->get<bool>();
}
void api_event::content(const types::text& bytes) {
    of_.says.take(detail::str(bytes), false);
    of_.memory.keep(detail::str(bytes), false);
}
void api_event::prompt_tokens(double n) {
    if (n >= 0) of_.says.prompt_tokens = static_cast<int>(std::min(n, 2e9));
}
void api_event::output_tokens(double n) {
    if (n >= 0) detail::note_output_tokens(of_.says, static_cast<int>(std::min(n, 2e9)));
}
void api_event::finish(const types::text& reason) { of_.says.finish(detail::str(reason)); }
void api_event::end() { of_.says.done = true; }
void api_event::error(const types::text& why) { of_.says.error = detail::str(why); }

namespace detail {
/// A function for events reads whole answers, too.
box own_api(const api& a) {
    const bool of_bytes = a.framed == framing::pieces;
    const auto given = [](const char* s) { return s ? s : ""; };
    return box::make(api_traits{.name = given(a.name),
                                .path = given(a.path),
                                .framed = a.framed,
                                .ends_with_body = a.ends_with_body || of_bytes,
                                .forces_lengths = a.forces_lengths,
                                .reports_usage = a.tells_usage,
                                .tells_prompt_tokens = a.tells_usage,
                                .tells_reason = !(a.ends_with_body || of_bytes),
                                .models = given(a.models),
                                .needs_model = *given(a.models) != '\0',
                                .ready = given(a.ready),
                                .metrics = given(a.metrics),
                                .key_before = given(a.key_before),
                                .own_write = a.write,
                                .own_read = a.read,
                                .is_own = true});
}
}  // namespace detail

}  // inline namespace v0
}  // namespace llmbench
#endif
