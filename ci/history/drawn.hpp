// What the page of a history draws, as values.
#pragma once

#include "core/base/text.hpp"
#include "core/history/cohort.hpp"
#include "core/history/line.hpp"
#include "core/history/series.hpp"
#include "core/metric/table.hpp"
#include "core/metric/value_text.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace history_tool {

using namespace llmbench::detail;

inline double mean_of_repeats(const std::vector<double>& repeats) {
    double logs = 0;
    for (const double v : repeats) logs += std::log(v);
    return std::exp(logs / static_cast<double>(repeats.size()));
}

/// Days since 1970-01-01 of "2026-11-23...", by the proleptic Gregorian calendar.
inline double day_number(const std::string& at) {
    const auto digits = [&](std::size_t from, std::size_t n) {
        return parsed_number<int>(std::string_view(at).substr(from, n)).value_or(1);
    };
    // Months from March on, so that a leap day is the last of its year.
    const int m = (digits(5, 2) + 9) % 12, y = digits(0, 4) - (m >= 10), d = digits(8, 2);
    return 365.0 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + d - 719469;
}

/// What changed from one night to the next, of facts that are watched: "driver 570.86 -> 575.1".
inline std::string changes(const std::vector<named_text>& was, const std::vector<named_text>& is) {
    const auto value = [](const std::vector<named_text>& all, const std::string& name) {
        const auto same = [&](const named_text& f) { return f.first == name; };
        const auto at = std::find_if(all.begin(), all.end(), same);
        return at == all.end() ? std::string("unknown") : at->second;
    };
    std::string words;
    for (const auto& [name, now] : is)
        if (const std::string before = value(was, name); before != now)
            words += (words.empty() ? "" : ", ") + name + " " + before + " -> " + now;
    return words;
}

/// What a result.json of today says of one statistic.
struct todays {
    std::string slo{};
    double limit = not_a_number, value = not_a_number, low = not_a_number, high = not_a_number;
    std::string outcome{};
};
struct drawn_gate {
    std::string gate{}, cohort_id{};
    cohort in{};
    bool is_described = false;
    std::vector<history_run> nights{};  // of the cohort
    std::vector<history_series> series{};
    std::map<std::string, std::size_t> elsewhere{};  // nights of other cohorts
    std::map<std::string, todays> now{};             // by statistic
};

/// The statistics of the nights, those of the newest one first, in its order.
inline std::vector<std::string> statistics_of(const std::vector<const history_run*>& nights) {
    std::vector<std::string> names;
    for (auto n = nights.rbegin(); n != nights.rend(); ++n)
        for (const named_repeats& v : (*n)->values)
            if (std::find(names.begin(), names.end(), v.name) == names.end())
                names.push_back(v.name);
    return names;
}

/// Each gate in the cohort of its newest run, in the order of the gates' names.
inline std::vector<drawn_gate> gates_of(const history_lines& lines,
                                        const std::map<std::string, cohort>& cohorts) {
    std::map<std::string, std::string> newest;  // cohort by gate
    for (const history_run& r : lines.runs)
        if (is_valid_run(r)) newest[r.gate] = r.cohort;
    std::vector<drawn_gate> gates;
    for (const auto& [gate, id] : newest) {
        drawn_gate g{.gate = gate, .cohort_id = id};
        if (const auto at = cohorts.find(id); at != cohorts.end()) {
            g.in = at->second;
            g.is_described = true;
        }
        const std::vector<const history_run*> nights = nights_of(lines, gate, id);
        for (const history_run* r : nights) g.nights.push_back(*r);
        for (const std::string& statistic : statistics_of(nights))
            g.series.push_back(series_of(lines, gate, id, statistic));
        g.elsewhere = nights_by_cohort(lines, gate);
        g.elsewhere.erase(id);
        gates.push_back(std::move(g));
    }
    return gates;
}

/// "12.3 ms"
inline std::string value_words(const std::string& statistic, double v) {
    const std::size_t open = statistic.find('('), from = open == std::string::npos ? 0 : open + 1;
    const std::string metric = statistic.substr(from, statistic.find(')') - from);
    for (const metric_facts& m : metric_table)
        if (metric == m.name) return value_text(m.id, v);
    return printed("%.4g", v);
}

}  // namespace history_tool
