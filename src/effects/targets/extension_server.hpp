// targets of extensions
#pragma once

#include "api/target.hpp"
#include "effects/system/clock.hpp"

#include <memory>  // unique_ptr
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A server of an extension, which accepts every request of a plan.
class extension_server {
public:
    virtual ~extension_server() = default;
    /// Returns its URL when it accepts requests.
    virtual std::string start() = 0;
    /// Describes all that its speed depends on.
    virtual std::string description() const = 0;
};

/// Makes servers for extension_target, one factory for each kind.
class target_extension {
public:
    /// Throws std::invalid_argument for invalid settings.
    virtual std::unique_ptr<extension_server> server(const box& settings) const = 0;
    /// The virtual environment of these servers; null: none.
    virtual std::unique_ptr<execution_environment> new_environment() const { return nullptr; }

protected:
    ~target_extension() = default;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
