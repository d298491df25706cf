// words of other tools, and ours for them
// vLLM's and SGLang's bench, guidellm, AIPerf, genai-perf and k6 name options and results so.
#pragma once

#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "effects/system/settings.hpp"

#include <algorithm>  // clamp
#include <cctype>  // isalnum, tolower
#include <cstddef>  // size_t
#include <string>
#include <string_view>

namespace llmbench_program {

struct known_word {
    std::string_view theirs, ours;
};
/// Returns our word for another tool's, "" if it is none of these.
template <std::size_t N>
std::string ours_in(const known_word (&all)[N], std::string_view theirs) {
    for (const known_word& w : all)
        if (w.theirs == theirs) return std::string(w.ours);
    return {};
}

/// Returns our option, without dashes, for another tool's; "" if it is none that we know.
inline std::string option_for(std::string_view theirs) {
    static constexpr known_word all[] = {
        {"request-rate", "rate"},          {"rps", "rate"},
        {"qps", "rate"},                   {"num-prompts", "requests"},
        {"num-requests", "requests"},      {"request-count", "requests"},
        {"max-requests", "requests"},      {"max-concurrency", "users"},
        {"concurrency", "users"},          {"vus", "users"},
        {"num-users", "users"},            {"input-len", "prompt-tokens"},
        {"random-input-len", "prompt-tokens"},
        {"synthetic-input-tokens-mean", "prompt-tokens"},
        {"isl", "prompt-tokens"},          {"output-len", "output-tokens"},
        {"random-output-len", "output-tokens"},
        {"osl", "output-tokens"},          {"base-url", "url"},
        {"target", "url"},                 {"endpoint", "path"},
        {"dataset-path", "dataset"},       {"max-seconds", "duration"},
        {"goodput", "slo"},                {"result-dir", "report"},
        {"output-dir", "report"},          {"warmup-requests", "warmup"},
        {"num-warmups", "warmup"},         {"random-prefix-len", "prefix-tokens"}};
    return ours_in(all, theirs);
}

/// Returns our option for a word: another tool's, else the one that differs in fewest letters, if
/// most letters are the same. A far guess helps nobody.
inline std::string option_meant(std::string_view given,
                                const llmbench::detail::vector<std::string>& options) {
    if (std::string known = option_for(given); !known.empty()) return known;
    std::string nearest;
    std::size_t least = std::clamp<std::size_t>(given.size() / 2, 2, 4);
    for (const std::string& o : options)
        if (const std::size_t apart = llmbench::detail::letters_apart(given, o); apart < least) {
            least = apart;
            nearest = o;
        }
    return nearest;
}

/// Returns our name for another tool's metric, in lower case; "" if it is none that we know.
inline std::string metric_for(std::string_view theirs) {
    static constexpr known_word all[] = {
        {"throughput", "output_throughput"},
        {"tps", "output_throughput"},
        {"tokens_per_second", "output_throughput"},
        {"output_token_throughput", "output_throughput"},
        {"rps", "request_throughput"},
        {"qps", "request_throughput"},
        {"latency", "e2e"},
        {"e2el", "e2e"},
        {"request_latency", "e2e"},
        {"time_to_first_token", "ttft"},
        {"time_per_output_token", "tpot"},
        {"inter_token_latency", "itl"},
        {"errors", "error_rate"}};
    return ours_in(all, theirs);
}

/// Returns our words for the first word of a text, such as "p95(ttft)" for "p95_ttft" and "mean"
/// for "avg"; "" if it is none that we know.
inline std::string words_for(std::string_view text) {
    std::size_t n = 0;
    const auto is_part = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    while (n < text.size() && is_part(text[n])) ++n;
    std::string word;
    for (const char c : text.substr(0, n))
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));

    const auto statistic_for = [](std::string_view s) {
        if (s == "avg" || s == "average" || s == "mean") return std::string("mean");
        if (s == "median" || s == "med") return std::string("p50");
        const bool is_percentile = s.size() >= 2 && s.size() <= 3 && s[0] == 'p' &&
                                   s.find_first_not_of("0123456789", 1) == std::string_view::npos;
        return is_percentile ? std::string(s) : std::string();
    };
    const auto ours_of = [](std::string_view s) {
        for (const char* const unit : {"_ms", "_s"})
            if (s.ends_with(unit)) s.remove_suffix(std::string_view(unit).size());
        for (const std::string_view same : {"ttft", "tpot", "itl", "e2e"})
            if (s == same) return std::string(s);
        return metric_for(s);
    };
    // "p95_ttft", "mean_tpot_ms", "ttft_p95", "ttft_avg".
    for (std::size_t at = word.find('_'); at != std::string::npos; at = word.find('_', at + 1)) {
        const std::string_view w = word, before = w.substr(0, at), after = w.substr(at + 1);
        for (const auto& [s, m] : {known_word{before, after}, known_word{after, before}})
            if (const std::string ours = ours_of(m), of = statistic_for(s);
                !ours.empty() && !of.empty())
                return of + "(" + ours + ")";
    }
    if (std::string m = metric_for(word); !m.empty()) return m;
    const std::string statistic = statistic_for(word);
    if (!statistic.empty() && statistic != text.substr(0, n)) return statistic;
    const bool is_shouted = word != text.substr(0, n) && !ours_of(word).empty();
    return is_shouted ? ours_of(word) : std::string();
}

}  // namespace llmbench_program
