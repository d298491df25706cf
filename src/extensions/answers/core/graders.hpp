// whether an answer is right
#pragma once

#include "api/text.hpp"
#include "core/answers/grading.hpp"
#include "core/base/text.hpp"
#include "extensions/answers/api.hpp"
#include "extensions/answers/core/numbers.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <memory>  // shared_ptr
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Finds the letter in plain text.
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
        return k < s_.size() &&
               (holds_byte(".):,\n", s_[k]) || (s_[k] == '-' && s_[k - 1] == ' '));
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
    const auto held = [](bool is_right, std::string_view read) {
        return graded_answer{is_right ? graded_as::right : graded_as::wrong, std::string(read)};
    };
    if (said.empty()) return {};
    if (wanted.own) {
        const maybe<bool> is_right = call_of_user(
            {"the grader of the questions"}, [&] { return (*wanted.own)(said, wanted.key); });
        return is_right ? held(*is_right, said) : graded_answer{};
    }
    switch (wanted.by) {
    case exact: return held(said == without_space(wanted.key), said);
    case last_number: {
        const number_said found = number_in_answer(said);
        const auto key = whole_number(wanted.key);
        if (!found.n) return {};
        return held(key && same_number(*found.n, *key), found.read);
    }
    case choice: {
        const char c = choice_in(said, wanted.choices);
        if (!c) return {};
        return held(wanted.key == std::string(1, c), std::string(1, c));
    }
    }
    return {};
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

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
