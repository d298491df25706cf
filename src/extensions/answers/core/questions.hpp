// questions, their keys, and their part of the plan
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "core/base/checked_json.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/datasets.hpp"
#include "core/files/dialogues.hpp"
#include "core/traffic/conversation_sources.hpp"
#include "core/traffic/workload.hpp"
#include "extensions/answers/api.hpp"
#include "extensions/answers/core/graders.hpp"
#include "extensions/answers/core/numbers.hpp"

#include <cmath>  // abs, isnan
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <map>
#include <memory>  // make_shared
#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

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
        const std::vector<std::string> choices = choices_of(v, line);
        for (std::size_t i = 0; i < choices.size(); ++i)
            d.turns[0].prompt += std::string("\n") + letter(i) + ". " + choices[i];
        d.turns[0].prompt = str(asked_.before) + d.turns[0].prompt + str(asked_.after);
        d.wanted = std::make_shared<const keyed_answer>(key_of(v, choices, line));
        return d;
    }

private:
    static char letter(std::size_t i) { return static_cast<char>('A' + static_cast<int>(i)); }
    std::vector<std::string> choices_of(const picojson::value& v, long long line) const {
        std::vector<std::string> choices;
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
    answer_grade grade_of(const picojson::value& v, bool has_choices) const {
        if (asked_.grade.known()) return *asked_.grade.known();
        return asked_.format == gsm8k ? last_number
               : has_choices          ? choice
               : std::isnan(number_member(v, "answer")) &&
                         !whole_number(string_member(v, "answer"))
                   ? exact
                   : last_number;
    }
    answer_key key_of(const picojson::value& v, const std::vector<std::string>& choices,
                      long long line) const {
        answer_key w{.by = grade_of(v, !choices.empty()),
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
                       const std::vector<std::string>& choices, long long line) const {
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
inline std::vector<dialogue> read_questions(byte_stream& in, const questions& q,
                                            std::uint64_t seed) {
    constexpr std::size_t most = 1000000;
    dialogue_sampler sampler(q.max_items ? static_cast<std::size_t>(*q.max_items) : most, seed);
    const question_reader reader(in, q);
    std::map<std::string, long long> lines;
    each_json_line(in, [&](const std::string&, const picojson::value& v, long long line) {
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
    if (q.max_items && !(*q.max_items >= 1 && *q.max_items <= 1000000))
        refuse({printed("workload.max_items is %d: it runs from 1 to 1000000", *q.max_items)});
    if (o.ignore_eos)
        refuse({"options.ignore_eos is set, and workload is questions: an answer that may not end "
                "cannot be graded"});
    picojson::value extra;
    if (parse_json(str(o.extra_body), extra) && count_member(extra, "n") > 1)
        refuse({"options.extra_body asks for several choices (n), and workload is questions: one "
                "answer is graded"});
}
/// Each line of a file may have its own grader.
inline std::string graders_text(const questions& q, const std::vector<dialogue>& asked) {
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
    asked_questions(questions said, const std::vector<dialogue>& asked)
        : q_(std::move(said)), n_(asked.size()), graders_(graders_text(q_, asked)) {}
    /// Answers are the most likely ones, and each question is asked once a repeat.
    scenario completed(scenario s, const api_traits& api, bool in_a_mix) const override {
        const auto all = static_cast<long long>(n_);
        if (!in_a_mix && s.requests > all)
            refuse({printed("requests is %lld and there are %lld questions: each is asked once",
                            static_cast<long long>(s.requests), all)});
        if (!in_a_mix && s.requests == 0 && s.duration.seconds() == 0) s.requests = all;
        if (!api.generates)
            refuse({"workload is questions, and ", api.name, " generates nothing to answer them"});
        if (!s.options.temperature) s.options.temperature = 0.0;
        return s;
    }
    planned_workload planned(const scenario& s, const arrival_data&,
                             std::uint64_t) const override {
        check_questions(q_, s.options);
        return {.source = recorded_dialogues{},
                .text = printed("%zu questions of ", n_) + file_name(str(q_.path)) + " (" +
                        format_name(q_.format) + ", graded by " + graders_ + ")",
                .forces_length = false,
                .sent_as_given = "prompts"};
    }

private:
    const questions q_;
    const std::size_t n_;
    const std::string graders_;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
