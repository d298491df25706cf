// functions of text
#pragma once

#include "api/text.hpp"
#include "core/base/text.hpp"

#include <cstring>  // strlen, memcpy
#include <utility>  // swap

#ifndef LLMBENCH_NO_BODIES
namespace llmbench {
inline namespace v0 {
namespace types {

text::text(const char* s) : text(s ? s : "", s ? std::strlen(s) : 0) {}
text::text(const char* s, detail::size_type n) {
    if (n == 0) return;
    data_ = new char[n + 1];
    size_ = n;
    std::memcpy(data_, s, n);
    data_[n] = 0;
}
text::text(const text& o) : text(o.c_str(), o.size_) {}
text& text::operator=(const text& o) {
    text copy(o);
    return *this = static_cast<text&&>(copy);
}
text& text::operator=(text&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
}
text::~text() { delete[] data_; }
text text::join(const text& a, const text& b) { return detail::str(a) + detail::str(b); }
bool text::same(const text& a, const text& b) { return detail::str(a) == detail::str(b); }

}  // namespace types
}  // inline namespace v0
}  // namespace llmbench
#endif
