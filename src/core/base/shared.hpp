// what several own
#pragma once

#include "api/version.hpp"

#include <memory>  // shared_ptr

namespace llmbench {
inline namespace v1 {
namespace detail {

/// std::make_shared, which brings a compiler some twenty functions for each type: this one ten, for
/// an allocation more.
template <class T, class... Args>
std::shared_ptr<T> new_shared(Args&&... args) {
    return std::shared_ptr<T>(new T(static_cast<Args&&>(args)...));
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
