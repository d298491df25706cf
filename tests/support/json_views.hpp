// What json_reader reads, held against picojson, and texts that differ in a part.
#pragma once

#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>

namespace json_views {

using namespace llmbench::detail;

/// Whether a text is no JSON though picojson accepts it, which recurses without a limit, and reads
/// numbers by strtod: 007, 1., +1.
inline bool is_looser_than_json(std::string_view s) {
    std::size_t depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < s.size(); ++i) {
        const char c = s[i];
        if (quoted) {
            if (c == '\\') ++i;
            else if (c == '"') quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            if (++depth > json_reader::most_levels) return true;
        } else if (c == '}' || c == ']') {
            --depth;
        } else if ((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.') {
            const std::size_t end = std::min(s.find_first_of(",:]} \t\r\n\"[{", i), s.size());
            if (json_number_length(s.substr(i, end - i)) != end - i) return true;
            i = end - 1;
        }
    }
    return false;
}
/// Whether picojson, which is looser than JSON, reads a text alone, and what it makes of it.
inline bool picojson_reads(std::string_view s, picojson::value& tree) {
    if (is_looser_than_json(s)) return false;
    const std::string whole_pairs = without_half_pairs(s);
    const char* const last = whole_pairs.data() + whole_pairs.size();
    try {
        std::string error;
        const char* end = picojson::parse(tree, whole_pairs.data(), last, &error);
        while (end != last && (*end == ' ' || *end == '\t' || *end == '\r' || *end == '\n')) ++end;
        return error.empty() && end == last;
    } catch (const std::exception&) {
        return false;  // a number that no double holds
    }
}
/// Whether a value in a text is what picojson makes of it.
inline bool same_value(const json_view& v, const picojson::value& tree) {
    using kind = json_view::kind;
    switch (v.is) {
    case kind::null: return tree.is<picojson::null>();
    case kind::boolean: return tree.is<bool>() && tree.get<bool>() == is_true(v);
    case kind::number: return tree.is<double>() && tree.get<double>() == number_in(v);
    case kind::string: return tree.is<std::string>() && tree.get<std::string>() == v.text;
    case kind::list: {
        if (!tree.is<picojson::array>()) return false;
        const picojson::array& items = tree.get<picojson::array>();
        std::size_t i = 0;
        for (const json_view& x : items_of(v))
            if (i == items.size() || !same_value(x, items[i++])) return false;
        return i == items.size();
    }
    default: break;
    }
    if (!tree.is<picojson::object>()) return false;
    const auto members = members_of(v);
    if (members.size() != tree.get<picojson::object>().size()) return false;
    for (const auto& [name, x] : tree.get<picojson::object>()) {
        const json_view* m = member(v, name);
        if (!m || m != members.at(name) || !same_value(*m, x)) return false;
    }
    return true;
}
/// A JSON text with a string or a number of its own in the place of another one.
inline std::string with_another_part(std::string_view data, std::size_t which) {
    json_reader json;
    vector<json_view> parts;
    if (json.read(data))
        for (const json_view& v : json.values())
            if (v.is_string() || v.is_number()) parts.push_back(v);
    std::string changed(data);
    if (parts.empty()) return changed;
    const json_view &into = parts[which % parts.size()], &from = parts[which / parts.size() % parts.size()];
    return changed.replace(into.from, into.to - into.from, data.substr(from.from, from.to - from.from));
}

}  // namespace json_views
