// how requests and side tasks ended, and the tokens that answers report
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/repeat.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/planning.hpp"

#include <algorithm>  // find_if, max, sort
#include <cmath>  // fabs, isinf, isnan
#include <cstddef>  // size_t
#include <string>
#include <utility>  // move, pair, swap

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The first element that `is_same` accepts, else this one, added at the end.
template <class T, class Same>
T& found_or_added(vector<T>& all, Same&& is_same, T added) {
    const auto at = std::find_if(all.begin(), all.end(), is_same);
    return at != all.end() ? *at : all.emplace_back(std::move(added));
}
/// Sorts a short list. The order of equal elements stays.
template <class T, class Before>
void sort_short(vector<T>& all, std::size_t from, Before&& before) {
    for (std::size_t i = from; i < all.size(); ++i)
        for (std::size_t j = i; j > from && before(all[j], all[j - 1]); --j)
            std::swap(all[j], all[j - 1]);
}

struct status_count {
    request_status status;
    std::size_t count;
    std::string example;
};
/// Measured requests by outcome: ok first, then failures by frequency.
inline vector<status_count> status_counts(const repeat_list& variant) {
    vector<status_count> counts{{request_status::ok, 0, ""}};
    for (const repeat_data& d : variant)
        for (const record& r : d.records) {
            if (!is_measured(r)) continue;
            const auto is_same = [&](const status_count& c) { return c.status == r.status; };
            ++found_or_added(counts, is_same, {r.status, 0, str(r.error)}).count;
        }
    sort_short(counts, 1, [](const auto& a, const auto& b) {
        return a.count != b.count ? a.count > b.count : a.status < b.status;
    });
    return counts;
}
/// The finish reasons of completed requests by frequency, "" where none is given. Servers that
/// invent a reason for each answer are counted as one.
inline vector<std::pair<std::string, std::size_t>> finish_reasons(const repeat_list& variant) {
    constexpr std::size_t most = 20;
    vector<std::pair<std::string, std::size_t>> counts;
    for (const repeat_data& d : variant)
        for (const record& r : d.records) {
            if (!is_pooled(r)) continue;
            std::string reason = str(r.finish_reason);
            const auto is_same = [&](const auto& c) { return c.first == reason; };
            if (counts.size() >= most && !any_of(counts, is_same)) reason = "others";
            ++found_or_added(counts, is_same, {reason, 0}).second;
        }
    sort_short(counts, 0, [](const auto& a, const auto& b) {
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
    vector<std::pair<std::string, std::size_t>> examples{};  // the first ones, with counts
};
inline vector<failure_kind> failure_kinds(const repeat_list& variant) {
    vector<failure_kind> kinds;
    for (const repeat_data& d : variant)
        for (const record& r : d.records) {
            if (!is_measured(r) || !has_failed(r)) continue;
            const auto is_same_kind = [&](const failure_kind& k) {
                return k.status == r.status && k.http_status == r.http_status;
            };
            failure_kind& kind =
                found_or_added(kinds, is_same_kind, {r.status, r.http_status, 0, {}});
            ++kind.count;
            const auto is_same = [error = str(r.error)](const auto& e) { return e.first == error; };
            auto& seen = kind.examples;
            if (seen.size() < 20 || any_of(seen, is_same))
                ++found_or_added(seen, is_same, {str(r.error), 0}).second;
        }
    sort_short(kinds, 0, [](const auto& a, const auto& b) { return a.count > b.count; });
    for (failure_kind& k : kinds)
        sort_short(k.examples, 0, [](const auto& a, const auto& b) { return a.second > b.second; });
    return kinds;
}

/// Lengths in tokens.
struct length_figures {
    double mean = not_a_number, p50 = not_a_number, p90 = not_a_number;
};
inline length_figures length_figures_of(vector<double> lengths) {
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
    vector<double> asked, counted;
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
}  // inline namespace v1
}  // namespace llmbench
