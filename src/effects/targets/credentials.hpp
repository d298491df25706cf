// who asks a server
#pragma once

#include "api/target.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/dialects/table.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The header lines that all requests to a server share, and what of them is for nobody else.
struct credentials {
    std::string fields{};
    std::vector<std::string> secrets{};

    /// The value of a header or of a variable. A short one ("gzip") is none.
    void keep_secret(const std::string& value) {
        if (value.size() >= 8) add_secret(secrets, value);
    }
};

/// Throws std::invalid_argument where a gate cannot send such a header.
inline void check_header(const std::string& name, const std::string& value) {
    if (!is_token(name))
        refuse({"endpoint.headers has the name \"", printable(name),
                "\": it must be one word without a colon"});
    if (!is_header_safe(value))
        refuse({"endpoint.headers: the value of ", name,
                " holds a line break or another control character"});
    for (const char* ours : {"host", "content-length", "content-type", "transfer-encoding",
                             "connection", "x-request-id"})
        if (same_ignoring_case(name, ours))
            refuse({"endpoint.headers sets ", name, ": that header belongs to llmbench"});
}

/// The variable that holds the key.
inline std::string key_variable(const endpoint& e) {
    return e.api_key_env.empty() ? "LLMBENCH_API_KEY" : str(e.api_key_env);
}

/// Throws std::invalid_argument where the key was asked for and is not there, or cannot be sent.
inline void check_key(const endpoint& e, const std::string& key) {
    const std::string variable = key_variable(e);
    const bool is_name = variable.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
                         std::string::npos;
    if (!e.api_key_env.empty() && key.empty()) {
        if (is_name)
            refuse({"endpoint.api_key_env is \"", variable, "\": that variable is not set"});
        refuse({"endpoint.api_key_env names a variable that is not set; it is not repeated here, "
                "for it looks like a key and not like a name"});
    }
    if (!is_header_safe(key))
        refuse({"the API key in ", variable, " holds a line break or another control character"});
}

/// The header line with the key, "" where there is none. Where the gate names a header of that
/// kind itself, LLMBENCH_API_KEY is for others.
inline std::string key_line(const endpoint& e, const api_traits& api, const std::string& key) {
    const std::string_view header = api.key_before;
    for (const name_value& h : e.headers) {
        if (!same_ignoring_case(str(h.name), header.substr(0, header.find(':')))) continue;
        if (!e.api_key_env.empty())
            refuse({"endpoint.headers sets ", str(h.name), " and ",
                    "endpoint.api_key_env names a key: give one of them"});
        return {};
    }
    return key.empty() ? key : api.key_before + key + "\r\n";
}

/// `key`: what key_variable() holds, "" where it is not set. Throws std::invalid_argument.
inline credentials credentials_of(const endpoint& e, const api_traits& api,
                                  const std::string& key) {
    credentials c;
    c.fields = "User-Agent: llmbench\r\nContent-Type: application/json\r\n";
    c.fields += api.fields;
    for (const name_value& h : e.headers) {
        const std::string name = str(h.name), value = str(h.value);
        check_header(name, value);
        c.fields += name + ": " + value + "\r\n";
        c.keep_secret(value);
    }
    check_key(e, key);
    add_secret(c.secrets, key);
    c.fields += key_line(e, api, key);
    return c;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
