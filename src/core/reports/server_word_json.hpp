// what a server told of itself, in result.json
#pragma once

#include "core/base/checked_json.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/page_readings.hpp"
#include "core/dialects/server_names.hpp"
#include "core/measured/server_word.hpp"
#include "core/judging/witness.hpp"

#include <algorithm>  // any_of
#include <cfloat>  // DBL_MAX
#include <cmath>  // copysign, fabs, isinf, isnan
#include <cstddef>  // size_t
#include <string>
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// JSON has no infinity: it is the largest number that there is, as which nothing is measured.
inline std::string reading_json(double v) {
    return json_number(std::isinf(v) ? std::copysign(DBL_MAX, v) : v);
}
inline double reading_in(double v) {
    return std::fabs(v) == DBL_MAX ? std::copysign(infinity, v) : v;
}

/// The values of all readings by their quantity, those alone that a reading has; on one line each,
/// they are for programs.
template <class Values>
void write_series(json_writer& j, const char* name, const server_word& w, Values&& values) {
    j.key(name).open('{');
    for (std::size_t q = 0; q < quantity_count; ++q) {
        const auto is_told = [&](const page_reading& r) { return values(r)[q] == values(r)[q]; };
        if (!std::any_of(w.readings.begin(), w.readings.end(), is_told)) continue;
        std::string line;
        for (const page_reading& r : w.readings)
            line += (line.empty() ? "" : ",") + reading_json(values(r)[q]);
        j.key(quantity_names[q]).raw("[" + line + "]");
    }
    j.close();
}

/// Times in ns since the window began.
inline void write_server_word(json_writer& j, const server_word& w, const cross_check& c,
                              long long window_from_ns) {
    j.key("server").open('{').field("of", w.of).field("missed", w.missed_ns.size());
    j.field("problem", w.problem).field("has_both_ends", w.has_both_ends);
    j.field("from_unix_s", w.from_s).field("several_processes", w.is_of_several);
    if (c.is_made)
        j.key("cross_check")
            .open('{')
            .field("requests_sent", c.sent)
            .field("requests_told", c.requests_told)
            .field("output_tokens", c.tokens)
            .field("output_tokens_told", c.tokens_told)
            .field("prompt_tokens", c.prompt_tokens)
            .field("prompt_tokens_told", c.prompt_tokens_told)
            .close();
    std::string times, beginnings;
    for (const page_reading& r : w.readings) {
        times += (times.empty() ? "" : ",") + std::to_string(r.at_ns - window_from_ns);
        beginnings += (beginnings.empty() ? "" : ",") + json_number(r.began);
    }
    std::string failures;
    for (const long long at_ns : w.missed_ns)
        failures += (failures.empty() ? "" : ",") + std::to_string(at_ns - window_from_ns);
    j.key("missed_at_ns").raw("[" + failures + "]");
    j.key("at_ns").raw("[" + times + "]").key("began").raw("[" + beginnings + "]");
    write_series(j, "values", w, [](const page_reading& r) -> auto& { return r.values; });
    write_series(j, "counts", w, [](const page_reading& r) -> auto& { return r.counts; });
    j.key("named").open('{');
    for (std::size_t i = 0; i < w.selectors.size(); ++i) {
        std::string line;
        for (const page_reading& r : w.readings)
            line += (line.empty() ? "" : ",") + reading_json(r.named[i]);
        j.key(w.selectors[i]).raw("[" + line + "]");
    }
    j.close().close();
}

inline constexpr double most_missed = 1e6;  // readings of a repeat

/// Files of older versions have none.
inline server_word read_server_word(const checked_object& repeat, long long window_from_ns) {
    server_word w;
    if (!repeat.has("server")) return w;
    const checked_object told = repeat.at("server");
    w.is_read = true;
    w.of = told.text("of");
    w.problem = told.text("problem");
    w.has_both_ends = told.is_true("has_both_ends");
    w.from_s = told.number("from_unix_s", -most_count, most_count);
    w.is_of_several = told.is_true("several_processes");
    const auto times = [&](const char* name, auto&& put) {
        told.numbers(name, -latest_time_ns, latest_time_ns, [&](std::size_t, double ns) {
            put(window_from_ns + (std::isnan(ns) ? 0 : static_cast<long long>(ns)));
        });
    };
    times("missed_at_ns", [&](long long at) { w.missed_ns.push_back(at); });
    // Older files tell how many there were: they may all have been in the window.
    if (!told.has("missed_at_ns"))
        w.missed_ns.assign(told.whole("missed", 0, most_missed, std::size_t{0}), window_from_ns);
    times("at_ns", [&](long long at) {
        w.readings.push_back({});
        w.readings.back().at_ns = at;
    });
    // What is not as long as the times is not of them.
    const auto each = [&](const checked_object& of, const char* name, auto&& put) {
        if (array_member(of.value(), name).size() != w.readings.size()) return;
        of.numbers(name, -DBL_MAX, DBL_MAX,
                   [&](std::size_t i, double v) { put(w.readings[i], reading_in(v)); });
    };
    each(told, "began", [](page_reading& r, double v) { r.began = v; });
    const checked_object values = told.at("values"), counts = told.at("counts");
    for (std::size_t q = 0; q < quantity_count; ++q) {
        each(values, quantity_names[q], [&](page_reading& r, double v) { r.values[q] = v; });
        each(counts, quantity_names[q], [&](page_reading& r, double v) { r.counts[q] = v; });
    }
    const checked_object named = told.at("named");
    if (!named.value().is<picojson::object>()) return w;
    for (const auto& [selector, ignored] : named.value().get<picojson::object>()) {
        w.selectors.push_back(selector);
        for (page_reading& r : w.readings) r.named.push_back(not_a_number);
        each(named, selector.c_str(), [](page_reading& r, double v) { r.named.back() = v; });
    }
    return w;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
