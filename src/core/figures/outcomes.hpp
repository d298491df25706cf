// how requests ended, and the tokens that their answers report
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"

#include <algorithm>  // find_if, max, sort
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

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
