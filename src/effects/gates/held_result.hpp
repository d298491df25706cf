// the data of a gate's result
#pragma once

#include "api/result.hpp"
#include "api/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/measurements.hpp"
#include "core/reports/gate_report.hpp"
#include "core/bodies/result_data.hpp"
#include "effects/system/settings.hpp"
#include "effects/gates/gate_repeats.hpp"

#include <cstddef>  // size_t
#include <functional>
#include <memory>  // make_shared
#include <mutex>  // call_once
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Returns a list of all requests, which is made when it is first asked for.
inline std::function<const types::list<record>&()> listed_once(const measurements& seen) {
    struct listed {
        std::once_flag once{};
        types::list<record> all{};
    };
    return [&seen, it = std::make_shared<listed>()]() -> const types::list<record>& {
        std::call_once(it->once, [&] {
            for_each_repeat(seen, [&](const repeat_data& d) {
                for (const record& r : d.records) it->all.push_back(r);
            });
        });
        return it->all;
    };
}

/// Returns the result of a gate.
inline result result_of(const gate_report& g, measured_gate&& m, std::size_t number,
                        const settings& asked) {
    auto held = std::make_shared<result_data>();
    held->number = number;
    held->outcome = g.outcome;
    held->refusal = g.refusal;
    held->undecided_is = asked.inconclusive;
    held->is_shard = asked.is_shard;
    held->is_rehearsal = !asked.rehearse.empty();
    held->what = g.what;
    held->seen = std::move(m.seen);
    held->judged_by = std::move(m.judged_by);
    held->requests = listed_once(held->seen);
    return result_access::make(std::move(held), g.verdicts, g.self_check);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
