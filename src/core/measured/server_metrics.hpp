// server metrics of a repeat
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/metric/table.hpp"
#include "core/server_metrics/quantities.hpp"

#include <algorithm>  // find, max, max_element, min, min_element
#include <cmath>  // fabs, isnan
#include <cstddef>  // size_t
#include <cstdlib>  // llabs
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The readings of a server's pages for one repeat: one before its load, one after it and one per
/// second in between.
struct server_metrics {
    std::string of{};       // the server's name, "" if unknown
    bool is_read = false;   // there are pages of the server or an exporter
    vector<std::string> selectors{};  // of page_reading::named
    vector<page_reading> readings{};
    vector<long long> missed_ns{};  // times of failed readings
    std::string problem{};  // of the last failure, or why there are no pages
    bool has_both_ends = false;  // readings before the first and after the last request
    double from_s = not_a_number;  // time of the first reading by the server, seconds since 1970
    bool is_of_several = false;  // several processes answer in turns
};

/// Our requests and tokens in a repeat, and the server's counts; NaN: not reported.
struct cross_check {
    double sent = 0, finished = 0;         // our requests: all, and finished ones
    double prompt_tokens = 0, tokens = 0;  // of finished ones, if all report them
    double prompt_tokens_known = 0;        // of those that report it
    double cached_tokens = 0, cached_reported = not_a_number;  // of finished ones, likewise
    double requests_reported = not_a_number, prompt_tokens_reported = not_a_number,
           tokens_reported = not_a_number;
    double unfinished_before = 0;  // ours of earlier repeats that it may have finished since
    double at_once = 0, at_once_reported = not_a_number;  // in flight: maximum, typical value
    double typically_at_once = not_a_number;  // of ours, when the page with all queues was read
    bool is_made = false;
};

/// Drops values of gauges that lost one of their series, as they cover only the others.
inline void drop_partial_gauges(vector<page_reading>& readings) {
    for (std::size_t q = 0; q < quantity_count; ++q) {
        std::size_t most = 0;
        for (page_reading& r : readings) {
            if (r.series[q] < most) r.values[q] = not_a_number;
            most = std::max(most, r.series[q]);
        }
    }
}

/// Stages of a server, and workers through which each request goes, as of prefill and of decoding,
/// count each request once each: the same number, and not fewer than ours. Then each counter is the
/// one of the place where it grew most. Replicas share our requests, so each has fewer.
inline void count_stages_once(vector<page_reading>& readings, double finished) {
    if (readings.size() < 2 || !(finished > 0)) return;
    const auto grown = [&](std::size_t q) {
        std::map<std::string, double> by;
        for (const auto& [place, last] : readings.back().places[q])
            if (const auto first = readings.front().places[q].find(place);
                first != readings.front().places[q].end() && last > first->second)
                by[place] = last - first->second;
        return by;
    };
    const auto done = grown(static_cast<std::size_t>(server_quantity::requests_done));
    double most = 0, least = infinity;
    for (const auto& [place, by] : done) {
        most = std::max(most, by);
        least = std::min(least, by);
    }
    if (done.size() < 2 || least < most - std::max(1.0, 0.01 * most) || most < 0.98 * finished)
        return;
    for (std::size_t q = 0; q < quantity_count; ++q) {
        const auto by = grown(q);
        const auto largest = std::max_element(
            by.begin(), by.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        if (largest == by.end()) continue;
        for (page_reading& r : readings)
            if (const auto at = r.places[q].find(largest->first); at != r.places[q].end())
                r.values[q] = at->second;
            else r.values[q] = not_a_number;
    }
}

/// From one reading to a later one.
struct reading_span {
    const page_reading* from;
    const page_reading* to;
    /// Of a counter; NaN where it fell.
    double change(server_quantity q) const {
        const double by = to->value(q) - from->value(q);
        return by >= 0 ? by : not_a_number;
    }
    double change_of_count(server_quantity q) const { return to->count(q) - from->count(q); }
    double seconds() const { return static_cast<double>(to->at_ns - from->at_ns) * 1e-9; }
};
inline std::optional<reading_span> whole_span(const server_metrics& w) {
    if (w.readings.size() < 2) return {};
    return reading_span{&w.readings.front(), &w.readings.back()};
}
/// Returns the readings nearest to the ends of a window, or all if those coincide.
inline std::optional<reading_span> span_over(const server_metrics& w, const time_interval& when) {
    if (w.readings.size() < 2) return {};
    const auto nearest = [&](long long t) {
        return &*std::min_element(w.readings.begin(), w.readings.end(),
                                  [&](const page_reading& a, const page_reading& b) {
                                      return std::llabs(a.at_ns - t) < std::llabs(b.at_ns - t);
                                  });
    };
    const page_reading *a = nearest(when.from_ns()), *b = nearest(when.to_ns());
    return a == b ? *whole_span(w) : reading_span{std::min(a, b), std::max(a, b)};
}

/// Whether counters of requests fell.
inline bool have_fallen(const page_reading& before, const page_reading& now) {
    const auto fell = [&](server_quantity q) { return now.value(q) < before.value(q); };
    return fell(server_quantity::requests_done) || fell(server_quantity::prompt_tokens) ||
           fell(server_quantity::generation_tokens);
}
/// Whether two start times are one: some exporters compute it from the uptime, or round it.
inline bool is_one_start(double a, double b) { return std::fabs(a - b) <= 2; }
/// Whether a process may have begun since the first reading. Dates and starts are in whole seconds.
inline bool may_have_begun_in(const server_metrics& w, double began_s) {
    return !(began_s < w.from_s - 2);
}

/// The process behind a page, by the start of its counters or by counters that fell. A restart
/// begins a new process; an older one is another server at the address.
enum class page_history : unsigned char { one_process, restarted, several_servers };
inline page_history history_of(const server_metrics& w) {
    vector<double> beginnings;
    int falls = 0, moves = 0;
    bool returned = w.is_of_several, is_new = false;
    for (std::size_t i = 0; i < w.readings.size(); ++i) {
        const page_reading& r = w.readings[i];
        if (!std::isnan(r.began)) {
            const bool is_known =
                any_of(beginnings, [&](double b) { return is_one_start(b, r.began); });
            const bool is_last = is_known && is_one_start(beginnings.back(), r.began);
            returned = returned || (is_known && !is_last);
            is_new = is_new || (!is_known && !beginnings.empty() && may_have_begun_in(w, r.began));
            if (!is_known) beginnings.push_back(r.began);
            else if (is_last) beginnings.back() = r.began;  // it may drift
            moves += i > 0 && r.began != w.readings[i - 1].began;
        }
        falls += i > 0 && have_fallen(w.readings[i - 1], r);
    }
    if (returned) return page_history::several_servers;
    if (beginnings.size() > 1)
        return is_new ? page_history::restarted : page_history::several_servers;
    if (falls == 0) return page_history::one_process;
    // A process with one start time has counters that fall for other reasons. Several may have
    // started together.
    if (moves > 1 || (moves == 1 && !may_have_begun_in(w, beginnings.back())))
        return page_history::several_servers;
    if (beginnings.size() == 1 && moves == 0) return page_history::one_process;
    return falls == 1 ? page_history::restarted : page_history::several_servers;
}

/// The quantity of a metric, none for several or for any series.
inline std::optional<server_quantity> quantity_of(metric_id m) {
    switch (m) {
    case metric_id::queue_time: return server_quantity::queue_time;
    case metric_id::server_prefill_time: return server_quantity::prefill_time;
    case metric_id::server_decode_time: return server_quantity::decode_time;
    case metric_id::queued_requests: return server_quantity::waiting;
    case metric_id::running_requests: return server_quantity::running;
    case metric_id::kv_cache_usage: return server_quantity::kv_usage;
    case metric_id::preemptions: return server_quantity::preemptions;
    case metric_id::prefix_cache_hits: return server_quantity::prefix_queries;
    case metric_id::acceptance_length: return server_quantity::drafts;
    default: return {};
    }
}
/// A count of work, and the quantity of pages that it is of.
struct count_name {
    const char* name;
    server_quantity of;
};
inline constexpr count_name count_names[] = {  // in the order of work_count
    {"server_requests", server_quantity::requests_done},
    {"prefilled_tokens", server_quantity::computed_tokens},
    {"cached_tokens", server_quantity::prefix_hits},
    {"generated_tokens", server_quantity::generation_tokens},
    {"engine_steps", server_quantity::steps},
    {"drafted_tokens", server_quantity::draft_tokens},
    {"accepted_tokens", server_quantity::accepted_tokens},
    {"preemptions", server_quantity::preemptions}};
inline std::optional<server_quantity> quantity_counted(const statistic_data& what) {
    for (const count_name& c : count_names)
        if (str(what.name) == c.name) return c.of;
    return {};
}
/// The series that an objective names, "" for none: `counted("name{label=\"value\"}")`.
inline std::string series_in(const statistic_data& what) {
    if (what.metric == metric_id::server_metric) return str(what.gauge);
    constexpr std::string_view before = "counted(\"", after = "\")";
    const std::string name = str(what.name);
    const bool is_one = is_of_work(what.metric) && name.starts_with(before) &&
                        name.ends_with(after) && name.size() > before.size() + after.size();
    return is_one ? name.substr(before.size(), name.size() - before.size() - after.size()) : "";
}
inline vector<std::string> named_series(const vector<slo>& slos) {
    vector<std::string> names;
    for (const slo& s : slos) {
        const std::string name = series_in(s.statistic);
        if (name.empty()) continue;
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
}
inline bool is_of_gauge(metric_id m) {
    return m == metric_id::queued_requests || m == metric_id::running_requests ||
           m == metric_id::kv_cache_usage || m == metric_id::server_metric;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
