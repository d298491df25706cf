// the pace of a server in the result of a run, and an engine with that pace
#pragma once

#include "api/result.hpp"
#include "api/target.hpp"
#include "api/units.hpp"
#include "core/base/checked_json.hpp"
#include "core/base/field_json.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat_fields.hpp"
#include "core/stored/stored.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/simulated/core/foreseen.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // ceil
#include <map>
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A server's mean pace under a load: seconds, tokens of a request, requests a second.
struct measured_pace {
    double ttft = 0, tpot = 0, e2e = 0;
    double queue_time = -1;  // from the server's metrics; below 0: unknown
    double itl_spread = 0;   // p90 over p50, less 1
    double prompt_tokens = 0, output_tokens = 0, requests_a_second = 0;
};

/// An engine that is about as fast under that load. The cost of each running sequence is the same
/// share as in the default engine, because one load does not show it. First-token time that prompts
/// cannot explain, because they would fill most steps, delays every answer.
inline engine engine_at_pace(const measured_pace& m) {
    constexpr double max_prefill = 0.6, little_prefill = 0.05;  // of all steps
    constexpr double max_running = 1e5;  // a file may have any value
    engine e;
    const double sequence_fraction = e.step_per_sequence.seconds() / e.decode_step.seconds();
    const double waited_s = std::max(0.0, m.queue_time);
    const double running =
        std::clamp(m.requests_a_second * std::max(0.0, m.e2e - waited_s), 1.0, max_running);
    // A request is read in one step. An unknown wait is half of another step, if one was running.
    const double unreported = m.queue_time < 0 ? 0.5 * std::min(1.0, running - 1) : 0;
    const double prompt_s = std::max(0.0, m.ttft - waited_s - m.tpot * (1 + unreported));
    const double rate = std::max(m.requests_a_second, 1e-9);
    const double computed_s = std::min(prompt_s, max_prefill / rate);
    const double prefill_fraction = computed_s * rate;
    const double step_s = m.tpot * (1 - prefill_fraction) / (1 + sequence_fraction * running);
    e.decode_step = time_span::from_seconds(step_s);
    e.step_per_sequence = time_span::from_seconds(step_s * sequence_fraction);
    e.prefill_per_token = time_span::from_seconds(computed_s / std::max(1.0, m.prompt_tokens));
    e.faults.delay = time_span::from_seconds(prompt_s - computed_s);
    // With few prompts in between, gaps vary as steps do.
    if (prefill_fraction < little_prefill) e.jitter = std::min(0.5, m.itl_spread / 1.2816);
    e.slots = std::max<long long>(e.slots, static_cast<long long>(std::ceil(4 * running)));
    const double bytes_a_token = e.kv.memory_bytes / kv_capacity_tokens(e.kv);
    const double tokens = 4 * running * (m.prompt_tokens + m.output_tokens);
    e.kv.memory_bytes = std::max(e.kv.memory_bytes, bytes_a_token * tokens);
    e.max_model_len = 1 << 20;  // the measured server accepted the requests
    return e;
}

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
