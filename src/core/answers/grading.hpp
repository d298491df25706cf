// grading of answers
// Only the answer is graded, not the reasoning. An answer without a readable result is wrong, and
// marked unreadable.
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"

#include <string>
#include <string_view>

namespace llmbench {
inline namespace v0 {
namespace detail {

enum class graded_as : unsigned char { right, wrong, unreadable };
struct graded_answer {
    graded_as is = graded_as::unreadable;
    std::string read{};  // the text that was graded
};
/// The right answer to a question, and its grading.
struct wanted_answer {
    virtual const std::string& key() const = 0;
    virtual graded_answer graded(std::string_view text) const = 0;

protected:
    ~wanted_answer() = default;
};

/// Records the grade of an answer. A failed request and an unreadable answer are wrong; a cancelled
/// one has no grade.
inline void grade(record& r, const wanted_answer& wanted, std::string_view words) {
    constexpr std::size_t max_kept = 80;
    if (r.status == request_status::left) return;
    r.right = false;
    if (r.status != request_status::ok) return;
    const graded_answer g = wanted.graded(words);
    r.right = g.is == graded_as::right;
    r.graded = printable(g.read, max_kept);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
