// causes in words
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/causes.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/decision.hpp"
#include "core/described/limits.hpp"

#include <algorithm>  // all_of, find_if
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <iterator>  // begin, end, size
#include <string>
#include <string_view>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

inline const char* to_string(whose w) {
    return name_at({"", "client", "plan", "server", "baseline_server", "baseline"}, w);
}
inline std::string prefix_of(whose w) {
    const char* const names[] = {"", "client", "the plan", "server", "baseline server", "baseline"};
    return filled("[{whose}: ]", {{"whose", names[static_cast<std::size_t>(w)]}});
}
inline std::string name_of(verdict_unit u) {
    return u == verdict_unit::none ? "repeat" : to_string(u);
}
/// The numbers of a cause by their names, and the verdict that it explains.
struct cause_values {
    const cause& why;
    const verdict_numbers& of;
    const statistic_data& statistic = of.objective.statistic;
    double operator[](std::string_view name) const { return why[name]; }
    std::string value(std::string_view name) const {
        return verdict_value_text(of, (*this)[name]);
    }
};

/// "305 ms, over the limit".
inline std::string all_side_text(const cause_values& c) {
    const double all = c["all"];
    const bool is_over = all > c.of.limit;
    const bool is_met = c.of.objective.at_most ? !is_over : all >= c.of.limit;
    const char* side = is_met ? "within" : is_over ? "over" : "under";
    return filled("{all}, {side} the limit", {{"all", c.value("all")}, {"side", side}});
}
/// "the typical repeat: 292 ms", "the first 3 repeats: 292 ms"; "before: 292 ms" of one value.
inline std::string before_text(const cause_values& c) {
    const double first = c["first"];
    if (std::isnan(first)) return "before: " + c.value("other");
    return filled("the [{is_typical?}typical ][{first?}first ][{several?}{first:0} ]{unit}"
                  "{several?s}: {value}",
                  {{"is_typical", first == 0}, {"first", first}, {"several", first > 1},
                   {"unit", name_of(c.of.counted_in)}, {"value", c.value("other")}});
}
/// "9 cut off, 6 unreadable, 2 failed".
inline std::string kinds_text(const cause_values& c) {
    std::string kinds;
    for (const auto& [name, words] : {std::pair{"cut_off", "cut off"},
                                      std::pair{"unreadable", "unreadable"},
                                      std::pair{"failed", "failed"}})
        if (const double n = c[name]; n > 0)
            fill(kinds, "{,}{n:0} {kind}", {{"n", n}, {"kind", words}});
    return kinds;
}
/// "carries at least 11.4 req/s and less than 12.6 req/s".
inline std::string carried_text(const cause_values& c) {
    const double low = c["low"], high = c["high"];
    const metric_id unit = c.statistic.metric;
    const bool has_low = low > 0, has_high = high < infinity;
    if (!has_low && !has_high) return "no load is shown to be carried, and none to be too much";
    return filled("carries [{has_low?}at least {low}][{has_both?} and ]"
                  "[{has_high?}less than {high}]",
                  {{"has_low", has_low}, {"low", {unit, low}}, {"has_both", has_low && has_high},
                   {"has_high", has_high}, {"high", {unit, high}}});
}
inline std::string no_limit_text(const cause_values& c) {
    const bool is_open = c.of.outcome == verdict::fail || c.of.outcome == verdict::inconclusive;
    return is_open && c.of.limit > c["own"] ? ", and no limit above that can be met" : "";
}
/// "60 % \"large\", 40 % \"small\"": the two most frequent models.
inline std::string model_shares_text(const cause_values& c) {
    const std::size_t apart = c.why.text.find('\x1f');
    if (apart == std::string::npos) return c.why.text;
    const auto share = [&](const char* of, const std::string& name) {
        return printed("%.3g %% ", 100 * c[of] / c["completed"]) +
               (name.empty() ? "the name asked for" : "\"" + name + "\"");
    };
    return share("first", c.why.text.substr(0, apart)) + ", " +
           share("second", c.why.text.substr(apart + 1));
}
inline metric_id metric_in(const cause_values& c, std::string_view name = "metric") {
    return static_cast<metric_id>(c[name]);
}

/// Texts that sentences have of a cause's numbers, text and objective.
struct derived_value {
    const char* name;
    const char* numbers;  // that it is made of
    std::string (*text)(const cause_values&);
};
using in_cause = const cause_values&;
inline constexpr derived_value derived_values[] = {
    {"words", "", [](in_cause c) { return c.why.text; }},
    {"statistic", "", [](in_cause c) { return str(c.statistic.name); }},
    {"limit", "", [](in_cause c) { return limit_text(c.of.objective); }},
    {"some_completed", "requests,completed",
     [](in_cause c) {
         return printed("%.0f of %.0f completed requests", c["requests"], c["completed"]);
     }},
    {"metric_name", "metric", [](in_cause c) { return std::string(facts_of(metric_in(c)).name); }},
    {"needed_values", "needs",
     [](in_cause c) { return std::string(needs_text(facts_of(metric_in(c, "needs")).needs)); }},
    {"first_third", "first",
     [](in_cause c) { return value_text(c.statistic.of, c["first"]); }},
    {"last_third", "last", [](in_cause c) { return value_text(c.statistic.of, c["last"]); }},
    {"least_value", "least",
     [](in_cause c) { return value_text(c.statistic.metric, c["least"]); }},
    {"a_run", "repeats",
     [](in_cause c) { return std::string(c["repeats"] == 1 ? "a run" : "runs"); }},
    {"carried_load", "low",
     [](in_cause c) { return value_text(c.statistic.metric, c["low"]); }},
    {"too_much", "high", [](in_cause c) { return value_text(c.statistic.metric, c["high"]); }},
    {"better_limit", "better",
     [](in_cause c) { return limit_to_write(c.of.objective, c["better"]); }},
    {"model_shares", "first,second,completed", model_shares_text},
    {"all_side", "all", all_side_text},
    {"before", "other,first", before_text},
    {"kinds", "cut_off,unreadable,failed", kinds_text},
    {"own_is_known", "own",
     [](in_cause c) { return std::string(std::isnan(c["own"]) ? "" : "yes"); }},
    {"no_limit", "own", no_limit_text},
    {"carried", "low,high", carried_text},
};

/// Calls `each(name)` for each place of a sentence.
template <class Each>
constexpr void each_place(std::string_view says, Each&& each) {
    for (std::size_t at = says.find('{'); at != says.npos; at = says.find('{', at + 1))
        each(name_of_place(says.substr(at + 1, says.find('}', at) - at - 1)));
}
/// Whether the cause has the numbers that its sentence names.
constexpr bool has_its_numbers(const cause_row& row) {
    bool has_all = true;
    each_place(row.says, [&](std::string_view needed) {
        for (const derived_value& d : derived_values)
            if (d.name == needed) needed = d.numbers;
        while (!needed.empty()) has_all &= row.place_of(taken_part(needed, ",")) < row.count();
    });
    return has_all;
}
static_assert(std::all_of(cause_table.begin(), cause_table.end(), has_its_numbers));

/// Returns a sentence without its full stop, "" without a cause. `of` is the verdict it explains.
inline std::string described(const cause& c, const verdict_numbers& of = {}) {
    const cause_values numbers{c, of};
    const std::string_view says = row_of(c.what).says;
    vector<std::string> texts;
    texts.reserve(std::size(derived_values));  // places refer to them
    vector<named_filling> values;
    each_place(says, [&](std::string_view name) {
        const auto* const derived =
            std::find_if(std::begin(derived_values), std::end(derived_values),
                         [&](const derived_value& d) { return d.name == name; });
        if (derived == std::end(derived_values)) values.push_back({name, numbers[name]});
        else values.push_back({name, texts.emplace_back(derived->text(numbers))});
    });
    std::string out = prefix_of(c.of);
    fill(out, says, values.data(), values.size());
    return out;
}
inline std::string described(const vector<cause>& why, const verdict_numbers& of) {
    std::string out;
    for (const cause& c : why) fill(out, "{;}{sentence}", {{"sentence", described(c, of)}});
    return out;
}
/// The same for an objective that may have no verdict yet.
inline std::string described(const cause& c, const slo& s) {
    verdict_numbers of;
    of.objective = s;
    return described(c, of);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
