// traces
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/traffic/prefix_tree.hpp"
#include "core/traffic/recorded.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/dates.hpp"
#include "core/files/dialogues.hpp"

#include <algorithm>  // max, min, sort
#include <cmath>  // fabs, floor, isnan
#include <cstddef>  // ptrdiff_t, size_t
#include <cstdint>  // uint32_t, uint64_t
#include <string>
#include <string_view>
#include <utility>  // exchange, pair, move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr std::size_t max_trace_blocks = 200000000;
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

inline constexpr const char* unknown_block_size =
    ": its hash_ids do not show how many tokens a block has: several numbers fit all prompts, and "
    "none of them is a power of two from 16 to 512";
inline std::string misfit_text(const char* length, int tokens, std::size_t blocks) {
    return printed("%s is %d and hash_ids has %zu blocks, and no number of tokens in a block fits "
                   "this and all prompts before: a prompt has ceil(%s / size) of them", length,
                   tokens, blocks, length);
}

/// The hint for a Mooncake file whose times look like seconds.
inline constexpr const char* ask_for_unit =
    "its time stamps are read as milliseconds; is it in seconds? say replay(...).unit(1_s), and "
    ".unit(1_ms) if it is not";

/// Mooncake's format: an object for each request. `unit_s`: the unit of its time stamps, 0 if not
/// given.
inline recorded_trace read_json_trace(byte_stream& in, double unit_s) {
    recorded_trace t;
    t.format = "Mooncake";
    vector<std::uint64_t> blocks;   // of all prompts
    vector<std::size_t> of_prompt;  // the number of them
    block_size size;
    each_json_value(in, [&](const auto&, const picojson::value& v, long long line) {
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
        each_other_member(v, {"timestamp", "input_length", "output_length", "hash_ids"},
                          [&](const auto& name, const auto&) { t.fields.leave_out(name, line); });
        const picojson::value* ids = member(v, "hash_ids");
        if (ids && !ids->template is<picojson::array>())
            in.refuse(line, "hash_ids is not an array");
        const picojson::array& all = array_member(v, "hash_ids");
        for (const picojson::value& id : all)
            blocks.push_back(static_cast<std::uint64_t>(
                whole_from<long long>("", id, -max_count, max_count, "a whole number", [&] {
                    return printed("%s:%lld: one of hash_ids", in.name().c_str(), line);
                })));
        of_prompt.push_back(all.size());
        if (blocks.size() > max_trace_blocks)
            in.refuse(line, "the prompts have over 200000000 blocks: cut the trace first");
        if (const int tokens = t.rows.back().prompt_tokens; !size.fits(tokens, all.size()))
            in.refuse(line, misfit_text("input_length", tokens, all.size()));
    });
    t.block_tokens = blocks.empty() ? 0 : size.found();
    if (!blocks.empty() && t.block_tokens == 0) refuse({in.name(), unknown_block_size});
    block_index index;
    auto next = blocks.begin();
    for (std::size_t i = 0; i < of_prompt.size() && !blocks.empty(); ++i) {
        const vector<std::uint64_t> ids(next, next + static_cast<std::ptrdiff_t>(of_prompt[i]));
        next += static_cast<std::ptrdiff_t>(of_prompt[i]);
        const double in_blocks = static_cast<double>(ids.size()) * t.block_tokens;
        const auto tokens = static_cast<int>(std::min<double>(in_blocks, t.rows[i].prompt_tokens));
        t.prompts.emplace_back();
        if (!index.add(t.tree, ids, t.block_tokens, tokens, t.prompts.back()))
            refuse({in.name(), ": the prompts have over 20000000 blocks: cut the trace first"});
    }
    return t;
}

/// Azure's and BurstGPT's formats, told apart by their headers: a row a request.
inline recorded_trace read_csv_trace(byte_stream& in, double unit_s) {
    recorded_trace t;
    std::size_t at = 0, prompt = 0, output = 0;
    vector<std::string> others;  // columns that are not read, "" for those that are
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
            others.emplace_back(is("total tokens") ? "" : name);
        }
        if (std::max({at, prompt, output}) == names.size())
            in.refuse(line, "no known trace begins so: known are Azure (TIMESTAMP,"
                            "ContextTokens,GeneratedTokens), BurstGPT (Timestamp,Model,"
                            "Request tokens,Response tokens) and Mooncake (JSONL with "
                            "timestamp, input_length, output_length)");
        for (const std::size_t i : {at, prompt, output}) others[i].clear();
    };
    each_csv_row(in, on_header, [&](const vector<std::string>& fields, long long line) {
        const auto number = [&](std::size_t i) {
            return parsed_number<double>(trimmed(fields[i])).value_or(not_a_number);
        };
        const double plain = number(at) * (unit_s > 0 ? unit_s : 1);
        if (!add_trace_row(t, in, line,
                           std::isnan(plain) ? seconds_of_date(trimmed(fields[at])) : plain,
                           number(prompt), number(output)))
            return;
        for (std::size_t i = 0; i < others.size(); ++i)
            if (!others[i].empty() && !trimmed(fields[i]).empty() && number(i) != 0)
                t.fields.leave_out(others[i], line);
    });
    return t;
}

/// Returns a trace in any format of `replay`, in the order of time, from 0 on.
inline recorded_trace read_trace(byte_stream& in, double unit_s = 0) {
    in.skip_space();
    recorded_trace t =
        in.peek() == '{' || in.peek() == '[' ? read_json_trace(in, unit_s)
                                             : read_csv_trace(in, unit_s);
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
    const vector<trace_row> rows = std::exchange(t.rows, {});
    const vector<tree_prompt> prompts = std::exchange(t.prompts, {});
    for (const std::size_t i : order) {
        t.rows.push_back(rows[i]);
        t.rows.back().at_s -= rows[order[0]].at_s;
        if (!prompts.empty()) t.prompts.push_back(prompts[i]);
    }
    return t;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
