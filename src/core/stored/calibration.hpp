// calibration.json
#pragma once

#include "core/base/checked_json.hpp"
#include "core/base/field_json.hpp"
#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr const char* calibration_schema = "llmbench/calibration/1";
/// More than this between repeats of one server is no noise that limits could be held under.
inline constexpr double most_calibrated_sd = 0.30;

/// What a calibration says of one limit, and the name under which it is looked up.
struct calibrated_limit {
    std::string slo{}, statistic{};
    double estimate = not_a_number, sd = not_a_number, headroom_sd = not_a_number;
    std::string suggestion{};
};
struct calibrated_gate {
    std::string name{};
    std::size_t repeats = 0;
    std::vector<calibrated_limit> limits{};
};
inline void fields_of(field_visitor& v, calibrated_limit& c) {
    v.text({"slo"}, c.slo);
    v.text({"statistic"}, c.statistic);
    v.number({"estimate"}, c.estimate, any_number);
    v.number({"sd", "of the log statistic between repeats"}, c.sd, {0, most_calibrated_sd});
    v.number({"headroom_sd", "distance to the limit in such sd"}, c.headroom_sd, any_number);
    v.text({"suggestion"}, c.suggestion);
}
inline void fields_of(field_visitor& v, calibrated_gate& g) {
    v.text({"name"}, g.name);
    v.whole({"repeats"}, g.repeats);
    v.list({"slos"}, g.limits, [&](calibrated_limit& c) { fields_of(v, c); });
}
inline void fields_of(field_visitor& v, std::vector<calibrated_gate>& gates) {
    std::string schema = calibration_schema;
    v.text({"schema"}, schema);
    v.list({"gates"}, gates, [&](calibrated_gate& g) { fields_of(v, g); });
}

/// The noise of a gate's statistics from a calibration.json, empty where it does not have the gate.
/// Throws std::invalid_argument for what can be none.
inline std::map<std::string, double> read_calibration(const std::string& json,
                                                      const std::string& file,
                                                      const std::string& gate) {
    const std::string named = "LLMBENCH_CALIBRATION: " + file;
    picojson::value root;
    if (!parse_json(json, root) || string_member(root, "schema") != calibration_schema)
        refuse({named, " is not a calibration (", calibration_schema, ")"});
    std::map<std::string, double> noise;
    document_digits digits(json);
    for (const checked_object& g : checked_object(root, named, "").each("gates")) {
        if (g.text("name") != gate) continue;
        calibrated_gate read;
        read_fields(g, digits, read);
        for (const calibrated_limit& c : read.limits)
            if (!std::isnan(c.sd)) noise[c.statistic] = c.sd;  // shares have none
    }
    return noise;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
