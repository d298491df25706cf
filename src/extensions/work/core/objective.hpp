// objectives on work and their text, which is all that an slo has of one
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "extensions/work/api.hpp"

#include <cmath>  // isfinite
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Whether a count is of the model's prefix cache, so that it needs token ids.
inline bool is_of_prompts(const std::string& count) {
    return count == "prefilled_tokens" || count == "cached_tokens";
}

/// What an objective on work says.
struct work_terms {
    std::string what{};  // one of the names, or counted("...")
    work_side side = work_side::equal;
    work_limit::source from = work_limit::source::number;
    double number = 0;
    double factor = 1;  // of what is expected, or of the baseline
};

inline const char* sign_of(work_side s) { return name_at({"==", "<=", ">="}, s); }
/// "2200", "expected", "0.98 * expected", "1.05 * baseline".
inline std::string limit_text(const work_terms& t) {
    if (t.from == work_limit::source::number) return printed("%.0f", t.number);
    const char* const of = t.from == work_limit::source::model ? "expected" : "baseline";
    return (t.factor == 1 ? "" : printed("%g * ", t.factor)) + of;
}
inline slo slo_of(const work_terms& t, const source_line& at = {}) {
    slo s;
    s.statistic.metric = metric_id::work;
    s.statistic.name = t.what;
    s.statistic.gauge = t.what + " " + sign_of(t.side) + " " + limit_text(t);
    s.at_most = t.side != work_side::at_least;
    s.bound = t.from == work_limit::source::number ? t.number : 0;
    s.factor = t.from == work_limit::source::baseline ? t.factor : 0;
    s.at = at;
    return s;
}
/// The terms of such an slo. Throws std::invalid_argument if its text, as of a file, is of none.
inline work_terms terms_of(const slo& s) {
    const std::string text = str(s.statistic.gauge), name = str(s.statistic.name);
    const auto no_terms = [&] {
        refuse({"\"", printable(text, 200), "\" is no objective on work"});
    };
    work_terms t{.what = name};
    std::string_view rest = text;
    if (!rest.starts_with(name + " ") || rest.size() < name.size() + 4) no_terms();
    rest.remove_prefix(name.size() + 1);
    const std::string_view sign = rest.substr(0, 2);
    t.side = sign == "<=" ? work_side::at_most : sign == ">=" ? work_side::at_least
                                                              : work_side::equal;
    rest.remove_prefix(3);
    const auto number = leading_number<double>(rest);
    if (number && rest.starts_with(" * ")) rest.remove_prefix(3);
    if (rest == "expected") t.from = work_limit::source::model;
    else if (rest == "baseline") t.from = work_limit::source::baseline;
    else if (!number || !rest.empty() || sign != sign_of(t.side)) no_terms();
    (t.from == work_limit::source::number ? t.number : t.factor) = number.value_or(1);
    return t;
}
}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
