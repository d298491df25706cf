// the pace of a server in the result of a run
#pragma once

#include "api/result.hpp"
#include "core/base/json.hpp"
#include "core/base/field_json.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat_fields.hpp"
#include "core/stored/stored.hpp"
#include "extensions/simulated/core/fitted_engine.hpp"
#include "extensions/simulated/core/foreseen.hpp"

#include <algorithm>  // clamp, max
#include <map>
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The facts of a server in an earlier run's gate.
struct reported_pace {
    measured_pace pace{};
    std::map<std::string, double> noise{};  // of the logarithm of a repeat's statistic, by name
};

/// p90 over p50, less 1; 0 if the file has none.
inline double spread_of_row(const checked_object& row) {
    const double p50 = row.seconds("p50", 0), p90 = row.seconds("p90", 0);
    return p50 > 0 && p90 > p50 ? p90 / p50 - 1 : 0;
}
/// Throws std::invalid_argument with the reason if the text has no such gate or no pace.
inline reported_pace read_pace(const std::string& json, const std::string& file,
                               const std::string& gate_name) {
    const picojson::value document = result_document(json, file);
    const checked_object root(document, file, "");
    const checked_object gate = gate_named(root, file, gate_name).gate;
    const std::string of = file + ": \"" + printable(gate.text("name"), 200) + "\" ";
    const std::string fault = fault_of_stored(gate);
    if (!fault.empty())
        refuse({of, fault, ", so its times are none of a server to be modelled"});
    const checked_object variant = gate.at("candidate");
    reported_pace t;
    measured_pace& p = t.pace;
    p.ttft = variant.at("ttft").seconds("mean", 0);
    p.tpot = variant.at("tpot").seconds("mean", 0);
    if (!(p.ttft > 0 && p.tpot > 0))
        refuse({of,
                "reports no ttft and no tpot, which an engine is fitted to: its answers were not "
                    "streamed, or had a token each"});
    p.itl_spread = spread_of_row(variant.at("itl"));
    p.e2e = variant.at("e2e").seconds("mean", p.ttft + p.tpot);
    p.requests_a_second = variant.number("request_throughput", 0, max_rate, 0);
    const double output = variant.number("output_throughput", 0, max_rate, 0);
    const double input = variant.number("input_throughput", 0, max_rate, 0);
    const double each = std::max(p.requests_a_second, 1e-9);
    p.output_tokens = std::clamp(output / each, 1.0, most_tokens);
    p.prompt_tokens = std::clamp(input / each, 1.0, most_tokens);
    std::map<std::string, std::vector<double>> values;
    document_digits digits(json);
    for (const checked_object& r : variant.each("repeats")) {
        std::vector<named_number> statistics;
        field_reader reader(r, digits);
        named_fields(reader, {"statistics"}, statistics, any_number);
        for (const named_number& n : statistics) values[n.name].push_back(n.value);
    }
    t.noise = noise_of_repeats(values);
    const double waited = typical_of_repeats(values["mean(queue_time)"]);
    if (waited >= 0) p.queue_time = waited;
    return t;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
