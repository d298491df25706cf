// the requests of a repeat, as they end
#pragma once

#include "api/result.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/wire/http.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // max
#include <array>
#include <cstdint>  // uint32_t, uint64_t
#include <deque>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Adds a request's gaps to the pool if they belong there. Returns the longest one.
inline std::uint32_t count_gaps(const record& r, const gap_list& gaps, std::uint64_t at,
                                gap_counts& pool) {
    std::uint32_t longest = 0;
    for (std::uint64_t k = 0; k < gap_count(r); ++k) {
        longest = std::max(longest, gaps[at + k]);
        if (is_pooled(r)) pool.add(gaps[at + k]);
    }
    return longest;
}

/// Returns the index of a request in its trace.
inline std::size_t index_of(const record& r, std::size_t otherwise) {
    return place_of(r.id.c_str()).value_or(otherwise);
}

struct finished_request {
    std::size_t index = 0;
    record what{};
    std::uint64_t gaps_at = not_listed;
    bool counted = false;
    std::uint32_t longest_gap_us = 0;  // set by counting
};

/// The finished requests of a load and their gaps. Too many gaps become a histogram, oldest first.
/// The first and last event of a request then tell how many are inside the window, unless an edge
/// of the window lies between them: those gaps stay listed.
class request_log {
public:
    request_log() = default;
    request_log(request_log&&) noexcept = default;
    request_log& operator=(request_log&&) noexcept = default;

    void add(std::size_t index, record&& r, const gap_list& gaps) {
        requests_.push_back({index, std::move(r), gaps_.append(gaps)});
    }
    /// Counts at most so many gaps, of requests that ended before a time. Returns how many.
    /// `edges`: where the window begins or ends or may do so, as far as known; future ones are
    /// after that time.
    std::uint64_t count(std::uint64_t most, long long ended_before_ns,
                        const std::array<long long, 3>& edges) {
        std::uint64_t done = 0;
        for (; observed_repeats_ < requests_.size(); ++observed_repeats_) {
            finished_request& f = requests_[observed_repeats_];
            if (f.counted) continue;
            const std::uint64_t n = gap_count(f.what), at = f.gaps_at;
            if (f.what.end_ns >= ended_before_ns || done + n > most) break;
            const bool stays = any_of(edges, [&](long long t) { return spans(f.what, t); });
            f.counted = true;
            f.gaps_at = stays ? spanning_.size() : not_listed;
            f.longest_gap_us = count_gaps(f.what, gaps_, at, pooled_);
            for (std::uint64_t k = 0; stays && k < n; ++k) spanning_.push_back(gaps_[at + k]);
            gaps_.release_before(at + n);
            done += n;
        }
        return done;
    }
    /// Counts all gaps; the window is known.
    void count_all(const time_interval& window) {
        is_counted_ = true;
        count(~0ull, 9223372036854775807ll, {window.from_ns(), window.to_ns(), 0});
    }
    /// Takes all requests of another log.
    void take(request_log&& o) {
        const std::uint64_t listed_from = gaps_.take(std::move(o.gaps_));
        const std::uint64_t spanning_from = spanning_.take(std::move(o.spanning_));
        for (; !o.requests_.empty(); o.requests_.pop_front()) {
            requests_.push_back(std::move(o.requests_.front()));
            finished_request& f = requests_.back();
            if (f.gaps_at != not_listed) f.gaps_at += f.counted ? spanning_from : listed_from;
        }
        pooled_.add(o.pooled_);
        is_counted_ = is_counted_ || o.is_counted_;
        observed_repeats_ = 0;
    }
    bool is_counted() const { return is_counted_; }
    std::deque<finished_request>& requests() { return requests_; }
    const std::deque<finished_request>& requests() const { return requests_; }
    /// Rebuilds the log from records and removes them: the reverse of move_into().
    static request_log again(repeat_data& d) {
        request_log log;
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            const std::size_t index = index_of(d.records[i], i);
            log.requests_.push_back({index, std::move(d.records[i]), d.gap_offsets[i],
                                     d.gaps_counted, d.gaps_counted ? d.longest_gaps[i] : 0});
        }
        // Gaps are released from the front, so they are counted in that order.
        sort_by(log.requests_, [](const finished_request& f) { return f.gaps_at; });
        (d.gaps_counted ? log.spanning_ : log.gaps_) = std::move(d.gaps);
        log.pooled_ = std::move(d.pooled_gaps);
        log.is_counted_ = d.gaps_counted;
        d.records.clear();
        d.gap_offsets.clear();
        d.longest_gaps.clear();
        d.gaps = {};
        d.pooled_gaps = {};
        return log;
    }
    /// Becomes the records of a repeat in order of planned sends.
    void move_into(repeat_data& d) {
        sort_by(requests_, [](const finished_request& f) { return f.index; });
        d.records.reserve(requests_.size());
        d.gap_offsets.reserve(requests_.size());
        for (; !requests_.empty(); requests_.pop_front()) {
            finished_request& f = requests_.front();
            d.records.push_back(std::move(f.what));
            d.gap_offsets.push_back(f.gaps_at);
            if (is_counted_) d.longest_gaps.push_back(f.longest_gap_us);
        }
        d.gaps_counted = is_counted_;
        d.gaps = std::move(is_counted_ ? spanning_ : gaps_);
        d.pooled_gaps = std::move(pooled_);
    }

private:
    std::deque<finished_request> requests_{};
    gap_list gaps_{}, spanning_{};
    gap_counts pooled_{};
    std::size_t observed_repeats_ = 0;  // requests, from the front
    bool is_counted_ = false;           // all of it, or what was taken
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
