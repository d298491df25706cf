// result files of SGLang's bench_serving
// The files of sglang/benchmark/serving.py in SGLang 0.5.23: a line for each run.
#pragma once

#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "program/others/imported_run.hpp"
#include "program/others/lists_of_requests.hpp"

#include <algorithm>  // max
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <cstdlib>  // abs
#include <string>
#include <utility>  // move
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

inline bool is_sglang_file(const picojson::value& v) {
    return member(v, "total_output_tokens_retokenized") && member(v, "backend");
}

/// With its own API, each gap is split into equal parts, one for each token.
inline bool reports_parts_of_gaps(const std::string& backend) {
    return backend == "sglang" || backend == "sglang-native";
}
inline bool is_known_to_stream(const std::string& backend) {
    for (const char* known : {"sglang", "sglang-native", "sglang-oai", "sglang-oai-chat", "vllm",
                              "vllm-chat", "lmdeploy", "lmdeploy-chat"})
        if (backend == known) return true;
    return false;
}

inline void set_sglang_definitions(imported_run& run, const std::string& backend,
                                   const odd_answers& odd) {
    run.lacks(of_ends(), "SGLang's bench lists no end of a request, so e2e is not known");
    run.lacks(of_windows(), "it has no request's send time, so it is unknown which "
                            "tokens came inside the steady window");
    if (run.arrivals.max_in_flight > 0)
        run.lacks(of_planned_sends(), "requests waited for one of max_concurrency places, and the "
                                      "file does not say how long");
    if (!is_known_to_stream(backend))
        run.lacks(of_tokens_in_time(), "what the backend takes for a token is not known here");
    if (reports_parts_of_gaps(backend))
        run.lacks(of_gaps(), "over its own API SGLang's bench divides each gap by the tokens that "
                             "came after it; itl is the whole gap");
    if (odd.too_many())
        run.lacks(of_output_counts(),
                  "SGLang's bench takes the length that it asked for where a server reports none, "
                  "and " + odd.words("have another number of tokens than of content chunks"));
    run.notes.push_back("an answer that breaks off, or an error inside of the stream, counts as a "
                        "success there");
    run.notes.push_back("ttft counts from before the connection was made, a new one for each "
                        "request; when a request was to be sent is not in the file");
}

inline void add_sglang_requests(imported_run& run, const picojson::value& v,
                                const std::string& backend) {
    const request_lists lists(v, run.file);
    for (const char* name : {"input_lens", "output_lens", "itls", "errors"})
        lists.require_list(name);
    const bool texts = lists.has("generated_texts"), cached = lists.has("cached_tokens");
    const bool in_parts = reports_parts_of_gaps(backend);
    reported_sums sums;
    odd_answers odd;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        imported_request t;
        record& r = t.what;
        r.scheduled_ns = r.dispatched_ns = r.connected_ns = r.sent_ns = 1;
        r.prompt_tokens = lists.tokens("input_lens", i);
        const double ttft_s = lists.seconds("ttfts", i);
        std::vector<std::uint32_t> us;
        double last_s = ttft_s;
        for (const double gap : lists.gaps(i)) {
            us.push_back(us_of(gap));
            last_s += gap;
        }
        r.end_ns = 1 + clock_ns(last_s);
        const std::string error = lists.text("errors", i);
        // The tool counts an answer without text as a success with a ttft of 0.
        if (!error.empty() || ttft_s == 0) {
            sums.failed += !error.empty();
            sums.completed += error.empty();
            if (error.empty()) {
                sums.output_tokens += lists.tokens("output_lens", i);
                sums.input_tokens += r.prompt_tokens;
            }
            mark_failed(r, error.empty() ? request_status::empty : request_status::server,
                        error.empty() ? "no text came" : error);
            run.requests.push_back(std::move(t));
            continue;
        }
        r.status = request_status::ok;
        r.output_tokens = lists.tokens("output_lens", i);
        sums.output_tokens += r.output_tokens;
        sums.input_tokens += r.prompt_tokens;
        ++sums.completed;
        ++odd.completed;
        add_gaps(run, t, us);
        r.token_source = token_origin::usage;
        r.first_event_tokens = 1;
        if (in_parts) {
            // One part for each token after the first event; which tokens came together is lost.
            r.first_event_tokens = std::max(1, r.output_tokens - static_cast<int>(us.size()));
            r.reads = r.first_read_events = 0;
        } else {
            // The file does not say whether this is the server's count or the length asked for. If
            // it agrees with the chunks these are counted, else no metric is built on it.
            odd.odd += std::abs(r.output_tokens - r.events) > std::max(1, r.events / 20);
            r.output_tokens = r.events;
            r.token_source = token_origin::events;
        }
        if (texts) r.text_bytes = static_cast<int>(lists.text("generated_texts", i).size());
        if (cached) r.cached_tokens = lists.tokens("cached_tokens", i);
        r.choices = 1;
        r.first_token_ns = 1 + clock_ns(ttft_s);
        r.last_token_ns = r.end_ns;
        run.requests.push_back(std::move(t));
    }
    sums.failed = member(v, "failed") ? sums.failed : 0;
    check_sums(run, v, sums);
    set_sglang_definitions(run, backend, odd);
}

inline imported_run read_sglang_run(const picojson::value& v, const std::string& file) {
    imported_run run;
    run.file = file;
    run.tool = "SGLang bench_serving";
    run.knows_sends = false;
    const std::string backend = setting_text(v, "backend");
    if (const picojson::value* info = member(v, "server_info"); info && member(*info, "version"))
        run.version = "(server " + setting_text(*info, "version") + ")";
    if (const picojson::value* info = member(v, "server_info"))
        run.model = setting_text(*info, "model_path");
    for (const char* name : {"backend", "dataset_name", "request_rate", "max_concurrency",
                             "sharegpt_output_len", "random_input_len", "random_output_len",
                             "random_range_ratio"})
        run.settings.push_back({name, setting_text(v, name)});
    const double rate = number_or_inf(v, file, "request_rate");
    run.knows_arrivals = rate > 0;
    if (run.knows_arrivals) set_arrivals(run, rate, 1, asked_from(file, v, "max_concurrency"));
    if (!member(v, "ttfts"))
        run.lacks_all("it holds aggregates alone, and a verdict needs every request: "
                      "--output-details writes them");
    else
        add_sglang_requests(run, v, backend);
    return run;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
