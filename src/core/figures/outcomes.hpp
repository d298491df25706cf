// how requests ended, and the tokens that their answers report
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/text.hpp"
#include "core/base/statistics.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/planning.hpp"

#include <algorithm>  // find_if, max, sort
#include <cmath>  // fabs
#include <string>
#include <string_view>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

struct status_count {
    request_status status;
    std::size_t count;
    std::string example;
};
/// Measured requests by outcome: ok first, then failures by frequency.
inline std::vector<status_count> status_counts(const repeat_list& variant) {
    std::vector<status_count> counts{{request_status::ok, 0, ""}};
    for (const repeat_data& d : variant)
        for (const record& r : d.records) {
            if (!is_measured(r)) continue;
            auto at = std::find_if(counts.begin(), counts.end(),
                                   [&](const status_count& c) { return c.status == r.status; });
            if (at == counts.end()) at = counts.insert(counts.end(), {r.status, 0, str(r.error)});
            ++at->count;
        }
    std::sort(counts.begin() + 1, counts.end(), [](const auto& a, const auto& b) {
        return a.count != b.count ? a.count > b.count : a.status < b.status;
    });
    return counts;
}
/// The finish reasons of completed requests by frequency, "" where none is given. Servers that
/// invent a reason for each answer are counted as one.
inline std::vector<std::pair<std::string, std::size_t>> finish_reasons(
    const repeat_list& variant) {
    constexpr std::size_t most = 20;
    std::vector<std::pair<std::string, std::size_t>> counts;
    const auto add = [&](std::string_view reason) {
        const auto same = [&](const auto& c) { return c.first == reason; };
        auto at = std::find_if(counts.begin(), counts.end(), same);
        if (at == counts.end() && counts.size() >= most) {
            reason = "others";
            at = std::find_if(counts.begin(), counts.end(), same);
        }
        if (at == counts.end()) at = counts.insert(counts.end(), {std::string(reason), 0});
        ++at->second;
    };
    for (const repeat_data& d : variant)
        for (const record& r : d.records)
            if (is_pooled(r)) add({r.finish_reason.c_str(), r.finish_reason.size()});
    std::sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    return counts;
}
/// Counts completed requests whose usage is below their content events. Each event brings at least
/// one token, so that usage is wrong.
inline std::size_t usage_below_events(const repeat_list& variant) {
    std::size_t n = 0;
    for (const repeat_data& d : variant)
        for (const record& r : d.records)
            n += is_pooled(r) && r.output_tokens > 0 && r.output_tokens < r.events;
    return n;
}

/// Measured requests with reasoning, and the tokens of those that report them.
struct reasoning_counts {
    std::size_t requests = 0, unreported = 0;
    long long tokens = 0, output = 0;
    long long hidden = 0;  // never streamed
};
inline reasoning_counts reasoning_counts_of(const repeat_list& variant) {
    reasoning_counts c;
    for (const repeat_data& d : variant)
        for (const record& r : d.records) {
            if (!is_pooled(r) || !has_reasoned(r)) continue;
            ++c.requests;
            c.hidden += std::max(r.hidden_tokens, 0);
            if (r.reasoning_tokens < 0) { ++c.unreported; continue; }
            c.tokens += r.reasoning_tokens;
            c.output += r.output_tokens;
        }
    return c;
}

/// Failures of one kind with their messages by frequency.
struct failure_kind {
    request_status status = request_status::ok;
    int http_status = 0;
    std::size_t count = 0;
    std::vector<std::pair<std::string, std::size_t>> examples{};  // the first ones, with counts
};
inline std::vector<failure_kind> failure_kinds(const repeat_list& variant) {
    std::vector<failure_kind> kinds;
    for (const repeat_data& d : variant)
        for (const record& r : d.records) {
            if (!is_measured(r) || !has_failed(r)) continue;
            auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const failure_kind& k) {
                return k.status == r.status && k.http_status == r.http_status;
            });
            if (kind == kinds.end())
                kind = kinds.insert(kinds.end(), {r.status, r.http_status, 0, {}});
            ++kind->count;
            auto& seen = kind->examples;
            const std::string_view said(r.error.c_str(), r.error.size());
            const auto same = std::find_if(seen.begin(), seen.end(),
                                           [&](const auto& e) { return e.first == said; });
            if (same != seen.end()) ++same->second;
            else if (seen.size() < 20) seen.emplace_back(said, 1);
        }
    const auto by_count = [](auto&& count) {
        return [=](const auto& a, const auto& b) { return count(a) > count(b); };
    };
    std::sort(kinds.begin(), kinds.end(), by_count([](const failure_kind& k) { return k.count; }));
    for (failure_kind& k : kinds)
        std::sort(k.examples.begin(), k.examples.end(), by_count([](auto& e) { return e.second; }));
    return kinds;
}

/// Lengths in tokens.
struct length_figures {
    double mean = not_a_number, p50 = not_a_number, p90 = not_a_number;
};
inline length_figures length_figures_of(std::vector<double> lengths) {
    std::sort(lengths.begin(), lengths.end());
    return {mean_of(lengths), nearest_rank(lengths, 0.5), nearest_rank(lengths, 0.9)};
}

/// Prompt lengths as asked for and as the server counted them. Not known where the workload sets no
/// total length, or the server counted nothing.
struct prompt_lengths {
    bool known = false;
    length_figures asked{}, counted{};
    /// The means differ by at most 2 %.
    bool are_as_asked() const {
        return !known || std::fabs(counted.mean / asked.mean - 1) <= 0.02;
    }
};
inline prompt_lengths prompt_lengths_of(const plan& p, const repeat_list& variant) {
    if (!makes_up_prompts(p) || p.sent->stride > 1 || p.sent->is_read || p.sent->described.is_there)
        return {};
    std::vector<double> asked, counted;
    for (std::size_t i = 0; i < variant.size(); ++i) {  // counts those set aside, too
        const repeat_data& d = variant[i];
        for (const record& r : d.records) {
            if (!is_measured(r) || r.status != request_status::ok || r.prompt_tokens <= 0) continue;
            const auto place = static_cast<std::size_t>(r.conversation);
            asked.push_back(item_of(p, place).prompt_tokens);
            counted.push_back(r.prompt_tokens);
        }
    }
    if (asked.empty()) return {};
    return {true, length_figures_of(std::move(asked)), length_figures_of(std::move(counted))};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
