// whether a load has settled
#pragma once

#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // max, min
#include <cmath>  // fabs, log, sqrt
#include <cstddef>  // size_t
#include <span>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A request of a warm-up, finished or not.
struct warming_request {
    bool has_ended = false, ok = false;
    double end_s = 0, ttft_s = 0, tokens = 0;
};

/// A warm-up that ends when the server is stable.
struct warmup_seen {
    bool asked = false, stable = false;
    double seconds = 0;                        // until the measured part
    std::size_t requests = 0;                  // sent in it
    double first_ttft_s = 0, last_ttft_s = 0;  // geometric means of the first and last ten
};

inline constexpr std::size_t least_of_settling = 30;
inline constexpr double settled_within = 0.10;

/// Whether two samples of logarithms differ by at most 10 % plus two standard errors.
inline bool is_alike(const vector<double>& a, const vector<double>& b) {
    const double se = std::sqrt(sample_variance(a) / static_cast<double>(a.size()) +
                                sample_variance(b) / static_cast<double>(b.size()));
    return std::fabs(mean_of(a) - mean_of(b)) <= std::log(1 + settled_within) + 2 * se;
}

/// The test of until_stable. It uses requests in order of sends up to the first unfinished one, as
/// a cold first wave delays everything. In the later half, at least 30, the first and last third
/// must agree in ttft and in token rate, up to 10 % and two standard errors.
inline bool is_settled(std::span<const warming_request> sent) {
    std::size_t known = 0;
    while (known < sent.size() && sent[known].has_ended) ++known;
    if (known < least_of_settling) return false;
    const std::size_t n = std::max(least_of_settling, known / 2), third = n / 3;
    struct part {
        vector<double> ttft{};
        double tokens = 0, squares = 0, from = infinity, to = 0;
    };
    const auto part_from = [&](std::size_t begin) {
        part p;
        for (std::size_t i = begin; i < begin + third; ++i) {
            const warming_request& r = sent[i];
            p.from = std::min(p.from, r.end_s);
            p.to = std::max(p.to, r.end_s);
            if (!r.ok || r.ttft_s <= 0) continue;
            p.ttft.push_back(std::log(r.ttft_s));
            p.tokens += r.tokens;
            p.squares += r.tokens * r.tokens;
        }
        return p;
    };
    const part first = part_from(known - n), last = part_from(known - third);
    if (first.ttft.size() < third / 2 + 1 || last.ttft.size() < third / 2 + 1) return false;
    if (!is_alike(first.ttft, last.ttft)) return false;
    if (first.to <= first.from || last.to <= last.from || first.tokens <= 0 || last.tokens <= 0)
        return false;
    // Arrivals are random: the squared error of a rate is the sum of squared tokens divided by the
    // squared sum.
    const double se = std::sqrt(first.squares / (first.tokens * first.tokens) +
                                last.squares / (last.tokens * last.tokens));
    const double change = std::log(last.tokens / (last.to - last.from)) -
                          std::log(first.tokens / (first.to - first.from));
    return std::fabs(change) <= std::log(1 + settled_within) + 2 * se;
}

/// The geometric mean of ttft over the first ten answers from a request on; NaN if none.
template <class At>
double ttft_from(At sent, At to) {
    vector<double> logs;
    for (; sent != to && logs.size() < 10; ++sent)
        if (sent->has_ended && sent->ok && sent->ttft_s > 0) logs.push_back(std::log(sent->ttft_s));
    return logs.empty() ? not_a_number : std::exp(mean_of(logs));
}

/// One repeat's warm-up in a sentence.
inline std::string warmup_sentence(const warmup_seen& w, const std::string& whose) {
    const std::string ttft = "ttft " + time_text(w.first_ttft_s) + " of its first ten requests, " +
                             time_text(w.last_ttft_s) + " of the last";
    const std::string so_long =
        time_text(w.seconds) + printed(" of warm-up and %zu requests: ", w.requests) + ttft;
    return w.stable ? whose + " was stable after " + so_long
                    : whose + " never became stable in " + so_long +
                          "; what was measured then may still have been on its way";
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
