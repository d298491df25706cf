// Timelines written by hand: what a client saw of each request, and when, in milliseconds after the
// repeat's start. They take the same way into a repeat as measured ones.
#pragma once

#include "llmbench.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/repeat.hpp"

#include <cmath>
#include <cstdint>
#include <string>

namespace timelines {
using llmbench::detail::vector;

namespace lb = llmbench::detail;

/// Equal but for rounding; exact values such as 0 and infinity are compared with ==.
inline doctest::Approx about(double x) { return doctest::Approx(x).epsilon(1e-9).scale(0); }

// A steady clock does not start at 0, and 0 stands for "none" in a record.
inline constexpr long long start_ns = 1'000'000'000'000;
inline long long at_ms(double ms) { return start_ns + std::llround(ms * 1e6); }

/// One request and its answer.
class request {
public:
    explicit request(double scheduled_ms) {
        r_.scheduled_ns = at_ms(scheduled_ms);
        sent(scheduled_ms);
    }
    request& warmup() {
        r_.phase = llmbench::run_phase::warmup;
        return *this;
    }
    request& sent(double ms) {
        r_.dispatched_ns = r_.connected_ns = r_.sent_ns = at_ms(ms);
        return *this;
    }
    /// An event as the server wrote it.
    request& says(double ms, const std::string& data);
    request& event(double ms, const lb::stream_event& e) {
        stream_.on_event(e, at_ms(ms));
        return *this;
    }
    request& content(double ms, int first_tokens = 1) {
        lb::stream_event e;
        e.content = e.answer = true;
        e.first_tokens = first_tokens;
        return event(ms, e);
    }
    request& reasoning(double ms) {
        lb::stream_event e;
        e.content = true;
        return event(ms, e);
    }
    request& finish(double ms, const std::string& reason = "stop") {
        lb::stream_event e;
        e.finish_reason = reason;
        return event(ms, e);
    }
    request& usage(double ms, int prompt, int completion) {
        lb::stream_event e;
        e.prompt_tokens = prompt;
        e.completion_tokens = completion;
        return event(ms, e);
    }
    request& done(double ms) {
        lb::stream_event e;
        e.done = true;
        return event(ms, e);
    }
    request& body_end(double ms) {
        stream_.on_body_end(at_ms(ms));
        return *this;
    }
    request& fails(llmbench::request_status status, const std::string& why = "") {
        stream_.fail(status, why);
        return *this;
    }

    llmbench::record record() const {
        llmbench::record r = r_;
        stream_.write_to(r);
        return r;
    }
    const lb::gap_list& gaps_us() const { return stream_.gaps_us(); }

private:
    llmbench::record r_{};
    lb::stream_timeline stream_{};
};

/// A completed request: `events` content events of one token each, one every `gap_ms`, after a
/// prompt of 10 tokens. It ends with its last event.
request answered(double scheduled_ms, double ttft_ms, double gap_ms = 10, int events = 11);

/// Events of a chat without a token: its first one, and its last one with a choice.
inline constexpr const char* role_event =
    R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})";
inline constexpr const char* finish_event =
    R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})";

/// The worked example of the definitions (tests/README.md): after its role 33 content events of three
/// tokens, the first at 200 ms, then one every 30 ms. `late_ms`: from when it was due until it was sent.
request worked_example(double scheduled_ms, double late_ms = 0);

/// A request that never got an answer.
request failed(double scheduled_ms,
               llmbench::request_status status = llmbench::request_status::timeout);

inline vector<std::uint32_t> listed(const lb::gap_list& gaps) {
    vector<std::uint32_t> all;
    for (std::uint64_t i = 0; i < gaps.size(); ++i) all.push_back(gaps[i]);
    return all;
}

lb::repeat_data repeat_of(const vector<request>& requests);

/// `n` completed requests, one every 100 ms, each with this ttft.
lb::repeat_data steady_repeat(double ttft_ms, int n = 20, double gap_ms = 10);

/// The first answers were forced to so many tokens.
void force_lengths(lb::repeat_data& d, std::size_t answers, int tokens);
/// The workload repeats so many tokens of each prompt.
void share_tokens(lb::repeat_data& d, int tokens);

double evaluated(const lb::statistic_data& what, const lb::repeat_data& d);
/// The value of a statistic, `p99(ttft)`, or of a run-level metric, `error_rate`, in one repeat.
template <class U, lb::bound_side Side>
double value_of(const llmbench::statistic<U, Side>& s, const lb::repeat_data& d) {
    return evaluated(s.data, d);
}
template <lb::run_metric M> double value_of(M m, const lb::repeat_data& d) {
    return evaluated(lb::make(lb::statistic_kind::value, m).data, d);
}

}  // namespace timelines
