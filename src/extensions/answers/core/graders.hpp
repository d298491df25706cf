// whether an answer is right
#pragma once

#include "api/text.hpp"
#include "core/answers/grading.hpp"
#include "core/base/text.hpp"
#include "extensions/answers/api.hpp"
#include "extensions/answers/core/choices.hpp"
#include "extensions/answers/core/numbers.hpp"
#include "extensions/answers/core/undressed.hpp"

#include <memory>  // shared_ptr
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

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
