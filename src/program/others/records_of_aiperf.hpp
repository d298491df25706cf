// result files of AIPerf
// The files of AIPerf 0.13.0: profile_export.jsonl, a line for each request, and
// profile_export_aiperf.json with settings and counts. Its ITL is our tpot, its inter_chunk_latency
// our itl.
#pragma once

#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "program/others/imported_run.hpp"

#include <algorithm>  // max, min, sort, unique
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <string>
#include <utility>  // move, pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

inline bool is_aiperf_record(const picojson::value& v) {
    return value_at(v, "metadata.request_start_ns") && member(v, "metrics");
}
inline bool is_aiperf_summary(const picojson::value& v) {
    return member(v, "aiperf_version") ||
           (member(v, "input_config") && member(v, "request_latency"));
}

/// Returns the other one of the two files.
inline std::string aiperf_file_beside(const std::string& path) {
    const std::string name = file_name(path), folder = path.substr(0, path.size() - name.size());
    if (name == "profile_export.jsonl") return folder + "profile_export_aiperf.json";
    if (name == "profile_export_aiperf.json") return folder + "profile_export.jsonl";
    const std::string stem = name.substr(0, name.rfind('.'));
    return folder + stem + (name == stem + ".jsonl" ? ".json" : ".jsonl");
}

/// One line of profile_export.jsonl.
class aiperf_line {
public:
    aiperf_line(const imported_run& run, const picojson::value& v, std::size_t number)
        : metadata(*member(v, "metadata"), run.file, printed("line %zu: metadata", number)),
          file_(run.file),
          v_(v),
          metrics_(*member(v, "metrics"), run.file, printed("line %zu: metrics", number)) {}
    const checked_object metadata;
    /// Returns nanoseconds since 1970, exact to about 200: whole numbers are read as doubles.
    long long time(const char* of) const {
        return static_cast<long long>(
            metadata.number(of, 1, latest_clock_s * 1e9, 0, "a time in nanoseconds since 1970"));
    }
    /// Returns seconds, NaN if the request has no such metric.
    double seconds(const char* of) const {
        const picojson::value* v = metric(of);
        if (!v) return not_a_number;
        const double unit = unit_of(of);
        return unit * metrics_.number_of(*v, of, 0, longest_time_s / unit, "a time");
    }
    /// Returns -1 if the request has no such metric.
    int tokens(const char* of) const {
        const picojson::value* v = metric(of);
        return v ? tokens_from(file_, *v, [&] { return metrics_.name_of(of); }) : -1;
    }
    vector<std::uint32_t> gaps() const {
        constexpr const char* of = "inter_chunk_latency";
        vector<std::uint32_t> us;
        const picojson::value* v = metric(of);
        if (!v || !v->is<picojson::array>()) return us;
        const double unit = unit_of(of), most = longest_time_s / unit;
        for (const picojson::value& x : v->get<picojson::array>())
            us.push_back(us_of(unit * number_from(file_, x, 0, most, "a time", [&] {
                                   return element_name(metrics_.name_of(of), us.size());
                               })));
        return us;
    }
    /// Null if it has none.
    const picojson::value* error() const {
        const picojson::value* e = member(v_, "error");
        return e && !e->is<picojson::null>() ? e : nullptr;
    }

private:
    const picojson::value* metric(const char* of) const {
        return value_at(metrics_.value(), std::string(of) + ".value");
    }
    /// Returns the seconds in the unit of a metric.
    double unit_of(const char* of) const {
        const checked_object metric = metrics_.at(of);
        const std::string unit = metric.text("unit");
        for (const auto& [known, seconds] :
             {std::pair{"ms", 1e-3}, std::pair{"s", 1.0}, std::pair{"us", 1e-6},
              std::pair{"ns", 1e-9}, std::pair{"sec", 1.0}})
            if (unit == known) return seconds;
        metric.refuse("unit", "ms, s, us or ns is allowed");
    }

    const std::string& file_;
    const picojson::value& v_;
    const checked_object metrics_;
};

inline constexpr const char context_overflow[] =
    "the server refused the prompt as longer than its context";

/// Missing values, counted over the completed requests.
struct aiperf_lacks {
    std::size_t completed = 0, without_usage = 0, without_gaps = 0, measured = 0, failed = 0;
    std::size_t overflows = 0;
    vector<double> sessions{};
};

inline void add_aiperf_answer(imported_run& run, const aiperf_line& l, imported_request& t,
                              double ttft_s,
                              double last_s, aiperf_lacks& lacks) {
    record& r = t.what;
    r.status = request_status::ok;
    r.first_token_ns = r.sent_ns + clock_ns(ttft_s);
    r.last_token_ns = r.sent_ns + clock_ns(std::max(ttft_s, last_s));
    r.end_ns = std::max(r.end_ns, r.last_token_ns);
    const int by_server = l.tokens("usage_completion_tokens");
    const int by_client = std::max(0, l.tokens("output_sequence_length"));
    r.output_tokens = by_server >= 0 ? by_server : by_client;
    r.token_source = token_origin::usage;
    r.first_event_tokens = 1;
    r.choices = 1;
    const vector<std::uint32_t> us = l.gaps();
    const bool has_gaps = !us.empty() || r.last_token_ns == r.first_token_ns;
    if (has_gaps) add_gaps(run, t, us);
    else add_even_gaps(run, t, std::max(1, r.output_tokens));
    ++lacks.completed;
    lacks.without_usage += by_server < 0;
    lacks.without_gaps += !has_gaps;
}
inline void add_aiperf_request(imported_run& run, const picojson::value& v, std::size_t number,
                               aiperf_lacks& lacks) {
    if (!is_aiperf_record(v))
        refuse({printed("%s: line %zu is no record of a request: metadata and metrics are missing",
                        run.file.c_str(), number)});
    const aiperf_line l(run, v, number);
    imported_request t;
    record& r = t.what;
    t.id = l.metadata.text("x_request_id");
    r.sent_ns = r.dispatched_ns = r.connected_ns = l.time("request_start_ns");
    if (r.sent_ns == 0)
        refuse({run.file, ": ", l.metadata.name_of("request_start_ns"),
                " is missing, a time in nanoseconds since 1970"});
    const long long credit = l.time("credit_issued_ns");
    r.scheduled_ns = credit != 0 ? std::min(credit, r.sent_ns) : r.sent_ns;
    if (run.arrivals.max_in_flight == 0) r.late_ns = r.sent_ns - r.scheduled_ns;
    r.end_ns = std::max(l.time("request_end_ns"), r.sent_ns);
    r.phase =
        l.metadata.text("benchmark_phase") == "warmup" ? run_phase::warmup : run_phase::measure;
    r.prompt_tokens = std::max(0, l.tokens("usage_prompt_tokens"));
    if (r.prompt_tokens == 0) r.prompt_tokens = std::max(0, l.tokens("input_sequence_length"));
    r.cached_tokens = l.tokens("usage_prompt_cache_read_tokens");
    r.turn = std::max(0, count_member(l.metadata.value(), "turn_index"));
    const double ttft_s = l.seconds("time_to_first_token"), last_s = l.seconds("request_latency");
    if (l.metadata.is_true("was_cancelled")) {
        mark_failed(r, request_status::cancelled, "cut off as the run ended");
        ++run.cut_off;
    } else if (l.metadata.is_true("context_overflow_skip")) {
        mark_failed(r, request_status::server, context_overflow);
        lacks.overflows += r.phase == run_phase::measure;
    } else if (const picojson::value* e = l.error()) {
        mark_failed(r, request_status::server,
                    e->is<std::string>() ? e->get<std::string>()
                                         : string_member(*e, "type") + ": " +
                                               string_member(*e, "message"));
    } else if (std::isnan(last_s)) {
        mark_failed(r, request_status::empty, "no content came");
    } else {
        add_aiperf_answer(run, l, t, std::isnan(ttft_s) ? last_s : ttft_s, last_s, lacks);
    }
    if (is_measured(r)) {
        ++lacks.measured;
        lacks.failed += r.status != request_status::ok && r.status != request_status::cancelled;
        const double session =
            r.turn == 0 ? l.metadata.number("session_num", 0, max_count, -1) : -1;
        if (session >= 0) lacks.sessions.push_back(session);
    }
    run.requests.push_back(std::move(t));
}

/// Returns the measured phase, null if the settings name none.
inline const picojson::value* aiperf_phase(const picojson::value& summary) {
    const picojson::value* config = member(summary, "input_config");
    const picojson::value* found = nullptr;
    if (!config) return nullptr;
    for (const picojson::value& phase : array_member(*config, "phases"))
        if (string_member(phase, "kind") != "warmup") found = &phase;
    return found;
}
inline void set_aiperf_arrivals(imported_run& run, const picojson::value& phase) {
    const std::string kind = string_member(phase, "type");
    const checked_object of(phase, run.file, "");
    const double rate = of.number("rate", 0, max_asked);
    const long long most = asked_from(of, "concurrency");
    arrival_data& a = run.arrivals;
    if (kind == "concurrency") {
        a.kind = arrival_kind::closed_loop;
        a.users = std::max(most, 1ll);
        return;
    }
    run.knows_arrivals = rate > 0 && (kind == "constant" || kind == "poisson" || kind == "gamma");
    run.has_late_sends = true;
    a.kind = kind == "constant"  ? arrival_kind::constant
             : kind == "gamma" ? arrival_kind::gamma : arrival_kind::poisson;
    a.rate = rate;
    if (const double shape = of.number("smoothness", 0, max_asked); shape > 0) a.burstiness = shape;
    a.max_in_flight = most;
}
inline void set_aiperf_settings(imported_run& run, const picojson::value& summary) {
    run.version = setting_text(summary, "aiperf_version");
    run.identity = setting_text(summary, "benchmark_id");
    const picojson::value* config = member(summary, "input_config");
    if (!config) return;
    if (const picojson::value* models = value_at(*config, "models.items");
        models && models->is<picojson::array>() && !models->get<picojson::array>().empty())
        run.model = setting_text(models->get<picojson::array>()[0], "name");
    run.settings.push_back({"model", run.model});
    if (const picojson::value* endpoint = member(*config, "endpoint"))
        run.add_settings(*endpoint, {"type", "streaming", "use_server_token_count"}, "endpoint ");
    if (const picojson::value* extra = value_at(*config, "endpoint.extra")) run.add_body(*extra);
    if (const picojson::value* phase = aiperf_phase(summary)) {
        run.add_settings(
            *phase, {"type", "rate", "concurrency", "requests", "duration", "smoothness"},
            "phase ");
        set_aiperf_arrivals(run, *phase);
    }
}
/// Compares with the counts of the summary. No started request may be missing between the others.
inline void check_aiperf_counts(imported_run& run, const picojson::value& summary,
                                aiperf_lacks found) {
    const auto count = [&](const char* name) {
        const picojson::value* v = value_at(summary, std::string(name) + ".avg");
        return v ? number_from(run.file, *v, 0, max_count, "a number",
                               [&] { return std::string(name) + ".avg"; })
                 : 0.0;
    };
    if (member(summary, "is_complete") && !true_member(summary, "is_complete") &&
        member(summary, "is_complete")->is<bool>())
        return run.lacks_all("AIPerf says itself that the run did not complete: " +
                             printable(string_member(summary, "incomplete_reason"), 200));
    const double completed = count("request_count"), failed = count("error_request_count");
    const auto listed = static_cast<double>(found.completed);
    if (completed != listed || failed > static_cast<double>(found.failed))
        return run.lacks_all(printed("its summary counts %.0f requests completed and %.0f failed, "
                                     "its records are %.0f and %zu: some were left out", completed,
                                     failed, listed, found.failed));
    std::sort(found.sessions.begin(), found.sessions.end());
    const auto last = std::unique(found.sessions.begin(), found.sessions.end());
    const auto distinct = static_cast<double>(last - found.sessions.begin());
    if (distinct > 0 && *(last - 1) - found.sessions.front() + 1 != distinct)
        run.lacks_all(printed("its records are of %.0f sessions numbered %.0f to %.0f: some were "
                              "left out", distinct, found.sessions.front(), *(last - 1)));
}

/// A member of a summary, or of one of the objects in it; null if there is none.
inline const picojson::value* summary_member(const picojson::value& summary, const char* name) {
    if (const picojson::value* v = member(summary, name)) return v;
    for (const char* of : {"metadata", "run_info", "scenario", "submission"})
        if (const picojson::value* v = value_at(summary, std::string(of) + "." + name)) return v;
    return nullptr;
}
/// What AIPerf says against its own run. Replays of agents leave requests that overflowed the
/// server's context out of their records: they are failures.
inline void add_aiperf_doubts(imported_run& run, const picojson::value& summary,
                              const aiperf_lacks& found) {
    const picojson::value* valid = summary_member(summary, "submission_valid");
    std::string reasons;
    for (const char* name : {"runtime_submission_invalid_reasons", "submission_invalid_reasons"})
        if (const picojson::value* list = summary_member(summary, name);
            list && list->is<picojson::array>())
            for (const picojson::value& reason : list->get<picojson::array>())
                reasons += (reasons.empty() ? "" : ", ") + printable(reason.to_str(), 100);
    if ((valid && valid->is<bool>() && !valid->get<bool>()) || !reasons.empty())
        run.notes.push_back(run.file + ": AIPerf says itself that the run is not valid for a "
                                       "submission" + (reasons.empty() ? "" : ": " + reasons));
    if (true_member(summary, "was_cancelled"))
        run.notes.push_back(run.file + ": AIPerf says that the run was cancelled");

    constexpr const char* count = "context_overflow_count";
    constexpr double max_overflows = 100000;  // as many records are made
    const picojson::value* v = summary_member(summary, count);
    if (v && v->is<picojson::object>()) v = member(*v, "avg");
    if (!v || run.requests.empty()) return;
    const auto reported = whole_from<long long>(run.file, *v, 0, max_overflows, "a number",
                                                [&] { return std::string(count); });
    const imported_request last = run.requests.back();
    for (auto i = static_cast<long long>(found.overflows); i < reported; ++i) {
        imported_request& r = run.requests.emplace_back();
        r.what.scheduled_ns = last.what.scheduled_ns;
        r.what.sent_ns = r.what.dispatched_ns = r.what.connected_ns = last.what.sent_ns;
        r.what.end_ns = last.what.sent_ns;
        r.what.phase = run_phase::measure;
        mark_failed(r.what, request_status::server, context_overflow);
    }
}

/// `records` are the lines of profile_export.jsonl, `summary` is profile_export_aiperf.json; one of
/// them may be missing.
inline imported_run read_aiperf_run(const vector<picojson::value>& records,
                                    const picojson::value* summary, const std::string& file) {
    imported_run run{.file = file, .tool = "AIPerf"};
    if (summary) set_aiperf_settings(run, *summary);
    else run.knows_arrivals = false;
    if (records.empty()) {
        run.lacks_all("it holds aggregates alone, and a verdict needs every request: "
                      "profile_export.jsonl has them and is not beside it");
        return run;
    }
    aiperf_lacks lacks;
    for (std::size_t i = 0; i < records.size(); ++i)
        add_aiperf_request(run, records[i], i + 1, lacks);
    if (summary) {
        check_aiperf_counts(run, *summary, lacks);
        add_aiperf_doubts(run, *summary, lacks);
    } else {
        run.lacks_all("profile_export_aiperf.json is not beside it, so it is unknown under which "
                      "load these requests were sent, nor whether they are all");
    }
    run.lacks(of_ends(), "AIPerf's request_latency ends at the last content, and its request_end "
                         "at the last event that it can use; e2e ends at [DONE]");
    run.notes.push_back("an error that the server reports inside its stream counts as a success "
                        "there");
    if (lacks.without_usage > 0)
        run.lacks(of_output_counts(),
                  printed("of %zu of %zu completed requests it has no usage_completion_tokens, and "
                          "the tokens that AIPerf counts with a tokenizer of its own are others",
                          lacks.without_usage, lacks.completed));
    if (lacks.without_gaps > 0) {
        run.lacks(of_gaps(), printed("%zu of %zu completed requests have no inter_chunk_latency",
                                     lacks.without_gaps, lacks.completed));
        run.lacks(of_event_times(), "without inter_chunk_latency it is unknown how many tokens "
                                    "came inside the steady window");
    }
    mark_late_reads(run);
    run.clock = span_of(run.requests);
    run.notes.push_back("its times are of the wall clock, which may be set while it runs");
    return run;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
