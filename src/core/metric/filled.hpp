// texts with places for values
// A place stands in braces and names its value:
//   {name}                as it is: a text, a count, a number, a value of a metric with its unit
//   {name:t}              a time
//   {name:.3g} {name:.1f%} {name:0}   printf's; of a fraction in percent; a double as a count
//   {name?a|b} {name?a}   "a" where the value is not 0, else "b"; else nothing
//   {name:s}              the plural of a count
//   {name:x} {name:m} {name:c}   escaped for XML; escaped for Markdown; as code in Markdown. Both
//                         of Markdown are safe for a server's words
// {,} and {;} separate from a text before. A part in brackets is left out if its first value is an
// empty text, 0 or NaN. tests/structure/templates.py refuses a place without a value of its name.
#pragma once

#include "api/metrics.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"

#include <algorithm>  // find_if, max, min
#include <cmath>      // isnan
#include <concepts>   // integral
#include <initializer_list>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A value for a place. It refers to texts of the caller.
class filling {
public:
    filling(const char* s) : c_(s), kind_(is_c) {}
    filling(const std::string& s) : string_(&s), kind_(is_string) {}
    filling(const std::string_view& s) : view_(&s), kind_(is_view) {}
    filling(const text& s) : text_(&s), kind_(is_text) {}
    filling(double x) : number_(x), kind_(is_number) {}
    template <std::integral I>
    filling(I n) : whole_(static_cast<long long>(n)), kind_(is_whole) {}
    filling(metric_id m, double v) : number_(v), kind_(of_metric + static_cast<int>(m)) {}

    std::string_view words() const {
        switch (kind_) {
            case is_c: return c_;
            case is_string: return *string_;
            case is_view: return *view_;
            case is_text: return {text_->c_str(), text_->size()};
            default: return {};
        }
    }
    bool is_words() const { return kind_ < is_whole; }
    double number() const { return kind_ == is_whole ? static_cast<double>(whole_) : number_; }
    bool is_nothing() const {
        const double x = is_words() ? static_cast<double>(words().size()) : number();
        return x == 0 || std::isnan(x);
    }
    std::string shown() const {
        if (is_words()) return std::string(words());
        if (kind_ == is_whole) return printed("%lld", whole_);
        if (kind_ == is_number) return printed("%g", number_);
        return value_text(static_cast<metric_id>(kind_ - of_metric), number_);
    }

private:
    enum { is_c, is_string, is_view, is_text, is_whole, is_number, of_metric };
    union {
        const char* c_;
        const std::string* string_;
        const std::string_view* view_;
        const text* text_;
        double number_;
        long long whole_;
    };
    int kind_;
};

/// Returns text as code: in a code span it is no mention, link, image, HTML or issue. A bar would
/// end a table's cell even there.
inline std::string markdown_code(std::string_view s) {
    std::string words;
    std::size_t longest = 0, run = 0;
    for (const char c : printable(s, s.size() * 4 + 4)) {
        longest = std::max(longest, run = c == '`' ? run + 1 : 0);
        words += c == '|' ? "\u2502" : std::string(1, c);
    }
    if (trimmed(words).empty()) return {};
    const std::string fence(longest + 1, '`');
    const bool needs_room = words.front() == '`' || words.back() == '`' ||
                            (words.front() == ' ' && words.back() == ' ');
    const char* room = needs_room ? " " : "";
    return fence + room + words + room + fence;
}
/// Whether GitHub would make a mention, an issue, a link or a formula of a word, even escaped.
inline bool is_live_in_markdown(std::string_view word) {
    if (word.find_first_of("@#$") != word.npos || word.find("://") != word.npos) return true;
    for (std::size_t i = 0; i < word.size(); ++i)
        for (const std::string_view live : {"www.", "gh-"})
            if ((i == 0 || !is_letter_or_digit(word[i - 1])) &&
                same_ignoring_case(word.substr(i, live.size()), live))
                return true;
    return false;
}
/// Returns text, perhaps a server's, with its markup escaped. Words that stay live are code.
inline std::string markdown_escaped(std::string_view s) {
    const std::string all = printable(s, s.size() * 4 + 4);
    std::string out;
    for (std::string_view rest = all; !rest.empty();) {
        const std::size_t n = std::min(rest.find(' '), rest.size() - 1) + 1;
        std::string_view word = rest.substr(0, n);
        rest.remove_prefix(n);
        if (is_live_in_markdown(word)) {
            const bool is_last = word.back() != ' ';
            out += markdown_code(trimmed(word)) + (is_last ? "" : " ");
            continue;
        }
        for (const char c : word) {
            if (std::string_view("\\|<>`*_[]~").find(c) != std::string_view::npos) out += '\\';
            out += c == '&' ? "&amp;" : std::string(1, c);
        }
    }
    return out;
}

/// "3g%" of a number: printf's, here of a fraction in percent.
inline std::string digits_of(std::string_view format, double x) {
    if (format.back() == '%') return digits_of(format.substr(0, format.size() - 1), 100 * x);
    const int digits = format[0] - '0';
    return format.back() == 'f' ? printed("%.*f", digits, x) : printed("%.*g", digits, x);
}
/// `how` is what stands behind the name.
inline std::string filled_place(std::string_view how, const filling& f) {
    if (how.empty()) return f.shown();
    const char kind = how[0];
    how.remove_prefix(1);
    if (kind == '?') {
        const std::size_t bar = std::min(how.find('|'), how.size());
        return std::string(f.is_nothing() ? how.substr(std::min(bar + 1, how.size()))
                                          : how.substr(0, bar));
    }
    switch (how[0]) {
        case 's': return f.number() == 1 ? "" : "s";
        case '0': return printed("%.0f", f.number());
        case 't': return time_text(f.number());
        case 'x': return xml_escaped(f.shown());
        case 'm': return markdown_escaped(f.shown());
        case 'c': return markdown_code(f.shown());
        default: return digits_of(how.substr(1), f.number());
    }
}
/// A value and the name by which a text has places for it.
struct named_filling {
    std::string_view name;
    filling value;
};
/// Returns the name of a place, before its ':' or '?'.
constexpr std::string_view name_of_place(std::string_view place) {
    return place.substr(0, std::min(place.find_first_of(":?"), place.size()));
}
/// Appends a text with its places filled. Never inlined: a chain of + is compiled anew each time.
[[gnu::noinline]] inline void fill(std::string& out, std::string_view format,
                                   const named_filling* values, std::size_t n) {
    std::size_t part = 0;  // where the part in brackets begins
    bool begins = false, left_out = false;
    for (std::string_view rest = format; !rest.empty();) {
        const std::size_t plain = std::min(rest.find_first_of("{[]"), rest.size());
        out += rest.substr(0, plain);
        rest.remove_prefix(plain);
        if (rest.empty()) break;
        std::size_t length = 1;
        if (rest[0] == '[') {
            part = out.size();
            begins = true;
        } else if (rest[0] == ']') {
            if (left_out) out.resize(part);
            begins = left_out = false;
        } else {
            length = std::min(rest.find('}'), rest.size() - 1) + 1;
            const std::string_view place = rest.substr(1, length - 2);
            const std::string_view name = name_of_place(place);
            const named_filling* const value = std::find_if(
                values, values + n, [&](const named_filling& v) { return v.name == name; });
            if (place == "," || place == ";") {
                if (!out.empty()) (out += place) += ' ';
            } else if (value == values + n) out += rest.substr(0, length);
            else {
                left_out = left_out || (begins && value->value.is_nothing());
                begins = false;
                out += filled_place(place.substr(name.size()), value->value);
            }
        }
        rest.remove_prefix(length);
    }
}
inline void fill(std::string& out, const char* format,
                 std::initializer_list<named_filling> values) {
    fill(out, format, values.begin(), values.size());
}
[[gnu::noinline]] inline std::string filled(const char* format,
                                            std::initializer_list<named_filling> values) {
    std::string out;
    fill(out, format, values.begin(), values.size());
    return out;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
