// result files of guidellm
// benchmarks.json of guidellm 0.8.1 (version 2 of the format). Its times are of the wall clock; its
// "TPOT" includes ttft, and its ITL is the tpot of a request.
#pragma once

#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "program/others/imported_run.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <string>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

inline bool is_guidellm_file(const picojson::value& v) {
    return member(v, "benchmarks") && (value_at(v, "metadata.guidellm_version") ||
                                       value_at(v, "metadata.version") || member(v, "args"));
}

/// Sets the planned arrivals. Users and batches have no plan: their requests are due as soon as the
/// limit on requests in flight allows.
inline void set_guidellm_arrivals(imported_run& run, const picojson::value& strategy) {
    const std::string kind = string_member(strategy, "type_");
    const checked_object of(strategy, run.file, "");
    const double rate = of.number("rate", 0, max_asked);
    const long long most = asked_from(of, "max_concurrency");
    const long long streams = asked_from(of, "streams");
    arrival_data& a = run.arrivals;
    if (kind == "constant" || kind == "poisson") {
        a.kind = kind == "constant" ? arrival_kind::constant : arrival_kind::poisson;
        a.rate = rate;
        a.max_in_flight = most;
        run.knows_arrivals = rate > 0;
        run.has_late_sends = true;
    } else if (kind == "concurrent" || kind == "synchronous") {
        a.kind = arrival_kind::closed_loop;
        a.users = std::max(streams, 1ll);
    } else if (kind == "throughput") {
        a.kind = most > 0 ? arrival_kind::closed_loop : arrival_kind::all_at_once;
        a.users = std::max(most, 1ll);
    } else {
        run.knows_arrivals = false;
        run.has_late_sends = kind == "trace";
    }
}

/// Times of the wall clock, 0 where the file has none.
inline void set_guidellm_times(imported_run& run, const checked_object& timings, record& r) {
    const auto time = [&](const char* of) {
        return clock_ns(timings.number(of, 1, latest_clock_s, 0, "a time in seconds since 1970"));
    };
    r.sent_ns = r.dispatched_ns = r.connected_ns = time("request_start");
    const long long planned = time("targeted_start"), end = time("request_end");
    if (r.sent_ns == 0) r.sent_ns = r.dispatched_ns = r.connected_ns = time("resolve_start");
    r.scheduled_ns = run.has_late_sends && planned != 0 ? std::min(planned, r.sent_ns) : r.sent_ns;
    // If the plan does not limit requests in flight, the client causes all delay of a send.
    if (run.has_late_sends && run.arrivals.max_in_flight == 0)
        r.late_ns = r.sent_ns - std::max(r.scheduled_ns, time("predecessor_completed"));
    r.late_ns = std::max(r.late_ns, 0ll);
    r.first_token_ns = time("first_token_iteration");
    r.last_token_ns = time("last_token_iteration");
    r.end_ns = end != 0 ? end : time("resolve_end");
}
/// One request of the three lists.
inline void add_guidellm_request(imported_run& run, const picojson::value& v, const char* list,
                                 std::size_t i) {
    const std::string path = element_name(std::string("benchmarks[0].requests.") + list, i);
    const picojson::value* stamps = value_at(v, "info.timings");
    if (!stamps)
        refuse({run.file, ": ", path,
                ".info.timings is missing, it is an object with the times of a request"});
    const checked_object g(v, run.file, path), timings(*stamps, run.file, path);
    imported_request t;
    record& r = t.what;
    set_guidellm_times(run, timings, r);
    if (r.sent_ns == 0)
        refuse({run.file, ": ", path, ".request_start is missing, a time in seconds since 1970"});
    const auto require_order = [&](long long before, long long after, const char* first,
                                   const char* second) {
        if (after < before)
            refuse({run.file, ": ", path, ".", second, " lies before ", first,
                    ", times of a request are in order"});
    };
    require_order(r.sent_ns, r.end_ns, "request_start", "request_end");
    r.prompt_tokens = g.tokens("prompt_tokens", 0);
    r.cached_tokens = g.tokens("cached_tokens", -1);
    const std::string which = list;
    if (which == "successful" && r.first_token_ns != 0) {
        require_order(r.sent_ns, r.first_token_ns, "request_start", "first_token_iteration");
        require_order(r.first_token_ns, r.last_token_ns, "first_token_iteration",
                      "last_token_iteration");
        require_order(r.last_token_ns, r.end_ns, "last_token_iteration", "request_end");
        const picojson::value* usage = value_at(v, "output_metrics.total_tokens");
        r.status = request_status::ok;
        r.output_tokens = g.tokens("output_tokens", 0);
        r.token_source = usage && usage->is<double>() ? token_origin::usage : token_origin::events;
        r.first_event_tokens = 1;
        add_even_gaps(run, t, std::max(1, timings.tokens("token_iterations", 0)));
        r.text_bytes =
            static_cast<int>(g.text("output").size() + g.text("reasoning_output").size());
        r.choices = 1;
    } else if (which == "incomplete") {
        mark_failed(r, request_status::cancelled, "cut off as the run ended");
        ++run.cut_off;
    } else {
        mark_failed(r, which == "errored" ? request_status::server : request_status::empty,
                    which == "errored" ? g.at("info").text("error") : "no content came");
    }
    run.requests.push_back(std::move(t));
}

/// Sets the window without warm-up and cool-down, which depend on a request's planned time.
inline void set_guidellm_window(imported_run& run, const picojson::value& benchmark) {
    const auto is_set = [&](const char* phase) {
        const picojson::value* v = value_at(benchmark, std::string("config.") + phase);
        if (!v) return false;
        const checked_object of(*v, run.file, "");
        return of.number("value", 0, max_asked) > 0 || of.number("percent", 0, max_asked) > 0;
    };
    const auto time = [&](const char* phase, const char* name) {
        if (!is_set(phase)) return 0ll;
        const picojson::value* v = value_at(benchmark, std::string("scheduler_metrics.") + name);
        const std::string full = std::string("benchmarks[0].scheduler_metrics.") + name;
        if (v == nullptr)
            refuse({run.file, ": ", full, " is missing, it says which requests are its ", phase});
        return clock_ns(number_from(run.file, *v, 1, latest_clock_s,
                                    "a time in seconds since 1970", [&] { return full; }));
    };
    run.measured_from_ns = time("warmup", "measure_start_time");
    run.measured_to_ns = time("cooldown", "measure_end_time");
    for (imported_request& t : run.requests) {
        const long long at = t.what.scheduled_ns;
        const bool inside = (run.measured_from_ns == 0 || at >= run.measured_from_ns) &&
                            (run.measured_to_ns == 0 || at <= run.measured_to_ns);
        t.what.phase = inside ? run_phase::measure : run_phase::warmup;
    }
}
inline void check_guidellm_counts(imported_run& run, const picojson::value& benchmark,
                                  const picojson::value& requests) {
    const picojson::value* made = value_at(benchmark, "scheduler_metrics.requests_made");
    for (const char* list : {"successful", "errored", "incomplete"}) {
        const double reported =
            made ? checked_object(*made, run.file, "").number(list, 0, max_count) : not_a_number;
        const auto found = static_cast<double>(array_member(requests, list).size());
        if (std::isnan(reported) || reported == found) continue;
        return run.lacks_all(printed("%.0f requests were %s and it lists %.0f of them: a sample, "
                                     "or some were left out; a verdict needs all of them "
                                     "(sample_size null)", reported, list, found));
    }
}
inline void set_guidellm_settings(imported_run& run, const picojson::value& benchmark) {
    const auto part = [&](const char* of) {
        const picojson::value* v = value_at(benchmark, of);
        return v ? *v : picojson::value();
    };
    const picojson::value strategy = part("config.strategy"), backend = part("config.backend");
    run.settings.push_back({"strategy", setting_text(strategy, "type_")});
    run.add_settings(strategy, {"rate", "streams", "max_concurrency", "time_scale"});
    run.settings.push_back({"backend", setting_text(backend, "kind")});
    run.add_settings(backend, {"model", "request_format", "stream", "max_tokens"});
    if (const picojson::value* extras = member(backend, "extras")) run.add_body(*extras);
    run.model = setting_text(backend, "model");
}
inline imported_run read_guidellm_run(const picojson::value& v, const std::string& file) {
    imported_run run{.file = file, .tool = "guidellm"};
    if (const picojson::value* m = member(v, "metadata"))
        run.version = setting_text(*m, "guidellm_version");
    const picojson::value* format = value_at(v, "metadata.version");
    if (!format || number_in(*format) != 2)
        refuse({file, ": metadata.version is ", format ? shown_value(*format) : "missing",
                ", 2 is allowed (guidellm 0.8): run a newer guidellm"});
    const picojson::array& all = array_member(v, "benchmarks");
    if (all.size() != 1)
        refuse({printed("%s: benchmarks holds %zu loads, one is allowed: a file is one repeat of "
                        "one load", file.c_str(), all.size())});
    const picojson::value& b = all[0];
    const picojson::value* requests = member(b, "requests");
    if (!requests || !requests->is<picojson::object>())
        refuse({file, ": benchmarks[0].requests is missing, an object with the lists successful, "
                      "errored and incomplete"});
    if (const picojson::value* c = member(b, "config")) run.identity = setting_text(*c, "id_");
    set_guidellm_settings(run, b);
    if (const picojson::value* s = value_at(b, "config.strategy")) set_guidellm_arrivals(run, *s);
    for (const char* list : {"successful", "errored", "incomplete"}) {
        const picojson::array& items = array_member(*requests, list);
        for (std::size_t i = 0; i < items.size(); ++i) add_guidellm_request(run, items[i], list, i);
    }
    set_guidellm_window(run, b);
    check_guidellm_counts(run, b, *requests);
    run.lacks(of_gaps(), "guidellm keeps no gaps: its ITL is one mean of each request, which is "
                         "our tpot");
    run.lacks(of_event_times(), "guidellm keeps no time of each token, so it is unknown how many "
                                "came inside the steady window");
    run.clock = span_of(run.requests);
    run.notes.push_back("its times are of the wall clock, which may be set while it runs");
    return run;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
