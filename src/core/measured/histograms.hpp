// histograms of lateness and of gaps
#pragma once

#include "core/base/vector.hpp"

#include <algorithm>  // clamp, max, min
#include <bit>  // bit_width
#include <cmath>  // ldexp
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A histogram of whole numbers: exact below 2^(bits + 1), then with 2^bits classes per octave. The
/// number of values, their sum and extremes are exact.
template <unsigned bits>
class octave_counts {
public:
    void add(std::uint64_t v, std::uint64_t times = 1) {
        if (counts_.empty()) counts_.resize((66 - bits) << bits);
        counts_[class_of(v)] += times;
        n_ += times;
        sum_ += v * times;
        min_ = std::min(min_, v);
        max_ = std::max(max_, v);
    }
    void add(const octave_counts& o) {
        if (counts_.empty()) { *this = o; return; }
        for (std::size_t i = 0; i < o.counts_.size(); ++i) counts_[i] += o.counts_[i];
        n_ += o.n_;
        sum_ += o.sum_;
        min_ = std::min(min_, o.min_);
        max_ = std::max(max_, o.max_);
    }
    std::uint64_t size() const { return n_; }
    std::uint64_t sum() const { return sum_; }
    std::uint64_t max() const { return max_; }
    /// By nearest rank, at most 2^-bits too high; 0 if empty.
    double quantile(double q) const {
        const double rank = q * static_cast<double>(n_);
        double seen = 0;
        for (std::size_t c = 0; c < counts_.size(); ++c) {
            seen += static_cast<double>(counts_[c]);
            const double above = c < an_octave ? static_cast<double>(c) : first(c) + width(c);
            if (seen > 0 && seen >= rank) return std::min(above, static_cast<double>(max_));
        }
        return 0;
    }
    /// Calls `f(value, number)` in rising order. Those between the extremes have the value of the
    /// middle of their class.
    template <class F>
    void for_each(F&& f) const {
        const auto least = static_cast<double>(min_), most = static_cast<double>(max_);
        if (n_ > 0) f(least, std::uint64_t{1});
        for (std::size_t c = 0; c < counts_.size(); ++c) {
            const std::uint64_t n =
                counts_[c] - (c == class_of(min_)) - (c == class_of(max_) && n_ > 1);
            if (n > 0) f(std::clamp(first(c) + (width(c) - 1) / 2, least, most), n);
        }
        if (n_ > 1) f(most, std::uint64_t{1});
    }

private:
    static constexpr std::size_t an_octave = std::size_t{1} << bits;
    static std::size_t class_of(std::uint64_t v) {
        if (v < 2 * an_octave) return static_cast<std::size_t>(v);
        const auto octave = static_cast<std::size_t>(std::bit_width(v)) - bits - 1;
        return octave * an_octave + static_cast<std::size_t>(v >> octave);
    }
    static std::size_t octave_of(std::size_t c) {
        return c < 2 * an_octave ? 0 : c / an_octave - 1;
    }
    static double first(std::size_t c) {
        const std::size_t octave = octave_of(c);
        return std::ldexp(static_cast<double>(c - octave * an_octave), static_cast<int>(octave));
    }
    static double width(std::size_t c) {
        return std::ldexp(1.0, static_cast<int>(octave_of(c)));
    }

    vector<std::uint64_t> counts_{};
    std::uint64_t n_ = 0, sum_ = 0, min_ = ~std::uint64_t{0}, max_ = 0;
};

/// Delays.
class lag_counts {
public:
    void add(long long ns) { counts_.add(static_cast<std::uint64_t>(std::max(ns, 0ll))); }
    void add(const lag_counts& o) { counts_.add(o.counts_); }
    std::uint64_t count() const { return counts_.size(); }
    /// In seconds.
    double quantile(double q) const { return counts_.quantile(q) * 1e-9; }
    double max() const { return static_cast<double>(counts_.max()) * 1e-9; }

private:
    octave_counts<4> counts_{};
};
/// Gaps in microseconds, with the memory of 30,000 of them. A class at v is at most v / 256 wide,
/// so values and quantiles are at most 1/512 = 0.2 % off.
using gap_counts = octave_counts<8>;
inline constexpr double gap_error = 1.0 / 512;

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
