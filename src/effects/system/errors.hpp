// errors of the system, in words
#pragma once

#include "core/base/text.hpp"

#include <cstring>  // strerror
#include <string>

#include <netdb.h>  // gai_strerror

namespace llmbench {
inline namespace v0 {
namespace detail {

/// In English: reports are the same in every locale.
inline std::string error_text(int code) {
    const in_c_locale in_english;
    return std::strerror(code);
}
inline std::string resolver_error_text(int code) {
    const in_c_locale in_english;
    return ::gai_strerror(code);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
