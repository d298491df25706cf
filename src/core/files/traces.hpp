// traces
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/datasets.hpp"
#include "core/files/prefix_tree.hpp"

#include <algorithm>  // max, min, sort
#include <cmath>  // fabs, floor, isnan
#include <cstdint>  // uint32_t, uint64_t
#include <string>
#include <string_view>
#include <utility>  // pair, move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

struct trace_row {
    double at_s = 0;  // from the first one
    int prompt_tokens = 0, output_tokens = 0;
};
struct recorded_trace {
    std::string format{};
    vector<trace_row> rows{};  // in order of time
    /// Mooncake's content of prompts in blocks of 512 tokens: equal numbers for equal content.
    /// Empty if the trace does not have it.
    prefix_tree tree{};
    vector<tree_prompt> prompts{};
    long long left_out = 0;  // failed requests of the recording
};
inline constexpr int trace_block_tokens = 512;
inline constexpr std::size_t max_trace_rows = 10000000;
inline constexpr double longest_trace_s = 1e8;   // three years

/// Adds a request, or counts it among those left out. Returns whether it was added.
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
    if (t.rows.size() == max_trace_rows)
        in.refuse(line, "the trace is longer than 10000000 requests: cut it first");
    t.rows.push_back({at, std::max(1, static_cast<int>(prompt)), static_cast<int>(output)});
    return true;
}

/// The hint for a Mooncake file whose times look like seconds.
inline constexpr const char* ask_for_unit =
    "its time stamps are read as milliseconds; is it in seconds? say replay(...).unit(1_s), and "
    ".unit(1_ms) if it is not";

/// Mooncake's format: an object a line. `unit_s`: the unit of its time stamps, 0 if not given.
inline recorded_trace read_json_trace(byte_stream& in, double unit_s) {
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
        const double at = number("timestamp");
        if (unit_s == 0 && at != std::floor(at))
            in.refuse(line, "timestamp is " + json_number(at) +
                                ", a fraction of a millisecond: " + ask_for_unit);
        if (!add_trace_row(t, in, line, at * (unit_s > 0 ? unit_s : 1e-3), number("input_length"),
                           number("output_length")))
            return;
        t.prompts.emplace_back();
        const picojson::value* ids = member(v, "hash_ids");
        if (!ids) return;
        if (!ids->template is<picojson::array>()) in.refuse(line, "hash_ids is not an array");
        vector<std::uint64_t> blocks;
        for (const picojson::value& id : ids->template get<picojson::array>()) {
            const auto whole =
                whole_from<long long>("", id, -max_count, max_count, "a whole number", [&] {
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

/// Azure's and BurstGPT's formats, told apart by their headers: a row a request.
inline recorded_trace read_csv_trace(byte_stream& in, double unit_s) {
    recorded_trace t;
    std::size_t at = 0, prompt = 0, output = 0;
    const auto on_header = [&](const vector<std::string>& names, long long line) {
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
    each_csv_row(in, on_header, [&](const vector<std::string>& fields, long long line) {
        const auto number = [&](std::size_t i) {
            return parsed_number<double>(trimmed(fields[i])).value_or(not_a_number);
        };
        const double plain = number(at) * (unit_s > 0 ? unit_s : 1);
        add_trace_row(t, in, line,
                      std::isnan(plain) ? seconds_of_date(trimmed(fields[at])) : plain,
                      number(prompt), number(output));
    });
    return t;
}

/// Returns a trace in any format of `replay`, in the order of time, from 0 on.
inline recorded_trace read_trace(byte_stream& in, double unit_s = 0) {
    in.skip_space();
    recorded_trace t =
        in.peek() == '{' ? read_json_trace(in, unit_s) : read_csv_trace(in, unit_s);
    if (t.rows.empty()) refuse({in.name(), ": the trace holds no requests"});
    vector<std::size_t> order(t.rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return t.rows[a].at_s != t.rows[b].at_s ? t.rows[a].at_s < t.rows[b].at_s : a < b;
    });
    const double lasts_s = t.rows[order.back()].at_s - t.rows[order[0]].at_s;
    if (!(lasts_s <= longest_trace_s))
        refuse({in.name(), printed(": from its first time stamp to its last it takes %g s, up to "
                                   "%g s is allowed", lasts_s, longest_trace_s)});
    const auto n = static_cast<double>(t.rows.size());
    if (unit_s == 0 && t.format == "Mooncake" && lasts_s > 0 && n > 1000 * lasts_s)
        refuse({in.name(), printed(": %.0f requests in %.3g s, over 1000 a second: ", n, lasts_s),
                ask_for_unit});
    recorded_trace sorted{t.format, {}, std::move(t.tree), {}, t.left_out};
    for (const std::size_t i : order) {
        sorted.rows.push_back(t.rows[i]);
        sorted.rows.back().at_s -= t.rows[order[0]].at_s;
        if (!t.prompts.empty()) sorted.prompts.push_back(t.prompts[i]);
    }
    return sorted;
}

class read_workload;
struct workload_files {
    vector<double> prompt_values{}, output_values{};  // of empirical distributions
    vector<dialogue> dialogues{};                     // a dataset's sample
    recorded_trace trace{};                                // of replay
    vector<workload_files> of_parts{};                // of a mix
    vector<workload_files> of_baseline{};  // one, where it has another workload
    std::shared_ptr<const read_workload> of_extension{};
    row_fields fields{};  // of a dataset's rows
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
