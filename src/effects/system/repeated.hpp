// repeated actions beside a load
#pragma once

#include "effects/system/clock.hpp"
#include "effects/system/threads.hpp"

#include <condition_variable>
#include <functional>  // what is done, and when
#include <memory>  // make_shared, shared_ptr, weak_ptr
#include <mutex>  // lock_guard, unique_lock
#include <thread>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Repeats an action until its end: in its own thread, or as events of the owner's virtual
/// environment.
class repeated {
public:
    /// `next_ns`: called for each time. `failed`: gets the error that ended it.
    void begin(std::function<long long()> next_ns, std::function<void()> act,
               std::function<void(const char*)> failed) {
        what_ = std::make_shared<const steps>(
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
    repeated() = default;
    ~repeated() { stop(); }
    repeated(const repeated&) = delete;
    repeated& operator=(const repeated&) = delete;

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

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
