// What a server told of itself, written by hand: readings once a second around a steady window.
#pragma once

#include "core/server_metrics/page_readings.hpp"
#include "core/measured/repeat.hpp"
#include "support/timelines.hpp"

#include <cstddef>

namespace sample_pages {

using namespace llmbench;
using namespace llmbench::detail;

/// Readings at 0, 1, 2 s ... of a repeat whose window is from the second to the last but one.
inline void read_at_each_second(repeat_data& d, std::size_t n) {
    d.window = time_interval::between(timelines::at_ms(1000),
                                      timelines::at_ms(1000.0 * static_cast<double>(n - 2)));
    d.server.of = "vLLM";
    d.server.is_read = d.server.has_both_ends = true;
    d.server.readings.assign(n, {});
    for (std::size_t i = 0; i < n; ++i)
        d.server.readings[i].at_ns = timelines::at_ms(1000.0 * static_cast<double>(i));
}
inline void report(repeat_data& d, server_quantity q, const vector<double>& values) {
    if (d.server.readings.empty()) read_at_each_second(d, values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        d.server.readings[i].values[static_cast<std::size_t>(q)] = values[i];
}
inline void count(repeat_data& d, server_quantity q, const vector<double>& counts) {
    for (std::size_t i = 0; i < counts.size(); ++i)
        d.server.readings[i].counts[static_cast<std::size_t>(q)] = counts[i];
}
/// From one number to another in equal steps.
inline vector<double> rising(double from, double to, std::size_t n) {
    vector<double> values;
    for (std::size_t i = 0; i < n; ++i)
        values.push_back(from + (to - from) * static_cast<double>(i) / static_cast<double>(n - 1));
    return values;
}

}  // namespace sample_pages
