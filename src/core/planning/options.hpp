// the options of requests
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/workload.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/table.hpp"
#include "core/measured/repeat_fields.hpp"

#include <string>
#include <string_view>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The objects in which TGI, Ollama and SGLang keep their own fields.
inline bool holds_options(std::string_view name, const picojson::value& value) {
    return value.is<picojson::object>() &&
           (name == "parameters" || name == "options" || name == "sampling_params");
}
inline picojson::object extra_body_of(const request_options& o) {
    picojson::value v;
    if (o.extra_body.empty()) return {};
    if (!parse_json(str(o.extra_body), v) || !v.is<picojson::object>())
        refuse({"options.extra_body is \"", printable(str(o.extra_body), 80),
                "\": it must be a JSON object"});
    return v.get<picojson::object>();
}
/// Adds the fields of options.extra_body, and its objects of options.
inline void add_extra_body(request_spec& r, const request_options& o) {
    const auto checked = [](const std::string& name, const picojson::value& value,
                            std::string_view object) {
        const std::string why = fault_of_field("options.extra_body", name, value);
        if (!why.empty()) refuse({why});
        return "," + json_quoted(name) + ":" + exact_json(value, member_text(object, name));
    };
    const std::string text = str(o.extra_body);
    for (const auto& [name, value] : extra_body_of(o)) {
        const std::string field = checked(name, value, text);
        if (!holds_options(name, value)) {
            r.extra_fields += field;
            continue;
        }
        r.extra_objects.push_back({name, {}});
        for (const auto& [inner, v] : value.get<picojson::object>())
            r.extra_objects.back().fields += checked(inner, v, member_text(text, name));
    }
}

inline void check_options(const request_options& o) {
    const double max_tokens = o.max_tokens ? *o.max_tokens : 1;
    const double temperature = o.temperature ? *o.temperature : 0;
    check_numbers({{"options.max_tokens", max_tokens, 1, infinity},
                   {"options.temperature", temperature, 0, 10},
                   {"options.documents", static_cast<double>(o.documents), 0, 10000, "",
                    "runs from 1 to 10000, and 0 is the API's own"}});
    if (const double s = o.cancel_after.seconds(); s != 0 && !(s >= 0.001 && s <= 86400))
        refuse({"options.cancel_after is ", time_text(s), ": it runs from 1 ms to a day"});
}
/// Options of generation mean nothing to an API that generates nothing, those of OpenAI's body to
/// others.
inline void check_options_of(const api_traits& api, const request_options& o) {
    const bool is_openai = api.read == read_openai;
    const std::string field = str(o.max_tokens_field);
    if (!o.include_usage && !is_openai)
        refuse({"options.include_usage is false, and ", api.name, " sends no stream_options"});
    if (o.continuous_usage && (!is_openai || !o.include_usage || !o.stream))
        refuse({"options.continuous_usage is true, ",
                !is_openai ? "and " + std::string(api.name) + " sends no stream_options"
                           : std::string("which needs include_usage and stream")});
    if (o.server_history && api.read != read_responses)
        refuse({"options.server_history is true, and ", api.name,
                " has no previous_response_id: .api = openai_responses has"});
    if (!field.empty() && api.is_own)
        refuse({"options.max_tokens_field is set, and the API's own .write names that field"});
    const bool is_word = all_of(field, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
    if (!is_word || field.size() > 40 || extra_body_of(o).count(field))
        refuse({"options.max_tokens_field is \"", printable(field, 60),
                "\": it is a field of up to 40 lower-case letters and _, which options.extra_body "
                "does not set"});
    if (*api.needs_field && !extra_body_of(o).count(api.needs_field))
        refuse({"options.extra_body has no \"", api.needs_field, "\": ", api.name,
                " answers no request without it"});
    if (api.generates) return;
    const char* unused = o.max_tokens               ? "max_tokens"
                         : o.temperature            ? "temperature"
                         : !field.empty()           ? "max_tokens_field"
                         : !o.system_prompt.empty() ? "system_prompt"
                         : o.ignore_eos             ? "ignore_eos"
                         : o.events_are_tokens      ? "events_are_tokens"
                                                    : nullptr;
    if (unused)
        refuse({"options.", unused, " is set, and ", api.name,
                " generates nothing that it could be of"});
}
/// Cancelled requests are load only: some must stay, so that answers can be judged.
inline void check_somebody_stays(const request_options& o) {
    if (o.cancel_after.seconds() > 0)
        refuse({"options.cancel_after is ", time_text(o.cancel_after.seconds()),
                " for all requests, and nobody is left whose answers could be judged: give it to a "
                "part of a mix"});
}
inline request_spec common_request(const request_options& o, const api_traits& api) {
    request_spec r;
    r.temperature = o.temperature ? *o.temperature : not_a_number;
    r.system_prompt = str(o.system_prompt);
    r.stream = o.stream && api.generates;
    r.events_are_tokens = o.events_are_tokens;
    r.include_usage = o.include_usage;
    r.continuous_usage = o.continuous_usage;
    r.server_history = o.server_history;
    r.max_tokens_field = str(o.max_tokens_field);
    r.cancel_after_s = o.cancel_after.seconds();
    add_extra_body(r, o);
    r.max_tokens = o.max_tokens ? *o.max_tokens : 0;
    const long long documents = o.documents;
    r.documents = documents > 0 ? static_cast<int>(documents) : api.documents;
    return r;
}

/// Returns USD an hour, 0 if not given.
inline double planned_cost(const scenario& s, const api_traits& api) {
    if (!s.cost) return 0;
    const double usd = (*s.cost).usd;
    check_numbers({{"cost", usd, above_zero, max_cost, " USD an hour"}});
    if (!api.generates)
        refuse({"cost is told for a million output tokens, and ", api.name, " generates none"});
    return usd;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
