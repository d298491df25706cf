// looks at a load of both variants before its end
#pragma once

#include "api/result.hpp"
#include "core/base/time_interval.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/recovery.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/request_log.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/judging/rule.hpp"
#include "effects/load/order.hpp"

#include <cstddef>  // size_t
#include <functional>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The load until a look: both variants, and the part of it in quarters.
struct load_so_far {
    repeat_data candidate{}, baseline{};
    int quarters = 0;
};

/// Keeps finished requests until a look shows that all is decided, or the last look is over. The
/// thread that writes records calls it, so the sending ones lose no time.
class early_looks : not_copied {
public:
    /// `decides`: whether all is decided by a load so far; none if that ends no load.
    explicit early_looks(std::function<bool(load_so_far&&)> decides = {})
        : decides_(std::move(decides)) {}

    /// Where a load asks whether it is over, null if it never is before its time.
    decided_end* end() { return decides_ ? &end_ : nullptr; }
    /// The part of the load that was sent.
    double part() const { return end_.part(); }
    void take(delivered_requests&& more) {
        if (!decides_ || quarters_ == 4 || end_.is_over()) return;
        kept_.append(std::move(more));
        // Told before these came, so that none of that time is missing.
        const long long settled = std::exchange(settled_ns_, end_.settled_ns());
        while (quarters_ < 4) {
            const long long until = end_.after_quarters(quarters_);
            if (until == 0 || settled < until) break;
            if (decides_(until_then(until))) {
                end_.end_after(quarters_);
                quarters_ = 4;
            } else {
                ++quarters_;
            }
        }
        const bool is_large = kept_.records.size() > most_kept || kept_.gaps.size() > most_gaps;
        if (quarters_ < 4 && !is_large) return;
        quarters_ = 4;
        kept_ = {};
    }

private:
    static constexpr std::size_t most_kept = 1u << 18, most_gaps = 1u << 24;

    /// Empties the kept requests at the last look. Those before note in copies.
    load_so_far until_then(long long until_ns) {
        load_so_far so_far{.quarters = quarters_};
        const long long from = end_.after_quarters(0);
        request_log logs[2];
        std::size_t at = 0;
        for (record& r : kept_.records) {
            gap_list gaps;
            for (std::size_t k = 0; k < gap_count(r); ++k) gaps.push_back(kept_.gaps[at++]);
            if (r.scheduled_ns >= until_ns) continue;
            request_log& log = logs[r.variant == run_variant::baseline ? 1 : 0];
            const std::size_t index = index_of(r, at);
            log.add(index, quarters_ == 3 ? std::move(r) : record(r), gaps);
        }
        for (const run_variant variant : {run_variant::candidate, run_variant::baseline}) {
            const bool is_other = variant == run_variant::baseline;
            repeat_data& d = is_other ? so_far.baseline : so_far.candidate;
            d.variant = variant;
            d.decided_early = true;
            d.window = time_interval::between(from, until_ns);
            logs[is_other ? 1 : 0].move_into(d);
            fail_unfinished([&](auto&& f) {
                for (record& r : d.records) f(r);
            });
            fail_frequent_resends(d);
            note_exempt(d);
            note_lateness(d);
            note_unknown_gaps(d);
        }
        return so_far;
    }

    decided_end end_{};
    std::function<bool(load_so_far&&)> decides_;
    delivered_requests kept_{};
    long long settled_ns_ = 0;
    int quarters_ = first_quarter;  // of the next look; 4: no more
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
