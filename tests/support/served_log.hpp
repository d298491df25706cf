// What the simulated server did, for tests that look. Include it after the server: its header, or its parts.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace live {

/// Must stay as long as the server.
class served_log final : public llmbench::detail::service_observer {
public:
    struct profiler_entry {
        std::string path{};
        long long received_ns = 0;
        int status = 0;
    };
    /// Answers that were completed.
    std::vector<llmbench::detail::service_entry> answers() const {
        const std::lock_guard lock(mutex_);
        return answers_;
    }
    std::vector<profiler_entry> of_profiler() const {
        const std::lock_guard lock(mutex_);
        return of_profiler_;
    }

private:
    void on_end(const llmbench::detail::service_entry& e) override {
        if (e.ended != llmbench::detail::answer_end::ok) return;
        const std::lock_guard lock(mutex_);
        answers_.push_back(e);
    }
    void on_profiler(const std::string& path, int status) override {
        const std::lock_guard lock(mutex_);
        of_profiler_.push_back({path, llmbench::detail::now_ns(), status});
    }
    mutable std::mutex mutex_{};
    std::vector<llmbench::detail::service_entry> answers_{};
    std::vector<profiler_entry> of_profiler_{};
};

}  // namespace live
