// what a result of several settings holds
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/validity.hpp"
#include "core/comparing/settings.hpp"
#include "core/comparing/words.hpp"
#include "core/figures/held_gate.hpp"

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

/// The same for all copies of a result. It does not change, whatever is asked of it.
struct held_comparison {
    std::vector<std::string> names{};
    std::vector<std::shared_ptr<const held_gate>> settings{};
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
inline compared_statistic compared_by(const statistic_data& what, const held_comparison& h) {
    std::vector<measured_setting> all;
    std::list<findings> found;
    for (std::size_t i = 0; i < h.names.size(); ++i) {
        const held_gate& g = *h.settings[i];
        found.emplace_back();
        found.back().on = grounds_of(g.seen);
        all.push_back({h.names[i], g.seen, g.held, found.back(), g.refusal});
    }
    return compared_by(what, all, told_settings(all, {}));
}

struct comparison_access {
    static comparison_result make(held_comparison&& h, const list<result>& results,
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
