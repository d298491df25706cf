// secrets in texts
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // min
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Shorter words are not secrets, and masking them would garble texts.
inline constexpr std::size_t shortest_secret = 4;

/// Adds a secret, and how messages may quote it.
inline void add_secret(vector<std::string>& secrets, const std::string& s) {
    if (s.size() < shortest_secret) return;
    secrets.push_back(s);
    const std::string json = json_quoted(s);
    for (const std::string& quoted : {printable(s, s.size() * 4), json.substr(1, json.size() - 2)})
        if (quoted != s) secrets.push_back(quoted);
    // "Bearer abc": the server may repeat only the second word.
    if (const std::size_t space = s.find(' '); space != std::string::npos)
        add_secret(secrets, s.substr(space + 1));
}
/// Whether the name of a variable marks a secret: HF_TOKEN, DB_PASSWORD.
inline bool names_secret(std::string_view name) {
    for (std::size_t at = 0; at < name.size();) {
        const std::size_t end = std::min(name.find('_', at), name.size());
        const std::string_view word = name.substr(at, end - at);
        for (const std::string_view ending :
             {"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "AUTH"})
            if (word.size() >= ending.size() &&
                same_ignoring_case(word.substr(word.size() - ending.size()), ending))
                return true;
        at = end + 1;
    }
    return false;
}
/// Masks secrets in a server's text, whole or cut off by printable().
inline std::string without_secrets(std::string s, const vector<std::string>& secrets) {
    if (s.empty()) return s;
    for (const std::string& secret : secrets) {
        for (std::size_t at = 0; (at = s.find(secret, at)) != std::string::npos; at += 3)
            s.replace(at, secret.size(), "***");
        if (s.size() <= 3 || s.compare(s.size() - 3, 3, "...") != 0) continue;
        for (std::size_t n = std::min(secret.size(), s.size() - 3); n >= shortest_secret; --n)
            if (s.compare(s.size() - 3 - n, n, secret, 0, n) == 0) {
                s.replace(s.size() - 3 - n, n, "***");
                break;
            }
    }
    return s;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
