// JSON, read, checked and written
// A file may contain anything. Its numbers pass through here before they are cast, added or used as
// sizes. An error names the file, the field, the value and what is allowed.
#pragma once

#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/base/fields.hpp"
#include "core/base/json_reader.hpp"

#include <algorithm>  // max, min, replace
#include <charconv>  // to_chars
#include <cmath>  // floor, isfinite
#include <cstddef>  // size_t
#include <initializer_list>
#include <stdexcept>  // invalid_argument
#include <string>
#include <string_view>
#include <type_traits>  // which JSON a value becomes
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The shortest decimal text that reads back as the same double. JSON has only finite numbers, so
/// others become null.
inline std::string json_number(double v) {
    if (!std::isfinite(v)) return "null";
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
    return {buffer, end};
}

/// Appends a JSON string. Invalid UTF-8 becomes U+FFFD.
inline void append_quoted(std::string& out, std::string_view s) {
    out += '"';
    for (std::size_t i = 0, length = 0; i < s.size(); i += std::max<std::size_t>(length, 1)) {
        const std::size_t from = i;
        const auto is_plain = [](char k) { return k >= 0x20 && k < 0x7F && k != '"' && k != '\\'; };
        while (i < s.size() && is_plain(s[i])) ++i;
        out.append(s, from, i - from);
        if (i == s.size()) break;
        const auto c = static_cast<unsigned char>(s[i]);
        length = utf8_length(s, i);
        if (c == '"') out += "\\\"";
        else if (c == '\\') out += "\\\\";
        else if (c == '\n') out += "\\n";
        else if (c == '\t') out += "\\t";
        else if (c == '\r') out += "\\r";
        else if (c < 0x20) out += printed("\\u%04x", static_cast<unsigned>(c));
        else if (length == 0) out += "\xEF\xBF\xBD";
        else out.append(s.substr(i, length));
    }
    out += '"';
}
inline std::string json_quoted(std::string_view s) {
    std::string out;
    append_quoted(out, s);
    return out;
}

inline const picojson::value* member(const picojson::value& v, std::string_view name) {
    if (!v.is<picojson::object>()) return nullptr;
    const auto& fields = v.get<picojson::object>();
    const auto found = fields.find(std::string(name));
    return found == fields.end() ? nullptr : &found->second;
}
inline std::string string_in(const picojson::value* v) {
    return v && v->is<std::string>() ? v->get<std::string>() : std::string();
}
inline std::string_view string_in(const json_view* v) {
    return v && v->is_string() ? v->text : std::string_view();
}
inline double number_in(const picojson::value& v) {
    return v.is<double>() ? v.get<double>() : not_a_number;
}
inline double number_in(const json_view& v) {
    return v.is_number() ? json_number_value(v.text) : not_a_number;
}
inline bool is_true(const picojson::value& v) { return v.is<bool>() && v.get<bool>(); }
inline bool is_true(const json_view& v) { return v.text == "true" && !v.is_string(); }
inline bool is_list(const picojson::value& v) { return v.is<picojson::array>(); }
inline bool is_null(const picojson::value& v) { return v.is<picojson::null>(); }
inline bool is_null(const json_view& v) { return v.is == json_view::kind::null; }
inline const picojson::value* item_of(const picojson::value& list, std::size_t place) {
    return list.contains(place) ? &list.get(place) : nullptr;
}
inline const json_view* item_of(const json_view& list, std::size_t place) {
    for (const json_view& item : items_of(list))
        if (place-- == 0) return &item;
    return nullptr;
}

// Those below take a value of either kind.

template <class Value>
auto string_member(const Value& v, std::string_view name) { return string_in(member(v, name)); }
/// Words that servers write for nothing, where JSON has null. Not for text of a model, which may be
/// such a word.
inline bool is_nothing(std::string_view word) {
    constexpr std::string_view words[] = {"", "null", "none", "nil", "undefined", "nan"};
    return any_of(words, [&](std::string_view w) { return same_ignoring_case(trimmed(word), w); });
}
/// A text that a server chose from its own words, "" for nothing.
template <class Value>
std::string word_of(const Value* v) {
    const std::string word(string_in(v));
    return is_nothing(word) ? "" : word;
}
template <class Value>
std::string word_member(const Value& v, std::string_view name) { return word_of(member(v, name)); }
/// A count of a server, -1 for other values.
inline int count_of(double d) {
    return d >= 0 && d <= max_reported_tokens ? static_cast<int>(d) : -1;
}
template <class Value>
int count_of(const Value& v) { return count_of(number_in(v)); }
/// Adds counts of a server, which may report any.
inline int sum_of_counts(int a, int b) {
    return static_cast<int>(std::min(max_reported_tokens, static_cast<double>(a) + b));
}
template <class Value>
int count_member(const Value& v, std::string_view name) {
    const Value* m = member(v, name);
    return m ? count_of(*m) : -1;
}

/// Returns the value at "choices.0.text", null if there is none.
template <class Value>
const Value* value_at(const Value& v, std::string_view way) {
    const Value* at = &v;
    while (at && !way.empty()) {
        const std::string_view name = way.substr(0, way.find('.'));
        way.remove_prefix(name.size() + (name.size() < way.size()));
        if (!is_list(*at)) at = member(*at, name);
        else if (const auto place = parsed_number<std::size_t>(name)) at = item_of(*at, *place);
        else at = nullptr;
    }
    return at;
}
template <class Value>
auto string_at(const Value& v, std::string_view way) { return string_in(value_at(v, way)); }
template <class Value>
int count_at(const Value& v, std::string_view way) {
    const Value* at = value_at(v, way);
    return at ? count_of(*at) : -1;
}

/// Replaces unpaired surrogates by U+FFFD, as json_reader does: picojson refuses them.
inline std::string without_half_pairs(std::string_view s) {
    const auto unit = [&](std::size_t at) {  // of "\uXXXX", else 0
        if (at + 6 > s.size() || s[at] != '\\' || s[at + 1] != 'u') return 0u;
        return parsed_number<unsigned>(s.substr(at + 2, 4), 16).value_or(0);
    };
    std::string out;
    for (std::size_t i = 0, n = 0; i < s.size(); i += n) {
        n = s[i] == '\\' ? std::min<std::size_t>(2, s.size() - i) : 1;
        const unsigned first = unit(i) & 0xFC00, second = unit(i + 6) & 0xFC00;
        if (first == 0xD800 && second == 0xDC00) n = 12;
        else if (first == 0xD800 || first == 0xDC00) { out += "\\ufffd"; n = 6; continue; }
        out.append(s.substr(i, n));
    }
    return out;
}
/// A value as a tree, which outlives its text. Members with names that are `unread` are left out.
inline picojson::value tree_of(const json_view& v,
                               std::initializer_list<std::string_view> unread = {}) {
    using kind = json_view::kind;
    if (v.is == kind::null) return {};
    if (v.is == kind::boolean) return picojson::value(is_true(v));
    if (v.is_number()) return picojson::value(number_in(v));
    if (v.is_string()) return picojson::value(std::string(v.text));
    picojson::value tree(v.is_object() ? picojson::object_type : picojson::array_type, false);
    for (const json_view& of : items_of(v))
        if (!v.is_object()) tree.get<picojson::array>().push_back(tree_of(of, unread));
        else if (!is_one_of(of.name, unread))
            tree.get<picojson::object>()[std::string(of.name)] = tree_of(of, unread);
    return tree;
}
/// Returns false unless the text is exactly one JSON value. `why` becomes the reason, "" if
/// unknown.
inline bool parse_json(std::string_view s, picojson::value& out, std::string* why = nullptr) {
    json_reader reader;
    const json_view* const v = reader.read(s);
    if (v) out = tree_of(*v);
    else if (why) *why = reader.why();
    return v != nullptr;
}

/// The text of a member as it stands in the text of an object; "" if none.
inline std::string_view member_text(std::string_view object, std::string_view name) {
    json_reader reader;
    const json_view* const v = reader.read(object);
    const json_view* const m = v ? member(*v, name) : nullptr;
    return m ? object.substr(m->from, m->to - m->from) : std::string_view();
}
/// A value as JSON. Where it has numbers that a double may not hold, such as ids over 2^53, it is
/// the text from which it was read.
inline std::string exact_json(const picojson::value& v, std::string_view text) {
    std::size_t digits = 0;
    for (const char c : text) {
        digits = c >= '0' && c <= '9' ? digits + 1 : 0;
        if (digits < 16) continue;
        std::string exact = without_half_pairs(text);
        std::replace(exact.begin(), exact.end(), '\n', ' ');
        return exact;
    }
    return v.serialize();
}

template <class Value>
bool has_text(const Value& v, std::string_view name) { return !string_member(v, name).empty(); }

/// Writes JSON with two-space indentation or on one line, with keys in order of calls.
class json_writer {
public:
    explicit json_writer(layout on = layout::lines) : on_one_line_(on == layout::one_line) {}
    json_writer& key(std::string_view name) {
        separate();
        append_quoted(out_, name);
        out_ += on_one_line_ ? ":" : ": ";
        after_key_ = true;
        return *this;
    }
    json_writer& open(char bracket) {
        separate();
        out_ += bracket;
        closers_ += bracket == '{' ? '}' : ']';
        first_ = true;
        return *this;
    }
    json_writer& close() {
        const char closer = closers_.back();
        closers_.pop_back();
        if (!first_) newline();
        out_ += closer;
        first_ = false;
        return *this;
    }
    json_writer& raw(std::string_view v) {
        separate();
        out_ += v;
        return *this;
    }
    json_writer& value(double v) { return raw(json_number(v)); }
    json_writer& value(long long v) {
        char buffer[24];
        const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
        return raw({buffer, static_cast<std::size_t>(end - buffer)});
    }
    json_writer& value(std::string_view v) {
        separate();
        append_quoted(out_, v);
        return *this;
    }
    template <class T>
    json_writer& field(std::string_view name, const T& v) {
        key(name);
        if constexpr (std::is_same_v<T, bool>) return raw(v ? "true" : "false");
        else if constexpr (integer<T>) return value(static_cast<long long>(v));
        else if constexpr (std::is_floating_point_v<T>) return value(v);
        else return value(std::string_view(v));
    }
    const std::string& text() const { return out_; }

private:
    void newline() {
        if (on_one_line_) return;
        out_ += '\n';
        out_.append(2 * closers_.size(), ' ');
    }
    void separate() {
        if (after_key_) { after_key_ = false; return; }
        if (closers_.empty()) return;
        if (!first_) out_ += ',';
        first_ = false;
        newline();
    }
    std::string out_{}, closers_{};
    const bool on_one_line_;
    bool first_ = true;
    bool after_key_ = false;
};

template <class Value>
double number_member(const Value& v, std::string_view name) {
    const Value* m = member(v, name);
    return m ? number_in(*m) : not_a_number;
}
template <class Value>
bool true_member(const Value& v, std::string_view name) {
    const Value* m = member(v, name);
    return m && is_true(*m);
}
inline json_items array_member(const json_view& v, std::string_view name) {
    const json_view* m = member(v, name);
    return m && is_list(*m) ? items_of(*m) : json_items();
}
inline const picojson::array& array_member(const picojson::value& v, std::string_view name) {
    static const picojson::array none;
    const picojson::value* m = member(v, name);
    return m && m->is<picojson::array>() ? m->get<picojson::array>() : none;
}

/// The name of a list element in errors: "ttfts[3]".
inline std::string element_name(const std::string& list, std::size_t i) {
    return list + printed("[%zu]", i);
}
/// A value in an error.
inline std::string shown_value(const picojson::value& v) {
    if (v.is<picojson::array>()) return "a list";
    if (v.is<picojson::object>()) return "an object";
    return v.is<double>() ? json_number(v.get<double>()) : printable(v.serialize(), 60);
}
inline std::string shown_value(const json_view& v) { return shown_value(tree_of(v)); }
/// Throws an error with the file, the value and what is allowed.
template <class Value>
[[noreturn]] void refuse_value(const std::string& file, const std::string& name, const Value& v,
                               const std::string& allowed) {
    refuse({file, file.empty() ? "" : ": ", name, " is ", shown_value(v), ", ", allowed});
}
/// `name` is called only for errors, as there are millions of numbers.
template <class Value, class Name>
double number_from(const std::string& file, const Value& v, double least, double most,
                   const char* what, Name&& name) {
    const double d = number_in(v);
    if (!(d >= least && d <= most))
        refuse_value(file, name(), v,
                     printed("%s from %.9g to %.9g is allowed", what, least, most));
    return d;
}
/// An integer, of a type that holds both bounds.
template <class Whole, class Value, class Name>
Whole whole_from(const std::string& file, const Value& v, double least, double most,
                 const char* what, Name&& name) {
    const double d = number_from(file, v, least, most, what, name);
    if (d != std::floor(d)) refuse_value(file, name(), v, "a whole number is allowed");
    return static_cast<Whole>(d);
}
template <class Value, class Name>
double seconds_from(const std::string& file, const Value& v, Name&& name) {
    return number_from(file, v, 0, longest_time_s, "a time in seconds", name);
}
template <class Value, class Name>
int tokens_from(const std::string& file, const Value& v, Name&& name) {
    return whole_from<int>(file, v, 0, most_tokens, "a whole number of tokens", name);
}

/// An object of a file with its name in errors. Members that are missing (older versions) or null
/// (unknown) are read as `otherwise`.
template <class Value>
class checked_value {
public:
    checked_value(const Value& v, std::string file = "", std::string path = "")
        : v_(v), file_(std::move(file)), path_(std::move(path)) {}

    /// A member that is neither missing nor null, else nullptr.
    const Value* present(const char* name) const {
        const Value* m = member(v_, name);
        return m && !is_null(*m) ? m : nullptr;
    }
    bool has(const char* name) const { return present(name) != nullptr; }
    double number(const char* name, double least, double most, double otherwise = not_a_number,
                  const char* what = "a number") const {
        const Value* m = present(name);
        return m ? number_of(*m, name, least, most, what) : otherwise;
    }
    double number_of(const Value& m, const char* name, double least, double most,
                     const char* what = "a number") const {
        return number_from(file_, m, least, most, what, [&] { return name_of(name); });
    }
    int tokens(const char* name, int otherwise) const {
        const Value* m = present(name);
        return m ? tokens_from(file_, *m, [&] { return name_of(name); }) : otherwise;
    }
    double seconds(const char* name, double otherwise = not_a_number) const {
        return number(name, 0, longest_time_s, otherwise);
    }
    template <class Whole>
    Whole whole(const char* name, double least, double most, Whole otherwise) const {
        const Value* m = present(name);
        return m ? whole_of<Whole>(*m, name, least, most) : otherwise;
    }
    template <class Whole>
    Whole whole_of(const Value& m, const char* name, double least, double most) const {
        return whole_from<Whole>(file_, m, least, most, "a whole number",
                                 [&] { return name_of(name); });
    }
    /// Calls `each(index, value)` for each element of a list.
    template <class Each>
    void numbers(const char* name, double least, double most, Each&& each) const {
        std::size_t i = 0;
        for (const Value& n : array_member(v_, name)) {
            each(i, is_null(n) ? not_a_number
                               : number_from(file_, n, least, most, "a number",
                                             [&] { return element_name(name_of(name), i); }));
            ++i;
        }
    }
    std::string text(const char* name) const { return std::string(string_member(v_, name)); }
    bool is_true(const char* name) const { return true_member(v_, name); }
    const Value& value() const { return v_; }
    /// A member that is an object; an empty one if missing.
    checked_value at(const char* name) const {
        return {member_or_none(name), file_, name_of(name)};
    }
    vector<checked_value> each(const char* name) const {
        vector<checked_value> all;
        for (const Value& v : array_member(v_, name))
            all.emplace_back(v, file_, element_name(name_of(name), all.size()));
        return all;
    }
    [[noreturn]] void refuse(const char* name, const std::string& allowed) const {
        refuse_value(file_, name_of(name), member_or_none(name), allowed);
    }
    [[noreturn]] void refuse_without(const char* name) const {
        detail::refuse({file_, file_.empty() ? "" : ": ", "it has no field ", name});
    }
    std::string name_of(const char* name) const {
        return path_.empty() ? name : path_ + "." + name;
    }

private:
    const Value& member_or_none(const char* name) const {
        static const Value none{};
        const Value* m = member(v_, name);
        return m ? *m : none;
    }
    const Value& v_;
    std::string file_, path_;
};
using checked_object = checked_value<picojson::value>;
/// Of a file that llmbench wrote. It lives as long as the text and the reader.
using stored_object = checked_value<json_view>;
/// The object of a file of ours. Throws an error with what it `is_not` if it has another schema.
inline stored_object stored_document(json_reader& reader, std::string_view json,
                                     const std::string& file, const char* is_not,
                                     const char* schema) {
    const json_view* const v = reader.read(json);
    if (!v || string_member(*v, "schema") != schema) refuse({file, is_not, " (", schema, ")"});
    return {*v, file};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
