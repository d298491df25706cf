// the report page: drawings
#pragma once

#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/figures/timelines.hpp"

#include <algorithm>  // clamp, max
#include <cmath>  // isfinite, llround, log10, pow
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns a coordinate in tenths of a pixel, never "nan", "inf" or "-0".
inline std::string pixels(double v) {
    const long long tenths =
        std::isfinite(v) ? std::llround(std::clamp(v, -9999.0, 9999.0) * 10) : 0;
    return tenths % 10 == 0 ? std::to_string(tenths / 10)
                            : printed("%.1f", static_cast<double>(tenths) / 10);
}

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
    std::string attribute(const char* unit) const {
        const char* name = how == shape::linear ? "linear" : how == shape::nines ? "nines" : "log";
        return printed("%s %.6g %.6g %s", name, low, high, unit);
    }
};

/// Returns up to `most` + 1 round values within the scale.
inline std::vector<double> ticks_of(const plot_scale& s, int most) {
    std::vector<double> ticks;
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
        std::vector<double> across;
        if (x_unit != plot_unit::named)
            across = ticks_of(x, x.how == plot_scale::shape::linear ? 4 : 5);
        if (x_unit == plot_unit::elapsed && x.high > x.low) {
            const double step = elapsed_step((x.high - x.low) / 5);
            across.clear();
            for (double k = std::ceil(x.low / step - 1e-9); k * step <= x.high; ++k)
                across.push_back(k * step + 0.0);
        }
        for (const double v : across) {
            put_path(frame_, "grid", {"M", pixels(at_x(v)), " 142v4"});
            put_text(frame_, at_x(v), 157, at_x(v) > right - 12 ? "end" : "middle", "",
                     tick_text(x_unit, v));
        }
        if (y.how == plot_scale::shape::nines) {
            for (const double q : {0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999})
                if (q <= y.high) horizontal(q);
        } else {
            for (const double v : ticks_of(y, 4)) horizontal(v);
        }
    }
    /// Labels an x without a number. A long name keeps its end, in which similar names differ.
    void place(double x, const std::string& name, std::size_t columns) {
        std::string shown = name;
        while (columns_of(shown) >= columns)
            do shown.erase(0, 1);
            while (!shown.empty() && (static_cast<unsigned char>(shown[0]) & 0xC0) == 0x80);
        put_text(frame_, at_x(x), 157, "middle", "",
                 shown.size() < name.size() ? "\u2026" + shown : shown);
    }
    /// Draws a dot at a named x, and its interval.
    void upright(const char* style, const curve_point& p, double low, double high) {
        if (std::isfinite(low) && std::isfinite(high))
            put_path(drawn_, "span",
                     {"M", pixels(at_x(p.x)), " ", pixels(at_y(low)), "V", pixels(at_y(high))});
        dot(style, p);
    }
    /// NaN breaks the line.
    void line(const char* style, const std::string& name, const std::vector<curve_point>& points) {
        std::string path, last;
        curve_point only;
        const auto end = [&] {
            if (path == last && !last.empty())
                put_circle({style, 1}, "2", pixels(at_x(only.x)), pixels(at_y(only.y)));
            else if (!path.empty())
                drawn_ += joined({"<polyline class=\"", style, "\" data-n=\"", xml_escaped(name),
                                  "\" points=\"", path, "\"/>"});
            path.clear();
            last.clear();
        };
        for (const curve_point& p : points) {
            if (std::isnan(p.x) || std::isnan(p.y)) {
                end();
                continue;
            }
            const std::string place = joined({pixels(at_x(p.x)), ",", pixels(at_y(p.y))});
            if (place == last) continue;
            if (path.empty()) only = p;
            else path += ' ';
            path += last = place;
        }
        end();
    }
    void dot(const char* style, const curve_point& p) {
        put_circle(style, "3.5", pixels(at_x(p.x)), pixels(at_y(p.y)));
    }
    void label(const curve_point& p, const std::string& words) {
        const bool near_end = at_x(p.x) > right - 60;
        put_text(drawn_, at_x(p.x) + (near_end ? -6 : 6), at_y(p.y) - 5, near_end ? "end" : "start",
                 "mark", words);
    }
    /// Labels a point, unless another such label is near.
    void label_apart(const curve_point& p, const std::string& words) {
        const curve_point at{at_x(p.x), at_y(p.y)};
        for (const curve_point& other : labelled_)
            if (std::fabs(at.x - other.x) < 60 && std::fabs(at.y - other.y) < 11) return;
        labelled_.push_back(at);
        label(p, words);
    }
    /// Draws a limit on x. Of a quantile it ends in a ring at its height, so that a curve that
    /// crosses it misses it; of a mean it is a mark on the axis.
    void limit(double x, double q, bool at_most, const std::string& words) {
        const double place = at_x(x);
        const double from = std::isnan(q) ? bottom - 14 : at_most ? at_y(q) : top;
        const double to = std::isnan(q) || at_most ? bottom : at_y(q);
        put_path(drawn_, "limit", {"M", pixels(place), " ", pixels(from), "V", pixels(to)});
        if (!std::isnan(q)) put_circle("ring", "3.5", pixels(place), pixels(at_y(q)));
        // A rising curve leaves room above left of it, and below right.
        const bool low = place > (left + right) / 2, before = place > left + 80;
        const double at = std::isnan(q) ? bottom - 18 - 13 * limits_
                          : low         ? 136 - 13 * limits_
                                        : at_y(q) - 6;
        put_text(drawn_, place + (before ? -6 : 6), at, before ? "end" : "start", "mark", words);
        limits_ += low || std::isnan(q);
    }
    void limit_across(double y, const std::string& words) {
        put_path(drawn_, "limit", {"M50 ", pixels(at_y(y)), "H288"});
        put_text(drawn_, left + 4, at_y(y) - 4, "start", "mark", words);
    }
    void stretch(const char* style, double from, double to) {
        drawn_ += joined({"<rect class=\"", style, "\" x=\"", pixels(at_x(from)),
                          "\" y=\"8\" height=\"134\" width=\"",
                          pixels(std::max(at_x(to) - at_x(from), 1.0)), "\"/>"});
    }
    /// Draws a value and its interval at the height of its quantile; of a mean, above the axis.
    void interval(double x, double low, double high, double q) {
        if (!std::isfinite(x)) return;
        const std::string y = pixels(std::isnan(q) ? bottom - 6 : at_y(q));
        const double from = at_x(std::isfinite(low) ? low : x);
        const double to = std::isnan(high) ? at_x(x) : std::isinf(high) ? right : at_x(high);
        put_path(drawn_, "span", {"M", pixels(from), " ", y, "H", pixels(to)});
        put_circle("typical", "2.5", pixels(at_x(x)), y);
    }
    /// `alt` describes the drawing to readers who cannot see it.
    std::string figure(const std::string& caption, const std::string& alt,
                       bool reads_across) const {
        return joined({"<figure><figcaption>", caption, "</figcaption><svg class=\"plot\" "
                       "role=\"img\" viewBox=\"0 0 300 162\" aria-label=\"", xml_escaped(alt),
                       "\" data-x=\"", x_.attribute(unit_name(x_unit_)), "\" data-y=\"",
                       y_.attribute(unit_name(y_unit_)),
                       reads_across ? "\" data-by=\"y\">" : "\">", frame_, drawn_,
                       "</svg></figure>\n"});
    }

private:
    double at_x(double v) const { return left + x_.place(v) * (right - left); }
    double at_y(double v) const { return bottom - y_.place(v) * (bottom - top); }
    void horizontal(double v) {
        put_path(frame_, "grid", {"M50 ", pixels(at_y(v)), "H288"});
        put_text(frame_, 45, at_y(v) + 4, "end", "", tick_text(y_unit_, v));
    }
    static void put_text(std::string& into, double x, double y, const char* anchor,
                         const char* style, const std::string& words) {
        into += joined({"<text x=\"", pixels(x), "\" y=\"", pixels(y), "\" text-anchor=\"", anchor,
                        *style ? "\" class=\"" : "", style, "\">", xml_escaped(words), "</text>"});
    }
    static void put_path(std::string& into, const char* style,
                         std::initializer_list<std::string_view> d) {
        into += joined({"<path class=\"", style, "\" d=\"", joined(d), "\"/>"});
    }
    void put_circle(std::string_view style, const char* radius, const std::string& x,
                    const std::string& y) {
        drawn_ += joined({"<circle class=\"", style, "\" r=\"", radius, "\" cx=\"", x,
                          "\" cy=\"", y, "\"/>"});
    }

    plot_scale x_, y_;
    plot_unit x_unit_, y_unit_;
    std::string frame_{}, drawn_{};
    int limits_ = 0;
    std::vector<curve_point> labelled_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
