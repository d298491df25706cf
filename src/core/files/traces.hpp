// traces
#pragma once

#include "core/base/checked_json.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/datasets.hpp"
#include "core/files/prefix_tree.hpp"
#include "core/files/session_graph.hpp"

#include <algorithm>  // max, min, sort
#include <cmath>  // fabs, isnan
#include <cstdint>  // uint32_t, uint64_t
#include <string>
#include <string_view>
#include <utility>  // pair, move
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One request of a recorded trace.
struct trace_row {
    double at_s = 0;  // from the first one
    int prompt_tokens = 0, output_tokens = 0;
};
struct recorded_trace {
    std::string format{};
    std::vector<trace_row> rows{};  // in order of time
    /// Of Mooncake: what of each prompt stands in blocks of 512 tokens, where the same number means
    /// the same content. Empty where the trace does not say.
    prefix_tree tree{};
    std::vector<tree_prompt> prompts{};
    long long left_out = 0;  // failed requests of the recording
};
inline constexpr int trace_block_tokens = 512;
inline constexpr std::size_t most_trace_rows = 10000000;
inline constexpr double longest_trace_s = 1e8;   // three years

/// Adds a request, or counts it among those that are left out. Whether it was added.
inline bool add_trace_row(recorded_trace& t, byte_stream& in, long long line, double at,
                          double prompt, double output) {
    if (!(std::fabs(at) <= latest_stamp_s))
        in.refuse(line, std::isnan(at) ? std::string("the time stamp is not a time")
                                       : printed("the time stamp is %g s, up to %g s is allowed",
                                                 at, latest_stamp_s));
    for (const auto& [name, n] : {std::pair{"prompt", prompt}, std::pair{"output", output}})
        if (!(n >= 0 && n <= 1e7))
            in.refuse(line,
                      printed("the %s length is no number of tokens from 0 to 10000000", name));
    if (output < 1) { ++t.left_out; return false; }
    if (t.rows.size() == most_trace_rows)
        in.refuse(line, "the trace is longer than 10000000 requests: cut it first");
    t.rows.push_back({at, std::max(1, static_cast<int>(prompt)), static_cast<int>(output)});
    return true;
}

/// Mooncake's: an object a line.
inline recorded_trace read_json_trace(byte_stream& in) {
    recorded_trace t;
    t.format = "Mooncake";
    block_index index;
    each_json_line(in, [&](const auto&, const picojson::value& v, long long line) {
        const auto number = [&](const char* name) {
            const picojson::value* m = member(v, name);
            if (!m || !m->template is<double>())
                in.refuse(line, std::string(name) + " is not there or no number: each line "
                                                    "needs timestamp, input_length and "
                                                    "output_length");
            return number_in(*m);
        };
        if (!add_trace_row(t, in, line, number("timestamp") / 1e3, number("input_length"),
                           number("output_length")))
            return;
        t.prompts.emplace_back();
        const picojson::value* ids = member(v, "hash_ids");
        if (!ids) return;
        if (!ids->template is<picojson::array>()) in.refuse(line, "hash_ids is not an array");
        std::vector<std::uint64_t> blocks;
        for (const picojson::value& id : ids->template get<picojson::array>()) {
            const auto whole =
                whole_from<long long>("", id, -most_count, most_count, "a whole number", [&] {
                    return printed("%s:%lld: one of hash_ids", in.name().c_str(), line);
                });
            blocks.push_back(static_cast<std::uint64_t>(whole));
        }
        const double in_blocks = static_cast<double>(blocks.size()) * trace_block_tokens;
        const int tokens =
            static_cast<int>(std::min<double>(in_blocks, t.rows.back().prompt_tokens));
        if (!index.add(t.tree, blocks, trace_block_tokens, tokens, t.prompts.back()))
            in.refuse(line, "the prompts have over 20000000 blocks: cut the trace first");
    });
    return t;
}

/// Azure's and BurstGPT's: a row a request, told apart by their headers.
inline recorded_trace read_csv_trace(byte_stream& in) {
    recorded_trace t;
    std::size_t at = 0, prompt = 0, output = 0;
    const auto on_header = [&](const std::vector<std::string>& names, long long line) {
        at = prompt = output = names.size();
        for (std::size_t i = 0; i < names.size(); ++i) {
            const std::string_view name = trimmed(names[i]);
            const auto is = [&](const char* known) { return same_ignoring_case(name, known); };
            if (is("timestamp")) at = i;
            if (is("contexttokens") || is("request tokens")) prompt = i;
            if (is("generatedtokens") || is("response tokens")) output = i;
            if (is("contexttokens")) t.format = "Azure";
            if (is("request tokens")) t.format = "BurstGPT";
        }
        if (std::max({at, prompt, output}) == names.size())
            in.refuse(line, "no known trace begins so: known are Azure (TIMESTAMP,"
                            "ContextTokens,GeneratedTokens), BurstGPT (Timestamp,Model,"
                            "Request tokens,Response tokens) and Mooncake (JSONL with "
                            "timestamp, input_length, output_length)");
    };
    each_csv_row(in, on_header, [&](const std::vector<std::string>& fields, long long line) {
        const auto number = [&](std::size_t i) {
            return parsed_number<double>(trimmed(fields[i])).value_or(not_a_number);
        };
        const double plain = number(at);
        add_trace_row(t, in, line,
                      std::isnan(plain) ? seconds_of_date(trimmed(fields[at])) : plain,
                      number(prompt), number(output));
    });
    return t;
}

/// A trace in any of the formats of `replay`, in the order of time, which begins with it.
inline recorded_trace read_trace(byte_stream& in) {
    in.skip_space();
    recorded_trace t = in.peek() == '{' ? read_json_trace(in) : read_csv_trace(in);
    if (t.rows.empty()) refuse({in.name(), ": the trace holds no requests"});
    std::vector<std::size_t> order(t.rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return t.rows[a].at_s != t.rows[b].at_s ? t.rows[a].at_s < t.rows[b].at_s : a < b;
    });
    const double lasts_s = t.rows[order.back()].at_s - t.rows[order[0]].at_s;
    if (!(lasts_s <= longest_trace_s))
        refuse({in.name(), printed(": from its first time stamp to its last it takes %g s, up to "
                                   "%g s is allowed", lasts_s, longest_trace_s)});
    recorded_trace sorted{t.format, {}, std::move(t.tree), {}, t.left_out};
    for (const std::size_t i : order) {
        sorted.rows.push_back(t.rows[i]);
        sorted.rows.back().at_s -= t.rows[order[0]].at_s;
        if (!t.prompts.empty()) sorted.prompts.push_back(t.prompts[i]);
    }
    return sorted;
}

/// What was read from files for one scenario.
struct workload_files {
    std::vector<double> prompt_values{}, output_values{};  // of empirical distributions
    std::vector<dialogue> dialogues{};                     // a dataset's sample
    recorded_trace trace{};                                // of replay
    std::vector<workload_files> of_parts{};                // of a mix
    std::vector<workload_files> of_baseline{};  // one, where it has another workload
    session_corpus sessions{};
};

/// The sessions of a corpus in the order in which they began.
inline std::vector<std::uint32_t> order_of_starts(const session_corpus& c) {
    std::vector<std::uint32_t> order(c.sessions.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        const double at = c.sessions[a].start_s, other = c.sessions[b].start_s;
        return at != other ? at < other : a < b;
    });
    return order;
}
/// When the first `most` of them began, as a trace whose rows start sessions.
inline recorded_trace trace_of_starts(const session_corpus& c, std::size_t most,
                                      const std::string& name) {
    recorded_trace t{.format = c.format};
    for (const std::uint32_t i : order_of_starts(c)) {
        const double start_s = c.sessions[i].start_s;
        if (start_s < 0)
            refuse({name, " (", c.format, "): a replay starts sessions when they were recorded to "
                    "begin, which Bailian's, Mooncake's and OpenTelemetry's files say and these "
                    "do not"});
        if (t.rows.size() < most) t.rows.push_back({.at_s = start_s});
    }
    for (std::size_t i = t.rows.size(); i-- > 0;) t.rows[i].at_s -= t.rows[0].at_s;
    return t;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
