// several settings in result.json
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "extensions/compare/core/comparison_report.hpp"
#include "extensions/compare/core/setting_ratios.hpp"
#include "extensions/compare/core/settings.hpp"
#include "extensions/compare/core/text.hpp"

#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline void fields_of(field_visitor& v, setting_ratio& r, settings_comparison& c) {
    std::string of = c.settings[r.second].name, to = c.settings[r.first].name;
    v.text({"of"}, of);
    v.text({"to"}, to);
    v.number({"ratio"}, r.ratio);
    v.interval({"interval"}, r.low, r.high);
    bool is_significant = r.significant();
    v.flag({"significant",
            "the interval excludes 1, and the client's delays cannot have done that"},
           is_significant);
    v.flag({"may_be_the_clients"}, r.may_be_the_clients);
    v.numbers({"log_ratios", "one a round"}, r.logs, any_number);
    v.number({"sd"}, r.at.sd);
    v.choice({"spread", "where the sd comes from"}, r.at.spread, spread_of::measured);
    v.number({"df"}, r.at.df);
    v.number({"standard_error"}, r.at.se);
    v.number({"t", "half of the interval's logarithm in standard errors"}, r.at.pass_t);
}

inline void fields_of(field_visitor& v, compared_statistic& s, settings_comparison& c) {
    const auto best = s.best();
    std::string metric = metric_name(s.what.metric), shows = shown_text(c, s);
    std::string best_name = best ? c.settings[*best].name : "";
    bool less_is_better = s.less_is_better();
    v.text({"statistic"}, s.what.name);
    v.text({"metric"}, metric);
    v.flag({"less_is_better"}, less_is_better);
    v.text({"best",
            "the setting that differs significantly from every other on the good side, \"\": none"},
           best_name);
    v.text({"shows", "the same for all settings in words"}, shows);
    std::size_t i = 0;
    v.list({"settings"}, s.settings, [&](setting_value& one) {
        std::string name = c.settings[i++].name;
        v.text({"name"}, name);
        v.number({"estimate", "geometric mean of the rounds; of a fraction that of all requests"},
                 one.typical, any_number);
        v.interval({"interval", "of 95 % by itself"}, one.low, one.high);
        v.text({"fault", "why this statistic of it is compared with no other"}, one.fault);
    });
    v.list({"ratios", "of each two settings that can be compared"}, s.pairs,
           [&](setting_ratio& r) { fields_of(v, r, c); });
}

/// Each setting is also one of the gates.
inline void fields_of(field_visitor& v, comparison_report& r) {
    settings_comparison& c = r.found;
    v.text({"name"}, r.name);
    v.text({"file"}, r.file);
    v.whole({"line"}, r.line);
    v.whole({"rounds", "that were measured on all settings that are compared"}, c.rounds);
    v.whole({"rounds_planned"}, c.planned_rounds);
    v.text({"stopped", "why there are fewer"}, c.stopped);
    double level = false_difference;
    v.number({"false_difference", "the error level of all intervals of a statistic together"},
             level);
    v.list({"settings"}, c.settings, [&](reported_setting& s) {
        std::string gate = r.name + " / " + s.name;
        v.text({"name"}, s.name);
        v.text({"gate", "the name of its gate"}, gate);
        v.text({"excluded", "why it is compared on nothing"}, s.excluded);
    });
    v.list({"statistics"}, c.statistics, [&](compared_statistic& s) { fields_of(v, s, c); });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
