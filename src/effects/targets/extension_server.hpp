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

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
