// lines of a history's files, and their series
#pragma once

#include "core/base/vector.hpp"
#include "core/base/field_json.hpp"
#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "extensions/history/core/levels.hpp"

#include <algorithm>  // find_if, min, move
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <iterator>  // make_move_iterator
#include <list>
#include <map>
#include <set>
#include <stdexcept>  // invalid_argument
#include <string>
#include <string_view>
#include <utility>  // move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr const char* history_schema = "llmbench/history/1";
inline constexpr std::size_t longest_history_line = 65536;  // bytes
inline constexpr std::size_t max_history_repeats = 1000;   // of one statistic in one run

inline const char* to_string(annotation_kind k) {
    return name_at({"accept", "step", "no_step", "leave_out"}, k);
}

/// A fact or a statistic by its name.
using named_text = std::pair<std::string, std::string>;
struct named_repeats {
    std::string name{};             // "mean(tpot)"
    vector<double> repeats{};  // SI units
};

/// One gate of one run of a program.
struct history_run {
    std::string id{};  // unique, in any file
    std::string at{};  // UTC start of its program
    std::string gate{}, run_series{}, commit{};
    std::string machine{};  // its name, "" if unknown
    vector<named_text> watched{};
    std::string outcome{};
    vector<named_repeats> values{};
    vector<std::string> more_is_better{};  // statistics whose names do not say it
    vector<std::string> objectives{};      // statistics that the gate judged
};
/// A person's annotation on a gate's runs.
struct history_note {
    std::string id{};
    std::string gate{}, run_series{};  // "": of every series
    annotation what{};
};

/// The content of files: oldest first, each id once.
struct history_lines {
    vector<history_run> runs{};
    vector<history_note> notes{};
};

/// "2026-11-23T02:15:04Z", with valid month, day and time.
inline bool is_utc_time(std::string_view s) {
    constexpr std::string_view form = "dddd-dd-ddTdd:dd:ddZ";
    if (s.size() != form.size()) return false;
    for (std::size_t i = 0; i < s.size(); ++i)
        if (form[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != form[i]) return false;
    const auto at = [&](std::size_t i) { return (s[i] - '0') * 10 + s[i + 1] - '0'; };
    return days_of_date(s.substr(0, 10)) && at(11) < 24 && at(14) < 60 && at(17) <= 60;
}
inline bool is_utc_date(std::string_view s) {
    return is_utc_time(std::string(s) + "T00:00:00Z");
}

inline void fields_of(field_visitor& v, history_run& r) {
    std::string schema = history_schema;
    v.text({"schema"}, schema);
    v.text({"id"}, r.id);
    v.text({"at"}, r.at);
    if (!is_utc_time(r.at)) v.misfit("at", "a time such as 2026-11-23T02:15:04Z is allowed");
    v.text({"gate"}, r.gate);
    v.text({"cohort"}, r.run_series);
    v.quoted({"commit"}, r.commit);
    v.quoted({"machine", "LLMBENCH_MACHINE, else the host's name", if_any}, r.machine);
    if (v.begin({"watched"})) {
        vector<std::string> names;
        for (const named_text& w : r.watched) names.push_back(w.first);
        names = v.names(names);
        if (v.assigns()) r.watched.resize(names.size());
        for (std::size_t i = 0; i < names.size(); ++i) {
            v.quoted({names[i].c_str()}, r.watched[i].second);
            if (v.assigns()) r.watched[i].first = printable(names[i], 60);
        }
        v.end();
    }
    v.text({"outcome"}, r.outcome);
    if (!v.begin({"values", "of each statistic its repeats, in SI units"})) return;
    vector<std::string> names;
    for (const named_repeats& n : r.values) names.push_back(n.name);
    names = v.names(names);
    if (v.assigns()) r.values.resize(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        named_repeats& n = r.values[i];
        if (v.assigns()) n.name = names[i];
        v.numbers({names[i].c_str()}, n.repeats, any_number, layout::one_line);
        const auto is_none = [](double x) { return !std::isfinite(x) || !(x >= 0); };
        const bool holds = !n.repeats.empty() && n.repeats.size() <= max_history_repeats &&
                           !any_of(n.repeats, is_none);
        if (!holds) v.misfit(names[i].c_str(), "one to 1000 numbers from 0 on are allowed");
    }
    v.end();
    v.texts({"more_is_better", "statistics whose names do not say it", if_any}, r.more_is_better);
    v.texts({"objectives", "statistics that the gate judged", if_any}, r.objectives);
}
inline void fields_of(field_visitor& v, history_note& n) {
    std::string schema = history_schema;
    v.text({"schema"}, schema);
    v.text({"id"}, n.id);
    v.choice({"mark"}, n.what.kind, annotation_kind::leave_out);
    v.text({"gate"}, n.gate);
    v.text({"cohort", "of every one where there is none", at_times}, n.run_series);
    v.quoted({"at", "a date, or the id of a run"}, n.what.at);
    v.quoted({"why"}, n.what.why);
    if (n.what.why.empty()) v.misfit("why", "a text that is not empty is allowed");
    v.quoted({"by", "", at_times}, n.what.by);
}

template <class T>
std::string history_line(const T& of) {
    json_writer j(layout::one_line);
    j.open('{');
    write_fields(j, of);
    j.close();
    return j.text() + "\n";
}

/// Six digits are finer than any server's noise.
inline double in_six_digits(double v) {
    return parsed_number<double>(printed("%.5e", v)).value_or(not_a_number);
}

/// The time of this machine, and the latest that a line may have: the writer's clock may be ahead.
struct history_clock {
    std::string now{}, latest{};
};
inline void check_is_past(const std::string& what, const std::string& at,
                          const history_clock& clock) {
    if (at > clock.latest)
        refuse({what, " is of ", at, ", and now it is ", clock.now,
                ": one of the two clocks is wrong"});
}
/// Adds a line's content. `where` is its file and number. Throws std::invalid_argument with one
/// sentence if it is invalid, of a later schema, or of the future.
inline void read_history_line(std::string_view line, const std::string& where,
                              const history_clock& clock, history_lines& to) {
    if (line.size() > longest_history_line)
        refuse({where, printed(" has %zu bytes: a line of a history has %zu at most", line.size(),
                               longest_history_line)});
    json_reader json;
    const json_view* const v = json.read(line);
    const std::string_view schema = v ? string_member(*v, "schema") : "";
    if (!schema.starts_with("llmbench/history/"))
        refuse({where, " is no line of a history: ", printable(line, 60)});
    if (schema != history_schema)
        refuse({where, " has the schema ", printable(schema, 60), ", which a later llmbench wrote; "
                "this one reads ", history_schema});
    field_reader reader({*v, where}, reads::whole);
    if (member(*v, "mark")) return fields_of(reader, to.notes.emplace_back());
    fields_of(reader, to.runs.emplace_back());
    check_is_past(where, to.runs.back().at, clock);
}
/// Whether a complete line in our format is about another gate. It is not parsed, because each of
/// many gates reads all lines.
inline bool is_of_another_gate(std::string_view line, const std::string& gate) {
    constexpr std::string_view begins = R"({"schema":"llmbench/history/1",)", key = R"("gate":)";
    if (gate.empty() || line.substr(0, begins.size()) != begins || line.back() != '}') return false;
    const std::size_t at = line.find(key);
    if (at == std::string_view::npos || line.substr(1, at).find('{') != std::string_view::npos)
        return false;
    const std::string_view named = line.substr(at + key.size());
    if (named.front() != '"') return false;
    // Other writers may escape other characters: such lines are parsed as JSON.
    const std::size_t end = named.find_first_of("\"\\", 1);
    if (end == std::string_view::npos || named[end] == '\\') return false;
    return named.substr(0, end + 1) != gate;
}
/// All lines of a file, or those of one gate, without empty ones.
inline void read_history_file(std::string_view text, const std::string& file,
                              const history_clock& clock, history_lines& to,
                              const std::string& gate = "") {
    const std::string quoted = gate.empty() ? "" : json_quoted(gate);
    for (std::size_t number = 1; !text.empty(); ++number) {
        std::string_view line = taken_part(text, "\n");
        if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);  // of any file put together
        if (!trimmed(line).empty() && !is_of_another_gate(line, quoted))
            read_history_line(line, file + ":" + std::to_string(number), clock, to);
    }
}

/// A stable sort. std::stable_sort in libstdc++ 12 uses a buffer that C++20 removed, and clang
/// warns.
template <class T, class Before>
void sort_stably(vector<T>& all, Before&& before) {
    std::list<T> sorted(std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()));
    sorted.sort(before);
    std::move(sorted.begin(), sorted.end(), all.begin());
}
/// Oldest first, and only the oldest of equal ids: files may be concatenated and kept beside their
/// sources.
inline history_lines in_order(history_lines all) {
    const auto earlier = [](const history_run& a, const history_run& b) {
        return a.at != b.at ? a.at < b.at : a.id < b.id;
    };
    const auto noted_before = [](const history_note& a, const history_note& b) {
        return a.what.at != b.what.at ? a.what.at < b.what.at : a.id < b.id;
    };
    sort_stably(all.runs, earlier);
    sort_stably(all.notes, noted_before);
    const auto keep_first = [](auto& of) {
        std::set<std::string> seen;
        erase_if(of, [&](const auto& x) { return !seen.insert(x.id).second; });
    };
    keep_first(all.runs);
    keep_first(all.notes);
    return all;
}

/// The metric of a statistic by its name, null for a user's: that of `drift(p10(decode_speed))` is
/// drift, that of `output_throughput of turns(2)` output_throughput.
inline const metric_facts* metric_of_statistic(std::string_view name) {
    if (name.find(" / ") != name.npos) return &facts_of(metric_id::ratio);
    const std::size_t end = std::min(name.find_first_of("( ,)"), name.size());
    for (const metric_facts& m : metric_table)
        if (name.substr(0, end) == m.name) return &m;
    const bool has_more = end < name.size() && name[end] == '(';
    return has_more ? metric_of_statistic(name.substr(end + 1)) : nullptr;
}
/// Levels are logarithms of values of a statistic plus this.
inline double offset_of(std::string_view name) {
    const metric_facts* const m = metric_of_statistic(name);
    return m ? m->offset : 0;
}
/// The side of a statistic's metric; of a drift that of what drifts.
inline bool is_better_if_more(std::string_view name) {
    const metric_facts* const m = metric_of_statistic(name);
    if (m && is_drift(m->id)) return is_better_if_more(name.substr(name.find('(') + 1));
    return m && m->side == bound_side::at_least;
}

/// A date's run is its last valid one, whatever it measured.
inline bool is_valid_run(const history_run& r) {
    return r.outcome == "passed" || r.outcome == "failed" || r.outcome == "inconclusive";
}

/// The runs of one gate in one series, one a date, oldest first.
inline vector<const history_run*> runs_of(const history_lines& all, const std::string& gate,
                                          const std::string& run_series) {
    vector<const history_run*> runs;
    for (const history_run& r : all.runs) {
        if (r.gate != gate || r.run_series != run_series || !is_valid_run(r)) continue;
        const bool is_same_date = !runs.empty() && runs.back()->at.compare(0, 10, r.at, 0, 10) == 0;
        if (is_same_date) runs.back() = &r;
        else runs.push_back(&r);
    }
    return runs;
}

/// The number of runs of each series of a gate.
inline std::map<std::string, std::size_t> runs_by_series(const history_lines& all,
                                                         const std::string& gate) {
    std::map<std::string, std::size_t> found;
    for (const history_run& r : all.runs)
        if (r.gate == gate) found[r.run_series] = 0;
    for (auto& [run_series, runs] : found) runs = runs_of(all, gate, run_series).size();
    return found;
}

/// Returns why a gate has no runs in any series, "" if it has.
inline std::string no_valid_run_of(const history_lines& all, const std::string& gate,
                                   const std::string& named = "this gate") {
    std::size_t runs = 0;
    for (const history_run& r : all.runs) {
        if (r.gate == gate && is_valid_run(r)) return {};
        runs += r.gate == gate;
    }
    const bool none = runs == 0;
    return joined({"the history has ", none ? "no run" : plural(runs, "run"), " of ", named,
                   none ? "" : ", and none is valid"});
}

/// An annotation names a run, or its date.
inline bool is_about(const annotation& m, const history_run& r) {
    return m.at == r.id || m.at == r.at || (m.at.size() == 10 && r.at.compare(0, 10, m.at) == 0);
}

/// The runs of a gate in a series that have the statistic, and their annotations.
inline history_series series_of(const history_lines& all,
                                const vector<const history_run*>& runs,
                                const std::string& statistic) {
    history_series s;
    s.statistic = statistic;
    s.at_most = !is_better_if_more(statistic);
    s.offset = offset_of(statistic);
    if (runs.empty()) return s;
    const history_run& any = *runs.front();
    for (const history_note& n : all.notes)
        if (n.gate == any.gate && (n.run_series.empty() || n.run_series == any.run_series)) {
            s.annotations.push_back(n.what);
            for (const history_run& r : all.runs)  // of a run: at its time
                if (r.id == n.what.at) s.annotations.back().at = r.at;
        }
    for (const history_run* r : runs) {
        for (const std::string& name : r->more_is_better)
            if (name == statistic) s.at_most = false;
        const auto named = [&](const named_repeats& v) { return v.name == statistic; };
        const auto at = std::find_if(r->values.begin(), r->values.end(), named);
        if (at == r->values.end()) continue;
        const auto leaves_out = [&](const annotation& m) {
            return m.kind == annotation_kind::leave_out && is_about(m, *r);
        };
        s.runs.push_back({r->id, r->at, r->commit, at->repeats, r->watched,
                          any_of(s.annotations, leaves_out), printable(r->machine, 100)});
    }
    const auto is_zero = [&](const series_run& r) {
        return any_of(r.repeats, [&](double x) { return !s.has_level(x); });
    };
    if (any_of(s.runs, is_zero)) s.scale = std::max(s.mean(), 1e-9);
    return s;
}

/// The history at a date (all of that day), a time, or the last run of a commit (seven digits are
/// enough); "": now. Throws std::invalid_argument for other text.
inline history_lines as_of(history_lines all, const std::string& when) {
    if (when.empty()) return all;
    const char* const name = "LLMBENCH_HISTORY_AT is \"";
    std::string until;
    if (is_utc_time(when)) until = when;
    else if (is_utc_date(when)) until = when + "T23:59:60Z";
    else {
        if (when.size() < 7 || when.find_first_not_of("0123456789abcdef") != std::string::npos)
            refuse({name, printable(when, 60), "\": it must be a date such as 2026-11-23, a time "
                    "such as 2026-11-23T02:15:04Z, or a commit by 7 of its digits or more"});
        for (const history_run& r : all.runs) {
            const std::size_t n = std::min(r.commit.size(), when.size());
            if (n >= 7 && r.commit.compare(0, n, when, 0, n) == 0) until = r.at;
        }
        if (until.empty())
            refuse({name, printable(when, 60), "\": the history has no run of that commit"});
    }
    erase_if(all.runs, [&](const history_run& r) { return r.at > until; });
    const auto is_later = [&](const history_note& n) {
        const auto has_id = [&](const history_run& r) { return r.id == n.what.at; };
        const bool is_dated = is_utc_date(n.what.at) || is_utc_time(n.what.at);
        return is_dated ? n.what.at > until : !any_of(all.runs, has_id);
    };
    erase_if(all.notes, is_later);
    return all;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
