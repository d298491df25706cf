// numbers as written by people and models, in plain characters
#pragma once

#include "core/base/text.hpp"

#include <algorithm>  // min, max
#include <cmath>  // fabs, floor, pow
#include <cstddef>  // size_t
#include <cstdlib>  // abs
#include <optional>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns the text without surrounding space.
inline std::string_view without_space(std::string_view s) {
    constexpr std::string_view space = " \t\r\n\v\f";
    s.remove_prefix(std::min(s.find_first_not_of(space), s.size()));
    return s.substr(0, s.find_last_not_of(space) + 1);
}

inline bool holds_byte(std::string_view s, char c) { return s.find(c) != std::string_view::npos; }
inline bool is_digit(std::string_view s, std::size_t i) {
    return i < s.size() && s[i] >= '0' && s[i] <= '9';
}
inline bool is_letter(std::string_view s, std::size_t i) {
    return i < s.size() && (s[i] | 0x20) >= 'a' && (s[i] | 0x20) <= 'z';
}

struct dressed { std::string_view is, plain; };
inline constexpr dressed known_dressings[] = {
    {"**", ""}, {"__", ""}, {"`", ""}, {"~", " "}, {"{,}", ","},
    {"^\\circ", ""}, {"^{\\circ}", ""}, {"\\$", "$"}, {"\\%", "%"},
    {"\\,", " "}, {"\\;", " "}, {"\\:", " "}, {"\\ ", " "},
    {"\\!", ""}, {"\\(", " "}, {"\\)", " "}, {"\\[", " "}, {"\\]", " "}, {"\\left", ""},
    {"\\right", ""}, {"\\displaystyle", ""}, {"\\quad", " "}, {"\\times", "*"}, {"\\cdot", "*"},
    {"\\div", "/"}, {"\\approx", "="}, {"\\dfrac", "\\frac"}, {"\\tfrac", "\\frac"},
    {"\\fbox{", "\\boxed{"}, {"\\text{", "{"}, {"\\textbf{", "{"}, {"\\textit{", "{"},
    {"\\mathrm{", "{"}, {"\\mathbf{", "{"}, {"\\mbox{", "{"},
    {"\xE2\x88\x92", "-"}, {"\xE2\x80\x90", "-"}, {"\xE2\x80\x91", "-"}, {"\xE2\x80\x92", "-"},
    {"\xE2\x80\x93", "-"}, {"\xE2\x80\x94", " "},  // minus, hyphens, dashes
    {"\xC2\xA0", " "}, {"\xE2\x80\xAF", " "}, {"\xE2\x81\x9F", " "}, {"\xE3\x80\x80", " "},
    {"\xE2\x80\x8B", ""}, {"\xEF\xBB\xBF", ""},    // no-break, wide and zero-width spaces
    {"\xE2\x80\x98", "'"}, {"\xE2\x80\x99", "'"},  // quotes
    {"\xE2\x80\x9C", "\""}, {"\xE2\x80\x9D", "\""},
    {"\xC3\x97", "*"}, {"\xC2\xB7", "*"}, {"\xE2\x8B\x85", "*"}, {"\xC3\xB7", "/"},
    {"\xE2\x81\x84", "/"}, {"\xE2\x89\x88", "="}, {"\xC2\xB0", ""},
    {"\xE2\x88\x9A", "\\sqrt"}, {"\xCF\x80", "\\pi"}, {"\xE3\x80\x82", "."},
    {"\xE2\x82\xAC", "$"}, {"\xC2\xA3", "$"}, {"\xC2\xA5", "$"}, {"\xE2\x82\xB9", "$"},
    {"\xC2\xBC", " 1/4"}, {"\xC2\xBD", " 1/2"}, {"\xC2\xBE", " 3/4"},
    {"\xE2\x85\x93", " 1/3"}, {"\xE2\x85\x94", " 2/3"}};
/// A superscript digit or sign, else 0. They are in two places of Unicode.
inline char raised_at(std::string_view s, std::size_t i) {
    const std::string_view two = s.substr(i, 2), three = s.substr(i, 3);
    if (two == "\xC2\xB9") return '1';
    if (two == "\xC2\xB2") return '2';
    if (two == "\xC2\xB3") return '3';
    if (three.size() < 3 || three.substr(0, 2) != "\xE2\x81") return '\0';
    const int at = static_cast<unsigned char>(three[2]) - 0xB0;
    return at >= 0 && at <= 9 ? static_cast<char>('0' + at) : at == 0xB ? '-' : '\0';
}
/// Returns the text in plain form: signs, spaces, digits and fractions of Unicode and LaTeX in
/// ASCII, every currency as $, a power with ^, no bold, no code.
inline std::string undressed(std::string_view s) {
    std::string out;
    for (std::size_t i = 0; i < s.size();) {
        const bool is_plain = is_letter(s, i) || is_digit(s, i) || s[i] == ' ' || s[i] == '\n';
        if (is_plain) { out += s[i++]; continue; }
        if (s.substr(i, 2) == "**" && i > 0 && is_digit(s, i - 1) &&
            is_digit(s, i + 2 + (s.substr(i + 2, 1) == "-"))) {
            out += '^';  // Python's power
            i += 2;
            continue;
        }
        if (raised_at(s, i)) {
            for (out += '^'; i < s.size() && raised_at(s, i); i += s[i] == '\xC2' ? 2 : 3)
                out += raised_at(s, i);
            continue;
        }
        // Full-width forms and typographic spaces.
        const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
        if (i + 2 < s.size() && byte(i) == 0xEF && (byte(i + 1) == 0xBC || byte(i + 1) == 0xBD)) {
            const int code = (byte(i + 1) - 0xBC) * 0x40 + byte(i + 2) - 0x80 + 0x20;
            if (code > 0x20 && code < 0x7F) { out += static_cast<char>(code); i += 3; continue; }
        }
        if (s.substr(i, 2) == "\xE2\x80" && i + 2 < s.size() && byte(i + 2) <= 0x8A) {
            out += ' ';
            i += 3;
            continue;
        }
        const dressed* found = nullptr;
        for (const dressed& d : known_dressings)
            if (!found && s.substr(i, d.is.size()) == d.is) found = &d;
        if (found) out += found->plain;
        else out += s[i];
        i += found ? found->is.size() : 1;
    }
    return out;
}

/// Positions that announce an answer. `each` is called from the last one back, with the position
/// after the words and the words, until it returns true.
template <class Marks, class Each>
void each_mark(std::string_view s, const Marks& marks, Each&& each) {
    for (std::size_t i = s.size(); i-- > 0;)
        for (const std::string_view mark : marks)
            if (same_ignoring_case(s.substr(i, mark.size()), mark) &&
                each(i + mark.size(), mark))
                return;
}
inline constexpr std::string_view box_mark = "\\boxed{";
/// Returns the text in an open brace.
inline std::string_view in_braces(std::string_view s) {
    int depth = 1;
    for (std::size_t i = 0; i < s.size(); ++i)
        if ((depth += (s[i] == '{') - (s[i] == '}')) == 0) return s.substr(0, i);
    return s;
}

/// A decimal number with all digits, or a quotient of two whole numbers as a double.
struct exact_number {
    bool negative = false, is_quotient = false;
    std::string digits{};  // without 0 at either end; empty: zero
    int exponent = 0;      // of ten, after the last digit
    double value = not_a_number;
};
/// Whole numbers are equal in every digit; others within 1e-9, since files have them as doubles
/// and people round them.
inline bool same_number(const exact_number& a, const exact_number& b) {
    const auto is_whole = [](const exact_number& n) { return !n.is_quotient && n.exponent >= 0; };
    if (is_whole(a) && is_whole(b))
        return a.digits == b.digits &&
               (a.digits.empty() || (a.exponent == b.exponent && a.negative == b.negative));
    return std::fabs(a.value - b.value) <= 1e-9 * std::max(std::fabs(a.value), std::fabs(b.value));
}
inline exact_number number_of_digits(std::string digits, int exponent) {
    const double value =
        parsed_number<double>(digits + printed("e%d", exponent)).value_or(not_a_number);
    digits.erase(0, digits.find_first_not_of('0'));
    while (!digits.empty() && digits.back() == '0') { digits.pop_back(); ++exponent; }
    return {false, false, digits, exponent, value};
}

/// A number in a text, or text that only looks like one: "1,5", "2:30", "1.2.3", "\sqrt{2}".
struct number_in_text {
    std::size_t begin = 0, end = 0;
    std::optional<exact_number> n{};
};

/// Reads the number at a position of plain text.
class number_reader {
public:
    explicit number_reader(std::string_view s) : s_(s) {}

    /// Whether a number, a \frac or a \sqrt begins here.
    bool begins(std::size_t i) const {
        return is_digit(s_, i) || (is_at(i, '.') && is_digit(s_, i + 1)) || names(i, "\\frac") ||
               names(i, "\\sqrt");
    }
    /// After a letter, ^ or _ it is a name or an exponent: "CO2", "cm^2", "x_{1}".
    bool is_part_of_a_name(std::size_t i) const {
        if (i > 0 && s_[i - 1] == '{') --i;
        return i > 0 && (is_at(i - 1, '^') || is_at(i - 1, '_') || is_letter(s_, i - 1)) &&
               s_[i] != '\\';
    }
    number_in_text read(std::size_t i) {
        number_in_text t{.begin = i};
        const bool is_negative = sign_before(t.begin);
        i_ = i;
        t.n = unsigned_number();
        if (t.n && is_negative) {
            t.n->negative = true;
            t.n->value = -t.n->value;
        }
        const bool goes_on = (is_at(i_, ':') || is_at(i_, ',') || is_at(i_, '.') ||
                              is_at(i_, '/')) && is_digit(s_, i_ + 1);
        if (goes_on) {
            t.n.reset();
            while (is_digit(s_, i_) ||
                   (is_digit(s_, i_ + 1) && holds_byte(":,./", s_[i_])))
                ++i_;
        }
        const std::size_t next = past_space(i_);
        for (const char* factor : {"\\sqrt", "\\pi", "\\log", "\\ln"})
            if (names(next, factor)) t.n.reset();
        t.end = i_;
        return t;
    }

private:
    bool is_at(std::size_t i, char c) const { return i < s_.size() && s_[i] == c; }
    bool names(std::size_t i, std::string_view what) const {
        return i < s_.size() && s_.substr(i, what.size()) == what;
    }
    std::size_t past_space(std::size_t i) const {
        while (is_at(i, ' ')) ++i;
        return i;
    }
    std::size_t past_digits(std::size_t i) const {
        while (is_digit(s_, i)) ++i;
        return i;
    }
    std::string taken(std::size_t end) {
        const std::string digits(s_.substr(i_, end - i_));
        i_ = end;
        return digits;
    }
    /// A sign as a character or word, with a currency on either side. A difference has no sign.
    bool sign_before(std::size_t& i) const {
        std::size_t at = i;
        if (at > 0 && s_[at - 1] == '$') --at;
        const auto ends = [&](std::string_view word) {
            return at > word.size() && s_[at - 1] == ' ' &&
                   same_ignoring_case(s_.substr(at - word.size() - 1, word.size()), word);
        };
        std::size_t sign = at;  // after the sign
        if (at > 2 && s_[at - 1] == ' ' && s_[at - 2] == '-') {  // "= - 5"
            std::size_t k = at - 2;
            while (k > 0 && s_[k - 1] == ' ') --k;
            if (k > 0 && s_[k - 1] == '=') sign = at - 1;
        }
        if (sign > 0 && s_[sign - 1] == '-') {
            if (sign > 1 && (is_digit(s_, sign - 2) || is_letter(s_, sign - 2) ||
                             holds_byte(")]}%-_", s_[sign - 2])))
                return false;
            i = sign - 1;
            return true;
        }
        std::size_t word = ends("negative") ? 9 : ends("minus") ? 6 : 0;
        if (word == 6 && at > 7 && is_digit(s_, at - 8)) word = 0;
        i = at - word;
        return word > 0;
    }
    /// A whole number, with or without braces: of \frac, or of a power.
    std::optional<std::string> argument(std::size_t max_digits) {
        const bool braced = is_at(i_, '{');
        const std::size_t from = i_ + braced, sign = from + is_at(from, '-');
        std::size_t end = past_digits(sign);
        if (!braced) end = std::min(end, sign + max_digits);
        if (end == sign || (braced && !is_at(end, '}'))) {
            if (braced) i_ += 2 + in_braces(s_.substr(i_ + 1)).size();
            i_ = std::min(i_, s_.size());
            return {};
        }
        i_ = end + braced;
        return std::string(s_.substr(from, end - from));
    }
    static std::optional<exact_number> quotient(double whole, const std::string& over,
                                                const std::string& under) {
        const auto a = parsed_number<double>(over), b = parsed_number<double>(under);
        if (!a || !b || *b == 0) return {};
        return exact_number{.is_quotient = true,
                            .value = whole == 0 ? *a / *b : (whole * *b + *a) / *b};
    }
    std::optional<exact_number> latex_fraction(double whole) {
        i_ += 5;
        const auto over = argument(1), under = argument(1);
        if (!over || !under) return {};
        return quotient(whole, *over, *under);
    }
    /// Thousands separators: the same between all groups of three digits (or two, except the last,
    /// as in India). Two or more points are separators, one is not.
    std::string grouped(std::string whole) {
        if (whole.size() > 3 || whole[0] == '0') return whole;
        for (const char mark : {',', ' ', '\'', '_', '.'}) {
            std::string all = whole;
            std::size_t end = i_, groups = 0, last = 0;
            while (is_at(end, mark)) {
                const std::size_t behind = past_digits(end + 1), n = behind - end - 1;
                if (n != 3 && !(n == 2 && mark == ',' && is_at(behind, ','))) break;
                if (mark == ' ' && (is_at(behind, '/') || is_at(behind, '^'))) break;
                all += s_.substr(end + 1, n);
                end = behind;
                last = n;
                ++groups;
            }
            if (groups < (mark == '.' ? 2u : 1u) || last != 3) continue;
            i_ = end;
            return all;
        }
        return whole;
    }
    /// "e-5" or "* 10^{-5}": returns the power of ten, if there is one.
    std::optional<int> times_ten() {
        const std::size_t start = i_;
        const std::size_t at = past_space(i_), ten = past_space(at + 1);
        if (is_at(i_, 'e') || is_at(i_, 'E')) i_ += 1 + is_at(i_ + 1, '+');
        else if ((is_at(at, '*') || is_at(at, 'x')) && names(ten, "10^")) i_ = ten + 3;
        else return {};
        const auto n = power();
        if (!n || is_letter(s_, i_)) i_ = start;
        return i_ == start ? std::nullopt : n;
    }
    std::optional<int> power() {
        const auto digits = argument(9);
        const auto n = digits ? parsed_number<int>(*digits) : std::nullopt;
        return n && std::abs(*n) < 100000 ? n : std::nullopt;
    }
    std::optional<exact_number> unsigned_number() {
        if (names(i_, "\\frac")) return latex_fraction(0);
        if (names(i_, "\\sqrt")) {
            i_ += 5;
            argument(1);
            return {};
        }
        std::string digits = is_at(i_, '.') ? "" : taken(past_digits(i_));
        if (!digits.empty()) digits = grouped(digits);
        const double whole = parsed_number<double>(digits).value_or(not_a_number);
        int exponent = 0;
        if (is_at(i_, '.') && is_digit(s_, i_ + 1)) {
            ++i_;
            const std::string decimals = taken(past_digits(i_));
            digits += decimals;
            exponent = -static_cast<int>(decimals.size());
        } else if (is_at(i_, '/') && is_digit(s_, i_ + 1)) {
            ++i_;
            return quotient(0, digits, taken(past_digits(i_)));
        } else if (const std::size_t at = past_space(i_); names(at, "\\frac")) {
            i_ = at;
            return latex_fraction(whole);
        } else if (const std::size_t slash = past_digits(at);
                   at == i_ + 1 && slash > at && is_at(slash, '/') && is_digit(s_, slash + 1)) {
            i_ = at;
            const std::string over = taken(slash);
            ++i_;
            return quotient(whole, over, taken(past_digits(i_)));
        }
        if (const auto ten = times_ten()) exponent += *ten;
        if (!is_at(i_, '^')) return number_of_digits(digits, exponent);
        ++i_;
        const auto n = power();
        if (!n || exponent != 0) return {};
        if (digits == "10") return number_of_digits("1", *n);
        const double value = std::pow(whole, *n);
        if (!(value >= 1 && value < 9e15) || value != std::floor(value)) return {};
        return number_of_digits(printed("%.0f", value), 0);
    }

    std::string_view s_;
    std::size_t i_ = 0;
};

/// The numbers of a plain text, in order.
template <class Each>
void each_number(std::string_view s, Each&& each) {
    number_reader reader(s);
    for (std::size_t i = 0; i < s.size();) {
        if (!reader.begins(i)) { ++i; continue; }
        if (reader.is_part_of_a_name(i)) {
            for (++i; is_digit(s, i) || (i < s.size() && s[i] == '.' && is_digit(s, i + 1));) ++i;
            continue;
        }
        const number_in_text t = reader.read(i);
        each(t);
        i = std::max(t.end, i + 1);
    }
}
/// The number that is the whole text.
inline std::optional<exact_number> whole_number(std::string_view text) {
    std::string s(without_space(text));
    s = std::string(without_space(undressed(s)));
    std::optional<exact_number> found;
    each_number(s, [&](const number_in_text& t) {
        const bool begins = t.begin == 0 || (t.begin == 1 && (s[0] == '$' || s[0] == '+'));
        const bool ends = t.end == s.size() || (t.end + 1 == s.size() && s.back() == '.');
        if (begins && ends) found = t.n;
    });
    return found;
}

/// The final number of an answer; empty if there is none.
struct number_said {
    std::string read{};
    std::optional<exact_number> n{};
};
/// The number that a statement begins with or results in: "42 apples", "$x = 6 * 7 = 42$". Behind
/// "####" it is no equation.
inline number_in_text stated_number(std::string_view s, std::string_view mark) {
    const auto leading = [&](std::size_t from) {
        number_in_text first{};
        constexpr std::string_view around = " \t\r\n*_($\"'[{:>+";
        const std::size_t at = std::min(s.find_first_not_of(around, from), s.size());
        bool is_first = true;
        each_number(s.substr(0, std::min(s.size(), at + 80)), [&](const number_in_text& t) {
            if (t.end <= from || !is_first) return;
            is_first = false;
            if (t.begin <= at) first = t;
        });
        const std::size_t next = s.find_first_not_of(' ', first.end);
        if (next == std::string_view::npos || !holds_byte("+-*/=<>,", s[next])) return first;
        const std::size_t behind = s.find_first_not_of(' ', next + 1);
        if (behind < s.size() && holds_byte("0123456789$\\", s[behind])) first.n.reset();
        return first;
    };
    const number_in_text first = leading(0);
    const std::size_t equals = s.rfind('=');
    const bool is_stated = first.n || mark == "####" || equals == std::string_view::npos;
    return is_stated ? first : leading(equals + 1);
}
/// The number after the last announcement of an answer, else the last one.
inline number_said number_in_answer(std::string_view text) {
    static constexpr std::string_view marks[] = {"####",     "answer is", "answer:",
                                                 "answer\":", "<answer>",  box_mark};
    constexpr std::size_t most_of_a_statement = 300;
    const std::string s = undressed(text);
    std::optional<number_in_text> found;
    std::string_view of;  // the text around it
    each_mark(s, marks, [&](std::size_t at, std::string_view mark) {
        of = std::string_view(s).substr(at, most_of_a_statement);
        if (mark == box_mark) {
            of = in_braces(of);
            int numbers = 0;
            number_in_text only;
            each_number(of, [&](const number_in_text& t) { only = t; ++numbers; });
            found = numbers == 1 ? only : stated_number(of, mark);
            return true;  // a boxed answer counts, number or not
        }
        of = of.substr(0, of.find('\n', std::min(of.find_first_not_of(" *_:[$\r\n"), of.size())));
        const number_in_text t = stated_number(of, mark);
        const bool is_heading = mark == "####" && t.end < of.size() &&
                                holds_byte(".):", of[t.end]) && is_letter(of, t.end + 2);
        if (t.n && !is_heading) found = t;
        return found.has_value();
    });
    if (!found) {
        of = s;
        each_number(of, [&](const number_in_text& t) { found = t; });
    }
    if (!found || !found->n) return {};
    return {std::string(of.substr(found->begin, found->end - found->begin)), found->n};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
