// JSON files of other tools
// Written by Python, which writes NaN and Infinity where JSON has no such thing, and one value
// after another where a file was appended to.
#pragma once

#include "core/base/checked_json.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // find
#include <cstddef>  // size_t
#include <cstdint>  // int64_t
#include <iterator>  // begin, end
#include <stdexcept>  // exception, invalid_argument
#include <string>
#include <string_view>
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Members that take room and tell nothing that is judged: they are read over.
inline constexpr std::string_view idle_members[] = {
    "request_args", "traceback", "trace_data", "response_metrics", "telemetry_data",
    "cached_tokens_details", "spec_decode_acceptance"};

/// As picojson's own context, without the idle members.
class lean_context {
public:
    explicit lean_context(picojson::value& out) : out_(out) {}
    bool set_null() { out_ = picojson::value(); return true; }
    bool set_bool(bool b) { out_ = picojson::value(b); return true; }
#ifdef PICOJSON_USE_INT64
    bool set_int64(std::int64_t i) { out_ = picojson::value(i); return true; }
#endif
    bool set_number(double d) { out_ = picojson::value(d); return true; }
    template <class Input>
    bool parse_string(Input& in) {
        out_ = picojson::value(picojson::string_type, false);
        return picojson::_parse_string(out_.get<std::string>(), in);
    }
    bool parse_array_start() {
        out_ = picojson::value(picojson::array_type, false);
        return true;
    }
    template <class Input>
    bool parse_array_item(Input& in, std::size_t) {
        auto& items = out_.get<picojson::array>();
        items.emplace_back();
        lean_context item(items.back());
        return picojson::_parse(item, in);
    }
    bool parse_array_stop(std::size_t) { return true; }
    bool parse_object_start() {
        out_ = picojson::value(picojson::object_type, false);
        return true;
    }
    template <class Input>
    bool parse_object_item(Input& in, const std::string& key) {
        const bool is_idle = std::find(std::begin(idle_members), std::end(idle_members), key) !=
                             std::end(idle_members);
        picojson::null_parse_context nothing;
        if (is_idle) return picojson::_parse(nothing, in);
        lean_context member(out_.get<picojson::object>()[key]);
        return picojson::_parse(member, in);
    }
    bool parse_object_stop() { return true; }

private:
    picojson::value& out_;
};

/// Python's three numbers that are no JSON as strings, so that whoever looks for a number there can
/// say what stands in its place.
inline std::string with_quoted_numbers(std::string_view s) {
    std::string out;
    bool quoted = false;
    for (std::size_t i = 0; i < s.size(); ++i) {
        if (!quoted && (s[i] == 'N' || s[i] == 'I' || s[i] == '-')) {
            bool found = false;
            for (const std::string_view word : {"NaN", "-Infinity", "Infinity"}) {
                if (s.substr(i, word.size()) != word) continue;
                out.append("\"").append(word).append("\"");
                i += word.size() - 1;
                found = true;
                break;
            }
            if (found) continue;
        }
        if (quoted && s[i] == '\\' && i + 1 < s.size()) out += s[i++];
        else if (s[i] == '"') quoted = !quoted;
        out += s[i];
    }
    return out;
}

/// The JSON values of a file, one after the other. Throws std::invalid_argument where it holds
/// anything else, or ends inside of one.
inline std::vector<picojson::value> read_json_values(std::string_view s, const std::string& file) {
    const auto require_json = [&](bool sound, const std::string& why) {
        if (!sound) refuse({file, ": ", why});
    };
    if (s.substr(0, 3) == "\xEF\xBB\xBF") s.remove_prefix(3);
    require_json(!nests_deeper_than(s, 100), "its JSON nests deeper than 100 levels");
    std::string whole, repaired;
    if (s.find("NaN") != std::string_view::npos || s.find("Infinity") != std::string_view::npos)
        s = repaired = with_quoted_numbers(s);
    if (s.find("\\ud") != std::string_view::npos || s.find("\\uD") != std::string_view::npos)
        s = whole = without_half_pairs(s);
    std::vector<picojson::value> values;
    const char *at = s.data(), *const last = s.data() + s.size();
    const auto skip_blanks = [&] {
        while (at != last && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) ++at;
    };
    for (skip_blanks(); at != last; skip_blanks()) {
        values.emplace_back();
        std::string error;
        lean_context context(values.back());
        try {
            at = picojson::_parse(context, at, last, &error);
        } catch (const std::exception&) {
            error = "it has a number that no double holds";
        }
        // What follows the place of a mistake is in its words; at the end of the file nothing does.
        const std::string_view words = error, nothing = "near: ";
        const bool is_cut = words.size() >= nothing.size() &&
                            words.substr(words.size() - nothing.size()) == nothing;
        require_json(!is_cut, printed("it ends inside of its JSON value %zu: the file is cut off",
                                      values.size()));
        require_json(error.empty(), "it is not JSON: " + printable(error, 100));
    }
    require_json(!values.empty(), "it is empty");
    return values;
}

inline constexpr double most_asked = 1e9;      // of a load: requests/s, users, in flight
inline constexpr double latest_clock_s = 4e9;  // of the wall clock: the year 2096

/// How many of a load were asked for, 0 where the file does not say.
inline long long asked_from(const std::string& file, const picojson::value& of, const char* name) {
    const picojson::value* v = member(of, name);
    return v && v->is<double>() ? whole_from<long long>(file, *v, 0, most_asked, "a whole number",
                                                        [&] { return std::string(name); })
                                : 0;
}
/// A rate that was asked for, NaN where the file does not say.
inline double rate_from(const std::string& file, const picojson::value& of, const char* name) {
    const picojson::value* v = member(of, name);
    return v && v->is<double>() ? number_from(file, *v, 0, most_asked, "a rate",
                                              [&] { return std::string(name); })
                                : not_a_number;
}
/// What a setting says, as text: "inf", "8", "null". "" where the file has none of that name.
inline std::string setting_text(const picojson::value& of, const char* name) {
    const picojson::value* v = member(of, name);
    if (!v) return {};
    if (v->is<std::string>()) return printable(v->get<std::string>(), 200);
    return v->is<double>() ? printed("%.9g", number_in(*v)) : shown_value(*v);
}
/// The value at the end of a path of members, null where there is none.
template <class... More>
const picojson::value* member_at(const picojson::value& v, const char* name, More... more) {
    const picojson::value* m = member(v, name);
    if constexpr (sizeof...(more) == 0) return m;
    else return m ? member_at(*m, more...) : nullptr;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
