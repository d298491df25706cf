// what results hold of their gates
#pragma once

#include "api/result.hpp"
#include "api/text.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/terms.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/validity.hpp"
#include "core/comparing/settings.hpp"
#include "core/comparing/text.hpp"
#include "core/traffic/plan.hpp"
#include "core/capacity/found.hpp"
#include "core/capacity/searched.hpp"

#include <cstddef>  // size_t
#include <functional>
#include <list>
#include <memory>  // shared_ptr
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The same for all copies of a result. It does not change, whatever is asked of it.
struct result_data {
    std::size_t number = 0;  // among the gates of the program
    gate_outcome outcome = gate_outcome::unfinished;
    std::string refusal{};  // why nothing was measured
    inconclusive_means undecided_is = inconclusive_means::warn;
    plan what{};
    evidence seen{};
    terms judged_by{};
    bool is_rehearsal = false;
    bool is_shard = false;  // it has seen a part of its load, and nothing of the others
    std::function<const types::list<record>&()> requests{};  // of all repeats; any thread may ask
};

struct result_access {
    static result make(std::shared_ptr<const result_data> g,
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
    static void add_load(curve_result& c, double load, const result& r) {
        c.loads_.push_back(load);
        c.results_.push_back(r);
    }
    static void end_curve(curve_result& c, const search_state& ends, const std::string& line) {
        c.low_ = ends.low;
        c.high_ = ends.high;
        c.line_ = line;
    }
    /// Null where the result is empty.
    static std::shared_ptr<const result_data> gate_of(const result& r) { return gate_in(r.data_); }
    static std::shared_ptr<const result_data> gate_in(const box& data) {
        const auto* held = data.get<std::shared_ptr<const result_data>>();
        return held ? *held : nullptr;
    }
};

/// The same for all copies of a result. It does not change, whatever is asked of it.
struct comparison_data {
    std::vector<std::string> names{};
    std::vector<std::shared_ptr<const result_data>> settings{};
};

/// Throws std::invalid_argument where there is no such setting.
inline std::size_t place_of_setting(const std::vector<std::string>& names,
                                    const std::string& name) {
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == name) return i;
    throw std::invalid_argument("there is no setting \"" + printable(name) + "\" in the result" +
                                (names.empty() ? ", which is empty"
                                               : ": it has " + enumerated(names)));
}

/// Settings by one more statistic.
inline compared_statistic compared_by(const statistic_data& what, const comparison_data& h) {
    std::vector<measured_setting> all;
    std::list<findings> found;
    for (std::size_t i = 0; i < h.names.size(); ++i) {
        const result_data& g = *h.settings[i];
        found.emplace_back();
        found.back().on = grounds_of(g.seen);
        all.push_back({h.names[i], g.seen, g.judged_by, found.back(), g.refusal});
    }
    return compared_by(what, all, settings_as_reported(all, {}));
}

struct comparison_access {
    static comparison_result make(comparison_data&& h, const list<result>& results,
                                  const std::string& line, const std::string& explained) {
        comparison_result r;
        for (const std::string& name : h.names) r.names_.push_back(name);
        r.results_ = results;
        r.data_ = box::make(std::move(h));
        r.line_ = line;
        r.explained_ = explained;
        return r;
    }
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
