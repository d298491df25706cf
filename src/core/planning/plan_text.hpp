// plans as text, and notes on their load
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/dialects/request_body.hpp"
#include "core/judging/rule.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/expected.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/load_search.hpp"

#include <algorithm>  // max
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::string warmup_text(const planned_traffic& p) {
    if (p.warmup_until_stable)
        return printed(" after up to %g s of warm-up, until stable", p.warmup_s);
    return p.warmup_s > 0 ? printed(" after %g s of warm-up", p.warmup_s)
                          : printed(" after %lld to warm up", p.warmup_requests);
}
/// Returns the length of one repeat; of a search, the least length of one probe.
inline std::string extent_text(const planned_traffic& p) {
    if (p.described.is_there || !p.described.extent.empty()) return p.described.extent;
    std::string t = p.requests > 0 ? printed("%lld requests", p.requests) : "";
    if (p.duration_s > 0) t += printed("%s%g s", t.empty() ? "" : ", ", p.duration_s);
    return p.is_read ? t : t + warmup_text(p);
}
inline std::string limits_text(const planned_traffic& p) {
    if (p.described.is_there) return p.described.limits;
    const limits& l = p.limits;
    const auto of = [](time_span t) { return time_text(t.seconds()); };
    return joined({"connect ", of(l.connect), ", first event ", of(l.first_event),
                   ", between events ", of(l.between_events), ", total ", of(l.total), ", drain ",
                   time_text(drain_s(p))});
}
/// Returns the options that all requests of a part have.
inline std::string options_text(const plan_part& p, const std::string& scores) {
    std::string t = p.forces_length ? "ignore_eos" : "";
    const auto add = [&](const std::string& more) { t += (t.empty() ? "" : ", ") + more; };
    if (p.common.max_tokens > 0) add(printed("max_tokens %d", p.common.max_tokens));
    if (!p.common.max_tokens_field.empty()) add("as " + p.common.max_tokens_field);
    if (!p.common.include_usage) add("no stream_options");
    if (p.common.continuous_usage) add("continuous usage");
    if (p.common.server_history) add("the server keeps the history");
    if (!std::isnan(p.common.temperature)) add(printed("temperature %g", p.common.temperature));
    if (!p.common.system_prompt.empty())
        add("system prompt " + printable(p.common.system_prompt, 200));
    if (!p.common.extra_fields.empty()) add(printable(p.common.extra_fields.substr(1), 200));
    for (const extra_object& o : p.common.extra_objects)
        if (!o.fields.empty()) add(o.name + " {" + printable(o.fields.substr(1), 200) + "}");
    if (p.common.cancel_after_s > 0)
        add("leaves after " + time_text(p.common.cancel_after_s));
    if (const int n = p.common.documents; n > 1 || scores == "rerank")
        add(printed(scores == "openai_embeddings" ? "%d inputs" : "%d documents", n));
    if (!p.common.stream && scores.empty()) add("not streamed");
    return t;
}
inline std::string options_text(const planned_traffic& p) {
    if (p.described.is_there) return p.described.options;
    if (p.parts.empty()) return options_text(p, p.scores);
    std::string t;
    for (const plan_part& part : p.parts)
        if (const std::string own = options_text(part, p.scores); !own.empty())
            t += (t.empty() ? "\"" : "; \"") + part.label + "\": " + own;
    return t;
}

inline std::string options_text(const plan& p, run_variant variant) {
    const std::string t = options_text(plan_of_variant(p, variant));
    return t.empty() ? "none" : t;
}

inline std::string plan_text(const plan& p) {
    const planned_traffic& sent = *p.sent;
    if (!sent.described.plan.empty()) return sent.described.plan;
    std::string t = arrival_text(sent.arrivals);
    const std::string seed = printed(", seed %llu", static_cast<unsigned long long>(sent.seed));
    if (p.searches())
        return joined({t, ", ", extent_text(p), ", ", sent.workload_text, seed});
    const long long n = expected_requests(p);
    if (n > 0) t += printed(", %lld requests", n);
    else if (sent.duration_s > 0) t += printed(", %g s", sent.duration_s);
    if (sent.is_read) return joined({t, ", ", sent.workload_text});
    const bool is_kept = sent.common.server_history && !sent.otherwise;  // which names it
    return joined({t, warmup_text(p), ", ", sent.workload_text,
                   is_kept ? ", the server keeps the history" : "", seed});
}

inline bool has_fixed_repeats(const planned_judging& j) {
    return j.first_repeats == j.max_repeats;
}
inline const char* counted_text(const plan& p) {
    const planned_judging& j = *p.judged;
    return p.searches() ? "probe" : to_string(j.counted_in());
}
inline std::string repeats_text(const plan& p) {
    const planned_judging& j = *p.judged;
    if (!p.sent->described.repeats.empty()) return p.sent->described.repeats;
    const bool exactly = has_fixed_repeats(j);
    return (exactly ? "" : printed("%d to ", j.first_repeats)) +
           printed("%d %s%s", j.max_repeats,
                   to_string(j.counted_in()),
                   exactly && j.max_repeats == 1 ? "" : "s") +
           (j.is_at_once ? " at once" : "") +
           (j.max_if_noisy > 0 ? printed(" (%d if still open)", j.max_if_noisy) : "");
}
/// Returns why no repeat or round follows. A budget that is too short for one stays unspent.
inline std::string budget_text(double budget_s, double left_s, double needed_s, int done, int of,
                               const char* unit) {
    const std::string budget = printed("LLMBENCH_TIME_BUDGET of %g s ", budget_s);
    if (done > 0 || !(left_s > 0) || !(needed_s > left_s))
        return budget + printed("is spent after %d of %d %ss", done, of, unit);
    return joined({budget, "has ", time_text(left_s), " left, and a ", unit, " takes ",
                   time_text(needed_s), printed(" or more: none of %d was measured", of)});
}
inline std::string stage_text(const plan& p, int repeat, run_variant variant) {
    const planned_judging& j = *p.judged;
    const std::string t =
        printed("%s %d of ", to_string(j.counted_in()), repeat + 1) +
        (has_fixed_repeats(j) ? "" : printed("%d-", j.first_repeats)) +
        std::to_string(repeat < j.max_repeats ? j.max_repeats : j.max_if_noisy);
    return !j.has_baseline  ? t
           : j.is_at_once ? t + ", both servers"
                          : t + ", " + to_string(variant);
}

/// Returns the span and the rate of a replayed trace, which show a wrong unit of its times.
inline std::string trace_text(const arrival_data& a, const recorded_trace& trace) {
    if (a.kind != arrival_kind::replay || trace.rows.empty()) return {};
    const double lasts_s = own_length(a, trace);
    const auto n = static_cast<double>(trace.rows.size());
    return joined({file_name(str(a.file)), printed(": %.0f starts over ", n), time_text(lasts_s),
                   printed(", %.3g/s", n / lasts_s),
                   trace.block_tokens > 0
                       ? printed(", prefixes in blocks of %d tokens", trace.block_tokens)
                       : "",
                   trace.left_out > 0
                       ? printed("; left out: %lld rows without an answer", trace.left_out)
                       : ""});
}
/// Notes that prompts of a data set repeat. `starts`: of this part in one repeat.
inline std::string prompts_again_text(const plan_part& part, double starts) {
    const auto n = static_cast<double>(part.files->dialogues.size());
    if (n == 0 || part.files->dialogues[0].wanted || starts <= n) return {};
    return printed("%.0f starts and %.0f prompts: each comes %.3g times%s", starts, n, starts / n,
                   part.sent_as_given == "prompts" ? ", and a prefix cache may have it" : "");
}
inline vector<std::string> load_notes(const planned_traffic& p) {
    vector<std::string> notes;
    std::size_t all = 0;
    for_each_part(p, [&](const plan_part& part) { all += std::max<std::size_t>(part.weight, 1); });
    const auto note = [&](const plan_part& part, std::string t) {
        if (t.empty()) return;
        notes.push_back((part.label.empty() ? "" : "\"" + part.label + "\": ") + std::move(t));
    };
    note({}, trace_text(p.arrivals, p.files->trace));
    note({}, p.files->trace.fields.text());
    for_each_part(p, [&](const plan_part& part) {
        note(part, part.files->fields.text());
        const double starts = static_cast<double>(p.requests + p.warmup_requests) *
                              static_cast<double>(part.weight) / static_cast<double>(all);
        if (p.requests > 0 && !p.searches() && part.stride == 1)
            note(part, prompts_again_text(part, starts));
    });
    return notes;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
