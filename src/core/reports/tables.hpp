// tables of reports
#pragma once

#include "api/metrics.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/figures/rows.hpp"
#include "core/reports/gate_report.hpp"

#include <algorithm>  // max
#include <cstddef>  // size_t
#include <initializer_list>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

struct table_cell {
    std::string text{};
    const char* look = nullptr;   // on the page its class, in place of its column's
    const char* badge = nullptr;  // on the page it is a badge of this class
    std::string ratio{};          // to the first column, if it has one
    bool is_marked = false;       // that ratio
    std::size_t gate = 0;         // on the page a link to this one
};
/// A table, the same for the console, Markdown and the page.
struct report_table {
    vector<std::string> head{};
    std::size_t words = 1;  // so many columns have words, those after them numbers
    vector<vector<table_cell>> rows{};
    /// Adds cells to the last row.
    void append(std::initializer_list<filling> cells) {
        for (const filling& c : cells) rows.back().push_back({c.shown()});
    }
    void add(std::initializer_list<filling> cells) {
        rows.emplace_back();
        append(cells);
    }
    table_cell& last() { return rows.back().back(); }
};

/// Returns the table for the console. The first column is to the left; without a width of it, all
/// are, as narrow as they can be.
inline std::string console_table(const report_table& t, std::size_t first_width = 10) {
    const bool to_the_left = first_width == 0;
    vector<vector<std::string>> lines = {t.head};
    for (const auto& row : t.rows) {
        lines.emplace_back();
        for (const table_cell& c : row) lines.back().push_back(c.text);
    }
    for (std::size_t i = t.head.size(); i-- > 0;) {  // ratios have columns of their own
        const auto has_ratio = [&](const auto& row) { return !row[i].ratio.empty(); };
        if (!any_of(t.rows, has_ratio)) continue;
        const auto at = static_cast<std::ptrdiff_t>(i + 1);
        for (std::size_t k = 0; k < lines.size(); ++k)
            lines[k].insert(lines[k].begin() + at,
                            k == 0 ? "" : filled(
                                "{ratio}{is_marked? *}",
                                {{"ratio", t.rows[k - 1][i].ratio},
                                 {"is_marked", t.rows[k - 1][i].is_marked}}));
    }
    for (auto& line : lines)  // labels of users and names of servers
        for (std::string& cell : line) cell = printable(cell, 4 * cell.size() + 4);
    std::string out = to_the_left ? "" : "\n";
    vector<std::size_t> widths(lines[0].size(), to_the_left ? 0 : 10);
    if (!to_the_left) widths[0] = first_width;
    for (const auto& line : lines)
        for (std::size_t i = 0; i < line.size(); ++i)
            widths[i] = std::max(widths[i], columns_of(line[i]));
    for (const auto& line : lines) {
        std::string row = " ";
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::string room(widths[i] - columns_of(line[i]), ' ');
            const bool is_left = to_the_left || i == 0;
            fill(row, " {before}{words}{after}{has_room? }",
                 {{"before", is_left ? "" : room.c_str()}, {"words", line[i]},
                  {"after", is_left ? room.c_str() : ""}, {"has_room", to_the_left}});
        }
        row.erase(row.find_last_not_of(' ') + 1);
        if (begins_with_colons(row)) row[0] = '|';  // never a command to GitHub's runner
        out += row + "\n";
    }
    return out;
}
inline std::string markdown_table(const report_table& t) {
    std::string out = "|", under = "|";
    for (std::size_t i = 0; i < t.head.size(); ++i) {
        fill(out, "[ {name:m}] |", {{"name", t.head[i]}});
        under += i < t.words ? " --- |" : " ---: |";
    }
    fill(out, "\n{under}\n", {{"under", under}});
    for (const auto& row : t.rows) {
        out += "|";
        for (const table_cell& c : row) {
            const char* mark = c.is_marked ? "**" : "";
            fill(out, " {words:m}[{ratio?} ({mark}{ratio}{mark})] |",
                 {{"words", c.text}, {"ratio", c.ratio}, {"mark", mark}});
        }
        out += "\n";
    }
    return out;
}

/// The requests of each label; those of the baseline are last.
inline report_table labels_table(const gate_report& g) {
    report_table t{{"label", "failed"}};
    struct label_column {
        metric_id metric;
        const char* name;
        double metric_row::*value;
    };
    const label_column columns[] = {{metric_id::ttft, "ttft p50", &metric_row::p50},
                                    {metric_id::ttft, "ttft p90", &metric_row::p90},
                                    {metric_id::tpot, "tpot p50", &metric_row::p50},
                                    {metric_id::e2e, "e2e p50", &metric_row::p50},
                                    {metric_id::e2e, "e2e p90", &metric_row::p90}};
    const bool generates = g.what.sent->scores.empty();
    const bool streams = g.what.sent->common.stream && generates;
    const auto is_shown = [&](const label_column& c) {
        return streams || c.metric == metric_id::e2e;
    };
    for (const label_column& c : columns)
        if (is_shown(c)) t.head.push_back(c.name);
    t.head.push_back("throughput");
    for (const auto& [seen, whose] : g.figures.measured())
        for (const label_figures& f : seen.labels) {
            t.add({whose + f.label,
                   filled("{failed} of {requests}",
                          {{"failed", f.failed}, {"requests", f.requests}})});
            for (const label_column& c : columns) {
                const metric_row* row = f.row_of(c.metric);
                if (is_shown(c)) t.append({{c.metric, row ? row->*c.value : not_a_number}});
            }
            t.append({generates ? filling(metric_id::output_throughput, f.output_throughput)
                                : filling(metric_id::request_throughput, f.request_throughput)});
        }
    return t;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
