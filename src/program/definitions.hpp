// our requests by other tools' definitions
// The definitions are those in the tools' sources: vLLM 0.33.0, SGLang 0.5.23, guidellm 0.8.1,
// AIPerf 0.13.0. All of them leave failed requests out.
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/measured/repeat.hpp"
#include "core/reports/tables.hpp"

#include <algorithm>  // find, find_if, sort
#include <array>
#include <cmath>  // floor
#include <cstddef>  // size_t
#include <iterator>  // begin, end
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

enum class other_tool : unsigned char { vllm, sglang, guidellm, aiperf };
struct other_tool_name {
    other_tool id;
    const char *name, *title;
    const char* note;  // shown beside the rows, "" if there is none
};
inline constexpr other_tool_name other_tools[] = {
    {other_tool::vllm, "vllm", "vLLM bench serve",
     "before 0.33 the chunks of a chat with the role and with the finish reason were tokens there; "
     "one without text still is, if it has no role, and is not recorded here"},
    {other_tool::sglang, "sglang", "SGLang bench_serving",
     "it makes a new connection for each request, which these had at hand; where a server reports "
     "no usage it takes the length that it asked for"},
    {other_tool::guidellm, "guidellm", "guidellm", ""},
    {other_tool::aiperf, "aiperf", "AIPerf",
     "tokens are those of usage, as with --use-server-token-count; else AIPerf counts them by a "
     "tokenizer of its own"}};

/// The metric of a tool: the time between two stamps of a request, divided by its tokens or by
/// those after the first; or all gaps between events.
enum class divided_by : unsigned char { nothing, later_tokens, tokens, gaps };
struct other_metric {
    other_tool tool;
    const char* name;
    divided_by per;
    long long record::*from = nullptr;
    long long record::*to = nullptr;
};
inline constexpr auto other_metrics = [] {
    using enum other_tool;
    using enum divided_by;
    constexpr auto taken_up = &record::dispatched_ns, sent = &record::sent_ns;
    constexpr auto first = &record::first_token_ns, last = &record::last_token_ns;
    constexpr auto end = &record::end_ns;
    return std::array<other_metric, 16>{{
        {vllm, "TTFT", nothing, taken_up, first},
        {vllm, "TPOT", later_tokens, first, last},
        {vllm, "ITL", gaps},
        {vllm, "E2EL", nothing, taken_up, last},
        {sglang, "TTFT", nothing, taken_up, first},
        {sglang, "TPOT", later_tokens, first, end},
        {sglang, "ITL", gaps},
        {sglang, "E2E Latency", nothing, taken_up, end},
        {guidellm, "TTFT", nothing, sent, first},
        {guidellm, "ITL (our tpot)", later_tokens, first, last},
        {guidellm, "TPOT (with ttft)", tokens, sent, last},
        {guidellm, "Latency", nothing, sent, end},
        {aiperf, "TTFT", nothing, taken_up, first},
        {aiperf, "ITL (our tpot)", later_tokens, first, last},
        {aiperf, "ICL (our itl)", gaps},
        {aiperf, "Request Latency", nothing, taken_up, last}}};
}();

/// Reads "vllm,guidellm"; each tool is shown once.
inline vector<other_tool> tools_named(const std::string& list) {
    vector<other_tool> tools;
    std::string allowed;
    for (const other_tool_name& t : other_tools)
        allowed += (allowed.empty() ? "" : ", ") + std::string(t.name);
    std::string_view rest = list;
    while (!rest.empty()) {
        const std::string_view one = trimmed(taken_part(rest, ","));
        if (one.empty()) continue;
        const auto at = std::find_if(std::begin(other_tools), std::end(other_tools),
                                     [&](const other_tool_name& t) { return one == t.name; });
        if (at == std::end(other_tools))
            refuse({"--as is \"", printable(list, 80), "\": \"", printable(one, 40),
                    "\" is none of ", allowed});
        if (std::find(tools.begin(), tools.end(), at->id) == tools.end()) tools.push_back(at->id);
    }
    return tools;
}

struct other_row {
    std::string name{};
    double mean = not_a_number, p50 = not_a_number, p90 = not_a_number, p99 = not_a_number;
};
/// Our requests as a tool shows them, and the metrics that cannot be computed.
struct other_view {
    std::string title{};
    vector<other_row> rows{};
    vector<std::string> notes{};
};

/// As NumPy's percentile: interpolated between two values.
inline double interpolated(const vector<double>& sorted, double q) {
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(at));
    if (below + 1 >= sorted.size()) return sorted.back();
    return sorted[below] + (at - std::floor(at)) * (sorted[below + 1] - sorted[below]);
}
/// `at`: the value of a percentile.
inline other_row row_of_values(std::string name, vector<double> values,
                               double (*at)(const vector<double>& sorted, double q)) {
    if (values.empty()) return {std::move(name)};
    std::sort(values.begin(), values.end());
    return {std::move(name), mean_of(values), at(values, 0.50), at(values, 0.90),
            at(values, 0.99)};
}
/// The values of the completed requests. One of a single token has no time per later token.
inline vector<double> values_by(const other_metric& m, const repeat_list& variant) {
    vector<double> values;
    for (const repeat_data& d : variant)
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            const record& r = d.records[i];
            if (!is_pooled(r)) continue;
            if (m.per == divided_by::gaps) {
                for (std::size_t k = 0; k < gap_count(r); ++k)
                    values.push_back(d.gaps[d.gap_offsets[i] + k] / 1e6);
                continue;
            }
            const int parts = m.per == divided_by::nothing
                                  ? 1
                                  : r.output_tokens - (m.per == divided_by::later_tokens);
            if (parts > 0) values.push_back(static_cast<double>(r.*m.to - r.*m.from) / 1e9 / parts);
        }
    return values;
}

inline other_view shown_as(other_tool tool, const repeat_list& variant, const request_spec& sent) {
    const other_tool_name& name = other_tools[static_cast<std::size_t>(tool)];
    other_view v{.title = name.title};
    if (!sent.stream) {
        v.notes.push_back("answers that come in one piece have no first token");
        return v;
    }
    const bool counted = any_of(variant, [](const repeat_data& d) { return d.gaps_counted; });
    for (const other_metric& m : other_metrics) {
        if (m.tool != tool) continue;
        if (m.per == divided_by::gaps && counted)
            v.notes.push_back(std::string(m.name) + ": the gaps were too many to keep each one");
        else
            v.rows.push_back(
                row_of_values(m.name, values_by(m, variant),
                              tool == other_tool::guidellm ? nearest_rank : interpolated));
    }
    if (*name.note) v.notes.push_back(name.note);
    return v;
}

/// Returns our requests by the definitions of other tools, a table each.
inline std::string others_text(const vector<other_tool>& tools, const repeat_list& variant,
                               const request_spec& sent) {
    std::string out;
    for (const other_tool tool : tools) {
        const other_view v = shown_as(tool, variant, sent);
        out += printed("\n  as %s has it, failed requests left out\n", v.title.c_str());
        report_table t{{"", "mean", "p50", "p90", "p99"}};
        for (const other_row& r : v.rows)
            t.add({r.name, time_text(r.mean), time_text(r.p50), time_text(r.p90),
                   time_text(r.p99)});
        if (!v.rows.empty()) out += console_table(t, 17).substr(1);
        for (const std::string& note : v.notes) out += "  " + note + "\n";
    }
    return out;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
