// secrets in texts
#pragma once

#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // find, find_if, min
#include <cstring>  // strlen
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Shorter words are not secrets, and masking them would garble texts.
inline constexpr std::size_t shortest_secret = 4;
/// The same for a line of a secret that has several.
inline constexpr std::size_t shortest_line = 8;

/// How much of a secret stands at the beginning of a text, in bytes of both.
struct found_secret {
    std::size_t in_text = 0, of_secret = 0;
};
/// One character of a secret as texts may have it: itself, or escaped for JSON (also for JSON in
/// JSON), a console, Markdown, a URL, HTML or XML; a blank may be a broken line. 0: it is not
/// there.
inline found_secret found_character(std::string_view text, std::string_view secret) {
    if (text.empty() || secret.empty()) return {};
    const char c = secret[0];
    const auto code = [&](std::size_t at, std::size_t digits, int base) {
        return parsed_number<unsigned>(text.substr(std::min(at, text.size()), digits), base)
            .value_or(0);
    };
    const auto is_byte = [&](unsigned n) { return n != 0 && n == static_cast<unsigned char>(c); };
    if (text[0] == '%' && is_byte(code(1, 2, 16))) return {3, 1};
    if (c == ' ' && (text[0] == '+' || text[0] == '\n'))
        return {text[0] == '+' ? 1 : std::min(text.find_first_not_of(" \n"), text.size()), 1};
    if (text[0] == '&') {
        for (const auto& [name, meant] : {std::pair{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'},
                                          {"&quot;", '"'}, {"&apos;", '\''}})
            if (c == meant && text.starts_with(name)) return {std::strlen(name), 1};
        const std::size_t end = text.substr(0, 8).find(';');
        const bool is_hex = text.size() > 2 && (text[2] | 0x20) == 'x';
        if (end != text.npos && text.starts_with("&#") &&
            is_byte(code(is_hex ? 3 : 2, end - (is_hex ? 3 : 2), is_hex ? 16 : 10)))
            return {end + 1, 1};
    }
    const std::size_t bars = std::min(text.find_first_not_of('\\'), text.size());
    if (bars == 0) return {std::size_t{text[0] == c}, std::size_t{text[0] == c}};
    if (c == '\\') return {bars, std::min(secret.find_first_not_of('\\'), secret.size())};
    if (bars == text.size()) return {};
    const char escaped = text[bars];
    if (escaped == '&' || escaped == '%')  // JSON in HTML or in a URL
        if (const found_secret then = found_character(text.substr(bars), secret); then.in_text > 0)
            return {bars + then.in_text, then.of_secret};
    if (escaped == 'x' && is_byte(code(bars + 1, 2, 16))) return {bars + 3, 1};
    if (escaped == 'u') {
        const unsigned of_text = code(bars + 1, 4, 16);
        const auto byte = [&](unsigned shift, unsigned mark) {
            return static_cast<char>(mark | (of_text >> shift & 63));
        };
        const std::string character =
            of_text < 0x80    ? std::string(1, static_cast<char>(of_text))
            : of_text < 0x800 ? std::string{byte(6, 0xC0), byte(0, 0x80)}
                              : std::string{byte(12, 0xE0), byte(6, 0x80), byte(0, 0x80)};
        if (of_text != 0 && secret.starts_with(character)) return {bars + 5, character.size()};
    }
    const std::size_t control = std::string_view("ntrbf").find(escaped);
    if (control != std::string_view::npos && c == "\n\t\r\b\f"[control]) return {bars + 1, 1};
    const bool is_sign = std::string_view("\"'/&<>[](){}*_~`|#!+-.@:").find(c) != std::string::npos;
    return is_sign && escaped == c ? found_secret{bars + 1, 1} : found_secret{};
}
/// The secret at the beginning of a text, however it is escaped.
inline found_secret found_at(std::string_view text, std::string_view secret) {
    if (text.starts_with(secret)) return {secret.size(), secret.size()};
    found_secret all;
    while (all.of_secret < secret.size()) {
        const found_secret one =
            found_character(text.substr(all.in_text), secret.substr(all.of_secret));
        if (one.in_text == 0) break;
        all.in_text += one.in_text;
        all.of_secret += one.of_secret;
    }
    return all;
}
/// Whether a secret may begin here; a quick look.
inline bool may_begin(char in_text, char of_secret) {
    return in_text == of_secret || in_text == '\\' || in_text == '%' || in_text == '&';
}

/// Decodes what is percent-encoded.
inline std::string percent_decoded(std::string_view s) {
    std::string out;
    for (std::size_t i = 0; i < s.size(); ++i) {
        const auto byte = s[i] == '%' ? parsed_number<unsigned>(s.substr(i + 1, 2), 16)
                                      : std::nullopt;
        out += byte && i + 2 < s.size() ? static_cast<char>(*byte) : s[i];
        if (byte && i + 2 < s.size()) i += 2;
    }
    return out;
}
inline std::string base64_decoded(std::string_view s) {
    std::string out;
    unsigned bits = 0;
    int held = 0;
    for (const char c : s) {
        const std::size_t digit = base64_digits.find(c);
        if (digit == base64_digits.npos) break;
        bits = bits << 6 | static_cast<unsigned>(digit);
        if ((held += 6) >= 8) out += static_cast<char>(bits >> (held -= 8) & 255);
    }
    return out;
}

/// Adds a secret, the longest first, and what it is made of: without_secrets() knows each however
/// it is escaped.
inline void add_secret(vector<std::string>& secrets, const std::string& s) {
    if (s.size() < shortest_secret ||
        std::find(secrets.begin(), secrets.end(), s) != secrets.end())
        return;
    secrets.insert(std::find_if(secrets.begin(), secrets.end(),
                                [&](const std::string& x) { return x.size() < s.size(); }),
                   s);
    if (s.find('%') != std::string::npos) add_secret(secrets, percent_decoded(s));
    if (same_ignoring_case(std::string_view(s).substr(0, 6), "Basic ")) {
        const std::string user_and_password = base64_decoded(std::string_view(s).substr(6));
        add_secret(secrets, user_and_password);
        add_secret(secrets, user_and_password.substr(user_and_password.find(':') + 1));
    }
    // A key of several lines may come line by line, behind the times and names of a log.
    for (std::size_t at = 0, end = 0; s.find('\n') != std::string::npos && end < s.size();
         at = end + 1) {
        end = std::min(s.find('\n', at), s.size());
        if (end - at >= shortest_line) add_secret(secrets, s.substr(at, end - at));
    }
    // "Bearer abc": the server may repeat only the second word.
    if (const std::size_t space = s.find(' '); space != std::string::npos)
        add_secret(secrets, s.substr(space + 1));
}
/// Whether the name of a variable or a header marks a secret: HF_TOKEN, DB_PASSWORD, X-Api-Key.
inline bool names_secret(std::string_view name) {
    while (!name.empty()) {
        const std::string_view word = taken_part(name, "_-");
        for (const std::string_view ending :
             {"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "AUTH", "AUTHORIZATION",
              "COOKIE", "CREDENTIAL", "CREDENTIALS"})
            if (word.size() >= ending.size() &&
                same_ignoring_case(word.substr(word.size() - ending.size()), ending))
                return true;
    }
    return false;
}
/// Adds what a command line, a body, a header or a URL calls a secret itself: `--api-key x`,
/// `TOKEN=x`, `"password": "x"`, `Bearer x`, `?key=x`, `http://user:x@host`. Short values are none.
inline void add_secrets_named_in(vector<std::string>& secrets, std::string_view text) {
    constexpr std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    for (std::size_t at = 0; (at = text.find_first_of(letters, at)) < text.size();) {
        const std::size_t end = std::min(text.find_first_not_of(letters, at), text.size());
        const std::string_view name = text.substr(at, end - at);
        at = end;
        const std::string_view last = name.substr(name.find_last_of("_-") + 1);
        const std::size_t from = std::min(text.find_first_not_of(" \t\\\"'=:[", end), text.size());
        if (from == end || from > end + 8 ||
            !(names_secret(last) || same_ignoring_case(last, "Bearer") ||
              same_ignoring_case(last, "Basic")))
            continue;
        const char before = text[from - 1];
        const bool is_quoted = before == '"' || before == '\'';
        std::string value = same_ignoring_case(last, "Basic") ? "Basic " : "";
        const std::size_t begin = value.size();
        std::size_t i = from;
        for (; i < text.size(); ++i) {
            if (is_quoted ? text[i] == before
                          : std::string_view(" \t\r\n\"'&,;}])|<>").find(text[i]) !=
                                std::string_view::npos)
                break;
            if (text[i] == '\\' && i + 1 < text.size()) ++i;
            value += text[i];
        }
        if (value.size() >= begin + 8 && value[begin] != '$') add_secret(secrets, value);
    }
    for (std::size_t at = 0; (at = text.find("://", at)) != std::string_view::npos;) {
        at += 3;
        const std::string_view host = text.substr(at, text.find_first_of("/?# \t\"'", at) - at);
        const std::size_t end = host.rfind('@');
        if (end == std::string_view::npos) continue;
        const std::string user_and_password = percent_decoded(host.substr(0, end));
        add_secret(secrets, user_and_password);
        add_secret(secrets, base64(user_and_password));
        add_secret(secrets, user_and_password.substr(user_and_password.find(':') + 1));
    }
}
/// Masks secrets in a text of others, whole or cut off by printable().
inline std::string without_secrets(std::string s, const vector<std::string>& secrets) {
    for (const std::string& secret : secrets)
        for (std::size_t at = 0; at + shortest_secret <= s.size(); ++at) {
            if (!may_begin(s[at], secret[0])) continue;
            const found_secret found = found_at(std::string_view(s).substr(at), secret);
            const bool is_cut = found.of_secret >= shortest_secret &&
                                s.compare(at + found.in_text, 3, "...") == 0;
            if (!is_cut && found.of_secret < secret.size()) continue;
            s.replace(at, found.in_text, "***");
            at += 2;
        }
    return s;
}
/// The number of bytes at the end of `s` that may begin a secret.
inline std::size_t begun_secret(std::string_view s, const vector<std::string>& secrets) {
    std::size_t most = 0;
    for (const std::string& secret : secrets) {
        const std::size_t longest = std::min(s.size(), 7 * secret.size());
        for (std::size_t n = longest; n > most; --n) {
            const std::string_view end = s.substr(s.size() - n);
            if (!may_begin(end[0], secret[0])) continue;
            const found_secret found = found_at(end, secret);
            const std::size_t escape =  // that may go on
                std::min(end.find_first_of("\\%&", n - std::min<std::size_t>(n, 8)), n);
            if (found.of_secret < secret.size() && found.in_text >= escape) most = n;
        }
    }
    return most;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
