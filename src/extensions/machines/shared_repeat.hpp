// one repeat of a load sent by several programs
#pragma once

#include "api/result.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/cross_check.hpp"
#include "core/traffic/plan.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/page_watch.hpp"
#include "effects/targets/server_pages.hpp"
#include "effects/gates/repeat.hpp"
#include "extensions/machines/own_part.hpp"
#include "extensions/machines/shards.hpp"

#include <algorithm>  // max

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Reads the server's clock, if it reports one, because all shards see the same one.
inline void note_server_clock(const load_target& to, clock_ahead& lead) {
    const double asked_s = unix_s();
    const http_answer a = blocking_get(to, first_path(to), to.fields, 1);
    if (a.date_s) lead.note(asked_s, unix_s(), *a.date_s);
}

/// A shard's part, which begins with all others. Only the first shard reads the server's metrics,
/// before any of them sends and after all have their answers.
inline repeat_data repeat_of_shard(const plan& p, live_target& target, run_arm variant, int repeat,
                                   int gate_number, repeat_parameters parameters) {
    constexpr double to_connect_s = 2;
    shard_clock& clock = shard_clock::of_this_program();
    double begins_s = clock.start_s();
    const double ends_s = clock.end_s(p);
    clock.begin_next(p);
    clock_ahead lead;
    wait_for_unix_time(begins_s - to_connect_s - 1);
    if (unix_s() < begins_s - to_connect_s) note_server_clock(target.load(), lead);
    wait_for_unix_time(begins_s - to_connect_s);
    long long planned_ns = 0, began_ns = now_ns();
    parameters.start = [&] {
        planned_ns = steady_ns_at(begins_s);
        begins_s += shard_clock::measured_after_s(p);
        return began_ns = std::max(planned_ns, now_ns() + 10000000);
    };
    const server_pages none{};
    page_watch pages(p.shard.index == 0 ? target.pages() : none, named_series(p.judged->slos));
    repeat_data d = run_repeat(p, target, variant, repeat, gate_number, parameters);
    rank_part part = part_of(d, p.shard, began_ns);
    wait_for_unix_time(ends_s);
    if (!stop_asked.load()) note_server_clock(target.load(), lead);
    part.off_s = static_cast<double>(part.start_ns - planned_ns) * 1e-9;
    part.lead = lead;
    d.ranks = {part};
    d.server = pages.metrics(cross_check_of(d).finished);
    return d;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
