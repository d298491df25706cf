// answers in reports: answers.jsonl, and their section of the page
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/figures/shown_answers.hpp"
#include "core/reports/gate_report.hpp"

#include <cmath>  // isnan
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// answers.jsonl: a line for each answer that a gate shows.
inline std::string answers_jsonl(const std::vector<gate_report>& gates) {
    std::string lines;
    for (const gate_report& g : gates)
        for (const shown_answer& a : g.answers) {
            json_writer j(true);
            j.open('{').field("gate", g.what.name).field("id", a.id).field("is", a.is);
            j.field("times", a.times).field("asked", a.asked);
            j.field("question", a.question).field("wanted", a.wanted).field("read", a.read);
            j.field("answer", a.answer);
            if (!std::isnan(a.same_characters))
                j.field("baseline_answer", a.baseline_answer)
                    .field("same_characters", a.same_characters);
            lines += j.close().text() + "\n";
        }
    return lines;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
