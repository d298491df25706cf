// calibration.json
#pragma once

#include "core/base/vector.hpp"
#include "core/base/field_json.hpp"
#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <map>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr const char* calibration_schema = "llmbench/calibration/1";
/// A higher deviation between repeats of one server is too much noise for a limit.
inline constexpr double max_calibrated_sd = 0.30;

/// The calibration of one limit, and the name by which it is found.
struct calibrated_limit {
    std::string slo{}, statistic{};
    double estimate = not_a_number, sd = not_a_number, headroom_sd = not_a_number;
    std::string suggestion{};
};
struct calibrated_gate {
    std::string name{};
    std::size_t repeats = 0;
    vector<calibrated_limit> limits{};
};
inline void fields_of(field_visitor& v, calibrated_limit& c) {
    v.text({"slo"}, c.slo);
    v.text({"statistic"}, c.statistic);
    v.number({"estimate"}, c.estimate, any_number);
    v.number({"sd", "of the log statistic between repeats"}, c.sd, {0, max_calibrated_sd});
    v.number({"headroom_sd", "distance to the limit in such sd"}, c.headroom_sd, any_number);
    v.text({"suggestion"}, c.suggestion);
}
inline void fields_of(field_visitor& v, calibrated_gate& g) {
    v.text({"name"}, g.name);
    v.whole({"repeats"}, g.repeats, {0, most_of_few});
    v.list({"slos"}, g.limits, [&](calibrated_limit& c) { fields_of(v, c); });
}
inline void fields_of(field_visitor& v, vector<calibrated_gate>& gates) {
    std::string schema = calibration_schema;
    v.text({"schema"}, schema);
    v.list({"gates"}, gates, [&](calibrated_gate& g) { fields_of(v, g); });
}

struct gate_calibration {
    std::map<std::string, double> noise{};  // of its statistics
    std::size_t repeats = 0;
    std::string why_none{};                 // if the file does not have it
};
/// Throws std::invalid_argument if the file is no calibration.
inline gate_calibration read_calibration(const std::string& json, const std::string& file,
                                         const std::string& gate) {
    const std::string named = "LLMBENCH_CALIBRATION: " + file;
    json_reader reader;
    const stored_object root =
        stored_document(reader, json, named, " is not a calibration", calibration_schema);
    gate_calibration known;
    bool has_gate = false;
    std::string others;
    for (const stored_object& g : root.each("gates")) {
        if (const std::string name = g.text("name"); name != gate) {
            if (others.size() < 200) others += (others.empty() ? "\"" : ", \"") + name + "\"";
            continue;
        }
        has_gate = true;
        calibrated_gate read;
        read_fields(g, read);
        known.repeats = read.repeats;
        for (const calibrated_limit& c : read.limits)
            if (!std::isnan(c.sd)) known.noise[c.statistic] = c.sd;  // fractions have none
    }
    if (!has_gate)
        known.why_none = named +
                         " has nothing of this gate, which is judged as without it; it has " +
                         (others.empty() ? "no gate" : printable(others, 200));
    return known;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
