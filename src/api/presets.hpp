// published limits
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v1 {

/// Published limits on both latencies, as values to use or to change:
/// `.slos = presets::mlperf_llama2_70b_server.slos()`, or within a goodput
/// `goodput(presets::chat.predicate()) >= 95_pct`.
struct latency_limits {
    const char* name = "";
    const char* source = "";  ///< publisher and date
    time_span ttft{};         ///< zero: no limit
    time_span tpot{};         ///< zero: no limit
    double quantile = 0.99;   ///< of requests within the limits; p99 needs 300 requests a repeat

    slo_list slos(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
        slo_list list;
        if (ttft.seconds() > 0)
            list.push_back(percentile(llmbench::ttft, quantile) <=
                           limit<time_span>(ttft, file, line));
        if (tpot.seconds() > 0)
            list.push_back(percentile(llmbench::tpot, quantile) <=
                           limit<time_span>(tpot, file, line));
        return list;
    }
    llmbench::predicate predicate() const {
        if (ttft.seconds() <= 0) return llmbench::tpot <= tpot;
        if (tpot.seconds() <= 0) return llmbench::ttft <= ttft;
        return llmbench::ttft <= ttft && llmbench::tpot <= tpot;
    }
    /// Returns "mlperf llama2-70b server: p99(ttft) <= 2 s, p99(tpot) <= 200 ms (MLPerf ...)".
    types::text text() const;
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const latency_limits& l) {
        o << l.text().c_str();
        return o;
    }
};

namespace presets {
namespace detail {
constexpr latency_limits mlperf(const char* name, double ttft_ms, double tpot_ms) {
    return {name, "MLPerf Inference rules (MLCommons inference_policies, as of August 2026)",
            time_span::from_seconds(ttft_ms / 1e3), time_span::from_seconds(tpot_ms / 1e3), 0.99};
}
}  // namespace detail
// MLPerf's rules call the server scenario of some models "conversational". LoadGen's configuration
// has the same limits, except 15 ms a token for gpt-oss-120b interactive.
inline constexpr latency_limits
    mlperf_llama2_70b_server = detail::mlperf("mlperf llama2-70b server", 2000, 200),
    mlperf_llama2_70b_interactive = detail::mlperf("mlperf llama2-70b interactive", 450, 40),
    mlperf_llama3_1_8b_server = detail::mlperf("mlperf llama3.1-8b server", 2000, 100),
    mlperf_llama3_1_8b_interactive = detail::mlperf("mlperf llama3.1-8b interactive", 500, 30),
    mlperf_llama3_1_405b_server = detail::mlperf("mlperf llama3.1-405b server", 6000, 175),
    mlperf_llama3_1_405b_interactive = detail::mlperf("mlperf llama3.1-405b interactive", 4500, 80),
    mlperf_mixtral_8x7b_server = detail::mlperf("mlperf mixtral-8x7b server", 2000, 200),
    mlperf_deepseek_r1_server = detail::mlperf("mlperf deepseek-r1 server", 2000, 80),
    mlperf_deepseek_r1_interactive = detail::mlperf("mlperf deepseek-r1 interactive", 1500, 15),
    mlperf_gpt_oss_120b_server = detail::mlperf("mlperf gpt-oss-120b server", 3000, 80),
    mlperf_gpt_oss_120b_interactive = detail::mlperf("mlperf gpt-oss-120b interactive", 2000, 20);

/// Limits for a reader of that many words a minute.
constexpr latency_limits reading(double words_per_minute, double tokens_per_word = 1.5,
                                 const char* name = "reading", const char* source = "") {
    return {name, source, time_span(),
            time_span::from_seconds(60 / (words_per_minute * tokens_per_word)), 0.99};
}
inline constexpr const char* reading_source =
    "usual figures of speed-reading texts, which call the three mental, auditory and visual";
inline constexpr latency_limits
    silent_reading = reading(250, 1.5, "silent reading, 250 words/min", reading_source),
    subvocal_reading = reading(450, 1.5, "subvocal reading, 450 words/min", reading_source),
    visual_reading = reading(700, 1.5, "visual reading, 700 words/min", reading_source);
/// A rule of thumb for chats, not a standard.
inline constexpr latency_limits
    chat = {"chat", "a rule of thumb", time_span::from_seconds(2), time_span::from_seconds(0.05)},
    patient_chat = {"patient chat", "a rule of thumb", time_span::from_seconds(3),
                    time_span::from_seconds(0.05)};

}  // namespace presets
}  // inline namespace v1
}  // namespace llmbench
