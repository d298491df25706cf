// a server's first answer, checked against the load
#pragma once

#include "core/base/json.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/dialects/stream_event.hpp"
#include "core/dialects/table.hpp"
#include "core/wire/url.hpp"
#include "effects/system/settings.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/load/order.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <string>
#include <string_view>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Returns "GET /v1/models answered HTTP 401: no such key", shortened.
inline std::string quoted_answer(const load_target& to, const char* method,
                                 const std::string& path, const http_answer& a) {
    picojson::value v;
    const std::string reported = parse_json(a.body, v) ? refusal_message(v) : "";
    const std::string words = without_secrets(reported.empty() ? a.body : reported, to.secrets);
    return method + (" " + path) + " answered HTTP " + std::to_string(a.status) +
           (words.empty() ? " and nothing else" : ": " + printable(trimmed(words), 160));
}

inline bool is_this_host(const http_url& u) {
    return !u.socket.empty() || u.host == "localhost" || u.host == "::1" ||
           u.host.compare(0, 4, "127.") == 0;
}
/// Returns a note on a proxy that the environment names for this server, as for curl, and that is
/// not used; "" if none.
inline std::string ignored_proxy(const http_url& u, const variable_lookup& look_up) {
    if (is_this_host(u)) return {};
    std::string set;
    for (const char* name : {u.tls ? "https_proxy" : "http_proxy", u.tls ? "HTTPS_PROXY" : "",
                             "all_proxy", "ALL_PROXY"})
        if (set.empty() && *name && !look_up(name).empty()) set = name;
    std::string without = look_up("no_proxy");
    if (without.empty()) without = look_up("NO_PROXY");
    for (std::string_view rest = without; !rest.empty();) {
        const std::size_t end = std::min(rest.find(','), rest.size());
        std::string_view name = trimmed(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (name == "*" || name == u.host) return {};
        while (!name.empty() && (name.front() == '*' || name.front() == '.'))
            name.remove_prefix(1);
        if (!name.empty() && u.host.ends_with("." + std::string(name))) return {};
    }
    return set.empty() ? set : set + " is set and not used: " + u.authority() +
                                   " is asked directly, through no proxy";
}

/// Returns advice on a refused key.
inline std::string key_hint(const load_target& to) {
    const std::string_view before = to.api->key_before;
    const std::string_view header = before.substr(0, before.find(':') + 1);
    bool was_sent = false;
    for (std::size_t at = 0; at < to.fields.size(); at = to.fields.find('\n', at) + 1)
        was_sent |= same_ignoring_case(std::string_view(to.fields).substr(at, header.size()),
                                       header);
    return was_sent ? "it does not take the key that was sent"
                    : "no key was sent: set LLMBENCH_API_KEY (of a baseline on another host "
                      "LLMBENCH_BASELINE_API_KEY), or name its variable in endpoint.api_key_env";
}
/// Returns advice on an unknown path: most often the address of an answer was pasted. "" without a
/// path.
inline std::string path_hint(const load_target& to, const std::string& url) {
    const std::string& path = to.url.path;
    if (path.empty() || is_at_whole_url(*to.api)) return {};
    if (names_whole_path(*to.api, path))
        return "the URL names the whole path, " + path + ": does this server have its API there?";
    for (const api_traits& a : apis)
        for (const std::string_view own : {std::string_view(a.path), std::string_view(a.whole_path),
                                           std::string_view(a.models)}) {
            if (own.empty() || !path.ends_with(own)) continue;
            const std::size_t end = url.rfind(own);
            return "the URL ends with " + std::string(own) + ", which is added to it: write " +
                   url.substr(0, end);
        }
    return "the URL's own path is " + path + ": is that where this server has its API? If it has " +
           "a path of its own, name it by endpoint.path";
}

/// Returns why a server with this answer cannot take the load, "" if it may.
inline std::string why_not_served(const load_target& to, const char* method,
                                  const std::string& path, const http_answer& a,
                                  const std::string& url) {
    std::string hint;
    switch (a.status) {
    case 401:
    case 403: hint = key_hint(to); break;
    case 404:
    case 405:
    case 501: hint = path_hint(to, url); break;
    default: return {};
    }
    return url + " does not serve this API: " + quoted_answer(to, method, path, a) +
           (hint.empty() ? "" : "; " + hint);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
