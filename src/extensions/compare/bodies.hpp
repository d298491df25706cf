// compare() and curve(), and functions of their results
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "extensions/compare/api.hpp"
#include "extensions/compare/core/result_data.hpp"
#include "extensions/compare/core/setting_ratios.hpp"
#include "extensions/compare/measure_curve.hpp"
#include "extensions/compare/measure_settings.hpp"

#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

text best_setting(const box& data, const statistic_data& what) {
    const auto* h = data.get<comparison_data>();
    if (!h) return {};
    const auto best = compared_by(what, *h).best();
    return best ? text(h->names[*best]) : text();
}
estimate_t ratio_of_settings(const box& data, const text& of, const text& to,
                             const statistic_data& what) {
    const auto* h = data.get<comparison_data>();
    const std::vector<std::string> names = h ? h->names : std::vector<std::string>{};
    const std::size_t a = place_of_setting(names, str(of)), b = place_of_setting(names, str(to));
    if (a == b) return {1, 1, 1};
    return compared_by(what, *h).ratio(a, b).value_or(
        estimate_t{not_a_number, not_a_number, not_a_number});
}
}  // namespace detail

const result& comparison_result::operator[](const types::text& name) const {
    const std::vector<std::string> names(names_.begin(), names_.end());
    return results_[detail::place_of_setting(names, detail::str(name))];
}
const result& comparison_result::at(types::whole place) const {
    const long long i = place;
    if (!(i >= 0 && i < static_cast<long long>(results_.size())))
        detail::refuse({detail::printed("there is no setting at %lld in the result, which has %zu",
                                        i, static_cast<std::size_t>(results_.size()))});
    return results_[static_cast<detail::size_type>(i)];
}

const result& curve_result::operator[](offered_load load) const {
    std::vector<std::string> all;
    for (detail::size_type i = 0; i < loads_.size(); ++i) {
        if (loads_[i] == load.value) return results_[i];
        all.push_back(detail::printed("%.9g", loads_[i]));
    }
    detail::refuse({detail::printed("there is no load of %.9g in the curve", load.value),
                    all.empty() ? ", which is empty" : ": it has " + detail::enumerated(all)});
}
const result& curve_result::at(types::whole place) const {
    const long long i = place;
    if (!(i >= 0 && i < static_cast<long long>(results_.size())))
        detail::refuse({detail::printed("there is no load at %lld in the curve, which has %zu", i,
                                        static_cast<std::size_t>(results_.size()))});
    return results_[static_cast<detail::size_type>(i)];
}

comparison_result include_llmbench_compare_hpp_where_LLMBENCH_MAIN_is::compared(
    const scenario& s, const types::list<setting>& settings, const char* file, int line) {
    return detail::compared_settings(s, settings, file, line);
}
curve_result include_llmbench_compare_hpp_where_LLMBENCH_MAIN_is::loads_of(
    const scenario& s, const types::list<offered_load>& loads, const char* file, int line) {
    return detail::measured_curve(s, loads, file, line);
}

}  // inline namespace v0
}  // namespace llmbench
