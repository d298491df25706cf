// result files of vLLM bench serve, and lists as SGLang's bench_serving has them
// Both have a list for each value of requests, by a common origin: vllm/benchmarks/serve.py and
// lib/endpoint_request_func.py in vLLM 0.32.0 and 0.33.0, vLLM's client in Rust (rust/src/bench),
// sglang/benchmark/serving.py in SGLang 0.5.23, a line for each run.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/files/dates.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/server.hpp"
#include "program/others/imported_run.hpp"

#include <algorithm>  // max
#include <cmath>  // isfinite, isinf, isnan
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <string>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// What both tools have of a request.
struct listed_request {
    int prompt_tokens = 0;
    double ttft_s = 0;
    vector<double> gaps_s{};
    std::string error{};
    /// Seconds after the send.
    double last_s() const {
        double at = ttft_s;
        for (const double gap : gaps_s) at += gap;
        return at;
    }
};
inline void add_gaps(imported_run& run, imported_request& r, const vector<double>& seconds) {
    vector<std::uint32_t> us;
    for (const double gap : seconds) us.push_back(us_of(gap));
    add_gaps(run, r, std::move(us));
}
/// The lists of one file, all as long as `ttfts`.
class request_lists {
public:
    request_lists(const picojson::value& of, const std::string& file) : of_(of), file_(file) {
        size_ = array_member(of, "ttfts").size();
        for (const char* name : {"input_lens", "output_lens", "itls", "errors"})
            if (!has(name))
                refuse({file_, ": ", name,
                        " is missing, a list with one value for each request beside ttfts"});
    }
    std::size_t size() const { return size_; }
    /// Whether the file has an optional list. Throws if its length differs from the others.
    bool has(const char* name) const {
        const picojson::value* v = member(of_, name);
        if (!v || v->is<picojson::null>()) return false;
        if (!v->is<picojson::array>())
            refuse({file_, ": ", name, " is ", shown_value(*v), ", a list is allowed"});
        const std::size_t n = v->get<picojson::array>().size();
        if (n != size_)
            refuse({printed("%s: %s holds %zu values and ttfts %zu, one for each request is "
                            "allowed", file_.c_str(), name, n, size_)});
        return true;
    }
    const picojson::value& at(const char* name, std::size_t i) const {
        return array_member(of_, name)[i];
    }
    double seconds(const char* name, std::size_t i) const {
        return seconds_from(file_, at(name, i), [&] { return element_name(name, i); });
    }
    /// Returns a time of a clock with an unknown start.
    double clock(const char* name, std::size_t i) const {
        return number_from(file_, at(name, i), 0, latest_clock_s, "a time in seconds",
                           [&] { return element_name(name, i); });
    }
    int tokens(const char* name, std::size_t i) const {
        return tokens_from(file_, at(name, i), [&] { return element_name(name, i); });
    }
    std::string text(const char* name, std::size_t i) const {
        const picojson::value& v = at(name, i);
        return v.is<std::string>() ? v.get<std::string>() : std::string();
    }
    /// Returns "" for none. An error may be an object with a message.
    std::string error(std::size_t i) const {
        const picojson::value& v = at("errors", i);
        if (v.is<picojson::object>())
            return has_text(v, "message") ? string_member(v, "message") : v.serialize();
        if (!v.is<std::string>() && !v.is<picojson::null>())
            refuse_value(file_, element_name("errors", i), v,
                         "a text, or an object with a message, is allowed");
        return text("errors", i);
    }
    listed_request request(std::size_t i) const {
        listed_request q;
        q.prompt_tokens = tokens("input_lens", i);
        q.ttft_s = seconds("ttfts", i);
        q.gaps_s = gaps(i);
        q.error = error(i);
        return q;
    }
    /// Returns the gaps of a request in seconds.
    vector<double> gaps(std::size_t i) const {
        const picojson::value& v = at("itls", i);
        if (!v.is<picojson::array>())
            refuse_value(file_, element_name("itls", i), v, "a list of seconds is allowed");
        vector<double> out;
        double sum = 0;
        for (const picojson::value& x : v.get<picojson::array>()) {
            out.push_back(seconds_from(file_, x, [&] {
                return element_name(element_name("itls", i), out.size());
            }));
            sum += out.back();
        }
        if (sum > longest_time_s)
            refuse_value(file_, element_name("itls", i), v,
                         printed("whose sum is over %g seconds", longest_time_s));
        return out;
    }

private:
    const picojson::value& of_;
    const std::string& file_;
    std::size_t size_ = 0;
};

/// Sets the planned rate, and the limit of requests in flight. A rate of "inf" sends all requests
/// at once.
inline void set_arrivals(imported_run& run, double rate, double burstiness, long long most) {
    arrival_data& a = run.arrivals;
    if (!std::isfinite(rate)) {
        a.kind = most > 0 ? arrival_kind::closed_loop : arrival_kind::all_at_once;
        a.users = std::max(most, 1ll);
        return;
    }
    a.rate = rate;
    a.max_in_flight = most;
    a.burstiness = burstiness;
    a.kind = burstiness == 1 ? arrival_kind::poisson
             : std::isinf(burstiness) ? arrival_kind::constant : arrival_kind::gamma;
}
/// Returns a member that is a number or "inf"; NaN if it is missing.
inline double number_or_inf(const checked_object& of, const char* name) {
    const std::string word = of.text(name);
    return word == "inf" || word == "Infinity" ? infinity : of.number(name, 0, max_asked);
}

/// Sums of the lists, to be compared with those that the file has.
struct reported_sums {
    long long completed = 0, failed = 0, output_tokens = 0, input_tokens = 0;
};
/// Requests that a user removed are missing in the lists but not in the counts.
inline void check_sums(imported_run& run, const checked_object& of, const reported_sums& found) {
    const auto differs = [&](const char* name, long long n) {
        const double reported = of.number(name, 0, max_count);
        if (std::isnan(reported) || reported == static_cast<double>(n)) return false;
        run.lacks_all(printed("it says %s %.0f, its lists of requests add up to %lld: requests "
                              "were left out, or changed", name, reported, n));
        return true;
    };
    if (differs("completed", found.completed)) return;
    if (differs("failed", found.failed)) return;
    if (differs("total_output_tokens", found.output_tokens)) return;
    differs("total_input_tokens", found.input_tokens);
}

/// Requests whose numbers differ from our definitions and cannot be corrected from the file.
struct odd_answers {
    std::size_t completed = 0, odd = 0;
    bool too_many() const { return is_too_much(odd, completed); }
    std::string words(const char* what) const {
        return printed("%zu of %zu completed requests ", odd, completed) + what;
    }
};

inline bool is_vllm_file(const picojson::value& v) {
    return member(v, "num_prompts") && member(v, "model_id") && member(v, "backend");
}

/// What vLLM's bench takes for the first token: its API decides, and of a chat also its version,
/// which no file has.
enum class vllm_stream : unsigned char { text, role, untold_chat, unknown };
inline vllm_stream vllm_stream_of(const std::string& backend) {
    if (backend == "openai" || backend == "vllm") return vllm_stream::text;
    return backend == "openai-chat" ? vllm_stream::untold_chat : vllm_stream::unknown;
}

inline constexpr const char first_chunk_setting[] = "the first chunk of a chat";

inline constexpr double together_s = same_read_us * 1e-6;
/// Drops the chunk behind the last token that has only the reason for the end.
inline void drop_reason_chunk(vector<double>& gaps_s, std::size_t most) {
    if (gaps_s.size() == most + 1 && gaps_s.back() < together_s) gaps_s.pop_back();
}
/// Drops the chunks that are no tokens, and returns whether those are unknown.
inline bool drop_chunks(listed_request& q, vllm_stream s, int tokens) {
    bool is_odd = false;
    const bool has_role = s == vllm_stream::role || s == vllm_stream::untold_chat;
    if (has_role && !q.gaps_s.empty()) {
        is_odd = q.gaps_s.front() >= together_s;
        q.ttft_s += q.gaps_s.front();
        q.gaps_s.erase(q.gaps_s.begin());
    }
    const auto max_gaps = static_cast<std::size_t>(std::max(tokens - 1, 0));
    drop_reason_chunk(q.gaps_s, max_gaps);
    return is_odd || q.gaps_s.size() > max_gaps;
}
/// Counts the answers whose number of gaps tells what their first chunk is. Before vLLM 0.33 it has
/// the role, so there are as many gaps as tokens; since then it has text, and there is one gap
/// fewer, or two if the token that ends the answer has no text. Tokens that came in one chunk, as
/// drafts do, tell nothing.
struct first_chunks {
    std::size_t text = 0, role = 0, untold = 0;
    void add(vector<double> gaps_s, int tokens) {
        if (tokens < 3) return;
        const auto n = static_cast<std::size_t>(tokens);
        // As many gaps as tokens, without a role in front: the last is of the reason for the end.
        if (!gaps_s.empty() && gaps_s.front() >= together_s) drop_reason_chunk(gaps_s, n - 1);
        if (gaps_s.size() >= n) ++role;
        else if (gaps_s.size() + 2 >= n) ++text;
        else ++untold;
    }
    vllm_stream told() const {
        const std::size_t told = text + role;
        if (told < untold || told == 0) return vllm_stream::untold_chat;
        if (!is_too_much(role, told)) return vllm_stream::text;
        // Chunks of a role's file may be lost, too, but half of its answers have all of them.
        return 2 * role >= told ? vllm_stream::role : vllm_stream::untold_chat;
    }
};
inline first_chunks first_chunks_of(const request_lists& lists) {
    first_chunks c;
    for (std::size_t i = 0; i < lists.size(); ++i)
        if (lists.error(i).empty()) c.add(lists.gaps(i), lists.tokens("output_lens", i));
    return c;
}

inline void set_listed_arrivals(imported_run& run, const picojson::value& v) {
    const checked_object of(v, run.file, "");
    const double rate = number_or_inf(of, "request_rate");
    const double burstiness = number_or_inf(of, "burstiness");
    run.knows_arrivals = rate > 0;
    if (run.knows_arrivals)
        set_arrivals(run, rate, std::isnan(burstiness) ? 1 : burstiness,
                     asked_from(of, "max_concurrency"));
    if (member(v, "ramp_up_strategy")) {
        run.arrivals.kind = arrival_kind::ramp;
        run.arrivals.rate = of.number("ramp_up_start_rps", 0, max_asked);
        run.arrivals.rate_to = of.number("ramp_up_end_rps", 0, max_asked);
    }
}

/// Adds the requests of the lists. `send` sets a record's times until the send, `answer` adds the
/// gaps of an answer and returns whether it is odd. An empty answer has neither an error nor
/// content; a tool may count it as a success.
enum class empty_answer : unsigned char { failed, succeeded };
template <class Send, class Answer>
odd_answers add_listed(imported_run& run, const picojson::value& v, const request_lists& lists,
                       empty_answer counts_as, Send&& send, Answer&& answer) {
    const bool counts_empty = counts_as == empty_answer::succeeded;
    const bool texts = lists.has("generated_texts"), cached = lists.has("cached_tokens");
    reported_sums sums;
    odd_answers odd;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        imported_request t;
        record& r = t.what;
        send(r, i);
        listed_request q = lists.request(i);
        r.prompt_tokens = q.prompt_tokens;
        const bool failed = !q.error.empty();
        const bool is_empty = q.ttft_s == 0 && (counts_empty || q.gaps_s.empty());
        if (failed || (is_empty && !counts_empty)) {
            ++sums.failed;
        } else {
            r.output_tokens = lists.tokens("output_lens", i);
            ++sums.completed;
            sums.output_tokens += r.output_tokens;
            sums.input_tokens += r.prompt_tokens;
        }
        if (failed || is_empty) {
            r.output_tokens = 0;
            mark_failed(r, failed ? request_status::server : request_status::empty,
                        failed || !counts_empty ? q.error : "no text came");
        } else {
            r.status = request_status::ok;
            r.token_source = token_origin::usage;
            r.first_event_tokens = r.choices = 1;
            ++odd.completed;
            odd.odd += answer(t, q);
            if (texts) r.text_bytes = static_cast<int>(lists.text("generated_texts", i).size());
            if (cached) r.cached_tokens = lists.tokens("cached_tokens", i);
            r.first_token_ns = r.sent_ns + clock_ns(q.ttft_s);
            r.last_token_ns = r.sent_ns + clock_ns(q.last_s());
        }
        r.end_ns = r.sent_ns + clock_ns(q.last_s());
        run.requests.push_back(std::move(t));
    }
    check_sums(run, checked_object(v, run.file, ""), sums);
    return odd;
}

/// Sets the metrics that these files do not have, or define differently.
inline void set_vllm_definitions(imported_run& run, vllm_stream s, const odd_answers& odd,
                                 const request_lists& lists) {
    run.lacks(of_ends(),
              "vLLM's bench ends a request at its last chunk with choices; e2e ends at "
              "[DONE], which the file does not report");
    if (!run.knows_sends)
        run.lacks(of_windows(),
                  "it has no start_times, so it is unknown which tokens came inside "
                  "the steady window");
    if (run.arrivals.max_in_flight > 0 && !lists.has("queue_times"))
        run.lacks(of_planned_sends(),
                  "requests waited for one of max_concurrency places, and the "
                  "file has no queue_times: when each was due is not known");
    if (s == vllm_stream::unknown)
        run.lacks(of_tokens_in_time(),
                  "what the backend takes for a token is not known here; "
                  "openai, vllm and openai-chat are allowed");
    else if (odd.too_many() && s == vllm_stream::untold_chat)
        run.lacks(of_tokens_in_time(),
                  "whether its chats begin with the role, as before vLLM 0.33, or with text is not "
                  "known, as most answers have far fewer chunks than tokens: --backend openai (with "
                  "/v1/completions) has no role");
    else if (odd.too_many() && s == vllm_stream::role)
        run.lacks(of_tokens_in_time(),
                  "vLLM's bench before 0.33 takes the chunk with the role for the first token, "
                  "and " +
                      odd.words("do not let it be separated from the tokens: --backend openai "
                                "(with /v1/completions) has none"));
    else if (odd.too_many())
        run.lacks(of_tokens_in_time(), odd.words("have more chunks than tokens, and which of them "
                                                 "are none is unknown"));
}

/// What a chat's first chunk is, by its own numbers of chunks, else by those of the other files
/// (`known`).
inline vllm_stream chat_stream_of(imported_run& run, const request_lists& lists,
                                  vllm_stream known) {
    vllm_stream s = first_chunks_of(lists).told();
    run.has_untold_chunks = s == vllm_stream::untold_chat && known == vllm_stream::untold_chat;
    if (s == vllm_stream::untold_chat) s = known;
    run.settings.push_back({first_chunk_setting, s == vllm_stream::text   ? "text"
                                                 : s == vllm_stream::role ? "the role"
                                                                          : ""});
    if (s == vllm_stream::text)
        run.notes.push_back("its chats are read as vLLM 0.33 writes them: the first chunk with "
                            "text is the first token");
    return s;
}

inline void add_vllm_requests(imported_run& run, const picojson::value& v, vllm_stream stream,
                              vllm_stream known) {
    const request_lists lists(v, run.file);
    run.knows_sends = lists.has("start_times");
    const bool queues = lists.has("queue_times");
    if (stream == vllm_stream::untold_chat) stream = chat_stream_of(run, lists, known);
    const odd_answers odd = add_listed(
        run, v, lists, empty_answer::failed,
        [&](record& r, std::size_t i) {
            const double start_s = run.knows_sends ? lists.clock("start_times", i) : 0;
            const double waited_s = queues ? lists.seconds("queue_times", i) : 0;
            r.sent_ns = r.dispatched_ns = r.connected_ns = clock_ns(start_s) + 1;
            // A closed loop has no waiting time: a request is due when its user may send.
            const bool is_due = run.arrivals.kind == arrival_kind::closed_loop;
            r.scheduled_ns = r.sent_ns - (is_due ? 0 : clock_ns(waited_s));
        },
        [&](imported_request& t, listed_request& q) {
            const bool is_odd = drop_chunks(q, stream, t.what.output_tokens);
            add_gaps(run, t, q.gaps_s);
            return is_odd;
        });
    mark_late_reads(run);
    set_vllm_definitions(run, stream, odd, lists);
}

/// The client in Rust takes the number of chunks for that of tokens where a server reports no usage.
/// Where all answers have one more token than gaps, as then, tokens are counted by chunks; and if
/// these have more text than tokens do, not at all.
inline void count_chunks_without_usage(imported_run& run, const request_lists& lists) {
    constexpr double most_bytes = 8;  // of a token, on the average
    double tokens = 0, bytes = 0;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        if (run.requests[i].what.status != request_status::ok) continue;
        const int n = lists.tokens("output_lens", i);
        if (static_cast<std::size_t>(n) != lists.gaps(i).size() + 1) return;
        tokens += n;
        bytes += run.requests[i].what.text_bytes;
    }
    for (imported_request& r : run.requests) {
        r.what.token_source = token_origin::events;
        if (r.what.status == request_status::ok) r.what.output_tokens = r.what.events;
    }
    if (bytes > most_bytes * tokens)
        run.lacks(of_output_counts(), printed("its output lengths are numbers of chunks, as of a "
                                              "server without usage, and these have %.3g bytes of "
                                              "text each: several tokens", bytes / tokens));
    run.notes.push_back("each output length is the number of chunks, as the tool writes it where a "
                        "server reports no usage: a token is a chunk there");
}

/// Reads the time of writing, "20261122-204838" or "2026-11-22T20:48:38Z". The fraction of its
/// second is not known, so this is the time in which the run was under way for certain.
inline imported_span vllm_calendar(const picojson::value& v) {
    std::string date = string_member(v, "date");
    if (date.size() == 15) {
        for (const auto colon : {13u, 11u}) date.insert(colon, ":");
        date[8] = ' ';
        for (const auto dash : {6u, 4u}) date.insert(dash, "-");
    }
    const double s = seconds_of_date(date);
    return {s + 1 - number_member(v, "duration"), s};
}

/// `known`: what the first chunk of chats is in other files of the same client.
inline imported_run read_vllm_run(const picojson::value& v, const std::string& file,
                                  vllm_stream known = vllm_stream::untold_chat) {
    imported_run run{.file = file};
    // The client in Rust writes another date, and begins its clock with each run.
    const bool is_rust = string_member(v, "date").find('T') != std::string::npos;
    run.tool = is_rust ? "vLLM bench serve (Rust)" : "vLLM bench serve";
    run.model = setting_text(v, "model_id");
    run.add_settings(v, {"backend", "model_id", "tokenizer_id", "num_prompts", "request_rate",
                         "burstiness", "max_concurrency", "ramp_up_strategy",
                         "ramp_up_start_rps", "ramp_up_end_rps"});
    run.add_more(v);
    set_listed_arrivals(run, v);
    if (member(v, "aggregated_repetitions"))  // of perf-eval; has lists of the first one
        run.lacks_all(
            "it is made from several runs, and is none: judge the files that its "
            "individual_result_files names");
    else if (!member(v, "ttfts") && member(v, "errors") && member(v, "input_lens"))
        run.lacks_all("its backend, " + setting_text(v, "backend") + ", generates nothing, so its "
                      "requests have no times of tokens: `llmbench run --api openai_embeddings` "
                      "(rerank, score) measures such servers");
    else if (!member(v, "ttfts"))
        run.lacks_all(
            "it holds aggregates alone, and a verdict needs every request: "
            "--save-result --save-detailed writes them");
    else add_vllm_requests(run, v, vllm_stream_of(setting_text(v, "backend")), known);
    if (is_rust && !run.requests.empty())
        count_chunks_without_usage(run, request_lists(v, run.file));
    if (is_rust)
        run.notes.push_back("a request that cannot connect is sent again up to three times, and "
                            "only the last try is in the file");
    run.notes.push_back(
        "an error that the server reports inside its stream counts as a success "
        "there");
    run.calendar = vllm_calendar(v);
    if (run.knows_sends && !is_rust) run.clock = span_of(run.requests);
    return run;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
