// answers compared and shown: an extension does it
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/plan.hpp"

#include <cstddef>  // size_t
#include <functional>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A question, the expected answer (or the baseline's) and the answers given.
struct shown_answer {
    std::string id{};  // of the first request that got the answer
    std::string is{};  // right, wrong, cut off, unreadable or different
    std::string question{}, wanted{}, read{}, answer{}, baseline_answer{};
    double same_characters = not_a_number;  // before the first difference
    long long times = 0, asked = 0;  // repeats with this result, and repeats that asked
};

/// One for the program: objectives on answers need it.
class answer_keeping {
public:
    /// Marks the candidate's answers that equal the baseline's.
    virtual void mark_same(repeat_data& mine, const repeat_data& theirs) const = 0;
    /// The same, and keeps up to so many differences in its texts. `masked` makes an excerpt fit to
    /// be shown.
    virtual void compare(repeat_data& mine, const repeat_data& theirs,
                         const vector<kept_text>& said, const vector<kept_text>& expected,
                         std::size_t max_shown,
                         const std::function<std::string(std::string)>& masked) const = 0;

protected:
    ~answer_keeping() = default;
};
/// The extension that is compiled in, or null.
inline constinit const answer_keeping* known_answers = nullptr;
/// Throws std::invalid_argument if there is none.
inline const answer_keeping& the_answers() {
    if (!known_answers)
        refuse({"objectives on answers need #include \"llmbench_answers.hpp\" where LLMBENCH_MAIN "
                "is"});
    return *known_answers;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
