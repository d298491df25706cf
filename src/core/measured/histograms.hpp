// histograms of lateness and of gaps
#pragma once

#include <algorithm>  // max, min
#include <array>
#include <bit>  // bit_width
#include <cmath>  // ldexp
#include <cstdint>  // uint64_t, uint32_t
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How often a delay was how long. Sixteen classes an octave: a quantile is at most 1/16 too high.
class lag_counts {
public:
    void add(long long ns) {
        const auto v = static_cast<std::uint64_t>(std::max(ns, 0ll));
        const auto width = static_cast<std::size_t>(std::bit_width(v));
        ++counts_[width < 5 ? v : (width - 4) * 16 + ((v >> (width - 5)) & 15)];
        ++n_;
        max_ns_ = std::max(max_ns_, ns);
    }
    void add(const lag_counts& o) {
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += o.counts_[i];
        n_ += o.n_;
        max_ns_ = std::max(max_ns_, o.max_ns_);
    }
    std::uint64_t count() const { return n_; }
    double max() const { return static_cast<double>(max_ns_) * 1e-9; }
    /// Nearest rank, seconds; 0 where there is none.
    double quantile(double q) const {
        const double rank = q * static_cast<double>(n_);
        double seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += static_cast<double>(counts_[i]);
            const double above = i < 16 ? static_cast<double>(i)
                                        : std::ldexp(17.0 + static_cast<double>(i % 16),
                                                     static_cast<int>(i / 16) - 1);
            if (seen > 0 && seen >= rank) return std::min(above * 1e-9, max());
        }
        return 0;
    }

private:
    std::array<std::uint64_t, 976> counts_{};
    std::uint64_t n_ = 0;
    long long max_ns_ = 0;
};

/// How many gaps were how long, in the memory of 13,000 of them. Up to 511 us every value has a
/// class of its own; above there are 256 classes an octave, and a value is told as the middle of
/// its class. A class from v on is at most v / 256 wide, so that is at most 1/512 = 0.2 % off, and
/// so is every quantile: the value of its rank lies in the class that is told. Mean and extremes
/// are exact.
class gap_counts {
public:
    void add(std::uint32_t us) {
        if (counts_.empty()) counts_.resize(class_of(4294967295u) + 1);
        ++counts_[class_of(us)];
        ++n_;
        sum_us_ += us;
        min_us_ = std::min(min_us_, us);
        max_us_ = std::max(max_us_, us);
    }
    void add(const gap_counts& o) {
        if (counts_.empty()) { *this = o; return; }
        for (std::size_t i = 0; i < o.counts_.size(); ++i) counts_[i] += o.counts_[i];
        n_ += o.n_;
        sum_us_ += o.sum_us_;
        min_us_ = std::min(min_us_, o.min_us_);
        max_us_ = std::max(max_us_, o.max_us_);
    }
    std::uint64_t size() const { return n_; }
    std::uint64_t sum_us() const { return sum_us_; }
    /// The value of this rank, counted from 0, in microseconds.
    double at(std::uint64_t rank) const {
        if (rank == 0) return min_us_;
        std::uint64_t seen = 0;
        for (std::size_t c = 0; c < counts_.size() && rank + 1 < n_; ++c)
            if ((seen += counts_[c]) > rank)
                return std::min<double>(std::max<double>(middle_of(c), min_us_), max_us_);
        return max_us_;
    }
    static constexpr double relative_error = 1.0 / 512;

private:
    static std::size_t class_of(std::uint32_t us) {
        if (us < 512) return us;
        const auto shift = static_cast<std::size_t>(std::bit_width(us)) - 9;
        return shift * 256 + (us >> shift);
    }
    static double middle_of(std::size_t c) {
        if (c < 512) return static_cast<double>(c);
        const std::size_t shift = c / 256 - 1;
        const auto first = static_cast<std::uint64_t>(c - shift * 256) << shift;
        return static_cast<double>(first) + (std::ldexp(1.0, static_cast<int>(shift)) - 1) / 2;
    }
    std::vector<std::uint64_t> counts_{};
    std::uint64_t n_ = 0, sum_us_ = 0;
    std::uint32_t min_us_ = 4294967295u, max_us_ = 0;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
