// what a result holds of its gate
#pragma once

#include "api/result.hpp"
#include "api/text.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/terms.hpp"
#include "core/capacity/found.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/searched.hpp"

#include <functional>
#include <memory>  // shared_ptr
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The same for all copies of a result. It does not change, whatever is asked of it.
struct held_gate {
    std::size_t number = 0;  // among the gates of the program
    gate_outcome outcome = gate_outcome::unfinished;
    std::string refusal{};  // why nothing was measured
    inconclusive_means undecided_is = inconclusive_means::warn;
    plan what{};
    evidence seen{};
    terms held{};
    bool is_shard = false;  // it has seen a part of its load, and nothing of the others
    std::function<const types::list<record>&()> requests{};  // of all repeats; any thread may ask
};

struct result_access {
    static result make(std::shared_ptr<const held_gate> g,
                       const std::vector<slo_verdict>& verdicts, const self_check_t& self_check) {
        result r;
        r.name_ = g->what.name;
        for (const slo_verdict& v : verdicts) r.verdicts_.push_back(v);
        r.self_check_ = self_check;
        r.data_ = box::make(std::move(g));
        return r;
    }
    static capacity_result capacity_in(const result& r) {
        capacity_result c;
        static_cast<result&>(c) = r;
        const auto g = gate_of(r);
        const found_capacity found = g ? capacity_of(g->seen, g->held) : found_capacity{};
        const metric_id unit = g ? load_metric(g->what) : metric_id::capacity_in_rate;
        c.low_ = found.state.low;
        c.high_ = found.state.high;
        c.binding_ = found.binding;
        c.probes_ = static_cast<int>(found.probes.size());
        c.line_ = capacity_line(unit, found);
        c.explained_ = capacity_explained(unit, found);
        return c;
    }
    /// Null where the result is empty.
    static std::shared_ptr<const held_gate> gate_of(const result& r) { return gate_in(r.data_); }
    static std::shared_ptr<const held_gate> gate_in(const box& data) {
        const auto* held = data.get<std::shared_ptr<const held_gate>>();
        return held ? *held : nullptr;
    }
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
