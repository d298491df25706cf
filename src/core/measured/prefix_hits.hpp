// what a server's prefix cache had of the prompts
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Prompt tokens of the requests for which the server says what its prefix cache had of them.
struct prefix_hits {
    double cached = 0, prompt = 0;
    /// 0 where the server does not say.
    double fraction() const { return prompt > 0 ? cached / prompt : 0; }
    double share() const { return prompt > 0 ? cached / prompt : not_a_number; }
};
inline bool tells_cached_tokens(const record& r) {
    return r.cached_tokens >= 0 && r.prompt_tokens > 0;
}
inline prefix_hits prefix_hits_of(const repeat_data& d, const selection& which) {
    const selects selected(which, d);
    prefix_hits sum;
    for (const record& r : d.records) {
        if (!selected(r) || !tells_cached_tokens(r)) continue;
        sum.cached += r.cached_tokens;
        sum.prompt += r.prompt_tokens;
    }
    return sum;
}
inline prefix_hits prefix_hits_of(const repeat_list& arm, const selection& which = {}) {
    prefix_hits sum;
    for (const repeat_data& d : arm) {
        const prefix_hits one = prefix_hits_of(d, which);
        sum.cached += one.cached;
        sum.prompt += one.prompt;
    }
    return sum;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
