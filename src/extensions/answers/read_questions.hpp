// questions, read from their file
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/workload.hpp"
#include "effects/system/workload_files.hpp"
#include "extensions/answers/api.hpp"
#include "extensions/answers/core/compared.hpp"
#include "extensions/answers/core/questions.hpp"
#include "extensions/answers/core/shown.hpp"

#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <functional>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

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
