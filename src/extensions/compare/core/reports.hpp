// comparisons and curves in the files of the program
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/planning/load_search.hpp"
#include "core/figures/rows.hpp"
#include "core/metric/table.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"
#include "extensions/compare/core/curves.hpp"
#include "extensions/compare/core/settings.hpp"
#include "extensions/compare/core/text.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <string>
#include <utility>  // move, pair

namespace llmbench {
inline namespace v1 {
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
    v.choice({"spread", "where the sd comes from"}, r.at.spread, spread_of::quiet);
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

inline std::string comparison_md(const comparison_report& r) {
    const settings_comparison& c = r.found;
    std::string out = filled("### {name:m}: {rounds}\n\n{table}\nBold: significantly different "
                             "from {first:m}; {intervals:m}.\n\n",
                             {{"name", r.name}, {"rounds", rounds_text(c)},
                              {"table", markdown_table(settings_table(c))},
                              {"first", c.settings[0].name}, {"intervals", intervals_text(c)}});
    for (const std::string& s : sentences_of(c, c.statistics.size())) fill(out, "- {line:m}\n",
        {{"line", s}});
    for (const std::string& note : notes_on(c)) fill(out, "\n{note:c}\n", {{"note", note}});
    return out + "\n";
}

/// Draws one statistic of all settings, "" without a value.
inline std::string settings_figure(const settings_comparison& c, const compared_statistic& s) {
    plot p({"named", "names"}, {plot_unit_of(facts_of(s.what.metric).unit), "wide"});
    const auto best = s.best();
    for (std::size_t i = 0; i < s.settings.size(); ++i) {
        const setting_value& v = s.settings[i];
        const double x = static_cast<double>(i + 1);
        p.add("name", {c.settings[i].name}, {x});
        p.add("upright", {"span"}, {x, v.low, x, v.high});
        p.dot(best == i ? "pass" : v.fault.empty() ? "c" : "open", {x, v.typical});
    }
    return p.figure(str(s.what.name), filled("[{best} is best]",
                                             {{"best", best ? c.settings[*best].name : ""}}));
}

inline std::string comparisons_html(const vector<comparison_report>& all) {
    std::string h;
    for (const comparison_report& r : all) {
        const settings_comparison& c = r.found;
        fill(h, "<section><h2>{name:x}</h2>\n<p class=\"why\">{rounds}</p>\n",
             {{"name", r.name}, {"rounds", rounds_text(c)}});
        for (const std::string& note : notes_on(c)) fill(h, "<p class=\"note\">{note:x}.</p>\n",
            {{"note", note}});
        fill(h, "{table}<p class=\"note\">Bold: significantly different from {first:x}; "
             "{intervals:x}.</p>\n<ul>\n",
             {{"table", page_table("Settings of " + r.name, settings_table(c))},
              {"first", c.settings[0].name}, {"intervals", intervals_text(c)}});
        for (const std::string& s : sentences_of(c, c.statistics.size()))
            fill(h, "<li>{line:x}</li>\n", {{"line", s}});
        std::string figures;
        for (const compared_statistic& s : c.statistics) figures += settings_figure(c, s);
        fill(h, "</ul>\n<div class=\"charts\">\n<p class=\"note\">A dot is the typical round of a "
             "setting in its own interval of 95 %; green where it is shown to be best, hollow "
             "where it is not compared. Two settings can differ significantly although these "
             "intervals overlap, by their ratios within the rounds.</p>\n<div "
             "class=\"plots\">\n{figures}</div>\n</div>\n</section>\n", {{"figures", figures}});
    }
    return h;
}

/// A curve in reports, beside the gates of its loads, which rise.
struct curve_report {
    std::string name{}, file{};
    int line = 0;
    metric_id unit = metric_id::capacity_in_rate;
    vector<judged_load> loads{};
};

/// Whether a load was shown to meet all objectives, or to miss one.
inline judged_load judged_load_of(double load, const std::string& gate,
                                  const list<slo_verdict>& verdicts) {
    judged_load p{load, gate, carried::open, ""};
    bool has_own = false, holds = true;
    for (const slo_verdict& v : verdicts) {
        if (v.objective.is_advisory) continue;
        if (v.outcome == verdict::fail && p.missed.empty())
            p.missed = str(v.objective.statistic.name);
        has_own = has_own || is_own_objective(v);
        holds = holds && v.outcome == verdict::pass;
    }
    if (!p.missed.empty()) p.shows = carried::misses;
    else if (has_own && holds) p.shows = carried::holds;
    return p;
}
/// The interval of the capacity. All loads up to its low end were shown to meet the objectives, all
/// from its high end to miss one. An end is wrong only if the verdict next to the capacity is (a
/// fixed sequence of tests; Maurer, Hothorn, Lehmacher 1995), as often as a single verdict.
inline capacity_ends ends_of(const curve_report& c) {
    capacity_ends s;
    for (const judged_load& p : c.loads) {
        if (p.shows != carried::holds) break;
        s.low = p.load;
    }
    for (std::size_t i = c.loads.size(); i-- > 0 && c.loads[i].shows == carried::misses;)
        s.high = c.loads[i].load;
    return s;
}
/// The objective that limits the capacity, "" if none is shown to.
inline std::string limit_of(const curve_report& c) {
    const double high = ends_of(c).high;
    for (const judged_load& p : c.loads)
        if (p.load == high) return p.missed;
    return {};
}
/// Returns "capacity in [8, 12] req/s, limited by p90(ttft), 5 loads".
inline std::string curve_line(const curve_report& c) {
    return filled("{capacity}, {loads} load{loads:s}",
                  {{"capacity", capacity_text(c.unit, ends_of(c), limit_of(c))},
                   {"loads", c.loads.size()}});
}

/// Rows of loads that have a gate.
inline vector<curve_row> rows_of(const curve_report& c, const vector<gate_report>& gates) {
    vector<curve_row> rows;
    for (const judged_load& p : c.loads)
        for (std::size_t i = 0; i < gates.size(); ++i)
            if (gates[i].what.name == p.gate) add_rows(rows, p, i, gates[i]);
    return rows;
}

inline std::string curve_text(const curve_report& c, const vector<gate_report>& gates) {
    return filled(
        "\n{name}: {curve_line}\n\n{console}",
                  {{"name", c.name}, {"curve_line", curve_line(c)},
                   {"console", console_table(curve_table(c.unit, rows_of(c, gates)), 0)}});
}
inline std::string curve_md(const curve_report& c, const vector<gate_report>& gates) {
    return filled("### {name:m}: {curve_line:m}\n\n{markdown}\n",
                  {{"name", c.name}, {"curve_line", curve_line(c)},
                   {"markdown", markdown_table(curve_table(c.unit, rows_of(c, gates)))}});
}

/// curves.csv: a line for each variant and load, SI units, empty without a value.
inline std::string curves_csv(const vector<curve_report>& curves,
                              const vector<gate_report>& gates) {
    constexpr metric_id of_run[] = {metric_id::output_throughput, metric_id::input_throughput,
                                    metric_id::request_throughput, metric_id::error_rate,
                                    metric_id::cost_per_million_tokens};
    constexpr metric_id of_requests[] = {metric_id::ttft, metric_id::tpot, metric_id::e2e};
    std::string out = "curve,load,unit,arm,outcome,shows";
    for (const metric_id m : of_run) fill(out, ",{metric}", {{"metric", metric_name(m)}});
    for (const metric_id m : of_requests)
        for (const char* of : {"mean", "p50", "p90", "p99"})
            fill(out, ",{statistic}({metric})", {{"statistic", of}, {"metric", metric_name(m)}});
    out += ",tokens_per_s_of_a_user\n";
    const auto quoted = [](const std::string& s) {
        std::string q = "\"";
        for (const char x : printable(s, s.size() * 4 + 4))
            q += x == '"' ? "\"\"" : std::string(1, x);
        return q + "\"";
    };
    const auto number = [](double v) {
        return std::isfinite(v) ? "," + printed("%.9g", v) : std::string(",");
    };
    for (const curve_report& c : curves)
        for (const curve_row& r : rows_of(c, gates)) {
            fill(out, "{curve}{load},{is_of_users?users|requests/s}"
                 ",{is_baseline?baseline|candidate},{outcome},{shows}",
                 {{"curve", quoted(c.name)}, {"load", number(r.at.load)},
                  {"is_of_users", c.unit == metric_id::capacity_in_users},
                  {"is_baseline", r.is_baseline}, {"outcome", to_string(headline_of(r.of))},
                  {"shows", r.at.shows == carried::open ? "" : to_string(r.at.shows)}});
            for (const metric_id m : of_run) out += number(r.value(m));
            for (const metric_id m : of_requests) {
                const metric_row row = r.row(m);
                for (const double v : {row.mean, row.p50, row.p90, row.p99}) out += number(v);
            }
            out += number(r.speed()) + "\n";
        }
    return out;
}

/// In result.json. Each load is also one of the gates.
inline void fields_of(field_visitor& v, curve_report& c) {
    capacity_ends ends = ends_of(c);
    std::string unit = c.unit == metric_id::capacity_in_users ? "users" : "requests/s";
    std::string limiting = limit_of(c), said = curve_line(c);
    v.text({"name"}, c.name);
    v.text({"file"}, c.file);
    v.whole({"line"}, c.line);
    v.text({"unit", "of its loads: requests/s or users"}, unit);
    v.number({"low", "the highest load up to which all were shown to hold the objectives, 0: none"},
             ends.low, rate_range);
    v.number({"high", "the lowest load from which on all were shown to miss one, null: none"},
             ends.high, {0, max_rate, infinity});
    v.text({"limiting_objective"}, limiting);
    v.text({"shows", "the same in words"}, said);
    v.list({"loads"}, c.loads, [&](judged_load& p) {
        v.number({"load"}, p.load, rate_range);
        v.text({"gate", "the name of its gate"}, p.gate);
        v.choice({"shows", "by its own verdicts"}, p.shows, carried::misses);
    });
}

class comparisons_and_curves : public program_section {
public:
    explicit comparisons_and_curves(vector<comparison_report> some = {},
                                    vector<curve_report> more = {})
        : comparisons(std::move(some)), curves(std::move(more)) {}
    /// Changed only through the session.
    static comparisons_and_curves& of_this_program() {
        static comparisons_and_curves* const all = new comparisons_and_curves;  // outlives statics
        return *all;
    }
    vector<comparison_report> comparisons;
    vector<curve_report> curves;

    void fields(field_visitor& v) override {
        v.list({"comparisons", "several settings of a server, measured in turns on one trace; "
                               "of compare()", if_any},
               comparisons, [&](comparison_report& c) { fields_of(v, c); });
        v.list({"curves", "one load after the other, of curve()", if_any}, curves,
               [&](curve_report& c) { fields_of(v, c); });
    }
    vector<std::string> tables(const vector<gate_report>& gates) const override {
        vector<std::string> all;
        for (const comparison_report& r : comparisons) all.push_back(comparison_md(r));
        for (const curve_report& c : curves) all.push_back(curve_md(c, gates));
        return all;
    }
    std::string html(const vector<gate_report>& gates) const override {
        std::string h = comparisons_html(comparisons);
        for (const curve_report& c : curves)
            h += curve_html(
                c.name,
                filled(
                    "<p class=\"why\">{curve_line:x}.</p>\n<p class=\"note\">Up and to the left "
                       "is better. A dot is a load: green where it was shown to hold all "
                       "objectives, red where it was shown to miss one; the grey stretch is the "
                       "capacity.</p>\n", {{"curve_line", curve_line(c)}}),
                c.unit, ends_of(c), rows_of(c, gates));
        return h;
    }
    vector<std::pair<std::string, std::string>> files(
        const vector<gate_report>& gates) const override {
        if (curves.empty()) return {};
        return {{"curves.csv", curves_csv(curves, gates)}};
    }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
