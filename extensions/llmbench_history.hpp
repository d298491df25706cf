// llmbench_history 1.0.0-rc.1: history(), the runs of main, LLMBENCH_HISTORY. Include it after llmbench.hpp.
// Put together from src/ by ci/assemble.py: edit there, not here.
//
// Part one: declarations
//   [A] the main branch's runs as a baseline
// Part three: runs read, learned from, judged by and added
//
// SPDX-License-Identifier: MIT
//
// Copyright (c) 2026 the llmbench authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or
// substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

#ifndef LLMBENCH_HPP
#error "llmbench_history.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_HISTORY_HPP
#define LLMBENCH_HISTORY_HPP
static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_1.0.0rc.1") == 0,
              "llmbench_history.hpp is of 1.0.0-rc.1, but llmbench.hpp is " LLMBENCH_RELEASE_
              ": take both from one release");

// ===== [A] the main branch's runs as a baseline ==================================================

namespace llmbench {
inline namespace v1 {

namespace detail {
/// If this is not found, the file with LLMBENCH_MAIN or LLMBENCH_IMPLEMENT lacks the header in the
/// name.
extern const extension* const include_llmbench_history_hpp_where_LLMBENCH_MAIN_is;
}  // namespace detail

struct history_baseline {
    types::text folder{};
    fraction run_to_run{0};
    operator any_baseline() const {
        return detail::extension_value{
            detail::box::make(*this), detail::include_llmbench_history_hpp_where_LLMBENCH_MAIN_is};
    }
};
/// The main branch's runs (the last one of each UTC date) as a baseline: LLMBENCH_HISTORY=append adds them to the
/// folder. A run is compared with them and the spread between them, from 3 on. With
/// `run_to_run`, a relative standard deviation up to 50 %, the first one is enough; it counts
/// until there are ten, and nothing below twice that fails meanwhile. The runs also give the noise
/// of repeats: objectives without a baseline need fewer repeats.
inline history_baseline history(const types::text& folder = "perf-history",
                                fraction run_to_run = fraction(0)) {
    return {folder, run_to_run};
}

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_HISTORY_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_HISTORY_IMPLEMENTED)
#define LLMBENCH_HISTORY_IMPLEMENTED

#include <algorithm>  // clamp, find, max, max_element, nth_element, find_if, min, move, sort, ...
#include <cerrno>  // errno, EEXIST
#include <cmath>  // exp, expm1, fabs, log, sqrt, isfinite, lgamma, pow, round, isnan, log1p, ...
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <exception>
#include <filesystem>
#include <fstream>  // ifstream, ios
#include <functional>
#include <iostream>  // cout
#include <iterator>  // make_move_iterator
#include <limits>
#include <list>
#include <map>
#include <memory>  // make_unique, unique_ptr, shared_ptr
#include <mutex>  // lock_guard
#include <optional>
#include <set>
#include <stdexcept>  // invalid_argument, runtime_error
#include <string>
#include <string_view>
#include <system_error>  // error_code
#include <thread>  // hardware_concurrency
#include <utility>  // pair, move, exchange

#include <fcntl.h>  // open, O_DIRECTORY
#include <sys/utsname.h>  // the kernel
#include <unistd.h>  // fsync, link, unlink, close

// ===== [E] levels of a series, and their first runs ==============================================

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The last valid run of a UTC date.
struct series_run {
    std::string id{};
    std::string at{};      // UTC, "2026-11-23T02:15:04Z"
    std::string commit{};  // "" if unknown
    vector<double> repeats{};  // of the statistic, SI units, > 0
    /// Properties that do not change the series: name and value, "server" "vllm 0.33.0".
    vector<std::pair<std::string, std::string>> watched{};
    bool is_left_out = false;  // by an annotation
    std::string machine{};     // its name, "" if unknown
};

enum class annotation_kind { accept, step, no_step, leave_out };

struct annotation {
    annotation_kind kind = annotation_kind::accept;
    std::string at{};  // its date, or its run's
    std::string why{}, by{};
};

/// One statistic of a gate in one series, oldest run first, with its annotations.
struct history_series {
    std::string statistic{};  // "mean(tpot)"
    double offset = 0;        // of its metric: levels are logarithms of value + offset, or
    double scale = 0;         // above 0: values in parts of it, for differences
    bool at_most = true;      // less is better
    vector<series_run> runs{};
    vector<annotation> annotations{};
    bool has_level(double x) const { return scale > 0 || x + offset > 0; }
    double level_of(double x) const { return scale > 0 ? x / scale : std::log(x + offset); }
    double value_of(double level) const {
        return scale > 0 ? level * scale : std::exp(level) - offset;
    }
    /// A difference of levels as a share.
    double share_of(double by) const { return scale > 0 ? by : std::expm1(by); }
    /// The mean of all repeats.
    double mean() const {
        vector<double> all;
        for (const series_run& r : runs) all.insert(all.end(), r.repeats.begin(), r.repeats.end());
        return mean_of(all);
    }
};

// The minimum difference between two programs on one machine, days apart.
inline constexpr double least_run_sd = 0.0025;
inline constexpr std::size_t searched_runs = 80;
inline constexpr std::size_t runs_before = 3, runs_after = 2;  // minimum around a step

inline double median_of(vector<double> v) {
    if (v.empty()) return not_a_number;
    const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
    std::nth_element(v.begin(), middle, v.end());
    if (v.size() % 2 == 1) return *middle;
    return (*std::max_element(v.begin(), middle) + *middle) / 2;
}
/// The median distance from `center` in normal standard deviations, corrected for few values; 0 if
/// more than half are equal.
inline double robust_sd(vector<double> v, double center) {
    for (double& x : v) x = std::fabs(x - center);
    return 1.4826 * median_of(v) * (1 + 1 / static_cast<double>(v.size()));
}
/// Lag-1 autocorrelation of values around 0.
inline double lag_one(const vector<double>& v) {
    double products = 0, squares = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
        squares += v[i] * v[i];
        if (i > 0) products += v[i] * v[i - 1];
    }
    return squares > 0 ? products / squares : 0;
}

/// A run's repeats as levels, with less as better.
struct run_level {
    std::size_t run = 0;  // its index in the series
    double mean = 0, variance = 0, repeats = 0;
};
/// Without runs that lack the statistic or that an annotation leaves out.
inline vector<run_level> levels_of(const history_series& s) {
    vector<run_level> out;
    for (std::size_t i = 0; i < s.runs.size(); ++i) {
        const vector<double>& repeats = s.runs[i].repeats;
        const bool is_known = all_of(repeats, [&](double x) { return s.has_level(x); });
        if (s.runs[i].is_left_out || repeats.empty() || !is_known) continue;
        vector<double> levels;
        for (const double x : repeats) levels.push_back((s.at_most ? 1 : -1) * s.level_of(x));
        out.push_back({i, mean_of(levels), sample_variance(levels),
                       static_cast<double>(levels.size())});
    }
    return out;
}
inline vector<double> means_of(const vector<run_level>& runs, std::size_t first, std::size_t end) {
    vector<double> out;
    for (std::size_t i = first; i < end; ++i) out.push_back(runs[i].mean);
    return out;
}

/// The best split of values: the largest two-sample t, and the start of the later part.
struct split_found {
    std::size_t at = 0;
    double t = 0;
};
inline split_found best_split(const vector<double>& v) {
    const std::size_t n = v.size();
    const double shift = v.empty() ? 0 : v[0];  // sums of differences keep their digits
    double all = 0, squares = 0;
    for (const double x : v) {
        all += x - shift;
        squares += (x - shift) * (x - shift);
    }
    split_found best;
    double before = 0;
    for (std::size_t k = 1; k + runs_after <= n; ++k) {
        before += v[k - 1] - shift;
        if (k < runs_before) continue;
        const double a = static_cast<double>(k), b = static_cast<double>(n - k);
        const double after = all - before;
        const double within = squares - before * before / a - after * after / b;
        const double variance = std::max(within / (a + b - 2), least_run_sd * least_run_sd);
        const double t = std::fabs(after / b - before / a) / std::sqrt(variance * (1 / a + 1 / b));
        if (t > best.t) best = {k, t};
    }
    return best;
}
/// The factor by which dependence lowers a t: autocorrelation around both means, corrected for the
/// bias of short series.
inline double dependence_of_split(const vector<double>& v, std::size_t at) {
    const auto n = static_cast<double>(v.size());
    const auto part = v.begin() + static_cast<std::ptrdiff_t>(at);
    const double before = mean_of({v.begin(), part}), after = mean_of({part, v.end()});
    vector<double> rest;
    for (std::size_t i = 0; i < v.size(); ++i) rest.push_back(v[i] - (i < at ? before : after));
    const double r = std::clamp((lag_one(rest) * n + 2) / (n - 5), 0.0, 0.8);
    return std::sqrt((1 - r) / (1 + r));
}
/// The start of the newest level, 0 if no step is shown: a changepoint model (Hawkins, Qiu and
/// Kang, Journal of Quality Technology 35, 2003), with a two-sided level for a false step in 1 of
/// 500 runs.
inline std::size_t step_in(vector<double> v) {
    const std::size_t n = v.size();
    if (n < runs_before + runs_after + 1) return 0;
    const double center = median_of(v), sd = robust_sd(v, center);
    const double reach = 4 * std::max(sd, least_run_sd);  // nearer, a quiet series hides its steps
    if (n >= 8 && sd > 0)
        for (double& x : v) x = std::clamp(x, center - reach, center + reach);
    split_found best = best_split(v);
    if (best.at == 0) return 0;
    const auto runs = static_cast<double>(n);
    const double df = runs - 2;
    const double level = std::exp(-7.471 - 5.32 / runs + 56.4 / (runs * runs));
    const auto is_shown = [&](double t) {
        return incomplete_beta(df / 2, 0.5, df / (df + t * t)) < level;
    };
    if (!is_shown(best.t)) return 0;
    return n < 20 || is_shown(best.t * dependence_of_split(v, best.at)) ? best.at : 0;
}

/// Runs of one level: indices in the list of run_level; `end` is one beyond the last.
struct history_segment {
    std::size_t first = 0, end = 0;
    std::size_t found = 0;   // by the runs up to this one; `first` if by an annotation
    bool is_accepted = true;
};

/// The index of the first run at or after a date; their number if there is none.
inline std::size_t place_of_date(const history_series& s, const vector<run_level>& runs,
                                 const std::string& at) {
    std::size_t i = 0;
    while (i < runs.size() && s.runs[runs[i].run].at.substr(0, 10) < at.substr(0, 10)) ++i;
    return i;
}
inline vector<std::size_t> annotated_runs(const history_series& s,
                                          const vector<run_level>& runs,
                                          annotation_kind kind) {
    vector<std::size_t> out;
    for (const annotation& m : s.annotations)
        if (m.kind == kind) out.push_back(place_of_date(s, runs, m.at));
    return out;
}

/// From the first run to the last: a step that was found stays, unless an annotation denies it.
/// Runs before such an annotation stay in the segment, and are not searched again.
/// `is_mains(from, at, end)`: whether a step at the run `at` is one of main.
template <class Mains>
vector<history_segment> segments_of(const history_series& s, const vector<run_level>& runs,
                                    Mains&& is_mains) {
    if (runs.empty()) return {};
    const auto steps = annotated_runs(s, runs, annotation_kind::step);
    const auto none = annotated_runs(s, runs, annotation_kind::no_step);
    const auto holds = [](const vector<std::size_t>& v, std::size_t i) {
        return std::find(v.begin(), v.end(), i) != v.end();
    };
    vector<history_segment> out(1);
    std::size_t searched = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (holds(steps, i) && i > out.back().first) {
            out.back().end = i;
            out.push_back({i, i + 1, i});
            searched = i;
        }
        if (holds(none, i)) searched = i;
        const std::size_t from =
            std::max(searched, i + 1 > searched_runs ? i + 1 - searched_runs : 0);
        const std::size_t at = step_in(means_of(runs, from, i + 1));
        if (at > 0 && is_mains(from, from + at, i + 1)) {
            out.back().end = searched = from + at;
            out.push_back({from + at, i + 1, i});
        }
        out.back().end = i + 1;
    }
    return out;
}
inline vector<history_segment> segments_of(const history_series& s, const vector<run_level>& runs) {
    return segments_of(s, runs, [](auto...) { return true; });
}

// ===== [E] lines of a history's files, and their series ==========================================

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

// ===== [E] a server and its machine, a series, and a gate as its line of a history ===============

/// Unknown properties are "".
struct fingerprint {
    std::string server{}, version{};  // "vLLM", "0.33.0"
    std::string arguments{};          // a hash
    std::string accelerators{};       // "8 x NVIDIA H100 80GB HBM3"
    std::string cards{};              // a hash of the cards' ids
    std::string driver{}, power{}, kernel{};
    std::string cpu{}, cores{};
    std::string machine{};  // the name of this one
    bool is_hardware_known() const { return !cpu.empty() || !accelerators.empty(); }
};

inline std::string short_hash(std::string_view s) {
    return hash_of(s).text().substr(8);
}

// ---- its software

/// Where a server reports its version, and the fields that identify it.
struct version_page {
    const char *server, *path, *version, *more;  // "": no more fields
};
inline constexpr version_page version_pages[] = {
    {"vLLM", "/version", "version", ""},        {"TensorRT-LLM", "/version", "version", ""},
    {"SGLang", "/server_info", "version", ""},  {"SGLang", "/get_server_info", "version", ""},
    {"llama.cpp", "/props", "build_info", ""},  {"Ollama", "/api/version", "version", ""},
    {"TGI", "/info", "version", "sha"},         {"TEI", "/info", "version", "sha"},
    {"Triton", "/v2", "version", ""}};

/// The pages to ask, in turn: those of a known server, else all paths, each once.
inline vector<version_page> version_pages_of(const std::string& server) {
    vector<version_page> pages;
    for (const version_page& p : version_pages)
        if (server == p.server) pages.push_back(p);
    if (!server.empty()) return pages;
    for (const version_page& p : version_pages) {
        const auto same = [&](const version_page& x) { return std::string_view(x.path) == p.path; };
        if (std::find_if(pages.begin(), pages.end(), same) == pages.end()) pages.push_back(p);
    }
    return pages;
}
/// Returns "0.33.0", "3.1.0 (4d5e6f70)"; "" if the answer is another server's.
inline std::string reported_version(const version_page& p, const std::string& body) {
    json_reader reader;
    const json_view* const v = reader.read(body);
    if (!v) return {};
    const std::string version = printable(string_member(*v, p.version), 60);
    const std::string more = *p.more ? printable(string_member(*v, p.more), 12) : "";
    return version.empty() || more.empty() ? version : version + " (" + more + ")";
}
/// The name of a server whose metrics page does not say it: by its API, or by the path that it
/// answers, which two servers may share.
inline std::string server_behind(const std::string& path) {
    std::string names;
    for (const version_page& p : version_pages)
        if (path == p.path) names += (names.empty() ? "" : " or ") + std::string(p.server);
    return names;
}

/// Hashes the parts of a command that matter: not addresses, file locations, keys and seeds.
inline std::string hash_of_arguments(std::string_view command) {
    constexpr std::string_view idle[] = {"host", "port", "path", "dir",  "file",
                                         "root", "seed", "key",  "token"};
    const auto ends_with = [](std::string_view s, std::string_view end) {
        return s.size() >= end.size() && s.substr(s.size() - end.size()) == end;
    };
    std::string kept;
    bool passes_value = false;
    while (!command.empty()) {
        const std::string_view word = taken_part(command, " \t\n");
        if (word.empty()) continue;
        const bool is_option = word.front() == '-';
        const bool is_value = std::exchange(passes_value, false) && !is_option;
        const std::size_t sign = word.find('=');
        const std::string_view name = word.substr(0, sign);
        bool is_idle = is_value || (!is_option && name.find('/') != std::string_view::npos);
        for (const std::string_view end : idle)
            if (is_option && ends_with(name, end)) {
                is_idle = true;
                passes_value = sign == std::string_view::npos;
            }
        if (!is_idle) kept.append(word).append(" ");
    }
    return kept.empty() ? "" : short_hash(kept);
}

// ---- its accelerators

/// "2 x NVIDIA L4, NVIDIA T4": the names of all, counted.
inline std::string counted_names(vector<std::string> names) {
    std::sort(names.begin(), names.end());
    std::string words;
    for (std::size_t i = 0, n = 0; i < names.size(); i += n) {
        for (n = 1; i + n < names.size() && names[i + n] == names[i];) ++n;
        words += (words.empty() ? "" : ", ") + printed("%zu x ", n) + names[i];
    }
    return words;
}
/// Each card once, in any order.
inline std::string hash_of_cards(vector<std::string> ids) {
    std::sort(ids.begin(), ids.end());
    std::string all;
    for (const std::string& id : ids) all += id + "\n";
    return ids.empty() ? "" : short_hash(all);
}

/// Adds cards on a dcgm-exporter page to those of other pages.
struct reported_cards {
    vector<std::string> ids{}, names{}, drivers{};
};
inline void read_cards(const metrics_page& page, reported_cards& to) {
    for (const page_sample& s : page.samples) {
        const std::string id = printable(label_of(page, s, "UUID"), 60);
        const std::string name = printable(label_of(page, s, "modelName"), 60);
        if (id.empty() || name.empty()) continue;
        if (std::find(to.ids.begin(), to.ids.end(), id) != to.ids.end()) continue;
        to.ids.push_back(id);
        to.names.push_back(name);
        const std::string_view driver = label_of(page, s, "DCGM_FI_DRIVER_VERSION");
        if (!driver.empty()) to.drivers.push_back(printable(driver, 30));
    }
}
/// Reads `nvidia-smi --query-gpu=name,uuid,driver_version,memory.total,power.limit
/// --format=csv,noheader`: a line for each card; no cards in other text.
inline void read_nvidia_smi(std::string_view csv, fingerprint& to) {
    vector<std::string> names, cards, powers;
    while (!csv.empty()) {
        std::string_view line = taken_part(csv, "\n");
        vector<std::string> cells;
        while (!line.empty()) cells.push_back(printable(trimmed(taken_part(line, ",")), 60));
        if (cells.size() != 5 || cells[1].compare(0, 4, "GPU-") != 0) continue;
        names.push_back(cells[0]);
        cards.push_back(cells[1] + " " + cells[3]);
        powers.push_back(cells[4]);
        to.driver = cells[2];
    }
    if (names.empty()) return;
    to.accelerators = counted_names(names);
    to.cards = hash_of_cards(cards);
    std::sort(powers.begin(), powers.end());
    powers.erase(std::unique(powers.begin(), powers.end()), powers.end());
    to.power = powers.size() == 1 ? powers[0] : "";
}

/// Properties that are watched, and named if they change at a step.
inline vector<named_text> watched_facts(const fingerprint& f) {
    vector<named_text> all;
    const auto add = [&](const char* name, const std::string& value) {
        if (!value.empty()) all.emplace_back(name, value);
    };
    add("arguments", f.arguments);
    add("card", f.cards);
    add("driver", f.driver);
    add("kernel", f.kernel);
    add("power", f.power);
    add("server", f.version.empty() ? "" : f.server + " " + f.version);
    return all;
}

inline constexpr const char* series_schema = "llmbench/cohort/1";

/// Properties equal in all runs of a series, as text; "": unknown or none. The text of the load is
/// for readers; `load` identifies it, and older files lack that.
struct run_series {
    std::string gate{}, definitions{}, model{}, api{};
    std::string arrivals{}, workload{}, extent{}, options{}, seed{}, trace_hash{};
    std::string server{};        // its kind, "vLLM", or a simulated one's settings
    std::string accelerators{};  // "8 x NVIDIA H100 80GB HBM3"
    std::string cpu{}, cores{};  // of the server's machine; cores it may use
    std::string machine{};       // LLMBENCH_MACHINE, if nothing else tells the hardware
    std::string load{};          // hash of its values
    bool operator==(const run_series&) const = default;
};
inline constexpr std::pair<const char*, std::string run_series::*> series_facts[] = {
    {"gate", &run_series::gate},         {"definitions", &run_series::definitions},
    {"model", &run_series::model},       {"api", &run_series::api},
    {"arrivals", &run_series::arrivals}, {"workload", &run_series::workload},
    {"extent", &run_series::extent},     {"options", &run_series::options},
    {"seed", &run_series::seed},         {"trace_hash", &run_series::trace_hash},
    {"server", &run_series::server},     {"accelerators", &run_series::accelerators},
    {"cpu", &run_series::cpu},           {"cores", &run_series::cores},
    {"machine", &run_series::machine}};
/// The text of the load, which `load` replaces.
inline bool describes_load(std::string run_series::* fact) {
    return fact == &run_series::arrivals || fact == &run_series::workload ||
           fact == &run_series::extent || fact == &run_series::options;
}

inline void fields_of(field_visitor& v, run_series& c) {
    for (const auto& [name, fact] : series_facts) v.quoted({name}, c.*fact);
    v.quoted({"load", "a hash of its values", if_any}, c.load);
}

/// 16 hexadecimal digits: a hash of every property and its name. If the load's values are known its
/// text is left out, so that a corrected text does not lose all runs.
inline std::string id_of(const run_series& c) {
    fnv1a hash;
    const auto add = [&](std::string_view name, const std::string& value) {
        for (const std::string_view part : {name, std::string_view(value)}) {
            hash.add(part.data(), part.size());
            hash.add("", 1);  // so that different lists have different bytes
        }
    };
    for (const auto& [name, fact] : series_facts)
        if (c.load.empty() || !describes_load(fact)) add(name, c.*fact);
    if (!c.load.empty()) add("load", c.load);
    return hash.text();
}

/// Whether `older` is what an older version wrote for `c`: all texts are equal, but for the load's
/// hash and the name of a machine whose hardware is known.
inline bool is_older_form_of(run_series older, const run_series& c) {
    const bool is_known = !c.cpu.empty() || !c.accelerators.empty();
    const bool lacks_load = older.load.empty() && !c.load.empty();
    const bool has_name = is_known && !older.machine.empty() && c.machine.empty();
    if (!lacks_load && !has_name) return false;
    if (lacks_load) older.load = c.load;
    if (has_name) older.machine.clear();
    return older == c;
}
/// Gives runs and annotations of older series their present ids, if the series is known.
inline void join_older_series(history_lines& lines, std::map<std::string, run_series>& known) {
    std::map<std::string, std::string> ids, machines;
    for (const auto& [id, older] : known)
        for (const auto& [other, c] : known)
            if (is_older_form_of(older, c)) {
                ids[id] = other;
                machines[id] = older.machine;
            }
    for (const auto& [older, id] : ids) known.erase(older);
    const auto rename = [&](std::string& id) {
        if (const auto at = ids.find(id); at != ids.end()) id = at->second;
    };
    for (history_run& r : lines.runs) {
        if (r.machine.empty() && ids.count(r.run_series)) r.machine = machines[r.run_series];
        rename(r.run_series);
    }
    for (history_note& n : lines.notes) rename(n.run_series);
}

/// Names a machine: "2 x NVIDIA L4", "AMD EPYC 7763, 4 cores", "bench-7".
inline std::string machine_text(const run_series& c) {
    std::string words = c.accelerators;
    if (words.empty() && !c.cpu.empty())
        words = c.cpu + (c.cores.empty() ? "" : ", " + c.cores + " cores");
    if (words.empty() && c.cpu.empty()) words = c.machine.empty() ? c.server : "";
    if (c.machine.empty()) return words;
    return words.empty() ? c.machine : c.machine + " (" + words + ")";
}

/// The first difference of two series, "cpu \"AMD EPYC 7763\", there \"AMD EPYC 9V74\"", "" if
/// none.
inline std::string first_difference(const run_series& is, const run_series& there) {
    for (const auto& [name, fact] : series_facts)
        if (is.*fact != there.*fact)
            return joined({name, " \"", printable(is.*fact, 100), "\", there \"",
                           printable(there.*fact, 100), "\""});
    return {};
}

/// cohorts/<id>.json.
inline std::string series_json(const run_series& c) {
    json_writer j;
    j.open('{').key("schema").value(std::string_view(series_schema));
    write_fields(j, c);
    return j.close().text() + "\n";
}
/// Throws std::invalid_argument if the text is not valid.
inline run_series read_series(const std::string& json, const std::string& file) {
    json_reader reader;
    run_series c;
    read_fields(stored_document(reader, json, file, " is no series of a history", series_schema),
                c);
    return c;
}

/// The default number of repeats of a baseline run: two show no spread of their own.
inline constexpr int repeats_of_a_run = 3;

/// The series of a load on a machine, whose server and hardware are not known yet.
inline run_series series_of_load(const std::string& gate, const std::string& definitions,
                                 const target_facts& target, const load_facts& load,
                                 const std::string& machine) {
    return {.gate = gate,
            .definitions = definitions,
            .model = target.model,
            .api = target.api + (target.transport.empty() ? "" : " over " + target.transport),
            .arrivals = load.arrivals,
            .workload = load.sent.workload_text,
            .extent = load.extent,
            .options = load.options,
            .seed = load.seed,
            .trace_hash = load.trace_hash,
            .machine = machine,
            .load = load.values};
}
/// The series of a gate: the properties that a stored baseline must share, and the hardware.
/// Machines with the same hardware share a series.
inline run_series series_of_run(const plan& p, const target_facts& target,
                                const fingerprint& print) {
    run_series s = series_of_load(p.name, definitions_version, target, load_facts_of(p),
                                  print.is_hardware_known() ? "" : print.machine);
    s.server = print.server;
    s.accelerators = print.accelerators;
    s.cpu = print.cpu;
    s.cores = print.cores;
    return s;
}

struct history_entry {
    run_series in{};
    history_run run{};  // the program sets its id and time
    std::string why_not{};
};

/// The statistics that a history keeps of every gate, beside those of its objectives.
inline constexpr std::string_view usual_statistics[] = {"mean(tpot)", "p50(ttft)", "p90(ttft)",
                                                        "p50(e2e)", "output_throughput"};
/// Whether every repeat has a value, of at least that.
inline bool are_kept(const vector<double>& repeats, double least) {
    const auto is_one = [&](double v) { return std::isfinite(v) && v >= least; };
    return !repeats.empty() && all_of(repeats, is_one);
}
/// A statistic's repeats by its name.
using all_repeats = std::map<std::string, vector<double>>;
/// The statistics of objectives, and the usual ones, that have a value in every repeat.
inline vector<named_repeats> values_of_a_run(const vector<slo_verdict>& verdicts, all_repeats of) {
    vector<named_repeats> values;
    constexpr double above_0 = std::numeric_limits<double>::denorm_min();
    const auto add = [&](const std::string& name, double least) {
        vector<double> repeats = std::exchange(of[name], {});
        for (double& v : repeats) v = in_six_digits(v);
        if (are_kept(repeats, least)) values.push_back({name, std::move(repeats)});
    };
    for (const slo_verdict& v : verdicts)
        if (is_difference(v.objective)) add(str(v.objective.statistic.name), 0);
    for (const slo_verdict& v : verdicts)
        if (may_be_relative(v.objective.statistic.metric))
            add(str(v.objective.statistic.name), above_0);
    for (const std::string_view usual : usual_statistics) add(std::string(usual), above_0);
    return values;
}
inline std::string outcome_of_a_run(const vector<slo_verdict>& verdicts) {
    const auto any = [&](verdict v) {
        return any_of(verdicts, [&](const slo_verdict& x) {
            return !x.objective.is_advisory && x.outcome == v;
        });
    };
    return any(verdict::invalid)        ? "invalid"
           : any(verdict::fail)         ? "failed"
           : any(verdict::inconclusive) ? "inconclusive"
                                        : "passed";
}

/// A measured gate as a history takes it, also from a result.json.
struct run_facts {
    bool is_searched = false;
    std::string stopped{};  // why its repeats ended early, "" if they did not
    std::size_t repeats = 0, planned = 0;
    vector<slo_verdict> verdicts{};
};
/// Returns why it is no baseline run, "" if it is one. The verdict does not matter, because slow
/// runs must not be left out. Runs that ended at a clear verdict would bias the level.
inline std::string why_no_run(const run_facts& f) {
    if (f.is_searched) return "a capacity was searched, by another load in each run";
    if (!f.stopped.empty()) return f.stopped;
    for (const slo_verdict& v : f.verdicts) {
        if (v.objective.is_advisory) continue;
        if (v.outcome == verdict::invalid) return "it is invalid: " + str(v.reason);
        const bool is_open = v.outcome == verdict::inconclusive;
        if (is_open && any_of(v.causes, [](const verdict_cause& c) { return c.whose == "client"; }))
            return "it is open: " + str(v.reason);
        if (v.objective.statistic.metric == metric_id::error_rate && !is_difference(v.objective) &&
            v.estimate.value > v.limit)
            return printed("%.3g %% of its requests failed, where %.3g %% may",
                           v.estimate.value * 100, v.limit * 100);
    }
    if (f.repeats < f.planned) return printed("it has %zu of %zu repeats", f.repeats, f.planned);
    return {};
}

inline history_entry history_entry_of(const std::string& gate, const run_facts& facts,
                                      const all_repeats& repeats) {
    history_entry e;
    e.why_not = why_no_run(facts);
    if (!e.why_not.empty()) return e;
    e.run.gate = gate;
    e.run.outcome = outcome_of_a_run(facts.verdicts);
    e.run.values = values_of_a_run(facts.verdicts, repeats);
    for (const slo_verdict& v : facts.verdicts)
        if (!v.objective.at_most && !is_better_if_more(str(v.objective.statistic.name)))
            e.run.more_is_better.push_back(str(v.objective.statistic.name));
    for (const slo_verdict& v : facts.verdicts) {
        const std::string name = str(v.objective.statistic.name);
        const auto is_it = [&](const auto& of) { return of.name == name; };
        const auto is_there = [&](const std::string& of) { return of == name; };
        if (any_of(e.run.values, is_it) && !any_of(e.run.objectives, is_there))
            e.run.objectives.push_back(name);
    }
    if (e.run.values.empty()) e.why_not = "no repeat has a value above 0";
    return e;
}
/// `stopped`: why its repeats ended early, "" if they did not.
inline history_entry history_entry_of(const plan& p, run_series in, const fingerprint& print,
                                      const gate_figures& g,
                                      const vector<slo_verdict>& verdicts,
                                      const std::string& stopped) {
    all_repeats repeats;
    for (const repeat_figures& r : g.candidate.repeats)
        for (std::size_t i = 0; i < g.kept.size(); ++i)
            repeats[str(g.kept[i].name)].push_back(r.statistics[i]);
    history_entry e = history_entry_of(p.name, {p.searches(), stopped, g.candidate.repeats.size(),
                                                static_cast<std::size_t>(p.judged->max_repeats),
                                                verdicts}, repeats);
    e.in = std::move(in);
    e.run.run_series = id_of(e.in);
    e.run.machine = print.machine;
    e.run.watched = watched_facts(print);
    return e;
}

// ===== [E] the folder of a history: settings, reading, adding a run ==============================

enum class history_use : unsigned char { read, append, off };

struct history_settings {
    history_use use = history_use::read;
    std::string folder{};   // replaces the gate's own
    std::string at{};       // as of then
    std::string machine{};  // LLMBENCH_MACHINE
    bool appends() const { return use == history_use::append; }
    std::string folder_or(const types::text& own) const {
        return folder.empty() ? str(own) : folder;
    }
};

/// Throws std::invalid_argument with one sentence for the first invalid variable.
inline history_settings history_settings_of(const variable_lookup& look_up) {
    history_settings s;
    const std::string use = look_up("LLMBENCH_HISTORY");
    if (use == "append") s.use = history_use::append;
    else if (use == "off") s.use = history_use::off;
    else if (!use.empty())
        refuse({"LLMBENCH_HISTORY is \"", printable(use, 40), "\": it must be append or off, or "
                "not be set, to read"});
    s.folder = look_up("LLMBENCH_HISTORY_DIR");
    s.at = look_up("LLMBENCH_HISTORY_AT");
    s.machine = printable(trimmed(look_up("LLMBENCH_MACHINE")), 100);
    if (s.use == history_use::append && !s.at.empty())
        refuse({"LLMBENCH_HISTORY=append and LLMBENCH_HISTORY_AT are both set: nothing is added to "
                "the past"});
    return s;
}

inline constexpr std::size_t max_history_files = 10000;
inline constexpr std::size_t max_history_bytes = std::size_t{256} << 20;  // of all files

struct history_store {
    std::string folder{};
    history_lines lines{};
    std::map<std::string, run_series> all_series{};  // by their ids, if described
};

/// The maximum difference between clocks of writing and reading machines.
inline constexpr double max_clock_skew_s = 600;
/// The machine's clock, also in virtual time.
inline history_clock clock_of_machine() {
    const double now_s = machine_unix_s();
    return {utc_text(now_s), utc_text(now_s + max_clock_skew_s)};
}

/// *.jsonl below a folder and cohorts/*.json, by name. No hidden files (a worktree's .git, drafts),
/// no symbolic links.
struct history_files {
    vector<std::filesystem::path> lines{}, all_series{};
};
inline history_files files_of_history(const std::filesystem::path& folder) {
    namespace fs = std::filesystem;
    history_files found;
    std::error_code problem;
    fs::recursive_directory_iterator at(folder, problem);
    for (const fs::recursive_directory_iterator end; !problem && at != end; at.increment(problem)) {
        const fs::path& path = at->path();
        std::error_code none;
        const fs::file_status is = at->symlink_status(none);
        if (path.filename().string().front() == '.') {
            if (fs::is_directory(is)) at.disable_recursion_pending();
            continue;
        }
        if (!fs::is_regular_file(is)) continue;
        const bool is_series =
            path.extension() == ".json" && path.parent_path().filename() == "cohorts";
        if (is_series) found.all_series.push_back(path);
        if (path.extension() == ".jsonl") found.lines.push_back(path);
        if (std::max(found.lines.size(), found.all_series.size()) > max_history_files)
            refuse({folder.string(), printed(" has more than %zu files", max_history_files),
                    ": put those of a year together, such as by cat 2026/*/*.jsonl > 2026.jsonl, "
                    "and remove them"});
    }
    if (problem) refuse({folder.string(), " cannot be read: ", problem.message()});
    std::sort(found.lines.begin(), found.lines.end());
    std::sort(found.all_series.begin(), found.all_series.end());
    return found;
}

/// The bytes of a file; `room` limits all files together.
inline std::string bounded_content(const std::filesystem::path& path, std::size_t& room) {
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : -1;
    if (size < 0) refuse({path.string(), " cannot be read"});
    const auto n = static_cast<std::size_t>(size);
    if (n > room)
        refuse({path.string(), printed(": a history may have %zu MiB, and with this file it has "
                                       "more", max_history_bytes >> 20)});
    room -= n;
    std::string bytes(n, '\0');
    in.seekg(0);
    in.read(bytes.data(), size);
    bytes.resize(static_cast<std::size_t>(in.gcount()));
    return bytes;
}

/// Reads one gate, or all for "". Throws std::invalid_argument with one sentence if the folder is
/// missing, or a file is invalid, of a later version, or of the future.
inline history_store read_history(const std::string& folder, const history_clock& clock,
                                  const std::string& gate = "") {
    std::error_code none;
    if (!std::filesystem::is_directory(folder, none))
        refuse({"there is no history at ", folder, ": LLMBENCH_HISTORY=append on main makes it"});
    history_store all;
    all.folder = folder;
    const history_files files = files_of_history(folder);
    std::size_t room = max_history_bytes;
    for (const std::filesystem::path& path : files.lines)
        read_history_file(bounded_content(path, room), path.string(), clock, all.lines, gate);
    for (const std::filesystem::path& path : files.all_series)
        all.all_series[path.stem().string()] =
            read_series(bounded_content(path, room), path.string());
    join_older_series(all.lines, all.all_series);
    all.lines = in_order(std::move(all.lines));
    return all;
}

/// The history of a gate: all its lines in the folder, as of LLMBENCH_HISTORY_AT, for series_of().
inline history_store history_of_gate(const std::string& folder, const std::string& gate,
                                     const std::string& at) {
    history_store all = read_history(folder, clock_of_machine(), gate);
    all.lines = as_of(std::move(all.lines), at);
    erase_if(all.lines.runs, [&](const history_run& r) { return r.gate != gate; });
    erase_if(all.lines.notes, [&](const history_note& n) { return n.gate != gate; });
    return all;
}

/// Makes a file, completely or not at all, even if this program is killed. Returns false if the
/// name exists. Throws std::runtime_error.
inline bool add_file(const std::filesystem::path& path, std::string_view content,
                     std::uint64_t own) {
    const auto check = [&](int problem) {
        if (problem != 0)
            throw std::runtime_error("cannot write " + path.string() + ": " + error_text(problem));
    };
    std::error_code none;
    std::filesystem::create_directories(path.parent_path(), none);
    if (std::filesystem::exists(std::filesystem::symlink_status(path, none))) return false;
    const std::filesystem::path draft =
        path.parent_path() / ("." + path.filename().string() +
                              printed(".%08llx.tmp", static_cast<unsigned long long>(own)));
    struct removed {
        const std::filesystem::path& file;
        ~removed() { ::unlink(file.c_str()); }
    } const at_end{draft};
    new_file out;
    int problem = out.open(draft);
    if (problem == 0)
        problem = out.append(known_secrets::of_this_program().masked(content));
    if (problem == 0 && ::fsync(out.fd()) != 0) problem = errno;
    if (const int at_close = out.close(); problem == 0) problem = at_close;
    check(problem);
    // A link replaces no file, unlike a rename.
    if (::link(draft.c_str(), path.c_str()) != 0) {
        if (errno == EEXIST) return false;
        check(errno);
    }
    const int folder = ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        ::fsync(folder);  // for the name; other file systems keep it anyway
        ::close(folder);
    }
    return true;
}

/// "20261123T021504Z-e2bbe02a-7c1e9f40": time, commit, unique part.
inline std::string stem_of_run(const std::string& at, const std::string& commit,
                               std::uint64_t own) {
    std::string stem;
    for (const char c : at)
        if (c != '-' && c != ':') stem += c;
    const bool is_hash = commit.size() >= 8 &&
                         commit.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    return stem + "-" + (is_hash ? commit.substr(0, 8) : "00000000") +
           printed("-%08llx", static_cast<unsigned long long>(own & 0xFFFFFFFF));
}

/// A clock that is behind would put the run among much older ones. `latest`: the latest valid day,
/// "20261124".
inline void check_clock(const std::filesystem::path& folder, const std::string& latest) {
    std::error_code none;
    if (!std::filesystem::is_directory(folder, none)) return;
    for (const std::filesystem::path& file : files_of_history(folder).lines) {
        const std::string name = file.filename().string();
        const bool is_dated = name.size() > 8 && name[8] == 'T' &&
                              name.find_first_not_of("0123456789") == 8;
        if (is_dated && name.compare(0, 8, latest) > 0)
            throw std::runtime_error(file.string() + " is of a day that this machine says has not "
                                     "come: one of the two clocks is wrong");
    }
}

/// Adds a file with `count` lines, which `line(i, id)` makes, and returns its name. Throws
/// std::runtime_error.
template <class Line>
std::string add_lines(const std::filesystem::path& folder, const std::string& at,
                      const std::string& commit, std::size_t count, Line&& line) {
    for (int tries = 0; tries < 5; ++tries) {
        const std::uint64_t own = entropy() >> 32;
        const std::string stem = stem_of_run(at, commit, own);
        std::string lines;
        for (std::size_t i = 0; i < count; ++i)
            lines += line(i, stem + "." + std::to_string(i + 1));
        const std::filesystem::path file =
            folder / at.substr(0, 4) / at.substr(5, 2) / (stem + ".jsonl");
        if (add_file(file, lines, own)) return file.string();
    }
    throw std::runtime_error("cannot write into " + folder.string() +
                             ": five names are taken already");
}

/// Adds the gates of one program as a file with a line for each; returns its name. Describes series
/// that are new in the folder. Throws std::runtime_error.
inline std::string append_history(const std::filesystem::path& folder,
                                  const vector<history_entry>& gates, const std::string& at,
                                  const std::string& commit) {
    const std::string tomorrow = utc_text(machine_unix_s() + 86400);
    check_clock(folder, stem_of_run(tomorrow, "", 0).substr(0, 8));
    for (const history_entry& e : gates)
        add_file(folder / "cohorts" / (e.run.run_series + ".json"), series_json(e.in),
                 entropy() >> 32);
    return add_lines(folder, at, commit, gates.size(), [&](std::size_t i, const std::string& id) {
        history_run run = gates[i].run;
        run.id = id;
        run.at = at;
        run.commit = commit.substr(0, 12);
        return history_line(run);
    });
}

// ===== [E] how the machines of one series differ, and whether one of them explains slow runs =====

inline constexpr std::size_t runs_of_known = 3;       // from these on a machine's effect is listed
inline constexpr std::size_t newest_of_machine = 10;  // its effect is from these
inline constexpr std::size_t least_differences = 6;   // that show what its runs differ by
inline constexpr double shown_by_chance = 0.01;       // a machine explains slow runs below this
inline constexpr double alone_by_chance = 0.001;      // below this no other machine runs any more

/// One machine in a series. Logarithms, above 0: slower than the levels.
struct machine_effect {
    std::string name{};
    std::string last{};  // the time of its newest run
    std::size_t first_run = 0, last_run = 0;  // indices of runs
    std::size_t runs = 0;     // that the effect is from
    double own = 0;           // what those show
    double effect = 0;        // shrunk towards none: what runs are corrected by
    double turned = 0;        // its own step, which no other machine took; 0: none
    std::size_t turned_at = 0;  // the run from which on it has the effect
    bool overlaps = false;    // with another machine in time: else it is the level's or its own
    bool is_known() const { return overlaps && runs >= runs_of_known; }
};
struct series_machines {
    vector<machine_effect> all{};
    vector<std::size_t> of_run{};  // of each run; all.size(): its machine is not known
    vector<double> by_run{};       // the effect on each run
    double within = 0, df = 0;     // variance of the runs of one machine
    double between = 0;            // variance of the machines
    double ratio() const { return between > 0 ? within / between : infinity; }
    std::size_t known() const {
        std::size_t n = 0;
        for (const machine_effect& m : all) n += m.is_known();
        return n;
    }
    const machine_effect* named(const std::string& name) const {
        for (const machine_effect& m : all)
            if (m.name == name) return &m;
        return nullptr;
    }
};

inline series_machines machines_of(const history_series& s, const vector<run_level>& runs) {
    series_machines out;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const series_run& r = s.runs[runs[i].run];
        const auto is_it = [&](const machine_effect& m) { return m.name == r.machine; };
        auto at = std::find_if(out.all.begin(), out.all.end(), is_it);
        if (at == out.all.end() && !r.machine.empty()) {
            out.all.push_back({.name = r.machine, .first_run = i});
            at = out.all.end() - 1;
        }
        out.of_run.push_back(r.machine.empty() ? ~std::size_t{0}
                                               : static_cast<std::size_t>(at - out.all.begin()));
        if (r.machine.empty()) continue;
        at->last = r.at;
        at->last_run = i;
    }
    out.by_run.resize(runs.size());
    for (std::size_t& m : out.of_run)  // of unknown ones, when all others are there
        if (m >= out.all.size()) m = out.all.size();
    for (machine_effect& a : out.all)
        a.overlaps = any_of(out.all, [&](const machine_effect& b) {
            return &a != &b && a.first_run < b.last_run && b.first_run < a.last_run;
        });
    return out;
}
inline vector<run_level> without_machines(vector<run_level> runs, const series_machines& of) {
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i].mean -= of.by_run[i];
    return runs;
}

/// The middle of a machine's distances, whatever a few of them are.
inline double middle_of(vector<double> v) {
    const double center = median_of(v);
    if (v.size() < 5) return center;
    const double reach = 3 * std::max(robust_sd(v, center), least_run_sd);
    for (double& x : v) x = std::clamp(x, center - reach, center + reach);
    return mean_of(v);
}
/// Distances of a machine's runs from the levels, oldest first.
struct machine_distances {
    vector<std::size_t> runs{};
    vector<double> from_level{};
    vector<double> newest(std::size_t first, std::size_t end) const {
        const std::size_t n = std::min(end - first, newest_of_machine);
        const auto at = from_level.begin() + static_cast<std::ptrdiff_t>(end);
        return {at - static_cast<std::ptrdiff_t>(n), at};
    }
};
/// Of each machine. The levels are of runs that are corrected by the effects so far.
inline vector<machine_distances> distances_of(const vector<run_level>& runs,
                                              const vector<history_segment>& segments,
                                              const series_machines& of) {
    vector<machine_distances> out(of.all.size());
    const vector<run_level> corrected = without_machines(runs, of);
    for (const history_segment& s : segments) {
        const double level = median_of(means_of(corrected, s.first, s.end));
        for (std::size_t i = s.first; i < s.end; ++i) {
            const std::size_t m = of.of_run[i];
            if (m == out.size() || !of.all[m].overlaps) continue;
            out[m].runs.push_back(i);
            out[m].from_level.push_back(runs[i].mean - level);
        }
    }
    return out;
}
/// What runs of one machine differ by, whatever steps there are: from differences of successive
/// ones.
struct noise_of_one {
    double sd = 0, df = 0;
};
inline noise_of_one noise_within(const vector<machine_distances>& all) {
    vector<double> steps;
    for (const machine_distances& d : all)
        for (std::size_t i = 1; i < d.from_level.size(); ++i)
            steps.push_back(d.from_level[i] - d.from_level[i - 1]);
    if (steps.size() < least_differences) return {};
    return {std::max(robust_sd(steps, 0) / std::sqrt(2.0), least_run_sd),
            static_cast<double>(steps.size()) / 2};
}
/// A machine's newest distances, those before its own step, and the run of that step.
struct parted_distances {
    vector<double> now{}, before{};
    std::size_t step_at = 0;
};
/// The sum of the distances from the median.
inline double misfit_of(const vector<double>& v) {
    const double center = median_of(v);
    double sum = 0;
    for (const double x : v) sum += std::fabs(x - center);
    return sum;
}
/// The start of a machine's newest state, 0 if no step is shown: the split that fits best, if most of
/// the later runs are farther away than runs of one machine differ, at a level for all splits.
inline std::size_t turn_in(const vector<double>& v, const noise_of_one& noise, double splits) {
    if (!(noise.df > 0)) return 0;
    std::size_t at = 0;
    double least = infinity;
    for (std::size_t k = 1; k + runs_after <= v.size(); ++k) {
        const auto middle = v.begin() + static_cast<std::ptrdiff_t>(k);
        const double misfit = misfit_of({v.begin(), middle}) + misfit_of({middle, v.end()});
        if (misfit >= least) continue;
        least = misfit;
        at = k;
    }
    if (at == 0) return 0;
    const auto middle = v.begin() + static_cast<std::ptrdiff_t>(at);
    const double before = median_of({v.begin(), middle});
    vector<double> after(middle, v.end());
    std::sort(after.begin(), after.end());
    const std::size_t half = (after.size() - 1) / 2;
    const double by = std::max(after[half] - before, before - after[after.size() - 1 - half]);
    const double a = static_cast<double>(at), b = static_cast<double>(after.size());
    const double t = by / (noise.sd * std::sqrt(1 / a + 1 / b));
    return t > student_t_quantile(1 - shown_by_chance / 2 / splits, noise.df) ? at : 0;
}
inline parted_distances parted(const machine_distances& d, const noise_of_one& noise,
                               double splits, std::size_t last_of_others) {
    const std::size_t n = d.runs.size(), from = n - std::min(n, searched_runs);
    const auto first = d.from_level.begin() + static_cast<std::ptrdiff_t>(from);
    const std::size_t step = turn_in({first, d.from_level.end()}, noise, splits), at = from + step;
    // nothing tells its step from one of main, as long as no other machine has run since
    if (step == 0 || last_of_others < d.runs[at]) return {d.newest(0, n), {}, 0};
    return {d.newest(at, n), d.newest(0, at), d.runs[at]};
}
inline std::size_t last_without(const series_machines& of, const machine_effect& one) {
    std::size_t last = 0;
    for (const machine_effect& m : of.all)
        if (&m != &one) last = std::max(last, m.last_run);
    return last;
}
/// Sets the effects by moments: variances of a one-way layout with random machines, whose means
/// are shrunk by n / (n + within / between).
inline void set_effects(series_machines& of, const vector<machine_distances>& distances) {
    vector<double> rest;
    double all = 0, squares = 0, machines = 0, sum = 0, splits = 0;
    for (const machine_distances& d : distances) splits += static_cast<double>(d.runs.size());
    const noise_of_one noise = noise_within(distances);
    for (std::size_t i = 0; i < of.all.size(); ++i) {
        machine_effect& m = of.all[i];
        const parted_distances d = parted(distances[i], noise, splits, last_without(of, m));
        m.runs = d.now.size();
        if (m.runs == 0) continue;
        m.own = middle_of(d.now);
        m.turned_at = d.step_at;
        m.turned = d.before.empty() ? 0 : m.own - middle_of(d.before);
        for (const double x : d.now) rest.push_back(x - m.own);
        const auto n = static_cast<double>(m.runs);
        ++machines;
        all += n;
        squares += n * n;
        sum += n * m.own;
    }
    of.df = all - machines;
    of.between = 0;
    if (machines < 2 || of.df <= 0) return;
    const double reach = 3 * std::max(robust_sd(rest, 0), least_run_sd);
    of.within = 0;
    for (const double x : rest) of.within += std::min(x * x, reach * reach);
    of.within = std::max(of.within / of.df, least_run_sd * least_run_sd);
    double spread = 0;
    for (machine_effect& m : of.all) {
        if (m.runs == 0) continue;
        m.own -= sum / all;
        spread += static_cast<double>(m.runs) * m.own * m.own;
    }
    const double size = (all - squares / all) / (machines - 1);
    of.between = std::max(0.0, (spread / (machines - 1) - of.within) / size);
    const auto shrunk = [&](const machine_effect& m, double own) {
        const auto n = static_cast<double>(m.runs);
        return m.runs == 0 ? 0 : own * n / (n + of.ratio());
    };
    for (machine_effect& m : of.all) m.effect = shrunk(m, m.own);
    for (std::size_t i = 0; i < of.of_run.size(); ++i) {
        if (of.of_run[i] == of.all.size()) continue;
        const machine_effect& m = of.all[of.of_run[i]];
        const bool is_older = i < m.turned_at;
        of.by_run[i] = is_older ? shrunk(m, m.own - m.turned) : m.effect;
    }
}
/// Whether a step is one of main: the runs since then, without those of any one machine, are nearer
/// to the new level than to the old one. While a single machine has run since, nothing tells whose
/// step it is.
inline bool is_of_main(const series_machines& of, const vector<run_level>& runs, std::size_t from,
                       std::size_t at, std::size_t end) {
    const double before = mean_of(means_of(runs, from, at));
    const double step = mean_of(means_of(runs, at, end)) - before;
    vector<double> had(of.all.size() + 1);
    for (std::size_t i = from; i < at; ++i) ++had[of.of_run[i]];
    const auto machines = static_cast<double>(of.all.size()) + 1 -
                          static_cast<double>(std::count(had.begin(), had.end(), 0.0));
    for (std::size_t m = 0; m < of.all.size(); ++m) {
        if (had[m] == 0 && machines < 2) continue;  // another machine in place of the only one
        double sum = 0, others = 0;
        for (std::size_t i = at; i < end; ++i)
            if (of.of_run[i] != m) {
                sum += runs[i].mean - before;
                ++others;
            }
        const double share =
            had[m] > 0 ? had[m] / static_cast<double>(at - from) : 1 / (machines + 1);
        const bool is_alone = others == 0 && share < 1;
        // A machine that ran once, long ago, keeps no step of main from being seen for weeks.
        const double again = std::min(share, 2.0 / 3);
        if (is_alone && std::pow(again, end - at) > alone_by_chance) return false;
        if (others > 0 && sum / others / step < 0.5) return false;
    }
    return true;
}
inline vector<history_segment> levels_of_main(const history_series& s,
                                              const vector<run_level>& runs,
                                              const series_machines& of) {
    return segments_of(s, runs, [&](std::size_t from, std::size_t at, std::size_t end) {
        return is_of_main(of, runs, from, at, end);
    });
}
/// What the first levels are found without: of each machine the median of its runs.
inline void set_medians(series_machines& of, const vector<run_level>& runs) {
    vector<vector<double>> own(of.all.size());
    for (std::size_t i = 0; i < runs.size(); ++i)
        if (of.of_run[i] < of.all.size()) own[of.of_run[i]].push_back(runs[i].mean);
    vector<double> medians;
    for (const vector<double>& v : own) medians.push_back(median_of(v));
    const double center = median_of(medians);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const std::size_t m = of.of_run[i];
        if (m < of.all.size() && of.all[m].overlaps) of.by_run[i] = medians[m] - center;
    }
}
/// Levels and effects together: each is found in the runs without the other.
inline series_machines effects_in(const history_series& s, const vector<run_level>& runs) {
    series_machines of = machines_of(s, runs);
    const bool any = any_of(of.all, [](const machine_effect& m) { return m.overlaps; });
    set_medians(of, runs);
    // Medians may take a step of main for an effect, which a few turns undo slowly.
    for (int i = 0; any && i < 30; ++i) {
        const vector<double> before = of.by_run;
        set_effects(of, distances_of(runs, levels_of_main(s, without_machines(runs, of), of), of));
        double moved = 0;
        for (std::size_t k = 0; k < before.size(); ++k)
            moved = std::max(moved, std::fabs(of.by_run[k] - before[k]));
        if (moved < 1e-6) break;
    }
    return of;
}
/// The degrees of freedom that the effects take from the spread of runs.
inline double fitted_by(const series_machines& of) {
    double all = 0;
    for (const machine_effect& m : of.all) {
        const auto n = static_cast<double>(m.runs);
        if (of.between > 0 && m.runs > 0) all += n / (n + of.ratio());
    }
    return std::max(0.0, all - 1);
}
/// Half of the 95 % interval of what a machine's runs show; infinite if it is not known.
inline double reach_of_effect(const series_machines& of, const machine_effect& m) {
    if (!m.is_known() || of.df <= 0) return infinity;
    return student_t_quantile(0.975, of.df) * std::sqrt(of.within / static_cast<double>(m.runs));
}

/// The machine of a run that is judged: what it adds to the level and to the interval.
struct machine_of_run {
    std::string name{};  // "": it does not matter
    double effect = 0;
    double variance = 0, df = 0;  // of the effect, or of the machines where it is not known
    std::string only{};  // another machine, the only one of the level: nothing compares the two
};
/// `level`: the runs that it is held against.
inline machine_of_run machine_for(const series_machines& of, const std::string& name,
                                  const history_segment& level) {
    const machine_effect* const own = of.named(name);
    if (name.empty() || of.all.empty() || (own && of.all.size() == 1)) return {};
    machine_of_run m{.name = name};
    if (own && own->overlaps && own->runs > 0 && of.df > 0) {
        m.effect = own->effect;
        m.variance = of.between > 0 ? of.within / (static_cast<double>(own->runs) + of.ratio()) : 0;
        m.df = of.df;
        return m;
    }
    bool is_one = true, has_own = false;
    for (std::size_t i = level.first; i < level.end; ++i) {
        is_one = is_one && of.of_run[i] == of.of_run[level.first];
        has_own = has_own || (own && &of.all[0] + of.of_run[i] == own);
    }
    const std::size_t first = level.first < level.end ? of.of_run[level.first] : of.all.size();
    if (is_one && !has_own && first < of.all.size()) m.only = of.all[first].name;
    const auto known = static_cast<double>(of.known());
    if (known < 2) return m;  // what runs differ by has the machines in it
    m.variance = of.between * (1 + 1 / known);
    m.df = known - 1;
    return m;
}

// ---- slow runs of one machine

inline double log_choose(double n, double k) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}
/// The chance that of `slow` runs at least `on_it` are among `its_runs` of all runs, if slow runs
/// fall on machines at random: Fisher's exact test, one-sided.
inline double chance_of_slow(std::size_t runs, std::size_t its_runs, std::size_t slow,
                             std::size_t on_it) {
    const auto n = static_cast<double>(runs), m = static_cast<double>(its_runs);
    const auto s = static_cast<double>(slow);
    double chance = 0;
    for (std::size_t k = on_it; k <= std::min(slow, its_runs); ++k) {
        const auto x = static_cast<double>(k);
        if (s - x > n - m) continue;
        chance += std::exp(log_choose(m, x) + log_choose(n - m, s - x) - log_choose(n, s));
    }
    return std::min(chance, 1.0);
}
/// Slow runs of a level, and those of one machine.
struct slow_runs {
    std::size_t runs = 0, slow = 0, on_it = 0, machines = 0;
    double chance = 1;
    double farthest = 0;  // from the level, of those on it
    bool explain() const { return on_it >= 2 && chance <= shown_by_chance; }
};
/// `rest`: distances of the newest runs from their levels; those beyond `reach` are slow.
inline slow_runs slow_runs_on(const series_machines& of, const std::string& name,
                              const vector<double>& rest, double reach) {
    slow_runs out;
    std::size_t its_runs = 0;
    vector<bool> has_run(of.all.size());
    const std::size_t from = of.of_run.size() - rest.size();
    for (std::size_t i = 0; i < rest.size(); ++i) {
        const std::size_t m = of.of_run[from + i];
        if (m == of.all.size()) continue;  // it may have been on any
        const bool is_its = of.all[m].name == name, is_slow = rest[i] > reach;
        has_run[m] = true;
        ++out.runs;
        its_runs += is_its;
        out.slow += is_slow;
        out.on_it += is_slow && is_its;
        if (is_slow && is_its) out.farthest = std::max(out.farthest, rest[i]);
    }
    for (const bool has : has_run) out.machines += has;
    if (out.machines > 1 && out.on_it > 0)
        out.chance = chance_of_slow(out.runs, its_runs, out.slow, out.on_it);
    return out;
}

/// Why a step from one level to the next is the change of a machine, "" if it is not.
inline std::string machine_of_step(const series_machines& of, const history_segment& before,
                                   const history_segment& after) {
    const std::size_t m = of.of_run[after.first];
    if (m == of.all.size()) return {};
    for (std::size_t i = after.first; i < after.end; ++i)
        if (of.of_run[i] != m) return {};
    const std::size_t slow = after.end - after.first;
    std::size_t its = slow, unknown = 0;
    for (std::size_t i = before.first; i < before.end; ++i) {
        its += of.of_run[i] == m;
        unknown += of.of_run[i] == of.all.size();
    }
    if (unknown > 0) return {};
    const std::string& name = of.all[m].name;
    if (its == slow) return "the runs since then were on " + name + ", and none before";
    const std::size_t runs = after.end - before.first;
    const double chance = chance_of_slow(runs, its, slow, slow);
    if (chance > shown_by_chance) return {};
    return printed("all %zu slow runs of %zu were on ", slow, runs) + name +
           printed(" (chance: %.2g)", chance);
}

// ===== [E] what a history teaches, and a run judged against it ===================================

/// 80 % quantile of the F distribution.
inline double f_quantile_80(double df1, double df2) {
    double high = 2;
    const auto cdf = [&](double f) {
        return incomplete_beta(df1 / 2, df2 / 2, df1 * f / (df1 * f + df2));
    };
    while (cdf(high) < 0.8 && high < 1e12) high *= 2;
    return bisect(0, high, 0.8, cdf);
}

inline constexpr std::size_t newest_runs = 30;  // the spread is from these
inline constexpr std::size_t level_runs = 10;   // maximum for a level's mean
inline constexpr std::size_t fewest_runs = 3;
inline constexpr std::size_t robust_from = 12;    // runs from which residuals are clipped
inline constexpr double given_df = 4;
inline constexpr std::size_t given_until = 10;    // runs that replace a given spread

/// The mean of values clipped at `reach` around their median, if there are at least five.
inline double clipped_mean(vector<double> v, double reach) {
    if (v.size() < 5) return mean_of(v);
    const double center = median_of(v);
    for (double& x : v) x = std::clamp(x, center - reach, center + reach);
    return mean_of(v);
}

/// The spread of repeats within runs, pooled over runs.
struct repeats_spread {
    double variance = 0, df = 0;
    double repeats = 0;  // of a run, harmonic mean
};
inline repeats_spread spread_of_repeats(const vector<run_level>& runs, std::size_t from) {
    repeats_spread out;
    double squares = 0, inverse = 0;
    for (std::size_t i = from; i < runs.size(); ++i) {
        squares += (runs[i].repeats - 1) * runs[i].variance;
        out.df += runs[i].repeats - 1;
        inverse += 1 / runs[i].repeats;
    }
    if (out.df > 0) out.variance = squares / out.df;
    if (inverse > 0) out.repeats = static_cast<double>(runs.size() - from) / inverse;
    return out;
}

/// The spread of runs around the levels of their segments.
struct runs_spread {
    double sd = 0, df = 0;
    std::size_t trouble = 0;  // runs over four robust deviations away
    double farthest = 0;      // of the slower ones
};
/// The runs from one on, around the levels of their segments.
struct run_residuals {
    vector<double> all{};
    double segments = 0;
};
inline run_residuals residuals_of(const vector<run_level>& runs,
                                  const vector<history_segment>& segments, std::size_t from) {
    run_residuals out;
    const bool is_robust = runs.size() - from >= robust_from;
    for (const history_segment& s : segments) {
        if (s.end <= from) continue;
        const vector<double> own = means_of(runs, std::max(s.first, from), s.end);
        const double center = is_robust && own.size() >= 5 ? median_of(own) : mean_of(own);
        for (const double x : own) out.all.push_back(x - center);
        ++out.segments;
    }
    return out;
}
inline void clip_residuals(vector<double>& rest, runs_spread& noted) {
    const double reach = robust_sd(rest, 0);
    if (!(reach > 0)) return;
    for (double& x : rest) {
        if (std::fabs(x) > 4 * reach) {
            ++noted.trouble;
            noted.farthest = std::max(noted.farthest, x);
        }
        x = std::clamp(x, -3 * reach, 3 * reach);
    }
}
/// For dependent runs: the value of the newest ones' mean for the next run, relative to independent
/// runs, and how much too small their squares are.
struct run_dependence {
    double variance_by = 1, df_by = 1;
};
inline run_dependence dependence_of_runs(const vector<double>& rest) {
    const auto n = static_cast<double>(rest.size());
    const double r = std::clamp((lag_one(rest) * n + 1) / (n - 4), 0.0, 0.9);
    double effect = 1, shared = 0;
    for (double k = 1; k <= n; ++k) {
        effect += 2 * (1 - k / n) * std::pow(r, k);
        shared += std::pow(r, k);
    }
    return {std::max(1.0, (1 + effect / n - 2 / n * shared) /
                              ((1 - (effect - 1) / (n - 1)) * (1 + 1 / n))),
            std::clamp((1 - r * r) / (1 + r * r), 0.3, 1.0)};
}
inline runs_spread spread_of_runs(const vector<run_level>& runs,
                                  const vector<history_segment>& segments, std::size_t from) {
    run_residuals rest = residuals_of(runs, segments, from);
    const double df = static_cast<double>(rest.all.size()) - rest.segments;
    runs_spread out;
    out.df = df;
    if (!(df > 0)) return out;
    run_dependence by;
    if (rest.all.size() >= robust_from) {
        clip_residuals(rest.all, out);
        by = dependence_of_runs(rest.all);
    }
    double squares = 0;
    for (const double x : rest.all) squares += x * x;
    out.df *= by.df_by;
    out.sd = std::max(std::sqrt(squares / df * by.variance_by), least_run_sd);
    return out;
}

struct level_of_runs {
    double mean = 0;
    double runs = 0;
};
/// A change of main in its newest one or two runs, not yet shown as a step.
struct main_moved {
    level_of_runs now{};
    double by = 0;            // from the segment's older runs; above 0: worse
    bool is_on_machine = false;  // its newest runs on the machine of the run that is judged
};

/// All that the rule needs of a history: the same numbers give the same verdicts. Logarithms, less
/// is better.
struct learned_history {
    std::size_t runs = 0;  // the newest ones, used for all of this
    repeats_spread repeats{};
    runs_spread spread{};
    level_of_runs level{};
    vector<main_moved> moved{};
    machine_of_run machine{};  // its effect is in the levels
    slow_runs slow{};          // on that machine
    double given_sd = 0;      // the user's spread between runs while it counts, else 0
    bool is_enough() const {
        return level.runs > 0 && repeats.df > 0 && spread.df > 0 && spread.sd > 0 &&
               (given_sd > 0 || runs >= fewest_runs);
    }
};

inline level_of_runs newest_level(const vector<run_level>& runs, const history_segment& s,
                                  double sd) {
    const std::size_t w = std::min(s.end - s.first, level_runs);
    return {clipped_mean(means_of(runs, s.end - w, s.end), 3 * sd), static_cast<double>(w)};
}

inline vector<main_moved> moves_of_main(const vector<run_level>& runs,
                                        const history_segment& s, const runs_spread& n) {
    vector<main_moved> out;
    for (std::size_t c = 1; c <= 2 && s.first + c + 4 <= s.end; ++c) {
        const double now = mean_of(means_of(runs, s.end - c, s.end));
        const double before = clipped_mean(means_of(runs, s.first, s.end - c), 3 * n.sd);
        const auto count = static_cast<double>(c), older = static_cast<double>(s.end - s.first - c);
        const double reach = student_t_quantile(0.99, n.df) * n.sd *
                             std::sqrt(1 / count + 1 / older);
        if (std::fabs(now - before) > reach) out.push_back({{now, count}, now - before, false});
    }
    return out;
}

/// The branch of a run: main's joins the history.
enum class run_on : unsigned char { branch, main };
/// Main is compared with the newest accepted segment, another branch with the newest one.
inline const history_segment& segment_for(const vector<history_segment>& segments, run_on who) {
    for (auto s = segments.rbegin(); who == run_on::main && s != segments.rend(); ++s)
        if (s->is_accepted) return *s;
    return segments.back();
}

/// `given_sd`: the user's spread between runs, 0 if not given.
inline learned_history learned_from(const vector<run_level>& runs,
                                    const vector<history_segment>& segments, run_on who,
                                    double given_sd = 0) {
    learned_history h;
    if (runs.empty()) return h;
    const std::size_t from = runs.size() - std::min(runs.size(), newest_runs);
    h.runs = runs.size() - from;
    h.repeats = spread_of_repeats(runs, from);
    h.spread = spread_of_runs(runs, segments, from);
    if (given_sd > 0 && h.runs < given_until) {
        h.given_sd = given_sd;
        const double squares = h.spread.sd * h.spread.sd * h.spread.df;
        h.spread.df += given_df;
        h.spread.sd = std::sqrt((given_df * given_sd * given_sd + squares) / h.spread.df);
    }
    const history_segment& against = segment_for(segments, who);
    h.level = newest_level(runs, against, h.spread.sd);
    // Main itself moved: its own run is compared with its earlier level.
    if (who != run_on::main && h.spread.df > 0) h.moved = moves_of_main(runs, against, h.spread);
    return h;
}

inline constexpr std::size_t runs_of_drift = 10;
inline constexpr double least_drift = 0.01;
// runs: the accuracy with which a step's first one is found
inline constexpr std::size_t annotation_reaches = 2;

/// Whether the first runs of a segment, as many as showed it, are worse than the newest of another,
/// at a level of 5 %. Later runs do not count, so that decisions do not change.
inline bool is_worse(const vector<run_level>& runs, const history_segment& s,
                     const history_segment& than) {
    const vector<double> now = means_of(runs, s.first, std::min(s.found + 1, s.end));
    const vector<double> old =
        means_of(runs, than.end - std::min(than.end - than.first, level_runs), than.end);
    const auto a = static_cast<double>(now.size()), b = static_cast<double>(old.size());
    const double df = a + b - 2, change = mean_of(now) - mean_of(old);
    if (df <= 0) return change > 0;
    const double variance =
        std::max(((a - 1) * sample_variance(now) + (b - 1) * sample_variance(old)) / df,
                 least_run_sd * least_run_sd);
    return change > student_t_quantile(0.95, df) * std::sqrt(variance * (1 / a + 1 / b));
}

/// A regression is accepted only by an annotation; a level no worse than the newest accepted one
/// (an improvement, or a repaired regression) is accepted automatically.
inline vector<history_segment> with_accepted(vector<history_segment> segments,
                                             const history_series& s,
                                             const vector<run_level>& runs) {
    const auto annotations = annotated_runs(s, runs, annotation_kind::accept);
    std::size_t accepted = 0;
    for (std::size_t i = 1; i < segments.size(); ++i) {
        history_segment& now = segments[i];
        const bool is_annotated = any_of(annotations, [&](std::size_t m) {
            return m + annotation_reaches >= now.first && m < now.end;
        });
        now.is_accepted = is_annotated || !is_worse(runs, now, segments[accepted]);
        if (now.is_accepted) accepted = i;
    }
    return segments;
}

/// The difference of the newest runs from the first ones of the accepted level: logarithms with a
/// 95 % interval.
struct level_drift {
    double by = 0, low = 0, high = 0;
    std::size_t since = 0;  // the first of those runs
    std::size_t steps = 0;  // found since then
};
inline std::optional<level_drift> drift_of_level(const vector<run_level>& runs,
                                                 const vector<history_segment>& segments,
                                                 const runs_spread& spread) {
    if (segments.empty() || !(spread.df > 0)) return {};
    const history_segment& accepted = segment_for(segments, run_on::main);
    const std::size_t end = runs.size(), n = runs_of_drift;
    if (accepted.end - accepted.first < n || end < accepted.first + 2 * n) return {};
    const double then =
        clipped_mean(means_of(runs, accepted.first, accepted.first + n), 3 * spread.sd);
    const double now = clipped_mean(means_of(runs, end - n, end), 3 * spread.sd);
    const double se = spread.sd * std::sqrt(2 / static_cast<double>(n));
    level_drift d{now - then, 0, 0, accepted.first, 0};
    if (std::fabs(d.by) < least_drift ||
        std::fabs(d.by) < student_t_quantile(0.9995, spread.df) * se)
        return {};
    const double half = student_t_quantile(0.975, spread.df) * se;
    d.low = d.by - half;
    d.high = d.by + half;
    for (const history_segment& s : segments) d.steps += s.first > accepted.first;
    return d;
}

/// Error levels of a run's interim analyses. An early pass uses a twentieth of the level; one more
/// analysis, with better knowledge of today's spread, uses Pocock's bounds for five. All share one
/// run's deviation, so that additional analyses cost little.
struct history_bounds {
    double early_pass = 2.80, pass = 1.645, fail = 2.326, late_pass = 2.12, late_fail = 2.80;
};
enum class history_analysis_kind : unsigned char { none, early, whole, late };

/// The analyses of a run: after two repeats, after as many as baseline runs have, and after two
/// more if today's spread left it open.
struct history_analyses {
    std::size_t early = 2, whole = 3, late = 5;
};
inline history_analyses analyses_for(const learned_history& h) {
    const auto n = static_cast<std::size_t>(std::max(2.0, std::round(h.repeats.repeats)));
    return {2, n, n + 2};
}

enum class history_hold : unsigned char {
    none, other_machine, main_moved, machine, trouble, given
};

/// An analysis of a run: distances from the limit are logarithms, negative if it is met.
struct history_analysis {
    history_analysis_kind kind = history_analysis_kind::none;
    verdict outcome = verdict::inconclusive;
    history_hold withheld = history_hold::none;
    std::size_t by = 0;                         // index of main's step that held it back
    std::size_t repeats = 0;
    double distance = 0, pass_bound = 0, fail_bound = 0;
    double pass_z = 0, fail_z = 0;              // of the bounds
    bool is_noisier = false;                    // today's repeats vary more than the history's
};

/// The limit of a run as a level: `factor` times main's, and this beyond it. Of a ratio: its
/// logarithm.
struct level_of_limit {
    double beyond = 0, factor = 1;
    level_of_limit(double beyond_level, double of_level = 1)
        : beyond(beyond_level), factor(of_level) {}
    double of(double level) const { return beyond + (factor - 1) * level; }
};
/// What adds to the noise of a run: of a fraction the variance of the counts of one repeat, of a
/// difference what the client cannot tell.
struct noise_of_today {
    double counts = 0, client = 0;
};

/// The half widths of both bounds. If today's repeats vary no more than the history's, the exact
/// predictive interval of one more run.
struct history_reach {
    double pass = 0, fail = 0;
};
inline history_reach reach_of(const learned_history& h, double own_variance, std::size_t k,
                              double runs, double pass_z, double fail_z,
                              const noise_of_today& today = {}) {
    const auto repeats = static_cast<double>(k);
    // two repeats hardly show their own noise
    const double known = (k == 2 ? 4 : 1) * h.repeats.variance;
    const bool is_own = own_variance > known;
    const double excess = std::max(0.0, std::max(known, own_variance) / repeats -
                                            h.repeats.variance / h.repeats.repeats);
    const double df = is_own ? repeats - 1 : h.repeats.df;
    const auto half = [&](double z) {
        const double p = normal_cdf(z);
        const double t = student_t_quantile(p, h.spread.df);
        const double machine = h.machine.variance > 0 ? student_t_quantile(p, h.machine.df) : 0;
        const double between = t * t * h.spread.sd * h.spread.sd * (1 + 1 / runs) +
                               machine * machine * h.machine.variance;
        const double own = excess > 0 ? student_t_quantile(p, df) : 0;
        const double within = std::max(own * own * excess, z * z * today.counts / repeats);
        return std::sqrt(between + within) + today.client;
    };
    return {half(pass_z), half(fail_z)};
}

/// Analyses the first repeats of a run, as levels with the history's signs.
inline history_analysis analysis_against(const learned_history& h, const vector<double>& run,
                                 const level_of_limit& line, history_analysis_kind kind,
                                 const history_bounds& bounds = {},
                                 const noise_of_today& today = {}) {
    history_analysis l;
    l.kind = kind;
    l.repeats = run.size();
    const double mean = mean_of(run), own = sample_variance(run);
    const auto is = [&](history_analysis_kind k) { return kind == k; };
    l.pass_z = is(history_analysis_kind::early)  ? bounds.early_pass
               : is(history_analysis_kind::late) ? bounds.late_pass
                                                 : bounds.pass;
    l.fail_z = is(history_analysis_kind::late) ? bounds.late_fail : bounds.fail;
    const auto k = static_cast<double>(run.size());
    l.is_noisier = h.repeats.variance <= 0
                       ? own > 0
                       : own > h.repeats.variance * f_quantile_80(k - 1, h.repeats.df);
    const auto outcome_against = [&](const level_of_runs& level, history_reach& reach) {
        reach = reach_of(h, own, run.size(), level.runs, l.pass_z, l.fail_z, today);
        const double distance = mean - level.mean - line.of(level.mean);
        if (distance + reach.pass < 0) return verdict::pass;
        const bool is_missed = distance - reach.fail > 0 && !is(history_analysis_kind::early);
        return is_missed ? verdict::fail : verdict::inconclusive;
    };
    history_reach reach;
    l.outcome = outcome_against(h.level, reach);
    l.distance = mean - h.level.mean - line.of(h.level.mean);
    l.pass_bound = l.distance + reach.pass;
    l.fail_bound = l.distance - reach.fail;
    const auto hold = [&](history_hold why) {
        l.withheld = why;
        l.outcome = verdict::inconclusive;
    };
    if (!h.machine.only.empty() && l.outcome != verdict::inconclusive)
        hold(history_hold::other_machine);
    for (std::size_t i = 0; i < h.moved.size() && l.outcome != verdict::inconclusive; ++i) {
        const main_moved& m = h.moved[i];
        if (l.outcome != (m.by > 0 ? verdict::fail : verdict::pass)) continue;
        if (outcome_against(m.now, reach) == l.outcome) continue;
        l.by = i;
        hold(history_hold::main_moved);
    }
    if (l.outcome != verdict::fail) return l;
    if (h.slow.explain() && mean - h.level.mean < h.slow.farthest + h.spread.sd)
        hold(history_hold::machine);
    else if (h.spread.farthest > 0 && l.distance < h.spread.farthest + h.spread.sd)
        hold(history_hold::trouble);
    else if (l.distance < 2 * h.given_sd)
        hold(history_hold::given);
    return l;
}

/// The analysis after k of n repeats. A run that joins the history has one, after all of them.
inline history_analysis_kind analysis_kind_after(const learned_history& h, std::size_t k,
                                                 std::size_t n, run_on who) {
    const history_analyses planned = analyses_for(h);
    if (who == run_on::main)
        return k == n ? history_analysis_kind::whole : history_analysis_kind::none;
    if (k == planned.late) return history_analysis_kind::late;
    if (k == planned.whole) return history_analysis_kind::whole;
    return k == planned.early ? history_analysis_kind::early : history_analysis_kind::none;
}
/// Whether more repeats cannot decide more.
inline bool is_last_analysis(const learned_history& h, const history_analysis& l) {
    const history_analyses planned = analyses_for(h);
    return l.repeats >= planned.late || (l.repeats >= planned.whole && !l.is_noisier);
}
/// The verdict of a run on all its repeats: at the first analysis that decides, or at its last. The
/// late one is made only if the run was open and noisier than the history.
inline history_analysis judged_against(const learned_history& h, const vector<double>& run,
                                   const level_of_limit& line, run_on who,
                                   const history_bounds& bounds = {},
                                   const noise_of_today& today = {}) {
    history_analysis l;
    for (std::size_t k = 2; k <= run.size() && l.outcome == verdict::inconclusive; ++k) {
        const history_analysis_kind kind = analysis_kind_after(h, k, run.size(), who);
        if (kind == history_analysis_kind::none) continue;
        if (kind == history_analysis_kind::late && !l.is_noisier) break;
        l = analysis_against(h, {run.begin(), run.begin() + static_cast<std::ptrdiff_t>(k)}, line,
                             kind, bounds, today);
    }
    return l;
}

/// What a run differs by from the level that is known, without its repeats.
inline double sd_of_a_run(const learned_history& h) {
    return std::sqrt(h.spread.sd * h.spread.sd * (1 + 1 / h.level.runs) + h.machine.variance);
}
/// The share of runs of unchanged code that pass a limit with this logarithm, and of runs that far
/// beyond it that fail, at their last analysis; 0 to 1.
inline double chance_to_pass(const learned_history& h, double line,
                             const history_bounds& bounds = {}) {
    const double sd = sd_of_a_run(h);
    const double t = student_t_quantile(normal_cdf(bounds.pass), h.spread.df);
    return student_t_cdf(line / sd - t, h.spread.df);
}
inline double chance_to_find(const learned_history& h, double beyond,
                             const history_bounds& bounds = {}) {
    const double sd = sd_of_a_run(h);
    const double t = student_t_quantile(normal_cdf(bounds.fail), h.spread.df);
    return student_t_cdf(beyond / sd - t, h.spread.df);
}

/// Degrees of freedom within runs that make their noise a prior.
inline constexpr double noise_known_from = 20;
// The floor of the prior: without it, a day with four times the noise of a quiet history would
// exceed the error levels.
inline constexpr double least_prior_sd = 0.04;

/// The prior standard deviation between repeats of a statistic's logarithm: a bound that is high
/// enough in four of five cases; 0: the history is too short.
inline double prior_sd_of(const repeats_spread& r) {
    if (r.df < noise_known_from) return 0;
    return std::max(least_prior_sd, std::sqrt(r.variance * r.df / chi_square_20(r.df)));
}

inline constexpr double history_prior_df = 4;

/// The noise of repeats from earlier runs; `sd` is 0 if unknown.
struct history_noise {
    double sd = 0, df = 0;
};

/// Returns an analysis with the noise of a history, at less weight than a calibration because it is
/// of other days. The history is not used where the repeats spread by more.
inline interim_analysis analysis_with_history(const vector<double>& distances,
                                              const history_noise& known,
                                              const judging_rule& rule) {
    const double own = sample_variance(distances), df = static_cast<double>(distances.size()) - 1;
    if (!(known.sd > 0) || df < 1 || own > known.sd * known.sd * f_quantile_80(df, known.df))
        return analysis_of_repeats(distances, prior_sd, rule);
    interim_analysis l = analysis_of(distances, known.sd, rule, {}, history_prior_df);
    if (l.prior_df == history_prior_df) l.history_sd = known.sd;
    return or_by_quiet_repeats(l, distances, known.sd, rule);
}

// ===== [E] a series as the rule reads it =========================================================

/// A series: its runs without the effects of their machines, its segments and the data for the
/// rule.
struct history_read {
    vector<run_level> runs{};
    vector<history_segment> segments{};
    series_machines machines{};
    learned_history learned{};
};
/// The newest one and two runs of main on a machine, where they are not as its earlier ones: it or
/// main has changed, and a verdict must hold for both.
inline vector<main_moved> moves_on_machine(const history_read& r, const std::string& name) {
    const history_segment& level = r.segments.back();
    const learned_history& h = r.learned;
    vector<main_moved> out;
    double sum = 0, count = 0;
    for (std::size_t i = level.end; i-- > level.first && count < 2;) {
        const std::size_t m = r.machines.of_run[i];
        if (m == r.machines.all.size() || r.machines.all[m].name != name) continue;
        sum += r.runs[i].mean + r.machines.by_run[i];
        ++count;
        const double by = sum / count - h.level.mean;
        const double reach = student_t_quantile(0.99, h.spread.df) * h.spread.sd *
                             std::sqrt(1 / count + 1 / h.level.runs);
        if (std::fabs(by) > reach) out.push_back({{sum / count, count}, by, true});
    }
    return out;
}
/// Adds the machine of a run that is judged.
inline void add_machine(history_read& r, const std::string& name, run_on who) {
    learned_history& h = r.learned;
    h.machine = machine_for(r.machines, name, segment_for(r.segments, who));
    if (h.machine.name.empty()) return;
    h.level.mean += h.machine.effect;
    for (main_moved& m : h.moved) m.now.mean += h.machine.effect;
    if (who != run_on::main && h.spread.df > 0) {
        const vector<main_moved> own = moves_on_machine(r, name);
        h.moved.insert(h.moved.begin(), own.begin(), own.end());
    }
    const std::size_t from = r.runs.size() - h.runs;
    const run_residuals rest = residuals_of(r.runs, r.segments, from);
    if (rest.all.size() < robust_from) return;
    const double reach = 4 * std::max(robust_sd(rest.all, 0), least_run_sd);
    h.slow = slow_runs_on(r.machines, name, rest.all, reach);
}
/// `machine`: of the run that is judged, "" if unknown.
inline history_read history_read_as(const history_series& s, run_on who, double given_sd = 0,
                                    const std::string& machine = "") {
    history_read r;
    r.runs = levels_of(s);
    r.machines = effects_in(s, r.runs);
    r.runs = without_machines(std::move(r.runs), r.machines);
    r.segments = with_accepted(levels_of_main(s, r.runs, r.machines), s, r.runs);
    r.learned = learned_from(r.runs, r.segments, who, given_sd);
    if (r.runs.empty()) return r;
    runs_spread& spread = r.learned.spread;
    const double left = std::max(1.0, spread.df - fitted_by(r.machines));
    if (left < spread.df) {
        spread.sd *= std::sqrt(spread.df / left);
        spread.df = left;
    }
    add_machine(r, machine, who);
    return r;
}

// ===== [E] advisory objectives that main meets again =============================================

/// An advisory objective, and the newest runs, all of which met it.
struct met_waiver {
    std::string objective{};
    std::size_t runs = 0;
};
inline void fields_of(field_visitor& v, met_waiver& w) {
    v.text({"objective"}, w.objective);
    v.whole({"runs", "the newest ones, which all met it"}, w.runs, {1, 10000});
}
inline std::string waiver_text(const met_waiver& w) {
    return filled("{objective}: met in {runs} of {runs} runs: it can block again",
                  {{"objective", w.objective}, {"runs", w.runs}});
}
/// Returns the advisory objectives with a limit of their own that the ten newest runs with a value
/// met, each by the geometric mean of its repeats. `runs`: oldest first.
inline vector<met_waiver> met_waivers(const vector<const history_run*>& runs,
                                      const vector<slo>& slos) {
    const std::size_t needed = 10;
    vector<met_waiver> all;
    for (const slo& s : slos) {
        if (!s.is_advisory || !is_absolute(s)) continue;
        std::size_t met = 0;
        bool missed = false;
        for (std::size_t i = runs.size(); i-- > 0 && met < needed && !missed;)
            for (const named_repeats& n : runs[i]->values) {
                if (n.name != str(s.statistic.name)) continue;
                double logs = 0;
                for (const double x : n.repeats) logs += std::log(x);
                const double value = std::exp(logs / static_cast<double>(n.repeats.size()));
                missed = s.at_most ? value > s.bound : value < s.bound;
                met += !missed;
            }
        if (met == needed && !missed) all.push_back({str(s.text()), met});
    }
    return all;
}

// ===== [E] the history of each objective of a gate ===============================================
// All that the rule needs: judging again needs no folder and gives the same bits.

/// One statistic in one direction: data for the rule and the reports.
struct objective_history {
    std::string statistic{};
    bool at_most = true;
    double scale = 0;           // of differences: levels are values in parts of it; else logarithms
    learned_history learned{};
    std::string none{};         // why it is not judged by the history
    std::string newest{};       // the newest run's commit or date
    double step = 0;            // at the level's start, as a share; 0: none
    std::string step_at{};      // its date
    std::string step_text{};    // commit and changed properties
    bool is_open_step = false;  // main became worse, not accepted
    double drift = 0, drift_low = 0, drift_high = 0;  // as shares; 0: none shown
    std::string drift_since{};
    std::size_t drift_steps = 0;
};

/// The runs of main, for a gate's objectives.
struct history_parameters {
    std::string folder{};
    std::string machine{};     // of the runs, in words
    std::string none{};        // why there is no history to judge by
    bool appends = false;      // the run joins the history
    bool knows_card = true;    // whether any run was measured on today's
    vector<objective_history> objectives{};
    vector<met_waiver> met{};  // advisory objectives that can block again

    bool is_there() const { return !folder.empty(); }
    const objective_history* of(const slo& s) const {
        for (const objective_history& o : objectives)
            if (o.statistic == str(s.statistic.name) && o.at_most == s.at_most &&
                (o.scale > 0) == is_difference(s))
                return &o;
        return nullptr;
    }
};

inline void fields_of(field_visitor& v, main_moved& m) {
    v.number({"level"}, m.now.mean, any_number);
    v.number({"nights"}, m.now.runs, {1, most_of_few});
    v.number({"by", "logarithm"}, m.by, any_number);
    v.flag({"on_machine", "its newest runs on the machine of the run", if_any}, m.is_on_machine);
}
inline void fields_of(field_visitor& v, machine_of_run& m, slow_runs& s) {
    constexpr whole_range count{0, most_of_few};
    v.text({"name"}, m.name);
    v.number({"effect", "logarithm, in the level already; above 0: slower"}, m.effect, any_number);
    v.number({"variance", "of the effect, or of the machines where it is not known"}, m.variance,
             {0, max_statistic, 0});
    v.number({"df"}, m.df, {0, most_of_few, 0});
    v.text({"only", "another machine, on which all runs of the level were", if_any}, m.only);
    v.whole({"runs"}, s.runs, count);
    v.whole({"slow_runs"}, s.slow, count);
    v.whole({"slow_runs_on_it"}, s.on_it, count);
    v.whole({"machines", "of those runs"}, s.machines, count);
    v.number({"chance", "of so many on it, by an exact test"}, s.chance, {0, 1, 1});
    v.number({"farthest_on_it"}, s.farthest, any_number);
}
inline void fields_of(field_visitor& v, learned_history& h) {
    constexpr number_range count{0, most_of_few};
    v.whole({"nights", "the newest ones, of which all of this is"}, h.runs, {0, most_of_few});
    v.number({"repeats_variance", "of logarithms, within runs"}, h.repeats.variance, any_number);
    v.number({"repeats_df"}, h.repeats.df, count);
    v.number({"repeats_a_night", "harmonic mean"}, h.repeats.repeats, count);
    v.number({"nights_sd", "of logarithms"}, h.spread.sd, any_number);
    v.number({"nights_df"}, h.spread.df, count);
    v.whole({"trouble_nights"}, h.spread.trouble, {0, most_of_few});
    v.number({"farthest", "of the outlying runs, from its level"}, h.spread.farthest, any_number);
    v.number({"level", "mean of the newest runs' logarithms; less is better"}, h.level.mean,
             any_number);
    v.number({"level_nights"}, h.level.runs, count);
    v.number({"given_sd", "what runs differ by as the user says; 0: it does not count"}, h.given_sd,
             any_number);
    if (v.has("machine", !h.machine.name.empty()))
        v.object({"machine", "of the run, in a history of several", at_times}, h.machine, h.slow);
    v.list({"main_moved"}, h.moved, [&](main_moved& m) { fields_of(v, m); });
}
inline void fields_of(field_visitor& v, objective_history& o) {
    v.text({"statistic"}, o.statistic);
    v.flag({"at_most"}, o.at_most);
    v.number({"scale", "of differences: all levels are in parts of it, and no logarithms", if_any},
             o.scale, {0, largest_number, 0});
    fields_of(v, o.learned);
    v.text({"none", "why it is not judged by the runs", if_any}, o.none);
    v.text({"newest", "commit of the newest run, or its date"}, o.newest);
    v.text({"segment_from", "the date of the step that the level began with, \"\": none"},
           o.step_at);
    v.number({"segment_step", "as a share"}, o.step, any_number);
    v.text({"segment_text"}, o.step_text);
    v.flag({"open_step", "main became worse, and nobody accepted it"}, o.is_open_step);
    v.number({"drift", "as a share, 0: none is shown"}, o.drift, any_number);
    v.number({"drift_low"}, o.drift_low, any_number);
    v.number({"drift_high"}, o.drift_high, any_number);
    v.text({"drift_since"}, o.drift_since);
    v.whole({"drift_steps"}, o.drift_steps, {0, most_of_few});
}
inline void fields_of(field_visitor& v, history_parameters& h) {
    v.text({"folder"}, h.folder);
    v.text({"machine"}, h.machine);
    v.text({"none", "why there is nothing to be held against"}, h.none);
    v.flag({"appends", "the run joins the history"}, h.appends);
    v.flag({"knows_card", "a run was measured on the card"}, h.knows_card);
    v.list({"objectives"}, h.objectives, [&](objective_history& o) { fields_of(v, o); });
    v.list({"waivers", "advisory objectives that can block again", if_any}, h.met,
           [&](met_waiver& w) { fields_of(v, w); });
}

inline std::string short_commit(const series_run& n) {
    return n.commit.empty() ? n.at.substr(0, 10) : n.commit.substr(0, 8);
}
/// The watched properties that differ between two runs: "vLLM 0.32 -> vLLM 0.33".
inline std::string changed_facts(const vector<named_text>& before,
                                 const vector<named_text>& after) {
    std::string words;
    for (const auto& [name, now] : after)
        for (const auto& [known, then] : before) {
            if (known != name || then.empty() || then == now) continue;
            words += words.empty() ? "" : ", ";
            words += name == "card"        ? "another card"
                     : name == "arguments" ? "other arguments"
                     : name == "server"    ? then + " -> " + now
                                           : name + " " + then + " -> " + now;
        }
    return words;
}

/// The questioner's data, beside the gate's objectives.
struct history_question {
    std::string folder{};
    double given_sd = 0;
    bool appends = false;
    std::string oldest{};  // a newest run before that is too old
    std::string card{};     // today's, "" if unknown
    std::string machine{};  // likewise, its name
};
inline std::string too_old_text(const std::string& at, const std::string& of) {
    return joined({"the newest run", of, " is of ", at.substr(0, 10), ", over 30 days ago"});
}
inline objective_history objective_history_of(history_series s, const slo& what,
                                              const history_question& asked) {
    objective_history o;
    s.scale = is_difference(what) ? std::max(std::fabs(what.offset), s.mean()) : 0;
    o.scale = s.scale;
    o.statistic = str(what.statistic.name);
    o.at_most = s.at_most = what.at_most;
    const history_read r =
        history_read_as(s, asked.appends ? run_on::main : run_on::branch, asked.given_sd,
                        asked.machine);
    o.learned = r.learned;
    if (r.runs.empty()) return o;
    const double sign = what.at_most ? 1 : -1;
    const auto run = [&](std::size_t i) -> const series_run& { return s.runs[r.runs[i].run]; };
    const series_run& newest = run(r.runs.size() - 1);
    o.newest = short_commit(newest);
    if (newest.at < asked.oldest) o.none = too_old_text(newest.at, " with " + o.statistic);
    o.is_open_step = !r.segments.back().is_accepted;
    if (r.segments.size() > 1) {
        const history_segment& last = r.segments.back();
        const history_segment& before = r.segments[r.segments.size() - 2];
        o.step = s.share_of(sign * (mean_of(means_of(r.runs, last.first, last.end)) -
                                    mean_of(means_of(r.runs, before.first, before.end))));
        o.step_at = run(last.first).at.substr(0, 10);
        const std::string changed =
            changed_facts(run(last.first - 1).watched, run(last.first).watched);
        o.step_text = run(last.first).commit.substr(0, 8);
        if (!changed.empty()) o.step_text += (o.step_text.empty() ? "" : ", ") + changed;
    }
    if (const auto d = drift_of_level(r.runs, r.segments, r.learned.spread)) {
        o.drift = s.share_of(sign * d->by);
        o.drift_low = s.share_of(sign * (sign > 0 ? d->low : d->high));
        o.drift_high = s.share_of(sign * (sign > 0 ? d->high : d->low));
        o.drift_since = run(d->since).at.substr(0, 10);
        o.drift_steps = d->steps;
    }
    return o;
}

/// Returns why a series has no runs: the series with most, and its first difference.
inline std::string why_no_runs(const history_lines& lines, const run_series& mine,
                               const std::map<std::string, run_series>& known) {
    const auto runs = runs_by_series(lines, mine.gate);
    if (const std::string none = no_valid_run_of(lines, mine.gate); !none.empty()) return none;
    const auto most = std::max_element(runs.begin(), runs.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    const std::string count = plural(most->second, "run");
    const auto at = known.find(most->first);
    if (at == known.end()) return count + " of another series, none of this one";
    const std::string there = machine_text(at->second), here = machine_text(mine);
    if (there != here) return count + " of " + there + ", none of " + here;
    return count + " of another series, none of this one: " + first_difference(mine, at->second);
}

/// Values, speeds and rates have a spread between repeats, as have objectives on a baseline.
inline history_parameters history_parameters_of(const history_lines& lines, const run_series& mine,
                                      const std::map<std::string, run_series>& known,
                                      const vector<slo>& slos, const history_question& asked) {
    history_parameters h;
    h.folder = asked.folder;
    h.machine = machine_text(mine);
    h.appends = asked.appends;
    const std::string id = id_of(mine);
    const vector<const history_run*> runs = runs_of(lines, mine.gate, id);
    if (runs.empty()) {
        h.none = why_no_runs(lines, mine, known);
        return h;
    }
    if (runs.back()->at < asked.oldest) h.none = too_old_text(runs.back()->at, "");
    bool any_card = false, same_card = false;
    for (const history_run* r : runs)
        for (const auto& [name, value] : r->watched)
            if (name == "card") {
                any_card = true;
                same_card = same_card || value == asked.card;
            }
    h.knows_card = same_card || !any_card || asked.card.empty();
    h.met = met_waivers(runs, slos);
    for (const slo& s : slos) {
        if (!(is_judged_by_spread(s.statistic.metric) || !is_absolute(s)) || h.of(s)) continue;
        h.objectives.push_back(
            objective_history_of(series_of(lines, runs, str(s.statistic.name)), s, asked));
    }
    return h;
}

// ===== [E] verdicts by a history =================================================================

inline history_bounds history_bounds_of(const judging_rule& r) {
    const auto z = [](double level) { return -normal_quantile(level); };
    const bool usual = r.pass_level == 0.05 && r.fail_level == 0.01;
    if (usual && r.pass_z <= 2.17) return {};
    return {z(r.pass_level / 20), z(r.pass_level), z(r.fail_level), r.pass_z, r.fail_z};
}

/// Returns why an objective cannot be judged by the history; empty if it can.
inline cause without_runs(const history_parameters& h, const slo& s) {
    if (!h.none.empty()) return with_text(because::no_runs, h.none);
    const objective_history* const o = h.of(s);
    if (!o || o->learned.runs == 0) return {because::runs_lack};
    if (!o->none.empty()) return with_text(because::no_runs, o->none);
    const learned_history& l = o->learned;
    if (l.is_enough()) return {};
    if (l.given_sd <= 0 && l.runs < fewest_runs)
        return cause_with<because::few_runs>({{"runs", l.runs}});
    return l.repeats.df <= 0 ? cause_with<because::lone_repeats>({{"runs", l.runs}})
                             : cause_with<because::lone_levels>({{"runs", l.runs}});
}
inline cause cause_of(const history_analysis& l, const objective_history& o) {
    const learned_history& h = o.learned;
    switch (l.withheld) {
    case history_hold::none: break;
    case history_hold::other_machine:
        return with_text(because::other_machine,
                         h.machine.only + ", none on " + h.machine.name);
    case history_hold::machine:
        return cause_with<because::machine_explains>(
            {{"on_it", h.slow.on_it}, {"slow", h.slow.slow}, {"runs", h.slow.runs},
             {"chance", h.slow.chance},
             {"others", h.slow.on_it == h.slow.slow ? h.slow.machines - 1 : 0}},
            whose::nobody, h.machine.name);
    case history_hold::main_moved: {
        const main_moved& m = h.moved[l.by];
        const double share = std::fabs(o.scale > 0 ? m.by : std::expm1(m.by));
        return cause_with<because::main_moved>(
            {{"moved", share}, {"is_slower", m.by > 0}, {"in_two", m.now.runs - 1}},
            whose::nobody,
            m.is_on_machine ? "on " + h.machine.name + ": measure on another machine" : o.newest);
    }
    case history_hold::trouble:
        return cause_with<because::outlying_runs>({{"outlying", h.spread.trouble}, {"runs", h.runs}});
    case history_hold::given: return cause_with<because::given_spread>({{"spread", h.given_sd}});
    }
    return {};
}

/// The analysis in the form of others: bounds in standard errors.
inline interim_analysis reported_analysis(const history_analysis& l, const learned_history& h) {
    interim_analysis out;
    out.outcome = l.outcome;
    out.spread = spread_of::measured;
    out.mean = l.distance;
    out.sd = h.spread.sd;
    out.df = h.spread.df;
    out.pass_z = l.pass_z;
    out.fail_z = l.fail_z;
    out.pass_t = student_t_quantile(normal_cdf(out.pass_z), out.df);
    out.se = (l.pass_bound - l.distance) / out.pass_t;
    out.fail_t = (l.distance - l.fail_bound) / out.se;
    out.prior_sd = h.given_sd;
    out.pass_bound = l.pass_bound;
    out.fail_bound = l.fail_bound;
    out.detectable = std::expm1((out.fail_t + four_in_five) * out.se);
    return out;
}

/// The limit as a level, and the noise that today's run has beside the history's.
inline level_of_limit line_of(const objective_history& o, const slo& s) {
    const double sign = s.at_most ? 1 : -1;
    if (o.scale > 0) return {sign * s.offset / o.scale, s.factor};
    return sign * std::log(s.factor);
}
inline noise_of_today noise_today(const objective_history& o, const objective_columns& of,
                                  const slo& s, const comparison& c) {
    if (!(o.scale > 0)) return {};
    noise_of_today today{.counts = 0, .client = of.client_error / o.scale};
    if (!is_request_fraction(s.statistic.metric)) return today;
    slo own = s;
    own.bound = std::clamp(s.factor * c.others_together + s.offset, 0.0, 1.0);
    const miss_counts m = counted_misses(of.mine, own, of.repeats(), 0);
    const double value = std::clamp(of.mine.together, 0.0, 1.0);
    const double variance = std::max(own.bound * (1 - own.bound), value * (1 - value));
    today.counts = variance * std::max(1.0, m.effect) * as_number(of.repeats()) /
                   (m.n * o.scale * o.scale);
    return today;
}

/// A ratio to main's level, or a difference, by what runs and repeats of main differ by.
class by_history final : public method {
public:
    by_history(const history_parameters& past, const objective_columns& columns,
               const judging_parameters& parameters, const slo& objective, sought which)
        : method(columns, parameters, objective), past_(past), runs_(past.of(objective)),
          which_(which) {
        if (runs_ && runs_->scale > 0) seen_.scale = runs_->scale;
    }
    cause lacking(decision& d) const override {
        cause why = without_runs(past_, s);
        if (!why) return {};
        d.outcome = verdict::inconclusive;
        d.is_at_its_end = true;
        count_repeats(d, repeats());
        return why;
    }
    taken_repeat take(std::size_t i) override {
        const double value = c.of_repeat(i);
        if (std::isnan(value)) return {false, why_no_value(c, s, i)};
        seen_.add(value, s, limit_of(s));
        return {};
    }
    /// Of the newest analysis that such a run has after so many repeats: it is of as many as
    /// runs of main have. One that joins the history has a single analysis, of all repeats.
    evidence shown(decision& d, const fewest_repeats&) override {
        const std::size_t n = seen_.values.size();
        if (past_.appends && n < repeats()) return {.n = as_number(n)};
        if (seen_.unbounded > 0) return evidence_of_misses(d, seen_, t, c, first_fail);
        if (n < 2) return {.n = as_number(n), .words = {cause{because::one_repeat}}};
        const history_analysis l = analysis();
        count_repeats(d, l.repeats);
        d.last = reported_analysis(l, runs_->learned);
        evidence x{.outcome = l.outcome, .n = as_number(n),
                   .is_final = !past_.appends && is_last_analysis(runs_->learned, l)};
        if (l.outcome == verdict::fail && !past_.knows_card) {
            x.outcome = verdict::inconclusive;
            x.words = {cause{because::unknown_card}};
        } else if (cause why = cause_of(l, *runs_)) {
            x.words = {std::move(why)};
        }
        return x;
    }
    void end(decision& d, sought) const override {
        d.values = seen_.values;
        d.decided_by = verdict_method::counted_misses;
        if (seen_.unbounded > 0) return;
        d.decided_by = verdict_method::predictive_t;
        d.past = t.past;
        d.scale = seen_.scale;
        d.distances = seen_.distances;
        d.values.resize(static_cast<std::size_t>(d.repeats));
        d.distances.resize(d.values.size());
    }

private:
    void count_repeats(decision& d, std::size_t n) const {
        d.repeats = static_cast<int>(n);
        d.requests = measured_requests(of(), n, s.statistic.metric);
    }
    history_analysis analysis() const {
        const learned_history& h = runs_->learned;
        const level_of_limit line = line_of(*runs_, s);
        const noise_of_today today = noise_today(*runs_, of(), s, c);
        const history_bounds bounds = history_bounds_of(t.rule);
        vector<double> run = seen_.distances;
        for (double& x : run) x += h.level.mean + line.of(h.level.mean);
        if (which_ == sought::last)
            return analysis_against(h, run, line, history_analysis_kind::whole, bounds, today);
        return judged_against(h, run, line, past_.appends ? run_on::main : run_on::branch, bounds,
                              today);
    }

    const history_parameters& past_;
    const objective_history* const runs_;  // null: none has the statistic
    const sought which_;
    observed_repeats seen_{};
};

/// The numbers of such a verdict, and a limit that unchanged code would mostly pass.
inline void estimate_by_history(const learned_history& h, decision& d) {
    if (d.repeats < 2) return;
    const interim_analysis& l = d.last;
    const auto back = [&](double distance) { return at_distance(d.objective, distance, d.limit); };
    set_interval(d);
    if (is_difference(d.objective)) {  // in its unit
        d.detectable = std::log1p(l.detectable) * d.scale;
        return;
    }
    d.detectable = fraction_of_limit(d.objective, std::log1p(l.detectable));
    const double se = sd_of_a_run(h);
    const history_bounds bounds = history_bounds_of(d.rule);
    const double t = student_t_quantile(normal_cdf(bounds.pass), l.df);
    if (l.mean < 0 && -l.mean < (t + four_in_five) * se && d.why.empty())
        d.advice = cause_with<because::headroom_in_noise>(
            {{"headroom", -fraction_of_limit(d.objective, l.mean)},
             {"noise", l.sd},
             {"better", back(l.mean + (t + 1.645) * se)}});
}

inline constexpr double wide_runs_sd = 0.03;  // above this a live comparison sees far more

inline int of_hundred(double fraction) {
    return static_cast<int>(std::floor(100 * std::clamp(fraction, 0.0, 1.0)));
}
inline std::string history_words(const history_parameters& h, const objective_history& o,
                                 const slo& s, const judging_rule& rule) {
    const learned_history& l = o.learned;
    if (!o.none.empty()) return o.none;
    std::string words = plural(l.runs, "run") + (h.machine.empty() ? "" : " on " + h.machine);
    if (!o.step_at.empty())
        words += printed(", the level is of the step of %+.1f %% on %s", o.step * 100,
                         o.step_at.c_str()) +
                 (o.step_text.empty() ? "" : " (" + o.step_text + ")");
    if (o.is_open_step) words += ", which made main worse and which nobody accepted";
    if (!l.is_enough()) return words;
    const history_bounds bounds = history_bounds_of(rule);
    const double line = line_of(o, s).of(l.level.mean);
    const auto spread_text = [&](double sd) {
        return o.scale > 0 ? value_text(s.statistic.metric, sd * o.scale)
                           : printed("%.2g %%", sd * 100);
    };
    words += "; runs differ by " + spread_text(l.spread.sd) +
             (l.given_sd > 0 ? " (as given)" : "") + ", repeats by " +
             spread_text(std::sqrt(l.repeats.variance)) +
             printed("; unchanged code passes in %d of 100",
                     of_hundred(chance_to_pass(l, line, bounds)));
    if (!(o.scale > 0))
        words += printed(", 10 %% beyond the limit is found in %d",
                         of_hundred(chance_to_find(l, std::log(1.10), bounds)));
    if (l.machine.effect != 0)
        words += "; runs on " + l.machine.name +
                 printed(" are %.2g %% %s", 100 * std::fabs(std::expm1(l.machine.effect)),
                         l.machine.effect > 0 ? "slower" : "faster");
    if (o.drift != 0)
        words += printed("; main has drifted by %+.1f %% [%+.1f %%, %+.1f %%] since %s, in %zu "
                         "steps", o.drift * 100, o.drift_low * 100, o.drift_high * 100,
                         o.drift_since.c_str(), o.drift_steps);
    if (l.spread.sd >= wide_runs_sd) words += "; with such runs, compare with a live baseline";
    return words;
}
/// A line for each objective, "history: 27 runs on ...".
inline vector<std::string> report_lines(const history_parameters& h, const gate_report& g) {
    vector<std::string> lines;
    if (!h.none.empty()) return {"history: " + h.none};
    vector<const slo*> relative;
    for (const slo& s : g.judged_by.slos)
        if (!is_absolute(s) && h.of(s)) relative.push_back(&s);
    for (const slo* s : relative)
        lines.push_back(
            (relative.size() > 1 ? "history of " + str((*s).statistic.name) : "history") + ": " +
            history_words(h, *h.of(*s), *s, g.judged_by.rule));
    for (const met_waiver& w : h.met)
        for (const slo_verdict& v : g.verdicts)
            if (v.outcome == verdict::pass && str(v.objective.text()) == w.objective)
                lines.push_back(waiver_text(w));
    return lines;
}

inline void add_history(arithmetic& a, const learned_history& h, const decision& d) {
    if (d.repeats < 2) return;
    a.add_values(d);
    a.add_distances(d);
    a.add_each({{"nights_sd", h.spread.sd}, {"nights_df", h.spread.df},
                {"repeats_sd", std::sqrt(h.repeats.variance)}, {"level", h.level.mean},
                {"level_nights", h.level.runs}});
    if (h.given_sd > 0) a.add("given_sd", {h.given_sd});
    a.add_each({{"standard_error", d.last.se}, {"pass_z", d.last.pass_z},
                {"fail_z", d.last.fail_z}, {"pass_bound", d.last.pass_bound},
                {"fail_bound", d.last.fail_bound}});
}

class history_judge final : public past_judge {
public:
    explicit history_judge(history_parameters&& h = {}) : parameters(std::move(h)) {}
    history_parameters parameters;

    std::unique_ptr<method> method_for(const objective_columns& c, const judging_parameters& t,
                                       const slo& s, sought which) const override {
        return std::make_unique<by_history>(parameters, c, t, s, which);
    }
    void estimate(decision& d) const override { estimate_by_history(learned(d), d); }
    std::string against(const decision& d) const override {
        return printed("%zu runs", learned(d).runs);
    }
    void explain(arithmetic& a, const decision& d) const override { add_history(a, learned(d), d); }
    std::optional<level> level_of(const slo& s) const override {
        const objective_history* const o = parameters.of(s);
        if (!o) return std::nullopt;
        return level{(s.at_most ? 1 : -1) * o->learned.level.mean, o->learned.spread.sd, o->scale};
    }
    std::optional<interim_analysis> analysis_of(const slo& s, const vector<double>& distances,
                                                const judging_rule& rule) const override {
        const bool has_level = is_absolute(s) && parameters.none.empty();
        const objective_history* const o = has_level ? parameters.of(s) : nullptr;
        if (!o || !o->none.empty()) return {};
        const history_noise known{prior_sd_of(o->learned.repeats), o->learned.repeats.df};
        if (!(known.sd > 0)) return {};
        return analysis_with_history(distances, known, rule);
    }
    vector<std::string> lines(const gate_report& g) const override {
        return report_lines(parameters, g);
    }
    void fields(field_visitor& v) override { fields_of(v, parameters); }

private:
    const learned_history& learned(const decision& d) const {
        return parameters.of(d.objective)->learned;
    }
};

// ===== [E] gates judged by the history of main, and added to it ==================================

/// Cores that this program may use: by its affinity and its control group's quota.
inline int usable_cores() {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    const double quota = quota_of(line_of_file("/sys/fs/cgroup/cpu.max"));
    return quota > 0 ? std::min(cores, static_cast<int>(std::ceil(quota))) : cores;
}
inline void ask_for_version(const live_target& of, fingerprint& f) {
    const load_target& to = of.load();
    const std::string api = to.api->name;
    f.server = of.pages().first_is_servers ? of.pages().of : "";
    if (f.server.empty())
        f.server = api == "tgi"                    ? "TGI"
                   : api == "triton"               ? "Triton"
                   : api.compare(0, 6, "ollama") == 0 ? "Ollama"
                   : api == "llama_cpp"            ? "llama.cpp"
                                                   : "";
    const long long until_ns = now_ns() + ns_of(machine_within_s);
    for (const version_page& page : version_pages_of(f.server)) {
        const double left_s = static_cast<double>(until_ns - now_ns()) * 1e-9;
        if (left_s <= 0) return;
        const http_answer a = blocking_get(to, inquiry_path(to, page.path), to.fields, left_s);
        const std::string version = a.status == 200 ? reported_version(page, a.body) : "";
        if (version.empty()) continue;
        if (f.server.empty()) f.server = server_behind(page.path);
        f.version = excerpt_without_secrets(version, to.secrets);
        return;
    }
}
/// By the exporters' pages, or by this host if the server is on it; a virtual server is not.
inline void ask_machine(const live_target& of, fingerprint& f) {
    reported_cards cards;
    const server_pages& pages = of.pages();
    for (std::size_t i = pages.first_is_servers ? 1 : 0; i < pages.all.size(); ++i)
        read_cards(read_page(pages.all[i]).page, cards);
    f.accelerators = counted_names(cards.names);
    f.cards = hash_of_cards(cards.ids);
    if (!cards.drivers.empty()) f.driver = cards.drivers.front();
    if (!runs_here(of)) return;
    if (f.accelerators.empty())
        read_nvidia_smi(said_by("nvidia-smi --query-gpu=name,uuid,driver_version,memory.total,"
                                "power.limit --format=csv,noheader", machine_within_s), f);
    f.cpu = printable(name_of_the_processor(), 60);
    f.cores = std::to_string(usable_cores());
    utsname u{};
    if (uname(&u) == 0) f.kernel = printable(u.release, 60);
}

/// The properties of a running server. Throws std::invalid_argument if its machine is unknown and
/// not named.
inline fingerprint fingerprint_of(const live_target& of, const std::string& machine) {
    fingerprint f;
    f.machine = machine.empty() && runs_here(of) ? name_of_this_machine() : machine;
    if (const extension_server* const own = of.of_extension()) {
        f.server = own->description();
        if (current_environment) return f;
    } else {
        ask_for_version(of, f);
        f.arguments = hash_of_arguments(of.command());
    }
    ask_machine(of, f);
    if (!f.is_hardware_known() && machine.empty())
        refuse({"nothing tells which machine ", of.facts().url, " is, and only runs on one machine "
                "make a history: set LLMBENCH_MACHINE to a name for it, or name the page of its "
                "dcgm-exporter, endpoint{.telemetry = {\"http://host:9400/metrics\"}}"});
    return f;
}

/// The history baseline of a plan, or the default.
inline history_baseline history_of(const plan& p) {
    const auto* own = p.judged->past.what.get<history_baseline>();
    return own ? *own : history();
}
/// Throws std::invalid_argument with a sentence for the first fault.
inline void check_history(const scenario&, planned_traffic&, planned_judging& judged) {
    const auto* const own = judged.past.what.get<history_baseline>();
    if (!own) return;
    if (own->folder.empty()) refuse({"baseline is history(\"\"): it must name a folder"});
    const double reported = own->run_to_run.value;
    if (!(reported >= 0 && reported <= 0.5))
        refuse(
            {printed("baseline is history(...): the standard deviation between runs is %g %%: "
                     "it runs from above 0 to 50 %%, or is left out and learned",
                     reported * 100)});
}
/// All baseline runs have the same number of repeats: ending at a clear verdict would bias them.
inline scenario as_a_history_run(const scenario& given) {
    scenario s = given;
    if (s.baseline.is_live())
        refuse({"LLMBENCH_HISTORY=append, and the baseline is a server: a history is of what main "
                "does alone; gates with such a baseline are for pull requests"});
    if (s.repeats == 0) s.repeats = repeats_of_a_run;
    return s;
}

inline constexpr double runs_count_for_s = 30 * 86400.0;  // after the newest one

inline history_parameters parameters_for(const plan& p, const target_facts& target,
                                         const fingerprint& print, const run_mode& mode,
                                         const history_settings& asked) {
    const history_baseline own = history_of(p);
    const std::string folder = asked.folder_or(own.folder);
    history_parameters none;
    none.folder = folder;
    none.appends = mode.appends();
    std::error_code unread;
    const bool begins = mode.appends() && !std::filesystem::exists(folder, unread);
    none.none = mode.model                      ? "a rehearsal has no history"
                : asked.use == history_use::off ? "LLMBENCH_HISTORY is off"
                : begins                        ? "the history begins with this run"
                                                : "";
    if (!none.none.empty()) return none;
    history_store store = history_of_gate(folder, p.name, asked.at);
    // The last run of a date counts: this one replaces earlier ones of today.
    const std::string today = utc_text(machine_unix_s()).substr(0, 10);
    if (mode.appends())
        erase_if(store.lines.runs,
                      [&](const history_run& r) { return r.at.substr(0, 10) == today; });
    const std::string oldest =
        asked.at.empty() ? utc_text(machine_unix_s() - runs_count_for_s) : "";
    const planned_judging& j = *p.judged;
    const run_series mine = series_of_run(p, target, print);
    store.all_series[id_of(mine)] = mine;
    join_older_series(store.lines, store.all_series);
    return history_parameters_of(store.lines, mine, store.all_series, j.slos,
                                 {folder, own.run_to_run.value, mode.appends(), oldest,
                                  print.cards, print.machine});
}

/// The server and machine of one gate.
struct gate_on_machine final : gate_past {
    fingerprint print{};
};
inline void add_history(const run_mode& mode, const live_target& candidate, measured_gate& to) {
    const plan& p = to.what;
    const bool judges = p.judged->past.what.get<history_baseline>();
    if (!judges && !mode.appends()) return;
    const auto on = new_shared<gate_on_machine>();
    const history_settings asked = history_settings_of(environment);
    if (!mode.model) on->print = fingerprint_of(candidate, asked.machine);
    if (judges)
        to.judged_by.past =
            new_shared<history_judge>(parameters_for(p, to.target, on->print, mode, asked));
    to.past = on;
}

inline std::shared_ptr<past_judge> new_history_judge() { return new_shared<history_judge>(); }

struct runs_to_add {
    std::mutex mutex{};
    std::map<std::string, vector<history_entry>> runs{};
};
inline runs_to_add& waiting_runs() {
    static runs_to_add* const all = new runs_to_add;  // outlives every static object
    return *all;
}
inline std::string keep_run(const gate_report& g, const gate_past* of, const std::string& stopped) {
    const history_settings asked = history_settings_of(environment);
    const plan& p = g.what;
    const fingerprint print =
        of ? static_cast<const gate_on_machine*>(of)->print : fingerprint();
    history_entry e = history_entry_of(p, series_of_run(p, g.target, print), print,
                                       g.figures, g.verdicts, stopped);
    if (!e.why_not.empty()) return e.why_not;
    const std::lock_guard guard(waiting_runs().mutex);
    waiting_runs().runs[asked.folder_or(history_of(p).folder)].push_back(std::move(e));
    return {};
}
inline constexpr kept_runs kept_for_history{as_a_history_run, keep_run};
inline void read_history_settings(const variable_lookup& look_up, settings& into) {
    if (history_settings_of(look_up).appends()) into.keeps = &kept_for_history;
}
inline void write_runs(
    const std::string& began_at, const std::string& commit,
    const std::function<void(const std::string&, const std::exception&)>& lost) {
    std::map<std::string, vector<history_entry>> runs;
    {
        const std::lock_guard guard(waiting_runs().mutex);
        runs = std::exchange(waiting_runs().runs, {});
    }
    for (const auto& [folder, gates] : runs) try {
            const std::string file = append_history(folder, gates, began_at, commit);
            std::cout << "history: " << plural(gates.size(), "gate") << " added, " << file
                      << std::endl;
        } catch (const std::exception& e) { lost(folder, e); }
}
inline constinit const extension history_kept{.name = "history",
                                              .add_to_plan = check_history,
                                              .add_past = add_history,
                                              .new_judge = new_history_judge,
                                              .write_kept = write_runs,
                                              .read_settings = read_history_settings};
constinit const extension* const include_llmbench_history_hpp_where_LLMBENCH_MAIN_is =
    &history_kept;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_history_kept() { add(history_kept); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_HISTORY_IMPLEMENTED
