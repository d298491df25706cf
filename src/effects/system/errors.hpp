// texts of system errors
#pragma once

#include "core/base/text.hpp"

#include <string>

#include <string.h>  // strerror_r

#include <netdb.h>  // gai_strerror

namespace llmbench {
inline namespace v1 {
namespace detail {

/// strerror_r() returns the text, or an int and leaves the text in `room`.
inline const char* words_of(const char* words, const char*) { return words; }
inline const char* words_of(int, const char* room) { return room; }
/// In English, so that reports are the same in every locale. Thread-safe.
inline std::string error_text(int code) {
    const in_c_locale in_english;
    char room[256] = {};
    return words_of(::strerror_r(code, room, sizeof room), room);
}
inline std::string resolver_error_text(int code) {
    const in_c_locale in_english;
    return ::gai_strerror(code);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
