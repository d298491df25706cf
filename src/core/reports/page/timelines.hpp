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

#include <algorithm>  // min, max, sort
#include <cmath>  // floor, isfinite
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// All repeats of a gate over time, one drawing for each thing that changes.
class timeline_figures {
public:
    explicit timeline_figures(const gate_report& g)
        : g_(g),
          grid_(g.figures.grid),
          mine_(g.figures.candidate.timelines),
          other_(g.figures.baseline.timelines) {}
    std::string html() const {
        if (mine_.empty()) return {};
        using t = repeat_timeline;
        std::string h = printed(
            "<h3>Over time</h3>\n<p class=\"note\">One line a repeat, in windows "
            "of %s; 0 is where the measured part begins, after the warm-up.%s</p>"
            "\n<div class=\"plots\">\n",
            tick_text(plot_unit::elapsed, grid_.step).c_str(), arms_key(!other_.empty()).c_str());
        const bool paced = g_.what.is_open_loop();
        h += figure(
            paced ? "Requests/s<span>sent; planned (thick)</span>" : "Requests/s",
            "requests sent per second", plot_unit::per_second, {{&t::sent, "c", "sent"}},
            paced ? &t::asked : nullptr);
        if (has_failures())
            h += figure("Failed requests/s", "failed requests per second", plot_unit::per_second,
                        {{&t::failed, "f", "failed"}});
        h += figure("In flight", "requests in flight", plot_unit::none, {{&t::in_flight, "c", ""}});
        if (other_.empty())
            h += figure("ttft<span>p50; p90 (light)</span>", "ttft", plot_unit::seconds,
                        {{&t::ttft_p90, "c2", "p90"}, {&t::ttft_p50, "c", "p50"}});
        else h += figure("ttft<span>p50</span>", "ttft p50", plot_unit::seconds,
                         {{&t::ttft_p50, "c", ""}});
        h += figure("Output tokens/s", "output tokens per second", plot_unit::tokens_per_second,
                    {{&t::tokens, "c", ""}});
        if (g_.figures.has_goodput)
            h += figure("Goodput<span>by planned time</span>", "goodput",
                        plot_unit::share, {{&t::good, "c", ""}});
        return h + "</div>\n";
    }

private:
    using values = std::vector<double> repeat_timeline::*;
    struct series {
        values what;
        const char* style;
        const char* name;
    };

    bool has_failures() const {
        for (const auto* arm : {&mine_, &other_})
            for (const repeat_timeline& t : *arm)
                for (const double rate : t.failed)
                    if (rate > 0) return true;
        return false;
    }
    std::vector<curve_point> points_of(const std::vector<double>& v) const {
        std::vector<curve_point> points;
        for (std::size_t i = 0; i < v.size(); ++i) points.push_back({grid_.middle(i), v[i]});
        return points;
    }
    std::string figure(const std::string& caption, const std::string& what, plot_unit unit,
                       const std::vector<series>& all, values behind = nullptr) const {
        double most = 0;
        const auto widen = [&](values which) {
            for (const auto* arm : {&mine_, &other_})
                for (const repeat_timeline& t : *arm)
                    for (const double v : t.*which)
                        if (std::isfinite(v)) most = std::max(most, v);
        };
        for (const series& s : all) widen(s.what);
        if (behind) widen(behind);
        if (!(most > 0) && unit == plot_unit::seconds) return {};  // nothing was answered
        const double end = grid_.from + static_cast<double>(grid_.windows) * grid_.step;
        const double high = unit == plot_unit::share ? 1 : most > 0 ? most * 1.05 : 1;
        plot p({plot_scale::shape::linear, grid_.from, end}, plot_unit::elapsed,
               {plot_scale::shape::linear, 0, high}, unit);
        const bool both = !other_.empty();
        if (behind) p.line("a", "planned", points_of(mine_[0].*behind));
        for (const series& s : all) {
            for (const repeat_timeline& t : other_)
                p.line(*s.style == 'c' ? "b" : s.style, std::string("baseline ") + s.name,
                       points_of(t.*s.what));
            for (const repeat_timeline& t : mine_)
                p.line(s.style, both ? std::string("candidate ") + s.name : s.name,
                       points_of(t.*s.what));
        }
        return p.figure(caption,
                        what + " over " + time_text(end - std::min(0.0, grid_.from)) + ", " +
                            plural(mine_.size(), "repeat") +
                            (both ? " of the candidate and of the baseline" : "") + ", at most " +
                            (unit == plot_unit::seconds ? time_text(most)
                             : unit == plot_unit::share ? printed("%.4g %%", most * 100)
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
