// JSON that a schema allows
// The keywords that say what a structured answer looks like. Any other one is refused before the
// load, as nobody could say that an answer keeps to it.
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <cmath>  // floor
#include <cstddef>  // size_t
#include <initializer_list>  // names of types
#include <string>
#include <string_view>
#include <utility>  // pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Characters of UTF-8.
inline double characters_in(std::string_view s) {
    double n = 0;
    for (const char c : s) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return n;
}
inline bool is_of_type(const picojson::value& v, std::string_view type) {
    if (type == "object") return v.is<picojson::object>();
    if (type == "array") return v.is<picojson::array>();
    if (type == "string") return v.is<std::string>();
    if (type == "boolean") return v.is<bool>();
    if (type == "null") return v.is<picojson::null>();
    if (!v.is<double>()) return false;
    return type == "number" || v.get<double>() == std::floor(v.get<double>());
}
inline bool is_type_name(std::string_view type) {
    for (const char* known : {"object", "array", "string", "boolean", "null", "number", "integer"})
        if (type == known) return true;
    return false;
}

/// What of a value a bound is on: itself, or its length.
struct schema_bound {
    std::string_view keyword;
    char of;         // 'n'umber, 's'tring, 'a'rray, 'o'bject
    bool is_least;
    bool is_open = false;
};
inline constexpr schema_bound schema_bounds[] = {
    {"minimum", 'n', true},       {"maximum", 'n', false},
    {"exclusiveMinimum", 'n', true, true}, {"exclusiveMaximum", 'n', false, true},
    {"minLength", 's', true},     {"maxLength", 's', false},
    {"minItems", 'a', true},      {"maxItems", 'a', false},
    {"minProperties", 'o', true}, {"maxProperties", 'o', false}};

/// Throws std::invalid_argument, naming the keyword and where it stands.
inline void check_schema(const picojson::value& schema, const std::string& path = "schema") {
    if (schema.is<bool>()) return;
    if (!schema.is<picojson::object>()) refuse({path, " is no object: a schema is one"});
    for (const auto& [keyword, v] : schema.get<picojson::object>()) {
        const std::string here = path + "." + printable(keyword, 60);
        const auto must_be = [&](bool is_so, const char* what) {
            if (!is_so) refuse({here, " must be ", what});
        };
        bool is_bound = false;
        for (const schema_bound& b : schema_bounds)
            if (keyword == b.keyword) {
                is_bound = true;
                must_be(v.is<double>(), "a number");
            }
        if (is_bound || keyword == "const") continue;
        // These allow and forbid nothing.
        if (keyword == "title" || keyword == "description" || keyword == "$schema") continue;
        if (keyword == "type") {
            const bool is_list = v.is<picojson::array>();
            const picojson::array types =
                is_list ? v.get<picojson::array>() : picojson::array{v};
            for (const picojson::value& t : types)
                must_be(t.is<std::string>() && is_type_name(t.get<std::string>()),
                        "one of object, array, string, boolean, null, number, integer, or a "
                        "list of them");
        } else if (keyword == "enum") {
            must_be(v.is<picojson::array>(), "a list");
        } else if (keyword == "required") {
            must_be(v.is<picojson::array>(), "a list of names");
            for (const picojson::value& name : v.get<picojson::array>())
                must_be(name.is<std::string>(), "a list of names");
        } else if (keyword == "properties") {
            must_be(v.is<picojson::object>(), "an object of schemas");
            for (const auto& [name, of] : v.get<picojson::object>())
                check_schema(of, here + "." + printable(name, 60));
        } else if (keyword == "items" || keyword == "additionalProperties") {
            check_schema(v, here);
        } else {
            refuse({here, " is a keyword that is not checked here: type, enum, const, properties, "
                          "required, items, additionalProperties and bounds of numbers and "
                          "lengths are"});
        }
    }
}

/// Whether a schema that was checked allows a value.
inline bool schema_allows(const picojson::value& schema, const picojson::value& v) {
    if (schema.is<bool>()) return schema.get<bool>();
    const auto any = [](const picojson::value& one_or_list, auto&& is) {
        if (!one_or_list.is<picojson::array>()) return is(one_or_list);
        for (const picojson::value& one : one_or_list.get<picojson::array>())
            if (is(one)) return true;
        return false;
    };
    for (const auto& [keyword, said] : schema.get<picojson::object>()) {
        for (const schema_bound& b : schema_bounds) {
            if (keyword != b.keyword) continue;
            double n = 0;
            if (b.of == 'n' && v.is<double>()) n = v.get<double>();
            else if (b.of == 's' && v.is<std::string>()) n = characters_in(v.get<std::string>());
            else if (b.of == 'a' && v.is<picojson::array>())
                n = static_cast<double>(v.get<picojson::array>().size());
            else if (b.of == 'o' && v.is<picojson::object>())
                n = static_cast<double>(v.get<picojson::object>().size());
            else continue;
            const double over = b.is_least ? n - said.get<double>() : said.get<double>() - n;
            if (over < 0 || (b.is_open && over == 0)) return false;
        }
        if (keyword == "type" && !any(said, [&](const picojson::value& t) {
                return is_of_type(v, t.get<std::string>());
            }))
            return false;
        if (keyword == "const" && !(v == said)) return false;
        if (keyword == "enum" && !any(said, [&](const picojson::value& e) { return v == e; }))
            return false;
        if (keyword == "required" && v.is<picojson::object>())
            for (const picojson::value& name : said.get<picojson::array>())
                if (!v.contains(name.get<std::string>())) return false;
        if (keyword == "items" && v.is<picojson::array>())
            for (const picojson::value& item : v.get<picojson::array>())
                if (!schema_allows(said, item)) return false;
        if (keyword == "properties" && v.is<picojson::object>())
            for (const auto& [name, of] : said.get<picojson::object>())
                if (v.contains(name) && !schema_allows(of, v.get(name))) return false;
        if (keyword == "additionalProperties" && v.is<picojson::object>()) {
            const picojson::value* known = member(schema, "properties");
            for (const auto& [name, item] : v.get<picojson::object>())
                if (!(known && known->contains(name)) && !schema_allows(said, item)) return false;
        }
    }
    return true;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
