// secrets in texts
// Each form of a secret, such as JSON's or a URL's, is a text of its own, made once and searched as
// it is: nothing here decodes what others write, nothing throws, and all is linear in their text.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // find, find_if, max, min
#include <bitset>
#include <optional>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Shorter words are not secrets, and masking them would garble texts.
inline constexpr std::size_t shortest_secret = 4;
/// The same for a line or a word of a secret that has several.
inline constexpr std::size_t shortest_line = 8;

/// Adds a text that is masked as it is, the longest first.
inline void add_form(vector<std::string>& secrets, const std::string& s) {
    if (s.size() < shortest_secret ||
        std::find(secrets.begin(), secrets.end(), s) != secrets.end())
        return;
    secrets.insert(std::find_if(secrets.begin(), secrets.end(),
                                [&](const std::string& x) { return x.size() < s.size(); }),
                   s);
}

/// A text with another one in place of each character.
template <class Instead> std::string rewritten(std::string_view s, const Instead& instead) {
    std::string out;
    for (const char c : s) out += instead(c);
    return out;
}
/// The same where only these characters have a `before` in front of them.
inline std::string marked(std::string_view s, std::string_view characters, char before) {
    return rewritten(s, [&](char c) {
        const bool is_one = characters.find(c) != characters.npos;
        return is_one ? std::string{before, c} : std::string(1, c);
    });
}
inline std::string in_json(std::string_view s) {
    const std::string quoted = json_quoted(s);
    return quoted.substr(1, quoted.size() - 2);
}
/// JSON of ASCII alone, as Python writes it.
inline std::string in_ascii(std::string_view json) {
    std::string out;
    for (std::size_t i = 0, n = 1; i < json.size(); i += n) {
        n = std::max<std::size_t>(utf8_length(json, i), 1);
        const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(json[i + k]); };
        unsigned code = n == 1 ? 0 : byte(0) & (0xFFu >> (n + 1));
        for (std::size_t k = 1; k < n; ++k) code = code << 6 | (byte(k) & 0x3Fu);
        if (code == 0) out += json[i];
        else if (code < 0x10000) out += printed("\\u%04x", code);
        else
            out += printed("\\u%04x\\u%04x", 0xD7C0u + (code >> 10), 0xDC00u + (code & 0x3FFu));
    }
    return out;
}
/// The same where these characters stand as a `code`, printed with their number.
inline std::string coded(std::string_view s, std::string_view characters, const char* code) {
    return rewritten(s, [&](char c) {
        const bool is_one = characters.find(c) != characters.npos;
        return is_one ? printed(code, static_cast<unsigned>(c)) : std::string(1, c);
    });
}
/// As Go writes JSON, and our pages theirs.
inline std::string without_markup(std::string_view json) { return coded(json, "<>&", "\\u%04x"); }
/// Signs that encoders code which spare letters, digits and a few others; and those of .NET's JSON,
/// which spares the slash and the signs of base64 but for the plus.
inline constexpr std::string_view all_signs = "!\"#$%&'()*+,/;<=>?@[\\]^`{|}",
                                  signs_of_dotnet = "+&<>'\"`";
inline std::string in_markdown(std::string_view s) {
    return rewritten(marked(s, "\\|<>`*_[]~", '\\'), [](char c) {
        return c == '&' ? "&amp;" : std::string(1, c);
    });
}
/// `byte`: how one is printed; `blank` and `slash`: what stands for these.
inline std::string in_url(std::string_view s, const char* byte, const char* blank,
                          const char* slash) {
    return rewritten(s, [&](char c) -> std::string {
        if (c == ' ' || c == '/') return c == ' ' ? blank : slash;
        if (is_letter_or_digit(c) || std::string_view("-_.~").find(c) != std::string::npos)
            return std::string(1, c);
        return printed(byte, static_cast<unsigned>(static_cast<unsigned char>(c)));
    });
}
/// Adds a secret in each form in which a server, or a file of ours, may repeat it.
inline void add_forms(vector<std::string>& secrets, const std::string& s) {
    const std::string json = in_json(s), ascii = in_ascii(json);
    // Another's JSON may be quoted in JSON or on a page.
    for (const std::string& of_others :
         {s, json, ascii, marked(json, "/", '\\'), marked(ascii, "/", '\\'),
          without_markup(json), without_markup(ascii)}) {
        const std::string shown = printable(of_others, 8 * of_others.size());
        for (const std::string& form : {of_others, shown, in_json(of_others), in_json(shown),
                                        xml_escaped(of_others), in_markdown(shown)})
            add_form(secrets, form);
    }
    for (const std::string& coded :
         {coded(s, signs_of_dotnet, "\\u%04X"), coded(s, all_signs, "&#%u;"),
          coded(s, all_signs, "\\u%04X")})
        for (const std::string& form : {coded, in_json(coded)}) add_form(secrets, form);
    for (const char* slash : {"%2F", "/"})
        for (const char* blank : {"%20", "+"}) {
            add_form(secrets, in_url(s, "%%%02X", blank, slash));
            add_form(secrets, in_url(s, "%%%02x", blank, *slash == '/' ? slash : "%2f"));
        }
    const std::string of_64 = base64(s), bare = of_64.substr(0, of_64.find('='));
    add_form(secrets, bare);
    add_form(secrets, rewritten(bare, [](char c) {  // of a URL
                 return std::string(1, c == '+' ? '-' : c == '/' ? '_' : c);
             }));
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

/// Adds a secret and what it is made of, each in its forms.
inline void add_secret(vector<std::string>& secrets, const std::string& s) {
    if (s.size() < shortest_secret) return;
    add_forms(secrets, s);
    if (const std::string plain = percent_decoded(s); plain != s) add_secret(secrets, plain);
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
    // "Bearer abc": the server may repeat only the second word. A line may end behind the first.
    if (const std::size_t space = s.find(' '); space != std::string::npos) {
        if (space >= shortest_line) add_forms(secrets, s.substr(0, space));
        add_secret(secrets, s.substr(space + 1));
    }
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
        const std::string written(host.substr(0, end));  // in a report as it stands there
        add_secret(secrets, written);
        add_secret(secrets, base64(percent_decoded(written)));
        add_secret(secrets, written.substr(written.find(':') + 1));
    }
}
/// The bytes of a text from `at` on that are to be masked: a secret, or its beginning if the text
/// is cut off behind it.
inline std::size_t secret_at(std::string_view s, std::size_t at,
                             const vector<std::string>& secrets) {
    const std::string_view rest = s.substr(at);
    std::size_t most = 0;
    for (const std::string& secret : secrets) {
        std::size_t n = 0;
        while (n < std::min(rest.size(), secret.size()) && rest[n] == secret[n]) ++n;
        const bool is_cut = n >= shortest_secret && rest.substr(n, 3) == "...";
        if (n == secret.size() || is_cut) most = std::max(most, n);
    }
    return most;
}
/// The same for the end of a secret behind "...", with which a text begins.
inline std::size_t secret_end_in(std::string_view s, const vector<std::string>& secrets) {
    std::size_t most = 0;
    for (const std::string_view secret : secrets)
        for (std::size_t n = secret.size(); n >= shortest_secret && n > most; --n)
            if (s.substr(3).starts_with(secret.substr(secret.size() - n))) most = n;
    return most;
}
/// Masks secrets in a text, whole or cut off where "..." stands.
inline std::string without_secrets(std::string_view s, const vector<std::string>& secrets) {
    if (s.size() < shortest_secret || secrets.empty()) return std::string(s);
    const auto pair_at = [](std::string_view of, std::size_t i) {
        return static_cast<std::size_t>(static_cast<unsigned char>(of[i])) << 8 |
               static_cast<unsigned char>(of[i + 1]);
    };
    std::bitset<1 << 16> begins;  // by two bytes, as most places of a text begin no secret
    for (const std::string& secret : secrets)
        if (secret.size() > 1) begins.set(pair_at(secret, 0));
    std::string out;
    std::size_t masked_to = 0;
    const auto mask = [&](std::size_t from, std::size_t n) {
        if (n > 0 && from >= masked_to) out += "***";
        if (n > 0) masked_to = std::max(masked_to, from + n);
    };
    for (std::size_t i = 0; i < s.size(); ++i) {
        if (i == 3 && s.starts_with("...")) mask(3, secret_end_in(s, secrets));
        if (i + 1 < s.size() && begins[pair_at(s, i)]) mask(i, secret_at(s, i, secrets));
        if (i >= masked_to) out += s[i];
    }
    return out;
}
/// The beginning of a text of others for a sentence: cut off first, so that a long one costs
/// nothing, then masked, on one line.
inline std::string excerpt_without_secrets(std::string_view s, const vector<std::string>& secrets,
                                           std::size_t at_most = 300) {
    std::size_t n = std::min(s.size(), at_most);
    while (n > 0 && n < s.size() && (static_cast<unsigned char>(s[n]) & 0xC0) == 0x80) --n;
    const std::string some = std::string(s.substr(0, n)) + (n < s.size() ? "..." : "");
    return printable(without_secrets(some, secrets), at_most + 3);
}
/// The number of bytes at the end of a text that may begin a secret.
inline std::size_t begun_secret(std::string_view s, const vector<std::string>& secrets) {
    std::size_t most = 0;
    for (const std::string_view secret : secrets)
        for (std::size_t n = std::min(s.size(), std::max<std::size_t>(secret.size(), 1) - 1);
             n > most; --n)
            if (s.ends_with(secret.substr(0, n))) most = n;
    return most;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
