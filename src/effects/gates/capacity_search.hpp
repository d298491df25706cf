// the search for a capacity, on the servers of a gate
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/client.hpp"
#include "core/judging/validity.hpp"
#include "core/traffic/plan.hpp"
#include "core/described/described.hpp"
#include "core/capacity/found.hpp"
#include "core/capacity/searched.hpp"
#include "effects/system/clock.hpp"
#include "effects/gates/gate_repeats.hpp"
#include "effects/gates/progress_meter.hpp"

#include <algorithm>  // count_if
#include <cstddef>  // size_t
#include <map>
#include <optional>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Decides which loads are probed, until the capacity is known or probes run out. Its arguments
/// must outlive it.
class capacity_search {
public:
    capacity_search(const plan& p, measured_gate& all, gate_repeats& repeats,
                    progress_meter& meter)
        : p_(p), all_(all), repeats_(repeats), meter_(meter) {}

    void measure() {
        for (;;) {
            if (repeats_.count() > 0 && fault_of_gate(all_.seen)) return;
            const std::optional<double> load =
                next_load(p_, probes_of(all_.seen, all_.judged_by));
            if (!load) return;
            const plan& what = plan_at(*load);
            const probe_of part =
                p_.judged->search.to_the_interval ? probe_of::search : probe_of::asked;
            if (repeats_.is_past_deadline(ns_of(expected_seconds(what))) ||
                !repeats_.measure(what, {part, *load, answer_s_}))
                return repeats_.announce_stop();
            if (lengthens(all_.seen.candidate.back())) continue;
            if (const auto error = client_error_at(all_.seen, all_.judged_by, *load))
                leave_out(*error);
        }
    }

private:
    /// The probe stays in the list, but counts as no result.
    void leave_out(const client_error& error) {
        all_.seen.candidate.change(
            error.repeat, [&](repeat_data& d) { d.disturbed = described(error.why); });
        meter_.say(printed("  probe %zu shows nothing: ", error.repeat + 1) +
                   described(error.why) + "\n");
    }
    /// Returns the plan shared by all probes at a load.
    const plan& plan_at(double load) {
        const auto at = plans_.find(load);
        if (at != plans_.end()) return at->second;
        return plans_.emplace(load, at_load(p_, load, answer_s_)).first->second;
    }
    /// If answers take so long that a probe measured only the start of its load, the first probe is
    /// set aside and later ones are longer. A later probe stays, however slow: a selection must not
    /// depend on the result.
    bool lengthens(const repeat_data& d) {
        const double now = usual_answer_s(d), was = answer_s_;
        if (is_over(d, all_.seen.arrival_cv2) || now <= was) return false;
        answer_s_ = now;
        const double measured_s = probe_seconds(p_, d.load, was);
        const auto at_this_load = [&](const repeat_data& x) { return x.load == d.load; };
        const repeat_list& all = all_.seen.candidate;
        const bool is_first = std::count_if(all.begin(), all.end(), at_this_load) == 1;
        if (!is_first || probe_seconds(p_, d.load, now) <= 1.25 * measured_s) return false;
        plans_.erase(d.load);
        return repeats_.measure_again(client_error{{because::probe_too_short, {now, measured_s}},
                                                  all_.seen.candidate.size() - 1});
    }

    const plan& p_;
    measured_gate& all_;
    gate_repeats& repeats_;
    progress_meter& meter_;
    double answer_s_ = 0;  // duration of an answer, while the server kept up with the load
    std::map<double, plan> plans_{};  // by load
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
