// the history of main as the judge of a baseline
#pragma once

#include "api/slo.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/past_judge.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/described/described.hpp"
#include "core/reports/gate_report.hpp"
#include "extensions/history/core/history_fields.hpp"
#include "extensions/history/core/history_parameters.hpp"
#include "extensions/history/core/judged_by_nights.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/nights_report.hpp"

#include <cmath>  // sqrt
#include <memory>  // shared_ptr
#include <optional>
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline void add_nights(arithmetic& a, const learned_history& h, const decision& d) {
    if (d.repeats < 2) return;
    add_values(a, d);
    a.line += "; ln distances from the limit " + listed(d.distances) +
              printed("; %zu nights, sd %.6g (df %.3g); repeats, sd %.6g (df %.0f); level of "
                      "%.0f nights; bounds: pass %.6g < 0, fail %.6g > 0 (t quantiles of the "
                      "normal scores %.4f and %.4f)",
                      h.nights, h.spread.sd, h.spread.df, std::sqrt(h.repeats.variance),
                      h.repeats.df, h.level.nights, d.last.pass_bound, d.last.fail_bound,
                      d.last.pass_z, d.last.fail_z);
    a.add("log_distances", d.distances);
    a.add("nights_sd", {h.spread.sd});
    a.add("nights_df", {h.spread.df});
    a.add("repeats_sd", {std::sqrt(h.repeats.variance)});
    a.add("level", {h.level.mean});
    a.add("level_nights", {h.level.nights});
    if (h.given_sd > 0) a.add("given_sd", {h.given_sd});
    a.add("standard_error", {d.last.se});
    a.add("pass_bound", {d.last.pass_bound});
    a.add("fail_bound", {d.last.fail_bound});
}

class nights_judge final : public past_judge {
public:
    explicit nights_judge(history_parameters&& h = {}) : nights(std::move(h)) {}
    history_parameters nights;

    decision judged(const measurements& e, const judging_parameters& t, const slo& s,
                    bool to_the_end) const override {
        return judge_by_nights(nights, e, t, s, to_the_end);
    }
    void estimate(decision& d) const override { estimate_by_nights(learned(d), d); }
    std::string against(const decision& d) const override {
        return printed("%zu nights", learned(d).nights);
    }
    void explain(arithmetic& a, const decision& d) const override {
        add_nights(a, learned(d), d);
    }
    std::optional<level> level_of(const slo& s) const override {
        const objective_history* const o = nights.of(s);
        if (!o) return std::nullopt;
        return level{(s.at_most ? 1 : -1) * o->learned.level.mean, o->learned.spread.sd};
    }
    history_noise noise_of(const slo& s) const override { return noise_by(nights, s); }
    std::vector<std::string> lines(const gate_report& g) const override {
        return nights_lines(nights, g);
    }
    void fields(field_visitor& v) override { fields_of(v, nights); }

private:
    const learned_history& learned(const decision& d) const { return nights.of(d.what)->learned; }
};
/// Static objects of other files may read results, too.
[[gnu::constructor(101)]] static void make_nights_readable() {
    new_past_judge = []() -> std::shared_ptr<past_judge> {
        return std::make_shared<nights_judge>();
    };
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
