// answers that reports show
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/dialects/stream_event.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/page/sections.hpp"

#include <algorithm>  // any_of
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::string what_is_wrong(const record& r) {
    if (*r.right) return "right";
    if (stream_event::is_at_length(r.finish_reason.c_str())) return "cut off";
    return r.graded.empty() ? "unreadable" : "wrong";
}

/// Each question once: those that keep an objective from passing, or all with kept texts.
inline vector<shown_answer> shown_answers_of(const load_plan& p, const repeat_list& variant,
                                             const vector<slo_verdict>& verdicts,
                                             answers_shown show) {
    const auto is_open = [&](metric_id m) {
        return std::any_of(verdicts.begin(), verdicts.end(), [m](const slo_verdict& v) {
            return v.objective.statistic.metric == m && (v.outcome == verdict::fail ||
                                               v.outcome == verdict::inconclusive);
        });
    };
    const bool all = show == answers_shown::all, none = show == answers_shown::none;
    vector<shown_answer> rows;
    for (const metric_id m : {metric_id::accuracy, metric_id::same_answers}) {
        if (p.sent->is_read || none || !(all || is_open(m))) continue;
        std::map<long long, std::size_t> row_of;  // by question
        for (std::size_t i = 0; i < variant.size(); ++i) {
            std::map<std::size_t, const record*> records;
            for (const record& r : variant[i].records)
                if (is_measured(r) && is_good_answer(m, r))
                    if (const auto at = place_of(r.id.c_str())) records[*at] = &r;
            for (const kept_text& t : variant[i].shown) {
                const auto at = records.find(t.index);
                const bool differs = !std::isnan(t.same_characters);
                if (at == records.end() || differs != (m == metric_id::same_answers)) continue;
                const record& r = *at->second;
                if (!all && rows.size() >= max_answers_shown) break;
                if (!row_of.emplace(question_of(r), rows.size()).second) continue;
                const wanted_answer* wanted = wanted_at(*p.sent, t.index);
                const auto prompt =
                    request_of(p, run_variant::candidate, variant[i].index, t.index);
                rows.push_back({str(r.id), differs ? "different" : what_is_wrong(r),
                                excerpt(prompt.prompt, max_shown_bytes),
                                wanted ? excerpt(wanted->key(), max_shown_bytes) : "",
                                differs ? "" : str(r.graded), t.said, t.expected,
                                t.same_characters, 0, 0});
            }
        }
        for (std::size_t i = 0; i < variant.size(); ++i)
            for (const record& r : variant[i].records) {
                if (!is_measured(r) || !is_good_answer(m, r)) continue;
                const auto at = row_of.find(question_of(r));
                if (at == row_of.end()) continue;
                ++rows[at->second].asked;
                rows[at->second].times += *is_good_answer(m, r) == (rows[at->second].is == "right");
            }
    }
    return rows;
}

inline std::string answer_html(const shown_answer& a) {
    const auto lines = [](const char* name, const std::string& text) {
        return filled("[{text?}<dt>{name}</dt><dd><pre>{lines}</pre></dd>\n]",
                      {{"text", text}, {"name", name}, {"lines", escaped_lines(text)}});
    };
    return folded_list(
        filled("{is} in {times} of {asked}: {question:x}",
               {{"is", a.is}, {"times", a.times}, {"asked", a.asked},
                {"question", printable(a.question, 100)}}),
        !std::isnan(a.same_characters)
            ? filled("after {same_characters:.0f} equal characters",
                     {{"same_characters", a.same_characters}})
            : filled("wanted {wanted}[, read {read}]",
                     {{"wanted", printable(a.wanted, 60)}, {"read", printable(a.read, 60)}}),
        fold::closed,
        joined({lines("question", a.question), lines("wanted", a.wanted), lines("read", a.read),
                lines("answer", a.answer), lines("baseline's answer", a.baseline_answer),
                list_of({{"request", a.id}})}));
}
/// Returns the answers of objectives on answers that did not pass.
inline std::string answers_html(const vector<shown_answer>& answers) {
    std::string h = "<h3>Answers</h3>\n<p class=\"note\">Each question once, in the order in which "
                    "its answer came, with the repeats in which it was so; answers.jsonl has the "
                    "same.</p>\n";
    constexpr std::size_t max_at_once = 10;
    std::string more;
    for (std::size_t i = 0; i < answers.size(); ++i)
        (i < max_at_once ? h : more) += answer_html(answers[i]);
    if (more.empty()) return h;
    const std::size_t left = answers.size() - max_at_once;
    return h + folded(filled("{more} more", {{"more", left}}), "", fold::closed, more);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
