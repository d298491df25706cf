// what a server told of itself, in result.json
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/page_readings.hpp"
#include "core/dialects/server_names.hpp"
#include "core/measured/server_word.hpp"
#include "core/judging/witness.hpp"

#include <algorithm>  // any_of, min
#include <cfloat>  // DBL_MAX
#include <cmath>  // copysign, fabs, isinf
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
inline double reading_in(const picojson::value& told) {
    const double v = number_in(told);
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

/// Files of older versions have none.
inline server_word read_server_word(const picojson::value& repeat, long long window_from_ns) {
    server_word w;
    const picojson::value* const told = member(repeat, "server");
    if (!told) return w;
    w.is_read = true;
    w.of = string_member(*told, "of");
    w.problem = string_member(*told, "problem");
    w.has_both_ends = true_member(*told, "has_both_ends");
    w.from_s = number_member(*told, "from_unix_s");
    w.is_of_several = true_member(*told, "several_processes");
    const auto time_in = [&](const picojson::value& at) {
        const double ns = number_in(at);
        return window_from_ns + (std::fabs(ns) < 9e15 ? static_cast<long long>(ns) : 0);
    };
    for (const picojson::value& at : array_member(*told, "missed_at_ns"))
        w.missed_ns.push_back(time_in(at));
    // Older files tell how many there were: they may all have been in the window.
    if (!member(*told, "missed_at_ns"))
        w.missed_ns.assign(static_cast<std::size_t>(
                               std::min(large_count(*told, "missed"), 1000000ll)), window_from_ns);
    for (const picojson::value& at : array_member(*told, "at_ns")) {
        w.readings.push_back({});
        w.readings.back().at_ns = time_in(at);
    }
    // What is not as long as the times is not of them.
    const auto each = [&](const picojson::value& of, const char* name, auto&& put) {
        const picojson::array& all = array_member(of, name);
        if (all.size() != w.readings.size()) return;
        for (std::size_t i = 0; i < all.size(); ++i) put(w.readings[i], reading_in(all[i]));
    };
    each(*told, "began", [](page_reading& r, double v) { r.began = v; });
    for (std::size_t q = 0; q < quantity_count; ++q) {
        if (const picojson::value* values = member(*told, "values"))
            each(*values, quantity_names[q], [&](page_reading& r, double v) { r.values[q] = v; });
        if (const picojson::value* counts = member(*told, "counts"))
            each(*counts, quantity_names[q], [&](page_reading& r, double v) { r.counts[q] = v; });
    }
    if (const picojson::value* named = member(*told, "named");
        named && named->is<picojson::object>())
        for (const auto& [selector, values] : named->get<picojson::object>()) {
            w.selectors.push_back(selector);
            for (page_reading& r : w.readings) r.named.push_back(not_a_number);
            each(*named, selector.c_str(),
                 [](page_reading& r, double v) { r.named.back() = v; });
        }
    return w;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
