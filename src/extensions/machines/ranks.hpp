// programs started together by MPI
// Rank 0 plans, judges and reports; the others send their share of the load and return their
// measurements. Only this part calls MPI, from one thread (MPI_THREAD_FUNNELED), with nine
// functions: Init_thread, Comm_rank, Comm_size, Bcast, Barrier, Allreduce, Gatherv, Finalize and
// Abort.
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/slot.hpp"
#include "effects/load/order.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/sharing.hpp"
#include "effects/system/signals.hpp"
#include "effects/system/threads.hpp"
#include "extensions/machines/core/together.hpp"
#include "extensions/machines/shards.hpp"

#include <algorithm>  // max, min
#include <atomic>
#include <cmath>  // fabs, isnan
#include <cstddef>  // size_t
#include <cstdio>  // freopen
#include <cstdlib>  // atexit, getenv, setenv, _Exit
#include <exception>  // current_exception, rethrow_exception
#include <functional>  // what is done when ranks are lost
#include <iostream>  // cerr
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <thread>
#include <utility>  // move

#ifdef LLMBENCH_WITH_MPI
#include <mpi.h>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Seconds that a rank waits for the others in a common step; ten times that before a gate and
/// while rank 0 judges. LLMBENCH_RANK_WAIT; not a number if that is invalid, which gates refuse.
inline double rank_wait_s() {
    const char* said = std::getenv("LLMBENCH_RANK_WAIT");
    if (!said || !*said) return 60;
    const double s = parsed_number<double>(said).value_or(0);
    return s >= 1 && s <= 86400 ? s : not_a_number;
}
inline void check_rank_wait() {
    if (std::isnan(rank_wait_s()))
        refuse({"LLMBENCH_RANK_WAIT is \"", printable(std::getenv("LLMBENCH_RANK_WAIT"), 40),
                "\": it must be a number of seconds from 1 to 86400"});
}

struct start_parameters {
    bool machine_has_one_clock = true;  // false: the clocks of its ranks are measured, too
    long long later_ns = 0;             // than agreed
};

class rank_group {
public:
    static rank_group& of_this_program() {
        static rank_group* const group = new rank_group;  // outlives every static object
        return *group;
    }
    int index() const { return index_; }
    int count() const { return count_; }
    bool is_first() const { return index_ == 0; }
    bool is_alone() const { return count_ == 1; }
    double wait_s() const { return wait_s_; }
    const start_parameters& starts() const { return starts_; }
    void set_starts(const start_parameters& s) { starts_ = s; }

    /// Sets the action, which does not return, for when other ranks are lost.
    void when_lost(std::function<void(const std::string& why)> act) { lost_ = std::move(act); }

    // ---- what all ranks call together; each waits for at most `max_s`

    /// Rank `from` sends, the others receive.
    std::string heard(std::string said, double max_s, int from = 0) {
        const waiting w(*this, max_s);
        long long size = static_cast<long long>(said.size());
        MPI_Bcast(&size, 1, MPI_LONG_LONG, from, MPI_COMM_WORLD);
        said.resize(static_cast<std::size_t>(size));
        for (std::size_t at = 0; at < said.size(); at += max_at_once)
            MPI_Bcast(said.data() + at, part(said.size(), at), MPI_CHAR, from, MPI_COMM_WORLD);
        return said;
    }
    long long heard(long long said, double max_s, int from = 0) {
        const waiting w(*this, max_s);
        MPI_Bcast(&said, 1, MPI_LONG_LONG, from, MPI_COMM_WORLD);
        return said;
    }
    void meet(double max_s) {
        const waiting w(*this, max_s);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    long long most(long long mine, double max_s) {
        const waiting w(*this, max_s);
        long long all = mine;
        MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
        return all;
    }
    /// Returns all texts in rank order at rank 0; elsewhere nothing. MPI counts in ints, so it is
    /// sent in pieces.
    vector<std::string> gathered(const std::string& mine, double max_s) {
        const std::size_t longest = static_cast<std::size_t>(
            most(static_cast<long long>(mine.size()), max_s));
        const std::size_t piece = std::max<std::size_t>(
            1, max_at_once / static_cast<std::size_t>(count_));
        vector<std::string> all(is_first() ? static_cast<std::size_t>(count_) : 0);
        for (std::size_t at = 0; at < longest; at += piece) {
            const waiting w(*this, max_s);
            gather_piece(mine, at, piece, all);
        }
        return all;
    }
    /// All ranks do this, or all throw: a rank that failed its own exception, the others the text
    /// of the first one.
    void all_or_none(const std::function<void()>& act, double max_s) {
        std::exception_ptr own;
        std::string why;
        try {
            act();
        } catch (const std::exception& e) {
            own = std::current_exception();
            why = reason_in(e);
        }
        agree(own, why, max_s);
    }
    void agree(const std::exception_ptr& own, const std::string& why, double max_s) {
        const long long failed = most(own ? count_ - index_ : 0, max_s);
        if (failed == 0) return;
        const int first = count_ - static_cast<int>(failed);
        const std::string words = heard(why, max_s, first);
        if (own) std::rethrow_exception(own);
        throw std::runtime_error(printed("rank %d of %d: ", first, count_) + words);
    }
    /// The last call, also of a program that ends by exit().
    void finish() {
        if (finished_.exchange(true)) return;
        const waiting w(*this, wait_s_);
        MPI_Finalize();
    }

private:
    static constexpr std::size_t max_at_once = 64 << 20;

    rank_group() : main_(std::this_thread::get_id()) {
        // Made where nothing catches an exception yet.
        if (const double s = rank_wait_s(); !std::isnan(s)) wait_s_ = s;
        ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);  // a waiting rank leaves the core
        contained_thread([this] { watch(); }, [](const char* why) {
            std::cerr << "llmbench: nobody watches the other ranks any more: " << why << std::endl;
            std::_Exit(3);
        }).detach();
        int provided = 0;
        {
            const waiting w(*this, wait_s_);
            MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        }
        MPI_Comm_rank(MPI_COMM_WORLD, &index_);
        MPI_Comm_size(MPI_COMM_WORLD, &count_);
        if (!is_first() && !std::freopen("/dev/null", "w", stdout))
            std::cerr << "llmbench: rank " << index_ << " speaks although rank 0 does\n";
        std::atexit([] { of_this_program().finish(); });
    }
    static int part(std::size_t size, std::size_t at, std::size_t most = max_at_once) {
        return static_cast<int>(std::min(most, size - std::min(at, size)));
    }
    void gather_piece(const std::string& mine, std::size_t at, std::size_t piece,
                      vector<std::string>& all) {
        const int own = part(mine.size(), at, piece);
        // The lengths are unknown to others, so all send them first.
        vector<int> sizes(all.size()), ones(all.size(), 1), places(all.size());
        for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i);
        MPI_Gatherv(&own, 1, MPI_INT, sizes.data(), ones.data(), places.data(), MPI_INT, 0,
                    MPI_COMM_WORLD);
        int total = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            places[i] = total;
            total += sizes[i];
        }
        std::string bytes(static_cast<std::size_t>(total), '\0');
        MPI_Gatherv(mine.data() + std::min(at, mine.size()), own, MPI_CHAR, bytes.data(),
                    sizes.data(), places.data(), MPI_CHAR, 0, MPI_COMM_WORLD);
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i].append(bytes, static_cast<std::size_t>(places[i]),
                          static_cast<std::size_t>(sizes[i]));
    }

    /// Sets the deadline of a call that may never return.
    class waiting {
    public:
        waiting(rank_group& g, double max_s) : group_(g) {
            if (std::this_thread::get_id() != g.main_)
                refuse({"a gate in a thread of its own: with MPI all gates run in the thread that "
                        "runs the first"});
            group_.since_ns_ = now_ns();
            group_.until_ns_ = now_ns() + ns_of(max_s);
        }
        ~waiting() { group_.until_ns_ = 0; }
        waiting(const waiting&) = delete;
        waiting& operator=(const waiting&) = delete;

    private:
        rank_group& group_;
    };
    /// Nothing hangs: a rank whose call does not return writes its results and ends the others.
    void watch() {
        for (;;) {
            sleep_s(0.05);
            const long long until = until_ns_, now = now_ns();
            if (until == 0) continue;
            const double waited_s = static_cast<double>(now - since_ns_) * 1e-9;
            std::string why;
            if (now > until)
                why = printed("rank %d of %d waited %.0f s for the others: one of them has died, "
                              "or never came", index_, count_, waited_s);
            else if (stop_asked.load() && waited_s > 0.3)
                why = printed("the run was interrupted while rank %d of %d waited for the others: "
                              "one of them may have died", index_, count_);
            if (why.empty()) continue;
            std::cerr << "llmbench: " << why << std::endl;
            if (lost_) lost_(why);
            std::_Exit(3);  // also ends the other ranks
        }
    }

    const std::thread::id main_;
    int index_ = 0, count_ = 1;
    double wait_s_ = 60;
    start_parameters starts_{};
    std::atomic<long long> since_ns_{0}, until_ns_{0};
    std::atomic<bool> finished_{false};
    std::function<void(const std::string&)> lost_{};
};

/// Rank 0's order to the others between two verdicts: the next slot, or the end of the gate.
struct rank_command {
    bool is_over = false;
    slot next{};
};
inline std::string text_of(const rank_command& c) {
    const long long deadline_ns = c.next.deadline_ns;
    const double left_s = deadline_ns > 0 ? std::max(0.001, seconds_until(deadline_ns)) : 0;
    return printed("%d %d %d %d %d %.17g %.17g %.17g", c.is_over, c.next.variants.size() > 1,
                   c.next.variants[0] == run_variant::baseline, c.next.number, c.next.parts_twins,
                   c.next.load, c.next.answer_s, left_s);
}
inline rank_command command_of(const std::string& text) {
    vector<double> n;
    std::string_view left = text;
    while (!left.empty()) {
        n.push_back(leading_number<double>(left).value_or(not_a_number));
        left.remove_prefix(std::min(left.size(), left.find_first_not_of(' ')));
        if (n.size() == 8) break;
    }
    if (n.size() != 8) throw std::runtime_error("rank 0 asks for \"" + printable(text) + "\"");
    slot next{.number = static_cast<int>(n[3]),
              .load = n[5],
              .answer_s = n[6],
              .parts_twins = n[4] != 0,
              .deadline_ns = n[7] > 0 ? now_ns() + ns_of(n[7]) : 0};
    if (n[2] != 0) next.variants[0] = run_variant::baseline;
    if (n[1] != 0) next.variants.push_back(run_variant::baseline);
    return {n[0] != 0, std::move(next)};
}

/// By how much a rank's clock is ahead of rank 0's, and the error of that.
struct clock_offset {
    long long ahead_ns = 0, error_ns = 0;
};
/// Called by all ranks, returned at all. Ranks of one machine share a clock. With any other, rank 0
/// exchanges messages for its time: the shortest of fifty exchanges is the most exact, because that
/// time lies between its two ends (Cristian 1989, doi:10.1007/BF01784024). If busy machines allow
/// no short one, it continues for a second.
inline vector<clock_offset> clock_offsets(rank_group& ranks, double max_s) {
    constexpr int least_exchanges = 50;
    constexpr long long good_ns = 100000, max_ns = 1000000000;
    vector<clock_offset> all(static_cast<std::size_t>(ranks.count()));
    const std::string own_boot = name_of_the_boot();
    for (int r = 1; r < ranks.count(); ++r) {
        const std::string boot = ranks.heard(own_boot, max_s, r);
        const bool same = ranks.starts().machine_has_one_clock && !boot.empty() && boot == own_boot;
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
    common_start(rank_group& ranks, vector<clock_offset> offsets)
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
    void note(rank_part& part, const vector<clock_offset>& after) const {
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
    vector<clock_offset> offsets_;
    long long at_first_ns_ = 0;
    int begun_ = 0;
    bool is_called_off_ = false;
};

inline delivered_requests delivered(const repeat_data& part) {
    delivered_requests d;
    d.records = part.records;
    for (std::size_t i = 0; i < part.records.size(); ++i)
        for (std::size_t k = 0; k < gap_count(part.records[i]); ++k)
            d.gaps.push_back(part.gaps[part.gap_offsets[i] + k]);
    return d;
}

inline repeat_data gathered_repeat(const plan& p, repeat_data own,
                                   const vector<std::string>& packed_parts,
                                   const common_start& start,
                                   const vector<clock_offset>& after, outbox* out) {
    vector<repeat_data> parts;
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

/// Called by all ranks. Each variant then has the whole repeat at rank 0, elsewhere this rank's
/// part. Throws at all ranks if one could not begin, at rank 0 if one could not end.
inline void send_of_ranks(variant_repeats& variants, const std::function<void()>& load) {
    rank_group& ranks = rank_group::of_this_program();
    const plan& p = variants[0].what;
    common_start start(ranks, clock_offsets(ranks, ranks.wait_s()));
    if (!ranks.is_first())
        for (variant_repeat& v : variants)
            v.asked.max_gaps = ~0ull;  // counted when all are combined
    long long began_ns = now_ns();
    variants[0].asked.start = [&] { return began_ns = start(); };  // both begin together
    std::string why;
    const long long began = now_ns();
    try {
        load();
        for (variant_repeat& v : variants) v.seen.ranks = {part_of(v.seen, p.shard, began_ns)};
    } catch (const std::exception& e) {
        if (start.is_called_off()) throw;
        if (start.begun() < starts_of(p))  // the others wait for it
            ranks.agree(std::current_exception(), reason_in(e), ranks.wait_s());
        why = reason_in(e);
    }
    // Another rank's users may take as long again as ours, and so may the last answers.
    const double max_s = ranks.wait_s() + drain_s(*p.sent) +
                          static_cast<double>(now_ns() - began) * 1e-9;
    const vector<clock_offset> after = clock_offsets(ranks, max_s);
    vector<vector<std::string>> parts;  // all are sent before one of them may be found wrong
    for (const variant_repeat& v : variants)
        parts.push_back(ranks.gathered(
            ranks.is_first() ? "" : why.empty() ? packed(v.seen) : why, max_s));
    if (!ranks.is_first()) return;
    if (!why.empty()) throw std::runtime_error(why);
    for (std::size_t i = 0; i < variants.size(); ++i) {
        repeat_data& all = variants[i].seen;
        all = gathered_repeat(p, std::move(all), parts[i], start, after, variants[i].asked.out);
        parts[i] = {};
    }
    if (variants.size() < 2) return;
    note_lateness(variants[0].seen, &variants[1].seen);
    note_lateness(variants[1].seen, &variants[0].seen);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
#endif
