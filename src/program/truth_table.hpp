// requests as any tool may write them: CSV with a head, or JSON lines
// Columns: id, start, ttft, tpot, e2e, itl (a list), ok; a time is in seconds, or has its unit in the
// name (ttft_ms). Others are not read. Cells may have quotes (RFC 4180).
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "program/others/imported_run.hpp"
#include "program/truth_log.hpp"
#include "program/values.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // pair

#include <picojson.h>

namespace llmbench_program {

/// "ttft_ms": the metric, and its unit in seconds, 0 if it is unknown. No metric: the column is not
/// read.
struct time_column {
    std::string metric{};
    double unit_s = 1;
    bool is_time() const { return !metric.empty() && unit_s > 0; }
};
inline time_column time_column_of(std::string_view name) {
    time_column c;
    const std::size_t bar = name.rfind('_');
    const std::string_view metric = name.substr(0, bar);
    if (bar != std::string_view::npos) {
        const std::string_view unit = name.substr(bar + 1);
        c.unit_s = unit == "s"    ? 1
                   : unit == "ms" ? 1e-3
                   : unit == "us" ? 1e-6
                   : unit == "ns" ? 1e-9
                                  : 0;
    }
    for (const char* known : {"start", "ttft", "tpot", "e2e", "itl"})
        if (metric == known) c.metric = known;
    return c;
}
inline std::string_view without_mark(std::string_view bytes) {
    if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
    return bytes;
}
/// Takes the cells of the next line: a cell in quotes may have commas, line ends and "" for a quote.
inline vector<std::string> taken_cells(std::string_view& bytes, std::size_t& lines) {
    vector<std::string> cells(1);
    bool quoted = false;
    while (!bytes.empty()) {
        const char c = bytes.front();
        bytes.remove_prefix(1);
        lines += c == '\n';
        if (quoted && c == '"' && bytes.starts_with('"')) {
            cells.back() += c;
            bytes.remove_prefix(1);
        } else if (c == '"') quoted = !quoted;
        else if (c == ',' && !quoted) cells.emplace_back();
        else if (c == '\n' && !quoted) break;
        else cells.back() += c;
    }
    for (std::string& cell : cells) {
        if (cell.ends_with('\r')) cell.pop_back();
        cell = std::string(trimmed(cell));
    }
    return cells;
}
/// Whether this is a table and not the file of a tool that is known.
inline bool is_table(std::string_view bytes) {
    bytes = without_mark(bytes);
    const std::string_view head = trimmed(bytes.substr(0, bytes.find('\n')));
    if (head.empty()) return false;
    if (head.front() == '{') {
        picojson::value v;
        if (!parse_json(head, v) || !v.is<picojson::object>()) return false;
        return detail::any_of(v.get<picojson::object>(), [](const auto& of) {
            return time_column_of(of.first).is_time();
        });
    }
    std::size_t lines = 0;
    return detail::any_of(taken_cells(bytes, lines), [](const std::string& name) {
        return time_column_of(name).is_time();
    });
}

/// Takes a value of a column.
class table_row {
public:
    explicit table_row(std::string place) : place_(std::move(place)) {
        row.what.status = request_status::ok;
        row.is_row = true;
    }
    timed_request row{};
    void set(const std::string& name, std::string_view value) {
        value = trimmed(value);
        const time_column c = time_column_of(name);
        if (!c.metric.empty() && !c.is_time())
            refuse({place_, ": ", printable(name, 40), " has no known unit: a name such as ",
                    c.metric, "_s, _ms, _us or _ns is allowed"});
        if (name == "id") row.what.id = std::string(value);
        else if (name == "ok") set_ok(value);
        else if (c.metric == "itl") {
            while (!value.empty())
                if (const std::string_view one = taken_part(value, " ;"); !one.empty())
                    row.gaps_s.push_back(c.unit_s * number(name, one));
        } else if (!c.metric.empty() && !value.empty()) {
            (c.metric == "ttft"    ? row.ttft_s
             : c.metric == "tpot"  ? row.tpot_s
             : c.metric == "start" ? row.start_s
                                   : row.e2e_s) = c.unit_s * number(name, value);
        }
    }

private:
    void set_ok(std::string_view value) {
        const bool is_ok = value == "1" || value == "true";
        if (!is_ok && value != "0" && value != "false")
            refuse(
                {place_, ": ok is \"", printable(value, 40), "\", true, false, 1 or 0 is allowed"});
        if (!is_ok) row.what.status = request_status::server;
    }
    double number(const std::string& name, std::string_view text) const {
        const auto v = parsed_number<double>(std::string(text));
        if (!v || !(*v >= 0 && *v <= 1e18))
            refuse({place_, ": ", printable(name, 40), " is \"", printable(text, 40),
                    "\", a time from 0 is allowed"});
        return *v;
    }
    std::string place_;
};

inline vector<timed_request> read_json_table(std::string_view bytes, const std::string& file) {
    vector<timed_request> all;
    for (const picojson::value& v : read_json_values(bytes, file)) {
        const std::string place = printed("%s: row %zu", file.c_str(), all.size() + 1);
        if (!v.is<picojson::object>())
            refuse({place, " is ", shown_value(v), ", an object is allowed"});
        table_row r(place);
        for (const auto& [name, value] : v.get<picojson::object>()) {
            std::string text;
            if (value.is<picojson::array>())
                for (const picojson::value& one : value.get<picojson::array>())
                    text += one.serialize() + " ";
            else if (!value.is<picojson::null>())
                text = value.is<std::string>() ? value.get<std::string>() : value.serialize();
            r.set(name, text);
        }
        all.push_back(std::move(r.row));
    }
    return all;
}
inline vector<timed_request> read_csv_table(std::string_view bytes, const std::string& file) {
    vector<std::string> head;
    vector<timed_request> all;
    for (std::size_t number = 1, next = 1; !bytes.empty(); number = next) {
        const vector<std::string> row = taken_cells(bytes, next);
        if (row.size() == 1 && row[0].empty()) continue;
        if (head.empty()) {
            head = row;
            continue;
        }
        const std::string place = printed("%s:%zu", file.c_str(), number);
        if (row.size() != head.size())
            refuse({place, printed(": it has %zu values, as many as the head are allowed: %zu",
                                   row.size(), head.size())});
        table_row r(place);
        for (std::size_t i = 0; i < row.size(); ++i) r.set(head[i], row[i]);
        all.push_back(std::move(r.row));
    }
    return all;
}
inline vector<timed_request> read_table(std::string_view bytes, const std::string& file) {
    bytes = without_mark(bytes);
    const bool is_json = trimmed(bytes.substr(0, bytes.find('\n'))).substr(0, 1) == "{";
    vector<timed_request> all =
        is_json ? read_json_table(bytes, file) : read_csv_table(bytes, file);
    // By start, if the rows have it: a client may write them as requests end.
    const auto has_start = [](const timed_request& t) { return t.start_s.has_value(); };
    if (detail::all_of(all, has_start))
        sort_by(all, [](const timed_request& t) { return *t.start_s; });
    return all;
}

}  // namespace llmbench_program
