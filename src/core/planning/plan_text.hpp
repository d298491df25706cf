// a plan in words
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/text.hpp"
#include "core/metric/value_text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/judging/rule.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/expected.hpp"
#include "core/traffic/plan.hpp"
#include "core/capacity/searched.hpp"

#include <cmath>  // isnan
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline const char* traffic_name(traffic_mode m) { return m == fresh ? "fresh" : "replayed"; }
inline std::string warmup_text(const planned_traffic& p) {
    if (p.warmup_until_stable)
        return printed(" after up to %g s of warm-up, until stable", p.warmup_s);
    return p.warmup_s > 0 ? printed(" after %g s of warm-up", p.warmup_s)
                          : printed(" after %lld to warm up", p.warmup_requests);
}
/// How long one repeat is; of a search, one probe at least.
inline std::string extent_text(const planned_traffic& p) {
    if (p.described.is_there) return p.described.extent;
    if (p.searches())
        return printed("probes of %g s and %lld requests at least, longer where answers are slow",
                       p.duration_s > 0 ? p.duration_s : seconds_of_a_probe, p.requests);
    std::string t = p.requests > 0 ? printed("%lld requests", p.requests) : "";
    if (p.duration_s > 0) t += printed("%s%g s", t.empty() ? "" : ", ", p.duration_s);
    return p.is_read ? t : t + warmup_text(p);
}
inline std::string limits_text(const planned_traffic& p) {
    if (p.described.is_there) return p.described.limits;
    const limits& l = p.limits;
    const auto of = [](time_span t) { return time_text(t.seconds()); };
    return "connect " + of(l.connect) + ", first event " + of(l.first_event) +
           ", between events " + of(l.between_events) + ", total " + of(l.total) + ", drain " +
           time_text(drain_s(p));
}
/// What every request of a part says beside its prompt.
inline std::string options_text(const plan_part& p, const std::string& scores) {
    std::string t = p.forces_length ? "ignore_eos" : "";
    const auto add = [&](const std::string& more) { t += (t.empty() ? "" : ", ") + more; };
    if (p.common.max_tokens > 0) add(printed("max_tokens %d", p.common.max_tokens));
    if (!std::isnan(p.common.temperature)) add(printed("temperature %g", p.common.temperature));
    if (!p.common.system_prompt.empty())
        add("system prompt " + printable(p.common.system_prompt, 200));
    if (!p.common.extra_fields.empty()) add(printable(p.common.extra_fields.substr(1), 200));
    for (const extra_object& o : p.common.extra_objects)
        if (!o.fields.empty()) add(o.name + " {" + printable(o.fields.substr(1), 200) + "}");
    if (p.common.leaves_after_s > 0)
        add("leaves after " + time_text(p.common.leaves_after_s));
    if (const int n = p.common.documents; n > 1 || scores == "rerank")
        add(printed(scores == "openai_embeddings" ? "%d inputs" : "%d documents", n));
    if (!p.common.stream && scores.empty()) add("not streamed");
    return t;
}
/// Of a mix, part by part.
inline std::string options_text(const planned_traffic& p) {
    if (p.described.is_there) return p.described.options;
    if (p.parts.empty()) return options_text(p, p.scores);
    std::string t;
    for (const plan_part& part : p.parts)
        if (const std::string own = options_text(part, p.scores); !own.empty())
            t += (t.empty() ? "\"" : "; \"") + part.label + "\": " + own;
    return t;
}

/// The same of the baseline's, where they are others.
inline std::string options_text(const plan& p, run_arm arm) {
    const std::string t = options_text(plan_of_arm(p, arm));
    return t.empty() ? "none" : t;
}

/// All that one repeat sends.
inline std::string plan_text(const plan& p) {
    const planned_traffic& sent = *p.sent;
    std::string t = arrival_text(sent.arrivals);
    if (p.searches())
        return t + ", " + extent_text(p) + ", " + sent.workload_text +
               printed(", seed %llu", static_cast<unsigned long long>(sent.seed));
    const long long n = expected_requests(p);
    if (n > 0) t += printed(", %lld requests", n);
    else if (sent.duration_s > 0) t += printed(", %g s", sent.duration_s);
    if (sent.is_read) return t + ", " + sent.workload_text;
    return t + warmup_text(p) + ", " + sent.workload_text +
           printed(", seed %llu", static_cast<unsigned long long>(sent.seed));
}

/// Whether the number of repeats is known before they are measured.
inline bool has_fixed_repeats(const planned_judging& j) {
    return j.first_repeats == j.most_repeats;
}
/// What one calls a gate's repeats.
inline const char* counted_text(const plan& p) {
    const planned_judging& j = *p.judged;
    return p.searches() ? "probe" : to_string(counting_unit(j.rule, j.has_baseline));
}
/// Which probe this is, of how many.
inline std::string probe_name(const plan& p, std::size_t before) {
    return printed("probe %zu of at most %d", before + 1, most_probes(*p.judged));
}
inline std::string repeats_text(const plan& p) {
    const planned_judging& j = *p.judged;
    if (p.searches() && j.has_baseline)
        return printed("at most %d probes of both servers", most_probes(j));
    if (j.search.to_the_interval) return printed("at most %d probes", j.most_repeats);
    if (p.searches()) {
        std::string loads;
        for (const double load : j.search.asked)
            loads += (loads.empty() ? "" : " and at ") + value_text(load_metric(p), load);
        return printed("%d to %d probes at ", j.first_repeats, j.most_repeats) + loads;
    }
    const bool exactly = has_fixed_repeats(j);
    return (exactly ? "" : printed("%d to ", j.first_repeats)) +
           printed("%d %s%s%s", j.most_repeats,
                   to_string(counting_unit(j.rule, j.has_baseline)),
                   exactly && j.most_repeats == 1 ? "" : "s",
                   j.rule.traffic == fresh ? " of fresh traffic" : "") +
           (j.most_if_noisy > 0 ? printed(" (%d on a noisy machine)", j.most_if_noisy) : "");
}
/// Which repeat this is, of how many.
inline std::string stage_text(const plan& p, int repeat, run_arm arm) {
    const planned_judging& j = *p.judged;
    const std::string t =
        printed("%s %d of ", to_string(counting_unit(j.rule, j.has_baseline)), repeat + 1) +
        (has_fixed_repeats(j) ? "" : printed("%d-", j.first_repeats)) +
        std::to_string(repeat < j.most_repeats ? j.most_repeats : j.most_if_noisy);
    return j.has_baseline ? t + ", " + to_string(arm) : t;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
