// the time until a load is answered as before a fault
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/measured/recovery.hpp"
#include "core/measured/repeat.hpp"

#include <cstddef>  // size_t

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr double recovered_for_s = 5;
/// Seconds from an event until requests of 5 s, as many as before, meet the objective on ttft: the
/// first one does, and of all at least its fraction. Infinite without such 5 s before the end. An
/// open loop always sends as many.
inline double recovery_of(const repeat_data& d, long long event_ns, const recovery_parameters& t) {
    const auto span_ns = static_cast<long long>(recovered_for_s * 1e9);
    constexpr double as_many = 0.8;  // for a closed loop
    vector<long long> at;
    vector<std::size_t> bad = {0};  // before each request
    double before = 0;
    for (const record& r : d.records) {
        if (!is_measured(r) || has_left(r)) continue;
        before += r.scheduled_ns < event_ns && r.scheduled_ns >= event_ns - span_ns;
        if (r.scheduled_ns < event_ns) continue;
        const bool kept = r.status == request_status::ok &&
                          static_cast<double>(r.first_token_ns - r.scheduled_ns) <= t.ttft_s * 1e9;
        at.push_back(r.scheduled_ns);
        bad.push_back(bad.back() + !kept);
    }
    const long long whole_ns = event_ns - d.window.from_ns();
    if (whole_ns > 0 && whole_ns < span_ns)
        before *= static_cast<double>(span_ns) / static_cast<double>(whole_ns);
    for (std::size_t i = 0, end = 0; i < at.size(); ++i) {
        const long long from_ns = i == 0 ? event_ns : at[i];
        if (from_ns + span_ns > d.window.to_ns()) break;
        while (end < at.size() && at[end] < from_ns + span_ns) ++end;
        const auto all = static_cast<double>(end - i);
        const auto missed = static_cast<double>(bad[end] - bad[i]);
        if (bad[i + 1] == bad[i] && missed <= (1 - t.quantile) * all + 1e-9 &&
            (t.is_open_loop || all >= as_many * before))
            return static_cast<double>(from_ns - event_ns) * 1e-9;
    }
    return infinity;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
