// from a scenario with questions to their part of the plan
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/files/dialogues.hpp"
#include "core/traffic/sources.hpp"
#include "core/traffic/workload.hpp"
#include "extensions/answers/api.hpp"
#include "extensions/answers/core/graders.hpp"
#include "extensions/answers/core/question_files.hpp"

#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <map>
#include <string>
#include <utility>  // move
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

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
