// loads that are searched, and objectives on a capacity
#pragma once

#include "api/doctest.hpp"
#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v1 {

/// A load that is searched, up to this: `poisson(up_to(64_rps))`, `closed_loop(up_to(256))`.
struct searched_rate {
    request_rate most{};
};
struct searched_users {
    long long most = 0;
};
constexpr searched_rate up_to(request_rate most) { return {most}; }
constexpr searched_users up_to(user_count most) { return {static_cast<long long>(most.users)}; }
template <detail::integer I>
constexpr searched_users up_to(I users) { return {static_cast<long long>(users)}; }

class capacity_result;
namespace detail {
/// Defined in this extension's implementation. If it is missing, the linker shows the name.
extern const bool include_llmbench_capacity_hpp_where_LLMBENCH_MAIN_is;

struct search_access {
    template <class A>
    static A searched(A at_most) {
        at_most.data_.is_searched = include_llmbench_capacity_hpp_where_LLMBENCH_MAIN_is;
        return at_most;
    }
    static capacity_result capacity_in(const result& r);
};
}  // namespace detail

inline open_loop constant(searched_rate rate) {
    return detail::search_access::searched(constant(rate.most));
}
inline open_loop poisson(searched_rate rate) {
    return detail::search_access::searched(poisson(rate.most));
}
inline open_loop gamma(searched_rate rate, double burstiness) {
    return detail::search_access::searched(gamma(rate.most, burstiness));
}
inline closed_loop_users closed_loop(searched_users users) {
    return detail::search_access::searched(closed_loop_users(users.most));
}

/// A limit on a capacity: a rate, or a number of users.
struct capacity_limit {
    double bound = 0;
    bool in_users = false;
    source_line at{};
    capacity_limit(request_rate r, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE())
        : bound(r.per_second), at{file, line} {}
    capacity_limit(user_count n, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : bound(n.users), in_users(true), at{file, line} {}
};
using capacity_metric = include_llmbench_capacity_hpp;
/// For a scenario with `up_to(...)`: `capacity >= 12_rps`, `capacity >= 64_users`.
inline slo operator>=(capacity_metric, const capacity_limit& l) {
    const auto id = l.in_users ? detail::metric_id::capacity_in_users
                               : detail::metric_id::capacity_in_rate;
    const double bound = detail::include_llmbench_capacity_hpp_where_LLMBENCH_MAIN_is ? l.bound : 0;
    return {detail::make_statistic(detail::statistic_kind::value, id, 0), false, bound, 0, false,
            l.at};
}
slo operator>=(capacity_metric, relative_limit) = delete;  // >= the load that find_capacity() finds
template <class T>
void operator==(capacity_metric, const T&) = delete;

/// The result of find_capacity. Loads are requests/s, or users of a closed loop. Tables, `measured`
/// and `estimate` are of the highest load that the server was shown to carry.
class capacity_result : public result {
public:
    capacity_result() = default;
    /// Returns the highest load shown to meet all objectives; 0: none. In at most 2.5 % of the
    /// searches the load does not meet them, with the same arrivals and prompts.
    double low() const { return low_; }
    /// Returns the lowest load shown to miss an objective; infinite: none. In at most 2.5 % of the
    /// searches the load meets all.
    double high() const { return high_; }
    /// Returns the limiting objective: "p95(ttft)", "error_rate" or "the server's throughput".
    const types::text& limiting_objective() const { return limiting_objective_; }
    int probes() const { return probes_; }  ///< number of loads that were measured
    /// Returns "capacity in [30, 34] users, limited by p95(ttft), 13 probes".
    const types::text& line() const { return line_; }
    /// Returns the same with every probe: its load, its margin to a miss and its outcome.
    const types::text& explain() const { return explained_; }
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const capacity_result& c) {
        o << c.line_.c_str();
        return o;
    }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const capacity_result& c) { return c.line_.c_str(); }
#endif

private:
    friend struct detail::search_access;
    double low_ = 0, high_ = 0;
    int probes_ = 0;
    types::text limiting_objective_{}, line_{}, explained_{};
};

/// Searches the highest load that meets the scenario's objectives, with arrivals `up_to(...)`. Each
/// end of the interval is wrong in at most 2.5 % of the searches, from at most 16 probes.
/// Objectives on the capacity get verdicts, and nothing fails; otherwise as run().
capacity_result find_capacity(const scenario& s, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE());

}  // inline namespace v1
}  // namespace llmbench
