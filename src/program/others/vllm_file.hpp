// result files of vLLM bench serve
// The files of vllm/benchmarks/serve.py and lib/endpoint_request_func.py in vLLM 0.32.0 and 0.33.0.
#pragma once

#include "api/metrics.hpp"
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
#include <string>
#include <utility>  // move, pair
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

inline bool is_vllm_file(const picojson::value& v) {
    return member(v, "num_prompts") && member(v, "model_id") && member(v, "backend");
}

/// The API decides what vLLM's bench counts as the first token.
enum class vllm_stream : unsigned char { completions, chat, unknown };
inline vllm_stream vllm_stream_of(const std::string& backend) {
    if (backend == "openai" || backend == "vllm") return vllm_stream::completions;
    return backend == "openai-chat" ? vllm_stream::chat : vllm_stream::unknown;
}

/// The chunks of a request that are tokens. Before vLLM 0.33 a chat's first chunk has only the
/// role; a chunk right after the last token may have only the reason for the end.
struct vllm_chunks {
    double first_s = 0;  // after its start
    std::vector<double> gaps_s{};
    bool is_odd = false;  // the chunks that are no tokens are unknown
};
inline vllm_chunks tokens_among(vllm_stream s, double ttft_s, std::vector<double> gaps_s,
                                int tokens) {
    constexpr double together_s = same_read_us * 1e-6;
    vllm_chunks c;
    c.first_s = ttft_s;
    if (s == vllm_stream::chat && !gaps_s.empty()) {
        c.is_odd = gaps_s.front() >= together_s;
        c.first_s += gaps_s.front();
        gaps_s.erase(gaps_s.begin());
    }
    const auto max_gaps = static_cast<std::size_t>(std::max(tokens - 1, 0));
    if (gaps_s.size() == max_gaps + 1 && gaps_s.back() < together_s) gaps_s.pop_back();
    c.is_odd = c.is_odd || gaps_s.size() > max_gaps;
    c.gaps_s = std::move(gaps_s);
    return c;
}

/// Whether a chat's first chunk is its first token, as since vLLM 0.33; no file has the version.
/// Then each answer has one gap fewer than tokens, and first gaps are as long as others; else the
/// first gap is the prefill, or nothing.
inline bool begins_with_text(const request_lists& lists) {
    odd_answers odd;
    double first_s = 0, later_s = 0, later = 0;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        const int tokens = lists.tokens("output_lens", i);
        if (!lists.text("errors", i).empty() || tokens < 3) continue;
        const vllm_chunks c = tokens_among(vllm_stream::completions, 0, lists.gaps(i), tokens);
        ++odd.completed;
        odd.odd += c.is_odd || c.gaps_s.size() + 1 != static_cast<std::size_t>(tokens);
        for (std::size_t k = 0; k < c.gaps_s.size(); ++k)
            (k == 0 ? first_s : later_s) += c.gaps_s[k];
        later += static_cast<double>(tokens - 2);
    }
    const double first_of_later = first_s * later;
    const double later_of_first = later_s * static_cast<double>(odd.completed);
    return odd.completed > 0 && !odd.too_many() && first_of_later <= 2 * later_of_first &&
           later_of_first <= 2 * first_of_later;
}

inline void set_vllm_arrivals(imported_run& run, const picojson::value& v) {
    const double rate = number_or_inf(v, run.file, "request_rate");
    const double burstiness = number_or_inf(v, run.file, "burstiness");
    run.knows_arrivals = rate > 0;
    if (run.knows_arrivals)
        set_arrivals(run, rate, std::isnan(burstiness) ? 1 : burstiness,
                     asked_from(run.file, v, "max_concurrency"));
    if (member(v, "ramp_up_strategy")) {
        run.arrivals.kind = arrival_kind::ramp;
        run.arrivals.rate = told_number(run.file, v, "ramp_up_start_rps");
        run.arrivals.rate_to = told_number(run.file, v, "ramp_up_end_rps");
    }
}

/// Sets the metrics that these files do not have, or define differently.
inline void set_vllm_definitions(imported_run& run, vllm_stream s, const odd_answers& odd,
                                 bool has_queue_times) {
    run.lacks(of_ends(), "vLLM's bench ends a request at its last chunk with choices; e2e ends at "
                         "[DONE], which the file does not report");
    if (!run.knows_sends)
        run.lacks(of_windows(), "it has no start_times, so it is unknown which tokens came inside "
                                "the steady window");
    if (run.arrivals.max_in_flight > 0 && !has_queue_times)
        run.lacks(of_planned_sends(), "requests waited for one of max_concurrency places, and the "
                                      "file has no queue_times: when each was due is not known");
    if (s == vllm_stream::unknown)
        run.lacks(of_tokens_in_time(), "what the backend takes for a token is not known here; "
                                       "openai, vllm and openai-chat are allowed");
    else if (odd.too_many() && s == vllm_stream::chat)
        run.lacks(of_tokens_in_time(),
                  "vLLM's bench before 0.33 takes the chunk with the role for the first token, "
                  "and " +
                      odd.words("do not let it be separated from the tokens: --backend openai "
                                "(with /v1/completions) has none"));
    else if (odd.too_many())
        run.lacks(of_tokens_in_time(), odd.words("have more chunks than tokens, and which of them "
                                                 "are none is unknown"));
}

inline void add_vllm_requests(imported_run& run, const picojson::value& v, vllm_stream stream) {
    const request_lists lists(v, run.file);
    for (const char* name : {"input_lens", "output_lens", "itls", "errors"})
        lists.require_list(name);
    run.knows_sends = lists.has("start_times");
    const bool queues = lists.has("queue_times"), texts = lists.has("generated_texts");
    if (stream == vllm_stream::chat && begins_with_text(lists)) {
        stream = vllm_stream::completions;
        run.notes.push_back("its chats are read as vLLM 0.33 writes them: the first chunk with "
                            "text is the first token");
    }
    const bool is_closed_loop = run.arrivals.kind == arrival_kind::closed_loop;
    reported_sums sums;
    odd_answers odd;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        imported_request t;
        record& r = t.what;
        const double start_s = run.knows_sends ? lists.clock("start_times", i) : 0;
        const double waited_s = queues ? lists.seconds("queue_times", i) : 0;
        r.sent_ns = r.dispatched_ns = r.connected_ns = clock_ns(start_s) + 1;
        // A closed loop has no waiting time: a request is due when its user may send.
        r.scheduled_ns = is_closed_loop ? r.sent_ns : r.sent_ns - clock_ns(waited_s);
        r.prompt_tokens = lists.tokens("input_lens", i);
        const double ttft_s = lists.seconds("ttfts", i);
        std::vector<double> gaps_s = lists.gaps(i);
        const std::string error = lists.text("errors", i);
        if (!error.empty() || (ttft_s == 0 && gaps_s.empty())) {
            mark_failed(r, error.empty() ? request_status::empty : request_status::server, error);
            double lasted_s = ttft_s;
            for (const double gap : gaps_s) lasted_s += gap;
            r.end_ns = r.sent_ns + clock_ns(lasted_s);
            ++sums.failed;
            run.requests.push_back(std::move(t));
            continue;
        }
        r.status = request_status::ok;
        r.output_tokens = lists.tokens("output_lens", i);
        r.token_source = token_origin::usage;
        r.first_event_tokens = 1;
        r.choices = 1;
        if (texts) r.text_bytes = static_cast<int>(lists.text("generated_texts", i).size());
        const vllm_chunks c = tokens_among(stream, ttft_s, std::move(gaps_s), r.output_tokens);
        std::vector<std::uint32_t> us;
        double last_s = c.first_s;
        for (const double gap : c.gaps_s) {
            us.push_back(us_of(gap));
            last_s += gap;
        }
        add_gaps(run, t, us);
        r.first_token_ns = r.sent_ns + clock_ns(c.first_s);
        r.last_token_ns = r.end_ns = r.sent_ns + clock_ns(last_s);
        ++sums.completed;
        ++odd.completed;
        odd.odd += c.is_odd;
        sums.output_tokens += r.output_tokens;
        sums.input_tokens += r.prompt_tokens;
        run.requests.push_back(std::move(t));
    }
    check_sums(run, v, sums);
    set_vllm_definitions(run, stream, odd, queues);
}

/// Reads "20261122-204838", the time of writing, as seconds of a calendar with months of 31 days:
/// only the order of runs matters.
inline imported_span vllm_calendar(const picojson::value& v) {
    const std::string date = string_member(v, "date");
    const double lasted = number_member(v, "duration");
    if (date.size() != 15 || date[8] != '-') return {};
    double s = 0;
    for (const auto& [at, most] : {std::pair{4, 12}, std::pair{6, 31}, std::pair{9, 24},
                                   std::pair{11, 60}, std::pair{13, 60}}) {
        const std::string two = date.substr(static_cast<std::size_t>(at), 2);
        const auto n = parsed_number<int>(two[0] == '0' ? two.substr(1) : two);
        if (!n) return {};
        s = s * most + *n;
    }
    const auto year = parsed_number<int>(date.substr(0, 4));
    if (!year) return {};
    s += *year * 12.0 * 31 * 86400;
    return {s - lasted, s};
}

inline imported_run read_vllm_run(const picojson::value& v, const std::string& file) {
    imported_run run;
    run.file = file;
    run.tool = "vLLM bench serve";
    run.model = setting_text(v, "model_id");
    for (const char* name : {"backend", "model_id", "tokenizer_id", "num_prompts", "request_rate",
                             "burstiness", "max_concurrency", "ramp_up_strategy",
                             "ramp_up_start_rps", "ramp_up_end_rps"})
        run.settings.push_back({name, setting_text(v, name)});
    set_vllm_arrivals(run, v);
    if (member(v, "aggregated_repetitions"))  // of perf-eval; has lists of the first one
        run.lacks_all("it is made from several runs, and is none: judge the files that its "
                      "individual_result_files names");
    else if (!member(v, "ttfts"))
        run.lacks_all("it holds aggregates alone, and a verdict needs every request: "
                      "--save-result --save-detailed writes them");
    else
        add_vllm_requests(run, v, vllm_stream_of(setting_text(v, "backend")));
    run.notes.push_back("an error that the server reports inside its stream counts as a success "
                        "there");
    run.calendar = vllm_calendar(v);
    if (run.knows_sends) run.clock = span_of(run.requests);
    return run;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
