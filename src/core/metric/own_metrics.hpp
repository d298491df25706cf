// user-defined metrics
// The metrics that a user's function reads decide what invalidates its verdicts. Synthetic requests
// show them before the load, and each measured request shows those that it alone leads to.
#pragma once

#include "api/metrics.hpp"
#include "api/own_metrics.hpp"
#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"

#include <algorithm>  // all_of
#include <cmath>  // isnan
#include <cstdint>  // uint64_t
#include <exception>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

static_assert(static_cast<int>(first_own_metric) < 64, "row.reads has a bit for each");
/// The function of a row reads this metric of ours.
inline void add_read(own_metric_row& row, metric_id m) {
    metric_facts& f = row.facts;
    const metric_facts& more = facts_of(m);
    row.reads |= std::uint64_t{1} << static_cast<int>(m);
    for (bool metric_facts::*is :
         {&metric_facts::is_of_gaps, &metric_facts::is_of_decoding, &metric_facts::counts_output,
          &metric_facts::needs_stream, &metric_facts::is_of_prefill,
          &metric_facts::needs_event_times, &metric_facts::is_affected_by_lateness})
        f.*is = f.*is || more.*is;
    if (more.needs == value_needs::prompt_tokens) f.needs = value_needs::prompt_tokens;
}
inline void add_read(own_metric_row& row, counted what) {
    if (what == counted::prompt) row.facts.needs = value_needs::prompt_tokens;
    if (what == counted::output) row.facts.counts_output = true;
}
inline bool is_read(const own_metric_row& row, counted what) {
    return what == counted::prompt   ? row.facts.needs == value_needs::prompt_tokens
           : what == counted::output ? row.facts.counts_output
                                     : true;
}

/// A request that records which metrics a user's function reads.
struct synthetic_request final : request_source {
    own_metric_row& row;
    record r{};
    long long many;
    synthetic_request(own_metric_row& noted_in, int events) : row(noted_in), many(events - 1) {
        r.events = events;
        r.prompt_tokens = 100;
        r.output_tokens = 2 * events;
        r.cached_tokens = 0;
        r.text_bytes = 8 * events;
        r.finish_reason = "length";
    }
    double value(metric_id m) override {
        add_read(row, m);
        return many == 0 && facts_of(m).is_of_decoding ? not_a_number : 0.1;
    }
    long long gaps() override {
        value(metric_id::itl);
        return many;
    }
    double gap(long long k) override { return k >= 0 && k < gaps() ? 0.1 : not_a_number; }
    const record& read(counted what) override {
        add_read(row, what);
        return r;
    }
    const char* label() override { return ""; }
};

inline bool is_metric_name(const std::string& name) {
    return !name.empty() && name.size() <= 40 && name[0] >= 'a' && name[0] <= 'z' &&
           name != "baseline" && std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
           });
}
inline constexpr const char* metric_name_text =
    "a name has up to 40 of the characters a-z, 0-9 and _, a letter first, and is not \"baseline\"";
/// Returns what is wrong with the function of a metric, "" if nothing is; notes what it reads.
inline std::string problem_of_function(own_metric_row& row) {
    if (!row.value) return "there is no function";
    std::string problem;
    bool has_value = false;
    for (const int events : {64, 1}) {
        synthetic_request seen(row, events);
        try {
            const double v = row.value(request_view(seen));
            has_value = is_value_of_user(v) || has_value;
            if (!std::isnan(v) && !is_value_of_user(v))
                problem =
                    printed("its function gives %g: values run from 0 to %g", v, max_value_of_user);
        } catch (const std::exception& e) {
            problem = "its function throws: " + printable(e.what(), 200);
        } catch (...) {
            problem = "its function throws";
        }
    }
    if (problem.empty() && !has_value)
        problem = "its function gives NaN for a usual request, of 64 events and 128 tokens";
    return problem;
}
/// Never throws, since metrics are made before main(). Errors are reported where the metric is
/// used.
inline own_metric_row own_metric_row_of(const std::string& name, metric_id like,
                                        double (*value)(const request_view&)) {
    own_metric_row row{.name = name, .value = value, .facts = {
                           .name = "", .unit = facts_of(like).unit, .side = facts_of(like).side,
                           .needs = value_needs::own_value}};
    row.problem = is_metric_name(name) ? problem_of_function(row) : metric_name_text;
    return row;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
