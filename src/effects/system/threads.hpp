// threads of the client
#pragma once

#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "effects/system/clock.hpp"

#include <condition_variable>
#include <exception>  // exception
#include <functional>  // what is done, and when
#include <memory>  // shared_ptr, weak_ptr
#include <mutex>  // lock_guard, unique_lock
#include <stdexcept>  // runtime_error
#include <system_error>
#include <thread>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Calls `work`, and `failed` with the text of an exception: one that leaves a thread or a
/// destructor would end the program.
template <class Work, class Failed>
void contained(Work&& work, Failed&& failed) noexcept {
    try {
        work();
    } catch (const std::exception& e) {
        failed(reason_in(e));
    } catch (...) {
        failed("something unknown was thrown");
    }
}

/// A thread of the client, beside the sending ones.
template <class Work, class Failed>
std::thread contained_thread(Work work, Failed failed) {
    try {
        return std::thread([work = std::move(work), failed = std::move(failed)]() mutable {
            contained(work, failed);
        });
    } catch (const std::system_error& e) {
        throw std::runtime_error(printed("client: a thread could not be started (%s): raise the "
                                         "limit on threads, ulimit -u", e.what()));
    }
}

/// Repeats an action until its end: in its own thread, or as events of the owner's virtual
/// environment.
class repeated : not_copied {
public:
    /// `next_ns`: called for each time. `failed`: gets the error that ended it.
    void begin(std::function<long long()> next_ns, std::function<void()> act,
               std::function<void(const char*)> failed) {
        what_ = new_shared<const steps>(
            steps{std::move(next_ns), std::move(act), std::move(failed)});
        if (current_environment) happen(what_);
        else thread_ = contained_thread([this, what = what_] { keep_on(*what); }, what_->failed);
    }
    /// Returns when the action runs no more.
    void stop() {
        what_.reset();
        if (!thread_.joinable()) return;
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        wake_.notify_all();
        thread_.join();
    }
    ~repeated() { stop(); }

private:
    struct steps {
        std::function<long long()> next_ns{};
        std::function<void()> act{};
        std::function<void(const char*)> failed{};

        bool done() const {
            bool is_done = false;
            contained([&] { act(); is_done = true; }, failed);
            return is_done;
        }
    };
    static void happen(const std::shared_ptr<const steps>& what) {
        current_environment->at(what->next_ns(), [known = std::weak_ptr(what)] {
            const auto still = known.lock();
            if (still && still->done()) happen(still);
        });
    }
    void keep_on(const steps& what) {
        std::unique_lock lock(mutex_);
        while (!wait_until(wake_, lock, what.next_ns(), [this] { return over_; })) {
            lock.unlock();
            if (!what.done()) return;
            lock.lock();
        }
    }

    std::shared_ptr<const steps> what_{};
    std::mutex mutex_{};
    std::condition_variable wake_{};
    bool over_ = false;
    std::thread thread_{};
};

inline std::mutex one_gate_at_a_time;
inline thread_local bool has_a_gate = false;

/// Two gates at once would disturb each other. Gates of other threads wait; one inside a gate of
/// its own thread, as in a doctest listener, would wait for ever.
class gate_turn : not_copied {
public:
    gate_turn() : turn_(one_gate_at_a_time, std::defer_lock) {
        if (has_a_gate)
            refuse({"a gate within a gate of the same thread: it would wait for itself"});
        turn_.lock();
        has_a_gate = true;
    }
    ~gate_turn() { has_a_gate = false; }

private:
    std::unique_lock<std::mutex> turn_;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
