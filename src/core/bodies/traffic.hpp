// functions of arrivals
#pragma once

#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"

#include <initializer_list>  // .slos = {...}

namespace llmbench {
inline namespace v0 {
namespace detail {

inline open_loop open_loop_of(arrival_kind kind, double rate) {
    arrival_data d;
    d.kind = kind;
    d.rate = rate;
    return open_loop(d);
}
inline open_loop searched(const open_loop& at_most) {
    arrival_data d = at_most.data();
    d.is_searched = true;
    return open_loop(d);
}
}  // namespace detail
open_loop constant(request_rate rate) {
    return detail::open_loop_of(detail::arrival_kind::constant, rate.per_second);
}
open_loop poisson(request_rate rate) {
    return detail::open_loop_of(detail::arrival_kind::poisson, rate.per_second);
}
open_loop all_at_once() { return detail::open_loop_of(detail::arrival_kind::all_at_once, 0); }
open_loop gamma(request_rate rate, double burstiness) {
    detail::arrival_data d =
        detail::open_loop_of(detail::arrival_kind::gamma, rate.per_second).data();
    d.burstiness = burstiness;
    return open_loop(d);
}
open_loop constant(searched_rate rate) { return detail::searched(constant(rate.most)); }
open_loop poisson(searched_rate rate) { return detail::searched(poisson(rate.most)); }
open_loop gamma(searched_rate rate, double burstiness) {
    return detail::searched(gamma(rate.most, burstiness));
}
open_loop ramp(request_rate from, request_rate to, time_span over) {
    detail::arrival_data d =
        detail::open_loop_of(detail::arrival_kind::ramp, from.per_second).data();
    d.rate_to = to.per_second;
    d.over_s = over.seconds();
    return open_loop(d);
}
open_loop steps(std::initializer_list<load_step> stages) {
    detail::arrival_data d = detail::open_loop_of(detail::arrival_kind::steps, 0).data();
    d.stages = types::list<load_step>(stages);
    return open_loop(d);
}

}  // inline namespace v0
}  // namespace llmbench
