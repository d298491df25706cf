// questions whose answers are known
#pragma once

#include "api/metrics.hpp"
#include "api/text.hpp"
#include "api/workload.hpp"

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
