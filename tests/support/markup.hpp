// Whether a report is well-formed: the XML of JUnit, and the page.
#pragma once

#include <picojson.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace markup {

inline constexpr std::string_view xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
inline constexpr std::string_view html = "<!doctype html>\n";

/// Why a text, or the value of an attribute, is none. HTML has more entities than XML.
inline std::string text_flaw(std::string_view t, bool is_xml) {
    for (std::size_t i = 0; i < t.size(); ++i) {
        if (t[i] == '<' || (static_cast<unsigned char>(t[i]) < 0x20 && t[i] != '\n')) return "a raw character";
        if (t[i] != '&' || !is_xml) continue;
        bool is_known = false;
        for (const std::string_view e : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"})
            is_known |= t.substr(i, e.size()) == e;
        if (!is_known) return "a bare ampersand";
    }
    return "";
}

/// Why the attributes of a tag are none: each is ` name="value"`, or in HTML a name alone.
inline std::string attributes_flaw(std::string_view rest, bool is_xml) {
    while (!rest.empty()) {
        if (rest.front() != ' ') return "an odd attribute: " + std::string(rest);
        const std::size_t equals = rest.find('='), next = rest.find(' ', 1);
        if (!is_xml && next < equals) {
            rest.remove_prefix(next);
            continue;
        }
        if (equals == rest.npos) return is_xml ? "an attribute without a value" : "";
        const std::size_t close = rest.find('"', equals + 2);
        if (rest.substr(equals, 2) != "=\"" || close == rest.npos) return "an attribute without quotes";
        if (const std::string flaw = text_flaw(rest.substr(equals + 2, close - equals - 2), is_xml);
            !flaw.empty())
            return flaw;
        rest.remove_prefix(close + 1);
    }
    return "";
}

/// Why this is no well-formed document of its kind, "" where it is: each element is closed by its own
/// end tag, and data of drawings is JSON. It knows what we write: no comments, no CDATA.
inline std::string flaw_of(std::string_view s, std::string_view begin) {
    const bool is_xml = begin == xml;
    if (s.substr(0, begin.size()) != begin) return "another beginning";
    s.remove_prefix(begin.size());
    std::vector<std::string> open;
    int roots = 0;
    while (!s.empty()) {
        const std::size_t less = std::min(s.find('<'), s.size());
        if (const std::string flaw = text_flaw(s.substr(0, less), is_xml); !flaw.empty()) return flaw;
        if (open.empty() && s.substr(0, less).find_first_not_of(" \n") != s.npos) return "text outside the root";
        s.remove_prefix(less);
        if (s.empty()) break;
        bool is_quoted = false;
        std::size_t end = 0;
        while (end < s.size() && (is_quoted || s[end] != '>')) is_quoted ^= s[end++] == '"';
        if (end == s.size()) return "a tag without an end";
        std::string_view tag = s.substr(1, end - 1);
        s.remove_prefix(end + 1);
        if (!tag.empty() && tag.front() == '/') {
            if (open.empty() || open.back() != tag.substr(1)) return "unexpected <" + std::string(tag);
            open.pop_back();
            continue;
        }
        const bool is_empty = !tag.empty() && tag.back() == '/';
        if (is_empty) tag.remove_suffix(1);
        const std::string name(tag.substr(0, tag.find(' ')));
        if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-123") != name.npos)
            return "an odd name: " + name;
        if (const std::string flaw = attributes_flaw(tag.substr(name.size()), is_xml); !flaw.empty())
            return flaw + " in " + name;
        if (open.empty() && ++roots > 1 && is_xml) return "two roots";
        if (is_empty || (!is_xml && (name == "meta" || name == "wbr"))) continue;
        open.push_back(name);
        if (is_xml || (name != "script" && name != "style")) continue;
        const std::size_t length = std::min(s.find("</" + name + ">"), s.size());
        picojson::value data;
        if (tag.find("json") != tag.npos && !picojson::parse(data, std::string(s.substr(0, length))).empty())
            return "data that is no JSON";
        s.remove_prefix(length);
    }
    if (!open.empty()) return "not closed: " + open.back();
    return is_xml && roots != 1 ? "no root" : "";
}

}  // namespace markup
