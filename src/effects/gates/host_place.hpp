// the doctest case of a gate, and the names of gates
#pragma once

#include "core/base/text.hpp"

#include <map>
#include <mutex>  // lock_guard
#include <optional>
#include <string>
#include <utility>  // exchange
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A doctest case, and why it failed if not by a gate.
struct host_failure {
    std::string test_case{}, file{};
    int line = 0;
    std::string why{};
};

/// Any thread may call.
class host_place {
public:
    /// doctest enters this test case.
    void begin(const host_failure& at) {
        const std::lock_guard guard(mutex_);
        at_ = at;
        subcases_.clear();
    }
    /// doctest enters a subcase, or leaves it.
    void enter(const std::string& subcase) {
        const std::lock_guard guard(mutex_);
        subcases_.push_back(subcase);
    }
    void leave() {
        const std::lock_guard guard(mutex_);
        if (!subcases_.empty()) subcases_.pop_back();
    }
    /// doctest leaves the test case; returns it.
    std::optional<host_failure> end() {
        const std::lock_guard guard(mutex_);
        return std::exchange(at_, std::nullopt);
    }
    std::string test_case() const {
        const std::lock_guard guard(mutex_);
        return at_ ? at_->test_case : std::string();
    }
    /// The name of a gate without one: its test case and subcases.
    std::string usual_name() const {
        const std::lock_guard guard(mutex_);
        std::string name = at_ ? at_->test_case : std::string();
        for (const std::string& s : subcases_) name += " / " + s;
        return name;
    }
    /// Returns a unique name: a second gate of that name gets a number.
    std::string name_of_its_own(const std::string& name) {
        const std::lock_guard guard(mutex_);
        const int times = ++names_[name];
        return times == 1 ? name : name + printed(" (%d)", times);
    }

private:
    mutable std::mutex mutex_{};
    std::optional<host_failure> at_{};
    std::vector<std::string> subcases_{};
    std::map<std::string, int> names_{};  // how many gates would have each
};

}  // the number of gates by name asked for
}  // inline namespace v0
}  // namespace llmbench
