// our requests in other tools' definitions
// From what is recorded of each request, as the tools' sources compute it: vLLM 0.32.0, SGLang
// 0.5.23, guidellm 0.8.1, AIPerf 0.13.0. All of them leave failed requests out.
#pragma once

#include "api/result.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // any_of, find, find_if, min, sort
#include <cmath>  // floor, isnan
#include <cstddef>  // size_t
#include <iterator>  // begin, end
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

enum class other_tool : unsigned char { vllm, sglang, guidellm, aiperf };
struct other_tool_name {
    other_tool id;
    const char *name, *title;
};
inline constexpr other_tool_name other_tools[] = {
    {other_tool::vllm, "vllm", "vLLM bench serve"},
    {other_tool::sglang, "sglang", "SGLang bench_serving"},
    {other_tool::guidellm, "guidellm", "guidellm"},
    {other_tool::aiperf, "aiperf", "AIPerf"}};

/// LLMBENCH_SHOW_AS: "vllm,guidellm". Each is shown once, in this order.
inline std::vector<other_tool> tools_named(const std::string& list) {
    std::vector<other_tool> tools;
    std::string allowed;
    for (const other_tool_name& t : other_tools)
        allowed += (allowed.empty() ? "" : ", ") + std::string(t.name);
    std::string_view rest = list;
    while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view one = trimmed(rest.substr(0, comma));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        if (one.empty()) continue;
        const auto at = std::find_if(std::begin(other_tools), std::end(other_tools),
                                     [&](const other_tool_name& t) { return one == t.name; });
        require(at != std::end(other_tools), "LLMBENCH_SHOW_AS is \"" + printable(list, 80) +
                                                 "\": \"" + printable(one, 40) +
                                                 "\" is none of " + allowed);
        if (std::find(tools.begin(), tools.end(), at->id) == tools.end()) tools.push_back(at->id);
    }
    return tools;
}

/// One of a tool's metrics, seconds.
struct other_row {
    std::string name{};
    double mean = not_a_number, p50 = not_a_number, p90 = not_a_number, p99 = not_a_number;
};
/// A tool's numbers of our requests, and what cannot be computed of them.
struct other_view {
    std::string tool{};  // its name in LLMBENCH_SHOW_AS
    std::string title{};
    std::vector<other_row> rows{};
    std::vector<std::string> notes{};
};

/// As NumPy's percentile has it: between the two values around it.
inline double interpolated(const std::vector<double>& sorted, double q) {
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(at));
    if (below + 1 >= sorted.size()) return sorted.back();
    return sorted[below] + (at - std::floor(at)) * (sorted[below + 1] - sorted[below]);
}
inline other_row row_of_values(std::string name, std::vector<double> values, bool nearest) {
    other_row r{std::move(name)};
    if (values.empty()) return r;
    std::sort(values.begin(), values.end());
    const auto at = [&](double q) {
        return nearest ? nearest_rank(values, q) : interpolated(values, q);
    };
    r.mean = mean_of(values);
    r.p50 = at(0.50);
    r.p90 = at(0.90);
    r.p99 = at(0.99);
    return r;
}
/// The values of the completed measured requests; those without one are left out.
template <class Value>
std::vector<double> values_of_completed(const std::vector<repeat_data>& arm, Value&& value) {
    std::vector<double> values;
    for (const repeat_data& d : arm)
        for (const record& r : d.records)
            if (is_pooled(r))
                if (const double v = value(r); !std::isnan(v)) values.push_back(v);
    return values;
}
inline std::vector<double> all_gaps(const std::vector<repeat_data>& arm) {
    std::vector<double> values;
    for (const repeat_data& d : arm)
        for (std::size_t i = 0; i < d.records.size(); ++i)
            for (std::size_t k = 0; is_pooled(d.records[i]) && k < gap_count(d.records[i]); ++k)
                values.push_back(d.gaps[d.gap_offsets[i] + k] / 1e6);
    return values;
}
inline double seconds_between(long long from_ns, long long to_ns) {
    return static_cast<double>(to_ns - from_ns) / 1e9;
}
/// A time over the tokens after the first; NaN where there are none.
inline double per_later_token(const record& r, double seconds) {
    return r.output_tokens > 1 ? seconds / (r.output_tokens - 1) : not_a_number;
}

/// Adds a row of gaps where every one was kept.
inline void add_gap_row(other_view& v, const std::vector<repeat_data>& arm, const char* name) {
    const bool counted = std::any_of(arm.begin(), arm.end(),
                                     [](const repeat_data& d) { return d.gaps_counted; });
    if (!counted) v.rows.push_back(row_of_values(name, all_gaps(arm), false));
    else v.notes.push_back(std::string(name) + ": the gaps were too many to keep each one");
}

inline void show_as_vllm(other_view& v, const std::vector<repeat_data>& arm, bool is_chat) {
    if (is_chat) {
        v.notes.push_back("TTFT, TPOT, ITL and E2EL count the chunks with the role and with the "
                          "finish reason, whose times are not recorded: with openai_completions "
                          "there are none");
        return;
    }
    const auto add = [&](const char* name, auto&& value) {
        v.rows.push_back(row_of_values(name, values_of_completed(arm, value), false));
    };
    add("TTFT", [](const record& r) { return seconds_between(r.dispatched_ns, r.first_token_ns); });
    add("TPOT", [](const record& r) {
        return per_later_token(r, seconds_between(r.first_token_ns, r.last_token_ns));
    });
    add_gap_row(v, arm, "ITL");
    add("E2EL", [](const record& r) { return seconds_between(r.dispatched_ns, r.last_token_ns); });
    v.notes.push_back("chunks without text are tokens there, and are not recorded here");
}
inline void show_as_sglang(other_view& v, const std::vector<repeat_data>& arm) {
    const auto add = [&](const char* name, auto&& value) {
        v.rows.push_back(row_of_values(name, values_of_completed(arm, value), false));
    };
    add("TTFT", [](const record& r) { return seconds_between(r.dispatched_ns, r.first_token_ns); });
    add("TPOT", [](const record& r) {
        return per_later_token(r, seconds_between(r.first_token_ns, r.end_ns));
    });
    add_gap_row(v, arm, "ITL");
    add("E2E Latency", [](const record& r) { return seconds_between(r.dispatched_ns, r.end_ns); });
    v.notes.push_back("it makes a new connection for each request, which these had at hand; where "
                      "a server tells no usage it takes the length that it asked for");
}
inline void show_as_guidellm(other_view& v, const std::vector<repeat_data>& arm) {
    const auto add = [&](const char* name, auto&& value) {
        v.rows.push_back(row_of_values(name, values_of_completed(arm, value), true));
    };
    add("TTFT", [](const record& r) { return seconds_between(r.sent_ns, r.first_token_ns); });
    add("ITL (our tpot)", [](const record& r) {
        return per_later_token(r, seconds_between(r.first_token_ns, r.last_token_ns));
    });
    add("TPOT (with ttft)", [](const record& r) {
        return r.output_tokens > 0
                   ? seconds_between(r.sent_ns, r.last_token_ns) / r.output_tokens
                   : not_a_number;
    });
    add("Latency", [](const record& r) { return seconds_between(r.sent_ns, r.end_ns); });
}
inline void show_as_aiperf(other_view& v, const std::vector<repeat_data>& arm) {
    const auto add = [&](const char* name, auto&& value) {
        v.rows.push_back(row_of_values(name, values_of_completed(arm, value), false));
    };
    add("TTFT", [](const record& r) { return seconds_between(r.dispatched_ns, r.first_token_ns); });
    add("ITL (our tpot)", [](const record& r) {
        return per_later_token(r, seconds_between(r.first_token_ns, r.last_token_ns));
    });
    add_gap_row(v, arm, "ICL (our itl)");
    add("Request Latency",
        [](const record& r) { return seconds_between(r.dispatched_ns, r.last_token_ns); });
    v.notes.push_back("tokens are those of usage, as with --use-server-token-count; else AIPerf "
                      "counts them by a tokenizer of its own");
}

/// `api`: the name of the one that the requests were sent by. `stream`: answers came in pieces.
inline other_view shown_as(other_tool tool, const std::vector<repeat_data>& arm,
                           const std::string& api, bool stream) {
    other_view v;
    const other_tool_name& name = other_tools[static_cast<std::size_t>(tool)];
    v.tool = name.name;
    v.title = name.title;
    if (!stream) {
        v.notes.push_back("answers that come in one piece have no first token");
        return v;
    }
    switch (tool) {
    case other_tool::vllm: show_as_vllm(v, arm, api == "openai_chat"); break;
    case other_tool::sglang: show_as_sglang(v, arm); break;
    case other_tool::guidellm: show_as_guidellm(v, arm); break;
    case other_tool::aiperf: show_as_aiperf(v, arm); break;
    }
    return v;
}
inline std::vector<other_view> shown_as_all(const std::vector<other_tool>& tools,
                                            const std::vector<repeat_data>& arm,
                                            const std::string& api, bool stream) {
    std::vector<other_view> all;
    for (const other_tool t : tools) all.push_back(shown_as(t, arm, api, stream));
    return all;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
