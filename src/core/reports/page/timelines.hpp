// the report page: timelines
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/figures/timelines.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/page/distributions.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"

#include <algorithm>  // any_of, min, max
#include <cmath>  // floor, isfinite, isnan
#include <functional>  // lines of repeats
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// All repeats of a gate over time, one drawing for each quantity.
class timeline_figures {
public:
    explicit timeline_figures(const gate_report& g)
        : g_(g),
          grid_(g.figures.grid),
          mine_(g.figures.candidate.timelines),
          other_(g.figures.baseline.timelines) {}
    std::string html() const {
        if (mine_.empty()) return {};
        return of_requests() + of_servers();
    }

private:
    std::string of_requests() const {
        using t = repeat_timeline;
        std::string h = printed(
            "<h3>Over time</h3>\n<p class=\"note\">One line a repeat, in windows "
            "of %s; 0 is where the measured part begins, after the warm-up.%s%s</p>"
            "\n<div class=\"plots\">\n",
            tick_text(plot_unit::elapsed, grid_.step).c_str(),
            variants_key(!other_.empty()).c_str(),
            drift_third() > 0 ? " Grey are the first and the last third of it, which a drift holds "
                                "against each other."
                              : "");
        const bool paced = g_.what.sent->is_open_loop();
        h += figure(
            paced ? "Requests/s<span>sent; planned (thick)</span>" : "Requests/s",
            "requests sent per second", plot_unit::per_second, {{windows(&t::sent), "c", "sent"}},
            paced ? windows(&t::asked) : curve_of());
        if (has_failures())
            h += figure("Failed requests/s", "failed requests per second", plot_unit::per_second,
                        {{windows(&t::failed), "f", "failed"}});
        h += figure("In flight", "requests in flight", plot_unit::none,
                    {{windows(&t::in_flight), "c", ""}});
        if (other_.empty())
            h += figure("ttft<span>p50; p90 (light)</span>", "ttft", plot_unit::seconds,
                        {{windows(&t::ttft_p90), "c2", "p90"},
                         {windows(&t::ttft_p50), "c", "p50"}});
        else h += figure("ttft<span>p50</span>", "ttft p50", plot_unit::seconds,
                         {{windows(&t::ttft_p50), "c", ""}});
        h += figure("Output tokens/s", "output tokens per second", plot_unit::tokens_per_second,
                    {{windows(&t::tokens), "c", ""}});
        if (g_.figures.has_goodput)
            h += figure("Goodput<span>by planned time</span>", "goodput",
                        plot_unit::fraction, {{windows(&t::good), "c", ""}});
        return h + "</div>\n";
    }
    /// Returns the servers' metrics on the same axis, "" if they reported none.
    std::string of_servers() const {
        using t = server_timeline;
        std::string plots;
        const auto add = [&](const char* caption, const char* what, plot_unit unit,
                             std::vector<double> t::*values) {
            const auto is_reported = [&](const repeat_timeline& r) {
                const auto& v = r.server.*values;
                return std::any_of(v.begin(), v.end(), [](double x) { return !std::isnan(x); });
            };
            if (!std::any_of(mine_.begin(), mine_.end(), is_reported)) return;
            const auto points = [values](const repeat_timeline& r) {
                std::vector<curve_point> p;
                for (std::size_t i = 0; i < r.server.at.size(); ++i)
                    p.push_back({r.server.at[i], (r.server.*values)[i]});
                return p;
            };
            plots += figure(caption, what, unit, {{points, "c", ""}});
        };
        add("Waiting requests", "requests that waited", plot_unit::none, &t::waiting);
        add("Running requests", "requests that ran", plot_unit::none, &t::running);
        add("KV cache in use", "the KV cache in use", plot_unit::fraction, &t::kv_usage);
        add("Queue time<span>mean since the reading before</span>", "queue time",
            plot_unit::seconds, &t::queue_time);
        add("Power<span>W</span>", "power in watts", plot_unit::none, &t::power);
        add("Utilisation", "utilisation of the accelerators", plot_unit::fraction, &t::utilisation);
        add("Clock<span>GHz, the slowest</span>", "the clock of the slowest accelerator in GHz",
            plot_unit::none, &t::clock_ghz);
        add("Temperature<span>\u00B0C, the hottest</span>", "the hottest accelerator's temperature",
            plot_unit::none, &t::temperature);
        if (plots.empty()) return {};
        return "<h3>Server metrics</h3>\n<p class=\"note\">Its page of metrics, read once "
               "a second." +
               variants_key(!other_.empty()) + "</p>\n<div class=\"plots\">\n" + plots + "</div>\n";
    }

    /// Returns the points of one repeat's line.
    using curve_of = std::function<std::vector<curve_point>(const repeat_timeline&)>;
    struct series {
        curve_of what;
        const char* style;
        const char* name;
    };

    /// Returns a third of the steady part if an objective compares its last with its first, else 0.
    double drift_third() const {
        const bool is_held = std::any_of(
            g_.verdicts.begin(), g_.verdicts.end(),
            [](const slo_verdict& v) { return is_drift(v.what.what.metric); });
        const std::vector<repeat_figures>& repeats = g_.figures.candidate.repeats;
        return is_held && !repeats.empty() ? repeats[0].window_s / 3 : 0;
    }
    bool has_failures() const {
        for (const auto* variant : {&mine_, &other_})
            for (const repeat_timeline& t : *variant)
                for (const double rate : t.failed)
                    if (rate > 0) return true;
        return false;
    }
    /// Returns the curve of the values in each window of the grid.
    curve_of windows(std::vector<double> repeat_timeline::*values) const {
        return [this, values](const repeat_timeline& t) {
            std::vector<curve_point> points;
            for (std::size_t i = 0; i < (t.*values).size(); ++i)
                points.push_back({grid_.middle(i), (t.*values)[i]});
            return points;
        };
    }
    std::string figure(const std::string& caption, const std::string& what, plot_unit unit,
                       const std::vector<series>& all, const curve_of& behind = {}) const {
        double most = 0;
        const auto widen = [&](const curve_of& which) {
            for (const auto* variant : {&mine_, &other_})
                for (const repeat_timeline& t : *variant)
                    for (const curve_point& p : which(t))
                        if (std::isfinite(p.y)) most = std::max(most, p.y);
        };
        for (const series& s : all) widen(s.what);
        if (behind) widen(behind);
        if (!(most > 0) && unit == plot_unit::seconds) return {};  // nothing was answered
        const double end = grid_.from + static_cast<double>(grid_.windows) * grid_.step;
        const double high = unit == plot_unit::fraction ? 1 : most > 0 ? most * 1.05 : 1;
        plot p({plot_scale::shape::linear, grid_.from, end}, plot_unit::elapsed,
               {plot_scale::shape::linear, 0, high}, unit);
        const bool both = !other_.empty();
        if (const double third = drift_third(); third > 0) {
            p.stretch("stretch", 0, third);
            p.stretch("stretch", 2 * third, 3 * third);
        }
        if (behind) p.line("a", "planned", behind(mine_[0]));
        for (const series& s : all) {
            for (const repeat_timeline& t : other_)
                p.line(*s.style == 'c' ? "b" : s.style, std::string("baseline ") + s.name,
                       s.what(t));
            for (const repeat_timeline& t : mine_)
                p.line(s.style, both ? std::string("candidate ") + s.name : s.name,
                       s.what(t));
        }
        return p.figure(caption,
                        what + " over " + time_text(end - std::min(0.0, grid_.from)) + ", " +
                            plural(mine_.size(), "repeat") +
                            (both ? " of the candidate and of the baseline" : "") + ", at most " +
                            (unit == plot_unit::seconds ? time_text(most)
                             : unit == plot_unit::fraction ? printed("%.4g %%", most * 100)
                                                        : printed("%.4g", most)),
                        false);
    }

    const gate_report& g_;
    const timeline_grid& grid_;
    const std::vector<repeat_timeline>&mine_, &other_;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
