// what each arm of a gate sends
#pragma once

#include "api/scenario.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/workload.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/schedule.hpp"
#include "core/traffic/workload.hpp"
#include "core/planning/options.hpp"
#include "core/planning/side_tasks.hpp"

#include <algorithm>  // all_of, max
#include <cstdint>  // uint64_t
#include <memory>  // make_shared
#include <numeric>  // gcd
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What can be refused of the way requests are sent; the rate of a replay is that of its trace on
/// the average, which the warm-up has.
inline arrival_data planned_arrivals(arrival_data a, const recorded_trace& trace) {
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

/// A scenario whose answers are graded: they are as likely as they get.
inline scenario with_questions(scenario s, const api_traits& api) {
    if (!s.workload.what().get<questions>()) return s;
    if (!api.generates)
        refuse({"workload is questions, and ", api.name, " generates nothing to answer them"});
    if (!s.options.temperature) s.options.temperature = 0.0;
    return s;
}
/// One that only asks questions, with what it leaves out: each of them once a repeat, of fresh
/// traffic in one of its stages.
inline scenario with_questions(scenario s, std::size_t n, const api_traits& api) {
    if (!s.workload.what().get<questions>() || n == 0) return s;
    const auto all = static_cast<long long>(n);
    const bool is_fresh = s.traffic == fresh;
    const long long most = is_fresh ? all / 4 - s.warmup.requests() : all;
    if (most < 1)
        refuse({printed("traffic is fresh: its stages ask other questions, a quarter, a quarter "
                        "and a half of the file, which has %lld: these are too few", all)});
    if (s.requests > most)
        refuse({printed("requests is %lld and there are %lld questions%s: each is asked once",
                        static_cast<long long>(s.requests), most,
                        is_fresh ? " for the first of three stages" : "")});
    if (s.requests == 0 && s.duration.seconds() == 0) s.requests = most;
    return with_questions(std::move(s), api);
}

/// What a workload and its options become.
inline plan_part planned_part(const scenario& s, const arrival_data& arrivals,
                              const std::shared_ptr<const workload_files>& files,
                              const api_traits& api, std::uint64_t default_seed) {
    check_options(s.options);
    check_options_of(api, s.options);
    const planned_workload w = workload_of(s, arrivals, *files, api.generates, default_seed);
    const plan_part part{.workload_text = w.text,
                         .sent_as_given = w.sent_as_given,
                         .source = w.source,
                         .stride = most_turns_of(w.source),
                         .think = w.think,
                         .files = files,
                         .forces_length = w.forces_length && api.generates,
                         .common = common_request(s.options, api)};
    if (!api.generates && part.stride != 1)
        refuse({"workload is of conversations, and ", api.name,
                " generates nothing that one could go on with"});
    return part;
}

/// A sentence that says of what it speaks, whatever is refused of that.
template <class F>
auto told_of(const std::string& what, F&& f) {
    try {
        return f();
    } catch (const std::invalid_argument& e) {
        throw std::invalid_argument(what + ": " + e.what());
    }
}

inline std::shared_ptr<const workload_files> files_of_part(const workload_files& files,
                                                           std::size_t i) {
    return std::make_shared<const workload_files>(
        i < files.of_parts.size() ? files.of_parts[i] : workload_files());
}
/// The scenario of one part alone.
inline scenario scenario_of(const scenario& s, const part& of) {
    scenario own = s;
    own.workload = of.workload;
    own.baseline = {};
    if (of.options) own.options = *of.options;
    if (of.arrivals.is_given()) own.arrivals = of.arrivals;
    return own;
}
inline bool has_own_arrivals(const mix_of_parts& m) {
    return m.parts.size() > 0 && m.parts[0].arrivals.is_given();
}
/// Refuses what makes no mix, before anything of it is read.
inline void check_mix(const mix_of_parts& m) {
    const std::size_t n = m.parts.size();
    if (!(n >= 1 && n <= most_parts))
        refuse({printed("workload is a mix of %zu parts: 1 to %zu are allowed", n, most_parts)});
    for (std::size_t i = 0; i < n; ++i) {
        const std::string name = str(m.parts[i].name);
        const std::string given = "part \"" + printable(name) + "\" of the mix: ";
        if (!is_plain_name(name)) refuse({given, plain_name_text});
        for (std::size_t k = 0; k < i; ++k)
            if (m.parts[k].name == m.parts[i].name)
                refuse({given, "another part has this name, and a label is of one"});
        const long long weight = m.parts[i].weight;
        if (!(weight >= 1 && weight <= 1000))
            refuse({given, printed("weight is %lld: it runs from 1 to 1000", weight)});
        if (m.parts[i].arrivals.is_given() != has_own_arrivals(m))
            refuse({given, "it has arrivals of its own and the first part has none, or the other "
                           "way round: give them to all parts, or to the scenario"});
        if (has_own_arrivals(m) && weight != 1)
            refuse({given, printed("weight is %lld, and it has arrivals of its own: weights divide "
                                   "arrivals that parts share", weight)});
        if (m.parts[i].workload.what().get<mix_of_parts>())
            refuse({given, "its workload is a mix: name all parts in one"});
        if (m.parts[i].workload.what().get<sessions>())
            refuse({given, "its workload is sessions, whose steps have labels of their own: give "
                    "them a gate of their own"});
    }
}
/// A recorded trace says how long its requests were, one after the other, whatever a mix does.
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
        t += (&part == w.parts.data() ? "\"" : "; \"") + part.label + "\" (" +
             (w.own_arrivals ? arrival_text(part.arrivals)
                             : printed("%zu in %zu", part.weight, all)) +
             (part.common.model.empty() ? "" : ", model " + printable(part.common.model)) +
             "): " + part.workload_text;
    return t;
}
/// A part's own arrivals, which go beside those of others.
inline arrival_data planned_arrivals_of(const part& of, const recorded_trace& trace) {
    arrival_data a = planned_arrivals(of.arrivals.data(), trace);
    const std::string given = "arrivals is " + arrival_text(a) + ": ";
    if (a.is_searched)
        refuse({given, "a load is searched as a whole, give it to the scenario"});
    if (a.kind == arrival_kind::all_at_once)
        refuse({given, "a duration ends all parts together, and a batch is a number of requests"});
    if (a.max_in_flight > 0)
        refuse({given, "max_in_flight is of a load as a whole, give it to the scenario"});
    return a;
}
/// Those of all parts together: the rate of the open ones as it starts, and all users.
inline arrival_data planned_arrivals(const scenario& s, const workload_files& files) {
    const auto* m = s.workload.what().get<mix_of_parts>();
    if (!m || !has_own_arrivals(*m)) return planned_arrivals(s.arrivals.data(), files.trace);
    check_mix(*m);
    if (s.arrivals.is_given())
        refuse({"arrivals is ", arrival_text(s.arrivals.data()), ", and the parts of the mix have "
                "their own: leave one of both out"});
    if (!(s.duration.seconds() > 0) || s.requests != 0)
        refuse({"the parts of the mix have arrivals of their own, which a duration ends together: "
                "set .duration, and no .requests"});
    if (s.warmup.until_stable())
        refuse({"warmup is until_stable, and the parts of the mix have arrivals of their own: give "
                "it a time"});
    arrival_data all;
    all.users = 0;
    std::string each = "of each part";
    for (std::size_t i = 0; i < m->parts.size(); ++i) {
        const part& of = m->parts[i];
        const arrival_data a = told_of("part \"" + str(of.name) + "\" of the mix", [&] {
            return planned_arrivals_of(of, files_of_part(files, i)->trace);
        });
        each += (i == 0 ? ": " : ", ") + arrival_text(a);
        all.users_ramp_s = std::max(all.users_ramp_s, a.users_ramp_s);
        if (a.kind == arrival_kind::closed_loop) {
            all.users += a.users;
        } else {
            all.kind = arrival_kind::poisson;
            all.rate += starting_rate(a);
        }
    }
    if (all.users > 100000)
        refuse({printed("the parts of the mix have %lld users together: 100000 are allowed",
                        all.users)});
    all.described = each;
    return all;
}
inline planned_workloads planned_mix(const mix_of_parts& m, const scenario& s,
                                     const arrival_data& arrivals, const workload_files& files,
                                     const api_traits& api, std::uint64_t default_seed) {
    check_mix(m);
    planned_workloads all;
    all.own_arrivals = has_own_arrivals(m);
    std::size_t common = 0;
    for (std::size_t i = 0; i < m.parts.size(); ++i) {
        const part& of = m.parts[i];
        all.parts.push_back(told_of("part \"" + str(of.name) + "\" of the mix", [&] {
            const auto own = files_of_part(files, i);
            const arrival_data a =
                all.own_arrivals ? planned_arrivals_of(of, own->trace) : arrivals;
            check_no_recorded_lengths(of, a);
            if (s.traffic == fresh && of.workload.what().get<questions>())
                refuse({"traffic is fresh, which asks each question once, and in a mix they go "
                        "round; let traffic be replayed"});
            const scenario alone = with_questions(scenario_of(s, of), api);
            plan_part part = planned_part(alone, a, own, api, default_seed);
            if (all.own_arrivals) part.arrivals = a;
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
    if (std::all_of(all.parts.begin(), all.parts.end(),
                    [](const plan_part& part) { return part.common.leaves_after_s > 0; }))
        check_somebody_stays(scenario_of(s, m.parts[0]).options);
    all.common = all.parts[0].common;
    all.workload_text = mix_text(all);
    return all;
}
/// All that one arm sends.
inline planned_workloads planned_workloads_of(const scenario& s, const arrival_data& arrivals,
                                              const std::shared_ptr<const workload_files>& files,
                                              const api_traits& api, std::uint64_t default_seed) {
    if (const auto* m = s.workload.what().get<mix_of_parts>())
        return planned_mix(*m, s, arrivals, *files, api, default_seed);
    planned_workloads one = {planned_part(s, arrivals, files, api, default_seed), {}, {}, {}};
    if (plays_sessions(one) && files->sessions.labels.size() > 1)
        one.labels = files->sessions.labels;
    check_somebody_stays(s.options);
    return one;
}

/// When parts with arrivals of their own send.
inline std::string arrivals_of_parts(const planned_workloads& w) {
    std::string t;
    for (const plan_part& part : w.parts)
        if (w.own_arrivals) t += arrival_text(part.arrivals) + "\n";
    return t;
}

/// What the baseline's load is instead, where it is the target asked otherwise.
inline maybe<planned_workloads> planned_otherwise(
    const scenario& s, const planned_workloads& sent, const arrival_data& arrivals,
    const std::shared_ptr<const workload_files>& files, const api_traits& api,
    std::uint64_t default_seed) {
    if (!s.baseline.is_asked_otherwise()) return {};
    const otherwise& asked = s.baseline.asked();
    scenario other = s;
    if (asked.options) other.options = *asked.options;
    const bool is_other = !asked.workload.what().empty();
    if (is_other && (asked.workload.what().get<sessions>() || s.workload.what().get<sessions>()))
        refuse({"baseline is otherwise{...}: its workload is another, and of sessions both arms "
                "play the same: leave the baseline's workload out"});
    if (is_other) other.workload = asked.workload;
    return told_of("baseline is otherwise{...}", [&] {
        if (other.options.stream != s.options.stream)
            refuse({"one arm is streamed and the other is not, and what a whole answer takes is "
                    "not what its first token does; give both the same options.stream"});
        const auto own = is_other && !files->of_baseline.empty()
                             ? std::make_shared<const workload_files>(files->of_baseline[0])
                             : files;
        other = with_questions(other, own->dialogues.size(), api);
        planned_workloads w = planned_workloads_of(other, arrivals, own, api, default_seed);
        if (arrivals_of_parts(w) != arrivals_of_parts(sent))
            refuse({"parts have arrivals of their own, and both arms are sent at the same times: "
                    "give their parts the same arrivals, in the same order"});
        w.has_other_prompts = is_other;
        if (!asked.model.empty())
            for_each_part(w, [&](plan_part& part) { part.common.model = str(asked.model); });
        if (asked.alone && s.beside.empty())
            refuse({"it is alone, and the scenario does nothing beside its load"});
        if (!asked.alone) add_tasks(w, planned_tasks(s));
        return w;
    });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
