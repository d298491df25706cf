// one repeat of a load that ranks of MPI send
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/together.hpp"
#include "core/judging/cross_check.hpp"
#include "core/traffic/plan.hpp"
#include "core/stored/packed_repeat.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/limits.hpp"
#include "effects/system/ranks.hpp"
#include "effects/load/order.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/page_watch.hpp"
#include "effects/targets/server_pages.hpp"
#include "effects/gates/repeat.hpp"

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

/// What rank 0 asks of the others between two of its verdicts.
struct rank_command {
    bool is_over = false;  // the gate is
    run_arm arm = run_arm::candidate;
    int slot = 0, number = 0;
    double load = 0, answer_s = 0;  // of a probe
    double left_s = 0;              // until the time budget is spent, 0: there is none
};
inline std::string text_of(const rank_command& c) {
    return printed("%d %d %d %d %.17g %.17g %.17g", c.is_over, c.arm == run_arm::baseline, c.slot,
                   c.number, c.load, c.answer_s, c.left_s);
}
inline rank_command command_of(const std::string& text) {
    std::vector<double> n;
    std::string_view left = text;
    while (!left.empty()) {
        n.push_back(leading_number<double>(left).value_or(not_a_number));
        left.remove_prefix(std::min(left.size(), left.find_first_not_of(' ')));
        if (n.size() == 7) break;
    }
    if (n.size() != 7) throw std::runtime_error("rank 0 asks for \"" + printable(text) + "\"");
    return {n[0] != 0, n[1] != 0 ? run_arm::baseline : run_arm::candidate,
            static_cast<int>(n[2]), static_cast<int>(n[3]), n[4], n[5], n[6]};
}

/// By how much a rank's clock is ahead of rank 0's, and how well that is known.
struct clock_offset {
    long long ahead_ns = 0, error_ns = 0;
};
/// Of all ranks, at all of them. Ranks of one machine have one clock. To any other one rank 0 says
/// a word, and it answers with its time: of fifty such exchanges the shortest tells most, for that
/// time lies between the two ends of it (Cristian 1989, doi:10.1007/BF01784024). Where the machines
/// are so busy that none was short, it goes on for a second.
inline std::vector<clock_offset> clock_offsets(rank_group& ranks, double most_s) {
    constexpr int least_exchanges = 50;
    constexpr long long good_ns = 100000, most_ns = 1000000000;
    std::vector<clock_offset> all(static_cast<std::size_t>(ranks.count()));
    const std::string own_boot = name_of_the_boot();
    for (int r = 1; r < ranks.count(); ++r) {
        const std::string boot = ranks.heard(own_boot, most_s, r);
        const bool same =
            ranks.starts().machine_has_one_clock && !boot.empty() && boot == own_boot;
        if (ranks.heard(static_cast<long long>(same), most_s, 0)) continue;
        clock_offset best{0, 1LL << 60};
        const long long first = now_ns();
        for (int i = 0;; ++i) {
            const long long began = now_ns();
            const bool more =
                i < least_exchanges || (best.error_ns > good_ns && began - first < most_ns);
            if (!ranks.heard(static_cast<long long>(more), most_s, 0)) break;
            const long long there = ranks.heard(now_ns(), most_s, r);
            const long long half = (now_ns() - began + 1) / 2;
            if (half < best.error_ns) best = {there - (began + half), half};
        }
        clock_offset& at = all[static_cast<std::size_t>(r)];
        at.ahead_ns = ranks.heard(best.ahead_ns, most_s, 0);
        at.error_ns = ranks.heard(best.error_ns, most_s, 0);
    }
    return all;
}

/// When all ranks begin, each on its own clock: once all of them are ready.
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
    /// How far a part began from where it was to, by what the clocks said before and after.
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

/// The requests of a part, for the files of rank 0.
inline delivered_requests delivered(const repeat_data& part) {
    delivered_requests d;
    d.records = part.records;
    for (std::size_t i = 0; i < part.records.size(); ++i)
        for (std::size_t k = 0; k < gap_count(part.records[i]); ++k)
            d.gaps.push_back(part.gaps[part.gap_offsets[i] + k]);
    return d;
}

/// What rank 0 makes of all parts, its own first.
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
        parts.push_back(unpacked(packed_parts[i], parts[0].arm));
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

/// All ranks together. At rank 0 the whole repeat, elsewhere this rank's part. Throws at all of
/// them where one could not begin, at rank 0 where one could not end.
inline repeat_data repeat_of_ranks(const plan& p, live_target& target, run_arm arm, int repeat,
                                   int gate_number, repeat_terms terms) {
    rank_group& ranks = rank_group::of_this_program();
    common_start start(ranks, clock_offsets(ranks, ranks.wait_s()));
    const server_pages none{};
    page_watch pages(ranks.is_first() ? target.pages() : none, named_series(p.judged->slos));
    terms.start = [&] { return start(); };
    if (!ranks.is_first()) terms.most_gaps = ~0ull;  // they are counted where all are together
    repeat_data d;
    std::string why;
    const long long began = now_ns();
    try {
        d = run_repeat(p, target, arm, repeat, gate_number, terms);
    } catch (const std::exception& e) {
        if (start.is_called_off()) throw;
        if (start.begun() < starts_of(p))  // which the others are waiting for
            ranks.agree(std::current_exception(), e.what(), ranks.wait_s());
        why = e.what();
    }
    // Users of another rank may take as long again as ours, and the last answers as they may.
    const double most_s = ranks.wait_s() + drain_s(*p.sent) +
                          static_cast<double>(now_ns() - began) * 1e-9;
    const std::vector<clock_offset> after = clock_offsets(ranks, most_s);
    if (ranks.is_first() && !why.empty()) {
        ranks.gathered("", most_s);
        throw std::runtime_error(why);
    }
    const std::vector<std::string> parts =
        ranks.gathered(ranks.is_first() ? "" : why.empty() ? packed(d) : why, most_s);
    if (!ranks.is_first()) return d;
    repeat_data all = gathered_repeat(p, std::move(d), parts, start, after, terms.out);
    all.server = pages.metrics(cross_check_of(all).finished);
    return all;
}

/// What rank 0 has the others do next; nothing where there are none.
inline void ask_other_ranks(const rank_command& c) {
    rank_group& ranks = rank_group::of_this_program();
    if (!ranks.is_alone() && ranks.is_first()) ranks.heard(text_of(c), ranks.wait_s());
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
#endif
