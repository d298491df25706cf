// drawings of pages, as data for their script
#pragma once

#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/described/limits.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/figures/timelines.hpp"

#include <algorithm>  // clamp
#include <cmath>  // isfinite, isnan
#include <cstddef>  // size_t
#include <initializer_list>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// `unit` and `reach` as script.js names them, which scales the axis by what is drawn.
struct plot_axis {
    const char *unit = "none", *reach = "zero";
    double low = not_a_number, high = not_a_number;  // where they are "given"
};
inline const char* plot_unit_of(metric_unit unit) {
    switch (unit) {
        case metric_unit::time: return "seconds";
        case metric_unit::tokens_per_s: return "tok/s";
        case metric_unit::requests_per_s: return "req/s";
        case metric_unit::fraction: return "fraction";
        default: return "none";
    }
}

/// Numbers as JSON, as exact as a drawing can show them; null without a value.
inline std::string plot_numbers(const vector<double>& all) {
    std::string out;
    for (const double v : all) {
        out += out.empty() ? "" : ",";
        out += std::isnan(v) ? "null" : printed("%.5g", std::clamp(v, -1e300, 1e300));
    }
    return "[" + out + "]";
}
/// JSON that the script draws where it stands. A "<" would end the element.
inline std::string data_of_drawing(const std::string& json) {
    return joined({"<script type=\"application/json\">", filled_in(json, "<", "\\u003c"),
                   "</script>"});
}

/// The height of a limit in a drawing by percentile; NaN: it is a mean's.
inline double height_of(const statistic_data& s) {
    return s.kind == statistic_kind::percentile ? s.q
           : s.kind == statistic_kind::max      ? 1
           : s.kind == statistic_kind::min      ? 0
                                                : not_a_number;
}

/// A drawing as data. The script has a function for each shape, and says in words what is drawn.
class plot {
public:
    plot(const plot_axis& x, const plot_axis& y)
        : axes_(joined({"\"x\":", axis(x), ",\"y\":", axis(y)})) {}
    void add(const char* shape, std::initializer_list<std::string_view> words,
             const vector<double>& numbers) {
        std::string texts;
        for (const std::string_view w : words) fill(texts, "{,}{w}", {{"w", json_quoted(w)}});
        fill(shapes_, "{,}\n", {});
        shapes_ += joined({"[\"", shape, "\",[", texts, "],", plot_numbers(numbers), "]"});
    }
    /// NaN breaks the line. A point at the place of the one before is left out.
    void line(const char* style, const std::string& name, const vector<curve_point>& points) {
        add_points("line", {style, name}, points);
    }
    /// What is infinite stands at the end of its axis.
    void dot(const char* style, const curve_point& p) {
        if (std::isnan(p.x) || std::isnan(p.y)) return;
        add("dot", {style}, {p.x, p.y});
        has_values_ = true;
    }
    void cloud(const char* style, const vector<curve_point>& points) {
        add_points("cloud", {style}, points);
    }
    /// A limit on x ends in a ring at the height of its percentile, so that a curve that crosses
    /// it misses it; of a mean it is a mark on the axis.
    void limit(const slo& s, double x) {
        const std::string name = str(s.statistic.name);
        add("limit", {filled("{statistic} {at_most?<|>}= {limit}",
                             {{"statistic", name.substr(0, name.find('('))},
                              {"at_most", s.at_most}, {"limit", limit_text(s)}})},
            {x, height_of(s.statistic), s.at_most ? 1.0 : 0.0});
    }
    /// Returns "" if nothing has a value.
    std::string figure(const std::string& caption, const std::string& aside = "") const {
        if (!has_values_) return {};
        return filled("<figure><figcaption>{caption:x}[<span>{aside:x}</span>]</figcaption>{data}"
                      "</figure>\n",
                      {{"caption", caption}, {"aside", aside},
                       {"data", data_of_drawing(joined({"{", axes_, ",\"shapes\":[", shapes_,
                                                        "]}"}))}});
    }

private:
    static std::string axis(const plot_axis& a) {
        const std::string ends = std::isnan(a.low) ? "" : printed(",%.6g,%.6g", a.low, a.high);
        return joined({"[\"", a.unit, "\",\"", a.reach, "\"", ends, "]"});
    }
    void add_points(const char* shape, std::initializer_list<std::string_view> words,
                    const vector<curve_point>& points) {
        vector<double> all;
        bool has_one = false;
        for (const curve_point& p : points) {
            const std::size_t n = all.size();
            if (n > 1 && all[n - 2] == p.x && all[n - 1] == p.y) continue;
            all.push_back(p.x);
            all.push_back(p.y);
            has_one = has_one || (std::isfinite(p.x) && std::isfinite(p.y));
        }
        has_values_ = has_values_ || has_one;
        if (has_one) add(shape, words, all);
    }

    std::string axes_, shapes_{};
    bool has_values_ = false;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
