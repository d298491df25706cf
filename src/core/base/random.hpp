// random numbers
// Own generators and distributions: std::*_distribution differ between standard libraries, and the
// same seed must give the same traffic.
#pragma once

#include "core/base/statistics.hpp"

#include <algorithm>  // max
#include <array>
#include <cmath>  // log, pow, sqrt
#include <cstdint>  // uint64_t

namespace llmbench {
inline namespace v1 {
namespace detail {

/// SplitMix64 (Steele, Lea, Flood 2014): one well-mixed value for each input.
inline std::uint64_t mixed(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/// The position of the i-th of n in a permutation by the key, without a list: a swap-or-not shuffle
/// (Hoang, Morris, Rogaway, CRYPTO 2012).
inline std::uint64_t shuffled(std::uint64_t key, std::uint64_t i, std::uint64_t n) {
    for (std::uint64_t round = 0; round < 32; ++round) {
        key = mixed(key + round);
        std::uint64_t other = key % n + n - i;
        if (other >= n) other -= n;
        if (mixed(key ^ std::max(i, other)) >> 63) i = other;
    }
    return i;
}

/// xoshiro256** (Blackman, Vigna 2018).
class generator {
public:
    explicit generator(std::uint64_t seed, std::uint64_t stream = 0) {
        std::uint64_t x = mixed(seed) ^ mixed(stream + 0x632BE59BD9B4E019ull);
        for (auto& s : state_) s = x = mixed(x);
    }
    std::uint64_t next() {
        const std::uint64_t result = rotated(state_[1] * 5, 7) * 9;
        const std::uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = rotated(state_[3], 45);
        return result;
    }
    /// Uniform, strictly between 0 and 1.
    // 52 bits and a half: with 53 the largest would round to 1.
    double uniform() { return (static_cast<double>(next() >> 12) + 0.5) * 0x1p-52; }
    /// Uniform on 0 .. n-1.
    std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>(uniform() * static_cast<double>(n));
    }
    double exponential() { return -std::log(uniform()); }
    double normal() { return normal_quantile(uniform()); }
    /// Marsaglia and Tsang (2000); shapes below 1 by their boost.
    double gamma(double shape) {
        if (shape < 1) {
            const double u = uniform();
            return gamma(shape + 1) * std::pow(u, 1 / shape);
        }
        const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
        for (;;) {
            const double x = normal(), v = std::pow(1 + c * x, 3);
            if (v > 0 && std::log(uniform()) < 0.5 * x * x + d - d * v + d * std::log(v))
                return d * v;
        }
    }

private:
    static std::uint64_t rotated(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    std::array<std::uint64_t, 4> state_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
