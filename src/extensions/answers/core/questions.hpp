// questions, their graders and keys, and their part of the plan
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/measured/answers.hpp"
#include "core/base/json.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/datasets.hpp"
#include "core/files/dialogues.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/sources.hpp"
#include "core/planning/workload.hpp"
#include "extensions/answers/api.hpp"
#include "extensions/answers/core/numbers.hpp"

#include <algorithm>  // min
#include <cmath>  // abs, isnan
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <map>
#include <memory>  // shared_ptr
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

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

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
