// units
// One strong type per dimension. All constructors from plain numbers are explicit: a limit, a rate
// or a length of time without its unit does not compile.
#pragma once

#include "api/text.hpp"

namespace llmbench {
inline namespace v1 {

/// A length of time. `300_ms`, `2.5_s`, `10_min`, or any std::chrono duration.
class time_span {
public:
    constexpr time_span() = default;
    static constexpr time_span from_seconds(double s) { time_span t; t.seconds_ = s; return t; }
    template <detail::duration_like D>
    constexpr time_span(const D& d)
        : seconds_(static_cast<double>(d.count()) * static_cast<double>(D::period::num) /
                   static_cast<double>(D::period::den)) {}
    constexpr double seconds() const { return seconds_; }

private:
    double seconds_ = 0;
};

/// Requests per second, `8_rps`.
struct request_rate {
    double per_second = 0;
    constexpr request_rate() = default;
    constexpr explicit request_rate(double v) : per_second(v) {}
};

/// Tokens per second, `400_tps`.
struct token_rate {
    double per_second = 0;
    constexpr token_rate() = default;
    constexpr explicit token_rate(double v) : per_second(v) {}
};

/// A fraction of a whole, `99.5_pct`. The value runs from 0 to 1.
struct fraction {
    double value = 0;
    constexpr fraction() = default;
    constexpr explicit fraction(double v) : value(v) {}
};

/// A number of tokens, `512_tokens`.
struct token_count {
    double tokens = 0;
    constexpr token_count() = default;
    constexpr explicit token_count(double v) : tokens(v) {}
};

/// A number of users, `32_users`.
struct user_count {
    double users = 0;
    constexpr user_count() = default;
    constexpr explicit user_count(double v) : users(v) {}
};

/// An amount of energy, `0.6_J`.
struct energy {
    double joules = 0;
    constexpr energy() = default;
    constexpr explicit energy(double v) : joules(v) {}
};

/// An amount of money, `0.4_usd`.
struct money {
    double usd = 0;
    constexpr money() = default;
    constexpr explicit money(double v) : usd(v) {}
};
/// The cost of a server per hour, busy or not.
struct hourly_cost {
    double usd = 0;
};
constexpr hourly_cost usd_per_hour(double usd) { return {usd}; }

/// A number without a unit: a count, or the value of a server's own gauge.
struct plain_number {
    double value = 0;
    constexpr plain_number() = default;
    constexpr plain_number(double v) : value(v) {}
};

inline namespace literals {
constexpr time_span operator""_us(unsigned long long v) {
    return time_span::from_seconds(static_cast<double>(v) / 1e6);
}
constexpr time_span operator""_us(long double v) {
    return time_span::from_seconds(static_cast<double>(v) / 1e6);
}
constexpr time_span operator""_ms(unsigned long long v) {
    return time_span::from_seconds(static_cast<double>(v) / 1e3);
}
constexpr time_span operator""_ms(long double v) {
    return time_span::from_seconds(static_cast<double>(v) / 1e3);
}
constexpr time_span operator""_s(unsigned long long v) {
    return time_span::from_seconds(static_cast<double>(v));
}
constexpr time_span operator""_s(long double v) {
    return time_span::from_seconds(static_cast<double>(v));
}
constexpr time_span operator""_min(unsigned long long v) {
    return time_span::from_seconds(static_cast<double>(v) * 60);
}
constexpr time_span operator""_min(long double v) {
    return time_span::from_seconds(static_cast<double>(v) * 60);
}
constexpr request_rate operator""_rps(unsigned long long v) {
    return request_rate(static_cast<double>(v));
}
constexpr request_rate operator""_rps(long double v) {
    return request_rate(static_cast<double>(v));
}
constexpr token_rate operator""_tps(unsigned long long v) {
    return token_rate(static_cast<double>(v));
}
constexpr token_rate operator""_tps(long double v) { return token_rate(static_cast<double>(v)); }
constexpr fraction operator""_pct(unsigned long long v) {
    return fraction(static_cast<double>(v) / 100);
}
constexpr fraction operator""_pct(long double v) {
    return fraction(static_cast<double>(v) / 100);
}
constexpr energy operator""_J(unsigned long long v) { return energy(static_cast<double>(v)); }
constexpr energy operator""_J(long double v) { return energy(static_cast<double>(v)); }
constexpr money operator""_usd(unsigned long long v) { return money(static_cast<double>(v)); }
constexpr money operator""_usd(long double v) { return money(static_cast<double>(v)); }
constexpr user_count operator""_users(unsigned long long v) {
    return user_count(static_cast<double>(v));
}
constexpr token_count operator""_tokens(unsigned long long v) {
    return token_count(static_cast<double>(v));
}
constexpr token_count operator""_tokens(long double v) {
    return token_count(static_cast<double>(v));
}

}  // inline namespace literals
}  // inline namespace v1
}  // namespace llmbench
