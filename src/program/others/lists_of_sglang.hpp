// result files of SGLang's bench_serving
#pragma once

#include "core/base/json.hpp"
#include "core/base/vector.hpp"
#include "program/others/imported_run.hpp"
#include "program/others/lists_of_requests.hpp"

#include <algorithm>  // max
#include <cstdlib>  // abs
#include <string>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

inline bool is_sglang_file(const picojson::value& v) {
    return member(v, "total_output_tokens_retokenized") && member(v, "backend");
}

/// With its own API, each gap is split into equal parts, one for each token.
inline bool reports_parts_of_gaps(const std::string& backend) {
    return backend == "sglang" || backend == "sglang-native";
}
inline bool is_known_to_stream(const std::string& backend) {
    return is_one_of(backend, {"sglang", "sglang-native", "sglang-oai", "sglang-oai-chat", "vllm",
                               "vllm-chat", "lmdeploy", "lmdeploy-chat"});
}

inline void set_sglang_definitions(imported_run& run, const std::string& backend,
                                   const odd_answers& odd) {
    run.lacks(of_ends(), "SGLang's bench lists no end of a request, so e2e is not known");
    run.lacks(of_windows(),
              "it has no request's send time, so it is unknown which "
              "tokens came inside the steady window");
    if (run.arrivals.max_in_flight > 0)
        run.lacks(of_planned_sends(),
                  "requests waited for one of max_concurrency places, and the "
                  "file does not say how long");
    if (!is_known_to_stream(backend))
        run.lacks(of_tokens_in_time(), "what the backend takes for a token is not known here");
    if (reports_parts_of_gaps(backend))
        run.lacks(of_gaps(),
                  "over its own API SGLang's bench divides each gap by the tokens that "
                  "came after it; itl is the whole gap");
    if (odd.too_many())
        run.lacks(of_output_counts(),
                  "SGLang's bench takes the length that it asked for where a server reports none, "
                  "and " +
                      odd.words("have another number of tokens than of content chunks"));
    run.notes.push_back(
        "an answer that breaks off, or an error inside of the stream, counts as a "
        "success there");
    run.notes.push_back(
        "ttft counts from before the connection was made, a new one for each "
        "request; when a request was to be sent is not in the file");
}

inline void add_sglang_requests(imported_run& run, const picojson::value& v,
                                const std::string& backend) {
    const request_lists lists(v, run.file);
    // The tool counts an answer without text as a success with a ttft of 0.
    const odd_answers odd = add_listed(
        run, v, lists, empty_answer::succeeded,
        [](record& r, std::size_t) {
            r.scheduled_ns = r.dispatched_ns = r.connected_ns = r.sent_ns = 1;
        },
        [&](imported_request& t, const listed_request& q) {
            record& r = t.what;
            add_gaps(run, t, q.gaps_s);
            if (reports_parts_of_gaps(backend)) {
                // One part for each token after the first event; which came together is lost.
                r.first_event_tokens =
                    std::max(1, r.output_tokens - static_cast<int>(q.gaps_s.size()));
                r.reads = r.first_read_events = 0;
                return false;
            }
            // The file does not say whether this is the server's count or the length asked for. If
            // it agrees with the chunks these are counted, else no metric is built on it.
            const bool is_odd = std::abs(r.output_tokens - r.events) > std::max(1, r.events / 20);
            r.output_tokens = r.events;
            r.token_source = token_origin::events;
            return is_odd;
        });
    mark_late_reads(run);
    set_sglang_definitions(run, backend, odd);
}

inline imported_run read_sglang_run(const picojson::value& v, const std::string& file) {
    imported_run run{.file = file, .tool = "SGLang bench_serving", .knows_sends = false};
    const std::string backend = setting_text(v, "backend");
    if (const picojson::value* info = member(v, "server_info")) {
        run.model = setting_text(*info, "model_path");
        if (member(*info, "version"))
            run.version = "(server " + setting_text(*info, "version") + ")";
        run.add_more(*info, "server_info.");
    }
    run.add_settings(v, {"backend", "dataset_name", "request_rate", "max_concurrency",
                         "sharegpt_output_len", "random_input_len", "random_output_len",
                         "random_range_ratio"});
    run.add_more(v);
    set_listed_arrivals(run, v);
    if (!member(v, "ttfts"))
        run.lacks_all(
            "it holds aggregates alone, and a verdict needs every request: "
            "--output-details writes them");
    else add_sglang_requests(run, v, backend);
    return run;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
