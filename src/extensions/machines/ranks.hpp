// programs started together by MPI
// Rank 0 plans, judges and reports; the others send their share of the load and return their
// measurements. Only this part calls MPI, from one thread (MPI_THREAD_FUNNELED), with nine
// functions: Init_thread, Comm_rank, Comm_size, Bcast, Barrier, Allreduce, Gatherv, Finalize and
// Abort.
#pragma once

#include "core/base/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/signals.hpp"
#include "effects/system/threads.hpp"

#include <algorithm>  // max, min
#include <atomic>
#include <cstddef>  // size_t
#include <cstdio>  // freopen
#include <cstdlib>  // atexit, getenv, setenv, _Exit
#include <exception>  // current_exception, rethrow_exception
#include <functional>  // what is done when ranks are lost
#include <iostream>  // cerr
#include <stdexcept>  // runtime_error
#include <string>
#include <thread>
#include <utility>  // move
#include <vector>

#ifdef LLMBENCH_WITH_MPI
#include <mpi.h>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Seconds that a rank waits for the others in a common step; ten times that before a gate and
/// while rank 0 judges. LLMBENCH_RANK_WAIT.
inline double rank_wait_s() {
    const char* said = std::getenv("LLMBENCH_RANK_WAIT");
    if (!said || !*said) return 60;
    const double s = parsed_number<double>(said).value_or(0);
    if (!(s >= 1 && s <= 86400))
        refuse({"LLMBENCH_RANK_WAIT is \"", printable(said, 40),
                "\": it must be a number of seconds from 1 to 86400"});
    return s;
}

/// Timing of a rank's starts.
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
    std::vector<std::string> gathered(const std::string& mine, double max_s) {
        const std::size_t longest = static_cast<std::size_t>(
            most(static_cast<long long>(mine.size()), max_s));
        const std::size_t piece = std::max<std::size_t>(
            1, max_at_once / static_cast<std::size_t>(count_));
        std::vector<std::string> all(is_first() ? static_cast<std::size_t>(count_) : 0);
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
        wait_s_ = rank_wait_s();
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
                      std::vector<std::string>& all) {
        const int own = part(mine.size(), at, piece);
        // The lengths are unknown to others, so all send them first.
        std::vector<int> sizes(all.size()), ones(all.size(), 1), places(all.size());
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

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
#endif
