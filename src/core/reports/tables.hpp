// tables of reports, on the console and in Markdown
#pragma once

#include "api/metrics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/figures/rows.hpp"
#include "core/reports/gate_report.hpp"

#include <algorithm>  // max
#include <cstddef>  // size_t
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A cell, and its look on the page: a class in place of its column's, HTML in place of text.
struct table_cell {
    std::string text;
    const char* look;
    bool is_html;
    table_cell(std::string t, const char* l = nullptr, bool html = false)
        : text(std::move(t)), look(l), is_html(html) {}
    table_cell(const char* t, const char* l = nullptr) : table_cell(std::string(t), l) {}
};
using table_line = std::vector<table_cell>;
/// A table, the same for the console and the page.
struct report_table {
    table_line head{};
    std::vector<table_line> rows{};
    std::size_t words = 1;  // so many columns have words, those after them numbers
};

/// Returns the table for the console: the first column to the left, the others to the right.
inline std::string console_table(const report_table& t, int first_width = 10) {
    std::vector<const table_line*> lines = {&t.head};
    for (const table_line& row : t.rows) lines.push_back(&row);
    std::vector<int> widths(t.head.size(), 10);
    widths[0] = first_width;
    for (const table_line* line : lines)
        for (std::size_t i = 0; i < line->size(); ++i)
            widths[i] = std::max(widths[i], static_cast<int>((*line)[i].text.size()));
    std::string out = "\n";
    for (const table_line* line : lines) {
        for (std::size_t i = 0; i < line->size(); ++i)
            out += i == 0 ? printed("  %-*s", widths[0], (*line)[0].text.c_str())
                          : printed(" %*s", widths[i], (*line)[i].text.c_str());
        out += "\n";
    }
    return out;
}

/// The requests of each label; those of the baseline are last.
inline report_table labels_table(const gate_report& g) {
    report_table t{{"label", "failed"}};
    struct column {
        metric_id metric;
        const char* name;
        double metric_row::*value;
    };
    const column columns[] = {{metric_id::ttft, "ttft p50", &metric_row::p50},
                              {metric_id::ttft, "ttft p90", &metric_row::p90},
                              {metric_id::tpot, "tpot p50", &metric_row::p50},
                              {metric_id::e2e, "e2e p50", &metric_row::p50},
                              {metric_id::e2e, "e2e p90", &metric_row::p90}};
    const bool generates = g.what.sent->scores.empty();
    const bool streams = g.what.sent->common.stream && generates;
    const auto is_shown = [&](const column& c) { return streams || c.metric == metric_id::e2e; };
    for (const column& c : columns)
        if (is_shown(c)) t.head.push_back(c.name);
    t.head.push_back("throughput");
    for (const variant_figures* variant : {&g.figures.candidate, &g.figures.baseline})
        for (const label_figures& f : variant->labels) {
            const char* of = variant == &g.figures.baseline ? "baseline: " : "";
            t.rows.push_back({of + f.label, printed("%zu of %zu", f.failed, f.requests)});
            for (const column& c : columns) {
                const metric_row* row = f.row_of(c.metric);
                if (is_shown(c))
                    t.rows.back().push_back(
                        value_text(c.metric, row ? row->*c.value : not_a_number));
            }
            t.rows.back().push_back(
                generates ? value_text(metric_id::output_throughput, f.output_throughput)
                          : value_text(metric_id::request_throughput, f.request_throughput));
        }
    return t;
}

inline std::string markdown_escaped(const std::string& s) {
    std::string out;
    for (const char c : printable(s, s.size() * 4 + 4)) {
        if (std::string_view("\\|<>`*_[]~").find(c) != std::string_view::npos) out += '\\';
        out += c == '&' ? "&amp;" : std::string(1, c);
    }
    return out;
}

/// Returns text, perhaps a server's, as code: in a code span it is no mention, link, image, HTML or
/// issue. A bar would end a table's cell even there.
inline std::string markdown_code(const std::string& s) {
    std::string words;
    std::size_t longest = 0, run = 0;
    for (const char c : printable(s, s.size() * 4 + 4)) {
        longest = std::max(longest, run = c == '`' ? run + 1 : 0);
        words += c == '|' ? "\u2502" : std::string(1, c);
    }
    if (trimmed(words).empty()) return {};
    const std::string fence(longest + 1, '`');
    const bool needs_room = words.front() == '`' || words.back() == '`' ||
                            (words.front() == ' ' && words.back() == ' ');
    const char* room = needs_room ? " " : "";
    return fence + room + words + room + fence;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
