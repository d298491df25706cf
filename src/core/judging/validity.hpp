// what makes a measurement invalid
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/prefix_hits.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/client.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/held_back.hpp"
#include "core/judging/saturation.hpp"
#include "core/judging/server.hpp"
#include "core/judging/server_state.hpp"
#include "core/judging/terms.hpp"
#include "core/judging/witness.hpp"

#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Why nothing at all can be said of these arms, "" where something can.
inline std::string gate_invalid_reason(const evidence& e, const arm_list& arms) {
    if (e.candidate.empty() && !e.stopped.empty()) return {};
    for (const untold_metrics& u : e.untold)
        if (u.of.empty()) return u.why;
    if (const std::string lack = client_lack(arms); !lack.empty()) return lack;
    std::string lost;
    for_each_repeat(arms, [&](const repeat_data& d) {
        if (lost.empty()) lost = skew_fault(d.ranks, e.most_skew_s);
    });
    for_each_repeat(e, [&](const repeat_data& d) {
        if (lost.empty() && d.interrupted) lost = "the run was interrupted";
    });
    if (!lost.empty()) return lost;
    for (const auto* arm : arms) {
        const std::string who = arm == &e.baseline ? "baseline server" : "server";
        std::size_t measured = 0, succeeded = 0;
        std::string example;
        for (const repeat_data& d : *arm) {
            if (!d.target_gone.empty()) return who + ": " + d.target_gone;
            if (const std::string why = witness_against(e, d); !why.empty())
                return who + ": " + why;
            for (const record& r : d.records) {
                if (!is_measured(r)) continue;
                ++measured;
                succeeded += r.status == request_status::ok;
                if (example.empty() && r.status != request_status::ok)
                    example = std::string(to_string(r.status)) + ": " + str(r.error);
            }
        }
        if (arm == &e.baseline && arm->empty()) continue;
        if (succeeded == 0)
            return measured == 0 ? "no request was measured"
                                 : who + ": none of " + std::to_string(measured) +
                                       " requests succeeded (" + example + ")";
    }
    return {};
}

inline std::string gate_invalid_reason(const evidence& e) {
    return gate_invalid_reason(e, arms_of(e));
}

/// What objectives that are judged on some arms stand on.
struct arms_grounds {
    self_check_t self_check{};
    std::string invalid{};    // why nothing at all can be said
    std::string saturated{};  // why the load was more than the server can take
};
inline arms_grounds arms_grounds_of(const evidence& e, const arm_list& arms) {
    return {self_check_of(e, arms), gate_invalid_reason(e, arms), over_saturation_reason(e, arms)};
}
/// What all objectives of a gate stand on, found once for a look at its evidence.
struct grounds : arms_grounds {
    arms_grounds own{};  // of the candidate alone
    answer_counts candidate{}, baseline{};
    prefix_hits cache{}, baseline_cache{};
    std::string state{};  // what the server's own page says to its speed
    const arms_grounds& of(const slo& s) const { return s.factor == 0 ? own : *this; }
};
inline grounds grounds_of(const evidence& e) {
    const arms_grounds all = arms_grounds_of(e, arms_of(e));
    return {all, e.baseline.empty() ? all : arms_grounds_of(e, {&e.candidate}),
            answer_counts_of(e.candidate), answer_counts_of(e.baseline),
            prefix_hits_of(e.candidate), prefix_hits_of(e.baseline), server_state_words(e)};
}

/// Why a verdict on an SLO is none, "" where it is one.
inline std::string slo_invalid_reason(const evidence& e, const terms& t, const grounds& g,
                                      const slo_verdict& v) {
    const slo& s = v.what;
    const bool compared = e.has_live_baseline() || !t.stored.file.empty();
    if (s.factor > 0 && !compared) return "there is no baseline";
    if (!is_of_service(s.what.metric)) return {};
    const self_check_t& check = g.of(s).self_check;
    if (concerns(s.what, &metric_facts::is_of_gaps) && check.coalesced_share > 0.05 &&
        check.cpu_share > 0.8)
        return printed("client: it was busy and read %.1f %% of the events together",
                       check.coalesced_share * 100);
    if (concerns(s.what, &metric_facts::is_hurt_by_lateness) ||
        client_was_saturated(e, check.cpu_share))
        if (!check.ok) return str(check.reason);
    if (is_of_server(s.what.metric)) return server_word_fault(e, v);
    for (const answer_counts* arm : {&g.candidate, &g.baseline}) {
        const bool is_baseline = arm == &g.baseline;
        if (is_baseline && (s.factor <= 0 || !e.has_live_baseline())) continue;
        const std::string held = stream_invalid_reason(*arm, s.what);
        if (!held.empty() && !stands_though_held_back(e, t, *arm, v))
            return (is_baseline ? "baseline: " : "") + held;
        const std::string why = answers_invalid_reason(*arm, s.what, e.short_outputs_expected);
        if (!why.empty()) return (is_baseline ? "baseline server: " : "server: ") + why;
    }
    return {};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
