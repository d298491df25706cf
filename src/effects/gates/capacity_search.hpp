// the search for a capacity, on the servers of a gate
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/client_bias.hpp"
#include "core/judging/validity.hpp"
#include "core/traffic/plan.hpp"
#include "core/described/described.hpp"
#include "core/capacity/found.hpp"
#include "core/capacity/probes.hpp"
#include "core/capacity/relative.hpp"
#include "core/capacity/searched.hpp"
#include "effects/system/clock.hpp"
#include "effects/gates/gate_repeats.hpp"
#include "effects/gates/progress_meter.hpp"

#include <algorithm>  // count_if
#include <cstddef>  // size_t
#include <map>
#include <optional>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Probes, until all that can be shown of the capacity is, or there are no more. What it is given
/// must outlive it.
class capacity_search {
public:
    capacity_search(const plan& p, measured_gate& all, gate_repeats& repeats,
                    progress_meter& meter)
        : p_(p), all_(all), repeats_(repeats), meter_(meter) {}

    void measure() {
        for (;;) {
            if (repeats_.count() > 0 ? fault_of_gate(all_.seen) : fault_of_lead(all_.seen)) return;
            const next_on_arms next = next_probes(p_, all_.seen, all_.judged_by);
            if (!next.done.empty()) return;
            const plan& what = plan_at(next.load);
            const long long arms = static_cast<long long>(next.arms.size());
            if (repeats_.is_past_deadline(arms * ns_of(expected_seconds(what))) ||
                !repeats_.measure(next.arms, what, {next.part, next.load, answer_s_}))
                return repeats_.announce_stop();
            const repeat_list& last = all_.seen.arm(next.arms.back());
            if (next.arms.size() == 1 && lengthens(last.back())) continue;
            if (const auto bias = bias_of_probes(next)) leave_out(*bias);
        }
    }

private:
    std::optional<client_bias> bias_of_probes(const next_on_arms& last) const {
        if (last.part == probe_of::compared)
            return bias_of_ratio(all_.seen, all_.judged_by, p_.judged->slos[0]);
        return last.arms[0] == run_arm::candidate ? bias_at(all_.seen, all_.judged_by, last.load)
                                                  : std::nullopt;
    }
    /// It stays, and shows nothing.
    void leave_out(const client_bias& bias) {
        const int disturbed = all_.seen.candidate[bias.repeat].index;
        for (auto* arm : {&all_.seen.candidate, &all_.seen.baseline})
            for (std::size_t i = 0; i < arm->size(); ++i)
                if ((*arm)[i].index == disturbed)
                    arm->change(i,
                                [&](repeat_data& d) { d.disturbed = described(bias.why); });
        meter_.say(printed("  probe %zu shows nothing: ", bias.repeat + 1) +
                   described(bias.why) + "\n");
    }
    /// The same for all probes at a load.
    const plan& plan_at(double load) {
        const auto at = plans_.find(load);
        if (at != plans_.end()) return at->second;
        return plans_.emplace(load, at_load(p_, load, answer_s_)).first->second;
    }
    /// Where answers take so long that it was the start of a load that was measured, not the load,
    /// its first probe is set aside and those to come are longer. A later one stays, however slow:
    /// what goes must not depend on how good it was.
    bool lengthens(const repeat_data& d) {
        const double now = usual_answer_s(d), was = answer_s_;
        if (is_over(d, all_.seen.arrival_cv2) || now <= was) return false;
        answer_s_ = now;
        const double measured_s = probe_seconds(p_, d.load, was);
        const auto at_this_load = [&](const repeat_data& x) { return x.load == d.load; };
        const repeat_list& all = all_.seen.arm(d.arm);
        const bool is_first = std::count_if(all.begin(), all.end(), at_this_load) == 1;
        if (!is_first || probe_seconds(p_, d.load, now) <= 1.25 * measured_s) return false;
        plans_.erase(d.load);
        return repeats_.measure_again(client_bias{{because::probe_too_short, {now, measured_s}},
                                                  all_.seen.candidate.size() - 1});
    }

    const plan& p_;
    measured_gate& all_;
    gate_repeats& repeats_;
    progress_meter& meter_;
    double answer_s_ = 0;  // how long answers took, while they kept up with the load
    std::map<double, plan> plans_{};  // by load
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
