// the report page: drawings
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/figures/timelines.hpp"

#include <algorithm>  // clamp, max
#include <cmath>  // ceil, fabs, floor, isfinite, isinf, isnan, log10, pow
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
    double bent(double v) const {
        if (how == shape::logarithmic) return std::log10(std::max(v, low));
        if (how == shape::nines) return -std::log10(std::max(1 - v, 1e-9));
        return v;
    }
    /// Returns 0 at `low`, 1 at `high`; other values are clamped.
    double place(double v) const {
        const double length = bent(high) - bent(low);
        if (!(length > 0)) return 0.5;
        return std::clamp((bent(v) - bent(low)) / length, 0.0, 1.0);
    }
    const char* name() const { return name_at({"linear", "log", "nines"}, how); }
};

/// Returns up to `most` + 1 round values within the scale.
inline vector<double> ticks_of(const plot_scale& s, int most) {
    vector<double> ticks;
    const bool by_logarithm = s.how == plot_scale::shape::logarithmic;
    if (!(s.high > s.low) || (by_logarithm && !(s.low > 0))) return {s.low};
    if (by_logarithm) {
        const double decades = std::log10(s.high / s.low);
        const int each = std::max(1, static_cast<int>(std::ceil(decades / most)));
        const int first = static_cast<int>(std::floor(std::log10(s.low)));
        for (int e = first; std::pow(10, e) <= s.high; e += each)
            for (const double digit : {1.0, 2.0, 5.0}) {
                const double v = digit * std::pow(10, e);
                const bool wanted = digit == 1 || decades < 1.8;
                if (wanted && v >= s.low * (1 - 1e-9) && v <= s.high * (1 + 1e-9))
                    ticks.push_back(v);
            }
        return ticks;
    }
    const double step = round_step((s.high - s.low) / most);
    const auto first = static_cast<long long>(std::ceil(s.low / step - 1e-9));
    for (long long k = first; static_cast<double>(k) * step <= s.high + step * 1e-9; ++k)
        ticks.push_back(static_cast<double>(k) * step);
    return ticks;
}

enum class plot_unit {
    seconds, elapsed, per_second, tokens_per_second, fraction, percentile, named, none
};
inline const char* unit_name(plot_unit u) {  // as the script names it
    return name_at({"seconds", "elapsed", "req/s", "tok/s", "fraction", "percentile", "none",
                    "none"}, u);
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
inline std::string tick_text(plot_unit u, double v) {
    if (u == plot_unit::seconds) return v == 0 ? "0" : time_text(v);
    if (u == plot_unit::fraction) return printed("%.4g %%", v * 100);
    if (u == plot_unit::percentile) return v == 0 ? "" : printed("p%.6g", v * 100);
    if (u != plot_unit::elapsed) return printed("%.6g", v);
    const double a = std::fabs(v);
    return a >= 7200  ? printed("%.3g h", v / 3600)
           : a >= 300 ? printed("%.4g min", v / 60)
                      : printed("%.4g s", v);
}
class plot {
public:
    static constexpr double left = 50, right = 288, top = 8, bottom = 142;

    plot(const plot_scale& x, plot_unit x_unit, const plot_scale& y, plot_unit y_unit)
        : x_(x), y_(y), x_unit_(x_unit), y_unit_(y_unit) {
        vector<double> across;
        if (x_unit != plot_unit::named)
            across = ticks_of(x, x.how == plot_scale::shape::linear ? 4 : 5);
        if (x_unit == plot_unit::elapsed && x.high > x.low) {
            const double step = elapsed_step((x.high - x.low) / 5);
            across.clear();
            for (double k = std::ceil(x.low / step - 1e-9); k * step <= x.high; ++k)
                across.push_back(k * step + 0.0);
        }
        for (const double v : across) {
            draw("<path class=\"grid\" d=\"M{x:p} 142v4\"/>", {{"x", at_x(v)}});
            put_text(at_x(v), 157, at_x(v) > right - 12 ? "end" : "middle", "",
                     tick_text(x_unit, v));
        }
        vector<double> up = {0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999};
        if (y.how != plot_scale::shape::nines) up = ticks_of(y, 4);
        for (const double v : up) {
            if (y.how == plot_scale::shape::nines && v > y.high) break;
            draw("<path class=\"grid\" d=\"M50 {y:p}H288\"/>", {{"y", at_y(v)}});
            put_text(45, at_y(v) + 4, "end", "", tick_text(y_unit, v));
        }
    }
    /// NaN breaks the line.
    void line(const char* style, const std::string& name, const vector<curve_point>& points) {
        std::string path, last;
        curve_point only;
        const auto end = [&] {
            if (path == last && !last.empty())
                draw("<circle class=\"{style}\" r=\"2\" cx=\"{x:p}\" cy=\"{y:p}\"/>",
                     {{"style", std::string_view(style, 1)}, {"x", at_x(only.x)},
                      {"y", at_y(only.y)}});
            else
                draw("[{points?}<polyline class=\"{style}\" data-n=\"{name:x}\" "
                     "points=\"{points}\"/>]",
                     {{"points", path}, {"style", style}, {"name", name}});
            path.clear();
            last.clear();
        };
        for (const curve_point& p : points) {
            if (std::isnan(p.x) || std::isnan(p.y)) {
                end();
                continue;
            }
            const std::string place = filled("{x:p},{y:p}", {{"x", at_x(p.x)}, {"y", at_y(p.y)}});
            if (place == last) continue;
            if (path.empty()) only = p;
            else path += ' ';
            path += last = place;
        }
        end();
    }
    void dot(const char* style, const curve_point& p) {
        draw("<circle class=\"{style}\" r=\"3.5\" cx=\"{x:p}\" cy=\"{y:p}\"/>",
             {{"style", style}, {"x", at_x(p.x)}, {"y", at_y(p.y)}});
    }
    void cloud(const char* style, const vector<curve_point>& points) {
        std::string path;
        for (const curve_point& p : points) fill(path, "M{x:p} {y:p}h0",
            {{"x", at_x(p.x)}, {"y", at_y(p.y)}});
        draw("[{points?}<path class=\"cloud {style}\" d=\"{points}\"/>]",
             {{"points", path}, {"style", style}});
    }
    /// Draws a limit on x. Of a quantile it ends in a ring at its height, so that a curve that
    /// crosses it misses it; of a mean it is a mark on the axis.
    void limit(double x, double q, bool at_most, const std::string& words) {
        const double place = at_x(x);
        const double from = std::isnan(q) ? bottom - 14 : at_most ? at_y(q) : top;
        const double to = std::isnan(q) || at_most ? bottom : at_y(q);
        draw("<path class=\"limit\" d=\"M{x:p} {from:p}V{to:p}\"/>",
             {{"x", place}, {"from", from}, {"to", to}});
        if (!std::isnan(q)) dot("ring", {x, q});
        // A rising curve leaves room above left of it, and below right.
        const bool low = place > (left + right) / 2, before = place > left + 80;
        const double at = std::isnan(q) ? bottom - 18 - 13 * limits_
                          : low         ? 136 - 13 * limits_
                                        : at_y(q) - 6;
        put_text(place + (before ? -6 : 6), at, before ? "end" : "start", "mark", words);
        limits_ += low || std::isnan(q);
    }
    void limit_across(double y, const std::string& words) {
        draw("<path class=\"limit\" d=\"M50 {y:p}H288\"/>", {{"y", at_y(y)}});
        put_text(left + 4, at_y(y) - 4, "start", "mark", words);
    }
    void stretch(const char* style, double from, double to) {
        draw("<rect class=\"{style}\" x=\"{from:p}\" y=\"8\" height=\"134\" width=\"{width:p}\"/>",
             {{"style", style}, {"from", at_x(from)},
              {"width", std::max(at_x(to) - at_x(from), 1.0)}});
    }
    /// Draws a value and its interval at the height of its quantile; of a mean, above the axis.
    void interval(double x, double low, double high, double q) {
        if (!std::isfinite(x)) return;
        const double y = std::isnan(q) ? bottom - 6 : at_y(q);
        const double from = at_x(std::isfinite(low) ? low : x);
        const double to = std::isnan(high) ? at_x(x) : std::isinf(high) ? right : at_x(high);
        draw("<path class=\"span\" d=\"M{from:p} {y:p}H{to:p}\"/><circle class=\"typical\" "
             "r=\"2.5\" cx=\"{x:p}\" cy=\"{y:p}\"/>",
             {{"from", from}, {"y", y}, {"to", to}, {"x", at_x(x)}});
    }
    /// `alt` describes the drawing to readers who cannot see it.
    std::string figure(const std::string& caption, const std::string& alt,
                       bool reads_across) const {
        return filled("<figure><figcaption>{caption}</figcaption><svg class=\"plot\" role=\"img\" "
                      "viewBox=\"0 0 300 162\" aria-label=\"{alt:x}\" data-x=\"{x_scale} "
                      "{x_low:.6g} {x_high:.6g} {x_unit}\" data-y=\"{y_scale} {y_low:.6g} "
                      "{y_high:.6g} {y_unit}\"{reads_across? data-by=\"y\"}"
                      ">{drawn}</svg></figure>\n",
                      {{"caption", caption}, {"alt", alt}, {"x_scale", x_.name()},
                       {"x_low", x_.low}, {"x_high", x_.high}, {"x_unit", unit_name(x_unit_)},
                       {"y_scale", y_.name()}, {"y_low", y_.low}, {"y_high", y_.high},
                       {"y_unit", unit_name(y_unit_)}, {"reads_across", reads_across},
                       {"drawn", drawn_}});
    }

protected:
    double at_x(double v) const { return left + x_.place(v) * (right - left); }
    double at_y(double v) const { return bottom - y_.place(v) * (bottom - top); }
    void draw(const char* shape, std::initializer_list<named_filling> values) {
        fill(drawn_, shape, values);
    }
    void put_text(double x, double y, const char* anchor, const char* style,
                  const std::string& words) {
        draw("<text x=\"{x:p}\" y=\"{y:p}\" text-anchor=\"{anchor}\"[ class=\"{style}\"]>{words:x}"
             "</text>",
             {{"x", x}, {"y", y}, {"anchor", anchor}, {"style", style}, {"words", words}});
    }

private:
    plot_scale x_, y_;
    plot_unit x_unit_, y_unit_;
    std::string drawn_{};
    int limits_ = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
