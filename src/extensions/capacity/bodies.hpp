// loads searched on their servers
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/verbs.hpp"
#include "core/base/extension.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/client.hpp"
#include "core/judging/load.hpp"
#include "core/judging/checks.hpp"
#include "core/described/described.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/bodies/result_data.hpp"
#include "effects/gates/execution.hpp"
#include "effects/gates/gate_run.hpp"
#include "effects/gates/slot.hpp"
#include "effects/system/clock.hpp"
#include "extensions/capacity/api.hpp"
#include "extensions/capacity/core/found.hpp"
#include "extensions/capacity/core/search.hpp"
#include "extensions/capacity/core/searched.hpp"
#include "extensions/capacity/core/searches.hpp"

#include <map>
#include <optional>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The search of one gate.
class probing {
public:
    explicit probing(gate_run& by) : by_(by) {}

    /// Probes loads until the capacity is known, or probes run out.
    void search() {
        const plan& p = by_.planned();
        for (;;) {
            if (by_.count() > 0 && fault_of_gate(by_.seen())) return;
            const std::optional<double> load = next_load(p, probes_of(by_.seen(), by_.judged_by()));
            if (!load) return;
            const double answer_s = probes_.emplace(*load, answer_s_).first->second;
            const slot probe{.position = repeat_positions::of_probe,
                             .name = probe_name(p, by_.seen().candidate.size()) + " at " +
                                     value_text(load_metric(p), *load),
                             .load = *load,
                             .answer_s = answer_s,
                             .part = p.judged->search.to_the_interval ? probe_of::search
                                                                      : probe_of::asked};
            if (by_.ends_late(ns_of(expected_seconds(at_load(p, *load, answer_s)))) ||
                !by_.measure({probe})) {
                by_.note_end_of_time();
                return;
            }
            if (was_too_short(by_.seen().candidate.back())) continue;
            if (const auto error = client_error_at(by_.seen(), by_.judged_by(), *load))
                leave_out(*error);
        }
    }

private:
    /// The probe stays in the list, but counts as no result.
    void leave_out(const client_error& error) {
        by_.leave_out(error.repeat, described(error.why));
        by_.say(printed("  probe %zu shows nothing: ", error.repeat + 1) + described(error.why) +
                "\n");
    }
    /// If answers take so long that a probe measured only the start of its load, the first probe is
    /// set aside and later ones are longer. A later probe stays, however slow: a selection must not
    /// depend on the result.
    bool was_too_short(const repeat_data& d) {
        const double now = usual_answer_s(d), was = answer_s_;
        if (is_over(d, by_.seen().arrival_cv2) || now <= was) return false;
        answer_s_ = now;
        const double measured_s = probe_seconds(by_.planned(), d.load, was);
        const auto at_this_load = [&](const repeat_data& x) { return x.load == d.load; };
        const repeat_list& all = by_.seen().candidate;
        const bool is_first = all.those(at_this_load).size() == 1;
        const double needed_s = probe_seconds(by_.planned(), d.load, now);
        if (!is_first || !is_too_short(measured_s, needed_s)) return false;
        probes_.erase(d.load);
        return by_.repeats_again(
            client_error{cause_with<because::probe_too_short>({{"answer", now},
                                                               {"load", measured_s},
                                                               {"needed", needed_s},
                                                               {"starts", not_a_number},
                                                               {"of_sessions", not_a_number}}),
                         all.size() - 1});
    }

    gate_run& by_;
    std::map<double, double> probes_{};  // by their loads: the duration of an answer they are for
    double answer_s_ = 0;  // duration of an answer, while the server kept up with a probed load
};

inline void probe_loads(gate_run& g) { probing(g).search(); }
inline constinit const extension loads_probed{.name = "capacity", .probe = probe_loads};
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_probes() { add(loads_probed); }

capacity_result search_access::capacity_in(const result& r) {
    capacity_result c;
    static_cast<result&>(c) = r;
    const auto g = result_access::gate_of(r);
    const found_capacity found = g ? capacity_of(g->seen, g->judged_by) : found_capacity{};
    const metric_id unit = g ? load_metric(g->what) : metric_id::capacity_in_rate;
    c.low_ = found.state.low;
    c.high_ = found.state.high;
    c.limiting_objective_ = found.limiting_objective;
    c.probes_ = static_cast<int>(found.probes.size());
    c.line_ = capacity_line(unit, found);
    c.explained_ = capacity_explained(unit, found);
    return c;
}
}  // namespace detail

capacity_result find_capacity(const scenario& s, const char* file, int line) {
    return detail::search_access::capacity_in(
        detail::executed(detail::gate_execution(s, file, line, "find_capacity")));
}

}  // inline namespace v1
}  // namespace llmbench
