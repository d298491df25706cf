// metrics of your own
// A function of one completed request is a metric like ours: the same statistics, verdicts,
// conditions, drifts, baselines and reports.
#pragma once

#include "api/metrics.hpp"
#include "api/text.hpp"

namespace llmbench {
inline namespace v1 {

// The unit of the function's value, and which side of a limit is good.
enum class own_time : unsigned char { in_seconds };             ///< fewer are better
enum class own_speed : unsigned char { in_tokens_per_second };  ///< more are better
enum class own_cost : unsigned char { less_is_better };         ///< plain numbers
enum class own_value : unsigned char { more_is_better };
using enum own_time;
using enum own_speed;
using enum own_cost;
using enum own_value;

struct record;
namespace detail {
inline constexpr int max_own_metrics = 32;
inline constexpr auto first_own_metric =
    static_cast<metric_id>(static_cast<int>(metric_id::capacity_in_users) + 1);
inline constexpr auto no_own_metric =
    static_cast<metric_id>(static_cast<int>(first_own_metric) + max_own_metrics);
// Each with one of our metrics that has its unit and side.
of_requests<time_span, bound_side::at_most, metric_id::ttft> row_of_own(own_time);
of_requests<token_rate, bound_side::at_least, metric_id::prefill_speed> row_of_own(own_speed);
of_requests<plain_number, bound_side::at_most, metric_id::preemptions> row_of_own(own_cost);
of_requests<plain_number, bound_side::at_least, metric_id::tokens_per_event> row_of_own(own_value);

enum class counted : unsigned char { nothing, prompt, cached, output };
struct request_source {
    virtual double value(metric_id m) = 0;
    virtual long long gaps() = 0;
    virtual double gap(long long i) = 0;
    virtual const record& read(counted what) = 0;
    virtual const char* label() = 0;

protected:
    ~request_source() = default;
};
}  // namespace detail

/// A completed request. A missing value is NaN; a metric without a value returns NaN. If the client
/// may have been late, the function is called again with the other possible times.
class request_view {
public:
    explicit request_view(detail::request_source& of) : of_(of) {}
    /// Returns one of our metrics in SI units: r[ttft], r[e2e], r[tpot]; r[itl] is the longest gap.
    template <detail::request_metric M>
        requires(__is_enum(M))
    double operator[](M m) const { return of_.value(detail::id_of(m)); }
    /// Gaps between content events: their number, and each in seconds, counted from 0.
    types::whole gaps() const { return of_.gaps(); }
    double gap(types::whole i) const { return of_.gap(i); }
    double prompt_tokens() const;  ///< by the server's usage
    double cached_tokens() const;  ///< prompt tokens from the prefix cache, by usage
    double output_tokens() const;  ///< by usage; content events for an API without usage
    double events() const;         ///< content events
    double content_bytes() const;  ///< of the generated text; a part of a tool call counts as 256
    double turn() const;           ///< in its conversation, from 1
    const char* finish_reason() const;  ///< "stop", "length"; "": none
    const char* label() const { return of_.label(); }  ///< of its part of the workload, or ""

private:
    detail::request_source& of_;
};

/// A metric of yours: `p95(worst_gap) <= 200_ms`. In a header, declare it `inline const`.
template <class Kind>
class metric {
public:
    /// A metric of another file may not be constructed yet.
    constexpr detail::metric_id id() const {
        return id_ == detail::metric_id{} ? detail::no_own_metric : id_;
    }

private:
    friend constexpr auto row_of(const metric&) { return decltype(detail::row_of_own(Kind{}))(); }
    template <class K>
    friend metric<K> of_request(const char* name, K, double (*value)(const request_view&));
    constexpr explicit metric(detail::metric_id id) : id_(id) {}
    detail::metric_id id_;
};
namespace detail {
template <class Kind>
constexpr metric_id id_of(const metric<Kind>& m) { return m.id(); }

metric_id own_metric(const char* name, metric_id like, double (*value)(const request_view&));
}  // namespace detail

/// `const metric gap = of_request("gap", in_seconds, [](const request_view& r) { ... });`
/// The function is called for completed requests only; failed ones have the worst value.
template <class Kind>
metric<Kind> of_request(const char* name, Kind, double (*value)(const request_view&)) {
    constexpr auto like = decltype(detail::row_of_own(Kind{}))::first;
    return metric<Kind>(detail::own_metric(name, like, value));
}

}  // inline namespace v1
}  // namespace llmbench
