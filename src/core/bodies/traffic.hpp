// functions of arrivals
#pragma once

#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "api/workload.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/traffic/lengths.hpp"

#include <initializer_list>  // .slos = {...}

#ifndef LLMBENCH_NO_BODIES
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

double draw::uniform() { return random_.uniform(); }
long long draw::below(long long n) {
    return n > 0 ? static_cast<long long>(random_.below(static_cast<unsigned long long>(n))) : 0;
}
types::whole draw::length(const length_distribution& d) {
    detail::check_length(d, "the length that is drawn", 1);
    if (!d.file.empty() || d.kind == length_distribution::shape::trace)
        detail::refuse({"the length that is drawn is ", detail::length_text(d),
                        ": read files in the function itself"});
    return detail::drawn_length(d, random_, 1);
}

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
#endif
