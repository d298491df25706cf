// llmbench_answers 1.0.0-rc.1: questions whose answers are known. Include it after llmbench.hpp.
// Put together from src/ by ci/assemble.py: edit there, not here.
//
// Part one: declarations
//   [A] questions whose answers are known
// Part three: graders, files of questions, and what is sent of them
//
// SPDX-License-Identifier: MIT
//
// Copyright (c) 2026 the llmbench authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or
// substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

#ifndef LLMBENCH_HPP
#error "llmbench_answers.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_ANSWERS_HPP
#define LLMBENCH_ANSWERS_HPP
static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_1.0.0rc.1") == 0,
              "llmbench_answers.hpp is of 1.0.0-rc.1, but llmbench.hpp is " LLMBENCH_RELEASE_
              ": take both from one release");

// ===== [A] questions whose answers are known =====================================================

namespace llmbench {
inline namespace v1 {

namespace detail {
/// Defined in this extension's implementation. If it is missing, the linker shows the name.
extern const workload_extension* const include_llmbench_answers_hpp_where_LLMBENCH_MAIN_is;

/// Its name alone makes the linker look for it. A file that carries the implementation knows the
/// answer, which compilers warn about where it is asked for directly.
constexpr bool is_linked(const workload_extension* e) { return e != nullptr; }
template <class M>
struct include_llmbench_answers_hpp {
    static constexpr M known(M m) {
        return is_linked(include_llmbench_answers_hpp_where_LLMBENCH_MAIN_is) ? m : M();
    }
};
}  // namespace detail

/// An answer_grade, or your own function of two texts, which several threads may call at once:
/// `[](std::string_view answer, std::string_view key) { return ...; }`. It returns a bool, or a
/// `types::maybe<bool>`, empty if nothing can be read.
class answer_grader {
public:
    answer_grader() = default;  ///< the line's grader
    answer_grader(answer_grade g) : known_(g) {}
    template <class F>
        requires requires(const F& f, const types::text& t) { types::maybe<bool>(f(t, t)); }
    answer_grader(F f)
        : is_null_(is_null(f)),
          own_(detail::box::make(f)),
          call_([](const detail::box& own, const types::text& answer, const types::text& key) {
              return types::maybe<bool>((*own.get<F>())(answer, key));
          }) {}
    const types::maybe<answer_grade>& known() const { return known_; }
    bool is_own() const { return call_ != nullptr; }
    bool is_null() const { return is_null_; }  ///< of a pointer or std::function without one
    types::maybe<bool> operator()(const types::text& answer, const types::text& key) const {
        return call_(own_, answer, key);
    }

private:
    template <class F>
    static bool is_null(const F& f) {
        if constexpr (requires { static_cast<F>(nullptr); !f; }) return !f;
        else return false;
    }
    types::maybe<answer_grade> known_{};
    bool is_null_ = false;
    detail::box own_{};
    types::maybe<bool> (*call_)(const detail::box&, const types::text&, const types::text&){};
};

/// Questions with known answers. Each is asked once a repeat, unchanged, at temperature 0 unless
/// `options` say otherwise; answers are limited by `options.max_tokens` only. The share of right
/// answers is `accuracy`; a failed request is wrong.
struct in_llmbench_answers_hpp::questions {
    types::text path{};
    question_format format = qa_jsonl;
    answer_grader grade{};               ///< default: the line's; last_number for gsm8k
    types::text before{};  ///< text before each question: examples, or the wanted form
    types::text after{};
    types::maybe<int> max_items{};       ///< drawn by the seed; default: all of them

    operator any_workload() const {
        return detail::extension_workload{
            detail::box::make(*this),
            detail::include_llmbench_answers_hpp_where_LLMBENCH_MAIN_is};
    }
};

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_ANSWERS_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_ANSWERS_IMPLEMENTED)
#define LLMBENCH_ANSWERS_IMPLEMENTED

#include <algorithm>  // count_if, min, mismatch, max, any_of
#include <cmath>  // fabs, floor, pow, abs, isnan
#include <cstddef>  // ptrdiff_t, size_t
#include <cstdint>  // uint64_t
#include <cstdlib>  // abs
#include <functional>
#include <map>
#include <memory>  // shared_ptr, make_shared
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>  // move, pair

#include <picojson.h>  // JSON of servers

// ===== [E] answers of a pair of repeats compared =================================================

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Where two texts first differ: the characters before, and their fraction of the first text's
/// bytes.
struct parting {
    double characters = 0, fraction = 0;
    std::size_t byte = 0;
};
inline parting parting_of(std::string_view a, std::string_view b) {
    const std::size_t most = std::min(a.size(), b.size());
    auto byte = static_cast<std::size_t>(
        std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first -
        a.begin());
    const std::string_view longer = a.size() > b.size() ? a : b;
    while (byte > 0 && byte < longer.size() && goes_on(longer[byte])) --byte;
    const auto characters =
        std::count_if(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(byte),
                      [](char c) { return !goes_on(c); });
    return {static_cast<double>(characters),
            a.empty() ? 0 : static_cast<double>(byte) / static_cast<double>(a.size()), byte};
}

/// Calls `f(candidate's record, baseline's)` for each request that both variants of a pair sent.
template <class Records, class F>
void for_each_pair(Records& mine, const vector<record>& theirs, F&& f) {
    std::size_t i = 0;
    for (auto& r : mine) {
        const auto at = place_of(r.id.c_str());
        while (i < theirs.size() && place_of(theirs[i].id.c_str()) < at) ++i;
        if (at && i < theirs.size() && place_of(theirs[i].id.c_str()) == at) f(r, theirs[i]);
    }
}

/// Marks the candidate's answers that equal the baseline's. An answer that failed in either variant
/// differs; a cancelled request is not compared.
inline void mark_same_answers(repeat_data& mine, const repeat_data& theirs) {
    vector<bool> compared(256);
    for (const repeat_data* d : {static_cast<const repeat_data*>(&mine), &theirs})
        for (const record& r : d->records)
            if (r.answer_hash != 0) compared[r.part] = true;
    for_each_pair(mine.records, theirs.records, [&](record& a, const record& b) {
        if (!compared[a.part] || has_left(a) || has_left(b)) return;
        a.same = a.answer_hash != 0 && a.answer_hash == b.answer_hash;
    });
}
/// The same with differences. `masked` makes an excerpt fit to be shown.
template <class Masked>
void compare_answers(repeat_data& mine, const repeat_data& theirs,
                     const vector<kept_text>& said, const vector<kept_text>& expected,
                     std::size_t max_shown, Masked&& masked) {
    mark_same_answers(mine, theirs);
    std::map<std::size_t, const std::string*> mine_at, theirs_at;
    for (const kept_text& t : said) mine_at[t.index] = &t.said;
    for (const kept_text& t : expected) theirs_at[t.index] = &t.said;
    for_each_pair(mine.records, theirs.records, [&](const record& a, const record& b) {
        const bool both = a.answer_hash != 0 && b.answer_hash != 0;
        if (!is_measured(a) || !a.same || !both) return;
        const std::size_t index = *place_of(a.id.c_str());
        const auto own = mine_at.find(index), other = theirs_at.find(index);
        if (own == mine_at.end() || other == theirs_at.end()) {
            mine.differences.without_place += !*a.same;
            return;
        }
        if (*a.same) { mine.differences.tokens += a.output_tokens; return; }
        const std::string &x = *own->second, &y = *other->second;
        const parting at = parting_of(x, y);
        mine.differences.places.push_back(at.characters);
        mine.differences.tokens += a.output_tokens * at.fraction;
        if (mine.differences.places.size() > max_shown) return;
        mine.shown.push_back({index, masked(excerpt(x, max_shown_bytes, at.byte)),
                              masked(excerpt(y, max_shown_bytes, at.byte)), at.characters});
    });
}

// ===== [E] numbers as written by people and models, in plain characters ==========================

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

// ===== [E] questions, their graders and keys, and their part of the plan =========================

class choice_reader {
public:
    choice_reader(std::string_view s, int choices) : s_(s), choices_(choices) {}

    /// Returns '\0' if none or several are named.
    char read() const {
        const std::string_view line = s_.substr(0, s_.find('\n'));
        const std::size_t first = past_dress(0);
        if (first < line.size() && past_dress(first + 1) >= line.size() && letter(first))
            return letter(first);  // a first line that is only a letter
        if (const auto c = announced()) return *c;
        const bool is_list = repeats_choices();
        // "B. dogs": a letter with its mark.
        if (!is_list && is_alone(first) && is_upper(first) && is_marked(first)) return named(first);
        for (std::size_t i = s_.size(); i-- > 0;) {
            if (!is_upper(i) || !letter(i) || !is_alone(i) || is_article(i)) continue;
            if (is_list && begins_line(i) && is_marked(i)) continue;
            return is_one_of_several(i) ? '\0' : letter(i);
        }
        return '\0';
    }

private:
    static constexpr std::string_view dress = " \t\r\n*_().:[]{}\"'$><";
    std::size_t past_dress(std::size_t i) const {
        return std::min(s_.find_first_not_of(dress, i), s_.size());
    }
    bool is_upper(std::size_t i) const { return i < s_.size() && s_[i] >= 'A' && s_[i] <= 'Z'; }
    char letter(std::size_t i) const {
        if (!is_letter(s_, i)) return '\0';
        const char upper = static_cast<char>(s_[i] & ~0x20);
        return upper < 'A' + choices_ ? upper : '\0';
    }
    /// Whether it is no part of a word. Characters from U+3000 on (scripts without spaces) form no
    /// word with it.
    bool is_alone(std::size_t i) const {
        const auto joins = [&](std::size_t k) {
            const auto c = static_cast<unsigned char>(s_[k]);
            return is_letter(s_, k) || is_digit(s_, k) || c == '_' || c == '\'' ||
                   (c >= 0xC0 && c < 0xE3);
        };
        const auto ends_word = [&](std::size_t k) {  // its last byte is not enough
            while (k > 0 && (static_cast<unsigned char>(s_[k]) & 0xC0) == 0x80) --k;
            return joins(k);
        };
        return i < s_.size() && (i == 0 || !ends_word(i - 1)) &&
               (i + 1 >= s_.size() || !joins(i + 1));
    }
    /// "A" and "I" can be words.
    bool is_article(std::size_t i) const {
        const char c = s_[i];
        return (c == 'A' || c == 'I' || c == 'a' || c == 'i') && i + 2 < s_.size() &&
               s_[i + 1] == ' ' && s_[i + 2] >= 'a' && s_[i + 2] <= 'z';
    }
    bool is_marked(std::size_t i) const {
        const std::size_t k = std::min(s_.find_first_not_of("*_ ", i + 1), s_.size());
        return k < s_.size() && (holds_byte(".):,\n", s_[k]) || (s_[k] == '-' && s_[k - 1] == ' '));
    }
    bool begins_line(std::size_t i) const {
        while (i > 0 && holds_byte(dress, s_[i - 1]) && s_[i - 1] != '\n') --i;
        return i == 0 || s_[i - 1] == '\n';
    }
    bool repeats_choices() const {
        std::set<char> at_lines;
        for (std::size_t i = 0; i < s_.size(); ++i)
            if (is_upper(i) && is_alone(i) && begins_line(i) && is_marked(i))
                at_lines.insert(s_[i]);
        return at_lines.size() > 1;
    }
    /// "B or C", "B, C" is no choice.
    bool is_one_of_several(std::size_t i) const {
        const auto joined = [&](std::size_t from, std::size_t to) {
            std::string between;
            for (const char c : s_.substr(from, to - from))
                if (!holds_byte(" *_()$\"'", c)) between += c;
            for (const char* w : {",", "/", "&", "and", "or", ",and", ",or"})
                if (between == w) return true;
            return false;
        };
        const auto is_other = [&](std::size_t k) {
            return is_upper(k) && letter(k) && is_alone(k);
        };
        constexpr std::size_t reach = 12;
        for (std::size_t k = i > reach ? i - reach : 0; k < i; ++k)
            if (is_other(k) && joined(k + 1, i)) return true;
        for (std::size_t k = i + 1; k < std::min(i + reach, s_.size()); ++k) {
            if (!is_other(k) || !joined(i + 1, k)) continue;
            const std::size_t next = s_.find_first_not_of(" *_)$\"'}", k + 1);
            return next == std::string_view::npos || holds_byte(".,;\n", s_[next]);
        }
        return false;
    }
    char named(std::size_t i) const { return is_one_of_several(i) ? '\0' : letter(i); }
    std::size_t past_word(std::size_t i, std::string_view word) const {
        const bool is_it = same_ignoring_case(s_.substr(i, word.size()), word);
        return is_it ? past_dress(i + word.size()) : i;
    }
    /// The letter after the last words that announce an answer, or before those that confirm it.
    std::optional<char> announced() const {
        static constexpr std::string_view marks[] = {
            "answer is", "answer:", "answer\":", "<answer>", box_mark,    "option is",
            "option:",   "choice is", "choice:", " is correct", " is the correct"};
        std::optional<char> found;
        each_mark(s_, marks, [&](std::size_t at, std::string_view mark) {
            std::size_t i = past_dress(at);
            if (mark.front() == ' ') {
                i = at - mark.size();
                while (i > 0 && holds_byte(dress, s_[i - 1])) --i;
                if (i == 0 || !is_upper(i - 1)) return false;
                --i;
            } else {
                for (const char* word : {"option", "choice", "letter"}) i = past_word(i, word);
            }
            if (i >= s_.size() || !is_letter(s_, i) || !is_alone(i)) return false;
            const bool same_line = !holds_byte(s_.substr(0, i).substr(std::min(at, i)), '\n');
            if (is_article(i) && (!is_upper(i) || !same_line)) return false;
            if (!is_upper(i) && !letter(i)) return false;
            found = named(i);
            return true;
        });
        return found;
    }

    std::string_view s_;
    int choices_;
};

/// Returns the letter that a model chose, '\0' if none.
inline char choice_in(std::string_view text, int choices) {
    const std::string s(without_space(undressed(text)));
    return choice_reader(s, choices).read();
}

inline const char* grade_name(answer_grade g) {
    return name_at({"exact", "last_number", "choice"}, g);
}

/// The right answer: a text, a number or a letter, or the input of your own function.
struct answer_key {
    answer_grade by = exact;
    std::string key{};
    int choices = 0;
    std::shared_ptr<const answer_grader> own{};  // replaces `by`
};

inline graded_answer graded(std::string_view text, const answer_key& wanted) {
    const std::string_view said = without_space(text);
    std::string read(said);
    maybe<bool> is_right;
    if (said.empty()) return {};
    if (wanted.own) {
        is_right = call_of_user({"the grader of the questions"},
                                [&] { return (*wanted.own)(said, wanted.key); });
    } else if (wanted.by == exact) {
        is_right = said == without_space(wanted.key);
    } else if (wanted.by == last_number) {
        const number_said found = number_in_answer(said);
        const auto key = whole_number(wanted.key);
        if (found.n) is_right = key && same_number(*found.n, *key);
        read = found.read;
    } else if (const char c = choice_in(said, wanted.choices)) {
        read = c;
        is_right = wanted.key == read;
    }
    if (!is_right) return {};
    return {*is_right ? graded_as::right : graded_as::wrong, std::move(read)};
}

/// The same for a question of a plan.
struct keyed_answer final : wanted_answer {
    explicit keyed_answer(answer_key k) : what(std::move(k)) {}
    const std::string& key() const override { return what.key; }
    graded_answer graded(std::string_view text) const override {
        return detail::graded(text, what);
    }
    const answer_key what;
};

inline const char* format_name(question_format f) { return name_at({"gsm8k", "qa_jsonl"}, f); }

/// One line of a file of questions.
class question_reader {
public:
    question_reader(const byte_stream& in, const questions& q) : in_(in), asked_(q) {
        if (q.grade.is_own()) own_ = std::make_shared<const answer_grader>(q.grade);
    }

    dialogue read(const picojson::value& v, long long line) const {
        if (!v.is<picojson::object>()) in_.refuse(line, "an object is expected here");
        row_fields told;
        const field_names none;
        const dialogue_reader fields(in_, line, 1, told, none);
        dialogue d;
        d.turns.push_back({.prompt = fields.text_of(v, "question")});
        const vector<std::string> choices = choices_of(v, line);
        for (std::size_t i = 0; i < choices.size(); ++i)
            d.turns[0].prompt += std::string("\n") + letter(i) + ". " + choices[i];
        d.turns[0].prompt = str(asked_.before) + d.turns[0].prompt + str(asked_.after);
        d.wanted = std::make_shared<const keyed_answer>(key_of(v, choices, line));
        return d;
    }

private:
    static char letter(std::size_t i) { return static_cast<char>('A' + static_cast<int>(i)); }
    vector<std::string> choices_of(const picojson::value& v, long long line) const {
        vector<std::string> choices;
        if (!member(v, "choices")) return choices;
        for (const picojson::value& c : array_member(v, "choices")) {
            if (!c.is<std::string>()) in_.refuse(line, "choices must be a list of strings");
            choices.push_back(c.get<std::string>());
        }
        if (choices.size() < 2 || choices.size() > 26)
            in_.refuse(line, printed("choices has %zu strings: 2 to 26 are allowed",
                                     choices.size()));
        return choices;
    }
    answer_grade grade_of(const picojson::value& v, const vector<std::string>& choices) const {
        if (asked_.grade.known()) return *asked_.grade.known();
        return asked_.format == gsm8k ? last_number
               : !choices.empty()     ? choice
               : std::isnan(number_member(v, "answer")) &&
                         !whole_number(string_member(v, "answer"))
                   ? exact
                   : last_number;
    }
    answer_key key_of(const picojson::value& v, const vector<std::string>& choices,
                      long long line) const {
        answer_key w{.by = grade_of(v, choices),
                     .choices = static_cast<int>(choices.size()),
                     .own = own_};
        for (const char* gone : {"pattern", "schema"})
            if (!own_ && member(v, gone))
                in_.refuse(line, std::string(gone) + " is no grade any more: write it as answer, "
                                 "and .grade = a function that holds answers against it");
        const picojson::value* answer = member(v, "answer");
        const double number = answer ? number_in(*answer) : not_a_number;
        if (answer && answer->is<std::string>()) w.key = answer->get<std::string>();
        else if (!std::isnan(number)) w.key = json_number(number);
        else if (answer && own_) w.key = answer->serialize();
        if (without_space(w.key).empty())
            in_.refuse(line, "answer is missing or empty: a question without a key cannot be "
                             "graded");
        if (own_) return w;
        if (w.by == exact && !std::isnan(number))
            in_.refuse(line, "answer is a number: graded by exact, a key is a text in quotes, as "
                             "it is to be answered");
        if (w.by == choice) w.key = chosen(*answer, w.key, choices, line);
        if (w.by == last_number) {
            constexpr double most = 9007199254740992.0;  // larger JSON numbers are rounded
            if (std::abs(number) >= most)
                in_.refuse(line, "answer is " + w.key + ", which JSON's numbers may not hold to "
                                                        "the last digit: write it in quotes");
            const auto mark = w.key.rfind("####");
            if (mark != std::string::npos) w.key.erase(0, mark + 4);
            w.key = std::string(without_space(w.key));
            if (!whole_number(w.key))
                in_.refuse(line, "answer \"" + printable(w.key, 40) + "\" is no number: graded by "
                                 "last_number, a key is wholly one, such as -1,234.5 or 3/4");
        }
        return w;
    }
    /// The letter of the key, or of its text.
    std::string chosen(const picojson::value& answer, const std::string& key,
                       const vector<std::string>& choices, long long line) const {
        if (choices.empty())
            in_.refuse(line, "choices is missing: graded by choice, a question needs them");
        std::optional<std::size_t> place;
        if (!answer.is<std::string>()) {
            for (std::size_t i = 0; i < choices.size(); ++i)
                if (number_in(answer) == static_cast<double>(i)) place = i;
        } else {
            const std::string_view said = without_space(key);
            std::size_t alike = 0;
            for (std::size_t i = 0; i < choices.size(); ++i) {
                if (said != without_space(choices[i])) continue;
                place = i;
                ++alike;
            }
            const bool is_one = said.size() == 1 && said[0] >= 'A' &&
                                   said[0] < 'A' + static_cast<int>(choices.size());
            if (alike > 1 || (is_one && place && letter(*place) != said[0]))
                in_.refuse(line, "answer \"" + printable(said, 40) + "\" may be several of the "
                                 "choices: name one by its index, the first is 0");
            if (is_one) place = static_cast<std::size_t>(said[0] - 'A');
        }
        if (!place)
            in_.refuse(line, "answer \"" + printable(key, 40) +
                                 printed("\" is none of the %zu choices: it is a letter from A "
                                         "on, an index from 0 on, or the text of one",
                                         choices.size()));
        return std::string(1, letter(*place));
    }

    const byte_stream& in_;
    const questions& asked_;
    std::shared_ptr<const answer_grader> own_{};  // of the gate
};

/// The questions of a file, or a sample of them by the seed, in an order of the seed.
inline vector<dialogue> read_questions(byte_stream& in, const questions& q, std::uint64_t seed) {
    constexpr std::size_t most = 1000000;
    dialogue_sampler sampler(q.max_items ? static_cast<std::size_t>(*q.max_items) : most, seed);
    const question_reader reader(in, q);
    std::map<std::string, long long> lines;
    each_json_value(in, [&](const std::string&, const picojson::value& v, long long line) {
        dialogue d = reader.read(v, line);
        const auto [first, is_new] = lines.emplace(d.turns[0].prompt, line);
        if (!is_new)
            in.refuse(line, printed("the question stands on line %lld already: asked twice, it "
                                    "would count twice", first->second));
        sampler.offer(std::move(d));
    });
    if (lines.empty()) refuse({in.name(), ": it holds no questions"});
    return sampler.take();
}

/// Checks that do not need the file.
inline void check_questions(const questions& q, const request_options& o) {
    if (q.path.empty()) refuse({"workload.path is empty: questions must name a file"});
    if (q.grade.is_null()) refuse({"workload.grade is a null function: it needs one that grades"});
    check_numbers({{"workload.max_items", q.max_items ? *q.max_items : 1.0, 1, 1e6}});
    if (o.ignore_eos)
        refuse({"options.ignore_eos is set, and workload is questions: an answer that may not end "
                "cannot be graded"});
    picojson::value extra;
    if (parse_json(str(o.extra_body), extra) && count_member(extra, "n") > 1)
        refuse({"options.extra_body asks for several choices (n), and workload is questions: one "
                "answer is graded"});
}
/// Each line of a file may have its own grader.
inline std::string graders_text(const questions& q, const vector<dialogue>& asked) {
    if (q.grade.is_own()) return "a function";
    std::map<answer_grade, std::size_t> of_grade;
    for (const dialogue& d : asked) ++of_grade[static_cast<const keyed_answer&>(*d.wanted).what.by];
    std::string grades;
    for (const auto& [grade, n] : of_grade)
        grades += (grades.empty() ? "" : ", ") + std::string(grade_name(grade)) +
                  (of_grade.size() > 1 ? printed(" (%zu)", n) : "");
    return grades;
}

/// The questions that were read: `asked`, held in the plan's files.
class asked_questions final : public read_workload {
public:
    asked_questions(questions said, const vector<dialogue>& asked)
        : q_(std::move(said)), n_(asked.size()), graders_(graders_text(q_, asked)) {}
    /// Answers are the most likely ones, and each question is asked once a repeat.
    scenario completed(scenario s, const api_traits& api) const override {
        const auto all = static_cast<long long>(n_);
        if (s.requests > all)
            refuse({printed("requests is %lld and there are %lld questions: each is asked once",
                            static_cast<long long>(s.requests), all)});
        if (s.requests == 0 && s.duration.seconds() == 0) s.requests = all;
        if (!api.generates)
            refuse({"workload is questions, and ", api.name, " generates nothing to answer them"});
        if (!s.options.temperature) s.options.temperature = 0.0;
        return s;
    }
    plan_part planned(const scenario& s, const arrival_data&, std::uint64_t) const override {
        check_questions(q_, s.options);
        return {.workload_text = printed("%zu questions of ", n_) + file_name(str(q_.path)) + " (" +
                                 format_name(q_.format) + ", graded by " + graders_ + ")",
                .sent_as_given = "prompts",
                .source = std::make_shared<const recorded_dialogues>()};
    }

private:
    const questions q_;
    const std::size_t n_;
    const std::string graders_;
};

// ===== [E] answers that reports show =============================================================

inline std::string what_is_wrong(const record& r) {
    if (*r.right) return "right";
    if (stream_event::is_at_length(r.finish_reason.c_str())) return "cut off";
    return r.graded.empty() ? "unreadable" : "wrong";
}

/// Each question once: those that keep an objective from passing, or all with kept texts.
inline vector<shown_answer> shown_answers_of(const plan& p, const repeat_list& variant,
                                             const vector<slo_verdict>& verdicts,
                                             answers_shown show) {
    const auto is_open = [&](metric_id m) {
        return std::any_of(verdicts.begin(), verdicts.end(), [m](const slo_verdict& v) {
            return v.objective.statistic.metric == m && (v.outcome == verdict::fail ||
                                               v.outcome == verdict::inconclusive);
        });
    };
    const bool all = show == answers_shown::all, none = show == answers_shown::none;
    vector<shown_answer> rows;
    for (const metric_id m : {metric_id::accuracy, metric_id::same_answers}) {
        if (p.sent->is_read || none || !(all || is_open(m))) continue;
        std::map<long long, std::size_t> row_of;  // by question
        for (std::size_t i = 0; i < variant.size(); ++i) {
            std::map<std::size_t, const record*> records;
            for (const record& r : variant[i].records)
                if (is_measured(r) && is_good_answer(m, r))
                    if (const auto at = place_of(r.id.c_str())) records[*at] = &r;
            for (const kept_text& t : variant[i].shown) {
                const auto at = records.find(t.index);
                const bool differs = !std::isnan(t.same_characters);
                if (at == records.end() || differs != (m == metric_id::same_answers)) continue;
                const record& r = *at->second;
                if (!all && rows.size() >= max_answers_shown) break;
                if (!row_of.emplace(question_of(r), rows.size()).second) continue;
                const wanted_answer* wanted = wanted_at(*p.sent, t.index);
                const auto prompt =
                    request_of(p, run_variant::candidate, variant[i].index, t.index);
                rows.push_back({str(r.id), differs ? "different" : what_is_wrong(r),
                                excerpt(prompt.prompt, max_shown_bytes),
                                wanted ? excerpt(wanted->key(), max_shown_bytes) : "",
                                differs ? "" : str(r.graded), t.said, t.expected,
                                t.same_characters, 0, 0});
            }
        }
        for (std::size_t i = 0; i < variant.size(); ++i)
            for (const record& r : variant[i].records) {
                if (!is_measured(r) || !is_good_answer(m, r)) continue;
                const auto at = row_of.find(question_of(r));
                if (at == row_of.end()) continue;
                ++rows[at->second].asked;
                rows[at->second].times += *is_good_answer(m, r) == (rows[at->second].is == "right");
            }
    }
    return rows;
}

inline std::string answer_html(const shown_answer& a) {
    const auto lines = [](const char* name, const std::string& text) {
        return filled("[{text?}<dt>{name}</dt><dd><pre>{lines}</pre></dd>\n]",
                      {{"text", text}, {"name", name}, {"lines", escaped_lines(text)}});
    };
    return folded_list(
        filled("{is} in {times} of {asked}: {question:x}",
               {{"is", a.is}, {"times", a.times}, {"asked", a.asked},
                {"question", printable(a.question, 100)}}),
        !std::isnan(a.same_characters)
            ? filled("after {same_characters:.0f} equal characters",
                     {{"same_characters", a.same_characters}})
            : filled("wanted {wanted}[, read {read}]",
                     {{"wanted", printable(a.wanted, 60)}, {"read", printable(a.read, 60)}}),
        fold::closed,
        joined({lines("question", a.question), lines("wanted", a.wanted), lines("read", a.read),
                lines("answer", a.answer), lines("baseline's answer", a.baseline_answer),
                list_of({{"request", a.id}})}));
}
/// Returns the answers of objectives on answers that did not pass.
inline std::string answers_html(const vector<shown_answer>& answers) {
    std::string h = "<h3>Answers</h3>\n<p class=\"note\">Each question once, in the order in which "
                    "its answer came, with the repeats in which it was so; answers.jsonl has the "
                    "same.</p>\n";
    constexpr std::size_t max_at_once = 10;
    std::string more;
    for (std::size_t i = 0; i < answers.size(); ++i)
        (i < max_at_once ? h : more) += answer_html(answers[i]);
    if (more.empty()) return h;
    const std::size_t left = answers.size() - max_at_once;
    return h + folded(filled("{more} more", {{"more", left}}), "", fold::closed, more);
}

// ===== [E] questions, read from their file =======================================================

class questions_of_files final : public workload_extension {
public:
    void read(const box& said, const scenario& s, std::uint64_t seed,
              workload_files& into) const override {
        const questions& q = *said.get<questions>();
        check_questions(q, s.options);
        byte_stream in = bytes_of(str(q.path), "workload.path");
        into.dialogues = read_questions(in, q, seed);
        into.of_extension = std::make_shared<const asked_questions>(q, into.dialogues);
    }
};
inline const questions_of_files reads_questions{};

class answers_kept final : public answer_keeping {
public:
    void mark_same(repeat_data& mine, const repeat_data& theirs) const override {
        mark_same_answers(mine, theirs);
    }
    void compare(repeat_data& mine, const repeat_data& theirs, const vector<kept_text>& said,
                 const vector<kept_text>& expected, std::size_t max_shown,
                 const std::function<std::string(std::string)>& masked) const override {
        compare_answers(mine, theirs, said, expected, max_shown, masked);
    }
    vector<shown_answer> shown(const plan& p, const repeat_list& variant,
                               const vector<slo_verdict>& verdicts,
                               answers_shown show) const override {
        return shown_answers_of(p, variant, verdicts, show);
    }
    std::string page(const vector<shown_answer>& answers) const override {
        return answers_html(answers);
    }
};
inline constinit const answers_kept keeps_answers{};
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void make_answers_known() { known_answers = &keeps_answers; }

const workload_extension* const include_llmbench_answers_hpp_where_LLMBENCH_MAIN_is =
    &reads_questions;

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_ANSWERS_IMPLEMENTED
