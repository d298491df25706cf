// llmbench run --sweep: one gate for each value of an option, as one table and drawn
#pragma once

#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/figures/timelines.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"
#include "effects/system/console.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/settings.hpp"
#include "effects/gates/session.hpp"
#include "effects/gates/execution.hpp"
#include "program/run_options.hpp"
#include "program/run_rows.hpp"
#include "program/values.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isfinite
#include <cstddef>
#include <exception>
#include <string>
#include <utility>  // pair

namespace llmbench_program {

/// "prompt-tokens=512,2048": an option, and its values.
struct swept_option {
    std::string option{};
    vector<std::string> values{};
};
inline swept_option sweep_of(const given_options& o) {
    const given all = o.one("--sweep");
    const std::size_t equals = all.text.find('=');
    swept_option s{"--" + std::string(trimmed(all.text.substr(0, equals)))};
    const option_row* known = nullptr;
    for (const option_group& g : run_groups())
        for (const option_row& row : g.options)
            if (s.option == row.name && row.values == takes::one) known = &row;
    if (equals != std::string::npos)  // commas inside brackets are a value's
        if (const auto call = call_in("x(" + all.text.substr(equals + 1) + ")"))
            s.values = call->arguments;
    bool is_sound = known && s.values.size() >= 2 && s.values.size() <= 16;
    for (const std::string& v : s.values) is_sound = is_sound && !v.empty();
    for (const char* of_program : {"--name", "--report", "--inconclusive", "--time-budget"})
        is_sound = is_sound && s.option != of_program;
    if (!is_sound)
        all.refuse_as("an option of a gate with 2 to 16 values, such as "
                      "prompt-tokens=512,2048,8192 or users=1,8,64");
    if (o.has(s.option.c_str())) refuse({s.option, " is given, and --sweep has values of it"});
    return s;
}

/// The gates of a sweep in the program's reports, by their numbers.
class sweep_section final : public program_section {
public:
    static sweep_section& of_this_program() {
        static sweep_section* const s = new sweep_section;  // outlives every static object
        return *s;
    }
    std::string option{};
    vector<std::pair<std::string, std::size_t>> gates{};  // a value, and the number of its gate

    void fields(field_visitor&) override {}
    vector<std::string> tables(const vector<gate_report>& all) const override {
        return {filled("### By {option:m}\n\n{table}\n",
                       {{"option", option}, {"table", markdown_table(table(all))}})};
    }
    std::string html(const vector<gate_report>& all) const override {
        return filled("<section><h2>By {option:x}</h2>\n<div class=\"plots\">\n{ttft}{tpot}</div>\n"
                      "{table}</section>\n",
                      {{"option", option},
                       {"ttft", figure(all, metric_id::ttft, "p90", &metric_row::p90)},
                       {"tpot", figure(all, metric_id::tpot, "mean", &metric_row::mean)},
                       {"table", page_table("By " + option, table(all))}});
    }
    vector<std::pair<std::string, std::string>> files(const vector<gate_report>&) const override {
        return {};
    }
    report_table table(const vector<gate_report>& all) const {
        report_table t;
        t.head = {option, "ttft p50", "ttft p90", "tpot mean", "e2e p50", "output", "gate"};
        for (const auto& [value, number] : gates) {
            if (number >= all.size()) continue;
            const gate_report& g = all[number];
            const auto time = [&](metric_id m, double metric_row::*of) {
                const double v = g.figures.candidate.row(m).*of;
                return table_cell{std::isfinite(v) ? value_text(m, v) : "-"};
            };
            const double rate = g.figures.candidate.run_value(metric_id::output_throughput);
            const bool has_rate = std::isfinite(rate);
            t.rows.push_back(
                {table_cell{value}, time(metric_id::ttft, &metric_row::p50),
                 time(metric_id::ttft, &metric_row::p90), time(metric_id::tpot, &metric_row::mean),
                 time(metric_id::e2e, &metric_row::p50),
                 table_cell{has_rate ? value_text(metric_id::output_throughput, rate) : "-"},
                 table_cell{headline_text(g)}});
        }
        return t;
    }

private:
    /// Over the values, if they are numbers; else over their names.
    std::string figure(const vector<gate_report>& all, metric_id m, const char* statistic,
                       double metric_row::*of) const {
        const auto x_of = [](const std::string& value) {
            return amount_or_number_in(value, metric_unit::users);
        };
        const bool are_numbers = !any_of(gates, [&](const auto& g) { return !x_of(g.first); });
        plot p(are_numbers ? plot_axis{"none", "near"} : plot_axis{"named", "names"},
               {"seconds", "zero"});
        vector<curve_point> points;
        for (std::size_t i = 0; i < gates.size() && gates[i].second < all.size(); ++i) {
            const double x = are_numbers ? *x_of(gates[i].first) : static_cast<double>(i + 1);
            if (!are_numbers) p.add("name", {gates[i].first}, {x});
            points.push_back({x, all[gates[i].second].figures.candidate.row(m).*of});
            p.dot("c", points.back());
        }
        p.line("c", statistic, points);
        return p.figure(filled("{metric} {statistic}",
                               {{"metric", metric_name(m)}, {"statistic", statistic}}),
                        "over " + option);
    }
};

/// Runs a gate by `run()`, and returns its number among those of the program. One that is refused
/// is told in its own lines and reports, so that others go on.
template <class Run>
std::size_t number_of_run(const Run& run) {
    const session& program = session::of_this_program();
    const std::size_t number = program.number_of_gates();
    try {
        run();
    } catch (const std::exception&) {
        if (program.number_of_gates() == number) throw;
    }
    return number;
}
/// Runs one gate for each value. `run`: runs a scenario.
template <class Run>
int run_sweep(const given_options& o, const Run& run) {
    const swept_option swept = sweep_of(o);
    sweep_section& section = sweep_section::of_this_program();
    section.option = swept.option.substr(2);
    session& program = session::of_this_program();
    const std::string name = o.has("--name") ? o["--name"] : "llmbench run";
    const settings asked = settings_of(environment);
    vector<scenario> gates;
    for (const std::string& value : swept.values) {
        given_options of_value = o;
        of_value.texts.erase("--sweep");
        of_value.texts[swept.option] = {value};
        of_value.texts["--name"] = {name + ", " + section.option + " " + value};
        gates.push_back(scenario_of(of_value));
        check_gate(gates.back(), use_of(gates.back()), asked);
    }
    for (std::size_t i = 0; i < gates.size(); ++i) {
        section.gates.push_back({swept.values[i], number_of_run([&] { run(gates[i]); })});
        program.with_reports([&](program_reports& reports) {
            if (i == 0) reports.beside.push_back(&section);
        });
    }
    program.with_reports([&](program_reports& reports) {
        say("\n" + console_table(section.table(reports.gates), section.option.size() + 2));
    });
    return exit_code();
}

}  // namespace llmbench_program
