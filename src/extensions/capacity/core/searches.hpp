// searches as the header asks for them
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/extension.hpp"
#include "core/base/shared.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/measurements.hpp"
#include "core/planning/load_search.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/planning.hpp"
#include "extensions/capacity/api.hpp"
#include "extensions/capacity/core/found.hpp"
#include "extensions/capacity/core/load_curve.hpp"
#include "extensions/capacity/core/search_page.hpp"
#include "extensions/capacity/core/searched.hpp"

#include <memory>  // shared_ptr
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline measured_load searched_load_of(const scenario& s, const arrival_data& a, scenario_use use) {
    if (a.is_searched) check_search(s, use);
    else refuse_without_search(s, a, use);
    return judged_search(s, planned_repeats(s, use), use);
}
inline void add_load_curve(const plan& p, const measurements& e, const judging_parameters& t,
                           std::shared_ptr<search_figures>& into) {
    into = new_shared<load_curve>(load_curve_of(p, e, t));
}
inline constinit const extension loads_searched{.name = "capacity",
                                                .add_to_plan = plan_probes,
                                                .searched = searched_load_of,
                                                .at_load = at_load,
                                                .analyse_search = analysis_of_search,
                                                .at_load_of_tables = measurements_of_tables,
                                                .divide = divide_by_loads,
                                                .add_search = add_load_curve};
extern constinit const bool include_llmbench_capacity_hpp_where_LLMBENCH_MAIN_is = true;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_searches() { add(loads_searched); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
