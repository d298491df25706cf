// data of results of several settings or loads
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/validity.hpp"
#include "core/capacity/search.hpp"
#include "core/bodies/result_data.hpp"
#include "extensions/compare/api.hpp"
#include "extensions/compare/core/settings.hpp"

#include <cstddef>  // size_t
#include <list>
#include <memory>  // shared_ptr
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Shared by all copies of a result; never changes.
struct comparison_data {
    std::vector<std::string> names{};
    std::vector<std::shared_ptr<const result_data>> settings{};
};

/// Throws std::invalid_argument for an unknown setting.
inline std::size_t place_of_setting(const std::vector<std::string>& names,
                                    const std::string& name) {
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == name) return i;
    throw std::invalid_argument("there is no setting \"" + printable(name) + "\" in the result" +
                                (names.empty() ? ", which is empty"
                                               : ": it has " + enumerated(names)));
}

/// Compares the settings by another statistic.
inline compared_statistic compared_by(const statistic_data& what, const comparison_data& h) {
    std::vector<measured_setting> all;
    std::list<analysis> found;
    for (std::size_t i = 0; i < h.names.size(); ++i) {
        const result_data& g = *h.settings[i];
        found.emplace_back();
        found.back().on = validity_checks_of(g.seen);
        all.push_back({h.names[i], g.seen, g.judged_by, found.back(), g.refusal});
    }
    return compared_by(what, all, settings_as_reported(all, {}));
}

struct comparison_access {
    static comparison_result make(comparison_data&& h, const list<result>& results,
                                  const std::string& line, const std::string& with_reasons) {
        comparison_result r;
        for (const std::string& name : h.names) r.names_.push_back(name);
        r.results_ = results;
        r.data_ = box::make(std::move(h));
        r.line_ = line;
        r.explained_ = with_reasons;
        return r;
    }
};
struct curve_access {
    static void add_load(curve_result& c, double load, const result& r) {
        c.loads_.push_back(load);
        c.results_.push_back(r);
    }
    static void end_curve(curve_result& c, const search_state& ends, const std::string& line) {
        c.low_ = ends.low;
        c.high_ = ends.high;
        c.line_ = line;
    }
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
