// the traffic of each variant of a gate
#pragma once

#include "api/scenario.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/workload.hpp"
#include "core/base/extension.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/workload.hpp"
#include "core/planning/options.hpp"
#include "core/planning/load_faults.hpp"
#include "core/planning/preparation.hpp"

#include <algorithm>  // max
#include <cstdint>  // uint64_t
#include <memory>  // shared_ptr
#include <numeric>  // gcd
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Checks the arrivals. The warm-up of a replay has the average rate of its trace.
inline arrival_data planned_arrivals(arrival_data a, const recorded_trace& trace) {
    check_held(a);
    check_arrivals(a);
    if (a.kind != arrival_kind::replay) return a;
    if (trace.rows.empty()) refuse({str(a.file), " was not read"});
    const double lasts_s = own_length(a, trace);
    if (!(lasts_s <= longest_trace_s))
        refuse({"arrivals is ", arrival_text(a),
                printed(": at this speed it takes %g s, up to %g s is allowed", lasts_s,
                        longest_trace_s)});
    a.rate = static_cast<double>(trace.rows.size()) / lasts_s;
    return a;
}

inline scenario completed(const scenario& s, const workload_files& files, const api_traits& api) {
    const bool knows = s.workload.what().get<extension_value>() && files.of_extension;
    return knows ? files.of_extension->completed(s, api) : s;
}
inline bool plays_sessions(const any_workload& w) {
    const auto* e = w.what().get<extension_value>();
    return e && e->by->plays_sessions;
}

inline plan_part planned_part(const scenario& s, const arrival_data& arrivals,
                              const std::shared_ptr<const workload_files>& files,
                              const api_traits& api, std::uint64_t default_seed) {
    check_options(s.options);
    check_options_of(api, s.options);
    plan_part part = workload_of(s, arrivals, *files, api, default_seed);
    part.stride = part.source->facts().most_turns;
    part.files = files;
    part.forces_length = part.forces_length && api.generates;
    part.common = common_request(s.options, api);
    if (!api.generates && part.stride != 1)
        refuse({"workload is of conversations, and ", api.name,
                " generates nothing that one could go on with"});
    if (part.common.server_history && part.stride == 1)
        refuse({"options.server_history is true, and workload is of single requests: there is no "
                "history that the server could keep"});
    return part;
}

/// Puts `what` in front of the sentence that `f` throws.
template <class F>
auto refused_as(const std::string& what, F&& f) {
    try {
        return f();
    } catch (const std::invalid_argument& e) {
        throw std::invalid_argument(what + ": " + e.what());
    }
}

inline std::shared_ptr<const workload_files> files_of_part(const workload_files& files,
                                                           std::size_t i) {
    return new_shared<const workload_files>(
        i < files.of_parts.size() ? files.of_parts[i] : workload_files());
}
inline scenario scenario_of(const scenario& s, const part& of) {
    scenario own = s;
    own.workload = of.workload;
    own.baseline = {};
    if (of.options) own.options = *of.options;
    return own;
}
/// Refuses an unsound mix before its files are read.
inline void check_mix(const mix_of_parts& m) {
    const std::size_t n = m.parts.size();
    if (!(n >= 1 && n <= max_parts))
        refuse({printed("workload is a mix of %zu parts: 1 to %zu are allowed", n, max_parts)});
    for (std::size_t i = 0; i < n; ++i) {
        const std::string name = str(m.parts[i].name);
        const std::string given = "part \"" + printable(name) + "\" of the mix: ";
        if (!is_plain_name(name)) refuse({given, plain_name_text});
        for (std::size_t k = 0; k < i; ++k)
            if (m.parts[k].name == m.parts[i].name)
                refuse({given, "another part has this name, and a label is of one"});
        check_numbers({{"weight", static_cast<double>(m.parts[i].weight), 1, 1000}}, given);
        if (m.parts[i].workload.what().get<mix_of_parts>())
            refuse({given, "its workload is a mix: name all parts in one"});
        if (plays_sessions(m.parts[i].workload))
            refuse({given, "its workload is sessions, whose steps have labels of their own: give "
                    "them a gate of their own"});
    }
}
/// A recorded trace gives the lengths of its requests in order, so the parts of a mix cannot.
inline void check_no_recorded_lengths(const part& of, const arrival_data& a) {
    const auto* made = of.workload.what().get<synthetic>();
    const auto is_recorded = [](const length_distribution& d) {
        return d.kind == length_distribution::shape::trace;
    };
    const bool by_default = of.workload.what().empty() && a.kind == arrival_kind::replay;
    if (by_default || (made && (is_recorded(made->prompt_tokens) ||
                                is_recorded(made->output_tokens))))
        refuse({"it has the lengths of a recorded trace, which are of its requests as a whole: "
                "give it a workload with lengths of its own"});
}
inline std::string mix_text(const planned_workloads& w) {
    std::size_t all = 0;
    for (const plan_part& part : w.parts) all += part.weight;
    std::string t = "mix of ";
    for (const plan_part& part : w.parts)
        t += joined({&part == w.parts.data() ? "\"" : "; \"", part.label, "\" (",
                     printed("%zu in %zu", part.weight, all),
                     part.common.model.empty() ? "" : ", model " + printable(part.common.model),
                     "): ", part.workload_text});
    return t;
}
inline planned_workloads planned_mix(const mix_of_parts& m, const scenario& s,
                                     const arrival_data& arrivals, const workload_files& files,
                                     const api_traits& api, std::uint64_t default_seed) {
    check_mix(m);
    planned_workloads all;
    std::size_t common = 0;
    for (std::size_t i = 0; i < m.parts.size(); ++i) {
        const part& of = m.parts[i];
        all.parts.push_back(refused_as("part \"" + str(of.name) + "\" of the mix", [&] {
            const auto own = files_of_part(files, i);
            check_no_recorded_lengths(of, arrivals);
            scenario alone = scenario_of(s, of);
            alone.requests = 0;  // they are of all parts; each starts over at its end
            plan_part part = planned_part(completed(alone, *own, api), arrivals, own, api,
                                          default_seed);
            if (part.common.stream != (i == 0 ? part : all.parts[0]).common.stream)
                refuse({"it is streamed and the first part is not, or the other way round; give "
                        "all parts the same options.stream"});
            part.label = str(of.name);
            part.weight = static_cast<std::size_t>(static_cast<long long>(of.weight));
            part.common.model = str(of.model);
            return part;
        }));
        const plan_part& part = all.parts.back();
        common = std::gcd(common, part.weight);
        all.labels.push_back(part.label);
        all.stride = std::max(all.stride, part.stride);
        all.forces_length = all.forces_length || part.forces_length;
        if (all.sent_as_given.empty()) all.sent_as_given = part.sent_as_given;
    }
    for (plan_part& part : all.parts) part.weight /= common;
    if (all_of(all.parts, [](const plan_part& part) { return part.common.cancel_after_s > 0; }))
        check_somebody_stays(scenario_of(s, m.parts[0]).options);
    all.common = all.parts[0].common;
    all.workload_text = mix_text(all);
    return all;
}
inline planned_workloads planned_requests_of(const scenario& s, const arrival_data& arrivals,
                                             const std::shared_ptr<const workload_files>& files,
                                             const api_traits& api, std::uint64_t default_seed) {
    if (const auto* m = s.workload.what().get<mix_of_parts>())
        return planned_mix(*m, s, arrivals, *files, api, default_seed);
    plan_part one = planned_part(s, arrivals, files, api, default_seed);
    check_somebody_stays(s.options);
    const auto* labels = one.source->facts().labels;
    return {std::move(one), {}, labels ? *labels : vector<std::string>(), {}};
}
/// The requests of a variant, with what is done before a repeat and beside it.
inline planned_workloads planned_workloads_of(const scenario& s, const arrival_data& arrivals,
                                              const std::shared_ptr<const workload_files>& files,
                                              const api_traits& api,
                                              std::uint64_t default_seed) {
    const vector<planned_task> tasks = planned_tasks(s);
    planned_workloads all = planned_requests_of(s, arrivals, files, api, default_seed);
    all.prepare = planned_preparation(s);
    all.beside = tasks;
    all.workload_text += preparation_text(all.prepare) + tasks_text(tasks);
    return all;
}

inline void check_one_plays(const otherwise& asked, const scenario& s) {
    if (!asked.workload.what().empty() &&
        (plays_sessions(asked.workload) || plays_sessions(s.workload)))
        refuse({"baseline is otherwise{...}: its workload is another, and of sessions both arms "
                "play the same: leave the baseline's workload out"});
}
/// Returns the baseline's traffic, if it is the target under other options.
inline maybe<planned_workloads> planned_otherwise(
    const scenario& s, const arrival_data& arrivals,
    const std::shared_ptr<const workload_files>& files, const api_traits& api,
    std::uint64_t default_seed) {
    if (!s.baseline.is_asked_otherwise()) return {};
    const otherwise& asked = s.baseline.asked();
    scenario other = s;
    if (asked.options) other.options = *asked.options;
    const bool is_other = !asked.workload.what().empty();
    check_one_plays(asked, s);
    if (is_other) other.workload = asked.workload;
    return refused_as("baseline is otherwise{...}", [&] {
        if (other.options.stream != s.options.stream)
            refuse({"one arm is streamed and the other is not, and what a whole answer takes is "
                    "not what its first token does; give both the same options.stream"});
        const auto own = is_other && !files->of_baseline.empty()
                             ? new_shared<const workload_files>(files->of_baseline[0])
                             : files;
        other = completed(other, *own, api);
        if (asked.alone && s.beside.empty())
            refuse({"it is alone, and the scenario does nothing beside its load"});
        if (asked.alone) other.beside = {};
        planned_workloads w = planned_workloads_of(other, arrivals, own, api, default_seed);
        w.has_other_prompts = is_other;
        if (!asked.model.empty())
            for_each_part(w, [&](plan_part& part) { part.common.model = str(asked.model); });
        return w;
    });
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
