// user-defined APIs
#pragma once

#include "api/own_api.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/stream_event.hpp"

#include <cstddef>  // size_t
#include <exception>
#include <string>
#include <string_view>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

struct own_request {
    body_writer& to;
    const std::string& model;
    const request_spec& asked;
};
struct own_event {
    std::string_view data;
    stream_event& says;
    stream_memory& memory;
    bool is_parsed = false;
    picojson::value json{};

    /// The value at "choices.0.text", or nullptr.
    const picojson::value* at(std::string_view way) {
        if (!is_parsed && !parse_json(data, json)) json = {};
        is_parsed = true;
        const picojson::value* v = &json;
        while (v && !way.empty()) {
            const std::string name(way.substr(0, way.find('.')));
            way.remove_prefix(name.size() + (name.size() < way.size()));
            const auto place = parsed_number<std::size_t>(name);
            if (!v->is<picojson::array>()) v = member(*v, name.c_str());
            else v = place && v->contains(*place) ? &v->get(*place) : nullptr;
        }
        return v;
    }
};

inline void write_own(const char* api, void (*write)(api_request&), body_writer& to,
                      const std::string& model, const request_spec& asked) {
    own_request r{to, model, asked};
    api_request seen(r);
    call_of_user({".write of the API \"", api, "\""}, [&] { write(seen); });
}
/// An unreadable event is the server's error.
inline stream_event read_own(void (*read)(api_event&), std::string_view type,
                             std::string_view data, stream_memory& memory) {
    stream_event e;
    if (trimmed(data).empty()) return e;  // a keep-alive
    if (speaks_of_error(type)) e.error = printable(data);
    e.done = trimmed(data) == "[DONE]";
    if (e.done || !e.error.empty()) return e;
    own_event seen{data, e, memory};
    api_event shown(seen);
    try {
        call_of_user({"reading an event"}, [&] { read(shown); });
    } catch (const std::exception& x) {
        e.error = x.what();
        e.malformed = true;
    }
    return e;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
