// searches as the header asks for them
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/measurements.hpp"
#include "core/planning/load_search.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "extensions/capacity/api.hpp"
#include "extensions/capacity/core/found.hpp"
#include "extensions/capacity/core/load_curve.hpp"
#include "extensions/capacity/core/search_page.hpp"
#include "extensions/capacity/core/searched.hpp"

#include <memory>  // make_shared
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

class search_of_loads final : public load_search {
public:
    void check(const scenario& s, const arrival_data& a, scenario_use use) const override {
        if (a.is_searched) check_search(s, use);
        else check_no_search(s, a, use);
    }
    measured_load judged(const scenario& s, const repeat_counts& repeats,
                       scenario_use use) const override {
        return judged_search(s, repeats, use);
    }
    long long requests_for_work(const planned_traffic& p) const override {
        return detail::requests_for_work(p);
    }
    plan at_load(const plan& p, double load, double answer_s) const override {
        return detail::at_load(p, load, answer_s);
    }
    double seconds_of_first_probe(const plan& p) const override {
        return detail::seconds_of_first_probe(p);
    }
    std::string extent_text(const planned_traffic& p) const override {
        return extent_of_a_probe(p);
    }
    std::string probes_text(const plan& p) const override { return planned_probes_text(p); }
    analysis analyse(const measurements& e, const judging_parameters& t) const override {
        return analysis_of_search(e, t);
    }
    decision judged_also(const measurements& e, const judging_parameters& t,
                         const slo& s) const override {
        return judged_also_by_search(e, t, s);
    }
    measurements at_load_of_tables(const measurements& e,
                                   const judging_parameters& t) const override {
        return measurements_of_tables(e, t);
    }
    void divide(const std::string& gate, const measurements& e,
                judging_parameters& t) const override {
        divide_by_loads(gate, e, t);
    }
    std::shared_ptr<search_figures> figures(const plan& p, const measurements& e,
                                            const judging_parameters& t) const override {
        return std::make_shared<load_curve>(load_curve_of(p, e, t));
    }
    std::shared_ptr<search_figures> no_figures() const override {
        return std::make_shared<load_curve>();
    }
};

inline constinit const search_of_loads searches_loads{};
extern constinit const bool include_llmbench_capacity_hpp_where_LLMBENCH_MAIN_is = true;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void make_searches_known() {
    known_search = &searches_loads;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
