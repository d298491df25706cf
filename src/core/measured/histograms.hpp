// histograms of lateness and of gaps
#pragma once

#include <algorithm>  // clamp, max, min
#include <array>
#include <bit>  // bit_width
#include <cmath>  // ldexp
#include <cstdint>  // uint64_t, uint32_t
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Classes of values: exact below 2^(bits + 1), then 2^bits per octave.
template <unsigned bits>
struct octave_classes {
    static constexpr std::size_t an_octave = std::size_t{1} << bits;
    static std::size_t of(std::uint64_t v) {
        if (v < 2 * an_octave) return static_cast<std::size_t>(v);
        const auto shift = static_cast<std::size_t>(std::bit_width(v)) - bits - 1;
        return shift * an_octave + static_cast<std::size_t>(v >> shift);
    }
    /// The first value of a class, and its number of values.
    static double first(std::size_t c) {
        const std::size_t s = shift(c);
        return std::ldexp(static_cast<double>(c - s * an_octave), static_cast<int>(s));
    }
    static double width(std::size_t c) { return std::ldexp(1.0, static_cast<int>(shift(c))); }

private:
    static std::size_t shift(std::size_t c) { return c < 2 * an_octave ? 0 : c / an_octave - 1; }
};

/// A histogram of delays. With 16 classes per octave a quantile is at most 1/16 too high.
class lag_counts {
public:
    void add(long long ns) {
        const auto v = static_cast<std::uint64_t>(std::max(ns, 0ll));
        ++counts_[classes::of(v)];
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
    /// By nearest rank, in seconds; 0 if empty.
    double quantile(double q) const {
        const double rank = q * static_cast<double>(n_);
        double seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += static_cast<double>(counts_[i]);
            const double above = i < classes::an_octave ? static_cast<double>(i)
                                                        : classes::first(i) + classes::width(i);
            if (seen > 0 && seen >= rank) return std::min(above * 1e-9, max());
        }
        return 0;
    }

private:
    using classes = octave_classes<4>;
    std::array<std::uint64_t, 976> counts_{};
    std::uint64_t n_ = 0;
    long long max_ns_ = 0;
};

/// A histogram of gaps with the memory of 13,000 gaps. It is exact up to 511 us, then has 256
/// classes per octave, each with the value of its middle. A class at v is at most v / 256 wide, so
/// values and quantiles are at most 1/512 = 0.2 % off. Mean and extremes are exact.
class gap_counts {
public:
    void add(std::uint32_t us, std::uint64_t times = 1) {
        if (counts_.empty()) counts_.resize(classes::of(4294967295u) + 1);
        counts_[classes::of(us)] += times;
        n_ += times;
        sum_us_ += us * times;
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
    /// Calls `f(microseconds, number)` in rising order.
    template <class F>
    void for_each(F&& f) const {
        if (n_ > 0) f(static_cast<double>(min_us_), std::uint64_t{1});
        for (std::size_t c = 0; c < counts_.size(); ++c) {
            const std::uint64_t n = counts_[c] - (c == classes::of(min_us_)) -
                                    (c == classes::of(max_us_) && n_ > 1);
            if (n > 0) f(std::clamp<double>(middle_of(c), min_us_, max_us_), n);
        }
        if (n_ > 1) f(static_cast<double>(max_us_), std::uint64_t{1});
    }
    static constexpr double relative_error = 1.0 / 512;

private:
    using classes = octave_classes<8>;
    static double middle_of(std::size_t c) {
        return classes::first(c) + (classes::width(c) - 1) / 2;
    }
    std::vector<std::uint64_t> counts_{};
    std::uint64_t n_ = 0, sum_us_ = 0;
    std::uint32_t min_us_ = 4294967295u, max_us_ = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
