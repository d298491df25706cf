// one repeat of a load sent by MPI ranks
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/cross_check.hpp"
#include "core/traffic/plan.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/sharing.hpp"
#include "effects/load/order.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/page_watch.hpp"
#include "effects/targets/server_pages.hpp"
#include "effects/gates/repeat.hpp"
#include "extensions/machines/core/packed_repeat.hpp"
#include "extensions/machines/core/together.hpp"
#include "extensions/machines/own_part.hpp"
#include "extensions/machines/ranks.hpp"

#include <algorithm>  // max
#include <cmath>  // fabs
#include <cstddef>  // size_t
#include <exception>  // current_exception
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

#ifdef LLMBENCH_WITH_MPI
namespace llmbench {
inline namespace v0 {
namespace detail {

/// Rank 0's order to the others between two verdicts.
struct rank_command {
    bool is_over = false;  // the gate has ended
    shared_repeat_order next{};
};
inline std::string text_of(const rank_command& c) {
    return printed("%d %d %d %.17g %.17g %.17g", c.is_over, c.next.variant == run_arm::baseline,
                   c.next.number, c.next.load, c.next.answer_s, c.next.left_s);
}
inline rank_command command_of(const std::string& text) {
    std::vector<double> n;
    std::string_view left = text;
    while (!left.empty()) {
        n.push_back(leading_number<double>(left).value_or(not_a_number));
        left.remove_prefix(std::min(left.size(), left.find_first_not_of(' ')));
        if (n.size() == 6) break;
    }
    if (n.size() != 6) throw std::runtime_error("rank 0 asks for \"" + printable(text) + "\"");
    return {n[0] != 0, {n[1] != 0 ? run_arm::baseline : run_arm::candidate,
                        static_cast<int>(n[2]), n[3], n[4], n[5]}};
}

/// By how much a rank's clock is ahead of rank 0's, and the error of that.
struct clock_offset {
    long long ahead_ns = 0, error_ns = 0;
};
/// Called by all ranks, returned at all. Ranks of one machine share a clock. With any other, rank 0
/// exchanges messages for its time: the shortest of fifty exchanges is the most exact, because that
/// time lies between its two ends (Cristian 1989, doi:10.1007/BF01784024). If busy machines allow
/// no short one, it continues for a second.
inline std::vector<clock_offset> clock_offsets(rank_group& ranks, double max_s) {
    constexpr int least_exchanges = 50;
    constexpr long long good_ns = 100000, max_ns = 1000000000;
    std::vector<clock_offset> all(static_cast<std::size_t>(ranks.count()));
    const std::string own_boot = name_of_the_boot();
    for (int r = 1; r < ranks.count(); ++r) {
        const std::string boot = ranks.heard(own_boot, max_s, r);
        const bool same =
            ranks.starts().machine_has_one_clock && !boot.empty() && boot == own_boot;
        if (ranks.heard(static_cast<long long>(same), max_s, 0)) continue;
        clock_offset best{0, 1LL << 60};
        const long long first = now_ns();
        for (int i = 0;; ++i) {
            const long long began = now_ns();
            const bool more =
                i < least_exchanges || (best.error_ns > good_ns && began - first < max_ns);
            if (!ranks.heard(static_cast<long long>(more), max_s, 0)) break;
            const long long there = ranks.heard(now_ns(), max_s, r);
            const long long half = (now_ns() - began + 1) / 2;
            if (half < best.error_ns) best = {there - (began + half), half};
        }
        clock_offset& at = all[static_cast<std::size_t>(r)];
        at.ahead_ns = ranks.heard(best.ahead_ns, max_s, 0);
        at.error_ns = ranks.heard(best.error_ns, max_s, 0);
    }
    return all;
}

/// The common start of all ranks, each by its clock, once all are ready.
class common_start {
public:
    common_start(rank_group& ranks, std::vector<clock_offset> offsets)
        : ranks_(ranks), offsets_(std::move(offsets)) {}
    long long operator()() {
        try {
            ranks_.agree({}, "", ranks_.wait_s());
        } catch (...) {
            is_called_off_ = true;
            throw;
        }
        ++begun_;
        ranks_.meet(ranks_.wait_s());
        at_first_ns_ = ranks_.heard(now_ns() + ahead_ns, ranks_.wait_s());
        const auto own = static_cast<std::size_t>(ranks_.index());
        return std::max(at_first_ns_ + offsets_[own].ahead_ns, now_ns() + 10000000) +
               ranks_.starts().later_ns;
    }
    int begun() const { return begun_; }
    bool is_called_off() const { return is_called_off_; }
    /// Notes how far from the plan a part began, by clocks before and after.
    void note(rank_part& part, const std::vector<clock_offset>& after) const {
        const auto r = static_cast<std::size_t>(part.index);
        for (const auto* offsets : {&offsets_, &after}) {
            const clock_offset& c = (*offsets)[r];
            const double off_s =
                static_cast<double>(part.start_ns - c.ahead_ns - at_first_ns_) * 1e-9;
            const double error_s = static_cast<double>(c.error_ns) * 1e-9;
            if (offsets == &offsets_ || std::fabs(off_s) > std::fabs(part.off_s))
                part.off_s = off_s;
            part.error_s = offsets == &offsets_ ? error_s : std::max(part.error_s, error_s);
        }
    }

private:
    static constexpr long long ahead_ns = 200000000;
    rank_group& ranks_;
    std::vector<clock_offset> offsets_;
    long long at_first_ns_ = 0;
    int begun_ = 0;
    bool is_called_off_ = false;
};

/// The requests of a part, for rank 0's files.
inline delivered_requests delivered(const repeat_data& part) {
    delivered_requests d;
    d.records = part.records;
    for (std::size_t i = 0; i < part.records.size(); ++i)
        for (std::size_t k = 0; k < gap_count(part.records[i]); ++k)
            d.gaps.push_back(part.gaps[part.gap_offsets[i] + k]);
    return d;
}

/// Rank 0 combines all parts, its own first.
inline repeat_data gathered_repeat(const plan& p, repeat_data own,
                                   const std::vector<std::string>& packed_parts,
                                   const common_start& start,
                                   const std::vector<clock_offset>& after, outbox* out) {
    std::vector<repeat_data> parts;
    parts.push_back(std::move(own));
    for (std::size_t i = 1; i < packed_parts.size(); ++i) {
        if (packed_parts[i].empty() || packed_parts[i][0] != '{')
            throw std::runtime_error(printed("rank %zu of %zu: ", i, packed_parts.size()) +
                                     printable(packed_parts[i]));
        parts.push_back(unpacked(packed_parts[i], parts[0].variant));
    }
    for (repeat_data& d : parts)
        for (rank_part& r : d.ranks) start.note(r, after);
    for (std::size_t i = 1; i < parts.size(); ++i) {
        move_clock(parts[i], parts[0].ranks[0].start_ns - parts[i].ranks[0].start_ns);
        if (!out) continue;
        delivered_requests d = delivered(parts[i]);
        out->put(d);
    }
    return together(std::move(parts), users_of(*p.sent) > 0);
}

/// A batch is measured after its warm-up, as a load of its own.
inline int starts_of(const planned_traffic& p) {
    return p.arrivals.kind == arrival_kind::all_at_once && p.warmup_requests > 0 ? 2 : 1;
}

/// Called by all ranks. Returns the whole repeat at rank 0, elsewhere this rank's part. Throws at
/// all ranks if one could not begin, at rank 0 if one could not end.
inline repeat_data repeat_of_ranks(const plan& p, live_target& target, run_arm variant, int repeat,
                                   int gate_number, repeat_parameters parameters) {
    rank_group& ranks = rank_group::of_this_program();
    common_start start(ranks, clock_offsets(ranks, ranks.wait_s()));
    const server_pages none{};
    page_watch pages(ranks.is_first() ? target.pages() : none, named_series(p.judged->slos));
    long long began_ns = now_ns();
    parameters.start = [&] { return began_ns = start(); };
    if (!ranks.is_first())
        parameters.max_gaps = ~0ull;  // counted when all are combined
    repeat_data d;
    std::string why;
    const long long began = now_ns();
    try {
        d = run_repeat(p, target, variant, repeat, gate_number, parameters);
        d.ranks = {part_of(d, p.shard, began_ns)};
    } catch (const std::exception& e) {
        if (start.is_called_off()) throw;
        if (start.begun() < starts_of(p))  // the others wait for it
            ranks.agree(std::current_exception(), reason_in(e), ranks.wait_s());
        why = reason_in(e);
    }
    // Another rank's users may take as long again as ours, and so may the last answers.
    const double max_s = ranks.wait_s() + drain_s(*p.sent) +
                          static_cast<double>(now_ns() - began) * 1e-9;
    const std::vector<clock_offset> after = clock_offsets(ranks, max_s);
    if (ranks.is_first() && !why.empty()) {
        ranks.gathered("", max_s);
        throw std::runtime_error(why);
    }
    const std::vector<std::string> parts =
        ranks.gathered(ranks.is_first() ? "" : why.empty() ? packed(d) : why, max_s);
    if (!ranks.is_first()) return d;
    repeat_data all = gathered_repeat(p, std::move(d), parts, start, after, parameters.out);
    all.server = pages.metrics(cross_check_of(all).finished);
    return all;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
#endif
