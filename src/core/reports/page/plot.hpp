// the report page: drawings
#pragma once

#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
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

/// The scale of an axis. `nines` is for quantiles: p90 to p99 is as long as p99 to p99.9.
struct plot_scale {
    enum class shape { linear, logarithmic, nines };
    shape how = shape::linear;
    double low = 0, high = 1;
    const char* name() const { return name_at({"linear", "log", "nines"}, how); }
};
enum class plot_unit {
    seconds, elapsed, per_second, tokens_per_second, fraction, percentile, named, day, none
};
inline const char* unit_name(plot_unit u) {  // as the script names it
    return name_at({"seconds", "elapsed", "req/s", "tok/s", "fraction", "percentile", "named",
                    "day", "none"}, u);
}
inline plot_unit plot_unit_of(metric_unit unit) {
    switch (unit) {
        case metric_unit::time: return plot_unit::seconds;
        case metric_unit::tokens_per_s: return plot_unit::tokens_per_second;
        case metric_unit::requests_per_s: return plot_unit::per_second;
        case metric_unit::fraction: return plot_unit::fraction;
        default: return plot_unit::none;
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
/// JSON beside the SVG that the script draws by it. A "<" would end the element.
inline std::string data_of_drawing(const std::string& json) {
    return joined({"<script type=\"application/json\">", filled_in(json, "<", "\\u003c"),
                   "</script>"});
}

/// Along which axis a reader asks for values: over the load or the time, or at a percentile.
enum class read_along : unsigned char { x, y };

/// A drawing as data: script.js has a function for each shape.
class plot {
public:
    plot(const plot_scale& x, plot_unit x_unit, const plot_scale& y, plot_unit y_unit)
        : axes_(joined({"\"x\":", axis(x, x_unit), ",\"y\":", axis(y, y_unit)})) {}
    /// NaN breaks the line.
    void line(const char* style, const std::string& name, const vector<curve_point>& points) {
        if (!points.empty()) add("line", {style, name}, numbers_of(points));
    }
    void dot(const char* style, const curve_point& p) { add("dot", {style}, {p.x, p.y}); }
    void cloud(const char* style, const vector<curve_point>& points) {
        if (!points.empty()) add("cloud", {style}, numbers_of(points));
    }
    /// Draws a limit on x. Of a quantile it ends in a ring at its height, so that a curve that
    /// crosses it misses it; of a mean it is a mark on the axis.
    void limit(double x, double q, const slo& of, const std::string& words) {
        add("limit", {words}, {x, q, of.at_most ? 1.0 : 0.0});
    }
    void limit_across(double y, const std::string& words) { add("across", {words}, {y}); }
    void stretch(double from, double to) { add("stretch", {}, {from, to}); }
    /// Draws a value and its interval at the height of its quantile; of a mean, above the axis.
    void interval(double x, double low, double high, double q) {
        if (std::isfinite(x)) add("interval", {}, {x, low, high, q});
    }
    /// `alt` describes the drawing to readers who cannot see it.
    std::string figure(const std::string& caption, const std::string& alt,
                       read_along axis = read_along::x) const {
        const std::string data = joined({"{", axes_, axis == read_along::y ? ",\"by\":\"y\"" : "",
                                         ",\"shapes\":[", shapes_, "]}"});
        return filled("<figure><figcaption>{caption}</figcaption><svg class=\"plot\" role=\"img\" "
                      "viewBox=\"0 0 300 162\" aria-label=\"{alt:x}\"></svg>{data}</figure>\n",
                      {{"caption", caption}, {"alt", alt}, {"data", data_of_drawing(data)}});
    }

protected:
    void add(const char* shape, std::initializer_list<std::string_view> words,
             const vector<double>& numbers) {
        std::string texts;
        for (const std::string_view w : words) fill(texts, "{,}{w}", {{"w", json_quoted(w)}});
        fill(shapes_, "{,}\n", {});
        shapes_ += joined({"[\"", shape, "\",[", texts, "],", plot_numbers(numbers), "]"});
    }

private:
    static std::string axis(const plot_scale& s, plot_unit u) {
        return printed("[\"%s\",%.6g,%.6g,\"%s\"]", s.name(), s.low, s.high, unit_name(u));
    }
    /// A point at the place of the one before is left out.
    static vector<double> numbers_of(const vector<curve_point>& points) {
        vector<double> all;
        for (const curve_point& p : points) {
            const std::size_t n = all.size();
            if (n > 1 && all[n - 2] == p.x && all[n - 1] == p.y) continue;
            all.push_back(p.x);
            all.push_back(p.y);
        }
        return all;
    }

    std::string axes_, shapes_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
