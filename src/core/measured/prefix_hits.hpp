// what a server's prefix cache had of the prompts
#pragma once

#include "api/result.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"

#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Prompt tokens of the requests for which the server says what its prefix cache had of them.
struct prefix_hits {
    double cached = 0, prompt = 0;
    /// 0 where the server does not say.
    double fraction() const { return prompt > 0 ? cached / prompt : 0; }
};
inline prefix_hits prefix_hits_of(const repeat_list& arm) {
    prefix_hits sum;
    for (const repeat_data& d : arm)
        for (const record& r : d.records) {
            if (!is_measured(r) || r.cached_tokens < 0 || r.prompt_tokens <= 0) continue;
            sum.cached += r.cached_tokens;
            sum.prompt += r.prompt_tokens;
        }
    return sum;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
