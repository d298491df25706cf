// searches as the header asks for them
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/extension.hpp"
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

inline void check_searched(const scenario& s, const arrival_data& a, scenario_use use) {
    if (a.is_searched) check_search(s, use);
    else check_no_search(s, a, use);
}
inline std::shared_ptr<search_figures> new_load_curve(const plan& p, const measurements& e,
                                                      const judging_parameters& t) {
    return std::make_shared<load_curve>(load_curve_of(p, e, t));
}
inline void make_load_curve(std::shared_ptr<search_figures>& empty) {
    empty = std::make_shared<load_curve>();
}
inline constinit const extension loads_searched{.name = "capacity",
                                                .check_search = check_searched,
                                                .searched = judged_search,
                                                .requests_for_work = requests_for_work,
                                                .at_load = at_load,
                                                .seconds_of_first_probe = seconds_of_first_probe,
                                                .extent_text = extent_of_a_probe,
                                                .probes_text = planned_probes_text,
                                                .analyse_search = analysis_of_search,
                                                .judged_also = judged_also_by_search,
                                                .at_load_of_tables = measurements_of_tables,
                                                .divide = divide_by_loads,
                                                .figures_of_search = new_load_curve,
                                                .new_search = make_load_curve};
extern constinit const bool include_llmbench_capacity_hpp_where_LLMBENCH_MAIN_is = true;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_searches() { add(loads_searched); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
