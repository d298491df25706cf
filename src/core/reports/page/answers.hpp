// the report page: answers
#pragma once

#include "core/base/text.hpp"
#include "core/figures/shown_answers.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/text.hpp"
#include "core/reports/page/sections.hpp"
#include "core/reports/page/verdicts.hpp"

#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string answer_html(const shown_answer& a) {
    const bool differs = !std::isnan(a.same_characters);
    const auto block = [](const char* name, const std::string& text) {
        return text.empty() ? std::string()
                            : std::string("<dt>") + name + "</dt><dd><pre>" + escaped_lines(text) +
                                  "</pre></dd>\n";
    };
    const std::string how = a.is + printed(" in %lld of %lld", a.times, a.asked);
    const std::string aside =
        differs ? printed("after %.0f equal characters", a.same_characters)
                : "wanted " + printable(a.wanted, 60) +
                      (a.read.empty() ? "" : ", read " + printable(a.read, 60));
    return folded(xml_escaped(how + ": " + printable(a.question, 100)), aside, false,
                  "<dl>\n" + block("question", a.question) + block("wanted", a.wanted) +
                      block("read", a.read) + block("answer", a.answer) +
                      block("baseline's answer", a.baseline_answer) + row_of("request", a.id) +
                      "</dl>\n");
}
/// Returns the answers of objectives on answers that did not pass.
inline std::string answers_html(const gate_report& g) {
    if (g.answers.empty()) return {};
    std::string h = "<h3>Answers</h3>\n<p class=\"note\">Each question once, in the order in which "
                    "its answer came, with the repeats in which it was so; answers.jsonl has the "
                    "same.</p>\n";
    constexpr std::size_t max_at_once = 10;
    std::string more;
    for (std::size_t i = 0; i < g.answers.size(); ++i)
        (i < max_at_once ? h : more) += answer_html(g.answers[i]);
    if (more.empty()) return h;
    return h + folded(printed("%zu more", g.answers.size() - max_at_once), "", false, more);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
