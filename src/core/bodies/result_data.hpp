// the data of gates and results
#pragma once

#include "api/result.hpp"
#include "api/text.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/checks.hpp"
#include "core/planning/plan.hpp"
#include "core/reports/gate_report.hpp"

#include <cstddef>  // size_t
#include <functional>
#include <memory>  // shared_ptr
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// What an extension that keeps runs knows of one gate whose servers are up.
class gate_past {
public:
    virtual ~gate_past() = default;
};

/// A gate as far as it has come: what was planned, measured and found.
struct measured_gate : gate_facts {
    measurements seen{};
    analysis found{};
    std::shared_ptr<const gate_past> past{};  // if an extension keeps earlier runs
};

/// Copies of a result share it; it does not change.
struct result_data {
    std::size_t number = 0;  // index among the gates of the program
    gate_outcome outcome = gate_outcome::unfinished;
    std::string refusal{};  // why nothing was measured
    inconclusive_means undecided_is = inconclusive_means::warn;
    plan what{};
    measurements seen{};
    judging_parameters judged_by{};
    bool is_rehearsal = false;
    bool is_shard = false;  // it has measured only a part of its load
    std::function<const types::list<record>&()> requests{};  // of all repeats; any thread may ask
};

struct result_access {
    static result make(std::shared_ptr<const result_data> g,
                       const vector<slo_verdict>& verdicts, const self_check_t& self_check) {
        result r;
        r.name_ = g->what.name;
        for (const slo_verdict& v : verdicts) r.verdicts_.push_back(v);
        r.self_check_ = self_check;
        r.data_ = box::make(std::move(g));
        return r;
    }
    /// Returns null for an empty result.
    static std::shared_ptr<const result_data> gate_of(const result& r) { return gate_in(r.data_); }
    static std::shared_ptr<const result_data> gate_in(const box& data) {
        const auto* held = data.get<std::shared_ptr<const result_data>>();
        return held ? *held : nullptr;
    }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
