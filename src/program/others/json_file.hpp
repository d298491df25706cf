// JSON files of other tools
// Python writes NaN and Infinity, which JSON does not have, and appends values to a file one after
// the other.
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // find
#include <cmath>  // isnan
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

/// Large members that no judging needs; the reader skips them.
inline constexpr std::string_view idle_members[] = {
    "request_args", "traceback", "trace_data", "response_metrics", "telemetry_data",
    "cached_tokens_details", "spec_decode_acceptance"};

/// Like picojson's own context, without the idle members.
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

/// Returns Python's NaN and infinities as strings, so that a reader of numbers can name them in its
/// refusal.
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

/// Returns the JSON values of a file. Throws std::invalid_argument if it holds anything else, or
/// ends inside of a value.
inline std::vector<picojson::value> read_json_values(std::string_view s, const std::string& file) {
    const auto require_json = [&](bool sound, const std::string& why) {
        if (!sound) refuse({file, ": ", why});
    };
    if (s.substr(0, 3) == "\xEF\xBB\xBF") s.remove_prefix(3);
    std::string whole, repaired;
    if (s.find("NaN") != std::string_view::npos || s.find("Infinity") != std::string_view::npos)
        s = repaired = with_quoted_numbers(s);
    const std::string loose = looser_than_json(s);
    require_json(loose.empty(), loose);
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
        // The message quotes the text after a mistake; at the end of the file that is empty.
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

inline constexpr double max_asked = 1e9;      // of a load: requests/s, users, in flight
inline constexpr double latest_clock_s = 4e9;  // of the wall clock: the year 2096

/// Returns a number, NaN if it is missing or null.
inline double told_number(const std::string& file, const picojson::value& of, const char* name,
                          double most = max_asked) {
    const picojson::value* v = member(of, name);
    return v && !v->is<picojson::null>() ? number_from(file, *v, 0, most, "a number",
                                                       [&] { return std::string(name); })
                                         : not_a_number;
}
/// Returns a number of the planned load, 0 if the file does not have it.
inline long long asked_from(const std::string& file, const picojson::value& of, const char* name) {
    if (std::isnan(told_number(file, of, name))) return 0;
    return whole_from<long long>(file, *member(of, name), 0, max_asked, "a whole number",
                                 [&] { return std::string(name); });
}
/// Returns a setting as text: "inf", "8", "null". "" if the file does not have it.
inline std::string setting_text(const picojson::value& of, const char* name) {
    const picojson::value* v = member(of, name);
    if (!v) return {};
    if (v->is<std::string>()) return printable(v->get<std::string>(), 200);
    return v->is<double>() ? printed("%.9g", number_in(*v)) : shown_value(*v);
}
/// Returns the value at the end of a path of members, null if there is none.
template <class... More>
const picojson::value* member_at(const picojson::value& v, const char* name, More... more) {
    const picojson::value* m = member(v, name);
    if constexpr (sizeof...(more) == 0) return m;
    else return m ? member_at(*m, more...) : nullptr;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
