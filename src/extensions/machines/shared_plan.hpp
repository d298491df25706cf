// one program's part of a shared plan
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/judging/rule.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan_text.hpp"
#include "core/traffic/trace_hash.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "extensions/machines/ranks.hpp"
#include "extensions/machines/shards.hpp"

#include <cmath>  // fabs
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One shard's part of a plan.
inline plan as_shard(plan p, const scenario& s, const settings& asked, std::size_t gate) {
    const shard_settings own = shard_settings_of(environment);
    check_shard(p, own.shard, asked);
    const long long repeats = s.repeats;
    p.shard = own.shard;
    p.max_skew_s = max_skew_of_shards_s;
    p.nonce = shard_clock::nonce(own.start_at_s, asked.seed, gate);
    p = with_judging(std::move(p), [&](planned_judging& j) {
        j.max_repeats = j.first_repeats =
            repeats > 0 ? static_cast<int>(repeats) : repeats_of_shards;
        j.rule = rule_of(s.judging, j.first_repeats, j.max_repeats, false);
    });
    shard_clock::of_this_program().begin_gate(own.start_at_s);
    const double ahead_s = shard_clock::of_this_program().start_s() - unix_s();
    if (!(ahead_s > 0 && ahead_s < 86400))
        refuse({printed("LLMBENCH_START_AT: the first repeat was to begin %.0f s %s: all shards "
                        "must be there before it, and within a day", std::fabs(ahead_s),
                        ahead_s < 0 ? "ago" : "from now")});
    return p;
}

/// Seconds: 5 ms, or 1 % of the tightest limit on ttft if that is more. Each latency is measured on
/// one clock; only the arrival pattern depends on the skew.
inline double max_skew_of_ranks(const plan& p) {
    double tightest = infinity;
    const auto take = [&](metric_id m, double bound) {
        if (m == metric_id::ttft && bound > 0) tightest = std::min(tightest, bound);
    };
    for (const auto* objectives : {&p.judged->slos, &p.judged->search.objectives_held})
        for (const slo& s : *objectives) {
            if (s.factor == 0) take(s.what.metric, s.bound);
            for (const predicate_step& step : s.what.where)
                if (step.op == predicate_step::op_kind::compare) take(step.metric, step.bound);
        }
    return std::max(0.005, tightest < infinity ? 0.01 * tightest : 0);
}

#ifdef LLMBENCH_WITH_MPI
/// One rank's part of a plan, which must be the same at all ranks.
inline plan as_rank(plan p) {
    rank_group& ranks = rank_group::of_this_program();
    p.shard = {static_cast<std::size_t>(ranks.index()), static_cast<std::size_t>(ranks.count())};
    check_shard(*p.sent, p.shard);
    p.max_skew_s = max_skew_of_ranks(p);
    std::string mine = version_text() + " " + p.name + " " + trace_hash(p) + " " +
                       options_text(p) + " " + limits_text(p);
    for (const slo& x : p.judged->slos) mine += "; " + str(x.text());
    const std::string first = ranks.heard(mine, 10 * ranks.wait_s());
    p.nonce = static_cast<std::uint64_t>(
        ranks.heard(static_cast<long long>(p.nonce), ranks.wait_s()));
    ranks.all_or_none(
        [&] {
            if (mine != first)
                refuse({"its gate is another one than rank 0's: \"", printable(mine),
                        "\" is not \"", printable(first),
                        "\"; all ranks need the same program, arguments and LLMBENCH_ variables"});
        },
        ranks.wait_s());
    return p;
}
#endif

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
