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
extern const extension* const include_llmbench_answers_hpp_where_LLMBENCH_MAIN_is;

/// Its name alone makes the linker look for it. A file that carries the implementation knows the
/// answer, which compilers warn about where it is asked for directly.
constexpr bool is_linked(const extension* e) { return e != nullptr; }
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
        return detail::extension_value{
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
#include <cmath>  // abs, isnan
#include <cstddef>  // ptrdiff_t, size_t
#include <cstdint>  // uint64_t
#include <functional>
#include <map>
#include <memory>  // shared_ptr
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

/// Marks answers that are the same, and keeps where others part. `masked` makes an excerpt fit to be
/// shown.
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

// ===== [E] numbers as written by people and models ===============================================

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
inline std::size_t past_digits(std::string_view s, std::size_t i) {
    while (is_digit(s, i)) ++i;
    return i;
}

/// A number in a text, or text that only looks like one: "1,5", "3/4", "2:30", "1.2.3", "1e6".
struct number_in_text {
    std::size_t begin = 0, end = 0;
    std::string is{};  // "-1234.5", the same for the same number; empty: only looks like one
};

/// Moves `begin` to the sign of the number, before or after a `$`. A difference has no sign.
inline bool takes_minus(std::string_view s, std::size_t& begin) {
    const std::size_t at = begin - (begin > 0 && s[begin - 1] == '$');
    for (const std::string_view minus : {"-", "\xE2\x88\x92"}) {
        if (!s.substr(0, at).ends_with(minus)) continue;
        const std::size_t sign = at - minus.size();
        if (sign > 0 && (is_digit(s, sign - 1) || is_letter(s, sign - 1) ||
                         holds_byte(")]}%-_", s[sign - 1])))
            return false;
        begin = sign;
        return true;
    }
    return false;
}
/// Reads the number whose first digit, or point, is here.
inline number_in_text number_at(std::string_view s, std::size_t i) {
    number_in_text t{.begin = i, .end = past_digits(s, i)};
    std::string whole(s.substr(i, t.end - i)), decimals;
    if (t.end - i <= 3)  // thousands
        while (s.substr(t.end, 1) == "," && past_digits(s, t.end + 1) == t.end + 4) {
            whole += s.substr(t.end + 1, 3);
            t.end += 4;
        }
    if (s.substr(t.end, 1) == "." && is_digit(s, t.end + 1)) {
        const std::size_t from = t.end + 1;
        t.end = past_digits(s, from);
        decimals = s.substr(from, t.end - from);
    }
    const bool is_negative = takes_minus(s, t.begin);
    const auto goes_on = [&] {
        if (t.end >= s.size() || !holds_byte(",./:^eE", s[t.end])) return false;
        const bool is_power = holds_byte("^eE", s[t.end]);
        const std::size_t next = s.find_first_not_of(is_power ? "-+{" : "", t.end + 1);
        return is_digit(s, next);
    };
    if (goes_on()) {
        while (goes_on()) t.end = past_digits(s, s.find_first_of("0123456789", t.end));
        return t;
    }
    whole.erase(0, whole.find_first_not_of('0'));
    decimals.erase(decimals.find_last_not_of('0') + 1);
    const bool is_zero = whole.empty() && decimals.empty();
    t.is = (is_negative && !is_zero ? "-" : "") + (whole.empty() ? "0" : whole) +
           (decimals.empty() ? "" : "." + decimals);
    return t;
}
/// The numbers of a text, in order. Digits after a letter, ^ or _ are a name or an exponent:
/// "CO2", "cm^2", "x_{1}".
template <class Each>
void each_number(std::string_view s, Each&& each) {
    for (std::size_t i = 0; i < s.size();) {
        if (!is_digit(s, i) && !(s[i] == '.' && is_digit(s, i + 1))) { ++i; continue; }
        const std::size_t before = i - (i > 0 && s[i - 1] == '{');
        const bool is_of_a_name = before > 0 && (holds_byte("^_", s[before - 1]) ||
                                                 (before == i && is_letter(s, i - 1)));
        const number_in_text t = number_at(s, i);
        if (!is_of_a_name) each(t);
        i = std::max(t.end, i + 1);
    }
}
/// The number that is the whole text, "" if it is none.
inline std::string whole_number(std::string_view text) {
    const std::string_view s = without_space(text);
    std::string found;
    each_number(s, [&](const number_in_text& t) {
        const bool begins = t.begin == 0 || (t.begin == 1 && holds_byte("$+", s[0]));
        const bool ends = t.end == s.size() || (t.end + 1 == s.size() && s.back() == '.');
        if (begins && ends) found = t.is;
    });
    return found;
}
/// The number right after the last "####", else the last one.
inline number_in_text number_in_answer(std::string_view s) {
    number_in_text last;
    const std::size_t mark = s.rfind("####");
    const std::size_t stated =
        mark == std::string_view::npos ? mark : s.find_first_not_of("# *_$-+\t", mark);
    bool is_stated = false;
    each_number(s, [&](const number_in_text& t) {
        if (is_stated) return;
        last = t;
        is_stated = stated < t.end && t.begin <= stated;
    });
    return last;
}

// ===== [E] questions, their graders and keys, and their part of the plan =========================

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
            "answer is", "answer:", "answer\":", "<answer>", "\\boxed{", "option is",
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
    return choice_reader(without_space(text), choices).read();
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
        const number_in_text found = number_in_answer(said);
        if (!found.is.empty()) is_right = found.is == whole_number(wanted.key);
        read = said.substr(found.begin, found.is.empty() ? 0 : found.end - found.begin);
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
        if (q.grade.is_own()) own_ = new_shared<const answer_grader>(q.grade);
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
        d.wanted = new_shared<const keyed_answer>(key_of(v, choices, line));
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
                         whole_number(string_member(v, "answer")).empty()
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
            if (whole_number(w.key).empty())
                in_.refuse(line, "answer \"" + printable(w.key, 40) + "\" is no number: graded by "
                                 "last_number, a key is wholly one, such as -1,234.5");
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
                .source = new_shared<const recorded_dialogues>()};
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
inline vector<shown_answer> shown_answers_of(const load_plan& p, const repeat_list& variant,
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

inline void read_questions_of_files(const box& said, const scenario& s, std::uint64_t seed,
                                    workload_files& into) {
    const questions& q = *said.get<questions>();
    check_questions(q, s.options);
    byte_stream in = bytes_of(str(q.path), "workload.path");
    into.dialogues = read_questions(in, q, seed);
    into.of_extension = new_shared<const asked_questions>(q, into.dialogues);
}
inline void show_answers(const measurements& e, answers_shown show, gate_report& g) {
    g.answers = shown_answers_of(g.what, e.candidate, g.verdicts, show);
}
inline void add_answers(const gate_report& g, report_parts& into) {
    if (!g.answers.empty()) into.results += answers_html(g.answers);
}
inline constinit const extension questions_answered{.name = "answers",
                                                    .read = read_questions_of_files,
                                                    .compare_answers = compare_answers,
                                                    .add_to_report = show_answers,
                                                    .show = add_answers};

/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_questions() { add(questions_answered); }

constinit const extension* const include_llmbench_answers_hpp_where_LLMBENCH_MAIN_is =
    &questions_answered;

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_ANSWERS_IMPLEMENTED
