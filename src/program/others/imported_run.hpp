// one run of another tool
// Python writes NaN and Infinity, which JSON does not have, and appends values to a file one after
// the other.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/answers/timeline.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/measurements.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/repeat_fields.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/request_log.hpp"
#include "core/metric/table.hpp"
#include "core/traffic/arrivals.hpp"
#include "extensions/machines/core/clock.hpp"

#include <algorithm>  // max, min, minmax_element
#include <cmath>  // isnan, llround, round
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t, uint64_t
#include <map>
#include <string>
#include <string_view>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns Python's NaN and infinities as strings, so that a reader of numbers can name them in its
/// refusal.
inline std::string with_quoted_numbers(std::string_view s) {
    std::string out;
    bool quoted = false;
    for (std::size_t i = 0; i < s.size(); ++i) {
        if (!quoted && (s[i] == 'N' || s[i] == 'I' || s[i] == '-')) {
            bool found = false;
            for (const std::string_view word : {"NaN", "-Infinity", "Infinity"}) {
                if (s.substr(i, word.size()) != word) continue;
                out.append("\"").append(word).append("\"");
                i += word.size() - 1;
                found = true;
                break;
            }
            if (found) continue;
        }
        if (quoted && s[i] == '\\' && i + 1 < s.size()) out += s[i++];
        else if (s[i] == '"') quoted = !quoted;
        out += s[i];
    }
    return out;
}

/// Whether a text ends inside of a string or of brackets.
inline bool ends_inside(std::string_view s) {
    int depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < s.size(); ++i) {
        const char c = s[i];
        if (quoted && c == '\\') ++i;
        else if (c == '"') quoted = !quoted;
        else if (!quoted) depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    }
    return quoted || depth > 0;
}
/// Returns the JSON values of a file, without large members that no judging needs. Throws
/// std::invalid_argument if it holds anything else, or ends inside of a value.
inline vector<picojson::value> read_json_values(std::string_view s, const std::string& file) {
    std::string repaired;
    if (s.starts_with("\xEF\xBB\xBF")) s.remove_prefix(3);
    if (s.find("NaN") != std::string_view::npos || s.find("Infinity") != std::string_view::npos)
        s = repaired = with_quoted_numbers(s);
    vector<picojson::value> values;
    json_reader reader;
    while (s.find_first_not_of(" \t\r\n") != std::string_view::npos) {
        const json_view* const v = reader.read_first(s);
        if (!v) {
            const std::string why = reader.why();
            refuse({file, ": ", !why.empty() ? why
                    : ends_inside(s)
                        ? printed("it ends inside of its JSON value %zu: the file is cut off",
                                  values.size() + 1)
                        : "it is not JSON: " + printable(s, 60)});
        }
        values.push_back(tree_of(*v, {"request_args", "traceback", "trace_data",
                                      "response_metrics", "telemetry_data",
                                      "cached_tokens_details", "spec_decode_acceptance"}));
    }
    if (values.empty()) refuse({file, ": it is empty"});
    return values;
}

inline constexpr double max_asked = 1e9;      // of a load: requests/s, users, in flight
inline constexpr double latest_clock_s = 4e9;  // of the wall clock: the year 2096

/// Returns a number of the planned load, 0 if the file does not have it.
inline long long asked_from(const checked_object& of, const char* name) {
    if (std::isnan(of.number(name, 0, max_asked))) return 0;
    return of.whole<long long>(name, 0, max_asked, 0);
}
/// Returns a setting as text: "inf", "8", "null". "" if the file does not have it.
inline std::string setting_text(const picojson::value& of, const char* name) {
    const picojson::value* v = member(of, name);
    if (!v) return {};
    if (v->is<std::string>()) return printable(v->get<std::string>(), 200);
    return v->is<double>() ? printed("%.9g", number_in(*v)) : shown_value(*v);
}
/// Whether a member of a result file is a number that the tool measured, or names one run.
inline bool is_of_one_run(std::string_view name) {
    for (const char* of : {"mean_", "median_", "std_", "total_", "spec_decode_"})
        if (name.starts_with(of)) return true;
    const bool is_percentile =
        name.size() > 1 && name[0] == 'p' && name[1] >= '0' && name[1] <= '9';
    if (is_percentile || name.ends_with("_ms") || name.ends_with("_per_s")) return true;
    while (!name.empty())
        if (is_one_of(taken_part(name, "_-. "),
                      {"run", "repeat", "repetition", "trial", "iteration", "attempt", "seed", "id",
                       "date", "time", "timestamp", "start", "end", "job", "uuid", "label", "tag",
                       "file", "filename", "path", "dir", "url", "host", "hostname", "port", "addr",
                       "pid", "duration", "completed", "failed", "throughput", "goodput", "rtfx",
                       "concurrent", "concurrency", "accept", "status", "key", "log", "total", "req"}))
            return true;
    return false;
}
/// Metrics that a file cannot support for the same reason.
using metric_group = vector<metric_id>;
template <class Belongs>
metric_group metrics_that(Belongs&& belongs) {
    metric_group g;
    for (const metric_facts& f : metric_table)
        if (!is_of_server(f.id) && belongs(f)) g.push_back(f.id);
    return g;
}
/// Metrics that count from the planned send.
inline metric_group of_planned_sends() {
    return metrics_that([](const metric_facts& f) { return f.is_affected_by_lateness; });
}
/// Metrics that need the time of the first token, or of any token.
inline metric_group of_tokens_in_time() {
    return metrics_that([](const metric_facts& f) {
        return f.needs_stream || f.needs_event_times || f.is_of_decoding;
    });
}
inline metric_group of_ends() { return {metric_id::e2e, metric_id::normalized_latency}; }
inline metric_group of_gaps() {
    return {metric_id::itl, metric_id::second_token_gap, metric_id::tokens_per_event};
}
inline metric_group of_output_counts() {
    return metrics_that([](const metric_facts& f) { return f.counts_output; });
}
inline metric_group of_windows() {
    return metrics_that([](const metric_facts& f) { return f.of == metric_of::window; });
}
/// Metrics of windows, which need the time of each event.
inline metric_group of_event_times() {
    return metrics_that([](const metric_facts& f) {
        return f.needs_event_times && f.of == metric_of::window;
    });
}

/// A request of a file: nanoseconds of the tool's clock, and its gaps in microseconds.
struct imported_request {
    record what{};
    vector<std::uint32_t> gaps{};
    std::string id{};  // that it was sent with, "" if the file does not have it
};

/// A setting that must be the same in all repeats, as a run has it.
struct imported_setting {
    std::string name{}, value{};
};

/// Seconds of a clock, NaN if unknown.
struct imported_span {
    double from = not_a_number, to = not_a_number;
    bool is_reported() const { return to >= from; }
    bool meets(const imported_span& o) const { return from < o.to && o.from < to; }
};

struct imported_run {
    std::string file{};     // as the user named it
    std::string tool{};     // "vLLM bench serve"
    std::string version{};  // "" if unknown
    std::string model{};    // "" if unknown
    std::string identity{}; // of the run, "" if the file has none
    std::uint64_t hash = 0; // of the file's bytes
    vector<imported_setting> settings{};
    std::map<std::string, std::string> more{};  // what else its user or its server says of the setting
    arrival_data arrivals{};
    bool knows_arrivals = true;    // the file has the planned load
    bool knows_sends = true;       // and when each request was sent
    bool has_late_sends = false;   // and when it was planned
    bool has_untold_chunks = false;  // what a chat's first chunk is, another file may tell
    vector<unsupported_metrics> unsupported{};
    vector<std::string> notes{};  // notes on its numbers, a sentence each
    vector<imported_request> requests{};
    std::size_t gaps = 0;               // of all requests
    long long cut_off = 0;              // requests in progress at the end of the run
    long long measured_from_ns = 0, measured_to_ns = 0;  // of sends that count; 0: all do

    imported_span clock{}, calendar{};  // from first send to last end, if known

    void add_settings(const picojson::value& of, std::initializer_list<const char*> names,
                      const std::string& before = "") {
        for (const char* name : names)
            settings.push_back({before + name, setting_text(of, name)});
    }
    bool has_setting(const std::string& name) const {
        return any_of(settings, [&](const imported_setting& s) { return s.name == name; });
    }
    /// Adds what else stands in an object: metadata, the parameters of a sweep, the server's
    /// options. A number with many digits is measured.
    void add_more(const picojson::value& of, const std::string& before = "") {
        if (!of.is<picojson::object>()) return;
        for (const auto& [name, v] : of.get<picojson::object>()) {
            const bool is_measured =
                v.is<double>() && printed("%.4g", number_in(v)) != printed("%.9g", number_in(v));
            if (v.is<picojson::array>() || v.is<picojson::object>() || v.is<picojson::null>() ||
                is_measured || is_of_one_run(name) || has_setting(name))
                continue;
            more[before + printable(name, 60)] = setting_text(of, name.c_str());
        }
    }
    /// Adds what a user has put into each request.
    void add_body(const picojson::value& body) {
        if (body.is<picojson::object>())
            more["the body of requests"] = printable(body.serialize(), 200);
    }
    void lacks(metric_group of, std::string why) {
        unsupported.push_back({std::move(why), std::move(of)});
    }
    /// No metric can be judged.
    void lacks_all(std::string why) { unsupported.push_back({std::move(why), {}}); }
    std::string tool_and_version() const { return version.empty() ? tool : tool + " " + version; }
};

/// Returns nanoseconds. The tools' clocks are at about 1e9 seconds at most.
inline long long clock_ns(double seconds) { return std::llround(seconds * 1e9); }
inline std::uint32_t us_of(double seconds) {
    return static_cast<std::uint32_t>(std::min(std::round(seconds * 1e6), 4294967295.0));
}

/// Events with stamps closer than this may have been read together, by a tool that stamps one after
/// the other.
inline constexpr std::uint32_t same_read_us = 100;

/// 512 MiB of gaps in one run. A file without gaps could ask for any number of them.
inline constexpr std::size_t max_imported_gaps = 1u << 27;
inline void count_gaps(imported_run& run, std::size_t more) {
    if (more > max_imported_gaps - run.gaps)
        refuse({printed("%s: its requests tell of over %zu tokens, so many are not read",
                        run.file.c_str(), max_imported_gaps)});
    run.gaps += more;
}

/// Adds a record's gaps, and the number of reads that they show.
inline void add_gaps(imported_run& run, imported_request& r, vector<std::uint32_t> us) {
    count_gaps(run, us.size());
    r.what.events = static_cast<int>(us.size()) + 1;
    r.what.reads = r.what.first_read_events = 1;
    for (const std::uint32_t gap : us) {
        r.what.reads += gap >= same_read_us;
        r.what.first_read_events += r.what.reads == 1;
    }
    r.gaps = std::move(us);
}

/// For a file without gaps, adds equal gaps between its events. No metric that needs the gaps
/// themselves is judged.
inline void add_even_gaps(imported_run& run, imported_request& r, int events) {
    const auto n = static_cast<std::size_t>(events - 1);
    count_gaps(run, n);
    const double all_s = static_cast<double>(r.what.last_token_ns - r.what.first_token_ns) * 1e-9;
    r.gaps.assign(n, n > 0 ? us_of(all_s / static_cast<double>(n)) : 0);
    r.what.events = events;  // its reads are unknown
}

/// Marks a request as failed, with its error on one line.
inline void mark_failed(record& r, request_status status, const std::string& error) {
    const std::size_t end = error.find_last_not_of(" \t\r\n");
    const std::string words = error.substr(0, end == std::string::npos ? 0 : end + 1);
    r.status = status;
    r.error = words.empty() ? "the file does not say why"
                            : printable(words.substr(words.rfind('\n') + 1), 200);
}

/// Returns the span from first send to last end, by the clock that stamped them.
inline imported_span span_of(const vector<imported_request>& all) {
    imported_span s;
    for (const imported_request& r : all) {
        const double from = static_cast<double>(r.what.sent_ns) * 1e-9;
        const double to = static_cast<double>(r.what.end_ns) * 1e-9;
        if (!(s.from <= from)) s.from = from;
        if (!(s.to >= to)) s.to = to;
    }
    return s;
}

/// Marks what a client read late, where some answers came in one piece or several tokens at once
/// and others did not. Their first tokens came earlier than it says, and a verdict must hold for
/// both. If nearly all came in one piece, the server or a proxy held them, which is what users get.
inline void mark_late_reads(imported_run& run) {
    long long events = 0, together = 0, answers = 0, in_one_piece = 0;
    for (const imported_request& r : run.requests) {
        if (r.what.status != request_status::ok || r.what.reads == 0 || r.what.events < 2) continue;
        events += r.what.events - 1;
        together += r.what.events - r.what.reads;
        ++answers;
        in_one_piece += is_in_one_piece(r.what);
    }
    if (20 * together <= events || 20 * in_one_piece >= 19 * answers) return;
    for (imported_request& r : run.requests) {
        if (r.what.status != request_status::ok || r.what.reads == 0) continue;
        r.what.unknown_gaps = r.what.events - r.what.reads;
        if (r.what.first_read_events > 1) r.what.first_early_ns = buffered_ns(r.what);
    }
    run.notes.push_back(printed("%s: %.0f %% of the gaps are under 0.1 ms: its client was late and "
                                "read several chunks together", run.file.c_str(),
                                100.0 * static_cast<double>(together) /
                                    static_cast<double>(events)));
}

/// Shifts all times so that the first planned send is at one second, because 0 means none.
inline void begin_at_one_second(vector<imported_request>& all, imported_run& run) {
    long long first = 0;
    for (const imported_request& r : all)
        if (first == 0 || r.what.scheduled_ns < first) first = r.what.scheduled_ns;
    const long long shift = 1000000000 - first;
    const auto move = [&](long long& t) { if (t != 0) t += shift; };
    for (imported_request& r : all) move_clock(r.what, shift);
    move(run.measured_from_ns);
    move(run.measured_to_ns);
}

/// From the first planned send to the last one, or for a batch to the last end, without the tool's
/// warm-up and cool-down.
inline void set_window(repeat_data& d, const imported_run& run) {
    long long last_send = 0, last_end = 0, first = 0;
    for (const record& r : d.records) {
        if (!is_measured(r)) continue;
        if (first == 0) first = r.scheduled_ns;
        last_send = std::max(last_send, r.scheduled_ns);
        last_end = std::max(last_end, r.end_ns);
    }
    const bool is_batch = run.arrivals.kind == arrival_kind::all_at_once;
    d.window = time_interval::between(
        run.measured_from_ns != 0 ? run.measured_from_ns : first,
        is_batch                  ? last_end
        : run.measured_to_ns != 0 ? std::min(run.measured_to_ns, last_send)
                                  : last_send);
}

/// The rates of planned and actual sends, if both are known. The rate of random arrivals differs
/// from the one asked for by chance.
inline void set_rates(repeat_data& d, const imported_run& run) {
    if (!run.has_late_sends || saturates(run.arrivals)) return;
    vector<long long> planned, sent;
    for (const record& r : d.records) {
        if (!is_measured(r) || r.dispatched_ns == 0) continue;
        planned.push_back(r.scheduled_ns);
        sent.push_back(r.sent_ns);
    }
    const auto rate = [](const vector<long long>& at) {
        const auto [first, last] = std::minmax_element(at.begin(), at.end());
        return static_cast<double>(at.size() - 1) / (static_cast<double>(*last - *first) * 1e-9);
    };
    const auto is_one_time = [](const vector<long long>& at) {
        return all_of(at, [&](long long t) { return t == at[0]; });
    };
    if (is_one_time(planned) || is_one_time(sent)) return;
    d.asked_rate = rate(planned);
    d.achieved_rate = rate(sent);
}

/// If nine in ten answers have the longest length, it was asked for. A shorter answer was broken
/// off, which tools count as a success.
inline void note_forced_lengths(repeat_data& d) {
    int longest = 0;
    long long completed = 0, as_long = 0;
    for (const record& r : d.records) {
        if (!is_pooled(r)) continue;
        ++completed;
        if (r.output_tokens > longest) as_long = 0;
        longest = std::max(longest, r.output_tokens);
        as_long += r.output_tokens == longest;
    }
    if (10 * as_long < 9 * completed) return;
    for (record& r : d.records) {
        r.length_forced = true;
        r.most_output_tokens = longest;
    }
}

/// Sets the second event of an answer whose reads are known. Its first event counts as answer, as
/// in the tools: their files do not tell reasoning from answer.
inline void set_second_event(record& r, const gap_list& gaps) {
    r.first_answer_ns = r.first_token_ns;
    if (gaps.size() == 0) return;
    const bool is_apart = gaps[0] >= same_read_us;
    r.second_token_ns = r.first_token_ns + (is_apart ? gaps[0] * 1000ll : 0);
}

inline repeat_data repeat_of(imported_run& run, int index) {
    vector<imported_request>& all = run.requests;
    begin_at_one_second(all, run);
    sort_by(all, [](const imported_request& r) { return r.what.scheduled_ns; });
    request_log log;
    gap_list gaps;
    repeat_data d;
    d.index = index;
    d.ends_open = true;
    for (std::size_t place = 0; place < all.size(); ++place) {
        imported_request& r = all[place];
        gaps.clear();
        for (const std::uint32_t us : r.gaps) gaps.push_back(us);
        r.what.repeat = index;
        if (r.what.status == request_status::ok) set_second_event(r.what, gaps);
        d.content_events += r.what.events;
        log.add(place, std::move(r.what), gaps);
    }
    log.move_into(d);
    all.clear();
    set_window(d, run);
    set_rates(d, run);
    note_forced_lengths(d);
    return d;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
