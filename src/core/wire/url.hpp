// URLs
#pragma once

#include "core/base/bytes.hpp"
#include "core/base/secrets.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // min
#include <stdexcept>  // invalid_argument
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A target: http://host:port/path, the same with https, or unix:/path/of/a.socket.
struct http_url {
    std::string host{};  // "localhost" for a Unix-domain socket
    std::string port{};
    std::string path{};  // without a trailing slash, "" for the root
    std::string query{};  // with its question mark, "" for none
    bool ipv6 = false;
    bool tls = false;
    std::string socket{};  // the Unix-domain socket, "" for TCP
    std::string login{};   // "user:password" before the host, "" for none
    std::string authority() const {
        const std::string name = ipv6 ? "[" + host + "]" : host;
        return port == (tls ? "443" : "80") ? name : name + ":" + port;
    }
};

/// The header line of a URL's user and password (RFC 7617), "" without them.
inline std::string login_line(const http_url& u) {
    return u.login.empty() ? "" : "Authorization: Basic " + base64(u.login) + "\r\n";
}
/// The URL of the server alone.
inline std::string without_path(const std::string& url) {
    const std::size_t scheme = url.find("://");
    return scheme == std::string::npos ? url : url.substr(0, url.find_first_of("/?", scheme + 3));
}

/// A URL for errors, without passwords and keys.
inline std::string without_credentials(std::string_view url) {
    std::string s(url);
    const std::size_t scheme = s.find("://");
    const std::size_t from = scheme == std::string::npos ? 0 : scheme + 3;
    if (const std::size_t query = s.find_first_of("?#", from); query != std::string::npos)
        s.replace(query + 1, std::string::npos, "...");
    if (const std::size_t at = s.find_last_of('@'); at != std::string::npos && at >= from)
        s.replace(from, at - from, "...");
    return s;
}

/// The values in a URL's query that may be keys: all except versions.
inline vector<std::string_view> query_secrets(std::string_view url) {
    vector<std::string_view> found;
    std::size_t at = url.find('?');
    while (at < url.size()) {
        const std::size_t end = std::min(url.find('&', at + 1), url.size());
        const std::string_view one = url.substr(at + 1, end - at - 1);
        const std::size_t value = std::min(one.find('='), one.size());
        if (value + 1 < one.size() && one.substr(0, value).find("version") == std::string::npos)
            found.push_back(one.substr(value + 1));
        at = end;
    }
    return found;
}
/// What stands before the host and an "@": "user:password".
inline std::string_view login_in(std::string_view url) {
    const std::size_t scheme = url.find("://");
    if (scheme == std::string_view::npos) return {};
    url.remove_prefix(scheme + 3);
    url = url.substr(0, url.find_first_of("/?#"));
    const std::size_t at = url.rfind('@');
    return at == std::string_view::npos ? std::string_view() : url.substr(0, at);
}
/// A URL for reports, without those values.
inline std::string shown_url(std::string_view url) {
    std::string shown;
    if (const std::string_view login = login_in(url); !login.empty()) {
        const auto before = static_cast<std::size_t>(login.data() - url.data());
        shown.append(url.substr(0, before)).append("***");
        url.remove_prefix(before + login.size());
    }
    for (const std::string_view s : query_secrets(url)) {
        shown.append(url.data(), s.data()).append("***");
        url.remove_prefix(static_cast<std::size_t>(s.data() - url.data()) + s.size());
    }
    return shown.append(url);
}

/// Why a text is no valid path or query, "" if it is one.
inline const char* why_no_path(std::string_view s) {
    for (const char c : s)
        if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7F)
            return "a URL holds no spaces or control characters";
    return s.find('#') != std::string_view::npos ? "a fragment is not allowed" : "";
}

/// Throws std::invalid_argument with the reason.
inline http_url parsed_url(std::string_view whole, std::string_view field) {
    const auto refuse = [&](const char* why) {
        return std::invalid_argument(printed("%s is \"%s\": %s", std::string(field).c_str(),
                                             printable(without_credentials(whole)).c_str(), why));
    };
    if (const char* const why = why_no_path(whole); *why) throw refuse(why);
    http_url u;
    if (whole.substr(0, 5) == "unix:") {
        u.host = "localhost";
        u.port = "80";
        u.socket = whole.substr(whole.substr(0, 7) == "unix://" ? 7 : 5);
        if (u.socket.empty() || u.socket.front() != '/')
            throw refuse("a Unix-domain socket is named by its full path, unix:/run/server.sock");
        constexpr std::size_t longest = 107;  // of sockaddr_un without its final zero
        if (u.socket.size() > longest)
            throw refuse("the path of a Unix-domain socket has at most 107 bytes");
        return u;
    }
    u.tls = whole.substr(0, 8) == "https://";
    if (whole.substr(0, 5) == "ws://" || whole.substr(0, 6) == "wss://")
        throw refuse("a WebSocket is asked for by its transport, the URL begins with http:// or "
                     "https://");
    if (!u.tls && whole.substr(0, 7) != "http://")
        throw refuse("it must start with http://, https:// or unix:/");
    std::string_view rest = whole.substr(u.tls ? 8 : 7);
    const std::size_t slash = std::min(rest.find_first_of("/?"), rest.size());
    std::string_view authority = rest.substr(0, slash);
    const std::size_t question = std::min(rest.find('?'), rest.size());
    u.path = std::string(rest.substr(slash, question - slash));
    u.query = std::string(rest.substr(question));
    if (u.query == "?") u.query.clear();
    while (!u.path.empty() && u.path.back() == '/') u.path.pop_back();
    if (const std::string_view login = login_in(whole); !login.empty()) {
        u.login = percent_decoded(login);
        if (u.login.find(':') == std::string::npos) u.login += ':';
    }
    authority.remove_prefix(authority.rfind('@') + 1);
    u.port = u.tls ? "443" : "80";
    std::size_t colon = authority.rfind(':');
    if (!authority.empty() && authority.front() == '[') {
        const std::size_t close = authority.find(']');
        if (close == std::string_view::npos)
            throw refuse("the IPv6 address has no closing bracket");
        u.host = std::string(authority.substr(1, close - 1));
        u.ipv6 = true;
        if (close + 1 < authority.size() && authority[close + 1] != ':')
            throw refuse("the port must follow a colon");
        colon = close + 1 < authority.size() ? close + 1 : std::string_view::npos;
    } else {
        u.host = std::string(authority.substr(0, colon));
        if (u.host.find(':') != std::string::npos)
            throw refuse("an IPv6 address stands in brackets, http://[::1]:8000");
    }
    if (colon != std::string_view::npos) {
        u.port = std::string(authority.substr(colon + 1));
        const int port = parsed_number<int>(u.port).value_or(0);
        if (port < 1 || port > 65535) throw refuse("the port must be a number from 1 to 65535");
    }
    if (u.host.empty()) throw refuse("the host is missing");
    return u;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
